"""What was asked, of which runs: the heading of an answer, and what to say where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from convoscope.analysis.flows import States, states
from convoscope.analysis.words import counted, first_of, short_name
from convoscope.report.screen import Screen
from convoscope.report.table import print_words
from convoscope.runs.run import Run

_HINT = "logs that tell of states, such as state events, are listed by `convoscope formats`"


class StateQuestion(NamedTuple):
    """The runs, and the flow and agent where only one is wanted."""

    runs: Sequence[Run]
    flow: str | None = None
    agent: str | None = None

    @property
    def states(self) -> States:
        return states(self.runs, flow=self.flow, agent=self.agent)

    @property
    def scope(self) -> str:
        """Of what: `all flows`, or the one, and the agent."""
        flow = "all flows" if self.flow is None else short_name(self.flow)
        return flow if self.agent is None else f"{flow}, agent {short_name(self.agent)}"

    @property
    def places(self) -> str:
        """The runs by their folders."""
        return places(self.runs)

    def json(self, answer: msgspec.Struct | None = None, **more: Any) -> dict[str, Any]:
        """An answer for a program: what it is of, then what it says."""
        fields = {} if answer is None else {field: getattr(answer, field) for field in answer.__struct_fields__}
        invalid = [str(run.folder) for run in self.runs if not run.receipt.valid]
        runs = {"runs": [str(run.folder) for run in self.runs], **({"invalid": invalid} if invalid else {})}
        return {**runs, **self._chosen(), **fields, **more}

    def _chosen(self) -> dict[str, str]:
        return {key: value for key, value in (("flow", self.flow), ("agent", self.agent)) if value is not None}


def places(runs: Sequence[Run]) -> str:
    """Some runs by their folders."""
    return first_of([str(run.folder) for run in runs])


def print_title(screen: Screen, title: str, runs: Sequence[Run]) -> None:
    """The heading, and the runs that are not to be relied on."""
    screen.line(title, "bold")
    for run in runs:
        if not run.receipt.valid:
            reason = short_name(run.receipt.invalid_reason or "")
            screen.line(f"INVALID {run.folder} since {run.receipt.invalidated_at}: {reason}", "bold red")
    screen.line()


def print_nothing(screen: Screen, question: StateQuestion) -> None:
    """Nothing to look at is not the same as nothing wrong."""
    matrix = question.states.matrix(neighbours=False)
    total = matrix.conversations + matrix.without_states + sum(group.n for group in matrix.excluded)
    scope = "" if question.flow is None and question.agent is None else f" of {question.scope}"
    if not total:
        print_words(screen, f"no conversation{scope} in {question.places}: nothing ran it")
        return
    print_words(screen, f"none of the {counted(total, 'conversation')}{scope} in {question.places} tells of states")
    if broke := total - matrix.without_states - matrix.conversations:
        screen.line(f"  {counted(broke, 'conversation')} broke and {'is' if broke == 1 else 'are'} excluded")
    screen.line(f"  {_HINT}")
