"""What a metric needs before it can speak, and what would give it that."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any

import msgspec

from convoscope.audio import is_installed
from convoscope.conversation import Conversation
from convoscope.resources.registry import JUDGE as JUDGE_TYPE
from convoscope.resources.registry import RECOGNISER as RECOGNISER_TYPE
from convoscope.resources.registry import RECORDING as RECORDING_TYPE
from convoscope.scores.observation import NOT_APPLICABLE, UNMEASURED, Status
from convoscope.text.folding import split_camel
from convoscope.views.end_reasons import IVR, VOICEMAIL
from convoscope.views.languages import LANGUAGE_NOT_SUPPORTED, languages_of
from convoscope.views.machines import NO_USER_SPEECH, no_dialogue
from convoscope.views.registry import short_name


class Need(msgspec.Struct, frozen=True):
    """One condition on the conversation, or on what the run was given (a judge)."""

    code: str
    """The reason code of a score that fails for want of it."""
    field: str
    """Where the model keeps it."""
    unlock: str
    """What a user can do to have it."""
    present: Callable[[Conversation], bool] | None = None
    resource: str = ""
    """What the run can bring instead of the conversation: the whole name of its type."""
    status_if_missing: Status = UNMEASURED
    detail: str = ""
    """What such a score says in addition to its reason code, where the code alone does not name what is missing."""

    def met(self, conversation: Conversation, resources: frozenset[str] = frozenset()) -> bool:
        return self.resource in resources or (self.present is not None and self.present(conversation))


class Fact:
    """A condition that is one of several facts, which are found out together and kept with the conversation."""

    def __init__(self, fields: Callable[[Conversation], Any], name: str) -> None:
        self.fields = fields
        self.name = name

    def __call__(self, conversation: Conversation) -> bool:
        return bool(getattr(self.fields(conversation), self.name))


def in_timeline(content: str) -> Callable[[Conversation], bool]:
    """Whether the timeline holds something, by the name of a field of `Contents`. Every conversation is asked often."""
    return attrgetter(f"contents.{content}")


def _content(code: str, field: str, unlock: str, content: str, status: Status = NOT_APPLICABLE) -> Need:
    """A need of something that the timeline holds."""
    return Need(code, field, unlock, in_timeline(content), status_if_missing=status)


UTTERANCES = _content("no_utterances", "timeline", "a log with messages or speech", "has_utterances")
USER_SPEECH = _content("no_user_speech", "timeline.utterance of a user", "messages of the user", "has_user_speech")
ASSISTANT_SPEECH = _content(
    "no_assistant_speech",
    "timeline.utterance of the assistant",
    "messages of the assistant",
    "has_assistant_speech",
)
DIALOGUE = tuple(
    Need(
        code,
        "timeline",
        f"a conversation in which {words}",
        lambda conversation, code=code: no_dialogue(conversation) != code,  # type: ignore[misc]
        status_if_missing=NOT_APPLICABLE,
    )
    for code, words in (
        (NO_USER_SPEECH, "the user says something"),
        (VOICEMAIL, "no mailbox answers"),
        (IVR, "a person answers, not a phone menu"),
    )
)
"""What every metric needs: a person talks with the agent. Otherwise a conversation is in no average."""
_USER_OR_SOUND = msgspec.structs.replace(
    DIALOGUE[0],
    present=lambda conversation: conversation.recording is not None or no_dialogue(conversation) != NO_USER_SPEECH,
)
DIALOGUE_IN_SOUND = (_USER_OR_SOUND, *DIALOGUE[1:])
"""What those need that ask for the recording alone: the agent's sound is there whether or not a user speaks."""
TIMES = _content("no_clock", "timeline.utterance.time", "a timestamp on each message", "has_times", UNMEASURED)
GROUND_TRUTH = Need(
    "no_ground_truth",
    "expected.ground_truth",
    "the right answer, as `ground_truth` beside the messages",
    lambda conversation: (
        conversation.expected.ground_truth is not None
        or any(item.expected.ground_truth is not None for item in conversation.items)
    ),
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
    "tools_unknown", "agent.tools", "the list of tools that the agent had, as `tools` beside the messages", knows_tools
)
RECORDING = Need(
    "no_recording",
    "recording",
    "the audio of the conversation: named in the log, or beside it with the conversation's id as its name",
    lambda conversation: conversation.recording is not None,
)
STATED_RECORDING = Need(
    "no_raw_complete_audio",
    "recording",
    "raw_complete_audio of the item, or metadata.local_audio_path",
    lambda conversation: conversation.recording is not None or conversation.source.format != "standard-data",
)
AUDIO_INSTALLED = Need(
    "audio_not_installed",
    "recording",
    "what reads recordings: pip install 'convoscope[audio]'",
    lambda _: is_installed(),
    resource=RECORDING_TYPE,
)
JUDGE = Need("no_judge", "judge", "a judge, named by the user", resource=JUDGE_TYPE, detail="no judge configured")
NAMED = "convoscope.metrics.needs.NamedMetrics"
"""What a run has whose metrics were named: then it asks what is not asked of every log."""
WHOLE_NAMES = "convoscope.metrics.needs.WholeNames"
"""What a run has unless a metric was named by a name that it shares with another: then the data say which is meant."""


BY_DATA = "convoscope.metrics.needs.ByData"
"""What such a run has instead."""


class GivenNames:
    """How metrics were named, as something that a run was given."""

    identity = "given"


def has_items(conversation: Conversation) -> bool:
    return bool(conversation.items)


ITEMS = Need(
    "not_an_item",
    "items",
    "evaluation items: a question, an answer, and what belongs to them",
    has_items,
    status_if_missing=NOT_APPLICABLE,
)
ITEMS_OR_NAMED = msgspec.structs.replace(ITEMS, unlock=f"{ITEMS.unlock}; or its name in --metrics", resource=NAMED)
NO_ITEMS = Need(
    "judged_as_item",
    "items",
    "a chat or a call; or its whole name in --metrics",
    lambda conversation: not conversation.items,
    resource=WHOLE_NAMES,
    status_if_missing=NOT_APPLICABLE,
)
VENUES_TYPE = "convoscope.metrics.dialogue.venues.VenueDatabase"
_OF_RESOURCES = {
    VENUES_TYPE: (
        Need(
            "no_venue_database",
            "database of venues",
            "the tables of venues beside the dialogues or given with them: hotel_db.json, restaurant_db.json …",
            resource=VENUES_TYPE,
        ),
    ),
    JUDGE_TYPE: (JUDGE,),
    RECORDING_TYPE: (
        STATED_RECORDING,
        RECORDING,
        AUDIO_INSTALLED,
        Need(
            "recordings_not_opened",
            "recording",
            "recordings that the run opens: leave out --no-audio",
            resource=RECORDING_TYPE,
        ),
    ),
    RECOGNISER_TYPE: (
        Need("no_recogniser", "recogniser", "a speech recogniser, named by the user", resource=RECOGNISER_TYPE),
    ),
}


@cache
def needs_of(resource: str) -> tuple[Need, ...]:
    """What a metric needs that asks for a resource of this type."""
    if resource in _OF_RESOURCES:
        return _OF_RESOURCES[resource]
    kind = short_name(resource)
    words = split_camel(kind, "_").lower().strip("_")
    return (Need(f"no_{words}", words, f"a resource of the type {kind}", resource=resource),)


def english_words(role: str) -> Need:
    """Words of this role that are not known to be of a language other than English."""
    return Need(
        LANGUAGE_NOT_SUPPORTED,
        f"words of the {role}",
        "a conversation in English: these rules read no other language",
        lambda conversation: languages_of(conversation).of_role(role) in ("", "en"),
    )


NOT_BROKEN = Need(
    "conversation_errored",
    "outcome.error",
    "a conversation whose integration did not break",
    lambda conversation: not conversation.outcome.error,
    status_if_missing=NOT_APPLICABLE,
)
FLOW_DECLARED = Need(
    "no_flow_definition",
    "flow",
    "the definition of the flow, given with --flows",
    lambda conversation: conversation.flow is not None,
)
