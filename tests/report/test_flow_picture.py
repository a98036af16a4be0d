"""The picture of a flow and what stands around it: colours, words, bounds, and that nothing in it is markup."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browser.walks import make_run, viewings, walk
from convoscope.analysis.answer import look_at_lost, make_answer
from convoscope.analysis.flows.state_table import StateTable
from convoscope.analysis.words import percent_text
from convoscope.conversation import Flow, FlowState
from convoscope.report.flow_tables import shortened
from convoscope.report.page.flow_picture import (
    HIGH,
    MAX_EDGES,
    MAX_STATES,
    PITCH,
    Picture,
    PictureState,
    arrange_flow,
    picture,
    wrapped,
)
from convoscope.report.page.flow_screen import MAX_FLOWS, Fix, FlowScreen, flow_screen
from convoscope.report.page.page import find_flows
from convoscope.runs.make import make_run as score
from convoscope.runs.ranking import rank
from convoscope.runs.run import Run
from support.chats import chat, user


def seen(name: str, order: float = 0, n: int = 10, **facts: Any) -> PictureState:
    return PictureState(name, order, n, **facts)


def drawn(*states: PictureState, back: dict[tuple[int, int], int] | None = None, **edges: int) -> Picture:
    """Edges as `a_b=3`, by the first letters of the states."""
    at = {state.name[0]: place for place, state in enumerate(states)}
    entries = {(at[one[0]], at[one[2]]): count for one, count in edges.items()}
    return picture(arrange_flow(states, entries), states, entries, back or {}, "call")


class TestWords:
    @pytest.mark.parametrize(
        ("share", "words"), [(0.0, "0 %"), (0.004, "<1 %"), (0.326, "33 %"), (0.998, ">99 %"), (1.0, "100 %")]
    )
    def test_what_is_not_nothing_is_never_zero(self, share: float, words: str) -> None:
        assert percent_text(share) == words

    def test_a_short_name_is_one_line(self) -> None:
        assert wrapped("collect_details") == ["collect_details"]

    def test_a_long_name_breaks_after_an_underscore(self) -> None:
        assert wrapped("invalid_verification_code_entered") == ["invalid_verification_", "code_entered"]

    def test_a_very_long_name_ends_in_dots(self) -> None:
        first, second = wrapped("x" * 10_000)
        assert set(first) == {"x"}
        assert second.endswith("x…")
        assert len(second) < 30

    @given(st.text(max_size=80))
    def test_any_name_makes_one_or_two_lines_with_something_in_them(self, name: str) -> None:
        lines = wrapped(name)
        assert 1 <= len(lines) <= 2
        assert all(line.strip() for line in lines)
        assert not set("\n\r\u2028\u202e").intersection("".join(lines))

    def test_a_long_name_says_how_much_is_missing(self) -> None:
        assert shortened("a" * 10_000) == "a" * 200 + "… (9,800 more characters)"

    def test_nothing_has_a_name_too(self) -> None:
        assert shortened(" \n ") == "(no name)"


def height(path: str) -> float:
    """Of a ribbon where it leaves its bar: from its first point to its last."""
    x, y = path[1:].split("C", maxsplit=1)[0].split()
    last = path[: path.index("Z")].rsplit(" ", 2)[-2:]
    assert last[0] == x
    return float(last[1]) - float(y)


class TestPicture:
    def test_a_bar_is_as_high_as_its_traffic_and_a_ribbon_too(self) -> None:
        made = drawn(seen("a", n=100), seen("b", 1, n=50), a_b=50)
        # The highest bar has HIGH pixels: 100 conversations, so 50 have half of it.
        assert [(state.name[0].text, state.visits.text, state.height) for state in made.states] == [
            ("a", "100", HIGH),
            ("b", "50", HIGH / 2),
        ]
        (ribbon,) = made.ribbons
        assert height(ribbon.path) == pytest.approx(HIGH / 2)
        assert ribbon.tip == "a → b: 50 calls"

    def test_columns_go_from_left_to_right(self) -> None:
        made = drawn(seen("a"), seen("b", 1), seen("c", 2), a_b=10, b_c=9)
        assert [state.x for state in made.states] == sorted({state.x for state in made.states})

    def test_what_is_lost_falls_to_the_ground_with_its_numbers(self) -> None:
        made = drawn(seen("a", n=100, stuck=30, handed_over=10), seen("b", 1, n=60), a_b=60)
        (fall,) = made.falls
        assert fall.tip == "a\n40 lost: 30 stuck, 10 handed to a person"
        assert f"V{made.ground:g}" in fall.stuck
        assert f"V{made.ground:g}" in fall.handed_over
        (lost,) = made.lost
        assert (lost.total, lost.lines) == ("40", ["30 stuck", "10 to a person"])
        assert made.ground > max(state.y + state.height for state in made.states)

    def test_of_one_kind_only_there_is_one_band(self) -> None:
        (fall,) = drawn(seen("a", stuck=3)).falls
        assert fall.stuck
        assert fall.handed_over == ""

    def test_several_states_of_a_column_say_who_loses_how_many(self) -> None:
        made = drawn(seen("a", n=30), seen("b", 1, n=10, stuck=4), seen("c", 1, n=20, stuck=7), a_b=10, a_c=20)
        (lost,) = made.lost
        assert (lost.total, lost.lines) == ("11", ["c 7", "b 4"])

    def test_nothing_lost_has_no_ground_texts(self) -> None:
        made = drawn(seen("a"), seen("b", 1), a_b=10)
        assert (made.falls, made.lost) == ([], [])

    def test_everything_lost_stays_within_its_column(self) -> None:
        states = [seen(name, at, n=1) for at, name in enumerate("bcdefghi", 1)]
        ways = {f"{one}_{other}": 1 for one, other in pairwise("abcdefghi")}
        made = drawn(seen("a", n=100, stuck=99), *states, **ways)
        (fall,) = made.falls
        across = float(fall.stuck.split("h-")[1].split("V")[0])
        assert 0 < across < PITCH

    def test_who_comes_back_makes_the_bar_higher_not_the_count(self) -> None:
        made = drawn(seen("a", n=10), seen("b", 1, n=10), seen("c", 2, n=10), a_b=10, a_c=10)
        first = made.states[0]
        assert (first.visits.text, first.height) == ("10", HIGH)
        assert made.states[1].height == HIGH / 2

    def test_ways_back_are_above_with_their_numbers(self) -> None:
        made = drawn(seen("a"), seen("b", 1), a_b=10, back={(1, 0): 4, (0, 1): 10, (1, 1): 2})
        (way,) = made.returns
        assert way.at.text == "4 go back to a"
        assert way.at.y < min(state.y for state in made.states)

    def test_goals_and_ends_are_marked(self) -> None:
        made = drawn(seen("a"), seen("won", 1, goal=True, end=True), seen("x", 1, end=True), a_w=5, a_x=5)
        assert [state.style for state in made.states] == ["state", "state goal", "state end"]

    def test_what_is_no_state_cannot_be_chosen(self) -> None:
        made = drawn(seen("a"), seen("goal", 1, goal=True, link=False), a_g=5)
        assert [state.number for state in made.states] == [0, -1]

    def test_a_state_that_nobody_of_a_version_entered_is_not_drawn(self) -> None:
        states = [seen("a"), seen("b", 1), seen("c", 1)]
        flow = arrange_flow(states, {(0, 1): 5, (0, 2): 5})
        made = picture(flow, [seen("a", n=5), seen("b", 1, n=5), seen("c", 1, n=0)], {(0, 1): 5}, {})
        assert [state.number for state in made.states] == [0, 1]

    def test_of_very_many_states_the_least_visited_are_left_out_and_counted(self) -> None:
        states = [seen(f"s{number}", number, n=1 + number) for number in range(MAX_STATES + 30)]
        edges = {(one, one + step): one + step for one in range(len(states) - 9) for step in range(1, 9)}
        flow = arrange_flow(states, edges)
        assert len(flow.shown) == MAX_STATES
        assert flow.fewer_states == 30
        assert min(flow.shown) == 30
        assert len(flow.edges) == MAX_EDGES
        # Of the 8 edges of each of the 141 first states, those that begin before state 30 have an end that is left out.
        assert flow.fewer_edges == 8 * (141 - 30) - MAX_EDGES


# ---------------------------------------------------------------------- of a run


def screen_of(run: Run) -> FlowScreen:
    ranking = rank(run)
    lost = look_at_lost(run)
    made = flow_screen(run, make_answer(run), ranking, lost)
    assert made is not None
    return made.screen


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_run(tmp_path_factory.mktemp("flow") / "run", list(viewings()))


@pytest.fixture(scope="module")
def screen(run: Run) -> FlowScreen:
    return screen_of(run)


class TestScreen:
    def test_it_says_what_it_is_of(self, screen: FlowScreen) -> None:
        assert screen.line == "64 chats of 1 flow went through 6 states; 1 declared state had no visit."

    def test_every_state_is_there_in_the_declared_order(self, screen: FlowScreen) -> None:
        (flow,) = screen.flows
        names = ["greet", "collect_details", "collect_contact", "confirm", "waiting_list", "booked", "escalated"]
        assert [state.name for state in flow.states] == names
        assert flow.line == "64 chats, 28 lost"

    def test_it_opens_on_the_state_that_loses_most(self, screen: FlowScreen) -> None:
        (flow,) = screen.flows
        # 21 got stuck where details are collected, 4 were handed over from there; one was lost at once, two later.
        assert [state.lost for state in flow.states] == [1, 25, 2, 0, 0, 0, 0]
        assert flow.opens == 1

    def test_the_panel_of_a_state(self, screen: FlowScreen) -> None:
        state = screen.flows[0].states[1]
        assert state.line == "25 of 63 chats are lost here."
        assert state.split == "21 stuck, 4 handed to a person"
        assert state.again == "10 chats enter it more than once"  # 6 came back, 4 went from it to itself
        assert state.interval.startswith("39.7 %; 95 % interval ")  # 25 / 63 = 0.397
        assert sum(one.lost for one in state.why) == 25
        assert state.calls == "#/calls?flow=apartment_viewing&lost_in=collect_details"
        assert len(state.worst) == 5
        assert state.diagnosis[0] == "Conversations get stuck."

    def test_what_a_fix_would_bring(self, screen: FlowScreen) -> None:
        # The others lose 1 of 64, 2 of 38 and 0 of 36: the median is 1 of 64, 1.6 %. Of the 38 that are not lost here
        # 36 reach the goal, so (25 - 63 / 64) * 36 / 38 = 22.75 more would.
        greet, details, contact, confirm, *_ = screen.flows[0].states
        assert details.fix is not None
        assert details.fix.lead == "+23 chats"
        assert details.fix.text.startswith("95 % interval ")
        assert details.fix.text.endswith(", at the other states' median loss of 1.6 %.")
        assert details.fix.verdict == "59 of 64 would be 92 %."  # 36 + 23
        assert (details.fix.now, details.fix.then) == (56.25, 91.8)  # 36 / 64 and 58.75 / 64
        assert [words for _, words, _ in details.fix.ranked] == ["+23"]
        assert contact.fix == Fix(text="Only 2 chats lost: too few to say what a fix would bring.")
        assert greet.fix == Fix(text="Only 1 chat lost: too few to say what a fix would bring.")
        assert confirm.fix == Fix(text="No chat is lost here: there is nothing to gain.")

    def test_the_picture_has_what_conversations_came_to_first(self, screen: FlowScreen) -> None:
        (flow,) = screen.flows
        (made,) = flow.pictures
        assert [one.tip for one in made.ribbons] == [
            "greet → collect_details: 63 chats",
            "collect_details → collect_contact: 38 chats",
            "collect_contact → confirm: 36 chats",
            "confirm → booked: 36 chats",
        ]
        assert [way.at.text for way in made.returns] == ["6 go back to collect_details"]
        assert [(one.total, one.lines) for one in made.lost] == [
            ("1", ["1 stuck"]),
            ("25", ["21 stuck", "4 to a person"]),
            ("2", ["2 stuck"]),
        ]
        assert flow.goals == ["56 % arrive"]
        assert flow.about == "64 chats enter, 36 reach the goal. Width is traffic; what falls out is lost."
        # Nobody waited; who was escalated is counted where they came from.
        assert [flow.states[place].name for place in flow.unseen] == ["waiting_list", "escalated"]

    def test_ends_are_no_rows_of_the_table(self, screen: FlowScreen) -> None:
        rows = [state.name for state in screen.flows[0].states if state.cells]
        assert rows == ["greet", "collect_details", "collect_contact", "confirm"]
        cells = screen.flows[0].states[1].cells
        assert [(name, found[0].value, found[0].of) for name, found in cells.items() if found[0] is not None] == [
            ("lost", "39.7 %", "of 63"),  # 25 / 63
            ("stuck", "33.3 %", "of 63"),  # 21 / 63
            ("handed_over", "6.3 %", "of 63"),  # 4 / 63
            # 57 had one turn here of 0.94 s; 6 came back for one of 1.06 s, 4 stayed for one of 0.98 s.
            ("wait", "0.95 s", "of 73"),
        ]

    def test_neighbours_carry_how_often(self, screen: FlowScreen) -> None:
        # 30 + 6 + 2 calls went from details to contact, 6 on to confirm when they came back, 4 stayed, 4 escalated.
        leads = [(to, count) for how, to, count in screen.flows[0].states[1].neighbours if how == "leads to"]
        assert sorted(leads) == [("collect_contact", "38×"), ("confirm", "6×"), ("escalated", "4×"), ("itself", "4×")]

    def test_tables_of_the_tiers(self, screen: FlowScreen) -> None:
        titles = [table.title for table in (*screen.flows[0].tables, *screen.tables)]
        assert titles == [
            "States, worst first",
            "Phases of the flow, the weakest first",
            "Flows by agent",
            "Kinds of phases, over all flows",
        ]
        row = next(row for row in screen.flows[0].tables[0].rows if row.name == "collect_details")
        assert row.href == "#/breaks/0/1"
        stall = row.cells[2]
        assert (stall.value, stall.under, stall.weak) == ("33.3 %", "22.9 to 45.6, n 63", True)

    def test_what_has_no_value_is_a_dot_with_its_reason(self, screen: FlowScreen) -> None:
        greet = next(row for row in screen.flows[0].tables[0].rows if row.name == "greet")
        fill = greet.cells[8]
        assert (fill.value, fill.reason) == ("·", "nothing required")


class TestBounds:
    def test_a_run_without_states_has_none(self, tmp_path: Path) -> None:
        run = score([chat(user("hi"))], metrics=["turns"], out=tmp_path / "run", workers=1)
        ranking = rank(run)
        assert find_flows(run, make_answer(run), ranking, []) is None

    def test_many_flows_are_not_all_drawn_and_it_is_said_which(self, tmp_path: Path) -> None:
        calls = [
            walk(f"{flow}-{call}", ("greet", "book"), completed=True, name=f"flow {flow:02}")
            for flow in range(MAX_FLOWS + 3)
            for call in range(1 + (flow < 2))
        ]
        screen = screen_of(make_run(tmp_path / "run", calls))
        assert [flow.name for flow in screen.flows[:3]] == ["flow 00", "flow 01", "flow 02"]
        assert len(screen.flows) == MAX_FLOWS
        assert screen.left_out == "Not drawn: flow 12, flow 13, flow 14."

    def test_hostile_names_are_no_markup(self, tmp_path: Path) -> None:
        names = ["<script>alert(1)</script>", "</script><svg onload=x>", "&amp;", "n" * 10_000]
        flow = Flow(name="<b>flow</b>", states=tuple(FlowState(name=name) for name in [*names, "<i>never</i>"]))
        run = make_run(tmp_path / "run", [walk(f"<u>{place}", names, completed=False, flow=flow) for place in range(3)])
        page = (run.folder / "report.html").read_text(encoding="utf-8")
        for tag in ("<script>alert", "<svg onload", "<b>flow", "<i>never", "<u>"):
            assert tag not in page
        assert max(len(state.name) for state in screen_of(run).flows[0].states) < 300

    def test_it_is_the_same_every_time(self, run: Run) -> None:
        assert screen_of(run) == screen_of(Run.open(run.folder))


def test_the_page_asks_for_the_states_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work is counted, not timed: thousands of states make each question expensive."""
    asked: list[int] = []
    ask = StateTable.ask

    def counted(table: StateTable) -> Any:
        asked.append(1)
        return ask(table)

    monkeypatch.setattr(StateTable, "ask", counted)
    screen_of(run)
    assert len(asked) == 1
