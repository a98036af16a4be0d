"""The form of an answer: JSON, schemas, tables, patterns and others, each with a check that names the first fault."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from convoscope.conversation import Conversation
from convoscope.conversation.events import Json
from convoscope.metrics.declaration import SHARE, item_metric
from convoscope.metrics.item_fields import each_case, needs_of
from convoscope.metrics.perturbations import EMPTY_AGENT, PARROT, SAYS_EVERYTHING
from convoscope.scores.observation import Observation, measured, not_applicable, unmeasured
from convoscope.text.json_schema import BadSchema, is_schema, schema_faults
from convoscope.text.patterns import BadPattern, Untried, checked, lazy_pattern
from convoscope.views.items import Case


class Unchecked(ValueError):
    """The form cannot be checked; the reason is a code, with a detail for a person."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class Fit(NamedTuple):
    """The form that was checked, and the first thing that is wrong; "" where nothing is."""

    format: str
    fault: str


def fit_of(content: str, expected_format: str) -> Fit:
    """Whether a text has the form that another text names. Raises `Unchecked` for one that cannot be checked.

    >>> fit_of('{"price": 4}', "a JSON object")
    Fit(format='JSON object', fault='')
    >>> fit_of("4 crowns", "integer")
    Fit(format='integer', fault='"4 crowns" is no integer')
    """
    form = form_of(expected_format)
    if form is None:
        raise Unchecked("unknown_format", expected_format.strip())
    content = content.strip()
    if form.fenced:
        content = _unfenced(content)
    if not content:
        return Fit(form.name, "there is nothing")
    try:
        return Fit(form.name, form.fault(content))
    except BadSchema as error:
        raise Unchecked("bad_schema", str(error)) from None
    except RecursionError:
        raise Unchecked("content_too_deep", "nested too deeply to be checked") from None


class Form(NamedTuple):
    """A form that can be checked: a function from a text to what is wrong with it."""

    name: str
    fault: Callable[[str], str]
    fenced: bool = False
    """A code fence around it is left out of account."""


def form_of(expected_format: str) -> Form | None:
    """The form that a text names: a pattern, a schema, or one of the names known; None for anything else."""
    text = expected_format.strip()
    if (pattern := _PATTERN.fullmatch(text)) is not None:
        quoted = _QUOTED.fullmatch(text := pattern[1].strip())
        return _regex(quoted[1] if quoted else text)
    if _SLASHED.fullmatch(text):
        return _regex(text)
    if (schema := _SCHEMA.fullmatch(_unfenced(text))) is not None:
        try:
            schema_value = _read(_unfenced(schema[1]))
        except (ValueError, RecursionError):
            return None
        if not is_schema(schema_value):
            return None
        return Form(
            "JSON Schema",
            lambda content: _json_fault(content) or str(next(schema_faults(_read(content), schema_value), "")),
            fenced=True,
        )
    return FORMS.get(" ".join(word for word in _FORM_WORD.findall(text.casefold()) if word not in _FILLERS))


# Patterns


def _regex(text: str) -> Form:
    slashed = _SLASHED.fullmatch(text)
    flags = 0
    if slashed is not None:
        text = slashed[1]
        for flag in slashed[2]:
            flags |= _REGEX_FLAGS.get(flag, 0)
    try:
        pattern = checked(text, flags)
    except BadPattern as error:
        raise Unchecked(error.reason, f"{text}: {error}") from None

    def fault(content: str) -> str:
        try:
            match = pattern.fullmatch(content)
        except Untried as error:
            raise Unchecked(f"content_{error.code}", str(error)) from None
        return f"{_shown(content)} does not match {pattern.text}" if match is None else ""

    return Form("regular expression", fault)


# JSON and its kin


def _read(content: str) -> Json:
    """JSON as its standard has it: no NaN, no Infinity."""
    return json.loads(content, parse_constant=_refuse, parse_int=_whole)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _whole(digits: str) -> float:
    # Python reads no whole number of more digits than these.
    return int(digits) if len(digits) < 4000 else float(digits)


def _json_fault(content: str) -> str:
    try:
        _read(content)
    except json.JSONDecodeError as error:
        return f"not JSON at line {error.lineno}, column {error.colno}: {error.msg}"
    except ValueError as error:
        return f"not JSON: {error}"
    return ""


def _json_of(kind: type, name: str) -> Callable[[str], str]:
    def fault(content: str) -> str:
        return _json_fault(content) or ("" if isinstance(_read(content), kind) else f"{_shown(content)} is no {name}")

    return fault


def _objects_fault(content: str) -> str:
    fault = _json_of(list, "JSON array")(content)
    if fault:
        return fault
    wrong = next((index for index, one in enumerate(_read(content)) if not isinstance(one, dict)), None)
    return "" if wrong is None else f"[{wrong}] is no object"


def _json_lines_fault(content: str) -> str:
    for number, line in enumerate(content.splitlines(), 1):
        if line.strip() and (fault := _json_fault(line)):
            return f"line {number}: {fault}"
    return ""


def _xml_fault(content: str) -> str:
    from xml.parsers import expat

    def refuse_entities(name: str, *_: object) -> None:
        # Entities of entities grow without end.
        raise Unchecked("content_not_checked", f"XML that declares entities: {name}")

    parser = expat.ParserCreate("utf-8")
    parser.EntityDeclHandler = refuse_entities
    try:
        parser.Parse(content.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        return f"not XML at line {error.lineno}, column {error.offset + 1}: {expat.ErrorString(error.code)}"
    return ""


# Tables and lists


def _table_fault(content: str) -> str:
    """A header, a row of dashes, and rows, all of as many cells."""
    lines = content.splitlines()
    if len(lines) < 2:
        return "a table has a header and a row of dashes"
    for number, line in enumerate(lines, 1):
        if "|" not in line:
            return f"line {number} is no row: {_shown(line)}"
    columns = len(_cells(lines[0]))
    if not all(_DASHES.fullmatch(cell) for cell in _cells(lines[1])):
        return f"line 2 is no row of dashes: {_shown(lines[1])}"
    for number, line in enumerate(lines, 1):
        if len(_cells(line)) != columns:
            return f"line {number} has {len(_cells(line))} cells, the header {columns}"
    return ""


def _cells(line: str) -> list[str]:
    line = line.strip()
    line = line[1:] if line.startswith("|") else line
    line = line[:-1] if line.endswith("|") and not line.endswith("\\|") else line
    return [cell.strip() for cell in _PIPE.split(line)]


_LONGEST_CSV = 100_000
"""Characters; the reader takes fields of up to 131,072."""


def _csv_fault(content: str) -> str:
    # The reader has a bound too, but other code in this process may have moved it.
    if len(content) > _LONGEST_CSV:
        raise Unchecked("content_too_long", f"{len(content)} characters; CSV is read up to {_LONGEST_CSV}")
    try:
        rows = list(csv.reader(io.StringIO(content, newline=""), strict=True))
    except csv.Error as error:
        return f"not CSV: {error}"
    columns = len(rows[0])
    if columns < 2:
        return "CSV needs two columns or more: with one, any text would be CSV"
    for number, row in enumerate(rows, 1):
        if len(row) != columns:
            return f"row {number} has {len(row)} fields, the first {columns}"
    return ""


def _list_fault(point: re.Pattern[str], name: str) -> Callable[[str], str]:
    def fault(content: str) -> str:
        lines = content.splitlines()
        for number, line in enumerate(lines, 1):
            # What is indented below a point goes on with it.
            inside = number > 1 and (not line.strip() or line[0].isspace())
            if not inside and not point.match(line):
                return f"line {number} begins no point of a {name}: {_shown(line)}"
        return ""

    return fault


# Single values


def _matching(pattern: str, name: str) -> Callable[[str], str]:
    compiled = lazy_pattern(pattern, re.ASCII | re.IGNORECASE)
    return lambda content: "" if compiled.fullmatch(content) else f"{_shown(content)} is no {name}"


def _readable(read: Callable[[str], object], pattern: str, name: str) -> Callable[[str], str]:
    """Written as the pattern says, and a thing that there is: 2024-02-30 is no date."""
    matching = _matching(pattern, name)

    def fault(content: str) -> str:
        if mismatch := matching(content):
            return mismatch
        try:
            read(content)
        except ValueError as error:
            return f"{_shown(content)} is no {name}: {error}"
        return ""

    return fault


def _url_fault(content: str) -> str:
    try:
        parts = urlsplit(content)
        good = parts.scheme in ("http", "https", "ftp") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    return "" if good and not re.search(r"[\s<>\"]", content) else f"{_shown(content)} is no URL"


def _shown(content: str) -> str:
    return json.dumps(content if len(content) <= 80 else f"{content[:79]}…", ensure_ascii=False)


def _unfenced(content: str) -> str:
    """What is inside of a code fence, where that is all there is."""
    text = content.strip()
    opening = _FENCE.match(text)
    inside = text.rstrip("`")
    if opening is None or len(text) - max(len(inside), opening.end()) < 3:
        return content
    return inside[opening.end() :].strip()


_PATTERN = re.compile(
    r"(?:(?:must |should )?match(?:es|ing)?\s+)?(?:the\s+)?(?:regex|regexp|regular expression|pattern)\s*[:=]\s*(\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_QUOTED = re.compile("`(.*)`", re.DOTALL)
_SLASHED = re.compile(r"/((?:\\.|[^/\\\n])+)/([gimsuy]*)")
_REGEX_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}
_SCHEMA = re.compile(
    r"(?:(?:(?:valid\s+)?json\s+)?(?:that\s+)?(?:(?:match(?:es|ing)?|follow(?:s|ing)?|with|fitting)\s+)?"
    r"(?:this\s+|the\s+)?(?:json[\s-]*)?schema\s*+:?\s*+|json\s*:\s*)?(\{.*\}|`{3}.*)",
    re.IGNORECASE | re.DOTALL,
)
_FENCE = re.compile(r"`{3,}[^\n`]*\n")
_FORM_WORD = re.compile(r"[^\W_]+")
_FILLERS = frozenset(
    (
        *("a", "an", "the", "valid", "formatted", "format", "output", "response", "answer", "return", "respond"),
        *("reply", "as", "in", "with", "of", "only", "just", "please", "is", "be", "must", "should", "or", "and"),
        *("well", "formed"),
    )
)
_DASHES = re.compile(r":?-+:?")
_PIPE = re.compile(r"(?<!\\)\|")
_DAY = r"\d{4}-\d\d-\d\d"
_CLOCK = r"\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?"
_date_fault = _readable(date.fromisoformat, _DAY, "date YYYY-MM-DD")
_datetime_fault = _readable(
    lambda content: datetime.fromisoformat(content.upper()),
    rf"{_DAY}[T ]{_CLOCK}(?:Z|[+-]\d\d:?\d\d)?",
    "ISO date and time",
)

_JSON = Form("JSON", _json_fault, fenced=True)
_OBJECT = Form("JSON object", _json_of(dict, "JSON object"), fenced=True)
_ARRAY = Form("JSON array", _json_of(list, "JSON array"), fenced=True)
_OBJECTS = Form("JSON array of objects", _objects_fault, fenced=True)
_JSON_LINES = Form("JSON Lines", _json_lines_fault, fenced=True)
_TABLE = Form("markdown table", _table_fault, fenced=True)
_CSV = Form("CSV", _csv_fault, fenced=True)
_XML = Form("XML", _xml_fault, fenced=True)
_BULLETS = Form("bullet list", _list_fault(re.compile(r"\s*[-*+•]\s+\S"), "bullet list"))
_NUMBERED = Form("numbered list", _list_fault(re.compile(r"\s*\d+[.)]\s+\S"), "numbered list"))
_INTEGER = Form("integer", _matching(r"[-+]?\d+", "integer"))
_NUMBER = Form("number", _matching(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?", "number"))
_BOOLEAN = Form("true or false", _matching("true|false", "truth value: true or false"))
_YES_NO = Form("yes or no", _matching("yes|no", "yes and no no"))
_DATE = Form("date YYYY-MM-DD", _date_fault)
_DATETIME = Form("ISO 8601 date and time", _datetime_fault)
_MOMENT = Form("ISO 8601", lambda content: _date_fault(content) and _datetime_fault(content))
_TIME = Form("time HH:MM", _matching(r"(?:[01]\d|2[0-3]):[0-5]\d", "time HH:MM"))
_EMAIL = Form("email address", _matching(r"[^@\s<>,;]+@[a-z0-9-]+(?:\.[a-z0-9-]+)+", "email address"))
_URL = Form("URL", _url_fault)
_UUID = Form("UUID", _matching(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID"))
_WORD = Form("one word", lambda content: "" if len(content.split()) == 1 else f"{_shown(content)} is not one word")
_LETTER = Form(
    "one letter", lambda content: "" if len(content) == 1 and content.isalpha() else f"{_shown(content)} is no letter"
)

_NAMES: Mapping[Form, tuple[str, ...]] = {
    _JSON: ("json", "json string", "json value", "json document", "json text", "application json"),
    _OBJECT: ("json object", "single json object", "one json object", "json dict", "json dictionary"),
    _ARRAY: ("json array", "json list", "array json", "list json"),
    _OBJECTS: ("json array objects", "json list objects", "array json objects", "list json objects"),
    _JSON_LINES: ("jsonl", "json lines", "jsonlines", "ndjson", "newline delimited json"),
    _TABLE: ("markdown table", "table", "md table", "gfm table", "table markdown", "github markdown table"),
    _CSV: ("csv", "comma separated values", "text csv"),
    _XML: ("xml", "xml document", "application xml"),
    _BULLETS: ("bullet list", "bulleted list", "bullet points", "bullet point list", "unordered list", "bulletpoints"),
    _NUMBERED: ("numbered list", "ordered list", "markdown numbered list", "markdown ordered list"),
    _INTEGER: ("integer", "int", "whole number", "integer number", "single integer", "one integer"),
    _NUMBER: (
        *("number", "float", "decimal", "decimal number", "numeric", "numeric value"),
        "single number",
        "one number",
    ),
    _BOOLEAN: ("boolean", "bool", "true false"),
    _YES_NO: ("yes no", "yes no question"),
    _DATE: ("iso date", "iso 8601 date", "yyyy mm dd", "date yyyy mm dd", "iso8601 date", "date iso 8601"),
    _DATETIME: ("iso datetime", "iso 8601 datetime", "iso 8601 date time", "iso 8601 timestamp", "rfc 3339"),
    _MOMENT: ("iso 8601", "iso8601"),
    _TIME: ("hh mm", "time hh mm"),
    _EMAIL: ("email", "email address", "e mail", "e mail address"),
    _URL: ("url", "http url", "https url", "web address", "single url", "one url"),
    _UUID: ("uuid", "guid"),
    _WORD: ("one word", "single word"),
    _LETTER: ("one letter", "single letter"),
}
FORMS: Mapping[str, Form] = {name: form for form, names in _NAMES.items() for name in names}
"""The forms by what they are called, without words such as "valid", "only" or "format"."""


@item_metric(
    "answer.format_validity",
    version=2,
    label="answers in the right form",
    importance=5,
    unit=SHARE,
    needs=needs_of("format_validity"),
    sensitive_to=(EMPTY_AGENT, PARROT, SAYS_EVERYTHING),
)
def format_validity(conversation: Conversation) -> Iterator[Observation]:
    """Does the answer have the form that was asked for?

    1 if the whole of it has the form that `expected_format` names, else 0. What is checked is
    `extracted_content` where the item has it, else the answer; blanks around it do not count, nor does
    a code fence around JSON, XML, CSV or a table. Forms: JSON, a JSON Schema, a markdown table, a
    regular expression, and others that can be decided for certain. A form that cannot be checked is
    unmeasured, `unknown_format`; so is one whose schema or pattern cannot be used.

    >>> value(format_validity, example("user: Which?", 'assistant: {"id": 1}', expected={"format": "a JSON object"}))
    1.0
    """
    return each_case(conversation, "format_validity", _fit_of_case)


def _fit_of_case(case: Case) -> Observation:
    expected, extracted = case.expected.format or "", case.extras.get("extracted_content")
    if not expected.strip():
        return not_applicable(case.subject, "empty_expected_format")
    content = (case.answer or "") if extracted is None else extracted
    try:
        fit = fit_of(content if isinstance(content, str) else json.dumps(content, ensure_ascii=False), expected)
    except Unchecked as error:
        return unmeasured(case.subject, error.reason, error.detail[:200])
    details = {"format": fit.format, "checked": "agent_response" if extracted is None else "extracted_content"}
    if fit.fault:
        details["fault"] = fit.fault
    return measured(case.subject, 0.0 if fit.fault else 1.0, details=details)
