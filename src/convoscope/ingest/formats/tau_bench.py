"""τ-bench trajectories: chats with a simulated user, each with the reward that the benchmark gave it.

The reward becomes a label. `info` is withheld: it holds the reward again, the task as it was given to the user and
the right actions, none of which the agent knew. A metric or a ranking that saw it would know the answer.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from convoscope.conversation import Conversation, Outcome
from convoscope.errors import InputError
from convoscope.ingest.call_exports import verdicts
from convoscope.ingest.formats.openai.chat import OpenAIChatReader
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import Fields
from convoscope.ingest.report import Notes

_FIELDS = ("task_id", "trial", "reward", "info")
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
                fields = [name for name in _FIELDS if name in value]
                if any(self.is_entry(one) for one in value["traj"]) or len(fields) == len(_FIELDS):
                    return Detection(1.0 if fields else 0.9, '"traj" is a list of messages with a role')
        return None

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        for record in group.records:
            value = record.value
            if not isinstance(value, dict) or not isinstance(value.get("traj"), list):
                raise InputError("has no trajectory", field=self.field, hint=_EXPECTED)
            fields = Fields(value, "record", notes)
            messages, reward, task = fields.pop("traj"), fields.pop("reward", None), fields.pop("task_id", None)
            if fields.pop("info", None) is not None:
                notes.ignored("info_withheld", "it holds the reward and the right actions")
            if task not in (None, ""):
                fields["scenario_id"] = task
            entries = [(record.number, message) for message in messages]
            if not messages:
                # A run that failed before it wrote anything is a failure, not a record less.
                notes.inferred("run_without_messages", NO_MESSAGES)
                entries = [(0, {"role": "system", "content": ""})]
            conversation = self._conversation(fields, entries, group, group.name)
            labels = () if reward is None else verdicts(self.name, {"reward": reward})
            outcome = conversation.outcome if messages else Outcome(error=NO_MESSAGES)
            yield msgspec.structs.replace(conversation, labels=labels, outcome=outcome)


READER = TauBenchReader()
