"""Trials of one scenario: which tools change something, which calls are equal, and which trials agree."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from convoscope.conversation import Agent, Conversation, Outcome, Tool
from convoscope.metrics.registry import installed
from convoscope.runs.make import make_run as score
from convoscope.runs.ranking import ROUGHNESS, rank
from convoscope.runs.trials import Trial, changes_of, changes_state
from support.chats import agent, call, chat, result, user


class TestTools:
    @pytest.mark.parametrize(
        "name",
        [
            "book_flight",
            "cancelOrder",
            "update-reservation",
            "refund",
            "crm.create_ticket",
            "order_pizza",
            "send_email",
        ],
    )
    def test_that_change_something(self, name: str) -> None:
        assert changes_state(name)

    @pytest.mark.parametrize(
        "name",
        [
            "get_order",
            "searchFlights",
            "order_lookup",
            "order_status",
            "think",
            "calculate",
            "flight_search",
            "transfer_to_human_agent",  # an end, and no change
            "weather",
            "",
        ],
    )
    def test_that_do_not(self, name: str) -> None:
        assert not changes_state(name)

    def test_what_the_log_declares_wins(self) -> None:
        assert changes_state("find_sailings", "write")
        assert not changes_state("book_flight", "read")


def trial(number: int, *calls: tuple[str, dict[str, object]], scenario: str = "s", **facts: object) -> Conversation:
    events = [
        event
        for at, (name, arguments) in enumerate(calls)
        for event in (replace(call(name, str(at)), arguments=arguments), result(name, str(at), success=True))
    ]
    dimensions = {"scenario_id": scenario, "trial": str(number)}
    return chat(user("hi"), *events, agent("done"), id=f"{scenario}-{number}", dimensions=dimensions, **facts)


class TestChanges:
    def test_are_calls_with_their_arguments_in_no_order(self) -> None:
        first = trial(0, ("book", {"id": 1, "to": "Rome"}), ("find", {"x": 1}), ("pay", {"sum": 5}))
        second = trial(1, ("pay", {"sum": 5.0}), ("book", {"to": "ROME", "id": "1"}))
        assert changes_of(first) == changes_of(second) != ()

    def test_notes_in_own_words_are_no_difference(self) -> None:
        notes = "the user has asked for a refund because of rain", "because it rained she wants to have her money back"
        changes = [changes_of(trial(0, ("cancel", {"id": 1, "note": note}))) for note in notes]
        assert changes[0] == changes[1]

    def test_a_call_that_failed_changed_nothing(self) -> None:
        failed = chat(user("hi"), call("book", "1"), result("book", "1", success=False), agent("Sorry."))
        assert changes_of(failed) == ()

    def test_a_declared_tool(self) -> None:
        declared = Agent(tools=[Tool(name="find", kind="write")])
        assert changes_of(trial(0, ("find", {"a": 1}), agent=declared)) == ('find {"a":"1"}',)


class TestOrder:
    def test_the_minority_comes_first(self, tmp_path: Path) -> None:
        trials = [trial(at, ("book", {"flight": "B" if at == 2 else "A"})) for at in range(5)]
        alone = [trial(0, ("book", {"flight": "Z"}), scenario="t")]
        ranking = rank(score([*alone, *trials], out=tmp_path / "run", workers=1))
        # conversation 3 is the third trial: it differs from all 4 others, each of these from 1 of 4
        assert ranking.trials[3] == Trial(others=4, differ=4, writes=1)
        assert ranking.trials[1] == Trial(others=4, differ=1, writes=1)
        assert 0 not in ranking.trials
        assert ranking.order.tolist()[0] == 3
        assert ranking.order.tolist()[-1] == 0
        assert ranking.basis == "trials"

    def test_known_outcomes_lead(self, tmp_path: Path) -> None:
        trials = [
            trial(at, ("book", {"flight": "B" if at == 2 else "A"}), outcome=Outcome(completed=at != 1))
            for at in range(5)
        ]
        ranking = rank(score(trials, out=tmp_path / "run", workers=1))
        assert (ranking.order.tolist()[0], ranking.basis, ranking.trials) == (1, "outcome", {})

    def test_trials_that_agree_say_nothing(self, tmp_path: Path) -> None:
        ranking = rank(score([trial(at, ("book", {"a": 1})) for at in range(3)], out=tmp_path / "run", workers=1))
        assert ranking.basis == "roughness"


def test_roughness_is_made_of_metrics_with_a_direction() -> None:
    declared = installed().declared
    assert set(declared) >= ROUGHNESS
    assert all(declared[name].better != "neither" for name in ROUGHNESS)
