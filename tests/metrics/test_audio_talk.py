"""What a recording says by itself, on tracks whose speech is given."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from convoscope.conversation import Clock, Conversation, Participant, Segment, Utterance
from convoscope.metrics.audio.talk import agent_talk_share, longest_silence, overlap_share, speech_share
from convoscope.metrics.declaration import Metric
from convoscope.resources.sound import RecordingError
from convoscope.scores.observation import Observation
from support.tracks import GivenRecording, GivenTrack

CALL = Conversation(id="call", participants=(Participant("u", "user"), Participant("a", "assistant")))
AGENT = [(1.0, 5.0), (10.0, 16.0)]
USER = [(6.0, 9.0), (15.0, 16.5)]
SIDES = (GivenTrack("u", "user", USER, 20.0), GivenTrack("a", "assistant", AGENT, 20.0))
MIXED = (GivenTrack("", "", [(1.0, 5.0), (6.0, 9.0), (10.0, 16.5)], 20.0),)
UNKNOWN = (GivenTrack("", "", USER, 20.0), GivenTrack("", "", AGENT, 20.0))


def observed(metric: Metric, tracks: Sequence[GivenTrack]) -> Observation:
    [observation] = metric(CALL, recording=GivenRecording(tracks))
    return observation


@pytest.mark.parametrize("tracks", [SIDES, MIXED, UNKNOWN])
def test_speech_and_silence_need_no_sides(tracks: Sequence[GivenTrack]) -> None:
    # Speech from 1 to 5, from 6 to 9 and from 10 to 16.5: 13.5 of 20 s.
    assert observed(speech_share, tracks).value == pytest.approx(13.5 / 20)
    silence = observed(longest_silence, tracks)
    # From 5 to 6, and from 9 to 10. Before the first word it is 1 s; after the last one, from 16.5 to 20, it is 3.5 s.
    assert silence.value == pytest.approx(1.0)
    assert silence.details == {
        "before": 1.0,
        "after": 3.5,
        "moments": [
            {"start": 16.5, "end": 20.0, "kind": "silence", "text": "3.5 s without speech, after the last word"}
        ],
    }


def test_silences_from_two_seconds_on_are_shown() -> None:
    # Silent from 0 to 1, from 5 to 7.5, from 8.5 to 10 and from 16 to 20.
    tracks = (GivenTrack("", "", [(1.0, 5.0), (7.5, 8.5), (10.0, 16.0)], 20.0),)
    silence = observed(longest_silence, tracks)
    assert silence.value == 2.5  # a recorder that stops 4 s after the last word is no silence of the call
    assert silence.details is not None
    assert [(one["start"], one["end"]) for one in silence.details["moments"]] == [(5.0, 7.5), (16.0, 20.0)]
    # One of 1.9 s is a figure, and no mark.
    short = observed(longest_silence, (GivenTrack("", "", [(0.0, 5.0), (6.9, 10.0)], 10.0),))
    assert (short.value, short.details) == (1.9, {"before": 0.0, "after": 0.0})


@pytest.mark.parametrize("tracks", [SIDES, UNKNOWN])
def test_overlap_needs_two_tracks_and_no_names(tracks: Sequence[GivenTrack]) -> None:
    overlap = observed(overlap_share, tracks)
    # Both from 15 to 16: 1 of 13.5 s.
    assert (overlap.numerator, overlap.denominator) == (1.0, 13.5)
    assert overlap.details is not None
    assert [(one["start"], one["end"], one["kind"]) for one in overlap.details["moments"]] == [(15.0, 16.0, "overlap")]


def test_the_agents_share_needs_to_know_who_it_is() -> None:
    # The agent 4 + 6 s, the user 3 + 1.5 s.
    assert observed(agent_talk_share, SIDES).value == pytest.approx(10 / 14.5)
    assert observed(agent_talk_share, UNKNOWN).reason == "speakers_unknown"


def test_one_channel_has_no_overlap_and_no_shares() -> None:
    for metric in (overlap_share, agent_talk_share):
        assert observed(metric, MIXED).reason == "speakers_unknown"


def test_the_times_of_the_log_cut_one_channel_into_shares() -> None:
    # The agent alone from 1 to 5 and 10 to 15, the user alone from 6 to 9 and 16 to 16.5: 9 of 12.5 s.
    lines = [("a", 1.0, 5.0), ("u", 6.0, 9.0), ("a", 10.0, 16.0), ("u", 15.0, 16.5)]
    timeline = tuple(
        Utterance(seq=seq, speaker=who, segments=(Segment(start, end),)) for seq, (who, start, end) in enumerate(lines)
    )
    clocks = (Clock(id="audio", kind="audio", offset=0.0),)
    call = Conversation(id="call", participants=CALL.participants, clocks=clocks, timeline=timeline)
    [share] = agent_talk_share(call, recording=GivenRecording(MIXED))
    assert (share.numerator, share.denominator, share.details) == (9.0, 12.5, {"basis": "segments"})


def test_a_silent_side_is_no_share_of_zero() -> None:
    sides = (SIDES[0], GivenTrack("a", "assistant", [], 20.0))
    for metric in (overlap_share, agent_talk_share):
        assert observed(metric, sides).reason == "recording_silent"


def test_a_side_that_is_not_recorded_is_no_silence() -> None:
    """The user speaks for 4 s by the log, and the channel of the user holds nothing."""
    silent, talks = GivenTrack("u", "user", [], 20.0), GivenTrack("a", "assistant", AGENT, 20.0)

    def said(*lines: tuple[str, float, float]) -> Conversation:
        timeline = tuple(
            Utterance(seq=seq, speaker=who, segments=(Segment(start, end),))
            for seq, (who, start, end) in enumerate(lines)
        )
        return msgspec.structs.replace(CALL, timeline=timeline, clocks=(Clock(id="audio", kind="audio"),))

    agent, user = ("a", 1.0, 5.0), ("u", 6.0, 10.0)
    unknown = (GivenTrack("", "", [], 20.0), GivenTrack("", "", AGENT, 20.0))
    for metric in (speech_share, longest_silence):
        for call, tracks in (
            (said(agent, user), (silent, talks)),
            (said(agent, user), unknown),  # one of the two sides is missing, whichever it is
            (CALL, (silent, talks)),  # nothing says that the user was silent
        ):
            [observation] = metric(call, recording=GivenRecording(tracks))
            assert (observation.value, observation.reason) == (None, "side_not_recorded")
        # By the log only the agent speaks, as on a mailbox: 4 + 6 of 20 s, and 5 s between them.
        [alone] = metric(said(agent), recording=GivenRecording((silent, talks)))
        assert alone.value == pytest.approx(0.5 if metric is speech_share else 5.0)


@pytest.mark.parametrize(
    ("spans", "seconds", "covers"),
    [
        ([(1.0, 5.0), (6.0, 9.0), (10.0, 16.0), (17.0, 20.0)], 21.0, None),
        ([(1.0, 5.0), (6.0, 9.0)], 9.5, "the recording ends at 0:09, the log at 0:20"),
        (
            [(1.0, 5.0), (6.0, 9.0), (10.0, 16.0), (17.0, 20.0), (70.0, 76.0)],
            80.0,
            "the log ends at 0:20, the recording at 1:20, with 6.0 s of speech more",
        ),
    ],
)
def test_what_part_of_the_log_is_recorded(spans: list[tuple[float, float]], seconds: float, covers: str | None) -> None:
    lines = [("a", 1.0, 5.0), ("u", 6.0, 9.0), ("a", 10.0, 16.0), ("u", 17.0, 20.0)]
    timeline = tuple(
        Utterance(seq=seq, speaker=who, segments=(Segment(start, end),)) for seq, (who, start, end) in enumerate(lines)
    )
    call = msgspec.structs.replace(CALL, timeline=timeline, clocks=(Clock(id="audio", kind="audio"),))
    for metric in (speech_share, longest_silence):
        [observation] = metric(call, recording=GivenRecording((GivenTrack("", "", spans, seconds),)))
        assert (observation.details or {}).get("covers") == covers


def test_an_echo_of_the_agent_is_no_overlap() -> None:
    agent = [(1.0, 12.0), (20.0, 30.0)]
    echo = (GivenTrack("u", "user", [*agent, (14.0, 16.0)], 40.0), GivenTrack("a", "assistant", agent, 40.0))
    for metric in (overlap_share, agent_talk_share):
        assert observed(metric, echo).reason == "channels_not_separate"


def test_next_to_no_speech_is_no_measurement() -> None:
    quiet = (GivenTrack("u", "user", [(1.0, 3.0)], 20.0), GivenTrack("a", "assistant", [], 20.0))
    for metric in (speech_share, longest_silence, overlap_share, agent_talk_share):
        assert (observed(metric, quiet).status, observed(metric, quiet).reason) == (
            "not_applicable",
            "too_little_speech",
        )


def test_what_cannot_be_opened_has_its_reason() -> None:
    class Broken(GivenRecording):
        def tracks(self, conversation: Conversation) -> Sequence[GivenTrack]:
            raise RecordingError("recording_not_found", "call.wav")

    [observation] = speech_share(CALL, recording=Broken(()))
    assert (observation.status, observation.reason) == ("unmeasured", "recording_not_found")
    assert observation.detail == "call.wav"
