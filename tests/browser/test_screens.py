"""What holds on every screen: it fits, it can be read, its counts agree, its links arrive."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

import convoscope
from browser.conftest import Look
from browser.looking import View
from convoscope.analysis.answer import make_answer
from convoscope.conversation import Conversation
from convoscope.metrics import CONVERSATION, HIGHER, Observation, TenPoints, measured, metric
from convoscope.metrics.registry import Declared
from convoscope.report.page import write_page
from convoscope.runs.run import Run
from support.chats import agent, chat, user
from support.remarked import remarked_run

SCREENS = ("overview", "metrics", "breaks", "calls")
RUNS = ("viewings", "examples", "shop")
WIDTHS = (320, 390, 768, 1024, 1400, 1920)
NO_VALUE = re.compile(r"\b(NaN|undefined|null|None)\b|\[object")


@pytest.fixture(params=RUNS)
def run(request: pytest.FixtureRequest) -> Run:
    found: Run = request.getfixturevalue(request.param)
    return found


def screens(view: View) -> list[str]:
    """The screens that the bar offers."""
    links: list[str] = view.page.locator("nav a").evaluate_all("all => all.map((one) => one.getAttribute('href'))")
    return [link.removeprefix("#/") for link in links]


def first_id(view: View) -> str:
    view.show("calls")
    return view.ids[0]


@pytest.mark.parametrize(("width", "height"), [(1400, 900), (390, 844)])
def test_a_screen_is_at_most_three_windows_high(look: Look, run: Run, width: int, height: int) -> None:
    view = look(run, width=width, height=height)
    for screen in screens(view):
        view.show(screen)
        assert view.page.evaluate("document.documentElement.scrollHeight") <= 3 * height, screen


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_scrolls_sideways(look: Look, viewings: Run, examples: Run, width: int) -> None:
    for run in (viewings, examples):
        view = look(run, width=width, height=800)
        id = first_id(view)
        for screen in screens(view):
            view.show(screen)
            view.unfold()
            assert view.beyond() == [], screen
        view.show("metrics/conversation.turns")
        assert view.beyond() == []
        view.open(id)
        view.unfold()
        assert view.beyond() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_contrast(look: Look, viewings: Run, examples: Run, scheme: Any) -> None:
    for run in (viewings, examples):
        view = look(run, scheme=scheme)
        assert view.page.evaluate("looking.tokens()") == []
        id = first_id(view)
        for screen in (*screens(view), "metrics/conversation.turns"):
            view.show(screen)
            assert view.faint() == [], screen
        view.open(id)
        assert view.faint() == []


def test_a_theme_that_is_chosen_wins(look: Look, examples: Run) -> None:
    view = look(examples, scheme="light")
    ground = "getComputedStyle(document.body).backgroundColor"
    button = view.page.get_by_role("button", name="Theme")
    for name, colour in (("light", "rgb(250, 250, 248)"), ("dark", "rgb(14, 15, 17)"), ("auto", "rgb(250, 250, 248)")):
        button.click()
        expect(button).to_have_text(f"Theme: {name}")
        assert view.page.evaluate(ground) == colour
        assert view.page.evaluate("looking.tokens()") == []


def test_no_screen_says_what_is_no_word(look: Look, run: Run) -> None:
    view = look(run)
    id = first_id(view)
    for screen in screens(view):
        view.show(screen)
        view.unfold()
        assert NO_VALUE.findall(view.text) == [], screen
    view.open(id)
    assert NO_VALUE.findall(view.text) == []


def test_every_dot_has_a_reason(look: Look, run: Run) -> None:
    view = look(run)
    id = first_id(view)
    for screen in screens(view):
        view.show(screen)
        view.unfold()
        assert view.page.evaluate("looking.dots()") == [], screen
    view.open(id)
    view.unfold()
    assert view.page.evaluate("looking.dots()") == []


def test_every_sentence_is_short(look: Look, viewings: Run, examples: Run) -> None:
    for run in (viewings, examples):
        view = look(run)
        for screen in screens(view):
            view.show(screen)
            assert view.page.evaluate("looking.longest()") == [], screen


def test_every_link_arrives(look: Look, run: Run) -> None:
    view = look(run)
    seen: set[str] = set()
    for screen in screens(view):
        view.show(screen)
        view.unfold()
        seen |= set(view.page.locator("main a").evaluate_all("all => all.map((one) => one.getAttribute('href'))"))
    kinds: dict[str, list[str]] = {}
    for link in sorted(seen):
        assert link.startswith("#/"), link
        kinds.setdefault(re.split(r"[/?]", link.removeprefix("#/"))[0], []).append(link)
    for screen, links in kinds.items():
        for link in links[:15]:
            view.show(link.removeprefix("#/"))
            assert view.page.evaluate("document.querySelector('main').dataset.screen") == screen
            assert "Not in this page" not in view.text
            if screen == "calls":
                expect(view.page.locator(".none")).to_have_count(0)
                assert view.rows.count() > 0


def number(text: str) -> int:
    return int(text.replace(",", ""))


def test_a_count_has_one_value_on_all_screens(look: Look, run: Run) -> None:
    """The bar of outcomes, the facets, the list behind each part, the tab."""
    view = look(run)
    parts = {
        link.get_attribute("href"): number(link.locator("b").inner_text()) for link in view.page.locator(".obl a").all()
    }
    total = run.summary.conversations
    if parts:
        assert sum(parts.values()) == total
    assert number(view.page.locator("nav .ct").inner_text()) == total
    for href, count in parts.items():
        view.show(str(href).removeprefix("#/"))
        expect(view.count).to_contain_text(f"{count:,} of {total:,} ")
        pressed = view.page.locator("#facets [aria-pressed=true] span").first
        assert number(pressed.inner_text()) == count


def test_what_is_lost_is_the_sum_of_the_causes(look: Look, viewings: Run) -> None:
    """28 of 64 are lost: 21 + 2 + 1 got stuck, 4 were handed over."""
    view = look(viewings)
    counts = [
        number(re.split(r"\s", text.strip())[0])
        for text in view.page.locator(".cause .lost b, .cause.rest > span:nth-child(2)").all_inner_texts()
    ]
    assert sum(counts) == 28
    assert [part.inner_text().split()[0] for part in view.page.locator(".obl a").all()] == ["36", "24", "4"]
    view.show("breaks")
    assert "25 of 63 " in view.text  # 21 stuck where details are collected, 4 handed over from there


def test_it_asks_nothing_of_the_network(look: Look, examples: Run) -> None:
    """`was_quiet` at the end of each test hears every request; this one walks through everything."""
    view = look(examples)
    id = first_id(view)
    for screen in screens(view):
        view.show(screen)
    view.open(id)
    view.was_quiet()


def test_the_shell_is_small(examples: Run) -> None:
    text = (examples.folder / "report.html").read_text(encoding="utf-8")
    shell = re.sub(r'(<script type="text/plain"[^>]*>)[^<]*', r"\1", text)
    assert len(shell.encode()) <= 160_000


def test_the_keyboard_reaches_everything_and_it_is_seen(look: Look, viewings: Run) -> None:
    view = look(viewings)
    for screen in ("overview", "breaks"):
        view.show(screen)
        walk = view.walk("Tab")
        assert walk.unreached == []
        assert walk.unseen == []


def test_keys(look: Look, viewings: Run) -> None:
    view = look(viewings)
    for key, screen in (("2", "metrics"), ("3", "breaks"), ("4", "calls"), ("1", "overview")):
        view.page.keyboard.press(key)
        view.page.wait_for_selector(f"main[data-screen={screen}]")
    view.page.keyboard.press("/")
    view.page.wait_for_selector("main[data-screen=calls]")
    expect(view.search).to_be_focused()
    view.page.keyboard.press("Escape")
    view.page.keyboard.press("j")
    second = view.ids[1]
    view.page.keyboard.press("Enter")
    view.shows(second)
    view.page.keyboard.press("k")
    expect(view.page.locator(".nav2")).to_contain_text("1 of 64")
    view.page.keyboard.press("Escape")
    view.page.wait_for_selector("main[data-screen=calls]")
    view.page.keyboard.press("5")
    view.page.wait_for_selector("main[data-screen=call]")
    view.page.keyboard.press("?")
    expect(view.page.get_by_role("dialog")).to_be_visible()
    view.page.keyboard.press("Escape")
    expect(view.page.get_by_role("dialog")).to_be_hidden()


def test_in_print_everything_is_open_and_light(look: Look, viewings: Run) -> None:
    view = look(viewings, scheme="dark")
    view.page.emulate_media(media="print")
    view.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert view.page.locator("details:not([open])").count() == 0
    assert view.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    expect(view.page.get_by_role("navigation")).to_be_hidden()


def test_one_conversation_opens_on_itself(look: Look, tmp_path: Path) -> None:
    run = convoscope.score([chat(user("hi", 1), agent("Good day.", 2), id="only")], out=tmp_path / "run", workers=1)
    view = look(run)
    view.shows("only")
    assert "Good day." in view.text


def test_logs_that_say_no_outcome_say_so(look: Look, forty: Run) -> None:
    view = look(forty)
    expect(view.page.get_by_role("heading", level=1)).to_contain_text("do not say how")
    assert view.page.locator(".ob").count() == 0


def test_without_a_figure_it_shows_what_there_is_to_know(look: Look, tmp_path: Path) -> None:
    """No card: what broke, what was not read and the hint are seen all the same, and so are two silent users."""
    run = remarked_run(tmp_path)
    write_page(run)
    view = look(run)
    assert view.page.locator(".cards").count() == 0
    shown = view.page.locator("p.meta").all_inner_texts()
    remarks = make_answer(run).remarks
    assert len(remarks) == 3
    assert all(remark.replace("`", "") in shown for remark in remarks)
    assert view.page.locator(".ob .no_user_speech").count() == 0  # the bar has what counts
    assert "2 more without a word of the user" in view.page.locator(".obl").inner_text()


def test_a_phone_says_what_a_figure_does_not_cover(look: Look, tmp_path: Path) -> None:
    """Of two chats, one has no times: waits are measured in 1 of 2, 50 %."""
    timed = chat(user("Open?", 0, until=1), agent("Yes, until six.", 3, until=4), id="timed")
    untimed = chat(user("Open?"), agent("Yes, until six."), id="untimed")
    run = convoscope.score([timed, untimed], metrics=["timing.response_latency"], out=tmp_path / "run", workers=1)
    for width in (1400, 390):
        view = look(run, width=width, height=844)
        expect(view.page.locator(".cards .kf .f", has_text="n 1").first).to_be_visible()
        for covered in view.page.get_by_text(", 50 % covered").all():
            expect(covered).to_be_visible()
        assert view.page.get_by_text(", 50 % covered").count() >= 1
        view.show("metrics")
        expect(view.page.locator("tr.r .cv b").first).to_be_visible()


def test_without_script_it_says_the_verdict_and_what_to_do(look: Look, viewings: Run) -> None:
    view = look(viewings, script=False)
    told = view.page.locator("noscript").evaluate("one => one.textContent")
    assert "36" in told or "56" in told
    assert "convoscope runs show" in told


def test_bad_figures_without_a_card_are_links_to_their_values(look: Look, tmp_path: Path) -> None:
    """Nine scores are 2 of 5, below their mark of 3.8: eight have a card, the ninth is named with its value."""

    def rated(name: str) -> Declared:
        @metric(f"own.{name}", version=1, observes=CONVERSATION, unit="of 5", better=HIGHER, ten=TenPoints(1.0, 5.0))
        def score(conversation: Conversation) -> Observation:
            """How good is it?"""
            return measured(conversation, 2.0)

        return score

    talks = [chat(user("Open?"), agent("Yes, until six."), id=id) for id in "ab"]
    run = convoscope.score(talks, metrics=[rated(name) for name in "abcdefghi"], out=tmp_path / "run", workers=1)
    view = look(run)
    assert view.page.locator(".cards .kf").count() == 8
    line = view.page.locator("p.bad", has_text="1 more bad figure: ")
    (hidden,) = make_answer(run).more_bad_figures
    link = line.get_by_role("link", name=f"{hidden.label} 2.00 of 5")
    link.click()
    assert view.page.url.endswith(f"#/metrics/{hidden.name}")
