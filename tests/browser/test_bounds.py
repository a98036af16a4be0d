"""What the page does not hold: it says so, and says where it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

import convoscope
from browser.conftest import Look
from browser.given import PARTS
from convoscope.analysis.words import coverage_text, name_text, value_text
from convoscope.runs.run import Run


def worst(run: Run) -> list[str]:
    return [one.conversation for one in convoscope.worst(run, 99)]


@pytest.fixture(scope="module")
def few(forty: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return convoscope.write_page(forty, tmp_path_factory.mktemp("few") / "few.html", conversations=5).path


@pytest.fixture(scope="module")
def least(forty: Run, tmp_path_factory: pytest.TempPathFactory) -> int:
    """Bytes of the page without any conversation in full."""
    return convoscope.write_page(forty, tmp_path_factory.mktemp("least") / "least.html", conversations=0).bytes


class TestFiveOfForty:
    def test_the_page_says_so(self, look: Look, few: Path) -> None:
        section = look(few).section("Conversations, worst first")
        expect(section).to_contain_text("5 of 40 conversations are here in full")
        expect(section).to_contain_text("all others with their scores")
        expect(section).to_contain_text("convoscope report --conversations N")

    def test_all_are_listed_and_the_rest_is_marked(self, look: Look, forty: Run, few: Path) -> None:
        view = look(few)
        view.lists(worst(forty))
        marked = view.rows.evaluate_all("all => all.map((row) => row.textContent.includes('scores only'))")
        assert marked == [False] * 5 + [True] * 35

    def test_the_five_open_in_full(self, look: Look, forty: Run, few: Path) -> None:
        view = look(few)
        for id in worst(forty)[:5]:
            view.open(id)
            expect(view.article.get_by_role("region").first).to_be_visible()

    def test_the_others_open_with_their_scores_and_the_command_that_shows_them(
        self, look: Look, forty: Run, few: Path
    ) -> None:
        view = look(few)
        id = worst(forty)[20]
        view.open(id)
        expect(view.article.locator("code")).to_have_text(f"convoscope show forty '{id}'")
        assert view.article.get_by_role("region").count() == 0
        rows = dict(
            view.article.get_by_role("row").evaluate_all(
                "all => all.map((row) => [...row.cells].map((one) => one.textContent))"
            )
        )
        declared = [one.metric for one in forty.summary.declared]
        # Those with a value somewhere in the run: nobody chooses an answer.
        silent = "answer.accuracy@choice"
        assert list(rows) == [name for name in declared if not name.startswith(PARTS) and name != silent]
        turns = next(one for one in forty.scores("conversation.turns", id))
        assert rows["conversation.turns"] == value_text(turns.value, "count")

    def test_a_search_says_how_far_it_reached(self, look: Look, forty: Run, few: Path) -> None:
        view = look(few)
        view.search.fill("question 0")
        view.lists(worst(forty)[:5])
        expect(view.said).to_contain_text("what was said was searched in the 5 that are here in full")

    def test_ids_are_searched_in_all(self, look: Look, forty: Run, few: Path) -> None:
        view = look(few)
        view.search.fill("chat-0000")
        view.lists([id for id in worst(forty) if id.startswith("chat-0000")])

    def test_figures_and_charts_are_over_all(self, look: Look, forty: Run, few: Path) -> None:
        view = look(few)
        row = view.section("Metrics").get_by_role("row").filter(has_text="conversation.turns").first
        figure = next(one for one in forty.summary.metrics if name_text(one) == "conversation.turns")
        expect(row).to_contain_text(value_text(figure.value, figure.unit))
        expect(row).to_contain_text(coverage_text(figure, "event"))
        expect(view.section("Distributions")).to_contain_text("Over all 40 conversations")


def test_all_of_them_says_so(look: Look, forty: Run) -> None:
    expect(look(forty).section("Conversations, worst first")).to_contain_text("All 40 conversations are here in full.")


def test_none_in_full(look: Look, forty: Run, tmp_path: Path) -> None:
    view = look(convoscope.write_page(forty, tmp_path / "none.html", conversations=0).path)
    view.lists(worst(forty))
    view.open(worst(forty)[0])
    expect(view.article.locator("code")).to_contain_text("convoscope show forty ")
    view.page.keyboard.press("j")
    view.shows(worst(forty)[1])


class TestLittleRoom:
    def test_what_does_not_fit_is_left_out_and_said(self, look: Look, forty: Run, least: int, tmp_path: Path) -> None:
        room = least + 6_000
        written = convoscope.write_page(forty, tmp_path / "tiny.html", max_mb=room / 1e6)
        assert written.bytes <= room
        assert 0 < written.in_full < 40
        view = look(written.path)
        section = view.section("Conversations, worst first")
        expect(section).to_contain_text(f"{written.in_full} of 40 conversations are here in full")
        expect(section).to_contain_text("did not fit")
        marked = view.rows.evaluate_all("all => all.map((row) => row.textContent.includes('scores only'))")
        assert marked.count(False) == written.in_full

    def test_one_that_is_not_even_listed(self, look: Look, forty: Run, least: int, tmp_path: Path) -> None:
        written = convoscope.write_page(forty, tmp_path / "one.html", max_mb=least / 1e6)
        assert written.bytes <= least
        assert written.listed < 40
        view = look(written.path, f"#conversation={worst(forty)[39]}")
        expect(view.said).to_contain_text(f"{worst(forty)[39]} is not listed in this page")
        view.lists(worst(forty)[: written.listed])
        expect(view.section("Conversations, worst first")).to_contain_text(f"the worst {written.listed} ")


def test_the_command_can_be_pasted_into_a_shell(look: Look, shop: Run, tmp_path: Path) -> None:
    """The run is called `shop run`, which a shell reads as two words."""
    view = look(convoscope.write_page(shop, tmp_path / "none.html", conversations=0).path, "#conversation=long-call")
    expect(view.article.locator("code")).to_have_text("convoscope show 'shop run' 'long-call'")


class TestWithoutJavaScript:
    def test_figures_groups_and_charts_are_there(self, look: Look, examples: Run) -> None:
        view = look(examples, script=False)
        for title in ("Metrics", "Groups", "Distributions", "What reading did", "Receipt"):
            expect(view.page.get_by_role("heading", name=title, exact=True)).to_be_visible()
        expect(view.section("Metrics").get_by_role("row").filter(has_text="tools.success").first).to_be_visible()
        assert view.section("Distributions").locator("rect.bar").count() > 10

    def test_it_says_what_is_missing_and_shows_nothing_that_would_not_work(self, look: Look, examples: Run) -> None:
        view = look(examples, script=False)
        told = view.page.locator("noscript p")
        assert told.evaluate("one => one.textContent").startswith("The list and the conversations need JavaScript")
        assert told.evaluate("one => one.getBoundingClientRect().height") > 10
        expect(view.page.get_by_role("search")).to_be_hidden()
        assert view.page.get_by_role("button").count() == 0
