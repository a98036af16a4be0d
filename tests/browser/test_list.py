"""The list: virtual, searched, filtered, sorted; its address can be sent to somebody."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

import convoscope
from browser.conftest import Look
from browser.given import MANY
from convoscope.runs.run import Run


def worst(run: Run) -> list[str]:
    return [one.conversation for one in convoscope.worst(run, 99)]


class TestFilters:
    def test_a_facet_filters_and_stands_in_the_address(self, look: Look, viewings: Run) -> None:
        view = look(viewings, "#/calls")
        view.counts("64 of 64 chats")
        view.page.get_by_role("button", name="collect_details 25").click()
        view.counts("25 of 64 chats")
        assert view.address == "#/calls?lost_in=collect_details"
        view.reload()
        view.counts("25 of 64 chats")

    def test_counts_of_other_facets_are_of_what_would_remain(self, look: Look, viewings: Run) -> None:
        """Of the 25 that were lost where details are collected, 4 were handed over."""
        view = look(viewings, "#/calls?lost_in=collect_details")
        expect(view.page.get_by_role("button", name="Handed to a person 4")).to_be_visible()
        expect(view.page.get_by_role("button", name="Lost 21")).to_be_visible()
        expect(view.page.get_by_role("button", name="Completed")).to_have_count(0)

    def test_nothing_fits(self, look: Look, viewings: Run) -> None:
        view = look(viewings, "#/calls?outcome=done&lost_in=greet")
        expect(view.page.locator("#list")).to_contain_text("No chat fits these filters.")
        view.page.locator("#list").get_by_role("button", name="Clear filters").click()
        view.counts("64 of 64 chats")

    def test_a_facet_that_nobody_knows_is_said(self, look: Look, viewings: Run) -> None:
        view = look(viewings, "#/calls?colour=red")
        expect(view.page.locator("#found")).to_contain_text("not known here and left out: colour=red")
        view.counts("64 of 64 chats")

    def test_coming_back_keeps_filters_and_row(self, look: Look, viewings: Run) -> None:
        view = look(viewings, "#/calls?lost_in=collect_details")
        for _ in range(7):
            view.page.keyboard.press("j")
        id = view.page.locator(".vr.cur .id").inner_text()
        view.page.keyboard.press("Enter")
        view.shows(id)
        expect(view.page.locator(".nav2")).to_contain_text("8 of 25")
        view.page.keyboard.press("Escape")
        view.counts("25 of 64 chats")
        expect(view.page.locator(".vr.cur .id")).to_have_text(id)


class TestOrder:
    def test_the_worst_comes_first(self, look: Look, forty: Run) -> None:
        view = look(forty, "#/calls")
        assert view.ids[:5] == worst(forty)[:5]

    def test_sorted_by_a_column_what_has_no_value_is_last(self, look: Look, shop: Run) -> None:
        view = look(shop, "#/calls?sort=conversation.turns")
        assert view.ids[0] == "long-call"  # 60 turns

    def test_sorted_by_id(self, look: Look, forty: Run) -> None:
        view = look(forty, "#/calls?sort=id")
        assert view.ids == sorted(view.ids)


class TestSearch:
    def test_words_that_were_said(self, look: Look, shop: Run) -> None:
        view = look(shop, "#/calls")
        view.search.fill("find the needle")
        expect(view.rows).to_have_count(1)
        assert view.ids == ["istanbul-call"]
        assert view.address == "#/calls?text=find+the+needle"

    def test_ids(self, look: Look, shop: Run) -> None:
        view = look(shop, "#/calls?text=SILENT-call")
        expect(view.rows).to_have_count(1)
        assert view.ids == ["silent-call"]


class TestMany:
    def test_the_list_is_virtual_and_says_what_is_left_out(self, look: Look, many: Run) -> None:
        view = look(many)
        for screen in ("overview", "metrics", "calls"):
            view.show(screen)
            assert view.page.evaluate("document.querySelectorAll('*').length") < 3_000
        view.counts(f"{MANY:,} of {MANY:,} chats")
        expect(view.page.locator("#bounds-line")).to_contain_text("Words of 400 of 20,500 chats are in this page")
        expect(view.page.locator("#bounds-line")).to_contain_text("The list holds the worst 20,000; 500 are left out")

    def test_its_end_can_be_reached(self, look: Look, many: Run) -> None:
        view = look(many, "#/calls")
        view.page.locator("#list").evaluate("one => { one.scrollTop = one.scrollHeight; }")
        view.page.wait_for_function("() => document.querySelector('.vr:last-child').dataset.place === '19999'")
        assert view.page.evaluate("document.querySelectorAll('*').length") < 3_000

    def test_a_search_is_quick(self, look: Look, many: Run) -> None:
        """50 ms on a laptop; four times that where everybody tests at once."""
        view = look(many, "#/calls?text=warm")
        view.still()
        took = view.page.evaluate(
            """async () => {
              const box = document.getElementById("search");
              box.value = "chat-00012";
              const begun = performance.now();
              box.dispatchEvent(new Event("input"));
              return performance.now() - begun;
            }"""
        )
        assert took < 400


@pytest.fixture(scope="module")
def few(forty: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return convoscope.write_page(forty, tmp_path_factory.mktemp("few") / "few.html", conversations=5).path


class TestHowMuchIsHere:
    def test_the_page_says_so(self, look: Look, few: Path) -> None:
        line = look(few, "#/calls").page.locator("#bounds-line")
        expect(line).to_contain_text("Words of 5 of 40 chats are in this page; convoscope show ID has the rest.")

    def test_all_of_them_says_so(self, look: Look, forty: Run) -> None:
        expect(look(forty, "#/calls").page.locator("#bounds-line")).to_have_text("All 40 chats are here in full. ")

    def test_the_others_open_with_their_reasons_and_the_command_that_shows_them(
        self, look: Look, forty: Run, few: Path
    ) -> None:
        view = look(few)
        view.open(worst(forty)[20])
        expect(view.main.locator("code")).to_have_text(f"convoscope show forty '{worst(forty)[20]}'")
        view.page.keyboard.press("j")
        view.shows(worst(forty)[21])

    def test_the_command_can_be_pasted_into_a_shell(self, look: Look, shop: Run, tmp_path: Path) -> None:
        """The run is called `shop run`, which a shell reads as two words."""
        view = look(convoscope.write_page(shop, tmp_path / "none.html", conversations=0).path, "#/call/long-call")
        expect(view.main.locator("code")).to_have_text("convoscope show 'shop run' 'long-call'")

    def test_one_that_is_not_listed(self, look: Look, forty: Run, tmp_path: Path) -> None:
        least = convoscope.write_page(forty, tmp_path / "least.html", conversations=0).bytes
        written = convoscope.write_page(forty, tmp_path / "one.html", max_mb=least / 1e6)
        assert written.listed < 40
        view = look(written.path, f"#/call/{worst(forty)[39]}")
        expect(view.main).to_contain_text(f"{worst(forty)[39]} is not listed in this page")
