"""Learning-curve figures: one panel per environment, one row per metric, interquartile mean and interval."""

from __future__ import annotations

import io
import logging
from textwrap import wrap
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import FuncFormatter

from etmdp.analysis import stats
from etmdp.analysis.curves import Curves
from etmdp.analysis.load import Setting, environments_left_out, plan
from etmdp.analysis.style import RANDOM_START, Style, env_name, metric_name, metric_unit, style
from etmdp.errors import UserError
from etmdp.grid import Grid

DPI = 150
COLUMNS = 4  # panels side by side
LETTERS = 16  # of the caption, per inch
# Neither file holds a date or a program version: the same numbers give the same bytes.
METADATA = {
    "pdf": {"CreationDate": None, "ModDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}
RC: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e5e5e5",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.handlelength": 3.5,
    "pdf.fonttype": 42,
}


def learning_curves(grid: Grid, experiment: str, table: Curves) -> Figure:
    """The figure of an experiment with runs."""
    settings = table.present(plan(grid, experiment))
    metrics = grid.params["experiments"][experiment].get("metrics", ["et_return"])
    envs = list(dict.fromkeys(setting.env for setting in settings))
    columns = min(len(envs), COLUMNS)
    bands = -(-len(envs) // columns)  # many environments take several rows per metric
    with mpl.rc_context(RC):
        width, height = max(6.4, 2.9 * columns + 0.6), 2.5 * len(metrics) * bands + 1.5
        figure = Figure((width, height), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(bands * len(metrics), columns, squeeze=False)
        handles: dict[str, Artist] = {}
        for number, env in enumerate(envs):
            band, column = divmod(number, columns)
            here = [setting for setting in settings if setting.env == env]
            for row, metric in enumerate(metrics):
                panel = panels[band * len(metrics) + row, column]
                handles |= _panel(panel, grid, table, here, metric)
                panel.set_title(env_name(env) if row == 0 else "")
                panel.set_ylabel(f"{metric_name(metric)}\n({metric_unit(metric)})" if column == 0 else "")
                panel.set_xlabel("environment steps (thousands)" if row == len(metrics) - 1 else "")
                panel.xaxis.set_major_formatter(FuncFormatter(lambda step, _: f"{step / 1000:g}"))
        for panel in panels[-len(metrics) :, (len(envs) - 1) % columns + 1 :].flat:
            panel.set_axis_off()
        figure.suptitle(grid.params["experiments"][experiment]["title"], fontsize=11)
        fitting = max(2, int(width / 2.2))
        legend = figure.legend(
            handles.values(), handles.keys(), loc="outside lower center", ncols=min(len(handles), fitting)
        )
        lines = [
            part for line in caption(grid, experiment, table) for part in wrap(line, int(width * LETTERS))
        ]
        legend.set_title("\n".join(lines), FontProperties(size=7))
        legend.get_title().set_color("#555555")
    return figure


def _panel(panel, grid: Grid, table: Curves, settings: list[Setting], metric: str) -> dict[str, Artist]:
    """Draws the lines of one panel; returns one legend handle per label."""
    handles = {}
    alpha = 0.15 if len(settings) <= 5 else 0.08
    for setting in settings:
        values = table.values(setting.key, metric)
        steps = table.steps(setting.key)
        look = style(setting.method, setting.variant, grid.params)
        (line,) = panel.plot(steps, stats.iqm(values), label=setting.label, **_line(look, len(steps)))
        if len(values) > 1:
            panel.fill_between(steps, *stats.iqm_interval(values), color=look.colour, alpha=alpha, lw=0)
        name = setting.label
        if len(values) < len(setting.runs):
            name += f" ({len(values)} of {len(setting.runs)} seeds)"
        handles[name] = line
    if metric.removeprefix(RANDOM_START) == "cost":
        budget = settings[0].runs[0].config.budget
        handles["budget C"] = panel.axhline(budget, color="#333333", linewidth=0.9, dashes=(1, 3))
    panel.set_xlim(left=0)
    return handles


def _line(look: Style, points: int) -> dict[str, object]:
    return {
        "color": look.colour,
        "linewidth": 1.6,
        "marker": look.marker,
        "markersize": 5,
        "markeredgecolor": "white",
        "markeredgewidth": 0.4,
        "markevery": max(1, points // 8),
        **({"dashes": look.dashes} if look.dashes else {"linestyle": "-"}),
    }


def caption(grid: Grid, experiment: str, table: Curves) -> list[str]:
    """What a reader must know to trust the figure: scale, seeds, steps, what is missing, what is drawn."""
    settings = plan(grid, experiment)
    counts = [table.seeds(setting.key) for setting in settings]
    lengths = sorted({run.config.steps for setting in settings for run in setting.runs})
    wanted = grid.params["experiments"][experiment].get("seeds")
    parts = [f"Scale {grid.scale}", _span(counts, "seed"), _span(lengths, "step")]
    if wanted and min(counts) < wanted:
        parts[1] += f" (full experiment: {wanted})"
    absent = [
        f"{setting.env}/{setting.label}" for setting, count in zip(settings, counts, strict=True) if not count
    ]
    left_out = environments_left_out(grid, experiment)
    drawn = "line: interquartile mean; band: 95 % bootstrap interval"
    if max(counts) == 1:
        drawn = "one run, no interval"
    elif max(counts) < stats.MIN_SEEDS:
        drawn += f" (fewer than {stats.MIN_SEEDS} seeds: no evidence)"
    lines = [" · ".join([*parts, drawn])]
    if left_out:
        lines.append("not run at this scale: " + ", ".join(map(env_name, left_out)))
    if absent:
        lines.append("missing: " + ", ".join(absent))
    return lines


def _span(numbers: list[int], noun: str) -> str:
    low, high = min(numbers), max(numbers)
    text = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f"{text} {noun}{'' if high == 1 else 's'}".replace(",", " ")


def save(figure: Figure, kind: str) -> bytes:
    """The bytes of a figure as `pdf` or `png`."""
    if kind not in METADATA:
        raise UserError(f"a figure is written as {' or '.join(METADATA)}, not as {kind!r}")
    logging.getLogger("fontTools").setLevel(logging.WARNING)  # it tells of every glyph that it embeds
    buffer = io.BytesIO()
    with mpl.rc_context(RC):
        figure.savefig(buffer, format=kind, dpi=DPI, metadata=METADATA[kind])
    return buffer.getvalue()
