"""The tables of states, segments, flows and archetypes: each is defined once, for terminal, Markdown and page."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Generic, NamedTuple, TypeVar

from convoscope.analysis.flows.diagnosis import STALL, WITHOUT_SUCCESS
from convoscope.analysis.flows.flow_matrix import Aspect, FlowFigures
from convoscope.analysis.flows.segments import Archetype, SegmentFigures
from convoscope.analysis.flows.state_table import Rate, StateFigures
from convoscope.analysis.words import (
    NOTHING,
    counted,
    cut_text,
    decimal_text,
    number_text,
    range_text,
    reason_text,
    seconds_text,
    short_name,
    ten_text,
    unmeasured_line,
    value_text,
)
from convoscope.metrics.declaration import COUNT, SHARE
from convoscope.report.table import NOTE_COLUMN, ReportTable, Side, TableCell, TableColumn
from convoscope.scores.judges import is_panel

MAX_ROWS = 40
"""Rows of a table on the page; what is left out is counted."""
MAX_NAME = 200
"""Characters of a name that are shown where there is room."""
FEW = "too few to conclude"
_BREAKS = frozenset(("Cc", "Cs", "Zl", "Zp"))
_STEERING = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

Row = TypeVar("Row")


def shortened(text: str, most: int = MAX_NAME) -> str:
    """In one line; where it is too long, with what is missing counted."""
    return cut_text(in_one_line(text), most)


def in_one_line(text: str) -> str:
    """Without breaks, and without marks that steer the direction of what comes after them."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split()) or "(no name)"
    kept = (character for character in text if character not in _STEERING)
    plain = (" " if unicodedata.category(character) in _BREAKS else character for character in kept)
    return " ".join("".join(plain).split()) or "(no name)"


class FlowCell(NamedTuple):
    """A figure: short with its interval on a terminal and in Markdown, with its unit and n on the page."""

    text: str
    below: str = ""
    value: str = ""
    """On the page; as on a terminal where it is empty."""
    under: str = ""
    reason: str = ""
    """Why there is no value."""
    strong: bool = False
    weak: bool = False
    """The page marks it as the fault of the state."""

    @property
    def page(self) -> PageCell:
        """As the page shows it."""
        return PageCell(self.value or self.text, self.under, self.reason, self.weak)


class PageCell(NamedTuple):
    """A cell on the page: a value, what is under it, and why the value is missing."""

    value: str
    under: str = ""
    reason: str = ""
    weak: bool = False


class PageRow(NamedTuple):
    """A row on the page, and where its name leads."""

    name: str
    href: str
    cells: Sequence[PageCell]


class PageTable(NamedTuple):
    """A table as the page unfolds it."""

    title: str
    head: str
    columns: Sequence[str]
    rows: Sequence[PageRow]
    more: int
    note: str = ""


class FlowColumn(NamedTuple, Generic[Row]):
    """A column, its heading on a terminal and on the page; an empty one is left out there."""

    title: str
    label: str
    cell: Callable[[Row], FlowCell]
    side: Side = "right"
    spare: bool = False

    @property
    def head(self) -> TableColumn:
        """Its heading on a terminal."""
        return TableColumn(self.title, self.side, spare=self.spare, whole=self.side == "left")


class FlowTable(NamedTuple, Generic[Row]):
    """A table for every medium."""

    names: Mapping[str, Callable[[Row], str]]
    subject: str
    """Which of the names the page shows."""
    columns: Sequence[FlowColumn[Row]]
    legend: Sequence[str]
    page_title: str
    page_note: str
    notes: Callable[[Row], Sequence[str]] | None = None
    """What a reader must know before concluding anything from a row."""
    spare_name: str = ""
    """The name that is left out on a narrow terminal where all rows share it."""

    def report(self, rows: Sequence[Row], *notes: str) -> ReportTable:
        """The table for a terminal or Markdown: its legend, the notes and why dots are in some columns below it."""
        shown = [column for column in self.columns if column.title]
        heads = [TableColumn(title, names_row=True, spare=title == self.spare_name) for title in self.names]
        cells = [[column.cell(row) for column in shown] for row in rows]
        table = []
        for row, figures in zip(rows, cells, strict=True):
            names = [TableCell(short_name(name(row))) for name in self.names.values()]
            remarks = []
            if self.notes is not None:
                first, *others = self.notes(row) or [""]
                remarks = [TableCell(first, "; ".join(others))]
            table.append([*names, *(TableCell(cell.text, cell.below, cell.strong) for cell in figures), *remarks])
        reasons = (
            (column.title, figures[at].reason)
            for at, column in enumerate(shown)
            for figures in cells
            if figures[at].reason and figures[at].text == NOTHING
        )
        columns = [*heads, *(column.head for column in shown), *([NOTE_COLUMN] if self.notes is not None else [])]
        return ReportTable(columns, table, notes=[*filter(None, (*self.legend, *notes, unmeasured_line(reasons)))])

    @property
    def labels(self) -> list[str]:
        """The headings on the page."""
        return [column.label for column in self.columns if column.label]

    def page_cells(self, row: Row) -> list[PageCell]:
        """A row on the page."""
        return [column.cell(row).page for column in self.columns if column.label]

    def page(
        self, rows: Sequence[Row], href: Callable[[Row], str] = lambda _: "", noun: str = "conversation"
    ) -> PageTable:
        """The first rows of the table for the page."""
        name = self.names[self.subject]
        shown = [PageRow(shortened(name(row)), href(row), self.page_cells(row)) for row in rows[:MAX_ROWS]]
        more, note = max(0, len(rows) - MAX_ROWS), self.page_note.replace("{noun}", noun)
        subject = {"Segment": "phase", "Archetype": "kind"}.get(self.subject, self.subject.lower())
        return PageTable(self.page_title, subject, self.labels, shown, more, note)


def _missing(reason: str) -> FlowCell:
    return FlowCell(NOTHING, reason=reason_text(reason) or "nothing measured")


def _text(text: str) -> FlowCell:
    return FlowCell(short_name(text), value=shortened(text))


def _whole(count: int | None, reason: str = "") -> FlowCell:
    if count is None:
        return _missing(reason) if reason else FlowCell(NOTHING)
    return FlowCell(f"{count:,}")


@lru_cache(4096)
def _share(rate: Rate) -> FlowCell:
    """A share, with its interval everywhere. Thousands of states have the same few."""
    if rate.value is None:
        return _missing(rate.reason)
    below = range_text(rate.low, rate.high)
    return FlowCell(decimal_text(rate.value, most=1.0), below, value_text(rate.value, SHARE), _under(rate, SHARE))


@lru_cache(4096)
def _mean(rate: Rate, digits: int = 2) -> FlowCell:
    """A mean of counts, with its interval on the page."""
    if rate.value is None:
        return _missing(rate.reason)
    return FlowCell(decimal_text(rate.value, digits), "", value_text(rate.value, COUNT), _under(rate, COUNT))


def _under(rate: Rate, unit: str) -> str:
    return f"{interval_text(rate, unit)}, n {rate.n:,}" if rate.low is not None else f"n {rate.n:,}"


def interval_text(rate: Rate, unit: str) -> str:
    """The interval of a rate on the page."""
    if rate.low is None or rate.high is None:
        return "no interval"
    return f"{number_text(max(0.0, rate.low), unit)} to {number_text(rate.high, unit)}"


def _fraction(value: float | None, reason: str, most: float = 1.0) -> FlowCell:
    return _missing(reason) if value is None else FlowCell(decimal_text(value, most=most), value=f"{value:.2f}")


def _seconds(seconds: float | None, turns: int, reason: str) -> FlowCell:
    if seconds is None:
        return _missing(reason)
    return FlowCell(decimal_text(seconds, 1), value=seconds_text(seconds), under=counted(turns, "turn"))


def _points(aspect: Aspect, reason: str = "") -> FlowCell:
    if aspect.score is None:
        return _missing(reason or aspect.reason)
    under = f"n {aspect.n:,}"
    if aspect.low is not None and aspect.high is not None:
        under = f"{aspect.low:.1f} to {aspect.high:.1f}, {under}"
    return FlowCell(ten_text(aspect.score), range_text(aspect.low, aspect.high, 1), f"{aspect.score:.1f}", under)


def _stall(row: StateFigures) -> FlowCell:
    is_high = (row.stall.value or 0.0) > STALL
    return _share(row.stall)._replace(strong=is_high, weak=is_high and row.terminal not in WITHOUT_SUCCESS)


def _state_notes(row: StateFigures) -> Sequence[str]:
    end = f"end: {row.terminal}" if row.terminal else ""
    unknown = f"{row.unknown:,} outcome unknown" if row.unknown else ""
    return [*filter(None, (end, FEW if row.caution else "", unknown))]


def _latency(row: StateFigures) -> FlowCell:
    seconds = None if row.latency_p95_ms is None else row.latency_p95_ms / 1000
    return _seconds(seconds, row.latency_n, row.latency_reason)


STATES: FlowTable[StateFigures] = FlowTable(
    names={"Flow": lambda row: row.flow, "State": lambda row: row.state},
    subject="State",
    spare_name="Flow",
    columns=(
        FlowColumn("n", "n", lambda row: _whole(row.n)),
        FlowColumn("progress", "went on", lambda row: _share(row.progress)),
        FlowColumn("stall", "got stuck", _stall),
        FlowColumn("escal", "handed over", lambda row: _share(row.escalation)),
        FlowColumn("revisit", "entered again", lambda row: _mean(row.revisit)),
        FlowColumn("dwell", "turns a visit", lambda row: _mean(row.dwell_turns, 1)),
        FlowColumn("lat_p95(s)", "wait, slowest 5 %", _latency),
        FlowColumn("", "guard errors", lambda row: _mean(row.guard_error)),
        FlowColumn("slot_fill", "slots filled here", lambda row: _share(row.slot_fill_rate)),
        FlowColumn("", "slots ready", lambda row: _share(row.slot_ready_rate)),
        FlowColumn("guard", "", lambda row: _whole(row.guard_errors, row.guard_error.reason), spare=True),
        FlowColumn("front-loaded", "", lambda row: _whole(row.front_loaded), spare=True),
    ),
    legend=(
        "stall=fraction stuck here · progress=fraction that advanced · revisit=oscillation.",
        "High stall + low progress = the state pulling the flow down.",
    ),
    page_title="States, worst first",
    page_note="n counts {noun}s that were in the state. Went on, got stuck, handed over: shares of them. "
    "Entered again: entries beyond the first, per {noun}.",
    notes=_state_notes,
)


def _typed(row: SegmentFigures) -> FlowCell:
    cell = _share(row.typed_yield)
    return cell if row.typed_yield.value is None else cell._replace(under=f"{row.typed_by}, {cell.under}")


SEGMENTS: FlowTable[SegmentFigures] = FlowTable(
    names={"Flow": lambda row: row.flow, "Segment": lambda row: row.segment},
    subject="Segment",
    spare_name="Flow",
    columns=(
        FlowColumn("kind", "kind", lambda row: _text(row.kind), side="left"),
        FlowColumn("states", "states", lambda row: _whole(len(row.states))),
        FlowColumn("n", "n", lambda row: _whole(row.n)),
        FlowColumn("cohesion", "strength", lambda row: _fraction(row.group_cohesion, row.reason)),
        FlowColumn("yield", "went on", lambda row: _share(row.goal_yield)),
        FlowColumn("typed", "did its job", _typed),
        FlowColumn(
            "of",
            "",
            lambda row: FlowCell(f"{row.typed_yield.n:,} {row.typed_by}" if row.typed_yield.n else ""),
            side="left",
        ),
        FlowColumn("efficiency", "states per turn", lambda row: _fraction(row.efficiency, row.efficiency_reason)),
        FlowColumn("coherence", "no going round", lambda row: _fraction(row.transition_coherence, "outcome_unknown")),
    ),
    legend=(
        "yield=states that advanced · typed=what the kind is for: slots filled, confirmations accepted, tool calls "
        "that worked · cohesion=yield × (0.35 × efficiency + 0.65 × coherence).",
        "efficiency=states ÷ turns in them · coherence=1 − revisits − stalls.",
        "Below each fraction is its 95 % interval.",
    ),
    page_title="Phases of the flow, the weakest first",
    page_note="A phase is a group of states that the flow declares, such as collect or confirm. "
    "Strength, from 0 to 1: went on × (0.35 × states per turn + 0.65 × no going round).",
    notes=lambda row: [FEW] if row.caution else [],
)


def _weakest(row: Archetype) -> FlowCell:
    return _text(row.weakest) if row.weakest else _missing(row.reason)._replace(text="", value=NOTHING)


ARCHETYPES: FlowTable[Archetype] = FlowTable(
    names={"Archetype": lambda row: row.kind},
    subject="Archetype",
    columns=(
        FlowColumn("flows", "flows", lambda row: _whole(row.flows)),
        FlowColumn("segments", "phases", lambda row: _whole(row.segments)),
        FlowColumn("cohesion", "strength", lambda row: _fraction(row.cohesion, row.reason)),
        FlowColumn("spread", "spread", lambda row: _fraction(row.spread, row.reason or "one_segment_alone", math.inf)),
        FlowColumn("range", "", lambda row: FlowCell(range_text(row.lowest, row.highest) if row.segments > 1 else "")),
        FlowColumn("", "lowest", lambda row: _fraction(row.lowest, row.reason)),
        FlowColumn("", "highest", lambda row: _fraction(row.highest, row.reason)),
        FlowColumn("weakest", "weakest", _weakest, side="left"),
    ),
    legend=("cohesion=mean over the segments of this kind · spread=standard deviation between them.",),
    page_title="Kinds of phases, over all flows",
    page_note="A kind that is weak in many flows is no fault of one flow.",
)


def _humanness(row: FlowFigures) -> FlowCell:
    """What the panel says; without a panel, the judge, if there is only one."""
    if not row.humanness:
        return _missing("no_judge")
    last = row.humanness[-1]  # who speaks for the others comes last
    text = ten_text(last.score) if is_panel(last.judge) or len(row.humanness) == 1 else "below"
    judged = [verdict for verdict in row.humanness if verdict.score is not None]
    if not judged:
        return _missing("not_judged")._replace(text=text, value=NOTHING)
    return FlowCell(text, value=f"{judged[-1].score:.1f}", under=shortened(judged[-1].judge, 40))


def _flow_notes(row: FlowFigures) -> Sequence[str]:
    aspects = {"correctness": row.correctness, "completion": row.completion, "errors": row.errors}
    partly = [f"{title} of {aspect.n:,}" for title, aspect in aspects.items() if aspect.unmeasured and aspect.n]
    return [*([FEW] if row.caution else []), *partly]


def _aspect_column(name: str) -> FlowColumn[FlowFigures]:
    def cell(row: FlowFigures) -> FlowCell:
        return _points(getattr(row, name), "" if row.n else "every_conversation_excluded")

    return FlowColumn(name, name, cell)


def _flow_latency(title: str, label: str, seconds: Callable[[FlowFigures], float | None]) -> FlowColumn[FlowFigures]:
    return FlowColumn(title, label, lambda row: _seconds(seconds(row), row.latency_n, "no_latency_logged"))


FLOWS: FlowTable[FlowFigures] = FlowTable(
    names={"Flow": lambda row: row.flow, "Agent": lambda row: row.agent},
    subject="Flow",
    columns=(
        FlowColumn("", "agent", lambda row: _text(row.agent), side="left"),
        FlowColumn(
            "n",
            "n",
            lambda row: _whole(row.n)._replace(under=f"{row.excluded:,} left out" if row.excluded else row.caution),
        ),
        FlowColumn("excluded", "", lambda row: _whole(row.excluded), spare=True),
        _aspect_column("correctness"),
        _aspect_column("completion"),
        _aspect_column("errors"),
        _flow_latency("lat_mean(s)", "latency mean", lambda row: row.latency_mean),
        _flow_latency("lat_p95(s)", "latency p95", lambda row: row.latency_p95),
        FlowColumn("humanness", "humanness", _humanness, spare=True),
    ),
    legend=("correctness, completion, errors, humanness=points of ten, 10 is best · below them is the 95 % interval.",),
    page_title="Flows by agent",
    page_note="Points of ten, the least correct first; errors are points left after what went wrong.",
    notes=_flow_notes,
)
