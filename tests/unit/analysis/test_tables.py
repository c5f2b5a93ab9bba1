"""Tables and metrics.json against hand-worked values."""

import numpy as np
import pytest

from etmdp.analysis import metrics, tables
from etmdp.analysis.curves import Curves
from etmdp.grid import Grid


def levels(cell):
    return {"et_return": 200.0 if cell.method == "context_td3" else 100.0}


def test_final_scores_by_hand(grid, synthetic):
    rows, _ = tables.make(grid, "initial_states", Curves(synthetic(grid, "initial_states", levels, 0.1)))
    ours = rows[(rows["env"] == "nav_fixed_init") & (rows["method"] == "context_td3")].iloc[0]
    # The seeds end at 180, 190, 200, 210, 220: of five, one goes at each end.
    assert ours["iqm"] == pytest.approx(200)
    assert ours["mean"] == pytest.approx(200)
    assert ours["std"] == pytest.approx(np.std([180, 190, 200, 210, 220], ddof=1))
    assert 180 <= ours["lower"] < 200 < ours["upper"] <= 220
    assert ours["better_than_reference"] == 1.0
    # Halfway to 200 is 100; a run that ends at 200 rises by 200/9 per evaluation: the 6th, at step 600.
    assert ours["steps_to_half"] == 600
    assert (ours["seeds"], ours["seeds_planned"], ours["steps"]) == (5, 5, 2000)
    td3 = rows[(rows["env"] == "nav_fixed_init") & (rows["method"] == "td3")].iloc[0]
    assert np.isnan(td3["better_than_reference"])
    assert td3["steps_to_half"] == 1000  # the seeds at 100 and above reach it, at their best; three of five


def test_scores_to_read(grid, synthetic):
    _, sheet = tables.make(grid, "initial_states", Curves(synthetic(grid, "initial_states", levels, 0.1)))
    text = tables.to_markdown(sheet)
    assert "## Safe return (higher is better)" in text
    assert "| nav fixed init | context td3 | 200 | [" in text
    assert "| context td3 (2 environments) | 1.00 | [1.00, 1.00] |" in text
    assert "Scale test, last evaluation at step 2000." in text


def test_lower_cost_is_better(grid, synthetic):
    def cheap(cell):
        return {"cost": 0.1 if cell.method == "context_td3" else 1.0}

    rows, sheet = tables.make(grid, "budget", Curves(synthetic(grid, "budget", cheap)))
    cost = rows[(rows["metric"] == "cost") & (rows["method"] == "context_td3") & (rows["variant"] == "main")]
    assert (cost["better_than_reference"] == 1.0).all()
    assert cost["steps_to_half"].isna().all()
    assert "Cost (lower is better)" in [heading for heading, _ in sheet.parts]


def test_success_table_by_hand(grid, synthetic):
    table = synthetic(grid, "success_rate")
    late = table["step"] > 1000
    table["success_rate"] = 0.0
    # Of TD3's five seeds three succeed at the end, one in five of ten evaluations (no success), one never.
    td3 = (table["env"] == "nav_easy") & (table["method"] == "td3")
    table.loc[td3 & late & (table["seed"] < 3), "success_rate"] = 1.0
    table.loc[td3 & (table["step"] > 1500) & (table["seed"] == 3), "success_rate"] = 1.0
    rows, sheet = tables.make(grid, "success_rate", Curves(table))
    row = rows[(rows["env"] == "nav_easy") & (rows["method"] == "td3")].iloc[0]
    assert (row["successes"], row["seeds"]) == (3, 5)
    assert row["mean_success_rate"] == pytest.approx(3.5 / 5)
    text = tables.to_markdown(sheet)
    assert "| td3 | 3/5 (0.70) | 0/5 (0.00) |" in text
    assert "more than half of its" in text


def test_missing_seeds_are_marked(grid, synthetic):
    table = synthetic(grid, "success_rate")
    table = table[~((table["method"] == "cpo") & (table["seed"] == 0))]
    table = table[~((table["method"] == "td3") & (table["env"] == "nav_hard"))]
    text = tables.to_markdown(tables.make(grid, "success_rate", Curves(table))[1])
    assert "4/4 (1.00, 4 of 5 seeds)" in text
    assert "| td3 | 5/5 (1.00) | not run |" in text


def test_environments_left_out_are_told(params, synthetic):
    grid = Grid(params, "part")
    text = tables.to_markdown(tables.make(grid, "mazes", Curves(synthetic(grid, "mazes")))[1])
    assert "Not run at this scale: maze 3, maze 4." in text


def test_one_seed_has_no_interval(few_seeds, synthetic):
    grid = few_seeds(1)
    data = Curves(synthetic(grid, "encoder"))
    rows, sheet = tables.make(grid, "encoder", data)
    assert rows["lower"].isna().all()
    assert "| maze 1 | context td3 | 100 | - | 100 |" in tables.to_markdown(sheet)
    assert "Fewer than 4 seeds: the intervals are no evidence." in tables.to_markdown(sheet)
    assert "lower" not in metrics.summary(grid, {"encoder": data})["encoder"]["maze_1"]["context_td3"]


def test_cells_cannot_break_the_table():
    assert tables.markdown_row(["a|b", "c"]) == "| a\\|b | c |"


def test_metrics(grid, synthetic):
    data = {name: Curves(synthetic(grid, name)) for name in ("encoder", "success_rate")}
    found = metrics.summary(grid, data)
    numbers = found["encoder"]["maze_2"]["context_td3/transformer"]
    assert numbers["metric"] == "et_return"
    assert numbers["iqm"] == pytest.approx(100)
    assert numbers["lower"] < 100 < numbers["upper"]
    assert numbers["train_cost_rate"] == 0.01
    assert (numbers["seeds"], numbers["steps"]) == (5, 2000)
    assert found["success_rate"]["nav_easy"]["td3"]["metric"] == "success_rate"
