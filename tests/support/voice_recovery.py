"""How much of a faulty call is recovered: what was read, held against what can still be known."""

from __future__ import annotations

import pickle
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from convoscope.conversation import Conversation
from convoscope.ingest.formats.voice_logs.reader import read_call
from convoscope.ingest.report import Notes
from convoscope.views import metric_context
from support.voice_calls import Call, expected
from support.voice_faults import Fault
from support.voice_file_faults import FAULTS

_TEXTS = tuple(f"{how}_{role}_turns" for how in ("intended", "transcribed") for role in ("assistant", "user"))
_COUNTS = ("num_turns", "num_assistant_turns", "num_user_turns", "num_tool_calls", "tool_params", "tool_responses")
_FLAGS = ("assistant_interrupted_turns", "user_interrupted_turns")
_AUDIO = ("audio_timestamps_assistant_turns", "audio_timestamps_user_turns")


@dataclass
class Trial:
    """One call with its faults, read."""

    differs: list[str]
    """Fields of the MetricContext that are not as they should be."""
    unnamed: list[str] = field(default_factory=list)
    """Faults that no note tells of."""
    negative: bool = False
    error: str = ""


def attempt(call: Call, faults: tuple[str, ...], seed: int, folder: Path) -> Trial | None:
    """Put the faults into a copy of the call and read it; None where they cannot befall it."""
    call = pickle.loads(pickle.dumps(call))
    draw = random.Random(f"{seed} {faults}")
    chosen = sorted((FAULTS[name] for name in faults), key=lambda fault: fault.stage)
    for fault in chosen:
        if not fault.edit(call, draw):
            return None
    untold = not call.names.keys() & {"audit", "simulator"} and any(fault.rewords for fault in chosen)
    if untold:
        call.unsure_fields |= {"intended_assistant_turns", "conversation_trace"}
    where = call.write(folder)
    for fault in chosen:
        if fault.spoil is not None:
            fault.spoil(where, call, draw)
    notes = Notes()
    try:
        conversation = read_call(where, notes)
        differs = differences(call, conversation)
    except Exception as error:
        return Trial(["everything"], error=f"{type(error).__name__}: {error}")
    codes = {note.code for note in notes.taken}
    unnamed = [] if untold else [name for name in _unnamed(chosen, codes) if not _is_subtle(name, call, len(chosen))]
    negative = any(turn.id < 0 for turn in conversation.turns)
    return Trial(differs, unnamed, negative)


def _unnamed(chosen: list[Fault], codes: set[str]) -> list[str]:
    """Faults that no note tells of. Two faults of one log may hide or undo each other: then one is enough."""
    found = [fault.name for fault in chosen if not _named(fault, chosen, codes)]
    same = len(chosen) > 1 and chosen[0].touches == chosen[1].touches
    clocks = len(chosen) > 1 and all("clock" in fault.name for fault in chosen)
    return [] if (same or clocks) and len(found) < len(chosen) + clocks else found


def _is_subtle(fault: str, call: Call, faults: int) -> bool:
    """A clock that is 3 s off may be a slow answer: three texts must tell of it, and another fault may spoil one."""
    if not fault.endswith("clock 3 s off"):
        return False
    kinds = [line["message_type"] for line in call.audit]
    meant = sum(line.get("type") == "user_speech" for line in call.simulator)
    common = kinds.count("assistant") if fault.startswith("framework") else min(kinds.count("user"), meant)
    return common < 2 + faults


def _named(fault: Fault, chosen: list[Fault], codes: set[str]) -> bool:
    if not fault.codes or fault.codes & codes:
        return True
    if any(fault.touches in other.removes for other in chosen):
        return True
    # Words that one log lost are missed by those who have another: not where that one is lost or cut as well.
    others = {log for other in chosen if other is not fault for log in (*other.removes, other.touches)}
    return fault.name.endswith("lost") and bool(others & _MISSED_IN.get(fault.name, set()))


_MISSED_IN = {"recogniser's words lost": {"simulator"}, "words sent to the voice lost": {"simulator", "audit"}}


def differences(call: Call, conversation: Conversation) -> list[str]:
    """The fields that are not as the acts of the call have them."""
    context = metric_context(conversation)
    truth = expected(call)
    found = [name for name in _COUNTS if getattr(context, name) != truth[name]]
    for name in _TEXTS:
        told = {turn: _flat(text) for turn, text in getattr(context, name).items()}
        known = {turn: _flat(text) for turn, text in truth[name].items()}
        unsure = call.unsure_words if name == "intended_assistant_turns" else set()
        if _except(told, unsure) != _except(known, unsure):
            found.append(name)
    for name in _FLAGS:
        flags = truth[name]
        if name == "user_interrupted_turns" and not call.simulator:
            flags = {call.turn(act) for act in call.of("user") if act.barges_in and not act.gone}
        if getattr(context, name) - call.unsure_turns != flags - call.unsure_turns:
            found.append(name)
    found += [name for name in _AUDIO if not _same_audio(call, conversation, name, truth[name])]
    if [_entry(call, one) for one in context.conversation_trace] != [
        _entry(call, one) for one in truth["conversation_trace"]
    ]:
        found.append("conversation_trace")
    return [name for name in found if name not in call.unsure_fields]


def _flat(text: str) -> str:
    return " ".join(text.split())


def _except(texts: dict[int, str], turns: set[int]) -> dict[int, str]:
    return {turn: text for turn, text in texts.items() if turn not in turns}


def _entry(call: Call, entry: dict[str, Any]) -> dict[str, Any]:
    plain = dict(entry)
    if "content" in plain:
        unsure = plain["role"] == "assistant" and plain["turn_id"] in call.unsure_words
        plain["content"] = "" if unsure else _flat(plain["content"])
    return plain


def _same_audio(call: Call, conversation: Conversation, name: str, truth: dict[int, list[tuple[float, float]]]) -> bool:
    """Up to a common shift, and but for sounds of which one end is lost."""
    role = "user" if "user" in name else "assistant"
    shift = conversation.started
    told = getattr(metric_context(conversation), name)
    lost = [span for spans in truth.values() for span in spans if (role, span[0]) in call.lost_sounds]
    known = {(turn, *span) for turn, spans in truth.items() for span in spans if span not in lost}
    read = {(turn, begin + shift, end + shift) for turn, spans in told.items() for begin, end in spans}
    if len(read) != len(known):
        read = {one for one in read if not any(begin < one[2] and one[1] < end for begin, end in lost) or one in known}
        read = {one for one in read if not _is_of(one, lost)}
    pairs = list(zip(sorted(read), sorted(known), strict=False))
    return len(read) == len(known) and all(
        mine[0] == theirs[0] and abs(mine[1] - theirs[1]) < 0.002 and abs(mine[2] - theirs[2]) < 0.002
        for mine, theirs in pairs
    )


def _is_of(one: tuple[int, float, float], lost: list[tuple[float, float]]) -> bool:
    return any(abs(one[1] - begin) < 0.002 or abs(one[2] - end) < 0.002 for begin, end in lost)
