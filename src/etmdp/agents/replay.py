"""Replay of transitions from which histories are rebuilt, so that no history is stored."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


class Batch(NamedTuple):
    """Sampled transitions. `live` is 0 where an episode terminated (no bootstrap), else 1, truncation too."""

    observation: Tensor
    action: Tensor
    reward: Tensor  # one column
    next_observation: Tensor
    live: Tensor  # one column
    history: Tensor | None = None  # (batch, L, s + a + r): what came before `observation`
    next_history: Tensor | None = None  # the same, one step later


class Replay:
    """A ring of rows (s, a, r, s', live), each with its age: how many steps of its episode came before it.

    The history of a row is the L rows before it, as far as its age reaches; earlier ones are zero, and so are
    those the ring has overwritten.
    """

    def __init__(
        self,
        capacity: int,
        observation_size: int,
        action_size: int,
        context_length: int = 0,
        device: str = "cpu",
    ) -> None:
        self.capacity, self.context_length = capacity, context_length
        self.columns = [observation_size, action_size, 1, observation_size, 1]
        self.history_columns = observation_size + action_size + 1
        # Memory is taken from the system only as rows are written.
        self.rows = torch.empty(capacity, sum(self.columns), device=device)
        self.age = torch.empty(capacity, dtype=torch.int64, device=device)
        self.back = torch.arange(context_length, -1, -1, device=device)
        self.stored = 0  # rows ever added

    def __len__(self) -> int:
        return min(self.stored, self.capacity)

    def add(self, observation, action, reward: float, next_observation, live: float, age: int) -> None:
        place = self.stored % self.capacity
        row = np.concatenate([observation, action, [reward], next_observation, [live]], dtype=np.float32)
        self.rows[place].copy_(torch.from_numpy(row))
        self.age[place] = age
        self.stored += 1

    def sample(self, size: int, generator: torch.Generator) -> Batch:
        index = torch.randint(len(self), (size,), generator=generator, device=self.rows.device)
        if self.context_length == 0:
            return Batch(*self.rows.index_select(0, index).split(self.columns, 1))
        # Rows index - L .. index, oldest first; `valid` masks those of earlier episodes. In memory the steps
        # are the outer dimension, so that a recurrent network finds the batch of a step in one piece.
        places = index - self.back[:, None]
        oldest = self.stored % self.capacity if self.stored > self.capacity else 0
        reach = torch.minimum(self.age[index], (index - oldest) % self.capacity)
        valid = self.back[:, None] <= reach
        window = self.rows.index_select(0, (places % self.capacity).flatten())
        window = window.view(self.context_length + 1, size, -1)
        # where, not a product: rows never written may hold NaN.
        past = torch.where(valid[:, :, None], window[:, :, : self.history_columns], 0.0).transpose(0, 1)
        now = Batch(*window[-1].split(self.columns, 1))
        return now._replace(history=past[:, :-1], next_history=past[:, 1:])
