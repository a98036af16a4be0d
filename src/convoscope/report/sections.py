"""Figures under headings: by family, and by the component of the system that they test where one is declared."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from convoscope.metrics.declaration import COMPONENTS
from convoscope.runs.summary import Summary
from convoscope.statistics.summary import Figure


class FigureSection(NamedTuple):
    """The figures of a family, or those of them that test one component."""

    family: str
    component: str
    figures: list[Figure]

    @property
    def title(self) -> str:
        return f"{self.family}: {self.component}" if self.component else self.family


def main_component(component: str) -> str:
    """The component that a metric tests first of all: it may name several."""
    return component.partition(",")[0]


def component_place(component: str) -> int:
    """Where a component stands on the way through a system; after all others where it is not known."""
    name = main_component(component)
    return COMPONENTS.index(name) if name in COMPONENTS else len(COMPONENTS)


def sections(summary: Summary, figures: Iterable[Figure]) -> list[FigureSection]:
    """The figures by family and component. Families stay in their order; components go from triage to end-to-end."""
    by_title: dict[str, dict[str, list[Figure]]] = {}
    for figure in figures:
        declared = summary.by_key.get(figure.key)
        component = main_component(declared.component) if declared else ""
        family = str(figure.metric.split(".", 1)[0])
        by_title.setdefault(family, {}).setdefault(component, []).append(figure)
    return [
        FigureSection(family, component, components[component])
        for family, components in by_title.items()
        for component in sorted(components, key=component_place)
    ]
