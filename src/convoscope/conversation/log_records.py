"""What several logs of one call recorded, line by line, before it was joined into a timeline."""

from __future__ import annotations

from typing import Literal

import msgspec

from convoscope.conversation.events import Json

LogSource = Literal["audit", "framework", "simulator"]


class Logged(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """One record of one log, in that log's own words.

    audit: what the model and its tools did. framework: what was sent to the speech engine, and turn
    boundaries. simulator: what the caller meant to say, heard, and when sound began and ended.
    """

    source: LogSource
    kind: str
    """The type as logged: user, tool_call, tts_text, turn_end, audio_start, user_speech, connection_state, …"""
    ms: int | None = None
    """When it was logged, in milliseconds of that log's clock."""
    sound: float | None = None
    """When the sound itself began or ended, in seconds, where the log tells that apart."""
    speaker: str = ""
    """Role of who is meant: user or assistant."""
    text: str = ""
    value: Json = None
    event: int = -1
    """seq of the event of the timeline that it went into; -1 for none."""
