"""One conversation turn by turn, as the page and the terminal tell it.

Everything is text by now, but not yet markup: whoever shows it, escapes it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from convoscope.analysis.words import (
    because_texts,
    counted,
    key_text,
    outcome_text,
    points_text,
    reason_text,
    value_text,
)
from convoscope.conversation import (
    AnyEvent,
    ComponentMetric,
    Conversation,
    GuardEvaluated,
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
from convoscope.ingest.report import Note
from convoscope.metrics.declaration import HIGHER, LOWER, SHARE
from convoscope.metrics.parts import parent_metric
from convoscope.report.placed_findings import PlacedFinding, placed_findings
from convoscope.report.speech_lanes import Ruler, SpeechLanes, timeline
from convoscope.report.text_diff import TextVersion, readings
from convoscope.report.visible_figures import FEW, REASONS, visible_figures
from convoscope.runs.conversations import KeptConversation, ReducedScore
from convoscope.runs.ranking import RankedMetric
from convoscope.runs.summary import DeclaredMetric, Summary
from convoscope.scores.observation import COMPUTED, ERROR, MEASURED, Observation
from convoscope.views.flow.endings import outcome_of
from convoscope.views.result_fields import HOUSE_RULE, INFERRED, ToolOutcome
from convoscope.views.tool_outcomes import tool_outcomes

MAX_TEXT = 20_000
"""Longer values of tools and annotations are cut, and it is said how much is missing."""
FOLDED = "without a value"
"""What stands for the status of a mark that counts others."""


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
    """A score as it is shown at its subject: the value in words, or the reason why there is none."""

    metric: str
    status: str
    text: str
    subject: str = ""
    """Named where the mark does not stand at its subject."""
    judge: str = ""
    evidence: tuple[StoryFact, ...] = ()
    bad: bool = False
    """A share that is at its worst, or a metric that broke."""


class TimelineEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event: who, what, when, what was measured of it, and what reading did to it."""

    seq: int
    kind: str
    does: str = ""
    """What the event is, in words; nothing for an utterance."""
    title: str = ""
    role: str = ""
    at: float | None = None
    readings: tuple[TextVersion, ...] = ()
    facts: tuple[StoryFact, ...] = ()
    marks: tuple[Mark, ...] = ()
    notes: tuple[str, ...] = ()
    bad: bool = False
    """A tool or a guard failed, or the speaker was cut off."""


class MarkedText(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A turn: what was measured of it, and what happened in it."""

    turn: int | None = None
    marks: tuple[Mark, ...] = ()
    happenings: tuple[TimelineEntry, ...] = ()


class Story(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A conversation with everything that is known of it."""

    id: str
    dimensions: dict[str, str] = {}
    because: tuple[str, ...] = ()
    """Why it stands where it stands among the others, in words."""
    about: tuple[StoryFact, ...] = ()
    context: tuple[StoryFact, ...] = ()
    """What is long and seldom looked at: instructions, scenario, annotations."""
    scores: tuple[Mark, ...] = ()
    """What each metric says of the whole."""
    elsewhere: tuple[Mark, ...] = ()
    """Scores of subjects that have no place in the timeline, such as an item without an answer."""
    notes: tuple[str, ...] = ()
    findings: tuple[PlacedFinding, ...] = ()
    """What annotators found, and at which utterances."""
    timeline: SpeechLanes | None = None
    stretches: tuple[MarkedText, ...] = ()


def worth_telling(summary: Summary) -> frozenset[str]:
    """The metrics that a story tells of even where they have no value: those that have one elsewhere in the run."""
    return frozenset(figure.key for figure in visible_figures(summary).figures)


def story(
    record: KeptConversation,
    summary: Summary,
    because: Sequence[RankedMetric] = (),
    worth: Collection[str] | None = None,
) -> Story:
    """Tell one conversation of a run. `worth` is what `worth_telling` gives, for whoever tells many."""
    conversation = record.conversation
    teller = _Teller(record, summary.by_key)
    stretches = tuple(teller.stretches())
    worth = worth_telling(summary) if worth is None else worth
    # Without figures there is nothing to tell a silent metric by.
    everything = not worth
    ended = outcome_of(conversation)
    outcome = outcome_text(ended.name, ended.evidence)
    lost = outcome if ended.done is False else ""
    return Story(
        id=conversation.id,
        dimensions=conversation.dimensions,
        because=tuple(because_texts(conversation.outcome.error, because, lost)),
        about=(StoryFact("outcome", outcome), *_about(conversation)),
        context=tuple(_context(conversation)),
        scores=tuple(
            teller.whole(one)
            for one in record.reduced
            if everything or one.status in (MEASURED, ERROR) or key_text(one.metric, one.variant) in worth
        ),
        elsewhere=tuple(teller.left_over()),
        notes=tuple(note_text(note) for note in record.notes if note.seq not in teller.seqs),
        findings=placed_findings(conversation),
        timeline=timeline(conversation, teller.ruler),
        stretches=stretches,
    )


class _Teller:
    """Puts scores and notes where they belong."""

    def __init__(self, record: KeptConversation, declared: Mapping[str, DeclaredMetric]) -> None:
        self.conversation = record.conversation
        self.ruler = Ruler(record.conversation)
        self.seqs = {event.seq for event in record.conversation.timeline}
        self._declared = declared
        self._names = {who.id: who.name or who.id for who in record.conversation.participants}
        self._notes: dict[int, list[str]] = defaultdict(list)
        for note in record.notes:
            self._notes[note.seq].append(note_text(note))
        self._whole: dict[tuple[str, str], Observation] = {}
        self._turns: dict[str, list[Mark]] = defaultdict(list)
        self._events: dict[int, list[Mark]] = defaultdict(list)
        self._elsewhere: list[Mark] = []
        items = {
            item.id: item.answered if item.answered is not None else item.asked for item in self.conversation.items
        }
        states: dict[str, int] = {}
        kinds = {event.seq: kind_of(event) for event in self.conversation.timeline}
        for event in self.conversation.timeline:
            if type(event) is StateEntered:
                states.setdefault(event.state, event.seq)
        names = {key.partition("@")[0] for key in declared}
        for score in record.scores:
            observation = score.observation
            kind, subject, position = observation.subject
            key = key_text(score.metric, score.variant)
            if kind == "conversation":
                self._whole[key, observation.judge] = observation
            elif parent_metric(score.metric, names):
                # A part's evidence is the whole's.
                continue
            elif kind == "turn":
                self._turns[subject].append(self._mark(key, observation))
            else:
                seq = items.get(subject) if kind == "item" else states.get(subject) if kind == "state" else position
                is_event = kind in ("item", "state") or kinds.get(position) == kind
                if is_event and seq is not None and seq in self.seqs:
                    self._events[seq].append(self._mark(key, observation))
                else:
                    self._elsewhere.append(self._mark(key, observation, f"{reason_text(kind)} {subject}"))

    def stretches(self) -> Iterator[MarkedText]:
        for turn in self._cut():
            yield MarkedText(
                turn=turn.id if turn.id >= 0 else None,
                marks=tuple(folded(self._turns.pop(str(turn.id), ()))),
                happenings=tuple(self._happenings(turn.events)),
            )

    def _cut(self) -> Sequence[Turn]:
        try:
            return self.conversation.turns
        except ValueError:
            # A rule that this version does not know: told without turns.
            everything = self.conversation.timeline
            return (Turn(id=-1, events=everything, user=(), assistant=(), user_text="", assistant_text=""),)

    def left_over(self) -> Iterator[Mark]:
        """Marks of turns that are not there come last."""
        placeless: dict[str, list[Mark]] = defaultdict(list)
        for mark in self._elsewhere:
            placeless[mark.subject].append(mark)
        for turn, marks in self._turns.items():
            placeless[f"turn {turn}"] += marks
        for subject, marks in placeless.items():
            yield from (msgspec.structs.replace(mark, subject=subject) for mark in folded(marks))

    def _happenings(self, events: Sequence[AnyEvent]) -> Iterator[TimelineEntry]:
        answers = {result.seq: call for call, result in self.conversation.tool_results.items()}
        for event in events:
            if type(event) is ToolResult and event.seq in answers:
                continue  # told with its call
            seqs = [event.seq]
            if type(event) is ToolCall and (result := self.conversation.tool_results.get(event.seq)):
                seqs.append(result.seq)
            title, facts, bad = self._tell(event)
            speaks = event.speaker if type(event) is Utterance else ""
            yield TimelineEntry(
                seq=event.seq,
                kind=kind_of(event),
                does=_DOES.get(kind_of(event), ""),
                title=title,
                role=self.conversation.roles.get(speaks, ""),
                at=self.ruler.at(_begins(event)),
                readings=readings(event) if type(event) is Utterance else (),
                facts=tuple(facts),
                marks=tuple(folded([mark for seq in seqs for mark in self._events.get(seq, ())])),
                notes=tuple(note for seq in seqs for note in self._notes.get(seq, ())),
                bad=bad,
            )

    def _tell(self, event: AnyEvent) -> tuple[str, list[StoryFact], bool]:
        """What to call an event, what else it says, and whether something went wrong."""
        facts: list[StoryFact] = []
        title, bad = "", False
        match event:
            case Utterance():
                title = self._names.get(event.speaker, event.speaker)
                bad = bool(event.cut_off_by)
                if event.cut_off_by:
                    facts.append(StoryFact("cut off by", self._names.get(event.cut_off_by, event.cut_off_by)))
                if event.manner:
                    facts.append(StoryFact("manner", reason_text(event.manner)))
            case ToolCall():
                title = event.name
                facts, bad = self._call(event)
            case ToolResult():
                title = event.name
                facts, bad = _result(event, tool_outcomes(self.conversation)[event.seq])
            case Marker():
                title = event.name
                facts = _given(by=self._names.get(event.participant, event.participant))
                if event.value is not None:
                    facts.append(StoryFact("value", json_text(event.value)))
            case _:
                title, facts, bad = _flow(event)
        if event.extras:
            facts.append(StoryFact("also in the log", json_text(event.extras)))
        return title, facts, bad

    def _call(self, call: ToolCall) -> tuple[list[StoryFact], bool]:
        if call.raw_arguments is not None:
            facts = [StoryFact("arguments, not valid JSON", cut(call.raw_arguments))]
        else:
            facts = [StoryFact("arguments", json_text(call.arguments))]
        facts += _given(by=self._names.get(call.caller, call.caller))
        result = self.conversation.tool_results.get(call.seq)
        if result is None:
            return [*facts, StoryFact("result", "none in the log")], False
        result_facts, bad = _result(result, tool_outcomes(self.conversation)[result.seq])
        if call.time is not None and result.time is not None:
            took = self.conversation.elapsed(call.time, result.time)
            if took is not None and took >= 0:
                result_facts.append(StoryFact("took", self._took(took, call.time, result.time)))
        if extras := {name: value for name, value in result.extras.items() if name != HOUSE_RULE}:
            result_facts.append(StoryFact("also in the log of the result", json_text(extras)))
        return facts + result_facts, bad

    def _took(self, seconds: float, *times: Time) -> str:
        """How long, as fine as the clocks can tell."""
        steps = [clock.resolution or 0.0 for clock in self.conversation.clocks if clock.id in {t.clock for t in times}]
        coarse = max(steps, default=0.0)
        return f"{seconds:g} s, by a clock with steps of {coarse:g} s" if coarse >= 0.1 else value_text(seconds, "s")

    def whole(self, reduced: ReducedScore) -> Mark:
        """What a metric says of the conversation, with the evidence of its own observation where it has one."""
        observation = self._whole.get((reduced.key, reduced.judge))
        evidence = list(_evidence(observation)) if observation is not None else []
        if reduced.n > 1 or (reduced.n and reduced.skipped):
            level = self._declared[reduced.key].observes if reduced.key in self._declared else "subject"
            evidence.append(StoryFact(f"{level}s measured", str(reduced.n)))
        if reduced.skipped and reduced.status == MEASURED:
            evidence.append(StoryFact("without a value", str(reduced.skipped)))
        if reduced.ten is not None:
            evidence.append(StoryFact("of 10 points", points_text(reduced.ten, self._declared.get(reduced.key))))
        return self._made(reduced.key, reduced.judge, reduced.status, reduced.value, _why(reduced), evidence)

    def _mark(self, key: str, observation: Observation, subject: str = "") -> Mark:
        mark = self._made(
            key,
            observation.judge,
            observation.status,
            observation.value,
            _why(observation),
            list(_evidence(observation)),
        )
        return msgspec.structs.replace(mark, subject=subject) if subject else mark

    def _made(
        self, key: str, judge: str, status: str, value: float | None, why: str, evidence: Sequence[StoryFact]
    ) -> Mark:
        declared = self._declared.get(key)
        unit, better = (declared.unit, declared.better) if declared is not None else ("", None)
        bad = status == ERROR
        if value is not None and unit == SHARE:
            bad = (better == HIGHER and value == 0) or (better == LOWER and value == 1)
        return Mark(
            metric=key,
            status=status,
            text=value_text(value, unit) if status == MEASURED else why,
            judge="" if judge == COMPUTED else judge,
            evidence=tuple(evidence),
            bad=bad,
        )


def folded(marks: Sequence[Mark]) -> Iterator[Mark]:
    """Scores with a value first; those without, where they are many, as one mark that counts their reasons.

    Which they are is its evidence.
    """
    yield from (mark for mark in marks if mark.status in (MEASURED, ERROR))
    silent = [mark for mark in marks if mark.status not in (MEASURED, ERROR)]
    if len(silent) <= FEW:
        yield from silent
        return
    names: dict[str, list[str]] = defaultdict(list)
    for mark in silent:
        # RankedMetric the colon is the detail.
        names[mark.text.partition(": ")[0]].append(mark.metric)
    often = sorted(names.items(), key=lambda one: -len(one[1]))
    counts = [f"{reason} ({len(them)})" for reason, them in often[:REASONS]]
    yield Mark(
        metric=counted(len(silent), "score"),
        status=FOLDED,
        text=", ".join(counts) + (", …" if len(often) > REASONS else ""),
        evidence=tuple(StoryFact(reason, ", ".join(dict.fromkeys(them))) for reason, them in often),
    )


def kind_of(event: AnyEvent) -> str:
    """The kind of an event as its JSON and the subject of a score name it."""
    return str(type(event).__struct_config__.tag)


def _begins(event: AnyEvent) -> Time | None:
    """When an event began: its first sound, where there is any."""
    if type(event) is Utterance and event.segments:
        first = min(event.segments, key=lambda segment: segment.start)
        return Time(first.start, first.clock)
    return event.time


def _flow(
    event: StateEntered | StateExited | GuardEvaluated | SlotFilled | ComponentMetric | Retrieval,
) -> tuple[str, list[StoryFact], bool]:
    """What to call an event of the machinery, what else it says, and whether it failed."""
    match event:
        case StateEntered():
            return event.state, [], False
        case StateExited():
            title = f"{event.state} → {event.to_state}" if event.to_state else event.state
            return title, _given(because=event.reason), False
        case GuardEvaluated():
            facts = _given(state=event.state, error=event.error)
            if event.result is not None:
                facts.append(StoryFact("result", json_text(event.result)))
            return event.guard, facts, bool(event.error)
        case SlotFilled():
            return event.slot, [StoryFact("value", json_text(event.value)), *_given(state=event.state)], False
        case ComponentMetric():
            facts = [StoryFact(name, json_text(value)) for name, value in event.values.items()]
            return event.component, facts + _given(label=event.label, speech=event.speech_id, state=event.state), False
        case Retrieval():
            chunks = [StoryFact(f"chunk {place}", cut(chunk)) for place, chunk in enumerate(event.chunks, 1)]
            return event.query or "", chunks, False


def _why(scored: Observation | ReducedScore) -> str:
    words = reason_text(scored.reason)
    return f"{words}: {scored.detail}" if scored.detail else words


def _evidence(observation: Observation) -> Iterator[StoryFact]:
    if observation.denominator is not None and observation.numerator is not None and observation.denominator != 1:
        yield StoryFact("counted", f"{observation.numerator:g} of {observation.denominator:g}")
    for name, value in (observation.details or {}).items():
        yield StoryFact(reason_text(name), value if isinstance(value, str) else json_text(value))


def _result(result: ToolResult, outcome: ToolOutcome) -> tuple[list[StoryFact], bool]:
    facts: list[StoryFact] = []
    if result.result is not None or not result.error:
        facts.append(StoryFact("result", json_text(result.result)))
    if result.error:
        facts.append(StoryFact("error", cut(result.error)))
    if result.success is not None or not result.error:
        facts.append(StoryFact("success", _success(result, outcome)))
    return facts, outcome.failed


def _success(result: ToolResult, outcome: ToolOutcome) -> str:
    """What the log states, or what is read from the result, and by what sign."""
    if outcome.worked is None:
        return f"not stated: {reason_text(outcome.reason)}"
    word = "no" if outcome.failed else "yes, inferred" if outcome.basis == INFERRED else "yes"
    return word if result.success is outcome.worked and not result.extras else f"{word} ({cut(outcome.sign)})"


def _about(conversation: Conversation) -> Iterator[StoryFact]:
    source, outcome, agent = conversation.source, conversation.outcome, conversation.agent
    place = f", record {source.record}" if source.record else ""
    if source.files:
        yield StoryFact("read from", ", ".join(source.files) + place)
    if conversation.pipeline:
        yield StoryFact("pipeline", conversation.pipeline)
    if agent.name:
        yield StoryFact("agent", f"{agent.name}, {agent.role}" if agent.role else agent.name)
    if agent.models:
        yield StoryFact("models", ", ".join(f"{part}: {model}" for part, model in agent.models.items()))
    for name, value in (("completed", outcome.completed), ("finished", outcome.finished)):
        if value is not None:
            yield StoryFact(name, "yes" if value else "no")
    yield from _given(ended=outcome.ended_reason, status=outcome.final_status)
    if outcome.duration is not None:
        yield StoryFact("duration", value_text(outcome.duration, "s"))
    if conversation.expected.ground_truth is not None:
        yield StoryFact("expected answer", cut(conversation.expected.ground_truth))


def _context(conversation: Conversation) -> Iterator[StoryFact]:
    """Long things, each only where it is there."""
    agent, scenario, expected = conversation.agent, conversation.scenario, conversation.expected
    if agent.instructions:
        yield StoryFact("instructions", cut(agent.instructions))
    parts: list[tuple[str, Any]] = [
        ("tools", agent.tools),
        ("scenario", scenario),
        ("expected format", expected.format),
        ("expected tool calls", expected.tool_calls),
        ("items", conversation.items),
        ("dialogue states", conversation.frames),
        ("annotations", conversation.annotations),
        ("labels", conversation.labels),
        ("recording", conversation.recording),
        ("clocks", conversation.clocks),
        ("also in the log of the agent", agent.extras),
        ("also in the log of what is expected", expected.extras),
        ("also in the log of the outcome", conversation.outcome.extras),
        ("also in the log", conversation.extras),
    ]
    for name, value in parts:
        if value:
            yield StoryFact(name, json_text(msgspec.to_builtins(value)))


def _given(**facts: str) -> list[StoryFact]:
    return [StoryFact(name, text) for name, text in facts.items() if text]


def json_text(value: Any) -> str:
    """A JSON value for a person: on one line where it is short."""
    encoded = msgspec.json.encode(value)
    return cut((encoded if len(encoded) <= 100 else msgspec.json.format(encoded, indent=2)).decode())


def cut(text: str) -> str:
    """At most MAX_TEXT letters, and what is missing in words."""
    more = len(text) - MAX_TEXT
    return text if more <= 0 else f"{text[:MAX_TEXT]}\n… {more:,} more characters; `convoscope show --json` has them"


def note_text(note: Note) -> str:
    """What reading did, in words, and in which place of the log."""
    kind = "unknown name" if note.kind == "unknown" else note.kind.replace("_", " ")
    text = f"{kind}: {reason_text(note.code) if note.kind != 'unknown' else note.code}"
    if note.detail:
        text += f", {note.detail}"
    if note.file:
        text += f" ({note.file}:{note.line})" if note.line else f" ({note.file})"
    return text
