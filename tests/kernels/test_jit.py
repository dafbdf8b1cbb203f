"""The compile policy: one signature, read-only inputs, a cache, and a warning where no cache can be."""

import numba
import numpy as np
import pytest

from upturn.kernels import _jit
from upturn.kernels._jit import F8, f8, i8, inner, kernel

JIT_OFF = bool(numba.config.DISABLE_JIT)


@kernel(f8, F8)
def total(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i]
    return s


def test_frozen_and_writable_arrays_share_one_compilation():
    x = np.arange(4.0)
    assert total(x) == 6.0
    x.setflags(write=False)
    assert total(x) == 6.0
    if not JIT_OFF:
        assert len(total.dispatcher.signatures) == 1


@pytest.mark.skipif(JIT_OFF, reason="types are only checked by compiled code")
def test_another_type_is_refused_and_not_compiled():
    with pytest.raises(TypeError, match="No matching definition"):
        total(np.arange(4))
    with pytest.raises(TypeError, match="No matching definition"):
        total(np.arange(8.0)[::2])


def test_threads_that_call_first_together():
    from joblib import Parallel, delayed

    for _ in range(5):
        fresh = kernel(f8, F8)(getattr(total, "__wrapped__", total))
        sums = Parallel(n_jobs=8, backend="threading")(delayed(fresh)(np.arange(4.0)) for _ in range(8))
        assert sums == [6.0] * 8


@pytest.mark.skipif(JIT_OFF, reason="nothing is compiled")
def test_without_a_writable_folder_it_warns_once_and_compiles_all_the_same(monkeypatch):
    njit = numba.njit

    def no_cache(*args, **options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return njit(*args, **options)

    monkeypatch.setattr(numba, "njit", no_cache)
    _jit._warn_uncached.cache_clear()
    with pytest.warns(RuntimeWarning, match="set NUMBA_CACHE_DIR") as caught:
        doubled, tripled = kernel(f8, f8)(lambda x: 2 * x), kernel(f8, f8)(lambda x: 3 * x)
    assert (doubled(2.0), tripled(2.0)) == (4.0, 6.0)
    assert len(caught) == 1


@pytest.mark.skipif(JIT_OFF, reason="nothing is compiled")
def test_an_inner_function_refuses_python_and_takes_literals_as_numbers():
    helper = inner(lambda x, n: x * n)

    def scaled(x):
        return helper(x, 2) + helper(x, 3)

    assert kernel(f8, f8)(scaled)(2.0) == 10.0
    assert len(helper.signatures) == 1
    with pytest.raises(TypeError, match="only kernels can call"):
        helper(2.0, 2)


@inner
def _item(x, k):
    if k >= len(x):
        raise IndexError("past the end")
    return x[k]


@inner
def _item_twice(x, k):
    return _item(x, k) + _item(x, k)


@kernel(f8, F8, i8)
def thrice(x, k):
    return _item_twice(x, k) + _item(x, k)


def test_inner_functions_work_in_layers_and_can_raise():
    assert thrice(np.arange(3.0), 2) == 6.0
    with pytest.raises(IndexError, match="past the end"):
        thrice(np.arange(3.0), 3)


@pytest.mark.skipif(JIT_OFF or not _jit._FAMILIAR, reason="inner functions are not compiled, or as numba would")
def test_an_inner_function_has_no_machine_code_of_its_own():
    uncached = numba.njit(f8(F8, i8))(thrice.__wrapped__)
    (result,) = uncached.overloads.values()
    engine = result.target_context.codegen()._engine
    assert engine.is_symbol_defined(result.fndesc.llvm_cpython_wrapper_name)
    assert len(_item.overloads) == len(_item_twice.overloads) == 1
    for result in (*_item.overloads.values(), *_item_twice.overloads.values()):
        assert not engine.is_symbol_defined(result.fndesc.mangled_name)
