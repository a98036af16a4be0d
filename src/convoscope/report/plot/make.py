"""`plot`: the picture of a metric of a run, and how it becomes a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from convoscope.analysis.targets import figure_name
from convoscope.analysis.words import reasons_text
from convoscope.errors import UsageError
from convoscope.report.files import write_bytes, write_text
from convoscope.report.plot.distribution import distribution_svg
from convoscope.report.plot.intervals import before_after_svg, groups_svg
from convoscope.report.plot.states import states_svg
from convoscope.runs.run import Run
from convoscope.runs.summary import Summary
from convoscope.runs.targets import figure_names, find_figure
from convoscope.statistics.summary import Figure
from convoscope.storage import as_path

STATES = "states"
SCALE = 2
"""Pixels of a PNG for each unit of the picture."""
ENDINGS = (".svg", ".png")


class Plot:
    """A picture. A notebook shows it; `save` writes it."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def __repr__(self) -> str:
        return f"<Plot, {len(self.svg):,} characters of SVG; save('plot.svg') writes it>"

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an .svg, or a .png where `convoscope[png]` is installed."""
        file = as_path(path)
        if check_ending(file) == ".svg":
            write_text(file, self.svg)
        else:
            write_bytes(file, self.png())

    def png(self) -> bytes:
        """The picture in pixels. It needs resvg-py."""
        try:
            import resvg_py
        except ImportError:
            hint = "pip install 'convoscope[png]' installs it, 4 MB; an .svg needs nothing"
            raise UsageError("a PNG needs the package resvg-py", hint=hint) from None
        return bytes(resvg_py.svg_to_bytes(svg_string=self.svg, zoom=SCALE))


def check_ending(path: Path) -> str:
    """How a picture is to be written, by the end of its name."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise UsageError(f"{path}: a plot is a file that ends in .svg or .png", hint="name one, such as plot.svg")
    return ending


def plot(
    run: Run | str | os.PathLike[str],
    metric: str,
    *,
    by: str | Sequence[str] = (),
    against: Run | str | os.PathLike[str] | None = None,
    flow: str | None = None,
    targets: Sequence[str] = (),
) -> Plot:
    """A picture of a metric: its distribution; with `by` its groups; with `against` an earlier run beside it.

    `states` as the metric draws the states of the run, or of one flow of it.

    >>> convoscope.plot("runs/monday", "response_latency").save("latency.svg")   # doctest: +SKIP
    """
    opened, dimensions = _opened(run), _dimensions(by)
    if metric == STATES:
        if dimensions or against is not None or targets:
            raise UsageError("the picture of states has no groups, targets or earlier run", hint="--flow names a flow")
        return Plot(states_svg(opened, flow))
    if flow is not None:
        raise UsageError("a flow is named for the picture of states only", hint="use --by flow for a metric")
    figure, given = _figure(opened.summary, metric), tuple(targets)
    if against is not None:
        return Plot(before_after_svg(opened, _opened(against), figure, dimensions, given))
    if dimensions:
        return Plot(groups_svg(opened, figure, dimensions, given))
    return Plot(distribution_svg(opened, figure, given))


def _opened(run: Run | str | os.PathLike[str]) -> Run:
    return run if isinstance(run, Run) else Run.open(run)


def _dimensions(by: str | Sequence[str]) -> list[str]:
    names = by.split(",") if isinstance(by, str) else by
    return [name.strip() for name in names if name.strip()]


def _figure(summary: Summary, name: str) -> Figure:
    """The figure that is meant, the panel's where judges sat; refuses one without a value."""
    units = {one: declared.unit for declared in summary.declared for one in figure_names(declared)}
    whole = find_figure(name, units)
    figures = [one for one in summary.figures if figure_name(one) == whole]
    valued = [one for one in figures if one.value is not None]
    if not valued:
        reasons = "; ".join(dict.fromkeys(reasons_text(one) for one in figures)) or "it was not computed"
        raise UsageError(f"{whole} has no value in this run: {reasons}", hint="`convoscope inspect` says what it needs")
    return valued[-1]
