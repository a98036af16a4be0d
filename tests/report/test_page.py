"""The page: how much of a run is in it, what it says of that, and when it cannot be written."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import convoscope
from convoscope.analysis.answer import make_answer
from convoscope.errors import UsageError
from convoscope.report.page import index as listing
from convoscope.report.page import page as packing
from convoscope.report.page import write_page
from convoscope.report.page.page import _bounds as bounds
from convoscope.report.screen import progress_bar
from convoscope.runs.make import make_run as score
from convoscope.runs.run import PAGE, Run
from support.chats import chat, user
from support.generated import FEW, write_lines

MORE = "`convoscope report --conversations N --max-mb M` makes a larger page."


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("page")
    return score(write_lines(folder / "chats.jsonl", range(40)), metrics=FEW, out=folder / "run", workers=1)


def told(page: Path) -> list[str]:
    """What the page says about how much it holds."""
    packed = re.search(r'id="bounds">([^<]+)<', page.read_text(encoding="utf-8"))
    assert packed is not None
    lines: list[str] = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    return lines


class TestTheWords:
    @pytest.mark.parametrize(
        ("total", "words"),
        [(1, "All 1 call is here in full."), (1_200, "All 1,200 calls are here in full.")],
    )
    def test_all(self, total: int, words: str) -> None:
        assert bounds("call", total, total, total) == [words]

    def test_some(self) -> None:
        words = "Words of 400 of 2,000 calls are in this page; `convoscope show ID` has the rest."
        assert bounds("call", 2_000, 2_000, 400) == [words, MORE]

    def test_where_not_even_the_list_is_whole(self) -> None:
        assert bounds("chat", 5_000, 1_250, 400) == [
            "Words of 400 of 5,000 chats are in this page; `convoscope show ID` has the rest.",
            "The list holds the worst 1,250; 3,750 are left out, `convoscope sql` finds them.",
            "Figures, causes and counts are over all.",
            MORE,
        ]


class TestWhatIsWritten:
    def test_all_of_a_small_run(self, run: Run, tmp_path: Path) -> None:
        page = write_page(run, tmp_path / "page.html")
        assert (page.conversations, page.in_full, page.listed) == (40, 40, 40)
        assert page.bytes == (tmp_path / "page.html").stat().st_size
        assert told(tmp_path / "page.html") == ["All 40 chats are here in full."]

    @pytest.mark.parametrize("asked", [0, 1, 39])
    def test_as_many_as_were_asked_for(self, run: Run, tmp_path: Path, asked: int) -> None:
        page = write_page(run, tmp_path / "page.html", conversations=asked)
        assert (page.in_full, page.listed) == (asked, 40)
        words = f"Words of {asked} of 40 chats are in this page; `convoscope show ID` has the rest."
        assert told(tmp_path / "page.html") == [words, MORE]

    def test_more_than_there_are_is_all(self, run: Run, tmp_path: Path) -> None:
        assert write_page(run, tmp_path / "page.html", conversations=1_000).in_full == 40

    def test_as_many_as_fit(self, run: Run, tmp_path: Path) -> None:
        bare = write_page(run, tmp_path / "page.html", conversations=0).bytes
        whole = write_page(run, tmp_path / "page.html").bytes
        page = write_page(run, tmp_path / "page.html", max_mb=(bare + whole) / 2 / 1e6)
        assert 0 < page.in_full < 40
        assert page.listed == 40
        assert told(tmp_path / "page.html")[0].startswith(f"Words of {page.in_full} of 40 chats ")

    def test_the_list_has_an_end(self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert packing.MAX_LISTED == 20_000
        monkeypatch.setattr(packing, "MAX_LISTED", 7)
        page = write_page(run, tmp_path / "page.html")
        assert (page.conversations, page.in_full, page.listed) == (40, 7, 7)
        assert "The list holds the worst 7; 33 are left out, `convoscope sql` finds them." in told(page.path)

    def test_into_the_run_where_no_place_is_given(self, tmp_path: Path) -> None:
        run = score([chat(user("hi"))], metrics=["turns"], out=tmp_path / "run", workers=1)
        assert write_page(run).path == run.folder / PAGE
        assert (run.folder / PAGE).is_file()

    def test_is_the_same_every_time(self, run: Run, tmp_path: Path) -> None:
        first, second = tmp_path / "a.html", tmp_path / "b.html"
        write_page(run, first)
        write_page(Run.open(run.folder), second)
        assert first.read_bytes() == second.read_bytes()


class TestAFacetOfVeryManyValues:
    """Of the values that no conversation of the list has, only the most frequent are here; the others are counted."""

    SHOPS = ("a", "a", "a", "b", "b", "c", "d", "e")

    @pytest.fixture
    def facet(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], dict[str, Any]]:
        chats = [chat(user("hi"), id=f"c{at}", dimensions={"shop": shop}) for at, shop in enumerate(self.SHOPS)]
        run = score(chats, metrics=["turns"], out=tmp_path / "run", workers=1)

        def made(listed: int, most: int) -> dict[str, Any]:
            for module in (packing, listing):
                monkeypatch.setattr(module, "MAX_LISTED", listed)
            monkeypatch.setattr(listing, "MOST_VALUES", most)
            page = write_page(run, tmp_path / "page.html").path.read_text(encoding="utf-8")
            packed = re.search(r'id="index">([^<]+)<', page)
            assert packed is not None
            index = json.loads(gzip.decompress(base64.b64decode(packed[1])))["index"]
            (found,) = (one for one in index["facets"] if one["title"] == "Shop")
            return {**found, "ids": index["ids"]}

        return made

    def test_counts_are_of_the_whole_run(self, facet: Callable[[int, int], dict[str, Any]]) -> None:
        # Two are listed, and equals stay in the order of the log: c0 and c1, both of shop a.
        found = facet(2, 2)
        assert found["ids"] == ["c0", "c1"]
        assert (found["values"], found["counts"], found["codes"]) == (["a", "b"], [3, 2], [0, 0])
        assert found["others"] == 3  # c, d and e: 5 shops less the 2 that are here
        assert found["tells"] is True

    def test_a_value_of_the_list_is_here_however_rare(self, facet: Callable[[int, int], dict[str, Any]]) -> None:
        found = facet(6, 1)
        # a is the most frequent; b and c are of listed conversations: c3, c4 and c5.
        assert (found["values"], found["counts"]) == (["a", "b", "c"], [3, 2, 1])
        assert found["codes"] == [0, 0, 0, 1, 1, 2]
        assert found["others"] == 2

    @pytest.mark.parametrize("listed", [2, 8])
    def test_few_values_are_all_here(self, facet: Callable[[int, int], dict[str, Any]], listed: int) -> None:
        found = facet(listed, 5)
        assert (found["values"], found["counts"]) == (["a", "b", "c", "d", "e"], [3, 2, 1, 1, 1])
        assert "others" not in found


class TestWhatDoesNotFit:
    def test_is_refused_where_it_could_hold_no_conversation(self, run: Run, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=r"the page does not fit into 0\.001 MB") as caught:
            write_page(run, tmp_path / "page.html", max_mb=0.001)
        # The refused one would have had a list of one.
        bare = write_page(run, tmp_path / "other.html", conversations=0).bytes
        found = re.search(r"without a conversation it takes (0\.\d\d) MB; raise --max-mb", str(caught.value))
        assert found is not None
        assert float(found[1]) == pytest.approx(bare / 1e6, abs=0.015)

    def test_and_leaves_what_was_there(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "page.html").write_text("before")
        with pytest.raises(UsageError):
            write_page(run, tmp_path / "page.html", max_mb=0.001)
        assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
        assert (tmp_path / "page.html").read_text() == "before"

    @pytest.mark.parametrize("max_mb", [0, -1.0, float("nan"), float("inf")])
    def test_no_size_is_no_size(self, run: Run, tmp_path: Path, max_mb: float) -> None:
        with pytest.raises(UsageError, match="--max-mb must be above 0"):
            write_page(run, tmp_path / "page.html", max_mb=max_mb)

    def test_fewer_than_none_cannot_be_shown(self, run: Run, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="--conversations must be at least 0, not -1"):
            write_page(run, tmp_path / "page.html", conversations=-1)

    def test_the_page_is_never_larger_than_it_may_be(self, run: Run, tmp_path: Path) -> None:
        bare = write_page(run, tmp_path / "page.html", conversations=0).bytes
        whole = write_page(run, tmp_path / "page.html").bytes
        for part in (1, 6, 13, 19):
            most = bare + (whole - bare) * part // 20
            assert write_page(run, tmp_path / "page.html", max_mb=most / 1e6).bytes <= most


def test_the_page_is_a_stage_of_its_own_for_whoever_watches(tmp_path: Path) -> None:
    log = tmp_path / "chats.jsonl"
    write_lines(log, range(3))
    stages: list[tuple[str, int]] = []
    convoscope.score(
        log,
        metrics=FEW,
        out=tmp_path / "run",
        workers=1,
        progress=lambda step: stages.append((step.stage, step.conversations)),
    )
    assert stages[-1] == ("writing the page", 3)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_progress_bar_counts_within_a_part_and_across_processes(tmp_path: Path, workers: int) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    log = write_lines(tmp_path / "chats.jsonl", range(40))
    with progress_bar(Terminal()) as progress:
        convoscope.score(log, metrics=FEW, out=tmp_path / "run", workers=workers, part_bytes=10_000, progress=progress)
    assert progress.seen.value == 40


@pytest.mark.parametrize(
    ("target", "verdict"),
    [
        # 6 of 10 by Wilson: 31.3 to 83.2 %.
        ("outcome.success >= 95%", "missed"),
        ("outcome.success >= 80%", "missed, too close"),
        ("outcome.success >= 50%", "met, too close"),
        ("outcome.success >= 10%", "met"),
    ],
)
def test_a_card_says_what_the_exit_code_says_of_a_target(tmp_path: Path, target: str, verdict: str) -> None:
    ends = [{"id": f"c{at}", "won": at < 6, "messages": [{"role": "user", "content": "hi"}]} for at in range(10)]
    log = tmp_path / "chats.jsonl"
    log.write_text("\n".join(map(json.dumps, ends)), encoding="utf-8")
    run = score(log, metrics=["outcome.success"], label="won", out=tmp_path / "run", workers=1)
    page = write_page(run, tmp_path / "page.html", targets=[target]).path.read_text(encoding="utf-8")
    packed = re.search(r'id="facts">([^<]+)<', page)
    assert packed is not None
    facts = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    (card,) = facts["overview"]["cards"]
    assert card["verdict"] == verdict
    rows = {row["name"]: row for family in facts["figures"]["families"] for row in family["rows"]}
    assert rows["outcome.success"]["verdict"] == verdict
    assert sum(family.get("missed", 0) for family in facts["figures"]["families"]) == verdict.startswith("missed")


def test_of_one_conversation_no_interval_can_reach_across(tmp_path: Path) -> None:
    log = tmp_path / "chats.jsonl"
    log.write_text(json.dumps({"id": "c", "won": True, "messages": [{"role": "user", "content": "hi"}]}))
    run = score(log, metrics=["outcome.success"], label="won", out=tmp_path / "run", workers=1)
    answer = make_answer(run, targets=["outcome.success >= 50%"])
    (figure,) = answer.figures
    assert (figure.value, figure.low, figure.high) == (1.0, None, None)
    assert figure.verdict_text == "met, no interval"
