"""A policy as a file has it, and the figures that its targets mean.

A target is on a figure, or on its change against the baseline. `convoscope.analysis.policy` holds a run against it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Literal, NamedTuple

from convoscope.errors import UsageError
from convoscope.metrics.declaration import RATIO, SHARE, Target
from convoscope.metrics.registry import installed
from convoscope.runs.summary import describe
from convoscope.runs.targets import (
    By,
    FigureTarget,
    ParsedTarget,
    Requirements,
    figure_names,
    find_figure,
    group_text,
    limit_of,
    parse_target,
)
from convoscope.settings_file import Amount, FoundSettings, Key, PolicyTable, TargetTable, read_settings_file

POINTS = ("pp", "pts", "points")
"""Percentage points: the unit of the change of a share."""
_CHANGE = " change"
_AMOUNT = re.compile(r"\s*([-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))\s*(\S.*?)?\s*")
_LIMITS: dict[str, Literal[">=", "<="]] = {
    "at_least": ">=",
    "at_most": "<=",
    "change_at_least": ">=",
    "change_at_most": "<=",
}
_EMPTY = "names no target: a gate without targets would pass whatever happens"
_SHOW = "[[policy.target]] with figure = 'tools.success' and at_least = '90%'; docs/guides/targets.md has all keys"


class ChangeTarget(NamedTuple):
    """What the difference of a figure to the baseline must be."""

    figure: str
    target: Target
    is_share: bool = False
    """The limit is a share of the baseline's value, not an amount."""
    requires: Requirements = Requirements(decide="interval")


class PolicyRule(NamedTuple):
    """One target as it is written, before its figure is looked up."""

    key: Key
    parsed: ParsedTarget
    is_change: bool
    requires: Requirements

    @property
    def text(self) -> str:
        """`outcome.success[flow=booking] >= 75%`, `agent.talks_over_user change <= +2pp`."""
        return self.requires.rule


class Policy(NamedTuple):
    """The targets of a policy, with the figures that they mean."""

    targets: tuple[FigureTarget, ...] = ()
    changes: tuple[ChangeTarget, ...] = ()
    absent: tuple[PolicyRule, ...] = ()
    """Targets on figures that the run was scored without."""
    texts: tuple[str, ...] = ()
    """All of them as they are written, in their order."""


def find_policy(named: Path | None, settings: FoundSettings | None) -> FoundSettings | None:
    """The file of the policy: the one that was named, else the settings if they have one."""
    source = settings if named is None else FoundSettings(named, read_settings_file(named), is_named=True)
    if source is None or (named is None and source.tables.policy is None):
        return None
    if source.tables.policy is None or not source.tables.policy.target:
        raise source.error(("policy",), _EMPTY, hint=_SHOW)
    return source


def policy_rules(source: FoundSettings) -> list[PolicyRule]:
    """The targets as they are written. What cannot be meant is refused, with its line."""
    table = source.tables.policy or PolicyTable()
    return [_rule(source, table, ("policy", "target", index), entry) for index, entry in enumerate(table.target)]


def resolve(source: FoundSettings, units: Mapping[str, str]) -> Policy:
    """The policy with the figures that it means. `units` are the figures that the run has, each with its unit."""
    targets: list[FigureTarget] = []
    changes: list[ChangeTarget] = []
    absent: list[PolicyRule] = []
    seen: dict[tuple[str, By, bool, str], int] = {}
    rules = policy_rules(source)
    for number, rule in enumerate(rules, 1):
        try:
            figure, unit = _find(rule.parsed.name, units)
            made = _change(rule, figure, unit) if rule.is_change else _target(rule, figure, unit)
        except UsageError as error:
            raise source.error(rule.key, error.message, hint=error.hint) from None
        direction = rule.parsed.comparison[0]
        first = seen.setdefault((figure, rule.parsed.by, rule.is_change, direction), number)
        if first != number:
            hint = "of two limits for the same figure, keep the one that you mean"
            raise source.error(rule.key, f"{rule.text}: target {first} is on the same figure already", hint=hint)
        if figure not in units:
            absent.append(rule)
        elif isinstance(made, ChangeTarget):
            changes.append(made)
        else:
            targets.append(made)
    return Policy(tuple(targets), tuple(changes), tuple(absent), tuple(rule.text for rule in rules))


def _find(name: str, units: Mapping[str, str]) -> tuple[str, str]:
    """The figure that is meant, and its unit: of the run, else of a metric that it was scored without."""
    try:
        figure = find_figure(name, units)
        return figure, units[figure]
    except UsageError:
        known = {name: one.unit for one in installed().declared.values() for name in figure_names(describe(one))}
        figure = find_figure(name, {**known, **units})
        return figure, known[figure]


def _target(rule: PolicyRule, figure: str, unit: str) -> FigureTarget:
    parsed = rule.parsed
    return FigureTarget(figure, Target(parsed.comparison, limit_of(parsed, figure, unit)), parsed.by, rule.requires)


def _change(rule: PolicyRule, figure: str, unit: str) -> ChangeTarget:
    """The limit of a change: points of a share, an amount in the unit of the figure, or a share of the baseline."""
    parsed = rule.parsed
    is_share = False
    if unit in (SHARE, RATIO) and parsed.unit == "%":
        points = f"{parsed.number:+}{POINTS[0]}"
        raise UsageError(f"{figure} is a {unit}: a change of it is in points", hint=f"write {points}")
    if unit in (SHARE, RATIO) and parsed.unit in POINTS:
        value = float(parsed.number / 100)
    elif parsed.unit == "%":
        value, is_share = float(parsed.number / 100), True
    else:
        value = limit_of(parsed, figure, unit)
    return ChangeTarget(figure, Target(parsed.comparison, value), is_share, rule.requires)


def _rule(source: FoundSettings, table: PolicyTable, key: Key, entry: str | TargetTable) -> PolicyRule:
    try:
        if isinstance(entry, str):
            entry = TargetTable(rule=entry)
        if entry.rule is not None:
            parsed, is_change = _of_text(entry)
        else:
            parsed, is_change = _of_keys(entry)
        if is_change and parsed.by:
            raise UsageError(
                "a change of a group is not checked", hint="leave out the group, or set a limit for the group itself"
            )
    except UsageError as error:
        raise source.error(key, error.message, hint=error.hint) from None
    requires = Requirements(
        min_n=table.min_n if entry.min_n is None else entry.min_n,
        min_coverage=table.min_coverage if entry.min_coverage is None else entry.min_coverage,
        decide=entry.decide or ("interval" if is_change else "value"),
        when_undetermined=entry.when_undetermined or table.when_undetermined,
        rule=_text(parsed, is_change),
    )
    return PolicyRule(key, parsed, is_change, requires)


def _of_text(entry: TargetTable) -> tuple[ParsedTarget, bool]:
    given = [name for name in ("figure", "group", *_LIMITS) if getattr(entry, name) not in (None, {})]
    if given:
        raise UsageError(f"has both rule and {given[0]}", hint="a rule names figure, group and limit itself")
    parsed = parse_target(entry.rule or "")
    if parsed.name.endswith(_CHANGE):
        return parsed._replace(name=parsed.name.removesuffix(_CHANGE)), True
    return parsed, False


def _of_keys(entry: TargetTable) -> tuple[ParsedTarget, bool]:
    limits = [name for name in _LIMITS if getattr(entry, name) is not None]
    if not (entry.figure or "").strip():
        raise UsageError("names no figure", hint=_SHOW)
    if len(limits) != 1:
        what = f"has both {' and '.join(limits)}" if limits else f"{entry.figure} has no limit"
        raise UsageError(what, hint=f"give one of {', '.join(_LIMITS)}; two limits are two targets")
    number, unit = _amount(limits[0], getattr(entry, limits[0]))
    by = tuple(sorted(entry.group.items()))
    name = " ".join((entry.figure or "").split())
    return ParsedTarget(name, _LIMITS[limits[0]], number, unit, by), limits[0].startswith("change")


def _amount(name: str, value: Amount) -> tuple[Decimal, str]:
    if isinstance(value, str):
        match = _AMOUNT.fullmatch(value)
        if match is None:
            raise UsageError(f"{name}: {value!r} is not a number", hint="write 0.8, '80%', '2 s' or '+2pp'")
        return Decimal(match[1]), match[2] or ""
    if not math.isfinite(value):
        raise UsageError(f"{name}: {value} is not a limit", hint="write a finite number")
    return Decimal(repr(value).removesuffix(".0")), ""


def _text(parsed: ParsedTarget, is_change: bool) -> str:
    sign = "+" if is_change else ""
    change = _CHANGE if is_change else ""
    unit = f" {parsed.unit}" if parsed.unit[:1].isalpha() and parsed.unit != POINTS[0] else parsed.unit
    return f"{parsed.name}{group_text(parsed.by)}{change} {parsed.comparison} {parsed.number:{sign}}{unit}"
