"""Logged times against voice activity, on calls that are made up."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from convoscope.audio.against_log import (
    LogComparison,
    LoggedTurn,
    Shift,
    are_separate,
    compare,
    estimated_shift,
    joined,
    shared,
    starts_over,
    without,
)

USER, AGENT = "user", "assistant"


class Call(NamedTuple):
    """A log and the sound that it agrees with."""

    log: list[LoggedTurn]
    sound: dict[str, list[tuple[float, float]]]


def call_of(*turns: tuple[str, float, float]) -> Call:
    """Turns that are logged exactly as they sound."""
    log = [LoggedTurn(seq, who, ((start, end),)) for seq, (who, start, end) in enumerate(turns)]
    return Call(log, {who: [turn.spans[0] for turn in log if turn.speaker == who] for who in (USER, AGENT)})


def moved(log: list[LoggedTurn], seconds: float, factor: float = 1.0) -> list[LoggedTurn]:
    """The log by a clock that is some seconds ahead, and runs faster."""
    return [
        turn._replace(spans=tuple((factor * start + seconds, factor * end + seconds) for start, end in turn.spans))
        for turn in log
    ]


CALL = call_of(
    (AGENT, 1.0, 4.0),
    (USER, 5.0, 7.5),
    (AGENT, 8.5, 12.0),
    (USER, 13.1, 14.0),
    (AGENT, 15.3, 21.0),
    (USER, 22.0, 26.0),
    (AGENT, 27.9, 30.0),
)


def compared(call: Call, stated: float | None = 0.0) -> LogComparison:
    shift = estimated_shift(call.log, call.sound, stated)
    assert isinstance(shift, Shift)
    return compare(call.log, call.sound, shift)


@st.composite
def calls(draw: st.DrawFn) -> Call:
    """Two speakers who take turns, with lengths and pauses of no pattern."""
    at, turns = 0.0, []
    for number in range(draw(st.integers(8, 24))):
        start = at + draw(st.floats(1.2, 4.0))
        at = start + draw(st.floats(0.8, 9.0))
        turns.append(((AGENT, USER)[number % 2], round(start, 3), round(at, 3)))
    return call_of(*turns)


def test_log_that_agrees_has_nothing_to_say() -> None:
    found = compared(CALL)
    assert found.shift.offset == 0
    assert found.shift.drift == 0
    assert found.missing == ()
    assert found.unlogged == ()
    assert [sound.error for sound in found.sounds.values()] == [0.0] * 7
    # 3 + 2.5 + 3.5 + 0.9 + 5.7 + 4 + 2.1 s
    assert found.speech == pytest.approx(21.7)


@given(calls(), st.floats(-3600, 3600), st.booleans())
def test_shift_of_all_times_is_the_offset(call: Call, seconds: float, is_stated: bool) -> None:
    seconds = round(seconds, 3)
    shift = estimated_shift(moved(call.log, seconds), call.sound, 0.0 if is_stated else None)
    assume(shift != "offset_ambiguous")
    assert isinstance(shift, Shift)
    assert shift.offset == pytest.approx(seconds, abs=1e-4)
    assert shift.drift == pytest.approx(0.0, abs=1e-6)


@given(calls(), st.data())
def test_turn_that_is_dropped_from_the_sound_is_missing_alone(call: Call, data: st.DataObject) -> None:
    dropped = data.draw(st.sampled_from(call.log))
    sound = {who: [span for span in spans if span != dropped.spans[0]] for who, spans in call.sound.items()}
    found = compare(call.log, sound, Shift(0.0))
    assert found.missing == (dropped,)
    assert found.unlogged == ()
    assert estimated_shift(call.log, sound, 0.0)[0] == pytest.approx(0.0, abs=1e-6)


@given(calls(), st.data())
def test_line_that_is_dropped_from_the_log_is_unlogged_alone(call: Call, data: st.DataObject) -> None:
    dropped = data.draw(st.sampled_from(call.log))
    found = compare([turn for turn in call.log if turn != dropped], call.sound, Shift(0.0))
    assert found.missing == ()
    assert [(one.speaker, one.start, one.end) for one in found.unlogged] == [(dropped.speaker, *dropped.spans[0])]


@given(calls(), st.floats(-0.01, 0.01))
def test_clock_that_runs_faster_is_drift(call: Call, drift: float) -> None:
    assume(call.log[-1].start - call.log[0].start >= 60)
    shift = estimated_shift(moved(call.log, 0.0, 1 + drift), call.sound, 0.0)
    assert isinstance(shift, Shift)
    assert shift.drift == pytest.approx(drift, abs=2e-4)


def test_one_turn_that_is_logged_late_is_an_error_of_its_own() -> None:
    log = list(CALL.log)
    log[4] = log[4]._replace(spans=((15.7, 21.4),))
    found = compared(Call(log, CALL.sound))
    # All others fit, so the clocks agree; 15.7 - 15.3 = 0.4 s.
    assert found.shift.offset == 0
    errors = {seq: sound.error for seq, sound in found.sounds.items()}
    assert errors == {0: 0, 1: 0, 2: 0, 3: 0, 4: pytest.approx(0.4), 5: 0, 6: 0}


def test_turn_that_is_logged_far_from_its_sound_is_not_missing() -> None:
    log = list(CALL.log)
    log[3] = log[3]._replace(spans=((16.1, 17.0),))  # 3 s late, over the agent's next turn
    found = compared(Call(log, CALL.sound))
    assert found.missing == ()
    assert found.unlogged == ()
    assert found.sounds[3].error == pytest.approx(3.0)


def test_other_recording_does_not_fit() -> None:
    other = {USER: [(40.0, 40.5), (77.0, 95.0), (200.0, 201.0)], AGENT: [(3.0, 39.0), (100.0, 101.0), (300.0, 330.0)]}
    assert estimated_shift(CALL.log, other, None) == "log_does_not_fit_sound"


def test_regular_turns_leave_the_offset_open() -> None:
    # Every 10 s the same: moved by 10 s it fits nearly as well.
    turns = [((AGENT, USER)[n % 2], 5.0 * n, 5.0 * n + 3) for n in range(40)]
    call = call_of(*turns)
    assert estimated_shift(moved(call.log, 4711.0), call.sound, None) == "offset_ambiguous"
    # Where the log says when the recording began, the nearest to it counts.
    shift = estimated_shift(moved(call.log, 0.3), call.sound, 0.0)
    assert isinstance(shift, Shift)
    assert shift.offset == pytest.approx(0.3)


def test_too_few_turns_are_no_evidence() -> None:
    call = call_of((AGENT, 1.0, 4.0), (USER, 5.0, 7.5))
    assert estimated_shift(call.log, call.sound, 0.0) == "too_few_turns"


def test_speech_after_the_logged_end_is_unlogged() -> None:
    sound = {**CALL.sound, AGENT: [(1.0, 4.0), (8.5, 12.0), (15.3, 21.0), (27.9, 36.0)]}
    found = compared(Call(CALL.log, sound))
    # Logged until 30.0; the half second after it may be its own.
    assert [(one.speaker, one.start, one.end) for one in found.unlogged] == [(AGENT, pytest.approx(30.5), 36.0)]


def test_two_turns_in_one_breath_have_no_start_between_them() -> None:
    log = [LoggedTurn(0, AGENT, ((1.0, 2.0),)), LoggedTurn(1, AGENT, ((2.0, 3.0),))]
    found = compare(log, {AGENT: [(1.0, 3.0)]}, Shift(0.0))
    assert found.missing == ()
    assert found.sounds[0].error == 0
    assert found.sounds[0].shares_breath
    assert found.sounds[1].start is None
    assert found.sounds[1].error is None


def test_second_of_two_near_turns_is_missing_where_only_the_first_sounds() -> None:
    log = [LoggedTurn(0, AGENT, ((1.0, 3.0),)), LoggedTurn(1, AGENT, ((3.5, 5.0),))]
    assert [turn.seq for turn in compare(log, {AGENT: [(1.0, 3.0)]}, Shift(0.0)).missing] == [1]


def test_barge_ins_begin_over_the_other_side() -> None:
    # The second lasts 0.4 s over the agent, the third begins in its silence.
    user, agent = [(2.0, 4.0), (6.6, 8.0), (9.0, 11.0)], [(1.0, 7.0), (10.0, 12.0)]
    assert starts_over(user, agent, 0.8) == [(2.0, 4.0)]


def test_tracks_with_each_other_in_them_are_not_separate() -> None:
    agent = [(0.0, 20.0), (30.0, 50.0)]
    assert are_separate([agent, [(21.0, 29.0)]])
    assert are_separate([agent, [(5.0, 7.0)]])  # two words over the agent are no echo
    assert not are_separate([agent, agent])
    assert not are_separate([agent, [(0.1, 20.1), (21.0, 29.0), (30.1, 50.1)]])


def test_spans() -> None:
    assert joined([(3, 4), (0, 1), (1.5, 2)], pause=0.6) == [(0, 2), (3, 4)]
    assert shared([(0, 2), (3, 6)], [(1, 4), (5, 7)]) == [(1, 2), (3, 4), (5, 6)]
    assert without([(0, 2), (3, 6)], [(1, 4), (5, 5.5)]) == [(0, 1), (4, 5), (5.5, 6)]


def test_the_recording_of_another_call_is_refused() -> None:
    """Pairs of unrelated calls of 10 turns, each at its best offset: hardly any may be taken for its own call."""
    rng = random.Random(11)
    calls = [_random_call(rng) for _ in range(40)]
    refused = [isinstance(estimated_shift(_log_of(one), _sound_of(other), None), str) for one, other in pairwise(calls)]
    own = [estimated_shift(_log_of(one), _sound_of(one), None) for one in calls]
    # The same call fits at the offset of 4 s with which it is logged.
    assert all(isinstance(shift, Shift) and shift.offset == pytest.approx(4.0, abs=0.001) for shift in own)
    assert sum(refused) >= 37  # of 39


def _random_call(rng: random.Random) -> list[tuple[str, float, float]]:
    at, spoken = rng.uniform(0.3, 3.0), []
    for number in range(10):
        length = max(0.5, rng.lognormvariate(1.0, 0.6))
        spoken.append((AGENT if number % 2 else USER, at, at + length))
        at += length + rng.uniform(0.2, 2.5)
    return spoken


def _log_of(call: list[tuple[str, float, float]]) -> list[LoggedTurn]:
    return [LoggedTurn(seq, who, ((start + 4, end + 4),)) for seq, (who, start, end) in enumerate(call)]


def _sound_of(call: list[tuple[str, float, float]]) -> dict[str, list[tuple[float, float]]]:
    return {side: [(start, end) for who, start, end in call if who == side] for side in (AGENT, USER)}
