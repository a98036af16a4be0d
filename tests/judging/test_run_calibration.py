"""What judges said in a run against labels of its conversations: nothing is asked, and no gate passes on a guess."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import convoscope
import convoscope.conversation
from convoscope.analysis.answer.make import rank_texts
from convoscope.analysis.calibration import calibrate_run, matched_entities
from convoscope.analysis.labelled_calls import LabelledEntity, read_labels
from convoscope.analysis.run_labels import plain_cell, read_run_labels, safe_cell
from convoscope.errors import InputError, UsageError
from convoscope.judging.calibrations import kept_calibrations
from convoscope.judging.rubrics import rubric_named
from convoscope.metrics import example
from convoscope.runs.reliability import reliability
from convoscope.runs.run import Run
from support.command_line import convoscope_here as command
from support.judge_server import JudgeServer, judge_server
from support.judged_runs import by_grade, call, judged_run, write_labels

METRIC = "judged.faithfulness"
ALL = [1 + index % 3 for index in range(60)]
"""Sixty calls, of each grade twenty."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[JudgeServer]:
    monkeypatch.setenv("CONVOSCOPE_CACHE", str(tmp_path / "cache"))
    with judge_server() as running:
        running.answer = by_grade
        yield running


def test_labels_of_a_run_by_hand(server: JudgeServer, tmp_path: Path) -> None:
    run = judged_run(tmp_path / "run", server.openai, [1, 1, 2, 3, 3, 3])
    asked = len(server.prompts)
    # People: 1 2 2 3 3 1; the judge said 1 1 2 3 3 3. They agree in 4 of 6.
    result = calibrate_run(run, read_run_labels(write_labels(tmp_path / "labels.jsonl", [1, 2, 2, 3, 3, 1])))
    (found,) = result.judges
    assert found.confusion == [[1, 0, 1], [1, 1, 0], [0, 0, 2]]
    assert (found.labels, found.accuracy) == (6, pytest.approx(4 / 6))
    # Weights |i − j|: observed 1 + 2 = 3. People 2 2 2, judge 2 1 3 of 6; by chance, as rows times columns:
    # 1: (1·1 + 3·2)·2 = 14, 2: (2·1 + 3·1)·2 = 10, 3: (2·2 + 1·1)·2 = 10, so 34 ÷ 6. Kappa = 1 − 18 ÷ 34.
    assert found.kappa == pytest.approx(16 / 34)
    # Below 2 fails: people fail 2, of which the judge passes 1 (rated 3); they pass 4, of which it fails 1.
    assert (found.wrongly_passed, found.wrongly_failed) == ((1, 2), (1, 4))
    assert found.judge == run[METRIC].judge
    assert found.verdict == "needs 44 more"
    assert len(server.prompts) == asked  # nothing was asked


def test_a_calibrated_judge_decides_a_gate_and_another_does_not(server: JudgeServer, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    judged_run(folder, server.openai, ALL)
    target = ("--target", f"{METRIC} >= 40%")
    # The mean of 0, 0.5 and 1 is 0.5: it would be met.
    before = command("report", folder, *target, "--junit", tmp_path / "junit.xml", "--markdown", tmp_path / "run.md")
    assert before.code == 3
    assert "undetermined: the judge" in before.out
    assert "is not calibrated (--trust-judge decides it anyway)" in before.out
    case = ElementTree.parse(tmp_path / "junit.xml").find(".//testcase[@classname='judged']/error")
    assert case is not None
    assert case.get("type") == "target undetermined"
    assert "not calibrated" in str(case.get("message"))
    assert "not calibrated" in (tmp_path / "run.md").read_text()
    (said,) = [one for one in command("report", folder, *target, "--json").json["targets"] if one["source"] == "given"]
    assert said["outcome"] == "undetermined"
    assert "not calibrated" in said["words"]
    # A failure is not decided either.
    assert command("report", folder, "--target", f"{METRIC} >= 90%").code == 3
    trusted = command("report", folder, *target, "--trust-judge", "--markdown", tmp_path / "trusted.md")
    assert trusted.code == 0
    (line,) = [one for one in trusted.out.splitlines() if one.startswith(f"target: {METRIC}")]
    # A target that only trust decides says so, whether it is met or missed.
    assert re.search(r": met, but .*the judge openai/tiny@\w+ is not calibrated \(--trust-judge\) \(", line)
    assert "not calibrated (--trust-judge)" in (tmp_path / "trusted.md").read_text()
    missed = command("report", folder, "--target", f"{METRIC} >= 90%", "--trust-judge")
    assert missed.code == 1
    assert re.search(r": missed, but .*not calibrated \(--trust-judge\)", missed.out)

    labels = write_labels(tmp_path / "labels.jsonl", ALL)
    done = command("judge", "calibrate", folder, "--labels", labels)
    assert (done.code, done.out.splitlines()[0]) == (0, "1 of 1 judged figure can be relied on.")
    after = command("report", folder, *target, "--trust-judge")
    assert (after.code, "not calibrated" in after.out) == (0, False)
    assert command("report", folder, *target).code == 0
    found = Run.open(folder).summary.calibrations
    assert [(one.metric, one.labels, one.kappa) for one in found] == [(METRIC, 60, 1.0)]


def test_a_call_below_a_target_says_whose_word_that_is(server: JudgeServer, tmp_path: Path) -> None:
    run = judged_run(tmp_path / "run", server.openai, [1, 3, 3], targets=f"{METRIC} >= 40%")
    (worst, *_) = run.worst()
    assert rank_texts(run, [worst]) == ["faithfulness 0.000, by a judge that is not calibrated"]


def is_believed(run: Run) -> bool:
    """Whether the one calibration that the run has is that of its judge."""
    [figure] = [one for one in run.summary.metrics if one.key == METRIC and not one.reduction]
    [agreement], known = run.summary.calibrations, reliability(run.summary, figure)
    assert known is not None
    assert (agreement.is_calibrated, agreement.judge == figure.judge) == (True, known.is_reliable)
    return known.is_reliable


def test_other_runs_find_the_calibration(server: JudgeServer, tmp_path: Path) -> None:
    judged_run(tmp_path / "first", server.openai, ALL)
    labels = write_labels(tmp_path / "labels.jsonl", ALL)
    assert command("judge", "calibrate", tmp_path / "first", "--labels", labels).code == 0
    assert len(kept_calibrations(tmp_path / "cache" / "calibration.json")) == 1
    other = judged_run(tmp_path / "other", server.openai, [3, 3, 1])
    assert is_believed(other)
    # Another rubric is another judge.
    rubric = tmp_path / "rubrics" / "faithfulness.md"
    rubric.parent.mkdir()
    text = command("judge", "rubrics", "faithfulness").out
    rubric.write_text(text.replace("version: 1", "version: 2").replace("You check", "You look"))
    third = judged_run(tmp_path / "third", server.openai, [3, 3, 1], rubrics=[rubric.parent])
    assert not is_believed(third)
    # So is another model.
    fourth = judged_run(tmp_path / "fourth", server.openai.replace("tiny", "small"), [3, 3, 1])
    assert not is_believed(fourth)


def test_scoring_again_takes_up_a_new_calibration(server: JudgeServer, tmp_path: Path) -> None:
    first = judged_run(tmp_path / "first", server.openai, ALL)
    second = judged_run(tmp_path / "second", server.openai, ALL)
    assert first.summary.calibrations == second.summary.calibrations == []
    labels = write_labels(tmp_path / "labels.jsonl", ALL)
    assert command("judge", "calibrate", tmp_path / "first", "--labels", labels).code == 0
    again = judged_run(tmp_path / "second", server.openai, ALL)
    assert [one.labels for one in again.summary.calibrations] == [60]
    assert [one.labels for one in Run.open(tmp_path / "second").summary.calibrations] == [60]


def test_the_marks_are_settings(server: JudgeServer, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    judged_run(folder, server.openai, ALL[:30])
    labels = write_labels(tmp_path / "labels.jsonl", ALL[:30])
    assert "needs 20 more" in command("judge", "calibrate", folder, "--labels", labels).out
    assert command("report", folder, "--target", f"{METRIC} >= 40%").code == 3
    held = command("judge", "calibrate", folder, "--labels", labels, "--least-labels", 30)
    assert "calibrated: 30 labels, and the whole interval of kappa above 0.4" in held.out
    assert command("report", folder, "--target", f"{METRIC} >= 40%").code == 0
    too_high = command("judge", "calibrate", folder, "--labels", labels, "--least-labels", 30, "--least-kappa", 1)
    assert "may be < 1" in too_high.out


def test_a_named_calibration_must_be_there(server: JudgeServer, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such calibration"):
        judged_run(tmp_path / "run", server.openai, [3], calibration=tmp_path / "nothing.json")


def test_a_figure_that_rests_on_a_judge_is_no_safer_than_the_judge(server: JudgeServer, tmp_path: Path) -> None:
    run = judged_run(tmp_path / "run", server.openai, ALL, metrics="eva.x_mean,eva.x_pass")
    judged = reliability(run.summary, run["eva.x_mean"])
    assert judged is not None
    assert not judged.is_reliable


def test_people_need_no_calibration_and_programs_do(tmp_path: Path) -> None:
    for kind, code in (("human", 0), ("external", 3)):
        label = {"name": "faithfulness", "value": 1.0, "rater_kind": kind, "rater": "ada", "subject": ""}
        calls = [example("user: Hello?", "assistant: Hello.", id=f"call-{n:02}", labels=[label]) for n in range(30)]
        folder = tmp_path / kind
        convoscope.score(calls, metrics=METRIC, out=folder, workers=1)
        assert command("report", folder, "--target", f"{METRIC} >= 90%").code == code


def test_a_program_that_judged_the_logs_can_be_calibrated_in_its_run_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONVOSCOPE_CACHE", str(tmp_path / "cache"))
    label = {"name": "faithfulness", "rater_kind": "external", "rater": "eva", "subject": ""}
    calls = [call(f"call-{n:02}", grade, labels=[{**label, "value": (grade - 1) / 2}]) for n, grade in enumerate(ALL)]
    for name in ("first", "second"):
        convoscope.score(calls, metrics=METRIC, out=tmp_path / name, workers=1)
    labels = write_labels(tmp_path / "labels.jsonl", ALL)
    assert "calibrated" in command("judge", "calibrate", tmp_path / "first", "--labels", labels).out
    target = ("--target", f"{METRIC} >= 40%")
    assert command("report", tmp_path / "first", *target).code == 0
    # Its name does not say which model and prompt it was.
    convoscope.score(calls, metrics=METRIC, out=tmp_path / "second", workers=1)
    assert command("report", tmp_path / "second", *target).code == 3


def test_many_labels_of_few_calls_are_not_enough(server: JudgeServer, tmp_path: Path) -> None:
    calls = [call(f"call-{n:02}", grade, dimensions={"scenario_id": f"s{n % 4}"}) for n, grade in enumerate(ALL)]
    run = convoscope.score(calls, judge=server.openai, metrics=METRIC, out=tmp_path / "run", workers=1)
    (found,) = calibrate_run(run, read_run_labels(write_labels(tmp_path / "labels.jsonl", ALL))).judges
    # Sixty labels that agree, of four scenarios.
    assert (found.labels, found.clusters, found.kappa_interval) == (60, 4, None)
    assert not found.is_calibrated


def test_labels_are_not_counted_twice(server: JudgeServer, tmp_path: Path) -> None:
    run = judged_run(tmp_path / "run", server.openai, ALL[:30])
    path = write_labels(tmp_path / "labels.jsonl", ALL[:30])
    # The file twice, and a second person who says the same.
    path.write_text(path.read_text() * 2 + path.read_text().replace("Ines", "Jon"))
    result = calibrate_run(run, read_run_labels(path))
    assert result.judges[0].labels == 30
    assert (result.raters, result.used, result.left_out) == (2, 60, {"repeats another row": 30})
    (people,) = result.people
    assert (people.labels, people.accuracy, people.kappa) == (30, 1.0, 1.0)


def test_nothing_is_dropped_silently(server: JudgeServer, tmp_path: Path) -> None:
    run = judged_run(tmp_path / "run", server.openai, [1, 2, 3])
    rows = [
        {"conversation": "call-00", "rubric": "faithfulness", "rating": 1},
        {"conversation": "call-01", "metric": METRIC, "value": 0.5, "version": rubric_named("faithfulness").version},
        {"conversation": "call-02", "rubric": "faithfulness", "rating": 3, "version": 70},
        {"conversation": "call-02", "rubric": "faithfulness", "rating": None},
        {"conversation": "elsewhere", "rubric": "faithfulness", "rating": 2},
        {"conversation": "call-02", "rubric": "speakability", "turn": 0, "rating": 1},
    ]
    path = tmp_path / "labels.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = calibrate_run(run, read_run_labels(path))
    assert (result.used, result.judges[0].labels) == (2, 2)
    assert result.left_out == {
        f"for version 70 of faithfulness; it is {rubric_named('faithfulness').version} now": 1,
        "without a rating": 1,
        "conversation is not in the run": 1,
        "no judge was asked about speakability": 1,
    }


def test_labels_that_the_judge_did_not_answer_are_said(server: JudgeServer, tmp_path: Path) -> None:
    def unfounded(prompt: str, schema: dict[str, Any]) -> Any:
        answer = by_grade(prompt, schema)
        if "call-00" in prompt:
            answer["dimensions"]["hallucination"]["quote"] = "words that were not said"
        return answer

    server.answer = unfounded
    run = judged_run(tmp_path / "run", server.openai, [1, 2, 3])
    (found,) = calibrate_run(run, read_run_labels(write_labels(tmp_path / "labels.jsonl", [1, 2, 3]))).judges
    assert (found.labels, found.unanswered) == (2, {"evidence_not_found": 1})
    assert "1 without an answer" in found.text


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"rubric": "faithfulness", "rating": 1}, "has no conversation"),
        ({"conversation": "a", "rating": 1}, "has no rubric"),
        ({"conversation": "a", "rubric": "faithful", "rating": 1}, "unknown rubric"),
        ({"conversation": "a", "rubric": "faithfulness", "rating": 4}, "scale from 1 to 3"),
        ({"conversation": "a", "rubric": "faithfulness", "rating": 2.5}, "scale from 1 to 3"),
        ({"conversation": "a", "rubric": "faithfulness", "rating": True}, "not a number"),
        ({"conversation": "a", "rubric": "faithfulness", "rating": "8/10"}, "not a number"),
        ({"conversation": "a", "rubric": "faithfulness", "value": 0.7}, "scale from 0 to 1"),
        ({"conversation": "a", "rubric": "faithfulness", "rating": "nan"}, "not a number"),
        ({"conversation": "a", "rubric": "faithfulness", "turn": 2, "rating": 1}, "leave the turn empty"),
        ({"conversation": "a", "rubric": "conciseness", "rating": 1}, "name one"),
    ],
)
def test_bad_labels_are_refused_with_their_line(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    path = tmp_path / "labels.jsonl"
    good = {"conversation": "b", "rubric": "faithfulness", "rating": 1}
    path.write_text(f"{json.dumps(good)}\n{json.dumps(row)}\n")
    with pytest.raises(InputError, match=message) as refused:
        read_run_labels(path)
    assert refused.value.line == 2


def test_one_person_says_one_thing(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("conversation;rubric;rating;rater\na;faithfulness;1;Ines\na;faithfulness;2;Ines\n")
    with pytest.raises(InputError, match="Ines rates a as 2, and as 1 in line 2"):
        read_run_labels(path)


def test_sheets_of_spreadsheets_are_read(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_bytes(
        '\ufeffconversation,turn,rubric,rating,rater,notes\r\n"a, b",0,conciseness,2,Ines,"two\nlines"\r\n'
        "'=1+1,,faithfulness,3,,\r\n".encode()
    )
    labels = read_run_labels(path).labels
    assert [(one.conversation, one.turn, one.rating, one.rater) for one in labels] == [
        ("a, b", "0", 2.0, "Ines"),
        ("=1+1", "", 3.0, "unnamed"),
    ]
    for text in ("=cmd()", "'quoted'", "plain", "-1", ""):
        assert plain_cell(safe_cell(text)) == text
    assert safe_cell("=cmd()") == "'=cmd()"


def test_a_panel_is_calibrated_for_itself(server: JudgeServer, tmp_path: Path) -> None:
    judges = [server.openai, server.openai.replace("tiny", "small")]
    run = judged_run(tmp_path / "run", judges, ALL)
    assert command("report", tmp_path / "run", "--target", f"{METRIC} >= 40%").code == 3
    result = calibrate_run(run, read_run_labels(write_labels(tmp_path / "labels.jsonl", ALL)))
    assert sorted(one.judge.partition("/")[0].partition(":")[0] for one in result.judges) == [
        "openai",
        "openai",
        "panel",
    ]
    assert all(one.is_calibrated for one in result.judges)


def test_a_run_without_judges_has_nothing_to_calibrate(tmp_path: Path) -> None:
    run = convoscope.score([call("call-00", 3)], metrics="conversation.turns", out=tmp_path / "run", workers=1)
    with pytest.raises(UsageError, match="no judge was asked"):
        calibrate_run(run, read_run_labels(write_labels(tmp_path / "labels.jsonl", [3])))


def test_entities_are_matched_one_by_one() -> None:
    labelled = [LabelledEntity("Z K three", True), LabelledEntity("Rodriguez", True), LabelledEntity("March 20", False)]
    judged = [{"value": "rodriguez"}, {"value": "ZK three F"}, {"value": "eight fifty five"}]
    found = [
        (one.value, None if other is None else other["value"]) for one, other in matched_entities(labelled, judged)
    ]
    # The code without its blanks is in the longer one; a time is no date.
    assert found == [("Z K three", "ZK three F"), ("Rodriguez", "rodriguez"), ("March 20", None)]


def test_faults_that_rest_on_absent_instructions_are_also_left_out(tmp_path: Path) -> None:
    trace = [{"event_type": "user_utterance", "utterance": "Hello?"}]
    records = [
        {"id": 1, "trace": trace, "expected_rating": 1, "failure_mode": ["violating_policies"]},
        {"id": 2, "trace": trace, "expected_rating": 3, "failure_mode": ["hallucination"]},
        {"id": 3, "trace": trace, "expected_rating": 2, "failure_mode": ["hallucination"], "invalid": True},
    ]
    path = tmp_path / "faithfulness.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    _, calls = read_labels(path, None)
    # The invalid one is dropped; a fault beside the best rating is none.
    assert [(call.part, call.labels[""].flags) for call in calls] == [
        ("policy cases", frozenset({"violating_policies"})),
        ("", frozenset()),
    ]


def test_a_judged_figure_says_its_judge_wherever_it_is_shown(server: JudgeServer, tmp_path: Path) -> None:
    log = tmp_path / "calls.jsonl"
    log.write_bytes(b"".join(convoscope.conversation.to_json(call(f"call-{n:02}", 1)) + b"\n" for n in range(12)))
    made = ("score", log, "--judge", server.openai, "--metrics", METRIC, "--out", tmp_path / "run", "--workers", 1)
    # All are rated worst, which would be bad; a judge of which nothing is known calls nothing bad.
    before = command(*made, "--target", f"{METRIC} >= 50%")
    assert before.code == 3
    assert "1 judged figure, not calibrated: `convoscope judge calibrate`" in before.out
    assert "undetermined: ≥ 0.500, not calibrated" in " ".join(before.out.split())
    assert "  bad" not in before.out
    labels = write_labels(tmp_path / "labels.jsonl", [1] * 11 + [2])
    assert command("judge", "calibrate", tmp_path / "run", "--labels", labels, "--least-labels", 12).code == 0
    # One rating of the judge alone: chance agrees as well, so kappa is 0.
    words = "not calibrated: κ 0.00 ("
    again = command(*made, "--target", f"{METRIC} >= 50%", "--full")
    assert again.code == 3
    assert words in again.out
    (figure,) = command(*made, "--target", f"{METRIC} >= 50%", "--json").json["answer"]["figures"]
    assert figure["judge"].startswith("openai/tiny@")
    assert figure["calibration"].startswith(words)
    trusted = command(
        "score", *made[1:-4], "--out", tmp_path / "trusted", "--target", f"{METRIC} >= 50%", "--trust-judge"
    )
    assert trusted.code == 1
    # The run keeps that its judge is trusted, as it keeps its targets.
    assert command("report", tmp_path / "trusted").code == 1
