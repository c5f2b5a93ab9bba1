"""TD3 and Context TD3: the update against an independent computation, and learning on tiny tasks."""

import copy

import gymnasium as gym
import numpy as np
import pytest
import torch

from etmdp.agents import TD3, ContextTD3
from etmdp.agents.replay import Batch
from etmdp.errors import UserError
from etmdp.evaluation import evaluate
from etmdp.spaces import Spaces
from etmdp.train import learn

TD3_DEFAULTS = {
    "hidden_sizes": [32, 32],
    "learning_rate": 0.001,
    "batch_size": 64,
    "discount": 0.9,
    "target_rate": 0.05,
    "target_noise": 0.2,
    "target_noise_clip": 0.5,
    "policy_delay": 2,
    "replay_size": 5000,
    "fast_update": False,
}
CONTEXT_DEFAULTS = TD3_DEFAULTS | {
    "encoder": "gru",
    "context": "separate",
    "context_size": 8,
    "context_length": 3,
}
EXPLORE = {"correlation": 0.0, "scale": 0.3, "warmup_steps": 200}


def unit_spaces(observation, action):
    ones, zeros = np.ones, np.zeros
    return Spaces(zeros(observation, "f4"), ones(observation, "f4"), zeros(action, "f4"), ones(action, "f4"))


def random_batch(size=8, length=3):
    g = torch.Generator().manual_seed(1)
    r = lambda *shape: torch.randn(*shape, generator=g)  # noqa: E731
    live = (torch.rand(size, 1, generator=g) > 0.5).float()
    return Batch(
        r(size, 3), r(size, 2).tanh(), r(size, 1), r(size, 3), live, r(size, length, 6), r(size, length, 6)
    )


def numpy_mlp(layers, x):
    linear = [layer for layer in layers if isinstance(layer, torch.nn.Linear)]
    for number, layer in enumerate(linear):
        x = x @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
        x = np.maximum(x, 0) if number < len(linear) - 1 else x
    return x


def numpy_gru(gru, rows):
    """Cho et al.'s GRU in torch's parametrisation, written out."""
    w_ih, w_hh, b_ih, b_hh = (p.detach().numpy() for p in gru.parameters())
    size = w_hh.shape[1]
    h = np.zeros((len(rows), size))
    for t in range(rows.shape[1]):
        gi, gh = rows[:, t] @ w_ih.T + b_ih, h @ w_hh.T + b_hh
        sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
        reset, update = sigmoid(gi[:, :size] + gh[:, :size]), sigmoid(gi[:, size:-size] + gh[:, size:-size])
        new = np.tanh(gi[:, -size:] + reset * gh[:, -size:])
        h = (1 - update) * new + update * h
    return h


@pytest.mark.parametrize("kind", ["td3", "context", "shared"])
def test_the_critics_loss_is_the_papers(kind):
    """The loss that an update reports, recomputed in numpy from the weights before it."""
    batch = random_batch()
    if kind == "td3":
        agent = TD3(unit_spaces(3, 2), EXPLORE, **TD3_DEFAULTS)
    else:
        context = "shared" if kind == "shared" else "separate"
        agent = ContextTD3(unit_spaces(3, 2), EXPLORE, **CONTEXT_DEFAULTS | {"context": context})
    with torch.no_grad():  # targets that differ from the networks, or half of the algorithm is not tested
        for parameter in agent.targets.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.05)
    net, target = copy.deepcopy(agent.networks), copy.deepcopy(agent.targets)
    generator = torch.Generator()
    generator.set_state(agent.generator.get_state())
    noise = np.clip(0.2 * torch.randn(8, 2, generator=generator).numpy(), -0.5, 0.5)
    agent.update(batch)

    s, a, r, s_next, live, history, next_history = (x.numpy() for x in batch)
    empty = np.zeros((8, 0))
    z_a_next = empty if kind == "td3" else numpy_gru(target["actor_encoder"].gru, next_history)
    z_c_next = empty if kind == "td3" else numpy_gru(target["critic_encoder"].gru, next_history)
    z_c = empty if kind == "td3" else numpy_gru(net["critic_encoder"].gru, history)
    a_next = np.tanh(numpy_mlp(target["actor"].layers, np.hstack([s_next, z_a_next])))
    a_next = np.clip(a_next + noise, -1, 1)
    inputs = np.hstack([s_next, a_next, z_c_next])
    y = r + 0.9 * live * np.minimum(
        numpy_mlp(target["critic"].q1, inputs), numpy_mlp(target["critic"].q2, inputs)
    )
    inputs = np.hstack([s, a, z_c])
    loss = sum(((numpy_mlp(q, inputs) - y) ** 2).mean() for q in (net["critic"].q1, net["critic"].q2))
    assert agent.losses[0].item() == pytest.approx(loss, rel=1e-5)


def changed(before, after):
    return {
        name
        for name, value in after.state_dict().items()
        if not torch.equal(value, before.state_dict()[name])
    }


def parts(names):
    return {name.split(".")[0] for name in names}


def test_the_actor_and_the_targets_wait_for_the_delay():
    agent = ContextTD3(unit_spaces(3, 2), EXPLORE, **CONTEXT_DEFAULTS)
    networks, targets = copy.deepcopy(agent.networks), copy.deepcopy(agent.targets)
    agent.update(random_batch())
    assert parts(changed(networks, agent.networks)) == {"critic", "critic_encoder"}
    assert not changed(targets, agent.targets)
    after_one = copy.deepcopy(agent.networks)
    agent.update(random_batch())
    assert parts(changed(after_one, agent.networks)) == {"actor", "critic", "actor_encoder", "critic_encoder"}
    for name, value in agent.targets.state_dict().items():  # w' <- tau w + (1 - tau) w'
        expected = 0.05 * agent.networks.state_dict()[name] + 0.95 * targets.state_dict()[name]
        torch.testing.assert_close(value, expected)


def test_a_shared_encoder_is_trained_by_the_critics_only():
    agent = ContextTD3(unit_spaces(3, 2), EXPLORE, **CONTEXT_DEFAULTS | {"context": "shared"})
    assert agent.networks["actor_encoder"] is agent.networks["critic_encoder"]
    assert agent.targets["actor_encoder"] is agent.targets["critic_encoder"]
    encoder = {id(p) for p in agent.networks["actor_encoder"].parameters()}
    actors = {id(p) for group in agent.optimisers["actor"].param_groups for p in group["params"]}
    assert not encoder & actors
    agent.updates = 1
    before = copy.deepcopy(agent.networks["critic_encoder"].state_dict())
    agent.optimisers["critic"].param_groups[0]["lr"] = 0.0  # what moves now was moved by the actor's step
    agent.update(random_batch())
    assert all(torch.equal(before[k], v) for k, v in agent.networks["critic_encoder"].state_dict().items())


def test_termination_does_not_bootstrap():
    agent = TD3(unit_spaces(3, 2), EXPLORE, **TD3_DEFAULTS | {"learning_rate": 0.01, "target_rate": 1.0})
    batch = random_batch()._replace(live=torch.zeros(8, 1))
    for _ in range(600):
        agent.update(batch)
    q1, _ = agent.networks["critic"](batch.observation, batch.action)
    torch.testing.assert_close(q1, batch.reward, atol=0.05, rtol=0.05)


class Reach(gym.Env):
    """One step: the reward is highest, 0, for the action 0.5."""

    observation_space = gym.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), -float((action[0] - 0.5) ** 2), True, False, {"cost": 0.0}


class Recall(gym.Env):
    """Two steps: the first observation says + or -, the second hides it; the second action should repeat it.

    No memoryless policy gets more than -1 on average, a context policy gets 0.
    """

    observation_space = gym.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.sign, self.time = float(self.np_random.choice([-1, 1])), 0
        return np.array([self.sign], np.float32), {}

    def step(self, action):
        self.time += 1
        reward = -float((action[0] - self.sign) ** 2) if self.time == 2 else 0.0
        return np.zeros(1, np.float32), reward, self.time == 2, False, {"cost": 0.0}


@pytest.mark.parametrize("fast", [False, True])
def test_td3_finds_the_best_action(fast):
    env = Reach()
    agent = TD3(Spaces.of(env), EXPLORE, **TD3_DEFAULTS | {"fast_update": fast})
    learn(agent, env, 1200)
    assert agent.policy(np.zeros(1)) == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(
    ("encoder", "context"), [("gru", "separate"), ("gru", "shared"), ("transformer", "separate")]
)
def test_a_context_remembers_what_the_observation_hides(encoder, context):
    env = Recall()
    settings = CONTEXT_DEFAULTS | {"encoder": encoder, "context": context, "fast_update": True}
    agent = ContextTD3(Spaces.of(env), EXPLORE, **settings)
    learn(agent, env, 2500)
    assert evaluate(agent.make_policy(), env, 20)["return"] > -0.2


def test_without_a_context_it_cannot_be_remembered():
    env = Recall()
    agent = TD3(Spaces.of(env), EXPLORE, **TD3_DEFAULTS | {"fast_update": True})
    learn(agent, env, 2500)
    assert evaluate(agent.make_policy(), env, 20)["return"] < -0.5


@pytest.mark.parametrize("change", [{"encoder": "lstm"}, {"context": "both"}, {"context_length": 0}])
def test_bad_contexts_are_refused(change):
    with pytest.raises(UserError, match=next(iter(change))):
        ContextTD3(unit_spaces(3, 2), EXPLORE, **CONTEXT_DEFAULTS | change)
