"""Each kind of nonsense, made of small conversations and compared with what it should be by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings

from convoscope.analysis.perturbations import (
    MAKE_NONSENSE,
    by_timeline,
    empty_agent,
    equal_times,
    parrot,
    random_words,
    says_everything,
    shuffled_turns,
    skewed_clocks,
    swapped_roles,
)
from convoscope.conversation import (
    Conversation,
    Database,
    Expected,
    Item,
    Logged,
    Scenario,
    ToolCall,
    from_json,
    to_json,
)
from convoscope.metrics.perturbations import PERTURBATIONS
from convoscope.views.items import cases
from support.calls import bot, caller, voice_call
from support.chats import UNPLACED, agent, call, chat, result, user
from support.few_events import conversations as few_events
from support.strategies import conversations

KINDS = sorted(MAKE_NONSENSE)
TALK = chat(agent("Hello!"), user("Two tickets"), agent("For when?"), user("Tonight"), agent("Done."))


def words(conversation: Conversation) -> list[str]:
    return [f"{conversation.roles[one.speaker][0]}: {conversation.text(one)}" for one in conversation.utterances]


class TestWords:
    def test_a_parrot_repeats_the_user_and_greets_as_before(self) -> None:
        assert words(parrot(TALK)) == ["a: Hello!", "u: Two tickets", "a: Two tickets", "u: Tonight", "a: Tonight"]

    def test_who_says_everything_says_it_each_time(self) -> None:
        everything = "a: Hello! For when? Done."
        assert words(says_everything(TALK)) == [everything, "u: Two tickets", everything, "u: Tonight", everything]

    def test_shuffled_replies_are_all_there_and_none_in_its_place(self) -> None:
        assert words(shuffled_turns(TALK)) == ["a: For when?", "u: Two tickets", "a: Done.", "u: Tonight", "a: Hello!"]

    def test_random_words_are_as_long_and_the_users_stay(self) -> None:
        spoken = words(random_words(TALK))
        assert [len(one) for one in spoken] == [len(one) for one in words(TALK)]
        assert spoken[1::2] == ["u: Two tickets", "u: Tonight"]
        assert spoken[0] != "a: Hello!"
        assert spoken[0].endswith("!")
        assert spoken[0][3].isupper()

    def test_random_words_are_the_same_each_time(self) -> None:
        assert random_words(TALK) == random_words(TALK)

    def test_swapped_roles(self) -> None:
        assert words(swapped_roles(TALK)) == ["u: Hello!", "a: Two tickets", "u: For when?", "a: Tonight", "u: Done."]

    def test_all_three_texts_of_an_utterance_change(self) -> None:
        made = parrot(voice_call(caller("Hi", heard="high"), bot("Hello")))
        assert made.utterances[1].meant() == "high"  # what the agent received


class TestEmptyAgent:
    def test_words_calls_and_results_go(self) -> None:
        made = empty_agent(chat(user("Find it"), call("find", "1"), result("find", "1"), agent("Here.")))
        assert [type(event).__name__ for event in made.timeline] == ["Utterance"]

    def test_a_call_of_the_user_stays_with_its_result(self) -> None:
        own = ToolCall(seq=UNPLACED, name="press", call_id="u", caller="user")
        made = empty_agent(chat(own, result("press", "u"), call("find", "1"), result("find", "1")))
        assert [event.seq for event in made.timeline] == [0, 1]

    def test_the_database_stays_as_it_was(self) -> None:
        before, after = Database({"orders": 1}), Database({"orders": 2})
        made = empty_agent(chat(agent("Done."), scenario=Scenario(before=before, after=after)))
        assert made.scenario is not None
        assert made.scenario.after == before

    def test_the_answer_of_an_item_has_no_words(self) -> None:
        item = Item(id="a", asked=0, answered=2, events=(1,), expected=Expected(ground_truth="Paris"))
        made = empty_agent(chat(user("Capital?"), call("look"), agent("Paris"), items=(item,)))
        (case,) = cases(made)
        assert (case.answer, case.tool_calls) == ("", ())
        assert made.items[0].extras == {"tool_calls": []}  # it called nothing, and that is known

    def test_an_agent_that_did_nothing_cannot_do_less(self) -> None:
        silent = chat(user("Hello?"))
        assert empty_agent(silent) is silent


class TestTimes:
    def test_equal_times(self) -> None:
        made = equal_times(chat(user("Hi", 10.0), agent("Hello", 13.0, until=14.0, sound=[(3.0, 4.0)])))
        # The first moment of the wall clock is 10 s, of the sound 3 s.
        assert [(event.time.at, event.time.until) for event in made.timeline if event.time] == [(10, None), (10, 10)]
        assert [(one.start, one.end) for one in made.utterances[1].segments] == [(3.0, 3.0)]

    def test_a_skewed_clock_is_the_agents_and_loses_more_and_more(self) -> None:
        made = skewed_clocks(chat(user("a", 0.0), agent("b", 1.0), user("c", 2.0), agent("d", 3.0)))
        # 1 + 5, and 3 + 5 + 0.5
        assert [event.time.at for event in made.timeline if event.time] == [0.0, 6.0, 2.0, 8.5]

    @pytest.mark.parametrize("make", [equal_times, skewed_clocks])
    def test_without_times_nothing_changes(self, make: Callable[[Conversation], Conversation]) -> None:
        assert make(TALK) is TALK


def test_items_swap_question_and_answer_with_the_roles() -> None:
    made = swapped_roles(chat(user("Capital?"), agent("Paris"), items=(Item(id="a", asked=0, answered=1),)))
    assert [(case.question, case.answer) for case in cases(made)] == [("Paris", "Capital?")]


def test_what_was_extracted_from_an_answer_goes_with_it() -> None:
    item = Item(id="a", asked=0, answered=1, extras={"extracted_content": "{}", "context": "c"})
    made = parrot(chat(user("JSON!"), agent("{}"), items=(item,)))
    assert made.items[0].extras == {"context": "c"}


def test_by_timeline_keeps_how_the_call_ended() -> None:
    end = Logged(source="simulator", kind="connection_state", value={"details": {"reason": "goodbye"}})
    spoken = Logged(source="audit", kind="user", text="hi", event=0)
    made = by_timeline(voice_call(caller("hi"), log=(spoken, end), turn_rule="eva/1"))
    assert (made.log, made.turn_rule) == ((end,), "exchange/1")


def test_every_kind_has_words() -> None:
    assert sorted(PERTURBATIONS) == KINDS


@given(conversation=few_events(("context", "tool_calls", "extracted_content")) | conversations())
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_conversation_becomes_one_that_can_be_written_and_read(conversation: Conversation) -> None:
    before = to_json(conversation)
    for kind in KINDS:
        made = MAKE_NONSENSE[kind](by_timeline(conversation))
        assert from_json(to_json(made)) == made, kind
        assert MAKE_NONSENSE[kind](by_timeline(conversation)) == made, kind
        assert to_json(conversation) == before, kind
