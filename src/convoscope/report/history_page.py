"""The page of a history: one file that opens from disk. Python makes all of it; the script only chooses a figure.

Logs are hostile input: every text is escaped, and the policy of the page allows its own script and style only.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from html import escape
from pathlib import Path

import msgspec

from convoscope.analysis.history.model import FigureLevel, History, HistoryChange, HistoryFigure
from convoscope.analysis.history.words import day_text, difference_text
from convoscope.analysis.words import NOTHING, counted, number_text, value_text
from convoscope.harmless import clean
from convoscope.report.files import write_text
from convoscope.report.history_terminal import next_command, notes_of, span_text
from convoscope.report.page.page import Markup, fill_page, page_file
from convoscope.report.plot.history import PHONE, SMALL, TONES, WIDE, Chart, scale_text
from convoscope.statistics.sequences import LEVEL, MIN_NIGHTS
from convoscope.storage import as_path

MOST_FIGURES = 24
"""Figures of the page; the others are counted. Those that changed come first."""


def write_history_page(history: History, path: str | os.PathLike[str]) -> Path:
    """Write the page, and say where it is."""
    file = as_path(path)
    write_text(file, history_page(history))
    return file


def history_page(history: History) -> str:
    """The page as text."""
    css = page_file("page.css") + page_file("history.css")
    js = '"use strict";\n(() => {\n' + page_file("history.js") + "})();\n"
    name = f"{history.title}, {counted(len(history.nights), history.word)}"
    return fill_page(
        page_file("history.html"),
        css,
        js,
        title=clean(f"{name} · Convoscope"),
        name=clean(name),
        body=Markup("".join(_body(history))),
    )


def _text(words: str) -> str:
    """Words as a page shows them: as text, with no-break spaces between a number and its unit."""
    return escape(clean(words)).replace(" %", "\u00a0%")


def _body(history: History) -> Iterator[str]:
    yield '<h1 class="verdict">'
    for clause in history.verdict:
        rest = f'<i class="{clause.tone}">{_text(clause.rest)}</i>' if clause.rest else ""
        yield f"<span><b>{_text(clause.lead)}</b>{rest}</span>"
    yield f'</h1><p class="meta">{_text(_meta(history))}</p>'
    figures = history.figures[:MOST_FIGURES]
    if figures:
        yield "<section>"
        for index, figure in enumerate(figures):
            yield from _large(history, figure, index)
        yield '</section><section><div class="head"><h2>All figures</h2><span class="dim">'
        yield f"same {history.word}s; the scale is at the top right; choose one to see it large</span></div>"
        yield '<div class="sm">'
        for index, figure in enumerate(figures):
            yield from _small(history, figure, index)
        yield f'</div><p class="note">{_text(_legend(history))}</p></section>'
    if history.changes:
        yield '<section><div class="head"><h2>Changes</h2><span class="dim">newest first</span></div><ol class="card">'
        for event in history.changes:
            yield from _change(history, event)
        yield "</ol></section>"
    yield f'<p class="ft">{_text(" · ".join(notes_of(_shown(history))))}</p>'
    yield f'<p class="ft"><code>{_text(next_command(_shown(history)))}</code></p>'


def _meta(history: History) -> str:
    sizes = sorted(one.conversations for one in history.nights)
    span = f"{span_text(history)}, about {counted(sizes[len(sizes) // 2], history.noun)} each."
    if not history.looked_at:
        return f"{span} Changes are looked for from {MIN_NIGHTS} {history.word}s on."
    return (
        f"{span} The chance that a change is ever named where there was no change is at most {100 * LEVEL:.0f} % "
        f"over {counted(history.looked_at, 'figure')}, however often one looks."
    )


def _large(history: History, figure: HistoryFigure, index: int) -> Iterator[str]:
    yield f'<div class="card hc" data-chart="{index}"><div class="hh"><h2>{_text(_capital(figure.label))}</h2>'
    yield f'<span class="dim">each {history.word} with its 95 % interval; line and band: the level between changes'
    yield "</span></div>"
    yield f'<div class="on-wide">{Chart(history, figure, WIDE).svg}</div>'
    yield f'<div class="on-phone">{Chart(history, figure, PHONE).svg}</div>'
    yield f'<p class="lv">{_text("; ".join(filter(None, _words(history, figure))))}</p></div>'


def _words(history: History, figure: HistoryFigure) -> Iterator[str]:
    """The levels, the newest first; then what to know of the figure."""
    for level in reversed(figure.levels):
        yield _level(history, figure, level)
    if figure.target_verdict:
        yield f"target {figure.target_text}: {figure.target_verdict}"
    yield figure.broken
    yield figure.remark


def _level(history: History, figure: HistoryFigure, level: FigureLevel) -> str:
    ends = [NOTHING if one is None else number_text(one, figure.unit) for one in (level.low, level.high)]
    first, last = (day_text(history.nights[index].date) for index in (level.first, level.last))
    nights = counted(level.nights, history.word)
    value = value_text(level.value, figure.unit)
    return f"{value} from {first} to {last} (always-valid 95 % {ends[0]} to {ends[1]}, {nights})"


def _small(history: History, figure: HistoryFigure, index: int) -> Iterator[str]:
    last, change = figure.last, figure.change
    value = value_text(last.value if last is not None else None, figure.unit)
    yield f'<button type="button" class="card m" data-figure="{index}" aria-pressed="false">'
    yield f'<span class="l">{_text(_capital(figure.label))}</span>'
    yield f'<span class="hv"><span class="v">{_text(value)}</span>'
    yield f'<span class="scl">{_text(scale_text(figure))}</span></span>'
    yield Chart(history, figure, SMALL).svg
    if change is not None:
        words = f"{difference_text(figure, change)} {change.direction}".strip()
        footer = f'<b class="{TONES[change.direction]}">{_text(words)}</b> since {_text(day_text(change.date))}'
    else:
        footer = _text(figure.broken or ("no change" if figure.level is not None else "too few to name a change"))
    yield f'<span class="f">{footer}</span></button>'


def _legend(history: History) -> str:
    parts = []
    if any(one.target is not None for one in history.figures):
        parts.append("Dotted: the target.")
    if any(night is not None and night.few for one in history.figures for night in one.nights):
        parts.append(f"Hollow: fewer than 20 {history.noun}s, or not comparable.")
    if history.missing:
        parts.append(f"{NOTHING} no run that day.")
    if (more := len(history.figures) - MOST_FIGURES) > 0:
        parts.append(f"{counted(more, 'more figure')} without a change.")
    return " ".join(parts)


def _change(history: History, event: HistoryChange) -> Iterator[str]:
    words = ", ".join(filter(None, (event.version, event.by_version)))
    version = f" {_text(_capital(words))}." if words else ""
    details = f"{_text('; '.join(event.details))}." if event.details else ""
    yield f'<li class="chg"><span class="dt">{_text(day_text(event.date))}</span><div>'
    yield f'<p class="s">{_text(event.title)}</p><p class="ev">{details}{version}</p>'
    if event.kind == "level":
        yield f'<p class="ev"><code>{_text(_compare(history, event))}</code></p>'
    yield "</div></li>"


def _compare(history: History, event: HistoryChange) -> str:
    nights = _shown(history).nights
    earlier = next((one for one in reversed(nights[: event.night]) if not one.few), nights[0])
    first, second = earlier.run, nights[event.night].run
    if first == second:
        return f"convoscope runs show {shlex.quote(first)}"
    return f"convoscope compare {shlex.quote(first)} {shlex.quote(second)}"


def _shown(history: History) -> History:
    """The same without the folders of the machine that made it: of an absolute path, the name."""
    nights = tuple(
        msgspec.structs.replace(one, run=Path(one.run).name if Path(one.run).is_absolute() else one.run)
        for one in history.nights
    )
    return msgspec.structs.replace(history, nights=nights)


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
