"""Many conversations at once, for a metric that fills columns instead of giving one score after the other."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

from convoscope.conversation import Conversation
from convoscope.scores.observation import Observation, measured, ratio
from convoscope.views.items import Subject

_HUGE = sys.float_info.max
_View = TypeVar("_View")


class Conversations:
    """Conversations that a metric can speak of, and what it says of them.

    A metric whose parameter is annotated with this class is called once for many conversations. It goes through
    them in their order and fills the columns. That pays where there are very many small conversations. Where it
    raises, each conversation is tried by itself, so that only those that are to blame have an error.
    """

    def __init__(self, conversations: Sequence[Conversation], shared: dict[Any, Any] | None = None) -> None:
        self.conversations = conversations
        self.shared: dict[Any, Any] = {} if shared is None else shared
        self.places: list[int] = []
        """For each score the place of its conversation, ascending."""
        self.subjects: list[Subject] = []
        self.values: list[float] = []
        self.details: list[Mapping[str, Any] | None] = []
        self.divided: list[int] = []
        """Which of the scores are ratios, by their places in the columns."""
        self.numerators: list[float] = []
        self.denominators: list[float] = []
        self.others: dict[int, Observation] = {}
        """Scores that are more than a value, by their places in the columns."""

    def __len__(self) -> int:
        return len(self.places)

    def together(self, view: Callable[[Sequence[Conversation]], _View]) -> _View:
        """A view of all the conversations, made once for the metrics that look at them together."""
        if view not in self.shared:
            self.shared[view] = view(self.conversations)
        result: _View = self.shared[view]
        return result

    def measured(self, place: int, subject: Subject, value: float, details: Mapping[str, Any] | None = None) -> None:
        """A subject of the conversation at this place has this value."""
        self.places.append(place)
        self.subjects.append(subject)
        self.values.append(value)
        self.details.append(details)

    def ratio(
        self, place: int, subject: Subject, above: float, below: float, details: Mapping[str, Any] | None = None
    ) -> None:
        """A subject of the conversation at this place has the value above ÷ below, which is not zero."""
        self.divided.append(len(self.places))
        self.numerators.append(above)
        self.denominators.append(below)
        self.measured(place, subject, above / below, details)

    def add(self, place: int, observation: Observation) -> None:
        """Any other score of the conversation at this place."""
        self.others[len(self.places)] = observation
        self.measured(place, observation.subject, 0.0, observation.details)

    def is_whole(self) -> bool:
        """Each conversation has a score, no subject has two, all places ascend, and every value is a number."""
        places = self.places
        if len(set(places)) != len(self.conversations) or places != sorted(places):
            return False
        if len(places) > len(self.conversations) and len(set(zip(places, self.subjects, strict=True))) < len(places):
            return False
        if any(type(below) is not float or not 0 < below <= _HUGE for below in self.denominators):
            return False
        numbers = chain(self.values, self.numerators)
        return all(type(value) is float and -_HUGE <= value <= _HUGE for value in numbers)

    def observations(self) -> list[Observation]:
        """The scores one by one; refuses what is no score."""
        scores = [
            measured(subject, value, details=details)
            for subject, value, details in zip(self.subjects, self.values, self.details, strict=True)
        ]
        for place, above, below in zip(self.divided, self.numerators, self.denominators, strict=True):
            scores[place] = ratio(self.subjects[place], above, below, empty="nothing", details=self.details[place])
        for place, observation in self.others.items():
            scores[place] = observation
        return scores
