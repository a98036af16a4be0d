"""A flow as its authors declare it: its states, the phases they form, and what a good end is."""

from __future__ import annotations

from typing import Literal

import msgspec

from convoscope.conversation.events import Json
from convoscope.conversation.lazy import remembered

Terminal = Literal["", "success", "failure", "escalation", "unknown"]
"""How a conversation ends that ends in a state; "" where the state is no end, unknown where it is not said."""

ESCALATIONS = frozenset(("escalated", "escalate"))
"""States that hand the caller over to a person, whatever the flow declares (flow-states, tier 1)."""


class FlowState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One state of a flow."""

    name: str
    required_slots: tuple[str, ...] = ()
    speech_act: str = ""
    lifecycle_phase: str = ""
    segment: str = ""
    terminal: Terminal = ""
    rank: float | None = None
    """Its position in the order of the flow, where one is declared: a greater one is ahead."""
    latency_budget_ms: float | None = None
    extras: dict[str, Json] = {}


class TargetSlot(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A slot that a segment has to fill."""

    name: str
    required: bool = True
    validator: Json = None
    confirmation: Json = None


class FlowSegment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A phase of a flow: states that together pursue one objective."""

    name: str
    kind: str = ""
    purpose: str = ""
    members: tuple[str, ...] = ()
    target_slots: tuple[TargetSlot, ...] | None = None
    """None where none are declared."""
    exit_guard: Json = None
    extras: dict[str, Json] = {}


class Flow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, dict=True):
    """What a flow declares. Nothing in it is needed: what is not declared is unknown."""

    name: str
    states: tuple[FlowState, ...] = ()
    segments: tuple[FlowSegment, ...] = ()
    completion_slots: tuple[str, ...] | None = None
    final_status: tuple[str, ...] | None = None
    """The contract: what the final status may be."""
    latency_budget_ms: float | None = None
    extras: dict[str, Json] = {}

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a flow needs a name")
        for kind, names in (("states", self.states), ("segments", self.segments)):
            if len({one.name for one in names}) != len(names):
                raise ValueError(f"two {kind} share a name")

    @remembered
    def by_name(self) -> dict[str, FlowState]:
        """The states by name."""
        return {state.name: state for state in self.states}

    @remembered
    def segment_of(self) -> dict[str, str]:
        """The segment of each state that a segment lists among its members, or that names one itself."""
        listed = {member: segment.name for segment in self.segments for member in segment.members}
        return listed | {state.name: state.segment for state in self.states if state.segment}

    @remembered
    def segment_by_name(self) -> dict[str, FlowSegment]:
        return {segment.name: segment for segment in self.segments}

    @remembered
    def escalations(self) -> frozenset[str]:
        """The states that hand over to a person."""
        return ESCALATIONS | {state.name for state in self.states if state.terminal == "escalation"}

    @remembered
    def terminals(self) -> dict[str, Terminal]:
        """The states that end a conversation, and how."""
        declared = {state.name: state.terminal for state in self.states if state.terminal}
        return {**dict.fromkeys(ESCALATIONS, "escalation"), **declared}

    @remembered
    def successes(self) -> frozenset[str]:
        """The states that end a conversation well."""
        return frozenset(state.name for state in self.states if state.terminal == "success")

    def is_ahead(self, to_state: str, of: str) -> bool:
        """The declared order says that a state comes after another."""
        there, here = self.by_name.get(to_state), self.by_name.get(of)
        return bool(there and here and there.rank is not None and here.rank is not None and there.rank > here.rank)
