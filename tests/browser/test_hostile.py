"""Logs are hostile input: whatever they say is shown to the letter, and nothing of it ever runs."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from playwright.sync_api import expect

import convoscope
from browser.conftest import Look
from browser.given import SPELLS
from browser.looking import View, cells
from convoscope.runs.run import Run
from support.chats import agent, chat, user

NAME = "<img src=x onerror=window.pwned=1>"
EVERYBODY = [one for place, spell in enumerate(SPELLS) for one in (spell, f"chat {place} {spell}")]


def unharmed(view: View) -> None:
    """Nothing ran, nothing was made that could run, and no link leads out of the page."""
    found = view.page.evaluate("looking.harm()")
    assert found == {"pwned": "undefined", "elements": [], "scripts": 1, "handlers": [], "links": []}


def test_the_overview_is_unharmed_and_literal(look: Look, hostile: Run) -> None:
    view = look(hostile)
    view.unfold()
    unharmed(view)
    assert view.page.title() == f"{NAME}: 44 conversations · Convoscope"
    expect(view.page.get_by_role("heading", level=1)).to_have_text(f"44 conversations in {NAME}")
    assert sorted(view.ids) == sorted(EVERYBODY)


def test_names_of_groups_are_literal_and_lead_to_their_conversations(look: Look, hostile: Run) -> None:
    view = look(hostile)
    view.unfold()
    table = view.section("Groups").get_by_role("table").first
    shown = {row.head for row in cells(table)}
    for spell in ("<script>window.pwned=1</script>", '"><svg onload=window.pwned=1>', "{{7*7}}{% raw %}${7*7}#{7*7}"):
        assert spell in shown
    links: list[str] = table.locator("tbody a").evaluate_all("all => all.map((one) => one.getAttribute('href'))")
    said = view.follow(links)
    assert [words for words in said if not words.startswith("1 conversation of ")] == []
    unharmed(view)


def test_file_names_and_problems_are_literal(look: Look, hostile: Run) -> None:
    view = look(hostile)
    view.unfold()
    problems = cells(view.section("What reading did").get_by_role("table").first)
    assert [row.head for row in problems[:2]] == [f'"><svg onload=window.pwned=1>.jsonl:{line}' for line in (2, 4)]
    expect(view.section("What reading did").get_by_role("cell", name=f"{NAME}.jsonl", exact=True)).to_be_visible()


def test_names_and_judges_of_metrics_are_literal(look: Look, hostile: Run) -> None:
    rows = cells(look(hostile).section("Metrics").get_by_role("table"))
    judged = [row for row in rows if row.head.startswith("test.judged")]
    assert {row.head for row in judged} >= {f"test.judged [{spell}]" for spell in SPELLS[:3]}
    assert all(row.by_column["value"].endswith(f"points {NAME}") for row in judged)


def test_every_conversation_is_unharmed_and_literal(look: Look, hostile: Run) -> None:
    view = look(hostile)
    for spell in SPELLS:
        view.open(spell)
        view.unfold()
        unharmed(view)
        said = view.article.locator("[id^=event-]").first.locator("p").first
        assert said.evaluate("one => one.textContent") == spell
        tool = view.article.locator("[id=event-2] .who")
        assert tool.evaluate("one => one.textContent") == spell
    for place, spell in enumerate(SPELLS):
        view.open(f"chat {place} {spell}")
        unharmed(view)


def test_every_conversation_opens_from_its_row(look: Look, hostile: Run) -> None:
    view = look(hostile)
    ids = view.ids
    for place in range(0, len(ids), 5):
        view.go("#conversations")
        view.rows.nth(place).get_by_role("link").evaluate("one => one.click()")
        view.shows(ids[place])


def test_searching_for_a_spell_finds_it_and_breaks_nothing(look: Look, hostile: Run) -> None:
    view = look(hostile)
    for spell in SPELLS:
        if any(letter in spell for letter in "\r\n\x00"):
            continue  # cannot be typed into one line
        wanted = spell.strip()
        view.search.fill(spell)
        expect(view.search).to_have_value(spell)
        view.page.wait_for_function(
            "(text) => new URLSearchParams(location.hash.slice(6)).get('text') === text", arg=wanted
        )
        expect(view.said).not_to_contain_text("Searching")
        assert spell in view.ids
    unharmed(view)


def test_filtering_by_a_spell_finds_it_and_breaks_nothing(look: Look, hostile: Run) -> None:
    view = look(hostile)
    links = ["#find?" + urlencode({"by.<script>window.pwned=1</script>": spell}) for spell in SPELLS]
    # The first is also a field of a chat, beside its messages: `--by` finds any field.
    expected = ["2 conversations"] + ["1 conversation"] * (len(SPELLS) - 1)
    assert [words.split(" of ")[0] for words in view.follow(links)] == expected
    view.page.get_by_role("button", name="Clear").click()
    view.field("flow").select_option(index=3)
    expect(view.rows).to_have_count(1)
    unharmed(view)


def test_a_tip_is_literal(look: Look, hostile: Run) -> None:
    view = look(hostile)
    view.open(NAME)
    view.article.locator("figure rect.span").first.hover()
    expect(view.page.get_by_role("tooltip")).to_contain_text(NAME)
    unharmed(view)


@pytest.mark.parametrize(
    "address",
    [
        f"#conversation={quote(NAME)}x",
        f"#{NAME}",
        f"#find?text={quote(NAME)}",
        f"#conversation={quote(NAME)}&turn={quote(NAME)}",
    ],
)
def test_an_address_is_no_markup_either(look: Look, hostile: Run, address: str) -> None:
    view = look(hostile, address)
    unharmed(view)
    expect(view.page.get_by_role("heading", level=1)).to_have_count(1)


@pytest.mark.parametrize("width", [320, 1600])
def test_nothing_reaches_beyond_the_window(look: Look, hostile: Run, width: int) -> None:
    view = look(hostile, width=width, height=800)
    view.unfold()
    assert view.beyond() == []
    found = {}
    for id in EVERYBODY:
        view.open(id)
        view.unfold()
        if beyond := view.beyond():
            found[id[:50]] = beyond[:3]
    assert found == {}


def test_a_name_cannot_turn_around_the_words_behind_it(look: Look, tmp_path: Path) -> None:
    """U+202E writes what follows from right to left, unless the name is told apart: 12 % would read % 21."""
    people = [chat(user("hi", 1), agent("yes", 2 + place), id=f"name\u202e{place}") for place in range(3)]
    view = look(convoscope.score(people, out=tmp_path / "run", workers=1), "#conversation=who\u202eis")
    assert turned(view, "#breaks li", "timing") == []
    assert turned(view, "[role=status]", "is not listed") == []
    view.search.fill("name")
    assert turned(view, "#list li", "timing") == []


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
