"""One conversation as the page shows it: how it ended and why, lanes, lines of the transcript, scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from convoscope.analysis.answer import RankReasons, metric_label, sentence_start
from convoscope.analysis.answer.model import Noun
from convoscope.analysis.judges import has_judges
from convoscope.analysis.words import FAILED, counted, cut_text, reason_text, seconds_text
from convoscope.harmless import one_line
from convoscope.metrics.declaration import CONVERSATION, SHARE
from convoscope.report.speech_lanes import SpeechLanes, clock_text
from convoscope.report.story import (
    NO_RESULT,
    Mark,
    PlacedFinding,
    Story,
    StoryFact,
    StoryMaker,
    TimelineEntry,
    by_seq,
)
from convoscope.report.text_diff import TextVersion
from convoscope.runs.conversations import KeptConversation
from convoscope.runs.ranking import OUTCOME_METRIC, RankedMetric
from convoscope.runs.summary import Summary
from convoscope.scores.observation import ERROR, MEASURED

if TYPE_CHECKING:
    from convoscope.report.judged import JudgedCall, JudgedMaker

SILENCE = 2.0
"""Seconds from which on a silence is worth a line."""
TENTH = 0.9
"""A value is among the worst tenth where so many did better."""
ALL, NONE = "100.0 %", "0.0 %"
LONGEST = 120
"""Characters of a title, a chip or a name."""
REASONS = 3
_MANNER = ("cut off by", "manner")
REPORT = "component_metric"
_MACHINERY = frozenset((REPORT, "state_exited", "guard_evaluated", "slot_filled", "retrieval", "marker"))


class Reason(msgspec.Struct, frozen=True, array_like=True):
    """Why it has its rank, and the second at which that can be seen."""

    text: str
    at: float | None = None
    clock: str = ""


class Chip(msgspec.Struct, frozen=True, array_like=True):
    """What is bad or notable about a line, as text, and its evidence."""

    text: str
    bad: bool = True
    evidence: tuple[str, ...] = ()


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"fields": "facts"}):
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
    fields: tuple[StoryFact, ...] = ()


class ScoreLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"fields": "facts"}):
    """A score of the whole conversation."""

    label: str
    value: str
    note: str = ""
    fields: tuple[StoryFact, ...] = ()


class Silence(msgspec.Struct, frozen=True, array_like=True):
    """A span without speech, and the role of who owes the answer."""

    start: float
    end: float
    owes: str
    text: str


class FindingUtterance(msgspec.Struct, frozen=True, array_like=True):
    """An utterance that shows a finding, and what it is called."""

    seq: int
    name: str


class FindingLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"utterances": "places"}):
    """What an annotator found, and where."""

    by: str
    text: str
    is_open: bool = False
    utterances: tuple[FindingUtterance, ...] = ()


class Call(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A conversation with everything that the page shows of it."""

    title: str
    meta: str = ""
    lost_in: str = ""
    """The state that it was lost in."""
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
    judged: JudgedCall | None = None
    notes: tuple[str, ...] = ()
    about: tuple[StoryFact, ...] = ()
    context: tuple[StoryFact, ...] = ()


class CallRank(NamedTuple):
    """What the run says of a conversation."""

    outcome: str
    why: RankReasons
    because: Sequence[RankedMetric]


def judged_maker(summary: Summary, trust_judges: bool) -> JudgedMaker | None:
    """What makes the opinions of judges; most runs have none, and need no module for them."""
    if not has_judges(summary):
        return None
    from convoscope.report.judged import JudgedMaker

    return JudgedMaker(summary, trust_judges=trust_judges)


class CallMaker:
    """Makes the conversations of one page."""

    def __init__(self, summary: Summary, noun: Noun, *, trust_judges: bool = False) -> None:
        self.stories = StoryMaker(summary, only_bad=True)
        self._judged = judged_maker(summary, trust_judges)
        self._noun = noun
        self._labels: dict[str, str] = {}
        self._declared = summary.by_key

    def call(self, record: KeptConversation, rank: CallRank) -> Call:
        """One conversation of the run."""
        story = self.stories.story(record)
        lanes = story.timeline
        silences = tuple(_silences(lanes))
        entries = story.entries
        bad, fine, silent = self._scores(story, rank.because)
        judged = self._judged.of(record, story) if self._judged is not None else None
        reasons = Counter(line.note.partition(": ")[0] for line in silent).most_common()
        # A result is shown with its call.
        answered = {result.seq: call for call, result in record.conversation.tool_results.items()}
        shown = None if rank.why.event is None else answered.get(rank.why.event, rank.why.event)
        meta = [_short(f"{name} {value}") for name, value in story.dimensions.items()]
        if lanes is not None and lanes.length:
            meta.append(clock_text(lanes.length))
        return Call(
            title=_title(record, rank),
            meta=", ".join(meta),
            lost_in=rank.why.lost_in,
            reasons=tuple(_reasons(rank.why)),
            timeline=lanes
            and msgspec.structs.replace(
                lanes,
                lanes=tuple(msgspec.structs.replace(one, name=self._who(one.name, one.role)) for one in lanes.lanes),
            ),
            caption=lanes.caption if lanes else "Nothing that was said or done has a time, so there is no timeline.",
            silences=silences,
            failed=tuple(entry.seq for entry in entries if entry.bad and entry.kind != "utterance"),
            lines=tuple(_with_quotes(self._lines(story, silences, rank.why, shown), judged)),
            judged=judged,
            findings=tuple(_finding_lines(story.findings, entries)),
            bad=bad,
            fine=fine,
            silent=silent,
            silent_line=", ".join(f"{n} {reason}" for reason, n in reasons[:3]) + (", …" if len(reasons) > 3 else ""),
            notes=(*story.notes, *(note for entry in entries for note in entry.notes)),
            about=story.about,
            context=story.context,
        )

    def _label(self, metric: str) -> str:
        if metric not in self._labels:
            declared = self._declared.get(metric)
            label = metric if declared is None else metric_label(declared, self._noun)
            self._labels[metric] = label[:1].upper() + label[1:]
        return self._labels[metric]

    def _who(self, name: str, role: str) -> str:
        """Who speaks; a speaker without a name of their own has the usual name of the role."""
        if name not in ("assistant", "agent", "user", "caller", "customer"):
            return name
        return {"assistant": "Agent", "user": "Caller" if self._noun == "call" else "User"}.get(role, name)

    def _value(self, mark: Mark) -> str:
        """Whether it was so, of what is either; else the value."""
        declared = self._declared.get(mark.metric)
        is_either = declared is not None and declared.unit == SHARE and declared.observes == CONVERSATION
        return {ALL: "yes", NONE: "no"}.get(mark.text, mark.text) if is_either and not mark.subject else mark.text

    # ------------------------------------------------------------------ line by line

    def _lines(self, story: Story, silences: Sequence[Silence], why: RankReasons, shown: int | None) -> Iterator[Line]:
        """The lines of the transcript; `shown` is the event that shows the first of the reasons."""
        waiting = list(silences)
        findings = by_seq(story.findings)
        entered = [entry for entry in story.entries if entry.kind == "state_entered"]
        lost = next((entry.seq for entry in reversed(entered) if entry.title == why.lost_in), -1)
        reports: list[TimelineEntry] = []
        for turn in story.turns:
            # What is said of a whole turn is at the last utterance of the agent in it, else at its last event.
            spoken = [one.seq for one in turn.entries if one.kind == "utterance" and one.role == "assistant"]
            others = [one.seq for one in turn.entries if one.kind in ("utterance", "tool_call")]
            last = [*others, *spoken][-1:]
            machinery: list[TimelineEntry] = []
            for entry in turn.entries:
                if entry.kind == REPORT and not entry.bad:
                    reports.append(entry)
                    continue
                if entry.kind in _MACHINERY and not entry.bad:
                    machinery.append(entry)
                    continue
                yield from _machinery(machinery)
                machinery = []
                while waiting and entry.at is not None and waiting[0].end <= entry.at + 0.05:
                    yield Line(kind="silence", at=waiting[0].start, title=f"{waiting.pop(0).text} of silence")
                if entry.kind == "state_entered":
                    is_lost = entry.seq == lost
                    note = "lost here" if is_lost else ""
                    yield Line(kind="state", seq=entry.seq, at=entry.at, title=entry.title, note=note, bad=is_lost)
                    continue
                bad = [mark for mark in (*(turn.marks if [entry.seq] == last else ()), *entry.marks) if mark.bad]
                chips = [Chip(_short(why.reasons[0]))] if entry.seq == shown and why.reasons else []
                chips += [self._chip(mark) for mark in bad]
                if entry.kind == "utterance":
                    yield self._utterance(entry, chips, findings.get(entry.seq, ()))
                else:
                    yield _tool_line(entry, chips)
            yield from _machinery(machinery)
        # What parts of the agent report of themselves is in the scores: once, at the end.
        yield from _machinery(reports, f"{counted(len(reports), 'report')} of the agent's parts")

    def _utterance(self, entry: TimelineEntry, chips: Sequence[Chip], findings: Sequence[PlacedFinding]) -> Line:
        manner = [
            Chip(_short(f"cut off by {fact.text}" if fact.name == "cut off by" else fact.text), False)
            for fact in entry.fields
            if fact.name in _MANNER
        ]
        noted = []
        for finding in findings:
            evidence = (f"evidence: {cut_text(finding.evidence, 300)}",) if finding.evidence else ()
            noted.append(Chip(_short(f"{finding.by}: {finding.text}"), finding.is_open, evidence))
        return Line(
            kind="words",
            seq=entry.seq,
            at=entry.at,
            clock="" if entry.at is None else clock_text(entry.at),
            who=self._who(entry.title, entry.role),
            role=entry.role,
            readings=entry.readings,
            chips=(*chips, *manner, *noted),
            fields=tuple(fact for fact in entry.fields if fact.name not in _MANNER),
        )

    def _chip(self, mark: Mark) -> Chip:
        text = mark.text if mark.status == MEASURED else f"{mark.status}: {mark.text}"
        name = self._label(mark.metric) + (f" [{mark.judge}]" if mark.judge else "")
        evidence = tuple(f"{fact.name}: {cut_text(fact.text, 300)}" for fact in mark.evidence)
        # That something happened needs no share.
        return Chip(_short(name if text == ALL else f"{name}: {'no' if text == NONE else text}"), True, evidence)

    # ------------------------------------------------------------------ scores

    def _scores(self, story: Story, because: Sequence[RankedMetric]) -> tuple[tuple[ScoreLine, ...], ...]:
        """The scores of the whole: bad, fine, silent. In what it is furthest behind comes first."""
        behind = {one.headline.key: one for one in because if one.failure or one.share >= TENTH}
        lines: dict[str, list[ScoreLine]] = {"bad": [], "fine": [], "silent": []}
        every = [*story.scores, *(mark for mark in story.elsewhere if mark.status in (MEASURED, ERROR))]
        judged = self._judged
        marks = [mark for mark in every if judged is None or not judged.has_opinion(mark.metric, mark.judge)]
        # What decides whether it is lost comes first.
        ranks = {key: rank for rank, key in enumerate(dict.fromkeys((OUTCOME_METRIC, *behind)))}
        for mark in sorted(marks, key=lambda mark: ranks.get(mark.metric, len(ranks))):
            ranked = behind.get(mark.metric) if not mark.subject else None
            is_silent = mark.status not in (MEASURED, ERROR)
            label = self._label(mark.metric)
            line = ScoreLine(
                label=f"{mark.subject}: {label}" if mark.subject else label,
                value=self._value(mark) if mark.status == MEASURED else "·" if is_silent else "error",
                note=_compared(ranked) if ranked is not None else "" if mark.status == MEASURED else mark.text,
                fields=(*mark.evidence, *((StoryFact("judge", mark.judge),) if mark.judge else ())),
            )
            lines["silent" if is_silent else "bad" if mark.bad or ranked is not None else "fine"].append(line)
        return tuple(map(tuple, lines.values()))


def _with_quotes(lines: Iterable[Line], judged: JudgedCall | None) -> Iterator[Line]:
    """The lines, with what judges quote from each beside it; the page marks the words."""
    quoted: dict[int, dict[tuple[str, bool], list[str]]] = {}
    for score in judged.scores if judged is not None else ():
        for quote in score.quotes:
            if quote.seq >= 0 and quote.exact:
                who = f"{quote.judge}, " if quote.judge else ""
                words = (f"quote: {quote.exact}", *([f"{who}because: {quote.reason}"] if quote.reason else []))
                name = _short(f"{score.label}: {quote.rating or score.verdict}")
                quoted.setdefault(quote.seq, {}).setdefault((name, score.tone == "bad"), []).extend(words)
    for line in lines:
        texts = quoted.get(line.seq, {}) if line.kind in ("words", "tool") else {}
        chips = [Chip(name, is_bad, tuple(dict.fromkeys(words))) for (name, is_bad), words in texts.items()]
        yield msgspec.structs.replace(line, chips=(*line.chips, *chips)) if chips else line


def _compared(behind: RankedMetric) -> str:
    count = round(behind.share * behind.measured)
    compared = f"{count:,} of {behind.measured:,} do better" if count else ""
    return ", ".join(filter(None, (FAILED[behind.failure], compared)))


def _title(record: KeptConversation, rank: CallRank) -> str:
    outcome = record.conversation.outcome
    ended = reason_text(_short(outcome.ended_reason))
    if rank.outcome == "broken":
        return f"The integration broke: {_short(outcome.error or '')}"
    title = {
        "done": "Completed",
        "lost": "Lost",
        "handed_over": "Handed to a person",
        "no_user_speech": "The user never spoke",
        "voicemail": "A mailbox answered",
        "ivr": "A phone menu answered",
    }.get(rank.outcome, "How it ended is not known")
    if rank.why.lost_in:
        title += f" in {_short(rank.why.lost_in)}"
    return f"{title}: {ended}" if ended and rank.outcome in ("lost", "handed_over") else title


def _reasons(why: RankReasons) -> Iterator[Reason]:
    for index, text in enumerate(why.reasons[:REASONS]):
        at = None if index else why.seconds
        yield Reason(sentence_start(text), at, "" if at is None else clock_text(at))


def _silences(lanes: SpeechLanes | None) -> Iterator[Silence]:
    """Long spans without speech. Who did not speak last owes the answer; while a tool runs, the agent does."""
    if lanes is None:
        return
    ends = {span.end: lane.role for lane in lanes.lanes if lane.kind == "speaker" for span in lane.spans}
    tools = [span for lane in lanes.lanes if lane.kind == "tools" for span in lane.spans]
    for gap in lanes.gaps:
        if gap.end is not None and gap.length >= SILENCE:
            waits = any(tool.start < gap.end and (tool.end or tool.start) > gap.start for tool in tools)
            owes = "user" if ends.get(gap.start) == "assistant" and not waits else "assistant"
            yield Silence(gap.start, gap.end, owes, seconds_text(gap.length))


def _finding_lines(findings: Sequence[PlacedFinding], entries: Sequence[TimelineEntry]) -> Iterator[FindingLine]:
    """What was found, with the utterances that show it: by their times, else by their number."""
    spoken = [entry for entry in entries if entry.kind == "utterance"]
    names = {
        entry.seq: f"utterance {number}" if entry.at is None else clock_text(entry.at)
        for number, entry in enumerate(spoken, 1)
    }
    for finding in findings:
        utterances = tuple(FindingUtterance(seq, names[seq]) for seq in finding.seqs if seq in names)
        yield FindingLine(by=finding.by, text=_short(finding.text), is_open=finding.is_open, utterances=utterances)


def _short(text: str) -> str:
    return one_line(text, LONGEST)


def _machinery(entries: Sequence[TimelineEntry], title: str = "") -> Iterator[Line]:
    """What the machinery reports of itself is seldom read: one line for several of them."""
    if entries:
        counts = Counter(" ".join(filter(None, (entry.does, entry.title))) for entry in entries)
        names = [one_line(name, 60) + (f" {count}×" if count > 1 else "") for name, count in counts.items()]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        fields = [
            StoryFact(
                f"{entry.does} {entry.title}".strip(), "; ".join(f"{one.name}: {one.text}" for one in entry.fields)
            )
            for entry in entries
        ]
        yield Line(kind="more", seq=entries[0].seq, title=title or ", ".join(names[:3]) + more, fields=tuple(fields))


def _tool_line(entry: TimelineEntry, chips: Sequence[Chip]) -> Line:
    fields = {fact.name: fact.text for fact in entry.fields}
    result = "failed" if entry.bad else "ok" if fields.get("success") == "yes" else ""
    if fields.get("result") == NO_RESULT:
        result = "no result in the log"
    kind = "" if entry.kind == "tool_call" else entry.does
    return Line(
        kind="tool",
        seq=entry.seq,
        at=entry.at,
        clock="" if entry.at is None else clock_text(entry.at),
        role=entry.role,
        title=entry.title,
        note=", ".join(filter(None, (kind, fields.get("took", ""), result))),
        bad=entry.bad,
        chips=tuple(chips),
        fields=entry.fields,
    )
