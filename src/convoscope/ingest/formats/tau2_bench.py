"""τ²-bench results of text: simulations with messages, tools of agent and user, tasks and rewards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from convoscope.conversation import USER, Agent, ComponentMetric, Conversation, Outcome, Scenario, Source
from convoscope.errors import InputError
from convoscope.ingest.call_exports import verdicts
from convoscope.ingest.formats.tau_bench import NO_MESSAGES
from convoscope.ingest.kits.exchanges import numbers_in
from convoscope.ingest.kits.leftovers import Leftovers
from convoscope.ingest.kits.messages import read_tools
from convoscope.ingest.kits.plain_timeline import PlainTimeline
from convoscope.ingest.kits.shapes import plain_messages
from convoscope.ingest.kits.spans import seconds
from convoscope.ingest.reader import Detection, Reader, RecordGroup, Sample
from convoscope.ingest.record import Fields, JsonObject, as_list, as_number, as_object, as_text, filled
from convoscope.ingest.report import Notes

_USAGE = {"prompt_tokens": ("prompt_tokens",), "completion_tokens": ("completion_tokens",)}
_NATURAL = ("user_stop", "agent_stop")
_BROKEN = ("agent_error", "user_error", "infrastructure_error", "too_many_errors")
_CHECKS = {
    "action_checks": "action_match",
    "env_assertions": "met",
    "nl_assertions": "met",
    "communicate_checks": "met",
}
"""Lists of what was checked, and the field that says whether it was so."""
_EXPECTED = 'expected {"task_id": …, "messages": […], "termination_reason": …}'
_WITHHELD = frozenset({"reward_info", "evaluation_criteria"})
"""They hold the reward and the right actions, which the agent did not know."""
_USUAL = frozenset(
    {"timestamp", "seed", "mode", "ticks", "speech_environment", "review", "user_only_review", "auth_classification"}
    | {"hallucination_retries_used", "hallucination_check", "provider_session_id", "effect_timeline", "user_cost"}
    | {"info", "start_time", "end_time", "agent_cost"}
)


class Tau2BenchReader(Reader):
    """A file of results, or one simulation of it."""

    name = "tau2-bench"
    title = "τ²-bench results"

    def detect(self, sample: Sample) -> Detection | None:
        for value in sample.values:
            simulations = _simulations(value)
            if any(_is_simulation(entry) and entry.get("messages") for entry in simulations):
                # Above the reader of voice, which takes a simulation without messages for one of its own.
                return Detection(1.05, '"simulations" with messages, a task and a reward', "record")
            if any(map(_is_simulation, simulations)):
                return Detection(0.96, "simulations of text that wrote no messages", "record")
        return None

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        leftovers = Leftovers(notes, _WITHHELD)
        for record in group.records:
            results = as_object(record.value)
            tasks = {as_text(as_object(task).get("id")): as_object(task) for task in as_list(results.get("tasks"))}
            info = as_object(results.get("info"))
            around = {name: inner for name, inner in results.items() if name not in ("tasks", "simulations")}
            for value in _simulations(record.value):
                if _is_simulation(value):
                    task = as_object(tasks.get(as_text(value.get("task_id"))))
                    if tasks and not task:
                        notes.set_aside("task_not_found", repr(value.get("task_id"))[:80])
                    conversation = _conversation(value, task, info, group, notes)
                    yield leftovers.kept_with(conversation, [value, task, around])
                else:
                    leftovers.leave([value])
                    notes.refuse(
                        InputError("a simulation without a task or an end", field="simulations", hint=_EXPECTED)
                    )
        leftovers.note_rest(record.value for record in group.records)


def _simulations(value: Any) -> list[Any]:
    record = as_object(value)
    return [record] if _is_simulation(record) else list(as_list(record.get("simulations")))


def _is_simulation(value: Any) -> bool:
    """A simulation of text. A run that broke before it wrote anything is one, too: it failed."""
    record = as_object(value)
    is_text = bool(as_list(record.get("messages"))) or ("messages" in record and not record.get("ticks"))
    return is_text and record.get("mode") != "full_duplex" and {"task_id", "termination_reason"} <= record.keys()


def _conversation(
    value: JsonObject, task: JsonObject, info: JsonObject, group: RecordGroup, notes: Notes
) -> Conversation:
    fields = Fields(value, "simulation", notes, _USUAL)
    id, task_id, trial = fields.text("id"), fields.text("task_id"), fields.text("trial")
    timeline = PlainTimeline(notes, "message.timestamp")
    for message in map(as_object, fields.take("messages", kind=list) or ()):
        _add(message, timeline)
    reason = fields.text("termination_reason")
    error = reason if reason in _BROKEN else ""
    if not timeline.events:
        notes.inferred("run_without_messages", NO_MESSAGES)
        error = f"{NO_MESSAGES}: {reason}"
    agent = as_object(info.get("agent_info"))
    environment = as_object(info.get("environment_info"))
    model = as_text(agent.get("llm"))
    user = as_object(task.get("user_scenario"))
    if fields.pop("reward_info", None) is not None:
        notes.ignored("reward_info_withheld", "it holds the reward and the right actions")
    return Conversation(
        id=id or f"{task_id}/{trial}" if task_id else group.name,
        dimensions=filled(
            {
                "scenario_id": task_id,
                "trial": trial,
                "agent": as_text(agent.get("implementation")),
                "model": model,
                "domain": as_text(environment.get("domain_name")),
            }
        ),
        source=Source(format=Tau2BenchReader.name, files=group.file_names, record=group.name),
        pipeline="text",
        participants=timeline.participants,
        clocks=timeline.clocks,
        agent=Agent(
            name=as_text(agent.get("implementation")),
            instructions=fields.text("policy") or as_text(environment.get("policy")),
            models={"llm": model} if model else {},
            tools=read_tools(_tools(environment.get("tool_defs"))) or None,
        ),
        scenario=Scenario(goal=user.get("instructions"), persona=user.get("persona")) if user else None,
        timeline=tuple(timeline.events),
        labels=verdicts(Tau2BenchReader.name, _rewards(as_object(value.get("reward_info")))),
        outcome=Outcome(
            finished=True if reason in _NATURAL else False if reason else None,
            ended_reason=reason,
            error=error,
            duration=fields.number("duration"),
        ),
        extras=fields.rest(),
    )


def _rewards(checked: JsonObject) -> JsonObject:
    """The reward and its parts, under the names of the benchmark. What was checked is withheld: it is the answer."""
    parts = {f"reward.{name}": as_number(part) for name, part in as_object(checked.get("reward_breakdown")).items()}
    matched = as_object(checked.get("db_check")).get("db_match")
    met: JsonObject = {"db_match": matched if isinstance(matched, bool) else None}
    for name, field in _CHECKS.items():
        results: list[Any] = [as_object(entry).get(field) for entry in as_list(checked.get(name))]
        is_known = bool(results) and all(isinstance(result, bool) for result in results)
        met[f"{name}_met"] = sum(results) / len(results) if is_known else None
    return {"reward": as_number(checked.get("reward")), **parts, **met}


def _tools(definitions: Any) -> list[Any]:
    """The tools of the agent: a list, or an object by name."""
    return list(as_list(definitions)) or list(as_object(definitions).values())


def _add(message: JsonObject, timeline: PlainTimeline) -> None:
    """A message. The user has tools, too: `requestor` says whose call it is; a result's `id` is that of its call."""
    at = timeline.at(seconds(message, ("timestamp",)))
    results = as_list(message.get("tool_messages")) or ([message] if message.get("role") == "tool" else [])
    if results:
        for result in map(as_object, results):
            failed = result.get("error")
            block = {"type": "tool_result", "tool_use_id": as_text(result.get("id")), "content": result.get("content")}
            timeline.add_result(block | ({"is_error": failed} if isinstance(failed, bool) else {}), at)
        return
    role = as_text(message.get("role"))
    caller = timeline.participant(USER) if role == USER else ""
    plain = plain_messages({name: message.get(name) for name in ("role", "content", "tool_calls")})
    for entry in plain:
        timeline.add_plain(entry, at, caller=caller)
    if not plain:
        timeline.notes.ignored("message_without_text", role, timeline.seq)
        timeline.mark("message_without_text", message, at)
    usage = numbers_in(as_object(message.get("usage")), _USAGE)
    if role == "assistant" and usage:
        cost = as_number(message.get("cost"))
        values = usage | filled({"cost": cost, "duration": as_number(message.get("generation_time_seconds"))})
        timeline.add(ComponentMetric, component="llm", values=values, time=at)


READER = Tau2BenchReader()
