"""The table of the seed `per-state-metrics.txt`, and conversations that give it by the definitions of flow-states.

Worked out by hand, flow by flow:

- `ceo_command_center`: four states with 4 + 3 + 4 + 2 stalls, and 13 conversations in triage: every one of its
  conversations was in triage, and none was completed. Re-entries are 43, 14 and 11. Between two entries of triage
  lies another state or a re-ask, that is triage itself: 43 re-entries and 50 stays outside fit 41 entries of the two
  dispatch states only if triage asks again by itself 9 times, and once more each time that dispatch_intent leads
  straight to dispatch_send. That is 13 times here, so 22. Progress is 1.0 also where a conversation ends stuck: each
  of the states led on at least once. With these four states alone that needs an order: a command centre goes round,
  and triage is declared as what comes after dispatch_send.
- `property_trouble_ticket`: 13 conversations that ended where they were.
- `apartment_viewing`: 3 of 5 went on, 2 stayed; 12 turns; of 5 × 2 required slots one was filled.
- `dog_grooming`: 2 went on, 3 stayed, 4 were handed over; 23 turns; of 9 required slots none was filled.

Latencies rise evenly, so that the 95th percentile falls on the figure of the seed. `lat_p95` 0.0 beside 1.2 turns is a
turn that took no time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class Row(NamedTuple):
    """A row as the seed prints it."""

    flow: str
    state: str
    n: int
    progress: float
    stall: float
    escal: float
    revisit: float
    dwell: float
    lat_p95: float
    slot_fill: float | None


SEED = (
    Row("ceo_command_center", "status_query", 2, 0.0, 1.0, 0.0, 0.0, 5.0, 3.1, None),
    Row("property_trouble_ticket", "invalid_verification_code", 13, 0.0, 1.0, 0.0, 0.0, 1.0, 2.6, None),
    Row("ceo_command_center", "dispatch_send", 8, 1.0, 0.5, 0.0, 1.38, 1.2, 0.0, None),
    Row("apartment_viewing", "collect_details", 5, 0.6, 0.4, 0.0, 0.0, 2.4, 8.8, 0.1),
    Row("ceo_command_center", "dispatch_intent", 8, 1.0, 0.38, 0.0, 1.75, 1.3, 1.7, None),
    Row("dog_grooming", "listen_owner", 9, 0.22, 0.33, 0.44, 0.0, 2.6, 1.7, 0.0),
    Row("ceo_command_center", "triage", 13, 1.0, 0.31, 0.0, 3.31, 0.6, 1.6, None),
)
"""In the order of the seed."""

DEFINITIONS: tuple[dict[str, Any], ...] = (
    {
        "flow": "ceo_command_center",
        "states": ["dispatch_intent", "dispatch_send", "triage", "status_query"],
        "order": ["dispatch_intent", "dispatch_send", "triage", "status_query"],
    },
    {"flow": "apartment_viewing", "states": {"collect_details": {"required_slots": ["rooms", "budget"]}}},
    {"flow": "dog_grooming", "states": {"listen_owner": {"required_slots": ["owner"]}}},
)

T, D, S, Q = "triage", "dispatch_intent", "dispatch_send", "status_query"


class Talk(NamedTuple):
    """A conversation: the states in order, and the turns in each of them, over all its visits."""

    flow: str
    path: tuple[str, ...]
    turns: dict[str, int]
    completed: bool = False
    left_for: str = ""
    """An end that it was left for and that nobody entered."""
    slots: tuple[str, ...] = ()


def _asks(again: int) -> list[str]:
    return [T] * (1 + again)


def _command_center() -> Iterator[Talk]:
    """13 conversations. Entries: triage 56, dispatch_intent 22, dispatch_send 19, status_query 2."""
    round_trip = [D, S, T]
    for again in (3, 3, 3):  # stuck in triage, after three commands
        path = [*_asks(again), *round_trip * 3]
        yield Talk("ceo_command_center", tuple(path), {T: 4, D: 4, S: 4})
    yield Talk("ceo_command_center", (*_asks(2), *round_trip * 2), {T: 3, D: 2, S: 2})
    yield Talk("ceo_command_center", (*_asks(1), D, S, T, D, S), {T: 2, D: 3, S: 3})  # stuck in dispatch_send
    for again, turns in ((2, 3), (2, 3), (1, 2)):  # stuck in dispatch_intent
        yield Talk("ceo_command_center", (*_asks(again), D, T, D, T, D), {T: turns, D: 4})
    for _ in range(3):  # stuck in dispatch_send
        yield Talk("ceo_command_center", (*_asks(1), S, T, S), {T: 2, S: 2})
    for _ in range(2):
        yield Talk("ceo_command_center", (*_asks(1), Q), {T: 1, Q: 5})


def talks() -> list[Talk]:
    """All conversations behind the table."""
    code, details, owner = "invalid_verification_code", "collect_details", "listen_owner"
    made = list(_command_center())
    made += [Talk("property_trouble_ticket", (code,), {code: 1})] * 13
    for turns in (2, 3, 2):
        slots = ("rooms",) if turns == 3 else ()
        made.append(Talk("apartment_viewing", (details,), {details: turns}, True, "viewing_requested", slots))
    made += [Talk("apartment_viewing", (details,), {details: turns}) for turns in (3, 2)]
    made += [Talk("dog_grooming", (owner,), {owner: 2}, True, "appointment_made")] * 2
    made += [Talk("dog_grooming", (owner,), {owner: 3})] * 3
    made += [Talk("dog_grooming", (owner,), {owner: turns}, False, "escalated") for turns in (3, 3, 2, 2)]
    return made


def write(folder: Path) -> None:
    """The conversations as state events, and the flows that are declared."""
    every = talks()
    latencies = {(row.flow, row.state): iter(_latencies(row, every)) for row in SEED}
    lines = [line for number, talk in enumerate(every) for line in _events(number, talk, latencies)]
    text = "".join(json.dumps(line) + "\n" for line in sorted(lines, key=lambda line: line["timestamp"]))
    (folder / "events.jsonl").write_text(text, encoding="utf-8")
    (folder / "flows.json").write_text(json.dumps({"flows": list(DEFINITIONS)}), encoding="utf-8")


def _latencies(row: Row, every: Sequence[Talk]) -> list[float]:
    """Evenly rising milliseconds, with the 95th percentile on the seed's figure; to send takes none."""
    count = sum(talk.turns.get(row.state, 0) for talk in every if talk.flow == row.flow)
    target = 1000 * row.lat_p95
    return [target * (0.4 + 0.6 * place / (0.95 * (count - 1))) for place in range(count)]


def _events(number: int, talk: Talk, latencies: dict[tuple[str, str], Iterator[float]]) -> Iterator[dict[str, Any]]:
    at, seq = 1_760_000_000.0 + 7 * number, 0
    left = dict(talk.turns)

    def line(event: str, **facts: Any) -> dict[str, Any]:
        nonlocal at, seq
        at, seq = at + 0.01, seq + 1
        shared = {"conversation_id": f"{talk.flow}-{number}", "flow": talk.flow, "agent": "gemini"}
        return {**shared, "seq": seq, "timestamp": round(at, 4), "event": event, **facts}

    for place, state in enumerate(talk.path):
        yield line("state_entered", state=state)
        rest = talk.path[place + 1 :]
        # One turn in each visit while there are enough; what is left over in the last.
        for _ in range(min(1, left[state]) if state in rest else left[state]):
            left[state] -= 1
            latency = next(latencies[talk.flow, state])
            at += 1 + latency / 1000
            yield line("turn_complete", latency_ms=latency, state=state)
        for slot in talk.slots:
            yield line("slot_filled", slot=slot, value=2, state=state)
        if to_state := rest[0] if rest else talk.left_for:
            yield line("state_exited", state=state, to_state=to_state)
    yield line("conversation_ended", completed=talk.completed, stop_reason="hangup")
