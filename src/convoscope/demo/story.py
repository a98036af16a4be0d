"""Marlin, the voice agent of Skerry Lines: its flow, what is said, its versions and planted faults, and a call."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple


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


FLOW = "move_crossing"
FLOW_FILE = Path(__file__).with_name(f"{FLOW}.yaml")
COMPANY = "Skerry Lines, a ferry company"
INSTRUCTIONS = (
    "You are Marlin, the booking desk of Skerry Lines. Move a booking to another day. Find the booking first, "
    "offer sailings, ask how long the vehicle is, read everything back, then move it. Put callers who ask for a "
    "person through."
)


def _tool(name: str, description: str, kind: str, **arguments: str) -> dict[str, Any]:
    properties = {argument: {"type": type} for argument, type in arguments.items()}
    schema = {"type": "object", "properties": properties, "required": list(arguments)}
    return {"name": name, "description": description, "kind": kind, "arguments_schema": schema}


TOOLS = [
    _tool("find_booking", "Find a booking by its code.", "read", code="string"),
    _tool("find_sailings", "List the sailings of a day with free places.", "read", day="string"),
    _tool("move_booking", "Move a booking to another sailing.", "write", code="string", sailing="string"),
]


MONTHS = ("April", "May", "June")
DEPARTURES = (("7:20", "13:45"), ("8:05", "16:30"), ("9:40", "14:15"), ("6:50", "18:10"))
MISHEARINGS = {"D": "T", "T": "D", "B": "P", "P": "B", "F": "S", "S": "F", "M": "N", "N": "M", "5": "9", "9": "5"}
"""Sounds that a recogniser takes for each other."""
SLIPS = {
    "ferry": "fairy",
    "crossing": "crossings",
    "like": "liked",
    "please": "peas",
    "the": "a",
    "my": "by",
    "we": "they",
    "is": "was",
    "code": "coat",
    "booked": "looked",
    "trip": "strip",
    "that": "what",
    "week": "weak",
}
"""Words that it now and then gets wrong, and that do not matter."""


def _phrases() -> dict[str, list[str]]:
    phrases: dict[str, list[str]] = {}
    for line in Path(__file__).with_name("phrases.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            phrases[line.strip("[]")] = []
        elif line and not line.startswith("#"):
            phrases[list(phrases)[-1]].append(line)
    return phrases


PHRASES = _phrases()
"""What is said, by occasion."""


class Task(NamedTuple):
    """What a caller wants: the same in each trial of a scenario and in both versions."""

    name: str
    code: str
    port: str
    old: str
    day: str
    other: str
    """A day that the caller does not want."""
    first: str
    second: str
    sailing: str
    metres: str

    def fill(self, text: str, **more: str) -> str:
        return text.format(**(self._asdict() | more))


def draw_task(draw: random.Random) -> Task:
    """A caller with a booking. Every code has letters that can be misheard."""
    month, old = draw.choice(MONTHS), draw.randint(2, 12)
    day = old + draw.randint(3, 9)
    letters, digits = draw.sample("DTBPFMN", 3), draw.sample("234678", 3)
    first, second = draw.choice(DEPARTURES)
    return Task(
        name=draw.choice(PHRASES["names"]),
        code="".join(letter + digit for letter, digit in zip(letters, digits, strict=True)),
        port=draw.choice(PHRASES["ports"]),
        old=date(old, month),
        day=date(day, month),
        other=date(day + 1, month),
        first=first,
        second=second,
        sailing=draw.choice((first, second)),
        metres=f"{draw.randint(4, 7)}.{draw.randint(1, 9)}",
    )


def date(day: int, month: str) -> str:
    """A date as it is said."""
    ending = "th" if 10 < day < 20 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{ending} of {month}"


def misheard(code: str, draw: random.Random) -> str:
    """The code with two of its letters taken for others."""
    indices = [index for index, letter in enumerate(code) if letter in MISHEARINGS]
    changed = set(draw.sample(indices, min(2, len(indices))))
    return "".join(MISHEARINGS[letter] if index in changed else letter for index, letter in enumerate(code))


AGENT, CALLER = "agent", "caller"
HUNG_UP, PUT_THROUGH, DROPPED = "caller hung up", "put through to a person", "the line dropped"


class SpeechStep(NamedTuple):
    """Someone speaks; `heard` is what the recogniser wrote of a caller's words."""

    start: float
    end: float
    speaker: str
    text: str
    heard: str = ""
    cut_off: bool = False
    """The caller began to speak, and the agent stopped."""
    waited: float = 0.0
    """Seconds that the caller waited for it, where it is a reply."""


class ToolStep(NamedTuple):
    """A tool is called, and answers."""

    start: float
    end: float
    name: str
    arguments: dict[str, str]
    result: dict[str, Any] | None
    error: str = ""


class StateStep(NamedTuple):
    """The flow leaves a state, if it was in one, and enters another."""

    start: float
    state: str
    former: str


class SlotStep(NamedTuple):
    """The flow learns something."""

    start: float
    slot: str
    value: str
    state: str


Step = SpeechStep | ToolStep | StateStep | SlotStep


class PhoneCall(NamedTuple):
    """A call: what happened, in seconds since it began, and what only its maker knows."""

    id: str
    version: str
    dataset: str
    scenario: str
    """Empty for a call of the live line."""
    trial: int
    started: float
    task: Task
    steps: tuple[Step, ...]
    duration: float
    completed: bool | None
    ended: str
    error: str
    fault: PlantedFault | None
    """None where nothing was lost, or the line dropped."""
