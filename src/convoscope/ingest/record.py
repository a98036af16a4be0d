"""The toolkit of readers: fields taken from a record by their names, values of any kind made plain, what is left over.

Fields are taken out of a copy of the record. What is left over goes to `extras`, so that nothing can be lost by being
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


_ROLE_WORDS = {
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
"""By role, its words in English, German, Spanish, French, Portuguese and Japanese."""
ROLES = {word: role for role, words in _ROLE_WORDS.items() for word in words.split()}


_OWN_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


ROLE_FIELDS = ("role", "speaker", "from", "sender", "author")
TEXT_FIELDS = ("text", "message", "value", "utterance", "body")
"""Other names for the content of a message, as loggers of one's own call it."""


TIMES = ("timestamp", "created_at", "created", "time", "ts")


MAX_EMBEDDED = 1024


class Content(NamedTuple):
    """The text of a message, and its parts that are more than text."""

    text: str
    parts: list[Any]


def is_role(value: Any) -> bool:
    return isinstance(value, str) and value in ROLES


def take_role(facts: JsonObject, timeline: TimelineBuilder) -> str:
    """The role, in our words; one that OpenAI does not use is noted."""
    name = facts.pop("role")
    if name not in _OWN_ROLES:
        timeline.notes.inferred(f"role_{name}_is_{ROLES[name]}", "", timeline.seq)
    return ROLES[name]


def speaker_field(record: JsonObject) -> str:
    """The field that says who speaks, of whatever name and spelling; "" where there is none, or nothing to say."""
    for name in ROLE_FIELDS:
        value = record.get(name)
        if isinstance(value, str) and value.strip().casefold() in ROLES:
            return name if "content" in record or any(field in record for field in TEXT_FIELDS) else ""
    return ""


def unknown_role(record: Any) -> str:
    """The word for the speaker of a message, where it is none that is known; "" for anything else."""
    if not isinstance(record, dict) or not any(isinstance(record.get(name), str) for name in ("content", *TEXT_FIELDS)):
        return ""
    words = (record[name].strip() for name in ROLE_FIELDS if isinstance(record.get(name), str))
    return next((word for word in words if word and word.casefold() not in ROLES), "")


def in_plain_names(message: JsonObject, timeline: TimelineBuilder) -> JsonObject:
    """A copy of a message with its role as `role` and its text as `content`; other names are noted."""
    facts = dict(message)
    if not is_role(facts.get("role")) and (field := speaker_field(facts)):
        facts["role"] = facts.pop(field).strip().casefold()
        if field != "role":
            timeline.infer_once(f"speaker_in_{field}")
    if facts.get("content") in (None, "") and not isinstance(facts.get("parts"), list):
        text = next((name for name in TEXT_FIELDS if isinstance(facts.get(name), str) and facts[name].strip()), "")
        if text:
            facts["content"] = facts.pop(text)
            timeline.infer_once(f"text_in_{text}")
    return facts


def take(facts: JsonObject, *names: str, kind: type | tuple[type, ...] = str) -> Any:
    """The first of these fields that has a value of this kind, taken out; None where there is none."""
    for name in names:
        value = facts.get(name)
        if isinstance(value, kind) and value != "":
            return facts.pop(name)
    return None


def take_text(facts: JsonObject, *names: str) -> str:
    """An id or a name, as text."""
    value = take(facts, *names, kind=(str, int))
    return "" if value is None else str(value)


def take_time(facts: JsonObject, timeline: TimelineBuilder) -> Time | None:
    """The time of a message; one that cannot be read is left where it was."""
    for name in TIMES:
        if facts.get(name) not in (None, ""):
            time = timeline.time(facts[name])
            if time is not None:
                del facts[name]
            return time
    return None


def take_content(facts: JsonObject, notes: Notes, seq: int) -> Content:
    """Text of a string or of a list of parts; what a part holds beside its text is kept with it."""
    content = facts.pop("content", None)
    if content is None and isinstance(facts.get("parts"), list):
        content = facts.pop("parts")
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
        unread = dict(part) if isinstance(part, dict) else part
        if not isinstance(part, dict):
            notes.set_aside("content_not_text", repr(part)[:80], seq)
        text = take(unread, "text", "refusal", "transcript") if isinstance(unread, dict) else None
        if text is None and isinstance(unread, dict) and unread.get("text") == "":
            text = unread.pop("text")
        if text is not None:
            texts.append(text)
        if not isinstance(unread, dict) or filled({**unread, "type": None if text is not None else unread.get("type")}):
            parts.append(without_payload(unread, notes, seq))
    if not texts and parts and not any(map(is_media, parts)) and isinstance(parts[0], dict):
        notes.set_aside("content_not_text", ", ".join(map(str, parts[0]))[:80], seq)
    return Content("\n".join(texts), parts)


class Fields:
    """A record that a reader takes fields out of. What it leaves is kept, and noted where the name is unknown.

    `of` names the record in notes: `call.foo` is the field `foo` of a call that the reader does not know.

    >>> notes = Notes()
    >>> call = Fields({"id": 7, "turns": [{"who": "user"}], "colour": "red", "status": "done"}, "call", notes)
    >>> call.text("id", "call_id"), [turn.text("who") for turn in call.each("turns", "turn")]
    ('7', ['user'])
    >>> call.rest(usual={"status"}), [note.code for note in notes.taken]
    ({'colour': 'red', 'status': 'done'}, ['call.colour'])
    """

    def __init__(self, record: Any, of: str, notes: Notes) -> None:
        self.left: JsonObject = dict(record) if isinstance(record, dict) else {}
        self.of = of
        self.notes = notes

    def __contains__(self, name: str) -> bool:
        return name in self.left

    def take(self, *names: str, kind: type | tuple[type, ...] = object) -> Any:
        """The first of these fields that has a value of this kind; None where no field has."""
        for name in names:
            value = self.left.get(name)
            if value is not None and value != "" and isinstance(value, kind):
                return self.left.pop(name)
        return None

    def text(self, *names: str) -> str:
        """A text, or a number as text; "" where no field has one."""
        for name in names:
            if text := as_text(self.left.get(name)):
                del self.left[name]
                return text
        return ""

    def number(self, *names: str) -> float | None:
        """A finite number; None where no field has one."""
        for name in names:
            if (number := as_number(self.left.get(name))) is not None:
                del self.left[name]
                return number
        return None

    def object(self, *names: str, of: str = "") -> Fields:
        """An object inside the record, to take from in turn; empty where no field has one."""
        return Fields(self.take(*names, kind=dict), of or (names[0] if names else self.of), self.notes)

    def each(self, name: str, of: str = "") -> Iterator[Fields]:
        """The objects of a list; a member that is no object is set aside."""
        for member in self.take(name, kind=list) or ():
            if isinstance(member, dict):
                yield Fields(member, of or name, self.notes)
            else:
                self.notes.set_aside(f"{of or name}_not_an_object", repr(member)[:80])

    def rest(self, usual: Set[str] = frozenset(), seq: int = -1) -> JsonObject:
        """What was not taken, for `extras`; names that are not usual are noted as unknown."""
        extras = filled(self.left)
        for name in sorted(extras.keys() - usual):
            self.notes.unknown(f"{self.of}.{name}", seq)
        return extras


def filled(facts: JsonObject) -> JsonObject:
    """Without fields that hold nothing."""
    return {name: value for name, value in facts.items() if value is not None and value not in ("", [], {})}


def leftovers(facts: JsonObject, usual: Set[str], of: str, notes: Notes) -> JsonObject:
    """What nobody took, for `extras`; names that are not usual there are noted as unknown."""
    extras = filled(facts)
    for name in sorted(extras.keys() - usual):
        notes.unknown(f"{of}.{name}")
    return extras


def without_payload(value: Any, notes: Notes, seq: int) -> Any:
    """Sound and pictures are described, not copied."""
    if isinstance(value, str) and len(value) > MAX_EMBEDDED:
        notes.ignored("embedded_data", f"{len(value)} characters", seq)
        return f"({len(value)} characters left out)"
    if isinstance(value, dict):
        return {name: without_payload(one, notes, seq) for name, one in value.items()}
    if isinstance(value, list):
        return [without_payload(one, notes, seq) for one in value]
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
    """A finite number; truth values are none."""
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
    except (TypeError, ValueError):
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
    """Places by time; what has none stays behind what stood before it."""
    keys: list[float] = []
    latest = -math.inf
    for at in times:
        latest = latest if at is None else at
        keys.append(latest)
    return sorted(range(len(times)), key=lambda place: (keys[place], place))
