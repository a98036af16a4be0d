"""A time as a log writes it: seconds of which clock, and what had to be concluded."""

from __future__ import annotations

import pytest

from convoscope.conversation.events import Moment, moment

NINE = 1772442000.0  # 2026-03-02T09:00:00Z


@pytest.mark.parametrize(
    ("value", "at"),
    [
        ("2026-03-02T09:00:00Z", NINE),
        ("2026-03-02T09:00:00.250Z", NINE + 0.25),
        ("2026-03-02T09:00:00.000001+00:00", NINE + 0.000001),
        ("2026-03-02T04:00:00-05:00", NINE),
        ("2026-03-02 14:30:00+05:30", NINE),
        ("20260302T090000Z", NINE),
        ("  2026-03-02T09:00:00Z ", NINE),
        ("1969-12-31T23:59:59Z", -1.0),
    ],
)
def test_iso_with_a_zone_says_everything(value: str, at: float) -> None:
    assert moment(value) == Moment(at, "wall")


@pytest.mark.parametrize("value", ["2026-03-02T09:00:00", "2026-03-02 09:00", "2026-03-02T09:00:00.000000"])
def test_iso_without_a_zone_is_taken_for_utc(value: str) -> None:
    assert moment(value) == Moment(NINE, "wall", "time_zone_taken_as_utc")


def test_a_day_is_its_first_moment() -> None:
    assert moment("2026-03-02") == Moment(NINE - 9 * 3600, "wall", "time_zone_taken_as_utc")


@pytest.mark.parametrize(
    ("value", "unit"),
    [
        (1772442000, "s"),
        (1772442000.0, "s"),
        (1772442000_000, "ms"),
        (1772442000_000_000, "us"),
        (1772442000_000_000_000, "ns"),
        ("1772442000", "s"),
        ("1772442000000", "ms"),
        ("1.772442e9", "s"),
    ],
)
def test_a_large_number_counts_since_the_epoch_in_the_unit_that_its_size_tells(value: object, unit: str) -> None:
    assert moment(value) == Moment(NINE, "wall", f"time_in_epoch_{unit}")


@pytest.mark.parametrize(
    ("value", "at", "kind", "inferred"),
    [
        (99_999_999, 99_999_999.0, "relative", "time_from_start"),  # more than three years into a call
        (100_000_000, 100_000_000.0, "wall", "time_in_epoch_s"),  # 1973
        (99_999_999_999, 99_999_999_999.0, "wall", "time_in_epoch_s"),
        (100_000_000_000, 100_000_000.0, "wall", "time_in_epoch_ms"),
        (100_000_000_000_000, 100_000_000.0, "wall", "time_in_epoch_us"),
        (100_000_000_000_000_000, 100_000_000.0, "wall", "time_in_epoch_ns"),
    ],
)
def test_where_one_unit_ends_and_the_next_begins(value: int, at: float, kind: str, inferred: str) -> None:
    assert moment(value) == Moment(at, kind, inferred)


@pytest.mark.parametrize(("value", "at"), [(0, 0.0), (12.5, 12.5), ("3.25", 3.25), (-0.2, -0.2)])
def test_a_small_number_counts_from_the_start(value: object, at: float) -> None:
    assert moment(value) == Moment(at, "relative", "time_from_start")


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        "",
        "   ",
        "soon",
        "09:00",
        "2026-02-30T09:00:00Z",
        "2026-03-02T25:00:00Z",
        "NaN",
        "inf",
        float("nan"),
        float("-inf"),
        [1772442000],
        {"seconds": 1772442000},
        b"1772442000",
    ],
)
def test_what_is_not_a_time_is_none(value: object) -> None:
    assert moment(value) is None
