"""What can be told of a turn without a database of venues (dialogue, 1.9)."""

from __future__ import annotations

from collections.abc import Sequence

from convoscope.metrics.dialogue.actions import SEARCH
from convoscope.metrics.dialogue.mentions import mentions_in, read_replies
from convoscope.metrics.dialogue.turn_scores import TurnScores, is_against_rules, verdict
from convoscope.metrics.dialogue.turns import DialogueTurn
from convoscope.metrics.dialogue.venues import NAME, VenueDatabase

NO_VENUES = "no_venue_database"
_NONE = VenueDatabase({})


def judge_without_venues(turns: Sequence[DialogueTurn], scores: Sequence[TurnScores]) -> list[TurnScores]:
    """The scores with a verdict on each turn, as far as nothing has to be looked up."""
    return [_judged(turn, score) for turn, score in zip(turns, scores, strict=True)]


def _judged(turn: DialogueTurn, score: TurnScores) -> TurnScores:
    """An answer to a search tells of venues, so it is left open, right or wrong: were only the wrong ones told, the
    figure would fall. In other turns a reply that names something may make it up.
    """
    if not score.expected or score.joint_goal is None or turn.predicted.acts is None:
        return score
    if score.expected == SEARCH:
        return score._replace(undecided=NO_VENUES)
    is_wrong = is_against_rules(score.attempts, score.invented)
    is_correct, undecided = verdict(is_wrong, score.expected, turn.predicted.act_types, turn.calls)
    if is_correct and names_something(turn):
        is_correct, undecided = None, NO_VENUES
    return score._replace(is_correct=is_correct, undecided=undecided)


def names_something(turn: DialogueTurn) -> bool:
    """Whether a reply or its acts hold a name or a detail that only a database bears out.

    A name that the user truly gave needs none.
    """
    (reply,) = read_replies([turn.response])
    mentions, _ = mentions_in(reply, turn.predicted.acts, _NONE, {}, turn.truth.domains)
    if not mentions or any(one.field != NAME for one in mentions):
        return bool(mentions)
    values = [value for slots in (turn.truth.state or {}).values() for value in slots.values()]
    given = VenueDatabase({"": [{"name": value} for value in values]})
    return any(given.name_of(one.value) is None for one in mentions)
