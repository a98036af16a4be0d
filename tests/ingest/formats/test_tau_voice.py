"""τ-voice: experiments of simulations, tick by tick."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import Conversation, Marker, ToolCall, ToolResult, Utterance
from convoscope.errors import InputError, NothingReadable
from convoscope.ingest.formats.tau_voice import READER, experiment_of
from convoscope.ingest.reader import Record, RecordGroup, Sample
from convoscope.ingest.report import Notes
from support.duplex import COUGH, PHRASE, Laid, chunk, conversation, experiment, simulation, speech
from support.logs import EXAMPLES, read, write, write_json


def build(value: Any, path: Path = Path("results.json")) -> tuple[list[Conversation], Notes]:
    """What the reader makes of a value, without the machinery around it."""
    notes = Notes()
    return list(READER.build(RecordGroup("log", path, (Record(value),)), notes)), notes


def taken(notes: Notes) -> list[tuple[str, str, str]]:
    return [(note.kind, note.code, note.detail) for note in notes.taken]


def folder(path: Path, *simulations: Any, tick: Any = 0.2) -> Path:
    """An experiment with a file for each simulation."""
    whole = experiment(tick=tick)
    write_json(path / "results.json", {**whole, "simulations": None, "tasks": []})
    for one in simulations:
        write_json(path / "simulations" / f"{one['id']}.json", one)
    return path


def spoken(conversation: Conversation) -> list[tuple[str, float, float, str]]:
    return [(one.speaker, one.segments[0].start, one.segments[0].end, one.manner) for one in conversation.utterances]


ODD: tuple[Any, ...] = (None, True, 0, -1, 1e308, 10**400, "", "x", "\x00", [], [None], ["x"], {}, {"a": []}, [{}])
INSERTS = ({"speech_insert": odd} for odd in (*ODD, {"type": [], "text": {}}, {"text": 5}))


class TestWhatBecomesOfTicks:
    def test_each_run_of_speech_is_an_utterance_in_the_order_of_starts(self) -> None:
        call = conversation("##...##...", "...####...")
        assert spoken(call) == [
            ("user", 0.0, 0.4, ""),
            ("assistant", 0.6, 1.4, ""),
            ("user", 1.0, 1.4, ""),
        ]

    def test_a_null_chunk_is_silence_and_no_repair(self) -> None:
        """The format allows it; it was told as `chunk_not_an_object`, 0 times."""
        one = simulation("#...", "..#.")
        for tick in one["ticks"]:
            for name in ("user_chunk", "agent_chunk"):
                if not tick[name]["contains_speech"]:
                    tick[name] = None
        (call,), notes = build(one)
        assert spoken(call) == [("user", 0.0, 0.2, ""), ("assistant", 0.4, 0.6, "")]
        assert [note for note in taken(notes) if note[0] == "repaired"] == []

    def test_a_stop_mark_is_not_said(self) -> None:
        one = simulation("#..#", "..#.")
        one["ticks"][0]["user_chunk"]["content"] = "Bye. ###STOP###"
        one["ticks"][3]["user_chunk"]["content"] = "###STOP###"
        (call,), _ = build(one)
        assert [call.text(utterance) for utterance in call.utterances][:1] == ["Bye."]
        assert len(call.utterances) == 2
        assert [mark.value for mark in call.timeline if isinstance(mark, Marker)][:2] == ["###STOP###"] * 2

    def test_the_clock_ticks(self) -> None:
        (clock,) = conversation("#.", "..", tick=0.1).clocks
        assert (clock.id, clock.kind, clock.resolution) == ("tick", "audio", 0.1)

    def test_a_backchannel_is_told_by_its_first_tick(self) -> None:
        call = conversation("##.##.", "......", {0: "backchannel", 1: "keep_talking", 4: "backchannel"})
        assert [one.manner for one in call.utterances] == ["backchannel", ""]

    def test_inserts_are_markers_with_their_place(self) -> None:
        laid = [Laid(1, COUGH), Laid(2, COUGH), Laid(4, PHRASE, "speech_effects")]
        markers = [event for event in conversation("......", "......", inserts=laid).timeline if type(event) is Marker]
        assert [(one.name, one.time and (one.time.at, one.time.until), one.value) for one in markers] == [
            ("speech_insert", (0.2, 0.6), {"type": COUGH[0], "text": COUGH[1], "place": "source_effects"}),
            ("speech_insert", (0.8, 1.0), {"type": PHRASE[0], "text": PHRASE[1], "place": "speech_effects"}),
            ("recording_ended", (1.2, None), None),
        ]

    def test_the_closing_tick_stays(self) -> None:
        call = conversation("##...#", "...##.")
        assert spoken(call)[-1] == ("user", 1.0, 1.2, "")
        assert call.outcome.duration == 1.2

    def test_words_are_put_together(self) -> None:
        one = simulation("##....", "..###.")
        for tick, text in ((0, "Do you "), (1, "have a room?")):
            one["ticks"][tick]["user_chunk"]["content"] = text
        one["ticks"][1]["agent_chunk"]["content"] = "We "  # ahead of its sound
        one["ticks"][3]["agent_chunk"]["content"] = "do."
        (call,), notes = build(experiment(one))
        user, agent = call.utterances
        assert (user.intended and user.intended.text, user.spoken) == ("Do you have a room?", None)
        assert (agent.spoken and agent.spoken.text, agent.intended) == ("We do.", None)
        assert ("repaired", "words_in_a_silent_tick", "1 times") in taken(notes)

    def test_tools_stand_at_their_tick(self) -> None:
        one = simulation("##......", ".....##.")
        call = {"id": "c1", "name": "find_room", "arguments": {"beds": 2}, "requestor": "assistant"}
        one["ticks"][2]["agent_tool_calls"] = [call]
        one["ticks"][2]["agent_chunk"]["tool_calls"] = [call]
        one["ticks"][3]["agent_tool_results"] = [{"id": "c1", "role": "tool", "content": "none left", "error": True}]
        one["ticks"][4]["user_tool_calls"] = [{"id": "u1", "name": "look_at_phone"}]
        (built,), _ = build(experiment(one))
        called, answered, looked = built.timeline[1:4]
        assert isinstance(called, ToolCall)
        assert isinstance(answered, ToolResult)
        assert isinstance(looked, Marker)
        assert (called.name, called.arguments, called.time and called.time.at) == ("find_room", {"beds": 2}, 0.4)
        assert (answered.success, answered.error, answered.call_id) == (False, "none left", "c1")
        assert looked.name == "user_tool_call"
        assert len(built.tool_calls) == 1

    def test_noise_and_muffling_are_kept_as_what_they_are(self) -> None:
        one = simulation("##..", "....")
        one["ticks"][0]["user_chunk"]["speech_effects"] = {"dynamic_muffling_enabled": True, "speech_insert": None}
        one["ticks"][3]["user_chunk"]["source_effects"] = {"burst_noise_file": "/disk/of/somebody/horn.wav"}
        (call,), _ = build(experiment(one))
        assert call.utterances[0].extras == {"dynamic_muffling": True}
        noise = call.timeline[1]
        assert isinstance(noise, Marker)
        assert (noise.name, noise.value) == ("burst_noise", {"file": "horn.wav"})


class TestWhatIsToldBesideTheTicks:
    def test_id_dimensions_and_end(self) -> None:
        facts = {"id": "s-1", "task_id": 40, "trial": 2, "termination_reason": "user_stop", "duration": 99.5, "seed": 7}
        info = {
            "audio_native_config": {"tick_duration_seconds": 0.2, "model": "voice-1"},
            "agent_info": {"implementation": "desk", "llm": "vendor:voice-1"},
            "environment_info": {"domain_name": "hotel", "policy": "Be kind.", "tool_defs": [{"name": "find_room"}]},
            "speech_complexity": "regular",
        }
        (call,), notes = build({"info": info, "simulations": [simulation("#...", "..#.", **facts)]})
        assert call.id == "s-1"
        assert call.dimensions == {
            "scenario_id": "40",
            "trial": "2",
            "domain": "hotel",
            "model": "voice-1",
            "speech_complexity": "regular",
        }
        assert (call.outcome.ended_reason, call.outcome.finished, call.outcome.duration) == ("user_stop", True, 0.8)
        assert (call.agent.name, call.agent.instructions, call.agent.models) == ("desk", "Be kind.", {"llm": "voice-1"})
        assert [tool.name for tool in call.agent.tools or ()] == ["find_room"]
        assert call.extras == {"duration": 99.5, "seed": 7}  # the simulator's own time is no length of the call
        assert (call.pipeline, call.source.format, call.source.record) == ("s2s", "tau-voice", "simulations[0]")
        assert notes.taken == []

    @pytest.mark.parametrize(
        ("reason", "finished", "error"),
        [("agent_stop", True, ""), ("max_steps", False, ""), ("agent_error", None, "agent_error"), (None, None, "")],
    )
    def test_how_it_ended(self, reason: str | None, finished: bool | None, error: str) -> None:
        outcome = conversation("#.", "..", termination_reason=reason).outcome
        assert (outcome.finished, outcome.error) == (finished, error)

    def test_a_cascade_says_so(self) -> None:
        assert experiment_of({"audio_native_config": {"cascaded_config_name": "mine"}}).pipeline == "cascade"
        assert experiment_of({}).pipeline is None

    def test_unknown_fields_are_kept_and_told(self) -> None:
        (call,), notes = build(experiment(simulation("#.", "..", mood="calm", messages=[{"role": "user"}])))
        assert call.extras == {"mood": "calm"}
        assert [(kind, code) for kind, code, _ in taken(notes)] == [
            ("ignored", "messages"),
            ("unknown", "simulation.mood"),
        ]

    def test_unknown_fields_of_ticks_and_embedded_sound_are_left_out_and_told(self) -> None:
        one = simulation("##", "..")
        for tick in one["ticks"]:
            tick["lag"] = 3
            tick["user_chunk"] |= {"audio_content": "UklGR" * 1000, "chunk_id": 4, "cost": 0.0}
        (call,), notes = build(experiment(one))
        assert "UklGR" not in repr(call)
        assert taken(notes) == [
            ("ignored", "chunk.chunk_id", "2 times"),
            ("ignored", "embedded_data", "2 times"),
            ("ignored", "tick.lag", "2 times"),
        ]


class TestTickLength:
    @pytest.mark.parametrize("told", [None, 0, "soon", -0.2, True, 1e-9, 10**400])
    def test_not_told_or_not_to_be_used_it_is_the_usual(self, told: Any) -> None:
        (call,), notes = build(experiment(simulation("#.", ".."), tick=told))
        assert call.clocks[0].resolution == 0.2
        assert [note.code for note in notes.taken] == ["tick_of_0.2_s"]

    @pytest.mark.parametrize("info", [None, {}, {"audio_native_config": None}, {"audio_native_config": {}}, 5])
    def test_without_the_settings(self, info: Any) -> None:
        assert experiment_of(info).tick == 0.2

    def test_a_simulation_alone_takes_it_from_the_folder_it_lies_in(self, tmp_path: Path) -> None:
        folder(tmp_path, simulation("#.", ".."), tick=0.1)
        alone = tmp_path / "simulations" / "call.json"
        (call,), notes = build(json.loads(alone.read_text()), alone)
        assert (call.clocks[0].resolution, call.dimensions["domain"]) == (0.1, "hotel")
        assert notes.taken == []

    def test_a_simulation_all_alone_takes_the_usual_and_says_so(self, tmp_path: Path) -> None:
        (call,), notes = build(simulation("#.", ".."), tmp_path / "call.json")
        assert call.clocks[0].resolution == 0.2
        assert taken(notes) == [("inferred", "tick_of_0.2_s", "no results.json is in the folder of the simulation")]

    def test_broken_settings_are_told(self, tmp_path: Path) -> None:
        write(tmp_path / "results.json", "{")
        _, notes = build(simulation("#.", ".."), tmp_path / "call.json")
        assert notes.taken[0].detail.startswith("results.json cannot be read: ")


class TestDetection:
    def claim(self, value: Any) -> float:
        found = READER.detect(Sample(Path("x.json"), "document", [value]))
        return found.confidence if found else 0.0

    def test_what_is_ours(self) -> None:
        assert self.claim(simulation("#.", "..")) == 1.0
        assert self.claim(experiment(simulation("#.", ".."))) == 1.0
        assert self.claim(experiment()) == 0.9
        assert self.claim({"id": "x", "task_id": "1", "ticks": None}) == 0.95

    def test_a_text_simulation_is_left_to_those_who_read_messages(self) -> None:
        assert self.claim({"id": "x", "task_id": "1", "termination_reason": "user_stop", "messages": []}) == 0.5

    @pytest.mark.parametrize("value", [{}, [], "x", {"ticks": [1, 2]}, {"info": {}}, {"messages": []}, {"ticks": None}])
    def test_what_is_not(self, value: Any) -> None:
        assert self.claim(value) == 0.0


class TestOddTicks:
    """Bad input costs what is bad; the rest is read, and the report says what was done."""

    def test_no_flag_is_speech_and_no_chunk_is_silence(self) -> None:
        one = simulation("......", "......")
        del one["ticks"][0]["user_chunk"]["contains_speech"]
        one["ticks"][1]["user_chunk"]["contains_speech"] = None
        one["ticks"][2]["user_chunk"] = None
        del one["ticks"][3]["user_chunk"]
        one["ticks"][4] = None
        one["ticks"][5]["user_chunk"] = "speech"
        (call,), notes = build(experiment(one))
        assert spoken(call) == [("user", 0.0, 0.4, "")]
        assert taken(notes) == [
            ("repaired", "chunk_not_an_object", "1 times"),
            ("repaired", "contains_speech_missing", "2 times"),
            ("repaired", "tick_not_an_object", "1 times"),
        ]

    def test_a_flag_that_is_no_flag(self) -> None:
        one = simulation("....", "....")
        for tick, flag in enumerate((1, 0, "no", [])):
            one["ticks"][tick]["user_chunk"]["contains_speech"] = flag
        (call,), notes = build(experiment(one))
        assert spoken(call) == [("user", 0.0, 0.2, ""), ("user", 0.4, 0.8, "")]
        assert taken(notes) == [("repaired", "contains_speech_not_a_boolean", "2 times")]

    def test_inserts_and_effects_of_odd_shapes(self) -> None:
        one = simulation("....", "....")
        one["ticks"][0]["user_chunk"]["source_effects"] = {"speech_insert": "cough"}
        one["ticks"][1]["user_chunk"]["source_effects"] = {"speech_insert": {}}
        one["ticks"][2]["user_chunk"]["source_effects"] = "horn"
        one["ticks"][3]["user_chunk"]["turn_taking_action"] = "backchannel"
        (call,), notes = build(experiment(one))
        marker = call.timeline[0]
        assert isinstance(marker, Marker)
        assert (marker.name, marker.value) == ("speech_insert", {"place": "source_effects"})
        assert taken(notes) == [("repaired", "speech_insert_not_an_object", "1 times")]

    def test_words_without_any_sound_are_left_out(self) -> None:
        one = simulation("#...", "....")
        one["ticks"][1]["agent_chunk"]["content"] = "Hello?"
        (call,), notes = build(experiment(one))
        assert [one.speaker for one in call.utterances] == ["user"]
        assert ("ignored", "words_without_sound", "1 times") in taken(notes)


class TestSkipped:
    @pytest.mark.parametrize("ticks", [None, [], {}, "none"])
    def test_a_simulation_without_ticks(self, ticks: Any) -> None:
        with pytest.raises(InputError, match="ticks"):
            build({"id": "x", "task_id": "1", "ticks": ticks})

    def test_in_a_list_it_costs_itself(self) -> None:
        listed = [simulation("#.", "..", id="a"), {"id": "b", "ticks": []}, 7, simulation("#.", "..", id="d")]
        calls = READER.build(RecordGroup("log", Path("results.json"), (Record(experiment(*listed)),)), Notes())
        assert [next(calls).id, next(calls).id] == ["a", "d"]
        with pytest.raises(InputError) as raised:
            next(calls)
        assert raised.value.message == (
            "2 of 4 simulations skipped: simulations[1] has an empty list of ticks; simulations[2] is not an object"
        )

    def test_an_experiment_without_simulations(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="without simulations"):
            build(experiment(), tmp_path / "results.json")

    def test_settings_beside_their_simulations_are_no_conversation(self, tmp_path: Path) -> None:
        folder(tmp_path, simulation("#.", ".."))
        assert build(experiment(), tmp_path / "results.json")[0] == []

    def test_what_has_a_file_of_its_own_is_not_read_twice(self, tmp_path: Path) -> None:
        folder(tmp_path, simulation("#.", "..", id="a"))
        whole = experiment(simulation("#.", "..", id="a"), simulation("#.", "..", id="b"))
        assert [call.id for call in build(whole, tmp_path / "results.json")[0]] == ["b"]


class TestTheWholeRoad:
    """By `convoscope.read`: files are found, told apart and read."""

    def test_a_folder(self, tmp_path: Path) -> None:
        outcome = read(folder(tmp_path, simulation("#.", "..", id="a"), simulation("#.", "..", id="b")))
        assert outcome.ids == ["a", "b"]
        assert outcome.report.problems == []
        assert outcome.report.files["simulations/a.json"].format == "tau-voice"
        assert outcome.report.files["results.json"].conversations == 0

    def test_one_file_with_a_list(self, tmp_path: Path) -> None:
        whole = experiment(simulation("#.", "..", id="a"), simulation("#.", "..", id="b"))
        assert read(write_json(tmp_path / "results.json", whole)).ids == ["a", "b"]

    def test_one_broken_simulation_does_not_stop_the_others(self, tmp_path: Path) -> None:
        folder(tmp_path, simulation("#.", "..", id="a"), simulation("#.", "..", id="d"))
        write(tmp_path / "simulations" / "b.json", '{"id": "b", "ticks": [')
        write_json(tmp_path / "simulations" / "c.json", {"id": "c", "task_id": "1", "ticks": None})
        outcome = read(tmp_path)
        assert outcome.ids == ["a", "d"]
        assert [(one.file, one.message) for one in outcome.report.problems] == [
            ("simulations/b.json", "JSON is cut off at the end"),
            ("simulations/c.json", "has no ticks"),
        ]

    def test_nothing_at_all_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(NothingReadable, match="empty list of ticks"):
            read(folder(tmp_path, simulation("", "")))

    def test_the_example(self) -> None:
        outcome = read(EXAMPLES / "tau-voice")
        assert outcome.report.problems == []
        assert len(outcome.conversations) == 2
        for call in outcome.conversations:
            assert {type(event) for event in call.timeline} >= {Utterance, Marker}


def test_a_chunk_of_the_tests_is_like_one_of_the_data() -> None:
    assert set(chunk(True)) == {"speech_effects", "source_effects", "contains_speech"}
    assert speech(5, (1, 3)) == ".##.."
