"""How far a log is from the sound of its call: its clock, turns that are not heard, speech that is not logged."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from convoscope.audio.against_log import NEAR, LoggedTurn, TurnSound, joined, shared, starts_over, total, without
from convoscope.audio.call_comparison import ALL, CallComparison, NotCompared, compare_call
from convoscope.conversation import ASSISTANT, USER, Conversation, Utterance
from convoscope.metrics.audio.talk import MOST_MOMENTS
from convoscope.metrics.declaration import CONVERSATION, EVENT, LOWER, SECONDS, metric, share_metric
from convoscope.metrics.voice.call import LOGGED_SOUND, SOUND
from convoscope.resources.sound import Recording
from convoscope.scores.observation import Observation, measured, not_applicable, ratio, unmeasured
from convoscope.scores.reducers import MAXIMUM_OF_SUBJECTS, MEAN, MEAN_OF_CONVERSATIONS, MEDIAN, Reduce, percentile
from convoscope.text.comparison import count_words

LEAST_BARGE_IN = 0.8
"""Seconds for which the user speaks over the agent: a shorter sound may be a cough or a murmur."""
SECONDS_PER_MINUTE = "s/min"
FEWEST_FOR_RATE = 4
LEAST_WORDS = 5
"""A turn of fewer words says little about how fast someone speaks."""
CUT_SHARE = 0.6
"""A turn that sounds for less than this share of the time that its words take may have been cut off …"""
LEAST_CUT = 1.5
"""… where at least so many seconds are missing."""
LEAST_HOLE = 1.0
"""Seconds without speech inside of a logged turn: a pause, or sound that was lost …"""
LOST_SHARE = 0.6
"""… where its words take so much of the hole longer than the turn sounds. Who pauses needs no time for words there."""

_clock_metric = partial(
    metric,
    version=5,
    observes=CONVERSATION,
    better=LOWER,
    needs=(LOGGED_SOUND, SOUND),
    reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
    also={"p50": percentile(50), "max": MAXIMUM_OF_SUBJECTS},
    sensitive_to=(),
)
_share = partial(share_metric, version=5, better=LOWER, needs=(LOGGED_SOUND, SOUND), sensitive_to=())


@_clock_metric("audio.log_offset", unit=SECONDS, label="clock of the log against the sound", importance=5)
def log_offset(conversation: Conversation, recording: Recording) -> Observation:
    """By how much is the clock of the log off, against the sound?

    The median of logged start − start in the sound, over all turns whose start is heard, without its sign; the details
    have it with its sign: a positive one is logged too late. Voice activity hears a start to about 0.1 s. Unmeasured
    where the log does not say when the recording began, with fewer than 3 turns that fit, and where the log fits the
    sound nowhere, or at two offsets as well.

    >>> value(log_offset, example("0-1 user: Are you open?", "2-3 assistant: Until six."))
    'no_recording'
    """
    call = compare_call(conversation, recording)
    if isinstance(call, NotCompared):
        return _without(conversation, call)
    if not call.has_start:
        return unmeasured(conversation, "recording_start_unknown")
    errors = [sound.error for sound in call.comparison.sounds.values() if sound.error is not None]
    if not call.comparison.shift.turns or not errors:
        return unmeasured(conversation, "too_few_turns")
    offset = round(median(errors), 3)
    return measured(conversation, abs(offset), details={"offset": offset, "turns": len(errors)})


@_clock_metric("audio.log_drift", unit=SECONDS_PER_MINUTE, label="drift of the log's clock", importance=3)
def log_drift(conversation: Conversation, recording: Recording) -> Observation:
    """By how much more is the clock of the log off with each minute?

    The median slope between all pairs of turns of logged start − start in the sound, in seconds per minute, without its
    sign; the details have it with its sign: a positive one is a log whose clock runs faster. It needs 6 turns that fit,
    over 60 s.

    >>> value(log_drift, example("0-1 user: Are you open?", "2-3 assistant: Until six."))
    'no_recording'
    """
    call = compare_call(conversation, recording)
    if isinstance(call, NotCompared):
        return _without(conversation, call)
    shift = call.comparison.shift
    if not shift.has_drift:
        return unmeasured(conversation, "too_few_turns", f"{shift.turns} turns over {shift.duration:.0f} s")
    drift = round(60 * shift.drift, 4)
    return measured(conversation, abs(drift), details={"drift": drift, "turns": shift.turns})


@metric(
    "audio.log_jitter",
    version=5,
    label="logged start against the sound",
    importance=4,
    observes=EVENT,
    unit=SECONDS,
    better=LOWER,
    needs=(LOGGED_SOUND, SOUND),
    reduce=Reduce(MEDIAN, percentile(50)),
    also={"p95": percentile(95), "max": MAXIMUM_OF_SUBJECTS},
    sensitive_to=(),
)
def log_jitter(conversation: Conversation, recording: Recording) -> Iterator[Observation]:
    """How far is each logged start from the sound, apart from offset and drift?

    Per utterance with times of sound: |logged start − start in the sound − offset − drift · time|. What is common to
    all turns is in `audio.log_offset` and `audio.log_drift`. Drift that is too short for a figure of its own is taken
    off, too, where 4 turns and more are near one line. An utterance that is not in the sound is not applicable;
    one whose start is not heard, since the same breath goes on from the turn before, is unmeasured.

    >>> value(log_jitter, example("0-1 user: Are you open?", "2-3 assistant: Until six."))
    'no_recording'
    """
    call = compare_call(conversation, recording)
    if isinstance(call, NotCompared):
        yield _without(conversation, call)
        return
    missing = {turn.seq for turn in call.comparison.missing}
    outside = {turn.seq for turn in call.comparison.outside}
    for utterance in conversation.utterances:
        sound = call.comparison.sounds.get(utterance.seq)
        if utterance in call.untimed:
            yield unmeasured(utterance, SOUND.code)
        elif utterance.seq in outside:
            yield _outside(call, utterance)
        elif utterance.seq in missing:
            yield not_applicable(utterance, "not_in_sound")
        elif sound is not None:
            yield _jitter(call, utterance, sound)


def _jitter(call: CallComparison, utterance: Utterance, sound: TurnSound) -> Observation:
    if sound.start is None or sound.error is None:
        return unmeasured(utterance, "start_not_heard")
    shift = call.comparison.shift
    if shift.may_drift:
        return unmeasured(utterance, "too_few_turns", "with 3 starts that drift apart, drift and jitter look the same")
    far = round(abs(sound.start + sound.error - shift.to_log(sound.start)), 3)
    return measured(utterance, far, details={"start": round(sound.start, 3), "error": round(sound.error, 3)})


@_share("audio.turns_not_in_sound", observes=EVENT, label="logged turns that are not heard", importance=7)
def turns_not_in_sound(conversation: Conversation, recording: Recording) -> Iterator[Observation]:
    """What share of the logged turns is not in the sound?

    Per utterance with times of sound: 1 where its speaker's track has no speech in that time and up to 0.5 s around it,
    nor other speech of about that length within 5 s that no turn has; else 0. Less than 0.2 s is no speech. Times are
    compared after offset and drift. On a channel with all speakers, an utterance is
    unmeasured where others speak for more than half of its time, by the log: any of them may be heard there. So is one
    before the recording begins or after it ends.

    >>> value(turns_not_in_sound, example("0-1 user: Are you open?", "2-3 assistant: Until six."))
    'no_recording'
    """
    call = compare_call(conversation, recording)
    if isinstance(call, NotCompared):
        yield _without(conversation, call)
        return
    missing = {turn.seq: turn for turn in call.comparison.missing}
    outside = {turn.seq for turn in call.comparison.outside}
    covered = _covered(conversation) if call.is_mixed else set[int]()
    for utterance in conversation.utterances:
        if utterance in call.untimed:
            yield unmeasured(utterance, SOUND.code)
        elif utterance.seq in outside:
            yield _outside(call, utterance)
        elif utterance.seq in covered and utterance.seq not in missing:
            yield unmeasured(utterance, call.why_mixed)
        elif utterance.seq in missing:
            details = {"moments": [_moment_of(call, missing[utterance.seq], utterance)]}
            yield ratio(utterance, 1.0, 1.0, details=details)
        elif utterance.seq in call.comparison.sounds:
            yield ratio(utterance, 0.0, 1.0)


def _outside(call: CallComparison, utterance: Utterance) -> Observation:
    return unmeasured(utterance, "outside_recording", f"the recording lasts {call.end - call.begin:.1f} s")


def _covered(conversation: Conversation) -> set[int]:
    """The utterances of which others speak for more than half of the time, by the log."""
    spans = {one.seq: joined(conversation.sounds(one), 0.0) for one in conversation.utterances}
    speakers = {one.speaker for one in conversation.utterances}
    of_others = {
        who: joined([span for one in conversation.utterances if one.speaker != who for span in spans[one.seq]], 0.0)
        for who in speakers
    }
    return {
        one.seq
        for one in conversation.utterances
        if 2 * total(without(spans[one.seq], of_others[one.speaker])) < total(spans[one.seq])
    }


def _moment_of(call: CallComparison, turn: LoggedTurn, utterance: Utterance) -> dict[str, Any]:
    shift = call.comparison.shift
    return {
        "start": round(shift.to_sound(turn.start), 3),
        "end": round(shift.to_sound(turn.end), 3),
        "kind": "not_in_sound",
        "text": f"not in the sound: {utterance.meant()[:80]}",
        "speaker": utterance.speaker,
    }


@_share("audio.speech_not_in_log", observes=CONVERSATION, label="speech that is not logged", importance=6)
def speech_not_in_log(conversation: Conversation, recording: Recording) -> Observation:
    """What share of the speech does no turn of the log have?

    Seconds of speech outside of the logged turns of its speaker ÷ seconds of speech, by voice activity, after offset
    and drift. Half a second around a turn is its own, and pieces of less than 0.5 s do not count. Voices in the
    background are speech, too. Unmeasured where an utterance of these speakers has no times of sound, and where a third
    speaker of the log has no track: the speech may be theirs.

    >>> value(speech_not_in_log, example("0-1 user: Are you open?", "2-3 assistant: Until six."))
    'no_recording'
    """
    call = compare_call(conversation, recording)
    if isinstance(call, NotCompared):
        return _without(conversation, call)
    if call.without_track:
        return unmeasured(conversation, "no_track_of_speaker", ", ".join(call.without_track))
    if call.untimed:
        return unmeasured(conversation, "times_missing", _of_how_many(call))
    moments = [
        {
            "start": round(one.start, 3),
            "end": round(one.end, 3),
            "kind": "not_in_log",
            "text": f"{one.seconds:.1f} s of speech that the log does not have",
            **({"speaker": one.speaker} if one.speaker else {}),
        }
        for one in call.comparison.unlogged
    ]
    seconds = round(sum(one.seconds for one in call.comparison.unlogged), 3)
    details = {"moments": moments[:MOST_MOMENTS]} if moments else None
    return ratio(conversation, seconds, round(call.comparison.speech, 3), details=details)


@_share("audio.lost_barge_ins", observes=CONVERSATION, label="barge-ins that the log does not have", importance=8)
def lost_barge_ins(conversation: Conversation, recording: Recording) -> Observation:
    """What share of the user's barge-ins does the log not have?

    A barge-in: the user begins to speak while the agent speaks, and both are heard for at least 0.8 s. It is lost where
    no utterance of the user is logged in that time, nor up to 0.5 s around it. An echo of the agent on the user's track
    is no barge-in. It needs a track for each side, and times of sound for all utterances of the user. A call without a
    barge-in is not applicable.

    >>> value(lost_barge_ins, example("0-1 user: Are you open?", "2-3 assistant: Until six."))
    'no_recording'
    """
    call = compare_call(conversation, recording)
    if isinstance(call, NotCompared):
        return _without(conversation, call)
    if call.is_mixed:
        return unmeasured(conversation, call.why_mixed)
    roles = conversation.roles
    users, agents = ([who for who in call.sound if roles[who] == role] for role in (USER, ASSISTANT))
    if not users or not agents:
        return unmeasured(conversation, "speakers_unknown", "a track of the user and one of the agent")
    if any(utterance.speaker in users for utterance in call.untimed):
        return unmeasured(conversation, "times_missing", _of_how_many(call))
    agent = sorted(span for who in agents for span in call.sound[who])
    barge_ins = [(who, span) for who in users for span in starts_over(call.sound[who], agent, LEAST_BARGE_IN)]
    unlogged = {(one.speaker, one.start, one.end) for one in call.comparison.unlogged}
    lost = [(who, span) for who, span in barge_ins if (who, *span) in unlogged]
    moments = [
        {
            "start": round(start, 3),
            "end": round(end, 3),
            "kind": "barge_in_lost",
            "text": f"the user speaks for {end - start:.1f} s over the agent, and the log has nothing",
            "speaker": who,
        }
        for who, (start, end) in lost
    ]
    details = {"moments": moments[:MOST_MOMENTS]} if moments else None
    return ratio(conversation, len(lost), len(barge_ins), empty="no_barge_in", details=details)


@_share("audio.possible_cut_offs", observes=EVENT, label="replies that may have been cut off", importance=6)
def possible_cut_offs(conversation: Conversation, recording: Recording) -> Iterator[Observation]:
    """What share of the agent's turns sounds too short for its words?

    Per utterance of the agent that is heard and has 5 words or more: 1 where it sounds for less than 60 % of the time
    that its words take at the agent's own rate, and for at least 1.5 s less. Also 1 where there is a hole of 1 s or
    more in it, and its words take longer than it sounds, by 60 % of the hole or more: sound in the middle was lost. A
    pause takes no time from words. Else 0. The rate is the median of words per second of these utterances, of which
    there have to be 4. Possible, not certain: a text with links is not
    read out word by word. An utterance that the log itself says was cut off is not applicable; one whose sound goes on
    into another's, or past the end of the recording, is unmeasured.

    >>> value(possible_cut_offs, example("0-1 user: Are you open?", "2-3 assistant: Until six."))
    'no_recording'
    """
    call = compare_call(conversation, recording)
    if isinstance(call, NotCompared):
        yield _without(conversation, call)
        return
    spoken = list(_agent_turns(conversation, call))
    past = {turn.utterance.seq for turn in spoken if _last(conversation, call, turn.utterance) > call.end + NEAR}
    clear = [
        turn
        for turn in spoken
        if not turn.sound.shares_breath and turn.sound.seconds > 0 and turn.utterance.seq not in past
    ]
    if len(clear) < FEWEST_FOR_RATE:
        yield unmeasured(conversation, "too_few_turns", f"{len(clear)} turns of {LEAST_WORDS} words")
        return
    rate = median(turn.words / turn.sound.seconds for turn in clear)
    for turn in spoken:
        if turn.utterance.cut_off_by:
            yield not_applicable(turn.utterance, "cut_off_is_logged")
        elif turn.utterance.seq in past:
            yield _outside(call, turn.utterance)
        elif turn not in clear:
            yield unmeasured(turn.utterance, "end_not_heard")
        else:
            yield _cut_off(turn, turn.words / rate, _hole(conversation, call, turn.utterance))


class _AgentTurn(NamedTuple):
    utterance: Utterance
    sound: TurnSound
    words: int


def _agent_turns(conversation: Conversation, call: CallComparison) -> Iterator[_AgentTurn]:
    """Utterances of the agent that are heard, with what the log says was spoken of them."""
    for utterance in conversation.utterances:
        sound = call.comparison.sounds.get(utterance.seq)
        if sound is None or conversation.roles[utterance.speaker] != ASSISTANT:
            continue
        text = utterance.spoken.text if utterance.spoken is not None else utterance.meant()
        words = count_words(text)
        if words >= LEAST_WORDS:
            yield _AgentTurn(utterance, sound, words)


def _last(conversation: Conversation, call: CallComparison, utterance: Utterance) -> float:
    """The logged end of an utterance, in seconds of the sound."""
    return call.comparison.shift.to_sound(max(end for _, end in conversation.sounds(utterance)))


def _hole(conversation: Conversation, call: CallComparison, utterance: Utterance) -> tuple[float, float] | None:
    """The longest time without speech between two sounds of a logged span, in seconds of the sound."""
    shift = call.comparison.shift
    heard = joined(call.sound[ALL if call.is_mixed else utterance.speaker], 0.0)
    holes = [
        (before[1], after[0])
        for start, end in conversation.sounds(utterance)
        for before, after in pairwise(shared([(shift.to_sound(start), shift.to_sound(end))], heard))
        if after[0] - before[1] >= LEAST_HOLE
    ]
    return max(holes, key=lambda hole: hole[1] - hole[0], default=None)


def _cut_off(turn: _AgentTurn, expected: float, hole: tuple[float, float] | None) -> Observation:
    seconds = turn.sound.seconds
    if hole is not None and expected - seconds >= max(LEAST_HOLE, LOST_SHARE * (hole[1] - hole[0])):
        lost = {
            "start": round(hole[0], 3),
            "end": round(hole[1], 3),
            "kind": "cut_off",
            "text": f"{hole[1] - hole[0]:.1f} s without sound inside of a reply; its words take about {expected:.1f} s",
        }
        return ratio(turn.utterance, 1.0, 1.0, details={"moments": [lost]})
    if not (seconds < CUT_SHARE * expected and expected - seconds >= LEAST_CUT):
        return ratio(turn.utterance, 0.0, 1.0)
    start = turn.sound.start or 0.0
    moment = {
        "start": round(start, 3),
        "end": round(start + seconds, 3),
        "kind": "cut_off",
        "text": f"{turn.words} words in {seconds:.1f} s; they take about {expected:.1f} s",
    }
    return ratio(turn.utterance, 1.0, 1.0, details={"moments": [moment]})


def _of_how_many(call: CallComparison) -> str:
    count = len(call.untimed)
    return f"{count} utterance{'s' if count != 1 else ''} without times of sound"


def _without(conversation: Conversation, why: NotCompared) -> Observation:
    make = unmeasured if why.applies else not_applicable
    return make(conversation, why.reason, why.detail)
