"""The sum of a column: exactly rounded, whether its numbers are whole or not."""

from math import fsum

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from convoscope.statistics.intervals import total

WHOLE = st.integers(-(2**52), 2**52).map(float)
ANY = st.floats(-1e100, 1e100)


@given(st.lists(WHOLE) | st.lists(ANY) | st.lists(WHOLE | ANY))
def test_the_sum_is_that_of_exact_numbers(values: list[float]) -> None:
    assert total(np.array(values, dtype=np.float64)) == fsum(values)


def test_whole_numbers_that_no_double_can_add_are_added_exactly() -> None:
    # 2**53 + 1 + 1 is 2**53 + 2; added one after the other in doubles, each 1 is lost
    assert total(np.array([2.0**53, 1.0, 1.0])) == 2.0**53 + 2
