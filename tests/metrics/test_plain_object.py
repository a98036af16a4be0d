"""Schemas that are plain enough to see at once that a call fits: the checker must find no fault in such a call."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.metrics.tools.call_checks import unlisted
from convoscope.text.json_schema import CALL, FORGIVING, plain_object, schema_faults

_TYPES = ("string", "integer", "number", "boolean", "array", "object", "null", "str", ["string"], None, 5)
_SCALARS = st.sampled_from(("x", 1, 1.0, 1.5, True, None, (), [], [1], {}, {"a": 1}))
_properties = st.dictionaries(
    st.sampled_from(("a", "b", "c")),
    st.fixed_dictionaries(
        {"type": st.sampled_from(_TYPES)}, optional={"description": st.just("d"), "minimum": st.just(9)}
    ),
)
_schemas = st.fixed_dictionaries(
    {"properties": _properties},
    optional={
        "type": st.sampled_from(("object", "array", "dict")),
        "required": st.lists(st.sampled_from(("a", "b", "d")), max_size=2) | st.just(True),
        "additionalProperties": st.sampled_from((True, False, {"type": "string"})),
        "minProperties": st.just(2),
    },
)
_arguments = st.dictionaries(st.sampled_from(("a", "b", "d")), _SCALARS) | _SCALARS


@given(_schemas, _arguments)
def test_what_fits_at_once_has_no_fault_and_nothing_unlisted(schema: dict[str, Any], arguments: Any) -> None:
    plain = plain_object(schema)
    if plain is not None and plain.fits(arguments):
        assert not list(schema_faults(arguments, schema, CALL))
        assert not list(schema_faults(arguments, schema, FORGIVING))
        assert not unlisted(arguments, schema)


PLAIN: dict[str, Any] = {
    "type": "object",
    "properties": {"code": {"type": "string", "description": "The code."}, "n": {"type": "integer"}},
    "required": ["code"],
}


@pytest.mark.parametrize(
    ("arguments", "fits"),
    [
        ({"code": "7"}, True),
        ({"code": "7", "n": 2}, True),
        ({"code": "7", "n": None}, True),  # null is an argument left out
        ({"code": None}, False),
        ({"code": "7", "n": True}, False),  # a truth value is no number
        ({"code": "7", "n": 2.0}, False),  # the checker lets it pass; it cannot be told at once
        ({"n": 2}, False),
        ({"code": "7", "x": 1}, False),
        (["code"], False),
    ],
)
def test_a_plain_schema_tells_most_calls_at_once(arguments: Any, fits: bool) -> None:
    plain = plain_object(PLAIN)
    assert plain is not None
    assert plain.fits(arguments) is fits


@pytest.mark.parametrize(
    "more",
    [
        {"anyOf": [{"required": ["n"]}]},
        {"properties": {"code": {"type": "string", "pattern": "^a"}}},
        {"properties": {"code": {"$ref": "#/x"}}},
        {"properties": {"code": True}},
        {"required": ["code", 1]},
        {"additionalProperties": {"type": "string"}},
        {"type": "array"},
    ],
)
def test_a_schema_that_says_more_is_left_to_the_checker(more: dict[str, Any]) -> None:
    assert plain_object({**PLAIN, **more}) is None
