"""The audit of states: visits counted again from the events that a run keeps (flow-states, Audit)."""

from __future__ import annotations

import msgspec

from convoscope.analysis.flows.state_matrix import untested
from convoscope.analysis.flows.state_table import StateTable
from convoscope.metrics.flow.states import STATE_TABLE
from convoscope.runs.audit import Audit, Disagreement, recounted
from convoscope.runs.run import Run


class StateDisagreement(Disagreement, frozen=True, kw_only=True, rename={"subject": "state"}):
    """The same of a state, under its name."""


def audit_states(run: Run, *, values: bool = False) -> Audit:
    """The audit of the rows of states, and of what is marked as untested: only what is declared can be that."""
    recount = recounted(run, STATE_TABLE, values=values)
    for state in untested(StateTable([run])) if run.flows else ():
        if count := recount.ran[state.flow, state.state]:
            recount.add(
                Disagreement(
                    conversation="",
                    flow=state.flow,
                    subject=state.state,
                    fault="not_untested",
                    stored=None,
                    counted=count,
                )
            )
    examples = [StateDisagreement(**msgspec.structs.asdict(one)) for one in recount.examples]
    return msgspec.structs.replace(recount.audit(), examples=tuple(examples))
