"""Cases of the standard MultiWOZ evaluator: ours are equal, but for aliases of venues (dialogue, 4)."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from convoscope.metrics.dialogue.tomiinek.evaluate import (
    DomainGoal,
    active_domains,
    judge_dialogue,
    track_turn,
    tracking,
)
from convoscope.metrics.dialogue.tomiinek.matching import (
    VenueSearch,
    partial_ratio,
    placeholder,
    response_form,
    value_form,
)

PLACES = ("name", "departure", "destination")


@pytest.fixture(scope="module")
def search(shared: Callable[[str], Path]) -> VenueSearch:
    folder = shared("data/multiwoz21/db")
    if not any(folder.glob("*_db.json")):
        pytest.skip(f"no conformance data: {folder} has no tables")
    files = {path.name.removesuffix("_db.json"): path for path in folder.glob("*_db.json")}
    return VenueSearch({domain: json.loads(path.read_text()) for domain, path in files.items() if domain != "taxi"})


def judged(inputs: dict[str, Any], search: VenueSearch) -> list[Any]:
    goals = {
        domain: DomainGoal(goal["informable"], frozenset(goal["requestable"]))
        for domain, goal in inputs["goal"].items()
    }
    judgement = judge_dialogue(
        goals, inputs["utterances"], inputs["states"], inputs["domain_estimates"], inputs["booked_domains"], search
    )
    return [judgement.inform, judgement.success]


class NotOurs(Exception):
    """A kind of case of which nothing of ours says the same."""


def turns_of(inputs: Any, name: str) -> list[Any]:
    """What a case gives turn by turn: a list of turns, or one list under a name."""
    turns = inputs if isinstance(inputs, list) else inputs.get(name)
    return [turn.get(name, turn) if isinstance(turn, dict) and name in turn else turn for turn in turns]


def pairs_of(inputs: Any) -> list[tuple[Any, Any]]:
    """The predicted and the true states of a case: of one turn, or of several."""
    turns = inputs if isinstance(inputs, list) else inputs.get("turns", [inputs])
    return [(turn["hyp"], turn["ref"]) if isinstance(turn, dict) else (turn[0], turn[1]) for turn in turns]


def ours(case: dict[str, Any], search: VenueSearch) -> Any:
    inputs = case["inputs"]
    match case["kind"].partition(".")[0]:
        case "value":
            return value_form(inputs["slot"], inputs["value"])
        case "slot_name":
            return placeholder(inputs["name"])
        case "response":
            return response_form(inputs["response"])
        case "dst":
            return tracking([track_turn(*pair) for pair in pairs_of(inputs)])._asdict()
        case "partial_ratio":
            return partial_ratio(inputs["a"], inputs["b"])
        case "db_query":
            return search.query(inputs["domain"], inputs["constraints"])
        case "dialog_success":
            return judged(inputs, search)
        case "active_domains":
            turns = turns_of(inputs, "states") if isinstance(inputs, dict) else turns_of(inputs, "state")
            return active_domains(turns)
        case other:
            raise NotOurs(other)


def is_alias(case: dict[str, Any]) -> bool:
    """A place that the evaluator calls by another name than the value holds: only its table of venues knows that."""
    inputs = case["inputs"]
    if not case["kind"].startswith("value") or not isinstance(inputs, dict) or inputs.get("slot") not in PLACES:
        return False
    return case["expected"]["value"] != case["inputs"]["value"].strip().lower()


def test_cases_of_the_standard_evaluator_are_equal(
    shared: Callable[[str], Path], ran: Callable[[str, int], None], search: VenueSearch
) -> None:
    cases = json.loads(shared("data/cases/tomiinek.json").read_text())["cases"]
    equal = [case for case in cases if not is_alias(case) and "value" in case["expected"]]
    differing, others = [], []
    for case in equal:
        before = copy.deepcopy(case["inputs"])
        try:
            made = ours(case, search)
        except NotOurs as other:
            others.append(str(other))
            continue
        if made != case["expected"]["value"]:
            differing.append((case["id"], made, case["expected"]["value"]))
        assert case["inputs"] == before, f"{case['id']} changed its input"
    assert differing == []
    ran("standard MultiWOZ evaluator", len(equal) - len(others))
    if others:
        ran(f"kinds that we do not have, left out ({', '.join(sorted({*others}))})", len(others))
    aliases = sum(map(is_alias, cases))
    if aliases:
        ran("aliases of venues, left out", aliases)
