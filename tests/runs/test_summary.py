"""`summary.json`: what was measured as figures, what was not as a few entries that say why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

import convoscope
from convoscope.analysis.words import coverage_text
from convoscope.conversation import Conversation
from convoscope.metrics import CONVERSATION, HIGHER, Observation, derived, measured, metric, unmeasured
from convoscope.runs.make import make_run as score
from convoscope.runs.run import Run
from convoscope.runs.summary import SCHEMA, NotMeasured, Summary, json_schema
from convoscope.views.items import WHOLE
from support.chats import chat, user
from support.generated import FEW, write_lines

SCHEMA_FILE = Path(__file__).parents[2] / "docs" / "formats" / "summary-2.schema.json"


def written(run: Run) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((run.folder / "summary.json").read_text())
    return document


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Three chats without times; the first has a tool and a truth."""
    folder = tmp_path_factory.mktemp("summary")
    logs = write_lines(folder / "chats.jsonl", range(0, 9, 3))
    metrics = [*FEW, "tools.tool_call_validity", "interaction.selectivity", "judged.conciseness", "judged.faithfulness"]
    return score(logs, metrics=metrics, out=folder / "run", workers=1)


class TestTheFile:
    def test_the_schema_that_is_published_is_current(self) -> None:
        generated = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
        assert SCHEMA_FILE.read_text(encoding="utf-8") == generated, "run `make schema`"

    def test_is_valid_by_its_schema(self, run: Run) -> None:
        Draft202012Validator.check_schema(json_schema())
        Draft202012Validator(json_schema()).validate(written(run))
        assert written(run)["schema"] == SCHEMA == "convoscope.summary/2"

    @pytest.mark.parametrize("broken", [{"metrics": 7}, {"conversations": "3"}, {"small_groups": [{}]}])
    def test_and_another_is_not(self, run: Run, broken: dict[str, Any]) -> None:
        assert not Draft202012Validator(json_schema()).is_valid({**written(run), **broken})
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({**written(run), **broken}, Summary)

    def test_has_one_figure_a_line(self, run: Run) -> None:
        lines = (run.folder / "summary.json").read_text().splitlines()
        figures = [json.loads(line.strip().rstrip(",")) for line in lines if line.lstrip().startswith('{"metric":')]
        document = written(run)
        assert [one for one in figures if "value" in one] == document["metrics"]
        assert [one for one in figures if "question" in one] == document["declared"]

    def test_leaves_out_what_is_usual(self, run: Run) -> None:
        turns = next(one for one in written(run)["metrics"] if one["metric"] == "conversation.turns")
        assert not turns.keys() & {"variant", "reduction", "judge", "status", "reason", "skipped_reasons", "ten"}
        assert turns.keys() >= {"metric", "unit", "better", "value", "coverage", "samples_total", "n"}

    def test_reads_back_as_it_was(self, run: Run) -> None:
        assert msgspec.convert(written(run), Summary) == run.summary
        assert msgspec.to_builtins(run.summary) == written(run)

    def test_the_command_line_gives_the_same(self, run: Run) -> None:
        from support.command_line import convoscope as command

        told = command("runs", "show", run.folder, "--json").json
        assert told["summary"] == written(run)


class TestWhatWasNotMeasured:
    def test_has_no_figure(self, run: Run) -> None:
        assert all(one.samples_measured for one in run.summary.metrics)
        named = {key for one in run.summary.not_measured for key in one.metrics}
        assert named.isdisjoint(one.key for one in run.summary.metrics)
        assert named | {one.key for one in run.summary.metrics} == set(run.summary.by_key)

    def test_is_gathered_by_its_reasons(self, run: Run) -> None:
        found = {tuple(one.metrics): (one.status, one.reason, one.samples_total) for one in run.summary.not_measured}
        # Two metrics want a judge for all three chats: one entry.
        assert found["judged.conciseness", "judged.faithfulness"] == ("unmeasured", "no_judge", 3)
        assert found["timing.response_latency",] == ("unmeasured", "no_clock", 3)

    def test_all_of_it_is_told_in_the_order_of_the_metrics(self, run: Run) -> None:
        figures = run.summary.figures
        assert list(dict.fromkeys(one.key for one in figures)) == [one.metric for one in run.summary.declared]
        (latency,) = [one for one in figures if one.metric == "timing.response_latency"]
        assert (latency.value, latency.status, latency.reason) == (None, "unmeasured", "no_clock")
        assert (latency.samples_total, latency.samples_measured, latency.samples_skipped) == (3, 0, 3)
        assert (latency.coverage, latency.unit, latency.skipped_reasons) == (0.0, "s", {"no_clock": 3})

    def test_where_nothing_was_applicable_there_is_no_coverage(self, tmp_path: Path) -> None:
        run = score([chat(user("hi"))], metrics=["tools.success"], out=tmp_path / "run", workers=1)
        assert run.summary.metrics == []
        assert run.summary.not_measured == [
            NotMeasured(
                metrics=["tools.success"],
                status="not_applicable",
                reason="no_tool_calls",
                samples_total=1,
                samples_not_applicable=1,
                skipped_reasons={"no_tool_calls": 1},
            )
        ]
        (figure,) = run.summary.figures
        assert (figure.coverage, figure.samples_not_applicable) == (None, 1)

    def test_several_reasons_are_counted_and_the_gravest_is_said(self, tmp_path: Path) -> None:
        @metric("test.odd", version=1, observes=CONVERSATION, unit="x", better=HIGHER)
        def odd(conversation: Conversation) -> Observation:
            """What?"""
            if conversation.id == "c":
                raise RuntimeError("not today")
            return unmeasured(WHOLE, "no_clock")

        talks = [chat(user("hi"), id=id) for id in "abc"]
        (entry,) = score(talks, metrics=[odd], out=tmp_path / "run", workers=1).summary.not_measured
        # An error weighs more than what could not be measured, however often.
        assert (entry.status, entry.reason) == ("error", "metric_raised")
        assert entry.skipped_reasons == {"no_clock": 2, "metric_raised": 1}

    def test_a_judge_without_a_value_is_named_beside_one_that_has_some(self, tmp_path: Path) -> None:
        @metric("test.judged", version=1, observes=CONVERSATION, unit="points", better=HIGHER)
        def judged(conversation: Conversation) -> Iterator[Observation]:
            """How good is it?"""
            yield measured(conversation, 4, judge="p/a")
            yield unmeasured(conversation, "refused", judge="p/b")

        run = score([chat(user("hi"))], metrics=[judged], out=tmp_path / "run", workers=1)
        assert [(one.judge, one.value) for one in run.summary.metrics] == [("p/a", 4.0)]
        refused, panel = run.summary.not_measured
        assert (refused.metrics, refused.judge, refused.reason) == (["test.judged"], "p/b", "refused")
        assert (panel.judge.startswith("panel:"), panel.reason) == (True, "judge_missing")
        assert [one.judge for one in run.summary.figures] == ["p/a", "p/b", panel.judge]
        # The panel stands for its judges, also where it has no verdict: nobody is ranked by one judge alone.
        (place,) = convoscope.worst(run, 1)
        assert place.behind is None

    def test_a_figure_over_a_group_keeps_what_it_said(self, tmp_path: Path) -> None:
        @derived("test.none", version=1, over="group", unit="x", better=HIGHER, inputs=("conversation.turns",))
        def none(samples: list[Any]) -> None:
            """What?"""

        run = score([chat(user("hi"))], metrics=[none], out=tmp_path / "run", workers=1)
        figure = run.summary.figures[-1]
        assert (figure.metric, figure.judge, figure.reason) == ("test.none", "(derived)", "not_enough")


class TestCoverageOfSubjects:
    """Coverage is told of what is observed, too: of the calls that should have a value, how many have one."""

    def run(self, tmp_path: Path, results: int) -> Run:
        """One chat with 20 tool calls, of which some have a result."""
        messages: list[dict[str, object]] = [{"role": "user", "content": "Do it."}]
        for number in range(20):
            call = {"id": f"c{number}", "type": "function", "function": {"name": "find", "arguments": "{}"}}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            if number < results:
                messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": '{"success": true}'})
        messages.append({"role": "assistant", "content": "Done."})
        logs = tmp_path / "chat.json"
        logs.write_text(json.dumps({"id": "chat", "messages": messages}))
        return score(logs, metrics=["tools.success"], out=tmp_path / "run", workers=1)

    def test_one_result_of_twenty_calls(self, tmp_path: Path) -> None:
        (figure,) = self.run(tmp_path, 1).summary.figures
        assert (figure.value, figure.coverage, figure.n) == (1.0, 1.0, 1)
        assert figure.subject_coverage == 0.05  # 1 of 20
        assert coverage_text(figure, "event") == "100 % (events 5 %)"

    def test_all_results(self, tmp_path: Path) -> None:
        (figure,) = self.run(tmp_path, 20).summary.figures
        assert figure.subject_coverage == 1.0
        assert coverage_text(figure, "event") == "100 %"

    def test_conversations_without_any_value_count(self, tmp_path: Path) -> None:
        # One conversation with a result for its one call, another with 3 calls and none: 1 of 4 calls.
        def chat(id: str, calls: int, results: int) -> dict[str, object]:
            messages: list[dict[str, object]] = [{"role": "user", "content": "Do it."}]
            for number in range(calls):
                call = {"id": f"c{number}", "type": "function", "function": {"name": "find", "arguments": "{}"}}
                messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
                if number < results:
                    messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": '{"success": true}'})
            return {"id": id, "messages": [*messages, {"role": "assistant", "content": "Done."}]}

        logs = tmp_path / "chats.jsonl"
        logs.write_text("\n".join(json.dumps(one) for one in (chat("a", 1, 1), chat("b", 3, 0))))
        (figure,) = score(logs, metrics=["tools.success"], out=tmp_path / "run", workers=1).summary.figures
        assert (figure.n, figure.subject_coverage) == (1, 0.25)
