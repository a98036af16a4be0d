"""Worst first: how far each conversation is behind the others, in what, and who comes last."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Context, Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convoscope.conversation import Conversation, Outcome
from convoscope.metrics import (
    CONVERSATION,
    HIGHER,
    LOWER,
    NEITHER,
    GroupSample,
    Metric,
    Observation,
    derived,
    measured,
    metric,
    not_applicable,
)
from convoscope.metrics.declaration import Better
from convoscope.runs.make import make_run as score
from convoscope.runs.measured import measured_columns
from convoscope.runs.ranking import (
    FAILURES,
    REASONS,
    ROUGHNESS,
    RankedConversation,
    headlines,
    names,
    rank,
    worst,
    worst_and_broken,
)
from convoscope.runs.run import Run
from convoscope.runs.score_columns import ScoreColumns
from convoscope.scores.observation import COMPUTED
from convoscope.statistics.panels import panel_name
from support.chats import agent, chat, user
from support.generated import write_lines
from support.graded import grade, graded, listed

QUALITY, WAIT, MOOD = grade("quality"), grade("wait", LOWER, "s"), grade("mood", NEITHER)


def reasons(run: Run) -> dict[str, list[tuple[str, float, float]]]:
    """By conversation: in which metrics it is behind, its value there, and the share that did better."""
    return {
        one.conversation: [(each.headline.metric, each.value, each.share) for each in one.because]
        for one in worst(run, 1000)
    }


def integration_broke(run: Run, limit: int) -> list[RankedConversation]:
    return worst_and_broken(run, limit).broken


def behind(run: Run) -> dict[str, float | None]:
    return {one.conversation: one.behind for one in worst(run, 1000)}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Four conversations and two metrics that count; of the mood nobody says which is better."""
    grades = {
        "a": {"quality": 1.0, "wait": 0.0, "mood": 9.0},
        "b": {"quality": 2.0, "wait": 3.0, "mood": 1.0},
        "c": {"quality": 2.0, "wait": 1.0, "mood": 5.0},
        "d": {"quality": 4.0, "wait": 9.0, "mood": 2.0},
    }
    return graded(tmp_path_factory.mktemp("worst"), grades, [QUALITY, WAIT, MOOD])


class TestTheShareThatDidBetter:
    def test_is_of_all_that_were_measured_itself_among_them(self, run: Run) -> None:
        # Three of the four have more quality than a's 1, and three of the four waited less than d's 9.
        assert reasons(run)["a"] == [("test.quality", 1.0, 3 / 4)]
        assert reasons(run)["d"] == [("test.wait", 9.0, 3 / 4)]

    def test_the_worse_of_two_has_half_of_them_before_it(self, tmp_path: Path) -> None:
        assert reasons(listed(tmp_path, {"quality": [1.0, 2.0]}, [QUALITY]))["c00000"] == [("test.quality", 1.0, 1 / 2)]

    def test_lower_may_be_better(self, run: Run) -> None:
        # b waited 3: a (0) and c (1) of the four waited less. Only d is better than its quality of 2.
        assert reasons(run)["b"] == [("test.wait", 3.0, 2 / 4), ("test.quality", 2.0, 1 / 4)]

    def test_equals_do_no_better(self, run: Run) -> None:
        # b and c share a quality of 2: only d's 4 is better, for both of them.
        shares = {id: {metric: share for metric, _, share in found} for id, found in reasons(run).items()}
        assert shares["b"]["test.quality"] == shares["c"]["test.quality"] == 1 / 4

    def test_without_a_direction_nothing_counts(self, run: Run) -> None:
        assert not any(metric == "test.mood" for found in reasons(run).values() for metric, _, _ in found)

    def test_is_of_those_with_a_value(self, tmp_path: Path) -> None:
        grades = {"a": {"quality": 1.0}, "b": {"quality": 2.0}, "c": {"quality": 3.0}, "x": {}, "y": {}}
        # b: one of the three with a value, not one of five
        run = graded(tmp_path, grades, [QUALITY])
        assert reasons(run)["b"] == [("test.quality", 2.0, 1 / 3)]
        assert {each.measured for one in worst(run, 10) for each in one.because} == {3}

    def test_comes_with_the_number_that_were_measured(self, tmp_path: Path) -> None:
        grades = {"a": {"quality": 1.0, "wait": 2.0}, "b": {"quality": 2.0, "wait": 1.0}, "c": {"quality": 3.0}}
        first = worst(graded(tmp_path, grades, [QUALITY, WAIT]), 1)[0]
        # a: of three qualities two are better, of two waits one
        assert [(each.headline.metric, each.share, each.measured) for each in first.because] == [
            ("test.quality", 2 / 3, 3),
            ("test.wait", 1 / 2, 2),
        ]


def shares(values: list[float], folder: Path, better: Better = HIGHER) -> list[float]:
    """Of each value, the share that did better."""
    run = listed(folder, {"value": values}, [grade("value", better)])
    found = reasons(run)
    return [found[id][0][2] if found[id] else 0.0 for id in sorted(found)]


class TestTies:
    """Values that agree to three significant digits are as good as each other."""

    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            # to three digits both are 0.333; the third is 0.334
            ([0.33333, 0.33349, 0.334], [1 / 3, 1 / 3, 0]),
            # 1.23 and 1.23, then 1.24 (1.236 is nearer to it)
            ([1.2345, 1.2301, 1.236], [1 / 3, 1 / 3, 0]),
            # 124 000 and 123 000: the digits that count are the first, however many follow
            ([123_499.0, 123_501.0, 123_001.0], [1 / 3, 0, 1 / 3]),
            # and however small the values are
            ([1.2341e-9, 1.2339e-9, 1.25e-9], [1 / 3, 1 / 3, 0]),
            # 0.999 is a digit less than 1.00, and 0.9996 is 1.00
            ([0.999, 1.0, 0.9996], [2 / 3, 0, 0]),
            # zero agrees with nothing but zero
            ([0.0, -0.0, 1e-12], [1 / 3, 1 / 3, 0]),
            # -1.00, -1.00 and -0.999
            ([-1.001, -1.0, -0.999], [1 / 3, 1 / 3, 0]),
        ],
    )
    def test_where_higher_is_better(self, values: list[float], expected: list[float], tmp_path: Path) -> None:
        assert shares(values, tmp_path) == pytest.approx(expected)

    def test_where_lower_is_better(self, tmp_path: Path) -> None:
        # 2.00, 2.00 and 1.99: only the last waited less
        assert shares([2.0, 2.004, 1.99], tmp_path, LOWER) == pytest.approx([1 / 3, 1 / 3, 0])

    @pytest.mark.parametrize("most", [1e300, 1e-290])
    def test_no_size_is_too_large_or_too_small(self, most: float, tmp_path: Path) -> None:
        assert shares([0.0, most, -most], tmp_path) == pytest.approx([1 / 3, 0, 2 / 3])

    def test_the_value_itself_is_told_as_it_is(self, tmp_path: Path) -> None:
        assert reasons(listed(tmp_path, {"quality": [1.23456, 2.0]}, [QUALITY]))["c00000"][0][1] == 1.23456


class TestBehind:
    def test_is_the_quadratic_mean_of_the_shares(self, run: Run) -> None:
        found = behind(run)
        # of quality and wait, in quarters: a 3 and 0, b 1 and 2, c 1 and 1, d 0 and 3
        assert found["a"] == pytest.approx(math.sqrt((9 / 16 + 0) / 2))  # 0.530
        assert found["b"] == pytest.approx(math.sqrt((1 / 16 + 4 / 16) / 2))  # 0.395
        assert found["c"] == pytest.approx(math.sqrt((1 / 16 + 1 / 16) / 2))  # 1/4
        assert found["d"] == pytest.approx(math.sqrt((0 + 9 / 16) / 2))  # 0.530

    def test_worst_first_and_equals_by_id(self, run: Run) -> None:
        assert [one.conversation for one in worst(run, 10)] == ["a", "d", "b", "c"]

    def test_one_thing_very_wrong_weighs_more_than_two_a_little(self, run: Run) -> None:
        # d: 0 and 3/4; b: 1/4 and 2/4. The plain mean is 3/8 for both.
        found = behind(run)
        assert found["d"] is not None
        assert found["b"] is not None
        assert found["d"] > found["b"]

    def test_what_was_not_measured_counts_as_not_behind(self, tmp_path: Path) -> None:
        grades = {"a": {"quality": 1.0}, "b": {"quality": 2.0, "wait": 1.0}, "c": {"quality": 3.0, "wait": 2.0}}
        # a: √(((2/3)² + nothing) ÷ 2), though wait was not measured; b: √(((1/3)² + 0²) ÷ 2); c: √((0² + (1/2)²) ÷ 2)
        assert behind(graded(tmp_path, grades, [QUALITY, WAIT])) == pytest.approx(
            {"a": math.sqrt(4 / 18), "b": math.sqrt(1 / 18), "c": math.sqrt(1 / 8)}
        )

    def test_little_measured_is_no_way_to_the_front(self, tmp_path: Path) -> None:
        grades = {
            "bad": {"quality": 2.0, "wait": 9.0},
            "few": {"quality": 1.0},
            "fine": {"quality": 3.0, "wait": 2.0},
            "good": {"quality": 3.0, "wait": 1.0},
        }
        found = worst(graded(tmp_path, grades, [QUALITY, WAIT]), 10)
        # bad √(((2/4)² + (2/3)²) ÷ 2) = √(25/72); few √((3/4)² ÷ 2) = √(9/32), though √((3/4)² ÷ 1) would be more
        # fine √((0² + (1/3)²) ÷ 2) = √(1/18); good 0
        assert [one.conversation for one in found] == ["bad", "few", "fine", "good"]
        assert [one.behind for one in found] == pytest.approx([(25 / 72) ** 0.5, (9 / 32) ** 0.5, (1 / 18) ** 0.5, 0.0])

    def test_a_metric_that_was_measured_nowhere_does_not_count(self, tmp_path: Path) -> None:
        # √((1/2)² ÷ 1): nobody has a wait, and of the mood nobody says which is better
        run = graded(tmp_path, {"a": {"quality": 1.0, "mood": 1.0}, "b": {"quality": 2.0}}, [QUALITY, WAIT, MOOD])
        assert behind(run) == {"a": 0.5, "b": 0.0}

    def test_a_metric_that_was_measured_once_does(self, tmp_path: Path) -> None:
        # √(((1/2)² + 0²) ÷ 2): there is a wait, though it is b's alone
        run = graded(tmp_path, {"a": {"quality": 1.0}, "b": {"quality": 2.0, "wait": 3.0}}, [QUALITY, WAIT])
        assert behind(run) == pytest.approx({"a": math.sqrt(1 / 8), "b": 0.0})

    def test_the_limit_takes_the_first(self, run: Run) -> None:
        assert [one.conversation for one in worst(run, 2)] == ["a", "d"]

    def test_the_number_is_the_place_by_id(self, run: Run) -> None:
        assert {one.conversation: one.number for one in worst(run, 10)} == {"a": 0, "b": 1, "c": 2, "d": 3}
        assert names(run, [3, 1]) == {1: "b", 3: "d"}


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Five conversations; in the metrics one to four, as many of the five did better than the first."""
    values = {
        "one": [9.0, 9.0, 9.0, 9.0, 10.0],
        "two": [8.0, 9.0, 7.0, 9.0, 8.0],
        "three": [7.0, 8.0, 8.0, 8.0, 7.0],
        "four": [6.0, 9.0, 9.0, 9.0, 9.0],
    }
    return listed(tmp_path_factory.mktemp("reasons"), values, [grade(name) for name in values])


class TestReasons:
    def test_are_the_three_greatest_most_first(self, four: Run) -> None:
        # c0 of five: in one 1 is better; in two the two 9s; in three the three 8s; in four all but itself
        assert reasons(four)["c00000"] == [("test.four", 6.0, 0.8), ("test.three", 7.0, 0.6), ("test.two", 8.0, 0.4)]
        assert REASONS == 3

    def test_but_all_count(self, four: Run) -> None:
        # √((1/25 + 4/25 + 9/25 + 16/25) ÷ 4) = √(30/100)
        assert behind(four)["c00000"] == pytest.approx(math.sqrt(0.3))

    def test_only_where_somebody_did_better(self, four: Run) -> None:
        # c1 is behind the last one's 10 in one, and nobody has more in the others.
        assert reasons(four)["c00001"] == [("test.one", 9.0, 0.2)]

    def test_of_equal_ones_the_metric_that_comes_first(self, tmp_path: Path) -> None:
        metrics = [grade(name) for name in ("d", "b", "e", "a", "c")]
        run = listed(tmp_path, {name: [0.0, 1.0] for name in "abcde"}, metrics)
        order = [one.metric for one in headlines(run.summary)]
        assert [name for name, _, _ in reasons(run)["c00000"]] == order[:3]


class TestEdges:
    def test_where_nothing_was_measured_there_is_no_place_but_the_last(self, tmp_path: Path) -> None:
        grades = {"a": {}, "b": {"quality": 1.0}, "c": {"quality": 2.0}}
        found = worst(graded(tmp_path, grades, [QUALITY, MOOD]), 10)
        # b: √((1/2)² ÷ 1), as nobody has a mood, and none would count
        assert [(one.conversation, one.behind) for one in found] == [("b", 0.5), ("c", 0.0), ("a", None)]
        assert found[-1].because == ()

    def test_a_metric_without_a_direction_makes_no_place(self, tmp_path: Path) -> None:
        grades = {"a": {"mood": 1.0}, "b": {"mood": 2.0}}
        assert behind(graded(tmp_path, grades, [MOOD])) == {"a": None, "b": None}

    def test_where_all_are_equal_nobody_is_behind(self, tmp_path: Path) -> None:
        grades = {id: {"quality": 0.5, "wait": 2.0} for id in ("c", "a", "b")}
        found = worst(graded(tmp_path, grades, [QUALITY, WAIT]), 10)
        assert [(one.conversation, one.behind, one.because) for one in found] == [
            ("c", 0.0, ()),  # as they were given
            ("a", 0.0, ()),
            ("b", 0.0, ()),
        ]

    def test_nobody_is_behind_alone(self, tmp_path: Path) -> None:
        (only,) = worst(graded(tmp_path, {"a": {"quality": 0.0}}, [QUALITY]), 10)
        assert (only.behind, only.because) == (0.0, ())  # 0 of 1

    def test_a_metric_that_only_one_has_puts_nobody_behind(self, tmp_path: Path) -> None:
        grades = {"a": {"quality": 0.0, "wait": 99.0}, "b": {"quality": 1.0}}
        assert reasons(graded(tmp_path, grades, [QUALITY, WAIT]))["a"] == [("test.quality", 0.0, 0.5)]

    def test_values_below_zero(self, tmp_path: Path) -> None:
        found = reasons(listed(tmp_path, {"quality": [-1.0, -3.0, 0.0]}, [QUALITY]))
        assert found["c00001"] == [("test.quality", -3.0, 2 / 3)]
        assert found["c00000"] == [("test.quality", -1.0, 1 / 3)]


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Five conversations; in b, d and e the integration broke, and of e nothing could be measured."""
    grades = {"a": {"quality": 1.0}, "b": {"quality": 4.0}, "c": {"quality": 3.0}, "d": {"quality": 2.0}, "e": {}}
    errors = {"b": "no line", "d": "timeout\nafter 3 s", "e": "no agent"}
    conversations = [
        chat(user("hi"), id=id, extras=values, outcome=Outcome(error=errors.get(id, "")))
        for id, values in grades.items()
    ]
    return score(conversations, metrics=[QUALITY], out=tmp_path_factory.mktemp("broken") / "run", workers=1)


class TestWhereTheIntegrationBroke:
    def test_is_not_among_the_worst_and_has_a_list_of_its_own(self, broken: Run) -> None:
        # a 3/4 and c 1/4 say something about the agent; d 2/4, b 0/4 and e, of which nothing is known, do not
        assert [(one.conversation, one.behind) for one in worst(broken, 10)] == [("a", 0.75), ("c", 0.25)]
        listed = [(one.conversation, one.behind) for one in integration_broke(broken, 10)]
        assert listed == [("d", 0.5), ("b", 0.0), ("e", None)]
        assert rank(broken).order.tolist() == [0, 2, 3, 1, 4]

    def test_says_what_broke(self, broken: Run) -> None:
        found = {one.conversation: one.error for one in integration_broke(broken, 10)}
        assert found == {"d": "timeout\nafter 3 s", "b": "no line", "e": "no agent"}
        assert rank(broken).errors == {1: "no line", 3: "timeout\nafter 3 s", 4: "no agent"}

    def test_is_measured_as_any_other(self, broken: Run) -> None:
        (first, *_) = integration_broke(broken, 1)
        assert [(one.headline.metric, one.value, one.share) for one in first.because] == [("test.quality", 2.0, 0.5)]
        assert reasons(broken)["a"] == [("test.quality", 1.0, 0.75)]  # b, c and d of four

    def test_equals_go_in_the_order_of_the_input(self, tmp_path: Path) -> None:
        conversations = [chat(user("hi"), id=id, outcome=Outcome(error="no line")) for id in ("z", "a", "m")]
        run = score([*conversations, chat(user("hi"), id="0")], metrics=[QUALITY], out=tmp_path / "run", workers=1)
        assert [one.conversation for one in integration_broke(run, 10)] == ["z", "a", "m"]
        assert [one.conversation for one in worst(run, 10)] == ["0"]

    def test_a_run_in_which_nothing_broke_has_no_errors(self, run: Run) -> None:
        assert rank(run).errors == {}


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Run:
    said = {"a": (1.0, 9.0), "b": (4.0, 4.0), "c": (9.0, 3.0)}

    @metric("test.judged", version=1, observes=CONVERSATION, unit="points", better=HIGHER)
    def verdict(conversation: Conversation) -> Iterator[Observation]:
        """What do two judges say?"""
        if conversation.id == "d":
            yield not_applicable(conversation, "too_short")
            return
        for judge, value in zip(("p/a", "z/b"), said[conversation.id], strict=True):
            yield measured(conversation, value, judge=judge)

    conversations = [chat(user("hi"), id=id) for id in "abcd"]
    out = tmp_path_factory.mktemp("judged") / "run"
    return score(conversations, metrics=[verdict], out=out, workers=1)


class TestJudges:
    def test_a_panel_speaks_for_its_judges(self, judged: Run) -> None:
        # By name the panel would come between p/a and z/b; it comes last and is the one that counts.
        assert [one.judge for one in headlines(judged.summary)] == [panel_name(["p/a", "z/b"])]

    def test_with_its_own_verdict(self, judged: Run) -> None:
        # medians 5, 4 and 6: b is behind both others, a behind c; d was never judged
        assert reasons(judged) == {
            "b": [("test.judged", 4.0, 2 / 3)],
            "a": [("test.judged", 5.0, 1 / 3)],
            "c": [],
            "d": [],
        }

    def test_whom_the_judges_never_saw_has_no_place(self, judged: Run) -> None:
        assert behind(judged)["d"] is None


def variant(name: str, better: Better) -> Metric:
    @metric("test.quality", version=1, observes=CONVERSATION, unit="points", better=better, variant=name)
    def read(conversation: Conversation) -> Observation:
        """What does the log say?"""
        return measured(conversation, conversation.extras["quality"])

    return read


class TestHeadlines:
    def test_a_figure_over_groups_says_nothing_of_a_conversation(self, tmp_path: Path) -> None:
        def best(samples: list[GroupSample]) -> float:
            """The best?"""
            return max(one.value or 0.0 for one in samples)

        group = derived("test.best", version=1, over="group", unit="points", better=HIGHER, inputs=("test.quality",))
        conversations = [chat(user("hi"), id=id, extras={"quality": float(ord(id))}) for id in "ab"]
        run = score(conversations, metrics=[QUALITY, group(best)], out=tmp_path / "run", workers=1)
        assert [one.key for one in headlines(run.summary)] == ["test.quality"]

    def test_a_figure_within_a_conversation_is_left_to_what_it_is_made_of(self, tmp_path: Path) -> None:
        def half(quality: float) -> float:
            """Half of it?"""
            return quality / 2

        within = derived(
            "test.half", version=1, over="conversation", unit="points", better=HIGHER, inputs=("test.quality",)
        )
        conversations = [chat(user("hi"), id=id, extras={"quality": float(ord(id))}) for id in "ab"]
        run = score(conversations, metrics=[QUALITY, within(half)], out=tmp_path / "run", workers=1)
        assert [name for name, _, _ in reasons(run)["a"]] == ["test.quality"]
        assert behind(run) == {"a": 0.5, "b": 0.0}  # √((1/2)² ÷ 1): the half is no second metric

    def test_of_variants_without_a_default_the_worst_counts_once(self, tmp_path: Path) -> None:
        run = listed(tmp_path, {"quality": [1.0, 2.0]}, [variant("up", HIGHER), variant("down", LOWER)])
        found = {one.conversation: [each.headline.key for each in one.because] for one in worst(run, 2)}
        assert found == {"c00000": ["test.quality@up"], "c00001": ["test.quality@down"]}
        # one is behind in the one, one in the other: √((1/2)² ÷ 1) for both, where two metrics would give √(1/8)
        assert behind(run) == {"c00000": 0.5, "c00001": 0.5}

    def test_a_variant_is_left_to_the_metric_itself(self, tmp_path: Path) -> None:
        run = listed(tmp_path, {"quality": [1.0, 2.0]}, [QUALITY, variant("down", LOWER)])
        assert reasons(run) == {"c00000": [("test.quality", 1.0, 1 / 2)], "c00001": []}

    def test_further_reductions_are_not_counted_twice(self, tmp_path: Path) -> None:
        run = score(write_lines(tmp_path / "chats.jsonl", range(4)), out=tmp_path / "run", workers=1)
        keys = [one.key for one in headlines(run.summary)]
        assert len(keys) == len(set(keys))
        assert set(keys) <= {one.metric for one in run.summary.declared}


def told(value: float) -> Decimal:
    """A value to three significant digits, by the rules of decimal numbers."""
    return Context(prec=3, rounding=ROUND_HALF_EVEN).create_decimal(Decimal(value))


def by_the_book(run: Run) -> list[tuple[str, float | None]]:
    """The ranking from its definition, one pair of conversations at a time."""
    declared = run.summary.by_key
    wholes = tuple(f"{key.partition('@')[0]}." for key in declared)
    rows = [row for row in _measured(run) if declared[row[1]].better != NEITHER and not row[1].startswith(wholes)]
    rows = [row for row in rows if row[1] in ROUGHNESS]
    measured_keys = {key for _, key, _, _ in rows}
    with_value: dict[str, dict[str, tuple[Decimal, float | None]]] = {}
    for id, key, value, points in rows:
        # A part of a metric is left to the whole, a derived figure to what it is made of.
        if not measured_keys & set(declared[key].inputs):
            with_value.setdefault(key, {})[id] = (told(value), points)
    standing: list[tuple[int, float | None, str]] = []
    for conversation in run.conversations():
        squares: dict[str, list[float]] = {}
        failed: set[str] = set()
        for key, values in with_value.items():
            if conversation.id in values:
                sign, (mine, points) = 1 if declared[key].better == HIGHER else -1, values[conversation.id]
                ten = declared[key].ten_points
                passes = ten is not None and points is not None and points >= ten.passes_at
                if ten is not None and points is not None and points < ten.passes_at:
                    failed.add(declared[key].family)
                better = sum(sign * other > sign * mine for other, _ in values.values())
                squares.setdefault(declared[key].family, []).append(0.0 if passes else (better / len(values)) ** 2)
        # A family counts once, however many of its metrics have a value in the run.
        size = Counter(declared[key].family for key in with_value)
        total = math.fsum(math.fsum(mine) / size[family] for family, mine in squares.items())
        behind = math.sqrt(total / len(size)) if squares else None
        standing.append((-len(failed), behind, conversation.id))
    standing.sort(key=lambda one: (one[0], 1 if one[1] is None else -round(one[1], 9), one[2]))
    return [(id, behind) for _, behind, id in standing]


def _measured(run: Run) -> list[tuple[str, str, float, float | None]]:
    from convoscope.runs.database import connect

    with connect(run.folder) as connection:
        query = (
            f"SELECT c.conversation, if(variant = '', metric, metric || '@' || variant), value, score "
            f"FROM {run.table('conversation_scores')} JOIN {run.table('conversations')} c USING (number) "
            "WHERE status = 'measured' ORDER BY number"
        )
        return connection.execute(query).fetchall()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("whole")
    return score(write_lines(folder / "chats.jsonl", range(90)), out=folder / "run", workers=1)


class TestAWholeRun:
    def test_is_ranked_as_the_definition_says(self, whole: Run) -> None:
        found = worst(whole, 1000)
        expected = by_the_book(whole)
        assert [one.behind for one in found] == pytest.approx([one for _, one in expected], nan_ok=True)
        assert [one.conversation for one in found[:10]] == [id for id, _ in expected[:10]]
        assert {one.conversation: one.behind for one in found} == pytest.approx(dict(expected), nan_ok=True)

    def test_every_conversation_has_one_place(self, whole: Run) -> None:
        assert sorted(rank(whole).order.tolist()) == list(range(90))

    def test_reasons_descend_and_never_name_all(self, whole: Run) -> None:
        for one in worst(whole, 1000):
            places = [(FAILURES.index(each.failure), each.share) for each in one.because]
            assert places == sorted(places, reverse=True)  # what fails first
            # never all: it is itself among those measured; and none where it failed as all others did
            assert all(share < 1 and (share > 0 or failure) for failure, share in places)

    def test_who_worked_on_it_does_not_matter(self, whole: Run, tmp_path: Path) -> None:
        logs = write_lines(tmp_path / "chats.jsonl", range(90))
        other = score(logs, out=tmp_path / "run", workers=2, part_bytes=4000)
        assert worst(other, 1000) == worst(whole, 1000)


values = st.sampled_from([-1e300, -1.5, -0.0, 0.0, 5e-324, 0.1 + 0.2, 0.3, 1.0, 2.0, 1e300])
rows = st.fixed_dictionaries({}, optional={"quality": values, "wait": values, "mood": values})


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(rows, min_size=1, max_size=8))
def test_whatever_the_values_all_are_ranked_by_what_they_are_behind(grades: list[dict[str, float]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        named = {f"c{place}": one for place, one in enumerate(grades)}
        run = graded(Path(folder), named, [QUALITY, WAIT, MOOD])
        found = worst(run, 100)
    assert sorted(one.conversation for one in found) == sorted(named)
    places = [-1.0 if one.behind is None else one.behind for one in found]
    assert places == sorted(places, reverse=True)
    measured_in = {key: sum(key in one for one in grades) for key in ("quality", "wait")}
    for one in found:
        counting = named[one.conversation].keys() & {"quality", "wait"}
        assert (one.behind is None) == (not counting)
        assert len(one.because) <= len(counting)
        for each in one.because:
            n = measured_in[each.headline.metric.removeprefix("test.")]
            assert each.measured == n
            assert 1 / n <= each.share <= (n - 1) / n
            assert one.behind is not None
            # as far behind as any one reason alone would put it, and never further than the worst reason
            assert each.share / math.sqrt(2) <= one.behind * (1 + 1e-12) + 1e-12
        assert one.behind is None or one.behind <= max((each.share for each in one.because), default=0.0) + 1e-12


class TestARunThatIsReadOneMetricAtATime:
    """Above some rows, metrics are read one by one, and a column that holds one value takes no room."""

    @pytest.mark.parametrize("most", [10**6, 0])
    def test_the_columns_are_what_was_measured(self, tmp_path: Path, most: int) -> None:
        chats = [chat(*[user("hi"), agent("yes?")] * turns, id=f"c{at}") for at, turns in enumerate((1, 2, 2))]
        run = score(chats, metrics=["conversation.turns"], out=tmp_path / "run", workers=1)
        run.columns = ScoreColumns(run.tables, most)
        rows = measured_columns(run, "conversation.turns", "", COMPUTED, ("value", "n", "score", "tp"))
        assert rows["number"].tolist() == [0, 1, 2]
        assert rows["value"].tolist() == [1, 2, 2]  # turns of the user
        assert rows["n"].tolist() == [1, 1, 1]
        assert rows["tp"].tolist() == [0, 0, 0]
        assert np.isnan(rows["score"]).all()  # it has no points
        assert rows["score"].shape == (3,)
