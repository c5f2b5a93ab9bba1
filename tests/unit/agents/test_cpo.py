"""CPO's dual against a numerical optimiser, the guarantees of its step, and that TRPO and CPO learn."""

import math

import numpy as np
import pytest
import torch
from on_policy_tasks import Hill, make_agent, play
from scipy.optimize import minimize
from test_ppo import batch_of

from etmdp.agents.cpo import solve_dual

DELTA = 0.01


def problem(seed, kind):
    """A random g, b, positive definite F, and a c such that the problem is of the wanted kind."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(6, 6))
    fisher = root @ root.T + 0.1 * np.eye(6)
    g, b = rng.normal(size=6), rng.normal(size=6)
    reach = math.sqrt(2 * DELTA * b @ np.linalg.solve(fisher, b))  # the most that a step can change b'x
    share = {
        "slack": rng.uniform(-3, -1.01),  # even the worst step meets the constraint
        "within": rng.uniform(-0.99, 0),  # met now, some steps break it
        "on": 0.0,
        "violated": rng.uniform(0.01, 0.99),  # broken now, some steps mend it
        "recovery": rng.uniform(1.01, 3),  # no step mends it
    }[kind]
    return g, b, fisher, share * reach


def solution(g, b, fisher, c):
    """The step that our dual's multipliers give."""
    natural_g, natural_b = np.linalg.solve(fisher, g), np.linalg.solve(fisher, b)
    q, r, s = g @ natural_g, g @ natural_b, b @ natural_b
    dual = solve_dual(q, r, s, c, DELTA)
    if dual.recovery:
        return dual, -natural_b * math.sqrt(2 * DELTA / s)
    return dual, (natural_g - dual.nu * natural_b) / dual.lam


def optimum(g, b, fisher, c):
    """The same by a general optimiser, in the coordinates in which the trust region is the unit ball."""
    factor = np.linalg.cholesky(fisher)
    u, v = (np.linalg.solve(factor, w) * math.sqrt(2 * DELTA) for w in (g, b))
    constraints = [
        {"type": "ineq", "fun": lambda y: 1 - y @ y, "jac": lambda y: -2 * y},
        {
            "type": "ineq",
            "fun": lambda y: -(c + v @ y) / np.linalg.norm(v),
            "jac": lambda y: -v / np.linalg.norm(v),
        },
    ]
    size, rng = np.linalg.norm(u), np.random.default_rng(0)
    # SLSQP gives up from some starts; the problem is convex, so any success is the optimum.
    for _ in range(20):
        start = rng.normal(size=len(u)) / 10
        found = minimize(
            lambda y: -u @ y / size, start, jac=lambda y: -u / size, constraints=constraints, method="SLSQP"
        )
        if found.success:
            return -found.fun * size
    raise AssertionError(found.message)


@pytest.mark.parametrize("kind", ["slack", "within", "on", "violated"])
@pytest.mark.parametrize("seed", range(25))
def test_the_dual_finds_the_best_feasible_step(kind, seed):
    g, b, fisher, c = problem(seed, kind)
    dual, x = solution(g, b, fisher, c)
    assert not dual.recovery
    assert dual.lam > 0
    assert dual.nu >= 0
    assert c + b @ x <= 1e-7
    assert x @ fisher @ x / 2 <= DELTA * (1 + 1e-7)
    best = optimum(g, b, fisher, c)
    assert g @ x == pytest.approx(best, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("seed", range(25))
def test_recovery_lowers_the_cost_as_far_as_the_trust_region_lets(seed):
    g, b, fisher, c = problem(seed, "recovery")
    dual, x = solution(g, b, fisher, c)
    assert dual.recovery
    assert x @ fisher @ x / 2 == pytest.approx(DELTA)
    assert b @ x == pytest.approx(-math.sqrt(2 * DELTA * b @ np.linalg.solve(fisher, b)))  # Cauchy-Schwarz
    # No feasible step exists.
    assert c + b @ x > 0


def test_a_constraint_without_a_gradient_leaves_the_plain_step():
    for c in (-1.0, 0.0, 1.0):
        dual = solve_dual(q=2.0, r=0.0, s=0.0, c=c, delta=DELTA)
        assert dual == (False, math.sqrt(2.0 / (2 * DELTA)), 0.0)


def test_parallel_gradients_have_a_solution():
    """g = b, constraint met exactly: nothing may be gained, and nothing divides by zero."""
    dual = solve_dual(q=1.0, r=1.0, s=1.0, c=0.0, delta=DELTA)
    assert not dual.recovery
    assert math.isfinite(dual.lam)
    step = (1.0 - dual.nu) / dual.lam
    assert step <= 1e-6


def cost_like(agent, size=256):
    """A batch where cost rises with the action, reward rises with it too."""
    batch = batch_of(agent, size)
    action = batch.action[:, 0]
    return batch, action + 0.3 * action.square(), action


@pytest.mark.parametrize("budget", [0.0, 4.9, 5.0, 5.1, 50.0])
def test_no_step_leaves_the_trust_region_or_breaks_the_cost_limit(budget):
    agent = make_agent("cpo", Hill(), budget=budget)
    for _ in range(10):
        batch, reward, cost = cost_like(agent)
        batch = batch_of(agent, 256, 5.0, reward, cost)
        agent.update(batch)
        with torch.no_grad():
            kl = float(agent.kl(batch))
            change = float(agent.surrogate(batch, (cost - cost.mean()) * batch.episode_length))
        assert kl <= agent.max_kl
        assert change <= max(budget - 5.0, 0.0) + 1e-5


def test_a_failed_line_search_is_counted_and_changes_nothing():
    agent = make_agent("trpo", Hill())
    agent.kl = lambda batch: torch.tensor(1.0)  # nothing is ever close enough
    before = [p.detach().clone() for p in agent.actor.parameters()]
    agent.update(batch_of(agent))
    agent.update(batch_of(agent))
    assert all(p.equal(q) for p, q in zip(agent.actor.parameters(), before, strict=True))
    assert agent.losses["line_search_failures"] == 2


@pytest.mark.parametrize("name", ["trpo", "cpo"])
def test_without_advantages_the_policy_stays(name):
    agent = make_agent(name, Hill())
    before = [p.detach().clone() for p in agent.actor.parameters()]
    agent.update(batch_of(agent, reward_advantage=torch.zeros(64)))
    assert all(p.equal(q) for p, q in zip(agent.actor.parameters(), before, strict=True))
    assert agent.losses["line_search_failures"] == 1


def test_trpo_steps_are_as_long_as_the_trust_region():
    agent = make_agent("trpo", Hill(), damping=0.0001)
    batch = batch_of(agent, 512)
    agent.update(batch)
    losses = agent.losses
    assert 0.4 * agent.max_kl < losses["kl"] <= agent.max_kl
    assert losses["policy_loss"] < 0


def test_trpo_learns_the_way_up():
    agent, env = make_agent("trpo", Hill()), Hill()
    play(agent, env, 600)
    assert np.mean([total for total, _ in play(agent, env, 20)]) > 0.95 * 31


def test_cpo_learns_the_way_up_to_the_budget():
    agent, env = make_agent("cpo", Hill()), Hill()
    play(agent, env, 400)
    total, cost = np.mean(play(agent, env, 100), 0)
    assert cost == pytest.approx(5, rel=0.2)
    assert total == pytest.approx(23, rel=0.1)
