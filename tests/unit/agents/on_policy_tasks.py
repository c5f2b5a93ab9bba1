"""Small tasks with known solutions, and what the tests of several agents share."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from etmdp.agents import ALGORITHMS
from etmdp.spaces import Spaces

SHARED = {
    "hidden_sizes": [32, 32],
    "learning_rate": 0.003,
    "batch_size": 400,
    "batch_episodes": 1,
    "minibatch_size": 100,
    "epochs": 10,
    "discount": 0.9,
    "trace": 0.95,
    "initial_log_std": -0.5,
}
PPO = SHARED | {"clip": 0.2, "target_kl": 0.02, "entropy": 0.0, "gradient_norm": 0.5}
TRPO = SHARED | {"max_kl": 0.01, "damping": 0.1, "cg_iterations": 10, "line_search_trials": 15}
HYPER_PARAMETERS: dict[str, dict[str, Any]] = {
    "ppo": PPO,
    "ppo_lagrangian": PPO | {"budget": 5.0, "multiplier_rate": 0.3, "largest_multiplier": 100.0},
    "trpo": TRPO,
    "cpo": TRPO | {"budget": 5.0},
}


class Hill(gym.Env):
    """A point on a line, at 0 first, moving by at most 0.2 a step, within [0, 2]; 20 steps.

    Reward is its place x, cost what x exceeds 1 by. Without a constraint: go to 2, return 31, cost 13.
    With a budget C <= 13: five steps up to 1, which give 3, and 15 steps that give 1 each, plus C however it
    is spent: the best return is 18 + C.
    """

    steps = 20

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(0.0, 2.0, (1,), np.float32)
        self.action_space = gym.spaces.Box(-0.2, 0.2, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.time = 0.0, 0
        return np.array([self.x], np.float32), {"cost": 0.0}

    def step(self, action):
        self.x = min(max(self.x + float(action[0]), 0.0), 2.0)
        self.time += 1
        cost = max(self.x - 1.0, 0.0)
        return np.array([self.x], np.float32), self.x, False, self.time == self.steps, {"cost": cost}


class Unbounded(Hill):
    """The same task with an observation that has no bounds, in a foreign unit."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (1,), np.float32)

    def reset(self, **kwargs):
        observation, info = super().reset(**kwargs)
        return 500 + 1000 * observation, info

    def step(self, action):
        observation, *rest = super().step(action)
        return 500 + 1000 * observation, *rest


def make_agent(name: str, env: gym.Env, seed: int = 0, **changes: Any):
    return ALGORITHMS[name](Spaces.of(env), {}, seed, "cpu", **HYPER_PARAMETERS[name] | changes)


def play(agent, env: gym.Env, episodes: int, first: int = 0) -> list[tuple[float, float]]:
    """Trains for so many episodes; the return and the cost of each."""
    results = []
    for episode in range(first, first + episodes):
        observation, _ = env.reset(seed=episode)
        agent.start_episode()
        total = spent = 0.0
        over = False
        while not over:
            observation, reward, terminated, truncated, info = env.step(agent.act(observation))
            agent.observe(reward, info["cost"], observation, terminated, truncated)
            total, spent, over = total + reward, spent + info["cost"], terminated or truncated
        results.append((total, spent))
    return results
