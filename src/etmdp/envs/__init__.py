"""The environments, registered with Gymnasium under `etmdp/`, and the wrappers that make an ET-MDP of any."""

from __future__ import annotations

import difflib
import importlib
import re
from typing import Any

import gymnasium as gym

from etmdp.config import RunConfig
from etmdp.envs import control, maze, not_fall, point_gather, safety_gym
from etmdp.envs.early_termination import BudgetTimeObservation, EarlyTermination
from etmdp.errors import UserError

__all__ = ["BudgetTimeObservation", "EarlyTermination", "make", "make_evaluation_env", "make_training_env"]

# Names only: a simulator is imported when one of its environments is made.
for _family in (control, maze, not_fall, point_gather, safety_gym):
    _family.register()


def make(env_id: str, horizon: int, **kwargs: Any) -> gym.Env:
    """An environment by Gymnasium id or as `module:attribute`, cut off (truncated) after `horizon` steps."""
    if re.fullmatch(r"[\w.]+:[A-Za-z_]\w*", env_id):
        module, attribute = env_id.split(":")
        try:
            maker = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise UserError(
                f"cannot import the environment {env_id} ({error}); is its module on PYTHONPATH?"
            ) from error
        return gym.wrappers.TimeLimit(_call(env_id, maker, kwargs), horizon)
    try:
        # The checker wraps every step; tests run Gymnasium's full checker instead.
        return _call(
            env_id,
            gym.make,
            {"id": env_id, "max_episode_steps": horizon, "disable_env_checker": True, **kwargs},
        )
    except gym.error.UnregisteredEnv as error:
        near = difflib.get_close_matches(env_id, gym.registry, 3)
        hint = f"did you mean {' or '.join(near)}?" if near else "give a Gymnasium id or module:attribute"
        raise UserError(f"there is no environment {env_id!r}; {hint}") from error


def _call(env_id: str, maker: Any, kwargs: dict[str, Any]) -> gym.Env:
    try:
        return maker(**kwargs)
    except TypeError as error:
        raise UserError(f"the environment {env_id} does not take these arguments: {error}") from error
    except (ImportError, gym.error.DependencyNotInstalled) as error:
        raise UserError(f"the environment {env_id} needs a package that is not installed: {error}") from error


def make_training_env(config: RunConfig) -> gym.Env:
    """What a run learns in: the environment, time-limited, as an ET-MDP if the method has early termination."""
    env = _base(config, config.env_kwargs)
    if config.early_termination is not None:
        et = config.early_termination
        env = EarlyTermination(env, et["budget"], et["end_reward"])
    return env


def make_evaluation_env(config: RunConfig, name: str = "main", render_mode: str | None = None) -> gym.Env:
    """What a policy is judged in: full-length episodes, nothing ends at a violation."""
    kwargs = config.env_kwargs | config.evaluation[name].get("kwargs", {})
    return _base(config, kwargs | ({"render_mode": render_mode} if render_mode else {}))


def _base(config: RunConfig, kwargs: dict[str, Any]) -> gym.Env:
    env = make(config.env_id, config.horizon, **kwargs)
    if config.early_termination is not None and config.early_termination["cost_aware"]:
        env = BudgetTimeObservation(env, config.budget, config.horizon)
    return env
