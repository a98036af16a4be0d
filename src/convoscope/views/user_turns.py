"""What the user said, turn by turn, and whether the agent replied: for chats and calls, and for agents that never do.

The turns of `conversation.turns` hold all that the user says until the agent speaks; an agent that ignores nine
questions has one such turn. Here each of the nine is one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple
from unicodedata import category

from convoscope.conversation import ASSISTANT, USER, Conversation, Time, ToolCall, Utterance
from convoscope.conversation.events import is_media
from convoscope.conversation.lazy import cached_on_argument
from convoscope.text.identifiers import name_words
from convoscope.views.end_reasons import BROKEN, kind_of_reason
from convoscope.views.error_replies import is_error_text
from convoscope.views.hand_over import has_handed_over
from convoscope.views.speech_tools import may_speak
from convoscope.views.tool_outcomes import has_failed

PAUSE = 4.0
"""Seconds. Who goes on so soon is still in the same turn: a reply with a tool call would not even be late."""
_NOT_FOR_THE_AGENT = frozenset(("backchannel", "vocal_tic", "non_directed"))
_QUESTION = ("?", "？", "؟", "՞", "፧")
_AFTER_MARK = " \t\n\"'”’»)]}*_"
_LEFT_WAITING = frozenset(("inactivity", "inactive", "silence", "idle", "timeout", "timed"))
Reply = Literal["yes", "no", "ended", "unknown", "by_tool", "not_read"]
"""Whether the agent spoke before the user did again; at the end, whether a reply was still to come.

`by_tool`: it did not, but called a tool that looks as if it spoke. `not_read`: the log has something of the agent
there that could not be read.
"""
_WORD = re.compile(r"[^\W_]")


class UserTurn(NamedTuple):
    """What the user said in one go."""

    utterances: tuple[Utterance, ...]
    reply: Reply | Literal["not_read"]
    used_tool: bool
    """The agent called a tool before anybody spoke again."""

    @property
    def text(self) -> str:
        if len(self.utterances) == 1:
            return self.utterances[0].meant().strip()
        return " ".join(filter(None, (one.meant().strip() for one in self.utterances)))

    @property
    def is_question(self) -> bool:
        return is_question(self.text)


def is_question(text: str) -> bool:
    return text.rstrip(_AFTER_MARK).endswith(_QUESTION)


@cached_on_argument
def user_turns(conversation: Conversation) -> list[UserTurn]:
    """The user's turns in their order. Backchannels, and what is said to somebody else, are none."""
    turns: list[UserTurn] = []
    utterances: list[Utterance] = []
    calls: list[ToolCall] = []
    without: dict[int, list[ToolCall]] = {}
    """By turn without a reply: what the agent called instead."""
    spoke = handed_over = failed = False
    for event in conversation.timeline:
        if type(event) is ToolCall:
            calls.append(event)
            handed_over = handed_over or has_handed_over(conversation, event)
        if type(event) is not Utterance or not _has_content(event):
            continue
        role = conversation.roles[event.speaker]
        if role == ASSISTANT:
            if not _says_something(event):
                failed = failed or is_error_text(event.meant())
                continue
            spoke = True
            if utterances:
                reply: Reply = "not_read" if event.extras and _is_illegible(event) else "yes"
                turns.append(UserTurn(tuple(utterances), reply, bool(calls)))
                utterances = []
        elif role == USER and event.manner not in _NOT_FOR_THE_AGENT:
            if utterances and not _goes_on(conversation, utterances[-1], event):
                without[len(turns)] = calls
                turns.append(UserTurn(tuple(utterances), "no", bool(calls)))
                utterances = []
            if not utterances:
                handed_over, failed, calls = False, False, []
            utterances.append(event)
    if utterances:
        last, outcome = UserTurn(tuple(utterances), "unknown", bool(calls)), conversation.outcome
        # Who is put through to a person gets no more words of the agent.
        if handed_over and not outcome.error:
            reply = "yes"
        else:
            reply = reply_at_end(last.text, outcome.ended_reason, spoke=spoke and not failed and not outcome.error)
            if not outcome.error:
                without[len(turns)] = calls
        turns.append(last._replace(reply=reply))
    if any(without.values()):
        _mark_speech_by_tools(conversation, turns, without)
    return turns


def _mark_speech_by_tools(
    conversation: Conversation, turns: list[UserTurn], without: Mapping[int, Sequence[ToolCall]]
) -> None:
    """Say of turns without a reply that a tool may have given one, where the agent hardly speaks otherwise."""
    spoken = [
        number
        for number, calls in without.items()
        if any(may_speak(call) and not has_failed(conversation, call) for call in calls)
    ]
    if len(spoken) > sum(turn.reply == "yes" for turn in turns):
        for number in spoken:
            turns[number] = turns[number]._replace(reply="by_tool")


def breakdown(conversation: Conversation) -> str:
    """What kept a conversation from being one: its integration broke, or the agent never spoke; empty for neither.

    It broke where the log has an error of the conversation, or names one as the reason of its end. A user who hangs up
    or whose client disconnects broke nothing.
    """
    outcome = conversation.outcome
    if outcome.error or kind_of_reason(outcome.ended_reason) == BROKEN:
        return "integration_broke"
    turns = user_turns(conversation)
    never_spoke = (
        bool(turns)
        and not any(turn.reply == "by_tool" for turn in turns)
        and not any(
            conversation.roles[one.speaker] == ASSISTANT and _has_content(one) and _says_something(one)
            for one in conversation.utterances
        )
    )
    return "agent_never_spoke" if never_spoke else ""


def _has_content(utterance: Utterance) -> bool:
    return bool(utterance.segments) or bool(
        utterance.meant().strip() or utterance.received().strip() or utterance.is_unread
    )


def _says_something(utterance: Utterance) -> bool:
    """Whether a message of the agent is a reply: "...", "-" and "502 Bad Gateway" are not, a picture and "👍" are."""
    if _WORD.search(utterance.meant()) or utterance.segments:
        return not is_error_text(utterance.meant())
    text = utterance.meant() + utterance.received()
    return utterance.is_unread or any(letter.isalnum() or category(letter) == "So" for letter in text)


def _is_illegible(utterance: Utterance) -> bool:
    """Whether it may or may not be a reply: it could not be read, and it is no picture, sound or file."""
    if not utterance.is_unread:
        return False
    parts = utterance.extras.get("content")
    return not (type(parts) is list and any(map(is_media, parts)))


def _goes_on(conversation: Conversation, earlier: Utterance, later: Utterance) -> bool:
    """Whether two utterances follow so soon that no reply could stand between them, or are of two people in a group."""
    if earlier.speaker != later.speaker:
        return True
    end, start = end_of(earlier), start_of(later)
    wait = None if end is None or start is None else conversation.elapsed(end, start)
    if wait is None or wait >= PAUSE:
        return False
    # Sounds may touch or overlap. Messages of one moment have a clock that tells nothing.
    return wait > 0 or bool(earlier.segments and later.segments)


def reply_at_end(text: str, ended_reason: str, *, spoke: bool) -> Reply:
    """A user who says goodbye and leaves is owed no reply; one who was left waiting, or never got any, is.

    `text` is what the user said last, `spoke` whether the agent ever did.
    """
    reason = name_words(ended_reason)
    if not spoke or not _LEFT_WAITING.isdisjoint(reason) or kind_of_reason(ended_reason) == BROKEN:
        return "no"
    if reason:
        return "ended"
    return "no" if is_question(text) else "unknown"


AT_END: dict[Reply, str] = {
    "no": "no_reply",
    "ended": "user_left",
    "unknown": "end_unknown",
    "by_tool": "may_speak_by_tool",
    "not_read": "reply_not_read",
}
"""Why the last turn of the user has no reply, as a reason code."""


def start_of(utterance: Utterance) -> Time | None:
    """When an utterance began to sound; else when it was logged."""
    if utterance.segments:
        first = min(utterance.segments, key=lambda segment: segment.start)
        return Time(first.start, first.clock)
    return utterance.time


def end_of(utterance: Utterance) -> Time | None:
    """When the sound of an utterance ended; else when it was logged."""
    if utterance.segments:
        last = max(utterance.segments, key=lambda segment: segment.end)
        return Time(last.end, last.clock)
    if utterance.time is not None and utterance.time.until is not None:
        return Time(utterance.time.until, utterance.time.clock)
    return utterance.time
