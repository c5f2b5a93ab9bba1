"""Maps between an environment's observations and actions and the unit boxes in which agents work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from etmdp.errors import UserError

# Bounds beyond this are formal ones (float32's largest number, say) that no observation comes near.
LARGEST_BOUND = 1e6


@dataclass(frozen=True)
class Spaces:
    """Affine maps: bounded observation coordinates and all action coordinates become [-1, 1].

    Unbounded observation coordinates pass unchanged. Saved with each policy, so that a policy takes and gives
    what its environment speaks.
    """

    observation_centre: np.ndarray
    observation_radius: np.ndarray
    action_centre: np.ndarray
    action_radius: np.ndarray

    @classmethod
    def of(cls, env: gym.Env) -> Spaces:
        observation: Any = env.observation_space
        action: Any = env.action_space
        for name, space in (("observation", observation), ("action", action)):
            if not isinstance(space, gym.spaces.Box):
                hint = {
                    "Dict": "; wrap the environment in gymnasium.wrappers.FlattenObservation",
                    "Discrete": "; TD3 and its kin need continuous actions",
                }.get(type(space).__name__, "")
                raise UserError(f"the {name} space of {env} is {space}, but must be a Box{hint}")
            if len(space.shape) != 1:
                raise UserError(
                    f"the {name} space of {env} has the shape {space.shape}, but must be a vector; "
                    "wrap the environment in gymnasium.wrappers.FlattenObservation"
                )
        if not (np.isfinite(action.low).all() and np.isfinite(action.high).all()):
            raise UserError(
                f"the action space of {env} is unbounded; bound it with gymnasium.wrappers.RescaleAction"
            )
        low, high = observation.low.astype(np.float64), observation.high.astype(np.float64)
        bounded = (np.abs(low) < LARGEST_BOUND) & (np.abs(high) < LARGEST_BOUND) & (high > low)
        low, high = np.where(bounded, low, -1.0), np.where(bounded, high, 1.0)
        return cls(
            ((low + high) / 2).astype(np.float32),
            ((high - low) / 2).astype(np.float32),
            ((action.low + action.high) / 2).astype(np.float32),
            ((action.high - action.low) / 2).astype(np.float32),
        )

    @property
    def observation_size(self) -> int:
        return len(self.observation_centre)

    @property
    def action_size(self) -> int:
        return len(self.action_centre)

    def scale(self, observation: np.ndarray) -> np.ndarray:
        return (np.asarray(observation, dtype=np.float32) - self.observation_centre) / self.observation_radius

    def to_env(self, action: np.ndarray) -> np.ndarray:
        """From [-1, 1] to the environment's box."""
        return self.action_centre + np.clip(action, -1.0, 1.0) * self.action_radius

    def to_json(self) -> dict[str, Any]:
        return {name: value.tolist() for name, value in vars(self).items()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Spaces:
        return cls(**{name: np.asarray(value, dtype=np.float32) for name, value in data.items()})
