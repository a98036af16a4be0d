"""The parts of the join, each by itself."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.conversation import Logged
from convoscope.ingest.formats.voice_logs.framework import FrameworkLine, corrected_lines, lines_in_order
from convoscope.ingest.formats.voice_logs.lines import by_time, is_believed, milliseconds, plausible, steadied
from convoscope.ingest.formats.voice_logs.logs import read_simulator
from convoscope.ingest.formats.voice_logs.reader import read_call
from convoscope.ingest.formats.voice_logs.sounds import (
    NOWHERE,
    HeardText,
    assigned,
    find_sounds,
    sent_after,
    skew,
    sound_shift,
)
from convoscope.ingest.report import Notes
from convoscope.views import metric_context
from support.voice_calls import make_call

_prices = st.integers(0, 20).map(lambda tenths: tenths / 10)


@st.composite
def _problems(draw: st.DrawFn) -> tuple[list[float], list[list[float]], float, float]:
    items, places = draw(st.integers(0, 4)), draw(st.integers(0, 4))
    empty = draw(st.lists(_prices, min_size=places, max_size=places))
    costs = [draw(st.lists(_prices, min_size=places, max_size=places)) for _ in range(items)]
    return empty, costs, draw(_prices), draw(_prices)


def _price(found: tuple[int, ...], empty: list[float], costs: list[list[float]], again: float, alone: float) -> float:
    total, last = 0.0, NOWHERE
    for item, place in enumerate(found):
        if place == NOWHERE:
            total += alone
        elif place < last:
            return float("inf")
        else:
            total += costs[item][place] + (again if place == last else 0.0)
            last = place
    return total + sum(price for place, price in enumerate(empty) if place not in found)


@given(_problems())
def test_placing_finds_what_trying_everything_finds(
    problem: tuple[list[float], list[list[float]], float, float],
) -> None:
    empty, costs, again, alone = problem
    found = assigned(len(costs), empty, lambda item, place: costs[item][place], again=again, alone=alone)
    every = product(range(NOWHERE, len(empty)), repeat=len(costs))
    best = min(_price(one, empty, costs, again, alone) for one in every)
    assert _price(tuple(found), empty, costs, again, alone) == pytest.approx(best)


def _sound(kind: str, role: str, at: float, late: float = 0.0) -> Logged:
    return Logged(source="simulator", kind=kind, speaker=role, sound=at, ms=round(1000 * (at + late)))


def _spans(log: list[Logged], notes: Notes) -> list[tuple[str, float | None, float | None]]:
    return [(one.role, one.start, one.end) for one in find_sounds(log, range(len(log)), 0.0, notes)]


def test_an_end_that_is_logged_late_ends_its_own_sound() -> None:
    # The user's end is logged 0.6 s late, after their next start.
    log = [
        _sound("audio_start", "user", 1.0),
        _sound("audio_start", "user", 3.2),
        _sound("audio_end", "user", 3.0, late=0.6),
        _sound("audio_end", "user", 5.0),
    ]
    notes = Notes()
    assert _spans(log, notes) == [("user", 1.0, 3.0), ("user", 3.2, 5.0)]
    assert notes.taken == []


def test_lost_ends_and_starts_are_not_made_up() -> None:
    log = [
        _sound("audio_start", "assistant", 1.0),
        _sound("audio_end", "user", 6.0),
        _sound("audio_start", "assistant", 7.0),
        _sound("audio_end", "assistant", 9.0),
    ]
    notes = Notes()
    assert _spans(log, notes) == [("assistant", 1.0, None), ("user", None, 6.0), ("assistant", 7.0, 9.0)]
    assert {note.code for note in notes.taken} == {"audio_end_missing", "audio_start_missing"}


def test_the_last_sound_ends_with_the_call() -> None:
    over = Logged(source="simulator", kind="connection_state", ms=9000, value={"state": "session_ended"})
    notes = Notes()
    assert _spans([_sound("audio_start", "user", 7.0), over], notes) == [("user", 7.0, 9.0)]
    assert [note.code for note in notes.taken] == ["sound_ends_with_the_call"]


def test_sounds_on_a_clock_of_their_own_are_shifted() -> None:
    log = [Logged(source="simulator", kind="audio_start", speaker="user", sound=2.0, ms=1_772_403_725_000)]
    assert sound_shift(log, range(1)) == pytest.approx(1_772_403_723.0)
    assert sound_shift([_sound("audio_start", "user", 2.0, late=0.6)], range(1)) == 0.0


_SAID = ["I need to change my flight", "the name is Okafor", "yes please", "that is all, goodbye"]


@pytest.mark.parametrize("ahead", [-3600.0, -30.0, -3.0, 3.0, 30.0, 3600.0])
def test_a_skewed_clock_is_told_by_texts(ahead: float) -> None:
    theirs = [HeardText(10.0 * number, text) for number, text in enumerate(_SAID)]
    mine = [HeardText(at + 0.4 + ahead, text) for at, text in theirs]
    found = skew(mine, theirs, 0.4)
    assert found is not None
    assert found.seconds == pytest.approx(ahead)


def test_clocks_that_agree_have_no_skew() -> None:
    theirs = [HeardText(10.0 * number, text) for number, text in enumerate(_SAID)]
    assert skew([HeardText(at + 0.9, text) for at, text in theirs], theirs, 0.4) is None
    assert skew([], theirs, 0.4) is None


def test_words_tell_the_skew_to_the_replies_that_hold_them() -> None:
    replies = [
        HeardText(10.0, "Sure, I can help you with that."),
        HeardText(20.0, "Your flight was changed as you asked."),
    ]
    words = [
        HeardText(reply.at + 6.7 + 0.1 * n, word) for reply in replies for n, word in enumerate(reply.text.split())
    ]
    found = sent_after(replies, words, 0.7)
    assert found is not None
    assert found.seconds == pytest.approx(6.0)


@pytest.mark.parametrize(
    ("texts", "ahead", "is_told"), [(2, 3.0, False), (2, 6.0, True), (3, 3.0, True), (3, 1.0, False)]
)
def test_one_or_two_texts_that_are_a_little_late_may_be_slow_answers(texts: int, ahead: float, is_told: bool) -> None:
    theirs = [HeardText(10.0 * number, text) for number, text in enumerate(_SAID[:texts])]
    assert (skew([HeardText(at + 0.4 + ahead, text) for at, text in theirs], theirs, 0.4) is not None) == is_told


def _words(text: str, ms: int = 1000, step: int = 0) -> list[FrameworkLine]:
    return [FrameworkLine(ms + step * place, "tts_text", word) for place, word in enumerate(text.split())]


def _said(lines: list[FrameworkLine]) -> str:
    return " ".join(line.text for line in lines)


def test_a_word_that_is_said_twice_stays() -> None:
    reply = "Code Zulu Foxtrot Foxtrot Whiskey."
    notes = Notes()
    assert _said(corrected_lines(_words(reply), [reply], [], "log", notes, moved=False)) == reply
    assert notes.taken == []


def test_a_word_that_was_logged_twice_goes() -> None:
    reply = "Code Zulu Foxtrot Foxtrot Whiskey."
    lines = _words("Code Zulu Zulu Foxtrot Foxtrot Foxtrot Whiskey.")
    notes = Notes()
    assert _said(corrected_lines(lines, [reply], [], "log", notes, moved=False)) == reply
    assert [note.code for note in notes.taken] == ["duplicate_record"]


def test_a_greeting_that_was_logged_twice_is_told_by_what_the_caller_heard() -> None:
    lines = _words("Hello! Hello! How can can I help?")
    notes = Notes()
    assert _said(corrected_lines(lines, ["Sure."], ["Hello, how can I help?"], "log", notes, moved=False)) == (
        "Hello! How can I help?"
    )


def test_words_of_one_instant_take_the_order_of_the_reply() -> None:
    notes = Notes()
    lines = _words("Each may passenger take two bags.")
    found = corrected_lines(lines, ["Each passenger may take two bags."], [], "log", notes, moved=True)
    assert _said(found) == "Each passenger may take two bags."
    assert [note.code for note in notes.taken] == ["out_of_order"]


def test_a_late_stamp_does_not_move_a_word() -> None:
    lines = _words("Each passenger may take two bags.", step=100)
    lines[1] = msgspec.structs.replace(lines[1], ms=3000)
    notes = Notes()
    assert _said(lines_in_order(lines, ["Each passenger may take two bags."], "log", notes)) == (
        "Each passenger may take two bags."
    )
    assert [note.code for note in notes.taken] == ["late_timestamp"]


def test_a_moved_line_goes_back_to_its_time() -> None:
    lines = _words("Each passenger may take two bags.", step=100)
    lines.append(lines.pop(1))
    notes = Notes()
    assert _said(lines_in_order(lines, [], "log", notes)) == "Each passenger may take two bags."
    assert [note.code for note in notes.taken] == ["out_of_order"]


@given(st.lists(st.none() | st.integers(0, 50), max_size=12))
def test_steadied_times_never_fall(times: list[int | None]) -> None:
    found = steadied(times)
    known = [ms for ms in found if ms is not None]
    assert known == sorted(known)
    assert [ms is None for ms in found] == [ms is None for ms in times]
    assert sorted(by_time(times)) == list(range(len(times)))


def _tool(kind: str, ms: int) -> Logged:
    return Logged(source="audit", kind=kind, ms=ms, value={"tool": "find"})


def test_an_answer_cannot_come_before_its_call() -> None:
    # The call was stamped late: by time the tool answers before it is called.
    late = [Logged(source="audit", kind="user", ms=1, text="Hi"), _tool("tool_call", 9), _tool("tool_response", 5)]
    assert is_believed(late)
    # The line of the answer was moved up: by time the tool is called first.
    moved = [late[0], _tool("tool_response", 9), _tool("tool_call", 5)]
    assert not is_believed(moved)


def _write(path: Path, lines: list[dict[str, object]]) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


_STARTS = {"timestamp": 1000, "event_type": "audio_start", "user": "simulated_user", "audio_timestamp": 1.0}
_ENDS = {"timestamp": 3000, "event_type": "audio_end", "user": "simulated_user", "audio_timestamp": 3.0}


@pytest.mark.parametrize(("late", "moved"), [(50, True), (250, True), (251, False)])
def test_words_a_moment_after_a_wordless_sound_are_put_into_it(late: int, moved: bool, tmp_path: Path) -> None:
    words = {"timestamp": 3000 + late, "type": "user_speech", "data": {"text": "Hi."}}
    notes = Notes()
    found = read_simulator(_write(tmp_path / "log.jsonl", [_STARTS, _ENDS, words]), notes)
    kinds = ["audio_start", "user_speech", "audio_end"] if moved else ["audio_start", "audio_end", "user_speech"]
    assert [record.kind for record in found] == kinds
    assert [note.code for note in notes.taken] == (["late_transcript"] if moved else [])


def test_words_of_a_sound_that_has_its_own_stay_where_they_are(tmp_path: Path) -> None:
    own = {"timestamp": 2000, "type": "user_speech", "data": {"text": "Hi."}}
    more = {"timestamp": 3100, "type": "user_speech", "data": {"text": "And bye."}}
    found = read_simulator(_write(tmp_path / "log.jsonl", [_STARTS, own, _ENDS, more]), Notes())
    assert [record.ms for record in found] == [1000, 2000, 3000, 3100]


def test_the_same_words_within_a_moment_were_logged_twice(tmp_path: Path) -> None:
    said = {"timestamp": 2000, "type": "user_speech", "sequence": 2, "data": {"text": "Yes."}}
    lines = [_STARTS, said, {**said, "timestamp": 2030, "sequence": 3}, {**said, "timestamp": 9000, "sequence": 4}]
    notes = Notes()
    found = read_simulator(_write(tmp_path / "log.jsonl", lines), notes)
    assert [record.ms for record in found] == [1000, 2000, 9000]
    assert [note.code for note in notes.taken] == ["duplicate_record"]


@pytest.mark.parametrize("late", [0, 30])
def test_a_copy_at_the_end_is_dropped_whatever_its_number(late: int, tmp_path: Path) -> None:
    """Numbers that go up say that lines were not moved. A copy has one, too, and is no line of its own."""
    said = {"timestamp": 2000, "type": "user_speech", "sequence": 2, "data": {"text": "Yes, on Friday."}}
    reply = {"timestamp": 4000, "type": "assistant_speech", "sequence": 4, "data": {"text": "Friday it is."}}
    lines = [{**_STARTS, "sequence": 1}, said, {**_ENDS, "sequence": 3}, reply]
    clean = read_simulator(_write(tmp_path / "clean.jsonl", lines), Notes())
    notes = Notes()
    again = {**said, "timestamp": 2000 + late, "sequence": 5}
    copied = read_simulator(_write(tmp_path / "copied.jsonl", [*lines, again]), notes)
    assert copied == clean
    assert [note.code for note in notes.taken] == ["duplicate_record"]


@pytest.mark.parametrize("late", [50, 250])
def test_a_late_transcript_collapses_no_turns_by_the_published_rule(late: int, tmp_path: Path) -> None:
    """Spec 3.9, first row: there, two exchanges become one."""
    clean, call = make_call(1), make_call(1)
    number = next(place for place, act in enumerate(call.acts) if act.role == "user")
    ends = next(line for line in call.simulator if line["_tag"] == ("end", number))
    said = next(line for line in call.simulator if line["_tag"] == ("meant", number))
    said["timestamp"] = ends["timestamp"] + late
    call.simulator.sort(key=lambda line: int(line["timestamp"]))
    read = [
        msgspec.structs.replace(read_call(one.write(tmp_path / str(place)), Notes()), turn_rule="eva/1")
        for place, one in enumerate((clean, call))
    ]
    expected, found = (metric_context(one) for one in read)
    assert found.intended_user_turns == expected.intended_user_turns
    assert found.conversation_trace == expected.conversation_trace
    assert found.latency_assistant_turns == expected.latency_assistant_turns


@pytest.mark.parametrize(
    ("stamps", "kept", "codes"),
    [
        # Six hours are 21 600 000 ms: at that distance from the middle a time stays, beyond it goes.
        ([50_000_000, 71_600_000, 71_600_001], [50_000_000, 71_600_000, 71_600_001], []),
        ([50_000_000, 50_000_000, 71_600_000], [50_000_000, 50_000_000, 71_600_000], []),
        ([50_000_000, 50_000_000, 71_600_001], [50_000_000, 50_000_000, None], ["implausible_time"]),
        ([0, 50_000_000, 50_000_001], [None, 50_000_000, 50_000_001], ["implausible_time"]),
        ([-5, 3000, 4000], [None, 3000, 4000], ["implausible_time"]),
        (["soon", 3000, 4000], [None, 3000, 4000], ["unreadable_time"]),
        # Nothing has a time: such a log lacks none.
        ([None, None], [None, None], []),
        ([], [], []),
    ],
)
def test_times_that_cannot_be_are_dropped_and_said(
    stamps: list[object], kept: list[int | None], codes: list[str]
) -> None:
    notes = Notes()
    assert plausible(stamps, [milliseconds(stamp) for stamp in stamps], "log", notes) == kept
    assert [note.code for note in notes.taken] == codes


@pytest.mark.parametrize("stamp", ["²", "1" * 5000, "1" * 310], ids=["a raised digit", "5000 digits", "310 digits"])
def test_digits_that_are_no_number_are_no_time(stamp: str) -> None:
    assert milliseconds(stamp) is None


def test_digits_of_any_script_are_a_time() -> None:
    assert (
        milliseconds("\u0661\u0667\u0667\u0662\u0664\u0660\u0663\u0667\u0663\u0661\u0664\u0664\u0665")
        == 1_772_403_731_445
    )


def _lines(text: str, start: int, *, kind: str = "tts_text") -> list[FrameworkLine]:
    """Words, one a line, each 100 ms after the one before."""
    return [FrameworkLine(start + 100 * place, kind, word) for place, word in enumerate(text.split())]


def test_a_word_stamped_early_stays_in_its_turn() -> None:
    """300 ms early, "Your" has a time before the boundary: it was glued to the run before."""
    boundary = [FrameworkLine(1900, "turn_end", ""), FrameworkLine(1950, "turn_start", "")]
    lines = [*_lines("Let me look.", 1500), *boundary, *_lines("Your seat is free.", 2000)]
    lines[5] = msgspec.structs.replace(lines[5], ms=1700)
    notes = Notes()
    ordered = lines_in_order(lines, ["Let me look.", "Your seat is free."], "log", notes)
    assert [(line.kind, line.text) for line in ordered] == [(line.kind, line.text) for line in lines]
    times = [line.ms for line in ordered]
    assert times == sorted(times, key=lambda ms: ms or 0)
    assert [note.code for note in notes.taken] == ["late_timestamp"]


def test_a_lost_word_is_not_taken_from_elsewhere() -> None:
    """The first "the" was lost. The next reply has one of its own, which was moved here, and called out of order."""
    replies = ["I see that the seat is free.", "Now take the train from here."]
    lines = [*_lines("I see that seat is free.", 1000), *_lines("Now take the train from here.", 2000)]
    notes = Notes()
    assert _said(corrected_lines(lines, replies, [], "log", notes, moved=True)) == _said(lines)
    assert notes.taken == []


def test_a_word_out_of_place_is_still_put_right_behind_a_lost_one() -> None:
    replies = ["I see that the seat by the window is free today."]
    lines = _lines("I see that seat by the is window free today.", 1000)
    notes = Notes()
    ordered = corrected_lines(lines, replies, [], "log", notes, moved=True)
    assert _said(ordered) == "I see that seat by the window is free today."
    assert [note.code for note in notes.taken] == ["out_of_order"]


def test_lines_of_one_millisecond_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    """The end of a sound and the start of the next in one millisecond: by the file, the start came first."""
    lines = [
        {"timestamp": 1000, "sequence": 1, "event_type": "audio_start", "user": "framework_agent"},
        {"timestamp": 2000, "sequence": 3, "event_type": "audio_start", "user": "elevenlabs_user"},
        {"timestamp": 2000, "sequence": 2, "event_type": "audio_end", "user": "framework_agent"},
        {"timestamp": 3000, "sequence": 4, "event_type": "audio_end", "user": "elevenlabs_user"},
    ]
    path = tmp_path / "elevenlabs_events.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    notes = Notes()
    records = read_simulator(path, notes)
    assert [(record.kind, record.speaker) for record in records] == [
        ("audio_start", "assistant"),
        ("audio_end", "assistant"),
        ("audio_start", "user"),
        ("audio_end", "user"),
    ]
    assert "out_of_order" in [note.code for note in notes.taken]
