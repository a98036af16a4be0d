"""Metrics of the sound of a call: its quality, clarity, breakage, pitch and loudness, with the moments to listen to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from convoscope.conversation import ASSISTANT, USER, Conversation
from convoscope.metrics.audio.talk import side
from convoscope.metrics.declaration import CONVERSATION, HIGHER, LOWER, NEITHER, TenPoints, metric
from convoscope.resources.sound import Recording, RecordingError
from convoscope.scores.observation import Observation, measured, not_applicable, ratio, unmeasured
from convoscope.scores.reducers import RATIO, RATIO_OF_SUMS, Reduce

if TYPE_CHECKING:
    from convoscope.audio.levels import Breakage
    from convoscope.audio.quality import TurnQuality
    from convoscope.audio.speakers import SpeakerSound

MOST_MOMENTS = 200
"""Moments that are kept beside a score."""
TELEPHONE_RATE = 16_000
"""Samples a second below which a file holds no more than a telephone passes."""
SMOOTHING = frozenset(("OPUS", "GSM610"))
"""Codings after which none of ten dropouts has a hard edge; MP3 leaves it to most."""
LEAST_LEAD = 20.0
"""26 dB, as a ratio of amplitudes: noise that is nearer to the speech fills its gaps to the brim."""
LEAST_ABOVE = 0.25
"""−6 dB, of the power of the noise: a sum that is louder than the noise by less is no evidence of speech."""
_NOT_APPLICABLE = frozenset(("too_little_speech", "telephone_band", "no_telephone_band"))
_MOS_UNIT = "of 5"
_MINUTE = 60.0

Measure = Callable[[Sequence["SpeakerSound"]], Observation]


def observed(conversation: Conversation, recording: Recording, role: str, measure: Measure) -> Observation:
    """What is measured of the speech of a role; a reason where the recording does not hold enough of it."""
    from convoscope.audio.speakers import LEAST_SPEECH, sounds_of

    try:
        tracks = recording.tracks(conversation)
        if not any(track.speech() for track in tracks) and all(_is_silent(track) for track in tracks):
            raise RecordingError("recording_silent", "never louder than −60 dBFS")
        sounds = sounds_of(conversation, tracks, role)
        if all(not sound.track.speech() and _is_silent(sound.track) for sound in sounds):
            raise RecordingError("recording_silent", "this side is never louder than −60 dBFS")
        seconds = sum(sound.seconds for sound in sounds)
        if seconds < LEAST_SPEECH:
            raise RecordingError("too_little_speech", f"{seconds:.1f} s of speech; at least {LEAST_SPEECH:g}")
        return measure(sounds)
    except RecordingError as error:
        explain = not_applicable if error.reason in _NOT_APPLICABLE else unmeasured
        detail = f"{error.detail}; {error.hint}" if error.detail and error.hint else error.detail or error.hint
        return explain(conversation, error.reason, detail)


def _is_silent(track: Any) -> bool:
    from convoscope.audio.levels import QUIET, levels_of

    return levels_of(track).peak < QUIET


def _about(sounds: Sequence[SpeakerSound]) -> dict[str, Any]:
    """How the sides are known, and how much speech there is."""
    return {
        "basis": ", ".join(dict.fromkeys(sound.basis for sound in sounds)),
        "rate": min(sound.track.rate for sound in sounds),
        "seconds_of_speech": round(sum(sound.seconds for sound in sounds), 1),
    }


def _moments(moments: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """For the page; of very many those from the beginning, with their number."""
    listed = sorted(moments, key=lambda one: (one["start"], one["end"]))
    more = {"moments_in_all": len(listed)} if len(listed) > MOST_MOMENTS else {}
    return {"moments": listed[:MOST_MOMENTS], **more}


# Quality.


def _is_telephone(sounds: Sequence[SpeakerSound]) -> bool:
    from convoscope.audio.voice import voice_frames

    frames = [voice_frames(sound) for sound in sounds]
    rates = [sound.track.rate for sound in sounds]
    is_narrow = min(rates) < TELEPHONE_RATE or any(one.is_telephone for one in frames)
    return is_narrow and not any(one.is_muffled for one in frames)


def _quality(conversation: Conversation, sounds: Sequence[SpeakerSound]) -> Observation:
    from convoscope.audio.quality import models_identity, quality_of

    turns = [(sound, turn) for sound in sounds for turn in quality_of(sound.track, sound.turns)]
    if not turns:
        return not_applicable(conversation, "too_little_speech", "no stretch of speech of a second")
    total = sum(turn.end - turn.start for _, turn in turns)
    worst_sound, worst = min(turns, key=lambda one: one[1].mos)
    details = {
        **_about(sounds),
        "model": models_identity(),
        "turns": len(turns),
        "worst": _quality_moment(worst_sound, worst),
        **_second_opinion([turn for _, turn in turns]),
        **_moments(_quality_moment(sound, turn) for sound, turn in turns),
    }
    value = sum(turn.mos * (turn.end - turn.start) for _, turn in turns) / total
    return measured(conversation, value, details=details)


def _quality_moment(sound: SpeakerSound, turn: TurnQuality) -> dict[str, Any]:
    others = {"background": turn.background, "packet_loss": turn.packet_loss}
    return {
        "start": sound.common(turn.start),
        "end": sound.common(turn.end),
        "kind": "quality",
        "value": round(turn.mos, 2),
        "text": f"MOS {turn.mos:.1f}",
        **{name: round(value, 2) for name, value in others.items() if value is not None},
    }


def _second_opinion(turns: Sequence[TurnQuality]) -> dict[str, float]:
    total = sum(turn.end - turn.start for turn in turns)
    result: dict[str, float] = {}
    for name in ("background", "packet_loss"):
        values = [(getattr(turn, name), turn.end - turn.start) for turn in turns]
        if all(value is not None for value, _ in values):
            result[name] = round(sum(value * seconds for value, seconds in values) / total, 2)
    return result


@metric(
    "audio.mos",
    version=5,
    observes=CONVERSATION,
    needs=side(ASSISTANT),
    unit=_MOS_UNIT,
    better=HIGHER,
    ten=TenPoints(zero=1.0, ten=5.0),
    label="quality of the agent's sound",
    sensitive_to=(),
)
def mos(conversation: Conversation, recording: Recording) -> Observation:
    """How good does the assistant's voice sound?

    The mean opinion of listeners, from 1 to 5, as Distill-MOS predicts it from the sound alone: of each stretch of
    speech of a second and more, weighted by duration. Windows of 7.68 s that are at most 3.84 s apart. A voice of the
    band of a telephone is not applicable here: see the variant `telephone`. A muffled voice, which has less, is scored.

    >>> value(mos, example("user: Are you open?", "assistant: Until six."))
    'no_recording'
    """

    def measure(sounds: Sequence[SpeakerSound]) -> Observation:
        if _is_telephone(sounds):
            raise RecordingError("telephone_band", "audio.mos@telephone scores it")
        return _quality(conversation, sounds)

    return observed(conversation, recording, ASSISTANT, measure)


@metric(
    "audio.mos",
    variant="telephone",
    version=5,
    observes=CONVERSATION,
    needs=side(ASSISTANT),
    unit=_MOS_UNIT,
    better=HIGHER,
    label="quality of the agent's sound on the phone",
    sensitive_to=(),
)
def mos_telephone(conversation: Conversation, recording: Recording) -> Observation:
    """How good does the assistant's voice sound, through a telephone?

    As `audio.mos`, of files with fewer than 16,000 samples per second and of voices without anything above the band of
    a telephone, if they reach 2,500 Hz. Mirror images of lower frequencies and faint hiss are no voice. There are no
    points: excellent voices score between 3.5 and 4.1 on a telephone.

    >>> value(mos_telephone, example("user: Are you open?", "assistant: Until six."))
    'no_recording'
    """

    def measure(sounds: Sequence[SpeakerSound]) -> Observation:
        if not _is_telephone(sounds):
            raise RecordingError("no_telephone_band", "audio.mos scores it")
        return _quality(conversation, sounds)

    return observed(conversation, recording, ASSISTANT, measure)


@metric(
    "audio.mos",
    variant="caller",
    version=5,
    observes=CONVERSATION,
    needs=side(USER),
    unit=_MOS_UNIT,
    better=HIGHER,
    label="quality of the caller's sound",
    sensitive_to=(),
)
def mos_caller(conversation: Conversation, recording: Recording) -> Observation:
    """How good does the caller's voice sound?

    As `audio.mos`, of the caller, with any number of samples per second. There are no points: the agent does not answer
    for it. A low value explains errors of the agent's recogniser.

    >>> value(mos_caller, example("user: Are you open?", "assistant: Until six."))
    'no_recording'
    """
    return observed(conversation, recording, USER, lambda sounds: _quality(conversation, sounds))


# Clarity.


@metric(
    "audio.tone_clarity",
    variant="rules",
    version=6,
    observes=CONVERSATION,
    needs=side(ASSISTANT),
    unit="of 10",
    better=HIGHER,
    ten=TenPoints(zero=0.0, ten=10.0),
    label="clarity of the agent's sound",
    sensitive_to=(),
)
def tone_clarity_rules(conversation: Conversation, recording: Recording) -> Observation:
    """How clear is the assistant's sound, by rules?

    The mean of three scores from 0 to 10, each linear between its ends: the speech above the noise of the pauses, from
    10 to 30 dB, in pauses between the first speech and the last, within a second of speech, by the 10th percentile; the
    share of speech time in clipped samples, from 1 to 0 %; the share of the frequencies from 140 to 7,100 Hz in which
    the voice is heard, weighted by what they mean for understanding (ANSI S3.5), from 0.4 to 1: what stays while the
    voice comes and goes is noise, and a mirror image of a lower frequency is no voice either. Warmth is not measured.
    Without half a second of such pauses there is no noise to measure. Speech that is not above the noise is unmeasured.

    >>> value(tone_clarity_rules, example("user: Are you open?", "assistant: Until six."))
    'no_recording'
    """
    return observed(conversation, recording, ASSISTANT, lambda sounds: _clarity(conversation, sounds))


def _clarity(conversation: Conversation, sounds: Sequence[SpeakerSound]) -> Observation:
    from convoscope.audio.levels import levels_of
    from convoscope.audio.voice import noise_power, speech_power, voice_frames

    sound = max(sounds, key=lambda one: one.seconds)
    levels, frames = levels_of(sound.track), voice_frames(sound)
    speech, noise = speech_power(levels, sound.speech), noise_power(levels, sound.track.speech())
    if speech is None or noise is None:
        return unmeasured(conversation, "no_pauses", "less than half a second without speech between stretches of it")
    # Noise adds to speech: what is left of the sum is the speech.
    clean = speech - noise
    if clean < LEAST_ABOVE * noise:
        return unmeasured(conversation, "speech_not_above_noise", "the pauses are about as loud as the speech")
    # Where speech begins and ends is not known more finely than that: backwards, it would differ by a tenth. Pauses of
    # zeros have no noise, and no figure is one of it.
    decibels = round(10 * math.log10(clean / noise)) if noise > 0 else None
    inside = [one for one in levels.clips if any(span.start <= one.start < span.end for span in sound.speech)]
    clipped = sum(one.end - one.start for one in inside) / sound.seconds
    parts = {
        "noise": 10.0 if decibels is None else _points(decibels, 10.0, 30.0),
        "clipping": _points(clipped, 0.01, 0.0),
        "band": _points(frames.band_share, 0.4, 1.0),
    }
    details = {
        **_about([sound]),
        **({"noise": "none: the pauses are zeros"} if decibels is None else {"decibels_above_noise": decibels}),
        "clipped_share": round(clipped, 5),
        "band_share": round(frames.band_share, 3),
        "points": {name: round(value, 2) for name, value in parts.items()},
        "unmeasured": ["warmth"],
    }
    return measured(conversation, sum(parts.values()) / len(parts), details=details)


def _points(value: float, zero: float, ten: float) -> float:
    return 10 * min(1.0, max(0.0, (value - zero) / (ten - zero)))


# Breakage.

_WORDS = {
    "dropout": "the sound is gone",
    "click": "a click",
    "clipping": "clipped",
    "breakage": "the sound breaks",
}
NOT_LOOKED_FOR = ["repeated packets", "gaps that a codec or a concealment smooths"]
_BREAKAGE = TenPoints(zero=6.0, ten=0.0)


def _breakage(conversation: Conversation, sounds: Sequence[SpeakerSound]) -> Observation:
    from convoscope.audio.levels import events, gaps, levels_of

    _refuse_hidden(sounds)
    count, minutes, marks = 0, 0.0, []
    kinds: dict[str, int] = {}
    for sound in sounds:
        levels = levels_of(sound.track)
        listed = events([*gaps(levels, sound.speech), *_near(sound, levels.clicks), *_near(sound, levels.clips)])
        count += len(listed)
        minutes += sound.seconds / _MINUTE
        for event in listed:
            kinds[event.kind] = kinds.get(event.kind, 0) + 1
            start, end = sound.common(event.start), sound.common(event.end)
            text = f"{event.end - event.start:.2f} s: {_WORDS[event.kind]}"
            marks.append({"start": start, "end": end, "kind": event.kind, "text": text})
    details = {**_about(sounds), "events": kinds, "not_looked_for": NOT_LOOKED_FOR, **_moments(marks)}
    return ratio(conversation, count, minutes, details=details)


def _refuse_hidden(sounds: Sequence[SpeakerSound]) -> None:
    """Raise where breaks are there and not to be seen: to count none of them would be praise."""
    from convoscope.audio.levels import levels_of, noise_floor
    from convoscope.audio.voice import speech_power

    for sound in sounds:
        levels = levels_of(sound.track)
        if sound.track.coding in SMOOTHING:
            raise RecordingError("codec_hides_breaks", f"{sound.track.coding} smooths the edges of breaks")
        loudness = math.sqrt(speech_power(levels, sound.speech) or 0.0)
        if loudness < LEAST_LEAD * noise_floor(levels):
            raise RecordingError("noise_hides_breaks", "the noise is less than 26 dB below the speech")


def _near(sound: SpeakerSound, breakages: Iterable[Breakage]) -> list[Breakage]:
    """Those in the speech of this speaker: where all are on one track, those of others are not theirs."""
    from convoscope.audio.speakers import LONGEST_PAUSE, joined

    spans = joined(sound.speech, LONGEST_PAUSE)
    listed: list[Breakage] = []
    first = 0
    for breakage in sorted(breakages):
        while first < len(spans) and spans[first].end + LONGEST_PAUSE < breakage.start:
            first += 1
        if first < len(spans) and spans[first].start - LONGEST_PAUSE <= breakage.start:
            listed.append(breakage)
    return listed


@metric(
    "audio.audio_breakage",
    version=6,
    observes=CONVERSATION,
    needs=side(ASSISTANT),
    unit="per minute",
    better=LOWER,
    reduce=Reduce(RATIO, RATIO_OF_SUMS),
    ten=_BREAKAGE,
    label="breaks in the agent's sound",
    sensitive_to=(),
)
def audio_breakage(conversation: Conversation, recording: Recording) -> Observation:
    """How often does the assistant's sound break?

    Dropouts, clicks and clipping per minute of speech. A dropout is 20 ms to 2 s with nothing but the noise of the
    track or steady faint noise, inside of loud speech, with hard edges: more than 23 dB within 5 ms. A click is a step
    of more than half of full scale, or 3 times the level of loud speech, that stands out from its surroundings.
    Clipping is a flat top of three samples and more at full scale, or at the loudest value around it, if four others
    near it have that value. What is closer than 50 ms is one event; one that goes on counts again every tenth of a
    second. Packets that are repeated are not looked for. Unmeasured where noise or a codec hides breaks.

    >>> value(audio_breakage, example("user: Are you open?", "assistant: Until six."))
    'no_recording'
    """
    return observed(conversation, recording, ASSISTANT, lambda sounds: _breakage(conversation, sounds))


@metric(
    "audio.audio_breakage",
    variant="caller",
    version=6,
    observes=CONVERSATION,
    needs=side(USER),
    unit="per minute",
    better=LOWER,
    reduce=Reduce(RATIO, RATIO_OF_SUMS),
    label="breaks in the caller's sound",
    sensitive_to=(),
)
def audio_breakage_caller(conversation: Conversation, recording: Recording) -> Observation:
    """How often does the caller's sound break?

    As `audio.audio_breakage`, of the caller. There are no points: the agent does not answer for the caller's line.

    >>> value(audio_breakage_caller, example("user: Are you open?", "assistant: Until six."))
    'no_recording'
    """
    return observed(conversation, recording, USER, lambda sounds: _breakage(conversation, sounds))


# Pitch and loudness.


@metric(
    "audio.assistant_average_pitch_hz",
    version=5,
    observes=CONVERSATION,
    needs=side(ASSISTANT),
    unit="Hz",
    better=NEITHER,
    ten=TenPoints(zero=60.0, ten=85.0, falls=(255.0, 400.0)),
    label="pitch of the agent's voice",
    importance=1,
    sensitive_to=(),
)
def assistant_average_pitch_hz(conversation: Conversation, recording: Recording) -> Observation:
    """How high is the assistant's voice?

    The mean fundamental frequency of voiced frames: 40 ms every 10 ms, autocorrelation between 60 and 400 Hz with a
    peak of 0.45 and more, near what most frames of the stretch have. The median is beside it.

    >>> value(assistant_average_pitch_hz, example("user: Are you open?", "assistant: Until six."))
    'no_recording'
    """

    def measure(sounds: Sequence[SpeakerSound]) -> Observation:
        import numpy as np

        from convoscope.audio.voice import voice_frames

        frames = [voice_frames(sound) for sound in sounds]
        pitches = np.concatenate([one.pitches for one in frames])
        if not len(pitches):
            return not_applicable(conversation, "no_voiced_speech", "no frame has a pitch between 60 and 400 Hz")
        details = {
            **_about(sounds),
            "median": round(float(np.median(pitches)), 1),
            "voiced_share": round(len(pitches) / max(1, sum(one.frames for one in frames)), 3),
        }
        return measured(conversation, float(pitches.mean()), details=details)

    return observed(conversation, recording, ASSISTANT, measure)


@metric(
    "audio.assistant_volume_rms",
    version=5,
    observes=CONVERSATION,
    needs=side(ASSISTANT),
    unit="dBFS",
    better=NEITHER,
    ten=TenPoints(zero=-36.0, ten=-26.0, falls=(-16.0, -6.0)),
    label="loudness of the agent's voice",
    importance=1,
    sensitive_to=(),
)
def assistant_volume_rms(conversation: Conversation, recording: Recording) -> Observation:
    """How loud is the assistant?

    The root mean square of all 20 ms frames of speech, in decibels below full scale. Beside it: the same from 0 to 1,
    and, of an agent with a channel of its own, the loudness of the channel in LUFS (ITU-R BS.1770-4).

    >>> value(assistant_volume_rms, example("user: Are you open?", "assistant: Until six."))
    'no_recording'
    """

    def measure(sounds: Sequence[SpeakerSound]) -> Observation:
        from convoscope.audio.levels import levels_of
        from convoscope.audio.voice import speech_power

        powers = [(speech_power(levels_of(sound.track), sound.speech), sound.seconds) for sound in sounds]
        known = [(power, seconds) for power, seconds in powers if power]
        if not known:
            return unmeasured(conversation, "recording_silent", "its speech has no sound")
        power = sum(power * seconds for power, seconds in known) / sum(seconds for _, seconds in known)
        # Of a channel of all, it would be the loudness of all.
        lufs = [None if sound.basis == "segments" else levels_of(sound.track).lufs for sound in sounds]
        loudness = {} if len(lufs) != 1 or lufs[0] is None else {"lufs": round(lufs[0], 1)}
        details = {**_about(sounds), "rms": round(math.sqrt(power), 5), **loudness}
        return measured(conversation, 10 * math.log10(power), details=details)

    return observed(conversation, recording, ASSISTANT, measure)
