"""The tidy table of an experiment, one row per run and evaluation: all figures and tables start here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from etmdp.analysis.load import REQUIRED, Setting, plan, read_numbers, read_run
from etmdp.errors import UserError
from etmdp.grid import Grid

WORDS = ("experiment", "env", "method", "variant", "label", "digest")
COLUMNS = ("experiment", "env", "method", "variant", "label", "seed", "digest")


def build(grid: Grid, experiment: str, runs: Path) -> pd.DataFrame:
    """Collects the runs of an experiment, in the order of params.yaml, then by seed and step.

    Raises:
        UserError: a run is missing or not right, or the seeds of a setting were evaluated at different steps.
    """
    parts = []
    for setting in plan(grid, experiment):
        for run in sorted(setting.runs, key=lambda run: run.config.seed):
            frame = read_run(runs, run)
            names = (experiment, *setting.key, setting.label, run.config.seed, run.config.digest)
            for position, (column, value) in enumerate(zip(COLUMNS, names, strict=True)):
                frame.insert(position, column, value)
            parts.append(frame)
    if not parts:
        raise UserError(
            f"the experiment {experiment} has no runs at the scale {grid.scale}, so it has no curves"
        )
    # Concatenation keeps the columns in order of first appearance; a loss that a method lacks stays empty.
    table = pd.concat(parts, ignore_index=True)
    _check_steps(table, str(runs))
    return table


def to_csv(table: pd.DataFrame) -> bytes:
    return table.to_csv(index=False, lineterminator="\n").encode()


def read(path: Path, grid: Grid, experiment: str) -> pd.DataFrame:
    """Reads a curves file back and checks that it belongs to these params and this scale."""
    remedy = f"make it again with `etmdp curves {experiment} --scale {grid.scale}`"
    table = read_numbers(path, remedy, text=WORDS)
    missing = [name for name in (*COLUMNS, *REQUIRED) if name not in table]
    if missing:
        raise UserError(f"{path} lacks the column {missing[0]!r}; {remedy}")
    holes = [name for name in ("seed", *REQUIRED) if table[name].isna().any()]
    if holes:
        raise UserError(f"{path} has empty cells in the column {holes[0]!r}; {remedy}")
    table = table.astype({"seed": np.int64, "step": np.int64})
    planned = {
        (experiment, *setting.key, run.config.digest, run.config.seed)
        for setting in plan(grid, experiment)
        for run in setting.runs
    }
    found = table[["experiment", "env", "method", "variant", "digest", "seed"]].drop_duplicates()
    for row in found.itertuples(index=False, name=None):
        if row not in planned:
            raise UserError(
                f"{path} has the run {'/'.join(map(str, row[1:]))}, which params.yaml does not plan for "
                f"{experiment} at the scale {grid.scale}; {remedy}"
            )
    _check_steps(table, str(path))
    return table


def values(table: pd.DataFrame, key: tuple[str, str, str], metric: str) -> np.ndarray:
    """A metric of one setting as an array (seeds, evaluations); empty if the table lacks the setting."""
    env, method, variant = key
    rows = table[(table["env"] == env) & (table["method"] == method) & (table["variant"] == variant)]
    if rows.empty:
        return np.empty((0, 0))
    if metric not in rows or rows[metric].isna().any():
        raise UserError(f"the runs of {'/'.join(key)} have not measured {metric!r} at every evaluation")
    return rows.pivot(index="seed", columns="step", values=metric).to_numpy()


def steps(table: pd.DataFrame, key: tuple[str, str, str]) -> np.ndarray:
    """The steps at which a setting was evaluated."""
    env, method, variant = key
    rows = table[(table["env"] == env) & (table["method"] == method) & (table["variant"] == variant)]
    return np.unique(rows["step"].to_numpy())


def present(table: pd.DataFrame, settings: list[Setting]) -> list[Setting]:
    """The settings that the table has at least one run of."""
    found = set(table[["env", "method", "variant"]].drop_duplicates().itertuples(index=False, name=None))
    return [setting for setting in settings if setting.key in found]


def seeds(table: pd.DataFrame, setting: Setting) -> int:
    return len(values(table, setting.key, "step"))


def _check_steps(table: pd.DataFrame, where: str) -> None:
    """Seeds can be averaged only at steps that all of them were evaluated at, once each."""
    if table.duplicated(["env", "method", "variant", "seed", "step"]).any():
        raise UserError(f"{where}: a run has two evaluations at the same step; make the table again")
    for key, setting in table.groupby(["env", "method", "variant"], sort=False):
        grids = {seed: tuple(run["step"]) for seed, run in setting.groupby("seed")}
        if len(set(grids.values())) > 1:
            raise UserError(
                f"{where}: the seeds of {'/'.join(key)} were evaluated at different steps ("
                + "; ".join(f"seed {seed}: {len(at)} up to {at[-1]}" for seed, at in grids.items())
                + "); train them with one setting"
            )
