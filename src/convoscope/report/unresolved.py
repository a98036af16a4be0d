"""A panel of the page: the conversations that leave a risk unresolved, or a promise without an owner."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from convoscope.analysis.words import counted, reason_text
from convoscope.conversation.lazy import cached_on_argument
from convoscope.judging.calibrations import NOT_CALIBRATED
from convoscope.report.page.overview import call_link
from convoscope.report.panels import PagePanel, panel
from convoscope.report.table import ReportTable, TableCell, TableColumn
from convoscope.runs.run import Run
from convoscope.runs.sql import query
from convoscope.scores.judges import is_annotator, model_of

MAX_ROWS = 100
"""As many as the page shows of a table."""
_RISKS, _ACTIONS = "semantic.unresolved_risks", "semantic.unowned_actions"
_WORST_FIRST = ("critical", "high", "medium", "low", "")
_SQL = f"""
    SELECT conversation, metric, value, details, judge FROM scores
    WHERE metric IN ('{_RISKS}', '{_ACTIONS}') AND status = 'measured'
    ORDER BY ALL
"""


@panel
@cached_on_argument
def unresolved_panel(run: Run) -> PagePanel | None:
    """What was found and left open; None where no annotator looked."""
    names = {one.metric for one in run.summary.metrics}
    if not names & {_RISKS, _ACTIONS}:
        return None
    rows = query([run], _SQL).rows
    if not rows:
        return None
    risks = sorted(
        (_risk_row(row) for row in rows if row[1] == _RISKS and row[2]), key=lambda row: (_rank(row[1]), row[0])
    )
    actions = [(str(row[0]), "; ".join(_details(row, "actions"))) for row in rows if row[1] == _ACTIONS and row[2]]
    tables = [
        _table(("conversation", "worst", "risks"), risks, "Unresolved risks"),
        _table(("conversation", "promise"), actions, "Promises without an owner"),
    ]
    return PagePanel(
        title="What was left open",
        line=", ".join(
            f"{_looked(rows, metric, count, run)} with {what}"
            for metric, count, what in (
                (_RISKS, len(risks), "an unresolved risk"),
                (_ACTIONS, len(actions), "a promise without an owner"),
            )
            if any(row[1] == metric for row in rows)
        )
        + f". Found by {_annotators(rows, run)}.",
        tables=[table for table in tables if table.rows],
        remarks=[
            f"Only the first {MAX_ROWS} of {len(long):,} are listed; `convoscope sql` has all of them."
            for long in (risks, actions)
            if len(long) > MAX_ROWS
        ],
    )


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> ReportTable:
    """The first of them; the id of a conversation leads to it."""
    cells = [[TableCell(id, link=call_link(id)), *map(TableCell, others)] for id, *others in rows[:MAX_ROWS]]
    return ReportTable([*map(TableColumn, columns)], cells, title)


def _looked(rows: Sequence[Sequence[Any]], metric: str, count: int, run: Run) -> str:
    """`2 of the 4 conversations that were looked at (of 5)`: the others are unknown."""
    looked = sum(row[1] == metric for row in rows)
    of_all = "" if looked == run.summary.conversations else f" that were looked at (of {run.summary.conversations:,})"
    return f"{count:,} of {counted(looked, 'conversation')}{of_all}"


def _annotators(rows: Sequence[Sequence[Any]], run: Run) -> str:
    """Who found it. What a language model found is an opinion, until gold labels say how good it is."""
    models = sorted({model_of(row[4]) for row in rows if is_annotator(row[4])})
    if models:
        return f"{' and '.join(models)}, {NOT_CALIBRATED}"
    annotator = run.receipt.config.get("annotate")
    return str(annotator).partition("/")[0] if annotator else "the annotators of the logs"


def _details(row: Sequence[Any], name: str) -> list[Any]:
    held = json.loads(row[3]) if isinstance(row[3], str) else row[3] or {}
    values = held.get(name, ())
    return [one if isinstance(one, dict) else str(one) for one in values]


def _risk_row(row: Sequence[Any]) -> tuple[str, str, str]:
    risks = _details(row, "risks")
    worst = min((str(one["severity"]) for one in risks), key=_rank, default="")
    return str(row[0]), worst, ", ".join(reason_text(str(one["type"])) for one in risks)


def _rank(severity: str) -> int:
    """An unknown severity ranks as a missing one."""
    return _WORST_FIRST.index(severity if severity in _WORST_FIRST else "")
