"""Whether a conversation is a call: it has speech, or fields that only a phone call has."""

from __future__ import annotations

from collections.abc import Mapping

from convoscope.conversation import Conversation
from convoscope.text.identifiers import snake_case

_PHONE_FIELDS = frozenset(
    (
        "call_type",
        "call_status",
        "call_sid",
        "call_duration",
        "from_number",
        "to_number",
        "phone_number",
        "caller_number",
    )
)
"""Fields of a record that only a phone call has, whether or not its sound was logged, folded."""
_LONGEST_NAME = 40


def is_call(conversation: Conversation) -> bool:
    """It has speech: the pipeline is one of speech, or there are logs of a call, or sound."""
    if conversation.pipeline is not None:
        return conversation.pipeline != "text"
    return bool(conversation.log) or conversation.contents.has_sound


def is_phone_call(conversation: Conversation) -> bool:
    """A call, or a transcript with the fields of one: `call_sid`, `fromNumber`, also in its metadata."""
    if is_call(conversation):
        return True
    metadata = conversation.extras.get("metadata")
    return _has_phone_field(conversation.extras) or (isinstance(metadata, dict) and _has_phone_field(metadata))


def _has_phone_field(facts: Mapping[str, object]) -> bool:
    return any(
        len(name) <= _LONGEST_NAME and snake_case(name) in _PHONE_FIELDS and value not in (None, "")
        for name, value in facts.items()
    )


__all__ = ["is_call", "is_phone_call"]
