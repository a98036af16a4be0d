"""A fingerprint of what a metric computes, so that it cannot change without a new version.

The fingerprint covers the function, what it calls inside the same top-level package, and the
constants that these read. Comments, docstrings, annotations and layout do not count.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import inspect
import os
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import msgspec

from convoscope.errors import UsageError
from convoscope.metrics.declaration import AXES, Derived, Metric
from convoscope.metrics.registry import installed
from convoscope.scores.side_tables import SideTable
from convoscope.text.lexicon import lexicon_digest, lexicon_languages
from convoscope.views.registry import CONVERSATION

_FRAME = (
    "convoscope.conversation",
    "convoscope.metrics.declaration",
    "convoscope.metrics.item_fields",
    "convoscope.scores.reducers",
    "convoscope.scores.observation",
    "convoscope.views.registry",
)
FILE = Path(__file__).with_name("signatures.json")
_KINDS = (".py", ".toml")
_COMPUTES = ("conversation", "metrics", "scores", "text", "views")


class Signed(msgspec.Struct, frozen=True):
    """A metric's version, and what it computed when that version was given."""

    version: int
    signature: str


class Signatures(msgspec.Struct, frozen=True):
    """The signature file: what our own metrics computed, and of which sources that was found out."""

    sources: str = ""
    metrics: dict[str, Signed] = {}


@functools.cache
def file() -> Signatures:
    """What was committed."""
    return msgspec.json.decode(FILE.read_bytes(), type=Signatures) if FILE.exists() else Signatures()


@functools.cache
def sources() -> str:
    """A hash of everything that our own metrics may compute with."""
    whole = hash_files(Path(__file__).parents[1], _KINDS, _COMPUTES.__contains__)
    return whole[: len("sha256:") + 16]


def hash_files(root: Path, kinds: tuple[str, ...], counts: Callable[[str], bool] = bool) -> str:
    """`sha256:` of the names and contents of all files of these kinds below a root.

    `counts` is asked with the name of what the file is in, directly below the root.
    """
    base = os.path.join(root, "")
    names = [
        name
        for folder, _, files in os.walk(base)
        for file in files
        if file.endswith(kinds)
        and counts((name := os.path.join(folder, file)[len(base) :].replace(os.sep, "/")).partition("/")[0])
    ]
    whole = hashlib.sha256()
    for name in sorted(names, key=lambda name: name.split("/")):
        # They are a thousand small files: without paths as objects, and without buffers, it takes half of the time.
        with open(base + name, "rb", buffering=0) as file:
            whole.update(name.encode() + b"\0" + file.read() + b"\0")
    return "sha256:" + whole.hexdigest()


def current() -> dict[str, Signed]:
    """What our own metrics compute now."""
    built_in = [one for one in installed().declared.values() if one.function.__module__.startswith("convoscope.")]
    return {one.key: Signed(one.version, computed(one)) for one in sorted(built_in, key=lambda one: one.key)}


def unbumped(before: dict[str, Signed], after: dict[str, Signed]) -> list[str]:
    """Metrics that compute something else under the version that they had."""
    return [
        key
        for key, now in after.items()
        if key in before and now.signature != before[key].signature and now.version <= before[key].version
    ]


def sign(*, same_numbers: bool = False) -> None:
    """Write the signature file anew.

    A metric that changed needs a new version, unless the change is a refactoring that keeps every number.
    """
    after = current()
    changed = [] if same_numbers else unbumped(file().metrics, after)
    if changed:
        raise UsageError(f"{', '.join(changed)} changed without a new version", hint="raise version= and sign again")
    signatures = Signatures(sources(), after)
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(signatures), indent=2) + b"\n")


def signature(declared: Metric | Derived) -> str:
    """`sha256:` and 16 hexadecimal digits: of a metric of our own what was signed, else found out from its source.

    Where our sources are not those that were signed, each of our metrics is signed with all of them together.
    """
    is_built_in = declared.function.__module__.startswith("convoscope.")
    if not is_built_in or installed().declared.get(declared.key) is not declared:
        return computed(declared)
    committed = file().metrics.get(declared.key)
    return committed.signature if committed is not None and file().sources == sources() else sources()


def computed(declared: Metric | Derived) -> str:
    """The signature, found out from the source."""
    home = getattr(declared.function, "__module__", None) or type(declared.function).__module__
    source = _Source(home.split(".", maxsplit=1)[0])
    for name in declared.__struct_fields__:
        if name not in ("function", "rubric", "version", "needs", "sensitive_to", "undefined_under", "languages"):
            source.constant(f"declared {name}", getattr(declared, name))
    if isinstance(declared, Metric):
        for need in declared.needs:
            # Of facts that are found together, the name says which is asked for.
            source.constant(
                f"need {need.code}", (need.resource, need.status_if_missing, getattr(need.present, "name", ""))
            )
            source.function(need.present)
        if declared.view.type != CONVERSATION:
            source.constant("view", declared.view.type)
            source.function(declared.view.make)
        if declared.observes in AXES:
            source.constant("axis", AXES[declared.observes])
    if set(lexicon_languages()) <= set(declared.languages):
        source.constant("lexicons", lexicon_digest())
    source.function(declared.function)
    return source.digest()


def table_signature(table: SideTable) -> str:
    """The same of how a side table is made, found out from its source."""
    source = _Source(table.rows.__module__.split(".", maxsplit=1)[0])
    source.constant("table", (table.name, table.key, [(one.name, one.sql) for one in table.columns]))
    source.constant("shown", (table.combine, table.views, table.counted, table.mentions))
    source.function(table.rows)
    source.function(table.recount)
    return source.digest()


class _Source:
    """Everything that a function computes with, inside one top-level package."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.parts: dict[str, str] = {}

    def digest(self) -> str:
        text = "\n".join(f"{name} = {self.parts[name]}" for name in sorted(self.parts))
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()[:16]

    def function(self, thing: Any) -> str:
        """A function, class or callable object of the package, and what it uses in turn; its name."""
        if not isinstance(thing, FunctionType | type):
            called: Any
            state: dict[str, Any]
            if isinstance(thing, functools.partial):
                called, state = thing.func, {"args": thing.args, "keywords": thing.keywords}
            elif isinstance(thing, MethodType):
                called, state = thing.__func__, getattr(thing.__self__, "__dict__", {})
            else:
                called = getattr(thing, "__wrapped__", None) or getattr(type(thing), "__call__", None)  # noqa: B004
                state = dict(getattr(thing, "__dict__", {}), __wrapped__=None)
                if not isinstance(called, FunctionType):
                    return type(thing).__qualname__
            name = self.function(called)
            self.constant(f"{type(thing).__qualname__} of {name}", state)
            return name
        name = f"{thing.__module__}.{thing.__qualname__}"
        if not self._counts(thing.__module__):
            return "" if str(thing.__module__).startswith(_FRAME) else name
        read = _read(thing)
        # Two lambdas of a module share a name: their code distinguishes them.
        name = f"{name} {hashlib.sha256(read.code.encode()).hexdigest()[:8]}"
        if name not in self.parts:
            self.parts[name] = read.code
            self._uses(thing, name, read.names)
        return name

    def _uses(self, thing: FunctionType | type, name: str, names: Sequence[ast.AST]) -> None:
        if isinstance(thing, type):
            scope = vars(sys.modules.get(thing.__module__, ast))
        else:
            scope = thing.__globals__
            if hasattr(thing, "__wrapped__"):
                self.function(thing.__wrapped__)
            for inner, cell in zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True):
                with contextlib.suppress(ValueError):  # a cell that was never filled
                    self.constant(f"{name} {inner}", cell.cell_contents)
            self.constant(f"{name} defaults", [*(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()])
        for node in names:
            named = _named(node, scope)
            if named is not None and self._counts(named.home):
                # A module that asks for its own path reads the table next to it.
                value = Path(str(named.value)).with_suffix(".toml") if named.name == "__file__" else named.value
                self.constant(f"{named.home}.{named.name}", value)

    def _counts(self, module: str | None) -> bool:
        """Modules of the package count; the code around every metric has versions of its own."""
        return str(module).split(".", maxsplit=1)[0] == self.package and not str(module).startswith(_FRAME)

    def constant(self, name: str, value: object) -> None:
        """A value that a function reads; a function among them counts with its source."""
        if name in self.parts:
            return
        self.parts[name] = ""
        if isinstance(value, Metric | Derived):
            self.parts[name] = self.function(value.function)
        elif isinstance(value, dict) and self._counts(type(value).__module__):
            # A table of our own that fills itself as texts are seen: the rule counts and not what it has met.
            self.parts[name] = self.function(type(value))
        elif isinstance(value, msgspec.Struct | dict | list | tuple | set | frozenset):
            members = _members(value)
            self.parts[name] = f"{type(value).__qualname__} of {len(members)}"
            for key, member in members.items():
                self.constant(f"{name}[{key}]", member)
        elif isinstance(value, Path):
            # By name and content: where it is installed does not matter.
            content = value.read_bytes() if value.is_file() else b""
            self.parts[name] = f"{value.name} {hashlib.sha256(content).hexdigest()[:16]}"
        elif isinstance(value, re.Pattern):
            self.parts[name] = f"re.compile({value.pattern!r}, {value.flags})"
        elif callable(value):
            self.parts[name] = self.function(value)
        elif not isinstance(value, ModuleType):
            self.parts[name] = _shown(value)


def _members(value: Any) -> dict[str, Any]:
    if isinstance(value, msgspec.Struct):
        return {field: getattr(value, field) for field in value.__struct_fields__}
    if isinstance(value, dict):
        return {_shown(key): value[key] for key in sorted(value, key=_shown)}
    if isinstance(value, set | frozenset):
        return {_shown(member): member for member in sorted(value, key=_shown)}
    return {str(number): member for number, member in enumerate(value)}


class _Named(NamedTuple):
    """What a name in a function refers to, and the module where it lives."""

    home: str
    name: str
    value: object


def _named(node: ast.AST, scope: Mapping[str, Any]) -> _Named | None:
    """What `x`, or `module.x`, refers to in a scope."""
    if isinstance(node, ast.Name) and node.id in scope:
        return _Named(str(scope.get("__name__", "")), node.id, scope[node.id])
    if isinstance(node, ast.Attribute):
        base = _named(node.value, scope)
        if base is not None and isinstance(base.value, ModuleType) and hasattr(base.value, node.attr):
            return _Named(base.value.__name__, node.attr, getattr(base.value, node.attr))
    return None


def _shown(value: object) -> str:
    """A value as a text that is the same in every process."""
    if callable(value) and hasattr(value, "__qualname__"):
        return str(value.__qualname__)
    try:
        shown = repr(value)
    except Exception:  # its own __repr__ is broken
        shown = " at 0x"
    return type(value).__qualname__ if " at 0x" in shown else shown


class _Read(NamedTuple):
    """What a function consists of, and the names in it."""

    code: str
    names: Sequence[ast.AST]


@functools.cache
def _read(function: Any) -> _Read:
    """The source of a function without decorators, docstrings and annotations; metrics of a family share many.

    Of a lambda, and of a function without source, its compiled code.
    """
    try:
        tree = ast.parse("" if "<lambda>" in function.__qualname__ else textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        tree = ast.Module([], [])
    if not tree.body:
        code = getattr(function, "__code__", None)
        return _Read(_compiled(code), [ast.Name(name) for name in code.co_names] if code else [])
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            node.decorator_list = []
            if not isinstance(node, ast.ClassDef):
                node.returns = None
            if ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:] or [ast.Pass()]
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
    return _Read(ast.dump(tree), [node for node in ast.walk(tree) if isinstance(node, ast.Name | ast.Attribute)])


def _compiled(code: Any) -> str:
    """Compiled code without the addresses that change from run to run."""
    constants = []
    for constant in code.co_consts if code else ():
        if isinstance(constant, frozenset):
            constants.append(repr(sorted(map(repr, constant))))
        else:
            constants.append(_compiled(constant) if hasattr(constant, "co_code") else repr(constant))
    return f"{code.co_code.hex()} {code.co_names} {constants}" if code else ""


if __name__ == "__main__":
    sign(same_numbers="--same-numbers" in sys.argv[1:])
