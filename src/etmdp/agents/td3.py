"""TD3 (Fujimoto et al., 2018): twin critics, target policy smoothing, delayed policy updates."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from etmdp.agents.networks import Actor, TwinCritic
from etmdp.agents.off_policy import OffPolicyAgent
from etmdp.agents.policy import Policy
from etmdp.agents.replay import Batch


class TD3(OffPolicyAgent):
    """The baseline, and the host of the context models."""

    def build_networks(self) -> nn.ModuleDict:
        sizes = (self.spaces.observation_size, self.spaces.action_size, 0, self.hidden_sizes)
        return nn.ModuleDict({"actor": Actor(*sizes), "critic": TwinCritic(*sizes)})

    def build_optimisers(self) -> dict[str, torch.optim.Optimizer]:
        return {name: self.adam(self.networks[name]) for name in ("actor", "critic")}

    def make_policy(self) -> Policy:
        return Policy(self.spaces, {"hidden_sizes": self.hidden_sizes}, self.networks["actor"], None)

    def update(self, batch: Batch) -> None:
        s, a, r, s_next, live, *_ = batch
        actor = self.networks["actor"]
        critic: Any = self.networks["critic"]
        self.updates += 1

        # Target: the smaller of the two target critics at the smoothed target action.
        with torch.no_grad():
            a_next = (self.targets["actor"](s_next) + self.smoothing_noise(a)).clamp(-1, 1)
            y = r + self.discount * live * torch.minimum(*self.targets["critic"](s_next, a_next))

        # Both critics descend the squared temporal-difference error.
        q1, q2 = critic(s, a)
        critic_loss = F.mse_loss(q1, y) + F.mse_loss(q2, y)
        self.step_optimiser("critic", critic_loss)
        self.losses[0] += critic_loss.detach()

        # The actor climbs the first critic; targets follow, both only every `policy_delay` updates.
        if self.updates % self.policy_delay == 0:
            actor_loss = -critic.first(s, actor(s)).mean()
            self.step_optimiser("actor", actor_loss)
            self.losses[1] += actor_loss.detach()
            self.update_targets()
