"""The toolkit of readers: the fields of a record, values of any kind made plain, and what is left over.

A reader takes fields out of a copy of the record. What is left over goes to `extras`, so that nothing is lost by being
overlooked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from typing import Any, NamedTuple

from convoscope.conversation import Time
from convoscope.conversation.events import is_media, moment
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import TimelineBuilder

JsonObject = dict[str, Any]

_ROLE_NAMES = {
    "system": "system developer sistema système systeme システム",
    "user": "user human customer client caller visitor "
    "kunde kundin nutzer nutzerin benutzer benutzerin anrufer anruferin besucher besucherin anwender anwenderin "
    "cliente clienta usuario usuaria llamante visitante "
    "cliente utilisateur utilisatrice appelant appelante usager visiteur visiteuse "
    "usuário usuária utilizador utilizadora chamador chamadora "
    "顧客 お客様 お客さま 客 ユーザー ユーザ 利用者 発信者 カスタマー",
    "assistant": "assistant agent bot ai model gpt chatbot operator representative advisor "
    "assistent assistentin agentin mitarbeiter mitarbeiterin berater beraterin kundenberater kundenberaterin "
    "kundenservice kundendienst ki "
    "agente asistente operador operadora asesor asesora representante ia "
    "assistante conseiller conseillère conseillere téléconseiller téléconseillère opérateur opératrice operateur "
    "operatrice "
    "assistente atendente consultor consultora robô "
    "オペレーター オペレータ エージェント アシスタント 担当者 担当 ボット スタッフ サポート",
    "tool": "tool function",
}
"""By role, its names in English, German, Spanish, French, Portuguese and Japanese."""
ROLES = {name: role for role, names in _ROLE_NAMES.items() for name in names.split()}
_OWN_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
ROLE_FIELDS = ("role", "speaker", "from", "sender", "author")
TEXT_FIELDS = ("text", "message", "value", "utterance", "body")
"""Other names for the content of a message, in logs of other programs."""
TIMES = ("timestamp", "created_at", "created", "time", "ts")
MAX_EMBEDDED = 1024


class Content(NamedTuple):
    """The text of a message, and its parts that are more than text."""

    text: str
    parts: list[Any]


def is_role(value: Any) -> bool:
    return isinstance(value, str) and value in ROLES


class Fields(dict[str, Any]):
    """A copy of a record. A reader takes fields out of it; what it leaves is kept, and noted where the name is unknown.

    `of` names the record in notes: `call.foo` is the field `foo` of a call that the reader does not know. `usual` are
    names that the format is known to have, which the reader leaves to `extras`.

    >>> notes = Notes()
    >>> record = {"id": 7, "turns": [{"who": "user"}], "colour": "red", "status": "done"}
    >>> call = Fields(record, "call", notes, usual={"status"})
    >>> call.text("id", "call_id"), [turn.text("who") for turn in call.each("turns", "turn")]
    ('7', ['user'])
    >>> call.rest(), [note.code for note in notes.taken]
    ({'colour': 'red', 'status': 'done'}, ['call.colour'])
    """

    __slots__ = ("notes", "of", "usual")

    def __init__(self, record: Any, of: str, notes: Notes, usual: Set[str] = frozenset()) -> None:
        if isinstance(record, dict):
            self.update(record)
        self.of, self.notes, self.usual = of, notes, usual

    def take(self, *names: str, kind: type | tuple[type, ...] = object) -> Any:
        """The first of these fields that has a value of this kind; None where no field has one."""
        for name in names:
            value = self.get(name)
            if value is not None and value != "" and isinstance(value, kind):
                return self.pop(name)
        return None

    def text(self, *names: str) -> str:
        """A text, or a number as text; "" where no field has one."""
        for name in names:
            value = self.get(name)
            if value is not None and (text := as_text(value)):
                del self[name]
                return text
        return ""

    def number(self, *names: str) -> float | None:
        """A finite number; None where no field has one."""
        for name in names:
            if (number := as_number(self.get(name))) is not None:
                del self[name]
                return number
        return None

    def flag(self, name: str) -> bool | None:
        """True or false; None where the field has neither."""
        return self.pop(name) if isinstance(self.get(name), bool) else None

    def object(self, *names: str, of: str = "", usual: Set[str] = frozenset()) -> Fields:
        """An object inside the record, to take from in turn; empty where no field has one."""
        return Fields(self.take(*names, kind=dict), of or (names[0] if names else self.of), self.notes, usual)

    def each(self, name: str, of: str = "", usual: Set[str] = frozenset()) -> Iterator[Fields]:
        """The objects of a list; a member that is no object is set aside."""
        for member in self.take(name, kind=list) or ():
            if isinstance(member, dict):
                yield Fields(member, of or name, self.notes, usual)
            else:
                self.notes.set_aside(f"{of or name}_not_an_object", repr(member)[:80])

    def rest(self, seq: int = -1) -> JsonObject:
        """What was not taken, for `extras`; names that are not usual are noted as unknown, at this event."""
        extras = filled(self)
        if not extras:
            return extras
        for name in sorted(extras.keys() - self.usual):
            self.notes.unknown(f"{self.of}.{name}", seq)
        return extras


def take_role(fields: JsonObject, timeline: TimelineBuilder) -> str:
    """The role as the model names it; a name that OpenAI does not use is noted."""
    name = fields.pop("role")
    if name not in _OWN_ROLES:
        timeline.notes.inferred(f"role_{name}_is_{ROLES[name]}", "", timeline.seq)
    return ROLES[name]


def speaker_field(record: JsonObject) -> str:
    """The field that says who speaks, under any name and spelling; "" without such a field, or without content."""
    for name in ROLE_FIELDS:
        value = record.get(name)
        if isinstance(value, str) and value.strip().casefold() in ROLES:
            return name if "content" in record or any(field in record for field in TEXT_FIELDS) else ""
    return ""


def unknown_role(record: Any) -> str:
    """The label of the speaker of a message, where its role is unknown; "" for anything else."""
    if not isinstance(record, dict) or not any(isinstance(record.get(name), str) for name in ("content", *TEXT_FIELDS)):
        return ""
    labels = (record[name].strip() for name in ROLE_FIELDS if isinstance(record.get(name), str))
    return next((label for label in labels if label and label.casefold() not in ROLES), "")


def in_plain_names(message: JsonObject, timeline: TimelineBuilder) -> JsonObject:
    """A message with its role as `role` and its text as `content`, a copy if need be; other names are noted."""
    if message.get("content") not in (None, "") and is_role(message.get("role")):
        return message
    fields = dict(message)
    if not is_role(fields.get("role")) and (field := speaker_field(fields)):
        fields["role"] = fields.pop(field).strip().casefold()
        if field != "role":
            timeline.infer_once(f"speaker_in_{field}")
    if fields.get("content") in (None, "") and not isinstance(fields.get("parts"), list):
        text = next((name for name in TEXT_FIELDS if isinstance(fields.get(name), str) and fields[name].strip()), "")
        if text:
            fields["content"] = fields.pop(text)
            timeline.infer_once(f"text_in_{text}")
    return fields


def take_time(fields: JsonObject, timeline: TimelineBuilder) -> Time | None:
    """The time of a message; one that cannot be read is left where it was."""
    for name in TIMES:
        if fields.get(name) not in (None, ""):
            time = timeline.time(fields[name])
            if time is not None:
                del fields[name]
            return time
    return None


def take_content(fields: JsonObject, notes: Notes, seq: int) -> Content:
    """Text of a string or of a list of parts; other fields of a part are kept."""
    content = fields.pop("content", None)
    if content is None and isinstance(fields.get("parts"), list):
        content = fields.pop("parts")
    if isinstance(content, str):
        return Content(content, [])
    if content is None:
        return Content("", [])
    texts: list[str] = []
    parts: list[Any] = []
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            texts.append(part)
            continue
        if not isinstance(part, dict):
            notes.set_aside("content_not_text", repr(part)[:80], seq)
            parts.append(without_payload(part, notes, seq))
            continue
        unread = Fields(part, "part", notes)
        text = unread.take("text", "refusal", "transcript", kind=str)
        if text is None and unread.get("text") == "":
            text = unread.pop("text")
        if text is not None:
            texts.append(text)
        if filled({**unread, "type": None if text is not None else unread.get("type")}):
            parts.append(without_payload(unread, notes, seq))
    if not texts and parts and not any(map(is_media, parts)) and isinstance(parts[0], dict):
        notes.set_aside("content_not_text", ", ".join(map(str, parts[0]))[:80], seq)
    return Content("\n".join(texts), parts)


def filled(fields: JsonObject) -> JsonObject:
    """Without fields that hold nothing."""
    return {name: value for name, value in fields.items() if value is not None and value not in ("", [], {})}


def without_payload(value: Any, notes: Notes, seq: int) -> Any:
    """Sound and pictures are described, not copied."""
    if isinstance(value, str) and len(value) > MAX_EMBEDDED:
        notes.ignored("embedded_data", f"{len(value)} characters", seq)
        return f"({len(value)} characters left out)"
    if isinstance(value, dict):
        return {name: without_payload(inner, notes, seq) for name, inner in value.items()}
    if isinstance(value, list):
        return [without_payload(inner, notes, seq) for inner in value]
    return value


def answer_of(content: Any, notes: Notes, seq: int) -> Any:
    """What a tool answered: its text where it is text, else the value as it is."""
    if isinstance(content, list) and content:
        text_and_parts = take_content({"content": content}, Notes(), seq)
        return without_payload(content, notes, seq) if text_and_parts.parts else text_and_parts.text
    return content


def as_object(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def as_text(value: Any) -> str:
    """A text, or a number as text; nothing else is a name or an id."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def as_number(value: Any) -> float | None:
    """A finite number; a truth value is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def number_in(text: Any) -> float | None:
    """The finite number that a text says; None for any other text."""
    try:
        return as_number(float(text))
    except (TypeError, ValueError, OverflowError):
        return None


def from_milliseconds(value: Any) -> float | None:
    """Seconds; None for what is no length of time."""
    milliseconds = as_number(value)
    return None if milliseconds is None or milliseconds < 0 else round(milliseconds / 1000, 6)


def wall(value: Any) -> float | None:
    """Seconds of the wall clock; None for any other time."""
    read = moment(value)
    return read.at if read is not None and read.kind == "wall" else None


def in_order(times: Sequence[float | None]) -> list[int]:
    """Indexes by time; what has no time stays behind what came before it."""
    keys: list[float] = []
    latest = -math.inf
    for at in times:
        latest = latest if at is None else at
        keys.append(latest)
    return sorted(range(len(times)), key=lambda index: (keys[index], index))
