"""Statistics against hand-worked values, scipy and plain loops."""

import numpy as np
import pytest
import scipy.stats

from etmdp.analysis import stats


def test_iqm_by_hand():
    # Of 8 values the 2 lowest and the 2 highest go: (3 + 4 + 5 + 6) / 4.
    assert stats.iqm([100, 1, 2, 3, 4, 5, 6, -50]) == pytest.approx((2 + 3 + 4 + 5) / 4)
    # Of 3 values a quarter rounds down to none.
    assert stats.iqm([1, 2, 9]) == pytest.approx(4)
    # Of 5 values one goes at each end.
    assert stats.iqm([1, 2, 3, 4, 100]) == pytest.approx(3)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 10, 11])
def test_iqm_is_scipys_trimmed_mean(count):
    values = np.random.default_rng(count).normal(size=(count, 6))
    assert stats.iqm(values) == pytest.approx(scipy.stats.trim_mean(values, 0.25, axis=0))
    assert stats.iqm(values.T, axis=1) == pytest.approx(scipy.stats.trim_mean(values, 0.25, axis=0))


def test_interval_is_the_percentile_bootstrap():
    """The same resamples, drawn and evaluated one by one."""
    values = np.random.default_rng(3).normal(size=7)
    rng = np.random.default_rng(0)
    means = [scipy.stats.trim_mean(values[draw], 0.25) for draw in rng.integers(7, size=(stats.RESAMPLES, 7))]
    assert stats.interval([values], stats.iqm) == pytest.approx(np.percentile(means, [2.5, 97.5]))


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8, 10, 13])
def test_fast_interval_is_the_bootstrap_of_each_column(count):
    values = np.random.default_rng(count).normal(size=(count, 4))
    slow = stats.interval([np.sort(values, axis=0)], stats.iqm)
    assert np.array(stats.iqm_interval(values)) == pytest.approx(np.array(slow))


def test_fast_interval_of_one_column_and_of_equal_values():
    assert stats.iqm_interval(np.array([3.0, 3.0, 3.0])) == (3.0, 3.0)


def test_interval_agrees_with_scipys_bootstrap():
    values = np.random.default_rng(5).normal(10, 2, size=40)
    theirs = scipy.stats.bootstrap(
        [values], np.mean, method="percentile", n_resamples=20000, rng=np.random.default_rng(1)
    ).confidence_interval
    lower, upper = stats.interval([values], stats.mean)
    assert lower == pytest.approx(theirs.low, abs=0.06)
    assert upper == pytest.approx(theirs.high, abs=0.06)


def test_interval_is_repeatable_and_leaves_the_global_generator_alone():
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = stats.interval([np.arange(9.0)], stats.iqm)
    assert first == stats.interval([np.arange(9.0)], stats.iqm)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_resampling_is_stratified():
    """Each stratum is drawn from on its own: values never cross over, and the draws are independent."""
    low, high = stats.resample([np.array([0.0, 1.0]), np.array([10.0, 11.0, 12.0])])
    assert low.shape == (stats.RESAMPLES, 2)
    assert high.shape == (stats.RESAMPLES, 3)
    assert set(low.ravel()) == {0.0, 1.0}
    assert set(high.ravel()) == {10.0, 11.0, 12.0}
    assert abs(np.corrcoef(low.mean(axis=1), high.mean(axis=1))[0, 1]) < 0.1


def test_improvement_by_hand():
    # Pairs (1,2) lost, (1,0) won, (2,2) tie, (2,0) won: 2.5 of 4.
    assert stats.improvement([1, 2], [2, 0]) == pytest.approx(2.5 / 4)


def test_improvement_is_mann_whitney():
    rng = np.random.default_rng(2)
    x, y = rng.integers(0, 5, size=8), rng.integers(0, 5, size=11)
    u = scipy.stats.mannwhitneyu(x, y).statistic
    assert stats.improvement(x, y) == pytest.approx(u / (8 * 11))
    assert stats.improvement(np.stack([x, x]), np.stack([y, y + 9]), axis=1) == pytest.approx([u / 88, 0])


def test_mean_improvement_averages_over_tasks():
    assert stats.mean_improvement([1, 2], [0], [1], [2, 3]) == pytest.approx((1 + 0) / 2)


def test_profile_by_hand():
    assert stats.profile([1, 2, 2, 5], np.array([0, 1, 2, 5])).tolist() == [1.0, 0.75, 0.25, 0.0]


def test_scores_of_runs():
    curve = np.array([[0.0] * 5 + [1.0] * 10, [1.0] * 5 + [0.0] * 4 + [1.0] * 6, [1.0] * 10 + [0.0] * 5])
    assert stats.final(curve).tolist() == [1.0, 0.6, 0.5]
    assert stats.over_training(curve) == pytest.approx([10 / 15, 11 / 15, 10 / 15])
    assert stats.solved(curve).tolist() == [1.0, 1.0, 0.0]  # exactly half is not solved


def test_final_of_a_short_run_uses_what_there_is():
    assert stats.final(np.array([[1.0, 3.0]])).tolist() == [2.0]


def test_steps_to_threshold():
    curve = np.array([[0, 5, 2, 9], [6, 0, 0, 0], [0, 1, 2, 3]])
    assert stats.steps_to(curve, np.array([10, 20, 30, 40]), 5).tolist() == [20.0, 10.0, np.inf]
