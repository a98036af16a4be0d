"""Rules of a dialogue agent, one kind of companion: what a booking needs, and what is carried from domain to domain.

transferable_slots = ["area", "pricerange"]

[booking_rules]
train = ["bookpeople", "leaveat"]
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from convoscope.conversation import Conversation
from convoscope.errors import InputError
from convoscope.ingest.io import containers as files
from convoscope.ingest.io.json import BadJson, decode
from convoscope.ingest.reader import Detection, Sample
from convoscope.ingest.report import Notes

_LOG = frozenset({"id", "messages", "turns", "timeline", "log", "dialogue_id", "conversation"})
"""Fields of a conversation, which may bring rules of its own."""
_HINT = 'expected booking_rules = { hotel = ["name", "bookday"] } and transferable_slots = ["area"]'


class BookingRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The slots that must be filled before something is booked, by domain, and those that are carried over."""

    booking_rules: dict[str, list[str]] | None = None
    transferable_slots: list[str] | None = None


_FIELDS = BookingRules.__struct_fields__


class BookingRuleFiles:
    """TOML or JSON files with rules, for the dialogues that they lie beside; the nearest counts."""

    format = "booking-rules"

    def detect(self, sample: Sample) -> Detection | None:
        if _is_toml(sample.path):
            words = [line.strip("[ \t").split("=")[0].strip(' ]"') for line in map(str, sample.values)]
            is_ours = any(word.partition(".")[0] in _FIELDS for word in words)
        else:
            is_ours = sample.container == "document" and any(_declares(value) for value in sample.values)
        return Detection(1.0, "rules of booking, or slots that are carried over", "companion") if is_ours else None

    def load(self, path: Path, name: str, *, is_named: bool) -> bool:
        """Look at it at once: every figure would be another one without it."""
        del is_named
        try:
            read_rules(path)
        except InputError as error:
            error.file = name
            raise
        return False

    def attacher(self, reader: str, files: Sequence[Path]) -> Callable[[Conversation, Notes], Conversation] | None:
        del reader
        paths = [path for path in files if _may_rule(path, path.stat().st_mtime_ns)]
        if not paths:
            return None
        rules = _loaded(paths[0], paths[0].stat().st_mtime_ns)
        return lambda conversation, _: attach(conversation, rules)


def attach(conversation: Conversation, rules: BookingRules) -> Conversation:
    """The conversation with these rules, unless it brings its own."""
    return msgspec.structs.replace(conversation, extras={**msgspec.to_builtins(rules), **conversation.extras})


def read_rules(path: Path) -> BookingRules:
    """The rules of a file, in small letters. Whatever is wrong with it is an error that names the field."""
    value = _value(path)
    try:
        rules = msgspec.convert(value, BookingRules)
    except msgspec.ValidationError as error:
        message, _, field = str(error).partition(" - at ")
        raise InputError(message, file=str(path), field=field.strip("`").removeprefix("$."), hint=_HINT) from None
    by_domain = rules.booking_rules
    return BookingRules(
        None if by_domain is None else {domain.casefold(): _folded(slots) for domain, slots in by_domain.items()},
        None if rules.transferable_slots is None else _folded(rules.transferable_slots),
    )


def _folded(slots: Sequence[str]) -> list[str]:
    return [slot.strip().casefold() for slot in slots]


def _value(path: Path) -> Any:
    data = files.whole(path)
    try:
        return tomllib.loads(data.decode()) if _is_toml(path) else decode(data).value
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"is no TOML: {error}", file=str(path), hint=_HINT) from None
    except BadJson as error:
        raise InputError(str(error), file=str(path), line=error.line, hint="the JSON must be complete") from None


@lru_cache(maxsize=256)
def _may_rule(path: Path, stamp: int) -> bool:
    """Companions of other kinds may be large: a file of rules is known by the names in its first part."""
    del stamp
    head = files.head_of(path, 64 * 1024)
    if not any(name.encode() in head for name in _FIELDS):
        return False
    try:
        return _is_toml(path) or _declares(_value(path))
    except InputError:
        return False


@lru_cache(maxsize=16)
def _loaded(path: Path, stamp: int) -> BookingRules:
    """Read once as long as the file stays the same."""
    del stamp
    return read_rules(path)


def _is_toml(path: Path) -> bool:
    return path.suffix.lower() == ".toml"


def _declares(value: Any) -> bool:
    return isinstance(value, dict) and any(name in value for name in _FIELDS) and _LOG.isdisjoint(value)
