"""Who speaks in a transcript: `Agent: …`, `[00:12] Caller: …`, `[SPEAKER_00]: …`, and the role that a label says."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from convoscope.ingest.record import ROLES
from convoscope.ingest.timeline_builder import TimelineBuilder
from convoscope.text.patterns import lazy_pattern

UNKNOWN = "unknown"
"""The role of a speaker whose label says none."""
UNKNOWN_SPEAKER = "speaker_of_unknown_role"
"""The note on such a speaker."""

_TRANSCRIPT_ROLES = {
    **ROLES,
    **dict.fromkeys(("rep", "csr", "support", "service", "sales", "soporte", "suporte", "seller"), "assistant"),
    **dict.fromkeys(("doctor", "nurse"), "assistant"),
    **dict.fromkeys(("buyer", "guest", "patient", "subscriber"), "user"),
}
_SPEAKERS = frozenset({"user", "assistant", "system"})
_SERVICE = frozenset({"support", "service", "care", "success", "rep", "representative", "agent", "advisor"})
"""After "customer" or "client", these name an agent who serves them."""
_HELP = frozenset({"service", "servicio", "serviço", "atención", "atencion", "atendimento", "soporte", "suporte"})
"""Before "client" or "cliente", these name those who serve: `Service client`, `Atención al cliente`."""
_CLIENTS = frozenset({"client", "cliente", "clientes", "clients"})
_WORDS = re.compile(r"[^\W\d_]+")
_CLOCK = r"(?P<{0}>\d{{1,3}}:\d{{2}}(?::\d{{2}})?(?:[.,]\d{{1,3}})?)"
_LABELLED = lazy_pattern(
    r"(?:>>+ ?)?(?:[\[(]?" + _CLOCK.format("before") + r"[\])]?(?:\s*[-–—|])?\s+)?"
    r"\*{0,2}\[?(?P<label>[^\W\d_][\w.'’()/& -]{0,39}?)\]?"
    r"(?:\s*[\[(]" + _CLOCK.format("after") + r"[\])])?\s*\*{0,2}(?::(?!//)\*{0,2}(?:\s|$)|：)"
)
_LONGEST = 90
"""A label and its time are at the very beginning: no more of a line is looked at."""
_NUMBERED = re.compile(r"(?:speaker|spk|channel)[ _]?\w{1,3}", re.IGNORECASE)

_KEY = re.compile(r"[a-z][a-z0-9]*(?:[A-Z][a-z0-9]*)+|_*[^\W_]+(?:[_.]+[^\W_]+)+_*|(?:[A-Z]\w*-)+[A-Z]\w*")
"""camelCase, snake_case, dotted.names, Header-Names."""
# fmt: off
_MACHINE_KEYS = frozenset(
    {
        "event", "data", "id", "retry", "info", "information", "error", "warn", "warning", "debug", "trace", "fatal",
        "critical", "notice", "verbose", "exception", "traceback", "log", "from", "to", "subject", "date", "cc", "bcc",
        "sent", "received", "host", "accept", "server", "connection", "cookie", "via", "origin", "referer", "location",
        "etag", "expires", "vary", "age", "allow", "commit", "author", "merge", "committer", "name", "version", "type",
        "key", "value", "status", "url", "uri", "path", "file", "port", "mode", "level", "message", "time", "timestamp",
        "model", "title", "description", "tags", "license", "summary", "note", "todo", "step", "result", "output",
        "input", "request", "response", "get", "post", "put", "delete", "patch", "http", "https", "enabled", "timeout",
        "user-agent", "in-reply-to",
    }
)
# fmt: on


_HEADINGS = frozenset(
    {"assessment", "conclusion", "conclusions", "diagnosis", "example", "findings", "important", "impression", "note"}
    | {"notes", "plan", "question", "questions", "reason", "recommendation", "recommendations", "request", "result"}
    | {"results", "step", "steps", "summary", "symptoms", "todo", "total", "treatment", "update", "warning"}
)
"""Words of lines that structure what one person says."""


class LabelledLine(NamedTuple):
    """A line that says who speaks."""

    label: str
    text: str
    at: float | None = None
    """Seconds, where the line has a time."""
    is_chat: bool = False
    """The line itself says that the label is a name."""


def labelled(line: str) -> LabelledLine | None:
    """The line as label and text; None where nothing in it looks like a label."""
    match = _LABELLED.match(line[:_LONGEST])
    if match is None:
        return None
    time = match["before"] or match["after"]
    sender = _sender(match["label"]) if match["before"] else ""
    label = sender or match["label"].strip()
    return LabelledLine(label, line[match.end() :].strip(), clock_seconds(time) if time else None, bool(sender))


def _sender(label: str) -> str:
    """Who writes, as Zoom has it after the time of a chat: `From Ann Lee to Everyone`; empty for other labels."""
    first, *words = label.split() or [""]
    if first != "From":
        return ""
    end = next((index for index, word in enumerate(words) if index and word in ("to", "To")), len(words))
    return " ".join(words[:end])


def clock_seconds(text: str) -> float:
    """Seconds of `01:02:03.500`, `02:03` or `02:03,500`."""
    seconds = 0.0
    for part in text.replace(",", ".").split(":"):
        seconds = 60 * seconds + float(part)
    return round(seconds, 3)


def role_of(label: str) -> str:
    """The role that a label says, such as `Agent 2` or `spk_customer`; unknown where it says none, or two."""
    words = _WORDS.findall(label.casefold())
    if words[1:] and words[0] in ("customer", "client") and words[1] in _SERVICE:
        return "assistant"
    if not _CLIENTS.isdisjoint(words) and not _HELP.isdisjoint(words):
        return "assistant"
    roles = {_TRANSCRIPT_ROLES[word] for word in words if word in _TRANSCRIPT_ROLES} & _SPEAKERS
    return roles.pop() if len(roles) == 1 else UNKNOWN


def is_machine_key(label: str) -> bool:
    """Whether a label is a key that programs write: `event`, `INFO`, `Content-Type`, `max_tokens`; never a role."""
    key = label.strip().casefold()
    if role_of(label) != UNKNOWN and key not in _MACHINE_KEYS:
        return False
    return key in _MACHINE_KEYS or (_KEY.fullmatch(label) is not None and not is_numbered(label))


def is_numbered(label: str) -> bool:
    """`SPEAKER_00`, `spk_1`, `Channel 2`."""
    return _NUMBERED.fullmatch(label) is not None


def speaker_labels(lines: Iterable[LabelledLine], are_all: bool = False) -> frozenset[str]:
    """Which labels are of speakers.

    Those that say a role, number a speaker, write in a chat or begin at least two lines; and, where those of a role
    are all in capitals, any other single word in capitals. What is left is text such as "Note: …".
    Where two roles or more are in capitals, such as DOCTOR and PATIENT, a label in lower case is text too.
    `are_all`: every speaker is labelled, so one line is enough.
    """
    lines = list(lines)
    counts = Counter(line.label for line in lines)
    chatting = {line.label for line in lines if line.is_chat}
    roles = {label for label in counts if role_of(label) != UNKNOWN}
    known = roles | {label for label in counts if is_numbered(label)}
    are_capitals = bool(known) and all(label.isupper() for label in known)
    only_capitals = are_capitals and len(roles) > 1
    again = {
        label
        for label, count in counts.items()
        if (are_all or count > 1) and (label == label.upper() or not only_capitals)
    }
    capitals = {label for label in counts if are_capitals and label.isupper() and label.isalpha()}
    return frozenset(known | chatting | {label for label in again | capitals if not _is_heading(label)})


def _is_heading(label: str) -> bool:
    """`RESULTS`, `DIAGNOSIS READY`, `Next steps`: a heading in what someone says, however often."""
    return not _HEADINGS.isdisjoint(_WORDS.findall(label.casefold()))


def note_unknown_speakers(timeline: TimelineBuilder) -> None:
    """Note each speaker of a timeline whose role the log does not say."""
    for participant in timeline.participants:
        if participant.role == UNKNOWN:
            timeline.notes.inferred(UNKNOWN_SPEAKER, (participant.name or participant.id)[:80])


def speaker(timeline: TimelineBuilder, label: str) -> str:
    """The participant of a label. The role that was concluded from it is noted once, an unknown one for each label."""
    role, before = role_of(label), len(timeline.participants)
    id = timeline.participant(role, "" if label.casefold() == role else label)
    if role != UNKNOWN:
        timeline.infer_once(f"speaker_is_{role}", label)
    elif len(timeline.participants) > before:
        timeline.notes.inferred(UNKNOWN_SPEAKER, label, timeline.seq)
    return id
