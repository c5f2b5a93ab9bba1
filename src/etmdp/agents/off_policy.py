"""What TD3 and Context TD3 share: acting, replay, one update per step, and a state that can be saved whole."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from etmdp.agents.networks import adam_tensors
from etmdp.agents.policy import Policy
from etmdp.agents.replay import Batch, Replay
from etmdp.errors import UserError
from etmdp.exploration import Exploration
from etmdp.spaces import Spaces

DEFAULT_EXPLORATION = {"correlation": 0.0, "scale": 0.1, "warmup_steps": 1000}


class OffPolicyAgent:
    """An agent that learns one batch per environment step, after a warm-up.

    A subclass builds its networks in `build_networks` and its rule in `update`. `etmdp.agents.fast_update` may
    replace `update` on a CPU by an equal, faster one.

    Args:
        spaces: the environment's, from `Spaces.of(env)`.
        exploration: arguments of `Exploration`; by default white noise after 1000 random steps.
        seed: of weights, noise and batches.
        device: where networks and replay live.
    """

    def __init__(
        self,
        spaces: Spaces,
        exploration: dict[str, Any] | None = None,
        seed: int = 0,
        device: str = "cpu",
        *,
        hidden_sizes: Sequence[int] = (256, 256),
        learning_rate: float = 0.0003,
        batch_size: int = 256,
        discount: float = 0.99,
        target_rate: float = 0.005,
        target_noise: float = 0.2,
        target_noise_clip: float = 0.5,
        policy_delay: int = 2,
        replay_size: int = 1_000_000,
        fast_update: bool = True,
        context_length: int = 0,
    ) -> None:
        exploration = DEFAULT_EXPLORATION if exploration is None else exploration
        hidden_sizes = list(hidden_sizes)
        self.spaces, self.device, self.batch_size = spaces, device, batch_size
        self.discount, self.target_rate, self.policy_delay = discount, target_rate, policy_delay
        self.target_noise, self.target_noise_clip = target_noise, target_noise_clip
        self.learning_rate, self.hidden_sizes, self.context_length = (
            learning_rate,
            hidden_sizes,
            context_length,
        )
        weight_seed, batch_seed, noise_seed = np.random.SeedSequence(seed).generate_state(3)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(weight_seed))
            self.networks = self.build_networks().to(device)
        self.targets = copy.deepcopy(self.networks).requires_grad_(False)
        self.generator = torch.Generator(device).manual_seed(int(batch_seed))
        self.exploration = Exploration(spaces.action_size, **exploration, seed=noise_seed)
        self.replay = Replay(replay_size, spaces.observation_size, spaces.action_size, context_length, device)
        self.losses = torch.zeros(
            2, device=device
        )  # sums of the critic's and the actor's loss since last read
        self.updates = self.read_updates = self.steps = self.age = 0
        self.optimisers = self.build_optimisers()
        self.policy = self.make_policy()
        self.update_path = "torch"
        if fast_update and device == "cpu":
            from etmdp.agents import fast_update as fast

            fast.take_over(self)

    # The subclass's part.

    def build_networks(self) -> nn.ModuleDict:
        raise NotImplementedError

    def build_optimisers(self) -> dict[str, torch.optim.Optimizer]:
        raise NotImplementedError

    def update(self, batch: Batch) -> None:
        raise NotImplementedError

    def make_policy(self) -> Policy:
        """A policy that shares this agent's weights, with a history of its own."""
        raise NotImplementedError

    # Acting and learning.

    def start_episode(self) -> None:
        self.age = 0
        self.policy.start()
        self.exploration.start()

    def act(self, observation: np.ndarray) -> np.ndarray:
        """An exploring action, in the environment's units."""
        self._observation = self.spaces.scale(observation)
        if self.steps < self.exploration.warmup_steps:
            self._action = self.exploration.warmup_action()
        else:
            self._action = self.exploration.perturb(self.policy.act(self._observation))
        return self.spaces.to_env(self._action)

    def observe(
        self, reward: float, cost: float, next_observation: np.ndarray, terminated: bool, truncated: bool
    ) -> None:
        """Stores the step that followed the last `act` and learns from one batch."""
        after = self.spaces.scale(next_observation)
        self.replay.add(self._observation, self._action, reward, after, float(not terminated), self.age)
        self.policy.remember(self._observation, self._action, reward)
        self.age += 1
        self.steps += 1
        if self.steps > self.exploration.warmup_steps:
            self.update(self.replay.sample(self.batch_size, self.generator))

    def smoothing_noise(self, like: Tensor) -> Tensor:
        """Clipped Gaussian noise for the target's action."""
        noise = torch.randn(like.shape, generator=self.generator, device=self.device)
        return noise.mul_(self.target_noise).clamp_(-self.target_noise_clip, self.target_noise_clip)

    def step_optimiser(self, name: str, loss: Tensor) -> None:
        self.optimisers[name].zero_grad(set_to_none=True)
        loss.backward()
        self.optimisers[name].step()

    def update_targets(self) -> None:
        """w' <- tau w + (1 - tau) w'."""
        targets: list[Tensor] = list(self.targets.parameters())
        torch._foreach_lerp_(targets, [p.detach() for p in self.networks.parameters()], self.target_rate)

    def adam(self, *modules: nn.Module) -> torch.optim.Adam:
        parameters = [p for module in modules for p in module.parameters()]
        return torch.optim.Adam(parameters, lr=self.learning_rate, fused=True)

    # Reading and keeping.

    def read_losses(self) -> dict[str, float]:
        """Mean losses since the last call; NaN if there was no update."""
        critic, actor = (self.losses / max(1, self.updates - self.read_updates)).tolist()
        if not np.isfinite([critic, actor]).all():
            name = "critic" if not np.isfinite(critic) else "actor"
            raise UserError(
                f"the {name}'s loss is {critic if name == 'critic' else actor} after {self.steps} steps; "
                "check the scale of rewards and observations, or lower learning_rate"
            )
        learnt = self.updates > self.read_updates
        self.read_updates = self.updates
        self.losses.zero_()
        # The actor learns in one update of policy_delay.
        return {"critic_loss": critic, "actor_loss": actor * self.policy_delay} if learnt else {}

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything but the replay's rows: tensors by name, and plain values. Taken between episodes only."""
        tensors = {name: value.detach().contiguous() for name, value in self._tensors()}
        tensors["generator"] = self.generator.get_state()
        values = {
            "noise_generator": self.exploration.rng.bit_generator.state,
            "counts": [self.updates, self.read_updates, self.steps],
            "update_path": self.update_path,
        }
        return tensors, values

    def load_state(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        if values["update_path"] != self.update_path:
            raise UserError(
                f"the checkpoint was trained with the {values['update_path']} update, this process would go on with "
                f"the {self.update_path} one; use the same installation and device, or delete the checkpoint"
            )
        with torch.no_grad():
            for name, value in self._tensors():
                value.copy_(tensors[name])
        self.generator.set_state(tensors["generator"])
        self.exploration.rng.bit_generator.state = values["noise_generator"]
        self.updates, self.read_updates, self.steps = values["counts"]

    def _tensors(self) -> Iterator[tuple[str, Tensor]]:
        """All tensors that learning changes, by name, to be read or written in place."""
        yield "losses", self.losses
        for kind, modules in (("networks", self.networks), ("targets", self.targets)):
            for name, value in modules.named_parameters():
                yield f"{kind}.{name}", value
        for name, optimiser in self.optimisers.items():
            yield from adam_tensors(name, optimiser)
