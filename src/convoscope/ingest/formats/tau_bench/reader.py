"""τ-bench trajectories: chats with a simulated user, each with the reward that the benchmark gave it.

The reward becomes a label. `info` is withheld: it holds the reward again, the task as the user was told it and the
right actions, none of which the agent knew. A metric or a ranking that saw it would be told the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from convoscope.conversation import Conversation, Label, Outcome
from convoscope.errors import InputError
from convoscope.ingest.formats.openai.chat import OpenAIChatReader
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import JsonObject
from convoscope.ingest.report import Notes

_BESIDE = ("task_id", "trial", "reward", "info")
_EXPECTED = 'expected {"task_id": …, "reward": …, "traj": [{"role": …, "content": …}]}'
NO_MESSAGES = "the run wrote no messages"


class TauBenchReader(OpenAIChatReader):
    """Records with a trajectory of OpenAI messages, a task, a trial and a reward."""

    name = "tau-bench"
    title = "τ-bench trajectories"
    field = "traj"
    typed = None
    logs_calls = False  # a trial that broke off says the beginning of another

    def detect(self, sample: Sample) -> Detection | None:
        for value in sample.values:
            if isinstance(value, dict) and isinstance(value.get("traj"), list):
                beside = [name for name in _BESIDE if name in value]
                if any(self.is_entry(one) for one in value["traj"]) or len(beside) == len(_BESIDE):
                    return Detection(1.0 if beside else 0.9, '"traj" is a list of messages with a role')
        return None

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        for record in group.records:
            value = record.value
            if not isinstance(value, dict) or not isinstance(value.get("traj"), list):
                raise InputError("has no trajectory", field=self.field, hint=_EXPECTED)
            facts = dict(value)
            messages = facts.pop("traj")
            label = _take_reward(facts)
            _withhold_info(facts, notes)
            task = facts.pop("task_id", None)
            if task not in (None, ""):
                facts["scenario_id"] = task
            entries = [(record.number, one) for one in messages]
            if messages:
                conversation = self._conversation(facts, entries, group, notes, group.name)
            else:
                conversation = self._broken_off(facts, group, notes)
            yield msgspec.structs.replace(conversation, labels=label)

    def _broken_off(self, facts: JsonObject, group: RecordGroup, notes: Notes) -> Conversation:
        """A run that failed before it wrote anything is a failure, not a record less."""
        notes.inferred("run_without_messages", NO_MESSAGES)
        beside = self._conversation(facts, [(0, {"role": "system", "content": ""})], group, notes, group.name)
        return msgspec.structs.replace(beside, outcome=Outcome(error=NO_MESSAGES))


def _take_reward(facts: JsonObject) -> tuple[Label, ...]:
    reward: Any = facts.pop("reward", None)
    if reward is None:
        return ()
    return (Label(name="reward", value=reward, rater="tau-bench", rater_kind="external"),)


def _withhold_info(facts: JsonObject, notes: Notes) -> None:
    if facts.pop("info", None) is not None:
        notes.ignored("info_withheld", "it holds the reward and the right actions")


READER = TauBenchReader()
