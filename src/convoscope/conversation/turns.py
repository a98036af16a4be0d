"""What is derived from a timeline: its turns, by a named and versioned rule, and what kinds of events it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import msgspec

from convoscope.conversation.events import (
    AnyEvent,
    ComponentMetric,
    Retrieval,
    StateEntered,
    StateExited,
    ToolCall,
    ToolResult,
    Utterance,
)
from convoscope.errors import UsageError

if TYPE_CHECKING:
    from convoscope.conversation.model import Conversation


class Contents(msgspec.Struct, frozen=True, gc=False):
    """Each is true where at least one event is so."""

    has_utterances: bool
    has_user_speech: bool
    """A participant with the role of a user says something, be it without words."""
    has_assistant_speech: bool
    has_times: bool
    """An utterance has a time, or sound."""
    has_sound: bool
    """An utterance has a span of sound."""
    has_user_intended: bool
    """It is known what a user meant to say, or said."""
    has_user_heard: bool
    """It is known what was heard of a user."""
    has_fallback: bool
    """Something was said only because turn detection gave up."""
    has_tool_calls: bool
    has_tool_results: bool
    has_states: bool
    has_retrievals: bool
    has_queries: bool
    """A retrieval has its query."""
    reports: Mapping[str, Sequence[ComponentMetric]]
    """What each component reported of itself."""


def contents_of(conversation: Conversation) -> Contents:
    """What there is in a conversation; `conversation.contents` keeps it."""
    roles = conversation.roles
    user = assistant = timed = sound = intended = heard = fallback = False
    kinds: set[type] = set()
    reports: dict[str, list[ComponentMetric]] = {}
    timeline = conversation.timeline
    for event in timeline:
        if type(event) is not Utterance:
            if type(event) is ToolCall and event.caller and roles.get(event.caller) == "user":
                continue
            kinds.add(type(event))
            if type(event) is ComponentMetric:
                reports.setdefault(event.component, []).append(event)
            continue
        role = roles[event.speaker]
        if role == "user":
            user = True
            intended = intended or event.intended is not None or event.spoken is not None
            heard = heard or event.heard is not None
        elif role == "assistant":
            assistant = True
        if event.time is not None:
            timed = True
        if event.segments:
            sound = True
        if event.manner == "fallback":
            fallback = True
    return Contents(
        user or assistant or bool(conversation.utterances),
        user,
        assistant,
        timed or sound,
        sound,
        intended,
        heard,
        fallback,
        ToolCall in kinds,
        ToolResult in kinds,
        StateEntered in kinds or StateExited in kinds,
        Retrieval in kinds,
        Retrieval in kinds and any(event.query is not None for event in timeline if type(event) is Retrieval),
        reports,
    )


DEFAULT_TURN_RULE = "exchange/1"
EVA_TURN_RULE = "eva/1"


class Turn(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One exchange: what the user said and the agent's reply to it."""

    id: int
    events: tuple[AnyEvent, ...]
    user: tuple[Utterance, ...]
    assistant: tuple[Utterance, ...]
    user_text: str
    assistant_text: str

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(event for event in self.events if type(event) is ToolCall)


def derive_turns(conversation: Conversation) -> tuple[Turn, ...]:
    """Cut the conversation by the rule it names."""
    try:
        rule = TURN_RULES[conversation.turn_rule]
    except KeyError:
        names = ", ".join(sorted(TURN_RULES))
        raise ValueError(f"turn rule {conversation.turn_rule!r} is unknown; the turn rules are {names}") from None
    return rule(conversation)


def exchange(conversation: Conversation) -> tuple[Turn, ...]:
    """Turn 0 is the agent's greeting, turn n the user's n-th say and the agent's reply to it.

    A turn advances when the user speaks after the agent has spoken; users who speak again before
    any reply stay in their turn. An utterance without words and without sound is a false start of
    speech detection: it stays among the events, but it is not speech. Words that a recogniser lost were
    spoken, and so was what could not be read, such as a picture. Turn 0 exists only where
    something came before the user.
    """
    roles, native = conversation.roles, conversation.is_audio_native
    drafts: list[_Draft] = []
    events, user, user_texts, assistant, assistant_texts = _begun(drafts)
    heard_user = spoke = False
    for event in conversation.timeline:
        if type(event) is Utterance:
            role = roles[event.speaker]
            if role == "assistant":
                text = event.meant()
                if text.strip() or event.segments or (event.extras and event.is_unread):
                    spoke = True
                    assistant.append(event)
                    assistant_texts.append(text)
            elif role == "user":
                text = event.meant() if native else event.received()
                if text.strip() or event.segments or event.meant().strip() or event.is_unread:
                    if spoke or not heard_user:
                        events, user, user_texts, assistant, assistant_texts = _begun(drafts)
                        heard_user, spoke = True, False
                    user.append(event)
                    user_texts.append(text)
        events.append(event)
    return tuple([_turn(number, draft) for number, draft in enumerate(drafts) if draft[0]])


def eva(conversation: Conversation) -> tuple[Turn, ...]:
    """Turns as the published fixtures of EVA count them in the logs of a call: see `convoscope.views.eva.reading`."""
    # By name, as an entry point is: the model imports no view.
    view = import_module("convoscope.views.eva.reading")
    turns: tuple[Turn, ...] = view.eva_turns(conversation)
    return turns


_Draft = tuple[list[AnyEvent], list[Utterance], list[str], list[Utterance], list[str]]
"""A turn while it is being cut: its events, then who spoke and the texts, of the user and of the assistant."""


def _begun(drafts: list[_Draft]) -> _Draft:
    draft: _Draft = ([], [], [], [], [])
    drafts.append(draft)
    return draft


def turn_of(number: int, conversation: Conversation, events: list[AnyEvent]) -> Turn:
    """The turn that some events form."""
    draft: _Draft = (events, [], [], [], [])
    for event in events:
        if type(event) is Utterance:
            role, text = conversation.roles[event.speaker], conversation.text(event)
            if role in ("user", "assistant") and (text.strip() or event.segments):
                utterances, texts = draft[1:3] if role == "user" else draft[3:]
                utterances.append(event)
                texts.append(text)
    return _turn(number, draft)


def _turn(number: int, draft: _Draft) -> Turn:
    events, user, user_texts, assistant, assistant_texts = draft
    return Turn(
        id=number,
        events=tuple(events),
        user=tuple(user),
        assistant=tuple(assistant),
        user_text=user_texts[0] if len(user_texts) == 1 else " ".join(filter(None, user_texts)),
        assistant_text=assistant_texts[0] if len(assistant_texts) == 1 else " ".join(filter(None, assistant_texts)),
    )


TURN_RULES: dict[str, Callable[[Conversation], tuple[Turn, ...]]] = {
    DEFAULT_TURN_RULE: exchange,
    EVA_TURN_RULE: eva,
}
"""The rules by name and version."""


def turn_rule(name: str) -> str:
    """The whole name of a rule: `eva` is `eva/1`."""
    if name in TURN_RULES:
        return name
    whole = [rule for rule in TURN_RULES if rule.partition("/")[0] == name]
    if not whole:
        names = ", ".join(rule.partition("/")[0] for rule in TURN_RULES)
        raise UsageError(f"unknown turn rule {name!r}", hint=f"the turn rules are {names}")
    return whole[-1]
