"""Targets as people write them, and the figure that each of them means.

`tools.success >= 90%` is about all conversations, `state.stall[flow=booking, state=greet] <= 10%` about one group.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Literal, NamedTuple, cast

from convoscope.errors import UsageError, nearest_names
from convoscope.metrics.declaration import RATIO, SHARE, Target
from convoscope.metrics.registry import Declared
from convoscope.runs.summary import DeclaredMetric, describe
from convoscope.scores.reducers import figures_of
from convoscope.text.patterns import lazy_pattern

MAX_NAMED = 12
"""A run with no more figures than this has them named in an error."""

_TARGET = lazy_pattern(
    r"\s*+(?P<name>[^<>=≤≥\[\]]*[^<>=≤≥\[\]\s])\s*"
    r"(?:\[(?P<group>(?:\"(?:[^\"\\]|\\.)*+\"|[^\"\]])*+)\]\s*)?(?P<comparison>>=|<=|>|<|≥|≤)"
    r"\s*(?P<number>[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?)\s*(?P<unit>[^\s\d.,<>=](?:.*\S)?)?\s*"
)
_SIGNS = {"≥": ">=", "≤": "<="}
_PAIR = re.compile(
    r"\s*+(?P<name>[^=,\"\s](?:[^=,\"]*[^=,\"\s])?)\s*="
    r"\s*(?P<value>\"(?:[^\"\\]|\\.)*+\"|[^,\"]*)\s*(?:,|$)"
)
_BARE = re.compile(r"[^\s,\"\[\]=](?:[^,\"\[\]=\r\n]*[^\s,\"\[\]=])?")

By = tuple[tuple[str, str], ...]
"""The dimensions that a group shares, by name; empty for all conversations."""


Decision = Literal["value", "interval"]
WhenUndetermined = Literal["stop", "fail", "warn"]


class Requirements(NamedTuple):
    """What a figure needs before a target decides anything, and what comes of it where it is undetermined."""

    min_n: int = 0
    """Conversations that were measured; of a change, those that are compared."""
    min_coverage: float = 0.0
    decide: Decision = "value"
    """`interval`: only where the whole 95 % interval is on one side of the limit."""
    when_undetermined: WhenUndetermined = "stop"
    """`fail`: it counts as failed. `warn`: it is shown, and does not count."""
    rule: str = ""
    """The rule of a policy that asks for it, as it is written there."""


ANY = Requirements()
"""A target of the command line: the value decides, however little it rests on."""


class FigureTarget(NamedTuple):
    """A target, and the figure that it is for: `timing.response_latency p95`."""

    figure: str
    target: Target
    by: By = ()
    requires: Requirements = ANY

    @property
    def text(self) -> str:
        """As it is kept: two ways to write the same target give the same text."""
        value = repr(self.target.value).removesuffix(".0")
        return f"{self.figure}{group_text(self.by)} {self.target.comparison} {value}"


class ParsedTarget(NamedTuple):
    """What a text says, before the figure is looked up."""

    name: str
    comparison: Literal[">", ">=", "<", "<="]
    number: Decimal
    unit: str
    by: By


def given_target(text: str, units: Mapping[str, str]) -> FigureTarget:
    """The target that a user wrote. `units` are the figures there are, each with its unit."""
    parsed = parse_target(text)
    figure = find_figure(parsed.name, units)
    return FigureTarget(figure, Target(parsed.comparison, limit_of(parsed, figure, units[figure])), parsed.by)


def kept_target(text: str) -> FigureTarget:
    """A target as a run keeps it: the name is whole, and was looked up before it was kept."""
    parsed = parse_target(text)
    return FigureTarget(parsed.name, Target(parsed.comparison, float(parsed.number)), parsed.by)


def group_text(by: By) -> str:
    """`[flow=booking, state=greet]`; nothing for all conversations. A value that could be misread is in quotes."""
    if not by:
        return ""
    pairs = (f"{name}={value if _BARE.fullmatch(value) else json.dumps(value)}" for name, value in by)
    return f"[{', '.join(pairs)}]"


def kept_texts(texts: Sequence[str], metrics: Iterable[Declared]) -> list[str]:
    """The targets that a user wrote as a run keeps them; refuses figures that the run will not have."""
    units = {name: metric.unit for metric in metrics for name in figure_names(describe(metric))} if texts else {}
    return sorted({given_target(text, units).text for text in texts})


def figure_names(declared: DeclaredMetric) -> list[str]:
    """The figures that a metric will have: `answer.f1`, `answer.f1 precision`."""
    if declared.observes == "group":
        return [declared.metric]
    steps = {"": declared.reduce.across, **declared.also}
    return [
        " ".join(part for part in (declared.metric, name, figure) if part)
        for name, across in steps.items()
        for figure in figures_of(across)
    ]


def parse_target(text: str) -> ParsedTarget:
    """What a text says."""
    match = _TARGET.fullmatch(text)
    if match is None:
        # Without quotes, a shell takes what follows > as the name of a file, and we get the rest.
        hint = "write a figure, one of > >= < <=, and a number, all in quotes: 'tools.success >= 90%'"
        raise UsageError(f"{text!r} is not a target", hint=hint)
    number = Decimal(match["number"])
    if not math.isfinite(float(number)):
        raise UsageError(f"{text!r} is not a target: {match['number']} is too large")
    sign = match["comparison"]
    comparison = cast(Literal[">", ">=", "<", "<="], _SIGNS.get(sign, sign))
    name, by = " ".join(match["name"].split()), _group(text, match["group"])
    return ParsedTarget(name, comparison, number, match["unit"] or "", by)


def _group(text: str, inside: str | None) -> By:
    """The group in the brackets: dimensions, each with its value, in the order of their names."""
    if inside is None:
        return ()
    hint = (
        "name a group by its dimensions: 'state.stall[flow=booking, state=greet] <= 10%'; odd values in double quotes"
    )
    by: dict[str, str] = {}
    end = 0
    while end < len(inside) or not by:
        pair = _PAIR.match(inside, end)
        if pair is None or pair["name"] in by:
            raise UsageError(f"{text!r} is not a target: [{inside}] is not a group", hint=hint)
        try:
            value = json.loads(pair["value"]) if pair["value"].startswith('"') else pair["value"].strip()
        except ValueError:
            raise UsageError(f"{text!r} is not a target: {pair['value']} is not a text", hint=hint) from None
        by[pair["name"]] = value
        end = pair.end()
    return tuple(sorted(by.items()))


def limit_of(parsed: ParsedTarget, figure: str, unit: str) -> float:
    """The number in the figure's own unit."""
    if parsed.unit == "%" and unit in (SHARE, RATIO):
        return float(parsed.number / 100)
    if parsed.unit not in ("", unit):
        raise UsageError(f"{figure} is not in {parsed.unit!r}", hint=f"its unit is {unit}; write the number alone")
    if unit == SHARE and not parsed.unit and abs(parsed.number) > 1:
        # Who writes 90 for a share means 90 %; as a number it would be missed, or met, whatever happens.
        raise UsageError(f"{figure} is a share, and {parsed.number} is above 1", hint=f"write {parsed.number}%")
    return float(parsed.number)


def find_figure(name: str, units: Mapping[str, str]) -> str:
    """The figure that is meant: its whole name, or without the family where that is unique."""
    if name in units:
        return name
    metric, blank, reduction = name.partition(" ")
    for bare in (metric, metric.removesuffix("_scorer")):
        matches = sorted(figure for figure in units if figure.split(".", 1)[-1] == bare + blank + reduction)
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise UsageError(f"{name!r} could be {', '.join(matches)}", hint="write the whole name")
    raise UsageError(f"no figure is called {name!r}", hint=_nearest(name, units))


def _nearest(name: str, units: Mapping[str, str]) -> str:
    """`did you mean tools.success?`; without any near name, where the names are."""
    if near := nearest_names(name, units):
        return f"did you mean {' or '.join(near)}?"
    if len(units) <= MAX_NAMED:
        return f"there is {', '.join(sorted(units))}"
    return "`convoscope metrics` lists the ones there are"
