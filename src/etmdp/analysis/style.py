"""How a method looks, the same in every figure and in the report, and what the metrics are called.

Colours are told apart with any colour vision; line style and marker tell the methods apart in grey.
"""

from __future__ import annotations

import colorsys
from dataclasses import dataclass

Dashes = tuple[float, ...]  # lengths of lines and gaps in points; empty: a full line


@dataclass(frozen=True)
class Style:
    colour: str
    dashes: Dashes
    marker: str


METHODS = {
    "context_td3": Style("#d55e00", (), "o"),
    "td3": Style("#0072b2", (5, 2), "s"),
    "context_td3_cmdp": Style("#b8860b", (8, 2, 1.5, 2), "^"),
    "td3_cmdp": Style("#56b4e9", (1.5, 1.5), "v"),
    "ppo": Style("#7f7f7f", (3, 1.5), "P"),
    "ppo_lagrangian": Style("#009e73", (6, 2, 1.5, 2, 1.5, 2), "D"),
    "cpo": Style("#cc79a7", (4, 1.5, 1, 1.5), "X"),
    "ppo_et": Style("#7b5ea7", (9, 3), ">"),
    "trpo": Style("#4d4d4d", (2, 1, 2, 3), "<"),
    "trpo_et": Style("#a6761d", (7, 1.5, 3, 1.5), "h"),
}
# For methods and variants that are not listed above: in turn.
SPARE_COLOURS = ("#8c564b", "#2f4b7c", "#a05195", "#4d7c0f")
SPARE_DASHES: tuple[Dashes, ...] = ((2, 2), (7, 2), (7, 2, 2, 2), (1, 1), (4, 2, 1, 2, 1, 2), (10, 2))
SPARE_MARKERS = ("v", "D", "^", "P", "X", ">")
# A method's variants stay near its hue: degrees away from it, and lightness.
SHADES = ((-30, 0.42), (15, 0.58), (0, 0.22), (-15, 0.68), (30, 0.35), (-50, 0.5))

# Name and unit of each metric.
METRICS = {
    "return": ("Return", "reward per episode"),
    "cost": ("Cost", "cost per episode"),
    "violation_rate": ("Violation rate", "share of episodes"),
    "et_return": ("Safe return", "reward per episode up to a violation"),
    "et_length": ("Length up to a violation", "steps"),
    "success_rate": ("Success rate", "share of episodes"),
    "train_cost": ("Training cost", "total"),
    "train_violations": ("Training violations", "episodes"),
    "train_cost_rate": ("Training cost rate", "cost per step"),
    "train_return": ("Training return", "reward per episode"),
}
LOWER_IS_BETTER = frozenset({"cost", "violation_rate", "train_cost", "train_violations", "train_cost_rate"})
RANDOM_START = "random_start_"


def style(method: str, variant: str, params: dict) -> Style:
    """The look of a method's variant: `main` has the method's own, others keep its hue.

    Args:
        params: params.yaml, whose order numbers the methods and variants that have no look of their own.
    """
    base = METHODS.get(method)
    if base is None:
        number = list(params["methods"]).index(method)
        base = Style(_turn(SPARE_COLOURS, number), _turn(SPARE_DASHES, number), _turn(SPARE_MARKERS, number))
    if variant == "main":
        return base
    number = [name for name in params["variants"] if name != "main"].index(variant)
    return Style(
        _shade(base.colour, *_turn(SHADES, number)), _turn(SPARE_DASHES, number), _turn(SPARE_MARKERS, number)
    )


def metric_name(metric: str) -> str:
    plain = metric.removeprefix(RANDOM_START)
    name = METRICS.get(plain, (plain.replace("_", " ").capitalize(), ""))[0]
    return f"{name}, random starts" if plain != metric else name


def metric_unit(metric: str) -> str:
    return METRICS.get(metric.removeprefix(RANDOM_START), ("", ""))[1]


def lower_is_better(metric: str) -> bool:
    return metric.removeprefix(RANDOM_START) in LOWER_IS_BETTER


def env_name(env: str) -> str:
    return env.replace("_", " ")


def _turn(values, number):
    return values[number % len(values)]


def _shade(colour: str, degrees: float, lightness: float) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    hue, _, saturation = colorsys.rgb_to_hls(red, green, blue)
    parts = colorsys.hls_to_rgb((hue + degrees / 360) % 1, lightness, min(saturation, 0.85))
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)
