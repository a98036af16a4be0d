"""Moments of several clocks on one scale, and when a conversation began."""

from __future__ import annotations

import pytest

from convoscope.conversation import Clock, Conversation, Marker, Segment, Time
from support.chats import UNPLACED, agent, chat, user

# The audio clock starts when the wall shows 1000; the third relates to no other.
CLOCKS = (
    Clock(id="wall", kind="wall", offset=0.0),
    Clock(id="audio", kind="audio", offset=1000.0),
    Clock(id="alone", kind="relative"),
)


def call(*events: object) -> Conversation:
    return chat(*events, clocks=CLOCKS)  # type: ignore[arg-type]


@pytest.mark.parametrize(("time", "common"), [(Time(7, "wall"), 7), (Time(7, "audio"), 1007), (Time(7, "alone"), 7)])
def test_a_moment_is_told_in_seconds_of_the_common_time(time: Time, common: float) -> None:
    assert call().common(time) == common


def test_each_stretch_of_sound_has_start_and_end() -> None:
    spoken = call(user("yes, er, no", sound=[(1, 2), (2.5, 4)]))
    assert spoken.sounds(spoken.utterances[0]) == [(1001, 1002), (1002.5, 1004)]
    assert call().sounds(user("nothing was recorded")) == []


def test_stretches_of_several_clocks_meet_on_one_scale() -> None:
    both = user("yes")
    mixed = type(both)(seq=0, speaker="user", segments=(Segment(5, 6, "alone"), Segment(1, 2, "audio")))
    assert call().sounds(mixed) == [(5, 6), (1001, 1002)]


class TestStarted:
    def test_is_the_earliest_time_of_any_event(self) -> None:
        marker = Marker(seq=UNPLACED, name="ring", time=Time(998, "wall"))
        assert call(user("hi", 1003), marker, agent("hello", 1001)).started == 998

    def test_or_the_earliest_sound(self) -> None:
        # 1000.5 of the audio clock's sound, before the 1003 at which it was logged
        assert call(user("hi", 1003, sound=[(0.5, 2)])).started == 1000.5

    def test_is_0_where_nothing_has_a_time(self) -> None:
        assert call(user("hi")).started == 0.0
        assert call().started == 0.0
