"""The state matrix as Markdown, for a pull request or a wiki. Names that could be markup become code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from convoscope.analysis.flows.state_matrix import Matrix
from convoscope.report.flows.heading import Asked
from convoscope.report.flows.numbers import NOTHING
from convoscope.report.flows.sheet import NOTE, SheetCell
from convoscope.report.flows.state_matrix import (
    HEADS,
    LEGEND,
    NEIGHBOURS,
    NEIGHBOURS_TITLE,
    cells,
    legend_lines,
    neighbours,
    rest_lines,
)
from convoscope.report.markdown import code, row

_NAMES = re.compile(r"[A-Za-z0-9]+(?:[ _-][A-Za-z0-9]+)*")
_FIGURES = re.compile(r"[<>]?[0-9.,–]+|·")
_SENTENCES = re.compile(r"(?:[A-Za-z0-9 ,:;·%()/]|(?<=[A-Za-z0-9])[_-](?=[A-Za-z0-9])|(?<=[0-9a-z])\.(?= |$))*")


def matrix_markdown(asked: Asked, found: Matrix) -> list[str]:
    """The table, its legend, what is in no row, and the intervals in a table of their own."""
    lines = [f"# Per-state quality — {_safe(asked.scope, _SENTENCES)} (worst first)", ""]
    for run in asked.runs:
        if not run.receipt.valid:
            lines += [f"**INVALID** {code(str(run.folder))}: {code(run.receipt.invalid_reason or '')}", ""]
    if not found.rows:
        lines.append(f"None of {found.without_states:,} conversations tells of states.")
        return lines + [part for line in rest_lines(found) for part in ("", _safe(line, _SENTENCES))]
    rows = [cells(one) for one in found.rows]
    lines += _table([head.title for head in HEADS], [[*map(_cell, one[:-1]), one[-1].words] for one in rows])
    lines += ["", *LEGEND]
    for line in (*legend_lines(found.rows), *rest_lines(found)):
        lines += ["", _safe(line, _SENTENCES)]
    if any(one.led_to is not None for one in found.rows):
        around = [[_safe(text, _SENTENCES) for text in neighbours(one)] for one in found.rows]
        lines += ["", f"{NEIGHBOURS_TITLE}:", "", *_table(NEIGHBOURS, around)]
    bounded = [
        at for at, head in enumerate(HEADS) if head.title != NOTE and (head.name or any(one[at].below for one in rows))
    ]
    bounds = [[_cell(one[at]) if HEADS[at].name else one[at].below or NOTHING for at in bounded] for one in rows]
    return [*lines, "", "95 % intervals:", "", *_table([HEADS[at].title for at in bounded], bounds)]


def _cell(cell: SheetCell) -> str:
    if cell.strong:
        return f"**{escape(cell.text)}**"
    return escape(cell.text) if _FIGURES.fullmatch(cell.text) else _safe(cell.text, _NAMES)


def _safe(text: str, plain: re.Pattern[str]) -> str:
    """As it is where nothing in it could be taken for markup, a link or a mention."""
    return text if plain.fullmatch(text) else code(text)


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Padded, so that it can be read as it is, too."""
    every = [list(titles), *(list(one) for one in rows)]
    widths = [max(len(one[at]) for one in every) for at in range(len(titles))]
    padded = [row([cell.ljust(width) for cell, width in zip(one, widths, strict=True)]) for one in every]
    return [padded[0], f"|{'|'.join('-' * (width + 2) for width in widths)}|", *padded[1:]]
