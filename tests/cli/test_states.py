"""`convoscope states`: which state broke the flow, as a person, a pipe, a program and a build meet the answer."""

from __future__ import annotations

import io
import json
import math
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import duckdb
import pytest

from cli.test_commands import on_a_terminal
from convoscope.analysis.flows.flow_matrix import Aspect, FlowFigures, FlowMatrix, JudgeVerdict
from convoscope.analysis.words import decimal_text
from convoscope.cli.main import main
from convoscope.conversation import (
    ComponentMetric,
    Conversation,
    Flow,
    FlowSegment,
    FlowState,
    GuardEvaluated,
    Outcome,
    Participant,
    SlotFilled,
    StateEntered,
    StateExited,
    Text,
    Utterance,
)
from convoscope.report.flow_answers import StateQuestion, print_flows
from convoscope.report.screen import Screen
from convoscope.runs.make import make_run as score
from support.command_line import Ended
from support.command_line import convoscope as in_a_process

VIEWING = Flow(
    name="apartment_viewing",
    states=(
        FlowState(name="greet"),
        FlowState(name="collect_details", required_slots=("date", "phone")),
        FlowState(name="confirm"),
        FlowState(name="booked", terminal="success"),
        FlowState(name="pay_deposit"),
    ),
    segments=(
        FlowSegment(name="intake", kind="gather", members=("greet", "collect_details")),
        FlowSegment(name="readback", members=("confirm",)),
        FlowSegment(name="close", members=("booked",)),
    ),
)
PATH = ("greet", "collect_details", "confirm", "booked")
ASPECTS = ["flow.correctness", "flow.completion", "flow.errors", "flow.latency_mean", "flow.latency_p95"]
PARTS = ["flow.correctness.success_terminal", "flow.correctness.slots_filled", "flow.correctness.final_status"]
HOSTILE = "\x1b[31m|<b>`x`\n**y**\x9b2J"


def call(
    id: str,
    path: Sequence[str],
    *,
    flow: Flow | None = VIEWING,
    name: str = "apartment_viewing",
    agent: str = "gemini",
    completed: bool | None = True,
    latencies: Mapping[str, Sequence[int]] | None = None,
    slots: Mapping[str, Sequence[str]] | None = None,
    guard_errors: Mapping[str, int] | None = None,
    error: str = "",
) -> Conversation:
    """A call through some states, each entered and left for the next."""
    timeline: list[Any] = []

    def add(kind: Any, **fields: Any) -> None:
        timeline.append(kind(seq=len(timeline) + 1, **fields))

    for at, state in enumerate(path):
        add(StateEntered, state=state)
        for latency in (latencies or {}).get(state, (1000,)):
            add(ComponentMetric, component="turn", label="turn_complete", values={"latency_ms": latency})
        for slot in (slots or {}).get(state, ()):
            add(SlotFilled, slot=slot, value=0, state=state)
        for _ in range((guard_errors or {}).get(state, 0)):
            add(GuardEvaluated, guard="is_open", error="no answer", state=state)
        if at + 1 < len(path):
            add(StateExited, state=state, to_state=path[at + 1])
    reason = "" if completed is None else "terminal" if completed else "caller_hung_up"
    return Conversation(
        id=id,
        dimensions={"flow": name, "agent": agent},
        flow=flow,
        participants=(Participant("agent", "assistant"),),
        timeline=tuple(timeline),
        outcome=Outcome(completed=completed, ended_reason=reason, error=error),
    )


def viewings(good: int, bad: int) -> list[Conversation]:
    """Calls that book a viewing, and calls that get stuck before."""
    filled = {"collect_details": ("date", "phone")}
    booked = [call(f"good-{at:02d}", PATH, slots=filled) for at in range(good)]
    return [*booked, *(call(f"bad-{at:02d}", PATH[:2], completed=False) for at in range(bad))]


def monday() -> list[Conversation]:
    """The row of the seed, `apartment_viewing / collect_details`, made from five calls, and what else there may be.

    Two of the five stop in the state: stall 2/5 = 0.4, progress 3/5 = 0.6. Its turns are 2, 2, 2, 3, 3: dwell 12/5 =
    2.4. Of the 12 latencies ten are 2 s and two are 8.8 s; the 95th percentile lies between the 11th and the 12th:
    8.8 s. Of its two slots one call collects one here: slot_fill (0.5 + 0 + 0 + 0 + 0)/5 = 0.1; the callers of three
    calls told 1, 2 and 2 of them before: 5 front-loaded.
    """
    two, three = (2000, 2000), (2000, 2000, 2000)
    early = {"greet": ("date", "phone")}
    return [
        call(
            "v1",
            PATH,
            latencies={"collect_details": (2000, 8800)},
            slots={"greet": ("date",), "collect_details": ("phone",)},
        ),
        call("v2", PATH, latencies={"collect_details": (8800, 2000)}, slots=early),
        call("v3", PATH, latencies={"collect_details": two}, slots=early),
        call("v4", PATH[:2], latencies={"collect_details": three}, completed=False),
        call("v5", PATH[:2], latencies={"collect_details": three}, completed=False),
        call("v6", PATH, error="backend_unavailable"),
        # Of grooming there is no definition, and of one call nobody knows how it ended.
        call("d1", ("listen_owner", "escalated"), flow=None, name="dog_grooming", agent="claude", completed=False),
        call("d2", ("listen_owner",), flow=None, name="dog_grooming", agent="claude", completed=None),
        Conversation(
            id="chat",
            participants=(Participant("agent", "assistant"),),
            timeline=(Utterance(seq=1, speaker="agent", intended=Text("Hello.")),),
        ),
    ]


def hostile() -> list[Conversation]:
    """Names that steer a terminal, break a table and mark up a page."""
    return [
        call(f"-{HOSTILE}{at}", (HOSTILE, "loop", HOSTILE, "loop"), flow=None, name=HOSTILE, completed=False)
        for at in range(2)
    ]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs."""
    folder = tmp_path_factory.mktemp("work")
    made = {
        "monday": monday(),
        "hostile": hostile(),
        "nine": viewings(9, 1),
        "eight": viewings(8, 2),
        "seven": viewings(7, 3),
        "five": viewings(5, 5),
        "few": viewings(4, 0),
        "chats": [one for one in monday() if one.id == "chat"],
    }
    for name, conversations in made.items():
        score(conversations, metrics=[*ASPECTS, *PARTS], out=folder / name, workers=1)
    return folder


def convoscope(*arguments: str, cwd: Path) -> Ended:
    """`convoscope ARGUMENTS` in this process, which saves the time of starting another."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with chdir(cwd), redirect_stdout(out), redirect_stderr(err), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["convoscope", *arguments])
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
    return Ended(code, out.getvalue(), err.getvalue())


def rows(out: str) -> list[str]:
    """The lines, one blank between their words."""
    return [" ".join(line.split()) for line in out.splitlines()]


class TestMatrix:
    def test_is_the_table_of_the_seed(self, work: Path) -> None:
        ended = in_a_process("states", "matrix", "monday", cwd=work)
        assert (ended.code, ended.err) == (0, "")
        lines = ended.out.splitlines()
        assert lines[0] == "# Per-state quality — all flows (worst first)"
        assert rows(ended.out)[2].startswith("Flow State n progress stall escal revisit dwell lat_p95(s) slot_fill ")
        at = rows(ended.out).index(
            "apartment_viewing collect_details 5 0.6 **0.4** 0.0 0.0 2.4 8.8 0.1 0 5 too few to conclude"
        )
        # Wilson, 3 of 5, 2 of 5, 0 of 5. The fill rates 0.5, 0, 0, 0, 0 are no trials: a draw of five holds the 0.5 as
        # often as 5 trials of 1/5 succeed, never in 33 %, 3 times or more in 5.8 %, 4 times or more in 0.7 %.
        assert rows(ended.out)[at + 1] == "0.23–0.88 0.12–0.77 0.00–0.43 0.01–0.47"
        assert (
            "stall=fraction stuck here · progress=fraction that advanced · revisit=oscillation.\n"
            "High stall + low progress = the state pulling the flow down.\n"
        ) in ended.out

    def test_says_what_is_an_end_untested_excluded_and_unknown(self, work: Path) -> None:
        out = convoscope("states", "matrix", "monday", cwd=work).out
        at = next(at for at, line in enumerate(out.splitlines()) if line.endswith("  end: success"))
        assert out.splitlines()[at + 1].endswith("  too few to conclude")
        assert "\nuntested, no conversation came there: apartment_viewing: pay_deposit\n" in out
        assert "\nexcluded, in no figure: 1 conversation: 1 of apartment_viewing (backend unavailable)\n" in out
        assert "\n1 conversation has no state\n" in out
        assert "\n6 states in 7 conversations: monday\n" in out
        # d1 is not stuck in listen_owner; of d2 nobody knows. So the stall is 0 of 1, and no state has all dots.
        assert any(row.startswith("dog_grooming listen_owner 2 0.0 0.0 0.5 ") for row in rows(out))
        assert "slot_fill (no flow definition; nothing required)" in out

    def test_a_flow_has_its_neighbours_with_transitions(self, work: Path) -> None:
        ended = convoscope("states", "matrix", "monday", "--flow", "apartment_viewing", cwd=work)
        assert ended.out.startswith("# Per-state quality — apartment_viewing (worst first)\n")
        assert "dog_grooming" not in ended.out
        # five calls came from greet, three went on
        assert "collect_details greet 5 confirm 3" in rows(ended.out)
        assert "came from" not in convoscope("states", "matrix", "monday", cwd=work).out

    def test_only_one_agent(self, work: Path) -> None:
        ended = convoscope("states", "matrix", "monday", "--agent", "claude", cwd=work)
        assert ended.out.startswith("# Per-state quality — all flows, agent claude (worst first)\n")
        assert "apartment_viewing  collect" not in ended.out

    def test_markdown_is_the_table_of_the_seed(self, work: Path) -> None:
        lines = convoscope("states", "matrix", "monday", "--markdown", cwd=work).out.splitlines()
        wanted = "| apartment_viewing | collect_details | 5 | 0.6 | **0.4** | 0.0 | 0.0 | 2.4 | 8.8 | 0.1 |"
        assert any(" ".join(line.split()).startswith(wanted) for line in lines)
        assert re.fullmatch("(\\|-+){2}(\\|-+:){10}\\|-+\\|", lines[3])  # names, figures, the note
        assert len({len(line) for line in lines[2:10]}) == 1

    def test_several_runs_are_taken_together(self, work: Path) -> None:
        out = convoscope("states", "matrix", "nine", "seven", cwd=work).out
        # 1 + 3 of 20 calls are stuck
        assert any(row.startswith("apartment_viewing collect_details 20 0.8 0.2 ") for row in rows(out))
        assert "too few" not in out

    def test_json(self, work: Path) -> None:
        told = convoscope("states", "matrix", "monday", "--flow", "apartment_viewing", "--json", cwd=work).json
        assert (told["runs"], told["flow"]) == (["monday"], "apartment_viewing")
        worst = told["rows"][0]
        assert (worst["state"], worst["n"], worst["stall"]["value"]) == ("collect_details", 5, 0.4)
        assert worst["led_to"] == [{"state": "confirm", "transitions": 3, "conversations": 3}]
        assert told["untested"] == [{"flow": "apartment_viewing", "state": "pay_deposit", "segment": None}]
        assert told["excluded"] == [{"flow": "apartment_viewing", "reason": "backend_unavailable", "n": 1}]

    def test_a_wide_terminal_has_bold_figures(self, work: Path) -> None:
        seen = on_a_terminal(work, "states", "matrix", "monday", COLUMNS="200")
        assert "**" not in seen
        assert re.search("\x1b\\[1m *0\\.4", seen)

    def test_a_narrower_one_has_the_flow_below_the_state(self, work: Path) -> None:
        seen = on_a_terminal(work, "states", "matrix", "monday", COLUMNS="140", NO_COLOR="1")
        seen = re.sub("\x1b\\[[0-9;]*m", "", seen)
        assert " State of Flow " in seen
        # No guard failed, so there is no column of zeros; the others stand in their table.
        assert "guard" not in seen
        lines = rows(seen)
        at = next(at for at, line in enumerate(lines) if line.startswith("collect_details 5 0.6"))
        assert lines[at + 1].startswith("apartment_viewing 0.23–0.88")
        assert max(map(len, seen.splitlines())) <= 140

    @pytest.mark.parametrize("width", [80, 40])
    def test_a_narrow_terminal_has_one_block_per_state(self, width: int, work: Path) -> None:
        seen = on_a_terminal(work, "states", "matrix", "monday", COLUMNS=str(width), NO_COLOR="1")
        assert "apartment_viewing / collect_details\r\n" in seen
        assert "stall **0.4** [0.12–0.77]" in seen
        blocks = seen.partition("\r\nstall=")[0].splitlines()[1:]
        assert max(map(len, blocks)) <= width


class TestTiers:
    def test_segments(self, work: Path) -> None:
        ended = convoscope("states", "segments", "monday", cwd=work)
        # intake: its 10 rows advance in 5 + 3, yield 0.8. Turns 1 + 2.4 for 2 states: 2 ÷ 3.4 = 0.59. No revisit, 2 of
        # 10 stuck: coherence 0.8. Cohesion 0.8 × (0.35 × 0.588 + 0.65 × 0.8) = 0.58. Its two slots in five calls: 6 of
        # 10 were filled, wherever.
        wanted = "apartment_viewing intake collect 2 5 0.58 0.8 0.6 10 slots 0.59 0.8 too few to conclude"
        assert wanted in rows(ended.out)
        # 8 of 10 rows of five calls, 2 2 2 1 1: variance 5/4 · 1.2 ÷ 10² = 0.9375 · 0.16 ÷ 10; (4 · 0.9375 + 2 · 2) ÷ 6
        # = 1.2917, 7.742 trials. Slots are filled in a call or not at all, three calls of five: variance
        # 5/4 · (3 · 0.8² + 2 · 1.2²) ÷ 10² = 2.5 · 0.24 ÷ 10;
        # (4 · 2.5 + 2 · 2) ÷ 6 = 2.3333, 4.286 trials. Wilson of both.
        assert "0.45–0.95 0.21–0.89" in rows(ended.out)
        assert "cohesion (terminal kind; fewer than two states)" in ended.out
        assert "in no segment (no flow definition): 2 states of dog_grooming: escalated, listen_owner" in ended.out

    def test_archetypes(self, work: Path) -> None:
        ended = convoscope("states", "archetypes", "monday", cwd=work)
        # gather is a way to collect; of one segment there is no spread
        assert "collect 1 1 0.58 · apartment_viewing / intake" in rows(ended.out)
        assert "spread (one segment alone; fewer than two states; terminal kind)" in ended.out
        told = convoscope("states", "archetypes", "monday", "--json", cwd=work).json
        assert [one["kind"] for one in told["archetypes"]] == ["collect", "confirm", "terminal"]

    def test_flows(self, work: Path) -> None:
        ended = convoscope("states", "flows", "monday", cwd=work)
        # three of five reach the success and have their slots, the others neither: 6 points, and 6 for completion
        assert any(row.startswith("apartment_viewing gemini 5 1 6.0 6.0 10.0 ") for row in rows(ended.out))
        assert any(row.startswith("dog_grooming claude 2 0 · 0.0 10.0 ") for row in rows(ended.out))
        assert "apartment_viewing gemini 0.6 0.6 ·" in rows(ended.out)
        assert "final_status (no contract declared)" in ended.out
        assert "humanness (no judge)" in ended.out
        told = convoscope("states", "flows", "monday", "--json", cwd=work).json
        assert told["rows"][0]["parts"]["slots_filled"]["score"] == 0.6

    @pytest.mark.parametrize("question", ["segments", "archetypes"])
    def test_without_definitions_there_are_no_segments(self, question: str, work: Path) -> None:
        ended = convoscope("states", question, "monday", "--flow", "dog_grooming", cwd=work)
        assert ended.code == 0
        assert "no state belongs to a segment" in ended.out
        assert "--flows FILE" in ended.out

    def test_judges_stand_each_in_a_row_and_the_panel_beside_the_aspects(self) -> None:
        ten, none = Aspect(score=10.0, n=12, low=9.0, high=10.0), Aspect(score=None, n=0, reason="not_scored")
        judges = (
            JudgeVerdict(judge="kind", score=8.0, n=12),
            JudgeVerdict(judge="strict", score=5.0, n=12),
            JudgeVerdict(judge="panel:kind,strict", score=6.5, n=12, spread=3.0),
        )
        row = FlowFigures(
            flow="f",
            agent="a",
            n=12,
            excluded=0,
            correctness=none,
            parts={},
            completion=ten,
            errors=ten,
            latency_mean=None,
            latency_p95=None,
            latency_n=0,
            humanness=judges,
            caution="",
        )
        out = io.StringIO()
        print_flows(Screen(out), StateQuestion([]), FlowMatrix(rows=(row,), excluded=()))
        told = rows(out.getvalue())
        assert "f a 12 0 · 10.0 10.0 · · 6.5" in told
        assert told[-4:] == [
            "Flow / Agent judge score n spread",
            "f / a kind 8.0 12",
            "f / a strict 5.0 12",
            "f / a panel:kind,strict 6.5 12 3.0",
        ]
        latency = "lat_mean(s) (no latency logged), lat_p95(s) (no latency logged)"
        assert f"· not measured: correctness (not scored), {latency}" in told


@pytest.mark.parametrize(
    ("value", "digits", "most", "text"),
    [
        (0.0, 2, 1.0, "0.0"),
        (0.375, 2, 1.0, "0.38"),
        (0.4, 2, 1.0, "0.4"),
        (1.0, 2, 1.0, "1.0"),
        (3.307, 2, math.inf, "3.31"),
        (1.26, 1, math.inf, "1.3"),
        (None, 2, 1.0, "·"),
        # one of a thousand is not none, and all but one are not all
        (0.001, 2, 1.0, "<0.01"),
        (0.999, 2, 1.0, ">0.99"),
        (9.96, 1, 10.0, ">9.9"),
    ],
)
def test_figures_are_written_as_in_the_seed(value: float | None, digits: int, most: float, text: str) -> None:
    assert decimal_text(value, digits, most) == text


class TestAnalyze:
    def test_says_what_is_wrong_and_what_to_do(self, work: Path) -> None:
        ended = convoscope("states", "analyze", "monday", cwd=work)
        assert ended.code == 0
        told = ended.out.splitlines()
        start = told.index("1. apartment_viewing / collect_details (segment intake): conversations get stuck")
        cause = [line.strip() for line in told[start + 1 : told.index("", start)]]
        assert cause[:4] == [
            "n=5: too few to conclude",
            "2 of 5 conversations got stuck here: stall 0.4, 95 % 0.12–0.77, n=5 (weak from 0.3)",
            "it collects 10 % of the slots that it requires: slot_fill 0.1, 95 % 0.01–0.47, n=5 (weak below 0.5)",
            "one turn in twenty takes 8.8 s or longer (budget 4 s): n=12 turns",
        ]
        assert "cost: 2 of 5 conversations that came here ended here, unfinished" in cause
        # all three that went on came to both; so would the two that did not
        assert "fewer reach: booked (3 reach it, about 2 more would), confirm (3 reach it, about 2 more would)" in cause
        # the two that got stuck, and no other
        assert [line for line in cause if line.startswith("open: ")] == [
            f"open: convoscope show monday {id}" for id in ("v4", "v5")
        ]
        assert "untested, no conversation came there: apartment_viewing: pay_deposit" in told
        assert "1 conversation has no state" in told

    def test_the_commands_can_be_run(self, work: Path) -> None:
        told = convoscope("states", "analyze", "monday", cwd=work).out
        commands = [line.split("open: convoscope ")[1] for line in told.splitlines() if "open: " in line]
        assert convoscope(*shlex.split(commands[0]), cwd=work).code == 0

    def test_the_latency_budget(self, work: Path) -> None:
        assert "takes 8.8 s" not in convoscope("states", "analyze", "monday", "--latency-budget", "9", cwd=work).out

    def test_only_the_worst_and_how_many_more(self, work: Path) -> None:
        out = convoscope("states", "analyze", "monday", "--top", "1", cwd=work).out
        assert "\n2. " not in out
        assert "\nand 1 more: --top 2 shows them all\n" in out

    def test_says_so_when_nothing_is_wrong_and_of_what(self, work: Path) -> None:
        out = convoscope("states", "analyze", "nine", cwd=work).out
        assert "no rule finds any of 4 states in 10 conversations of nine weak;" in out

    def test_a_healthy_state_whose_callers_told_everything_before(self, tmp_path: Path) -> None:
        early = {"greet": ("date", "phone")}
        score([call(f"v{at}", PATH, slots=early) for at in range(10)], metrics=ASPECTS, out=tmp_path / "run", workers=1)
        out = convoscope("states", "analyze", "run", cwd=tmp_path).out
        assert "no rule finds any of 4 states in 10 conversations of run weak;" in out
        assert (
            "healthy, though it collects little: apartment_viewing / collect_details "
            "(slot_fill 0.0, progress 1.0, 20 slots filled before it was entered)"
        ) in out

    def test_json(self, work: Path) -> None:
        told = convoscope("states", "analyze", "monday", "--json", cwd=work).json
        assert (told["runs"], told["states"], told["conversations"]) == (["monday"], 6, 7)
        assert told["causes"][0]["conversations"] == ["v4", "v5"]

    @pytest.mark.parametrize("option", [("--top", "0"), ("--latency-budget", "0"), ("--latency-budget", "nan")])
    def test_bad_options_are_bad_usage(self, option: tuple[str, str], work: Path) -> None:
        ended = convoscope("states", "analyze", "monday", *option, cwd=work)
        assert ended.code == 2
        assert ended.err.startswith("error: ")


class TestGate:
    """Each booked call has 10 points, each stuck one 0: 9 of 10 are 9 points."""

    @pytest.mark.parametrize(
        ("run", "code", "verdict"),
        [
            # a drop of exactly 1.0 is allowed
            ("eight", 0, "apartment_viewing: passed: correctness 8.00, baseline 9.00 [n=10, baseline n=10]; "),
            ("seven", 1, "apartment_viewing: failed: correctness 7.00, down 2.00 from 9.00 (allowed 1)"),
            ("five", 1, "apartment_viewing: failed: correctness 5.00 is below the floor of 6"),
            ("few", 3, "apartment_viewing: undetermined: correctness n=4: too few to conclude (least 10)"),
        ],
    )
    def test_one_line_per_flow_and_the_verdict(self, run: str, code: int, verdict: str, work: Path) -> None:
        ended = convoscope("states", "gate", run, "--baseline", "nine", cwd=work)
        assert ended.code == code
        lines = ended.out.splitlines()
        assert len(lines) == 2
        assert lines[0].startswith(verdict)
        outcome = {0: "passed", 1: "failed", 3: "undetermined"}[code]
        assert lines[1] == (f"gate {outcome}: 1 flow: 1 {outcome}; floor 6, drop 1, least n 10; {run} against nine")

    def test_the_demands_can_be_set(self, work: Path) -> None:
        gate = ("states", "gate", "seven", "--baseline", "nine")
        assert convoscope(*gate, "--drop", "2", cwd=work).code == 0
        assert convoscope(*gate, "--drop", "2", "--floor", "7.5", cwd=work).code == 1
        assert convoscope(*gate, "--min-n", "11", cwd=work).code == 3
        # nobody called a tool, so there is no error, and nothing to lose
        assert convoscope(*gate, "--aspect", "errors", cwd=work).code == 0

    def test_a_baseline_of_several_runs(self, work: Path) -> None:
        ended = convoscope("states", "gate", "eight", "--baseline", "nine", "--baseline", "five", cwd=work)
        # 14 of 20
        assert "correctness 8.00, baseline 7.00 [n=10, baseline n=20]" in ended.out

    def test_json_has_the_same_exit_code(self, work: Path) -> None:
        ended = in_a_process("states", "gate", "seven", "--baseline", "nine", "--json", cwd=work)
        assert ended.code == 1
        assert (ended.json["runs"], ended.json["baseline"], ended.json["outcome"]) == (["seven"], ["nine"], "failed")
        assert ended.json["flows"][0]["aspects"][0]["score"] == 7.0

    @pytest.mark.parametrize(
        "option",
        [("--floor", "nan"), ("--floor", "11"), ("--drop", "-1"), ("--min-n", "0"), ("--aspect", "humanness")],
    )
    def test_demands_that_make_no_sense_are_bad_usage(self, option: tuple[str, str], work: Path) -> None:
        assert convoscope("states", "gate", "eight", "--baseline", "nine", *option, cwd=work).code == 2

    def test_without_a_baseline_it_is_bad_usage(self, work: Path) -> None:
        assert convoscope("states", "gate", "eight", cwd=work).code == 2


class TestRecount:
    def test_holds(self, work: Path) -> None:
        ended = convoscope("states", "recount", "monday", "nine", cwd=work)
        assert (ended.code, ended.err) == (0, "")
        # 3 × 4 + 2 × 2 rows of the viewings, 2 + 1 of grooming; 9 × 4 + 2
        assert ended.out == (
            "monday: 19 rows of states, 9 conversations: the events bear out every one\n"
            "nine: 38 rows of states, 10 conversations: the events bear out every one\n"
        )

    def test_each_disagreement_is_an_error(self, tmp_path: Path) -> None:
        score(viewings(30, 0), metrics=ASPECTS, out=tmp_path / "run", workers=1)
        (stored,) = (tmp_path / "run" / "states.parquet").iterdir()
        with duckdb.connect() as connection:
            connection.execute(f"CREATE TABLE s AS SELECT * FROM '{stored}'")
            connection.execute("UPDATE s SET visits = 7 WHERE state = 'greet'")
            connection.execute(f"COPY s TO '{stored}' (FORMAT parquet)")
        ended = convoscope("states", "recount", "run", cwd=tmp_path)
        assert ended.code == 1
        assert ended.out == "run: 120 rows of states, 30 conversations: 30 disagreements with the events\n"
        errors = ended.err.splitlines()
        assert errors[0] == (
            "error: run: apartment_viewing / greet in good-00: has 7 visits in its row, and 1 in the events"
        )
        assert (len(errors), errors[-1]) == (21, "error: run: and 10 more")
        told = convoscope("states", "recount", "run", "--json", cwd=tmp_path)
        assert (told.code, told.json["holds"], told.json["audits"][0]["disagreements"]) == (1, False, 30)

    def test_its_old_name_says_the_new_one(self, work: Path) -> None:
        ended = convoscope("states", "audit", "monday", cwd=work)
        assert ended.code == 2
        assert ended.err.startswith("error: `convoscope states audit` is called `convoscope states recount`\n")


QUESTIONS = ("matrix", "segments", "flows", "archetypes", "analyze")


class TestNothingToLookAt:
    @pytest.mark.parametrize("question", QUESTIONS)
    def test_is_said_and_is_not_all_well(self, question: str, work: Path) -> None:
        ended = convoscope("states", question, "chats", cwd=work)
        assert ended.code == 0
        assert "none of the 1 conversation in chats has states" in ended.out
        assert "nothing is wrong" not in ended.out

    def test_a_gate_cannot_tell(self, work: Path) -> None:
        ended = convoscope("states", "gate", "chats", "--baseline", "chats", cwd=work)
        assert ended.code == 3
        assert "none of the 1 conversation in chats has states" in ended.out
        assert "gate undetermined: 0 flows: nothing to check;" in ended.out

    @pytest.mark.parametrize("question", QUESTIONS)
    def test_an_unknown_flow_or_agent_is_bad_usage(self, question: str, work: Path) -> None:
        ended = convoscope("states", question, "monday", "--flow", "viewing", cwd=work)
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.startswith("error: no conversation has the flow 'viewing'\n  known: (no flow), apartment")
        assert convoscope("states", question, "monday", "--agent", "nobody", cwd=work).code == 2

    def test_a_folder_that_is_no_run_is_bad_usage(self, work: Path) -> None:
        assert convoscope("states", "matrix", "sunday", cwd=work).code == 2


class TestHostileNames:
    @pytest.mark.parametrize(
        "question",
        [*((one,) for one in QUESTIONS), ("matrix", "--markdown"), ("matrix", "--json"), ("matrix", "--flow", HOSTILE)],
    )
    def test_cannot_steer_a_terminal_or_break_a_line(self, question: tuple[str, ...], work: Path) -> None:
        ended = convoscope("states", question[0], "hostile", *question[1:], cwd=work)
        assert ended.code == 0
        assert not {"\x1b", "\x9b"} & set(ended.out + ended.err)
        assert "\n**y**" not in ended.out

    def test_a_gate_stays_one_line(self, work: Path) -> None:
        ended = convoscope("states", "gate", "hostile", "--baseline", "hostile", cwd=work)
        assert ended.code == 3
        # The flow, the verdict on all, and what would help.
        assert len(ended.out.splitlines()) == 3

    def test_markdown_has_no_markup_of_theirs(self, work: Path) -> None:
        out = convoscope("states", "matrix", "hostile", "--markdown", cwd=work).out
        lines = [line for line in out.splitlines() if line.startswith("|")]
        assert {line.count("|") for line in lines[:4]} == {len(lines[0].split("|")) - 1}
        assert all("``" in line.partition("<b>")[0] for line in lines if "<b>" in line)

    def test_on_a_narrow_terminal(self, work: Path) -> None:
        seen = on_a_terminal(work, "states", "matrix", "hostile", COLUMNS="60", NO_COLOR="1")
        assert "\x9b" not in seen
        assert "\x1b[31m" not in seen


def test_an_invalid_run_is_said_to_be(tmp_path: Path) -> None:
    run = score(viewings(2, 0), metrics=ASPECTS, out=tmp_path / "run", workers=1)
    run.invalidate("a wrong prompt")
    assert "\nINVALID run since " in convoscope("states", "matrix", "run", cwd=tmp_path).out
    ended = convoscope("states", "gate", "run", "--baseline", "run", "--min-n", "1", cwd=tmp_path)
    assert ended.code == 3


def test_json_of_every_question_names_the_runs(work: Path) -> None:
    for question in QUESTIONS:
        assert json.loads(convoscope("states", question, "nine", "eight", "--json", cwd=work).out)["runs"] == [
            "nine",
            "eight",
        ]
