"""What a check of a judge comes to, on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from convoscope.analysis.judge_check import CheckedPair, CheckedRubric
from convoscope.judging.backends import YES_NO
from convoscope.report.screen import Screen
from convoscope.report.table import TableColumn, number_column, print_table, print_words, text_table


def print_check(
    screen: Screen, judge: str, form: str, pairs: Sequence[CheckedPair], checked: Sequence[CheckedRubric]
) -> None:
    """Whether a model can do the job, then rubric by rubric, then what it did not answer and why."""
    answered = sum(one.pairs - one.unanswered for one in checked)
    right, guess = sum(one.right for one in checked), sum(one.guess for one in checked)
    print_words(screen, f"{judge} is right about {right} of {answered} pairs of a good and a bad call.")
    print_words(screen, _advice(right, answered, guess, form))
    screen.line()
    numbers = [number_column(title) for title in ("right", "same", "wrong", "no answer")]
    columns: list[str | TableColumn] = ["the agent …", *numbers]
    rows = [
        (one.title, *(f"{number}" for number in (one.right, one.same, _wrong(one), one.unanswered))) for one in checked
    ]
    print_table(screen, text_table(columns, rows))
    titles = {one.rubric: one.title for one in checked}
    lacking = Counter((pair.rubric, pair.detail or pair.reason) for pair in pairs if pair.reason)
    for (rubric, why), count in lacking.items():
        print_words(screen, f"{titles[rubric]}, {count} pairs: {why}", "no answer  ", " " * 11)
    screen.line("right: the good call passes, and the bad one is rated lower; same: no difference")


def _wrong(checked: CheckedRubric) -> int:
    return checked.pairs - checked.unanswered - checked.right - checked.same


def _advice(right: int, answered: int, guess: float, form: str) -> str:
    if not answered:
        return "It gave no answer that can be used."
    chance = f"A judge that draws its ratings is right about {guess:.0f}."
    if right > guess:
        return f"{chance} Four pairs a rubric are few: convoscope judge calibrate compares it with people."
    other = "" if form == YES_NO else ", or --judge-form yesno"
    return f"{chance} This model cannot do the job: try a larger one{other}."
