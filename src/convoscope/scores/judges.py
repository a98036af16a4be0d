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
ANNOTATOR_MARK = "+annotator"
"""Follows the model in the name of a judge that looked for findings, which a metric then counted."""
FUNCTION = "python/"
"""Before the name of a judge that is a Python function."""
VERSION_MARK = ":"
"""Before the version that such a function states."""


def is_panel(judge: str) -> bool:
    """Whether this is what several judges of one kind come to."""
    return judge.startswith(PANEL)


def is_model_panel(judge: str) -> bool:
    """Whether this is what several models come to."""
    return is_panel(judge) and kind_of(judge) == "model"


def is_nameless(judge: str) -> bool:
    """Whether its name leaves open what it answers by: programs of others, and functions that state no version."""
    name = judge.rpartition("@")[0]
    return judge.startswith("external:") or (name.startswith(FUNCTION) and VERSION_MARK not in name)


def is_annotator(judge: str) -> bool:
    """Whether a language model found what was counted. It has no rubric: gold labels say how good it is."""
    return judge.rpartition("@")[0].endswith(ANNOTATOR_MARK)


def kind_of(judge: str) -> Kind:
    """What a judge is, or all judges of a panel are: a panel never mixes kinds."""
    if judge == COMPUTED:
        return "computed"
    first = judge.removeprefix(PANEL).partition(":")[0]
    return "human" if first == "human" else "external" if first == "external" else "model"


def model_of(judge: str) -> str:
    """`provider/model` of a judge's identity, in whichever form it was asked."""
    return (judge.rpartition("@")[0] or judge).removesuffix(YES_NO_MARK).removesuffix(ANNOTATOR_MARK)


def speaking_order(judge: str) -> tuple[int, bool, str]:
    """Judges in this order, the last one speaks for the metric: a panel for its judges, the asked for the rest."""
    return _ORDER.index(kind_of(judge)), is_panel(judge), judge


def speakers(judges: Iterable[str]) -> set[str]:
    """Of each kind its panel, else all its judges."""
    named = set(judges)
    with_panel = {kind_of(judge) for judge in named if is_panel(judge)}
    return {judge for judge in named if is_panel(judge) or kind_of(judge) not in with_panel}
