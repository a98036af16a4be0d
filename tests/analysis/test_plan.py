"""How many conversations show an effect: hand-derived sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from convoscope.analysis.plan import effect_size
from convoscope.errors import UsageError
from support.command_line import Ended, convoscope_here
from support.compared_logs import write
from support.ended_chats import ended
from support.scenarios import Record


def planned(folder: Path, records: list[Record], *options: object, effect: str = "5pp") -> Ended:
    run = folder / "run"
    made = convoscope_here(
        "score", write(folder / "logs", records), "--label", "resolved", "-m", "outcome.success", "--out", run
    )
    assert made.code == 0, made.err
    return convoscope_here("plan", "--effect", effect, "--from", run, *options)


def test_without_scenarios(tmp_path: Path) -> None:
    """100 of 200. (1.960 + 0.8416)² × 2 × 0.25 × 200 ÷ 199 ÷ 0.05² = 1,577.6."""
    found = planned(tmp_path, [ended(f"c{n}", n % 2 > 0) for n in range(200)], "--json").json
    (size,) = found["sizes"]
    assert (size["design"], size["scenarios"], size["conversations"]) == ("unpaired", None, 1578)
    # the same with 200: √(7.849 × 2 × 0.25126 ÷ 200)
    assert found["detectable"] == pytest.approx(0.1404, abs=2e-4)


def test_trials_that_always_agree(tmp_path: Path) -> None:
    """20 scenarios, half of them always solved: all of the spread is between them, so that pairs see any change."""
    records = [ended(f"s{n}-{t}", n % 2 > 0, scenario_id=f"s{n}", trial=str(t)) for n in range(20) for t in range(2)]
    found = planned(tmp_path, records, "--json").json
    pairs = [size["scenarios"] for size in found["sizes"] if size["design"] == "pairs"]
    assert pairs == [5, 5, 5]  # never fewer than a comparison needs
    # between: 20 means of ±0.5, of which the mean is 0: 2 × 20 × 0.25 ÷ 19 ÷ 2 = 0.26316; 7.849 × 2 × 0.26316 ÷ 0.0025
    assert found["sizes"][-1]["scenarios"] == 1653
    assert found["assumes_alike"] is True


def test_trials_that_never_agree(tmp_path: Path) -> None:
    """Each scenario is solved in one of its two trials: pairs gain nothing, and more trials count like scenarios."""
    records = [ended(f"s{n}-{t}", t > 0, scenario_id=f"s{n}", trial=str(t)) for n in range(20) for t in range(2)]
    found = planned(tmp_path, records, "--json").json
    # within: 40 × 0.25 ÷ 20 = 0.5; 7.849 × 2 × 0.5 ÷ 0.0025 = 3,139.6 pairs of one trial, a third of it with three
    assert [size["scenarios"] for size in found["sizes"][:2]] == [3140, 1047]


def test_on_the_terminal(tmp_path: Path) -> None:
    out = planned(tmp_path, [ended(f"c{n}", n % 2 > 0) for n in range(200)]).out
    assert "To show a difference of 5.0 points in chats that reach their goal (50.0 %" in out
    assert "without pairs" in out
    assert "1,600 chats a side" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("text", "unit", "value", "size"),
    [("3pp", "share", 0.5, 0.03), ("10%", "s", 2.0, 0.2), ("0.2s", "s", 2.0, 0.2), (".5", "count", 1.0, 0.5)],
)
def test_sizes_of_effects(text: str, unit: str, value: float, size: float) -> None:
    assert effect_size(text, unit, value) == pytest.approx(size)


@pytest.mark.parametrize(("text", "unit"), [("3pp", "s"), ("much", "share"), ("0pp", "share"), ("3ms", "s")])
def test_no_sizes(text: str, unit: str) -> None:
    with pytest.raises(UsageError):
        effect_size(text, unit, 1.0)


@pytest.mark.parametrize("options", [("--figure", "nothing"), ("--power", "many"), ("--power", "1.0")])
def test_bad_usage(tmp_path: Path, options: tuple[str, ...]) -> None:
    done = planned(tmp_path, [ended(f"c{n}", n % 2 > 0) for n in range(20)], *options)
    assert done.code == 2
    assert done.err.startswith("error: ")
