"""Results and data sets of benchmarks, for a terminal and for programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from convoscope.analysis.benchmark.agreement import Kappa, LabelAgreement, agreement
from convoscope.analysis.benchmark.datasets import NOT_STAGED, VARIABLE, BenchmarkDataset
from convoscope.analysis.benchmark.result import BenchmarkResult, MetricResult
from convoscope.analysis.words import NOTHING
from convoscope.harmless import one_line
from convoscope.report.screen import Screen
from convoscope.report.table import TableColumn, number_column, print_table, text_table
from convoscope.statistics.intervals import Interval

MANY = 5
"""Samples without a score that are named; the result file has all of them."""


def print_result(screen: Screen, result: BenchmarkResult) -> None:
    """The figures of a result, or why they are missing."""
    split = f", {result.split}" if result.split else ""
    maker = f", by {one_line(result.receipt.semantic_model)}" if result.receipt.semantic_model else ""
    screen.line(f"{result.track} ({result.mode}) on {result.dataset}{split}{maker}")
    screen.line(
        f"samples: {result.samples_evaluated} evaluated, {result.samples_failed} failed, "
        f"{result.samples_skipped} skipped"
    )
    for failure in result.failures[:MANY]:
        parts = one_line(failure.sample_id), failure.reason, one_line(failure.detail, None)
        screen.line(f"  {': '.join(filter(None, parts))}")
    if len(result.failures) > MANY:
        screen.line(f"  and {len(result.failures) - MANY:,} more")
    for note in result.notes:
        screen.line(one_line(note, None))
    screen.line()
    ceilings = {} if result.agreement is None else result.agreement.ceilings
    columns: list[str | TableColumn] = [
        "metric",
        number_column("value"),
        "95 % interval",
        number_column("samples"),
        "coverage",
    ]
    rows = [_figure_cells(name, one) for name, one in result.metrics.items()]
    if ceilings:
        columns.append(number_column("two labellers"))
        rows = [[*row, _value(ceilings[row[0]].f1) if row[0] in ceilings else ""] for row in rows]
    judged = [one.calibration or "" for one in result.metrics.values()]
    if any(judged):
        columns.append("judge against people")
        rows = [[*row, known] for row, known in zip(rows, judged, strict=True)]
    reasons = [one.reason or "" for one in result.metrics.values()]
    rows = [[*row, reason] for row, reason in zip(rows, reasons, strict=True)]
    print_table(screen, text_table((*columns, "not measured"), rows))


def _figure_cells(name: str, figure: MetricResult) -> list[str]:
    coverage = NOTHING if figure.coverage is None else f"{figure.coverage:.0%}"
    return [name, _value(figure.value), _ends(figure.interval), str(figure.samples_measured), coverage]


def _value(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.4f}"


def _ends(interval: Interval | None) -> str:
    if interval is None:
        return NOTHING
    return " to ".join("?" if end is None else f"{end:.3f}" for end in (interval.low, interval.high))


def print_datasets(screen: Screen, staged: Sequence[BenchmarkDataset]) -> None:
    """The data sets that are there, and where those go that are not."""
    rows = [(one.track, one.name, str(len(one.samples)), _splits(one), str(one.folder)) for one in staged]
    if rows:
        print_table(screen, text_table(("track", "data set", number_column("samples"), "splits", "folder"), rows))
    else:
        screen.line("no data set is staged")
    for dataset in staged:
        if dataset.problem is not None:
            screen.line(f"cannot be used: {one_line(str(dataset.problem), None)}", "red")
    names = {one.name for one in staged}
    for name, why in NOT_STAGED.items():
        if name not in names:
            screen.line(f"not staged: {name}: {why} under ${VARIABLE}/datasets/")


def _splits(dataset: BenchmarkDataset) -> str:
    return ", ".join(f"{one_line(name)} {len(ids)}" for name, ids in dataset.manifest.splits.items())


def print_dataset(screen: Screen, dataset: BenchmarkDataset) -> None:
    """One data set: what it is, and how far its two labellings agree."""
    screen.line(
        f"{one_line(dataset.name)} ({dataset.track}): {len(dataset.samples)} samples; {_splits(dataset)}", "bold"
    )
    if dataset.manifest.description:
        screen.line(one_line(dataset.manifest.description, None))
    screen.line(str(dataset.folder))
    screen.line()
    agreed = agreement(dataset, dataset.samples)
    if agreed is None:
        screen.line("labelled once: nothing is known of how far labellers agree")
        return
    once = f", {agreed.samples_once} without labels of both" if agreed.samples_once else ""
    screen.line(f"labelled twice: {agreed.samples} samples{once}")
    for name, ceiling in agreed.ceilings.items():
        words = f"  {name} of the second labelling against the first: {_value(ceiling.f1)}"
        screen.line(words + _because(ceiling.reason))
    for title, labels in (("topic", agreed.topics), ("risk", agreed.risks)):
        screen.line()
        rows = [(label, *_kappa_cells(one)) for label, one in labels.items()]
        numbers = (number_column(name) for name in ("κ", "both", "first only", "second only", "neither"))
        print_table(screen, text_table((title, *numbers, "not measured"), rows))


def _because(reason: str | None) -> str:
    return f" ({reason})" if reason else ""


def _kappa_cells(kappa: Kappa) -> Iterable[str]:
    counts = (kappa.both, kappa.first_only, kappa.second_only, kappa.neither)
    return (NOTHING if kappa.value is None else f"{kappa.value:.3f}", *map(str, counts), kappa.reason or "")


def dataset_json(dataset: BenchmarkDataset, *, with_agreement: bool = True) -> Mapping[str, Any]:
    """A data set for programs."""
    fields: dict[str, Any] = {
        "track": dataset.track,
        "dataset": dataset.name,
        "description": dataset.manifest.description,
        "folder": str(dataset.folder),
        "samples": len(dataset.samples),
        "splits": {name: len(ids) for name, ids in dataset.manifest.splits.items()},
        "problem": None if dataset.problem is None else str(dataset.problem),
    }
    if with_agreement:
        agreed: LabelAgreement | None = agreement(dataset, dataset.samples)
        fields["agreement"] = agreed
    return fields
