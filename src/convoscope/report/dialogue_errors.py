"""The errors of dialogue states as tables for a terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from convoscope.analysis.dialogue_errors import KINDS, DialogueErrors, ErrorExample, StateShare
from convoscope.analysis.words import counted
from convoscope.harmless import one_line
from convoscope.report.screen import Screen
from convoscope.report.table import TableColumn, number_column, print_table, print_words, text_table

_WIDTH = 60


def print_dialogue_errors(screen: Screen, errors: DialogueErrors, top: int) -> None:
    """What was taken for what, then slots by kind of error with their worst examples, domains and turns."""
    turns = f"{counted(errors.turns, 'turn')} with a state, {errors.wrong:,} of them wrong"
    print_words(screen, f"{counted(errors.dialogues, 'dialogue')}, {turns}.")
    if not errors.dialogues:
        print_words(screen, "No dialogue has both a true and a predicted state: give predictions beside the dialogues.")
        return
    for title, confusions in (("domain", errors.domains), ("intent", errors.intents)):
        _print_confusions(screen, title, confusions, top)
    columns = [TableColumn("slot", names_row=True), *map(number_column, (*KINDS, "turns"))]
    rows = [[_safe(row.slot), *(str(row.kinds.get(kind, 0)) for kind in KINDS), str(row.total)] for row in errors.slots]
    if rows:
        print_table(screen, text_table(columns, rows[:top], title=_title("Slots", len(rows), top)))
        examples = [example for row in errors.slots[:top] for example in row.examples[:1]]
        print_table(screen, text_table(_EXAMPLES, map(_example, examples), title="The longest error of each"))
    _print_shares(screen, "domain", errors.by_domain)
    _print_shares(screen, "turn", errors.by_position)


_EXAMPLES = (
    TableColumn("slot", names_row=True),
    TableColumn("error"),
    TableColumn("true"),
    TableColumn("predicted"),
    TableColumn("conversation"),
    number_column("from turn"),
    number_column("turns"),
)


def _example(example: ErrorExample) -> list[str]:
    error = example.error
    texts = (error.name, error.kind, error.true, error.predicted, example.conversation)
    return [*map(_safe, texts), str(example.turn), str(example.turns)]


def _print_confusions(screen: Screen, name: str, confusions: Mapping[tuple[str, str], int], top: int) -> None:
    rows = [[_safe(true), _safe(predicted), str(count)] for (true, predicted), count in confusions.items()]
    if rows:
        columns = [
            TableColumn(f"true {name}", names_row=True),
            TableColumn(f"predicted {name}"),
            number_column("turns"),
        ]
        title = _title(f"{name.capitalize()}s taken for others", len(rows), top)
        print_table(screen, text_table(columns, rows[:top], title=title))


def _print_shares(screen: Screen, name: str, shares: Mapping[Any, StateShare]) -> None:
    rows = [
        [_safe(str(key)), str(one.wrong), str(one.turns), *(str(one.kinds.get(kind, 0)) for kind in KINDS)]
        for key, one in shares.items()
    ]
    columns = [TableColumn(name, names_row=True), *map(number_column, ("wrong state", "turns", *KINDS))]
    print_table(screen, text_table(columns, rows, title=f"By {name}"))


def _title(what: str, number: int, top: int) -> str:
    return f"{what} ({top} of {number})" if number > top else what


def _safe(text: str) -> str:
    return one_line(text, _WIDTH)


def dialogue_errors_json(errors: DialogueErrors) -> dict[str, Any]:
    """Everything, for a program."""
    return {
        "dialogues": errors.dialogues,
        "turns": errors.turns,
        "wrong_turns": errors.wrong,
        "domains": [
            {"true": true, "predicted": ours, "turns": count} for (true, ours), count in errors.domains.items()
        ],
        "intents": [
            {"true": true, "predicted": ours, "turns": count} for (true, ours), count in errors.intents.items()
        ],
        "slots": [
            {
                "slot": row.slot,
                "kinds": row.kinds,
                "turns": row.total,
                "examples": [
                    {
                        "conversation": one.conversation,
                        "turn": one.turn,
                        "turns": one.turns,
                        "kind": one.error.kind,
                        "true": one.error.true,
                        "predicted": one.error.predicted,
                    }
                    for one in row.examples
                ],
            }
            for row in errors.slots
        ],
        "by_domain": {key: share._asdict() for key, share in errors.by_domain.items()},
        "by_position": {str(key): share._asdict() for key, share in errors.by_position.items()},
    }
