"""What a family adds to the page: panels under "Where it breaks", and facets of the list of conversations.

A family declares either with a function of a run; the function gives None where the run has nothing to show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module

import msgspec

from convoscope.report.table import ReportTable
from convoscope.runs.reliability import has_judges
from convoscope.runs.run import Run


class PagePanel(msgspec.Struct, frozen=True, kw_only=True):
    """A title, a sentence, tables that can be unfolded, and remarks. Everything is text; cells may lead somewhere."""

    title: str
    line: str
    tables: Sequence[ReportTable] = ()
    remarks: Sequence[str] = ()


class ListFacet(msgspec.Struct, frozen=True, kw_only=True):
    """A property of conversations that the list can be filtered by."""

    key: str
    """In the address."""
    title: str
    values: Mapping[int, str]
    """By the number of the conversation; one without a value has none of them."""
    labels: Mapping[str, str] = {}
    """What a value is called where that is not the value itself; in the order in which they are shown."""
    counts: Mapping[str, int] | None = None
    """How many conversations of the run have each value, where `values` holds only those that are listed."""
    others: int = 0
    """Values that `counts` leaves out, of very many: rare ones, that no listed conversation has."""


PanelMaker = Callable[[Run], PagePanel | None]
FacetMaker = Callable[[Run], ListFacet | None]
_DECLARED_IN: Mapping[str, Callable[[Run], bool]] = {
    "convoscope.report.dialogue": lambda run: _measures(run, "dialogue"),
    "convoscope.report.judged": lambda run: has_judges(run.summary),
    "convoscope.report.unresolved": lambda run: _measures(run, "semantic"),
    "convoscope.report.vacuity": lambda run: (run.folder / "audit.json").exists(),
}
"""Modules with panels of our own families, and which runs need them: they are imported only then."""
_PANELS: list[PanelMaker] = []
_FACETS: list[FacetMaker] = []


def panel(make: PanelMaker) -> PanelMaker:
    """Declare a panel; to be used as a decorator."""
    _PANELS.append(make)
    return make


def facet(make: FacetMaker) -> FacetMaker:
    """Declare a facet; to be used as a decorator."""
    _FACETS.append(make)
    return make


def panels(run: Run) -> tuple[PagePanel, ...]:
    """The panels of a run, in the order in which they were declared."""
    _import_needed(run)
    return tuple(made for make in _PANELS if (made := make(run)) is not None)


def facets(run: Run) -> Iterator[ListFacet]:
    """The facets of a run, in the order in which they were declared."""
    _import_needed(run)
    return (made for make in _FACETS if (made := make(run)) is not None)


def _import_needed(run: Run) -> None:
    for module, is_needed in _DECLARED_IN.items():
        if is_needed(run):
            import_module(module)


def _measures(run: Run, family: str) -> bool:
    return any(figure.value is not None and figure.metric.startswith(f"{family}.") for figure in run.summary.metrics)
