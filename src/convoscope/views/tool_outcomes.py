"""What a tool's result says: it succeeded, it failed, or that is not stated. The one definition of it.

The shapes that are read are listed in docs/guides/tool-results.md. A failure is always stated: by the log, by a flag,
a code or words of the result. A success is stated in the same ways, or inferred, where the tool returned data and shows
no sign of failure. What says neither is not stated, and nothing is counted for it."""

from __future__ import annotations

import re
from ast import literal_eval
from itertools import islice

import msgspec

from convoscope.conversation import Conversation, Json, ToolCall, ToolResult
from convoscope.conversation.lazy import cached_on_argument
from convoscope.text.patterns import lazy_pattern
from convoscope.text.result_words import (
    LONGEST_READ,
    LONGEST_SHORT,
    carries_values,
    doubt,
    failure_hint,
    statement,
)
from convoscope.views.result_fields import (
    BAD_WORDS,
    CONTRADICTS,
    DATA,
    DEEPEST,
    EMPTY_WORDS,
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
    ToolKind,
    ToolOutcome,
    error_message,
    failed_by,
    is_filled,
    outcome_of_members,
    status_word,
    tool_kind,
    unstated,
)
from convoscope.views.result_objects import ObjectResult

_LONGEST_JSON = 50_000
_LONGEST_LITERAL = 4_000
_LONGEST_MARKUP = 20_000
_LONGEST_LABEL = 100
_FENCE = lazy_pattern(r"```\w{0,10}\s*\n?(.*?)\n?```\s*", re.DOTALL)
_LABEL = lazy_pattern(
    r"(?:observation|result|output|response|answer|(?:tool|function)[ _](?:result|output|response)|ergebnis|antwort"
    r"|resultado|respuesta|résultat|réponse|resposta|結果)\s{0,3}[:：]\s{0,3}",
    re.IGNORECASE,
)


def decoded(content: str) -> Json:
    """The structure of a stripped text, or the text inside of a fence or behind a label; else the text itself."""
    if content[0] in '{["':
        return _json(content)
    if content[0] == "`" and (match := _FENCE.fullmatch(content[:_LONGEST_JSON])) and match[1].strip():
        return match[1].strip()
    if content[0] == "<" and not is_page(content):
        return _markup(content) or content
    if content.startswith(("data:", "event:")):
        return _events(content) or content
    if (match := _LABEL.match(content)) and match.end() < len(content):
        return content[match.end() :]
    return content


def _json(content: str) -> Json:
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


# Markup

_PAGE = lazy_pattern(r"<(?:!doctype html|html\b|head\b|body\b)", re.IGNORECASE)
_LEAF = lazy_pattern(r"<([A-Za-z_][\w.:-]{0,60})(?:\s[^<>]{0,200})?>([^<>]{0,500})</")
_ATTRIBUTE = lazy_pattern(r"\s([A-Za-z_]\w{0,40})=[\"']([^\"'<>]{0,200})[\"']")
_FAULT = lazy_pattern(
    r"<(?:\w{1,20}:)?(?:fault|err|error|exception)(?:\s{1,5}\w[^<>]{0,200}>|\s{0,5}>\s{0,20}(?!</)[^<>]{0,200})",
    re.IGNORECASE,
)
_NOT_SAID = frozenset(("version", "encoding", "xmlns", "standalone"))


def is_page(content: str) -> bool:
    """Whether a text is a page of HTML."""
    return _PAGE.match(content) is not None


def _markup(content: str) -> dict[str, Json]:
    """The leaves of XML by their names, with the attributes of what is around them, and a fault as an error."""
    start = content[:_LONGEST_MARKUP]
    leaves: dict[str, Json] = {}
    for name, value in _ATTRIBUTE.findall(start[:500]):
        if name.lower() not in _NOT_SAID:
            leaves.setdefault(name, value)
    for match in islice(_LEAF.finditer(start), 100):
        leaves.setdefault(match[1].rpartition(":")[2], match[2].strip())
    if fault := _FAULT.search(start):
        leaves.setdefault("error", " ".join(re.sub(r"[<>]", " ", fault[0]).split()))
    return leaves


# Streams of events


def _events(content: str) -> list[Json]:
    """What the events of a stream carry; that of an event `error` as an error."""
    values: list[Json] = []
    is_error = False
    for line in islice(content[:_LONGEST_JSON].splitlines(), 200):
        name, _, value = line.partition(":")
        value = value.strip()
        if name == "event":
            is_error = value.lower() in ("error", "exception")
        elif name == "data" and value and value != "[DONE]":
            given = _json(value) if value[0] in "{[" else value
            values.append({"error": given} if is_error else given)
    return values


# Structures that were cut, or are too long

_BEGINS_AS_JSON = lazy_pattern(
    r"[{\[]\s{0,20}(?:\{\s{0,20})?(?:\[\s{0,20})?[\"'][^\"'\n]{0,100}[\"']\s{0,5}[:,]|[{\[]\s{0,20}[{\[]\s{0,20}[\"']"
)
_FAILED_FLAG = lazy_pattern(
    r"""["'](?:is_?error|has_?error|failed)["']\s{0,5}:\s{0,5}["']?true"""
    r"""|["'](?:success|ok|succeeded|successful|erfolg|exito|éxito|sucesso)["']\s{0,5}:\s{0,5}["']?(?:false|no?["'])"""
    r"""|["'](?:error|fehler|erreur|erro)["']\s{0,5}:\s{0,5}(?:["'{](?!["'}])|[1-9])|["']errors["']\s{0,5}:\s{0,5}\[(?!\s{0,5}\])"""
    r"""|["'](?:status_?code|http_?status)["']\s{0,5}:\s{0,5}["']?[45]\d\d\b""",
    re.IGNORECASE,
)
_DOUBTFUL_FLAG = lazy_pattern(
    r"""["'](?:status|state|result|outcome)["']\s{0,5}:\s{0,5}["'](?:error|fail)""", re.IGNORECASE
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
        objects = [value for value in islice(values, 20) if isinstance(value, dict)]
        blocks = [value.get("text") for value in objects if value.get("type") in ("text", "output_text")]
        texts = [text for text in blocks if isinstance(text, str)]
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


# Text

_BARE = lazy_pattern(
    r"(?:(?:your |the )?(?:ticket|case|ref(?:erence)?|request|id|job|order|confirmation|tracking|task|incident)"
    r"(?:[ _](?:id|no\.?|number|code|#))?(?: is)?[ :#=]*)?[\w./#:-]+[.!]?",
    re.IGNORECASE,
)
_PAIR = lazy_pattern(r"(?:^|[\n,;|]) *[^\W\d_][\w '()/-]{0,40}: *\S")
_WORD = lazy_pattern(r"[^\W_]+")


def _read_text(text: str, kind: ToolKind, depth: int) -> ToolOutcome:
    content = text.strip()
    if not content or (len(content) < 10 and content.lower() in EMPTY_WORDS):
        return NO_DATA if content == "[]" else NOTHING
    if depth < DEEPEST and (value := decoded(content)) is not content:
        return _read(value, kind, depth + 1)
    if (stated := _stated_by(content, kind)) is not None:
        return stated
    # The object at the end of a text that introduces it: `Order found: {…}`.
    start = content.find("{", 1, _LONGEST_LABEL) if content[-1] == "}" and depth < DEEPEST else -1
    if start >= 0 and isinstance(value := _json(content[start:]), dict):
        return _read(value, kind, depth + 1)
    if not (kind.errors or kind.status) and (hint := failure_hint(content)):
        return unstated(UNSTATED, hint)
    return _inferred(content, kind)


def _stated_by(content: str, kind: ToolKind) -> ToolOutcome | None:
    """What a text says in words, or with the flags at the beginning of JSON that was cut; None for nothing."""
    if content[0] in "{[" and _BEGINS_AS_JSON.match(content):
        if match := _FAILED_FLAG.search(content, 0, LONGEST_READ):
            return failed_by(match[0], content[:LONGEST_ERROR])
        if match := _DOUBTFUL_FLAG.search(content, 0, LONGEST_READ):
            return unstated(UNSTATED, match[0])
        return NEITHER if kind.acts else DATA
    words = statement(content, is_status=kind.status, is_passage=kind.reads)
    if words.failed:
        error = content.split("\n", 1)[0]
        return failed_by(words.sign, error, words.is_strong) if words.is_strong or not kind.errors else None
    if words.stated == "succeeded":
        return ToolOutcome(SUCCEEDED, STATED, words.sign)
    reason = NOTHING_FOUND if words.stated == "nothing_found" else UNSTATED
    return unstated(reason, words.sign) if words.stated else None


def _inferred(content: str, kind: ToolKind) -> ToolOutcome:
    """Whether a text without a statement is what a tool returns when it works."""
    start = content[:LONGEST_READ]
    if is_page(content) and not kind.pages:
        return unstated(UNSTATED, "a page of HTML")
    if not _WORD.search(start):
        return NEITHER
    if not kind.reads and len(content) <= LONGEST_SHORT:
        done = next((word for word in _WORD.findall(content.lower()) if kind.did(word)), "")
        if done and not doubt(content, may_be_name=True):
            return ToolOutcome(SUCCEEDED, STATED, done)
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
