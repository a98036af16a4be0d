"""One conversation with two outcomes: as if it had gone well, and as if it had gone wrong.

Only what a log tells is told otherwise, and nothing is added: a metric that measures one of the two and not the other
is forced by which conversations it can measure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from string import ascii_lowercase, ascii_uppercase, digits
from typing import NamedTuple

from msgspec.structs import replace

from convoscope.analysis.perturbations import saying
from convoscope.conversation import (
    ASSISTANT,
    Conversation,
    Database,
    Expected,
    ExpectedToolCall,
    Outcome,
    Scenario,
)
from convoscope.conversation.databases import database_hash
from convoscope.conversation.events import ToolResult
from convoscope.views.items import Case, cases

_OTHER_LETTERS = str.maketrans(
    ascii_lowercase + ascii_uppercase + digits,
    ascii_lowercase[13:] + ascii_lowercase[:13] + ascii_uppercase[13:] + ascii_uppercase[:13] + digits[5:] + digits[:5],
)
"""What makes other words of the truth, as many and as long."""
_OTHER_TOOL = "another_tool"
_OTHER_HASH = "0" * 64


class OutcomePair(NamedTuple):
    """The same conversation, gone well and gone wrong."""

    well: Conversation
    wrong: Conversation


def completed(conversation: Conversation) -> OutcomePair | None:
    """The flag that says whether the task was done."""
    outcomes = [conversation.outcome, *(item.outcome for item in conversation.items if item.outcome is not None)]
    if all(outcome.completed is None for outcome in outcomes):
        return None
    return _outcomes(conversation, lambda outcome, well: replace(outcome, completed=well), "completed")


def final_status(conversation: Conversation) -> OutcomePair | None:
    """The status that it ended with."""
    if not conversation.outcome.final_status:
        return None
    contract = conversation.flow.final_status if conversation.flow is not None else None
    status = {True: (contract or ("completed",))[0], False: "failed"}
    return _outcomes(conversation, lambda outcome, well: replace(outcome, final_status=status[well]), "final_status")


def ended_reason(conversation: Conversation) -> OutcomePair | None:
    """Why it ended: with a goodbye, or because nobody spoke any more."""
    if not conversation.outcome.ended_reason:
        return None
    reason = {True: "goodbye", False: "inactivity_timeout"}
    return _outcomes(conversation, lambda outcome, well: replace(outcome, ended_reason=reason[well]), "ended_reason")


def _outcomes(conversation: Conversation, change: Callable[[Outcome, bool], Outcome], field: str) -> OutcomePair:
    def made(well: bool) -> Conversation:
        of_items = {
            item.id: change(item.outcome, well)
            for item in conversation.items
            if item.outcome is not None and getattr(item.outcome, field) not in (None, "")
        }
        own = conversation.outcome
        return replace(
            conversation,
            outcome=own if getattr(own, field) in (None, "") else change(own, well),
            items=tuple([replace(one, outcome=of_items.get(one.id, one.outcome)) for one in conversation.items]),
        )

    return OutcomePair(made(True), made(False))


def tool_results(conversation: Conversation) -> OutcomePair | None:
    """Whether the tools did what they were asked."""
    results = [event for event in conversation.timeline if type(event) is ToolResult]
    if not results:
        return None
    # Where a log states errors alone, a result that went well states nothing.
    states_success = True if any(one.success for one in results) else None
    worked = {"success": states_success, "error": "", "result": None}
    failed = {"success": False, "error": "invalid argument"}

    def made(well: bool) -> Conversation:
        facts = worked if well else failed
        timeline = [replace(one, **facts) if type(one) is ToolResult else one for one in conversation.timeline]
        return replace(conversation, timeline=tuple(timeline))

    return OutcomePair(made(True), made(False))


def answers(conversation: Conversation) -> OutcomePair | None:
    """Whether the answers are the expected ones."""
    truths = {seq: truth for case in cases(conversation) for seq, truth in _truth(case)}
    if not truths:
        return None
    wrong = {seq: truth.translate(_OTHER_LETTERS) for seq, truth in truths.items()}
    return OutcomePair(saying(conversation, truths), saying(conversation, wrong))


def _truth(case: Case) -> Iterable[tuple[int, str]]:
    """The utterance that answers, and what it should say."""
    truth, item, conversation = case.expected.ground_truth, case.item, case.conversation
    if truth is None or not case.answer:
        return
    if item is not None:
        if item.answered is not None:
            yield item.answered, truth
        return
    for utterance in reversed(conversation.utterances):
        if conversation.roles[utterance.speaker] == ASSISTANT and conversation.text(utterance).strip():
            yield utterance.seq, truth
            return


def expected_calls(conversation: Conversation) -> OutcomePair | None:
    """Whether the tool calls are the expected ones."""
    wanting = [case for case in cases(conversation) if case.expected.tool_calls and case.tool_calls]
    if not wanting:
        return None

    def made(well: bool) -> Conversation:
        items = {case.item.id: _expecting(case, well) for case in wanting if case.item is not None}
        own = [_expecting(case, well) for case in wanting if case.item is None]
        return replace(
            conversation,
            expected=own[0] if own else conversation.expected,
            items=tuple([replace(one, expected=items.get(one.id, one.expected)) for one in conversation.items]),
        )

    return OutcomePair(made(True), made(False))


def _expecting(case: Case, well: bool) -> Expected:
    calls = [ExpectedToolCall(call.name if well else _OTHER_TOOL, call.arguments) for call in case.tool_calls]
    return replace(case.expected, tool_calls=tuple(calls))


def database(conversation: Conversation) -> OutcomePair | None:
    """Whether the database is as it should be in the end."""
    scenario = conversation.scenario
    if scenario is None or scenario.after is None or scenario.expected is None:
        return None
    pair = _databases(scenario.after, scenario.expected)
    if pair is None:
        return None
    well, wrong = (_with_database(conversation, scenario, after) for after in pair)
    return OutcomePair(well, wrong)


def _databases(after: Database, expected: Database) -> tuple[Database, Database] | None:
    """The database in the end, right and wrong, told as it was told: by its content, or by a hash alone."""
    if after.content is not None:
        if not isinstance(expected.content, dict):
            return None
        wrong = {**expected.content, "a_change_that_nobody_expects": True}
        return Database(expected.content), Database(wrong)
    right = expected.hash or (database_hash(expected.content) if expected.content is not None else "")
    return (Database(None, right), Database(None, _OTHER_HASH)) if right else None


def _with_database(conversation: Conversation, scenario: Scenario, after: Database) -> Conversation:
    return replace(conversation, scenario=replace(scenario, after=after))


OUTCOMES: dict[str, Callable[[Conversation], OutcomePair | None]] = {
    "completed": completed,
    "final_status": final_status,
    "ended_reason": ended_reason,
    "tool_results": tool_results,
    "answers": answers,
    "expected_calls": expected_calls,
    "database": database,
}
"""What can go well or wrong, and the pair of each; None where a log does not tell of it."""
