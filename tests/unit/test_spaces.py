"""Scaling between an environment's units and the agent's."""

import gymnasium as gym
import numpy as np
import pytest

from etmdp.errors import UserError
from etmdp.spaces import Spaces

BIG = np.finfo(np.float32).max


class Bare(gym.Env):
    def __init__(self, observation, action):
        self.observation_space, self.action_space = observation, action


def box(low, high):
    return gym.spaces.Box(np.array(low, np.float32), np.array(high, np.float32))


def test_bounded_coordinates_become_the_unit_box_and_unbounded_ones_pass():
    spaces = Spaces.of(Bare(box([0, -np.inf, -BIG], [16, np.inf, BIG]), box([-2, 0], [2, 10])))
    assert spaces.scale([16, 5, -3]).tolist() == [1, 5, -3]
    assert spaces.scale([4, 0, 0]).tolist() == [-0.5, 0, 0]
    assert spaces.to_env(np.array([0.5, -1])).tolist() == [1, 0]
    assert spaces.to_env(np.array([7, 0])).tolist() == [2, 5]  # never outside the box
    again = Spaces.from_json(spaces.to_json())
    assert again.scale([4, 2, 1]).tolist() == spaces.scale([4, 2, 1]).tolist()


@pytest.mark.parametrize(
    ("observation", "action", "word"),
    [
        (gym.spaces.Dict({"x": box([0], [1])}), box([0], [1]), "FlattenObservation"),
        (gym.spaces.Discrete(4), box([0], [1]), "observation space .* must be a Box"),
        (box([0], [1]), gym.spaces.Discrete(4), "continuous actions"),
        (gym.spaces.Box(0, 1, (2, 2)), box([0], [1]), "must be a vector"),
        (box([0], [1]), box([-np.inf], [1]), "unbounded"),
    ],
)
def test_other_spaces_are_refused_with_a_remedy(observation, action, word):
    with pytest.raises(UserError, match=word):
        Spaces.of(Bare(observation, action))
