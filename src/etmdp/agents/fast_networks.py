"""Networks of TD3 and Context TD3 as `etmdp.agents.fast_update` runs them: storage, forward and backward.

Products go to torch, the rest to the kernels of fast_kernels.py. Buffers are made once, for one batch size.
Those of hidden layers are in a `memory` that networks may share if one is done before the next begins: the
less memory, the more of it stays in the cache. Results of `forward` last until the network's next call.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from etmdp.agents import fast_kernels as kernels

if TYPE_CHECKING:
    from etmdp.agents.off_policy import OffPolicyAgent

ALIGNMENT = 16  # float32 numbers in a cache line
# A block of storage: its shape and the parameters, by name, as views of it.
Block = tuple[tuple[int, ...], dict[str, Callable[[Tensor], Tensor]]]
Blocks = dict[str, Block]
Tensors = dict[str, Tensor]

# First layers and the GRU's matrices are stored as (in, out): where the inputs are few, MKL's products for
# their gradients are several times faster that way. The twin critics' first layers stand side by side: one
# product serves both.


def critic_blocks(critic: nn.Module) -> Blocks:
    hidden, inputs = critic.get_parameter("q1.0.weight").shape
    second = len(critic.get_parameter("q1.2.weight"))
    columns = (slice(None, hidden), slice(hidden, None))

    def twins(layer: str, view: Callable[..., Tensor]) -> dict[str, Callable[[Tensor], Tensor]]:
        return {f"critic.q{c + 1}.{layer}": partial(view, c=c) for c in (0, 1)}

    return {
        "w1": ((inputs, 2 * hidden), twins("0.weight", lambda x, c: x[:, columns[c]].t())),
        "b1": ((2 * hidden,), twins("0.bias", lambda x, c: x[columns[c]])),
        "w2": ((2, second, hidden), twins("2.weight", lambda x, c: x[c])),
        "b2": ((2, second), twins("2.bias", lambda x, c: x[c])),
        "w3": ((2, second), twins("4.weight", lambda x, c: x[c : c + 1])),
        "b3": ((2,), twins("4.bias", lambda x, c: x[c : c + 1])),
    }


def actor_blocks(actor: nn.Module) -> Blocks:
    names = {
        "w1": "0.weight",
        "b1": "0.bias",
        "w2": "2.weight",
        "b2": "2.bias",
        "w3": "4.weight",
        "b3": "4.bias",
    }
    return _single_blocks(actor, {part: f"layers.{name}" for part, name in names.items()}, "actor", {"w1"})


def encoder_blocks(encoder: nn.Module, prefix: str) -> Blocks:
    names = {"w_in": "weight_ih", "w_state": "weight_hh", "b_in": "bias_ih", "b_state": "bias_hh"}
    parts = {part: f"gru.{name}_l0" for part, name in names.items()}
    return _single_blocks(encoder, parts, prefix, {"w_in", "w_state"})


def _single_blocks(module: nn.Module, names: dict[str, str], prefix: str, transposed: set[str]) -> Blocks:
    blocks: Blocks = {}
    for part, name in names.items():
        parameter = module.get_parameter(name)
        turned = part in transposed
        shape = parameter.t().shape if turned else parameter.shape
        blocks[part] = (tuple(shape), {f"{prefix}.{name}": Tensor.t if turned else (lambda x: x)})
    return blocks


class Store:
    """All numbers of one optimiser, in rows: weights, targets, gradients, first and second moments.

    The parameters of `agent.networks` and `agent.targets` and the optimiser's state become views of them.
    """

    def __init__(self, agent: OffPolicyAgent, optimiser: str, blocks: dict[str, Blocks]) -> None:
        sizes = [math.prod(shape) for group in blocks.values() for shape, _ in group.values()]
        self.rows, self.step = torch.zeros(5, sum(map(_padded, sizes))), torch.zeros(())
        self.learning_rate, self.target_rate = agent.learning_rate, agent.target_rate
        networks, targets = dict(agent.networks.named_parameters()), dict(agent.targets.named_parameters())
        state = agent.optimisers[optimiser].state
        self.weights: dict[str, Tensors] = {group: {} for group in blocks}
        self.targets: dict[str, Tensors] = {group: {} for group in blocks}
        self.gradients: dict[str, Tensors] = {group: {} for group in blocks}
        begin = 0
        for group, parts in blocks.items():
            for part, (shape, views) in parts.items():
                size = math.prod(shape)
                places = [row[begin : begin + size].view(shape) for row in self.rows]
                begin += _padded(size)
                self.weights[group][part], self.targets[group][part], self.gradients[group][part] = places[:3]
                for name, view in views.items():
                    weight, target, _, first, second = map(view, places)
                    for parameter, place in ((networks[name], weight), (targets[name], target)):
                        place.copy_(parameter.data)
                        parameter.data = place
                    state[networks[name]] = {"step": self.step, "exp_avg": first, "exp_avg_sq": second}
        self._arrays = self.rows.numpy(), self.step.view(1).numpy()

    def adam(self, with_targets: bool) -> None:
        kernels.adam(*self._arrays, self.learning_rate, self.target_rate if with_targets else 0.0)


def _padded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _carve(memory: Tensor, *shapes: tuple[int, ...]) -> list[Tensor]:
    """Buffers one after the other in `memory`."""
    sizes = [math.prod(shape) for shape in shapes]
    begins = [sum(map(_padded, sizes[:i])) for i in range(len(sizes))]
    return [memory[i : i + size].view(shape) for i, size, shape in zip(begins, sizes, shapes, strict=True)]


class Critics:
    """n critics on the same inputs. Without `gradients`, those of the parameters go to a scratch place."""

    def __init__(self, weights: Tensors, gradients: Tensors | None, batch: int, memory: Tensor) -> None:
        self.count, second, hidden = weights["w2"].shape
        self.w, self.g = weights, gradients or {part: torch.zeros_like(w) for part, w in weights.items()}
        shapes = (batch, self.count * hidden), (self.count, batch, second)
        self.hidden_1, self.hidden_2, self.gradient_1, self.gradient_2 = _carve(memory, *shapes, *shapes)
        self.q, self.q_gradient = torch.zeros(2, self.count, batch).numpy()
        # Per critic: its matrix, that matrix's gradient, and its columns of the first hidden layer.
        split = (x.split(hidden, 1) for x in (self.hidden_1, self.gradient_1))
        self._parts = list(
            zip(weights["w2"], self.g["w2"], *split, self.hidden_2, self.gradient_2, strict=True)
        )
        b1, b2, w3, b3 = (self.w[part].numpy() for part in ("b1", "b2", "w3", "b3"))
        db1, db2, dw3, db3 = (self.g[part].numpy() for part in ("b1", "b2", "w3", "b3"))
        h1, h2, dh1, dh2 = (
            x.numpy() for x in (self.hidden_1, self.hidden_2, self.gradient_1, self.gradient_2)
        )
        self._first, self._first_backward = (h1, b1), (dh1, h1, db1)
        self._head = (h2, b2, w3, b3, self.q)
        self._head_backward = (h2, w3, self.q_gradient, dh2, dw3, db3, db2)

    def forward(self, inputs: Tensor) -> np.ndarray:
        """Q of each critic, one row each."""
        torch.mm(inputs, self.w["w1"], out=self.hidden_1)
        kernels.bias_relu(*self._first)
        for w2, _, hidden_1, _, hidden_2, _ in self._parts:
            torch.mm(hidden_1, w2.t(), out=hidden_2)
        kernels.critic_head(*self._head)
        return self.q

    def backward(self, inputs: Tensor | None) -> Tensor:
        """From `q_gradient` to the gradient before the first ReLU; with `inputs`, of all parameters too."""
        kernels.critic_head_backward(*self._head_backward)
        for w2, dw2, hidden_1, gradient_1, _, gradient_2 in self._parts:
            if inputs is not None:
                torch.mm(gradient_2.t(), hidden_1, out=dw2)
            torch.mm(gradient_2, w2, out=gradient_1)
        kernels.relu_backward(*self._first_backward)
        if inputs is not None:
            torch.mm(inputs.t(), self.gradient_1, out=self.g["w1"])
        return self.gradient_1


def first_critic(weights: Tensors, batch: int, memory: Tensor) -> Critics:
    """The first of the twin critics by itself, to go through, not to train."""
    hidden = weights["w2"].shape[2]
    parts = {part: weights[part][:1] for part in ("w2", "b2", "w3", "b3")}
    parts |= {"w1": weights["w1"][:, :hidden], "b1": weights["b1"][:hidden]}
    return Critics(parts, None, batch, memory)


class Actor:
    """tanh of a two-layer network."""

    def __init__(self, weights: Tensors, gradients: Tensors, batch: int, memory: Tensor) -> None:
        self.w, self.g = weights, gradients
        shapes = [(batch, size) for size in reversed(weights["w2"].shape)]
        self.hidden_1, self.hidden_2, self.gradient_1, self.gradient_2 = _carve(memory, *shapes, *shapes)
        self.action, self.action_gradient = torch.zeros(2, batch, len(weights["w3"]))
        h1, h2, a = (x.numpy() for x in (self.hidden_1, self.hidden_2, self.action))
        dh1, dh2, da = (x.numpy() for x in (self.gradient_1, self.gradient_2, self.action_gradient))
        b1, b2, b3 = (self.w[part].numpy() for part in ("b1", "b2", "b3"))
        db1, db2, db3 = (self.g[part].numpy() for part in ("b1", "b2", "b3"))
        self._forward = (h1, b1), (h2, b2), (a, b3)
        self._backward = (dh1, h1, db1), (dh2, h2, db2), (da, a, db3)

    def forward(self, inputs: Tensor) -> np.ndarray:
        torch.mm(inputs, self.w["w1"], out=self.hidden_1)
        kernels.bias_relu(*self._forward[0])
        torch.mm(self.hidden_1, self.w["w2"].t(), out=self.hidden_2)
        kernels.bias_relu(*self._forward[1])
        torch.mm(self.hidden_2, self.w["w3"].t(), out=self.action)
        kernels.action(*self._forward[2])
        return self._forward[2][0]

    def backward(self, inputs: Tensor) -> Tensor:
        """From `action_gradient` to the gradients of all parameters, and that before the first ReLU."""
        kernels.action_backward(*self._backward[2])
        torch.mm(self.action_gradient.t(), self.hidden_2, out=self.g["w3"])
        torch.mm(self.action_gradient, self.w["w3"], out=self.gradient_2)
        kernels.relu_backward(*self._backward[1])
        torch.mm(self.gradient_2.t(), self.hidden_1, out=self.g["w2"])
        torch.mm(self.gradient_2, self.w["w2"], out=self.gradient_1)
        kernels.relu_backward(*self._backward[0])
        torch.mm(inputs.t(), self.gradient_1, out=self.g["w1"])
        return self.gradient_1


class GRU:
    """The last state of a GRU; features in rows, the batch of one step after the other in columns."""

    def __init__(self, weights: Tensors, gradients: Tensors, batch: int, memory: Tensor, length: int) -> None:
        self.w, self.g, self.batch, self.length = weights, gradients, batch, length
        size = len(weights["w_state"])
        self.inputs, self.states = _carve(memory, *[(3 * size, length * batch)] * 2)
        self.hidden = torch.zeros(size, (length + 1) * batch)  # the first batch of columns stays zero
        self.gradient = torch.zeros(size, batch)
        self._state_columns, self._hidden_columns = self.states.split(batch, 1), self.hidden.split(batch, 1)
        self._result = self._hidden_columns[-1].t().numpy()
        x, s, h, g = (value.numpy() for value in (self.inputs, self.states, self.hidden, self.gradient))
        self._forward = (x, s, self.w["b_in"].numpy(), self.w["b_state"].numpy(), h)
        self._backward = (x, s, h, g, self.g["b_in"].numpy(), self.g["b_state"].numpy())

    def forward(self, rows: Tensor) -> np.ndarray:
        """`rows` are those of step 0, of step 1, ...; returns (batch, size)."""
        torch.mm(self.w["w_in"].t(), rows.t(), out=self.inputs)
        self._state_columns[0].zero_()
        for t in range(self.length):
            if t:
                torch.mm(self.w["w_state"].t(), self._hidden_columns[t], out=self._state_columns[t])
            kernels.gru_forward(*self._forward, t * self.batch, self.batch)
        return self._result

    def backward(self, rows: Tensor) -> None:
        """From `gradient`, of the last state, to the gradients of all parameters."""
        self.g["b_in"].zero_()
        self.g["b_state"].zero_()
        for t in reversed(range(self.length)):
            kernels.gru_backward(*self._backward, t * self.batch, self.batch)
            if t:
                torch.addmm(self.gradient, self.w["w_state"], self._state_columns[t], out=self.gradient)
        torch.mm(rows.t(), self.inputs.t(), out=self.g["w_in"])
        torch.mm(self.hidden[:, : -self.batch], self.states.t(), out=self.g["w_state"])
