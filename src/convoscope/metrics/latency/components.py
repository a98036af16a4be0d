"""Thirteen latencies of a voice stack: from what its parts report of themselves, else from what the session states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import fsum
from typing import Any, NamedTuple

from convoscope.conversation import ComponentMetric, Conversation
from convoscope.metrics.declaration import EVENT, LOWER, NEITHER, SECONDS, TURN, Metric, TenPoints, metric
from convoscope.metrics.item_fields import needs_of
from convoscope.metrics.latency.samples import (
    END_OF_TURN,
    LLM_DURATION,
    STT_AUDIO,
    STT_DURATION,
    TRANSCRIPTION,
    TTFB,
    TTFT,
    TTS_AUDIO,
    TTS_DURATION,
    TURN_COMPLETED,
    Field,
    LatencyReading,
    LatencySample,
    Share,
    is_true,
    read_time,
    samples,
    shares,
)
from convoscope.metrics.latency.session import NotStated, Stated, stated
from convoscope.metrics.latency.turns import (
    OF_A_TURN,
    JoinedTurn,
    TimedTurn,
    TurnsOfCase,
    assistant,
    concerns,
    end_to_end,
    joined,
)
from convoscope.scores.observation import (
    MEASURED,
    NOT_APPLICABLE,
    Observation,
    not_applicable,
    subject_of,
    unmeasured,
)
from convoscope.scores.reducers import (
    MAXIMUM_OF_SUBJECTS,
    MEAN,
    MEAN_OF_CONVERSATIONS,
    MEAN_OF_SUBJECTS,
    SUM,
    Reduce,
    percentile,
)
from convoscope.views.items import Case

REAL_TIME = TenPoints(zero=1.5, ten=0.5, of="ratio")
"""Of the real-time factor: seconds of work ÷ seconds of sound. Faster than the sound is played is good enough."""
INFORMATIONAL = TenPoints(zero=0.0, ten=1e-9)
"""10 where there was any sound at all, else 0."""
_SPREAD = {"p50": percentile(50), "p95": percentile(95), "max": MAXIMUM_OF_SUBJECTS}

REPEATED = "repeated_metric"
"""An item tells a component metric that an item before it has told."""

Measure = Callable[[Sequence[ComponentMetric]], list[Observation]]


class LatencySummary(NamedTuple):
    """The samples of one conversation in five numbers, in seconds."""

    n: int
    mean: float
    p50: float
    p95: float
    max: float


def latency_summary(conversation: Conversation, name: str) -> LatencySummary | None:
    """What one of the thirteen (`e2e_latency`, also with its family) measured in a conversation; None for nothing."""
    from numpy import percentile as at

    declared = LATENCIES[name.removeprefix("latency.")]
    values = [one.value for one in declared(conversation) if one.value is not None]
    if not values:
        return None
    mean = fsum(values) / len(values)
    return LatencySummary(len(values), mean, float(at(values, 50)), float(at(values, 95)), max(values))


def _of_field(field: Field) -> Measure:
    """One observation for each component metric that speaks of a time."""
    return lambda events: [_told(sample) for sample in samples(field, events)]


def _told(sample: LatencySample, **details: Any) -> Observation:
    reading = sample.reading
    if reading.seconds is not None:
        return _observed(sample.event, reading.seconds, details)
    explain = not_applicable if reading.status == NOT_APPLICABLE else unmeasured
    return explain(sample.event, reading.reason, reading.detail)


def _observed(
    event: ComponentMetric,
    seconds: float,
    details: Mapping[str, Any],
    sound: float | None = None,
) -> Observation:
    """A time, with the turn that it was in, and the sound that was worked on where the map is of their ratio."""
    where = {"speech_id": event.speech_id, "label": event.label}
    told = {**{name: value for name, value in where.items() if value}, **details}
    return Observation(
        subject=subject_of(event),
        status=MEASURED,
        value=seconds,
        numerator=seconds if sound else None,
        denominator=sound or None,
        details=told or None,
    )


def _first_sound(events: Sequence[ComponentMetric]) -> list[Observation]:
    """To the first byte of speech, with the wait for a connection where the synthesiser reports it."""
    found: list[Observation] = []
    for event, reading in samples(TTFB, events):
        acquired = event.values.get("acquire_time")
        waited = LatencyReading(0.0) if acquired is None else read_time(acquired)
        if reading.seconds is None or waited.seconds is None:
            found.append(_told(LatencySample(event, reading if reading.seconds is None else waited)))
        else:
            parts = {"ttfb": reading.seconds, "acquire_time": None if acquired is None else waited.seconds}
            found.append(_observed(event, reading.seconds + waited.seconds, parts))
    return found


def _work(field: Field, sound: Field, *, skips_streamed: bool = False) -> Measure:
    """The time that work took, beside the seconds of sound that it was about."""

    def measure(events: Sequence[ComponentMetric]) -> list[Observation]:
        found: list[Observation] = []
        for sample in samples(field, events):
            event, reading = sample
            if skips_streamed and is_true(event.values.get("streamed")):
                found.append(not_applicable(event, "streamed"))
            elif reading.seconds is None:
                found.append(_told(sample))
            else:
                heard = sound.reading(event)
                seconds = heard.seconds if heard is not None else None
                found.append(_observed(event, reading.seconds, {"audio_duration": seconds}, seconds))
        return found

    return measure


def _recognised(events: Sequence[ComponentMetric]) -> list[Observation]:
    """What recognising took; where the recogniser streams, how long after the end of speech its text came."""
    found = [_told(sample) for sample in samples(STT_DURATION, events)]
    if any(one.status == MEASURED for one in found):
        return found
    for sample in samples(TRANSCRIPTION, events):
        # Where no end of speech was detected, both delays are 0.
        undetected = END_OF_TURN.reading(sample.event)
        if sample.reading.seconds == 0 and undetected is not None and undetected.reason == "not_detected":
            found.append(not_applicable(sample.event, "not_detected"))
        else:
            found.append(_told(sample, **{"from": "transcription_delay"}))
    return found


def _turn(turn: JoinedTurn, timed: TimedTurn) -> Observation:
    if timed.missing:
        return not_applicable(turn.subject, "missing_part", ", ".join(timed.missing))
    details = {"joined_by": turn.by, **timed.parts}
    return Observation(subject=turn.subject, status=MEASURED, value=timed.seconds, details=details)


def _by_events(
    name: str, measure: Measure, field: str, component: str
) -> Callable[[Conversation], Iterator[Observation]]:
    """Told by the metrics of a component, in this field."""

    def latency(conversation: Conversation) -> Iterator[Observation]:
        for share in shares(conversation):
            again = [not_applicable(one.subject, REPEATED) for one in measure(share.repeated)] if share.repeated else ()
            yield from _or_session(name, share, [*measure(share.metrics), *again], (component,), field)

    return latency


def _by_turns(
    name: str, measure: Callable[[JoinedTurn], TimedTurn], *components: str
) -> Callable[[Conversation], Iterator[Observation]]:
    """Told by turns, of which the metrics of several components are parts."""

    def latency(conversation: Conversation) -> Iterator[Observation]:
        for case in joined(conversation):
            found = [_turn(turn, measure(turn)) for turn in case.turns]
            yield from _or_session(name, case.share, [*found, *_left_out(case)], components)

    return latency


def _left_out(case: TurnsOfCase) -> Iterator[Observation]:
    """Metrics of turns that are in none: nothing joins them, or an item before has told them."""
    if case.loose:
        counts = Counter(event.component for event in case.loose)
        told = ", ".join(f"{component} {counts[component]}" for component in OF_A_TURN if counts[component])
        yield unmeasured(case.share.case.subject, "cannot_join", told)
    repeated = sum(concerns(event) for event in case.share.repeated)
    if repeated:
        yield not_applicable(case.share.case.subject, REPEATED, f"{repeated} component metrics")


def _or_session(
    name: str, share: Share, found: list[Observation], components: tuple[str, ...], field: str = ""
) -> Iterator[Observation]:
    """What the parts reported, and where that gives no value, what the session states."""
    yield from found
    if any(one.status == MEASURED or one.reason == REPEATED for one in found):
        return
    case = share.case
    told = stated(case.extras.get("latency"), name)
    if isinstance(told, Stated):
        yield _of_session(case, name, told)
    elif not found and isinstance(told, NotStated):
        yield unmeasured(case.subject, told.reason, told.detail)
    elif not found:
        yield _silent(share, components, field)


def _silent(share: Share, components: tuple[str, ...], field: str) -> Observation:
    """Why the parts say nothing: there are no metrics, none of the component, or none that tells its field."""
    subject = share.case.subject
    every = (*share.metrics, *share.repeated)
    there = dict.fromkeys([one.component for one in every if one.component not in _SPANS])
    if not there:
        return unmeasured(subject, "no_metrics_collected", "metrics_collected")
    for component in components:
        if component not in there:
            return unmeasured(subject, f"no_{component}_metrics", f"there are metrics of {', '.join(there)}")
    return unmeasured(subject, f"no_{field}")


def _of_session(case: Case, name: str, told: Stated) -> Observation:
    details = {"from": "session", "key": told.key, "statistic": told.statistic, "unit": told.unit}
    sound: float | None = None
    if name in _SOUND_OF:
        heard = stated(case.extras.get("latency"), _SOUND_OF[name])
        if isinstance(heard, Stated) and heard.statistic == told.statistic and heard.seconds > 0:
            sound = heard.seconds
    return Observation(
        subject=case.subject,
        status=MEASURED,
        value=told.seconds,
        numerator=None if sound is None else told.seconds,
        denominator=sound,
        details=details,
    )


_SPANS = ("stt_span", "tts_span")
_SOUND_OF = {"tts_duration": "tts_audio_duration", "stt_processing_duration": "stt_audio_duration"}


def _declared(
    name: str,
    told: str,
    measure: Callable[[Conversation], Iterator[Observation]],
    ten: TenPoints,
    *,
    of_turns: bool = False,
    summed: bool = False,
) -> Metric:
    measure.__doc__ = told
    return metric(
        f"latency.{name}",
        version=1,
        observes=TURN if of_turns else EVENT,
        unit=SECONDS,
        better=NEITHER if ten is INFORMATIONAL else LOWER,
        needs=needs_of(name),
        reduce=Reduce(SUM, MEAN_OF_CONVERSATIONS) if summed else Reduce(MEAN, MEAN_OF_SUBJECTS),
        also={"mean": MEAN_OF_SUBJECTS, **_SPREAD} if summed else _SPREAD,
        ten=ten,
    )(measure)


def _up_to(target: float, limit: float) -> TenPoints:
    """10 up to the target, 0 from the limit on."""
    return TenPoints(zero=limit, ten=target)


llm_ttft = _declared(
    "llm_ttft",
    """How long does the language model take to its first token?

    `ttft` of each `llm` metric. A negative one says that no token came: not applicable, and so is a
    cancelled call. Without such metrics, the mean that the session's `latency` states.
    """,
    _by_events("llm_ttft", _of_field(TTFT), "ttft", "llm"),
    _up_to(0.4, 2.0),
)
llm_latency = _declared(
    "llm_latency",
    """How long does a call of the language model take, to its last token?

    `duration` of each `llm` metric; a cancelled call is not applicable. Without such metrics, the mean
    that the session's `latency` states.
    """,
    _by_events("llm_latency", _of_field(LLM_DURATION), "duration", "llm"),
    _up_to(1.0, 5.0),
)
tts_ttfb = _declared(
    "tts_ttfb",
    """How long does the speech synthesiser take to its first sound?

    `ttfb` of each `tts` metric. A negative one says that no sound came: not applicable, and so is a
    cancelled synthesis. Without such metrics, the mean that the session's `latency` states.
    """,
    _by_events("tts_ttfb", _of_field(TTFB), "ttfb", "tts"),
    _up_to(0.2, 1.5),
)
tts_latency = _declared(
    "tts_latency",
    """How long does the speech synthesiser take to its first sound, with the wait for a connection?

    `ttfb` + `acquire_time` of each `tts` metric, filtered as `latency.tts_ttfb`. One that does not tell
    its `acquire_time` counts with its `ttfb` alone. Without such metrics, the mean that the session's
    `latency` states.
    """,
    _by_events("tts_latency", _first_sound, "ttfb", "tts"),
    _up_to(0.25, 2.0),
)
tts_duration = _declared(
    "tts_duration",
    """How long does the speech synthesiser work?

    `duration` of each `tts` metric. What is mapped to 0 to 10 is the real-time factor: Σ `duration` ÷
    Σ `audio_duration`, of the metrics that tell a sound. Without such metrics, the mean that the
    session's `latency` states.
    """,
    _by_events("tts_duration", _work(TTS_DURATION, TTS_AUDIO), "duration", "tts"),
    REAL_TIME,
)
tts_audio_duration = _declared(
    "tts_audio_duration",
    """How many seconds of speech does the synthesiser make?

    Σ `audio_duration` of the `tts` metrics, cancelled ones included. Informational: 10 points where there
    is any. Without such metrics, the sum that the session's `latency` states.
    """,
    _by_events("tts_audio_duration", _of_field(TTS_AUDIO), "audio_duration", "tts"),
    INFORMATIONAL,
    summed=True,
)
stt_latency = _declared(
    "stt_latency",
    """How long does the speech recogniser take?

    `duration` of each `stt` metric where it is above 0. A recogniser that streams reports 0, which is not
    applicable; where no other is told, `transcription_delay` of each `eou` metric is taken. Without
    either, the mean that the session's `latency` states.
    """,
    _by_events("stt_latency", _recognised, "duration", "stt"),
    _up_to(0.3, 2.0),
)
stt_processing_duration = _declared(
    "stt_processing_duration",
    """How long does the speech recogniser work on what it is given whole?

    Σ `duration` of the `stt` metrics that do not stream; one that does, or reports 0, is not applicable.
    What is mapped to 0 to 10 is the real-time factor: Σ `duration` ÷ Σ `audio_duration`, of the metrics
    that tell a sound. Without such metrics, the sum that the session's `latency` states.
    """,
    _by_events("stt_processing_duration", _work(STT_DURATION, STT_AUDIO, skips_streamed=True), "duration", "stt"),
    REAL_TIME,
    summed=True,
)
stt_audio_duration = _declared(
    "stt_audio_duration",
    """How many seconds of sound does the recogniser hear?

    Σ `audio_duration` of the `stt` metrics: several per turn, and 0 of those that only tell of a
    connection. Informational: 10 points where there is any. Without such metrics, the sum that the
    session's `latency` states.
    """,
    _by_events("stt_audio_duration", _of_field(STT_AUDIO), "audio_duration", "stt"),
    INFORMATIONAL,
    summed=True,
)
end_of_turn_delay = _declared(
    "end_of_turn_delay",
    """How long after the user's last word does the agent know that it is its turn?

    `end_of_utterance_delay` of each `eou` metric. Exactly 0 says that no end was detected: not applicable.
    Without such metrics, the mean that the session's `latency` states.
    """,
    _by_events("end_of_turn_delay", _of_field(END_OF_TURN), "end_of_utterance_delay", "eou"),
    _up_to(0.5, 2.5),
)
on_user_turn_completed_delay = _declared(
    "on_user_turn_completed_delay",
    """How long does the agent's own code hold up the reply, once the user's turn is complete?

    `on_user_turn_completed_delay` of each `eou` metric. Without such metrics, the mean that the session's
    `latency` states.
    """,
    _by_events("on_user_turn_completed_delay", _of_field(TURN_COMPLETED), "on_user_turn_completed_delay", "eou"),
    _up_to(0.05, 1.0),
)
assistant_latency = _declared(
    "assistant_latency",
    """How long does the agent take from the complete turn of the user to its first sound?

    Per turn: Σ `duration` of all calls of the language model but the last, + `ttft` of the last, + the first
    `ttfb` of the synthesiser. Metrics are joined by speech id, else by the turn's label, else by order. A
    turn of which a part is missing is not applicable. Without such metrics, the mean that the session's
    `latency` states.
    """,
    _by_turns("assistant_latency", assistant, "llm", "tts"),
    _up_to(0.6, 3.0),
    of_turns=True,
)
e2e_latency = _declared(
    "e2e_latency",
    """How long does the user wait, from the last word to the agent's first sound?

    Per turn: `e2e_latency` where a metric states it, else `end_of_utterance_delay` +
    `on_user_turn_completed_delay` + `latency.assistant_latency`. The delay of the transcription is not
    added: it runs while the end of the turn is awaited. Joined as `latency.assistant_latency`; a turn of
    which a part is missing is not applicable. Without such metrics, the mean that the session's `latency`
    states.
    """,
    _by_turns("e2e_latency", end_to_end, "eou", "llm", "tts"),
    _up_to(0.8, 4.0),
    of_turns=True,
)

LATENCIES: Mapping[str, Metric] = {
    one.name.removeprefix("latency."): one
    for one in (
        llm_ttft,
        llm_latency,
        tts_ttfb,
        tts_latency,
        tts_duration,
        tts_audio_duration,
        stt_latency,
        stt_processing_duration,
        stt_audio_duration,
        end_of_turn_delay,
        on_user_turn_completed_delay,
        assistant_latency,
        e2e_latency,
    )
}
"""The thirteen, by their bare names."""
