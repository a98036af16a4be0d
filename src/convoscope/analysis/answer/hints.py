"""What would make an answer better: the field that says how conversations ended, the tool that the agent speaks by."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from convoscope.analysis.answer.model import Noun
from convoscope.analysis.words import counted
from convoscope.conversation import Conversation, from_json
from convoscope.runs.database import CONVERSATIONS, SCORES, connect
from convoscope.runs.run import Run
from convoscope.views.fields import LabelSearch, best_proposal
from convoscope.views.user_turns import AT_END, may_speak

MOST_CONVERSATIONS = 1_000
MOST_BYTES = 8_000_000
"""Of the bodies of conversations: so many are looked at for a field that says how they ended."""


class Hint(NamedTuple):
    """A line each; "" for none."""

    speech: str = ""
    label: str = ""

    @property
    def text(self) -> str:
        return " ".join(filter(None, self))


def hint_of(run: Run, noun: Noun, *, knows_outcomes: bool) -> Hint:
    """The tool that the agent may speak by, and the field that looks like the outcome where none is known."""
    by_tool = _replies_by_tool(run)
    if knows_outcomes and not by_tool:
        return Hint()
    search, seen, tools = LabelSearch(), 0, Counter[str]()
    for conversation in _conversations(run):
        seen += 1
        if not knows_outcomes:
            search.see(conversation)
        if by_tool:
            tools.update({call.name for call in conversation.tool_calls if may_speak(call)})
    first = seen < run.summary.conversations
    label = "" if knows_outcomes else best_proposal(search.proposals(noun, first=first))
    return Hint(_speech_words(tools, noun), label)


def _replies_by_tool(run: Run) -> bool:
    """Whether turns are without a reply, and a tool looks as if it gave one."""
    reason = AT_END["by_tool"]
    query = f"SELECT 1 FROM {run.table(SCORES)} WHERE metric = 'agent.unanswered_turns' AND reason = '{reason}' LIMIT 1"
    with connect(run.folder) as connection:
        return bool(connection.execute(query).fetchall())


def _speech_words(tools: Counter[str], noun: Noun) -> str:
    if not tools:
        return ""
    (name, count), *_ = tools.most_common(1)
    option = f"--speech-tool {shlex.quote(name)}"
    return f"The agent may speak by the tool `{name}` ({counted(count, noun)}): {option} reads its texts as replies."


def _conversations(run: Run) -> Iterator[Conversation]:
    """The first conversations of a run, as many as cost little."""
    size = 0
    with connect(run.folder) as connection:
        rows = connection.execute(
            f"SELECT body FROM {run.table(CONVERSATIONS)} ORDER BY number LIMIT {MOST_CONVERSATIONS}"
        )
        while batch := rows.fetchmany(50):
            for (body,) in batch:
                size += len(body)
                yield from_json(body)
            if size > MOST_BYTES:
                return
