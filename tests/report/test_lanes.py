"""A conversation along its clock: who spoke when, where at once, where nobody did."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convoscope.conversation import (
    AudioFile,
    Clock,
    Conversation,
    Event,
    Marker,
    Participant,
    Segment,
    StateEntered,
    StateExited,
    Text,
    Time,
    ToolCall,
    ToolResult,
    Track,
    Utterance,
)
from convoscope.report.speech_lanes import Lane, LaneSpan, Ruler, SpeechLanes, speech_lanes
from support.chats import AUDIO, UNPLACED, agent, chat, user
from support.strategies import conversations

Stretch = tuple[float, float]


def lanes(conversation: Conversation) -> SpeechLanes:
    found = speech_lanes(conversation, Ruler(conversation))
    assert found is not None
    return found


def lane(conversation: Conversation, name: str) -> Lane:
    (found,) = [one for one in lanes(conversation).lanes if one.name == name]
    return found


def stretches(spans: Sequence[LaneSpan]) -> list[tuple[float, float | None]]:
    return [(span.start, span.end) for span in spans]


def talk(*speakers: Sequence[Stretch]) -> Conversation:
    """One utterance for each stretch of sound; the speakers are called a, b, c."""
    names = "abc"[: len(speakers)]
    said = [
        Utterance(seq=seq, speaker=name, spoken=Text("hm"), segments=(Segment(*stretch),))
        for seq, (name, stretch) in enumerate(
            (name, stretch) for name, spans in zip(names, speakers, strict=True) for stretch in spans
        )
    ]
    people = tuple(Participant(name, "user") for name in names)
    return Conversation(id="c", participants=people, clocks=(AUDIO,), timeline=tuple(said))


def together(*speakers: Sequence[Stretch]) -> tuple[list[tuple[float, float | None]], list[tuple[float, float | None]]]:
    """Overlaps and gaps."""
    found = lanes(talk(*speakers))
    return stretches(found.overlaps), stretches(found.gaps)


class TestOverlapsAndGaps:
    def test_one_after_the_other(self) -> None:
        # a speaks from 0 to 2, b from 3 to 5: nobody from 2 to 3
        assert together([(0, 2)], [(3, 5)]) == ([], [(2, 3)])

    def test_one_into_the_other(self) -> None:
        assert together([(0, 3)], [(2, 5)]) == ([(2, 3)], [])

    def test_touching_is_neither(self) -> None:
        assert together([(0, 2)], [(2, 5)]) == ([], [])

    def test_one_inside_the_other(self) -> None:
        assert together([(0, 10)], [(4, 5)]) == ([(4, 5)], [])

    def test_both_at_the_same_time(self) -> None:
        assert together([(0, 2)], [(0, 2)]) == ([(0, 2)], [])

    def test_three_speakers_without_a_pause_between_them_overlap_once(self) -> None:
        # a 0–4, b 1–3, c 2–5: two or three at once from 1 (b begins) to 4 (a ends)
        assert together([(0, 4)], [(1, 3)], [(2, 5)]) == ([(1, 4)], [])

    def test_three_speakers_with_one_alone_between(self) -> None:
        # a 0–10, b 1–2, c 4–5
        assert together([(0, 10)], [(1, 2)], [(4, 5)]) == ([(1, 2), (4, 5)], [])

    def test_the_third_fills_the_silence(self) -> None:
        assert together([(0, 1)], [(4, 5)], [(1, 4)]) == ([], [])

    def test_ones_own_stretches_that_overlap_are_no_overlap(self) -> None:
        assert together([(0, 3), (2, 5)]) == ([], [])
        # and count as one voice against the other's
        assert together([(0, 3), (2, 5)], [(2.5, 6)]) == ([(2.5, 5)], [])

    def test_silence_between_ones_own_words_is_a_gap(self) -> None:
        assert together([(0, 1), (4, 5)]) == ([], [(1, 4)])

    def test_before_the_first_word_and_after_the_last_there_is_no_gap(self) -> None:
        marked = chat(
            Marker(seq=UNPLACED, name="dialled", time=Time(0)),
            user("hi", 5, until=6),
            Marker(seq=UNPLACED, name="hung up", time=Time(20)),
        )
        assert lanes(marked).gaps == ()
        assert stretches(lane(marked, "user").spans) == [(5, 6)]  # from the first moment of all, not the first word

    def test_a_stretch_without_length_is_no_speech(self) -> None:
        assert together([(0, 1), (3, 3)], [(5, 6)]) == ([], [(1, 5)])

    def test_words_whose_end_is_not_known_tell_neither(self) -> None:
        found = lanes(chat(user("hi", 1), agent("hello", 2), user("so", 9)))
        assert (found.overlaps, found.gaps) == ((), ())
        assert stretches(found.lanes[0].spans) == [(0, None), (8, None)]
        assert found.length == 8  # the last moment, 9 − 1

    def test_and_are_counted(self) -> None:
        assert lanes(chat(user("hi", 1), agent("hello", 2, until=3), user("so", 9))).endless == 2
        assert lanes(chat(user("hi", 1, until=2), agent("hello"))).endless == 0  # at no time at all

    @pytest.mark.parametrize("at", [1.0, 2.0, 4.9, 5.0])
    def test_a_gap_in_which_somebody_began_without_a_known_end_is_no_silence(self, at: float) -> None:
        # the user is heard from 0 to 1 and from 5 to 6; the agent begins between, or at either end
        found = lanes(chat(user("hi", 0, until=1), agent("hello", at), user("so", 5, until=6)))
        assert (found.gaps, found.endless) == ((), 1)

    def test_those_before_and_after_are(self) -> None:
        found = lanes(
            chat(
                user("hi", 0, until=1),
                user("hello?", 3, until=4),
                agent("yes", 5),
                user("so", 6, until=7),
                agent("well", 9, until=10),
            )
        )
        # heard 0–1, 3–4, 6–7, 9–10; what the agent says from 5 on may last until it begins again at 9
        assert (stretches(found.gaps), found.endless) == ([(1, 3)], 1)

    def test_who_begins_again_had_ended(self) -> None:
        found = lanes(chat(agent("yes", 0), agent("so", 2, until=3), user("ah", 4, until=5), agent("well", 7, until=8)))
        # of the agent's first words nobody knows how long they lasted, but not beyond 2
        assert (stretches(found.gaps), found.endless) == ([(3, 4), (5, 7)], 1)

    def test_a_tool_or_a_state_without_an_end_says_nothing_of_silence(self) -> None:
        found = lanes(chat(user("hi", 0, until=1), entered("wait", 2), asks("find", 3), agent("well", 5, until=6)))
        assert (stretches(found.gaps), found.endless) == ([(1, 5)], 0)

    def test_seconds_are_told_to_the_millisecond(self) -> None:
        assert together([(0.1, 0.2)], [(0.30000000000000004, 0.4)]) == ([], [(0.1, 0.2)])


class TestWhatASpeakerHasOnTheLane:
    def test_the_sound_where_there_is_any(self) -> None:
        said = chat(user("hi there", 100, sound=[(1, 2), (3, 4)]), agent("yes", sound=[(5, 6)]))
        # three stretches of sound and one wall time: the sound has most, and the wall does not relate to it
        assert stretches(lane(said, "user").spans) == [(0, 1), (2, 3)]
        assert lanes(said).unplaced == 1
        assert {span.seq for span in lane(said, "user").spans} == {0}

    def test_else_its_time(self) -> None:
        assert stretches(lane(chat(user("hi", 4, until=6), agent("yes", 7)), "agent").spans) == [(3, None)]

    def test_who_never_spoke_has_none(self) -> None:
        assert [one.name for one in lanes(chat(user("hi", 1), agent("no time"))).lanes] == ["user"]

    def test_the_name_is_shown_where_there_is_one(self) -> None:
        said = msgspec.structs.replace(talk([(0, 1)]), participants=(Participant("a", "user", "Ada"),))
        assert [(one.name, one.kind, one.role) for one in lanes(said).lanes] == [("Ada", "speaker", "user")]

    def test_a_stretch_that_ends_before_it_begins_is_a_moment(self) -> None:
        found = lanes(talk([(0, 1)], [(5, 2)], [(7, 8)]))
        assert [stretches(one.spans) for one in found.lanes] == [[(0, 1)], [(5, None)], [(7, 8)]]
        # it began at 5, and nobody knows how long it lasted: nor whether it was silent from 1 to 7
        assert (found.gaps, found.endless, found.length) == ((), 1, 8)

    def test_and_so_is_a_time_that_does(self) -> None:
        found = lanes(chat(user("hi", 5, until=2), agent("so", 9, until=10)))
        assert [stretches(one.spans) for one in found.lanes] == [[(0, None)], [(4, 5)]]
        assert found.endless == 1

    def test_one_that_ends_where_it_begins_has_an_end(self) -> None:
        found = lanes(chat(user("hi", 5, until=5), agent("so", 9, until=10)))
        assert stretches(found.lanes[0].spans) == [(0, 0)]
        assert found.endless == 0


class TestClocks:
    def test_those_with_an_offset_share_one_time(self) -> None:
        clocks = (Clock(id="wall", kind="wall", offset=-1000.0), Clock(id="audio", kind="audio", offset=0.5))
        said = chat(user("hi", 1001, until=1002), agent("yes", sound=[(2, 3)]), clocks=clocks)
        # wall 1001 is 1.0 of the common time and audio 2 is 2.5: the second begins 1.5 after the first
        assert stretches(lane(said, "user").spans) == [(0, 1)]
        assert stretches(lane(said, "agent").spans) == [(1.5, 2.5)]
        assert lanes(said).unplaced == 0
        assert stretches(lanes(said).gaps) == [(1, 1.5)]

    def test_an_offset_of_nothing_is_an_offset(self) -> None:
        clocks = (Clock(id="wall", kind="wall", offset=0.0), Clock(id="audio", kind="audio", offset=2.0))
        assert lanes(chat(user("hi", 1), agent("yes", sound=[(2, 3)]), clocks=clocks)).unplaced == 0

    def test_without_offsets_the_clock_of_most_moments_counts_and_the_others_are_said(self) -> None:
        said = chat(user("hi", 10), agent("yes", 12), user("ah", sound=[(1, 2)]))
        assert lanes(said).unplaced == 1
        assert [(one.name, stretches(one.spans)) for one in lanes(said).lanes] == [
            ("user", [(0, None)]),
            ("agent", [(2, None)]),
        ]

    def test_one_clock_with_an_offset_does_not_relate_to_one_without(self) -> None:
        clocks = (Clock(id="wall", kind="wall"), Clock(id="audio", kind="audio", offset=0.0))
        said = chat(user("hi", 10), agent("yes", 12), user("ah", sound=[(1, 2)]), clocks=clocks)
        assert lanes(said).unplaced == 1

    def test_where_two_have_as_many_it_is_always_the_same(self) -> None:
        here = chat(user("hi", 10), agent("yes", sound=[(1, 2)]))
        turned = msgspec.structs.replace(here, clocks=here.clocks[::-1])
        assert lanes(here) == lanes(turned)

    def test_a_moment_without_a_time_lies_nowhere(self) -> None:
        ruler = Ruler(chat(user("hi", 10)))
        assert (ruler.at(None), ruler.at(Time(12)), ruler.at(Time(12, "audio"))) == (None, 2.0, None)


def entered(state: str, at: float | None) -> StateEntered:
    return StateEntered(seq=UNPLACED, state=state, time=None if at is None else Time(at))


def left(state: str, at: float | None) -> StateExited:
    return StateExited(seq=UNPLACED, state=state, time=None if at is None else Time(at))


def asks(name: str, at: float, until: float | None = None, clock: str = "wall") -> ToolCall:
    return ToolCall(seq=UNPLACED, name=name, time=Time(at, clock, until))


def answers(name: str, at: float | None, clock: str = "wall") -> ToolResult:
    return ToolResult(seq=UNPLACED, name=name, time=None if at is None else Time(at, clock))


def labelled(name: str, *events: Event) -> list[tuple[str, float, float | None]]:
    return [(span.label, span.start, span.end) for span in lane(chat(*events), name).spans]


class TestStates:
    def test_last_until_they_are_left(self) -> None:
        found = labelled("states", entered("greet", 0), left("greet", 2), entered("ask", 5), left("ask", 6))
        assert found == [("greet", 0, 2), ("ask", 5, 6)]

    def test_or_until_the_next_is_entered(self) -> None:
        assert labelled("states", entered("greet", 0), entered("ask", 5)) == [("greet", 0, 5), ("ask", 5, None)]

    def test_leaving_another_state_ends_nothing(self) -> None:
        assert labelled("states", entered("greet", 0), left("ask", 2), left("greet", 3)) == [("greet", 0, 3)]

    def test_a_state_left_that_was_never_entered_is_nothing(self) -> None:
        assert speech_lanes(chat(left("greet", 2)), Ruler(chat(left("greet", 2)))) is None

    def test_a_state_entered_at_no_time_is_passed_over(self) -> None:
        assert labelled("states", entered("greet", 0), entered("lost", None), left("greet", 3)) == [("greet", 0, 3)]

    def test_a_clock_that_went_back_gives_a_moment(self) -> None:
        assert labelled("states", entered("greet", 5), left("greet", 3)) == [("greet", 2, None)]


class TestTools:
    def test_last_until_the_result(self) -> None:
        found = labelled("tools", asks("find", 1), answers("find", 3), asks("book", 4), answers("book", 4))
        assert found == [("find", 0, 2), ("book", 3, 3)]

    def test_without_a_result_as_long_as_the_call_says(self) -> None:
        assert labelled("tools", asks("find", 1, until=2), asks("book", 4)) == [("find", 0, 1), ("book", 3, None)]

    def test_a_result_whose_time_is_unknown_gives_a_moment(self) -> None:
        assert labelled("tools", asks("find", 1), answers("find", None)) == [("find", 0, None)]
        assert labelled("tools", asks("find", 1), answers("find", 9, "audio"), user("hi", 2)) == [("find", 0, None)]

    def test_a_result_before_its_call_gives_a_moment(self) -> None:
        assert labelled("tools", asks("find", 5), answers("find", 3)) == [("find", 2, None)]

    def test_a_call_that_ends_before_it_begins_is_a_moment(self) -> None:
        assert labelled("tools", asks("find", 5, until=3)) == [("find", 0, None)]

    def test_are_no_speech(self) -> None:
        found = lanes(chat(user("hi", 0, until=1), asks("find", 1), answers("find", 8), agent("yes", 9, until=10)))
        assert [one.name for one in found.lanes] == ["user", "agent", "tools"]
        assert stretches(found.gaps) == [(1, 9)]

    def test_a_slow_tool_at_the_end_makes_the_timeline_longer(self) -> None:
        assert lanes(chat(user("hi", 0, until=1), asks("find", 1), answers("find", 30))).length == 30


class TestTheWhole:
    def test_no_times_no_timeline(self) -> None:
        said = chat(user("hi"), agent("yes"))
        assert speech_lanes(said, Ruler(said)) is None

    def test_times_of_what_has_no_lane_are_none_either(self) -> None:
        said = chat(Marker(seq=UNPLACED, name="dialled", time=Time(1)), user("hi"))
        assert speech_lanes(said, Ruler(said)) is None

    def test_an_empty_conversation_has_none(self) -> None:
        assert speech_lanes(chat(), Ruler(chat())) is None

    def test_speakers_come_first_in_their_order_then_tools_then_states(self) -> None:
        found = lanes(chat(entered("greet", 0), asks("find", 1), agent("yes", 2), user("hi", 3)))
        assert [(one.name, one.kind) for one in found.lanes] == [
            ("user", "speaker"),
            ("agent", "speaker"),
            ("tools", "tools"),
            ("states", "states"),
        ]

    def test_sound_files_keep_their_place(self) -> None:
        sound = AudioFile(tracks=(Track(path="a.wav"), Track(url="https://x/b.wav"), Track(id="left")))
        assert lanes(chat(user("hi", 0), recording=sound)).tracks == ("a.wav", "https://x/b.wav", "left")
        # A whole path is of the machine that scored the call.
        whole = AudioFile(tracks=(Track(path="/srv/calls/a.wav"),))
        assert lanes(chat(user("hi", 0), recording=whole)).tracks == ("a.wav",)


tenths = st.integers(0, 100).map(lambda number: number / 10)
stretch = st.tuples(tenths, tenths).map(lambda ends: (min(ends), max(ends)))
speakers = st.lists(st.lists(stretch, max_size=5), min_size=1, max_size=3).filter(any)


def voices(speakers: Sequence[Sequence[Stretch]], at: float) -> int:
    """How many speak at a moment, counted afresh."""
    return sum(any(start < at < end for start, end in spans) for spans in speakers)


class TestWhateverIsSaid:
    @settings(deadline=None)
    @given(speakers)
    def test_at_any_moment_the_lanes_say_who_speaks(self, speakers: list[list[Stretch]]) -> None:
        found = lanes(talk(*speakers))
        zero = min(start for spans in speakers for start, _ in spans)
        sounding = [(start, end) for spans in speakers for start, end in spans if end > start]
        for tick in range(101):
            at = tick / 10 + 0.05  # between two edges, which all lie on tenths
            speaking = voices(speakers, at)
            within = bool(sounding) and min(sounding)[0] < at < max(end for _, end in sounding)
            inside = [
                any(s.start < at - zero < s.end for s in spans if s.end) for spans in (found.overlaps, found.gaps)
            ]
            assert inside == [speaking >= 2, speaking == 0 and within]

    @settings(deadline=None)
    @given(speakers)
    def test_overlaps_and_gaps_lie_apart_and_inside(self, speakers: list[list[Stretch]]) -> None:
        found = lanes(talk(*speakers))
        spans = sorted(stretches([*found.overlaps, *found.gaps]))
        for start, end in spans:
            assert end is not None
            assert 0 <= start < end <= found.length
        assert all(one[1] <= other[0] for one, other in itertools.pairwise(spans))  # type: ignore[operator]

    @settings(deadline=None)
    @given(speakers)
    def test_speech_and_silence_add_up(self, speakers: list[list[Stretch]]) -> None:
        found = lanes(talk(*speakers))
        sounding = [(start, end) for spans in speakers for start, end in spans if end > start]
        silent = sum(span.end - span.start for span in found.gaps if span.end is not None)
        # counted in tenths: the moments between the first word and the last in which nobody speaks
        ticks = [tick / 10 + 0.05 for tick in range(101)]
        last = max((end for _, end in sounding), default=0)
        quiet = [at for at in ticks if sounding and min(sounding)[0] < at < last and not voices(speakers, at)]
        assert round(silent, 3) == round(len(quiet) / 10, 3)

    @settings(deadline=None)
    @given(speakers, st.lists(tenths, max_size=4))
    def test_no_silence_holds_the_beginning_of_words_without_an_end(
        self, speakers: list[list[Stretch]], begins: list[float]
    ) -> None:
        sounding = talk(*speakers)
        endless = [
            Utterance(seq=100 + place, speaker="a", spoken=Text("hm"), time=Time(at, "audio"))
            for place, at in enumerate(begins)
        ]
        found = lanes(msgspec.structs.replace(sounding, timeline=(*sounding.timeline, *endless)))
        zero = min([*begins, *(start for spans in speakers for start, _ in spans)])
        before = lanes(sounding)
        shift = min(start for spans in speakers for start, _ in spans) - zero
        # no silence but those without them, and none that holds a beginning
        told = [(round(gap.start, 3), round(gap.end or 0, 3)) for gap in found.gaps]
        assert set(told) <= {(round(gap.start + shift, 3), round((gap.end or 0) + shift, 3)) for gap in before.gaps}
        assert not [(low, high) for low, high in told for at in begins if low <= round(at - zero, 3) <= high]
        assert found.endless == len(begins)

    @settings(deadline=None)
    @given(conversations())
    def test_any_conversation_has_lanes_or_none(self, conversation: Conversation) -> None:
        found = speech_lanes(conversation, Ruler(conversation))
        assert found is None or all(one.spans for one in found.lanes)
