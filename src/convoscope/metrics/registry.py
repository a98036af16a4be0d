"""The metrics, derived figures, side tables and resources that there are: installed ones and the user's own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import Distribution, EntryPoint, entry_points
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import msgspec

from convoscope.errors import DeclarationError, InputError, UnknownMetric, UsageError
from convoscope.metrics.declaration import Derived, Metric
from convoscope.resources.registry import Resource
from convoscope.scores.side_tables import SideTable
from convoscope.user_code import content_hash, load, names
from convoscope.views.registry import declares_view

ENTRY_POINT_GROUP = "convoscope.metrics"

Declared = Metric | Derived


class Registry(msgspec.Struct, frozen=True):
    """Everything that is declared, by key, and the packages that could not be loaded."""

    declared: dict[str, Declared]
    problems: tuple[str, ...] = ()
    tables: dict[str, SideTable] = {}
    """What families keep in addition to the scores, by name."""
    resources: tuple[Resource, ...] = ()
    """What the user's own code declares for metrics to be handed."""

    def resolve(self, names: Iterable[str | Declared] | None = None) -> tuple[Declared, ...]:
        """The metrics that are meant, in the order of their keys; all of them for None.

        A name may be whole (`answer.f1`, `dialogue.jga@tomiinek`), bare where that is unique (`f1`,
        `f1_scorer`), a family (`answer`), or a variant (`tomiinek`). A declaration is used as it is.
        What a derived figure needs comes along.
        """
        if names is None:
            return tuple(self.declared[key] for key in sorted(self.declared))
        chosen: dict[str, Declared] = {}
        for name in names:
            chosen |= {one.key: one for one in (self._find(name) if isinstance(name, str) else [_declared(name)])}
        pending = [one for one in chosen.values() if isinstance(one, Derived)]
        while pending:
            needing = pending.pop()
            for key in (*needing.inputs, *needing.instead.values()):
                if key not in chosen:
                    if key not in self.declared:
                        raise DeclarationError(
                            f"{needing.key} needs {key}, which is not declared", hint="write its whole name"
                        )
                    declared = chosen[key] = self.declared[key]
                    if isinstance(declared, Derived):
                        pending.append(declared)
        return tuple(chosen[key] for key in sorted(chosen))

    def to_score(self, names: Iterable[str | Declared] | None) -> tuple[Declared, ...]:
        """The metrics that are meant; for None all but published rules of which we have one of our own."""
        return self.resolve(
            [one for one in self.declared.values() if one.variant not in PUBLISHED] if names is None else names
        )

    def _find(self, name: str) -> Sequence[Declared]:
        if name in self.declared:
            return (self.declared[name],)
        name = ALIASES.get(name.removesuffix("_scorer"), name)
        for bare in (name, name.removesuffix("_scorer")):
            matches = [one for one in self.declared.values() if one.key.split(".", 1)[1] == bare]
            if len(matches) > 1:
                matches = [one for one in matches if one.family not in WHOLE_NAME_FAMILIES]
            if matches:
                break
        if len(matches) > 1 and {one.key for one in matches} != SHARED_NAME:
            keys = ", ".join(sorted(one.key for one in matches))
            raise UsageError(f"{name!r} is ambiguous: {keys}", hint="write the whole name")
        family = [one for one in self.declared.values() if name and name in (one.family, one.variant)]
        if not matches and not family:
            raise UnknownMetric(name, {*self.declared, *(one.family for one in self.declared.values())})
        return matches or family


WHOLE_NAME_FAMILIES = frozenset(("summary",))
"""Families whose metrics give way where others have the same bare name: `faithfulness` is not that of a summary."""


def _declared(thing: object) -> Declared:
    if not isinstance(thing, Metric | Derived):
        called = getattr(thing, "__name__", repr(thing))
        raise DeclarationError(f"{called} is not a metric", hint="declare it with @convoscope.metric(...)")
    return thing


def collect(things: Iterable[object]) -> dict[str, Declared]:
    """The declarations among some things, by key; a module gives all that it holds."""
    declared: dict[str, Declared] = {}
    for member in _members(things):
        if isinstance(member, Metric | Derived) and declared.setdefault(member.key, member) is not member:
            raise DeclarationError(f"{member.key} is declared twice", hint="rename one, or give it a variant")
    return declared


def collect_tables(things: Iterable[object]) -> dict[str, SideTable]:
    """The side tables among some things, by name; a module gives all that it holds."""
    tables: dict[str, SideTable] = {}
    for member in _members(things):
        if isinstance(member, SideTable) and tables.setdefault(member.name, member) is not member:
            raise DeclarationError(f"the table {member.name} is declared twice", hint="rename one")
    return tables


def _members(things: Iterable[object]) -> list[object]:
    """Things, and the content of modules."""
    groups = (vars(thing).values() if isinstance(thing, ModuleType) else [thing] for thing in things)
    return [member for group in groups for member in group]


@cache
def installed() -> Registry:
    """What the installed packages declare. A package that cannot be loaded is a problem, not a crash."""
    declared: dict[str, Declared] = {}
    owner: dict[str, str] = {}
    problems: list[str] = []
    tables: dict[str, SideTable] = {}
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: (_package(point), point.name)):
        try:
            module = point.load()
            metrics, side_tables = collect([module]), collect_tables([module])
        except Exception as error:  # whatever a module of a plugin raises
            problems.append(f"metrics of {_package(point)} ({point.value}) cannot be loaded: {error}")
            continue
        for name, table in side_tables.items():
            if tables.setdefault(name, table) is not table:
                problems.append(f"the table {name} of {_package(point)} is ignored: there is one already")
        for key, declaration in metrics.items():
            if key in declared and declared[key] is not declaration:
                problems.append(f"{key} of {_package(point)} is ignored: {owner[key]} declares it already")
            else:
                declared[key] = declaration
                owner[key] = _package(point)
    for declaration in [one for one in declared.values() if isinstance(one, Derived)]:
        missing = [key for key in declaration.inputs if key not in declared]
        if missing:
            problems.append(f"{declaration.key} of {owner[declaration.key]} is ignored: it needs {', '.join(missing)}")
            del declared[declaration.key]
    return Registry(declared, tuple(problems), tables=tables)


_brought: dict[str, Declared] = {}


def bring(declared: Mapping[str, Declared]) -> None:
    """From here on, metrics of the user's own code are known by their keys in this process."""
    _brought.update(declared)


def known(key: str) -> Declared | None:
    """What goes by this key in this process."""
    return _brought.get(key) or installed().declared.get(key)


def _package(point: EntryPoint) -> str:
    return _name(point.dist) if point.dist else ""


@cache
def _name(package: Distribution) -> str:
    # Each look at a name reads the package's metadata again.
    return package.name


ALIASES = {"conversation_completeness": "intention_fulfillment"}
"""Other names that scorers have."""
SHARED_NAME = {"judged.faithfulness", "retrieval.faithfulness"}
"""Two metrics with one bare name: of items the second is meant, of chats and calls the first."""


def is_shared(name: object) -> bool:
    """Whether a name is that of several metrics, of which the data say the right one."""
    return isinstance(name, str) and name.removesuffix("_scorer") == "faithfulness"


PUBLISHED = frozenset(("eva", "standard-data"))
"""Variants that follow a published rule, not ours: there to be compared with published figures, not to judge by."""


def parent_metric(name: str, names: Collection[str]) -> str:
    """The metric that this one is a part of, among those given; "" where it is no part."""
    whole, _, _ = name.rpartition(".")
    while "." in whole:
        if whole in names:
            return whole
        whole, _, _ = whole.rpartition(".")
    return ""


def whole_metrics(keys: Iterable[str]) -> list[str]:
    """The metrics that these keys are of, each once: neither a variant (`a.b@c`) nor a part (`a.b.c`) counts.

    Wherever a number of metrics is printed, it is the length of this.
    """
    names = list(dict.fromkeys(key.partition("@")[0] for key in keys))
    known = set(names)
    return [name for name in names if not parent_metric(name, known)]


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
        brought = _declared_in(name)
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


def _declared_in(name: str) -> _Brought:
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
    resources = tuple(member for member in vars(module).values() if isinstance(member, Resource))
    brought = _Brought(collect([module]), resources, collect_tables([module]))
    if not any(brought) and not declares_view(module):
        hint = "declare one with @convoscope.metric(...), or template_scorer(...)"
        raise UsageError(f"{name} declares no metric", hint=hint)
    return brought


@cache
def _templates(path: Path, content: str) -> dict[str, Declared]:
    """The scorers of a file; the same declarations as long as it holds the same."""
    del content
    try:
        from convoscope.metrics.judged import read_scorers

        return collect(read_scorers(path))
    except DeclarationError as error:
        raise InputError(error.message, file=str(path), hint=error.hint) from None
