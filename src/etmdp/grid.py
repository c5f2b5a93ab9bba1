"""From params.yaml to the run table: environments x methods x variants x seeds, each run once.

Imports no torch: Snakemake parses this in every job.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from etmdp.config import RunConfig
from etmdp.errors import UserError

SCHEMA = "workflow/schemas/params.schema.yaml"


@dataclass(frozen=True)
class Run:
    """One row of the run table."""

    variant: str
    config: RunConfig

    @functools.cached_property
    def name(self) -> str:
        """The run's path below results/runs, which is its identity."""
        c = self.config
        return f"{c.env}/{c.method}/{self.variant}-{c.digest}/seed{c.seed}"


class Grid:
    """The experiments of a params file at one scale.

    Attributes:
        params: the checked params file.
        scale: the chosen scale's name.
        experiments: names of the experiments that are on, in the file's order.
    """

    def __init__(self, params: dict[str, Any], scale: str | None = None) -> None:
        self.params = params
        self.scale = scale or params["scale"]
        settings = _pick(params["scales"], self.scale, "scale", "scales")
        names = settings["experiments"]
        names = list(params["experiments"]) if names == "all" else names
        for name in names:
            _pick(params["experiments"], name, f"scales.{self.scale}.experiments", "experiments")
        for name in settings.get("environments", []):
            _pick(params["environments"], name, f"scales.{self.scale}.environments", "environments")
        self.settings = settings
        self.experiments = [name for name in params["experiments"] if name in names]
        # Every experiment is resolved, also those that are off: a mistake is told before it costs anything.
        self._runs = {name: self._expand(name) for name in params["experiments"]}

    @classmethod
    def load(cls, path: str | Path = "params.yaml", scale: str | None = None, schema: str | Path = SCHEMA) -> Grid:
        return cls(read_params(path, schema), scale)

    def runs(self, experiment: str | None = None) -> list[Run]:
        """The runs of one experiment, or of all that are on; a run that two experiments share appears once."""
        names = self.experiments if experiment is None else [experiment]
        return list({run.name: run for name in names for run in self._runs[name]}.values())

    def _expand(self, experiment: str) -> list[Run]:
        spec = self.params["experiments"][experiment]
        wanted = self.settings.get("environments")
        seeds = self.settings["seeds"][: spec.get("seeds", len(self.settings["seeds"]))]
        runs = []
        for number, block in enumerate(spec.get("runs", [])):
            where = f"experiments.{experiment}.runs[{number}]"
            for env in block["environments"]:
                for method in block["methods"]:
                    for variant in block.get("variants", ["main"]):
                        run = self._resolve(env, method, variant, where)
                        if wanted is None or env in wanted:
                            runs += [replace(run, config=replace(run.config, seed=seed)) for seed in seeds]
        return runs

    @functools.lru_cache(maxsize=None)  # noqa: B019 (a grid lives as long as the process)
    def _resolve(self, env: str, method: str, variant: str, where: str) -> Run:
        params = self.params
        env_spec = _pick(params["environments"], env, f"{where}.environments", "environments")
        family = _pick(params["families"], env_spec["family"], f"environments.{env}.family", "families")
        method_spec = _pick(params["methods"], method, f"{where}.methods", "methods")
        change = _pick(params["variants"], variant, f"{where}.variants", "variants")
        settings = family | env_spec
        algorithm = method_spec["algorithm"]
        agent = self._hyper_parameters(algorithm, f"methods.{method}.algorithm")
        if "encoder" in agent:
            agent.setdefault("context_length", settings["context_length"])
        foreign = sorted(set(change.get("agent", {})) - agent.keys())
        if foreign:
            raise UserError(
                f"variants.{variant}.agent: {foreign[0]} is no hyper-parameter of {algorithm}, so {where} cannot "
                f"use this variant with the method {method}; it has {', '.join(sorted(agent))}"
            )
        agent |= change.get("agent", {})
        if not method_spec["early_termination"] and {"end_reward", "cost_aware"} & change.keys():
            raise UserError(
                f"variants.{variant} changes early termination, which the method {method} in {where} does not have"
            )
        exploration = change.get("exploration", settings["exploration"])
        cost_aware = change.get("cost_aware", False)
        config = RunConfig(
            env=env,
            env_id=settings["id"],
            env_kwargs=settings.get("kwargs", {}),
            horizon=settings["horizon"],
            budget=settings["budget"],
            early_termination={
                # The tightened approximation ends an episode at its first cost; cost-aware uses the real budget.
                "budget": settings["budget"] if cost_aware else 0,
                "end_reward": change.get("end_reward", settings["end_reward"]),
                "cost_aware": cost_aware,
            }
            if method_spec["early_termination"]
            else None,
            method=method,
            algorithm=algorithm,
            agent=agent,
            exploration=_pick(params["explorations"], exploration, f"environments.{env}.exploration", "explorations"),
            steps=self.settings["steps"][settings["length"]],
            evaluations=params["evaluations"],
            evaluation=settings["evaluation"],
            seed=self.settings["seeds"][0],
        )
        RunConfig.from_dict(vars(config))
        if variant != "main" and config == self._resolve(env, method, "main", where).config:
            variant = "main"  # the same run under another name exists once
        return Run(variant, config)

    def _hyper_parameters(self, algorithm: str, where: str) -> dict[str, Any]:
        spec = dict(_pick(self.params["algorithms"], algorithm, where, "algorithms"))
        parent = spec.pop("extends", None)
        if parent is None:
            return spec
        if "extends" in self.params["algorithms"].get(parent, {}):
            raise UserError(f"algorithms.{algorithm}.extends: {parent} extends another one itself; name that one")
        return self._hyper_parameters(parent, f"algorithms.{algorithm}.extends") | spec


def read_params(path: str | Path, schema: str | Path = SCHEMA) -> dict[str, Any]:
    """Reads and checks a params file; each mistake becomes one UserError naming the key and what is allowed."""
    import jsonschema

    try:
        text = Path(path).read_bytes().decode("utf-8")
        params = yaml.safe_load(text)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; run from the project's root or name the file") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is no text file: byte {error.start} is not UTF-8") from error
    except yaml.YAMLError as error:
        raise UserError(f"{path} is no valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(params, dict):
        kind = "empty" if params is None else f"a {type(params).__name__}"
        raise UserError(f"{path} is {kind}; it must be a mapping with the keys described in {SCHEMA}")
    validator = jsonschema.Draft202012Validator(yaml.safe_load(Path(schema).read_text()))
    error = jsonschema.exceptions.best_match(validator.iter_errors(params))
    if error is not None:
        raise UserError(f"{path}: {_explain(error)}")
    return params


def _explain(error: Any) -> str:
    """One sentence for one schema violation."""
    key = ".".join(str(part) for part in error.absolute_path) or "the top level"
    if error.validator == "additionalProperties":
        allowed = list(error.schema.get("properties", {}))
        unknown = next(name for name in error.instance if name not in allowed)
        return f"{key} has the unknown key {unknown!r}{_hint(str(unknown), allowed)}"
    if error.validator == "enum":
        return f"{key} is {error.instance!r}{_hint(str(error.instance), error.validator_value)}"
    if error.validator in ("propertyNames", "pattern"):
        return f"{key} has the name {error.instance!r}; names are letters, digits and underscores"
    return f"{key}: {error.message}"


def _pick(table: dict[str, Any], name: str, where: str, section: str) -> Any:
    if name not in table:
        raise UserError(f"{where} names {name!r}, which {section} does not define{_hint(name, table)}")
    return table[name]


def _hint(name: str, allowed: Iterable[Any]) -> str:
    names = [str(a) for a in allowed]
    near = difflib.get_close_matches(name, names, 1)
    return f"; did you mean {near[0]!r}?" if near else f"; allowed: {', '.join(names)}"
