"""The figures of the standard MultiWOZ evaluator as a table for a terminal, and as JSON."""

from __future__ import annotations

from typing import Any

from convoscope.analysis.standard_figures import PredictedShare, StandardReport
from convoscope.analysis.words import NOTHING
from convoscope.harmless import one_line
from convoscope.report.screen import Screen
from convoscope.report.table import TableColumn, number_column, print_table, print_words, text_table

_NAMED = 5


def print_standard_report(screen: Screen, report: StandardReport) -> None:
    """Every figure with its value or the reason why it has none, then the coverage."""
    rows = [[one.name, NOTHING if one.value is None else _number(one.value), one.reason] for one in report.figures]
    print_table(screen, text_table([TableColumn("figure"), number_column("value"), TableColumn("not measured")], rows))
    screen.line()
    print_words(screen, _coverage(report.coverage))


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"


def _coverage(share: PredictedShare) -> str:
    words = f"Predicted: {share.dialogues:,} of {share.expected_dialogues:,} dialogues, "
    words += f"{share.turns:,} of {share.expected_turns:,} turns. What is missing scores as empty."
    if not share.without:
        return words
    names = ", ".join(one_line(name) for name in share.without[:_NAMED])
    return f"{words} Without any prediction: {names}{', …' if len(share.without) > _NAMED else ''}."


def standard_report_json(report: StandardReport) -> dict[str, Any]:
    """Everything, for a program."""
    return {
        "figures": {one.name: one.value for one in report.figures},
        "not_measured": {one.name: one.reason for one in report.figures if one.value is None},
        "coverage": report.coverage._asdict(),
    }
