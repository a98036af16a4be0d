"""The answer of a comparison in a few sentences: what matters most first, good and bad as loudly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from convoscope.analysis.answer.figures import twin_of
from convoscope.analysis.answer.model import Clause, Noun, Tone
from convoscope.analysis.answer.verdict import VERBS
from convoscope.analysis.compare.model import ComparedFigure, Finding, MovedGroup, Overall, Side
from convoscope.analysis.compare.words import change_text, rounded, values_text
from convoscope.analysis.words import counted, cut_text
from convoscope.metrics.declaration import SHARE
from convoscope.runs.ranking import OUTCOME_METRIC

MOST_CLAIMS = 2
"""Of each direction, so many are sentences; the others are counted."""
TIMES = 2.0
"""From so many times on, a share is said to be so many times as large."""
MAX_NAME = 24


SURE_GROUP = 0.01
"""A group that moved is part of the answer where its corrected probability is this small."""


def overall(figures: Sequence[ComparedFigure], groups: Sequence[MovedGroup] = ()) -> Overall:
    """What the claims come to. A difference that is too small to matter decides nothing."""
    if not any(one.p is not None for one in figures):
        return "nothing_to_compare"
    findings: set[Finding] = {one.finding for one in figures if one.finding in ("better", "worse") and not one.small}
    findings |= {one.figure.finding for one in _sure(groups)}
    if findings == {"better", "worse"}:
        return "mixed"
    return "better" if "better" in findings else "worse" if "worse" in findings else "no_clear_difference"


def _sure(groups: Sequence[MovedGroup]) -> list[MovedGroup]:
    return [one for one in groups if (one.figure.p_holm or 0.0) <= SURE_GROUP]


def sentences(
    figures: Sequence[ComparedFigure], sides: Sequence[Side], noun: Noun, groups: Sequence[MovedGroup] = ()
) -> Iterator[Clause]:
    """For each side that is held against the baseline, what the data decide."""
    for later in sides[1:]:
        own = [one for one in figures if one.side == later.name]
        before, after = cut_text(sides[0].name, MAX_NAME), cut_text(later.name, MAX_NAME)
        yield from _outcome_not_compared(own)
        yield from _of_side(own, before, after, noun, min(sides[0].conversations, later.conversations))
        for group in [one for one in _sure(groups) if one.figure.side == later.name][:MOST_CLAIMS]:
            tone: Tone = "bad" if group.figure.finding == "worse" else "good"
            lead, _, rest = group.sentence.partition(": ")
            yield Clause(lead=f"In {lead}", rest=f": {rest}.", tone=tone)


def _outcome_not_compared(figures: Sequence[ComparedFigure]) -> Iterator[Clause]:
    outcome = next((one for one in figures if one.metric == OUTCOME_METRIC), None)
    if outcome is not None and outcome.finding == "not_compared":
        yield Clause(lead=f"Whether more goals are reached is not compared: {outcome.remark}.")


LEAST_COMPARED = 5


def _of_side(figures: Sequence[ComparedFigure], before: str, after: str, noun: Noun, smaller: int) -> Iterator[Clause]:
    tested = [one for one in figures if one.p is not None and not one.same_as]
    if not tested and smaller < LEAST_COMPARED:
        yield Clause(lead=f"{counted(smaller, noun)} of one side: too few to compare {after} with {before}.")
        return
    if not tested:
        first = next((one for one in figures if one.remark), None)
        lead = f"{after} and {before} have no figure in common."
        if first is not None:
            lead = f"No figure of {after} can be compared with {before}, such as {first.label}: {first.remark}."
        yield Clause(lead=lead)
        return
    claimed = [one for one in tested if one.finding in ("better", "worse")]
    outcome = next((one for one in tested if one.metric == OUTCOME_METRIC), None)
    shown = _shown(claimed)
    if outcome is not None and outcome not in claimed:
        yield _open(outcome, before, after, noun)
    for figure in shown:
        yield _claim(figure, before, after, noun)
    yield from _rest(tested, claimed, shown, before, after, outcome)


def _shown(claimed: Sequence[ComparedFigure]) -> list[ComparedFigure]:
    """The claims that become sentences: of each direction the most important; one of those that move together."""
    large = sorted(
        (one for one in claimed if not one.small),
        key=lambda one: (-one.importance, one.finding == "better", one.p or 0.0),
    )
    shown: list[ComparedFigure] = []
    for figure in large:
        key = figure.metric.partition(" ")[0]
        related = any(twin_of(key) == twin_of(one.metric.partition(" ")[0]) for one in shown)
        if not related and sum(one.finding == figure.finding for one in shown) < MOST_CLAIMS:
            shown.append(figure)
    return shown


def _claim(figure: ComparedFigure, before: str, after: str, noun: Noun) -> Clause:
    """`v2 talks over callers 7 times as often as v1: 8.9 %, was 1.2 % (+7.7 points, 95 % +3.4 to +12.0).`"""
    tone: Tone = "bad" if figure.finding == "worse" else "good"
    label = f"{figure.label} " if figure.metric in VERBS and figure.metric != OUTCOME_METRIC else ""
    rest = f": {label}{values_text(figure)} ({change_text(figure)}){_basis(figure)}."
    return Clause(lead=f"{after} {_verb(figure, noun)} {before}", rest=rest, tone=tone)


def _verb(figure: ComparedFigure, noun: Noun) -> str:
    """What the later side does: `completes more calls than`, `talks over callers 7 times as often as`."""
    good = figure.finding == "better" if figure.finding != "open" else True
    verbs = VERBS.get(figure.metric)
    if verbs is None:
        return f"does {'better' if good else 'worse'} in {figure.label} than"
    people = "callers" if noun == "call" else "users"
    verb = verbs[0 if good else 1].format(noun=noun, people=people)
    if figure.unit == SHARE and verb.endswith(" more often") and figure.before and figure.after:
        times = figure.after / figure.before
        if times >= TIMES:
            return f"{verb.removesuffix(' more often')} {times:.0f} times as often as"
    return f"{verb} than"


def _basis(figure: ComparedFigure) -> str:
    if figure.paired:
        return f", in {counted(figure.n, 'pair')}"
    return f", within {figure.within}" if figure.within else ""


def _open(figure: ComparedFigure, before: str, after: str, noun: Noun) -> Clause:
    """That it is open whether more is completed, how far it may be, and what would decide it."""
    lead = f"No clear difference yet in whether {after} {_verb(figure, noun)} {before}"
    parts = [f": {values_text(figure)} ({change_text(figure)}){_basis(figure)}"]
    if figure.needs:
        what = "scenario" if figure.paired else f"{noun}"
        more = counted(rounded(figure.needs), f"more {what}")
        parts.append(f"; about {more}{'' if figure.paired else ' a side'} would decide")
    elif figure.remark and not figure.remark.startswith("may be"):  # the interval says so
        parts.append(f"; {figure.remark}")
    return Clause(lead=lead, rest="".join(parts) + ".")


def _rest(
    tested: Sequence[ComparedFigure],
    claimed: Sequence[ComparedFigure],
    shown: Sequence[ComparedFigure],
    before: str,
    after: str,
    outcome: ComparedFigure | None,
) -> Iterator[Clause]:
    """What is not in a sentence: more claims, small ones, and how many figures show nothing."""
    more = [one for one in claimed if one not in shown and not one.small]
    worse, better = ([one for one in more if one.finding == finding] for finding in ("worse", "better"))
    parts = [f"{len(worse):,} worse"] if worse else []
    parts += [f"{len(better):,} better"] if better else []
    small = sum(one.small for one in claimed)
    parts += [f"{small:,} clear but too small to matter"] if small else []
    if parts:
        yield Clause(lead="", rest=f"Of the other figures: {', '.join(parts)}.")
    left = len(tested) - len(claimed) - (outcome is not None and outcome not in claimed)
    if not claimed and not left:
        return
    if not claimed:
        other = "figure" if outcome is None else "other figure"
        yield Clause(lead=f"No clear difference between {before} and {after} in {counted(left, other)}.")
    elif left:
        yield Clause(lead="", rest=f"No clear difference in {counted(left, 'other figure')}.")
