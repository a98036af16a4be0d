"""One conversation on the terminal, turn by turn; and the list of the worst."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from convoscope.analysis.words import (
    EXTREMES,
    counted,
    cut_text,
    percent_text,
    reason_text,
    seconds_text,
    standing_text,
)
from convoscope.harmless import one_line
from convoscope.report.placed_findings import by_place
from convoscope.report.render.terminal import print_table, print_words
from convoscope.report.screen import Screen
from convoscope.report.story import FOLDED, Mark, Story, StoryFact, TimelineEntry
from convoscope.report.table import number_column, text_table
from convoscope.report.text_diff import TextVersion
from convoscope.runs.ranking import RankedConversation, rank
from convoscope.runs.run import Run
from convoscope.scores.observation import MEASURED

_INDENT = " " * 10
_LONG = 400
"""Letters of a tool's value that are printed; `--json` has all."""


def print_worst(
    screen: Screen, run: Run, standing: Sequence[RankedConversation], broken: Sequence[RankedConversation]
) -> None:
    """The worst conversations, and in what they are worse than others."""
    total = run.summary.conversations
    extreme = EXTREMES[rank(run).basis]
    screen.line(f"{run.folder}: the {extreme} {len(standing):,} of {counted(total, 'conversation')}", "bold")
    rows = [
        (str(at), one_line(one.conversation), one.outcome, one_line(standing_text(one), _LONG))
        for at, one in enumerate(standing, 1)
    ]
    print_table(screen, text_table((number_column(""), "conversation", "outcome", "because"), rows))
    errors = [f"  {one_line(each.conversation)}: {one_line(each.error, _LONG)}" for each in broken]
    if errors:
        screen.line("the integration broke, which says nothing about the agent:")
    for error in errors:
        screen.line(error)
    if standing:
        id = standing[0].conversation
        command = shlex.join(["convoscope", "show", str(run.folder), *(["--"] if id.startswith("-") else []), id])
        screen.line(f"one of them: {one_line(command)}")


def print_story(screen: Screen, story: Story, place: int, total: int, order: str) -> None:
    """Everything of one conversation, in its order."""
    screen.line(f"{one_line(story.id)}: {place:,} of {total:,}, {order}", "bold")
    if story.dimensions:
        screen.line("  ".join(f"{one_line(name)} {one_line(value)}" for name, value in story.dimensions.items()))
    for line in story.because:
        screen.line(one_line(line, _LONG))
    screen.line()
    _facts(screen, story.about, "")
    for note in story.notes:
        screen.line(one_line(note, _LONG), "yellow")
    screen.line()
    print_table(screen, text_table(("metric", "value", "evidence"), [_score(mark) for mark in story.scores]))
    if story.elsewhere:
        screen.line()
        rows = [(one_line(mark.subject), *_score(mark)) for mark in story.elsewhere]
        print_table(screen, text_table(("of", "metric", "value", "evidence"), rows))
    if story.timeline is not None:
        _silences(screen, story)
    findings = by_place(story.findings)
    for stretch in story.stretches:
        screen.line()
        name = "without turns" if stretch.turn is None else f"turn {stretch.turn}"
        screen.line(f"{name}  {_marks(stretch.marks)}".rstrip(), "bold")
        for happening in stretch.happenings:
            _happening(screen, happening)
            for finding in findings.get(happening.seq, ()):
                words = one_line(f"{finding.by}: {finding.text}", _LONG)
                _wrapped(screen, words, "red" if finding.is_open else "")


def _silences(screen: Screen, story: Story) -> None:
    timeline = story.timeline
    if timeline is None:
        return
    words = [seconds_text(timeline.length) if timeline.length else "one moment in time"]
    if timeline.overlaps:
        both = sum(span.end - span.start for span in timeline.overlaps if span.end is not None)
        words.append(f"{counted(len(timeline.overlaps), 'overlap')} of {seconds_text(both)} in all")
    if timeline.gaps:
        longest = max(timeline.gaps, key=lambda gap: (gap.end or gap.start) - gap.start)
        length = seconds_text((longest.end or longest.start) - longest.start)
        words.append(f"longest silence {length} at {seconds_text(longest.start)}")
    if timeline.endless and (timeline.gaps or timeline.overlaps):
        words.append(f"{counted(timeline.endless, 'utterance')} without an end, around which silence cannot be told")
    if timeline.unplaced:
        words.append(f"{counted(timeline.unplaced, 'moment')} of other clocks cannot be placed")
    screen.line()
    screen.line(f"timeline: {', '.join(words)}")


def _happening(screen: Screen, happening: TimelineEntry) -> None:
    title = one_line(happening.title)
    when = seconds_text(happening.at)
    style = "red" if happening.bad else ""
    if happening.kind == "utterance":
        who = title if happening.role in ("", happening.title) else f"{title} ({one_line(happening.role)})"
        screen.line(f"{when:>8}  {who}", style or "cyan")
        for line in _readings(happening.readings):
            _wrapped(screen, line)
        if not happening.readings:
            _wrapped(screen, "(no words in the log)")
    else:
        screen.line(f"{when:>8}  {happening.does} {title}".rstrip(), style or "magenta")
    _facts(screen, happening.facts, _INDENT)
    if happening.marks:
        for marks in _lines(happening.marks):
            _wrapped(screen, _marks(marks), "red" if any(mark.bad for mark in marks) else "")
        for mark in happening.marks:
            if mark.bad:
                _facts(screen, mark.evidence, _INDENT + "  ")
    for note in happening.notes:
        _wrapped(screen, one_line(note, _LONG), "yellow")


def _readings(readings: Sequence[TextVersion]) -> Iterable[str]:
    if len(readings) == 1 and readings[0].is_all:
        yield _marked(readings[0])
        return
    for reading in readings:
        sure = "" if reading.confidence is None else f", {percent_text(reading.confidence)} sure"
        yield f"{' and '.join(reading.kinds)}{sure}: {_marked(reading)}"


def _marked(reading: TextVersion) -> str:
    """Missing words in [-…-], added ones in {+…+}."""
    around = {"=": ("", ""), "-": ("[-", "-]"), "+": ("{+", "+}")}
    parts = []
    for piece in reading.pieces:
        before, after = around[piece.op]
        text = piece.text.strip() if piece.op != "=" else piece.text
        blank = " " if piece.op != "=" and piece.text[-1:].isspace() else ""
        lead = " " if piece.op != "=" and piece.text[:1].isspace() else ""
        parts.append(f"{lead}{before}{text}{after}{blank}")
    return "".join(parts)


def _lines(marks: Sequence[Mark]) -> Iterable[Sequence[Mark]]:
    """Scores on one line, and on another what is said of those that have no value."""
    scores = [mark for mark in marks if mark.status != FOLDED]
    return filter(None, (scores, [mark for mark in marks if mark.status == FOLDED]))


def _marks(marks: Sequence[Mark]) -> str:
    return ", ".join(f"{mark.metric} {_mark_text(mark)}" for mark in marks)


def _mark_text(mark: Mark) -> str:
    text = one_line(mark.text, _LONG)
    words = text if mark.status == MEASURED else f"{reason_text(mark.status)}: {text}"
    return f"{words} [{mark.judge}]" if mark.judge else words


def _score(mark: Mark) -> tuple[str, str, str]:
    evidence = () if mark.status == FOLDED else mark.evidence
    return mark.metric, _mark_text(mark), "; ".join(f"{fact.name} {one_line(fact.text, _LONG)}" for fact in evidence)


def _facts(screen: Screen, facts: Sequence[StoryFact], indent: str) -> None:
    for fact in facts:
        first, *others = cut_text(fact.text, _LONG).splitlines() or [""]
        screen.line(f"{indent}{one_line(fact.name)}: {first}")
        for line in others:
            screen.line(f"{indent}  {line}")


def _wrapped(screen: Screen, text: str, style: str = "") -> None:
    """Within the terminal's width; a pipe gets its lines whole."""
    for line in text.splitlines() or [""]:
        print_words(screen, line, indent=_INDENT, style=style)
