"""Whatever comes, tidy makes an item of it: nothing raises, nothing is lost, and once is enough."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given

from convoscope.views.standard_data.model import StandardData
from convoscope.views.standard_data.schema import FIELDS
from convoscope.views.standard_data.tidy import tidy, unknown_names
from support.made_up_payloads import Marked, is_found, marked_payloads, payloads, texts_in
from support.strategies import json_values

# Odd, but kept: they are said each time the item is read.
STILL_SAID = {"twins_differ", "kept_as_text", "unknown_type"}


@given(payloads())
def test_whatever_a_payload_holds(payload: dict[str, Any]) -> None:
    left_as_it_was(payload)
    once_is_enough(payload)
    what_a_model_writes_it_reads_again(payload)
    the_model_has_what_tidy_found(payload)


def left_as_it_was(payload: dict[str, Any]) -> None:
    before = copy.deepcopy(payload)
    tidied = tidy(payload)
    assert payload == before
    assert set(tidied.fields) <= set(FIELDS)
    assert None not in tidied.fields.values()
    assert all(isinstance(key, str) for key in tidied.unknown)
    assert all(one.code and one.message for one in tidied.warnings)
    unknown_names(tidied)


@given(json_values())
def test_a_payload_that_is_not_an_object_is_an_empty_item(payload: Any) -> None:
    tidied = tidy(payload)
    if not isinstance(payload, dict):
        assert tidied.fields == {}
        assert [(one.code, one.value) for one in tidied.warnings] == [("not_an_object", payload)]


@given(marked_payloads())
def test_every_leaf_is_in_the_fields_the_unknown_keys_or_a_warning(marked: Marked) -> None:
    tidied = tidy(marked.payload)
    blob = "\n".join(texts_in([tidied.fields, tidied.unknown, [one.value for one in tidied.warnings]]))
    lost = [leaf for leaf in marked.leaves if not is_found(leaf, blob)]
    assert not lost, (marked.payload, tidied)


def once_is_enough(payload: dict[str, Any]) -> None:
    first = tidy(payload)
    again = tidy(first.fields)
    assert again.fields == first.fields
    assert again.unknown == {}
    assert {one.code for one in again.warnings} <= STILL_SAID


def what_a_model_writes_it_reads_again(payload: dict[str, Any]) -> None:
    item = StandardData.model_validate(payload)
    assert StandardData.model_validate(item.model_dump(exclude_none=True)) == item
    assert StandardData.model_validate(item.model_dump()) == item
    assert StandardData(**item.model_dump(mode="json")) == item


def the_model_has_what_tidy_found(payload: dict[str, Any]) -> None:
    tidied, item = tidy(payload), StandardData.model_validate(payload)
    assert item.unknown == tidied.unknown
    assert list(item.warnings) == tidied.warnings
    dumped = item.model_dump()
    assert {name for name in FIELDS if dumped[name] is not None} - {"input_text", "output_text"} == (
        set(tidied.fields) - {"input_text", "output_text"}
    )


def nest(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [{"a": value}]
    return value


@pytest.mark.parametrize("name", [*FIELDS, "question", "llm_metrics", "conversation", "unheard_of", "stt.transcript"])
def test_hostile_values(name: str) -> None:
    deep = nest(5_000)
    hostile: list[Any] = [
        deep,
        [deep],
        {"a": deep},
        {"turn_1": deep},
        "[" * 100_000,
        '{"a":' * 100_000,
        10**5_000,
        -(10**400),
        "9" * 10_000,
        float("nan"),
        float("inf"),
        "\ud800",
        ["\ud800"],
        {"\ud800": "\ud800"},
        {1: {2: 3}, None: 4, (5,): 6},
        [[[[]]]],
        b"bytes",
        {1, 2},
        object(),
        (1, "a", None),
    ]
    for value in hostile:
        assert len(tidy({name: value}).fields) <= 1
        item = StandardData.model_validate({name: value})
        assert isinstance(item, StandardData)


def test_keys_that_are_not_text_become_text() -> None:
    tidied = tidy({7: "a", "7": "b", None: "c", True: "d"})
    assert tidied.unknown == {"7": "a", "7~": "b", "null": "c", "true": "d"}
    assert tidied.warnings == []


def test_json_text_of_a_deep_value_is_set_aside() -> None:
    tidied = tidy({"metadata": "[" * 500 + "]" * 500, "trace": json.dumps({"a": 1})})
    assert tidied.fields == {"trace": [{"a": 1}]}
    assert [(one.path, one.code) for one in tidied.warnings] == [("metadata", "not_an_object")]
