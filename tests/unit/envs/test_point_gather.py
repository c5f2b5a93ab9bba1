"""PointGather: layout, motion, sensor and catches by hand, and the known figures of two simple policies."""

import math

import numpy as np
import pytest

from etmdp.envs.point_gather import PointGather

EPISODES, HORIZON = 3000, 15
APPLE_BINS, BOMB_BINS = slice(9, 19), slice(19, 29)


@pytest.fixture
def env():
    env = PointGather()
    env.reset(seed=0)
    put(env)
    return env


def put(env, x=0.0, y=0.0, heading=0.0, apples=(), bombs=((6.0, 6.0),)):
    """A hand-placed scene; the bomb in the corner keeps the episode going and is out of the sensor's way."""
    env.x, env.y, env.heading = x, y, heading
    env.apples, env.bombs = list(apples), list(bombs)


def sense(env, **scene):
    put(env, **scene)
    observation = env.step([0.0, 0.0])[0]
    return observation[APPLE_BINS], observation[BOMB_BINS]


def polar(distance, angle):
    return distance * math.cos(angle), distance * math.sin(angle)


def test_layout():
    env = PointGather()
    seen = set()
    for seed in range(500):
        env.reset(seed=seed)
        objects = env.apples + env.bombs
        assert (len(env.apples), len(env.bombs), len(set(objects))) == (2, 8, 10)
        seen |= set(objects)
    even = (-6.0, -4.0, -2.0, 0.0, 2.0, 4.0)
    assert seen == {(x, y) for x in even for y in even} - {(0.0, 0.0)}


def test_turns_first_and_then_drives(env):
    observation, *_ = env.step([1.0, 0.25])
    assert observation[:3] == pytest.approx([math.cos(0.25), math.sin(0.25), 0.25])
    assert observation[6:9] == pytest.approx([math.cos(0.25), math.sin(0.25), 0.5])
    observation, *_ = env.step([-1.0, -0.25])
    assert observation[:3] == pytest.approx([math.cos(0.25) - 1, math.sin(0.25), 0.0])


def test_actions_and_positions_are_clipped(env):
    put(env, x=5.5, y=-5.8)
    observation, *_ = env.step([9.0, -9.0])  # drives 1, turns 0.25, and stops in the corner
    assert observation[:3].tolist() == [6.0, -6.0, -0.25]


def test_observation_is_pose_velocities_body_and_sensor():
    env = PointGather()
    first, _ = env.reset(seed=3)
    second, *_ = env.step([0.5, 0.1])
    assert first.shape == (29,)
    assert np.abs(first[:3]).max() < 0.1  # starts at the origin, up to a small noise
    assert np.array_equal(first[:2], first[6:8])
    assert np.array_equal(first[3:6], second[3:6])
    assert first[3:6].any()


@pytest.mark.parametrize(
    ("angle", "bin_"),
    [
        (-math.pi / 2, 0),
        (-math.pi / 2 + 0.31, 0),
        (-math.pi / 2 + 0.32, 1),
        (-0.01, 4),
        (0.01, 5),
        (math.pi / 2, 9),
    ],
)
def test_bins_run_from_right_to_left(env, angle, bin_):
    apples, bombs = sense(env, apples=[polar(3.0, angle)])
    expected = np.zeros(10)
    expected[bin_] = 0.5
    assert apples == pytest.approx(expected, abs=1e-6)
    assert not bombs.any()


@pytest.mark.parametrize("angle", [math.pi / 2 + 0.01, -math.pi / 2 - 0.01, math.pi])
def test_nothing_is_seen_behind(env, angle):
    assert not sense(env, apples=[polar(3.0, angle)])[0].any()


def test_the_far_end_of_the_range(env):
    assert sense(env, bombs=[(5.99, 0.0)])[1].max() == pytest.approx(0.01 / 6, abs=1e-6)
    assert not sense(env, bombs=[(6.01, 0.0)])[1].any()


@pytest.mark.parametrize("order", [1, -1])
def test_the_nearer_object_of_a_kind_wins_a_bin(env, order):
    apples = [polar(1.5, 0.1), polar(4.5, 0.2)][::order]
    seen, bombs = sense(env, apples=apples, bombs=[polar(3.0, 0.15)])
    assert seen[5] == pytest.approx(0.75)
    assert bombs[5] == pytest.approx(0.5)  # an apple in front does not hide a bomb


def test_the_sensor_turns_with_the_point(env):
    # Heading 3.1 and an object at angle -3.1: it is 0.083 to the left, across the jump of the angle.
    apples, _ = sense(env, heading=3.1, apples=[polar(3.0, -3.1)])
    assert apples.nonzero()[0].tolist() == [5]


def test_catches(env):
    put(env, apples=[(2.0, 0.0), (0.0, 2.0)], bombs=[(0.0, -1.5), (6.0, 6.0)])
    _, reward, terminated, truncated, info = env.step([1.0, 0.0])
    assert (reward, info["cost"], len(env.apples)) == (0.0, 0.0, 2)  # at a distance of 1 it is not yet caught
    _, reward, *_, info = env.step([0.01, 0.0])
    assert (reward, info["cost"], env.apples) == (10.0, 0.0, [(0.0, 2.0)])
    put(env, y=-0.6, bombs=[(0.0, -1.5), (6.0, 6.0)])
    _, reward, *_, info = env.step([0.0, 0.0])
    assert (reward, info["cost"], env.bombs) == (-1.0, 1.0, [(6.0, 6.0)])
    assert (terminated, truncated) == (False, False)


def test_ends_when_nothing_is_left(env):
    put(env, bombs=[(0.5, 0.0)])
    assert env.step([0.0, 0.0])[2]


def play(policy):
    env = PointGather()
    reward_sum = cost_sum = 0.0
    for seed in range(EPISODES):
        env.reset(seed=seed)
        for _ in range(HORIZON):
            _, reward, _, _, info = env.step(policy(env))
            reward_sum += reward
            cost_sum += info["cost"]
    return reward_sum / EPISODES, cost_sum / EPISODES


def test_figures_of_random_play():
    rng = np.random.default_rng(0)
    reward, cost = play(lambda env: rng.uniform([-1.0, -0.25], [1.0, 0.25]))
    assert reward == pytest.approx(0.45, abs=0.1)
    assert cost == pytest.approx(0.30, abs=0.03)


def test_figures_of_walking_straight_to_the_nearest_apple():
    def policy(env):
        if not env.apples:
            return 0.0, 0.0
        x, y = min(env.apples, key=lambda apple: math.dist(apple, (env.x, env.y)))
        angle = math.remainder(math.atan2(y - env.y, x - env.x) - env.heading, math.tau)
        drive = 1.0
        if abs(angle) > math.pi / 2:  # backwards is the shorter turn
            angle, drive = math.remainder(angle + math.pi, math.tau), -1.0
        turn = min(max(angle, -0.25), 0.25)
        return (drive if abs(angle - turn) < 0.5 else 0.0), turn

    reward, cost = play(policy)
    assert reward == pytest.approx(18.0, abs=0.3)
    assert cost == pytest.approx(0.59, abs=0.05)
