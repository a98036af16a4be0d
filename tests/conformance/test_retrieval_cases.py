"""Observed rankings of a released scorer package: the same where definitions agree, and what we chose where not."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import Conversation, Item
from convoscope.metrics.declaration import Metric
from convoscope.metrics.retrieval import average_precision, mrr, ndcg
from convoscope.scoring.evaluate import observe
from support.shared_data import content_hash

METRICS: dict[str, Metric] = {"mrr": mrr, "ndcg": ndcg, "map": average_precision}
"""Our metrics by the names of the released figures. Its blend, and its points for ranks, we do not have: a blend of
four figures hides which of them fell, and points that end at rank 5 say nothing that the others do not."""

CHOSEN: dict[str, tuple[str, dict[str, float | str]]] = {
    "retrieval_ranking-001": ("all agree; the blend is not made", {"mrr": 1.0, "ndcg": 0.919720789148, "map": 5 / 6}),
    "retrieval_ranking-002": (
        "there, a document without a label is relevant, so that every unlabelled ranking is perfect; here, null",
        dict.fromkeys(METRICS, "no_relevance"),
    ),
    "retrieval_ranking-004": (
        "there, ranks beyond 5 are all alike, so that nDCG and AP forget that the document stands sixth",
        {"mrr": 1 / 6, "ndcg": 1 / math.log2(7), "map": 1 / 6},
    ),
    "retrieval_ranking-005": ("nothing is there to be ranked: null, not 0", dict.fromkeys(METRICS, "no_context")),
    "retrieval_ranking-006": ("an empty list has no order: null, not 0", dict.fromkeys(METRICS, "nothing_retrieved")),
    "retrieval_ranking-007": (
        "there, nDCG of one document is 0 though it could not stand better; here, 1",
        {"mrr": 1.0, "ndcg": 1.0, "map": 1.0},
    ),
}
"""Case by case, why and what."""

LOOKED_AT = {
    "retrieval_ranking-001": "41a7361b6979",
    "retrieval_ranking-002": "bd09cc6b14e9",
    "retrieval_ranking-004": "30bb27aada2e",
    "retrieval_ranking-005": "44136fa355b3",
    "retrieval_ranking-006": "ed6c0ad724c2",
    "retrieval_ranking-007": "f4d2f66f0443",
}
"""The items of these cases: another one of the same id is another case."""

IN_ORDER = [[1, 2], [1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4, 5]]


def measure(case: dict[str, Any]) -> dict[str, float | str]:
    """Each of our figures for a case, or the reason why there is none."""
    item = Item(id="case", extras={name: value for name, value in case["item"].items() if value is not None})
    found: dict[str, float | str] = {}
    for name, metric in METRICS.items():
        (one,) = observe(metric, Conversation(id="case", items=(item,)))
        assert one.status in ("measured", "unmeasured", "not_applicable"), case["id"]
        found[name] = one.reason if one.value is None else one.value
    return found


def agrees(case: dict[str, Any]) -> bool:
    """Both define the same: two to five documents in order, each labelled, some relevant and some not."""
    if case["role"] == "equal":
        return True
    context = case["item"].get("context")
    if not isinstance(context, dict):
        return False
    ranks, labels = context.get("rankings"), context.get("relevance_scores")
    if ranks not in IN_ORDER or not isinstance(labels, list) or len(labels) != len(ranks):
        return False
    return all(type(one) is int for one in labels) and {*labels} == {0, 1}


def test_every_ranking_has_its_parts_or_a_reason(
    shared: Callable[[str], Path], ran: Callable[[str, int], None]
) -> None:
    cases = json.loads((shared("data/cases") / "standard-data.json").read_text())
    mine = [case for case in cases if case["scorer"] == "retrieval_ranking"]
    for case in mine:
        found = measure(case)
        if case["id"] in CHOSEN and content_hash(case["item"]) == LOOKED_AT[case["id"]]:
            assert found == pytest.approx(CHOSEN[case["id"]][1]), case["id"]
        if agrees(case) and isinstance(case["expected"], dict):
            theirs = {name: case["expected"][name] for name in METRICS if name in case["expected"]}
            assert {name: found[name] for name in theirs} == pytest.approx(theirs, abs=1e-9), case["id"]
        for value in found.values():
            assert isinstance(value, str) or 0 <= value <= 1, case["id"]
    ran("standard-data retrieval_ranking, parts and reasons", len(mine))
