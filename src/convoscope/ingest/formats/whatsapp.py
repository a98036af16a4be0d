"""WhatsApp chats as text: lines with a date, a time and a name, and lines that continue a message."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from convoscope.ingest.formats.messengers import known_roles
from convoscope.ingest.kits.talks import LoggedTalk, TalkMessage, TalkReader
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.report import Notes
from convoscope.ingest.speaker_labels import role_of

_HEAD = re.compile(
    r"^[\u200e\u200f\[]*(?P<day>\d{1,4}[./-]\d{1,2}[./-]\d{1,4}),?[\s\u202f]+"
    r"(?P<early>上午|下午|오전|오후|午前|午後)?[\s\u202f]*(?P<time>\d{1,2}[:.]\d{2}(?:[:.]\d{2})?)[\s\u202f_]*"
    r"(?P<half>[AaPp]\.?[\s\u202f]?[Mm]\.?)?\]?(?:\s*-)?\s+(?P<rest>.*)$"
)
_LATE = ("下午", "오후", "午後")
_NAME = re.compile(r"^(?:~[\s\u202f]*)?(?P<name>[^:\n]{1,80}): (?P<text>.*)$", re.DOTALL)
"""A name with a tilde is not in the address book of who exported the chat."""
_GONE = frozenset(
    {"this message was deleted", "you deleted this message", "diese nachricht wurde gelöscht", "null"}
    | {"se eliminó este mensaje", "eliminaste este mensaje", "ce message a été supprimé", "mensagem apagada"}
    | {"du hast diese nachricht gelöscht", "vous avez supprimé ce message", "você apagou esta mensagem"}
)
"""What the export writes instead of a message that is gone, in some languages; null was to be seen once."""
_EDITED = re.compile(
    r"[\s\u200e]{0,9}<(?:This message was edited|Diese Nachricht wurde bearbeitet|Se editó este mensaje)\.?>$"
)
_ATTACHED = re.compile(r"^\u200e?[\w-]{1,80}\.\w{2,5} \([\w ]{4,40}\)(?:\n|$)")
"""A file beside the chat: `IMG-20240105-WA0001.jpg (file attached)`; a caption may follow."""
_MEDIA = re.compile(r"^\u200e?<[^<>\n]{1,80}>$|^\u200e")
"""What the export writes instead of a picture or a sound: `<Media omitted>`, or a line with an invisible mark."""
_SHARE = 0.2
"""Of the first lines, so many begin a message at least."""


class WhatsAppReader(TalkReader):
    """One file is one chat."""

    name = "whatsapp"
    title = "WhatsApp chats"

    def detect(self, sample: Sample) -> Detection | None:
        if sample.container != "text" or not sample.values:
            return None
        heads = [_HEAD.match(str(line)) for line in sample.values]
        named = sum(head is not None and _NAME.match(head["rest"]) is not None for head in heads)
        fits = heads[0] is not None and named > 1 and named >= _SHARE * len(heads)
        return Detection(0.95, "lines with a date, a time and a name", "file") if fits else None

    def talks(self, group: RecordGroup, notes: Notes) -> Iterator[LoggedTalk]:
        entries: list[tuple[str, str, list[str]]] = []
        for line in (str(record.value) for record in group.records):
            head = _HEAD.match(line)
            if head is not None:
                half = re.sub(r"[.\s]", "", head["half"] or "").upper()
                if head["early"]:
                    half = "PM" if head["early"] in _LATE else "AM"
                time = f"{head['time'].replace('.', ':')} {half}".strip()
                entries.append((head["day"], time, [head["rest"]]))
            elif entries:
                entries[-1][2].append(line)
            elif line.strip():
                notes.set_aside("line_without_a_message", line[:80])
        day_first = _day_first([day for day, _, _ in entries])
        if day_first is None:
            notes.inferred("day_before_month", "no date has a day above 12")
        notes.inferred("time_zone_taken_as_utc")
        messages: list[TalkMessage] = []
        for day, time, lines in entries:
            at = _seconds(day, time, day_first is not False)
            if at is None:
                notes.set_aside("unreadable_time", f"{day} {time}")
            named = _NAME.match("\n".join(lines))
            if named is None:
                block = {"type": "text", "text": "\n".join(lines)}
                messages.append(TalkMessage(plain={"role": "", "content": [block]}, at=at, marker="system_message"))
                continue
            text = _EDITED.sub("", named["text"])
            if text != named["text"]:
                notes.ignored("mark_of_an_edit")
            plain = {
                "role": role_of(named["name"]),
                "name": named["name"],
                "content": [{"type": "text", "text": text}],
            }
            messages.append(TalkMessage(plain=plain, at=at, marker=_aside(text)))
        yield LoggedTalk(messages=known_roles(messages))


def _aside(text: str) -> str:
    """What an entry is, where the person did not write these words."""
    if text.strip(" .\u200e").casefold() in _GONE:
        return "message_deleted"
    attached = _ATTACHED.match(text)
    is_media = _MEDIA.match(text) is not None or (attached is not None and attached.end() == len(text))
    return "message_without_text" if is_media or not text.strip() else ""


def _day_first(days: list[str]) -> bool | None:
    """Whether the day comes before the month; None where no date shows it."""
    parts = [[int(part) for part in re.split(r"[./-]", day)] for day in days]
    if any(len(part) == 3 and part[0] > 31 for part in parts):
        return False  # the year comes first
    if any(part[0] > 12 for part in parts):
        return True
    return False if any(part[1] > 12 for part in parts) else None


def _seconds(day: str, time: str, day_first: bool) -> float | None:
    first, second, third = (int(part) for part in re.split(r"[./-]", day))
    year, month, date = (
        (first, second, third) if first > 31 else (third, second, first) if day_first else (third, first, second)
    )
    form = (
        ("%I" if time.endswith("M") else "%H")
        + ":%M"
        + (":%S" if time.count(":") == 2 else "")
        + (" %p" if time.endswith("M") else "")
    )
    try:
        clock = datetime.strptime(time, form).time()
        return datetime(
            year + 2000 if year < 100 else year, month, date, clock.hour, clock.minute, clock.second, tzinfo=UTC
        ).timestamp()
    except ValueError:
        return None


READER = WhatsAppReader()
