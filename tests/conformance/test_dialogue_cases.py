"""Cases of the dialogue metrics that agree with their definition: ours are equal (dialogue, 1)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from convoscope.metrics.dialogue.goals import completion, transfers
from convoscope.metrics.dialogue.policy import booking_attempts
from convoscope.metrics.dialogue.turn_scores import SetMatch, TurnScores, score_turn, score_turns
from convoscope.metrics.dialogue.turns import intent_domain, turn_of

AGREES = "agrees"


def domain(predicted_domain: str, ground_truth_intent: str) -> list[Any]:
    turn = turn_of(predicted_domains=predicted_domain, true_intents=ground_truth_intent)
    (true,) = turn.truth.domains or ("",)
    right = score_turn(turn).domain
    return [float(bool(right)), right, true]


def sets(match: SetMatch | None, return_detailed: bool = False, has_f1: bool = False) -> list[Any]:
    assert match is not None
    value: list[Any] = [float(match.is_equal), match.is_equal]
    if return_detailed:
        value += [match.recall, match.precision, *([match.f1] if has_f1 else []), *match[1:]]
    return value


def tracked(predicted_slots: Any, ground_truth_slots: Any, domain: str | None = None) -> TurnScores:
    """The scores of a turn with these states, about this domain."""
    return score_turn(turn_of(predicted_slots=predicted_slots, true_slots=ground_truth_slots, true_domains=domain))


def slots(predicted_slots: Any, ground_truth_slots: Any, has_f1: bool) -> list[Any]:
    score = tracked(predicted_slots, ground_truth_slots)
    assert score.slots is not None
    assert score.invented_anywhere is not None
    recall, predicted = score.slots, score.invented_anywhere.total
    if not has_f1:
        return [recall.share, *recall]
    f1 = 2 * recall.number / (predicted + recall.total) if predicted + recall.total else 0.0
    return [recall.share, recall.number / predicted if predicted else 0.0, f1, recall.number, predicted, recall.total]


def jga(predicted_slots: Any, ground_truth_slots: Any) -> list[Any]:
    """The joint goal of the turn, and that of each domain by itself."""
    whole = turn_of(predicted_slots=predicted_slots, true_slots=ground_truth_slots)
    ours, true = whole.predicted.state or {}, whole.truth.state or {}
    by_domain = {one: tracked({one: ours.get(one, {})}, {one: true.get(one, {})}).joint_goal for one in {*ours, *true}}
    return [float(bool(score_turn(whole).joint_goal)), by_domain]


def hallucination(predicted_slots: Any, ground_truth_slots: Any, current_domain: str | None = None) -> list[Any]:
    score = tracked(predicted_slots, ground_truth_slots, current_domain)
    invented = score.invented if current_domain else score.invented_anywhere
    assert invented is not None
    return [invented.share or 0.0, *invented]


def memory(dialogue_history: list[dict[str, Any]], transferable_slots: tuple[str, ...] | None = None) -> list[Any]:
    turns = [
        turn_of(predicted_domains=one["domain"], predicted_slots=one["predicted_slots"]) for one in dialogue_history
    ]
    events = transfers(turns, transferable_slots or ("area", "pricerange"))
    carried = sum(one.is_carried for one in events)
    rows = [
        {
            "turn_id": dialogue_history[one.turn]["turn_id"],
            "from_domain": one.from_domain,
            "to_domain": one.to_domain,
            "slot": one.slot,
            "value": one.value,
            "transferred": one.is_carried,
        }
        for one in events
    ]
    return [carried / len(events) if events else 0.0, carried, len(events), rows]


def policy(action_taken: str, required_slots: dict[str, list[str]], current_slots: Any) -> bool:
    """Whether the action is allowed; the words of the reason are our own."""
    rules = {intent_domain(action): tuple(slots) for action, slots in required_slots.items()}
    turn = turn_of(predicted_slots=current_slots, calls=action_taken)
    return not any(attempt.missing for attempt in booking_attempts(turn, rules))


def task(turn_results: list[dict[str, Any]], ground_truth_goal: dict[str, Any]) -> bool:
    """Every goal domain of the case is one to book in, or one to search in."""
    verb = "book" if ground_truth_goal["requires_booking"] else "find"
    goals = [f"{verb}_{domain}" for domain in ground_truth_goal["domains"]]
    turns = [
        turn_of(
            true_intents=goals,
            true_slots=one["predicted_slots"],
            predicted_slots=one["predicted_slots"],
            predicted_domains=one["domain"],
            predicted_acts=[] if one["action"].startswith("book") else f"{one['domain']}-Inform",
            calls=one["action"],
        )
        for one in turn_results
    ]
    return completion(turns, score_turns(turns)).is_complete


def ours(case: dict[str, Any]) -> Any:
    """What we make of a case's inputs, in the shape of its expectation."""
    inputs, newer = dict(case["inputs"]), "bdd54d5" not in case["commits"]
    match case["function"]:
        case "calculate_domain_accuracy":
            return domain(**inputs)
        case "calculate_intent_accuracy" | "calculate_action_type_accuracy":
            detailed = inputs.pop("return_detailed", False)
            predicted = next(value for name, value in inputs.items() if name.startswith("predicted"))
            true = next(value for name, value in inputs.items() if not name.startswith("predicted"))
            is_intent = "intent" in case["function"]
            kind = "intents" if is_intent else "acts"
            score = score_turn(turn_of(**{f"predicted_{kind}": predicted, f"true_{kind}": true}))
            return sets(score.intent if is_intent else score.acts, detailed, newer)
        case "calculate_slot_accuracy":
            return slots(**inputs, has_f1=newer)
        case "calculate_jga":
            return jga(**inputs)
        case "calculate_hallucination_rate":
            return hallucination(**inputs)
        case "calculate_memory_transfer_accuracy":
            return memory(**inputs)
        case "calculate_policy_compliance":
            return policy(**inputs)
        case "calculate_task_success":
            return task(**inputs)
        case other:
            raise NotOurs(other)


class NotOurs(Exception):
    """A function that measures something that we do not."""


def expected(case: dict[str, Any]) -> Any:
    """A verdict with a reason in words is compared by the verdict."""
    value = case["expected"]["value"]
    return value[0] if isinstance(value, list) and len(value) == 2 and isinstance(value[1], str) else value


def test_cases_that_agree_with_the_definition_are_equal(
    shared: Callable[[str], Path], ran: Callable[[str, int], None]
) -> None:
    cases = json.loads(shared("data/cases/dialogue.json").read_text())["cases"]
    agreeing = [case for case in cases if case.get("seed") == AGREES and "value" in case["expected"]]
    others: list[str] = []
    for case in agreeing:
        try:
            made = ours(case)
        except NotOurs as other:
            others.append(str(other))
            continue
        assert made == (pytest.approx(expected(case)) if _is_flat(case) else expected(case)), case["id"]
    ran("dialogue metrics that agree", len(agreeing) - len(others))
    if others:
        ran(f"dialogue metrics that we do not have, left out ({', '.join(sorted({*others}))})", len(others))


def _is_flat(case: dict[str, Any]) -> bool:
    value = expected(case)
    return isinstance(value, list) and all(isinstance(one, (int, float)) for one in value)
