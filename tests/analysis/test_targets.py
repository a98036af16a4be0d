"""Targets: what a text means, what a figure makes of it, and what a run keeps of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from convoscope.analysis.targets import LABELS, Check, check, checks, figure_name, run_checks, tally_text, target_text
from convoscope.cli.options import Targets
from convoscope.conversation import Conversation
from convoscope.errors import RunError, UsageError
from convoscope.metrics import CONVERSATION, HIGHER, LOWER, Observation, Target, counted, measured, metric, unmeasured
from convoscope.metrics.registry import installed
from convoscope.report.junit import junit
from convoscope.report.page import write_page
from convoscope.report.run_markdown import markdown
from convoscope.runs import make as making
from convoscope.runs.run import Run
from convoscope.runs.summary import describe
from convoscope.runs.targets import figure_names, given_target, kept_target
from convoscope.scores.reducers import COUNTS, POOLED_COUNTS, Reduce, percentile
from convoscope.statistics.summary import Figure
from support import figures
from support.chats import chat, user
from support.generated import FEW, write_lines
from support.pages import page_facts

UNITS = {
    "tools.success": "share",
    "answer.f1": "ratio",
    "answer.f1@loose": "ratio",
    "timing.response_latency": "s",
    "timing.response_latency p95": "s",
    "conversation.turns": "count",
    "first.same": "count",
    "second.same": "count",
}


def figure(value: float | None, low: float | None = None, high: float | None = None, **facts: Any) -> Figure:
    return figures.figure("test.it", value, low, high, **facts)


class TestTexts:
    @pytest.mark.parametrize(
        ("text", "name", "comparison", "value"),
        [
            ("tools.success>=0.9", "tools.success", ">=", 0.9),
            ("  tools.success  >=  90 %  ", "tools.success", ">=", 0.9),
            ("success >= 99.9%", "tools.success", ">=", 0.999),  # 99.9 / 100 in doubles would be a little more
            ("success ≥ 90%", "tools.success", ">=", 0.9),
            ("success < 1", "tools.success", "<", 1.0),
            ("timing.response_latency p95<2", "timing.response_latency p95", "<", 2.0),
            ("response_latency  p95 <= 2.5 s", "timing.response_latency p95", "<=", 2.5),
            ("response_latency ≤ 1e1", "timing.response_latency", "<=", 10.0),
            ("answer.f1 > 0.8", "answer.f1", ">", 0.8),
            ("f1 > 80%", "answer.f1", ">", 0.8),
            ("f1_scorer > .8", "answer.f1", ">", 0.8),
            ("f1@loose > .8", "answer.f1@loose", ">", 0.8),
            ("turns > -1.", "conversation.turns", ">", -1.0),
        ],
    )
    def test_mean(self, text: str, name: str, comparison: str, value: float) -> None:
        found = given_target(text, UNITS)
        assert (found.figure, found.target.comparison, found.target.value) == (name, comparison, value)
        assert kept_target(found.text) == found

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "success",  # what is left of success>=0.9 without quotes
            "success >=",
            ">= 0.9",
            "success = 0.9",
            "success == 0.9",
            "success => 0.9",
            "success >= 0,9",
            "success >= ninety",
            "success >= nan",
            "success >= inf",
            "success >= 1e999",
            "success >= 1e99999999999999999999",
            "success >= 0.9 >= 0.8",
            "success >= 0.9.1",
            "0.5 < success < 0.9",
            "success >= ٩",
        ],
    )
    def test_that_are_no_targets_are_refused(self, text: str) -> None:
        with pytest.raises(UsageError):
            given_target(text, UNITS)

    def test_the_error_shows_one_that_works_in_quotes(self) -> None:
        with pytest.raises(UsageError, match=r"in quotes: 'tools\.success >= 90%'"):
            given_target("tools.success", UNITS)

    def test_an_unknown_figure_gets_the_nearest_ones(self) -> None:
        with pytest.raises(UsageError) as caught:
            given_target("response_latency p99 < 2", UNITS)
        assert caught.value.message == "no figure is called 'response_latency p99'"
        assert caught.value.hint.startswith("did you mean timing.response_latency p95 or ")

    @pytest.mark.parametrize(
        ("typed", "meant"),
        [
            ("sucess", "tools.success or outcome.success"),  # both end in what was meant
            ("tool.success", "tools.success or outcome.success"),
            ("latency p95", "timing.response_latency p95"),
            ("truns", "conversation.turns"),
        ],
    )
    def test_the_nearest_whole_or_last_part_comes_first(self, typed: str, meant: str) -> None:
        units = {**UNITS, "outcome.success": "share"}
        with pytest.raises(UsageError) as caught:
            given_target(f"{typed} > 0", units)
        assert caught.value.hint == f"did you mean {meant}?"

    def test_the_examples_of_the_help_are_targets(self) -> None:
        every = {name: one.unit for one in installed().declared.values() for name in figure_names(describe(one))}
        (option,) = Targets.__metadata__
        examples = re.findall("'([^']+)'", option.help)
        assert [given_target(example, every).figure for example in examples] == [
            "tools.success",
            "timing.response_latency p95",
        ]

    def test_a_name_that_is_near_to_none_lists_a_few_or_says_where_they_are(self) -> None:
        with pytest.raises(UsageError) as caught:
            given_target("x > 1", {"a.success": "share", "b.turns": "count"})
        assert caught.value.hint == "there is a.success, b.turns"
        with pytest.raises(UsageError) as caught:
            given_target("x > 1", {f"many.m{number:03d}": "count" for number in range(500)})
        assert caught.value.hint == "`convoscope metrics` lists the ones there are"

    def test_a_name_of_two_families_must_be_whole(self) -> None:
        with pytest.raises(UsageError, match=r"could be first\.same, second\.same"):
            given_target("same > 1", UNITS)
        assert given_target("second.same > 1", UNITS).figure == "second.same"

    def test_a_family_is_not_a_figure(self) -> None:
        with pytest.raises(UsageError, match="no figure is called 'answer'"):
            given_target("answer > 0.5", UNITS)

    @pytest.mark.parametrize(
        "text", ["response_latency < 90%", "turns > 10%", "success > 2 s", "response_latency < 2 m"]
    )
    def test_another_unit_is_refused(self, text: str) -> None:
        with pytest.raises(UsageError, match="its unit is"):
            given_target(text, UNITS)

    def test_a_share_of_90_is_refused_because_it_could_never_be_met(self) -> None:
        with pytest.raises(UsageError, match="write 90%"):
            given_target("success >= 90", UNITS)


class TestVerdicts:
    @pytest.mark.parametrize(
        ("value", "low", "high", "comparison", "outcome", "sure"),
        [
            (0.95, 0.91, 0.99, ">=", "met", True),
            (0.95, 0.90, 0.99, ">=", "met", True),  # 0.90 itself is enough
            (0.95, 0.90, 0.99, ">", "met", False),  # 0.90 itself is not
            (0.95, 0.85, 0.99, ">=", "met", False),
            (0.90, 0.85, 0.95, ">=", "met", False),
            (0.90, 0.85, 0.95, ">", "missed", False),
            (0.80, 0.70, 0.89, ">=", "missed", True),
            (0.80, 0.70, 0.90, ">=", "missed", False),
            (0.80, 0.70, 0.90, ">", "missed", True),
            (0.80, 0.70, 0.89, "<", "met", True),
            (0.80, 0.70, 0.90, "<", "met", False),
            (0.80, 0.70, 0.90, "<=", "met", True),
            (0.95, 0.91, 0.99, "<=", "missed", True),
            (0.95, 0.90, 0.99, "<", "missed", True),
        ],
    )
    def test_say_the_side_and_whether_the_whole_interval_is_there(
        self, value: float, low: float, high: float, comparison: Any, outcome: str, sure: bool
    ) -> None:
        verdict = check(figure(value, low, high), Target(comparison, 0.9))
        assert (LABELS[verdict.outcome], verdict.sure) == (outcome, sure)
        result = outcome if sure else f"{outcome}, but the interval reaches across it"
        assert Check(figure(value, low, high), Target(comparison, 0.9), verdict).result == result

    def test_without_an_interval_nothing_is_sure(self) -> None:
        target = Target(">=", 0.9)
        for value, label in ((1.0, "met"), (0.0, "missed")):
            verdict = check(figure(value), target)
            assert (LABELS[verdict.outcome], verdict.sure) == (label, False)
            assert Check(figure(value), target, verdict).result == f"{label}, but there is no interval"

    @pytest.mark.parametrize("comparison", [">", ">=", "<", "<="])
    def test_without_a_value_nothing_is_met_and_nothing_missed(self, comparison: Any) -> None:
        unmeasured, target = figure(None, reason="no_ground_truth"), Target(comparison, 0.9)
        verdict = check(unmeasured, target)
        assert verdict == ("undetermined", "no ground truth", False)
        assert Check(unmeasured, target, verdict).result == "undetermined: no ground truth"


class TestTextOfATarget:
    @pytest.mark.parametrize(
        ("comparison", "value", "unit", "text"),
        [
            (">=", 0.9, "share", "≥ 90.0 %"),
            ("<", 2.0, "s", "< 2.00 s"),
            ("<=", 3.0, "count", "≤ 3"),
            (">", 0.8, "ratio", "> 0.800"),
            (">", 1234.5, "words", "> 1,234.50 words"),
            (">=", 0.9995, "share", "≥ 99.95 %"),  # not 100.0 %
            ("<", 0.001, "s", "< 0.001 s"),  # not 0.00 s
        ],
    )
    def test_reads_as_values_do_and_never_as_another_target(
        self, comparison: Any, value: float, unit: str, text: str
    ) -> None:
        assert target_text(Target(comparison, value), unit) == text


@metric("test.judged", version=1, observes=CONVERSATION, unit="points", better=HIGHER, target=Target(">=", 4.0))
def judged(conversation: Conversation) -> Iterator[Observation]:
    """What do the judges say?"""
    for judge, value in {"p/a": 2, "p/b": 8}.items():
        if judge[-1] in conversation.id:
            yield measured(conversation, value, judge=judge)


@metric("test.silent", version=1, observes=CONVERSATION, unit="share", better=LOWER, target=Target("<", 0.5))
def silent(conversation: Conversation) -> Observation:
    """What cannot be known?"""
    return unmeasured(conversation, "no_ground_truth")


@metric(
    "test.pooled",
    version=1,
    observes=CONVERSATION,
    unit="ratio",
    better=HIGHER,
    reduce=Reduce(COUNTS, POOLED_COUNTS),
    also={"p50": percentile(50)},
)
def pooled(conversation: Conversation) -> Observation:
    """Never asked: only its names matter."""
    raise NotImplementedError


def score(folder: Path, ids: tuple[str, ...], **settings: Any) -> Run:
    conversations = [chat(user("hi"), id=id) for id in ids]
    return making.make_run(conversations, out=folder / "run", workers=1, **settings)


class TestChecks:
    def test_of_a_panel_the_panel_is_held_against_the_target(self, tmp_path: Path) -> None:
        (found,) = checks(score(tmp_path, ("ab1", "ab2"), metrics=[judged]).summary, trust_judges=True)
        assert found.figure.judge.startswith("panel:")
        assert (found.figure.value, found.label, found.source) == (5.0, "met", "declared")  # (2 + 8) ÷ 2

    def test_without_a_panel_each_judge_is(self, tmp_path: Path) -> None:
        found = checks(score(tmp_path, ("a1", "b1"), metrics=[judged]).summary, trust_judges=True)
        assert [(one.figure.judge, one.figure.value) for one in found] == [("p/a", 2.0), ("p/b", 8.0)]
        # Each judge says nothing of one of the two conversations.
        assert [one.result for one in found] == ["undetermined: 50 % of the verdicts are missing"] * 2

    def test_a_given_target_replaces_the_declared_one_of_its_figure_only(self, tmp_path: Path) -> None:
        summary = score(tmp_path, ("ab",), metrics=[judged, silent]).summary
        found = checks(summary, ["judged >= 6", "judged < 10"], trust_judges=True)
        assert [(one.target, one.label, one.source) for one in found] == [
            (Target(">=", 6.0), "missed", "given"),
            (Target("<", 10.0), "met", "given"),
            (Target("<", 0.5), "undetermined", "declared"),
        ]
        assert tally_text(found) == "3 targets: 1 met, 1 missed, 1 undetermined"

    def test_a_judge_that_is_not_calibrated_decides_nothing(self, tmp_path: Path) -> None:
        (decided,) = checks(score(tmp_path, ("ab1", "ab2"), metrics=[judged]).summary)
        assert decided.label == "undetermined"
        assert re.fullmatch(r"the judge panel:\w+ is not calibrated \(--trust-judge .*\)", decided.verdict.reason)

    def test_the_same_twice_is_one(self, tmp_path: Path) -> None:
        summary = score(tmp_path, ("ab",), metrics=[judged]).summary
        assert len(checks(summary, ["judged >= 6", "test.judged>=6.0 points"])) == 1

    def test_no_target_is_said_as_such(self) -> None:
        assert tally_text([]) == "no target: nothing was checked"

    def test_an_unknown_figure_of_the_run_is_refused(self, tmp_path: Path) -> None:
        summary = score(tmp_path, ("ab",), metrics=[judged]).summary
        with pytest.raises(UsageError, match=r"there is test\.judged"):
            checks(summary, ["tools.success > 0.9"])


@metric("test.length", version=1, observes=CONVERSATION, unit="count", better=LOWER)
def length(conversation: Conversation) -> Observation:
    """How long is the name of the conversation?"""
    if conversation.id.startswith("?"):
        return unmeasured(conversation, "no_name")
    return measured(conversation, len(conversation.id))


def grouped(folder: Path, **settings: Any) -> Run:
    """By language: de has lengths 1 and 3, the mean is 2; "a, b" has 5; fr has none that is measured."""
    languages = {"x": "de", "xxx": "de", "xxxxx": "a, b", "?": "fr"}
    conversations = [chat(user("hi"), id=id, dimensions={"language": one}) for id, one in languages.items()]
    return making.make_run(
        conversations, out=folder / "run", workers=1, metrics=[length, silent], by=[["language"]], **settings
    )


class TestGroups:
    @pytest.mark.parametrize(
        ("text", "kept"),
        [
            ("turns[b=2,a=1]>3", "conversation.turns[a=1, b=2] > 3"),
            ("turns [ a = x y ] > 3", "conversation.turns[a=x y] > 3"),
            ('turns[a="x, [y] = \\"z\\""] > 3', 'conversation.turns[a="x, [y] = \\"z\\""] > 3'),
            ("turns[a=] > 3", 'conversation.turns[a=""] > 3'),
            ('turns[a="plain"] > 3', "conversation.turns[a=plain] > 3"),
            ("response_latency p95[state=greet] < 2 s", "timing.response_latency p95[state=greet] < 2"),
        ],
    )
    def test_stand_in_brackets_and_are_kept_in_one_way(self, text: str, kept: str) -> None:
        target = given_target(text, UNITS)
        assert target.text == kept
        assert kept_target(kept) == target

    @pytest.mark.parametrize(
        "text", ["turns[] > 3", "turns[a] > 3", "turns[a=1,a=2] > 3", "turns[=1] > 3", 'turns[a="\\q"] > 3']
    )
    def test_what_names_no_group_is_refused(self, text: str) -> None:
        with pytest.raises(UsageError, match="is not a target"):
            given_target(text, UNITS)

    def test_are_held_against_the_figure_of_the_group(self, tmp_path: Path) -> None:
        wanted = ["length[language=de] <= 2", 'length[language="a, b"] <= 4', "length <= 4"]
        run = grouped(tmp_path, targets=wanted)
        assert [(one.name, one.figure.value, one.label) for one in run_checks(run) if one.source != "declared"] == [
            ("test.length", 3.0, "met"),  # (1 + 3 + 5) ÷ 3
            ('test.length[language="a, b"]', 5.0, "missed"),
            ("test.length[language=de]", 2.0, "met"),
        ]

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("length[language=fr] <= 4", "undetermined: no name"),
            ("length[language=es] <= 4", "undetermined: no such group"),
            ("silent[language=de] < 1", "undetermined: no ground truth"),
        ],
    )
    def test_without_a_value_are_undetermined(self, tmp_path: Path, text: str, words: str) -> None:
        run = grouped(tmp_path, targets=[text])
        assert [one.result for one in run_checks(run) if one.by] == [words]

    def test_by_dimensions_that_nothing_is_grouped_by_are_refused_where_that_is_known(self, tmp_path: Path) -> None:
        run = grouped(tmp_path, targets=["length[tongue=de] <= 2"])
        assert [one.result for one in run_checks(run) if one.by] == ["undetermined: the run has no groups by tongue"]
        with pytest.raises(UsageError, match="no groups by tongue"):
            run_checks(run, ["length[tongue=de] <= 2"])

    def test_replace_only_the_targets_of_their_group(self, tmp_path: Path) -> None:
        run = grouped(tmp_path, targets=["length <= 4", "length[language=de] <= 2"])
        found = run_checks(run, ["length[language=de] < 2"])
        assert [(one.name, one.target.comparison, one.source) for one in found if one.source != "declared"] == [
            ("test.length", "<=", "recorded"),
            ("test.length[language=de]", "<", "given"),
        ]

    def test_stand_in_every_report(self, tmp_path: Path) -> None:
        run = grouped(tmp_path, targets=["length[language=de] < 2"])
        assert "- `test.length[language=de]` 2, target &lt; 2: " in markdown(run)
        case = next(one for one in ElementTree.fromstring(junit(run)).iter("testcase") if "[" in one.get("name", ""))
        assert case.get("name") == "test.length[language=de]"
        assert [one.tag for one in case] == ["failure"]
        assert "test.length[language=de]" in page_facts(write_page(run).path)


class TestARunKeepsItsTargets:
    def test_as_sorted_whole_texts(self, tmp_path: Path) -> None:
        logs = write_lines(tmp_path / "chats.jsonl", range(6))
        given = ["response_latency p95 < 2 s", "success>=90%", "tools.success >= 0.90"]
        run = making.make_run(logs, metrics=FEW, out=tmp_path / "run", workers=1, targets=given)
        kept = ["timing.response_latency p95 < 2", "tools.success >= 0.9"]
        assert run.receipt.config["targets"] == kept
        assert Run.open(run.folder).receipt.config["targets"] == kept
        assert [one.source for one in run_checks(run)] == ["recorded", "recorded"]

    def test_and_the_report_adds_and_replaces(self, tmp_path: Path) -> None:
        logs = write_lines(tmp_path / "chats.jsonl", range(6))
        kept = ["turns < 100", "turns > 0", "calls > 0"]
        run = making.make_run(logs, metrics=FEW, out=tmp_path / "run", workers=1, targets=kept)
        found = run_checks(run, ["turns < 1", "success > 0"])
        assert [(one.figure.metric, one.target, one.source) for one in found] == [
            ("conversation.turns", Target("<", 1.0), "given"),
            ("tools.calls", Target(">", 0.0), "recorded"),
            ("tools.success", Target(">", 0.0), "given"),
        ]

    def test_a_typo_fails_before_anything_is_read(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=r"did you mean tools\.success"):
            making.make_run(tmp_path / "not there", out=tmp_path / "run", targets=["tools.sucess > 0.9"])
        assert not list(tmp_path.iterdir())

    def test_a_target_for_a_metric_that_is_not_scored_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=r"there is answer\.f1"):
            making.make_run(tmp_path, out=tmp_path / "run", metrics=["f1"], targets=["success > 0.9"])

    def test_what_is_wished_for_changes_nothing_that_is_measured(self, tmp_path: Path) -> None:
        logs = write_lines(tmp_path / "chats.jsonl", range(20))
        without = making.make_run(logs, metrics=FEW, out=tmp_path / "a", workers=1)
        wished = making.make_run(logs, metrics=FEW, out=tmp_path / "b", workers=1, targets=["turns < 3"])
        assert "targets" not in without.receipt.config
        assert wished.receipt.config_hash != without.receipt.config_hash
        for part in ("metrics", "not_measured", "groups", "small_groups"):
            assert getattr(wished.summary, part) == getattr(without.summary, part)  # intervals, too

    def test_the_same_targets_in_other_words_open_the_same_run(self, tmp_path: Path) -> None:
        logs = write_lines(tmp_path / "chats.jsonl", range(6))
        first, again = (
            making.make_run(logs, metrics=FEW, out=tmp_path / "run", workers=1, targets=targets)
            for targets in (["success >= 90%", "turns<3"], ["turns < 3", "tools.success>=.9"])
        )
        assert again.receipt.run_id == first.receipt.run_id

    def test_one_for_a_figure_that_is_not_there_does_not_vanish(self, tmp_path: Path) -> None:
        run = score(tmp_path, ("ab",), metrics=[judged])
        run.receipt.config["targets"] = ["tools.success >= 0.9"]
        with pytest.raises(RunError, match=r"no figure tools\.success"):
            run_checks(run)

    def test_a_figure_that_did_not_come_leaves_its_target_undetermined(self, tmp_path: Path) -> None:
        @metric(
            "test.vast",
            version=1,
            observes=CONVERSATION,
            unit="ratio",
            better=HIGHER,
            reduce=Reduce(COUNTS, POOLED_COUNTS),
        )
        def vast(conversation: Conversation) -> Observation:
            """More than a double holds, once added up."""
            return counted(conversation, tp=4e307, fp=4e307, fn=0)

        run = score(tmp_path, ("a", "b"), metrics=[vast], targets=["vast precision > 0.5"])
        assert [one.reduction for one in run.summary.figures] == [""]
        (found,) = run_checks(run)
        assert found.figure.reduction == "precision"
        assert found.verdict == ("undetermined", "reduction failed", False)
        assert found.result == "undetermined: reduction failed"


def test_the_names_before_scoring_are_those_of_the_summary(tmp_path: Path) -> None:
    assert figure_names(describe(pooled)) == [
        "test.pooled",
        "test.pooled precision",
        "test.pooled recall",
        "test.pooled p50",
    ]
    run = making.make_run(write_lines(tmp_path / "chats.jsonl", range(3)), out=tmp_path / "run", workers=1)
    measured = {one.key for one in run.summary.metrics}
    names = {one.key: figure_names(describe(one)) for one in installed().to_score(None)}
    assert 10 < len(measured) < len(names)
    # A metric without a value has its headline alone, which says why.
    expected = [name for key, mine in names.items() for name in (mine if key in measured else mine[:1])]
    assert [figure_name(one) for one in run.summary.figures] == expected


@pytest.mark.parametrize("wanted", ["timing.response_latency p95 < 2", "timing.response_latency < 2"])
def test_a_target_for_what_was_not_measured_is_undetermined_for_the_reason_of_its_metric(
    wanted: str, tmp_path: Path
) -> None:
    logs = write_lines(tmp_path / "chats.jsonl", range(0, 9, 3))  # without times
    run = making.make_run(logs, metrics=FEW, out=tmp_path / "run", workers=1, targets=[wanted])
    (found,) = run_checks(run)
    assert figure_name(found.figure) == wanted.removesuffix(" < 2")
    assert (found.figure.value, found.figure.reason) == (None, "no_clock")
    assert found.verdict == ("undetermined", "no clock", False)
    assert found.result == "undetermined: no clock"
