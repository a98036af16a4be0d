"""conversation.*: the conversation as a whole."""

from convoscope.metrics.conversation import turns
from convoscope.scoring.evaluate import observe
from support.chats import agent, call, chat, result, told, user


class TestTurns:
    def test_turns_in_which_the_user_speaks(self) -> None:
        conversation = chat(user("hi"), agent("hello"), user("bye"), agent("bye"))
        assert told(observe(turns, conversation)) == [("conversation", 2.0)]  # hi, bye

    def test_the_greeting_is_not_one(self) -> None:
        conversation = chat(agent("welcome"), user("hi"), agent("hello"))
        assert told(observe(turns, conversation)) == [("conversation", 1.0)]  # turn 0 is the agent's

    def test_a_user_who_speaks_again_before_any_reply_stays_in_the_turn(self) -> None:
        conversation = chat(user("hi"), user("are you there?"), agent("yes"), user("good"))
        assert told(observe(turns, conversation)) == [("conversation", 2.0)]  # hi + are you there, good

    def test_a_turn_that_nobody_answered_is_one(self) -> None:
        assert told(observe(turns, chat(user("hi")))) == [("conversation", 1.0)]

    def test_tool_calls_cut_nothing(self) -> None:
        conversation = chat(user("hi"), call("look_up"), result("look_up"), agent("found"))
        assert told(observe(turns, conversation)) == [("conversation", 1.0)]

    def test_a_false_start_of_speech_detection_is_not_one(self) -> None:
        conversation = chat(user("hi"), agent("hello"), user(""), agent("are you there?"), user("yes"))
        assert told(observe(turns, conversation)) == [("conversation", 2.0)]  # hi, yes

    def test_sound_without_words_is_one(self) -> None:
        unheard = user("", sound=[(4.0, 5.0)])
        assert told(observe(turns, chat(user("hi"), agent("hello"), unheard))) == [("conversation", 2.0)]

    def test_where_only_the_agent_speaks_it_is_no_conversation(self) -> None:
        said = told(observe(turns, chat(agent("hello"), agent("anybody?"))))
        assert said == [("conversation", "not_applicable: no_user_speech")]

    def test_where_nobody_speaks_it_is_not_applicable(self) -> None:
        assert told(observe(turns, chat())) == [("conversation", "not_applicable: no_utterances")]
        assert told(observe(turns, chat(call("look_up")))) == [("conversation", "not_applicable: no_utterances")]
