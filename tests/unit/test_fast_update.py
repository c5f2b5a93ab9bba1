"""The fast update against the torch one, against finite differences, and as a part of a run that is saved."""

from __future__ import annotations

import importlib
import logging
import sys

import numpy as np
import pytest
import torch

from etmdp.agents import ALGORITHMS
from etmdp.agents.off_policy import OffPolicyAgent
from etmdp.agents.replay import Batch
from etmdp.spaces import Spaces

OBSERVATION, ACTION = 5, 3
CONTEXT = {"encoder": "gru", "context": "separate", "context_size": 7, "context_length": 3}
CASES = {
    "td3": {},
    "td3, delay 1": {"policy_delay": 1},
    "td3, wide": {"hidden_sizes": [64, 48], "batch_size": 64},
    "context 1": CONTEXT | {"context_length": 1},
    "context 3": CONTEXT,
    "context 7": CONTEXT | {"context_length": 7, "policy_delay": 1},
    "shared 1": CONTEXT | {"context": "shared", "context_length": 1, "policy_delay": 1},
    "shared 3": CONTEXT | {"context": "shared", "policy_delay": 3},
    "shared 7": CONTEXT | {"context": "shared", "context_length": 7},
}


def make_agent(fast: bool, **changes) -> OffPolicyAgent:
    settings = {
        "hidden_sizes": [19, 23],
        "learning_rate": 0.001,
        "batch_size": 37,
        "discount": 0.9,
        "target_rate": 0.05,
        "target_noise": 0.2,
        "target_noise_clip": 0.3,
        "policy_delay": 2,
        "replay_size": 200,
        "fast_update": fast,
    } | changes
    one, zero = np.ones(OBSERVATION + ACTION, np.float32), np.zeros(OBSERVATION + ACTION, np.float32)
    spaces = Spaces(zero[:OBSERVATION], one[:OBSERVATION], zero[:ACTION], one[:ACTION])
    algorithm = ALGORITHMS["context_td3" if "encoder" in settings else "td3"]
    exploration = {"correlation": 0.0, "scale": 0.1, "warmup_steps": 0}
    return algorithm(spaces, exploration, seed=3, device="cpu", **settings)


def fill(agent: OffPolicyAgent, rows: int = 250) -> None:
    """More rows than the replay holds, in episodes of 11 steps."""
    rng = np.random.default_rng(0)
    for i in range(rows):
        s, s_next = rng.normal(size=(2, OBSERVATION))
        age = i % 11
        agent.replay.add(s, rng.uniform(-1, 1, ACTION), rng.normal(), s_next, float(age < 10), age)


def learn(agent: OffPolicyAgent, updates: int) -> None:
    for _ in range(updates):
        agent.update(agent.replay.sample(agent.batch_size, agent.generator))


def bytes_of(agent: OffPolicyAgent) -> dict[str, bytes]:
    return {name: value.numpy().tobytes() for name, value in agent.state()[0].items()}


@pytest.mark.parametrize("case", CASES)
def test_equals_the_torch_update(case):
    plain, fast = make_agent(False, **CASES[case]), make_agent(True, **CASES[case])
    assert (plain.update_path, fast.update_path) == ("torch", "numba")
    begin = {name: value.clone() for name, value in fast.state()[0].items()}
    for agent in (plain, fast):
        fill(agent)
        learn(agent, 50)
    expected, found = plain.state()[0], fast.state()[0]
    assert expected.keys() == found.keys()
    assert torch.equal(expected.pop("generator"), found.pop("generator"))  # as many random numbers, too
    for name, value in expected.items():
        # With one step from a zero state, the GRU's recurrent matrix has no gradient.
        if not (CASES[case].get("context_length") == 1 and torch.equal(value, begin[name])):
            assert not torch.equal(found[name], begin[name]), f"{name} was not trained"
        difference = (found[name] - value).norm() / value.norm().clamp(min=1e-30)
        # Moments follow single gradients, which a ReLU near 0 may switch.
        assert difference < (1e-4 if "exp_avg" not in name else 1e-2), f"{name}: {difference}"
    assert plain.updates == fast.updates == 50
    assert plain.read_losses() == pytest.approx(fast.read_losses(), rel=1e-4)


@pytest.mark.parametrize("case", ["td3", "context 3", "context 7", "shared 3"])
def test_gradients_are_those_of_the_losses(case):
    """Adam's first moment after one step is 0.1 of the gradient; here against differences of the loss."""
    agent = make_agent(True, **CASES[case] | {"policy_delay": 1})
    reference = make_agent(False, **CASES[case])
    fill(agent)
    batch = agent.replay.sample(agent.batch_size, agent.generator)
    noise = torch.Generator()
    noise.set_state(agent.generator.get_state())
    before = {k: v.clone() for k, v in agent.networks.state_dict().items()}
    agent.update(batch)

    reference.networks.double(), reference.targets.double()
    batch = Batch(*(value if value is None else value.double() for value in batch))
    reference.networks.load_state_dict(before)
    reference.targets.load_state_dict(before)
    names = dict(reference.networks.named_parameters())
    actor_step_begins = {k: v.double() for k, v in before.items()}
    after = agent.networks.state_dict()
    for name in before:  # the actor's loss sees the new critics and their encoder
        if name.startswith(("critic", "critic_encoder")) or (
            "encoder" in name and agent.__dict__.get("shared")
        ):
            actor_step_begins[name] = after[name].double()
    smoothing = torch.randn(batch.action.shape, generator=noise)
    smoothing = (0.2 * smoothing).clamp(-0.3, 0.3).double()

    losses = {"critic": (lambda: critic_loss(reference, batch, smoothing), before)}
    losses["actor"] = (lambda: actor_loss(reference, batch), actor_step_begins)
    for kind, (loss, weights) in losses.items():
        reference.networks.load_state_dict(weights)
        by_tensor = {id(p): name for name, p in names.items()}
        fast_names = {id(p): name for name, p in agent.networks.named_parameters()}
        trained = {by_tensor[id(p)] for p in reference.optimisers[kind].param_groups[0]["params"]}
        moments = {fast_names[id(p)]: s["exp_avg"] for p, s in agent.optimisers[kind].state.items()}
        assert moments.keys() == trained
        for name in sorted(trained):
            direction = torch.randn(names[name].shape, generator=noise, dtype=torch.float64)
            values = []
            for sign in (1, -1):
                names[name].data.add_(direction, alpha=sign * 1e-6)
                values.append(loss())
                names[name].data.add_(direction, alpha=-sign * 1e-6)
            slope = (values[0] - values[1]) / 2e-6
            gradient = moments[name].double() / 0.1
            scale = gradient.norm() * direction.norm()
            assert abs((gradient * direction).sum() - slope) < 1e-4 * scale, f"{kind} loss, {name}"


def context(agent, encoder: str, history):
    """The GRU by its textbook formulas."""
    if history is None:
        return torch.zeros(agent.batch_size, 0, dtype=torch.float64)
    gru = agent.networks[encoder].gru
    w_in, w_state, b_in, b_state = (p.detach() for p in gru.parameters())
    h = torch.zeros(len(history), gru.hidden_size, dtype=torch.float64)
    for t in range(history.shape[1]):
        x_r, x_z, x_n = (history[:, t] @ w_in.T + b_in).chunk(3, 1)
        h_r, h_z, h_n = (h @ w_state.T + b_state).chunk(3, 1)
        r, z = 1 / (1 + torch.exp(-x_r - h_r)), 1 / (1 + torch.exp(-x_z - h_z))
        h = (1 - z) * torch.tanh(x_n + r * h_n) + z * h
    return h


def values_of(layers, *inputs):
    with torch.no_grad():
        return layers(torch.cat(inputs, 1))


def critic_loss(agent, batch, smoothing):
    net, target = agent.networks, agent.targets
    with torch.no_grad():
        z_a, z_c = (agent_context(agent, target, name, batch.next_history) for name in ("actor", "critic"))
    a = (torch.tanh(values_of(target["actor"].layers, batch.next_observation, z_a)) + smoothing).clamp(-1, 1)
    q = [values_of(f, batch.next_observation, a, z_c) for f in (target["critic"].q1, target["critic"].q2)]
    y = batch.reward + agent.discount * batch.live * torch.minimum(*q)
    z = context(agent, "critic_encoder", batch.history)
    q = [values_of(f, batch.observation, batch.action, z) for f in (net["critic"].q1, net["critic"].q2)]
    return sum(((value - y) ** 2).mean() for value in q)


def agent_context(agent, modules, host: str, history):
    if history is None:
        return torch.zeros(agent.batch_size, 0, dtype=torch.float64)
    return modules[f"{host}_encoder"](history)


def actor_loss(agent, batch):
    z_a, z_c = (context(agent, f"{host}_encoder", batch.history) for host in ("actor", "critic"))
    a = torch.tanh(values_of(agent.networks["actor"].layers, batch.observation, z_a))
    return -values_of(agent.networks["critic"].q1, batch.observation, a, z_c).mean()


@pytest.mark.parametrize("case", ["td3", "context 3", "shared 3"])
def test_two_runs_give_the_same_bytes(case):
    agents = [make_agent(True, **CASES[case]) for _ in range(2)]
    for agent in agents:
        fill(agent)
        learn(agent, 20)
    assert bytes_of(agents[0]) == bytes_of(agents[1])


@pytest.mark.parametrize("case", ["td3", "context 3", "shared 3"])
def test_goes_on_from_a_saved_state_to_the_same_bytes(case):
    whole, resumed = make_agent(True, **CASES[case]), make_agent(True, **CASES[case])
    fill(whole)
    fill(resumed)
    learn(whole, 15)
    tensors, values = whole.state()
    assert all(value.is_contiguous() for value in tensors.values())  # as safetensors wants them
    resumed.load_state({name: value.clone() for name, value in tensors.items()}, values)
    for agent in (whole, resumed):
        learn(agent, 15)
    assert bytes_of(whole) == bytes_of(resumed)


@pytest.mark.parametrize("case", ["td3", "context 3"])
def test_the_policy_follows_the_learning(case, tmp_path):
    """Acting uses the weights that the fast update changes, and saving stores them."""
    from etmdp.agents import load_policy

    agent = make_agent(True, **CASES[case])
    fill(agent)
    observation = np.linspace(-1, 1, OBSERVATION).astype(np.float32)
    before = agent.policy(observation)
    learn(agent, 20)
    after = agent.policy(observation)
    assert np.abs(after - before).max() > 1e-3
    agent.policy.save(tmp_path / "policy.safetensors")
    np.testing.assert_allclose(load_policy(tmp_path / "policy.safetensors")(observation), after, atol=1e-6)


def test_a_nan_reaches_the_losses():
    agent = make_agent(True, **CASES["context 3"])
    fill(agent)
    agent.networks["actor"].layers[0].weight.data[0, 0] = float("nan")
    learn(agent, 2)
    assert agent.losses[1].isnan()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (CONTEXT | {"encoder": "transformer"}, "no fast one for a TransformerEncoder"),
        ({"hidden_sizes": [8, 8, 8]}, "two hidden layers, not 3"),
    ],
)
def test_leaves_what_it_does_not_cover_to_torch(changes, reason, caplog):
    with caplog.at_level(logging.WARNING, "etmdp"):
        agent = make_agent(True, **changes)
    assert agent.update_path == "torch"
    assert [reason in record.getMessage() for record in caplog.records] == [True]
    fill(agent)
    learn(agent, 2)
    assert np.isfinite(agent.read_losses()["critic_loss"])


@pytest.fixture
def without_numba(monkeypatch):
    import etmdp.agents

    for name in ("fast_kernels", "fast_networks", "fast_update"):
        monkeypatch.delitem(sys.modules, f"etmdp.agents.{name}", raising=False)
        monkeypatch.delattr(etmdp.agents, name, raising=False)
    monkeypatch.setitem(sys.modules, "numba", None)  # makes `import numba` raise ImportError


@pytest.mark.usefixtures("without_numba")
def test_leaves_all_to_torch_without_numba(caplog):
    with caplog.at_level(logging.WARNING, "etmdp"):
        agent = make_agent(True)
    assert agent.update_path == "torch"
    message = caplog.records[-1].getMessage()
    assert "numba does not work here (" in message
    assert "\n" not in message


def test_tanh_and_sigmoid_are_accurate_to_rounding():
    kernels = importlib.import_module("etmdp.agents.fast_kernels")
    points = np.concatenate([np.linspace(-20, 20, 4001), np.geomspace(1e-8, 1, 200)]).astype(np.float32)
    exact = np.tanh(points.astype(np.float64))
    found = np.array([kernels.tanh(x) for x in points])
    assert np.abs(found).max() <= 1
    np.testing.assert_allclose(found, exact, rtol=5e-7)
    found = np.array([kernels.sigmoid(x) for x in points])
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-points.astype(np.float64))), atol=3e-7)
