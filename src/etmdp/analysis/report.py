"""The report: one HTML file with everything in it, which opens from the disk and needs no network."""

from __future__ import annotations

import base64
import json
import re
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from etmdp.analysis import claims, stats, style, tables, verdicts
from etmdp.analysis.curves import Curves
from etmdp.analysis.load import Setting, plan, read_numbers, read_record, read_run
from etmdp.analysis.metrics import main_metric
from etmdp.errors import UserError
from etmdp.grid import Grid, Run
from etmdp.status import look

HERE = Path(__file__).parent
THRESHOLDS = 41  # of a performance profile
STATES = ("done", "running", "failed", "waiting", "damaged")


def build(
    grid: Grid, trained: dict[str, Curves], exact: dict[str, pd.DataFrame], results: Path, runs: Path
) -> str:
    """The page.

    Args:
        trained: curves by experiment, as far as they exist; exact: exact results likewise.
        results: folder of this scale's results, for its figures.
        runs: folder of the runs; logs and checkpoints are its neighbours.
    """
    judged = claims.judge_all(grid, trained, exact)
    seconds = _seconds(grid, runs)
    data = {
        "experiments": [_experiment(grid, name, table, seconds) for name, table in trained.items()],
        "metrics": {name: list(words) for name, words in style.METRICS.items()},
        "randomStart": style.RANDOM_START,
    }
    states = {run.name: _state(runs, run) for run in grid.runs()}
    counts = {state: sum(s == state for s, _ in states.values()) for state in STATES}
    parts = {
        "scale": escape(grid.scale),
        "tally": escape(verdicts.tally(judged)),
        "runs_tally": escape(", ".join(f"{n} {state}" for state, n in counts.items() if n) or "none planned"),
        "claims": _claims(judged),
        "claims_note": escape(verdicts.NOTE),
        "experiments": "\n".join(
            _section(grid, name, trained.get(name), results) for name in grid.experiments
        ),
        "runs": _runs(grid, states, runs),
        "data": _script_json(data),
        "css": (HERE / "vendor" / "uPlot.min.css").read_text() + (HERE / "report.css").read_text(),
        "uplot": (HERE / "vendor" / "uPlot.iife.min.js").read_text(),
        "js": (HERE / "report.js").read_text(),
    }
    # One pass: what is filled in is never looked at again, whatever it contains.
    template = (HERE / "report.html").read_text()
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)


def _script_json(data: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _experiment(grid: Grid, name: str, table: Curves, seconds: dict[str, np.ndarray]) -> dict[str, Any]:
    """What the explorer draws: curves with intervals, by steps, wall time and training cost, and profiles."""
    known = [*style.METRICS, *(style.RANDOM_START + metric for metric in style.METRICS)]
    metrics = [metric for metric in known if metric in table.table and table.table[metric].notna().all()]
    main = main_metric(grid, name)
    settings = table.present(plan(grid, name))
    return {
        "name": name,
        "title": grid.params["experiments"][name]["title"],
        "main": main,
        "metrics": metrics,
        "settings": [
            _setting(grid, table, setting, metrics, seconds)
            | {"profile": _profile(table, setting, settings, main)}
            for setting in settings
        ],
    }


def _setting(
    grid: Grid, table: Curves, setting: Setting, metrics: list[str], seconds: dict[str, np.ndarray]
) -> dict[str, Any]:
    look = style.style(setting.method, setting.variant, grid.params)
    steps = table.steps(setting.key)
    times = [seconds[run.name] for run in setting.runs if len(seconds.get(run.name, ())) == len(steps)]
    series = {}
    for metric in metrics:
        values = table.values(setting.key, metric)
        lower, upper = stats.iqm_interval(values) if len(values) > 1 else (None, None)
        series[metric] = [_numbers(stats.iqm(values)), _numbers(lower), _numbers(upper)]
    return {
        "env": setting.env,
        "envName": style.env_name(setting.env),
        "label": setting.label,
        "colour": look.colour,
        "dashes": look.dashes,
        "seeds": table.seeds(setting.key),
        "planned": len(setting.runs),
        "budget": setting.runs[0].config.budget,
        "x": {
            "step": _numbers(steps),
            "seconds": _numbers(np.mean(times, axis=0)) if times else None,
            "train_cost": _numbers(table.values(setting.key, "train_cost").mean(axis=0)),
        },
        "y": series,
    }


def _profile(table: Curves, setting: Setting, settings: list[Setting], metric: str) -> list:
    """Thresholds, share of runs above them and its interval; the thresholds are those of the environment."""
    finals = {s.key: stats.final(table.values(s.key, metric)) for s in settings if s.env == setting.env}
    every = np.concatenate(list(finals.values()))
    low, high = every.min(), every.max()
    room = 0.05 * (high - low) or 1.0
    thresholds = np.linspace(low - room, high + room, THRESHOLDS)

    def statistic(values: np.ndarray, axis: int = 0) -> np.ndarray:
        return stats.profile(values, thresholds, axis)

    final = finals[setting.key]
    lower, upper = stats.interval([final], statistic) if len(final) > 1 else (None, None)
    return [_numbers(thresholds), _numbers(statistic(final)), _numbers(lower), _numbers(upper)]


def _numbers(values: np.ndarray | None) -> list[float] | None:
    """Four significant digits: enough for a screen, and a page small enough for git."""
    return None if values is None else [float(f"{value:.4g}") for value in values]


def _seconds(grid: Grid, runs: Path) -> dict[str, np.ndarray]:
    """Training wall time at each evaluation of each run that has it."""
    times = {}
    for run in grid.runs():
        path = runs / run.name / "timing.csv"
        if path.exists():
            times[run.name] = read_numbers(path, "train the run again")["seconds"].to_numpy()
    return times


def _claims(judged: list[verdicts.Verdict]) -> str:
    """What was judged with its evidence, then what was not run with the reason."""
    rows = []
    for v in (each for each in judged if each.verdict != "not run"):
        checks = "".join(
            f"<tr><td>{escape(c.text)}</td><td>{escape(c.measure)}</td><td>{escape(c.status)}</td>"
            f"<td>{escape(_effect(c))}</td><td>{escape(c.why)}</td></tr>"
            for c in v.checks
        )
        head = "<tr><th>check</th><th>measure</th><th>status</th><th>effect [95 %]</th><th>why</th></tr>"
        evidence = (
            f"<details><summary>{len(v.checks)} checks</summary>{_table(head + checks)}</details>"
            if checks
            else ""
        )
        where = escape(v.experiment)
        link = f'<a href="#experiment-{where}">{where}</a>'
        rows.append(
            f'<article class="claim" id="claim-{escape(v.id)}"><h3>{escape(v.id)}. {escape(v.says)}</h3>'
            f'<p><strong class="verdict {escape(v.verdict.replace(" ", "-"))}">{escape(v.verdict)}</strong> '
            f"{escape(v.why)}.</p><p class=facts>{_facts(v)} Evidence: {link}.</p>{evidence}</article>"
        )
    waiting = "".join(
        f'<tr id="claim-{escape(v.id)}">'
        f"<td>{escape(v.id)}</td><td>{escape(v.says)}</td><td>{escape(v.why)}</td></tr>"
        for v in judged
        if v.verdict == "not run"
    )
    if waiting:
        head = (
            "<tr><th scope=col>claim</th><th scope=col>the paper says</th><th scope=col>why not run</th></tr>"
        )
        rows.append(f"<h3>Not run</h3>{_table(head + waiting)}")
    return "\n".join(rows)


def _effect(result: verdicts.Result) -> str:
    return "-" if result.effect is None else f"{verdicts.effect(result)} {verdicts.span(result)}"


def _facts(v: verdicts.Verdict) -> str:
    text = f"Effect {verdicts.effect(v)}, 95 % interval {verdicts.span(v)}: {v.measure}."
    if v.seeds:
        text += f" {v.seeds} seeds, {v.steps} steps, scale {v.scale}."
    return escape(text)


def _section(grid: Grid, name: str, table: Curves | None, results: Path) -> str:
    title = grid.params["experiments"][name]["title"]
    picture = results / "figures" / f"{name}.png"
    parts = [f'<section id="experiment-{escape(name)}"><h3>{escape(title)}</h3>']
    if picture.exists():
        data = base64.b64encode(picture.read_bytes()).decode()
        parts.append(
            f'<figure><img alt="{escape(title)}" loading=lazy src="data:image/png;base64,{data}"></figure>'
        )
    if table is not None:
        _, sheet = tables.make(grid, name, table)
        parts.append(f"<p>{escape(' '.join(sheet.intro))}</p>")
        for heading, (names, *lines) in sheet.parts:
            head = "".join(f"<th scope=col>{escape(cell)}</th>" for cell in names)
            body = "".join(
                "<tr>" + "".join(f"<td>{escape(c)}</td>" for c in line) + "</tr>" for line in lines
            )
            parts.append(
                (f"<h4>{escape(heading)}</h4>" if heading else "") + _table(f"<tr>{head}</tr>{body}")
            )
        parts.append(f"<p class=note>{escape(sheet.note)}</p>")
    elif grid.runs(name):
        parts.append("<p>This experiment has no results yet.</p>")
    return "".join([*parts, "</section>"])


def _table(rows: str) -> str:
    return f'<div class=scroll tabindex=0 role=region aria-label="table"><table>{rows}</table></div>'


def _state(runs: Path, run: Run) -> tuple[str, str]:
    """The state of a run and what is to say about it."""
    if not (runs / run.name / "progress.csv").exists():  # the file that is written last
        status = look(run, runs.parent)
        return status.state, status.reason
    try:
        read_run(runs, run)
    except UserError as error:
        return "damaged", str(error)
    return "done", ""


def _runs(grid: Grid, states: dict[str, tuple[str, str]], runs: Path) -> str:
    """One entry per setting: the states of its seeds, their records, and the config they share."""
    groups: dict[str, list[Run]] = {}
    for run in grid.runs():
        groups.setdefault(run.name.rsplit("/", 1)[0], []).append(run)
    entries = []
    for name, members in groups.items():
        lines = []
        for run in members:
            state, why = states[run.name]
            record = read_record(runs, run).get("record", {}) if state == "done" else {}
            facts = ", ".join(f"{key}: {json.dumps(value)}" for key, value in record.items())
            lines.append(
                f"<tr><td>{run.config.seed}</td><td>{escape(state)}</td><td>{escape(facts or why)}</td></tr>"
            )
        counts = [(state, sum(states[run.name][0] == state for run in members)) for state in STATES]
        summary = ", ".join(f"{count} {state}" for state, count in counts if count)
        config = json.dumps({k: v for k, v in vars(members[0].config).items() if k != "seed"}, indent=1)
        head = "<tr><th>seed</th><th>state</th><th>record</th></tr>"
        entries.append(
            f"<details class=run><summary><code>{escape(name)}</code> {escape(summary)}</summary>"
            f"{_table(head + ''.join(lines))}<pre tabindex=0>{escape(config)}</pre></details>"
        )
    return "\n".join(entries)
