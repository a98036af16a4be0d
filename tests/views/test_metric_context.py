"""`MetricContext` of conversations made by hand: what a metric receives, field by field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from convoscope.conversation import (
    Agent,
    AudioFile,
    Clock,
    Conversation,
    Database,
    Marker,
    Outcome,
    Participant,
    Scenario,
    Source,
    Text,
    Time,
    Tool,
    ToolCall,
    ToolResult,
    Track,
    Utterance,
)
from convoscope.conversation.databases import database_hash
from convoscope.views import MetricContext, PipelineType, metric_context
from support.calls import bot, caller, voice_call
from support.chats import UNPLACED, agent, chat, user


def call(name: str, arguments: Any = None) -> ToolCall:
    return ToolCall(seq=UNPLACED, name=name, arguments=arguments)


def result(answer: Any, name: str = "") -> ToolResult:
    return ToolResult(seq=UNPLACED, name=name, result=answer)


def trace(context: MetricContext) -> list[tuple[int, str, str]]:
    """Turn, who or which tool, and the words; a tool's are the type of its entry."""
    return [
        (entry["turn_id"], entry["role"] or entry["tool_name"], entry["content"] or entry["type"])
        for entry in context.conversation_trace
    ]


class TestAChat:
    """A chat has no sound and no recogniser; all else is there."""

    @pytest.fixture
    def context(self) -> MetricContext:
        return metric_context(
            chat(
                agent("Hello!"),
                user("Where is my parcel?"),
                call("find_parcel", {"id": 7}),
                result({"status": "success"}, name="find_parcel"),
                agent("At the depot."),
                user("Thanks."),
                pipeline="text",
            )
        )

    def test_texts_by_turn(self, context: MetricContext) -> None:
        assert context.intended_assistant_turns == {0: "Hello!", 1: "At the depot."}
        assert context.intended_user_turns == {1: "Where is my parcel?", 2: "Thanks."}
        assert context.transcribed_assistant_turns == {}
        assert context.transcribed_user_turns == {}
        assert (context.num_turns, context.num_assistant_turns, context.num_user_turns) == (3, 2, 2)

    def test_the_trace_has_what_was_typed(self, context: MetricContext) -> None:
        assert trace(context) == [
            (0, "assistant", "Hello!"),
            (1, "user", "Where is my parcel?"),
            (1, "find_parcel", "tool_call"),
            (1, "find_parcel", "tool_response"),
            (1, "assistant", "At the depot."),
            (2, "user", "Thanks."),
        ]
        assert {entry["type"] for entry in context.conversation_trace if entry["role"]} == {"intended"}

    def test_tools(self, context: MetricContext) -> None:
        assert context.tools_called == ["find_parcel"]
        assert context.tool_params == [{"tool_name": "find_parcel", "tool_parameters": {"id": 7}}]
        assert context.tool_responses == [{"tool_name": "find_parcel", "tool_response": {"status": "success"}}]
        assert context.num_tool_calls == 1

    def test_there_is_no_sound_and_no_pipeline(self, context: MetricContext) -> None:
        assert context.audio_timestamps_user_turns == {}
        assert context.audio_timestamps_assistant_turns == {}
        assert context.latency_assistant_turns == {}
        assert context.assistant_interrupted_turns == set()
        assert context.pipeline_type is None
        assert context.is_audio_native is False

    def test_what_nobody_says_is_none_or_empty(self, context: MetricContext) -> None:
        assert (context.conversation_finished, context.conversation_ended_reason) == (None, None)
        assert (context.user_goal, context.user_persona, context.current_date_time) == ({}, "", "")
        assert (context.initial_scenario_db, context.initial_scenario_db_hash) == (None, None)
        assert (context.output_dir, context.audio_mixed_path) == ("", None)
        assert context.duration_seconds is None
        assert context.agent_tools == []

    def test_it_is_plain_json(self, context: MetricContext) -> None:
        plain = context.to_dict()
        assert json.loads(json.dumps(plain)) == plain


class TestTheTrace:
    def test_consecutive_words_of_one_speaker_are_one_entry(self) -> None:
        context = metric_context(chat(user("Hello?"), user("Anybody?"), agent("Yes."), agent("I am here.")))
        assert trace(context) == [(1, "user", "Hello? Anybody?"), (1, "assistant", "Yes. I am here.")]

    def test_a_tool_parts_them(self) -> None:
        """One turn may hold several entries of one speaker."""
        events = (user("Look."), agent("One moment."), call("look", {}), result({}, name="look"), agent("Done."))
        assert trace(metric_context(chat(*events))) == [
            (1, "user", "Look."),
            (1, "assistant", "One moment."),
            (1, "look", "tool_call"),
            (1, "look", "tool_response"),
            (1, "assistant", "Done."),
        ]

    def test_a_result_without_a_name_has_the_name_of_its_call(self) -> None:
        context = metric_context(chat(user("Look."), call("look", {}), result("nothing")))
        assert context.tool_responses == [{"tool_name": "look", "tool_response": "nothing"}]

    @pytest.mark.parametrize(
        ("pipeline", "content", "kind"),
        [
            ("cascade", "I need a vent", "transcribed"),  # what the model read
            ("audio_llm", "I need a vet", "intended"),  # it heard the sound: what was meant
            ("s2s", "I need a vet", "intended"),
        ],
    )
    def test_the_users_words_are_as_the_model_received_them(self, pipeline: str, content: str, kind: str) -> None:
        context = metric_context(voice_call(caller("I need a vet", heard="I need a vent"), pipeline=pipeline))
        assert context.conversation_trace == [{"role": "user", "content": content, "type": kind, "turn_id": 1}]
        assert context.transcribed_user_turns == {1: "I need a vent"}
        assert context.intended_user_turns == {1: "I need a vet"}

    def test_where_nothing_was_transcribed_the_intended_words_stand_in(self) -> None:
        context = metric_context(voice_call(caller("Hello", heard="hello"), bot("Hi."), caller("Bye")))
        assert [entry["type"] for entry in context.conversation_trace] == ["transcribed", "intended", "intended"]
        assert context.transcribed_user_turns == {1: "hello"}
        assert context.backfilled_user_turns == {2}

    def test_where_only_the_caller_knows_what_the_agent_said_that_stands_in(self) -> None:
        heard = Utterance(seq=UNPLACED, speaker="agent", heard=Text("Hello there."))
        context = metric_context(voice_call(caller("Hello", heard="hello"), heard, pipeline="s2s"))
        assert context.conversation_trace[1:] == [
            {"role": "assistant", "content": "Hello there.", "type": "transcribed", "turn_id": 1}
        ]
        assert context.intended_assistant_turns == {}

    def test_but_a_greeting_counts_as_intended(self) -> None:
        greeting, more = (Utterance(seq=UNPLACED, speaker="agent", heard=Text(text)) for text in ("Hello.", "Yes?"))
        context = metric_context(voice_call(greeting, caller("Hello", heard="hello"), more))
        kinds = [(entry["role"], entry["type"]) for entry in context.conversation_trace]
        assert kinds == [("assistant", "intended"), ("user", "transcribed"), ("assistant", "transcribed")]
        assert context.intended_assistant_turns == {}

    def test_others_than_user_and_assistant_have_no_entry(self) -> None:
        people = (Participant("user", "user"), Participant("note", "system"))
        said = (Utterance(seq=0, speaker="note", intended=Text("be kind")), Utterance(seq=1, speaker="user"))
        assert metric_context(Conversation(id="c", participants=people, timeline=said)).conversation_trace == []

    def test_missing_keys_read_as_none_but_are_not_there(self) -> None:
        (entry,) = metric_context(chat(user("Hi."))).conversation_trace
        assert entry["tool_name"] is None
        assert entry.get("tool_name", "absent") == "absent"
        assert sorted(entry) == ["content", "role", "turn_id", "type"]


class TestSound:
    def test_intervals_count_from_the_first_moment_of_any_event(self) -> None:
        connected = Marker(seq=UNPLACED, name="connected", time=Time(100.0, "wall"))
        clocks = (Clock(id="wall", kind="wall", offset=0.0), Clock(id="audio", kind="audio", offset=40.0))
        context = metric_context(
            voice_call(
                connected, bot("Hello.", (60.5, 61.25)), caller("Hi.", (62.0, 62.5), (63.0, 64.0)), clocks=clocks
            )
        )
        # The clock of sounds is 40 s behind: 60.5 is 100.5, half a second after the start.
        assert context.audio_timestamps_assistant_turns == {0: [(0.5, 1.25)]}
        assert context.audio_timestamps_user_turns == {1: [(2.0, 2.5), (3.0, 4.0)]}

    def test_the_wait_is_from_the_users_last_sound_to_the_first_of_the_reply(self) -> None:
        context = metric_context(
            voice_call(caller("a", (0.0, 1.0), (2.0, 3.0)), bot("b", (4.5, 5.0), (6.0, 7.0)), caller("c", (8.0, 9.0)))
        )
        assert context.latency_assistant_turns == {1: 1.5}  # 4.5 - 3.0; turn 2 has no reply

    @pytest.mark.parametrize(
        ("start", "broke_in", "waits"),
        [
            (3.0, {1}, {}),  # a second before the user's end
            (3.9995, set(), {}),  # sounds that overlap by no more than a millisecond touch; there was no wait either
            (4.0, set(), {1: 0.0}),
            (4.3, set(), {1: 0.3}),
        ],
    )
    def test_the_agent_breaks_in_where_it_begins_inside_the_users_sound(
        self, start: float, broke_in: set[int], waits: dict[int, float]
    ) -> None:
        context = metric_context(voice_call(caller("a", (0.0, 4.0)), bot("b", (start, 6.0))))
        assert context.assistant_interrupted_turns == broke_in
        assert context.latency_assistant_turns == waits

    def test_the_user_breaks_in_with_the_turn_that_they_open(self) -> None:
        context = metric_context(
            voice_call(bot("Hello, how", (0.0, 4.0)), caller("Listen.", (3.0, 5.0)), bot("Yes?", (6.0, 7.0)))
        )
        assert context.user_interrupted_turns == {1}
        assert context.assistant_interrupted_turns == set()
        assert context.latency_assistant_turns == {1: 1.0}

    def test_without_sound_the_log_has_to_say_it(self) -> None:
        context = metric_context(
            voice_call(bot("Hello, how", cut_off_by="user"), caller("Listen.", cut_off_by="agent"), bot("Yes?"))
        )
        assert context.user_interrupted_turns == {1}
        assert context.assistant_interrupted_turns == {1}

    def test_a_nudge_is_a_turn_that_fell_back(self) -> None:
        context = metric_context(voice_call(caller("Um"), bot("Still there?", manner="fallback"), caller("Yes.")))
        assert context.fallback_turn_ids == {1}


class TestLoggedLatencies:
    def waits(self, *listed: Any) -> MetricContext:
        events = (caller("a", (0.0, 1.0)), bot("b", (2.0, 3.0)), caller("c", (4.0, 5.0)), bot("d", (6.5, 7.0)))
        return metric_context(voice_call(*events, extras={"response_latencies": list(listed)}))

    def test_what_the_log_lists_counts_one_for_each_reply(self) -> None:
        context = self.waits(1.04, 1.55)
        assert context.latency_assistant_turns == {1: 1.04, 2: 1.55}
        assert context.sound_latency_assistant_turns == {1: 1.0, 2: 1.5}

    @pytest.mark.parametrize("listed", [(), (1.04,), (1.04, 1.55, 9.0), (1.04, "late"), (1.04, None)])
    def test_a_list_that_cannot_be_matched_is_not_used(self, listed: tuple[Any, ...]) -> None:
        assert self.waits(*listed).latency_assistant_turns == {1: 1.0, 2: 1.5}


class TestTheScenario:
    BEFORE = {"visits": {"V1": "booked"}}
    AFTER = {"visits": {"V1": "cancelled"}}

    def context(self, **facts: Any) -> MetricContext:
        return metric_context(chat(user("Hi."), **facts))

    @pytest.mark.parametrize(
        ("goal", "told"),
        [
            ({"high_level_user_goal": "a visit", "decision_tree": {}}, None),
            ("a visit", {"high_level_user_goal": "a visit"}),
            (None, {}),
        ],
    )
    def test_the_goal(self, goal: Any, told: Any) -> None:
        assert self.context(scenario=Scenario(goal=goal)).user_goal == (goal if told is None else told)

    @pytest.mark.parametrize(
        ("persona", "told"),
        [({"name": "Imre", "user_persona": "calm"}, "calm"), ({"name": "Imre"}, "Imre"), ("calm", "calm"), (None, "")],
    )
    def test_the_persona(self, persona: Any, told: str) -> None:
        assert self.context(scenario=Scenario(persona=persona)).user_persona == told

    def test_databases_and_their_hashes(self) -> None:
        stored = "0" * 64
        scenario = Scenario(
            clock="2026-02-11 22:15 UTC",
            before=Database(self.BEFORE),
            after=Database(self.AFTER, stored, is_hash_wrong=True),
            expected=Database(self.AFTER),
        )
        context = self.context(scenario=scenario)
        assert context.initial_scenario_db == self.BEFORE
        assert context.initial_scenario_db_hash == database_hash(self.BEFORE)
        assert context.final_scenario_db_hash == stored  # what the log claims: that it is wrong can be seen
        assert context.final_scenario_db_hash != database_hash(context.final_scenario_db)
        assert context.expected_scenario_db == self.AFTER
        assert context.current_date_time == "2026-02-11 22:15 UTC"

    def test_a_hash_that_is_right_or_all_there_is_stays(self) -> None:
        scenario = Scenario(before=Database(self.BEFORE, "sha256:abc"), after=Database(None, "def"))
        context = self.context(scenario=scenario)
        assert (context.initial_scenario_db_hash, context.final_scenario_db_hash) == ("sha256:abc", "def")
        assert context.final_scenario_db is None

    def test_the_agent(self) -> None:
        schema = {"type": "object", "properties": {"day": {"type": "string"}}}
        tools = (Tool(name="find_slots", description="Free times.", arguments_schema=schema, extras={"id": "t1"}),)
        context = self.context(agent=Agent(role="desk", instructions="Be brief.", tools=tools, extras={"id": "wren"}))
        assert (context.agent_role, context.agent_instructions, context.agent_id) == ("desk", "Be brief.", "wren")
        assert context.agent_tools == [
            {"id": "t1", "name": "find_slots", "description": "Free times.", "parameters": schema}
        ]

    def test_the_record_is_the_scenario_where_one_is_told(self) -> None:
        assert self.context(id="V-3/trial_1", dimensions={"scenario_id": "V-3"}).record_id == "V-3"
        assert self.context(id="V-3").record_id == "V-3"

    def test_files(self) -> None:
        tracks = (
            Track(path="agent.wav", channels=("agent",)),
            Track(path="user.wav", channels=("user",)),
            Track(path="clean.wav", channels=("user",)),
            Track(path="both.wav", channels=("agent", "user")),
            Track(url="https://example.org/all.wav", channels=("agent", "user")),
        )
        context = self.context(source=Source(folder="/calls/V-3"), recording=AudioFile(tracks=tracks))
        assert context.output_dir == "/calls/V-3"
        assert context.audio_assistant_path == "/calls/V-3/agent.wav"
        assert context.audio_user_path == "/calls/V-3/user.wav"  # the first of a side
        assert context.audio_mixed_path == "/calls/V-3/both.wav"


class TestTheWhole:
    @pytest.mark.parametrize(
        ("reason", "finished"), [("goodbye", True), ("inactivity_timeout", False), ("transfer", False), ("", None)]
    )
    def test_it_is_finished_where_it_ended_with_a_goodbye(self, reason: str, finished: bool | None) -> None:
        context = metric_context(chat(user("Hi."), outcome=Outcome(ended_reason=reason, duration=4.0)))
        assert context.conversation_finished is finished
        assert context.conversation_ended_reason == (reason or None)
        assert context.duration_seconds == 4.0

    @pytest.mark.parametrize(
        ("pipeline", "kind", "native"),
        [
            ("cascade", PipelineType.CASCADE, False),
            ("audio_llm", PipelineType.AUDIO_LLM, True),
            ("s2s", PipelineType.S2S, True),
            ("text", None, False),
            (None, None, False),
        ],
    )
    def test_the_pipeline(self, pipeline: str | None, kind: PipelineType | None, native: bool) -> None:
        context = metric_context(voice_call(caller("Hi."), pipeline=pipeline))
        assert (context.pipeline_type, context.is_audio_native) == (kind, native)
        assert context.is_s2s is (pipeline == "s2s")

    def test_it_is_built_once(self) -> None:
        conversation = chat(user("Hi."))
        assert metric_context(conversation) is metric_context(conversation)

    def test_a_tool_that_is_called_twice_is_called_twice_and_known_once(self) -> None:
        context = metric_context(chat(user("Go."), call("Find", {"n": 1}), call("Find", {"n": 2})))
        assert context.tools_called == ["Find"]
        assert context.tool_called == ["find", "find"]
        assert context.num_tool_calls == 2
        assert [one["tool_parameters"] for one in context.tool_params] == [{"n": 1}, {"n": 2}]
