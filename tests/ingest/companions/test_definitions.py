"""Flow definitions: which files hold them, which conversation gets which, and what a run keeps of them."""

from __future__ import annotations

import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

import convoscope
from convoscope.conversation import (
    Conversation,
    Flow,
    FlowState,
    Participant,
    SlotFilled,
    StateEntered,
    StateExited,
    Text,
    Utterance,
    to_json,
)
from convoscope.errors import InputError, UsageError
from convoscope.ingest.companions.flows import FORMAT, FlowAttacher
from convoscope.ingest.discover import find_inputs
from convoscope.ingest.report import Notes, ReadReport
from convoscope.ingest.split import cut
from convoscope.runs.make import make_run as score
from convoscope.runs.part_files import RunFiles
from convoscope.scoring.partition import PartDone, PartitionTask
from convoscope.views.flow.endings import is_completed
from support.command_line import convoscope as command
from support.logs import CHAT, EXAMPLES, counts, write_json, write_text


def walk(id: str, *states: str, **dimensions: str) -> Conversation:
    """A conversation that goes through these states."""
    events: list[Any] = []
    for number, state in enumerate(states):
        events.append(StateEntered(seq=2 * number, state=state))
        if number + 1 < len(states):
            events.append(StateExited(seq=2 * number + 1, state=state, to_state=states[number + 1]))
    return Conversation(id=id, dimensions=dimensions, timeline=tuple(events))


def spoken(id: str, **dimensions: str) -> Conversation:
    said = Utterance(seq=1, speaker="u", heard=Text("Hello?"))
    return Conversation(id=id, dimensions=dimensions, participants=(Participant("u", "user"),), timeline=(said,))


def log(path: Path, *conversations: Conversation) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(to_json(one) + b"\n" for one in conversations))
    return path


def files(path: Path, *more: Path, **options: Any) -> dict[str, tuple[str, str]]:
    report = find_inputs([path, *more], **options).report
    return {name: (file.format, file.why or file.skipped) for name, file in report.files.items()}


class TestDiscovery:
    def test_definitions_among_the_logs_are_found(self, tmp_path: Path) -> None:
        write_text(tmp_path / "flows" / "a.yaml", "{flow: x, states: [a]}")
        write_text(tmp_path / "b.yml", "flows: {y: {states: [a], order: [a]}, z: {states: {a: {terminal: true}}}}")
        write_json(tmp_path / "c.json", {"flow": "w", "states": ["a"]})
        write_json(tmp_path / "d.json", [{"flow": "v", "states": ["a"]}, {"flow": "u", "states": ["a"]}])
        log(tmp_path / "log.jsonl", walk("1", "a", flow="x"))
        found = find_inputs([tmp_path])
        assert [flow.name for flow in found.flows] == ["u", "v", "w", "x", "y", "z"]
        assert [one.name for one in found.inputs] == ["log.jsonl"]
        assert files(tmp_path) == {
            "flows/a.yaml": (FORMAT, "declares flow x"),
            "b.yml": (FORMAT, "declares flows y, z"),
            "c.json": (FORMAT, "declares flow w"),
            "d.json": (FORMAT, "declares flows v, u"),
        }
        assert found.report.problem_count == 0

    def test_other_yaml_in_a_folder_is_left_alone(self, tmp_path: Path) -> None:
        write_text(tmp_path / "service.yaml", "kind: Service\nstatus: {states: [ready]}\n")
        write_text(tmp_path / "geography.yaml", "states: [{name: Bremen, capital: Bremen}]\n")
        write_text(tmp_path / "template.yaml", "{{- if .Values.flow }}\n\tx: {{ .states }}\n")
        write_json(tmp_path / "log.json", {**CHAT, "flow": "x", "states": ["a"]})
        found = find_inputs([tmp_path])
        assert found.flows == ()
        assert [one.name for one in found.inputs] == ["log.json"]
        assert found.report.problem_count == 0

    def test_other_yaml_that_is_named_is_a_problem(self, tmp_path: Path) -> None:
        path = write_text(tmp_path / "service.yaml", "kind: Service\n")
        write_json(tmp_path / "log.json", CHAT)
        (problem,) = find_inputs([path, tmp_path / "log.json"]).report.problems
        assert problem.file == "service.yaml"
        assert problem.message.startswith("is YAML that declares no flow, and no log that is known")

    def test_a_broken_one_is_a_problem_where_it_is_found_and_an_error_where_it_is_named(self, tmp_path: Path) -> None:
        broken = write_text(tmp_path / "a.yaml", "flow: x\nstates:\n  a: [\n")
        wrong = write_json(tmp_path / "b.json", {"flow": "x", "states": 7})
        report = find_inputs([tmp_path]).report
        assert [(one.file, one.line, one.field) for one in report.problems] == [
            ("a.yaml", 4, ""),
            ("b.json", 0, "states"),
        ]
        for path in (broken, wrong):
            with pytest.raises(InputError, match=path.name):
                find_inputs([path])

    def test_given_ones_win(self, tmp_path: Path) -> None:
        write_text(tmp_path / "logs" / "x.yaml", "{flow: x, states: [found]}")
        given = write_text(tmp_path / "x.yaml", "{name: x, states: [given]}")
        (flow,) = find_inputs([tmp_path / "logs"], flows=[given]).flows
        assert list(flow.by_name) == ["given"]
        told = files(tmp_path / "logs", flows=[given])
        assert told["x.yaml"] == (FORMAT, "declares flow x, which was given")
        assert told["…/x.yaml"] == (FORMAT, "declares flow x")

    def test_one_that_is_given_and_lies_among_the_logs_is_no_log(self, tmp_path: Path) -> None:
        given = write_json(tmp_path / "x.json", {"name": "x", "states": ["a"]})
        log(tmp_path / "log.jsonl", walk("1", "a"))
        found = find_inputs([tmp_path], flows=given)
        assert ([one.name for one in found.inputs], len(found.flows)) == (["log.jsonl"], 1)

    def test_two_of_one_name_that_differ_are_an_error_with_both_files(self, tmp_path: Path) -> None:
        first = write_text(tmp_path / "a.yaml", "{flow: x, states: [a]}")
        second = write_text(tmp_path / "b.yaml", "# the same\nflow: x\nstates: {a: }\n")
        assert len(find_inputs([tmp_path]).flows) == 1
        write_text(second, "{flow: x, states: [b]}")
        for options in ({"paths": [tmp_path]}, {"paths": [tmp_path / "c"], "flows": [first, second]}):
            with pytest.raises(InputError, match=r"b\.yaml.*differently from .*a\.yaml"):
                find_inputs(**options)

    def test_a_folder_may_be_given(self, tmp_path: Path) -> None:
        write_text(tmp_path / "flows" / "deep" / "a.yaml", "{flow: x, states: [a]}")
        write_text(tmp_path / "flows" / "other.yaml", "kind: Service\n")
        write_text(tmp_path / "flows" / ".hidden.yaml", "{flow: h, states: [a]}")
        logs = log(tmp_path / "log.jsonl", walk("1", "a"))
        assert [flow.name for flow in find_inputs([logs], flows=[tmp_path / "flows"]).flows] == ["x"]

    def test_what_is_given_must_be_there_and_readable(self, tmp_path: Path) -> None:
        logs = log(tmp_path / "log.jsonl", walk("1", "a"))
        (tmp_path / "empty").mkdir()
        broken = write_text(tmp_path / "x.yaml", "flow: x\nstates:\n  a: {rank: first}\n")
        other = write_text(tmp_path / "y.yaml", "kind: Service\n")
        for path, says in (
            (tmp_path / "none.yaml", "no such file"),
            (tmp_path / "empty", "holds no flow definition"),
            (broken, "states.a.rank"),
            (other, "declares nothing about a flow"),
        ):
            with pytest.raises(InputError, match=says):
                convoscope.read(logs, flows=[path])
        with pytest.raises(UsageError, match="a int is not a flow definition"):
            convoscope.read(logs, flows=[3])  # type: ignore[list-item]

    def test_the_commands(self, tmp_path: Path) -> None:
        log(tmp_path / "log.jsonl", walk("1", "a"))
        write_text(tmp_path / "x.yaml", "{flow: x, states: {a: {rank: first}}}")
        write_text(tmp_path / "y.yaml", "{flow: y, states: [a]}")
        for name in ("score", "inspect"):
            ended = command(name, "log.jsonl", "--flows", "x.yaml", cwd=tmp_path)
            assert ended.code == 2
            assert "x.yaml states.a.rank: is the text 'first'" in ended.err
        ended = command("inspect", "log.jsonl", "--flows", "y.yaml", "--json", cwd=tmp_path)
        assert ended.json["dimensions"] == {"flow": {"y": 1}}
        ended = command("score", "log.jsonl", "--flows", "y.yaml", "-m", "conversation.turns", cwd=tmp_path)
        assert ended.code == 0
        assert "read 1 conversation from 1 file (convoscope), with 1 file of flow definitions" in ended.out


X = Flow(name="x_y", states=(FlowState(name="a"), FlowState(name="b")))
OTHER = Flow(name="other", states=(FlowState(name="a"),))


def flow_of(conversation: Conversation, *flows: Flow) -> tuple[str | None, str | None]:
    """The definition that a conversation gets, and the name of its flow then."""
    conversation = FlowAttacher(flows).attach(conversation, Notes())
    return (conversation.flow.name if conversation.flow else None), conversation.dimensions.get("flow")


class TestAttaching:
    def test_by_name(self) -> None:
        assert flow_of(walk("1", "a", flow="x_y"), X, OTHER) == ("x_y", "x_y")
        assert flow_of(walk("1", "elsewhere", flow="x_y"), X) == ("x_y", "x_y")
        assert flow_of(walk("1", "a", flow="z"), X) == (None, "z")

    @pytest.mark.parametrize("name", ["X_Y", "x-y", "X y", " x  y"])
    def test_by_name_in_another_spelling(self, name: str) -> None:
        assert flow_of(walk("1", "a", flow=name), X, OTHER) == ("x_y", "x_y")

    def test_a_spelling_of_two_names_is_neither(self) -> None:
        twin = Flow(name="X-Y", states=X.states)
        assert flow_of(walk("1", "a", flow="x y"), X, twin) == (None, "x y")
        assert flow_of(walk("1", "a", flow="X-Y"), X, twin) == ("X-Y", "X-Y")

    def test_by_its_states_where_there_is_only_one(self) -> None:
        assert flow_of(walk("1", "zero", "b"), X) == ("x_y", "x_y")
        assert flow_of(walk("1", "zero"), X) == (None, None)
        assert flow_of(walk("1", "a"), X, OTHER) == (None, None)

    def test_without_states_it_is_left_alone(self) -> None:
        assert flow_of(spoken("1", flow="x_y"), X) == (None, "x_y")
        assert flow_of(spoken("1"), X) == (None, None)

    def test_its_own_definition_stays(self, tmp_path: Path) -> None:
        own = Flow(name="x_y", states=(FlowState(name="mine"),))
        path = log(tmp_path / "log.jsonl", Conversation(id="1", flow=own, dimensions={"flow": "x_y"}))
        (read,) = convoscope.read(path, flows=[X])
        assert read.flow == own

    def test_nothing_else_of_a_conversation_changes(self) -> None:
        given = walk("1", "a", flow="x_y", agent="e")
        attached = FlowAttacher([X]).attach(given, Notes())
        assert given.flow is None
        assert json.loads(to_json(attached)) == {
            **json.loads(to_json(given)),
            "flow": {"name": "x_y", "states": [{"name": "a"}, {"name": "b"}]},
        }

    def test_what_was_concluded_is_noted(self, tmp_path: Path) -> None:
        path = log(tmp_path / "log.jsonl", walk("1", "a"), walk("2", "a", flow="X Y"), walk("3", "a", flow="x_y"))
        reading = convoscope.read(path, flows=[X])
        notes = {read.conversation.id: [(note.kind, note.code) for note in read.notes] for read in reading.with_notes()}
        assert notes == {
            "1": [("inferred", "flow_from_the_only_definition")],
            "2": [("repaired", "flow_name_as_declared")],
            "3": [],
        }
        assert counts(reading.report.inferred) == {"flow_from_the_only_definition": 1}
        assert reading.report.repaired["flow_name_as_declared"].examples == ["log.jsonl:2 X Y"]


METRICS = "conversation.turns"


class TestRuns:
    def test_a_changed_definition_makes_another_run(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        log(tmp_path / "logs" / "log.jsonl", walk("1", "a", flow="x"), walk("2", "a", "b", flow="x"))

        def folder() -> Path:
            return score("logs", metrics=METRICS, workers=1).folder

        without = folder()
        write_text(tmp_path / "logs" / "x.yaml", "{flow: x, states: [a, b]}")
        first = folder()
        write_text(tmp_path / "logs" / "x.yaml", "# Words do not matter.\nflow: x\nstates: {a: , b: }\n")
        assert folder() == first
        write_text(tmp_path / "logs" / "x.yaml", "{flow: x, states: {a: {required_slots: [city]}, b: }}")
        assert len({without, first, folder()}) == 3
        # With a folder that is named, the run grows: all is scored again by the new definition.
        grown = score("logs", metrics=METRICS, workers=1, out=first)
        assert (grown.folder / "summary.json").read_bytes() == (folder() / "summary.json").read_bytes()
        assert next(iter(grown.flows.values())).states[0].required_slots == ("city",)

    def test_without_definitions_the_settings_are_as_ever(self, tmp_path: Path) -> None:
        path = log(tmp_path / "log.jsonl", walk("1", "a"))
        assert "flows" not in score(path, metrics=METRICS, out=tmp_path / "run", workers=1).receipt.config

    def test_all_workers_have_them(self, tmp_path: Path) -> None:
        for number in range(4):
            log(tmp_path / f"{number}.jsonl", walk(f"{number}", "a", flow="x_y"))
        run = score(tmp_path, metrics=METRICS, flows=[X], out=tmp_path / "run", workers=2, part_bytes=1)
        assert [one.flow for one in run.conversations()] == [X] * 4
        assert run.flows == {"x_y": X}
        assert list(run.receipt.config["flows"]) == ["x_y"]

    def test_workers_that_inherit_nothing_have_them(self, tmp_path: Path) -> None:
        path = log(tmp_path / "log.jsonl", walk("1", "a", flow="x_y"))
        (partition,) = cut(find_inputs([path]).inputs, ReadReport(), tmp_path / "scratch")
        work = PartitionTask(metrics=[], writer=RunFiles(tmp_path), flows=(X,))
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            done: PartDone = pool.submit(work, partition).result()
        assert done.flows == {"x_y": X}

    def test_one_that_nobody_goes_through_is_said(self, tmp_path: Path) -> None:
        path = log(tmp_path / "log.jsonl", walk("1", "a", flow="x_y"))
        run = score(path, metrics=METRICS, flows=[X, OTHER], out=tmp_path / "run", workers=1)
        assert run.read_report.warnings == ["no conversation uses these declared flows: other"]

    def test_one_that_nobody_goes_through_is_kept_and_can_be_asked_for(self, tmp_path: Path) -> None:
        path = log(tmp_path / "log.jsonl", walk("1", "a", flow="x_y"))
        run = score(path, metrics=METRICS, flows=[X, OTHER], out=tmp_path / "run", workers=1)
        assert run.flows == {"x_y": X, "other": OTHER}
        asked = command("states", "matrix", "run", "--flow", "other", cwd=tmp_path)
        assert asked.code == 0, asked.err
        assert "other" in asked.out

    def test_what_a_conversation_carries_is_kept_before_what_was_given(self, tmp_path: Path) -> None:
        own = Flow(name="x_y", states=(FlowState(name="a", speech_act="ask"),))
        path = log(tmp_path / "log.jsonl", msgspec.structs.replace(walk("1", "a", flow="x_y"), flow=own))
        run = score(path, metrics=METRICS, flows=[X], out=tmp_path / "run", workers=1)
        assert run.flows == {"x_y": own}


@pytest.mark.parametrize(("folder", "flow"), [("retell", "Lakeside Bikes desk"), ("vapi", "wf-3c20")])
def test_definitions_of_vendors_fit_their_calls(folder: str, flow: str) -> None:
    """Every state of a call is declared, and what is required is collected in some call."""
    reading = convoscope.read(EXAMPLES / folder)
    calls = [one for one in reading if one.dimensions.get("flow") == flow]
    assert reading.report.warnings == []
    declared = calls[0].flow
    assert declared is not None
    assert {event.state for one in calls for event in one.timeline if isinstance(event, StateEntered)} == {
        state.name for state in declared.states
    }
    filled = {event.slot for one in calls for event in one.timeline if isinstance(event, SlotFilled)}
    assert filled.issuperset(slot for state in declared.states for slot in state.required_slots)
    assert filled.issuperset(declared.completion_slots or ())
    assert True in {is_completed(one) for one in calls}


def test_the_examples_are_read_without_a_warning() -> None:
    reading = convoscope.read(EXAMPLES / "state-events")
    flows = {one.id: one.flow.name if one.flow else None for one in reading}
    # The call does not say which flow it is, and there are two.
    assert flows == {
        "call-2041": None,
        "g-7": "dog_grooming",
        "g-8": "dog_grooming",
        "v-101": "apartment_viewing",
        "v-102": "apartment_viewing",
        "web-55": "apartment_viewing",
    }
    assert reading.report.warnings == []
    assert {file.why for file in reading.report.files.values() if file.format == FORMAT} == {
        "declares flow apartment_viewing",
        "declares flow dog_grooming",
    }
