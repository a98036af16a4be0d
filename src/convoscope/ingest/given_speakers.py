"""Who is who, where the labels of a log do not say it: the user does, with `--speaker agent=SPEAKER_01`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from convoscope.conversation import ASSISTANT, USER, Conversation, Participant
from convoscope.errors import UsageError
from convoscope.ingest.report import Note, ReadReport

GivenSpeakers = Mapping[str, str | Iterable[str]] | Iterable[str]
"""Labels by role, as Python has them; or texts such as `agent=SPEAKER_01`, as the command line has them."""
_ROLES = {"agent": ASSISTANT, "assistant": ASSISTANT, "user": USER}
_HINT = "write agent=LABEL or user=LABEL, such as agent=SPEAKER_01"
_RECORDING = "recording"
"""The format of a call without a log."""
_MISSING = "speaker_not_in_conversation"
_ONE_CHANNEL = "recording_of_one_channel"
LABELS_SEEN = "seen were"


def checked_speakers(given: GivenSpeakers) -> tuple[tuple[str, str], ...]:
    """Pairs of a label, which is compared without case, and the role of who has it.

    >>> checked_speakers(["agent=SPEAKER_01", "user=Maya=M"])
    (('speaker_01', 'assistant'), ('maya=m', 'user'))
    >>> checked_speakers({"agent": ["Nils", "Ute"]})
    (('nils', 'assistant'), ('ute', 'assistant'))
    """
    roles: dict[str, str] = {}
    for role, label in _pairs(given):
        if role.casefold() not in _ROLES or not label:
            raise UsageError(f"--speaker {role}={label} cannot be used", hint=_HINT)
        if roles.setdefault(label.casefold(), _ROLES[role.casefold()]) != _ROLES[role.casefold()]:
            raise UsageError(f"--speaker: {label} cannot be both agent and user", hint=_HINT)
    return tuple(roles.items())


def _pairs(given: GivenSpeakers) -> Iterator[tuple[str, str]]:
    if isinstance(given, Mapping):
        for role, labels in given.items():
            yield from ((role, label.strip()) for label in ([labels] if isinstance(labels, str) else labels))
        return
    for text in [given] if isinstance(given, str) else given:
        role, _, label = text.partition("=")
        yield role.strip(), label.strip()


def with_given_roles(conversation: Conversation, speakers: Sequence[tuple[str, str]]) -> Conversation:
    """The conversation in which the speakers with these labels have these roles. Their ids stay."""
    roles = dict(speakers)
    if side := other_side(conversation, speakers):
        roles[side.label.casefold()] = side.role
    participants = tuple(
        msgspec.structs.replace(one, role=roles.get(_label(one).casefold(), one.role))
        for one in conversation.participants
    )
    if participants == conversation.participants:
        return conversation
    return msgspec.structs.replace(conversation, participants=participants)


class OtherSide(NamedTuple):
    """A channel and its role, which follows from that of the other channel."""

    label: str
    role: str


def other_side(conversation: Conversation, speakers: Sequence[tuple[str, str]]) -> OtherSide | None:
    """Of a call with two channels and no log, the channel that the user did not name, where the other one is named."""
    if conversation.source.format != _RECORDING or len(conversation.participants) != 2:
        return None
    roles = dict(speakers)
    given = [roles.get(_label(one).casefold(), "") for one in conversation.participants]
    if sum(map(bool, given)) != 1:
        return None
    named = given[0] or given[1]
    return OtherSide(_label(conversation.participants[given.index("")]), USER if named == ASSISTANT else ASSISTANT)


def notes_on_speakers(conversation: Conversation, speakers: Sequence[tuple[str, str]]) -> tuple[Note, ...]:
    """Which of the labels are in a conversation; and that none is, of the labels of one role."""
    seen = list(dict.fromkeys(map(_label, conversation.participants)))
    labels, detail = {label.casefold() for label in seen}, ", ".join(seen)[:200]
    file = next(iter(conversation.source.files), "")
    named = [(label, role) for label, role in speakers if label in labels]
    notes = [Note(kind="inferred", code=_code(label, role), detail=detail, file=file) for label, role in named]
    if side := other_side(conversation, speakers):
        code = f"{side.label}_taken_as_{side.role}"
        notes.append(Note(kind="inferred", code=code, detail="the channel that --speaker does not name", file=file))
    if {role for _, role in speakers} - {role for _, role in named}:
        is_mixed = conversation.source.format == _RECORDING and not seen
        code = _ONE_CHANNEL if is_mixed else _MISSING
        notes.append(Note(kind="set_aside", code=code, detail=detail, file=file))
    return tuple(notes)


def unmatched_speakers(speakers: Sequence[tuple[str, str]], report: ReadReport) -> str:
    """What to say of labels that no speaker of any conversation has; "" where each is found."""
    absent = [label for label, role in speakers if _code(label, role) not in report.inferred]
    if not absent:
        return ""
    tallies = [report.set_aside.get(_MISSING), *(report.inferred.get(_code(*pair)) for pair in speakers)]
    seen = sorted({example for tally in tallies if tally is not None for example in tally.examples})
    mixed = report.set_aside.get(_ONE_CHANNEL)
    if mixed is not None and not seen:
        have = "has" if mixed.count == 1 else "and others have"
        return f"--speaker: {mixed.examples[0]} {have} one channel, so no speaker is known"
    return f"--speaker: no speaker is called {', '.join(absent)}; {LABELS_SEEN}: {'; '.join(seen)[:500] or 'none'}"


def _label(participant: Participant) -> str:
    return participant.name or participant.id


def _code(label: str, role: str) -> str:
    return f"{label}_given_as_{role}"
