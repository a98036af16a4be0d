"""Inspect logs, `.eval` and `.json`: each sample of each epoch is a conversation, its scores are verdicts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from convoscope.conversation import Agent, ComponentMetric, Conversation, Expected, Label, Outcome, Source
from convoscope.errors import InputError
from convoscope.ingest.io.packed import CONTENT, MEMBER
from convoscope.ingest.kits.exchanges import numbers_in
from convoscope.ingest.kits.leftovers import with_leftovers
from convoscope.ingest.kits.plain_timeline import PlainTimeline
from convoscope.ingest.kits.shapes import plain_messages
from convoscope.ingest.kits.spans import seconds
from convoscope.ingest.reader import Detection, Reader, RecordGroup, Sample
from convoscope.ingest.record import Fields, JsonObject, as_list, as_number, as_object, as_text, filled
from convoscope.ingest.report import Notes

_ATTACHMENT = "attachment://"
_LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
"""What Inspect makes of its letters: correct, incorrect, partly, no answer."""
_USAGE = {
    "prompt_tokens": ("input_tokens",),
    "completion_tokens": ("output_tokens",),
    "total_tokens": ("total_tokens",),
    "duration": ("time",),
}
_USUAL = frozenset(
    {"input", "output", "choices", "sandbox", "files", "setup", "store", "events", "model_usage", "role_usage"}
    | {"started_at", "completed_at", "working_time", "error_retries", "attachments", "limit", "invalidation", "uuid"}
    | {"events_data", "message_pool", "timelines", "metadata"}
)
_REPEATS = ("header.json", "reductions.json", "_journal/")
"""Members of an archive that sum up or repeat what its samples say."""


class InspectReader(Reader):
    """A log as one JSON document, or as a ZIP archive of its parts."""

    name = "inspect"
    title = "Inspect logs"

    def detect(self, sample: Sample) -> Detection | None:
        for value in map(as_object, sample.values):
            name = as_text(value.get(MEMBER))
            if sample.container == "zip" and (name == "header.json" or name.startswith(("samples/", "_journal/"))):
                return Detection(0.95, "an archive of Inspect: samples and a header", "file")
            if isinstance(value.get("eval"), dict) and "task" in value["eval"] and "status" in value:
                return Detection(0.95, '"eval" with a task, and samples', "file")
        return None

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        header, samples = _log(group, notes)
        if not samples:
            raise InputError("an Inspect log without samples", field="samples", hint="it was made with log_samples off")
        # Reductions sum the scores up.
        around = {name: value for name, value in header.items() if name not in ("samples", "reductions")}
        for sample in samples:
            if sample.get("messages") or sample.get("output"):
                conversation = _conversation(sample, as_object(header.get("eval")), group, notes)
                taken = {name: value for name, value in sample.items() if name not in conversation.extras}
                yield with_leftovers(conversation, [taken, around], notes, {"attachments"})
            else:
                notes.refuse(InputError(f"sample {sample.get('id')!r} has no messages", field="messages"))


def _log(group: RecordGroup, notes: Notes) -> tuple[JsonObject, list[JsonObject]]:
    header: JsonObject = {}
    samples: list[JsonObject] = []
    listed = 0
    for record in map(as_object, (record.value for record in group.records)):
        name, content = as_text(record.get(MEMBER)), as_object(record.get(CONTENT))
        if name.startswith("samples/"):
            samples.append(content)
        elif name == "header.json" or (name == "_journal/start.json" and not header):
            header = content
        elif "eval" in record:
            header = record
            samples += [as_object(sample) for sample in as_list(record.get("samples"))]
        elif name == "summaries.json":
            listed = len(as_list(record.get(CONTENT)))
        elif not name.startswith(_REPEATS):
            notes.ignored("member_not_read", name[:80])
    if listed > len(samples):
        notes.set_aside("sample_not_in_archive", f"{listed - len(samples)} of {listed}")
    return header, samples


def _conversation(sample: JsonObject, task: JsonObject, group: RecordGroup, notes: Notes) -> Conversation:
    attached = as_object(sample.get("attachments"))
    fields = Fields({name: _resolved(value, attached) for name, value in sample.items()}, "sample", notes, _USUAL)
    id, epoch = fields.text("id"), fields.text("epoch")
    timeline = PlainTimeline(notes, "sample")
    for message in map(as_object, fields.take("messages", kind=list) or plain_messages(fields.get("input"))):
        _add(message, timeline)  # a sample that failed before any answer holds its input only
    model, error = as_text(task.get("model")), as_object(fields.take("error", kind=dict))
    calls = _calls(sample)
    for label, usage, at in calls or [(model, as_object(as_object(sample.get("output")).get("usage")), None)]:
        if values := numbers_in(usage, _USAGE):
            timeline.add(ComponentMetric, component="llm", values=values, label=label or model, time=timeline.at(at))
    limit = as_object(fields.get("limit"))
    only = fields.take("score", kind=dict)  # before a sample had several
    scores = as_object(fields.take("scores", kind=dict)) or ({"score": only} if only else {})
    target = fields.take("target", kind=(str, list))
    target = target if isinstance(target, str) else as_text(next(iter(target or ()), ""))
    return Conversation(
        id=f"{id}/{epoch}" if epoch not in ("", "1") else id or group.name,
        dimensions=filled({"scenario_id": id, "trial": epoch, "dataset": as_text(task.get("task")), "model": model}),
        source=Source(format=InspectReader.name, files=group.file_names, record=group.name),
        pipeline="text",
        participants=timeline.participants,
        clocks=timeline.clocks,
        agent=Agent(instructions="\n\n".join(timeline.instructions), models={"llm": model} if model else {}),
        expected=Expected(ground_truth=target or None),
        timeline=tuple(timeline.events),
        labels=tuple(_labels(scores, notes)),
        outcome=Outcome(
            error=as_text(error.get("message")),
            ended_reason=f"{as_text(limit.get('type'))} limit" if limit else "",
            duration=fields.number("total_time"),
        ),
        extras=fields.rest(),
    )


def _calls(sample: JsonObject) -> list[tuple[str, JsonObject, float | None]]:
    """Of each call of a model that the log holds: the model, its tokens and how long it took, and when it ended.

    A model that grades the answer is no part of the agent.
    """
    calls: list[tuple[str, JsonObject, float | None]] = []
    for event in map(as_object, as_list(sample.get("events"))):
        if event.get("event") == "model" and not event.get("pending") and event.get("role") != "grader":
            output = as_object(event.get("output"))
            usage = {**as_object(output.get("usage")), "time": output.get("time")}
            calls.append((as_text(event.get("model")), usage, seconds(event, ("completed",))))
    return calls


def _add(message: JsonObject, timeline: PlainTimeline) -> None:
    if message.get("role") == "system":
        for plain in plain_messages(message):
            timeline.instruct(plain)
    elif message.get("role") == "tool":
        error = message.get("error") or message.get("tool_error")  # the second is the older name
        block = {
            "type": "tool_result",
            "tool_use_id": as_text(message.get("tool_call_id")),
            "name": as_text(message.get("function")),
            "content": message.get("content"),
        }
        reason = as_text(error) or as_text(as_object(error).get("message"))
        failed = {"is_error": True, "error": reason} if error else {}
        timeline.add_result(block | failed, None)
    else:
        for plain in plain_messages(message):
            timeline.add_plain(plain)


def _resolved(value: Any, attached: JsonObject, depth: int = 0) -> Any:
    """Texts that the log keeps once, in its attachments."""
    if isinstance(value, str) and value.startswith(_ATTACHMENT):
        return attached.get(value.removeprefix(_ATTACHMENT), value)
    if depth > 20 or not attached:
        return value
    if isinstance(value, list):
        return [_resolved(member, attached, depth + 1) for member in value]
    if isinstance(value, dict):
        return {name: _resolved(member, attached, depth + 1) for name, member in value.items()}
    return value


def _labels(scores: JsonObject, notes: Notes) -> Iterator[Label]:
    for name, score in scores.items():
        value = as_object(score).get("value")
        values = value.items() if isinstance(value, dict) else [("", value)]
        for part, number in values:
            verdict = _LETTERS.get(number, number) if isinstance(number, str) else number
            if verdict is None or (isinstance(verdict, float) and math.isnan(verdict)):
                notes.set_aside("score_without_value", f"{name}.{part}" if part else name)
                continue
            yield Label(
                name=f"{name}.{part}" if part else name,
                value=verdict if as_number(verdict) is not None or isinstance(verdict, str | bool) else str(verdict),
                rater="inspect",
                rater_kind="external",
                notes=as_text(as_object(score).get("explanation")),
            )


READER = InspectReader()
