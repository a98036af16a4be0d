"""How scores become fewer: the two steps from subjects to a group, as objects that a metric declares.

A reducer says by itself what it asks of each score, and what a group needs of each conversation to combine them.
One of your own is another object; `register` makes it known by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import fsum
from statistics import median
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar

import msgspec

from convoscope.errors import DeclarationError
from convoscope.scores.observation import Counts, Observation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Codes = NDArray[np.int64]

Asks = Literal["value", "ratio", "counts"]
"""What each measured score must carry: its value alone, a numerator and denominator, or counts."""


class MeasuredSubjects(Protocol):
    """The measured subjects of many conversations, those of a conversation side by side, and their sums."""

    @property
    def values(self) -> Floats: ...
    @property
    def starts(self) -> Codes: ...
    @property
    def ends(self) -> Codes: ...
    @property
    def n(self) -> Codes: ...
    @property
    def total(self) -> Floats: ...
    @property
    def numerator(self) -> Floats: ...
    @property
    def denominator(self) -> Floats: ...
    @property
    def tp(self) -> Floats: ...
    @property
    def fp(self) -> Floats: ...
    @property
    def fn(self) -> Floats: ...


class Within(msgspec.Struct, frozen=True):
    """From the measured subjects of a conversation to the conversation. One subject alone is never reduced."""

    name: str
    reduce: Callable[[Sequence[Observation]], float | None]
    """The value of one conversation."""
    many: Callable[[MeasuredSubjects], Floats] | None = None
    """Those of many conversations, the same to the last bit. Without it each is asked for by itself."""
    asks: Asks = "value"
    whole: bool = False
    """A conversation has a value only where each of its subjects that could have one has one."""


class Sums(NamedTuple):
    """A figure as Σ above ÷ Σ below over conversations, with the reason where the sum below is zero."""

    name: str
    """Empty for the headline."""
    above: Floats
    below: Floats
    empty: str = "nothing_to_average"


class Across(msgspec.Struct, frozen=True):
    """From conversations to a group: figures that are ratios of two sums over conversations.

    That one shape serves the figure, its interval and any grouping. The first figure is the headline.
    """

    name: str
    combines: tuple[str, ...]
    """What a group needs of each conversation."""
    sums: Callable[[Any], list[Sums]]
    """The figures, from columns of these names."""
    asks: Asks = "value"
    figures: tuple[str, ...] = ("",)
    """Their names."""


class AcrossReported(Across, frozen=True):
    """The same of what reports itself on one side alone: failures say so, what went well may say nothing.

    Where a failure was measured, and no fewer subjects are missing than were measured, a figure has no value.
    """

    one_sided: str = ""
    """The reason of that."""


class Percentile(msgspec.Struct, frozen=True):
    """From conversations to a group: a percentile of the values of all subjects, pooled.

    Linear interpolation between the two nearest ranks; the hundredth is the greatest value.
    """

    q: float

    combines = ("subjects",)
    asks: Asks = "value"
    figures = ("",)

    def __post_init__(self) -> None:
        if not 0 < self.q <= 100:
            raise ValueError(f"a percentile lies between 0 and 100, not at {self.q}")

    @property
    def name(self) -> str:
        return "max_of_subjects" if self.q == 100 else f"percentile:{self.q:g}"


# MeasuredSubjects → conversation.


def _values(measured: Sequence[Observation]) -> list[float]:
    return [one.value for one in measured if one.value is not None]


def _mean(measured: Sequence[Observation]) -> float:
    return fsum(_values(measured)) / len(measured)


def _ratio(measured: Sequence[Observation]) -> float:
    return fsum(one.numerator or 0.0 for one in measured) / fsum(one.denominator or 0.0 for one in measured)


def pooled(measured: Sequence[Observation]) -> Counts:
    """The counts of all subjects together."""
    counts = [one.counts for one in measured if one.counts is not None]
    return Counts(fsum(one.tp for one in counts), fsum(one.fp for one in counts), fsum(one.fn for one in counts))


def _medians(subjects: MeasuredSubjects) -> Floats:
    import numpy as np

    pairs = zip(subjects.starts.tolist(), subjects.ends.tolist(), strict=True)
    return np.array([median(subjects.values[start:end].tolist()) for start, end in pairs])


def _maxima(subjects: MeasuredSubjects) -> Floats:
    import numpy as np

    return np.maximum.reduceat(subjects.values, subjects.starts)


def _minima(subjects: MeasuredSubjects) -> Floats:
    import numpy as np

    return np.minimum.reduceat(subjects.values, subjects.starts)


def _ratios(subjects: MeasuredSubjects) -> Floats:
    return subjects.numerator / subjects.denominator


MEAN = Within("mean", _mean, lambda subjects: subjects.total / subjects.n)
WHOLE_MEAN = Within("whole_mean", _mean, lambda subjects: subjects.total / subjects.n, whole=True)
"""The mean, and nothing where the value of a subject is missing: that one may be the one that matters."""
SUM = Within("sum", lambda measured: fsum(_values(measured)), lambda subjects: subjects.total)
RATIO_WITHIN = Within("ratio", _ratio, _ratios, asks="ratio")
"""Σ numerators ÷ Σ denominators."""
RATIO = RATIO_WITHIN
WHOLE_RATIO = Within("whole_ratio", _ratio, _ratios, asks="ratio", whole=True)
"""The ratio, and nothing where the value of a subject is missing: that one may be the one that matters."""
COUNTS = Within(
    "counts",
    lambda measured: pooled(measured).f1,
    lambda subjects: 2 * subjects.tp / (2 * subjects.tp + subjects.fp + subjects.fn),
    asks="counts",
)
MEDIAN = Within("median", lambda measured: median(_values(measured)), _medians)
MAXIMUM = Within("max", lambda measured: max(_values(measured)), _maxima)
MINIMUM = Within("min", lambda measured: min(_values(measured)), _minima)
LAST = Within("last", lambda measured: measured[-1].value, lambda subjects: subjects.values[subjects.ends - 1])


# Conversations → group.


def _of_counts(columns: Any) -> list[Sums]:
    tp, fp, fn = columns.tp, columns.fp, columns.fn
    return [
        Sums("", 2 * tp, 2 * tp + fp + fn, empty="nothing_to_find"),
        Sums("precision", tp, tp + fp, empty="nothing_predicted"),
        Sums("recall", tp, tp + fn, empty="nothing_in_gold"),
    ]


def _mean_of_conversations(columns: Any) -> list[Sums]:
    return [Sums("", columns.value, columns.value * 0.0 + 1.0)]


def _sum_of_conversations(columns: Any) -> list[Sums]:
    # n times the mean, so that a sum has an interval like any other figure.
    return [Sums("", columns.value, columns.value * 0.0 + 1 / max(1, len(columns.value)))]


MEAN_OF_CONVERSATIONS = Across("mean_of_conversations", ("value",), _mean_of_conversations)
MEAN_OF_SUBJECTS = Across("mean_of_subjects", ("total", "n"), lambda columns: [Sums("", columns.total, columns.n)])
RATIO_OF_SUMS = Across(
    "ratio_of_sums",
    ("numerator", "denominator"),
    lambda columns: [Sums("", columns.numerator, columns.denominator)],
    asks="ratio",
)
RATIO_OF_REPORTED = AcrossReported(
    "ratio_of_reported",
    ("numerator", "denominator"),
    lambda columns: [Sums("", columns.numerator, columns.denominator)],
    asks="ratio",
    one_sided="too_few_results_stated",
)
MEAN_OF_REPORTED = AcrossReported(
    "mean_of_reported", ("value",), _mean_of_conversations, one_sided="too_few_results_stated"
)
SUM_OF_CONVERSATIONS = Across("sum_of_conversations", ("value",), _sum_of_conversations)
POOLED_COUNTS = Across(
    "pooled_counts", ("tp", "fp", "fn"), _of_counts, asks="counts", figures=("", "precision", "recall")
)
MAXIMUM_OF_SUBJECTS = Percentile(100)


def percentile(q: float) -> Percentile:
    """The q-th percentile of the values of all subjects, pooled."""
    if q == 100:
        raise ValueError("a percentile lies between 0 and 100, not at 100: the greatest value is MAXIMUM_OF_SUBJECTS")
    return Percentile(q)


class Reduce(msgspec.Struct, frozen=True):
    """One way from subjects to a group figure."""

    within: Within = MEAN
    across: Across | Percentile = MEAN_OF_CONVERSATIONS

    def __post_init__(self) -> None:
        _refuse_other(self.within, (Within,), "MEAN")
        _refuse_other(self.across, (Across, Percentile), "MEAN_OF_CONVERSATIONS")


def _refuse_other(reducer: object, kinds: tuple[type, ...], such_as: str) -> None:
    if not isinstance(reducer, kinds):
        raise DeclarationError(f"{reducer!r} is not a reducer", hint=f"give an object such as {such_as}, not its name")


Reducer = TypeVar("Reducer", Within, Across)

WITHIN: dict[str, Within] = {}
ACROSS: dict[str, Across] = {}


def register(reducer: Reducer) -> Reducer:
    """Make a reducer known by its name, so that runs can be read back that were reduced by it."""
    registry: dict[str, Any] = WITHIN if isinstance(reducer, Within) else ACROSS
    if reducer.name in registry and _home(registry[reducer.name]) != _home(reducer):
        raise DeclarationError(f"a reducer called {reducer.name} exists already", hint="give it another name")
    registry[reducer.name] = reducer  # a file that was changed, and is loaded again, declares it anew
    return reducer


def _home(reducer: Within | Across) -> str:
    return (reducer.reduce if isinstance(reducer, Within) else reducer.sums).__module__


for _within in (MEAN, WHOLE_MEAN, SUM, RATIO_WITHIN, WHOLE_RATIO, COUNTS, MEDIAN, MAXIMUM, MINIMUM, LAST):
    register(_within)
for _across in (MEAN_OF_CONVERSATIONS, MEAN_OF_SUBJECTS, RATIO_OF_SUMS, SUM_OF_CONVERSATIONS, POOLED_COUNTS):
    register(_across)
for _across in (RATIO_OF_REPORTED, MEAN_OF_REPORTED):
    register(_across)


def figures_of(across: str) -> tuple[str, ...]:
    """The names of the figures that a reducer gives, by the reducer's name; a percentile gives one without a name."""
    return ACROSS[across].figures if across in ACROSS else ("",)
