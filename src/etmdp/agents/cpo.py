"""CPO (Achiam et al., 2017): TRPO whose step also obeys a linear model of the constraint, by its dual."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from torch import Tensor

from etmdp.agents.on_policy import Batch, normalised
from etmdp.agents.trpo import TRPO
from etmdp.agents.trust_region import Product

NOTHING = 1e-12  # a gradient whose natural length squared is below this has no direction


class Dual(NamedTuple):
    """The step is (F^-1 g - nu F^-1 b) / lam, or, if none is feasible, `recovery`: straight down the cost."""

    recovery: bool
    lam: float = 0.0
    nu: float = 0.0


def solve_dual(q: float, r: float, s: float, c: float, delta: float) -> Dual:
    """Multipliers of: maximise g'x subject to c + b'x <= 0 and x'Fx / 2 <= delta (CPO, appendix 10.2).

    Args:
        q: g'F^-1 g > 0; r: g'F^-1 b; s: b'F^-1 b.
        c: how far the constraint is violated now; negative if it is met.
        delta: radius of the trust region.
    """
    free = Dual(False, math.sqrt(q / (2 * delta)))
    # c^2 / s > 2 delta: the constraint's plane does not cut the trust region. A constraint without a gradient
    # is one of those cases too, but then no step changes the cost and only the reward can be minded.
    if s <= NOTHING or (c < 0 and c * c / s >= 2 * delta):
        return free
    if c > 0 and c * c / s >= 2 * delta:
        return Dual(True)
    # The dual is min over lam of: A / (2 lam) + lam B / 2 - r c / s where nu = (lam c + r) / s > 0 (the plane
    # holds the step), and q / (2 lam) + lam delta elsewhere, with nu = 0. Each piece has its minimum at a
    # square root, or at the end of its interval, lam = -r / c.
    a, b = max(q - r * r / s, 0.0), 2 * delta - c * c / s
    border = -r / c if c != 0 else math.inf
    if c == 0:
        held, loose = ((0.0, math.inf), None) if r > 0 else (None, (0.0, math.inf))
    elif c < 0:
        held, loose = (0.0, border), (max(border, 0.0), math.inf)
    else:
        held, loose = (max(border, 0.0), math.inf), (0.0, border)
    candidates = []
    if held is not None and held[1] > 0:
        lam = max(min(max(math.sqrt(a / b), held[0]), held[1]), NOTHING)
        candidates.append((a / (2 * lam) + lam * b / 2 - r * c / s, lam, max((lam * c + r) / s, 0.0)))
    if loose is not None and loose[1] > 0:
        lam = min(max(free.lam, loose[0]), loose[1])
        candidates.append((q / (2 * lam) + lam * delta, lam, 0.0))
    _, lam, nu = min(candidates)
    return Dual(False, lam, nu)


class CPO(TRPO):
    """The constraint: the mean episode cost is at most the budget.

    Args:
        budget: C.
        others: see TRPO.
    """

    signals = ("reward", "cost")

    def __init__(self, *args: Any, budget: float, **others: Any) -> None:
        self.budget = budget
        super().__init__(*args, **others)

    def propose(self, batch: Batch, product: Product) -> tuple[Tensor, Callable[[], bool]]:
        # Per episode, as the budget is: the mean over steps times the steps of an episode.
        advantage = normalised(batch.advantage["reward"])
        cost_advantage = (batch.advantage["cost"] - batch.advantage["cost"].mean()) * batch.episode_length
        excess = batch.episode_cost - self.budget
        gain, cost = self.surrogate(batch, advantage), self.surrogate(batch, cost_advantage)

        # Natural gradients g and b of both, and the three products of which the dual is made.
        g, b = self.gradient(gain), self.gradient(cost)
        natural_g, natural_b = self.natural(product, g), self.natural(product, b)
        q, r, s = (
            float(u.double() @ v.double()) for u, v in ((g, natural_g), (g, natural_b), (b, natural_b))
        )
        if q <= NOTHING and s <= NOTHING:
            return g * 0, lambda: False
        dual = solve_dual(max(q, NOTHING), r, s, excess, self.max_kl)
        step = (
            -natural_b * math.sqrt(2 * self.max_kl / s)
            if dual.recovery
            else (natural_g - dual.nu * natural_b) / dual.lam
        )
        self.record(recovery=dual.recovery, multiplier=dual.nu)

        def acceptable() -> bool:
            """In the trust region; within the budget or no costlier; a gain, unless cost must fall first."""
            return bool(
                self.kl(batch) <= self.max_kl
                and self.surrogate(batch, cost_advantage) - cost <= max(-excess, 0.0)
                and (excess > 0 or self.surrogate(batch, advantage) > gain)
            )

        return step, acceptable
