"""What the user says about how logs are to be read, in one object from the command line to the partition."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from convoscope.conversation import Conversation, turn_rule
from convoscope.errors import UsageError
from convoscope.ingest.tool_speech import with_tool_speech

SESSION_GAP_HOURS = 24.0
"""A session id that returns after so long a silence is another conversation."""


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

    def applied(self, conversation: Conversation) -> Conversation:
        """The conversation as the user wants it read."""
        if self.turn_rule is not None and conversation.turn_rule != self.turn_rule:
            conversation = msgspec.structs.replace(conversation, turn_rule=self.turn_rule)
        if conversation.contents.has_tool_calls:
            conversation = with_tool_speech(conversation, self.speech_tools)
        return conversation


DEFAULT_SETTINGS = ReadSettings()


def read_settings(
    turns: str | None = None,
    tool_failed: str | Iterable[str] = (),
    speech_tools: str | Iterable[str] = (),
    session_gap: float | None = None,
) -> ReadSettings:
    """The settings, checked."""
    if session_gap is not None and not session_gap > 0:
        raise UsageError(f"--session-gap must be more than 0 hours, not {session_gap:g}")
    return ReadSettings(
        turn_rule=None if turns is None else turn_rule(turns),
        tool_failed=tuple(_checked_pattern(one) for one in _texts(tool_failed)),
        speech_tools=tuple(_texts(speech_tools)),
        session_gap=SESSION_GAP_HOURS if session_gap is None else float(session_gap),
    )


def _texts(values: str | Iterable[str]) -> Sequence[str]:
    return [values] if isinstance(values, str) else list(values)


def _checked_pattern(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise UsageError(f"--tool-failed {pattern!r} is not a regular expression: {error}") from None
    return pattern
