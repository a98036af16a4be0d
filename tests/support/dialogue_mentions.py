"""The names and details of one reply, as the scores of a turn have them."""

from __future__ import annotations

from collections.abc import Collection

from convoscope.conversation.annotations import Act
from convoscope.metrics.dialogue.mentions import Mention
from convoscope.metrics.dialogue.turn_scores import score_turn
from convoscope.metrics.dialogue.turns import turn_of
from convoscope.metrics.dialogue.venues import VenueDatabase


def entities(
    said: str, venues: VenueDatabase, *acts: Act, named: Collection[str] = (), domains: Collection[str] = ()
) -> tuple[Mention, ...]:
    """What a reply with these acts mentions, after these venues were named, in a turn about these domains."""
    turn = turn_of(response=said, predicted_acts=acts, true_domains=domains)
    return score_turn(turn, venues, named=named).entities or ()
