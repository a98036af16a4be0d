"""Without a mouse and without eyes: the keyboard reaches everything, and everything has a name (WCAG 2.2 AA)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Literal

import pytest
from playwright.sync_api import Browser, expect

from browser.conftest import Look
from browser.given import PARTS
from browser.looking import View
from convoscope.analysis.words import interval_text, value_text
from convoscope.runs.run import Run

PLACES = {
    "overview": ("examples", ""),
    "conversation": ("examples", "#conversation=bike-desk-031%2Ftrial-2"),
    "flow": ("examples", "#conversation=vet-0907"),
    "problems": ("shop", ""),
    "judged": ("shop", "#conversation=chat-00007"),
}


@pytest.fixture(scope="module", params=PLACES)
def unfolded(request: pytest.FixtureRequest, browser: Browser) -> Iterator[View]:
    name, address = PLACES[request.param]
    run: Run = request.getfixturevalue(name)
    view = View(browser, run.folder / "report.html", address)
    view.unfold()
    yield view
    view.close()


@pytest.fixture
def view(unfolded: View) -> Iterator[View]:
    """Each of the places, with everything opened that can be, for tests that only read."""
    yield unfolded
    unfolded.page.emulate_media(color_scheme="light")
    unfolded.was_quiet()


class TestKeyboard:
    @pytest.mark.parametrize("key", ["Tab", "Shift+Tab"])
    @pytest.mark.parametrize("address", ["", "#conversation=bike-desk-031%2Ftrial-2"])
    def test_everything_is_reached_and_is_seen_to_be(self, look: Look, examples: Run, address: str, key: str) -> None:
        view = look(examples, address)
        walk = view.walk(key)
        assert walk.unreached == []
        assert walk.unseen == []

    def test_the_first_stop_skips_to_the_content(self, look: Look, examples: Run) -> None:
        view = look(examples)
        view.page.keyboard.press("Tab")
        skip = view.page.get_by_role("link", name="Skip to the content")
        expect(skip).to_be_focused()
        expect(skip).to_be_in_viewport(ratio=1)
        view.page.keyboard.press("Enter")
        expect(view.page.get_by_role("main")).to_be_focused()

    def test_it_does_so_in_an_open_conversation(self, look: Look, examples: Run) -> None:
        view = look(examples, "#conversation=vet-0907")
        skip = view.page.get_by_role("link", name="Skip to the content")
        skip.focus()
        view.page.keyboard.press("Enter")
        view.page.wait_for_timeout(100)
        view.shows("vet-0907")
        view.page.keyboard.press("Tab")
        assert view.article.evaluate("one => one.contains(document.activeElement)")

    def test_an_opened_conversation_has_the_focus(self, look: Look, examples: Run) -> None:
        view = look(examples)
        view.rows.get_by_role("link").first.focus()
        view.page.keyboard.press("Enter")
        expect(view.article).to_be_focused()

    def test_on_the_way_back_the_focus_is_where_it_was(self, look: Look, examples: Run) -> None:
        view = look(examples)
        row = view.rows.get_by_role("link").nth(9)
        row.focus()
        view.page.keyboard.press("Enter")
        expect(view.article).to_be_focused()
        view.page.keyboard.press("Escape")
        expect(view.article).to_be_hidden()
        expect(row).to_be_focused()

    def test_more_rows_leave_the_focus_in_the_list(self, look: Look, shop: Run) -> None:
        view = look(shop)
        for _ in range(2):
            view.page.get_by_role("button", name="Show more").focus()
            view.page.keyboard.press("Enter")
        assert view.page.evaluate("document.activeElement !== document.body")


class TestStructure:
    def test_language_and_title(self, view: View) -> None:
        assert view.page.locator("html").get_attribute("lang") == "en"
        assert view.page.title()

    def test_landmarks(self, view: View) -> None:
        for role in ("banner", "navigation", "main", "contentinfo"):
            expect(view.page.get_by_role(role)).to_have_count(1)  # type: ignore[arg-type]

    def test_one_title_and_no_level_is_skipped(self, view: View) -> None:
        levels = [
            int(one) for one in re.findall(r"heading .*\[level=(\d)\]", view.page.locator("body").aria_snapshot())
        ]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert [(one, next) for one, next in pairwise(levels) if next > one + 1] == []

    def test_every_control_has_a_name(self, view: View) -> None:
        snapshot = view.page.locator("body").aria_snapshot()
        nameless = re.findall(
            r"^\s*- (?:link|button|combobox|searchbox|textbox|checkbox)(?::|$).*", snapshot, re.MULTILINE
        )
        assert nameless == []

    def test_every_table_has_header_cells_with_a_scope(self, view: View) -> None:
        assert view.page.get_by_role("table").count() > 0
        faults: list[str] = view.page.get_by_role("table").evaluate_all("""all => all.flatMap((table) => {
          const heads = [...table.querySelectorAll("th")];
          const where = table.textContent.trim().slice(0, 60);
          if (!heads.length) return [`no header cell: ${where}`];
          return heads.filter((one) => !one.scope).map((one) => `no scope: ${one.textContent}`);
        })""")
        assert faults == []

    @pytest.mark.parametrize("width", [380, 1280])
    def test_a_table_is_a_table_at_any_width(self, look: Look, examples: Run, width: int) -> None:
        """`display: block` takes the roles of rows and cells away, unless they are given back."""
        table = look(examples, width=width).section("Metrics").get_by_role("table")
        expect(table).to_have_count(1)
        expect(table.get_by_role("row").filter(has_text="answer.f1").first.get_by_role("cell").first).to_be_attached()

    def test_every_drawing_is_an_image_with_a_name_or_no_matter(self, view: View) -> None:
        # A picture of links is a group of them: within an image nobody would find them.
        role = "(one.querySelector('a[href]') ? 'group' : 'img')"
        told = f"one.getAttribute('role') === {role} && one.getAttribute('aria-label')"
        left = f"(all) => all.filter((one) => one.ariaHidden !== 'true' && !({told})).map((one) => one.outerHTML)"
        assert view.page.locator("svg").evaluate_all(left) == []

    def test_ids_are_given_once(self, view: View) -> None:
        twice = view.page.evaluate("""() => {
          const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
          return ids.filter((id, place) => ids.indexOf(id) !== place);
        }""")
        assert twice == []

    def test_lists_hold_list_items(self, view: View) -> None:
        strangers = "ul > :not(li), ol > :not(li), dl > :not(dt, dd, div)"
        odd = view.page.evaluate("(strangers) => looking.all(strangers).map((one) => one.outerHTML)", strangers)
        assert odd == []


class TestWords:
    def test_the_count_is_announced(self, look: Look, examples: Run) -> None:
        view = look(examples)
        assert view.said.get_attribute("aria-live") == "polite"
        view.search.fill("squeaks")
        expect(view.said).to_have_text(re.compile(r"^1 conversation of 24"))

    def test_better_and_worse_are_not_told_by_colour_alone(self, look: Look, shop: Run) -> None:
        view = look(shop)
        for side, sign in (("worse", "▼"), ("better", "▲")):
            texts = view.page.locator(f"td.{side}").all_text_contents()
            assert all(text.startswith(sign) for text in texts)

    def test_interval_and_n_of_a_group_can_be_read_without_a_mouse(self, look: Look, examples: Run) -> None:
        group = next(one for one in examples.summary.groups if one.by == {"agent": "clover"})
        row = look(examples).section("Groups").get_by_role("row").filter(has_text=re.compile("^clover")).first
        for figure in group.metrics:
            if not figure.reduction and figure.interval and not figure.metric.startswith(PARTS):
                value = value_text(figure.value, figure.unit)
                expect(row).to_contain_text(f"{value}{interval_text(figure)}, n {figure.n}")


class TestContrast:
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_every_text_stands_out_from_what_is_behind_it(self, view: View, scheme: Literal["light", "dark"]) -> None:
        view.page.emulate_media(color_scheme=scheme)
        assert view.faint() == []

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_marks_of_a_search_and_aimed_events_too(self, look: Look, examples: Run, scheme: str) -> None:
        view = look(examples, "#find?text=squeaks", scheme=scheme)
        expect(view.rows.locator("mark")).to_have_count(1)
        assert view.faint() == []
        view.open("bike-desk-031/trial-2")
        view.article.locator("figure rect.span").nth(3).click()
        assert view.faint() == []

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_bars_and_spans_stand_out(self, look: Look, examples: Run, scheme: str) -> None:
        """Drawn things need a contrast of 3 (WCAG 2.2, 1.4.11)."""
        view = look(examples, scheme=scheme)
        assert dim(view, "rect.bar") == []
        view.open("bike-desk-031/trial-2")
        assert dim(view, "figure rect.span, figure rect.overlap") == []


def dim(view: View, selector: str) -> list[str]:
    found: list[str] = view.page.eval_on_selector_all(selector, "(all) => looking.dim(all)")
    return found
