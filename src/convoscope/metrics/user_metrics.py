"""Metrics and resources that a user brings along by naming a file or a module, beside the installed metrics."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from convoscope.errors import DeclarationError, InputError, UsageError
from convoscope.metrics.judged.custom import read_scorers
from convoscope.metrics.registry import Declared, Registry, bring, collect, collect_tables, installed
from convoscope.resources.registry import Resource
from convoscope.scores.side_tables import SideTable
from convoscope.user_code import content_hash, load, names
from convoscope.views.registry import declares_view


def registered(metrics_from: Iterable[str | PathLike[str]] = ()) -> Registry:
    """What is installed, and what these files and modules declare: `my_scorers.py`, `my.scorers`, `scorers.toml`.

    To name Python code here is to run it. Two metrics of one name are an error: a run must not
    depend on which of them came first.
    """
    base = installed()
    declared, owner = dict(base.declared), dict.fromkeys(base.declared, "an installed package")
    tables = dict(base.tables)
    resources: list[Resource] = []
    for name in names(metrics_from):
        brought = _brought(name)
        for table in brought.tables.values():
            if tables.setdefault(table.name, table) is not table:
                raise UsageError(f"{name} declares the table {table.name}, which is there already", hint="rename it")
        for key, metric in brought.metrics.items():
            if key in declared and declared[key] is not metric:
                raise UsageError(
                    f"{name} declares {key}, which {owner[key]} declares already",
                    hint="rename one, or give it a variant",
                )
            declared[key] = metric
            owner.setdefault(key, name)
        resources += brought.resources
        bring(brought.metrics)
    return Registry(declared, base.problems, tables, tuple(dict.fromkeys(resources)))


class _Brought(NamedTuple):
    """What a file or a module declares."""

    metrics: dict[str, Declared]
    resources: tuple[Resource, ...] = ()
    tables: dict[str, SideTable] = {}


def _brought(name: str) -> _Brought:
    path = Path(name)
    if path.suffix == ".toml" and path.is_file():
        try:
            brought = _Brought(_templates(path.resolve(), content_hash(path)))
        except InputError as error:
            # The user knows the file by the name they gave.
            error.file = name if error.file == str(path.resolve()) else error.file
            raise
        if not brought.metrics:
            raise UsageError(f"{name} declares no metric", hint="write a [[scorer]]")
        return brought
    module = load(name)
    brought = _Brought(collect([module]), _resources(module), collect_tables([module]))
    if not any(brought) and not declares_view(module):
        hint = "declare one with @convoscope.metric(...), or template_scorer(...)"
        raise UsageError(f"{name} declares no metric", hint=hint)
    return brought


def _resources(module: ModuleType) -> tuple[Resource, ...]:
    return tuple(one for one in vars(module).values() if isinstance(one, Resource))


@cache
def _templates(path: Path, content: str) -> dict[str, Declared]:
    """The scorers of a file; the same declarations as long as it holds the same."""
    del content
    try:
        return collect(read_scorers(path))
    except DeclarationError as error:
        raise InputError(error.message, file=str(path), hint=error.hint) from None


__all__ = ["registered"]
