"""What stands above and below each picture: the question, how sure the answer is, and where it comes from."""

from __future__ import annotations

from typing import NamedTuple

from convoscope.analysis.targets import Check, observed, run_checks
from convoscope.analysis.words import counted, coverage_text, interval_text, value_text
from convoscope.metrics.declaration import COUNT, RATIO, SECONDS, SHARE
from convoscope.report.plot.drawing import INK2, INK3, SIDE, WIDTH, Drawing, wrapped
from convoscope.runs.run import Run
from convoscope.statistics.summary import Figure

_INSIDE = WIDTH - 2 * SIDE
_TITLE, _SMALL = 22, 14


class Heading(NamedTuple):
    """The words around a picture."""

    title: str
    subtitle: str
    source: str
    """The metric and the run, at the foot."""
    note: str = ""

    @property
    def height(self) -> float:
        """Of what stands above the picture."""
        return 24 + 28 * len(self._title) + 20 * len(self._subtitle) + 16

    @property
    def foot(self) -> float:
        """Of what stands below the picture."""
        return 34 + 18 * len(self._note)

    @property
    def _title(self) -> list[str]:
        return wrapped(self.title, _INSIDE, _TITLE, 2)

    @property
    def _subtitle(self) -> list[str]:
        return wrapped(self.subtitle, _INSIDE, _SMALL, 2)

    @property
    def _note(self) -> list[str]:
        return wrapped(self.note, _INSIDE, 12.5, 3)

    def begin(self, height: float, description: str) -> Drawing:
        """A picture of a height between heading and foot."""
        drawing = Drawing(self.height + height + self.foot, self.title, f"{self.subtitle}. {description}")
        y = 24.0
        for line in self._title:
            y += 28
            drawing.text(SIDE, y - 8, line, size=_TITLE, weight=620)
        for line in self._subtitle:
            y += 20
            drawing.text(SIDE, y - 4, line, size=_SMALL, colour=INK2)
        y = drawing.height - self.foot + 14
        for line in self._note:
            drawing.text(SIDE, y, line, size=12.5, colour=INK2)
            y += 18
        drawing.text(SIDE, drawing.height - 14, self.source, size=12, colour=INK3, mono=True, width=_INSIDE)
        return drawing


def axis_name(unit: str) -> str:
    """What stands below an axis."""
    return {SHARE: "%", RATIO: "from 0 to 1", COUNT: "", SECONDS: "seconds"}.get(unit, unit)


def figure_words(run: Run, figure: Figure) -> str:
    """The value, how sure it is, and what it is of."""
    name = f"{figure.reduction} " if figure.reduction else ""
    interval = f", 95 % interval {interval_text(figure)}" if figure.interval else ", no interval"
    observes = observed(figure, run.summary).replace("_", " ")
    pooled = "" if observes == "conversation" else f" of {counted(figure.samples_measured, 'conversation')}"
    noun = "conversation" if observes in ("conversation", "group") else observes
    covered = coverage_text(figure, observes)
    n = counted(figure.n, noun)
    return f"{name}{value_text(figure.value, figure.unit)}{interval}; n {n}{pooled}; coverage {covered}"


def targets_of(run: Run, figure: Figure, given: tuple[str, ...]) -> list[Check]:
    """The targets of a figure over all conversations."""
    same = (figure.key, figure.reduction, figure.judge)
    return [
        check
        for check in run_checks(run, given)
        if not check.by and (check.figure.key, check.figure.reduction, check.figure.judge) == same
    ]
