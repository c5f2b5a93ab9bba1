"""Figures that need no training: where a random agent gets to, and what the environments look like."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from etmdp.analysis.figures import RC
from etmdp.analysis.style import env_name
from etmdp.envs import EarlyTermination, make
from etmdp.envs.maze import MazeMap
from etmdp.errors import UserError
from etmdp.exploration import Exploration
from etmdp.grid import Grid

VISITATION_ENV = "nav_easy"  # the paper's diagnostic 2-D navigation
VISITATION_STEPS = 50_000
CELLS_PER_UNIT = 2
MOST = 0.95
COLUMNS = 5  # of the figure of all environments


def visitation(grid: Grid, experiment: str) -> Figure:
    """A map, and the visits of a random agent with correlated noise, without and with early termination."""
    if VISITATION_ENV not in grid.params["environments"]:
        raise UserError(f"environments lacks {VISITATION_ENV}, which the figure {experiment} is about")
    spec = grid.params["environments"][VISITATION_ENV]
    spec = grid.params["families"][spec["family"]] | spec
    noise = grid.params["explorations"][spec["exploration"]]
    free = make(spec["id"], spec["horizon"], **spec.get("kwargs", {}))
    ending = EarlyTermination(free, 0.0, spec["end_reward"])
    maze = free.unwrapped.map  # type: ignore[attr-defined]
    visits = [_visits(env, maze.size, noise) for env in (free, ending)]
    with mpl.rc_context(RC | {"axes.grid": False}):
        figure = Figure((9.6, 4.0), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(1, 3)
        titles = ["The map"] + [
            f"{name}: {_concentration(share):.0%} of the cells\nhave {MOST:.0%} of the visits"
            for name, share in zip(("MDP, lava ignored", "ET-MDP"), visits, strict=True)
        ]
        for panel, title, share in zip(panels, titles, [None, *visits], strict=True):
            if share is not None:
                norm = LogNorm(1 / VISITATION_STEPS, max(v.max() for v in visits))
                extent = (0, maze.size, 0, maze.size)
                image = panel.imshow(share.T, norm=norm, cmap="cividis", origin="lower", extent=extent)
            _draw_map(panel, maze)
            panel.set_title(title, fontsize=9)
        figure.colorbar(image, ax=panels[2], label="share of visits", shrink=0.75)
        figure.suptitle(grid.params["experiments"][experiment]["title"], fontsize=11)
        figure.supxlabel(
            f"Map {env_name(VISITATION_ENV)} · random agent, noise of correlation {noise['correlation']:g} · "
            f"{VISITATION_STEPS // 1000} 000 steps each, cells of {1 / CELLS_PER_UNIT:g} units",
            fontsize=7,
            color="#555555",
        )
    return figure


def _visits(env, size: float, noise: dict) -> np.ndarray:
    """Share of the steps that end in each cell of the square, with the same noise for every environment."""
    source = Exploration(2, seed=0, **noise)
    ends = np.empty((VISITATION_STEPS, 2))
    over = True
    for step in range(VISITATION_STEPS):
        if over:
            env.reset(seed=step)
            source.start()
        ends[step], _, terminated, truncated, _ = env.step(source.warmup_action())
        over = terminated or truncated
    bins = int(size * CELLS_PER_UNIT)
    counts, _, _ = np.histogram2d(ends[:, 0], ends[:, 1], bins=bins, range=[(0.0, size), (0.0, size)])
    return counts / VISITATION_STEPS


def _concentration(share: np.ndarray) -> float:
    """The smallest part of the cells that holds most of the visits."""
    ordered = np.sort(share.ravel())[::-1].cumsum()
    return float((np.searchsorted(ordered, MOST) + 1) / share.size)


def _draw_map(panel, maze: MazeMap) -> None:
    x0, y0, x1, y1 = maze.goal
    panel.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, color="#009e73", zorder=3))
    panel.add_collection(LineCollection(list(maze.lava), colors="#e8820c", linewidths=3, zorder=3))
    panel.plot(*maze.start, "o", color="#c1121f", markersize=6, markeredgecolor="white", zorder=4)
    panel.set(xlim=(0, maze.size), ylim=(0, maze.size), aspect="equal")
    panel.set(xticks=np.linspace(0, maze.size, 5), yticks=np.linspace(0, maze.size, 5))
    for side in ("top", "right"):
        panel.spines[side].set_visible(True)


def environments(grid: Grid, experiment: str) -> Figure:
    """The first frame of each environment of the scale; those with one Gymnasium id share a panel."""
    same: dict[str, list[str]] = {}
    for name in grid.settings.get("environments", grid.params["environments"]):
        same.setdefault(grid.params["environments"][name]["id"], []).append(name)
    rows = -(-len(same) // COLUMNS)
    columns = min(COLUMNS, len(same))
    with mpl.rc_context(RC | {"axes.grid": False}):
        figure = Figure((2.1 * columns, 2.5 * rows + 0.6), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for panel in panels:
            panel.set_axis_off()
        for panel, names in zip(panels, same.values(), strict=False):
            _draw_frame(panel, grid, names[0])
            panel.set_title("\n".join(map(env_name, names)), fontsize=8)
        figure.suptitle(grid.params["experiments"][experiment]["title"], fontsize=11)
        figure.supxlabel(
            "Mazes: the agent is red, lava is orange, the goal is green.", fontsize=7, color="#555555"
        )
    return figure


def _draw_frame(panel, grid: Grid, name: str) -> None:
    spec = grid.params["environments"][name]
    spec = grid.params["families"][spec["family"]] | spec
    try:
        env = make(spec["id"], spec["horizon"], render_mode="rgb_array", **spec.get("kwargs", {}))
        env.reset(seed=0)
        frame: Any = env.render()
        env.close()
    except Exception as error:  # renderers fail in many ways without a display: the figure says so instead
        reason = " ".join(str(error).split())[:90]
        panel.text(
            0.5, 0.5, f"cannot be drawn here:\n{reason}", ha="center", va="center", wrap=True, fontsize=6
        )
        return
    panel.imshow(frame)
    panel.add_patch(
        Rectangle((0, 0), 1, 1, transform=panel.transAxes, fill=False, edgecolor="#999999", linewidth=0.8)
    )
