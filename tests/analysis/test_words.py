"""Figures in words: what is not zero never prints as zero, and nothing is said that is not so."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from convoscope.analysis.answer import make, rank_texts
from convoscope.analysis.answer.make import reason_of
from convoscope.analysis.words import (
    counted,
    folder_text,
    interval_text,
    number_text,
    points_text,
    reason_text,
    reasons_text,
    unrounded_text,
    value_text,
)
from convoscope.conversation import Outcome
from convoscope.metrics import COUNT, HIGHER, LOWER, RATIO, SECONDS, SHARE, WORDS, TenPoints
from convoscope.runs.make import make_run as score
from convoscope.runs.ranking import Headline, RankedConversation, RankedMetric, rank, worst, worst_and_broken
from convoscope.runs.run import Run
from convoscope.runs.summary import DeclaredMetric
from convoscope.statistics.summary import Figure
from support import figures
from support.chats import agent, chat, user
from support.graded import grade

UNITS = (SHARE, RATIO, COUNT, WORDS, SECONDS, "points")
DIGITS = {SHARE: 1, RATIO: 3}
"""After the point; two for all others."""


class TestValues:
    @pytest.mark.parametrize(
        ("value", "unit", "text"),
        [
            (0.5, SHARE, "50.0 %"),
            (1 / 3, SHARE, "33.3 %"),
            (1, SHARE, "100.0 %"),
            (0.5, RATIO, "0.500"),
            (2 / 3, RATIO, "0.667"),
            (1.5, SECONDS, "1.50 s"),
            (1_234.567, SECONDS, "1,234.57 s"),
            (-2.5, SECONDS, "-2.50 s"),
            (3, COUNT, "3"),
            (2.5, COUNT, "2.5"),
            (100, COUNT, "100"),  # only the zeros behind the point are left out
            (1_000_000, COUNT, "1,000,000"),
            (2.25, WORDS, "2.25 words"),
            (7, "points", "7.00 points"),
        ],
    )
    def test_are_written_as_people_write_them(self, value: float, unit: str, text: str) -> None:
        assert value_text(value, unit) == text

    def test_none_is_a_dot(self) -> None:
        assert value_text(None, SHARE) == "·"

    @pytest.mark.parametrize(
        ("unit", "text"),
        [(SHARE, "0.0 %"), (RATIO, "0.000"), (COUNT, "0"), (SECONDS, "0.00 s"), ("points", "0.00 points")],
    )
    def test_zero_is_zero(self, unit: str, text: str) -> None:
        assert value_text(0.0, unit) == text
        assert value_text(0, unit) == text


class TestWhatIsNotZero:
    @pytest.mark.parametrize(
        ("value", "unit", "text"),
        [
            # Two digits behind the point: half of the last is 0.005.
            (0.004, SECONDS, "0.004 s"),
            (0.00123, SECONDS, "0.0012 s"),
            (0.00499, SECONDS, "0.005 s"),
            (0.005, SECONDS, "0.01 s"),
            (0.0051, SECONDS, "0.01 s"),
            (-0.004, SECONDS, "-0.004 s"),
            (0.004, COUNT, "0.004"),
            (0.004, "points", "0.004 points"),
            # One digit of per cent: half of the last is 0.05 %, which is a share of 0.0005.
            (0.0004, SHARE, "0.04 %"),
            (0.000123, SHARE, "0.012 %"),
            (0.0006, SHARE, "0.1 %"),
            (0.00001, SHARE, "0.001 %"),
            # Three digits: half of the last is 0.0005.
            (0.0004, RATIO, "0.0004"),
            (0.00012345, RATIO, "0.00012"),
            (0.0006, RATIO, "0.001"),
            (1e-7, RATIO, "1e-07"),
            (1e-7, SECONDS, "1e-07 s"),
            (1e-9, SHARE, "1e-07 %"),  # a hundred times as many per cent
            (5e-324, SECONDS, "4.9e-324 s"),  # the least that there is
        ],
    )
    def test_has_two_digits_below_half_of_the_last(self, value: float, unit: str, text: str) -> None:
        assert value_text(value, unit) == text

    @given(st.floats(-1e12, 1e12, allow_nan=False), st.sampled_from(UNITS))
    @example(0.005, SECONDS)
    @example(0.0005, SHARE)
    @example(0.0005, RATIO)
    @example(-0.00049999999999999, RATIO)
    @example(2.2250738585e-313, SHARE)
    def test_never_prints_as_zero(self, value: float, unit: str) -> None:
        assume(value != 0)
        text = number_text(value, unit)
        assert float(text.replace(",", "")) != 0
        assert (text[0] == "-") == (value < 0)
        assert value_text(value, unit) not in {"0", "0.0 %", "0.00 s", "0.000", "-0", "-0.0 %", "-0.00 s", "-0.000"}

    @given(st.floats(-1e9, 1e9, allow_nan=False, allow_subnormal=False), st.sampled_from(UNITS))
    def test_is_told_to_half_of_the_last_digit_and_two_digits_at_least(self, value: float, unit: str) -> None:
        shown = 100 * value if unit == SHARE else value
        half = 0.5 * 10 ** -DIGITS.get(unit, 2)
        told = float(number_text(value, unit).replace(",", ""))
        # Two digits are within a twentieth of the value, and a half of the last is never further than that.
        assert abs(told - shown) <= min(half, max(0.05 * abs(shown), half if abs(shown) >= half else 0.0)) + 1e-6 * half


def figure(low: float | None, high: float = 0.0, unit: str = SECONDS) -> Figure:
    return figures.figure("test.it", 0.5, low, high, unit=unit)


class TestIntervals:
    @pytest.mark.parametrize(
        ("low", "high", "unit", "text"),
        [
            (0.25, 0.75, SHARE, "25.0 to 75.0"),
            (0.0, 0.0004, SHARE, "0.0 to 0.04"),
            (0.004, 1.5, SECONDS, "0.004 to 1.50"),
            (-0.5, 0.001, SECONDS, "-0.50 to 0.001"),
            (1e-7, 0.5, RATIO, "1e-07 to 0.500"),
            # Both ends of a count have their digits.
            (3, 12.5, COUNT, "3.00 to 12.50"),
            (0.0, 0.004, COUNT, "0.00 to 0.004"),
        ],
    )
    def test_have_two_ends_without_their_unit(self, low: float, high: float, unit: str, text: str) -> None:
        assert interval_text(figure(low, high, unit)) == text

    def test_none_is_a_dot(self) -> None:
        assert interval_text(figure(None)) == "·"

    @given(st.floats(0, 1e6), st.floats(0, 1e6), st.sampled_from(UNITS))
    def test_an_end_that_is_not_zero_never_prints_as_zero(self, one: float, other: float, unit: str) -> None:
        ends = sorted((one, other))
        told = interval_text(figure(*ends, unit)).split(" to ")
        assert [float(text.replace(",", "")) == 0 for text in told] == [end == 0 for end in ends]


SUCCESS = Headline("tools.success", "", "(computed)", SHARE, HIGHER)
LATENCY = Headline("timing.latency", "strict", "(computed)", SECONDS, HIGHER)
KNOWN = figures.summary(
    declared=[
        DeclaredMetric(
            metric="tools.success",
            family="tools",
            version=1,
            question="?",
            unit=SHARE,
            better=HIGHER,
            observes="event",
            label="calls that work",
            ten_points=TenPoints(zero=0.0, ten=1.0, passes_at=7.0),
        )
    ]
)


class TestWhyAConversationHasItsRank:
    @pytest.mark.parametrize("measured", [2, 3, 100, 1_000])
    def test_says_than_how_many_it_is_worse(self, measured: int) -> None:
        for better in range(1, measured):
            behind = RankedMetric(SUCCESS, 0.0, better / measured, measured)
            assert reason_of(KNOWN, behind, "call") == f"calls that work 0.0 %, worse than {better:,} of {measured:,}"

    def test_a_metric_that_is_not_declared_has_its_name(self) -> None:
        slow = RankedMetric(LATENCY._replace(better=LOWER), 4.0, 12_345 / 1_234_500, 1_234_500)
        assert reason_of(KNOWN, slow, "call") == "timing.latency@strict 4.00 s, worse than 12,345 of 1,234,500"
        assert reason_of(KNOWN, RankedMetric(LATENCY, 0.004, 0.5, 2), "call") == (
            "timing.latency@strict 0.004 s, worse than 1 of 2"
        )

    def test_failures_say_what_they_fail(self) -> None:
        for failure, text in (
            ("target", "calls that work 50.0 %, misses its target"),
            ("mark", "calls that work 50.0 %, below its mark of 70.0 %"),
            ("outcome", "calls that work 50.0 %, the worst there is"),
        ):
            assert reason_of(KNOWN, RankedMetric(SUCCESS, 0.5, 0.75, 4, failure), "call") == text


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Run:
    def grades(value: float) -> dict[str, float]:
        return {"pace": value, "quality": value, "tone": value}

    broke = Outcome(error="no line")
    conversations = [
        chat(user("hi"), id="a", extras=grades(1.0)),
        chat(user("hi"), id="b", extras=grades(4.0), outcome=broke),
        chat(user("hi"), id="c", extras=grades(2.0)),
        chat(user("hi"), id="d"),
        chat(user("hi"), id="e", extras=grades(3.0), outcome=broke),
        chat(user("hi"), id="f", outcome=broke),
    ]
    folder = tmp_path_factory.mktemp("graded") / "run"
    return score(conversations, metrics=[grade(name) for name in grades(0)], out=folder, workers=1)


def texts_by_id(run: Run, ranked: Sequence[RankedConversation], most: int = 2) -> list[tuple[str, str]]:
    texts = rank_texts(run, ranked, most)
    return [(conversation.conversation, text) for conversation, text in zip(ranked, texts, strict=True)]


class TestARankInOneLine:
    def test_names_the_first_two_reasons(self, graded: Run) -> None:
        assert texts_by_id(graded, worst(graded, 10)) == [
            ("a", "pace 1.00 points, worse than 3 of 4; quality 1.00 points, worse than 3 of 4"),
            ("c", "pace 2.00 points, worse than 2 of 4; quality 2.00 points, worse than 2 of 4"),
            ("d", "no metric with a direction was measured"),
        ]

    def test_or_as_many_as_are_wanted(self, graded: Run) -> None:
        assert rank_texts(graded, worst(graded, 1), 1) == ["pace 1.00 points, worse than 3 of 4"]
        assert rank_texts(graded, worst(graded, 1), 9) == [
            "; ".join(f"{name} 1.00 points, worse than 3 of 4" for name in ("pace", "quality", "tone"))
        ]

    def test_of_which_what_broke_is_the_first(self, graded: Run) -> None:
        broken = worst_and_broken(graded, 10).broken
        broke = "the integration broke: no line"
        assert texts_by_id(graded, broken) == [
            ("e", f"{broke}; pace 3.00 points, worse than 1 of 4"),
            ("b", broke),  # worse than no other
            ("f", broke),  # nothing was measured
        ]
        assert rank_texts(graded, broken, 1) == [broke] * 3

    def test_says_where_there_is_no_reason(self, graded: Run) -> None:
        (first,) = worst(graded, 1)
        assert rank_texts(graded, [first._replace(number=3, behind=0.0)]) == [
            "no mark is missed, and no metric of the order is worse than in others"
        ]
        assert rank_texts(graded, [first._replace(number=3, behind=None)]) == [
            "no metric with a direction was measured"
        ]

    def test_what_is_lost_comes_first(self, tmp_path: Path) -> None:
        outcomes = {"lost": False, "done": True}
        talks = [
            chat(user("hi"), agent("hello"), id=id, extras={"quality": float(done)}, outcome=Outcome(completed=done))
            for id, done in outcomes.items()
        ]
        run = score(talks, metrics=[grade("quality")], out=tmp_path / "run", workers=1)
        assert rank_texts(run, worst(run, 1), 9) == ["lost: the log says so; quality 0.00 points, worse than 1 of 2"]

    def test_before_which_its_cause_is_named(self, lost: Run) -> None:
        assert rank_texts(lost, worst(lost, 2)) == ["no reply to “hi”", "lost: the log says so"]

    def test_lost_without_evidence(self, lost: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        without = rank(lost)._replace(lost=dict.fromkeys(rank(lost).lost, ""))
        monkeypatch.setattr(make, "rank", lambda run: without)
        assert rank_texts(lost, worst(lost, 2)) == ["no reply to “hi”", "lost"]

    @pytest.fixture
    def lost(self, tmp_path: Path) -> Run:
        talks = [
            chat(*events, id=id, outcome=Outcome(completed=False))
            for id, events in {"silent": [user("hi")], "told": [user("hi"), agent("hello")]}.items()
        ]
        return score(talks, metrics=[grade("quality")], out=tmp_path / "run", workers=1)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("places")
    return score([chat(user("hi"))], metrics=["turns"], out=folder / "run", workers=1)


class TestWhereARunIs:
    @pytest.mark.parametrize(
        ("folder", "text"),
        [
            ("runs/mine", "runs/mine"),
            ("runs/my run", "'runs/my run'"),
            ("runs/$(reboot); `x`", "'runs/$(reboot); `x`'"),
            ("it's", "'it'\"'\"'s'"),
            # whoever gets the page need not know where its maker keeps runs
            ("/somebody/secret/mine", "mine"),
            ("/somebody/secret/my run", "'my run'"),
        ],
    )
    def test_is_told_as_a_command_would_name_it(self, folder: str, text: str, run: Run) -> None:
        assert folder_text(Run(Path(folder), run.receipt)) == text

    @given(st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=20))
    def test_whatever_its_name_it_is_one_word(self, run: Run, name: str) -> None:
        folder = Path("runs") / name
        assert shlex.split(folder_text(Run(folder, run.receipt))) == [str(folder)]


class TestCounting:
    @pytest.mark.parametrize(("count", "text"), [(0, "0 files"), (1, "1 file"), (2, "2 files"), (1_200, "1,200 files")])
    def test_one_is_not_many(self, count: int, text: str) -> None:
        assert counted(count, "file") == text


class TestPoints:
    declared = DeclaredMetric(
        metric="test.it",
        family="test",
        version=1,
        question="?",
        unit="share",
        better="higher",
        observes="conversation",
        ten_points=TenPoints(0.0, 1.0, passes_at=7.0),
    )

    def test_without_a_map_there_are_none(self) -> None:
        assert points_text(None, self.declared) == ""

    def test_the_pass_mark_passes(self) -> None:
        assert points_text(7.0, self.declared) == "7.0, passes"

    def test_what_does_not_pass_never_prints_as_the_mark(self) -> None:
        assert points_text(6.5, self.declared) == "6.5, below 7"
        assert points_text(6.96, self.declared) == "6.96, below 7"
        assert points_text(6.99999, self.declared) == "just below 7, below 7"


def test_a_figure_that_failed_over_measured_conversations_says_why() -> None:
    failed = Figure(
        metric="test.sum",
        unit=SECONDS,
        better=HIGHER,
        status="error",
        value=None,
        reason="reduction_failed",
        coverage=1.0,
        samples_total=3,
        samples_measured=2,
        samples_skipped=1,
        skipped_reasons={"no_clock": 1},
        n=2,
    )
    assert reasons_text(failed) == "reduction failed, 1 no clock"


def test_a_figure_computed_from_others_gives_their_reason() -> None:
    assert reason_text("input_no_ticks") == reason_text("no_ticks") == "no ticks"


@pytest.mark.parametrize(
    ("value", "mark", "unit", "text"),
    [
        (0.69981, 0.7, RATIO, "0.6998"),  # three digits print both as 0.700
        (0.69996, 0.7, SHARE, "69.996 %"),  # with two digits, 70.00 is still the mark
        (0.7, 0.7, SHARE, "70.0 %"),
        (0.5, 0.7, SHARE, "50.0 %"),
        (1.7649, 1.76, SECONDS, "1.765 s"),
    ],
)
def test_a_unrounded_text_its_mark_prints_unlike_it(value: float, mark: float, unit: str, text: str) -> None:
    assert unrounded_text(value, mark, unit) == text
