"""What PPO, TRPO and their constrained kin share: acting, batches of whole episodes, critics, saving."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from etmdp.agents.gaussian import GaussianActor, Value, gaussian_kl
from etmdp.agents.networks import adam_tensors
from etmdp.agents.normaliser import Normaliser
from etmdp.agents.policy import Policy
from etmdp.agents.rollout import Rollout, gae
from etmdp.errors import UserError
from etmdp.spaces import Spaces


@dataclass(frozen=True)
class Batch:
    """Whole episodes with what the policy that played them thought. Dicts are by signal: "reward", "cost"."""

    observation: Tensor
    action: Tensor
    mean: Tensor
    log_std: Tensor
    log_density: Tensor
    advantage: dict[str, Tensor]
    target: dict[str, Tensor]  # of the critics
    episode_cost: float  # mean over the episodes, not discounted
    episode_length: float


class OnPolicyAgent:
    """An agent that plays whole episodes until its batch is full, learns from it, and forgets it.

    A subclass has its rule in `update`; `signals` names what it has a critic for. Exploration is the policy's
    own noise: the `exploration` of off-policy agents is taken and not used.

    Args:
        spaces: the environment's, from `Spaces.of(env)`.
        seed: of weights, actions and mini-batches.
        device: where networks learn; acting is always on the CPU.
        batch_size, batch_episodes: a batch has at least so many steps and at least so many episodes.
        minibatch_size, epochs: a batch is gone through so many times, in parts of about this size.
        discount, trace: gamma and lambda of the advantages.
        initial_log_std: of the policy's noise, in units of half the action range.
    """

    signals: tuple[str, ...] = ("reward",)
    update_path = "torch"
    replay = None

    def __init__(
        self,
        spaces: Spaces,
        exploration: dict[str, Any] | None = None,
        seed: int = 0,
        device: str = "cpu",
        *,
        hidden_sizes: Sequence[int] = (64, 64),
        learning_rate: float = 0.0003,
        batch_size: int = 1000,
        batch_episodes: int = 10,
        minibatch_size: int = 256,
        epochs: int = 10,
        discount: float = 0.99,
        trace: float = 0.95,
        initial_log_std: float = 0.0,
    ) -> None:
        self.normaliser = Normaliser(spaces)
        self.spaces = self.normaliser.spaces
        self.device, self.batch_size, self.batch_episodes = device, batch_size, batch_episodes
        self.minibatch_size, self.epochs, self.discount, self.trace = minibatch_size, epochs, discount, trace
        weight_seed, noise_seed = np.random.SeedSequence(seed).generate_state(2)
        self.rng = np.random.default_rng(noise_seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(weight_seed))
            sizes = (spaces.observation_size, spaces.action_size, hidden_sizes)
            self.actor = GaussianActor(*sizes, initial_log_std)
            self.critics = {name: Value(spaces.observation_size, hidden_sizes) for name in self.signals}
        self.networks = nn.ModuleDict({"policy": self.actor, **self.critics}).to(device)
        self.optimiser = torch.optim.Adam(self.learned_by_adam(), lr=learning_rate, fused=True)
        self.hidden_sizes = list(hidden_sizes)
        self.policy = self.make_policy()
        self.rollout = Rollout()
        self.steps = 0
        self.batches = 0  # learnt from since the losses were last read
        self.losses: dict[str, float] = {}  # their sums since then
        self._take_weights()

    # The subclass's part.

    def update(self, batch: Batch) -> None:
        raise NotImplementedError

    def learned_by_adam(self) -> list[nn.Parameter]:
        return list(self.networks.parameters())

    # Acting.

    def make_policy(self) -> Policy:
        """The mean of the policy, sharing this agent's weights and its normalisation of observations."""
        return Policy(self.spaces, {"actor": "gaussian", "hidden_sizes": self.hidden_sizes}, self.actor, None)

    def start_episode(self) -> None:
        pass

    def act(self, observation: np.ndarray) -> np.ndarray:
        """A sampled action, in the environment's units, clipped to its box."""
        self._observation = mean = self.spaces.scale(observation)
        # Plain NumPy on the weights: for one small vector torch would spend its time on dispatch.
        for weight, bias in self._weights:
            mean = np.tanh(weight @ mean + bias)
        self._action = mean + self._std * self.rng.standard_normal(len(mean), dtype=np.float32)
        return self.spaces.to_env(self._action)

    def observe(
        self, reward: float, cost: float, next_observation: np.ndarray, terminated: bool, truncated: bool
    ) -> None:
        """Stores the step that followed the last `act`; learns once an episode has filled the batch."""
        self.rollout.add(self._observation, self._action, reward, cost)
        self.steps += 1
        if terminated or truncated:
            self.rollout.end_episode(self.spaces.scale(next_observation), terminated)
            if len(self.rollout) >= self.batch_size and len(self.rollout.ends) >= self.batch_episodes:
                self._learn()

    def _learn(self) -> None:
        self._check("batch", self.rollout.arrays())
        self.update(self._make_batch())
        self.batches += 1
        self._check("losses", self.losses)
        self._check(
            "weights", {name: p.detach().cpu().numpy() for name, p in self.networks.named_parameters()}
        )
        # Between batches only: within one, the density of an action must stay the same.
        self.normaliser.update(np.stack(self.rollout.observations))
        self.rollout = Rollout()
        self._take_weights()

    def _check(self, where: str, arrays: dict[str, Any]) -> None:
        for name, array in arrays.items():
            if not np.isfinite(array).all():
                raise UserError(
                    f"{name} in the {where} of step {self.steps} is not finite; "
                    "check the environment's rewards and observations, or lower learning_rate"
                )

    def _make_batch(self) -> Batch:
        rollout = self.rollout
        observation, action, last = (
            torch.from_numpy(np.stack(rows)).to(self.device)
            for rows in (rollout.observations, rollout.actions, rollout.last_observations)
        )
        advantage, target = {}, {}
        with torch.no_grad():
            mean = self.actor(observation)
            for signal in self.signals:
                critic, steps = self.critics[signal], getattr(rollout, signal + "s")
                # A time limit is not an end: what it cut off is worth the value of the last observation.
                last_values = critic(last).cpu().numpy() * rollout.live
                values = critic(observation).cpu().numpy()
                estimate = gae(steps, values, last_values, rollout.ends, self.discount, self.trace)
                advantage[signal] = torch.as_tensor(estimate, dtype=torch.float32, device=self.device)
                target[signal] = torch.as_tensor(estimate + values, dtype=torch.float32, device=self.device)
                critic.take_units(target[signal])
            density = self.actor.log_density(mean, action)
        return Batch(
            observation=observation,
            action=action,
            mean=mean,
            log_std=self.actor.log_std.detach().clone(),
            log_density=density,
            advantage=advantage,
            target=target,
            episode_cost=float(rollout.episode_sums(rollout.costs).mean()),
            episode_length=len(rollout) / len(rollout.ends),
        )

    # Parts of the subclasses' updates.

    def minibatches(self, batch: Batch) -> Iterator[Tensor]:
        """Indices of one shuffled pass in parts of nearly equal size: a small rest would be a noisy step."""
        order = torch.from_numpy(self.rng.permutation(len(batch.action))).to(self.device)
        yield from order.tensor_split(max(1, len(order) // self.minibatch_size))

    def value_loss(self, batch: Batch, index: Tensor) -> Tensor:
        """Squared errors of the critics, each in its own units."""
        observation = batch.observation[index]
        losses = [
            critic.loss(observation, batch.target[signal][index]) for signal, critic in self.critics.items()
        ]
        return torch.stack(losses).sum()

    def kl(self, batch: Batch) -> Tensor:
        """How far the policy has moved from the one that played the batch."""
        return gaussian_kl(batch.mean, batch.log_std, self.actor(batch.observation), self.actor.log_std)

    def record(self, **values: float | Tensor) -> None:
        for name, value in values.items():
            self.losses[name] = self.losses.get(name, 0.0) + float(value)

    def _take_weights(self) -> None:
        """Views of the weights for `act` (copies, where they live on another device)."""
        linear = [layer for layer in self.actor.layers if isinstance(layer, nn.Linear)]
        self._weights = [(_array(layer.weight), _array(layer.bias)) for layer in linear]
        self._std = np.exp(_array(self.actor.log_std))

    # Reading and keeping.

    def read_losses(self) -> dict[str, float]:
        """Means over the batches since the last call, empty if there was none; failures are counted."""
        losses = {k: v if k.endswith("_failures") else v / self.batches for k, v in self.losses.items()}
        self.batches, self.losses = 0, {}
        return losses

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything that learning changes, the unfinished batch included. Taken between episodes only."""
        tensors = dict(self._tensors())
        tensors["moments"] = torch.from_numpy(self.normaliser.moments)
        tensors |= {
            f"rollout.{name}": torch.from_numpy(array) for name, array in self.rollout.arrays().items()
        }
        values = {
            "generator": self.rng.bit_generator.state,
            "steps": self.steps,
            "batches": self.batches,
            "losses": self.losses,
        }
        return tensors, values

    def load_state(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        with torch.no_grad():
            for name, value in self._tensors():
                value.copy_(tensors[name])
        self.normaliser.load(tensors["moments"].numpy())
        arrays = {
            k.removeprefix("rollout."): v.numpy() for k, v in tensors.items() if k.startswith("rollout.")
        }
        self.rollout = Rollout.of(arrays)
        self.rng.bit_generator.state = values["generator"]
        self.steps, self.batches, self.losses = values["steps"], values["batches"], dict(values["losses"])
        self._take_weights()

    def _tensors(self) -> Iterator[tuple[str, Tensor]]:
        """All tensors that learning changes, by name, to be read or written in place."""
        yield from self.networks.state_dict().items()
        yield from adam_tensors("adam", self.optimiser)


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy()


def normalised(values: Tensor) -> Tensor:
    """Mean 0, standard deviation 1."""
    return (values - values.mean()) / (values.std(correction=0) + 1e-8)
