"""Reading runs and the tidy table: what is accepted, and the sentence for each thing that is not."""

import json

import numpy as np
import pandas as pd
import pytest

from etmdp.analysis import curves, load
from etmdp.errors import UserError
from etmdp.grid import Grid


@pytest.fixture
def runs(tmp_path, grid, run_writer):
    for run in grid.runs("encoder"):
        run_writer(tmp_path, run)
    return tmp_path


def test_table_has_every_evaluation_once_in_the_order_of_params(runs, grid):
    table = curves.build(grid, "encoder", runs).table
    assert tuple(table.columns[:8]) == (*curves.COLUMNS, "step")
    assert curves.COLUMNS == ("experiment", "env", "method", "variant", "label", "seed", "digest")
    assert len(table) == 2 * 2 * 5 * 20
    assert list(table["variant"].unique()) == ["main", "transformer"]
    assert list(table["label"].unique()) == ["context td3", "context td3, transformer"]
    assert table.groupby(["env", "variant", "seed"])["step"].is_monotonic_increasing.all()


def test_bytes_are_the_same_and_survive_reading(runs, grid, tmp_path):
    first = curves.to_csv(curves.build(grid, "encoder", runs).table)
    assert first == curves.to_csv(curves.build(grid, "encoder", runs).table)
    path = tmp_path / "encoder.csv"
    path.write_bytes(first)
    assert curves.to_csv(curves.read(path, grid, "encoder").table) == first


def test_values_are_those_of_the_file(runs, grid, run_progress):
    built = curves.build(grid, "encoder", runs)
    run = next(r for r in grid.runs("encoder") if r.config.seed == 3 and r.variant == "transformer")
    found = built.values((run.config.env, "context_td3", "transformer"), "et_return")
    assert found.shape == (5, 20)
    assert found[3] == pytest.approx(run_progress(run)["et_return"])


def test_a_variant_that_changes_nothing_keeps_the_experiments_name(grid):
    """L = 3 is the mazes' own setting, so the run table calls it main; the figure must call it L = 3."""
    settings = [s for s in load.plan(grid, "context_length") if s.env == "maze_1"]
    assert [s.variant for s in settings] == ["context_1", "context_3", "context_5", "context_7"]
    assert [s.label for s in settings] == [f"context td3, L = {n}" for n in (1, 3, 5, 7)]
    assert {run.variant for run in settings[1].runs} == {"main"}
    assert all(len(s.runs) == 5 for s in settings)


def first_run(grid):
    return grid.runs("encoder")[0]


def edit(runs, run, column, row, value):
    path = runs / run.name / "progress.csv"
    lines = [line.split(",") for line in path.read_text().splitlines()]
    lines[row + 1][lines[0].index(column)] = value
    path.write_text("\n".join(map(",".join, lines)) + "\n")


def refused(grid, runs, *words):
    with pytest.raises(UserError) as caught:
        curves.build(grid, "encoder", runs)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message
    return message


def test_missing_run(runs, grid):
    path = runs / first_run(grid).name
    path.rename(runs / "elsewhere")
    refused(grid, runs, str(path), "missing")


def test_missing_progress(runs, grid):
    (runs / first_run(grid).name / "progress.csv").unlink()
    refused(grid, runs, "progress.csv is missing", first_run(grid).name)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"step,return\n", "no rows"),
        (b"\xff\xfe\x00", "damaged"),
        (b"step,return\n1,2,3\n", "line 2"),
        (b"step,step\n1,2\n", "two columns share a name"),
        (b"step,return\n1,2\n", "lacks the column"),
        (b'step,return\n1,"2\n', "damaged"),
    ],
)
def test_damaged_progress(runs, grid, content, words):
    (runs / first_run(grid).name / "progress.csv").write_bytes(content)
    refused(grid, runs, "progress.csv", words, first_run(grid).name)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "NaN", "twelve", "1e999"])
@pytest.mark.parametrize("column", ["et_return", "critic_loss"])
def test_values_that_are_no_numbers(runs, grid, column, value):
    edit(runs, first_run(grid), column, 4, value)
    refused(grid, runs, f"line 6: {column} is {value!r}")


def test_an_evaluation_without_a_return(runs, grid):
    edit(runs, first_run(grid), "return", 2, "")
    refused(grid, runs, "no finite return at step 300")


def test_an_empty_loss_is_fine(runs, grid):
    edit(runs, first_run(grid), "critic_loss", 0, "")
    assert np.isnan(curves.build(grid, "encoder", runs).table["critic_loss"][0])


def test_run_cut_short(runs, grid):
    path = runs / first_run(grid).name / "progress.csv"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-3]))
    refused(grid, runs, "17 evaluations up to step 1700, not the 20 of every 100 steps up to 2000")


@pytest.mark.parametrize("step", ["100", "401", "400.5"])
def test_steps_that_are_not_the_plan(runs, grid, step):
    edit(runs, first_run(grid), "step", 3, step)
    refused(grid, runs, "not the 20 of every 100 steps")


def test_evaluations_that_do_not_divide_the_steps(tmp_path, params, run_writer):
    """1990 steps and 20 evaluations: every 99 steps, the last at 1980."""
    params["scales"]["test"]["steps"]["short"] = 1990
    grid = Grid(params)
    for run in grid.runs("encoder"):
        run_writer(tmp_path, run)
    assert curves.build(grid, "encoder", tmp_path).table["step"].max() == 1980


def test_seeds_evaluated_at_different_steps(runs, grid):
    table = curves.build(grid, "encoder", runs).table
    table.loc[3, "step"] = 401
    with pytest.raises(UserError, match=r"maze_1/context_td3/main was evaluated at different steps \(seed 0"):
        curves.Curves(table)


@pytest.mark.parametrize("change", [{"steps": 1999}, {"seed": 7}])
def test_config_of_another_run(runs, grid, change):
    path = runs / first_run(grid).name / "config.json"
    data = json.loads(path.read_text())
    data["config"] |= change
    path.write_text(json.dumps(data))
    refused(grid, runs, str(path), "another run", first_run(grid).config.digest)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"config": 3}', '{"config": {}}', "\x00"])
def test_damaged_config(runs, grid, content):
    path = runs / first_run(grid).name / "config.json"
    path.write_text(content)
    refused(grid, runs, str(path))


def test_experiment_without_runs(grid, tmp_path):
    with pytest.raises(UserError, match="visitation has no runs"):
        curves.build(grid, "visitation", tmp_path)


def test_stale_curves_are_refused(runs, grid, few_seeds, params, tmp_path):
    path = tmp_path / "encoder.csv"
    path.write_bytes(curves.to_csv(curves.build(grid, "encoder", runs).table))
    with pytest.raises(UserError, match="does not plan"):
        curves.read(path, few_seeds(3), "encoder")  # has more seeds than planned
    with pytest.raises(UserError, match="does not plan"):
        curves.read(path, grid, "mazes")
    params["algorithms"]["context"]["learning_rate"] = 0.1
    with pytest.raises(UserError, match="does not plan"):
        curves.read(path, Grid(params), "encoder")


def test_a_metric_that_was_not_measured(runs, grid):
    table = curves.build(grid, "encoder", runs).table
    table.loc[3, "train_return"] = np.nan
    for metric in ("train_return", "elephants"):
        with pytest.raises(UserError, match=f"have not measured '{metric}'"):
            curves.Curves(table).values(("maze_1", "context_td3", "main"), metric)


def test_the_order_of_rows_does_not_matter(runs, grid):
    table = curves.build(grid, "encoder", runs).table
    shuffled = curves.Curves(table.sample(frac=1, random_state=0))
    key = ("maze_2", "context_td3", "transformer")
    assert (shuffled.values(key, "return") == curves.Curves(table).values(key, "return")).all()
    assert (shuffled.steps(key) == np.arange(100, 2001, 100)).all()


def test_two_evaluations_at_one_step(runs, grid):
    table = curves.build(grid, "encoder", runs).table
    with pytest.raises(UserError, match="two evaluations at the same step"):
        curves.Curves(pd.concat([table, table]))
