"""The first screen: the verdict, what came of the conversations, the key figures, and what breaks first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote, urlencode

import msgspec

from convoscope.analysis.answer import Answer, Cause, Clause, KeyFigure, sentence_start
from convoscope.analysis.answer.model import Noun, Outcomes
from convoscope.analysis.words import (
    counted,
    interval_text,
    name_text,
    number_text,
    percent_text,
    reason_text,
    seconds_text,
    value_text,
)
from convoscope.ingest.report import ReadReport
from convoscope.metrics.declaration import COUNT, RATIO, SHARE
from convoscope.metrics.registry import whole_metrics
from convoscope.report.judging import judging_lines
from convoscope.report.page.causes import CauseShares, VersionShare, VersionVisits
from convoscope.report.page.figures import FigureData, ScaledInterval, Spread
from convoscope.report.page.suggestions import TriedTarget, suggested_target
from convoscope.report.run_tables import interval_and_clusters
from convoscope.runs.audit import NO_FLOW
from convoscope.runs.ranking import OUTCOME_METRIC
from convoscope.runs.run import Run
from convoscope.statistics.summary import Figure

MIN_N = 20
"""A figure of fewer is marked as too small to conclude from."""
MAX_LINES = 60
"""Lines of a fold; what is left out is counted."""
OUTCOMES: Mapping[str, str] = {
    "done": "reached their goal",
    "lost": "lost on the way",
    "handed_over": "handed to a person",
    "unknown": "outcome not known",
    "broken": "more broke off on the line, not counted",
    "no_user_speech": "more without a word of the user, not counted",
    "voicemail": "more are mailboxes, not counted",
    "ivr": "more are phone menus, not counted",
}


NOT_COUNTED = ("broken", "no_user_speech", "voicemail", "ivr")
"""What is not in the bar: it says nothing about the agent."""


class OutcomePart(msgspec.Struct, frozen=True):
    """A part of the bar of outcomes, or what is beside it."""

    kind: str
    count: int
    label: str
    href: str
    counted: bool
    """Whether it is in the bar."""


class VerdictPart(msgspec.Struct, frozen=True, array_like=True):
    """Some words of a sentence of the verdict."""

    text: str
    strong: bool
    tone: str
    """`bad` or `good` for the words that judge."""


def verdict_line(clause: Clause) -> list[VerdictPart]:
    """A sentence, as loud whether its news is good or bad.

    Where numbers follow a colon, the words before it judge; else what follows does: `, below the target of 80 %`.
    """
    tone = "" if clause.tone == "plain" else clause.tone
    judges = not clause.rest.startswith(":")
    lead = VerdictPart(clause.lead, True, "" if judges else tone)
    if not judges or not tone:
        return [part for part in (lead, VerdictPart(clause.rest, False, "")) if part.text]
    # What a target is followed by is no verdict.
    verdict, mark, rest = clause.rest.partition(";")
    parts = (lead, VerdictPart(verdict, True, tone), VerdictPart(mark + rest, False, ""))
    return [part for part in parts if part.text]


class Card(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A key figure."""

    name: str
    label: str
    value: str
    unit: str = ""
    interval: str = ""
    n: str
    coverage: str = ""
    target: str = ""
    verdict: str = ""
    remark: str = ""
    bad: bool = False
    bar: ScaledInterval | None = None
    spread: Spread | None = None
    trial: TriedTarget | None = None


class BadFigure(msgspec.Struct, frozen=True, array_like=True):
    """A bad figure without a card."""

    text: str
    name: str


class CauseRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A cause: how many it lost, who does what, one line of evidence, and where to go."""

    lost: int
    share: float
    """Of the cause that lost most, in percent: the length of its bar."""
    sentence: str
    evidence: str = ""
    quote: str = ""
    example: str = ""
    """Where the quote is."""
    opinion: list[str] = []
    """What a judge says of the example: who it is and what it rates, its reason, what it quotes."""
    versions: list[VersionShare] = []
    href: str
    calls: str
    state: str = ""


class Fold(msgspec.Struct, frozen=True):
    """One line that says how much there is, and the lines behind it."""

    line: str
    lines: list[str]


class Rough(msgspec.Struct, frozen=True):
    """A conversation that was slow or rough, where none was lost."""

    conversation: str
    reason: str


class Overview(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a person sees first."""

    verdict: list[list[VerdictPart]]
    """A line each."""
    meta: str = ""
    target: float | None = None
    """Where the target is in the bar of outcomes, in percent."""
    target_text: str = ""
    outcomes: list[OutcomePart] = []
    cards: list[Card] = []
    cards_line: str = ""
    more_bad: list[BadFigure] = []
    """The bad figures without a card."""
    notes: list[str] = []
    causes: list[CauseRow] = []
    causes_line: str = ""
    remaining: list[CauseRow] = []
    nothing_lost: str = ""
    rough: list[Rough] = []
    folds: list[Fold] = []
    banner: str = ""
    footer: str


def overview(
    run: Run,
    answer: Answer,
    data: FigureData,
    links: Mapping[tuple[str, str], str],
    visits: VersionVisits | None = None,
) -> Overview:
    """The answer, with what is drawn beside it. `visits`: by version, how many conversations were in each state."""
    noun, outcomes, receipt = answer.noun, answer.outcomes, run.receipt
    most = max((one.lost for one in (*answer.causes, *answer.remaining)), default=1)
    figures = {name_text(one): one for one in run.summary.metrics}
    is_known = outcomes.known > 0
    lost = is_known and outcomes.all_lost > 0
    target = next((one.target for one in data.checks.get(OUTCOME_METRIC, ())), None) if is_known else None
    counts = msgspec.structs.asdict(outcomes) if outcomes.unknown < outcomes.total else {}
    is_any_counted = any(counts.get(kind) for kind in OUTCOMES if kind not in NOT_COUNTED)
    measured = sum(entry is None for entry in run.summary.whole_metrics.values())
    banner = "" if receipt.valid else f"This run is marked invalid since {receipt.invalidated_at}: "
    if banner:
        by = f" Superseded by {receipt.superseded_by}." if receipt.superseded_by else ""
        banner += f"{receipt.invalid_reason}.{by}"
    judging = judging_lines(run.summary)
    shares = CauseShares(run, answer, visits)
    return Overview(
        verdict=[verdict_line(clause) for clause in answer.verdict],
        meta=_interval_line(figures.get(OUTCOME_METRIC), run, outcomes, noun) if is_known else "",
        target=None if target is None or outcomes.unknown or outcomes.not_judged else round(100 * target.value, 2),
        target_text="" if target is None else f"target {percent_text(target.value)}",
        outcomes=[
            OutcomePart(
                kind,
                counts[kind],
                (label if is_any_counted else label.removeprefix("more ").removeprefix("are "))
                + _share_text(counts[kind], kind, outcomes),
                f"#/calls?{urlencode({'outcome': kind})}",
                kind not in NOT_COUNTED or not is_any_counted,
            )
            for kind, label in OUTCOMES.items()
            if counts.get(kind)
        ],
        cards=[_card(one, data, figures) for one in answer.figures],
        cards_line=f"{len(answer.figures)} of {measured:,} measured: what is bad, then what matters most",
        more_bad=[
            BadFigure(f"{one.label} {value_text(one.value, one.unit)}", one.name) for one in answer.more_bad_figures
        ],
        notes=[one for one in answer.remarks if one != answer.more_bad],
        causes=[_cause(one, noun, most, links, shares) for one in answer.causes],
        causes_line=f"{counted(outcomes.all_lost, f'lost {noun}')}, each counted once, "
        "under the first thing that went wrong"
        if lost
        else "",
        remaining=[_cause(one, noun, most, links, None) for one in answer.remaining],
        nothing_lost=f"No {noun} was lost." if is_known and not lost else "",
        rough=[] if lost else [Rough(one.conversation, one.reasons[0]) for one in answer.worst[:3] if one.reasons],
        folds=[
            Fold(sentence_start(line), _cut(list(lines)))
            for line, lines in (
                (_in_short(judging), judging),
                (answer.not_measured, _not_measured(run)),
                (answer.reading, _reading_lines(run.read_report)),
            )
            if line
        ],
        banner=banner,
        footer=f"Scored {receipt.finished_at}, in {seconds_text(receipt.seconds)}, "
        f"with {counted(len(whole_metrics(receipt.metrics)), 'metric')}. "
        f"Convoscope {receipt.versions['convoscope']}, run {receipt.run_id}.",
    )


def _interval_line(figure: Figure | None, run: Run, outcomes: Outcomes, noun: Noun) -> str:
    """`67.1 %; 95 % interval 61.6 to 72.2.`"""
    parts = []
    if figure is not None and figure.value is not None:
        interval = f"; 95 % interval {interval_and_clusters(figure, run.summary, noun)}" if figure.interval else ""
        parts.append(f"{value_text(figure.value, figure.unit)}{interval}")
    if outcomes.unknown:
        parts.append(f"the outcome of {outcomes.unknown:,} more is not known")
    return f"{'; '.join(parts)}." if parts else ""


def _share_text(count: int, kind: str, outcomes: Outcomes) -> str:
    """Of those whose end is known."""
    if kind not in ("done", "lost", "handed_over") or not outcomes.known or outcomes.not_judged:
        return ""
    return f", {percent_text(count / outcomes.known)}"


def cause_key(cause: Cause) -> str:
    """What names a cause in an address."""
    return f"{cause.rule}:{cause.subject}" if cause.subject else cause.rule


def _card(figure: KeyFigure, data: FigureData, figures: Mapping[str, Figure]) -> Card:
    shown = figures.get(figure.name)
    unit = {SHARE: "%", COUNT: "", RATIO: ""}.get(figure.unit, figure.unit)
    return Card(
        name=figure.name,
        label=sentence_start(figure.label),
        value=number_text(figure.value, figure.unit),
        unit=unit,
        interval=interval_text(shown) if shown is not None and shown.interval else "",
        n=f"{figure.n:,}",
        coverage=percent_text(figure.coverage) if figure.coverage < 1 else "",
        target=figure.target,
        verdict=figure.verdict_text,
        remark=figure.remark,
        bad=figure.bad,
        bar=data.bar(shown) if shown is not None else None,
        spread=data.spread(shown) if shown is not None else None,
        trial=suggested_target(shown, data) if shown is not None and not figure.target else None,
    )


def _cause(
    cause: Cause, noun: str, most: int, links: Mapping[tuple[str, str], str], shares: CauseShares | None
) -> CauseRow:
    opinion = cause.opinion
    return CauseRow(
        lost=cause.lost,
        share=round(100 * cause.lost / most, 2),
        sentence=sentence_start(cause.sentence),
        evidence=f"{sentence_start(cause.evidence)}." if cause.evidence else "",
        quote=cause.quote,
        opinion=[] if opinion is None else [sentence_start(opinion.lead), opinion.reason, opinion.quote],
        versions=[] if shares is None else shares.of(cause),
        example=call_link(cause.example.conversation, cause.example.seconds) if cause.example else "",
        href=f"#/calls?{urlencode({'cause': cause_key(cause)})}",
        calls=counted(cause.lost, noun),
        state=links.get((cause.flow or NO_FLOW, cause.state), ""),
    )


def event_link(id: str, seq: int) -> str:
    """Where the page shows one conversation, at an event of it, whether that has a time or not."""
    return f"{call_link(id)}/event-{seq}"


def call_link(id: str, seconds: float | None = None) -> str:
    """Where the page shows one conversation, at a moment of it."""
    return f"#/call/{quote(id, safe='')}" + ("" if seconds is None else f"/{seconds:g}")


def _in_short(lines: Sequence[str]) -> str:
    """The first of some lines, and how many follow."""
    if not lines:
        return ""
    return lines[0] if len(lines) == 1 else f"{lines[0]}; {len(lines) - 1:,} more"


def _not_measured(run: Run) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for name, entry in run.summary.whole_metrics.items():
        if entry is not None:
            reasons.setdefault(reason_text(entry.reason), []).append(name)
    for reason, names in sorted(reasons.items(), key=lambda one: -len(one[1])):
        yield f"{len(names):,} {reason}: {', '.join(names)}"


def _reading_lines(report: ReadReport) -> Iterator[str]:
    for problem in report.problems:
        where = f"{problem.file}:{problem.line}" if problem.line else problem.file
        yield f"not read: {', '.join(filter(None, (where, problem.field, problem.message, problem.hint)))}"
    for name, file in report.files.items():
        yield f"{name}: {file.skipped or f'{file.format}, {file.conversations:,}'}"
    for kind, tallies in report.tallies.items():
        for code, tally in tallies.items():
            yield f"{reason_text(kind)}: {reason_text(code)} ({tally.count:,}), for example {'; '.join(tally.examples)}"
    for title, names in (("ignored", report.ignored), ("unknown name, kept in extras", report.unknown)):
        yield from (f"{title}: {name} ({count:,})" for name, count in names.items())


def _cut(lines: Sequence[str]) -> list[str]:
    more = len(lines) - MAX_LINES
    return [
        *lines[:MAX_LINES],
        *([f"and {counted(more, 'more line')}; `read-report.json` has them"] if more > 0 else []),
    ]
