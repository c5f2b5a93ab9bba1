"""PointGoal and CarGoal: the fast path against safety-gymnasium itself, and the adapter's own duties."""

import dataclasses
import math

import numpy as np
import pytest

from etmdp.envs.safety_gym import SafetyGoal, _import_safety_gymnasium

ROBOTS = ("Point", "Car")


def chase(robot, observation, rng):
    """A rough pursuit of the goal by its lidar, so that goals are reached and hazards crossed."""
    first = {"Point": 12, "Car": 24}[robot]
    angle = (np.argmax(observation[first : first + 16]) + 0.5) * math.tau / 16
    if robot == "Point":
        angle = math.remainder(angle, math.tau)
        action = [float(abs(angle) < 1), 2 * angle]
    else:  # it drives sideways as its lidar sees it, and the wheels are numbered the other way round
        angle = math.remainder(angle + math.pi / 2, math.tau)
        action = [0.6 * math.cos(angle) + angle, 0.6 * math.cos(angle) - angle]
    return np.clip(action + rng.normal(0.0, 0.2, 2), -1.0, 1.0)


def play(env, robot, seed, steps):
    """Observations, rewards and costs of an episode, from an interface of five or of six values."""
    rng = np.random.default_rng(seed)
    observation, _ = env.reset(seed=seed)
    observations, rewards, costs = [observation], [], []
    for _ in range(steps):
        observation, reward, *cost, terminated, truncated, info = env.step(chase(robot, observation, rng))
        assert not terminated
        observations.append(observation)
        rewards.append(reward)
        costs.append(cost[0] if cost else info["cost"])
    return np.array(observations), rewards, costs, truncated


def compare(robot, seeds, steps):
    """Plays in both; returns how many goals were reached and the cost."""
    _import_safety_gymnasium()
    import safety_gymnasium

    env, original = SafetyGoal(robot), safety_gymnasium.make(f"Safety{robot}Goal1-v0")
    original.reset(
        seed=0
    )  # the solver's warm start after the very first reset is another than after all later ones
    goals = cost = 0
    for seed in seeds:
        observations, rewards, costs, truncated = play(env, robot, seed, steps)
        expected = play(original, robot, seed, steps)
        assert np.abs(observations - expected[0]).max() < 1e-12
        assert rewards == expected[1]
        assert costs == expected[2]
        assert not truncated
        goals += sum(reward > 0.5 for reward in rewards)
        cost += sum(costs)
    return goals, cost


@pytest.mark.parametrize("robot", ROBOTS)
def test_the_fast_path_is_safety_gymnasium(robot):
    goals, cost = compare(robot, seeds=(3, 6), steps=300)
    assert goals > 2  # the placing of a new goal is compared, too
    assert cost > 0


@pytest.mark.slow
@pytest.mark.parametrize("robot", ROBOTS)
def test_the_fast_path_is_safety_gymnasium_over_ten_thousand_steps(robot):
    compare(robot, seeds=range(10), steps=1000)


def test_the_other_path_gives_the_same():
    results = [play(SafetyGoal("Car", fast=fast), "Car", 3, 100) for fast in (True, False)]
    assert np.abs(results[0][0] - results[1][0]).max() < 1e-12
    assert results[0][1:] == results[1][1:]


@pytest.mark.parametrize(("cost", "expected"), [(0.0, 0.0), (1e-9, 1.0), (1.0, 1.0), (2.5, 1.0)])
def test_any_positive_cost_is_one(cost, expected):
    env = SafetyGoal("Point")
    env.reset(seed=0)
    env._builder.step = lambda action: (np.zeros(60), 0.0, cost, False, False, {})
    assert env.step([0.0, 0.0])[4]["cost"] == expected


def test_no_time_limit_of_its_own():
    env = SafetyGoal("Point")
    env.reset(seed=0)
    assert not any(env.step([0.0, 0.0])[3] for _ in range(1001))


def test_seeds_of_any_size():
    env = SafetyGoal("Point")
    assert np.isfinite(env.reset(seed=2**40 + 1)[0]).all()


def test_the_change_to_dataclasses_is_undone():
    _import_safety_gymnasium()

    with pytest.raises(ValueError, match="mutable default"):

        @dataclasses.dataclass
        class _Config:
            array: np.ndarray = np.zeros(1)  # noqa: RUF009


def test_the_sky_is_there_only_to_be_seen():
    plain = SafetyGoal("Point")
    plain.reset(seed=0)
    assert plain._builder.task.model.ntexdata < 1e6
    fast, original = (SafetyGoal("Point", fast=fast, render_mode="rgb_array") for fast in (True, False))
    fast.reset(seed=0)  # compiled with one layout, drawn with another
    fast.reset(seed=3)
    original.reset(seed=3)
    assert fast._builder.task.model.ntexdata > 1e8
    assert np.array_equal(fast.render(), original.render())
    fast.close()
    original.close()
