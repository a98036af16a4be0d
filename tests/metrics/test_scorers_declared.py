"""Judged and audio scorers: declared with needs and scale, and never a number before somebody measured one."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from convoscope.conversation import Agent, AudioFile, Conversation, Expected, Item, Outcome, Retrieval, Track
from convoscope.errors import UsageError
from convoscope.metrics.audio import planned as scorers_audio
from convoscope.metrics.declaration import Metric, TenPoints
from convoscope.metrics.judged import planned as scorers_judged
from convoscope.metrics.judged.fields import SCORERS, needs_of
from convoscope.metrics.registry import collect, installed
from convoscope.scoring.evaluate import evaluate, observe
from convoscope.scoring.plan import plan
from support.chats import agent, chat, told, user

DECLARED = {key: one for key, one in collect([scorers_judged, scorers_audio]).items() if isinstance(one, Metric)}
JUDGED = sorted(key for key, one in DECLARED.items() if one.family != "audio")
AUDIO = sorted(set(DECLARED) - set(JUDGED))


def each(keys: Sequence[str]) -> Callable[[Callable[[Any, str], None]], Callable[[Any], None]]:
    """One test for all of them, which says for which of them it failed."""

    def wrap(test: Callable[[Any, str], None]) -> Callable[[Any], None]:
        def of_each(self: Any) -> None:
            for key in keys:
                try:
                    test(self, key)
                except AssertionError as error:
                    error.add_note(f"for {key}")
                    raise

        return of_each

    return wrap


def item(**facts: object) -> Conversation:
    """One item with everything that a judge could want to see."""
    mine = Item(
        id="7",
        asked=0,
        answered=1,
        events=(2,),
        expected=Expected(ground_truth="Under Settings."),
        outcome=Outcome(finished=True),
        extras={"trace": [{"step": 1}], "conversation_context": {"turns": [0, 1]}, "tool_calls": []},
        **facts,  # type: ignore[arg-type]
    )
    able = Agent(role="support", instructions="Be kind.", tools=())
    events = (user("How do I cancel?"), agent("In Settings."), Retrieval(seq=0, query="cancel", chunks=("Settings.",)))
    return chat(*events, items=(mine,), agent=able)


def test_every_scorer_of_the_table_that_needs_a_judge_or_an_ear_is_declared() -> None:
    names = {one.name.partition(".")[2] for one in DECLARED.values()}
    assert names == {name for name, reads in SCORERS.items() if reads.by != "rule"}


class TestEach:
    @each(sorted(DECLARED))
    def test_its_needs_are_those_of_the_table(self, key: str) -> None:
        assert DECLARED[key].needs == needs_of(DECLARED[key].name.partition(".")[2])

    @each(sorted(DECLARED))
    def test_it_is_found_by_the_name_of_the_schema(self, key: str) -> None:
        name = key.partition(".")[2]
        if name == "faithfulness":
            return
        for written in (name, f"{name}_scorer", key):
            assert [one.key for one in installed().resolve([written])] == [key]

    @each(sorted(DECLARED))
    def test_it_has_a_map_to_ten_points_and_the_pass_mark(self, key: str) -> None:
        ten = DECLARED[key].ten
        assert ten is not None
        assert ten.passes_at == 7.0

    @each(sorted(DECLARED))
    def test_it_asks_a_question_and_says_that_it_is_not_measured(self, key: str) -> None:
        assert DECLARED[key].question.endswith("?")
        assert "Unmeasured without a" in " ".join(DECLARED[key].description.split())

    @each(sorted(DECLARED))
    def test_the_worst_is_worth_less_than_the_best(self, key: str) -> None:
        one = DECLARED[key]
        assert one.ten is not None
        if one.ten.falls is None:
            assert one.better == ("higher" if one.ten.zero < one.ten.ten else "lower")
        else:
            assert one.better == "neither"


def test_a_bare_name_that_two_families_share_is_a_clear_error() -> None:
    for written in ("faithfulness", "faithfulness_scorer"):
        with pytest.raises(UsageError) as caught:
            installed().resolve([written])
        assert "judged.faithfulness, retrieval.faithfulness" in str(caught.value)


class TestWithoutAJudge:
    @each(JUDGED)
    def test_an_item_with_everything_wants_only_a_judge(self, key: str) -> None:
        (one,) = observe(DECLARED[key], item())
        assert (one.status, one.reason, one.value) == ("unmeasured", "no_judge", None)
        assert one.detail == "no judge configured"

    @each(JUDGED)
    def test_an_empty_item_is_told_what_it_lacks_first(self, key: str) -> None:
        (one,) = observe(DECLARED[key], chat(items=(Item(id="7"),)))
        first = SCORERS[key.partition(".")[2]].required[0]
        assert (one.status, one.reason) == ("unmeasured", f"no_{first}")

    @each(JUDGED)
    def test_a_judge_that_nobody_can_ask_yet_gives_no_number(self, key: str) -> None:
        assert told(observe(DECLARED[key], item(), frozenset({"judge"}))) == [("item 7", "unmeasured: no_judge")]

    @each(JUDGED)
    def test_the_kind_of_item_decides(self, key: str) -> None:
        only = SCORERS[key.partition(".")[2]].only
        for kind, other in (("agent", "an_agent"), ("conversational", "a_conversational")):
            (one,) = observe(DECLARED[key], item(kind=kind))
            if only in (None, kind):
                assert (one.status, one.reason) == ("unmeasured", "no_judge")
            else:
                assert one.status == "not_applicable"
                assert one.reason != f"not_{other}_item"
                assert re.fullmatch("not_an?_[a-z]+_item", one.reason)

    def test_a_chat_is_one_thing_to_judge(self) -> None:
        conversation = chat(user("Hi"), agent("Hello"))
        assert told(observe(scorers_judged.knowledge_retention, conversation)) == [
            ("conversation", "unmeasured: no_judge")
        ]
        assert told(observe(scorers_judged.role_adherence, conversation)) == [
            ("conversation", "unmeasured: no_agent_role")
        ]

    def test_items_of_one_conversation_speak_each_for_themselves(self) -> None:
        items = (Item(id="a", asked=0, answered=1), Item(id="b", asked=0), Item(id="c", kind="conversational"))
        conversation = chat(user("Hi"), agent("Hello"), items=items, agent=Agent(role="support"))
        assert told(observe(scorers_judged.context_relevancy, conversation, frozenset({"judge"}))) == [
            ("item a", "unmeasured: no_judge"),
            ("item b", "unmeasured: no_agent_response"),
            ("item c", "not_applicable: not_an_agent_item"),
        ]

    def test_the_plan_says_what_would_unlock_it(self) -> None:
        (planned,) = plan([scorers_judged.g_eval], [item(), chat(items=(Item(id="7"),))]).metrics
        assert (planned.applies_to, {one.code: one.conversations for one in planned.missing}) == (
            0,
            {"no_judge": 1, "no_agent_task": 1},
        )


class TestWithoutAnEar:
    @each(AUDIO)
    def test_no_recording(self, key: str) -> None:
        (one,) = observe(DECLARED[key], item())
        assert (one.status, one.reason) == ("unmeasured", "no_recording")

    @each(AUDIO)
    def test_a_recording_that_nobody_listens_to(self, key: str) -> None:
        heard = chat(recording=AudioFile(tracks=(Track(url="https://example.org/call.wav"),)))
        for resources in ({}, {"audio_analysis": None}):
            (evaluated,) = evaluate(heard, [DECLARED[key]], resources)
            (score,) = evaluated.scores
            assert (score.status, score.reason, score.value) == ("unmeasured", "no_audio_analysis", None)


class TestScales:
    """Raw value, and what it is worth (StandardData, 2.1, 2.4 and 2.5)."""

    @pytest.mark.parametrize(
        ("name", "unit", "worth"),
        [
            # A rating from 1 to 10 is its own score.
            ("answer.claim_verification", "of 10", {1: 1, 7: 7, 10: 10}),
            # A fault: 11 − rating.
            ("answer.hallucination_detection", "of 10", {1: 10, 4: 7, 10: 1}),
            # 0 to 1: ten times the value.
            ("answer.g_eval", "ratio", {0: 0, 0.7: 7, 1: 10}),
            ("telephony.instruction_adherence", "share", {0: 0, 0.7: 7, 1: 10}),
            ("telephony.drop_off_node", "ratio", {0: 0, 0.25: 2.5, 1: 10}),
            # (CSAT − 1) ÷ 4 × 10, and so for MOS: (3.8 − 1) ÷ 4 = 0.7
            ("telephony.sentiment_csat", "of 5", {1: 0, 3: 5, 3.8: 7, 5: 10}),
            ("audio.mos", "MOS", {1: 0, 3.8: 7, 5: 10}),
            # 10 × (1 − value)
            ("audio.gibberish", "ratio", {0: 10, 0.3: 7, 1: 0}),
            # 10 × max(0, 1 − rate ÷ 6)
            ("audio.audio_breakage", "per minute", {0: 10, 3: 5, 6: 0, 60: 0}),
            # 10 from 85 to 255; 72.5 is half of the way up from 60, 327.5 half of the way down to 400
            (
                "audio.assistant_average_pitch_hz",
                "Hz",
                {50: 0, 60: 0, 72.5: 5, 85: 10, 180: 10, 255: 10, 327.5: 5, 400: 0, 500: 0},
            ),
            # a point less for each dB outside of −26 to −16
            (
                "audio.assistant_volume_rms",
                "dBFS",
                {-40: 0, -36: 0, -29: 7, -26: 10, -20: 10, -16: 10, -13: 7, -6: 0, 0: 0},
            ),
        ],
    )
    def test_what_a_value_is_worth(self, name: str, unit: str, worth: dict[float, float]) -> None:
        declared = DECLARED[name]
        assert declared.unit == unit
        assert declared.ten is not None
        for value, points in worth.items():
            assert declared.ten.score(value) == pytest.approx(points)

    @pytest.mark.parametrize("falls", [(80.0, 400.0), (255.0, 255.0), (400.0, 255.0)])
    def test_a_map_that_falls_again_needs_its_values_in_order(self, falls: tuple[float, float]) -> None:
        with pytest.raises(UsageError, match="four values in order"):
            TenPoints(60, 85, falls=falls)
