"""Statistics of a handful of runs: interquartile means, bootstrap intervals, improvement, profiles.

The definitions are those of rliable ("Deep RL at the Edge of the Statistical Precipice"). Seeds are on axis
0. Every interval is a 95 % percentile bootstrap with its own generator: equal data, equal numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

RESAMPLES = 2000
CONFIDENCE = 0.95
LAST = 10  # evaluations that make up a final score
# With fewer seeds even complete separation of two methods is no evidence: by chance 2 of the 20 orders of
# 3 + 3 runs (10 %) separate them, 2 of the 70 of 4 + 4 (3 %).
MIN_SEEDS = 4

Statistic = Callable[..., np.ndarray]


def iqm(values: np.ndarray, axis: int = 0) -> np.ndarray:
    """Mean of what is left when the lowest and the highest quarter (rounded down) are cut off."""
    values = np.sort(np.asarray(values, dtype=np.float64), axis=axis)
    count = values.shape[axis]
    cut = count // 4
    return np.take(values, range(cut, count - cut), axis=axis).mean(axis=axis)


def mean(values: np.ndarray, axis: int = 0) -> np.ndarray:
    return np.asarray(values, dtype=np.float64).mean(axis=axis)


def resample(strata: Sequence[np.ndarray], resamples: int = RESAMPLES, seed: int = 0) -> list[np.ndarray]:
    """Stratified bootstrap: each stratum is drawn from with replacement on its own.

    Returns:
        For a stratum of shape (n, ...) an array of shape (resamples, n, ...).
    """
    rng = np.random.default_rng(seed)
    drawn = []
    for stratum in strata:
        stratum = np.asarray(stratum, dtype=np.float64)
        drawn.append(stratum[rng.integers(len(stratum), size=(resamples, len(stratum)))])
    return drawn


def interval(
    strata: Sequence[np.ndarray], statistic: Statistic, confidence: float = CONFIDENCE
) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper end of the interval of `statistic(*strata, axis=...)`.

    Args:
        strata: samples that are resampled independently, seeds on axis 0.
        statistic: takes the (resampled) strata and the axis of their seeds.
    """
    values = statistic(*resample(strata), axis=1)
    tail = (1 - confidence) / 2
    lower, upper = np.quantile(values, [tail, 1 - tail], axis=0)
    return lower, upper


def iqm_interval(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The 95 % interval of the interquartile mean of each column, much faster than `interval`.

    A resample of sorted values is told by how often it takes each rank; its interquartile mean is a weighted
    sum of the ranks. The columns share their draws of ranks, so one matrix product does them all.
    """
    values = np.sort(np.asarray(values, dtype=np.float64), axis=0)
    weights = _rank_weights(len(values))
    tail = (1 - CONFIDENCE) / 2
    lower, upper = np.quantile(weights @ values, [tail, 1 - tail], axis=0)
    return lower, upper


@functools.cache
def _rank_weights(count: int) -> np.ndarray:
    """For each resample the weight of each rank in its interquartile mean, shape (resamples, count)."""
    (ranks,) = resample([np.arange(count)])
    taken = (ranks[:, :, None] == np.arange(count)).sum(axis=1)
    last = taken.cumsum(axis=1)  # in the sorted resample a rank has the places from last - taken to last
    cut = count // 4
    kept = np.clip(last, cut, count - cut) - np.clip(last - taken, cut, count - cut)
    return kept / (count - 2 * cut)


def improvement(x: np.ndarray, y: np.ndarray, axis: int = 0) -> np.ndarray:
    """Probability that a run of x scores higher than one of y, a tie counts half: Mann-Whitney's U / nm."""
    x = np.expand_dims(np.asarray(x, dtype=np.float64), axis + 1)
    y = np.expand_dims(np.asarray(y, dtype=np.float64), axis)
    return ((x > y) + 0.5 * (x == y)).mean(axis=(axis, axis + 1))


def mean_improvement(*pairs: np.ndarray, axis: int = 0) -> np.ndarray:
    """Probability of improvement averaged over tasks; the arguments are x and y of each task in turn."""
    return np.mean([improvement(x, y, axis) for x, y in zip(pairs[::2], pairs[1::2], strict=True)], axis=0)


def profile(values: np.ndarray, thresholds: np.ndarray, axis: int = 0) -> np.ndarray:
    """Performance profile: for each threshold the share of runs that score more."""
    values = np.asarray(values, dtype=np.float64)
    return (values[..., None] > thresholds).mean(axis=axis)


def final(curves: np.ndarray) -> np.ndarray:
    """Final score of each run: the mean of its last ten evaluations. Curves are (seeds, evaluations)."""
    return np.asarray(curves, dtype=np.float64)[:, -LAST:].mean(axis=1)


def over_training(curves: np.ndarray) -> np.ndarray:
    """Mean of all evaluations of each run: the area under its learning curve, so higher is faster."""
    return np.asarray(curves, dtype=np.float64).mean(axis=1)


def solved(curves: np.ndarray) -> np.ndarray:
    """1 for each run whose success rate over the last ten evaluations is above one half, else 0."""
    return (final(curves) > 0.5).astype(np.float64)


def steps_to(curves: np.ndarray, steps: np.ndarray, threshold: float) -> np.ndarray:
    """Step of the first evaluation that reaches the threshold, infinity for a run that never does."""
    reached = np.asarray(curves) >= threshold
    return np.where(reached.any(axis=1), np.asarray(steps, dtype=np.float64)[reached.argmax(axis=1)], np.inf)
