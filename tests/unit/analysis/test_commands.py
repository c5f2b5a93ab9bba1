"""The subcommands from runs to report, as the workflow calls them."""

import argparse
import json

import pytest

from etmdp.analysis import commands
from etmdp.errors import UserError
from etmdp.grid import Grid


@pytest.fixture
def etmdp(monkeypatch, tmp_path, params):
    """Calls a subcommand in an empty folder, with params that need no file."""
    chosen = ("visitation", "success_rate", "encoder")
    params["experiments"] = {name: params["experiments"][name] for name in chosen}
    params["scales"] = {"test": params["scales"]["test"] | {"seeds": [0, 1]}}
    monkeypatch.setattr(Grid, "load", classmethod(lambda cls, path, scale: cls(params, scale)))
    monkeypatch.chdir(tmp_path)
    parser = argparse.ArgumentParser()
    commands.add_parsers(parser.add_subparsers())

    def call(text):
        args = parser.parse_args(text.split())
        args.run(args)

    return call


@pytest.fixture
def runs(tmp_path, etmdp, params, run_writer):
    for run in Grid(params).runs():
        run_writer(tmp_path / "results" / "runs", run)
    return tmp_path / "results" / "runs"


def test_from_runs_to_report(etmdp, runs, tmp_path):
    for name in ("success_rate", "encoder"):
        etmdp(f"curves {name} --scale test --out results/test/curves/{name}.csv")
        source = f"--scale test --curves results/test/curves/{name}.csv"
        etmdp(f"table {name} {source} --out results/test/tables/{name}.csv results/test/tables/{name}.md")
    etmdp(f"figure encoder {source} --out results/test/figures/encoder.pdf results/test/figures/encoder.png")
    etmdp("claims --curves results/test/curves --out results/test/claims.md results/test/claims.json")
    etmdp("metrics --curves results/test/curves --out results/test/metrics.json")
    etmdp("report --results results/test --out results/test/report.html")
    results = tmp_path / "results" / "test"
    assert (results / "figures/encoder.pdf").read_bytes().startswith(b"%PDF")
    assert "2/2 (1.00)" in (results / "tables/success_rate.md").read_text()
    verdicts = {v["id"]: v["verdict"] for v in json.loads((results / "claims.json").read_text())}
    assert verdicts["C1"] == "inconclusive"  # two seeds
    assert verdicts["C2"] == "not run"
    assert set(json.loads((results / "metrics.json").read_text())) == {"success_rate", "encoder"}
    assert "data:image/png;base64," in (results / "report.html").read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("curves encodr --out a.csv", "did you mean 'encoder'"),
        ("curves visitation --out a.csv", "has no runs"),
        ("figure encoder --out a.pdf", "give --curves"),
        ("figure success_rate --out a.pdf", "has no figure"),
        ("table visitation --curves a.csv --out a.md", "has no table"),
        ("table encoder --curves nowhere.csv --out a.md", "nowhere.csv is missing"),
        ("claims --curves nowhere --out a.md", "no folder nowhere"),
        ("metrics --curves . --out a.json", "success_rate.csv is missing"),
    ],
)
def test_mistakes_are_told_in_one_sentence(etmdp, runs, text, message):
    with pytest.raises(UserError, match=message) as caught:
        etmdp(text)
    assert "\n" not in str(caught.value)


def test_unknown_file_type(etmdp, runs):
    etmdp("curves encoder --out encoder.csv")
    with pytest.raises(UserError, match=r"must end in .csv or .md"):
        etmdp("table encoder --curves encoder.csv --out a.tex")


def test_exact_results_are_judged(etmdp, runs, tmp_path, params):
    params["experiments"]["theory"] = {"title": "Exact", "outputs": ["theory"]}
    (tmp_path / "theory.csv").write_text(
        "statement,instance,holds\nproposition_1,chain,True\ncorollary_1,chain,False\n"
    )
    etmdp("claims --curves . --out a.json")
    verdicts = {v["id"]: v["verdict"] for v in json.loads((tmp_path / "a.json").read_text())}
    assert verdicts["C15"] == "reproduced"
    assert verdicts["C16"] == "not reproduced"
