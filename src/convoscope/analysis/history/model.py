"""The history of an agent: nights, figures, and the changes that they show.

Made once from runs, and printed by the terminal, the page, JSON and Python in the same words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import msgspec

from convoscope.analysis.answer.model import Clause, Noun
from convoscope.metrics.declaration import Better, Target

Direction = Literal["better", "worse", ""]
NightWord = Literal["night", "day", "run"]


class HistoryNight(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run, or one day of a run."""

    date: str
    run: str
    """The folder of the run."""
    conversations: int
    few: bool = False
    """Fewer than 20: too few to look for changes in."""
    dated_by: Literal["logs", "receipt"] = "logs"
    """By when its conversations began; without clocks, by when it was scored."""
    versions: dict[str, float] = {}
    """The share of the conversations that each version has."""
    new_versions: tuple[str, ...] = ()
    """Versions that the night before did not have."""


class NightValue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A figure in one night."""

    value: float
    low: float | None = None
    high: float | None = None
    n: int
    """Turns, calls or items behind it."""
    conversations: int
    few: bool = False
    """Of fewer than 20 conversations."""
    comparable: bool = True
    """Of the same judge, metric and scenarios as the last night."""


class FigureLevel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a figure lies between two changes."""

    first: int
    last: int
    """Nights, by their index."""
    value: float
    low: float | None = None
    high: float | None = None
    """An always-valid 95 % interval: it holds the level at every look at once. An end that is null is open."""
    nights: int
    """Those that count: neither missing nor too few."""


class FigureChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A level that changed."""

    night: int
    """The first night of the new level, by its index."""
    date: str
    named: str
    """The date of the night after which the evidence was strong enough."""
    before: float
    now: float
    direction: Direction = ""
    """Nothing where the figure has no direction that may be relied on."""
    by_version: dict[str, tuple[float, float]] = {}
    """Where no version is new: the value before and now of each version that both sides have."""

    @property
    def difference(self) -> float:
        return self.now - self.before


class HistoryFigure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One figure over all nights."""

    name: str
    """As in the summary: metric, variant, reduction."""
    label: str
    """In plain words."""
    unit: str
    better: Better
    importance: int
    nights: tuple[NightValue | None, ...]
    """One for each night; null where it has no value."""
    levels: tuple[FigureLevel, ...] = ()
    """Between changes; the last is the current one. Empty where too few nights count."""
    changes: tuple[FigureChange, ...] = ()
    target: Target | None = None
    target_text: str = ""
    """`≥ 80.0 %`."""
    target_verdict: Literal["", "met", "missed", "too close"] = ""
    """Whether the whole interval of the current level lies on one side of the target."""
    broken: str = ""
    """Why earlier nights cannot be compared: `judge changed 28 Oct`."""
    broken_at: int | None = None
    """The first night that can."""
    remark: str = ""
    """What to know of it: an uncalibrated judge, few nights, an outcome that is known less often."""

    @property
    def level(self) -> FigureLevel | None:
        return self.levels[-1] if self.levels else None

    @property
    def change(self) -> FigureChange | None:
        """The last one."""
        return self.changes[-1] if self.changes else None

    @property
    def last(self) -> NightValue | None:
        """The last value that there is."""
        return next((one for one in reversed(self.nights) if one is not None), None)


class HistoryChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What changed at one night."""

    night: int
    date: str
    kind: Literal["level", "version", "break"]
    title: str
    details: tuple[str, ...] = ()
    version: str = ""
    """`with v2`, `no new version`; nothing where the logs name no version."""
    by_version: str = ""
    """Of the most important figure, without a new version: `with v1 73.0 % → 50.0 %, with v2 …`."""
    figures: tuple[str, ...] = ()
    """The names of the figures that moved together, the most important first."""


class History(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a person wants to know of many nights."""

    noun: Noun
    word: NightWord
    """What a point in time is called."""
    title: str
    """What the runs are called: the name of their folder."""
    verdict: tuple[Clause, ...]
    nights: tuple[HistoryNight, ...]
    figures: tuple[HistoryFigure, ...]
    """Those that changed first, then by importance."""
    changes: tuple[HistoryChange, ...]
    """The newest first."""
    looked_at: int
    """Figures that changes are looked for in: the level of each is corrected for all of them."""
    missing: tuple[str, ...] = ()
    """Dates without a run between the first and the last, where runs are nightly."""
    left_out: tuple[str, ...] = ()
    """Runs that are not counted, and why."""
    notes: tuple[str, ...] = ()
    around: tuple[int, int]
    """Two nights to compare, by their index: those around the newest change; without one, the first and the last."""

    draw: ClassVar[Callable[[History, str], Any] | None] = None
    """How a history becomes a picture. The reports say so, of which this knows nothing."""
    write: ClassVar[Callable[[History, Any], Any] | None] = None

    def __getitem__(self, name: str) -> HistoryFigure:
        """A figure by its name, or by its label."""
        for figure in self.figures:
            if name in (figure.name, figure.label):
                return figure
        raise KeyError(f"no figure {name!r}; there is {', '.join(one.name for one in self.figures)}")

    def plot(self, figure: str = "") -> Any:
        """A picture of one figure over the nights, the first where none is named; `save` writes it."""
        if History.draw is None:
            raise RuntimeError("import convoscope.report.history first")
        return History.draw(self, figure)

    def write_page(self, path: Any) -> Any:
        """Write the page: one file that opens from disk."""
        if History.write is None:
            raise RuntimeError("import convoscope.report.history first")
        return History.write(self, path)
