"""user.*: pushback and effort."""

import pytest

from convoscope.metrics.user import effort, pushback
from convoscope.scoring.evaluate import observe
from support.chats import agent, chat, told, user


class TestPushback:
    @pytest.mark.parametrize(
        "words",
        [
            "That's not what I asked.",
            "No, I want the other one.",
            "I already told you my name.",
            "Are you sure?",
            "This is wrong",
            "It doesn’t work.",
        ],
    )
    def test_an_objection(self, words: str) -> None:
        conversation = chat(user("hi"), agent("hello"), user(words), agent("ok"))
        assert told(observe(pushback, conversation)) == [
            ("turn 1", "not_applicable: nothing_to_object_to"),
            ("turn 2", 1.0),
        ]

    @pytest.mark.parametrize(
        "words", ["No, that's all.", "No thanks", "No, I don't.", "Yes, that is right.", "Two, please."]
    )
    def test_an_answer_is_none(self, words: str) -> None:
        assert told(observe(pushback, chat(user("hi"), agent("hello"), user(words)))) == [
            ("turn 1", "not_applicable: nothing_to_object_to"),
            ("turn 2", 0.0),
        ]

    def test_asking_for_the_same_again(self) -> None:
        # 6 words of the second are among the 7 of both together: 6 ÷ 7 is more than 0.6
        conversation = chat(
            user("I want to cancel my flight"), agent("Why?"), user("I just want to cancel my flight"), agent("ok")
        )
        assert [one for _, one in told(observe(pushback, conversation))][1:] == [1.0]

    def test_other_words_are_another_request(self) -> None:
        # of "i want to cancel my flight" and "i want to book a hotel" three of nine words are shared
        conversation = chat(
            user("I want to cancel my flight"), agent("Done."), user("I want to book a hotel"), agent("ok")
        )
        assert [one for _, one in told(observe(pushback, conversation))][1:] == [0.0]


class TestEffort:
    def test_counts_the_words_of_the_user(self) -> None:
        # hi, a table; a sign that is no word does not count
        conversation = chat(agent("hello"), user("hi"), agent("yes?"), user("a table"), agent("ok"), user("…"))
        assert [one for _, one in told(observe(effort, conversation))] == [3]
