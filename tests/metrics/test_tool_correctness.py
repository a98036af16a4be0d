"""tools.tool_correctness: the call that was expected; and what holds of both scorers of tool calls."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.conversation import Expected, ExpectedToolCall, Item, Tool, ToolCall
from convoscope.metrics import Observation
from convoscope.metrics.tools.correctness import (
    best_assignment,
    parameter_correctness,
    parameter_correctness_by_success,
    same_value,
    tool_correctness,
)
from convoscope.scoring.evaluate import observe
from convoscope.statistics.within import reduce_conversation
from support.called_tools import answered, checked, checks, diff, item, made, one_of, wanting
from support.chats import chat, told, user
from support.strategies import json_values


def points(one: Observation) -> float:
    assert one.value is not None, one.reason
    return round(10 * one.value, 9)


WEATHER = ExpectedToolCall("weather", {"city": "Oslo", "days": 3})


def judged(*calls: ToolCall, expected: Expected | None = None) -> Observation:
    facts = {} if calls else {"tool_calls": []}
    return one_of(tool_correctness, item(*calls, expected=expected or wanting(WEATHER), **facts))


class TestTheExpectedCall:
    @pytest.mark.parametrize(
        ("arguments", "score", "lines"),
        [
            # 4 for the name, 6 · 2/2 for the arguments
            ({"city": "Oslo", "days": 3}, 10.0, []),
            # 4 + 6 · 1/2
            ({"city": "Bergen", "days": 3}, 7.0, ['~ city: expected "Oslo", got "Bergen"']),
            ({"city": "Oslo"}, 7.0, ["- days: expected 3"]),
            # 4 + 6 · 2/2 − 0.5
            ({"city": "Oslo", "days": 3, "units": "C"}, 9.5, ['+ units: got "C"']),
            # 4 + 6 · 1/2 − 2 · 0.5
            (
                {"city": "Oslo", "units": "C", "lang": "no"},
                6.0,
                ["- days: expected 3", '+ units: got "C"', '+ lang: got "no"'],
            ),
            # 4 + 0 − 0.5 would be 3.5: the right name keeps its 4
            ({"town": "Oslo"}, 4.0, ['- city: expected "Oslo"', "- days: expected 3", '+ town: got "Oslo"']),
            (None, 4.0, ['- city: expected "Oslo"', "- days: expected 3"]),
        ],
    )
    def test_a_name_is_worth_4_its_arguments_6_and_one_too_many_costs_a_half(
        self, arguments: Any, score: float, lines: list[str]
    ) -> None:
        one = judged(made("weather", arguments))
        assert (points(one), diff(one)) == (score, lines)

    @pytest.mark.parametrize(
        ("arguments", "score", "lines"),
        [
            # 0 for the name, 6 · 2/2 for the arguments
            ({"city": "Oslo", "days": 3}, 6.0, []),
            # 6 · 1/2
            ({"city": "Bergen", "days": 3}, 3.0, ['~ city: expected "Oslo", got "Bergen"']),
            # 6 · 2/2 − 2 · 0.5
            ({"city": "Oslo", "days": 3, "units": "C", "x": 1}, 5.0, ['+ units: got "C"', "+ x: got 1"]),
        ],
    )
    def test_another_tool_has_the_points_of_its_arguments_alone(
        self, arguments: Any, score: float, lines: list[str]
    ) -> None:
        one = judged(made("forecast", arguments), made("book"))
        assert (points(one), diff(one)) == (score, ["~ tool: expected weather, called forecast", *lines])

    def test_another_tool_with_nothing_right_is_a_0_and_never_less(self) -> None:
        # 6 · 0/2 − 0.5 would be −0.5
        one = judged(made("forecast", {"town": "Oslo"}), made("book"))
        assert (points(one), diff(one)) == (0.0, ["- tool: expected weather, called book, forecast"])

    def test_another_tool_where_no_argument_is_expected_has_their_6_points(self) -> None:
        assert points(judged(made("pong"), expected=wanting(ExpectedToolCall("ping")))) == 6.0

    def test_the_right_tool_need_not_be_the_best_call(self) -> None:
        # weather without arguments: 4. forecast with both: 6.
        one = judged(made("weather"), made("forecast", {"city": "Oslo", "days": 3}))
        assert points(one) == 6.0
        assert (one.details or {})["calls"] == [
            {"expected": "weather", "called": "forecast", "event": "1", "points": 6.0}
        ]

    def test_nothing_called_though_a_call_was_expected_is_a_measured_0(self) -> None:
        one = judged()
        assert (one.status, one.value) == ("measured", 0.0)
        assert diff(one) == ["- tool: expected weather, called nothing"]

    @pytest.mark.parametrize("expected", [None, {}])
    def test_where_no_argument_is_expected_the_arguments_are_all_right(self, expected: Any) -> None:
        wanted = wanting(ExpectedToolCall("ping", expected))
        assert points(judged(made("ping"), expected=wanted)) == 10.0
        assert points(judged(made("ping", {"loud": True}), expected=wanted)) == 9.5

    def test_the_best_of_several_calls_counts_and_is_named(self) -> None:
        one = judged(made("weather", {"city": "Oslo"}, "a"), made("weather", {"city": "Oslo", "days": 3}, "b"))
        assert points(one) == 10.0
        assert (one.details or {})["calls"] == [
            {"expected": "weather", "called": "weather", "event": "1", "call_id": "b", "points": 10.0}
        ]

    def test_the_first_of_equally_good_calls_is_named(self) -> None:
        one = judged(made("weather", {"city": "Oslo"}), made("weather", {"days": 3}))
        assert (one.details or {})["calls"][0]["event"] == "0"

    def test_ids_do_not_count(self) -> None:
        wanted = wanting(ExpectedToolCall("weather", {"city": "Oslo"}, call_id="x"))
        assert points(judged(made("weather", {"city": "Oslo"}, call_id="y"), expected=wanted)) == 10.0

    def test_arguments_that_are_no_json_count_as_one_that_nobody_expected(self) -> None:
        one = judged(made("weather", raw='{"city": "Os'))
        assert points(one) == 4.0
        assert diff(one)[-1] == '+ (arguments): got "{\\"city\\": \\"Os"'

    def test_a_difference_inside_an_argument_is_told_where_it_is(self) -> None:
        wanted = wanting(ExpectedToolCall("book", {"to": {"city": "Oslo", "zip": "0150"}, "legs": [1, 2]}))
        one = judged(made("book", {"to": {"city": "Bergen", "street": "Torget"}, "legs": [1, 3]}), expected=wanted)
        assert points(one) == 4.0
        assert diff(one) == [
            '~ to.city: expected "Oslo", got "Bergen"',
            '- to.zip: expected "0150"',
            '+ to.street: got "Torget"',
            "~ legs[1]: expected 2, got 3",
        ]

    def test_of_long_texts_the_part_is_told_where_they_part(self) -> None:
        wanted = wanting(ExpectedToolCall("note", {"text": "x" * 500 + " red " + "y" * 500}))
        one = judged(made("note", {"text": "x" * 500 + " blue " + "y" * 500}), expected=wanted)
        (line,) = diff(one)
        assert "red" in line
        assert "blue" in line
        assert len(line) < 400

    def test_a_hundred_differences_are_not_all_listed(self) -> None:
        wanted = wanting(ExpectedToolCall("many", {str(number): 1 for number in range(100)}))
        lines = diff(judged(made("many", {}), expected=wanted))
        assert len(lines) == 41
        assert lines[-1] == "… and 60 more"


class TestValues:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (1, 1.0),
            (" Oslo\n", "Oslo"),
            ("Malm\u00f6", "Malmo\u0308"),  # however the letter is composed
            ({"a": 1, "b": [1, {"c": " x"}]}, {"b": [1.0, {"c": "x"}], "a": 1}),
            ([1, 2], (1, 2)),
            ({"a": 1}, {"a": 1, "b": None}),  # models write null for what they leave out
            (None, None),
            (2**70, 2**70),
        ],
    )
    def test_equal(self, one: Any, other: Any) -> None:
        assert same_value(one, other)
        assert same_value(other, one)

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (1, True),
            (0, False),
            ([1], [True]),
            (1, "1"),
            ("Oslo", "oslo"),
            ("a b", "a  b"),
            ([1, 2], [2, 1]),
            ([1], [1, 1]),
            ({"a": 1}, {"b": 1}),
            ({}, []),
            (None, ""),
            (None, 0),
            (None, False),
            ("true", True),
        ],
    )
    def test_not_equal(self, one: Any, other: Any) -> None:
        assert not same_value(one, other)
        assert not same_value(other, one)

    def test_null_is_an_argument_left_out(self) -> None:
        wanted = wanting(ExpectedToolCall("weather", {"city": "Oslo", "days": None}))
        for arguments in ({"city": "Oslo"}, {"city": "Oslo", "days": None}, {"city": "Oslo", "units": None}):
            assert points(judged(made("weather", arguments), expected=wanted)) == 10.0
        # city fits, days does not: 4 + 6 · 1/2
        assert points(judged(made("weather", {"city": "Oslo", "days": 3}), expected=wanted)) == 7.0

    @given(json_values())
    def test_every_value_is_equal_to_itself_as_json_writes_it(self, value: Any) -> None:
        assert same_value(value, json.loads(json.dumps(value)))

    @given(json_values(), json_values())
    def test_it_is_the_same_both_ways(self, one: Any, other: Any) -> None:
        assert same_value(one, other) == same_value(other, one)


class TestSeveralExpectedCalls:
    def test_the_mean_of_the_best_one_to_one_assignment(self) -> None:
        wanted = wanting(ExpectedToolCall("book", {"seat": 1}), ExpectedToolCall("book", {"seat": 2}))
        # The first call serves either: book 1 fully, which leaves book 2 with the wrong seat: (10 + 4) ÷ 2
        one = judged(made("book", {"seat": 1}), made("book", {"seat": 3}), expected=wanted)
        assert points(one) == 7.0
        assert diff(one) == ["~ call 2 book: seat: expected 2, got 3"]

    def test_one_call_cannot_serve_two(self) -> None:
        wanted = wanting(ExpectedToolCall("book", {"seat": 1}), ExpectedToolCall("book", {"seat": 1}))
        one = judged(made("book", {"seat": 1}), expected=wanted)
        assert points(one) == 5.0  # (10 + 0) ÷ 2
        assert diff(one) == ["- call 2 book: tool: expected book, called book"]

    def test_the_order_of_the_calls_does_not_matter(self) -> None:
        wanted = wanting(ExpectedToolCall("a", {"x": 1}), ExpectedToolCall("b", {"y": 2}), ExpectedToolCall("c"))
        calls = [made("a", {"x": 1}), made("b", {"y": 3}), made("d")]
        # a has 10; b its name, 4; c, which expects no argument, 6 from d. (10 + 4 + 6) ÷ 3
        for order in itertools.permutations(calls):
            assert points(judged(*order, expected=wanted)) == round(20 / 3, 9)

    def test_the_greedy_choice_is_not_taken(self) -> None:
        # Either could do with the call that has x; the one that has y is of use to the first alone.
        first, second = ExpectedToolCall("t", {"x": 1, "y": 1}), ExpectedToolCall("t", {"x": 1, "z": 1})
        # The second with x: 4 + 6/2, the first with y: 4 + 6/2. The first with x would leave the second 4 points.
        calls = (made("t", {"x": 1}), made("t", {"y": 1}))
        assert points(judged(*calls, expected=wanting(first, second))) == 7.0

    @given(
        st.integers(1, 4).flatmap(
            lambda width: st.lists(st.lists(st.integers(0, 20), min_size=width, max_size=width), min_size=1, max_size=4)
        )
    )
    def test_no_assignment_is_better(self, table: list[list[int]]) -> None:
        chosen = best_assignment(table)
        used = [column for column in chosen if column is not None]
        assert len(used) == len(set(used)) == min(len(table), len(table[0]))
        total = sum(table[row][column] for row, column in enumerate(chosen) if column is not None)
        rows, columns = len(table), len(table[0])
        if rows <= columns:
            every = itertools.permutations(range(columns), rows)
            best = max(sum(table[row][column] for row, column in enumerate(one)) for one in every)
        else:
            every = itertools.permutations(range(rows), columns)
            best = max(sum(table[row][column] for column, row in enumerate(one)) for one in every)
        assert total == best

    def test_nothing_to_assign(self) -> None:
        assert best_assignment([]) == []
        assert best_assignment([[], []]) == [None, None]


class TestWhereItCannotBeSaid:
    def test_a_missing_field_is_named(self) -> None:
        assert told(observe(tool_correctness, item(made("weather")))) == [
            ("conversation", "unmeasured: no_expected_tool_call")
        ]
        assert told(observe(tool_correctness, item(expected=wanting(WEATHER)))) == [
            ("conversation", "unmeasured: tool_calls_unknown")
        ]

    def test_an_expected_call_without_a_name_expects_nothing_that_could_be_compared(self) -> None:
        one = judged(made("weather"), expected=wanting(ExpectedToolCall(" ", {"city": "Oslo"})))
        assert (one.status, one.reason) == ("unmeasured", "no_expected_tool_name")

    def test_of_one_item_among_others(self) -> None:
        items = (
            Item(id="a", events=(1,), expected=wanting(ExpectedToolCall("ping"))),
            Item(id="b", events=(2,)),
            Item(id="c", expected=wanting(ExpectedToolCall("ping"))),
            Item(id="d", expected=wanting(ExpectedToolCall("ping")), extras={"tool_calls": []}),
        )
        conversation = chat(user("hi"), made("ping"), made("ping"), items=items)
        observations = observe(tool_correctness, conversation)
        assert told(observations) == [
            ("item a", 1.0),
            ("item b", "unmeasured: no_expected_tool_call"),
            ("item c", "unmeasured: tool_calls_unknown"),
            ("item d", 0.0),
        ]
        assert observations[1].detail == "expected_tool_call"

    def test_a_conversation_without_items_is_one_case(self) -> None:
        conversation = chat(user("hi"), made("ping"), expected=wanting(ExpectedToolCall("ping")))
        assert told(observe(tool_correctness, conversation)) == [("conversation", 1.0)]


class TestItems:
    def test_ids_that_another_item_uses_again_do_not_mix(self) -> None:
        items = tuple(
            Item(id=name, events=events, extras={"parameters_passed": {}, "tool_call_results": []})
            for name, events in (("a", (0,)), ("b", (1, 2)))
        )
        conversation = chat(made("ping", {}, "1"), made("ping", {}, "1"), answered("1", success=False), items=items)
        # a: passed agrees, no result. b: passed agrees, the result tells of failure.
        assert told(observe(parameter_correctness_by_success, conversation)) == [("item a", 1.0), ("item b", 0.5)]

    def test_an_item_may_have_tools_of_its_own(self) -> None:
        own = [{"name": "ping", "args_schema": {"type": "object", "required": ["host"]}}, {"name": 7}, "x"]
        one = checked(made("ping", {}, "a"), answered("a", success=True), passed={}, tools_available=own)
        assert checks(one) == [{"required": False, "passed": True, "success": True}]

    def test_ten_points_and_their_pass_mark(self) -> None:
        for metric in (tool_correctness, parameter_correctness):
            assert metric.ten is not None
            assert (metric.ten.score(0.0), metric.ten.score(0.7), metric.ten.score(1.0)) == (0.0, 7.0, 10.0)
            assert metric.ten.passes_at == 7.0

    def test_the_conversation_has_the_mean_of_its_items(self) -> None:
        wanted = wanting(ExpectedToolCall("ping"))
        items = (Item(id="a", events=(0,), expected=wanted), Item(id="b", events=(1,), expected=wanted))
        conversation = chat(made("ping"), made("pong"), items=items)
        (score,) = reduce_conversation(tool_correctness, observe(tool_correctness, conversation))
        # 10 points, and 6 for another tool where no argument is expected
        assert (score.value, score.ten, score.n) == (0.8, 8.0, 2)


JSON = json_values()
NAMES = st.text(min_size=1, max_size=3).filter(str.strip)


class TestNothingBreaksIt:
    @given(JSON, JSON, st.none() | st.text(max_size=5), NAMES, NAMES)
    def test_whatever_was_expected_and_called(
        self, expected: Any, arguments: Any, raw: str | None, name: str, other: str
    ) -> None:
        wanted = wanting(ExpectedToolCall(name, expected), ExpectedToolCall(other, arguments))
        one = judged(made(name, arguments, raw=raw), made(other, expected), expected=wanted)
        assert one.status == "measured"
        assert one.value is not None
        assert 0 <= one.value <= 1
        assert (one.value == 1) <= (not diff(one))

    @given(JSON, JSON, JSON, JSON, st.none() | st.booleans(), st.text(max_size=3))
    def test_whatever_was_passed(
        self, arguments: Any, schema: Any, passed: Any, own: Any, success: bool | None, error: str
    ) -> None:
        tools = (Tool(name="t", arguments_schema=schema),)
        events = (made("t", arguments, "a"), made("t", passed), answered("a", success, error, arguments))
        one = checked(*events, passed=passed, tools=tools, tools_available=own)
        assert one.status in ("measured", "unmeasured")
        assert one.value is None or 0 <= one.value <= 1

    @given(st.dictionaries(st.text(max_size=3), JSON, max_size=4))
    def test_the_same_call_is_full_marks(self, arguments: dict[str, Any]) -> None:
        one = judged(made("t", arguments), expected=wanting(ExpectedToolCall("t", arguments)))
        assert (one.value, diff(one)) == (1.0, [])

    @given(st.dictionaries(st.text(max_size=3), JSON, max_size=4), st.randoms())
    def test_the_order_of_arguments_does_not_matter(self, arguments: dict[str, Any], random: Any) -> None:
        pairs = list(arguments.items())
        random.shuffle(pairs)
        one = judged(made("t", dict(pairs)), expected=wanting(ExpectedToolCall("t", arguments)))
        assert one.value == 1.0

    @given(
        st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2)),
        st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2)),
    )
    def test_another_argument_too_many_never_helps(self, expected: dict[str, int], arguments: dict[str, int]) -> None:
        wanted = wanting(ExpectedToolCall("t", expected))
        before = judged(made("t", arguments), expected=wanted).value
        after = judged(made("t", arguments | {"more": 1}), expected=wanted).value
        assert before is not None
        assert after is not None
        assert 0.4 <= after <= before

    def test_values_nested_beyond_what_can_be_written(self) -> None:
        deep: Any = "end"
        for _ in range(100_000):
            deep = [deep]
        other: Any = "another end"
        for _ in range(100_000):
            other = [other]
        one = judged(made("t", {"x": deep}), expected=wanting(ExpectedToolCall("t", {"x": other})))
        assert points(one) == 4.0
        assert len(diff(one)) == 1
        assert checked(made("ping", {"x": deep}), passed={"x": other}).value == 0.0
        one = checked(made("weather", {"city": deep}), passed={"city": deep})
        # It is required and there, and it is what was passed, but it is no text: 2 of 3.
        assert (one.value, diff(one)) == (2 / 3, [f"~ city: {'[' * 159}… is not string"])
        listed = (Tool(name="weather", arguments_schema={"properties": {"city": {"enum": ["Oslo"]}}}),)
        one = checked(made("weather", {"city": deep}), passed={"city": deep}, tools=listed)
        assert (one.value, diff(one)) == (1.0, ["? arguments: cannot be checked: nested too deep"])
