"""A metric is one small pure function with a declaration; so is a figure derived from other figures."""

from __future__ import annotations

import operator
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from inspect import cleandoc
from pickle import PicklingError
from typing import TYPE_CHECKING, Any, Literal, Required, TypedDict, Unpack

import msgspec

from convoscope.conversation import DIMENSIONS, Conversation
from convoscope.conversation.lazy import remembered
from convoscope.errors import DeclarationError
from convoscope.metrics.items import awaited, coming, each_item, each_item_awaited, is_async
from convoscope.metrics.needs import Need, needs_of
from convoscope.metrics.perturbations import PERTURBATIONS, Perturbation
from convoscope.resources.registry import asked_by, optional_for
from convoscope.scores.observation import Observation, Status
from convoscope.scores.reducers import (
    MEAN,
    MEAN_OF_CONVERSATIONS,
    MEAN_OF_SUBJECTS,
    RATIO_OF_SUMS,
    RATIO_WITHIN,
    Across,
    Percentile,
    Reduce,
    percentile,
)
from convoscope.text.language import language_code
from convoscope.views.registry import CONVERSATION as CONVERSATION_VIEW
from convoscope.views.registry import ITEM as ITEM_VIEW
from convoscope.views.registry import View, view_for

if TYPE_CHECKING:
    from convoscope.judging.rubrics import Rubric

Level = str
"""What a metric observes: the kind of its subjects."""
CONVERSATION: Level = "conversation"
TURN: Level = "turn"
EVENT: Level = "event"
ITEM: Level = "item"

AXES: dict[Level, tuple[str, ...]] = {}
"""Kinds of subjects that runs are grouped by, each with the dimensions that distinguish subjects of one name."""


def axis(kind: Level, *, by: tuple[str, ...] = ()) -> Level:
    """Declare a kind of subjects whose names mean something, so that runs are grouped by them: states, topics, slots.

    Two subjects of one name are the same where their conversations share the dimensions of `by`.
    """
    if kind in (*DIMENSIONS, CONVERSATION, TURN, EVENT, ITEM):
        raise DeclarationError(
            f"{kind} cannot be an axis: it is the name of a dimension or a built-in level", hint="rename it"
        )
    if AXES.setdefault(kind, by) != by:
        raise DeclarationError(f"{kind} is an axis already, by {', '.join(AXES[kind])}", hint="give it another name")
    return kind


STATE: Level = axis("state", by=("flow",))

Better = Literal["higher", "lower", "neither"]
HIGHER: Better = "higher"
LOWER: Better = "lower"
NEITHER: Better = "neither"
COMPONENTS = ("triage", "memory", "policy", "action", "supervisor", "end-to-end")
"""The parts of an agent that a metric may test, in the order in which a turn passes through them."""

# Units. A share counts opportunities taken; a ratio also lies between 0 and 1 but counts nothing.
SHARE = "share"
RATIO = "ratio"
COUNT = "count"
SECONDS = "s"
WORDS = "words"

_NAME = re.compile(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_.]*")
_VARIANT = re.compile(r"[a-z0-9][a-z0-9_.-]*")
_EXAMPLE = re.compile(r"^>>> ", re.MULTILINE)

Measure = Callable[..., Any]
"""What may be declared: a function of a view of the conversation, which the annotation of its first parameter names: a
`Conversation`, its `MetricContext`, each of its items as `StandardData`, the rows of its flow's states as
`Sequence[StateRow]`, or a view of your own. Further parameters are
resources, by their annotations.

It is async where it must wait. A function of an item may give a number, and None for "no value".
"""


class TenPoints(msgspec.Struct, frozen=True):
    """A map from the raw value to 0–10: linear between the value worth 0 and the value worth 10."""

    zero: float
    ten: float
    passes_at: float = 7.0
    of: Literal["value", "ratio"] = "value"
    """What is mapped: the metric's value, or Σ numerator ÷ Σ denominator of its scores where that is another figure."""
    falls: tuple[float, float] | None = None
    """Where the best lies in the middle: up to the first value it is still worth 10, at the second it is worth 0."""

    def __post_init__(self) -> None:
        if self.zero == self.ten:
            raise DeclarationError(
                "zero and ten of TenPoints must differ", hint="zero is the value worth 0 points, ten the one worth 10"
            )
        if self.falls is not None and not self.zero < self.ten <= self.falls[0] < self.falls[1]:
            raise DeclarationError(
                "TenPoints with falls needs four values in ascending order",
                hint="zero, ten, the last value worth 10, the value worth 0 again",
            )
        if not 0 <= self.passes_at <= 10:
            raise DeclarationError(
                f"passes_at must be between 0 and 10, not {self.passes_at:g}", hint="7 is the default"
            )

    def score(self, value: float) -> float:
        share = (value - self.zero) / (self.ten - self.zero)
        if self.falls is not None:
            last, gone = self.falls
            share = min(share, (gone - value) / (gone - last))
        return 10 * min(1.0, max(0.0, share))


class Target(msgspec.Struct, frozen=True):
    """The value that a team wants to reach, for example > 0.8."""

    comparison: Literal[">", ">=", "<", "<="]
    value: float

    def is_met_by(self, value: float) -> bool:
        """Whether a value is on the right side."""
        return bool(_HOLDS[self.comparison](value, self.value))


_subject = operator.attrgetter("subject")
_HOLDS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}


class Declaration(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What every metric and every derived figure says of itself."""

    name: str
    version: int
    unit: str
    better: Better
    function: Callable[..., Any]
    reduce: Reduce = Reduce()
    variant: str = ""
    aspect: str = ""
    """The column of the flow matrix that it feeds."""
    component: str = ""
    """The part of the agent that it tests, one of COMPONENTS; of several the most important comes first."""
    ten: TenPoints | None = None
    target: Target | None = None
    label: str = ""
    """In a few plain words, as it is in the answer of a run: "wait for a reply"."""
    importance: int = 2
    """From 0 to 10: how much a person who decides on a release wants to know it."""
    sensitive_to: tuple[Perturbation, ...] | None = None
    """The nonsense that makes it worse (another, where neither direction is better); None where it is not declared."""
    undefined_under: tuple[Perturbation, ...] = ()
    """The nonsense that leaves it rightly without a value, because there is nothing left to measure."""
    languages: tuple[str, ...] = ()
    """The codes of the languages whose words it reads; none where it reads no words, or any language's.

    Words of other languages are unmeasured: `language_not_supported`."""

    def __post_init__(self) -> None:
        for kind in (*(self.sensitive_to or ()), *self.undefined_under):
            if kind not in PERTURBATIONS:
                raise DeclarationError(
                    f"{self.key}: unknown nonsense {kind!r}", hint=f"there is {', '.join(PERTURBATIONS)}"
                )
        if not _NAME.fullmatch(self.name):
            raise DeclarationError(f"{self.name!r} is not a metric's name", hint="write family.name, in small letters")
        if self.variant and not _VARIANT.fullmatch(self.variant):
            raise DeclarationError(f"{self.variant!r} is not a variant's name", hint="small letters, digits, . _ -")
        for language in self.languages:
            if language_code(language) != language:
                raise DeclarationError(f"{self.key}: {language!r} is no code of a language", hint="two letters: en, ja")
        if not 0 <= self.importance <= 10:
            raise DeclarationError(f"{self.key} has importance {self.importance}", hint="from 0 to 10")
        if self.version < 1:
            raise DeclarationError(f"{self.key} has version {self.version}", hint="versions count from 1")
        if not self.description:
            raise DeclarationError(f"{self.key} has no docstring", hint="the docstring is the definition")

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str, ...]]:
        # Its function hides behind the declaration of its name, so that a process that does not share
        # our memory looks it up instead.
        from convoscope.metrics.registry import known

        if known(self.key) is self:
            return (_look_up, (self.key,))
        module, name = self.function.__module__, self.function.__qualname__
        if getattr(sys.modules.get(module), name, None) is not self:
            raise PicklingError(f"{self.key} cannot be found by its name in {module}")
        return (_look_up, (self.key, module, name))

    @remembered
    def key(self) -> str:
        """The name as it prints: `jga@tomiinek`, or without a suffix for the default variant."""
        return f"{self.name}@{self.variant}" if self.variant else self.name

    @property
    def family(self) -> str:
        return self.name.split(".", 1)[0]

    @remembered
    def description(self) -> str:
        """The definition, without the example below it."""
        return _EXAMPLE.split(cleandoc(self.function.__doc__ or ""), maxsplit=1)[0].strip()

    @property
    def question(self) -> str:
        """The first line of the definition."""
        return self.description.partition("\n")[0]


class Metric(Declaration, frozen=True, kw_only=True, dict=True):
    """A declared metric. Call it with a conversation to get its observations."""

    observes: Level
    needs: tuple[Need, ...] = ()
    also: Mapping[str, Across | Percentile] = {}
    """Further second steps, from conversations to a group, each with the name that it prints under."""
    rubric: Rubric | None = None
    """What a scorer of the user's own asks a judge; the rubrics of ours are files."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for across in self.also.values():
            Reduce(across=across)  # refuses what is no reducer

    @remembered
    def view(self) -> View:
        """What the function asks for, by the annotation of its first parameter."""
        return view_for(self.function, self.key)

    @remembered
    def takes_item(self) -> bool:
        """The function asks for a `StandardData`, and is called once for each item."""
        return self.view.type == ITEM_VIEW

    @remembered
    def resources(self) -> Mapping[str, str]:
        """The types of the resources that the function takes, by parameter. It is given those that there are."""
        return {**asked_by(self.function, self.key), **optional_for(self.function)}

    @remembered
    def waits(self) -> bool:
        """The function is async: many conversations can be asked about at once."""
        return is_async(self.function)

    def __call__(self, conversation: Conversation, **resources: Any) -> tuple[Observation, ...]:
        return self.checked(self.measure(conversation, **resources))

    async def ask(self, conversation: Conversation, **resources: Any) -> tuple[Observation, ...]:
        """The observations of a metric that waits, for a caller that has other things to do meanwhile."""
        if self.takes_item:
            function = partial(self.function, **resources)
            return self.checked([one async for one in each_item_awaited(function, conversation)])
        return self.checked(await coming(self.measure(conversation, **resources)))

    def checked(self, result: Any) -> tuple[Observation, ...]:
        """The observations that the function gave; waits for those that are still to come."""
        result = awaited(result)
        if isinstance(result, Observation):
            return (result,)
        if not isinstance(result, Iterable):
            raise TypeError(f"gave {result!r}, not a score: return measured(conversation, value), or yield scores")
        observations: tuple[Observation, ...] = tuple(result)
        self.refuse_twins(observations)
        return observations

    def refuse_twins(self, observations: Sequence[Observation]) -> None:
        """A judge has one score for each subject and repeat."""
        if len(set(map(_subject, observations))) < len(observations):
            keys = {(one.subject, one.judge, one.repeat) for one in observations}
            if len(keys) < len(observations):
                raise ValueError(f"{self.key} gave two scores for one subject")

    @remembered
    def measure(self) -> Callable[..., Any]:
        """The function, given the view of a conversation that it asks for."""
        function, view = self.function, self.view
        if self.takes_item:
            return lambda conversation, **resources: each_item(partial(function, **resources), conversation)
        make = view.make
        if view.type == CONVERSATION_VIEW or make is None:
            return function
        return lambda conversation, **resources: function(make(conversation), **resources)


class Derived(Declaration, frozen=True, kw_only=True, dict=True):
    """A figure computed from other figures. Null when an input is.

    Over a conversation, the function gets the value of each input in that conversation, and what it
    gives is a score like any other. Over a group it gets, for each input, one `Sample` per
    conversation of the group; of an input that is itself a figure over a group, it gets the value.
    """

    over: Literal["conversation", "group"]
    inputs: tuple[str, ...]
    unscored: str = "not_enough"
    """The reason code where the function gives None."""
    fails_at: float | None = None
    """Of a gate: an input with this value or a lower one makes it 0, whatever is known of the others."""
    instead: Mapping[str, str] = {}
    """Over a conversation: the metric whose value is used where an input has none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.inputs:
            raise DeclarationError(f"{self.key} has no inputs", hint="name the metrics it needs in `inputs`")


class GroupSample(msgspec.Struct, frozen=True):
    """What one metric says of one conversation, with the dimensions to group it by."""

    conversation: str
    dimensions: Mapping[str, str]
    status: Status
    value: float | None
    """None unless measured."""


class DeclarationOptions(TypedDict, total=False):
    """What `@metric` and `@derived` take: the fields of a `Declaration`."""

    version: Required[int]
    unit: Required[str]
    better: Required[Better]
    reduce: Reduce
    variant: str
    aspect: str
    component: str
    ten: TenPoints | None
    target: Target | None
    label: str
    importance: int
    sensitive_to: tuple[Perturbation, ...] | None
    undefined_under: tuple[Perturbation, ...]
    languages: tuple[str, ...]


class MetricOptions(DeclarationOptions, total=False):
    """What only `@metric` takes."""

    observes: Required[Level]
    needs: tuple[Need, ...]
    also: Mapping[str, Across | Percentile]


class DerivedOptions(DeclarationOptions, total=False):
    """What only `@derived` takes."""

    over: Required[Literal["conversation", "group"]]
    inputs: Required[tuple[str, ...]]
    unscored: str
    fails_at: float | None
    instead: Mapping[str, str]


def metric(name: str, **options: Unpack[MetricOptions]) -> Callable[[Measure], Metric]:
    """Declare a metric. The decorated function yields observations; its docstring is the definition."""
    _refuse_old_options(name, options)

    def declare(measure: Measure) -> Metric:
        needs = options.get("needs", ())
        resource_needs = [need for asked in asked_by(measure, name).values() for need in needs_of(asked)]
        missing = [need for need in dict.fromkeys(resource_needs) if need not in needs]
        whole = options.copy()
        whole["needs"] = (*needs, *missing)
        return Metric(name=name, function=measure, **whole)

    return declare


def derived(name: str, **options: Unpack[DerivedOptions]) -> Callable[[Callable[..., Any]], Derived]:
    """Declare a figure that is computed from other figures, in the order of `inputs`."""
    _refuse_old_options(name, options)
    return lambda compute: Derived(name=name, function=compute, **options)


_OLD_OPTIONS = {"notices": "sensitive_to", "falls_silent": "undefined_under"}


def _refuse_old_options(name: str, options: Mapping[str, Any]) -> None:
    for old, new in _OLD_OPTIONS.items():
        if old in options:
            raise DeclarationError(f"{name}: the option {old} is now {new}", hint=f"write {new}= instead")


def _look_up(key: str, module: str = "", name: str = "") -> Any:
    from convoscope.metrics.registry import known

    return getattr(import_module(module), name) if module else known(key)


MEAN_OF_ALL = Reduce(MEAN, MEAN_OF_SUBJECTS)
"""The mean of all turns, events or items, whichever conversation they are of."""
SUM_OVER_SUM = Reduce(RATIO_WITHIN, RATIO_OF_SUMS)
"""Σ numerators ÷ Σ denominators."""
P50_P95 = {"p50": percentile(50), "p95": percentile(95)}
FULL_MARKS = TenPoints(zero=0.0, ten=1.0)
"""0 to 1 is worth 0 to 10."""

share_metric = partial(metric, unit=SHARE, reduce=SUM_OVER_SUM)
"""What share of the opportunities was taken: each observation counts a numerator of a denominator."""
conversation_share_metric = partial(
    metric, observes=CONVERSATION, unit=SHARE, better=HIGHER, reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS)
)
"""What share of the conversations is good: 1 or 0 of each."""
item_metric = partial(metric, observes=ITEM, better=HIGHER, reduce=MEAN_OF_ALL, ten=FULL_MARKS)
"""How good is an item, from 0 to 1."""
wait_metric = partial(metric, observes=TURN, unit=SECONDS, better=LOWER, reduce=MEAN_OF_ALL, also=P50_P95)
"""How long something takes in each turn; longer is worse."""
