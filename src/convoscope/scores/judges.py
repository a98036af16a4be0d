"""Who gave a score: people, programs of others, or judges that were asked; and which of several speaks for a metric."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from convoscope.scores.observation import COMPUTED

Kind = Literal["computed", "external", "human", "model"]
"""From the one that speaks last for a metric to the one that speaks first: a judge that the user named was asked about
every conversation; people are more than programs of others."""
_ORDER: tuple[Kind, ...] = ("computed", "external", "human", "model")
PANEL = "panel:"
YES_NO_MARK = "+yesno"
"""Follows the model in the name of a judge that was asked yes/no questions."""


def is_panel(judge: str) -> bool:
    """Whether this is what several judges of one kind come to."""
    return judge.startswith(PANEL)


def kind_of(judge: str) -> Kind:
    """What a judge is, or all judges of a panel are: a panel never mixes kinds."""
    if judge == COMPUTED:
        return "computed"
    first = judge.removeprefix(PANEL).partition(":")[0]
    return "human" if first == "human" else "external" if first == "external" else "model"


def speaking_order(judge: str) -> tuple[int, bool, str]:
    """Judges in this order, the last one speaks for the metric: a panel for its judges, the asked for the rest."""
    return _ORDER.index(kind_of(judge)), is_panel(judge), judge


def speakers(judges: Iterable[str]) -> set[str]:
    """Of each kind its panel, else all its judges."""
    named = set(judges)
    with_panel = {kind_of(judge) for judge in named if is_panel(judge)}
    return {judge for judge in named if is_panel(judge) or kind_of(judge) not in with_panel}
