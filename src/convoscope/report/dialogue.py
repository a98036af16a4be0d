"""Where dialogue states go wrong, for a terminal, programs and the page; and the figures of the standard evaluator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from convoscope.analysis.dialogue import (
    KINDS,
    DialogueErrors,
    ErrorExample,
    PredictedShare,
    StandardReport,
    StateShare,
    dialogue_errors,
)
from convoscope.analysis.words import NOTHING, counted
from convoscope.conversation.lazy import cached_on_argument
from convoscope.harmless import one_line
from convoscope.report.page.overview import event_link
from convoscope.report.panels import PagePanel, panel
from convoscope.report.screen import Screen
from convoscope.report.table import (
    ReportTable,
    TableCell,
    TableColumn,
    number_column,
    print_table,
    print_words,
    text_table,
)
from convoscope.runs.run import Run

MAX_DIALOGUES = 10_000
"""For more dialogues there is the command: the page would take too long to write."""
MAX_ROWS = 30
_WIDTH = 80
_STATE_METRICS = frozenset(("dialogue.jga", "dialogue.slot_accuracy", "dialogue.slot_f1", "dialogue.domain_accuracy"))
_COMMAND = "`convoscope dialogue errors RUN`"
_NAMED_DIALOGUES = 5


def _confusions(name: str, confusions: Mapping[tuple[str, str], int]) -> ReportTable:
    columns = [TableColumn(f"true {name}", names_row=True), TableColumn(f"predicted {name}"), number_column("turns")]
    rows = [[_safe(true), _safe(predicted), f"{count:,}"] for (true, predicted), count in confusions.items()]
    return text_table(columns, rows, f"{name.capitalize()}s taken for others")


def _slots(errors: DialogueErrors) -> ReportTable:
    columns = [TableColumn("slot", names_row=True), *map(number_column, (*KINDS, "turns"))]
    rows = [[_safe(row.slot), *_kinds(row.kinds), f"{row.total:,}"] for row in errors.slots]
    return text_table(columns, rows, "Slots by kind of error")


def _shares(name: str, shares: Mapping[Any, StateShare]) -> ReportTable:
    columns = [TableColumn(name, names_row=True), *map(number_column, ("wrong state", "turns", *KINDS))]
    rows = [
        [_safe(str(key)), f"{share.wrong:,}", f"{share.turns:,}", *_kinds(share.kinds)] for key, share in shares.items()
    ]
    return text_table(columns, rows, f"By {name}")


def _kinds(kinds: Mapping[str, int]) -> list[str]:
    return [f"{kinds.get(kind, 0):,}" for kind in KINDS]


def _examples(errors: DialogueErrors, slots: int, each: int, title: str) -> ReportTable:
    """The errors that lasted longest, of the worst slots."""
    columns = [TableColumn(column) for column in ("error", "true", "predicted", "where")]
    examples = [example for row in errors.slots[:slots] for example in row.examples[:each]]
    return ReportTable(
        [TableColumn("slot", names_row=True), *columns, number_column("turns")], [*map(_example, examples)], title
    )


def _example(example: ErrorExample) -> list[TableCell]:
    error = example.error
    texts = [_safe(text) for text in (error.name, error.kind, error.true, error.predicted)]
    where = f"{_safe(example.conversation)}, turn {example.turn}"
    link = event_link(example.conversation, example.seq)
    return [*map(TableCell, texts), TableCell(where, link=link), TableCell(f"{example.turns:,}")]


def _safe(text: str) -> str:
    return one_line(text, _WIDTH)


def print_dialogue_errors(screen: Screen, errors: DialogueErrors, top: int) -> None:
    """What was taken for what, then slots by kind of error with their worst examples, domains and turns."""
    turns = f"{counted(errors.turns, 'turn')} with a state, {errors.wrong:,} of them wrong"
    print_words(screen, f"{counted(errors.dialogues, 'dialogue')}, {turns}.")
    if not errors.dialogues:
        print_words(screen, "No dialogue has both a true and a predicted state: give predictions beside the dialogues.")
        return
    for table in (_confusions("domain", errors.domains), _confusions("intent", errors.intents), _slots(errors)):
        title = f"{table.title} ({top} of {len(table.rows)})" if len(table.rows) > top else table.title
        if table.rows:
            print_table(screen, table._replace(rows=table.rows[:top], title=title))
    if errors.slots:
        print_table(screen, _examples(errors, top, 1, "The longest error of each"))
    print_table(screen, _shares("domain", errors.by_domain))
    print_table(screen, _shares("turn", errors.by_position))


@panel
@cached_on_argument
def dialogue_panel(run: Run) -> PagePanel | None:
    """The errors of the dialogues of a run; None where no prediction was compared with a truth."""
    if not any(figure.metric in _STATE_METRICS and figure.value is not None for figure in run.summary.metrics):
        return None
    title = "Where dialogue states go wrong"
    if run.summary.conversations > MAX_DIALOGUES:
        return PagePanel(title=title, line=f"These are too many dialogues for this page: {_COMMAND} lists the errors.")
    errors = dialogue_errors(run.conversations())
    long_tables = {
        "confusions of domains": _confusions("domain", errors.domains),
        "confusions of intents": _confusions("intent", errors.intents),
        "slots": _slots(errors),
        "domains": _shares("domain", errors.by_domain),
        "turns": _shares("turn", errors.by_position),
    }
    tables = [table._replace(rows=table.rows[:MAX_ROWS]) for table in long_tables.values()]
    tables.insert(3, _examples(errors, MAX_ROWS, MAX_ROWS, "The longest errors of each slot"))
    return PagePanel(
        title=title,
        line=f"{counted(errors.wrong, 'turn')} of {errors.turns:,} with a wrong state, "
        f"in {counted(errors.dialogues, 'dialogue')}. A slot counts in every turn in which it is wrong.",
        tables=[table for table in tables if table.rows],
        remarks=[
            f"The first {MAX_ROWS} of {len(table.rows):,} {name} are listed; {_COMMAND} lists all."
            for name, table in long_tables.items()
            if len(table.rows) > MAX_ROWS
        ],
    )


def dialogue_errors_json(errors: DialogueErrors) -> dict[str, Any]:
    """Everything, for a program."""
    return {
        "dialogues": errors.dialogues,
        "turns": errors.turns,
        "wrong_turns": errors.wrong,
        "domains": list(_confusions_json(errors.domains)),
        "intents": list(_confusions_json(errors.intents)),
        "slots": [
            {
                "slot": row.slot,
                "kinds": row.kinds,
                "turns": row.total,
                "examples": [
                    {
                        "conversation": example.conversation,
                        "turn": example.turn,
                        "turns": example.turns,
                        "kind": example.error.kind,
                        "true": example.error.true,
                        "predicted": example.error.predicted,
                    }
                    for example in row.examples
                ],
            }
            for row in errors.slots
        ],
        "by_domain": {key: share._asdict() for key, share in errors.by_domain.items()},
        "by_position": {str(key): share._asdict() for key, share in errors.by_position.items()},
    }


def _confusions_json(confusions: Mapping[tuple[str, str], int]) -> Iterator[dict[str, Any]]:
    for (true, predicted), count in confusions.items():
        yield {"true": true, "predicted": predicted, "turns": count}


def print_standard_report(screen: Screen, report: StandardReport) -> None:
    """Every figure with its value or the reason why it is missing, then the coverage."""
    rows = [
        [
            figure.name,
            NOTHING if figure.value is None else format(figure.value, "," if isinstance(figure.value, int) else ".2f"),
            figure.reason,
        ]
        for figure in report.figures
    ]
    print_table(screen, text_table([TableColumn("figure"), number_column("value"), TableColumn("not measured")], rows))
    screen.line()
    print_words(screen, _coverage(report.coverage))


def _coverage(share: PredictedShare) -> str:
    text = f"Predicted: {share.dialogues:,} of {share.expected_dialogues:,} dialogues, "
    text += f"{share.turns:,} of {share.expected_turns:,} turns. What is missing scores as empty."
    if not share.without:
        return text
    names = ", ".join(one_line(name) for name in share.without[:_NAMED_DIALOGUES])
    return f"{text} Without any prediction: {names}{', …' if len(share.without) > _NAMED_DIALOGUES else ''}."


def standard_report_json(report: StandardReport) -> dict[str, Any]:
    """Everything, for a program."""
    return {
        "figures": {figure.name: figure.value for figure in report.figures},
        "not_measured": {figure.name: figure.reason for figure in report.figures if figure.value is None},
        "coverage": report.coverage._asdict(),
    }
