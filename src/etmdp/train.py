"""The training loop, and a run: a loop that evaluates, keeps its progress and can be killed at any moment."""

from __future__ import annotations

import contextlib
import inspect
import logging
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch

from etmdp import devices, record
from etmdp.agents import ALGORITHMS
from etmdp.checkpoint import Checkpoint
from etmdp.config import RunConfig
from etmdp.envs import make_evaluation_env, make_training_env
from etmdp.envs.early_termination import step_cost
from etmdp.errors import UserError
from etmdp.evaluation import evaluate
from etmdp.files import exclusive, make_folder, write_atomically
from etmdp.progress import Row, write_rows
from etmdp.spaces import Spaces

log = logging.getLogger("etmdp")

OUTPUTS = ("config.json", "progress.csv", "timing.csv", "policy.safetensors")
EVALUATION_SEED = 1_000_000  # evaluation starts are other ones than training's, and the same for every method


@dataclass
class Counts:
    """What safe exploration is about, counted while learning."""

    step: int = 0
    episodes: int = 0
    cost: float = 0.0
    violations: int = 0  # episodes whose cost exceeded the budget C
    recent_return: float = 0.0  # summed over the episodes that ended since the last progress row
    recent_episodes: int = 0

    def row(self) -> Row:
        recent = self.recent_return / self.recent_episodes if self.recent_episodes else float("nan")
        self.recent_return, self.recent_episodes = 0.0, 0
        return {
            "train_cost": self.cost,
            "train_violations": self.violations,
            "train_cost_rate": self.cost / self.step,
            "train_return": recent,
        }


def learn(
    agent: Any,
    env: gym.Env,
    steps: int,
    *,
    seed: int = 0,
    budget: float = 0.0,
    counts: Counts | None = None,
    on_step: Callable[[Counts], None] | None = None,
    on_episode: Callable[[Counts], None] | None = None,
) -> Counts:
    """Lets an agent act and learn in `env` until it has made `steps` steps.

    Each episode is reset with a seed of its own, made of `seed` and the episode's number: nothing of the environment
    needs to be kept between episodes. The episode that reaches `steps` is left where it is.

    Args:
        agent: anything with `start_episode`, `act` and `observe`, such as `etmdp.ContextTD3`.
        env: a Box-to-Box environment with `info["cost"]`, usually wrapped in `etmdp.EarlyTermination`.
        budget: C, for counting violations.
        counts: where an earlier call stopped, to go on from there.
        on_step: called after each step; on_episode: after each whole episode.
    """
    counts = counts or Counts()
    while counts.step < steps:
        episode_seed = np.random.SeedSequence([seed, counts.episodes]).generate_state(1)[0]
        observation, _ = env.reset(seed=int(episode_seed))
        _require_finite("environment's observation", observation, counts.step)
        agent.start_episode()
        episode_return = episode_cost = 0.0
        over = False
        while not over and counts.step < steps:
            action = agent.act(observation)
            _require_finite("policy's action", action, counts.step)
            observation, reward, terminated, truncated, info = env.step(action)
            counts.step += 1
            _require_finite("environment's observation", observation, counts.step)
            _require_finite("environment's reward", reward, counts.step)
            cost = step_cost(env, info)
            agent.observe(float(reward), cost, observation, terminated, truncated)
            episode_return += float(reward)
            episode_cost += cost
            counts.cost += cost
            over = terminated or truncated
            if over:
                counts.episodes += 1
                counts.violations += episode_cost > budget
                counts.recent_return += episode_return
                counts.recent_episodes += 1
            if on_step:
                on_step(counts)
        if over and on_episode:
            on_episode(counts)
    return counts


def _require_finite(name: str, value: Any, step: int) -> None:
    remedy = "lower learning_rate" if "action" in name else "mend the environment"
    if not np.isfinite(value).all():
        raise UserError(f"the {name} at step {step} is not finite: {value}; {remedy}")


def make_agent(config: RunConfig, spaces: Spaces, device: str) -> Any:
    """The agent of a run, untrained."""
    exploration = dict(config.exploration)
    # A run that is shorter than its warm-up would learn nothing.
    exploration["warmup_steps"] = min(exploration["warmup_steps"], config.steps // 4)
    if config.algorithm not in ALGORITHMS:
        raise UserError(f"there is no algorithm {config.algorithm!r}; there are {', '.join(ALGORITHMS)}")
    maker = ALGORITHMS[config.algorithm]
    # Algorithms that solve the constrained problem itself must know its budget.
    constraint = {"budget": config.budget} if "budget" in inspect.signature(maker).parameters else {}
    try:
        return maker(spaces, exploration, config.seed, device, **config.agent, **constraint)
    except TypeError as error:
        raise UserError(
            f"the hyper-parameters of {config.env}/{config.method} do not fit {config.algorithm}: {error}"
        ) from error


def train(
    config: RunConfig,
    out: Path,
    checkpoint_folder: Path,
    device: str = "auto",
    checkpoint_seconds: float = 60.0,
) -> None:
    """Trains one run into the files `OUTPUTS` of the folder `out`.

    A run that was killed continues from its checkpoint and ends with the same progress.csv and policy. Outputs appear
    only when the run is finished. Two processes for one run: the second waits, and finds it finished.
    """
    with exclusive(checkpoint_folder / "lock"):
        if all((out / name).exists() for name in OUTPUTS):
            log.info("%s is finished already", out)
            shutil.rmtree(checkpoint_folder)
            return
        make_folder(out)
        failure = checkpoint_folder / "failed.txt"
        failure.unlink(missing_ok=True)
        try:
            _Run(config, out, checkpoint_folder, device, checkpoint_seconds).finish()
        except Exception as error:
            with contextlib.suppress(UserError):  # on a full disk the first error is the one to tell
                write_atomically(failure, f"{error}\n".encode())
            raise
        shutil.rmtree(checkpoint_folder)


class _Run:
    """A run under way."""

    def __init__(
        self, config: RunConfig, out: Path, folder: Path, device: str, checkpoint_seconds: float
    ) -> None:
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        self.config, self.out, self.folder, self.checkpoint_seconds = config, out, folder, checkpoint_seconds
        self.env = make_training_env(config)
        self.judges = {name: make_evaluation_env(config, name) for name in config.evaluation}
        self.agent = make_agent(config, Spaces.of(self.env), devices.choose(device))
        # Its own object: evaluating in the middle of an episode must not touch the history of the acting policy.
        self.policy = self.agent.make_policy()
        self.counts = Counts()
        self.rows: list[Row] = []
        self.timing: list[Row] = []
        self.resumed, self.seconds_before = 0, 0.0
        self.started, self.source = record.now(), record.source()
        self.checkpoint = Checkpoint(
            folder, f"{config.env}/{config.method}/{config.digest}/seed{config.seed}"
        )
        self._resume()
        self.clock = self.saved_at = time.monotonic()

    def finish(self) -> None:
        config = self.config
        learn(
            self.agent,
            self.env,
            config.steps,
            seed=config.seed,
            budget=config.budget,
            counts=self.counts,
            on_step=self._after_step,
            on_episode=self._after_episode,
        )
        self.policy.save(self.out / "policy.safetensors")
        write_rows(self.out / "timing.csv", self.timing)
        about = record.of_run(self.agent, self.source, self.started, self.resumed)
        write_atomically(self.out / "config.json", record.to_json(config, about))
        write_rows(self.out / "progress.csv", self.rows)

    def _after_step(self, counts: Counts) -> None:
        if counts.step % self.config.evaluate_every:
            return
        row: Row = {"step": counts.step, "episodes": counts.episodes}
        for name, env in self.judges.items():
            episodes = self.config.evaluation[name]["episodes"]
            seed = EVALUATION_SEED + 1000 * self.config.seed
            result = evaluate(self.policy, env, episodes, self.config.budget, seed)
            row |= {key if name == "main" else f"{name}_{key}": value for key, value in result.items()}
        self.rows.append(row | counts.row() | self.agent.read_losses())
        self.timing.append({"step": counts.step, "seconds": round(self._seconds(), 3)})
        # For `etmdp status`; a resumed run writes them anew from its checkpoint.
        write_rows(self.folder / "progress.csv", self.rows)
        write_rows(self.folder / "timing.csv", self.timing)
        before = self.timing[-2] if len(self.timing) > 1 else {"step": 0, "seconds": 0.0}
        rate = (counts.step - before["step"]) / max(self._seconds() - before["seconds"], 1e-9)
        log.info(
            "%s/%s seed %d: step %d of %d, safe return %.1f, %.0f steps/s, %.1f min left",
            *(self.config.env, self.config.method, self.config.seed, counts.step, self.config.steps),
            *(row["et_return"], rate, (self.config.steps - counts.step) / rate / 60),
        )

    def _after_episode(self, counts: Counts) -> None:
        if time.monotonic() - self.saved_at < self.checkpoint_seconds:
            return
        tensors, values = self.agent.state()
        bad = [
            name
            for name, value in tensors.items()
            if value.is_floating_point() and not value.isfinite().all()
        ]
        if bad:
            raise UserError(
                f"{bad[0]} is not finite after {counts.step} steps; check the scale of rewards and observations, "
                "or lower learning_rate"
            )
        progress = {"counts": asdict(counts), "rows": self.rows, "timing": self.timing}
        times = {"started": self.started, "resumed": self.resumed, "seconds": self._seconds()}
        self.checkpoint.save(tensors, {"agent": values, **progress, **times}, self.agent.replay)
        self.saved_at = time.monotonic()

    def _resume(self) -> None:
        loaded = self.checkpoint.load(self.agent.replay)
        if loaded is None:
            return
        tensors, values = loaded
        self.agent.load_state(tensors, values["agent"])
        self.counts = Counts(**values["counts"])
        self.rows, self.timing = values["rows"], values["timing"]
        self.started, self.resumed = values["started"], values["resumed"] + 1
        self.seconds_before = values["seconds"]
        log.info(
            "%s/%s seed %d: continues at step %d",
            self.config.env,
            self.config.method,
            self.config.seed,
            self.counts.step,
        )

    def _seconds(self) -> float:
        """Training time, earlier sittings included."""
        return self.seconds_before + time.monotonic() - self.clock
