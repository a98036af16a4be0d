"""One conversation as the page shows it: how it ended and why, lanes, lines of the transcript, scores."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from convoscope.analysis.answer import RankReasons, metric_label, sentence_start
from convoscope.analysis.answer.model import Noun
from convoscope.analysis.words import FAILED, counted, cut_text, key_text, reason_text, seconds_text
from convoscope.harmless import one_line
from convoscope.metrics.declaration import CONVERSATION, LOWER, SHARE
from convoscope.report.page.marks import MOMENTS
from convoscope.report.page.words import OF_ENTITIES, TextBlock
from convoscope.report.speech_lanes import LaneSpan, SpeechLanes, clock_text
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
from convoscope.runs.reliability import has_judges
from convoscope.runs.summary import Summary
from convoscope.scores.observation import COMPUTED, ERROR, MEASURED
from convoscope.scores.reducers import MEAN_OF_CONVERSATIONS

if TYPE_CHECKING:
    from convoscope.report.judged import JudgedCall, JudgedMaker
    from convoscope.report.page.sound import CallSound, SoundMaker

SILENCE = 2.0
"""Seconds from which on a silence is worth a line."""
NEAR = 0.5
"""Seconds by which a log may date the end of an utterance after the silence in the sound."""
TENTH = 0.9
"""A value is among the worst tenth where so many did better."""
ALL, NONE = "100.0 %", "0.0 %"
LONGEST = 120
"""Characters of a title, a chip or a name."""
REASONS = 3
_CHANNEL = re.compile(r"channel \d+")
"""What the reader of recordings calls a speaker."""
_MANNER = ("cut off by", "manner")
REPORT = "component_metric"
_TEXTS = {"meant", "spoken", "heard", "differs", "words", "by"}
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
    three: TextBlock | None = None


class ScoreLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"fields": "facts"}):
    """A score of the whole conversation."""

    label: str
    value: str
    note: str = ""
    fields: tuple[StoryFact, ...] = ()


class Silence(msgspec.Struct, frozen=True, array_like=True):
    """A span without speech, and the role of who owes the answer; "" where it is unknown."""

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
    sound: CallSound | None = None
    failed: tuple[int, ...] = ()
    """Events whose spans are drawn as failed."""
    lines: tuple[Line, ...] = ()
    bad: tuple[ScoreLine, ...] = ()
    fine: tuple[ScoreLine, ...] = ()
    """Those that meet their pass mark."""
    other: tuple[ScoreLine, ...] = ()
    """Those that are neither bad nor held against a mark."""
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

    def __init__(
        self, summary: Summary, noun: Noun, *, trust_judges: bool = False, sounds: SoundMaker | None = None
    ) -> None:
        self._sounds = sounds
        self.stories = StoryMaker(summary, only_bad=True)
        self._judged = judged_maker(summary, trust_judges)
        self._noun = noun
        self._labels: dict[str, str] = {}
        self._declared = summary.by_key

    def call(self, record: KeptConversation, rank: CallRank) -> Call:
        """One conversation of the run."""
        story = self.stories.story(record)
        lanes = story.timeline
        heard = self._sounds.silences(record) if self._sounds is not None else None
        if lanes is not None and heard is not None:
            lanes = msgspec.structs.replace(lanes, gaps=heard, is_heard=True)
        silences = tuple(_silences(lanes))
        entries = story.entries
        gaps = [LaneSpan(one.start, one.end) for one in silences]
        words = self._sounds.words(record) if self._sounds is not None else {}
        counts = self._sounds.chips(record) if self._sounds is not None else {}
        starts = self._sounds.starts(record) if self._sounds is not None else {}
        bad, fine, other, silent = self._scores(story, rank.because, self._held(record), self._marked(record))
        judged = self._judged.of(record, story) if self._judged is not None else None
        reasons = Counter(line.note.partition(": ")[0] for line in silent).most_common()
        # A result is shown with its call.
        answered = {result.seq: call for call, result in record.conversation.tool_results.items()}
        shown = None if rank.why.event is None else answered.get(rank.why.event, rank.why.event)
        lines = _with_silences(self._lines(story, rank.why, shown), silences, starts)
        meta = [_short(f"{name} {value}") for name, value in story.dimensions.items()]
        if lanes is not None and lanes.length:
            meta.append(clock_text(lanes.length))
        return Call(
            title=_title(record, rank),
            meta=", ".join(meta),
            lost_in=rank.why.lost_in,
            reasons=(*_reasons(rank.why), *self._sound_reasons(record)),
            timeline=lanes
            and msgspec.structs.replace(
                lanes,
                lanes=tuple(msgspec.structs.replace(one, name=self._who(one.name, one.role)) for one in lanes.lanes),
            ),
            caption=lanes.caption if lanes else "Nothing that was said or done has a time, so there is no timeline.",
            silences=silences,
            sound=self._named(self._sounds.of(record, lanes, gaps)) if self._sounds is not None else None,
            failed=tuple(entry.seq for entry in entries if entry.bad and entry.kind != "utterance"),
            lines=tuple(_with_words(_with_quotes(lines, judged), words, counts)),
            judged=judged,
            findings=tuple(_finding_lines(story.findings, entries)),
            bad=bad,
            fine=fine,
            other=other,
            silent=silent,
            silent_line=", ".join(f"{n} {reason}" for reason, n in reasons[:3]) + (", …" if len(reasons) > 3 else ""),
            notes=(*story.notes, *(note for entry in entries for note in entry.notes)),
            about=story.about,
            context=story.context,
        )

    def _sound_reasons(self, record: KeptConversation) -> Iterator[Reason]:
        remarks = self._sounds.reasons(record) if self._sounds is not None else ()
        for at, text in islice(remarks, REASONS):
            yield Reason(sentence_start(text), at, "" if at is None else clock_text(at))

    def _label(self, metric: str) -> str:
        if metric not in self._labels:
            declared = self._declared.get(metric)
            label = metric if declared is None else metric_label(declared, self._noun)
            self._labels[metric] = label[:1].upper() + label[1:]
        return self._labels[metric]

    def _who(self, name: str, role: str) -> str:
        """Who speaks; a speaker without a name of their own has the usual name of the role."""
        if name not in ("assistant", "agent", "user", "caller", "customer") and not _CHANNEL.fullmatch(name):
            return name
        return {"assistant": "Agent", "user": "Caller" if self._noun == "call" else "User"}.get(role, name)

    def _named(self, sound: CallSound | None) -> CallSound | None:
        """With the speakers of its waves named as those of the transcript are."""
        if sound is None:
            return None
        waves = (
            msgspec.structs.replace(one, name=self._who(one.name, one.role)) if one.name else one for one in sound.waves
        )
        return msgspec.structs.replace(sound, waves=tuple(waves))

    def _value(self, mark: Mark) -> str:
        """Whether it was so, of what is declared as either; else the value. A share that counts is no yes or no."""
        declared = self._declared.get(mark.metric)
        is_either = (
            declared is not None
            and declared.unit == SHARE
            and declared.observes == CONVERSATION
            and declared.reduce.across == MEAN_OF_CONVERSATIONS.name
        )
        return {ALL: "yes", NONE: "no"}.get(mark.text, mark.text) if is_either and not mark.subject else mark.text

    # ------------------------------------------------------------------ line by line

    def _lines(self, story: Story, why: RankReasons, shown: int | None) -> Iterator[Line]:
        """The lines of the transcript; `shown` is the event that shows the first of the reasons."""
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
                if entry.kind == "state_entered":
                    is_lost = entry.seq == lost
                    note = "lost here" if is_lost else ""
                    yield Line(kind="state", seq=entry.seq, at=entry.at, title=entry.title, note=note, bad=is_lost)
                    continue
                bad = [mark for mark in (*(turn.marks if [entry.seq] == last else ()), *entry.marks) if mark.bad]
                chips = [Chip(_short(why.reasons[0]))] if entry.seq == shown and why.reasons else []
                chips += [self._chip(mark) for mark in bad if self._sounds is None or mark.metric not in OF_ENTITIES]
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
        evidence = tuple(f"{fact.name}: {cut_text(fact.text, 300)}" for fact in _shown(mark.evidence))
        # That something happened needs no share.
        return Chip(_short(name if text == ALL else f"{name}: {'no' if text == NONE else text}"), True, evidence)

    # ------------------------------------------------------------------ scores

    def _held(self, record: KeptConversation) -> dict[str, bool]:
        """What has a pass mark, and whether it meets it; the order of the conversations need not look at it."""
        return {
            reduced.key: reduced.ten >= declared.ten_points.passes_at
            for reduced in record.reduced
            if reduced.judge == COMPUTED
            and reduced.ten is not None
            and (declared := self._declared.get(reduced.key)) is not None
            and declared.ten_points is not None
        }

    def _marked(self, record: KeptConversation) -> set[str]:
        """What the lanes show as something that should not be there."""
        return {
            key
            for score in record.scores
            if score.observation.value
            and isinstance(score.observation.details, Mapping)
            and score.observation.details.get(MOMENTS)
            and (declared := self._declared.get(key := key_text(score.metric, score.variant))) is not None
            and declared.better == LOWER
        }

    def _scores(
        self, story: Story, because: Sequence[RankedMetric], held: Mapping[str, bool], marked: Set[str]
    ) -> tuple[tuple[ScoreLine, ...], ...]:
        """The scores of the whole: bad, fine, other, silent. In what it is furthest behind comes first."""
        behind = {one.headline.key: one for one in because if one.failure or one.share >= TENTH}
        lines: dict[str, list[ScoreLine]] = {"bad": [], "fine": [], "other": [], "silent": []}
        every = [*story.scores, *(mark for mark in story.elsewhere if mark.status in (MEASURED, ERROR))]
        judged = self._judged
        marks = [mark for mark in every if judged is None or not judged.has_opinion(mark.metric, mark.judge)]
        # What decides whether it is lost comes first.
        ranks = {key: rank for rank, key in enumerate(dict.fromkeys((OUTCOME_METRIC, *behind)))}
        for mark in sorted(marks, key=lambda mark: ranks.get(mark.metric, len(ranks))):
            ranked = behind.get(mark.metric) if not mark.subject else None
            is_silent = mark.status not in (MEASURED, ERROR)
            is_held = mark.status == MEASURED and not mark.subject and not mark.judge
            passes = held.get(mark.metric) if is_held else None
            note = FAILED["mark"] if passes is False else "" if mark.status == MEASURED else mark.text
            label = self._label(mark.metric)
            line = ScoreLine(
                label=f"{mark.subject}: {label}" if mark.subject else label,
                value=self._value(mark) if mark.status == MEASURED else "·" if is_silent else "error",
                note=_compared(ranked) if ranked is not None else note,
                fields=(*_shown(mark.evidence), *((StoryFact("judge", mark.judge),) if mark.judge else ())),
            )
            is_bad = mark.bad or passes is False or ranked is not None or (mark.metric in marked and not mark.subject)
            lines["silent" if is_silent else "bad" if is_bad else "fine" if passes else "other"].append(line)
        return tuple(map(tuple, lines.values()))


def _with_silences(lines: Iterable[Line], silences: Sequence[Silence], starts: Mapping[int, float]) -> Iterator[Line]:
    """The lines, with each silence before what ends it; `starts` says when turns begin in the sound.

    A log may date a turn a little before its sound: a turn that begins in the second half of a silence ends it.
    """
    waiting = list(silences)
    for line in lines:
        begins = starts.get(line.seq, line.at)
        while waiting and begins is not None:
            start, end = waiting[0].start, waiting[0].end
            if begins < ((start + end) / 2 if line.kind == "words" else end - 0.05):
                break
            yield Line(kind="silence", at=start, title=f"{waiting.pop(0).text} of silence")
        yield line


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


def _shown(evidence: Sequence[StoryFact]) -> list[StoryFact]:
    """Evidence without what the page draws: moments on the lanes, the texts of an utterance beside it."""
    drawn = {"moments"} | (_TEXTS if any(fact.name == "differs" for fact in evidence) else set())
    return [fact for fact in evidence if fact.name not in drawn]


def _with_words(
    lines: Iterable[Line],
    words: Mapping[int, Callable[[str], TextBlock | None]],
    counts: Mapping[int, Sequence[tuple[str, bool]]],
) -> Iterator[Line]:
    """The lines, with what became of their words on the way."""
    for line in lines:
        if line.kind == "words" and line.seq in words:
            shown = "".join(piece.text for piece in line.readings[0].pieces) if line.readings else ""
            chips = (*line.chips, *(Chip(text, is_bad) for text, is_bad in counts.get(line.seq, ())))
            yield msgspec.structs.replace(line, three=words[line.seq](shown), chips=chips)
        else:
            yield line


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
    ends = sorted(
        (span.end, lane.role)
        for lane in lanes.lanes
        if lane.kind == "speaker"
        for span in lane.spans
        if span.end is not None
    )
    tools = [span for lane in lanes.lanes if lane.kind == "tools" for span in lane.spans]
    for gap in lanes.gaps:
        if gap.end is not None and gap.length >= SILENCE:
            waits = any(tool.start < gap.end and (tool.end or tool.start) > gap.start for tool in tools)
            before = next((role for end, role in reversed(ends) if end <= gap.start + NEAR), "")
            owes = "assistant" if waits else {"assistant": "user", "user": "assistant"}.get(before, "")
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
