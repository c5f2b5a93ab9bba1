"""The resolved configuration of one run: plain data, checked, with a digest that is the run's identity.

Imports neither torch nor Gymnasium: every cluster job parses the Snakefile, and that imports this module.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from etmdp.errors import UserError

# Raise when training behaviour changes, so that old results cannot pass for new ones: see test_golden.py.
TRAINING_VERSION = 1


@dataclass(frozen=True)
class RunConfig:
    """All that decides the outcome of a run, apart from the machine.

    Attributes:
        env: the environment's key in params.yaml; env_id: what is made, a Gymnasium id or `module:attribute`.
        horizon: steps after which an episode is truncated.
        budget: C, the cost a whole episode may have.
        early_termination: None, or `budget` and `end_reward` of the ET-MDP and whether it is `cost_aware`.
        agent: hyper-parameters of `algorithm`.
        steps: environment steps; evaluations: how many times the policy is evaluated meanwhile.
        evaluation: named evaluations; "main" gives the plain columns, others prefix theirs.
    """

    env: str
    env_id: str
    env_kwargs: dict[str, Any]
    horizon: int
    budget: float
    early_termination: dict[str, Any] | None
    method: str
    algorithm: str
    agent: dict[str, Any]
    exploration: dict[str, Any]
    steps: int
    evaluations: int
    evaluation: dict[str, dict[str, Any]]
    seed: int
    training_version: int = TRAINING_VERSION

    @property
    def digest(self) -> str:
        """Eight hex digits of everything but the seed: seeds of one setting share a folder."""
        identity = {k: v for k, v in asdict(self).items() if k != "seed"}
        text = json.dumps(identity, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    @property
    def evaluate_every(self) -> int:
        return max(1, self.steps // self.evaluations)

    def to_json(self, indent: int | None = None) -> str:
        return json.dumps(asdict(self), sort_keys=True, indent=indent)

    @classmethod
    def from_dict(cls, data: Any) -> RunConfig:
        if not isinstance(data, dict):
            raise UserError("a run config must be a JSON object with the keys of etmdp.config.RunConfig")
        names = {f.name for f in fields(cls)}
        missing = sorted(names - data.keys() - {"training_version"})
        unknown = sorted(data.keys() - names)
        if missing or unknown:
            what = f"lacks {missing}" if missing else f"has the unknown keys {unknown}"
            raise UserError(f"the run config {what}; take it from `etmdp runs --json` or a run's config.json")
        config = cls(**data)
        check(config)
        return config

    @classmethod
    def load(cls, source: str) -> RunConfig:
        """From JSON text or from a file: a config, or a finished run's config.json."""
        text = source
        if not source.lstrip().startswith("{"):
            try:
                text = Path(source).read_text()
            except (OSError, UnicodeDecodeError) as error:
                raise UserError(f"cannot read the run config {source}: {error}") from error
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise UserError(f"the run config is no valid JSON ({error}): {source[:80]}") from error
        if isinstance(data, dict) and "config" in data:
            data = data["config"]
        return cls.from_dict(data)


def check(config: RunConfig) -> None:
    """Raises UserError for values that no run can have; ranges of hyper-parameters are the schema's work."""

    def require(ok: bool, sentence: str) -> None:
        if not ok:
            raise UserError(f"run config of {config.env}/{config.method}: {sentence}")

    def whole(value: Any, least: int) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and value >= least

    require(
        config.training_version == TRAINING_VERSION,
        f"made for training version {config.training_version}, this is version {TRAINING_VERSION}; "
        "check out the matching commit",
    )
    for name in ("env", "env_id", "method", "algorithm"):
        value = getattr(config, name)
        require(isinstance(value, str) and value != "", f"{name} is {value!r}, must be a name")
    for name in ("env_kwargs", "agent", "exploration", "evaluation"):
        require(isinstance(getattr(config, name), dict), f"{name} must be a mapping")
    require(whole(config.steps, 1), f"steps is {config.steps!r}, must be a whole number of at least 1")
    require(whole(config.seed, 0), f"seed is {config.seed!r}, must be a whole number of at least 0")
    require(whole(config.horizon, 1), f"horizon is {config.horizon!r}, must be a whole number of at least 1")
    require(
        whole(config.evaluations, 1) and config.evaluations <= config.steps,
        f"evaluations is {config.evaluations!r}, must be between 1 and the {config.steps} steps",
    )
    require(
        isinstance(config.budget, int | float) and 0 <= config.budget < float("inf"),
        f"budget is {config.budget!r}, must be a finite number of at least 0",
    )
    ending = config.early_termination
    require(
        ending is None
        or (isinstance(ending, dict) and ending.keys() == {"budget", "end_reward", "cost_aware"}),
        "early_termination must be null or have exactly the keys budget, cost_aware and end_reward",
    )
    require("main" in config.evaluation, "evaluation lacks the entry `main`")
    for name, entry in config.evaluation.items():
        require(
            isinstance(entry, dict)
            and entry.keys() <= {"episodes", "kwargs"}
            and whole(entry.get("episodes"), 1),
            f"evaluation.{name} must have `episodes`, a whole number of at least 1, and may have `kwargs`",
        )
    length = config.agent.get("context_length")
    require(
        length is None or whole(length, 1),
        f"context_length is {length!r}, must be a whole number of at least 1",
    )
