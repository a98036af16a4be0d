"""Turns by the rules `exchange/1` and `eva/1`: given this timeline, these are the turns."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import convoscope
from convoscope.conversation import (
    Clock,
    Conversation,
    Logged,
    Marker,
    Participant,
    Segment,
    StateEntered,
    Text,
    ToolCall,
    ToolResult,
    Utterance,
    turn_rule,
)
from convoscope.errors import UsageError
from support.eva_calls import GREETING, ends, log, reply, starts
from support.eva_calls import says as user_says
from support.generated import write_lines

PARTICIPANTS = (
    Participant("u", "user"),
    Participant("a", "assistant"),
    Participant("s", "system"),
    Participant("boss", "supervisor"),
)
SOUND = (Segment(1.0, 2.0),)


def says(speaker: str, text: str | None, segments: tuple[Segment, ...] = ()) -> Utterance:
    """An utterance; its place in the order is filled in by `conversation`."""
    return Utterance(seq=0, speaker=speaker, spoken=None if text is None else Text(text), segments=segments)


def conversation(*events: msgspec.Struct, turn_rule: str = "exchange/1") -> Conversation:
    return Conversation(
        id="c",
        participants=PARTICIPANTS,
        clocks=(Clock(id="audio", kind="audio"),),
        timeline=tuple(msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(events)),
        turn_rule=turn_rule,
    )


def cut(*events: msgspec.Struct) -> dict[int, list[int]]:
    """The seqs of each turn's events, by turn id."""
    return {turn.id: [event.seq for event in turn.events] for turn in conversation(*events).turns}


def test_exchange_is_the_rule_unless_another_is_named() -> None:
    assert Conversation(id="c").turn_rule == "exchange/1"


def test_the_agent_greets_first() -> None:
    assert cut(
        says("a", "Hello."),  # 0: before the user, so turn 0
        says("u", "Hi, a table for two."),  # 1: the user's first say, turn 1
        says("a", "When?"),  # 2: the reply
        says("u", "At eight."),  # 3: the user speaks after the agent has spoken, turn 2
        says("a", "Done."),  # 4
    ) == {0: [0], 1: [1, 2], 2: [3, 4]}


def test_the_user_speaks_first() -> None:
    # Nothing came before the user: there is no turn 0, and the user's n-th say is still turn n.
    assert cut(
        says("u", "A table for two."),  # turn 1
        says("a", "When?"),
        says("u", "At eight."),  # turn 2
    ) == {1: [0, 1], 2: [2]}


def test_two_user_messages_in_a_row_are_one_turn() -> None:
    assert cut(
        says("u", "A table for two."),  # turn 1
        says("u", "By the window."),  # nobody has replied yet: still turn 1
        says("a", "When?"),
        says("u", "At eight."),  # turn 2
    ) == {1: [0, 1, 2], 2: [3]}


def test_two_user_messages_in_a_row_are_one_turn_later_on_too() -> None:
    assert cut(
        says("a", "Hello."),  # turn 0
        says("u", "A table for two."),  # turn 1
        says("u", "By the window."),  # the greeting is no reply to the message before: still turn 1
        says("a", "When?"),
        says("u", "At eight."),  # turn 2
        says("u", "Or nine."),  # still turn 2
    ) == {0: [0], 1: [1, 2, 3], 2: [4, 5]}


def test_the_agent_speaking_twice_in_a_row_is_one_turn() -> None:
    assert cut(
        says("u", "A table for two."),  # turn 1
        says("a", "One moment."),
        says("a", "Yes, we have one."),  # the agent's speech advances nothing: still turn 1
        says("u", "Thanks."),  # turn 2, one only
    ) == {1: [0, 1, 2], 2: [3]}


def test_two_greetings_are_one_turn_0() -> None:
    assert cut(
        says("a", "Hello."),
        says("a", "Are you there?"),
        says("u", "Yes."),  # turn 1
    ) == {0: [0, 1], 1: [2]}


def test_tool_calls_belong_to_the_turn_that_they_happen_in() -> None:
    made = conversation(
        says("u", "A table for two."),  # turn 1
        ToolCall(seq=0, name="find"),  # between the say and its reply
        ToolResult(seq=0, name="find"),
        says("a", "There is one at eight."),
        ToolCall(seq=0, name="hold"),  # after the reply, before the next say: still turn 1
        says("u", "Take it."),  # turn 2
        ToolCall(seq=0, name="book"),
    )
    assert [[event.seq for event in turn.events] for turn in made.turns] == [[0, 1, 2, 3, 4], [5, 6]]
    assert [[call.name for call in turn.tool_calls] for turn in made.turns] == [["find", "hold"], ["book"]]


def test_a_tool_call_is_not_a_reply() -> None:
    assert cut(
        says("u", "A table for two."),  # turn 1
        ToolCall(seq=0, name="find"),
        says("u", "By the window."),  # the agent has done something and said nothing: still turn 1
    ) == {1: [0, 1, 2]}


def test_what_happens_before_the_user_speaks_is_turn_0() -> None:
    assert cut(
        StateEntered(seq=0, state="greet"),  # turn 0, though the agent never greets
        ToolCall(seq=0, name="who_is_calling"),
        says("u", "Hello?"),  # turn 1
        says("a", "Hello."),
    ) == {0: [0, 1], 1: [2, 3]}


def test_an_empty_false_start_advances_nothing() -> None:
    assert cut(
        says("a", "Hello."),  # turn 0
        says("u", ""),  # neither words nor sound: speech detection was wrong, still turn 0
        says("u", "A table for two."),  # turn 1
        says("a", "When?"),
        says("u", None),  # no text at all is as empty: still turn 1
        says("a", "Are you there?"),
        says("u", "At eight."),  # turn 2
    ) == {0: [0, 1], 1: [2, 3, 4, 5], 2: [6]}


def test_a_false_start_of_the_agent_is_no_reply() -> None:
    assert cut(
        says("u", "A table for two."),  # turn 1
        says("a", ""),  # the agent was cut off before a word was out: nobody replied
        says("u", "By the window."),  # so still turn 1
        says("a", None),
        says("u", "For eight."),  # still turn 1
        says("a", None, SOUND),  # the agent was heard, if not understood: that is a reply
        says("u", "Hello?"),  # turn 2
    ) == {1: [0, 1, 2, 3, 4, 5], 2: [6]}


def test_a_false_start_before_anything_else_is_turn_0() -> None:
    assert cut(
        says("u", ""),  # not a say of the user: turn 0
        says("u", "A table for two."),  # the first say is turn 1 all the same
    ) == {0: [0], 1: [1]}


def test_sound_without_words_is_a_say() -> None:
    assert cut(
        says("a", "Hello."),  # turn 0
        says("u", None, SOUND),  # somebody spoke and nothing was recognised: turn 1
        says("a", "Sorry?"),
        says("u", "", SOUND),  # the same with an empty transcript: turn 2
        says("a", "I can't hear you."),
    ) == {0: [0], 1: [1, 2], 2: [3, 4]}


def test_a_system_utterance_neither_opens_a_turn_nor_replies() -> None:
    assert cut(
        says("s", "You are a waiter."),  # before the user: turn 0
        says("u", "A table for two."),  # turn 1
        says("s", "The user is a regular."),  # not a reply
        says("u", "By the window."),  # so still turn 1
        says("a", "When?"),
        says("s", "It is seven now."),  # not a say of the user: still turn 1
        says("u", "At eight."),  # turn 2
    ) == {0: [0], 1: [1, 2, 3, 4, 5], 2: [6]}


def test_a_third_person_neither_opens_a_turn_nor_replies() -> None:
    assert cut(
        says("u", "Let me speak to the manager."),  # turn 1
        says("boss", "Yes?"),  # neither the user nor the agent
        says("u", "My soup is cold."),  # still turn 1
        says("a", "Sorry."),
        says("boss", "Sorry indeed."),  # still turn 1
    ) == {1: [0, 1, 2, 3, 4]}


def test_only_the_agent_speaks() -> None:
    # Nobody has said anything to it: all of it is turn 0.
    assert cut(says("a", "Hello."), says("a", "Are you there?"), Marker(seq=0, name="hung_up")) == {0: [0, 1, 2]}


def test_only_the_user_speaks() -> None:
    assert cut(says("u", "Hello?"), says("u", "Anybody?")) == {1: [0, 1]}


def test_an_empty_timeline_has_no_turns() -> None:
    assert conversation().turns == ()


ANYTHING = {
    "say": says("u", "Hi."),
    "sound": says("u", None, SOUND),
    "false start": says("u", ""),
    "reply": says("a", "Yes?"),
    "reply in sound": says("a", None, SOUND),
    "false start of a reply": says("a", ""),
    "system": says("s", "Be kind."),
    "third person": says("boss", "Well?"),
    "tool": ToolCall(seq=0, name="find"),
}


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(list(ANYTHING)), max_size=12))
def test_the_turn_of_an_event_is_the_number_of_says_so_far_that_came_first_or_after_a_reply(names: list[str]) -> None:
    expected = []
    opened = 0
    since_last_say: list[str] = []
    for name in names:
        if name in ("say", "sound"):
            if opened == 0 or {"reply", "reply in sound"} & set(since_last_say):
                opened += 1
            since_last_say = []
        else:
            since_last_say.append(name)
        expected.append(opened)
    turns = conversation(*(ANYTHING[name] for name in names)).turns
    assert [turn.id for turn in turns for _ in turn.events] == expected


def test_a_turn_knows_who_said_what() -> None:
    (turn,) = conversation(
        says("u", "A table for two."),
        says("u", None, SOUND),
        says("s", "The user is a regular."),
        says("u", "By the window."),
        says("a", "One moment."),
        says("a", ""),
        says("a", "When?"),
        says("u", ""),
    ).turns
    assert [utterance.seq for utterance in turn.user] == [0, 1, 3]  # 1 is sound without words
    assert [utterance.seq for utterance in turn.assistant] == [4, 6]
    assert [event.seq for event in turn.events] == [0, 1, 2, 3, 4, 5, 6, 7]  # 5 and 7, false starts, happened too
    # joined by one space, and by none where there are no words
    assert turn.user_text == "A table for two. By the window."
    assert turn.assistant_text == "One moment. When?"


def test_the_text_of_a_turn_is_the_text_that_counts() -> None:
    said = (
        Utterance(seq=0, speaker="u", intended=Text("KW714"), heard=Text("K W 7 1 4")),
        Utterance(seq=1, speaker="a", intended=Text("€24"), spoken=Text("twenty-four euros")),
    )
    made = Conversation(id="c", participants=PARTICIPANTS, timeline=said, pipeline="cascade")
    assert (made.turns[0].user_text, made.turns[0].assistant_text) == ("K W 7 1 4", "€24")


def test_an_unknown_rule_is_refused_with_the_rules_there_are() -> None:
    made = conversation(says("u", "Hi."), turn_rule="exchange/9")  # it can be read; only its turns cannot be derived
    with pytest.raises(ValueError, match=r"^turn rule 'exchange/9' is unknown; the turn rules are eva/1, exchange/1$"):
        _ = made.turns


class TestEva:
    """`eva/1`: an event belongs to the turn in which the first of its log records was met."""

    EVENTS = (
        says("a", "Hello."),
        says("u", "Are you open?"),
        Marker(seq=0, name="of which no record speaks"),
        says("a", "Until six."),
        says("u", "Good."),
    )
    RECORDS = (
        *((0, record) for record in GREETING),
        *((1, record) for record in user_says("Are you open?")),
        *((3, record) for record in reply("Until six.")),
        *((4, record) for record in user_says("Good.")),
    )

    def cut(self, *records: tuple[int, Logged], events: tuple[msgspec.Struct, ...] = EVENTS) -> dict[int, list[int]]:
        made = conversation(*events, turn_rule="eva/1")
        joined = log(*(msgspec.structs.replace(record, event=event) for event, record in records))
        made = msgspec.structs.replace(made, log=tuple(joined), pipeline="cascade")
        return {turn.id: [event.seq for event in turn.events] for turn in made.turns}

    def test_turns_are_those_of_the_records(self) -> None:
        assert self.cut(*self.RECORDS) == {0: [0], 1: [1, 2, 3], 2: [4]}

    def test_what_is_logged_late_stays_with_the_first_of_its_records(self) -> None:
        *before, heard = self.RECORDS[:-4]
        # The caller writes the agent's words down when the user has spoken again.
        assert heard[1].kind == "assistant_speech"
        assert self.cut(*before, *self.RECORDS[-4:], heard) == {0: [0], 1: [1, 2, 3], 2: [4]}

    def test_an_event_without_records_at_the_start_is_in_turn_0(self) -> None:
        events = (Marker(seq=0, name="ring"), *self.EVENTS)
        moved = ((event + 1, record) for event, record in self.RECORDS)
        assert self.cut(*moved, events=events) == {0: [0, 1], 1: [2, 3, 4], 2: [5]}

    def test_records_that_became_no_event_move_nothing(self) -> None:
        noise = ((-1, record) for record in (starts("user"), ends("user")))
        assert self.cut(*self.RECORDS, *noise) == {0: [0], 1: [1, 2, 3], 2: [4]}

    def test_without_logs_turns_are_exchanges(self) -> None:
        assert conversation(*self.EVENTS, turn_rule="eva/1").turns == conversation(*self.EVENTS).turns


class TestNames:
    @pytest.mark.parametrize(("name", "rule"), [("eva", "eva/1"), ("eva/1", "eva/1"), ("exchange", "exchange/1")])
    def test_a_rule_goes_by_its_name_with_or_without_the_version(self, name: str, rule: str) -> None:
        assert turn_rule(name) == rule

    @pytest.mark.parametrize("name", ["", "eva/2", "EVA", "sentence"])
    def test_any_other_is_refused(self, name: str) -> None:
        with pytest.raises(UsageError, match=f"^unknown turn rule '{name}'\n  the turn rules are exchange, eva$"):
            turn_rule(name)

    def test_before_anything_is_read_or_scored(self, tmp_path: Path) -> None:
        for refuses in (convoscope.read, convoscope.score):
            write_lines(tmp_path / "chats.jsonl", range(3))
            with pytest.raises(UsageError, match="unknown turn rule 'sentence'"):
                refuses(tmp_path / "chats.jsonl", turns="sentence")
        assert [path.name for path in tmp_path.iterdir()] == ["chats.jsonl"]

    def test_what_is_read_by_a_rule_names_it(self, tmp_path: Path) -> None:
        write_lines(tmp_path / "chats.jsonl", range(3))
        for name, rule in ((None, "exchange/1"), ("eva", "eva/1")):
            assert {one.turn_rule for one in convoscope.read(tmp_path / "chats.jsonl", turns=name)} == {rule}
