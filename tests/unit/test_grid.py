"""The run table, and every mistake one can make in params.yaml: each must be told as one sentence."""

import copy
import re
from pathlib import Path

import pytest
import yaml
from ruamel.yaml import YAML

from etmdp.errors import UserError
from etmdp.grid import Grid
from etmdp.params import SCHEMA, read_params

PARAMS = Path("params.yaml")
DELETE = object()


@pytest.fixture(scope="module")
def params():
    return read_params(PARAMS)


def changed(params, path, value):
    """A copy in which the key at a dotted path has another value, or is gone."""
    params = copy.deepcopy(params)
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    place = params
    for part in parents:
        place = place[part]
    if value is DELETE:
        del place[last]
    else:
        place[last] = value
    return params


def load_changed(tmp_path, params, path, value, scale=None):
    file = tmp_path / "params.yaml"
    file.write_text(yaml.safe_dump(changed(params, path, value)))
    return Grid.load(file, scale)


# ---- the run table ----


def test_every_scale_of_the_project_expands(params):
    for scale in params["scales"]:
        grid = Grid(params, scale)
        names = [run.name for run in grid.runs()]
        assert names
        assert len(names) == len(set(names))
        assert all(re.fullmatch(r"\w+/\w+/\w+-[0-9a-f]{8}/seed\d+", name) for name in names)


def test_mazes_at_paper_scale_are_the_product(params):
    runs = Grid(params, "paper").runs("mazes")
    block = params["experiments"]["mazes"]["runs"][0]
    product = {(e, m, s) for e in block["environments"] for m in block["methods"] for s in range(10)}
    assert {(r.config.env, r.config.method, r.config.seed) for r in runs} == product
    assert len(runs) == len(product)


def test_an_experiment_has_at_most_its_own_seeds(params):
    assert {run.config.seed for run in Grid(params, "paper").runs("context_length")} == set(range(5))


def test_a_variant_that_changes_nothing_is_the_main_run(params):
    grid = Grid(params, "smoke")
    main = {
        r.name for r in grid.runs("mazes") if r.config.env == "maze_1" and r.config.method == "context_td3"
    }
    # On mazes L is 3 already.
    l3 = {r.name for r in grid.runs("context_length") if r.config.env == "maze_1" and "/main-" in r.name}
    assert l3 == main


def test_two_experiments_share_their_runs(params):
    grid = Grid(params, "smoke")
    assert [r.name for r in grid.runs("navigation")] == [r.name for r in grid.runs("success_rate")]
    total = sum(len(grid.runs(name)) for name in grid.experiments)
    assert len(grid.runs()) < total


def test_digest_changes_with_a_value_and_only_there(params):
    before = {r.name for r in Grid(params, "smoke").runs()}
    after = {r.name for r in Grid(changed(params, "environments.maze_2.end_reward", -9), "smoke").runs()}
    assert {name.split("/")[0] for name in before ^ after} == {"maze_2"}


def test_digest_ignores_seed_and_key_order(params):
    runs = Grid(params, "smoke").runs("mazes")
    assert runs[0].config.digest == runs[1].config.digest
    assert runs[0].config.seed != runs[1].config.seed
    turned = copy.deepcopy(params)
    turned["algorithms"]["td3"] = dict(reversed(turned["algorithms"]["td3"].items()))
    assert [r.name for r in Grid(turned, "smoke").runs("mazes")] == [r.name for r in runs]


def test_without_early_termination_the_config_has_none(params):
    grid = Grid(changed(params, "experiments.mazes.runs.0.methods", ["td3_cmdp"]), "smoke")
    assert {run.config.early_termination for run in grid.runs("mazes")} == {None}


def test_cost_aware_uses_the_real_budget_and_tightened_zero(params):
    runs = Grid(params, "smoke").runs("counterexample")
    budgets = {run.variant: run.config.early_termination["budget"] for run in runs}
    assert budgets == {"main": 0, "cost_aware": 1}
    assert {run.config.budget for run in runs} == {1}


def test_judging_takes_no_more_steps_than_learning(params):
    # 600 steps are enough for 18 episodes of 32; 100 000 for all 50 evaluations.
    assert {run.config.evaluations for run in Grid(params, "smoke").runs("mazes")} == {18}
    assert {run.config.evaluations for run in Grid(params, "paper").runs("mazes")} == {50}


def test_all_leaves_out_experiments_without_an_environment_of_the_scale(params):
    grid = Grid(changed(params, "scales.smoke.environments", ["counterexample"]), "smoke")
    assert grid.experiments == ["visitation", "environments", "counterexample"]


# ---- mistakes that the schema finds ----

NAMES = [
    "; rm -rf x",
    "$(x)",
    "`x`",
    "../up",
    "a/b",
    "a b",
    "1a",
    "",
    "a\n",
    "a-b",
    "ä",
    "-x",
    "{x}",
    "x'y",
    'x"y',
]


@pytest.mark.parametrize(
    "section", ["environments", "methods", "variants", "experiments", "scales", "families"]
)
@pytest.mark.parametrize("name", NAMES)
def test_names_are_harmless_in_paths_and_commands(tmp_path, params, section, name):
    spec = next(iter(params[section].values()))
    with pytest.raises(UserError, match=f"{section} has the key .* letters, digits and underscores"):
        load_changed(tmp_path, params, section, params[section] | {name: spec})


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("stepz", 3, r"the top level has the unknown key 'stepz'"),
        ("scales.smoke.step", 3, r"scales.smoke has the unknown key 'step'; did you mean 'steps'\?"),
        (
            "environments.maze_1.budgets",
            3,
            r"environments.maze_1 has the unknown key 'budgets'; did you mean 'budget'\?",
        ),
        ("algorithms.td3.lr", 3, r"algorithms.td3 has the unknown key 'lr'; allowed: .*learning_rate"),
        ("algorithms.sac", {}, r"algorithms has the unknown key 'sac'; allowed: .*td3"),
        (
            "variants.large.agent.context_sice",
            3,
            r"variants.large.agent has the unknown key 'context_sice'.*context_size",
        ),
        ("methods.td3.1", 3, r"methods.td3 has the unknown key 1"),
        ("environments.1", {}, r"environments has the key 1, which should be a name"),
        ("scales", DELETE, r"the top level lacks the key 'scales'"),
        ("algorithms.td3.discount", DELETE, r"algorithms.td3 lacks the key 'discount'"),
        ("algorithms.context_td3.extends", DELETE, r"algorithms.context_td3 lacks the key 'hidden_sizes'"),
        ("families.maze.evaluation.main", DELETE, r"families.maze.evaluation lacks the key 'main'"),
        ("experiments.mazes.metrics", DELETE, r"experiments.mazes lacks the key 'metrics'"),
        ("experiments.success_rate.runs", DELETE, r"experiments.success_rate lacks the key 'runs'"),
        ("variants.main", DELETE, r"variants lacks the key 'main'"),
        (
            "scales.smoke.steps.short",
            "many",
            r"scales.smoke.steps.short is 'many', which is no integer .*plainly",
        ),
        ("scales.smoke.steps.short", 0, r"scales.smoke.steps.short: 0 is less than the minimum of 1"),
        ("scales.smoke.steps.short", -600, r"-600 is less than the minimum of 1"),
        ("scales.smoke.steps.short", 600.0, r"is 600.0, which is no integer"),
        ("scales.smoke.steps.short", True, r"is True, which is no integer"),
        ("scales.smoke.steps.short", None, r"is None, which is no integer"),
        ("scales.smoke.seeds", [0, 1, 0], r"scales.smoke.seeds has 0 more than once"),
        ("scales.smoke.seeds", [], r"scales.smoke.seeds is empty"),
        ("scales.smoke.seeds", [-1], r"scales.smoke.seeds\[0\]: -1 is less than the minimum of 0"),
        ("scales.smoke.seeds", 3, r"scales.smoke.seeds is 3, which is no array"),
        ("scales.smoke.seeds", [0.5], r"seeds\[0\] is 0.5, which is no integer"),
        ("scales.smoke.experiments", "al", r"scales.smoke.experiments is 'al' .*did you mean 'all'\?"),
        ("scales.smoke.experiments", ["mazes", "mazes"], r"experiments has 'mazes' more than once"),
        ("scales.smoke.experiments", [], r"scales.smoke.experiments is empty"),
        ("evaluations", 0, r"evaluations: 0 is less than the minimum of 1"),
        ("families.maze.budget", -1, r"families.maze.budget: -1 is less than the minimum of 0 \(C, the cost"),
        ("families.maze.budget", float("nan"), r"families.maze.budget is nan, which is no number"),
        ("families.maze.end_reward", float("inf"), r"families.maze.end_reward is inf, which is no number"),
        ("families.maze.length", "middle", r"families.maze.length is 'middle' .*allowed: short, long"),
        (
            "environments.maze_1.id",
            "Maze 1; ls",
            r"environments.maze_1.id is 'Maze 1; ls', which is not a Gymnasium id",
        ),
        ("environments.maze_1.kwargs", {"size": {3: 4}}, r"environments.maze_1.kwargs.size has the key 3"),
        ("explorations.white.correlation", 1, r"explorations.white.correlation: 1 .*maximum of 1"),
        ("explorations.white.correlation", -0.1, r"explorations.white.correlation: -0.1 is less than"),
        ("algorithms.td3.learning_rate", "3e-4", r"is '3e-4', which is no number .*write numbers plainly"),
        ("algorithms.td3.discount", 0, r"algorithms.td3.discount: 0 .*minimum of 0"),
        ("algorithms.td3.discount", 1.01, r"algorithms.td3.discount: 1.01 is greater than the maximum of 1"),
        ("algorithms.td3.hidden_sizes", [256, 0], r"algorithms.td3.hidden_sizes\[1\]: 0 is less than"),
        (
            "algorithms.context_td3.encoder",
            "lstm",
            r"algorithms.context_td3.encoder is 'lstm' .*gru, transformer",
        ),
        ("variants.large.agent.context_size", -1, r"variants.large.agent.context_size: -1 is less than"),
        ("variants.cost_aware.cost_aware", "yes", r"cost_aware is 'yes', which is no boolean"),
        (
            "experiments.mazes.outputs",
            ["curve"],
            r"experiments.mazes.outputs\[0\] is 'curve' .*did you mean 'curves'\?",
        ),
        (
            "experiments.mazes.metrics",
            ["reward"],
            r"experiments.mazes.metrics\[0\] is 'reward', .*column of progress.csv",
        ),
        (
            "experiments.mazes.runs.0.methods",
            "td3",
            r"experiments.mazes.runs\[0\].methods is 'td3', which is no array",
        ),
        (
            "experiments.mazes.runs.0.methods",
            ["$(x)"],
            r"methods\[0\] is '\$\(x\)', which is not a name of letters",
        ),
    ],
)
def test_what_breaks_the_schema_is_told(tmp_path, params, path, value, sentence):
    if path == "methods.td3.1":
        path, value = "methods.td3", params["methods"]["td3"] | {1: 3}
    if path == "environments.1":
        path, value = "environments", params["environments"] | {1: {}}
    with pytest.raises(UserError, match=sentence) as error:
        load_changed(tmp_path, params, path, value)
    assert "\n" not in str(error.value)


ON_POLICY = {
    "hidden_sizes": [64, 64],
    "learning_rate": 0.0003,
    "batch_size": 1000,
    "batch_episodes": 10,
    "minibatch_size": 256,
    "epochs": 10,
    "discount": 0.99,
    "trace": 0.95,
    "initial_log_std": -0.5,
}
PPO = ON_POLICY | {"clip": 0.2, "target_kl": 0.02, "entropy": 0.0, "gradient_norm": 0.5}
CPO = ON_POLICY | {"max_kl": 0.01, "damping": 0.1, "cg_iterations": 10, "line_search_trials": 10}
LAGRANGIAN = {"extends": "ppo", "multiplier_rate": 0.05, "largest_multiplier": 100}


def test_every_algorithm_has_its_own_hyper_parameters(tmp_path, params):
    known = {"ppo": PPO, "ppo_lagrangian": LAGRANGIAN, "cpo": CPO, "trpo": CPO}
    load_changed(tmp_path, params, "algorithms", params["algorithms"] | known)
    for name, spec in known.items():
        broken = known | {name: spec | {"policy_delay": 2}}
        with pytest.raises(UserError, match=f"algorithms.{name} has the unknown key 'policy_delay'"):
            load_changed(tmp_path, params, "algorithms", params["algorithms"] | broken)
    alone = {name: value for name, value in LAGRANGIAN.items() if name != "extends"}
    with pytest.raises(UserError, match=r"algorithms.ppo_lagrangian lacks the key 'hidden_sizes'"):
        load_changed(tmp_path, params, "algorithms.ppo_lagrangian", alone)
    without_ppo = {name: spec for name, spec in params["algorithms"].items() if not name.startswith("ppo")}
    with pytest.raises(UserError, match=r"algorithms.ppo_lagrangian.extends names 'ppo', which"):
        load_changed(tmp_path, params, "algorithms", without_ppo | {"ppo_lagrangian": LAGRANGIAN})


# ---- mistakes that the run table finds ----


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("scale", "smok", r"scale names 'smok', which scales does not define; did you mean 'smoke'\?"),
        (
            "scales.smoke.experiments",
            ["maze"],
            r"scales.smoke.experiments names 'maze', .*did you mean 'mazes'\?",
        ),
        (
            "scales.smoke.environments",
            ["maze_9"],
            r"scales.smoke.environments names 'maze_9', which environments does not",
        ),
        (
            "environments.maze_1.family",
            "mase",
            r"environments.maze_1.family names 'mase', .*did you mean 'maze'\?",
        ),
        (
            "families.maze.exploration",
            "wite",
            r"families.maze.exploration names 'wite', .*did you mean 'white'\?",
        ),
        ("variants.white_noise.exploration", "pink", r"variants.white_noise.exploration names 'pink'"),
        (
            "methods.td3.algorithm",
            "td4",
            r"methods.td3.algorithm names 'td4', which algorithms does not define",
        ),
        (
            "experiments.mazes.runs.0.environments",
            ["maze_5"],
            r"experiments.mazes.runs\[0\].environments names 'maze_5'",
        ),
        ("experiments.mazes.runs.0.methods", ["td33"], r"experiments.mazes.runs\[0\].methods names 'td33'"),
        (
            "experiments.mazes.runs.0.variants",
            ["large_"],
            r"experiments.mazes.runs\[0\].variants names 'large_'",
        ),
        (
            "experiments.context_length.runs.0.methods",
            ["td3"],
            r"variants.context_1.agent: context_length is no hyper-parameter of td3.*method td3",
        ),
        (
            "experiments.counterexample.runs.0.methods",
            ["td3_cmdp"],
            r"variants.cost_aware changes early termination, which the method td3_cmdp does not have",
        ),
    ],
)
def test_what_the_run_table_cannot_resolve_is_told(tmp_path, params, path, value, sentence):
    with pytest.raises(UserError, match=sentence):
        load_changed(tmp_path, params, path, value, scale=None if path == "scale" else "smoke")


def test_an_experiment_named_by_a_scale_that_has_no_environment_of_it_is_told(tmp_path, params):
    params = changed(params, "scales.smoke.experiments", ["counterexample"])
    with pytest.raises(
        UserError, match=r"'counterexample', which has no run on any of scales.smoke.environments"
    ):
        load_changed(tmp_path, params, "scales.smoke.environments", ["maze_1"], scale="smoke")


# ---- files that are no params file at all ----


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty; it must be a mapping"),
        (b"# nothing\n", "is empty; it must be a mapping"),
        (b"- a\n- b\n", "is one list; it must be a mapping"),
        (b"just words\n", "is one str; it must be a mapping"),
        (b"\x89PNG\r\n\x1a\n\x00\xff", "is no text file: byte 0 is not UTF-8"),
        (b"a\x00b: 1\n", "is no valid YAML: unacceptable character"),
        (
            b"scale: laptop\n  scales: 3\n",
            "line 2, column 9 is no valid YAML: mapping values are not allowed here",
        ),
        (b"scale: [laptop\n", "line 2, column 1 is no valid YAML"),
        (b"scale: smoke\nscale: paper\n", "line 2, column 1 is no valid YAML: the key 'scale' stands twice"),
        (b"scale: *nothing\n", "line 1, column 8 is no valid YAML: found undefined alias"),
        (b"scale: !!python/object:os.system x\n", "is no valid YAML: could not determine a constructor"),
        (b"scale: 2021-13-45\n", "is no valid YAML: month must be in"),
    ],
)
def test_files_that_are_no_params_file(tmp_path, content, sentence):
    file = tmp_path / "params.yaml"
    file.write_bytes(content)
    with pytest.raises(UserError, match=sentence) as error:
        Grid.load(file)
    assert "\n" not in str(error.value)
    assert str(file) in str(error.value)


@pytest.mark.parametrize("name", ["missing.yaml", ""])
def test_a_file_that_is_not_there_or_a_folder(tmp_path, name):
    with pytest.raises(UserError, match="cannot read"):
        Grid.load(tmp_path / name)


# ---- the file itself ----


def test_yaml_1_1_and_1_2_read_the_same():
    """Snakemake reads YAML 1.1, DVC 1.2."""
    assert yaml.safe_load(PARAMS.read_text()) == YAML(typ="safe", pure=True).load(PARAMS.read_text())


def test_every_key_of_the_schema_has_a_description():
    schema = yaml.safe_load(Path(SCHEMA).read_text())
    groups = [schema, *schema["$defs"].values()]
    for group in groups:
        for name, spec in group.get("properties", {}).items():
            assert "description" in spec or "$ref" in spec, name
