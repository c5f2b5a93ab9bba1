"""PPO's rule, PPO-Lagrangian's multiplier, and that both learn."""

import math

import numpy as np
import pytest
import torch
from on_policy_tasks import Hill, make_agent, play

from etmdp.agents.on_policy import Batch


def batch_of(agent, size=64, cost=0.0, reward_advantage=None, cost_advantage=None):
    generator = torch.Generator().manual_seed(0)
    observation = torch.rand(size, 1, generator=generator) * 2 - 1
    with torch.no_grad():
        mean = agent.actor(observation)
        action = mean + agent.actor.log_std.exp() * torch.randn(mean.shape, generator=generator)
        density = agent.actor.log_density(mean, action)
    zero = torch.zeros(size)
    advantage = {"reward": action[:, 0] if reward_advantage is None else reward_advantage}
    advantage["cost"] = zero if cost_advantage is None else cost_advantage
    log_std = agent.actor.log_std.detach().clone()
    target = {"reward": zero, "cost": zero}
    return Batch(observation, action, mean, log_std, density, advantage, target, cost, 20.0)


def test_the_first_step_follows_the_policy_gradient():
    """At ratio 1 nothing is clipped: the gradient is that of -log pi times the normalised advantage."""
    agent = make_agent("ppo", Hill(), minibatch_size=64, epochs=1, gradient_norm=math.inf)
    batch = batch_of(agent)
    a = batch.advantage["reward"]
    expected = -(
        agent.actor.log_density(agent.actor(batch.observation), batch.action)
        * (a - a.mean())
        / a.std(correction=0)
    )
    gradients = torch.autograd.grad(expected.mean(), list(agent.actor.parameters()))
    agent.update(batch)
    for parameter, gradient in zip(agent.actor.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-3, atol=1e-6)


def test_a_ratio_beyond_the_clip_has_no_gradient():
    agent = make_agent("ppo", Hill(), minibatch_size=64, epochs=1, clip=0.2, gradient_norm=math.inf)
    batch = batch_of(agent, reward_advantage=torch.tensor([1.0, -1.0]).repeat(32))
    good = batch.advantage["reward"] > 0
    # As if the old policy had found good actions half as likely, and bad ones twice as likely.
    moved = batch.log_density + torch.where(good, -1, 1) * math.log(2)
    agent.update(Batch(**{**vars(batch), "log_density": moved}))
    assert all(float(p.grad.abs().max()) < 1e-7 for p in agent.actor.parameters())


def test_epochs_end_when_the_policy_has_moved_enough():
    moved = {}
    for target_kl in (1e9, 0.001):
        agent = make_agent(
            "ppo", Hill(), epochs=50, target_kl=target_kl, learning_rate=0.01, minibatch_size=16
        )
        agent.update(batch_of(agent))
        moved[target_kl] = agent.losses["kl"]
    assert 0.0015 < moved[0.001] < moved[1e9] / 10


def test_entropy_bonus_widens_the_policy():
    agent = make_agent("ppo", Hill(), entropy=1.0)
    before = agent.actor.entropy().item()
    agent.update(batch_of(agent, reward_advantage=torch.zeros(64)))
    assert agent.actor.entropy().item() > before


def test_the_multiplier_climbs_with_the_excess_and_stays_within_zero_and_its_cap():
    agent = make_agent("ppo_lagrangian", Hill(), budget=5.0, multiplier_rate=0.5, largest_multiplier=2.0)
    seen = []
    for cost in (15.0, 5.0, 4.0, 0.0, 0.0, 0.0, 1000.0):
        agent.advantage(batch_of(agent, cost=cost))
        seen.append(agent.multiplier)
    # Steps of 0.5 (cost - 5) / 5.
    assert seen == pytest.approx([1.0, 1.0, 0.9, 0.4, 0.0, 0.0, 2.0])
    small = make_agent("ppo_lagrangian", Hill(), budget=0.0, multiplier_rate=0.5, largest_multiplier=2.0)
    small.advantage(batch_of(small, cost=1.0))
    assert small.multiplier == 0.5  # a budget below 1 does not magnify the excess


def test_the_multiplier_is_the_price_of_cost():
    agent = make_agent("ppo_lagrangian", Hill(), budget=5.0, multiplier_rate=1.0)
    agent.multiplier = 0.5
    agent.critics["reward"].std.fill_(4.0)  # so one cost is worth a reward of 2
    reward, cost = torch.tensor([1.0, -1.0, 1.0, -1.0]), torch.tensor([2.0, 2.0, 0.0, 0.0])
    batch = batch_of(agent, 4, 5.0, reward, cost)
    # Gains -3, -5, 1, -1: mean -2, variance 5.
    assert agent.advantage(batch).numpy() * math.sqrt(5) == pytest.approx([-1, -3, 3, 1])
    agent.multiplier = 0.0
    assert agent.advantage(batch).tolist() == pytest.approx([1, -1, 1, -1])


def test_ppo_learns_the_way_up():
    agent, env = make_agent("ppo", Hill()), Hill()
    play(agent, env, 500)
    assert np.mean([total for total, _ in play(agent, env, 20)]) > 0.95 * 31


def test_ppo_lagrangian_pays_no_more_than_it_must():
    agent, env = make_agent("ppo_lagrangian", Hill()), Hill()
    play(agent, env, 600)
    total, cost = np.mean(play(agent, env, 200), 0)
    assert cost == pytest.approx(5, rel=0.3)
    assert total == pytest.approx(23, rel=0.1)
