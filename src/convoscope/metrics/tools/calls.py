"""Metrics of the tools that the agent calls, and of what it makes of their answers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec

from convoscope.conversation import Conversation, ToolCall, ToolResult
from convoscope.conversation.databases import shown
from convoscope.conversation.lazy import cached_on_argument
from convoscope.metrics.declaration import CONVERSATION, COUNT, EVENT, HIGHER, LOWER, NEITHER, metric, share_metric
from convoscope.metrics.needs import TOOL_CALLS, TOOLS_KNOWN
from convoscope.metrics.perturbations import EMPTY_AGENT
from convoscope.metrics.tools.call_checks import (
    NOT_READ,
    Answer,
    CallableTool,
    bad_argument,
    reading_of,
    tools_of,
    unlisted,
)
from convoscope.scores.observation import Observation, measured, not_applicable, ratio, subject_of, unmeasured
from convoscope.scores.reducers import MEAN, MEAN_OF_CONVERSATIONS, MEAN_OF_REPORTED, RATIO, RATIO_OF_REPORTED, Reduce
from convoscope.text.json_schema import FORGIVING, TooManySteps, schema_faults
from convoscope.views.items import Subject
from convoscope.views.result_fields import INFERRED, ToolOutcome
from convoscope.views.tool_outcomes import outcome_of_call, tool_outcomes

_call_share_metric = partial(
    share_metric, observes=EVENT, needs=(TOOL_CALLS,), sensitive_to=(), undefined_under=(EMPTY_AGENT,)
)


@metric(
    "tools.calls",
    version=2,
    label="tool calls",
    importance=1,
    observes=CONVERSATION,
    unit=COUNT,
    better=NEITHER,
    needs=(TOOLS_KNOWN,),
    reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
    sensitive_to=(),
    undefined_under=(EMPTY_AGENT,),
)
def calls(conversation: Conversation) -> Observation:
    """How many tool calls does the agent make?

    0 where the agent had tools and used none, or where the format of the log records calls and it
    has no call. Not applicable where the log says that it had no tools; unmeasured where it neither shows a
    call nor says which tools there were, and may be of a kind that leaves calls out.

    >>> value(calls, example("user: Book it.", 'tool: find {} -> {"rows": [1]}', 'tool: book {} -> {"ok": true}'))
    2.0
    """
    if not conversation.tool_calls and conversation.agent.tools == ():
        return not_applicable(conversation, "no_tools")
    return measured(conversation, len(conversation.tool_calls))


@_call_share_metric(
    "tools.success",
    version=3,
    label="tool calls that succeed",
    importance=7,
    better=HIGHER,
    reduce=Reduce(RATIO, RATIO_OF_REPORTED),
)
def success(conversation: Conversation) -> Iterator[Observation]:
    """What share of the tool calls succeeded?

    Per call: 0 where its result states a failure, 1 where it states success or returns data without a sign
    of failure. `basis` in the details says which: `stated` or `inferred`; `sign` says what decided. A call
    without a result is unmeasured, and so is one whose result says neither. A group in which a call failed, and no
    fewer calls do not say than do, has no value: failures report themselves.

    >>> chat = example("user: Book it.", 'tool: book {} -> {"error": "sold out"}', 'tool: book {} -> {"ok": true}')
    >>> value(success, chat)
    0.5
    """
    for call in conversation.tool_calls:
        outcome = outcome_of_call(conversation, call)
        if outcome is None:
            yield unmeasured(call, "no_tool_result", call.name)
        elif outcome.worked is None:
            yield unmeasured(call, outcome.reason, call.name)
        else:
            details = {"tool": call.name, "basis": outcome.basis, "sign": outcome.sign}
            if outcome.error:
                details["error"] = outcome.error
            yield ratio(call, 0.0 if outcome.failed else 1.0, 1.0, details=details)


@_call_share_metric("tools.success.inferred_rate", version=5, better=NEITHER)
def inferred_rate(conversation: Conversation) -> Iterator[Observation]:
    """Of what share of the tool calls is the success inferred from the data that they returned?

    Per call that `tools.success` counts: 1 where its result shows success only by the data, 0 where it states
    success or failure.

    >>> chat = example("user: Book it.", 'tool: find {} -> {"rows": [1]}', 'tool: book {} -> {"status": "success"}')
    >>> value(inferred_rate, chat)  # the first result says success only by its data
    0.5
    """
    for call in conversation.tool_calls:
        outcome = outcome_of_call(conversation, call)
        if outcome is None or outcome.worked is None:
            reason = "no_tool_result" if outcome is None else outcome.reason
            yield unmeasured(call, reason, call.name)
        else:
            yield ratio(call, 1.0 if outcome.basis == INFERRED else 0.0, 1.0)


@_call_share_metric("tools.tool_call_validity", version=4, label="tool calls well formed", importance=5, better=HIGHER)
def tool_call_validity(conversation: Conversation) -> Iterator[Observation]:
    """What share of the tool calls is made as the tool wants to be called?

    Per call: 0 where there is no such tool, where the arguments are not JSON or do not fit the tool's
    schema, or where the tool's answer blames the call; else 1. An answer that merely says no (nothing
    found, not eligible, try later) is no mistake of the call. A call of which neither the schema nor
    the result is known is unmeasured, and so is one without a schema whose error does not say what
    it blames, and one with a schema that takes too many steps to check.

    >>> tools = {"tools": [{"name": "book", "arguments_schema": {"type": "object", "required": ["seats"]}}]}
    >>> chat = example("user: Book it.", 'tool: book {"seats": 2} -> {}', "tool: book {} -> {}", agent=tools)
    >>> value(tool_call_validity, chat)  # the second call leaves out seats
    0.5
    """
    for look in _looks(conversation):
        mistakes = look.mistakes
        if not mistakes and look.unchecked:
            yield unmeasured(look.subject, "schema_not_checked", f"{look.name}: {look.unchecked}")
        elif not mistakes and look.missing is None and look.answer is None:
            yield unmeasured(look.subject, "no_tool_result", look.name)
        elif not mistakes and look.missing is None and look.answer == "undecided":
            yield unmeasured(look.subject, "undecided_error", f"{look.name}: {look.error}"[:200])
        else:
            yield ratio(look.subject, 0.0 if mistakes else 1.0, 1.0, details=look.details(mistakes))


@_call_share_metric("tools.tool_call_validity.unknown_tool_rate", version=4, better=LOWER)
def unknown_tool_rate(conversation: Conversation) -> Iterator[Observation]:
    """What share of the tool calls is of a tool that does not exist?

    Per call: 1 where its name is not in the list of tools and no answer shows that there is such a
    tool; else 0. Unmeasured where the log does not say which tools there were.

    >>> chat = example("user: Book it.", "tool: bok", "tool: book", agent={"tools": [{"name": "book"}]})
    >>> value(unknown_tool_rate, chat)
    0.5
    """
    for look in _looks(conversation):
        yield _rate(look, look.unknown_tool, "tools_unknown")


@_call_share_metric("tools.tool_call_validity.missing_argument_rate", version=4, better=LOWER)
def missing_argument_rate(conversation: Conversation) -> Iterator[Observation]:
    """What share of the tool calls leaves out an argument that the tool requires?

    Per call, by the tool's schema. Not applicable where there is no such tool or where the arguments
    cannot be read; unmeasured where no schema is known.

    >>> tools = {"tools": [{"name": "book", "arguments_schema": {"type": "object", "required": ["seats"]}}]}
    >>> value(missing_argument_rate, example("user: Book it.", 'tool: book {"seats": 2}', "tool: book {}", agent=tools))
    0.5
    """
    for look in _looks(conversation):
        if look.unknown_tool:
            yield not_applicable(look.subject, "unknown_tool", look.name)
        elif look.unreadable:
            yield not_applicable(look.subject, "arguments_unreadable", look.name)
        else:
            yield _by_schema(look, look.missing)


@_call_share_metric("tools.tool_call_validity.bad_argument_rate", version=4, better=LOWER)
def bad_argument_rate(conversation: Conversation) -> Iterator[Observation]:
    """What share of the tool calls has an argument that the tool cannot take?

    Per call: arguments that are not JSON, or by the tool's schema a wrong type, a value that is not
    among those listed, or an argument that the tool does not have. Not applicable where there is no
    such tool; unmeasured where no schema is known.

    >>> seats = {"type": "object", "properties": {"seats": {"type": "integer"}}}
    >>> tools = {"tools": [{"name": "book", "arguments_schema": seats}]}
    >>> chat = example("user: Book it.", 'tool: book {"seats": 2}', 'tool: book {"seats": "many"}', agent=tools)
    >>> value(bad_argument_rate, chat)
    0.5
    """
    for look in _looks(conversation):
        if look.unknown_tool and not look.bad:
            yield not_applicable(look.subject, "unknown_tool", look.name)
        else:
            yield _by_schema(look, look.bad)


@_call_share_metric("tools.tool_call_validity.rejected_rate", version=4, better=LOWER)
def rejected_rate(conversation: Conversation) -> Iterator[Observation]:
    """What share of the tool calls is turned down by the tool because of how they were made?

    Per call: 1 where its result reports an error that blames the call, else 0. A call without a
    result in the log is unmeasured, and so is an error that does not say what it blames.

    >>> chat = example("user: Book it.", 'tool: bok {} -> {"error": "unknown tool"}', 'tool: book {} -> {"ok": true}')
    >>> value(rejected_rate, chat)
    0.5
    """
    for look in _looks(conversation):
        if look.answer is None:
            yield unmeasured(look.subject, "no_tool_result", look.name)
        else:
            undecided = look.answer == "undecided"
            yield _rate(look, None if undecided else look.answer == "rejected", "undecided_error")


def _by_schema(look: _Look, mistaken: object) -> Observation:
    if look.unchecked:
        return unmeasured(look.subject, "schema_not_checked", f"{look.name}: {look.unchecked}")
    return _rate(look, mistaken, "no_arguments_schema")


def _rate(look: _Look, mistaken: object, unknown: str) -> Observation:
    if mistaken is None:
        return unmeasured(look.subject, unknown, look.name)
    return ratio(look.subject, 1.0 if mistaken else 0.0, 1.0)


class _Look(msgspec.Struct, frozen=True, gc=False):
    """What is known of one call. None is "unknown"."""

    name: str
    subject: Subject
    unreadable: bool
    """The arguments are not JSON."""
    unknown_tool: bool | None
    missing: list[str] | None
    bad: list[str] | None
    answer: Answer | None
    error: str
    sign: str
    """The words of the error that decided how it is read."""
    unlisted: list[str]
    unchecked: str
    """Why the schema could not be held against the arguments."""

    @property
    def mistakes(self) -> list[str]:
        if not (self.unknown_tool or self.missing or self.bad or self.answer == "rejected"):
            return []
        return [
            *(["no such tool"] if self.unknown_tool else []),
            *(f"missing argument: {name}" for name in self.missing or ()),
            *(f"bad argument: {problem}" for problem in self.bad or ()),
            *([f"rejected: {self.error}"] if self.answer == "rejected" else []),
        ]

    def details(self, mistakes: list[str]) -> dict[str, Any]:
        details: dict[str, Any] = {"tool": self.name}
        if mistakes:
            details["mistakes"] = mistakes
        if self.unlisted:
            details["unlisted"] = self.unlisted
        if self.answer is not None and self.answer != "worked":
            details |= {"answer": self.answer, "error": self.error}
        if self.sign:
            details["sign"] = self.sign
        return details


@cached_on_argument
def _looks(conversation: Conversation) -> list[_Look]:
    """What can be said of every call; five metrics ask."""
    tools, results, listed = tools_of(conversation), conversation.tool_results, conversation.agent.tools is not None
    outcomes = tool_outcomes(conversation)
    looks: list[_Look] = []
    for call in conversation.tool_calls:
        result = results.get(call.seq)
        outcome = None if result is None else outcomes[result.seq]
        looks.append(_look(call, result, outcome, tools.get(call.name), listed))
    return looks


def _look(
    call: ToolCall, result: ToolResult | None, outcome: ToolOutcome | None, tool: CallableTool | None, listed: bool
) -> _Look:
    schema = tool.schema if tool else None
    read = NOT_READ if result is None or outcome is None else reading_of(result, outcome, schema, call.arguments)
    # A tool that answers as tools do exists, whatever the list says.
    answered = read.answer in ("worked", "world") and (result is None or result.result is not None)
    unknown_tool = (tool is None and not answered) if listed else None
    not_listed = ["tool"] if listed and tool is None and not unknown_tool else []
    missing: list[str] | None = None
    bad: list[str] | None = None
    unchecked = ""
    if call.raw_arguments is not None:
        bad = [f"not JSON: {shown(call.raw_arguments)}"]
    elif tool is not None and schema is not None:
        arguments = {} if call.arguments is None else call.arguments
        if tool.plain is not None and tool.plain.fits(arguments):
            missing, bad = [], []
        else:
            try:
                faults = list(schema_faults(arguments, schema, FORGIVING))
                missing = [fault.at for fault in faults if fault.kind == "missing"]
                bad = [bad_argument(fault) for fault in faults if fault.kind != "missing"]
            except TooManySteps as too_many:
                unchecked = str(too_many)
            not_listed += unlisted(arguments, schema)
    subject, unreadable = subject_of(call), call.raw_arguments is not None
    answer, error, sign = read
    return _Look(call.name, subject, unreadable, unknown_tool, missing, bad, answer, error, sign, not_listed, unchecked)


@metric(
    "tools.unrecovered_errors",
    version=2,
    label="tool errors that stay",
    importance=5,
    observes=CONVERSATION,
    unit=COUNT,
    better=LOWER,
    needs=(TOOL_CALLS,),
    reduce=Reduce(MEAN, MEAN_OF_REPORTED),
    sensitive_to=(),
    undefined_under=(EMPTY_AGENT,),
)
def unrecovered_errors(conversation: Conversation) -> Observation:
    """How many tools failed, and never worked afterwards?

    Tools whose last call with a result that says how it went failed. Unmeasured where no call has a result, and where
    no tool is known to have failed and the last result of one does not say how it went. A group in which errors stay,
    and no fewer conversations do not say than do, has no value: failures report themselves.

    >>> chat = example("user: Book it.", 'tool: find {} -> {"error": "timeout"}', 'tool: book {} -> {"ok": true}')
    >>> value(unrecovered_errors, chat)  # find
    1.0
    """
    outcomes = [(call.name, outcome_of_call(conversation, call)) for call in conversation.tool_calls]
    last = {name: outcome for name, outcome in outcomes if outcome is not None}
    stated = {name: outcome for name, outcome in outcomes if outcome is not None and outcome.basis}
    names = [name for name, outcome in stated.items() if outcome.failed]
    unstated = next(((name, outcome.reason) for name, outcome in last.items() if outcome.reason), None)
    if not last:
        return unmeasured(conversation, "no_tool_result")
    if unstated and not names:
        return unmeasured(conversation, unstated[1], unstated[0])
    return measured(conversation, float(len(names)), details={"tools": names} if names else None)


@share_metric(
    "tools.repeated_calls",
    version=1,
    label="tool calls repeated",
    importance=3,
    observes=EVENT,
    better=LOWER,
    needs=(TOOL_CALLS,),
    sensitive_to=(),
    undefined_under=(EMPTY_AGENT,),
)
def repeated_calls(conversation: Conversation) -> Iterator[Observation]:
    """What share of the tool calls says again what an earlier one said, and learns nothing new?

    1 of a call of the same tool with the same arguments as an earlier call, whose result, where the log has one, is
    also the same; else 0. Asking again until the answer changes is no repetition.

    >>> value(repeated_calls, example("user: Book it.", 'tool: find {"id": 1} -> []', 'tool: find {"id": 1} -> []'))
    0.5
    """
    results = conversation.tool_results
    earlier: set[bytes] = set()
    for call in conversation.tool_calls:
        result = results.get(call.seq)
        answer = None if result is None else (result.result, result.error, result.success)
        key = _encode((call.name, call.arguments, call.raw_arguments, answer))
        yield ratio(call, 1.0 if key in earlier else 0.0, 1.0, details={"tool": call.name})
        earlier.add(key)


_encode = msgspec.json.Encoder(order="sorted").encode
