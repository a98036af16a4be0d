"""Charts: what the axes mean, what a bar stands for, and that a bar leads to its conversations."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import parse_qs

import pytest
from playwright.sync_api import Locator, expect

from browser.conftest import Look
from browser.given import asked
from browser.looking import View
from convoscope.runs.run import Run

UNITS = ("share of opportunities, %", "score, 0 to 1", "count", "seconds", "words", "points")


class Bar(NamedTuple):
    """A bar of conversations: its link, and what it says it stands for."""

    link: str
    tip: str

    @property
    def count(self) -> int:
        """`2 to 3: 4 of 24 conversations`."""
        found = re.search(r": ([\d,]+) of [\d,]+ conversations$", self.tip)
        assert found is not None, self.tip
        return int(found[1].replace(",", ""))


def charts(view: View) -> Locator:
    return view.section("Distributions").get_by_role("figure")


def bars(view: View) -> list[Bar]:
    found: list[list[str]] = (
        charts(view).locator("[data-link]").evaluate_all("all => all.map((one) => [one.dataset.link, one.dataset.tip])")
    )
    return [Bar(*one) for one in found]


def expected(run: Run, links: list[str]) -> list[int]:
    """How many conversations DuckDB finds between the edges that each link names."""
    rows = asked(run, "SELECT [metric, value::VARCHAR] FROM {conversation_scores} WHERE status = 'measured'")
    counts = []
    for link in links:
        query = {name: value[0] for name, value in parse_qs(link.removeprefix("#find?")).items()}
        low, high, last = float(query["low"]), float(query["high"]), query["last"] == "1"
        values = [float(value) for metric, value in rows if metric == query["metric"]]
        counts.append(sum(low <= value < high or (last and value == high) for value in values))
    return counts


@pytest.fixture(params=["examples", "shop"])
def run(request: pytest.FixtureRequest) -> Run:
    run: Run = request.getfixturevalue(request.param)
    return run


def test_every_chart_names_both_axes_with_their_units(look: Look, run: Run) -> None:
    found: list[list[list[str]]] = charts(look(run)).evaluate_all("""all => all.map((chart) =>
      ["text.name", "text.tick"].map((kind) => [...chart.querySelectorAll(kind)].map((one) => one.textContent)))""")
    assert len(found) > 10
    for (across, up), numbers in found:
        assert across in (*UNITS, "turn"), across
        assert up in (*UNITS, "turns", "events", "items", "conversations"), up
        assert len(numbers) >= 4
        assert all(re.fullmatch(r"-?[\d,.]+(e[+-]\d+)?", one) for one in numbers), numbers


def test_every_chart_is_an_image_with_a_name_that_tells_what_it_shows(look: Look, run: Run) -> None:
    view = look(run)
    images = charts(view).get_by_role("img")
    expect(images).to_have_count(charts(view).count())
    names: list[str] = images.evaluate_all("all => all.map((one) => one.getAttribute('aria-label'))")
    assert [name for name in names if not re.search(r"\d", name)] == []


def test_no_label_of_a_chart_is_cut_off_or_printed_over_another(look: Look, run: Run) -> None:
    assert charts(look(run)).locator("svg").evaluate_all("(all) => looking.labels(all)") == []


def test_every_bar_of_conversations_stands_for_what_the_run_holds(look: Look, run: Run) -> None:
    found = bars(look(run))
    assert len(found) > 10
    counts = expected(run, [one.link for one in found])
    assert [(one.tip, one.count) for one in found] == [(one.tip, n) for one, n in zip(found, counts, strict=True)]


def test_every_bar_leads_to_exactly_its_conversations(look: Look, run: Run) -> None:
    view = look(run)
    found = bars(view)
    said = view.follow([bar.link for bar in found])
    wrong = [
        f"{bar}: {words}"
        for bar, words in zip(found, said, strict=True)
        if not words.startswith(f"{bar.count:,} conversation")
    ]
    assert wrong == []


def point(view: View, bar: Locator) -> None:
    """Scroll there, and only then point at it."""
    bar.scroll_into_view_if_needed()
    view.still()
    bar.hover()


class TestByMouse:
    def test_pointing_at_a_bar_tells_its_numbers(self, look: Look, examples: Run) -> None:
        view = look(examples)
        bar = charts(view).locator("[data-link]").first
        point(view, bar)
        tip = view.page.get_by_role("tooltip")
        expect(tip).to_have_text(bars(view)[0].tip)
        expect(tip).to_be_in_viewport(ratio=1)
        charts(view).locator("figcaption").first.hover()
        expect(tip).to_be_hidden()

    def test_pointing_at_a_bar_of_turns_tells_how_many_turns(self, look: Look, examples: Run) -> None:
        view = look(examples)
        point(view, charts(view).filter(has_text="per turn").locator("rect.hit").first)
        expect(view.page.get_by_role("tooltip")).to_have_text(re.compile(r": [\d,]+ of 65 turns$"))

    def test_the_numbers_come_back_when_the_pointer_moves_on_after_scrolling(self, look: Look, examples: Run) -> None:
        view = look(examples)
        bar = charts(view).locator("[data-link]").first
        point(view, bar)
        view.page.mouse.wheel(0, 3)
        box = bar.bounding_box()
        assert box is not None
        view.page.mouse.move(box["x"] + box["width"] / 2 + 1, box["y"] + box["height"] / 2)
        expect(view.page.get_by_role("tooltip")).to_have_text(bars(view)[0].tip)

    def test_a_click_on_a_bar_lists_its_conversations(self, look: Look, examples: Run) -> None:
        view = look(examples)
        place, bar = next((place, one) for place, one in enumerate(bars(view)) if 1 < one.count < 20)
        charts(view).locator("[data-link]").nth(place).click()
        view.counts(expected(examples, [bar.link])[0])
        expect(view.rows).to_have_count(bar.count)
        expect(view.rows.first).to_be_in_viewport()

    def test_the_same_bar_can_be_clicked_again(self, look: Look, examples: Run) -> None:
        view = look(examples)
        bar = charts(view).locator("[data-link]").first
        for _ in range(2):
            bar.scroll_into_view_if_needed()
            bar.click()
            expect(view.rows.first).to_be_in_viewport()

    def test_a_click_on_a_bar_of_turns_changes_nothing(self, look: Look, examples: Run) -> None:
        view = look(examples)
        charts(view).filter(has_text="per turn").locator("rect.hit").first.click()
        assert view.address == ""
        view.counts(24)


class TestByKeyboard:
    def test_the_table_of_a_chart_has_the_same_numbers_and_links(self, look: Look, run: Run) -> None:
        view = look(run)
        view.unfold()
        read = "(one) => [one.getAttribute('href'), one.textContent, one.closest('tr').cells[1].textContent]"
        links: list[list[str]] = charts(view).locator("td a").evaluate_all(f"(all) => all.map({read})")
        told = [[bar.link, bar.tip.rsplit(": ", 1)[0], f"{bar.count:,}"] for bar in bars(view)]
        assert links == told

    def test_it_opens_and_leads_to_the_list_without_a_mouse(self, look: Look, examples: Run) -> None:
        view = look(examples)
        chart = charts(view).filter(has_text="per conversation").first
        chart.locator("summary").focus()
        view.page.keyboard.press("Enter")
        view.page.keyboard.press("Tab")
        link = chart.locator("td a").first
        expect(link).to_be_focused()
        view.page.keyboard.press("Enter")
        view.counts(expected(examples, [link.get_attribute("href") or ""])[0])
        expect(view.rows.first).to_be_in_viewport()
