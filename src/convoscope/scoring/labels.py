"""A user's own verdict: the field that `--label` names, and what its values say of a conversation."""

from __future__ import annotations

import difflib
import math
import operator
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from convoscope.conversation import Conversation, LabelVerdict
from convoscope.errors import UsageError
from convoscope.ingest.discover import Input
from convoscope.ingest.report import ReadReport
from convoscope.ingest.split import cut, read_partition
from convoscope.views.fields import field_names, field_value
from convoscope.views.flow.endings import passed_in_words

MAX_NAMED = 20
"""How many fields an error names, the likeliest first."""

_LABEL = re.compile(
    r"\s*(?P<field>[^<>=≤≥]*[^<>=≤≥\s])\s*"
    r"(?:(?P<comparison>>=|<=|>|<|≥|≤)\s*(?P<mark>[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?)\s*)?"
)
_SIGNS = {"≥": ">=", "≤": "<="}
_HOLDS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}


class LabelRule(msgspec.Struct, frozen=True):
    """A field, and where it holds numbers, the mark from which on they are a success."""

    field: str
    comparison: str = ""
    mark: float = 0.0
    binary: bool = False
    """Without a mark: all numbers of the run are 0 or 1, which are verdicts."""

    @property
    def text(self) -> str:
        """As it is kept: two ways to write the same label give the same text."""
        return f"{self.field} {self.comparison} {repr(self.mark).removesuffix('.0')}" if self.comparison else self.field

    @property
    def lower_is_worse(self) -> bool:
        return not self.comparison.startswith("<")

    def passed(self, value: str | float | bool) -> bool | None:
        """What a value says; None for a number without a mark, and for a text that says neither pass nor fail."""
        if isinstance(value, bool):
            return value
        number = as_number(value)
        if number is None:
            return passed_in_words(str(value))
        if self.comparison:
            return bool(_HOLDS[self.comparison](number, self.mark))
        return number == 1 if self.binary else None

    def applied(self, conversation: Conversation) -> Conversation:
        """The conversation with what its label says."""
        value = field_value(conversation, self.field)
        if value is None:
            return conversation
        verdict = LabelVerdict(field=self.field, value=value, passed=self.passed(value))
        outcome = msgspec.structs.replace(conversation.outcome, label=verdict)
        return msgspec.structs.replace(conversation, outcome=outcome)


def as_number(value: str | float | bool) -> float | None:
    """A number, also one that a table holds as text; a truth is none."""
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def label_rule(text: str) -> LabelRule:
    """The label that a user wrote: `reward`, or `csat >= 4`."""
    match = _LABEL.fullmatch(text)
    if match is None or (match["mark"] and not math.isfinite(float(match["mark"]))):
        hint = "write a field, and for numbers the mark that is a success, in quotes: reward, or 'csat >= 4'"
        raise UsageError(f"{text!r} is not a label", hint=hint)
    sign = match["comparison"] or ""
    return LabelRule(match["field"], _SIGNS.get(sign, sign), float(match["mark"] or 0))


class SettledLabel(NamedTuple):
    """A rule as an input needs it, and a warning where its numbers give no outcome."""

    rule: LabelRule
    warning: str = ""


def settled(rule: LabelRule, inputs: Sequence[Input], limit: int | None, part_bytes: int) -> SettledLabel:
    """Look at the values that a label has.

    Whether 0 and 1 are verdicts depends on all numbers of the run, so that without a mark the logs are read until
    another number is met. A field that no conversation has is refused, before anything is scored.
    """
    seen, names = False, dict[str, None]()
    for conversation in _conversations(inputs, limit, part_bytes):
        value = field_value(conversation, rule.field)
        if value is None:
            if not seen and len(names) < 10 * MAX_NAMED:
                names |= dict.fromkeys(field_names(conversation))
            continue
        seen = True
        if rule.comparison:
            return SettledLabel(rule)
        number = as_number(value)
        if number is not None and number not in (0, 1):
            hint = f"--label '{rule.field} >= {number:g}' would make it a success from {number:g} on"
            words = "holds numbers and has no mark: it ranks, lower is worse, and gives no outcome"
            return SettledLabel(rule, f"label {rule.field} {words} ({hint})")
    if not seen:
        raise UsageError(f"no conversation has a field {rule.field!r}", hint=fields_hint(rule.field, names))
    return SettledLabel(msgspec.structs.replace(rule, binary=True))


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


def _conversations(inputs: Sequence[Input], limit: int | None, part_bytes: int) -> Iterator[Conversation]:
    """The conversations of a run, one after the other; what cannot be read is reported when it is scored."""
    report, count = ReadReport(), 0
    with tempfile.TemporaryDirectory(prefix="convoscope-") as scratch:
        for partition in cut(inputs, report, Path(scratch), part_bytes):
            for read in read_partition(partition, report):
                if limit is not None and count >= limit:
                    return
                count += 1
                yield read.conversation


__all__ = ["LabelRule", "SettledLabel", "fields_hint", "label_rule", "settled"]
