"""Finished runs as data frames, checked: a file that is missing, damaged or another run's is named."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from etmdp.config import RunConfig
from etmdp.errors import UserError
from etmdp.grid import Grid, Run

# What every evaluation must have measured; other columns (losses, say) may be empty.
REQUIRED = (
    "step",
    "return",
    "cost",
    "violation_rate",
    "et_return",
    "et_length",
    "success_rate",
    "train_cost",
    "train_violations",
    "train_cost_rate",
)


@dataclass(frozen=True)
class Setting:
    """One line of a figure: environment, method and variant as the experiment names them, and its seeds."""

    env: str
    method: str
    variant: str
    label: str
    runs: tuple[Run, ...]

    @property
    def key(self) -> tuple[str, str, str]:
        return self.env, self.method, self.variant


def plan(grid: Grid, experiment: str) -> list[Setting]:
    """The settings of an experiment at the grid's scale, in the order of params.yaml.

    The run table calls a variant that changes nothing `main`; here it keeps the name the experiment uses.
    """
    runs: dict[tuple[str, str, str], list[Run]] = {}
    for run in grid.runs(experiment):
        runs.setdefault((run.config.env, run.config.method, run.variant), []).append(run)
    settings = {}
    for block in grid.params["experiments"][experiment].get("runs", []):
        for env in block["environments"]:
            for method in block["methods"]:
                for variant in block.get("variants", ["main"]):
                    found = runs.get((env, method, variant)) or runs.get((env, method, "main"))
                    if found:
                        setting = Setting(env, method, variant, label(grid, method, variant), tuple(found))
                        settings[setting.key] = setting
    return list(settings.values())


def label(grid: Grid, method: str, variant: str) -> str:
    """What a method's variant is called in figures and tables."""
    parts = grid.params["methods"][method]["label"], grid.params["variants"][variant].get("label", "")
    return ", ".join(part for part in parts if part)


def environments_left_out(grid: Grid, experiment: str) -> list[str]:
    """Environments that the experiment names and this scale does without."""
    present = {setting.env for setting in plan(grid, experiment)}
    blocks = grid.params["experiments"][experiment].get("runs", [])
    return list(dict.fromkeys(e for block in blocks for e in block["environments"] if e not in present))


def read_run(folder: Path, run: Run) -> pd.DataFrame:
    """The progress of a finished run.

    Raises:
        UserError: the run is missing, damaged, not finished, or not the one that params.yaml asks for.
    """
    check_config(folder, run)
    path = folder / run.name / "progress.csv"
    frame = read_numbers(path, "train the run again")
    missing = [name for name in REQUIRED if name not in frame]
    if missing:
        raise UserError(f"{path} lacks the column {missing[0]!r}; train the run again")
    for name in REQUIRED:
        if frame[name].isna().any():
            step = frame["step"][frame[name].isna().to_numpy().argmax()]
            raise UserError(f"{path} has no finite {name} at step {step:g}; train the run again")
    every = run.config.evaluate_every
    wanted = np.arange(every, run.config.steps + 1, every)
    if not np.array_equal(frame["step"], wanted):
        raise UserError(
            f"{path} has {len(frame)} evaluations up to step {frame['step'].iloc[-1]:g}, not the "
            f"{len(wanted)} of every {every} steps up to {wanted[-1]}; train the run again"
        )
    return frame.astype({"step": np.int64})


def read_record(folder: Path, run: Run) -> dict[str, Any]:
    """A run's config.json: its config and the record of how it was made."""
    path = folder / run.name / "config.json"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UserError(f"the run {folder / run.name} is missing; train it first") from error
    except (OSError, ValueError) as error:
        raise UserError(f"{path} is damaged ({error}); train the run again") from error
    if not isinstance(data, dict) or not isinstance(data.get("config"), dict):
        raise UserError(f"{path} holds no run config; train the run again")
    return data


def check_config(folder: Path, run: Run) -> None:
    path = folder / run.name / "config.json"
    data = read_record(folder, run)["config"]
    try:
        config = RunConfig.from_dict(data)
    except (UserError, TypeError) as error:
        raise UserError(f"{path} is not right: {error}") from error
    if (config.digest, config.seed) != (run.config.digest, run.config.seed):
        raise UserError(
            f"{path} is of another run (digest {config.digest}, seed {config.seed}; wanted "
            f"{run.config.digest}, seed {run.config.seed}); remove the folder and train the run again"
        )


def read_numbers(path: Path, remedy: str, text: tuple[str, ...] = ()) -> pd.DataFrame:
    """A CSV file of finite numbers; an empty cell is a missing value, anything else is refused.

    Args:
        text: columns that hold words.
    """
    cells = read_words(path, remedy)
    columns = {}
    for name in cells:
        column = cells[name]
        if name not in text:
            numbers = pd.to_numeric(column.where(column != ""), errors="coerce").astype(np.float64)
            bad = (column != "") & ~np.isfinite(numbers)
            if bad.any():
                row = int(bad.to_numpy().argmax())
                raise UserError(
                    f"{path}, line {row + 2}: {name} is {column[row]!r}, no finite number; {remedy}"
                )
            column = numbers
        columns[name] = column
    return pd.DataFrame(columns)


def read_words(path: Path, remedy: str) -> pd.DataFrame:
    """A CSV file with its cells as they are written; every line must have as many as the first."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = list(csv.reader(file, strict=True))
    except FileNotFoundError as error:
        raise UserError(f"{path} is missing; {remedy}") from error
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path} is damaged ({error}); {remedy}") from error
    if not lines:
        raise UserError(f"{path} is empty; {remedy}")
    header, *body = lines
    if not body:
        raise UserError(f"{path} has no rows; {remedy}")
    wrong = [number for number, line in enumerate(body, 2) if len(line) != len(header)]
    if wrong or len(set(header)) < len(header):
        place = (
            f"line {wrong[0]} has not the {len(header)} cells of the first"
            if wrong
            else "two columns share a name"
        )
        raise UserError(f"{path} is damaged ({place}); {remedy}")
    return pd.DataFrame(body, columns=header, dtype=str)
