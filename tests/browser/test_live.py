"""The page of logs that are followed, in the real browser."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace
from playwright.sync_api import expect

from browser.conftest import Look
from convoscope.report.page import LiveCall, LivePage, write_news, write_page
from convoscope.runs.make import make_run
from convoscope.runs.run import Run
from support.generated import FEW, write_lines


def made(folder: Path, count: int) -> tuple[Run, LivePage]:
    """A run of so many chats, and the news of it: 20 minutes old, looked for each second."""
    logs = write_lines(folder / "chats.jsonl", range(count))
    run = make_run(logs, metrics=FEW, out=folder / "run", workers=1)
    now = time.time()
    live = LivePage(
        written=now, newest=now - 1200, every=1.0, stalled=720, run=run.receipt.run_id, total=count, logs="logs"
    )
    return run, live


def ended(*ids: str) -> list[LiveCall]:
    return [LiveCall(1.79e9 + number, "lost", id, "find_order failed", "v2", "1:36") for number, id in enumerate(ids)]


def assert_only_news_were_asked_for(view: Any) -> None:
    heard = view.heard()
    asked = {Path(urlsplit(address).path).name for address in (*heard.requests, *heard.answers)}
    assert asked == {"live.html"}
    assert heard._replace(requests=[], answers=[]) == type(heard)([], [], [], [], [], [])
    # It goes on asking.
    view.page.goto("about:blank")
    view.heard()


def test_the_last_hour_is_renewed_without_loading_the_page(look: Look, tmp_path: Path) -> None:
    run, live = made(tmp_path, 30)
    write_news(run.folder, live)
    write_page(run, live=live)
    view = look(run, "#/live")
    view.page.evaluate("window.mine = true")
    # 1200 seconds are 20 minutes, more than the 12 after which logs have stalled: it is said first.
    expect(view.page.locator("#lasthour")).to_have_text("No new line for 20 min. Nothing yet: following logs.")
    hostile = "<img src=x onerror=alert(1)>"
    answer = "last hour: 41 of 58 chats reached their goal (71 %, 58 to 81)"
    news = replace(
        live, newest=live.written, answer=answer, targets=["missed: turns"], calls=ended("chat-00003", hostile)
    )
    write_news(run.folder, news)
    expect(view.page.locator("#lasthour")).to_contain_text("Last hour: 41 of 58 chats")
    expect(view.page.locator("#missed")).to_have_text("missed: turns")
    expect(view.page.locator("#arrivals tr")).to_have_count(2)
    assert view.page.locator("#arrivals a").get_attribute("href") == "#/call/chat-00003"
    assert hostile in view.page.inner_text("#arrivals")
    assert view.page.evaluate("window.mine") is True
    assert_only_news_were_asked_for(view)


def test_a_watch_that_ended_and_one_that_writes_no_more(look: Look, tmp_path: Path) -> None:
    """The times of day are those of the browser."""
    run, live = made(tmp_path, 30)
    live = replace(live, answer="last hour: 3 chats ended")
    write_news(run.folder, replace(live, ended=True))
    write_page(run, live=live)
    view = look(run, "#/live")
    at = view.page.evaluate(f"new Date({1000 * live.written}).toTimeString().slice(0, 5)")
    expect(view.page.locator("#lasthour")).to_have_text(f"The watch ended at {at}. Last hour: 3 chats ended.")
    assert "Looked for" not in view.page.inner_text("#lag")
    # One that would write each tenth of a second.
    write_news(run.folder, replace(live, written=live.written + 1, renewed=0.1))
    expect(view.page.locator("#lasthour")).to_contain_text("Watch has written nothing since ")
    assert_only_news_were_asked_for(view)


def test_new_rows_wait_while_the_pointer_is_in_the_list(look: Look, tmp_path: Path) -> None:
    run, live = made(tmp_path, 30)
    live = replace(live, calls=ended("a"))
    write_news(run.folder, live)
    write_page(run, live=live)
    view = look(run, "#/live")
    view.page.hover("#arrivals table")
    write_news(run.folder, replace(live, calls=ended("a", "b", "c")))
    expect(view.page.locator("#waiting")).to_have_text("2 new chats, show")
    expect(view.page.locator("#arrivals tr")).to_have_count(1)
    view.page.click("#waiting button")
    expect(view.page.locator("#arrivals tr")).to_have_count(3)
    assert_only_news_were_asked_for(view)


def test_a_reader_of_another_screen_is_not_thrown_out(look: Look, tmp_path: Path) -> None:
    run, live = made(tmp_path, 30)
    write_news(run.folder, live)
    write_page(run, live=live)
    view = look(run, "#/metrics", height=300)
    assert view.page.inner_text("#age").startswith("No new line for 20 min. As of ")
    view.page.evaluate("window.mine = true; scrollTo(0, 60)")
    grown, live = made(tmp_path, 40)
    write_page(grown, live=live)
    write_news(grown.folder, live)
    expect(view.page.locator("#age")).to_contain_text("10 new chats, show")
    assert view.page.evaluate("window.mine") is True
    # A click of the driver scrolls the button to where it likes it.
    view.page.evaluate("document.getElementById('renew').click()")
    expect(view.page.locator("#tabs")).to_contain_text("40")
    assert view.page.evaluate("[location.hash, scrollY]") == ["#/metrics", 60]
    assert "new chats" not in view.page.inner_text("#age")
    assert_only_news_were_asked_for(view)


def test_on_a_phone_no_word_is_broken(look: Look, tmp_path: Path) -> None:
    """Each row is a line of short words, and below it what happened: no cell is narrower than its longest word."""
    run, live = made(tmp_path, 3)
    call = LiveCall(
        1.79e9, "lost", "chat-2111-of-clover", "find_order failed twice, and the caller hung up", "clover", "10:36"
    )
    write_news(run.folder, replace(live, newest=live.written, answer="last hour: 1 of 1", calls=[call]))
    write_page(run, live=live)
    view = look(run, "#/live", width=390, height=844)
    row = view.page.locator("#arrivals tr")
    expect(row).to_have_count(1)
    one_line = 1.6 * 14
    short = [cell.bounding_box() for cell in row.locator("td").all() if len(cell.inner_text()) < 25]
    assert len(short) == 5
    assert all(box is not None and box["height"] < one_line for box in short)
    assert view.beyond() == []
    assert_only_news_were_asked_for(view)
