"""Every claim on made-up results: as the paper says, clearly not, on the fence, and with parts missing."""

import json

import pandas as pd
import pytest

from etmdp.analysis import claims, rules, verdicts
from etmdp.analysis.curves import Curves
from etmdp.analysis.load import plan
from etmdp.analysis.rules import Cell
from etmdp.grid import Grid

CLAIMS = {claim.id: claim for claim in rules.CLAIMS}
TRAINED = [claim.id for claim in rules.CLAIMS if claim.statement is None]


def level(name, value):
    return {name: float(value)}


def best_method(score, rest, names=("et_return", "return")):
    return lambda cell: dict.fromkeys(names, score if cell.method.startswith("context_td3") else rest)


def by_variant(variant, score, rest, name="et_return"):
    return lambda cell: level(name, score if cell.variant == variant else rest)


def budget(cell):
    """Ours within the budget of 1; TD3 better but over it; the others under it and worse."""
    ours, over = cell.method == "context_td3", cell.method == "td3"
    return {"return": 100 if ours else 200 if over else 50, "cost": 0.5 if ours else 2 if over else 0.2}


def worse_within_budget(cell):
    return {"return": 100 if cell.method == "context_td3" else 200, "cost": 0.5}


def over_budget(cell):
    return {"return": 500, "cost": 3 if cell.method == "context_td3" else 0.5}


def starts(gain_fixed, gain_random):
    def levels(cell):
        gain = gain_fixed if cell.env == "nav_fixed_init" else gain_random
        return level("et_return", 100 + (gain if cell.method == "context_td3" else 0))

    return levels


def moving(with_et, without):
    def levels(cell):
        alive = 20 * rules.ALIVE_BONUS[cell.env]
        return {"et_length": 20, "et_return": alive + (without if cell.method.endswith("cmdp") else with_et)}

    return levels


def end_rewards(step):
    def levels(cell):
        small = int(cell.variant.rsplit("_", 1)[1])
        return {"cost": 2 - step * small / 10, "return": 200 - 100 * step * small / 10}

    return levels


def tightened(cost, value):
    return lambda cell: (
        {"cost": 1.0, "return": 100.0} if cell.variant == "cost_aware" else {"cost": cost, "return": value}
    )


def wins(count):
    """Context wins clearly on so many of the 16 tasks and loses clearly on the others."""

    def levels(cell):
        sign = 1 if rules.CONTROL.index(cell.env) < count else -1
        return level("return", 100 + 40 * sign * (cell.method == "context_td3_cmdp"))

    return levels


def solves(main, aware):
    return lambda cell: level("success_rate", aware if cell.variant == "cost_aware" else main)


# For each claim: results on the paper's side, on the other side, and on the fence.
CASES = {
    "C1": (
        best_method(1.0, 0.0, ["success_rate"]),
        best_method(0.0, 1.0, ["success_rate"]),
        best_method(1.0, 1.0, ["success_rate"]),
    ),
    "C2": (best_method(200, 100), best_method(100, 200), best_method(100, 100)),
    "C3": (budget, worse_within_budget, lambda cell: {"return": 100, "cost": 0.5}),
    "C4": (tightened(0.2, 200), tightened(2.0, 50), tightened(1.0, 100)),
    "C5": (starts(100, 20), starts(-50, 0), starts(50, 50)),
    "C6": (moving(500, 20), moving(20, 20), moving(250, 20)),
    "C7": (best_method(200, 100), best_method(100, 200), best_method(100, 100)),
    "C8": (
        by_variant("context_3", 200, 150),
        by_variant("context_3", 100, 200),
        by_variant("context_3", 90, 100),
    ),
    "C9": (by_variant("large", 100, 200), by_variant("large", 200, 100), by_variant("large", 100, 100)),
    "C10": (by_variant("shared", 100, 200), by_variant("shared", 200, 100), by_variant("shared", 100, 100)),
    "C11": (end_rewards(1), end_rewards(-1), end_rewards(0)),
    "C12": (wins(13), wins(12), lambda cell: level("return", 100)),
    "C13": (
        by_variant("transformer", 100, 200),
        by_variant("transformer", 200, 100),
        by_variant("transformer", 111, 100),
    ),
    "C14": (solves(0.0, 1.0), solves(1.0, 1.0), None),
}


def judge(name, grid, synthetic, levels, **options):
    claim = CLAIMS[name]
    table = synthetic(grid, claim.experiment, levels, **options)
    return claims.judge(claim, grid, {claim.experiment: Curves(table)})


def test_all_sixteen_claims_have_rules_and_cases():
    assert list(CLAIMS) == [f"C{n}" for n in range(1, 17)]
    assert set(TRAINED) == set(CASES)


@pytest.mark.parametrize("name", TRAINED)
def test_on_the_papers_side(name, grid, synthetic):
    verdict = judge(name, grid, synthetic, CASES[name][0])
    assert verdict.verdict == "reproduced", verdict.why
    assert not verdict.missing
    assert verdict.seeds == 5
    assert verdict.steps == 2000
    assert verdict.scale == "test"


@pytest.mark.parametrize("name", TRAINED)
def test_on_the_other_side(name, grid, synthetic):
    verdict = judge(name, grid, synthetic, CASES[name][1])
    assert verdict.verdict == "not reproduced", verdict.why
    assert verdict.effect < 0
    assert verdict.upper < 0


@pytest.mark.parametrize("name", [name for name in TRAINED if CASES[name][2]])
def test_on_the_fence(name, grid, synthetic):
    verdict = judge(name, grid, synthetic, CASES[name][2], seed_noise=0.2)
    assert verdict.verdict == "inconclusive", verdict.why
    assert "includes 0" in verdict.why


def test_counterexample_on_the_fence(grid, synthetic):
    """Half of the runs solve it: neither solved nor failed."""
    table = synthetic(grid, "counterexample", solves(0.0, 1.0))
    table.loc[(table["variant"] == "cost_aware") & (table["seed"] > 2), "success_rate"] = 0.0
    verdict = claims.judge(CLAIMS["C14"], grid, {"counterexample": Curves(table)})
    assert verdict.verdict == "inconclusive"


@pytest.mark.parametrize("name", TRAINED)
@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize("side", [0, 1])
def test_few_seeds_decide_nothing(name, seeds, side, few_seeds, synthetic):
    verdict = judge(name, few_seeds(seeds), synthetic, CASES[name][side])
    assert verdict.verdict == "inconclusive"
    assert f"{seeds} seed" in verdict.why
    assert (verdict.lower is None) == (seeds == 1)


@pytest.mark.parametrize("name", TRAINED)
def test_a_missing_setting_forbids_reproduced_and_is_named(name, grid, synthetic):
    cells = dict.fromkeys(c for group in CLAIMS[name].requirements for check in group for _, c in check.terms)
    gone = list(cells)[-1]
    verdict = judge(name, grid, synthetic, CASES[name][0], keep=lambda cell: cell != gone)
    assert verdict.verdict in ("inconclusive", "not run")
    assert verdict.missing == ["/".join([gone.env, gone.method] + [gone.variant] * (gone.variant != "main"))]
    assert gone.method in verdict.why or gone.env in verdict.why


def test_missing_competitors_are_told_in_short(grid, synthetic):
    verdict = judge("C2", grid, synthetic, CASES["C2"][0], keep=lambda c: c.method in ("td3", "context_td3"))
    assert verdict.verdict == "inconclusive"
    assert "competitors without runs: ppo, ppo_lagrangian, cpo" in verdict.why
    assert "maze_1/td3" in verdict.present
    assert "maze_1/cpo" in verdict.missing


def test_environments_left_out_are_told(params, synthetic):
    grid = Grid(params, "part")
    verdict = judge("C2", grid, synthetic, CASES["C2"][0])
    assert verdict.verdict == "inconclusive"
    assert "environments without runs: maze_3, maze_4" in verdict.why


def test_a_part_can_refute(grid, synthetic):
    """If TD3 is better on one maze, Context TD3 is not best on all, whatever the missing methods do."""
    verdict = judge("C2", grid, synthetic, CASES["C2"][1], keep=lambda c: c.method in ("td3", "context_td3"))
    assert verdict.verdict == "not reproduced"
    assert "competitors without runs" in verdict.why


def test_one_lost_environment_of_many_refutes_all(grid, synthetic):
    lost = Cell("maze_3", "cpo")
    levels = CASES["C2"][0]
    verdict = judge("C2", grid, synthetic, lambda c: level("et_return", 900) if c == lost else levels(c))
    assert verdict.verdict == "not reproduced"
    assert "context_td3 > cpo on maze_3" in verdict.why


def test_over_the_own_budget_is_refuted_however_high_the_return(grid, synthetic):
    verdict = judge("C3", grid, synthetic, over_budget)
    assert verdict.verdict == "not reproduced"
    assert "context_td3 at or under the budget" in verdict.why


def test_thirteen_of_sixteen(grid, synthetic):
    assert judge("C12", grid, synthetic, wins(16)).verdict == "reproduced"
    assert judge("C12", grid, synthetic, wins(12)).verdict == "not reproduced"
    verdict = judge("C12", grid, synthetic, wins(13), keep=lambda c: c.env != rules.CONTROL[-1])
    assert verdict.verdict == "inconclusive"  # 13 hold, but one task was left out


def test_one_failure_among_many_comparisons_must_be_sure(grid, synthetic):
    """A moderate loss refutes where it is the only comparison, and is open where it is one of sixteen."""
    table = synthetic(grid, "mazes", CASES["C2"][0])
    spread = 10.0 * (table["seed"] - 2)
    for method, middle in (("context_td3", 0.0), ("td3", 28.0)):
        rows = (table["env"] == "maze_1") & (table["method"] == method)
        table.loc[rows, "et_return"] = middle + spread[rows]
    for method in ("ppo", "ppo_lagrangian", "cpo"):
        table.loc[(table["env"] == "maze_1") & (table["method"] == method), "et_return"] = -100.0
    results = {"mazes": Curves(table)}
    check = CLAIMS["C2"].requirements[0]
    alone = claims.judge(rules.Claim("X", "one comparison", "mazes", (check,)), grid, results)
    among = claims.judge(CLAIMS["C2"], grid, results)
    assert (alone.lower, alone.upper) == (among.lower, among.upper)
    assert alone.upper < 0
    assert alone.verdict == "not reproduced"
    assert among.verdict == "inconclusive"
    assert "not surely so among 16 comparisons" in among.why


def test_doing_well_needs_the_goal(grid, synthetic):
    """If no context length solves a maze, being as good as the others is not doing well."""
    assert judge("C8", grid, synthetic, lambda cell: level("et_return", -3.2)).verdict == "not reproduced"


def test_speed_is_the_area_under_the_curve(grid, synthetic):
    """The same final score, but TD3 gets there first."""
    table = synthetic(grid, "loose", lambda cell: level("et_return", 100), seed_noise=0.01)
    early = (table["method"] == "td3") & (table["step"] < 1000)
    table.loc[early, "et_return"] = 100.0
    assert claims.judge(CLAIMS["C7"], grid, {"loose": Curves(table)}).verdict == "not reproduced"


def test_fewer_seeds_than_planned_are_told(grid, synthetic):
    table = synthetic(grid, "encoder", CASES["C13"][0])
    table = table[table["seed"] > 0]
    verdict = claims.judge(CLAIMS["C13"], grid, {"encoder": Curves(table)})
    assert all("only 4 of 5 seeds" in check.why for check in verdict.checks)
    assert verdict.seeds == 4


def test_not_run_tells_why(params, grid, synthetic):
    assert "no results yet" in claims.judge(CLAIMS["C2"], grid, {}).why
    assert "is off at the scale part" in claims.judge(CLAIMS["C3"], Grid(params, "part"), {}).why
    nothing = judge("C4", grid, synthetic, budget, keep=lambda c: c.env != "car_goal")
    assert nothing.verdict == "not run"
    assert "environments without runs: car_goal" in nothing.why
    del params["experiments"]["budget"]
    assert "no experiment budget" in claims.judge(CLAIMS["C4"], Grid(params), {}).why


def theory(*rows):
    return {"theory": pd.DataFrame(rows, columns=["statement", "instance", "holds"])}


@pytest.mark.parametrize(("name", "statement"), [("C15", "proposition_1"), ("C16", "corollary_1")])
def test_theorems(name, statement, grid):
    right, wrong = (statement, "a", "True"), (statement, "chain 7", "False")
    assert claims.judge(CLAIMS[name], grid, theory(right)).verdict == "reproduced"
    refuted = claims.judge(CLAIMS[name], grid, theory(right, wrong))
    assert refuted.verdict == "not reproduced"
    assert refuted.effect == 0.5
    assert "chain 7" in refuted.why
    assert claims.judge(CLAIMS[name], grid, theory(("other", "a", "True"))).verdict == "not run"


@pytest.mark.parametrize("claim", rules.CLAIMS, ids=lambda claim: claim.id)
def test_the_full_experiments_have_what_the_rules_ask_for(claim, root):
    """A name that changes in params.yaml alone would turn a claim into `not run` without a word."""
    grid = Grid.load(root / "params.yaml", "paper", root / "workflow/schemas/params.schema.yaml")
    if claim.experiment not in grid.params["experiments"]:
        pytest.skip(f"params.yaml has no experiment {claim.experiment}")
    wanted = {cell for group in claim.requirements for check in group for _, cell in check.terms}
    assert wanted <= {Cell(*setting.key) for setting in plan(grid, claim.experiment)}


def test_documents(grid, synthetic):
    tables = {"mazes": Curves(synthetic(grid, "mazes", CASES["C2"][0]))}
    judged = claims.judge_all(grid, tables, {})
    text = verdicts.to_markdown(grid, judged)
    assert "1 reproduced, 0 not reproduced, 0 inconclusive, 15 not run" in text
    for claim in rules.CLAIMS:
        assert f"| {claim.id} | {claim.says} |" in text
    data = json.loads(json.dumps(verdicts.to_json(judged), allow_nan=False))
    assert data[1]["verdict"] == "reproduced"
    assert len(data[1]["checks"]) == 16
    assert 0 < data[1]["lower"] <= data[1]["effect"] <= data[1]["upper"]
