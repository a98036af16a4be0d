"""Logs of public repositories: what a script counted in them is what reading gives."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import convoscope
from convoscope.conversation import ASSISTANT, USER, Marker, ToolResult, Utterance
from convoscope.views.tool_outcomes import tool_outcome
from support.shared_data import begins_with, facts, values_of

Shared = Callable[[str], Path]
Ran = Callable[[str, int], None]


def test_tau_bench(shared: Shared, ran: Ran) -> None:
    folder = shared("data/formats/tau-bench")
    for name, counted in facts(folder).items():
        reading = convoscope.read(folder / name)
        runs = list(reading)
        rewards = [run.labels[0].value for run in runs]
        assert reading.report.files[name].format == "tau-bench"
        assert reading.report.problem_count == 0
        assert len(runs) == counted["conversations"]
        assert sum(rewards) / len(rewards) == pytest.approx(counted["mean_reward"], abs=1e-12)
        withheld = sum(record.get("info") is not None for record in values_of(folder / name))
        assert reading.report.ignored.get("info_withheld", 0) == withheld
        if "roles" in counted:
            assert rewards == counted["rewards"]
            assert [run.dimensions["scenario_id"] for run in runs] == list(map(str, counted["task_ids"]))
            assert [run.dimensions["trial"] for run in runs] == list(map(str, counted["trials"]))
            assert [len(run.tool_calls) for run in runs] == counted["calls_per_conversation"]
            results = [event for run in runs for event in run.timeline if isinstance(event, ToolResult)]
            assert len(results) == counted["roles"]["tool"]
            errors = [each for each in results if str(each.result).startswith("Error")]
            assert len(errors) == counted["tool_results_starting_Error"]
            assert all(tool_outcome(each).failed for each in errors)
            marks = [event for run in runs for event in run.timeline if isinstance(event, Marker)]
            assert [mark.value for mark in marks] == ["###STOP###"] * counted["stop_marker"]
            first = next(one for one in runs[0].utterances if runs[0].roles[one.speaker] == USER)
            assert begins_with(runs[0].text(first), counted["first_user_text"])
    ran("τ-bench files", len(facts(folder)))


def _block_types(body: object) -> list[str]:
    """The types of the blocks of a response: whole, or as a stream of events that each open one."""
    if isinstance(body, dict):
        return [block["type"] for block in body.get("content") or ()]
    events = [json.loads(line[5:]) for line in str(body).splitlines() if line.startswith("data:")]
    return [event["content_block"]["type"] for event in events if event.get("type") == "content_block_start"]


def test_anthropic_messages(shared: Shared, ran: Ran) -> None:
    """Block by block: what a model called, what tools gave back, and that no result is taken for a person.

    A file holds the exchanges of one conversation or of several. What was counted is of the last exchange.
    """
    folder = shared("data/formats/anthropic-messages")
    for name, counted in facts(folder).items():
        reading = convoscope.read(folder / name)
        runs = list(reading)
        assert len(runs) + reading.report.ignored.get("repeated_history", 0) == counted["exchanges"], name
        body = values_of(folder / name)[-1]["response"]["body"]
        kinds = Counter(_block_types(body)) + Counter(counted["block_types_in_last_request"])
        expected = (
            kinds["tool_use"] + kinds["server_tool_use"],
            sum(count for kind, count in kinds.items() if kind.endswith("tool_result")),
            counted["roles"].get("user", 0) - counted["tool_results_in_user_role"],
            counted["tool_result_is_error"],
        )
        assert expected in [_counted(run) for run in runs if _opens_with(run, counted["first_user_text"])], name
        is_streamed = counted["response_body_type"] == "str"
        assert ("streamed_response_joined" in reading.report.inferred) == is_streamed
        assert not reading.report.set_aside
    ran("exchanges of the Messages API", len(facts(folder)))


def _counted(run: convoscope.Conversation) -> tuple[int, int, int, int]:
    """Calls, results, what people said, and results that failed."""
    results = [event for event in run.timeline if isinstance(event, ToolResult)]
    people = [one for one in run.utterances if run.roles[one.speaker] == USER]
    return len(run.tool_calls), len(results), len(people), sum(result.success is False for result in results)


def _opens_with(run: convoscope.Conversation, fact: str) -> bool:
    people = [one for one in run.utterances if run.roles[one.speaker] == USER]
    return bool(people) and begins_with(run.text(people[0]), fact)


def test_sgd(shared: Shared, ran: Ran) -> None:
    folder = shared("data/formats/sgd")
    dialogues = {name: counted for name, counted in facts(folder).items() if "conversations" in counted}
    for name, counted in dialogues.items():
        reading = convoscope.read(folder / name)
        runs = list(reading)
        assert reading.report.files[name].format == "sgd"
        assert (reading.report.problem_count, reading.report.set_aside, reading.report.unknown) == (0, {}, {})
        assert len(runs) == counted["conversations"]
        roles = Counter(run.roles[one.speaker] for run in runs for one in run.utterances)
        speakers = Counter(counted["speakers"])
        assert roles == Counter({USER: speakers["USER"], ASSISTANT: speakers["SYSTEM"]})
        assert sum(len(run.tool_calls) for run in runs) == counted["service_calls"]
        results = [event for run in runs for event in run.timeline if isinstance(event, ToolResult)]
        assert sum(len(result.result) for result in results) == counted["service_results"]
        assert sorted({one for run in runs for one in run.extras["services"]}) == counted["services"]
        assert sum(len(run.extras["services"]) > 1 for run in runs) == counted["multi_service"]
        assert [runs[0].id, runs[-1].id] == counted["ids"]
        first = next(one for one in runs[0].utterances if runs[0].roles[one.speaker] == USER)
        assert begins_with(runs[0].text(first), counted["first_user_text"])
        # Every turn has acts; every turn of a user has a state.
        assert all(_is_annotated(run, one.seq, run.roles[one.speaker]) for run in runs for one in run.utterances)
    ran("SGD files", len(dialogues))


def _is_annotated(run: convoscope.Conversation, seq: int, role: str) -> bool:
    frames = [frame for frame in run.frames if frame.seq == seq]
    return any(frame.acts for frame in frames) and (role != USER or any(frame.slots is not None for frame in frames))


def test_sgd_schema(shared: Shared, ran: Ran) -> None:
    """A conversation has the intents of its services as tools, and no others."""
    folder = shared("data/formats/sgd")
    schemas = [name for name, counted in facts(folder).items() if "intents" in counted]
    dialogues = [folder / name for name, counted in facts(folder).items() if "conversations" in counted]
    if not schemas or not dialogues:
        pytest.skip(f"no conformance data: {folder} has no schema, or no dialogues")
    for name in schemas:
        intents = {
            service["service_name"]: {intent["name"] for intent in service["intents"]}
            for service in json.loads((folder / name).read_text())
        }
        assert sum(map(len, intents.values())) == facts(folder)[name]["intents"]
        for run in convoscope.read([folder / name, *dialogues]):
            tools = {(tool.kind, tool.name) for tool in run.agent.tools or ()}
            services = run.extras["services"]
            assert tools == {(service, intent) for service in services for intent in intents.get(service, ())}
    ran("schemas of SGD", len(schemas))


def test_abcd(shared: Shared, ran: Ran) -> None:
    folder = shared("data/formats/abcd")
    for name, counted in facts(folder).items():
        reading = convoscope.read(folder / name)
        runs = list(reading)
        assert (reading.report.problem_count, reading.report.unknown) == (0, {})
        assert len(runs) == counted["conversations"]
        roles = Counter(run.roles[one.speaker] for run in runs for one in run.utterances)
        speakers = Counter(counted["by_speaker"])
        assert roles == Counter({ASSISTANT: speakers["agent"], USER: speakers["customer"]})
        assert sum(len(run.tool_calls) for run in runs) == counted["actions"]
        # `delexed` says the turns again; where it has more or fewer of them, its targets are of no use.
        turns = [len(run.utterances) + len(run.tool_calls) for run in runs]
        fitting = [count for count, again in zip(turns, counted["delexed_turns"], strict=True) if count == again]
        assert reading.report.ignored.get("delexed", 0) == sum(fitting)
        set_aside = {code: tally.count for code, tally in reading.report.set_aside.items()}
        assert set_aside == ({"targets_unreadable": len(runs) - len(fitting)} if len(fitting) < len(runs) else {})
        assert begins_with(_first_text(runs[0]), counted["first_text"])
        assert [run.dimensions["subflow"] for run in runs] == counted["flow"]
    ran("ABCD files", len(facts(folder)))


def _first_text(run: convoscope.Conversation) -> object:
    """What was said first, or what the system said of a button that was pressed before."""
    first = next(event for event in run.timeline if isinstance(event, Utterance | ToolResult))
    return run.text(first) if isinstance(first, Utterance) else first.result
