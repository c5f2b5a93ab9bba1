"""Exploration noise shared by all off-policy methods."""

from __future__ import annotations

from typing import Any

import numpy as np


class Exploration:
    """First-order autoregressive Gaussian noise: n' = rho n + sqrt(1 - rho^2) e, started anew each episode.

    With correlation 0 it is white. During the warm-up the noise alone acts; white noise is then uniform, as usual
    for TD3.

    Args:
        size: length of an action.
        correlation: rho, from 0 to below 1.
        scale: of the noise added to the policy's action after the warm-up; half the action range is 1.
        warmup_steps: steps of noise alone.
        warmup_scale: of the correlated noise in the warm-up.
    """

    def __init__(
        self,
        size: int,
        correlation: float,
        scale: float,
        warmup_steps: int,
        warmup_scale: float = 1.0,
        seed: Any = None,
    ) -> None:
        self.size, self.correlation, self.scale = size, correlation, scale
        self.warmup_steps, self.warmup_scale = warmup_steps, warmup_scale
        self.rng = np.random.default_rng(seed)
        self.start()

    def start(self) -> None:
        self.noise = self.rng.standard_normal(self.size)

    def warmup_action(self) -> np.ndarray:
        if self.correlation == 0:
            return self.rng.uniform(-1.0, 1.0, self.size)
        return np.clip(self.warmup_scale * self._next(), -1.0, 1.0)

    def perturb(self, action: np.ndarray) -> np.ndarray:
        return np.clip(action + self.scale * self._next(), -1.0, 1.0)

    def _next(self) -> np.ndarray:
        fresh = self.rng.standard_normal(self.size)
        self.noise = self.correlation * self.noise + np.sqrt(1 - self.correlation**2) * fresh
        return self.noise
