"""Latencies of the parts of a voice stack: as each part reports them, else as the session states them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from convoscope.conversation import ComponentMetric, Conversation
from convoscope.metrics.declaration import (
    CONVERSATION,
    EVENT,
    LOWER,
    MEAN_OF_ALL,
    NEITHER,
    P50_P95,
    SECONDS,
    TURN,
    Level,
    Metric,
    TenPoints,
    metric,
    share_metric,
)
from convoscope.metrics.item_fields import needs_of
from convoscope.metrics.latency.samples import (
    END_OF_TURN,
    LLM_DURATION,
    MAY_BE_ZERO,
    STT_AUDIO,
    STT_DURATION,
    TTFB,
    TTFT,
    TTS_AUDIO,
    TTS_DURATION,
    TURN_COMPLETED,
    Field,
    shares,
)
from convoscope.metrics.latency.turns import (
    REPEATED,
    STOPPED_CLOCK,
    JoinedTurn,
    Measure,
    TimedTurn,
    assistant,
    end_to_end,
    first_sound,
    joined,
    left_out,
    no_time_rate,
    nothing_reported,
    or_session,
    read_field,
    recognised,
    turn_observation,
    without_zeros,
    work,
)
from convoscope.metrics.voice.call import CALL, is_quantity
from convoscope.scores.observation import (
    Observation,
    measured,
    not_applicable,
    unmeasured,
)
from convoscope.scores.reducers import (
    MAXIMUM_OF_SUBJECTS,
    MEAN,
    MEAN_OF_CONVERSATIONS,
    MEAN_OF_SUBJECTS,
    SUM,
    Reduce,
)

REAL_TIME = TenPoints(zero=1.5, ten=0.5, of="ratio")
"""Of the real-time factor: seconds of work ÷ seconds of sound. Faster than the sound is played is good enough."""
INFORMATIONAL = TenPoints(zero=0.0, ten=1e-9)
"""10 where there was any sound at all, else 0."""
_INSTANT = MAY_BE_ZERO | {"stt_latency"}
"""What may well be 0 each time. A recogniser that streams is ready when the user is, and reports that with a 0."""
_SPREAD = {**P50_P95, "max": MAXIMUM_OF_SUBJECTS}

LATENCIES: dict[str, Metric] = {}
"""The thirteen metrics `latency.*`, by their bare names."""


class LatencySummary(NamedTuple):
    """The samples of one conversation in five numbers, in seconds."""

    n: int
    mean: float
    p50: float
    p95: float
    max: float


def latency_summary(conversation: Conversation, name: str) -> LatencySummary | None:
    """What one of the thirteen (`e2e_latency`, also with its family) measured in a conversation; None for nothing."""
    from numpy import percentile

    declared = LATENCIES[name.removeprefix("latency.")]
    values = [one.value for one in declared(conversation) if one.value is not None]
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    return LatencySummary(len(values), mean, float(percentile(values, 50)), float(percentile(values, 95)), max(values))


def _of_events(
    name: str,
    definition: str,
    field: Field,
    ten: TenPoints,
    *,
    measure: Measure | None = None,
    summed: bool = False,
) -> Metric:
    """A latency that the metrics of one component report, each by itself."""
    observe = measure or read_field(field)

    def latency(conversation: Conversation) -> Iterator[Observation]:
        for share in shares(conversation):
            repeated = observe(share.repeated) if share.repeated else []
            own = observe(share.metrics)
            own = own if name in _INSTANT else without_zeros(own)
            observations = [*own, *(not_applicable(one.subject, REPEATED) for one in repeated)]
            yield from or_session(name, share, observations, (field.component,), field.names[0])

    return _declared(name, definition, latency, ten, EVENT, summed=summed)


def _of_turns(
    name: str,
    definition: str,
    measure: Callable[[JoinedTurn], TimedTurn],
    components: tuple[str, ...],
    ten: TenPoints,
) -> Metric:
    """A latency of turns, to which the metrics of several components add up."""

    def latency(conversation: Conversation) -> Iterator[Observation]:
        for case in joined(conversation):
            observations = without_zeros([turn_observation(turn, measure(turn)) for turn in case.turns])
            yield from or_session(name, case.share, [*observations, *left_out(case)], components)

    return _declared(name, definition, latency, ten, TURN)


def _declared(
    name: str,
    definition: str,
    measure: Callable[[Conversation], Iterator[Observation]],
    ten: TenPoints,
    observes: Level,
    *,
    summed: bool = False,
) -> Metric:
    measure.__doc__ = definition
    LATENCIES[name] = metric(
        f"latency.{name}",
        version=2,
        observes=observes,
        unit=SECONDS,
        better=NEITHER if ten is INFORMATIONAL else LOWER,
        needs=needs_of(name),
        reduce=Reduce(SUM, MEAN_OF_CONVERSATIONS) if summed else MEAN_OF_ALL,
        also={"mean": MEAN_OF_SUBJECTS, **_SPREAD} if summed else _SPREAD,
        ten=ten,
        label=_LABELS.get(name, ""),
        importance=8 if name == "e2e_latency" else 4,
        sensitive_to=(),
    )(measure)
    return LATENCIES[name]


_LABELS = {
    "e2e_latency": "wait, from last word to first sound",
    "llm_ttft": "first token of the model",
    "llm_latency": "last token of the model",
    "stt_latency": "time of the recogniser",
    "tts_ttfb": "first sound of the voice",
    "tts_latency": "first sound of the voice, with its wait",
}


def _up_to(target: float, limit: float) -> TenPoints:
    """10 up to the target, 0 from the limit on."""
    return TenPoints(zero=limit, ten=target)


llm_ttft = _of_events(
    "llm_ttft",
    """How long does the language model take to its first token?

    `ttft` of each `llm` metric. A negative one says that no token ever came: there is no time, the call is
    unmeasured here, and `latency.llm_ttft.no_token_rate` counts it. A cancelled call is not applicable.
    Where all are exactly 0, nothing was measured. Without such metrics, the mean that the session's
    `latency` states.

    >>> value("latency.llm_ttft", example("user: Hi.", 'llm: {"ttft": 0.4}', 'llm: {"ttft": 0.6}'))
    0.5
    """,
    TTFT,
    _up_to(0.4, 2.0),
)
llm_latency = _of_events(
    "llm_latency",
    """How long does a call of the language model take, to its last token?

    `duration` of each `llm` metric; a cancelled call is not applicable. Without such metrics, the mean
    that the session's `latency` states.

    >>> value("latency.llm_latency", example("user: Hi.", 'llm: {"duration": 1.0}', 'llm: {"duration": 2.0}'))
    1.5
    """,
    LLM_DURATION,
    _up_to(1.0, 5.0),
)
tts_ttfb = _of_events(
    "tts_ttfb",
    """How long does the speech synthesiser take to its first sound?

    `ttfb` of each `tts` metric. A negative one says that no sound ever came: there is no time, it is
    unmeasured here, and `latency.tts_ttfb.no_audio_rate` counts it. A cancelled synthesis is not
    applicable. Where all are exactly 0, nothing was measured. Without such metrics, the mean that the
    session's `latency` states.

    >>> value("latency.tts_ttfb", example("user: Hi.", 'tts: {"ttfb": 0.25}', 'tts: {"ttfb": 0.75}'))
    0.5
    """,
    TTFB,
    _up_to(0.2, 1.5),
)
tts_latency = _of_events(
    "tts_latency",
    """How long does the speech synthesiser take to its first sound, with the wait for a connection?

    `ttfb` + `acquire_time` of each `tts` metric, filtered as `latency.tts_ttfb`. One that does not report
    its `acquire_time` counts with its `ttfb` alone. Without such metrics, the mean that the session's
    `latency` states.

    >>> value("latency.tts_latency", example("user: Hi.", 'tts: {"ttfb": 0.25, "acquire_time": 0.25}'))
    0.5
    """,
    TTFB,
    _up_to(0.25, 2.0),
    measure=first_sound,
)
tts_duration = _of_events(
    "tts_duration",
    """How long does the speech synthesiser work?

    `duration` of each `tts` metric. What is mapped to 0 to 10 is the real-time factor: Σ `duration` ÷
    Σ `audio_duration`, of the metrics that report a sound. Without such metrics, the mean that the
    session's `latency` states.

    >>> value("latency.tts_duration", example("user: Hi.", 'tts: {"duration": 1.0, "audio_duration": 4.0}'))
    1.0
    """,
    TTS_DURATION,
    REAL_TIME,
    measure=work(TTS_DURATION, TTS_AUDIO),
)
tts_audio_duration = _of_events(
    "tts_audio_duration",
    """How many seconds of speech does the synthesiser make?

    Σ `audio_duration` of the `tts` metrics, cancelled ones included. Informational: 10 points where there
    is any. Without such metrics, the sum that the session's `latency` states.

    >>> call = example("user: Hi.", 'tts: {"audio_duration": 4.0}', 'tts: {"audio_duration": 1.0}')
    >>> value("latency.tts_audio_duration", call)
    5.0
    """,
    TTS_AUDIO,
    INFORMATIONAL,
    summed=True,
)
stt_latency = _of_events(
    "stt_latency",
    """How long does the speech recogniser take?

    `duration` of each `stt` metric where it is above 0. A recogniser that streams reports 0, which is not
    applicable; where no other is reported, `transcription_delay` of each `eou` metric is taken. Without
    either, the mean that the session's `latency` states.

    >>> value("latency.stt_latency", example("user: Hi.", 'stt: {"duration": 0.5}'))
    0.5
    """,
    STT_DURATION,
    _up_to(0.3, 2.0),
    measure=recognised,
)
stt_processing_duration = _of_events(
    "stt_processing_duration",
    """How long does the speech recogniser work on what it is given whole?

    Σ `duration` of the `stt` metrics that do not stream; one that does, or reports 0, is not applicable.
    What is mapped to 0 to 10 is the real-time factor: Σ `duration` ÷ Σ `audio_duration`, of the metrics
    that report a sound. Without such metrics, the sum that the session's `latency` states.

    >>> call = example("user: Hi.", 'stt: {"duration": 0.5}', 'stt: {"duration": 1.0}')
    >>> value("latency.stt_processing_duration", call)
    1.5
    """,
    STT_DURATION,
    REAL_TIME,
    measure=work(STT_DURATION, STT_AUDIO, skips_streamed=True),
    summed=True,
)
stt_audio_duration = _of_events(
    "stt_audio_duration",
    """How many seconds of sound does the recogniser hear?

    Σ `audio_duration` of the `stt` metrics: several per turn, and 0 of those that only report a
    connection. Informational: 10 points where there is any. Without such metrics, the sum that the
    session's `latency` states.

    >>> call = example("user: Hi.", 'stt: {"audio_duration": 2.0}', 'stt: {"audio_duration": 1.0}')
    >>> value("latency.stt_audio_duration", call)
    3.0
    """,
    STT_AUDIO,
    INFORMATIONAL,
    summed=True,
)
end_of_turn_delay = _of_events(
    "end_of_turn_delay",
    """How long after the user's last word does the agent know that it is its turn?

    `end_of_utterance_delay` of each `eou` metric. Exactly 0 says that no end was detected: unmeasured.
    Without such metrics, the mean that the session's `latency` states.

    >>> value("latency.end_of_turn_delay", example("user: Hi.", 'eou: {"end_of_utterance_delay": 0.5}'))
    0.5
    """,
    END_OF_TURN,
    _up_to(0.5, 2.5),
)
on_user_turn_completed_delay = _of_events(
    "on_user_turn_completed_delay",
    """How long does the agent's own code hold up the reply, once the user's turn is complete?

    `on_user_turn_completed_delay` of each `eou` metric. Without such metrics, the mean that the session's
    `latency` states.

    >>> call = example("user: Hi.", 'eou: {"on_user_turn_completed_delay": 0.1}')
    >>> value("latency.on_user_turn_completed_delay", call)
    0.1
    """,
    TURN_COMPLETED,
    _up_to(0.05, 1.0),
)
assistant_latency = _of_turns(
    "assistant_latency",
    """How long does the agent take from the complete turn of the user to its first sound?

    Per turn: Σ `duration` of all calls of the language model but the last, + `ttft` of the last, + the first
    `ttfb` of the synthesiser. Metrics are joined by speech id, else by the turn's label, else by order. A
    turn of which a part is missing is unmeasured. Without such metrics, the mean that the session's
    `latency` states.

    >>> value("latency.assistant_latency", example("user: Hi.", 'llm: {"ttft": 0.5}', 'tts: {"ttfb": 0.25}'))
    0.75
    """,
    assistant,
    ("llm", "tts"),
    _up_to(0.6, 3.0),
)
e2e_latency = _of_turns(
    "e2e_latency",
    """How long does the user wait, from the last word to the agent's first sound?

    Per turn: `e2e_latency` where a metric states it, else `end_of_utterance_delay` +
    `on_user_turn_completed_delay` + `latency.assistant_latency`. The delay of the transcription is not
    added: it runs while the end of the turn is awaited. Joined as `latency.assistant_latency`; a turn of
    which a part is missing is unmeasured. Without such metrics, the mean that the session's `latency`
    states.

    >>> delays = 'eou: {"end_of_utterance_delay": 0.5, "on_user_turn_completed_delay": 0.25}'
    >>> value("latency.e2e_latency", example("user: Hi.", delays, 'llm: {"ttft": 0.5}', 'tts: {"ttfb": 0.25}'))
    1.5
    """,
    end_to_end,
    ("eou", "llm", "tts"),
    _up_to(0.8, 4.0),
)


def _failure_rate(of: str, field: Field, name: str, question: str, what: str) -> Metric:
    """How often a call of a part gives nothing at all, instead of a time."""

    def failure_rate(conversation: Conversation) -> Iterator[Observation]:
        for share in shares(conversation):
            yield from no_time_rate(field, share.metrics) or [nothing_reported(share, (field.component,), of)]

    failure_rate.__doc__ = f"""{question}

    Per `{field.component}` metric with a `{of}`: 1 where it is negative, which says that {what}; else 0. A cancelled
    one is not applicable.

    >>> lines = '{field.component}: {{"{of}": 0.5}}', '{field.component}: {{"{of}": -1}}'
    >>> value("{name}", example("user: Hi.", *lines))
    0.5
    """
    needs = needs_of(f"{field.component}_{of}")
    return share_metric(name, version=1, observes=EVENT, better=LOWER, needs=needs, sensitive_to=())(failure_rate)


no_token_rate = _failure_rate(
    "ttft",
    TTFT,
    "latency.llm_ttft.no_token_rate",
    "What share of the calls of the language model gives no token at all?",
    "no token ever came",
)
no_audio_rate = _failure_rate(
    "ttfb",
    TTFB,
    "latency.tts_ttfb.no_audio_rate",
    "What share of the calls of the speech synthesiser gives no sound at all?",
    "no sound ever came",
)


class _MeanLatency(NamedTuple):
    """The mean latency of one part of the stack, and where it was read."""

    seconds: float
    details: dict[str, Any]


def _mean_of_calls(name: str, question: str, absent_in: tuple[str, ...] = ()) -> Metric:
    """The latency of one part of the stack. `absent_in`: the pipelines that have no such part."""

    def latency(conversation: Conversation) -> Observation:
        mean = _stated_mean(conversation, name) or _reported_mean(conversation, name)
        if mean is not None and not mean.seconds:
            return unmeasured(conversation, STOPPED_CLOCK, name)
        if mean is not None:
            return measured(conversation, mean.seconds, details=mean.details)
        if conversation.pipeline in absent_in:
            return not_applicable(conversation, "no_such_component", f"{conversation.pipeline} has no {name}")
        return unmeasured(conversation, "no_component_latency", name)

    latency.__doc__ = f"""{question}

    The mean of its calls in a conversation: as the log states it, else of what the part reports of
    each call (`latency`, else `ttfb`, else `processing`; never a mixture). `from` in the details says
    which. Unmeasured where the log has neither, and where all are exactly 0.

    >>> reported = {{"type": "component_metric", "component": "{name}"}}
    >>> times = [{{**reported, "values": {{"latency": seconds}}}} for seconds in (0.4, 0.6)]
    >>> value("voice.response_speed.{name}_latency", example("0-1 user: Hi.", *times))
    0.5
    """
    return metric(
        f"voice.response_speed.{name}_latency",
        version=3,
        observes=CONVERSATION,
        unit=SECONDS,
        better=LOWER,
        needs=(CALL,),
        reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
        sensitive_to=(),
    )(latency)


mean_llm_latency = _mean_of_calls("llm", "How long does the language model take?", absent_in=("s2s",))
mean_stt_latency = _mean_of_calls("stt", "How long does the speech recogniser take?", absent_in=("audio_llm", "s2s"))
mean_tts_latency = _mean_of_calls("tts", "How long does the speech synthesiser take?", absent_in=("s2s",))
mean_model_response_latency = _mean_of_calls(
    "model_response", "How long does the model take from the end of speech to its answer?"
)


def _stated_mean(conversation: Conversation, component: str) -> _MeanLatency | None:
    """The mean that the log states; of no calls at all it is missing, whatever its number."""
    latencies = conversation.extras.get("latencies")
    statement = latencies.get(component) if isinstance(latencies, dict) else None
    if not isinstance(statement, dict):
        return None
    mean, calls = statement.get("mean_ms"), statement.get("total_calls")
    if not is_quantity(mean) or calls == 0 or (calls is None and not mean):
        return None
    return _MeanLatency(mean / 1000, {"from": "stated mean", **({} if calls is None else {"calls": calls})})


def _reported_mean(conversation: Conversation, component: str) -> _MeanLatency | None:
    """The mean of what the part reported of each call, by the first kind of figure that it reported at all."""
    values = [
        event.values
        for event in conversation.timeline
        if isinstance(event, ComponentMetric) and event.component == component
    ]
    for kind in ("latency", "ttfb", "processing"):
        times = [one[kind] for one in values if is_quantity(one.get(kind))]
        if times:
            return _MeanLatency(math.fsum(times) / len(times), {"from": kind, "calls": len(times)})
    return None
