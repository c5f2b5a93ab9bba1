"""PointGather as in the code of Constrained Policy Optimization: gather apples, leave the bombs alone."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np

ARENA = 6.0  # the point stays within [-ARENA, ARENA]^2
APPLES, BOMBS = 2, 8
APPLE_REWARD, BOMB_REWARD, BOMB_COST = 10.0, -1.0, 1.0
CATCH_DISTANCE = 1.0  # an object nearer than this is caught
SPEED, TURN = 1.0, 0.25  # the most a step moves and turns (radians)
# Objects lie on distinct even integers from -6 to 4 per axis, none at the origin, where the point starts.
CELLS = [(float(x), float(y)) for x in range(-6, 6, 2) for y in range(-6, 6, 2) if x * x + y * y >= 4]
BINS, SENSOR_RANGE, SENSOR_SPAN = (
    10,
    6.0,
    math.pi,
)  # the sensor looks ahead: half a turn, in ten bins per kind
START_NOISE, VELOCITY_NOISE = 0.01, 0.1  # standard deviations of the first pose and of the velocities
BODY_HEIGHT = 0.5
PIXELS_PER_UNIT = 32


class PointGather(gym.Env):
    """A point that turns and drives among 2 apples (reward 10) and 8 bombs (reward -1, cost 1).

    Action: how far to drive, in [-1, 1], and by how much to turn first, in [-0.25, 0.25].
    Observation, 29 numbers: pose (x, y, heading), velocities (the point is put from place to place, so they
    keep their random first values, as in the original), body position (x, y, height), and what the sensor
    sees: ten bins for apples, ten for bombs, from right to left; a bin reads 1 - d/6 for the nearest object
    in it. An episode ends when nothing is left to catch.

    One difference: the original measures from the body's centre of mass, 0.04 ahead of the pose.

    Args:
        render_mode: None or "rgb_array".
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 5}  # noqa: RUF012 (Gymnasium's own form)

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        limits = np.array([SPEED, TURN], dtype=np.float32)
        self.action_space = gym.spaces.Box(-limits, limits, dtype=np.float32)
        place, free = [ARENA, ARENA], np.inf
        low = [-ARENA, -ARENA, -free, -free, -free, -free, -ARENA, -ARENA, 0.0] + [0.0] * 2 * BINS
        high = [*place, free, free, free, free, *place, 1.0] + [1.0] * 2 * BINS
        self.observation_space = gym.spaces.Box(
            np.array(low, np.float32), np.array(high, np.float32), dtype=np.float32
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        places = self.np_random.permutation(len(CELLS))[: APPLES + BOMBS].tolist()
        self.apples = [CELLS[i] for i in places[:APPLES]]
        self.bombs = [CELLS[i] for i in places[APPLES:]]
        noise = self.np_random.standard_normal(6)
        self.x, self.y, self.heading = (START_NOISE * noise[:3]).tolist()
        self._velocities = (VELOCITY_NOISE * noise[3:]).tolist()
        return self._observation(), {"cost": 0.0}

    def step(self, action):
        drive, turn = float(action[0]), float(action[1])
        self.heading += min(max(turn, -TURN), TURN)
        drive = min(max(drive, -SPEED), SPEED)
        self.x = min(max(self.x + drive * math.cos(self.heading), -ARENA), ARENA)
        self.y = min(max(self.y + drive * math.sin(self.heading), -ARENA), ARENA)
        apples, bombs = len(self.apples), len(self.bombs)
        self.apples = self._beyond_reach(self.apples)
        self.bombs = self._beyond_reach(self.bombs)
        apples, bombs = apples - len(self.apples), bombs - len(self.bombs)  # caught in this step
        reward = APPLE_REWARD * apples + BOMB_REWARD * bombs
        terminated = not (self.apples or self.bombs)
        return self._observation(), reward, terminated, False, {"cost": BOMB_COST * bombs}

    def _beyond_reach(self, objects: list[tuple[float, float]]) -> list[tuple[float, float]]:
        x, y = self.x, self.y
        return [(ox, oy) for ox, oy in objects if (ox - x) ** 2 + (oy - y) ** 2 >= CATCH_DISTANCE**2]

    def _observation(self) -> np.ndarray:
        x, y = self.x, self.y
        own = [x, y, self.heading, *self._velocities, x, y, BODY_HEIGHT]
        return np.array(own + self._sense(self.apples) + self._sense(self.bombs), dtype=np.float32)

    def _sense(self, objects: list[tuple[float, float]]) -> list[float]:
        """The readings of the bins for one kind of object."""
        readings = [0.0] * BINS
        x, y, heading = self.x, self.y, self.heading
        for ox, oy in objects:
            dx, dy = ox - x, oy - y
            distance = math.sqrt(dx * dx + dy * dy)
            if distance > SENSOR_RANGE:
                continue
            angle = (math.atan2(dy, dx) - heading) % math.tau  # counter-clockwise from straight ahead
            if angle > math.pi:
                angle -= math.tau
            if abs(angle) > SENSOR_SPAN / 2:
                continue
            # The far end of the span belongs to the last bin.
            bin_ = min(int((angle + SENSOR_SPAN / 2) / (SENSOR_SPAN / BINS)), BINS - 1)
            readings[bin_] = max(readings[bin_], 1.0 - distance / SENSOR_RANGE)
        return readings

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        if self.render_mode is None:
            return None
        from PIL import Image, ImageDraw

        side = int((2 * ARENA + 1) * PIXELS_PER_UNIT)  # half a unit of margin
        image = Image.new("RGB", (side, side), "white")
        draw = ImageDraw.Draw(image)

        def pixel(x: float, y: float) -> tuple[float, float]:  # y upwards
            return (x + ARENA + 0.5) * PIXELS_PER_UNIT, (ARENA + 0.5 - y) * PIXELS_PER_UNIT

        def disc(x: float, y: float, radius: float, colour: str) -> None:
            cx, cy, r = *pixel(x, y), radius * PIXELS_PER_UNIT
            draw.ellipse([cx - r, cy - r, cx + r, cy + r], fill=colour)

        draw.rectangle([*pixel(-ARENA, ARENA), *pixel(ARENA, -ARENA)], outline="#7f8fa6", width=2)
        for x, y in self.apples:
            disc(x, y, 0.35, "#2a9d5c")
        for x, y in self.bombs:
            disc(x, y, 0.35, "#e8820c")
        disc(self.x, self.y, 0.3, "#c1121f")
        nose = self.x + 0.7 * math.cos(self.heading), self.y + 0.7 * math.sin(self.heading)
        draw.line([pixel(self.x, self.y), pixel(*nose)], fill="#c1121f", width=5)
        return np.asarray(image)


def register() -> None:
    """Adds etmdp/PointGather-v0 to Gymnasium."""
    gym.register("etmdp/PointGather-v0", "etmdp.envs.point_gather:PointGather")
