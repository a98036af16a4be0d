"""voice.stt_wer and voice.key_entities: what the recogniser wrote against what the user meant to say."""

import re
from importlib import import_module

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convoscope.conversation import Conversation, Logged
from convoscope.conversation.turns import EVA_TURN_RULE
from convoscope.metrics.declaration import Metric
from convoscope.metrics.registry import collect
from convoscope.metrics.voice import transcription
from convoscope.metrics.voice import transcription as key_entities
from convoscope.scoring.evaluate import evaluate, observe
from support.calls import bot, caller, voice_call
from support.chats import agent, chat, told, user

stt_wer = transcription.stt_wer
DECLARED = collect([transcription, key_entities])


def heard_call(*said: tuple[str, str | None], **facts: object) -> Conversation:
    """Each thing that the user means to say, with what the recogniser wrote; the agent replies to each."""
    events = [event for text, heard in said for event in (caller(text, heard=heard), bot("yes"))]
    return voice_call(*events[:-1], **facts)


def value(declared: Metric, conversation: Conversation) -> float | None:
    (evaluated,) = evaluate(conversation, [declared])
    return evaluated.scores[0].value


class TestErrors:
    def test_substitutions_deletions_and_insertions(self) -> None:
        conversation = heard_call(("the blue bird sings", "the bird sings so"))
        (one,) = observe(stt_wer, conversation)
        assert (one.value, one.numerator, one.denominator) == (0.5, 2.0, 4.0)  # blue missed, so added; 4 words
        assert one.details == {
            "reference": "the blue bird sings",
            "hypothesis": "the bird sings so",
            "worst": [{"said": "blue", "heard": ""}, {"said": "", "heard": "so"}],
        }
        assert value(transcription.deletion_rate, conversation) == 0.25
        assert value(transcription.insertion_rate, conversation) == 0.25
        assert value(transcription.substitution_rate, conversation) == 0.0

    def test_a_word_taken_for_another(self) -> None:
        conversation = heard_call(("the blue bird sings", "the glue bird sings"))
        (one,) = observe(stt_wer, conversation)
        assert one.value == 0.25  # 1 of 4
        assert one.details is not None
        assert one.details["worst"] == [{"said": "blue", "heard": "glue"}]
        assert value(transcription.substitution_rate, conversation) == 0.25

    def test_more_errors_than_words(self) -> None:
        conversation = heard_call(("hello", "well how low can it be"))
        assert value(stt_wer, conversation) == 6.0  # one replaced, five added, of one word

    def test_what_sounds_alike_is_alike(self) -> None:
        """1.7, defect 7: code, clock and apostrophe."""
        conversation = heard_call(("It’s Z K three F F W, [slow] at four p.m.", "it's ZK3FFW at 4:00 PM"))
        assert value(stt_wer, conversation) == 0.0

    @settings(max_examples=200, deadline=None)
    @given(
        st.lists(st.sampled_from(["east", "west", "north", "south"]), min_size=1, max_size=12),
        st.lists(st.sampled_from(["east", "west", "north", "south"]), min_size=1, max_size=12),
    )
    def test_counted_as_jiwer_counts(self, said: list[str], heard: list[str]) -> None:
        from jiwer import process_words

        theirs = process_words(" ".join(said), " ".join(heard))
        mine = transcription.word_errors(" ".join(said), " ".join(heard), "en")
        assert mine[:4] == (len(said), theirs.substitutions, theirs.deletions, theirs.insertions)
        differing = [one for one in theirs.alignments[0] if one.type != "equal"]
        assert len(mine.details.get("worst", ())) == min(len(differing), transcription.WORST)

    def test_pooled_over_the_turns(self) -> None:
        conversation = heard_call(("one", "two"), ("the blue bird sings", "the blue bird sings"))
        # 1 error in 1 + 4 words, not the mean of 1 and 0.
        assert value(stt_wer, conversation) == pytest.approx(0.2)

    def test_by_character_in_languages_without_blanks(self) -> None:
        conversation = heard_call(("東京です", "東京で"), extras={"language": "ja"})
        (one,) = observe(stt_wer, conversation)
        assert (one.numerator, one.denominator) == (1.0, 4.0)  # す of 東 京 で す


class TestLostTurns:
    def test_lost_in_the_middle_of_the_call_all_words_are_missed(self) -> None:
        """1.7, defect 6: it was left out."""
        conversation = heard_call(("the blue bird", None), ("bye now", "bye now"))
        first, _ = observe(stt_wer, conversation)
        assert (first.value, first.numerator, first.denominator) == (1.0, 3.0, 3.0)
        assert first.details == {"reference": "the blue bird", "hypothesis": "", "lost": True}
        assert value(stt_wer, conversation) == pytest.approx(3 / 5)
        assert value(transcription.deletion_rate, conversation) == pytest.approx(3 / 5)

    def test_a_text_that_is_only_a_tag_is_lost_too(self) -> None:
        conversation = heard_call(("the blue bird", "[noise]"), ("bye", "bye"))
        assert told(observe(stt_wer, conversation)) == [("turn 1", 1.0), ("turn 2", 0.0)]

    def test_a_recogniser_that_dies_in_mid_call_missed_the_rest(self) -> None:
        """It got 0.00 and 100 %, because nothing after the first turn was compared."""
        said = ("My name is Rodriguez.", "my name is rodriguez")
        conversation = heard_call(said, *[("I paid $450.", None)] * 13)
        # 4 words and one fact right; "I paid 450 dollars" is 4 words and one fact, 13 times lost.
        words = [one.denominator for one in observe(stt_wer, conversation)]
        assert words == [4.0] * 14
        assert value(stt_wer, conversation) == pytest.approx(13 / 14)
        assert value(key_entities.key_entities, conversation) == pytest.approx(1 / 14)

    @pytest.mark.parametrize("empty", ["", "  ", "[noise]"])
    def test_empty_transcripts_in_every_turn_are_all_deletions(self, empty: str) -> None:
        """They were unmeasured, and without sound no turns at all."""
        conversation = heard_call(("the blue bird", empty), ("my name is Rodriguez", empty))
        assert told(observe(stt_wer, conversation)) == [("turn 1", 1.0), ("turn 2", 1.0)]
        assert value(transcription.deletion_rate, conversation) == 1.0
        assert value(key_entities.key_entities, conversation) == 0.0

    def test_a_recogniser_whose_log_has_no_line_of_the_user_wrote_nothing(self) -> None:
        log = (Logged(source="audit", kind="assistant", ms=0, text="yes"),)
        assert value(stt_wer, heard_call(("hello there", None), log=log)) == 1.0

    def test_by_the_published_rule_the_recogniser_may_not_have_finished(self) -> None:
        """1.7, defect 6: filled from the intended text, it counted as perfect."""
        conversation = heard_call(("hello", "hello"), ("good", None), ("bye now", None))
        assert told(observe(stt_wer, conversation)) == [("turn 1", 0.0), ("turn 2", 1.0), ("turn 3", 1.0)]
        assert told(observe(transcription.stt_wer_eva, conversation)) == [
            ("turn 1", 0.0),
            ("turn 2", "unmeasured: not_transcribed_at_end"),
            ("turn 3", "unmeasured: not_transcribed_at_end"),
        ]
        assert value(transcription.stt_wer_eva, conversation) == 0.0

    def test_a_turn_that_the_published_rule_fills_is_not_perfect(self) -> None:
        log = (
            Logged(source="audit", kind="user", ms=2500, text="hello", event=0),
            Logged(source="simulator", kind="audio_start", ms=1000, sound=1.0, speaker="user"),
            Logged(source="simulator", kind="user_speech", ms=1500, speaker="user", text="hello", event=0),
            Logged(source="simulator", kind="audio_end", ms=2000, sound=2.0, speaker="user"),
            Logged(source="simulator", kind="audio_start", ms=3000, sound=3.0, speaker="assistant"),
            Logged(source="simulator", kind="assistant_speech", ms=3500, speaker="assistant", text="yes", event=1),
            Logged(source="simulator", kind="audio_end", ms=4000, sound=4.0, speaker="assistant"),
            Logged(source="simulator", kind="audio_start", ms=5000, sound=5.0, speaker="user"),
            Logged(source="simulator", kind="user_speech", ms=5500, speaker="user", text="bye now", event=2),
            Logged(source="simulator", kind="audio_end", ms=6000, sound=6.0, speaker="user"),
        )
        conversation = voice_call(
            caller("hello", (1.0, 2.0), heard="hello"),
            bot("yes", (3.0, 4.0)),
            caller("bye now", (5.0, 6.0)),
            log=log,
            turn_rule=EVA_TURN_RULE,
        )
        observations = {str(one.subject): (one.value, one.reason) for one in observe(stt_wer, conversation)}
        assert sorted(observations.values()) == [(0.0, ""), (1.0, "")]
        published = {(one.value, one.reason) for one in observe(transcription.stt_wer_eva, conversation)}
        assert published == {(0.0, ""), (None, "not_transcribed_at_end")}

    def test_what_nobody_meant_to_say_is_not_applicable_and_what_nobody_knows_is_missing(self) -> None:
        conversation = heard_call(("", "hello"), ("[sighs]", "huh"), ("bye", "bye"))
        assert told(observe(stt_wer, conversation)) == [
            ("turn 1", "unmeasured: no_intended_text"),
            ("turn 2", "not_applicable: nothing_intended"),
            ("turn 3", 0.0),
        ]


class TestNeeds:
    def test_a_model_that_hears_the_sound_has_no_recogniser(self) -> None:
        for pipeline in ("audio_llm", "s2s"):
            conversation = heard_call(("hello", "yellow"), pipeline=pipeline)
            for declared in (stt_wer, key_entities.key_entities):
                assert told(observe(declared, conversation)) == [("conversation", "not_applicable: audio_native")]

    def test_a_call_that_lacks_one_of_the_two_texts(self) -> None:
        assert told(observe(stt_wer, heard_call(("hello", None)))) == [("conversation", "unmeasured: no_transcript")]
        assert told(observe(stt_wer, heard_call(("", "hello")))) == [("conversation", "unmeasured: no_intended_text")]

    def test_a_user_who_never_speaks_gives_nothing_to_recognise(self) -> None:
        assert told(observe(stt_wer, voice_call(bot("welcome")))) == [
            ("conversation", "not_applicable: no_user_speech")
        ]

    def test_a_chat_is_no_call(self) -> None:
        assert told(observe(stt_wer, chat(user("hi"), agent("yes")))) == [
            ("conversation", "not_applicable: not_a_call")
        ]


class TestKeyEntities:
    def test_right_and_wrong(self) -> None:
        conversation = heard_call(
            (
                "My confirmation number is Z K three F F W and the last name is Rodriguez.",
                "my confirmation number is ZK3FF and the last name is Rodriguez",
            ),
            ("Thank you.", "thank you"),
        )
        first, second = observe(key_entities.key_entities, conversation)
        assert (first.value, first.numerator, first.denominator) == (0.5, 1.0, 2.0)  # the name, not the code
        assert first.details == {
            "entities": [
                {"type": "confirmation_code", "intended": "Z K three F F W", "heard": "zk3ff", "correct": False},
                {"type": "name", "intended": "Rodriguez", "heard": "Rodriguez", "correct": True},
            ]
        }
        assert (second.status, second.reason) == ("not_applicable", "no_entities")

    def test_by_kind(self) -> None:
        conversation = heard_call(("My name is Rodriguez and I paid $450.", "my name is rodriguez and I paid $415"))
        assert value(key_entities.names, conversation) == 1.0
        assert value(key_entities.amounts, conversation) == 0.0
        assert value(key_entities.codes, conversation) is None

    def test_in_a_lost_turn_all_are_wrong(self) -> None:
        conversation = heard_call(("My name is Rodriguez.", None), ("Yes.", "yes"), ("Call me at 555 0138 222.", None))
        found = told(observe(key_entities.key_entities, conversation))
        assert found == [("turn 1", 0.0), ("turn 2", "not_applicable: no_entities"), ("turn 3", 0.0)]
        assert told(observe(key_entities.key_entities_eva, conversation)) == [
            ("turn 1", 0.0),
            ("turn 2", "not_applicable: no_entities"),
            ("turn 3", "unmeasured: not_transcribed_at_end"),
        ]

    def test_a_turn_without_a_fact_has_none_whether_it_was_transcribed_or_not(self) -> None:
        conversation = heard_call(("My name is Rodriguez.", "my name is rodriguez"), ("Thank you, bye.", None))
        assert told(observe(key_entities.key_entities, conversation)) == [
            ("turn 1", 1.0),
            ("turn 2", "not_applicable: no_entities"),
        ]
        assert [one.reason for one in observe(key_entities.codes, conversation)] == ["no_entities", "no_entities"]

    def test_only_of_english(self) -> None:
        conversation = heard_call(("Ich heiße Rodriguez", "ich heiße rodriguez"), extras={"language": "de"})
        assert told(observe(key_entities.key_entities, conversation)) == [
            ("conversation", "unmeasured: language_not_supported")
        ]

    def test_every_type_of_fact_is_of_one_kind(self) -> None:
        # The module, not the function of the same name.
        constants = vars(import_module("convoscope.text.spoken.entities")).items()
        found = [value for name, value in constants if re.fullmatch("[A-Z]+", name) and isinstance(value, str)]
        assert sorted(one for kind in key_entities.KINDS.values() for one in kind.types) == sorted(found)


WORDS = st.lists(st.sampled_from(["blue", "bird", "sings", "so", "the"]), max_size=6).map(" ".join)


class TestAnyCall:
    @settings(deadline=None)
    @given(st.lists(st.tuples(WORDS.filter(bool), WORDS), min_size=1, max_size=5))
    def test_pooled_is_the_sum_over_the_sum(self, said: list[tuple[str, str]]) -> None:
        conversation = heard_call(*said)
        observations = [one for one in observe(stt_wer, conversation) if one.value is not None]
        found = value(stt_wer, conversation)
        if observations:
            errors = sum(one.numerator or 0 for one in observations)
            assert found == pytest.approx(errors / sum(one.denominator or 0 for one in observations))
            parts = [transcription.substitution_rate, transcription.deletion_rate, transcription.insertion_rate]
            assert found == pytest.approx(sum(value(part, conversation) or 0.0 for part in parts))
        else:
            assert found is None
