"""Every score and every note stands at its subject, and none is lost, whatever the conversation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convoscope.conversation import (
    Conversation,
    Item,
    Outcome,
    StateEntered,
    Utterance,
)
from convoscope.ingest.report import Note
from convoscope.metrics import (
    COUNT,
    EVENT,
    HIGHER,
    LOWER,
    NEITHER,
    RATIO,
    SECONDS,
    SHARE,
    Observation,
    State,
    Subject,
    TenPoints,
    measured,
    metric,
    not_applicable,
    ratio,
    unmeasured,
)
from convoscope.metrics.registry import installed
from convoscope.report.story import FOLDED, Mark, Story, StoryFact, TimelineEntry, note_text, story
from convoscope.runs.conversations import records
from convoscope.runs.make import make_run as score
from convoscope.runs.summary import describe
from convoscope.scores.observation import failed
from convoscope.views.items import WHOLE
from support.chats import UNPLACED, agent, call, chat, result, user
from support.figures import summary
from support.stories import entries, finding, placed, record_of, tell
from support.strategies import complete_conversations, conversations, texts

FLOW = chat(
    user("hi"),
    StateEntered(seq=UNPLACED, state="order"),
    call("find", "1"),
    result("find", "1"),
    agent("so?"),
    StateEntered(seq=UNPLACED, state="order"),
    user("ah"),
    items=(
        Item(id="asked", asked=0),
        Item(id="both", asked=0, answered=4),
        Item(id="neither"),
    ),
)


class TestScores:
    def test_of_a_turn_stand_at_the_turn(self) -> None:
        assert placed(tell(FLOW, finding(*(measured(turn, turn.id) for turn in FLOW.turns)))) == {
            "turn 1": ["1.00 points"],
            "turn 2": ["2.00 points"],
        }

    def test_of_an_event_stand_at_the_event(self) -> None:
        assert placed(tell(FLOW, finding(measured(FLOW.timeline[4], 3)))) == {"event 4": ["3.00 points"]}

    def test_of_a_result_stand_at_its_call(self) -> None:
        found = finding(measured(FLOW.timeline[2], 2), measured(FLOW.timeline[3], 3))
        assert placed(tell(FLOW, found)) == {"event 2": ["2.00 points", "3.00 points"]}

    def test_of_an_item_stand_at_its_answer_or_else_at_its_question(self) -> None:
        found = finding(*(measured(item, place) for place, item in enumerate(FLOW.items, 1)))
        assert placed(tell(FLOW, found)) == {
            "event 0": ["1.00 points"],
            "event 4": ["2.00 points"],
            "item neither": ["3.00 points"],
        }

    def test_of_a_state_stand_where_it_was_first_entered(self) -> None:
        found = finding(measured(State("order", 0), 1), measured(State("farewell", 1), 2))
        assert placed(tell(FLOW, found)) == {"event 1": ["1.00 points"], "state farewell": ["2.00 points"]}

    def test_of_what_is_not_there_stand_elsewhere_with_their_subject(self) -> None:
        found = finding(measured(Subject("tool_call", "99", 99), 1), measured(Subject("turn", "7", 7), 2))
        told = tell(FLOW, found)
        assert [(mark.subject, mark.text) for mark in told.elsewhere] == [
            ("tool call 99", "1.00 points"),
            ("turn 7", "2.00 points"),
        ]

    def test_of_a_subject_of_ones_own_stand_elsewhere_too(self) -> None:
        # A topic without a position stands at event 0, without its name.
        told = tell(FLOW, finding(measured(Subject("topic", "billing"), 1)))
        assert placed(told) == {"topic billing": ["1.00 points"]}

    @pytest.mark.parametrize("position", [0, 2, 4, 99])
    def test_wherever_they_say_that_it_is(self, position: int) -> None:
        # There is an event at 0, 2 and 4, but it is no topic.
        told = tell(FLOW, finding(measured(Subject("topic", "billing", position), 1)))
        assert placed(told) == {"topic billing": ["1.00 points"]}

    def test_of_an_event_of_another_kind_stand_elsewhere(self) -> None:
        # 2 is a call and 4 is an utterance
        found = finding(measured(Subject("utterance", "2", 2), 1), measured(Subject("slot_filled", "4", 4), 2))
        assert placed(tell(FLOW, found)) == {"utterance 2": ["1.00 points"], "slot filled 4": ["2.00 points"]}

    def test_of_the_whole_come_first(self) -> None:
        told = tell(FLOW, finding(measured(WHOLE, 4), observes="conversation"))
        assert [(mark.metric, mark.status, mark.text, mark.judge) for mark in told.scores] == [
            ("test.found", "measured", "4.00 points", "")
        ]
        assert placed(told) == {}

    def test_what_subjects_come_to_is_told_of_the_whole(self) -> None:
        turns = [
            measured(FLOW.timeline[0], 1),
            measured(FLOW.timeline[4], 2),
            not_applicable(FLOW.timeline[6], "short"),
        ]
        (mark,) = tell(FLOW, finding(*turns)).scores
        assert mark.text == "1.50 points"
        assert list(mark.evidence) == [StoryFact("events measured", "2"), StoryFact("without a value", "1")]

    def test_points_of_ten_are_evidence(self) -> None:
        (mark,) = tell(FLOW, finding(measured(WHOLE, 1), observes="conversation", ten=TenPoints(0, 4))).scores
        assert list(mark.evidence) == [StoryFact("of 10 points", "2.5, below 7")]  # 10 × 1 ÷ 4; 7 unless said

    @pytest.mark.parametrize(("at", "words"), [(7.5, "passes"), (10, "below 10"), (0, "passes")])
    def test_and_say_whether_they_pass(self, at: float, words: str) -> None:
        ten = TenPoints(0, 4, passes_at=at)
        (mark,) = tell(FLOW, finding(measured(WHOLE, 3), observes="conversation", ten=ten)).scores
        assert list(mark.evidence) == [StoryFact("of 10 points", f"7.5, {words}")]  # 10 × 3 ÷ 4

    def test_those_without_a_value_come_last(self) -> None:
        here = FLOW.timeline[4]
        told = tell(
            FLOW,
            finding(unmeasured(here, "no_judge", "x"), name="test.a"),
            finding(measured(here, 1), name="test.b"),
            finding(failed(here, "broke", "why"), name="test.c"),
        )
        assert placed(told) == {"event 4": ["1.00 points", "broke: why", "no judge: x"]}

    @pytest.mark.parametrize(("item", "place"), [(1, "event 4"), (2, "item neither")])
    def test_many_without_a_value_are_counted_by_their_reasons(self, item: int, place: str) -> None:
        reasons = ["no_x", "no_judge", "no_judge", "no_y", "no_judge", "no_y", "no_z"]
        found = [
            finding(unmeasured(FLOW.items[item], code, "x"), name=f"test.n{at}") for at, code in enumerate(reasons)
        ]
        told = tell(FLOW, *found, finding(measured(FLOW.items[item], 3)))
        # 3 judges, 2 y, 1 x, 1 z: the fourth reason is not told
        assert placed(told) == {place: ["3.00 points", "no judge (3), no y (2), no x (1), …"]}
        last = (told.elsewhere or [mark for one in entries(told) for mark in one.marks])[-1]
        assert last == Mark(
            metric="7 scores",
            status="without a value",
            text="no judge (3), no y (2), no x (1), …",
            subject="" if place.startswith("event") else place,
            evidence=(
                StoryFact("no judge", "test.n1, test.n2, test.n4"),
                StoryFact("no y", "test.n3, test.n5"),
                StoryFact("no x", "test.n0"),
                StoryFact("no z", "test.n6"),
            ),
        )

    def test_variants_have_their_own_name(self) -> None:
        told = tell(FLOW, finding(measured(WHOLE, 1), variant="strict"))
        assert [mark.metric for mark in told.scores] == ["test.found@strict"]

    def test_judges_are_named_and_so_is_their_panel(self) -> None:
        found = finding(measured(FLOW.timeline[0], 1, judge="p/a"), measured(FLOW.timeline[0], 4, judge="p/b"))
        told = tell(FLOW, found)
        first, second, panel = entries(told)[0].marks
        assert [(mark.judge, mark.text) for mark in (first, second)] == [("p/a", "1.00 points"), ("p/b", "4.00 points")]
        assert panel.judge.startswith("panel:")
        assert [mark.judge for mark in told.scores] == ["p/a", "p/b", panel.judge]

    def test_what_broke_comes_first_among_the_reasons(self) -> None:
        broken = msgspec.structs.replace(FLOW, outcome=Outcome(error="no line"))
        assert story(record_of(FLOW, []), summary(), ["slow"]).because == ("slow",)
        assert story(record_of(broken, []), summary(), ["slow"]).because == ("the integration broke: no line", "slow")


class TestMarks:
    @pytest.mark.parametrize(
        ("observation", "status", "text"),
        [
            (not_applicable(WHOLE, "no_tools"), "not_applicable", "no tools"),
            (unmeasured(WHOLE, "no_clock", "wall only"), "unmeasured", "no clock: wall only"),
            (failed(WHOLE, "metric_raised", "KeyError: 'x'"), "error", "metric raised: KeyError: 'x'"),
        ],
    )
    def test_without_a_value_say_status_and_reason(self, observation: Observation, status: str, text: str) -> None:
        (whole,) = tell(FLOW, finding(observation, observes="conversation")).scores
        assert (whole.status, whole.text, whole.bad) == (status, text, status == "error")
        at_event = msgspec.structs.replace(observation, subject=Subject("utterance", "0", 0))
        (mark,) = entries(tell(FLOW, finding(at_event)))[0].marks
        assert (mark.status, mark.text, mark.bad) == (status, text, status == "error")

    @pytest.mark.parametrize(
        ("value", "better", "bad"),
        [
            (0, HIGHER, True),
            (0.001, HIGHER, False),
            (1, HIGHER, False),
            (0, LOWER, False),
            (0.5, LOWER, False),
            (0.999, LOWER, False),
            (1, LOWER, True),
            (0, NEITHER, False),
            (1, NEITHER, False),
        ],
    )
    def test_a_share_that_is_at_its_worst_is_bad(self, value: float, better: str, bad: bool) -> None:
        (mark,) = tell(FLOW, finding(measured(WHOLE, value), unit=SHARE, better=better)).scores
        assert mark.bad is bad

    def test_and_so_it_is_where_it_stands_at_an_event(self) -> None:
        worst, best = measured(FLOW.timeline[0], 1), measured(FLOW.timeline[6], 0)
        told = tell(FLOW, finding(worst, best, unit=SHARE, better=LOWER))
        assert {one.seq: [mark.bad for mark in one.marks] for one in entries(told) if one.marks} == {
            0: [True],
            6: [False],
        }

    @pytest.mark.parametrize("better", [HIGHER, LOWER])
    @pytest.mark.parametrize(
        ("value", "unit", "text"),
        [(0, SECONDS, "0.00 s"), (1, SECONDS, "1.00 s"), (0, RATIO, "0.000"), (1, RATIO, "1.000"), (1, COUNT, "1")],
    )
    def test_what_is_no_share_is_never_bad(self, value: float, unit: str, text: str, better: str) -> None:
        (mark,) = tell(FLOW, finding(measured(WHOLE, value), unit=unit, better=better)).scores
        assert (mark.text, mark.bad) == (text, False)

    def test_evidence_is_counted_and_named(self) -> None:
        one = ratio(FLOW.timeline[0], 1, 3, empty="none", details={"missing_words": ["a"], "said": "b_c"})
        (mark,) = entries(tell(FLOW, finding(one, unit=SHARE)))[0].marks
        assert mark.text == "33.3 %"
        assert list(mark.evidence) == [
            StoryFact("counted", "1 of 3"),
            StoryFact("missing words", '["a"]'),
            StoryFact("said", "b_c"),
        ]

    def test_one_of_one_need_not_be_counted(self) -> None:
        (mark,) = entries(tell(FLOW, finding(ratio(FLOW.timeline[0], 1, 1, empty="none"), unit=SHARE)))[0].marks
        assert mark.evidence == ()

    def test_evidence_of_the_whole_is_told_with_it(self) -> None:
        found = finding(measured(WHOLE, 1, details={"why": "all well"}), observes="conversation")
        (mark,) = tell(FLOW, found).scores
        assert list(mark.evidence) == [StoryFact("why", "all well")]


class TestNotes:
    def test_stand_at_the_event_that_they_touch(self) -> None:
        notes = [
            Note(kind="repaired", code="json_repaired", file="a.jsonl", line=3, seq=4, detail="a bracket"),
            Note(kind="inferred", code="speaker_by_order", seq=3),
            Note(kind="ignored", code="empty_message", file="a.jsonl"),
            Note(kind="unknown", code="messages[].mood_x", seq=77),
        ]
        told = tell(FLOW, notes=notes)
        assert {one.seq: one.notes for one in entries(told) if one.notes} == {
            4: ("repaired: json repaired, a bracket (a.jsonl:3)",),
            2: ("inferred: speaker by order",),  # of the result, which is told with its call
        }
        assert told.notes == ("ignored: empty message (a.jsonl)", "unknown name: messages[].mood_x")

    def test_names_of_the_log_keep_their_spelling(self) -> None:
        assert note_text(Note(kind="unknown", code="call_id")) == "unknown name: call_id"
        assert note_text(Note(kind="inferred", code="call_id")) == "inferred: call id"


def test_a_run_tells_the_same(tmp_path: Path) -> None:
    """Scores and all come back from the files of a run as they went in."""
    found = finding(*(measured(turn, turn.id, details={"why": "so"}) for turn in FLOW.turns))
    metrics = [found, *installed().resolve()]
    run = score([FLOW], metrics=metrics, out=tmp_path / "run", workers=1)
    (record,) = records(run, [0])
    chosen = {one.metric: one for one in run.summary.declared}
    ordered = sorted(metrics, key=lambda one: list(chosen).index(one.key))
    again = msgspec.structs.replace(FLOW, source=record.conversation.source)
    assert story(record, run.summary) == story(record_of(again, ordered), run.summary)


def test_scores_of_metrics_that_are_silent_in_the_run_are_not_told(tmp_path: Path) -> None:
    found = finding(measured(FLOW.turns[0], 1))
    # Nobody expects an answer of it, and nothing else of that family has a value.
    run = score([FLOW], metrics=[found, "turns", "f1"], out=tmp_path / "run", workers=1)
    (record,) = records(run, [0])
    assert [mark.metric for mark in story(record, run.summary).scores] == ["conversation.turns", "test.found"]


INSTALLED = installed().resolve()
PARTS = {one.name for one in INSTALLED if any(one.name.startswith(f"{other.name}.") for other in INSTALLED)}


@metric("test.everything", version=1, observes=EVENT, unit="points", better=HIGHER)
def everything(conversation: Conversation) -> Iterator[Observation]:
    """What can be said of each thing that there is?"""
    yield from (measured(one, 1) for one in conversation.timeline if one.seq < 2**31)
    yield from (unmeasured(turn, "no_clock") for turn in conversation.turns)
    yield from (measured(item, 2, judge="p/a") for item in conversation.items)
    yield measured(State("order", 3), 3)
    yield measured(WHOLE, 4)


def marks(told: Story) -> int:
    """How many stand anywhere but at the whole."""
    stretches = [mark for turn in told.turns for mark in turn.marks]
    every = [*stretches, *(mark for one in entries(told) for mark in one.marks), *told.elsewhere]
    return sum(int(mark.metric.split()[0]) if mark.status == FOLDED else 1 for mark in every)


unhurried = settings(
    deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
any_rule = st.sampled_from(["exchange/1", "exchange/1", "of-the-future/9"])


class TestAnyConversation:
    @unhurried
    @given(conversations(turn_rules=any_rule) | complete_conversations())
    def test_can_be_told_and_no_score_is_lost(self, conversation: Conversation) -> None:
        metrics = [everything, *INSTALLED]
        record = record_of(conversation, metrics)
        told = story(record, summary(declared=[describe(one) for one in metrics]))
        assert msgspec.json.decode(msgspec.json.encode(told))["id"] == conversation.id
        # The evidence of a part of a metric is the whole's, and is told with that.
        assert marks(told) == sum(
            one.subject.kind != "conversation" and one.metric not in PARTS for one in record.scores
        )
        assert len(told.scores) == len(record.reduced)

    @unhurried
    @given(
        conversations(turn_rules=any_rule) | complete_conversations(),
        st.lists(st.tuples(st.integers(-1, 5), texts()), max_size=5),
    )
    def test_every_event_word_and_note_is_told_once(
        self, conversation: Conversation, drawn: list[tuple[int, str]]
    ) -> None:
        notes = [Note(kind="repaired", code="x", seq=seq, detail=detail) for seq, detail in drawn]
        told = tell(conversation, notes=notes)
        by_seq = {one.seq: one for one in entries(told)}
        with_call = {one.seq for one in conversation.tool_results.values()}
        assert list(by_seq) == [event.seq for event in conversation.timeline if event.seq not in with_call]
        assert len(by_seq) == len(entries(told))
        assert all(by_seq[one.seq].title == one.name for one in conversation.tool_calls)
        for utterance in conversation.utterances:
            assert_words_told(utterance, by_seq[utterance.seq])
        found = [*told.notes, *(note for one in entries(told) for note in one.notes)]
        assert sorted(found) == sorted(map(note_text, notes))


def assert_words_told(utterance: Utterance, told: TimelineEntry) -> None:
    """Each text to the letter; those equal to the letter once."""
    given_texts = {kind: text.text for kind in ("intended", "spoken", "heard") if (text := getattr(utterance, kind))}
    assert [kind for reading in told.readings for kind in reading.kinds] == list(given_texts)
    for reading in told.readings:
        text = "".join(piece.text for piece in reading.pieces if piece.op != "-")
        assert text == given_texts[reading.kinds[0]]
        assert {given_texts[kind] for kind in reading.kinds} == {text}
