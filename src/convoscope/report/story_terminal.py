"""Conversations on the terminal: the list of the worst, one in brief, and one with everything."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from convoscope.analysis.answer import noun_of, rank_reasons, rank_texts
from convoscope.analysis.words import EXTREMES, ORDERS, counted, cut_text, percent_text, reason_text, seconds_text
from convoscope.conversation import ASSISTANT, SYSTEM, USER
from convoscope.harmless import one_line
from convoscope.report.screen import Screen
from convoscope.report.speech_lanes import clock_text
from convoscope.report.story import FOLDED, NO_RESULT, Mark, Story, StoryFact, TimelineEntry, by_seq, story
from convoscope.report.table import number_column, print_table, print_words, text_table
from convoscope.report.text_diff import TextVersion
from convoscope.runs.conversations import KeptConversation
from convoscope.runs.ranking import RankedConversation, rank
from convoscope.runs.reliability import has_judges
from convoscope.runs.run import Run
from convoscope.scores.observation import MEASURED

if TYPE_CHECKING:
    from convoscope.report.judged import JudgedCall

WIDTH = 80
_BRIEF_INDENT = " " * 15
_BRIEF_LONG = 160
"""Characters of a tool's error, and of a finding, in brief."""
_INDENT = " " * 10
_MOST_REMARKS = 3
_LONG = 400
"""Characters of a tool's value that are printed; `--json` has all."""


def print_worst(
    screen: Screen, run: Run, worst: Sequence[RankedConversation], broken: Sequence[RankedConversation]
) -> None:
    """The worst conversations, and in what they are worse than others."""
    total = counted(run.summary.conversations, "conversation")
    screen.line(f"{run.folder}: the {EXTREMES[rank(run).basis]} {len(worst):,} of {total}", "bold")
    rows = [
        (str(at), one_line(ranked.conversation), ranked.outcome, one_line(because, _LONG))
        for at, (ranked, because) in enumerate(zip(worst, rank_texts(run, worst), strict=True), 1)
    ]
    print_table(screen, text_table((number_column(""), "conversation", "outcome", "because"), rows))
    if broken:
        screen.line("the integration broke, which says nothing about the agent:")
    for ranked in broken:
        screen.line(f"  {one_line(ranked.conversation)}: {one_line(ranked.error, _LONG)}")
    if worst:
        id = worst[0].conversation
        command = shlex.join(["convoscope", "show", str(run.folder), *(["--"] if id.startswith("-") else []), id])
        screen.line(f"one of them: {one_line(command)}")


def print_conversation(screen: Screen, run: Run, record: KeptConversation, *, full: bool) -> None:
    """One conversation of a run: in brief, or with everything."""
    ranked = rank_reasons(run, [record.number])[record.number]
    made = story(record, run.summary, ranked.reasons)
    order = rank(run).order.tolist()
    rank_text = f"{order.index(record.number) + 1:,} of {len(order):,}, {ORDERS[rank(run).basis]}"
    judged = _judged(run, record, made)
    if full:
        print_story(screen, made, rank_text)
        screen.line()
        _print_judged(screen, judged)
        return
    user = "caller" if noun_of(run) == "call" else "user"
    made = msgspec.structs.replace(made, because=(*made.because, *_fact_lines(record)))
    _print_brief(screen, made, rank_text, {USER: user, ASSISTANT: "agent", SYSTEM: "system"}, ranked.event)
    _print_judged(screen, judged)
    names = run.summary.whole_metrics
    measured = {score.metric for score in record.reduced if score.status == MEASURED}.intersection(names)
    notes = f", {counted(len(record.notes), 'note')} of reading" if record.notes else ""
    screen.line(f"{len(measured):,} of {counted(len(names), 'metric')} measured{notes} (--full)")


def _fact_lines(record: KeptConversation) -> list[str]:
    """The facts that arrived wrong in the recording, then those that may have, with the moment to listen to."""
    if record.conversation.recording is None:
        return []
    from convoscope.report.page.words import fact_remarks, text_blocks

    remarks = [remark for texts in text_blocks(record).values() for remark in fact_remarks(texts)]
    remarks.sort(key=lambda remark: (remark.is_open, remark.second))
    lines = [f"{remark.text}: listen at {clock_text(remark.second)} of the recording" for remark in remarks]
    more = len(lines) - _MOST_REMARKS
    return [
        *lines[:_MOST_REMARKS],
        *([f"{counted(more, 'more fact')} did not arrive, or may not have"] if more > 0 else []),
    ]


def _judged(run: Run, record: KeptConversation, made: Story) -> JudgedCall | None:
    """What judges say; most runs have none, and need no module for it."""
    if not has_judges(run.summary):
        return None
    from convoscope.report.judged import JudgedMaker

    return JudgedMaker(run.summary, trust_judges=run.trusts_judges).of(record, made)


def _print_judged(screen: Screen, judged: JudgedCall | None) -> None:
    """The opinions as the page has them: score, verdict, quote, reason, judge."""
    if judged is None:
        return
    screen.line(f"judged: {judged.line}", "bold")
    for addressed in judged.addressed:
        screen.line(f"  the log addresses the judge in {addressed.where}; the judges did not get that text", "yellow")
    for score in judged.scores:
        style = {"bad": "red", "good": "green"}.get(score.tone, "")
        _print_wrapped(screen, f"  {score.label}: {score.value}, {score.verdict}", style)
        quotes = [f"{quote.where} “{quote.text}”" if quote.text else quote.where for quote in score.quotes]
        reasons = [": ".join(filter(None, (quote.judge, quote.reason))) for quote in score.quotes]
        for quote, reason in zip(quotes, reasons, strict=True):
            _print_wrapped(screen, f"    {'; '.join(filter(None, (quote.strip(), reason)))}")
        for line in filter(None, (score.asked, *score.by)):
            _print_wrapped(screen, f"    {line}", "dim")
    screen.line()


def _print_wrapped(screen: Screen, text: str, style: str = "") -> None:
    indent = " " * (len(text) - len(text.lstrip()))
    for line in textwrap.wrap(one_line(text.strip(), None), WIDTH - len(indent) - 2):
        screen.line(indent + line, style)


def _print_brief(screen: Screen, story: Story, rank_text: str, roles: Mapping[str, str], event: int | None) -> None:
    """How it ended and why, then who said what; `event` shows the first of the reasons."""
    screen.line(f"{one_line(story.id)}: {one_line(story.outcome)}", "bold")
    dimensions = [f"{name} {value}" for name, value in story.dimensions.items()]
    reasons = [f"- {reason}" for reason in story.because if f"lost ({reason.removeprefix('lost: ')})" != story.outcome]
    for text in (*reasons, ", ".join([*dimensions, rank_text])):
        for line in textwrap.wrap(one_line(text, None), WIDTH, subsequent_indent="  "):
            screen.line(line)
    screen.line()
    findings = by_seq(story.findings)
    for entry in story.entries:
        for line in _brief_lines(entry, roles):
            screen.line(line, "bold red" if entry.seq == event else "" if entry.kind == "utterance" else "dim")
        for finding in findings.get(entry.seq, ()):
            text = one_line(f"{finding.by}: {finding.text}", _BRIEF_LONG)
            for line in textwrap.wrap(text, WIDTH - len(_BRIEF_INDENT)):
                screen.line(_BRIEF_INDENT + line, "red" if finding.is_open else "dim")
    # Without words, when there was speech and silence is all there is.
    if not any(_texts(entry) for entry in story.entries):
        if not any(entry.kind == "utterance" for entry in story.entries):
            screen.line("No words are known.", "dim")
        if story.timeline is not None:
            print_words(screen, f"timeline: {story.timeline.caption}", style="dim")
    screen.line()


def _brief_lines(entry: TimelineEntry, roles: Mapping[str, str]) -> Iterator[str]:
    """What one event says; what the machinery reports of itself is left out."""
    clock = "" if entry.at is None else f"{int(entry.at // 60)}:{int(entry.at % 60):02d}"
    if entry.kind == "state_entered":
        yield f"{'':7} → {one_line(entry.title)}"
    elif entry.kind == "tool_call":
        fields = {fact.name: fact.text for fact in entry.fields}
        took = f" took {fields['took']}," if "took" in fields else ""
        error = f": {cut_text(entry.error, _BRIEF_LONG)}" if entry.error else ""
        text = f"{entry.title}{took} {f'failed{error}' if entry.bad else 'answered'}"
        if fields.get("result") == NO_RESULT:
            text = f"{entry.title}: no result in the log"
        yield from _spoken(clock, "tool", text)
    elif entry.kind == "utterance":
        texts = _texts(entry)
        # Of a bare recording only the channels are known.
        unknown = entry.title if re.fullmatch(r"channel \d{1,3}", entry.title) else "other"
        who = roles.get(entry.role, unknown)
        yield from _spoken(clock, who, texts[0] if texts else "(no words in the log)")
        if entry.role == USER and texts and _plain(texts[-1]) != _plain(texts[0]):
            yield from _spoken("", "heard", texts[-1])


def _texts(entry: TimelineEntry) -> list[str]:
    """The words of an utterance; what else happens has none."""
    texts = [version.text.strip() for version in entry.readings]
    return [text for text in texts if text and entry.kind == "utterance"]


def _spoken(clock: str, who: str, text: str) -> Iterator[str]:
    lines = textwrap.wrap(one_line(text, None), WIDTH - len(_BRIEF_INDENT)) or [""]
    yield f"{clock:>6}  {who:<6} {lines[0]}"
    for line in lines[1:]:
        yield f"{_BRIEF_INDENT}{line}"


def _plain(text: str) -> str:
    return " ".join("".join(character if character.isalnum() else " " for character in text).casefold().split())


def print_story(screen: Screen, story: Story, rank_text: str) -> None:
    """Everything of one conversation, in its order."""
    screen.line(f"{one_line(story.id)}: {rank_text}", "bold")
    if story.dimensions:
        screen.line("  ".join(f"{one_line(name)} {one_line(value)}" for name, value in story.dimensions.items()))
    for line in story.because:
        screen.line(one_line(line, _LONG))
    screen.line()
    _print_fields(screen, story.about, "")
    for note in story.notes:
        screen.line(one_line(note, _LONG), "yellow")
    screen.line()
    print_table(screen, text_table(("metric", "value", "evidence"), [_score(mark) for mark in story.scores]))
    if story.elsewhere:
        screen.line()
        rows = [(one_line(mark.subject), *_score(mark)) for mark in story.elsewhere]
        print_table(screen, text_table(("of", "metric", "value", "evidence"), rows))
    if story.timeline is not None:
        screen.line()
        screen.line(f"timeline: {story.timeline.caption}")
    findings = by_seq(story.findings)
    for turn in story.turns:
        screen.line()
        name = "without turns" if turn.turn is None else f"turn {turn.turn}"
        screen.line(f"{name}  {_marks(turn.marks)}".rstrip(), "bold")
        for entry in turn.entries:
            _print_entry(screen, entry)
            for finding in findings.get(entry.seq, ()):
                text = one_line(f"{finding.by}: {finding.text}", _LONG)
                _wrapped(screen, text, "red" if finding.is_open else "")


def _print_entry(screen: Screen, entry: TimelineEntry) -> None:
    title = one_line(entry.title)
    when = seconds_text(entry.at)
    style = "red" if entry.bad else ""
    if entry.kind == "utterance":
        who = title if entry.role in ("", entry.title) else f"{title} ({one_line(entry.role)})"
        screen.line(f"{when:>8}  {who}", style or "cyan")
        for reading in entry.readings:
            sure = "" if reading.confidence is None else f", {percent_text(reading.confidence)} sure"
            label = "" if entry.readings == (reading,) and reading.is_all else f"{' and '.join(reading.kinds)}{sure}: "
            _wrapped(screen, label + _marked(reading))
        if not entry.readings:
            _wrapped(screen, "(no words in the log)")
    else:
        screen.line(f"{when:>8}  {entry.does} {title}".rstrip(), style or "magenta")
    _print_fields(screen, entry.fields, _INDENT)
    # Scores on one line, and on another those without a value.
    scores = [mark for mark in entry.marks if mark.status != FOLDED]
    for marks in filter(None, (scores, [mark for mark in entry.marks if mark.status == FOLDED])):
        _wrapped(screen, _marks(marks), "red" if any(mark.bad for mark in marks) else "")
    for mark in entry.marks:
        if mark.bad:
            _print_fields(screen, mark.evidence, _INDENT + "  ")
    for note in entry.notes:
        _wrapped(screen, one_line(note, _LONG), "yellow")


def _marked(reading: TextVersion) -> str:
    """Missing words in [-…-], added ones in {+…+}."""
    around = {"-": ("[-", "-]"), "+": ("{+", "+}")}
    parts = []
    for piece in reading.pieces:
        if piece.op == "=":
            parts.append(piece.text)
            continue
        before, after = around[piece.op]
        lead, blank = (" " if character.isspace() else "" for character in (piece.text[:1], piece.text[-1:]))
        parts.append(f"{lead}{before}{piece.text.strip()}{after}{blank}")
    return "".join(parts)


def _marks(marks: Sequence[Mark]) -> str:
    return ", ".join(f"{mark.metric} {_mark_text(mark)}" for mark in marks)


def _mark_text(mark: Mark) -> str:
    text = one_line(mark.text, _LONG)
    shown = text if mark.status == MEASURED else f"{reason_text(mark.status)}: {text}"
    return f"{shown} [{mark.judge}]" if mark.judge else shown


def _score(mark: Mark) -> tuple[str, str, str]:
    evidence = () if mark.status == FOLDED else mark.evidence
    return mark.metric, _mark_text(mark), "; ".join(f"{fact.name} {one_line(fact.text, _LONG)}" for fact in evidence)


def _print_fields(screen: Screen, fields: Sequence[StoryFact], indent: str) -> None:
    for fact in fields:
        first, *others = cut_text(fact.text, _LONG).splitlines() or [""]
        screen.line(f"{indent}{one_line(fact.name)}: {first}")
        for line in others:
            screen.line(f"{indent}  {line}")


def _wrapped(screen: Screen, text: str, style: str = "") -> None:
    """Within the terminal's width; a pipe gets its lines whole."""
    for line in text.splitlines() or [""]:
        print_words(screen, line, indent=_INDENT, style=style)
