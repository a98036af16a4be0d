"""JUnit XML: what a CI server makes of a run. Nothing unchecked may look as if it had passed."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings

from convoscope.conversation import Conversation, Outcome
from convoscope.errors import UsageError
from convoscope.metrics import CONVERSATION, HIGHER, GroupSample, Observation, derived, measured, metric
from convoscope.report.junit import junit, write_junit
from convoscope.runs.make import make_run as score
from convoscope.runs.run import Run
from support.called import called_run
from support.chats import chat, user
from support.generated import chat as record
from support.graded import grade
from support.hostile import NAMES, hostile_names, hostile_run


def cases(text: str) -> dict[str, ElementTree.Element]:
    """The test cases by name, after their counts were found to be right."""
    root = ElementTree.fromstring(text)
    assert root.tag == "testsuites"
    for suite in [root, *root]:
        held = list(suite.iter("testcase"))
        ends = Counter(child.tag for case in held for child in case)
        assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == [
            str(count) for count in (len(held), ends["failure"], ends["error"], ends["skipped"])
        ]
        assert (suite.get("time") is not None) == (suite is root)
    for suite in root:
        assert all(case.get("classname") == suite.get("name") for case in suite)
    return {case.get("name", ""): case for case in root.iter("testcase")}


def end(case: ElementTree.Element) -> str:
    """How a test ended: `failure`, `error`, `skipped`; `passed` where nothing is said against it."""
    return next((child.tag for child in case if child.tag != "system-out"), "passed")


def message(case: ElementTree.Element) -> str:
    return case[0].get("message", "")


def said(case: ElementTree.Element) -> str:
    return case[0].text or ""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return called_run(tmp_path_factory.mktemp("junit") / "mine")


class TestOutcomes:
    def test_without_any_target_one_test_says_that_nothing_was_checked(self, run: Run) -> None:
        found = cases(junit(run))
        assert {name: end(case) for name, case in found.items()} == {
            "run is valid": "passed",
            "every record was read": "passed",
            "targets": "skipped",
        }
        assert message(found["targets"]) == "no target: nothing was checked"

    def test_figures_without_a_target_are_no_tests(self, run: Run) -> None:
        found = cases(junit(run, ["tools.success >= 75%"]))
        assert sorted(found) == ["every record was read", "run is valid", "tools.success"]

    def test_a_met_target_passes(self, run: Run) -> None:
        case = cases(junit(run, ["tools.success >= 75%"]))["tools.success"]
        assert end(case) == "passed"
        assert said(case).startswith("target: ≥ 75.0 %: met, but the interval reaches across it\nvalue 75.0 %")

    def test_a_missed_target_fails_with_all_that_is_needed_to_go_on(self, run: Run) -> None:
        case = cases(junit(run, ["tools.success >= 90%"]))["tools.success"]
        assert end(case) == "failure"
        assert message(case).startswith("75.0 %, target ≥ 90.0 %: missed")
        assert case[0].get("type") == "target missed"
        lines = said(case).splitlines()
        assert lines[0].startswith("target: ≥ 90.0 %: missed")
        assert lines[1] == "value 75.0 % (0.75)"
        assert lines[2].startswith("95 % interval ")
        assert lines[3:5] == ["n 4", "coverage 100 %"]
        # c0 has 0 of 1; the others are at 100 %, and not what is wrong
        assert lines[5:] == ["lowest (target ≥ 90.0 %):", "  c0: 0.0 %"]

    def test_the_other_end_is_the_wrong_one_for_an_upper_bound(self, run: Run) -> None:
        case = cases(junit(run, ["tools.success < 50%"]))["tools.success"]
        assert said(case).splitlines()[5:] == [
            "highest (target < 50.0 %):",
            *(f"  c{number}: 100.0 %" for number in (1, 2, 3)),
        ]

    def test_a_target_that_nobody_can_tell_is_an_error(self, run: Run) -> None:
        case = cases(junit(run, ["answer.f1 > 0.8"]))["answer.f1"]
        assert (end(case), message(case)) == ("error", "target > 0.800: undetermined: no ground truth")

    def test_two_targets_of_a_figure_are_one_test_and_one_missed_is_enough(self, run: Run) -> None:
        found = cases(junit(run, ["success > 10%", "success > 90%"]))
        assert message(found["tools.success"]).startswith("75.0 %, target > 90.0 %: missed")
        assert end(cases(junit(run, ["success > 10%", "success < 90%"]))["tools.success"]) == "passed"

    def test_a_figure_beside_the_headline_has_a_test_where_it_has_a_target(self, run: Run) -> None:
        assert "conversation.turns p95" not in cases(junit(run))
        found = cases(junit(run, ["turns p95 < 2"]))
        assert end(found["conversation.turns p95"]) == "passed"
        assert "conversation.turns" not in found

    def test_a_figure_is_in_the_suite_of_its_family(self, run: Run) -> None:
        found = cases(junit(run, ["turns > 0", "tools.calls > 0", "f1 > 0"]))
        families = {name: case.get("classname") for name, case in found.items()}
        assert families == {
            "run is valid": "run",
            "every record was read": "reading",
            "answer.f1": "answer",
            "conversation.turns": "conversation",
            "tools.calls": "tools",
        }

    def test_a_part_of_a_metric_has_a_test_where_it_has_a_target(self, run: Run) -> None:
        part = "tools.tool_call_validity.rejected_rate"
        found = cases(junit(run, [f"{part} < 10%"]))
        assert end(found[part]) == "passed"  # one failed, and does not say that it was the call
        assert "tools.tool_call_validity.unknown_tool_rate" not in found

    def test_targets_that_the_run_was_scored_with_need_not_be_given_again(self, tmp_path: Path) -> None:
        run = score([chat(user("hi"))], metrics=["turns"], out=tmp_path / "run", workers=1, targets=["turns > 1"])
        assert end(cases(junit(run))["conversation.turns"]) == "failure"
        assert end(cases(junit(run, ["turns >= 1"]))["conversation.turns"]) == "passed"

    def test_a_metric_that_failed_is_an_error_without_a_target_too(self, tmp_path: Path) -> None:
        @metric("test.broken", version=1, observes=CONVERSATION, unit="share", better=HIGHER)
        def broken(conversation: Conversation) -> Observation:
            """What?"""
            raise RuntimeError("not today")

        run = score([chat(user("hi"))], metrics=[broken], out=tmp_path / "run", workers=1)
        for given_targets in ([], ["broken >= 0"], ["broken < 1"]):
            case = cases(junit(run, given_targets))["test.broken"]
            assert (end(case), message(case)) == ("error", "failed: metric raised")

    def test_a_missed_figure_over_groups_names_the_worst_of_the_run(self, tmp_path: Path) -> None:
        def best(samples: list[GroupSample]) -> float:
            """The best?"""
            return max(one.value or 0.0 for one in samples)

        @metric("test.length", version=1, observes=CONVERSATION, unit="count", better=HIGHER)
        def length(conversation: Conversation) -> Observation:
            """How long is the id?"""
            return measured(conversation, len(conversation.id))

        group = derived("test.best", version=1, over="group", unit="count", better=HIGHER, inputs=("test.length",))
        conversations = [chat(user("hi"), id=id) for id in ("a", "bb", "ccc")]
        run = score(conversations, metrics=[length, group(best)], out=tmp_path / "run", workers=1)
        case = cases(junit(run, ["test.best > 3"]))["test.best"]
        place = said(case).splitlines().index("worst conversations:")
        # both others have longer ones than a, and one has than bb
        assert said(case).splitlines()[place + 1 : place + 3] == [
            "  a: length 1, worse than 2 of 3",
            "  bb: length 2, worse than 1 of 3",
        ]

    def test_where_the_integration_broke_is_not_among_them(self, tmp_path: Path) -> None:
        assert worst_told(tmp_path, "no line <b>") == ["  a: quality 1.00 points, worse than 1 of 2"]


def worst_told(folder: Path, error: str) -> list[str]:
    """What a missed figure over groups says of the worst of two, in the better of which something broke."""

    def best(samples: list[GroupSample]) -> float:
        """The best?"""
        return max(one.value or 0.0 for one in samples)

    group = derived("test.best", version=1, over="group", unit="points", better=HIGHER, inputs=("test.quality",))
    conversations = [
        chat(user("hi"), id="a", extras={"quality": 1.0}),
        chat(user("hi"), id="b", extras={"quality": 2.0}, outcome=Outcome(error=error)),
    ]
    run = score(conversations, metrics=[grade("quality"), group(best)], out=folder / "run", workers=1)
    lines = said(cases(junit(run, ["test.best > 3"]))["test.best"]).splitlines()
    return lines[lines.index("worst conversations:") + 1 :]


class TestTheRunItself:
    def test_an_invalid_run_is_an_error(self, tmp_path: Path) -> None:
        run = score([chat(user("hi"))], metrics=["turns"], out=tmp_path / "run", workers=1)
        assert end(cases(junit(run))["run is valid"]) == "passed"
        run.invalidate("wrong logs", "runs/better")
        case = cases(junit(run))["run is valid"]
        assert end(case) == "error"
        assert message(case).endswith(": wrong logs, superseded by runs/better")

    def test_what_could_not_be_read_fails_with_its_place(self, tmp_path: Path) -> None:
        (tmp_path / "x.jsonl").write_text(json.dumps(record(1)) + "\n" + "{broken\n" * 30)
        run = score(tmp_path / "x.jsonl", metrics=["turns"], out=tmp_path / "run", workers=1)
        case = cases(junit(run))["every record was read"]
        assert (end(case), message(case).split(";")[0]) == ("failure", "30 problems in reading")
        lines = said(case).splitlines()
        assert lines[0].startswith("x.jsonl:2: ")
        assert lines[20:] == ["and 10 more; see read-report.json"]

    def test_all_read_passes(self, run: Run) -> None:
        assert end(cases(junit(run))["every record was read"]) == "passed"


class TestTheText:
    def test_is_the_same_every_time(self, run: Run) -> None:
        targets = ["success >= 90%", "f1 > 0.1"]
        assert junit(Run.open(run.folder), targets) == junit(run, targets)

    def test_hostile_names_stay_names(self, tmp_path: Path) -> None:
        run = hostile_run(tmp_path / "run", NAMES, ["judged > 1e9", "turns > 9"])
        run.invalidate(NAMES[18], NAMES[7])
        found = cases(junit(run))
        assert end(found["conversation.turns"]) == "failure"
        assert NAMES[7] in message(found["run is valid"])
        assert "\x1b" not in message(found["run is valid"])

    @settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(hostile_names)
    def test_whatever_the_names_it_is_xml(self, names: Sequence[str]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            run = hostile_run(Path(folder) / "run", names, ["turns > 9"])
            found = cases(junit(run))
        assert end(found["conversation.turns"]) == "failure"
        assert len(said(found["conversation.turns"]).splitlines()) < 20  # no name makes lines of its own


class TestWriting:
    def test_writes_the_whole(self, run: Run, tmp_path: Path) -> None:
        write_junit(run, tmp_path / "junit.xml", ["success > 0"])
        assert (tmp_path / "junit.xml").read_text(encoding="utf-8") == junit(run, ["success > 0"])
        assert [path.name for path in tmp_path.iterdir()] == ["junit.xml"]

    def test_or_nothing(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "junit.xml").write_text("before")
        with pytest.raises(UsageError):
            write_junit(run, tmp_path / "junit.xml", ["unheard.of > 1"])
        assert (tmp_path / "junit.xml").read_text() == "before"

    def test_a_missing_folder_is_said(self, run: Run, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="there is no folder"):
            write_junit(run, tmp_path / "nowhere" / "junit.xml")

    def test_a_folder_is_not_a_file(self, run: Run, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="is a folder"):
            write_junit(run, tmp_path)
