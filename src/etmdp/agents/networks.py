"""The networks of TD3 and Context TD3. Without a context, z has no columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn


def mlp(sizes: Sequence[int]) -> nn.Sequential:
    """Linear layers with ReLU between them."""
    layers: list[nn.Module] = []
    for size_in, size_out in itertools.pairwise(sizes):
        layers += [nn.Linear(size_in, size_out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Actor(nn.Module):
    """pi(s, z): a deterministic action in [-1, 1]."""

    def __init__(
        self, observation_size: int, action_size: int, context_size: int, hidden: Sequence[int]
    ) -> None:
        super().__init__()
        self.layers = mlp([observation_size + context_size, *hidden, action_size])

    def forward(self, observation: Tensor, context: Tensor | None = None) -> Tensor:
        inputs = observation if context is None else torch.cat([observation, context], -1)
        return torch.tanh(self.layers(inputs))


class TwinCritic(nn.Module):
    """Q_1(s, a, z) and Q_2(s, a, z), one column each."""

    def __init__(
        self, observation_size: int, action_size: int, context_size: int, hidden: Sequence[int]
    ) -> None:
        super().__init__()
        sizes = [observation_size + action_size + context_size, *hidden, 1]
        self.q1, self.q2 = mlp(sizes), mlp(sizes)

    def forward(
        self, observation: Tensor, action: Tensor, context: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        inputs = self._inputs(observation, action, context)
        return self.q1(inputs), self.q2(inputs)

    def first(self, observation: Tensor, action: Tensor, context: Tensor | None = None) -> Tensor:
        return self.q1(self._inputs(observation, action, context))

    def _inputs(self, observation: Tensor, action: Tensor, context: Tensor | None) -> Tensor:
        return torch.cat([observation, action] if context is None else [observation, action, context], -1)


def adam_tensors(name: str, optimiser: torch.optim.Optimizer) -> Iterator[tuple[str, Tensor]]:
    """What Adam remembers of each parameter, by name, to be read or written in place."""
    for number, parameter in enumerate(p for group in optimiser.param_groups for p in group["params"]):
        state = optimiser.state[parameter]
        if not state:  # Adam makes its moments at the first step; a resumed run needs them before
            state["step"] = torch.zeros((), dtype=torch.float32, device=parameter.device)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        for key, value in state.items():
            yield f"{name}.{number}.{key}", value
