"""How far the runs are, and which folders no experiment uses any more. Reads files only."""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from etmdp.errors import UserError
from etmdp.grid import Grid, Run
from etmdp.params import read_params
from etmdp.progress import read_rows

STATES = ("done", "running", "failed", "waiting")
PAUSE = 10.0  # seconds between two looks
RECENT = 5  # progress rows that tell the present speed; the warm-up is faster than what follows


@dataclass(frozen=True)
class RunStatus:
    """Where a run is; `seconds_per_step` is None before the first row of timing.csv."""

    run: Run
    state: str
    step: int = 0
    seconds_per_step: float | None = None
    reason: str = ""

    @property
    def steps_left(self) -> int:
        return 0 if self.state == "done" else self.run.config.steps - self.step


def look(run: Run, results: Path) -> RunStatus:
    """The status of one run, from its folder, its checkpoint, its lock and its log."""
    finished, live = results / "runs" / run.name, results / "checkpoints" / run.name
    if _is_locked(live / "lock"):
        return RunStatus(run, "running", *_speed(live / "timing.csv"))
    if (finished / "progress.csv").exists():  # the file that is written last
        return RunStatus(run, "done", *_speed(finished / "timing.csv"))
    reason = _failure(live / "failed.txt", results / "logs" / f"{run.name}.log")
    return RunStatus(run, "failed" if reason else "waiting", *_speed(live / "timing.csv"), reason)


def seconds_left(statuses: Iterable[RunStatus], at_once: int) -> float | None:
    """How long the unfinished runs take when `at_once` work at a time; None while no speed is known.

    A run that has not begun is taken to be as fast as those of its environment and method, else of its
    method, else as all.
    """
    statuses = list(statuses)
    known = [s for s in statuses if s.seconds_per_step is not None]
    if not known:
        return None

    def guess(status: RunStatus) -> float:
        if status.state == "running" and status.seconds_per_step is not None:
            return status.seconds_per_step
        config = status.run.config
        method = [s for s in known if s.run.config.method == config.method]
        same = [s for s in method if s.run.config.env == config.env]
        return mean(s.seconds_per_step or 0.0 for s in same or method or known)

    left = [status.steps_left * guess(status) for status in statuses if status.state != "failed"]
    return max(sum(left) / at_once, *left, 0.0)


def summary(statuses: list[RunStatus]) -> str:
    """One line on all runs."""
    count = Counter(status.state for status in statuses)
    line = f"{count['done']} of {len(statuses)} runs done"
    line += "".join(f", {count[state]} {state}" for state in STATES[1:] if count[state])
    left = seconds_left(statuses, count["running"] or os.cpu_count() or 1)
    if count["running"] + count["waiting"] and left is not None:
        line += f"; about {_duration(left)} left" + ("" if count["running"] else " once they run")
    return line


def describe(grid: Grid, results: Path) -> str:
    """The whole table: experiments, what runs, what failed."""
    statuses = {run.name: look(run, results) for run in grid.runs()}
    lines = [f"scale {grid.scale}: {summary(list(statuses.values()))}"]
    width = max(map(len, grid.experiments))
    lines += [f"  {'experiment':{width}} " + "".join(f"{state:>9}" for state in STATES)]
    for name in grid.experiments:
        count = Counter(statuses[run.name].state for run in grid.runs(name))
        if count:
            lines += [f"  {name:{width}} " + "".join(f"{count[state]:9}" for state in STATES)]
    for status in statuses.values():
        if status.state == "running":
            lines += [f"  running: {_progress(status)}  {status.run.name}"]
    for status in statuses.values():
        if status.state == "failed":
            lines += [
                f"  failed:  {status.run.name}: {status.reason} (log: {results}/logs/{status.run.name}.log)"
            ]
    return "\n".join(lines)


def follow(grid: Grid, results: Path) -> None:
    """Shows the status until every run is done: in place on a terminal, else a line per change."""
    parent, height, last = os.getppid(), 0, ""
    while os.getppid() == parent:  # whoever started this has ended otherwise
        if sys.stdout.isatty():
            columns, rows = shutil.get_terminal_size()
            lines = [line[: columns - 1] for line in describe(grid, results).splitlines()[: rows - 1]]
            print(f"\033[{height}F" * bool(height) + "\033[J" + "\n".join(lines), flush=True)
            height = len(lines)
        else:
            line = summary([look(run, results) for run in grid.runs()])
            if line != last:
                print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)
            last = line
        if all(look(run, results).state == "done" for run in grid.runs()):
            return
        time.sleep(PAUSE)


def unused(params: str, results: Path) -> Iterator[Path]:
    """Folders of runs and checkpoints, and logs, that no experiment of any scale uses."""
    content = read_params(params)
    used = {run.name for scale in content["scales"] for run in Grid(content, scale).runs()}
    for kind in ("runs", "checkpoints"):
        for path in sorted((results / kind).glob("*/*/*-*/seed*")):
            if str(path.relative_to(results / kind)) not in used and path.is_dir() and not path.is_symlink():
                yield path
    for path in sorted((results / "logs").glob("*/*/*-*/seed*.log")):
        if str(path.relative_to(results / "logs").with_suffix("")) not in used:
            yield path


def prune(params: str, results: Path, remove: bool) -> None:
    """Lists what no experiment uses, or removes it; a run that is being trained stays."""
    paths = [path for path in unused(params, results) if not _is_locked(path / "lock")]
    for path in paths:
        print(path)
        if remove:
            try:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            except OSError as error:
                raise UserError(f"cannot remove {path}: {error.strerror}") from error
            _remove_empty_parents(path, results)
    if not paths:
        print("every run, checkpoint and log belongs to an experiment")
    elif not remove:
        print(f"{len(paths)} to remove; `etmdp prune --yes` does it")


def add_parsers(commands: argparse._SubParsersAction) -> None:
    status = commands.add_parser("status", help="how far the runs are and how long they will take")
    status.add_argument("--scale", help="default: the params file's")
    status.add_argument(
        "--follow", action="store_true", help=f"look again every {PAUSE:.0f} seconds until all is done"
    )
    prune_parser = commands.add_parser("prune", help="list runs and checkpoints that no experiment uses")
    prune_parser.add_argument("--yes", action="store_true", help="remove them")
    for parser in (status, prune_parser):
        parser.add_argument("--params", default="params.yaml", help="default: params.yaml")
        parser.add_argument("--results", type=Path, default=Path("results"), help="default: results")
    status.set_defaults(run=_status)
    prune_parser.set_defaults(run=lambda args: prune(args.params, args.results, args.yes))


def _status(args: argparse.Namespace) -> None:
    grid = Grid.load(args.params, args.scale)
    if args.follow:
        follow(grid, args.results)
    else:
        print(describe(grid, args.results))


def _is_locked(path: Path) -> bool:
    """Whether a living process holds the lock; the system frees it when the process dies."""
    try:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _speed(timing: Path) -> tuple[int, float | None]:
    """The last step in a timing.csv and the seconds per step of late."""
    try:
        rows = [(int(row["step"]), float(row["seconds"])) for row in read_rows(timing)]
    except (UserError, KeyError, TypeError, ValueError):  # not there, or just being replaced
        return 0, None
    if not rows:
        return 0, None
    before = rows[-1 - RECENT] if len(rows) > RECENT else (0, 0.0)
    steps, seconds = rows[-1][0] - before[0], rows[-1][1] - before[1]
    return rows[-1][0], seconds / steps if steps > 0 else None


def _failure(note: Path, log: Path) -> str:
    """The sentence a run failed with; empty if it did not. One that was killed leaves none: it just waits."""
    for path in (note, log):
        try:
            last = path.read_text(errors="replace").strip().splitlines()[-1]
        except (OSError, IndexError):
            continue
        if path == note or "error" in last.lower():
            return last.removeprefix("etmdp: error: ")
    return ""


def _progress(status: RunStatus) -> str:
    text = f"{100 * status.step / status.run.config.steps:3.0f} %"
    if status.seconds_per_step:
        left = status.steps_left * status.seconds_per_step
        text += f", {1 / status.seconds_per_step:.0f} steps/s, about {_duration(left)} left"
    return text


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _remove_empty_parents(path: Path, results: Path) -> None:
    for parent in path.parents:
        if parent.parent == results or any(parent.iterdir()):
            return
        parent.rmdir()
