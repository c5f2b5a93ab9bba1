"""The workflow end to end, and what it does when something changes, fails or is killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.xdist_group("workflow")  # they share one finished project


def test_everything_is_made(made):
    assert {name.split("-")[0] for name in made.finished()} == {"maze_1/td3/main", "nav_easy/td3/main"}
    assert set(made.results()) == {
        "curves/mazes.csv",
        "curves/success_rate.csv",
        "figures/mazes.pdf",
        "figures/mazes.png",
        "figures/visitation.pdf",
        "figures/visitation.png",
        "tables/mazes.csv",
        "tables/mazes.md",
        "tables/success_rate.csv",
        "tables/success_rate.md",
        "claims.md",
        "claims.json",
        "metrics.json",
        "report.html",
    }
    assert not list((made.root / "results/checkpoints").glob("*/*/*/*"))


def test_a_second_run_does_nothing(made):
    assert "Nothing to be done" in made.snakemake()


def test_a_changed_parameter_retrains_what_it_touches_and_nothing_else(made):
    before = made.finished()
    made.change("environments.nav_easy.end_reward", -9)
    made.snakemake()
    after = made.finished()
    assert before.items() <= after.items()
    assert [name.split("/")[0] for name in after.keys() - before.keys()] == ["nav_easy"]
    made.change("environments.nav_easy.end_reward", -10)
    made.snakemake()
    assert made.finished() == after  # the old runs are still there


def test_a_changed_title_redraws_and_trains_nothing(made):
    before = made.finished()
    made.change("experiments.mazes.title", "Another title")
    made.snakemake()
    assert made.finished() == before
    assert "Another title" in (made.root / "results/smoke/report.html").read_text()


def test_new_code_of_a_figure_trains_nothing(made):
    source = made.root / "src/etmdp/analysis/figures.py"
    source.write_text(source.read_text() + "\n# a new comment\n")
    plan = made.snakemake("--dry-run")
    assert "rule figure" in plan
    assert "rule train" not in plan


def test_a_missing_result_is_made_again_the_same(made):
    before, runs = made.results(), made.finished()
    for name in ("figures/mazes.png", "tables/success_rate.csv", "claims.json", "curves/mazes.csv"):
        (made.root / "results/smoke" / name).unlink()
    made.snakemake()
    after = made.results()
    assert made.finished() == runs
    assert {name for name in before if before[name] != after[name]} <= {"report.html"}


def test_a_failing_run_is_told_and_harms_no_other(fresh):
    fresh.change("environments.maze_1.id", "etmdp/Nowhere-v0")
    output = fresh.snakemake(ok=False)
    assert output.count("Trying to restart job") == 1
    assert "etmdp: error: " in output  # its log is shown
    assert "Nowhere" in output
    assert [name.split("/")[0] for name in fresh.finished()] == ["nav_easy"]
    assert (fresh.root / "results/smoke/tables/success_rate.csv").exists()
    assert not (fresh.root / "results/smoke/curves/mazes.csv").exists()
    status = fresh.run("etmdp", "status")
    assert "1 of 2 runs done, 1 failed" in status
    assert "Nowhere" in status

    done = fresh.finished()
    fresh.change("environments.maze_1.id", "etmdp/Maze1-v0")
    fresh.snakemake()
    assert done.items() <= fresh.finished().items()
    assert len(fresh.finished()) == 2


def test_a_killed_workflow_continues_where_it_was(fresh):
    fresh.change("scales.smoke.steps.short", 4000)
    fresh.change("evaluations", 40)
    # Without the checkpoint's usual pause of a minute this would take long to test.
    train = fresh.root / "workflow/rules/train.smk"
    train.write_text(train.read_text().replace("etmdp train", "etmdp train --checkpoint-every 0.2"))
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    driver = subprocess.Popen(
        ["snakemake", "--cores", "2"],
        cwd=fresh.root,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        checkpoints = fresh.root / "results/checkpoints"
        while not list(checkpoints.glob("*/*/*/*/state.safetensors")):
            assert driver.poll() is None
            time.sleep(0.1)
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    assert not fresh.finished()
    fresh.snakemake("--unlock")
    fresh.snakemake()
    assert len(fresh.finished()) == 2
    logs = "".join(log.read_text() for log in (fresh.root / "results/logs").glob("*/*/*/*.log"))
    assert "continues at step" in logs


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("scale", "smok", "scale names 'smok', which scales does not define; did you mean 'smoke'?"),
        ("experiments.mazes.outputs", ["curvs"], "did you mean 'curves'?"),
    ],
)
def test_a_mistake_in_params_is_one_sentence_before_any_job(fresh, path, value, sentence):
    fresh.change(path, value)
    output = fresh.snakemake(ok=False)
    assert sentence in output
    assert "Traceback" not in output
    assert "rule" not in output.replace("rules/common.smk", "")
    assert not (fresh.root / "results").exists()


@pytest.mark.parametrize("setting", ["scale=smokee", "scales=smoke"])
def test_a_mistake_in_config_is_one_sentence(fresh, setting):
    output = fresh.snakemake("--config", setting, ok=False)
    assert "did you mean" in output or "--config knows only `scale`" in output
    assert "Traceback" not in output


def test_a_run_that_no_experiment_has_is_told(fresh):
    output = fresh.snakemake("results/runs/maze_1/td3/main-00000000/seed0/progress.csv", ok=False)
    assert "has the run maze_1/td3/main-00000000/seed0" in output


def test_one_experiment_alone(fresh):
    plan = fresh.snakemake("mazes", "--dry-run")
    assert "maze_1" in plan
    assert "nav_easy" not in plan


@pytest.mark.parametrize("limit", [(), ("--resources", "gpu=1")])
def test_gpus_limit_only_when_asked_to(fresh, limit):
    assert "rule train" in fresh.snakemake("--dry-run", *limit)


def test_every_scale_of_the_project_can_be_planned(fresh):
    root = Path(__file__).resolve().parents[2]
    (fresh.root / "params.yaml").write_bytes((root / "params.yaml").read_bytes())
    for scale in yaml.safe_load((root / "params.yaml").read_text())["scales"]:
        assert "rule train" in fresh.snakemake("--dry-run", "--config", f"scale={scale}")


def test_profiles_have_options_that_snakemake_knows(fresh):
    fresh.run("snakemake", "--dry-run", "--profile", "workflow/profiles/local")
    fresh.run("snakemake", "--dry-run", "--profile", "workflow/profiles/slurm")


OWN_ENVIRONMENT = '''
import gymnasium as gym
import numpy as np


class Line(gym.Env):
    """Go right along a line, not too far: beyond `edge` each step costs 1."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (1,), np.float32)
    action_space = gym.spaces.Box(-2, 2, (1,), np.float32)

    def __init__(self, edge):
        self.edge = edge

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = self.np_random.normal()
        return np.array([self.x], np.float32), {}

    def step(self, action):
        self.x += float(action[0])
        return np.array([self.x], np.float32), self.x, False, False, {"cost": float(self.x > self.edge)}
'''


def test_a_users_own_environment_with_every_method(fresh, monkeypatch):
    (fresh.root / "mine.py").write_text(OWN_ENVIRONMENT)
    monkeypatch.setenv("PYTHONPATH", str(fresh.root))
    own = {"family": "maze", "id": "mine:Line", "kwargs": {"edge": 3}, "horizon": 20, "budget": 2}
    fresh.change("environments.line", own)
    fresh.change("scales.smoke.environments", ["line"])
    fresh.change("scales.smoke.experiments", ["mazes"])
    fresh.change("algorithms.ppo.batch_size", 40)
    fresh.change("algorithms.trpo.batch_size", 40)
    methods = ["td3", "td3_cmdp", "context_td3", "context_td3_cmdp", "ppo", "ppo_lagrangian", "cpo", "ppo_et"]
    methods += ["trpo", "trpo_et"]
    fresh.change("experiments.mazes.runs", [{"environments": ["line"], "methods": methods}])
    fresh.snakemake()
    assert {name.split("/")[1] for name in fresh.finished()} == set(methods)
    assert "line" in (fresh.root / "results/smoke/tables/mazes.md").read_text()
