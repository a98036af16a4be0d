"""`records/ID/metrics.json`: the context that each conversation's metrics received, and what they made of it."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import convoscope
from convoscope.report.view_terminal import write_contexts
from convoscope.runs.make import make_run as score
from convoscope.runs.run import Run
from convoscope.views import metric_context
from support.command_line import convoscope as command
from support.generated import write_lines
from support.logs import EXAMPLES, chat
from support.logs import write_lines as write_records

RUN = EXAMPLES / "voice-logs"
CHOSEN = "turns,tools"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The calls of the example, scored with `--contexts`."""
    folder = tmp_path_factory.mktemp("work") / "calls"
    ended = command("score", RUN, "-m", CHOSEN, "--workers", 1, "--out", folder, "--contexts")
    assert ended.code == 0
    return folder


def document(run: Path, id: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((run / "records" / id / "metrics.json").read_text())
    return told


def test_score_writes_one_for_each_conversation(run: Path) -> None:
    written = {str(path.parent.relative_to(run / "records")) for path in run.rglob("metrics.json")}
    assert len(written) == 26
    assert {"normal", "damaged-logs"} < written


def test_a_trial_lies_below_its_record_as_in_the_logs(run: Path) -> None:
    for number in range(3):
        assert document(run, f"move-appointment/trial_{number}")["record_id"] == "move-appointment"


def test_the_context_is_the_one_that_the_metrics_received(run: Path) -> None:
    (call,) = [one for one in convoscope.read(RUN) if one.id == "user-interrupts-with-tools"]
    assert document(run, call.id)["context"] == metric_context(call).to_dict()


def test_the_scores_stand_beside_it_by_metric_and_subject(run: Path) -> None:
    told = document(run, "user-interrupts-with-tools")["metrics"]
    assert told["conversation.turns"][0]["value"] == 4.0
    # The first of three tool calls came back with an error.
    assert [one["value"] for one in told["tools.success"]] == [0.0, 1.0, 1.0]
    assert all(one["subject"].startswith("tool call") for one in told["tools.success"])
    assert told["tools.success"][0]["details"]["tool"] == "verify_owner"


def test_a_score_without_a_value_has_its_reason(run: Path) -> None:
    (silent,) = document(run, "normal")["metrics"]["tools.success"]
    assert (silent["status"], silent["reason"]) == ("not_applicable", "no_tool_calls")
    assert "value" not in silent


def test_report_writes_the_same_into_a_run_that_has_none(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    assert command("score", RUN, "-m", CHOSEN, "--workers", 1, "--out", folder).code == 0
    assert not (folder / "records").exists()
    assert command("report", folder, "--contexts").code == 0
    for path in run.rglob("metrics.json"):
        assert (folder / path.relative_to(run)).read_bytes() == path.read_bytes()


def test_the_rule_that_turns_are_cut_by_is_the_runs(tmp_path: Path) -> None:
    folder = tmp_path / "eva"
    call = RUN / "records" / "user-interrupts-with-tools"
    assert command("score", call, "-m", "turns", "--turns", "eva", "--out", folder, "--contexts").code == 0
    context = document(folder, "user-interrupts-with-tools")["context"]
    assert context["transcribed_user_turns"]["3"].startswith("[user interrupts]")
    assert context["is_s2s"] is False


def test_chats_have_contexts_too(tmp_path: Path) -> None:
    write_lines(tmp_path / "chats.jsonl", range(3))
    run = score(tmp_path / "chats.jsonl", metrics=["turns"], out=tmp_path / "run", workers=1)
    written = write_contexts(run)
    assert len(written) == 3
    assert all(json.loads(path.read_text())["context"]["pipeline_type"] is None for path in written)


@pytest.mark.parametrize(
    ("id", "folder"),
    [
        ("../../outside", "_/_/outside-#"),
        ("/etc/hosts", "_/etc/hosts-#"),
        ("call 7: late?", "call_7_late_-#"),
        ("..", "_-#"),
        ("Gespräch-1", "Gespräch-1"),
        ("x" * 300, f"{'x' * 80}-#"),
        ("a/metrics.json", "a/metrics.json-#"),
    ],
)
def test_no_id_leads_out_of_the_run(tmp_path: Path, id: str, folder: str) -> None:
    """An id that cannot be a folder as it is gets ten letters of its hash."""
    (path,) = write_contexts(scored(tmp_path, id))
    place = folder.replace("#", sha256(id.encode()).hexdigest()[:10])
    assert path == tmp_path / "run" / "records" / place / "metrics.json"


@pytest.mark.parametrize("ids", [("a b", "a_b"), ("a", "a/metrics.json"), ("x" * 300, "x" * 301)])
def test_no_context_is_written_over_another(tmp_path: Path, ids: tuple[str, str]) -> None:
    written = write_contexts(scored(tmp_path, *ids))
    assert sorted(json.loads(path.read_text())["record_id"] for path in written) == sorted(ids)


def scored(folder: Path, *ids: str) -> Run:
    write_records(folder / "chats.jsonl", *map(chat, ids))
    return score(folder / "chats.jsonl", metrics=["turns"], out=folder / "run", workers=1)
