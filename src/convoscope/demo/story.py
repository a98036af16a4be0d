"""Marlin, the voice agent of the ferry line Skerry Lines, moves bookings to another day: its flow, and what is said."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, NamedTuple

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

    def tell(self, text: str, **more: str) -> str:
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
    places = [place for place, letter in enumerate(code) if letter in MISHEARINGS]
    changed = set(draw.sample(places, min(2, len(places))))
    return "".join(MISHEARINGS[letter] if place in changed else letter for place, letter in enumerate(code))
