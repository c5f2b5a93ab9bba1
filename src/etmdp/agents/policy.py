"""A deterministic policy as a user holds it: scaled, with its own history, saved without pickle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import nn

from etmdp.agents.encoders import ENCODERS
from etmdp.agents.gaussian import GaussianActor
from etmdp.agents.networks import Actor
from etmdp.errors import UserError
from etmdp.files import write_atomically
from etmdp.spaces import Spaces

FORMAT = "etmdp-policy-1"


class Policy:
    """pi(s, z) with z from the policy's own history.

    Call `start()` at each episode's start, then `policy(observation)` for the action and
    `record(observation, action, reward)` after each step. `architecture` is what rebuilds the networks.
    """

    def __init__(
        self, spaces: Spaces, architecture: dict[str, Any], actor: nn.Module, encoder: nn.Module | None
    ):
        self.spaces, self.architecture, self.actor, self.encoder = spaces, architecture, actor, encoder
        self.device = next(actor.parameters()).device
        self.length = architecture.get("context_length", 0) if encoder is not None else 0
        self.history = np.zeros((self.length, spaces.observation_size + spaces.action_size + 1), np.float32)

    def start(self) -> None:
        self.history[:] = 0

    def __call__(self, observation: np.ndarray) -> np.ndarray:
        return self.spaces.to_env(self.act(self.spaces.scale(observation)))

    def record(self, observation: np.ndarray, action: np.ndarray, reward: float) -> None:
        if self.length:
            unit = (np.asarray(action) - self.spaces.action_centre) / self.spaces.action_radius
            self.remember(self.spaces.scale(observation), unit, reward)

    def act(self, observation: np.ndarray) -> np.ndarray:
        """In the units of the agent."""
        with torch.inference_mode():
            state = torch.from_numpy(observation)[None].to(self.device)
            context = None
            if self.encoder is not None:
                context = self.encoder(torch.from_numpy(self.history)[None].to(self.device))
            return self.actor(state, context)[0].cpu().numpy()

    def remember(self, observation: np.ndarray, action: np.ndarray, reward: float) -> None:
        """In the units of the agent."""
        if self.length:
            self.history[:-1] = self.history[1:]
            self.history[-1] = np.concatenate([observation, action, [reward]])

    def save(self, path: str | Path) -> None:
        tensors = {f"actor.{k}": v for k, v in self.actor.state_dict().items()}
        if self.encoder is not None:
            tensors |= {f"encoder.{k}": v for k, v in self.encoder.state_dict().items()}
        # One JSON text: safetensors writes several metadata entries in no fixed order.
        about = {"format": FORMAT, "spaces": self.spaces.to_json(), "architecture": self.architecture}
        content = save(
            {k: v.clone(memory_format=torch.contiguous_format) for k, v in tensors.items()},
            metadata={"etmdp": json.dumps(about, sort_keys=True)},
        )
        write_atomically(Path(path), content)


def load_policy(path: str | Path) -> Policy:
    """Rebuilds a saved policy on the CPU; needs nothing but the file."""
    try:
        with safe_open(path, "pt") as file:
            about = json.loads((file.metadata() or {}).get("etmdp", "{}"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    except (OSError, SafetensorError, json.JSONDecodeError) as error:
        raise UserError(f"cannot read the policy {path} ({error}); train the run again") from error
    if about.get("format") != FORMAT:
        raise UserError(
            f"{path} is no policy of this version of etmdp (its format is {about.get('format')!r})"
        )
    spaces, shape = Spaces.from_json(about["spaces"]), about["architecture"]
    encoder = None
    if "encoder" in shape:
        row = spaces.observation_size + spaces.action_size + 1
        encoder = ENCODERS[shape["encoder"]](row, shape["context_length"], shape["context_size"])
    sizes = spaces.observation_size, spaces.action_size
    if shape.get("actor") == "gaussian":
        actor: nn.Module = GaussianActor(*sizes, shape["hidden_sizes"])
    else:
        actor = Actor(*sizes, shape.get("context_size", 0), shape["hidden_sizes"])
    for name, module in (("actor", actor), ("encoder", encoder)):
        if module is not None:
            module.load_state_dict(
                {k.split(".", 1)[1]: v for k, v in tensors.items() if k.startswith(name + ".")}
            )
    return Policy(spaces, shape, actor, encoder)
