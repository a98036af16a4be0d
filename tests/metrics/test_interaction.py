"""interaction.*: the panel of full-duplex speech. Ticks of 0.2 s unless a test says otherwise."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convoscope.conversation import Clock, Conversation, Marker, Time, Utterance, from_json, to_json
from convoscope.metrics.interaction import rates as interaction
from convoscope.metrics.interaction.events import Events, InteractionEvent, SpeechSpan, events_of, layers
from convoscope.metrics.interaction.rates import Panel, panel
from convoscope.metrics.registry import collect
from convoscope.runs import make as making
from convoscope.scoring.evaluate import observe
from support.chats import AUDIO, UNPLACED, agent, chat, told, user
from support.duplex import COUGH, PHRASE, Laid, conversation, speech

METRICS = tuple(collect([interaction]).values())


def found(conversation: Conversation) -> Events:
    seen = panel(conversation)
    assert isinstance(seen, Panel)
    return seen.events


def verdicts(events: Iterable[InteractionEvent]) -> list[bool]:
    return [event.good for event in events]


def seconds(observations: Iterable[Any]) -> list[float]:
    return [pytest.approx(one.value) for one in observations if one.value is not None]


class TestWorkedExamples:
    """Section 9 of the specification, letter by letter."""

    def test_a_reply(self) -> None:
        call = conversation("#####...........", "..........####..")
        # (10 − 5) · 0.2
        assert seconds(observe(interaction.response_latency_mean, call)) == [1.0]
        assert told(observe(interaction.response_rate, call)) == [("utterance 0", 1.0)]

    def test_a_reply_in_the_first_tick_after_the_user_is_no_event(self) -> None:
        call = conversation(speech(16, (0, 5)), speech(16, (5, 9)))
        assert told(observe(interaction.response_total, call)) == [("conversation", 0.0)]
        assert told(observe(interaction.response_rate, call)) == [("conversation", "not_applicable: no_turn_to_answer")]

    def test_a_reply_in_the_second_tick(self) -> None:
        call = conversation(speech(16, (0, 5)), speech(16, (6, 9)))
        assert seconds(observe(interaction.response_latency_mean, call)) == [0.2]  # (6 − 5) · 0.2

    def test_b_no_reply(self) -> None:
        call = conversation("###...###.....", "...........##.")
        # The agent starts at 11, after the user's next turn at 6; then (11 − 9) · 0.2.
        assert told(observe(interaction.response_rate, call)) == [("utterance 0", 0.0), ("utterance 1", 1.0)]
        assert told(observe(interaction.response_latency_mean, call)) == [
            ("utterance 0", "unmeasured: no_response"),
            ("utterance 1", pytest.approx(0.4)),
        ]

    def test_b_both_start_in_the_same_tick(self) -> None:
        call = conversation(speech(14, (0, 3), (6, 9)), speech(14, (6, 8)))
        assert seconds(observe(interaction.response_latency_mean, call)) == [0.6]  # (6 − 3) · 0.2; 6 ≤ 6
        assert verdicts(found(call).responses) == [True]
        assert verdicts(found(call).yields) == [True]
        assert seconds(observe(interaction.yield_latency_mean, call)) == [0.4]  # (8 − 6) · 0.2
        assert told(observe(interaction.agent_interrupts_count, call)) == [("conversation", 1.0)]

    @pytest.mark.parametrize(("stops", "after"), [(5, 0.6), (11, 1.8), (12, None)])
    def test_c_yield_and_its_edge(self, stops: int, after: float | None) -> None:
        call = conversation(speech(20, (2, 6)), speech(20, (0, stops)), {2: "generate_message"})
        # 3 and 9 ticks are inside a window of 10, and tick 12 is outside 2 … 11.
        assert verdicts(found(call).yields) == [after is not None]
        assert seconds(observe(interaction.yield_latency_mean, call)) == ([] if after is None else [after])
        assert found(call).responses == ()  # nothing follows the only turn

    @pytest.mark.parametrize(("stops", "eligible"), [(5, True), (11, False)])
    def test_c_a_turn_begun_over_the_agent_asks_for_a_reply_if_the_agent_is_silent_at_its_end(
        self, stops: int, eligible: bool
    ) -> None:
        call = conversation(speech(20, (2, 6)), speech(20, (0, stops), (15, 18)))
        assert verdicts(found(call).responses) == ([True] if eligible else [])

    @pytest.mark.parametrize(("stops", "right"), [(6, False), (7, True)])
    def test_d_backchannel(self, stops: int, right: bool) -> None:
        actions = {2: "backchannel", 3: "keep_talking"}
        call = conversation(speech(20, (2, 6)), speech(20, (0, stops), (15, 18)), actions)
        # Offset 4 is inside a window of 5, offset 5 is not.
        assert verdicts(found(call).backchannels) == [right]
        assert found(call).responses == found(call).yields == ()

    def test_d_only_the_first_tick_makes_a_backchannel(self) -> None:
        actions = {2: "generate_message", 3: "backchannel"}
        call = conversation(speech(20, (2, 6)), speech(20, (0, 6)), actions)
        assert verdicts(found(call).yields) == [True]
        assert found(call).backchannels == ()

    @pytest.mark.parametrize(("stops", "events"), [(9, [False]), (10, [])])
    def test_e_tic_out_of_turn_over_the_agent(self, stops: int, events: list[bool]) -> None:
        call = conversation(speech(20), speech(20, (0, stops)), inserts=[Laid(4, COUGH)])
        # (9 − 4) · 0.2 = 1.0 ≤ 1.0; one tick later it is talked through, which is no event.
        assert verdicts(found(call).vocal_tics) == events
        assert told(observe(interaction.vocal_tic_total, call)) == [("conversation", float(len(events)))]

    def test_e_the_same_offset_inside_a_user_segment_is_right(self) -> None:
        call = conversation(speech(20, (4, 6)), speech(20, (0, 9)), inserts=[Laid(4, COUGH, "speech_effects")])
        assert verdicts(found(call).vocal_tics) == [True]
        assert found(call).yields == ()

    @pytest.mark.parametrize(("starts", "right"), [(15, False), (16, True)])
    def test_f_phrase_out_of_turn_in_silence(self, starts: int, right: bool) -> None:
        call = conversation(speech(30), speech(30, (starts, starts + 3)), inserts=[Laid(4, PHRASE)])
        # The effect is [4, 5): 15 = 5 + 10 is inside.
        assert told(observe(interaction.selectivity_non_directed, call)) == [("marker 0", float(right))]

    def test_f_an_agent_that_starts_with_the_phrase_speaks_at_it(self) -> None:
        call = conversation(speech(30), speech(30, (4, 7)), inserts=[Laid(4, PHRASE)])
        (event,) = found(call).non_directed
        assert (event.good, event.wait) == (False, 3)  # it stops 3 ticks after tick 4
        assert found(conversation(speech(30), speech(30, (4, 12)), inserts=[Laid(4, PHRASE)])).non_directed == ()

    @pytest.mark.parametrize(("starts", "wait", "right"), [(16, 1.2, False), (21, 2.2, True)])
    def test_g_a_turn_with_a_tic(self, starts: int, wait: float, right: bool) -> None:
        laid = [Laid(tick, COUGH, "speech_effects") for tick in range(10)]
        call = conversation(speech(31, (0, 10)), speech(31, (starts, 30)), inserts=laid)
        assert seconds(observe(interaction.response_latency_mean, call)) == [wait]
        assert verdicts(found(call).vocal_tics) == [right]  # 16 ≤ 10 + 10 < 21

    def test_h_pooling(self, figures: Callable[..., dict[str, Any]]) -> None:
        one = conversation(speech(8, (0, 2)), speech(8, (4, 6)), id="one")  # 0.4 s
        turns = [(0, 2), (10, 12), (20, 22)]
        replies = [(7, 9), (17, 19), (27, 29)]  # 5 ticks after each: 1.0 s
        three = conversation(speech(30, *turns), speech(30, *replies), id="three")
        # (0.4 + 3 · 1.0) / 4, not (0.4 + 1.0) / 2.
        assert figures(one, three)["response_latency_mean"].value == pytest.approx(0.85, abs=1e-12)


class TestClosingTick:
    """Section 3."""

    def test_a_last_tick_of_user_speech_alone_is_dropped(self) -> None:
        call = conversation("###......#", "....##..##")
        # Without the rule the last tick would be an interruption that the agent did not yield to.
        assert found(call).yields == ()
        assert found(call).length == 9
        assert [span[:2] for span in found(call).agent] == [(4, 6), (8, 9)]

    def test_it_takes_agent_speech_and_inserts_along(self) -> None:
        call = conversation("...#", "...#", inserts=[Laid(3, COUGH)])
        assert found(call)[1:] == ((), (), (), (), (), (), (), (), ())

    def test_speech_that_began_before_stays(self) -> None:
        assert found(conversation("###.....##", "....##....")).length == 10

    def test_one_tick_at_most(self) -> None:
        assert found(conversation("#.#", "...")).length == 2  # tick 1 is silent, tick 0 stays
        assert found(conversation("#", ".")).length == 1


class TestClasses:
    def test_the_first_that_fits(self) -> None:
        both = [Laid(2, PHRASE, "speech_effects"), Laid(3, COUGH)]
        over = speech(20, (0, 12))
        assert len(found(conversation(speech(20, (2, 6)), over, {2: "backchannel"}, both)).backchannels) == 1
        seen = found(conversation(speech(20, (2, 6)), over, inserts=both))
        assert (len(seen.vocal_tics), len(seen.non_directed), len(seen.yields)) == (1, 0, 0)
        seen = found(conversation(speech(20, (2, 6)), over, inserts=both[:1]))
        assert (len(seen.vocal_tics), len(seen.non_directed), len(seen.yields)) == (0, 1, 0)

    def test_a_backchannel_in_silence_is_no_backchannel_event_but_its_tic_counts(self) -> None:
        seen = found(conversation(speech(20, (2, 4)), speech(20, (8, 9)), {2: "backchannel"}, [Laid(2, COUGH)]))
        assert seen.backchannels == ()
        assert verdicts(seen.vocal_tics) == [False]  # 6.3 takes backchannels along: 8 ≤ 4 + 10

    def test_an_unknown_type_is_not_directed_at_the_agent(self) -> None:
        seen = found(conversation(speech(9), speech(9), inserts=[Laid(1, ("humming", "la la"))]))
        assert verdicts(seen.non_directed) == [True]

    def test_one_event_per_segment_however_many_replies(self) -> None:
        seen = found(conversation(speech(20, (0, 2)), speech(20, (3, 4), (5, 6)), inserts=[Laid(0, COUGH)]))
        assert verdicts(seen.vocal_tics) == [False]

    def test_a_list_that_ends_before_the_window_is_no_yield(self) -> None:
        assert verdicts(found(conversation("..###", "#####")).yields) == [False]


class TestEffects:
    """Section 4: one effect for each run of ticks that shows the same insert outside the user's speech."""

    def effects(self, user: str, *laid: Laid) -> list[tuple[str, int, int]]:
        seen = found(conversation(user, speech(len(user)), inserts=laid))
        return sorted((kind, span.start, span.end) for kind, span in seen.effects)

    def test_a_run_is_one(self) -> None:
        assert self.effects("......", Laid(1, COUGH), Laid(2, COUGH)) == [("vocal_tic", 1, 3)]

    def test_a_tick_without_it_ends_it(self) -> None:
        assert self.effects("......", Laid(1, COUGH), Laid(3, COUGH)) == [("vocal_tic", 1, 2), ("vocal_tic", 3, 4)]

    def test_so_does_speech_of_the_user(self) -> None:
        laid = [Laid(tick, COUGH) for tick in range(5)]
        assert self.effects("..#...", *laid) == [("vocal_tic", 0, 2), ("vocal_tic", 3, 5)]

    def test_another_text_begins_another(self) -> None:
        other = ("vocal_tic", "sneeze")
        assert self.effects("......", Laid(1, COUGH), Laid(2, other)) == [("vocal_tic", 1, 2), ("vocal_tic", 2, 3)]

    def test_two_in_one_tick_are_two(self) -> None:
        both = Laid(1, COUGH), Laid(1, PHRASE, "speech_effects")
        assert self.effects("....", *both) == [("non_directed", 1, 2), ("vocal_tic", 1, 2)]
        same = Laid(1, COUGH), Laid(1, COUGH, "speech_effects")
        assert self.effects("....", *same) == [("vocal_tic", 1, 2), ("vocal_tic", 1, 2)]

    def test_one_that_moves_to_the_other_place_goes_on(self) -> None:
        moving = Laid(1, COUGH), Laid(2, COUGH, "speech_effects")
        assert self.effects("....", *moving) == [("vocal_tic", 1, 3)]

    def test_layers(self) -> None:
        spans = [SpeechSpan(0, 4), SpeechSpan(2, 6), SpeechSpan(3, 5), SpeechSpan(6, 7), SpeechSpan(9, 9)]
        assert [[span[:2] for span in layer] for layer in layers(spans)] == [[(0, 7)], [(2, 5)], [(3, 4)]]


class TestOtherTicks:
    @pytest.mark.parametrize(("tick", "ticks"), [(0.2, 10), (0.1, 20), (0.05, 40), (0.3, 6), (1.0, 2)])
    def test_windows_are_whole_ticks(self, tick: float, ticks: int) -> None:
        for stops, right in ((ticks - 1, True), (ticks, False)):
            length = 2 * ticks + 4
            call = conversation(speech(length, (0, 1)), speech(length, (0, stops)), tick=tick)
            assert verdicts(found(call).yields) == ([True] if right and stops else [False])

    def test_latency_is_in_seconds(self) -> None:
        call = conversation("##......", "....##..", tick=0.5)
        assert seconds(observe(interaction.response_latency_mean, call)) == [1.0]  # (4 − 2) · 0.5


class TestFigures:
    """Section 7: the events of a group are one pool."""

    def test_an_interruption_counts_where_there_is_no_turn(self, figures: Callable[..., dict[str, Any]]) -> None:
        talking = conversation("####....", ".#####..", id="over")  # the agent speaks at the user's end: no turn
        asking = conversation(speech(8, (0, 2)), speech(8, (4, 6)), id="asking")
        shown = figures(talking, asking)
        assert shown["agent_interruption_rate"].value == 1.0  # (1 + 0) / (0 + 1)
        assert shown["agent_interrupts_count"].value == 1  # 1 + 0: counts are summed
        assert shown["response_rate"].n == 1

    def test_no_turn_at_all_is_not_applicable(self, figures: Callable[..., dict[str, Any]]) -> None:
        shown = figures(conversation("####....", ".#####.."))
        rate = shown["agent_interruption_rate"]
        assert (rate.status, rate.value, rate.reason) == ("not_applicable", None, "input_no_turn_to_answer")

    def test_silence_gives_zero_counts_and_nulls(self, figures: Callable[..., dict[str, Any]]) -> None:
        shown = figures(conversation("....", "...."))
        for name, figure in shown.items():
            if name.endswith(("_total", "_count")):
                assert (figure.status, figure.value) == ("measured", 0.0)
            else:
                assert (figure.status, figure.value) == ("not_applicable", None)

    @pytest.mark.parametrize("copies", [9, 10])
    def test_selectivity_is_the_plain_mean_of_three_pooled_shares(
        self, figures: Callable[..., dict[str, Any]], copies: int
    ) -> None:
        actions = {2: "backchannel", 12: "backchannel"}
        first = conversation(speech(30, (2, 4), (12, 14)), speech(30, (0, 9), (11, 14)), actions, id="first")
        inserts = [Laid(2, COUGH), Laid(20, PHRASE)]
        others = [
            conversation(speech(60, (50, 52)), speech(60, (5, 8), (45, 58)), {50: "backchannel"}, inserts, id=f"b{n}")
            for n in range(copies)
        ]
        shown = figures(first, *others)
        # Backchannels: stops at offset 7 (right), 2 (wrong), and 8 (right) in each copy: all but one.
        # The cough is answered at 5: never right. The phrase at 20 is followed by silence until 45: always.
        backchannels = (1 + copies) / (2 + copies)
        assert shown["selectivity_backchannel"].value == pytest.approx(backchannels)
        if copies == 10:
            assert shown["selectivity"].value == pytest.approx((backchannels + 0 + 1) / 3)
        else:
            # Nine coughs and nine phrases are fewer than the ten events that the figure needs of each.
            assert (shown["selectivity"].status, shown["selectivity"].reason) == ("unmeasured", "fewer_than_ten_events")

    def test_selectivity_needs_all_three(self, figures: Callable[..., dict[str, Any]]) -> None:
        shown = figures(conversation(speech(30), speech(30, (5, 8)), inserts=[Laid(2, COUGH), Laid(20, PHRASE)]))
        assert shown["selectivity_vocal_tic"].value == 0
        assert (shown["selectivity"].status, shown["selectivity"].reason) == ("not_applicable", "input_no_backchannel")

    def test_conversations_without_ticks_are_unmeasured_and_lower_the_coverage(
        self, figures: Callable[..., dict[str, Any]]
    ) -> None:
        shown = figures(conversation("##......", "....##.."), chat(user("hi"), agent("yes"), id="text"))
        rate = shown["response_rate"]
        assert (rate.value, rate.coverage, rate.skipped_reasons) == (1.0, 0.5, {"no_ticks": 1})
        assert shown["agent_interruption_rate"].value == 0.0


class TestPropertiesToKnow:
    """Section 11: what the published figures do, so that a correction cannot slip in unnoticed."""

    def test_talking_through_an_insert_earns_nothing(self) -> None:
        seen = found(conversation(speech(20), speech(20, (0, 20)), inserts=[Laid(2, COUGH), Laid(4, PHRASE)]))
        assert seen.vocal_tics == seen.non_directed == ()
        assert len(seen.effects) == 2

    def test_answering_a_turn_shortly_after_an_insert_is_an_error_as_well(self) -> None:
        seen = found(conversation(speech(20, (3, 5)), speech(20, (8, 10)), inserts=[Laid(2, COUGH)]))
        assert verdicts(seen.responses) == [True]
        assert verdicts(seen.vocal_tics) == [False]

    def test_silence_at_the_end_costs_nothing(self) -> None:
        assert found(conversation(speech(50, (0, 5)), speech(50))).responses == ()

    def test_a_stop_by_chance_counts_as_a_yield(self) -> None:
        assert verdicts(found(conversation(speech(20, (4, 15)), speech(20, (0, 5)))).yields) == [True]


KINDS = ("response", "interruption", "backchannel", "vocal_tic", "non_directed", "over_user")
Happened = tuple[str, bool, int | None]
Counted = dict[str, list[tuple[bool, int | None]]]


class Talk(NamedTuple):
    """A simulation to be played: flags, actions and inserts by tick."""

    user: str
    agent: str
    actions: dict[int, str]
    laid: list[Laid]


@st.composite
def talks(draw: st.DrawFn) -> Talk:
    length = draw(st.integers(1, 60))
    runs = st.lists(st.tuples(st.sampled_from("#."), st.integers(1, 9)), min_size=60, max_size=60)
    flags = ["".join(letter * times for letter, times in draw(runs))[:length] for _ in range(2)]
    numbers = st.integers(0, length - 1)
    actions = draw(st.dictionaries(numbers, st.sampled_from(["backchannel", "keep_talking"]), max_size=12))
    inserts = st.sampled_from([COUGH, PHRASE, ("vocal_tic", "sneeze"), ("humming", PHRASE[1])])
    places = st.sampled_from(["speech_effects", "source_effects"])
    laid = draw(st.lists(st.builds(Laid, numbers, inserts, places), max_size=12, unique_by=lambda one: one[::2]))
    return Talk(*flags, actions, laid)


class TickByTick:
    """The rules once more, read off the flags one tick at a time."""

    def __init__(self, talk: Talk, tick: float) -> None:
        self.tick, self.actions = tick, talk.actions
        self.n = len(talk.user)
        if self.n >= 2 and talk.user[-2:] == ".#":
            self.n -= 1
        self.u, self.a = ([flag == "#" for flag in flags[: self.n]] for flags in (talk.user, talk.agent))
        self.inserts: list[list[tuple[str, str]]] = [[] for _ in range(self.n)]
        for at, (type, text), _ in talk.laid:
            if at < self.n:
                self.inserts[at].append(("vocal_tic" if type == "vocal_tic" else "non_directed", text))
        self.users, self.agents = self.runs(self.u), self.runs(self.a)

    def runs(self, flags: list[bool]) -> list[tuple[int, int]]:
        starts = [i for i in range(self.n) if flags[i] and (i == 0 or not flags[i - 1])]
        return [(s, next((i for i in range(s, self.n) if not flags[i]), self.n)) for s in starts]

    def events(self) -> Counted:
        found: Counted = {name: [] for name in KINDS}
        for kind, good, wait in [*self.responses(), *self.starts(), *self.out_of_turn()]:
            found[kind].append((good, wait))
        found["over_user"] = [(True, None) for s, _ in self.agents if self.u[s]]
        return {kind: sorted(some, key=repr) for kind, some in found.items()}

    def responses(self) -> Iterator[Happened]:
        mine = [(s, e) for s, e in self.users if self.actions.get(s) != "backchannel"]
        eligible = [(s, e) for s, e in mine if e == self.n or not self.a[e]]
        for s, e in eligible:
            a = next((p for p, _ in self.agents if p >= e), None)
            u = next((t for t, _ in eligible if t > s), None)
            if a is not None and (u is None or a <= u):
                yield "response", True, a - e
            elif u is not None:
                yield "response", False, None

    def starts(self) -> Iterator[Happened]:
        for s, e in self.users:
            carried = {kind for i in range(s, e) for kind, _ in self.inserts[i]}
            insert = "vocal_tic" if "vocal_tic" in carried else "non_directed" if carried else None
            if self.a[s]:
                kind = "backchannel" if self.actions.get(s) == "backchannel" else insert or "interruption"
                window = int((2.0 if kind == "interruption" else 1.0) / self.tick)
                stop = next((i - s for i in range(s, min(s + window, self.n)) if not self.a[i]), None)
                yield kind, (stop is not None) == (kind == "interruption"), stop
            elif insert is not None:
                yield insert, not self.starts_within(s, e), None

    def out_of_turn(self) -> Iterator[Happened]:
        for kind, text in {one for here in self.inserts for one in here}:
            for depth in (1, 2):
                shown = [here.count((kind, text)) >= depth for here in self.inserts]
                for t, end in self.runs([not self.u[i] and shown[i] for i in range(self.n)]):
                    stop = next((q for p, q in self.agents if p <= t < q), None)
                    if stop is None:
                        yield kind, not self.starts_within(t, end), None
                    elif (stop - t) * self.tick <= 1.0:
                        yield kind, False, stop - t

    def starts_within(self, first: int, end: int) -> bool:
        return any(first <= p <= end + int(2.0 / self.tick) for p, _ in self.agents)


def summed_up(events: Events) -> Counted:
    names = {
        "response": events.responses,
        "interruption": events.yields,
        "backchannel": events.backchannels,
        "vocal_tic": events.vocal_tics,
        "non_directed": events.non_directed,
    }
    counted = {name: sorted([(one.good, one.wait) for one in some], key=repr) for name, some in names.items()}
    return counted | {"over_user": [(True, None) for _ in events.interruptions]}


class TestAnyTalk:
    @given(talks(), st.sampled_from([0.2, 0.1, 0.3, 0.45]))
    @settings(deadline=None)
    def test_events_are_those_of_a_reading_tick_by_tick(self, talk: Talk, tick: float) -> None:
        assert summed_up(found(conversation(*talk, tick=tick))) == TickByTick(talk, tick).events()

    @given(talks())
    @settings(deadline=None)
    def test_written_and_read_again_it_gives_the_same(self, talk: Talk) -> None:
        call = conversation(*talk)
        again = from_json(to_json(call))
        assert found(again) == found(call)
        for metric in METRICS:
            if metric in PER_CONVERSATION:
                assert observe(metric, again) == observe(metric, call)

    @given(talks())
    @settings(deadline=None)
    def test_scores_fit_their_declarations(self, talk: Talk) -> None:
        call = conversation(*talk)
        events = found(call)
        for metric in PER_CONVERSATION:
            for one in observe(metric, call):
                assert one.status in ("measured", "not_applicable") or one.reason in ("no_response", "no_yield")
                assert one.value is None or one.value >= 0
                assert metric.unit != "share" or one.value in (0.0, 1.0, None)
        for total, rate in TOTALS:
            (number,) = observe(total, call)
            if number.reason == "no_user_speech":
                assert not events.user
                continue
            assert number.value == sum(one.value is not None for one in observe(rate, call))
        assert len(events.interruptions) <= len(events.agent)
        assert len(events.responses) <= len(events.user)


PER_CONVERSATION = [
    one for one in METRICS if one.key not in ("interaction.agent_interruption_rate", "interaction.selectivity")
]
TOTALS = [
    (interaction.response_total, interaction.response_rate),
    (interaction.yield_total, interaction.yield_rate),
    (interaction.backchannel_total, interaction.selectivity_backchannel),
    (interaction.vocal_tic_total, interaction.selectivity_vocal_tic),
    (interaction.non_directed_total, interaction.selectivity_non_directed),
]


TICK = Clock(id="audio", kind="audio", resolution=0.2)


def ended(at: float) -> Marker:
    return Marker(seq=UNPLACED, name="recording_ended", time=Time(at, "audio"))


class TestOtherLogs:
    """The panel asks for sound in ticks up to an end, not for a format."""

    ASK = user("hi", sound=[(0.0, 1.0)])
    REPLY = agent("yes?", sound=[(1.6, 3.0)])

    @pytest.mark.parametrize("metric", PER_CONVERSATION, ids=lambda metric: metric.key)
    def test_a_chat_has_no_ticks(self, metric: Any) -> None:
        assert told(observe(metric, chat(user("hi", 1.0), agent("yes", 2.0)))) == [
            ("conversation", "unmeasured: no_ticks")
        ]

    def test_a_call_of_our_own_format(self) -> None:
        call = chat(self.ASK, self.REPLY, ended(4.0), clocks=(TICK,))
        assert seconds(observe(interaction.response_latency_mean, call)) == [0.6]  # 1.6 − 1.0
        assert found(call).length == 20  # 4.0 / 0.2

    def test_without_an_end_nobody_says_that_every_tick_is_told(self) -> None:
        assert panel(chat(self.ASK, self.REPLY, clocks=(TICK,))) is None

    def test_a_clock_that_does_not_state_its_resolution_has_no_ticks(self) -> None:
        assert panel(chat(self.ASK, self.REPLY, ended(4.0), clocks=(AUDIO,))) is None

    def test_words_without_sound_leave_open_who_spoke_when(self) -> None:
        assert panel(chat(self.ASK, agent("yes?"), ended(4.0), clocks=(TICK,))) is None

    def test_a_false_start_without_words_and_sound_does_not(self) -> None:
        assert len(found(chat(self.ASK, user(""), self.REPLY, ended(4.0), clocks=(TICK,))).responses) == 1

    def test_sound_after_the_end_is_cut_off(self) -> None:
        assert [span[:2] for span in found(chat(self.ASK, self.REPLY, ended(2.0), clocks=(TICK,))).agent] == [(8, 10)]

    def test_two_segments_of_one_utterance_are_two_subjects(self) -> None:
        call = chat(
            user("er … hello?", sound=[(0.0, 1.0), (3.0, 4.0)]),
            agent("yes?", sound=[(1.6, 2.0)]),
            agent("hello!", sound=[(5.0, 6.0)]),
            ended(7.0),
            clocks=(TICK,),
        )
        subjects = [str(one.subject) for one in observe(interaction.response_rate, call)]
        assert subjects == ["utterance 0", "utterance 0.2"]

    def test_segments_that_touch_are_one(self) -> None:
        more = user("there", sound=[(1.0, 2.0)])
        assert [span[:2] for span in found(chat(self.ASK, more, ended(4.0), clocks=(TICK,))).user] == [(0, 10)]

    def test_an_utterance_may_be_a_tic_by_its_manner(self) -> None:
        sound = user("", sound=[(0.0, 0.4)]).segments
        cough = Utterance(seq=UNPLACED, speaker="user", segments=sound, manner="vocal_tic")
        assert verdicts(found(chat(cough, self.REPLY, ended(4.0), clocks=(TICK,))).vocal_tics) == [False]

    def test_markers_of_another_clock_do_not_count(self) -> None:
        insert = Marker(seq=UNPLACED, name="speech_insert", time=Time(0.0, "wall"), value={"type": "vocal_tic"})
        call = chat(insert, self.REPLY, ended(4.0), clocks=(TICK, Clock(id="wall", kind="wall")))
        assert found(call).vocal_tics == ()

    @pytest.mark.parametrize("end", [1e308, float("inf"), float("nan")])
    def test_times_that_are_no_number_of_ticks(self, end: float) -> None:
        clock = Clock(id="audio", kind="audio", resolution=1e-6)
        call = chat(user("hi", sound=[(0.0, end)]), ended(4.0), clocks=(clock,))
        assert told(observe(interaction.yield_rate, call)) == [("conversation", "unmeasured: no_ticks")]


class TestCost:
    def test_it_is_found_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        calls = []
        monkeypatch.setattr(interaction, "events_of", lambda ticks: calls.append(ticks) or events_of(ticks))
        call = conversation("##......", "....##..")
        for metric in PER_CONVERSATION:
            observe(metric, call)
        assert len(calls) == 1

    def test_an_ordinary_chat_costs_a_few_microseconds(self) -> None:
        plain = chat(*[user("hi", 1.0), agent("yes", 2.0)] * 50)
        panel(plain)
        began = time.process_time()
        for _ in range(1000):
            for metric in PER_CONVERSATION:
                metric.needs[0].met(plain)
        each = (time.process_time() - began) / 1000 / len(PER_CONVERSATION)
        assert each < 20e-6  # about 0.3 µs; the margin is for a busy machine


class TestNames:
    def test_the_published_fields_are_metrics(self) -> None:
        fields = {
            "response_latency_mean", "yield_latency_mean", "response_rate", "yield_rate", "agent_interruption_rate",
            "selectivity_backchannel", "selectivity_vocal_tic", "selectivity_non_directed", "response_total",
            "yield_total", "backchannel_total", "vocal_tic_total", "non_directed_total", "agent_interrupts_count",
        }  # fmt: skip
        assert {f"interaction.{name}" for name in fields | {"selectivity"}} == {one.key for one in METRICS}

    def test_reader_and_metrics_agree_on_their_markers(self) -> None:
        call = conversation("....", "....", inserts=[Laid(1, COUGH)])
        names = [event.name for event in call.timeline if isinstance(event, Marker)]
        assert names == [interaction.SPEECH_INSERT, interaction.RECORDING_ENDED]


@pytest.fixture
def figures(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """The headline figures of some conversations, by bare name, by the whole road."""

    def score(*conversations: Conversation) -> dict[str, Any]:
        run = making.make_run(conversations, metrics=METRICS, out=tmp_path / "run", workers=1)
        return {one.metric.removeprefix("interaction."): one for one in run.summary.figures}

    return score
