"""Judges the paper's claims (rules.py) on an experiment's curves, in three-valued logic.

A check holds (+1) if its 95 % interval lies above 0, fails (-1) if it lies below, and is open (0) if the
interval includes 0, if there are too few seeds, or if a run it needs is not there. "Any" is the maximum and
"all" the minimum; a claim with a part missing can be refuted but never reproduced.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from etmdp.analysis import stats
from etmdp.analysis.curves import Curves
from etmdp.analysis.load import plan
from etmdp.analysis.rules import ALIVE_BONUS, CLAIMS, Cell, Check, Claim
from etmdp.analysis.stats import MIN_SEEDS, Statistic
from etmdp.analysis.style import metric_name
from etmdp.analysis.verdicts import Result, Verdict
from etmdp.errors import UserError
from etmdp.grid import Grid

HOLDS, OPEN, FAILS = 1, 0, -1
STATUS = {HOLDS: "holds", OPEN: "open", FAILS: "fails"}
SCORES = {"final": stats.final, "over_training": stats.over_training, "solved": stats.solved}
SCORE_WORDS = {
    "final": "final",
    "over_training": "mean over training",
    "solved": "share of runs that succeed",
}


def judge_all(grid: Grid, curves: Mapping[str, Curves], exact: Mapping[str, pd.DataFrame]) -> list[Verdict]:
    """Judges every claim.

    Args:
        curves: by experiment, as far as they exist.
        exact: tables of exact results (`statement`, `instance`, `holds`) by experiment, as far as they exist.
    """
    return [judge(claim, grid, exact if claim.statement else curves) for claim in CLAIMS]


def judge(claim: Claim, grid: Grid, results: Mapping[str, Any]) -> Verdict:
    """Judges one claim on the results of its experiment: curves, or exact results for a theorem."""
    name = claim.experiment
    head: dict[str, Any] = {"id": claim.id, "says": claim.says, "experiment": name, "scale": grid.scale}
    if name not in grid.params["experiments"]:
        return Verdict(**head, verdict="not run", why=f"params.yaml has no experiment {name}")
    if name not in grid.experiments:
        return Verdict(
            **head, verdict="not run", why=f"the experiment {name} is off at the scale {grid.scale}"
        )
    if name not in results:
        return Verdict(**head, verdict="not run", why=f"the experiment {name} has no results yet")
    if claim.statement is not None:
        return Verdict(**head, **_exact(claim.statement, results[name]))
    data: Curves = results[name]
    settings = {Cell(*setting.key): setting for setting in plan(grid, name)}
    counts = {cell: data.seeds(setting.key) for cell, setting in settings.items()}
    comparisons = sum(map(len, claim.requirements))
    checks = [[_check(c, comparisons, data, settings, counts) for c in group] for group in claim.requirements]
    cells = list(dict.fromkeys(cell for group in claim.requirements for c in group for _, cell in c.terms))
    present = [cell for cell in cells if counts.get(cell)]
    missing = [cell for cell in cells if not counts.get(cell)]
    return Verdict(
        **head,
        **_combine(claim, checks, missing),
        present=[_path(cell) for cell in present],
        missing=[_path(cell) for cell in missing],
        checks=[result for group in checks for result in group],
    )


def _check(check: Check, comparisons: int, table: Curves, settings: dict, counts: dict) -> Result:
    measure = f"{metric_name(check.metric)}, {SCORE_WORDS[check.score]}"
    cells = [cell for _, cell in check.terms]
    missing = [_path(cell) for cell in cells if not counts.get(cell)]
    if missing:
        return Result(check.text, measure, "missing", f"no runs of {', '.join(missing)}")
    scores = [SCORES[check.score](_curves(table, cell, check.metric)) for cell in cells]
    level = settings[cells[0]].runs[0].config.budget if check.level == "budget" else float(check.level)
    statistic = _statistic(check, level)
    effect = float(statistic(*scores))
    fewest, planned = min(map(len, scores)), min(len(settings[cell].runs) for cell in cells)
    steps = min(int(table.steps((c.env, c.method, c.variant))[-1]) for c in cells)
    two = [weight for weight, _ in check.terms] in ([1, -1], [-1, 1])
    x, y = (scores[0], scores[-1]) if check.terms[0][0] > 0 else (scores[-1], scores[0])
    numbers: dict[str, Any] = {
        "effect": effect,
        "improvement": float(stats.improvement(x, y)) if two else None,
        "seeds": fewest,
        "steps": steps,
    }
    if fewest > 1:
        lower, upper = stats.interval(scores, statistic)
        numbers |= {"lower": float(lower), "upper": float(upper)}
    if fewest < MIN_SEEDS:
        why = f"{fewest} seed{'s' if fewest > 1 else ''}, an interval needs at least {MIN_SEEDS}"
        return Result(check.text, measure, "open", why, **numbers)
    status = HOLDS if lower > 0 else FAILS if upper < 0 else OPEN
    why = "the interval includes 0" if status == OPEN else ""
    if status == FAILS and _interval_of_many(scores, statistic, comparisons)[1] >= 0:
        status, why = OPEN, f"below 0, but not surely so among {comparisons} comparisons"
    if fewest < planned:
        why = "; ".join(filter(None, [why, f"only {fewest} of {planned} seeds"]))
    return Result(check.text, measure, STATUS[status], why, **numbers)


def _interval_of_many(scores: list[np.ndarray], statistic: Statistic, comparisons: int):
    """One failing check refutes a claim, so of many checks one may not fail by chance: Bonferroni's interval.

    Holding needs no such care, for all of them have to.
    """
    return stats.interval(scores, statistic, 1 - (1 - stats.CONFIDENCE) / comparisons)


def _curves(table: Curves, cell: Cell, metric: str) -> np.ndarray:
    key = (cell.env, cell.method, cell.variant)
    if metric == "progress":
        length = table.values(key, "et_length")
        return table.values(key, "et_return") - ALIVE_BONUS[cell.env] * length
    return table.values(key, metric)


def _statistic(check: Check, level: float) -> Statistic:
    """The check's number as a function of the scores of its cells; shares are means, everything else IQMs."""
    middle = stats.mean if check.score == "solved" else stats.iqm
    sign = (
        1 if check.terms[0][0] > 0 else -1
    )  # a level is compared with the first cell: a - level or level - a

    def statistic(*scores: np.ndarray, axis: int = 0) -> np.ndarray:
        centres = [middle(score, axis=axis) for score in scores]
        total = sum(weight * centre for (weight, _), centre in zip(check.terms, centres, strict=True))
        return total - sign * level + check.margin * np.abs(centres[-1])

    return statistic


def _combine(claim: Claim, checks: list[list[Result]], missing: list[Cell]) -> dict[str, Any]:
    value = {"holds": HOLDS, "open": OPEN, "missing": OPEN, "fails": FAILS}
    groups = [max(value[result.status] for result in group) for group in checks]
    results = [result for group in checks for result in group]
    judged = [result for result in results if result.effect is not None]
    if not judged:
        return {"verdict": "not run", "why": f"nothing to compare: {_absent(claim, missing)}"}
    needs = len(groups) if claim.needs is None else claim.needs
    holding = groups.count(HOLDS)
    deciding = _deciding(checks, groups)
    tally = f"{holding} of {len(groups)} requirements hold, {groups.count(FAILS)} fail"
    tally += f" ({needs} are needed)" if claim.needs else ""
    if len(groups) - groups.count(FAILS) < needs:
        verdict, why = "not reproduced", f"{tally}; it fails at: {deciding.text}"
    elif holding >= needs and not missing:
        verdict, why = "reproduced", tally
    else:
        reasons = dict.fromkeys(r.why for r in results if r.status == "open")
        verdict, why = "inconclusive", "; ".join([tally, *reasons])
    if missing:
        why += f"; {_absent(claim, missing)}"
    return {
        "verdict": verdict,
        "why": why,
        "effect": deciding.effect,
        "lower": deciding.lower,
        "upper": deciding.upper,
        "measure": f"{deciding.text} ({deciding.measure})",
        "seeds": min(result.seeds for result in judged),
        "steps": min(result.steps for result in judged),
    }


def _deciding(checks: list[list[Result]], groups: list[int]) -> Result:
    """The check that speaks most against the claim; within a requirement, the one most in its favour."""

    def strength(result: Result) -> float:
        """The effect in half-widths of its interval, so that different metrics can be compared."""
        effect = result.effect or 0.0
        width = (
            (result.upper - result.lower) / 2
            if result.upper is not None and result.lower is not None
            else 0.0
        )
        return effect / width if width > 0 else float(np.sign(effect)) * np.inf if effect else 0.0

    best = []
    for group, status in zip(checks, groups, strict=True):
        judged = [result for result in group if result.effect is not None]
        if judged:
            best.append((status, max(judged, key=strength)))
    return min(best, key=lambda pair: (pair[0], strength(pair[1])))[1]


def _absent(claim: Claim, missing: list[Cell]) -> str:
    """What is not there, as short as it can be told: whole environments, whole settings, then single ones."""
    cells = {cell for group in claim.requirements for check in group for _, cell in check.terms}
    envs = sorted({c.env for c in missing if all(d in missing for d in cells if d.env == c.env)})
    rest = [cell for cell in missing if cell.env not in envs]
    names: dict[str, None] = {}
    for cell in rest:
        same = [
            d for d in cells if (d.method, d.variant) == (cell.method, cell.variant) and d.env not in envs
        ]
        names[_path(cell) if any(d not in missing for d in same) else _path(cell).split("/", 1)[1]] = None
    parts = [f"environments without runs: {', '.join(envs)}"] if envs else []
    parts += [f"competitors without runs: {', '.join(names)}"] if names else []
    return "; ".join(parts)


def _path(cell: Cell) -> str:
    return "/".join([cell.env, cell.method] + ([] if cell.variant == "main" else [cell.variant]))


def _exact(statement: str, table: pd.DataFrame) -> dict[str, Any]:
    """Theorems are checked exactly on many instances: one that breaks it refutes it."""
    lacking = {"statement", "instance", "holds"} - set(table.columns)
    if lacking:
        raise UserError(
            f"the results of the theory experiment lack the column {min(lacking)!r}; make them again"
        )
    rows = table[table["statement"] == statement]
    if rows.empty:
        return {"verdict": "not run", "why": f"the results have no instance of {statement}"}
    holds = rows["holds"].astype(str).str.lower().isin(["true", "1", "1.0"])
    share = float(holds.mean())
    why = f"exact: {int(holds.sum())} of {len(rows)} instances hold"
    if share < 1:
        why += f"; it fails at {rows['instance'][~holds].iloc[0]}"
    verdict = "reproduced" if share == 1 else "not reproduced"
    present = [str(instance) for instance in rows["instance"]]
    measure = "share of instances that hold"
    return {"verdict": verdict, "why": why, "effect": share, "measure": measure, "present": present}
