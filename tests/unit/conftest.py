"""Small runs for the tests."""

import pytest

from etmdp.config import RunConfig

AGENT = {
    "hidden_sizes": [16, 16],
    "learning_rate": 0.001,
    "batch_size": 16,
    "discount": 0.99,
    "target_rate": 0.005,
    "target_noise": 0.2,
    "target_noise_clip": 0.5,
    "policy_delay": 2,
    "replay_size": 10000,
    "fast_update": False,
}
CONTEXT = {"encoder": "gru", "context": "separate", "context_size": 8, "context_length": 3}


@pytest.fixture
def make_config():
    """A function that makes the config of a short maze run, with changes."""

    def make(algorithm="td3", agent=None, **changes):
        hyper_parameters = AGENT | (CONTEXT if algorithm == "context_td3" else {}) | (agent or {})
        return RunConfig(
            **{
                "env": "maze_1",
                "env_id": "etmdp/Maze1-v0",
                "env_kwargs": {},
                "horizon": 32,
                "budget": 0,
                "early_termination": {"budget": 0, "end_reward": -10, "cost_aware": False},
                "method": algorithm,
                "algorithm": algorithm,
                "agent": hyper_parameters,
                "exploration": {"correlation": 0.9, "scale": 0.3, "warmup_steps": 50},
                "steps": 200,
                "evaluations": 10,
                "evaluation": {"main": {"episodes": 1}},
                "seed": 0,
            }
            | changes
        )

    return make
