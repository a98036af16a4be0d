"""Conversations from before a date leave a run; its figures follow. Logs are never touched."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import msgspec

from convoscope.errors import RunError
from convoscope.metrics.registry import Declared, registered
from convoscope.metrics.signatures import signature
from convoscope.resources.registry import JUDGE
from convoscope.runs.database import CONVERSATIONS, connect, parquet, part_file
from convoscope.runs.finish import Finished, finish_tables
from convoscope.runs.growth import link, link_parts, parts_of, write_parts
from convoscope.runs.lost import kept_count
from convoscope.runs.make import audited
from convoscope.runs.partial import Partial
from convoscope.runs.receipt import Receipt, canonical_hash, now, versions
from convoscope.runs.rewrite import write_again
from convoscope.runs.run import FLOWS, LOOKS, OBJECTS, READ_REPORT, RECEIPT, SUMMARY, Run, write_json, write_summary
from convoscope.runs.sql import write_combined
from convoscope.runs.stored import StoredRun
from convoscope.runs.summarise import summarise
from convoscope.runs.summary import LabelCounts
from convoscope.scoring.partition import PartDone
from convoscope.storage import is_remote

DAY = "json_extract_string(facts, '$.day')"
"""The day (UTC) that a conversation began on, by its own times."""


class Pruned(NamedTuple):
    """What came of it."""

    run: Run
    dropped: int
    undated: int
    """Conversations whose day nothing says: they stay."""


def prune(run: Run, before: str, metrics_from: Sequence[str] = ()) -> Pruned:
    """Drop the conversations that began before a day, such as `2026-11-01`.

    The run is then what `score` makes with `since`, from the same logs.
    """
    if is_remote(run.folder):
        with StoredRun(run.folder, {"before": before}) as stored, stored.named():
            stored.finish_earlier()
            stored.bring()
            pruned = prune(Run.open(stored.local), before, metrics_from)
            return pruned._replace(run=stored.publish(pruned.run) if pruned.dropped else run)
    metrics = _metrics(run, metrics_from)
    parts = parts_of(run)
    if sum(part.conversations for part in parts) != sum(run.receipt.parts):
        raise RunError(f"{run.folder} does not say what its parts are", hint="score its logs again, with --since")
    rows = {part.part: _rows(run, part, before) for part in parts}
    undated = sum(one.undated for one in rows.values())
    dropped = sum(part.conversations - len(rows[part.part].kept) for part in parts)
    if not dropped:
        return Pruned(run, 0, undated)
    if dropped == sum(run.receipt.parts):
        raise RunError(f"all conversations of {run.folder} are from before {before}", hint="nothing was dropped")
    partial = Partial(run.folder, {"run": run.receipt.run_id, "before": before}, run.receipt)
    try:
        if partial.is_late:
            raise RunError(f"{run.folder} has changed meanwhile", hint="run the same command again")
        if not partial.finished:
            done = _without(run, partial.folder, parts, {number: one.kept for number, one in rows.items()})
            _finish(run, partial, metrics, done, before, dropped)
        return Pruned(Run.open(partial.publish()), dropped, undated)
    finally:
        partial.close()


class _Rows(NamedTuple):
    kept: Sequence[int]
    undated: int


def _rows(run: Run, part: PartDone, before: str) -> _Rows:
    """The rows of a part that stay."""
    if not part.conversations:
        return _Rows((), 0)
    with connect(run.folder) as connection:
        source = parquet(part_file(run.folder, CONVERSATIONS, part.part))
        days = connection.execute(f"SELECT row, {DAY} FROM {source} ORDER BY row").fetchall()
    return _Rows([row for row, day in days if day is None or day >= before], sum(day is None for _, day in days))


def _without(run: Run, folder: Path, parts: Sequence[PartDone], kept: dict[int, Sequence[int]]) -> list[PartDone]:
    """The parts in their order, those that lose rows written again."""
    number, done = len(run.receipt.parts), list[PartDone]()
    link_parts(run, folder, parts)
    for part in parts:
        if len(kept[part.part]) == part.conversations:
            done.append(part)
        else:
            left = write_again(folder, [part], number, kept)
            left.report.ignore("conversation_before_since", part.conversations - left.conversations)
            done.append(left)
            number += 1
    return done


def _metrics(run: Run, metrics_from: Sequence[str]) -> tuple[Declared, ...]:
    """The metrics of a run, which must be those that it was scored with."""
    receipt = run.receipt
    again = "score its logs again, with --since, into another folder"
    if not receipt.valid:
        raise RunError(f"{run.folder} is marked invalid: it is not changed", hint=again)
    if JUDGE in receipt.resources:
        raise RunError(f"{run.folder} has figures of judges, which no one part knows", hint=again)
    known = registered(metrics_from).declared
    if missing := [name for name in receipt.metrics if name not in known]:
        raise RunError(
            f"{run.folder} has metrics that are not installed: {', '.join(missing[:5])}", hint="--metrics-from"
        )
    metrics = tuple(known[name] for name in receipt.metrics)
    same = {one.key: signature(one) for one in metrics} == receipt.metrics
    if not same or receipt.depends_on["version"] != versions()["convoscope"]:
        raise RunError(f"{run.folder} was made by another version", hint=again)
    return metrics


def _label_counts(run: Run, tables: Finished) -> LabelCounts | None:
    if run.summary.label is None:
        return None
    query = "SELECT count(*), count(*) FILTER (outcome = 'done'), count(*) FILTER (outcome = 'lost')"
    with connect(tables.folder) as connection:
        rows = connection.execute(f"{query} FROM {tables.table(CONVERSATIONS)} WHERE label IS NOT NULL").fetchall()
    conversations, passed, failed = rows[0]
    return LabelCounts(label=run.summary.label.label, conversations=conversations, passed=passed, failed=failed)


def _finish(
    run: Run, partial: Partial, metrics: Sequence[Declared], done: Sequence[PartDone], before: str, dropped: int
) -> None:
    began, started = perf_counter(), now()
    receipt, folder = run.receipt, partial.folder
    config: dict[str, Any] = {**receipt.config, "since": before}
    config_hash, resources = canonical_hash(config), frozenset(receipt.resources)
    tables = finish_tables(folder, done, metrics, None, resources)
    partial.scratch.mkdir(exist_ok=True)
    summary = summarise(
        tables,
        metrics,
        profiles=tables.profiles,
        config_hash=config_hash,
        input_hash=receipt.input_hash,
        by=config["by"],
        scratch=partial.scratch,
        resources=resources,
        label=_label_counts(run, tables),
    )
    depends_on = {**receipt.depends_on, "settings": config_hash}
    new: Receipt = msgspec.structs.replace(
        receipt,
        run_id=f"run-{started.replace('-', '').replace(':', '')}-{canonical_hash([depends_on, receipt.run_id])[7:13]}",
        started_at=started,
        finished_at=now(),
        seconds=round(perf_counter() - began, 3),
        config=config,
        config_hash=config_hash,
        depends_on=depends_on,
        parts=list(tables.parts),
        kept=kept_count(done),
        order=tables.order,
        generation=receipt.generation + 1,
        timings={"finishing": round(perf_counter() - began, 3)},
    )
    report = run.read_report
    report.conversations = sum(tables.parts)
    report.ignore("conversation_before_since", dropped)
    report.warnings = sorted({*report.warnings, f"{dropped:,} conversations from before {before} were dropped"})
    write_summary(folder / SUMMARY, summary)
    write_json(folder / FLOWS, sorted(run.flows.values(), key=lambda flow: flow.name))
    write_json(folder / READ_REPORT, report)
    write_parts(folder, done)
    for name in (LOOKS, OBJECTS):
        if (kept := run.tables.own(name)).exists():
            link(kept, folder / name)
    write_json(folder / RECEIPT, new)
    made, side_tables = Run(folder, new), tuple(registered(()).tables.values())
    write_combined(made, side_tables)
    if made.tables.side_tables():
        write_json(folder / RECEIPT, audited(made, side_tables))
    partial.finish()
