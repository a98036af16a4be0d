"""Trials of one scenario that changed other things: which state-changing tool calls each made, and who agrees.

Where a scenario was tried several times, its trials should leave the world in the same state. The calls that change
it are known by their tools: as the log declares them, else by the verb of the name.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from convoscope.conversation import Conversation, ToolCall, from_json
from convoscope.runs.database import CONVERSATIONS
from convoscope.runs.run import Run
from convoscope.text.folding import name_words
from convoscope.views.end_reasons import hands_over
from convoscope.views.tool_outcomes import has_failed

if TYPE_CHECKING:
    import duckdb

FREE_TEXT = 8
"""Words from which on an argument is a free-text note."""


_PREFIX = re.compile(r"^.*(?:[./:]|__)(?=.)", re.DOTALL)
"""Of `mcp__crm__create_ticket` and `crm.create_ticket`, what comes before the name of the tool."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_READS = _words(
    """
    analyze ask browse calculate check compare compute count describe detect estimate evaluate explain fetch find get
    identify inspect is has list load locate look lookup match peek ping preview query read recall recommend retrieve
    scan search see select show suggest summarize test think translate track validate verify view wait
    """
)
"""Verbs of tools that look, and change nothing."""
_WRITES = _words(
    """
    accept activate add adjust allocate apply approve archive assign authorize block book buy call cancel change charge
    claim clear close commit complete confirm connect create credit deactivate debit decline delete deposit disable
    dispatch do edit email enable enroll exchange execute extend file fill finalize forward grant hold insert install
    invite issue lock mail make mark merge message modify move notify open order pay place post process provision
    publish purchase put reboot rebook record redeem refund register reject release remove rename renew reopen replace
    reply report request reschedule reserve reset resolve restart restore resume return revoke save schedule send set
    ship sign start stop store submit subscribe suspend swap switch terminate text toggle top transfer trigger unblock
    unlock unsubscribe update upgrade upload upsert use withdraw write
    """
)
"""Verbs of tools that change something."""

_NOUNS = _words("book call charge claim credit email file hold mail message order record report schedule text")
"""Of these verbs, those that are also things."""
_LOOKED_UP = _words("availability count detail details history id info information list options price status")
"""What a tool gives that asks for facts of a thing."""


class Trial(NamedTuple):
    """How many of the other trials of its scenario made other changes than this one, and how many this one made."""

    others: int
    differ: int
    writes: int

    @property
    def disagreement(self) -> float:
        return self.differ / self.others


def read_trials(connection: duckdb.DuckDBPyConnection, run: Run) -> dict[int, Trial]:
    """By number: the conversations of scenarios of which some trial changed something, and at least two were made."""
    key = "scenario_id, dataset, domain"
    source = run.table(CONVERSATIONS)
    scenarios: dict[tuple[str, ...], list[tuple[int, tuple[str, ...]]]] = defaultdict(list)
    rows = connection.execute(
        f"SELECT number, {key}, body FROM {source} WHERE scenario_id IS NOT NULL AND coalesce(error, '') = '' "
        f"QUALIFY count(*) OVER (PARTITION BY {key}) > 1"
    )
    while batch := rows.fetchmany(500):
        for number, *scenario, body in batch:
            scenarios[tuple(scenario)].append((number, changes_of(from_json(body))))
    return {number: trial for trials in scenarios.values() for number, trial in _compared(trials)}


def _compared(trials: list[tuple[int, tuple[str, ...]]]) -> Iterable[tuple[int, Trial]]:
    counts = Counter(changes for _, changes in trials)
    if len(trials) < 2 or not any(counts):  # nothing was ever changed: nothing tells the trials apart
        return
    for number, changes in trials:
        yield number, Trial(len(trials) - 1, len(trials) - counts[changes], len(changes))


def changes_of(conversation: Conversation) -> tuple[str, ...]:
    """The state-changing calls of a conversation that did not fail, with their arguments, in no order."""
    kinds = {tool.name: tool.kind for tool in conversation.agent.tools or ()}
    calls = [call for call in conversation.tool_calls if changes_state(call.name, kinds.get(call.name, ""))]
    return tuple(sorted(_canonical(call) for call in calls if not has_failed(conversation, call)))


@lru_cache(maxsize=4096)
def changes_state(name: str, kind: str = "") -> bool:
    """Whether a tool changes something: as it is declared, else by a verb that its name begins or ends with."""
    if kind in ("read", "write"):
        return kind == "write"
    words = name_words(_PREFIX.sub("", name))
    if hands_over(name):  # the end of a conversation is no change
        return False
    if not words or words[0] in _READS or words[-1] in _READS:
        return False
    if words[0] in _NOUNS and words[-1] in _LOOKED_UP:  # order_status, but not order_pizza
        return False
    return words[0] in _WRITES or words[-1] in _WRITES


def _canonical(call: ToolCall) -> str:
    """A call and its arguments, so that equal ones are one text: `1.0` is 1, capitals and free text do not count."""
    arguments = call.raw_arguments if call.raw_arguments is not None else _plain(call.arguments)
    return f"{call.name} {msgspec.json.encode(arguments, order='sorted').decode()}"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, bool) or value is None:
        return value
    text = " ".join(str(value).casefold().split())
    try:
        return f"{float(text):.12g}"
    except ValueError:
        return "…" if text.count(" ") >= FREE_TEXT - 1 else text
