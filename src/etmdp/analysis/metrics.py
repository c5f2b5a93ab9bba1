"""metrics.json, what `dvc metrics` compares between commits: the final scores of every setting."""

from __future__ import annotations

from typing import Any

from etmdp.analysis import stats
from etmdp.analysis.curves import Curves
from etmdp.analysis.load import plan
from etmdp.grid import Grid


def summary(grid: Grid, tables: dict[str, Curves]) -> dict[str, Any]:
    """Nested: experiment, environment, method (`method/variant` for a variant), then the numbers.

    Args:
        tables: the curves of each experiment. The score is the experiment's first metric.
    """
    result: dict[str, Any] = {}
    for experiment, table in tables.items():
        metric = main_metric(grid, experiment)
        for setting in table.present(plan(grid, experiment)):
            final = stats.final(table.values(setting.key, metric))
            name = setting.method if setting.variant == "main" else f"{setting.method}/{setting.variant}"
            numbers: dict[str, Any] = {"metric": metric, "iqm": float(stats.iqm(final))}
            if len(final) > 1:
                lower, upper = stats.iqm_interval(final)
                numbers |= {"lower": float(lower), "upper": float(upper)}
            cost_rate = table.values(setting.key, "train_cost_rate")[:, -1]
            numbers |= {
                "train_cost_rate": float(stats.iqm(cost_rate)),
                "seeds": len(final),
                "steps": int(table.steps(setting.key)[-1]),
            }
            result.setdefault(experiment, {}).setdefault(setting.env, {})[name] = numbers
    return result


def main_metric(grid: Grid, experiment: str) -> str:
    """The metric an experiment is about: the first it names, or the success rate for Table 1."""
    spec = grid.params["experiments"][experiment]
    return "success_rate" if "success_table" in spec["outputs"] else spec.get("metrics", ["et_return"])[0]
