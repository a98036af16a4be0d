"""tools.tool_call_validity: was the tool called as it wants to be called?"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from convoscope.conversation import Agent, Conversation, Tool, ToolCall, ToolResult
from convoscope.metrics import Metric, Observation
from convoscope.metrics.tools.calls import (
    bad_argument_rate,
    missing_argument_rate,
    rejected_rate,
    tool_call_validity,
    unknown_tool_rate,
)
from convoscope.scoring.evaluate import observe
from convoscope.statistics.within import reduce_conversation
from support.chats import chat, told, user
from support.strategies import json_values

SCHEMA = {
    "type": "object",
    "properties": {
        "origin": {"type": "string"},
        "date": {"type": "string"},
        "passengers": {"type": "integer"},
        "fare": {"type": "string", "enum": ["main", "first"]},
        "flexible": {"type": "boolean"},
        "stops": {"type": "array", "items": {"type": "string"}},
        "contact": {"type": "object", "properties": {"mail": {"type": "string"}}, "required": ["mail"]},
        "price": {"type": "number"},
    },
    "required": ["origin", "date"],
    "additionalProperties": False,
}
AGENT = Agent(tools=(Tool(name="search", arguments_schema=SCHEMA), Tool(name="hello")))
NOTHING_KNOWN = Agent()
GOOD = {"origin": "AUS", "date": "2026-03-25"}


def called(
    arguments: Any = None,
    answer: Any = None,
    *,
    name: str = "search",
    agent: Agent = NOTHING_KNOWN,
    raw: str | None = None,
) -> Conversation:
    """One call, and its answer where there is one."""
    events: list[Any] = [ToolCall(seq=0, name=name, arguments=arguments, raw_arguments=raw)]
    if answer is not None:
        events.append(ToolResult(seq=1, name=name, result=answer))
    return chat(*events, agent=agent)


def judged(*args: Any, metric: Metric = tool_call_validity, **facts: Any) -> Observation:
    (one,) = observe(metric, called(*args, **facts))
    return one


def by_schema(arguments: Any, schema: Any = SCHEMA) -> list[str]:
    """The mistakes that the schema finds."""
    one = judged(arguments, agent=Agent(tools=(Tool(name="search", arguments_schema=schema),)))
    mistakes = (one.details or {}).get("mistakes", [])
    assert one.value == (0.0 if mistakes else 1.0)
    return list(mistakes)


class TestTheSchema:
    @pytest.mark.parametrize(
        "arguments",
        [
            GOOD,
            GOOD | {"passengers": 2, "fare": "main", "flexible": False, "stops": ["DEN"], "price": 1},
            GOOD | {"passengers": 2.0},  # a whole number
            GOOD | {"fare": None},  # models write null for what they leave out
            GOOD | {"contact": {"mail": "a@example.com", "more": 1}},
        ],
    )
    def test_a_call_that_fits_is_a_1_though_its_result_is_not_logged(self, arguments: Any) -> None:
        assert by_schema(arguments) == []

    @pytest.mark.parametrize(
        ("arguments", "mistakes"),
        [
            ({"origin": "AUS"}, ["missing argument: date"]),
            (None, ["missing argument: origin", "missing argument: date"]),
            (GOOD | {"passengers": "2"}, ['bad argument: passengers: "2" is not integer']),
            (GOOD | {"passengers": 2.5}, ["bad argument: passengers: 2.5 is not integer"]),
            (GOOD | {"passengers": True}, ["bad argument: passengers: true is not integer"]),
            (GOOD | {"flexible": 1}, ["bad argument: flexible: 1 is not boolean"]),
            (GOOD | {"fare": "any"}, ['bad argument: fare: "any" is not one of ["main", "first"]']),
            (GOOD | {"stops": ["DEN", 7]}, ["bad argument: stops[1]: 7 is not string"]),
            (GOOD | {"stops": "DEN"}, ['bad argument: stops: "DEN" is not array']),
            (GOOD | {"contact": {}}, ["missing argument: contact.mail"]),
            (GOOD | {"colour": "red"}, ["bad argument: colour: there is no such argument"]),
            ({"origin": None, "date": "x"}, ["bad argument: origin: null is not string"]),
            (["AUS"], ['bad argument: arguments: ["AUS"] is not object']),
        ],
    )
    def test_one_that_does_not_is_a_0(self, arguments: Any, mistakes: list[str]) -> None:
        assert by_schema(arguments) == mistakes

    def test_an_argument_that_an_open_schema_does_not_list_is_told_but_no_mistake(self) -> None:
        schema = {"type": "object", "properties": {"a": {"type": "string"}}}
        agent = Agent(tools=(Tool(name="search", arguments_schema=schema),))
        one = judged({"a": "x", "b": 1}, agent=agent)
        assert (one.value, one.details) == (1.0, {"tool": "search", "unlisted": ["b"]})

    @pytest.mark.parametrize(
        ("schema", "good", "bad"),
        [
            ({"type": ["string", "null"]}, [None, "x"], [1]),
            ({"type": "string", "nullable": True}, [None], [1]),
            ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, ["x", 1], [1.5]),
            ({"oneOf": [{"type": "string"}, {"type": "null"}]}, ["x", None], [[]]),
            ({"allOf": [{"type": "integer"}, {"enum": [1, 2]}]}, [1, 2.0], [3, "1"]),
            ({"const": "yes"}, ["yes"], ["no"]),
            ({"enum": [1, None]}, [1, None], [True, "none"]),
            ({"$ref": "#/$defs/city"}, ["AUS"], [7]),
            ({"$ref": "elsewhere.json"}, [7, "x"], []),  # left open
            ({"$ref": "#/$defs/loop"}, [7], []),
            ({"type": "iso-date"}, [7, "x"], []),  # a type that nobody knows
            ({"type": "STRING"}, ["x"], [7]),
            (True, [7], []),
        ],
    )
    def test_words_of_json_schema(self, schema: Any, good: list, bad: list) -> None:
        whole = {
            "type": "object",
            "properties": {"a": schema},
            "required": ["a"],
            "$defs": {"city": {"type": "string"}, "loop": {"$ref": "#/$defs/loop"}},
        }
        assert [by_schema({"a": value}, whole) for value in good] == [[]] * len(good)
        assert all(by_schema({"a": value}, whole) for value in bad)

    @pytest.mark.parametrize(
        "told",
        [
            [{"name": "city", "type": "str", "required": True}, {"name": "day", "type": "str", "enum": ["sat"]}],
            {"city": {"type": "string", "required": True}, "day": {"type": "string", "enum": ["sat"]}},
            {
                "required_parameters": [{"name": "city", "type": "string"}],
                "optional_parameters": [{"name": "day", "type": "string", "enum": ["sat"]}],
            },
        ],
        ids=["a list", "a map", "two lists"],
    )
    def test_a_list_of_parameters_is_a_schema_too(self, told: Any) -> None:
        assert by_schema({"city": "Oslo", "day": "sat"}, told) == []
        assert by_schema({"day": "sat"}, told) == ["missing argument: city"]
        assert by_schema({"city": 7}, told) == ["bad argument: city: 7 is not string"]
        assert by_schema({"city": "Oslo", "day": "sun"}, told) == ['bad argument: day: "sun" is not one of ["sat"]']
        assert by_schema({"city": "Oslo", "at": 1}, told) == ["bad argument: at: there is no such argument"]

    def test_choices_that_hold_themselves_come_to_an_end(self) -> None:
        whole = {"type": "object", "anyOf": [{"$ref": "#"}, {"$ref": "#"}], "allOf": [{"$ref": "#"}]}
        assert by_schema({"a": 1}, whole) == []

    @pytest.mark.parametrize("shape", [None, {}, "city: string", 7, [1], ["city"]])
    def test_a_shape_that_nobody_knows_is_no_schema(self, shape: Any) -> None:
        one = judged({"a": 1}, agent=Agent(tools=(Tool(name="search", arguments_schema=shape),)))
        assert told([one]) == [("tool call 0", "unmeasured: no_tool_result")]


class TestASchemaThatCannotBeChecked:
    """Sixty choices at each of five levels, none of which fits: 60⁵ steps."""

    KNOT = {"type": "object", "properties": {"x": {"anyOf": [{"$ref": "#"}] * 60}}, "required": ["x"]}
    DEEP: Any = {"x": {"x": {"x": {"x": {"x": 5}}}}}
    AGENT = Agent(tools=(Tool(name="search", arguments_schema=KNOT),))

    @pytest.mark.parametrize("metric", [tool_call_validity, missing_argument_rate, bad_argument_rate])
    @pytest.mark.parametrize("answer", [None, {"flights": 3}])
    def test_is_unmeasured_and_says_why(self, metric: Metric, answer: Any) -> None:
        one = judged(self.DEEP, answer, metric=metric, agent=self.AGENT)
        assert (one.value, one.reason) == (None, "schema_not_checked")
        assert one.detail == "search: takes more than 10,600 steps to check"

    def test_what_else_is_known_of_the_call_counts(self) -> None:
        one = judged(self.DEEP, {"error": "missing required argument: z"}, agent=self.AGENT)
        assert one.value == 0.0
        assert judged(self.DEEP, metric=unknown_tool_rate, agent=self.AGENT).value == 0.0


class TestTheNameAndTheText:
    def test_a_tool_that_is_not_listed_does_not_exist(self) -> None:
        one = judged({}, name="fly", agent=AGENT)
        assert (one.value, one.details) == (0.0, {"tool": "fly", "mistakes": ["no such tool"]})

    @pytest.mark.parametrize("answer", [{"success": True}, {"queue": 3}, {"success": False, "error": "sold out"}])
    def test_unless_it_answers_as_a_tool_does(self, answer: Any) -> None:
        one = judged({}, answer, name="transfer", agent=AGENT)
        assert one.value == 1.0
        assert one.details["unlisted"] == ["tool"]

    def test_arguments_that_are_not_json_are_a_0_whatever_is_known(self) -> None:
        one = judged(raw='{"origin": "AU')
        assert (one.value, one.details["mistakes"]) == (0.0, ['bad argument: not JSON: "{\\"origin\\": \\"AU"'])


# Results as airline, IT and HR systems give them (voice-logs, 1.7: defect 5).
BLAMES_THE_CALL = [
    {"status": "error", "error_type": "invalid_fare_class", "message": "Fare class must be one of: main, first"},
    {"status": "error", "error_type": "missing_parameter", "message": "journey_id"},
    {"status": "error", "error_type": "invalid_date_format", "message": "Use YYYY-MM-DD"},
    {"status": "error", "error_type": "invalid_urgency", "message": "Urgency 'asap' is unknown"},
    {"status": "error", "error_type": "invalid_asset_tag_format"},
    {"status": "error", "error_type": "unknown_category_code"},
    {"status": "error", "error_type": "missing_required_field"},
    {"status": "error", "error_type": "invalid_leave_type"},
    {"status": "error", "error_type": "unsupported_visa_class"},
    {"status": "error", "error_type": "invalid_effective_date"},
    {"success": False, "error": "Unrecognized department code 'XX'. Valid codes: HR, IT"},
    {"success": False, "error": "origin is required"},  # the name of an argument
    {"success": False, "error": {"code": "VALIDATION_ERROR", "message": "see log"}},
    {"success": False, "error": {"code": -32602, "message": "no"}},
    {"success": False, "errors": [{"loc": ["x"], "msg": "field required", "type": "value_error.missing"}]},
    {"success": False, "error": "search() got an unexpected keyword argument 'colour'"},
    {"success": False, "error": "InvalidArgumentException"},
    {"success": False, "error": "Tool 'fly' not found"},
    {"success": False, "status_code": 422},
    "Error: search() missing 1 required positional argument: 'date'",
]
SAYS_NO = [
    {"status": "error", "error_type": "not_found", "message": "Reservation QQQQQQ not found"},
    {"status": "error", "error_type": "employee_not_found", "message": "Invalid employee"},
    {"status": "error", "error_type": "request_not_found"},
    {"status": "error", "message": "Last name does not match"},
    {"status": "error", "error_type": "authentication_required"},
    {"status": "error", "error_type": "invalid_credentials"},
    {"status": "error", "error_type": "invalid_otp"},
    {"status": "error", "error_type": "not_eligible_for_refund"},
    {"status": "error", "error_type": "change_not_allowed", "message": "Basic economy cannot be changed"},
    {"status": "error", "error_type": "manager_approval_required"},
    {"status": "error", "error_type": "insufficient_leave_balance"},
    {"status": "error", "error_type": "account_already_unlocked"},
    {"status": "error", "error_type": "invalid_status_transition"},
    {"success": False, "error": "No flights found for the given parameters"},
    {"success": False, "error": "payment declined"},
    {"success": False, "error": "The request timed out"},
    {"success": False, "error": "Internal server error"},
    {"success": False, "error": "sold out"},
    {"success": False, "status_code": 503},
]
SAYS_NOTHING = [
    {"success": False},
    {"success": False, "error": "unknown error"},
    {"status": "failed", "message": "ERR-7712"},
    {"error": {"id": 7}},
]


class TestTheAnswer:
    @pytest.mark.parametrize("answer", BLAMES_THE_CALL, ids=json.dumps)
    def test_one_that_blames_the_call_is_a_0(self, answer: Any) -> None:
        one = judged({"origin": None}, answer)
        assert (one.value, one.details["answer"]) == (0.0, "rejected")
        assert one.details["sign"]
        assert judged({"origin": None}, answer, metric=rejected_rate).value == 1.0

    @pytest.mark.parametrize("answer", SAYS_NO, ids=json.dumps)
    def test_one_that_says_no_is_no_mistake_of_the_call(self, answer: Any) -> None:
        one = judged({"origin": "AUS"}, answer)
        assert (one.value, one.details["answer"]) == (1.0, "world")
        assert one.details["sign"]
        assert judged({"origin": "AUS"}, answer, metric=rejected_rate).value == 0.0

    @pytest.mark.parametrize("answer", SAYS_NOTHING, ids=json.dumps)
    def test_one_that_does_not_say_why_tells_nothing_of_the_call(self, answer: Any) -> None:
        for metric in (tool_call_validity, rejected_rate):
            one = judged({}, answer, metric=metric)
            assert (one.status, one.reason) == ("unmeasured", "undecided_error")

    @pytest.mark.parametrize("answer", [{"success": True}, {"options": []}, "two flights", [], {"status": "success"}])
    def test_one_without_an_error_is_a_1(self, answer: Any) -> None:
        one = judged({}, answer)
        assert (one.value, one.details) == (1.0, {"tool": "search"})

    def test_the_type_of_an_error_goes_before_its_message(self) -> None:
        answer = {"status": "error", "error_type": "not_found", "message": "Invalid parameter or unknown id"}
        one = judged({}, answer)
        assert (one.value, one.details["sign"]) == (1.0, "not found")
        assert one.details["error"] == "not_found: Invalid parameter or unknown id"

    def test_a_call_against_the_schema_is_a_0_though_the_tool_took_it(self) -> None:
        assert judged(GOOD | {"passengers": "2"}, {"success": True}, agent=AGENT).value == 0.0

    def test_a_call_by_the_schema_is_a_0_where_the_tool_turns_it_down(self) -> None:
        one = judged(GOOD, {"success": False, "error": "invalid date format"}, agent=AGENT)
        assert one.details["mistakes"] == ["rejected: invalid date format"]


class TestRates:
    @pytest.mark.parametrize(
        ("facts", "unknown_tool", "missing", "bad", "rejected"),
        [
            ({"arguments": GOOD, "answer": {"ok": True}, "agent": AGENT}, 0, 0, 0, 0),
            ({"arguments": {"origin": 7}, "agent": AGENT}, 0, 1, 1, "unmeasured: no_tool_result"),
            (
                {"name": "fly", "answer": {"success": False, "error": "unknown tool"}, "agent": AGENT},
                *(1, "not_applicable: unknown_tool", "not_applicable: unknown_tool", 1),
            ),
            (
                {"name": "hello", "answer": {"ok": True}, "agent": AGENT},
                *(0, "unmeasured: no_arguments_schema", "unmeasured: no_arguments_schema", 0),
            ),
            (
                {"raw": "{", "agent": AGENT},
                *(0, "not_applicable: arguments_unreadable", 1, "unmeasured: no_tool_result"),
            ),
            (
                {"arguments": GOOD, "answer": {"ok": True}},
                *("unmeasured: tools_unknown", "unmeasured: no_arguments_schema"),
                *("unmeasured: no_arguments_schema", 0),
            ),
        ],
        ids=["right", "by the schema", "no such tool", "no schema", "no JSON", "no list of tools"],
    )
    def test_of_each_kind_of_mistake(
        self, facts: Any, unknown_tool: object, missing: object, bad: object, rejected: object
    ) -> None:
        metrics = (unknown_tool_rate, missing_argument_rate, bad_argument_rate, rejected_rate)
        found = [told(observe(metric, called(**facts)))[0][1] for metric in metrics]
        assert found == [unknown_tool, missing, bad, rejected]

    def test_over_a_conversation_calls_count_that_could_be_judged(self) -> None:
        conversation = chat(
            ToolCall(seq=0, name="search", arguments=GOOD),
            ToolCall(seq=1, name="search", arguments={}),
            ToolCall(seq=2, name="hello"),  # neither schema nor result
            ToolCall(seq=3, name="fly"),
            agent=AGENT,
        )
        observations = observe(tool_call_validity, conversation)
        assert told(observations) == [
            ("tool call 0", 1.0),
            ("tool call 1", 0.0),
            ("tool call 2", "unmeasured: no_tool_result"),
            ("tool call 3", 0.0),
        ]
        (score,) = reduce_conversation(tool_call_validity, observations)
        assert score.value == pytest.approx(1 / 3)

    def test_without_a_call_they_are_not_applicable(self) -> None:
        for metric in (tool_call_validity, unknown_tool_rate, missing_argument_rate, bad_argument_rate, rejected_rate):
            assert told(observe(metric, chat(user("hi"), agent=AGENT))) == [
                ("conversation", "not_applicable: no_tool_calls")
            ]


@given(json_values(12), json_values(), json_values(12))
def test_whatever_a_log_holds_is_judged_and_nothing_breaks(schema: Any, arguments: Any, answer: Any) -> None:
    agent = Agent(tools=(Tool(name="search", arguments_schema=schema),))
    properties = Agent(tools=(Tool(name="search", arguments_schema={"properties": schema, "required": schema}),))
    shaped = {"anyOf": schema, "allOf": schema, "enum": schema, "type": schema, "properties": {"a": schema}}
    others = Agent(tools=(Tool(name="search", arguments_schema=shaped),))
    for told_tools in (agent, properties, others):
        one = judged(arguments, {"success": False, "error": answer}, agent=told_tools)
        assert one.status == "measured" or one.reason == "undecided_error"
