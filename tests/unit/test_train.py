"""A run: deterministic, killed at any moment and continued to the same bytes, honest about what it counts."""

import json
import shutil
import signal
import subprocess
import sys
import time

import gymnasium as gym
import numpy as np
import pytest

from etmdp import EarlyTermination
from etmdp.errors import UserError
from etmdp.progress import read_rows
from etmdp.train import OUTPUTS, Counts, learn, make_agent, train

SAME = ("progress.csv", "policy.safetensors")


def outcome(folder):
    return {name: (folder / name).read_bytes() for name in SAME}


@pytest.mark.parametrize("algorithm", ["td3", "context_td3"])
@pytest.mark.parametrize("fast", [False, True])
def test_the_same_config_gives_the_same_bytes(tmp_path, make_config, algorithm, fast):
    config = make_config(algorithm, agent={"fast_update": fast})
    train(config, tmp_path / "one", tmp_path / "checkpoint")
    train(config, tmp_path / "two", tmp_path / "checkpoint")
    assert outcome(tmp_path / "one") == outcome(tmp_path / "two")
    train(
        make_config(algorithm, agent={"fast_update": fast}, seed=1),
        tmp_path / "three",
        tmp_path / "checkpoint",
    )
    assert outcome(tmp_path / "one")["progress.csv"] != outcome(tmp_path / "three")["progress.csv"]


def test_outputs_appear_whole_and_the_checkpoint_goes(tmp_path, make_config):
    train(make_config(), tmp_path / "run", tmp_path / "checkpoint", checkpoint_seconds=0)
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == sorted(OUTPUTS)
    assert not (tmp_path / "checkpoint").exists()
    about = json.loads((tmp_path / "run" / "config.json").read_text())
    assert about["config"]["steps"] == 200
    assert about["record"]["resumed"] == 0
    assert about["record"]["update_path"] == "torch"
    rows = read_rows(tmp_path / "run" / "progress.csv")
    assert [int(row["step"]) for row in rows] == list(range(20, 201, 20))


class Stop(Exception):
    pass


@pytest.mark.parametrize("algorithm", ["td3", "context_td3"])
@pytest.mark.parametrize("fast", [False, True])
def test_a_run_broken_off_anywhere_ends_with_the_same_bytes(
    tmp_path, make_config, monkeypatch, algorithm, fast
):
    config = make_config(algorithm, agent={"fast_update": fast})
    train(config, tmp_path / "whole", tmp_path / "c0")
    from etmdp.envs.maze import Maze

    step = Maze.step
    for number, breaks in enumerate([(1,), (60, 20), (100, 70, 30)]):
        out, checkpoint = tmp_path / f"broken{number}", tmp_path / f"c{number + 1}"
        for last in breaks:
            count = iter(range(10**6))

            def failing(self, action, count=count, last=last):
                if next(count) > last:  # evaluation steps count too
                    raise Stop
                return step(self, action)

            monkeypatch.setattr(Maze, "step", failing)
            with pytest.raises(Stop):
                train(config, out, checkpoint, checkpoint_seconds=0)
            assert not (out / "progress.csv").exists()
        monkeypatch.setattr(Maze, "step", step)
        train(config, out, checkpoint, checkpoint_seconds=0)
        assert outcome(out) == outcome(tmp_path / "whole")


def test_sigkill_at_random_moments(tmp_path, make_config):
    config = make_config("context_td3", steps=3000, evaluations=30, agent={"fast_update": True})
    train(config, tmp_path / "whole", tmp_path / "c0")
    command = [
        sys.executable,
        "-m",
        "etmdp.cli",
        "train",
        "--config",
        config.to_json(),
        "--out",
        tmp_path / "run",
    ]
    command += ["--checkpoint", tmp_path / "c1", "--checkpoint-every", "0.05"]
    rng = np.random.default_rng(0)
    kills = 0
    while not (tmp_path / "run" / "progress.csv").exists():
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not (tmp_path / "c1" / "progress.csv").exists() and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(rng.uniform(1.0, 2.0) if kills < 3 else 60)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait()
        if kills >= 3:
            subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    assert kills >= 1
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")


def test_of_two_processes_one_trains_and_the_other_waits(tmp_path, make_config):
    config = make_config(steps=1500)
    command = [
        sys.executable,
        "-m",
        "etmdp.cli",
        "train",
        "--config",
        config.to_json(),
        "--out",
        tmp_path / "run",
    ]
    command += ["--checkpoint", tmp_path / "c"]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=120)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    waited = [text for text in said if "finished already" in text]
    assert len(waited) == 1
    train(config, tmp_path / "alone", tmp_path / "c2")
    assert outcome(tmp_path / "run") == outcome(tmp_path / "alone")
    assert not (tmp_path / "c").exists()


def test_a_finished_run_is_left_alone(tmp_path, make_config):
    train(make_config(), tmp_path / "run", tmp_path / "c")
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "run").iterdir()}
    train(make_config(), tmp_path / "run", tmp_path / "c")
    assert before == {p: p.stat().st_mtime_ns for p in (tmp_path / "run").iterdir()}


def test_a_checkpoint_of_another_config_is_refused(tmp_path, make_config, monkeypatch):
    from etmdp import train as module

    save = module.Checkpoint.save

    def save_and_stop(*args):
        save(*args)
        raise Stop

    monkeypatch.setattr(module.Checkpoint, "save", save_and_stop)
    with pytest.raises(Stop):
        train(make_config(), tmp_path / "run", tmp_path / "c", checkpoint_seconds=0)
    with pytest.raises(UserError, match="of another run"):
        train(make_config(steps=300), tmp_path / "run", tmp_path / "c")


@pytest.mark.parametrize("target", ["run", "c"])
def test_a_place_that_cannot_be_written_is_named(tmp_path, make_config, target):
    (tmp_path / target).write_text("a file where a folder should be")
    with pytest.raises(UserError, match=f"{target}"):
        train(make_config(), tmp_path / "run", tmp_path / "c")


class Scripted(gym.Env):
    """Costs 1 at the third step of each episode and pays 2 a step; five steps long."""

    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)
    poison = None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time, self.seed = 0, seed
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.time += 1
        observation, reward = np.full(2, self.time / 10, np.float32), 2.0
        if self.poison == "observation" and self.time == 4:
            observation[1] = np.nan
        if self.poison == "reward" and self.time == 4:
            reward = np.inf
        return observation, reward, False, self.time == 5, {"cost": float(self.time == 3)}


class Recorder:
    """An agent that only remembers what it was told."""

    def __init__(self):
        self.seen, self.starts = [], 0

    def start_episode(self):
        self.starts += 1

    def act(self, observation):
        return np.zeros(1, np.float32)

    def observe(self, *step):
        self.seen.append(step)


def test_costs_and_violations_are_counted():
    agent = Recorder()
    counts = learn(agent, Scripted(), 12, budget=0)
    # Two whole episodes of five steps, then two steps of a third.
    assert (counts.step, counts.episodes, counts.cost, counts.violations) == (12, 2, 2.0, 2)
    assert counts.row() == {
        "train_cost": 2.0,
        "train_violations": 2,
        "train_cost_rate": 2 / 12,
        "train_return": 10.0,
    }
    assert np.isnan(counts.row()["train_return"])  # nothing ended since
    assert learn(Recorder(), Scripted(), 12, budget=1).violations == 0


def test_the_agent_sees_termination_truncation_and_the_end_reward():
    agent = Recorder()
    learn(agent, EarlyTermination(Scripted(), budget=0, end_reward=-7), 3)
    rewards, costs, _, terminated, truncated = zip(*agent.seen, strict=True)
    assert rewards == (2.0, 2.0, -5.0)
    assert costs == (0.0, 0.0, 1.0)
    assert terminated == (False, False, True)
    assert truncated == (False, False, False)


def test_every_episode_has_its_own_seed_whatever_came_before():
    seeds = []

    class Noting(Scripted):
        def reset(self, *, seed=None, options=None):
            seeds.append(seed)
            return super().reset(seed=seed)

    learn(Recorder(), Noting(), 20, seed=3)
    first = seeds.copy()
    seeds.clear()
    learn(Recorder(), Noting(), 20, seed=3, counts=Counts(step=10, episodes=2))
    assert seeds == first[2:]
    assert len(set(first)) == 4


@pytest.mark.parametrize("poison", ["observation", "reward"])
def test_what_is_not_finite_stops_the_run_with_its_step(poison):
    env = Scripted()
    env.poison = poison
    with pytest.raises(UserError, match=f"{poison} at step 4 is not finite"):
        learn(Recorder(), env, 10)


def test_a_loss_that_is_not_finite_stops_the_run(tmp_path, make_config):
    config = make_config(agent={"learning_rate": 1e30})
    with pytest.raises(
        UserError, match=r"action at step \d+ is not finite|loss is (nan|inf) after \d+ steps"
    ):
        train(config, tmp_path / "run", tmp_path / "c")
    assert "finite" in (tmp_path / "c" / "failed.txt").read_text()
    assert not (tmp_path / "run" / "progress.csv").exists()


def test_hyper_parameters_that_do_not_fit_are_named(make_config):
    from etmdp.envs import make_training_env
    from etmdp.spaces import Spaces

    config = make_config(agent={"momentum": 1})
    with pytest.raises(UserError, match="momentum"):
        make_agent(config, Spaces.of(make_training_env(config)), "cpu")


@pytest.fixture
def small_disk(tmp_path):
    """A real file system of 400 kB."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_is_told_and_the_run_continues_once_there_is_room(small_disk, tmp_path, make_config):
    config = make_config("context_td3", agent={"hidden_sizes": [64, 64]})
    train(config, tmp_path / "whole", tmp_path / "c0")
    filler = small_disk / "filler"
    filler.write_bytes(bytes(100_000))
    with pytest.raises(UserError, match="No space left on device; make room"):
        train(config, small_disk / "run", small_disk / "c", checkpoint_seconds=0)
    assert not (small_disk / "run" / "progress.csv").exists()
    filler.unlink()
    shutil.copytree(small_disk / "c", tmp_path / "c1")  # the last good checkpoint, on a disk with room
    shutil.rmtree(small_disk / "c")
    train(config, small_disk / "run", tmp_path / "c1", checkpoint_seconds=0)
    assert outcome(small_disk / "run") == outcome(tmp_path / "whole")
