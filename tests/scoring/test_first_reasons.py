"""`inspect` and `score` give each metric the same reason: the one of the metric itself, and of several the gravest."""

from __future__ import annotations

from pathlib import Path

import convoscope
from convoscope.scoring.job import choose
from convoscope.scoring.profiles import plan
from convoscope.statistics.summary import whole_reasons
from support.chats import agent, chat, user


def test_both_say_the_same_of_a_chat(tmp_path: Path) -> None:
    talks = [chat(user("Are you open?"), agent("Until six."), id=id) for id in "ab"]
    run = convoscope.score(talks, out=tmp_path / "run", workers=1)
    scored = {name: entry and entry.reason for name, entry in run.summary.whole_metrics.items()}
    chosen = choose(None)
    planned = plan(chosen.metrics, talks, frozenset(chosen.resources)).whole_metrics
    inspected = {name: gap and gap.code for name, gap in planned.items()}
    assert inspected.keys() == scored.keys()
    # A field can be there and have nothing to measure; what lacks a field is the same for both.
    assert {name for name in scored if inspected[name] not in (None, scored[name])} == set()
    # The variant @lexical lacks a query; the metric itself needs an item.
    assert inspected["retrieval.contextual_precision"] == "not_an_item"
    # Its first input without a value is the task, which needs a database.
    assert inspected["eva.a_pass"] == "input_no_final_database"


def test_a_metric_has_its_own_reason_or_that_of_its_first_variant() -> None:
    keys = ["a.b", "a.b@x", "a.b.part", "c.d@x", "c.d@y", "e.f", "e.f@x"]
    absent = {"a.b@x": 1, "a.b": 2, "c.d@x": 3, "c.d@y": 4, "e.f": 5}
    assert whole_reasons(keys, {"e.f"}, absent) == {"a.b": 2, "c.d": 3, "e.f": None}
