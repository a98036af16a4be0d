"""The standard MultiWOZ evaluation over whole predictions: missing parts, unchanged input, richness, BLEU."""

from __future__ import annotations

import copy
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.errors import UsageError
from convoscope.metrics.dialogue.tomiinek.evaluate import (
    DomainGoal,
    GoldDialogue,
    active_domains,
    corpus_bleu,
    evaluate,
    judge_prediction,
    richness,
)
from convoscope.metrics.dialogue.tomiinek.matching import (
    VenueSearch,
    is_like,
    partial_ratio,
    placeholder,
    response_form,
    value_form,
)

SEARCH = VenueSearch(
    {
        "hotel": [
            {"id": "1", "name": "ashley hotel", "area": "north", "type": "hotel"},
            {"id": "2", "name": "acorn guest house", "area": "north", "type": "guesthouse"},
        ]
    }
)
GOLD = {
    "MUL0001.json": GoldDialogue(
        goals={"hotel": DomainGoal({"area": "north", "type": "hotel"}, frozenset({"PHONE"}))},
        responses=["[hotel_name] is nice", "call [hotel_phone]"],
        states=[{"hotel": {"area": "north", "type": "hotel"}}, {"hotel": {"area": "north", "type": "hotel"}}],
        booked=[(), ()],
    ),
    "MUL0002.json": GoldDialogue(
        goals={"taxi": DomainGoal({}, frozenset({"PHONE"}))}, responses=["[taxi_phone]"], states=[{}], booked=[()]
    ),
}
PERFECT = {
    "mul0001": [
        {"response": "[hotel_name] is nice", "state": {"hotel": {"area": "north", "type": "hotel"}}},
        {"response": "call [hotel_phone]", "state": {"hotel": {"area": "north", "type": "hotel"}}},
    ],
    "mul0002": [{"response": "[taxi_phone]", "state": {"taxi": {"leave": "12:15"}}, "active_domains": ["taxi"]}],
}


def test_inform_and_success_twice_on_the_same_input() -> None:
    before = copy.deepcopy(PERFECT)
    first, second = (evaluate(PERFECT, GOLD, SEARCH, with_bleu=False) for _ in range(2))
    assert (first.inform, first.success) == (100.0, 100.0)
    assert first == second
    assert before == PERFECT
    assert first.bleu is None
    assert first.combined is None


def test_a_missing_dialogue_scores_as_empty_and_is_counted() -> None:
    # The taxi is informed of for free, but its phone is never told; so is no hotel.
    figures = evaluate({"other": []}, GOLD, SEARCH, with_bleu=False)
    assert (figures.inform, figures.success) == (50.0, 0.0)
    assert figures.coverage == (0, 2, 0, 3, ("other",))
    assert figures.tracking is None  # nobody predicted a state


def test_a_missing_turn_is_an_empty_state() -> None:
    figures = evaluate({"mul0001": PERFECT["mul0001"][:1]}, GOLD, SEARCH, with_bleu=False)
    # Of three turns, the first and the empty taxi turn match: 2 of 3. Slots: 2 of 2 predicted, 2 of 4 true.
    assert figures.tracking.joint_accuracy == pytest.approx(66.6667, abs=1e-3)
    assert (figures.tracking.slot_precision, figures.tracking.slot_recall) == pytest.approx((1.0, 0.5))
    assert figures.coverage[:4] == (1, 2, 1, 3)


def test_richness_by_hand() -> None:
    # a b a b: two tokens of equal frequency are 1 bit. Bigrams ab, ba, ab: ⅔·log₂1.5 + ⅓·log₂3 = 0.918 bits,
    # whose first tokens a, b, a have as many: knowing the token before leaves nothing open.
    figures = richness(["a b a b"])
    assert (figures.mean_length, figures.entropy) == (4.0, 1.0)
    assert figures.conditional_entropy == pytest.approx(0.0)
    assert figures.msttr is None  # fewer than fifty tokens
    assert figures[4:] == (2, 2, 2)
    assert richness(["a b"] * 25).msttr == 2 / 50
    assert richness([])[:4] == (None, None, None, None)


def test_without_sacrebleu_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu", None)  # as where it is not installed
    with pytest.raises(UsageError, match="sacrebleu") as error:
        corpus_bleu(["a"], ["a"])
    assert "convoscope[bleu]" in str(error.value.hint)


def test_bleu_of_the_reference_itself_is_a_hundred() -> None:
    pytest.importorskip("sacrebleu")
    text = ["there are three hotels in the north ."]
    assert corpus_bleu(text, text) == pytest.approx(100.0)


@given(st.text("abc ", max_size=12), st.text("abc ", max_size=12))
def test_likeness_lies_between_0_and_100_and_equal_texts_have_it(left: str, right: str) -> None:
    assert 0 <= partial_ratio(left, right) <= 100
    assert partial_ratio(left, left) == 100  # also of nothing and nothing


@given(st.text("abc 1", max_size=14), st.text("abc 1", max_size=14), st.sampled_from([75, 90, 95]))
def test_the_fast_bound_refuses_nothing_that_is_like(left: str, right: str, threshold: int) -> None:
    assert is_like(left, right, threshold) == (partial_ratio(left, right) > threshold)


# Neighbours of the published cases, by the words of the specification.

TRAINS = VenueSearch(
    {
        "train": [
            {"trainID": "TR1", "departure": "cambridge", "destination": "ely", "leaveAt": "05:00", "arriveBy": "05:15"},
            {"trainID": "TR2", "departure": "cambridge", "destination": "ely", "leaveAt": "09:00", "arriveBy": "09:15"},
            {"trainID": "TR3", "departure": "ely", "destination": "cambridge", "leaveAt": "23:50", "arriveBy": "24:05"},
        ],
        "hotel": [
            {"id": "1", "name": "a", "parking": "yes", "internet": "no", "stars": "4"},
            {"id": "2", "name": "b", "parking": "no", "internet": "yes", "stars": "?"},
        ],
    }
)


@pytest.mark.parametrize(
    ("domain", "constraints", "ids"),
    [
        ("train", {"leave": "09:00"}, ["TR2", "TR3"]),  # at the time itself
        ("train", {"leaveat": "9:00"}, ["TR2", "TR3"]),  # the other name, and a short form
        ("train", {"arrive": "09:15"}, ["TR1", "TR2"]),
        ("train", {"arriveby": "9:14"}, ["TR1"]),
        ("train", {"leave": "12 pm"}, []),  # noon has 12 hours added: 24:00
        ("train", {"arrive": "12 pm"}, ["TR1", "TR2"]),  # 24:05 is after 24:00
        ("train", {"leave": "05:00", "arrive": "09:00"}, ["TR1"]),
        ("train", {"leave": "dontcare", "departure": "ely"}, ["TR3"]),
        ("train", {"leave": "around noon"}, []),  # no time, and no train has it
        ("train", {"departure": "Cambridge "}, ["TR1", "TR2"]),
        ("train", {}, ["TR1", "TR2", "TR3"]),
        ("hotel", {"parking": "free"}, ["1"]),
        ("hotel", {"parking": "no"}, ["2"]),
        ("hotel", {"internet": "dont care"}, ["1", "2"]),
        ("hotel", {"internet": "Free"}, []),  # only names, food and times are lower-cased
        ("hotel", {"stars": "4"}, ["1", "2"]),  # an unknown value fits
        ("hotel", {"moons": "2"}, ["1", "2"]),  # no such column
        ("taxi", {"leave": "09:00"}, []),
        ("nothing", {}, []),
    ],
)
def test_venues_that_fit(domain: str, constraints: dict[str, str], ids: list[str]) -> None:
    assert TRAINS.query(domain, constraints) == ids


@pytest.mark.parametrize(
    ("slot", "value", "form"),
    [
        ("leave", "7:15", "07:15"),
        ("arrive", "after 5 pm", "17:00"),
        ("leave", "5:45 PM", "17:45"),
        ("leave", "12:30 pm", "24:30"),
        ("leave", "noon", "12:00"),
        ("leave", "19:00.", "19:00"),
        ("booktime", "5 pm", "5 pm"),  # not a time
        ("type", "guest house", "guesthouse"),
        ("type", "guesthouses", "guesthouses"),
        ("parking", "dontcare", "dontcare"),
        ("name", " Ashley Hotel ", "ashley hotel"),
        ("food", "Sea Food", "seafood"),
    ],
)
def test_values_have_one_form(slot: str, value: str, form: str) -> None:
    assert value_form(slot, value) == form


@pytest.mark.parametrize(
    ("name", "stands_for"),
    [
        ("restaurant_reference", "REFERENCE"),
        ("Train_TrainID", "TRAINID"),
        ("value_open", "OPEN"),
        ("entrance fee", "PRICE"),
        ("taxi_phone", "PHONE"),
        ("value_people", "COUNT"),
        ("", ""),
    ],
)
def test_placeholders(name: str, stands_for: str) -> None:
    assert placeholder(name) == stands_for


def test_ids_are_the_same_in_any_case_and_with_their_ending() -> None:
    shouted = {f"{id.upper()}.json": turns for id, turns in PERFECT.items()}
    assert evaluate(shouted, GOLD, SEARCH, with_bleu=False) == evaluate(PERFECT, GOLD, SEARCH, with_bleu=False)


@pytest.mark.parametrize(
    ("goal", "booked", "said", "is_informed", "is_success"),
    [
        (DomainGoal({"destination": "ely"}), (), "", True, True),  # nothing offered, no train id asked for
        (DomainGoal({"destination": "ely"}, frozenset({"TRAINID"})), (), "", False, False),
        (DomainGoal({"destination": "ely"}, frozenset({"TRAINID"})), (), "[train_id]", True, True),
        (DomainGoal({"destination": "ely"}, frozenset({"REFERENCE"})), (), "[ref]", True, False),  # nothing is booked
        (DomainGoal({"destination": "ely"}, frozenset({"REFERENCE"})), ("train",), "[ref]", True, True),
        (DomainGoal({"destination": "ely"}, frozenset({"PRICE"})), (), "", True, True),  # not one of the five
        (DomainGoal({"destination": "cambridge"}), (), "[trainid]", False, False),  # those to Ely were offered
    ],
)
def test_trains(goal: DomainGoal, booked: tuple[str, ...], said: str, is_informed: bool, is_success: bool) -> None:
    state = {"train": {"destination": "ely"}}
    gold = GoldDialogue(goals={"train": goal}, responses=[said], states=[state], booked=[booked])
    verdict = judge_prediction([{"response": said, "state": state, "active_domains": ["train"]}], gold, TRAINS)
    assert (verdict.is_informed, verdict.is_success) == (is_informed, is_success)


# What the standard evaluator does, seen in new cases.


@pytest.mark.parametrize(
    ("response", "form"),
    [
        ("Call [hotel_phone] .", "call PHONE."),
        ("[hotel_name] , [hotel_address] ?", "NAME, ADDRESS?"),
        ("call them .", "call them ."),  # only after a placeholder
        ("[hotel_name] - nice", "NAME - nice"),
        ("it 's [value_price] -s !", "it 's PRICE!"),
    ],
)
def test_punctuation_goes_with_the_placeholder_before_it(response: str, form: str) -> None:
    assert response_form(response) == form


@pytest.mark.parametrize(
    ("value", "time"), [("afer 9:30", "09:30"), ("after 9:30", "09:30"), ("by 0930", "09:30"), ("afternoon", "13:00")]
)
def test_a_misspelt_after_is_no_part_of_a_time(value: str, time: str) -> None:
    assert value_form("leave", value) == time


def test_of_several_domains_that_change_the_chosen_one_alone_is_seen() -> None:
    one, train = {"hotel": {"area": "north"}}, {"train": {"day": "monday", "leave": "10:00"}}
    # The train has more slots. In the next turn nothing changes, so the hotel's turn comes; then nothing is new.
    assert active_domains([{**one, **train}] * 3) == [["train"], ["hotel"], ["hotel"]]
    assert active_domains([one, {**one, **train}, {**one, **train}]) == [["hotel"], ["train"], ["train"]]
    changed = {"hotel": {"area": "south"}, **train}
    assert active_domains([one, changed, changed]) == [["hotel"], ["train"], ["hotel"]]
    assert active_domains([{}, one, {}]) == [[], ["hotel"], ["hotel"]]
