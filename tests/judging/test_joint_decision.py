"""What the benchmark of joint questions says of them: on only where they are known to lose nothing."""

from __future__ import annotations

import pytest
from benchmarks.joint import LEAST, decision


@pytest.mark.parametrize(
    ("both", "equal", "lost", "says"),
    [
        (LEAST, LEAST, 0, "on, they lose nothing"),
        (LEAST - 1, LEAST - 1, 0, "off, 29 scores are too few to say, it takes 30"),
        (0, 0, 0, "off, 0 scores are too few to say, it takes 30"),
        # One that changes, or one without a value, is a loss in any number.
        (LEAST, LEAST - 1, 0, "off: 1 of 30 scores differ"),
        (5, 1, 1, "off: 4 of 5 scores differ, values lost: 1"),
        (0, 0, 2, "off: values lost: 2"),
    ],
)
def test_only_what_loses_nothing_goes_together(both: int, equal: int, lost: int, says: str) -> None:
    assert decision(both, equal, lost) == says
