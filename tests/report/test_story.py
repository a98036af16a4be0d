"""A conversation as it is told: every event in its turn, with what the log says of it and of the whole."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from convoscope.conversation import (
    Agent,
    Clock,
    ComponentMetric,
    Event,
    Expected,
    GuardEvaluated,
    Item,
    Marker,
    Outcome,
    Participant,
    Retrieval,
    Scenario,
    SlotFilled,
    Source,
    StateEntered,
    StateExited,
    Text,
    Time,
    ToolCall,
    ToolResult,
    Utterance,
)
from convoscope.metrics import (
    Subject,
    measured,
)
from convoscope.report.story import MAX_TEXT, StoryFact, cut, json_text
from support.chats import UNPLACED, WALL, agent, call, chat, result, user
from support.stories import entries, finding, only, placed, tell

EVENTS: dict[str, tuple[Event, str, list[StoryFact]]] = {
    "tool_call": (
        ToolCall(seq=UNPLACED, name="find", arguments={"id": 7}, caller="agent"),
        "find",
        [StoryFact("arguments", '{"id":7}'), StoryFact("by", "agent"), StoryFact("result", "none in the log")],
    ),
    "tool_result": (
        ToolResult(seq=UNPLACED, name="find", result=[1], success=True),
        "find",
        [StoryFact("result", "[1]"), StoryFact("success", "yes")],
    ),
    "state_entered": (StateEntered(seq=UNPLACED, state="greeting"), "greeting", []),
    "state_exited": (
        StateExited(seq=UNPLACED, state="greeting", to_state="order", reason="named it"),
        "greeting → order",
        [StoryFact("because", "named it")],
    ),
    "guard_evaluated": (
        GuardEvaluated(seq=UNPLACED, guard="is_member", result=False, state="order"),
        "is_member",
        [StoryFact("state", "order"), StoryFact("result", "false")],
    ),
    "slot_filled": (
        SlotFilled(seq=UNPLACED, slot="city", value="", state="order"),
        "city",
        [StoryFact("value", '""'), StoryFact("state", "order")],
    ),
    "component_metric": (
        ComponentMetric(seq=UNPLACED, component="tts", values={"ttfb": 0.2}, label="x", speech_id="s1", state="order"),
        "tts",
        [StoryFact("ttfb", "0.2"), StoryFact("label", "x"), StoryFact("speech", "s1"), StoryFact("state", "order")],
    ),
    "retrieval": (
        Retrieval(seq=UNPLACED, query="opening hours", chunks=("9 to 5", "closed on Sunday")),
        "opening hours",
        [StoryFact("chunk 1", "9 to 5"), StoryFact("chunk 2", "closed on Sunday")],
    ),
    "marker": (
        Marker(seq=UNPLACED, name="key press", participant="user", value=0),
        "key press",
        [StoryFact("by", "user"), StoryFact("value", "0")],
    ),
}


DOES = {
    "tool_call": "calls tool",
    "tool_result": "result of tool",
    "state_entered": "enters state",
    "state_exited": "leaves state",
    "guard_evaluated": "guard",
    "slot_filled": "fills slot",
    "component_metric": "reported by",
    "retrieval": "retrieves",
    "marker": "marker",
}


class TestEvents:
    @pytest.mark.parametrize("kind", EVENTS)
    def test_each_kind_is_told(self, kind: str) -> None:
        event, title, facts = EVENTS[kind]
        one = only(event)
        assert (one.kind, one.title, list(one.fields), one.bad) == (kind, title, facts, False)
        assert one.does == DOES[kind]

    def test_an_utterance_is_told_by_its_readings(self) -> None:
        one = only(Utterance(seq=UNPLACED, speaker="user", intended=Text("yes"), heard=Text("guess")))
        assert (one.kind, one.does, one.title, one.role) == ("utterance", "", "user", "user")
        assert [reading.kinds for reading in one.readings] == [("intended",), ("heard",)]

    def test_people_are_called_by_their_name(self) -> None:
        talk = chat(user("hi"), Marker(seq=UNPLACED, name="hangs up", participant="user"))
        talk = msgspec.structs.replace(talk, participants=(Participant("user", "user", "Ada Lovelace"),))
        spoke, left = entries(tell(talk))
        assert (spoke.title, spoke.role) == ("Ada Lovelace", "user")
        assert left.fields == (StoryFact("by", "Ada Lovelace"),)

    def test_who_was_cut_off_by_whom(self) -> None:
        one = only(Utterance(seq=UNPLACED, speaker="agent", spoken=Text("Your or"), cut_off_by="user"))
        assert (one.bad, list(one.fields)) == (True, [StoryFact("cut off by", "user")])

    def test_how_it_was_said(self) -> None:
        one = only(Utterance(seq=UNPLACED, speaker="user", spoken=Text("hm"), manner="vocal_tic"))
        assert list(one.fields) == [StoryFact("manner", "vocal tic")]

    def test_a_guard_that_failed_is_bad(self) -> None:
        one = only(GuardEvaluated(seq=UNPLACED, guard="is_member", error="no such field"))
        assert (one.bad, list(one.fields)) == (True, [StoryFact("error", "no such field")])

    @pytest.mark.parametrize("kind", EVENTS)
    def test_what_else_is_in_the_log_is_told(self, kind: str) -> None:
        event = msgspec.structs.replace(EVENTS[kind][0], extras={"colour": "red"})
        assert only(event).fields[-1] == StoryFact("also in the log", '{"colour":"red"}')

    def test_a_value_of_nothing_is_a_value(self) -> None:
        assert StoryFact("value", "false") in only(SlotFilled(seq=UNPLACED, slot="smoker", value=False)).fields
        assert StoryFact("value", "null") in only(SlotFilled(seq=UNPLACED, slot="smoker")).fields

    def test_all_come_in_their_order(self) -> None:
        events = [user("hi"), *(event for event, _, _ in EVENTS.values()), agent("so"), user("ah")]
        told = entries(tell(chat(*events)))
        # the result after the call is told with it, so event 2 has no place of its own
        assert [one.seq for one in told] == [seq for seq in range(len(events)) if seq != 2]


class TestTools:
    def test_a_result_is_told_with_its_call(self) -> None:
        talk = chat(user("hi"), call("find", "1"), agent("one moment"), result("find", "1", success=True, result=None))
        first, asked, _ = entries(tell(talk))
        assert (first.kind, asked.kind) == ("utterance", "tool_call")
        assert list(asked.fields) == [
            StoryFact("arguments", "null"),
            StoryFact("result", "null"),
            StoryFact("success", "yes"),
        ]

    def test_a_result_that_belongs_to_no_call_is_told_alone(self) -> None:
        talk = chat(call("find", "1"), result("find", "other"), result("book", "2"))
        asked, one, other = entries(tell(talk))
        assert asked.fields[-1] == StoryFact("result", "none in the log")
        assert [(each.kind, each.title) for each in (one, other)] == [("tool_result", "find"), ("tool_result", "book")]

    @pytest.mark.parametrize(
        ("answer", "bad"),
        [
            (result("find", success=False), True),
            (result("find", error="timeout"), True),
            (result("find", success=True, error="only a warning"), False),
            (result("find", success=True), False),
            (result("find"), False),
        ],
    )
    def test_is_bad_where_the_log_says_that_it_failed(self, answer: ToolResult, bad: bool) -> None:
        assert only(answer).bad is bad
        assert only(call("find"), answer).bad is bad

    def test_an_error_stands_for_the_result(self) -> None:
        assert list(only(result("find", error="timeout", result=None)).fields) == [StoryFact("error", "timeout")]

    def test_arguments_that_are_no_json_are_told_as_they_are(self) -> None:
        one = only(ToolCall(seq=UNPLACED, name="find", raw_arguments='{"id": '))
        assert one.fields[0] == StoryFact("arguments, not valid JSON", '{"id": ')

    def test_how_long_it_took(self) -> None:
        asked = ToolCall(seq=UNPLACED, name="find", time=Time(10.0))
        assert only(asked, ToolResult(seq=UNPLACED, name="find", time=Time(11.25))).fields[-1] == StoryFact(
            "took", "1.25 s"
        )

    def test_as_fine_as_the_clock_can_tell(self) -> None:
        asked = ToolCall(seq=UNPLACED, name="find", time=Time(10.0))
        answer = ToolResult(seq=UNPLACED, name="find", time=Time(11.0))
        clocks = (Clock(id="wall", kind="wall", resolution=1.0),)
        one = only(asked, answer, clocks=clocks)
        assert one.fields[-1] == StoryFact("took", "1 s, by a clock with steps of 1 s")

    @pytest.mark.parametrize("answered", [None, Time(9.0), Time(11.0, "audio")])
    def test_is_not_told_where_it_is_not_known(self, answered: Time | None) -> None:
        asked = ToolCall(seq=UNPLACED, name="find", time=Time(10.0))
        one = only(asked, ToolResult(seq=UNPLACED, name="find", time=answered))
        assert not any(fact.name == "took" for fact in one.fields)

    def test_what_else_the_log_says_of_the_result_is_told_with_its_call(self) -> None:
        answer = ToolResult(seq=UNPLACED, name="find", extras={"cached": True})
        assert "cached" in repr(only(answer))
        assert "cached" in repr(only(call("find"), answer))

    def test_a_caller_who_is_no_participant_is_told(self) -> None:
        assert "simulator" in repr(only(ToolCall(seq=UNPLACED, name="find", caller="simulator")))


class TestTurns:
    def test_are_told_one_after_the_other(self) -> None:
        told = tell(chat(agent("hello"), user("hi"), agent("so?"), user("ah"), agent("oh")))
        assert [(turn.turn, [one.seq for one in turn.entries]) for turn in told.turns] == [
            (0, [0]),
            (1, [1, 2]),
            (2, [3, 4]),
        ]

    def test_an_unknown_rule_is_told_without_turns(self) -> None:
        found = finding(measured(Subject("turn", "1", 1), 5), measured(Subject("utterance", "1", 1), 6))
        told = tell(chat(user("hi"), agent("so?"), turn_rule="of-the-future/9"), found)
        (turn,) = told.turns
        assert turn.turn is None
        assert [one.seq for one in turn.entries] == [0, 1]
        assert placed(told) == {"event 1": ["6.00 points"], "turn 1": ["5.00 points"]}
        assert [mark.subject for mark in told.elsewhere] == ["turn 1"]

    def test_nothing_happened(self) -> None:
        told = tell(chat())
        assert (told.turns, told.timeline) == ((), None)


class TestTimes:
    def test_are_seconds_from_the_first_moment(self) -> None:
        assert [one.at for one in entries(tell(chat(user("hi", 100), agent("so?", 102.5), user("ah"))))] == [
            0.0,
            2.5,
            None,
        ]

    def test_of_sound_it_is_the_first_that_counts(self) -> None:
        first, second = entries(tell(chat(agent("so?", sound=[(1, 2)]), user("hi", sound=[(7, 8), (4, 5)]))))
        assert (first.at, second.at) == (0.0, 3.0)

    def test_the_lanes_are_there(self) -> None:
        told = tell(chat(user("hi", 1, until=2), agent("so?", 3, until=4)))
        assert told.timeline is not None
        assert [lane.name for lane in told.timeline.lanes] == ["user", "agent"]


class TestLongTexts:
    def test_are_cut_and_it_is_said_how_much_is_missing(self) -> None:
        assert cut("x" * MAX_TEXT) == "x" * MAX_TEXT
        assert cut("x" * (MAX_TEXT + 1_234)).startswith("x" * MAX_TEXT + "\n… 1,234 more characters")

    @pytest.mark.parametrize(
        "event",
        [
            ToolCall(seq=UNPLACED, name="find", arguments={"text": "x" * 50_000}),
            ToolCall(seq=UNPLACED, name="find", raw_arguments="x" * 50_000),
            ToolResult(seq=UNPLACED, name="find", result="x" * 50_000),
            ToolResult(seq=UNPLACED, name="find", error="x" * 50_000),
            Retrieval(seq=UNPLACED, query="q", chunks=("x" * 50_000,)),
            SlotFilled(seq=UNPLACED, slot="s", value="x" * 50_000),
            Marker(seq=UNPLACED, name="m", value="x" * 50_000),
            Marker(seq=UNPLACED, name="m", extras={"a": "x" * 50_000}),
        ],
    )
    def test_wherever_a_log_may_hold_them(self, event: Event) -> None:
        lengths = [len(fact.text) for fact in only(event).fields]
        assert MAX_TEXT < max(lengths) < MAX_TEXT + 100

    def test_what_was_said_is_never_cut(self) -> None:
        (one,) = entries(tell(chat(user("x" * 50_000))))
        assert len(one.readings[0].pieces[0].text) == 50_000

    def test_short_values_stay_on_a_line(self) -> None:
        assert json_text({"a": [1, 2]}) == '{"a":[1,2]}'
        assert json_text({"a": "x" * 100}).splitlines()[0] == "{"
        assert json_text(10**30) == "1" + "0" * 30


class TestAboutTheWhole:
    def test_what_is_short_comes_first(self) -> None:
        told = tell(
            chat(
                user("hi"),
                source=Source(files=("a.jsonl",), record="3"),
                pipeline="cascade",
                agent=Agent(name="Ava", role="clerk", models={"llm": "m1", "tts": "v2"}),
                outcome=Outcome(completed=True, finished=False, ended_reason="hangup", duration=61.5),
                expected=Expected(ground_truth="on Friday"),
                dimensions={"flow": "orders"},
            )
        )
        assert [tuple(msgspec.structs.astuple(fact)) for fact in told.about] == [
            ("outcome", "done (the log says so)"),
            ("read from", "a.jsonl, record 3"),
            ("pipeline", "cascade"),
            ("agent", "Ava, clerk"),
            ("models", "llm: m1, tts: v2"),
            ("completed", "yes"),
            ("finished", "no"),
            ("ended", "hangup"),
            ("duration", "61.50 s"),
            ("expected answer", "on Friday"),
        ]
        assert (told.id, told.dimensions) == ("c", {"flow": "orders"})

    def test_what_the_log_does_not_say_is_not_told(self) -> None:
        assert tell(chat(user("hi"), clocks=())).about == (StoryFact("outcome", "unknown"),)
        assert tell(chat(user("hi"), clocks=())).context == ()

    def test_an_integration_that_broke_is_why_it_stands_where_it_stands(self) -> None:
        told = tell(chat(outcome=Outcome(error="no line")))
        assert told.because == ("the integration broke: no line",)
        assert not any("no line" in fact.text for fact in (*told.about, *told.context))

    def test_what_is_long_has_a_place_of_its_own(self) -> None:
        told = tell(
            chat(
                agent=Agent(instructions="Be kind."),
                scenario=Scenario(goal="a refund"),
                items=(Item(id="i1"),),
                extras={"colour": "red"},
                clocks=(WALL,),
            )
        )
        assert [fact.name for fact in told.context] == [
            "instructions",
            "scenario",
            "items",
            "clocks",
            "also in the log",
        ]
        assert '"goal":"a refund"' in told.context[1].text

    @pytest.mark.parametrize(
        "facts",
        [
            {"agent": Agent(extras={"kept": 1})},
            {"outcome": Outcome(extras={"kept": 1})},
            {"expected": Expected(extras={"kept": 1})},
        ],
        ids=["agent", "outcome", "expected"],
    )
    def test_whatever_else_the_log_holds_is_told(self, facts: dict[str, Any]) -> None:
        assert "kept" in repr(tell(chat(user("hi"), **facts)))
