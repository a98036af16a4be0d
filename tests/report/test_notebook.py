"""What a notebook shows of a run: the answer, and nothing of a log that is not text."""

from __future__ import annotations

import json
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import convoscope
from convoscope.analysis.answer import make_answer

HOSTILE = "<script>alert(1)</script>\x1b[31m&"


def score(folder: Path, count: int) -> convoscope.Run:
    """Chats that fail by their label, with names that would be markup."""
    chats = [
        {
            "id": f"{HOSTILE}{at}",
            "resolved": at % 4 == 0,
            "messages": [{"role": "user", "content": HOSTILE}, {"role": "assistant", "content": "No."}],
        }
        for at in range(count)
    ]
    (folder / "chats.jsonl").write_text("".join(json.dumps(chat) + "\n" for chat in chats))
    return convoscope.score(folder / "chats.jsonl", label="resolved", out=folder / "run")


class Tags(HTMLParser):
    """The names of the tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.names.add(tag)

    def handle_data(self, data: str) -> None:
        self.words += data


def test_a_run_shows_its_answer(tmp_path: Path) -> None:
    run = score(tmp_path, 24)
    html = run._repr_html_()
    assert html is not None
    shown = " ".join(Tags(html).words.split())
    answer = make_answer(run)
    assert answer.headline in shown
    assert "6 of 24 chats" in shown  # every fourth is resolved
    assert all(figure.label in shown for figure in answer.figures)
    assert str(run.folder / "report.html") in shown


def test_text_of_logs_stays_text(tmp_path: Path) -> None:
    html = score(tmp_path, 24)._repr_html_() or ""
    assert Tags(html).names <= {"div", "p", "b", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "code", "br"}
    assert "\x1b" not in html


def test_an_invalid_run_says_so(tmp_path: Path) -> None:
    run = score(tmp_path, 4)
    run.invalidate("wrong <b>logs</b>")
    assert "wrong &lt;b&gt;logs&lt;/b&gt;" in (run._repr_html_() or "")


def test_runs_alone_do_not_know_the_reports(tmp_path: Path) -> None:
    score(tmp_path, 1)
    program = "import sys; from convoscope.runs.run import Run; print(Run.open(sys.argv[1])._repr_html_())"
    printed = subprocess.run([sys.executable, "-c", program, tmp_path / "run"], capture_output=True, check=True)
    assert printed.stdout == b"None\n"
