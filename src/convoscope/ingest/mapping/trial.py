"""A mapping is tried on the first records of a log: what it reads, and why that cannot be a conversation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from pathlib import Path
from statistics import fmean, median_high
from typing import Any, NamedTuple

from convoscope.conversation import Conversation
from convoscope.errors import ConvoscopeError
from convoscope.ingest.control_text import without_control
from convoscope.ingest.io.json import parsed
from convoscope.ingest.mapping.candidates import is_no_talk
from convoscope.ingest.mapping.declaration import MappingFile, parse_mapping, value_at, written
from convoscope.ingest.mapping.fields import plain_name, texts_in
from convoscope.ingest.mapping.reader import MappedReader, left_out_by, word_of
from convoscope.ingest.mapping.speech import is_language, is_speech
from convoscope.ingest.reader import Record, RecordGroup
from convoscope.ingest.record import ROLE_FIELDS, ROLES, as_text
from convoscope.ingest.report import Notes

_SPEAKERS = ("user", "assistant")
_MOST_TEXTS = 20_000
_DEPTH = 9
_PAIR = 2
_TREE = re.compile(r"parent_?(id|span|run|observation|message|tool)|span_?id|parent$", re.IGNORECASE)
_SPAN = re.compile(r"span[_.]?(id|kind)$", re.IGNORECASE)
_AGENT_NAMES = frozenset({"agent", "agent_name", "agent_id", "subagent"})
_LEVELS = frozenset({"level", "severity", "log_level", "loglevel", "levelname"})
_LEVEL = frozenset({"debug", "info", "warn", "warning", "error", "critical", "trace", "notice"})
_OF_PROGRAMS = frozenset({"logger", "component", "service", "module", "source", "name", "process", "category", "type"})
_PLACEHOLDER = re.compile(r"\{\{?\s?[A-Za-z_]\w{0,40}\s?\}?\}|\$\{\w{1,40}\}")
"""Where a template of a prompt leaves room: `{question}`."""
_ROLES = (*ROLE_FIELDS, "type", "source", "author_type", "participant_role", "participantrole")


class MappingTrial(NamedTuple):
    """What a mapping reads of some records."""

    records: int
    empty: int
    """Records without a text."""
    messages: int
    silent: int
    """Messages of a user or an agent that have neither text nor tool call."""
    left_out: int
    """Messages that `where` leaves out."""
    conversations: int
    is_named: bool
    """Whether a field says who speaks."""
    words: Counter[tuple[str, str]]
    """How often each word for a role has a text, with our word for it."""
    texts: list[tuple[str, str]]
    """Who says what, of users and agents."""
    asked: int
    """Texts of users that something could follow: one after the other is one."""
    replied: int
    run: float
    """How many texts of one speaker follow each other, on average."""
    length: int
    """Texts of a conversation, in the middle."""
    repeats: int
    """Conversations that repeat their own texts, or begin with all of another one."""
    unread: list[tuple[str, int]]
    """Where else texts are, and how many."""
    elsewhere: list[tuple[str, int]]
    """Those of them that have a speaker."""
    agents: list[str]
    """Agents that are spoken to, where the messages of users name them."""
    is_program_log: bool
    """Whether what is taken for speakers are parts of a program."""
    tree: str
    """A field that says that records are not one after the other."""

    @property
    def weight(self) -> tuple[float, int]:
        """How much it reads: of candidates that are plausible, the one that reads most is taken."""
        return (sum(len(text) for _, text in set(self.texts)), self.replied)

    def count(self, role: str) -> int:
        return sum(count for (_, meant), count in self.words.items() if meant == role)

    def faults(self) -> Iterator[str]:
        """Why what was read cannot be conversations of people with an agent, in words."""
        words = ", ".join(f"{word or '(nothing)'} {count:,}" for (word, _), count in self.words.most_common(6))
        spoken_by = f"; who speaks: {words}" if self.is_named else ""
        if not self.texts:
            yield f"no texts of a user or an agent{spoken_by}"
            return
        yield from self._bad_texts()
        for role, who in (("user", "a user"), ("assistant", "the agent")):
            if not self.count(role):
                yield f"no texts of {who}{spoken_by}"
        unknown = sum(count for (_, meant), count in self.words.items() if not meant)
        if self.is_named and unknown > 0.5 * sum(self.words.values()):
            yield f"who says {unknown:,} of {sum(self.words.values()):,} texts is not known{spoken_by}"
        if len(self.agents) > 1:
            some = ", ".join(map(_short, self.agents[:3]))
            yield f"several agents are spoken to, such as {some}: some of it may be talk between agents"
        if self.is_program_log:
            yield "these are lines of a program's log: they have a level, and no speaker"
        if self.tree:
            yield f"the field {self.tree} says that these are spans of a trace, or branches, and not messages in order"
        if self.asked and self.replied < 0.3 * self.asked:
            yield f"only {self.replied:,} of {self.asked:,} texts of the user are followed by a reply"
        if self.length < 2:
            yield "most conversations have a single text"
        if self.empty > 0.5 * self.records:
            yield f"{self.empty:,} of {self.records:,} records have no text"
        if self.left_out > len(self.texts):
            yield f"{self.left_out:,} messages are notes or events by their kind, and only {len(self.texts):,} are said"
        if self.silent > 0.34 * self.messages:
            yield f"{self.silent:,} of {self.messages:,} messages of user and agent have no text there"
        lost = sum(count for _, count in self.elsewhere)
        if lost > 0.1 * len(self.texts):
            yield f"{lost:,} more messages are elsewhere, such as at {self.elsewhere[0][0]}: a mapping reads one list"

    def _bad_texts(self) -> Iterator[str]:
        texts = [text for _, text in self.texts]
        count = len(texts)
        for role in _SPEAKERS:
            own = [text for speaker, text in self.texts if speaker == role]
            if sum(not is_speech(text) for text in own) > 0.2 * len(own):
                yield f"what is read as texts are ids, names, numbers or data, such as {_shown(own)}"
                return
        if sum(_PLACEHOLDER.search(text[:2000]) is not None for text in texts) > 0.3 * count:
            yield f"the texts have room to be filled in, as templates of prompts have: {texts[0][:40]!r}"
        several = sum(is_language(text) for text in texts)
        if several < 0.25 * count and self.run >= 2:
            yield f"what is read as texts are single words, such as {_shown(texts)}"
        if self.repeats >= 0.25 * self.conversations:
            some = f"{self.repeats:,} of {self.conversations:,}"
            yield f"{some} conversations repeat texts, as where records hold histories"
        short = Counter(text.strip().casefold() for text in texts)
        if count >= 10 and len(short) < 0.25 * count and several < 0.5 * count:
            yield f"what is read as texts are {len(short):,} words that come again, such as {_shown(texts)}"


def _short(text: str) -> str:
    return repr(text[:40])


def _shown(texts: Sequence[str]) -> str:
    return repr(next((text for text in texts if not is_language(text)), texts[0])[:40])


def tried(toml: str, records: Sequence[Any], path: Path) -> MappingTrial:
    """Read the records by a mapping."""
    reader = MappedReader(MappingFile(parse_mapping(toml.encode(), "map.toml"), "map.toml", ""))
    conversations, empty = _conversations(reader, records, path)
    inner = [one for record in records for one in reader.records_of(record)]
    messages = [parsed(message) for one in inner for message in reader.messages_of(one) or ()]
    where = reader.mapping.message
    words = Counter[tuple[str, str]]()
    silent = counted = 0
    left_out = [one for one in messages if left_out_by(one, where.where) is not None]
    filtered = set(map(id, left_out))
    for message in (one for one in messages if id(one) not in filtered):
        word = word_of(message, where)
        meant = {one.casefold(): role for one, role in reader.mapping.values.role.items()}.get(word.casefold(), "")
        if reader.has_text(message):
            words.update([(word, meant)] if where.role else [(role, role) for role in where.texts])
        if where.texts or meant in _SPEAKERS:
            counted += 1
            silent += not (reader.has_text(message) or parsed(value_at(message, where.tool_calls)))
    timelines = [_spoken(one) for one in conversations]
    turns = [
        [(role, len(list(run))) for role, run in groupby(role for role, _ in spoken)] for spoken in timelines if spoken
    ]
    texts = [pair for spoken in timelines for pair in spoken]
    # What was read, in its parts, and what was left out on purpose.
    read = {spoken.meant().strip() for one in conversations for spoken in one.utterances}
    read |= {text for one in conversations for event in one.timeline for text in _texts_of(event)}
    ways = [where.text, *where.texts.values()]
    read |= {text.strip() for one in messages for way in ways for text in texts_in(value_at(one, way)) or ()}
    unread, elsewhere = _unread(records, read)
    return MappingTrial(
        records=len(records),
        empty=empty,
        messages=counted,
        silent=silent,
        left_out=len(left_out),
        conversations=len(conversations),
        is_named=where.role is not None,
        words=words,
        texts=texts,
        asked=sum(role == "user" for one in turns for role, _ in one),
        replied=sum(role == "user" and index + 1 < len(one) for one in turns for index, (role, _) in enumerate(one)),
        run=fmean(count for one in turns for _, count in one) if turns else 0.0,
        length=median_high(map(len, timelines)) if timelines else 0,
        repeats=_repeats(timelines) + _same([one.id for one in conversations], timelines),
        unread=unread,
        elsewhere=elsewhere,
        agents=_agents_of_users(messages, reader),
        is_program_log=_is_program_log(messages, where.role),
        tree=_tree(messages) or next((name for one in inner for name, _ in _named(one, 1) if _SPAN.search(name)), ""),
    )


def _agents_of_users(messages: Sequence[Any], reader: MappedReader) -> list[str]:
    """The agents that messages of users name."""
    roles, where = reader.mapping.values.role, reader.mapping.message
    users = [one for one in messages if isinstance(one, dict) and roles.get(word_of(one, where)) == "user"]
    named = (as_text(one[key]) for one in users for key in one if plain_name(str(key)) in _AGENT_NAMES)
    return list(dict.fromkeys(filter(None, named)))


def _is_program_log(messages: Sequence[Any], role: Any) -> bool:
    """Whether messages have a level, and the field of the speaker is named as parts of a program are."""
    name = plain_name(role.rpartition(".")[2]) if isinstance(role, str) else ""
    levels = [one[key] for one in messages if isinstance(one, dict) for key in one if plain_name(str(key)) in _LEVELS]
    return name in _OF_PROGRAMS and any(str(level).casefold() in _LEVEL for level in levels)


def _texts_of(event: Any) -> Iterator[str]:
    """The texts in calls, results and markers."""
    held = [getattr(event, name, None) for name in ("arguments", "result", "value")]
    return (text.strip() for text in _strings(held, 6))


def _strings(value: Any, depth: int) -> Iterator[str]:
    value = parsed(value)
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner, depth - 1)


def _tree(messages: Sequence[Any]) -> str:
    """A field that says that messages hang on others, unless each hangs on the one before it."""
    ids = {text for one in messages if isinstance(one, dict) for value in one.values() if (text := as_text(value))}
    before: dict[str, set[str]] = {}
    for message in messages:
        for name, value in _named(message, 3):
            if not _TREE.search(name) or value in (None, ""):
                continue
            if "span" in name.casefold() or as_text(value) in before.get(name, set()) or as_text(value) not in ids:
                return name
            before.setdefault(name, set()).add(as_text(value))
    return ""


def _named(value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    value = parsed(value)
    if isinstance(value, dict):
        yield from ((str(name), inner) for name, inner in value.items())
    if depth and isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _named(inner, depth - 1)


def _conversations(reader: MappedReader, records: Sequence[Any], path: Path) -> tuple[list[Conversation], int]:
    """The conversations of the records, grouped as the log would be, and how many records gave none."""
    groups: dict[str, list[Record]] = {}
    grouping = reader.grouping()
    for number, value in enumerate(records, 1):
        name = reader.key(value) if grouping == "key" else None if grouping == "file" else str(number)
        groups.setdefault(name or "", []).append(Record(value, number))
    conversations: list[Conversation] = []
    empty = 0
    for name, members in groups.items():
        read = len(conversations)
        try:
            conversations += reader.build(RecordGroup(name or path.name, path, members), Notes())
        except ConvoscopeError:
            # Of a document, the conversations that can be read are kept.
            empty += len(members) if len(conversations) == read else 0
    return conversations, empty


def _spoken(conversation: Conversation) -> list[tuple[str, str]]:
    """Who says what, of users and agents."""
    roles = {one.id: one.role for one in conversation.participants}
    spoken = [(roles.get(one.speaker, ""), one.meant().strip()) for one in conversation.utterances]
    return [(role, text) for role, text in spoken if role in _SPEAKERS and text]


def _repeats(timelines: Sequence[list[tuple[str, str]]]) -> int:
    """How many conversations repeat a third of their own long texts, or begin with all of another one."""
    whole = {_chain(spoken)[-1] for spoken in timelines if len(spoken) > 1}
    count = 0
    for spoken in timelines:
        long = [text for _, text in spoken if len(text.split()) > 3]
        count += len(set(long)) < 0.67 * len(long) or not whole.isdisjoint(_chain(spoken)[:-1])
    return count


def _same(ids: Sequence[str], timelines: Sequence[list[tuple[str, str]]]) -> int:
    """How many conversations say what another of the same id says: a log that tells of each call several times."""
    pairs = [(id, tuple(spoken)) for id, spoken in zip(ids, timelines, strict=True) if spoken]
    return len(pairs) - len(set(pairs))


def _chain(spoken: Sequence[tuple[str, str]]) -> list[int]:
    """A number for each beginning of what was said."""
    return list(accumulate(spoken, lambda before, pair: hash((before, pair)), initial=0))[1:]


def _unread(records: Sequence[Any], read: set[str]) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """Texts of the records that were not read, by where they are; and messages none of whose texts was read."""
    unread, elsewhere = Counter[str](), Counter[str]()
    known = set(read)
    budget = [_MOST_TEXTS]

    def look(value: Any, steps: tuple[str, ...]) -> tuple[list[str], bool]:
        """The texts below, and whether a message is among what is below."""
        budget[0] -= 1
        value = parsed(value)
        if budget[0] < 0 or len(steps) > _DEPTH:
            return [], False
        if isinstance(value, str):
            text = without_control(value, "user").words.strip()
            if not is_language(text) or len(text.split()) < 3:
                return [], False
            if text not in known:
                known.add(text)
                unread[written(steps)] += 1
            return [text], False
        if isinstance(value, list):
            below = [look(inner, steps) for inner in value]
        elif isinstance(value, dict):
            below = [look(inner, (*steps, str(name))) for name, inner in value.items()]
        else:
            return [], False
        texts = [text for some, _ in below for text in some]
        has_message = any(inside for _, inside in below)
        if not has_message and texts and _has_speaker(value):
            elsewhere[written(steps)] += read.isdisjoint(texts)
            has_message = True
        return texts, has_message

    for record in records:
        look(record, ())
    lost = [(path, count) for path, count in elsewhere.most_common(4) if count and not is_no_talk(path)]
    return unread.most_common(4), lost


def _has_speaker(value: dict[Any, Any] | list[Any]) -> bool:
    """Whether an object, or a pair of a role and a text, says that a user or an agent speaks."""
    if isinstance(value, list):
        is_pair = len(value) == _PAIR and all(isinstance(one, str) for one in value)
        return is_pair and ROLES.get(value[0].strip().casefold()) in _SPEAKERS
    for name, word in value.items():
        if str(name).casefold() in _ROLES:
            inner = parsed(word)
            words = inner.values() if isinstance(inner, dict) else [inner]
            if any(ROLES.get(str(one).strip().casefold()) in _SPEAKERS for one in words if isinstance(one, str)):
                return True
    return False
