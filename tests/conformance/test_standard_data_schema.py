"""Observed cases of a released package: what it does with messy items, and what we do with the same.

The package has no StandardData, so nothing has to be equal: for each case this says what we decided, and why.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from convoscope.views.standard_data import tidy
from convoscope.views.standard_data.model import StandardData
from support.shared_data import content_hash

CALL = {"tool_name": "t", "parameters": {}, "call_id": "1"}


class Ours(NamedTuple):
    """What we make of a case: the fields, what is unknown, the codes of warnings, and why."""

    why: str
    fields: dict[str, Any]
    unknown: dict[str, Any] = {}
    codes: tuple[str, ...] = ()


DECIDED = {
    "AgentData-002": Ours("a numeric id is a name all the same", {"user_id": "7"}),
    "AgentData-004": Ours("the schema says bool, and the word says which", {"agent_exit": True}),
    "AgentData-005": Ours("1 is true; they agree", {"agent_exit": True}),
    "AgentData-006": Ours("JSON text is what it holds", {"tool_calls": [CALL]}),
    "AgentData-007": Ours(
        "a call is a call without an id (section 1.2)",
        {"tool_calls": [{"tool_name": "t", "parameters": {}, "call_id": ""}]},
    ),
    "AgentData-009": Ours("one query is a list of one", {"retrieval_query": ["q"]}),
    "AgentData-010": Ours("chunks without a list around them are those of one query", {"retrieved_context": [["a"]]}),
    "AgentData-013": Ours("clean; they agree", {"expected_tool_call": CALL}),
    "AgentData-015": Ours("unknown keys are kept aside and reported", {}, unknown={"unknown_field": 1}),
    "AgentData-017": Ours("a bad element is left out, and the warning has it", {}, codes=("not_an_object",)),
    "AgentData-018": Ours("one object is a list of one", {"trace": [{"a": 1}]}),
    "AgentDataset.coerce-003": Ours("what is not a number names nothing; they agree on null", {}, codes=("not_an_id",)),
    "AgentDataset.coerce-004": Ours("they agree", {"tool_calls": [CALL]}),
    "AgentDataset.coerce-007": Ours(
        "one call is a list of one: an empty list would lose it", {"tool_calls": [{"tool_name": "t", "call_id": ""}]}
    ),
    "AgentDataset.coerce-008": Ours("they agree", {"agent_exit": True}),
    "AgentDataset.coerce-009": Ours("they agree", {"agent_exit": False}),
    "AgentDataset.coerce-011": Ours("null is not known, which is not the same as false", {}),
    "AgentDataset.coerce-013": Ours("text that is not JSON is no object; the warning has it", {}, codes=("bad_json",)),
    "AgentDataset.coerce-014": Ours("they agree", {"expected_tool_call": CALL}),
    "AgentDataset.coerce-015": Ours("text that is not JSON is no call; the warning has it", {}, codes=("bad_json",)),
    "AgentDataset.coerce-016": Ours("they agree", {"retrieval_query": ["q1", "q2"]}),
    "AgentDataset.coerce-018": Ours("null is not known, which is not the same as no query", {}),
    "AgentDataset.coerce-020": Ours("the schema has an object there", {"metadata": {"a": 1}}),
    "AgentDataset.coerce-021": Ours("they agree", {"trace": [{"a": 1}]}),
    "AgentDataset.coerce-022": Ours("they agree", {"agent_task": "3.0"}),
}
LOOKED_AT = {
    "AgentData-002": "014daf811e45",
    "AgentData-004": "ceeb2a5ddb13",
    "AgentData-005": "5c5ed8c68d3c",
    "AgentData-006": "c80998f19d0d",
    "AgentData-007": "e19eeafffbaa",
    "AgentData-009": "1e001c2dcaec",
    "AgentData-010": "83338890dc42",
    "AgentData-013": "3d6c26abb294",
    "AgentData-015": "a56c3fdd83c7",
    "AgentData-017": "ddc351917f91",
    "AgentData-018": "b0a64cf08740",
    "AgentDataset.coerce-003": "25afeb93e9db",
    "AgentDataset.coerce-004": "c80998f19d0d",
    "AgentDataset.coerce-007": "45a68f663884",
    "AgentDataset.coerce-008": "450d0fb12c2c",
    "AgentDataset.coerce-009": "273e0f5f7f64",
    "AgentDataset.coerce-011": "e2a31486e5db",
    "AgentDataset.coerce-013": "b4709d17cdb0",
    "AgentDataset.coerce-014": "d7bd7ec74635",
    "AgentDataset.coerce-015": "e33f0dfc7df7",
    "AgentDataset.coerce-016": "8172c1a00f0b",
    "AgentDataset.coerce-018": "8da73642b4d6",
    "AgentDataset.coerce-020": "99013872b240",
    "AgentDataset.coerce-021": "20211518790f",
    "AgentDataset.coerce-022": "c49d53b6a7ff",
}
"""The items of these cases."""
NOTHING: tuple[Any, ...] = (None, False, "", [], {})
# Where the released model refuses, we take the item; where its loader gives a value, ours is the same but for these.
ON_PURPOSE = {
    "AgentDataset.coerce-007",
    "AgentDataset.coerce-011",
    "AgentDataset.coerce-013",
    "AgentDataset.coerce-015",
    "AgentDataset.coerce-018",
    "AgentDataset.coerce-020",
}


def observed(shared: Callable[[str], Path]) -> list[dict[str, Any]]:
    cases = json.loads((shared("data/cases") / "standard-data.json").read_text())
    return [case for case in cases if case["role"] == "schema"]


def item_of(case: dict[str, Any]) -> dict[str, Any]:
    """JSON has no NaN: the case writes it as a word."""
    return {key: float("nan") if value == "__NaN__" else value for key, value in case["item"].items()}


def is_decided(case: dict[str, Any]) -> bool:
    """Whether it is a case that was looked at; another one may have its id."""
    return case["id"] in DECIDED and content_hash(case["item"]) == LOOKED_AT[case["id"]]


def test_every_case_is_as_decided(shared: Callable[[str], Path], ran: Callable[[str, int], None]) -> None:
    cases = [case for case in observed(shared) if is_decided(case)]
    for case in cases:
        ours = DECIDED[case["id"]]
        tidied = tidy(item_of(case))
        assert (tidied.fields, tidied.unknown) == (ours.fields, ours.unknown), case["id"]
        assert tuple(one.code for one in tidied.warnings) == ours.codes, case["id"]
        item = StandardData.model_validate(item_of(case))
        assert item == StandardData(**ours.fields, **ours.unknown), case["id"]
    ran("standard-data schema", len(cases))


def test_no_case_loses_a_field(shared: Callable[[str], Path], ran: Callable[[str, int], None]) -> None:
    """Whatever case it is: each field of it is a field, is unknown and kept, is warned of, or was null."""
    cases = [case for case in observed(shared) if isinstance(case["item"], dict)]
    for case in cases:
        tidied = tidy(item_of(case))
        warned = " ".join(map(str, tidied.warnings))
        for name, value in case["item"].items():
            is_kept = name in tidied.fields or name in tidied.unknown or name in warned
            assert is_kept or value in NOTHING, f"{case['id']}: {name}"
        item = StandardData.model_validate(item_of(case))
        assert item == StandardData(**tidied.fields, **tidied.unknown), case["id"]
    ran("standard-data schema, nothing lost", len(cases))


def test_what_its_loader_gives_we_give_too(shared: Callable[[str], Path], ran: Callable[[str, int], None]) -> None:
    cases = [case for case in observed(shared) if case["scorer"] == "AgentDataset.coerce" and len(case["item"]) == 1]
    for case in cases:
        (field,) = case["item"]
        tidied = tidy(item_of(case))
        agrees = tidied.fields.get(field) == case["expected"]
        if is_decided(case):
            assert agrees == (case["id"] not in ON_PURPOSE), case["id"]
        else:
            # Ours differs where theirs makes up a default, or a text of what the schema has as an object.
            is_default = case["expected"] in NOTHING or isinstance(case["expected"], str)
            assert agrees or is_default or tidied.warnings, case["id"]
    ran("standard-data schema, coercions", len(cases))
