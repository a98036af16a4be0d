"""Several judges, several times, and a second look: what they do not agree about is counted, shown, and never lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from convoscope.analysis.targets import checks
from convoscope.conversation import Conversation
from convoscope.errors import UsageError
from convoscope.metrics import example
from convoscope.runs.make import make_run
from convoscope.runs.run import Run
from convoscope.scoring.second_look import drawn
from support.command_line import convoscope as command
from support.judge_server import JudgeServer, judge_server, status

FAITHFULNESS = "judged.faithfulness"


def calls(count: int) -> list[Conversation]:
    return [
        example("user: Hello?", f"assistant: Hello, this is desk {number}.", id=f"call-{number}")
        for number in range(count)
    ]


def rating(stars: int) -> Callable[[str, Mapping[str, Any]], Any]:
    """A judge that gives each call this rating from 1 to 3, in every dimension."""

    def answer(prompt: str, schema: Mapping[str, Any]) -> Any:
        quote = "Hello" if stars < 3 else ""
        dimension = {"explanation": "", "quote": quote, "flagged": stars < 3, "rating": stars}
        return {"dimensions": dict.fromkeys(schema["properties"]["dimensions"]["required"], dimension)}

    answer.__qualname__ = f"rating_{stars}"
    return answer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[JudgeServer]:
    monkeypatch.setenv("CONVOSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("convoscope.judging.limits.LONGEST_WAIT", 0.01)
    with judge_server() as running:
        yield running


def score(tmp_path: Path, count: int = 1, name: str = "run", **more: Any) -> Run:
    given: dict[str, Any] = {"metrics": FAITHFULNESS, "out": tmp_path / name, "workers": 1, "judge_cache": False}
    return make_run(calls(count), **{**given, **more})


class TestRepeats:
    def test_on_both_sides_of_the_pass_mark_a_verdict_is_undetermined(
        self, server: JudgeServer, tmp_path: Path
    ) -> None:
        # The mark is 2 of 1 to 3. The first call gets 3, 1, 3; the second one 3, 2, 3.
        given = {"desk 0": iter([3, 1, 3]), "desk 1": iter([3, 2, 3])}
        server.answer = lambda prompt, schema: rating(next(given[next(desk for desk in given if desk in prompt)]))(
            prompt, schema
        )
        run = score(tmp_path, 2, judge=server.openai, repeats=3)
        straddling, settled = list(run.scores(FAITHFULNESS))
        assert (straddling.status, straddling.value, straddling.reason) == ("unmeasured", None, "repeats_straddle")
        assert sorted(straddling.observation.details["repeats"]) == [0.0, 1.0, 1.0]
        assert straddling.observation.details["spread"] == 1.0
        assert settled.value == pytest.approx(2.5 / 3)  # 1, 0.5 and 1
        figure = run[FAITHFULNESS]
        # The call is not dropped in silence: half of the calls have a value, and the other may be worth 0 or 1.
        assert (figure.samples_total, figure.samples_measured, figure.coverage) == (2, 1, 0.5)
        assert figure.skipped_reasons == {"repeats_straddle": 1}
        assert figure.bounds == pytest.approx((2.5 / 6, 5.5 / 6))
        judging = run.summary.judging
        assert judging is not None
        [repeated] = judging.repeated
        assert (repeated.n, repeated.differ, repeated.straddle, repeated.mean_spread) == (2, 2, 1, 0.75)

    def test_a_gate_does_not_pass_on_what_is_left(self, server: JudgeServer, tmp_path: Path) -> None:
        given = {"desk 0": iter([3, 1]), "desk 1": iter([3, 3])}
        server.answer = lambda prompt, schema: rating(next(given[next(desk for desk in given if desk in prompt)]))(
            prompt, schema
        )
        run = score(tmp_path, 2, judge=server.openai, repeats=2)
        # The call that is left has 1.0; the other may be worth 0: then the mean is 0.5.
        assert run[FAITHFULNESS].value == 1.0
        [high] = checks(run.summary, [f"{FAITHFULNESS} >= 0.8"], trust_judges=True)
        assert high.verdict.outcome == "undetermined"
        assert "between 0.500 and 1.000" in high.result
        [low] = checks(run.summary, [f"{FAITHFULNESS} >= 0.5"], trust_judges=True)
        assert low.verdict.outcome == "passed"

    def test_workers_ask_as_often(self, server: JudgeServer, tmp_path: Path) -> None:
        log = tmp_path / "logs"
        log.mkdir()
        for number in range(4):
            messages = [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": f"Desk {number}."}]
            (log / f"{number}.json").write_text(json.dumps({"messages": messages}))
        make_run(
            log, judge=server.openai, metrics=FAITHFULNESS, out=tmp_path / "run", workers=2, repeats=3, part_bytes=1
        )
        assert len(server.prompts) == 12


class TestPanel:
    @pytest.mark.parametrize(
        ("panel", "value"),
        [
            ("median", 0.5),
            ("mean", 0.5),
            ("majority_vote", 1.0),  # 3 and 2 pass at 2, 1 does not
            ("consensus", 0.0),
            ("min", 0.0),
            ("max", 1.0),
        ],
    )
    def test_each_way_to_one_score(self, tmp_path: Path, panel: str, value: float) -> None:
        run = score(tmp_path, judge=[rating(1), rating(2), rating(3)], panel=panel)
        figure = run[FAITHFULNESS]
        assert figure.judge.startswith("panel:")
        assert figure.value == value
        [verdict] = [row for row in run.scores(FAITHFULNESS) if row.judge.startswith("panel:")]
        details = verdict.observation.details
        assert (details["aggregation"], details["spread"], details["split"]) == (panel, 1.0, True)
        assert sorted(details["values"].values()) == [0.0, 0.5, 1.0]
        # The standard deviation is 0.5, the largest of three is √(1 ÷ 3).
        assert details["consensus"] == pytest.approx(1 - 0.5 / (1 / 3) ** 0.5)

    def test_weights(self, tmp_path: Path) -> None:
        names = [f"python/{__name__}.rating_{stars}" for stars in (1, 3)]
        run = score(
            tmp_path,
            judge=[rating(1), rating(3)],
            panel="weighted_mean",
            panel_weights=dict(zip(names, (1, 3), strict=True)),
        )
        assert run[FAITHFULNESS].value == 0.75  # (1 × 0 + 3 × 1) ÷ 4

    def test_workers_know_the_rule(self, server: JudgeServer, tmp_path: Path) -> None:
        for number in range(3):
            messages = [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": f"Desk {number}."}]
            (tmp_path / f"{number}.json").write_text(json.dumps({"messages": messages}))

        def by_model(prompt: str, schema: dict[str, Any]) -> Any:
            is_tiny = json.loads(server.bodies[-1])["model"] == "tiny"
            return rating(1 if is_tiny else 3)(prompt, schema)

        server.answer = by_model
        other = server.openai.replace(":tiny@", ":large@")
        run = make_run(
            [tmp_path / f"{number}.json" for number in range(3)],
            judge=[server.openai, other],
            panel="weighted_mean",
            panel_weights={server.openai: 0, other: 1},
            metrics=FAITHFULNESS,
            out=tmp_path / "run",
            workers=2,
            part_bytes=1,
        )
        # The judge that says 0 has no weight; the median would be 0.5.
        assert [figure.value for figure in run.summary.figures] == [1.0, 0.0, 1.0]
        assert len(server.prompts) == 6

    def test_too_little_consensus_is_undetermined(self, tmp_path: Path) -> None:
        run = score(tmp_path, judge=[rating(1), rating(3)], require_consensus=0.8)
        figure = run[FAITHFULNESS]
        assert (figure.value, figure.reason) == (None, "no_consensus")
        assert run.summary.judging is not None
        assert run.summary.judging.panels[0].undetermined == 1

    def test_a_judge_that_is_down_leaves_no_panel(self, server: JudgeServer, tmp_path: Path) -> None:
        server.always = status(500)
        run = score(tmp_path, judge=[rating(3), server.openai])
        by_judge = {row.judge.partition("/")[0].partition(":")[0]: row for row in run.scores(FAITHFULNESS)}
        assert (by_judge["python"].value, by_judge["openai"].reason) == (1.0, "judge_failed")
        assert (by_judge["panel"].value, by_judge["panel"].reason) == (None, "judge_missing")

    def test_a_judge_of_ones_own_that_raises_is_missing_by_its_name(self, tmp_path: Path) -> None:
        class Broken:
            identity = "own/broken@1"

            async def ask(self, prompt: str, schema: Any) -> Any:
                raise LookupError("out of order")

        run = score(tmp_path, judge=[rating(3), Broken()])
        by_judge = {row.judge.partition("/")[0].partition(":")[0]: row for row in run.scores(FAITHFULNESS)}
        assert (by_judge["own"].status, by_judge["own"].reason) == ("error", "judge_failed")
        assert by_judge["panel"].reason == "judge_missing"

    def test_the_summary_says_where_judges_differ(self, tmp_path: Path) -> None:
        run = score(tmp_path, 3, judge=[rating(2), rating(3)])
        assert run.summary.judging is not None
        [agreement] = run.summary.judging.panels
        # 0.5 and 1.0 for each of three calls; both pass.
        assert (agreement.n, agreement.differ, agreement.split, agreement.mean_spread) == (3, 3, 0, 0.5)
        assert [apart.conversation for apart in agreement.apart] == ["call-0", "call-1", "call-2"]
        assert sorted(agreement.apart[0].values.values()) == [0.5, 1.0]

    def test_one_judge_has_no_consensus(self, tmp_path: Path) -> None:
        judging = score(tmp_path, judge=rating(3)).summary.judging
        assert judging is not None
        assert (judging.panel, judging.panels) == (None, [])

    def test_people_do_not_sit_with_a_model(self, tmp_path: Path) -> None:
        labels = [
            {"name": "faithfulness", "value": value, "rater": rater, "subject_kind": "conversation", "subject": ""}
            for rater, value in (("ann", 0.0), ("bob", 0.5))
        ]
        call = example("user: Hello?", "assistant: Hello.", id="labelled", labels=labels)
        run = make_run([call], judge=[rating(3), rating(2)], metrics=FAITHFULNESS, out=tmp_path / "run", workers=1)
        values = {row.judge.rpartition("@")[0] or row.judge: row.value for row in run.scores(FAITHFULNESS)}
        panels = {judge.split(":")[1]: value for judge, value in values.items() if judge.startswith("panel:")}
        assert panels.pop("human") == 0.25  # of 0 and 0.5
        assert list(panels.values()) == [0.75]  # of 1 and 0.5
        # The judges that were asked speak for the metric, and a gate looks at people and models, each by themselves.
        assert run[FAITHFULNESS].value == 0.75
        assert [one.figure.value for one in checks(run.summary, [f"{FAITHFULNESS} >= 0.5"], trust_judges=True)] == [
            0.25,
            0.75,
        ]

    @pytest.mark.parametrize(
        ("more", "message"),
        [
            ({"panel": "majority_vote"}, "majority_vote needs 3 judges or more, not 2"),
            ({"panel": "medium"}, "no panel is called 'medium'"),
            ({"panel_weights": {"openai:a": 1}}, "weights have no meaning for the panel median"),
            ({"require_consensus": 2}, "from 0 to 1, not 2"),
        ],
    )
    def test_what_cannot_be_is_refused(self, tmp_path: Path, more: dict[str, Any], message: str) -> None:
        with pytest.raises(UsageError, match=message):
            score(tmp_path, judge=[rating(1), rating(2)], **more)

    @pytest.mark.parametrize(
        ("weights", "message"), [({"a": 1.0}, "b has no weight"), ({"a": 1, "b": 1, "c": 1}, "c ")]
    )
    def test_each_judge_needs_its_weight(self, tmp_path: Path, weights: dict[str, float], message: str) -> None:
        names = {f"openai:{name}@http://localhost:1/v1": weight for name, weight in weights.items()}
        judges = [f"openai:{name}@http://localhost:1/v1" for name in "ab"]
        with pytest.raises(UsageError, match=f"openai/{message}"):
            score(tmp_path, judge=judges, panel="weighted_mean", panel_weights=names)


def test_a_judge_that_no_metric_of_the_run_asks_is_refused(server: JudgeServer, tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    (tmp_path / "chat.json").write_text(json.dumps({"messages": messages}))
    for more in ((), ("--dry-run",)):
        ended = command("score", "chat.json", "--judge", server.openai, "-m", "unanswered_turns", *more, cwd=tmp_path)
        assert ended.code == 2
        assert f"no metric of this run asks for {server.openai}, which is a Judge" in ended.err
    assert server.prompts == []
    assert not (tmp_path / "runs").exists()


class TestSecondLook:
    def test_a_tenth_is_judged_again(self, server: JudgeServer, tmp_path: Path) -> None:
        server.answer = rating(1)
        run = score(tmp_path, 25, judge=rating(3), second_look=server.openai)
        judging = run.summary.judging
        assert judging is not None
        assert judging.second_look is not None
        [looked] = judging.second_look.metrics
        # A tenth of 25 is three; the first judge says 1, the second 0.
        assert len(server.prompts) == 3
        assert (looked.conversations, looked.n, looked.differ, looked.differ_share) == (3, 3, 3, 1.0)
        assert (looked.mean_difference, looked.crossed, looked.unanswered) == (-1.0, 3, {})
        ids = {f"call-{number}" for number in drawn({number: f"call-{number}" for number in range(25)})}
        assert {apart.conversation for apart in looked.apart} == ids
        # It is no voice of the metric: the figures are those of the run without it.
        without = score(tmp_path, 25, "without", judge=rating(3))
        assert run.summary.metrics == without.summary.metrics
        assert without.summary.judging is not None
        assert without.summary.judging.second_look is None

    def test_the_same_tenth_whatever_the_order(self) -> None:
        ids = {number: f"call-{number}" for number in range(40)}
        backwards = {40 - number: id for number, id in ids.items()}
        assert {ids[number] for number in drawn(ids)} == {backwards[number] for number in drawn(backwards)}
        assert [len(drawn(dict(list(ids.items())[:count]))) for count in (0, 1, 10, 11, 30)] == [0, 1, 1, 2, 3]

    def test_a_second_judge_that_is_down_is_counted(self, server: JudgeServer, tmp_path: Path) -> None:
        server.always = status(500)
        judging = score(tmp_path, 2, judge=rating(3), second_look=server.openai).summary.judging
        assert judging is not None
        assert judging.second_look is not None
        [looked] = judging.second_look.metrics
        assert (looked.n, looked.differ_share, looked.mean_difference) == (0, None, None)
        assert looked.unanswered == {"judge_failed": 1}

    def test_it_needs_another_judge(self, server: JudgeServer, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="judges already"):
            score(tmp_path, judge=server.openai, second_look=server.openai)
        with pytest.raises(UsageError, match="no judge is named"):
            score(tmp_path, second_look=server.openai)
        assert server.prompts == []

    def test_its_questions_are_in_the_forecast_and_in_the_budget(self, server: JudgeServer, tmp_path: Path) -> None:
        (tmp_path / "chat.json").write_text(
            json.dumps({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]})
        )
        second = server.anthropic
        arguments = ["score", "chat.json", "--judge", server.openai, "--second-look", second, "-m", FAITHFULNESS]
        ended = command(*arguments, "--dry-run", cwd=tmp_path)
        assert "This would ask 2 questions" in ended.out
        assert "judged.faithfulness, second look" in ended.out
        assert server.prompts == []
        ended = command(*arguments, "--max-questions", "1", "--json", "--out", "run", cwd=tmp_path)
        [looked] = ended.json["summary"]["judging"]["second_look"]["metrics"]
        assert looked["unanswered"] == {"budget_spent": 1}
        assert len(server.prompts) == 1

    def test_it_is_printed_and_its_absence_too(self, server: JudgeServer, tmp_path: Path) -> None:
        (tmp_path / "chat.json").write_text(
            json.dumps({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]})
        )
        arguments = ["score", "chat.json", "--judge", server.openai, "-m", FAITHFULNESS, "--full"]
        assert "no second look: --second-look JUDGE" in command(*arguments, "--out", "one", cwd=tmp_path).out
        ended = command(*arguments, "--second-look", server.anthropic, "--out", "two", cwd=tmp_path)
        assert "second look by anthropic/tiny@" in ended.out
        assert "judged.faithfulness differs in 0 of 1 (0 %)" in ended.out
