"""Small and large windows: everything fits, at 320 px too (WCAG 2.2, 1.4.10), light and dark, and on paper."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from browser.conftest import Look
from browser.looking import View
from convoscope.runs.run import Run

WIDTHS = (320, 1600)
OPENED = {
    "examples": ("bike-desk-031/trial-2", "vet-0907", "chat-2109", "solar-line-5521", "OC-014"),
    "shop": ("long-call", "silent-call", "chat-00007"),
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["examples", "shop"])
def test_nothing_reaches_beyond_the_window(look: Look, request: pytest.FixtureRequest, name: str, width: int) -> None:
    run: Run = request.getfixturevalue(name)
    view = look(run, width=width, height=800)
    assert view.beyond() == []
    view.unfold()
    assert view.beyond() == []
    found = {}
    for id in OPENED[name]:
        view.open(id)
        view.unfold()
        if beyond := view.beyond():
            found[id] = beyond
    assert found == {}


def test_a_table_on_a_phone_names_its_columns_at_every_cell(look: Look, examples: Run) -> None:
    row = look(examples, width=380).section("Metrics").get_by_role("row").filter(has_text="tools.success").first
    label = row.locator("td").first.evaluate("one => getComputedStyle(one, '::before').content")
    assert label.replace('" "', "") == '"value: "'


def test_a_tip_stays_in_the_window(look: Look, examples: Run) -> None:
    view = look(examples, width=380, height=700)
    bars = view.section("Distributions").locator("[data-link]")
    for bar in (bars.first, bars.last):
        bar.scroll_into_view_if_needed()
        view.still()
        # At its edge: the line of the median may stand in the middle of it.
        bar.hover(position={"x": 3, "y": 3})
        expect(view.page.get_by_role("tooltip")).to_be_in_viewport(ratio=1)


class TestLightAndDark:
    def background(self, view: View) -> str:
        return str(view.page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))

    def test_the_page_follows_the_system(self, look: Look, examples: Run) -> None:
        light, dark = (look(examples, scheme=scheme) for scheme in ("light", "dark"))
        assert brightness(self.background(light)) > 200
        assert brightness(self.background(dark)) < 60

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_a_button_chooses(self, look: Look, examples: Run, scheme: str) -> None:
        view = look(examples, scheme=scheme)
        button = view.page.get_by_role("button", name="Theme")
        own = self.background(view)
        seen = []
        for name in ("light", "dark", "auto"):
            button.click()
            expect(button).to_have_text(f"Theme: {name}")
            seen.append(self.background(view))
        light, dark, auto = seen
        assert brightness(light) > 200
        assert brightness(dark) < 60
        assert auto == own

    def test_what_was_chosen_stays_while_conversations_are_opened(self, look: Look, examples: Run) -> None:
        view = look(examples)
        button = view.page.get_by_role("button", name="Theme")
        button.click()
        button.click()
        dark = self.background(view)
        view.open("vet-0907")
        assert self.background(view) == dark


def brightness(colour: str) -> float:
    numbers = [float(one) for one in re.findall(r"[\d.]+", colour)[:3]]
    return sum(numbers) / 3


class TestPaper:
    @pytest.mark.parametrize("address", ["", "#conversation=bike-desk-031%2Ftrial-2"])
    def test_what_only_works_on_a_screen_is_left_out(self, look: Look, examples: Run, address: str) -> None:
        view = look(examples, address)
        view.page.emulate_media(media="print")
        expect(view.page.get_by_role("navigation")).to_be_hidden()
        expect(view.page.get_by_role("search")).to_be_hidden()
        expect(view.page.get_by_role("button", name="Theme")).to_be_hidden()
        expect(view.page.get_by_role("heading", level=1)).to_be_visible()
        pages = len(re.findall(rb"/Type\s*/Page\b", view.page.pdf()))
        assert pages >= 1

    def test_paper_is_light_whatever_the_screen_is(self, look: Look, examples: Run) -> None:
        view = look(examples, scheme="dark")
        view.page.get_by_role("button", name="Theme").click()
        view.page.get_by_role("button", name="Theme").click()
        expect(view.page.get_by_role("button", name="Theme")).to_have_text("Theme: dark")
        view.page.emulate_media(media="print", color_scheme="light")
        ink, paper = (
            brightness(view.page.evaluate(f"getComputedStyle(document.documentElement).{name}"))
            for name in ("color", "backgroundColor")
        )
        assert ink < 60
        assert paper > 200

    def test_no_text_of_a_printed_conversation_is_left_out(self, look: Look, shop: Run) -> None:
        view = look(shop, "#conversation=long-call")
        view.page.emulate_media(media="print")
        assert view.turn(59).locator("p").last.bounding_box() is not None
        assert len(re.findall(rb"/Type\s*/Page\b", view.page.pdf())) > 5
