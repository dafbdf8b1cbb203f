"""Samples and sums of rows that lie in several places are those of one place."""

import numpy as np
import pytest

from upturn.trees._outcome import encode_outcome, grid_of, make_words, merge_summaries, summarise, unit_of
from upturn.trees._samples import Answers, Lot, Sampling, draw_roles

PLANS = {
    "all": Sampling(),
    "half": Sampling(fraction=0.5),
    "bootstrap": Sampling(bootstrap=True),
    "honest": Sampling(rho=0.4),
    "honest bootstrap of halves": Sampling(bootstrap=True, rho=0.5, group_size=2),
    "honest subsamples of halves": Sampling(fraction=0.6, rho=0.5, group_size=2),
}
SPANS = [slice(0, 1), slice(1, 1), slice(1, 90), slice(90, 500)]


@pytest.mark.parametrize("tiny", [False, True])
@pytest.mark.parametrize("name", list(PLANS))
def test_roles_do_not_depend_on_where_rows_lie(name, tiny):
    arm = (np.arange(500) % 3).astype(np.uint8)
    if tiny:
        arm[:] = 0
        arm[[7, 300]] = 1
        arm[400] = 2
    size, seed, order = np.bincount(arm), np.uint64(5), np.random.default_rng(0).permutation(500)
    for tree in (0, 3):
        whole = draw_roles(Lot(arm), size, PLANS[name], seed, tree)
        numbered = [Lot(arm[span], span.start) for span in SPANS]
        mixed = [Lot(arm[order[span]], 0, order[span].astype(np.uint64)) for span in SPANS]
        for lots, put_back in ((numbered, np.arange(500)), (mixed, np.argsort(order))):
            draws = Answers(size, PLANS[name], seed, tree)
            while not draws.complete:
                draws = draws.tell([draws.look(lot) for lot in lots])
            for k in range(2):
                joined = np.concatenate([draws.roles(lot)[k] for lot in lots])
                np.testing.assert_array_equal(joined[put_back] if len(joined) else joined, whole[k])


OUTCOMES = {
    "integers": lambda rng, n: rng.integers(-3, 9, n).astype(float),
    "real": lambda rng, n: np.exp(3.0 * rng.normal(size=n)),
    "tiny": lambda rng, n: 1e-200 * rng.normal(size=n),
    "zero": lambda rng, n: np.zeros(n),
}
WEIGHTS = {
    "none": lambda rng, n: None,
    "real": lambda rng, n: rng.uniform(0.1, 4.0, n),
    "whole": lambda rng, n: rng.integers(1, 9, n).astype(float),
    "small": lambda rng, n: 1e-90 * rng.uniform(0.1, 4.0, n),
}


@pytest.mark.parametrize("weights", list(WEIGHTS))
@pytest.mark.parametrize("outcome", list(OUTCOMES))
def test_words_do_not_depend_on_where_rows_lie(outcome, weights):
    rng = np.random.default_rng(1)
    y = OUTCOMES[outcome](rng, 500)
    weight = WEIGHTS[weights](rng, 500)
    words, layout = encode_outcome(y, weight)

    def merged(unit):
        parts = [summarise(y[span], None if weight is None else weight[span], unit) for span in SPANS]
        return merge_summaries([parts[2], merge_summaries([parts[3], parts[1]]), parts[0]])

    unit = unit_of(merged(1.0))
    assert (unit != 1.0) == (weights == "small")
    grid = grid_of(merged(unit))
    assert grid.layout == layout
    found = [make_words(y[span], None if weight is None else weight[span], grid) for span in SPANS]
    np.testing.assert_array_equal(np.concatenate(found), words)
    total = np.abs(words.reshape(500, -1)).sum(axis=0)  # sums use the room there is, and leave what copies need
    if layout.n_words == 2:
        assert total.max() < 2**57 + 500
        heaviest = 500 * layout.weight_word if layout.weight_word else total[0]
        assert heaviest >= 2**55
