"""Which conversations a second judge looks at again: a seeded tenth."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

ONE_IN = 10
"""Of so many conversations that were judged, one is judged again."""
SEED = 20260101


def drawn(conversations: Mapping[int, str]) -> list[int]:
    """A tenth of conversations, at least one, by a hash of their ids: the same in every run, whatever their order."""
    count = -(-len(conversations) // ONE_IN)
    by_hash = sorted(conversations, key=lambda number: _drawing_order(conversations[number]))
    return sorted(by_hash[:count])


def _drawing_order(id: str) -> str:
    return hashlib.sha256(f"{SEED}\n{id}".encode("utf-8", "surrogatepass")).hexdigest()
