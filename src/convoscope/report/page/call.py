"""One conversation as the page shows it: how it ended and why, lanes, lines of the transcript, scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from convoscope.analysis.answer import metric_label
from convoscope.analysis.answer.model import Noun
from convoscope.analysis.words import FAILED, counted, cut_text, reason_text, seconds_text
from convoscope.harmless import one_line
from convoscope.report.page.overview import sentence_start
from convoscope.report.placed_findings import PlacedFinding, by_place
from convoscope.report.speech_lanes import LaneSpan, SpeechLanes
from convoscope.report.story import Mark, MarkedText, Story, StoryFact, TimelineEntry, story
from convoscope.report.text_diff import TextVersion
from convoscope.runs.conversations import KeptConversation
from convoscope.runs.ranking import RankedMetric
from convoscope.runs.summary import Summary
from convoscope.scores.observation import ERROR, MEASURED

SILENCE = 2.0
"""Seconds from which on a silence is worth a line."""
TENTH = 0.9
"""A value is among the worst tenth where so many did better."""
ALL = "100.0 %"
MAX_WORDS = 120
REASONS = 3


class Reason(msgspec.Struct, frozen=True, array_like=True):
    """Why it stands where it stands, and the second at which that can be seen."""

    text: str
    at: float | None = None
    clock: str = ""


class Chip(msgspec.Struct, frozen=True, array_like=True):
    """What is bad or notable about a line, in words, and what stands behind it."""

    text: str
    bad: bool = True
    evidence: tuple[str, ...] = ()


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of the transcript."""

    kind: Literal["state", "words", "tool", "silence", "more"]
    seq: int = -1
    at: float | None = None
    clock: str = ""
    who: str = ""
    role: str = ""
    readings: tuple[TextVersion, ...] = ()
    title: str = ""
    note: str = ""
    bad: bool = False
    chips: tuple[Chip, ...] = ()
    facts: tuple[StoryFact, ...] = ()


class ScoreLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A score of the whole conversation."""

    label: str
    value: str
    note: str = ""
    facts: tuple[StoryFact, ...] = ()


class Silence(msgspec.Struct, frozen=True, array_like=True):
    """A stretch in which nobody spoke, and the role of who owes the answer."""

    start: float
    end: float
    owes: str
    text: str


class FindingPlace(msgspec.Struct, frozen=True, array_like=True):
    """An utterance that tells a finding, and what it is called."""

    seq: int
    name: str


class FindingLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an annotator found, and where."""

    by: str
    text: str
    is_open: bool = False
    places: tuple[FindingPlace, ...] = ()


class Call(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A conversation with everything that the page shows of it."""

    title: str
    meta: str = ""
    reasons: tuple[Reason, ...] = ()
    timeline: SpeechLanes | None = None
    caption: str = ""
    silences: tuple[Silence, ...] = ()
    failed: tuple[int, ...] = ()
    """Events whose spans are drawn as failed."""
    lines: tuple[Line, ...] = ()
    bad: tuple[ScoreLine, ...] = ()
    fine: tuple[ScoreLine, ...] = ()
    silent: tuple[ScoreLine, ...] = ()
    silent_line: str = ""
    findings: tuple[FindingLine, ...] = ()
    notes: tuple[str, ...] = ()
    about: tuple[StoryFact, ...] = ()
    context: tuple[StoryFact, ...] = ()


class CallStanding(NamedTuple):
    """What the run says of a conversation."""

    noun: Noun
    outcome: str
    lost_in: str
    reasons: Sequence[str]
    because: Sequence[RankedMetric]
    seconds: float | None = None
    """When the first of the reasons can be seen."""
    event: int | None = None
    """And where."""


def make_call(record: KeptConversation, summary: Summary, worth: frozenset[str], standing: CallStanding) -> Call:
    """Tell one conversation of a run."""
    narrative = story(record, summary, standing.because, worth)
    labels = _Labels(summary, standing.noun)
    timeline = _named(narrative.timeline, standing.noun)
    silences = tuple(_silences(narrative.timeline))
    scores = _Scores(narrative, standing.because, labels)
    happenings = [one for stretch in narrative.stretches for one in stretch.happenings]
    return Call(
        title=_title(record, standing),
        meta=_meta(narrative),
        reasons=tuple(_reasons(standing)),
        timeline=timeline,
        caption=_caption(narrative.timeline),
        silences=silences,
        failed=tuple(one.seq for one in happenings if one.bad and one.kind != "utterance"),
        lines=tuple(
            _Transcript(labels, standing, _event(record, standing), by_place(narrative.findings)).lines(
                narrative.stretches, silences
            )
        ),
        findings=tuple(_finding_lines(narrative.findings, happenings)),
        bad=tuple(scores.bad),
        fine=tuple(scores.fine),
        silent=tuple(scores.silent),
        silent_line=scores.silent_line,
        notes=(*narrative.notes, *(note for one in happenings for note in one.notes)),
        about=narrative.about,
        context=narrative.context,
    )


def _finding_lines(findings: Sequence[PlacedFinding], happenings: Sequence[TimelineEntry]) -> Iterator[FindingLine]:
    """What was found, with the utterances that tell it: by their times, else by their number."""
    spoken = [one for one in happenings if one.kind == "utterance"]
    names = {
        one.seq: f"utterance {place}" if one.at is None else clock_text(one.at) for place, one in enumerate(spoken, 1)
    }
    for finding in findings:
        places = tuple(FindingPlace(seq, names[seq]) for seq in finding.seqs if seq in names)
        yield FindingLine(by=finding.by, text=_short(finding.text), is_open=finding.is_open, places=places)


def _finding_chip(finding: PlacedFinding) -> Chip:
    evidence = (f"evidence: {cut_text(finding.evidence, 300)}",) if finding.evidence else ()
    return Chip(_short(f"{finding.by}: {finding.text}"), finding.is_open, evidence)


def _event(record: KeptConversation, standing: CallStanding) -> int | None:
    """The event that shows the first of the reasons; a result is narrative with its call."""
    calls = {result.seq: call for call, result in record.conversation.tool_results.items()}
    return None if standing.event is None else calls.get(standing.event, standing.event)


def _who(name: str, role: str, noun: Noun) -> str:
    """Who speaks; whoever has no name but the role is called as people call them."""
    if name not in ("assistant", "agent", "user", "caller", "customer"):
        return name
    return {"assistant": "Agent", "user": "Caller" if noun == "call" else "User"}.get(role, name)


def _named(timeline: SpeechLanes | None, noun: Noun) -> SpeechLanes | None:
    if timeline is None:
        return None
    lanes = tuple(msgspec.structs.replace(lane, name=_who(lane.name, lane.role, noun)) for lane in timeline.lanes)
    return msgspec.structs.replace(timeline, lanes=lanes)


def clock_text(seconds: float) -> str:
    """`0:59.0`."""
    minutes, rest = divmod(round(seconds, 1), 60)
    return f"{int(minutes)}:{rest:04.1f}"


def _title(record: KeptConversation, standing: CallStanding) -> str:
    outcome = record.conversation.outcome
    ended = reason_text(one_line(outcome.ended_reason, MAX_WORDS))
    if standing.outcome == "broken":
        return f"The integration broke: {one_line(outcome.error or '', MAX_WORDS)}"
    words = {
        "done": "Completed",
        "lost": "Lost",
        "handed_over": "Handed to a person",
        "no_user_speech": "The user never spoke",
        "voicemail": "A mailbox answered",
        "ivr": "A phone menu answered",
    }.get(standing.outcome, "How it ended is not known")
    if standing.lost_in:
        words += f" in {one_line(standing.lost_in, MAX_WORDS)}"
    return f"{words}: {ended}" if ended and standing.outcome in ("lost", "handed_over") else words


def _meta(narrative: Story) -> str:
    parts = [one_line(f"{name} {value}", MAX_WORDS) for name, value in narrative.dimensions.items()]
    if narrative.timeline is not None and narrative.timeline.length:
        parts.append(clock_text(narrative.timeline.length))
    return ", ".join(parts)


def _reasons(standing: CallStanding) -> Iterator[Reason]:
    for place, text in enumerate(standing.reasons[:REASONS]):
        at = None if place else standing.seconds
        yield Reason(sentence_start(text), at, "" if at is None else clock_text(at))


# ---------------------------------------------------------------------- along the clock


def _silences(timeline: SpeechLanes | None) -> Iterator[Silence]:
    """Long stretches without a word. Who did not speak last owes the answer; while a tool runs, the agent does."""
    if timeline is None:
        return
    ends = {span.end: lane.role for lane in timeline.lanes if lane.kind == "speaker" for span in lane.spans}
    tools = [span for lane in timeline.lanes if lane.kind == "tools" for span in lane.spans]
    for gap in timeline.gaps:
        if gap.end is not None and gap.end - gap.start >= SILENCE:
            waits = any(one.start < gap.end and (one.end or one.start) > gap.start for one in tools)
            owes = "user" if ends.get(gap.start) == "assistant" and not waits else "assistant"
            yield Silence(gap.start, gap.end, owes, seconds_text(gap.end - gap.start))


def _caption(timeline: SpeechLanes | None) -> str:
    if timeline is None:
        return "Nothing that was said or done has a time, so there is no timeline."
    words = [clock_text(timeline.length) if timeline.length else "one moment in time"]
    if timeline.overlaps:
        words.append(
            f"{counted(len(timeline.overlaps), 'overlap')}, {seconds_text(sum(map(_length, timeline.overlaps)))}"
        )
    if timeline.gaps:
        longest = max(timeline.gaps, key=_length)
        words.append(f"longest silence {seconds_text(_length(longest))} at {clock_text(longest.start)}")
    if timeline.endless and (timeline.overlaps or timeline.gaps):
        words.append(f"{counted(timeline.endless, 'utterance')} without an end")
    if timeline.unplaced:
        words.append(f"{counted(timeline.unplaced, 'moment')} of other clocks not placed")
    return "; ".join(words)


def _length(span: LaneSpan) -> float:
    return (span.end or span.start) - span.start


# ---------------------------------------------------------------------- line by line


class _Transcript:
    """The lines of a conversation, with what is bad about them in words."""

    def __init__(
        self,
        labels: _Labels,
        standing: CallStanding,
        event: int | None,
        findings: Mapping[int, Sequence[PlacedFinding]],
    ) -> None:
        self._labels = labels
        self._standing = standing
        self._findings = findings
        self._event = event
        """Where the first of the reasons can be seen."""

    def lines(self, stretches: Sequence[MarkedText], silences: Sequence[Silence]) -> Iterator[Line]:
        waiting = list(silences)
        entries = [one for stretch in stretches for one in stretch.happenings if one.kind == "state_entered"]
        lost = next((one.seq for one in reversed(entries) if one.title == self._standing.lost_in), -1)
        for stretch in stretches:
            marks = _turn_marks(stretch)
            machinery: list[TimelineEntry] = []
            for event in stretch.happenings:
                if event.kind in _MACHINERY and not event.bad:
                    machinery.append(event)
                    continue
                yield from _machinery(machinery)
                machinery = []
                while waiting and event.at is not None and waiting[0].end <= event.at + 0.05:
                    yield Line(kind="silence", at=waiting[0].start, title=f"{waiting.pop(0).text} of silence")
                yield self._line(event, [*marks.pop(event.seq, ()), *event.marks], is_lost=event.seq == lost)
            yield from _machinery(machinery)

    def _line(self, event: TimelineEntry, marks: Sequence[Mark], *, is_lost: bool) -> Line:
        if event.kind == "state_entered":
            note = "lost here" if is_lost else ""
            return Line(kind="state", seq=event.seq, at=event.at, title=event.title, note=note, bad=is_lost)
        is_words = event.kind == "utterance"
        facts = {fact.name: fact.text for fact in event.facts}
        chips = [self._chip(mark) for mark in marks if mark.bad]
        if event.seq == self._event and self._standing.reasons:
            chips.insert(0, Chip(_short(self._standing.reasons[0])))
        if is_words:
            chips += [Chip(_short(words), False) for words in _manner(facts)]
            chips += map(_finding_chip, self._findings.get(event.seq, ()))
        return Line(
            kind="words" if is_words else "tool",
            seq=event.seq,
            at=event.at,
            clock="" if event.at is None else clock_text(event.at),
            who=_who(event.title, event.role, self._standing.noun) if is_words else "",
            role=event.role,
            readings=event.readings,
            title="" if is_words else event.title,
            note="" if is_words else _tool_note(event, facts),
            bad=event.bad and not is_words,
            chips=tuple(chips),
            facts=tuple(fact for fact in event.facts if not is_words or fact.name not in _MANNER),
        )

    def _chip(self, mark: Mark) -> Chip:
        text = mark.text if mark.status == MEASURED else f"{mark.status}: {mark.text}"
        name = self._labels.of(mark.metric) + (f" [{mark.judge}]" if mark.judge else "")
        return Chip(
            # That something happened needs no share.
            _short(name if text == ALL else f"{name}: {text}"),
            True,
            tuple(f"{one.name}: {cut_text(one.text, 300)}" for one in mark.evidence),
        )


class _Labels:
    """Metrics in words."""

    def __init__(self, summary: Summary, noun: Noun) -> None:
        self._declared, self._noun = summary.by_key, noun

    def of(self, metric: str) -> str:
        declared = self._declared.get(metric)
        words = metric_label(declared, self._noun) if declared is not None else metric
        return words[:1].upper() + words[1:]


def _short(text: str) -> str:
    return one_line(text, MAX_WORDS)


_MANNER = ("cut off by", "manner")


def _manner(facts: Mapping[str, str]) -> Iterator[str]:
    """How something was said, where that is notable."""
    if "cut off by" in facts:
        yield f"cut off by {facts['cut off by']}"
    if "manner" in facts:
        yield facts["manner"]


_MACHINERY = frozenset(("component_metric", "state_exited", "guard_evaluated", "slot_filled", "retrieval", "marker"))


def _turn_marks(stretch: MarkedText) -> dict[int, Sequence[Mark]]:
    """What is said of a whole turn stands at the last words of the agent in it, else at what happened last."""
    spoken = [one.seq for one in stretch.happenings if one.kind == "utterance" and one.role == "assistant"]
    others = [one.seq for one in stretch.happenings if one.kind in ("utterance", "tool_call")]
    return {(spoken or others)[-1]: stretch.marks} if spoken or others else {}


def _machinery(happenings: Sequence[TimelineEntry]) -> Iterator[Line]:
    """What the machinery reports of itself is seldom read: one line for several of them."""
    if happenings:
        counts = Counter(" ".join(filter(None, (one.does, one.title))) for one in happenings)
        names = [one_line(name, 60) + (f" {count}×" if count > 1 else "") for name, count in counts.items()]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        facts = [
            StoryFact(f"{one.does} {one.title}".strip(), "; ".join(f"{fact.name}: {fact.text}" for fact in one.facts))
            for one in happenings
        ]
        yield Line(kind="more", seq=happenings[0].seq, title=", ".join(names[:3]) + more, facts=tuple(facts))


def _tool_note(event: TimelineEntry, facts: Mapping[str, str]) -> str:
    result = "failed" if event.bad else "ok" if facts.get("success") == "yes" else ""
    if facts.get("result") == "none in the log":
        result = "no result in the log"
    kind = "" if event.kind == "tool_call" else event.does
    return ", ".join(filter(None, (kind, facts.get("took", ""), result)))


# ---------------------------------------------------------------------- scores


class _Scores:
    """The scores of the whole: bad, fine, silent."""

    def __init__(self, narrative: Story, because: Sequence[RankedMetric], labels: _Labels) -> None:
        behind = {one.headline.key: one for one in because if one.failure or one.share >= TENTH}
        self.bad: list[ScoreLine] = []
        self.fine: list[ScoreLine] = []
        self.silent: list[ScoreLine] = []
        marks = [*narrative.scores, *(mark for mark in narrative.elsewhere if mark.status in (MEASURED, ERROR))]
        # In what it is furthest behind comes first.
        ranks = {key: place for place, key in enumerate(behind)}
        for mark in sorted(marks, key=lambda mark: ranks.get(mark.metric, len(ranks))):
            rank = behind.get(mark.metric)
            line = ScoreLine(
                label=f"{mark.subject}: {labels.of(mark.metric)}" if mark.subject else labels.of(mark.metric),
                value=mark.text if mark.status == MEASURED else "error" if mark.status == ERROR else "·",
                note=_compared(rank)
                if rank is not None and not mark.subject
                else mark.text
                if mark.status != MEASURED
                else "",
                facts=(*mark.evidence, *((StoryFact("judge", mark.judge),) if mark.judge else ())),
            )
            if mark.status not in (MEASURED, ERROR):
                self.silent.append(line)
            elif mark.bad or (rank is not None and not mark.subject):
                self.bad.append(line)
            else:
                self.fine.append(line)

    @property
    def silent_line(self) -> str:
        counts = Counter(line.note.partition(": ")[0] for line in self.silent).most_common()
        more = ", …" if len(counts) > 3 else ""
        return ", ".join(f"{count} {reason}" for reason, count in counts[:3]) + more


def _compared(behind: RankedMetric) -> str:
    count = round(behind.share * behind.measured)
    compared = f"{count:,} of {behind.measured:,} do better" if count else ""
    return ", ".join(filter(None, (FAILED[behind.failure], compared)))
