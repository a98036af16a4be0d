"""Names that a stranger understands: no pronoun stands for a noun, and no two public classes share a name."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "convoscope"
PRONOUNS = frozenset({"one", "found", "told", "said"})
"""Words that say nothing of what they stand for. Inside a comprehension, the noun is next to them."""
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
MODULES = sorted(SOURCE.rglob("*.py"))


def pronouns(tree: ast.AST) -> Iterator[str]:
    """Where a pronoun is bound outside of a comprehension or a lambda, each as `line: name`."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, COMPREHENSIONS):
            # Only what the comprehension binds itself is allowed: what a lambda or a call in it binds is too.
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if node.name.strip("_").lower() in PRONOUNS:
                yield f"{node.lineno}: {node.name}"
        elif isinstance(node, ast.arg):
            if node.arg in PRONOUNS:
                yield f"{node.lineno}: {node.arg}"
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id.strip("_") in PRONOUNS:
            yield f"{node.lineno}: {node.id}"
        if isinstance(node, ast.Lambda):
            pending.append(node.body)
            continue
        pending.extend(ast.iter_child_nodes(node))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.relative_to(SOURCE).as_posix())
def test_no_pronoun_stands_for_a_noun(module: Path) -> None:
    assert sorted(pronouns(ast.parse(module.read_text()))) == []


def test_no_two_public_classes_share_a_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for module in MODULES:
        for node in ast.parse(module.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(module.relative_to(SOURCE).as_posix())
    assert len(places) > 100, "the source is not where it is looked for"
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
