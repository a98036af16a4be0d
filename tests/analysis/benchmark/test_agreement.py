"""How far two labellings agree: κ by hand, and the ceiling beside the figures of a benchmark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.analysis.benchmark.agreement import agreement, kappa, label_agreement
from convoscope.analysis.benchmark.datasets import find_dataset
from convoscope.metrics.semantic.samples import Labels, PlainAction, PlainRisk
from support.command_line import convoscope

BOTH, FIRST, SECOND, NEITHER = (True, True), (True, False), (False, True), (False, False)


class TestKappa:
    def test_by_hand(self) -> None:
        # Cohen's textbook table: 20 both, 5 and 10 alone, 15 neither. Observed (20 + 15) / 50 = 0.7.
        # Expected 25/50 · 30/50 + 25/50 · 20/50 = 0.5. κ = (0.7 − 0.5) / (1 − 0.5) = 0.4.
        result = kappa([BOTH] * 20 + [FIRST] * 5 + [SECOND] * 10 + [NEITHER] * 15)
        assert result.value == pytest.approx(0.4, abs=1e-15)
        assert (result.both, result.first_only, result.second_only, result.neither) == (20, 5, 10, 15)

    def test_perfect_and_opposite(self) -> None:
        assert kappa([BOTH, NEITHER]).value == 1.0
        # Observed 0, expected 1/2 · 1/2 + 1/2 · 1/2 = 0.5: −0.5 / 0.5.
        assert kappa([FIRST, SECOND]).value == -1.0

    def test_a_label_that_only_one_uses_agrees_as_chance_does(self) -> None:
        # Observed 2/4; expected 2/4 · 0 + 2/4 · 4/4 = 2/4.
        assert kappa([FIRST, FIRST, NEITHER, NEITHER]).value == 0.0

    @pytest.mark.parametrize(
        ("pairs", "reason"),
        [
            ([NEITHER] * 3, "neither_labelling_uses_it"),
            ([BOTH] * 3, "both_labellings_use_it_everywhere"),
            ([], "no_sample_is_labelled_twice"),
        ],
    )
    def test_without_a_value_there_is_a_reason(self, pairs: list[tuple[bool, bool]], reason: str) -> None:
        result = kappa(pairs)
        assert (result.value, result.reason) == (None, reason)

    @given(st.lists(st.tuples(st.booleans(), st.booleans())))
    def test_it_is_the_same_the_other_way_round(self, pairs: list[tuple[bool, bool]]) -> None:
        mine, theirs = kappa(pairs), kappa([(second, first) for first, second in pairs])
        assert mine.value == theirs.value
        assert mine.value is None or -1 <= mine.value <= 1


def test_labels_side_by_side() -> None:
    pairs = [
        (
            Labels(("billing", "refund"), (PlainRisk("escalation", "high"),), (PlainAction("Send the form"),)),
            Labels(("billing",), (PlainRisk("escalation", "low"),), (PlainAction("Send form"), PlainAction("Call"))),
        ),
        (Labels((), (), ()), Labels((), None, ())),
    ]
    result = label_agreement(pairs, "second")
    assert result.topics["billing"].value == 1.0
    assert result.topics["refund"].value == 0.0  # one alone, one neither: observed 1/2, expected 1/2
    assert result.topics["warranty"].reason == "neither_labelling_uses_it"
    # The second did not label risks of the second sample: of one sample, with the risk on both sides, nothing is told.
    assert result.risks["escalation"].reason == "both_labellings_use_it_everywhere"
    # Topics: 1 hit, 1 missed: 2 / (2 + 1). Risks by type: 1 hit. With severity: none.
    # Actions: "send form" is 4 letters off 13: 0.69, below 0.8; nothing matches.
    assert {name: one.f1 for name, one in result.ceilings.items()} == {
        "topic_f1": 2 / 3,
        "risk_f1": 1.0,
        "risk_f1_weighted": 0.0,
        "action_f1": 0.0,
    }


def _gold(folder: Path, sample: str, topics: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    head = {"schema_version": 1, "sample_id": sample, "dataset": "calls", "annotator": folder.name}
    labels: dict[str, Any] = {"topics": [{"label": one} for one in topics], "risks": [], "actions": []}
    (folder / f"{sample}_gold.json").write_text(json.dumps({**head, **labels}))


@pytest.fixture
def staged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    dataset = tmp_path / "datasets" / "semantic" / "calls"
    for sample, first, second in (("a", ["billing"], ["billing"]), ("b", ["refund"], [])):
        _gold(dataset / "goldens", sample, first)
        _gold(dataset / "goldens-second", sample, second)
    _gold(dataset / "goldens", "c", ["refund"])
    predictions = tmp_path / "predictions"
    predictions.mkdir()
    for sample in "abc":
        (predictions / f"{sample}.json").write_text(
            json.dumps({"annotations": {"semantic": {"topics": ["billing"], "risks": [], "actions": []}}})
        )
    monkeypatch.setenv("CONVOSCOPE_BENCHMARKS", str(tmp_path))
    return tmp_path


def test_a_sample_that_was_labelled_once_is_counted(staged: Path) -> None:
    del staged
    dataset = find_dataset("semantic", "calls")
    result = agreement(dataset, dataset.samples)
    assert result is not None
    assert (result.second, result.samples, result.samples_once) == ("goldens-second", 2, 1)


def test_the_ceiling_stands_beside_ours(staged: Path) -> None:
    output = staged / "result.json"
    ran = convoscope(
        "benchmark", "run", "--dataset", "calls", "--predictions", staged / "predictions", "--output", output
    )
    # Of two samples labelled twice: 1 hit, 1 missed: 2 / 3. Ours: 1 hit, 2 wrong, 2 missed: 2 / 6.
    row = next(line for line in ran.out.splitlines() if line.startswith("topic_f1 "))
    assert "0.3333" in row
    assert "0.6667" in row
    assert "two labellers" in ran.out
    kept = json.loads(output.read_text())["agreement"]
    assert kept["ceilings"]["topic_f1"]["f1"] == pytest.approx(2 / 3)
    assert kept["ceilings"]["action_f1"]["f1"] is None
    assert kept["ceilings"]["action_f1"]["reason"] == "nothing_to_find"
    assert kept["topics"]["billing"]["value"] == 1.0


def test_a_data_set_tells_of_its_labellings(staged: Path) -> None:
    told = convoscope("benchmark", "datasets", "calls").out
    assert "labelled twice: 2 samples, 1 without labels of both" in told
    assert "neither_labelling_uses_it" in told
    facts = json.loads(convoscope("benchmark", "datasets", "calls", "--json").out)
    assert facts["agreement"]["topics"]["refund"]["value"] == 0.0
    for path in (staged / "datasets/semantic/calls/goldens-second").iterdir():
        path.unlink()
    (staged / "datasets/semantic/calls/goldens-second").rmdir()
    assert "labelled once" in convoscope("benchmark", "datasets", "calls").out


def test_the_bundled_calls_are_labelled_twice() -> None:
    dataset = find_dataset("semantic", "support-calls")
    result = agreement(dataset, dataset.samples)
    assert result is not None
    assert (result.samples, result.samples_once) == (220, 0)
    assert len(dataset.samples) == 220


def test_both_labellings_can_be_checked_at_once(staged: Path) -> None:
    ran = convoscope("benchmark", "validate-gold", staged)
    assert "5 gold label files, 0 errors" in ran.out
