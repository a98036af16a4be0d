"""A page as a person sees it in the real browser, and everything that the browser has to say about it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import quote, urldefrag

from playwright.sync_api import Browser, ConsoleMessage, Dialog, Error, Locator, Page, Request, expect

WAIT = 6_000
"""Milliseconds after which something that should happen did not."""

SCRIPT = Path(__file__).with_name("looking.js")
_QUIET = ("debug", "info", "log")


def chromium() -> str | None:
    """The browser: the one that CONVOSCOPE_CHROMIUM names, else Debian's, without its window if there is that one."""
    named = os.environ.get("CONVOSCOPE_CHROMIUM")
    return shutil.which(named) if named else shutil.which("chromium-headless-shell") or shutil.which("chromium")


class Heard(NamedTuple):
    """What nobody should ever hear of a page: each list is empty if all is well."""

    console: list[str]
    errors: list[str]
    requests: list[str]
    """Attempts count, whatever became of them."""
    answers: list[str]
    refusals: list[str]
    dialogs: list[str]


class View:
    """One page in a window of its own."""

    def __init__(
        self,
        browser: Browser,
        file: Path,
        address: str = "",
        *,
        width: int = 1280,
        height: int = 900,
        scheme: Literal["light", "dark"] = "light",
        script: bool = True,
    ) -> None:
        self._heard = Heard([], [], [], [], [], [])
        self._script = script
        self.url = file.resolve().as_uri()
        self._context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            reduced_motion="reduce",
            java_script_enabled=script,
        )
        self._context.set_default_timeout(WAIT)
        self.page: Page = self._context.new_page()
        self._listen()
        self.page.goto(self.url + address)
        if script:
            self.ready()

    def _listen(self) -> None:
        page, heard = self.page, self._heard

        def console(message: ConsoleMessage) -> None:
            if message.type not in _QUIET:
                heard.console.append(f"{message.type}: {message.text}")

        def request(one: Request) -> None:
            if urldefrag(one.url).url != self.url:
                heard.requests.append(one.url)

        def answer(one: Request) -> None:
            if urldefrag(one.url).url != self.url:
                heard.answers.append(one.url)

        def dialog(one: Dialog) -> None:
            heard.dialogs.append(one.message)
            one.dismiss()

        page.on("console", console)
        page.on("request", request)
        page.on("requestfinished", answer)
        page.on("dialog", dialog)
        page.on("pageerror", lambda error: heard.errors.append(str(error)))
        page.expose_binding("tellRefusal", lambda _, text: heard.refusals.append(text))
        page.add_init_script(path=SCRIPT)

    def ready(self) -> None:
        """Wait until the page has read what it holds."""
        self.page.wait_for_selector("html[data-ready]", state="attached")

    def heard(self) -> Heard:
        """What was heard so far; from now on, it counts anew."""
        if self._script:
            self.page.evaluate("looking.pause()")
        so_far = Heard(*(list(one) for one in self._heard))
        for one in self._heard:
            one.clear()
        return so_far

    def was_quiet(self) -> None:
        """Whatever was heard and not asked for is a fault of the page."""
        assert self.heard() == Heard([], [], [], [], [], [])

    def close(self) -> None:
        self._context.close()

    # ------------------------------------------------------------------ where we are

    def go(self, address: str) -> None:
        """Follow a link: the part of the address behind #."""
        self.page.evaluate("(hash) => { location.hash = hash; }", address)

    @property
    def address(self) -> str:
        return str(self.page.evaluate("location.hash"))

    def reload(self) -> None:
        self.page.reload()
        self.ready()

    # ------------------------------------------------------------------ the overview

    def section(self, name: str) -> Locator:
        return self.page.get_by_role("region", name=name, exact=True)

    @property
    def search(self) -> Locator:
        return self.page.get_by_role("searchbox", name="Text")

    def choose(self, label: str, value: str) -> None:
        """Pick from a list beside the search, by what it says."""
        self.field(label).select_option(label=value)

    def field(self, label: str) -> Locator:
        form = self.page.get_by_role("search")
        return form.get_by_role("combobox", name=label, exact=True).or_(
            form.get_by_role("searchbox", name=label, exact=True)
        )

    @property
    def said(self) -> Locator:
        """What the page says about the list: the live region."""
        return self.section("Conversations, worst first").get_by_role("status")

    @property
    def rows(self) -> Locator:
        return self.page.locator("#list > li")

    @property
    def ids(self) -> list[str]:
        """The conversations that are listed, from top to bottom."""
        found: list[str] = self.page.eval_on_selector_all("#list .id", "all => all.map((one) => one.textContent)")
        return found

    def follow(self, links: list[str]) -> list[str]:
        """What the page says of the list behind each of many links."""
        said: list[str] = self.page.evaluate("(links) => looking.follow(links)", links)
        return said

    def lists(self, ids: list[str]) -> None:
        """Wait for the list to be these, in this order."""
        try:
            self.page.wait_for_function(
                """(wanted) => {
                  const ids = [...document.querySelectorAll("#list .id")].map((one) => one.textContent);
                  return ids.length === wanted.length && ids.every((id, place) => id === wanted[place]);
                }""",
                arg=ids,
                timeout=WAIT,
            )
        except Error:
            assert self.ids == ids  # says how they differ

    def counts(self, count: int) -> None:
        """Wait for the page to say how many conversations it lists, all of them, shown or not."""
        noun = "conversation" if count == 1 else "conversations"
        expect(self.said).to_contain_text(f"{count:,} {noun} of ", timeout=WAIT)

    # ------------------------------------------------------------------ a conversation

    @property
    def article(self) -> Locator:
        return self.page.get_by_role("article")

    def shows(self, id: str) -> None:
        """Wait for a conversation to be open."""
        title = "document.querySelector('article:not([hidden]) h1')"
        self.page.wait_for_function(f"(id) => {title} && {title}.textContent === id", arg=id)

    def open(self, id: str, turn: int | None = None) -> None:
        """Open a conversation by its address."""
        self.go(f"#conversation={quote(id, safe='')}" + ("" if turn is None else f"&turn={turn}"))
        self.shows(id)

    def turn(self, number: int) -> Locator:
        return self.article.get_by_role("region", name=f"Turn {number}", exact=True)

    # ------------------------------------------------------------------ what is drawn

    def unfold(self) -> None:
        """Open everything that can be opened in place."""
        self.page.evaluate("() => document.querySelectorAll('details').forEach((one) => { one.open = true; })")

    def beyond(self) -> list[str]:
        """What reaches beyond the window to the left or right, and the page if it can be pushed sideways."""
        found: list[str] = self.page.evaluate("looking.beyond()")
        return found

    def faint(self) -> list[str]:
        """Texts whose contrast with what is behind them is below 4.5 (WCAG 2.2, 1.4.3)."""
        found: list[str] = self.page.evaluate("looking.faint()")
        return found

    def walk(self, key: str) -> Walk:
        """Press Tab or Shift+Tab through all the page."""
        for _ in range(int(self.page.evaluate("looking.watch()")) + 2):
            self.page.keyboard.press(key)
        return Walk(**self.page.evaluate("looking.walked()"))

    def still(self) -> None:
        """Wait until what was scrolled has come to rest."""
        self.page.evaluate(
            "() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))"
        )


class Walk(NamedTuple):
    """What the keyboard never reached, and what could not be seen when it was reached."""

    unreached: list[str]
    unseen: list[str]


class Cells(NamedTuple):
    """A row of a table: what its header cell says, and its cells by the name of their column."""

    head: str
    by_column: dict[str, str]


def cells(table: Locator) -> list[Cells]:
    """The rows of a table with header cells, as they read."""
    return [Cells(**row) for row in table.evaluate("(table) => looking.cells(table)")]
