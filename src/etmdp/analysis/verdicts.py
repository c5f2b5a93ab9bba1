"""What a judged claim is, and how it is written down."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from etmdp.analysis.stats import MIN_SEEDS
from etmdp.analysis.tables import markdown_row, number
from etmdp.grid import Grid

VERDICTS = ("reproduced", "not reproduced", "inconclusive", "not run")
NOTE = f"""\
Each claim is judged by a rule (src/etmdp/analysis/rules.py) on 95 % bootstrap intervals, never by hand. A
positive effect speaks for the paper; shown is the check that speaks most against it. Fewer than {MIN_SEEDS}
seeds decide nothing, and a claim with a part missing is never called reproduced."""


@dataclass(frozen=True)
class Result:
    """One check, judged. Effect and interval are missing where a run is."""

    text: str
    measure: str
    status: str
    why: str
    effect: float | None = None
    lower: float | None = None
    upper: float | None = None
    improvement: float | None = None
    seeds: int = 0
    steps: int = 0


@dataclass(frozen=True)
class Verdict:
    """A claim, judged. The effect is that of the check that speaks most against the claim."""

    id: str
    says: str
    experiment: str
    verdict: str
    why: str
    scale: str
    effect: float | None = None
    lower: float | None = None
    upper: float | None = None
    measure: str = ""
    seeds: int = 0
    steps: int = 0
    present: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    checks: list[Result] = field(default_factory=list)


def to_json(verdicts: list[Verdict]) -> list[dict[str, Any]]:
    return [asdict(verdict) for verdict in verdicts]


def to_markdown(grid: Grid, verdicts: list[Verdict]) -> str:
    text = [f"# The paper's claims at the scale `{grid.scale}`", "", f"{tally(verdicts)}.", ""]
    text += [
        NOTE,
        "",
        markdown_row(
            ["claim", "the paper says", "verdict", "effect", "95 % interval", "seeds", "steps", "why"]
        ),
        markdown_row(["---"] * 8),
    ]
    for v in verdicts:
        seeds, steps = (str(n) if n else "-" for n in (v.seeds, v.steps))
        text.append(markdown_row([v.id, v.says, f"**{v.verdict}**", effect(v), span(v), seeds, steps, v.why]))
    for v in verdicts:
        if v.checks:
            text += ["", f"## {v.id}: {v.says}", ""]
            text.append(
                markdown_row(["check", "measure", "status", "effect", "95 % interval", "P(better)", "seeds"])
            )
            text.append(markdown_row(["---"] * 7))
            for c in v.checks:
                better = "-" if c.improvement is None else f"{c.improvement:.2f}"
                text.append(
                    markdown_row(
                        [c.text, c.measure, c.status, effect(c), span(c), better, str(c.seeds or "-")]
                    )
                )
    return "\n".join([*text, ""])


def tally(verdicts: list[Verdict]) -> str:
    """How many claims have each verdict, in words."""
    return ", ".join(f"{sum(v.verdict == name for v in verdicts)} {name}" for name in VERDICTS)


def effect(judged: Verdict | Result) -> str:
    return "-" if judged.effect is None else number(judged.effect)


def span(judged: Verdict | Result) -> str:
    return (
        "-"
        if judged.lower is None or judged.upper is None
        else f"[{number(judged.lower)}, {number(judged.upper)}]"
    )
