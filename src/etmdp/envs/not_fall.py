"""Hopper, Walker and Humanoid that must not fall: falling is a cost and nothing but a cost."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from etmdp import rendering

ALIVE_BONUS = {"Hopper": 1.0, "Walker2d": 1.0, "Humanoid": 5.0}  # Gymnasium's `healthy_reward`


class NotFall(gym.Env):
    """A walking robot of Gymnasium (version 4) that runs on after a fall.

    Cost: 1 for each step that ends in a state which the robot's own test calls unhealthy.
    Reward: Gymnasium's without the alive bonus.

    Args:
        robot: Hopper, Walker2d or Humanoid.
        alive_bonus: add Gymnasium's bonus to every healthy step, for evaluation, so that returns compare with
            those published; `info["training_reward"]` is then the reward without it.
        render_mode: None or "rgb_array".
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 125}  # noqa: RUF012 (Gymnasium's own form)

    def __init__(self, robot: str, alive_bonus: bool = False, render_mode: str | None = None) -> None:
        rendering.prepare(render_mode)
        self._robot: Any = gym.make(
            f"{robot}-v4",
            terminate_when_unhealthy=False,
            healthy_reward=0.0,
            disable_env_checker=True,
        ).unwrapped
        self._bonus = ALIVE_BONUS[robot] if alive_bonus else 0.0
        self._camera: rendering.Camera | None = None
        self.render_mode = render_mode
        self.metadata = self.metadata | {"render_fps": self._robot.metadata["render_fps"]}
        self.observation_space, self.action_space = self._robot.observation_space, self._robot.action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        observation, _ = self._robot.reset(seed=seed)
        return observation, {"cost": 0.0}

    def step(self, action):
        observation, reward, _, _, _ = self._robot.step(action)
        reward, healthy = float(reward), bool(self._robot.is_healthy)
        info = {"cost": float(not healthy)}
        if self._bonus:
            info["training_reward"] = reward
            reward += self._bonus * healthy
        return observation, reward, False, False, info

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        if self.render_mode is None:
            return None
        if self._camera is None:
            self._camera = rendering.Camera(self._robot.model, self._robot.data, "track")
        return self._camera.frame()

    def close(self) -> None:
        self._camera = None


def register() -> None:
    """Adds etmdp/HopperNotFall-v0, etmdp/WalkerNotFall-v0 and etmdp/HumanoidNotFall-v0 to Gymnasium."""
    for robot in ALIVE_BONUS:
        name = f"etmdp/{robot.removesuffix('2d')}NotFall-v0"
        gym.register(name, "etmdp.envs.not_fall:NotFall", kwargs={"robot": robot})
