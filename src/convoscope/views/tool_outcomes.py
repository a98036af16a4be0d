"""What a tool's result says: it succeeded, it failed, or that is not stated. The one definition of it.

The shapes that are read are listed in docs/guides/tool-results.md. A failure is always stated: by the log, by a flag,
a code or words of the result. A success is stated in the same ways, or inferred, where the tool returned data and shows
no sign of failure. What says neither is not stated, and nothing is counted for it.
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Literal, NamedTuple

import msgspec

from convoscope.conversation import Conversation, Json, ToolCall, ToolResult
from convoscope.conversation.lazy import cached_on_argument
from convoscope.text.identifiers import snake_case
from convoscope.text.result_words import LONGEST_READ, LONGEST_SHORT, Statement, carries_values, failure_hint, statement
from convoscope.views import result_fields as fields
from convoscope.views.result_fields import (
    BAD_OF_THINGS,
    BAD_WORDS,
    DONE_WORDS,
    EMPTY_WORDS,
    ERROR_WORDS,
    FALSE,
    GOOD_WORDS,
    GRPC_CODES,
    NO_ERROR,
    PENDING_WORDS,
    TRUE,
    ToolKind,
    field_of,
    tool_kind,
)

Status = Literal["succeeded", "failed", "not_stated"]
SUCCEEDED: Status = "succeeded"
FAILED: Status = "failed"
NOT_STATED: Status = "not_stated"
STATED, INFERRED = "stated", "inferred"
HOUSE_RULE = "--tool-failed"
"""The name in the extras of a result under which the user's own rule is kept."""
UNTRIED_RULE = "--tool-failed not tried"
"""The same of a rule that cannot be tried on the result."""

EMPTY, NOTHING_FOUND = "empty_tool_result", "tool_found_nothing"
UNSTATED, CONTRADICTS = "tool_result_says_neither", "tool_result_contradicts_itself"
RULE_NOT_TRIED = "tool_rule_not_tried"


class ToolOutcome(NamedTuple):
    """What a result says."""

    status: Status
    basis: str = STATED
    """`stated`, or `inferred` for a success that only the data show; empty where nothing is stated."""
    sign: str = ""
    """What decided it."""
    error: str = ""
    """Of a failure: what the result says of it."""
    reason: str = ""
    """Where it is not stated: why."""
    is_strong: bool = True
    """Of a failure: no other reading of the same words is likely, also inside of another result."""

    @property
    def failed(self) -> bool:
        return self.status == FAILED

    @property
    def worked(self) -> bool | None:
        """Whether it succeeded; None where that is not stated."""
        return None if self.status == NOT_STATED else self.status == SUCCEEDED


def tool_outcome(result: ToolResult, tool: str = "") -> ToolOutcome:
    """What a result says. `tool` is the name of the tool that was called, where the result does not have it."""
    outcome = _outcome(result, tool)
    if result.extras and UNTRIED_RULE in result.extras and not outcome.failed:
        return _unstated(RULE_NOT_TRIED, f"{HOUSE_RULE} {result.extras[UNTRIED_RULE]}")
    return outcome


def _outcome(result: ToolResult, tool: str) -> ToolOutcome:
    flag, error = result.success, result.error
    if flag is False:
        sign = result.extras.get(HOUSE_RULE) if result.extras else None
        return _failed(f"{HOUSE_RULE} {sign}" if sign else "success: false", error or _message(result.result))
    if flag is True and error:
        return _unstated(CONTRADICTS, "success beside an error")
    if error:
        return _failed("error", error)
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


def _failed(sign: str, error: str, is_strong: bool = True) -> ToolOutcome:
    return ToolOutcome(FAILED, STATED, sign[:80], error[:_LONGEST_ERROR], "", is_strong)


def _unstated(reason: str, sign: str = "") -> ToolOutcome:
    return ToolOutcome(NOT_STATED, "", sign[:80], "", reason)


_LONGEST_ERROR = 500
_NOTHING = _unstated(EMPTY)
_NO_DATA = _unstated(NOTHING_FOUND)
_NEITHER = _unstated(UNSTATED)
_DATA = ToolOutcome(SUCCEEDED, INFERRED, "returned data")


# A result of any shape

_DEEPEST = 4


def _read(value: Json, kind: ToolKind, depth: int) -> ToolOutcome:
    if isinstance(value, str):
        return _read_text(value, kind, depth)
    if isinstance(value, dict):
        return _read_object(value, kind, depth)
    if isinstance(value, list | tuple):
        return _read_list(value, kind, depth)
    if value is None:
        return _NOTHING
    if value is True or kind.counts or kind.runs or (value is False and kind.reads):
        return _DATA
    return _NEITHER


def _read_object(value: dict[str, Json], kind: ToolKind, depth: int) -> ToolOutcome:
    if not value:
        return _NOTHING
    for key in islice(value, _MOST_FIELDS):
        if kind.acts or field_of(key) is not None:
            return _Object(value, kind, depth).outcome()
    if not _is_filled(value):
        return _NO_DATA
    if len(value) == 1 and depth < _DEEPEST:
        # What carries a result may have any name: `{"getOrderResponse": {"error": "db down"}}`.
        inner = next(iter(value.values()))
        if isinstance(inner, dict) and _is_failure_itself(outcome := _read_object(inner, kind, depth + 1)):
            return outcome
    return _DATA


def _read_list(values: list[Json] | tuple[Json, ...], kind: ToolKind, depth: int) -> ToolOutcome:
    if not any(_is_filled(value) for value in islice(values, 50)):
        return _NO_DATA
    if depth < _DEEPEST:
        texts = [value["text"] for value in islice(values, 20) if _is_text_block(value)]
        if texts and len(texts) == min(len(values), 20):
            return _read_text("\n".join(texts), kind, depth + 1)
        if not kind.errors:
            return _read_members(
                [_read(each, kind, depth + 1) for each in islice(values, 5) if _can_fail(each)], values
            )
    return _DATA


def _can_fail(value: Json) -> bool:
    return isinstance(value, dict) or (isinstance(value, str) and not _BARE.fullmatch(value[:LONGEST_SHORT]))


def _read_members(inner: list[ToolOutcome], values: Sequence[Json]) -> ToolOutcome:
    """Of a list: a failure, or nothing found, where each of its first members says so; else it is data."""
    if inner and len(inner) == min(len(values), 5):
        if all(map(_is_failure_itself, inner)):
            return inner[0]
        if all(each.status == NOT_STATED and each.sign for each in inner):
            return inner[0]
    return _DATA


def _is_failure_itself(outcome: ToolOutcome) -> bool:
    """Whether an object in a list is a failure: the status of a thing that is listed is its own."""
    return outcome.failed and outcome.is_strong and not outcome.sign.startswith("status:")


def _is_text_block(value: Json) -> bool:
    return (
        isinstance(value, dict) and value.get("type") in ("text", "output_text") and isinstance(value.get("text"), str)
    )


def _is_filled(value: Json, depth: int = 0) -> bool:
    """Whether there is anything in it: an empty list inside of a list is nothing."""
    if isinstance(value, str):
        return value != "" and not value.isspace()
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return value is not None
    # A loop, because this runs for each field of each result, and a generator costs more than the rest.
    for inner in islice(value, 50):  # noqa: SIM110
        if depth > _DEEPEST or _is_filled(inner, depth + 1):
            return True
    return False


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
        return _NO_DATA if content == "[]" else _NOTHING
    if content[0] in '{["' and depth < _DEEPEST:
        value = _decoded(content)
        if not isinstance(value, str) or value is not content:
            return _read(value, kind, depth + 1)
        if content[0] != '"' and content[-1] in "}]":
            return _unread_structure(content)
    words = statement(content, is_status=kind.status, is_passage=kind.reads)
    if words is not None and not (words.stated == "failed" and not words.is_strong and kind.errors):
        return _stated_by(words, content)
    if not (kind.errors or kind.status) and (hint := failure_hint(content)):
        return _unstated(UNSTATED, hint)
    return _DATA if _is_data(content, kind) else _NEITHER


def _stated_by(words: Statement, content: str) -> ToolOutcome:
    if words.stated == "failed":
        return _failed(words.sign, content.split("\n", 1)[0], words.is_strong)
    if words.stated == "succeeded":
        return ToolOutcome(SUCCEEDED, STATED, words.sign)
    return _unstated(NOTHING_FOUND if words.stated == "nothing_found" else UNSTATED, words.sign)


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
    return _failed(match[0], content[:_LONGEST_ERROR]) if match else _DATA


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


# Objects

_STATUS_LINE = re.compile(r"\s{0,3}(?:HTTP(?:/\d(?:\.\d)?)?\s{1,3})?(\d{3})(?:\s.{0,60}|)", re.IGNORECASE | re.DOTALL)
_MOST_FIELDS = 200


_NO_TEXTS: tuple[str, ...] = ()


class _Object:
    """An object, field by field: what speaks of the call, and what is data.

    `good` and `bad` are signs that have no other reading; `weak` are types and codes of errors, which may also be
    data; `ids` and `data` count the fields that are the thing returned.
    """

    def __init__(self, given: Mapping[str, Json], kind: ToolKind, depth: int) -> None:
        self.kind, self.depth = kind, depth
        self.good = self.bad = self.errors = self.weak = self.texts = self.descriptions = _NO_TEXTS
        self.wrapped: tuple[Json, ...] = ()
        self.flag: bool | None = None
        self.code: int | None = None
        self.status = self.status_text = self.pending = ""
        self.ids = self.data = self.described = 0
        self.found_nothing = False
        for key, value in islice(given.items(), _MOST_FIELDS):
            role = field_of(key)
            if role is None:
                if _is_filled(value):
                    self._count(key, value)
            else:
                _TAKERS[role](self, key, value)

    # Fields

    def _count(self, key: str, value: Json) -> None:
        if isinstance(value, bool) and self.kind.acts and key.lower() in DONE_WORDS:
            self.take_good_flag(key, value)
            return
        scalar = not isinstance(value, dict | list)
        if scalar and key.lower().endswith(("id", "number", "ref", "reference", "no", "uuid", "key", "ticket")):
            self.ids += 1
        else:
            self.data += 1

    def take_good_flag(self, key: str, value: Json) -> None:
        truth = _truth(value)
        if truth is not None:
            self.flag = truth if self.flag is None else self.flag and truth
            if truth:
                self.good += (f"{key}: true",)
            else:
                self.bad += (f"{key}: false",)
        elif _is_filled(value):
            self.data += 1

    def take_bad_flag(self, key: str, value: Json) -> None:
        truth = _truth(value) if isinstance(value, bool | str) else None
        if truth:
            self.bad += (f"{key}: true",)
        elif truth is False:
            self.flag = True if self.flag is None else self.flag
            if key.lower().replace("_", "") == "iserror":
                self.good += (f"{key}: false",)
        elif _is_filled(value):
            self.data += 1

    def take_error(self, key: str, value: Json) -> None:
        if isinstance(value, bool):
            if value:
                self.bad += (f"{key}: true",)
        elif isinstance(value, float) or (
            key.lower().endswith(("s", "failure")) and (isinstance(value, int) or self.kind.errors)
        ):
            self.data += _is_filled(value)  # a measure, a count, the errors that were looked up
        elif words := _error_words(value):
            self.bad += (key,)
            self.errors += (words,)

    def take_weak_error(self, key: str, value: Json) -> None:
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip().lower() not in NO_ERROR:
            self.weak += (f"{key}: {str(value)[:40]}",)
            if isinstance(value, str):
                self.errors += (value,)

    def take_status(self, key: str, value: Json) -> None:
        if (code := _code(value)) is not None:
            self._judge_code(key, code)
            return
        if not isinstance(value, str):
            if isinstance(value, bool):
                self.take_good_flag(key, value)
            elif isinstance(value, dict | list) and _is_filled(value):
                self.wrapped += (value,)
            return
        word = snake_case(value[:60])
        if word in BAD_WORDS or word in BAD_OF_THINGS:
            self.status, self.status_text = word, value[:60]
        elif word in GOOD_WORDS:
            self.good += (f"{key}: {value}",)
        elif not PENDING_WORDS.isdisjoint((word, word.rpartition("_")[2])):
            self.pending = f"{key}: {value[:40]}"
        elif (words := statement(value)) is not None and words.stated == "failed":
            self.status, self.status_text = ("error" if words.is_strong else "failed"), value
        elif word:
            self.data += key.lower() != "type"

    def take_type(self, key: str, value: Json) -> None:
        if isinstance(value, str) and value.lower() in ERROR_WORDS:
            self.take_status(key, value)

    def take_http(self, key: str, value: Json) -> None:
        if (code := _code(value)) is not None:
            self._judge_code(key, code)
        elif _is_filled(value):
            self.data += 1

    def _judge_code(self, key: str, code: int) -> None:
        if 400 <= code < 600:
            self.bad += (f"{key}: {code}",)
        elif 200 <= code < 300:
            self.good += (f"{key}: {code}",)

    def take_code(self, key: str, value: Json) -> None:
        if isinstance(value, str) and value.strip().isdecimal() and len(value) < 10:
            value = int(value)
        number = value if isinstance(value, int) and not isinstance(value, bool) else _code(value)
        if number is not None:
            self.code = number
        elif isinstance(value, str) and value.strip():
            self.weak += (f"{key}: {value[:40]}",)

    def take_exit(self, key: str, value: Json) -> None:
        text = str(value).strip()
        if isinstance(value, bool) or not text.lstrip("-").isdigit():
            return
        if int(text[:12]) == 0:
            self.good += (f"{key}: 0",)
        else:
            self.bad += (f"{key}: {text[:12]}",)

    def take_text(self, _key: str, value: Json) -> None:
        if isinstance(value, str):
            if value.strip():
                self.texts += (value,)
        elif _is_filled(value):
            self.wrapped += (value,)

    def take_description(self, _key: str, value: Json) -> None:
        if _is_filled(value):
            self.described += 1
            if isinstance(value, str):
                self.descriptions += (value,)

    def take_wrapped(self, _key: str, value: Json) -> None:
        if _is_filled(value):
            self.wrapped += (value,)

    def take_found(self, key: str, value: Json) -> None:
        if _truth(value) is False:
            self.found_nothing = True
        elif _is_filled(value):
            self._count(key, value)

    def take_meta(self, _key: str, _value: Json) -> None:
        """Ids of requests, times: they say nothing."""

    # What they say together

    def outcome(self) -> ToolOutcome:
        is_plain = not (self.bad or self.good or self.status or self.texts or self.wrapped or self.weak or self.pending)
        if is_plain and self.code is None and (self.data or (self.ids and not self.found_nothing)):
            return _DATA
        if self.bad and self.good and self.flag is True and self.errors:
            return _unstated(CONTRADICTS, f"{self.good[0]} beside {self.bad[0]}")
        if self.bad:
            return self._failure(self.bad[0])
        inner = [_read(value, self.kind, self.depth + 1) for value in self.wrapped[:3]] if self.depth < _DEEPEST else []
        if (broken := next((each for each in inner if each.failed and each.is_strong), None)) is not None:
            return broken
        for stated in (self._by_status(), self._by_code(inner), self._by_text()):
            if stated is not None:
                return stated
        if self.found_nothing and not (self.data or self.wrapped or self.described):
            return _NO_DATA
        if self.good:
            return ToolOutcome(SUCCEEDED, STATED, self.good[0])
        return self._unflagged(inner)

    def _failure(self, sign: str, is_strong: bool = True) -> ToolOutcome:
        texts = (*self.errors, *self.texts, *self.descriptions, self.status_text if " " in self.status_text else "")
        words = next((text for text in texts if text), "")
        if not words:
            words = next((text for value in self.wrapped[:2] if (text := _message(value))), "")
        return _failed(sign, words, is_strong)

    @property
    def _has_data(self) -> bool:
        return bool(self.data or self.ids or self.wrapped)

    def _by_status(self) -> ToolOutcome | None:
        """A word such as `failed` is the call's own where nothing else is returned; else that of the thing returned."""
        word = self.status
        if not word:
            return None
        has_reason, is_error = bool(self.texts or self.errors or self.weak), word in ERROR_WORDS
        if not self._has_data:
            if self.kind.reads and not (has_reason or self.kind.status) and word in BAD_OF_THINGS:
                return self._by_lone_word(word)
            of_the_call = has_reason or is_error or not self.kind.status
        elif is_error:
            of_the_call = has_reason or self.kind.acts or self.data + len(self.wrapped) < 2
        else:
            echoes_ids = has_reason and not (self.data or self.wrapped or self.kind.reads)
            of_the_call = bool(self.weak) or (self.kind.acts and word in BAD_WORDS) or echoes_ids
        if of_the_call:
            return self._failure(f"status: {word}", is_strong=not self._has_data or is_error)
        self.data += 1
        return None

    def _by_lone_word(self, word: str) -> ToolOutcome:
        """`{"status": "unavailable"}` of a tool that reads: of the call or of a thing. In capitals it is gRPC's."""
        if self.status_text in GRPC_CODES and not self.kind.availability:
            return self._failure(f"status: {word}")
        return _unstated(NOTHING_FOUND if word == "not_found" else UNSTATED, f"status: {word}")

    def _by_code(self, inner: list[ToolOutcome]) -> ToolOutcome | None:
        """A `code` speaks of the call where there is nothing beside it but a message: else it may be a product's."""
        code = self.code
        if code is None:
            alone = not (self._has_data or self.described or self.good)
            return self._failure(self.weak[0]) if alone and self._is_bad_code() else None
        alone = not (self.data or self.ids) and not any(each.status == SUCCEEDED for each in inner)
        if alone and (400 <= code < 600 or code < 0):
            return self._failure(f"code: {code}")
        if code != 0 and not 200 <= code < 300:
            if alone and not self.wrapped and self.texts:
                return self._by_own_code(code)
            self.data += 1
        elif self.texts or self.wrapped:
            self.good += (f"code: {code}",)
        return None

    def _by_own_code(self, code: int) -> ToolOutcome:
        """A code that is not of HTTP, of gRPC or one's own, with a message alone: the message decides."""
        words = {snake_case(text[:60]) for text in self.texts}
        if not words.isdisjoint(BAD_WORDS | BAD_OF_THINGS):
            return self._failure(f"code: {code}")
        if (stated := self._by_text()) is not None:
            return stated
        return ToolOutcome(SUCCEEDED, STATED, self.good[0]) if self.good else _unstated(UNSTATED, f"code: {code}")

    def _is_bad_code(self) -> bool:
        """Codes in words: a type of an error always, a mere `code` where its words or those beside it are of errors."""
        if not self.weak or self.kind.errors:
            return False
        if any(not each.startswith(("code:", "Code:")) for each in self.weak):
            return True
        texts = (*(each.partition(": ")[2].replace("_", " ") for each in self.weak), *self.texts)
        return any((words := statement(text)) is not None and words.stated == "failed" for text in texts)

    def _by_text(self) -> ToolOutcome | None:
        for text in (*self.texts[:4], *(() if self._has_data else self.descriptions[:2])):
            words = statement(text, is_status=self.kind.status)
            if words is None:
                if not (self._has_data or self.good or self.kind.status) and snake_case(text[:60]) in BAD_WORDS:
                    return self._failure(text[:40])
                continue
            if words.stated == "failed" and (words.is_strong or not self._has_data) and not self.good:
                return self._failure(words.sign, is_strong=words.is_strong)
            if words.stated == "succeeded":
                self.good += (words.sign,)
        return None

    def _unflagged(self, inner: list[ToolOutcome]) -> ToolOutcome:
        if self.pending and not (self.data or self.described) and not any(each.status == SUCCEEDED for each in inner):
            return _unstated(UNSTATED, self.pending)
        if self.data or self.ids or (self.described and (self.weak or self.pending)):
            return _DATA
        if inner:
            return next((each for each in inner if each.status == SUCCEEDED), inner[0])
        if self.wrapped or self.weak:
            return _DATA
        texts = self.texts or self.descriptions
        return _read_text("\n".join(texts), self.kind, _DEEPEST) if texts else _NO_DATA


_TAKERS = {
    fields.GOOD_FLAG: _Object.take_good_flag,
    fields.BAD_FLAG: _Object.take_bad_flag,
    fields.ERROR: _Object.take_error,
    fields.WEAK_ERROR: _Object.take_weak_error,
    fields.STATUS: _Object.take_status,
    fields.TYPE: _Object.take_type,
    fields.HTTP: _Object.take_http,
    fields.CODE: _Object.take_code,
    fields.EXIT: _Object.take_exit,
    fields.TEXT: _Object.take_text,
    fields.DESCRIPTION: _Object.take_description,
    fields.WRAPPED: _Object.take_wrapped,
    fields.FOUND: _Object.take_found,
    fields.META: _Object.take_meta,
}


def _truth(value: Json) -> bool | None:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower() if isinstance(value, str | int) else ""
    return True if word in TRUE else False if word in FALSE else None


def _code(value: Json) -> int | None:
    """A number of three digits, alone or at the head of a status line."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if 100 <= value < 600 else None
    if isinstance(value, str) and (match := _STATUS_LINE.fullmatch(value[:80])):
        return int(match[1])
    return None


def _error_words(value: Json) -> str:
    """What the value of `error` says; empty where it says that there is none."""
    if isinstance(value, str):
        return "" if value.strip().lower() in NO_ERROR else value.strip()
    if isinstance(value, int):
        return str(value) if value else ""
    if isinstance(value, dict):
        if not _is_filled(value) or _is_no_error(value):
            return ""
        return _message(value) or msgspec.json.encode(value).decode()[:_LONGEST_ERROR]
    if isinstance(value, list | tuple):
        return next((words for words in map(_error_words, islice(value, 20)) if words), "")
    return ""


def _is_no_error(value: Mapping[str, Json]) -> bool:
    """`{"code": 0, "message": "OK"}` is the shape of an error that there was not."""
    code = value.get("code", value.get("status"))
    return code in (0, "0", 200, "200", "OK", "ok") and not isinstance(code, bool)


_MESSAGES = ("message", "error", "error_message", "errorMessage", "detail", "details", "msg", "reason", "description")


def _message(value: Json) -> str:
    """The words of an error, for people."""
    if isinstance(value, str):
        return value.strip().split("\n", 1)[0][:_LONGEST_ERROR]
    if isinstance(value, list | tuple):
        return next((words for words in map(_message, islice(value, 5)) if words), "")
    if not isinstance(value, dict):
        return ""
    inner: Iterable[Json] = (value.get(key) for key in (*_MESSAGES, "text", "code", "type", "content", "data"))
    for each in inner:
        if isinstance(each, str) and each.strip():
            return each.strip()[:_LONGEST_ERROR]
        if isinstance(each, dict | list) and each:
            words = _message(each) if isinstance(each, dict) else _message(each[:1])
            if words:
                return words
    return ""
