"""The command line. Subcommands import what they need: `etmdp --help` must not wait for torch."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from pathlib import Path

from etmdp import rendering
from etmdp.errors import UserError

EXIT_MISTAKE = 2


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="etmdp", description=__doc__.split(".")[0] + " of etmdp.")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")

    train = commands.add_parser("train", help="train one run, or continue it")
    train.add_argument(
        "--config", required=True, help="resolved run config: JSON text or a file (see `etmdp runs`)"
    )
    train.add_argument(
        "--out", required=True, type=Path, help="folder for config, progress, timing and policy"
    )
    train.add_argument(
        "--checkpoint", required=True, type=Path, help="folder for the checkpoint while it trains"
    )
    train.add_argument("--checkpoint-every", type=float, default=60.0, metavar="SECONDS", help="default: 60")
    train.add_argument("--device", default="auto", help="auto (default), cpu, or cuda")
    train.set_defaults(run=_train)

    evaluate = commands.add_parser("evaluate", help="evaluate the policy of a finished run")
    evaluate.add_argument("folder", type=Path, help="a run's folder below results/runs")
    evaluate.add_argument("--episodes", type=int, default=10, help="default: 10")
    evaluate.add_argument("--seed", type=int, default=0, help="of the first episode; default: 0")
    evaluate.set_defaults(run=_evaluate)

    runs = commands.add_parser("runs", help="list the runs that params.yaml asks for")
    runs.add_argument("experiment", nargs="?", help="only this experiment's")
    runs.add_argument("--params", default="params.yaml", help="default: params.yaml")
    runs.add_argument("--scale", help="default: the params file's")
    runs.add_argument(
        "--json", action="store_true", help="with their resolved configs, one JSON object a line"
    )
    runs.set_defaults(run=_runs)

    from etmdp import status
    from etmdp.analysis import commands as analysis

    status.add_parsers(commands)
    analysis.add_parsers(commands)
    return top


def main(arguments: list[str] | None = None) -> int:
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    args = parser().parse_args(arguments)
    try:
        rendering.prepare(
            None
        )  # before Gymnasium is imported, which ends in a traceback if the setting is wrong
        args.run(args)
    except UserError as error:
        print(f"etmdp: error: {error}", file=sys.stderr)
        return EXIT_MISTAKE
    except KeyboardInterrupt:
        print("etmdp: stopped; the same command continues from the last checkpoint", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output (head, less) has left
        sys.stderr.close()
    return 0


def _train(args: argparse.Namespace) -> None:
    from etmdp.config import RunConfig
    from etmdp.train import train

    train(RunConfig.load(args.config), args.out, args.checkpoint, args.device, args.checkpoint_every)


def _evaluate(args: argparse.Namespace) -> None:
    from etmdp.agents import load_policy
    from etmdp.config import RunConfig
    from etmdp.envs import make_evaluation_env
    from etmdp.evaluation import evaluate

    if args.episodes < 1:
        raise UserError(f"--episodes is {args.episodes}, must be at least 1")
    config = RunConfig.load(str(args.folder / "config.json"))
    env = make_evaluation_env(config)
    policy = load_policy(args.folder / "policy.safetensors")
    print(json.dumps(evaluate(policy, env, args.episodes, config.budget, args.seed), indent=1))


def _runs(args: argparse.Namespace) -> None:
    from etmdp.grid import Grid

    grid = Grid.load(args.params, args.scale)
    if args.experiment is not None and args.experiment not in grid.params["experiments"]:
        known = ", ".join(grid.params["experiments"])
        raise UserError(f"there is no experiment {args.experiment!r}; {args.params} has {known}")
    for run in grid.runs(args.experiment):
        print(
            json.dumps({"name": run.name, "config": json.loads(run.config.to_json())})
            if args.json
            else run.name
        )


if __name__ == "__main__":
    sys.exit(main())
