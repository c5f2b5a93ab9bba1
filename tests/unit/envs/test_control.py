"""The adapter for dm_control: its TimeStep by hand, its trajectories against the suite itself."""

from collections import OrderedDict

import dm_env
import numpy as np
import pytest
from dm_env import specs

from etmdp.envs import control


class Scripted:
    """A dm_env environment that plays a list of TimeSteps."""

    def __init__(self, *steps):
        self.steps = list(steps)
        self.task = self
        self.random = np.random.RandomState(0)

    def control_timestep(self):
        return 0.02

    def action_spec(self):
        return specs.BoundedArray((2,), np.float64, minimum=-2.0, maximum=[1.0, 3.0])

    def observation_spec(self):
        # Deliberately not in alphabetical order.
        return OrderedDict(velocity=specs.Array((2, 2), np.float64), angle=specs.Array((), np.float64))

    def reset(self):
        return dm_env.restart(observe(0.0))

    def step(self, action):
        self.action = action
        return self.steps.pop(0)


def observe(value):
    # In another order than the specification's.
    return {"angle": np.float64(value), "velocity": np.array([[1.0, 2.0], [3.0, 4.0]])}


def test_observations_are_flattened_in_the_order_of_the_specification():
    env = control.DmEnvAdapter(Scripted(dm_env.transition(0.5, observe(7.0))))
    assert env.observation_space.shape == (5,)
    assert env.reset(seed=0)[0].tolist() == [1.0, 2.0, 3.0, 4.0, 0.0]
    observation, reward, terminated, truncated, info = env.step([0.25, -0.5])
    assert observation.tolist() == [1.0, 2.0, 3.0, 4.0, 7.0]
    assert (reward, terminated, truncated, info["cost"]) == (0.5, False, False, 0.0)
    assert env._env.action.tolist() == [0.25, -0.5]


def test_action_bounds_are_the_specification_s():
    space = control.DmEnvAdapter(Scripted()).action_space
    assert (space.low.tolist(), space.high.tolist()) == ([-2.0, -2.0], [1.0, 3.0])


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (dm_env.termination(1.0, observe(0.0)), (True, False)),  # discount 0
        (dm_env.truncation(1.0, observe(0.0)), (False, True)),  # discount 1: a time-out
        (dm_env.truncation(1.0, observe(0.0), discount=0.9), (False, True)),
        (dm_env.transition(1.0, observe(0.0), discount=0.0), (False, False)),  # not the last
    ],
)
def test_only_a_last_step_with_discount_zero_terminates(last, expected):
    env = control.DmEnvAdapter(Scripted(last))
    env.reset(seed=0)
    assert env.step([0.0, 0.0])[2:4] == expected


@pytest.mark.parametrize("task", ["cheetah-run", "finger-turn_hard", "swimmer-swimmer6"])
def test_trajectories_are_the_suite_s(task):
    env = control.make(task)
    env.reset(seed=4)
    from dm_control import suite

    # The seed that the adapter hands on is the first number of its own generator.
    seed = int(np.random.default_rng(np.random.SeedSequence(4)).integers(2**32))
    original = suite.load(*task.split("-"), task_kwargs={"random": seed})
    expected = original.reset()
    observation, _ = env.reset(seed=4)
    rng = np.random.default_rng(0)
    for _ in range(50):
        assert np.array_equal(
            observation, np.concatenate([np.ravel(v) for v in expected.observation.values()])
        )
        action = rng.uniform(env.action_space.low, env.action_space.high)
        observation, reward, *_ = env.step(action)
        expected = original.step(action)
        assert reward == expected.reward


def test_every_task_has_a_thousand_steps_in_the_suite_and_no_limit_here():
    from dm_control import suite

    for task in control.TASKS:
        assert round(suite.load(*task.split("-"))._step_limit) == 1000
        assert control.make(task)._env._step_limit == float("inf")
    assert len(control.TASKS) == 16
