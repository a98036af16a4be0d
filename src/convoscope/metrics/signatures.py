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
from types import FunctionType, ModuleType
from typing import Any

import msgspec

from convoscope.metrics.declaration import Derived, Metric
from convoscope.metrics.needs import Need


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
