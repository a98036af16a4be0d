"""Metrics of what came of a conversation: was the task done, was the user let in, did it end in time?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from convoscope.conversation import (
    ChangePattern,
    ChangeRules,
    Conversation,
    Database,
    Json,
    Scenario,
    ToolCall,
)
from convoscope.conversation.databases import (
    ADDED,
    CHANGED,
    REMOVED,
    SESSION,
    Change,
    Path,
    canonical_text,
    changes,
    database_hash,
    fits,
    is_hash_of,
    printed,
    same,
    shown,
)
from convoscope.metrics.declaration import (
    CONVERSATION,
    COUNT,
    EVENT,
    HIGHER,
    NEITHER,
    conversation_share_metric,
    metric,
    share_metric,
)
from convoscope.metrics.needs import Need
from convoscope.metrics.perturbations import EMPTY_AGENT
from convoscope.metrics.verdicts import or_verdict, with_verdicts
from convoscope.scores.observation import Observation, measured, not_applicable, ratio, unmeasured
from convoscope.scores.reducers import MEAN, MEAN_OF_CONVERSATIONS, Reduce
from convoscope.text.folding import folded_name
from convoscope.views.tool_outcomes import outcome_of_call
from convoscope.views.user_turns import breakdown

MAX_LINES = 20
"""So many lines of a difference are kept; of the rest, the number."""

TOO_LATE = frozenset({"time_limit_exceeded", "timeout"})


def _is_known(database: Database | None) -> bool:
    return database is not None and (database.content is not None or bool(database.hash))


def _knows_auth_tools(conversation: Conversation) -> bool:
    kinds = {tool.kind for tool in conversation.agent.tools or ()}
    return bool(kinds) and ("auth" in kinds or "" not in kinds)


FINAL_DATABASE = Need(
    "no_final_database",
    "scenario.after",
    "the database as it was after the conversation, for example `final_scenario_db.json` beside the log",
    lambda conversation: conversation.scenario is not None and _is_known(conversation.scenario.after),
)
EXPECTATION = Need(
    "no_expected_database",
    "scenario.expected or scenario.rules",
    "the database as it should be afterwards, from the dataset, or rules for what has to change",
    lambda conversation: (
        (scenario := conversation.scenario) is not None and (_is_known(scenario.expected) or scenario.rules is not None)
    ),
)
_COMPARED = (FINAL_DATABASE, EXPECTATION)
EXPECTED_SESSION = Need(
    "no_expected_database",
    "scenario.expected.content",
    "the database as it should be afterwards, from the dataset: its `session` says who is to be logged in",
    lambda conversation: (
        (scenario := conversation.scenario) is not None
        and scenario.expected is not None
        and scenario.expected.content is not None
    ),
)
AUTH_TOOLS = Need(
    "auth_tools_unknown",
    "agent.tools.kind",
    "the list of the agent's tools, with the kind `auth` for those that check who is calling",
    _knows_auth_tools,
)
ENDED_REASON = Need(
    "no_ended_reason",
    "outcome.ended_reason",
    "the reason why the conversation ended, for example `conversation_ended_reason` in `result.json`",
    lambda conversation: bool(conversation.outcome.ended_reason),
)

_auth_count = partial(
    metric,
    version=1,
    observes=CONVERSATION,
    unit=COUNT,
    better=NEITHER,
    reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
)


@conversation_share_metric(
    "outcome.task_completion",
    version=3,
    label="tasks completed",
    importance=10,
    needs=or_verdict(_COMPARED, "task_completion"),
    sensitive_to=(EMPTY_AGENT,),
)
def task_completion(conversation: Conversation) -> Iterator[Observation]:
    """Is the database afterwards as it should be?

    1 where everyone is logged in who should be, and the database after the conversation is the
    expected one; else 0. Rules of the scenario may say instead which changes are required, allowed
    and forbidden; any other change is damage and gives 0. What counts is the content:
    a stored hash is used only where there is no content; it does not show the session, which is then
    not compared (`not_compared` in the details). What another program said of the same, in a label
    `task_completion`, is a score of its own.

    >>> world = {"before": {"content": {"seats": 0}}, "expected": {"content": {"seats": 2}}}
    >>> value(task_completion, example("user: Two.", scenario={**world, "after": {"content": {"seats": 2}}}))
    1.0
    """
    return with_verdicts(conversation, "task_completion", _COMPARED, lambda: [_completion(conversation)])


def _completion(conversation: Conversation) -> Observation:
    scenario = conversation.scenario or Scenario()
    after, expected, rules = scenario.after, scenario.expected, scenario.rules
    given = rules is not None and rules.required is not None
    if after is None or after.content is None or (not given and expected is not None and expected.content is None):
        return _by_hash(conversation)
    logged_in = _session_differences(expected.content if expected else None, after.content)
    verdict = _verdict(scenario)
    if verdict is None:
        # Even where the session is wrong: of two conversations, the failed one alone would be measured.
        return unmeasured(conversation, "no_initial_database", "the rules speak of changes: from what?")
    broken = [*(_Broken("session", line) for line in logged_in), *verdict]
    return measured(conversation, 0 if broken else 1, details=_details(after, broken))


@conversation_share_metric(
    "outcome.authentication_success",
    version=1,
    label="right user logged in",
    importance=7,
    needs=(EXPECTED_SESSION, FINAL_DATABASE),
    sensitive_to=(EMPTY_AGENT,),
)
def authentication_success(conversation: Conversation) -> Observation:
    """Is the user logged in whom the scenario expects to be?

    1 where every key of the expected session is in the final session with the same value, texts
    compared without regard to case; else 0. Not applicable where no session is expected.

    >>> expected, after = {"session": {"user": "ann"}}, {"session": {"user": "Ann", "level": 2}}
    >>> world = {"expected": {"content": expected}, "after": {"content": after}}
    >>> value(authentication_success, example("user: Hi.", scenario=world))
    1.0
    """
    scenario = conversation.scenario or Scenario()
    after, expected = scenario.after, scenario.expected
    if expected is None or not _session(expected.content):
        return not_applicable(conversation, "no_session_expected")
    if after is None or after.content is None:
        return unmeasured(conversation, "no_final_database", "a hash does not tell the session")
    lines = _session_differences(expected.content, after.content)
    return measured(conversation, 0 if lines else 1, details={"session": lines} if lines else None)


@conversation_share_metric(
    "outcome.authentication_success.first_try",
    version=3,
    needs=(AUTH_TOOLS,),
    sensitive_to=(),
    undefined_under=(EMPTY_AGENT,),
)
def first_try(conversation: Conversation) -> Observation:
    """Does the first call of an authentication tool succeed?

    1 where its result reports no error, 0 where it reports one; unmeasured where the log has no
    result of it. Not applicable where no authentication tool is called, or where the agent has no such tool.

    >>> calls = 'tool: log_in {} -> {"error": "wrong pin"}', 'tool: log_in {} -> {"ok": true}'
    >>> chat = example("user: Hi.", *calls, agent={"tools": [{"name": "log_in", "kind": "auth"}]})
    >>> value(first_try, chat)
    0.0
    """
    calls = _auth_calls(conversation)
    if not calls:
        return _no_auth_calls(conversation)
    worked = _worked(conversation, calls[0])
    if worked is None:
        return unmeasured(conversation, "no_tool_result", calls[0].name)
    return measured(conversation, worked, details={"tool": calls[0].name})


@_auth_count("outcome.authentication_success.calls", needs=(AUTH_TOOLS,), sensitive_to=(EMPTY_AGENT,))
def auth_calls(conversation: Conversation) -> Observation:
    """How often does the agent call an authentication tool?

    0 where it had such tools and called none. Not applicable where it had none.

    >>> calls = 'tool: log_in {} -> {"error": "wrong pin"}', 'tool: log_in {} -> {"ok": true}'
    >>> chat = example("user: Hi.", *calls, agent={"tools": [{"name": "log_in", "kind": "auth"}]})
    >>> value(auth_calls, chat)
    2.0
    """
    calls = _auth_calls(conversation)
    if not calls and not _auth_tools(conversation):
        return not_applicable(conversation, "no_auth_tools")
    return measured(conversation, len(calls))


@_auth_count(
    "outcome.authentication_success.calls_on_failure",
    needs=(EXPECTED_SESSION, FINAL_DATABASE, AUTH_TOOLS),
    sensitive_to=(),
)
def calls_on_failure(conversation: Conversation) -> Observation:
    """How often was authentication tried where it failed in the end?

    The number of calls of authentication tools in a conversation that ends without the expected
    session; 0 where it was not tried. Not applicable where authentication succeeds or is not expected.

    >>> world = {"expected": {"content": {"session": {"user": "ann"}}}, "after": {"content": {"session": {}}}}
    >>> calls = ['tool: log_in {} -> {"error": "wrong pin"}'] * 2
    >>> agent = {"tools": [{"name": "log_in", "kind": "auth"}]}
    >>> value(calls_on_failure, example("user: Hi.", *calls, agent=agent, scenario=world))
    2.0
    """
    (outcome,) = authentication_success(conversation)
    if outcome.value is None:
        return outcome
    if outcome.value == 1:
        return not_applicable(conversation, "authenticated")
    return measured(conversation, len(_auth_calls(conversation)))


@share_metric(
    "outcome.authentication_success.call_success_rate",
    version=3,
    observes=EVENT,
    better=HIGHER,
    needs=(AUTH_TOOLS,),
    sensitive_to=(),
    undefined_under=(EMPTY_AGENT,),
)
def call_success_rate(conversation: Conversation) -> Iterator[Observation]:
    """What share of the calls of authentication tools succeeds?

    Per call: 1 where its result reports no error, 0 where it reports one. A call without a result in
    the log is unmeasured. Not applicable where no authentication tool is called, or where the agent has no such tool.

    >>> calls = 'tool: log_in {} -> {"error": "wrong pin"}', 'tool: log_in {} -> {"ok": true}'
    >>> chat = example("user: Hi.", *calls, agent={"tools": [{"name": "log_in", "kind": "auth"}]})
    >>> value(call_success_rate, chat)
    0.5
    """
    calls = _auth_calls(conversation)
    if not calls:
        yield _no_auth_calls(conversation)
    for call in calls:
        worked = _worked(conversation, call)
        if worked is None:
            yield unmeasured(call, "no_tool_result", call.name)
        else:
            yield ratio(call, worked, 1, empty="no_auth_calls", details={"tool": call.name})


@conversation_share_metric(
    "outcome.conversation_completed_on_time",
    version=3,
    label="ended in time",
    importance=5,
    needs=(ENDED_REASON,),
    sensitive_to=(EMPTY_AGENT,),
)
def conversation_completed_on_time(conversation: Conversation) -> Observation:
    """Did the conversation come to an end of its own before its time limit?

    0 where it ended because it took longer than it might (`time_limit_exceeded`, `timeout`), because the
    integration broke, or without a word of the agent to a user who spoke; 1 where it ended for any other
    reason, good or bad. Unmeasured where the log does not say why it ended.

    >>> call = example("0-1 user: Hi.", "2-3 assistant: Hi.", outcome={"ended_reason": "user_hangup"})
    >>> value(conversation_completed_on_time, call)
    1.0
    """
    fault = breakdown(conversation)
    if not fault:
        return _in_time(conversation)
    return measured(conversation, 0, details={"ended_reason": conversation.outcome.ended_reason, "fault": fault})


@conversation_share_metric(
    "outcome.conversation_completed_on_time", variant="eva", version=1, needs=(ENDED_REASON,), sensitive_to=()
)
def conversation_completed_on_time_eva(conversation: Conversation) -> Observation:
    """Did the conversation end before its time limit?

    As EVA publishes it: 0 where it ended because it took longer than it might, 1 for every other end, also of
    a call in which the agent never speaks or whose integration broke.

    >>> call = example("0-1 user: Hi.", "2-3 assistant: Hi.", outcome={"ended_reason": "user_hangup"})
    >>> value(conversation_completed_on_time_eva, call)
    1.0
    """
    return _in_time(conversation)


def _in_time(conversation: Conversation) -> Observation:
    reason = conversation.outcome.ended_reason
    return measured(conversation, 0 if folded_name(reason) in TOO_LATE else 1, details={"ended_reason": reason})


class _Broken(NamedTuple):
    """What is not as it should be: session, required, forbidden, collateral or expected; and a line for a person."""

    rule: str
    line: str


def _details(after: Database, broken: Sequence[_Broken]) -> dict[str, Any]:
    details: dict[str, Any] = {"hash": database_hash(after.content)}
    if after.hash and after.hash != details["hash"] and not is_hash_of(after.hash, after.content):
        details["stored_hash_differs"] = True
    if broken:
        details["broke"] = list(dict.fromkeys(one.rule for one in broken))
    session = [one.line for one in broken if one.rule == "session"]
    if session:
        details["session"] = session
    diff = [one.line for one in broken if one.rule != "session"]
    if diff:
        details["diff"] = diff[:MAX_LINES]
    if len(diff) > MAX_LINES:
        details["more"] = len(diff) - MAX_LINES
    return details


def _by_hash(conversation: Conversation) -> Observation:
    """Where a database is known by its hash alone: equal or not is all that is known."""
    scenario = conversation.scenario or Scenario()
    after, expected = scenario.after or Database(None), scenario.expected or Database(None)
    lacking = "no_final_database" if after.content is None else "no_expected_database"
    if not _is_known(after) or not _is_known(expected) or scenario.rules is not None:
        return unmeasured(conversation, lacking, "its hash alone is not enough")
    if after.content is not None:
        equal = is_hash_of(expected.hash, after.content)
    elif expected.content is not None:
        equal = is_hash_of(after.hash, expected.content)
    else:
        equal = after.hash.strip().lower() == expected.hash.strip().lower()
    details: dict[str, Any] = {"compared": "hash"}
    if _session(expected.content):
        details["not_compared"] = ["session"]
    return measured(conversation, equal, details=details if equal else {**details, "broke": ["expected"]})


# Sessions


def _session(content: Json) -> Json:
    return content.get(SESSION) if isinstance(content, dict) else None


def _session_differences(expected: Json, after: Json) -> list[str]:
    """What the expected session holds and the final one does not; further keys do not matter (voice-logs, 1.4)."""
    wanted, actual = _session(expected), _session(after)
    if not wanted:
        return []
    if not isinstance(wanted, dict):
        wanted, actual = {SESSION: wanted}, {SESSION: actual} if actual else {}
    lines = []
    for key, value in wanted.items():
        if not isinstance(actual, dict) or key not in actual:
            lines.append(f"{printed((SESSION, key))}: missing, expected {shown(value)}")
        elif not same(_casefolded(value), _casefolded(actual[key])):
            lines.append(f"{printed((SESSION, key))}: {shown(actual[key])}, expected {shown(value)}")
    return lines


def _casefolded(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _casefolded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_casefolded(one) for one in value]
    return value.casefold() if isinstance(value, str) else value


# Databases


def _verdict(scenario: Scenario) -> list[_Broken] | None:
    """What is wrong with the database; None where the rules speak of changes and the start is unknown."""
    rules = scenario.rules or ChangeRules()
    before = scenario.before.content if scenario.before else None
    after = scenario.after.content if scenario.after else None
    expected = scenario.expected.content if scenario.expected else None
    required = rules.required
    if required is None and expected is None:
        required = ()
    selective = any(pattern.kind or pattern.values or pattern.fields for pattern in rules.allowed)
    if before is None and (required is not None or rules.forbidden or selective):
        return None
    changed = () if before is None else changes(before, after)
    forbidden = [inner for change in changed if (inner := _first(change, rules.forbidden)) is not None]
    violations = [_Broken("forbidden", f"forbidden: {change}") for change in forbidden]
    if required is None:
        return [*_against_expected(before, after, expected, rules), *violations]
    damage = [
        _Broken("collateral", f"collateral: {change}")
        for change in changed
        if _first(change, rules.forbidden) is None and not _covered(change, (*required, *rules.allowed))
    ]
    return [*_missing(changed, required), *violations, *damage]


def _missing(done: Sequence[Change], required: Sequence[ChangePattern]) -> Iterator[_Broken]:
    """Required changes that did not happen, or not as often as they should."""
    every = [inner for change in done for inner in change.inside()]
    for pattern in required:
        times = sum(_describes(pattern, change) for change in every)
        # A record came or went: to ask for that is to ask for one record.
        parts = [
            inner for change in done if (inner := _first(change, (pattern,))) is not None and inner.kind != CHANGED
        ]
        records = sum(isinstance(inner.now if inner.kind == ADDED else inner.was, dict) for inner in parts)
        if pattern.times is None and records > 1:
            yield _Broken("collateral", f"done {records} times, not once: {_described(pattern)}")
        elif times == 0 and pattern.times != 0:
            yield _Broken("required", f"not done: {_described(pattern)}")
        elif pattern.times is not None and times != pattern.times:
            yield _Broken("required", f"done {times} times, not {pattern.times}: {_described(pattern)}")


def _first(change: Change, patterns: Sequence[ChangePattern]) -> Change | None:
    """The outermost part of a change that a pattern describes; None without one."""
    for inner in change.inside() if patterns else ():
        if any(_describes(pattern, inner) for pattern in patterns):
            return inner
    return None


def _covered(change: Change, patterns: Sequence[ChangePattern]) -> bool:
    """A pattern describes the change, or each part of it is covered."""
    if any(_describes(pattern, change) for pattern in patterns):
        return True
    parts = list(change.parts())
    return bool(parts) and all(_covered(part, patterns) for part in parts)


def _describes(pattern: ChangePattern, change: Change) -> bool:
    if not fits(pattern.path, change.path) or pattern.kind not in (None, change.kind):
        return False
    if (pattern.values or pattern.fields) and change.kind == REMOVED:
        return False
    if pattern.values and not any(same(value, change.now) for value in pattern.values):
        return False
    now = change.now if isinstance(change.now, dict) else {}
    return all(key in now and same(value, now[key]) for key, value in pattern.fields.items())


def _described(pattern: ChangePattern) -> str:
    values = " or ".join(shown(value) for value in pattern.values) or (shown(pattern.fields) if pattern.fields else "")
    return " ".join(part for part in (pattern.path, pattern.kind or "", f"= {values}" if values else "") if part)


def _against_expected(before: Json, after: Json, expected: Json, rules: ChangeRules) -> Iterator[_Broken]:
    """Where the database differs from the expected one, except for what is allowed and for generated keys."""
    difference = _without_generated(changes(expected, after), rules)
    if not difference:
        return
    wanted = _by_path(() if before is None else changes(before, expected))
    done = _by_path(() if before is None else changes(before, after))
    for change in difference:
        if _excused(change, wanted, done, rules.allowed):
            continue
        reached = {inner.path for inner in change.inside()}
        rule, what = _DEVIATIONS[not reached.isdisjoint(wanted), not reached.isdisjoint(done)]
        yield _Broken(rule, f"{what}: {_difference(change)}")


_DEVIATIONS = {
    (True, True): ("required", "done otherwise"),
    (True, False): ("required", "not done"),
    (False, True): ("collateral", "collateral"),
    (False, False): ("expected", "differs"),
}
"""The rule that is broken, and how: by whether a change was wanted there, and whether one was done."""


def _by_path(changed: Sequence[Change]) -> dict[Path, Change]:
    return {inner.path: inner for change in changed for inner in change.inside()}


def _excused(
    change: Change, wanted: dict[Path, Change], done: dict[Path, Change], allowed: Sequence[ChangePattern]
) -> bool:
    """What should have been done there and what was done are both allowed, as a whole or part by part."""
    views = [made[change.path] for made in (wanted, done) if change.path in made] or [change]
    if all(any(_describes(pattern, view) for pattern in allowed) for view in views):
        return True
    parts = list(change.parts()) if allowed else []
    return bool(parts) and all(_excused(part, wanted, done, allowed) for part in parts)


def _difference(change: Change) -> str:
    """A difference from the expected database, for a person."""
    path = printed(change.path)
    if change.kind == ADDED:
        return f"{path}: {shown(change.now)}, expected nothing"
    actual = "nothing" if change.kind == REMOVED else shown(change.now)
    return f"{path}: {actual}, expected {shown(change.was)}"


def _without_generated(difference: Sequence[Change], rules: ChangeRules) -> list[Change]:
    """The difference without pairs of records that are alike but for a generated key."""
    additions: dict[tuple[Path, str], list[Path]] = {}
    paired: set[Path] = set()
    records = [change for change in difference if any(fits(path, change.path) for path in rules.generated)]
    for change in records:
        if change.kind == ADDED:
            additions.setdefault(_alike(change, rules.allowed), []).append(change.path)
    for change in records:
        if change.kind == REMOVED and (twins := additions.get(_alike(change, rules.allowed))):
            paired |= {change.path, twins.pop(0)}
    return [change for change in difference if change.path not in paired]


def _alike(change: Change, allowed: Sequence[ChangePattern]) -> tuple[Path, str]:
    """Where a record lies and what it holds, without its key and without what is allowed in it."""
    record = change._replace(kind=ADDED, was=None, now=change.now if change.kind == ADDED else change.was)
    key, depth = change.path[-1], len(change.path)
    values = [
        (inner.path[depth:], canonical_text(inner.now)) for inner in _counting(record, allowed) if inner.now != key
    ]
    return change.path[:-1], repr(sorted(values))


def _counting(change: Change, allowed: Sequence[ChangePattern]) -> Iterator[Change]:
    """What a record holds in the end, except for what is allowed to be anything."""
    if any(_describes(pattern, change) for pattern in allowed):
        return
    parts = list(change.parts())
    if not parts:
        yield change
    for part in parts:
        yield from _counting(part, allowed)


# Authentication tools


def _auth_tools(conversation: Conversation) -> set[str]:
    return {tool.name for tool in conversation.agent.tools or () if tool.kind == "auth"}


def _auth_calls(conversation: Conversation) -> list[ToolCall]:
    names = _auth_tools(conversation)
    return [call for call in conversation.tool_calls if call.name in names]


def _no_auth_calls(conversation: Conversation) -> Observation:
    return not_applicable(conversation, "no_auth_calls" if _auth_tools(conversation) else "no_auth_tools")


def _worked(conversation: Conversation, call: ToolCall) -> bool | None:
    """Whether a call succeeded, as `tools.success` has it; None where its result does not say."""
    outcome = outcome_of_call(conversation, call)
    return None if outcome is None else outcome.worked
