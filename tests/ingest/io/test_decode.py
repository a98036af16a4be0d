"""JSON as it is found: read strictly where possible, else repaired with each repair named, else refused."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convoscope.ingest.io.json import BadJson, Decoded, decode

ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    # No lone surrogates: JSON can escape them, UTF-8 cannot carry them.
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=12,
)


@settings(deadline=None, derandomize=True)
@given(value=ANY_JSON)
def test_good_json_needs_no_repair(value: Any) -> None:
    assert decode(json.dumps(value).encode()) == Decoded(value)
    assert decode(json.dumps(value, ensure_ascii=False, indent=1).encode()) == Decoded(value)


@pytest.mark.parametrize(
    ("data", "value", "repairs"),
    [
        (b'"caf\xe9"', "caf\ufffd", ("invalid_utf8",)),
        (b'"\xf0\x9f\x8d"', "\ufffd", ("invalid_utf8",)),  # a character cut in two
        (b'"\\ud83d"', "\ufffd", ("lone_surrogate",)),
        (b'{"\\udc00": 1}', {"\ufffd": 1}, ("lone_surrogate",)),
        (b'["ok", {"deep": ["\\ud800x"]}]', ["ok", {"deep": ["\ufffdx"]}], ("lone_surrogate",)),
        (b'"a\x00b\tc\nd"', "a\x00b\tc\nd", ("control_character",)),
        (b"[NaN, 1.5]", [None, 1.5], ("not_a_number",)),
        (b'{"a": Infinity, "b": -Infinity}', {"a": None, "b": None}, ("not_a_number",)),
        (b"[1e400, -1e400]", [None, None], ("not_a_number",)),
    ],
)
def test_repairs(data: bytes, value: Any, repairs: tuple[str, ...]) -> None:
    assert decode(data) == Decoded(value, repairs)


def test_several_repairs_are_each_named_once() -> None:
    decoded = decode(b'["\xff", "\xff", NaN, NaN, "\\ud800", "\x01"]')
    assert decoded.value == ["\ufffd", "\ufffd", None, None, "\ufffd", "\x01"]
    assert set(decoded.repairs) == {"invalid_utf8", "not_a_number", "lone_surrogate", "control_character"}
    assert len(decoded.repairs) == 4


def test_a_repaired_value_can_be_written_as_utf_8() -> None:
    value = decode(b'{"\\ud800": ["\\udfff", "\xff", NaN]}').value
    assert json.loads(json.dumps(value, ensure_ascii=False, allow_nan=False).encode()) == value


def test_numbers_keep_their_size() -> None:
    assert decode(b"[12345678901234567890123, 5e-324, 0.1]").value == [12345678901234567890123, 5e-324, 0.1]
    assert math.copysign(1, decode(b"-0.0").value) == -1


@pytest.mark.parametrize(
    ("data", "message", "line", "column"),
    [
        (b"", "is empty", 1, 1),
        (b" \n ", "is empty", 2, 2),
        (b"{oops}", "not JSON at column 2, near 'oops}'", 1, 2),
        (b'{\n "a": 1,\n "b": oops\n}', "not JSON at column 7, near 'oops'", 3, 7),
        (b'{"a": 1} {"b": 2}', "not JSON at column 10, near '{\"b\": 2}'", 1, 10),
        (b"{'a': 1}", "not JSON at column 2, near \"'a': 1}\"", 1, 2),
        (b'{"a": 1', "JSON is cut off at the end", 1, 8),
        (b'{"a": "on and o', "JSON is cut off at the end", 1, 7),
        (b"[1, 2,", "JSON is cut off at the end", 1, 7),
    ],
)
def test_refusals_say_where(data: bytes, message: str, line: int, column: int) -> None:
    with pytest.raises(BadJson) as caught:
        decode(data)
    assert (str(caught.value), caught.value.line, caught.value.column) == (message, line, column)


@pytest.mark.parametrize("data", [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 100_000 + b"]" * 100_000])
def test_deep_nesting(data: bytes) -> None:
    with pytest.raises(BadJson, match="nested too deeply"):
        decode(data)


def test_a_number_of_too_many_digits() -> None:
    with pytest.raises(BadJson, match="cannot be read"):
        decode(b"1" * 5000)
