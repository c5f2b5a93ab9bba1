"""The ET-MDP wrappers: ends at the violation, true last observation, r + r_e, truncation untouched."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from etmdp import BudgetTimeObservation, EarlyTermination, UserError
from etmdp.envs.maze import Maze


class Counter(gym.Env):
    """Observes the step's number; costs what the action says; pays 1 a step."""

    observation_space = gym.spaces.Box(0, 100, (1,), np.float32)
    action_space = gym.spaces.Box(0, 10, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return np.array([0], np.float32), {}

    def step(self, action):
        self.time += 1
        return np.array([self.time], np.float32), 1.0, False, False, {"cost": float(action[0])}


def play(env, *costs):
    env.reset(seed=0)
    return [env.step(np.array([cost], np.float32)) for cost in costs]


def test_ends_at_the_first_cost_with_the_true_observation_and_the_end_reward():
    quiet, last = play(EarlyTermination(Counter(), budget=0, end_reward=-10), 0, 1)
    assert quiet[1:4] == (1.0, False, False)
    observation, reward, terminated, truncated, info = last
    assert observation.tolist() == [2]  # not the observation of a reset
    assert (reward, terminated, truncated) == (1.0 - 10, True, False)
    assert info["cumulative_cost"] == 1


def test_the_budget_may_be_spent_but_not_exceeded():
    steps = play(EarlyTermination(Counter(), budget=3, end_reward=-1), 1, 2, 0.5)
    assert [s[2] for s in steps] == [False, False, True]
    assert [s[4]["cumulative_cost"] for s in steps] == [1, 3, 3.5]


def test_a_reset_restores_the_budget_also_after_a_time_out():
    env = EarlyTermination(gym.wrappers.TimeLimit(Counter(), 2), budget=2)
    for _ in range(3):  # each episode spends the whole budget and is cut off by time
        steps = play(env, 1, 1)
        assert [s[2:4] for s in steps] == [(False, False), (False, True)]


def test_a_time_out_at_the_violation_is_still_a_termination():
    *_, last = play(EarlyTermination(gym.wrappers.TimeLimit(Counter(), 2)), 0, 1)
    assert last[2:4] == (True, True)  # both flags: agents bootstrap only if it is not terminated


def test_wrapped_environments_pass_the_checker():
    check_env(EarlyTermination(Maze("maze_1", render_mode="rgb_array")), skip_render_check=True)
    check_env(BudgetTimeObservation(Maze("maze_1"), budget=1, horizon=32), skip_render_check=True)


def test_remaining_budget_and_time_are_observed():
    env = BudgetTimeObservation(Counter(), budget=4, horizon=8)
    assert env.reset(seed=0)[0].tolist() == [0, 1, 1]
    observations = [s[0].tolist() for s in play(env, 1, 2, 5)]
    assert observations == [[1, 0.75, 7 / 8], [2, 0.25, 6 / 8], [3, 0, 5 / 8]]
    assert env.reset(seed=0)[0].tolist() == [0, 1, 1]


def test_without_a_budget_the_first_cost_spends_all():
    env = BudgetTimeObservation(Counter(), budget=0, horizon=8)
    assert [s[0][1] for s in play(env, 0, 0.1, 0)] == [1, 0, 0]


class NoCost(Counter):
    def step(self, action):
        return *super().step(action)[:4], {}


def test_an_environment_without_cost_is_told_what_is_missing():
    with pytest.raises(UserError, match=r"info\['cost'\]"):
        play(EarlyTermination(NoCost()), 0)


@pytest.mark.parametrize("cost", [float("nan"), float("inf")])
def test_a_cost_that_is_no_number_is_refused(cost):
    with pytest.raises(UserError, match="finite"):
        play(EarlyTermination(Counter()), cost)


@pytest.mark.parametrize("budget", [-1, float("nan"), float("inf"), "2"])
def test_bad_budgets_are_refused(budget):
    with pytest.raises(UserError, match="budget"):
        EarlyTermination(Counter(), budget=budget)
    with pytest.raises(UserError, match="budget"):
        BudgetTimeObservation(Counter(), budget=budget, horizon=5)


def test_a_dict_observation_cannot_be_extended():
    env = Counter()
    env.observation_space = gym.spaces.Dict({"x": Counter.observation_space})
    with pytest.raises(UserError, match="Box"):
        BudgetTimeObservation(env, budget=1, horizon=5)
