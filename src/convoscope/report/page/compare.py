"""The screen that compares: what is worse, what is better, what is open; what was fixed and what broke."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import msgspec

from convoscope.analysis.answer import look_at_lost, make_answer, sentence_start
from convoscope.analysis.answer.causes import NONE
from convoscope.analysis.compare.model import ComparedFigure, ConversationPair, Finding, RunComparison
from convoscope.analysis.compare.pairs import conversation_pairs
from convoscope.analysis.compare.words import (
    difference_text,
    false_share_text,
    interval_text,
    needs_text,
    signed_text,
)
from convoscope.analysis.words import counted, cut_text, number_text, value_text
from convoscope.metrics.declaration import LOWER, SHARE
from convoscope.report.page.index import PairedList, Partner, ending_of
from convoscope.report.page.overview import VerdictPart, verdict_line
from convoscope.report.panels import ListFacet
from convoscope.runs.ranking import names, rank
from convoscope.runs.run import Run
from convoscope.views.end_reasons import HANDED_OVER
from convoscope.views.flow.endings import DONE, LOST

MAX_OPEN = 6
"""Open figures that are shown at first, by importance; the others are folded."""
TITLES: Mapping[Finding, str] = {
    "worse": "Worse in {after}",
    "better": "Better in {after}",
    "open": "No clear difference yet",
    "not_compared": "Not compared",
}
MOVED = {
    "broken": "Broke",
    "fixed": "Fixed",
    "both_lost": "Lost in both",
    "both_done": "Goal reached in both",
}
"""What became of a pair: facets of the list, by value."""
NAME = 24
SHORT_UNIT = 2
"""Letters of a unit that fits into a column."""


class DifferenceBar(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The interval of a difference. The right side is better, whatever the direction of the figure; 50 is no change."""

    value: float
    low: float
    high: float
    text: str


class ComparedRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A figure on both sides."""

    name: str
    label: str
    before: str
    after: str
    reason: str = ""
    """Why there is no value on a side."""
    difference: str
    interval: str
    remark: str
    bar: DifferenceBar | None = None
    small: bool = False


class ComparedPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The figures that moved one way, or not."""

    finding: Finding
    title: str
    rows: list[ComparedRow]
    folded: list[ComparedRow] = []
    related: str = ""
    """Figures that have the same values as one of the rows."""


class ComparedSide(msgspec.Struct, frozen=True, kw_only=True):
    """One side against the baseline."""

    name: str
    parts: list[ComparedPart]


class PairRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A conversation that was fixed or broke."""

    moved: str
    scenario: str
    before: str
    after: str
    reason: str = ""
    here: bool = False
    """Whether the earlier conversation is in the page."""


class MovedList(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was fixed, or what broke."""

    kind: str
    title: str
    most: str = ""
    """The reason that most of them have."""
    numbers: list[int]
    """Indices of pairs."""
    href: str = ""
    """The list of all of them."""


class CompareScreen(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Two or more sides."""

    baseline: str
    sides: list[ComparedSide]
    verdict: list[list[VerdictPart]]
    meta: list[str]
    lists: list[MovedList] = []
    pairs: list[PairRow] = []
    left_out: str = ""
    """How many pairs cannot be shown side by side."""
    groups: list[tuple[str, bool]] = []
    """A group in which a figure moved, in a sentence, and whether for the worse."""
    mix: list[str] = []
    is_one_run: bool = False
    """Both sides are in the list."""


def compare_screen(comparison: RunComparison, runs: Sequence[Run], stories: Collection[int] = ()) -> CompareScreen:
    """What the page shows of a comparison. `stories`: of two runs, the pairs whose earlier conversation is here."""
    before, *later = comparison.sides
    after = later[-1]
    pairs = [pair for pair in comparison.pairs if pair.side == after.name]
    return CompareScreen(
        baseline=cut_text(before.name, NAME),
        sides=[
            ComparedSide(name=cut_text(side.name, NAME), parts=list(_parts(comparison, side.name))) for side in later
        ],
        verdict=[verdict_line(clause) for clause in comparison.sentences],
        meta=list(_meta(comparison)),
        lists=[
            _moved_list(kind, pairs, comparison, _causes(run))
            for kind, run in (("broken", runs[-1]), ("fixed", runs[0]))
        ]
        if pairs
        else [],
        pairs=[_pair(pair, comparison.by or index in stories) for index, pair in enumerate(pairs)],
        left_out=_left_out(comparison, len(pairs), stories),
        groups=[(sentence_start(one.sentence), one.figure.finding == "worse") for one in comparison.groups],
        is_one_run=bool(comparison.by),
        mix=[sentence_start(one.sentence) for one in comparison.mix],
    )


def _causes(run: Run) -> dict[int, str]:
    """Why each lost conversation of a run was lost, where a cause was found."""
    answer = make_answer(run)
    causes = [one for one in (*answer.causes, *answer.remaining) if one.rule != NONE]
    return {number: cause.sentence for cause in causes for number in cause.numbers}


def _meta(comparison: RunComparison) -> Iterator[str]:
    if comparison.shared and (comparison.fixed or comparison.broken):
        yield f"{counted(comparison.fixed, comparison.noun)} fixed, {comparison.broken:,} broken."
    if comparison.pairing:
        yield f"{sentence_start(comparison.pairing)}."
    tested = sum(one.p is not None and not one.same_as for one in comparison.figures)
    if tested:
        yield f"A claim is corrected (Holm) for {counted(tested, 'figure')}; bars are 95 % intervals of the difference."
    yield from (f"{sentence_start(note)}." for note in comparison.notes)


def _parts(comparison: RunComparison, side: str) -> Iterator[ComparedPart]:
    own = [one for one in comparison.figures if one.side == side]
    for finding, title in TITLES.items():
        figures = [one for one in own if one.finding == finding and not one.same_as]
        same = [one for one in own if one.finding == finding and one.same_as]
        if not figures and finding in ("open", "not_compared"):
            continue
        rows = [_row(one, comparison) for one in figures]
        most = {"open": MAX_OPEN, "not_compared": 0}.get(finding, len(rows))
        yield ComparedPart(
            finding=finding,
            title=title.format(after=cut_text(side, NAME)),
            rows=rows[:most],
            folded=rows[most:],
            related=f"{counted(len(same), 'more figure')} with the same values: {', '.join(one.metric for one in same)}"
            if same
            else "",
        )


def _row(figure: ComparedFigure, comparison: RunComparison) -> ComparedRow:
    return ComparedRow(
        name=figure.metric,
        label=sentence_start(figure.label),
        before=_short(figure.before, figure.unit),
        after=_short(figure.after, figure.unit),
        reason=figure.remark or "no value" if figure.before is None or figure.after is None else "",
        difference="" if figure.difference is None else _short_difference(figure.difference, figure.unit),
        interval="" if figure.low is None and figure.high is None else interval_text(figure),
        remark=_remark(figure, comparison),
        bar=_bar(figure),
        small=figure.small,
    )


def _short(value: float | None, unit: str) -> str:
    """A value in a narrow column: a unit of several words is left out."""
    return value_text(value, unit) if value is None or _is_short(unit) else number_text(value, unit)


def _short_difference(value: float, unit: str) -> str:
    return difference_text(value, unit) if _is_short(unit) else signed_text(value, unit)


def _is_short(unit: str) -> bool:
    return unit == SHARE or len(unit) <= SHORT_UNIT


def _remark(figure: ComparedFigure, comparison: RunComparison) -> str:
    within = f", within {figure.within}" if figure.within else ""
    if figure.finding in ("better", "worse"):
        p = figure.p_holm
        chance = "" if p is None else "p < 0.001, corrected" if p < 0.001 else f"p {p:.3f}, corrected"
        chance += f"; {false_share_text(figure.q)}" if figure.q is not None and chance else ""
        return f"too small to matter; {chance}{within}" if figure.small else f"{chance}{within}"
    if figure.needs:
        return f"{needs_text(figure, comparison.noun)}{within}"
    return f"{figure.remark}{within}"


def _bar(figure: ComparedFigure) -> DifferenceBar | None:
    """On a scale of its own that is as wide as its interval: what lies to the right is better."""
    if figure.difference is None or (figure.low is None and figure.high is None):
        return None
    sign = -1 if figure.better == LOWER else 1
    known = [abs(one) for one in (figure.low, figure.high, figure.difference) if one is not None]
    most = 1.1 * max(known) or 1.0

    def at(value: float | None, if_open: float) -> float:
        return if_open if value is None else round(50 + 50 * sign * value / most, 2)

    low, high = at(figure.low, 50 - 50 * sign), at(figure.high, 50 + 50 * sign)
    words = f"{difference_text(figure.difference, figure.unit)}, 95 % interval {interval_text(figure)}"
    judged = {"better": "better", "worse": "worse"}.get(figure.finding, "no clear difference")
    return DifferenceBar(
        value=at(figure.difference, 50), low=min(low, high), high=max(low, high), text=f"{words}: {judged}"
    )


def _moved_list(
    kind: str, pairs: Sequence[ConversationPair], comparison: RunComparison, causes: Mapping[int, str]
) -> MovedList:
    """`causes`: why a conversation was lost, of the run in which these were."""
    numbers = [index for index, pair in enumerate(pairs) if pair.moved == kind]
    after = comparison.sides[-1].name
    count = (
        (comparison.broken if kind == "broken" else comparison.fixed) if len(comparison.sides) == 2 else len(numbers)
    )
    lost = [pairs[index].after_number if kind == "broken" else pairs[index].before_number for index in numbers]
    reasons = Counter(causes[number] for number in lost if number in causes)
    most, times = reasons.most_common(1)[0] if reasons else ("", 0)
    return MovedList(
        kind=kind,
        title=f"{MOVED[kind]} in {cut_text(after, NAME)}: {count:,}",
        most=f"Most: {most} ({times:,})." if times > 1 else "",
        numbers=numbers,
        href=f"#/calls?moved={kind}" if numbers else "",
    )


def _left_out(comparison: RunComparison, pairs: int, stories: Collection[int]) -> str:
    missing = 0 if comparison.by else pairs - len(stories)
    if not missing:
        return ""
    side = comparison.sides[0].name
    have = f"`convoscope show` has them in {cut_text(side, NAME)}"
    return f"{missing:,} of the {pairs:,} earlier {comparison.noun}s are not in this page; {have}."


def _pair(pair: ConversationPair, is_here: object) -> PairRow:
    trial = f", trial {pair.trial}" if pair.trial else ""
    return PairRow(
        moved=pair.moved,
        scenario=f"{pair.scenario}{trial}",
        before=pair.before,
        after=pair.after,
        reason=sentence_start(pair.reason),
        here=bool(is_here),
    )


def paired_list(comparison: RunComparison, runs: Sequence[Run], kinds: Sequence[str]) -> PairedList | None:
    """The pairs as a facet of the list, which the later conversation of each has."""
    before_of = conversation_pairs(comparison, runs)
    if not before_of:
        return None
    first, last = runs[0], runs[-1]
    ends = {id(run): _ends(run) for run in (first, last)}
    ids = names(first, list(before_of.values())), names(last, list(before_of))
    side = comparison.sides[-1].name
    shown = {pair.after_number: at for at, pair in enumerate(one for one in comparison.pairs if one.side == side)}
    values: dict[int, str] = {}
    partners: dict[int, Partner] = {}
    for after, before in before_of.items():
        was, now = ends[id(first)](before), ends[id(last)](after)
        value = _MOVES.get((was in _LOST, now in _LOST)) if {was, now} <= {DONE, *_LOST} else None
        pair = shown.get(after, -1)
        partners[after] = Partner(ids[0][before], kinds.index(was), before if comparison.by else -1, pair, True)
        if comparison.by:
            partners[before] = Partner(ids[1][after], kinds.index(now), after, pair, False)
        if value is not None:
            values[after] = value
    title = " → ".join(cut_text(comparison.sides[at].name, NAME) for at in (0, -1))
    return PairedList(ListFacet(key="moved", title=title, values=values, labels=MOVED), partners, title)


_LOST = (LOST, HANDED_OVER)
_MOVES = {(True, True): "both_lost", (False, False): "both_done", (True, False): "fixed", (False, True): "broken"}
"""By whether the earlier and the later one were lost."""


def _ends(run: Run) -> Callable[[int], str]:
    """How a conversation ended, as the list says it."""
    ranking = rank(run)
    lost = {one.number: one for one in look_at_lost(run)}
    return lambda number: ending_of(number, ranking, lost)
