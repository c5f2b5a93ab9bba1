"""DVC around the workflow: results come back in a clone and never pass for those of other parameters."""

import json

import pytest
from conftest import Project, make_project

pytestmark = pytest.mark.xdist_group("workflow")


def git(project, *arguments):
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    return project.run("git", *identity, *arguments)


def commit(project, message):
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", message)


@pytest.fixture(scope="session")
def tracked_once(tmp_path_factory):
    """A project with one `dvc repro`, committed and pushed to a remote beside it."""
    folder = tmp_path_factory.mktemp("dvc")
    project = make_project(folder / "project")
    git(project, "init", "--quiet", "--initial-branch=main")
    project.run("dvc", "remote", "add", "--default", "store", str(folder / "store"))
    commit(project, "The project")
    project.run("dvc", "repro")
    commit(project, "Results")
    project.run("dvc", "push")
    return project


@pytest.fixture
def clone(tracked_once, tmp_path):
    """A fresh clone with the runs pulled."""
    git(tracked_once, "clone", "--quiet", str(tracked_once.root), str(tmp_path / "clone"))
    project = Project(tmp_path / "clone")
    assert not project.finished()
    project.run("dvc", "pull")
    return project


def test_runs_are_in_the_cache_and_small_results_in_git(tracked_once):
    files = git(tracked_once, "ls-files").split()
    assert "dvc.lock" in files
    assert "results/smoke/metrics.json" in files
    assert "results/smoke/figures/mazes.png" in files
    assert not [
        name for name in files if name.startswith(("results/runs", "results/logs", "results/checkpoints"))
    ]


def test_a_second_repro_does_nothing(tracked_once):
    assert "up to date" in tracked_once.run("dvc", "repro")


def test_a_clone_has_everything_after_pull(tracked_once, clone):
    assert clone.finished().keys() == tracked_once.finished().keys()
    assert clone.results() == tracked_once.results()
    assert "up to date" in clone.run("dvc", "repro")


def test_a_changed_parameter_in_a_clone_retrains_what_it_must(clone):
    before = clone.finished()
    clone.change("environments.nav_easy.end_reward", -9)
    clone.run("dvc", "repro")
    after = clone.finished()
    assert before.items() <= after.items()  # not even touched
    assert [name.split("/")[0] for name in after.keys() - before.keys()] == ["nav_easy"]
    new = next(iter(after.keys() - before.keys()))
    record = json.loads((clone.root / "results/runs" / new / "config.json").read_text())
    assert record["config"]["early_termination"]["end_reward"] == -9
    assert (
        new.split("-")[1].split("/")[0] in (clone.root / "results/smoke/curves/success_rate.csv").read_text()
    )


def test_an_experiment_with_another_parameter(clone):
    before = clone.finished()
    clone.run("dvc", "exp", "run", "--set-param", "scales.smoke.steps.short=200")
    assert len(clone.finished().keys() - before.keys()) == 2
    difference = json.loads(clone.run("dvc", "metrics", "diff", "--json"))
    steps = difference["results/smoke/metrics.json"]["mazes.maze_1.td3.steps"]
    assert (steps["old"], steps["new"]) == (160, 200)
    # Back at the committed parameters, the committed results are there without training.
    git(clone, "checkout", "--", ".")
    clone.run("dvc", "checkout")
    assert "up to date" in clone.run("dvc", "repro")


def test_plots_draw_the_learning_curves(tracked_once, tmp_path):
    tracked_once.run("dvc", "plots", "show", "--out", str(tmp_path / "plots"))
    page = (tmp_path / "plots/index.html").read_text()
    assert "et_return" in page
    assert "TD3" in page
    assert "DVC_METRIC" not in page  # every anchor of the template is filled


def test_a_mistake_in_params_is_told(clone):
    clone.change("scales.smoke.steps.short", -1)
    output = clone.run("dvc", "repro", ok=False)
    assert "scales.smoke.steps.short: -1 is less than the minimum of 1" in output
