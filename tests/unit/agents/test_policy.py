"""Saved policies: the same actions after loading, nothing but the file needed, no pickle."""

import pickle

import numpy as np
import pytest

from etmdp.agents import TD3, ContextTD3, load_policy
from etmdp.errors import UserError
from etmdp.spaces import Spaces

SPACES = Spaces(*(np.array(x, "f4") for x in ([8, 0, 1], [8, 1, 2], [0, 5], [1, 5])))
COMMON = {
    "hidden_sizes": [8, 12],
    "learning_rate": 0.001,
    "batch_size": 4,
    "discount": 0.9,
    "target_rate": 0.05,
    "target_noise": 0.2,
    "target_noise_clip": 0.5,
    "policy_delay": 2,
    "replay_size": 100,
    "fast_update": True,
}
EXPLORE = {"correlation": 0.0, "scale": 0.1, "warmup_steps": 10}
CONTEXTS = [
    {"encoder": encoder, "context": context, "context_size": 5, "context_length": length}
    for encoder, context, length in (
        ("gru", "separate", 3),
        ("gru", "shared", 1),
        ("transformer", "separate", 4),
    )
]


def agents():
    return [TD3(SPACES, EXPLORE, **COMMON)] + [ContextTD3(SPACES, EXPLORE, **COMMON, **c) for c in CONTEXTS]


def play(policy):
    """Actions along a fixed script of observations and rewards."""
    rng = np.random.default_rng(0)
    actions = []
    for _ in range(2):
        policy.start()
        for _ in range(6):
            observation = rng.uniform(0, 16, 3)
            action = policy(observation)
            policy.record(observation, action, rng.standard_normal())
            actions.append(action)
    return np.array(actions)


@pytest.mark.parametrize("number", range(4))
def test_a_loaded_policy_acts_the_same(tmp_path, number):
    policy = agents()[number].make_policy()
    policy.save(tmp_path / "policy.safetensors")
    again = load_policy(tmp_path / "policy.safetensors")
    actions = play(policy)
    np.testing.assert_allclose(play(again), actions, atol=2e-6)  # other memory layouts round differently
    assert actions[:, 1].min() >= 0  # the second action's box is [0, 10]
    again.save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "policy.safetensors").read_bytes()


def test_the_history_matters_and_a_start_forgets_it():
    policy = agents()[1].make_policy()
    observation = np.array([3.0, 0.0, 1.0])
    policy.start()
    first = policy(observation)
    policy.record(observation, first, 5.0)
    assert not np.array_equal(policy(observation), first)
    policy.start()
    np.testing.assert_array_equal(policy(observation), first)


def test_what_is_no_policy_is_refused(tmp_path):
    path = tmp_path / "policy.safetensors"
    for content in (b"", b"short", pickle.dumps({"actor": 1}), b"\x00" * 100):
        path.write_bytes(content)
        with pytest.raises(UserError, match="cannot read the policy"):
            load_policy(path)
    with pytest.raises(UserError, match="cannot read the policy"):
        load_policy(tmp_path / "missing.safetensors")


def test_a_truncated_policy_is_refused(tmp_path):
    path = tmp_path / "policy.safetensors"
    agents()[1].make_policy().save(path)
    content = path.read_bytes()
    for end in range(0, len(content), 97):
        path.write_bytes(content[:end])
        with pytest.raises(UserError):
            load_policy(path)
