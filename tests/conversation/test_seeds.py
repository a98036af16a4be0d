"""The model holds everything that the five seed documents name: one hand-written example for each."""

import hashlib
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from convoscope.conversation import (
    Annotations,
    ComponentMetric,
    Conversation,
    Database,
    Frame,
    GuardEvaluated,
    Item,
    Marker,
    Retrieval,
    SlotFilled,
    StateEntered,
    StateExited,
    Time,
    ToolCall,
    ToolResult,
    Turn,
    Utterance,
    from_json,
    json_schema,
    to_json,
)

EXAMPLES = Path(__file__).parents[2] / "examples" / "convoscope"
NAMES = ("voice-call", "evaluation-items", "flow-states", "annotated-call", "dialogue-state")


def example(name: str) -> Conversation:
    return from_json((EXAMPLES / f"{name}.json").read_bytes())


def said(conversation: Conversation, seq: int) -> Utterance:
    return next(utterance for utterance in conversation.utterances if utterance.seq == seq)


def figures(conversation: Conversation, component: str) -> list[ComponentMetric]:
    return [e for e in conversation.timeline if isinstance(e, ComponentMetric) and e.component == component]


@pytest.mark.parametrize("name", NAMES)
def test_an_example_survives_a_round_trip(name: str) -> None:
    conversation = example(name)
    assert from_json(to_json(conversation)) == conversation


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_valid_by_the_json_schema(name: str) -> None:
    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(json.loads((EXAMPLES / f"{name}.json").read_bytes()))


@pytest.mark.parametrize("name", NAMES)
def test_an_example_refers_only_to_what_it_holds(name: str) -> None:
    conversation = example(name)
    spoken = {utterance.seq for utterance in conversation.utterances}
    speakers = set(conversation.roles)
    for item in conversation.items:
        assert {item.asked, item.answered} <= spoken
    for frame in conversation.frames:
        assert frame.seq in spoken
    for annotations in conversation.annotations:
        for family in (annotations.topics, annotations.risks, annotations.actions, annotations.entities):
            for finding in family or ():
                assert set(finding.events) <= spoken
    for utterance in conversation.utterances:
        assert utterance.cut_off_by in speakers | {""}
    for track in conversation.recording.tracks if conversation.recording else ():
        assert set(track.channels) <= speakers


def test_a_tool_call_is_answered_in_every_example() -> None:
    for name in NAMES:
        conversation = example(name)
        assert list(conversation.tool_results) == [call.seq for call in conversation.tool_calls]


START = Time(at=0.0, clock="audio")


class TestMetricContext:
    """Seed metric-context.txt."""

    @pytest.fixture
    def call(self) -> Conversation:
        return example("voice-call")

    # 1. Dataset variables

    def test_record_identification(self, call: Conversation) -> None:
        assert call.dimensions["scenario_id"] == "bike-desk-031"  # record_id
        assert call.dimensions["trial"] == "2"
        assert (call.dimensions["dataset"], call.dimensions["split"]) == ("bike-desk", "dev")
        assert (call.dimensions["agent"], call.dimensions["domain"]) == (call.agent.name, "workshop")
        assert call.dimensions["model"] == call.agent.models["llm"]
        assert call.id == "bike-desk-031/trial-2"

    def test_ground_truth(self, call: Conversation) -> None:
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

    def test_scenario_database(self, call: Conversation) -> None:
        assert call.scenario is not None
        before, after, expected = call.scenario.before, call.scenario.after, call.scenario.expected
        # initial_scenario_db, final_scenario_db, expected_scenario_db
        assert before.content["jobs"]["KW714"]["slot"] == "2026-01-13T09:00"
        assert after.content["jobs"]["KW714"]["slot"] == "2026-01-15T08:30"
        assert expected.content["parts"]["rear_brake_pads"]["stock"] == 5
        # initial_scenario_db_hash, final_scenario_db_hash: here to be trusted, because they can be recomputed
        for database in (before, after, expected):
            assert database.hash == self.hash_of(database)
        assert before.hash != after.hash == expected.hash

    @staticmethod
    def hash_of(database: Database) -> str:
        canonical = json.dumps(database.content, sort_keys=True, separators=(",", ":"))
        return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()

    def test_agent_configuration(self, call: Conversation) -> None:
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

    def test_turn_ids(self, call: Conversation) -> None:
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

    def test_intended_and_transcribed_turns(self, call: Conversation) -> None:
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

    def test_what_was_really_spoken(self, call: Conversation) -> None:
        # "intended → spoken → heard": cut off, spelt out, and put into words
        assert [u.seq for u in call.utterances if u.spoken and u.spoken != u.intended] == [5, 9, 10, 23]
        assert said(call, 9).spoken.text.endswith("On Thursday I have half past eight,")
        assert said(call, 10).spoken.text == "Half past eight suits me. Oh, and one more thing, the rear"
        assert said(call, 5).spoken.text == "It's K W, seven one four."
        assert "twenty-four euros" in said(call, 23).spoken.text

    def test_every_text_names_its_log(self, call: Conversation) -> None:
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

    def test_audio_timestamps(self, call: Conversation) -> None:
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

    def test_interruptions_in_both_directions(self, call: Conversation) -> None:
        # assistant_interrupted_turns, user_interrupted_turns: who spoke while the other's sound was still active
        assert {t.id for t in call.turns for u in t.user if u.cut_off_by == "agent"} == {3}
        assert {t.id for t in call.turns for u in t.assistant if u.cut_off_by == "caller"} == {2}
        assert said(call, 10).segments[0].start < said(call, 9).segments[-1].end
        assert said(call, 12).segments[0].start < said(call, 10).segments[-1].end

    def test_conversation_trace(self, call: Conversation) -> None:
        trace = [(kind, turn.id) for turn in call.turns for e in turn.events if (kind := self.trace_type(call, e))]
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

    @staticmethod
    def trace_type(call: Conversation, event: Any) -> str:
        if isinstance(event, ToolCall):
            return f"tool_call {event.name}"
        if isinstance(event, ToolResult):
            return f"tool_response {event.name}"
        if not isinstance(event, Utterance) or not (content := call.text(event)):
            return ""
        transcribed = event.heard is not None and event.heard.text == content
        return f"{call.roles[event.speaker]} {'transcribed' if transcribed else 'intended'}"

    def test_the_pipeline_decides_which_user_text_counts(self, call: Conversation) -> None:
        assert call.pipeline == "cascade"  # pipeline_type
        assert not call.is_audio_native
        assert call.turns[2].user_text == "it's K W 7 1 4"
        native = msgspec.structs.replace(call, pipeline="s2s")
        assert native.is_audio_native
        assert native.turns[2].user_text == "It's KW714."

    def test_tool_call_data(self, call: Conversation) -> None:
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

    def test_counts_can_be_derived_and_agree_with_the_log(self, call: Conversation) -> None:
        reported = call.outcome.extras
        assert len(call.turns) == reported["num_turns"] == 6
        assert sum(bool(turn.assistant) for turn in call.turns) == reported["num_assistant_turns"] == 6
        assert sum(bool(turn.user) for turn in call.turns) == reported["num_user_turns"] == 5
        assert len(call.tool_calls) == reported["num_tool_calls"] == 4
        assert reported["tools_called"] == ["get_job", "get_part_price", "reschedule_job"]

    def test_outcome(self, call: Conversation) -> None:
        assert call.outcome.finished is True  # conversation_finished
        assert call.outcome.completed is True
        assert call.outcome.ended_reason == "goodbye"  # conversation_ended_reason
        assert call.outcome.duration == 48.6  # duration_seconds

    def test_latencies_as_the_log_reports_them(self, call: Conversation) -> None:
        reported = {turn.id: self.latency(turn) for turn in call.turns if turn.user}  # latency_assistant_turns
        assert reported == {1: 0.9, 2: 1.6, 3: -0.4, 4: 0.9, 5: 0.7}
        for turn in call.turns[1:]:
            ended = max(segment.end for user in turn.user for segment in user.segments)
            assert turn.assistant[0].segments[0].start - ended == pytest.approx(reported[turn.id])

    @staticmethod
    def latency(turn: Turn) -> float:
        (metric,) = (e for e in turn.events if isinstance(e, ComponentMetric) and e.component == "response")
        return metric.values["latency"]

    def test_file_paths(self, call: Conversation) -> None:
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

    def test_three_logs_have_three_clocks(self, call: Conversation) -> None:
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


class TestStandardData:
    """Seed standard-data.txt."""

    @pytest.fixture
    def call(self) -> Conversation:
        return example("evaluation-items")

    @pytest.fixture
    def tariff(self, call: Conversation) -> Item:
        return call.items[0]

    @pytest.fixture
    def reading(self, call: Conversation) -> Item:
        return call.items[1]

    def test_identifiers(self, call: Conversation) -> None:
        assert call.dimensions["user_id"] == "cust-8830"
        assert call.dimensions["task_id"] == "run-77"
        assert [item.id for item in call.items] == ["span-a1", "span-a2"]  # turn_id
        assert [item.extras["source_trace_id"] for item in call.items] == ["trace-5521-a", "trace-5521-b"]

    def test_question_and_answer(self, call: Conversation, tariff: Item, reading: Item) -> None:
        # agent_task = input_text, agent_response = output_text: one utterance each, so twins cannot drift
        assert call.text(said(call, tariff.asked)) == "How much do I get for the power that I feed in?"
        assert call.text(said(call, tariff.answered)).startswith("As a household you get 8.2 cents")
        assert call.text(said(call, reading.asked)) == "Four zero three one two."
        assert call.text(said(call, reading.answered)) == "I've stored 40312 for your meter LS-209."
        # a twin that differs from the other is kept as it came
        assert reading.extras["input_text"] == "Submit the caller's meter reading"
        assert tariff.expected.ground_truth == "8.2 cents per kilowatt hour"
        assert reading.expected.ground_truth == "The reading 40312 is stored for meter LS-209."
        assert (tariff.kind, reading.kind) == ("conversational", "agent")  # novaeval_item_type

    def test_agent(self, call: Conversation, reading: Item) -> None:
        assert call.agent.name == "sunny-desk"  # agent_name
        assert call.agent.role == "customer support agent of a solar power cooperative"  # agent_role
        assert call.agent.instructions.endswith("Read a meter value back once.")  # system_prompt
        assert [step["status"] for step in reading.extras["trace"]] == ["ok", "error", "ok"]  # trace
        assert reading.extras["trace"][0]["goal"] == "store the reading"
        assert call.outcome.final_status == "success"  # exit_status
        assert call.outcome.finished is True  # agent_exit

    def test_tools_available(self, call: Conversation) -> None:
        lookup, submit = call.agent.tools or ()
        assert (lookup.name, lookup.description) == ("lookup_member", "Find a member by number.")
        assert submit.arguments_schema["properties"]["kwh"] == {"type": "integer"}  # args_schema
        assert submit.arguments_schema["required"] == ["meter", "kwh"]
        assert (submit.name, submit.description) == ("submit_reading", "Store a meter reading.")
        assert lookup.result_schema["properties"] == {"meter": {"type": "string"}}  # return_schema
        assert submit.result_schema["properties"] == {"stored": {"type": "boolean"}}

    def test_tool_calls(self, call: Conversation, reading: Item) -> None:
        assert [(c.name, c.arguments, c.call_id) for c in call.tool_calls] == [
            ("lookup_member", {"member": "cust-8830"}, "c1"),
            ("submit_reading", {"meter": "LS-209", "kwh": 4312}, "c2"),
            ("submit_reading", {"meter": "LS-209", "kwh": 40312}, "c3"),
        ]
        assert [(r.call_id, r.result, r.success, r.error) for r in call.tool_results.values()] == [
            ("c1", {"meter": "LS-209"}, True, ""),
            ("c2", None, False, "reading is lower than last year's"),  # error_message
            ("c3", {"stored": True}, True, ""),
        ]
        assert reading.extras["parameters_passed"] == call.tool_calls[-1].arguments  # parameters_passed
        (expected,) = reading.expected.tool_calls or ()  # expected_tool_call
        assert (expected.name, expected.call_id) == ("submit_reading", "exp-1")
        assert expected.arguments == {"meter": "LS-209", "kwh": 40312}

    def test_no_expected_call_is_not_an_expected_absence(self, tariff: Item) -> None:
        assert tariff.expected.tool_calls is None

    def test_retrieval(self, call: Conversation, tariff: Item) -> None:
        found = [e for e in call.timeline if isinstance(e, Retrieval)]
        assert [e.query for e in found] == ["feed-in tariff household", "tariff for fed-in power 2026"]
        assert [list(e.chunks) for e in found] == [  # retrieved_context: outer list queries, inner list neighbours
            ["Households are paid 8.2 cents per kilowatt hour in 2026.", "Payments are made every quarter."],
            ["Businesses are paid 6.9 cents per kilowatt hour in 2026."],
        ]
        assert all(tariff.asked < e.seq < tariff.answered for e in found)

    def test_conversation_context(self, call: Conversation) -> None:
        context = call.extras["conversation_context"]
        assert context["topic"] == "feed-in tariff and meter reading"
        assert context["context"] == "a member calls the cooperative's support line"
        assert context["metadata"] == {"queue": "members", "priority": 2}
        assert [call.roles[u.speaker] for u in call.utterances[:3]] == ["system", "assistant", "user"]
        assert call.text(call.utterances[0]) == "The caller has been identified by telephone number."
        # ConversationTurn.timestamp: 2026-02-09T08:00:00Z is 1770624000
        started = [u.time.at - 1770624000 for u in call.utterances]
        assert started == pytest.approx([0.0, 1.0, 4.2, 8.3, 13.0, 16.0, 19.5, 25.5, 30.5, 32.0])
        # ConversationTurn.metadata
        assert said(call, 1).extras == {"channel": "telephony"}
        assert said(call, 3).extras == {"sentiment": "neutral"}

    def test_one_turn_of_the_conversation(self, call: Conversation, tariff: Item, reading: Item) -> None:
        answer = said(call, tariff.answered)
        assert call.roles[answer.speaker] == "assistant"  # speaker
        assert call.text(answer) == "As a household you get 8.2 cents per kilowatt hour this year."  # message
        assert call.utterances.index(answer) == 3  # turn_position
        assert tariff.extras["context"] == {"tariff_year": 2026, "member_type": "household"}  # context: dict
        assert reading.extras["context"] == "the reading must be higher than last year's 36870"  # context: str

    def test_format_validation(self, tariff: Item) -> None:
        assert tariff.expected.format == "one sentence with the price in cents"  # expected_format
        assert tariff.extras["extracted_content"] == "8.2 cents"  # extracted_content

    def test_stt_data_per_turn(self, call: Conversation) -> None:
        first, third = figures(call, "stt_span")
        assert (first.label, third.label) == ("turn_1", "turn_3")
        assert first.values == {
            "provider": "earshot",
            "model": "stt-stream-2",
            "is_final": True,
            "mode": "streaming",
            "event_type": "final_transcript",
            "audio_duration_ms": 2400.0,
            "audio_url": "https://audio.example/5521/u1.wav",
            "span_duration_ms": 2700.0,
        }
        # span_start_time, span_end_time
        assert (first.time.at, first.time.until) == (1770624004.2, 1770624006.9)
        assert (third.time.at, third.time.until) == (1770624019.5, 1770624022.6)
        assert (third.values["mode"], third.values["model"]) == ("batch", "stt-batch-1")
        assert third.values["audio_url"] == "https://audio.example/5521/u3.wav"
        assert (third.values["audio_duration_ms"], third.values["span_duration_ms"]) == (2600.0, 3100.0)
        heard = said(call, 3).heard
        assert heard.text == "How much do I get for the power that I feed in?"  # transcript
        assert (heard.confidence, heard.language, heard.source) == (0.94, "en-GB", "stt_data.turn_1")
        assert (said(call, 16).heard.confidence, said(call, 16).heard.source) == (0.88, "stt_data.turn_3")

    def test_tts_data_per_turn(self, call: Conversation) -> None:
        first, third = figures(call, "tts_span")
        assert first.values == {
            "provider": "voxmill",
            "model": "tts-clear-4",
            "audio_duration_ms": 3600.0,
            "audio_url": "https://audio.example/5521/a1.wav",
            "span_duration_ms": 900.0,
            "speed": 1.05,
            "pitch": -0.5,
        }
        assert (first.time.at, first.time.until) == (1770624008.1, 1770624009.0)
        assert (third.time.at, third.time.until) == (1770624025.2, 1770624026.2)
        assert "speed" not in third.values  # optional
        assert (third.values["audio_duration_ms"], third.values["span_duration_ms"]) == (4100.0, 1000.0)
        spoken = {u.intended.source: u.intended.text for u in call.utterances if u.intended and u.intended.source}
        assert spoken == {  # input_text
            "tts_data.turn_1": "As a household you get 8.2 cents per kilowatt hour this year.",
            "tts_data.turn_3": "I've stored 40312 for your meter LS-209.",
        }

    def test_raw_complete_audio(self, call: Conversation) -> None:
        assert call.recording is not None
        (track,) = call.recording.tracks
        assert track.duration == 34.5  # audio_duration
        assert track.sample_rate == 48000
        assert len(track.channels) == 2  # channels
        assert track.channels == ("user", "assistant")
        assert track.format == "ogg"
        assert track.url == "https://audio.example/5521/full.ogg"  # audio_url
        assert call.recording.transcript.startswith("Assistant: Lindenhof Solar,")  # complete_transcript
        assert call.recording.extras["audio_uuid"] == "5b0d6c1e-aud"
        assert call.recording.extras["timeline"] == {  # timeline
            "user": [[4.2, 6.6], [13.0, 15.2], [19.5, 22.1], [30.5, 31.6]],
            "assistant": [[1.0, 3.4], [8.3, 11.9], [16.0, 18.2], [25.5, 29.6], [32.0, 33.4]],
        }

    def test_latency_of_the_session(self, call: Conversation) -> None:
        assert call.extras["latency"] == {"e2e_mean_ms": 1850.0, "llm_ttft_p95_ms": 515.0, "unit": "ms"}

    def test_metrics_collected(self, call: Conversation) -> None:
        (vad,) = figures(call, "vad")
        assert vad.values == {"idle_time": 3.1, "inference_count": 74, "speech_detected": True}
        (stt,) = figures(call, "stt")
        assert stt.values == {
            "duration": 0.0,
            "audio_duration": 2.4,
            "transcript": "How much do I get for the power that I feed in?",
            "confidence": 0.94,
        }
        first, third = figures(call, "tts")
        assert first.values == {
            "ttfb": 0.19,
            "duration": 0.9,
            "audio_duration": 3.6,
            "speaking_duration": 3.5,
            "cancelled": False,
        }
        assert third.values.keys() == first.values.keys()
        assert third.values["ttfb"] == 0.22
        first, third = figures(call, "llm")
        assert first.values == {
            "ttft": 0.41,
            "duration": 1.1,
            "completion_tokens": 22,
            "prompt_tokens": 640,
            "tokens_per_second": 20.0,
        }
        assert third.values["prompt_tokens"] == 910
        first, third = figures(call, "eou")
        assert first.values == {
            "end_of_utterance_delay": 0.48,
            "transcription_delay": 0.3,
            "on_user_turn_completed_delay": 0.02,
        }
        assert third.values["end_of_utterance_delay"] == 0.61

    def test_metrics_of_a_turn_share_its_label_and_speech(self, call: Conversation) -> None:
        metrics = [e for e in call.timeline if isinstance(e, ComponentMetric)]
        assert [e.component for e in metrics if e.label == "turn_1"] == [
            "vad",
            "stt",
            "stt_span",
            "eou",
            "llm",
            "tts",
            "tts_span",
        ]
        labelled = [(e.component, e.speech_id) for e in metrics if e.label == "turn_3"]
        assert labelled == [
            ("stt_span", "sp-3"),
            ("llm", "sp-3"),
            ("eou", "sp-3"),
            ("tts", "sp-3"),
            ("tts_span", "sp-3"),
        ]
        assert [e.component for e in metrics if e.speech_id == "sp-1"] == [
            "stt",
            "stt_span",
            "eou",
            "llm",
            "tts",
            "tts_span",
        ]

    def test_metadata(self, tariff: Item, reading: Item) -> None:
        assert tariff.extras["metadata"] == {"environment": "production", "tags": ["tariff"]}
        assert reading.extras["metadata"]["tags"] == ["meter", "retry"]


class TestPerStateMetrics:
    """Seed per-state-metrics.txt and the event table of the flow-states specification."""

    @pytest.fixture
    def chat(self) -> Conversation:
        return example("flow-states")

    def test_flow_and_agent(self, chat: Conversation) -> None:
        assert chat.dimensions["flow"] == "vet_intake"
        assert chat.dimensions["agent"] == "pepper"
        assert chat.dimensions["model"] == "llm-small-3"
        assert chat.agent.name == chat.dimensions["agent"]
        assert [(tool.name, tool.kind) for tool in chat.agent.tools or ()] == [
            ("find_visit", "read"),
            ("book_visit", "write"),
        ]

    def test_every_event_type_of_the_stream_has_a_place(self, chat: Conversation) -> None:
        assert {type(event) for event in chat.timeline} == {
            Utterance,
            StateEntered,  # state_entered
            StateExited,  # state_exited
            ComponentMetric,  # turn_complete
            GuardEvaluated,  # guard_evaluated
            SlotFilled,  # slot_filled
            ToolCall,  # tool_called
            ToolResult,  # tool_result
            Marker,  # conversation_ended
        }

    def test_visits(self, chat: Conversation) -> None:
        entered = [e.state for e in chat.timeline if isinstance(e, StateEntered)]
        assert entered == ["greet", "collect_pet", "collect_visit", "confirm", "collect_visit", "escalated"]
        exits = [(e.state, e.to_state, e.reason) for e in chat.timeline if isinstance(e, StateExited)]
        assert exits == [
            ("greet", "collect_pet", "pet_named"),
            ("collect_pet", "collect_visit", "slots_filled"),
            ("collect_visit", "confirm", "slots_filled"),
            ("confirm", "collect_visit", "rejected"),
            ("collect_visit", "escalated", "tool_failed"),
        ]
        assert entered.count("collect_visit") - 1 == 1  # revisit
        assert {to for state, to, _ in exits if state == "collect_visit"} == {"confirm", "escalated"}  # to_states

    def test_turns_of_a_state(self, chat: Conversation) -> None:
        ran: dict[str, list[float]] = {}
        state = ""
        for event in chat.timeline:
            if isinstance(event, StateEntered):
                state = event.state
            elif isinstance(event, ComponentMetric):
                # a turn belongs to the state that the agent ran in, which a late event has to say itself
                ran.setdefault(event.extras.get("state", state), []).append(event.values["latency_ms"])
        assert ran == {
            "greet": [800],
            "collect_pet": [1200],
            "collect_visit": [900, 3500, 2100],
            "confirm": [1000],
            "escalated": [900],
        }
        turns = figures(chat, "turn")
        assert [(t.values["tokens_in"], t.values["tokens_out"]) for t in turns] == [
            (210, 14),
            (265, 17),
            (300, 9),
            (350, 6),
            (362, 12),
            (410, 19),
            (440, 15),
        ]
        assert {t.values["model"] for t in turns} == {"llm-small-3"}

    def test_guards(self, chat: Conversation) -> None:
        guards = [e for e in chat.timeline if isinstance(e, GuardEvaluated)]
        assert [(e.guard, e.state, e.result, e.error) for e in guards] == [
            ("pet_is_known", "greet", True, ""),
            ("day_is_open", "collect_visit", None, "the calendar service did not answer"),  # guard_error
            ("day_is_open", "collect_visit", True, ""),
            ("day_is_open", "collect_visit", False, ""),
        ]

    def test_slots(self, chat: Conversation) -> None:
        slots = {e.slot: (e.value, e.state) for e in chat.timeline if isinstance(e, SlotFilled)}
        assert slots == {
            "species": ("rabbit", "greet"),  # front-loaded: collect_pet is the state that asks for it
            "previous_visits": (0, "greet"),
            "vaccinated": (False, "collect_pet"),
            "medicine": ("", "collect_pet"),
            "day": ("friday", "collect_visit"),
        }
        # 0 == False in Python: the kinds have to survive too
        assert type(slots["previous_visits"][0]) is int
        assert slots["vaccinated"][0] is False

    def test_tools(self, chat: Conversation) -> None:
        assert [(c.name, c.arguments) for c in chat.tool_calls] == [
            ("find_visit", {"day": "friday", "species": "rabbit"}),
            ("book_visit", {"day": "monday", "hour": "9:00"}),
        ]
        assert [(r.success, r.error) for r in chat.tool_results.values()] == [
            (True, ""),
            (False, "no vet for rabbits on monday"),
        ]
        assert chat.tool_results[23].result == ["10:20", "16:40"]

    def test_it_ended_in_an_escalation(self, chat: Conversation) -> None:
        assert chat.outcome.completed is False
        assert chat.outcome.ended_reason == "escalated"  # stop_reason
        assert chat.outcome.final_status == "callback_promised"
        assert chat.outcome.duration == 29.0
        assert chat.outcome.error == ""  # errored conversations are excluded: this one is not
        ended = chat.timeline[-1]
        assert isinstance(ended, Marker)
        assert ended.name == "conversation_ended"
        assert ended.value == {"completed": False, "stop_reason": "escalated", "final_status": "callback_promised"}

    def test_events_have_a_timestamp_and_an_order(self, chat: Conversation) -> None:
        times = [event.time for event in chat.timeline]
        assert (times[0].at, times[-1].at) == (1771236000.0, 1771236029.0)
        assert all(chat.elapsed(earlier, later) >= 0 for earlier, later in pairwise(times))
        assert chat.elapsed(times[0], times[-1]) == chat.outcome.duration
        assert [event.seq for event in chat.timeline] == list(range(1, 43))

    def test_what_was_said(self, chat: Conversation) -> None:
        assert len(chat.turns) == 5
        assert chat.turns[1].user_text == "My rabbit Biscuit. It's her first time at a vet."
        assert chat.turns[4].assistant_text.endswith("a colleague will ring you within the hour.")


class TestSemanticBenchmark:
    """Seed semantic-benchmark.md and the schemas of the semantic specification."""

    @pytest.fixture
    def call(self) -> Conversation:
        return example("annotated-call")

    @pytest.fixture
    def gold(self, call: Conversation) -> Annotations:
        (gold,) = (a for a in call.annotations if a.origin == "gold")
        return gold

    @pytest.fixture
    def llm(self, call: Conversation) -> Annotations:
        return next(a for a in call.annotations if a.annotator == "llm")

    @pytest.fixture
    def keywords(self, call: Conversation) -> Annotations:
        return next(a for a in call.annotations if a.annotator == "keywords")

    def test_sample(self, call: Conversation) -> None:
        assert call.id == "OC-014"  # sample_id
        assert call.dimensions["dataset"] == "office-calls"
        assert call.dimensions["split"] == "test"
        assert call.source.files[1] == "goldens/OC-014_gold.json"

    def test_gold_header(self, gold: Annotations) -> None:
        assert gold.annotator == "human"
        assert gold.annotated_at == "2026-02-03T09:30:00Z"
        assert gold.extras["schema_version"] == 1

    def test_gold_topics(self, gold: Annotations) -> None:
        assert [(t.label, t.span, t.confidence, t.notes) for t in gold.topics or ()] == [
            ("billing", (1, 4), 1.0, "A month was invoiced twice"),
            ("renewal", (6, 7), 0.9, "The lease ends in March"),
        ]

    def test_gold_risks(self, gold: Annotations) -> None:
        assert [(r.type, r.severity, r.events, r.evidence) for r in gold.risks or ()] == [  # events: segment_ids
            ("escalation", "high", (3,), "Put me through to whoever runs this place"),
            ("churn_risk", "critical", (6,), "Why should we stay?"),
            ("competitor_mention", "low", (6,), "the Foundry next door is cheaper"),
            ("customer_frustration", "medium", (1, 3), "this is the third time I've called"),
        ]
        assert [r.notes for r in gold.risks or ()] == [
            "Asks for the person in charge",
            "",
            "",
            "Merged: same complaint in two segments",
        ]

    def test_gold_actions(self, gold: Annotations) -> None:
        assert [(a.description, a.assignee_role, a.events, a.verbatim) for a in gold.actions or ()] == [
            ("Refund the second October invoice", "agent", (4,), "I'll refund the second invoice today"),
            ("Send a renewal offer", "team", (7,), "I'll send you a renewal offer"),
            ("Send the bank statement", "customer", (8,), "I'll send over the bank statement"),
        ]

    def test_evidence_stands_in_the_segments_it_names(self, call: Conversation) -> None:
        for annotations in call.annotations:
            for finding in (*(annotations.risks or ()), *(annotations.actions or ())):
                quote = getattr(finding, "verbatim", "") or finding.evidence
                assert any(quote in call.text(said(call, seq)) for seq in finding.events)

    def test_predicted_header(self, llm: Annotations) -> None:
        assert llm.origin == "predicted"
        assert llm.model == "annotator-7b"
        assert llm.annotated_at == "2026-02-04T18:02:11Z"  # generated_at
        assert (llm.extras["version"], llm.extras["backend"]) == ("2.0.0", "local")
        assert (llm.extras["keywords"], llm.extras["risk_tags"]) == (["invoice", "lease"], ["escalation"])

    def test_predicted_findings(self, llm: Annotations) -> None:
        billing, complaint = llm.topics or ()
        assert (billing.label, billing.confidence, billing.span) == ("billing", 0.95, (1, 4))
        assert billing.evidence == "You charged us twice"
        assert billing.extras["chunk_ids"] == ["chunk_0"]
        assert (complaint.label, complaint.confidence, complaint.span) == ("complaint", 0.61, (1, 3))
        (risk,) = llm.risks or ()
        assert (risk.type, risk.severity, risk.confidence, risk.speaker) == ("escalation", "medium", 0.88, "spk_1")
        assert risk.events == (3,)
        assert risk.extras["recommended_action"] == "offer a call from the team lead"
        refund, offer = llm.actions or ()
        assert (refund.assignee, refund.due, refund.priority, refund.status) == ("spk_0", "today", "high", "pending")
        assert (refund.description, refund.confidence) == ("Refund the second invoice", 0.92)
        assert (offer.assignee, offer.assignee_role, offer.due) == ("spk_2", "team", "friday")
        assert (offer.description, offer.confidence, offer.events) == ("Send a renewal offer", 0.9, (7,))
        assert [(e.type, e.text, e.value) for e in llm.entities or ()] == [
            ("organization", "the Foundry", ""),
            ("date", "Friday", "2026-02-06"),
        ]

    def test_summaries(self, gold: Annotations, llm: Annotations) -> None:
        assert gold.summary is not None
        assert gold.summary.endswith("will send a renewal offer by Friday.")  # the reference
        assert llm.summary is not None
        assert llm.summary.startswith("The tenant complains about a double charge")

    def test_extraction_status(self, llm: Annotations, keywords: Annotations) -> None:
        assert llm.extraction == {"topics": "success", "risks": "partial", "actions": "success", "summary": "success"}
        assert keywords.extraction == {"topics": "skipped", "risks": "success", "actions": "success"}

    def test_not_annotated_is_not_nothing_found(self, gold: Annotations, keywords: Annotations) -> None:
        assert keywords.topics is None
        assert keywords.risks == ()
        assert keywords.summary is None
        assert gold.entities is None

    def test_keyword_form(self, keywords: Annotations) -> None:
        (action,) = keywords.actions or ()
        assert action.description == "I'll send over the bank statement with both charges."
        assert action.extras["pattern"] == r"\bI'll\b"
        assert (action.assignee, action.events) == ("spk_1", (8,))

    def test_human_labels_of_the_summary(self, call: Conversation) -> None:
        assert [(label.name, label.value, label.rater) for label in call.labels] == [
            ("faithfulness", 9, "rater-1"),
            ("coverage", 6, "rater-1"),
            ("clarity", 8.5, "rater-2"),
        ]
        for label in call.labels:
            assert (label.rater_kind, label.scale, label.policy) == ("human", "0-10", "summary-guide/2")
            assert (label.subject_kind, label.subject) == ("summary", "llm")
        assert call.labels[1].notes == "The refund is not mentioned"

    def test_transcript(self, call: Conversation) -> None:
        assert [(u.seq, u.id) for u in call.utterances] == [(n, str(n)) for n in range(10)]  # segment ids
        assert call.roles == {"spk_0": "assistant", "spk_1": "user", "spk_2": "supervisor"}
        assert {(u.spoken.source, u.spoken.language) for u in call.utterances} == {("transcripts/OC-014.json", "en")}
        talked = [(u.speaker, s.end - s.start) for u in call.utterances for s in u.segments]
        assert sum(length for speaker, length in talked if speaker == "spk_1") == pytest.approx(17.5)
        segment = said(call, 1)
        assert (segment.segments[0].start, segment.segments[0].end) == (3.0, 7.9)
        assert (segment.extras["speaker_confidence"], segment.extras["tone"]) == (0.97, "tense")
        assert segment.extras["words"][0]["probability"] == 0.98
        assert call.extras["transcript"] == {"schema_version": 2, "file": "OC-014.wav", "language": "en"}
        assert call.extras["chunks"][1]["segment_ids"] == [5, 6, 7, 8, 9]
        assert call.extras["speaker_stats"][0]["total_talk_time"] == 17.5


class TestDialogueEvaluation:
    """Seed dialogue-evaluation.md."""

    @pytest.fixture
    def dialogue(self) -> Conversation:
        return example("dialogue-state")

    @staticmethod
    def state(dialogue: Conversation, seq: int, service: str, origin: str = "gold") -> Frame:
        (frame,) = (f for f in dialogue.frames if (f.seq, f.service, f.origin) == (seq, service, origin))
        return frame

    @staticmethod
    def act_types(dialogue: Conversation, seq: int, origin: str) -> set[str]:
        frames = (f for f in dialogue.frames if (f.seq, f.origin) == (seq, origin))
        return {act.type for frame in frames for act in frame.acts or ()}

    def test_dialogue(self, dialogue: Conversation) -> None:
        assert dialogue.id == "BAY0042"  # dialogue_id
        assert dialogue.extras["services"] == ["restaurant", "hotel"]  # services
        assert [u.id for u in dialogue.utterances] == [str(n) for n in range(12)]  # turn_id
        assert dialogue.roles == {"USER": "user", "SYSTEM": "assistant"}
        assert (dialogue.dimensions["dataset"], dialogue.dimensions["split"]) == ("marrow-bay", "dev")
        assert dialogue.turns[0].user_text.startswith("I fancy basque food")  # utterance
        assert dialogue.turns[0].assistant_text.startswith("Txoko Marea is a moderate one")

    def test_active_intents(self, dialogue: Conversation) -> None:
        active = {
            (f.seq, f.service): f.intents for f in dialogue.frames if f.origin == "gold" and f.service and f.intents
        }
        assert active == {
            (0, "restaurant"): ("find_restaurant",),
            (0, "hotel"): ("find_hotel",),  # two services active at once
            (4, "restaurant"): ("find_restaurant", "book_restaurant"),  # two intents in one service
            (6, "restaurant"): ("book_restaurant",),
            (10, "hotel"): ("find_hotel",),
            (14, "hotel"): ("book_hotel",),
        }
        inactive = {(f.seq, f.service) for f in dialogue.frames if f.origin == "gold" and f.intents == ()}  # NONE
        assert inactive == {
            (4, "hotel"),
            (6, "hotel"),
            (10, "restaurant"),
            (14, "restaurant"),
            (18, "restaurant"),
            (18, "hotel"),
        }

    def test_predicted_domain_and_intent(self, dialogue: Conversation) -> None:
        predicted = [(f.seq, f.service, f.intents) for f in dialogue.frames if f.origin == "predicted" and f.intents]
        assert predicted == [
            (0, "restaurant", ("find_restaurant",)),
            (4, "restaurant", ("book_restaurant",)),
            (6, "restaurant", ("book_restaurant",)),
            (10, "hotel", ("find_hotel",)),
            (14, "hotel", ("book_hotel",)),
        ]
        assert {f.annotator for f in dialogue.frames if f.origin == "predicted" and f.service} == {"triage"}

    def test_slot_values_accumulate(self, dialogue: Conversation) -> None:
        early = self.state(dialogue, 0, "restaurant").slots
        late = self.state(dialogue, 6, "restaurant").slots
        assert self.state(dialogue, 4, "restaurant").slots == {k: v for k, v in late.items() if k != "booktime"}
        assert early == {"food": ("basque",), "area": ("harbour", "harbor"), "pricerange": ("dontcare",)}
        assert late == early | {
            "name": ("txoko marea", "marea"),
            "bookpeople": ("3",),
            "bookday": ("friday",),
            "booktime": ("19:30", "half past seven"),  # either is right
        }
        # memory outlives the switch to the other domain
        assert [self.state(dialogue, seq, "restaurant").slots for seq in (10, 14, 18)] == [late, late, late]
        assert [self.state(dialogue, seq, "hotel").slots for seq in (0, 4, 6)] == [{}, {}, {}]
        searched = {"area": ("harbour", "harbor"), "bookpeople": ("3",), "parking": ("yes",)}
        chosen = searched | {"name": ("gull house",), "bookday": ("saturday",)}
        assert [self.state(dialogue, seq, "hotel").slots for seq in (10, 14, 18)] == [searched, chosen, chosen]

    def test_predicted_slots(self, dialogue: Conversation) -> None:
        assert self.state(dialogue, 0, "restaurant", "predicted").slots == {"food": ("basque",), "area": ("harbour",)}
        booked = self.state(dialogue, 10, "restaurant", "predicted").slots
        assert self.state(dialogue, 6, "restaurant", "predicted").slots == booked
        assert self.state(dialogue, 14, "restaurant", "predicted").slots == booked
        assert self.state(dialogue, 4, "restaurant", "predicted").slots == {
            k: v for k, v in booked.items() if k != "booktime"
        }
        assert booked == {
            "food": ("basque",),
            "area": ("harbour",),
            "name": ("txoko marea",),
            "bookpeople": ("3",),
            "bookday": ("friday",),
            "booktime": ("19:30",),
        }
        gold = self.state(dialogue, 10, "hotel").slots
        predicted = self.state(dialogue, 10, "hotel", "predicted").slots
        assert set(predicted) - set(gold) == {"stars"}  # hallucinated
        assert set(gold) - set(predicted) == {"bookpeople"}  # missed
        assert predicted == {"area": ("harbour",), "parking": ("yes",), "stars": ("4",)}

    def test_requested_slots(self, dialogue: Conversation) -> None:
        assert self.state(dialogue, 4, "restaurant").requested == ("phone",)
        assert self.state(dialogue, 4, "restaurant", "predicted").requested == ("phone",)
        asked = {(f.seq, f.service): f.requested for f in dialogue.frames if f.origin == "gold" and f.service}
        assert [key for key, slots in asked.items() if slots != ()] == [(4, "restaurant")]
        assert self.state(dialogue, 6, "restaurant", "predicted").requested is None  # not said

    def test_acts_of_both_speakers(self, dialogue: Conversation) -> None:
        assert {seq: self.act_types(dialogue, seq, "gold") for seq in (0, 3, 4, 5, 9, 10, 13, 14, 17, 18, 19)} == {
            0: {"Restaurant-Inform", "Hotel-Inform"},
            3: {"Restaurant-Recommend", "Booking-Inform"},
            4: {"Restaurant-Inform", "Restaurant-Request"},
            5: {"Restaurant-Inform", "Booking-Request"},
            9: {"Booking-Book", "general-reqmore"},
            10: {"Hotel-Inform"},
            13: {"Hotel-Recommend"},
            14: {"Hotel-Inform"},
            17: {"Booking-Request"},
            18: {"general-thank"},
            19: {"general-bye"},
        }
        assert {seq: self.act_types(dialogue, seq, "predicted") for seq in (3, 5, 9, 13, 17)} == {
            3: {"Restaurant-Recommend"},
            5: {"Restaurant-Inform", "Booking-Request"},
            9: {"Booking-Book"},
            13: {"Hotel-Recommend"},
            17: {"Booking-Book"},
        }

    def test_act_slots(self, dialogue: Conversation) -> None:
        inform, hotel = self.state(dialogue, 0, "").acts or ()
        assert [(s.slot, s.value) for s in inform.slots] == [
            ("food", "basque"),
            ("area", "harbour"),
            ("pricerange", "dontcare"),
        ]
        assert hotel.slots == ()
        _, request = self.state(dialogue, 4, "").acts or ()
        assert [(s.slot, s.value) for s in request.slots] == [("phone", None)]
        phone, time = self.state(dialogue, 5, "", "predicted").acts or ()
        assert [(s.slot, s.value) for s in (*phone.slots, *time.slots)] == [("phone", "555 0142"), ("time", None)]

    def test_span_info(self, dialogue: Conversation) -> None:
        spans = [(frame.seq, span) for frame in dialogue.frames for span in frame.spans if not span.copied_from]
        assert [(seq, span.act, span.slot, span.value) for seq, span in spans] == [
            (0, "Restaurant-Inform", "food", "basque"),
            (0, "Restaurant-Inform", "area", "harbour"),
            (3, "Restaurant-Recommend", "name", "Txoko Marea"),
            (4, "Restaurant-Inform", "bookpeople", "3"),
            (4, "Restaurant-Inform", "bookday", "friday"),
            (9, "Booking-Book", "ref", "R7QK2"),
            (13, "Hotel-Recommend", "name", "Gull House"),
            (13, "Hotel-Recommend", "area", "harbour"),
            (14, "Hotel-Inform", "bookday", "saturday"),
        ]
        for seq, span in spans:
            assert dialogue.text(said(dialogue, seq))[span.start : span.end] == span.value

    def test_the_area_is_carried_over_to_the_other_domain(self, dialogue: Conversation) -> None:
        hotel = self.state(dialogue, 10, "hotel")
        assert [(span.slot, span.copied_from, span.value, span.start) for span in hotel.spans] == [
            ("area", "restaurant-area", "harbour", None),
            ("bookpeople", "restaurant-bookpeople", "3", None),
        ]
        assert hotel.slots["area"] == self.state(dialogue, 6, "restaurant").slots["area"]
        assert self.state(dialogue, 10, "hotel", "predicted").slots["area"] == ("harbour",)

    def test_policy(self, dialogue: Conversation) -> None:
        required = {"name", "bookday", "bookpeople", "bookstay"}
        assert required - set(self.state(dialogue, 14, "hotel", "predicted").slots) == {"bookstay"}
        # yet the booking was made, where the annotator would have asked
        booking = dialogue.tool_calls[-1]
        assert (booking.name, booking.arguments) == (
            "book_hotel",
            {"name": "gull house", "day": "saturday", "people": "3"},
        )
        assert dialogue.tool_results[booking.seq].result == {"reference": "H93ZD", "nights": 1}
        (gold,) = self.state(dialogue, 17, "").acts or ()
        assert [(s.slot, s.value) for s in gold.slots] == [("stay", None)]

    def test_what_the_system_says_of_its_own_action(self, dialogue: Conversation) -> None:
        own = [(f.seq, f.extras["action"], f.extras["policy_compliant"]) for f in dialogue.frames if f.extras]
        assert own == [
            (0, "search", True),
            (4, "request", False),
            (6, "book", True),
            (10, "search", True),
            (14, "book", False),
        ]
        assert self.state(dialogue, 4, "restaurant", "predicted").extras["policy_reason"] == "booktime is missing"
        assert self.state(dialogue, 14, "hotel", "predicted").extras["policy_reason"] == "bookstay is missing"

    def test_database_search(self, dialogue: Conversation) -> None:
        search = dialogue.tool_calls[0]
        assert (search.name, search.arguments) == ("search_restaurants", {"food": "basque", "area": "harbour"})
        found = dialogue.tool_results[search.seq].result
        assert [venue["name"] for venue in found] == ["txoko marea", "casa iria"]
        assert found[0]["phone"] == "555 0142"
        assert {c.name for c in dialogue.tool_calls} == {tool.name for tool in dialogue.agent.tools or ()}
        assert all(result.success for result in dialogue.tool_results.values())
        assert dialogue.tool_calls[2].arguments == {"area": "harbour", "parking": "yes"}
        assert dialogue.tool_results[11].result == [{"name": "gull house", "stars": "3"}]
        assert dialogue.tool_results[7].result == {"reference": "R7QK2"}

    def test_customer_goal(self, dialogue: Conversation) -> None:
        assert dialogue.scenario is not None
        goal = dialogue.scenario.goal
        assert goal["restaurant"]["book"] == {"day": "friday", "people": "3", "time": "19:30"}
        assert goal["restaurant"]["reqt"] == ["phone"]
        assert goal["hotel"]["book"] == {"day": "saturday", "people": "3", "stay": "2"}
        assert goal["restaurant"]["info"] == {"food": "basque", "area": "harbour"}
        assert goal["hotel"]["info"] == {"area": "harbour", "parking": "yes"}

    def test_a_score_of_a_judge_comes_as_an_external_label(self, dialogue: Conversation) -> None:
        assert [(label.subject, label.value, label.notes) for label in dialogue.labels] == [
            ("2", 4, "Correct and clear, one detail left out"),
            ("5", 2, "Booked without asking for the number of nights"),
        ]
        for label in dialogue.labels:
            assert (label.name, label.scale, label.subject_kind) == ("response_quality", "1-5", "turn")
            assert (label.rater, label.rater_kind, label.policy) == ("judge-large-1", "external", "rubric/1")
        assert dialogue.turns[4].id == 5  # the subject is a turn's id
        assert dialogue.turns[4].tool_calls == (dialogue.tool_calls[-1],)

    def test_an_order_without_clocks(self, dialogue: Conversation) -> None:
        assert dialogue.clocks == ()
        assert all(event.time is None for event in dialogue.timeline)
