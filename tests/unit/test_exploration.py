"""Exploration noise has the statistics it claims."""

import numpy as np
import pytest

from etmdp.exploration import Exploration


def noise_of(correlation, steps=20000):
    exploration = Exploration(1, correlation, scale=1.0, warmup_steps=0, seed=0)
    return np.array([exploration._next()[0] for _ in range(steps)])


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_unit_variance_and_the_given_correlation(correlation):
    noise = noise_of(correlation)
    assert noise.std() == pytest.approx(1, abs=0.06)
    assert np.corrcoef(noise[:-1], noise[1:])[0, 1] == pytest.approx(correlation, abs=0.03)


def test_the_variance_is_the_same_from_the_first_step_of_an_episode():
    exploration = Exploration(1, 0.9, scale=1.0, warmup_steps=0, seed=0)
    first = []
    for _ in range(5000):
        exploration.start()
        first.append(exploration._next()[0])
    assert np.std(first) == pytest.approx(1, abs=0.05)
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 0.05  # episodes are independent


def test_actions_stay_in_the_box():
    exploration = Exploration(3, 0.9, scale=5.0, warmup_steps=0, warmup_scale=4.0, seed=0)
    assert all(np.abs(exploration.warmup_action()).max() <= 1 for _ in range(100))
    assert all(np.abs(exploration.perturb(np.ones(3))).max() <= 1 for _ in range(100))


def test_white_noise_warms_up_uniformly():
    exploration = Exploration(1, 0.0, scale=0.1, warmup_steps=0, seed=0)
    actions = np.array([exploration.warmup_action()[0] for _ in range(5000)])
    assert np.histogram(actions, 10, (-1, 1))[0] == pytest.approx(500, abs=90)
    around = np.array([exploration.perturb(np.zeros(1))[0] for _ in range(5000)])
    assert around.std() == pytest.approx(0.1, abs=0.01)
