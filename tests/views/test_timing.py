"""Who spoke over whom: by the sound on both sides, else by what the log says of cuts."""

from __future__ import annotations

import pytest

from convoscope.views.timing import interruptions
from support.calls import bot, caller, voice_call

# In each call the user asks in turn 1 from 2 to 4 s, after a greeting that ends at 1 s.
GREETING = bot("hello", (0, 1))
ASKS = caller("a table", (2, 4))


class TestBySound:
    def test_nobody_broke_in(self) -> None:
        assert interruptions(voice_call(GREETING, ASKS, bot("when?", (5, 6)))) == (set(), set())

    def test_the_assistant_begins_while_the_user_speaks(self) -> None:
        assert interruptions(voice_call(GREETING, ASKS, bot("when?", (3, 6)))) == ({1}, set())

    def test_the_user_begins_while_the_assistant_speaks(self) -> None:
        call = voice_call(GREETING, ASKS, bot("when would you like it?", (5, 8)), caller("at eight", (7, 9)))
        assert interruptions(call) == (set(), {2})

    @pytest.mark.parametrize(("start", "broke_in"), [(3.9995, set()), (3.999, set()), (3.998, {1}), (4.0, set())])
    def test_sounds_that_overlap_by_a_millisecond_only_touch(self, start: float, broke_in: set[int]) -> None:
        assert interruptions(voice_call(GREETING, ASKS, bot("when?", (start, 6)))).by_assistant == broke_in

    def test_who_begins_at_the_same_instant_breaks_into_nothing(self) -> None:
        assert interruptions(voice_call(GREETING, ASKS, bot("when?", (2, 6)))) == (set(), set())

    def test_a_later_stretch_counts_too(self) -> None:
        # It says "well" after the user, and goes on when the user speaks again.
        call = voice_call(GREETING, caller("a table", (2, 4), (5, 7)), bot("well, when?", (4.5, 4.8), (6, 8)))
        assert interruptions(call) == ({1}, set())

    def test_the_sound_decides_against_what_the_log_says(self) -> None:
        cut = bot("when?", (5, 6), cut_off_by="user")
        assert interruptions(voice_call(GREETING, ASKS, cut, caller("at eight", (7, 9)))) == (set(), set())


class TestByTheLog:
    """Sound of one side alone says nothing about both."""

    def test_the_turn_after_an_answer_that_was_cut_off_is_the_users(self) -> None:
        call = voice_call(GREETING, caller("a table"), bot("when", cut_off_by="user"), caller("at eight"))
        assert interruptions(call) == (set(), {2})

    def test_nobody_has_it_where_the_user_says_nothing_more(self) -> None:
        assert interruptions(voice_call(GREETING, caller("a table"), bot("when", cut_off_by="user"))) == (set(), set())

    def test_the_turn_in_which_the_user_is_cut_off_is_the_assistants(self) -> None:
        call = voice_call(caller("a table f", cut_off_by="agent"), bot("when?"))
        assert interruptions(call) == ({1}, set())

    def test_who_stops_by_themselves_is_not_cut_off(self) -> None:
        call = voice_call(caller("a table", cut_off_by="user"), bot("when", cut_off_by="agent"), caller("at eight"))
        assert interruptions(call) == (set(), set())
