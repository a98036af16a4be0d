"""What there is in a conversation, seen in one look at its timeline: what metrics ask before they measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from convoscope.conversation.events import (
    ComponentMetric,
    Retrieval,
    StateEntered,
    StateExited,
    ToolCall,
    ToolResult,
    Utterance,
)

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
    """An utterance has a stretch of sound."""
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
    """A retrieval tells its query."""
    reports: Mapping[str, Sequence[ComponentMetric]]
    """What each component reported of itself."""


def contents_of(conversation: Conversation) -> Contents:
    """What there is in a conversation; `conversation.contents` keeps it."""
    roles = conversation.roles
    user = assistant = timed = sound = intended = heard = fallback = False
    kinds: set[type] = set()
    for event in conversation.timeline:
        if type(event) is not Utterance:
            kinds.add(type(event))
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
        Retrieval in kinds and _has_queries(conversation),
        _reports(conversation) if ComponentMetric in kinds else _NO_REPORTS,
    )


def _has_queries(conversation: Conversation) -> bool:
    return any(type(event) is Retrieval and event.query is not None for event in conversation.timeline)


def _reports(conversation: Conversation) -> Mapping[str, Sequence[ComponentMetric]]:
    reports: dict[str, list[ComponentMetric]] = {}
    for event in conversation.timeline:
        if type(event) is ComponentMetric:
            reports.setdefault(event.component, []).append(event)
    return reports


_NO_REPORTS: Mapping[str, Sequence[ComponentMetric]] = {}
