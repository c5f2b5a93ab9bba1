"""The networks of the on-policy methods: a Gaussian policy and a value function that minds its own units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def tanh_mlp(sizes: Sequence[int], last_gain: float) -> nn.Sequential:
    """Linear layers with tanh between them, orthogonal weights, no bias at first.

    The last layer's gain is the scale of the first outputs: small for a policy, which then starts as noise.
    """
    layers: list[Any] = []
    for size_in, size_out in pairwise(sizes):
        layers += [nn.Linear(size_in, size_out), nn.Tanh()]
    layers.pop()
    for number, layer in enumerate(layers[::2]):
        nn.init.orthogonal_(layer.weight, last_gain if 2 * number == len(layers) - 1 else math.sqrt(2))
        nn.init.zeros_(layer.bias)
    return nn.Sequential(*layers)


class GaussianActor(nn.Module):
    """pi(a | s) = N(mean(s), sigma^2), in the agent's units, with a sigma that does not depend on s.

    Who executes an action clips it to the box; learning uses the density of the sample before clipping, so
    that the policy's gradient is that of a plain Gaussian. The mean stays within the box: a mean that
    wanders far out of it gives the same clipped action whatever the noise, and learns nothing any more.
    """

    def __init__(
        self, observation_size: int, action_size: int, hidden: Sequence[int], initial_log_std: float = 0.0
    ) -> None:
        super().__init__()
        self.layers = tanh_mlp([observation_size, *hidden, action_size], last_gain=0.01)
        self.log_std = nn.Parameter(torch.full((action_size,), float(initial_log_std)))

    def forward(self, observation: Tensor, context: Tensor | None = None) -> Tensor:
        """The mean action. There is no context; the argument is there because a `Policy` passes one."""
        return torch.tanh(self.layers(observation))

    def log_density(self, mean: Tensor, action: Tensor) -> Tensor:
        z = (action - mean) * torch.exp(-self.log_std)
        return (
            -0.5 * z.square().sum(-1) - self.log_std.sum() - 0.5 * math.log(2 * math.pi) * len(self.log_std)
        )

    def entropy(self) -> Tensor:
        return self.log_std.sum() + 0.5 * math.log(2 * math.pi * math.e) * len(self.log_std)


def gaussian_kl(mean: Tensor, log_std: Tensor, new_mean: Tensor, new_log_std: Tensor) -> Tensor:
    """KL(old || new), exact, its mean over the batch."""
    ratio = torch.exp(2 * (log_std - new_log_std))
    shift = (new_mean - mean).square() * torch.exp(-2 * new_log_std)
    return (0.5 * (ratio + shift - 1) + new_log_std - log_std).sum(-1).mean()


class Value(nn.Module):
    """V(s), learned in units of its targets, so that one learning rate suits every scale of reward.

    `network(s)` is the value less `mean`, divided by `std`; both are those of the last batch's targets.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, observation_size: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.layers = tanh_mlp([observation_size, *hidden, 1], last_gain=1.0)
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("std", torch.ones(()))

    def network(self, observation: Tensor) -> Tensor:
        return self.layers(observation).squeeze(-1)

    def forward(self, observation: Tensor) -> Tensor:
        return self.mean + self.std * self.network(observation)

    def take_units(self, target: Tensor) -> None:
        self.mean.copy_(target.mean())
        self.std.copy_(target.std(correction=0).clamp(min=1e-3))

    def loss(self, observation: Tensor, target: Tensor) -> Tensor:
        """The mean squared error, in these units."""
        return F.mse_loss(self.network(observation), (target - self.mean) / self.std)
