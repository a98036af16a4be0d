"""What a cause is held against: the same number in the conversations that it did not lose."""

from __future__ import annotations

from collections.abc import Set
from statistics import median

from convoscope.analysis.answer.causes import OVERLAP, tool_seconds
from convoscope.conversation import from_json
from convoscope.runs.database import CONVERSATIONS, SCORES, connect
from convoscope.runs.run import Run
from convoscope.scores.observation import MEASURED

MAX_READ = 10_000
"""Conversations that are read again for the rest; a larger run is not compared."""


class RestOfRun:
    """The conversations of a run but some."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def tool_seconds(self, tool: str, but: Set[int]) -> float | None:
        """How long a tool took at most in a conversation that called it, as a median; None where that is not known."""
        if self._run.summary.conversations > MAX_READ:
            return None
        longest = []
        with connect(self._run.folder) as connection:
            table = self._run.table(CONVERSATIONS)
            rows = connection.execute(f"SELECT number, body FROM {table} WHERE contains(body, $1)", [tool])
            while batch := rows.fetchmany(1000):
                for number, body in batch:
                    if number in but:
                        continue
                    conversation = from_json(body)
                    calls = (call for call in conversation.tool_calls if call.name == tool)
                    timed = [one for call in calls if (one := tool_seconds(conversation, call)) is not None]
                    longest += [max(timed)] if timed else []
        return median(longest) if longest else None

    def times_talked_over(self, but: Set[int]) -> float | None:
        """How often the agent talks over the user in a conversation, as a median; None where that is not measured."""
        query = (
            f"SELECT number, count(*) FILTER (value > 0 AND json_extract(details, '$.seconds')::DOUBLE >= {OVERLAP}) "
            f"FROM {self._run.table(SCORES)} WHERE metric = 'agent.talks_over_user' AND status = '{MEASURED}' "
            "GROUP BY number"
        )
        with connect(self._run.folder) as connection:
            times = [count for number, count in connection.execute(query).fetchall() if number not in but]
        return median(times) if times else None
