"""Metrics that are part of another."""

import pytest

from convoscope.metrics.registry import parent_metric

NAMES = {"voice.turn_taking", "voice.turn_taking.late_rate", "voice.turn_taking.late.rate", "voice.stt_wer", "voice"}


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("voice.turn_taking.late_rate", "voice.turn_taking"),
        ("voice.turn_taking.late.rate", "voice.turn_taking"),  # voice.turn_taking.late is no metric
        ("voice.turn_taking.late_rate.deeper", "voice.turn_taking.late_rate"),  # the nearest
        ("voice.turn_taking", ""),  # a family is no metric, though something were called so
        ("voice.turn_taking_more", ""),  # a name ends with a dot, not with a letter
        ("voice.unknown.rate", ""),
        ("voice", ""),
        ("", ""),
    ],
)
def test_a_part_has_the_name_of_the_whole_before_its_own(name: str, whole: str) -> None:
    assert parent_metric(name, NAMES) == whole
