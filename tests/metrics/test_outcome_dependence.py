"""What is measured must not depend on how it went: else the figure is forced by who can be measured at all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from convoscope.analysis.perturbations import (
    OUTCOMES,
    answers,
    completed,
    database,
    ended_reason,
    expected_calls,
    final_status,
    tool_results,
)
from convoscope.analysis.vacuity import KNOWN_DEPENDENCE, outcome_dependence
from convoscope.conversation import (
    Conversation,
    Database,
    Expected,
    ExpectedToolCall,
    Flow,
    Item,
    Outcome,
    Scenario,
)
from convoscope.metrics import CONVERSATION, EVENT, HIGHER, Observation, measured, metric, unmeasured
from convoscope.metrics.declaration import RATIO, SHARE
from convoscope.metrics.registry import PUBLISHED, installed
from convoscope.scores.reducers import MEAN_OF_REPORTED
from convoscope.views.items import cases
from convoscope.views.languages import languages_of
from support.chats import agent, call, chat, result, user
from support.nonsense_corpus import corpus


def test_they_give_bounds_or_no_value_or_are_published_rules() -> None:
    """The least and the greatest value that the unmeasured allow: of shares, and of scores up to 1.

    A count has no greatest value: it is withheld where too few say anything.
    """
    by_key = {one.key: one for one in installed().resolve()}
    keys = [key for key, _ in KNOWN_DEPENDENCE if by_key[key].reduce.across != MEAN_OF_REPORTED]
    bare = [key for key in keys if by_key[key].unit not in (SHARE, RATIO)]
    assert [key for key in bare if by_key[key].variant not in PUBLISHED] == []


def test_the_outcomes_are_all_tried() -> None:
    tried = [name for name, vary in OUTCOMES.items() if any(vary(one) is not None for one in corpus())]
    assert tried == list(OUTCOMES)


@metric("test.only_failures", version=1, observes=EVENT, unit="points", better=HIGHER)
def only_failures(conversation: Conversation) -> Iterator[Observation]:
    """How bad was it?"""
    for tool_result in conversation.tool_results.values():
        yield measured(tool_result, 0) if tool_result.error else unmeasured(tool_result, "says_nothing")


@metric("test.both", version=1, observes=CONVERSATION, unit="points", better=HIGHER)
def both(conversation: Conversation) -> Observation:
    """Was it done?"""
    return measured(conversation, float(conversation.outcome.completed or False))


def test_a_metric_that_scores_failures_alone_is_found() -> None:
    talks = [chat(call("find", "1"), result("find", "1"), id=str(place)) for place in range(3)]
    (found,) = outcome_dependence(talks, [only_failures, both])
    # One result in each of three conversations: none has a value if it went well, all if it went wrong.
    assert (found.metric, found.outcome) == ("test.only_failures", "tool_results")
    assert (found.only_well, found.only_wrong, found.both) == (0, 3, 0)


class TestPairs:
    """Each outcome is told well and wrong, as the log tells it, and nothing is added."""

    def test_completed(self) -> None:
        assert completed(chat(outcome=Outcome())) is None
        pair = completed(chat(outcome=Outcome(completed=False)))
        assert pair is not None
        assert (pair.well.outcome.completed, pair.wrong.outcome.completed) == (True, False)

    def test_completed_of_items_that_tell(self) -> None:
        items = (Item(id="a", outcome=Outcome(completed=True)), Item(id="b", outcome=Outcome()), Item(id="c"))
        pair = completed(chat(items=items))
        assert pair is not None
        assert pair.wrong.outcome.completed is None
        assert [one.outcome and one.outcome.completed for one in pair.wrong.items] == [False, None, None]

    def test_final_status_by_the_contract(self) -> None:
        flow = Flow(name="f", final_status=("booked",))
        pair = final_status(chat(outcome=Outcome(final_status="lost"), flow=flow))
        assert pair is not None
        assert (pair.well.outcome.final_status, pair.wrong.outcome.final_status) == ("booked", "failed")
        assert final_status(chat()) is None

    def test_ended_reason(self) -> None:
        pair = ended_reason(chat(outcome=Outcome(ended_reason="hung up")))
        assert pair is not None
        assert (pair.well.outcome.ended_reason, pair.wrong.outcome.ended_reason) == ("goodbye", "inactivity_timeout")

    @pytest.mark.parametrize(("stated", "well"), [(True, True), (None, None), (False, None)])
    def test_where_a_log_tells_only_of_errors_success_says_nothing(
        self, stated: bool | None, well: bool | None
    ) -> None:
        pair = tool_results(chat(call("find", "1"), result("find", "1", success=stated)))
        assert pair is not None
        assert [one.success for one in pair.well.tool_results.values()] == [well]
        assert [(one.success, one.error) for one in pair.wrong.tool_results.values()] == [(False, "invalid argument")]

    def test_answers_are_the_truth_or_as_many_other_words(self) -> None:
        talk = chat(
            user("?"), agent("Rome"), items=(Item(id="a", answered=1, expected=Expected(ground_truth="Paris 2")),)
        )
        pair = answers(talk)
        assert pair is not None
        # Another word of five letters, and a digit 5 further on.
        assert [cases(one)[0].answer for one in pair] == ["Paris 2", "River 7"]

    def test_a_wrong_answer_is_english(self) -> None:
        truth = "The river ferry leaves QUAY 4 at 10:30, ask for Ann."
        talk = chat(user("?"), agent("I do not know."), expected=Expected(ground_truth=truth))
        pair = answers(talk)
        assert pair is not None
        # Small words stay; "river" cannot become itself; each digit is 5 further on.
        wrong = "The table river window COLD 9 at 65:85, two for Two."
        assert [cases(one)[0].answer for one in pair] == [truth, wrong]
        assert languages_of(pair.wrong).of_role("assistant") in ("", "en")

    @pytest.mark.parametrize("truth", ["yes", "to", "B", "7", "river", "a1b2-3c"])
    def test_a_wrong_answer_is_never_the_truth(self, truth: str) -> None:
        pair = answers(chat(user("?"), agent("Rome"), expected=Expected(ground_truth=truth)))
        assert pair is not None
        assert cases(pair.wrong)[0].answer != truth

    def test_the_last_answer_of_a_conversation(self) -> None:
        pair = answers(chat(agent("Hello"), user("?"), agent("Rome"), expected=Expected(ground_truth="Paris")))
        assert pair is not None
        assert [one.meant() for one in pair.well.utterances] == ["Hello", "?", "Paris"]

    def test_expected_calls(self) -> None:
        talk = chat(call("find"), expected=Expected(tool_calls=(ExpectedToolCall("book"),)))
        pair = expected_calls(talk)
        assert pair is not None
        assert [one.expected.tool_calls for one in pair] == [
            (ExpectedToolCall("find"),),
            (ExpectedToolCall("another_tool"),),
        ]
        assert expected_calls(replace(talk, timeline=())) is None

    def test_the_database_by_its_content(self) -> None:
        scenario = Scenario(after=Database({"a": 1}), expected=Database({"a": 2}))
        pair = database(chat(scenario=scenario))
        assert pair is not None
        assert [one.scenario.after for one in pair if one.scenario] == [
            Database({"a": 2}),
            Database({"a": 2, "a_change_that_nobody_expects": True}),
        ]

    def test_the_database_by_a_hash_alone(self) -> None:
        pair = database(chat(scenario=Scenario(after=Database(None, "x"), expected=Database(None, "y"))))
        assert pair is not None
        assert [one.scenario.after.hash for one in pair if one.scenario and one.scenario.after] == ["y", "0" * 64]
