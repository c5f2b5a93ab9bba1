"""Synthetic runs: files as a training writes them, with known levels."""

import csv
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from etmdp.analysis import curves, rules
from etmdp.grid import Grid

EVALUATIONS = 20
TD3 = {"learning_rate": 0.0003}
NO_NOISE = {"correlation": 0.0, "scale": 0.1, "warmup_steps": 10}


def _experiment(envs, methods, variants=("main",), metrics=("et_return",), outputs=("curves",)):
    runs = [{"environments": list(envs), "methods": list(methods), "variants": list(variants)}]
    return {"title": "A title", "outputs": list(outputs), "metrics": list(metrics), "seeds": 10, "runs": runs}


def make_params(seeds=5, steps=2000):
    """Params with every experiment that a claim is about, under the names that the rules use."""
    ours = ("td3", "context_td3")
    all_methods = (*ours, "ppo", "ppo_lagrangian", "cpo")
    experiments = {
        "visitation": {"title": "Where a random agent goes", "outputs": ["visitation"]},
        "success_rate": _experiment(
            rules.NAVIGATION, (*ours, "cpo", "ppo_lagrangian"), outputs=("success_table",)
        ),
        "mazes": _experiment(rules.MAZES, all_methods),
        "budget": _experiment(rules.BUDGET, all_methods, metrics=("return", "cost")),
        "initial_states": _experiment(("nav_fixed_init", "nav_random_init"), ours),
        "loose": _experiment(rules.NOT_FALL, (*ours, "td3_cmdp", "context_td3_cmdp")),
        "context_length": _experiment(rules.MAZES, ["context_td3"], [f"context_{n}" for n in (1, 3, 5, 7)]),
        "context_size": _experiment(rules.NOT_FALL, ["context_td3"], ("main", "large", "shared")),
        "end_reward": _experiment(
            rules.BUDGET, ours, [f"end_reward_{n}" for n in (0, 1, 10)], ("return", "cost")
        ),
        "control": _experiment(rules.CONTROL, ("td3_cmdp", "context_td3_cmdp"), metrics=("return",)),
        "encoder": _experiment(("maze_1", "maze_2"), ["context_td3"], ("main", "transformer")),
        "counterexample": _experiment(["counterexample"], ours, ("main", "cost_aware"), ("return", "cost")),
        "theory": {"title": "Exact results", "outputs": ["theory"]},
    }
    experiments["budget"]["runs"].append(
        {"environments": ["car_goal"], "methods": ["context_td3"], "variants": ["cost_aware"]}
    )
    envs = dict.fromkeys(
        env
        for spec in experiments.values()
        for block in spec.get("runs", [])
        for env in block["environments"]
    )
    methods = ("td3", "td3_cmdp", "context_td3", "context_td3_cmdp", "ppo", "ppo_lagrangian", "cpo")
    context = {"encoder": "gru", "context": "separate", "context_size": 30}
    variants = {"main": {"label": ""}}
    variants |= {f"context_{n}": {"label": f"L = {n}", "agent": {"context_length": n}} for n in (1, 3, 5, 7)}
    variants |= {f"end_reward_{n}": {"label": f"r_e = -{n}", "end_reward": -n} for n in (0, 1, 10)}
    variants |= {
        "large": {"label": "120 units", "agent": {"context_size": 120}},
        "shared": {"label": "shared context", "agent": {"context": "shared"}},
        "transformer": {"label": "transformer", "agent": {"encoder": "transformer"}},
        "cost_aware": {"label": "cost-aware", "cost_aware": True},
    }
    return {
        "scale": "test",
        "scales": {
            "test": {"steps": {"short": steps}, "seeds": list(range(seeds)), "experiments": "all"},
            "part": {
                "steps": {"short": steps},
                "seeds": list(range(seeds)),
                "environments": ["maze_1", "maze_2"],
                "experiments": ["mazes"],
            },
        },
        "evaluations": EVALUATIONS,
        "families": {
            "any": {
                "length": "short",
                "horizon": 32,
                "budget": 1,
                "end_reward": -1,
                "context_length": 3,
                "exploration": "white",
                "evaluation": {"main": {"episodes": 1}},
            }
        },
        "environments": {env: {"family": "any", "id": "etmdp/Maze1-v0"} for env in envs},
        "explorations": {"white": NO_NOISE},
        "algorithms": {"plain": TD3, "context": TD3 | context},
        "methods": {
            name: {
                "label": name.replace("_", " "),
                "algorithm": "context" if name.startswith("context") else "plain",
                "early_termination": name in ("td3", "context_td3"),
            }
            for name in methods
        },
        "variants": variants,
        "experiments": experiments,
    }


def progress(run, metrics=None, seed_noise=0.05):
    """A learning curve that rises to each metric's level; the seeds lie evenly around it."""
    step = np.arange(1, EVALUATIONS + 1) * run.config.evaluate_every
    rise = np.minimum(1.0, np.arange(EVALUATIONS) / (EVALUATIONS - 11))
    levels = {"et_return": 100.0, "cost": 0.5, "success_rate": 1.0, "et_length": 32.0, "violation_rate": 0.0}
    levels |= metrics or {}
    levels.setdefault("return", levels["et_return"])
    columns = {"step": step, "episodes": step // 32}
    for name in ("return", "cost", "violation_rate", "et_return", "et_length", "success_rate"):
        offset = (0.0, -1.0, 1.0, -0.5, 0.5)[run.config.seed % 5]
        noise = 1 + seed_noise * offset if name in ("return", "et_return", "cost") else 1.0
        columns[name] = levels[name] * noise * rise
    columns["train_cost"] = step * 0.01
    columns["train_violations"] = step // 100
    columns["train_cost_rate"] = np.full(EVALUATIONS, 0.01)
    columns["train_return"] = columns["return"]
    columns["critic_loss"] = 1.0 / step
    return columns


def write_run(folder: Path, run, columns: dict | None = None) -> Path:
    """A finished run as a training leaves it."""
    frame = pd.DataFrame(progress(run) if columns is None else columns)
    out = folder / run.name
    out.mkdir(parents=True)
    record = {"host": "<b>host</b>", "started": "2026-01-01", "update_path": "numba"}
    (out / "config.json").write_text(json.dumps({"config": asdict(run.config), "record": record}))
    with (out / "progress.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(frame.columns)
        writer.writerows(
            ["" if isinstance(x, float) and np.isnan(x) else x for x in row]
            for row in frame.to_numpy().tolist()
        )
    (out / "timing.csv").write_text("step,seconds\n" + "".join(f"{s:.0f},{s / 500}\n" for s in frame["step"]))
    (out / "policy.safetensors").write_bytes(b"")
    return out


@pytest.fixture(scope="session")
def root():
    """The project's folder."""
    return Path(__file__).parents[3]


@pytest.fixture(scope="session")
def full_params():
    return make_params


@pytest.fixture
def params():
    return make_params()


@pytest.fixture(scope="session")
def grid():
    return Grid(make_params())


@pytest.fixture
def few_seeds():
    def make(count):
        return Grid(make_params(seeds=count))

    return make


@pytest.fixture
def synthetic():
    """Curves of an experiment without files: `levels(cell)` gives the metric levels of a setting."""

    def make(grid, experiment, levels=lambda cell: {}, seed_noise=0.05, keep=lambda cell: True):
        from etmdp.analysis.load import plan

        parts = []
        for setting in plan(grid, experiment):
            cell = rules.Cell(*setting.key)
            if not keep(cell):
                continue
            for run in setting.runs:
                names = (experiment, *setting.key, setting.label, run.config.seed, run.config.digest)
                columns = dict(zip(curves.COLUMNS, names, strict=True))
                parts.append(pd.DataFrame(columns | progress(run, levels(cell), seed_noise)))
        return pd.concat(parts, ignore_index=True)

    return make


@pytest.fixture(scope="session")
def run_writer():
    return write_run


@pytest.fixture
def run_progress():
    return progress
