"""From params.yaml to the run table: environments x methods x variants x seeds, each run once.

Imports no torch: Snakemake parses this in every job.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from etmdp.config import RunConfig
from etmdp.errors import UserError
from etmdp.params import SCHEMA, hint, read_params


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
        everything = settings["experiments"] == "all"
        names = list(params["experiments"]) if everything else settings["experiments"]
        for name in names:
            _pick(params["experiments"], name, f"scales.{self.scale}.experiments", "experiments")
        for name in settings.get("environments", []):
            _pick(params["environments"], name, f"scales.{self.scale}.environments", "environments")
        self.settings = settings
        self._check_references()
        # Every experiment is resolved, also those that are off: a mistake is told before it costs anything.
        self._runs = {name: self._expand(name) for name in params["experiments"]}
        empty = [name for name in names if "runs" in params["experiments"][name] and not self._runs[name]]
        if empty and not everything:
            raise UserError(
                f"scales.{self.scale}.experiments names {empty[0]!r}, which has no run on any of "
                f"scales.{self.scale}.environments; leave the experiment out or add an environment of it"
            )
        self.experiments = [name for name in params["experiments"] if name in names and name not in empty]

    @classmethod
    def load(
        cls, path: str | Path = "params.yaml", scale: str | None = None, schema: str | Path = SCHEMA
    ) -> Grid:
        return cls(read_params(path, schema), scale)

    def runs(self, experiment: str | None = None) -> list[Run]:
        """The runs of one experiment, or of all that are on; a run that two of them share appears once."""
        names = self.experiments if experiment is None else [experiment]
        return list({run.name: run for name in names for run in self._runs[name]}.values())

    def _check_references(self) -> None:
        """Also what no experiment uses may only name what exists."""
        for key, section, target in (
            ("family", "environments", "families"),
            ("exploration", "environments", "explorations"),
            ("exploration", "families", "explorations"),
            ("exploration", "variants", "explorations"),
            ("extends", "algorithms", "algorithms"),
            ("algorithm", "methods", "algorithms"),
        ):
            for name, spec in self.params[section].items():
                if key in spec:
                    _pick(self.params[target], spec[key], f"{section}.{name}.{key}", target)

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

    @functools.cache  # noqa: B019 (a grid lives as long as the process)
    def _resolve(self, env: str, method: str, variant: str, where: str) -> Run:
        params = self.params
        env_spec = _pick(params["environments"], env, f"{where}.environments", "environments")
        method_spec = _pick(params["methods"], method, f"{where}.methods", "methods")
        change = _pick(params["variants"], variant, f"{where}.variants", "variants")
        settings = params["families"][env_spec["family"]] | env_spec
        algorithm = method_spec["algorithm"]
        agent = self._hyper_parameters(algorithm)
        if "encoder" in agent:
            agent.setdefault("context_length", settings["context_length"])
        foreign = sorted(set(change.get("agent", {})) - agent.keys())
        if foreign:
            raise UserError(
                f"variants.{variant}.agent: {foreign[0]} is no hyper-parameter of {algorithm}, so {where} "
                f"cannot use this variant with the method {method}; it has {', '.join(sorted(agent))}"
            )
        agent |= change.get("agent", {})
        if not method_spec["early_termination"] and {"end_reward", "cost_aware"} & change.keys():
            raise UserError(
                f"variants.{variant} changes early termination, which the method {method} does not have, "
                f"so {where} cannot use them together"
            )
        cost_aware = change.get("cost_aware", False)
        steps = self.settings["steps"][settings["length"]]
        # Judging may take as many steps as learning, no more: a short run is judged less often.
        judging = settings["horizon"] * sum(one["episodes"] for one in settings["evaluation"].values())
        config = RunConfig(
            env=env,
            env_id=settings["id"],
            env_kwargs=settings.get("kwargs", {}),
            horizon=settings["horizon"],
            budget=settings["budget"],
            early_termination={
                # The tightened approximation ends an episode at its first cost; cost-aware, over the budget.
                "budget": settings["budget"] if cost_aware else 0,
                "end_reward": change.get("end_reward", settings["end_reward"]),
                "cost_aware": cost_aware,
            }
            if method_spec["early_termination"]
            else None,
            method=method,
            algorithm=algorithm,
            agent=agent,
            exploration=params["explorations"][change.get("exploration", settings["exploration"])],
            steps=steps,
            evaluations=max(1, min(params["evaluations"], steps // judging)),
            evaluation=settings["evaluation"],
            seed=self.settings["seeds"][0],
        )
        RunConfig.from_dict(vars(config))
        if variant != "main" and config == self._resolve(env, method, "main", where).config:
            variant = "main"  # the same run under another name exists once
        return Run(variant, config)

    def _hyper_parameters(self, algorithm: str) -> dict[str, Any]:
        spec = dict(self.params["algorithms"][algorithm])
        parent = spec.pop("extends", None)
        if parent is None:
            return spec
        if "extends" in self.params["algorithms"][parent]:
            raise UserError(
                f"algorithms.{algorithm}.extends: {parent} extends another one itself; name that one"
            )
        return self._hyper_parameters(parent) | spec


def _pick(table: dict[str, Any], name: str, where: str, section: str) -> Any:
    if name not in table:
        raise UserError(f"{where} names {name!r}, which {section} does not define{hint(name, table)}")
    return table[name]
