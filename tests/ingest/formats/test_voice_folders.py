"""What lies in a folder of voice calls: which files are read, by which names, and what belongs to which call.

The first half reads the run in `examples/voice-logs`, the second writes small folders of its own.
"""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from backports import zstd

import convoscope
from convoscope.conversation import ComponentMetric, Conversation
from convoscope.conversation.databases import database_hash
from convoscope.errors import NothingReadable
from convoscope.views import metric_context
from support.logs import EXAMPLES, read, write, write_json, write_lines
from support.voice_facts import Told, line, told

RUN = EXAMPLES / "voice-logs"


@pytest.fixture(scope="module")
def calls() -> dict[str, Conversation]:
    return {one.id: one for one in convoscope.read(RUN)}


@pytest.fixture(scope="module")
def notes() -> dict[str, list[str]]:
    """The codes of what reading did, by call."""
    return {one.conversation.id: [note.code for note in one.notes] for one in convoscope.read(RUN).with_notes()}


class TestTheRun:
    """Dataset, settings, trials and databases of `examples/voice-logs`."""

    def test_the_report_tells_what_each_folder_and_file_was_taken_for(self) -> None:
        report = read(RUN).report
        assert report.problems == []
        assert report.conversations == 26
        assert report.ignored == {"folder_left_out": 1}
        files = report.files
        assert files["records/normal_failed_attempt_1"].skipped == "an attempt that was set aside"
        assert files["dataset.jsonl"].why == "evaluation records, matched to calls by id"
        assert files["config.json"].why == "settings of a run of calls"
        assert files["records/equal-times"].why == "holds audit_log.json and user_simulator_events.jsonl"
        assert report.records_seen == report.records_used > 700

    def test_the_scenario_comes_from_the_dataset(self, calls: dict[str, Conversation]) -> None:
        context = metric_context(calls["move-appointment/trial_0"])
        assert context.record_id == "move-appointment"
        # Placeholders are filled in for the language of config.json.
        assert context.user_goal["high_level_user_goal"] == (
            "Your name is Imre Talvik. You want to move Bruno's check-up in Tarnholm to tomorrow afternoon."
        )
        assert context.user_goal["starting_utterance"] == (
            "Hello, I'd like to move Bruno's check-up to tomorrow afternoon."
        )
        assert context.user_goal["information_required"]["First name"] == "Imre"
        assert "No other appointment is changed." in context.user_goal["decision_tree"]["must_have_criteria"]
        assert context.user_persona == "Friendly, brief, a little tired."
        assert context.current_date_time == "2026-02-11 22:15 UTC"
        assert (context.language, context.language_display_name) == ("en", "English")
        assert calls["move-appointment/trial_0"].dimensions == {
            "scenario_id": "move-appointment",
            "trial": "0",
            "domain": "animal_clinic",
        }

    def test_the_agent_comes_from_the_dataset_and_its_models_from_the_settings(
        self, calls: dict[str, Conversation]
    ) -> None:
        agent = calls["tool-calls"].agent
        assert agent.role == "Night desk of an animal clinic"
        assert agent.instructions.startswith("You answer the night desk of Tarnholm Animal Clinic.")
        assert agent.models == {"llm": "llm-medium-2", "stt": "recogniser-1", "tts": "voice-1"}
        assert agent.tools is not None
        verify = agent.tools[0]
        assert (verify.name, verify.kind) == ("verify_owner", "auth")
        assert verify.arguments_schema == {
            "type": "object",
            "properties": {"owner_id": {"type": "string"}, "pin": {"type": "string"}},
            "required": ["owner_id", "pin"],
        }
        told = metric_context(calls["tool-calls"]).agent_tools[0]
        assert (told["name"], told["description"]) == ("verify_owner", "Check owner number and PIN.")
        assert told["parameters"] == verify.arguments_schema

    def test_two_of_three_trials_do_the_task(self, calls: dict[str, Conversation]) -> None:
        contexts = [metric_context(calls[f"move-appointment/trial_{number}"]) for number in range(3)]
        assert {one.record_id for one in contexts} == {"move-appointment"}
        assert all(one.final_scenario_db_hash == database_hash(one.final_scenario_db) for one in contexts)
        done = [database_hash(one.expected_scenario_db) == one.final_scenario_db_hash for one in contexts]
        assert done == [True, True, False]
        # The third moved the appointment too, and cancelled another.
        assert contexts[2].final_scenario_db is not None
        assert contexts[2].final_scenario_db["appointments"]["AP-902"]["status"] == "cancelled"

    def test_a_stored_hash_is_recomputed_and_a_wrong_one_is_said(
        self, calls: dict[str, Conversation], notes: dict[str, list[str]]
    ) -> None:
        scenario = calls["wrong-hash"].scenario
        assert scenario is not None
        assert scenario.before is not None
        assert scenario.after is not None
        assert (scenario.before.is_hash_wrong, scenario.after.is_hash_wrong) == (False, True)
        context = metric_context(calls["wrong-hash"])
        assert context.final_scenario_db_hash == scenario.after.hash != database_hash(context.final_scenario_db)
        assert notes["wrong-hash"] == ["database_hash_differs"]
        assert [code for name, codes in notes.items() if name != "wrong-hash" for code in codes].count(
            "database_hash_differs"
        ) == 0

    def test_what_lies_beside_the_logs(self, calls: dict[str, Conversation]) -> None:
        call = calls["tool-calls"]
        context = metric_context(call)
        folder = RUN / "records" / "tool-calls"
        assert context.output_dir == str(folder)
        assert context.audio_assistant_path == str(folder / "audio_assistant.wav")
        assert context.audio_user_path == str(folder / "audio_user.wav")
        assert context.audio_mixed_path == str(folder / "audio_mixed.wav")
        assert call.recording is not None
        assert [(track.sample_rate, track.duration) for track in call.recording.tracks] == [
            (8000, 0.5),
            (8000, 0.5),
            (8000, 0.25),
        ]
        assert call.extras["latencies"]["llm"]["mean_ms"] == 905.0
        parts = [(one.component, one.values) for one in call.timeline if isinstance(one, ComponentMetric)]
        assert parts == [
            ("llm", {"latency": 1.01}),  # llm_prompts of the audit log
            ("llm", {"latency": 0.8}),
            ("stt", {"ttfb": 0.31}),  # pipecat_metrics.jsonl; the zero at the start of a call is no figure
            ("tts", {"ttfb": 0.14}),
            ("model_response", {"latency": 0.92}),
            ("llm", {"output_tokens": 24.0, "reasoning_tokens": 0.0}),  # agent_perf_stats.csv
            ("llm", {"output_tokens": 31.0, "reasoning_tokens": 64.0}),
            ("llm", {"output_tokens": 40.0, "reasoning_tokens": 0.0}),
        ]
        assert metric_context(calls["normal"]).audio_user_path is None


# Small folders of this file's own: two exchanges, times in seconds, from the first sound on.

START = 1770848100


def audit_entry(at: float, kind: str, value: Any) -> dict[str, Any]:
    return {"value": value, "timestamp": str(round(1000 * (START + at))), "message_type": kind}


def sent(at: float, kind: str, text: str = "") -> dict[str, Any]:
    return {"type": kind, "data": {"frame": text or kind}, "timestamp": round(1000 * (START + at))}


def sound(at: float, kind: str, who: str) -> dict[str, Any]:
    return {"timestamp": round(1000 * (START + at)), "event_type": kind, "user": who, "audio_timestamp": START + at}


def speech(at: float, kind: str, text: str) -> dict[str, Any]:
    return {"timestamp": round(1000 * (START + at)), "type": kind, "data": {"text": text}}


AUDIT = {"transcript": [audit_entry(3.4, "user", "Are you open?"), audit_entry(3.9, "assistant", "Until six.")]}
FRAMEWORK = [
    sent(0.0, "turn_start"),
    sent(0.1, "tts_text", "Night desk."),
    sent(1.1, "turn_end"),
    sent(1.6, "turn_start"),
    sent(4.3, "tts_text", "Until six."),
    sent(5.4, "turn_end"),
]
CALLER = [
    sound(0.0, "audio_start", "assistant"),
    sound(1.0, "audio_end", "assistant"),
    speech(1.2, "assistant_speech", "Night desk."),
    sound(1.5, "audio_start", "simulated_user"),
    speech(1.8, "user_speech", "Are you open?"),
    sound(3.0, "audio_end", "simulated_user"),
    sound(4.2, "audio_start", "assistant"),
    sound(5.2, "audio_end", "assistant"),
    speech(5.4, "assistant_speech", "Until six."),
]
WHOLE = Told(
    ["0 assistant: Night desk.", "1 user: Are you open?", "1 assistant: Until six."],
    user={1: [(1.5, 3.0)]},
    agent={0: [(0.0, 1.0)], 1: [(4.2, 5.2)]},
    waits={1: 1.2},
)
RECORD = {"id": "desk", "user_goal": {"high_level_user_goal": "Ask <FIRST_NAME> in <LOC:Tarnholm>."}}


def write_call(
    folder: Path,
    *,
    names: tuple[str, str, str] = ("audit_log.json", "pipecat_logs.jsonl", "user_simulator_events.jsonl"),
    audit: Any = AUDIT,
    framework: list[dict[str, Any]] | None = FRAMEWORK,
    caller: list[dict[str, Any]] | None = CALLER,
    **result: Any,
) -> Path:
    if audit is not None:
        write_json(folder / names[0], audit)
    if framework is not None:
        write_lines(folder / names[1], *framework)
    if caller is not None:
        write_lines(folder / names[2], *caller)
    if result:
        write_json(folder / "result.json", {"record_id": folder.name, **result})
    return folder


class TestFiles:
    @pytest.mark.parametrize("framework", ["pipecat_events.jsonl", "pipecat_logs.jsonl", "framework_logs.jsonl"])
    @pytest.mark.parametrize("caller", ["elevenlabs_events.jsonl", "user_simulator_events.jsonl"])
    def test_logs_go_by_their_usual_names(self, tmp_path: Path, framework: str, caller: str) -> None:
        write_call(tmp_path / "desk", names=("audit_log.json", framework, caller))
        outcome = read(tmp_path)
        assert told(outcome.only) == WHOLE
        assert outcome.only.source.files == ("audit_log.json", framework, caller)

    def test_or_by_the_names_that_result_json_has_wherever_they_lay(self, tmp_path: Path) -> None:
        """Only the last part of a stored path counts: folders are moved, from one system to another too."""
        write_call(
            tmp_path / "desk",
            names=("a.json", "f.jsonl", "c.jsonl"),
            audit_log_path="C:\\out\\desk\\a.json",
            pipecat_logs_path="/gone/desk/f.jsonl",
            user_simulator_logs_path="c.jsonl",
        )
        assert told(read(tmp_path).only) == WHOLE

    def test_a_named_file_that_is_not_there_is_said_and_looked_for_by_its_usual_name(self, tmp_path: Path) -> None:
        write_call(tmp_path / "desk", audit_log_path="out/other.json")
        outcome = read(tmp_path)
        assert told(outcome.only) == WHOLE
        assert outcome.report.repaired["named_file_missing"].examples == ["desk audit_log_path: other.json"]

    def test_a_moved_folder_is_read_as_before(self, tmp_path: Path, calls: dict[str, Conversation]) -> None:
        shutil.copytree(RUN / "records" / "tool-calls", tmp_path / "elsewhere")
        moved = read(tmp_path).only
        assert moved.id == "tool-calls"  # by its result.json, not by the folder
        assert told(moved) == told(calls["tool-calls"])
        assert metric_context(moved).audio_user_path == str(tmp_path / "elsewhere" / "audio_user.wav")

    def test_packed_logs(self, tmp_path: Path) -> None:
        folder = write_call(tmp_path / "desk")
        for path in list(folder.iterdir()):
            write(path.with_name(f"{path.name}.gz"), gzip.compress(path.read_bytes()))
            path.unlink()
        assert told(read(tmp_path).only) == WHOLE

    def test_without_a_result_the_folder_gives_the_id_and_the_log_the_reason(self, tmp_path: Path) -> None:
        ended = {"state": "session_ended", "details": {"reason": "goodbye"}}
        hung_up = {"timestamp": 1000 * (START + 6), "type": "connection_state", "data": ended}
        write_call(tmp_path / "desk", caller=[*CALLER, hung_up])
        call = read(tmp_path).only
        context = metric_context(call)
        assert (call.id, context.record_id) == ("desk", "desk")
        assert (context.conversation_ended_reason, context.conversation_finished) == ("goodbye", True)
        assert context.duration_seconds == 6.0

    @pytest.mark.parametrize("missing", ["audit", "framework", "caller"])
    def test_one_log_may_be_missing(self, tmp_path: Path, missing: str) -> None:
        logs: dict[str, Any] = {missing: None}
        write_call(tmp_path / "desk", **logs)
        outcome = read(tmp_path)
        trace = [line(entry) for entry in metric_context(outcome.only).conversation_trace]
        # Without the recogniser's words the caller's own stand in, and the star says so.
        asked = "1 user*: Are you open?" if missing == "audit" else "1 user: Are you open?"
        # A greeting counts as intended, though only the caller tells of it.
        assert trace == ["0 assistant: Night desk.", asked, "1 assistant: Until six."]
        (said,) = outcome.report.repaired["log_missing"].examples
        assert said.startswith(f"desk {missing}: ")

    def test_a_folder_with_nothing_readable_is_a_problem_and_the_rest_goes_on(self, tmp_path: Path) -> None:
        write_call(tmp_path / "good")
        for name in ("audit_log.json", "user_simulator_events.jsonl"):
            write(tmp_path / "bad" / name, "")
        outcome = read(tmp_path)
        assert outcome.ids == ["good"]
        assert str(outcome.problem) == (
            "bad: none of its logs holds a record (a call needs one readable log of the three)"
        )
        with pytest.raises(NothingReadable, match="none of its logs holds a record"):
            read(tmp_path / "bad")

    @pytest.mark.parametrize("suffix", ["attempt_2", "failed_attempt_1", "extra_1", "unvalidated_3"])
    def test_attempts_that_were_set_aside_are_left_out(self, tmp_path: Path, suffix: str) -> None:
        write_call(tmp_path / "desk")
        write_call(tmp_path / f"desk_{suffix}")
        outcome = read(tmp_path)
        assert outcome.ids == ["desk"]
        assert outcome.report.files[f"desk_{suffix}"].skipped == "an attempt that was set aside"
        assert outcome.report.ignored == {"folder_left_out": 1}
        # One that is named itself is meant to be read.
        assert read(tmp_path / f"desk_{suffix}").ids == [f"desk_{suffix}"]

    def test_one_log_by_itself_is_no_call_and_the_error_says_what_to_give(self, tmp_path: Path) -> None:
        folder = write_call(tmp_path / "desk")
        with pytest.raises(NothingReadable, match="is one log of a call: give the folder that holds it"):
            read(folder / "user_simulator_events.jsonl")

    def test_trials_lie_below_their_record(self, tmp_path: Path) -> None:
        for number in (0, 1):
            write_call(tmp_path / "desk" / f"trial_{number}", caller=CALLER)
        outcome = read(tmp_path)
        assert outcome.ids == ["desk/trial_0", "desk/trial_1"]
        assert [one.dimensions["trial"] for one in outcome.conversations] == ["0", "1"]
        assert {one.dimensions["scenario_id"] for one in outcome.conversations} == {"desk"}


class TestDatasets:
    @pytest.mark.parametrize("name", ["dataset.jsonl", "clinic_dataset.json"])
    def test_a_record_is_matched_by_its_id(self, tmp_path: Path, name: str) -> None:
        write_call(tmp_path / "records" / "desk")
        records = [{**RECORD, "id": "another"}, {**RECORD, "culture_overrides": {"en": {"first_name": "Imre"}}}]
        path = tmp_path / name
        write_lines(path, *records) if name.endswith("l") else write_json(path, records)
        context = metric_context(read(tmp_path).only)
        assert context.user_goal == {"high_level_user_goal": "Ask Imre in Tarnholm."}
        # A dataset may lie somewhere else and be named too.
        assert metric_context(read(tmp_path / "records", path).only).user_goal == context.user_goal

    def test_names_are_those_of_the_language_of_the_run(self, tmp_path: Path) -> None:
        write_call(tmp_path / "records" / "desk")
        names = {"en": {"first_name": "Imre"}, "fr": {"first_name": "Maël", "companion": {"first_name": "Zoé"}}}
        goal = {"a": "<FIRST_NAME>, <FIRST_NAME_ROMANIZED>", "b": "<COMPANION_FIRST_NAME> <UNKNOWN>"}
        record = {**RECORD, "user_goal": goal, "culture_overrides": names}
        record["romanized_culture_overrides"] = {"fr": {"first_name": "Mael"}}
        record["ground_truth"] = {"expected_scenario_db": {"owners": {"<FIRST_NAME>": 1}}}
        write_json(tmp_path / "dataset.json", [record])
        write_json(tmp_path / "config.json", {"domain": "clinic", "language": "fr", "model": {}})
        context = metric_context(read(tmp_path).only)
        # What nobody resolves is left as it stands.
        assert context.user_goal == {"a": "Maël, mael", "b": "Zoé <UNKNOWN>"}
        assert context.expected_scenario_db == {"owners": {"Maël": 1}}

    def test_a_call_that_is_given_by_itself_finds_those_of_its_run(self, tmp_path: Path) -> None:
        write_call(tmp_path / "records" / "desk" / "trial_0")
        write_json(tmp_path / "dataset.json", [RECORD])
        write_json(tmp_path / "config.json", {"domain": "clinic", "model": {}})
        outcome = read(tmp_path / "records" / "desk" / "trial_0")
        assert metric_context(outcome.only).user_goal == {"high_level_user_goal": "Ask <FIRST_NAME> in Tarnholm."}
        assert outcome.only.dimensions["domain"] == "clinic"

    def test_a_call_without_a_record_is_said(self, tmp_path: Path) -> None:
        write_call(tmp_path / "records" / "desk")
        write_json(tmp_path / "dataset.json", [{**RECORD, "id": "another"}])
        outcome = read(tmp_path)
        assert metric_context(outcome.only).user_goal == {}
        assert outcome.report.repaired["record_not_in_dataset"].examples == ["records/desk desk"]

    def test_without_a_dataset_the_instructions_are_those_of_the_prompt(self, tmp_path: Path) -> None:
        prompt = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Are you open?"}]
        write_call(tmp_path / "desk", audit={**AUDIT, "llm_prompts": [{"prompt": prompt, "model": "m"}]})
        assert metric_context(read(tmp_path).only).agent_instructions == "Be brief."


class TestEndings:
    @pytest.mark.parametrize(
        ("reason", "finished"),
        [
            ("goodbye", True),
            ("inactivity_timeout", False),
            ("time_limit_exceeded", False),
            ("timeout", False),
            ("transfer", False),
            ("error", False),
            ("cancelled", False),
            ("unknown", False),
            (None, None),
        ],
    )
    def test_why_it_ended(self, tmp_path: Path, reason: str | None, finished: bool | None) -> None:
        write_call(tmp_path / "desk", conversation_ended_reason=reason, duration_seconds=6.5)
        context = metric_context(read(tmp_path).only)
        assert (context.conversation_ended_reason, context.conversation_finished) == (reason, finished)
        assert context.duration_seconds == 6.5

    def test_a_broken_integration_is_an_error_of_the_conversation(self, tmp_path: Path) -> None:
        write_call(tmp_path / "desk", error="the voice service went away", conversation_ended_reason="error")
        assert read(tmp_path).only.outcome.error == "the voice service went away"


class TestPipelines:
    @pytest.mark.parametrize(
        ("settings", "pipeline"),
        [
            ({"pipeline_type": "cascade"}, "cascade"),
            ({"pipeline_type": "audio-llm"}, "audio_llm"),
            ({"pipeline_type": "S2S"}, "s2s"),
            ({"model": {"llm": "m", "stt": "r", "tts": "v"}}, "cascade"),
            ({"model": {"audio_llm": "m", "tts": "v"}}, "audio_llm"),
            ({"model": {"s2s": "m"}}, "s2s"),
            ({"model": {"realtime_model": "m"}}, "s2s"),
        ],
    )
    def test_the_settings_tell_it(self, tmp_path: Path, settings: dict[str, Any], pipeline: str) -> None:
        write_call(tmp_path / "records" / "desk")
        write_json(tmp_path / "config.json", {"domain": "clinic", "model": {}, **settings})
        outcome = read(tmp_path)
        assert outcome.only.pipeline == pipeline
        assert not any(code.startswith("pipeline_") for code in outcome.report.inferred)

    def test_sound_in_the_place_of_words_tells_it(self, tmp_path: Path) -> None:
        entries = [audit_entry(3.4, "user", "[user audio]"), audit_entry(3.9, "assistant", "Until six.")]
        write_call(tmp_path / "desk", audit={"transcript": entries})
        outcome = read(tmp_path)
        assert outcome.only.pipeline == "audio_llm"
        assert outcome.report.inferred["pipeline_audio_llm"].examples == [
            "desk the audit log holds the user's sound in place of words"
        ]

    @pytest.mark.parametrize("told_by", ["result", "greeting"])
    def test_no_framework_tells_speech_to_speech(self, tmp_path: Path, told_by: str) -> None:
        entries = [
            audit_entry(0.0, "assistant", "Night desk."),
            audit_entry(1.6, "user", "Are you open?"),
            audit_entry(4.2, "assistant", "Until six."),
        ]
        result = {"pipecat_logs_path": None, "num_turns": 1} if told_by == "result" else {}
        write_call(tmp_path / "desk", audit={"transcript": entries}, framework=None, **result)
        outcome = read(tmp_path)
        assert outcome.only.pipeline == "s2s"
        assert "pipeline_s2s" in outcome.report.inferred
        assert metric_context(outcome.only).is_audio_native


class TestRunsAndPacks:
    """What folders of calls look like once people have moved, packed, repeated and cut them."""

    def test_settings_may_name_the_model_alone(self, tmp_path: Path) -> None:
        write_call(tmp_path / "records" / "desk")
        write_json(tmp_path / "config.json", {"domain": "clinic", "model": "llm-1"})
        assert read(tmp_path).only.agent.models == {"llm": "llm-1"}

    def test_settings_belong_to_the_run_that_they_lie_in(self, tmp_path: Path) -> None:
        for run, pipeline in (("first", "cascade"), ("second", "s2s")):
            write_call(tmp_path / run / "records" / "desk")
            write_json(tmp_path / run / "config.json", {"domain": run, "pipeline_type": pipeline, "model": {}})
        found = [(one.dimensions["domain"], one.pipeline) for one in read(tmp_path).conversations]
        assert found == [("first", "cascade"), ("second", "s2s")]

    def test_a_cut_line_costs_one_record_of_the_dataset(self, tmp_path: Path) -> None:
        write_call(tmp_path / "records" / "desk")
        write(tmp_path / "dataset.jsonl", f'{json.dumps(RECORD)}\n{{"id": "cut", "user_goal"')
        assert metric_context(read(tmp_path).only).user_goal == {
            "high_level_user_goal": "Ask <FIRST_NAME> in Tarnholm."  # nobody says who
        }

    @pytest.mark.parametrize("ending", [".gz", ".zst", ".zstd"])
    def test_everything_may_be_packed(self, tmp_path: Path, ending: str) -> None:
        folder = write_call(tmp_path / "elsewhere", conversation_ended_reason="goodbye")
        write_json(folder / "result.json", {"record_id": "desk", "conversation_ended_reason": "goodbye"})
        write(folder / "agent_perf_stats.csv", "output_tokens,reasoning_tokens\n24,0\n")
        pack(folder, ending)
        call = read(tmp_path).only
        assert told(call) == WHOLE
        assert (call.id, call.outcome.ended_reason) == ("desk", "goodbye")
        assert [one.values["output_tokens"] for one in call.timeline if isinstance(one, ComponentMetric)] == [24.0]

    def test_packed_attempts_that_were_set_aside_are_left_out(self, tmp_path: Path) -> None:
        write_call(tmp_path / "desk")
        pack(write_call(tmp_path / "desk_failed_attempt_1"), ".gz")
        assert read(tmp_path).ids == ["desk"]

    def test_so_are_those_that_hold_trials(self, tmp_path: Path) -> None:
        write_call(tmp_path / "desk" / "trial_0")
        write_call(tmp_path / "desk_failed_attempt_1" / "trial_0")
        assert read(tmp_path).ids == ["desk/trial_0"]

    def test_a_folder_that_is_only_called_so_is_read(self, tmp_path: Path) -> None:
        write_call(tmp_path / "runs_attempt_2" / "desk")
        assert read(tmp_path).ids == ["desk"]

    def test_an_empty_log_is_not_a_missing_one(self, tmp_path: Path) -> None:
        write(write_call(tmp_path / "desk") / "pipecat_logs.jsonl", "")
        repaired = read(tmp_path).report.repaired
        assert "log_missing" not in repaired
        assert repaired["log_empty"].count == 1

    def test_a_result_of_another_shape_is_said(self, tmp_path: Path) -> None:
        write_json(write_call(tmp_path / "desk") / "result.json", [1])
        outcome = read(tmp_path)
        assert told(outcome.only) == WHOLE
        assert outcome.report.repaired["file_left_out"].examples == ["desk result.json: holds no object"]

    def test_a_tool_keeps_its_kind_in_the_context(self) -> None:
        call = read(RUN / "records" / "tool-calls", RUN / "dataset.jsonl").only
        assert metric_context(call).agent_tools[0]["tool_type"] == "auth"


def pack(folder: Path, ending: str) -> None:
    """Every file of a folder, compressed in its place."""
    compress = gzip.compress if ending == ".gz" else zstd.compress
    for path in list(folder.iterdir()):
        write(path.with_name(path.name + ending), compress(path.read_bytes()))
        path.unlink()


class TestTheRuleEva:
    def test_a_chat_has_no_logs_to_count_by_and_is_cut_into_exchanges(self) -> None:
        (chat,) = convoscope.read(EXAMPLES / "openai-chat" / "single.json", turns="eva")
        assert chat.turn_rule == "eva/1"
        assert len(chat.turns) == 2
        context = metric_context(chat)
        assert context.num_turns == 2
        assert [entry["role"] for entry in context.conversation_trace].count("user") == 2

    def test_an_end_that_is_missing_is_no_interruption(self) -> None:
        (call,) = convoscope.read(RUN / "records" / "damaged-logs", turns="eva")
        assert metric_context(call).user_interrupted_turns == set()
