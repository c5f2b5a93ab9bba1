"""The paper's claims as rules, judged in claims.py; nothing is computed here.

A check is a number that is positive if the claim is right. A requirement holds if any of its checks holds; a
claim is reproduced if all its requirements hold (or `needs` of them). Where the paper gives no number, ours
stands here by name.
"""

from __future__ import annotations

from dataclasses import dataclass

MARGIN = 0.1  # "as good as" means: at most a tenth worse
SOLVED_SHARE = 0.5  # "solves" means: more than half of the runs do
MOVING = 250.0  # "learns to move" means: more reward than this per episode without the alive bonus
ALIVE_BONUS = {"hopper_not_fall": 1.0, "walker_not_fall": 1.0, "humanoid_not_fall": 5.0}  # per step

NAVIGATION = ("nav_easy", "nav_hard")
MAZES = ("maze_1", "maze_2", "maze_3", "maze_4")
BUDGET = ("point_goal", "car_goal", "point_gather")
NOT_FALL = ("hopper_not_fall", "walker_not_fall", "humanoid_not_fall")
CONTROL = (
    "acrobot_swingup",
    "ball_in_cup_catch",
    "cartpole_balance",
    "cartpole_swingup",
    "cheetah_run",
    "finger_spin",
    "finger_turn_hard",
    "fish_swim",
    "hopper_hop",
    "hopper_stand",
    "humanoid_walk",
    "pendulum_swingup",
    "reacher_hard",
    "walker_run",
    "walker_walk",
    "swimmer_swimmer6",
)


@dataclass(frozen=True, order=True)
class Cell:
    """Where scores come from: a setting of the claim's experiment."""

    env: str
    method: str
    variant: str = "main"


@dataclass(frozen=True)
class Check:
    """A number that is positive if the claim is right: weighted scores, against a level, with a margin.

    It is the sum of weight x score(cell), plus margin x |score(last cell)|, minus the level (plus it if the
    first weight is negative). A score is the interquartile mean over seeds; of `solved`, the mean.

    Attributes:
        text: the check in words.
        metric: a column of the curves, or `progress`: the safe return without the alive bonus.
        score: `final`, `over_training` (area under the curve: speed) or `solved` (1 for a run that succeeds).
        level: a number, or `budget` for the C of the cells' environment.
    """

    text: str
    terms: tuple[tuple[float, Cell], ...]
    metric: str
    score: str = "final"
    level: float | str = 0.0
    margin: float = 0.0


@dataclass(frozen=True)
class Claim:
    """What the paper says and what must be seen for it to be reproduced.

    Attributes:
        requirements: each holds if any of its checks holds.
        needs: how many requirements must hold; None: all.
        statement: for a theorem, its name in the exact results of the experiment, instead of requirements.
    """

    id: str
    says: str
    experiment: str
    requirements: tuple[tuple[Check, ...], ...] = ()
    needs: int | None = None
    statement: str | None = None


def higher(a: Cell, b: Cell, metric: str, score: str = "final") -> Check:
    return Check(f"{_name(a, b)} > {_name(b, a)} on {a.env}", ((1, a), (-1, b)), metric, score)


def lower(a: Cell, b: Cell, metric: str) -> Check:
    return Check(f"{_name(a, b)} < {_name(b, a)} on {a.env}", ((-1, a), (1, b)), metric)


def as_good(a: Cell, b: Cell, metric: str) -> Check:
    text = f"{_name(a, b)} at most {MARGIN:.0%} below {_name(b, a)} on {a.env}"
    return Check(text, ((1, a), (-1, b)), metric, margin=MARGIN)


def above(a: Cell, level: float | str, metric: str, score: str = "final") -> Check:
    return Check(f"{_name(a)} above {_level(level)} on {a.env}", ((1, a),), metric, score, level)


def below(a: Cell, level: float | str, metric: str, score: str = "final") -> Check:
    text = f"{_name(a)} at or under {_level(level)} on {a.env}"
    return Check(text, ((-1, a),), metric, score, level)


def _name(cell: Cell, other: Cell | None = None) -> str:
    variant = cell.variant != "main" or (other is not None and other.method == cell.method)
    return f"{cell.method} ({cell.variant})" if variant else cell.method


def _level(level: float | str) -> str:
    return "the budget" if level == "budget" else f"{level:g}"


def _beats_all(envs: tuple[str, ...], rivals: tuple[str, ...], metric: str, score: str = "final"):
    return tuple(
        (higher(Cell(env, "context_td3"), Cell(env, rival), metric, score),)
        for env in envs
        for rival in rivals
    )


def _best_within_budget():
    requirements: list[tuple[Check, ...]] = []
    for env in BUDGET:
        ours = Cell(env, "context_td3")
        requirements.append((below(ours, "budget", "cost"),))
        for rival in ("td3", "ppo", "ppo_lagrangian", "cpo"):
            other = Cell(env, rival)
            requirements.append((above(other, "budget", "cost"), higher(ours, other, "return")))
    return tuple(requirements)


def _helps_more_with_fixed_starts():
    fixed = [Cell("nav_fixed_init", method) for method in ("context_td3", "td3")]
    free = [Cell("nav_random_init", method) for method in ("context_td3", "td3")]
    more = Check(
        "the gain of context_td3 over td3 on nav_fixed_init > that on nav_random_init",
        ((1, fixed[0]), (-1, fixed[1]), (-1, free[0]), (1, free[1])),
        "et_return",
    )
    return ((higher(fixed[0], fixed[1], "et_return"),), (more,))


def _moves_only_with_early_termination():
    checks = []
    for env in NOT_FALL:
        for method in ("td3", "context_td3"):
            checks.append(above(Cell(env, method), MOVING, "progress"))
            checks.append(below(Cell(env, f"{method}_cmdp"), MOVING, "progress"))
    return tuple((check,) for check in checks)


def _three_does_well():
    checks = []
    for env in MAZES:
        three = Cell(env, "context_td3", "context_3")
        # A positive return needs the goal: being as good as others that fail too is not doing well.
        checks.append(above(three, 0.0, "et_return"))
        checks += [as_good(three, Cell(env, "context_td3", f"context_{n}"), "et_return") for n in (1, 5, 7)]
    return tuple((check,) for check in checks)


def _thirty_units_suffice():
    main, large = ([Cell(env, "context_td3", variant) for env in NOT_FALL] for variant in ("main", "large"))
    suffice = [as_good(a, b, "et_return") for a, b in zip(main, large, strict=True)]
    return tuple((check,) for check in [*suffice, higher(main[2], large[2], "et_return", "over_training")])


def _smaller_end_reward_is_safer():
    checks = []
    for env in BUDGET:
        for method in ("td3", "context_td3"):
            small, large = Cell(env, method, "end_reward_10"), Cell(env, method, "end_reward_0")
            checks += [lower(small, large, "cost"), lower(small, large, "return")]
    return tuple((check,) for check in checks)


def _variant_pairs(compare, envs: tuple[str, ...], variant: str, *args):
    return tuple((compare(Cell(e, "context_td3"), Cell(e, "context_td3", variant), *args),) for e in envs)


def _tightened_fails():
    where, aware = "counterexample", Cell("counterexample", "context_td3", "cost_aware")
    fails = [
        below(Cell(where, method), SOLVED_SHARE, "success_rate", "solved")
        for method in ("td3", "context_td3")
    ]
    return tuple((check,) for check in [*fails, above(aware, SOLVED_SHARE, "success_rate", "solved")])


CLAIMS = (
    Claim(
        "C1",
        "Context TD3 on the ET-MDP has the highest success rate on both navigation maps",
        "success_rate",
        _beats_all(NAVIGATION, ("td3", "cpo", "ppo_lagrangian"), "success_rate", "solved"),
    ),
    Claim(
        "C2",
        "Context TD3 on the ET-MDP has the best safe return on every maze",
        "mazes",
        _beats_all(MAZES, ("td3", "ppo", "ppo_lagrangian", "cpo"), "et_return"),
    ),
    Claim(
        "C3",
        "Context TD3 on the ET-MDP has the best return of those at or under the budget on all budget tasks",
        "budget",
        _best_within_budget(),
    ),
    Claim(
        "C4",
        "The tightened approximation has lower cost and higher return than the cost-aware ET-MDP on car_goal",
        "budget",
        _variant_pairs(lower, ("car_goal",), "cost_aware", "cost")
        + _variant_pairs(higher, ("car_goal",), "cost_aware", "return"),
    ),
    Claim(
        "C5",
        "Context helps with fixed starts, more than with random starts",
        "initial_states",
        _helps_more_with_fixed_starts(),
    ),
    Claim(
        "C6",
        "With early termination TD3 and Context TD3 learn to move, without it neither does",
        "loose",
        _moves_only_with_early_termination(),
    ),
    Claim(
        "C7",
        "Context TD3 learns faster than TD3 on all three Not-Fall tasks",
        "loose",
        _beats_all(NOT_FALL, ("td3",), "et_return", "over_training"),
    ),
    Claim("C8", "A context of L = 3 does well on all four mazes", "context_length", _three_does_well()),
    Claim("C9", "30 units suffice; 120 learn slower on Humanoid", "context_size", _thirty_units_suffice()),
    Claim(
        "C10",
        "Separate encoders beat a shared one",
        "context_size",
        _variant_pairs(higher, NOT_FALL, "shared", "et_return"),
    ),
    Claim(
        "C11",
        "A smaller end reward gives lower cost and lower return",
        "end_reward",
        _smaller_end_reward_is_safer(),
    ),
    Claim(
        "C12",
        "Context beats TD3 on most (13 of 16) control tasks",
        "control",
        tuple((higher(Cell(e, "context_td3_cmdp"), Cell(e, "td3_cmdp"), "return"),) for e in CONTROL),
        needs=13,
    ),
    Claim(
        "C13",
        "A transformer is not better than a GRU",
        "encoder",
        _variant_pairs(as_good, ("maze_1", "maze_2"), "transformer", "et_return"),
    ),
    Claim(
        "C14",
        "The tightened approximation fails on the counterexample, the cost-aware ET-MDP solves it",
        "counterexample",
        _tightened_fails(),
    ),
    Claim(
        "C15",
        "Proposition 1: with a small enough end reward the ET-MDP's optimal policy is the CMDP's",
        "theory",
        statement="proposition_1",
    ),
    Claim(
        "C16",
        "Corollary 1: the regret ratio follows from the share of states that are safe",
        "theory",
        statement="corollary_1",
    ),
)
