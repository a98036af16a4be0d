"""The answer of a run: verdict, key figures, causes, worst first, groups; in words that hold and counts that agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import msgspec
import pytest

import convoscope
from convoscope.analysis.answer import Answer, Outcomes, make_answer, rank_texts
from convoscope.analysis.answer.verdict import make_verdict
from convoscope.conversation import Conversation, Outcome
from convoscope.metrics import CONVERSATION, HIGHER, Observation, TenPoints, measured, metric
from convoscope.report.run_terminal import print_answer
from convoscope.report.screen import Screen
from convoscope.runs.make import make_run
from convoscope.runs.ranking import worst
from convoscope.runs.run import Run
from convoscope.statistics.differences import holm
from support.chats import agent, call, chat, result, user

ASK = "What is your member number?"


def done(place: int, **facts: object) -> Conversation:
    return chat(user("Book it."), agent("Done."), id=f"done-{place}", outcome=Outcome(completed=True), **facts)


def stuck(place: int, **facts: object) -> Conversation:
    turns = [event for _ in range(3) for event in (user("Four."), agent(ASK))]
    return chat(*turns, id=f"stuck-{place}", outcome=Outcome(completed=False), **facts)


def failed(place: int) -> Conversation:
    tool = (call("book", "1"), result("book", "1", success=False))
    return chat(user("Book it."), *tool, agent("Sorry."), id=f"failed-{place}", outcome=Outcome(completed=False))


def unclear(place: int) -> Conversation:
    return chat(user("Hi."), agent("Hello."), id=f"unclear-{place}", outcome=Outcome(completed=False))


def answered(folder: Path, conversations: Sequence[Conversation], **options: object) -> tuple[Run, Answer]:
    run = make_run(conversations, out=folder / "run", workers=1, **options)  # type: ignore[arg-type]
    return run, make_answer(run)


@pytest.fixture(scope="module")
def forty(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Answer]:
    """30 done, 10 lost: 6 stuck, 3 failed, 1 of which nothing is known; and one whose integration broke."""
    lost = [*map(stuck, range(6)), *map(failed, range(3)), unclear(0)]
    broken = chat(user("Hi."), id="broken", outcome=Outcome(error="no line"))
    return answered(tmp_path_factory.mktemp("forty"), [*map(done, range(30)), *lost, broken])


class TestCounts:
    def test_the_outcomes_add_up_to_all(self, forty: tuple[Run, Answer]) -> None:
        _, answer = forty
        assert answer.outcomes == Outcomes(done=30, lost=10, handed_over=0, unknown=0, broken=1)
        assert sum(msgspec.structs.astuple(answer.outcomes)) == answer.conversations == 41

    def test_every_lost_conversation_stands_under_one_cause(self, forty: tuple[Run, Answer]) -> None:
        _, answer = forty
        causes = [*answer.causes, *answer.remaining]
        assert sum(one.lost for one in causes) == answer.outcomes.all_lost
        numbers = [number for one in causes for number in one.numbers]
        assert len(numbers) == len(set(numbers)) == 10
        assert all(one.lost == len(one.numbers) for one in causes)

    def test_most_first_and_few_apart(self, forty: tuple[Run, Answer]) -> None:
        _, answer = forty
        assert [(one.rule, one.lost) for one in answer.causes] == [("asked_again", 6)]
        assert [(one.rule, one.lost) for one in answer.remaining] == [("tool_failed", 3), ("none", 1)]

    def test_a_broken_integration_is_no_cause(self, forty: tuple[Run, Answer]) -> None:
        _, answer = forty
        assert answer.broken == "1 chat broke off with an error that says nothing about the agent: no line"

    def test_who_is_put_through_is_handed_over(self, tmp_path: Path) -> None:
        over = chat(user("A human?"), call("transfer_to_agent"), id="over", outcome=Outcome(completed=False))
        _, answer = answered(tmp_path, [over, done(0)])
        assert answer.outcomes == Outcomes(done=1, handed_over=1)


class TestVerdict:
    def test_counts_with_their_total_and_where_most_is_lost(self, forty: tuple[Run, Answer]) -> None:
        _, answer = forty
        assert [one.text for one in answer.verdict] == [
            "30 of 40 chats reach their goal (75 %).",
            "6 of the 10 lost chats: the agent asks for the same thing again and again.",  # 60 %, and 5 or more
        ]

    def test_few_are_told_as_they_are(self, tmp_path: Path) -> None:
        _, answer = answered(tmp_path, [done(0), done(1), unclear(0)])
        assert answer.headline == "2 of 3 chats reach their goal (67 %)."

    def test_nothing_lost(self, tmp_path: Path) -> None:
        _, answer = answered(tmp_path, [done(0), done(1)])
        assert answer.headline == "No chat was lost."
        assert answer.causes == answer.remaining == ()

    def test_nobody_says_how_they_ended(self, tmp_path: Path) -> None:
        _, answer = answered(tmp_path, [chat(user("Hi."), agent("Hello."))])
        assert answer.headline == "These logs do not say how the chats ended."

    @pytest.mark.parametrize(
        ("target", "words", "tone"),
        [
            # 30 of 40: Wilson from 59.8 to 85.8 %
            ("outcome.success >= 90%", ", below the target of 90.0 %.", "bad"),
            ("outcome.success >= 50%", ", above the target of 50.0 %.", "good"),
            ("outcome.success >= 80%", ", too close to the target of 80.0 % to call.", "plain"),
        ],
    )
    def test_against_a_target(self, tmp_path: Path, target: str, words: str, tone: str) -> None:
        lost = [*map(stuck, range(9)), unclear(0)]
        _, answer = answered(tmp_path, [*map(done, range(30)), *lost], targets=[target])
        assert (answer.verdict[0].rest, answer.verdict[0].tone) == (words, tone)

    def test_almost_all_is_not_all(self) -> None:
        (clause,) = make_verdict([], "call", Outcomes(done=999, lost=1), [], Counter())
        assert clause.lead == "999 of 1,000 calls reach their goal (>99 %)"


class TestFigures:
    def test_by_importance_and_never_by_the_alphabet(self, forty: tuple[Run, Answer]) -> None:
        run, answer = forty
        for is_bad in (True, False):
            chosen = [one for one in answer.figures if one.bad == is_bad]
            importance = [run.summary.by_key[one.name.split(" ")[0]].importance for one in chosen]
            assert importance == sorted(importance, reverse=True)
        assert chosen[0].label == "chats that reach their goal"
        assert len(answer.figures) <= 8

    def test_the_bad_ones_are_first(self, forty: tuple[Run, Answer]) -> None:
        _, answer = forty
        are_good = [not one.bad for one in answer.figures]
        assert are_good == sorted(are_good)
        assert set(are_good) == {True, False}

    def test_what_is_asked_for_has_a_line_whatever_its_direction(self, tmp_path: Path) -> None:
        """Three turns are neither good nor bad: `--metrics turns` prints them. No two empty lines follow each other."""
        run, answer = answered(tmp_path, [stuck(0)], metrics="conversation.turns")
        assert [(one.name, one.value, one.bad) for one in answer.figures] == [("conversation.turns", 3.0, False)]
        printed = StringIO()
        print_answer(Screen(printed), answer, run)
        assert "  turns of the user  3  ·  n 1\n" in printed.getvalue()
        assert "\n\n\n" not in printed.getvalue()

    def test_a_bad_one_that_matters_little_takes_a_free_line(self, tmp_path: Path) -> None:
        """2.5 of 5, from 1 up, is 3.75 of ten points, and 7 pass: it is the first line, and why the chat is rough."""

        @metric(
            "audio.rated",
            version=1,
            observes=CONVERSATION,
            unit="of 5",
            better=HIGHER,
            ten=TenPoints(1.0, 5.0),
            importance=2,
        )
        def rated(conversation: Conversation) -> Observation:
            """How good is it?"""
            return measured(conversation, 2.5)

        talk = chat(user("Hi."), agent("Hello."), id="a")
        run, answer = answered(tmp_path, [talk], metrics=[rated, "agent.repetition", "conversation.turns"])
        assert [one.name for one in answer.figures if one.bad] == [answer.figures[0].name] == ["audio.rated"]
        assert (answer.more_bad, answer.more_bad_figures) == ("", ())
        assert rank_texts(run, worst(run)) == ["rated 2.50 of 5, below its mark of 3.80 of 5"]

    def test_few_bad_values_have_a_line(self, forty: tuple[Run, Answer]) -> None:
        _, answer = forty
        # The three tool calls of the run all failed.
        (tools,) = [one for one in answer.figures if one.name == "tools.success"]
        assert (tools.value, tools.n, tools.bad, tools.remark) == (0.0, 3, True, "bad")

    def test_few_values_fill_the_lines_that_are_left(self, tmp_path: Path) -> None:
        """Two of five tool calls failed, in a run of 55 other chats without a flaw: 60 % is not bad, and has a line."""
        tools = [
            chat(
                user("Book it."),
                call("book", "1"),
                result("book", "1", success=place > 1),
                agent("Done."),
                id=f"{place}",
            )
            for place in range(5)
        ]
        _, answer = answered(tmp_path, [*tools, *map(done, range(55))])
        (shown,) = [one for one in answer.figures if one.name == "tools.success"]
        assert (shown.value, shown.n, shown.bad) == (0.6, 5, False)
        assert len(answer.figures) <= 8

    def test_in_a_small_run_they_are_all_there_is(self, tmp_path: Path) -> None:
        _, answer = answered(tmp_path, [done(0), unclear(0)])
        assert answer.figures[0].n == 2

    def test_at_most_two_good_ones_of_a_family(self, forty: tuple[Run, Answer]) -> None:
        _, answer = forty
        families = [one.name.partition(".")[0] for one in answer.figures if not one.bad]
        assert all(families.count(family) <= 2 for family in families)

    def test_what_has_a_target_is_there(self, tmp_path: Path) -> None:
        conversations = [*map(done, range(30)), *map(stuck, range(10))]
        _, answer = answered(tmp_path, conversations, targets=["conversation.turns <= 1"])
        figure = next(one for one in answer.figures if one.name == "conversation.turns")
        # 30 of 1 turn and 10 of 3: 1.5, from 1.2 on.
        assert (figure.value, figure.target, figure.verdict) == (1.5, "≤ 1", "missed")


class TestGroups:
    def test_holm(self) -> None:
        # 0.01 × 3 = 0.03 holds, 0.02 × 2 = 0.04 holds, 0.04 × 1 = 0.04 holds; 0.03 × 2 = 0.06 does not.
        assert holm([0.04, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])  # 3 × 0.01, 2 × 0.02, 1 × 0.04
        assert holm([0.03, 0.01, 0.04]) == pytest.approx([0.06, 0.03, 0.06])  # 2 × 0.03, which is above 0.04
        assert holm([]) == []

    def test_versions_that_differ(self, tmp_path: Path) -> None:
        """v1 is done 38 of 40 times, v2 10 of 40."""
        conversations = [
            msgspec.structs.replace(one, id=f"{version}-{place}", dimensions={"version": version})
            for version, good in (("v1", 38), ("v2", 10))
            for place in range(40)
            for one in [done(place) if place < good else unclear(place)]
        ]
        _, answer = answered(tmp_path, conversations, by=[["version"]])
        assert (
            answer.verdict[-1].text
            == "v2 completes fewer chats than v1: chats that reach their goal 25.0 %, was 95.0 %."
        )
        assert [one.by for one in answer.groups] == [{"version": "v2"}]

    def test_versions_that_do_not(self, tmp_path: Path) -> None:
        conversations = [
            msgspec.structs.replace(one, id=f"{place}", dimensions={"version": f"v{place % 2}"})
            for place in range(80)
            for one in [done(place) if place % 4 < 2 else unclear(place)]
        ]
        _, answer = answered(tmp_path, conversations, by=[["version"]])
        # 20 of 40 each: nothing tells them apart, and nothing tells that they are alike.
        assert answer.verdict[-1].text == "No clear difference yet in whether v1 completes more chats than v0."
        assert len(answer.verdict) == 2
        assert answer.groups == ()
        assert answer.alike == ""


class TestTerminal:
    def test_about_twenty_lines_of_eighty_columns(
        self, forty: tuple[Run, Answer], capsys: pytest.CaptureFixture[str]
    ) -> None:
        run, answer = forty
        print_answer(Screen(), answer, run)
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) <= 22
        long = [line for line in lines if len(line) > 80]
        assert all(line.startswith(("page  ", "next  ")) for line in long)  # paths are not cut
        assert lines[0] == "30 of 40 chats reach their goal (75 %)."
        assert "6 lost  the agent asks for the same thing again and again" in "\n".join(lines)

    def test_a_hostile_name_is_one_harmless_line(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        hostile = msgspec.structs.replace(failed(0), id="evil\x1b[31m\nid")
        run, answer = answered(tmp_path, [hostile, done(0)])
        print_answer(Screen(), answer, run)
        assert "\x1b" not in capsys.readouterr().out

    def test_every_sentence_is_short(self, forty: tuple[Run, Answer]) -> None:
        _, answer = forty
        sentences = [one.text for one in answer.verdict] + [one.sentence for one in answer.causes]
        assert all(len(one) <= 140 for one in sentences)


def test_it_is_data(forty: tuple[Run, Answer]) -> None:
    _, answer = forty
    assert msgspec.json.decode(msgspec.json.encode(answer), type=Answer) == answer
    assert convoscope.make_answer is make_answer


class TestHint:
    def test_a_field_that_is_a_verdict_is_named(self, tmp_path: Path) -> None:
        talks = [chat(user("Hi."), agent("Hello."), id=f"{at}", extras={"resolved": at > 1}) for at in range(3)]
        _, answer = answered(tmp_path, talks)
        assert answer.hint == "`resolved` has false in 2 and true in 1 of 3 chats: --label resolved"

    def test_a_field_that_is_none_is_not(self, tmp_path: Path) -> None:
        talks = [chat(user("Hi."), agent("Hello."), id=f"{at}", extras={"team": "blue"}) for at in range(3)]
        assert answered(tmp_path, talks)[1].hint == ""

    def test_what_is_the_same_of_all_is_no_verdict(self, tmp_path: Path) -> None:
        talks = [chat(user("Hi."), agent("Hello."), id=f"{at}", extras={"synthetic": True}) for at in range(3)]
        assert answered(tmp_path, talks)[1].hint == ""

    def test_nothing_is_asked_for_where_the_end_is_known(self, forty: tuple[Run, Answer]) -> None:
        assert forty[1].hint == ""


def test_targets_that_are_given_later_count(forty: tuple[Run, Answer]) -> None:
    run, answer = forty
    assert answer.figures[0].target == ""
    later = make_answer(run, ["outcome.success >= 90%"])
    assert (later.figures[0].target, later.figures[0].verdict) == ("≥ 90.0 %", "missed")
