"""Conversations through a declared flow in which faults were planted, as lines of state events, and what was planted.

Everything follows from the seed. What is healthy is noisy, too: callers hang up, ask again, go back a step, are handed
over; some turns are slow; some calls break and count for nothing. Rates of that stay far below what the specification
calls a fault (flow-states, Analyse), which the generator does not look at.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from convoscope.analysis.flows.diagnosis import Analysis

Place = tuple[str, str]
"""A flow and a state of it."""

STALL, GUARD, OSCILLATION, SLOW = "stall", "guard_error", "revisit", "latency"
KINDS = (STALL, GUARD, OSCILLATION, SLOW)
"""The faults, by the names that the diagnosis has for them."""
CONSEQUENCES = {STALL: frozenset(("progress", "slots"))}
"""Who gets stuck in a state neither leaves it nor fills its slots: that is the same fault, told again."""

SEEDS = 50
ENOUGH = 400
"""Conversations of a flow. Some 370 come to a state that all pass: that fewer than 30 % of them are seen to stall where
40 % do happens once in 39,000 times; of the 165 in the rarer branch, once in 260 (`chance_to_miss`). That any stall
is missed in 50 seeds, 30 of which have one, most of them outside of branches, is an event of some 2 %."""

FIRST_BRANCH = 0.55
PLANTED_STALL = 0.4
PLANTED_GUARD = 0.2
PLANTED_OSCILLATION = 0.85
FRONT_LOADED = 0.85
HEALTHY_STALL = 0.01
HEALTHY_ESCALATION = 0.005
HEALTHY_RETURN = 0.05
HEALTHY_SLOW_TURN = 0.01
BROKEN = 0.02
AGENTS = ("gemini", "claude", "gpt")
ESCALATED, UNUSED = "escalated", "after_hours"
_DAY = 1_760_000_000.0


class Step(NamedTuple):
    """A state as it is meant to be."""

    name: str
    speech_act: str
    slots: tuple[str, ...] = ()
    tool: str = ""


class Fault(NamedTuple):
    """One planted fault; an oscillation has two states."""

    kind: str
    flow: str
    states: tuple[str, ...]


class Planted(NamedTuple):
    """The conversations of a seed, each a list of events, and the truth about them."""

    seed: int
    definitions: tuple[dict[str, Any], ...]
    """The flows, in the form of a flow definition file."""
    conversations: tuple[list[dict[str, Any]], ...]
    faults: tuple[Fault, ...]
    front_loaded: frozenset[Place]
    """States that collect little because callers told it before: healthy."""
    broken: int
    """Conversations whose integration broke."""

    @property
    def expected(self) -> dict[Place, str]:
        """The fault of each state that has one."""
        return {(fault.flow, state): fault.kind for fault in self.faults for state in fault.states}


Route = tuple[tuple[Step, ...], ...]
"""The steps of a flow; where two are possible, callers take the first in 55 of 100 cases."""


def _one(name: str, speech_act: str, *slots: str, tool: str = "") -> tuple[Step, ...]:
    return (Step(name, speech_act, slots, tool),)


ROUTES: Mapping[str, Route] = {
    "apartment_viewing": (
        _one("greet", "static"),
        _one("identify", "listen", "name", "phone"),
        (Step("collect_details", "listen", ("rooms", "budget")), Step("pick_listing", "listen", ("listing",))),
        _one("collect_move_in", "listen", "move_in"),
        _one("choose_time", "listen", "day", "hour"),
        _one("confirm", "confirm"),
        _one("book_viewing", "act", tool="calendar.book"),
        _one("close", "close"),
    ),
    "dog_grooming": (
        _one("greet", "static"),
        _one("listen_owner", "listen", "owner"),
        _one("listen_dog", "listen", "dog", "breed"),
        (Step("known_dog", "ask"), Step("new_dog", "listen", ("age", "weight"))),
        _one("choose_day", "listen", "day"),
        _one("read_back", "confirm"),
        _one("reserve", "act", tool="salon.reserve"),
        _one("close", "close"),
    ),
    "trouble_ticket": (
        _one("welcome", "static"),
        _one("verify_caller", "listen", "customer"),
        _one("describe_problem", "listen", "problem"),
        (Step("routine_questions", "ask"), Step("urgent_questions", "listen", ("danger",))),
        _one("locate", "listen", "street", "floor"),
        _one("summarise", "confirm"),
        _one("open_ticket", "act", tool="tickets.open"),
        _one("farewell", "close"),
    ),
}


def plant(seed: int, conversations: int = ENOUGH) -> Planted:
    """`conversations` of each flow of a seed. A fifth of the seeds has no fault, the others have one to four."""
    draw = random.Random(seed)
    names = draw.sample(sorted(ROUTES), 1 if seed % 6 else 2)
    routes = {f"{name}_{seed}": ROUTES[name] for name in names}
    faults, early = _drawn(draw, routes, _kinds(seed))
    made: list[list[dict[str, Any]]] = []
    broken = 0
    for name, route in routes.items():
        for call in _calls(name, route, faults, early.get(name, ""), conversations, draw):
            made.append(call.events)
            broken += call.broke
    definitions = tuple(definition(name, route) for name, route in routes.items())
    return Planted(seed, definitions, tuple(made), faults, frozenset(early.items()), broken)


def short_calls(count: int, seed: int = 0) -> Iterator[list[dict[str, Any]]]:
    """Calls of some twenty events, by the beginnings and ends of the flows; a state stalls and a guard fails."""
    draw = random.Random(seed)
    for name, route in ROUTES.items():
        short = route[:4] + route[-2:]
        faults = (Fault(STALL, name, (short[2][0].name,)), Fault(GUARD, name, (short[3][0].name,)))
        for call in _calls(name, short, faults, "", count // len(ROUTES), draw):
            yield call.events


def _calls(
    name: str, route: Route, faults: Sequence[Fault], early: str, count: int, draw: random.Random
) -> Iterator[_Call]:
    plan = _Plan(name, route, faults, early, draw.random() < 0.5)
    for number in range(count):
        call = _Call(
            plan, f"{name}-{draw.randrange(10**6):06d}-{number}", _DAY + 6.0 * number + draw.uniform(0, 20), draw
        )
        call.run()
        yield call


def _kinds(seed: int) -> tuple[str, ...]:
    """Five seeds: no fault, one, two, three, all four; the next five begin with another kind."""
    first = seed // 5
    return tuple(KINDS[(first + place) % len(KINDS)] for place in range(seed % 5))


def _drawn(
    draw: random.Random, routes: Mapping[str, Route], kinds: Sequence[str]
) -> tuple[tuple[Fault, ...], dict[str, str]]:
    """Faults in states that no other fault is in, and the states whose slots callers tell early, by flow."""
    free = {
        name: [step.name for steps in route[:-1] for step in steps if not step.tool] for name, route in routes.items()
    }
    faults: list[Fault] = []
    # The pair first: it needs two neighbours, of which none is a branch.
    for kind in sorted(kinds, key=lambda one: one != OSCILLATION):
        flow = draw.choice(list(routes))
        chosen: tuple[str, ...]
        if kind == OSCILLATION:
            pairs = [(a[0].name, b[0].name) for a, b in pairwise(routes[flow][:-1]) if len(a) == len(b) == 1]
            chosen = draw.choice([pair for pair in pairs if set(pair) <= set(free[flow])])
        else:
            chosen = (draw.choice(free[flow]),)
        free[flow] = [name for name in free[flow] if name not in chosen]
        faults.append(Fault(kind, flow, chosen))
    early: dict[str, str] = {}
    for name, route in routes.items():
        listening = [step.name for steps in route[2:] for step in steps if step.slots and step.name in free[name]]
        if listening and draw.random() < 0.6:
            early[name] = draw.choice(listening)
    return tuple(faults), early


def definition(name: str, route: Route) -> dict[str, Any]:
    """A flow as its authors declare it. It has a state that nobody ever comes to."""
    states: dict[str, dict[str, Any]] = {}
    for step in (step for steps in route for step in steps):
        states[step.name] = {"speech_act": step.speech_act}
        if step.slots:
            states[step.name]["required_slots"] = list(step.slots)
        if step.tool:
            # Slow by nature, and declared to be.
            states[step.name]["latency_budget_ms"] = 12_000
    states[route[-1][0].name]["terminal"] = "success"
    states[UNUSED] = {"speech_act": "static"}
    states[ESCALATED] = {"terminal": "escalation"}
    of_kind = {
        kind: [step.name for steps in route for step in steps if step.speech_act in acts]
        for kind, acts in (("collect", ("ask", "listen")), ("confirm", ("confirm",)), ("act", ("act",)))
    }
    return {
        "flow": name,
        "states": states,
        "order": [[step.name for step in steps] for steps in route],
        "segments": {kind: {"kind": kind, "members": members} for kind, members in of_kind.items()},
        "completion_slots": list(route[1][0].slots),
        "final_status": ["booked"],
    }


class _Plan:
    """What the calls of one flow have in common."""

    def __init__(self, name: str, route: Route, faults: Sequence[Fault], early: str, enters_ends: bool) -> None:
        mine = {(state, fault.kind): fault for fault in faults if fault.flow == name for state in fault.states}
        self.name, self.route, self.enters_ends = name, route, enters_ends
        self.early = next((step.slots for steps in route for step in steps if step.name == early), ())
        self.stalls = frozenset(state for state, kind in mine if kind == STALL)
        self.guards = frozenset(state for state, kind in mine if kind == GUARD)
        self.slow = frozenset(state for state, kind in mine if kind == SLOW)
        self.turns_back = next((fault.states[1] for fault in mine.values() if fault.kind == OSCILLATION), "")


class _Call:
    """One conversation on its way through the flow."""

    def __init__(self, plan: _Plan, id: str, at: float, draw: random.Random) -> None:
        self.plan, self.at, self.draw = plan, at, draw
        self.events: list[dict[str, Any]] = []
        self.shared = {"conversation_id": id, "flow": plan.name, "agent": draw.choice(AGENTS)}
        self.filled: set[str] = set()
        self.breaks_at = draw.randrange(len(plan.route) - 1) if draw.random() < BROKEN else -1
        self.broke = False
        self.loops = draw.choice((1, 1, 2, 2, 3, 3)) if draw.random() < PLANTED_OSCILLATION else 0
        self.returns = 1 if draw.random() < HEALTHY_RETURN else 0
        self.returns_at = draw.randrange(2, len(plan.route) - 1)
        self.early = plan.early if draw.random() < FRONT_LOADED else ()

    def run(self) -> None:
        path = [
            steps[0] if len(steps) == 1 or self.draw.random() < FIRST_BRANCH else steps[1] for steps in self.plan.route
        ]
        place, seen = 0, set[str]()
        while place < len(path) - 1:
            step = path[place]
            self.emit("state_entered", state=step.name)
            self.stay(step)
            if place == self.breaks_at:
                self.break_down(step)
                return
            if step.name not in seen and self.leaves_for_good(step):
                return
            seen.add(step.name)
            after = self.next_place(place, step)
            reason = "slots_filled" if after > place else "corrected"
            self.emit("state_exited", state=step.name, to_state=path[after].name, reason=reason)
            place = after
        if self.plan.enters_ends:
            self.emit("state_entered", state=path[-1].name)
            self.turn(path[-1])
        self.end(completed=True, stop_reason="terminal", final_status="booked")

    def next_place(self, place: int, step: Step) -> int:
        if step.name == self.plan.turns_back and self.loops:
            self.loops -= 1
            return place - 1
        if place == self.returns_at and self.returns:
            self.returns = 0
            return place - 1
        return place + 1

    def stay(self, step: Step) -> None:
        for _ in range(1 + (self.draw.random() < 0.3)):
            self.turn(step)
        if step.tool:
            self.emit("tool_called", name=step.tool, arguments={})
            self.at += 0.5
            self.emit("tool_result", name=step.tool, success=self.draw.random() < 0.98)

    def turn(self, step: Step) -> None:
        self.at += self.draw.uniform(1.0, 4.0)
        latency = self.latency(step)
        self.at += latency / 1000
        self.emit("turn_complete", latency_ms=latency)

    def latency(self, step: Step) -> float:
        if step.name in self.plan.slow:
            seconds = self.draw.lognormvariate(1.1, 0.45)
        elif step.tool:
            seconds = self.draw.uniform(4.5, 9.0)
        elif self.draw.random() < HEALTHY_SLOW_TURN:
            seconds = self.draw.uniform(4.0, 9.0)
        else:
            seconds = self.draw.uniform(0.6, 2.0)
        return round(1000 * seconds, 1)

    def leaves_for_good(self, step: Step) -> bool:
        """The caller gives up in this state, or is handed over; else it collects its slots and its guard is asked."""
        if self.draw.random() < (PLANTED_STALL if step.name in self.plan.stalls else HEALTHY_STALL):
            self.end(completed=False, stop_reason=self.draw.choice(("caller_hangup", "max_turns")))
            return True
        if self.draw.random() < HEALTHY_ESCALATION:
            self.emit("state_exited", state=step.name, to_state=ESCALATED, reason="asked_for_a_person")
            if self.plan.enters_ends:
                self.emit("state_entered", state=ESCALATED)
            self.end(completed=False, stop_reason="escalated")
            return True
        self.collect(step)
        failed = step.name in self.plan.guards and self.draw.random() < PLANTED_GUARD
        if step.slots or step.name in self.plan.guards:
            self.emit("guard_evaluated", guard=f"{step.name}_done", result=not failed, error=_ERROR if failed else None)
        return False

    def collect(self, step: Step) -> None:
        told = step.slots + (self.early if step is self.plan.route[1][0] else ())
        for slot in told:
            if slot not in self.filled and self.draw.random() < 0.96:
                self.filled.add(slot)
                self.emit("slot_filled", slot=slot, value=self.draw.choice(_VALUES), state=step.name)

    def break_down(self, step: Step) -> None:
        """What a broken call leaves looks like every fault at once, and is none."""
        self.broke = True
        self.emit("guard_evaluated", guard=f"{step.name}_done", result=False, error="backend unavailable")
        self.at += 30
        self.emit("turn_complete", latency_ms=30_000.0)
        self.end(completed=False, stop_reason="error", error="backend unavailable")

    def end(self, **facts: Any) -> None:
        self.emit("conversation_ended", **facts)

    def emit(self, event: str, **facts: Any) -> None:
        self.at += 0.01
        line = {**self.shared, "seq": len(self.events), "timestamp": round(self.at, 3), "event": event, **facts}
        self.events.append(line)


_ERROR = "KeyError: 'budget'"
_VALUES = ("blue", "two", 0, False, "", 17)
"""Committed values; a false one is as good as any."""


def write(seeds: Sequence[Planted], folder: Path) -> None:
    """All conversations in one file, their lines interleaved as they happened, and each flow as YAML."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [event for one in seeds for events in one.conversations for event in events]
    lines.sort(key=lambda event: event["timestamp"])
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "events.jsonl").write_text(text, encoding="utf-8")
    for declared in (declared for one in seeds for declared in one.definitions):
        (folder / f"{declared['flow']}.yaml").write_text(yaml(declared), encoding="utf-8")


def yaml(declared: Mapping[str, Any]) -> str:
    """Block style outside, JSON, which YAML is a superset of, inside."""
    return "".join(_yaml_lines(declared))


def _yaml_lines(declared: Mapping[str, Any]) -> Iterator[str]:
    for key, value in declared.items():
        if isinstance(value, dict):
            yield f"{key}:\n"
            yield from (f"  {name}: {json.dumps(one)}\n" for name, one in value.items())
        else:
            yield f"{key}: {json.dumps(value)}\n"


class Alarm(NamedTuple):
    """A state, and a fault that the diagnosis names and nobody planted."""

    flow: str
    state: str
    fault: str


class Verdict(NamedTuple):
    """A diagnosis held against the truth."""

    found: tuple[Fault, ...]
    missed: tuple[Fault, ...]
    alarms: tuple[Alarm, ...]
    healthy: int
    """States that were looked at and are well."""

    @property
    def exact(self) -> bool:
        """It names what was planted, and nothing else."""
        return not self.missed and not self.alarms


def judged(planted: Planted, analysis: Analysis) -> Verdict:
    """A fault is found where each of its states is named for it; anything else that is named is a false alarm.

    Of a diagnosis over several seeds, what it says of the flows of this one.
    """
    expected = planted.expected
    flows = {declared["flow"] for declared in planted.definitions}
    named = {(cause.flow, cause.state): set(cause.faults) for cause in analysis.causes if cause.flow in flows}
    found = [
        fault for fault in planted.faults if all(fault.kind in named.get((fault.flow, one), ()) for one in fault.states)
    ]
    alarms: list[Alarm] = []
    for place, faults in named.items():
        kind = expected.get(place, "")
        alarms += [Alarm(*place, one) for one in sorted(faults - {kind} - CONSEQUENCES.get(kind, frozenset()))]
    missed = tuple(fault for fault in planted.faults if fault not in found)
    states = {(declared["flow"], state) for declared in planted.definitions for state in declared["states"]}
    healthy = states - {(one.flow, one.state) for one in analysis.untested} - set(expected)
    return Verdict(tuple(found), missed, tuple(alarms), len(healthy))


def chance_to_miss(reached: int, rate: float = PLANTED_STALL, threshold: float = 0.3) -> float:
    """How probable it is that a rate is sampled below a threshold in so many conversations: the binomial tail."""
    from math import ceil, comb

    below = ceil(threshold * reached - 1e-9)
    return sum(comb(reached, k) * rate**k * (1 - rate) ** (reached - k) for k in range(below))
