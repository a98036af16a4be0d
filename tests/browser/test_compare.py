"""Two versions or two runs: what moved, what was fixed and what broke, both conversations side by side."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from browser import walks
from browser.conftest import Look
from convoscope.analysis.compare.make import compare_runs
from convoscope.report.page import write_compare_page
from convoscope.runs.run import Run


class TestTwoVersionsOfOneRun:
    def test_the_screen_has_what_moved(self, look: Look, versions: Run) -> None:
        view = look(versions, "#/compare")
        expect(view.page.get_by_role("heading", level=1)).to_contain_text("v2 completes more flows than v1")
        row = view.page.get_by_role("row").filter(has_text="Flows completed")
        # 16 of 40 calls of v1 complete, 36 of 40 of v2.
        expect(row).to_contain_text("40.0 %90.0 %+50.0 pts")
        bar = row.get_by_role("img")
        assert "better" in (bar.get_attribute("aria-label") or "")
        # The right side is better, whatever the direction: stall falls, and its tick is right of the middle, too.
        for name in ("Flows completed", "States that get stuck"):
            tick = view.page.get_by_role("row").filter(has_text=name).first.locator(".tick")
            assert float(tick.evaluate("one => parseFloat(one.style.left)")) > 50

    def test_what_broke_and_what_was_fixed_lead_to_both_sides(self, look: Look, versions: Run) -> None:
        view = look(versions, "#/compare")
        lists = view.page.get_by_role("region", name="Fixed and broken")
        expect(lists).to_contain_text("Broke in v2: 4")
        expect(lists).to_contain_text("Fixed in v2: 24")
        lists.get_by_role("link").first.click()
        sides = view.page.get_by_role("article")
        expect(sides).to_have_count(2)
        # The first that broke: a trial of scenario s16 to s19, completed with v1 and lost with v2.
        expect(sides.first).to_contain_text("v1-3")
        expect(sides.last).to_contain_text("Lost in ask_day")
        expect(sides.last).to_contain_text("This is ask_day.")
        view.page.keyboard.press("j")
        expect(view.page.locator(".nav2")).to_contain_text("2 of 28")
        view.page.keyboard.press("Escape")
        expect(view.page.get_by_role("region", name="Fixed and broken")).to_be_visible()
        assert view.beyond() == []

    def test_the_list_says_what_moved(self, look: Look, versions: Run) -> None:
        view = look(versions, "#/calls?moved=broken")
        view.counts("4 of 80 chats")
        row = view.rows.first
        expect(row).to_contain_text("v2")
        assert row.locator(".mv .oc").evaluate_all("all => all.map((one) => one.className)") == ["oc done", "oc lost"]

    def test_a_call_leads_to_the_same_scenario_with_the_other_version(self, look: Look, versions: Run) -> None:
        view = look(versions, "#/call/v2-36")
        view.page.get_by_role("link", name="same scenario with v1: completed").click()
        view.shows("v1-36")
        expect(view.page.get_by_role("link", name="same scenario with v2: lost")).to_be_visible()
        view.page.get_by_role("link", name="side by side").click()
        expect(view.page.get_by_role("article")).to_have_count(2)

    @pytest.mark.parametrize("width", [390, 1400])
    def test_it_fits_and_can_be_read(self, look: Look, versions: Run, width: int) -> None:
        view = look(versions, "#/compare", width=width, height=900, scheme="dark")
        for address in ("compare", "compare/0"):
            view.show(address)
            assert view.beyond() == []
            assert view.faint() == []
            assert view.page.evaluate("looking.dots()") == []
        assert view.page.evaluate("document.querySelectorAll('*').length") < 3_000


def test_without_two_versions_there_is_no_such_screen(look: Look, viewings: Run) -> None:
    view = look(viewings, "#/compare")
    assert view.page.get_by_role("link", name="Compare").count() == 0
    expect(view.page.locator("main")).to_have_attribute("data-screen", "overview")


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("two")
    calls = list(walks.versions())
    return [walks.make_run(folder / name, [one for one in calls if one.id.startswith(name)]) for name in ("v1", "v2")]


class TestTwoRuns:
    def test_the_page_opens_on_the_comparison(self, look: Look, two_runs: list[Run], tmp_path: Path) -> None:
        write_compare_page(compare_runs(two_runs), two_runs, tmp_path / "page.html")
        view = look(tmp_path / "page.html")
        expect(view.page.get_by_role("heading", level=1)).to_contain_text("v2 completes more flows than v1")
        expect(view.page.locator("nav .ct")).to_have_text("40")  # the list is of the later run
        view.page.get_by_role("region", name="Fixed and broken").get_by_role("link").first.click()
        sides = view.page.get_by_role("article")
        # The earlier conversation is of the other run, and here in full.
        expect(sides.first).to_contain_text("v1-3")
        expect(sides.first).to_contain_text("This is done.")
        expect(sides.last).to_contain_text("This is ask_day.")

    def test_what_does_not_fit_is_counted(self, look: Look, two_runs: list[Run], tmp_path: Path) -> None:
        write_compare_page(compare_runs(two_runs), two_runs, tmp_path / "page.html", conversations=3)
        view = look(tmp_path / "page.html")
        # 3 of the 28 pairs may be here.
        expect(view.page.locator("main")).to_contain_text("25 of the 28 earlier chats are not in this page")
        view.show("compare/27")
        expect(view.page.locator("main")).to_contain_text("The words of this chat are not in this page")
