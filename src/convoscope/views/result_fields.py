"""What all readings of a tool's result share: the outcomes, the names and words of fields, statuses and tools."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from convoscope.conversation import Json
from convoscope.text.folding import name_words, snake_case
from convoscope.text.patterns import lazy_pattern
from convoscope.text.result_words import without_accents

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


def failed_by(sign: str, error: str, is_strong: bool = True) -> ToolOutcome:
    return ToolOutcome(FAILED, STATED, sign[:80], error[:LONGEST_ERROR], "", is_strong)


def unstated(reason: str, sign: str = "") -> ToolOutcome:
    return ToolOutcome(NOT_STATED, "", sign[:80], "", reason)


LONGEST_ERROR = 500
NOTHING = unstated(EMPTY)
NO_DATA = unstated(NOTHING_FOUND)
NEITHER = unstated(UNSTATED)
DATA = ToolOutcome(SUCCEEDED, INFERRED, "returned data")
DEEPEST = 4
"""Levels of a result that are read."""


def outcome_of_members(inner: Sequence[ToolOutcome], kind: ToolKind) -> ToolOutcome:
    """Of a list or of the parts of an object: a failure, or nothing found, where each of them says so; else data.

    The status of a thing that is listed is its own. Of a tool that acts it is that of the act, and where only some
    failed, the call did neither. Where the name of the tool does not say what it does, neither is known.
    """
    failed = [each for each in inner if each.failed and (not kind.reads or _is_failure_itself(each))]
    if failed:
        if len(failed) == len(inner) and (kind.acts or all(map(_is_failure_itself, failed))):
            return failed[0]
        if not kind.reads:
            return unstated(CONTRADICTS, f"{len(failed)} of {len(inner)} failed: {failed[0].sign}")
    if inner and all(each.status == NOT_STATED and (kind.acts or each.sign or each is NO_DATA) for each in inner):
        return inner[0]
    return DATA


def _is_failure_itself(outcome: ToolOutcome) -> bool:
    return outcome.is_strong and not outcome.sign.startswith("status:")


def is_filled(value: Json, depth: int = 0) -> bool:
    """Whether there is anything in it: an empty list inside of a list is nothing."""
    if isinstance(value, str):
        return value != "" and not value.isspace()
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return value is not None
    # A loop, because this runs for each field of each result, and a generator costs more than the rest.
    for inner in islice(value, 50):  # noqa: SIM110
        if depth > DEEPEST or is_filled(inner, depth + 1):
            return True
    return False


def _set_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Fields

_TABLE = tomllib.loads(Path(__file__).with_name("result_fields.toml").read_text(encoding="utf-8"))
FIELD_NAMES: Mapping[str, str] = _TABLE["fields"]
"""Names of fields by their role, without `_` and `-`."""
_ROLES = {name: role for role, names in FIELD_NAMES.items() for name in names.split()}
_ERROR_ENDINGS = _set_of("error errors exception exceptions fault faults failure fehler erreur erro errore fallo")
_NOT_OF_THE_CALL = _set_of("last previous recent standard mean squared margin of is no max average absolute relative")
"""Words in names of errors that are data: `last_error` of a device, `standard_error`."""
_LONGEST = 40


@lru_cache(maxsize=4096)
def role_of(key: str) -> str | None:
    """The role of a field by its name; None of data. What ends with the word for an error is one: `userErrors`."""
    if len(key) > _LONGEST:
        return None
    name = without_accents(key)
    role = _ROLES.get(name.replace("_", "").replace("-", "").replace(" ", "").lower())
    if role is not None:
        return role
    words = name_words(name)
    return "error" if words and words[-1] in _ERROR_ENDINGS and _NOT_OF_THE_CALL.isdisjoint(words) else None


# Statuses

BAD_WORDS = _set_of(_TABLE["words"]["bad"])
BAD_OF_THINGS = _set_of(_TABLE["words"]["bad_of_things"])
"""Words that are more often the status of an order or a payment than that of a call."""
ERROR_WORDS = _set_of("error exception failure fault internal_error server_error errored")
"""Words that are hardly ever the status of a thing."""
GRPC_CODES = _set_of("UNAVAILABLE NOT_FOUND ABORTED")
"""Those of the words above that are also codes of gRPC, which writes them in capitals."""
GOOD_WORDS = _set_of(_TABLE["words"]["good"])
PENDING_WORDS = _set_of(_TABLE["words"]["pending"])
"""Words that say neither: it is not done yet, or something is cancelled, by this call or before it."""
STATUS_OF_NEW = _set_of("open active new draft live ready valid enabled")
"""The status of a thing that was just made."""
DONE_WORDS = _set_of(_TABLE["words"]["done"])
"""Fields of tools that act: `{"booked": false}` says that they did not."""
NO_ERROR = _set_of("0 false no none null nil n/a na ok success - [] {}") | {"", "no error", "no errors"}
"""What `error` says where there was no error."""
EMPTY_WORDS = _set_of("null none nil undefined nan {} [] \"\" '' n/a")
TRUE, FALSE = _set_of("true yes y 1 ja si sim oui"), _set_of("false no n 0 nein nao non")
ASKS = _set_of("requires require required needs need missing must redirect awaiting")
"""Names that begin so ask for something: `requires_action`, `missing`."""
REASONS = _set_of("reason grund motivo raison razon")
"""An act gives reasons for what it did not do."""
WAITS = _set_of(_TABLE["words"]["waits"])
"""Words in names of what an act returns that was not done yet, or not at all."""
NO_ACCESS = _set_of("authenticated authorized authorised permitted connected logged_in")
"""Flags that, where they are false, say that nothing could be read."""
CHANGED = _set_of("affected modified updated deleted inserted created removed upserted")
"""Words in names of numbers that say how much an act changed."""
COUNTING = CHANGED | _set_of("count counts total num number hits results rows matched returned size")
"""Words in names of numbers: a zero there says that there was nothing, and not what it was."""
FAILED_PARTS = _set_of("fail fails failed failure failures error errors errored rejected unsuccessful bounced")
DONE_PARTS = _set_of("success successes succeeded successful ok passed imported inserted") | DONE_WORDS
_OF_PARTS = _set_of("count counts total num number entry entries items records rows of requests messages")


def part_of(words: tuple[str, ...], names: frozenset[str]) -> bool:
    """Whether a name is that of the parts of a batch: `failed`, `success_count`."""
    return not names.isdisjoint(words) and all(word in names or word in _OF_PARTS for word in words)


def status_word(value: str) -> str:
    """A status as it is compared: lower case without accents."""
    return snake_case(without_accents(value[:60]))


# Tools


class ToolKind(NamedTuple):
    """What the name of a tool says about its answers."""

    reads: bool
    """It looks something up."""
    acts: bool
    """It changes something."""
    counts: bool
    """Its answer is a number."""
    runs: bool
    """Its answer is what a program prints."""
    status: bool
    """Its answer is the status of something."""
    errors: bool
    """It looks up errors, or codes of them."""
    availability: bool
    """It says whether something can be had."""
    checks: bool
    """It checks something: its answer may be no."""
    pages: bool
    """It returns pages of the web."""
    verb: str
    """What it does."""
    stems: frozenset[str]
    """The beginnings of the words of its name."""

    @property
    def unknown(self) -> bool:
        """Whether its name says neither that it reads nor that it acts."""
        return not (self.reads or self.acts or self.counts or self.runs or self.status or self.errors)

    def did(self, word: str) -> bool:
        """Whether a word says that the tool did what its name says: `cancelled` of `cancel_order`."""
        return not self.reads and word.endswith("ed") and word[:4] in self.stems

    @property
    def creates(self) -> bool:
        return self.verb in _CREATES


_READS = _set_of(_TABLE["words"]["reads"])
_ACTS = _set_of(_TABLE["words"]["acts"])
_COUNTS = _set_of(_TABLE["words"]["counts"])
_CREATES = _set_of("create add open register place make submit schedule")
_CHECKS = _set_of("validate verify check lint test audit is has can")
_PAGES = _set_of("web page pages url html browse browser fetch crawl scrape http site website visit navigate")
_RUNS = _set_of("bash shell terminal python cmd console powershell ipython notebook interpreter")
_LONGEST_NAME = 200


@lru_cache(maxsize=1024)
def tool_kind(tool: str) -> ToolKind:
    """What the name of a tool says; its first verb decides what it does."""
    words = name_words(without_accents(tool[:_LONGEST_NAME]))
    verb = next((word for word in words if word in _READS or word in _ACTS), "")
    known, acts = frozenset(words), verb in _ACTS
    return ToolKind(
        reads=verb in _READS,
        acts=acts,
        counts=not known.isdisjoint(_COUNTS),
        runs=not known.isdisjoint(_RUNS),
        status=not acts and not known.isdisjoint(("status", "state")),
        errors=not acts and not known.isdisjoint(("error", "errors", "fault", "faults", "log", "logs")),
        availability=not known.isdisjoint(("check", "availability", "available", "stock", "inventory", "slots")),
        checks=not acts and not _CHECKS.isdisjoint((verb, *words[:1])),
        pages=not known.isdisjoint(_PAGES),
        verb=verb,
        stems=frozenset(word[:4] for word in words if len(word) > 2),
    )


_STATUS_LINE = lazy_pattern(r"\s{0,3}(?:HTTP(?:/\d(?:\.\d)?)?\s{1,3})?(\d{3})(?:\s.{0,60}|)", re.IGNORECASE | re.DOTALL)


def truth(value: Json) -> bool | None:
    if isinstance(value, bool):
        return value
    word = without_accents(str(value).strip().lower()) if isinstance(value, str | int) else ""
    return True if word in TRUE else False if word in FALSE else None


def http_code(value: Json) -> int | None:
    """A number of three digits, alone or at the head of a status line."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if 100 <= value < 600 else None
    if isinstance(value, str) and (match := _STATUS_LINE.fullmatch(value[:80])):
        return int(match[1])
    return None


def error_words(value: Json) -> str:
    """What the value of `error` says; empty where it says that there was no error."""
    if isinstance(value, str):
        return "" if value.strip().lower() in NO_ERROR else value.strip()
    if isinstance(value, int):
        return str(value) if value else ""
    if isinstance(value, dict):
        code = value.get("code", value.get("status"))
        # `{"code": 0, "message": "OK"}` is the shape of an error that there was not.
        if not is_filled(value) or (code in (0, "0", 200, "200", "OK", "ok") and not isinstance(code, bool)):
            return ""
        return error_message(value) or msgspec.json.encode(value).decode()[:LONGEST_ERROR]
    if isinstance(value, list | tuple):
        return next((words for words in map(error_words, islice(value, 20)) if words), "")
    return ""


_MESSAGES = ("message", "error", "error_message", "errorMessage", "detail", "details", "msg", "reason", "description")


def error_message(value: Json) -> str:
    """The words of an error, for people."""
    if isinstance(value, str):
        return value.strip().split("\n", 1)[0][:LONGEST_ERROR]
    if isinstance(value, list | tuple):
        return next((words for words in map(error_message, islice(value, 5)) if words), "")
    if not isinstance(value, dict):
        return ""
    for key in (*_MESSAGES, "text", "code", "type", "content", "data"):
        inner = value.get(key)
        if isinstance(inner, str) and inner.strip():
            return inner.strip()[:LONGEST_ERROR]
        if isinstance(inner, dict | list) and (words := error_message(inner[:1] if isinstance(inner, list) else inner)):
            return words
    return ""
