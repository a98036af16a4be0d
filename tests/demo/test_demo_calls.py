"""The invented calls: all follows from the seed, what was planted is in the logs, and the logs are read whole."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import convoscope
from convoscope.conversation import Conversation, StateEntered, ToolCall, Utterance
from convoscope.demo import AgentVersion, PlantedFault, make_calls, write_logs
from convoscope.demo.story import PhoneCall, StateStep, misheard

VEHICLE = "How long is your vehicle, in metres?"


@pytest.fixture(scope="module")
def calls() -> list[PhoneCall]:
    return list(make_calls())


@pytest.fixture(scope="module")
def logs(calls: list[PhoneCall], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "logs"
    write_logs(calls, folder)
    return folder


@pytest.fixture(scope="module")
def read(logs: Path) -> dict[str, Conversation]:
    return {conversation.id: conversation for conversation in convoscope.read(logs)}


def lost_to(fault: PlantedFault, calls: list[PhoneCall], read: dict[str, Conversation]) -> list[Conversation]:
    lost = [read[call.id] for call in calls if call.fault == fault]
    assert lost
    return lost


def utterances(conversation: Conversation, role: str) -> list[Utterance]:
    return [
        event
        for event in conversation.timeline
        if isinstance(event, Utterance) and conversation.roles[event.speaker] == role
    ]


def words(utterance: Utterance) -> str:
    text = utterance.intended or utterance.spoken or utterance.heard
    assert text is not None
    return text.text


def longest_use(conversation: Conversation, tool: str) -> float:
    """Seconds from a call of the tool to its result, the longest."""
    return max(
        result.time.at - event.time.at
        for event in conversation.timeline
        if isinstance(event, ToolCall) and event.name == tool and event.time is not None
        for result in [conversation.tool_results[event.seq]]
        if result.time is not None
    )


def overlaps(conversation: Conversation) -> list[float]:
    """For how long the agent speaks in the midst of what the caller says, each time that it begins there."""
    spoken = [one.segments[0] for one in utterances(conversation, "user")]
    return [
        min(agent.end, caller.end) - agent.start
        for agent in (one.segments[0] for one in utterances(conversation, "assistant"))
        for caller in spoken
        if caller.start < agent.start < caller.end
    ]


def test_the_same_seed_gives_the_same_bytes(calls: list[PhoneCall], logs: Path, tmp_path: Path) -> None:
    write_logs(make_calls(), tmp_path)
    names = sorted(path.relative_to(logs).as_posix() for path in logs.rglob("*") if path.is_file())
    assert names == [
        "live/flow.jsonl",
        "live/speech.jsonl",
        "live/tools.jsonl",
        "live/turns.jsonl",
        "move_crossing.yaml",
        "rehearsal-v1.jsonl",
        "rehearsal-v2.jsonl",
    ]
    assert all((tmp_path / name).read_bytes() == (logs / name).read_bytes() for name in names)
    assert list(make_calls(seed=2)) != calls


def test_everything_is_read_and_nothing_has_to_be_repaired(calls: list[PhoneCall], logs: Path) -> None:
    conversations = convoscope.read(logs)
    # Two versions, each with 37 scenarios of 3 trials and 45 live calls: 2 × (111 + 45).
    assert len(list(conversations)) == len(calls) == 312
    report = conversations.report
    assert not report.problems
    assert not report.warnings
    assert [report.repaired, report.set_aside, report.ignored, report.unknown] == [{}, {}, {}, {}]
    assert list(report.inferred) == ["time_in_epoch_s"]


def test_outcomes_are_those_of_the_calls(calls: list[PhoneCall], read: dict[str, Conversation]) -> None:
    for call in calls:
        outcome = read[call.id].outcome
        assert outcome.completed == call.completed
        assert bool(outcome.error) == bool(call.error)
        assert outcome.duration == call.duration
    # A call is done, lost to one fault, or broken, and no two of these.
    done, lost, broken = (
        {call.id for call in calls if call.completed},
        {call.id for call in calls if call.fault},
        {call.id for call in calls if call.error},
    )
    assert len(done) + len(lost) + len(broken) == len(done | lost | broken) == 312
    assert min(len(done), len(lost), len(broken)) > 0


def test_versions_share_their_scenarios(read: dict[str, Conversation]) -> None:
    scenarios = {
        version: {
            (one.dimensions["scenario_id"], one.dimensions["trial"])
            for one in read.values()
            if one.dimensions["agent"] == version and "scenario_id" in one.dimensions
        }
        for version in ("v1", "v2")
    }
    assert scenarios["v1"] == scenarios["v2"]
    assert len(scenarios["v1"]) == 37 * 3


def test_a_live_call_is_joined_from_four_files(calls: list[PhoneCall], read: dict[str, Conversation]) -> None:
    live = [read[call.id] for call in calls if call.completed and not call.scenario]
    assert {len(conversation.source.files) for conversation in live} == {4}
    for conversation in live:
        assert utterances(conversation, "user")
        assert [one.state for one in conversation.timeline if isinstance(one, StateEntered)][-1] == "moved"
        assert conversation.tool_calls[-1].name == "move_booking"


def test_a_stalling_state_asks_three_times_or_more(calls: list[PhoneCall], read: dict[str, Conversation]) -> None:
    for conversation in lost_to(PlantedFault.STALL, calls, read):
        asked = sum(VEHICLE in words(one) for one in utterances(conversation, "assistant"))
        assert asked >= 3
    for call in calls:
        if call.completed:
            # It may ask once more of a caller whom it did not understand.
            assert sum(VEHICLE in words(one) for one in utterances(read[call.id], "assistant")) in (1, 2)


def test_a_slow_tool_takes_more_than_eight_seconds(calls: list[PhoneCall], read: dict[str, Conversation]) -> None:
    for conversation in lost_to(PlantedFault.SLOW_TOOL, calls, read):
        assert longest_use(conversation, "find_sailings") > 8
        assert conversation.dimensions["agent"] == "v1"
    done = [read[call.id] for call in calls if call.completed]
    assert max(longest_use(conversation, "find_sailings") for conversation in done) < 6.1


def test_callers_are_talked_over_three_times_for_two_seconds(
    calls: list[PhoneCall], read: dict[str, Conversation]
) -> None:
    lost = lost_to(PlantedFault.TALK_OVER, calls, read)
    for conversation in lost:
        assert sum(seconds > 2 for seconds in overlaps(conversation)) >= 3
    versions = [conversation.dimensions["agent"] for conversation in lost]
    assert versions.count("v2") > 3 * versions.count("v1")


def test_a_misheard_code_is_looked_up_as_it_was_heard(calls: list[PhoneCall], read: dict[str, Conversation]) -> None:
    codes = {call.id: call.task.code for call in calls}
    for conversation in lost_to(PlantedFault.MISHEARING, calls, read):
        code = codes[conversation.id]
        spoken = [one for one in utterances(conversation, "user") if one.intended and code in one.intended.text]
        assert len(spoken) >= 2
        assert all(one.heard is not None and code not in one.heard.text for one in spoken)
        assert all(call.arguments["code"] != code for call in conversation.tool_calls)


def test_letters_of_a_code_are_taken_for_others_that_sound_alike() -> None:
    # T, B and P have twins; two of them are taken for these, and digits stay.
    heard = misheard("T2B4P6", random.Random(0))
    assert heard in ("D2P4P6", "D2B4B6", "T2P4B6")


def one_fault(fault: PlantedFault, folder: Path) -> list[Conversation]:
    """Calls of an agent that loses every one to the same fault."""
    version = AgentVersion("v9", {fault: 1.0}, broken=0.0, haste=0.0)
    write_logs(make_calls(1, [version], scenarios=12, trials=1, live=6), folder)
    conversations = list(convoscope.read(folder))
    assert len(conversations) == 18
    return conversations


def test_a_failed_tool_never_works(tmp_path: Path) -> None:
    for conversation in one_fault(PlantedFault.FAILED_TOOL, tmp_path):
        calls = [call for call in conversation.tool_calls if call.name == "find_sailings"]
        assert [conversation.tool_results[call.seq].success for call in calls] == [False, False]


def test_a_loop_comes_back_three_times(tmp_path: Path) -> None:
    for conversation in one_fault(PlantedFault.LOOP, tmp_path):
        states = [one.state for one in conversation.timeline if isinstance(one, StateEntered)]
        # Once on the way, and three times back from confirming.
        assert states.count("choose_day") == 4


def test_a_silent_agent_says_nothing_after_the_caller(tmp_path: Path) -> None:
    for conversation in one_fault(PlantedFault.SILENCE, tmp_path):
        last = [conversation.roles[one.speaker] for one in conversation.timeline if isinstance(one, Utterance)][-3:]
        assert last == ["user"] * 3


@pytest.mark.parametrize("fault", PlantedFault)
def test_a_fault_loses_every_call_that_has_it(fault: PlantedFault) -> None:
    for state, tool in (
        ("identify", "find_booking"),
        ("choose_day", "move_booking"),
        ("choose_sailing", "find_sailings"),
    ):
        version = AgentVersion("v9", {fault: 1.0}, stalling_state=state, bad_tool=tool, broken=0.0, haste=0.2)
        for call in make_calls(3, [version], scenarios=30, trials=1, live=0):
            assert call.completed is False
            assert "moved" not in [step.state for step in call.steps if isinstance(step, StateStep)]
