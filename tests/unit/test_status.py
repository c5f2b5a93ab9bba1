"""What `etmdp status` and `etmdp prune` make of the files they find."""

import fcntl
import shutil
from pathlib import Path

import pytest

from etmdp import status
from etmdp.cli import main
from etmdp.grid import Grid


@pytest.fixture
def grid():
    return Grid.load("params.yaml", "smoke")  # 600 steps a run


@pytest.fixture
def run(grid):
    return grid.runs("mazes")[0]


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def timing(*rows):
    return "step,seconds\n" + "".join(f"{step},{seconds}\n" for step, seconds in rows)


def finish(results, run, seconds):
    write(results / "runs" / run.name / "progress.csv", "step\n600\n")
    write(results / "runs" / run.name / "timing.csv", timing((300, seconds / 2), (600, seconds)))


class Held:
    """A checkpoint folder whose lock is held, as by another process: every open file is a holder."""

    def __init__(self, results, run):
        self.file = write(results / "checkpoints" / run.name / "lock", "pid 1").open()

    def __enter__(self):
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        self.file.close()


def test_nothing_there_is_waiting(run, tmp_path):
    assert status.look(run, tmp_path).state == "waiting"


def test_finished(run, tmp_path):
    finish(tmp_path, run, seconds=60)
    found = status.look(run, tmp_path)
    assert (found.state, found.step, found.steps_left) == ("done", 600, 0)
    assert found.seconds_per_step == pytest.approx(0.1)


def test_running_until_the_lock_is_free(run, tmp_path):
    write(tmp_path / "checkpoints" / run.name / "timing.csv", timing((150, 3)))
    with Held(tmp_path, run):
        found = status.look(run, tmp_path)
        assert (found.state, found.step, found.steps_left) == ("running", 150, 450)
    assert status.look(run, tmp_path).state == "waiting"  # killed: nothing says that it failed


def test_speed_is_that_of_the_last_rows(run, tmp_path):
    # A quick warm-up of 100 steps, then a step takes a second.
    rows = [(100, 1)] + [(100 + 10 * i, 1 + 10 * i) for i in range(1, 8)]
    write(tmp_path / "checkpoints" / run.name / "timing.csv", timing(*rows))
    with Held(tmp_path, run):
        assert status.look(run, tmp_path).seconds_per_step == pytest.approx(1.0)


@pytest.mark.parametrize(
    "content", ["", "step,seconds\n", "step,seco", "step,seconds\n100", "step,seconds\nx,y\n"]
)
def test_a_timing_file_that_is_cut_short_is_no_speed(run, tmp_path, content):
    write(tmp_path / "checkpoints" / run.name / "timing.csv", content)
    with Held(tmp_path, run):
        found = status.look(run, tmp_path)
    assert (found.state, found.step, found.seconds_per_step) == ("running", 0, None)


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("checkpoints/{}/failed.txt", "the disk is full\n", "the disk is full"),
        ("logs/{}.log", "step 1\netmdp: error: the disk is full\n", "the disk is full"),
        ("logs/{}.log", "Traceback\n  File x\nImportError: no module\n", "ImportError: no module"),
    ],
)
def test_failed_with_its_reason(run, tmp_path, file, text, reason):
    write(tmp_path / file.format(run.name), text)
    found = status.look(run, tmp_path)
    assert (found.state, found.reason) == ("failed", reason)


@pytest.mark.parametrize("text", ["", "maze_1/td3 seed 0: step 20 of 600\n"])
def test_a_log_without_an_error_is_no_failure(run, tmp_path, text):
    write(tmp_path / "logs" / f"{run.name}.log", text)
    assert status.look(run, tmp_path).state == "waiting"


def test_time_left_by_hand(grid, tmp_path):
    runs = grid.runs("mazes")
    first, second = (r for r in runs if (r.config.env, r.config.method) == ("maze_1", "td3"))
    other = next(r for r in runs if r.config.method == "context_td3")
    done = status.RunStatus(first, "done", 600, 0.1)
    waiting = status.RunStatus(second, "waiting")
    running = status.RunStatus(other, "running", 100, 1.0)
    assert status.seconds_left([waiting], 1) is None
    assert status.seconds_left([done], 1) == 0
    assert status.seconds_left([done, waiting], 1) == pytest.approx(600 * 0.1)
    # 500 s and 60 s: one after the other 560 s, side by side as long as the longer one.
    assert status.seconds_left([done, waiting, running], 1) == pytest.approx(560)
    assert status.seconds_left([done, waiting, running], 2) == pytest.approx(500)
    # Nothing is known of the method: all there is to go by is the mean of all speeds.
    assert status.seconds_left([running, waiting], 1) == pytest.approx(500 + 600)


def test_the_table_counts_each_state(grid, tmp_path):
    runs = grid.runs("navigation")  # success_rate has the same ones
    finish(tmp_path, runs[0], seconds=60)
    write(tmp_path / "checkpoints" / runs[1].name / "failed.txt", "no such map")
    with Held(tmp_path, runs[2]):
        lines = status.describe(grid, tmp_path).splitlines()
    total = len(grid.runs())
    assert lines[0].startswith(
        f"scale smoke: 1 of {total} runs done, 1 running, 1 failed, {total - 3} waiting; about"
    )
    counts = {line.split()[0]: line.split()[1:] for line in lines[2:]}
    assert counts["navigation"] == counts["success_rate"] == ["1", "1", "1", str(len(runs) - 3)]
    assert counts["mazes"] == ["0", "0", "0", str(len(grid.runs("mazes")))]
    assert "visitation" not in counts
    assert any(line.startswith("  failed:") and "no such map" in line for line in lines)


def test_follow_ends_when_all_is_done(grid, tmp_path, capsys):
    for run in grid.runs():
        finish(tmp_path, run, seconds=1)
    assert main(["status", "--scale", "smoke", "--results", str(tmp_path), "--follow"]) == 0
    assert f"{len(grid.runs())} of {len(grid.runs())} runs done" in capsys.readouterr().out


def test_an_unknown_scale_is_one_sentence(capsys):
    assert main(["status", "--scale", "papre"]) == 2
    assert "did you mean 'paper'?" in capsys.readouterr().err


# ---- prune ----


@pytest.fixture
def littered(grid, tmp_path):
    """One run that is used at another scale, and three things that nothing uses."""
    finish(tmp_path, Grid.load("params.yaml", "paper").runs("mazes")[0], seconds=60)
    for name in (
        "runs/maze_1/td3/main-00000000/seed0/progress.csv",
        "checkpoints/maze_9/td3/main-00000000/seed3/state.safetensors",
        "logs/maze_9/td3/main-00000000/seed3.log",
        "logs/smoke/claims.log",
        "smoke/claims.md",
    ):
        write(tmp_path / name)
    return tmp_path


def test_prune_lists_and_removes_nothing(littered, capsys):
    before = sorted(littered.rglob("*"))
    assert main(["prune", "--results", str(littered)]) == 0
    output = capsys.readouterr().out
    assert "runs/maze_1/td3/main-00000000/seed0\n" in output
    assert "3 to remove" in output
    assert sorted(littered.rglob("*")) == before


def test_prune_removes_what_nothing_uses_and_empty_folders(littered):
    assert main(["prune", "--yes", "--results", str(littered)]) == 0
    files = {str(path.relative_to(littered)) for path in littered.rglob("*") if path.is_file()}
    run = Grid.load("params.yaml", "paper").runs("mazes")[0].name
    kept = {f"runs/{run}/progress.csv", f"runs/{run}/timing.csv", "logs/smoke/claims.log", "smoke/claims.md"}
    assert files == kept
    assert not (littered / "checkpoints/maze_9").exists()
    assert not (littered / "logs/maze_9").exists()


def test_prune_spares_a_run_under_way(grid, tmp_path):
    lock = write(tmp_path / "checkpoints/maze_9/td3/main-00000000/seed3/lock")
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert main(["prune", "--yes", "--results", str(tmp_path)]) == 0
    assert lock.exists()


def test_prune_leaves_links_alone(littered):
    shutil.rmtree(littered / "runs/maze_1/td3/main-00000000/seed0")
    target = write(littered / "elsewhere/precious").parent
    (littered / "runs/maze_1/td3/main-00000000/seed0").symlink_to(target)
    assert main(["prune", "--yes", "--results", str(littered)]) == 0
    assert (target / "precious").exists()


def test_prune_with_nothing_to_do(tmp_path, capsys):
    assert main(["prune", "--results", str(tmp_path)]) == 0
    assert "belongs to an experiment" in capsys.readouterr().out
