"""Context TD3, the paper's method: TD3 whose actor and critics see a context variable z of the last L transitions.

Comments name the steps of the paper's Algorithm "Context TD3 in ET-MDP". Its early termination is
`etmdp.EarlyTermination`; here terminated transitions just have live = 0.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from etmdp.agents.encoders import ENCODERS
from etmdp.agents.networks import Actor, TwinCritic
from etmdp.agents.off_policy import OffPolicyAgent
from etmdp.agents.policy import Policy
from etmdp.agents.replay import Batch
from etmdp.errors import UserError


class ContextTD3(OffPolicyAgent):
    """TD3 with context models.

    Args:
        encoder: "gru" or "transformer".
        context: "separate" encoders for actor and critics, or one "shared" encoder that only the critics' loss
            trains and the actor uses detached.
        context_size: length of z.
        context_length: L.
    """

    def __init__(
        self,
        *args: Any,
        encoder: str = "gru",
        context: str = "separate",
        context_size: int = 30,
        context_length: int = 7,
        **kwargs: Any,
    ) -> None:
        if encoder not in ENCODERS:
            raise UserError(f"encoder is {encoder!r}; allowed: {', '.join(ENCODERS)}")
        if context not in ("separate", "shared"):
            raise UserError(f"context is {context!r}; allowed: separate, shared")
        if context_length < 1:
            raise UserError(
                f"context_length is {context_length}, must be at least 1 (for no context use TD3)"
            )
        self.encoder, self.shared, self.context_size = encoder, context == "shared", context_size
        super().__init__(*args, context_length=context_length, **kwargs)

    def build_networks(self) -> nn.ModuleDict:
        # Initialise critics, actor and the two context models C_wa, C_wc.
        sizes = (self.spaces.observation_size, self.spaces.action_size, self.context_size, self.hidden_sizes)
        row_size = self.spaces.observation_size + self.spaces.action_size + 1
        critic_encoder = ENCODERS[self.encoder](row_size, self.context_length, self.context_size)
        actor_encoder = critic_encoder
        if not self.shared:
            actor_encoder = ENCODERS[self.encoder](row_size, self.context_length, self.context_size)
        return nn.ModuleDict(
            {
                "actor": Actor(*sizes),
                "critic": TwinCritic(*sizes),
                "actor_encoder": actor_encoder,
                "critic_encoder": critic_encoder,
            }
        )

    def build_optimisers(self) -> dict[str, torch.optim.Optimizer]:
        net = self.networks
        hosts = [net["actor"]] if self.shared else [net["actor"], net["actor_encoder"]]
        return {"actor": self.adam(*hosts), "critic": self.adam(net["critic"], net["critic_encoder"])}

    def make_policy(self) -> Policy:
        architecture = {
            "hidden_sizes": self.hidden_sizes,
            "encoder": self.encoder,
            "context_size": self.context_size,
            "context_length": self.context_length,
        }
        return Policy(self.spaces, architecture, self.networks["actor"], self.networks["actor_encoder"])

    def update(self, batch: Batch) -> None:
        s, a, r, s_next, live, history, next_history = batch
        net, target = self.networks, self.targets
        critic: Any = net["critic"]
        self.updates += 1

        with torch.no_grad():
            # Context variables of the next step, from the next history, by the target encoders.
            z_a_next = target["actor_encoder"](next_history)
            z_c_next = z_a_next if self.shared else target["critic_encoder"](next_history)
            # Perturbed next action and target value y.
            a_next = (target["actor"](s_next, z_a_next) + self.smoothing_noise(a)).clamp(-1, 1)
            y = r + self.discount * live * torch.minimum(*target["critic"](s_next, a_next, z_c_next))

        # Update the critics w_1, w_2 and, through them, their context model w_c.
        z_c = net["critic_encoder"](history)
        q1, q2 = critic(s, a, z_c)
        critic_loss = F.mse_loss(q1, y) + F.mse_loss(q2, y)
        self.step_optimiser("critic", critic_loss)
        self.losses[0] += critic_loss.detach()

        if self.updates % self.policy_delay == 0:
            # Update the actor theta by the deterministic policy gradient and, through it, its context model w_a.
            with torch.no_grad():
                z_c = net["critic_encoder"](history)
            z_a = z_c if self.shared else net["actor_encoder"](history)
            actor_loss = -critic.first(s, net["actor"](s, z_a), z_c).mean()
            self.step_optimiser("actor", actor_loss)
            self.losses[1] += actor_loss.detach()
            # Update the target networks.
            self.update_targets()
