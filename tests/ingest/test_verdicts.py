"""Verdicts of other programs: EVA's metrics.json in the folder of a call, and tables. The files are written here by
the documented shape; the shared data have none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import convoscope
from convoscope.ingest.companions.verdicts import COMPUTED_HERE, NATIVE_SCALES
from convoscope.ingest.read import read
from convoscope.metrics.registry import installed
from convoscope.runs.run import Run

CALLS = Path(__file__).parents[2] / "examples" / "voice-logs"


def score(value: float | None, normalised: float | None = None, **more: Any) -> dict[str, Any]:
    """A score in the shape that EVA writes."""
    empty = {"details": {}, "error": None, "skipped": False, "version": "v0.3", "prompt_hash": "0123456789ab"}
    return {"score": value, "normalized_score": normalised, **empty, "sub_metrics": {}, **more}


GOOD = {
    "task_completion": score(1.0, 1.0),
    "faithfulness": score(2.0, 0.5),
    "agent_speech_fidelity": score(0.96, 0.96),
    "conversation_progression": score(3.0, 1.0),
    "turn_taking": score(0.9, 0.9),
    "conciseness": score(2.5, 0.75),
}


@pytest.fixture
def call(tmp_path: Path) -> Path:
    """The folder of a call, without a database: what came of it is not in the logs."""
    folder = tmp_path / "logs" / "records" / "r-1"
    shutil.copytree(CALLS / "records" / "two-empty-sounds", folder)
    (folder / "result.json").unlink(missing_ok=True)
    return folder


def write(folder: Path, metrics: dict[str, Any], record: str = "r-1") -> None:
    whole = {"record_id": record, "metrics": metrics, "aggregate_metrics": {"EVA-A_pass": 1.0}}
    (folder / "metrics.json").write_text(json.dumps(whole))


def run_of(folder: Path, metrics: str = "eva,judged", out: str = "run") -> Run:
    return convoscope.score(folder.parents[1], metrics=metrics, out=folder.parents[2] / out, workers=1)


def rows(run: Run, metric: str, variant: str = "") -> list[tuple[str, str, float | None, str]]:
    scores = [row for row in run.scores() if (row.metric, row.variant) == (metric, variant)]
    return [(row.judge, row.status, row.value, row.reason) for row in scores]


def test_with_the_scores_of_a_folder_the_composites_have_values(call: Path) -> None:
    write(call, GOOD)
    run = run_of(call)
    assert rows(run, "judged.faithfulness") == [("external:eva", "measured", 0.5, "")]
    assert rows(run, "judged.conciseness") == [("external:eva", "measured", 0.75, "")]
    # The logs have no database, so that what EVA says of the task is all that is known.
    assert rows(run, "outcome.task_completion") == [
        ("(computed)", "unmeasured", None, "no_final_database"),
        ("external:eva", "measured", 1.0, ""),
    ]
    # Task 1, faithfulness 0.5 and speech 0.96 reach 1, 0.5 and 0.95.
    assert rows(run, "eva.a_pass") == [("(computed)", "measured", 1.0, "")]
    assert rows(run, "eva.a_mean") == [("(computed)", "measured", pytest.approx((1 + 0.5 + 0.96) / 3), "")]
    # Turn-taking is computed from the sound, and what is computed counts before what EVA says of it.
    assert ("external:eva", "measured", 0.9, "") in rows(run, "voice.turn_taking", "eva")
    (call / "metrics.json").unlink()
    taking = run_of(call, "voice.turn_taking@eva", "without")["voice.turn_taking@eva"].value
    assert taking is not None
    assert rows(run, "eva.x_mean") == [("(computed)", "measured", pytest.approx((1 + taking + 0.75) / 3), "")]


def test_an_error_is_no_zero_and_a_skipped_score_is_no_pass(call: Path) -> None:
    failed = score(0.0, 0.0, error="judge timed out")
    skipped = score(None, None, skipped=True)
    write(call, GOOD | {"faithfulness": failed, "agent_speech_fidelity": skipped})
    run = run_of(call)
    assert rows(run, "judged.faithfulness") == [("external:eva", "error", None, "rater_failed")]
    (row,) = [row for row in run.scores() if row.metric == "judged.faithfulness"]
    assert row.observation.detail == "judge timed out"
    # EVA writes "skipped" also where the answer of its judge could not be read: that is not "nothing to rate".
    assert rows(run, "judged.agent_speech_fidelity") == [("external:eva", "unmeasured", None, "skipped_by_rater")]
    assert rows(run, "eva.a_pass") == [("(computed)", "unmeasured", None, "input_rater_failed")]
    assert run["judged.faithfulness"].value is None


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (score(3.0, None), ("measured", 1.0, "")),  # on its own scale, 1 to 3
        (score(2.0, 0.5), ("measured", 0.5, "")),
        (score(1.0, 1.0), ("error", None, "rater_failed")),  # the worst of 1 to 3, and the best of 0 to 1?
        (score(5.0, None), ("unmeasured", None, "not_on_scale")),
        (score(None, 2.0), ("unmeasured", None, "not_on_scale")),
        (score(None, None), ("unmeasured", None, "skipped_by_rater")),
        ("broken", ("error", None, "rater_failed")),
    ],
)
def test_the_scale_of_a_score(call: Path, entry: Any, expected: tuple[str, float | None, str]) -> None:
    write(call, {"faithfulness": entry, "conciseness": score(3.0, 1.0)})
    ((judge, *found),) = rows(run_of(call), "judged.faithfulness")
    assert (judge, tuple(found)) == ("external:eva", expected)


def test_parts_of_a_score_are_parts_of_the_metric(call: Path) -> None:
    parts = {"hallucination_rate": score(1.0, 1.0), "violating_policies_rate": score(0.0, 0.0)}
    entities = {"date_accuracy": score(0.5, 0.5)}
    write(
        call,
        {
            "faithfulness": score(2.0, 0.5, sub_metrics=parts),
            "transcription_accuracy_key_entities": score(0.5, 0.5, sub_metrics=entities),
        },
    )
    run = run_of(call, "judged")
    flagged = {row.subject.id: row.value for row in run.scores() if row.metric == "judged.faithfulness.flagged"}
    assert flagged == {"hallucination": 1.0, "violating_policies": 0.0}
    by_type = {(row.subject.kind, row.subject.id): row.value for row in run.scores() if row.metric.endswith(".by_type")}
    assert by_type == {("entity_type", "date"): 0.5}


def test_what_is_not_a_metric_of_ours_is_noted_and_not_lost(call: Path) -> None:
    write(call, GOOD | {"charm": score(1.0, 1.0), "stt_wer": score(0.2, 0.8)})
    stream = read(call.parents[1])
    (conversation,) = stream
    assert stream.report.set_aside["verdict_of_unknown_metric"].count == 1
    assert "charm" in stream.report.set_aside["verdict_of_unknown_metric"].examples[0]
    assert stream.report.ignored["verdict_kept_as_label"] == 1
    assert {label.name for label in conversation.labels} >= {"charm", "stt_wer"}


def test_the_scores_of_another_record_are_not_used(call: Path) -> None:
    write(call, GOOD, record="r-2")
    stream = read(call.parents[1])
    (conversation,) = stream
    assert conversation.labels == ()
    assert "r-2" in stream.report.set_aside["verdict_without_conversation"].examples[0]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"record_id": "r-1"}', '{"record_id": "r-1", "metrics": []}'])
def test_a_broken_file_costs_its_verdicts_only(call: Path, content: str) -> None:
    (call / "metrics.json").write_text(content)
    stream = read(call.parents[1])
    (conversation,) = stream
    assert conversation.labels == ()
    assert conversation.timeline
    assert stream.report.set_aside or stream.report.repaired


def test_every_name_is_a_metric_of_ours() -> None:
    names = {name.partition(".")[2] for name in (declared.name for declared in installed().declared.values())}
    assert names >= NATIVE_SCALES.keys()
    assert not COMPUTED_HERE & NATIVE_SCALES.keys()
    assert len(COMPUTED_HERE | NATIVE_SCALES.keys()) == 18  # all that EVA registers


# Tables


def chats(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    lines = []
    for id in ("a", "b", "c"):
        said = [("user", "Hello?"), ("assistant", "Yes."), ("user", "And?"), ("assistant", "No.")]
        timeline = [
            {"type": "utterance", "seq": number, "speaker": who, "intended": {"text": text}}
            for number, (who, text) in enumerate(said)
        ]
        people = [{"id": "user", "role": "user"}, {"id": "assistant", "role": "assistant"}]
        lines.append({"schema": "convoscope.conversation/1", "id": id, "participants": people, "timeline": timeline})
    (folder / "chats.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    return folder


def table(folder: Path, text: str, name: str = "verdicts.csv") -> Run:
    chats(folder)
    (folder / name).write_text(text)
    return convoscope.score(folder, metrics="judged", out=folder.parent / "run", workers=1)


def by_conversation(run: Run, metric: str) -> dict[str, tuple[str, str, float | None, str]]:
    return {
        f"{row.conversation}:{row.subject.id}": (row.judge, row.status, row.value, row.reason)
        for row in run.scores()
        if row.metric == metric and row.judge != "(computed)"
    }


def test_a_table_of_verdicts(tmp_path: Path) -> None:
    text = (
        "conversation_id,turn,metric,score,scale,judge,error,notes\n"
        "a,,faithfulness,3,1-3,vendor,,fine\n"
        "b,,judged.faithfulness,2,1-3,vendor,,\n"
        "c,,faithfulness,,1-3,vendor,rate limit,\n"
        "a,1,conciseness,1,0-1,vendor,,\n"
        "a,2,conciseness,0,0-1,vendor,,\n"
        "b,,conciseness,n/a,,vendor,,\n"
    )
    run = table(tmp_path / "logs", text)
    assert by_conversation(run, "judged.faithfulness") == {
        "a:": ("external:vendor", "measured", 1.0, ""),
        "b:": ("external:vendor", "measured", 0.5, ""),  # (2 − 1) ÷ 2
        "c:": ("external:vendor", "error", None, "rater_failed"),
    }
    assert by_conversation(run, "judged.conciseness") == {
        "a:1": ("external:vendor", "measured", 1.0, ""),
        "a:2": ("external:vendor", "measured", 0.0, ""),
        "b:": ("external:vendor", "unmeasured", None, "skipped_by_rater"),
    }


def test_ratings_without_their_scale_are_refused(tmp_path: Path) -> None:
    """1 is the worst of 1 to 3: read as 1 of 0 to 1 it would be the best, and the others would be lost."""
    text = "conversation,metric,value,judge\na,faithfulness,1,v\nb,faithfulness,2,v\nc,faithfulness,1,other\n"
    found = by_conversation(table(tmp_path / "logs", text), "judged.faithfulness")
    assert found == {
        "a:": ("external:v", "unmeasured", None, "not_on_scale"),
        "b:": ("external:v", "unmeasured", None, "not_on_scale"),
        "c:": ("external:other", "measured", 1.0, ""),  # its file has no value above 1: from 0 to 1, as documented
    }


def test_a_score_of_a_1_to_3_metric_needs_its_scale(tmp_path: Path) -> None:
    text = "conversation,metric,score\na,faithfulness,1\nb,user_behavioral_fidelity,1\n"
    run = table(tmp_path / "logs", text)
    assert by_conversation(run, "judged.faithfulness")["a:"][1:] == ("unmeasured", None, "not_on_scale")
    # 0 or 1 is all that this one has. Without a column for it, the file names the rater.
    assert by_conversation(run, "judged.user_behavioral_fidelity")["b:"] == ("external:verdicts", "measured", 1.0, "")


def test_rows_that_match_nothing_are_noted(tmp_path: Path) -> None:
    text = (
        "conversation,turn,metric,normalised,rater\n"
        "a,,faithfulness,0.5,v\n"
        "zz,,faithfulness,0.5,v\n"
        "a,first,conciseness,1,v\n"
        ",,conciseness,1,v\n"
        "a,,charm,1,v\n"
        "a,99,conciseness,1,v\n"
        "too,few\n"
    )
    run = table(tmp_path / "logs", text)
    aside = run.read_report.set_aside
    assert aside["verdict_without_conversation"].count == 1
    assert "zz" in aside["verdict_without_conversation"].examples[0]
    assert aside["verdict_unreadable"].count == 3  # a turn that is no number, no conversation, too few cells
    assert aside["verdict_of_unknown_metric"].count == 1
    assert by_conversation(run, "judged.conciseness") == {"a:99": ("external:v", "unmeasured", None, "no_such_turn")}


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    text = "conversation,metric,normalised,judge\na,faithfulness,0.5,<script>alert(1)</script>\na,'; DROP TABLE x,1,v\n"
    run = table(tmp_path / "logs", text)
    assert by_conversation(run, "judged.faithfulness")["a:"][2] == 0.5
    assert "<script>alert(1)" not in (run.folder / "report.html").read_text()
