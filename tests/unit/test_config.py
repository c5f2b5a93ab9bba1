"""A run's config: its round trip, its digest, and what is refused."""

import json
from dataclasses import asdict, replace

import pytest

from etmdp.config import TRAINING_VERSION, RunConfig
from etmdp.errors import UserError
from etmdp.grid import Grid


@pytest.fixture
def config():
    return Grid.load("params.yaml", "smoke").runs("mazes")[0].config


def test_json_round_trip_keeps_the_digest(config):
    again = RunConfig.load(config.to_json())
    assert again == config
    assert again.digest == config.digest


def test_reads_a_file_and_a_finished_runs_record(config, tmp_path):
    plain, record = tmp_path / "plain.json", tmp_path / "config.json"
    plain.write_text(config.to_json(indent=2))
    record.write_text(json.dumps({"config": asdict(config), "record": {"host": "x"}}))
    assert RunConfig.load(str(plain)) == RunConfig.load(str(record)) == config


def test_every_key_but_the_seed_changes_the_digest(config):
    other = {"budget": 7.5, "early_termination": None, "training_version": TRAINING_VERSION + 1}
    for name, value in asdict(config).items():
        new = other.get(name, value + 1 if isinstance(value, int) else f"{value}x")
        assert (replace(config, **{name: new}).digest == config.digest) == (name == "seed"), name


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"steps": 0}, "steps is 0, must be a whole number of at least 1"),
        ({"steps": 1.5}, "steps is 1.5, must be"),
        ({"steps": True}, "steps is True, must be"),
        ({"seed": -1}, "seed is -1, must be"),
        ({"horizon": "32"}, "horizon is '32', must be"),
        ({"evaluations": 601}, "must be between 1 and the 600 steps"),
        ({"budget": -0.1}, "budget is -0.1, must be a finite number"),
        ({"budget": float("nan")}, "budget is nan, must be a finite number"),
        ({"env": ""}, "env is '', must be a name"),
        ({"env_id": 3}, "env_id is 3, must be a name"),
        ({"agent": [1]}, "agent must be a mapping"),
        ({"early_termination": {"budget": 0}}, "early_termination must be null or have exactly the keys"),
        ({"evaluation": {}}, "evaluation lacks the entry `main`"),
        ({"evaluation": {"main": {"episodes": 0}}}, "evaluation.main must have `episodes`"),
        ({"training_version": 0}, "made for training version 0"),
        ({"colour": "red"}, "has the unknown keys"),
    ],
)
def test_values_no_run_can_have_are_told(config, change, sentence):
    with pytest.raises(UserError, match=sentence):
        RunConfig.load(json.dumps(asdict(config) | change))


def test_a_missing_key_is_told(config):
    data = asdict(config)
    del data["horizon"]
    with pytest.raises(UserError, match=r"lacks \['horizon'\]"):
        RunConfig.load(json.dumps(data))


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("{", "is no valid JSON"),
        ("nowhere.json", "cannot read the run config nowhere.json"),
        ("params.yaml", "is no valid JSON"),
        ("src", "cannot read the run config src"),
        ("", "cannot read the run config"),
    ],
)
def test_sources_that_are_no_config(source, sentence):
    with pytest.raises(UserError, match=sentence):
        RunConfig.load(source)
