"""Was the right tool called, and was it called rightly: calls against what was expected, argument by argument."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import fsum
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation import Conversation, ExpectedToolCall, Json, ToolCall, ToolResult
from convoscope.metrics.declaration import RATIO, item_metric
from convoscope.metrics.item_fields import each_case, needs_of
from convoscope.metrics.perturbations import EMPTY_AGENT
from convoscope.metrics.semantic.matching import best_pairs
from convoscope.metrics.tools.call_checks import (
    CallableTool,
    CallableTools,
    bad_argument,
    reading_of,
    tools_of,
    unlisted,
)
from convoscope.scores.observation import Observation, measured, not_applicable, unmeasured
from convoscope.text.folding import composed
from convoscope.text.json_schema import CALL, FORGIVING, BadSchema, Fault, TooManySteps, schema_faults
from convoscope.views.items import Case
from convoscope.views.result_fields import STATED, ToolOutcome
from convoscope.views.tool_outcomes import tool_outcomes

# Of ten points (standard-data, 2.3): what the name is worth, what its arguments are, what an argument too many costs.
NAME = 4.0
ARGUMENTS = 6.0
EXTRA = 0.5
ALL = NAME + ARGUMENTS
_FINE = 2**20
"""Points are compared in whole numbers of this fineness."""


@item_metric(
    "tools.tool_correctness",
    version=1,
    label="right tool called",
    importance=7,
    unit=RATIO,
    needs=needs_of("tool_correctness"),
    sensitive_to=(EMPTY_AGENT,),
)
def tool_correctness(conversation: Conversation) -> Iterator[Observation]:
    """Did the agent make the tool call that was expected?

    The best over its calls of: 4 points for the right tool, and 6 × the share of the expected arguments
    that it was given (all 6 where none is expected), less 0.5 for each argument too many; never below 4
    for the right tool, never below 0 for another. The value is a tenth of that. Ids do not count. Values
    are equal as JSON: 1 is 1.0 and not true, blanks at both ends of a text and the order of keys do not
    count, null is an argument left out. Several expected calls: their mean, each call of the agent
    serving one of them, in the way that gives most. An agent that called nothing gets 0.

    >>> wanted = {"tool_calls": [{"name": "book", "arguments": {"seats": 2, "day": "Monday"}}]}
    >>> chat = example("user: Two on Monday.", 'tool: book {"seats": 2, "day": "Friday"}', expected=wanted)
    >>> value(tool_correctness, chat)  # 4 for the name, 3 of 6 for one of two arguments
    0.7
    """
    return each_case(conversation, "tool_correctness", _expected_calls)


def _expected_calls(case: Case) -> Observation:
    expected = case.expected.tool_calls or ()
    if not all(wanted.name.strip() for wanted in expected):
        return unmeasured(case.subject, "no_expected_tool_name", "expected_tool_call.tool_name")
    pairs = _paired(expected, case.tool_calls)
    value = fsum(pair.points for pair in pairs) / len(pairs) / ALL
    return measured(case.subject, value, details=_evidence_of_pairs(pairs, case.tool_calls))


_parameter_metric = partial(
    item_metric, unit=RATIO, needs=needs_of("parameter_correctness"), sensitive_to=(), undefined_under=(EMPTY_AGENT,)
)


@_parameter_metric("tools.parameter_correctness", version=4, label="arguments right", importance=5)
def parameter_correctness(conversation: Conversation) -> Iterator[Observation]:
    """Were the tools called with proper arguments?

    Per call the share of these checks that hold: every required argument is there; all arguments fit
    the tool's schema, to the letter, but that null is an argument left out; `parameters_passed` is what
    the last call was made with; the tool did not turn the call down for how it was made. A check that
    cannot be made is left out: nothing required or no schema, one that cannot be used, no argument to
    fit, a call that is not the last, a result that is absent, says nothing or does not say what it
    blames. A call of which nothing but the result is known says nothing of its arguments, whatever the
    result. The value is the mean of the calls that could be checked; none could: unmeasured.

    >>> seats = {"type": "object", "properties": {"seats": {"type": "integer"}}, "required": ["seats"]}
    >>> agent = {"tools": [{"name": "book", "arguments_schema": seats}]}
    >>> chat = example("user: Book it.", 'tool: book {"seats": "two"} -> {"ok": true}', agent=agent)
    >>> round(value(parameter_correctness, chat), 3)  # what is required is there and not refused, but is no integer
    0.667
    """
    return _parameters(conversation, _check_answer, "no schema, and no parameters_passed")


@_parameter_metric("tools.parameter_correctness", variant="standard-data", version=2)
def parameter_correctness_by_success(conversation: Conversation) -> Iterator[Observation]:
    """Were the tools called with proper arguments, and did they succeed?

    As published: `tools.parameter_correctness`, but that the last check is whether the result reports
    success, and that it may be the only one. Where results report failure alone, only failures are
    measured; and a tool that is out of stock counts against the arguments.

    >>> chat = example("user: Book it.", 'tool: book {} -> {"success": true}', 'tool: pay {} -> {"success": false}')
    >>> value(parameter_correctness_by_success, chat)  # one of two calls succeeded
    0.5
    """
    return _parameters(conversation, _check_success, "no schema, and no result that reports success")


def _parameters(conversation: Conversation, check: _CheckResult, nothing: str) -> Iterator[Observation]:
    """The share of the checks that hold, with one more of each result."""

    def observe(case: Case) -> Observation:
        if not case.tool_calls:
            return not_applicable(case.subject, "nothing_called")
        checked = _checked_calls(case, check)
        values = [call.value for call in checked if call.checks]
        if not values:
            return unmeasured(case.subject, "nothing_to_check", nothing)
        calls = [
            {**_which(one.call), "points": round(ALL * one.value, 6) if one.checks else None, **one.checks}
            for one in checked
        ]
        differences = [line for one in checked for line in one.differences]
        return measured(case.subject, fsum(values) / len(values), details={"diff": _cut(differences), "calls": calls})

    return each_case(conversation, "parameter_correctness", observe)


# The call that was expected


class _Pair(NamedTuple):
    """An expected call, and the call that serves it best; None where none does."""

    expected: ExpectedToolCall
    call: ToolCall | None
    points: float


def _paired(expected: Sequence[ExpectedToolCall], calls: Sequence[ToolCall]) -> list[_Pair]:
    points = [[_points(wanted, call) for call in calls] for wanted in expected]
    chosen = best_assignment(points)
    pairs = []
    for row, wanted in enumerate(expected):
        column = chosen[row]
        if column is None or not points[row][column]:
            pairs.append(_Pair(wanted, None, 0.0))
        else:
            pairs.append(_Pair(wanted, calls[column], points[row][column]))
    return pairs


def _points(expected: ExpectedToolCall, call: ToolCall) -> float:
    least = NAME if _is_named(expected, call) else 0.0
    wanted, passed = _by_name(expected.arguments), _arguments(call)
    equal = sum(same_value(value, passed.get(name)) for name, value in wanted.items())
    extra = sum(value is not None and name not in wanted for name, value in passed.items())
    share = equal / len(wanted) if wanted else 1.0
    return max(least, least + ARGUMENTS * share - EXTRA * extra)


def _is_named(expected: ExpectedToolCall, call: ToolCall) -> bool:
    return expected.name.strip() == call.name.strip()


def best_assignment(points: Sequence[Sequence[float]]) -> list[int | None]:
    """For each row the column that it gets, so that the sum is as large as can be; a column goes to one row at most.

    Rows that get none, because there are fewer columns, have None. Of equally good columns the first is taken.
    """
    gains = [[round(worth * _FINE) * len(row) - column for column, worth in enumerate(row)] for row in points]
    column_of = dict(best_pairs(gains))
    return [column_of.get(row) for row in range(len(points))]


def _evidence_of_pairs(pairs: Sequence[_Pair], calls: Sequence[ToolCall]) -> dict[str, Any]:
    """What a person wants to see: how the calls differ from the expected ones, then which served for which."""
    differences: list[str] = []
    calls_made = []
    for number, (expected, call, points) in enumerate(pairs, 1):
        where = f"call {number} {expected.name}: " if len(pairs) > 1 else ""
        if call is None:
            names = sorted({one.name for one in calls})
            more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
            others = ", ".join(names[:_NAMES]) + more or "nothing"
            differences.append(f"- {where}tool: expected {expected.name}, called {others}")
            calls_made.append({"expected": expected.name, "called": None, "points": points})
            continue
        if not _is_named(expected, call):
            differences.append(f"~ {where}tool: expected {expected.name}, called {call.name}")
        differences += _differences(where, _by_name(expected.arguments), _arguments(call), ("expected", "got"))
        calls_made.append({"expected": expected.name, **_which(call), "points": round(points, 6)})
    return {"diff": _cut(differences), "calls": calls_made}


# The arguments that each call was made with


class _CheckedCall(msgspec.Struct, gc=False):
    """One call: the checks that could be made of it, and where it falls short."""

    call: ToolCall
    where: str
    schema: Json
    checks: dict[str, bool] = {}
    differences: list[str] = []

    @property
    def value(self) -> float:
        """The share of the checks that hold, of at least one."""
        return sum(self.checks.values()) / len(self.checks)

    def check(self, name: str, holds: bool, difference: str, outcome: ToolOutcome, result: ToolResult) -> None:
        """Add what the result says of the call."""
        self.checks[name] = holds
        if not holds:
            self.differences.append(f"~ {self.where}result: {difference} {_shown(outcome.error or result.result)}")


_CheckResult = Callable[[_CheckedCall, ToolResult, ToolOutcome], None]


def _checked_calls(case: Case, check_result: _CheckResult) -> list[_CheckedCall]:
    conversation, calls = case.conversation, case.tool_calls
    if case.item is not None and len(conversation.items) > 1:
        # Items may use the same ids again: the result of a call is among the events of its item.
        conversation = msgspec.structs.replace(conversation, timeline=case.events, items=(), frames=(), annotations=())
    tools, results, outcomes = _tools(case), conversation.tool_results, tool_outcomes(conversation)
    checked_calls = []
    for number, call in enumerate(calls, 1):
        tool, result = tools.get(call.name), results.get(call.seq)
        where = f"call {number} {call.name}: " if len(calls) > 1 else ""
        checked = _CheckedCall(call, where, tool.schema if tool else None)
        if tool is not None or call.raw_arguments is not None:
            _check_schema(call, tool, where, checked.checks, checked.differences)
        # What was passed is known of the most recent call. Outside of items it is that call itself.
        if number == len(calls) and (passed := case.extras.get("parameters_passed")) is not None:
            arguments, stated = _arguments(call), _by_name(passed)
            checked.checks["passed"] = same_value(stated, arguments)
            checked.differences += _differences(where, stated, arguments, ("parameters_passed has", "the call"))
        if result is not None:
            check_result(checked, result, outcomes[result.seq])
        checked_calls.append(checked)
    return checked_calls


def _check_schema(
    call: ToolCall, tool: CallableTool | None, where: str, checks: dict[str, bool], differences: list[str]
) -> None:
    if call.raw_arguments is not None:
        checks["types"] = False
        differences.append(f"~ {where}arguments: not JSON: {_shown(call.raw_arguments)}")
        return
    if tool is None or tool.schema is None:
        return
    schema = tool.schema
    if tool.plain is not None and tool.plain.fits({} if call.arguments is None else call.arguments):
        if tool.plain.required:
            checks["required"] = True
        if call.arguments:
            checks["types"] = True
        return
    look = _schema_look(call.arguments, schema)
    if look.unchecked:
        differences.append(f"? {where}arguments: cannot be checked: {look.unchecked}")
    if look.faults is None:
        return
    absent = [fault.at for fault in look.faults if fault.kind == "missing"]
    wrong = [bad_argument(fault) for fault in look.faults if fault.kind != "missing"]
    if absent or (isinstance(schema.get("required"), list) and schema["required"]):
        checks["required"] = not absent
    if call.arguments and (wrong or not look.unchecked):
        checks["types"] = not wrong
    differences += [f"- {where}{name}: required, missing" for name in absent]
    differences += [f"~ {where}{difference}" for difference in wrong]
    differences += [f"+ {where}{name}: not in the schema" for name in unlisted(call.arguments, schema)]


class _SchemaLook(NamedTuple):
    """Where arguments do not fit a schema, and why it may be that not all of that was found."""

    faults: Sequence[Fault] | None
    """None where nothing can be said."""
    unchecked: str = ""


def _schema_look(arguments: Json, schema: dict[str, Any]) -> _SchemaLook:
    """To the letter; by a schema that cannot be used so, what its plain words say."""
    given, unchecked = {} if arguments is None else arguments, ""
    try:
        try:
            return _SchemaLook(list(schema_faults(given, schema, CALL)))
        except BadSchema as error:
            unchecked = str(error)
        return _SchemaLook(list(schema_faults(given, schema, FORGIVING)), unchecked)
    except TooManySteps as error:
        return _SchemaLook(None, str(error))
    except RecursionError:
        return _SchemaLook(None, "nested too deep")


def _check_success(checked: _CheckedCall, result: ToolResult, outcome: ToolOutcome) -> None:
    if outcome.basis == STATED:
        checked.check("success", not outcome.failed, "expected success, got", outcome, result)


def _check_answer(checked: _CheckedCall, result: ToolResult, outcome: ToolOutcome) -> None:
    """Whether the tool took the call; an answer that merely says no took it."""
    if checked.checks:
        answer = reading_of(result, outcome, checked.schema, checked.call.arguments).answer
        if answer is not None and answer != "undecided":
            checked.check("accepted", answer != "rejected", "the tool turned the call down:", outcome, result)


def _tools(case: Case) -> CallableTools | dict[str, CallableTool]:
    """What the arguments of each tool are held to, where it is known; an item may have had tools of its own."""
    item_tools = case.extras.get("tools_available")
    listed = case.conversation.agent.tools or ()
    if isinstance(item_tools, list | tuple):
        schemas = [(one.get("name"), one.get("args_schema")) for one in item_tools if isinstance(one, dict)]
    elif len({tool.name for tool in listed}) == len(listed):
        return tools_of(case.conversation)
    else:
        schemas = [(tool.name, tool.arguments_schema) for tool in listed]
    # Of several tools with one name, the last that says what it takes.
    named = [(name, CallableTool.of(schema)) for name, schema in schemas if isinstance(name, str)]
    return {name: tool for name, tool in named if tool.schema is not None}


# Values, and how they differ

_UNNAMED = "(arguments)"
_LISTS = (list, tuple)
_DEEPEST = 8
_LINES = 40
_NAMES = 5
_LONGEST = 160


def _arguments(call: ToolCall) -> dict[str, Json]:
    return _by_name(call.arguments if call.raw_arguments is None else call.raw_arguments)


def _by_name(arguments: Json) -> dict[str, Json]:
    """Arguments by name; what has no names, or is not JSON at all, counts as one argument."""
    if arguments is None:
        return {}
    return arguments if isinstance(arguments, dict) else {_UNNAMED: arguments}


def same_value(first: Json, second: Json) -> bool:
    """Equal as JSON: 1 is 1.0 and not true; blanks around a text, the order of keys and keys with null do not count."""
    pending = [(first, second)]
    while pending:
        first, second = pending.pop()
        if isinstance(first, dict) and isinstance(second, dict):
            members, other_members = _without_null(first), _without_null(second)
            if members.keys() != other_members.keys():
                return False
            pending += [(value, other_members[name]) for name, value in members.items()]
        elif isinstance(first, _LISTS) and isinstance(second, _LISTS):
            if len(first) != len(second):
                return False
            pending += zip(first, second, strict=True)
        elif not _same_leaf(first, second):
            return False
    return True


def _same_leaf(first: Json, second: Json) -> bool:
    if isinstance(first, str) and isinstance(second, str):
        return first.strip() == second.strip() or composed(first).strip() == composed(second).strip()
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    return bool(first == second)


def _without_null(members: dict[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in members.items() if value is not None}


def _differences(
    where: str, wanted: Json, actual: Json, sides: tuple[str, str], path: str = "", depth: int = 0
) -> Iterator[str]:
    """One line for each argument, or part of one, that differs: `-` missing, `+` too many, `~` another value.

    `sides` is what the two sides are called.
    """
    if same_value(wanted, actual):
        return
    is_deep = depth >= _DEEPEST
    if not is_deep and isinstance(wanted, dict) and isinstance(actual, dict):
        wanted, actual = _without_null(wanted), _without_null(actual)
        for name in [*wanted, *(name for name in actual if name not in wanted)]:
            inner = f"{path}.{name}" if path else str(name)
            if name not in actual:
                yield f"- {where}{inner}: {sides[0]} {_shown(wanted[name])}"
            elif name not in wanted:
                yield f"+ {where}{inner}: {sides[1]} {_shown(actual[name])}"
            else:
                yield from _differences(where, wanted[name], actual[name], sides, inner, depth + 1)
    elif not is_deep and isinstance(wanted, _LISTS) and isinstance(actual, _LISTS) and len(wanted) == len(actual):
        for index, (first, second) in enumerate(zip(wanted, actual, strict=True)):
            yield from _differences(where, first, second, sides, f"{path}[{index}]", depth + 1)
    else:
        # Of long values, the part where they begin to differ.
        texts = [_json(wanted), _json(actual)]
        parting = next((index for index, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), 0)
        start = 0 if max(map(len, texts)) <= _LONGEST else max(0, parting - 20)
        first, second = (_window(text, start) for text in texts)
        yield f"~ {where}{path}: {sides[0]} {first}, {sides[1]} {second}"


def _shown(value: Json) -> str:
    return _window(_json(value), 0)


def _json(value: Json) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (RecursionError, TypeError, ValueError):  # nested too deep to be written, or no JSON
        return "…"


def _window(text: str, start: int) -> str:
    end = start + _LONGEST
    return f"{'…' if start else ''}{text[start:end]}{'…' if len(text) > end else ''}"


def _which(call: ToolCall) -> dict[str, Any]:
    """What finds a call again: its tool, its position in the timeline, its id where it has one."""
    if call.call_id:
        return {"called": call.name, "event": str(call.seq), "call_id": call.call_id}
    return {"called": call.name, "event": str(call.seq)}


def _cut(lines: list[str]) -> list[str]:
    return lines if len(lines) <= _LINES else [*lines[:_LINES], f"… and {len(lines) - _LINES} more"]


__all__ = [
    "best_assignment",
    "parameter_correctness",
    "parameter_correctness_by_success",
    "same_value",
    "tool_correctness",
]
