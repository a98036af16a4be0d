"""Evaluation items of the StandardData schema: the model, the tolerant reading of messy payloads, and both ways
between items and conversations.

Pydantic is imported when a model is asked for, and not before.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Not looked up later: the module of the same name would stand in the function's place.
from convoscope.views.standard_data.tidy import Tidied, tidy, unknown_names
from convoscope.views.standard_data.values import Warned

if TYPE_CHECKING:
    from convoscope.views.standard_data.canonical import standard_data_of, to_conversation
    from convoscope.views.standard_data.model import (
        ConversationTurn,
        EOUMetrics,
        LLMMetrics,
        RawCompleteAudio,
        StandardConversation,
        StandardData,
        StandardToolCall,
        StandardToolResult,
        STTData,
        STTMetrics,
        ToolSchema,
        TTSData,
        TTSMetrics,
        VADMetrics,
    )

_MODELS = (
    "StandardConversation",
    "ConversationTurn",
    "EOUMetrics",
    "LLMMetrics",
    "RawCompleteAudio",
    "STTData",
    "STTMetrics",
    "StandardData",
    "TTSData",
    "TTSMetrics",
    "StandardToolCall",
    "StandardToolResult",
    "ToolSchema",
    "VADMetrics",
)
_HOME = {
    **dict.fromkeys(_MODELS, "model"),
    "standard_data_of": "canonical",
    "to_conversation": "canonical",
}

__all__ = [
    "ConversationTurn",
    "EOUMetrics",
    "LLMMetrics",
    "RawCompleteAudio",
    "STTData",
    "STTMetrics",
    "StandardConversation",
    "StandardData",
    "StandardToolCall",
    "StandardToolResult",
    "TTSData",
    "TTSMetrics",
    "Tidied",
    "ToolSchema",
    "VADMetrics",
    "Warned",
    "standard_data_of",
    "tidy",
    "to_conversation",
    "unknown_names",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"convoscope.views.standard_data.{_HOME[name]}"), name)
    raise AttributeError(f"module 'convoscope.views.standard_data' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
