"""YAML as plain values, read without trust: no objects, no bombs, no depths, and each mistake with its line."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from convoscope.errors import InputError

MAX_VALUES = 100_000
MAX_DEPTH = 50
_LONG_NUMBER = 40

_CORE = "tag:yaml.org,2002:"
_NUMBERS = tuple(_CORE + name for name in ("int", "float", "bool", "null"))
_TAGS = frozenset((None, "!", *_NUMBERS, *(_CORE + name for name in ("str", "seq", "map", "binary"))))
_POWER = "[eE][-+]?[0-9]{1,3}"
_SURROGATE = re.compile("[\ud800-\udfff]")


def yaml_documents(text: str) -> Sequence[Any]:
    """The documents of a YAML text as JSON values; empty ones are left out.

    By the core schema of YAML 1.2: `yes`, `no`, `on`, `off`, dates and `007` are texts. Raises `InputError`.
    """
    import yaml

    loader = _loader()
    try:
        _check(yaml.parse(text, Loader=loader))
        documents = list(yaml.load_all(text, Loader=loader))
    except yaml.YAMLError as error:
        raise _explained(error, text) from None
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise InputError(f"cannot be read as YAML: {error}", hint=_WRITE) from None
    except RecursionError:
        raise InputError("is nested too deeply", hint=f"{MAX_DEPTH} levels are read") from None
    return [plain(document) for document in documents if document is not None]


_WRITE = "write it as plain YAML: texts, numbers, lists and mappings"


@cache
def _loader() -> Any:
    """PyYAML's safe loader, in C where it can be had, with fewer guesses about what a plain word means."""
    import yaml

    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader: Any = type("_Loader", (base,), {"yaml_implicit_resolvers": {}})
    for tag, pattern, first in (
        ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
        ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
        ("int", r"[-+]?(?:0|[1-9][0-9]{0,17})", "-+0123456789"),
        (
            "float",
            rf"[-+]?(?:[0-9]{{1,18}}\.[0-9]{{0,18}}|\.[0-9]{{1,18}})(?:{_POWER})?|[-+]?[0-9]{{1,18}}{_POWER}",
            "-+.0123456789",
        ),
        ("merge", r"<<", "<"),
    ):
        loader.add_implicit_resolver(_CORE + tag, re.compile(f"(?:{pattern})\\Z"), list(first))
    return loader


class _Open:
    """A list or mapping that has begun."""

    def __init__(self, anchor: str | None, is_mapping: bool) -> None:
        self.anchor = anchor
        self.keys: set[str] | None = set() if is_mapping else None
        self.children = 0
        self.values = 1


def _check(events: Any) -> None:
    """Refuse what would take too long or too much, before anything is made of it."""
    import yaml

    sizes = dict[str, int]()
    """How many values there are behind each name that YAML gives to a value."""
    stack, total = list[_Open](), 0
    for event in events:
        kind = type(event)
        if kind is yaml.DocumentStartEvent:
            sizes.clear()
        size = 0
        if kind is yaml.AliasEvent:
            if event.anchor not in sizes:
                raise _at(event, f"*{event.anchor} names nothing, or a value that holds itself", "write it out")
            size = sizes[event.anchor]
        elif kind is yaml.ScalarEvent:
            size = 1
            _check_tag(event)
            if event.anchor:
                sizes[event.anchor] = 1
            _check_key(stack, event)
        elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            _check_tag(event)
            sizes.pop(event.anchor, None)
            stack.append(_Open(event.anchor, kind is yaml.MappingStartEvent))
            if len(stack) > MAX_DEPTH:
                raise _at(event, "is nested too deeply", f"{MAX_DEPTH} levels are read")
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            ended = stack.pop()
            size = ended.values
            if ended.anchor:
                sizes[ended.anchor] = size
        if size:
            if stack:
                stack[-1].values += size
                stack[-1].children += 1
            total += size if kind is yaml.AliasEvent else 1
            if total > MAX_VALUES or (stack and stack[-1].values > MAX_VALUES):
                hint = "write fewer, or use fewer aliases"
                raise _at(event, f"holds more than {MAX_VALUES:,} values, counting what aliases repeat", hint)


def _check_key(stack: Sequence[_Open], event: Any) -> None:
    """PyYAML keeps the last of two values with one key and says nothing."""
    if not stack or stack[-1].keys is None or stack[-1].children % 2:
        return
    if event.value in stack[-1].keys and event.value != "<<":
        raise _at(event, f"{event.value!r} occurs twice", "give each its own name, or remove one")
    stack[-1].keys.add(event.value)


def _check_tag(event: Any) -> None:
    if event.tag not in _TAGS:
        name = str(event.tag).replace(_CORE, "!!")
        raise _at(event, f"the tag {name} is not read here", _WRITE)
    if event.tag in _NUMBERS and len(getattr(event, "value", "")) > _LONG_NUMBER:
        raise _at(event, "a number is too long", "put it in quotes to make it a text")


def _at(event: Any, message: str, hint: str) -> InputError:
    return InputError(message, line=event.start_mark.line + 1, hint=hint)


def _explained(error: Any, text: str) -> InputError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = " ".join(filter(None, (getattr(error, "context", None), getattr(error, "problem", None))))
    line = mark.line + 1 if mark is not None else None
    if line is None and isinstance(position := getattr(error, "position", None), int):
        line = text.count("\n", 0, position) + 1
        problem = "holds a character that YAML does not allow"
    return InputError(f"is not YAML: {problem or error}", line=line, hint="fix it there, or just before")


def plain(value: Any, depth: int = 0) -> Any:
    """A value as JSON can say it: keys are texts, numbers are finite, and it is not too deep."""
    if depth > MAX_DEPTH:
        raise InputError("is nested too deeply", hint=f"{MAX_DEPTH} levels are read")
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, bytes):  # recordings of HTTP: a text, or something packed
        try:
            return value.decode()
        except UnicodeDecodeError:
            return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {_key(key): plain(one, depth + 1) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one, depth + 1) for one in value]
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if isinstance(value, int) and abs(value) >= 2**63:
        return str(value)
    if value is None or isinstance(value, int):
        return value
    raise InputError(f"holds a {type(value).__name__}, which is no plain value", hint=_WRITE)


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return "null" if key is None else str(plain(key) if isinstance(key, str) else key)
