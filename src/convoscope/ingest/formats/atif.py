"""ATIF trajectories of agents (Agent Trajectory Interchange Format): steps with messages, calls and observations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from convoscope.ingest.kits.exchanges import numbers_in
from convoscope.ingest.kits.shapes import plain_messages
from convoscope.ingest.kits.spans import seconds
from convoscope.ingest.kits.talks import LoggedTalk, TalkMessage, TalkReader, empty_message
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_object, as_text, filled
from convoscope.ingest.report import Notes

_ROLES = {"system": "system", "user": "user", "agent": "assistant"}
_SUBAGENTS = "subagent_trajectories"
_USAGE = {"prompt_tokens": ("prompt_tokens",), "completion_tokens": ("completion_tokens",), "cost": ("cost_usd",)}
_KEPT = ("notes", "final_metrics", "extra")


class ATIFReader(TalkReader):
    """A trajectory, or an object of several."""

    name = "atif"
    title = "ATIF trajectories"
    shown = frozenset({"step_id", "source", "schema_version"})

    def detect(self, sample: Sample) -> Detection | None:
        fits = any(_trajectories(value) for value in sample.values)
        return Detection(0.96, '"schema_version" is of ATIF, with "steps"', "record") if fits else None

    def talks(self, group: RecordGroup, notes: Notes) -> Iterator[LoggedTalk]:
        for record in group.records:
            for value in _trajectories(record.value):
                yield _talk(value, notes)


def _trajectories(value: Any) -> list[JsonObject]:
    """The trajectories of a record. One that another refers to is that of a sub-agent, and a talk of its own."""
    record = as_object(value)
    members = [record, *record.values()] if record else []
    nested = [inner for member in members for inner in as_list(as_object(member).get(_SUBAGENTS))]
    return [as_object(entry) for entry in (*members, *nested) if _is_trajectory(entry)]


def _is_trajectory(value: Any) -> bool:
    record = as_object(value)
    return str(record.get("schema_version")).startswith("ATIF") and isinstance(record.get("steps"), list)


def _talk(value: JsonObject, notes: Notes) -> LoggedTalk:
    agent = as_object(value.get("agent"))
    messages: list[TalkMessage] = []
    for step in map(as_object, as_list(value.get("steps"))):
        if step.get("is_copied_context") is True:
            notes.ignored("copied_context")
            continue
        at, role = seconds(step, ("timestamp",)), _ROLES.get(as_text(step.get("source")), "unknown")
        calls = [_call(as_object(call)) for call in as_list(step.get("tool_calls"))]
        thought = {"reasoning_content": step.get("reasoning_content")}
        plain = plain_messages({"role": role, "content": step.get("message") or "", "tool_calls": calls, **thought})
        plain += plain_messages(
            [_result(as_object(entry)) for entry in as_list(as_object(step.get("observation")).get("results"))]
        )
        usage = numbers_in(as_object(step.get("metrics")), _USAGE)
        if not plain:
            messages.append(empty_message(step, at))
        messages += [
            TalkMessage(plain=entry, at=at, usage=usage if number == 0 else {}) for number, entry in enumerate(plain)
        ]
    return LoggedTalk(
        id=as_text(value.get("session_id")) or as_text(value.get("trajectory_id")),
        messages=messages,
        agent=as_text(agent.get("name")),
        model=as_text(agent.get("model_name")),
        tools=as_list(agent.get("tool_definitions")) or None,
        extras=filled(
            {"continued_in": value.get("continued_trajectory_ref")} | {name: value.get(name) for name in _KEPT}
        ),
        raw={name: inner for name, inner in value.items() if not _is_trajectory(inner) and name != _SUBAGENTS},
    )


def _call(call: JsonObject) -> JsonObject:
    function = {"name": call.get("function_name"), "arguments": call.get("arguments")}
    return {"id": call.get("tool_call_id"), "function": function}


def _result(result: JsonObject) -> JsonObject:
    """What a step observed; without the id of a call it is what the environment printed."""
    content, within = result.get("content"), result.get("subagent_trajectory_ref")
    content = filled({"subagent_trajectory_ref": within}) if content is None and within else content
    block = {"type": "tool_result", "tool_use_id": result.get("source_call_id"), "content": content}
    return {"role": "tool", "content": [block]}


READER = ATIFReader()
