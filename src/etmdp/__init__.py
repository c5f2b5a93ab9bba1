"""Early-terminated MDPs and Context TD3 for any Gymnasium environment, and the paper's experiments."""

from __future__ import annotations

import importlib
from typing import Any

# Loaded when first used: `etmdp --help` and Snakemake's parsing must not wait for torch.
_HOMES = {
    "EarlyTermination": "etmdp.envs",
    "BudgetTimeObservation": "etmdp.envs",
    "make": "etmdp.envs",
    "TD3": "etmdp.agents",
    "ContextTD3": "etmdp.agents",
    "load_policy": "etmdp.agents",
    "Spaces": "etmdp.spaces",
    "learn": "etmdp.train",
    "evaluate": "etmdp.evaluation",
    "UserError": "etmdp.errors",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'etmdp' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
