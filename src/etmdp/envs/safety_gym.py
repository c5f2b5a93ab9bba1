"""PointGoal and CarGoal of safety-gymnasium, through one adapter for its six-value interface."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np

from etmdp import rendering

ROBOTS = ("Point", "Car")
CAMERA = "fixedfar"  # sees the whole arena


class SafetyGoal(gym.Env):
    """SafetyPointGoal1-v0 or SafetyCarGoal1-v0: drive to one goal after the other, round the hazards.

    Reward: the way made towards the goal, and 1 for reaching it. Cost: 1 for each step that ends in a hazard.
    Observations, rewards and costs are safety-gymnasium's own; its limit of 1000 steps is left to the caller.

    Args:
        robot: Point or Car.
        fast: take the fast path (etmdp.envs.safety_gym_fast). Without it the trajectories are the same.
        render_mode: None or "rgb_array".
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012 (Gymnasium's own form)

    def __init__(self, robot: str, fast: bool = True, render_mode: str | None = None) -> None:
        rendering.prepare(render_mode)
        _import_safety_gymnasium()
        from safety_gymnasium.builder import Builder

        from etmdp.envs.safety_gym_fast import FastBuilder

        builder = FastBuilder if fast else Builder
        self._builder = builder(f"Safety{robot}Goal1-v0", {"agent_name": robot}, render_mode)
        self._builder.task.num_steps = np.inf
        # safety-gymnasium's first reset leaves the solver's warm start other than all later ones do.
        self._warm = fast
        self._camera: rendering.Camera | None = None
        self.render_mode = render_mode
        self.observation_space, self.action_space = (
            self._builder.observation_space,
            self._builder.action_space,
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        if not self._warm:
            self._builder.reset(seed=0)
            self._warm = True
        if seed is None:
            seed = int(self.np_random.integers(2**32))
        observation, _ = self._builder.reset(seed=seed % 2**32)
        return observation, {"cost": 0.0}

    def step(self, action):
        observation, reward, cost, terminated, truncated, _ = self._builder.step(
            np.asarray(action, np.float64)
        )
        return observation, float(reward), terminated, truncated, {"cost": float(cost > 0)}

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        if self.render_mode is None:
            return None
        task = self._builder.task
        if self._camera is None or self._camera.model is not task.model:
            self._camera = rendering.Camera(task.model, task.data, CAMERA, all_groups=True)
        return self._camera.frame()

    def close(self) -> None:
        self._camera = None


@functools.cache
def _import_safety_gymnasium() -> None:
    with _array_defaults_allowed():
        import safety_gymnasium  # noqa: F401


@contextlib.contextmanager
def _array_defaults_allowed() -> Iterator[None]:
    """Lets dataclasses have arrays as defaults, as safety-gymnasium's do; Python 3.11 refuses them."""
    original = dataclasses.dataclass

    def dataclass(cls: type | None = None, /, **options: Any) -> Any:
        if cls is None:
            return functools.partial(dataclass, **options)
        for name in inspect.get_annotations(cls):
            default = cls.__dict__.get(name)
            if isinstance(default, np.ndarray):
                setattr(cls, name, dataclasses.field(default_factory=default.copy))
        return original(cls, **options)

    dataclasses.dataclass = dataclass
    try:
        yield
    finally:
        dataclasses.dataclass = original


def register() -> None:
    """Adds etmdp/PointGoal-v0 and etmdp/CarGoal-v0 to Gymnasium."""
    for robot in ROBOTS:
        gym.register(f"etmdp/{robot}Goal-v0", "etmdp.envs.safety_gym:SafetyGoal", kwargs={"robot": robot})
