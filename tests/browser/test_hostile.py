"""Logs are hostile input: whatever they say is shown to the letter, and nothing of it ever runs."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from playwright.sync_api import expect

import convoscope
from browser.conftest import Look
from browser.given import SPELLS
from browser.looking import View
from convoscope.runs.run import Run
from support.chats import agent, chat, user

NAME = "<img src=x onerror=window.pwned=1>"
EVERYBODY = [one for place, spell in enumerate(SPELLS) for one in (spell, f"chat {place} {spell}")]


def unharmed(view: View) -> None:
    """Nothing ran, nothing was made that could run, and no link leads out of the page."""
    found = view.page.evaluate("looking.harm()")
    assert found == {"pwned": "undefined", "elements": [], "scripts": 1, "handlers": [], "links": []}


def test_every_screen_is_unharmed_and_literal(look: Look, hostile: Run) -> None:
    view = look(hostile)
    assert view.page.title().startswith(f"{NAME}: 44 ")
    expect(view.page.locator("#run")).to_have_text(NAME)
    for screen in ("overview", "metrics", "breaks", "calls"):
        view.show(screen)
        view.unfold()
        unharmed(view)


def test_file_names_and_problems_are_literal(look: Look, hostile: Run) -> None:
    view = look(hostile)
    view.unfold()
    assert '"><svg onload=window.pwned=1>.jsonl:2' in view.text
    assert f"{NAME}.jsonl" in view.text


def test_names_and_judges_of_metrics_are_literal(look: Look, hostile: Run) -> None:
    view = look(hostile, "#/metrics")
    view.search.fill("judged")
    for spell in SPELLS[:3]:
        row = view.page.locator("tr.r").filter(has=view.page.get_by_text(f"test.judged [{spell}]", exact=True))
        expect(row).to_contain_text(f"points {NAME}")
    view.show("metrics/" + quote(f"test.judged [{SPELLS[0]}]", safe=""))
    expect(view.page.get_by_role("complementary")).to_contain_text("What do the judges say?")
    unharmed(view)


def test_every_conversation_is_unharmed_and_literal(look: Look, hostile: Run) -> None:
    view = look(hostile)
    for spell in SPELLS:
        view.open(spell)
        view.unfold()
        unharmed(view)
        said = view.page.locator(".tu .text").first
        assert said.evaluate("one => one.textContent") == spell
        tool = view.page.locator(".tc .who").first
        assert tool.evaluate("one => one.textContent") == spell
    for place, spell in enumerate(SPELLS):
        view.open(f"chat {place} {spell}")
        unharmed(view)


def test_every_conversation_opens_from_its_row(look: Look, hostile: Run) -> None:
    view = look(hostile)
    for place in range(0, len(EVERYBODY), 13):
        view.show("calls")
        for _ in range(place):
            view.page.keyboard.press("j")
        row = view.page.locator(".vr.cur")
        id = row.locator(".id").evaluate("one => one.textContent")
        row.evaluate("one => one.click()")
        view.shows(id)
        view.reload()


def test_searching_for_a_spell_finds_it_and_breaks_nothing(look: Look, hostile: Run) -> None:
    # High enough for all rows to be in sight.
    view = look(hostile, "#/calls", height=2400)
    for spell in SPELLS:
        if any(letter in spell for letter in "\r\n\x00"):
            continue  # cannot be typed into one line
        view.search.fill(spell)
        view.page.wait_for_function(
            "(text) => (new URLSearchParams(location.hash.split('?')[1]).get('text') || '') === text", arg=spell.strip()
        )
        expect(view.page.locator("#found")).not_to_contain_text("Searching")
        assert spell in view.ids
    unharmed(view)


def test_filtering_by_a_spell_finds_it_and_breaks_nothing(look: Look, hostile: Run) -> None:
    view = look(hostile)
    name = "<script>window.pwned=1</script>"
    for spell in SPELLS:
        view.show("calls?" + urlencode({name: spell}))
        # The first is also a field of a chat, beside its messages: `--by` finds any field.
        expect(view.rows).to_have_count(2 if spell == SPELLS[0] else 1)
    view.page.get_by_role("button", name="Clear filters").click()
    view.counts("44 of 44 conversations")
    unharmed(view)


def test_a_tip_is_literal(look: Look, hostile: Run) -> None:
    view = look(hostile)
    view.open(NAME)
    view.page.locator(".lane i").first.hover()
    expect(view.page.get_by_role("tooltip")).to_contain_text(NAME)
    unharmed(view)


@pytest.mark.parametrize(
    "address",
    [
        f"#/call/{quote(NAME)}x",
        f"#{NAME}",
        "#/call/%E0%A4%A",
        f"#/calls?text={quote(NAME)}",
        f"#/calls?{quote(NAME)}={quote(NAME)}",
        f"#/call/{quote(NAME)}/{quote(NAME)}",
        f"#/breaks/{quote(NAME)}/{quote(NAME)}",
        f"#/metrics/{quote(NAME)}",
    ],
)
def test_an_address_is_no_markup_either(look: Look, hostile: Run, address: str) -> None:
    view = look(hostile, address)
    unharmed(view)
    expect(view.page.get_by_role("heading", level=1)).to_have_count(1)


@pytest.mark.parametrize("width", [320, 1600])
def test_nothing_reaches_beyond_the_window(look: Look, hostile: Run, width: int) -> None:
    view = look(hostile, width=width, height=800)
    found = {}
    for screen in ("overview", "metrics", "breaks", "calls"):
        view.show(screen)
        view.unfold()
        if beyond := view.beyond():
            found[screen] = beyond[:3]
    for id in EVERYBODY[::3]:
        view.open(id)
        view.unfold()
        if beyond := view.beyond():
            found[id[:50]] = beyond[:3]
    assert found == {}


def test_a_name_cannot_turn_around_the_words_behind_it(look: Look, tmp_path: Path) -> None:
    """U+202E writes what follows from right to left, unless the name is told apart: 12 % would read % 21."""
    people = [chat(user("hi", 1), agent("yes", 2 + place), id=f"name\u202e{place}") for place in range(3)]
    view = look(convoscope.score(people, out=tmp_path / "run", workers=1), "#/call/who\u202eis")
    assert turned(view, "main p", "is not listed") == []
    view.show("calls")
    assert turned(view, "#list .vr", "worse") == []


def turned(view: View, selector: str, begins: str) -> list[str]:
    """Texts in which our own words, that begin so, run from right to left."""
    found: list[str] = view.page.eval_on_selector_all(selector, "(all, begins) => looking.turned(all, begins)", begins)
    return found


SCRIPT, TRUSTED, CONNECT = "script-src", "require-trusted-types-for", "connect-src"
ATTEMPTS = {
    "add('script', {text: 'window.pwned=1'})": TRUSTED,
    "const one = document.createElement('script'); one.append('window.pwned=1'); document.body.append(one)": TRUSTED,
    "add('script', {src: 'data:text/javascript,window.pwned=1'})": TRUSTED,
    "document.body.innerHTML += '<img src=x onerror=window.pwned=1>'": TRUSTED,
    "document.write('<script>window.pwned=1</script>')": TRUSTED,
    "document.body.setAttribute('onclick', 'window.pwned=1'); document.body.click()": TRUSTED,
    "eval('window.pwned=1')": TRUSTED,
    "new Function('window.pwned=1')()": TRUSTED,
    "setTimeout('window.pwned=1')": TRUSTED,
    "location.href = 'javascript:window.pwned=1'": SCRIPT,
    "await fetch('https://example.invalid/')": CONNECT,
    "await fetch(location.href)": CONNECT,
    "navigator.sendBeacon('https://example.invalid/', 'x')": CONNECT,
    "new WebSocket('wss://example.invalid/')": CONNECT,
    "add('img', {src: 'https://example.invalid/x.png'})": "img-src",
    "add('iframe', {src: 'https://example.invalid/'})": "frame-src",
    "add('style', {textContent: 'body {display: none}'})": "style-src",
    "document.body.setAttribute('style', 'display: none')": "style-src",
    "add('form', {action: 'https://example.invalid/'}).submit()": "form-action",
    "add('base', {href: 'https://example.invalid/'})": "base-uri",
}


def test_the_policy_bites(look: Look, examples: Run) -> None:
    """Were there a way to make markup of a log, the browser would still refuse to run it or to send anything."""
    view = look(examples)
    bitten = {}
    for attempt in ATTEMPTS:
        # Later, and so as the page itself would do it: what a debugger evaluates may do more.
        view.page.evaluate(f"""() => new Promise((done) => setTimeout(async () => {{
          const add = (tag, facts) => {{
            const one = Object.assign(document.createElement(tag), facts);
            document.body.append(one);
            return one;
          }};
          try {{ {attempt} }} catch (error) {{ window.caught = error; }}
          setTimeout(done, 20);
        }}))""")
        heard = view.heard()
        assert heard.answers == []
        assert view.page.evaluate("[typeof pwned, getComputedStyle(document.body).display]") == ["undefined", "block"]
        bitten[attempt] = {one.partition(":")[0].removesuffix("-elem").removesuffix("-attr") for one in heard.refusals}
    assert {attempt: refused for attempt, refused in ATTEMPTS.items() if refused not in bitten[attempt]} == {}
