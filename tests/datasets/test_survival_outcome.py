"""survival_outcome: against Kaplan and Meier a person at a time, without bias on simulations, and at its gates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive.survival import kaplan_meier, pseudo_observations, restricted_mean
from upturn.datasets import survival_outcome
from upturn.metrics import SmallSampleWarning

quiet = pytest.mark.filterwarnings("ignore::upturn.metrics.SmallSampleWarning")
people = st.lists(st.tuples(st.integers(0, 9).map(float), st.booleans()), min_size=2, max_size=14)


def reached(table, horizon):
    """Whether the curve is known up to the horizon: somebody is watched until then, or the last ones all died."""
    last = max(t for t, _ in table)
    return last >= horizon


@quiet
@pytest.mark.parametrize("kind", ["survival", "rmst"])
@given(table=people, horizon=st.integers(1, 9))
def test_weighted_mean_is_kaplan_meier(kind, table, horizon):
    """Satten and Datta: the weights are n times the jumps of the curve, so they add up to n and average to it exactly."""
    if not reached(table, horizon):
        return
    times, events = [t for t, _ in table], [int(e) for _, e in table]
    y, weight = survival_outcome(times, events, horizon, kind=kind)
    estimate = kaplan_meier if kind == "survival" else restricted_mean
    assert weight.sum() == pytest.approx(len(table))
    assert np.average(y, weights=weight) == pytest.approx(estimate(times, events, horizon))
    lost = [not e and t < horizon for t, e in table]
    assert ((weight == 0) == lost).all()
    if kind == "survival":
        assert set(y.tolist()) <= {0.0, 1.0}


@quiet
@pytest.mark.parametrize("kind", ["survival", "rmst"])
@given(table=people, horizon=st.integers(1, 9))
def test_pseudo_observations_are_the_jackknife(kind, table, horizon):
    if not reached(table, horizon):
        return
    times, events = [t for t, _ in table], [int(e) for _, e in table]
    y, weight = survival_outcome(times, events, horizon, kind=kind, method="pseudo")
    assert y == pytest.approx(pseudo_observations(times, events, horizon, kind), abs=1e-9)
    assert (weight == 1).all()


@pytest.mark.parametrize("kind", ["survival", "rmst"])
def test_both_on_real_valued_times(kind):
    rng = np.random.default_rng(0)
    died, lost = rng.exponential(1, 60), rng.exponential(1, 60)
    times, events = np.minimum(died, lost), (died <= lost).astype(int)
    y, _ = survival_outcome(times, events, 0.9, kind=kind, method="pseudo")
    naive = pseudo_observations(times.tolist(), events.tolist(), 0.9, kind)
    assert y == pytest.approx(naive, abs=1e-10)


@pytest.mark.parametrize("method", ["ipcw", "pseudo"])
def test_nothing_is_changed_without_censoring(method):
    times = np.array([1.0, 2.0, 2.0, 3.0, 5.0])
    y, weight = survival_outcome(times, np.ones(5), 2.0, method=method)
    assert y.tolist() == [0, 0, 0, 1, 1]
    assert weight.tolist() == [1] * 5
    y, weight = survival_outcome(times, np.ones(5), 2.5, kind="rmst", method=method)
    assert y.tolist() == [1, 2, 2, 2.5, 2.5]
    assert weight.tolist() == [1] * 5


def test_ties_at_the_horizon():
    """An event at the horizon has happened; who was last seen at the horizon lived through it."""
    y, weight = survival_outcome([5, 5, 6, 7], [1, 0, 1, 1], 5)
    assert y.tolist() == [0, 1, 1, 1]
    assert weight.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("method", ["ipcw", "pseudo"])
@pytest.mark.parametrize("kind", ["survival", "rmst"])
def test_arms_are_judged_apart(kind, method):
    rng = np.random.default_rng(1)
    times, events = rng.exponential(1, 300), rng.integers(0, 2, 300)
    arm = rng.integers(0, 3, 300)
    labels = np.array(["none", "low", "high"])[arm]
    y, weight = survival_outcome(times, events, 0.7, treatment=labels, kind=kind, method=method)
    for code in range(3):
        alone = survival_outcome(times[arm == code], events[arm == code], 0.7, kind=kind, method=method)
        assert np.array_equal(y[arm == code], alone.y)
        assert np.array_equal(weight[arm == code], alone.sample_weight)


# ----------------------------------------------------------------------------------- no bias, by simulation

REPEATS, ROWS = 300, 400  # trials, and people in each
HORIZON = 1.0


def simulate(rng, censoring):
    """Exponential times whose rate depends on a feature and the arm; censored at rates of the arms, half of people in all."""
    x, arm = rng.integers(0, 2, ROWS), np.repeat([0, 1], ROWS // 2)
    rate = np.where(arm == 1, np.where(x == 1, 0.5, 1.0), 1.2)
    died = rng.exponential(1 / rate)
    lost = rng.exponential(1 / np.asarray(censoring)[arm])
    return x, arm, np.minimum(died, lost), (died <= lost).astype(int)


def truth(kind):
    """Effect among x = 1: rates of 0.5 against 1.2."""
    if kind == "survival":
        return np.exp(-0.5 * HORIZON) - np.exp(-1.2 * HORIZON)
    return (1 - np.exp(-0.5 * HORIZON)) / 0.5 - (1 - np.exp(-1.2 * HORIZON)) / 1.2


def effect(y, arm, weight):
    return np.average(y[arm == 1], weights=weight[arm == 1]) - np.average(y[arm == 0], weights=weight[arm == 0])


@quiet
@pytest.mark.parametrize("censoring", [(0.95, 0.95), (1.7, 0.4)], ids=["equal", "by arm"])
@pytest.mark.parametrize("kind", ["survival", "rmst"])
def test_no_bias_under_half_censoring(kind, censoring):
    """Over 300 trials of 400 people, the mean error of a group's effect is within 3.5 of its standard errors."""
    rng = np.random.default_rng(7)
    errors, naive, censored = {"ipcw": [], "pseudo": []}, [], []
    for _ in range(REPEATS):
        x, arm, times, events = simulate(rng, censoring)
        mine = x == 1
        censored.append(1 - events.mean())
        for method, found in errors.items():
            y, weight = survival_outcome(times, events, HORIZON, treatment=arm, kind=kind, method=method)
            found.append(effect(y[mine], arm[mine], weight[mine]) - truth(kind))
        counted = (times > HORIZON).astype(float) if kind == "survival" else np.minimum(times, HORIZON)
        naive.append(effect(counted[mine], arm[mine], np.ones(mine.sum())) - truth(kind))
    assert 0.45 < np.mean(censored) < 0.55
    for method, found in errors.items():
        z = np.mean(found) / (np.std(found, ddof=1) / np.sqrt(REPEATS))
        assert abs(z) < 3.5, (method, z)
    naive_z = np.mean(naive) / (np.std(naive, ddof=1) / np.sqrt(REPEATS))
    assert abs(naive_z) > 10  # counting the censored as failures would be seen


def test_one_curve_for_all_is_biased_when_arms_are_censored_differently():
    """Why `treatment` should be given."""
    rng = np.random.default_rng(8)
    found = []
    for _ in range(100):
        x, arm, times, events = simulate(rng, (1.7, 0.4))
        y, weight = survival_outcome(times, events, HORIZON)
        found.append(effect(y[x == 1], arm[x == 1], weight[x == 1]) - truth("survival"))
    assert abs(np.mean(found)) > 5 * np.std(found, ddof=1) / 10


# ------------------------------------------------------------------------------------------------- gates

GOOD = [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], [], 1), "time is empty"),
        (([1.0, np.nan], [1, 1], 1), r"time holds 1 NaN \(missing\)"),
        (([1.0, np.inf], [1, 1], 1), "time holds 1 infinite"),
        (([1.0, -2.0], [1, 1], 1), r"time holds 1 negative value\(s\), the first -2 at row 1"),
        ((["a", "b"], [1, 1], 1), "time holds 'a' at row 0, which is not a number"),
        (([1.0, 2.0], [1], 1), "inconsistent numbers of samples: time has 2, event has 1"),
        (([1.0, 2.0], [1, 2], 1), r"event holds 2 at row 1.*\(status == 2\)"),
        (([1.0, 2.0], [1, np.nan], 1), "event holds 1 NaN"),
        (([1.0, 2.0], ["yes", "no"], 1), "event holds 'yes'"),
        ((GOOD, [1, 1, 1, 1], 0), "horizon=0: expected a time above 0"),
        ((GOOD, [1, 1, 1, 1], np.nan), "horizon=nan"),
        ((GOOD, [1, 1, 1, 1], "5"), "horizon='5'"),
        ((GOOD, [1, 1, 1, 1], 5), "horizon=5 lies beyond the data, whose largest time is 4"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        survival_outcome(*arguments)


def test_errors_of_arms_and_words():
    with pytest.raises(ValueError, match="beyond the follow-up of arm 1, where the longest time is 3 and censored"):
        survival_outcome([9, 9, 1, 3], [1, 1, 1, 0], 5, treatment=[0, 0, 1, 1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        survival_outcome(GOOD, [1, 1, 1, 1], 2, treatment=[0, 1])
    with pytest.raises(ValueError, match="kind='median'"):
        survival_outcome(GOOD, [1, 1, 1, 1], 2, kind="median")
    with pytest.raises(ValueError, match="method='km'"):
        survival_outcome(GOOD, [1, 1, 1, 1], 2, method="km")


def test_an_arm_that_died_out_is_known_to_have(recwarn):
    """The curve is 0 after the last event, whether or not anybody was watched until the horizon."""
    y, weight = survival_outcome([9, 9, 1, 3], [1, 1, 1, 1], 5, treatment=[0, 0, 1, 1])
    assert y.tolist() == [1, 1, 0, 0]
    assert weight.tolist() == [1, 1, 1, 1]
    assert not recwarn.list


@pytest.mark.parametrize("method", ["ipcw", "pseudo"])
def test_few_under_observation(method):
    times, events = np.r_[np.full(95, 1.0), np.full(5, 9.0)], np.zeros(100)
    with pytest.warns(
        SmallSampleWarning, match=r"of arm 0, 5.0% are still under observation at horizon=5 \(5 of 100 rows\)"
    ):
        survival_outcome(
            np.r_[times, np.full(100, 9.0)], np.r_[events, events], 5, treatment=np.repeat([0, 1], 100), method=method
        )


def test_frames_and_flags():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"t": [3, 4, 8, 12, 15], "d": [True, False, True, False, True]})
    y, weight = survival_outcome(frame["t"], frame["d"], 10)
    assert y.tolist() == [0, 0, 0, 1, 1]
    assert weight == pytest.approx([1, 0, 4 / 3, 4 / 3, 4 / 3])


def test_loaders_of_survival_data_keep_the_times():
    from upturn.datasets import load_colon

    data = load_colon("death", arms="lev5fu")
    time, event = data.details["time"], data.details["event"]
    assert (len(time), int(event.sum())) == (619, 291)
    y, weight = survival_outcome(time, event, 5 * 365.25, treatment=data.treatment)
    survival = [np.average(y[data.treatment == a], weights=weight[data.treatment == a]) for a in (0, 1)]
    arm = data.treatment == 1
    naive = [kaplan_meier(time[mine].tolist(), event[mine].tolist(), 5 * 365.25) for mine in (~arm, arm)]
    assert survival == pytest.approx(naive)
