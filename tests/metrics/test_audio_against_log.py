"""A log against the sound of its call, on tracks whose speech is given: what each metric says, derived by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from convoscope.conversation import Clock, Conversation, Participant, Segment, Text, Utterance
from convoscope.metrics.audio import against_log as metrics
from convoscope.metrics.declaration import Metric
from convoscope.scores.observation import Observation
from support.tracks import GivenRecording, GivenTrack

WORDS = "one two three four five six seven eight nine ten"
Line = tuple[str, float, float]

# (speaker, start, end): the agent's ten words take 4 s, but for the last.
LINES: list[Line] = [
    ("a", 1.0, 5.0),
    ("u", 6.0, 8.0),
    ("a", 9.0, 13.0),
    ("u", 14.5, 16.0),
    ("a", 17.0, 21.0),
    ("u", 22.3, 25.0),
    ("a", 26.0, 30.0),
]
METRICS: tuple[Metric, ...] = (
    metrics.log_offset,
    metrics.log_drift,
    metrics.log_jitter,
    metrics.turns_not_in_sound,
    metrics.speech_not_in_log,
    metrics.lost_barge_ins,
    metrics.possible_cut_offs,
)


def call(lines: Sequence[Line], later: float = 0.0, source: str = "", **options: Any) -> Conversation:
    """A log of these lines, dated by a clock that is so many seconds ahead."""
    utterances = [
        Utterance(
            seq=seq,
            speaker=who,
            intended=Text(WORDS),
            segments=(Segment(start + later, end + later, "audio"),),
            **options.get(str(seq), {}),
        )
        for seq, (who, start, end) in enumerate(lines)
    ]
    return Conversation(
        id="call",
        participants=(Participant("u", "user"), Participant("a", "assistant")),
        clocks=(Clock(id="audio", kind="audio", offset=0.0, source=source),),
        timeline=tuple(utterances),
    )


def sound(lines: Sequence[Line], offset: float | None = 0.0) -> GivenRecording:
    """The two sides of a recording in which these lines are heard."""
    spans = {who: sorted((start, end) for speaker, start, end in lines if speaker == who) for who in ("u", "a")}
    return GivenRecording(
        [GivenTrack("u", "user", spans["u"], 40.0, offset), GivenTrack("a", "assistant", spans["a"], 40.0, offset)]
    )


def mono(lines: Sequence[Line]) -> GivenRecording:
    return GivenRecording([GivenTrack("", "", sorted((start, end) for _, start, end in lines), 40.0)])


def one(metric: Metric, conversation: Conversation, recording: GivenRecording) -> Observation:
    [observation] = metric(conversation, recording=recording)
    return observation


def values(metric: Metric, conversation: Conversation, recording: GivenRecording) -> dict[str, float | None]:
    return {each.subject.id: each.value for each in metric(conversation, recording=recording)}


def moments(observation: Observation) -> list[tuple[float, float, str]]:
    assert observation.details is not None
    return [(each["start"], each["end"], each["kind"]) for each in observation.details["moments"]]


def test_clock_that_is_ahead_is_an_offset_and_nothing_else() -> None:
    log, heard = call(LINES, later=2.5), sound(LINES)
    offset = one(metrics.log_offset, log, heard)
    assert (offset.value, offset.details) == (2.5, {"offset": 2.5, "turns": 7})
    assert set(values(metrics.log_jitter, log, heard).values()) == {0.0}
    assert set(values(metrics.turns_not_in_sound, log, heard).values()) == {0.0}
    assert one(metrics.speech_not_in_log, log, heard).value == 0.0


def test_clock_that_is_behind_has_its_sign_in_the_details() -> None:
    offset = one(metrics.log_offset, call(LINES, later=-0.75), sound(LINES))
    assert (offset.value, offset.details) == (0.75, {"offset": -0.75, "turns": 7})


def test_without_the_start_of_the_recording_no_offset_is_claimed() -> None:
    log, heard = call(LINES, later=1_700_000_000.0), sound(LINES, offset=None)
    assert one(metrics.log_offset, log, heard).reason == "recording_start_unknown"
    # The turns are found all the same.
    assert set(values(metrics.log_jitter, log, heard).values()) == {0.0}


def test_drift_is_in_seconds_per_minute() -> None:
    lines = [(who, start + 30 * block, end + 30 * block) for block in range(3) for who, start, end in LINES]
    # The log's clock runs 1 % fast: 0.6 s a minute. The last start, at 86 s, is logged at 86.86.
    fast = [(who, 1.01 * start, 1.01 * end) for who, start, end in lines]
    drift = one(metrics.log_drift, call(fast), sound(lines))
    assert drift.value == pytest.approx(0.6, abs=1e-3)
    assert one(metrics.log_drift, call(LINES), sound(LINES)).reason == "too_few_turns"  # 25 s are too short


def test_turn_that_is_logged_late_is_jitter_of_that_turn() -> None:
    late = [*LINES[:4], ("a", 17.4, 21.4), *LINES[5:]]
    assert values(metrics.log_jitter, call(late), sound(LINES)) == {
        **dict.fromkeys("012356", 0.0),
        "4": pytest.approx(0.4),
    }


def test_turn_that_is_not_heard() -> None:
    log, heard = call(LINES), sound([*LINES[:4], *LINES[5:]])
    observations = {each.subject.id: each for each in metrics.turns_not_in_sound(log, recording=heard)}
    assert {id for id, each in observations.items() if each.value} == {"4"}
    assert moments(observations["4"]) == [(17.0, 21.0, "not_in_sound")]
    assert {each.reason for each in metrics.log_jitter(log, recording=heard)} == {"", "not_in_sound"}


def test_speech_that_is_not_logged() -> None:
    share = one(metrics.speech_not_in_log, call([*LINES[:3], *LINES[4:]]), sound(LINES))
    # 1.5 s, of 4 × 4 s of the agent and 2 + 1.5 + 2.7 s of the user.
    assert (share.numerator, share.denominator) == (1.5, 22.2)
    assert moments(share) == [(14.5, 16.0, "not_in_log")]


def test_barge_in_that_is_lost_and_one_that_is_logged() -> None:
    spoken = [*LINES, ("u", 10.0, 11.5), ("u", 27.0, 28.0)]
    share = one(metrics.lost_barge_ins, call([*LINES, ("u", 27.0, 28.0)]), sound(spoken))
    assert (share.numerator, share.denominator) == (1.0, 2.0)
    assert moments(share) == [(10.0, 11.5, "barge_in_lost")]


def test_silent_recording_has_its_reason() -> None:
    for metric in METRICS:
        assert (one(metric, call(LINES), sound([])).status, one(metric, call(LINES), sound([])).reason) == (
            "unmeasured",
            "recording_silent",
        )


def test_person_who_takes_over_is_on_the_track_of_someone_else() -> None:
    lines = [*LINES, ("a", 31.0, 34.0)]
    log = call(LINES)
    person = Utterance(seq=7, speaker="p", intended=Text("hello"), segments=(Segment(31.0, 34.0, "audio"),))
    log = Conversation(
        id="call",
        participants=(*log.participants, Participant("p", "human")),
        clocks=log.clocks,
        timeline=(*log.timeline, person),
    )
    assert one(metrics.speech_not_in_log, log, sound(lines)).reason == "no_track_of_speaker"


def test_murmur_is_no_barge_in() -> None:
    # 0.6 s over the agent.
    share = one(metrics.lost_barge_ins, call(LINES), sound([*LINES, ("u", 10.0, 10.6)]))
    assert (share.status, share.reason) == ("not_applicable", "no_barge_in")


def test_reply_that_is_too_short_for_its_words() -> None:
    # The others take 4 s for ten words. This one sounds for 1.5 s: less than 60 % of 4 s, and 2.5 s less.
    heard = sound([*LINES[:4], ("a", 17.0, 18.5), *LINES[5:]])
    observations = {each.subject.id: each for each in metrics.possible_cut_offs(call(LINES), recording=heard)}
    assert {id: each.value for id, each in observations.items()} == {"0": 0.0, "2": 0.0, "4": 1.0, "6": 0.0}
    assert moments(observations["4"]) == [(17.0, 18.5, "cut_off")]


def test_cut_that_the_log_knows_of_is_none_that_was_lost() -> None:
    heard = sound([*LINES[:4], ("a", 17.0, 18.5), *LINES[5:]])
    log = call(LINES, **{"4": {"cut_off_by": "u"}})
    reasons = {each.subject.id: each.reason for each in metrics.possible_cut_offs(log, recording=heard)}
    assert reasons == {"0": "", "2": "", "4": "cut_off_is_logged", "6": ""}


def test_times_that_were_heard_in_the_sound_say_nothing_against_it() -> None:
    log = call(LINES, source="voice activity")
    for metric in METRICS:
        assert (one(metric, log, sound(LINES)).status, one(metric, log, sound(LINES)).reason) == (
            "not_applicable",
            "times_from_sound",
        )


def test_other_recording_is_no_log_without_sound() -> None:
    other = sound([("a", 30.0, 31.0), ("u", 2.0, 9.5), ("u", 12.0, 29.0), ("a", 35.5, 39.0), ("u", 33.0, 34.0)])
    for metric in METRICS:
        assert one(metric, call(LINES), other).reason == "log_does_not_fit_sound"


def test_turns_after_the_end_of_the_recording_are_not_unheard() -> None:
    """The file ends at 15 s: the last three turns are outside, and of the fourth 0.5 s are in it."""
    heard = [*LINES[:3], ("u", 14.5, 15.0)]
    tracks = [
        GivenTrack(who, role, [(start, end) for speaker, start, end in heard if speaker == who], 15.0)
        for who, role in (("u", "user"), ("a", "assistant"))
    ]
    found = metrics.turns_not_in_sound(call(LINES), recording=GivenRecording(tracks))
    assert [(each.subject.id, each.value, each.reason) for each in found if each.reason] == [
        ("4", None, "outside_recording"),
        ("5", None, "outside_recording"),
        ("6", None, "outside_recording"),
    ]
    assert [each.value for each in found if not each.reason] == [0.0] * 4
    assert found[-1].detail == "the recording lasts 15.0 s"
    # In a recording that goes on, they are missing.
    tracks = [GivenTrack(one.speaker, one.role, one.spans, 40.0) for one in tracks]
    assert values(metrics.turns_not_in_sound, call(LINES), GivenRecording(tracks))["6"] == 1.0


def test_a_reply_that_the_end_of_the_recording_cuts_was_not_cut_off() -> None:
    """Five turns of the agent of 4 s each; of the last, 1.5 s are in the file: less than 60 %, and 2.5 s missing."""
    lines = [("a", 6.0 * number, 6.0 * number + 4) for number in range(5)]
    heard = [*lines[:4], ("a", 24.0, 25.5)]

    def cut_off(seconds: float) -> list[tuple[str, float | None, str]]:
        tracks = [GivenTrack("a", "assistant", [line[1:] for line in heard], seconds), GivenTrack("u", "user", [], 1.0)]
        found = metrics.possible_cut_offs(call(lines), recording=GivenRecording(tracks))
        return [(each.subject.id, each.value, each.reason or "") for each in found][-1:]

    assert cut_off(25.5) == [("4", None, "outside_recording")]
    assert cut_off(40.0) == [("4", 1.0, "")]


def test_voices_all_call_long_say_nothing_about_the_turns() -> None:
    """A television on the caller's line: the channels are not separate, and no pause of the log is heard."""
    agent = [line[1:] for line in LINES if line[0] == "a"]
    television = GivenRecording(
        [GivenTrack("u", "user", [(0.0, 40.0)], 40.0), GivenTrack("a", "assistant", agent, 40.0)]
    )
    for metric in METRICS:
        assert one(metric, call(LINES), television).reason == "log_does_not_fit_sound"
    # An echo of the agent, which ends where the agent does, does not hide the pauses.
    user = [line[1:] for line in LINES if line[0] == "u"]
    echo = GivenRecording(
        [GivenTrack("u", "user", sorted([*user, *agent]), 40.0), GivenTrack("a", "assistant", agent, 40.0)]
    )
    assert set(values(metrics.turns_not_in_sound, call(LINES), echo).values()) == {0.0}


def test_one_channel_has_turns_and_no_barge_ins() -> None:
    spoken = [*LINES[:4], *LINES[5:]]
    assert values(metrics.turns_not_in_sound, call(LINES), mono(spoken))["4"] == 1.0
    assert one(metrics.lost_barge_ins, call(LINES), mono(spoken)).reason == "speakers_unknown"
    # Who overlaps another by the log may be heard there or not.
    both = [*LINES, ("u", 10.0, 11.0)]
    assert values(metrics.turns_not_in_sound, call(both), mono(LINES))["7"] is None


def test_utterance_without_times_leaves_open_whose_speech_it_is() -> None:
    log = call(LINES)
    timeline = tuple(
        each if each.seq != 3 else Utterance(seq=3, speaker="u", heard=Text("yes")) for each in log.utterances
    )
    log = Conversation(id="call", participants=log.participants, clocks=log.clocks, timeline=timeline)
    assert one(metrics.speech_not_in_log, log, sound(LINES)).reason == "times_missing"
    assert one(metrics.lost_barge_ins, log, sound(LINES)).reason == "times_missing"
    reasons = {each.subject.id: each.reason for each in metrics.turns_not_in_sound(log, recording=sound(LINES))}
    assert reasons["3"] == "no_sound"


def test_short_drift_is_no_jitter() -> None:
    # A clock that runs 3 % fast over 25 s: the last start is 0.9 s late. Too short for a drift of its own.
    fast = [(who, 1.03 * start, 1.03 * end) for who, start, end in LINES]
    log = call(fast)
    assert one(metrics.log_drift, log, sound(LINES)).reason == "too_few_turns"
    jitter = values(metrics.log_jitter, log, sound(LINES))
    assert jitter == dict.fromkeys("0123456", pytest.approx(0.0, abs=0.002))
    # Two that are late by themselves are off the line by as much.
    late = [*fast[:2], ("a", fast[2][1] + 0.4, fast[2][2] + 0.4), *fast[3:]]
    assert values(metrics.log_jitter, call(late), sound(LINES))["2"] == pytest.approx(0.4, abs=0.05)


def test_three_starts_that_drift_apart_are_no_jitter() -> None:
    log = call([(who, 1.03 * start, 1.03 * end) for who, start, end in (LINES[0], LINES[3], LINES[6])])
    heard = sound([LINES[0], LINES[3], LINES[6]])
    assert {each.reason for each in metrics.log_jitter(log, recording=heard)} == {"too_few_turns"}


def test_sound_that_is_lost_inside_of_a_reply() -> None:
    # Ten words take 4 s. Of the reply from 17 to 21, 1.5 s are lost in the middle: it sounds for 2.5 s.
    holed = [*LINES[:4], ("a", 17.0, 18.0), ("a", 19.5, 21.0), *LINES[5:]]
    found = {each.subject.id: each for each in metrics.possible_cut_offs(call(LINES), recording=sound(holed))}
    assert {id: each.value for id, each in found.items()} == {"0": 0.0, "2": 0.0, "4": 1.0, "6": 0.0}
    assert moments(found["4"]) == [(18.0, 19.5, "cut_off")]
    # With a pause of 2.5 s in it, the same words last longer: they sound for 4 s, and nothing is lost.
    paused = [*LINES[:4], ("a", 17.0, 23.5), ("u", 24.3, 27.0), ("a", 28.0, 32.0)]
    heard = [*LINES[:4], ("a", 17.0, 19.0), ("a", 21.5, 23.5), *paused[5:]]
    assert set(values(metrics.possible_cut_offs, call(paused), sound(heard)).values()) == {0.0}
    # A clock that is ahead moves no hole.
    shifted = {each.subject.id: each for each in metrics.possible_cut_offs(call(LINES, 2.5), recording=sound(holed))}
    assert moments(shifted["4"]) == [(18.0, 19.5, "cut_off")]
