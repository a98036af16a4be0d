"""Markdown for a pull request: what it says, that it fits, and that no log can write more into it than names."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from convoscope.conversation import Conversation, Outcome
from convoscope.errors import UsageError
from convoscope.metrics import CONVERSATION, HIGHER, Observation, measured, metric
from convoscope.report.run_markdown import MAX_CHARACTERS, Block, fit, markdown, write_markdown
from convoscope.report.table import code, row
from convoscope.runs.make import make_run as score
from convoscope.runs.run import Run
from support.called import called_run
from support.chats import chat, user
from support.generated import chat as record
from support.graded import grade
from support.hostile import NAMES, hostile_names, hostile_run

TITLES = ["metric", "value", "95 % interval", "n", "coverage", "better", "not measured"]


def tokens(text: str) -> Iterator[Token]:
    """All tokens, in order, those inside of lines too."""
    for token in MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(text):
        yield token
        yield from token.children or ()


def tables(text: str) -> list[list[list[str]]]:
    """The tables as a reader of Markdown sees them: rows of cells, code and text together."""
    found: list[list[list[str]]] = []
    inside = False
    for token in tokens(text):
        if token.type == "table_open":
            found.append([])
        elif token.type == "tr_open":
            found[-1].append([])
        elif token.type in {"th_open", "td_open"}:
            found[-1][-1].append("")
            inside = True
        elif token.type in {"th_close", "td_close"}:
            inside = False
        elif inside and token.type in {"text", "code_inline", "html_inline"}:
            found[-1][-1][-1] += token.content
    return found


def pipes(text: str) -> list[int]:
    """The pipes of each line that is a row of a table."""
    return [line.count("|") for line in text.splitlines() if line.startswith("|")]


def assert_harmless(text: str) -> None:
    """Nothing but our own tables, lists, folds and code spans; whatever else there is stands in code."""
    ours = ("<details><summary>", "</details>")
    for token in tokens(text):
        assert token.type not in {"link_open", "image", "fence", "code_block", "em_open", "s_open", "hr"}
        if token.type == "html_block":
            assert all(line.startswith(ours) for line in token.content.strip().splitlines()), token.content
            assert token.content.count("<") in {1, 3, 5, 7}
        if token.type == "html_inline":
            assert token.content == "<br>"
        if token.type == "heading_open":
            assert token.tag == "h2"
        if token.type == "text":
            assert not set("@|`\\[]#<>") & set(token.content.replace("> ", "").replace("< ", "")), token.content
            assert "://" not in token.content
            assert "www." not in token.content
    assert text.count("\n## ") == 0
    assert len(text) < MAX_CHARACTERS


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return called_run(tmp_path_factory.mktemp("markdown") / "mine")


class TestWhatItSays:
    def test_title_and_verdict_come_first(self, run: Run) -> None:
        lines = markdown(run, ["success > 10%", "success > 90%", "f1 > 0.5"]).splitlines()
        assert lines[0] == "## Convoscope: `mine`"
        assert lines[2] == "**3 targets: 1 met, 1 missed, 1 undetermined**, over 4 conversations"

    def test_no_target_is_not_taken_for_success(self, run: Run) -> None:
        text = markdown(run)
        assert text.splitlines()[2] == "**no target: nothing was checked**, over 4 conversations"
        assert tables(text)[0][0] == TITLES

    def test_every_figure_with_a_value_is_in_one_table_under_its_family(self, run: Run) -> None:
        rows = tables(markdown(run))[0][1:]
        assert [cells[0] for cells in rows] == [
            "conversation",
            "conversation.turns",
            "conversation.turns p50",
            "conversation.turns p95",
            "tools",
            "tools.calls",
            "tools.success",
            "tools.tool_call_validity",
        ]
        found = {cells[0]: cells for cells in rows}
        assert found["tools.success"][1] == "75.0 %"  # 3 of 4
        assert found["tools.success"][3:6] == ["4", "100 %", "higher"]
        assert found["tools"] == ["tools", *[""] * 6]

    def test_parts_of_metrics_are_counted_and_silent_ones_named_with_their_reason(self, run: Run) -> None:
        lines = markdown(run).splitlines()
        # Of the four parts of tool_call_validity, one can be told without a list of tools.
        assert "And 1 figure of their parts, in the page." in lines
        first = lines.index("Nothing to measure here for:") + 2
        assert lines[first : first + 5] == [
            "- `agent.repetition, agent.words_per_turn (no assistant speech)`",
            "- `answer.exact_match, answer.f1 (no ground truth)`",
            "- `timing.response_latency (no clock)`",
            "- `tools.tool_call_validity.bad_argument_rate, tools.tool_call_validity.missing_argument_rate, "
            "tools.tool_call_validity.unknown_tool_rate (no arguments schema, tools unknown)`",
            "",
        ]

    def test_a_silent_figure_that_a_target_asks_for_has_its_row(self, run: Run) -> None:
        found = {cells[0]: cells for cells in tables(markdown(run, ["f1 > 0.5"]))[0][1:]}
        assert found["answer.f1"][1:6] == ["·", "·", "0", "0 %", "higher"]
        assert found["answer.f1"][7] == "4 no ground truth"
        assert "answer.exact_match" not in found

    def test_targets_have_a_column_where_there_are_any(self, run: Run) -> None:
        text = markdown(run, ["success > 10%", "success < 90%", "f1 > 0.5", "turns <= 3"])
        table = tables(text)[0]
        assert table[0] == [*TITLES[:6], "target", TITLES[6]]
        found = {cells[0]: cells[6] for cells in table[1:]}
        first, second = found["tools.success"].split("; ")
        assert first.startswith("> 10.0 %: met")
        assert second.startswith("< 90.0 %: met")
        assert found["answer.f1"] == "> 0.500: undetermined: no ground truth"
        assert found["conversation.turns"] == "≤ 3: met, but there is no interval"  # all have as many turns
        assert found["tools.calls"] == ""

    def test_groups_are_folded(self, run: Run) -> None:
        text = markdown(run)
        assert "<details><summary>By <code>flow</code></summary>" in text
        flows = tables(text)[1]
        assert flows[0][:2] == ["flow", "conversations"]
        # f0 has c0, which fails, and c2; f1 has c1 and c3
        success = flows[0].index("success")
        assert [(cells[0], cells[1], cells[success]) for cells in flows[1:]] == [
            ("f0", "2", "50.0 %"),
            ("f1", "2", "100.0 %"),
        ]

    def test_small_groups_are_counted_in_a_line(self, tmp_path: Path) -> None:
        lines = markdown(called_run(tmp_path / "run", by=None)).splitlines()
        # f0 and f1, of two conversations each
        told = "- ``by flow: 2 groups of fewer than 5 (4 conversations) left out; `--by flow` has them``"
        assert told in lines
        assert "<details><summary>By <code>flow</code></summary>" not in lines

    def test_the_worst_say_in_what(self, run: Run) -> None:
        # the three others of four did better, and nobody else is behind anyone
        lines = markdown(run).splitlines()
        place = lines.index("Conversations, roughest first:")
        assert lines[place + 2 : place + 4] == ["- `c0`: tool calls that succeed 0.0 %, worse than 3 of 4", ""]

    def test_where_the_integration_broke_is_said_apart_and_as_code(self, tmp_path: Path) -> None:
        conversations = [
            chat(user("hi"), id="a", extras={"quality": 1.0}),
            chat(user("hi"), id="b", extras={"quality": 2.0}, outcome=Outcome(error="*no* `line`\n# <b>")),
            chat(user("hi"), id="c", extras={"quality": 0.5}, outcome=Outcome(error="no line")),
        ]
        run = score(conversations, metrics=[grade("quality")], out=tmp_path / "run", workers=1)
        lines = markdown(run).splitlines()
        place = lines.index("Conversations, roughest first:")
        assert lines[place + 2 : place + 8] == [
            "- `a`: quality 1.00 points, worse than 1 of 3",  # only b has more
            "",
            "The integration broke, which says nothing about the agent:",
            "",
            "- `c`: `no line`",
            "- `b`: ``*no* `line` # <b>``",
        ]
        assert_harmless(markdown(run))

    def test_where_all_are_the_same_nobody_is_the_worst(self, tmp_path: Path) -> None:
        conversations = [chat(user("hi"), id=id) for id in "ab"]
        run = score(conversations, metrics=["turns", "tools"], out=tmp_path / "run", workers=1)
        assert "ehind" not in markdown(run)

    def test_an_invalid_run_says_so_before_anything_else(self, tmp_path: Path) -> None:
        run = score([chat(user("hi"))], metrics=["turns"], out=tmp_path / "run", workers=1)
        run.invalidate("wrong *logs*", "runs/better")
        lines = markdown(run).splitlines()
        assert lines[2].startswith("**INVALID** since ")
        assert "`wrong *logs*`, superseded by `runs/better`" in lines[2]

    def test_what_reading_did(self, tmp_path: Path) -> None:
        (tmp_path / "x.jsonl").write_text(json.dumps(record(1)) + "\n" + "{broken\n" * 30)
        run = score(tmp_path / "x.jsonl", metrics=["turns"], out=tmp_path / "run", workers=1)
        text = markdown(run)
        assert "<details><summary>Reading: 30 problems</summary>" in text
        assert "- problem: `x.jsonl:2: " in text
        assert "- and 20 more problems, in read-report.json" in text

    def test_where_the_run_is_comes_last(self, run: Run) -> None:
        assert markdown(run).splitlines()[-1].startswith(f"Run {code(run.name)}, `run-")

    def test_targets_that_the_run_was_scored_with_need_not_be_given_again(self, tmp_path: Path) -> None:
        run = score([chat(user("hi"))], metrics=["turns"], out=tmp_path / "run", workers=1, targets=["turns > 1"])
        assert "**1 target: 1 missed**" in markdown(run)

    def test_is_the_same_every_time(self, run: Run) -> None:
        assert markdown(Run.open(run.folder), ["f1 > 0"]) == markdown(run, ["f1 > 0"])


class TestItFits:
    def test_whatever_the_number_of_metrics(self, tmp_path: Path) -> None:
        def measure(conversation: Conversation) -> Observation:
            """The same."""
            return measured(conversation, 1, judge="j" * 150)

        metrics = [
            metric(f"test.m{number:04d}", version=1, observes=CONVERSATION, unit="count", better=HIGHER)(measure)
            for number in range(400)
        ]
        run = score([chat(user("hi"), id="a")], metrics=metrics, out=tmp_path / "run", workers=1)
        text = markdown(run, ["m0000 > 2"])
        assert 50_000 < len(text) < MAX_CHARACTERS
        assert "more left out: a comment has no more room." in text
        assert text.splitlines()[-1].startswith("Run ")
        assert len(set(pipes(text))) == 1

    def test_a_block_is_cut_in_the_middle_and_keeps_its_end(self) -> None:
        block = Block(["<details>", ""], ["x" * 99] * 10, ["", "</details>"])
        lines = fit([block], 500)
        assert lines[:2] == ["<details>", ""]
        assert lines[-2:] == ["", "</details>"]
        # 4 lines of 100 leave 100 for the frame, which takes 80
        assert lines.count("x" * 99) == 4
        assert lines[6] == "\n6 more left out: a comment has no more room."
        assert sum(len(line) + 1 for line in lines) <= 500

    def test_a_block_without_room_is_left_out_and_said(self) -> None:
        assert fit([Block(["a"], []), Block(["b" * 500], ["c"]), Block(["d"], [])], 200) == [
            "a",
            "d",
            "1 part left out: a comment has no more room.",
            "",
        ]

    def test_with_room_nothing_is_cut(self) -> None:
        assert fit([Block(["a"], ["b", "c"], ["d"])], 200) == ["a", "b", "c", "d"]


class TestHostileNames:
    @given(st.text())
    def test_a_code_span_is_one_code_span(self, text: str) -> None:
        (inline,) = [token for token in MarkdownIt().parse(f"x {code(text)} y") if token.type == "inline"]
        kinds = [child.type for child in inline.children or ()]
        assert kinds == (["text"] if code(text) == "(blank)" else ["text", "code_inline", "text"])

    @given(st.lists(st.text(), min_size=1, max_size=5))
    def test_a_row_has_as_many_cells_as_were_given(self, texts: Sequence[str]) -> None:
        line = row([code(text) for text in texts])
        assert "\n" not in line
        assert line.count("|") == len(texts) + 1

    def test_stay_names(self, tmp_path: Path) -> None:
        run = hostile_run(tmp_path / "`run` @me <b>", NAMES, ["judged > 1e9", "turns > 9"])
        run.invalidate("\n".join(NAMES), NAMES[5])
        text = markdown(run)
        assert_harmless(text)
        assert code(NAMES[15]) in text

    @settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(hostile_names)
    def test_whatever_they_are_tables_stay_tables(self, names: Sequence[str]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            text = markdown(hostile_run(Path(folder) / "run", names, ["turns > 9"]))
        assert_harmless(text)
        for table in tables(text):
            assert len({len(cells) for cells in table}) == 1
        assert len(tables(text)) >= 1
        blocks = [block for block in text.split("\n\n") if block.lstrip("\n").startswith("|")]
        assert blocks
        for block in blocks:
            assert len(set(pipes(block))) == 1


class TestWriting:
    def test_writes_the_whole(self, run: Run, tmp_path: Path) -> None:
        write_markdown(run, tmp_path / "comment.md", ["success > 0"])
        assert (tmp_path / "comment.md").read_text(encoding="utf-8") == markdown(run, ["success > 0"])
        assert [path.name for path in tmp_path.iterdir()] == ["comment.md"]

    def test_a_missing_folder_is_said(self, run: Run, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="there is no folder"):
            write_markdown(run, tmp_path / "nowhere" / "comment.md")

    def test_a_stream_is_written_to_and_not_replaced(self, run: Run) -> None:
        write_markdown(run, "/dev/null")
        assert not Path("/dev/null").is_file()
