"""TRPO (Schulman et al., 2015): one natural-gradient step per batch, as long as a trust region allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from etmdp.agents.on_policy import Batch, OnPolicyAgent, normalised
from etmdp.agents.trust_region import Product, conjugate_gradient, fisher_product, flat_gradient, line_search


class TRPO(OnPolicyAgent):
    """The policy takes the step; the critics descend their losses with Adam, mini-batch by mini-batch.

    Args:
        max_kl: the trust region's radius.
        damping: added to the Fisher matrix's diagonal.
        cg_iterations: of the conjugate gradient method.
        line_search_trials: lengths tried, each 0.8 times the last.
        learning_rate: of the critics.
        others: see OnPolicyAgent.
    """

    def __init__(
        self,
        *args: Any,
        max_kl: float = 0.01,
        damping: float = 0.1,
        cg_iterations: int = 10,
        line_search_trials: int = 15,
        learning_rate: float = 0.001,
        **others: Any,
    ) -> None:
        self.max_kl, self.damping = max_kl, damping
        self.cg_iterations, self.line_search_trials = cg_iterations, line_search_trials
        super().__init__(*args, learning_rate=learning_rate, **others)

    def learned_by_adam(self) -> list[nn.Parameter]:
        return [p for critic in self.critics.values() for p in critic.parameters()]

    def update(self, batch: Batch) -> None:
        product = fisher_product(self.actor, batch.observation, self.damping)
        step, acceptable = self.propose(batch, product)
        parameters = list(self.actor.parameters())
        with torch.no_grad():
            moved = bool(step.any()) and line_search(parameters, step, acceptable, self.line_search_trials)
            gain = self.surrogate(batch, normalised(batch.advantage["reward"]))
            self.record(
                policy_loss=-gain,
                value_loss=self.fit_critics(batch),
                kl=self.kl(batch),
                entropy=self.actor.entropy(),
                line_search_failures=not moved,
            )

    def propose(self, batch: Batch, product: Product) -> tuple[Tensor, Callable[[], bool]]:
        """The full step, and the test that a shortened one must pass: closer than the radius, and a gain."""
        advantage = normalised(batch.advantage["reward"])
        before = self.surrogate(batch, advantage)
        direction = self.natural(product, self.gradient(before))
        curvature = direction @ product(direction)
        # Without a gradient there is nowhere to go.
        step = direction * torch.sqrt(2 * self.max_kl / curvature) if curvature > 0 else direction
        return step, lambda: bool(self.kl(batch) <= self.max_kl and self.surrogate(batch, advantage) > before)

    def surrogate(self, batch: Batch, advantage: Tensor) -> Tensor:
        """The mean advantage of the policy, estimated on the batch of the old one."""
        density = self.actor.log_density(self.actor(batch.observation), batch.action)
        return (torch.exp(density - batch.log_density) * advantage).mean()

    def gradient(self, value: Tensor) -> Tensor:
        return flat_gradient(value, list(self.actor.parameters()))

    def natural(self, product: Product, gradient: Tensor) -> Tensor:
        """F^-1 times the gradient."""
        return conjugate_gradient(product, gradient, self.cg_iterations)

    @torch.enable_grad()
    def fit_critics(self, batch: Batch) -> float:
        """Returns the mean loss."""
        losses = []
        for _ in range(self.epochs):
            for index in self.minibatches(batch):
                loss = self.value_loss(batch, index)
                self.optimiser.zero_grad(set_to_none=True)
                loss.backward()
                self.optimiser.step()
                losses.append(loss.detach())
        return float(torch.stack(losses).mean())
