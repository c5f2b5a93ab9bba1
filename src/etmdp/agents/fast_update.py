"""The updates of TD3 and Context TD3 on a CPU: equal to those of td3.py and context_td3.py, several times as fast.

All forward and backward passes are written out (fast_networks.py), with numba for what is not a product of matrices
(fast_kernels.py). The agent's modules and optimisers stay what they were, as views of the numbers used here.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

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
    """`update` of an agent with the same batches and noise. Without context, z is an empty tuple."""

    def __init__(self, agent: OffPolicyAgent) -> None:
        self.agent, self.losses = agent, agent.losses.numpy()
        self.with_context, self.shared = agent.context_length > 0, getattr(agent, "shared", False)
        net, batch = agent.networks, agent.batch_size
        actor_parts, critic_parts = {"actor": fast.actor_blocks(net["actor"])}, {"critic": fast.critic_blocks(net["critic"])}
        if self.with_context:
            # A shared encoder has one name among the parameters, that of its first appearance.
            prefix = "actor_encoder" if self.shared else "critic_encoder"
            critic_parts["encoder"] = fast.encoder_blocks(net["critic_encoder"], prefix)
            if not self.shared:
                actor_parts["encoder"] = fast.encoder_blocks(net["actor_encoder"], "actor_encoder")
        self.of_actor, self.of_critic = fast.Store(agent, "actor", actor_parts), fast.Store(agent, "critic", critic_parts)

        def pair(build, store: fast.Store, group: str, *sizes: int):
            """The network and its target."""
            return (build(w[group], store.gradients[group], *sizes) for w in (store.weights, store.targets))

        self.actor, self.target_actor = pair(fast.Actor, self.of_actor, "actor", batch)
        self.critic, self.target_critic = pair(fast.Critics, self.of_critic, "critic", batch)
        self.first_critic = fast.first_critic(self.of_critic.weights["critic"], batch)
        self.first_critic.q_gradient[:] = -1 / batch  # of the actor's loss, minus the mean
        if self.with_context:
            sizes = (batch, agent.context_length)
            self.encoder, self.target_encoder = pair(fast.GRU, self.of_critic, "encoder", *sizes)
            if not self.shared:
                self.actor_encoder, self.target_actor_encoder = pair(fast.GRU, self.of_actor, "encoder", *sizes)
        # Where the inputs of the critics have the action, and the context; of the actor, the context.
        state, action = agent.spaces.observation_size, agent.spaces.action_size
        first_hidden = agent.hidden_sizes[0]
        self.w_action = self.of_critic.weights["critic"]["w1"][state : state + action, :first_hidden]
        self.w_context = self.of_critic.weights["critic"]["w1"][state + action :]
        self.w_actor_context = self.of_actor.weights["actor"]["w1"][state:]

    @torch.no_grad()
    def __call__(self, batch: Batch) -> None:
        s, a, r, s_next, live, history, next_history = batch
        agent = self.agent
        agent.updates += 1
        actor_too = agent.updates % agent.policy_delay == 0
        rows = z_a = z_c = z_a_next = z_c_next = ()

        if self.with_context:
            rows, next_rows = _step_by_step(history), _step_by_step(next_history)
            z_c_next = z_a_next = (self.target_encoder.forward(next_rows),)
            if not self.shared:
                z_a_next = (self.target_actor_encoder.forward(next_rows),)
            z_c = (self.encoder.forward(rows),)
        a_next = self.target_actor.forward(torch.cat((s_next, *z_a_next), 1))
        kernels.smooth(a_next.numpy(), agent.smoothing_noise(a).numpy())
        q_next = self.target_critic.forward(torch.cat((s_next, a_next, *z_c_next), 1))

        inputs = torch.cat((s, a, *z_c), 1)
        q = self.critic.forward(inputs)
        kernels.td_error(q, q_next, r.numpy(), live.numpy(), agent.discount, self.critic.q_gradient, self.losses)
        gradient = self.critic.backward(inputs)
        if self.with_context:
            torch.mm(self.w_context, gradient.t(), out=self.encoder.gradient)
            self.encoder.backward(rows)
        # The targets are not used again in this update, so they may follow at once.
        self.of_critic.adam(with_targets=actor_too)

        if actor_too:
            if self.with_context:
                z_c = z_a = (self.encoder.forward(rows),)
                if not self.shared:
                    z_a = (self.actor_encoder.forward(rows),)
            inputs = torch.cat((s, *z_a), 1)
            q = self.first_critic.forward(torch.cat((s, self.actor.forward(inputs), *z_c), 1))
            kernels.actor_loss(q, self.losses)
            gradient = self.first_critic.backward(None)
            torch.mm(gradient, self.w_action.t(), out=self.actor.action_gradient)
            gradient = self.actor.backward(inputs)
            if self.with_context and not self.shared:
                torch.mm(self.w_actor_context, gradient.t(), out=self.actor_encoder.gradient)
                self.actor_encoder.backward(rows)
            self.of_actor.adam(with_targets=True)


def _step_by_step(history: Tensor) -> Tensor:
    """(batch, L, row) to (L batch, row): all of step 0, all of step 1, ...; a view if the replay laid it out so."""
    return history.transpose(0, 1).reshape(-1, history.shape[2])
