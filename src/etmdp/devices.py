"""Which device a run computes on."""

from __future__ import annotations

from etmdp.errors import UserError


def choose(wanted: str = "auto") -> str:
    """`auto` takes a GPU where torch can use one."""
    import torch

    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if wanted.startswith("cuda") and not torch.cuda.is_available():
        raise UserError(
            f"the device {wanted} was asked for, but torch finds no usable GPU; use --device cpu or auto"
        )
    return wanted
