"""What might be the messages of a log, and in them who speaks and what: found by shape, the likeliest first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from convoscope.conversation.events import moment
from convoscope.ingest.mapping.declaration import EACH, Each, steps_of, written
from convoscope.ingest.mapping.fields import RecordField, fields_of, lists_of, texts_in, words_of
from convoscope.ingest.mapping.meanings import is_time, means_something, names_something
from convoscope.ingest.mapping.role_words import role_in, role_of
from convoscope.ingest.mapping.speech import is_language
from convoscope.ingest.record import ROLE_FIELDS, TEXT_FIELDS

_MAX_ROLES = 12
_MAX_TEXT_FIELDS = 3
_MAX_ROLE_FIELDS = 3
_LONGEST_ROLE = 40
_FEW_TEXTS = 0.3
_ROLE_NAMES = (*ROLE_FIELDS, "who", "actor", "direction", "participant", "participant_role", "type", "name")
_TEXT_NAMES = ("content", *TEXT_FIELDS, "msg", "transcript", "words")
_ASKED = ("user", "user_message", "user_text", "question", "query", "prompt", "input", "in", "request", "user_content")
_ANSWERED = (
    *("assistant", "system_response", "bot_response", "answer", "reply", "completion", "output", "out"),
    *("response", "final_response"),
)
"""Names of what each side says, in a record that holds both."""
_SAYS = r"[_ ]?(query|question|message|msg|text|utterance|input|says?|said|answer|response|reply|output|turn|content)"
_ASKS = re.compile(rf"(user|customer|client|caller|human|guest){_SAYS}")
_ANSWERS = re.compile(rf"(bot|agent|assistant|system|ai|model){_SAYS}")
_RATER = re.compile(r"annotator|rater|reviewer|grader|label+er|judge|evaluator")
"""Who says something of a conversation, and nothing in it."""
_IS_ID = re.compile(r"(?=[^\d]{0,200}\d)[\w-]{10,200}")
_NO_TALK = re.compile(
    r"examples?|few|shots?|demonstrations?|templates?|expected|references?|gold|candidates|suggestions|alternatives"
    r"|tools|definitions|scores?|grading|judge|critique|participants|speakers|members|people|summary|summaries|topics"
    r"|keywords|entities|annotations?|reviews?|ratings?|evaluations?|survey|feedback|questionnaire|faq"
)
"""Words in names of lists that only look like messages: prompts by example, proposals, grades."""


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

    @property
    def title(self) -> str:
        """What it takes for texts, and for who says them."""
        fields = self.fields
        inside = "".join(f"{one}." for one in (self.where, self.messages) if one)
        if fields.answer is not None:
            return f"texts at {inside}{fields.text.path} and {inside}{fields.answer.path}"
        role = f"role at {inside}{fields.role.path}" if fields.role is not None else "no field that says who speaks"
        return f"text at {inside}{fields.text.path}, {role}"


def is_no_talk(path: str) -> bool:
    """Whether a path leads to what looks like messages and was not said."""
    return any(map(_NO_TALK.fullmatch, (word for step in steps_of(path) for word in words_of(step))))


def candidates(records: Sequence[Any]) -> Iterator[Candidate]:
    """What might be messages, and in them who speaks and what; the likeliest first."""
    lists = lists_of(records)
    by_path = {one.path: one for one in lists}
    # A path through an id leads to one record, and to none of the next.
    named = [one for one in lists if not any(map(_IS_ID.fullmatch, steps_of(one.path))) and not is_no_talk(one.path)]
    ranked = [(one, fields) for one in named for fields in message_fields(one.values)]
    ranked.sort(
        key=lambda pair: (
            pair[1].answer is not None or knows_roles(pair[1].role),
            pair[1].role is not None,
            len(pair[0].values),
        ),
        reverse=True,
    )
    for inner, fields in ranked:
        # A document that holds a list of conversations, each with a list of messages.
        where, messages = _split(inner.path)
        held_in = by_path[where].values if where in by_path else records
        yield Candidate(where, messages, fields, held_in, inner.values)
    for fields in message_fields([one for one in records if isinstance(one, dict)]):
        yield Candidate("", "", fields, records, records)


def _split(path: str) -> tuple[str, str]:
    """The list of conversations in a path, and in them the list of messages: before and after the last star."""
    steps = steps_of(path)
    stars = [index for index, step in enumerate(steps) if isinstance(step, Each) and step == EACH]
    if not stars:
        return "", path
    return written(steps[: stars[-1]]), written(steps[stars[-1] + 1 :])


def knows_roles(role: RecordField | None) -> bool:
    return role is not None and any(role_in(role.name, str(value)) for value in role.values)


def message_fields(messages: Sequence[Any]) -> Iterator[MessageFields]:
    """Who speaks and what, in messages: the likeliest first; nothing where no field is a text of a person."""
    fields = fields_of(messages)
    plain = [one for one in fields if all(isinstance(value, str) for value in one.values)]
    written_in = [one for one in fields if _is_written(one) and not is_no_talk(one.path)]
    asked = _named(written_in, _ASKED, _ASKS, "user")
    answered = _named(written_in, _ANSWERED, _ANSWERS, "assistant")
    if asked is not None and answered is not None:
        yield MessageFields(None, asked, answered)
    flags = [one for one in fields if all(isinstance(value, bool) for value in one.values)]
    plain += [RecordField(one.path, [str(value).lower() for value in one.values]) for one in flags]
    texts = [one for one in written_in if _text_rank(one) > 0]
    texts = sorted(texts, key=_text_rank, reverse=True)[:_MAX_TEXT_FIELDS]
    short = None if texts else _short_text(plain)
    for text in [*texts, *([] if short is None else [short])]:
        roles = [one for one in plain if one.path != text.path and _role_rank(one) > 0]
        if not roles:
            yield MessageFields(None, text)
        for role in sorted(roles, key=_role_rank, reverse=True)[:_MAX_ROLE_FIELDS]:
            yield MessageFields(role, text)


def _is_written(field: RecordField) -> bool:
    return all(texts_in(value) is not None for value in field.values)


def _named(
    fields: Sequence[RecordField], names: Sequence[str], others: re.Pattern[str], meant: str
) -> RecordField | None:
    """The field with the best of these names; without one, the first whose name is of this kind.

    Of a message in an object, the field is what it says: `final_response.parts`.
    """
    best = min((one for one in fields if one.name in names), key=lambda one: names.index(one.name), default=None)
    best = best or next((one for one in fields if others.fullmatch(one.name)), None)
    if best is not None:
        return best
    outer = [(one, RecordField(one.path.rpartition(".")[0], [])) for one in fields if "." in one.path]
    inner = [(one, above.name) for one, above in outer if one.name in (*_TEXT_NAMES, "parts")]
    ranked = [one for name in names for one, above in inner if above == name]
    ranked += [one for one, above in inner if others.fullmatch(above) or role_of(above) == meant]
    ranked += [one for one in fields if role_of(one.name) == meant and any(map(is_language, one.texts))]
    return next(iter(ranked), None)


def _text_rank(field: RecordField) -> float:
    """How much a field looks like what people say: words with spaces, and a telling name."""
    texts = field.texts
    spoken = sum(is_language(text) or " " in text.strip() for text in texts) / max(len(texts), 1)
    named = field.name in _TEXT_NAMES or (field.name == "parts" and bool(texts))
    if not named and (spoken < _FEW_TEXTS or all(moment(text) is not None for text in texts)):
        return 0.0
    return (2.0 if named else 0.0) + spoken + min(len(field.values), 1000) / 10_000


def _short_text(fields: Sequence[RecordField]) -> RecordField | None:
    """What people say where they say a word at a time: next to a field of known roles, the one with most words."""
    role = max((one for one in fields if knows_roles(one)), key=_role_rank, default=None)
    if role is None:
        return None
    others = [one for one in fields if one.path != role.path and not _is_name_of_something(one)]
    return max(others, key=lambda one: (len(set(one.values)), sum(map(len, one.values))), default=None)


def _is_name_of_something(field: RecordField) -> bool:
    """An id, a time or a number, or a meaning that has a key of its own."""
    is_named = names_something(field) or is_time(field) or means_something(field)
    return is_named or not any(letter.isalpha() for value in field.values for letter in value)


def _role_rank(field: RecordField) -> float:
    """How much a field looks like who speaks: a few short words, again and again, and a telling name."""
    words = {value.strip().casefold() for value in field.values}
    if _RATER.search(field.name) or len(words) > _MAX_ROLES or any(len(word) > _LONGEST_ROLE for word in words):
        return 0.0
    meant = {role_in(field.name, word) for word in words} - {""}
    both = {"user", "assistant"} <= meant
    named = field.name in _ROLE_NAMES
    return 3.0 * bool(meant) + 2.0 * both + 1.0 * named + (0.1 if len(words) < len(field.values) else 0.0)
