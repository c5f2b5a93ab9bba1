"""On a task whose constraint binds and whose best constrained return is known, five seeds each (slow)."""

import numpy as np
import pytest
from on_policy_tasks import Hill, make_agent, play

BUDGET, BEST, BEST_WITHOUT_CONSTRAINT = 5.0, 23.0, 31.0
EPISODES, LAST = 3000, 500  # of a run; those that are judged


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ["cpo", "ppo_lagrangian"])
def test_constrained_methods_spend_the_budget_and_earn_what_it_allows(name, seed):
    agent = make_agent(name, Hill(), seed, batch_size=1000)
    total, cost = np.mean(play(agent, Hill(), EPISODES)[-LAST:], 0)
    print(f"{name} seed {seed}: return {total:.2f}, cost {cost:.2f}")
    assert cost == pytest.approx(BUDGET, rel=0.1)
    assert total == pytest.approx(BEST, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ["ppo", "trpo"])
def test_methods_without_a_constraint_overspend(name, seed):
    agent = make_agent(name, Hill(), seed, batch_size=1000)
    total, cost = np.mean(play(agent, Hill(), EPISODES)[-LAST:], 0)
    print(f"{name} seed {seed}: return {total:.2f}, cost {cost:.2f}")
    assert cost > 2 * BUDGET
    assert total == pytest.approx(BEST_WITHOUT_CONSTRAINT, rel=0.05)
