"""Whole episodes of the current policy, and the advantages estimated from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Rollout:
    """The episodes of one batch. `ends` counts the steps up to each episode's end; after each end comes one
    last observation, whose value stands for what a time limit cut off."""

    observations: list[np.ndarray] = field(default_factory=list)
    actions: list[np.ndarray] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    last_observations: list[np.ndarray] = field(default_factory=list)
    live: list[float] = field(default_factory=list)  # per episode: 0 if it terminated, 1 if it was truncated

    def __len__(self) -> int:
        return len(self.rewards)

    def add(self, observation: np.ndarray, action: np.ndarray, reward: float, cost: float) -> None:
        self.observations.append(observation)
        self.actions.append(action)
        self.rewards.append(float(reward))
        self.costs.append(float(cost))

    def end_episode(self, last_observation: np.ndarray, terminated: bool) -> None:
        self.ends.append(len(self))
        self.last_observations.append(last_observation)
        self.live.append(float(not terminated))

    def episode_sums(self, values: list[float]) -> np.ndarray:
        return np.add.reduceat(values, [0, *self.ends[:-1]])

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything, as arrays by name; `Rollout.of` takes them back."""
        return {name: np.asarray(value) for name, value in vars(self).items() if value}

    @classmethod
    def of(cls, arrays: dict[str, np.ndarray]) -> Rollout:
        rows: dict[str, Any] = {name: list(a) if a.ndim > 1 else a.tolist() for name, a in arrays.items()}
        return cls(**rows)


def gae(
    rewards: list[float],
    values: np.ndarray,
    last_values: np.ndarray,
    ends: list[int],
    discount: float,
    trace: float,
) -> np.ndarray:
    """Generalised advantage estimates (Schulman et al., 2016): sums of (discount * trace)^k delta_{t+k}.

    Args:
        rewards: of all steps, episode after episode.
        values: V at each step's observation.
        last_values: what each episode's end is worth: V of its last observation, or 0 if it terminated.
        ends: number of steps up to each episode's end.
        discount: gamma; trace: lambda.
    """
    # Plain floats: a loop over them is several times faster than one over array elements.
    value, after = values.tolist(), last_values.tolist()
    advantages = np.empty(len(value))
    for episode, end in enumerate(ends):
        start = ends[episode - 1] if episode else 0
        next_value, advantage = after[episode], 0.0
        for t in range(end - 1, start - 1, -1):
            delta = rewards[t] + discount * next_value - value[t]
            advantages[t] = advantage = delta + discount * trace * advantage
            next_value = value[t]
    return advantages
