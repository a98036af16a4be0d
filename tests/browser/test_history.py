"""The page of a history in the real browser: one figure is large, light and dark, wide and on a phone."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import expect

import convoscope
from browser.conftest import Look
from support.nightly import FIRST, make_night, write_night

HOSTILE = "<img src=x onerror=window.pwned=1>"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve days, worse from the seventh on."""
    folder = tmp_path_factory.mktemp("history")
    chats = [
        one
        for index in range(12)
        for one in make_night(
            FIRST + timedelta(days=index),
            index,
            count=40,
            share=0.9 if index < 6 else 0.1,
            wait=1.0,
            versions={"v1": 1} if index < 6 else {HOSTILE: 1},
        )
    ]
    metrics = ["outcome.success", "timing.response_latency"]
    run = convoscope.score(
        write_night(folder, FIRST, chats),
        out=folder / "run",
        metrics=metrics,
        label="resolved",
        targets=["success >= 80%"],
    )
    file = folder / "history.html"
    convoscope.history(run.folder, by="day").write_page(file)
    return file


@pytest.mark.parametrize("window", [{}, {"width": 390, "height": 800, "scheme": "dark"}])
def test_one_figure_is_large(look: Look, page: Path, window: dict[str, object]) -> None:
    view = look(page, **window)
    expect(view.page.locator("h1")).to_contain_text("of the chats reach their goal since 24 Oct")
    large = view.page.locator("[data-chart]:visible")
    expect(large.locator("h2")).to_have_text("Chats that reach their goal")
    assert large.locator("svg:visible circle.pt").count() == 12
    assert large.locator("svg:visible .cp").count() == 1
    assert large.locator("svg:visible .tgt").count() == 1
    view.page.get_by_role("button", name="Wait for a reply, median").click()
    expect(large.locator("h2")).to_have_text("Wait for a reply, median")
    # Nothing is wider than the window, and nothing of the log became markup.
    assert view.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert view.page.evaluate("typeof window.pwned") == "undefined"
    assert view.page.locator("img").count() == 0


def test_without_scripts_every_chart_is_there(look: Look, page: Path) -> None:
    view = look(page, script=False)
    expect(view.page.locator("[data-chart]:visible")).to_have_count(3)
