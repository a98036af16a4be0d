"""`convoscope metrics` and `convoscope formats`: what can be measured, and which logs can be read."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from inspect import getdoc
from typing import TYPE_CHECKING, Annotated, Any

import typer

from convoscope.cli.options import Json, MetricsFrom, ReadersFrom

if TYPE_CHECKING:
    from convoscope.metrics.declaration import TenPoints
    from convoscope.metrics.registry import Declared
    from convoscope.report.screen import Screen


def metrics(
    name: Annotated[str | None, typer.Argument(help="A metric or a family; all of them by default.")] = None,
    metrics_from: MetricsFrom = None,
    json: Json = False,
) -> None:
    """List the metrics, or explain one."""
    import msgspec

    from convoscope.metrics.declaration import Metric
    from convoscope.metrics.registry import parent_metric, registered
    from convoscope.report.screen import Screen
    from convoscope.report.table import print_table, print_words, text_table
    from convoscope.runs.summary import describe

    registry = registered(metrics_from or ())
    chosen = registry.resolve(None if name is None else [name])
    if name in registry.declared:
        # What a derived figure is computed from was not asked about.
        chosen = (registry.declared[name],)
    names = {one.name for one in registry.resolve()}
    screen = Screen()
    for problem in registry.problems:
        Screen(sys.stderr).line(f"warning: {problem}", "yellow")
    if json:
        screen.json([{**msgspec.to_builtins(describe(one)), "description": one.description} for one in chosen])
    elif name is None or len(chosen) > 1:
        wholes = chosen if name is not None else [one for one in chosen if not parent_metric(one.name, names)]
        _table(screen, wholes)
        if len(wholes) < len(chosen):
            screen.line()
            screen.line(f"and {len(chosen) - len(wholes)} parts of them: `convoscope metrics FAMILY` lists all")
    else:
        (metric,) = chosen
        screen.line(f"{metric.key}, version {metric.version}", "bold")
        screen.line()
        for paragraph in _paragraphs(metric.description) if screen.is_terminal else metric.description.splitlines():
            print_words(screen, paragraph)
        screen.line()
        fields = [("unit", metric.unit), ("better", metric.better)]
        fields += [("component", metric.component)] if metric.component else []
        if isinstance(metric, Metric):
            fields += [("observes", metric.observes)]
            fields += [("needs", f"{need.field or need.resource} ({need.unlock})") for need in metric.needs]
            also = ", ".join(f"{name} ({across.name})" for name, across in metric.also.items())
            fields += [("beside it", also)] if also else []
        else:
            fields += [("computed from", ", ".join(metric.inputs))]
        fields += [("languages", ", ".join(metric.languages))] if metric.languages else []
        fields += [("conversation", metric.reduce.within.name), ("group", metric.reduce.across.name)]
        fields += [("0 to 10", _points(metric.ten))] if metric.ten else []
        fields += [("notices", kinds)] if (kinds := _noticed(metric)) else []
        fields += [("falls silent under", _nonsense(metric.undefined_under))] if metric.undefined_under else []
        print_table(screen, text_table(("fact", ""), fields))
        parts = [other for other in registry.resolve() if parent_metric(other.name, names) == metric.name]
        if parts:
            screen.line()
            _table(screen, parts)


def _noticed(metric: Declared) -> str:
    """The nonsense that a metric notices by itself, or with a judge who can do the job."""
    from convoscope.judging.rubrics import judged_nonsense

    if metric.sensitive_to is None:
        return ""
    kinds = judged_nonsense(metric.key)
    if kinds is None:
        return _nonsense(metric.sensitive_to)
    if not kinds:
        return "no nonsense: `convoscope judge check` has none for its judge, and `audit` asks no judge"
    return f"with a judge that passes `convoscope judge check`: {_nonsense(kinds)}; `audit` asks no judge"


def _paragraphs(description: str) -> Iterator[str]:
    """A description without the line breaks of its source; lists and code keep theirs."""
    for number, block in enumerate(description.split("\n\n")):
        if number:
            yield ""
        lines = block.splitlines()
        is_text = not any(line.startswith((" ", "-", "|", ">>>", "*")) for line in lines)
        yield from [" ".join(lines)] if is_text else lines


def _nonsense(kinds: Sequence[str]) -> str:
    """Kinds of nonsense in words."""
    return ", ".join(kind.replace("_", " ") for kind in kinds) or "no nonsense"


def _points(ten: TenPoints) -> str:
    """What is worth 0, what is worth 10, and the score that passes."""
    of = "" if ten.of == "value" else f" (of the {ten.of} behind it)"
    best = f"{ten.ten:g}" if ten.falls is None else f"{ten.ten:g} to {ten.falls[0]:g}"
    worst = f"{ten.zero:g}" if ten.falls is None else f"{ten.zero:g} and {ten.falls[1]:g}"
    are = "is" if ten.falls is None else "are"
    return f"{worst} {are} worth 0, {best} {are} worth 10{of}; {ten.passes_at:g} passes"


def _table(screen: Screen, metrics: Sequence[Declared]) -> None:
    from convoscope.report.run_tables import component_rank
    from convoscope.report.table import TableColumn, print_table, text_table

    columns = [TableColumn("metric"), TableColumn("unit"), TableColumn("better"), TableColumn("question")]
    by_component = sorted(metrics, key=lambda metric: (metric.family, component_rank(metric.component)))
    rows = [[metric.key, metric.unit, metric.better, metric.question] for metric in by_component]
    if all(metric.component for metric in metrics):
        columns.insert(1, TableColumn("component"))
        for row, metric in zip(rows, by_component, strict=True):
            row.insert(1, metric.component)
    print_table(screen, text_table(columns, rows))


def formats(
    name: Annotated[str | None, typer.Argument(help="A format; all of them by default.")] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print its JSON Schema (convoscope, standard-data).")
    ] = False,
    readers_from: ReadersFrom = None,
    json: Json = False,
) -> None:
    """List the formats that can be read."""
    from convoscope.errors import UsageError
    from convoscope.ingest.reader import registered
    from convoscope.report.screen import Screen
    from convoscope.report.table import print_table, text_table

    screen = Screen()
    readers = registered(readers_from or ())
    for problem in readers.problems:
        Screen(sys.stderr).line(f"warning: {problem}", "yellow")
    if schema:
        screen.json(_schema(name or "convoscope"))
        return
    if name is not None and name not in readers.by_name:
        raise UsageError(f"unknown format {name!r}", hint=f"the formats are {', '.join(sorted(readers.by_name))}")
    chosen = [readers.by_name[one].loaded for one in sorted(readers.by_name) if name in (None, one)]
    rows = [(one.name, one.title, getdoc(type(one)) or "") for one in chosen]
    if json:
        screen.json([{"format": one[0], "title": one[1], "description": one[2]} for one in rows])
    else:
        print_table(screen, text_table(("format", "title", "reads"), rows))


def _schema(name: str) -> dict[str, Any]:
    if name == "convoscope":
        from convoscope.conversation import json_schema

        return json_schema()
    if name == "standard-data":
        from convoscope.views.standard_data import StandardData

        return StandardData.model_json_schema()
    from convoscope.errors import UsageError

    raise UsageError(f"{name} has no JSON Schema", hint="only convoscope and standard-data have one")
