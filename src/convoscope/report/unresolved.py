"""A panel of the page: the conversations that leave a risk unresolved, or a promise that nobody owns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from convoscope.analysis.words import counted
from convoscope.report.panels import PagePanel, panel
from convoscope.report.table import text_table
from convoscope.runs.run import Run
from convoscope.runs.sql import query

MAX_ROWS = 200
_RISKS, _ACTIONS = "semantic.unresolved_risks", "semantic.open_actions"
_WORST_FIRST = ("critical", "high", "medium", "low", "")
_SQL = f"""
    SELECT conversation, metric, value, details FROM scores
    WHERE metric IN ('{_RISKS}', '{_ACTIONS}') AND status = 'measured'
    ORDER BY ALL
"""


@panel
def unresolved_panel(run: Run) -> PagePanel | None:
    """What was found and left open; None where nobody looked."""
    names = {one.metric for one in run.summary.metrics}
    if not names & {_RISKS, _ACTIONS}:
        return None
    rows = query([run], _SQL).rows
    looked = len({row[0] for row in rows if row[1] == _RISKS})
    if not rows:
        return None
    risks = sorted((_risk_row(row) for row in rows if row[1] == _RISKS and row[2]), key=_severity)
    actions = [(str(row[0]), "; ".join(_details(row, "actions"))) for row in rows if row[1] == _ACTIONS and row[2]]
    tables = [
        text_table(("conversation", "worst", "risks", "utterances"), risks[:MAX_ROWS], "Unresolved risks"),
        text_table(("conversation", "promise"), actions[:MAX_ROWS], "Promises without an owner"),
    ]
    return PagePanel(
        title="What was left open",
        line=f"{counted(looked, 'conversation')}: {len(risks)} with an unresolved risk, "
        f"{len(actions)} with a promise that nobody owns. Found by rules.",
        tables=[table for table in tables if table.rows],
        remarks=[
            f"Only the first {MAX_ROWS} of {len(long):,} are listed; `convoscope sql` has all of them."
            for long in (risks, actions)
            if len(long) > MAX_ROWS
        ],
    )


def _details(row: Sequence[Any], name: str) -> list[Any]:
    held = json.loads(row[3]) if isinstance(row[3], str) else row[3] or {}
    values = held.get(name, ())
    return [one if isinstance(one, dict) else str(one) for one in values]


def _risk_row(row: Sequence[Any]) -> tuple[str, str, str, str]:
    risks = _details(row, "risks")
    worst = min((str(one["severity"]) for one in risks), key=_WORST_FIRST.index, default="")
    seqs = sorted({seq for one in risks for seq in one["events"]})
    return str(row[0]), worst, ", ".join(str(one["type"]) for one in risks), ", ".join(map(str, seqs))


def _severity(row: tuple[str, str, str, str]) -> tuple[int, str]:
    return _WORST_FIRST.index(row[1]), row[0]
