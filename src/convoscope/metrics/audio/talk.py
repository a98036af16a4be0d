"""What a recording says by itself: how long there is speech, silence and overlap, and who has the floor."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from statistics import median

from convoscope.audio.against_log import Spans, are_separate, joined, shared, total
from convoscope.audio.call_comparison import CallComparison, compare_call, without_speech
from convoscope.audio.levels import QUIET, levels_of
from convoscope.audio.reader import FORMAT, SILENT, SPEECH
from convoscope.audio.sides import logged_spans
from convoscope.audio.speakers import LEAST_SPEECH, sounds_of
from convoscope.conversation import ASSISTANT, USER, Conversation, Marker
from convoscope.metrics.declaration import CONVERSATION, LOWER, NEITHER, SECONDS, SHARE, metric
from convoscope.metrics.needs import Need
from convoscope.resources.sound import NOT_SEPARATE_TEXT, RecordedTrack, Recording, RecordingError
from convoscope.scores.observation import NOT_APPLICABLE, Observation, measured, not_applicable, ratio, unmeasured
from convoscope.scores.reducers import MEAN, MEAN_OF_CONVERSATIONS, RATIO_OF_SUMS, RATIO_WITHIN, Reduce

LEAST_OVERLAP = 0.2
"""Seconds. A shorter overlap is counted, and not shown."""
LEAST_SILENCE = 2.0
"""Seconds. A shorter silence is counted, and not shown."""
MOST_MOMENTS = 200


def _is_bare(conversation: Conversation) -> bool:
    """A recording without a log: reading it was listening to it, so what it holds is known before it is scored."""
    return conversation.source.format == FORMAT


def _speech_of(conversation: Conversation) -> float:
    spans = [span for one in conversation.utterances for span in conversation.sounds(one)]
    marks = [one.time for one in conversation.timeline if type(one) is Marker and one.name == SPEECH]
    return total(spans) + sum(time.until - time.at for time in marks if time is not None and time.until is not None)


NOT_SILENT = Need(
    SILENT,
    "recording",
    "a recording that is louder than −60 dBFS somewhere",
    lambda conversation: (
        not (
            _is_bare(conversation) and conversation.recording is not None and conversation.recording.extras.get(SILENT)
        )
    ),
)
SOME_SPEECH = Need(
    "too_little_speech",
    "recording",
    f"{LEAST_SPEECH:g} seconds of speech",
    lambda conversation: not _is_bare(conversation) or _speech_of(conversation) >= LEAST_SPEECH,
    status_if_missing=NOT_APPLICABLE,
)
HEARD = (NOT_SILENT, SOME_SPEECH)
TWO_TRACKS = Need(
    "speakers_unknown",
    "recording.tracks",
    "a recording with a channel for each side",
    lambda conversation: not _is_bare(conversation) or bool(conversation.participants),
)
SIDES = Need(
    "speakers_unknown",
    "participants.role",
    "who is on which channel: --speaker agent=LABEL --speaker user=LABEL",
    lambda conversation: {USER, ASSISTANT} <= set(conversation.roles.values()),
)


def side(role: str) -> tuple[Need, ...]:
    """What a metric of one side needs: speech, and to know whose it is."""
    label = {ASSISTANT: "agent"}.get(role, role)
    known = Need(
        "speakers_unknown",
        "participants.role",
        f"who is on which channel: --speaker {label}=LABEL",
        lambda conversation: not _is_bare(conversation) or role in conversation.roles.values(),
    )
    return (*HEARD, known)


_share = partial(
    metric,
    version=5,
    observes=CONVERSATION,
    unit=SHARE,
    better=NEITHER,
    reduce=Reduce(RATIO_WITHIN, RATIO_OF_SUMS),
    sensitive_to=(),
)


@_share("audio.speech_share", needs=HEARD, label="share of the recording with speech", importance=2)
def speech_share(conversation: Conversation, recording: Recording) -> Observation:
    """In what share of the recording does someone speak?

    Seconds of speech ÷ seconds of the recording, by voice activity. It does not matter who speaks. A recording with
    less than 3 s of speech is not applicable. Where the log's times fit the sound and the recording ends before the
    log, or goes on with other speech, the details say so (`covers`). A side that is not in the recording would count as
    silence: unmeasured where a channel has no speech, unless a log says that its side says nothing.

    >>> value(speech_share, example("0-1 user: Are you open?", "2-3 assistant: Until six."))
    'no_recording'
    """
    tracks = _whole_tracks(conversation, recording)
    if isinstance(tracks, Observation):
        return tracks
    covers = _coverage(conversation, recording)
    return ratio(conversation, round(total(_all_speech(tracks)), 3), round(_length(tracks), 3), details=covers or None)


@metric(
    "audio.longest_silence",
    version=5,
    label="longest silence",
    importance=4,
    observes=CONVERSATION,
    unit=SECONDS,
    better=LOWER,
    needs=HEARD,
    reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
    sensitive_to=(),
)
def longest_silence(conversation: Conversation, recording: Recording) -> Observation:
    """How long is the longest silence?

    The longest time in which no one speaks, by voice activity, from the first speech of the recording to the last. What
    is before and after is no silence of the call: its seconds are in the details, `before` and `after`. The details
    have all that last 2 s or longer, and what the recording has less or more than the log (`covers`), too. Music and
    ringing are no speech. A recording with less than 3 s of speech is not applicable. Unmeasured where a channel has no
    speech, unless a log says that its side says nothing.

    >>> value(longest_silence, example("0-1 user: Are you open?", "2-3 assistant: Until six."))
    'no_recording'
    """
    tracks = _whole_tracks(conversation, recording)
    if isinstance(tracks, Observation):
        return tracks
    speech = _all_speech(tracks)
    begin = _begin(tracks)
    before, after = (begin, speech[0][0]), (speech[-1][1], begin + _length(tracks))
    gaps = [(one[1], other[0]) for one, other in pairwise(speech)]
    silences = (gap for gap in (before, *gaps, after) if gap[1] - gap[0] >= LEAST_SILENCE)
    shown = sorted(silences, key=lambda gap: gap[0] - gap[1])
    moments = []
    for start, end in sorted(shown[:MOST_MOMENTS]):
        is_before, is_after = (start, end) == before, (start, end) == after
        kind = "before the first word" if is_before else "after the last word" if is_after else "between words"
        text = f"{end - start:.1f} s without speech, {kind}"
        moments.append({"start": start, "end": end, "kind": "silence", "text": text})
    longest = max((end - start for start, end in gaps), default=0.0)
    details = {
        "before": round(max(0.0, before[1] - before[0]), 3),
        "after": round(max(0.0, after[1] - after[0]), 3),
        **_coverage(conversation, recording),
        **({"moments": moments} if moments else {}),
    }
    return measured(conversation, round(longest, 3), details=details)


@_share("audio.overlap_share", needs=(*HEARD, TWO_TRACKS), label="share of speech in which both speak", importance=3)
def overlap_share(conversation: Conversation, recording: Recording) -> Observation:
    """In what share of the speech do two sides speak at once?

    Seconds in which there is speech on two tracks ÷ seconds with speech, by voice activity. It needs a track for each
    side, and not who is who. An echo of one track on another is left out. Where most speech of one track is still on
    another too, the tracks are not separate: unmeasured. Of a recording without a log, the details have the seconds and
    the share of each channel, and the silence from the end of one side to the beginning of the other (`talk`): they
    claim nothing of who is on which channel.

    >>> value(overlap_share, example("0-1 user: Are you open?", "2-3 assistant: Until six."))
    'no_recording'
    """
    sides = _sides(conversation, recording)
    if isinstance(sides, Observation):
        return sides
    spans = [joined(track, 0.0) for track in sides]
    both = joined(
        [span for index, one in enumerate(spans) for other in spans[index + 1 :] for span in shared(one, other)], 0.0
    )
    moments = [
        {"start": start, "end": end, "kind": "overlap", "text": f"both speak for {end - start:.1f} s"}
        for start, end in both
        if end - start >= LEAST_OVERLAP
    ]
    speech = joined([span for one in spans for span in one], 0.0)
    gaps = _gaps(spans)
    seconds = [total(one) for one in spans]
    talk = {
        f"channel {number}": f"{one:.1f} s, {100 * one / sum(seconds):.1f} % of the speech of all"
        for number, one in enumerate(seconds, 1)
    }
    talk |= {"gap": f"{median(gaps):.2f} s, median of {len(gaps):,} changes of side"} if gaps else {}
    details = {"moments": moments[:MOST_MOMENTS]} if moments else {}
    return ratio(
        conversation,
        round(total(both), 3),
        round(total(speech), 3),
        details={**details, "talk": talk} if _is_bare(conversation) else details or None,
    )


@_share("audio.agent_talk_share", needs=(*HEARD, SIDES), label="agent's share of the speech", importance=3)
def agent_talk_share(conversation: Conversation, recording: Recording) -> Observation:
    """What share of the speech is the agent's?

    Seconds of the agent's speech ÷ the sum of those of the agent's and of the user's, by voice activity. It needs to be
    known who is who. Where both are on one channel, the times of the log cut it into sides, `basis` in the details is
    `segments`, and what both say at once is no one's.

    >>> value(agent_talk_share, example("0-1 user: Are you open?", "2-3 assistant: Until six."))
    'no_recording'
    """
    tracks = _tracks(conversation, recording)
    if isinstance(tracks, Observation):
        return tracks
    try:
        _refuse_silent(tracks)
        sounds = [sounds_of(conversation, tracks, role) for role in (ASSISTANT, USER)]
    except RecordingError as error:
        return unmeasured(conversation, error.reason, error.detail)
    basis = ", ".join(dict.fromkeys(sound.basis for side in sounds for sound in side))
    spans = [joined([span for one in side for span in _common_spans(one.track, one.speech)], 0.0) for side in sounds]
    if "segments" not in basis and not are_separate(spans):
        return unmeasured(conversation, "channels_not_separate")
    agent, user = map(total, spans)
    details = {"basis": basis} if "segments" in basis else None
    return ratio(conversation, round(agent, 3), round(agent + user, 3), details=details)


def _refuse_silent(tracks: Sequence[RecordedTrack]) -> None:
    """Raise where a side of several is not in the recording: that no one is heard there is no share of zero."""
    for track in tracks if len(tracks) > 1 else ():
        if not track.speech() and levels_of(track).peak < QUIET:
            raise RecordingError("recording_silent", f"{track.speaker or 'a channel'} is never louder than −60 dBFS")


def _coverage(conversation: Conversation, recording: Recording) -> dict[str, str]:
    """What part of the log the recording holds, where it is not all of it, or holds more; nothing if unknown."""
    compared = compare_call(conversation, recording)
    if not isinstance(compared, CallComparison):
        return {}
    shift = compared.comparison.shift
    last = max(shift.to_sound(end) for one in conversation.utterances for _, end in conversation.sounds(one))
    if last - compared.end > LEAST_SILENCE:
        return {"covers": f"the recording ends at {_clock(compared.end)}, the log at {_clock(last)}"}
    more = joined([span for spans in compared.sound.values() for span in spans], 0.0)
    beyond = total(shared(more, [(last + LEAST_SILENCE, compared.end)]))
    if beyond < LEAST_SPEECH:
        return {}
    text = (
        f"the log ends at {_clock(last)}, the recording at {_clock(compared.end)}, with {beyond:.1f} s of speech more"
    )
    return {"covers": text}


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def _refuse_missing(conversation: Conversation, tracks: Sequence[RecordedTrack]) -> None:
    """Raise where a channel holds no speech, and no log says that its side says nothing: the side is not recorded."""
    roles = {conversation.roles[one.speaker] for one in conversation.utterances} & {USER, ASSISTANT}
    has_log = bool(roles) and not _is_bare(conversation)
    for track in tracks if len(tracks) > 1 else ():
        if track.speech() or (has_log and (track.role not in roles if track.role else len(roles) < 2)):
            continue
        if levels_of(track).peak < QUIET:
            raise RecordingError("side_not_recorded", f"{track.role or 'a channel'} is never louder than −60 dBFS")
        if total(joined(logged_spans(conversation, track.role), 0.0)) >= LEAST_SPEECH:
            raise RecordingError("side_not_recorded", f"no speech of the {track.role} is heard, and the log has some")


def _whole_tracks(conversation: Conversation, recording: Recording) -> Sequence[RecordedTrack] | Observation:
    """The tracks of a recording with some speech, in which no side is missing; or why nothing is measured."""
    tracks = _tracks(conversation, recording)
    if not isinstance(tracks, Observation):
        try:
            _refuse_missing(conversation, tracks)
        except RecordingError as error:
            return unmeasured(conversation, error.reason, error.detail)
    return tracks


def _tracks(conversation: Conversation, recording: Recording) -> Sequence[RecordedTrack] | Observation:
    """The tracks of a recording with some speech, or why nothing is measured."""
    try:
        tracks = recording.tracks(conversation)
        refusal = without_speech(tracks)
    except RecordingError as error:
        return unmeasured(conversation, error.reason, error.detail)
    if refusal is None:
        return tracks
    explain = unmeasured if refusal.applies else not_applicable
    return explain(conversation, refusal.reason, refusal.detail)


def _sides(conversation: Conversation, recording: Recording) -> list[Spans] | Observation:
    """The speech of each of several tracks, each with its own speaker."""
    tracks = _tracks(conversation, recording)
    if isinstance(tracks, Observation):
        return tracks
    if any(track.basis == "not_separate" for track in tracks):
        return unmeasured(conversation, "channels_not_separate", NOT_SEPARATE_TEXT)
    if len(tracks) < 2:
        return unmeasured(conversation, "speakers_unknown", "all speak on one channel")
    try:
        _refuse_silent(tracks)
    except RecordingError as error:
        return unmeasured(conversation, error.reason, error.detail)
    spans = [spans for _, spans in _in_common_time(tracks)]
    if not are_separate(spans):
        return unmeasured(conversation, "channels_not_separate")
    return spans


def _gaps(sides: Sequence[Spans]) -> list[float]:
    """The silences after which the other side speaks than the one that spoke last."""
    utterances = sorted((start, end, side) for side, spans in enumerate(sides) for start, end in joined(spans, 1.0))
    gaps: list[float] = []
    last, who = -1.0, -1
    for start, end, side in utterances:
        if who >= 0 and side != who and start > last:
            gaps.append(start - last)
        if end > last:
            last, who = end, side
    return gaps


def _in_common_time(tracks: Sequence[RecordedTrack]) -> list[tuple[RecordedTrack, Spans]]:
    return [(track, _common_spans(track, track.speech())) for track in tracks]


def _common_spans(track: RecordedTrack, speech: Spans) -> Spans:
    return [(start + (track.offset or 0.0), end + (track.offset or 0.0)) for start, end in speech]


def _all_speech(tracks: Sequence[RecordedTrack]) -> list[tuple[float, float]]:
    return joined([span for _, spans in _in_common_time(tracks) for span in spans], 0.0)


def _begin(tracks: Sequence[RecordedTrack]) -> float:
    return min(track.offset or 0.0 for track in tracks)


def _length(tracks: Sequence[RecordedTrack]) -> float:
    return max((track.offset or 0.0) + track.seconds for track in tracks) - _begin(tracks)
