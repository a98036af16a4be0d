"""Events of turn-taking, from who speaks in which tick: the definitions published with τ-voice, version 1.0.

Everything is counted in whole ticks. Sections are those of the specification of the panel.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

INTERRUPTION_WINDOW = 2.0
"""Seconds in which an agent may yield to an interruption."""
SELECTIVE_WINDOW = 1.0
"""Seconds in which stopping for a backchannel, a tic or a word to another person is a mistake."""
REPLY_WINDOW = 2.0
"""Seconds in which starting after a tic or a word to another person is a mistake."""

InsertKind = Literal["vocal_tic", "non_directed"]
VOCAL_TIC: InsertKind = "vocal_tic"
NON_DIRECTED: InsertKind = "non_directed"

Where = Literal["over_agent", "in_silence", "out_of_turn"]


class SpeechSpan(NamedTuple):
    """The ticks from `start` to before `end`; `source` is the event that they were read from."""

    start: int
    end: int
    source: int = -1

    def until(self, end: int) -> SpeechSpan:
        return self._replace(end=min(self.end, end))

    def meets(self, other: SpeechSpan) -> bool:
        """Whether the two share a tick."""
        return self.start < other.end and other.start < self.end


class Insert(NamedTuple):
    """A sound of the user that is not meant for the agent, laid on the ticks of its span."""

    span: SpeechSpan
    kind: InsertKind
    text: str = ""


class Effect(NamedTuple):
    """An insert outside the user's speech, as long as it shows without a break."""

    kind: InsertKind
    span: SpeechSpan


class Ticks(NamedTuple):
    """Who speaks when, in a recording of `length` ticks of `seconds` each."""

    length: int
    seconds: float
    user: Sequence[SpeechSpan] = ()
    agent: Sequence[SpeechSpan] = ()
    inserts: Sequence[Insert] = ()
    backchannels: frozenset[int] = frozenset()
    """Sources of the user's spans that begin as a backchannel."""


class InteractionEvent(NamedTuple):
    """One thing that the agent could do well: what it is about, whether it did, and after how many ticks."""

    span: SpeechSpan
    good: bool
    wait: int | None = None
    where: Where | None = None


class Events(NamedTuple):
    """Everything that the panel counts in one recording."""

    length: int
    """Ticks, without the closing one."""
    user: tuple[SpeechSpan, ...]
    agent: tuple[SpeechSpan, ...]
    effects: tuple[Effect, ...]
    """Inserts out of turn, those that gave no event among them."""
    responses: tuple[InteractionEvent, ...]
    yields: tuple[InteractionEvent, ...]
    backchannels: tuple[InteractionEvent, ...]
    vocal_tics: tuple[InteractionEvent, ...]
    non_directed: tuple[InteractionEvent, ...]
    interruptions: tuple[SpeechSpan, ...]
    """The agent's segments that start over the user's speech."""


def events_of(ticks: Ticks) -> Events:
    """What happened between the two, by the published rules."""
    scene = _Scene(ticks)
    selective = tuple(scene.over_agent()) + tuple(scene.inserts_in_silence()) + tuple(scene.out_of_turn())
    by_kind: dict[str, list[InteractionEvent]] = {
        "interruption": [],
        "backchannel": [],
        VOCAL_TIC: [],
        NON_DIRECTED: [],
    }
    for kind, event in sorted(selective, key=lambda pair: pair[1].span):
        by_kind[kind].append(event)
    return Events(
        length=scene.length,
        user=scene.user,
        agent=scene.agent,
        effects=scene.effects,
        responses=tuple(scene.responses()),
        yields=tuple(by_kind["interruption"]),
        backchannels=tuple(by_kind["backchannel"]),
        vocal_tics=tuple(by_kind[VOCAL_TIC]),
        non_directed=tuple(by_kind[NON_DIRECTED]),
        interruptions=tuple(span for span in scene.agent if _at(scene.user, span.start)),
    )


class _Scene:
    """The recording without its closing tick, cut into segments."""

    def __init__(self, ticks: Ticks) -> None:
        user, length = joined(ticks.user), ticks.length
        # Section 3: the stop signal of the user simulator is one tick of speech at the very end.
        if length >= 2 and user and user[-1][:2] == (length - 1, length):
            user, length = user[:-1], length - 1
        self.length, self.seconds = length, ticks.seconds
        self.user = user
        self.agent = joined(span.until(length) for span in ticks.agent)
        self.inserts = [one._replace(span=one.span.until(length)) for one in ticks.inserts]
        self.backchannels = ticks.backchannels
        self.agent_starts = [span.start for span in self.agent]
        self.effects = tuple(self._effects())

    def window(self, seconds: float) -> int:
        """Section 5: whole ticks, by a plain division of doubles."""
        return int(seconds / self.seconds)

    def is_backchannel(self, span: SpeechSpan) -> bool:
        return span.source in self.backchannels

    def carried(self, span: SpeechSpan) -> InsertKind | None:
        """What a user segment carries; a tic comes before a word to another person."""
        kinds = {one.kind for one in self.inserts if one.span.meets(span)}
        return VOCAL_TIC if VOCAL_TIC in kinds else NON_DIRECTED if kinds else None

    def agent_starts_within(self, first: int, last: int) -> bool:
        """Whether an agent segment starts in these ticks, both ends included."""
        return bisect_left(self.agent_starts, first) < bisect_right(self.agent_starts, last)

    def responses(self) -> Iterator[InteractionEvent]:
        """Section 6.1. The agent speaking in the first tick after the user leaves nothing to wait for."""
        eligible = [span for span in self.user if not self.is_backchannel(span) and not _at(self.agent, span.end)]
        for index, span in enumerate(eligible):
            next_turn = eligible[index + 1].start if index + 1 < len(eligible) else None
            reply = bisect_left(self.agent_starts, span.end)
            start = self.agent_starts[reply] if reply < len(self.agent_starts) else None
            if start is not None and (next_turn is None or start <= next_turn):
                yield InteractionEvent(span, True, start - span.end)
            elif next_turn is not None:
                yield InteractionEvent(span, False)

    def over_agent(self) -> Iterator[tuple[str, InteractionEvent]]:
        """Section 6.2: the user starts while the agent speaks. A stop at the very end of the window is outside it."""
        for span in self.user:
            speaking = _at(self.agent, span.start)
            if speaking is None:
                continue
            kind = "backchannel" if self.is_backchannel(span) else self.carried(span) or "interruption"
            seconds = INTERRUPTION_WINDOW if kind == "interruption" else SELECTIVE_WINDOW
            stopped = speaking.end < min(span.start + self.window(seconds), self.length)
            good = stopped if kind == "interruption" else not stopped
            yield kind, InteractionEvent(span, good, speaking.end - span.start if stopped else None, "over_agent")

    def inserts_in_silence(self) -> Iterator[tuple[str, InteractionEvent]]:
        """Section 6.3: the user starts in the agent's silence, with something not meant for it."""
        window = self.window(REPLY_WINDOW)
        for span in self.user:
            kind = self.carried(span)
            if kind is not None and _at(self.agent, span.start) is None:
                replied = self.agent_starts_within(span.start, span.end + window)
                yield kind, InteractionEvent(span, not replied, where="in_silence")

    def out_of_turn(self) -> Iterator[tuple[str, InteractionEvent]]:
        """Section 6.4. Talking on through an insert is no event, not a good one."""
        window = self.window(REPLY_WINDOW)
        for kind, span in self.effects:
            speaking = _at(self.agent, span.start)
            if speaking is None:
                replied = self.agent_starts_within(span.start, span.end + window)
                yield kind, InteractionEvent(span, not replied, where="out_of_turn")
            elif (speaking.end - span.start) * self.seconds <= SELECTIVE_WINDOW:
                yield kind, InteractionEvent(span, False, speaking.end - span.start, "out_of_turn")

    def _effects(self) -> Iterator[Effect]:
        """Section 4. The same insert twice in one tick is two effects."""
        shown: dict[tuple[InsertKind, str], list[SpeechSpan]] = {}
        for insert in self.inserts:
            shown.setdefault((insert.kind, insert.text), []).extend(_outside(insert.span, self.user))
        for (kind, _), spans in shown.items():
            for layer in layers(spans):
                yield from (Effect(kind, span) for span in layer)


def joined(spans: Iterable[SpeechSpan]) -> tuple[SpeechSpan, ...]:
    """Maximal runs of ticks: spans that overlap or touch become one, with the source of its first."""
    return next(layers(spans), ())


def layers(spans: Iterable[SpeechSpan]) -> Iterator[tuple[SpeechSpan, ...]]:
    """The runs in which at least one of the spans lies, then those in which at least two do, and so on."""
    left = sorted(span for span in spans if span.start < span.end)
    while left:
        runs: list[SpeechSpan] = []
        beneath: list[SpeechSpan] = []
        for span in left:
            if not runs or runs[-1].end < span.start:
                runs.append(span)
                continue
            if span.start < runs[-1].end:
                beneath.append(span.until(runs[-1].end))
            runs[-1] = runs[-1]._replace(end=max(runs[-1].end, span.end))
        yield tuple(runs)
        left = beneath


def _at(runs: Sequence[SpeechSpan], tick: int) -> SpeechSpan | None:
    """The run that holds a tick. Runs are in order and apart."""
    index = bisect_right(runs, tick, key=lambda span: span.start) - 1
    return runs[index] if index >= 0 and tick < runs[index].end else None


def _outside(span: SpeechSpan, runs: Sequence[SpeechSpan]) -> Iterator[SpeechSpan]:
    """What is left of a span without the ticks of the runs."""
    start = span.start
    for run in runs:
        if run.meets(span):
            if start < run.start:
                yield span._replace(start=start, end=run.start)
            start = run.end
    if start < span.end:
        yield span._replace(start=start)
