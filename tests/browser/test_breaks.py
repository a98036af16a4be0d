"""Where it breaks: the picture of a flow, the panel of a state, groups, what families declare."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

import convoscope
from browser import walks
from browser.conftest import Look
from convoscope.analysis.vacuity import audit_run
from convoscope.report.vacuity import keep_audit
from convoscope.runs.run import Run
from support.chats import agent, chat, user


class TestThePicture:
    def test_it_opens_on_the_state_that_loses_most(self, look: Look, viewings: Run) -> None:
        view = look(viewings, "#/breaks")
        panel = view.page.get_by_role("complementary")
        expect(panel.get_by_role("heading", level=2)).to_have_text("collect_details")
        # 21 got stuck in it, 4 were handed over from it.
        expect(panel).to_contain_text("25 of 63 chats are lost here: 21 stuck, 4 handed to a person.")
        expect(panel.get_by_role("link", name="All 25")).to_be_visible()

    def test_every_state_is_a_link_with_its_figures(self, look: Look, viewings: Run) -> None:
        view = look(viewings, "#/breaks")
        states = view.page.locator(".flow-picture a")
        assert states.count() == 5
        states.filter(has_text="contact").click()
        expect(view.page.get_by_role("complementary")).to_contain_text("2 of 38 chats are lost here: 2 stuck.")
        view.reload()
        expect(view.page.get_by_role("complementary")).to_contain_text("2 of 38 chats are lost here: 2 stuck.")

    def test_what_nobody_entered_says_so(self, look: Look, viewings: Run) -> None:
        view = look(viewings, "#/breaks")
        view.page.get_by_role("link", name="waiting_list").click()
        expect(view.page.get_by_role("complementary")).to_contain_text("no chat was in it")

    def test_the_list_behind_a_state_has_as_many(self, look: Look, viewings: Run) -> None:
        view = look(viewings, "#/breaks")
        view.page.get_by_role("link", name="All 25").click()
        view.counts("25 of 64 chats")
        expect(view.page.locator("#found")).to_have_text("")

    def test_on_a_phone_it_is_bars(self, look: Look, viewings: Run) -> None:
        view = look(viewings, "#/breaks", width=390, height=844)
        expect(view.page.locator(".flow-picture")).to_be_hidden()
        expect(view.page.locator(".fun a").filter(has_text="collect_details")).to_contain_text(
            "25 lost21 stuck4 to a person"
        )
        expect(view.page.locator(".fun .goal")).to_contain_text("56 % arrive")

    def test_the_measure_and_the_version_are_in_the_address(self, look: Look, versions: Run) -> None:
        view = look(versions, "#/breaks")
        view.page.get_by_role("link", name="Stuck").click()
        view.page.get_by_role("link", name="v2 40").click()
        assert view.page.url.endswith("?show=stuck&of=v2")
        # Of 40 calls of v2, 4 get stuck where the day is asked for; of v1, 24.
        expect(view.page.locator(".flow-picture a").filter(has_text="ask_day")).to_contain_text("10 % stuck")
        table = view.page.get_by_role("region", name="Stuck, v1 against v2").last
        expect(table.get_by_role("row").nth(2)).to_contain_text("−50.0 pts better")
        assert table.get_by_role("row").count() == 3  # the head, greet and ask_day: an end is no row

    def test_many_states_stay_within_bounds(self, look: Look, tmp_path: Path) -> None:
        calls = list(walks.branching(79, 120, 7, weak=(5,)))
        view = look(walks.make_run(tmp_path / "run", calls), "#/breaks")
        assert view.page.evaluate("document.querySelectorAll('*').length") < 3_000
        assert view.page.evaluate("document.documentElement.scrollHeight") <= 2_700
        assert view.beyond() == []


def test_without_states_there_is_one_line(look: Look, forty: Run) -> None:
    view = look(forty)
    if view.page.get_by_role("link", name="Where it breaks").count():
        view.show("breaks")
        assert "These logs name no states." in view.text


def test_an_audit_that_a_run_keeps_is_a_panel(look: Look, tmp_path: Path) -> None:
    calls = [chat(user("Hello?", 1), agent(f"Good day {place}.", 2), id=f"c{place}") for place in range(6)]
    run = convoscope.score(calls, metrics=["agent.repetition", "conversation.turns"], out=tmp_path / "run", workers=1)
    keep_audit(run, audit_run(run))
    convoscope.write_page(run)
    view = look(run, "#/breaks")
    panel = view.page.get_by_role("region", name="Would the metrics notice nonsense?")
    expect(panel).to_contain_text("declared kinds of nonsense noticed")
    view.unfold()
    expect(panel).to_contain_text("agent.repetition")
