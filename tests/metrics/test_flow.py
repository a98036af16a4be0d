"""The aspects of a flow that the matrix does not show: scales of judges, and what each part counts."""

from __future__ import annotations

import pytest

from convoscope.conversation import Label
from convoscope.metrics.flow.aspects import errors
from convoscope.metrics.flow.humanness import humanness
from convoscope.scoring.evaluate import observe
from support.flow_conversations import answered, call, called, entered, exited, guard, path


class TestHumanness:
    @pytest.mark.parametrize(
        ("value", "scale", "measured"),
        [
            (0.7, "", 0.7),
            (7, "0-10", 0.7),
            (7, "0 to 10", 0.7),
            (3, "0-100", 0.03),
            (4, "0–5", 0.8),
        ],
    )
    def test_a_verdict_is_read_on_its_scale(self, value: float, scale: str, measured: float) -> None:
        said = call(entered("a"), labels=(Label(name="humanness", value=value, scale=scale),))
        assert observe(humanness, said)[0].value == pytest.approx(measured)

    @pytest.mark.parametrize(("value", "scale"), [(7, ""), (11, "0-10"), (3, "1-5"), (3, "stars"), ("good", "0-10")])
    def test_off_its_scale_there_is_no_value(self, value: object, scale: str) -> None:
        said = call(entered("a"), labels=(Label(name="humanness", value=value, scale=scale),))
        assert (observe(humanness, said)[0].value, observe(humanness, said)[0].reason) == (None, "not_on_scale")


class TestErrors:
    def test_each_counts_one(self) -> None:
        talk = call(
            entered("a"),
            guard("boom"),
            called(id="1"),
            answered(False, id="1"),
            exited("a", "b"),
            *path("b", "a", "b", "a", "b", "a"),
            completed=False,
            stop="max_turns",
        )
        # A guard, a tool, the limit, and a, which was entered again three times; b was entered again twice.
        assert errors(talk)[0].value == 4.0
