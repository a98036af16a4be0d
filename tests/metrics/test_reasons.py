"""Every reason code of the source is in one class of the guide: no opportunity, data is missing, or it failed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from convoscope.metrics.declaration import Metric
from convoscope.metrics.registry import installed
from convoscope.scores.observation import NOT_APPLICABLE

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
GUIDE = (ROOT / "docs" / "guides" / "reasons.md").read_text()
FAILED, NO_OPPORTUNITY, MISSING = "The thing measured failed", "No opportunity", "Data is missing"
CODE = re.compile(r"[a-z][a-z0-9_]+")
# The functions that give a reason, and the place of the code among their arguments.
GIVING = {"not_applicable": 1, "inapplicable": 1, "unmeasured": 1, "unanswered": 1, "_Refused": 1, "_Part": 1}
GIVING |= {"NotStated": 0, "Unchecked": 0, "LatencyReading": 2, "_waits": 3, "_shares": 3, "_rate": 2}
STATUS = {"not_applicable": NOT_APPLICABLE, "inapplicable": NOT_APPLICABLE, "unmeasured": "unmeasured"}


def guide_rows(title: str) -> list[list[str]]:
    section = GUIDE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in row] for row in rows]


CLASSES = {
    title: {code for row in guide_rows(title) for code in re.findall(r"`([a-z][a-z0-9_]+)`", row[0])}
    for title in (FAILED, NO_OPPORTUNITY, MISSING)
}


def codes_of(node: ast.expr, names: dict[str, object]) -> Iterator[str]:
    """The codes that an expression can be: texts, either side of a choice, constants of the module."""
    if isinstance(node, ast.IfExp):
        yield from codes_of(node.body, names)
        yield from codes_of(node.orelse, names)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
        yield node.value
    elif isinstance(node, ast.Name) and isinstance(names.get(node.id), str):
        yield str(names[node.id])
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr == "code":
        code = getattr(names.get(node.value.id), "code", None)
        if isinstance(code, str):
            yield code


def reasons_in_source() -> Iterator[tuple[str, str, str]]:
    """Each code with the function that gives it and the module."""
    for path in sorted((SOURCE / "convoscope").glob("metrics/**/*.py")):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        names = vars(import_module(module))
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            function = getattr(node.func, "id", getattr(node.func, "attr", ""))
            place = GIVING.get(function) if not module.endswith(".response") or function != "_waits" else None
            given = [] if place is None else node.args[place : place + (2 if function == "_waits" else 1)]
            given += [one.value for one in node.keywords if one.arg in ("empty", "code", "below_zero", "zero")]
            for expression in given:
                for code in codes_of(expression, names):
                    yield code, function, module


def test_every_code_of_the_source_is_in_one_class() -> None:
    found = {code for code, _, _ in reasons_in_source() if CODE.fullmatch(code)}
    assert len(found) > 90
    listed = set().union(*CLASSES.values())
    assert sorted(found - listed - {"metric_raised"}) == []


def test_no_code_is_in_two_classes() -> None:
    codes = [code for codes in CLASSES.values() for code in codes]
    assert sorted({code for code in codes if codes.count(code) > 1}) == []


def test_the_status_is_that_of_the_class() -> None:
    """What could not happen is not applicable; what is missing or failed is unmeasured, and lowers the coverage."""
    wrong = [
        (code, function, module)
        for code, function, module in reasons_in_source()
        if function in STATUS
        and ((code in CLASSES[NO_OPPORTUNITY]) != (STATUS[function] == NOT_APPLICABLE))
        and code != "conversation_errored"
    ]
    assert wrong == []


def test_needs_too() -> None:
    for key, declared in installed().declared.items():
        for need in declared.needs if isinstance(declared, Metric) else ():
            if need.code == "conversation_errored":
                continue  # by the specification of flows such conversations are set aside
            expected = need.code in CLASSES[NO_OPPORTUNITY]
            assert (need.status_if_missing == NOT_APPLICABLE) == expected, (key, need.code)


@pytest.mark.parametrize("row", guide_rows(FAILED), ids=lambda row: str(row[0]))
def test_a_failure_is_counted_by_a_metric(row: list[str]) -> None:
    key = row[2].strip("`")
    assert key in installed().declared
