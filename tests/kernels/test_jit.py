"""The compile policy: one signature, read-only inputs, no code of other sources, and never a failure of the cache."""

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import event

from upturn.kernels import _jit, _plain, _stamp
from upturn.kernels._jit import F8, f8, i8, inner, kernel

JIT_OFF = bool(numba.config.DISABLE_JIT)
TRIED = tuple(int(part) for part in numba.__version__.split(".")[:2]) <= _jit.TRIED
PACKAGE = Path(_jit.__file__).parent.parent
needs_compiler = pytest.mark.skipif(JIT_OFF, reason="nothing is compiled")


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


@pytest.mark.skipif(JIT_OFF or not TRIED, reason="inner functions are not compiled, or as numba would")
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


@pytest.mark.skipif(JIT_OFF or not TRIED, reason="inner functions are not compiled, or as numba would")
def test_an_inner_function_has_no_machine_code_of_its_own():
    uncached = numba.njit(f8(F8, i8))(thrice.__wrapped__)
    (result,) = uncached.overloads.values()
    engine = result.target_context.codegen()._engine
    assert engine.is_symbol_defined(result.fndesc.llvm_cpython_wrapper_name)
    assert len(_item.overloads) == len(_item_twice.overloads) == 1
    for result in (*_item.overloads.values(), *_item_twice.overloads.values()):
        assert not engine.is_symbol_defined(result.fndesc.mangled_name)


# --- code of other sources ---

CALLEE = """
from upturn.kernels._jit import inner

@inner
def divergence(p, q):
    return (p - q) ** 2
"""
CALLER = """
from upturn.kernels._jit import f8, kernel
from upturn.kernels.callee import divergence

@kernel(f8, f8, f8)
def gain(p, q):
    return 3.0 * divergence(p, q)
"""
SCRIPT = """
import numba
{before}
from numba.core import event
from upturn.kernels.caller import gain
with event.install_recorder("numba:compile") as compiled:
    print(gain(3.0, 1.0), len(compiled.buffer) > 0)
"""
UNTRIED = "numba.__version__ = '9.9.0'"


@pytest.fixture
def package(tmp_path):
    """A copy of the package with two kernels of our own in two files."""
    copy = tmp_path / "site" / "upturn"
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE / "kernels", copy / "kernels", ignore=skip)
    for name in ("__init__.py", "_arrays.py"):
        shutil.copy(PACKAGE / name, copy / name)
    (copy / "kernels" / "callee.py").write_text(CALLEE)
    (copy / "kernels" / "caller.py").write_text(CALLER)
    return copy


def run(package, *, before="", **environment):
    """Print of the script in a fresh process: the gain and whether anything was compiled for it."""
    known = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    answer = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(before=before)],
        env={**known, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    told = [line for line in answer.stderr.splitlines(keepends=True) if not line.startswith("upturn: compiling")]
    return answer.stdout.strip(), "".join(told)


@needs_compiler
@pytest.mark.parametrize(
    ("before", "given"),
    [("", False), ("", True), (UNTRIED, True)],
    ids=["beside the code", "NUMBA_CACHE_DIR", "untried numba"],
)
def test_an_edit_in_the_file_of_a_callee_is_seen(package, tmp_path, before, given):
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")} if given else {}
    callee = package / "kernels" / "callee.py"
    assert run(package, before=before, **environment) == ("12.0 True", "")
    assert run(package, before=before, **environment) == ("12.0 False", "")
    callee.write_text(CALLEE.replace("** 2", "** 3"))  # as long as before
    os.utime(callee, (0, 0))
    assert run(package, before=before, **environment) == ("24.0 True", "")
    assert run(package, before=before, **environment) == ("24.0 False", "")
    kept = list(tmp_path.rglob("*.nb?"))
    assert all((tmp_path / "cache" in path.parents) == given for path in kept)
    if not before:  # what is stale is replaced
        assert sorted(path.suffix for path in kept) == [".nbc", ".nbi"]


@needs_compiler
@pytest.mark.parametrize("before", ["", UNTRIED], ids=["tried", "untried"])
def test_a_process_older_than_an_edit_leaves_no_code_behind(package, before):
    callee = package / "kernels" / "callee.py"
    edit = f"open({str(callee)!r}, 'w').write({CALLEE.replace('** 2', '** 3')!r})"
    assert run(package, before=f"{before}\nimport upturn.kernels._jit\n{edit}") == ("24.0 True", "")
    callee.write_text(CALLEE)
    assert run(package, before=before) == ("12.0 True", "")


@needs_compiler
def test_code_in_a_zip_file(package, tmp_path):
    shutil.make_archive(tmp_path / "package", "zip", package.parent)
    gain, _ = run(tmp_path / "package.zip" / "upturn", XDG_CACHE_HOME=str(tmp_path / "user"))
    assert gain == "12.0 True"


CACHED = """
import sys
import numba
import numpy as np
{before}
from upturn.kernels._jit import F8, F8_out, f8, inner, kernel

@inner
def half(x):
    if x < 0:
        raise ValueError("below 0")
    return x / 2

@kernel(F8_out, F8)
def halves(x):
    made = np.empty(len(x))
    for i in range(len(x)):
        made[i] = half(x[i])
    return made

@kernel(f8, F8)
def most(x):
    return np.sort(x)[-1]

x = np.arange(4.0)
x.setflags(write=False)
print(halves(x).tolist(), "numba.np.arraymath" in sys.modules, end=" ")
try:
    halves(np.full(1, -1.0))
except ValueError as error:
    print(error, end=" ")
if len(sys.argv) > 1:
    print(most(halves(x)), end=" ")
"""


@needs_compiler
@pytest.mark.skipif(not TRIED, reason="numba is used by its public means")
def test_code_that_is_there_needs_no_registries_of_numba_and_what_is_compiled_later_has_them(tmp_path):
    def ran(*arguments, before=""):
        (tmp_path / "halves.py").write_text(CACHED.format(before=before))
        os.utime(tmp_path / "halves.py", (0, 0))
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(PACKAGE.parent)}
        line = [sys.executable, "halves.py", *arguments]
        return subprocess.run(line, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    values = "[0.0, 0.5, 1.0, 1.5]"
    assert ran() == f"{values} True below 0 "
    assert ran() == f"{values} False below 0 "
    assert ran("most") == f"{values} False below 0 1.5 "
    assert ran("most") == f"{values} False below 0 1.5 "
    other = "from numba.core.caching import Cache\nCache.load_overload = lambda self, sig, context: (context.refresh(), self._load_overload(sig, context))[1]"
    for _ in ("compiled", "loaded as numba does it"):
        assert ran(before=other) == f"{values} True below 0 "


# --- faults of the disk ---


@pytest.fixture(params=["tried", "untried"])
def cache(request, monkeypatch, tmp_path):
    """An empty folder for compiled code; warnings as in a fresh process; both ways of caching."""
    if JIT_OFF or (request.param == "tried" and not TRIED):
        pytest.skip("this way of compiling is not used here")
    if request.param == "untried":
        monkeypatch.setattr(_jit, "compile_kernel", _plain.compile_kernel)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(_stamp, "_SAID", set())
    return tmp_path


def compiled_anew():
    """Run a kernel as a fresh process would: was it compiled?"""
    fresh = kernel(f8, F8)(total.__wrapped__)
    with event.install_recorder("numba:compile") as compiled:
        assert fresh(np.arange(4.0)) == 6.0
    return len(compiled.buffer) > 0


def the_file(folder, suffix):
    (path,) = folder.rglob(f"*{suffix}")
    return path


def truncated(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def emptied(path):
    path.write_bytes(b"")


def zeroed(path):
    path.write_bytes(bytes(path.stat().st_size))


def a_bit_flipped(path):
    text = bytearray(path.read_bytes())
    text[len(text) // 2] ^= 1
    path.write_bytes(text)


def test_the_cache_is_used(cache):
    assert [compiled_anew(), compiled_anew()] == [True, False]


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("damage", [truncated, emptied, zeroed])
def test_damaged_code_is_compiled_anew_with_one_warning(cache, suffix, damage):
    assert compiled_anew()
    damage(the_file(cache, suffix))
    with pytest.warns(RuntimeWarning, match="damaged|cannot be kept") as caught:
        assert compiled_anew()
    assert len(caught) == 1
    if _jit.compile_kernel is not _plain.compile_kernel:  # and what is damaged is replaced
        assert not compiled_anew()


def test_damage_that_unpickles_is_seen_by_its_checksum(cache):
    if _jit.compile_kernel is _plain.compile_kernel:
        pytest.skip("numba's own files have no checksum")
    assert compiled_anew()
    a_bit_flipped(the_file(cache, ".nbc"))
    with pytest.warns(RuntimeWarning, match="checksum"):
        assert compiled_anew()
    assert not compiled_anew()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_code_that_cannot_be_saved_runs_with_one_warning(cache, monkeypatch, number):
    def refuse(source, target):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.warns(RuntimeWarning, match=os.strerror(number)) as caught:
        assert [compiled_anew(), compiled_anew()] == [True, True]
    assert len(caught) == 1
    assert "NUMBA_CACHE_DIR" in str(caught[0].message)


def test_damage_on_a_full_disk(cache, monkeypatch):
    assert compiled_anew()
    truncated(the_file(cache, ".nbi"))

    def refuse(source, target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.warns(RuntimeWarning, match="compiled code") as caught:
        assert [compiled_anew(), compiled_anew()] == [True, True]
    assert len(caught) == 1


@needs_compiler
@pytest.mark.parametrize("before", ["", UNTRIED], ids=["tried", "untried"])
def test_without_a_writable_folder_it_warns_once_and_compiles_all_the_same(package, tmp_path, before):
    nowhere = tmp_path / "a file"
    nowhere.write_text("")
    (package / "kernels" / "__pycache__").write_text("")  # where numba would write next
    environment = {"NUMBA_CACHE_DIR": str(nowhere), "XDG_CACHE_HOME": str(nowhere), "HOME": str(nowhere)}
    gain, warned = run(package, before=before, **environment)
    assert gain == "12.0 True"
    assert warned.count("RuntimeWarning") == 1
    assert "set NUMBA_CACHE_DIR" in warned


def test_a_kernel_with_a_mistake_says_so(cache):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(numba.TypingError):
            kernel(f8, f8)(lambda x: x.nothing)(1.0)


@pytest.fixture
def ctrl_c():
    """Python's own way with Ctrl-C, which a process in the background does not have."""
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, earlier)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_that_is_lost_in_a_callback_is_heard_when_compiling_ends():
    with pytest.raises(KeyboardInterrupt), _jit.ctrl_c_heard(), contextlib.suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with _jit.ctrl_c_heard():
        pass


@pytest.mark.usefixtures("ctrl_c")
def test_whoever_listens_for_ctrl_c_himself_goes_on_doing_so():
    heard = []
    signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    with _jit.ctrl_c_heard():
        signal.raise_signal(signal.SIGINT)
    assert heard == [signal.SIGINT]
