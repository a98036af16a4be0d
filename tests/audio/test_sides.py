"""Which channel is the agent's, by the times of the log alone: on calls that are made up, seldom open, never wrong."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest

from convoscope.audio.sides import timeline_sides
from convoscope.conversation import Clock, Conversation, Participant, Segment, Text, Utterance
from support.tracks import GivenTrack

Turn = tuple[str, float, float]


def made_up(chance: random.Random, turns: int) -> list[Turn]:
    """Turns that alternate, of 1.5 to 7 s, with pauses of 0.3 to 1.5 s."""
    now, call = 0.0, []
    for number in range(turns):
        length = chance.uniform(1.5, 7)
        call.append((("agent", "caller")[number % 2], now, now + length))
        now += length + chance.uniform(0.3, 1.5)
    return call


def log_of(turns: Sequence[Turn]) -> Conversation:
    return Conversation(
        id="call",
        participants=(Participant("agent", "assistant"), Participant("caller", "user")),
        clocks=(Clock(id="audio", kind="audio", offset=0.0),),
        timeline=tuple(
            Utterance(seq=seq, speaker=who, segments=(Segment(start, end),), intended=Text("x"))
            for seq, (who, start, end) in enumerate(turns)
        ),
    )


def found(log: Sequence[Turn], heard: Sequence[Turn], offset: float | None = 0.0) -> str:
    """Who is said to be on the channel of the agent."""
    tracks = [
        GivenTrack("", "", [(start, end) for speaker, start, end in heard if speaker == who], 999.0, offset)
        for who in ("agent", "caller")
    ]
    sides = timeline_sides(log_of(log), tracks)
    return "open" if sides is None else sides[0].speaker


def later(turns: Sequence[Turn], seconds: float) -> list[Turn]:
    return [(who, start + seconds, end + seconds) for who, start, end in turns]


@pytest.mark.parametrize("turns", [3, 6, 12])
@pytest.mark.parametrize("offset", [0.0, None])
def test_a_wrong_clock_swaps_no_sides(turns: int, offset: float | None) -> None:
    """The recording begins 2 to 20 s before its log says so: alternating turns fit the wrong way round, a bit."""
    chance = random.Random(turns)
    calls = [made_up(chance, turns) for _ in range(60)]
    sides = Counter(found(call, later(call, chance.uniform(2, 20)), offset) for call in calls)
    assert sides["caller"] == 0
    assert sides["agent"] >= 57


def test_a_right_clock_is_enough_for_two_turns_and_a_wrong_one_is_not() -> None:
    call = [("agent", 0.0, 4.0), ("caller", 5.0, 7.0)]
    assert found(call, call) == "agent"
    # Four seconds later the caller is logged where the agent is heard.
    assert found(call, later(call, 4.0)) == "open"
    assert found(call, call, None) == "open"


def test_the_recording_of_another_call_has_no_sides() -> None:
    chance = random.Random(1)
    sides = Counter(found(made_up(chance, 12), later(made_up(chance, 12), chance.uniform(0, 20))) for _ in range(60))
    assert sides == {"open": 60}


def test_a_television_on_the_callers_line_leaves_the_agent_where_it_is() -> None:
    call = made_up(random.Random(2), 12)
    heard = [*(turn for turn in call if turn[0] == "agent"), ("caller", 0.0, call[-1][2])]
    assert found(call, heard) in ("agent", "open")
    swapped = [("caller" if who == "agent" else "agent", start, end) for who, start, end in heard]
    assert found(call, swapped) in ("caller", "open")
