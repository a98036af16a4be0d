"""One conversation over several files: sessions and traces of spans, transcripts of one session."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from convoscope.ingest.discover import find_inputs
from convoscope.ingest.report import ReadReport
from convoscope.ingest.shared_sessions import shared_parts
from convoscope.ingest.split import cut, read_partition
from support.logs import counts, measured, read, talk, write, write_json, write_lines
from support.spans import model, otlp, says, span, tool

ASK, REPLY = says("user", "Is it open?"), says("assistant", "Until six.")
AGAIN, BYE = says("user", "And on Sunday?"), says("assistant", "It is closed.")
BOTH = ["user: Is it open?", "assistant: Until six.", "user: And on Sunday?", "assistant: It is closed."]
SESSION = {"gen_ai.conversation.id": "visit-1"}


def call(id: str, at: float, asked: Any, answer: Any, trace: str, **more: Any) -> Any:
    return model(id, at, at + 1, [asked], answer, trace=trace, **more)


def two_files(folder: Path) -> Path:
    """A session whose second trace lies in a file that sorts first, and a trace that is in one file only."""
    first = call("a", 0, ASK, REPLY, "aa11", attributes=SESSION)
    alone = call("x", 5, says("user", "Alone?"), says("assistant", "Yes."), "cc33")
    write_json(folder / "2.json", otlp(first, alone))
    write_json(folder / "1.json", otlp(call("b", 60, AGAIN, BYE, "bb22", attributes=SESSION)))
    return folder


class TestSessions:
    def test_a_session_over_two_files_is_one_conversation(self, tmp_path: Path) -> None:
        outcome = read(two_files(tmp_path))
        assert sorted(outcome.ids) == ["cc33", "visit-1"]
        (session,) = (one for one in outcome.conversations if one.id == "visit-1")
        assert talk(session) == BOTH
        assert session.source.files == ("1.json", "2.json")
        assert len(measured(session)) == 2

    def test_the_report_counts_what_was_joined(self, tmp_path: Path) -> None:
        """Two documents; the part of the session in each is one more record."""
        report = read(two_files(tmp_path)).report
        assert counts(report.same) == {"joined": 2}
        assert report.conversations == 2
        assert {name: file.conversations for name, file in report.files.items()} == {"1.json": 1, "2.json": 2}
        assert report.problem_count == 0

    def test_a_file_that_names_only_the_trace_belongs_to_the_session(self, tmp_path: Path) -> None:
        """The call is in one file, its parent with the name of the session in another."""
        write_json(tmp_path / "calls.json", otlp(call("a", 0, ASK, REPLY, "aa11", parent="root")))
        root = span("root", 0, 2, trace="aa11", attributes={"gen_ai.system": "x", "session.id": "visit-1"})
        write_json(tmp_path / "roots.json", otlp(root))
        other = call("b", 60, AGAIN, BYE, "bb22", attributes={"session.id": "visit-1"})
        write_json(tmp_path / "later.json", otlp(other))
        outcome = read(tmp_path)
        assert outcome.ids == ["visit-1"]
        assert talk(outcome.only) == BOTH

    def test_spans_of_other_programs_in_a_file_of_their_own(self, tmp_path: Path) -> None:
        write_json(tmp_path / "calls.json", otlp(call("a", 0, ASK, REPLY, "aa11", parent="root")))
        write_json(tmp_path / "web.json", otlp(span("GET /chat", 0, 2, trace="aa11")))
        outcome = read(tmp_path)
        assert talk(outcome.only) == BOTH[:2]
        assert outcome.report.problems == []

    def test_a_tool_in_one_file_and_its_call_in_another(self, tmp_path: Path) -> None:
        asked = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "hours", "arguments": {}}]}
        write_json(tmp_path / "1.json", otlp(call("a", 0, ASK, asked, "aa11")))
        ran = {"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.result": "9 to 6"}
        write_json(tmp_path / "2.json", otlp(tool("t", 1.1, 1.6, "hours", trace="aa11", attributes=ran)))
        assert talk(read(tmp_path).only) == ["user: Is it open?", "hours({})", '-> "9 to 6"']

    def test_the_same_span_in_two_files_is_one(self, tmp_path: Path) -> None:
        first = call("a", 0, ASK, REPLY, "aa11", attributes=SESSION)
        later = call("b", 60, AGAIN, BYE, "bb22", attributes=SESSION)
        write_json(tmp_path / "1.json", otlp(first))
        write_json(tmp_path / "2.json", otlp(first, later))
        outcome = read(tmp_path)
        assert talk(outcome.only) == BOTH
        assert outcome.report.ignored["span_twice"] == 1

    def test_lines_and_packed_files(self, tmp_path: Path) -> None:
        write(tmp_path / "1.json.gz", gzip.compress(json.dumps(otlp(call("a", 0, ASK, REPLY, "aa11"))).encode()))
        lines = json.dumps(otlp(call("b", 60, AGAIN, BYE, "aa11")))
        write(tmp_path / "2.jsonl", f"{lines}\n{{broken\n")
        outcome = read(tmp_path)
        assert talk(outcome.only) == BOTH
        assert (outcome.report.problem_count, outcome.problem.line) == (1, 2)


class TestApart:
    def test_a_user_who_comes_back_after_a_day(self, tmp_path: Path) -> None:
        """26 hours of silence are another conversation of the session; a conversation has no such end."""
        for name, ids in (("session.id", ["visit-1", "visit-1#2"]), ("gen_ai.conversation.id", ["visit-1"])):
            held = {name: "visit-1"}
            write_json(tmp_path / name / "1.json", otlp(call("a", 0, ASK, REPLY, "aa11", attributes=held)))
            write_json(tmp_path / name / "2.json", otlp(call("b", 26 * 3600, AGAIN, BYE, "bb22", attributes=held)))
            assert read(tmp_path / name).ids == ids

    def test_small_numbers_are_ids_of_their_files(self, tmp_path: Path) -> None:
        write_json(tmp_path / "1.json", otlp(call("a", 0, ASK, REPLY, "1")))
        write_json(tmp_path / "2.json", otlp(call("b", 60, AGAIN, BYE, "1")))
        assert len(read(tmp_path).conversations) == 2

    def test_trials_of_one_session_are_apart(self, tmp_path: Path) -> None:
        for trial, answer in (("trial-1", REPLY), ("trial-2", BYE)):
            held = call("a", 0, ASK, answer, "aa11", attributes=SESSION)
            write_json(tmp_path / trial / "spans.json", otlp(held))
        assert len(read(tmp_path).conversations) == 2

    def test_files_without_a_common_id_are_not_even_decoded(self, tmp_path: Path) -> None:
        write_json(tmp_path / "1.json", otlp(call("a", 0, ASK, REPLY, "aa11")))
        write_json(tmp_path / "2.json", otlp(call("b", 60, AGAIN, BYE, "bb22")))
        assert shared_parts(find_inputs([tmp_path]).inputs, 1000) == {}


def test_any_cut_gives_the_same(tmp_path: Path) -> None:
    """Twelve sessions over four files, in buckets of any number."""
    for number in range(4):
        spans = [
            call(f"{number}-{name}", 10 * number, says("user", f"{name} {number}?"), REPLY, f"{name}{number}" * 4)
            for name in "abcdefghijkl"
        ]
        for name, one in zip("abcdefghijkl", spans, strict=True):
            one["attributes"].append({"key": "session.id", "value": {"stringValue": f"visit-{name}"}})
        write_json(tmp_path / "logs" / f"{number}.json", otlp(*spans))
    found = find_inputs([tmp_path / "logs"])
    told: list[dict[str, list[str]]] = []
    for size in (300, 10_000_000):
        parts = cut(found.inputs, ReadReport(), tmp_path / str(size), size)
        reads = [one.conversation for part in parts for one in read_partition(part, ReadReport())]
        told.append({one.id: talk(one) for one in reads})
    assert told[0] == told[1]
    assert told[0].keys() == {f"visit-{name}" for name in "abcdefghijkl"}
    assert told[0]["visit-c"] == [
        line for number in range(4) for line in (f"user: c {number}?", "assistant: Until six.")
    ]


class TestOtherFormats:
    def test_the_halves_of_a_run_of_langsmith(self, tmp_path: Path) -> None:
        run = {"id": "r1", "trace_id": "run-aa11", "dotted_order": "20260302T080000Zr1", "run_type": "llm"}
        asked = {"inputs": {"messages": [{"role": "user", "content": "Is it open?"}]}}
        answer = {"outputs": {"choices": [{"message": {"role": "assistant", "content": "Until six."}}]}}
        write_json(tmp_path / "patch.json", {"patch": [{**run, **answer}]})
        write_json(tmp_path / "post.json", {"post": [{**run, **asked, "start_time": "2026-03-02T08:00:00Z"}]})
        assert talk(read(tmp_path).only) == BOTH[:2]

    def test_a_trace_of_langfuse_and_its_observations(self, tmp_path: Path) -> None:
        """A table of traces holds the input and the output once more."""
        trace = {"id": "trace-aa11", "timestamp": "2026-03-02T08:00:00Z", "sessionId": "visit-1", "projectId": "p"}
        talked = {"input": "Is it open?", "output": "Until six."}
        seen = {"id": "o", "traceId": "trace-aa11", "type": "GENERATION", "startTime": "2026-03-02T08:00:00Z"}
        write_lines(tmp_path / "traces.jsonl", {**trace, **talked})
        write_lines(tmp_path / "observations.jsonl", {**seen, **talked})
        outcome = read(tmp_path)
        assert outcome.ids == ["visit-1"]
        assert talk(outcome.only) == BOTH[:2]

    def test_a_transcript_of_a_sub_agent_is_a_part_of_its_session(self, tmp_path: Path) -> None:
        def line(id: str, role: str, text: str, second: int, *, inside: bool = False) -> dict[str, Any]:
            time = f"2026-03-02T08:00:{second:02d}Z"
            held = {"role": role, "content": [{"type": "text", "text": text}]}
            return {"type": role, "uuid": id, "sessionId": "s-aa11", "isSidechain": inside, "timestamp": time} | {
                "message": held
            }

        main = [line("1", "user", "Fix the lamp.", 0), line("4", "assistant", "It is fixed.", 30)]
        side = [
            line("2", "user", "Look at it.", 10, inside=True),
            line("3", "assistant", "A fuse.", 20, inside=True),
        ]
        write_lines(tmp_path / "s-aa11.jsonl", *main)
        write_lines(tmp_path / "agent-1.jsonl", *side)
        assert talk(read(tmp_path).only) == [
            "user: Fix the lamp.",
            "orchestrator: Look at it.",
            "subagent: A fuse.",
            "assistant: It is fixed.",
        ]
