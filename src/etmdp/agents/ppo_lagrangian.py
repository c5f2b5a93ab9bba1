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
        largest_multiplier: its cap. Where the budget cannot be met it would otherwise grow without end; at the
            cap the reward's weight is 1 / (1 + cap), next to nothing already.
        others: see PPO.
    """

    signals = ("reward", "cost")

    def __init__(
        self, *args: Any, budget: float, multiplier_rate: float, largest_multiplier: float, **others: Any
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
        # Cost keeps its unit (it is centred only), so that the multiplier means the same in every batch.
        cost = batch.advantage["cost"]
        gain = normalised(batch.advantage["reward"]) - self.multiplier * (cost - cost.mean())
        return gain / (1 + self.multiplier)

    def state(self):
        tensors, values = super().state()
        return tensors, {**values, "multiplier": self.multiplier}

    def load_state(self, tensors, values) -> None:
        super().load_state(tensors, values)
        self.multiplier = values["multiplier"]
