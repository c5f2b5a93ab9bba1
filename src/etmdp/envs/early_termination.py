"""The ET-MDP as wrappers for any Gymnasium environment that reports `info["cost"]`."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np

from etmdp.errors import UserError


def step_cost(env: gym.Env, info: dict[str, Any]) -> float:
    """The cost c_t of a step, from its info."""
    if "cost" not in info:
        raise UserError(
            f"{env} reports no cost: its step() must put a number into info['cost'] (0.0 where nothing went wrong)"
        )
    cost = float(info["cost"])
    if not math.isfinite(cost):
        raise UserError(f"{env} reported the cost {cost}; a cost must be a finite number")
    return cost


def _check_budget(budget: float) -> float:
    if not (isinstance(budget, int | float) and 0 <= budget < math.inf):
        raise UserError(f"the budget is {budget!r}, but must be a finite number of at least 0")
    return float(budget)


class EarlyTermination(gym.Wrapper):
    """Ends an episode as soon as its cumulative cost b exceeds the budget C (the paper's ET-MDP).

    The last step keeps its true observation, is `terminated` (its successor is absorbing, nothing is bootstrapped) and
    has the reward r + r_e. A time-out stays what it was: a truncation. `info["cumulative_cost"]` is b.

    Args:
        env: any environment whose `info["cost"]` is the cost of the step.
        budget: C. 0 ends the episode at its first cost: the paper's tightened approximation.
        end_reward: r_e.
    """

    def __init__(self, env: gym.Env, budget: float = 0.0, end_reward: float = -1.0) -> None:
        super().__init__(env)
        self.budget = _check_budget(budget)
        if not math.isfinite(end_reward):
            raise UserError(f"the end reward is {end_reward!r}, but must be a finite number")
        self.end_reward = float(end_reward)
        self._spent = 0.0

    def reset(self, **kwargs):
        observation, info = self.env.reset(**kwargs)
        self._spent = 0.0
        return observation, {**info, "cumulative_cost": 0.0}

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._spent += step_cost(self.env, info)
        violated = self._spent > self.budget
        if violated:
            reward = float(reward) + self.end_reward
            terminated = True
        return observation, reward, terminated, truncated, {**info, "cumulative_cost": self._spent}


class BudgetTimeObservation(gym.Wrapper):
    """Extends the observation by the share of the budget and of the time that is left (the cost-aware ET-MDP).

    Both run from 1 down to 0. With budget 0 the first is 1 until there is any cost.

    Args:
        env: an environment with a vector observation and `info["cost"]`.
        budget: C.
        horizon: steps of an episode.
    """

    def __init__(self, env: gym.Env, budget: float, horizon: int) -> None:
        super().__init__(env)
        space: Any = env.observation_space
        if not (isinstance(space, gym.spaces.Box) and len(space.shape) == 1):
            raise UserError(
                f"the observation space of {env} is {space}, but BudgetTimeObservation needs a vector Box"
            )
        if horizon < 1:
            raise UserError(f"the horizon is {horizon!r}, but must be at least 1")
        self.budget, self.horizon = _check_budget(budget), int(horizon)
        dtype: Any = space.dtype
        extra = np.ones(2, dtype)
        self.observation_space = gym.spaces.Box(
            np.concatenate([space.low, 0 * extra]),
            np.concatenate([space.high, extra]),
            dtype=dtype,
        )
        self._spent, self._time = 0.0, 0

    def reset(self, **kwargs):
        observation, info = self.env.reset(**kwargs)
        self._spent, self._time = 0.0, 0
        return self._extend(observation), info

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._spent += step_cost(self.env, info)
        self._time += 1
        return self._extend(observation), reward, terminated, truncated, info

    def _extend(self, observation: np.ndarray) -> np.ndarray:
        budget_left = 1.0 - self._spent / self.budget if self.budget else float(self._spent == 0)
        time_left = 1.0 - self._time / self.horizon
        extra = np.clip([budget_left, time_left], 0.0, 1.0)
        return np.concatenate([observation, extra]).astype(self.observation_space.dtype)
