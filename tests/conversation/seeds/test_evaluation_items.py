"""The model holds everything that the seed standard-data.txt names."""

import pytest

from convoscope.conversation import ComponentMetric, Conversation, Item, Outcome, Retrieval
from support.seed_examples import example, figures, said


@pytest.fixture
def call() -> Conversation:
    return example("evaluation-items")


@pytest.fixture
def tariff(call: Conversation) -> Item:
    return call.items[0]


@pytest.fixture
def reading(call: Conversation) -> Item:
    return call.items[1]


def test_identifiers(call: Conversation) -> None:
    assert call.dimensions["user_id"] == "cust-8830"
    assert call.dimensions["task_id"] == "run-77"
    assert [item.id for item in call.items] == ["span-a1", "span-a2"]  # turn_id
    assert [item.extras["source_trace_id"] for item in call.items] == ["trace-5521-a", "trace-5521-b"]


def test_question_and_answer(call: Conversation, tariff: Item, reading: Item) -> None:
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


def test_agent(call: Conversation, reading: Item) -> None:
    assert call.agent.name == "sunny-desk"  # agent_name
    assert call.agent.role == "customer support agent of a solar power cooperative"  # agent_role
    assert call.agent.instructions.endswith("Read a meter value back once.")  # system_prompt
    assert [step["status"] for step in reading.extras["trace"]] == ["ok", "error", "ok"]  # trace
    assert reading.extras["trace"][0]["goal"] == "store the reading"


def test_each_item_says_how_it_ended(call: Conversation, tariff: Item, reading: Item) -> None:
    # The seed tells it of an item: the agent stays on the line after the first, and leaves after the second.
    assert (reading.outcome.final_status, reading.outcome.finished) == ("success", True)  # exit_status, agent_exit
    assert (tariff.outcome.final_status, tariff.outcome.finished) == ("", False)
    assert call.outcome == Outcome()  # and nothing of the conversation


def test_tools_available(call: Conversation) -> None:
    lookup, submit = call.agent.tools or ()
    assert (lookup.name, lookup.description) == ("lookup_member", "Find a member by number.")
    assert submit.arguments_schema["properties"]["kwh"] == {"type": "integer"}  # args_schema
    assert submit.arguments_schema["required"] == ["meter", "kwh"]
    assert (submit.name, submit.description) == ("submit_reading", "Store a meter reading.")
    assert lookup.result_schema["properties"] == {"meter": {"type": "string"}}  # return_schema
    assert submit.result_schema["properties"] == {"stored": {"type": "boolean"}}


def test_tool_calls(call: Conversation, reading: Item) -> None:
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


def test_no_expected_call_is_not_an_expected_absence(tariff: Item) -> None:
    assert tariff.expected.tool_calls is None


def test_retrieval(call: Conversation, tariff: Item) -> None:
    found = [e for e in call.timeline if isinstance(e, Retrieval)]
    assert [e.query for e in found] == ["feed-in tariff household", "tariff for fed-in power 2026"]
    assert [list(e.chunks) for e in found] == [  # retrieved_context: outer list queries, inner list neighbours
        ["Households are paid 8.2 cents per kilowatt hour in 2026.", "Payments are made every quarter."],
        ["Businesses are paid 6.9 cents per kilowatt hour in 2026."],
    ]
    assert all(tariff.asked < e.seq < tariff.answered for e in found)


def test_conversation_context(call: Conversation) -> None:
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


def test_one_turn_of_the_conversation(call: Conversation, tariff: Item, reading: Item) -> None:
    answer = said(call, tariff.answered)
    assert call.roles[answer.speaker] == "assistant"  # speaker
    assert call.text(answer) == "As a household you get 8.2 cents per kilowatt hour this year."  # message
    assert call.utterances.index(answer) == 3  # turn_position
    assert tariff.extras["context"] == {"tariff_year": 2026, "member_type": "household"}  # context: dict
    assert reading.extras["context"] == "the reading must be higher than last year's 36870"  # context: str


def test_format_validation(tariff: Item) -> None:
    assert tariff.expected.format == "one sentence with the price in cents"  # expected_format
    assert tariff.extras["extracted_content"] == "8.2 cents"  # extracted_content


def test_stt_data_per_turn(call: Conversation) -> None:
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


def test_tts_data_per_turn(call: Conversation) -> None:
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


def test_raw_complete_audio(call: Conversation) -> None:
    assert call.recording is not None
    (track,) = call.recording.tracks
    assert track.duration == 34.5  # audio_duration
    assert track.sample_rate == 48000
    assert len(track.channels) == 2  # channels
    assert track.channels == ("user", "assistant")
    assert track.format == "ogg"
    assert track.url == "https://audio.example/5521/full.ogg"  # audio_url
    assert call.recording.transcript.startswith("Assistant: Lindenhof Solar,")  # complete_transcript
    assert track.id == "5b0d6c1e-aud"  # audio_uuid
    assert call.recording.extras["timeline"] == {  # timeline
        "user": [[4.2, 6.6], [13.0, 15.2], [19.5, 22.1], [30.5, 31.6]],
        "assistant": [[1.0, 3.4], [8.3, 11.9], [16.0, 18.2], [25.5, 29.6], [32.0, 33.4]],
    }


def test_latency_of_the_session(call: Conversation) -> None:
    assert call.extras["latency"] == {"e2e_mean_ms": 1850.0, "llm_ttft_p95_ms": 515.0, "unit": "ms"}


def test_metrics_collected(call: Conversation) -> None:
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


def test_metrics_of_a_turn_share_its_label_and_speech(call: Conversation) -> None:
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


def test_metadata(tariff: Item, reading: Item) -> None:
    assert tariff.extras["metadata"] == {"environment": "production", "tags": ["tariff"]}
    assert reading.extras["metadata"]["tags"] == ["meter", "retry"]
