"""Judging a policy: full-length episodes of the CMDP, and what the ET-MDP would have seen of them.

Up to its violation an episode of the ET-MDP is the very same episode as in the CMDP (same seed, same policy), so one
roll-out gives both evaluations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from etmdp.agents.policy import Policy
from etmdp.envs.early_termination import step_cost


def evaluate(
    policy: Policy,
    env: gym.Env,
    episodes: int = 10,
    budget: float = 0.0,
    seed: int = 0,
    on_step: Callable[[gym.Env, dict[str, Any]], None] | None = None,
) -> dict[str, float]:
    """Runs a deterministic policy for whole episodes.

    Args:
        policy: what to judge; its history is restarted.
        env: an environment with `info["cost"]` that does not end at a violation.
        episodes: how many; episode i is reset with `seed + i`.
        budget: C. An episode violates it when its cost exceeds C.
        on_step: called after each reset and step with the environment and the episode's totals so far.

    Returns:
        Means over episodes. CMDP: `return`, `cost`, `violation_rate` (share of episodes with cost > C). ET-MDP:
        `et_return` and `et_length` (up to and including the violating step, without r_e). `success_rate`: the share of
        episodes with a step of `info["success"]` and no violation at all.
    """
    results = [_episode(policy, env, budget, seed + i, on_step) for i in range(episodes)]
    return {key: float(np.mean([result[key] for result in results])) for key in results[0]}


def _episode(policy: Policy, env: gym.Env, budget: float, seed: int, on_step: Any) -> dict[str, float]:
    total = dict.fromkeys(("return", "cost", "violation_rate", "et_return", "et_length", "success_rate"), 0.0)
    policy.start()
    observation, _ = env.reset(seed=seed)
    succeeded = over = False
    if on_step:
        on_step(env, total)
    while not over:
        action = policy(observation)
        following, reward, terminated, truncated, info = env.step(action)
        # Where evaluation pays another reward than training, a context policy must see the one it knows.
        policy.record(observation, action, info.get("training_reward", reward))
        observation, over = following, terminated or truncated
        if total["cost"] <= budget:
            total["et_return"] += float(reward)
            total["et_length"] += 1
        total["return"] += float(reward)
        total["cost"] += step_cost(env, info)
        succeeded = succeeded or bool(info.get("success", False))
        total["violation_rate"] = float(total["cost"] > budget)
        total["success_rate"] = float(succeeded and total["cost"] <= budget)
        if on_step:
            on_step(env, total)
    return total
