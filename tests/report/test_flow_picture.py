"""The picture of a flow and what stands around it: colours, words, bounds, and that nothing in it is markup."""

from __future__ import annotations

from itertools import combinations
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
    MAX_EDGES,
    MAX_STATES,
    Picture,
    PictureState,
    level,
    picture,
    wrapped,
)
from convoscope.report.page.flow_screen import MAX_FLOWS, FlowScreen, flow_screen
from convoscope.report.page.page import find_flows
from convoscope.runs.make import make_run as score
from convoscope.runs.ranking import rank
from convoscope.runs.run import Run
from support.chats import chat, user


def seen(name: str, order: float = 0, **facts: Any) -> PictureState:
    usual = {"n": 10, "lost": 0.0, "terminal": "", "arrived": 0, "text": "ten conversations"}
    return PictureState(name, order, **usual | facts)


def drawn(*states: PictureState, **edges: int) -> Picture:
    """Edges as `a_b=3`, by the first letters of the states."""
    at = {state.name[0]: place for place, state in enumerate(states)}
    return picture(states, {(at[one[0]], at[one[2]]): count for one, count in edges.items()})


class TestWords:
    @pytest.mark.parametrize(
        ("lost", "shade"),
        [(None, None), (0.0, 0), (0.001, 1), (0.0999, 1), (0.1, 2), (0.29, 2), (0.3, 3), (0.59, 3), (0.6, 4), (1.0, 4)],
    )
    def test_shades(self, lost: float | None, shade: int | None) -> None:
        assert level(lost) == shade

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


class TestPicture:
    def test_a_state_says_its_name_n_and_what_is_lost(self) -> None:
        (state,) = drawn(seen("greet", n=1_200, lost=0.4)).states
        assert ([line.text for line in state.name], state.figures.text) == (["greet"], "n 1,200 · 40 % lost")
        assert state.style == "state lost-3"
        assert state.bar == pytest.approx(0.4 * (180 - 16))

    def test_an_unknown_share_is_no_number_and_no_colour(self) -> None:
        (state,) = drawn(seen("greet", lost=None)).states
        assert (state.style, state.figures.text, state.bar) == ("state lost-unknown", "n 10 · · lost", 0)

    def test_a_state_without_a_visit_is_untested_and_not_failed(self) -> None:
        (state,) = drawn(seen("never", n=0, lost=None)).states
        assert (state.style, state.figures.text) == ("state untested", "untested")

    def test_a_state_that_was_led_to_and_never_entered_is_not_untested(self) -> None:
        state = drawn(seen("a"), seen("b", 1, n=0, lost=None, arrived=7), a_b=7).states[1]
        assert (state.style, state.figures.text) == ("state unentered", "led to 7×, not entered")

    @pytest.mark.parametrize(
        ("terminal", "sign", "words"),
        [
            ("success", "✓", "success"),
            ("failure", "✗", "failure"),
            ("escalation", "↗", "escalation"),
            ("unknown", "■", "end"),
        ],
    )
    def test_ends_are_marked_by_shape_sign_and_word(self, terminal: str, sign: str, words: str) -> None:
        (state,) = drawn(seen("over", terminal=terminal)).states
        assert state.round == state.box.height / 2
        assert state.name[0].text == f"{sign} over"
        assert state.figures.text == f"n 10 · {words}"
        assert state.style.endswith(f"end {terminal}")

    def test_who_stays_in_an_escalation_is_no_fault_of_it(self) -> None:
        (state,) = drawn(seen("human", terminal="escalation", lost=1.0)).states
        assert (state.style, state.bar) == ("state lost-unknown end escalation", 0)

    def test_traffic_is_width_and_words(self) -> None:
        made = drawn(seen("a"), seen("b", 1), seen("c", 2), a_b=100, b_c=1)
        weak, strong = made.edges
        assert strong.width > 2 * weak.width
        assert strong.opacity > weak.opacity
        assert (strong.tip, weak.tip) == ("a → b: 100 times", "b → c: 1 time")
        assert [label.at.text for label in made.labels] == ["100"]

    def test_ways_back_are_marked_and_no_part_of_what_lies_behind(self) -> None:
        made = drawn(seen("a"), seen("b", 1), a_b=10, b_a=4, b_b=2)
        assert made.down == [(0, 1)]
        assert {(one.source, one.target): one.style for one in made.edges} == {
            (0, 1): "edge",
            (1, 0): "edge back",
            (1, 1): "edge back",
        }

    def test_counts_do_not_lie_on_each_other(self) -> None:
        states = [seen(f"s{number}", number) for number in range(12)]
        made = picture(states, {(one, other): 900 for one in range(12) for other in range(one + 1, 12)})
        for one, other in combinations([label.at for label in made.labels], 2):
            assert abs(one.x - other.x) >= 7 * 3 or abs(one.y - other.y) >= 14

    def test_of_very_many_states_the_least_visited_are_left_out_and_counted(self) -> None:
        states = [seen(f"s{number}", number, n=1 + number) for number in range(MAX_STATES + 30)]
        edges = {(one, one + step): one + step for one in range(len(states) - 9) for step in range(1, 9)}
        made = picture(states, edges)
        assert len(made.states) == MAX_STATES
        assert made.fewer_states == 30
        assert min(state.number for state in made.states) == 30
        assert len(made.edges) == MAX_EDGES
        assert made.fewer_edges == len(edges) - MAX_EDGES


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
        assert state.interval.startswith("39.7 %; 95 % interval ")  # 25 / 63 = 0.397
        assert sum(one.lost for one in state.why) == 25
        assert state.calls == "#/calls?flow=apartment_viewing&lost_in=collect_details"
        assert len(state.worst) == 5
        assert state.diagnosis[0] == "Conversations get stuck."

    def test_neighbours_carry_how_often(self, screen: FlowScreen) -> None:
        # 30 + 6 + 2 calls went from details to contact, 6 on to confirm when they came back, 4 stayed, 4 escalated.
        leads = [(to, count) for how, to, count in screen.flows[0].states[1].neighbours if how == "leads to"]
        assert sorted(leads) == [("collect_contact", "38×"), ("confirm", "6×"), ("escalated", "4×"), ("itself", "4×")]

    def test_tables_of_the_tiers(self, screen: FlowScreen) -> None:
        titles = [table.title for table in (*screen.flows[0].tables, *screen.tables)]
        assert titles == [
            "States, worst first",
            "Segments, the least cohesive first",
            "Flows by agent",
            "Kinds of segments over all flows",
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
