"""What goes wrong in the invented agent: the kinds of faults, and its two versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class PlantedFault(StrEnum):
    """Why a call was lost."""

    STALL = "stall"
    SLOW_TOOL = "slow tool"
    FAILED_TOOL = "failed tool"
    TALK_OVER = "talk over"
    MISHEARING = "mishearing"
    LOOP = "loop"
    SILENCE = "silence"
    NO_FAULT = "no fault"
    """The caller changed their mind, or wanted a person from the start: nothing that the agent did."""


@dataclass(frozen=True)
class AgentVersion:
    """One version of the agent: what goes wrong in it, and how fast it is."""

    name: str
    faults: Mapping[PlantedFault, float]
    """The share of calls that each fault loses."""
    stalling_state: str = "collect_vehicle"
    bad_tool: str = "find_sailings"
    """The tool that is slow, or that fails."""
    slow_seconds: tuple[float, float] = (9.0, 16.0)
    """Of the slow tool, in calls that it loses."""
    overlap_seconds: tuple[float, float] = (2.2, 2.9)
    """Of talking over a caller who gives up for it."""
    rewording: float = 0.0
    """The share of its repeated questions that a stalling state puts into other words."""
    wait: tuple[float, float] = (1.1, 2.1)
    """Seconds before it replies."""
    tool_seconds: tuple[float, float] = (0.4, 1.3)
    bad_tool_seconds: tuple[float, float] = (0.5, 1.5)
    """Of the bad tool, in calls that it does not lose."""
    haste: float = 0.02
    """The share of replies that begin before the caller has finished."""
    broken: float = 0.02
    """The share of calls whose line drops."""


VERSIONS = (
    AgentVersion(
        "v1",
        {
            PlantedFault.STALL: 0.12,
            PlantedFault.SLOW_TOOL: 0.13,
            PlantedFault.TALK_OVER: 0.02,
            PlantedFault.MISHEARING: 0.05,
            PlantedFault.NO_FAULT: 0.03,
        },
        bad_tool_seconds=(1.8, 6.0),
    ),
    AgentVersion(
        "v2",
        {
            PlantedFault.STALL: 0.12,
            PlantedFault.TALK_OVER: 0.12,
            PlantedFault.MISHEARING: 0.05,
            PlantedFault.NO_FAULT: 0.03,
        },
        wait=(0.5, 1.1),
        haste=0.12,
    ),
)
"""v2 replies sooner and has a fast search; for that it talks over callers."""
