"""A page as a person sees it in the real browser, and everything that the browser has to say about it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import quote, urldefrag

from playwright.sync_api import Browser, ConsoleMessage, Dialog, Locator, Page, Request, expect

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

    # ------------------------------------------------------------------ the screens

    @property
    def main(self) -> Locator:
        return self.page.get_by_role("main")

    @property
    def text(self) -> str:
        """Everything that the screen says, folded or not."""
        return str(self.main.evaluate("one => one.textContent"))

    def show(self, screen: str) -> None:
        """Go to a screen by its address, and wait for it."""
        self.go(f"#/{screen}")
        name = screen.partition("/")[0].partition("?")[0]
        self.page.wait_for_selector(f"main[data-screen={name}]")
        self.still()

    @property
    def search(self) -> Locator:
        return self.page.get_by_role("searchbox")

    @property
    def count(self) -> Locator:
        """How many conversations the list holds: a live region."""
        return self.page.locator("#count")

    @property
    def rows(self) -> Locator:
        return self.page.locator("#list .vr")

    @property
    def ids(self) -> list[str]:
        """The conversations in sight, from top to bottom."""
        found: list[str] = self.page.eval_on_selector_all("#list .vr .id", "all => all.map((one) => one.textContent)")
        return found

    def counts(self, words: str) -> None:
        """Wait for the list to say how many it holds."""
        expect(self.count).to_have_text(words, timeout=WAIT)

    def shows(self, id: str) -> None:
        """Wait for a conversation to be open."""
        self.page.wait_for_function(
            "(id) => document.querySelector('main[data-screen=call] .nav2 .mono')?.textContent === id", arg=id
        )

    def open(self, id: str, second: float | None = None) -> None:
        """Open a conversation by its address."""
        self.go(f"#/call/{quote(id, safe='')}" + ("" if second is None else f"/{second:g}"))
        self.shows(id)

    # ------------------------------------------------------------------ what is drawn

    def unfold(self) -> None:
        """Open everything that can be opened in place, also what is folded inside of it."""
        self.page.evaluate("looking.unfold()")

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
