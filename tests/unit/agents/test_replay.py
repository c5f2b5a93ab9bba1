"""The replay's histories, against a queue kept step by step as in the paper's algorithm."""

from collections import deque

import numpy as np
import pytest
import torch

from etmdp.agents.replay import Replay


def fill(replay, episodes, rng, length):
    """Adds random episodes; returns for every row what the paper's algorithm would have stored."""
    expected = []
    for steps in episodes:
        queue = deque([np.zeros(4, np.float32)] * length, maxlen=length)
        state = rng.standard_normal(2).astype(np.float32)
        for age in range(steps):
            action, reward = rng.standard_normal(1).astype(np.float32), np.float32(rng.standard_normal())
            after = rng.standard_normal(2).astype(np.float32)
            before = np.array(queue)
            queue.append(np.concatenate([state, action, [reward]]))
            live = float(age < steps - 1)
            replay.add(state, action, reward, after, live, age)
            expected.append((state, action, reward, after, live, before, np.array(queue)))
            state = after
    return expected


def all_rows(replay):
    """A batch that holds each stored row once, in order of place."""

    original = torch.randint
    torch.randint = lambda n, size, **_: torch.arange(n)
    try:
        return replay.sample(len(replay), None)
    finally:
        torch.randint = original


@pytest.mark.parametrize("length", [1, 3, 7])
def test_histories_are_those_of_the_papers_queue(length):
    replay = Replay(100, 2, 1, length)
    expected = fill(replay, [1, 5, 2, 12], np.random.default_rng(0), length)
    batch = all_rows(replay)
    for row, (state, action, reward, after, live, before, queue) in enumerate(expected):
        assert batch.observation[row].tolist() == state.tolist()
        assert batch.action[row].tolist() == action.tolist()
        assert batch.reward[row].item() == reward
        assert batch.next_observation[row].tolist() == after.tolist()
        assert batch.live[row].item() == live
        np.testing.assert_array_equal(batch.history[row], before)
        np.testing.assert_array_equal(batch.next_history[row], queue)


def test_a_full_ring_keeps_the_newest_rows_and_zeroes_what_it_lost():
    length, capacity = 3, 10
    replay = Replay(capacity, 2, 1, length)
    expected = fill(replay, [6, 4, 9], np.random.default_rng(1), length)
    batch = all_rows(replay)
    newest = expected[-capacity:]
    for number, (state, *_, before, _queue) in enumerate(newest):
        place = (len(expected) - capacity + number) % capacity
        assert batch.observation[place].tolist() == state.tolist()
        kept = before.copy()
        kept[: max(0, length - number)] = 0  # rows before the oldest that is left
        np.testing.assert_array_equal(batch.history[place], kept)


def test_sampling_is_uniform_and_seeded():
    replay = Replay(50, 2, 1)
    fill(replay, [20], np.random.default_rng(2), 1)
    one, two = (replay.sample(4000, torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(one.observation, two.observation)
    _, counts = torch.unique(one.observation[:, 0], return_counts=True)
    assert len(counts) == 20
    assert counts.min() > 120  # 200 expected, standard deviation 14
    assert counts.max() < 280
