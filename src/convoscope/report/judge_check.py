"""What a check of a judge comes to, on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from convoscope.analysis.judge_check import CheckedPair, CheckedRubric, CheckTotal, of_all
from convoscope.analysis.words import counted, reason_text
from convoscope.judging.backends import YES_NO
from convoscope.report.screen import Screen
from convoscope.report.table import TableColumn, number_column, print_table, print_words, text_table


def print_check(
    screen: Screen, judge: str, form: str, pairs: Sequence[CheckedPair], checked: Sequence[CheckedRubric]
) -> None:
    """Whether a model can do the job, then rubric by rubric, then what it did not answer and why."""
    total = of_all(checked)
    without = f", {total.unanswered} without an answer" if total.unanswered else ""
    words = f"{judge} is right about {total.right} of {total.pairs} pairs of a good and a bad call{without}."
    print_words(screen, words)
    print_words(screen, _advice(total, form))
    screen.line()
    numbers = [number_column(title) for title in ("right", "same", "wrong", "no answer")]
    columns: list[str | TableColumn] = ["the agent …", *numbers]
    rows = [
        (one.title, *(f"{number}" for number in (one.right, one.same, _wrong(one), one.unanswered))) for one in checked
    ]
    print_table(screen, text_table(columns, rows))
    titles = {one.rubric: one.title for one in checked}
    lacking = Counter((pair.rubric, pair.detail or reason_text(pair.reason)) for pair in pairs if pair.reason)
    for (rubric, why), count in lacking.items():
        print_words(screen, f"{titles[rubric]}, {counted(count, 'pair')}: {why}", "no answer  ", " " * 11)
    screen.line("right: the good call passes, and the bad one is rated lower; same: no difference")


def _wrong(checked: CheckedRubric) -> int:
    return checked.pairs - checked.unanswered - checked.right - checked.same


def _advice(total: CheckTotal, form: str) -> str:
    if total.unanswered == total.pairs:
        return "It gave no answer that can be used."
    of = f" of the {total.pairs - total.unanswered} with an answer" if total.unanswered else ""
    chance = f"Random ratings would be right about {total.guess:.0f}{of}."
    if 2 * total.unanswered > total.pairs:
        return f"{chance} Most pairs have no answer: what this model can do is unknown. The reasons are below."
    if total.right > total.guess:
        return f"{chance} Four pairs a rubric are few: convoscope judge calibrate compares it with people."
    other = "" if form == YES_NO else ", or --judge-form yesno"
    return f"{chance} This model cannot do the job: try a larger one{other}."
