"""Turns joined of the component metrics of several parts, and what is observed of calls, turns and sessions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import fsum
from typing import Any, Literal, NamedTuple

from convoscope.conversation import ComponentMetric, Conversation
from convoscope.conversation.lazy import cached_on_argument
from convoscope.metrics.latency.samples import (
    END_OF_TURN,
    STT_DURATION,
    TRANSCRIPTION,
    TTFB,
    TTFT,
    TURN_COMPLETED,
    Field,
    LatencyReading,
    LatencySample,
    NotStated,
    Share,
    Stated,
    carried,
    is_true,
    read_time,
    samples,
    shares,
    stated,
)
from convoscope.scores.observation import (
    MEASURED,
    NOT_APPLICABLE,
    Observation,
    not_applicable,
    ratio,
    subject_of,
    unmeasured,
)
from convoscope.views.items import Case, Subject

By = Literal["speech_id", "label", "order"]

E2E = "e2e_latency"
OF_A_TURN = ("eou", "llm", "tts")
# Audit logs of calls write the latency of a model's call in addition to what frameworks report: the same call twice.
_CALL = Field("llm", ("duration", "processing"), drops_cancelled=True)
_TURN_KEY = re.compile(r"(?:turn|exchange)[\s_#-]*\d*", re.IGNORECASE)


class JoinedTurn(NamedTuple):
    """The component metrics of one turn, and what joined them."""

    subject: Subject
    by: By
    events: tuple[ComponentMetric, ...]


class TimedTurn(NamedTuple):
    """A turn's parts in seconds; `missing` are those without which nothing can be added up, each with its reason."""

    parts: dict[str, float]
    missing: dict[str, str] = {}

    @property
    def seconds(self) -> float:
        return fsum(self.parts.values())


class TurnsOfCase(NamedTuple):
    """A case, the turns whose first metric is its own, and the metrics that nothing joins to a turn."""

    share: Share
    turns: tuple[JoinedTurn, ...]
    loose: tuple[ComponentMetric, ...] = ()


@cached_on_argument
def joined(conversation: Conversation) -> list[TurnsOfCase]:
    """The turns of each case, joined by speech id, else by the turn's label, else by order (standard-data, 2.5).

    A speech id means the same speech in all items of a conversation; a label and the order are the item's.
    """
    all_shares = shares(conversation)
    groups: dict[_Key, list[ComponentMetric]] = {}
    owner: dict[_Key, int] = {}
    loose: list[tuple[ComponentMetric, ...]] = []
    for number, share in enumerate(all_shares):
        keyed = list(_keyed([event for event in share.metrics if concerns(event)], number))
        loose.append(tuple(event for key, event in keyed if key is None))
        for key, event in keyed:
            if key is not None:
                groups.setdefault(key, []).append(event)
                owner.setdefault(key, number)
    turns: list[list[JoinedTurn]] = [[] for _ in all_shares]
    for position, (key, events) in enumerate(groups.items()):
        turns[owner[key]].append(JoinedTurn(Subject("turn", key.name, position), key.by, tuple(events)))
    return [TurnsOfCase(*case) for case in zip(all_shares, map(tuple, turns), loose, strict=True)]


class _Key(NamedTuple):
    by: By
    name: str
    case: int = -1


def concerns(event: ComponentMetric) -> bool:
    """Whether a metric is a part of a turn."""
    return event.component in OF_A_TURN or carried(event, (E2E,)) is not None


def _keyed(events: Sequence[ComponentMetric], case: int) -> Iterator[tuple[_Key | None, ComponentMetric]]:
    """Each event with the key of its turn, in order; with None where nothing joins it to any."""
    labels = _turn_labels(events)
    speech = _speech_of_labels(events, labels)
    unkeyed = [event for event in events if not event.speech_id and event.label not in labels]
    # The order says nothing of an event that is marked as unordered and reports no wait by itself.
    ordered = [one for one in unkeyed if not is_true(one.values.get("unordered")) or carried(one, (E2E,)) is not None]
    turn_of = _turns_by_order(ordered)
    for event in events:
        if event.speech_id:
            yield _Key("speech_id", event.speech_id), event
        elif event.label in labels:
            spoken = speech.get(event.label)
            yield _Key("speech_id", spoken) if spoken else _Key("label", event.label, case), event
        elif event.seq in turn_of:
            yield _Key("order", f"#{turn_of[event.seq]}", case), event
        else:
            yield None, event


def _turn_labels(events: Sequence[ComponentMetric]) -> set[str]:
    """The labels that name a turn. Frameworks write the name of a plugin or a model there, which names none.

    A turn's label looks like `turn_3`, or is next to the plugin's own (`source_label`). A turn of the
    user ends once: a label under which that is reported twice names no turn.
    """
    labels: set[str] = set()
    ended: set[tuple[str, str]] = set()
    twice: set[str] = set()
    for event in events:
        if not event.label:
            continue
        if "source_label" in event.values or _TURN_KEY.fullmatch(event.label.strip()):
            labels.add(event.label)
        for name in () if event.speech_id else _brings(event) & _ONCE:
            if (event.label, name) in ended:
                twice.add(event.label)
            ended.add((event.label, name))
    return labels - twice


def _speech_of_labels(events: Sequence[ComponentMetric], labels: set[str]) -> dict[str, str]:
    """The one speech that a label's other metrics belong to, where there is just one."""
    spoken: dict[str, set[str]] = {}
    for event in events:
        if event.speech_id and event.label in labels:
            spoken.setdefault(event.label, set()).add(event.speech_id)
    return {label: next(iter(ids)) for label, ids in spoken.items() if len(ids) == 1}


def _turns_by_order(events: Sequence[ComponentMetric]) -> dict[int, int]:
    """The turn of each event by order, counted from 1.

    A turn begins where the user's turn ends: at an `eou` metric after a reply, or one that says a thing
    again. Without an `eou` metric, it begins where the model is asked again after speech.
    """
    has_eou = any(event.component == "eou" for event in events)
    has: set[str] = set()
    turns: dict[int, int] = {}
    turn = 1
    for event in events:
        brings = _brings(event)
        if event.component == "eou":
            begins = any(one.startswith(("llm", "tts")) for one in has) or bool(has & brings)
        elif event.component == "llm" and not has_eou:
            begins = "tts.ttfb" in has and "llm.ttft" in brings
        else:
            begins = E2E in has & brings
        if begins:
            turn, has = turn + 1, set()
        has |= brings
        turns[event.seq] = turn
    return turns


_ONCE = frozenset((E2E, "eou.end_of_utterance_delay", "eou.on_user_turn_completed_delay"))
"""What one turn reports once."""


_REPORTS: dict[str, list[tuple[str, Field]]] = {}
"""What the metrics of a component may report of a turn, by name."""
for _field in (TTFT, _CALL, TTFB, END_OF_TURN, TURN_COMPLETED):
    _REPORTS.setdefault(_field.component, []).append((f"{_field.component}.{_field.names[0]}", _field))


def _brings(event: ComponentMetric) -> set[str]:
    fields = _REPORTS.get(event.component, ())
    brings = {name for name, field in fields if carried(event, field.names) is not None}
    if event.values.get(E2E) is not None:
        brings.add(E2E)
    return brings


def assistant(turn: JoinedTurn) -> TimedTurn:
    """All calls of the model but the last in full, the first token of the last, the first byte of speech."""
    calls = _calls(turn.events)
    readings = {f"llm_duration_{number}": call.duration for number, call in enumerate(calls[:-1], start=1)}
    readings["llm_ttft"] = calls[-1].ttft if calls else _first(TTFT, turn.events)
    readings["tts_ttfb"] = _first(TTFB, turn.events)
    return _timed(readings)


def end_to_end(turn: JoinedTurn) -> TimedTurn:
    """As some part measured it, else the end of the user's turn and the assistant's part added up."""
    for event in turn.events:
        stated = read_time(event.values.get(E2E))
        if stated.seconds is not None:
            return TimedTurn({E2E: stated.seconds})
    # The transcription's delay is not added: it runs while the end of the turn is awaited.
    fields = {"end_of_utterance_delay": END_OF_TURN, "on_user_turn_completed_delay": TURN_COMPLETED}
    asked = _timed({name: _first(field, turn.events) for name, field in fields.items()})
    reply = assistant(turn)
    return TimedTurn(asked.parts | reply.parts, asked.missing | reply.missing)


def _timed(readings: Mapping[str, LatencyReading | None]) -> TimedTurn:
    known = {name: reading for name, reading in readings.items() if reading is not None}
    parts = {name: reading.seconds for name, reading in known.items() if reading.seconds is not None}
    missing = {name: known[name].reason if name in known else "" for name in readings if name not in parts}
    return TimedTurn(parts, missing)


class _Call(NamedTuple):
    """One call of the language model. Some frameworks report its first token and its duration apart."""

    ttft: LatencyReading | None
    duration: LatencyReading | None


def _calls(events: Sequence[ComponentMetric]) -> list[_Call]:
    """The calls that were not cancelled, in order; a metric that only adds what the last call lacks is of that call."""
    calls: list[_Call] = []
    for event in events:
        if is_true(event.values.get("cancelled")):
            continue
        ttft, duration = TTFT.reading(event), _CALL.reading(event)
        if ttft is None and duration is None:
            continue
        last = calls[-1] if calls else None
        if last is None or (ttft and last.ttft) or (duration and last.duration):
            calls.append(_Call(ttft, duration))
        else:
            calls[-1] = _Call(last.ttft or ttft, last.duration or duration)
    return calls


def _first(field: Field, events: Sequence[ComponentMetric]) -> LatencyReading | None:
    """The first time that was given, else the first reason why it is missing."""
    readings = [reading for event in events if (reading := field.reading(event)) is not None]
    return next((one for one in readings if one.seconds is not None), readings[0] if readings else None)


REPEATED = "repeated_metric"
"""An item repeats a component metric of an item before it."""
FAILURES = ("no_token", "no_audio")
"""What a call that failed says instead of a time. Seconds have no worst value: rates of their own count it."""
STOPPED_CLOCK = "clock_without_resolution"
"""Every time is exactly 0: what was to be measured was not."""

Measure = Callable[[Sequence[ComponentMetric]], list[Observation]]


def read_field(field: Field) -> Measure:
    """One observation for each component metric that reports the field."""
    return lambda events: [_of_sample(sample) for sample in samples(field, events)]


def _of_sample(sample: LatencySample, **details: Any) -> Observation:
    reading = sample.reading
    if reading.seconds is not None:
        return _observed(sample.event, reading.seconds, details)
    explain = not_applicable if reading.status == NOT_APPLICABLE else unmeasured
    return explain(sample.event, reading.reason, reading.detail)


def _observed(
    event: ComponentMetric, seconds: float, details: Mapping[str, Any], sound: float | None = None
) -> Observation:
    """A time, with the turn that it was in."""
    where = {"speech_id": event.speech_id, "label": event.label}
    evidence = {**{name: value for name, value in where.items() if value}, **details}
    return _of_time(subject_of(event), seconds, evidence, sound)


def _of_time(subject: Subject, seconds: float, details: Mapping[str, Any], sound: float | None) -> Observation:
    """A time, with the sound that was worked on where the map is of their ratio."""
    return Observation(
        subject=subject,
        status=MEASURED,
        value=seconds,
        numerator=seconds if sound else None,
        denominator=sound or None,
        details=details or None,
    )


def first_sound(events: Sequence[ComponentMetric]) -> list[Observation]:
    """To the first byte of speech, with the wait for a connection where the synthesiser reports it."""
    observations: list[Observation] = []
    for event, reading in samples(TTFB, events):
        acquired = event.values.get("acquire_time")
        connection = LatencyReading(0.0) if acquired is None else read_time(acquired)
        if reading.seconds is None or connection.seconds is None:
            observations.append(_of_sample(LatencySample(event, reading if reading.seconds is None else connection)))
        else:
            parts = {"ttfb": reading.seconds, "acquire_time": None if acquired is None else connection.seconds}
            observations.append(_observed(event, reading.seconds + connection.seconds, parts))
    return observations


def work(field: Field, sound: Field, *, skips_streamed: bool = False) -> Measure:
    """The time that work took, and the seconds of sound that it was about."""

    def observe(sample: LatencySample) -> Observation:
        event, reading = sample
        if skips_streamed and is_true(event.values.get("streamed")):
            return not_applicable(event, "streamed")
        if reading.seconds is None:
            return _of_sample(sample)
        duration = sound.reading(event)
        seconds = duration.seconds if duration is not None else None
        return _observed(event, reading.seconds, {"audio_duration": seconds}, seconds)

    return lambda events: [observe(sample) for sample in samples(field, events)]


def recognised(events: Sequence[ComponentMetric]) -> list[Observation]:
    """What recognising took; where the recogniser streams, how long after the end of speech its text came."""
    observations = [_of_sample(sample) for sample in samples(STT_DURATION, events)]
    if any(one.status == MEASURED for one in observations):
        return observations
    for sample in samples(TRANSCRIPTION, events):
        # Where no end of speech was detected, both delays are 0.
        undetected = END_OF_TURN.reading(sample.event)
        if sample.reading.seconds == 0 and undetected is not None and undetected.reason == "not_detected":
            observations.append(unmeasured(sample.event, "not_detected"))
        else:
            observations.append(_of_sample(sample, **{"from": "transcription_delay"}))
    return observations


def turn_observation(turn: JoinedTurn, timed: TimedTurn) -> Observation:
    if timed.missing:
        detail = ", ".join(f"{name} ({reason})" if reason else name for name, reason in timed.missing.items())
        reasons = set(timed.missing.values())
        if reasons == {"cancelled"}:
            return not_applicable(turn.subject, "cancelled", detail)
        failure = next((reason for reason in FAILURES if reason in reasons), "missing_part")
        return unmeasured(turn.subject, failure, detail)
    details = {"joined_by": turn.by, **timed.parts}
    return Observation(subject=turn.subject, status=MEASURED, value=timed.seconds, details=details)


def without_zeros(observations: list[Observation]) -> list[Observation]:
    """The same, but where all times are exactly 0, none is one: nothing takes no time at all."""
    values = [one.value for one in observations if one.status == MEASURED]
    if not values or any(values):
        return observations
    return [unmeasured(one.subject, STOPPED_CLOCK) if one.status == MEASURED else one for one in observations]


def no_time_rate(field: Field, events: Sequence[ComponentMetric]) -> list[Observation]:
    """1 for each call that reports a failure instead of a time, 0 for each that reports one."""
    return [
        ratio(sample.event, sample.reading.reason in FAILURES, 1, empty="no_calls")
        if sample.reading.seconds is not None or sample.reading.reason in FAILURES
        else _of_sample(sample)
        for sample in samples(field, events)
    ]


def left_out(case: TurnsOfCase) -> Iterator[Observation]:
    """Metrics of turns that are in none: nothing joins them, or an item before reported them."""
    if case.loose:
        counts = Counter(event.component for event in case.loose)
        listed = ", ".join(f"{component} {counts[component]}" for component in OF_A_TURN if counts[component])
        yield unmeasured(case.share.case.subject, "cannot_join", listed)
    repeated = sum(concerns(event) for event in case.share.repeated)
    if repeated:
        yield not_applicable(case.share.case.subject, REPEATED, f"{repeated} component metrics")


def or_session(
    name: str, share: Share, observations: list[Observation], components: tuple[str, ...], field: str = ""
) -> Iterator[Observation]:
    """What the parts reported, and where that gives no value, what the session states."""
    yield from observations
    if any(one.status == MEASURED or one.reason == REPEATED for one in observations):
        return
    case = share.case
    statement = stated(case.extras.get("latency"), name)
    if isinstance(statement, Stated):
        yield _of_session(case, name, statement)
    elif not observations and isinstance(statement, NotStated):
        yield unmeasured(case.subject, statement.reason, statement.detail)
    elif not observations:
        yield nothing_reported(share, components, field)


def nothing_reported(share: Share, components: tuple[str, ...], field: str) -> Observation:
    """Why the parts report nothing: there are no metrics, none of the component, or none that has the field."""
    subject = share.case.subject
    events = (*share.metrics, *share.repeated)
    reporting = dict.fromkeys([event.component for event in events if event.component not in _SPANS])
    if not reporting:
        return unmeasured(subject, "no_metrics_collected", "metrics_collected")
    for component in components:
        if component not in reporting:
            return unmeasured(subject, f"no_{component}_metrics", f"there are metrics of {', '.join(reporting)}")
    return unmeasured(subject, f"no_{field}")


def _of_session(case: Case, name: str, statement: Stated) -> Observation:
    details = {"from": "session", "key": statement.key, "statistic": statement.statistic, "unit": statement.unit}
    sound: float | None = None
    if name in _SOUND_OF:
        duration = stated(case.extras.get("latency"), _SOUND_OF[name])
        if isinstance(duration, Stated) and duration.statistic == statement.statistic and duration.seconds > 0:
            sound = duration.seconds
    return _of_time(case.subject, statement.seconds, details, sound)


_SPANS = ("stt_span", "tts_span")
_SOUND_OF = {"tts_duration": "tts_audio_duration", "stt_processing_duration": "stt_audio_duration"}
