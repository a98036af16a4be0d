"""Was the right tool called, and was it called rightly: calls against what was expected, argument by argument."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import fsum
from typing import Any, NamedTuple, Protocol

import msgspec

from convoscope.conversation import Conversation, ExpectedToolCall, Json, ToolCall, ToolResult
from convoscope.conversation.lazy import cached_on_argument
from convoscope.metrics.declaration import RATIO, item_metric
from convoscope.metrics.item_fields import FIELDS, missing, needs_of
from convoscope.metrics.perturbations import EMPTY_AGENT
from convoscope.metrics.tools.call_checks import CallableTool, answer_of, bad_argument, tools_of, unlisted
from convoscope.scores.observation import Observation, measured, not_applicable, unmeasured
from convoscope.text.folding import composed
from convoscope.text.json_schema import CALL, FORGIVING, BadSchema, Fault, TooManySteps, schema_faults
from convoscope.views.items import Case, cases
from convoscope.views.result_fields import STATED
from convoscope.views.tool_outcomes import tool_outcome

# Of ten points (standard-data, 2.3): what the name is worth, what its arguments are, what an argument too many costs.
NAME = 4.0
ARGUMENTS = 6.0
EXTRA = 0.5
ALL = NAME + ARGUMENTS


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
    for case in cases(conversation):
        field = missing(case, "tool_correctness")
        expected = case.expected.tool_calls or ()
        if field is not None:
            yield unmeasured(case.subject, FIELDS[field].code, field)
        elif not all(wanted.name.strip() for wanted in expected):
            yield unmeasured(case.subject, "no_expected_tool_name", "expected_tool_call.tool_name")
        else:
            pairs = _paired(expected, case.tool_calls)
            value = fsum(pair.points for pair in pairs) / len(pairs) / ALL
            yield measured(case.subject, value, details=_evidence_of_pairs(pairs, case.tool_calls))


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
    yield from _parameters(conversation, _check_answer, "no schema, and no parameters_passed")


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
    yield from _parameters(conversation, _check_success, "no schema, and no result that reports success")


def _parameters(conversation: Conversation, check: _CheckResult, nothing: str) -> Iterator[Observation]:
    """The share of the checks that hold, with one more of each result."""
    for case in cases(conversation):
        field = missing(case, "parameter_correctness")
        if field is not None:
            yield unmeasured(case.subject, FIELDS[field].code, field)
        elif not case.tool_calls:
            yield not_applicable(case.subject, "nothing_called")
        else:
            looks = [check(look, look.result) if look.result is not None else look for look in _looks(case)]
            values = [look.value for look in looks if look.value is not None]
            if values:
                yield measured(case.subject, fsum(values) / len(values), details=_evidence_of_looks(looks))
            else:
                yield unmeasured(case.subject, "nothing_to_check", nothing)


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

    Rows that get none, because there are fewer columns, have None. Of equally good columns, one row
    alone gets the first.
    """
    rows, columns = len(points), len(points[0]) if points else 0
    if rows <= columns:
        return [*_assigned(points, columns)]
    taken = _assigned([[row[column] for row in points] for column in range(columns)], rows)
    row_of = {row: column for column, row in enumerate(taken)}
    return [row_of.get(row) for row in range(rows)]


def _assigned(points: Sequence[Sequence[float]], columns: int) -> list[int]:
    """The column of each row, where there are no more rows than columns.

    Rows are added one by one, each in the way that gives most: it may take a column whose row then moves
    to another, and so on. What is best for some rows stays best when one more is added so.
    """
    row_of: dict[int, int] = {}
    column_of: dict[int, int] = {}
    for added, first in enumerate(points):
        gain, taker = list(first), [added] * columns
        moving = True
        while moving:
            moving = False
            for column, holder in row_of.items():
                aside = gain[column] - points[holder][column]
                for other, worth in enumerate(points[holder]):
                    if aside + worth > gain[other] + _ROUNDING:
                        gain[other], taker[other], moving = aside + worth, holder, True
        free: int | None = max((one for one in range(columns) if one not in row_of), key=gain.__getitem__)
        while free is not None:
            row = taker[free]
            left = column_of.get(row)
            row_of[free], column_of[row] = row, free
            free = left
    return [column_of[row] for row in range(len(points))]


def _evidence_of_pairs(pairs: Sequence[_Pair], calls: Sequence[ToolCall]) -> dict[str, Any]:
    """What a person wants to see: how the calls differ from the expected ones, then which served for which."""
    differences: list[str] = []
    calls_made = []
    for number, (expected, call, points) in enumerate(pairs, 1):
        where = f"call {number} {expected.name}: " if len(pairs) > 1 else ""
        if call is None:
            others = _listed(sorted({one.name for one in calls})) or "nothing"
            differences.append(f"- {where}tool: expected {expected.name}, called {others}")
            calls_made.append({"expected": expected.name, "called": None, "points": points})
            continue
        if not _is_named(expected, call):
            differences.append(f"~ {where}tool: expected {expected.name}, called {call.name}")
        differences += _differences(where, _by_name(expected.arguments), _arguments(call), ("expected", "got"))
        calls_made.append({"expected": expected.name, **_which(call), "points": round(points, 6)})
    return {"diff": _cut(differences), "calls": calls_made}


# The arguments that each call was made with


class _Look(msgspec.Struct, frozen=True, gc=False):
    """One call: the checks that could be made of it, and where it falls short."""

    call: ToolCall
    where: str
    result: ToolResult | None
    schema: Json
    checks: Mapping[str, bool]
    differences: Sequence[str]

    @property
    def value(self) -> float | None:
        """The share of the checks that hold; None where none could be made."""
        return sum(self.checks.values()) / len(self.checks) if self.checks else None

    def checked(self, name: str, holds: bool, difference: str) -> _Look:
        """The same with one more check."""
        differences = self.differences if holds else (*self.differences, f"~ {self.where}result: {difference}")
        return msgspec.structs.replace(self, checks={**self.checks, name: holds}, differences=differences)


_CheckResult = Callable[[_Look, ToolResult], _Look]


@cached_on_argument
def _looks(case: Case) -> list[_Look]:
    tools, results, calls = _tools(case), _results(case), case.tool_calls
    last = len(calls)
    looks = []
    for number, call in enumerate(calls, 1):
        checks: dict[str, bool] = {}
        differences: list[str] = []
        where = f"call {number} {call.name}: " if last > 1 else ""
        tool, result = tools.get(call.name), results.get(call.seq)
        if tool is not None or call.raw_arguments is not None:
            _check_schema(call, tool, where, checks, differences)
        # What was passed is known of the most recent call. Outside of items it is that call itself.
        if number == last and (passed := case.extras.get("parameters_passed")) is not None:
            arguments, stated = _arguments(call), _by_name(passed)
            checks["passed"] = same_value(stated, arguments)
            differences += _differences(where, stated, arguments, ("parameters_passed has", "the call"))
        looks.append(_Look(call, where, result, tool.schema if tool else None, checks, differences))
    return looks


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


def _check_success(look: _Look, result: ToolResult) -> _Look:
    outcome = tool_outcome(result, look.call.name)
    if outcome.basis != STATED:
        return look
    words = _shown(outcome.error or result.result)
    return look.checked("success", not outcome.failed, f"expected success, got {words}")


def _check_answer(look: _Look, result: ToolResult) -> _Look:
    """Whether the tool took the call; an answer that merely says no took it."""
    outcome = tool_outcome(result, look.call.name)
    answer = answer_of(result, outcome, look.schema, look.call.arguments) if look.checks else None
    if answer is None or answer == "undecided":
        return look
    words = _shown(outcome.error or result.result)
    return look.checked("accepted", answer != "rejected", f"the tool turned the call down: {words}")


class _Tools(Protocol):
    def get(self, name: str, /) -> CallableTool | None: ...


def _tools(case: Case) -> _Tools:
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


def _results(case: Case) -> dict[int, ToolResult]:
    """The result of each call of this case, by the call's seq: items may use the same ids again."""
    if case.item is None or len(case.conversation.items) == 1:
        return case.conversation.tool_results
    alone = msgspec.structs.replace(case.conversation, timeline=case.events, items=(), frames=(), annotations=())
    return alone.tool_results


def _evidence_of_looks(looks: Sequence[_Look]) -> dict[str, Any]:
    differences: list[str] = []
    calls = []
    for look in looks:
        differences += look.differences
        entry = _which(look.call)
        entry["points"] = None if look.value is None else round(ALL * look.value, 6)
        entry.update(look.checks)
        calls.append(entry)
    return {"diff": _cut(differences), "calls": calls}


# Values, and how they differ

_UNNAMED = "(arguments)"
_ROUNDING = 1e-9
_DEEPEST = 8
_LINES = 40
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
        elif isinstance(first, list | tuple) and isinstance(second, list | tuple):
            if len(first) != len(second):
                return False
            pending += zip(first, second, strict=True)
        elif not _same_leaf(first, second):
            return False
    return True


def _same_leaf(first: Json, second: Json) -> bool:
    if isinstance(first, str) and isinstance(second, str):
        return first.strip() == second.strip() or _canonical(first) == _canonical(second)
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    return bool(first == second)


def _canonical(text: str) -> str:
    return composed(text).strip()


def _without_null(members: dict[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in members.items() if value is not None}


class _Sides(NamedTuple):
    """What the two sides of a difference are called."""

    wanted: str
    made: str


def _differences(where: str, wanted: Json, actual: Json, sides: tuple[str, str]) -> Iterator[str]:
    """One line for each argument, or part of one, that differs: `-` missing, `+` too many, `~` another value."""
    yield from _apart(where, "", wanted, actual, _Sides(*sides), 0)


def _apart(where: str, path: str, wanted: Json, actual: Json, sides: _Sides, depth: int) -> Iterator[str]:
    if same_value(wanted, actual):
        return
    if depth < _DEEPEST and isinstance(wanted, dict) and isinstance(actual, dict):
        wanted, actual = _without_null(wanted), _without_null(actual)
        for name in [*wanted, *(name for name in actual if name not in wanted)]:
            inner = f"{path}.{name}" if path else str(name)
            if name not in actual:
                yield f"- {where}{inner}: {sides.wanted} {_shown(wanted[name])}"
            elif name not in wanted:
                yield f"+ {where}{inner}: {sides.made} {_shown(actual[name])}"
            else:
                yield from _apart(where, inner, wanted[name], actual[name], sides, depth + 1)
    elif depth < _DEEPEST and _are_lists(wanted, actual):
        for index, (first, second) in enumerate(zip(wanted, actual, strict=True)):
            yield from _apart(where, f"{path}[{index}]", first, second, sides, depth + 1)
    else:
        first, second = _shown_apart(wanted, actual)
        yield f"~ {where}{path}: {sides.wanted} {first}, {sides.made} {second}"


def _are_lists(first: Json, second: Json) -> bool:
    return isinstance(first, list | tuple) and isinstance(second, list | tuple) and len(first) == len(second)


def _shown(value: Json) -> str:
    return _window(_json(value), 0)


def _shown_apart(first: Json, second: Json) -> tuple[str, str]:
    """Two values as JSON; of long ones, the part where they begin to differ."""
    texts = [_json(first), _json(second)]
    parting = next((index for index, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), 0)
    start = 0 if max(map(len, texts)) <= _LONGEST else max(0, parting - 20)
    return _window(texts[0], start), _window(texts[1], start)


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


def _listed(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _cut(lines: list[str]) -> list[str]:
    return lines if len(lines) <= _LINES else [*lines[:_LINES], f"… and {len(lines) - _LINES} more"]


__all__ = [
    "best_assignment",
    "parameter_correctness",
    "parameter_correctness_by_success",
    "same_value",
    "tool_correctness",
]
