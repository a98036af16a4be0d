"""Evaluators for use inside an agent's loop: turns are fed one by one, and figures can be had at every level."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from math import fsum
from typing import Any, NamedTuple

from convoscope.metrics.dialogue.accuracy import PairCount
from convoscope.metrics.dialogue.completion import completion
from convoscope.metrics.dialogue.memory import TRANSFERABLE, transfers, true_transfers
from convoscope.metrics.dialogue.policy import BOOKING_RULES, PolicyRules
from convoscope.metrics.dialogue.quality import quality_score
from convoscope.metrics.dialogue.turn_scores import TurnScores, score_turn
from convoscope.metrics.dialogue.turns import DialogueTurn, turn_of
from convoscope.metrics.dialogue.venues import NAME, VenueDatabase

JudgeFunction = Callable[[str, str], Any]
"""Given what the user and the agent say, a verdict such as `{"score": 4}`."""

MICRO = frozenset(
    {"slot_accuracy", "jga", "slot_hallucination", "slot_hallucination@all_domains", "entity_hallucination"}
)
"""Metrics whose figure over a data set is the mean of turns; the others take the mean of dialogues (dialogue, 1.12)."""
POOLED = frozenset({"policy_violations", "policy_violations@attempts"})
"""Violations ÷ turns, and violations ÷ attempts."""


class LevelFigure(NamedTuple):
    """A figure over dialogues, with both means named. None where nothing could be measured."""

    value: float | None
    """The one that the definition asks for."""
    macro: float | None
    """The mean of dialogues."""
    micro: float | None
    """The mean of turns, or of events."""
    measured: int
    dialogues: int
    """Dialogues with a value, of all that were fed."""


class Tally(NamedTuple):
    """What the turns of a dialogue add up to, by metric."""

    total: float
    number: int

    @property
    def mean(self) -> float:
        return self.total / self.number


class DialogueEvaluator:
    """Scores a dialogue while it is held."""

    def __init__(
        self,
        *,
        venues: VenueDatabase | None = None,
        rules: PolicyRules = BOOKING_RULES,
        transferable: Collection[str] = TRANSFERABLE,
        judge: JudgeFunction | None = None,
    ) -> None:
        self.turns: list[DialogueTurn] = []
        self.scores: list[TurnScores] = []
        self.verdicts: list[float | None] = []
        self._venues, self._rules, self._transferable, self._judge = venues, rules, transferable, judge
        self._named: dict[str, None] = {}

    def add_turn(self, turn: DialogueTurn | None = None, *, user: str = "", **fields: Any) -> TurnScores:
        """Score the next turn, given as it is or by the fields of `turn_of`."""
        turn = turn_of(**fields) if turn is None else turn
        score = score_turn(turn, self._venues, self._rules, tuple(self._named))
        if score.entities:
            self._named |= {one.value: None for one in score.entities if one.field == NAME and one.is_known}
        self.turns.append(turn)
        self.scores.append(score)
        if self._judge is not None and user and turn.response:
            self.verdicts.append(quality_score(self._judge(user, turn.response)))
        return score

    def tallies(self) -> dict[str, Tally]:
        """By metric, the sum over the turns that have a value and their number. No value, no entry."""
        tallies = _turn_tallies(self.turns, self.scores)
        for name, events in (
            ("memory_transfer", transfers(self.turns, self._transferable)),
            ("memory_transfer_gt", true_transfers(self.turns, self._transferable)),
        ):
            if events:
                tallies[name] = Tally(sum(event.is_carried for event in events), len(events))
        usable = [verdict for verdict in self.verdicts if verdict is not None]
        if usable:
            tallies["response_quality"] = Tally(fsum(usable), len(usable))
        if self._venues is not None and any(turn.truth.intents is not None for turn in self.turns):
            result = completion(self.turns, self.scores, self._rules)
            tallies["goal_completion"] = Tally(result.is_complete, 1)
            if result.goals.bookings:
                tallies["goal_completion@bookings"] = Tally(result.is_complete, 1)
        return tallies

    def figures(self) -> dict[str, float]:
        """The figures of the dialogue so far: means of turns, and the number of policy violations."""
        return {
            name: tally.total if name == "policy_violations" else tally.mean for name, tally in self.tallies().items()
        }


class DatasetEvaluator:
    """Figures over dialogues."""

    def __init__(self) -> None:
        self.dialogues = 0
        self._tallies: dict[str, list[Tally]] = {}

    def add(self, dialogue: DialogueEvaluator) -> None:
        """Take a dialogue in. One without turns counts as a dialogue, and has no values."""
        self.dialogues += 1
        for name, tally in dialogue.tallies().items():
            self._tallies.setdefault(name, []).append(tally)

    def figures(self) -> dict[str, LevelFigure]:
        """Every metric that has a value, with macro and micro mean."""
        return {name: self._figure(name, tallies) for name, tallies in sorted(self._tallies.items())}

    def _figure(self, name: str, tallies: Sequence[Tally]) -> LevelFigure:
        number = sum(tally.number for tally in tallies)
        macro = fsum(tally.mean for tally in tallies) / len(tallies)
        micro = fsum(tally.total for tally in tallies) / number
        value = micro if name in MICRO or name in POOLED else macro
        return LevelFigure(value, macro, micro, len(tallies), self.dialogues)


def evaluate_dialogues(
    dialogues: Iterable[Iterable[DialogueTurn]], venues: VenueDatabase | None = None, rules: PolicyRules = BOOKING_RULES
) -> dict[str, LevelFigure]:
    """The figures of dialogues that are all there."""
    dataset = DatasetEvaluator()
    for turns in dialogues:
        dialogue = DialogueEvaluator(venues=venues, rules=rules)
        for turn in turns:
            dialogue.add_turn(turn)
        dataset.add(dialogue)
    return dataset.figures()


_VERDICTS = {
    "domain": "domain_accuracy",
    "first_domain": "domain_accuracy@first_frame",
    "acts_without_general": "action_type_accuracy@no_general",
    "acts_with_slots": "action_type_accuracy@with_slots",
    "joint_goal": "jga",
    "is_correct": "system_correctness",
}
_PLACES = [(TurnScores._fields.index(field), name) for field, name in _VERDICTS.items()]
_OTHERS = [TurnScores._fields.index(field) for field in ("intent", "acts", "slots", "invented", "invented_anywhere")]


def _turn_tallies(turns: Sequence[DialogueTurn], scores: Sequence[TurnScores]) -> dict[str, Tally]:
    """Sums and numbers over the turns, column by column."""
    columns: list[Any] = list(zip(*scores, strict=True))
    if not columns:
        return {}
    intents, acts, slots, invented, anywhere = (columns[place] for place in _OTHERS)
    attempts = [score for score in scores if score.attempt is not None]
    acting = [turn for turn in turns if turn.predicted.acts is not None or turn.calls]
    mentions = [score.entities for score in scores if score.entities]
    violations = sum([score.is_violation for score in attempts])
    tallies = {name: Tally(columns[at].count(True), len(scores) - columns[at].count(None)) for at, name in _PLACES}
    tallies["intent_accuracy"] = _tally([match.is_equal for match in intents if match is not None])
    tallies["action_type_accuracy"] = _tally([match.is_equal for match in acts if match is not None])
    tallies["slot_accuracy"] = _tally([pairs[0] / pairs[1] for pairs in slots if pairs is not None and pairs[1]])
    tallies["slot_hallucination"] = _rates(invented)
    tallies["slot_hallucination@all_domains"] = _rates(anywhere)
    tallies["entity_hallucination"] = _tally([sum([not one.is_known for one in row]) / len(row) for row in mentions])
    tallies["policy_violations"] = Tally(violations, len(acting))
    tallies["policy_violations@attempts"] = Tally(violations, len(attempts))
    return {name: tally for name, tally in tallies.items() if tally.number}


def _tally(values: Sequence[float]) -> Tally:
    return Tally(fsum(values), len(values))


def _rates(rows: Sequence[PairCount | None]) -> Tally:
    """No predicted pair is a rate of 0 (dialogue, 1.6)."""
    return _tally([pairs[0] / pairs[1] if pairs[1] else 0.0 for pairs in rows if pairs is not None])
