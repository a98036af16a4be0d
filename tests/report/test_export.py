"""Scores for OpenTelemetry, Langfuse and Phoenix: what their own packages make of the files."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import convoscope
from convoscope.errors import UsageError
from convoscope.report.export import export
from convoscope.runs.run import Run
from support.command_line import convoscope as run_command

TRACE, ROOT, FIRST, SECOND = "a" * 32, "b" * 16, "c" * 16, "d" * 16


def _span(id: str, parent: str, start: int, attributes: dict[str, Any]) -> dict[str, Any]:
    named = [{"key": name, "value": {"stringValue": value}} for name, value in attributes.items()]
    times = {"startTimeUnixNano": f"{start}000000000", "endTimeUnixNano": f"{start + 1}000000000"}
    return {"traceId": TRACE, "spanId": id, "parentSpanId": parent, "name": "chat", **times, "attributes": named}


def _chat(asked: list[str], answer: str) -> dict[str, str]:
    roles = ("user", "assistant")
    sent = [{"role": roles[at % 2], "parts": [{"type": "text", "content": text}]} for at, text in enumerate(asked)]
    answered = [{"role": "assistant", "parts": [{"type": "text", "content": answer}]}]
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "small",
        "gen_ai.input.messages": json.dumps(sent),
        "gen_ai.output.messages": json.dumps(answered),
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two turns of one trace, and a chat that no trace is known of."""
    folder = tmp_path_factory.mktemp("export")
    spans = [
        _span(ROOT, "", 1700000000, {"gen_ai.operation.name": "invoke_agent"}),
        _span(FIRST, ROOT, 1700000001, _chat(["Is it open?"], "Yes.")),
        _span(SECOND, ROOT, 1700000005, _chat(["Is it open?", "Yes.", "Until when?"], "Until six.")),
    ]
    logs = folder / "logs"
    logs.mkdir()
    (logs / "trace.json").write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    (logs / "chat.json").write_text(json.dumps({"messages": [{"role": "user", "content": "Hello?"}]}))
    return convoscope.score(logs, metrics=["conversation.turns", "agent.declined"], out=folder / "run")


def test_otel_events_are_on_the_spans_they_are_about(run: Run) -> None:
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

    made = export(run, "otel")
    value = json.loads(made.text)
    records = value["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    parsed = ParseDict(value, ExportLogsServiceRequest())  # the maker's own model takes it
    assert len(parsed.resource_logs[0].scope_logs[0].log_records) == len(records) == made.scores
    assert {record["eventName"] for record in records} == {"gen_ai.evaluation.result"}
    assert {record["traceId"] for record in records} == {TRACE}
    turns = [record for record in records if _attribute(record, "gen_ai.evaluation.name") == "conversation.turns"]
    # One score of the conversation, on its first span: two turns.
    assert [(record["spanId"], _attribute(record, "gen_ai.evaluation.score.value")) for record in turns] == [
        (ROOT, 2.0)
    ]
    declined = {
        record["spanId"] for record in records if _attribute(record, "gen_ai.evaluation.name") == "agent.declined"
    }
    assert declined == {ROOT}
    assert made.without_trace > 0  # the chat that is no trace


def _attribute(record: dict[str, Any], name: str) -> Any:
    return next((next(iter(one["value"].values())) for one in record["attributes"] if one["key"] == name), None)


def _langfuse_score(row: dict[str, Any]) -> Any:
    from langfuse.api.core.pydantic_utilities import parse_obj_as
    from langfuse.api.scores.types.create_score_request import CreateScoreRequest

    return parse_obj_as(CreateScoreRequest, row)


def test_langfuse_takes_the_scores(run: Run) -> None:
    rows = json.loads(export(run, "langfuse").text)
    scores = [_langfuse_score(row) for row in rows]
    assert all(one.model_extra == {} for one in scores)  # the maker's own model knows every field
    assert {one.trace_id for one in scores} == {TRACE}
    [turns] = [row for row in rows if row["name"] == "conversation.turns"]
    assert (turns["traceId"], turns["value"], turns["dataType"]) == (TRACE, 2.0, "NUMERIC")
    assert len({row["id"] for row in rows}) == len(rows)


def test_phoenix_takes_the_annotations(run: Run) -> None:
    from phoenix.client.__generated__.v1 import SpanAnnotationData

    rows = json.loads(export(run, "phoenix").text)
    accepted = msgspec.convert(rows, list[SpanAnnotationData])
    assert [row["span_id"] for row in accepted if row["name"] == "conversation.turns"] == [ROOT]
    assert {row["annotator_kind"] for row in rows} == {"CODE"}
    table = list(csv.DictReader(io.StringIO(export(run, "phoenix", as_csv=True).text)))
    assert [row["result.score"] for row in table if row["name"] == "conversation.turns"] == ["2.0"]


def test_a_turn_goes_to_its_own_trace_and_the_whole_to_the_session(tmp_path: Path) -> None:
    """A session of two traces, each with one turn: a score of the second turn is about the second trace."""
    later = "e" * 32
    session = {"gen_ai.conversation.id": "visit-1"}
    spans = [
        _span(FIRST, "", 1700000001, _chat(["Is it open?"], "Yes.") | session),
        _span(SECOND, "", 1700000061, _chat(["Until when?"], "Until six.") | session) | {"traceId": later},
    ]
    (tmp_path / "t.json").write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    names = ["conversation.turns", "agent.words_per_turn"]
    run = convoscope.score(tmp_path / "t.json", metrics=names, out=tmp_path / "run")
    rows = json.loads(export(run, "langfuse").text)
    scores = [_langfuse_score(row) for row in rows]
    assert [(one.session_id, one.trace_id) for one in scores if one.name == "conversation.turns"] == [("visit-1", None)]
    turns = {one.observation_id: (one.trace_id, one.value) for one in scores if one.observation_id}
    assert turns == {FIRST: (TRACE, 1.0), SECOND: (later, 2.0)}


def test_the_same_score_has_the_same_id(run: Run) -> None:
    first, second = (json.loads(export(run, "langfuse").text) for _ in range(2))
    assert [row["id"] for row in first] == [row["id"] for row in second]


def test_bad_usage(run: Run) -> None:
    with pytest.raises(UsageError, match="unknown destination"):
        export(run, "elsewhere")
    with pytest.raises(UsageError, match="not a table"):
        export(run, "otel", as_csv=True)


def test_command(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "scores.json"
    printed = run_command("export", run.folder, "--to", "otel", "--out", out, "--metrics", "conversation.turns").out
    assert f"{out}: 1 score" in printed.replace("\n", "")
    assert len(json.loads(out.read_text())["resourceLogs"][0]["scopeLogs"][0]["logRecords"]) == 1
