"""`convoscope show`: the worst of a run, and one conversation turn by turn, as a person reads them on a terminal."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import msgspec
import pytest

from convoscope.conversation import (
    Conversation,
    Item,
    Marker,
    Outcome,
    Retrieval,
    StateEntered,
    Text,
    Time,
    ToolCall,
    ToolResult,
    Utterance,
    from_json,
)
from convoscope.metrics import ITEM, LOWER, SHARE, Observation, measured, metric
from convoscope.report.screen import Screen
from convoscope.report.story import FOLDED, Mark, Story, StoryFact, StoryTurn, TimelineEntry, story
from convoscope.report.story_terminal import print_story
from convoscope.runs.conversations import KeptConversation, records
from convoscope.runs.make import make_run as score
from convoscope.runs.run import Run
from support.chats import UNPLACED, agent, call, chat, result, user
from support.command_line import Ended, convoscope
from support.figures import summary
from support.generated import chat as generated_chat
from support.graded import grade
from support.strategies import AWKWARD_TEXTS

CONTROLS = "\x00\x07\x08\x1b[31m\x1b]0;title\x07\x7f\x9b2J\r\u202e"
"""Bells, colours, a title for the window, a cleared screen, writing turned round."""


def spoke(speaker: str, at: float, **texts: str | Text) -> Utterance:
    given = {kind: text if isinstance(text, Text) else Text(text) for kind, text in texts.items()}
    return Utterance(seq=UNPLACED, speaker=speaker, time=Time(at), **given)


ORDER = chat(
    spoke("user", 10, spoken="Where is my order?"),
    StateEntered(seq=UNPLACED, state="ordering", time=Time(11)),
    ToolCall(seq=UNPLACED, name="find_order", arguments={"id": 7}, time=Time(12)),
    ToolResult(seq=UNPLACED, name="find_order", error="timeout", time=Time(14)),
    spoke(
        "agent",
        15.5,
        intended="It comes on Friday morning.",
        spoken="It comes on Friday",
        heard=Text("It comes on Sunday", confidence=0.42),
    ),
    Utterance(seq=UNPLACED, speaker="user", cut_off_by="agent"),
    Marker(seq=UNPLACED, name="hangs up", participant="user", value={"after": 3}),
    id="order",
    dimensions={"flow": "orders", "scenario_id": "s1"},
    items=(Item(id="unasked"),),
)


@metric("test.items", version=1, observes=ITEM, unit=SHARE, better=LOWER)
def items(conversation: Conversation) -> Iterator[Observation]:
    """How are the items?"""
    yield from (measured(item, 1, details={"why": "not asked"}) for item in conversation.items)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `runs/mine`: a conversation with everything in it, a slow one, and one where nothing counts."""
    folder = tmp_path_factory.mktemp("telling")
    conversations = [
        ORDER,
        chat(user("hi", 1), agent("so?", 9.0), call("find", "1"), result("find", "1", success=True), id="slow"),
        chat(user("hi"), id="bare"),
    ]
    metrics = ["timing", "tools.success", "turns", items]
    score(conversations, metrics=metrics, out=folder / "runs" / "mine", workers=1)
    return folder


@pytest.fixture(scope="module")
def order(work: Path) -> Ended:
    return convoscope("show", "runs/mine", "order", "--full", cwd=work)


class TestTheList:
    def test_is_of_the_worst_with_the_reason(self, work: Path) -> None:
        ended = convoscope("show", "runs/mine", cwd=work)
        assert (ended.code, ended.err) == (0, "")
        title, _, first, second, third, *rest = ended.out.splitlines()
        assert title == "runs/mine: the roughest 3 of 3 conversations"
        # order took 5.5 s to answer and its tool failed; slow took 8 s, and its tool came back:
        # each is behind the other in one thing, and the id decides
        assert first.split(maxsplit=3) == ["1", "order", "unknown", "tool calls that succeed 0.0 %, worse than 1 of 2"]
        assert second.split(maxsplit=3)[:3] == ["2", "slow", "unknown"]
        assert second.endswith("wait for a reply 8.00 s, worse than 1 of 2")
        assert third.split(maxsplit=3) == ["3", "bare", "unknown", "no metric with a direction was measured"]
        assert rest == ["one of them: convoscope show runs/mine order"]

    def test_can_be_shorter(self, work: Path) -> None:
        lines = convoscope("show", "runs/mine", "--limit", 1, cwd=work).out.splitlines()
        assert lines[0] == "runs/mine: the roughest 1 of 3 conversations"
        assert len(lines) == 4  # title, headings, one, and how to see it

    def test_of_nothing_is_refused(self, work: Path) -> None:
        ended = convoscope("show", "runs/mine", "--limit", 0, cwd=work)
        assert (ended.code, ended.err) == (2, "error: --limit must be at least 1, not 0\n")

    def test_for_a_program(self, work: Path) -> None:
        first, second, third = convoscope("show", "runs/mine", "--json", cwd=work).json
        because = {"metric": "tools.success", "value": 0.0, "share_better": 0.5, "measured": 2, "failure": ""}
        assert (first["conversation"], first["because"], first["error"]) == ("order", [because], "")
        assert second["because"][0]["metric"] == "timing.response_latency"
        ended = {"outcome": "unknown", "outcome_reason": ""}
        assert third == {"conversation": "bare", "behind": None, "error": "", "because": [], **ended}

    def test_a_run_that_is_none(self, work: Path) -> None:
        ended = convoscope("show", "runs/none", cwd=work)
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.startswith("error: there is no run at runs/none")


class TestOneConversation:
    def test_comes_with_its_place_and_why(self, order: Ended) -> None:
        assert (order.code, order.err) == (0, "")
        assert order.out.splitlines()[:3] == [
            "order: 1 of 3, roughest first",
            "flow orders  scenario_id s1",
            "tool calls that succeed 0.0 %, worse than 1 of 2",
        ]

    def test_says_what_each_metric_comes_to(self, order: Ended) -> None:
        lines = order.out.splitlines()
        values = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines if line.startswith(("timing.", "conv"))}
        assert values["conversation.turns"] == "1"
        assert values["timing.response_latency"].startswith("5.50 s")

    def test_scores_without_a_place_name_their_subject(self, order: Ended) -> None:
        (line,) = [line for line in order.out.splitlines() if line.startswith("item unasked")]
        assert line.split() == ["item", "unasked", "test.items", "100.0", "%", "why", "not", "asked"]

    def test_scores_without_a_value_are_counted_on_a_line_of_their_own(self) -> None:
        mark = Mark(metric="test.a", status="measured", text="3")
        silent = Mark(
            metric="7 scores", status=FOLDED, text="no judge (7)", evidence=(StoryFact("no judge", "test.b"),)
        )
        happening = TimelineEntry(seq=0, kind="marker", does="marker", title="x", marks=(mark, silent))
        told = StringIO()
        elsewhere = (msgspec.structs.replace(silent, subject="item a"),)
        print_story(
            Screen(told),
            Story(id="a", elsewhere=elsewhere, turns=(StoryTurn(turn=1, entries=(happening,)),)),
            "1 of 1, roughest first",
        )
        lines = [line.strip() for line in told.getvalue().splitlines()]
        assert lines[-2:] == ["test.a 3", "7 scores without a value: no judge (7)"]
        assert "item a  7 scores  without a value: no judge (7)" in lines

    def test_is_told_in_its_order(self, order: Ended) -> None:
        told = order.out[order.out.index("\nturn 1") :].splitlines()
        assert [line for line in told if line and not line.startswith(" " * 10)] == [
            next(line for line in told if line.startswith("turn 1  timing.response_latency 5.50 s")),
            "   0.0 s  user",
            "   1.0 s  enters state ordering",
            "   2.0 s  calls tool find_order",
            "   5.5 s  agent (assistant)",
            "       ·  user",
            "       ·  marker hangs up",
        ]

    def test_a_tool_is_told_with_its_answer(self, order: Ended) -> None:
        lines = [line.strip() for line in order.out.splitlines()]
        place = lines.index("2.0 s  calls tool find_order")
        assert lines[place + 1 : place + 4] == ['arguments: {"id":7}', "error: timeout", "took: 2.00 s"]
        assert lines[place + 4].startswith("tools.success 0.0 %")

    def test_missing_words_and_added_ones_are_marked(self, order: Ended) -> None:
        lines = [line.strip() for line in order.out.splitlines()]
        place = lines.index("5.5 s  agent (assistant)")
        assert lines[place + 1 : place + 4] == [
            "intended: It comes on Friday morning.",
            "spoken: It comes on Friday [-morning.-]",
            "heard, 42 % sure: It comes on [-Friday-] {+Sunday+}",
        ]

    def test_one_text_needs_no_label(self, order: Ended) -> None:
        assert "          Where is my order?\n" in order.out

    def test_silence_is_said(self, order: Ended) -> None:
        assert "          (no words in the log)\n          cut off by: agent\n" in order.out

    def test_the_clock_is_summed_up(self, order: Ended) -> None:
        assert "\ntimeline: 0:05.5\n" in order.out

    def test_an_unknown_id_gives_close_ones(self, work: Path) -> None:
        ended = convoscope("show", "runs/mine", "ordr", cwd=work)
        assert (ended.code, ended.out) == (2, "")
        error, hint = ended.err.splitlines()
        assert error == "error: runs/mine has no conversation 'ordr'"
        assert hint.startswith("  similar ids: order, ")

    def test_how_sure_a_recogniser_was_is_told_though_it_is_all_there_is(self, tmp_path: Path) -> None:
        talk = chat(spoke("user", 1, heard=Text("austin", confidence=0.42)), id="c")
        score([talk], metrics=["turns"], out=tmp_path / "run", workers=1)
        assert "42 % sure" in convoscope("show", tmp_path / "run", "c", "--full").out

    def test_long_values_are_cut_and_json_has_all(self, tmp_path: Path) -> None:
        talk = chat(user("x" * 1_000), Retrieval(seq=UNPLACED, query="q", chunks=("y" * 1_000,)), id="c")
        score([talk], metrics=["turns"], out=tmp_path / "run", workers=1)
        out = convoscope("show", tmp_path / "run", "c", "--full").out
        assert "x" * 1_000 in out
        assert f"          chunk 1: {'y' * 400}… (600 more characters)\n" in out
        assert "y" * 1_000 in convoscope("show", tmp_path / "run", "c", "--json").out

    def test_without_turns(self) -> None:
        # A run has no such conversation today; one that a later version has made may be opened by this one.
        talk = chat(user("hi"), id="c", turn_rule="of-the-future/9")
        told = printed(story(KeptConversation(0, talk, [], [], []), summary()))
        assert "\nwithout turns\n       ·  user\n          hi\n" in told

    def test_words_without_an_end_are_counted_where_silence_is_told(self) -> None:
        talk = chat(user("hi", 0, until=1), agent("so", 3, until=4), user("ah", 5), agent("oh", 7, until=8), id="c")
        told = printed(story(KeptConversation(0, talk, [], [], []), summary()))
        # nobody from 1 to 3; from 4 to 7 the user, who began at 5, may have spoken
        silence = "longest silence between words 2.0 s at 0:01.0; 1 utterance without an end"
        assert f"\ntimeline: 0:08.0; {silence}\n" in told


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which the best conversation is one where the integration broke, and what broke has two lines."""
    folder = tmp_path_factory.mktemp("broken")
    conversations = [
        chat(user("hi"), id="fine", extras={"quality": 1.0}),
        chat(user("hi"), id="gone", extras={"quality": 2.0}, outcome=Outcome(error="no line\nturn 7  forged")),
    ]
    score(conversations, metrics=[grade("quality")], out=folder / "run", workers=1)
    return folder


class TestWhereTheIntegrationBroke:
    def test_has_a_list_of_its_own(self, broken: Path) -> None:
        _, _, first, *rest = convoscope("show", "run", cwd=broken).out.splitlines()
        assert first.split(maxsplit=3) == ["1", "fine", "unknown", "quality 1.00 points, worse than 1 of 2"]
        assert rest[:2] == [
            "the integration broke, which says nothing about the agent:",
            "  gone: no line turn 7  forged",
        ]

    def test_is_told_to_a_program_with_all_its_letters(self, broken: Path) -> None:
        first, second = convoscope("show", "run", "--json", cwd=broken).json
        assert first["error"] == ""
        assert (second["conversation"], second["behind"], second["because"]) == ("gone", 0.0, [])
        assert second["error"] == "no line\nturn 7  forged"

    def test_is_why_it_stands_where_it_stands(self, broken: Path) -> None:
        lines = convoscope("show", "run", "gone", "--full", cwd=broken).out.splitlines()
        assert lines[0] == "gone: 2 of 2, roughest first"
        assert lines[1].startswith("the integration broke: no line")

    def test_is_named_on_the_terminal_after_scoring(self, broken: Path) -> None:
        lines = convoscope("runs", "show", "run", "--full", cwd=broken).out.splitlines()
        assert [line for line in lines if line.startswith("roughest: ")] == [
            "roughest: fine (quality 1.00 points, worse than 1 of 2)",
        ]
        assert "integration broke: gone (no line turn 7  forged)" in lines

    def test_forges_no_line_of_its_own(self, broken: Path) -> None:
        lines = convoscope("show", "run", "gone", "--full", cwd=broken).out.splitlines()
        assert not [line for line in lines if line.startswith("turn 7")]


class TestJson:
    def test_the_conversation_can_be_read_back(self, work: Path) -> None:
        told = convoscope("show", "runs/mine", "order", "--json", cwd=work).json
        kept = Run.open(work / "runs" / "mine").conversation("order")
        assert from_json(json.dumps(told["conversation"])) == kept
        assert msgspec.structs.replace(kept, source=ORDER.source) == ORDER

    def test_whatever_it_holds(self, tmp_path: Path) -> None:
        talk = chat(*(user(text) for text in AWKWARD_TEXTS), id="c", extras={"n": 10**30, "x": 5e-324})
        run = score([talk], metrics=["turns"], out=tmp_path / "run", workers=1)
        told = convoscope("show", tmp_path / "run", "c", "--json").json
        assert from_json(json.dumps(told["conversation"])) == run.conversation("c")

    def test_scores_and_what_they_come_to(self, work: Path) -> None:
        told = convoscope("show", "runs/mine", "order", "--json", cwd=work).json
        run = Run.open(work / "runs" / "mine")
        assert told["scores"] == json.loads(msgspec.json.encode(list(run.scores(conversation="order"))))
        reduced = {one["metric"]: (one["status"], one["value"]) for one in told["reduced"]}
        assert reduced["tools.success"] == ("measured", 0.0)
        assert reduced["test.items"] == ("measured", 1.0)

    def test_notes(self, tmp_path: Path) -> None:
        (tmp_path / "x.jsonl").write_text(json.dumps({**generated_chat(2), "unheard_of": 1}) + "\n")
        run = score(tmp_path / "x.jsonl", metrics=["turns"], out=tmp_path / "run", workers=1)
        told = convoscope("show", tmp_path / "run", "chat-00002", "--json").json
        assert told["notes"] == msgspec.to_builtins(run.notes("chat-00002"))
        assert any("unheard_of" in note["code"] for note in told["notes"])
        assert "unknown name: " in convoscope("show", tmp_path / "run", "chat-00002", "--full").out


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which every text wants to steer the terminal, and every name to begin a line of its own."""
    folder = tmp_path_factory.mktemp("hostile")
    forged = f"x\nturn 7  forged{CONTROLS}"
    talk = chat(
        spoke("user", 1, intended=f"in{CONTROLS}", spoken=f"sp{CONTROLS}", heard=f"he{CONTROLS}"),
        ToolCall(seq=UNPLACED, name=forged, arguments={forged: forged}, raw_arguments=forged),
        ToolResult(seq=UNPLACED, name="other", error=forged),
        Retrieval(seq=UNPLACED, query=forged, chunks=(forged,)),
        Marker(seq=UNPLACED, name=forged, value=forged, extras={forged: 1}),
        id=f"c{CONTROLS}",
        dimensions={"flow": forged},
        items=(Item(id=forged),),
    )
    score([talk, chat(user("hi"), id="d")], metrics=["tools", "turns", items], out=folder / "run", workers=1)
    return folder / "run"


def told_of(run: Path, number: int) -> Story:
    """Not by its id: a NUL cannot be given on a command line."""
    opened = Run.open(run)
    (record,) = records(opened, [number])
    return story(record, opened.summary)


def printed(told: Story) -> str:
    stream = StringIO()
    print_story(Screen(stream), told, "1 of 2, roughest first")
    return stream.getvalue()


def controls(text: str) -> set[str]:
    """Control characters but the end of a line; JSON may write formats and unassigned ones as they are."""
    return {one for one in text if unicodedata.category(one) == "Cc" and one != "\n"}


class TestHostileLogs:
    def test_the_list_does_not_steer_the_terminal(self, hostile: Path) -> None:
        ended = convoscope("show", hostile)
        assert ended.code == 0
        assert controls(ended.out) == set()
        assert "\u202e" not in ended.out

    def test_nor_does_a_conversation(self, hostile: Path) -> None:
        told = printed(told_of(hostile, 0))
        assert controls(told) == set()
        assert "\u202e" not in told
        assert "[-" in told

    def test_no_name_begins_a_turn_of_its_own(self, hostile: Path) -> None:
        assert not [line for line in printed(told_of(hostile, 0)).splitlines() if line.startswith("turn 7")]

    def test_each_conversation_is_one_line_of_the_list(self, tmp_path: Path) -> None:
        score([chat(user("hi"), id="a\nb")], metrics=["turns"], out=tmp_path / "run", workers=1)
        assert len(convoscope("show", tmp_path / "run").out.splitlines()) == 4

    def test_an_unknown_id_does_not_either(self, hostile: Path) -> None:
        ended = convoscope("show", hostile, "no\x1b[31m\x9b")
        assert ended.code == 2
        assert controls(ended.err) == set()

    def test_nor_does_json(self, tmp_path: Path) -> None:
        score([chat(user(CONTROLS), id="c")], metrics=["turns"], out=tmp_path / "run", workers=1)
        ended = convoscope("show", tmp_path / "run", "c", "--json")
        assert ended.json["conversation"]["timeline"][0]["spoken"]["text"] == CONTROLS
        assert controls(ended.out) == set()

    def test_an_id_with_blanks_can_be_copied_from_the_list(self, tmp_path: Path) -> None:
        score([chat(user("hi"), id="my chat")], metrics=["turns"], out=tmp_path / "run", workers=1)
        assert convoscope("show", tmp_path / "run").out.rstrip().endswith("'my chat'")
