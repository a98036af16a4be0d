"""How tests look at what tidy makes of one value."""

from __future__ import annotations

from typing import Any

from convoscope.views.standard_data import Tidied, tidy


def codes(tidied: Tidied) -> list[tuple[str, str]]:
    return [(one.path, one.code) for one in tidied.warnings]


def only(field: str, value: Any) -> Any:
    """What a single value becomes; it must become it without a warning."""
    tidied = tidy({field: value})
    assert tidied.warnings == []
    assert tidied.unknown == {}
    return tidied.fields.get(field)


def refused(field: str, value: Any) -> str:
    """The code of the warning that a value gets; it must be null, and the warning must hold it."""
    tidied = tidy({field: value})
    assert tidied.fields == {}
    (warning,) = tidied.warnings
    assert warning.path == field
    assert warning.value is value
    return warning.code
