"""Context models C_w: the last L transitions (s, a, r), oldest first, to a context variable z."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class GRUEncoder(nn.Module):
    """One GRU layer from a zero state; z is its last hidden state (the paper's choice)."""

    def __init__(self, row_size: int, context_length: int, context_size: int) -> None:
        super().__init__()
        self.gru = nn.GRU(row_size, context_size, batch_first=True)

    def forward(self, history: Tensor) -> Tensor:
        return self.gru(history)[1][0]


class TransformerEncoder(nn.Module):
    """Self-attention over the L rows; z is the mean over them.

    One head and one layer, of the GRU's width, so that the comparison is about the kind of model, not its size.
    """

    def __init__(self, row_size: int, context_length: int, context_size: int) -> None:
        super().__init__()
        self.embed = nn.Linear(row_size, context_size)
        self.position = nn.Parameter(torch.zeros(context_length, context_size))
        self.layer = nn.TransformerEncoderLayer(
            context_size, nhead=1, dim_feedforward=2 * context_size, dropout=0.0, batch_first=True
        )

    def forward(self, history: Tensor) -> Tensor:
        return self.layer(self.embed(history) + self.position).mean(1)


ENCODERS = {"gru": GRUEncoder, "transformer": TransformerEncoder}
