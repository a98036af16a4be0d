"""What is observed of a latency: component metrics, turns joined of them, and what the session states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from convoscope.conversation import ComponentMetric
from convoscope.metrics.latency.samples import (
    END_OF_TURN,
    STT_DURATION,
    TRANSCRIPTION,
    TTFB,
    Field,
    LatencyReading,
    LatencySample,
    Share,
    is_true,
    read_time,
    samples,
)
from convoscope.metrics.latency.session import NotStated, Stated, stated
from convoscope.metrics.latency.turns import (
    OF_A_TURN,
    JoinedTurn,
    TimedTurn,
    TurnsOfCase,
    concerns,
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
from convoscope.views.items import Case

REPEATED = "repeated_metric"
"""An item repeats a component metric of an item before it."""
FAILURES = ("no_token", "no_audio")
"""What a call that failed says in the place of a time. Seconds have no worst value: rates of their own count it."""
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
    event: ComponentMetric,
    seconds: float,
    details: Mapping[str, Any],
    sound: float | None = None,
) -> Observation:
    """A time, with the turn that it was in, and the sound that was worked on where the map is of their ratio."""
    where = {"speech_id": event.speech_id, "label": event.label}
    evidence = {**{name: value for name, value in where.items() if value}, **details}
    return Observation(
        subject=subject_of(event),
        status=MEASURED,
        value=seconds,
        numerator=seconds if sound else None,
        denominator=sound or None,
        details=evidence or None,
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
    """The time that work took, beside the seconds of sound that it was about."""

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
    """1 for each call that reports a failure in the place of a time, 0 for each that reports one."""
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
    return Observation(
        subject=case.subject,
        status=MEASURED,
        value=statement.seconds,
        numerator=None if sound is None else statement.seconds,
        denominator=sound,
        details=details,
    )


_SPANS = ("stt_span", "tts_span")
_SOUND_OF = {"tts_duration": "tts_audio_duration", "stt_processing_duration": "stt_audio_duration"}
