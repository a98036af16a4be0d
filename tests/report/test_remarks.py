"""What an answer says beside its figures is visible in every report, also where there is no figure."""

from __future__ import annotations

import html
import io
import re

import msgspec
import pytest

from convoscope.analysis.answer import Answer, Clause, Outcomes, make_answer
from convoscope.analysis.answer.model import GroupApart
from convoscope.report.run_markdown import markdown
from convoscope.report.run_terminal import print_answer
from convoscope.report.score import run_html
from convoscope.report.screen import Screen
from convoscope.runs.run import Run
from support.remarked import remarked_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return remarked_run(tmp_path_factory.mktemp("remarks"))


def terminal(answer: Answer, run: Run) -> list[str]:
    output = io.StringIO()
    print_answer(Screen(output), answer, run)
    return output.getvalue().splitlines()


def test_the_run_has_remarks_and_no_figure(run: Run) -> None:
    answer = make_answer(run)
    assert answer.figures == ()
    # 12 say whether they were resolved, every third of them not; 12 and the broken one are in Dutch.
    assert "--label resolved" in answer.hint
    assert answer.broken.startswith("1 chat broke off")
    assert answer.unread.startswith("13 of 15 chats are not in ")
    assert answer.remarks == (answer.hint, answer.broken, answer.unread)


def test_all_kinds_are_remarks() -> None:
    words = {"more_bad": "a", "notes": ("b", "c"), "hint": "d", "broken": "e", "unread": "f"}
    nothing = {"verdict": (), "outcomes": Outcomes(), "figures": (), "causes": ()}
    assert Answer(noun="chat", conversations=1, **nothing, **words).remarks == tuple("abcdef")  # type: ignore[arg-type]


@pytest.mark.parametrize("report", [markdown, run_html], ids=["Markdown", "notebook"])
def test_reports_show_them(report: object, run: Run) -> None:
    text = html.unescape(report(run))  # type: ignore[operator]
    visible = re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)
    assert all(remark in visible for remark in make_answer(run).remarks)


def group(number: int, words: str = "chats that reach their goal 10.0 % against 90.0 %", **facts: bool) -> GroupApart:
    sentence = f"channel {number}: {words}"
    return GroupApart(by={"channel": str(number)}, conversations=10, sentence=sentence, worse=True, figure="x", **facts)


class TestGroupsOnTheTerminal:
    def test_at_most_three_lines_and_how_many_more(self, run: Run) -> None:
        answer = msgspec.structs.replace(make_answer(run), groups=tuple(map(group, range(5))))
        shown = [line for line in terminal(answer, run) if line.startswith("channel")]
        assert [line[:9] for line in shown] == ["channel 0", "channel 1", "channel 2"]
        assert shown[-1].endswith("(and 2 more)")

    def test_a_long_sentence_takes_the_lines_of_others(self, run: Run) -> None:
        long = group(0, "chats that reach their goal " + "word " * 25)  # 165 letters: three lines of 80
        answer = msgspec.structs.replace(make_answer(run), groups=(long, group(1)))
        lines = terminal(answer, run)
        assert [line[:9] for line in lines if line.startswith("channel")] == ["channel 0"]
        assert any(line.endswith("(and 1 more)") for line in lines)

    def test_what_the_verdict_says_is_not_repeated(self, run: Run) -> None:
        answer = msgspec.structs.replace(make_answer(run), groups=(group(0, in_verdict=True), group(1)))
        assert [line[:9] for line in terminal(answer, run) if line.startswith("channel")] == ["channel 1"]

    def test_the_others_are_named_where_there_is_room(self, run: Run) -> None:
        answer = msgspec.structs.replace(make_answer(run), alike="No clear difference yet: app (n 12).")
        usual = len(terminal(answer, run))
        assert answer.alike in terminal(answer, run)
        # As many more sentences as fill 25 lines, then one more.
        full = msgspec.structs.replace(answer, verdict=(*answer.verdict, *[Clause(lead="So.")] * (25 - usual)))
        assert len(terminal(full, run)) == 25
        assert answer.alike in terminal(full, run)
        over = msgspec.structs.replace(full, verdict=(*full.verdict, Clause(lead="So.")))
        assert answer.alike not in terminal(over, run)
        assert len(terminal(over, run)) == 25
