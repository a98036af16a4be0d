"""The walk through a call, record by record: which turn it is, who is speaking, what was said in it.

Section numbers are those of the specification of voice logs. The seven labels are those of section 3.7.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation.events import Json, Logged

ASSISTANT_INTERRUPTS = "[assistant interrupts]"
USER_INTERRUPTS = "[user interrupts]"
CUT_OFF_BY_USER = "[likely cut off by user]"
CUT_OFF_BY_ASSISTANT = "[likely cut off by assistant]"
CUT_ITSELF_OFF = "[speaker likely cut itself off]"
LIKELY_INTERRUPTION = "[likely interruption]"
PAUSE = "[pause]"

LABEL_MEANINGS = {
    ASSISTANT_INTERRUPTS: "the agent begins while the user is speaking",
    USER_INTERRUPTS: "the user begins while the agent is speaking",
    CUT_OFF_BY_USER: "the user broke in: the words before it, back to the last label, may not have been heard",
    CUT_OFF_BY_ASSISTANT: "the agent broke in: the user's words before it may not have been heard",
    CUT_ITSELF_OFF: "the speaker stopped: the words before it may not have been spoken",
    LIKELY_INTERRUPTION: "one side probably broke in",
    PAUSE: "the speaker paused and went on",
}
"""The seven labels, and what each says of the words around it."""
_ANY_LABEL = re.compile("|".join(map(re.escape, LABEL_MEANINGS)))


def without_labels(text: str) -> str:
    """The text alone."""
    return _ANY_LABEL.sub("", text) if "[" in text else text


def joined(existing: str | None, label: str, text: str) -> str:
    """The text after the existing one, with the label between them; alone where there is no other."""
    return f"{existing} {label} {text}" if existing else text


USER = "user"
ASSISTANT = "assistant"
TOOL = "tool"
INTENDED = "intended"
TRANSCRIBED = "transcribed"

# The agent's apology for its own failure never passes through the model, so no audit line has it.
_ERROR_SPEECH = "I'm sorry, I encountered an error processing your request."
_NOT_WORDS = frozenset(("", "...", "......", ".", ",", "?", "!"))


class Entry(msgspec.Struct):
    """One line of the trace while it is being written."""

    role: str
    type: str
    turn: int
    content: str | None = None
    audited: bool = False
    """An assistant text of the audit log: whether it was ever spoken is still to be seen (3.6(2))."""
    nudge: bool = False
    """Said because the user's end of turn was missed: stays, spoken or not."""
    tool: Json = None
    payload: Json = None

    def published(self) -> dict[str, Any]:
        if self.role != TOOL:
            return {"role": self.role, "content": self.content, "type": self.type, "turn_id": self.turn}
        key = "parameters" if self.type == "tool_call" else "tool_response"
        return {"tool_name": self.tool, key: self.payload, "type": self.type, "turn_id": self.turn}


class Alone(NamedTuple):
    """What of a call is known by one log only, since the audit log was lost (3.9): it is in the trace then."""

    meant: bool
    """No recogniser's line is left, but what the user was to say."""
    sent: bool
    """No reply of the model is left, but what was sent to the speech engine."""
    caught: bool
    """Nor that, but what the caller heard."""


class CallState:
    """What is known after the records met so far (3.2). A handler says which turn its record belongs to."""

    def __init__(
        self,
        pipeline: str | None,
        log: Sequence[Logged],
        endless: frozenset[int] = frozenset(),
        noise: frozenset[int] = frozenset(),
    ) -> None:
        sources = {record.source for record in log}
        self.s2s = pipeline == "s2s"
        self._endless = endless
        """Starts of sound whose end was lost: they keep no one from speaking, and have no interval."""
        self._noise = noise
        """Starts and ends of sounds that are no speech."""
        self.first_lost_start: dict[int, float] = {}
        """Of turns in which the end of the assistant's first sound was lost, when that began."""
        self.knows_what_was_spoken = "framework" in sources
        self.audit_alone = sources == {"audit"}
        spoken = {(record.source, record.kind) for record in log if is_speech(record)}
        meant = ("simulator", "user_speech") in spoken
        # A greeting with nothing after it is read as it always was.
        unwritten = meant and ("audit", ASSISTANT) not in spoken and not self.s2s
        sent = bool(spoken & {("framework", "tts_text"), ("framework", "llm_response")})
        self.alone = Alone(meant and ("audit", USER) not in spoken, unwritten and sent, unwritten and not sent)
        self.audio_native = pipeline in ("s2s", "audio_llm")
        self.turn = 0
        self.spoke = False
        """The assistant spoke since the user last did."""
        self.user_started = self.tool_seen = False
        """In this turn."""
        self.hold = False
        """The assistant interrupted: the rest of the user's words still belongs to this turn."""
        self.user_open = self.asst_open = False
        self.last_user_audio_turn = self.last_asst_audio_turn = 0
        self.replied_since_user_end = False
        self.speech_in_session = False
        self.buffer: list[tuple[int, str]] = []
        """Place and text of user_speech that came before its audio_start."""
        self.buffered_texts: set[str] = set()
        self.pending_advance = self.rollback_consumed = False
        self.pending_user_label = False
        self.next_is_fallback = False
        self.session_end: int | None = None
        self.rolled_back_at_zero = False

        self.transcribed: dict[str, dict[int, str]] = {USER: {}, ASSISTANT: {}}
        self.intended: dict[str, dict[int, str]] = {USER: {}, ASSISTANT: {}}
        self.starts: dict[str, dict[int, list[float | None]]] = {USER: {}, ASSISTANT: {}}
        self.ends: dict[str, dict[int, list[float | None]]] = {USER: {}, ASSISTANT: {}}
        self.assistant_interrupted: set[int] = set()
        self.user_interrupted: set[int] = set()
        self.fallback_turns: set[int] = set()
        self.segments: dict[int, list[str]] = {}
        """What was sent to the speech engine, by turn."""
        self.trace: list[Entry] = []
        self.turn_of = [0] * len(log)
        self._index = 0
        self._handlers = _WITHOUT_FRAMEWORK if self.s2s else _HANDLERS

    def meet(self, index: int, record: Logged) -> None:
        """Take in the record at this index of the log."""
        handler = None if index in self._noise else self._handlers.get((record.source, record.kind))
        self._index = index
        self.turn_of[index] = self.turn if handler is None else handler(self, record)

    def _advance(self, *, from_audio_start: bool = False, bypass_hold: bool = False) -> None:
        """ADVANCE of 3.2."""
        if self.hold and not bypass_hold:
            self.hold = False
            if not from_audio_start:
                self.spoke = False
                return
        if self.spoke:
            self.turn += 1
            self.spoke = self.user_started = self.tool_seen = False

    def _mark(self, role: str, type: str, label: str) -> None:
        """MARK of 3.2, always of the current turn."""
        for entry in reversed(self.trace):
            if entry.turn != self.turn:
                return
            if entry.role == role and entry.type == type:
                entry.content = f"{entry.content} {label}"
                return

    # 3.3 Audit events

    def audit_user(self, record: Logged) -> int:
        if self.pending_advance:
            self.spoke = self.rollback_consumed = True
            self.pending_advance = False
        if self.user_open:
            self.spoke = False
        self._advance(bypass_hold=self.s2s)
        turn, text, texts = self.turn, text_of(record), self.transcribed[USER]
        existing = texts.get(turn)
        if self.pending_user_label or (existing and turn in self.user_interrupted):
            text = f"{USER_INTERRUPTS} {text}"
            self.pending_user_label = False
        if turn in self.assistant_interrupted:
            texts[turn] = joined(existing, ASSISTANT_INTERRUPTS, text)
        else:
            texts[turn] = f"{existing} {text}" if existing else text
        if not self.audio_native:
            self.trace.append(Entry(USER, TRANSCRIBED, turn, text))
        return turn

    def audit_assistant(self, record: Logged) -> int:
        turn, text = self.turn, text_of(record)
        if self.s2s:
            return turn
        has_entry = any(entry.turn == turn and entry.role == ASSISTANT for entry in self.trace)
        if turn in self.assistant_interrupted and not has_entry:
            text = f"{ASSISTANT_INTERRUPTS} {text}"
            self._mark(USER, INTENDED if self.audio_native else TRANSCRIBED, CUT_OFF_BY_ASSISTANT)
        self.trace.append(Entry(ASSISTANT, INTENDED, turn, text, audited=True, nudge=self.next_is_fallback))
        self.next_is_fallback = False
        if self.audit_alone:
            # Elsewhere only sound and speech show that the assistant spoke; here the reply itself must (3.9).
            self.spoke = True
        return turn

    def tool(self, record: Logged) -> int:
        self.tool_seen = True
        value = record.value if isinstance(record.value, dict) else {}
        payload = value.get("parameters" if record.kind == "tool_call" else "response")
        self.trace.append(Entry(TOOL, record.kind, self.turn, tool=value.get("tool"), payload=payload))
        return self.turn

    def turn_fallback(self, _: Logged) -> int:
        self.fallback_turns.add(self.turn)
        self.next_is_fallback = True
        return self.turn

    # 3.4 Framework text

    def framework_text(self, record: Logged) -> int:
        self.spoke = True
        turn, text, texts = self.turn, text_of(record), self.intended[ASSISTANT]
        existing = texts.get(turn)
        if existing:
            by_user = turn in self.user_interrupted
            separator = CUT_OFF_BY_USER if by_user else PAUSE if self.tool_seen else CUT_ITSELF_OFF
            texts[turn] = joined(existing, separator, text)
            if by_user:
                self._mark(ASSISTANT, INTENDED, CUT_OFF_BY_USER)
            elif turn in self.assistant_interrupted:
                self._mark(ASSISTANT, INTENDED, CUT_ITSELF_OFF)
        else:
            if turn in self.assistant_interrupted:
                text = f"{ASSISTANT_INTERRUPTS} {text}"
            texts[turn] = text
        self.segments.setdefault(turn, []).append(text)
        if text == _ERROR_SPEECH or self.alone.sent:
            self.trace.append(Entry(ASSISTANT, INTENDED, turn, text))
        return turn

    # 3.5 Simulator events

    def audio_start(self, record: Logged) -> int:
        if record.speaker == USER:
            self._user_starts()
        elif record.speaker == ASSISTANT:
            self._assistant_starts()
        else:
            return self.turn
        if self._index in self._endless:
            self.asst_open = False
            began = _sound_of(record)
            if began is not None and self.turn not in self.starts[ASSISTANT]:
                self.first_lost_start.setdefault(self.turn, began)
        else:
            self.starts[record.speaker].setdefault(self.turn, []).append(_sound_of(record))
        return self.turn

    def _user_starts(self) -> None:
        if self.asst_open:
            for texts in (self.intended[ASSISTANT], self.transcribed[ASSISTANT]):
                if texts.get(self.turn):
                    texts[self.turn] += f" {CUT_OFF_BY_USER}"
            self._mark(ASSISTANT, INTENDED, CUT_OFF_BY_USER)
            self.pending_user_label = True
        self.speech_in_session = False
        if self.rollback_consumed and self.asst_open:
            self.spoke = False
        elif self.pending_advance:
            self.spoke = True
            self.pending_advance = False
        self.rollback_consumed = False
        self._advance(from_audio_start=True)
        if self.pending_user_label:
            self.user_interrupted.add(self.turn)
        self.user_open = self.user_started = True
        self.last_user_audio_turn = self.turn
        self.replied_since_user_end = False
        for index, text in self.buffer:
            self.turn_of[index] = self._intend(text)
        self.buffer.clear()

    def _assistant_starts(self) -> None:
        self.asst_open = True
        self.last_asst_audio_turn = self.turn
        if not self.user_open:
            self.replied_since_user_end = True
            if self.s2s:
                self.spoke = True
        elif self.user_started:
            self.assistant_interrupted.add(self.turn)
            if not self.tool_seen:
                self.hold = True

    def audio_end(self, record: Logged) -> int:
        speaker = record.speaker
        if speaker == USER:
            turn = self.last_user_audio_turn
            self.user_open = False
            if self.user_started and not self.speech_in_session:
                # Nothing was said: the session opened no turn. There is no turn below 0 (3.9).
                self.rolled_back_at_zero |= self.turn == 0
                self.turn = max(self.turn - 1, 0)
                self.user_started, self.pending_advance = False, True
        elif speaker == ASSISTANT:
            turn = self.last_asst_audio_turn
            self.asst_open = False
        else:
            return self.turn
        if self.starts[speaker]:
            self.ends[speaker].setdefault(turn, []).append(_sound_of(record))
        return turn

    def assistant_speech(self, record: Logged) -> int:
        turn, text, texts = self.last_asst_audio_turn, text_of(record), self.transcribed[ASSISTANT]
        if turn == self.turn:
            self.spoke = True
        existing = texts.get(turn)
        if existing:
            if turn in self.user_interrupted:
                separator = USER_INTERRUPTS
            elif turn in self.assistant_interrupted:
                separator = CUT_ITSELF_OFF
            else:
                separator = LIKELY_INTERRUPTION
            texts[turn] = joined(existing, separator, text)
        else:
            if turn in self.assistant_interrupted:
                text = f"{ASSISTANT_INTERRUPTS} {text}"
            texts[turn] = text
        if self.s2s or self.alone.caught:
            self.trace.append(Entry(ASSISTANT, TRANSCRIBED, turn, text))
        return turn

    def user_speech(self, record: Logged) -> int:
        if not is_speech(record):
            return self.turn
        text = text_of(record)
        if self.replied_since_user_end and not self.user_open:
            self.buffer.append((self._index, text))
            self.buffered_texts.add(text)
            self.speech_in_session = True
            return self.turn
        if text in self.buffered_texts:
            self.buffered_texts.remove(text)
            return self.last_user_audio_turn
        return self._intend(text)

    def _intend(self, text: str) -> int:
        """What the user meant to say, in the turn of the user's last sound (3.5, user_speech case 3)."""
        self.speech_in_session = True
        turn, texts = self.last_user_audio_turn, self.intended[USER]
        existing = texts.get(turn)
        if self.pending_user_label and not existing:
            text = f"{USER_INTERRUPTS} {text}"
        texts[turn] = joined(existing, CUT_ITSELF_OFF, text)
        if self.audio_native or self.alone.meant:
            if existing and turn in self.user_interrupted:
                text = f"{USER_INTERRUPTS} {text}"
            elif self.pending_user_label:
                text = f"{USER_INTERRUPTS} {text}"
                self.pending_user_label = False
            self.trace.append(Entry(USER, INTENDED, turn, text))
        return turn

    def connection_state(self, record: Logged) -> int:
        if isinstance(record.value, dict) and record.value.get("state") == "session_ended" and record.ms is not None:
            self.session_end = record.ms
        return self.turn


def text_of(record: Logged) -> str:
    text: Json = record.text
    return text if isinstance(text, str) else ""


def is_speech(record: Logged) -> bool:
    """False for a user_speech that is only a sign of silence (3.1 step 3)."""
    return text_of(record).strip() not in _NOT_WORDS


def _sound_of(record: Logged) -> float | None:
    """When it sounded; where that is unknown, when it was logged; None where no log has it."""
    if isinstance(record.value, dict) and record.value.get("inferred"):
        return None
    if record.sound is not None:
        return record.sound
    return None if record.ms is None else record.ms / 1000


_Handler = Callable[[CallState, Logged], int]

# What is not here is met, but changes nothing: llm_call, turn_start, turn_end, user_speech_correction, …
_WITHOUT_FRAMEWORK: dict[tuple[str, str], _Handler] = {
    ("audit", "user"): CallState.audit_user,
    ("audit", "assistant"): CallState.audit_assistant,
    ("audit", "tool_call"): CallState.tool,
    ("audit", "tool_response"): CallState.tool,
    ("audit", "turn_fallback"): CallState.turn_fallback,
    ("simulator", "audio_start"): CallState.audio_start,
    ("simulator", "audio_end"): CallState.audio_end,
    ("simulator", "assistant_speech"): CallState.assistant_speech,
    ("simulator", "user_speech"): CallState.user_speech,
    ("simulator", "connection_state"): CallState.connection_state,
}
_HANDLERS: dict[tuple[str, str], _Handler] = {
    **_WITHOUT_FRAMEWORK,
    ("framework", "tts_text"): CallState.framework_text,
    ("framework", "llm_response"): CallState.framework_text,
}
