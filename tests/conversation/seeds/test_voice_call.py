"""The model holds everything that the seed metric-context.txt names."""

import hashlib
import json
from typing import Any

import msgspec
import pytest

from convoscope.conversation import ComponentMetric, Conversation, Database, Time, ToolCall, ToolResult, Turn, Utterance
from support.seed_examples import example, said

START = Time(at=0.0, clock="audio")


@pytest.fixture
def call() -> Conversation:
    return example("voice-call")


# 1. Dataset variables


def test_record_identification(call: Conversation) -> None:
    assert call.dimensions["scenario_id"] == "bike-desk-031"  # record_id
    assert call.dimensions["trial"] == "2"
    assert (call.dimensions["dataset"], call.dimensions["split"]) == ("bike-desk", "dev")
    assert (call.dimensions["agent"], call.dimensions["domain"]) == (call.agent.name, "workshop")
    assert call.dimensions["model"] == call.agent.models["llm"]
    assert call.id == "bike-desk-031/trial-2"


def test_ground_truth(call: Conversation) -> None:
    assert call.scenario is not None
    goal = call.scenario.goal  # user_goal
    assert set(goal) == {"high_level_user_goal", "starting_utterance", "decision_tree", "information_required"}
    assert goal["high_level_user_goal"].startswith("You want your bicycle's service on Thursday")
    assert goal["starting_utterance"] == said(call, 2).intended.text
    assert goal["decision_tree"]["must_have_criteria"][1] == "the drop-off is before ten in the morning"
    assert goal["decision_tree"]["negotiation_behavior"][0] == "take the earliest slot that is offered"
    assert goal["decision_tree"]["resolution_condition"].endswith("the price of the pads")
    assert goal["decision_tree"]["failure_condition"] == "the agent has no Thursday slot before ten"
    assert goal["decision_tree"]["edge_cases"][0].startswith("if you are asked for a phone number")
    assert goal["information_required"] == {
        "job number": "KW714",
        "last name": "Oyelaran",
        "bicycle": "green touring bike",
    }
    assert call.scenario.persona.endswith("when he already knows what he wants.")  # user_persona


def test_scenario_database(call: Conversation) -> None:
    assert call.scenario is not None
    before, after, expected = call.scenario.before, call.scenario.after, call.scenario.expected
    # initial_scenario_db, final_scenario_db, expected_scenario_db
    assert before.content["jobs"]["KW714"]["slot"] == "2026-01-13T09:00"
    assert after.content["jobs"]["KW714"]["slot"] == "2026-01-15T08:30"
    assert expected.content["parts"]["rear_brake_pads"]["stock"] == 5
    # initial_scenario_db_hash, final_scenario_db_hash: here to be trusted, because they can be recomputed
    for database in (before, after, expected):
        assert database.hash == hash_of(database)
    assert before.hash != after.hash == expected.hash


def hash_of(database: Database) -> str:
    canonical = json.dumps(database.content, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


def test_agent_configuration(call: Conversation) -> None:
    assert call.agent.name == "kestrel-desk"
    assert call.agent.role == "service desk of a bicycle workshop"  # agent_role
    assert call.agent.instructions.endswith("Never offer a Sunday.")  # agent_instructions
    tools = {tool.name: tool for tool in call.agent.tools or ()}  # agent_tools
    assert list(tools) == ["get_job", "get_part_price", "reschedule_job"]
    assert tools["get_job"].description == "Read one service job."
    assert [tool.arguments_schema["required"] for tool in tools.values()] == [
        ["job_number"],
        ["part"],
        ["job_number", "slot"],
    ]
    assert tools["reschedule_job"].arguments_schema["properties"]["add_parts"]["type"] == "array"
    assert [tool.kind for tool in tools.values()] == ["read", "read", "write"]
    assert call.agent.models == {"llm": "llm-small-3", "stt": "stt-stream-2", "tts": "tts-warm-1"}
    assert call.scenario is not None
    assert call.scenario.clock == "2026-01-12T10:00:00Z"  # current_date_time


# 2. Result variables


def test_turn_ids(call: Conversation) -> None:
    # Turn 0 is the greeting; the caller's false start (seq 13) advances nothing; the agent's
    # interruption (seq 12) does not advance, the caller's (seq 10) does.
    assert {turn.id: [e.seq for e in turn.events] for turn in call.turns} == {
        0: [1],
        1: [2, 3, 4],
        2: [5, 6, 7, 8, 9],
        3: [10, 11, 12, 13],
        4: [14, 15, 16, 17, 18, 19, 20, 21, 22, 23],
        5: [24, 25, 26],
    }
    assert call.text(said(call, 13)) == ""
    assert said(call, 13).segments == ()
    assert said(call, 13).extras["false_start"].startswith("a door")


def test_intended_and_transcribed_turns(call: Conversation) -> None:
    intended_assistant_turns = {t.id: [u.intended.text for u in t.assistant if u.intended] for t in call.turns}
    transcribed_assistant_turns = {t.id: [u.heard.text for u in t.assistant if u.heard] for t in call.turns}
    intended_user_turns = {t.id: [u.intended.text for u in t.user if u.intended] for t in call.turns}
    transcribed_user_turns = {t.id: [u.heard.text for u in t.user if u.heard] for t in call.turns}
    assert intended_assistant_turns == {
        0: ["Kestrel Cycle Works, service desk. What can I do for you?"],
        1: ["Gladly. May I have your job number?"],
        2: [
            "Thank you, Mr Oyelaran. You are down for Tuesday at nine. "
            "On Thursday I have half past eight, eleven, and a quarter to four."
        ],
        3: ["Half past eight on Thursday it is."],
        4: [
            "Sorry about that. One moment, I'll look up the price.",
            "The pads are €24, so I've added them. We'll see you on Thursday 15 January at 8:30.",
        ],
        5: ["Goodbye, and ride safely."],
    }
    assert transcribed_assistant_turns[2] == [
        "thank you Mr Oyelaran you are down for Tuesday at nine on Thursday I have half past eight"
    ]
    assert transcribed_assistant_turns[4] == [
        "sorry about that one moment I'll look up the price",
        "the pads are 24 euros so I've added them we'll see you on Thursday the 15th of January at 8:30",
    ]
    assert intended_user_turns[2] == ["It's KW714."]
    assert intended_user_turns[3] == ["Half past eight suits me. Oh, and one more thing, the rear brake squeaks."]
    assert transcribed_user_turns == {
        0: [],
        1: ["hi I need to move my bike service to Thursday"],
        2: ["it's K W 7 1 4"],
        3: ["half past eight suits me oh and one more thing"],
        4: ["I wasn't done the rear break squeaks so add new pads if they cost less than thirty euros"],
        5: [],  # the call ended before the recogniser did
    }


def test_what_was_really_spoken(call: Conversation) -> None:
    # "intended → spoken → heard": cut off, spelt out, and put into words
    assert [u.seq for u in call.utterances if u.spoken and u.spoken != u.intended] == [5, 9, 10, 23]
    assert said(call, 9).spoken.text.endswith("On Thursday I have half past eight,")
    assert said(call, 10).spoken.text == "Half past eight suits me. Oh, and one more thing, the rear"
    assert said(call, 5).spoken.text == "It's K W, seven one four."
    assert "twenty-four euros" in said(call, 23).spoken.text


def test_every_text_names_its_log(call: Conversation) -> None:
    for utterance in call.utterances:
        agent = utterance.speaker == "agent"
        for text in (utterance.intended, utterance.spoken):
            if text is not None:
                assert text.source == ("pipecat_events.jsonl" if agent else "elevenlabs_events.jsonl")
        if utterance.heard is not None:
            assert utterance.heard.source == ("elevenlabs_events.jsonl" if agent else "audit_log.json")
    complete = [u.seq for u in call.utterances if u.intended and u.spoken and u.heard]
    assert complete == [1, 2, 4, 5, 9, 10, 12, 14, 16, 23, 26]
    confidences = {u.seq: u.heard.confidence for u in call.utterances if u.heard and u.heard.language == "en"}
    assert confidences == {2: 0.97, 5: 0.81, 10: 0.9, 14: 0.93}


def test_audio_timestamps(call: Conversation) -> None:
    def by_turn(role: str) -> dict[int, list[tuple[float, float]]]:
        return {t.id: [(s.start, s.end) for u in getattr(t, role) for s in u.segments] for t in call.turns}

    assert by_turn("assistant") == {  # audio_timestamps_assistant_turns
        0: [(0.4, 3.9)],
        1: [(8.1, 10.3)],
        2: [(15.4, 20.8)],
        3: [(23.7, 25.5)],
        4: [(31.8, 34.2), (37.3, 43.6)],
        5: [(46.5, 48.0)],
    }
    assert by_turn("user") == {  # audio_timestamps_user_turns
        0: [],
        1: [(4.6, 7.2)],
        2: [(10.9, 12.0), (12.6, 13.8)],
        3: [(20.2, 21.9), (22.3, 24.1)],
        4: [(26.4, 30.9)],
        5: [(44.2, 45.8)],
    }


def test_interruptions_in_both_directions(call: Conversation) -> None:
    # assistant_interrupted_turns, user_interrupted_turns: who spoke while the other's sound was still active
    assert {t.id for t in call.turns for u in t.user if u.cut_off_by == "agent"} == {3}
    assert {t.id for t in call.turns for u in t.assistant if u.cut_off_by == "caller"} == {2}
    assert said(call, 10).segments[0].start < said(call, 9).segments[-1].end
    assert said(call, 12).segments[0].start < said(call, 10).segments[-1].end


def test_conversation_trace(call: Conversation) -> None:
    trace = [(kind, turn.id) for turn in call.turns for e in turn.events if (kind := trace_type(call, e))]
    assert trace == [
        ("assistant intended", 0),
        ("user transcribed", 1),
        ("assistant intended", 1),
        ("user transcribed", 2),
        ("tool_call get_job", 2),
        ("tool_response get_job", 2),
        ("assistant intended", 2),
        ("user transcribed", 3),
        ("assistant intended", 3),
        ("user transcribed", 4),
        ("assistant intended", 4),
        ("tool_call get_part_price", 4),
        ("tool_response get_part_price", 4),
        ("tool_call get_part_price", 4),
        ("tool_response get_part_price", 4),
        ("tool_call reschedule_job", 4),
        ("tool_response reschedule_job", 4),
        ("assistant intended", 4),
        ("user intended", 5),  # not transcribed in time: what was intended fills in
        ("assistant intended", 5),
    ]


def trace_type(call: Conversation, event: Any) -> str:
    if isinstance(event, ToolCall):
        return f"tool_call {event.name}"
    if isinstance(event, ToolResult):
        return f"tool_response {event.name}"
    if not isinstance(event, Utterance) or not (content := call.text(event)):
        return ""
    transcribed = event.heard is not None and event.heard.text == content
    return f"{call.roles[event.speaker]} {'transcribed' if transcribed else 'intended'}"


def test_the_pipeline_decides_which_user_text_counts(call: Conversation) -> None:
    assert call.pipeline == "cascade"  # pipeline_type
    assert not call.is_audio_native
    assert call.turns[2].user_text == "it's K W 7 1 4"
    native = msgspec.structs.replace(call, pipeline="s2s")
    assert native.is_audio_native
    assert native.turns[2].user_text == "It's KW714."


def test_tool_call_data(call: Conversation) -> None:
    assert list(dict.fromkeys(c.name for c in call.tool_calls)) == call.outcome.extras["tools_called"]
    assert [(c.name, c.arguments) for c in call.tool_calls] == [  # tool_params
        ("get_job", {"job_number": "KW714"}),
        ("get_part_price", {"part": "rear_brake_pads"}),
        ("get_part_price", {"part": "rear_brake_pads"}),
        ("reschedule_job", {"job_number": "KW714", "slot": "2026-01-15T08:30", "add_parts": ["rear_brake_pads"]}),
    ]
    assert [(r.name, r.success, r.result, r.error) for r in call.tool_results.values()] == [  # tool_responses
        ("get_job", True, {"status": "ok", "owner": "Oyelaran", "slot": "2026-01-13T09:00"}, ""),
        ("get_part_price", False, None, "the price list did not answer within 1 s"),
        ("get_part_price", True, {"status": "ok", "price": 24, "stock": 6}, ""),
        ("reschedule_job", True, {"status": "ok", "price": 113}, ""),
    ]
    assert {c.caller for c in call.tool_calls} == {"agent"}
    assert call.tool_results[19].call_id == "t3"


def test_counts_can_be_derived_and_agree_with_the_log(call: Conversation) -> None:
    reported = call.outcome.extras
    assert len(call.turns) == reported["num_turns"] == 6
    assert sum(bool(turn.assistant) for turn in call.turns) == reported["num_assistant_turns"] == 6
    assert sum(bool(turn.user) for turn in call.turns) == reported["num_user_turns"] == 5
    assert len(call.tool_calls) == reported["num_tool_calls"] == 4
    assert reported["tools_called"] == ["get_job", "get_part_price", "reschedule_job"]


def test_outcome(call: Conversation) -> None:
    assert call.outcome.finished is True  # conversation_finished
    assert call.outcome.completed is True
    assert call.outcome.ended_reason == "goodbye"  # conversation_ended_reason
    assert call.outcome.duration == 48.6  # duration_seconds


def test_latencies_as_the_log_reports_them(call: Conversation) -> None:
    reported = {turn.id: latency(turn) for turn in call.turns if turn.user}  # latency_assistant_turns
    assert reported == {1: 0.9, 2: 1.6, 3: -0.4, 4: 0.9, 5: 0.7}
    for turn in call.turns[1:]:
        ended = max(segment.end for user in turn.user for segment in user.segments)
        assert turn.assistant[0].segments[0].start - ended == pytest.approx(reported[turn.id])


def latency(turn: Turn) -> float:
    (metric,) = (e for e in turn.events if isinstance(e, ComponentMetric) and e.component == "response")
    return metric.values["latency"]


def test_file_paths(call: Conversation) -> None:
    assert call.extras["output_dir"] == "/runs/bike-desk/031-2"  # output_dir
    assert call.recording is not None
    assert [(track.path, track.channels) for track in call.recording.tracks] == [
        ("/runs/bike-desk/031-2/assistant.wav", ("agent",)),  # audio_assistant_path
        ("/runs/bike-desk/031-2/user.wav", ("caller",)),  # audio_user_path
        ("/runs/bike-desk/031-2/mixed.wav", ("agent", "caller")),  # audio_mixed_path: left is the assistant
    ]
    for track in call.recording.tracks:
        assert (track.format, track.sample_rate, track.duration) == ("wav", 16000, 48.6)
        assert call.elapsed(START, track.started) == 0.0
    assert call.source.files == (
        "dataset.jsonl",
        "audit_log.json",
        "pipecat_events.jsonl",
        "elevenlabs_events.jsonl",
        "response_latencies.json",
        "result.json",
    )


def test_three_logs_have_three_clocks(call: Conversation) -> None:
    clocks = {clock.id: clock for clock in call.clocks}
    assert {clock.source: clock.estimated for clock in clocks.values()} == {
        "elevenlabs_events.jsonl": False,
        "pipecat_events.jsonl": False,
        "audit_log.json": True,  # joined by the texts that the logs share
    }
    assert {clock.id: clock.kind for clock in clocks.values()} == {
        "audio": "audio",
        "wall": "wall",
        "audit": "wall",
    }
    assert clocks["audit"].resolution == 1.0
    assert call.elapsed(START, call.tool_calls[0].time) == 14.5  # 1768212015 by the audit log
    assert call.elapsed(START, said(call, 10).time) == 20.2
    for utterance in call.utterances:
        if utterance.segments:
            assert call.elapsed(START, utterance.time) == pytest.approx(utterance.segments[0].start, abs=1e-6)
        if utterance.segments and utterance.speaker == "caller":
            assert utterance.time.until == utterance.segments[-1].end
