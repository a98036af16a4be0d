"""What each state loses, by version: counts, how versions differ, and what a fix would bring."""

from __future__ import annotations

from pathlib import Path

import pytest

from browser.walks import make_run, versions, viewings
from convoscope.analysis.answer import look_at_lost
from convoscope.analysis.flows import losses as losses_module
from convoscope.analysis.flows.losses import ALL, FlowEnds, StateEntry, StateLosses, losses_of
from convoscope.analysis.flows.state_table import Rate, StateTable
from convoscope.conversation import Conversation
from convoscope.runs.make import make_run as score
from convoscope.runs.ranking import rank
from convoscope.runs.run import Run
from support.chats import agent, user


def losses(run: Run) -> StateLosses:
    source = StateTable([run])
    with source.ask() as connection:
        return losses_of(connection, source, look_at_lost(run), rank(run))


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> StateLosses:
    """Two versions through greet, ask_day and done: v1 gets stuck in 24 of 40, v2 in 4 of 40."""
    return losses(make_run(tmp_path_factory.mktemp("two") / "run", list(versions())))


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> StateLosses:
    return losses(make_run(tmp_path_factory.mktemp("one") / "run", list(viewings())))


class TestCounts:
    def test_of_each_version_and_of_all(self, two: StateLosses) -> None:
        key = ("booking", "ask_day")
        assert [two.lost(key, version) for version in (ALL, "v1", "v2")] == [(28, 0), (24, 0), (4, 0)]
        assert two.ends["booking", ALL] == FlowEnds(entered=80, reached=52, known=80)
        assert two.ends["booking", "v2"] == FlowEnds(entered=40, reached=36, known=40)
        assert two.versions("booking") == ["v1", "v2"]

    def test_stuck_and_handed_over_are_told_apart(self, one: StateLosses) -> None:
        assert one.lost(("apartment_viewing", "collect_details")) == (21, 4)
        # The 4 came to the end `escalated`, too, and were in two states before that.
        assert one.counted_before == {("apartment_viewing", "escalated"): 4, ("apartment_viewing", "greet"): 4}

    def test_a_conversation_comes_to_a_state_once(self, one: StateLosses) -> None:
        """6 calls went from confirm back to details and to confirm again: they first came to confirm from contact."""
        entries = one.entries["apartment_viewing", ALL]
        assert [entry for entry in entries if entry.target == "confirm"] == [
            StateEntry("collect_contact", "confirm", 36)
        ]
        assert [entry for entry in entries if entry.target == "collect_details"] == [
            StateEntry("greet", "collect_details", 63)
        ]
        returns = one.returns["apartment_viewing", ALL]
        assert StateEntry("confirm", "collect_details", 6) in returns

    def test_a_goal_without_an_end_that_says_so_is_reached_from_the_last_state(self, tmp_path: Path) -> None:
        from browser.walks import walk

        calls = [walk(f"c{n}", ("greet", "ask"), completed=n < 2, name="plain") for n in range(3)]
        found = losses(make_run(tmp_path / "run", calls))
        assert found.finishes["plain", ALL] == {"ask": 2}
        assert found.lost(("plain", "ask")) == (1, 0)

    def test_with_an_end_there_is_nothing_to_add(self, two: StateLosses) -> None:
        assert two.finishes == {}


class TestDifferences:
    def test_a_clear_one_holds_and_what_never_happens_is_not_compared(self, two: StateLosses) -> None:
        found = two.differences["booking", "ask_day", "lost"]
        assert found.difference == pytest.approx(4 / 40 - 24 / 40)
        assert found.low < found.difference < found.high < 0
        assert found.holds
        assert ("booking", "greet", "lost") not in two.differences

    def test_of_one_version_there_is_none(self, one: StateLosses) -> None:
        assert one.differences == {}


def table(**shares: tuple[float, int, float]) -> StateLosses:
    """States of one flow by name: the share lost, of how many, and the share of the rest that reaches the goal."""
    rates = {
        ("f", name): {
            "lost": Rate(value=lost, n=n, low=max(0.0, lost - 0.1), high=lost + 0.1),
            "arrives": Rate(value=arrives, n=n, low=arrives, high=arrives),
        }
        for name, (lost, n, arrives) in shares.items()
    }
    return StateLosses({ALL: rates}, {}, {}, {}, {}, {}, {}, {})


class TestWhatAFixWouldBring:
    def test_it_is_what_the_median_of_the_others_would_lose(self) -> None:
        # The others lose 0.1 and 0.2, so the median is 0.15: (0.4 - 0.15) * 100 more go on, and 0.8 of them arrive.
        found = table(a=(0.4, 100, 0.8), b=(0.1, 100, 1.0), c=(0.2, 100, 1.0)).gain(("f", "a"), ["a", "b", "c"])
        assert found is not None
        assert (found.more, found.usual) == (pytest.approx(20.0), pytest.approx(0.15))
        # 0.3 and 0.5 are the ends of the interval of its own loss.
        assert (found.low, found.high) == (pytest.approx(12.0), pytest.approx(28.0))

    def test_fewer_than_ten_lost_say_nothing(self) -> None:
        assert table(a=(0.09, 100, 1.0), b=(0.0, 100, 1.0)).gain(("f", "a"), ["a", "b"]) is None

    def test_one_that_loses_no_more_than_the_others_gains_nothing(self) -> None:
        assert table(a=(0.2, 100, 1.0), b=(0.3, 100, 1.0)).gain(("f", "a"), ["a", "b"]) is None

    def test_alone_it_has_nothing_to_be_like(self) -> None:
        assert table(a=(0.2, 100, 1.0)).gain(("f", "a"), ["a"]) is None


class TestObjections:
    @staticmethod
    def calls() -> list[Conversation]:
        from convoscope.conversation import Outcome, StateEntered
        from support.chats import chat

        events = [
            StateEntered(seq=0, state="ask"),
            user("Where is it?", 0),
            agent("On Monday.", 1),
            user("That is not what I asked.", 2),
            StateEntered(seq=0, state="book"),
            agent("Booked.", 3),
            user("Thank you.", 4),
        ]
        return [chat(*events, id=f"c{n}", dimensions={"flow": "f"}, outcome=Outcome(completed=True)) for n in range(2)]

    def test_each_turn_counts_for_the_state_that_it_is_in(self, tmp_path: Path) -> None:
        run = score(self.calls(), metrics=["state", "user.pushback"], out=tmp_path / "run", workers=1)
        rates = losses(run).rates[ALL]
        # In each of two chats: the first turn has nothing to object to, the second objects, the last one thanks.
        assert (rates["f", "ask"]["objections"].value, rates["f", "ask"]["objections"].n) == (1.0, 2)
        assert (rates["f", "book"]["objections"].value, rates["f", "book"]["objections"].n) == (0.0, 2)

    def test_of_very_many_conversations_they_are_not_counted(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = score(self.calls(), metrics=["state", "user.pushback"], out=tmp_path / "run", workers=1)
        monkeypatch.setattr(losses_module, "MAX_WALKED", 1)
        assert losses(run).measures("f") == ["lost", "stuck", "handed_over"]
