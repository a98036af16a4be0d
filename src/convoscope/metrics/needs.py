"""What a metric needs before it can speak, and what would give it that."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from operator import attrgetter
from typing import Any

import msgspec

from convoscope.conversation import Conversation
from convoscope.conversation.turns import Contents
from convoscope.resources.registry import JUDGE as JUDGE_TYPE
from convoscope.resources.registry import RECOGNISER as RECOGNISER_TYPE
from convoscope.resources.registry import RECORDING as RECORDING_TYPE
from convoscope.scores.observation import NOT_APPLICABLE, UNMEASURED, Status
from convoscope.text.folding import split_camel
from convoscope.views.end_reasons import IVR, VOICEMAIL
from convoscope.views.languages import LANGUAGE_NOT_SUPPORTED, languages_of
from convoscope.views.machines import NO_USER_SPEECH, no_dialogue
from convoscope.views.registry import short_name


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """One condition on the conversation, or on what the run was given (a judge)."""

    code: str
    """The reason code of a score that fails for want of it."""
    field: str
    """Where the model keeps it."""
    unlock: str
    """What a user can do to have it."""
    present: Callable[[Conversation], bool] | None = None
    resource: str = ""
    """Set instead of `present` where the run, not the conversation, must bring it: the whole name of its type."""
    status_if_missing: Status = UNMEASURED

    @property
    def detail(self) -> str:
        """What such a score says in addition to its reason code, where the code alone does not name what is missing."""
        return ""

    def met(self, conversation: Conversation, resources: frozenset[str] = frozenset()) -> bool:
        if self.present is None:
            return self.resource in resources
        return self.present(conversation)


class Fact:
    """A condition that is one of several facts, which are found out together and kept with the conversation."""

    def __init__(self, facts: Callable[[Conversation], Any], name: str) -> None:
        self.facts = facts
        self.name = name

    def __call__(self, conversation: Conversation) -> bool:
        return bool(getattr(self.facts(conversation), self.name))


class ExplainedNeed(Need, frozen=True, kw_only=True):
    """A need whose reason code says too little by itself."""

    words: str

    @property
    def detail(self) -> str:
        return self.words


def _has_ground_truth(conversation: Conversation) -> bool:
    if conversation.expected.ground_truth is not None:
        return True
    items = conversation.items
    if items and items[0].expected.ground_truth is not None:
        return True
    return len(items) > 1 and any(item.expected.ground_truth is not None for item in items)


CONTENTS: Callable[[Conversation], Contents] = attrgetter("contents")
"""What there is in the timeline."""


def _content(code: str, field: str, unlock: str, content: str, status: Status = NOT_APPLICABLE) -> Need:
    """A need of something that the timeline holds."""
    return Need(code=code, field=field, unlock=unlock, present=Fact(CONTENTS, content), status_if_missing=status)


UTTERANCES = _content("no_utterances", "timeline", "a log in which somebody says something", "has_utterances")
USER_SPEECH = _content("no_user_speech", "timeline.utterance of a user", "messages of the user", "has_user_speech")
ASSISTANT_SPEECH = _content(
    "no_assistant_speech",
    "timeline.utterance of the assistant",
    "messages of the assistant",
    "has_assistant_speech",
)
DIALOGUE = tuple(
    Need(
        code=code,
        field="timeline",
        unlock=f"a conversation in which {words}",
        present=lambda conversation, code=code: no_dialogue(conversation) != code,  # type: ignore[misc]
        status_if_missing=NOT_APPLICABLE,
    )
    for code, words in (
        (NO_USER_SPEECH, "the user says something"),
        (VOICEMAIL, "no mailbox answers"),
        (IVR, "a person answers, not a phone menu"),
    )
)
"""What every metric needs: a person talks with the agent. Otherwise a conversation is in no average."""
TIMES = _content("no_clock", "timeline.utterance.time", "a timestamp on each message", "has_times", UNMEASURED)
GROUND_TRUTH = Need(
    code="no_ground_truth",
    field="expected.ground_truth",
    unlock="the right answer, as `ground_truth` beside the messages",
    present=_has_ground_truth,
)
TOOL_CALLS = _content(
    "no_tool_calls", "timeline.tool_call", "a conversation in which the agent calls a tool", "has_tool_calls"
)
# Formats whose logs hold every tool call: where such a log has none, none was made.
_RECORD_CALLS = frozenset(
    [
        "elevenlabs",
        "livekit",
        "openai-chat",
        "openai-responses",
        "pipecat",
        "retell",
        "tau-bench",
        "tau-voice",
        "vapi",
        "voice-logs",
    ]
)


def knows_tools(conversation: Conversation) -> bool:
    """A tool call would be in the log: it lists the tools, is of a format that records calls, or shows one."""
    tools, format = conversation.agent.tools, conversation.source.format
    return tools is not None or format in _RECORD_CALLS or conversation.contents.has_tool_calls


TOOLS_KNOWN = Need(
    code="tools_unknown",
    field="agent.tools",
    unlock="the list of tools that the agent had, as `tools` beside the messages",
    present=knows_tools,
)
RECORDING = Need(
    code="no_recording",
    field="recording",
    unlock="the audio of the conversation",
    present=lambda conversation: conversation.recording is not None,
)
JUDGE = ExplainedNeed(
    code="no_judge",
    field="judge",
    unlock="a judge, named by the user",
    resource=JUDGE_TYPE,
    words="no judge configured",
)
VENUES_TYPE = "convoscope.metrics.dialogue.venues.VenueDatabase"
_OF_RESOURCES = {
    VENUES_TYPE: (
        Need(
            code="no_venue_database",
            field="database of venues",
            unlock="the tables of venues beside the dialogues or given with them: hotel_db.json, restaurant_db.json …",
            resource=VENUES_TYPE,
        ),
    ),
    JUDGE_TYPE: (JUDGE,),
    RECORDING_TYPE: (
        RECORDING,
        Need(
            code="recordings_not_opened",
            field="recording",
            unlock="a resource that opens recordings",
            resource=RECORDING_TYPE,
        ),
    ),
    RECOGNISER_TYPE: (
        Need(
            code="no_recogniser",
            field="recogniser",
            unlock="a speech recogniser, named by the user",
            resource=RECOGNISER_TYPE,
        ),
    ),
}


@cache
def needs_of(resource: str) -> tuple[Need, ...]:
    """What a metric needs that asks for a resource of this type."""
    if resource in _OF_RESOURCES:
        return _OF_RESOURCES[resource]
    kind = short_name(resource)
    words = split_camel(kind, "_").lower().strip("_")
    return (Need(code=f"no_{words}", field=words, unlock=f"a resource of the type {kind}", resource=resource),)


def english_words(role: str) -> Need:
    """Words of this role that are not known to be of a language other than English."""
    return Need(
        code=LANGUAGE_NOT_SUPPORTED,
        field=f"words of the {role}",
        unlock="a conversation in English: these rules read no other language",
        present=partial(_is_english, role),
    )


def _is_english(role: str, conversation: Conversation) -> bool:
    return languages_of(conversation).of_role(role) in ("", "en")


NOT_BROKEN = Need(
    code="conversation_errored",
    field="outcome.error",
    unlock="a conversation whose integration did not break",
    present=lambda conversation: not conversation.outcome.error,
    status_if_missing=NOT_APPLICABLE,
)
FLOW_DECLARED = Need(
    code="no_flow_definition",
    field="flow",
    unlock="the definition of the flow, given with --flows",
    present=lambda conversation: conversation.flow is not None,
)
