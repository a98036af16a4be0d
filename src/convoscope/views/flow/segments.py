"""Which phase a state belongs to, and which archetype a phase is (flow-states, tier 2)."""

from __future__ import annotations

from convoscope.conversation.flow import Flow
from convoscope.text.folding import folded_name

COLLECT, CONFIRM, ACT, TERMINAL, HANDOFF = "collect", "confirm", "act", "terminal", "handoff"

_FAMILIES = {
    "ask": COLLECT,
    "listen": COLLECT,
    "static": COLLECT,
    "collect": COLLECT,
    "question": COLLECT,
    "request": COLLECT,
    "confirm": CONFIRM,
    "readback": CONFIRM,
    "act": ACT,
    "action": ACT,
    "tool": ACT,
    "execute": ACT,
    "greet": TERMINAL,
    "greeting": TERMINAL,
    "close": TERMINAL,
    "terminal": TERMINAL,
    "escalate": TERMINAL,
    "handoff": HANDOFF,
    "transfer": HANDOFF,
}
_ARCHETYPES = {
    **dict.fromkeys(("collect", "enrich", "gather", "triage"), COLLECT),
    **dict.fromkeys(("confirm", "readback"), CONFIRM),
    **dict.fromkeys(("act", "book", "dispatch", "commit", "action"), ACT),
    **dict.fromkeys(("terminal", "close", "escalation", "greeting"), TERMINAL),
    HANDOFF: HANDOFF,
}


def segment_of(flow: Flow | None, state: str) -> str:
    """The segment of a state: the authored one, else its lifecycle phase, else the family of its speech act."""
    if flow is None:
        return ""
    if state in flow.segment_of:
        return flow.segment_of[state]
    declared = flow.by_name.get(state)
    if declared is None:
        return ""
    return declared.lifecycle_phase or _FAMILIES.get(folded_name(declared.speech_act), "")


def kind_of(flow: Flow | None, segment: str) -> str:
    """The canonical archetype of a segment: its declared kind, else its name, with variants folded.

    Where neither is one of those known, the speech acts of its states decide, if they agree; else it is a kind of
    its own.
    """
    declared = flow.segment_by_name.get(segment) if flow is not None else None
    kind = declared.kind if declared is not None else ""
    name = folded_name(kind or segment)
    archetype = _ARCHETYPES.get(name.replace("_", ""))
    if archetype is not None or kind or flow is None:
        return archetype or name
    acts = {folded_name(one.speech_act) for one in flow.states if segment_of(flow, one.name) == segment}
    families = {_FAMILIES.get(act, "") for act in acts}
    return families.pop() or name if len(families) == 1 else name


def has_no_cohesion(kind: str) -> bool:
    """Ends and greetings lead nowhere by design."""
    return kind == TERMINAL
