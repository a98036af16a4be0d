"""A history on the terminal: since when it is how good, what changed, and which runs to compare; 80 columns."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.cells import cell_len

from convoscope.analysis.history.model import History, HistoryFigure
from convoscope.analysis.history.words import day_text, difference_text
from convoscope.analysis.words import NOTHING, counted, number_text, value_text
from convoscope.harmless import one_line
from convoscope.report.screen import WIDTH, Screen

MOST_FIGURES = 8
MOST_EVENTS = 6
LABEL = 29
MOST_NAMED = 4


def print_history(screen: Screen, history: History, page: Path | None, *, full: bool = False) -> None:
    """The answer, the figures, the changes, what is missing, and what to look at next."""
    for clause in history.verdict:
        screen.wrapped(clause.text, {"bad": "bold red", "good": "bold green"}.get(clause.tone, "bold"))
    screen.line()
    shown = history.figures if full else history.figures[:MOST_FIGURES]
    _print_figures(screen, history, shown, full=full)
    if len(shown) < len(history.figures):
        screen.line(f"  and {counted(len(history.figures) - len(shown), 'figure')} without a change (--full)")
    screen.line()
    events = history.changes if full else history.changes[:MOST_EVENTS]
    for event in events:
        version = event.version if event.version == "no new version" else ""
        words = "; ".join(filter(None, (event.title, ", ".join(filter(None, (version, event.by_version))))))
        more = "; ".join(event.details) if full else ""
        screen.wrapped(f"{day_text(event.date):>6}  {words}{f': {more}' if more else ''}", indent=" " * 8)
    if len(events) < len(history.changes):
        screen.line(f"        and {counted(len(history.changes) - len(events), 'earlier change')} (--full)")
    for note in notes_of(history):
        screen.wrapped(note)
    if page is not None:
        screen.line(f"page  {page}")
    screen.line(f"next  {next_command(history)}")


def next_command(history: History) -> str:
    """Both sides of the newest change; of days of one run, the run."""
    first, second = (history.nights[index].run for index in history.around)
    if first == second:
        return f"convoscope runs show {shlex.quote(first)}"
    return f"convoscope compare {shlex.quote(first)} {shlex.quote(second)}"


def span_text(history: History) -> str:
    """`29 nights, 18 Oct to 16 Nov`."""
    first, last = history.nights[0].date, history.nights[-1].date
    days = day_text(first) if first == last else f"{day_text(first)} to {day_text(last)}"
    return f"{counted(len(history.nights), history.word)}, {days}"


def notes_of(history: History) -> Iterator[str]:
    """What is missing, too small, left out, and what limits the rest."""
    parts = []
    if history.missing:
        more = f" and {len(history.missing) - MOST_NAMED:,} more days" if len(history.missing) > MOST_NAMED else ""
        parts.append(f"no run on {', '.join(map(day_text, history.missing[:MOST_NAMED]))}{more}")
    few = [one for one in history.nights if one.few]
    if few:
        named = ", ".join(f"{day_text(one.date)} has {counted(one.conversations, history.noun)}" for one in few[:3])
        more = f" and {len(few) - 3:,} more" if len(few) > 3 else ""
        parts.append(f"{named}{more}, too few")
    if parts:
        yield "; ".join(parts)
    yield from history.notes
    if history.left_out:
        more = f"; and {len(history.left_out) - MOST_NAMED:,} more" if len(history.left_out) > MOST_NAMED else ""
        yield f"left out: {'; '.join(history.left_out[:MOST_NAMED])}{more}"


def _print_figures(screen: Screen, history: History, figures: Sequence[HistoryFigure], *, full: bool) -> None:
    is_short = not history.looked_at
    head = ("", "", "", "", "") if is_short else ("before", "now", "change", "since", "target")
    rows = [_values_row(one) if is_short else _row(one) for one in figures]
    labels = [_cut(one_line(one.label)) for one in figures]
    span = span_text(history)
    width = max([cell_len(label) + 2 for label in labels] + [min(cell_len(span), LABEL + 2)])
    widths = [max(cell_len(row[column]) for row in (head, *rows)) for column in range(5)]
    if cell_len(span) > width or is_short:
        screen.line(span)
        span = ""
    if not is_short:
        screen.line(_line(span, head, width, widths))
    for label, row, figure in zip(labels, rows, figures, strict=True):
        direction = figure.change.direction if figure.change else ""
        style = {"worse": "red", "better": "green"}.get(direction, "")
        line = _line(f"  {label}", row, width, widths)
        if cell_len(line) <= WIDTH:
            screen.line(line, style)
        else:  # what does not fit is on the next line, at the right
            screen.line(_line(f"  {label}", (*row[:4], ""), width, widths), style)
            screen.line(row[4].rjust(WIDTH), style)
        if full:
            _print_levels(screen, history, figure)


def _print_levels(screen: Screen, history: History, figure: HistoryFigure) -> None:
    """Each level with its interval, the newest first."""
    for level in reversed(figure.levels):
        first, last = (day_text(history.nights[index].date) for index in (level.first, level.last))
        ends = [NOTHING if end is None else number_text(end, figure.unit) for end in (level.low, level.high)]
        value = value_text(level.value, figure.unit)
        nights = counted(level.nights, history.word)
        screen.line(f"    {value} from {first} to {last}: always-valid 95 % {ends[0]} to {ends[1]}, {nights}")


def _line(label: str, row: Sequence[str], width: int, widths: Sequence[int]) -> str:
    before, now, change, since, target = row
    text = label + " " * (width - cell_len(label))
    values = f"{before:>{widths[0]}}  {now:>{widths[1]}}"
    return f"{text} {values}  {change:<{widths[2]}} {since:>{widths[3]}}  {target}".rstrip()


def _row(figure: HistoryFigure) -> tuple[str, str, str, str, str]:
    change, level = figure.change, figure.level
    last = figure.last
    value = level.value if level is not None else last.value if last is not None else None
    before = NOTHING if change is None else value_text(change.before, figure.unit)
    if change is not None:
        moved = f"{difference_text(figure, change).partition(' ')[0]} {change.direction}".strip()
    else:
        moved = figure.broken or ("no change" if level is not None else "too few to tell")
    since = day_text(change.date) if change is not None else ""
    return before, value_text(value, figure.unit), moved, since, _target(figure)


def _target(figure: HistoryFigure) -> str:
    """`below 80.0 %`, `met ≥ 98.0 %`, and what to know of the figure."""
    side = ""
    level = figure.level
    if figure.target is not None and level is not None:
        value = figure.target_text.partition(" ")[2].replace(".0 %", " %")
        words = "below" if level.value < figure.target.value else "above"
        side = {"met": f"met {value}", "missed": f"{words} {value}"}.get(figure.target_verdict, f"too close: {value}")
    return ", ".join(filter(None, (side or "none", figure.remark)))


def _values_row(figure: HistoryFigure) -> tuple[str, str, str, str, str]:
    """The values alone, where nights are too few."""
    values = [NOTHING if one is None else number_text(one.value, figure.unit) for one in figure.nights]
    unit = value_text(1.0, figure.unit).partition(" ")[2]
    return "", f"{'  '.join(values)} {unit}".strip(), "", "", ""


def _cut(label: str) -> str:
    return label if len(label) <= LABEL else f"{label[: LABEL - 1]}…"
