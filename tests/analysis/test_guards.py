"""What a metric, a query or an option could do to a run, and does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import Conversation, Participant, ToolCall
from convoscope.errors import UsageError
from convoscope.metrics import CONVERSATION, HIGHER, SHARE, GroupSample, Metric, Observation, derived, measured, metric
from convoscope.metrics.composites import Trials, by_scenario
from convoscope.runs.make import make_run as score
from convoscope.runs.sql import query
from convoscope.scores.observation import MEASURED
from convoscope.views.items import Subject
from support.generated import write_lines


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "chats.jsonl", range(3))


def made(measure: Callable[[Conversation], Observation], unit: str = SHARE) -> Metric:
    measure.__doc__ = "What?"
    return metric("test.made", version=1, observes=CONVERSATION, unit=unit, better=HIGHER)(measure)


def leaves(conversation: Conversation) -> Observation:
    raise SystemExit(7)


@pytest.mark.parametrize(
    "measure",
    [
        lambda conversation: measured(conversation, -1.0),
        lambda conversation: measured(conversation, 7.0),
        lambda conversation: measured(Subject("turn", 3, 1), 1.0),  # type: ignore[arg-type]
        lambda conversation: measured(Subject("turn", "3", 2**63), 1.0),
        leaves,
    ],
    ids=["below a share", "above a share", "id no text", "position too large", "leaves the process"],
)
def test_a_metric_cannot_take_the_run_with_it(measure: Any, logs: Path, tmp_path: Path) -> None:
    run = score(logs, metrics=[made(measure), "turns"], out=tmp_path / "run", workers=1)
    told = {figure.metric: figure for figure in run.summary.figures if not figure.reduction}
    assert (told["test.made"].status, told["test.made"].value) == ("error", None)
    assert told["conversation.turns"].samples_measured == 3


def test_a_sum_that_no_double_holds_is_an_error(logs: Path, tmp_path: Path) -> None:
    huge = made(lambda conversation: measured(conversation, 1e308), unit="x")
    (figure,) = score(logs, metrics=[huge], out=tmp_path / "run", workers=1).summary.figures
    assert (figure.status, figure.reason, figure.value) == ("error", "reduction_failed", None)


def test_a_group_figure_that_raises_keeps_the_text(logs: Path, tmp_path: Path) -> None:
    def broken(samples: list[GroupSample]) -> float:
        """What?"""
        raise RuntimeError("not today")

    declared = derived("test.group", version=1, over="group", unit="x", better=HIGHER, inputs=("conversation.turns",))(
        broken
    )
    run = score(logs, metrics=[declared], out=tmp_path / "run", workers=1)
    (figure,) = [one for one in run.summary.figures if one.metric == "test.group"]
    assert (figure.status, figure.detail) == ("error", "RuntimeError: not today")


def test_scenarios_of_two_domains_are_two() -> None:
    samples = [
        GroupSample(f"{domain}{trial}", {"domain": domain, "scenario_id": "0"}, MEASURED, value)
        for domain, value in (("retail", 1.0), ("airline", 0.0))
        for trial in (1, 2)
    ]
    assert by_scenario(samples, 1.0) == {"airline/0": Trials(2, 0), "retail/0": Trials(2, 2)}


def test_a_dimension_named_twice_counts_once(logs: Path, tmp_path: Path) -> None:
    run = score(logs, metrics=["turns"], by=[["model", "model"]], out=tmp_path / "run", workers=1)
    assert [group.by for group in run.summary.groups] == [{"model": "model-0"}, {"model": "model-1"}]


@pytest.mark.parametrize("sql", ["", "  ", "SELECT * FROM read_csv('https://example.invalid/x.csv')"])
def test_a_query_that_cannot_be_answered_is_bad_usage_and_fetches_nothing(sql: str, logs: Path, tmp_path: Path) -> None:
    run = score(logs, metrics=["turns"], out=tmp_path / "run", workers=1)
    with pytest.raises(UsageError) as caught:
        query([run], sql)
    assert "extensions.duckdb.org" not in str(caught.value)


def test_an_event_may_have_any_number(tmp_path: Path) -> None:
    """A log may count its events from anywhere; what no column can hold has no place in the order."""
    calls = [ToolCall(seq=seq, name="look_up") for seq in (0, 2**40, 2**63 + 5)]
    conversation = Conversation(id="far", participants=(Participant("agent", "assistant"),), timeline=tuple(calls))
    run = score([conversation], metrics="tools.success", out=tmp_path / "run", workers=1)
    found = [(score.subject.id, score.subject.position, score.reason) for score in run.scores()]
    assert sorted(found) == [
        ("0", 0, "no_tool_result"),
        (str(2**40), 2**40, "no_tool_result"),
        (str(2**63 + 5), 0, "no_tool_result"),
    ]
