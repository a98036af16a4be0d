"""Median over judges: several judges of one subject become a panel (design, ideas 4 and 6)."""

import pytest

from convoscope.metrics import Observation, measured, unmeasured
from convoscope.statistics.within import panel, panel_name
from support.tables import turn


def said(judge: str, *values: float, about: int = 1) -> list[Observation]:
    """What a judge says of a turn, once or several times."""
    return [measured(turn(about), value, judge=judge, repeat=repeat) for repeat, value in enumerate(values)]


class TestPanel:
    def test_the_middle_of_three(self) -> None:
        (one,) = panel([*said("p/a", 1), *said("p/b", 5), *said("p/c", 4)])
        assert (one.subject, one.value) == (turn(1), 4.0)  # 1 4 5; the mean would be 3.33
        assert one.details == {"judges": 3, "spread": 4.0}  # 5 − 1

    @pytest.mark.parametrize(
        ("values", "median"),
        [([1, 4], 2.5), ([1, 9, 2, 4], 3.0)],  # (1 + 4) ÷ 2; 1 2 4 9: (2 + 4) ÷ 2
    )
    def test_between_the_two_middle_ones_of_an_even_number(self, values: list[float], median: float) -> None:
        (one,) = panel([each for judge, value in enumerate(values) for each in said(f"p/{judge}", value)])
        assert one.value == median

    def test_a_judge_that_was_asked_several_times_has_one_voice(self) -> None:
        (one,) = panel([*said("p/a", 1, 3), *said("p/b", 5), *said("p/c", 4)])
        assert one.value == 4.0  # 2 4 5; with each answer a voice, 1 3 4 5, it would be 3.5
        assert one.details == {"judges": 3, "spread": 3.0}  # 5 − 2

    def test_each_subject_has_its_verdict(self) -> None:
        both = [*said("p/a", 1), *said("p/b", 3), *said("p/a", 7, about=2), *said("p/b", 8, about=2)]
        assert [(one.subject, one.value) for one in panel(both)] == [(turn(1), 2.0), (turn(2), 7.5)]

    def test_a_missing_judge_makes_the_panel_unmeasured(self) -> None:
        silent = unmeasured(turn(1), "refused", judge="p/c")
        (one,) = panel([*said("p/a", 1), *said("p/b", 5), silent])
        assert (one.status, one.value, one.reason, one.detail) == ("unmeasured", None, "judge_missing", "p/c")

    def test_only_where_it_is_missing(self) -> None:
        first = [*said("p/a", 1), *said("p/b", 5), *said("p/c", 2)]
        second = [*said("p/a", 1, about=2), *said("p/c", 1, about=2)]  # b says nothing of turn 2
        assert [(one.value, one.detail) for one in panel([*first, *second])] == [(2.0, ""), (None, "p/b")]

    def test_one_judge_is_no_panel(self) -> None:
        assert panel(said("p/a", 1, 2, 3)) == []
        assert panel([]) == []


class TestName:
    def test_who_sits_on_it_in_any_order(self) -> None:
        assert panel_name(["p/a", "p/b", "p/c"]) == panel_name(["p/c", "p/a", "p/b"])
        assert panel_name(["p/a", "p/b"]) != panel_name(["p/a", "p/c"])
        assert panel_name(["p/a", "p/b"]).startswith("panel:")

    def test_the_verdict_carries_it(self) -> None:
        forth, back = [*said("p/a", 1), *said("p/b", 5)], [*said("p/b", 5), *said("p/a", 1)]
        name = panel_name(["p/a", "p/b"])
        assert [one.judge for one in (*panel(forth), *panel(back))] == [name, name]

    def test_also_where_it_has_no_verdict(self) -> None:
        (one,) = panel([*said("p/a", 1), unmeasured(turn(1), "refused", judge="p/b")])
        assert one.judge == panel_name(["p/a", "p/b"])
