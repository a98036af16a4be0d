"""A panel of the page: where the states of dialogues go wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from convoscope.analysis.dialogue_errors import KINDS, DialogueErrors, SlotRow, StateShare, dialogue_errors
from convoscope.analysis.words import counted
from convoscope.conversation.lazy import cached_on_argument
from convoscope.harmless import one_line
from convoscope.report.page.overview import event_link
from convoscope.report.panels import PagePanel, panel
from convoscope.report.table import ReportTable, TableCell, TableColumn, number_column, text_table
from convoscope.runs.run import Run

MAX_DIALOGUES = 10_000
"""Of more dialogues the command tells: the page would take too long to write."""
MAX_ROWS = 30
_WIDTH = 80
_SIGNS = frozenset(("dialogue.jga", "dialogue.slot_accuracy", "dialogue.slot_f1", "dialogue.domain_accuracy"))
_COMMAND = "`convoscope dialogue errors RUN` tells"


@panel
@cached_on_argument
def dialogue_panel(run: Run) -> PagePanel | None:
    """The errors of the dialogues of a run; None where nothing was held against a truth."""
    if not any(one.metric in _SIGNS and one.value is not None for one in run.summary.metrics):
        return None
    title = "Where dialogue states go wrong"
    if run.summary.conversations > MAX_DIALOGUES:
        return PagePanel(title=title, line=f"These are too many dialogues for this page: {_COMMAND}.")
    errors = dialogue_errors(run.conversations())
    return PagePanel(
        title=title,
        line=f"{counted(errors.wrong, 'turn')} of {errors.turns:,} with a wrong state, "
        f"in {counted(errors.dialogues, 'dialogue')}. A slot counts in every turn in which it is wrong.",
        tables=list(_tables(errors)),
        remarks=[
            f"The first {MAX_ROWS} of {len(rows):,} {name} are listed; {_COMMAND} all."
            for name, rows in _long_tables(errors)
            if len(rows) > MAX_ROWS
        ],
    )


def _long_tables(errors: DialogueErrors) -> Iterator[tuple[str, Any]]:
    yield "confusions of domains", errors.domains
    yield "confusions of intents", errors.intents
    yield "slots", errors.slots
    yield "domains", errors.by_domain
    yield "turns", errors.by_position


def _tables(errors: DialogueErrors) -> Iterator[ReportTable]:
    """Those that have rows."""
    slots = errors.slots[:MAX_ROWS]
    tables = [
        _confusions("domain", errors.domains),
        _confusions("intent", errors.intents),
        text_table(
            [TableColumn("slot", names_row=True), *map(number_column, (*KINDS, "turns"))],
            [[_safe(row.slot), *(f"{row.kinds.get(kind, 0):,}" for kind in KINDS), f"{row.total:,}"] for row in slots],
            "Slots by kind of error",
        ),
        ReportTable(
            [TableColumn(name) for name in ("slot", "error", "true", "predicted", "where", "turns")],
            [cells for row in slots for cells in _examples(row)],
            "The longest errors of each slot",
        ),
        _shares("domain", errors.by_domain),
        _shares("turn", errors.by_position),
    ]
    return (table for table in tables if table.rows)


def _confusions(name: str, confusions: Mapping[tuple[str, str], int]) -> ReportTable:
    rows = [[_safe(true), _safe(predicted), f"{count:,}"] for (true, predicted), count in confusions.items()]
    columns = [TableColumn(f"true {name}"), TableColumn(f"predicted {name}"), number_column("turns")]
    return text_table(columns, rows[:MAX_ROWS], f"{name.capitalize()}s taken for others")


def _examples(row: SlotRow) -> Iterator[list[TableCell]]:
    for example in row.examples:
        error = example.error
        where = f"{_safe(example.conversation)}, turn {example.turn}"
        yield [
            *(TableCell(_safe(text)) for text in (error.name, error.kind, error.true, error.predicted)),
            TableCell(where, link=event_link(example.conversation, example.seq)),
            TableCell(f"{example.turns:,}"),
        ]


def _shares(name: str, shares: Mapping[Any, StateShare]) -> ReportTable:
    columns = [TableColumn(name, names_row=True), *map(number_column, ("wrong state", "turns", *KINDS))]
    rows = [
        [_safe(str(key)), f"{one.wrong:,}", f"{one.turns:,}", *(f"{one.kinds.get(kind, 0):,}" for kind in KINDS)]
        for key, one in shares.items()
    ]
    return text_table(columns, rows[:MAX_ROWS], f"By {name}")


def _safe(text: str) -> str:
    return one_line(text, _WIDTH)
