"""The subcommands that turn finished runs into curves, figures, tables, verdicts, metrics and the report."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etmdp.errors import UserError
from etmdp.files import make_folder, write_atomically
from etmdp.params import hint

if TYPE_CHECKING:
    import pandas as pd

    from etmdp.analysis.curves import Curves
    from etmdp.grid import Grid


def add_parsers(subparsers: Any) -> None:
    """Adds the subcommands to the `etmdp` command; heavy modules are imported when one of them runs."""

    def add(name: str, help: str, run: Any, experiment: bool = False) -> argparse.ArgumentParser:
        parser = subparsers.add_parser(name, help=help, description=help)
        if experiment:
            parser.add_argument("experiment", help="an experiment of params.yaml")
        parser.add_argument("--params", type=Path, default=Path("params.yaml"), help="default: params.yaml")
        parser.add_argument("--scale", help="a scale of the params file; default: the file's own")
        parser.set_defaults(run=run)
        return parser

    parser = add("curves", "collect an experiment's runs into one tidy table", run_curves, experiment=True)
    parser.add_argument("--runs", type=Path, default=Path("results/runs"), help="folder of the finished runs")
    parser.add_argument("--out", type=Path, required=True, help="the .csv file to write")

    parser = add("figure", "draw an experiment's figure", run_figure, experiment=True)
    parser.add_argument("--curves", type=Path, help="the experiment's curves, if it has runs")
    parser.add_argument("--out", type=Path, nargs="+", required=True, help=".pdf and .png files to write")

    parser = add("table", "make an experiment's table", run_table, experiment=True)
    parser.add_argument("--curves", type=Path, required=True, help="the experiment's curves")
    parser.add_argument("--out", type=Path, nargs="+", required=True, help=".csv and .md files to write")

    parser = add("claims", "judge the paper's claims", run_claims)
    parser.add_argument("--curves", type=Path, required=True, help="folder of the experiments' curves")
    parser.add_argument("--out", type=Path, nargs="+", required=True, help=".md and .json files to write")

    parser = add("metrics", "write the final scores for `dvc metrics`", run_metrics)
    parser.add_argument("--curves", type=Path, required=True, help="folder of the experiments' curves")
    parser.add_argument("--out", type=Path, required=True, help="the .json file to write")

    parser = add("report", "make the one page that shows everything", run_report)
    parser.add_argument("--results", type=Path, required=True, help="folder of the scale's results")
    parser.add_argument("--runs", type=Path, default=Path("results/runs"), help="folder of the finished runs")
    parser.add_argument("--out", type=Path, required=True, help="the .html file to write")


def run_curves(args: argparse.Namespace) -> None:
    from etmdp.analysis import curves

    collected = curves.build(_grid(args, args.experiment), args.experiment, args.runs)
    _write({args.out: curves.to_csv(collected.table)})


def run_figure(args: argparse.Namespace) -> None:
    from etmdp.analysis import curves, figures

    grid, name = _grid(args, args.experiment), args.experiment
    outputs = grid.params["experiments"][name]["outputs"]
    if {"visitation", "environments"} & set(outputs):
        from etmdp.analysis import maps

        draw = maps.visitation if "visitation" in outputs else maps.environments
        figure = draw(grid, name)
    elif "curves" in outputs:
        if args.curves is None:
            raise UserError(f"the figure {name} needs its curves: give --curves FILE.csv")
        figure = figures.learning_curves(grid, name, curves.read(args.curves, grid, name))
    else:
        raise UserError(f"experiments.{name}.outputs has no figure; it has {', '.join(outputs)}")
    _write({path: figures.save(figure, path.suffix.removeprefix(".")) for path in args.out})


def run_table(args: argparse.Namespace) -> None:
    from etmdp.analysis import curves, tables

    grid, name = _grid(args, args.experiment), args.experiment
    outputs = grid.params["experiments"][name]["outputs"]
    if not {"success_table", "curves"} & set(outputs):
        raise UserError(f"experiments.{name}.outputs has no table; it has {', '.join(outputs)}")
    rows, sheet = tables.make(grid, name, curves.read(args.curves, grid, name))
    kinds = {".csv": lambda: curves.to_csv(rows), ".md": lambda: tables.to_markdown(sheet).encode()}
    _write({path: _pick(kinds, path)() for path in args.out})


def run_claims(args: argparse.Namespace) -> None:
    from etmdp.analysis import claims, verdicts

    grid = _grid(args)
    judged = claims.judge_all(grid, *_results(grid, args.curves))
    kinds = {
        ".md": lambda: verdicts.to_markdown(grid, judged).encode(),
        ".json": lambda: _json(verdicts.to_json(judged)),
    }
    _write({path: _pick(kinds, path)() for path in args.out})


def run_metrics(args: argparse.Namespace) -> None:
    from etmdp.analysis import metrics

    grid = _grid(args)
    trained, _ = _results(grid, args.curves)
    absent = [name for name in grid.experiments if grid.runs(name) and name not in trained]
    if absent:
        raise UserError(f"{args.curves / absent[0]}.csv is missing; make it with `etmdp curves {absent[0]}`")
    _write({args.out: _json(metrics.summary(grid, trained))})


def run_report(args: argparse.Namespace) -> None:
    from etmdp.analysis import report

    grid = _grid(args)
    page = report.build(grid, *_results(grid, args.results / "curves"), args.results, args.runs)
    _write({args.out: page.encode()})


def _grid(args: argparse.Namespace, experiment: str | None = None) -> Grid:
    from etmdp.grid import Grid

    grid = Grid.load(args.params, args.scale)
    known = grid.params["experiments"]
    if experiment is not None and experiment not in known:
        raise UserError(f"there is no experiment {experiment!r} in {args.params}{hint(experiment, known)}")
    return grid


def _results(grid: Grid, folder: Path) -> tuple[dict[str, Curves], dict[str, pd.DataFrame]]:
    """The curves, and the exact results, of each experiment that is on, as far as they are there."""
    from etmdp.analysis import curves
    from etmdp.analysis.load import read_words
    from etmdp.analysis.rules import CLAIMS

    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}; make the curves first")
    there = [name for name in grid.experiments if (folder / f"{name}.csv").exists()]
    theorems = {claim.experiment for claim in CLAIMS if claim.statement}
    trained = {name: curves.read(folder / f"{name}.csv", grid, name) for name in there if grid.runs(name)}
    exact = {name: read_words(folder / f"{name}.csv", "make it again") for name in there if name in theorems}
    return trained, exact


def _pick(kinds: dict[str, Any], path: Path) -> Any:
    if path.suffix not in kinds:
        raise UserError(f"cannot write {path}: the name must end in {' or '.join(kinds)}")
    return kinds[path.suffix]


def _json(data: Any) -> bytes:
    return (json.dumps(data, indent=1, allow_nan=False) + "\n").encode()


def _write(files: dict[Path, bytes]) -> None:
    for path, content in files.items():
        make_folder(path.parent)
        write_atomically(path, content)
