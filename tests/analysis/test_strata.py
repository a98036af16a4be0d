"""Which fields explain a difference, and how often noise does."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from convoscope.analysis.answer.comparison import (
    LEVEL,
    Kind,
    WithinKinds,
    compare_within,
    coverage_of,
    mix_distance,
    usual_values,
    whole,
    worst_case,
)
from convoscope.statistics.differences import FigureSample

RUNS = 200
Values = NDArray[np.int64]


def shares(values: NDArray[np.bool_]) -> FigureSample:
    above = values.astype(np.float64)
    return FigureSample(above, np.ones_like(above))


def within(done: NDArray[np.bool_], second: NDArray[np.bool_], *kinds: Kind) -> WithinKinds:
    sample, clusters = shares(done), np.arange(len(done), dtype=np.int64)
    raw = whole(sample, ~second, second, clusters)
    assert raw is not None
    return compare_within(raw, sample, clusters, kinds, ~second, second)


def kind(name: str, codes: Values) -> Kind:
    return Kind(name, [f"k{place}" for place in range(int(codes.max()) + 1)], codes, is_fact=True)


def of_cells(*cells: tuple[bool, int, int, int]) -> tuple[NDArray[np.bool_], NDArray[np.bool_], Values]:
    """Side, kind, conversations, those that are done."""
    rows = [(n < done, side, code) for side, code, size, done in cells for n in range(size)]
    done, side, code = zip(*rows, strict=True)
    return np.array(done), np.array(side), np.array(code, dtype=np.int64)


class TestExplained:
    def test_better_in_each_and_worse_together(self) -> None:
        done, second, codes = of_cells((False, 0, 80, 72), (False, 1, 20, 6), (True, 0, 20, 20), (True, 1, 80, 32))
        result = within(done, second, kind("intent", codes))
        assert result.strata is not None
        assert result.strata.comparison.difference == pytest.approx(0.1)
        assert result.p > LEVEL

    def test_a_field_that_tells_the_outcome_is_none(self) -> None:
        done, second, codes = of_cells((False, 0, 20, 0), (False, 1, 40, 40), (True, 0, 50, 0), (True, 1, 10, 10))
        assert within(done, second, kind("flag", codes)).p < LEVEL

    def test_a_kind_by_name_may_tell_it(self) -> None:
        done, second, codes = of_cells((False, 0, 20, 0), (False, 1, 40, 40), (True, 0, 50, 0), (True, 1, 10, 10))
        assert within(done, second, kind("intent", codes)).p == 1

    def test_opposite_effects_are_seen(self) -> None:
        done, second, codes = of_cells((False, 0, 60, 20), (False, 1, 60, 50), (True, 0, 80, 75), (True, 1, 40, 8))
        assert within(done, second, kind("q", codes)).mixed is not None

    @pytest.mark.parametrize(("name", "apart"), [("intent", "intent"), ("prompt_hash", "")])
    def test_nothing_in_common(self, name: str, apart: str) -> None:
        done, second, codes = of_cells((False, 0, 60, 54), (True, 1, 60, 24))
        assert within(done, second, kind(name, codes)).apart == apart


def simulated(first: float, second: float, *, of_kind: float = 0.0, mix: float = 0.5) -> float:
    """How often a difference is claimed, with 20 fields of noise and one that may go with version and outcome."""
    random = np.random.default_rng(25)
    claimed = 0
    for _ in range(RUNS):
        side = np.arange(160) >= 80
        true_kind = (random.random(160) < np.where(side, mix, 1 - mix)).astype(np.int64)
        done = random.random(160) < np.where(side, second, first) - of_kind * true_kind
        noise = [kind(f"f{number}", random.integers(0, 4, 160)) for number in range(20)]
        claimed += within(done, side, kind("tier", true_kind), *noise).p < LEVEL
    return claimed / RUNS


class TestHowOften:
    def test_chance_is_taken_for_a_difference(self) -> None:
        assert simulated(0.6, 0.6) <= LEVEL + 0.03

    def test_a_mix_is_taken_for_a_difference(self) -> None:
        assert simulated(0.9, 0.9, of_kind=0.6, mix=0.8) <= LEVEL + 0.03

    def test_a_true_difference_is_seen(self) -> None:
        assert simulated(0.4, 0.8) >= 0.95

    def test_a_true_difference_is_seen_within_another_mix(self) -> None:
        assert simulated(0.6, 1.0, of_kind=0.3, mix=0.7) >= 0.9


class TestCoverage:
    def test_few_of_one_side(self) -> None:
        """30 of 30 and 12 of 30; at worst, 15 of 30 and 12 of 30."""
        second = np.arange(60) >= 30
        sample = FigureSample(
            np.array([1.0] * 15 + [0.0] * 15 + [1.0] * 12 + [0.0] * 18), np.array([1.0] * 42 + [0.0] * 18)
        )
        coverage = coverage_of(sample, ~second, second)
        assert coverage is not None
        assert coverage[:4] == (30, 30, 12, 30)
        assert not coverage.is_even
        filled = worst_case(sample, np.ones(60, dtype=np.bool_), ~second, second, rises=True)
        assert (filled.above[:30].sum(), filled.above[30:].sum(), filled.below.sum()) == (15, 12, 60)

    def test_all_have_one(self) -> None:
        second = np.arange(40) >= 20
        assert coverage_of(shares(second), ~second, second) is None


def test_the_distance_of_mixes() -> None:
    """80 and 20 of a hundred against 20 and 80: 60 would have to change."""
    codes = np.array([0] * 80 + [1] * 20 + [0] * 20 + [1] * 80, dtype=np.int64)
    second = np.arange(200) >= 100
    assert mix_distance(codes, ~second, second) == pytest.approx(0.6)


def test_what_is_usual_for_the_kinds_of_a_part() -> None:
    """Of one kind 90 of 100 are done, of the other 20 of 100; a part of 40 and 10: (0.9 x 40 + 0.2 x 10) / 50."""
    done, _, codes = of_cells((False, 0, 100, 90), (False, 1, 100, 20))
    inside = np.zeros(200, dtype=np.bool_)
    inside[60:110] = True
    part = FigureSample(np.zeros(200), inside.astype(np.float64))
    assert list(usual_values(shares(done), part, [kind("intent", codes)])) == [pytest.approx(0.76)]
