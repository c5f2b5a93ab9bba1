"""What the on-policy agents share: acting, batches, critics, normalisation, a state that is saved whole."""

import json
import math

import numpy as np
import pytest
import torch
from on_policy_tasks import HYPER_PARAMETERS, Hill, Unbounded, make_agent, play
from safetensors.torch import load, save

from etmdp.agents import load_policy
from etmdp.agents.gaussian import GaussianActor, Value, gaussian_kl
from etmdp.agents.on_policy import normalised
from etmdp.errors import UserError

NAMES = list(HYPER_PARAMETERS)


def bytes_of(agent) -> bytes:
    tensors, values = agent.state()
    return save({k: v.detach().clone() for k, v in tensors.items()}) + json.dumps(values).encode()


# The networks.


def test_density_entropy_and_kl_agree_with_torch():
    torch.manual_seed(0)
    actor, other = GaussianActor(3, 2, [8], -0.3), GaussianActor(3, 2, [8], 0.4)
    observation, action = torch.randn(50, 3), torch.randn(50, 2)
    for net in (actor, other):
        torch.nn.init.normal_(net.layers[-1].weight)
    old, new = (torch.distributions.Normal(net(observation), net.log_std.exp()) for net in (actor, other))
    torch.testing.assert_close(actor.log_density(old.mean, action), old.log_prob(action).sum(-1))
    torch.testing.assert_close(actor.entropy(), old.entropy().sum(-1)[0])
    expected = torch.distributions.kl_divergence(old, new).sum(-1).mean()
    torch.testing.assert_close(gaussian_kl(old.mean, actor.log_std, new.mean, other.log_std), expected)


def test_a_critic_learns_in_units_of_its_targets():
    torch.manual_seed(0)
    critic, observation = Value(3, [8]), torch.randn(4, 3)
    target = torch.tensor([500.0, 700.0, 700.0, 900.0])  # mean 700, standard deviation 141.4
    critic.take_units(target)
    error = (critic(observation) - target) / 141.42136
    torch.testing.assert_close(critic.loss(observation, target), error.square().mean())
    critic.take_units(torch.full((5,), 3.0))  # no spread at all
    torch.testing.assert_close(critic(observation), torch.full((4,), 3.0), atol=0.01, rtol=0)


def test_normalised_advantages_have_mean_zero_and_deviation_one():
    values = normalised(torch.tensor([1.0, 2.0, 3.0, 6.0]))
    assert float(values.mean()) == pytest.approx(0, abs=1e-6)
    assert float(values.square().mean()) == pytest.approx(1, rel=1e-5)
    assert normalised(torch.full((4,), 7.0)).tolist() == [0, 0, 0, 0]


# Acting and batches.


def test_acting_samples_the_policy_and_clips_only_what_is_executed():
    env = Hill()
    agent = make_agent("ppo", env, initial_log_std=0.0)
    samples, executed = [], []
    for _ in range(4000):
        executed.append(agent.act(np.array([0.5], np.float32)))
        samples.append(agent._action)
    mean = agent.actor(torch.tensor([[-0.5]])).item()  # 0.5 of [0, 2], scaled
    assert np.mean(samples) == pytest.approx(mean, abs=0.05)
    assert np.std(samples) == pytest.approx(1, abs=0.05)
    assert np.abs(samples).max() > 2
    np.testing.assert_allclose(executed, 0.2 * np.clip(samples, -1, 1), rtol=1e-6)


@pytest.mark.parametrize(("terminated", "worth"), [(True, 0.0), (False, 40.0)])
def test_a_time_limit_bootstraps_and_a_terminal_state_does_not(terminated, worth):
    agent = make_agent("ppo", Hill(), batch_size=10**6, discount=0.5, trace=1.0)
    critic = agent.critics["reward"]
    torch.nn.init.zeros_(critic.layers[-1].weight)
    critic.layers[-1].bias.data.fill_(40.0)  # V is 40 everywhere
    for step, reward in enumerate((1.0, 2.0)):
        agent.act(np.array([0.1], np.float32))
        agent.observe(
            reward, 0.0, np.array([0.2], np.float32), step == 1 and terminated, step == 1 and not terminated
        )
    batch = agent._make_batch()
    assert batch.target["reward"].tolist() == pytest.approx([1 + 2 / 2 + worth / 4, 2 + worth / 2])
    assert batch.advantage["reward"].tolist() == pytest.approx([2 + worth / 4 - 40, 2 + worth / 2 - 40])


def test_a_batch_is_whole_episodes_and_says_their_cost():
    env = Hill()
    agent = make_agent("cpo", env, batch_size=50, batch_episodes=4)
    seen = []
    agent.update = seen.append
    results = play(agent, env, 8)
    assert [len(batch.action) for batch in seen] == [80, 80]
    assert seen[1].episode_cost == pytest.approx(np.mean([cost for _, cost in results[4:]]))
    assert seen[1].episode_length == 20


def test_minibatches_cover_the_batch_once_without_a_small_rest():
    agent = make_agent("ppo", Hill(), minibatch_size=100)
    batch = type("B", (), {"action": torch.zeros(410, 1)})
    parts = list(agent.minibatches(batch))
    assert sorted(torch.cat(parts).tolist()) == list(range(410))
    assert [len(part) for part in parts] == [103, 103, 102, 102]


# Observations without bounds.


def test_unbounded_observations_are_normalised_and_the_policy_keeps_it(tmp_path):
    env = Unbounded()
    agent = make_agent("ppo", env, batch_size=40)
    first = agent.policy
    seen = []
    for episode in range(10):
        observation, _ = env.reset(seed=episode)
        over = False
        while not over:
            seen.append(observation)
            observation, reward, terminated, over, info = env.step(agent.act(observation))
            agent.observe(reward, info["cost"], observation, terminated, over)
    assert agent.spaces.observation_centre == pytest.approx(np.mean(seen), rel=1e-4)
    assert agent.spaces.observation_radius == pytest.approx(np.std(seen), rel=1e-4)
    agent.policy.save(tmp_path / "policy.safetensors")
    again = load_policy(tmp_path / "policy.safetensors")
    for x in ([600.0], [2000.0]):
        np.testing.assert_array_equal(again(np.array(x)), agent.policy(np.array(x)))
        np.testing.assert_array_equal(first(np.array(x)), agent.policy(np.array(x)))


def test_bounded_observations_keep_their_scale():
    env = Hill()
    agent = make_agent("ppo", env, batch_size=40)
    play(agent, env, 4)
    assert agent.spaces.observation_centre.tolist() == [1.0]
    assert agent.spaces.observation_radius.tolist() == [1.0]


# Keeping and failing.


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("task", [Hill, Unbounded])
def test_the_state_continues_to_the_same_bytes(name, task):
    whole, env = make_agent(name, task(), batch_size=100), task()
    play(whole, env, 17)
    tensors, values = whole.state()
    tensors = load(save({k: v.detach().clone() for k, v in tensors.items()}))
    values = json.loads(json.dumps(values))
    resumed = make_agent(name, task(), seed=5, batch_size=100)
    resumed.load_state(tensors, values)
    assert bytes_of(resumed) == bytes_of(whole)
    assert play(resumed, task(), 20, 17) == play(whole, env, 20, 17)
    assert bytes_of(resumed) == bytes_of(whole)
    assert resumed.read_losses() == whole.read_losses()


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_bytes_whatever_else_draws_numbers(name):
    first, second, other = (make_agent(name, Hill(), seed, batch_size=100) for seed in (3, 3, 4))
    play(first, Hill(), 12)
    torch.manual_seed(99)
    np.random.seed(99)  # noqa: NPY002 (the global state is what must not matter)
    play(second, Hill(), 12)
    play(other, Hill(), 12)
    assert bytes_of(first) == bytes_of(second) != bytes_of(other)


@pytest.mark.parametrize("name", NAMES)
def test_losses_are_means_since_the_last_reading(name):
    agent, env = make_agent(name, Hill(), batch_size=100), Hill()
    assert agent.read_losses() == {}
    play(agent, env, 10)
    losses = agent.read_losses()
    assert {"policy_loss", "value_loss", "kl", "entropy"} <= losses.keys()
    assert all(math.isfinite(value) for value in losses.values())
    assert losses["entropy"] == pytest.approx(agent.actor.entropy().item(), abs=0.1)
    assert agent.read_losses() == {}


@pytest.mark.parametrize("name", NAMES)
def test_the_policy_acts_as_the_mean_and_survives_saving(name, tmp_path):
    agent, env = make_agent(name, Hill(), batch_size=100), Hill()
    play(agent, env, 10)
    agent.policy.save(tmp_path / "policy.safetensors")
    again = load_policy(tmp_path / "policy.safetensors")
    for x in (0.0, 0.7, 2.0):
        mean = agent.actor(torch.tensor([[x - 1.0]])).item()
        assert again(np.array([x])) == pytest.approx([0.2 * np.clip(mean, -1, 1)], abs=1e-6)


@pytest.mark.parametrize("what", ["reward", "cost", "observation"])
def test_numbers_that_are_not_finite_stop_the_run_with_the_step(what):
    agent, env = make_agent("cpo", Hill(), batch_size=40), Hill()
    play(agent, env, 3)
    for _ in range(19):
        agent.act(np.array([np.nan if what == "observation" else 0.1]))
        agent.observe(
            math.nan if what == "reward" else 0.0,
            math.inf if what == "cost" else 0.0,
            np.array([0.1]),
            False,
            False,
        )
    agent.act(np.array([0.1]))
    with pytest.raises(UserError, match=rf"^{what}s in the batch of step 80 is not finite"):
        agent.observe(0.0, 0.0, np.array([0.1]), False, True)


def test_weights_that_are_not_finite_stop_the_run():
    agent, env = make_agent("ppo", Hill(), batch_size=40, learning_rate=1e30), Hill()
    with pytest.raises(UserError, match="of step 40 is not finite"):
        play(agent, env, 2)
