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
    r"(?P<time>\d{1,2}[:.]\d{2}(?:[:.]\d{2})?)[\s\u202f]*(?P<half>[AaPp]\.?[\s\u202f]?[Mm]\.?)?\]?(?:\s*-)?\s+(?P<rest>.*)$"
)
_NAME = re.compile(r"^(?P<name>[^:\n]{1,80}): (?P<text>.*)$", re.DOTALL)
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
                text = {"type": "text", "text": "\n".join(lines)}
                messages.append(TalkMessage(plain={"role": "", "content": [text]}, at=at, marker="system_message"))
                continue
            role = role_of(named["name"])
            plain = {
                "role": role,
                "name": named["name"],
                "content": [{"type": "text", "text": named["text"]}],
            }
            aside = "message_without_text" if _MEDIA.match(named["text"]) or not named["text"].strip() else ""
            messages.append(TalkMessage(plain=plain, at=at, marker=aside))
        yield LoggedTalk(messages=known_roles(messages))


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
