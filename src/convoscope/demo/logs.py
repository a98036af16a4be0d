"""The logs that the calls leave: rehearsals as Convoscope's JSON, the live line as Pipecat's records, and the flow."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from convoscope.demo import story
from convoscope.demo.story import AGENT, CALLER, PhoneCall, SlotStep, SpeechStep, StateStep, Step, ToolStep

Record = dict[str, Any]
MODELS = {"stt": "ear-2", "llm": "llm-small-3", "tts": "voice-4"}
PIPECAT_FILES = {
    "SpeechEvent": "speech",
    "UserTurnStoppedMessage": "turns",
    "AssistantTurnStoppedMessage": "turns",
    "UserBotLatency": "speech",
    "FunctionCallEvent": "tools",
    "FlowNode": "flow",
    "FlowState": "flow",
    "ConversationEnded": "flow",
}
"""The file of each kind of record. Those of one call lie in several files, and have its id."""


def write_logs(calls: Iterable[PhoneCall], folder: Path) -> None:
    """Write all logs of the calls below a folder; those that are there are overwritten."""
    (folder / "live").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(story.FLOW_FILE, folder / story.FLOW_FILE.name)
    files: dict[str, list[Record]] = {}
    for call in calls:
        if call.scenario:
            files.setdefault(f"rehearsal-{call.version}.jsonl", []).append(conversation(call))
            continue
        for record in pipecat_records(call):
            files.setdefault(f"live/{PIPECAT_FILES[record['record']]}.jsonl", []).append(record)
    for name, records in files.items():
        (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def conversation(call: PhoneCall) -> Record:
    """A rehearsed call in Convoscope's JSON: the caller was simulated, so what they meant to say is known."""
    events = [event for step in call.steps for event in _events(step)]
    events.sort(key=lambda event: float(event["at"]))
    return {
        "schema": "convoscope.conversation/1",
        "id": call.id,
        "dimensions": {**_dimensions(call), "scenario_id": call.scenario, "trial": str(call.trial)},
        "pipeline": "cascade",
        "participants": [{"id": AGENT, "role": "assistant", "name": "Marlin"}, {"id": CALLER, "role": "user"}],
        "clocks": [
            {"id": "audio", "kind": "audio", "resolution": 0.01, "offset": 0.0},
            {"id": "wall", "kind": "wall", "resolution": 0.001, "offset": -call.started},
        ],
        "agent": {
            "name": "Marlin",
            "role": "booking desk of a ferry line",
            "instructions": story.INSTRUCTIONS,
            "tools": story.TOOLS,
            "models": MODELS,
        },
        "scenario": {"goal": call.task.fill("Move booking {code} from the {old} to the {day}, at {sailing}.")},
        "timeline": [
            {"seq": seq, "time": {"at": _wall(call, event.pop("at"))}, **event} for seq, event in enumerate(events)
        ],
        "outcome": _outcome(call),
    }


def pipecat_records(call: PhoneCall) -> Iterator[Record]:
    """A call of the live line as records of Pipecat: what its caller meant to say is unknown."""
    for step in call.steps:
        for record in _records(step):
            times: Record = {name: _wall(call, record[name]) for name in ("timestamp", "started_at") if name in record}
            yield {**record, **times, "conversation_id": call.id}
    end = {"record": "ConversationEnded", "conversation_id": call.id, "timestamp": _wall(call, call.duration)}
    yield {**end, **_dimensions(call), **_outcome(call)}


def _dimensions(call: PhoneCall) -> dict[str, str]:
    return {"dataset": call.dataset, "agent": call.version, "model": MODELS["llm"], "flow": story.FLOW}


def _outcome(call: PhoneCall) -> Record:
    broken = {"error": call.error} if call.error else {}
    ended = {"finished": not call.error, "ended_reason": call.ended, "duration": call.duration}
    return {"completed": call.completed, **ended, **broken}


def _wall(call: PhoneCall, seconds: float) -> float:
    return round(call.started + seconds, 3)


def _events(step: Step) -> Iterator[Record]:
    """The events of a timeline that a step is, with the seconds since the call began."""
    match step:
        case SpeechStep():
            if step.waited:
                yield {
                    "type": "component_metric",
                    "at": step.start,
                    "component": "turn",
                    "values": {"e2e_latency": step.waited},
                }
            heard = {"heard": {"text": step.heard, "source": MODELS["stt"]}} if step.speaker == CALLER else {}
            cut = {"cut_off_by": CALLER} if step.cut_off else {}
            words = {"speaker": step.speaker, "intended": {"text": step.text}, **heard, **cut}
            yield {"type": "utterance", "at": step.start, **words, "segments": [{"start": step.start, "end": step.end}]}
        case ToolStep():
            name = {"name": step.name, "call_id": f"{step.name}-{step.start}"}
            result = {"error": step.error} if step.error else {"result": step.result}
            yield {"type": "tool_call", "at": step.start, **name, "arguments": step.arguments}
            yield {"type": "tool_result", "at": step.end, **name, "success": not step.error, **result}
        case StateStep():
            if step.former:
                yield {"type": "state_exited", "at": step.start, "state": step.former, "to_state": step.state}
            yield {"type": "state_entered", "at": step.start, "state": step.state}
        case SlotStep():
            value = {"slot": step.slot, "value": step.value, "state": step.state}
            yield {"type": "slot_filled", "at": step.start, **value}


def _records(step: Step) -> Iterator[Record]:
    """The records of Pipecat that a step leaves, with the seconds since the call began."""
    match step:
        case SpeechStep():
            speech = {"record": "SpeechEvent", "started_at": step.start, "timestamp": step.end}
            turn = {"timestamp": step.start, "interrupted": step.cut_off}
            if step.speaker == CALLER:
                yield {**speech, "kind": "user_speech_stopped"}
                yield {"record": "UserTurnStoppedMessage", "content": step.heard, **turn}
                return
            if step.waited:
                yield {"record": "UserBotLatency", "timestamp": step.start, "seconds": step.waited}
            yield {**speech, "kind": "bot_speech_stopped"}
            yield {"record": "AssistantTurnStoppedMessage", "content": step.text, **turn}
        case ToolStep():
            id = f"{step.name}-{step.start}"
            event = {"record": "FunctionCallEvent", "function_name": step.name, "tool_call_id": id}
            arguments = {"arguments": step.arguments}
            yield {**event, "kind": "function_call_started", "timestamp": step.start, **arguments}
            ending, result = ("failed", {"error": step.error}) if step.error else ("completed", {"result": step.result})
            yield {**event, "kind": f"function_call_{ending}", "timestamp": step.end, **result}
        case StateStep():
            former = {"previous_node": step.former} if step.former else {}
            yield {"record": "FlowNode", "timestamp": step.start, "current_node": step.state, **former}
        case SlotStep():
            yield {"record": "FlowState", "timestamp": step.start, "state": {step.slot: step.value}}
