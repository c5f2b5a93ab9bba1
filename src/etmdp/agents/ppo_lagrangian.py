"""PPO-Lagrangian (Ray et al., 2019): PPO on reward less a learned price of cost."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from etmdp.agents.on_policy import Batch, normalised
from etmdp.agents.ppo import PPO


class PPOLagrangian(PPO):
    """The multiplier climbs while episodes cost more than the budget, and falls to no less than 0 below it.

    Args:
        budget: C, the mean cost that episodes may have.
        multiplier_rate: of the multiplier's ascent, per batch.
        largest_multiplier: its cap. Where the budget cannot be met it would otherwise grow without end;
            at the cap one cost weighs as much as so many standard deviations of the return.
        others: see PPO.
    """

    signals = ("reward", "cost")

    def __init__(
        self,
        *args: Any,
        budget: float,
        multiplier_rate: float = 0.1,
        largest_multiplier: float = 100.0,
        **others: Any,
    ) -> None:
        self.budget, self.multiplier_rate, self.largest_multiplier = (
            budget,
            multiplier_rate,
            largest_multiplier,
        )
        self.multiplier = 0.0
        super().__init__(*args, **others)

    def advantage(self, batch: Batch) -> Tensor:
        # Ascent on the measured, undiscounted episode cost, relative to the budget: one rate suits all tasks.
        excess = (batch.episode_cost - self.budget) / max(1.0, self.budget)
        self.multiplier = min(
            max(self.multiplier + self.multiplier_rate * excess, 0.0), self.largest_multiplier
        )
        self.record(multiplier=self.multiplier)
        # The price of one cost is in units of the returns' spread: one rate suits all scales of reward. (The
        # spread of the advantages would not do: it shrinks as the critic learns, and the price would fall.)
        reward = batch.advantage["reward"] / self.critics["reward"].std
        return normalised(reward - self.multiplier * batch.advantage["cost"])

    def state(self):
        tensors, values = super().state()
        return tensors, {**values, "multiplier": self.multiplier}

    def load_state(self, tensors, values) -> None:
        super().load_state(tensors, values)
        self.multiplier = values["multiplier"]
