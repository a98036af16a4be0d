"""Tables that a family keeps beside the scores: what a row is, how rows are made, how they are combined and checked.

A family declares its table; writing it, reading it, its views in SQL and its audit follow from the declaration.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from convoscope.conversation import Conversation
from convoscope.conversation.lazy import remembered
from convoscope.errors import DeclarationError

TAKEN = frozenset(
    (
        *("conversations", "scores", "conversation_scores", "all_scores", "all_conversation_scores"),
        *("aspect_scores", "profiles", "metrics", "runs", "renamed", "known"),
    )
)
"""Names that a run uses itself."""
OWN_COLUMNS = ("run", "conversation", "number", "part", "row", "flow", "agent")
"""Columns that every side table has."""

COMBINED = "_combined"
"""The end of the name of what the rows of subjects come to."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_KINDS = {int: "INTEGER", float: "DOUBLE", str: "VARCHAR", bool: "BOOLEAN"}


def is_side_table_name(name: str) -> bool:
    """Whether a side table, or a view of one, can have this name."""
    return bool(_NAME.fullmatch(name)) and name not in TAKEN and not name.endswith(COMBINED)


class SideColumn(msgspec.Struct, frozen=True):
    """A column of a side table."""

    name: str
    sql: str
    """Its type; of a list, that of its entries."""
    is_list: bool = False
    is_json: bool = False
    is_optional: bool = False

    def holds(self, value: Any) -> bool:
        """Whether a value can be kept in it."""
        if value is None:
            return self.is_optional
        if self.is_json:
            return isinstance(value, dict)
        if self.is_list:
            return isinstance(value, tuple | list) and all(_fits(one, self.sql) for one in value)
        return _fits(value, self.sql)


def _fits(value: Any, sql: str) -> bool:
    if sql == "VARCHAR":
        return isinstance(value, str)
    if sql == "BOOLEAN":
        return isinstance(value, bool)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) and abs(value) < _FAR if sql == "INTEGER" else math.isfinite(value)


_FAR = 2**31


class SideTable(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A table of a family. Each row belongs to a conversation, whose flow and agent are in it."""

    name: str
    what: str
    """What a row is, in a few words."""
    row: type[msgspec.Struct]
    """Its columns: the fields of a Struct. Numbers, truth values, texts, tuples of these, and JSON objects."""
    rows: Callable[[Conversation], Sequence[Any]]
    """The rows of a conversation."""
    key: str
    """The field that tells the rows of a conversation apart: the subject that a row is about."""
    combine: Mapping[str, str] = {}
    """What the rows of a group come to: names, and what SQL makes of the columns of all its rows."""
    views: Mapping[str, str] = {}
    """Further views in SQL: names, and the columns of the table that they show."""
    counted: str = ""
    """The field that an audit counts again."""
    recount: Callable[[str], Mapping[str, int]] | None = None
    """Counts by key from the JSON of a conversation, by another way than `rows` goes."""
    mentions: tuple[str, ...] = ()
    """Words, one of which is in the JSON of every conversation that has rows; others are not counted again."""

    def __post_init__(self) -> None:
        for name in (self.name, *self.views):
            if not is_side_table_name(name):
                raise DeclarationError(
                    f"{name!r} cannot be the name of a table",
                    hint=f"small letters, not one of a run's own, and no {COMBINED} at its end",
                )
        fields = self.row.__struct_fields__
        if self.key not in fields or (self.counted and self.counted not in fields):
            raise DeclarationError(f"{self.name}: {self.row.__name__} lacks the key or what is counted")
        if taken := [name for name in fields if name in OWN_COLUMNS]:
            raise DeclarationError(f"{self.name} has the column {taken[0]}, as every table has", hint="rename it")
        if bool(self.counted) != (self.recount is not None):
            raise DeclarationError(f"{self.name}: `counted` and `recount` must be given together")

    @remembered
    def columns(self) -> tuple[SideColumn, ...]:
        """The columns, by the annotations of the row."""
        hints = get_type_hints(self.row)
        return tuple(_column(self.name, name, hints[name]) for name in self.row.__struct_fields__)

    @remembered
    def nothing(self) -> str:
        """The table without a row, for a query."""
        own = "NULL::VARCHAR AS conversation, NULL::INTEGER AS number, NULL::VARCHAR AS flow, NULL::VARCHAR AS agent"
        nulls = (f'NULL::{one.sql}{"[]" * one.is_list} AS "{one.name}"' for one in self.columns)
        return f"SELECT {', '.join([own, *nulls])} WHERE false"


def _column(table: str, name: str, kind: Any) -> SideColumn:
    optional = get_origin(kind) in (Union, UnionType) and type(None) in get_args(kind)
    if optional:
        kinds = [one for one in get_args(kind) if one is not type(None)]
        kind = kinds[0] if len(kinds) == 1 else kind
    origin = get_origin(kind) or kind
    entry = get_args(kind)
    if origin in _KINDS:
        return SideColumn(name, _KINDS[origin], is_optional=optional)
    if origin in (tuple, list) and entry and entry[0] in _KINDS and not optional:
        return SideColumn(name, _KINDS[entry[0]], is_list=True)
    if origin is dict:
        return SideColumn(name, "VARCHAR", is_json=True, is_optional=optional)
    raise DeclarationError(
        f"the column {name} of {table} has a type that cannot be stored: {kind}",
        hint="numbers, truth values, texts, tuples of these (which are empty rather than None), and JSON objects",
    )
