"""What a tool's result says: it succeeded, it failed, or that is not stated. The one definition of it.

The shapes that are read are listed in docs/guides/tool-results.md. A failure is always stated: by the log, by a flag,
a code or words of the result. A success is stated in the same ways, or inferred, where the tool returned data and shows
no sign of failure. What says neither is not stated, and nothing is counted for it.
"""

from __future__ import annotations

import re
from itertools import islice

from convoscope.conversation import Conversation, Json, ToolCall, ToolResult
from convoscope.conversation.lazy import cached_on_argument
from convoscope.text.result_words import (
    LONGEST_READ,
    LONGEST_SHORT,
    Statement,
    carries_values,
    doubt,
    failure_hint,
    statement,
)
from convoscope.views.result_fields import BAD_WORDS, EMPTY_WORDS, ToolKind, status_word, tool_kind
from convoscope.views.result_formats import Cut, cut_structure, decoded, embedded, is_page
from convoscope.views.result_objects import ObjectResult, outcome_of_members
from convoscope.views.result_outcomes import (
    CONTRADICTS,
    DATA,
    DEEPEST,
    HOUSE_RULE,
    LONGEST_ERROR,
    NEITHER,
    NO_DATA,
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
from convoscope.views.result_values import error_message


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
        return ObjectResult(value, kind, depth, _read).outcome() if value else NOTHING
    if isinstance(value, list | tuple):
        return _read_list(value, kind, depth)
    if value is None:
        return NOTHING
    if value is True or kind.counts or kind.runs or (value is False and kind.checks):
        return DATA
    return NEITHER


def _read_list(values: list[Json] | tuple[Json, ...], kind: ToolKind, depth: int) -> ToolOutcome:
    if not any(is_filled(value) for value in islice(values, 50)):
        return NO_DATA
    if depth < DEEPEST:
        texts = [value["text"] for value in islice(values, 20) if _is_text_block(value)]
        if texts and len(texts) == min(len(values), 20):
            return _read_text("\n".join(texts), kind, depth + 1)
        members = list(islice(values, 20 if kind.acts else 5))
        can_fail = [_can_fail(each) for each in members]
        if not kind.errors and (any(can_fail) if kind.acts else all(can_fail)):
            return outcome_of_members([_read(each, kind, depth + 1) for each in members], kind)
    return DATA


def _can_fail(value: Json) -> bool:
    if isinstance(value, str):
        return not _BARE.fullmatch(value[:LONGEST_SHORT]) or status_word(value) in BAD_WORDS
    return isinstance(value, dict) or value is False


def _is_text_block(value: Json) -> bool:
    return (
        isinstance(value, dict) and value.get("type") in ("text", "output_text") and isinstance(value.get("text"), str)
    )


# Text

_BARE = re.compile(
    r"(?:(?:your |the )?(?:ticket|case|ref(?:erence)?|request|id|job|order|confirmation|tracking|task|incident)"
    r"(?:[ _](?:id|no\.?|number|code|#))?(?: is)?[ :#=]*)?[\w./#:-]+[.!]?",
    re.IGNORECASE,
)
_PAIR = re.compile(r"(?:^|[\n,;|]) *[^\W\d_][\w '()/-]{0,40}: *\S")
_WORD = re.compile(r"[^\W_]+")


def _read_text(text: str, kind: ToolKind, depth: int) -> ToolOutcome:
    content = text.strip()
    if not content or (len(content) < 10 and content.lower() in EMPTY_WORDS):
        return NO_DATA if content == "[]" else NOTHING
    if depth < DEEPEST and (value := decoded(content)) is not content:
        return _read(value, kind, depth + 1)
    if content[0] in "{[" and (cut := cut_structure(content, LONGEST_READ)) is not None:
        return _read_cut(cut, content, kind)
    words = statement(content, is_status=kind.status, is_passage=kind.reads)
    if words is not None and not (words.stated == "failed" and not words.is_strong and kind.errors):
        return _stated_by(words, content)
    if depth < DEEPEST and (value := embedded(content)) is not None:
        return _read(value, kind, depth + 1)
    if not (kind.errors or kind.status) and (hint := failure_hint(content)):
        return unstated(UNSTATED, hint)
    return _inferred(content, kind)


def _says_done(content: str, kind: ToolKind) -> str:
    """The word of a short text that says that the tool did what its name says; empty where there is none, or doubt."""
    if kind.reads or len(content) > LONGEST_SHORT:
        return ""
    word = next((word for word in _WORD.findall(content.lower()) if kind.did(word)), "")
    return word if word and not doubt(content, may_be_name=True) else ""


def _stated_by(words: Statement, content: str) -> ToolOutcome:
    if words.stated == "failed":
        return failed_by(words.sign, content.split("\n", 1)[0], words.is_strong)
    if words.stated == "succeeded":
        return ToolOutcome(SUCCEEDED, STATED, words.sign)
    return unstated(NOTHING_FOUND if words.stated == "nothing_found" else UNSTATED, words.sign)


def _read_cut(cut: Cut, content: str, kind: ToolKind) -> ToolOutcome:
    if cut.failure:
        return failed_by(cut.failure, content[:LONGEST_ERROR])
    if cut.doubt:
        return unstated(UNSTATED, cut.doubt)
    return NEITHER if kind.acts else DATA


def _inferred(content: str, kind: ToolKind) -> ToolOutcome:
    """Whether a text without a statement is what a tool returns when it works."""
    start = content[:LONGEST_READ]
    if is_page(content) and not kind.pages:
        return unstated(UNSTATED, "a page of HTML")
    if not _WORD.search(start):
        return NEITHER
    if word := _says_done(content, kind):
        return ToolOutcome(SUCCEEDED, STATED, word)
    if kind.runs or kind.status:
        return DATA
    if len(content) > LONGEST_SHORT:
        return DATA if " " in start or "\n" in start else NEITHER
    return _inferred_of_short(start, kind)


def _inferred_of_short(start: str, kind: ToolKind) -> ToolOutcome:
    if _BARE.fullmatch(start):
        is_number = start.replace(",", "").lstrip("-$€£").replace(".", "", 1).isdigit()
        return DATA if kind.counts and is_number else NEITHER
    if start.count("\n") >= 3 or len(_PAIR.findall(start)) >= 2:
        return DATA
    if kind.reads and len(_WORD.findall(start)) >= 3 and carries_values(start):
        return unstated(UNSTATED, why) if (why := doubt(start)) and not kind.errors else DATA
    return NEITHER
