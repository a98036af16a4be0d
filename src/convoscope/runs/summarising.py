"""From the written scores to the summary: one metric at a time, so that memory stays flat."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from convoscope.metrics.declaration import Derived, Metric
from convoscope.metrics.registry import Declared
from convoscope.runs.arrays import EVERYTHING, Arrays, Subset
from convoscope.runs.tables import connect
from convoscope.statistics.summary import Figure, Given, derived_figure, figures


class Group(msgspec.Struct, frozen=True):
    """The figures of the conversations that share these dimensions."""

    by: dict[str, str]
    conversations: int
    metrics: list[Figure]


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What a run says. The same input gives the same bytes, whoever computed it."""

    schema: str = "convoscope.summary/1"
    config_hash: str
    input_hash: str
    conversations: int
    metrics: list[Figure]
    groups: list[Group]
    declared: list[dict[str, Any]]


def summarise(
    folder: Path,
    metrics: Sequence[Declared],
    *,
    config_hash: str,
    input_hash: str,
    seed: str,
    by: Sequence[Sequence[str]] | None,
    scratch: Path,
) -> Summary:
    """Read the run's scores and reduce them, over all conversations and over each group.

    `seed` is what the draws of the intervals depend on.
    """
    with connect(scratch=scratch) as connection:
        arrays = Arrays(connection, folder)
        subsets = [EVERYTHING, *arrays.subsets(by)]
        results: list[list[Figure]] = [[] for _ in subsets]
        for declared in metrics:
            for number, figure in _figures(arrays, declared, metrics, subsets, seed):
                results[number].append(figure)
        return Summary(
            config_hash=config_hash,
            input_hash=input_hash,
            conversations=arrays.count,
            metrics=results[0],
            groups=[
                Group(subset.by, int(arrays.rows(subset).sum()), result)
                for subset, result in zip(subsets[1:], results[1:], strict=True)
            ],
            declared=[describe(one) for one in metrics],
        )


def describe(declared: Declared) -> dict[str, Any]:
    """A declaration as data."""
    facts: dict[str, Any] = {
        "metric": declared.key,
        "family": declared.family,
        "version": declared.version,
        "question": declared.question,
        "unit": declared.unit,
        "better": declared.better,
        "reduce": {"within": declared.reduce.within, "across": declared.reduce.across},
        "target": msgspec.to_builtins(declared.target),
        "ten_points": msgspec.to_builtins(declared.ten),
        "aspect": declared.aspect,
        "component": declared.component,
    }
    if isinstance(declared, Metric):
        facts["observes"] = declared.observes
        facts["needs"] = [need.code for need in declared.needs]
        facts["also"] = sorted(declared.also)
    else:
        facts["observes"] = declared.over
        facts["inputs"] = list(declared.inputs)
    return facts


def _figures(
    arrays: Arrays, declared: Declared, metrics: Sequence[Declared], subsets: Sequence[Subset], seed: str
) -> Iterator[tuple[int, Figure]]:
    """The figures of one metric, each with the number of its subset."""
    keys = [seed + msgspec.json.encode(subset.by, order="sorted").decode() for subset in subsets]
    if isinstance(declared, Derived) and declared.over == "group":
        by_key = {one.key: one for one in metrics}
        for number, subset in enumerate(subsets):
            yield number, _group_figure(arrays, declared, by_key, arrays.rows(subset), keys[number])
        return
    for judge in arrays.judges(declared):
        table = arrays.table(declared, judge)
        for number, subset in enumerate(subsets):
            for figure in figures(declared, judge, table, arrays.rows(subset), keys[number]):
                yield number, figure


def _group_figure(
    arrays: Arrays, declared: Derived, by_key: Mapping[str, Declared], rows: NDArray[np.bool_], key: str
) -> Figure:
    """A figure over a group, after those that it needs. A circle of needs was refused before anything ran."""
    given: list[tuple[Figure, Given]] = []
    for name in declared.inputs:
        one = by_key[name]
        if isinstance(one, Derived) and one.over == "group":
            figure = _group_figure(arrays, one, by_key, rows, key)
            given.append((figure, figure.value or 0.0))
        else:
            # A panel's verdict stands for its judges.
            judge = arrays.judges(one)[-1]
            table = arrays.table(one, judge)
            figure = next(figures(one, judge, table, rows, key))
            given.append((figure, arrays.samples(table, rows) if figure.value is not None else []))
    return derived_figure(declared, given, key)
