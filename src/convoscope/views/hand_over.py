"""Whether the user was put through to a person: by the log's fields, its tools, and the reason for its end."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from convoscope.conversation import ASSISTANT, USER, Conversation, Json, ToolCall, Utterance
from convoscope.conversation.lazy import cached_on_argument
from convoscope.text.identifiers import name_words, snake_case
from convoscope.views.end_reasons import HANDED_OVER, kind_of_reason, stated_reason
from convoscope.views.result_outcomes import INFERRED, NOT_STATED
from convoscope.views.tool_outcomes import outcome_of_call

_TABLE: dict[str, frozenset[str]] = {
    name: frozenset(words.split())
    for name, words in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items()
}
_NEGATES = re.compile(
    r"(?<!\w)(?:no|not|none|nobody|never|without|unavailable|offline|busy|closed|unable|cannot|can't|couldn't|isn't|"
    r"aren't|keine?|keinen|nicht|niemand|ning[uú]n|ninguno|ninguna|nadie|aucune?|personne|pas|nenhum|nenhuma|ningu[eé]m|"
    r"n[aã]o)(?!\w)|ません|いない|できない",
    re.IGNORECASE,
)
_LONGEST = 2_000


def passes_on(tool: str) -> bool:
    """Whether the name of a tool says that it passes the user on, to a person or to another agent."""
    words = name_words(tool)
    return not _TABLE["passes_on"].isdisjoint(words) and _TABLE["things"].isdisjoint(words)


def hands_over(tool: str) -> bool:
    """Whether the name of a tool says that it puts the user through to a person."""
    return passes_on(tool) and not _TABLE["somebody"].isdisjoint(name_words(tool))


def has_handed_over(conversation: Conversation, call: ToolCall) -> bool:
    """Whether a call puts the user through to a person.

    One that failed does not. Where its result has words that negate and no flag of success ("no agents online"), it is
    not known, and does not count either.
    """
    if not hands_over(call.name):
        return False
    outcome = outcome_of_call(conversation, call)
    if outcome is None:
        return True
    if outcome.failed:
        return False
    text = _result_text(conversation, call)
    # Words may say that "nobody is available": only a flag or a code of an object states a success against them.
    is_stated = outcome.status != NOT_STATED and outcome.basis != INFERRED and text.lstrip()[:1] == "{"
    return is_stated or not _NEGATES.search(text)


def _result_text(conversation: Conversation, call: ToolCall) -> str:
    result = conversation.tool_results.get(call.seq)
    return "" if result is None else str(result.result)[:_LONGEST].replace("’", "'")


@cached_on_argument
def handed_over_by(conversation: Conversation) -> str:
    """What says that the user was put through to a person; nothing where nothing does.

    A transfer that failed is none, nor is one after which the agent goes on serving the user: that is a hand-over
    between programs.
    """
    outcome = conversation.outcome
    for name, stated in (("ended", stated_reason(conversation)), ("final status", outcome.final_status)):
        if stated and kind_of_reason(stated) == HANDED_OVER:
            return f"{name}: {stated}"
    if field := _stated(conversation):
        return field
    call = hand_over_call(conversation) if conversation.contents.has_tool_calls else None
    return "" if call is None else f"tool: {call.name}"


def hand_over_call(conversation: Conversation) -> ToolCall | None:
    """The call of a tool that put the user through, after which the agent served nobody."""
    call: ToolCall | None = None
    asked = False
    for event in conversation.timeline:
        if type(event) is ToolCall:
            if has_handed_over(conversation, event):
                call, asked = event, False
        elif call is not None and type(event) is Utterance and event.meant().strip():
            role = conversation.roles[event.speaker]
            if role == ASSISTANT and asked:
                call = None
            asked = asked or role == USER
    return call


def _stated(conversation: Conversation) -> str:
    metadata = conversation.extras.get("metadata")
    places: Sequence[Mapping[str, Json]] = (
        conversation.extras,
        conversation.outcome.extras,
        conversation.dimensions,
        metadata if isinstance(metadata, dict) else {},
    )
    for place in places:
        for name, value in place.items():
            if _says_so(name, value):
                return f"{name}: {str(value).lower() if isinstance(value, bool) else value}"
    for label in conversation.labels:
        if label.subject_kind == "conversation" and _says_so(label.name, label.value):
            return f"{label.name}: {str(label.value).lower()}"
    return ""


def _says_so(name: str, value: Json) -> bool:
    kind = _kind_of_field(name)
    if not kind:
        return False
    if isinstance(value, str):
        folded = snake_case(value[:60])
        return folded in _TABLE["yes"] if kind == "flag" else kind_of_reason(value[:60]) == HANDED_OVER
    return kind == "flag" and value is True


@lru_cache(maxsize=4096)
def _kind_of_field(name: str) -> str:
    folded = snake_case(name[:80].rpartition(".")[2])
    return "flag" if folded in _TABLE["flags"] else "status" if folded in _TABLE["statuses"] else ""


__all__ = ["hand_over_call", "handed_over_by", "hands_over", "has_handed_over", "passes_on"]
