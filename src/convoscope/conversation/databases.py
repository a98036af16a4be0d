"""What changed in a scenario database: its canonical form, its hash, and the difference of two of them."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

import msgspec

from convoscope.conversation.events import Json
from convoscope.conversation.model import ChangeKind

SESSION = "session"
"""The top-level key that holds who is logged in. It is no part of the database."""

UNORDERED = frozenset(
    {"standby_list", "notifications", "bookings", "system_accounts", "group_memberships", "asset_recoveries"}
)
"""The order of a list under one of these keys means nothing (voice-logs, 1.2)."""

ADDED: ChangeKind = "added"
REMOVED: ChangeKind = "removed"
CHANGED: ChangeKind = "changed"

Path = tuple[str, ...]

_ABSENT = object()
_encode = msgspec.json.Encoder().encode
_WRITER = json.JSONEncoder(ensure_ascii=False, default=str)
_NOTHING = frozenset({"none", "null"})
_PLAIN = frozenset({str, int, float, bool, type(None)})
# What distinguishes the members of a list, best first: `id`, or a name that ends with `_id`, and so on.
_IDENTITIES = ("id", "number", "code", "key", "name")


class Change(NamedTuple):
    """One difference. A record that is there on one side only is one change, with the record as its value."""

    path: Path
    kind: ChangeKind
    was: Json = None
    now: Json = None

    def __str__(self) -> str:
        if self.kind == CHANGED:
            return f"{printed(self.path)}: {shown(self.was)} → {shown(self.now)}"
        return f"{printed(self.path)}: {self.kind} {shown(self.now if self.kind == ADDED else self.was)}"

    def parts(self) -> Iterator[Change]:
        """What is added or removed with it, field by field, one step down; nothing where it holds nothing."""
        last = self.path[-1] if self.path else ""
        if self.kind != ADDED:
            for key, value in _members(self.was, last):
                yield Change((*self.path, key), REMOVED, value)
        if self.kind != REMOVED:
            for key, value in _members(self.now, last):
                yield Change((*self.path, key), ADDED, None, value)

    def inside(self) -> Iterator[Change]:
        """This change and all its parts, from the outside in."""
        yield self
        for part in self.parts():
            yield from part.inside()


def canonical(content: Json) -> Json:
    """A database without what does not count in it.

    The session is left out, whole floats are integers, the texts none and null are null, and lists
    whose order means nothing are sorted by the JSON of their members (voice-logs, 1.2).
    """
    if isinstance(content, Mapping):
        return {key: _canonical(value, key) for key, value in content.items() if key != SESSION}
    return _canonical(content, "")


def database_hash(content: Json) -> str:
    """SHA-256 of the canonical form, written as JSON with sorted keys and no spaces."""
    return _hash(canonical(content))


def is_hash_of(stored: str, content: Json) -> bool:
    """Whether a hash that came with a database is one of its content, in any way in which such hashes are made.

    That is: of the canonical form, or of the content as it is, with or without its session, as
    published records of the same system have it; written in ASCII, or not.
    """
    wanted = stored.strip().lower()
    bare = _without_session(content)
    # Most content is written alike by the fast encoder: the careful one is asked only where that gives no match.
    fast = (hashlib.sha256(msgspec.json.encode(form, order="sorted")).hexdigest() for form in (content, bare))
    if wanted in fast:
        return True
    return any(_hash(form, ascii) == wanted for form in (canonical(content), bare, content) for ascii in (True, False))


def _without_session(content: Json) -> Json:
    return {key: value for key, value in content.items() if key != SESSION} if isinstance(content, dict) else content


def canonical_text(value: Json) -> str:
    """The JSON of a value's canonical form: what is equal has equal text."""
    return _json(_canonical(value, ""))


def same(first: Json, second: Json) -> bool:
    """Equal in canonical form. True is not 1."""
    return canonical_text(first) == canonical_text(second)


def changes(before: Json, after: Json) -> tuple[Change, ...]:
    """What has to be done to one database to get the other, sorted by path; nothing where their hashes are equal.

    A member of a list is called by its position; in a list whose order means nothing, by what
    identifies it.
    """
    differences: list[Change] = []
    if isinstance(before, dict) and isinstance(after, dict):
        before, after = _without_session(before), _without_session(after)
    _compare((), before, after, differences)
    return tuple(sorted(differences, key=lambda change: change.path))


def printed(path: Sequence[str]) -> str:
    """A path as a pattern that fits it: `reservations.ZK3FFW.status`."""
    return ".".join(re.sub(r"([.*\\])", r"\\\1", key) for key in path)


def shown(value: Json) -> str:
    """A value as JSON, cut where it is long; no more of it is written than that takes."""
    text = ""
    for piece in _WRITER.iterencode(value[:161] if isinstance(value, str) else value):
        text += piece[:161]
        if len(text) > 160:
            return f"{text[:159]}…"
    return text


def fits(pattern: str, path: Path) -> bool:
    """Whether a pattern such as `reservations.*.status` or `reservations.**` describes a path."""
    keys = _keys(pattern)
    at, index = 0, 0
    span, taken = None, 0  # the last `**`, and what follows the keys that it takes
    while index < len(path):
        key = keys[at] if at < len(keys) else None
        if key is _ANY_NUMBER:
            at += 1
            span, taken = at, index
        elif key is _ANY or key == path[index]:
            at, index = at + 1, index + 1
        elif span is not None:
            taken += 1
            at, index = span, taken
        else:
            return False
    return all(key is _ANY_NUMBER for key in keys[at:])


_ANY, _ANY_NUMBER = object(), object()


@lru_cache(maxsize=4096)
def _keys(pattern: str) -> Sequence[object]:
    """The keys that a pattern names; `*` is any, `**` a span of any number of them."""
    keys = [""]
    for token in re.findall(r"\\.|.", pattern, re.DOTALL):
        if token == ".":
            keys.append("")
        else:
            keys[-1] += token
    stars = {"*": _ANY, "**": _ANY_NUMBER}
    return [stars.get(key) or re.sub(r"\\(.)", r"\1", key, flags=re.DOTALL) for key in keys]


def _canonical(value: Json, key: str) -> Json:
    kind = type(value)
    if kind is dict:
        return {inner: _canonical(one, inner) for inner, one in value.items()}
    if kind is list or kind is tuple:
        members = [_canonical(one, "") for one in value]
        return sorted(members, key=_json) if key in UNORDERED else members
    if kind is float and value.is_integer():
        return int(value)
    if kind is str and len(value) >= 4 and value.strip().lower() in _NOTHING:
        return None
    return value


def _json(value: Json, ascii: bool = True) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=ascii)


def _hash(value: Json, ascii: bool = True) -> str:
    return hashlib.sha256(_json(value, ascii).encode("utf-8", "surrogatepass")).hexdigest()


def _compare_records(path: Path, before: dict[str, Json], after: dict[str, Json], differences: list[Change]) -> None:
    for key, was in before.items():
        now = after.get(key, _ABSENT)
        if type(was) is type(now) and type(was) in _PLAIN and was == now:
            continue
        if now is _ABSENT:
            differences.append(Change((*path, key), REMOVED, was=was))
        elif _encode(was) != _encode(now):  # equal records are the rule: most of the time goes here
            _compare((*path, key), was, now, differences)
    for key, now in after.items():
        if key not in before:
            differences.append(Change((*path, key), ADDED, now=now))


def _compare(path: Path, was: Json, now: Json, differences: list[Change]) -> None:
    if isinstance(was, dict) and isinstance(now, dict):
        _compare_records(path, was, now, differences)
    elif isinstance(was, list | tuple) and isinstance(now, list | tuple):
        if path and path[-1] in UNORDERED:
            field = _identity(was, now)
            _compare_records(path, _named(was, field), _named(now, field), differences)
        else:
            _compare_lists(path, was, now, differences)
    elif not same(was, now):
        differences.append(Change(path, CHANGED, was, now))


def _compare_lists(path: Path, was: Sequence[Json], now: Sequence[Json], differences: list[Change]) -> None:
    """By position, between what is equal at the start and what is equal at the end."""
    start = end = 0
    if len(was) != len(now):
        start = _equal(was, now)
        end = _equal(was[start:][::-1], now[start:][::-1])
    before, after = was[start : len(was) - end], now[start : len(now) - end]
    for index in range(max(len(before), len(after))):
        at = (*path, str(start + index))
        if index >= len(after):
            differences.append(Change(at, REMOVED, was=before[index]))
        elif index >= len(before):
            differences.append(Change(at, ADDED, now=after[index]))
        else:
            _compare(at, before[index], after[index], differences)


def _equal(first: Sequence[Json], second: Sequence[Json]) -> int:
    """How many members two lists share from the start."""
    return sum(1 for _ in takewhile(lambda pair: same(*pair), zip(first, second, strict=False)))


def _members(container: Json, key: str) -> Iterable[tuple[str, Json]]:
    """What a value holds, by the keys that a path has for it."""
    if isinstance(container, dict):
        return container.items()
    if isinstance(container, list | tuple):
        if key in UNORDERED:
            return _named(container, _identity(container)).items()
        return ((str(index), one) for index, one in enumerate(container))
    return ()


def _named(members: Sequence[Json], identity: str) -> dict[str, Json]:
    """The members of an unordered list by a name that does not depend on their order.

    The name is the field that identifies them, the value of what is no record, else the JSON of the
    member: without an identity a changed member is another one.
    """
    named: dict[str, Json] = {}
    seen: Counter[str] = Counter()
    for member in sorted((_canonical(one, "") for one in members), key=_json):
        called = member[identity] if identity else member
        name = called if isinstance(called, str) else _json(called)
        seen[name] += 1
        named[name if seen[name] == 1 else f"{name}#{seen[name]}"] = member
    return named


def _identity(*lists: Sequence[Json]) -> str:
    """The field that all members have and that looks like their name; empty where there is no such field.

    One that says the members of each list apart is better than one that does not.
    """
    members = [member for one in lists for member in one]
    if not members or not all(isinstance(member, dict) for member in members):
        return ""
    shared = set(members[0]).intersection(*members)
    usable = sorted(key for key in shared if all(isinstance(member[key], str | int) for member in members))
    names = [key for kind in _IDENTITIES for key in usable if key == kind or key.endswith(f"_{kind}")]
    telling = (key for key in names if all(len({member[key] for member in one}) == len(one) for one in lists))
    return next(telling, names[0] if names else "")
