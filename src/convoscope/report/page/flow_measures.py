"""The measures of the states of a flow as the page shows them: words, marks on one scale, and how versions differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from convoscope.analysis.flows.losses import ALL, StateKey, StateLosses, VersionDifference
from convoscope.analysis.flows.state_table import Rate
from convoscope.analysis.words import percent_text, value_text
from convoscope.metrics.declaration import SECONDS, SHARE
from convoscope.report.flow_tables import interval_text
from convoscope.report.page.overview import MIN_N

_SHARES = (0.1, 0.2, 0.4, 1.0)
_SECONDS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""Ends of scales: a scale is not fitted to the data, it is the next of a few."""


class _Words(NamedTuple):
    title: str
    unit: str
    below: str
    """What the values are of."""
    end: str
    """In the picture: `11 % lost`."""


_WORDS: Mapping[str, _Words] = {
    "lost": _Words("Lost", SHARE, "share of the {noun}s that enter a state and end there", "lost"),
    "stuck": _Words("Stuck", SHARE, "share of the {noun}s that enter a state and get stuck there", "stuck"),
    "handed_over": _Words(
        "Handed over", SHARE, "share of the {noun}s that enter a state and are handed to a person there", "handed over"
    ),
    "wait": _Words("Wait", SECONDS, "mean wait for a reply, over the replies in a state", ""),
    "objections": _Words("Objections", SHARE, "share of the {people}' turns that object or ask again", "object"),
}


class MeasureScale(msgspec.Struct, frozen=True, kw_only=True):
    """A measure: what it is called, and the scale of its table."""

    name: str
    title: str
    about: str
    scale: str
    """`0 to 40 %`."""
    most: float


class MeasureCell(msgspec.Struct, frozen=True, array_like=True):
    """A measure of a state, of all or of one version."""

    text: str
    """As the picture writes it."""
    marked: bool
    """The whole interval is above what the flow has as a whole."""
    value: str
    of: str
    at: float
    low: float | None
    high: float | None
    """In percent of the scale."""
    tip: str
    few: bool


class VersionChange(msgspec.Struct, frozen=True, array_like=True):
    """The later version against the earlier one."""

    text: str
    tone: str
    tip: str


def scales_of(losses: StateLosses, flow: str, versions: Sequence[str], noun: str) -> list[MeasureScale]:
    """The measures that a flow has, each with one scale for all its states and versions."""
    people = "callers" if noun == "call" else "users"
    scales = []
    for name in losses.measures(flow):
        words = _WORDS[name]
        reach = max(_reach(losses, flow, versions, name), default=0.0)
        ladder = _SHARES if words.unit == SHARE else _SECONDS
        most = next((end for end in ladder if end >= reach), reach or 1.0)
        end = percent_text(most) if words.unit == SHARE else f"{most:g} s"
        about = words.below.format(noun=noun, people=people)
        scales.append(MeasureScale(name=name, title=words.title, about=about, scale=f"0 to {end}", most=most))
    return scales


def _reach(losses: StateLosses, flow: str, versions: Sequence[str], name: str) -> Iterator[float]:
    for version in versions or (ALL,):
        for key, of_state in losses.rates.get(version, {}).items():
            if key[0] == flow and (rate := of_state.get(name)) is not None and rate.n >= MIN_N:
                yield max(rate.value or 0.0, rate.high or 0.0)


def cells_of(
    losses: StateLosses, key: StateKey, versions: Sequence[str], scales: Sequence[MeasureScale]
) -> tuple[dict[str, list[MeasureCell | None]], dict[str, VersionChange]]:
    """What a state has in each measure, of all and of each version; and how two versions differ in it."""
    cells: dict[str, list[MeasureCell | None]] = {}
    changes: dict[str, VersionChange] = {}
    for scale in scales:
        usual = _usual(losses, key[0], scale.name)
        rates = [losses.rates.get(version, {}).get(key, {}).get(scale.name) for version in (ALL, *versions)]
        cells[scale.name] = [None if rate is None else _cell(rate, scale, usual) for rate in rates]
        change = losses.differences.get((*key, scale.name))
        if change is not None and len(versions) == 2:
            changes[scale.name] = _change(change, _WORDS[scale.name].unit)
        elif len(versions) == 2 and all(rate is not None and not rate.value for rate in rates[1:]):
            changes[scale.name] = VersionChange("≈", "", "never in either version")
    return cells, changes


def _usual(losses: StateLosses, flow: str, name: str) -> float:
    """Of all states of a flow together."""
    rates = [of.get(name) for key, of in losses.rates[ALL].items() if key[0] == flow]
    known = [rate for rate in rates if rate is not None and rate.value is not None]
    total = sum(rate.n for rate in known)
    return sum((rate.value or 0.0) * rate.n for rate in known) / total if total else 0.0


def _cell(rate: Rate, scale: MeasureScale, usual: float) -> MeasureCell:
    words = _WORDS[scale.name]
    value, few = rate.value or 0.0, rate.n < MIN_N
    text = f"{percent_text(value)} {words.end}" if words.unit == SHARE else value_text(value, SECONDS)
    low, high = (None if end is None else _at(end, scale) for end in (rate.low, rate.high))
    interval = "" if rate.low is None else f", 95 % interval {interval_text(rate, words.unit)}"
    shown = value_text(value, words.unit)
    return MeasureCell(
        text="" if not value and words.unit == SHARE else text,
        marked=not few and rate.low is not None and rate.low > usual,
        value=shown,
        of=f"of {rate.n:,}",
        at=_at(value, scale),
        low=low,
        high=high,
        tip=f"n {rate.n:,}: too few to conclude" if few else f"{shown} of {rate.n:,}{interval}",
        few=few,
    )


def _at(value: float, scale: MeasureScale) -> float:
    return round(min(100.0, max(0.0, 100 * value / scale.most)), 2)


def _change(change: VersionDifference, unit: str) -> VersionChange:
    """More is worse in all of them. A difference that does not hold is about the same."""
    shown, interval = difference_text(change.difference, unit), difference_range(change.low, change.high, unit)
    if not change.holds:
        return VersionChange("≈", "", f"no clear difference: {shown}, 95 % interval {interval}")
    tone = "bad" if change.difference > 0 else "good"
    word = "worse" if change.difference > 0 else "better"
    return VersionChange(f"{shown} {word}", tone, f"95 % interval {interval}, corrected for the states compared")


def difference_text(value: float, unit: str) -> str:
    """`+7.7 pts`, `−0.71 s`."""
    sign = "+" if value > 0 else "−" if value < 0 else "±"
    if unit == SHARE:
        return f"{sign}{100 * abs(value):.1f} pts"
    return f"{sign}{value_text(abs(value), unit)}"


def difference_range(low: float | None, high: float | None, unit: str) -> str:
    """`+2.5 to +12.8`."""
    ends = ["open" if end is None else difference_text(end, unit).partition(" ")[0] for end in (low, high)]
    return " to ".join(ends)
