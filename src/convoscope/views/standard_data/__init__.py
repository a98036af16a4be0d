"""Evaluation items of the StandardData schema: the schema, the tolerant reading of messy payloads, and both ways
between items and conversations.

Pydantic is imported when a model is asked for, and not before.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Not looked up later: the module of the same name would replace the function.
from convoscope.views.standard_data.tidy import Tidied, tidy, unknown_names
from convoscope.views.standard_data.values import Warned

if TYPE_CHECKING:
    from convoscope.views.standard_data.canonical import standard_data_of, to_conversation
    from convoscope.views.standard_data.schema import (
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
    if name not in __all__:
        raise AttributeError(f"module 'convoscope.views.standard_data' has no attribute {name!r}")
    module = "canonical" if name in ("standard_data_of", "to_conversation") else "model"
    return getattr(import_module(f"convoscope.views.standard_data.{module}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
