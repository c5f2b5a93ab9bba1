"""Tables, as CSV for programs and Markdown to read: final scores, and the successes of Table 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from etmdp.analysis import stats
from etmdp.analysis.curves import Curves
from etmdp.analysis.load import Setting, environments_left_out, plan
from etmdp.analysis.style import env_name, lower_is_better, metric_name
from etmdp.grid import Grid

SCORES_NOTE = """\
Final score of a run: the mean of its last ten evaluations. Given are the interquartile mean (IQM) over seeds
with its 95 % bootstrap interval, the probability that a run scores better than one of {reference} (ties count
half), and the median step at which runs get halfway from the first evaluation to the environment's best final
score ("-": half of the runs or more never do, or lower is better)."""
SUCCESS_NOTE = """\
A run succeeds if its deterministic policy reaches the goal without touching lava in more than half of its
last ten evaluations. In brackets: the mean success rate over those evaluations and all seeds."""


@dataclass(frozen=True)
class Sheet:
    """A table to read: sentences before it, parts (a heading and lines of cells, first the names), a note."""

    title: str
    intro: list[str]
    parts: list[tuple[str, list[list[str]]]]
    note: str


def make(grid: Grid, experiment: str, table: Curves) -> tuple[pd.DataFrame, Sheet]:
    """The table that the experiment's `outputs` ask for, as data and to read."""
    if "success_table" in grid.params["experiments"][experiment]["outputs"]:
        rows = successes(grid, experiment, table)
        return rows, _success_sheet(grid, experiment, rows)
    rows = final_scores(grid, experiment, table)
    return rows, _scores_sheet(grid, experiment, rows, table)


def final_scores(grid: Grid, experiment: str, table: Curves) -> pd.DataFrame:
    """One row per metric, environment and setting."""
    settings = table.present(plan(grid, experiment))
    metrics = grid.params["experiments"][experiment].get("metrics", ["et_return"])
    rows = []
    for metric in metrics:
        for env in dict.fromkeys(setting.env for setting in settings):
            here = [setting for setting in settings if setting.env == env]
            finals = {s.key: stats.final(table.values(s.key, metric)) for s in here}
            half = _halfway(table, here, metric, finals)
            for setting in here:
                rows.append(
                    {"metric": metric}
                    | _score(table, setting, metric, finals[setting.key])
                    | {
                        "better_than_reference": _better(finals, setting, reference(settings), metric),
                        "steps_to_half": _steps_to(table, setting, metric, half),
                    }
                )
    return pd.DataFrame(rows)


def reference(settings: list[Setting]) -> Setting:
    """What the others are compared with: TD3 where it takes part, else the first setting."""
    return next((s for s in settings if (s.method, s.variant) == ("td3", "main")), settings[0])


def _score(table: Curves, setting: Setting, metric: str, final: np.ndarray) -> dict[str, object]:
    lower, upper = stats.iqm_interval(final) if len(final) > 1 else (np.nan, np.nan)
    return {
        "env": setting.env,
        "method": setting.method,
        "variant": setting.variant,
        "label": setting.label,
        "iqm": float(stats.iqm(final)),
        "lower": float(lower),
        "upper": float(upper),
        "mean": float(final.mean()),
        "std": float(final.std(ddof=1)) if len(final) > 1 else np.nan,
        "seeds": len(final),
        "seeds_planned": len(setting.runs),
        "steps": int(table.steps(setting.key)[-1]),
    }


def _better(finals: dict, setting: Setting, against: Setting, metric: str) -> float:
    other = finals.get((setting.env, against.method, against.variant))
    if other is None or (setting.method, setting.variant) == (against.method, against.variant):
        return np.nan
    probability = float(stats.improvement(finals[setting.key], other))
    return 1 - probability if lower_is_better(metric) else probability


def _halfway(table: Curves, settings: list[Setting], metric: str, finals: dict) -> float:
    if lower_is_better(metric):
        return np.nan
    first = np.concatenate([table.values(s.key, metric)[:, 0] for s in settings])
    best = max(float(stats.iqm(final)) for final in finals.values())
    start = float(stats.iqm(first))
    return (start + best) / 2 if best > start else np.nan


def _steps_to(table: Curves, setting: Setting, metric: str, threshold: float) -> float:
    if np.isnan(threshold):
        return np.nan
    steps = stats.steps_to(table.values(setting.key, metric), table.steps(setting.key), threshold)
    middle = float(np.median(steps))
    return middle if np.isfinite(middle) else np.nan


def successes(grid: Grid, experiment: str, table: Curves) -> pd.DataFrame:
    """Table 1: one row per environment and setting."""
    rows = []
    for setting in table.present(plan(grid, experiment)):
        rate = table.values(setting.key, "success_rate")
        rows.append(
            {
                "env": setting.env,
                "method": setting.method,
                "variant": setting.variant,
                "label": setting.label,
                "successes": int(stats.solved(rate).sum()),
                "seeds": len(rate),
                "seeds_planned": len(setting.runs),
                "mean_success_rate": float(stats.final(rate).mean()),
                "steps": int(table.steps(setting.key)[-1]),
            }
        )
    return pd.DataFrame(rows)


def _success_sheet(grid: Grid, experiment: str, rows: pd.DataFrame) -> Sheet:
    envs = list(dict.fromkeys(rows["env"]))
    lines = [["method", *map(env_name, envs)]]
    for label in dict.fromkeys(rows["label"]):
        cells = [label]
        for env in envs:
            cell = rows[(rows["env"] == env) & (rows["label"] == label)]
            text = "not run" if cell.empty else _success_cell(cell.iloc[0])
            cells.append(text)
        lines.append(cells)
    return _sheet(grid, experiment, rows, [("", lines)], SUCCESS_NOTE)


def _success_cell(row: pd.Series) -> str:
    short = f", {row['seeds']} of {row['seeds_planned']} seeds" if row["seeds"] < row["seeds_planned"] else ""
    return f"{row['successes']}/{row['seeds']} ({row['mean_success_rate']:.2f}{short})"


def _scores_sheet(grid: Grid, experiment: str, rows: pd.DataFrame, table: Curves) -> Sheet:
    settings = table.present(plan(grid, experiment))
    against = reference(settings).label
    parts = []
    for metric in dict.fromkeys(rows["metric"]):
        lines = [["environment", "method", "IQM", "95 % interval", "mean ± sd", f"P(better than {against})",
                  "steps to half", "seeds"]]  # fmt: skip
        for _, row in rows[rows["metric"] == metric].iterrows():
            seeds = str(row["seeds"])
            seeds += f" of {row['seeds_planned']}" if row["seeds"] < row["seeds_planned"] else ""
            lines.append(
                [
                    env_name(row["env"]),
                    row["label"],
                    number(row["iqm"]),
                    "-" if np.isnan(row["lower"]) else f"[{number(row['lower'])}, {number(row['upper'])}]",
                    number(row["mean"]) + ("" if np.isnan(row["std"]) else f" ± {number(row['std'])}"),
                    "-" if np.isnan(row["better_than_reference"]) else f"{row['better_than_reference']:.2f}",
                    "-" if np.isnan(row["steps_to_half"]) else f"{row['steps_to_half']:.0f}",
                    seeds,
                ]
            )
        better = "lower is better" if lower_is_better(metric) else "higher is better"
        parts.append((f"{metric_name(metric)} ({better})", lines))
        overall = _overall(table, settings, metric)
        if overall:
            parts.append(
                ("", [["over all environments", f"P(better than {against})", "95 % interval"], *overall])
            )
    return _sheet(grid, experiment, rows, parts, SCORES_NOTE.format(reference=against))


def _overall(table: Curves, settings: list[Setting], metric: str) -> list[list[str]]:
    """Probability of improvement over the reference, averaged over the environments that both were run on."""
    finals = {s.key: stats.final(table.values(s.key, metric)) for s in settings}
    against, lines = reference(settings), []
    for method, variant, label in dict.fromkeys((s.method, s.variant, s.label) for s in settings):
        keys = [key for key in finals if key[1:] == (method, variant)]
        others = [(key[0], against.method, against.variant) for key in keys]
        pairs = [(finals[a], finals[b]) for a, b in zip(keys, others, strict=True) if b in finals]
        pairs = [(y, x) if lower_is_better(metric) else (x, y) for x, y in pairs]
        if len(pairs) > 1 and label != against.label:
            strata = [scores for pair in pairs for scores in pair]
            lower, upper = stats.interval(strata, stats.mean_improvement)
            mean = float(stats.mean_improvement(*strata))
            lines.append(
                [f"{label} ({len(pairs)} environments)", f"{mean:.2f}", f"[{lower:.2f}, {upper:.2f}]"]
            )
    return lines


def number(value: float) -> str:
    """Four significant digits, thousands whole."""
    value += 0.0  # no "-0"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _sheet(grid: Grid, experiment: str, rows: pd.DataFrame, parts: list, note: str) -> Sheet:
    steps = " / ".join(str(step) for step in sorted(set(rows["steps"])))
    intro = [f"Scale {grid.scale}, last evaluation at step {steps}."]
    if max(rows["seeds"]) < stats.MIN_SEEDS:
        intro.append(f"Fewer than {stats.MIN_SEEDS} seeds: the intervals are no evidence.")
    left_out = environments_left_out(grid, experiment)
    if left_out:
        intro.append(f"Not run at this scale: {', '.join(map(env_name, left_out))}.")
    return Sheet(grid.params["experiments"][experiment]["title"], intro, parts, note)


def to_markdown(sheet: Sheet) -> str:
    text = [f"# {sheet.title}", "", *sheet.intro, ""]
    for heading, (names, *lines) in sheet.parts:
        text += [f"## {heading}", ""] if heading else []
        text += [markdown_row(names), markdown_row(["---"] * len(names)), *map(markdown_row, lines), ""]
    return "\n".join([*text, sheet.note, ""])


def markdown_row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
