"""A user's own verdict: the field that `--label` names, and what its values say of a conversation."""

from __future__ import annotations

import difflib
import math
import operator
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from convoscope.conversation import Conversation, LabelVerdict
from convoscope.errors import UsageError
from convoscope.ingest.discover import Input
from convoscope.ingest.report import ReadReport
from convoscope.ingest.split import cut, read_partition
from convoscope.text.patterns import lazy_pattern
from convoscope.views.fields import are_letters, field_names, field_value, is_flag, polarity, values_text
from convoscope.views.flow.endings import passed_in_words, shown_value

MAX_NAMED = 20
"""How many fields an error names, the likeliest first."""

_NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?"
_LABEL = lazy_pattern(
    r"\s*(?P<field>[^<>=≤≥≠!]*[^<>=≤≥≠!\s])\s*"
    rf"(?:(?P<comparison>>=|<=|>|<|≥|≤)\s*(?P<mark>{_NUMBER})\s*"
    r"|(?P<equals>==|=|!=|≠)\s*(?P<value>[^<>=≤≥≠!\s][^<>=≤≥≠!]*))?"
)
_LIST = lazy_pattern(r"\s*(?P<field>[^\s<>=≤≥≠!]+)\s+(?P<sign>not in|in)\s+(?P<values>[^<>=≤≥≠!]+)")
_SIGNS = {"≥": ">=", "≤": "<=", "==": "=", "≠": "!="}
_HOLDS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
_TRUTHS = {"true": "true", "yes": "true", "false": "false", "no": "false"}
_GRADES = {"c": True, "i": False, "n": False}
_MOST_VALUES = 1000
"""Distinct values of a field that are counted."""


class LabelRule(msgspec.Struct, frozen=True):
    """A field, and which of its values are a success: from a mark on, or those that are named."""

    field: str
    comparison: str = ""
    """`>=`, `<=`, `>`, `<` for a mark, `=` and `!=` for values, nothing where the values say it themselves."""
    mark: float = 0.0
    binary: bool = False
    """Without a mark: all numbers of the run are 0 or 1, which are verdicts."""
    values: tuple[str, ...] = ()
    """The values that are named."""
    letters: bool = False
    """All values of the run are the grades C, I, P and N."""

    @property
    def text(self) -> str:
        """As it is kept: two ways to write the same label give the same text."""
        if len(self.values) > 1:
            return f"{self.field} {'in' if self.comparison == '=' else 'not in'} {', '.join(self.values)}"
        if self.values:
            return f"{self.field} {self.comparison} {self.values[0]}"
        return f"{self.field} {self.comparison} {repr(self.mark).removesuffix('.0')}" if self.comparison else self.field

    @property
    def lower_is_worse(self) -> bool:
        return not self.comparison.startswith("<")

    def passed(self, value: str | float | bool) -> bool | None:
        """What a value says; None for a number without a mark, and for a text that says neither pass nor fail."""
        if self.values:
            return self.names(value) == (self.comparison == "=")
        if isinstance(value, bool):
            return value
        if self.letters and isinstance(value, str):
            return _GRADES.get(value.strip().casefold())
        number = as_number(value)
        if number is None:
            return passed_in_words(str(value))
        if self.comparison:
            return bool(_HOLDS[self.comparison](number, self.mark))
        return number == 1 if self.binary else None

    def names(self, value: str | float | bool) -> bool:
        """Whether a value is one of those that the rule names."""
        return _folded(value) in map(_folded, self.values)

    def applied(self, conversation: Conversation) -> Conversation:
        """The conversation with what its label says."""
        value = field_value(conversation, self.field)
        if value is None:
            return conversation
        verdict = LabelVerdict(field=self.field, value=value, passed=self.passed(value))
        outcome = msgspec.structs.replace(conversation.outcome, label=verdict)
        return msgspec.structs.replace(conversation, outcome=outcome)


def _folded(value: str | float | bool) -> str:
    """A value as it is compared: `True`, `true` and `yes` are one, and so are `4` and `4.0`."""
    number = as_number(value)
    text = shown_value(value if number is None else number).strip().casefold()
    return _TRUTHS.get(text, text)


def as_number(value: str | float | bool) -> float | None:
    """A number, also one that a table holds as text; true and false are not."""
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def label_rule(text: str) -> LabelRule:
    """The label that a user wrote: `reward`, `csat >= 4`, `escalated = false`, `status in solved, closed`."""
    if (listed := _LIST.fullmatch(text)) is not None:
        values = tuple(filter(None, map(str.strip, listed["values"].split(","))))
        if values:
            return LabelRule(listed["field"], "=" if listed["sign"] == "in" else "!=", values=values)
    match = _LABEL.fullmatch(text)
    if match is None or (match["mark"] and not math.isfinite(float(match["mark"]))):
        hint = (
            "write a field, and where it does not say itself what is a success, the value or the mark, in quotes: "
            "reward, 'escalated = false', 'status in solved, closed', 'csat >= 4'"
        )
        raise UsageError(f"{text!r} is not a label", hint=hint)
    sign = match["comparison"] or match["equals"] or ""
    values = (match["value"].strip(),) if match["value"] else ()
    return LabelRule(match["field"], _SIGNS.get(sign, sign), float(match["mark"] or 0), values=values)


class LabelOfInput(NamedTuple):
    """A rule as an input needs it, and a warning where its numbers give no outcome."""

    rule: LabelRule
    warning: str = ""


NOT_YET = "no conversation has"


def label_of_input(
    rule: LabelRule, inputs: Sequence[Input], limit: int | None, part_bytes: int, *, may_come: bool = False
) -> LabelOfInput:
    """Look at the values that a label has.

    Whether 0 and 1 are verdicts depends on all numbers of the run, so that without a mark the logs are read until
    another number is met. A field that no conversation has is refused, before anything is scored; so are a value that
    no conversation has, and a field of which nothing says which value is good. Where logs are followed, it may come
    later: a rating is given after the talk.
    """
    values: Counter[str] = Counter()
    names, are_flags = dict[str, None](), False
    for conversation in conversations_of(inputs, limit, part_bytes):
        value = field_value(conversation, rule.field)
        if value is None:
            if not values and len(names) < 10 * MAX_NAMED:
                names |= dict.fromkeys(field_names(conversation))
            continue
        if len(values) < _MOST_VALUES:
            values[shown_value(value)] += 1
        if rule.comparison and (not rule.values or rule.names(value)):
            return LabelOfInput(rule)
        are_flags = are_flags or is_flag(value)
        number = as_number(value)
        if not rule.comparison and number is not None and number not in (0, 1):
            return _ranking_label(rule, number)
    if not values or rule.comparison:
        missing = f"{NOT_YET} {rule.text!r}" if values else f"{NOT_YET} a field {rule.field!r}"
        if may_come:
            return LabelOfInput(rule, f"{missing} yet")
        hint = f"`{rule.field}` has {values_text(values)}" if values else fields_hint(rule.field, names)
        raise UsageError(missing, hint=hint)
    if are_flags and polarity(rule.field) in ("bad", "unclear"):
        raise _which_is_good(rule.field, values)
    return LabelOfInput(msgspec.structs.replace(rule, binary=True, letters=are_letters(values)))


def _ranking_label(rule: LabelRule, number: float) -> LabelOfInput:
    """Numbers without a mark: they rank, where the name says that more is better."""
    if polarity(rule.field) in ("bad", "unclear"):
        hint = f"write it with a mark: --label '{rule.field} >= {number:g}', or --label '{rule.field} <= {number:g}'"
        raise UsageError(f"label {rule.field}: nothing says whether more is better or worse", hint=hint)
    words = "holds numbers and has no mark: it ranks, lower is worse, and gives no outcome"
    return LabelOfInput(rule, f"label {rule.field} {words}; with a mark it does: --label '{rule.field} >= MARK'")


def _which_is_good(field: str, values: Counter[str]) -> UsageError:
    some = [one for one, _ in values.most_common(2)] if len(values) > 1 else [*values, "…"]
    if polarity(field) == "bad":
        some.sort(key=lambda one: _folded(one) not in ("false", "0"))
    options = " or ".join(f"--label '{field} = {one}'" for one in some)
    counts = f"{values_text(values)} of {values.total():,} that have it"
    return UsageError(f"label {field}: nothing says which value is good: {counts}", hint=f"write {options}")


def fields_hint(name: str, names: Iterable[str]) -> str:
    """The fields that there are, the likeliest to be meant first."""
    known = list(dict.fromkeys(names))
    if not known:
        return "the logs hold no field beside their messages"
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    near += [one for one in known if one.rpartition(".")[2] == name]
    others = [one for one in known if one not in near]
    named = list(dict.fromkeys([*near, *others]))
    listed = ", ".join(named[:MAX_NAMED]) + (", …" if len(named) > MAX_NAMED else "")
    return f"did you mean {near[0]}? There is {listed}" if near else f"there is {listed}"


def conversations_of(inputs: Sequence[Input], limit: int | None, part_bytes: int) -> Iterator[Conversation]:
    """The conversations of a run, one after the other; what cannot be read is reported when it is scored."""
    report, count = ReadReport(), 0
    with tempfile.TemporaryDirectory(prefix="convoscope-") as scratch:
        for partition in cut(inputs, report, Path(scratch), part_bytes):
            for read in read_partition(partition, report):
                if limit is not None and count >= limit:
                    return
                count += 1
                yield read.conversation


__all__ = ["LabelOfInput", "LabelRule", "conversations_of", "fields_hint", "label_of_input", "label_rule"]
