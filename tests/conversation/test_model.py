"""What the model refuses, and what it derives from the facts: texts, times, the results of tool calls."""

from typing import Any

import msgspec
import pytest

from convoscope.conversation import (
    Action,
    Annotations,
    AnyEvent,
    Clock,
    Conversation,
    Entity,
    Frame,
    Item,
    Marker,
    Participant,
    Risk,
    Segment,
    Text,
    Time,
    ToolCall,
    ToolResult,
    Topic,
    Utterance,
    from_builtins,
)

USER = Participant("u", "user")
AGENT = Participant("a", "assistant")
WALL = Clock(id="wall", kind="wall")


def conversation(*timeline: AnyEvent, **fields: Any) -> Conversation:
    return Conversation(**{"id": "c", "participants": (USER, AGENT), "timeline": timeline} | fields)


def refuses(message: str) -> Any:
    """The whole message, word for word."""
    return pytest.raises(ValueError, match=f"^{message}$")


# What is refused


def test_a_conversation_needs_an_id() -> None:
    with refuses("a conversation needs an id"):
        Conversation(id="")


def test_two_participants_may_not_share_an_id() -> None:
    with refuses("two participants share an id"):
        Conversation(id="c", participants=(USER, Participant("u", "assistant")))


def test_two_participants_may_share_a_role() -> None:
    assert Conversation(id="c", participants=(USER, Participant("v", "user"))).roles == {"u": "user", "v": "user"}


def test_the_timeline_must_ascend() -> None:
    with refuses("the timeline must ascend: seq 3 follows 7"):
        conversation(Marker(seq=7, name="x"), Marker(seq=3, name="y"))


def test_two_events_may_not_share_a_seq() -> None:
    with refuses("the timeline must ascend: seq 7 follows 7"):
        conversation(Marker(seq=7, name="x"), Marker(seq=7, name="y"))


def test_a_seq_is_not_negative() -> None:
    with refuses("the timeline must ascend: seq -1 follows -1"):
        conversation(Marker(seq=-1, name="x"))


def test_seqs_may_start_at_0_and_have_gaps() -> None:
    made = conversation(Marker(seq=0, name="x"), Marker(seq=5, name="y"), Marker(seq=2**40, name="z"))
    assert [event.seq for event in made.timeline] == [0, 5, 2**40]


def test_the_clock_of_an_event_must_be_declared() -> None:
    with refuses("event 4 uses clock 'audio', which is not declared"):
        conversation(Marker(seq=4, name="x", time=Time(at=1.0, clock="audio")), clocks=(WALL,))


def test_a_time_without_a_clock_means_the_wall_clock_which_must_be_declared_too() -> None:
    with refuses("event 4 uses clock 'wall', which is not declared"):
        conversation(Marker(seq=4, name="x", time=Time(at=1.0)))
    assert conversation(Marker(seq=4, name="x", time=Time(at=1.0)), clocks=(WALL,)).timeline[0].time == Time(1.0)


def test_the_clock_of_a_segment_must_be_declared() -> None:
    with refuses("event 4 uses clock 'audio', which is not declared"):
        conversation(Utterance(seq=4, speaker="u", segments=(Segment(0.0, 1.0),)), clocks=(WALL,))


def test_each_segment_is_checked() -> None:
    segments = (Segment(0.0, 1.0, "wall"), Segment(1.0, 2.0, "left"))
    with refuses("event 4 uses clock 'left', which is not declared"):
        conversation(Utterance(seq=4, speaker="u", segments=segments), clocks=(WALL,))


def test_a_speaker_must_take_part() -> None:
    with refuses("event 4 is spoken by 'x', who is not a participant"):
        conversation(Utterance(seq=4, speaker="x"))


def test_whoever_cuts_off_must_take_part() -> None:
    with refuses("event 4 is cut off by 'x', who is not a participant"):
        conversation(Utterance(seq=4, speaker="u", cut_off_by="x"))
    assert conversation(Utterance(seq=4, speaker="u", cut_off_by="a")).utterances[0].cut_off_by == "a"


def test_a_frame_must_point_at_an_event() -> None:
    with refuses("frame points at event 5, which is not in the timeline"):
        conversation(Utterance(seq=4, speaker="u"), frames=(Frame(seq=5, origin="gold"),))
    assert conversation(Utterance(seq=4, speaker="u"), frames=(Frame(seq=4, origin="gold"),)).frames[0].seq == 4


def test_an_item_must_be_asked_in_an_event() -> None:
    with refuses("item 'q1' points at event 5, which is not in the timeline"):
        conversation(Utterance(seq=4, speaker="u"), items=(Item(id="q1", asked=5),))


def test_an_item_must_be_answered_in_an_event() -> None:
    with refuses("item 'q1' points at event 5, which is not in the timeline"):
        conversation(Utterance(seq=4, speaker="u"), items=(Item(id="q1", asked=4, answered=5),))


def test_an_item_may_leave_open_where_it_was_asked_and_answered() -> None:
    assert conversation(items=(Item(id="q1"),)).items[0].asked is None


@pytest.mark.parametrize(
    "family",
    [
        {"topics": (Topic(label="billing", events=(4, 5)),)},
        {"risks": (Risk(type="churn_risk", events=(4, 5)),)},
        {"actions": (Action(description="refund", events=(4, 5)),)},
        {"entities": (Entity(type="amount", text="ten", events=(4, 5)),)},
    ],
    ids=lambda family: next(iter(family)),
)
def test_findings_must_rest_on_events(family: dict[str, Any]) -> None:
    with refuses("annotation points at event 5, which is not in the timeline"):
        conversation(Utterance(seq=4, speaker="u"), annotations=(Annotations(origin="gold", **family),))


def test_every_annotator_is_checked() -> None:
    good = Annotations(origin="gold", risks=(Risk(type="churn_risk", events=(4,)),))
    bad = Annotations(origin="predicted", risks=(Risk(type="churn_risk", events=(0,)),))
    with refuses("annotation points at event 0, which is not in the timeline"):
        conversation(Utterance(seq=4, speaker="u"), annotations=(good, bad))


def test_the_span_of_a_topic_must_lie_on_events() -> None:
    topics = (Topic(label="billing", span=(4, 5)),)
    with pytest.raises(ValueError, match="points at event 5, which is not in the timeline"):
        conversation(Utterance(seq=4, speaker="u"), annotations=(Annotations(origin="gold", topics=topics),))


def test_two_clocks_may_not_share_an_id() -> None:
    with pytest.raises(ValueError, match="two clocks share an id"):
        Conversation(id="c", clocks=(Clock(id="wall", kind="wall", offset=0.0), Clock(id="wall", kind="audio")))


def test_what_the_model_refuses_is_refused_from_json_too() -> None:
    timeline = [{"type": "utterance", "seq": 4, "speaker": "x"}]
    with pytest.raises(msgspec.ValidationError, match="event 4 is spoken by 'x', who is not a participant"):
        from_builtins({"schema": "convoscope.conversation/1", "id": "c", "timeline": timeline})


# What does not change


def test_a_conversation_and_its_parts_are_frozen() -> None:
    made = conversation(Utterance(seq=0, speaker="u", heard=Text("hi"), time=Time(0.0)), clocks=(WALL,))
    said = made.utterances[0]
    assert said.heard is not None
    for part, name in ((made, "id"), (made, "new"), (said, "speaker"), (said.heard, "text"), (said.time, "at")):
        with pytest.raises(AttributeError):
            setattr(part, name, "other")


def test_deriving_does_not_change_what_a_conversation_equals() -> None:
    made = conversation(Utterance(seq=0, speaker="u"))
    assert made.turns
    assert made == conversation(Utterance(seq=0, speaker="u"))


def test_a_changed_copy_derives_anew() -> None:
    made = conversation(Utterance(seq=0, speaker="u", intended=Text("KW714"), heard=Text("K W 7 1 4")))
    assert made.turns[0].user_text == "K W 7 1 4"
    assert msgspec.structs.replace(made, pipeline="s2s").turns[0].user_text == "KW714"


def test_conversations_do_not_share_their_extras() -> None:
    one, other = Conversation(id="1"), Conversation(id="2")
    one.extras["note"] = "mine"
    assert other.extras == {}


# The words that count

INTENDED, SPOKEN, HEARD = Text("intended"), Text("spoken"), Text("heard")
NOTHING = Text("")


def words(pipeline: str | None, role: str, **texts: Text) -> str:
    said = Utterance(seq=0, speaker="p", **texts)
    made = Conversation(id="c", pipeline=pipeline, participants=(Participant("p", role),), timeline=(said,))
    return made.text(said)


AS_RECEIVED = ("heard", "spoken", "intended")
AS_MEANT = ("intended", "spoken", "heard")


@pytest.mark.parametrize(
    ("pipeline", "role", "order"),
    [
        ("cascade", "user", AS_RECEIVED),  # the agent got what the recogniser wrote
        ("text", "user", AS_RECEIVED),
        (None, "user", AS_RECEIVED),  # nobody says what it is: like a cascade
        ("audio_llm", "user", AS_MEANT),  # the model heard the sound itself
        ("s2s", "user", AS_MEANT),
        ("cascade", "assistant", AS_MEANT),
        ("text", "assistant", AS_MEANT),
        (None, "assistant", AS_MEANT),
        ("audio_llm", "assistant", AS_MEANT),
        ("s2s", "assistant", AS_MEANT),
        ("cascade", "system", AS_MEANT),
        ("cascade", "supervisor", AS_MEANT),
    ],
)
def test_the_words_that_count(pipeline: str | None, role: str, order: tuple[str, str, str]) -> None:
    first, second, third = order
    texts = {"intended": INTENDED, "spoken": SPOKEN, "heard": HEARD}
    assert words(pipeline, role, **texts) == first
    assert words(pipeline, role, **{second: texts[second], third: texts[third]}) == second
    assert words(pipeline, role, **{third: texts[third]}) == third
    assert words(pipeline, role) == ""


def test_an_empty_text_is_a_text() -> None:
    # The recogniser made nothing of it: that is what the agent received, whatever was meant.
    assert words("cascade", "user", intended=INTENDED, spoken=SPOKEN, heard=NOTHING) == ""
    assert words("s2s", "assistant", intended=NOTHING, spoken=SPOKEN) == ""


@pytest.mark.parametrize(
    ("pipeline", "native"), [("audio_llm", True), ("s2s", True), ("cascade", False), ("text", False), (None, False)]
)
def test_audio_native_pipelines(pipeline: str | None, native: bool) -> None:
    assert Conversation(id="c", pipeline=pipeline).is_audio_native is native


# Times

CLOCKS = (
    Clock(id="wall", kind="wall", offset=-1000.0),  # 1000 by the wall is 0 in common time
    Clock(id="audio", kind="audio", offset=0.5),  # the recording started half a second in
    Clock(id="phone", kind="relative"),  # nobody knows when it was started
    Clock(id="watch", kind="relative"),
)


def elapsed(earlier: Time, later: Time) -> float | None:
    return Conversation(id="c", clocks=CLOCKS).elapsed(earlier, later)


def test_elapsed_on_one_clock_is_the_difference() -> None:
    assert elapsed(Time(1003.0, "wall"), Time(1005.5, "wall")) == 2.5
    assert elapsed(Time(1005.5, "wall"), Time(1003.0, "wall")) == -2.5
    assert elapsed(Time(3.0, "phone"), Time(4.0, "phone")) == 1.0  # an offset is not needed for that


def test_elapsed_is_counted_between_beginnings() -> None:
    assert elapsed(Time(1003.0, "wall", until=1004.0), Time(1005.5, "wall", until=1009.0)) == 2.5


def test_elapsed_on_related_clocks_goes_by_their_offsets() -> None:
    # 1003.0 - 1000.0 = 3.0 and 4.0 + 0.5 = 4.5 in common time
    assert elapsed(Time(1003.0, "wall"), Time(4.0, "audio")) == 1.5
    assert elapsed(Time(4.0, "audio"), Time(1003.0, "wall")) == -1.5


@pytest.mark.parametrize(
    ("earlier", "later"), [("wall", "phone"), ("phone", "wall"), ("phone", "watch"), ("wall", "undeclared")]
)
def test_elapsed_on_unrelated_clocks_is_not_known(earlier: str, later: str) -> None:
    assert elapsed(Time(1.0, earlier), Time(2.0, later)) is None


# The results of tool calls


def answered(*timeline: AnyEvent) -> dict[int, int]:
    """The seq of the result by the seq of its call."""
    return {call: result.seq for call, result in conversation(*timeline).tool_results.items()}


def test_a_result_is_matched_by_id() -> None:
    assert answered(
        ToolCall(seq=0, name="find", call_id="x"),
        ToolCall(seq=1, name="find", call_id="y"),
        ToolResult(seq=2, name="find", call_id="y"),
        ToolResult(seq=3, name="find", call_id="x"),
    ) == {1: 2, 0: 3}


def test_an_id_counts_for_more_than_a_name() -> None:
    assert answered(
        ToolCall(seq=0, name="find", call_id="x"),
        ToolCall(seq=1, name="book", call_id="y"),
        ToolResult(seq=2, name="find", call_id="y"),
    ) == {1: 2}


def test_calls_that_share_an_id_are_answered_oldest_first() -> None:
    assert answered(
        ToolCall(seq=0, name="find", call_id="x"),
        ToolCall(seq=1, name="find", call_id="x"),
        ToolResult(seq=2, call_id="x"),
        ToolResult(seq=3, call_id="x"),
    ) == {0: 2, 1: 3}


def test_a_result_without_an_id_belongs_to_the_oldest_open_call_of_its_name() -> None:
    assert answered(
        ToolCall(seq=0, name="find"),
        ToolCall(seq=1, name="book"),
        ToolCall(seq=2, name="book"),
        ToolResult(seq=3, name="book"),  # 1, the oldest of the two
        ToolResult(seq=4, name="find"),
        ToolResult(seq=5, name="book"),  # 1 is not open any more
    ) == {1: 3, 0: 4, 2: 5}


def test_a_name_matches_where_only_the_call_has_an_id() -> None:
    assert answered(
        ToolCall(seq=0, name="find", call_id="x"),
        ToolCall(seq=1, name="book", call_id="y"),
        ToolResult(seq=2, name="book"),
    ) == {1: 2}


def test_a_name_matches_where_only_the_result_has_an_id() -> None:
    assert answered(
        ToolCall(seq=0, name="find"),
        ToolCall(seq=1, name="book"),
        ToolResult(seq=2, name="book", call_id="y"),
    ) == {1: 2}


def test_a_nameless_result_without_an_id_belongs_to_the_oldest_open_call() -> None:
    assert answered(
        ToolCall(seq=0, name="find"),
        ToolCall(seq=1, name="book"),
        ToolResult(seq=2),
        ToolResult(seq=3),
    ) == {0: 2, 1: 3}


def test_an_id_is_looked_for_before_a_call_without_one_is_taken() -> None:
    assert answered(
        ToolCall(seq=0, name="find"),
        ToolCall(seq=1, name="find", call_id="y"),
        ToolResult(seq=2, name="find", call_id="y"),
    ) == {1: 2}


def test_a_call_that_nothing_answers_has_no_result() -> None:
    assert answered(ToolCall(seq=0, name="find")) == {}
    assert answered(ToolCall(seq=0, name="find"), ToolResult(seq=1, name="book")) == {}
    assert answered(ToolCall(seq=0, name="find", call_id="x"), ToolResult(seq=1, name="find", call_id="y")) == {}


def test_a_result_before_its_call_answers_nothing() -> None:
    assert answered(ToolResult(seq=0, name="find"), ToolCall(seq=1, name="find")) == {}


def test_a_call_is_answered_once() -> None:
    assert answered(
        ToolCall(seq=0, name="find", call_id="x"),
        ToolResult(seq=1, call_id="x"),
        ToolResult(seq=2, call_id="x"),
    ) == {0: 1}


def test_utterances_and_tool_calls_are_the_timeline_by_kind() -> None:
    made = conversation(
        Utterance(seq=0, speaker="u"),
        ToolCall(seq=1, name="find"),
        Marker(seq=2, name="beep"),
        Utterance(seq=3, speaker="a"),
        ToolCall(seq=4, name="book"),
    )
    assert [utterance.seq for utterance in made.utterances] == [0, 3]
    assert [call.seq for call in made.tool_calls] == [1, 4]
    assert made.roles == {"u": "user", "a": "assistant"}
