"""A tool's result that is an object: which of its fields speak of the call, and what they say together."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import islice

import msgspec

from convoscope.conversation import Json
from convoscope.text.identifiers import snake_case
from convoscope.text.result_words import statement
from convoscope.views import result_fields as fields
from convoscope.views.result_fields import (
    BAD_OF_THINGS,
    BAD_WORDS,
    DONE_WORDS,
    ERROR_WORDS,
    FALSE,
    GOOD_WORDS,
    GRPC_CODES,
    NO_ERROR,
    PENDING_WORDS,
    TRUE,
    ToolKind,
    field_of,
)
from convoscope.views.result_outcomes import (
    CONTRADICTS,
    DATA,
    DEEPEST,
    LONGEST_ERROR,
    NO_DATA,
    NOTHING_FOUND,
    STATED,
    SUCCEEDED,
    UNSTATED,
    ToolOutcome,
    failed_by,
    is_filled,
    unstated,
)

Read = Callable[[Json, ToolKind, int], ToolOutcome]
"""Reads a value of any shape that is inside of an object."""


_STATUS_LINE = re.compile(r"\s{0,3}(?:HTTP(?:/\d(?:\.\d)?)?\s{1,3})?(\d{3})(?:\s.{0,60}|)", re.IGNORECASE | re.DOTALL)
MOST_FIELDS = 200


_NO_TEXTS: tuple[str, ...] = ()


class ObjectResult:
    """An object, field by field: what speaks of the call, and what is data.

    `good` and `bad` are signs that have no other reading; `weak` are types and codes of errors, which may also be
    data; `ids` and `data` count the fields that are the thing returned.
    """

    def __init__(self, given: Mapping[str, Json], kind: ToolKind, depth: int, read: Read) -> None:
        self.kind, self.depth, self.read = kind, depth, read
        self.good = self.bad = self.errors = self.weak = self.texts = self.descriptions = _NO_TEXTS
        self.wrapped: tuple[Json, ...] = ()
        self.flag: bool | None = None
        self.code: int | None = None
        self.status = self.status_text = self.pending = ""
        self.ids = self.data = self.described = 0
        self.found_nothing = False
        for key, value in islice(given.items(), MOST_FIELDS):
            role = field_of(key)
            if role is None:
                if is_filled(value):
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
        elif is_filled(value):
            self.data += 1

    def take_bad_flag(self, key: str, value: Json) -> None:
        truth = _truth(value) if isinstance(value, bool | str) else None
        if truth:
            self.bad += (f"{key}: true",)
        elif truth is False:
            self.flag = True if self.flag is None else self.flag
            if key.lower().replace("_", "") == "iserror":
                self.good += (f"{key}: false",)
        elif is_filled(value):
            self.data += 1

    def take_error(self, key: str, value: Json) -> None:
        if isinstance(value, bool):
            if value:
                self.bad += (f"{key}: true",)
        elif isinstance(value, float) or (
            key.lower().endswith(("s", "failure")) and (isinstance(value, int) or self.kind.errors)
        ):
            self.data += is_filled(value)  # a measure, a count, the errors that were looked up
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
            elif isinstance(value, dict | list) and is_filled(value):
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
        elif is_filled(value):
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
        elif is_filled(value):
            self.wrapped += (value,)

    def take_description(self, _key: str, value: Json) -> None:
        if is_filled(value):
            self.described += 1
            if isinstance(value, str):
                self.descriptions += (value,)

    def take_wrapped(self, _key: str, value: Json) -> None:
        if is_filled(value):
            self.wrapped += (value,)

    def take_found(self, key: str, value: Json) -> None:
        if _truth(value) is False:
            self.found_nothing = True
        elif is_filled(value):
            self._count(key, value)

    def take_meta(self, _key: str, _value: Json) -> None:
        """Ids of requests, times: they say nothing."""

    # What they say together

    def outcome(self) -> ToolOutcome:
        is_plain = not (self.bad or self.good or self.status or self.texts or self.wrapped or self.weak or self.pending)
        if is_plain and self.code is None and (self.data or (self.ids and not self.found_nothing)):
            return DATA
        if self.bad and self.good and self.flag is True and self.errors:
            return unstated(CONTRADICTS, f"{self.good[0]} beside {self.bad[0]}")
        if self.bad:
            return self._failure(self.bad[0])
        inner = (
            [self.read(value, self.kind, self.depth + 1) for value in self.wrapped[:3]] if self.depth < DEEPEST else []
        )
        if (broken := next((each for each in inner if each.failed and each.is_strong), None)) is not None:
            return broken
        for stated in (self._by_status(), self._by_code(inner), self._by_text()):
            if stated is not None:
                return stated
        if self.found_nothing and not (self.data or self.wrapped or self.described):
            return NO_DATA
        if self.good:
            return ToolOutcome(SUCCEEDED, STATED, self.good[0])
        return self._unflagged(inner)

    def _failure(self, sign: str, is_strong: bool = True) -> ToolOutcome:
        texts = (*self.errors, *self.texts, *self.descriptions, self.status_text if " " in self.status_text else "")
        words = next((text for text in texts if text), "")
        if not words:
            words = next((text for value in self.wrapped[:2] if (text := error_message(value))), "")
        return failed_by(sign, words, is_strong)

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
        return unstated(NOTHING_FOUND if word == "not_found" else UNSTATED, f"status: {word}")

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
        return ToolOutcome(SUCCEEDED, STATED, self.good[0]) if self.good else unstated(UNSTATED, f"code: {code}")

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
            return unstated(UNSTATED, self.pending)
        if self.data or self.ids or (self.described and (self.weak or self.pending)):
            return DATA
        if inner:
            return next((each for each in inner if each.status == SUCCEEDED), inner[0])
        if self.wrapped or self.weak:
            return DATA
        texts = self.texts or self.descriptions
        return self.read("\n".join(texts), self.kind, DEEPEST) if texts else NO_DATA


_TAKERS = {
    fields.GOOD_FLAG: ObjectResult.take_good_flag,
    fields.BAD_FLAG: ObjectResult.take_bad_flag,
    fields.ERROR: ObjectResult.take_error,
    fields.WEAK_ERROR: ObjectResult.take_weak_error,
    fields.STATUS: ObjectResult.take_status,
    fields.TYPE: ObjectResult.take_type,
    fields.HTTP: ObjectResult.take_http,
    fields.CODE: ObjectResult.take_code,
    fields.EXIT: ObjectResult.take_exit,
    fields.TEXT: ObjectResult.take_text,
    fields.DESCRIPTION: ObjectResult.take_description,
    fields.WRAPPED: ObjectResult.take_wrapped,
    fields.FOUND: ObjectResult.take_found,
    fields.META: ObjectResult.take_meta,
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
        if not is_filled(value) or _is_no_error(value):
            return ""
        return error_message(value) or msgspec.json.encode(value).decode()[:LONGEST_ERROR]
    if isinstance(value, list | tuple):
        return next((words for words in map(_error_words, islice(value, 20)) if words), "")
    return ""


def _is_no_error(value: Mapping[str, Json]) -> bool:
    """`{"code": 0, "message": "OK"}` is the shape of an error that there was not."""
    code = value.get("code", value.get("status"))
    return code in (0, "0", 200, "200", "OK", "ok") and not isinstance(code, bool)


_MESSAGES = ("message", "error", "error_message", "errorMessage", "detail", "details", "msg", "reason", "description")


def error_message(value: Json) -> str:
    """The words of an error, for people."""
    if isinstance(value, str):
        return value.strip().split("\n", 1)[0][:LONGEST_ERROR]
    if isinstance(value, list | tuple):
        return next((words for words in map(error_message, islice(value, 5)) if words), "")
    if not isinstance(value, dict):
        return ""
    inner: Iterable[Json] = (value.get(key) for key in (*_MESSAGES, "text", "code", "type", "content", "data"))
    for each in inner:
        if isinstance(each, str) and each.strip():
            return each.strip()[:LONGEST_ERROR]
        if isinstance(each, dict | list) and each:
            words = error_message(each) if isinstance(each, dict) else error_message(each[:1])
            if words:
                return words
    return ""
