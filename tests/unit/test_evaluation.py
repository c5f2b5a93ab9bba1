"""Both evaluations from one roll-out, checked against episodes that really end at the violation."""

import gymnasium as gym
import numpy as np
import pytest

from etmdp import EarlyTermination
from etmdp.evaluation import evaluate


class Corridor(gym.Env):
    """Ten steps; pays the step's number; costs as scripted; success at step 5."""

    observation_space = gym.spaces.Box(0, 10, (1,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, costs):
        self.costs = costs

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.time += 1
        info = {"cost": float(self.costs.get(self.time, 0)), "success": self.time == 5}
        return np.full(1, self.time, np.float32), float(self.time), False, self.time == 10, info


class Still:
    """A policy that stands still and notes what it is told."""

    def __init__(self):
        self.starts, self.records = 0, []

    def start(self):
        self.starts += 1

    def __call__(self, observation):
        return np.zeros(1, np.float32)

    def record(self, observation, action, reward):
        self.records.append((float(observation[0]), reward))


@pytest.mark.parametrize(
    ("costs", "budget", "expected"),
    [
        (
            {},
            0,
            {
                "return": 55,
                "cost": 0,
                "violation_rate": 0,
                "et_return": 55,
                "et_length": 10,
                "success_rate": 1,
            },
        ),
        (
            {3: 1},
            0,
            {"return": 55, "cost": 1, "violation_rate": 1, "et_return": 6, "et_length": 3, "success_rate": 0},
        ),
        (
            {3: 1},
            1,
            {
                "return": 55,
                "cost": 1,
                "violation_rate": 0,
                "et_return": 55,
                "et_length": 10,
                "success_rate": 1,
            },
        ),
        ({3: 1, 7: 1}, 1, {"et_return": 28, "et_length": 7, "cost": 2, "success_rate": 0}),
        ({10: 2}, 1, {"et_return": 55, "et_length": 10, "violation_rate": 1}),
    ],
)
def test_hand_worked_episodes(costs, budget, expected):
    result = evaluate(Still(), Corridor(costs), episodes=2, budget=budget)
    assert {key: result[key] for key in expected} == expected


@pytest.mark.parametrize("budget", [0, 1, 3])
def test_the_et_evaluation_equals_episodes_that_end_at_the_violation(budget):
    costs = {2: 0.5, 4: 1, 6: 1, 9: 1}
    env = EarlyTermination(Corridor(costs), budget=budget, end_reward=0)
    env.reset(seed=0)
    total, length, over = 0.0, 0, False
    while not over:
        _, reward, terminated, truncated, _ = env.step(np.zeros(1, np.float32))
        total, length, over = total + reward, length + 1, terminated or truncated
    result = evaluate(Still(), Corridor(costs), episodes=1, budget=budget)
    assert (result["et_return"], result["et_length"]) == (total, length)


def test_a_policy_sees_each_step_and_the_reward_it_was_trained_on():
    class Bonus(Corridor):
        def step(self, action):
            observation, reward, *rest, info = super().step(action)
            return observation, reward + 100, *rest, {**info, "training_reward": reward}

    policy = Still()
    result = evaluate(policy, Bonus({}), episodes=1)
    assert policy.starts == 1
    assert policy.records == [(float(t), float(t + 1)) for t in range(10)]
    assert result["return"] == 55 + 1000
