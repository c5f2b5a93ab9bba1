"""Not-Fall against Gymnasium's own robots, which end an episode at a fall."""

import gymnasium as gym
import numpy as np
import pytest

from etmdp.envs.not_fall import NotFall

BONUS = {"Hopper": 1.0, "Walker2d": 1.0, "Humanoid": 5.0}


def actions(env, count=300):
    return np.random.default_rng(0).uniform(
        env.action_space.low, env.action_space.high, (count, *env.action_space.shape)
    )


@pytest.mark.parametrize("robot", BONUS)
def test_the_first_cost_is_where_gymnasium_ends_the_episode(robot):
    env, original = NotFall(robot), gym.make(f"{robot}-v4")
    assert np.array_equal(env.reset(seed=1)[0], original.reset(seed=1)[0])
    for action in actions(env):
        observation, reward, terminated, truncated, info = env.step(action)
        expected = original.step(action)
        assert np.array_equal(observation, expected[0])
        # Gymnasium pays the bonus in the step of the fall, too, if that ends the episode.
        assert reward == pytest.approx(expected[1] - BONUS[robot], abs=1e-9)
        assert info["cost"] == float(expected[2])
        assert (terminated, truncated) == (False, False)
        if expected[2]:
            break
    else:
        pytest.fail("random actions did not make it fall")


@pytest.mark.parametrize("robot", BONUS)
def test_goes_on_after_a_fall_and_pays_for_every_fallen_step(robot):
    env = NotFall(robot)
    env.reset(seed=1)
    costs = []
    for action in actions(env):
        *_, terminated, truncated, info = env.step(action)
        assert (terminated, truncated) == (False, False)
        costs.append(info["cost"])
    assert set(costs) == {0.0, 1.0}
    assert sum(costs) > 100  # it stays down


@pytest.mark.parametrize("robot", BONUS)
def test_the_alive_bonus_is_for_evaluation_only(robot):
    training, evaluation = NotFall(robot), NotFall(robot, alive_bonus=True)
    training.reset(seed=2)
    evaluation.reset(seed=2)
    for action in actions(training, 100):
        _, reward, _, _, info = training.step(action)
        _, with_bonus, _, _, evaluation_info = evaluation.step(action)
        assert "training_reward" not in info
        assert evaluation_info["training_reward"] == reward
        assert evaluation_info["cost"] == info["cost"]
        assert with_bonus == reward + BONUS[robot] * (1 - info["cost"])
