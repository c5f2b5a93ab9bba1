"""What holds for every environment of the package."""

import hashlib
import os
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from etmdp import rendering
from etmdp.envs import make
from etmdp.errors import UserError

IDS = sorted(name for name in gym.registry if name.startswith("etmdp/"))
HORIZON = 20

needs_library = pytest.mark.skipif(
    not any(rendering._loads(name) for name, _ in rendering.LIBRARIES.values()), reason="needs EGL or OSMesa"
)


def trajectory(env, seed):
    rng = np.random.default_rng(seed)
    observation, info = env.reset(seed=seed)
    rows = [observation, [info["cost"]]]
    for _ in range(HORIZON):
        observation, reward, terminated, truncated, info = env.step(
            rng.uniform(env.action_space.low, env.action_space.high).astype(env.action_space.dtype)
        )
        rows += [observation, [reward, info["cost"]]]
        if terminated or truncated:
            break
    return np.concatenate(rows)


def digest(env_id, seed):
    env = make(env_id, HORIZON)
    return hashlib.sha256(trajectory(env, seed).tobytes()).hexdigest()


def test_all_of_the_paper_are_here():
    names = {name.removeprefix("etmdp/").removesuffix("-v0") for name in IDS}
    assert names >= {
        "Maze1",
        "PointGoal",
        "CarGoal",
        "PointGather",
        "HopperNotFall",
        "WalkerNotFall",
        "HumanoidNotFall",
    }
    assert names >= {"BallInCupCatch", "SwimmerSwimmer6", "FingerTurnHard", "ReacherHard", "HumanoidWalk"}


@pytest.mark.filterwarnings("ignore:.*Box observation space")
@pytest.mark.parametrize("env_id", IDS)
def test_passes_the_checker_of_gymnasium(env_id):
    check_env(gym.make(env_id).unwrapped, skip_render_check=True)


@pytest.mark.parametrize("env_id", IDS)
def test_an_episode_depends_on_its_seed_alone(env_id):
    used = make(env_id, HORIZON)
    other = trajectory(used, 6)
    trajectory(used, 7)
    again = trajectory(used, 5)
    assert np.array_equal(again, trajectory(make(env_id, HORIZON), 5))
    assert not np.array_equal(again, other)


def test_another_process_sees_the_same():
    program = "from test_all_environments import IDS, digest; print(*[digest(env_id, 3) for env_id in IDS])"
    out = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        cwd=os.path.dirname(__file__),
        capture_output=True,
        text=True,
        check=True,
    )
    assert out.stdout.split() == [digest(env_id, 3) for env_id in IDS]


@needs_library
def test_frames_are_drawn_in_turn():
    names = ("Maze1", "PointGather", "PointGoal", "HopperNotFall", "WalkerNotFall", "CheetahRun", "FishSwim")
    envs = [gym.make(f"etmdp/{name}-v0", render_mode="rgb_array").unwrapped for name in names]
    first = []
    for env in envs:
        env.reset(seed=0)
        first.append(env.render())
    for env, frame in zip(envs, first, strict=True):
        assert np.array_equal(env.render(), frame)  # each has its own picture, whoever drew last
        assert frame.std() > 5
        env.close()


@needs_library
@pytest.mark.slow
@pytest.mark.parametrize("env_id", IDS)
def test_a_frame(env_id):
    env = gym.make(env_id, render_mode="rgb_array").unwrapped
    env.reset(seed=0)
    frame = env.render()
    assert (frame.dtype, frame.shape[2]) == (np.uint8, 3)
    assert frame.std() > 5
    env.close()


def test_an_unknown_id_names_near_ones():
    with pytest.raises(UserError, match=r"etmdp/PointGaol-v0.*etmdp/PointGoal-v0"):
        make("etmdp/PointGaol-v0", HORIZON)
