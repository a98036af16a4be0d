"""tools.parameter_correctness: how the calls were made, check by check."""

from __future__ import annotations

from typing import Any

import pytest

from convoscope.conversation import Agent, Event, Tool
from convoscope.metrics.tools.correctness import parameter_correctness as ours
from convoscope.metrics.tools.correctness import parameter_correctness_by_success as parameter_correctness
from convoscope.scoring.evaluate import observe
from support.called_tools import TOOLS, answered, checked, checks, diff, item, made, one_of
from support.chats import chat, told


class TestTheChecksOfACall:
    def test_all_four_hold(self) -> None:
        arguments = {"city": "Oslo", "days": 3}
        one = checked(made("weather", arguments, "a"), answered("a", success=True), passed=arguments)
        assert (one.value, diff(one)) == (1.0, [])
        assert checks(one) == [{"required": True, "types": True, "passed": True, "success": True}]

    @pytest.mark.parametrize(
        ("arguments", "passed", "success", "value", "lines"),
        [
            # 3 of 4 hold
            ({"days": 3}, {"days": 3}, True, 3 / 4, ["- city: required, missing"]),
            (
                {"city": "Oslo", "days": "3"},
                {"city": "Oslo", "days": "3"},
                True,
                3 / 4,
                ['~ days: "3" is not integer'],
            ),
            (
                {"city": "Oslo"},
                {"city": "Bergen"},
                True,
                3 / 4,
                ['~ city: parameters_passed has "Bergen", the call "Oslo"'],
            ),
            (
                {"city": "Oslo"},
                {"city": "Oslo", "days": 3},
                True,
                3 / 4,
                ["- days: parameters_passed has 3"],
            ),
            ({"city": "Oslo"}, {"city": "Oslo"}, False, 3 / 4, ['~ result: expected success, got "down"']),
            # none of 4
            (
                {"days": "3"},
                {},
                False,
                0.0,
                [
                    "- city: required, missing",
                    '~ days: "3" is not integer',
                    '+ days: the call "3"',
                    '~ result: expected success, got "down"',
                ],
            ),
        ],
    )
    def test_the_share_that_holds(
        self, arguments: Any, passed: Any, success: bool, value: float, lines: list[str]
    ) -> None:
        error = "" if success else "down"
        one = checked(made("weather", arguments, "a"), answered("a", success, error), passed=passed)
        assert (one.value, diff(one)) == (value, lines)

    def test_an_argument_that_an_open_schema_does_not_list_is_told_but_no_fault(self) -> None:
        arguments = {"city": "Oslo", "units": "C"}
        one = checked(made("weather", arguments, "a"), answered("a", success=True), passed=arguments)
        assert (one.value, diff(one)) == (1.0, ["+ units: not in the schema"])

    @pytest.mark.parametrize(
        ("schema", "value", "fault"),
        [
            ({"type": "string", "pattern": "^a"}, "b", '"b" does not match ^a'),
            ({"type": "integer", "minimum": 5}, 1, "1 is below 5"),
            ({"type": "array", "minItems": 2}, [1], "has 1 items, fewer than 2"),
            ({"type": "string", "maxLength": 1}, "abc", "has 3 characters, more than 1"),
            ({"not": {"type": "string"}}, "abc", '"abc" fits what it must not'),
            ({"type": "str"}, 1, "1 is not string"),
        ],
    )
    def test_arguments_fit_the_schema_to_the_letter(self, schema: Any, value: Any, fault: str) -> None:
        tools = (Tool(name="t", arguments_schema={"type": "object", "properties": {"x": schema}}),)
        one = checked(made("t", {"x": value}, "a"), answered("a", success=True), passed={"x": value}, tools=tools)
        # passed and success hold, types does not
        assert (one.value, diff(one)) == (pytest.approx(2 / 3), [f"~ x: {fault}"])

    def test_null_is_an_argument_left_out(self) -> None:
        arguments = {"city": "Oslo", "days": None}
        assert checked(made("weather", arguments, "a"), answered("a", success=True), passed=arguments).value == 1.0

    def test_arguments_that_are_no_json_fit_nothing(self) -> None:
        one = checked(made("weather", None, "a", raw="{"), answered("a", success=False, error="bad"), passed={})
        assert (one.value, checks(one)) == (0.0, [{"types": False, "passed": False, "success": False}])

    def test_an_error_without_a_word_on_success_is_a_failure(self) -> None:
        one = checked(made("ping", None, "a"), answered("a", error="down"), passed={})
        assert checks(one) == [{"passed": True, "success": False}]


class TestChecksThatCannotBeMade:
    def test_no_schema(self) -> None:
        one = checked(made("ping", {"x": 1}, "a"), answered("a", success=True), passed={"x": 1})
        assert (one.value, checks(one)) == (1.0, [{"passed": True, "success": True}])
        one = checked(made("ping", {"x": 1}, "a"), answered("a", success=True), passed={"x": 1}, tools=None)
        assert checks(one) == [{"passed": True, "success": True}]

    def test_a_schema_that_cannot_be_used(self) -> None:
        properties = {"x": {"type": "iso-date"}, "y": {"type": "integer"}}
        schema = {"type": "object", "properties": properties, "required": ["x"]}
        tools = (Tool(name="t", arguments_schema=schema),)
        unchecked = '? arguments: cannot be checked: type "iso-date" is no type'
        one = checked(made("t", {"x": "1"}), passed={"x": "1"}, tools=tools)
        assert (checks(one), diff(one)) == ([{"required": True, "passed": True}], [unchecked])
        # What is wrong by its plain words is wrong for certain.
        arguments = {"x": "1", "y": "1"}
        one = checked(made("t", arguments), passed=arguments, tools=tools)
        assert checks(one) == [{"required": True, "types": False, "passed": True}]
        assert diff(one) == [unchecked, '~ y: "1" is not integer']

    def test_a_schema_that_takes_too_many_steps(self) -> None:
        # Sixty choices at each of five levels, none of which fits: 60⁵ steps.
        schema = {"type": "object", "properties": {"x": {"anyOf": [{"$ref": "#"}] * 60}}, "required": ["x"]}
        arguments = {"x": {"x": {"x": {"x": {"x": 5}}}}}
        one = checked(made("t", arguments), passed=arguments, tools=(Tool(name="t", arguments_schema=schema),))
        assert checks(one) == [{"passed": True}]
        assert diff(one) == ["? arguments: cannot be checked: takes more than 10,600 steps to check"]

    def test_nothing_is_required_and_no_argument_was_given(self) -> None:
        tools = (Tool(name="weather", arguments_schema={"type": "object", "properties": {"x": {"type": "string"}}}),)
        one = checked(made("weather", {}, "a"), answered("a", success=True), passed={}, tools=tools)
        assert checks(one) == [{"passed": True, "success": True}]

    def test_a_result_that_is_absent_or_says_nothing(self) -> None:
        for results in ([], [answered("other", success=False)], [answered("a", result={"sun": True})]):
            one = checked(made("weather", {"city": "Oslo"}, "a"), *results, passed={"city": "Oslo"})
            assert checks(one) == [{"required": True, "types": True, "passed": True}]

    def test_only_the_last_call_is_compared_with_parameters_passed(self) -> None:
        one = checked(
            made("weather", {"city": "Oslo"}, "a"),
            made("weather", {"city": "Bergen"}, "b"),
            answered("b", success=False, error="down"),
            passed={"city": "Bergen"},
        )
        # The first: required and types, 2 of 2. The second: required, types, passed of 4. (1 + 3/4) ÷ 2
        assert one.value == 7 / 8
        assert checks(one) == [
            {"required": True, "types": True},
            {"required": True, "types": True, "passed": True, "success": False},
        ]
        assert diff(one) == ['~ call 2 weather: result: expected success, got "down"']

    def test_a_call_without_any_check_is_left_out_of_the_mean(self) -> None:
        one = checked(made("ping"), made("weather", {"city": 1}, "b"), passed={"city": 1})
        # Only the second: required and passed hold, types does not
        assert one.value == pytest.approx(2 / 3)
        assert [call["points"] for call in (one.details or {})["calls"]] == [None, 6.666667]

    def test_a_chat_without_items_has_no_parameters_beside_its_calls(self) -> None:
        chatted = chat(made("weather", {"city": "Oslo"}, "a"), answered("a", success=True), agent=Agent(tools=TOOLS))
        one = one_of(parameter_correctness, chatted)
        assert (one.value, checks(one)) == (1.0, [{"required": True, "types": True, "success": True}])

    def test_none_at_all_is_unmeasured(self) -> None:
        chatted = chat(made("ping", {"x": 1}, "a"), answered("a", result="pong"))
        assert told(observe(parameter_correctness, chatted)) == [("conversation", "unmeasured: nothing_to_check")]

    def test_an_agent_that_called_nothing_is_not_applicable(self) -> None:
        conversation = item(tool_calls=[], parameters_passed={}, tool_call_results=[])
        assert told(observe(parameter_correctness, conversation)) == [("item 1", "not_applicable: nothing_called")]

    @pytest.mark.parametrize(
        ("events", "extras", "reason"),
        [
            ((), {"parameters_passed": {}, "tool_call_results": []}, "tool_calls_unknown"),
            ((made("ping"),), {"tool_call_results": []}, "no_parameters_passed"),
            ((made("ping"),), {"parameters_passed": {}}, "no_tool_call_results"),
        ],
    )
    def test_a_missing_field_is_named(self, events: tuple[Event, ...], extras: dict[str, Any], reason: str) -> None:
        assert told(observe(parameter_correctness, item(*events, **extras))) == [
            ("conversation", f"unmeasured: {reason}")
        ]
        (one,) = parameter_correctness(item(*events, **extras))
        assert (one.reason, one.detail) == (reason, reason.removeprefix("no_").removesuffix("_unknown"))


class TestWhatBlamesTheArguments:
    """`tools.parameter_correctness`: what a result says counts only where it speaks of the arguments."""

    def test_results_that_tell_of_failure_alone_are_nothing_to_check(self) -> None:
        """200 runs whose results tell neither success nor error gave 0.000, of the 36 that failed."""
        for answer in (answered("a", error="down"), answered("a", result="pong"), answered("a", success=True)):
            chatted = chat(made("ping", {"x": 1}, "a"), answer)
            assert told(observe(ours, chatted)) == [("conversation", "unmeasured: nothing_to_check")]

    @pytest.mark.parametrize(
        ("error", "value", "accepted"),
        [
            ("out of stock: teapot moss", 1.0, True),  # the tool took the call and said no
            ("invalid argument: city", 2 / 3, False),  # required and types hold
            ("down", 1.0, None),  # does not say what it blames: no check
        ],
    )
    def test_a_no_is_no_fault_of_the_arguments(self, error: str, value: float, accepted: bool | None) -> None:
        call, answer = made("weather", {"city": "Oslo"}, "a"), answered("a", success=False, error=error)
        one = one_of(ours, chat(call, answer, agent=Agent(tools=TOOLS)))
        assert one.value == pytest.approx(value)
        wanted = {"required": True, "types": True} | ({} if accepted is None else {"accepted": accepted})
        assert checks(one) == [wanted]
