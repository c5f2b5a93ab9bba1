"""PPO (Schulman et al., 2017): many small steps on a clipped objective. It ignores the constraint."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from etmdp.agents.on_policy import Batch, OnPolicyAgent, normalised

KL_TOLERANCE = 1.5  # times target_kl; as in common implementations


class PPO(OnPolicyAgent):
    """Policy and critics descend one sum of losses, mini-batch by mini-batch.

    Args:
        clip: how far a probability ratio may gain before its gradient is cut.
        target_kl: after an epoch that has moved the policy by 1.5 times this, the batch is done with.
        entropy: weight of the policy's entropy.
        gradient_norm: longer gradients are shortened to this.
        others: see OnPolicyAgent.
    """

    def __init__(
        self,
        *args: Any,
        clip: float = 0.2,
        target_kl: float = 0.02,
        entropy: float = 0.0,
        gradient_norm: float = 0.5,
        **others: Any,
    ) -> None:
        self.clip, self.target_kl, self.entropy, self.gradient_norm = clip, target_kl, entropy, gradient_norm
        super().__init__(*args, **others)

    def advantage(self, batch: Batch) -> Tensor:
        """What the policy climbs."""
        return normalised(batch.advantage["reward"])

    def update(self, batch: Batch) -> None:
        advantage = self.advantage(batch)
        parameters = self.learned_by_adam()
        sums, count = torch.zeros(2, device=self.device), 0
        for _ in range(self.epochs):
            for index in self.minibatches(batch):
                # The clipped objective: the pessimistic of the two gains.
                mean = self.actor(batch.observation[index])
                ratio = torch.exp(
                    self.actor.log_density(mean, batch.action[index]) - batch.log_density[index]
                )
                gain, clipped = (
                    ratio * advantage[index],
                    ratio.clamp(1 - self.clip, 1 + self.clip) * advantage[index],
                )
                policy_loss = -torch.minimum(gain, clipped).mean()
                value_loss = self.value_loss(batch, index)

                self.optimiser.zero_grad(set_to_none=True)
                (policy_loss + value_loss - self.entropy * self.actor.entropy()).backward()
                nn.utils.clip_grad_norm_(parameters, self.gradient_norm)
                self.optimiser.step()
                sums += torch.stack([policy_loss.detach(), value_loss.detach()])
                count += 1
            with torch.no_grad():
                kl = float(self.kl(batch))
            if kl > KL_TOLERANCE * self.target_kl:
                break
        policy_loss, value_loss = (sums / count).tolist()
        self.record(
            policy_loss=policy_loss, value_loss=value_loss, kl=kl, entropy=self.actor.entropy().item()
        )
