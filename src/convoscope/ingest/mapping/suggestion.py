"""A mapping for a log of an unknown kind, guessed from its fields and tried on its records, for a person to correct."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from convoscope.errors import ConvoscopeError, InputError
from convoscope.harmless import one_line
from convoscope.harmless import toml_text as _text
from convoscope.ingest.discover import sample_of
from convoscope.ingest.io.json import BadJson, parsed
from convoscope.ingest.mapping.call_shapes import (
    CallGuess,
    calls_as_messages,
    calls_in_messages,
    results_as_messages,
    results_in_messages,
)
from convoscope.ingest.mapping.candidates import Candidate, candidates
from convoscope.ingest.mapping.declaration import INSTRUCTIONS, value_at
from convoscope.ingest.mapping.fields import RecordField, fields_of, texts_in
from convoscope.ingest.mapping.meanings import (
    Condition,
    conditions,
    control_texts,
    grouping_path,
    id_path,
    is_newest_first,
    meanings,
    others,
    outcome_paths,
    shared,
    time_guess,
)
from convoscope.ingest.mapping.role_words import ambiguous_words, is_no_speech, role_in, role_of
from convoscope.ingest.mapping.transcripts import transcript_messages
from convoscope.ingest.mapping.trial import MappingTrial, tried
from convoscope.ingest.reader import Sample
from convoscope.ingest.record import as_text

_MAX_ROLES = 12
_MAX_RECORDS = 200
_MAX_CANDIDATES = 40
_MAX_FAULTS = 4
_LONG_TEXT = 200
"""Characters of a text that is more likely an instruction than a line in a chat."""
_USUAL = 0.5
"""The share of messages that have a field."""
_GOLD = "  # a guess: as an annotator says it; what a model concluded belongs into [predicted]"
_BY_HAND = "write a mapping by hand, as docs/guides/mapping.md shows, or a reader"


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
    faults: list[tuple[int, str]] = []
    for candidate in islice(candidates(records), _MAX_CANDIDATES):
        toml = _written(candidate)
        try:
            trial = tried(toml, records, sample.path)
        except ConvoscopeError as error:
            faults.append((0, f"{candidate.title}: {error.message}"))
            continue
        if wrong := next(trial.faults(), ""):
            faults.append((len(trial.texts), f"{candidate.title}: {wrong}"))
        elif best is None or trial.weight > best[0].weight:
            best = trial, candidate, toml
    if best is None:
        nearest = [fault for _, fault in sorted(faults, key=lambda pair: -pair[0])]
        some = list(dict.fromkeys(nearest))[:_MAX_FAULTS] or ["no field holds texts of people"]
        raise InputError(
            "\n    ".join(["what people say was not found:", *(one_line(each) for each in some)]), hint=_BY_HAND
        )
    trial, candidate, toml = best
    return "\n".join([*_head(trial, candidate), "", toml])


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
    if trial.left_out:
        yield f"# Messages that `where` leaves out: {trial.left_out:,}."
    if trial.silent:
        yield f"# {trial.silent:,} of {trial.messages:,} messages of user and agent have neither text nor tool call."
    if not candidate.messages and trial.conversations == 1 and trial.records > 1:
        yield "# No field names the conversation: all records of a file are one."
    if trial.unread:
        yield "# Texts that are not read: " + ", ".join(f"{one_line(path, 80)} {n:,}" for path, n in trial.unread) + "."


def _written(candidate: Candidate) -> str:
    """The TOML: what was guessed, and in comments what else there is."""
    where, messages, fields, records, held = candidate
    outer = fields_of(records) if messages else []
    spoken = [one.path for one in fields if one is not None]
    # What is inside of a text is said, and no field of the message.
    own = [one for one in fields_of(held) if not any(_is_in(one.path, path) for path in spoken)]
    id = id_path(outer or own, len(held) if not messages else 0, is_exchange=fields.answer is not None)
    grouping = grouping_path(own, fields.role) if not (id or messages) else ""
    usual = [one for one in own if len(one.values) > _USUAL * len(held)]
    true, predicted = meanings(own, usual, id if not messages else "")
    texts = _Texts(candidate, id or grouping)
    calls = calls_in_messages(held, fields.text.path)
    speaker = fields.role.path if fields.role is not None else ""
    filters = [*conditions(own, held, fields.text.path, speaker), *_by_role(fields.role, held)]
    lines = ["[conversation]"]
    lines += [f"records = {_text(where)}"] if where else []
    lines += [f"messages = {_text(messages)}"] if messages else ["# each record is a message"]
    lines += _id_lines(id, grouping)
    taken = {id, grouping, messages, *(one.path for one in outer if one.path.startswith(f"{messages}."))}
    taken |= {path for _, path in (*true, *predicted)} | {calls.path}
    ended = outcome_paths(outer)
    taken |= {path for _, path in ended}
    lines += _others(one for one in outer or shared(own, id or grouping) if one.path not in taken)
    lines += ["", "[message]"]
    if fields.answer is not None:
        both = f"texts = {{ user = {_text(fields.text.path)}, assistant = {_text(fields.answer.path)} }}"
        lines += [f"{both}  # a guess: the user asks, and the agent answers"]
    elif fields.role is None:
        lines += [f"texts = {{ user = {_text(fields.text.path)} }}  # who speaks is not said: add the agent's field"]
    else:
        lines += [f"role = {_text(fields.role.path)}", f"text = {_text(fields.text.path)}"]
    lines += _time_lines(usual, texts.conversations)
    lines += [f"{key} = {_text(path)}" + ("" if key == "id" else _GOLD) for key, path in true]
    lines += _where_lines(filters)
    if control := control_texts(texts.all_texts):
        lines += [f"control = [{', '.join(map(_text, control))}]  # a guess: marks, and not words"]
    lines += _call_lines(calls, candidate)
    if ended:
        lines += ["", "[outcome]", *(f"{key} = {_text(path)}" for key, path in ended)]
    if predicted:
        lines += ["", "[predicted]", *(f"{key} = {_text(path)}" for key, path in predicted)]
    if fields.role is not None:
        lines += ["", "[values.role]", *_roles(fields.role, texts)]
    return "\n".join(lines) + "\n"


def _is_in(path: str, outer: str) -> bool:
    return path == outer or path.startswith(f"{outer}.")


class _Texts:
    """The messages of each conversation, and what is said in them."""

    def __init__(self, candidate: Candidate, id: str) -> None:
        self.candidate = candidate
        if candidate.messages:
            held = (parsed(value_at(record, candidate.messages)) for record in candidate.records)
            listed = [list(one.values()) if isinstance(one, dict) else transcript_messages(one) or one for one in held]
            self.conversations = [one for one in listed if isinstance(one, list)]
        else:
            groups: dict[str, list[Any]] = {}
            for record in candidate.records:
                groups.setdefault(as_text(value_at(record, id or None)), []).append(record)
            self.conversations = list(groups.values())

    def of(self, messages: Sequence[Any]) -> Iterator[tuple[str, str]]:
        """The word for the role, and the text."""
        role, text, _ = self.candidate.fields
        for message in messages:
            words = "\n".join(texts_in(value_at(message, text.path)) or ())
            if words.strip():
                yield as_text(value_at(message, role.path)).strip() if role is not None else "", words

    @property
    def all_texts(self) -> Iterator[str]:
        return (text for messages in self.conversations for _, text in self.of(messages))


def _id_lines(id: str, grouping: str) -> list[str]:
    if grouping:
        return [f"id = {_text(grouping)}  # a guess: both sides share its values"]
    return [f"id = {_text(id)}" if id else '# id = ""  # without it a conversation is named by its position']


def _time_lines(fields: Sequence[RecordField], conversations: Sequence[Sequence[Any]]) -> Iterator[str]:
    guess = time_guess(fields, conversations)
    if (guess is None or guess.unsure) and is_newest_first(fields, conversations):
        yield 'order = "newest_first"'
    if guess is None:
        return
    if guess.unsure:
        yield f"# time = {_text(guess.path)}  # {guess.unsure}"
        return
    yield f"time = {_text(guess.path)}" + (f"  # {guess.remark}" if guess.remark and not guess.order else "")
    if guess.unit:
        yield f"time_unit = {_text(guess.unit)}"
    if guess.order:
        yield f"order = {_text(guess.order)}" + (f"  # {guess.remark}" if guess.remark else "")


def _by_role(role: RecordField | None, messages: Sequence[Any]) -> list[Condition]:
    """Words for a role that say that an entry is a note or an event."""
    if role is None:
        return []
    words = list(dict.fromkeys(str(value) for value in role.values))
    left_out = [word for word in words if is_no_speech(word)]
    wanted: list[str | int | float | bool] = [word for word in words if word not in left_out]
    if len(role.values) < len(messages):
        wanted.append(False)
    return [Condition(role.path, wanted, left_out)] if left_out and wanted else []


def _where_lines(filters: Sequence[Condition]) -> Iterator[str]:
    if not filters:
        return
    pairs = ", ".join(f"{_key(one.path)} = {_values(one.wanted)}" for one in {f.path: f for f in filters}.values())
    left_out = ", ".join(dict.fromkeys(one_line(word, 40) for one in filters for word in one.left_out))
    yield f"where = {{ {pairs} }}  # a guess: leaves out {left_out}"


def _values(wanted: Sequence[Any]) -> str:
    written = [_text(one) if isinstance(one, str) else json.dumps(one) for one in wanted]
    return written[0] if len(written) == 1 else f"[{', '.join(written)}]"


def _call_lines(calls: CallGuess, candidate: Candidate) -> Iterator[str]:
    """Calls of tools and their results, in messages or as messages."""
    held, text = candidate.held, candidate.fields.text.path
    keys = dict(calls.keys)
    is_left_out = calls.path and "caller" not in keys and _of_users(calls.path, candidate)
    if is_left_out:
        yield f"# tool_calls = {_text(calls.path)}  # left out: users call tools too"
    elif calls.path:
        yield f"tool_calls = {_text(calls.path)}"
    results = results_in_messages(held, text, calls.path)
    answers = results if results.path else results_as_messages(held, text)
    if results.path:
        yield f"tool_results = {_text(results.path)}"
    apart = CallGuess() if calls.path else calls_as_messages(held, text)
    guess = calls if calls.path else apart
    for table, shape in (("tool_call", guess), ("tool_result", answers)):
        if (shape.keys and not (is_left_out and shape is calls)) or shape.kind:
            yield from ("", f"[{table}]")
            if shape.kind:
                yield f"where = {{ {_key(shape.kind[0])} = {_values(shape.kind[1])} }}"
            yield from (f"{key} = {_text(path)}" for key, path in shape.keys)


def _of_users(path: str, candidate: Candidate) -> bool:
    """Whether users call tools: a mapping reads every call as the agent's, unless the call says who calls."""
    role = candidate.fields.role
    callers = [as_text(value_at(one, role.path)) for one in candidate.held if role and parsed(value_at(one, path))]
    return any(role_of(word) == "user" for word in callers)


def _others(fields: Iterable[RecordField]) -> Iterator[str]:
    """Labels and dimensions that might be meant, as comments."""
    for table, paths in others(fields):
        pairs = ", ".join(f"{_key(name)} = {_text(path)}" for name, path in paths.items())
        yield f"# {table} = {{ {pairs} }}"


def _roles(role: RecordField, texts: _Texts) -> Iterator[str]:
    """Each word for a role, and the role. Who is not known is left to a person."""
    words = [word for word, _ in Counter(str(value).strip() for value in role.values).most_common(_MAX_ROLES)]
    is_flag = {*words} <= {"true", "false"}
    doubtful = ambiguous_words(words)
    known = {word: meant for word in words if (meant := role_in(role.name, word)) and word not in doubtful}
    if "assistant" not in known.values():  # of a user and a system, the system is the agent
        known = {word: "assistant" if meant == "system" else meant for word, meant in known.items()}
    for word in words:
        if word in known:
            meant = known[word]
            if meant == "system" and (word.casefold() == "developer" or _instructs(word, texts)):
                yield f"{_key(word)} = {_text(INSTRUCTIONS)}  # a guess: its texts come first, and are long"
            else:
                unsure = "  # a guess: the other side" if is_flag and word == "false" else ""
                yield f"{_key(word)} = {_text(meant)}{unsure}"
        elif not is_no_speech(word):
            yield f'# {_key(word)} = ""  # not known: user, assistant, system or tool?'


def _instructs(word: str, texts: _Texts) -> bool:
    """Whether the texts of a speaker are instructions: long, and before what others say."""
    lengths: list[int] = []
    for messages in texts.conversations:
        spoken = list(texts.of(messages))
        own = [index for index, (speaker, _) in enumerate(spoken) if speaker == word]
        if own != list(range(len(own))):
            return False
        lengths += [len(spoken[index][1]) for index in own]
    return bool(lengths) and median(lengths) >= _LONG_TEXT


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)
