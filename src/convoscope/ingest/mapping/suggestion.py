"""A mapping for a log of an unknown kind, guessed from its fields and tried on its records, for a person to correct."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from convoscope.conversation.events import moment
from convoscope.errors import ConvoscopeError, InputError
from convoscope.harmless import one_line
from convoscope.harmless import toml_text as _text
from convoscope.ingest.discover import sample_of
from convoscope.ingest.io.json import BadJson, parsed
from convoscope.ingest.mapping.declaration import steps_of, value_at, written
from convoscope.ingest.mapping.reader import seconds
from convoscope.ingest.mapping.trial import MappingTrial, tried
from convoscope.ingest.reader import Sample
from convoscope.ingest.record import ROLE_FIELDS, ROLES, TEXT_FIELDS, TIMES, as_text

_DEPTH = 4
_MAX_MESSAGES = 200
_MAX_ROLES = 8
_MAX_RECORDS = 200
_MAX_CANDIDATES = 40
_MAX_TEXT_FIELDS = 3
_MAX_ROLE_FIELDS = 2
_MAX_FAULTS = 4
_BY_HAND = "write a mapping by hand, as docs/guides/mapping.md shows, or a reader"
_LONGEST_ROLE = 40
_ROLE_NAMES = (*ROLE_FIELDS, "who", "actor", "direction", "participant", "participant_role", "type", "name")
_TEXT_NAMES = ("content", *TEXT_FIELDS, "msg", "transcript", "words")
_ID_NAMES = (
    *("conversation_id", "session_id", "thread_id", "chat_id", "dialogue_id", "call_id", "conversation", "dialogue"),
    *("dialog", "dlg", "session", "thread", "chat", "call", "ticket", "case", "id", "no", "number"),
)
_NUMBERED = re.compile(
    r"(conversation|conv|session|thread|chat|dialogue|dialog|call|ticket|case)_(no|nr|num|number|ref|reference|key|code)"
)
"""Names of conversations that no list has."""
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ASKED = ("user", "user_message", "user_text", "question", "query", "prompt", "input", "in", "request")
_ANSWERED = (
    *("assistant", "system_response", "bot_response", "answer", "reply", "completion", "output", "out"),
    "response",
)
"""Names of what each side says, in a record that holds both."""
_SAYS = r"[_ ]?(query|question|message|msg|text|utterance|input|says?|answer|response|reply|output|turn)"
_ASKS = re.compile(rf"(user|customer|client|caller|human|guest){_SAYS}")
_ANSWERS = re.compile(rf"(bot|agent|assistant|system|ai|model){_SAYS}")
_PREDICTED = re.compile(r"^(pred|predicted|model|hyp|system|agent|bot)[_A-Z]")
"""What the agent concluded, by the name of the field: `pred_state`."""
_LABELS = re.compile(r"csat|nps|stars|rating|score|resolved|solved|label|verdict|outcome|satisf", re.IGNORECASE)
_USERS = re.compile(
    r"user|usr|cust|client|contact|guest|visitor|caller|human|buyer|patient|^in(bound|coming)?$", re.IGNORECASE
)
_IS_ID = re.compile(r"(?=[^\d]{0,200}\d)[\w-]{10,200}")
_OF_OTHERS = re.compile(
    r"account|user|customer|tenant|project|agent|inbox|org|model|parent|sender|author", re.IGNORECASE
)
"""Ids of what has many conversations."""
_SYSTEMS = re.compile(r"\bsystem\b|^sys$", re.IGNORECASE)
_AGENTS = re.compile(r"bot|agent|assist|advis|operator|support|rep$|^ai$|^out(bound|going)?$", re.IGNORECASE)
_MEANINGS = {
    "tool_calls": re.compile(r"tools?(_?calls?)?$|functions?(_?calls?)?$|calls$|actions$", re.IGNORECASE),
    "domain": re.compile(r"(^|_)(domain|service)$", re.IGNORECASE),
    "intent": re.compile(r"intents?$", re.IGNORECASE),
    "requested": re.compile(r"requested", re.IGNORECASE),
    "state": re.compile(r"(belief|state|slots?|slot_values)$", re.IGNORECASE),
    "act": re.compile(r"(dialog(ue)?_)?acts?$|act_types?$", re.IGNORECASE),
}


class RecordField(NamedTuple):
    """A field of records, by its path, and the values that they have there."""

    path: str
    values: list[Any]

    @property
    def name(self) -> str:
        """The last step in one spelling: `Ticket No`, `ticketNo` and `ticket-no` are `ticket_no`."""
        last = _HUMP.sub("_", self.path.rpartition(".")[2])
        return re.sub(r"[\s_-]+", "_", last.strip()).casefold()


class MessageFields(NamedTuple):
    """The fields of messages that say who speaks and what."""

    role: RecordField | None
    text: RecordField
    answer: RecordField | None = None
    """What the agent says, where `text` is what the user says."""


class Candidate(NamedTuple):
    """What might be a mapping."""

    where: str
    """The list of conversations in a document; "" where each record is one."""
    messages: str
    """The list of messages in a conversation; "" where each record is a message."""
    fields: MessageFields
    records: Sequence[Any]
    held: Sequence[Any]
    """The messages."""


def suggested_map(paths: Sequence[Path]) -> str:
    """The TOML of a mapping for the first of these logs that one can be made of."""
    refusals: list[str] = []
    for path in islice(_files(paths), 50):
        try:
            return suggestion(sample_of(path, most=_MAX_RECORDS))
        except (ConvoscopeError, BadJson, OSError) as error:
            refusals.append(f"{path.name}: {error.message if isinstance(error, ConvoscopeError) else error}")
    raise InputError("\n  ".join(["no mapping can be made", *refusals[:10]]), hint=_BY_HAND)


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.exists():
            raise InputError("there is no such file or folder", file=str(path))
        yield from sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]


def suggestion(sample: Sample) -> str:
    """The TOML of a mapping for the records of a sample: of those that were tried, the one that reads most.

    One whose texts, roles or replies are not plausible is not given: a wrong mapping reads as well as a right one.
    """
    records = list(sample.values)
    if sample.container == "text" or not any(isinstance(one, dict) for one in records):
        raise InputError("holds no records", hint="a mapping is for JSON, JSON lines, CSV and Parquet")
    best: tuple[MappingTrial, Candidate, str] | None = None
    faults: list[str] = []
    for candidate in islice(_candidates(records), _MAX_CANDIDATES):
        toml = _written(candidate)
        try:
            trial = tried(toml, records, sample.path)
        except ConvoscopeError as error:
            faults.append(f"{_where(candidate)}: {error.message}")
            continue
        if wrong := next(trial.faults(), ""):
            faults.append(f"{_where(candidate)}: {wrong}")
        elif best is None or trial.weight > best[0].weight:
            best = trial, candidate, toml
    if best is None:
        some = list(dict.fromkeys(faults))[:_MAX_FAULTS] or ["no field holds texts of people"]
        raise InputError(
            "\n    ".join(["what people say was not found:", *(one_line(each) for each in some)]), hint=_BY_HAND
        )
    trial, candidate, toml = best
    return "\n".join([*_head(trial, candidate), "", toml])


def _where(candidate: Candidate) -> str:
    """What a candidate takes for texts, and for who says them."""
    fields = candidate.fields
    inside = "".join(f"{one}." for one in (candidate.where, candidate.messages) if one)
    if fields.answer is not None:
        return f"texts at {inside}{fields.text.path} and {inside}{fields.answer.path}"
    role = f"role at {inside}{fields.role.path}" if fields.role is not None else "no field that says who speaks"
    return f"text at {inside}{fields.text.path}, {role}"


def _head(trial: MappingTrial, candidate: Candidate) -> Iterator[str]:
    """What the mapping reads, as comments."""
    fields = candidate.fields
    yield "# A guess from the fields of the log. Correct it, then: convoscope inspect LOG --map THIS-FILE"
    yield (
        f"# Tried on its first records: {trial.records:,}. Conversations: {trial.conversations:,}. "
        f"Texts of user and agent: {len(trial.texts):,}. Records without a text: {trial.empty:,}."
    )
    if fields.role is not None:
        words = (
            f"{one_line(word, 80)} {count:,} ({meant or 'not known'})"
            for (word, meant), count in trial.words.most_common()
        )
        yield f"# Who speaks: {', '.join(words)}."
    yield f"# Replies follow {trial.replied:,} of {trial.asked:,} times that the user speaks."
    if trial.silent:
        yield f"# {trial.silent:,} of {trial.messages:,} messages of user and agent have neither text nor tool call."
    if not candidate.messages and trial.conversations == 1 and trial.records > 1:
        yield "# No field names the conversation: all records of a file are one."
    if trial.unread:
        yield "# Texts that are not read: " + ", ".join(f"{one_line(path, 80)} {n:,}" for path, n in trial.unread) + "."


def _candidates(records: Sequence[Any]) -> Iterator[Candidate]:
    """What might be messages, and in them who speaks and what; the likeliest first."""
    lists = _lists(records)
    # A path through an id leads to one record, and to none of the next.
    named = [one for one in lists if not any(map(_IS_ID.fullmatch, steps_of(one.path)))]
    ranked = [(one, fields) for one in named for fields in message_fields(one.values)]
    ranked.sort(key=lambda pair: (_is_known(pair[1].role), pair[1].role is not None, len(pair[0].values)), reverse=True)
    for inner, fields in ranked:
        # A document that holds a list of conversations, each with a list of messages.
        outer = next((one for one in lists if inner.path.startswith(f"{one.path}.0.")), None)
        if outer is None:
            yield Candidate("", inner.path, fields, records, inner.values)
        else:
            yield Candidate(outer.path, inner.path.removeprefix(f"{outer.path}.0."), fields, outer.values, inner.values)
    for fields in message_fields(records):
        yield Candidate("", "", fields, records, records)


def _lists(records: Sequence[Any]) -> list[RecordField]:
    """Every list of objects in the records, the outer before the inner; one inside a list by its first element."""
    by_path: dict[str, list[Any]] = {}
    for record in records:
        for steps, value in _walk(record):
            if isinstance(value, list) and any(isinstance(one, dict) for one in value):
                by_path.setdefault(written(steps), []).extend(one for one in value if isinstance(one, dict))
    return [RecordField(path, values[:_MAX_MESSAGES]) for path, values in by_path.items()]


def _walk(value: Any, steps: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    value = parsed(value)
    if steps:
        yield steps, value
    if len(steps) >= _DEPTH:
        return
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _walk(inner, (*steps, str(name)))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        yield from (((*steps, "0", *inner), held) for inner, held in _walk(value[0]))


def _is_known(role: RecordField | None) -> bool:
    return role is not None and any(_role_of(str(value))[1] for value in role.values)


def message_fields(messages: Sequence[Any]) -> Iterator[MessageFields]:
    """Who speaks and what, in messages: the likeliest first; nothing where no field is a text of a person."""
    fields = [one for one in fields_of(messages) if all(isinstance(value, str) for value in one.values)]
    asked, answered = _named(fields, _ASKED, _ASKS), _named(fields, _ANSWERED, _ANSWERS)
    if asked is not None and answered is not None:
        yield MessageFields(None, asked, answered)
    texts = sorted((one for one in fields if _text_rank(one) > 0), key=_text_rank, reverse=True)[:_MAX_TEXT_FIELDS]
    short = None if texts else _short_text(fields)
    for text in [*texts, *([] if short is None else [short])]:
        roles = [one for one in fields if one.path != text.path and _role_rank(one) > 0]
        if not roles:
            yield MessageFields(None, text)
        for role in sorted(roles, key=_role_rank, reverse=True)[:_MAX_ROLE_FIELDS]:
            yield MessageFields(role, text)


def _named(fields: Sequence[RecordField], names: Sequence[str], others: re.Pattern[str]) -> RecordField | None:
    """The field with the best of these names; without one, the first whose name is of this kind."""
    best = min((one for one in fields if one.name in names), key=lambda one: names.index(one.name), default=None)
    return best or next((one for one in fields if others.fullmatch(one.name)), None)


def fields_of(records: Sequence[Any]) -> list[RecordField]:
    """The fields of records that are no objects, with their values."""
    by_path: dict[str, list[Any]] = {}
    for record in records:
        if isinstance(record, dict):
            for steps, value in _leaves(record, ()):
                by_path.setdefault(written(steps), []).append(value)
    return [RecordField(path, values) for path, values in by_path.items()]


def _leaves(value: Any, steps: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if steps and value is not None and value != "":
        yield steps, value
    if isinstance(value, dict) and len(steps) < _DEPTH:
        for name, inner in value.items():
            yield from _leaves(inner, (*steps, str(name)))


def _text_rank(field: RecordField) -> float:
    """How much a field looks like what people say: words with spaces, and a telling name."""
    spoken = sum(" " in value.strip() for value in field.values) / len(field.values)
    named = field.name in _TEXT_NAMES
    if not named and (spoken < 0.3 or all(moment(value) is not None for value in field.values)):
        return 0.0
    return (2.0 if named else 0.0) + spoken + min(len(field.values), 1000) / 10_000


def _short_text(fields: Sequence[RecordField]) -> RecordField | None:
    """What people say where they say a word at a time: next to a field of known roles, the one with most words."""
    role = max((one for one in fields if _is_known(one)), key=_role_rank, default=None)
    if role is None:
        return None
    others = [one for one in fields if one.path != role.path and not _is_name_of_something(one)]
    return max(others, key=lambda one: (len(set(one.values)), sum(map(len, one.values))), default=None)


def _is_name_of_something(field: RecordField) -> bool:
    """An id, a time or a number, or a meaning that has a key of its own."""
    is_named = _names_something(field) or _is_time(field)
    has_meaning = any(pattern.search(field.name) for pattern in (*_MEANINGS.values(), _LABELS))
    return is_named or has_meaning or not any(letter.isalpha() for value in field.values for letter in value)


def _role_rank(field: RecordField) -> float:
    """How much a field looks like who speaks: a few short words, again and again, and a telling name."""
    words = {value.strip().casefold() for value in field.values}
    if len(words) > _MAX_ROLES or any(len(word) > _LONGEST_ROLE for word in words):
        return 0.0
    known = any(_role_of(word)[1] for word in words)
    named = field.name in _ROLE_NAMES
    return (3.0 if known else 0.0) + (1.0 if named else 0.0) + (0.1 if len(words) < len(field.values) else 0.0)


def _role_of(word: str) -> tuple[str, bool]:
    """Our word for a role, and whether that is more than a guess."""
    key = word.strip().casefold()
    if key in ROLES:
        return ROLES[key], True
    patterns = (("system", _SYSTEMS), ("user", _USERS), ("assistant", _AGENTS))
    meant = next((meant for meant, pattern in patterns if pattern.search(key)), "")
    return meant, bool(meant)


def _written(candidate: Candidate) -> str:
    """The TOML: what was guessed, and in comments what else there is."""
    where, messages, fields, records, held = candidate
    outer = fields_of(records) if messages else []
    spoken = [one.path for one in fields if one is not None]
    own = [one for one in fields_of(held) if one.path not in spoken]
    lines = ["[conversation]"]
    lines += [f"records = {_text(where)}"] if where else []
    lines += [f"messages = {_text(messages)}"] if messages else ["# each record is a message"]
    id = _id(outer or own, is_message=not messages)
    lines += [f"id = {_text(id)}" if id else '# id = ""  # without it a conversation is named by its position']
    true, predicted = _meanings(own, id if not messages else "")
    true, of_users = _without_user_calls(true, fields.role, held)
    taken = {id, messages, *(one.path for one in outer if one.path.startswith(f"{messages}."))}
    taken |= {path for _, path in (*true, *predicted)}
    lines += _others(one for one in outer or _shared(own, id) if one.path not in taken)
    lines += ["", "[message]"]
    if fields.answer is not None:
        lines += [f"texts = {{ user = {_text(fields.text.path)}, assistant = {_text(fields.answer.path)} }}"]
    elif fields.role is None:
        lines += [f"texts = {{ user = {_text(fields.text.path)} }}  # who speaks is not said: add the agent's field"]
    else:
        lines += [f"role = {_text(fields.role.path)}", f"text = {_text(fields.text.path)}"]
    lines += [f"{key} = {_text(path)}" for key, path in true]
    lines += [f"# tool_calls = {_text(path)}  # left out: users call tools too" for _, path in of_users]
    if predicted:
        lines += ["", "[predicted]", *(f"{key} = {_text(path)}" for key, path in predicted)]
    if fields.role is not None:
        lines += ["", "[values.role]", *_roles(fields.role)]
    return "\n".join(lines) + "\n"


def _id(fields: Sequence[RecordField], *, is_message: bool) -> str:
    """The field that names a conversation; of messages, one that several of them share."""
    named = [one for one in fields if _names_something(one)]
    named = [one for one in named if not _OF_OTHERS.search(one.name)]
    plain = [one for one in named if all(isinstance(value, str | int) for value in one.values)]
    if is_message:
        plain = [one for one in plain if len(set(one.values)) < len(one.values)] or plain[:1]
    ranks = {name: rank for rank, name in enumerate(_ID_NAMES)}
    own = ranks["conversation"]  # the number of a ticket says as much as its id

    def rank(field: RecordField) -> tuple[int, int]:
        is_numbered = _NUMBERED.fullmatch(field.name) is not None
        return own if is_numbered else ranks.get(field.name, len(ranks)), field.path.count(".")

    best = min(plain, key=rank, default=None)
    return best.path if best else ""


def _names_something(field: RecordField) -> bool:
    return field.name in _ID_NAMES or field.name.endswith("id") or _NUMBERED.fullmatch(field.name) is not None


def _others(fields: Iterable[RecordField]) -> Iterator[str]:
    """Labels and dimensions that might be meant, as comments."""
    scalars = [one for one in fields if all(isinstance(value, str | int | float | bool) for value in one.values)]
    labels = [one for one in scalars if _LABELS.search(one.name)]
    short = [one for one in scalars if one not in labels and all(len(str(value)) < 60 for value in one.values)]
    for table, chosen in (("labels", labels), ("dimensions", short[:12])):
        if chosen:
            firsts = {one.name: one for one in reversed(chosen)}
            pairs = ", ".join(f"{_key(one.name)} = {_text(one.path)}" for one in reversed(firsts.values()))
            yield f"# {table} = {{ {pairs} }}"


_Paths = list[tuple[str, str]]
"""Keys of a mapping, each with a path."""


def _meanings(fields: Sequence[RecordField], id: str) -> tuple[_Paths, _Paths]:
    """Time, id, tool calls and dialogue state of a message, by their names; what the agent concluded apart."""
    true = [("time", one.path) for one in fields if _is_time(one)][:1]
    ids = ("id", "uuid", "message_id", "turn_id")
    true += [("id", one.path) for one in fields if one.name in ids and one.path != id][:1]
    predicted: _Paths = []
    for key, pattern in _MEANINGS.items():
        named = [one for one in fields if pattern.search(one.name)]
        if key == "tool_calls":
            lists = [one for one in named if any(isinstance(parsed(value), list) for value in one.values)]
            true += [(key, one.path) for one in lists][:1]
            continue
        concluded = [one for one in named if _PREDICTED.match(one.path.rpartition(".")[2])]
        true += [(key, one.path) for one in named if one not in concluded][:1]
        predicted += [(key, one.path) for one in concluded][:1]
    return true, predicted


def _without_user_calls(keys: _Paths, role: RecordField | None, messages: Sequence[Any]) -> tuple[_Paths, _Paths]:
    """Calls of tools apart, where users have some: a mapping reads every call as the agent's."""
    path = next((path for key, path in keys if key == "tool_calls"), "")
    callers = [as_text(value_at(one, role.path)) for one in messages if role and path and parsed(value_at(one, path))]
    if not any(_role_of(word)[0] == "user" for word in callers):
        return keys, []
    return [pair for pair in keys if pair[0] != "tool_calls"], [("tool_calls", path)]


def _shared(fields: Sequence[RecordField], id: str) -> list[RecordField]:
    """The fields of messages that have one value in all messages of a conversation: they may say something of it."""
    names = next((one.values for one in fields if one.path == id), [])
    return [
        one
        for one in fields
        if len(one.values) == len(names)
        and len({(name, str(value)) for name, value in zip(names, one.values, strict=True)}) == len(set(names))
    ]


def _is_time(field: RecordField) -> bool:
    is_named = field.name in TIMES or re.search(r"time|date|stamp|(^|_)(at|ts|when)$", field.name) is not None
    return is_named and all(moment(seconds(value)) is not None for value in field.values)


def _roles(role: RecordField) -> Iterator[str]:
    """Each word for a role, and the role; those that had to be guessed say so."""
    words = [word for word, _ in Counter(str(value).strip() for value in role.values).most_common(_MAX_ROLES)]
    known = {word: meant for word in words if (meant := _role_of(word)[0])}
    if "assistant" not in known.values():  # of a user and a system, the system is the agent
        known = {word: "assistant" if meant == "system" else meant for word, meant in known.items()}
    is_clear = {"user", "assistant"} <= {*known.values()}
    for word in words:
        if word in known:
            yield f"{_key(word)} = {_text(known[word])}"
        elif is_clear:
            # Beside a user and an agent, one more agent.
            yield f"{_key(word)} = {_text('assistant')}  # a guess: user, assistant, system or tool?"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)
