"""A comparison of two or more sets of conversations: what moved, what is open, what was fixed and what broke.

Made once, and printed by the terminal, the page, Markdown, JSON and Python in the same words. The first side is the
baseline; every other side is held against it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal

import msgspec

from convoscope.analysis.answer.model import Clause, Noun
from convoscope.metrics.declaration import Better

Overall = Literal["better", "worse", "mixed", "no_clear_difference", "nothing_to_compare"]
Finding = Literal["better", "worse", "open", "not_compared"]


class Side(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of the sets of conversations."""

    name: str
    """As people call it: the name of the run, or the value of the dimension."""
    conversations: int
    run: str = ""
    """The folder of its run."""


class ComparedFigure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of a side against the baseline."""

    metric: str
    """As in the summary: metric, variant, reduction, judge."""
    label: str
    """In plain words."""
    unit: str
    better: Better
    importance: int
    side: str
    """The side that is held against the baseline."""
    finding: Finding
    before: float | None = None
    after: float | None = None
    """Over the same pairs, where pairs are compared; so they may differ from the figures of the runs."""
    difference: float | None = None
    """After minus before."""
    low: float | None = None
    high: float | None = None
    """The 95 % interval of the difference. An end that is null is open."""
    n: int = 0
    """Pairs that are compared; without pairs, independent conversations of the smaller side."""
    paired: bool = False
    p: float | None = None
    """How likely so large a difference is by chance."""
    p_holm: float | None = None
    """The same, corrected for how many figures are compared. A claim needs 0.05 or less."""
    q: float | None = None
    """By Benjamini and Hochberg: of the figures up to this one, the share that may be false."""
    small: bool = False
    """The difference is clear, but smaller than what matters in practice."""
    smallest: float = 0.0
    """The least difference that matters in practice."""
    within: str = ""
    """The dimension that the difference was held within, because the two sides have another mix of it."""
    needs: int | None = None
    """Of an open figure: about how many more pairs, or conversations a side, would decide it."""
    doubt: str = ""
    """Why the difference decides nothing, whatever its interval: another coverage, another mix, a judge."""
    remark: str = ""
    """What to know of it, in a few words: why it is not compared, or what an open one would need."""
    same_as: str = ""
    """The figure that has the same values in every conversation: both are one test."""


class DifferenceClaim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A difference that the data decide."""

    metric: str
    verdict: Literal["better", "worse"]
    difference: float
    low: float | None
    high: float | None
    n: int
    paired: bool
    small: bool = False
    """Clear, but smaller than what matters in practice."""
    side: str = ""
    """The side that is held against the baseline, where there are several."""
    same_as: str = ""
    """The claimed figure that has the same values in every conversation."""


class ConversationPair(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The same scenario on both sides, where the outcome is another."""

    moved: Literal["fixed", "broken"]
    scenario: str
    trial: str = ""
    side: str
    before: str
    """The id of the conversation of the baseline."""
    before_number: int
    after: str
    after_number: int
    reason: str = ""
    """Why the lost one of the two was lost."""


class MovedGroup(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A group of conversations in which a figure moved, and is claimed to have."""

    by: dict[str, str]
    figure: ComparedFigure
    sentence: str


class MovedMix(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A kind of conversations that one side has more of."""

    dimension: str
    value: str
    before: float
    """Its share of the baseline."""
    after: float
    side: str
    sentence: str


class RunComparison(msgspec.Struct, frozen=True, kw_only=True):
    """What a person wants to know of two or more sets of conversations."""

    noun: Noun
    sides: tuple[Side, ...]
    """The first is the baseline."""
    by: str = ""
    """The dimension whose values are the sides; empty where they are runs."""
    verdict: Overall
    sentences: tuple[Clause, ...]
    claims: tuple[DifferenceClaim, ...] = ()
    """What the data decide, most important first; empty where they decide nothing."""
    figures: tuple[ComparedFigure, ...] = ()
    """Worse, better, open, not compared; each by importance."""
    pairing: str = ""
    """Whether pairs are compared, and what is left out, in a sentence."""
    shared: int = 0
    """Scenarios that both sides have."""
    fixed: int = 0
    broken: int = 0
    pairs: tuple[ConversationPair, ...] = ()
    """The conversations that were fixed or broke, broken first."""
    groups: tuple[MovedGroup, ...] = ()
    mix: tuple[MovedMix, ...] = ()
    notes: tuple[str, ...] = ()
    """What limits the comparison: another label, another version of a metric, an invalid run."""

    html: ClassVar[Callable[[RunComparison], str] | None] = None
    """How a notebook shows it. The reports say so, of which a comparison knows nothing."""

    def _repr_html_(self) -> str | None:
        return None if RunComparison.html is None else RunComparison.html(self)
