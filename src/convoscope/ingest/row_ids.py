"""Single messages whose ids say less than they seem to: an id in the first row only, an id that others use as well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

from convoscope.ingest.ids import has_time
from convoscope.ingest.reader import Record

_OWNERS = frozenset(
    {"customer_id", "customerId", "tenant", "tenant_id", "tenantId", "account_id", "accountId", "org_id", "orgId"}
    | {"organization_id", "organizationId", "workspace_id", "workspaceId", "company_id", "companyId", "site_id"}
)
"""Whose conversation a message is of; not who wrote it, as `user_id` may be."""
_LONGEST_COUNTER = 3


def is_counter(id: str) -> bool:
    """Whether an id is a small number, which several files may use for several conversations."""
    return len(id) <= _LONGEST_COUNTER and id.isdecimal()


def separated(key: str, records: Sequence[Record]) -> list[list[Record]]:
    """The messages of one id, apart where they are of different customers; and of files that count by themselves.

    Messages with times are left together: sessions are split by silence.
    """
    first = records[0].value if records else None
    for name in sorted(_OWNERS.intersection(first)) if isinstance(first, dict) else ():
        if parts := _parted([_value(record, name) for record in records], records):
            return parts
    if is_counter(key) and not any(has_time(record.value) for record in records):
        parts = _parted([record.file for record in records], records)
        if len({_text_of(part[0]) for part in parts}) == len(parts) and all(_is_dialogue(part) for part in parts):
            return parts or [list(records)]
    return [list(records)]


def _parted(values: Sequence[Hashable], records: Sequence[Record]) -> list[list[Record]]:
    """Records by a value that all have and that differs; nothing where it does not."""
    if None in values or len(set(values)) < 2:
        return []
    parts: dict[Hashable, list[Record]] = {}
    for value, record in zip(values, records, strict=True):
        parts.setdefault(value, []).append(record)
    return list(parts.values())


def _value(record: Record, name: str) -> Hashable:
    value = record.value.get(name) if isinstance(record.value, dict) else None
    return value if isinstance(value, str | int) and value != "" else None


def _text_of(record: Record) -> str:
    value: Any = record.value
    return str([value[name] for name in ("content", "text", "message") if name in value]) if value else ""


def _is_dialogue(records: Sequence[Record]) -> bool:
    return len({str(one.value.get("role")) for one in records if isinstance(one.value, dict)}) > 1


HEAD = 50
"""Rows at the start of a file that decide whether its ids are filled down."""


def is_filled_down(keys: Sequence[str | None]) -> bool:
    """Whether only the first row of each conversation has its id: each id is there once, and most rows have none.

    These are the keys of the first rows of a file, of which the last conversation may go on.
    """
    counts = Counter(key for key in keys if key is not None)
    return bool(keys) and keys[0] is not None and 2 * len(counts) <= len(keys) and max(counts.values()) == 1


class RowKeys:
    """The keys of the rows of a file, in their order; where ids are filled down, a row has the id above it."""

    def __init__(self, first: Sequence[str | None]) -> None:
        self.fills = is_filled_down(first)
        self._last: str | None = None

    def of(self, key: str | None) -> str | None:
        if self.fills:
            self._last = key if key is not None else self._last
            return self._last
        return key


__all__ = ["HEAD", "RowKeys", "is_counter", "is_filled_down", "separated"]
