"""A fingerprint of what a metric computes, so that it cannot change without a new version.

The fingerprint covers the function, what it calls inside the same top-level package, and the
constants that these read. Comments, docstrings, annotations and layout do not count.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
import textwrap
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import msgspec

from convoscope.errors import UsageError
from convoscope.metrics.declaration import Derived, Metric
from convoscope.metrics.registry import installed

_FRAME = (
    "convoscope.conversation",
    "convoscope.metrics.declaration",
    "convoscope.metrics.reduction",
    "convoscope.metrics.score",
)
FILE = Path(__file__).with_name("signatures.json")


class Signed(msgspec.Struct, frozen=True):
    """A metric's version, and what it computed when that version was given."""

    version: int
    signature: str


def signed() -> dict[str, Signed]:
    """The committed signatures of our own metrics."""
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, Signed]) if FILE.exists() else {}


def current() -> dict[str, Signed]:
    """What our own metrics compute now."""
    ours = (one for one in installed().declared.values() if one.function.__module__.startswith("convoscope."))
    return {one.key: Signed(one.version, signature(one)) for one in sorted(ours, key=lambda one: one.key)}


def unbumped(before: dict[str, Signed], after: dict[str, Signed]) -> list[str]:
    """Metrics that compute something else under the version that they had."""
    return [
        key
        for key, now in after.items()
        if key in before and now.signature != before[key].signature and now.version <= before[key].version
    ]


def sign() -> None:
    """Write the signature file anew; refuses where a metric changed and its version did not."""
    after = current()
    changed = unbumped(signed(), after)
    if changed:
        raise UsageError(f"{', '.join(changed)} changed without a new version", hint="raise version= and sign again")
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(after), indent=2) + b"\n")


def signature(declared: Metric | Derived) -> str:
    """`sha256:` and 16 hexadecimal digits."""
    source = _Source(declared.function.__module__.split(".", maxsplit=1)[0])
    for name in declared.__struct_fields__:
        if name not in ("function", "version", "needs"):
            source.constant(f"declared {name}", getattr(declared, name))
    if isinstance(declared, Metric):
        for need in declared.needs:
            source.constant(f"need {need.code}", (need.resource, need.otherwise))
            source.function(need.present)
    source.function(declared.function)
    text = "\n".join(f"{name} = {source.parts[name]}" for name in sorted(source.parts))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()[:16]


class _Source:
    """Everything that a function computes with, inside one top-level package."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.parts: dict[str, str] = {}

    def function(self, function: Any) -> None:
        """A function or class of the package, and what it uses in turn."""
        function = inspect.unwrap(function) if callable(function) else function
        if not isinstance(function, FunctionType | type):
            function = vars(type(function)).get("__call__")
        if function is None or not self._counts(function.__module__):
            return
        tree = _tree(function)
        shown = ast.dump(tree) if tree is not None else _compiled(getattr(function, "__code__", None))
        # Two lambdas of a module share a name: what they say tells them apart.
        name = f"{function.__module__}.{function.__qualname__} {hashlib.sha256(shown.encode()).hexdigest()[:8]}"
        if name in self.parts:
            return
        self.parts[name] = shown
        scope = vars(inspect.getmodule(function) or object())
        if isinstance(function, FunctionType):
            scope = function.__globals__
            for inner, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
                self.constant(f"{name} {inner}", cell.cell_contents)
            for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
                self.constant(f"{name} default {len(self.parts)}", value)
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Name) and node.id in scope:
                self.constant(f"{function.__module__}.{node.id}", scope[node.id])
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                module = scope.get(node.value.id)
                if isinstance(module, ModuleType) and self._counts(module.__name__):
                    self.constant(f"{module.__name__}.{node.attr}", getattr(module, node.attr, None))

    def _counts(self, module: str) -> bool:
        """Modules of the package count; the frame that every metric stands in has versions of its own."""
        return module.split(".", maxsplit=1)[0] == self.package and not module.startswith(_FRAME)

    def constant(self, name: str, value: object) -> None:
        """A value that a function reads; a function among them counts with its source."""
        if isinstance(value, Metric | Derived):
            self.function(value.function)
        elif isinstance(value, ModuleType):
            return
        elif callable(value) and not isinstance(value, msgspec.Struct):
            self.function(value)
        elif isinstance(value, dict):
            for key in sorted(value, key=repr):
                self.constant(f"{name}[{key!r}]", value[key])
        elif isinstance(value, list | tuple):
            for number, one in enumerate(value):
                self.constant(f"{name}[{number}]", one)
        elif isinstance(value, set | frozenset):
            self.parts[name] = repr(sorted(map(repr, value)))
        elif isinstance(value, re.Pattern):
            self.parts[name] = f"re.compile({value.pattern!r}, {value.flags})"
        elif isinstance(value, str | bytes | int | float | msgspec.Struct) or value is None:
            self.parts[name] = repr(value)
        else:
            self.parts[name] = f"<{type(value).__qualname__}>"


def _tree(function: Any) -> ast.AST | None:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            node.decorator_list = []
            if not isinstance(node, ast.ClassDef):
                node.returns = None
            if ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:] or [ast.Pass()]
        elif isinstance(node, ast.arg):
            node.annotation = None
    return tree


def _compiled(code: Any) -> str:
    """What a function without source consists of, without the addresses that change from run to run."""
    if code is None:
        return ""
    constants = [_compiled(one) if hasattr(one, "co_code") else repr(one) for one in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {constants}"


if __name__ == "__main__":
    sign()
