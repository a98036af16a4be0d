"""The structure that a tool's text is: JSON, a literal of Python, XML, a stream of events; and texts that were cut."""

from __future__ import annotations

import re
from ast import literal_eval
from itertools import islice
from typing import NamedTuple

import msgspec

from convoscope.conversation import Json

_LONGEST_JSON = 50_000
_LONGEST_LITERAL = 4_000
_LONGEST_MARKUP = 20_000
_LONGEST_LABEL = 100
_FENCE = re.compile(r"```\w{0,10}\s*\n?(.*?)\n?```\s*", re.DOTALL)
_LABEL = re.compile(
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


def embedded(content: str) -> Json | None:
    """The object at the end of a text that introduces it: `Order found: {…}`."""
    start = content.find("{", 1, _LONGEST_LABEL)
    if start < 0 or content[-1] != "}":
        return None
    value = _json(content[start:])
    return value if isinstance(value, dict) else None


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

_PAGE = re.compile(r"<(?:!doctype html|html\b|head\b|body\b)", re.IGNORECASE)
_LEAF = re.compile(r"<([A-Za-z_][\w.:-]{0,60})(?:\s[^<>]{0,200})?>([^<>]{0,500})</")
_ATTRIBUTE = re.compile(r"\s([A-Za-z_]\w{0,40})=[\"']([^\"'<>]{0,200})[\"']")
_FAULT = re.compile(
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

_BEGINS_AS_JSON = re.compile(
    r"[{\[]\s{0,20}(?:\{\s{0,20})?(?:\[\s{0,20})?[\"'][^\"'\n]{0,100}[\"']\s{0,5}[:,]|[{\[]\s{0,20}[{\[]\s{0,20}[\"']"
)
_FAILED_FLAG = re.compile(
    r"""["'](?:is_?error|has_?error|failed)["']\s{0,5}:\s{0,5}["']?true"""
    r"""|["'](?:success|ok|succeeded|successful|erfolg|exito|éxito|sucesso)["']\s{0,5}:\s{0,5}["']?(?:false|no?["'])"""
    r"""|["'](?:error|fehler|erreur|erro)["']\s{0,5}:\s{0,5}(?:["'{](?!["'}])|[1-9])|["']errors["']\s{0,5}:\s{0,5}\[(?!\s{0,5}\])"""
    r"""|["'](?:status_?code|http_?status)["']\s{0,5}:\s{0,5}["']?[45]\d\d\b""",
    re.IGNORECASE,
)
_DOUBTFUL_FLAG = re.compile(
    r"""["'](?:status|state|result|outcome)["']\s{0,5}:\s{0,5}["'](?:error|fail)""", re.IGNORECASE
)


class Cut(NamedTuple):
    """What the beginning of a structure says that cannot be decoded."""

    failure: str = ""
    doubt: str = ""


def cut_structure(content: str, longest: int) -> Cut | None:
    """The flags at the beginning of JSON that was cut; None of a text that is none."""
    if not _BEGINS_AS_JSON.match(content):
        return None
    failure, doubt = (pattern.search(content, 0, longest) for pattern in (_FAILED_FLAG, _DOUBTFUL_FLAG))
    return Cut(failure[0] if failure else "", doubt[0] if doubt else "")


__all__ = ["Cut", "cut_structure", "decoded", "embedded", "is_page"]
