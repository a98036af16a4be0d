"""Samples that have gold labels and no conversation: nobody could find anything in them, and they are not left out."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from convoscope.ingest.companions import gold
from convoscope.ingest.discover import Input
from convoscope.ingest.report import ReadReport
from convoscope.metrics.declaration import Metric
from convoscope.metrics.registry import Declared
from convoscope.metrics.semantic.findings import GOLD_LABELS
from convoscope.runs.database import CONVERSATIONS, Tables, connect
from convoscope.statistics.summary import Figure

NO_CONVERSATION = "no_conversation"


def absent_samples(inputs: Iterable[Input], tables: Tables, report: ReadReport) -> list[str]:
    """The samples of usable gold files that no conversation has the id of, nor a file that was read the name."""
    inputs = list(inputs)
    paths = sorted({path for item in inputs for path in item.companions if path.endswith(gold.FILE_ENDING)})
    if not paths:
        return []
    with connect(tables.folder) as connection:
        rows = connection.execute(f"SELECT conversation FROM {tables.table(CONVERSATIONS)}").fetchall()
    present = {name for (id,) in rows for name in (id, gold.stem(id))}
    present |= {gold.stem(item.name) for item in inputs if _is_read(item, report)}
    return sorted(gold.load([Path(path) for path in paths]).by_sample.keys() - present)


def _is_read(item: Input, report: ReadReport) -> bool:
    file = report.files.get(item.name)
    return file is not None and file.conversations > 0


def counted_in(figure: Figure, declared: Declared, absent: int) -> Figure:
    """A figure that needs gold, with the samples that have nothing but gold among those without a value."""
    if not absent or not isinstance(declared, Metric) or GOLD_LABELS not in declared.needs:
        return figure
    total = figure.samples_total + absent
    applicable = total - figure.samples_not_applicable
    return msgspec.structs.replace(
        figure,
        coverage=figure.samples_measured / applicable,
        samples_total=total,
        samples_skipped=figure.samples_skipped + absent,
        skipped_reasons={**figure.skipped_reasons, NO_CONVERSATION: absent},
        bounds=None,
    )
