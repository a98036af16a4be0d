"""Pictures for a slide: what they say is what the run says, and whatever stands in a log stays text."""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

import pytest

import convoscope
from cli.test_states import HOSTILE, hostile, viewings
from convoscope.errors import UsageError
from convoscope.harmless import clean
from convoscope.report.plot.drawing import BAD, BARS, wrapped
from convoscope.runs.make import make_run
from convoscope.runs.run import Run
from support.command_line import convoscope as in_a_process

SVG = "{http://www.w3.org/2000/svg}"
LATENCY = "timing.response_latency"


def chat(id: str, wait: float, **facts: object) -> dict[str, object]:
    """A question, and an answer so many seconds later."""
    messages = [
        {"role": "user", "content": "Where is it?", "timestamp": 1_760_000_000.0},
        {"role": "assistant", "content": "On its way.", "timestamp": 1_760_000_000.0 + wait},
    ]
    return {"id": id, "messages": messages, **facts}


def written(folder: Path, name: str, chats: Sequence[dict[str, object]]) -> Run:
    log = folder / f"{name}.jsonl"
    log.write_text("".join(json.dumps(one) + "\n" for one in chats))
    return make_run(log, metrics=[LATENCY, "outcome.success"], by=[["model"]], out=folder / name)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """22 chats of the model `fast` wait 1 s and 2 s in turn, 6 of the model `slow` 4 s and 5 s."""
    fast = [chat(f"f{at}", (1.0, 2.0)[at % 2], model="fast") for at in range(22)]
    slow = [chat(f"s{at}", (4.0, 5.0)[at % 2], model="slow") for at in range(6)]
    return written(tmp_path_factory.mktemp("runs"), "after", [*fast, *slow])


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """All 26 chats, of the model `fast`, wait 2 s and 4 s in turn."""
    chats = [chat(f"f{at}", (2.0, 4.0)[at % 2], model="fast") for at in range(26)]
    return written(tmp_path_factory.mktemp("runs"), "before", chats)


def texts(svg: str) -> list[str]:
    """What a reader sees, without what shows only when pointed at."""
    return [(node.text or "").strip() or (node[-1].tail or "").strip() for node in fromstring(svg).iter(f"{SVG}text")]


def boxes(svg: str) -> Iterator[Element]:
    yield from (node for node in fromstring(svg).iter(f"{SVG}rect") if node.find(f"{SVG}title") is not None)


def tip(node: Element) -> str:
    return (node.findtext(f"{SVG}title") or "").strip()


def count_of(node: Element) -> int:
    """`1 to 1.5 s: 22 of 28`."""
    return int(tip(node).partition(": ")[2].partition(" of ")[0])


class TestDistribution:
    def test_it_asks_the_question_and_says_how_sure_the_answer_is(self, run: Run) -> None:
        svg = convoscope.plot(run, "response_latency").svg
        root = fromstring(svg)
        # (22 · 1.5 + 6 · 4.5) / 28 = 60 / 28 = 2.142…
        assert texts(svg)[0] == "How long does the user wait for the agent's reply?"
        assert texts(svg)[1].startswith("2.14 s, 95 % interval ")
        assert texts(svg)[1].endswith("; n 28 turns of 28 conversations; coverage 100 %")
        assert "timing.response_latency, run after" in texts(svg)
        assert root.findtext(f"{SVG}title") == texts(svg)[0]
        description = root.findtext(f"{SVG}desc")
        # The 14th and 15th of 28 are 2 s, those from the 26th on 5 s.
        assert "28 turns, median 2.00 s, 95th percentile 5.00 s, from 1.00 s to 5.00 s" in (description or "")
        assert root.attrib["role"] == "img"
        assert root.attrib["aria-labelledby"] == "title desc"

    def test_the_bars_hold_every_value_once(self, run: Run) -> None:
        svg = convoscope.plot(run, LATENCY).svg
        assert sum(count_of(node) for node in boxes(svg)) == 28
        assert all(tip(node).endswith(" of 28") for node in boxes(svg))

    def test_bars_beyond_the_target_are_coloured_and_named(self, run: Run) -> None:
        svg = convoscope.plot(run, LATENCY, targets=["response_latency < 3"]).svg
        # Those of the slow model, and no others.
        assert sum(count_of(node) for node in boxes(svg) if node.attrib["fill"] == BAD) == 6
        assert sum(count_of(node) for node in boxes(svg) if node.attrib["fill"] == BARS) == 22
        assert "target < 3.00 s" in texts(svg)
        assert any("Target < 3.00 s: met" in text and "Orange bars" in text for text in texts(svg))

    def test_what_has_no_value_is_not_drawn(self, run: Run) -> None:
        with pytest.raises(UsageError, match=r"outcome\.success has no value in this run: 28 "):
            convoscope.plot(run, "outcome.success")

    def test_a_typo_gets_the_nearest_names(self, run: Run) -> None:
        with pytest.raises(UsageError, match=r"did you mean timing\.response_latency"):
            convoscope.plot(run, "respons_latency")


class TestGroups:
    def test_one_row_for_each_group_worst_first(self, run: Run) -> None:
        shown = texts(convoscope.plot(run, LATENCY, by="model").svg)
        assert shown[1].startswith("By model. All: 2.14 s, 95 % interval ")
        slow, fast = shown.index("slow"), shown.index("fast")
        assert slow < fast
        # (3 · 4 + 3 · 5) / 6 and (11 · 1 + 11 · 2) / 22; six are fewer than twenty.
        assert shown[slow + 1] == "4.50 s"
        assert shown[fast + 1] == "1.50 s"
        assert (shown[slow + 3], shown[fast + 3]) == ("6", "22")
        assert any("fewer than 20 conversations, too few to conclude" in text for text in shown)

    def test_few_are_hatched_and_never_coloured(self, run: Run) -> None:
        svg = convoscope.plot(run, LATENCY, by=["model"], targets=["response_latency < 3"]).svg
        fills = [node.attrib["fill"] for node in boxes(svg)]
        assert "url(#hatch)" in fills
        assert BAD not in fills
        shown = texts(svg)
        # The interval of the 22 lies below 3 s as a whole; six say nothing.
        assert "met" in shown
        assert "missed" not in shown

    def test_a_dimension_that_is_not_there_says_which_are(self, run: Run) -> None:
        with pytest.raises(UsageError, match="the run has no groups by colour") as refused:
            convoscope.plot(run, LATENCY, by="colour")
        assert "score again with --by colour; the run has groups by model" in str(refused.value)


class TestBeforeAndAfter:
    def test_both_values_with_both_intervals(self, run: Run, before: Run) -> None:
        shown = texts(convoscope.plot(run, LATENCY, against=before).svg)
        row = shown.index("all")
        assert shown[row + 1 : row + 3] == ["before", "3.00 s"]
        assert shown[row + 4 : row + 7] == ["26", "after", "2.14 s"]
        assert any(text.startswith("timing.response_latency, run after against before") for text in shown)

    def test_a_group_that_only_one_run_has(self, run: Run, before: Run) -> None:
        shown = texts(convoscope.plot(run, LATENCY, against=before, by="model").svg)
        row = shown.index("slow")
        assert shown[row + 1 : row + 5] == ["before", "· no such group", "after", "4.50 s"]


class TestStates:
    def test_the_worst_state_leads_and_each_share_is_in_its_cell(self, tmp_path: Path) -> None:
        # 12 calls book, 8 stop in collect_details: of 20 in it 8 stall, 40 %, and 12 move on, 60 %.
        run = make_run(viewings(good=12, bad=8), metrics=["state"], out=tmp_path / "run")
        svg = convoscope.plot(run, "states").svg
        shown = texts(svg)
        row = shown.index("apartment_viewing / collect_details")
        assert row < shown.index("apartment_viewing / greet")
        assert shown[row + 1 : row + 6] == ["20", "40 %", "0 %", "0 %", "0 %"]
        assert shown[row + 6] == "60 %"
        # `booked` is an end: nobody is meant to move on from it.
        assert "apartment_viewing / booked" not in shown
        assert any("1 end of flows not drawn." in text for text in shown)
        assert shown[1].startswith("20 conversations, 3 states, worst first.")
        assert any("1 declared state in no conversation." in text for text in shown)
        assert "not measured" in svg
        stalls = next(node for node in boxes(svg) if tip(node).startswith("stalls 40 %"))
        # 6 % + 50 % · 0.4 = 26 %
        assert (stalls.attrib["fill"], stalls.attrib["fill-opacity"]) == (BAD, "0.26")

    def test_a_run_without_states(self, run: Run) -> None:
        with pytest.raises(UsageError, match="no states to draw"):
            convoscope.plot(run, "states")

    def test_hostile_names_stay_text(self, tmp_path: Path) -> None:
        run = make_run(hostile(), metrics=["state"], out=tmp_path / "run")
        svg = convoscope.plot(run, "states").svg
        assert not {node.tag for node in fromstring(svg).iter()} - {f"{SVG}{tag}" for tag in TAGS}
        assert "<b>" not in svg
        assert "\x1b" not in svg
        assert clean(HOSTILE).splitlines()[0].partition("<")[0] in svg


TAGS = ("svg", "title", "desc", "defs", "pattern", "rect", "line", "polygon", "text")


def test_hostile_groups_stay_text(tmp_path: Path) -> None:
    name = "</text><script>alert(1)</script>&\x00\x1b[31m"
    run = written(tmp_path, "hostile", [chat(f"c{at}", 2.0, model=name) for at in range(6)])
    svg = convoscope.plot(run, LATENCY, by="model").svg
    assert not {node.tag for node in fromstring(svg).iter()} - {f"{SVG}{tag}" for tag in TAGS}
    assert "<script" not in svg


def test_long_titles_are_wrapped_and_cut() -> None:
    # 100 px of 10 px letters hold 17 of them.
    assert wrapped("one two three four five six seven eight", 100, 10, 2) == ["one two three", "four five six se…"]


class TestFiles:
    def test_svg(self, run: Run, tmp_path: Path) -> None:
        ended = in_a_process("plot", run.folder, "response_latency", "-o", "latency.svg", cwd=tmp_path)
        assert (ended.code, ended.out, ended.err) == (0, "wrote latency.svg\n", "")
        assert (tmp_path / "latency.svg").read_text() == convoscope.plot(run.folder, LATENCY)._repr_svg_()

    def test_png_in_pixels(self, run: Run, tmp_path: Path) -> None:
        pytest.importorskip("resvg_py")
        ended = in_a_process("plot", run.folder, LATENCY, "--by", "model", "-o", "latency.png", cwd=tmp_path)
        assert ended.code == 0
        picture = (tmp_path / "latency.png").read_bytes()
        assert picture.startswith(b"\x89PNG\r\n\x1a\n")
        # Twice as many pixels as units: 960 · 2.
        assert struct.unpack(">I", picture[16:20]) == (1920,)

    def test_png_without_its_package_says_what_to_install(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "resvg_py", None)
        with pytest.raises(UsageError, match=r"pip install 'convoscope\[png\]'"):
            convoscope.plot(run, LATENCY).save(tmp_path / "latency.png")
        assert not (tmp_path / "latency.png").exists()

    def test_another_ending_is_refused_before_anything_is_drawn(self, run: Run, tmp_path: Path) -> None:
        ended = in_a_process("plot", run.folder, LATENCY, "-o", "latency.jpg", cwd=tmp_path)
        assert ended.code == 2
        assert "ends in .svg or .png" in ended.err

    def test_options_that_do_not_fit(self, run: Run) -> None:
        with pytest.raises(UsageError, match="no groups, targets or earlier run"):
            convoscope.plot(run, "states", by="model")
        with pytest.raises(UsageError, match="for the picture of states only"):
            convoscope.plot(run, LATENCY, flow="orders")
