"""A tool's result that is an object: what its fields say together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice

from convoscope.conversation import Json
from convoscope.text.folding import name_words, snake_case
from convoscope.text.result_words import LONGEST_SHORT, doubt, statement
from convoscope.views.result_fields import (
    ASKS,
    BAD_OF_THINGS,
    BAD_WORDS,
    CHANGED,
    CONTRADICTS,
    COUNTING,
    DATA,
    DEEPEST,
    DONE_PARTS,
    DONE_WORDS,
    ERROR_WORDS,
    FAILED_PARTS,
    FIELD_NAMES,
    GOOD_WORDS,
    GRPC_CODES,
    NEITHER,
    NO_ACCESS,
    NO_DATA,
    NO_ERROR,
    NOTHING_FOUND,
    PENDING_WORDS,
    REASONS,
    STATED,
    STATUS_OF_NEW,
    SUCCEEDED,
    UNSTATED,
    WAITS,
    ToolKind,
    ToolOutcome,
    error_message,
    error_words,
    failed_by,
    http_code,
    is_filled,
    outcome_of_members,
    part_of,
    role_of,
    status_word,
    truth,
    unstated,
)

MOST_FIELDS = 200
_OF_THE_CALL = ("error", "weak_error", "status", "http", "code")
_NO_TEXTS: tuple[str, ...] = ()
_ID_ENDINGS = ("id", "number", "ref", "reference", "no", "uuid", "key", "ticket", "code", "pnr", "sid", "locator")
Read = Callable[[Json, ToolKind, int], ToolOutcome]
"""Reads a value of any shape that is inside of an object."""


class ObjectResult:
    """An object, field by field, and what it says.

    `good` and `bad` are signs that have no other reading; `weak` are types and codes of errors, which may also be
    data; `ids`, `data`, `flags`, `sentences` and `parts` are what was returned.
    """

    # Defaults of the class, which are not set for each object.
    good = bad = errors = weak = texts = descriptions = findings = sentences = _NO_TEXTS
    wrapped: tuple[Json, ...] = ()
    parts: tuple[Json, ...] = ()
    flag: bool | None = None
    code: int | None = None
    status = status_text = pending = unsettled = ""
    ids = data = described = flags = echoes = empty = 0
    done_parts: int | None = None
    failed_parts: int | None = None
    found_nothing = has_verdict = has_exit = doubtful = False

    def __init__(self, given: Mapping[str, Json], kind: ToolKind, depth: int, read: Read) -> None:
        self.kind, self.depth, self.read = kind, depth, read
        for key, value in islice(given.items(), MOST_FIELDS):
            role = role_of(key)
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
            # A tool that reads sends and books nothing: from it, `sent` is the state of what it returns.
            is_of_thing = self.kind.reads and word in DONE_WORDS
            self.data += is_of_thing
            self.good += () if is_of_thing else (f"{key}: {value}",)
        elif not {word, word.rpartition("_")[2]}.isdisjoint(PENDING_WORDS) or word.partition("_")[0] in ASKS:
            self.pending = f"{key}: {value[:40]}"
        elif (words := statement(value)).failed:
            self.status, self.status_text = ("error" if words.is_strong else "failed"), value
        elif word in ("zero_results", "no_results"):
            self.found_nothing = True
        elif not self.kind.acts:
            if " " in value or not value.isascii():
                self.sentences += (value,)
            else:
                self.data += bool(word)
        elif word not in STATUS_OF_NEW:
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
                self.doubtful |= self.kind.acts and key.lower() in REASONS
        elif (
            value
            and isinstance(value, list)
            and all(isinstance(field, dict) and "loc" in field and "msg" in field for field in islice(value, 20))
        ):  # fields that a server did not accept, as FastAPI and pydantic write it
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
        if isinstance(value, dict) and any(role_of(key) in _OF_THE_CALL for key in islice(value, 20)):
            self.wrapped += (value,)

    # What they say together

    def outcome(self) -> ToolOutcome:
        spoken = self.bad or self.good or self.status or self.texts or self.wrapped or self.weak or self.pending
        if self.data and not (spoken or self.unsettled or self.kind.acts) and self.code is None:
            return DATA  # nothing in it speaks of the call
        if (batch := self._by_parts()) is not None:
            return batch
        if self.bad and self.good and self.flag is True and self.errors:
            return unstated(CONTRADICTS, f"{self.good[0]} beside {self.bad[0]}")
        if self.bad:
            return self._failure(self.bad[0])
        inner = self._read(self.wrapped)
        if (broken := next((each for each in inner if each.failed and each.is_strong), None)) is not None:
            return broken
        for stated in (self._by_status(), self._by_code(inner), self._by_text()):
            if stated is not None:
                return stated
        return self._by_signs(inner)

    def _by_signs(self, inner: list[ToolOutcome]) -> ToolOutcome:
        says_it_worked = self.good and not self.kind.acts
        if self.found_nothing and not (self._returned or self.wrapped or self.described or says_it_worked):
            return NO_DATA
        if self.unsettled and not (self.data > 1 and not self.kind.acts):
            return unstated(UNSTATED, self.unsettled)
        if self.good:
            return ToolOutcome(SUCCEEDED, STATED, self.good[0])
        return self._by_act(inner) if self.kind.acts else self._by_data(inner)

    @property
    def _returned(self) -> bool:
        """Whether there is data that is no id."""
        return bool(self.data or self.parts or self.sentences)

    @property
    def _has_data(self) -> bool:
        return bool(self._returned or self.ids or self.flags or self.wrapped)

    def _read(self, values: Sequence[Json]) -> list[ToolOutcome]:
        if self.depth >= DEEPEST:
            return []
        return [self.read(value, self.kind, self.depth + 1) for value in values[:3]]

    def _failure(self, sign: str, is_strong: bool = True) -> ToolOutcome:
        texts = (*self.errors, *self.texts, *self.descriptions, self.status_text if " " in self.status_text else "")
        words = next((text for text in texts if text), "")
        if not words:
            words = next((text for value in self.wrapped[:2] if (text := error_message(value))), "")
        return failed_by(sign, words, is_strong)

    def _by_parts(self) -> ToolOutcome | None:
        """Of a tool that acts on many things: how many of them failed."""
        failed, done = self.failed_parts, self.done_parts
        if not failed:
            if failed == 0 and done and self.kind.acts:
                self.good += ("0 failed",)
            nothing_done = done == 0 and self.kind.acts and not (self.good or self.bad or self.ids)
            return NO_DATA if nothing_done else None
        if done is None or (done == 0 and self.kind.unknown):
            self.unsettled = f"{failed} failed"
            return None
        sign = f"{failed} of {failed + done} failed"
        return unstated(CONTRADICTS, sign) if done else self._failure(sign)

    def _by_status(self) -> ToolOutcome | None:
        """A word such as `failed` is the call's own where nothing else is returned; else that of the thing returned."""
        word = self.status
        if not word:
            return None
        has_reason, is_error = bool(self.texts or self.errors or self.weak), word in ERROR_WORDS
        if not self._has_data:
            if self.kind.reads and not (has_reason or self.kind.status) and word in BAD_OF_THINGS:
                # `{"status": "unavailable"}` is of the call or of a thing. In capitals it is gRPC's.
                if self.status_text in GRPC_CODES and not self.kind.availability:
                    return self._failure(f"status: {word}")
                return unstated(NOTHING_FOUND if word == "not_found" else UNSTATED, f"status: {word}")
            of_the_call = has_reason or is_error or not self.kind.status
        elif is_error:
            of_the_call = has_reason or self.kind.acts or self.data + len(self.wrapped) + len(self.parts) < 2
        else:
            echoes_ids = has_reason and not (self._returned or self.wrapped or self.kind.reads)
            of_the_call = bool(self.weak) or self.kind.acts or echoes_ids
        if of_the_call:
            return self._failure(f"status: {word}", is_strong=not self._has_data or is_error)
        if word in BAD_WORDS and self.parts and not (self.data or self.ids or self.kind.status):
            return unstated(UNSTATED, f"status: {word}")  # of what carries the parts, or of one of them
        self.data += 1
        return None

    def _by_code(self, inner: list[ToolOutcome]) -> ToolOutcome | None:
        """A `code` speaks of the call where there is nothing beside it but a message: else it may be a product's."""
        code = self.code
        only_parts = not (self.data or self.ids or self.flags or self.sentences)
        if code is None:
            alone = only_parts and not (self.wrapped or self.described or self.good) and (self.texts or not self.parts)
            return self._failure(self.weak[0]) if alone and self._is_bad_code() else None
        alone = only_parts and not self.parts and not any(each.status == SUCCEEDED for each in inner)
        if alone and (400 <= code < 600 or code < 0):
            return self._failure(f"code: {code}")
        if code != 0 and not 200 <= code < 300:
            if alone and not self.wrapped and self.texts:
                return self._by_own_code(code)
            self.data += not self.kind.acts
            self.doubtful |= self.kind.acts
        elif self.texts or self.wrapped:
            self.good += (f"code: {code}",)
        return None

    def _by_own_code(self, code: int) -> ToolOutcome:
        """A code that is not of HTTP, of gRPC or one's own, with a message alone: the message decides."""
        words = {status_word(text) for text in self.texts}
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
        texts = (*(snake_case(each.partition(": ")[2]).replace("_", " ") for each in self.weak), *self.texts)
        return any(statement(text).failed for text in texts)

    def _by_text(self) -> ToolOutcome | None:
        if self.has_exit:
            return None  # programs that work write warnings, too
        for text in (*self.texts[:4], *(() if self._has_data else self.descriptions[:2])):
            words = statement(text, is_status=self.kind.status)
            says_nothing = not (words.stated or self._has_data or self.good or self.kind.status)
            if says_nothing and status_word(text) in BAD_WORDS:
                return self._failure(text[:40])
            if words.failed and (words.is_strong or not self._has_data):
                if self.good:
                    return unstated(CONTRADICTS, f"{self.good[0]} beside {words.sign}")
                return self._failure(words.sign, is_strong=words.is_strong)
            if words.stated == "succeeded":
                self.good += (words.sign,)
        return None

    # What was returned, where nothing is stated

    def _by_act(self, inner: list[ToolOutcome]) -> ToolOutcome:
        """An act returns what it made: an id, a thing, a value. Flags and sentences do not say that it was done."""
        inner = inner + self._read(self.parts)
        members = outcome_of_members(inner, self.kind)
        if members.failed or members.reason == CONTRADICTS or (members.reason and not self.ids):
            return members
        # A thing that has a status of its own: a new task is pending, and it was created.
        size = self.data + len(self.parts) + len(self.sentences) + self.described
        if self.pending and not (self.ids and size > (0 if self.kind.creates else 2)):
            return unstated(UNSTATED, self.pending)
        stated = self._by_sentences()
        if stated is not None and stated.status == SUCCEEDED:
            return stated
        made = self.ids or any(each.status == SUCCEEDED for each in inner) or self.data or self.flags > 1
        doubts = self.doubtful or any(doubt(text) for text in self.texts[:4])
        if made and not (doubts and not (self.ids and self._returned)):
            return DATA
        if stated is not None:
            return stated
        return self._by_words() if self.texts or self.descriptions else NO_DATA if self.empty else unstated(UNSTATED)

    def _by_data(self, inner: list[ToolOutcome]) -> ToolOutcome:
        succeeded = next((each for each in inner if each.status == SUCCEEDED), None)
        is_thing = self._returned or self.flags or self.described or succeeded or (self.ids and self.kind.reads)
        if self.pending and not is_thing:
            return unstated(UNSTATED, self.pending)
        is_with_nothing = self.empty or self.found_nothing
        if self.data or ((self.flags or self.ids or self.echoes) and not is_with_nothing):
            return DATA
        if self.described and (self.weak or self.pending):
            return DATA
        if inner and (succeeded or not (self.parts or self.sentences)):
            return succeeded or inner[0]
        if self.parts:
            return outcome_of_members(self._read(self.parts), self.kind)
        if (stated := self._by_sentences()) is not None:
            return stated
        if self.wrapped or self.weak or self.sentences:
            return DATA
        return self._by_words() if self.texts or self.descriptions else NO_DATA

    def _by_words(self) -> ToolOutcome:
        outcome = self.read("\n".join(self.texts or self.descriptions), self.kind, DEEPEST)
        return unstated(UNSTATED, "a message alone") if outcome is NEITHER else outcome

    def _by_sentences(self) -> ToolOutcome | None:
        """Where sentences are all that was returned: what they state, or why they may not be data."""
        if self.kind.errors or self.kind.status:
            return None
        doubts = []
        for text in self.sentences[:5]:
            if status_word(text) in BAD_WORDS or status_word(text) in BAD_OF_THINGS:
                doubts.append(text)
                continue
            words = statement(text)
            if words.failed and words.is_strong:
                return failed_by(words.sign, text)
            if words.stated == "succeeded":
                return ToolOutcome(SUCCEEDED, STATED, words.sign) if self.kind.acts else None
            if words.stated == "nothing_found":
                return unstated(NOTHING_FOUND, words.sign)
            is_short = len(text) <= LONGEST_SHORT
            doubts.append(words.sign if words.stated else doubt(text, may_be_name=True) if is_short else "")
        return unstated(UNSTATED, doubts[0]) if doubts and all(doubts) else None


_TAKERS: Mapping[str, Callable[[ObjectResult, str, Json], None]] = {
    role: getattr(ObjectResult, f"take_{role}") for role in FIELD_NAMES
}
