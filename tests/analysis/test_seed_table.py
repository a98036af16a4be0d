"""The table of the seed comes out of events: the same rows, the same figures."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

import convoscope
from convoscope.analysis.flows.state_table import StateFigures
from convoscope.cli.main import app
from convoscope.runs.make import make_run as score
from support.seed_table import SEED, Row, write


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> convoscope.Run:
    folder = tmp_path_factory.mktemp("seed")
    write(folder)
    return score(folder, out=folder / "run", metrics=["state", "flow"], workers=1)


def as_printed(row: StateFigures) -> Row:
    """At the rounding of the seed."""
    assert row.latency_p95_ms is not None
    two = [
        round(rate.value, 2)
        for rate in (row.progress, row.stall, row.escalation, row.revisit)
        if rate.value is not None
    ]
    fill = row.slot_fill_rate.value
    return Row(
        row.flow,
        row.state,
        row.n,
        *two,
        dwell=round(row.dwell_turns.value or 0.0, 1),
        lat_p95=round(row.latency_p95_ms / 1000, 1),
        slot_fill=None if fill is None else round(fill, 2),
    )


def test_the_matrix_has_the_rows_of_the_seed(run: convoscope.Run) -> None:
    printed = [as_printed(row) for row in convoscope.states(run).matrix().rows]
    assert {(row.flow, row.state): row for row in printed} == {(row.flow, row.state): row for row in SEED}


def test_worst_first_is_the_order_of_the_seed_but_for_its_first_two_rows(run: convoscope.Run) -> None:
    # The seed prints the state with n=2 above the one with n=13, both at stall 1.0 and progress 0.0. By flow-states
    # (tier 1 matrix: stall desc, progress asc, n desc) the greater n comes first. All others stand as in the seed.
    found = [row.state for row in convoscope.states(run).matrix().rows]
    assert found == [SEED[1].state, SEED[0].state, *(row.state for row in SEED[2:])]


def test_nothing_else_is_told_of_these_conversations(run: convoscope.Run) -> None:
    found = convoscope.states(run).matrix()
    assert found.conversations == 40  # 13 + 13 + 5 + 9
    assert (found.untested, found.excluded, found.without_states) == ((), (), 0)
    assert run.read_report.problem_count == 0


def test_a_rounded_figure_stands_for_the_counts_behind_it(run: convoscope.Run) -> None:
    rows = {row.state: row for row in convoscope.states(run).matrix().rows}
    triage, send = rows["triage"], rows["dispatch_send"]
    assert (triage.visits, triage.stall.value) == (13 + 43, 4 / 13)
    assert (send.visits, send.stall.value, send.revisit.value) == (8 + 11, 4 / 8, 11 / 8)
    assert rows["listen_owner"].escalation.value == 4 / 9
    assert rows["collect_details"].slot_fill_rate.value == pytest.approx(1 / 10)
    assert triage.slot_fill_rate.reason == "nothing_required"


def test_the_printed_table_is_that_of_the_seed(run: convoscope.Run) -> None:
    told = CliRunner().invoke(app, ["states", "matrix", str(run.folder), "--markdown"])
    assert told.exit_code == 0, told.output
    table = told.output.split("95 % intervals")[0]
    printed = [
        [cell.strip() for cell in line.strip().strip("|").split("|")][:10]
        for line in table.splitlines()
        if line.startswith("| ")
    ]
    assert printed[0] == (
        ["Flow", "State", "n", "progress", "stall", "escal", "revisit", "dwell", "lat_p95(s)", "slot_fill"]
    )
    assert [line[1] for line in printed[1:]] == [SEED[1].state, SEED[0].state, *(row.state for row in SEED[2:])]
    by_state = {line[1]: line for line in printed[1:]}
    for row in SEED:
        _check(by_state[row.state], row)
    assert "stall=fraction stuck here · progress=fraction that advanced · revisit=oscillation." in table
    assert "High stall + low progress = the state pulling the flow down." in table


def _check(line: list[str], row: Row) -> None:
    """Figures compared as numbers; every stall of the seed is above 0.3, and bold."""
    flow, state, n, progress, stall, *rest, slot_fill = line
    assert (flow, state, n) == (row.flow, row.state, str(row.n))
    assert stall.startswith("**")
    assert float(stall.strip("*")) == row.stall
    assert [float(one) for one in (progress, *rest)] == [row.progress, row.escal, row.revisit, row.dwell, row.lat_p95]
    assert (slot_fill == "·") if row.slot_fill is None else (float(slot_fill) == row.slot_fill)
