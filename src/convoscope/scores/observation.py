"""What a measurement gives: a value, or the reason why there is none. Never a number for nothing."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeGuard, Union, get_args

import msgspec
from msgspec.structs import force_setattr as _set

from convoscope.conversation import Conversation, Item, Turn
from convoscope.conversation.events import AnyEvent, Event
from convoscope.views import MetricContext
from convoscope.views.items import WHOLE, State, Subject
from convoscope.views.registry import is_view

if TYPE_CHECKING:
    from convoscope.views.flow.state_rows import StateRow
    from convoscope.views.standard_data.model import StandardData
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice

Status = Literal["measured", "not_applicable", "unmeasured", "error"]

MEASURED: Status = "measured"
NOT_APPLICABLE: Status = "not_applicable"
UNMEASURED: Status = "unmeasured"
ERROR: Status = "error"

STATUSES: tuple[Status, ...] = (MEASURED, NOT_APPLICABLE, UNMEASURED, ERROR)
"""In columns a status is its place here."""

COMPUTED = "(computed)"
"""The judge of a score that no judge made."""

_FAR = 2**63
_NEAR = -_FAR
"""Positions are kept as whole numbers of 64 bits."""
_HUGE = sys.float_info.max
_TINY = -_HUGE
_CODE = re.compile(r"[a-z][a-z0-9_]*")
_MANY = 4096
"""Subjects and reason codes of which no more than this are kept at hand: logs may hold any number."""


class Counts(NamedTuple):
    """What was found rightly, found wrongly, and missed. Weighted counts are not whole numbers."""

    tp: float
    fp: float
    fn: float

    @property
    def f1(self) -> float | None:
        total = 2 * self.tp + self.fp + self.fn
        return 2 * self.tp / total if total else None

    def check(self) -> None:
        """Refuse what cannot have been counted, and what was counted in nothing."""
        if not all(_is_number(count) and count >= 0 for count in self):
            raise ValueError("counts must be finite and not negative")
        if not any(self):
            raise ValueError("counts must not all be zero")


class Observation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One measurement of one subject.

    Measured: a finite value and no reason. Anything else: no value, and a reason that can be
    counted (a short code) with a detail for a person. Nothing between can be constructed.
    """

    subject: Subject
    status: Status
    value: float | None = None
    numerator: float | None = None
    denominator: float | None = None
    counts: Counts | None = None
    reason: str = ""
    detail: str = ""
    details: Mapping[str, Any] | None = None
    judge: str = COMPUTED
    repeat: int = 0

    def __post_init__(self) -> None:
        kind, id, position = self.subject
        if not (isinstance(kind, str) and isinstance(id, str) and isinstance(self.judge, str)):
            raise ValueError("the subject's kind and id, and the judge, are texts")
        if not (isinstance(self.repeat, int) and isinstance(position, int) and abs(position) < _FAR):
            raise ValueError("repeat and the subject's position are whole numbers")
        if self.status == MEASURED:
            if not _is_number(self.value):
                raise ValueError(f"a measured score needs a finite value, not {self.value!r}")
            if self.reason or self.detail:
                raise ValueError("a measured score has no reason")
            if self.denominator is None:
                if self.numerator is not None:
                    raise ValueError("a numerator needs a denominator")
            elif not _is_number(self.numerator) or not _is_number(self.denominator) or self.denominator <= 0:
                raise ValueError("numerator and denominator must be finite, the denominator above zero")
            if self.counts is not None:
                self.counts.check()
        elif self.status in (NOT_APPLICABLE, UNMEASURED, ERROR):
            if any(one is not None for one in (self.value, self.numerator, self.denominator, self.counts)):
                raise ValueError(f"a score that is {self.status} has no number")
            if not _CODE.fullmatch(self.reason):
                raise ValueError(
                    f"a score that is {self.status} needs a reason code such as no_clock, not {self.reason!r}"
                )
        else:
            raise ValueError(f"a score cannot be {self.status!r}")


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a run: which conversation, which metric, by whom, and what came out."""

    conversation: str
    metric: str
    variant: str = ""
    observation: Observation

    @property
    def subject(self) -> Subject:
        return self.observation.subject

    @property
    def status(self) -> Status:
        return self.observation.status

    @property
    def value(self) -> float | None:
        return self.observation.value

    @property
    def reason(self) -> str:
        return self.observation.reason

    @property
    def judge(self) -> str:
        return self.observation.judge


Subjectlike = Union[Conversation, MetricContext, Turn, Event, Item, State, Subject, "StandardData", "StateRow"]
"""What a metric may speak of. A view of your own stands for the whole conversation."""


_EVENT_TAGS: dict[type, str] = {kind: str(kind.__struct_config__.tag) for kind in get_args(AnyEvent)}


def subject_of(what: Subjectlike) -> Subject:
    """The subject that a thing of the conversation stands for."""
    kind = type(what)
    if kind is Subject:
        return what  # type: ignore[return-value]
    if kind is Turn:
        return in_turn(what.id)  # type: ignore[union-attr]
    tag = _EVENT_TAGS.get(kind)
    if tag is not None:
        return _event_subject(tag, what.seq)  # type: ignore[union-attr]
    match what:
        case Conversation() | MetricContext():
            return WHOLE
        case Item():
            return Subject("item", what.id)
        case State():
            return Subject("state", what.name, what.position)
        case Subject():
            return what
        case _:
            return _subject_of_view(what)


def _subject_of_view(what: Any) -> Subject:
    """What a view stands for; those of ours that take long to import are known by their names."""
    match type(what).__name__:
        case "StandardData":
            # An item as the published schema has it: which one it is, is known to the caller that showed it.
            return Subject("item")
        case "StateRow":
            return Subject("state", what.state, what.position)
        case _ if is_view(type(what)):
            return WHOLE
    raise TypeError(f"{what!r} is not a part of a conversation")


@lru_cache(_MANY)
def _event_subject(kind: str, seq: int) -> Subject:
    return Subject(kind, str(seq), seq if _NEAR < seq < _FAR else 0)


@lru_cache(_MANY)
def in_turn(number: int) -> Subject:
    """The turn with this id, for a metric that looks at a `MetricContext`."""
    return Subject("turn", str(number), number)


def measured(
    what: Subjectlike,
    value: float,
    *,
    judge: str = COMPUTED,
    repeat: int = 0,
    details: Mapping[str, Any] | None = None,
) -> Observation:
    """The subject has this value."""
    if type(value) is not float:
        value = _number(value)
    subject = what if type(what) is Subject else subject_of(what)
    kind, id, position = subject
    if (
        type(kind) is type(id) is str
        and type(position) is int
        and _NEAR < position < _FAR
        and type(value) is float
        and _TINY <= value <= _HUGE
        and judge is COMPUTED
        and not repeat
    ):
        observation = _copy(_MEASURED)
        _set(observation, "subject", subject)
        _set(observation, "value", value)
        if details is not None:
            _set(observation, "details", details)
        return observation
    return Observation(subject=subject, status=MEASURED, value=value, details=details, judge=judge, repeat=repeat)


def ratio(
    what: Subjectlike,
    numerator: float,
    denominator: float,
    *,
    empty: str = "nothing_to_observe",
    judge: str = COMPUTED,
    details: Mapping[str, Any] | None = None,
) -> Observation:
    """numerator ÷ denominator; a zero denominator is not applicable, for the reason `empty`."""
    if denominator == 0:
        return _without(subject_of(what), NOT_APPLICABLE, empty, "", judge)
    if type(what) is Subject:
        subject = what
        kind, id, position = subject
        usual = type(kind) is type(id) is str and type(position) is int and _NEAR < position < _FAR
    else:
        subject, usual = subject_of(what), True
    value = numerator / denominator
    above = numerator if type(numerator) is float else _number(numerator)
    below = denominator if type(denominator) is float else _number(denominator)
    if (
        usual
        and type(value) is type(above) is type(below) is float
        and _TINY <= value <= _HUGE
        and _TINY <= above <= _HUGE
        and 0 < below <= _HUGE
        and judge is COMPUTED
    ):
        observation = _copy(_MEASURED)
        _set(observation, "subject", subject)
        _set(observation, "value", value)
        _set(observation, "numerator", above)
        _set(observation, "denominator", below)
        if details is not None:
            _set(observation, "details", details)
        return observation
    return Observation(
        subject=subject,
        status=MEASURED,
        value=value,
        numerator=above,
        denominator=below,
        details=details,
        judge=judge,
    )


def counted(
    what: Subjectlike,
    *,
    tp: float,
    fp: float,
    fn: float,
    empty: str = "nothing_to_find",
    details: Mapping[str, Any] | None = None,
) -> Observation:
    """Found, wrongly found and missed; the value is F1. Nothing to find and nothing found is not applicable."""
    subject = subject_of(what)
    counts = Counts(float(tp), float(fp), float(fn))
    if not any(counts):
        return Observation(subject=subject, status=NOT_APPLICABLE, reason=empty)
    counts.check()
    f1 = counts.f1
    return Observation(subject=subject, status=MEASURED, value=f1, counts=counts, details=details)


def not_applicable(what: Subjectlike, reason: str, detail: str = "", *, judge: str = COMPUTED) -> Observation:
    """There was no opportunity: by definition nothing to measure here."""
    return _without(subject_of(what), NOT_APPLICABLE, reason, detail, judge)


def unmeasured(what: Subjectlike, reason: str, detail: str = "", *, judge: str = COMPUTED) -> Observation:
    """It could be measured, but data or a judge is missing."""
    return _without(subject_of(what), UNMEASURED, reason, detail, judge)


def failed(what: Subjectlike, reason: str, detail: str, *, judge: str = COMPUTED) -> Observation:
    """Measuring broke."""
    return _without(subject_of(what), ERROR, reason, detail, judge)


# Most observations are plain, and there are many. What is made below was looked at by its maker, so it is copied
# from one that was checked, and not checked again. Whatever is not plain goes through the check of `Observation`.


def _without(subject: Subject, status: Status, reason: str, detail: str, judge: str) -> Observation:
    model = _without_value(status, reason)
    if model is None or judge is not COMPUTED or not _is_usual(subject):
        return Observation(subject=subject, status=status, reason=reason, detail=detail, judge=judge)
    observation = _copy(model)
    _set(observation, "subject", subject)
    if detail:
        _set(observation, "detail", detail)
    return observation


@lru_cache(_MANY)
def _without_value(status: Status, reason: str) -> Observation | None:
    return Observation(subject=WHOLE, status=status, reason=reason) if _CODE.fullmatch(reason) else None


def _is_usual(subject: Subject) -> bool:
    kind, id, position = subject
    return type(kind) is type(id) is str and type(position) is int and _NEAR < position < _FAR


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, float) and math.isfinite(value)


def _number(value: Any) -> float:
    """Whole numbers, truth values and NumPy's numbers become floats; anything else is left for the check to refuse."""
    return float(value) if type(value) is int or isinstance(value, Real) else value


_copy: Callable[[Observation], Observation] = Observation.__copy__  # type: ignore[attr-defined]
_MEASURED = Observation(subject=WHOLE, status=MEASURED, value=0.0)


LONGEST_EVIDENCE = 20_000
"""Bytes of JSON that are kept beside one score."""
LONGEST_NAME = 1_000
"""Characters that are kept of a subject, a reason and its detail."""
LONGEST_ID = 10_000
"""And of the id of a conversation, by which it is asked for."""

_encode = msgspec.json.Encoder(enc_hook=repr).encode
_CUTS = ((1_000, 100), (200, 20), (50, 5))
"""Characters of a text and entries of a list or an object: the first of these that makes evidence short enough."""


def evidence(details: Mapping[str, Any] | None) -> str | None:
    """As JSON; where it is cut, it says so under `cut`. What JSON cannot say is written as Python would show it."""
    if details is None:
        return None
    try:
        written = _encode(details)
    except Exception:  # circles, depths, numbers and reprs that cannot be written
        written = b'{"unreadable":true}'
        with suppress(Exception):
            written = _encode({"shown": repr(details)})
    return (written if len(written) <= LONGEST_EVIDENCE else _shortened(written)).decode()


def _shortened(written: bytes) -> bytes:
    note = {"cut": f"{len(written):,} bytes of evidence, of which the beginning is kept"}
    details = msgspec.json.decode(written)
    for characters, entries in _CUTS:
        shorter = _encode({**_cut(details, characters, entries), **note})
        if len(shorter) <= LONGEST_EVIDENCE:
            return shorter
    return _encode(note)


def _cut(value: Any, characters: int, entries: int) -> Any:
    if isinstance(value, str):
        return cut(value, characters)
    if isinstance(value, list):
        return [_cut(one, characters, entries) for one in value[:entries]]
    if isinstance(value, dict):
        some = islice(value.items(), entries)
        return {cut(name, characters): _cut(one, characters, entries) for name, one in some}
    return value


def cut(text: str, characters: int = LONGEST_NAME) -> str:
    """A text, or its beginning."""
    return text if len(text) <= characters else f"{text[: characters - 1]}…"


def cut_all(texts: Sequence[str]) -> Sequence[str]:
    """Texts of which hardly any is long."""
    return texts if max(map(len, texts), default=0) <= LONGEST_NAME else list(map(cut, texts))
