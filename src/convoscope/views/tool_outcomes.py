"""What a tool's result says: it succeeded, it failed, or that is not stated. The one definition of it.

The shapes that are read are listed in docs/guides/tool-results.md. A failure is always stated: by the log, by a flag,
a code or words of the result. A success is stated in the same ways, or inferred, where the tool returned data and shows
no sign of failure. What says neither is not stated, and nothing is counted for it.
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Sequence
from itertools import islice

import msgspec

from convoscope.conversation import Conversation, Json, ToolCall, ToolResult
from convoscope.conversation.lazy import cached_on_argument
from convoscope.text.result_words import (
    LONGEST_READ,
    LONGEST_SHORT,
    Statement,
    carries_values,
    failure_hint,
    statement,
)
from convoscope.views.result_fields import EMPTY_WORDS, ToolKind, field_of, tool_kind
from convoscope.views.result_objects import MOST_FIELDS, ObjectResult, error_message
from convoscope.views.result_outcomes import (
    CONTRADICTS,
    DATA,
    DEEPEST,
    HOUSE_RULE,
    LONGEST_ERROR,
    NEITHER,
    NO_DATA,
    NOT_STATED,
    NOTHING,
    NOTHING_FOUND,
    RULE_NOT_TRIED,
    STATED,
    SUCCEEDED,
    UNSTATED,
    UNTRIED_RULE,
    ToolOutcome,
    failed_by,
    is_filled,
    unstated,
)


def tool_outcome(result: ToolResult, tool: str = "") -> ToolOutcome:
    """What a result says. `tool` is the name of the tool that was called, where the result does not have it."""
    outcome = _outcome(result, tool)
    if result.extras and UNTRIED_RULE in result.extras and not outcome.failed:
        return unstated(RULE_NOT_TRIED, f"{HOUSE_RULE} {result.extras[UNTRIED_RULE]}")
    return outcome


def _outcome(result: ToolResult, tool: str) -> ToolOutcome:
    flag, error = result.success, result.error
    if flag is False:
        sign = result.extras.get(HOUSE_RULE) if result.extras else None
        return failed_by(f"{HOUSE_RULE} {sign}" if sign else "success: false", error or error_message(result.result))
    if flag is True and error:
        return unstated(CONTRADICTS, "success beside an error")
    if error:
        return failed_by("error", error)
    content = _read(result.result, tool_kind(tool or result.name), 0)
    if flag is None:
        return content
    # The log speaks of the call, the content of what came of it.
    return content if content.failed and content.is_strong else ToolOutcome(SUCCEEDED, STATED, "success: true")


@cached_on_argument
def tool_outcomes(conversation: Conversation) -> dict[int, ToolOutcome]:
    """What each result of a conversation says, by the seq of the result."""
    names: dict[int, str] = {}
    results = conversation.tool_results
    for call in conversation.tool_calls:
        if (result := results.get(call.seq)) is not None:
            names[result.seq] = call.name
    return {
        event.seq: tool_outcome(event, names.get(event.seq, ""))
        for event in conversation.timeline
        if type(event) is ToolResult
    }


def outcome_of_call(conversation: Conversation, call: ToolCall) -> ToolOutcome | None:
    """What the result of a call says; None where the log has no result."""
    result = conversation.tool_results.get(call.seq)
    return None if result is None else tool_outcomes(conversation)[result.seq]


def has_failed(conversation: Conversation, call: ToolCall) -> bool:
    """Whether the result of a call says that it failed; a call without a result has not."""
    outcome = outcome_of_call(conversation, call)
    return outcome is not None and outcome.failed


# A result of any shape


def _read(value: Json, kind: ToolKind, depth: int) -> ToolOutcome:
    if isinstance(value, str):
        return _read_text(value, kind, depth)
    if isinstance(value, dict):
        return _read_object(value, kind, depth)
    if isinstance(value, list | tuple):
        return _read_list(value, kind, depth)
    if value is None:
        return NOTHING
    if value is True or kind.counts or kind.runs or (value is False and kind.reads):
        return DATA
    return NEITHER


def _read_object(value: dict[str, Json], kind: ToolKind, depth: int) -> ToolOutcome:
    if not value:
        return NOTHING
    for key in islice(value, MOST_FIELDS):
        if kind.acts or field_of(key) is not None:
            return ObjectResult(value, kind, depth, _read).outcome()
    if not is_filled(value):
        return NO_DATA
    if len(value) == 1 and depth < DEEPEST:
        # What carries a result may have any name: `{"getOrderResponse": {"error": "db down"}}`.
        inner = next(iter(value.values()))
        if isinstance(inner, dict) and _is_failure_itself(outcome := _read_object(inner, kind, depth + 1)):
            return outcome
    return DATA


def _read_list(values: list[Json] | tuple[Json, ...], kind: ToolKind, depth: int) -> ToolOutcome:
    if not any(is_filled(value) for value in islice(values, 50)):
        return NO_DATA
    if depth < DEEPEST:
        texts = [value["text"] for value in islice(values, 20) if _is_text_block(value)]
        if texts and len(texts) == min(len(values), 20):
            return _read_text("\n".join(texts), kind, depth + 1)
        if not kind.errors:
            return _read_members(
                [_read(each, kind, depth + 1) for each in islice(values, 5) if _can_fail(each)], values
            )
    return DATA


def _can_fail(value: Json) -> bool:
    return isinstance(value, dict) or (isinstance(value, str) and not _BARE.fullmatch(value[:LONGEST_SHORT]))


def _read_members(inner: list[ToolOutcome], values: Sequence[Json]) -> ToolOutcome:
    """Of a list: a failure, or nothing found, where each of its first members says so; else it is data."""
    if inner and len(inner) == min(len(values), 5):
        if all(map(_is_failure_itself, inner)):
            return inner[0]
        if all(each.status == NOT_STATED and each.sign for each in inner):
            return inner[0]
    return DATA


def _is_failure_itself(outcome: ToolOutcome) -> bool:
    """Whether an object in a list is a failure: the status of a thing that is listed is its own."""
    return outcome.failed and outcome.is_strong and not outcome.sign.startswith("status:")


def _is_text_block(value: Json) -> bool:
    return (
        isinstance(value, dict) and value.get("type") in ("text", "output_text") and isinstance(value.get("text"), str)
    )


# Text

_LONGEST_JSON = 50_000
_LONGEST_LITERAL = 4_000
_BARE = re.compile(
    r"(?:(?:your |the )?(?:ticket|case|ref(?:erence)?|request|id|job|order|confirmation|tracking|task|incident)"
    r"(?:[ _](?:id|no\.?|number|code|#))?(?: is)?[ :#=]*)?[\w./#:-]+[.!]?",
    re.IGNORECASE,
)
_PAIR = re.compile(r"(?:^|[\n,;|]) *[A-Za-z][\w '()/-]{0,40}: *\S")
_WORD = re.compile(r"[^\W_]+")


def _read_text(text: str, kind: ToolKind, depth: int) -> ToolOutcome:
    content = text.strip()
    if not content or (len(content) < 10 and content.lower() in EMPTY_WORDS):
        return NO_DATA if content == "[]" else NOTHING
    if content[0] in '{["' and depth < DEEPEST:
        value = _decoded(content)
        if not isinstance(value, str) or value is not content:
            return _read(value, kind, depth + 1)
        if content[0] != '"' and content[-1] in "}]":
            return _unread_structure(content)
    words = statement(content, is_status=kind.status, is_passage=kind.reads)
    if words is not None and not (words.stated == "failed" and not words.is_strong and kind.errors):
        return _stated_by(words, content)
    if not (kind.errors or kind.status) and (hint := failure_hint(content)):
        return unstated(UNSTATED, hint)
    return DATA if _is_data(content, kind) else NEITHER


def _stated_by(words: Statement, content: str) -> ToolOutcome:
    if words.stated == "failed":
        return failed_by(words.sign, content.split("\n", 1)[0], words.is_strong)
    if words.stated == "succeeded":
        return ToolOutcome(SUCCEEDED, STATED, words.sign)
    return unstated(NOTHING_FOUND if words.stated == "nothing_found" else UNSTATED, words.sign)


def _decoded(content: str) -> Json:
    """The JSON, or the literal of Python, that a text is; the text itself where it is neither."""
    if len(content) <= _LONGEST_JSON:
        try:
            return msgspec.json.decode(content)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            pass
    if len(content) <= _LONGEST_LITERAL and content[0] in "{[" and "'" in content:
        try:
            value = literal_eval(content)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return content
        return value if isinstance(value, dict | list | tuple) else content
    return content


_FLAG_IN_TEXT = re.compile(
    r"""["'](?:is_?error|isError|failed)["']\s*:\s*(?:true|True)|["'](?:success|ok)["']\s*:\s*(?:false|False)"""
    r"""|["']error["']\s*:\s*(?:["'{](?!["'}])|[1-9])|["']errors["']\s*:\s*\[(?!\s*\])"""
)


def _unread_structure(content: str) -> ToolOutcome:
    """Of JSON that is too long or is cut: by the flags at its beginning."""
    match = _FLAG_IN_TEXT.search(content, 0, LONGEST_READ)
    return failed_by(match[0], content[:LONGEST_ERROR]) if match else DATA


def _is_data(content: str, kind: ToolKind) -> bool:
    """Whether a text without a statement is what a tool returns when it works."""
    start = content[:LONGEST_READ]
    if not _WORD.search(start):
        return False
    if kind.runs or kind.status:
        return True
    if len(content) > LONGEST_SHORT:
        return any(blank in start for blank in (" ", "\n"))
    if _BARE.fullmatch(start):
        return kind.counts and start.replace(",", "").lstrip("-$€£").replace(".", "", 1).isdigit()
    if start.count("\n") >= 3 or len(_PAIR.findall(start)) >= 2:
        return True
    return kind.reads and len(_WORD.findall(start)) >= 3 and carries_values(start)
