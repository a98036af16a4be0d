"""The flow as a picture: what lies behind a state, its conversations, sixty states, hostile names, small windows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from browser.conftest import Look
from browser.given import SPELLS
from browser.looking import View
from browser.walks import branching, make_run, viewings, walk
from convoscope.conversation import Flow, FlowState
from convoscope.report.page import write_page
from convoscope.runs.run import Run

OVERLAPS = """(svg) => {
  const texts = [...svg.querySelectorAll("text")].map((one) => [one.textContent, one.getBoundingClientRect()]);
  const boxes = [...svg.querySelectorAll("[data-state] .box")].map((one) => one.getBoundingClientRect());
  const meet = (a, b, slack) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > slack
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > slack;
  const found = [];
  texts.forEach(([text, box], at) => texts.slice(at + 1).forEach(([other, there]) => {
    // Lines of one box touch: the room above and below their letters is part of them.
    if (meet(box, there, 3.5)) found.push(`${text} and ${other}`);
  }));
  boxes.forEach((box, at) => found.push(...boxes.slice(at + 1).filter((one) => meet(box, one, 0)).map(() => "boxes")));
  return found;
}"""
OUT_OF_BOX = """(svg) => [...svg.querySelectorAll("[data-state]")].flatMap((state) => {
  const frame = state.querySelector(".box").getBoundingClientRect();
  return [...state.querySelectorAll("text")].filter((one) => {
    const box = one.getBoundingClientRect();
    return box.left < frame.left || box.right > frame.right || box.top < frame.top || box.bottom > frame.bottom;
  }).map((one) => one.textContent);
})"""
CONTRASTS = """(svg) => {
  const light = (colour) => {
    const [red, green, blue] = colour.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255)
      .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  return [...svg.querySelectorAll("[data-state]")].flatMap((state) => {
    const back = light(getComputedStyle(state.querySelector(".box")).fill);
    return [...state.querySelectorAll(":scope > text")].map((one) => {
      const ink = light(getComputedStyle(one).fill);
      return (Math.max(ink, back) + 0.05) / (Math.min(ink, back) + 0.05);
    });
  });
}"""


@pytest.fixture(scope="module")
def calls(runs: Path) -> Run:
    """64 calls through a flow of seven states, one of them untested, and a small second flow."""
    few = [walk(f"small {number}", ("open", "close"), completed=True, name="callback") for number in range(3)]
    return make_run(runs / "viewings", [*viewings(), *few])


@pytest.fixture(scope="module")
def sixty(runs: Path) -> Run:
    """400 calls through sixty states with branches, returns and repeats."""
    return make_run(runs / "sixty", list(branching(60, 400, 15, weak=(5, 11, 33))))


def picture(view: View) -> Locator:
    return view.section("Flow").locator("svg.flow-picture:visible")


def state(view: View, name: str) -> Locator:
    return picture(view).locator(f'a[aria-label^="{name}"]')


def panel(view: View) -> Locator:
    return view.section("Flow").locator(".flow-panel:visible")


def marked(view: View, style: str) -> set[str]:
    # A state is chosen by its address, and the page hears of that a little after the click.
    view.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")
    names: list[str] = (
        picture(view)
        .locator(f"a.{style}")
        .evaluate_all("all => all.map((one) => one.getAttribute('aria-label').split('\\n')[0])")
    )
    return set(names)


def harm(view: View) -> dict[str, Any]:
    found: dict[str, Any] = view.page.evaluate("looking.harm()")
    return found


class TestChoosing:
    def test_the_section_says_which_state_broke_the_flow(self, look: Look, calls: Run) -> None:
        view = look(calls)
        flow = view.section("Flow")
        expect(flow.get_by_role("heading", name="Which state broke the flow?")).to_be_visible()
        expect(flow.locator(".flow-causes li").first).to_contain_text("21 of 63 conversations got stuck here")
        expect(view.page.locator("#breaks")).to_contain_text("collect_details")

    def test_a_click_shows_exactly_what_lies_behind(self, look: Look, calls: Run) -> None:
        view = look(calls)
        state(view, "collect_contact").click()
        assert marked(view, "chosen") == {"collect_contact"}
        assert marked(view, "downstream") == {"confirm", "booked"}
        state(view, "collect_details").click()
        assert marked(view, "chosen") == {"collect_details"}
        assert marked(view, "downstream") == {"collect_contact", "confirm", "booked", "escalated"}
        edges = picture(view).locator("g.edge.downstream").evaluate_all("all => all.map((one) => one.dataset.tip)")
        assert sorted(edges) == [
            "collect_contact → confirm: 36 times",
            "collect_details → collect_contact: 38 times",
            "collect_details → confirm: 6 times",
            "collect_details → escalated: 4 times",
            "confirm → booked: 36 times",
        ]

    def test_what_is_missing_further_on_stands_at_the_states(self, look: Look, calls: Run) -> None:
        view = look(calls)
        state(view, "collect_details").click()
        # 25 of 63 did not go on; 38 did, of whom all came to collect_contact and 36 of them to confirm: 25 × 36 ÷ 38.
        expect(state(view, "collect_contact").locator(".missing")).to_have_text("−25")
        expect(state(view, "confirm").locator(".missing")).to_have_text("−24")
        state(view, "greet").click()
        expect(picture(view).locator(".missing")).to_have_count(0)

    def test_the_panel_has_figures_with_n_and_intervals(self, look: Look, calls: Run) -> None:
        view = look(calls)
        state(view, "collect_details").click()
        shown = panel(view)
        expect(shown.get_by_role("heading", level=4).first).to_have_text("collect_details")
        expect(shown.get_by_role("row", name="stall")).to_contain_text("33.3 %22.9 to 45.6, n 63")
        expect(shown).to_contain_text("Conversations get stuck.")
        expect(shown).to_contain_text("collect_contact 38×")
        expect(shown).to_contain_text("50 of 63 here; 21 got stuck in it, first")

    def test_an_untested_state_says_so(self, look: Look, calls: Run) -> None:
        view = look(calls)
        expect(state(view, "waiting_list").locator(".figures")).to_have_text("untested")
        state(view, "waiting_list").click()
        expect(panel(view)).to_contain_text("no conversation was in it")

    def test_a_conversation_opens_and_leads_back(self, look: Look, calls: Run) -> None:
        view = look(calls)
        state(view, "collect_details").click()
        first = panel(view).get_by_role("region", name="Conversations of this state").get_by_role("link").first
        id = first.inner_text()
        assert id.startswith("call 2-")
        first.click()
        view.shows(id)
        view.article.get_by_role("link", name="← collect_details").click()
        expect(view.article).to_be_hidden()
        assert marked(view, "chosen") == {"collect_details"}
        view.page.go_back()
        view.shows(id)

    def test_those_that_are_not_here_in_full_open_with_their_scores(
        self, look: Look, calls: Run, tmp_path: Path
    ) -> None:
        write_page(calls, tmp_path / "page.html", conversations=0)
        view = look(tmp_path / "page.html")
        state(view, "collect_details").click()
        expect(panel(view).locator(".flow-ids li").first).to_contain_text("scores only")
        panel(view).locator(".flow-ids a").first.click()
        expect(view.article).to_contain_text("the page holds the scores only")

    def test_what_is_chosen_stands_in_the_address(self, look: Look, calls: Run) -> None:
        view = look(calls)
        state(view, "confirm").click()
        address = view.address
        other = look(calls, address)
        assert marked(other, "chosen") == {"confirm"}
        expect(state(other, "confirm")).to_be_in_viewport()

    def test_an_address_of_no_state_chooses_nothing(self, look: Look, calls: Run) -> None:
        for address in ("#state=9.9", "#state=0.99", "#state=", "#state=0.1x", "#state=<img src=x>"):
            view = look(calls, address)
            assert marked(view, "chosen") == set()

    def test_a_row_of_the_table_leads_to_the_picture(self, look: Look, calls: Run) -> None:
        view = look(calls)
        view.section("Flow").get_by_role("table").get_by_role("link", name="confirm").first.click()
        assert marked(view, "chosen") == {"confirm"}
        expect(state(view, "confirm")).to_be_in_viewport()

    def test_another_flow_is_chosen_from_the_list(self, look: Look, calls: Run) -> None:
        view = look(calls)
        choice = view.section("Flow").get_by_role("combobox", name="Flow")
        assert choice.locator("option").all_inner_texts() == ["apartment_viewing (64)", "callback (3)"]
        choice.select_option(label="callback (3)")
        expect(picture(view)).to_have_count(1)
        expect(state(view, "open")).to_be_visible()

    def test_pointing_at_an_edge_says_how_often_it_was_gone(self, look: Look, calls: Run) -> None:
        view = look(calls)
        edge = picture(view).locator('g.edge[data-tip^="greet → collect_details"]')
        edge.scroll_into_view_if_needed()
        view.still()
        edge.hover()
        expect(view.page.get_by_role("tooltip")).to_have_text("greet → collect_details: 63 times")


class TestKeyboard:
    def test_enter_chooses_and_escape_clears(self, look: Look, calls: Run) -> None:
        view = look(calls)
        state(view, "confirm").focus()
        view.page.keyboard.press("Enter")
        expect(state(view, "confirm")).to_have_attribute("aria-current", "true")
        expect(state(view, "confirm")).to_be_focused()
        assert marked(view, "downstream") == {"booked"}
        view.page.keyboard.press("Escape")
        expect(picture(view).locator(".chosen")).to_have_count(0)
        assert view.address == "#flow"

    def test_everything_is_reached_and_is_seen_to_be(self, look: Look, calls: Run) -> None:
        view = look(calls)
        state(view, "collect_details").click()
        walked = view.walk("Tab")
        assert walked.unreached == []
        assert walked.unseen == []


class TestSixtyStates:
    def test_no_label_lies_on_another_and_all_are_in_their_boxes(self, look: Look, sixty: Run) -> None:
        view = look(sixty)
        assert picture(view).locator("[data-state]").count() == 60
        view.page.get_by_role("button", name="100 %").click()
        assert picture(view).evaluate(OVERLAPS) == []
        assert picture(view).evaluate(OUT_OF_BOX) == []

    def test_letters_can_be_read(self, look: Look, sixty: Run) -> None:
        view = look(sixty)
        smallest = """(svg) => Math.min(...[...svg.querySelectorAll("text")].map((one) =>
          parseFloat(getComputedStyle(one).fontSize)))"""
        assert picture(view).evaluate(smallest) >= 11
        scale = "(svg) => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width"
        assert picture(view).evaluate(scale) >= 0.92

    def test_it_fits_and_comes_back_to_its_size(self, look: Look, sixty: Run) -> None:
        view = look(sixty)
        svg = picture(view)
        natural = svg.evaluate("(svg) => svg.viewBox.baseVal.height")
        view.page.get_by_role("button", name="Fit").click()
        assert svg.evaluate("(svg) => svg.getBoundingClientRect().height") <= 900
        view.page.get_by_role("button", name="100 %").click()
        assert svg.evaluate("(svg) => svg.getBoundingClientRect().height") == pytest.approx(natural, abs=1)
        view.page.get_by_role("button", name="Larger").click()
        assert svg.evaluate("(svg) => svg.getBoundingClientRect().height") == pytest.approx(1.25 * natural, abs=1)
        assert view.beyond() == []


class TestSeeing:
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_names_stand_out_from_every_colour(self, look: Look, calls: Run, sixty: Run, scheme: str) -> None:
        for run in (calls, sixty):
            view = look(run, scheme=scheme)
            assert min(picture(view).evaluate(CONTRASTS)) >= 4.5
            state(view, "collect_details" if run is calls else "offer_name").click()
            assert view.faint() == []

    @pytest.mark.parametrize("width", [320, 1600])
    def test_nothing_reaches_beyond_the_window(self, look: Look, sixty: Run, calls: Run, width: int) -> None:
        for run in (sixty, calls):
            view = look(run, width=width, height=800)
            assert view.beyond() == []
            picture(view).locator("[data-state]").nth(1).evaluate(
                "one => one.dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}))"
            )
            expect(panel(view).locator(".flow-ids")).to_be_visible()
            assert view.beyond() == []

    def test_without_a_script_the_pictures_are_there(self, look: Look, calls: Run) -> None:
        view = look(calls, script=False)
        expect(view.section("Flow").locator("svg.flow-picture")).to_have_count(2)
        expect(view.section("Flow").get_by_role("button")).to_have_count(0)

    def test_on_paper_the_picture_is_whole(self, look: Look, sixty: Run) -> None:
        view = look(sixty)
        view.page.emulate_media(media="print")
        expect(view.page.get_by_role("button", name="Fit")).to_be_hidden()
        cut = "(svg) => { const box = svg.closest('.flow-box'); return box.scrollHeight - box.clientHeight; }"
        assert picture(view).evaluate(cut) <= 1


def test_hostile_names_do_nothing_and_are_shown_to_the_letter(look: Look, runs: Path) -> None:
    names = [
        "<script>window.pwned=1</script>",
        "'\"><svg onload=window.pwned=1>",
        "</text></svg><img src=x onerror=window.pwned=1>",
        "javascript:window.pwned=1",
        "line one\nline two\r\x00",
        "\u202eright to left\u202c مرحبا",
        "{{7*7}}{% raw %}${7*7}",
        "﷽" * 20,
        "漢字" * 40,
        "x" * 10_000,
    ]
    flow = Flow(name=SPELLS[0], states=tuple(FlowState(name=f"{name} never") for name in names))
    run = make_run(
        runs / "hostile-flow",
        [walk(f"{name[:90]} {place}", names, completed=False, flow=flow) for place, name in enumerate(names)],
    )
    view = look(run)
    states = picture(view).locator("[data-state]")
    assert states.count() == 20
    assert picture(view).evaluate(OVERLAPS) == []
    assert picture(view).evaluate(OUT_OF_BOX) == []
    for place in range(20):
        states.nth(place).evaluate(
            "one => one.dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}))"
        )
        expect(states.nth(place)).to_have_attribute("aria-current", "true")
    expect(panel(view).get_by_role("heading", level=4).first).not_to_be_empty()
    state(view, "<script>").first.click()
    expect(panel(view).get_by_role("heading", level=4).first).to_have_text(names[0])
    view.unfold()
    assert harm(view) == {"pwned": "undefined", "elements": [], "scripts": 1, "handlers": [], "links": []}
    panel(view).locator(".flow-ids a").first.click()
    expect(view.article).to_be_visible()
    assert view.page.evaluate("typeof window.pwned") == "undefined"
