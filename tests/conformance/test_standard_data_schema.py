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


def test_every_case_is_decided(shared: Callable[[str], Path], ran: Callable[[str, int], None]) -> None:
    cases = observed(shared)
    assert {case["id"] for case in cases} == set(DECIDED)
    for case in cases:
        ours = DECIDED[case["id"]]
        tidied = tidy(item_of(case))
        assert (tidied.fields, tidied.unknown) == (ours.fields, ours.unknown), case["id"]
        assert tuple(one.code for one in tidied.warnings) == ours.codes, case["id"]
        item = StandardData.model_validate(item_of(case))
        assert item == StandardData(**ours.fields, **ours.unknown), case["id"]
    ran("standard-data schema", len(cases))


def test_what_its_loader_gives_we_give_too(shared: Callable[[str], Path], ran: Callable[[str, int], None]) -> None:
    cases = [case for case in observed(shared) if case["scorer"] == "AgentDataset.coerce"]
    for case in cases:
        (field,) = case["item"]
        agrees = tidy(item_of(case)).fields.get(field) == case["expected"]
        assert agrees == (case["id"] not in ON_PURPOSE), case["id"]
    ran("standard-data schema, coercions", len(cases))
