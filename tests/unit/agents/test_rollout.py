"""Batches of whole episodes, and GAE against its definition."""

import numpy as np
import pytest

from etmdp.agents.rollout import Rollout, gae


def test_gae_is_the_discounted_sum_of_temporal_differences():
    rng = np.random.default_rng(0)
    ends, discount, trace = [4, 5, 12], 0.9, 0.7
    rewards, values, last = rng.normal(size=12).tolist(), rng.normal(size=12), rng.normal(size=3)
    got = gae(rewards, values, last, ends, discount, trace)
    for episode, end in enumerate(ends):
        start = ends[episode - 1] if episode else 0
        v = [*values[start:end], last[episode]]
        deltas = [rewards[start + k] + discount * v[k + 1] - v[k] for k in range(end - start)]
        for t in range(end - start):
            direct = sum((discount * trace) ** k * delta for k, delta in enumerate(deltas[t:]))
            assert got[start + t] == pytest.approx(direct)


def test_gae_with_trace_one_is_the_return_less_the_value():
    rewards, values = [1.0, 2.0, 4.0], np.array([10.0, 20.0, 30.0])
    got = gae(rewards, values, np.array([100.0]), [3], 0.5, 1.0)
    # 1 + 2/2 + 4/4 + 100/8 = 15.5;  2 + 4/2 + 100/4 = 29;  4 + 100/2 = 54
    assert got == pytest.approx([5.5, 9.0, 24.0])


def test_gae_with_trace_zero_is_one_temporal_difference():
    got = gae([1.0, 2.0], np.array([10.0, 20.0]), np.array([0.0]), [2], 0.5, 0.0)
    assert got == pytest.approx([1 + 10 - 10, 2 - 20])


def test_episode_sums_and_round_trip():
    rollout = Rollout()
    for cost in (1.0, 0.0, 2.0):
        rollout.add(np.ones(2, np.float32), np.zeros(1, np.float32), 0.5, cost)
    rollout.end_episode(np.full(2, 7, np.float32), terminated=True)
    rollout.add(np.ones(2, np.float32), np.zeros(1, np.float32), 0.5, 5.0)
    rollout.end_episode(np.full(2, 8, np.float32), terminated=False)
    assert rollout.episode_sums(rollout.costs).tolist() == [3.0, 5.0]
    assert rollout.live == [0.0, 1.0]
    again = Rollout.of(rollout.arrays())
    assert again.ends == [3, 4]
    assert again.rewards == rollout.rewards
    assert all(isinstance(reward, float) for reward in again.rewards)
    np.testing.assert_array_equal(np.stack(again.last_observations), np.stack(rollout.last_observations))
    assert vars(Rollout.of(Rollout().arrays())) == vars(Rollout())
