"""Pipecat's breakdown of one wait, from the end of the user's speech to the bot's first sound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from convoscope.views.standard_data.payloads.fields import keep
from convoscope.views.standard_data.payloads.pipecat import TEXT_AGGREGATION, TTFB, service_of

_ONLY_HERE = ("user_turn_secs", "total_secs", "user_turn_start_time")
_BESIDE_A_LIST = ("function_calls", "contributions")
_OF_THE_WHOLE = {"total_secs": "e2e_latency", "type": "source_type"}
_RENAMED = {"duration_secs": "value", "start_time": "timestamp"}


class BreakdownPart(NamedTuple):
    """One measurement of a processor, as an entry of a metrics frame would tell it."""

    metric: str
    step: str
    entry: object

    @property
    def processor(self) -> str:
        return str(self.entry.get("processor") or "") if isinstance(self.entry, dict) else ""

    @property
    def of_recognition(self) -> bool:
        return self.metric == TTFB and service_of(self.processor) == "stt"


class Breakdown(NamedTuple):
    """The end of the user's turn, what each processor took, and what is of the whole wait."""

    end_of_turn: dict[str, Any]
    parts: list[BreakdownPart]
    whole: dict[str, Any]


def is_breakdown(entry: Mapping[str, Any]) -> bool:
    """Whether this is a breakdown: it says how long the user's turn or the whole wait took, or lists what it was."""
    return any(key in entry for key in _ONLY_HERE) or (
        isinstance(entry.get(TTFB), list) and any(key in entry for key in _BESIDE_A_LIST)
    )


def taken_apart(entry: Mapping[str, Any]) -> Breakdown:
    """The parts of a breakdown, each in the words of the others."""
    parts = [
        *(BreakdownPart(TTFB, f".{TTFB}[{index}]", _as_entry(one)) for index, one in enumerate(_listed(entry, TTFB))),
        *(
            BreakdownPart(TEXT_AGGREGATION, f".{TEXT_AGGREGATION}", _as_entry(one))
            for one in _listed(entry, TEXT_AGGREGATION)
        ),
    ]
    whole: dict[str, Any] = {}
    for key, value in entry.items():
        if key not in (TTFB, TEXT_AGGREGATION, "user_turn_secs") and value is not None and value != []:
            keep(whole, _OF_THE_WHOLE.get(key, key), value)
    ended = entry.get("user_turn_secs")
    return Breakdown({} if ended is None else {"end_of_utterance_delay": ended}, parts, whole)


def _listed(entry: Mapping[str, Any], key: str) -> list[Any]:
    value = entry.get(key)
    return value if isinstance(value, list) else [] if value is None else [value]


def _as_entry(part: object) -> object:
    if not isinstance(part, dict):
        return part
    entry: dict[str, Any] = {}
    for key, value in part.items():
        name = _RENAMED.get(str(key), str(key))
        keep(entry, key if name in part else name, value)
    return entry
