"""One conversation turn by turn, as the terminal and the page show it.

Everything is text by now, but not yet markup: what shows it escapes it.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from math import isfinite
from typing import Any

import msgspec

from convoscope.analysis.words import counted, key_text, outcome_text, points_text, reason_text, value_text
from convoscope.annotate.annotator import judge_behind
from convoscope.conversation import (
    Annotations,
    AnyEvent,
    AudioFile,
    ComponentMetric,
    Conversation,
    GuardEvaluated,
    Json,
    Marker,
    Retrieval,
    SlotFilled,
    StateEntered,
    StateExited,
    Time,
    ToolCall,
    ToolResult,
    Turn,
    Utterance,
)
from convoscope.ingest.recordings import AMBIGUOUS, CANDIDATES, base_name
from convoscope.ingest.report import Note
from convoscope.metrics.declaration import HIGHER, LOWER, SHARE
from convoscope.metrics.registry import parent_metric
from convoscope.metrics.unresolved import RESOLUTION, RESOLVED_BY
from convoscope.report.run_tables import FEW, REASONS, visible_figures
from convoscope.report.speech_lanes import Ruler, SpeechLanes, clock_text, speech_lanes
from convoscope.report.text_diff import TextVersion, readings
from convoscope.runs.conversations import KeptConversation, ReducedScore, ScoreRow
from convoscope.runs.reliability import claims_nothing
from convoscope.runs.summary import Summary
from convoscope.scores.judges import model_of
from convoscope.scores.observation import COMPUTED, ERROR, MEASURED, Observation
from convoscope.views.flow.endings import outcome_of
from convoscope.views.result_fields import HOUSE_RULE, INFERRED, ToolOutcome
from convoscope.views.tool_outcomes import tool_outcomes

MAX_TEXT = 20_000
"""Longer values of tools and annotations are cut, and the text says how much is missing."""
FOLDED = "without a value"
"""The status of a mark that counts others."""
NO_RESULT = "none in the log"
_MOMENTS = '"moments"'
"""In the details of what the page marks in a recording."""

_DOES = {
    "tool_call": "calls tool",
    "tool_result": "result of tool",
    "state_entered": "enters state",
    "state_exited": "leaves state",
    "guard_evaluated": "guard",
    "slot_filled": "fills slot",
    "component_metric": "reported by",
    "retrieval": "retrieves",
    "marker": "marker",
}


class StoryFact(msgspec.Struct, frozen=True, array_like=True):
    """A name and what it is, as text."""

    name: str
    text: str


class Mark(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A score as it is shown at its subject: the value as text, or the reason why it is missing."""

    metric: str
    status: str
    text: str
    subject: str = ""
    """Named where the mark is not at its subject."""
    judge: str = ""
    evidence: tuple[StoryFact, ...] = ()
    bad: bool = False
    """A share that is at its worst, or a metric that broke."""


class TimelineEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event: who, what, when, what was measured of it, and what reading did to it."""

    seq: int
    kind: str
    does: str = ""
    """What the event is, as text; empty for an utterance."""
    title: str = ""
    role: str = ""
    at: float | None = None
    readings: tuple[TextVersion, ...] = ()
    fields: tuple[StoryFact, ...] = ()
    marks: tuple[Mark, ...] = ()
    notes: tuple[str, ...] = ()
    bad: bool = False
    """A tool or a guard failed, or the speaker was cut off."""
    error: str = ""
    """Why a tool failed, where the log says it."""


class StoryTurn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A turn: what was measured of it, and what happened in it."""

    turn: int | None = None
    marks: tuple[Mark, ...] = ()
    entries: tuple[TimelineEntry, ...] = ()


class PlacedFinding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A topic, a risk or an action: who found it, what it is, and where."""

    by: str
    """`found by rules`, or `labelled by` the author of gold."""
    text: str
    seqs: tuple[int, ...] = ()
    """The utterances that show it; empty where the annotator did not say."""
    evidence: str = ""
    is_open: bool = False
    """A risk that nothing said later deals with."""


class Story(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A conversation with everything that is known of it."""

    id: str
    outcome: str = ""
    dimensions: dict[str, str] = {}
    because: tuple[str, ...] = ()
    """Why it has its rank, the deciding reason first."""
    about: tuple[StoryFact, ...] = ()
    context: tuple[StoryFact, ...] = ()
    """What is long and seldom looked at: instructions, scenario, annotations."""
    scores: tuple[Mark, ...] = ()
    """What each metric says of the whole."""
    elsewhere: tuple[Mark, ...] = ()
    """Scores of subjects that are not in the timeline, such as an item without an answer."""
    notes: tuple[str, ...] = ()
    findings: tuple[PlacedFinding, ...] = ()
    """What annotators found, and at which utterances."""
    timeline: SpeechLanes | None = None
    turns: tuple[StoryTurn, ...] = ()

    @property
    def entries(self) -> list[TimelineEntry]:
        return [entry for turn in self.turns for entry in turn.entries]


def story(record: KeptConversation, summary: Summary, because: Sequence[str] = ()) -> Story:
    """Everything of one conversation of a run."""
    return StoryMaker(summary).story(record, because)


class StoryMaker:
    """Makes the stories of one run; what all of them need of its summary is looked up once.

    `only_bad`: of turns and events, only the marks that are bad, which is all that the page shows.
    """

    def __init__(self, summary: Summary, *, only_bad: bool = False) -> None:
        self.declared = summary.by_key
        self.only_bad = only_bad
        names = {key.partition("@")[0] for key in self.declared}
        self.parts = frozenset(name for name in names if parent_metric(name, names))
        """Metrics that are part of another: their evidence is the whole's."""
        self.doubtful = frozenset((one.key, one.judge) for one in summary.figures if claims_nothing(summary, one))
        """Metrics, each with a judge, that neither pass nor fail."""
        self._visible = frozenset(figure.key for figure in visible_figures(summary).figures)
        """Metrics with a value somewhere in the run, which are shown where they have none, too."""

    def story(self, record: KeptConversation, because: Sequence[str] = ()) -> Story:
        conversation = record.conversation
        outcome = outcome_of(conversation)
        text = outcome_text(outcome.name, outcome.evidence)
        turns = _turns(conversation)
        marks = _Marks(record, self, {str(turn.id) for turn in turns})
        error = conversation.outcome.error
        ruler = Ruler(conversation)
        return Story(
            id=conversation.id,
            outcome=text,
            dimensions=conversation.dimensions,
            because=(*((f"the integration broke: {error}",) if error else ()), *because),
            about=(StoryFact("outcome", text), *_about(conversation)),
            context=tuple(_context(conversation)),
            turns=tuple(_Timeline(record, marks, ruler).turns(turns)),
            scores=tuple(
                marks.of_whole(score)
                for score in record.reduced
                # Without figures, no metric is known to be missing.
                if not self._visible or score.status in (MEASURED, ERROR) or score.key in self._visible
            ),
            elsewhere=tuple(marks.left_over()),
            notes=tuple(note_text(note) for note in record.notes if note.seq not in marks.kinds),
            findings=placed_findings(conversation),
            timeline=speech_lanes(conversation, ruler),
        )

    def wanted(self, conversation: Conversation) -> Callable[[ScoreRow], bool]:
        """Which rows of scores a story with only bad marks needs: not those of turns that went well."""
        turns = {str(turn.id) for turn in _turns(conversation)}

        def is_wanted(row: ScoreRow) -> bool:
            _, metric, variant, kind, subject, _, judge, _, status, value, *_, details = row
            is_shown = kind != "turn" or subject not in turns or judge != COMPUTED or _MOMENTS in (details or "")
            return is_shown or self.is_bad(key_text(metric, variant), status, value)

        return is_wanted

    def is_bad(self, key: str, status: str, value: float | None) -> bool:
        """A metric that broke, or a share at its worst."""
        if status == ERROR:
            return True
        declared = self.declared.get(key)
        if value is None or declared is None or declared.unit != SHARE:
            return False
        return (declared.better == HIGHER and value == 0) or (declared.better == LOWER and value == 1)


class _Marks:
    def __init__(self, record: KeptConversation, maker: StoryMaker, turns: Set[str]) -> None:
        conversation = record.conversation
        self._maker = maker
        self._turn_ids = turns
        self.kinds = {event.seq: str(type(event).__struct_config__.tag) for event in conversation.timeline}
        self._whole: dict[tuple[str, str], Observation] = {}
        self.turns: dict[str, list[Mark]] = defaultdict(list)
        self.events: dict[int, list[Mark]] = defaultdict(list)
        self._elsewhere: dict[str, list[Mark]] = defaultdict(list)
        self._where: dict[str, dict[str, int | None]] = {
            "item": {item.id: item.asked if item.answered is None else item.answered for item in conversation.items},
            "state": {
                event.state: event.seq for event in reversed(conversation.timeline) if type(event) is StateEntered
            },
        }
        for score in record.scores:
            observation = score.observation
            key = key_text(score.metric, score.variant)
            if observation.subject.kind == "conversation":
                self._whole[key, observation.judge] = observation
            elif score.metric not in maker.parts:
                self._add(key, observation)

    def _add(self, key: str, observation: Observation) -> None:
        kind, subject, position = observation.subject
        is_left_out = self._maker.only_bad and not self._maker.is_bad(key, observation.status, observation.value)
        if kind == "turn":
            if not is_left_out or subject not in self._turn_ids:
                self.turns[subject].append(self._mark(key, observation))
            return
        seq = self._where[kind].get(subject) if kind in self._where else position
        if seq is not None and seq in self.kinds and (kind in self._where or self.kinds[seq] == kind):
            if not is_left_out:
                self.events[seq].append(self._mark(key, observation))
        else:
            self._elsewhere[f"{reason_text(kind)} {subject}"].append(self._mark(key, observation))

    def left_over(self) -> Iterator[Mark]:
        """Marks of turns that are not there come last."""
        for turn, marks in self.turns.items():
            self._elsewhere[f"turn {turn}"] += marks
        for subject, marks in self._elsewhere.items():
            yield from (msgspec.structs.replace(mark, subject=subject) for mark in folded(marks))

    def of_whole(self, reduced: ReducedScore) -> Mark:
        """What a metric says of the conversation, with the evidence of its own observation where it has one."""
        declared = self._maker.declared.get(reduced.key)
        observation = self._whole.get((reduced.key, reduced.judge))
        evidence = list(_evidence(observation)) if observation is not None else []
        if reduced.n > 1 or (reduced.n and reduced.skipped):
            level = declared.observes if declared is not None else "subject"
            evidence.append(StoryFact(f"{level}s measured", str(reduced.n)))
        if reduced.skipped and reduced.status == MEASURED:
            evidence.append(StoryFact("without a value", str(reduced.skipped)))
        if reduced.ten is not None:
            is_marked = (reduced.key, reduced.judge) not in self._maker.doubtful
            evidence.append(StoryFact("of 10 points", points_text(reduced.ten, declared if is_marked else None)))
        return self._made(reduced.key, reduced, evidence)

    def _mark(self, key: str, observation: Observation) -> Mark:
        return self._made(key, observation, _evidence(observation))

    def _made(self, key: str, scored: Observation | ReducedScore, evidence: Iterable[StoryFact]) -> Mark:
        declared = self._maker.declared.get(key)
        if scored.status == MEASURED:
            text = value_text(scored.value, declared.unit if declared is not None else "")
        else:
            reason = reason_text(scored.reason)
            text = f"{reason}: {scored.detail}" if scored.detail else reason
        return Mark(
            metric=key,
            status=scored.status,
            text=text,
            judge="" if scored.judge == COMPUTED else scored.judge,
            evidence=tuple(evidence),
            bad=self._maker.is_bad(key, scored.status, scored.value),
        )


class _Timeline:
    def __init__(self, record: KeptConversation, marks: _Marks, ruler: Ruler) -> None:
        conversation = record.conversation
        self._conversation = conversation
        self._ruler = ruler
        self._marks = marks
        self._names = {who.id: who.name or who.id for who in conversation.participants}
        self._results = conversation.tool_results
        self._answered = {result.seq for result in self._results.values()}
        self._notes: dict[int, list[str]] = defaultdict(list)
        for note in record.notes:
            self._notes[note.seq].append(note_text(note))

    def turns(self, turns: Sequence[Turn]) -> Iterator[StoryTurn]:
        for turn in turns:
            yield StoryTurn(
                turn=turn.id if turn.id >= 0 else None,
                marks=tuple(folded(self._marks.turns.pop(str(turn.id), ()))),
                entries=tuple(self._entry(event) for event in turn.events if event.seq not in self._answered),
            )

    def _entry(self, event: AnyEvent) -> TimelineEntry:
        """An event, which begins with its first sound, where there is any; a tool call together with its result."""
        seqs, begin = [event.seq], event.time
        if type(event) is ToolCall and (result := self._results.get(event.seq)):
            seqs.append(result.seq)
        elif type(event) is Utterance and event.segments:
            first = min(event.segments, key=lambda segment: segment.start)
            begin = Time(first.start, first.clock)
        kind = self._marks.kinds[event.seq]
        entry = self._described(event)
        if event.extras:
            entry["fields"].append(StoryFact("also in the log", json_text(event.extras)))
        entry["fields"] = tuple(entry["fields"])
        return TimelineEntry(
            seq=event.seq,
            kind=kind,
            does=_DOES.get(kind, ""),
            at=self._ruler.at(begin),
            marks=tuple(folded([mark for seq in seqs for mark in self._marks.events.get(seq, ())])),
            notes=tuple(note for seq in seqs for note in self._notes.get(seq, ())),
            **entry,
        )

    def _described(self, event: AnyEvent) -> dict[str, Any]:
        names = self._names
        entry: dict[str, Any] = {"title": getattr(event, "name", ""), "fields": []}
        match event:
            case Utterance():
                entry = {
                    "title": names.get(event.speaker, event.speaker),
                    "role": self._conversation.roles.get(event.speaker, ""),
                    "readings": readings(event),
                    "fields": _given(
                        cut_off_by=names.get(event.cut_off_by, event.cut_off_by), manner=reason_text(event.manner)
                    ),
                    "bad": bool(event.cut_off_by),
                }
            case ToolCall():
                entry |= self._call(event)
            case ToolResult():
                entry |= _result(event, tool_outcomes(self._conversation)[event.seq])
            case Marker():
                entry["fields"] = _given(by=names.get(event.participant, event.participant)) + _value(event.value)
            case StateEntered():
                entry["title"] = event.state
            case StateExited():
                entry["title"] = f"{event.state} → {event.to_state}" if event.to_state else event.state
                entry["fields"] = _given(because=event.reason)
            case GuardEvaluated():
                fields = _given(state=event.state, error=event.error) + _value(event.result, "result")
                entry = {"title": event.guard, "fields": fields, "bad": bool(event.error)}
            case SlotFilled():
                fields = [StoryFact("value", json_text(event.value)), *_given(state=event.state)]
                entry = {"title": event.slot, "fields": fields}
            case ComponentMetric():
                fields = [StoryFact(name, json_text(value)) for name, value in event.values.items()]
                fields += _given(label=event.label, speech=event.speech_id, state=event.state)
                entry = {"title": event.component, "fields": fields}
            case Retrieval():
                chunks = [StoryFact(f"chunk {number}", cut(chunk)) for number, chunk in enumerate(event.chunks, 1)]
                entry = {"title": event.query or "", "fields": chunks}
        return entry

    def _call(self, call: ToolCall) -> dict[str, Any]:
        if call.raw_arguments is not None:
            fields = [StoryFact("arguments, not valid JSON", cut(call.raw_arguments))]
        else:
            fields = [StoryFact("arguments", json_text(call.arguments))]
        fields += _given(by=self._names.get(call.caller, call.caller))
        result = self._results.get(call.seq)
        if result is None:
            return {"fields": [*fields, StoryFact("result", NO_RESULT)]}
        entry = _result(result, tool_outcomes(self._conversation)[result.seq])
        fields += entry["fields"]
        if call.time is not None and result.time is not None:
            took = self._conversation.elapsed(call.time, result.time)
            if took is not None and took >= 0:
                clocks = {call.time.clock, result.time.clock}
                steps = max((one.resolution or 0.0 for one in self._conversation.clocks if one.id in clocks), default=0)
                coarse = f"{took:g} s, by a clock with steps of {steps:g} s"
                fields.append(StoryFact("took", coarse if steps >= 0.1 else value_text(took, "s")))
        if extras := {name: value for name, value in result.extras.items() if name != HOUSE_RULE}:
            fields.append(StoryFact("also in the log of the result", json_text(extras)))
        return entry | {"fields": fields}


def _turns(conversation: Conversation) -> Sequence[Turn]:
    try:
        return conversation.turns
    except ValueError:
        # The turn rule is unknown to this version: everything is shown without turns.
        everything = conversation.timeline
        return (Turn(id=-1, events=everything, user=(), assistant=(), user_text="", assistant_text=""),)


def folded(marks: Sequence[Mark]) -> Iterator[Mark]:
    """Scores with a value first; those without, where they are many, as one mark that counts their reasons.

    Its evidence names them.
    """
    yield from (mark for mark in marks if mark.status in (MEASURED, ERROR))
    silent = [mark for mark in marks if mark.status not in (MEASURED, ERROR)]
    if len(silent) <= FEW:
        yield from silent
        return
    names: dict[str, list[str]] = defaultdict(list)
    for mark in silent:
        # After the colon comes the detail.
        names[mark.text.partition(": ")[0]].append(mark.metric)
    often = sorted(names.items(), key=lambda pair: -len(pair[1]))
    counts = [f"{reason} ({len(metrics)})" for reason, metrics in often[:REASONS]]
    yield Mark(
        metric=counted(len(silent), "score"),
        status=FOLDED,
        text=", ".join(counts) + (", …" if len(often) > REASONS else ""),
        evidence=tuple(StoryFact(reason, ", ".join(dict.fromkeys(metrics))) for reason, metrics in often),
    )


def _evidence(observation: Observation) -> Iterator[StoryFact]:
    if observation.denominator is not None and observation.numerator is not None and observation.denominator != 1:
        yield StoryFact("counted", f"{observation.numerator:g} of {observation.denominator:g}")
    for name, value in (observation.details or {}).items():
        text = value if isinstance(value, str) else _moments_text(value) or json_text(value)
        yield StoryFact(reason_text(name), text)


def _moments_text(value: Json) -> str:
    """Moments of a recording as a person reads them; empty for anything else."""
    values = [value] if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    moments = [one for one in values if isinstance(one, Mapping)]
    if not moments or len(moments) != len(values):
        return ""
    starts = [one.get("start") for one in moments]
    times = [clock_text(float(one)) for one in starts if isinstance(one, int | float) and isfinite(one)]
    if len(times) != len(moments):
        return ""
    if all({"text", "start", "end"} == one.keys() for one in moments):  # each word of an utterance
        return f"{counted(len(moments), 'word')}, from {times[0]} on"
    return "; ".join(f"at {time} {_moment_text(one)}" for time, one in zip(times, moments, strict=True))


def _moment_text(moment: Mapping[str, Json]) -> str:
    """What happens at a moment: its text, else each other part of it."""
    kind, text = moment.get("kind"), moment.get("text")
    words = str(kind).replace("_", " ") if kind else ""
    if text:
        return f"{words}: {text}" if words else str(text)
    parts = [
        f"{name} {value if isinstance(value, str) and value else json_text(value)}"
        for name, value in moment.items()
        if name not in ("start", "end", "kind", "text")
    ]
    return ", ".join(filter(None, (words, *parts)))


def _result(result: ToolResult, outcome: ToolOutcome) -> dict[str, Any]:
    fields: list[StoryFact] = []
    if result.result is not None or not result.error:
        fields.append(StoryFact("result", json_text(result.result)))
    if result.error:
        fields.append(StoryFact("error", cut(result.error)))
    if result.success is not None or not result.error:
        fields.append(StoryFact("success", _success(result, outcome)))
    return {"fields": fields, "bad": outcome.failed, "error": outcome.error if outcome.failed else ""}


def _success(result: ToolResult, outcome: ToolOutcome) -> str:
    """What the log states, or what is read from the result, and by what sign."""
    if outcome.worked is None:
        return f"not stated: {reason_text(outcome.reason)}"
    answer = "no" if outcome.failed else "yes, inferred" if outcome.basis == INFERRED else "yes"
    return answer if result.success is outcome.worked and not result.extras else f"{answer} ({cut(outcome.sign)})"


def _about(conversation: Conversation) -> list[StoryFact]:
    source, outcome, agent = conversation.source, conversation.outcome, conversation.agent
    record = f", record {source.record}" if source.record else ""
    yes_no = {True: "yes", False: "no", None: ""}
    truth = conversation.expected.ground_truth
    fields = _given(
        read_from=", ".join(source.files) + record if source.files else "",
        pipeline=conversation.pipeline or "",
        agent=f"{agent.name}, {agent.role}" if agent.name and agent.role else agent.name,
        models=", ".join(f"{part}: {model}" for part, model in agent.models.items()),
        completed=yes_no[outcome.completed],
        finished=yes_no[outcome.finished],
        ended=outcome.ended_reason,
        status=outcome.final_status,
        duration="" if outcome.duration is None else value_text(outcome.duration, "s"),
    )
    return fields if truth is None else [*fields, StoryFact("expected answer", cut(truth))]


def _context(conversation: Conversation) -> Iterator[StoryFact]:
    agent, expected = conversation.agent, conversation.expected
    if agent.instructions:
        yield StoryFact("instructions", cut(agent.instructions))
    parts: dict[str, Any] = {
        "tools": agent.tools,
        "scenario": conversation.scenario,
        "expected format": expected.format,
        "expected tool calls": expected.tool_calls,
        "items": conversation.items,
        "dialogue states": conversation.frames,
        "annotations": conversation.annotations,
        "labels": conversation.labels,
        "recording": None if conversation.recording is None else shown_recording(conversation.recording),
        "clocks": conversation.clocks,
        "also in the log of the agent": agent.extras,
        "also in the log of what is expected": expected.extras,
        "also in the log of the outcome": conversation.outcome.extras,
        "also in the log": conversation.extras,
    }
    for name, value in parts.items():
        if value:
            yield StoryFact(name, json_text(value))


def shown_recording(recording: AudioFile) -> AudioFile:
    """A recording with the names of its files only: reading made their paths whole, and a page is shared."""
    tracks = tuple(
        msgspec.structs.replace(one, path=base_name(one.path)) if os.path.isabs(one.path) else one
        for one in recording.tracks
    )
    extras = {
        name: [base_name(path) for path in value] if name in (AMBIGUOUS, CANDIDATES) else value
        for name, value in recording.extras.items()
    }
    return msgspec.structs.replace(recording, tracks=tracks, extras=extras)


def _given(**texts: str) -> list[StoryFact]:
    return [StoryFact(name.replace("_", " "), text) for name, text in texts.items() if text]


def _value(value: Any, name: str = "value") -> list[StoryFact]:
    return [] if value is None else [StoryFact(name, json_text(value))]


def json_text(value: Any) -> str:
    """A JSON value for a person: on one line where it is short."""
    encoded = msgspec.json.encode(value)
    return cut((encoded if len(encoded) <= 100 else msgspec.json.format(encoded, indent=2)).decode())


def cut(text: str) -> str:
    """At most MAX_TEXT characters, and how many are missing."""
    more = len(text) - MAX_TEXT
    return text if more <= 0 else f"{text[:MAX_TEXT]}\n… {more:,} more characters; `convoscope show --json` has them"


def note_text(note: Note) -> str:
    """What reading did, and where in the log."""
    kind = "unknown name" if note.kind == "unknown" else note.kind.replace("_", " ")
    text = f"{kind}: {reason_text(note.code) if note.kind != 'unknown' else note.code}"
    if note.detail:
        text += f", {note.detail}"
    if note.file:
        text += f" ({note.file}:{note.line})" if note.line else f" ({note.file})"
    return text


def by_seq(findings: Iterable[PlacedFinding]) -> dict[int, list[PlacedFinding]]:
    """The findings of each utterance."""
    by_utterance: dict[int, list[PlacedFinding]] = defaultdict(list)
    for finding in findings:
        for seq in finding.seqs:
            by_utterance[seq].append(finding)
    return by_utterance


def placed_findings(conversation: Conversation) -> tuple[PlacedFinding, ...]:
    """Everything that was found, by annotator, topics first."""
    return tuple(finding for annotations in conversation.annotations for finding in _findings(annotations))


WITHOUT_TEXT = "without a text"


def _findings(annotations: Annotations) -> Iterator[PlacedFinding]:
    verb = "labelled" if annotations.origin == "gold" else "found"
    judge = judge_behind(annotations)
    by = f"{verb} by {annotations.annotator or 'an annotator without a name'}"
    by += "" if judge == COMPUTED else f" {model_of(judge)}"
    looked = annotations.extraction.get(RESOLUTION) == "success"
    for topic in annotations.topics or ():
        seqs = topic.events or tuple(dict.fromkeys(topic.span or ()))
        yield PlacedFinding(by=by, text=f"topic {topic.label}", seqs=seqs, evidence=topic.evidence)
    for risk in annotations.risks or ():
        name = ", ".join(filter(None, (f"risk {reason_text(risk.type) or WITHOUT_TEXT}", risk.severity)))
        resolved = risk.extras.get(RESOLVED_BY)
        end = "" if not looked else ", unresolved" if resolved is None else ", resolved later"
        is_open = looked and resolved is None
        yield PlacedFinding(by=by, text=name + end, seqs=risk.events, evidence=risk.evidence, is_open=is_open)
        if looked and isinstance(resolved, int):
            yield PlacedFinding(by=by, text=f"resolves {reason_text(risk.type)}", seqs=(resolved,))
    for action in annotations.actions or ():
        who = action.assignee.rpartition(":")[2] or action.assignee_role  # the id of a speaker is `ROLE:NAME`
        owner, due = f"of {who}" if who else "without an owner", f"due {action.due}" if action.due else ""
        text = ", ".join(filter(None, (f"action {action.description or WITHOUT_TEXT}", owner, due)))
        yield PlacedFinding(by=by, text=text, seqs=action.events, evidence=action.verbatim)
