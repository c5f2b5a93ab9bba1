"""The tidy table of an experiment, one row per run and evaluation: all figures and tables start here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from etmdp.analysis.load import REQUIRED, Setting, plan, read_numbers, read_run
from etmdp.errors import UserError
from etmdp.grid import Grid

WORDS = ("experiment", "env", "method", "variant", "label", "digest")
Key = tuple[str, str, str]  # environment, method, variant
COLUMNS = ("experiment", "env", "method", "variant", "label", "seed", "digest")


class Curves:
    """The table, and its metrics as arrays (seeds, evaluations) by setting.

    Args:
        table: one row per run and evaluation, by setting, seed and step.
        where: where it comes from, for messages.

    Raises:
        UserError: the seeds of a setting were not evaluated at the same steps, once each.
    """

    def __init__(self, table: pd.DataFrame, where: str = "the curves") -> None:
        self.table = table
        self._columns: dict[str, np.ndarray] = {}
        self._rows: dict[Key, np.ndarray] = {}  # row numbers of each setting, seeds by evaluations
        for key, rows in table.groupby(["env", "method", "variant"], sort=False).indices.items():
            self._rows[key] = _by_seed(table.iloc[rows], rows, f"{where}: {'/'.join(key)}")

    def present(self, settings: list[Setting]) -> list[Setting]:
        """Those of the settings that have at least one run."""
        return [setting for setting in settings if setting.key in self._rows]

    def seeds(self, key: Key) -> int:
        return len(self._rows.get(key, ()))

    def steps(self, key: Key) -> np.ndarray:
        """The steps at which a setting was evaluated."""
        return self.values(key, "step")[0]

    def values(self, key: Key, metric: str) -> np.ndarray:
        """A metric of one setting, seeds by evaluations."""
        if metric in self.table and metric not in self._columns:
            self._columns[metric] = self.table[metric].to_numpy(dtype=np.float64)  # pandas takes long for it
        values = self._columns[metric][self._rows[key]] if metric in self._columns else np.array([np.nan])
        if np.isnan(values).any():
            raise UserError(f"the runs of {'/'.join(key)} have not measured {metric!r} at every evaluation")
        return values


def build(grid: Grid, experiment: str, runs: Path) -> Curves:
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
    return Curves(pd.concat(parts, ignore_index=True), str(runs))


def to_csv(table: pd.DataFrame) -> bytes:
    return table.to_csv(index=False, lineterminator="\n").encode()


def read(path: Path, grid: Grid, experiment: str) -> Curves:
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
    return Curves(table, str(path))


def _by_seed(setting: pd.DataFrame, numbers: np.ndarray, where: str) -> np.ndarray:
    """The row numbers of a setting, one line per seed, by step.

    Seeds can be averaged only at steps that all of them were evaluated at, once each.
    """
    seeds, steps = setting["seed"].to_numpy(), setting["step"].to_numpy()
    order = np.lexsort((steps, seeds))
    seeds, steps = seeds[order], steps[order]
    parts = np.split(np.arange(len(seeds)), np.flatnonzero(np.diff(seeds)) + 1)
    first = steps[parts[0]]
    if (np.diff(first) == 0).any():
        raise UserError(f"{where} has two evaluations at the same step; make the table again")
    if any(not np.array_equal(steps[part], first) for part in parts):
        told = "; ".join(f"seed {seeds[p[0]]}: {len(p)} up to {steps[p[-1]]}" for p in parts)
        raise UserError(
            f"{where} was evaluated at different steps ({told}); train the seeds with one setting"
        )
    return numbers[order].reshape(len(parts), -1)
