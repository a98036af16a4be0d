"""What the user says about how logs are to be read, in one object from the command line to the partition."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from convoscope.conversation import Conversation, ToolResult, turn_rule
from convoscope.errors import UsageError
from convoscope.ingest.tool_speech import with_tool_speech
from convoscope.text.patterns import LONGEST_TEXT, BadPattern, Untried, checked
from convoscope.views.result_fields import HOUSE_RULE, UNTRIED_RULE

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
            if matches:
                extras = {**event.extras, HOUSE_RULE: pattern}
                timeline[index] = msgspec.structs.replace(event, success=False, extras=extras)
            else:
                timeline[index] = msgspec.structs.replace(event, extras={**event.extras, UNTRIED_RULE: pattern})
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
        return check.search("".join(map(_ascii, text))) is not None
    except Untried:
        return None


def _ascii(character: str) -> str:
    if character.isascii():
        return character
    return "_" if character.isalnum() else " " if character.isspace() else "\x7f"
