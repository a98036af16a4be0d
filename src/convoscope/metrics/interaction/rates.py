"""Metrics of turn-taking in full-duplex speech: who answers, who yields, who is not put off by a cough.

The figures are those published with τ-voice, version 1.0, under their names. What happened is found
once per conversation, by `interaction_events`; a metric only says which of it counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from math import fsum
from statistics import fmean
from typing import NamedTuple

from convoscope.conversation import ASSISTANT, USER, Clock, Conversation, Marker, Utterance
from convoscope.conversation.lazy import cached_on_argument
from convoscope.metrics.declaration import (
    CONVERSATION,
    COUNT,
    EVENT,
    HIGHER,
    LOWER,
    NEITHER,
    RATIO,
    SECONDS,
    SHARE,
    GroupSample,
    Metric,
    derived,
    metric,
)
from convoscope.metrics.interaction.events import (
    NON_DIRECTED,
    VOCAL_TIC,
    Events,
    Insert,
    InsertKind,
    InteractionEvent,
    SpeechSpan,
    Ticks,
    events_of,
)
from convoscope.metrics.needs import Need
from convoscope.metrics.perturbations import EMPTY_AGENT, EQUAL_TIMES, SKEWED_CLOCKS
from convoscope.scores.observation import Observation, measured, not_applicable, ratio, unmeasured
from convoscope.scores.reducers import MEAN, MEAN_OF_SUBJECTS, RATIO_OF_SUMS, SUM_OF_CONVERSATIONS, Reduce
from convoscope.scores.reducers import RATIO as RATIO_WITHIN
from convoscope.views.items import Subject

SPEECH_INSERT = "speech_insert"
"""The marker of a sound that the user does not mean for the agent; its value has `type` and `text`."""
RECORDING_ENDED = "recording_ended"
"""The marker at the end of a recording that says for every tick who speaks. Other logs cut speech up as they please."""

FINEST = 1e-6
"""The shortest tick, in seconds: times are kept to the microsecond."""


class Panel(NamedTuple):
    """The events of one conversation, and the seconds of a tick."""

    events: Events
    tick: float


@cached_on_argument
def panel(conversation: Conversation) -> Panel | None:
    """The events; None where the log has no ticks."""
    clock = next((one for one in conversation.clocks if one.kind == "audio" and (one.resolution or 0) >= FINEST), None)
    if clock is None:
        return None
    try:
        ticks = _TickReader(conversation, clock).ticks()
    except (OverflowError, ValueError):  # times that are no number of ticks
        return None
    return None if ticks is None else Panel(events_of(ticks), ticks.seconds)


class _TickReader:
    """Goes through a conversation and notes in whole ticks who makes which sound."""

    def __init__(self, conversation: Conversation, clock: Clock) -> None:
        self.conversation, self.clock, self.tick = conversation, clock.id, clock.resolution or 0.0
        self.spans: dict[str, list[SpeechSpan]] = {USER: [], ASSISTANT: []}
        self.inserts: list[Insert] = []
        self.backchannels: set[int] = set()
        self.length = 0

    def ticks(self) -> Ticks | None:
        """None without an end, or where words have no sound on the clock: then it is unknown who spoke when."""
        for event in self.conversation.timeline:
            if type(event) is Utterance:
                if not self._add_utterance(event):
                    return None
            elif type(event) is Marker and event.time is not None and event.time.clock == self.clock:
                self._note(event, self._at(event.time.at), event.time.until)
        if not self.length:
            return None
        return Ticks(
            length=self.length,
            seconds=self.tick,
            user=[span.until(self.length) for span in self.spans[USER]],
            agent=self.spans[ASSISTANT],
            inserts=self.inserts,
            backchannels=frozenset(self.backchannels),
        )

    def _at(self, seconds: float) -> int:
        return max(0, round(seconds / self.tick))

    def _add_utterance(self, utterance: Utterance) -> bool:
        role = self.conversation.roles[utterance.speaker]
        if role not in self.spans:
            return True
        segments = [one for one in utterance.segments if one.clock == self.clock]
        spans = [SpeechSpan(self._at(one.start), self._at(one.end), utterance.seq) for one in segments]
        self.spans[role] += spans
        if role == USER:
            if utterance.manner == "backchannel":
                self.backchannels.add(utterance.seq)
            elif utterance.manner in (VOCAL_TIC, NON_DIRECTED):
                self.inserts += [Insert(span, kind_of(utterance.manner)) for span in spans]
        return bool(spans) or not (utterance.segments or self.conversation.text(utterance).strip())

    def _note(self, marker: Marker, at: int, until: float | None) -> None:
        if marker.name == RECORDING_ENDED:
            self.length = at
        elif marker.name == SPEECH_INSERT:
            end = max(at + 1, self._at(until) if until is not None else 0)
            value = marker.value if isinstance(marker.value, dict) else {}
            self.inserts.append(
                Insert(SpeechSpan(at, end, marker.seq), kind_of(value.get("type")), str(value.get("text")))
            )


def kind_of(type: object) -> InsertKind:
    """The class of an insert: a vocal tic, or else something that is said to another person."""
    return VOCAL_TIC if type == VOCAL_TIC else NON_DIRECTED


TICKS = Need(
    "no_ticks",
    "clocks.resolution, timeline.utterance.segments, timeline.marker recording_ended",
    "a full-duplex recording in ticks, such as a τ-voice experiment",
    lambda conversation: panel(conversation) is not None,
)


def _panel(conversation: Conversation) -> Panel:
    result = panel(conversation)
    if result is None:
        raise ValueError("the conversation has no ticks")
    return result


def _subjects(events: Sequence[InteractionEvent]) -> Iterator[tuple[Subject, InteractionEvent]]:
    """Each event with what it is about. A log may have two segments in one utterance: the second has a number."""
    seen: Counter[int] = Counter()
    for event in events:
        source = event.span.source
        seen[source] += 1
        id = str(source) if seen[source] == 1 else f"{source}.{seen[source]}"
        yield Subject("marker" if event.where == "out_of_turn" else "utterance", id, source), event


def _shares(
    conversation: Conversation, events: Sequence[InteractionEvent], tick: float, empty: str
) -> Iterator[Observation]:
    """1 for each event that went well, 0 for each that did not."""
    if not events:
        yield not_applicable(conversation, empty)
    for subject, event in _subjects(events):
        details: dict[str, object] = {} if event.where is None else {"where": event.where}
        if event.wait is not None:
            details["seconds"] = round(event.wait * tick, 6)
        yield ratio(subject, int(event.good), 1, empty=empty, details=details or None)


def _waits(
    conversation: Conversation, events: Sequence[InteractionEvent], tick: float, empty: str, missed: str
) -> Iterator[Observation]:
    """The seconds of each event that went well; `missed` is the reason of one that did not."""
    if not events:
        yield not_applicable(conversation, empty)
    for subject, event in _subjects(events):
        if event.good and event.wait is not None:
            yield measured(subject, event.wait * tick)
        else:
            yield unmeasured(subject, missed)


_alike = partial(metric, needs=(TICKS,), sensitive_to=())
LEAST_EVENTS = 10
"""A rate of fewer events is not shown on the published board (interaction, 8)."""

_latency = partial(_alike, observes=EVENT, unit=SECONDS, better=LOWER, reduce=Reduce(MEAN, MEAN_OF_SUBJECTS))
_rate = partial(_alike, observes=EVENT, unit=SHARE, better=HIGHER, reduce=Reduce(RATIO_WITHIN, RATIO_OF_SUMS))
_number = partial(_alike, observes=CONVERSATION, unit=COUNT, reduce=Reduce(MEAN, SUM_OF_CONVERSATIONS))
_total = partial(_number, better=NEITHER)


@_latency(
    "interaction.response_latency_mean",
    version=2,
    label="wait for a reply",
    importance=7,
    sensitive_to=(SKEWED_CLOCKS,),
    undefined_under=(EMPTY_AGENT, EQUAL_TIMES),
)
def response_latency_mean(conversation: Conversation) -> Iterator[Observation]:
    """How long does the user wait, after a turn that gets a reply, until the agent speaks?

    Per user turn that got a reply: from the first tick after the user's speech to the first tick of
    the agent's next segment. A turn without a reply has no wait. Turns are the user's segments that
    are no backchannel and after which the agent is silent for at least one tick.

    >>> call = example(
    ...     "0-1 user: Hi.", "2-4 assistant: Hi.", "5-6 user: So?", "9-10 assistant: Yes.", "20 marker: recording_ended"
    ... )
    >>> value(response_latency_mean, call)  # 1 s and 3 s
    2.0
    """
    events, tick = _panel(conversation)
    yield from _waits(conversation, events.responses, tick, "no_turn_to_answer", "no_response")


@_latency("interaction.yield_latency_mean", version=2, undefined_under=(EMPTY_AGENT, EQUAL_TIMES))
def yield_latency_mean(conversation: Conversation) -> Iterator[Observation]:
    """How long does the agent go on speaking after the user has interrupted it, where it yields?

    Per interruption that the agent yielded to: from the first tick of the user's segment to the
    first silent tick of the agent, less than 2 s. Why the agent stopped is not asked.

    >>> call = example(
    ...     "0-3 assistant: Let me read.", "2-4 user: Stop.", "8-9 assistant: Yes.", "20 marker: recording_ended"
    ... )
    >>> value(yield_latency_mean, call)  # from 2 s to 3 s
    1.0
    """
    events, tick = _panel(conversation)
    yield from _waits(conversation, events.yields, tick, "no_interruption", "no_yield")


@_rate(
    "interaction.response_rate",
    version=1,
    label="turns answered",
    importance=8,
    sensitive_to=(EMPTY_AGENT,),
    undefined_under=(EQUAL_TIMES,),
)
def response_rate(conversation: Conversation) -> Iterator[Observation]:
    """What share of the user's turns does the agent answer before the user speaks again?

    Per user turn: 1 where an agent segment starts after it and not after the next turn's start, 0
    where the next turn comes first. A last turn that nothing follows is no event.

    >>> call = example(
    ...     "0-1 user: Hi.", "2-4 assistant: Hi.", "5-6 user: So?", "9-10 assistant: Yes.", "20 marker: recording_ended"
    ... )
    >>> value(response_rate, call)
    1.0
    """
    events, tick = _panel(conversation)
    yield from _shares(conversation, events.responses, tick, "no_turn_to_answer")


@_rate(
    "interaction.yield_rate",
    version=1,
    label="agent yields when interrupted",
    importance=6,
    undefined_under=(EMPTY_AGENT, EQUAL_TIMES),
)
def yield_rate(conversation: Conversation) -> Iterator[Observation]:
    """What share of the user's interruptions does the agent yield to?

    Per user segment that starts while the agent speaks, and that is no backchannel and carries no
    insert: 1 where the agent falls silent in less than 2 s, else 0.

    >>> call = example(
    ...     "0-3 assistant: Let me read.", "2-4 user: Stop.", "8-9 assistant: Yes.", "20 marker: recording_ended"
    ... )
    >>> value(yield_rate, call)  # silent 1 s after the user begins
    1.0
    """
    events, tick = _panel(conversation)
    yield from _shares(conversation, events.yields, tick, "no_interruption")


@_rate("interaction.selectivity_backchannel", version=1, undefined_under=(EMPTY_AGENT, EQUAL_TIMES))
def selectivity_backchannel(conversation: Conversation) -> Iterator[Observation]:
    """What share of the user's backchannels does the agent rightly talk through?

    Per backchannel that starts while the agent speaks: 0 where the agent falls silent in less than
    1 s, else 1.

    >>> murmur = {"type": "utterance", "speaker": "user", "manner": "backchannel", "intended": {"text": "Mhm."}}
    >>> murmur["segments"] = [{"start": 2.5, "end": 3}]
    >>> call = example("0-1 user: Hi.", "2-4 assistant: Hi.", murmur, "20 marker: recording_ended")
    >>> value(selectivity_backchannel, call)  # the agent goes on for 1.5 s
    1.0
    """
    events, tick = _panel(conversation)
    yield from _shares(conversation, events.backchannels, tick, "no_backchannel")


@_rate("interaction.selectivity_vocal_tic", version=1, sensitive_to=(EMPTY_AGENT,), undefined_under=(EQUAL_TIMES,))
def selectivity_vocal_tic(conversation: Conversation) -> Iterator[Observation]:
    """What share of the user's coughs and other vocal tics does the agent rightly ignore?

    Per tic: 0 where the agent, speaking, stops within 1 s of it, or, silent, starts within 2 s of
    it; else 1. A tic outside the user's speech that the agent talks through is no event.

    >>> cough = {"type": "utterance", "speaker": "user", "manner": "vocal_tic", "intended": {"text": "Ahem."}}
    >>> cough["segments"] = [{"start": 6, "end": 6.5}]
    >>> call = example("0-1 user: Hi.", "2-4 assistant: Hi.", cough, "7-8 assistant: So?", "20 marker: recording_ended")
    >>> value(selectivity_vocal_tic, call)  # the agent, who was silent, speaks 0.5 s later
    0.0
    """
    events, tick = _panel(conversation)
    yield from _shares(conversation, events.vocal_tics, tick, "no_vocal_tic")


@_rate("interaction.selectivity_non_directed", version=1, sensitive_to=(EMPTY_AGENT,), undefined_under=(EQUAL_TIMES,))
def selectivity_non_directed(conversation: Conversation) -> Iterator[Observation]:
    """What share of the user's words to another person does the agent rightly ignore?

    Per phrase: 0 where the agent, speaking, stops within 1 s of it, or, silent, starts within 2 s of
    it; else 1. A phrase outside the user's speech that the agent talks through is no event.

    >>> aside = {"type": "utterance", "speaker": "user", "manner": "non_directed", "intended": {"text": "Not now."}}
    >>> aside["segments"] = [{"start": 6, "end": 6.5}]
    >>> call = example("0-1 user: Hi.", "2-4 assistant: Hi.", aside, "7-8 assistant: So?", "20 marker: recording_ended")
    >>> value(selectivity_non_directed, call)  # the agent, who was silent, speaks 0.5 s later
    0.0
    """
    events, tick = _panel(conversation)
    yield from _shares(conversation, events.non_directed, tick, "no_non_directed")


def _events_total(name: str, events: str, question: str, count: int) -> Metric:
    """How many events of a kind there are; `count` of them in the example."""

    def total(conversation: Conversation) -> Observation:
        return measured(conversation, len(getattr(_panel(conversation).events, events)))

    total.__doc__ = f"""{question}

    >>> call = example(
    ...     "0-3 assistant: Let me see.", "2-4 user: Stop.", "8-9 assistant: Yes.", "20 marker: recording_ended"
    ... )
    >>> value("interaction.{name}", call)
    {count:.1f}
    """
    return _total(f"interaction.{name}", version=1)(total)


response_total = _events_total(
    "response_total", "responses", "How many user turns were there that the agent answered or failed to answer?", 1
)
yield_total = _events_total("yield_total", "yields", "How many times did the user interrupt the agent?", 1)
backchannel_total = _events_total(
    "backchannel_total", "backchannels", "How many backchannels of the user put the agent to the test?", 0
)
vocal_tic_total = _events_total(
    "vocal_tic_total", "vocal_tics", "How many vocal tics of the user put the agent to the test?", 0
)
non_directed_total = _events_total(
    "non_directed_total", "non_directed", "How many words of the user to another person put the agent to the test?", 0
)


@_number("interaction.agent_interrupts_count", version=1, better=LOWER)
def agent_interrupts_count(conversation: Conversation) -> Observation:
    """How many times does the agent start to speak while the user speaks?

    Both may start in the same tick: that counts. Whether the user made a turn or a backchannel, and
    who then stopped, is not asked.

    >>> call = example(
    ...     "0-1 user: Hi.", "2-4 assistant: Hi.", "5-6 user: So?", "9-10 assistant: Yes.", "20 marker: recording_ended"
    ... )
    >>> value(agent_interrupts_count, call)
    0.0
    """
    return measured(conversation, len(_panel(conversation).events.interruptions))


@derived(
    "interaction.agent_interruption_rate",
    version=1,
    label="agent starts over the user",
    importance=6,
    over="group",
    unit=COUNT,
    better=LOWER,
    # The rate is null where there was no turn to answer; it is here to make this figure null, too.
    inputs=("interaction.agent_interrupts_count", "interaction.response_total", "interaction.response_rate"),
)
def agent_interruption_rate(
    interruptions: list[GroupSample], turns: list[GroupSample], answered: list[GroupSample]
) -> float:
    """How many times does the agent start over the user's speech, per user turn?

    All interruptions ÷ all turns of the group, so that a conversation with interruptions and no
    turn counts, too. It may exceed 1.

    >>> call = example(
    ...     "0-1 user: Hi.", "2-4 assistant: Hi.", "5-6 user: So?", "9-10 assistant: Yes.", "20 marker: recording_ended"
    ... )
    >>> value(agent_interruption_rate, call)  # 0 of 2 turns
    0.0
    """
    del answered
    return _sum(interruptions) / _sum(turns)


@derived(
    "interaction.selectivity",
    version=1,
    label="knows what is meant for it",
    importance=5,
    over="group",
    unit=RATIO,
    better=HIGHER,
    inputs=(
        "interaction.selectivity_backchannel",
        "interaction.selectivity_vocal_tic",
        "interaction.selectivity_non_directed",
        "interaction.backchannel_total",
        "interaction.vocal_tic_total",
        "interaction.non_directed_total",
    ),
    unscored="fewer_than_ten_events",
)
def selectivity(*given: list[GroupSample]) -> float | None:
    """How well does the agent distinguish what is meant for it from what is not?

    The plain mean of the three selectivities: backchannels, vocal tics, words to another person.
    Null unless all three have a value, each from ten events or more.

    >>> call = example(
    ...     "0-1 user: Hi.", "2-4 assistant: Hi.", "5-6 user: So?", "9-10 assistant: Yes.", "20 marker: recording_ended"
    ... )
    >>> value(selectivity, call)  # there are no events
    'fewer_than_ten_events'
    """
    shares, totals = given[:3], given[3:]
    if any(_sum(total) < LEAST_EVENTS for total in totals):
        return None
    return fmean(_pooled(share, total) for share, total in zip(shares, totals, strict=True))


def _pooled(shares: list[GroupSample], totals: list[GroupSample]) -> float:
    """The share over all events, from that of each conversation and its number of events."""
    right = [
        round(share.value * total.value)
        for share, total in zip(shares, totals, strict=True)
        if share.value is not None and total.value is not None
    ]
    return sum(right) / _sum(totals)


def _sum(samples: list[GroupSample]) -> float:
    return fsum(sample.value for sample in samples if sample.value is not None)
