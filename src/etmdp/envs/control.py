"""Sixteen unconstrained tasks of the DeepMind Control Suite, through one adapter for its TimeStep."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from etmdp import rendering

TASKS = (
    "acrobot-swingup",
    "ball_in_cup-catch",
    "cartpole-balance",
    "cartpole-swingup",
    "cheetah-run",
    "finger-spin",
    "finger-turn_hard",
    "fish-swim",
    "hopper-hop",
    "hopper-stand",
    "humanoid-walk",
    "pendulum-swingup",
    "reacher-hard",
    "swimmer-swimmer6",
    "walker-run",
    "walker-walk",
)


class DmEnvAdapter(gym.Env):
    """A dm_control environment as a Gymnasium one, without cost (`info["cost"]` is 0).

    A last TimeStep with discount 0 is a termination, any other last one a truncation. Observations are
    flattened and joined in the order in which the task lists them.

    Args:
        env: the environment to adapt.
        render_mode: None or "rgb_array".
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 50}  # noqa: RUF012 (Gymnasium's own form)

    def __init__(self, env: Any, render_mode: str | None = None) -> None:
        self._env = env
        self._camera: rendering.Camera | None = None
        self.render_mode = render_mode
        self.metadata = self.metadata | {"render_fps": round(1 / env.control_timestep())}
        action = env.action_spec()
        self.action_space = gym.spaces.Box(
            np.broadcast_to(action.minimum, action.shape).astype(np.float32),
            np.broadcast_to(action.maximum, action.shape).astype(np.float32),
            dtype=np.float32,
        )
        self._names = list(env.observation_spec())
        size = sum(int(np.prod(spec.shape)) for spec in env.observation_spec().values())
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (size,), np.float64)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        # The task draws its first state from a generator of its own.
        self._env.task.random.seed(int(self.np_random.integers(2**32)))
        return self._flatten(self._env.reset().observation), {"cost": 0.0}

    def step(self, action):
        step = self._env.step(np.asarray(action, dtype=np.float64))
        terminated = bool(step.last() and step.discount == 0.0)
        truncated = bool(step.last() and not terminated)
        return self._flatten(step.observation), float(step.reward), terminated, truncated, {"cost": 0.0}

    def _flatten(self, observation: Mapping[str, Any]) -> np.ndarray:
        return np.concatenate([np.ravel(observation[name]) for name in self._names], dtype=np.float64)

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        if self.render_mode is None:
            return None
        if self._camera is None:
            physics = self._env.physics
            # The suite's first camera is the one that its authors chose for the task.
            self._camera = rendering.Camera(
                physics.model.ptr, physics.data.ptr, physics.model.id2name(0, "camera")
            )
        return self._camera.frame()

    def close(self) -> None:
        self._camera = None
        self._env.close()


def make(task: str, render_mode: str | None = None) -> DmEnvAdapter:
    """A task by its name in TASKS, without the suite's own time limit."""
    rendering.prepare(render_mode)
    from absl import logging

    logging.set_verbosity(logging.WARNING)  # dm_control tells which libraries it has found
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for a screen, whether or not anything is to be drawn
        from dm_control import suite

    _mend_named_indexing()
    domain, name = task.split("-")
    return DmEnvAdapter(suite.load(domain, name, task_kwargs={"time_limit": float("inf")}), render_mode)


@functools.cache
def _mend_named_indexing() -> None:
    """Lets dm_control 1.0.11 index by lists of names under numpy 2, which takes `copy=False` literally."""
    from dm_control.mujoco import index

    convert = index.RegularNamedAxis.convert_key_item
    index.RegularNamedAxis.convert_key_item = lambda axis, key: convert(
        axis, np.array(key) if isinstance(key, list) else key
    )


def register() -> None:
    """Adds the tasks to Gymnasium: ball_in_cup-catch as etmdp/BallInCupCatch-v0 and so on."""
    for task in TASKS:
        name = "".join(part.capitalize() for part in task.replace("-", "_").split("_"))
        gym.register(f"etmdp/{name}-v0", "etmdp.envs.control:make", kwargs={"task": task})
