"""Evaluators for use inside an agent's loop: turns are fed one by one, and figures can be had at every level."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import fsum
from typing import Any, NamedTuple

from convoscope.metrics.dialogue.goals import TRANSFERABLE, Transfer, completion, transfers, true_transfers
from convoscope.metrics.dialogue.policy import BOOKING_RULES, PolicyRules, no_doing
from convoscope.metrics.dialogue.quality import quality_score
from convoscope.metrics.dialogue.turn_scores import (
    PairCount,
    SetMatch,
    TurnScores,
    judge_turns,
    score_turn,
    score_turns,
)
from convoscope.metrics.dialogue.turns import DialogueTurn, turn_of
from convoscope.metrics.dialogue.venues import VenueDatabase

JudgeFunction = Callable[[str, str], Any]
"""Given what the user and the agent say, a verdict such as `{"score": 4}`, or a text that holds one."""

MICRO = frozenset(
    {"slot_accuracy", "jga", "slot_hallucination", "slot_hallucination@all_domains", "entity_hallucination"}
)
"""Metrics whose figure over a data set is the mean of turns; the others take the mean of dialogues (dialogue, 1.12)."""
POOLED = frozenset({"policy_violations", "policy_violations@attempts"})
"""Violations ÷ turns, and violations ÷ attempts."""


class LevelFigure(NamedTuple):
    """A figure over dialogues, with both means named. None where nothing could be measured."""

    value: float | None
    """The mean that the definition asks for."""
    macro: float | None
    """The mean of dialogues."""
    micro: float | None
    """The mean of turns, or of events."""
    measured: int
    dialogues: int
    """Dialogues with a value, of all that were fed."""


class ReplyVerdict(NamedTuple):
    """What a judge says of a reply: a score from 1 to 5; or None, and why."""

    score: float | None
    reason: str = ""


Tally = tuple[float, int]
"""The sum over the turns of a dialogue that have a value, and their number."""


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
        self.verdicts: list[ReplyVerdict] = []
        self._venues, self._rules, self._transferable, self._judge = venues, rules, transferable, judge
        self._named: dict[str, None] = {}

    def add_turn(self, turn: DialogueTurn | None = None, *, user: str = "", **fields: Any) -> TurnScores:
        """Score the next turn, given as it is or by the fields of `turn_of`."""
        turn = turn_of(**fields) if turn is None else turn
        labels = score_turn(turn, rules=self._rules)
        (score,) = judge_turns((turn,), (labels,), self._venues, self._named)
        self._named |= dict.fromkeys(score.known_names)
        self.turns.append(turn)
        self.scores.append(score)
        if self._judge is not None and user and turn.response:
            self.verdicts.append(_verdict(self._judge, user, turn.response))
        return score

    def tallies(self) -> dict[str, Tally]:
        """By metric, the sum over the turns that have a value and their number. No value, no entry."""
        tallies = _tallies(self.turns, self.scores, self._rules, self._transferable, self._venues)
        usable = [verdict.score for verdict in self.verdicts if verdict.score is not None]
        if usable:
            tallies["response_quality"] = _tally(usable)
        return tallies

    def figures(self) -> dict[str, float]:
        """The figures of the dialogue so far: means of turns, and the number of policy violations."""
        return {
            name: total if name == "policy_violations" else total / number
            for name, (total, number) in self.tallies().items()
        }


def _verdict(judge: JudgeFunction, user: str, response: str) -> ReplyVerdict:
    """A judge is code of the user: where it fails, the dialogue goes on, and the verdict is missing."""
    try:
        answer = judge(user, response)
    except Exception as error:
        return ReplyVerdict(None, f"the judge failed: {type(error).__name__}: {error}")
    score = quality_score(answer)
    return ReplyVerdict(score, "" if score is not None else f"no score from 1 to 5 in {str(answer)[:200]!r}")


class DatasetEvaluator:
    """Figures over dialogues."""

    def __init__(self) -> None:
        self.dialogues = 0
        self._tallies: defaultdict[str, list[Tally]] = defaultdict(list)

    def add(self, dialogue: DialogueEvaluator) -> None:
        """Take a dialogue in. One without turns counts as a dialogue, and has no values."""
        self.add_tallies(dialogue.tallies())

    def add_tallies(self, tallies: Mapping[str, Tally]) -> None:
        """Take in what the turns of a dialogue add up to."""
        self.dialogues += 1
        for name, tally in tallies.items():
            self._tallies[name].append(tally)

    def figures(self) -> dict[str, LevelFigure]:
        """Every metric that has a value, with macro and micro mean."""
        return {name: self._figure(name, tallies) for name, tallies in sorted(self._tallies.items())}

    def _figure(self, name: str, tallies: Sequence[Tally]) -> LevelFigure:
        macro = fsum([total / number for total, number in tallies]) / len(tallies)
        micro = fsum([total for total, _ in tallies]) / sum([number for _, number in tallies])
        value = micro if name in MICRO or name in POOLED else macro
        return LevelFigure(value, macro, micro, len(tallies), self.dialogues)


def evaluate_dialogues(
    dialogues: Iterable[Iterable[DialogueTurn]], venues: VenueDatabase | None = None, rules: PolicyRules = BOOKING_RULES
) -> dict[str, LevelFigure]:
    """The figures of dialogues that are all there."""
    dataset = DatasetEvaluator()
    for dialogue in dialogues:
        turns = dialogue if isinstance(dialogue, (list, tuple)) else list(dialogue)
        scores = judge_turns(turns, score_turns(turns, rules=rules), venues)
        dataset.add_tallies(_tallies(turns, scores, rules, TRANSFERABLE, venues))
    return dataset.figures()


_VERDICTS = {
    "domain_accuracy": "domain",
    "domain_accuracy@first_frame": "first_domain",
    "action_type_accuracy@no_general": "acts_without_general",
    "action_type_accuracy@with_slots": "acts_with_slots",
    "jga": "joint_goal",
    "system_correctness": "is_correct",
}
"""Metrics that are a yes or no of each turn, and the fields of `TurnScores` that hold it."""


def _tallies(
    turns: Sequence[DialogueTurn],
    scores: Sequence[TurnScores],
    rules: PolicyRules,
    transferable: Collection[str],
    venues: VenueDatabase | None,
) -> dict[str, Tally]:
    """Sums and numbers over the turns of a dialogue. No value, no entry."""
    if not scores:
        return {}
    columns: dict[str, Any] = dict(zip(TurnScores._fields, zip(*scores, strict=True), strict=True))
    tallies: dict[str, Tally] = {}
    for name, field in _VERDICTS.items():
        values = columns[field]
        tallies[name] = values.count(True), len(values) - values.count(None)
    tallies["intent_accuracy"] = _equal(columns["intent"])
    tallies["action_type_accuracy"] = _equal(columns["acts"])
    tallies["slot_accuracy"] = _rates([pair for pair in columns["slots"] if pair and pair.total])
    tallies["slot_hallucination"] = _rates(columns["invented"])
    tallies["slot_hallucination@all_domains"] = _rates(columns["invented_anywhere"])
    mentions = zip(columns["entities"], columns["invented_mentions"], strict=True)
    tallies["entity_hallucination"] = _tally([unknown / len(entities) for entities, unknown in mentions if entities])
    attempts = [attempt for performed in columns["attempts"] for attempt in performed]
    violations = sum([score.is_violation for score in scores]) if attempts else 0
    tallies["policy_violations"] = violations, sum([not no_doing(turn) for turn in turns])
    tallies["policy_violations@attempts"] = sum([bool(attempt.missing) for attempt in attempts]), len(attempts)
    tallies["memory_transfer"] = _carried(transfers(turns, transferable))
    tallies["memory_transfer_gt"] = _carried(true_transfers(turns, transferable))
    if any(turn.truth.intents is not None for turn in turns):
        result = completion(turns, scores, rules, venues)
        if result.is_complete is not None:
            tallies["goal_completion"] = result.is_complete, 1
            if result.goals.bookings:
                tallies["goal_completion@bookings"] = result.is_complete, 1
    return {name: tally for name, tally in tallies.items() if tally[1]}


def _tally(values: Sequence[float]) -> Tally:
    return fsum(values), len(values)


def _equal(matches: Sequence[SetMatch | None]) -> Tally:
    verdicts = [match.is_equal for match in matches if match is not None]
    return sum(verdicts), len(verdicts)


def _rates(pairs: Sequence[PairCount | None]) -> Tally:
    """No predicted pair is a rate of 0 (dialogue, 1.6)."""
    return _tally([pair.number / pair.total if pair.total else 0.0 for pair in pairs if pair is not None])


def _carried(events: Sequence[Transfer]) -> Tally:
    return sum([event.is_carried for event in events]), len(events)
