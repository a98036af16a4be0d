"""Scorers of the sound of a conversation: what would be heard, in which unit, and what it is worth.

They are declared so that a log can be checked for a recording. Recordings are not listened to yet:
with one, each of them is unmeasured for want of an analysis.
"""

from __future__ import annotations

from convoscope.conversation import Conversation
from convoscope.metrics.declaration import (
    CONVERSATION,
    HIGHER,
    LOWER,
    NEITHER,
    RATIO,
    Better,
    Metric,
    TenPoints,
    metric,
)
from convoscope.metrics.judged.fields import AUDIO_ANALYSIS, needs_of
from convoscope.metrics.judged.planned import OF_TEN, definition
from convoscope.scores.observation import Observation, unmeasured
from convoscope.scores.reducers import MEAN, MEAN_OF_CONVERSATIONS, Reduce

MOS = "MOS"
PER_MINUTE = "per minute"
HERTZ = "Hz"
DECIBEL = "dBFS"


def _heard(name: str, question: str, method: str, unit: str, better: Better, ten: TenPoints) -> Metric:
    def analysis(conversation: Conversation) -> Observation:
        return unmeasured(conversation, AUDIO_ANALYSIS.code)

    analysis.__doc__ = definition(
        question,
        method,
        "Of the assistant's speech: its channel of the recording (the right one of two), its segments in a recording "
        "of one channel. Unmeasured without a recording, and until recordings are listened to.",
    )
    return metric(
        name,
        version=1,
        observes=CONVERSATION,
        unit=unit,
        better=better,
        needs=needs_of(name.partition(".")[2]),
        reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
        ten=ten,
    )(analysis)


mos = _heard(
    "audio.mos",
    "How good does the assistant's voice sound?",
    "The mean opinion score, from 1 to 5, that a model predicts from the sound alone. The 0–10 score is "
    "10 × (MOS − 1) ÷ 4.",
    MOS,
    HIGHER,
    TenPoints(zero=1, ten=5),
)
tone_clarity = _heard(
    "audio.tone_clarity",
    "Does the assistant speak clearly, at a good pace, in a warm tone?",
    "A judge that can hear rates from 1 to 10. The rating is its own 0–10 score.",
    OF_TEN,
    HIGHER,
    TenPoints(zero=0, ten=10),
)
pronunciation_audio = _heard(
    "audio.pronunciation_audio",
    "Does the assistant pronounce the words as they are pronounced?",
    "1 − phoneme errors ÷ phonemes of the text that was to be spoken, at least 0. The 0–10 score is ten times that.",
    RATIO,
    HIGHER,
    TenPoints(zero=0, ten=1),
)
gibberish = _heard(
    "audio.gibberish",
    "How much of the assistant's speech is not words?",
    "Speech that a recogniser cannot make sense of ÷ all speech, by time. The 0–10 score is 10 × (1 − value).",
    RATIO,
    LOWER,
    TenPoints(zero=1, ten=0),
)
audio_breakage = _heard(
    "audio.audio_breakage",
    "How often does the assistant's sound break?",
    "Drop-outs, clicks and clipped runs for each minute of speech. The 0–10 score is 10 at none and 0 from 6 a minute "
    "on.",
    PER_MINUTE,
    LOWER,
    TenPoints(zero=6, ten=0),
)
assistant_average_pitch_hz = _heard(
    "audio.assistant_average_pitch_hz",
    "How high is the assistant's voice?",
    "The mean fundamental frequency of its voiced frames, between 60 and 400 Hz. The 0–10 score is 10 from 85 to "
    "255 Hz, and falls to 0 at 60 and at 400 Hz.",
    HERTZ,
    NEITHER,
    TenPoints(zero=60, ten=85, falls=(255, 400)),
)
assistant_volume_rms = _heard(
    "audio.assistant_volume_rms",
    "How loud is the assistant?",
    "The root mean square of its speech, in decibels below full scale; as a share of full scale it stands in the "
    "details. The 0–10 score is 10 from −26 to −16 dBFS, and a point less for each decibel outside.",
    DECIBEL,
    NEITHER,
    TenPoints(zero=-36, ten=-26, falls=(-16, -6)),
)
