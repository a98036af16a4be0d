"""A fingerprint of what a metric computes, so that it cannot change without a new version.

The fingerprint covers the function, what it calls inside the same top-level package, and the
constants that these read. Comments, docstrings and layout do not count.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import msgspec

from convoscope.errors import UsageError
from convoscope.metrics.declaration import Derived, Metric
from convoscope.metrics.needs import Need
from convoscope.metrics.registry import installed

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
    parts: dict[str, str] = {}
    for name in declared.__struct_fields__:
        value = getattr(declared, name)
        if name not in ("function", "version"):
            parts[f"declared {name}"] = _constant(value)
    if isinstance(declared, Metric):
        for need in declared.needs:
            if need.present is not None:
                _add(need.present, parts)
    _add(declared.function, parts)
    text = "\n".join(f"{name} = {parts[name]}" for name in sorted(parts))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()[:16]


def _add(function: Callable[..., Any], parts: dict[str, str]) -> None:
    name = f"{function.__module__}.{function.__qualname__}"
    if name in parts:
        return
    tree = _tree(function)
    parts[name] = ast.dump(tree) if tree is not None else repr(getattr(function, "__code__", name))
    if tree is None:
        return
    package = function.__module__.split(".")[0]
    scope = getattr(function, "__globals__", {})
    for used in sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}):
        if used not in scope:
            continue
        value = scope[used]
        if isinstance(value, FunctionType):
            if value.__module__.split(".")[0] == package:
                _add(value, parts)
        elif not isinstance(value, ModuleType | type | Metric | Derived):
            parts[f"{function.__module__}.{used}"] = _constant(value)


def _tree(function: Callable[..., Any]) -> ast.AST | None:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            node.decorator_list = []
            if ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:] or [ast.Pass()]
    return tree


def _constant(value: object) -> str:
    if isinstance(value, re.Pattern):
        return f"re.compile({value.pattern!r}, {value.flags})"
    if isinstance(value, Need):
        return f"Need({value.code})"
    if isinstance(value, tuple):
        return "(" + ", ".join(_constant(one) for one in value) + ")"
    if isinstance(value, str | int | float | bool | None | frozenset | dict | list | msgspec.Struct):
        return repr(sorted(value) if isinstance(value, frozenset) else value)
    return f"<{type(value).__qualname__}>"


if __name__ == "__main__":
    sign()
