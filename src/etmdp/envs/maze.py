"""2-D navigation among lava: a point in a square, walls of lava that cost, a goal at the right edge."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import yaml

from etmdp.errors import UserError

MAPS = Path(__file__).parent / "maps"
GOAL_REWARD = 30.0  # each step at the goal
STEP_REWARD = -0.1  # each step elsewhere
PIXELS_PER_UNIT = 24


@dataclass(frozen=True)
class MazeMap:
    """A map as data. Lengths in units of the square; a step moves at most 1 along each axis.

    Attributes:
        size: side of the square.
        lava: line segments, an array of shape (n, 2, 2): two points each.
        goal: rectangle x0, y0, x1, y1.
        start: where episodes start.
    """

    size: float
    lava: np.ndarray
    goal: tuple[float, float, float, float]
    start: tuple[float, float]

    @classmethod
    def load(cls, name: str) -> MazeMap:
        """A map of this package by its name, or a user's own by the path of its YAML file."""
        path = Path(name) if name.endswith((".yaml", ".yml")) else MAPS / f"{name}.yaml"
        try:
            data = yaml.safe_load(path.read_text())
            lava = np.array(data["lava"], dtype=np.float64).reshape(-1, 2, 2)
            (x0, y0, x1, y1), (x, y) = data["goal"], data["start"]
            goal = (float(x0), float(y0), float(x1), float(y1))
            return cls(float(data["size"]), lava, goal, (float(x), float(y)))
        except FileNotFoundError as error:
            known = ", ".join(sorted(p.stem for p in MAPS.glob("*.yaml")))
            raise UserError(
                f"there is no maze map {name!r}; the package has {known}, or name a YAML file"
            ) from error
        except (yaml.YAMLError, TypeError, KeyError, ValueError) as error:
            raise UserError(
                f"the maze map {path} is not right ({error!r}); it needs size, start [x, y], goal [x0, y0, x1, y1] "
                "and lava, a list of segments [x0, y0, x1, y1]"
            ) from error


class Maze(gym.Env):
    """The agent sees its coordinates and chooses a displacement in [-1, 1]^2; the square's edge stops it.

    Reward: 30 for each step that ends in the goal, -0.1 otherwise. Cost: 1 for each step whose path touches lava.
    The goal does not end the episode; `info["success"]` tells that the step ended there.

    Args:
        map: a map's name or the path of a YAML file.
        start: "centre" (the map's start) or "random", uniform over the square.
        render_mode: None or "rgb_array".
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 8}  # noqa: RUF012 (Gymnasium's own form)

    def __init__(self, map: str = "maze_1", start: str = "centre", render_mode: str | None = None) -> None:
        if start not in ("centre", "random"):
            raise UserError(f"start is {start!r}; allowed: centre, random")
        self.map = MazeMap.load(map)
        self.start = start
        self.render_mode = render_mode
        self.observation_space = gym.spaces.Box(0.0, self.map.size, (2,), np.float32)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
        # Plain floats: for a handful of segments they are faster than arrays.
        self._lava = [tuple(segment.ravel().tolist()) for segment in self.map.lava]
        self._x, self._y = self.map.start

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self._x, self._y = self.map.start
        if self.start == "random":
            self._x, self._y = self.np_random.uniform(0.0, self.map.size, 2).tolist()
        self._path = [(self._x, self._y)]
        return self._observation(), {"cost": 0.0, "success": False}

    def step(self, action):
        dx, dy = (min(max(float(a), -1.0), 1.0) for a in action)
        x, y, size = self._x, self._y, self.map.size
        self._x, self._y = min(max(x + dx, 0.0), size), min(max(y + dy, 0.0), size)
        cost = float(any(_touch(x, y, self._x, self._y, *segment) for segment in self._lava))
        x0, y0, x1, y1 = self.map.goal
        success = x0 <= self._x <= x1 and y0 <= self._y <= y1
        self._path.append((self._x, self._y))
        reward = GOAL_REWARD if success else STEP_REWARD
        return self._observation(), reward, False, False, {"cost": cost, "success": success}

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        if self.render_mode is None:
            return None
        from PIL import Image, ImageDraw

        def pixels(points):  # y upwards
            return [(px * PIXELS_PER_UNIT, (self.map.size - py) * PIXELS_PER_UNIT) for px, py in points]

        side = int(self.map.size * PIXELS_PER_UNIT)
        image = Image.new("RGB", (side, side), "white")
        draw = ImageDraw.Draw(image)
        x0, y0, x1, y1 = self.map.goal
        draw.rectangle([*pixels([(x0, y1)])[0], *pixels([(x1, y0)])[0]], fill="#2a9d5c")
        for ax, ay, bx, by in self._lava:
            draw.line(pixels([(ax, ay), (bx, by)]), fill="#e8820c", width=6)
        if len(self._path) > 1:
            draw.line(pixels(self._path), fill="#7f8fa6", width=3)
        ((cx, cy),) = pixels([(self._x, self._y)])
        draw.ellipse([cx - 7, cy - 7, cx + 7, cy + 7], fill="#c1121f")
        return np.asarray(image)

    def _observation(self) -> np.ndarray:
        return np.array([self._x, self._y], dtype=np.float32)


def _touch(ax, ay, bx, by, cx, cy, dx, dy) -> bool:
    """Whether the closed segments ab and cd have a point in common."""
    side_c = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
    side_d = (bx - ax) * (dy - ay) - (by - ay) * (dx - ax)
    side_a = (dx - cx) * (ay - cy) - (dy - cy) * (ax - cx)
    side_b = (dx - cx) * (by - cy) - (dy - cy) * (bx - cx)
    if (
        side_c == side_d == side_a == side_b == 0
    ):  # on one line (or no movement): they touch if their boxes do
        return max(min(ax, bx), min(cx, dx)) <= min(max(ax, bx), max(cx, dx)) and max(
            min(ay, by), min(cy, dy)
        ) <= min(max(ay, by), max(cy, dy))
    return side_c * side_d <= 0 and side_a * side_b <= 0


def register() -> None:
    """Adds the maps of this package to Gymnasium: maze_1 as etmdp/Maze1-v0 and so on."""
    for path in MAPS.glob("*.yaml"):
        name = "".join(part.capitalize() for part in path.stem.split("_"))
        gym.register(f"etmdp/{name}-v0", "etmdp.envs.maze:Maze", kwargs={"map": path.stem})
