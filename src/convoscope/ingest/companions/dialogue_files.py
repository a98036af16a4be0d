"""Companions of dialogues: their acts, the schema of their services, their databases of venues, rules of booking."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation import Agent, Conversation, Frame, Tool
from convoscope.errors import InputError
from convoscope.ingest.companions.predictions import dialogue_key
from convoscope.ingest.formats.multiwoz import read_acts, read_spans
from convoscope.ingest.io import containers as files
from convoscope.ingest.reader import Attach, Companion, Detection, Sample
from convoscope.ingest.record import as_list, as_object, as_text
from convoscope.ingest.report import FileRead, Notes, ReadReport
from convoscope.storage import as_path

_ACTS = ("dialog_act", "dialogue_acts")
_READERS = ("multiwoz", "sgd")


class DialogueActs(Companion):
    """The `dialog_acts.json` of MultiWOZ 2.2: acts and spans by dialogue and turn."""

    format = "multiwoz"

    def detect(self, sample: Sample) -> Detection | None:
        is_acts = any(_is_acts(value) for value in sample.values)
        return Detection(1.2, "dialogue acts, matched to turns by dialogue and id", "companion") if is_acts else None

    def attacher(self, reader: str, files: Sequence[Path]) -> Attach | None:
        if reader != self.format:
            return None
        acts = _content(files, _is_acts)
        return None if acts is None else lambda conversation, notes: attach_acts(conversation, acts, notes)


class DialogueSchema(Companion):
    """The `schema.json` of schema-guided dialogues: what services offer, as tools of the agent."""

    format = "dialogue-schema"

    def detect(self, sample: Sample) -> Detection | None:
        is_schema = _is_schema(list(sample.values))
        return Detection(0.98, "services with slots and intents", "companion") if is_schema else None

    def attacher(self, reader: str, files: Sequence[Path]) -> Attach | None:
        if reader not in _READERS:
            return None
        schema = _content(files, _is_schema)
        return None if schema is None else lambda conversation, _: attach_schema(conversation, schema)


def _is_acts(value: Any) -> bool:
    turns = [turn for dialogue in list(as_object(value).values())[:5] for turn in as_object(dialogue).values()]
    return bool(turns) and all(any(name in as_object(turn) for name in _ACTS) for turn in turns)


def _is_schema(value: Any) -> bool:
    """A list of services, each with its name and intents."""
    return bool(as_list(value)) and all(
        isinstance(one, dict) and as_text(one.get("service_name")) and "intents" in one for one in value
    )


def _content(paths: Sequence[Path], is_whole: Callable[[Any], bool]) -> Any:
    """The value of the nearest file that can be read; None without one."""
    for path in paths:
        with suppress(InputError, OSError):
            if is_whole(value := _document([path])):
                return value
    return None


@files.read_once(4)
def _document(paths: Sequence[Path]) -> Any:
    return files.json_document(paths[0])


def attach_acts(conversation: Conversation, acts: Mapping[str, Any], notes: Notes) -> Conversation:
    """The dialogue with the acts of its turns. Turns that the file does not know are not annotated."""
    turns = acts.get(conversation.id, acts.get(f"{conversation.id}.json"))
    if turns is None:
        key = dialogue_key(conversation.id)
        turns = next((value for id, value in acts.items() if dialogue_key(id) == key), None)
    if not isinstance(turns, dict):
        notes.set_aside("acts_missing", conversation.id)
        return conversation
    frames = list(conversation.frames)
    for utterance in conversation.utterances:
        annotated = as_object(turns.get(utterance.id))
        written = next((annotated[name] for name in _ACTS if isinstance(annotated.get(name), dict)), None)
        if written is None:
            continue
        read = read_acts(written)
        spans = read_spans(list(as_list(annotated.get("span_info"))), utterance.meant(), in_words=False)
        if not (read.is_whole and spans.is_whole):
            notes.set_aside("acts_unreadable", f"turn {utterance.id}", utterance.seq)
        frames.append(Frame(seq=utterance.seq, origin="gold", acts=read.values or None, spans=spans.values))
    return msgspec.structs.replace(conversation, frames=tuple(sorted(frames, key=lambda frame: frame.seq)))


def attach_schema(conversation: Conversation, schema: Sequence[Mapping[str, Any]]) -> Conversation:
    """The dialogue with the intents of its services as tools of the agent."""
    services = set(map(as_text, as_list(conversation.extras.get("services"))))
    tools = [
        _tool(service, intent)
        for service in schema
        if as_text(service["service_name"]) in services
        for intent in as_list(service.get("intents"))
        if isinstance(intent, dict) and as_text(intent.get("name"))
    ]
    if not tools:
        return conversation
    return msgspec.structs.replace(conversation, agent=Agent(tools=tuple(tools)))


def _tool(service: Mapping[str, Any], intent: Mapping[str, Any]) -> Tool:
    required = [as_text(one) for one in as_list(intent.get("required_slots")) if as_text(one)]
    optional = [as_text(one) for one in as_object(intent.get("optional_slots"))]
    return Tool(
        name=as_text(intent["name"]),
        description=as_text(intent.get("description")),
        arguments_schema={
            "type": "object",
            "properties": {name: {"type": "string"} for name in (*required, *optional)},
            "required": required,
        },
        kind=as_text(service["service_name"]),
    )


# Databases of venues.

_DATABASE = re.compile(r"(?P<domain>\w+)_db\.json(\.gz|\.zstd?)?", re.IGNORECASE)


class VenueTable(NamedTuple):
    """The file with the venues of one domain."""

    domain: str
    path: str


class VenueTables(Companion):
    """Files such as `hotel_db.json`: the database in which the agent of a dialogue looks things up.

    They are for all dialogues, and become a resource of the metrics that ask for one.
    """

    format = "venues"

    def __init__(self, report: ReadReport) -> None:
        self._report = report
        self._by_domain: dict[str, VenueTable] = {}

    def detect(self, sample: Sample) -> Detection | None:
        values = sample.values
        is_table = bool(_domain(sample.path)) and all(isinstance(value, dict) for value in values)
        if sample.container == "document":
            # A domain without records, such as taxis, has lists of what they are drawn from.
            lists = [isinstance(inner, list) for value in values if is_table for inner in value.values()]
            is_table = is_table and any(values) and all(lists)
        elif sample.container != "array":
            is_table = False
        return Detection(1.0, f"venues of {_domain(sample.path)}", "companion") if is_table else None

    def load(self, path: Path, name: str, *, is_named: bool) -> bool:
        """Take a table. A second one of a domain has to say the same: which of them is right would be unknown."""
        del is_named
        domain = _domain(path)
        first = self._by_domain.setdefault(domain, VenueTable(domain, str(path.resolve())))
        if files.whole(as_path(first.path)) != files.whole(path):
            raise InputError(
                f"holds other venues of {domain} than {first.path}",
                file=name,
                hint="give one table for each domain",
            )
        self._report.files[name] = FileRead(self.format, f"venues of {domain}", is_companion=True)
        return True

    @property
    def tables(self) -> tuple[VenueTable, ...]:
        """All of them, by domain."""
        return tuple(self._by_domain[domain] for domain in sorted(self._by_domain))


def _domain(path: Path) -> str:
    match = _DATABASE.fullmatch(path.name)
    return match["domain"].lower() if match else ""


def read_venues(tables: Sequence[VenueTable]) -> Mapping[str, Any]:
    """The records of each domain, as the files have them."""
    return {table.domain: files.json_document(as_path(table.path)) for table in tables}


# Rules of booking.

_LOG = frozenset({"id", "messages", "turns", "timeline", "log", "dialogue_id", "conversation"})
"""Fields of a conversation, which may bring rules of its own."""
_HINT = 'expected booking_rules = { hotel = ["name", "bookday"] } and transferable_slots = ["area"]'


class BookingRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The slots that must be filled before something is booked, by domain, and those that are carried over."""

    booking_rules: dict[str, list[str]] | None = None
    transferable_slots: list[str] | None = None


_FIELDS = BookingRules.__struct_fields__


class BookingRuleFiles(Companion):
    """TOML or JSON files with rules for the dialogues of their folder; the nearest counts.

    transferable_slots = ["area", "pricerange"]

    [booking_rules]
    train = ["bookpeople", "leaveat"]
    """

    format = "booking-rules"

    def detect(self, sample: Sample) -> Detection | None:
        if _is_toml(sample.path):
            names = [line.strip("[ \t").split("=")[0].strip(' ]"') for line in map(str, sample.values)]
            has_rules = any(name.partition(".")[0] in _FIELDS for name in names)
        else:
            objects = [value for value in sample.values if isinstance(value, dict)]
            has_rules = sample.container == "document" and any(
                not value.keys().isdisjoint(_FIELDS) and _LOG.isdisjoint(value) for value in objects
            )
        return Detection(1.0, "rules of booking, or slots that are carried over", "companion") if has_rules else None

    def load(self, path: Path, name: str, *, is_named: bool) -> bool:
        """Look at it at once: every figure would be another one without it."""
        del is_named
        try:
            read_rules(path)
        except InputError as error:
            error.file = name
            raise
        return False

    def attacher(self, reader: str, files: Sequence[Path]) -> Attach | None:
        del reader
        if not files:
            return None
        rules = msgspec.to_builtins(read_rules(files[0]))
        # A conversation may bring rules of its own.
        return lambda conversation, _: msgspec.structs.replace(conversation, extras={**rules, **conversation.extras})


def read_rules(path: Path) -> BookingRules:
    """The rules of a file, in lower case. What is wrong with it is an error that names the field."""
    try:
        value = files.json_document(path) if not _is_toml(path) else tomllib.loads(files.whole(path).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"is no TOML: {error}", file=str(path), hint=_HINT) from None
    try:
        rules = msgspec.convert(value, BookingRules)
    except msgspec.ValidationError as error:
        message, _, field = str(error).partition(" - at ")
        raise InputError(message, file=str(path), field=field.strip("`").removeprefix("$."), hint=_HINT) from None
    by_domain, carried = rules.booking_rules, rules.transferable_slots
    return BookingRules(
        None if by_domain is None else {domain.casefold(): _folded(slots) for domain, slots in by_domain.items()},
        None if carried is None else _folded(carried),
    )


def _folded(slots: Sequence[str]) -> list[str]:
    return [slot.strip().casefold() for slot in slots]


def _is_toml(path: Path) -> bool:
    return path.suffix.lower() == ".toml"
