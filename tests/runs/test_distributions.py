"""How values spread: the bins they fall into, and what they are over the course of a conversation."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from convoscope.conversation import Conversation
from convoscope.metrics import (
    CONVERSATION,
    COUNT,
    EVENT,
    HIGHER,
    RATIO,
    SECONDS,
    SHARE,
    TURN,
    WORDS,
    Observation,
    measured,
    metric,
)
from convoscope.runs.distributions import BINS, MAX_POSITIONS, Distribution, Histogram, bin_edges, distributions
from convoscope.runs.make import make_run as score
from convoscope.runs.run import Run
from support.chats import agent, call, chat, result, user
from support.graded import grade, graded, listed, turned

AMOUNTS = (SECONDS, COUNT, WORDS, "points")


def steps(first: float, last: float, width: float) -> list[float]:
    return [round(first + place * width, 9) for place in range(round((last - first) / width) + 1)]


def only(run: Run) -> Distribution:
    (one,) = distributions(run)
    return one


def counts(histogram: Histogram | None) -> dict[tuple[float, float], int]:
    """The bins that are not empty."""
    assert histogram is not None
    return {(one.low, one.high): one.n for one in histogram.bins if one.n}


class TestEdges:
    @pytest.mark.parametrize("unit", [SHARE, RATIO])
    @pytest.mark.parametrize(("least", "most"), [(0, 1), (0.42, 0.43), (0.5, 0.5), (0, 0), (1, 1)])
    def test_shares_always_have_ten(self, unit: str, least: float, most: float) -> None:
        assert bin_edges(least, most, (least, most), unit) == [place / 10 for place in range(11)]

    def test_a_ratio_that_leaves_its_range_is_an_amount(self) -> None:
        # from −1 to 1, 2 ÷ 20 each
        assert bin_edges(-1, 1, (-0.5, 0.5), RATIO) == steps(-1, 1.1, 0.1)

    def test_amounts_have_round_ones(self) -> None:
        # 9.8 ÷ 20 is 0.49, rounded up to 0.5; 20 bins reach to 10. What begins near zero begins at zero.
        assert bin_edges(0.2, 9.8, (2, 6), SECONDS) == steps(0, 10, 0.5)

    def test_what_begins_far_from_zero_does_not_begin_at_zero(self) -> None:
        # (104 − 100) ÷ 20 is 0.2: 100.0, 100.2, … and one more for 104 itself
        assert bin_edges(100, 104, (101, 103), SECONDS) == steps(100, 104.2, 0.2)

    def test_below_zero(self) -> None:
        # (5 + 5) ÷ 20 is 0.5
        assert bin_edges(-5, 5, (-2, 2), SECONDS) == steps(-5, 5.5, 0.5)

    def test_counts_get_whole_numbers(self) -> None:
        assert bin_edges(1, 4, (1, 3), COUNT) == [0, 1, 2, 3, 4, 5]

    def test_many_counts_share_bins_of_whole_numbers(self) -> None:
        # 100 ÷ 20 is 5, and one more bin for 100 itself
        assert bin_edges(0, 100, (25, 75), WORDS) == steps(0, 105, 5)

    def test_a_far_value_does_not_squeeze_the_others(self) -> None:
        # quartiles 1 and 3: the fence is at 3 + 6 × 2 = 15; 15 ÷ 20 is 0.75, rounded up to 1
        assert bin_edges(0, 1000, (1, 3), SECONDS) == steps(0, 16, 1)

    def test_nor_on_the_other_side(self) -> None:
        # the fence is at 1 − 6 × 2 = −11; (4 + 11) ÷ 20 is 0.75, rounded up to 1
        assert bin_edges(-1000, 4, (1, 3), SECONDS) == steps(-11, 5, 1)

    def test_a_middle_half_without_width_has_no_fence(self) -> None:
        # most are 0: how far is far cannot be told
        assert bin_edges(0, 40, (0, 0), SECONDS) == steps(0, 42, 2)

    @pytest.mark.parametrize(
        ("value", "edges"), [(0.0, [0, 1]), (3.0, [3, 4]), (3.5, [3, 4]), (-2.5, [-3, -2]), (-2.0, [-2, -1])]
    )
    @pytest.mark.parametrize("unit", AMOUNTS)
    def test_all_equal_is_one_bin(self, unit: str, value: float, edges: list[float]) -> None:
        assert bin_edges(value, value, (value, value), unit) == edges

    @pytest.mark.parametrize(
        ("least", "most"),
        [
            (0.3, 0.1 + 0.2),  # 0.30000000000000004
            (0.0, 1e-13),
            (1e16, 1e16),
            (-1.7e99, 1.7e99),
        ],
    )
    def test_rounding_errors_and_great_numbers_have_bins_too(self, least: float, most: float) -> None:
        assert_bins(bin_edges(least, most, (least, most), SECONDS), least, most)

    def test_a_middle_half_as_wide_as_a_rounding_error_has_bins_too(self) -> None:
        quartiles = (0.3, 0.1 + 0.2)
        assert_bins(bin_edges(0, 5, quartiles, SECONDS), *quartiles)


def assert_bins(edges: Sequence[float], least: float, most: float) -> None:
    """Edges ascend, are not many, and hold what lies between."""
    assert 2 <= len(edges) <= BINS + 3
    assert all(one < other for one, other in itertools.pairwise(edges))
    assert edges[0] <= least
    assert most <= edges[-1]


thousandths = st.integers(-(10**9), 10**9).map(lambda number: number / 1000)
bulks = st.tuples(thousandths, thousandths).map(lambda ends: (min(ends), max(ends)))


class TestWhateverTheEdges:
    @given(bulks, st.sampled_from(AMOUNTS))
    @example((0.1, 0.3), SECONDS)
    @example((0.0, 0.001), SECONDS)
    @example((-0.001, 0.0), COUNT)
    def test_they_ascend_and_hold_all(self, bulk: tuple[float, float], unit: str) -> None:
        least, most = bulk
        assert_bins(bin_edges(least, most, (least, most), unit), least, most)

    @given(bulks, bulks, st.sampled_from(AMOUNTS))
    def test_what_lies_outside_of_the_fence_makes_no_more(
        self, bulk: tuple[float, float], far: tuple[float, float], unit: str
    ) -> None:
        q1, q3 = bulk
        edges = bin_edges(min(q1, *far), max(q3, *far), (q1, q3), unit)
        assert_bins(edges, q1, q3)

    @given(st.integers(-1000, 1000), st.integers(0, 10**6), st.sampled_from([COUNT, WORDS]))
    def test_whole_numbers_are_not_split(self, least: int, reach: int, unit: str) -> None:
        edges = bin_edges(least, least + reach, (least, least + reach), unit)
        assert all(edge == int(edge) for edge in edges)


class TestHistograms:
    def test_count_what_there_is(self, tmp_path: Path) -> None:
        values = [0.0, 0.5, 0.7, 1.0, 1.0, 9.9]
        # quartiles 0.55 and 1: the fence is at 1 + 6 × 0.45 = 3.7; 3.7 ÷ 20 is 0.185, rounded up to 0.2
        found = only(listed(tmp_path, {"wait": values}, [grade("wait", unit="s")])).by_conversation
        assert counts(found) == {(0, 0.2): 1, (0.4, 0.6): 1, (0.6, 0.8): 1, (1.0, 1.2): 2, (3.6, 3.8): 1}
        assert found is not None
        assert (found.n, found.least, found.most) == (6, 0.0, 9.9)
        assert found.mean == pytest.approx(13.1 / 6)
        assert found.p50 == pytest.approx(0.85)  # between 0.7 and 1.0
        assert found.p95 == pytest.approx(1.0 + 0.75 * 8.9)  # place 4.75 of 0 to 5

    def test_whole_numbers_stand_at_the_beginning_of_their_bin(self, tmp_path: Path) -> None:
        run = listed(tmp_path, {"calls": [1.0, 2.0, 2.0, 3.0]}, [grade("calls", unit=COUNT)])
        assert counts(only(run).by_conversation) == {(1, 2): 1, (2, 3): 2, (3, 4): 1}

    def test_a_value_on_an_edge_falls_into_the_bin_that_begins_there(self, tmp_path: Path) -> None:
        # 0.3 and 0.7 have no exact binary form: (0.7 ÷ 0.1) is 6.999…
        run = listed(tmp_path, {"share": [0.0, 0.3, 0.7, 1.0]}, [grade("share", unit=SHARE)])
        assert counts(only(run).by_conversation) == {(0, 0.1): 1, (0.3, 0.4): 1, (0.7, 0.8): 1, (0.9, 1.0): 1}

    def test_all_equal(self, tmp_path: Path) -> None:
        assert counts(only(listed(tmp_path, {"wait": [2.5] * 4}, [grade("wait")])).by_conversation) == {(2, 3): 4}

    def test_one_value(self, tmp_path: Path) -> None:
        found = only(listed(tmp_path, {"wait": [2.5]}, [grade("wait")])).by_conversation
        assert found == Histogram([(2, 3, 1)], 1, 2.5, 2.5, 2.5, 2.5, 2.5)  # type: ignore[list-item]

    def test_what_was_not_measured_is_not_counted(self, tmp_path: Path) -> None:
        run = graded(tmp_path, {"a": {"wait": 1.0}, "b": {}}, [grade("wait"), grade("quality")])
        # of the quality nothing was measured at all: there is nothing to draw
        assert [(one.headline.key, one.by_conversation.n) for one in distributions(run) if one.by_conversation] == [
            ("test.wait", 1)
        ]

    def test_rounding_errors_do_not_break_the_run(self, tmp_path: Path) -> None:
        conversations = [chat(user("hi"), id=str(value), extras={"wait": value}) for value in (0.3, 0.1 + 0.2)]
        run = score(conversations, metrics=[grade("wait", unit="s")], out=tmp_path / "run", workers=1)
        found = only(run).by_conversation
        assert found is not None
        assert sum(one.n for one in found.bins) == 2

    def test_values_that_no_chart_could_show_are_left_out(self, tmp_path: Path) -> None:
        run = graded(tmp_path, {"a": {"wait": -1e120}, "b": {"wait": 1e120}}, [grade("wait", unit="s")])
        assert list(distributions(run)) == []

    def test_a_panel_speaks_for_its_judges(self, tmp_path: Path) -> None:
        @metric("test.judged", version=1, observes=CONVERSATION, unit="points", better=HIGHER)
        def judged(conversation: Conversation) -> Iterator[Observation]:
            """What do two judges say?"""
            yield measured(conversation, 2, judge="p/a")
            yield measured(conversation, 4, judge="z/b")

        found = only(score([chat(user("hi"))], metrics=[judged], out=tmp_path / "run", workers=1))
        assert counts(found.by_conversation) == {(3, 4): 1}  # the median of 2 and 4


class TestSubjects:
    @pytest.fixture
    def turns(self, tmp_path: Path) -> Distribution:
        return only(turned(tmp_path, "words", {"a": [1.0, 2.0, 3.0], "b": [3.0, 4.0], "c": [5.0]}, WORDS))

    def test_are_pooled(self, turns: Distribution) -> None:
        assert counts(turns.by_subject) == {(1, 2): 1, (2, 3): 1, (3, 4): 2, (4, 5): 1, (5, 6): 1}
        assert turns.by_subject is not None
        assert (turns.by_subject.n, turns.by_subject.mean) == (6, 3.0)

    def test_beside_the_conversations(self, turns: Distribution) -> None:
        # means 2, 3.5 and 5
        assert counts(turns.by_conversation) == {(2, 3): 1, (3, 4): 1, (5, 6): 1}
        assert turns.observes == "turn"

    def test_have_a_course(self, turns: Distribution) -> None:
        assert turns.over_turns is not None
        # turn 1: 1, 3, 5; turn 2: 2, 4; turn 3: 3. Quartiles lie a quarter of the way along.
        assert turns.over_turns.points == [(1, 3, 3.0, 2.0, 4.0), (2, 2, 3.0, 2.5, 3.5), (3, 1, 3.0, 3.0, 3.0)]
        assert turns.over_turns.later == 0

    def test_of_shares_only_the_course_says_something(self, tmp_path: Path) -> None:
        found = only(turned(tmp_path, "kept", {"a": [1.0, 0.0], "b": [1.0, 1.0]}, SHARE))
        assert found.by_subject is None
        assert found.over_turns is not None
        assert [(one.position, one.mean) for one in found.over_turns.points] == [(1, 1.0), (2, 0.5)]

    def test_a_turn_without_a_value_is_passed_over(self, tmp_path: Path) -> None:
        found = only(turned(tmp_path, "words", {"a": [1.0, None, 3.0], "b": [3.0, None, 5.0]}, WORDS)).over_turns
        assert found is not None
        assert [(one.position, one.n, one.mean) for one in found.points] == [(1, 2, 2.0), (3, 2, 4.0)]

    def test_one_position_is_no_course(self, tmp_path: Path) -> None:
        assert only(turned(tmp_path, "words", {"a": [1.0], "b": [3.0]}, WORDS)).over_turns is None

    def test_positions_after_the_fortieth_are_counted(self, tmp_path: Path) -> None:
        found = only(turned(tmp_path, "words", {"a": [1.0] * 45, "b": [1.0] * 42, "c": [1.0] * 3}, WORDS)).over_turns
        assert found is not None
        assert [one.position for one in found.points] == list(range(1, MAX_POSITIONS + 1))
        assert found.later == 7  # turns 41 to 45 of a, 41 and 42 of b
        assert (found.points[2].n, found.points[3].n) == (3, 2)

    def test_a_greeting_is_turn_zero(self, tmp_path: Path) -> None:
        @metric("test.replies", version=1, observes=TURN, unit=COUNT, better=HIGHER)
        def replies(conversation: Conversation) -> Iterator[Observation]:
            """How often does the agent speak?"""
            yield from (measured(turn, len(turn.assistant)) for turn in conversation.turns)

        talk = chat(agent("hello"), user("hi"), agent("so"), agent("and"))
        found = only(score([talk], metrics=[replies], out=tmp_path / "run", workers=1)).over_turns
        assert found is not None
        assert [(one.position, one.mean) for one in found.points] == [(0, 1.0), (1, 2.0)]

    def test_events_have_no_course(self, tmp_path: Path) -> None:
        @metric("test.length", version=1, observes=EVENT, unit=COUNT, better=HIGHER)
        def length(conversation: Conversation) -> Iterator[Observation]:
            """How long are the names?"""
            yield from (measured(one, len(one.name)) for one in conversation.tool_calls)

        talk = chat(user("hi"), call("find"), result("find"), user("so"), call("book it"))
        found = only(score([talk], metrics=[length], out=tmp_path / "run", workers=1))
        assert found.over_turns is None
        assert counts(found.by_subject) == {(4, 5): 1, (7, 8): 1}

    def test_a_conversation_has_no_subjects(self, tmp_path: Path) -> None:
        found = only(listed(tmp_path, {"wait": [1.0, 2.0]}, [grade("wait")]))
        assert (found.by_subject, found.over_turns, found.observes) == (None, None, "conversation")


columns = st.lists(
    st.one_of(
        thousandths,
        st.integers(-5, 25).map(float),
        st.integers(-20, 20).map(lambda number: number / 20),  # on the edges of bins
        st.floats(1e-6, 1e-3).map(lambda value: round(value, 9)),
        st.sampled_from([0.0, -0.0, 0.1 * 3, 0.7, 1e12, -1e12]),
    ),
    min_size=1,
    max_size=15,
)
together = st.dictionaries(
    st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(AMOUNTS)), columns, min_size=8, max_size=16
)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(together)
def test_whatever_the_values_each_is_counted_once_and_in_its_bin(drawn: dict[tuple[str, str], list[float]]) -> None:
    units = {f"{name}_{unit}": unit for name, unit in drawn}
    values = {f"{name}_{unit}": column for (name, unit), column in drawn.items()}
    with tempfile.TemporaryDirectory() as folder:
        run = listed(Path(folder), values, [grade(name, unit=unit) for name, unit in units.items()])
        found = {one.headline.metric.removeprefix("test."): one.by_conversation for one in distributions(run)}
    assert found.keys() == values.keys()
    for name, histogram in found.items():
        assert histogram is not None
        assert_counted(histogram, values[name])


def assert_counted(histogram: Histogram, values: Sequence[float]) -> None:
    bins = histogram.bins
    assert sum(one.n for one in bins) == histogram.n == len(values)
    assert (histogram.least, histogram.most) == (min(values), max(values))
    assert histogram.least <= histogram.p50 <= histogram.p95 <= histogram.most
    width = bins[0].high - bins[0].low
    for place, one in enumerate(bins):
        low = -float("inf") if place == 0 else one.low
        high = float("inf") if place == len(bins) - 1 else one.high
        # A value that lies on an edge but for its rounding may be on either side.
        slack = 1e-6 * width
        surely = sum(low + slack <= value < high - slack for value in values)
        perhaps = sum(low - slack <= value < high + slack for value in values)
        assert surely <= one.n <= perhaps
