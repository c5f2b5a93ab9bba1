"""The updates of TD3 and Context TD3 on a CPU: equal to those of td3.py and context_td3.py, but faster.

All forward and backward passes are written out (fast_networks.py), with numba for what is not a product of
matrices (fast_kernels.py). The agent's modules and optimisers become views of the numbers used here, so
acting, saving and loading work as before.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from etmdp.agents.encoders import GRUEncoder
from etmdp.agents.replay import Batch

if TYPE_CHECKING:
    from etmdp.agents.off_policy import OffPolicyAgent

try:
    from etmdp.agents import fast_kernels as kernels
    from etmdp.agents import fast_networks as fast

    MISSING = ""
except Exception as error:  # no numba, no place for its cache, a processor it cannot compile for, ...
    MISSING = f"numba does not work here ({type(error).__name__}: {' '.join(str(error).split())})"


def take_over(agent: OffPolicyAgent) -> None:
    """Replaces `agent.update` by the fast one; where there is none, logs why and leaves the agent alone."""
    reason = MISSING or _not_covered(agent)
    if reason:
        logging.getLogger("etmdp").warning("using the plain torch update, which is slower: %s", reason)
        return
    agent.update = FastUpdate(agent)  # type: ignore[method-assign]
    agent.update_path = "numba"


def _not_covered(agent: OffPolicyAgent) -> str:
    if len(agent.hidden_sizes) != 2:
        return f"the fast one is for two hidden layers, not {len(agent.hidden_sizes)}"
    encoder = agent.networks["critic_encoder"] if agent.context_length else None
    if not isinstance(encoder, GRUEncoder | None):
        return f"there is no fast one for a {type(encoder).__name__}"
    return ""


class FastUpdate:
    """`update` of an agent, with the same batches and noise. Without a context, z has no columns."""

    def __init__(self, agent: OffPolicyAgent) -> None:
        self.agent, self.losses = agent, agent.losses.numpy()
        self.with_context, self.shared = agent.context_length > 0, getattr(agent, "shared", False)
        net, batch = agent.networks, agent.batch_size
        actor_parts = {"actor": fast.actor_blocks(net["actor"])}
        critic_parts = {"critic": fast.critic_blocks(net["critic"])}
        if self.with_context:
            # A shared encoder has one name among the parameters, that of its first appearance.
            prefix = "actor_encoder" if self.shared else "critic_encoder"
            critic_parts["encoder"] = fast.encoder_blocks(net["critic_encoder"], prefix)
            if not self.shared:
                actor_parts["encoder"] = fast.encoder_blocks(net["actor_encoder"], "actor_encoder")
        self.of_actor = fast.Store(agent, "actor", actor_parts)
        self.of_critic = fast.Store(agent, "critic", critic_parts)

        def pair(build, store: fast.Store, group: str, *sizes):
            """The network and its target."""
            return (build(w[group], store.gradients[group], *sizes) for w in (store.weights, store.targets))

        memory = torch.empty(4 * batch * sum(agent.hidden_sizes) + 8 * fast.ALIGNMENT)
        for_first, for_actor = memory.chunk(2)  # these two work at the same time
        self.actor, self.target_actor = pair(fast.Actor, self.of_actor, "actor", batch, for_actor)
        self.critic, self.target_critic = pair(fast.Critics, self.of_critic, "critic", batch, memory)
        w1, state, action = self.critic.w["w1"], agent.spaces.observation_size, agent.spaces.action_size
        self.first_critic = fast.first_critic(self.critic.w, batch, for_first)
        self.first_critic.q_gradient[:] = -1 / batch  # of the actor's loss, minus the mean
        if self.with_context:
            length, size = agent.context_length, len(self.of_critic.weights["encoder"]["w_state"])
            memory = torch.empty(6 * size * length * batch + 2 * fast.ALIGNMENT)
            of = (batch, memory, length)
            self.encoder, self.target_encoder = pair(fast.GRU, self.of_critic, "encoder", *of)
            if not self.shared:
                self.actor_encoder, self.target_actor_encoder = pair(fast.GRU, self.of_actor, "encoder", *of)
        self.w_action = self.first_critic.w["w1"][state : state + action]
        self.w_context, self.w_actor_context = w1[state + action :], self.actor.w["w1"][state:]
        # Memory from the system, in the middle of an update, would cost more than most of its kernels.
        self.noise, self.nothing = torch.empty(batch, action), np.empty((batch, 0), np.float32)
        self.actor_inputs = torch.empty(batch, len(self.actor.w["w1"]))
        self.critic_inputs = torch.empty(batch, len(w1))

    @torch.no_grad()
    def __call__(self, batch: Batch) -> None:
        agent = self.agent
        s, a, r, s_next, live = (x.numpy() for x in batch[:5])
        z_a = z_c = z_a_next = z_c_next = self.nothing
        agent.updates += 1
        actor_too = agent.updates % agent.policy_delay == 0

        if self.with_context:
            rows, next_rows = map(_step_by_step, batch[5:])
            z_a_next = z_c_next = self.target_encoder.forward(next_rows)
            if not self.shared:
                z_a_next = self.target_actor_encoder.forward(next_rows)
            z_c = self.encoder.forward(rows)
        a_next = self.target_actor.forward(self._for_actor(s_next, z_a_next))
        torch.randn(self.noise.shape, generator=agent.generator, out=self.noise)
        kernels.smooth(a_next, self.noise.numpy(), agent.target_noise, agent.target_noise_clip)
        q_next = self.target_critic.forward(self._for_critic(s_next, a_next, z_c_next))

        inputs = self._for_critic(s, a, z_c)
        q = self.critic.forward(inputs)
        kernels.td_error(q, q_next, r, live, agent.discount, self.critic.q_gradient, self.losses)
        gradient = self.critic.backward(inputs)
        if self.with_context:
            torch.mm(self.w_context, gradient.t(), out=self.encoder.gradient)
            self.encoder.backward(rows)
        # The targets are not used again in this update, so they may follow at once.
        self.of_critic.adam(with_targets=actor_too)

        if actor_too:
            if self.with_context:
                z_a = z_c = self.encoder.forward(rows)
                if not self.shared:
                    z_a = self.actor_encoder.forward(rows)
            inputs = self._for_actor(s, z_a)
            q = self.first_critic.forward(self._for_critic(s, self.actor.forward(inputs), z_c))
            kernels.actor_loss(q, self.losses)
            gradient = self.first_critic.backward(None)
            torch.mm(gradient, self.w_action.t(), out=self.actor.action_gradient)
            gradient = self.actor.backward(inputs)
            if self.with_context and not self.shared:
                torch.mm(self.w_actor_context, gradient.t(), out=self.actor_encoder.gradient)
                self.actor_encoder.backward(rows)
            self.of_actor.adam(with_targets=True)

    def _for_actor(self, state: np.ndarray, context: np.ndarray) -> Tensor:
        kernels.join(state, context, self.nothing, self.actor_inputs.numpy())
        return self.actor_inputs

    def _for_critic(self, state: np.ndarray, action: np.ndarray, context: np.ndarray) -> Tensor:
        kernels.join(state, action, context, self.critic_inputs.numpy())
        return self.critic_inputs


def _step_by_step(history: Any) -> Tensor:
    """(batch, L, row) to (L batch, row): all of step 0, of step 1, ...; a view, as the replay lays it out."""
    return history.transpose(0, 1).reshape(-1, history.shape[2])
