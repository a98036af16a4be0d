"""The standard evaluation of a whole set of predictions, with its coverage (dialogue, 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from convoscope.metrics.dialogue.tomiinek.bleu import corpus_bleu
from convoscope.metrics.dialogue.tomiinek.forms import response_form, state_form
from convoscope.metrics.dialogue.tomiinek.richness import Richness, richness
from convoscope.metrics.dialogue.tomiinek.success import DomainGoal, Judgement, active_domains, judge_dialogue
from convoscope.metrics.dialogue.tomiinek.tracking import Tracking, track_turn, tracking
from convoscope.metrics.dialogue.tomiinek.venue_search import VenueSearch

State = Mapping[str, Mapping[str, Any]]


class GoldDialogue(NamedTuple):
    """What is true of a dialogue: its goals, and per turn of the agent the response, the state and what was booked."""

    goals: Mapping[str, DomainGoal]
    responses: Sequence[str]
    states: Sequence[State]
    booked: Sequence[Sequence[str]]


class Coverage(NamedTuple):
    """How much of the gold dialogues was predicted. What is missing scores as empty."""

    dialogues: int
    expected_dialogues: int
    turns: int
    expected_turns: int
    unknown: tuple[str, ...]
    """Predicted dialogues that are not in the gold; they do not count."""


class StandardFigures(NamedTuple):
    """The figures of the standard evaluator: rates in percent with one decimal. None where nobody could measure."""

    inform: float | None
    success: float | None
    bleu: float | None
    tracking: Tracking | None
    richness: Richness
    coverage: Coverage

    @property
    def combined(self) -> float | None:
        """BLEU plus half of inform and success."""
        if self.bleu is None or self.inform is None or self.success is None:
            return None
        return self.bleu + (self.inform + self.success) / 2


def dialogue_key(id: str) -> str:
    """The id as predictions write it: small letters, without `.json`."""
    return id.lower().removesuffix(".json")


def judge_prediction(turns: Sequence[Mapping[str, Any]], gold: GoldDialogue, search: VenueSearch) -> Judgement:
    """Inform and success of one dialogue. Without predicted states the gold ones are taken; missing turns are empty."""
    number = len(gold.responses)
    padded = [*turns[:number], *({} for _ in range(number - len(turns)))]
    states = [state_form(turn.get("state", true)) for turn, true in zip(padded, gold.states, strict=True)]
    is_given = all("active_domains" in turn for turn in turns)
    active = [turn.get("active_domains", ()) for turn in padded] if is_given else active_domains(states)
    responses = [response_form(turn.get("response", "")) for turn in padded]
    return judge_dialogue(gold.goals, responses, states, active, gold.booked, search)


def evaluate(
    predictions: Mapping[str, Sequence[Mapping[str, Any]]],
    gold: Mapping[str, GoldDialogue],
    search: VenueSearch,
    *,
    with_bleu: bool = True,
) -> StandardFigures:
    """All figures of `{dialogue: [{response, state, active_domains}]}` against the gold. The input is not changed."""
    ours = {dialogue_key(id): turns for id, turns in predictions.items()}
    true = {dialogue_key(id): dialogue for id, dialogue in gold.items()}
    judgements, tracked, pairs, turns = [], [], [], 0
    has_states = any("state" in turn for id in true for turn in ours.get(id, ()))
    for id, dialogue in true.items():
        predicted = ours.get(id, ())
        turns += min(len(predicted), len(dialogue.responses))
        judgements.append(judge_prediction(predicted, dialogue, search))
        for place, response in enumerate(dialogue.responses):
            turn = predicted[place] if place < len(predicted) else {}
            pairs.append((response_form(turn.get("response", "")), response_form(response)))
            if has_states:
                truth = state_form(dialogue.states[place], drops_dontcare=True)
                tracked.append(track_turn(state_form(turn.get("state", {})), truth))
    return StandardFigures(
        inform=_percent([one.is_informed for one in judgements]),
        success=_percent([one.is_success for one in judgements]),
        bleu=corpus_bleu(*zip(*pairs, strict=True)) if with_bleu and pairs else None,
        tracking=tracking(tracked) if tracked else None,
        richness=richness([response for response, _ in pairs]),
        coverage=Coverage(
            sum(id in ours for id in true), len(true), turns, len(pairs), tuple(sorted(ours.keys() - true.keys()))
        ),
    )


def _percent(verdicts: Sequence[bool]) -> float | None:
    return round(100 * sum(verdicts) / len(verdicts), 1) if verdicts else None
