"""Templates with `{field.path}` placeholders: what a judge is shown of an item."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from convoscope.errors import DeclarationError, UsageError
from convoscope.metrics.item_fields import PRESENT

_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[\w-]+|\[[0-9]{1,9}\])*")
_PLACE = re.compile(r"\[([0-9]+)\]")
_INDEX = re.compile(r"[0-9]{1,9}")
_BRACES = "write {{ and }} for braces that are meant as such"


class Placeholder(NamedTuple):
    """A place for a value: `metadata.locale`, `tool_calls.0.tool_name`; templates may say `tool_calls[0].tool_name`."""

    path: str

    @property
    def field(self) -> str:
        return self.path.partition(".")[0]


class Template(NamedTuple):
    """A text with places for values, in order."""

    pieces: tuple[str | Placeholder, ...]

    @property
    def placeholders(self) -> tuple[Placeholder, ...]:
        """Each placeholder once, in the order of their first appearance."""
        return tuple(dict.fromkeys(one for one in self.pieces if isinstance(one, Placeholder)))

    def unresolved(self, item: object) -> Placeholder | None:
        """The first placeholder that the item has no value for."""
        plain = _plain(item)
        return next((one for one in self.placeholders if _resolve(plain, one.path) is None), None)


def parse(text: str) -> Template:
    """A template as it was written; refuses what cannot be filled in whatever the item."""
    pieces: list[str | Placeholder] = []
    end = 0
    for match in _PIECE.finditer(text):
        pieces.append(text[end : match.start()])
        pieces.append(_piece(text, match))
        end = match.end()
    pieces.append(text[end:])
    return Template(tuple(one for one in pieces if one))


def render(template: str | Template, item: object) -> str:
    """The template with the values of an item, a `StandardData` or a dictionary, in its places.

    Text stands as it is, anything else as JSON. What a value holds is never looked at for
    placeholders. Refuses an item that has no value for one of them.
    """
    template = parse(template) if isinstance(template, str) else template
    absent = template.unresolved(item)
    if absent is not None:
        raise UsageError(f"the item has no {absent.path}", hint="a template is filled in where all its fields are")
    plain = _plain(item)
    return "".join(
        _shown(_resolve(plain, one.path)) if isinstance(one, Placeholder) else one for one in template.pieces
    )


def _piece(text: str, match: re.Match[str]) -> str | Placeholder:
    if match[0] in ("{{", "}}"):
        return match[0][0]
    line = text.count("\n", 0, match.start()) + 1
    if match[1] is None:
        raise DeclarationError(f"the template has a lone {match[0]} in line {line}", hint=_BRACES)
    path = match[1].strip()
    if not _PATH.fullmatch(path):
        raise DeclarationError(f"the template has {match[0]} in line {line}, which names no field", hint=_BRACES)
    placeholder = Placeholder(_PLACE.sub(r".\1", path))
    if placeholder.field not in PRESENT:
        raise DeclarationError(
            f"the template asks for {{{path}}} in line {line}, but items have no field {placeholder.field!r}",
            hint=_nearest(placeholder.field),
        )
    return placeholder


def _nearest(field: str) -> str:
    from convoscope.views.standard_data.schema import ALIASES

    if field in ALIASES:
        return f"an item's {field} is kept as {ALIASES[field][0]}: write that"
    near = difflib.get_close_matches(field, sorted(PRESENT), n=3, cutoff=0.5)
    return f"did you mean {' or '.join(near)}?" if near else f"there is {', '.join(sorted(PRESENT))}"


def _plain(item: object) -> Mapping[str, Any]:
    """An item as dictionaries and lists."""
    if isinstance(item, Mapping):
        return item
    plain: Mapping[str, Any] = item.model_dump()  # type: ignore[attr-defined]
    return plain


def _resolve(value: Any, path: str) -> Any:
    """What lies at the end of a path; None where it leads nowhere, or to nothing."""
    for step in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list | tuple) and _INDEX.fullmatch(step) and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


__all__ = ["Placeholder", "Template", "parse", "render"]
