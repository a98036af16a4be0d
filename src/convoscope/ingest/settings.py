"""How the user wants logs read, in one object from the command line to the partition, and what that does.

Turns are cut by a rule; results that match a pattern have failed; what the agent says through a tool becomes
utterances; a session that goes on after a long silence is several conversations.
"""

from __future__ import annotations

import math
import os
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from convoscope.conversation import (
    ASSISTANT,
    AnyEvent,
    Conversation,
    Outcome,
    Participant,
    Text,
    ToolCall,
    ToolResult,
    Utterance,
    turn_rule,
)
from convoscope.errors import UsageError
from convoscope.ingest.given_speakers import GivenSpeakers, checked_speakers, with_given_roles
from convoscope.ingest.ids import has_label
from convoscope.ingest.report import Note
from convoscope.storage import only_here
from convoscope.text.patterns import LONGEST_TEXT, BadPattern, Untried, checked
from convoscope.views.result_fields import HOUSE_RULE, UNTRIED_RULE
from convoscope.views.tool_outcomes import has_failed
from convoscope.views.user_turns import speaks_by_tool, speech_of

SESSION_GAP_HOURS = 24.0
"""A session id that returns after so long a silence is another conversation."""
_HOUR = 3600.0
_TOOL_SPEECH = "tool call"
"""The source of the text of an utterance that was made of a tool call."""


class ReadSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How logs are read. The defaults leave everything to the logs."""

    turn_rule: str | None = None
    """The rule that turns are cut by; None leaves it to each conversation."""
    tool_failed: tuple[str, ...] = ()
    """Patterns of tool results that mean failure, declared by the user."""
    speech_tools: tuple[str, ...] = ()
    """Names of tools through which the agent speaks to the user."""
    session_gap: float = SESSION_GAP_HOURS
    """Hours of silence after which a session id is another conversation."""

    speakers: tuple[tuple[str, str], ...] = ()
    """Labels of speakers, without case, and the role of each, where the log does not say it."""
    audio: str = ""
    """The folder that recordings are in, where they are not where the logs say."""

    def applied(self, conversation: Conversation) -> Conversation:
        """The conversation as the user wants it read."""
        if self.turn_rule is not None and conversation.turn_rule != self.turn_rule:
            conversation = msgspec.structs.replace(conversation, turn_rule=self.turn_rule)
        if self.speakers:
            conversation = with_given_roles(conversation, self.speakers)
        if conversation.contents.has_tool_calls:
            conversation = with_tool_speech(conversation, self.speech_tools)
        if self.tool_failed:
            conversation = self._with_failed_tools(conversation)
        return conversation

    def _with_failed_tools(self, conversation: Conversation) -> Conversation:
        """The results that match a pattern of the user are stated to have failed."""
        timeline = list(conversation.timeline)
        changed = False
        for index, event in enumerate(timeline):
            if type(event) is not ToolResult or (rule := self._house_rule(event)) is None:
                continue
            pattern, matches = rule
            extras = {**event.extras, HOUSE_RULE if matches else UNTRIED_RULE: pattern}
            success = False if matches else event.success
            timeline[index] = msgspec.structs.replace(event, success=success, extras=extras)
            changed = True
        return msgspec.structs.replace(conversation, timeline=tuple(timeline)) if changed else conversation

    def _house_rule(self, result: ToolResult) -> tuple[str, bool] | None:
        """The first pattern that a result matches, in its text or its JSON; else the first that cannot be tried."""
        value = result.result
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode("utf-8", "replace")
        text = (f"{text}\n{result.error}" if result.error else text)[:LONGEST_TEXT]
        untried = None
        for pattern in self.tool_failed:
            matches = _matches(pattern, text)
            if matches:
                return pattern, True
            if matches is None and untried is None:
                untried = pattern, False
        return untried


DEFAULT_SETTINGS = ReadSettings()


def read_settings(
    turns: str | None = None,
    tool_failed: str | Iterable[str] = (),
    speech_tools: str | Iterable[str] = (),
    session_gap: float | None = None,
    speakers: GivenSpeakers = (),
    audio: str | os.PathLike[str] | None = None,
) -> ReadSettings:
    """The settings, checked."""
    if audio is not None:
        only_here(audio, "--audio")
    if audio is not None and not os.path.isdir(audio):
        raise UsageError(
            f"--audio {os.fspath(audio)}: there is no such folder", hint="name the folder of the recordings"
        )
    if session_gap is not None and not session_gap > 0:
        raise UsageError(f"--session-gap must be more than 0 hours, not {session_gap:g}")
    return ReadSettings(
        turn_rule=None if turns is None else turn_rule(turns),
        tool_failed=tuple(map(_checked_pattern, [tool_failed] if isinstance(tool_failed, str) else tool_failed)),
        speech_tools=(speech_tools,) if isinstance(speech_tools, str) else tuple(speech_tools),
        session_gap=SESSION_GAP_HOURS if session_gap is None else float(session_gap),
        speakers=checked_speakers(speakers),
        audio="" if audio is None else os.path.abspath(audio),
    )


def _checked_pattern(pattern: str) -> str:
    try:
        if checked(pattern).has_boundaries and not pattern.isascii():
            raise BadPattern(r"\b and \B are not supported beside letters beyond ASCII")
    except BadPattern as error:
        hint = "write a regular expression without look-around and back references, such as '(?i)no longer served'"
        raise UsageError(f"--tool-failed {pattern!r} cannot be used: {error}", hint=hint) from None
    return pattern


def _matches(pattern: str, text: str) -> bool | None:
    """Whether a text matches; None where the pattern cannot be tried on it."""
    check = checked(pattern)
    try:
        return check.search(text) is not None
    except Untried:
        if text.isascii() or not pattern.isascii() or "_" in pattern:
            return None
    try:
        # Boundaries are those of ASCII: each letter beyond it becomes a sign of words that the pattern does not name.
        plain = re.sub(r"[^\x00-\x7f]", lambda found: _SIGNS[found[0].isalnum(), found[0].isspace()], text)
        return check.search(plain) is not None
    except Untried:
        return None


_SIGNS = {(True, False): "_", (False, True): " ", (False, False): "\x7f"}


# What the agent says through a tool.


def with_tool_speech(conversation: Conversation, named: Sequence[str] = ()) -> Conversation:
    """The conversation in which calls that are speech to the user are utterances of the agent, too.

    Calls of the `named` tools are; without a name, those that are it for certain, where the agent hardly speaks by
    messages. A call that failed said nothing. What is logged as a message, too, is said once. Data sets with truths
    of their own are left alone.
    """
    if conversation.frames or conversation.annotations:
        return conversation
    calls = [call for call in conversation.tool_calls if speech_of(call, named)]
    if not calls or not (any(call.name in named for call in calls) or speaks_by_tool(conversation)):
        return conversation
    logged = {utterance.meant().strip() for utterance in conversation.utterances}
    spoken = [
        call for call in calls if speech_of(call, named).strip() not in logged and not has_failed(conversation, call)
    ]
    return _inserted(conversation, spoken, named) if spoken else conversation


def _inserted(conversation: Conversation, spoken: Sequence[ToolCall], named: Sequence[str]) -> Conversation:
    after = [call.seq for call in spoken]
    agent = next((one.id for one in conversation.participants if one.role == ASSISTANT), "")
    participants = conversation.participants
    if not agent:
        participants = (*participants, Participant(ASSISTANT, ASSISTANT))
    timeline: list[AnyEvent] = []
    for event in conversation.timeline:
        moved = _moved(event.seq, after)
        timeline.append(msgspec.structs.replace(event, seq=moved) if moved != event.seq else event)
        if type(event) is ToolCall and event.seq in after:
            text = Text(speech_of(event, named), _TOOL_SPEECH)
            timeline.append(Utterance(seq=moved + 1, time=event.time, speaker=agent or ASSISTANT, intended=text))
    items = tuple(
        msgspec.structs.replace(
            item,
            asked=None if item.asked is None else _moved(item.asked, after),
            answered=None if item.answered is None else _moved(item.answered, after),
            events=tuple(_moved(seq, after) for seq in item.events),
        )
        for item in conversation.items
    )
    return msgspec.structs.replace(conversation, participants=participants, timeline=tuple(timeline), items=items)


def moved_notes(notes: tuple[Note, ...], conversation: Conversation) -> tuple[Note, ...]:
    """Notes about events of a conversation, after utterances were put into it; and one that says so."""
    spoken = [
        one.seq for one in conversation.utterances if one.intended is not None and one.intended.source == _TOOL_SPEECH
    ]
    after = [seq - 1 - number for number, seq in enumerate(spoken)]
    moved = [msgspec.structs.replace(note, seq=_moved(note.seq, after)) if note.seq >= 0 else note for note in notes]
    return (*moved, Note(kind="inferred", code="speech_through_tool", detail=f"{len(spoken)} utterances"))


def _moved(seq: int, after: Sequence[int]) -> int:
    """The number of an event, after an utterance was put behind each of these events."""
    return seq + bisect_right(after, seq - 1)


# Sessions that go on after a long silence.


def split_by_silence(conversation: Conversation, hours: float) -> list[Conversation]:
    """The conversations of a session, by silences of so many hours: `s1`, `s1#2`, `s1#3`.

    Only times of the wall clock count. What has none belongs to what is before it. A session with a label or frames is
    one: these are about the whole of it.
    """
    wall = {clock.id for clock in conversation.clocks if clock.kind == "wall"}
    if not wall or conversation.labels or conversation.frames or has_label(conversation.extras):
        return [conversation]
    bounds, latest = [0], math.inf
    for index, event in enumerate(conversation.timeline):
        if event.time is None or event.time.clock not in wall:
            continue
        if event.time.at - latest >= hours * _HOUR:
            bounds.append(index)
        latest = event.time.at if latest == math.inf else max(latest, event.time.at)
    if len(bounds) == 1:
        return [conversation]
    bounds.append(len(conversation.timeline))
    parts: list[Conversation] = []
    for number, (start, end) in enumerate(pairwise(bounds), 1):
        events = enumerate(conversation.timeline[start:end])
        part = msgspec.structs.replace(
            conversation,
            id=conversation.id if number == 1 else f"{conversation.id}#{number}",
            timeline=tuple(msgspec.structs.replace(event, seq=seq) for seq, event in events),
            outcome=conversation.outcome if end == bounds[-1] else Outcome(),
        )
        parts.append(part)
    return parts
