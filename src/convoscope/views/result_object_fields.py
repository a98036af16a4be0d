"""The fields of a tool's result that is an object, sorted: what speaks of the call, and what is data."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from convoscope.conversation import Json
from convoscope.text.identifiers import name_words
from convoscope.text.result_words import statement
from convoscope.views import result_fields as fields
from convoscope.views.result_fields import (
    ASKS,
    BAD_OF_THINGS,
    BAD_WORDS,
    CHANGED,
    COUNTING,
    DONE_PARTS,
    DONE_WORDS,
    ERROR_WORDS,
    FAILED_PARTS,
    GOOD_WORDS,
    NO_ACCESS,
    NO_ERROR,
    PENDING_WORDS,
    WAITS,
    ToolKind,
    field_of,
    part_of,
    status_word,
)
from convoscope.views.result_outcomes import is_filled
from convoscope.views.result_values import error_words, http_code, truth

MOST_FIELDS = 200
_OF_THE_CALL = (fields.ERROR, fields.WEAK_ERROR, fields.STATUS, fields.HTTP, fields.CODE)
_NO_TEXTS: tuple[str, ...] = ()
_ID_ENDINGS = ("id", "number", "ref", "reference", "no", "uuid", "key", "ticket", "code", "pnr", "sid", "locator")


class ObjectFields:
    """An object, field by field.

    `good` and `bad` are signs that have no other reading; `weak` are types and codes of errors, which may also be
    data; `ids`, `data`, `flags`, `sentences` and `parts` are what was returned.
    """

    def __init__(self, given: Mapping[str, Json], kind: ToolKind) -> None:
        self.kind = kind
        self.good = self.bad = self.errors = self.weak = self.texts = self.descriptions = self.findings = _NO_TEXTS
        self.sentences = _NO_TEXTS
        self.wrapped: tuple[Json, ...] = ()
        self.parts: tuple[Json, ...] = ()
        self.flag: bool | None = None
        self.code: int | None = None
        self.status = self.status_text = self.pending = self.unsettled = ""
        self.ids = self.data = self.described = self.flags = self.echoes = self.empty = 0
        self.done_parts: int | None = None
        self.failed_parts: int | None = None
        self.found_nothing = self.has_verdict = self.has_exit = self.doubtful = False
        for key, value in islice(given.items(), MOST_FIELDS):
            role = field_of(key)
            if role is None:
                self.take_data(key, value)
            else:
                _TAKERS[role](self, key, value)
        if self.findings and not self.has_verdict:
            self.bad += self.findings

    # Data

    def take_data(self, key: str, value: Json) -> None:
        if not is_filled(value):
            self._count_part(key, value)
            self.empty += isinstance(value, list | dict)
        elif isinstance(value, bool):
            self._take_flag(key, value)
        elif isinstance(value, int | float):
            self._take_number(key, value)
        elif isinstance(value, str):
            self._take_word(key, value)
        elif not self._count_part(key, value):
            words = name_words(key[:40])
            if words and words[0] in ASKS:
                self.pending = self.pending or key
            else:
                self.parts += (value,)

    def _take_flag(self, key: str, value: bool) -> None:
        word = status_word(key)
        asks = word.partition("_")[0] in ASKS or (word in PENDING_WORDS and not self.kind.did(word))
        if value and asks and (self.kind.acts or word not in PENDING_WORDS):
            self.pending = f"{key}: true"
        elif (self.kind.acts and word in DONE_WORDS) or self.kind.did(word):
            self.take_good_flag(key, value)
        elif value:
            self.flags += 1
        elif word in NO_ACCESS:
            self.pending = f"{key}: false"
        elif self.kind.acts or self.kind.unknown:
            self.doubtful = True
        else:
            self.flags += 1

    def _take_number(self, key: str, value: float) -> None:
        words = name_words(key[:40])
        if self._count_part(key, value):
            return
        if value == 0 and not self.kind.counts and not COUNTING.isdisjoint(words):
            self.found_nothing = True
        elif value and self.kind.acts and not CHANGED.isdisjoint(words):
            self.good += (f"{key}: {value}",)
        elif key.lower().endswith(_ID_ENDINGS):
            self.ids += 1
        elif not self.kind.acts or (value > 0 and WAITS.isdisjoint(words)):
            self.data += 1

    def _count_part(self, key: str, value: Json) -> bool:
        """Of a tool that acts on many things: `{"sent": 3, "failed": 2}`."""
        can_act = self.kind.acts or self.kind.unknown
        if not can_act or isinstance(value, bool | str | dict) or value is None:
            return False
        words = name_words(key[:40])
        number = len(value) if isinstance(value, list | tuple) else int(value)
        if part_of(words, FAILED_PARTS):
            self.failed_parts = number + (self.failed_parts or 0)
            return True
        if part_of(words, DONE_PARTS):
            self.done_parts = number + (self.done_parts or 0)
        return False

    def _take_word(self, key: str, value: str) -> None:
        word = status_word(value) if len(value) < 40 else ""
        words = name_words(key[:40])
        is_bad = word in BAD_WORDS or word in BAD_OF_THINGS
        if words and words[0] in ASKS:
            self.pending = f"{key}: {value[:40]}"
        elif self.kind.acts and is_bad:
            self.status, self.status_text = self.status or word, value
        elif self.kind.acts and status_word(key) in DONE_WORDS and truth(value) is not None:
            self.take_good_flag(key, value)
        elif " " not in value and key.lower().endswith(_ID_ENDINGS):
            self.ids += 1
        elif word.endswith(("_error", "_exception")) and " " not in value:
            self.take_weak_error(key, value)  # `{"name": "TypeError", "message": …}`
        elif word in BAD_WORDS or (is_bad and self.kind.unknown) or " " in value or not value.isascii():
            self.sentences += (value,)
        elif not self.kind.acts or WAITS.isdisjoint(words):
            self.data += 1

    # Fields that speak of the call

    def take_good_flag(self, key: str, value: Json) -> None:
        if isinstance(value, int | list) and not isinstance(value, bool) and value not in (0, 1):
            self._count_part(key, value)
        flag = truth(value)
        if flag is not None:
            self.flag = flag if self.flag is None else self.flag and flag
            if flag:
                self.good += (f"{key}: true",)
            else:
                self.bad += (f"{key}: false",)
        elif isinstance(value, str) and value.strip():
            self.unsettled = f"{key}: {value[:40]}"
        elif is_filled(value):
            self.data += 1

    def take_bad_flag(self, key: str, value: Json) -> None:
        if self._count_part(key, value):
            return
        flag = truth(value) if isinstance(value, bool | str) else None
        if flag:
            self.bad += (f"{key}: true",)
        elif flag is False:
            self.flag = True if self.flag is None else self.flag
            if key.lower().replace("_", "") == "iserror":
                self.good += (f"{key}: false",)
        elif is_filled(value):
            self.data += 1

    def take_error(self, key: str, value: Json) -> None:
        is_many = key.lower().endswith(("s", "failure"))
        if isinstance(value, bool):
            if value:
                self.bad += (f"{key}: true",)
        elif isinstance(value, float) or (is_many and (isinstance(value, int) or self.kind.errors)):
            if isinstance(value, float) or not self._count_part(key, value):
                self.data += is_filled(value)  # a measure, a count, the errors that were looked up
        elif words := error_words(value):
            if is_many and self.kind.checks:
                self.findings += (key,)
            else:
                self.bad += (key,)
            self.errors += (words,)

    def take_weak_error(self, key: str, value: Json) -> None:
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip().lower() not in NO_ERROR:
            self.weak += (f"{key}: {str(value)[:40]}",)
            if isinstance(value, str):
                self.errors += (value,)

    def _take_good_word(self, word: str, sign: str) -> None:
        """A tool that reads sends and books nothing: from it, `sent` is the state of what it returns."""
        if self.kind.reads and word in fields.DONE_WORDS:
            self.data += 1
        else:
            self.good += (sign,)

    def take_status(self, key: str, value: Json) -> None:
        if (code := http_code(value)) is not None:
            self._judge_code(key, code)
            return
        if not isinstance(value, str):
            if isinstance(value, bool):
                self.take_good_flag(key, value)
            elif isinstance(value, dict | list) and is_filled(value):
                self.wrapped += (value,)
            return
        word = status_word(value)
        if self.kind.did(word):
            self.good += (f"{key}: {value}",)
        elif word in BAD_WORDS or word in BAD_OF_THINGS:
            self.status, self.status_text = word, value[:60]
        elif word in GOOD_WORDS:
            self._take_good_word(word, f"{key}: {value}")
        elif not {word, word.rpartition("_")[2]}.isdisjoint(PENDING_WORDS) or word.partition("_")[0] in ASKS:
            self.pending = f"{key}: {value[:40]}"
        elif (words := statement(value)) is not None and words.stated == "failed":
            self.status, self.status_text = ("error" if words.is_strong else "failed"), value
        elif word in ("zero_results", "no_results"):
            self.found_nothing = True
        elif not self.kind.acts:
            if " " in value or not value.isascii():
                self.sentences += (value,)
            else:
                self.data += bool(word)
        elif word not in fields.STATUS_OF_NEW:
            self.doubtful = True

    def take_type(self, key: str, value: Json) -> None:
        if not isinstance(value, str):
            return
        if value.lower() in ERROR_WORDS:
            self.take_status(key, value)
        elif value.endswith(("Exception", "Error", "Fault")):
            self.take_weak_error(key, value)

    def take_http(self, key: str, value: Json) -> None:
        if (code := http_code(value)) is not None:
            self._judge_code(key, code)
        elif is_filled(value):
            self.data += 1

    def _judge_code(self, key: str, code: int) -> None:
        if 400 <= code < 600:
            self.bad += (f"{key}: {code}",)
        elif code in (202, 207) or code >= 300:
            self.unsettled = f"{key}: {code}"
        elif code >= 200:
            self.good += (f"{key}: {code}",)

    def take_code(self, key: str, value: Json) -> None:
        if isinstance(value, str) and value.strip().isdecimal() and len(value) < 10:
            value = int(value)
        number = value if isinstance(value, int) and not isinstance(value, bool) else http_code(value)
        if number is not None:
            self.code = number
        elif isinstance(value, str) and value.strip():
            if status_word(value) in ERROR_WORDS:
                self.take_status(key, value)
            else:
                self.weak += (f"{key}: {value[:40]}",)

    def take_exit(self, key: str, value: Json) -> None:
        text = str(value).strip()
        if isinstance(value, bool) or not text.lstrip("-").isdigit():
            return
        self.has_exit = True
        if int(text[:12]) == 0:
            self.good += (f"{key}: 0",)
        else:
            self.bad += (f"{key}: {text[:12]}",)

    def take_text(self, key: str, value: Json) -> None:
        if isinstance(value, str):
            if value.strip():
                self.texts += (value,)
                self.doubtful |= self.kind.acts and key.lower() in fields.REASONS
        elif isinstance(value, list) and value and all(map(_is_rejected_field, islice(value, 20))):
            self.bad += (key,)
            self.errors += (error_words(value),)
        elif is_filled(value):
            self.wrapped += (value,)

    def take_description(self, _key: str, value: Json) -> None:
        if is_filled(value):
            self.described += 1
            if isinstance(value, str):
                self.descriptions += (value,)

    def take_wrapped(self, _key: str, value: Json) -> None:
        if value == 0 and not isinstance(value, bool) and not self.kind.counts:
            self.found_nothing = True
        elif is_filled(value):
            self.wrapped += (value,)
        else:
            self.empty += isinstance(value, list | dict)

    def take_found(self, key: str, value: Json) -> None:
        if truth(value) is False:
            self.found_nothing = True
        else:
            self.take_data(key, value)

    def take_verdict(self, key: str, value: Json) -> None:
        if isinstance(value, bool) and not self.kind.acts:
            self.has_verdict = True
            self.data += 1
        else:
            self.take_data(key, value)

    def take_echo(self, _key: str, value: Json) -> None:
        self.echoes += is_filled(value)

    def take_meta(self, _key: str, value: Json) -> None:
        """Ids of requests, times: they say nothing; but what is around the data may have a status."""
        if isinstance(value, dict) and any(field_of(key) in _OF_THE_CALL for key in islice(value, 20)):
            self.wrapped += (value,)


def _is_rejected_field(value: Json) -> bool:
    """A field that a server did not accept, as FastAPI and pydantic write it."""
    return isinstance(value, dict) and "loc" in value and "msg" in value


_TAKERS = {
    fields.GOOD_FLAG: ObjectFields.take_good_flag,
    fields.BAD_FLAG: ObjectFields.take_bad_flag,
    fields.ERROR: ObjectFields.take_error,
    fields.WEAK_ERROR: ObjectFields.take_weak_error,
    fields.STATUS: ObjectFields.take_status,
    fields.TYPE: ObjectFields.take_type,
    fields.HTTP: ObjectFields.take_http,
    fields.CODE: ObjectFields.take_code,
    fields.EXIT: ObjectFields.take_exit,
    fields.TEXT: ObjectFields.take_text,
    fields.DESCRIPTION: ObjectFields.take_description,
    fields.WRAPPED: ObjectFields.take_wrapped,
    fields.FOUND: ObjectFields.take_found,
    fields.VERDICT: ObjectFields.take_verdict,
    fields.ECHO: ObjectFields.take_echo,
    fields.META: ObjectFields.take_meta,
}
