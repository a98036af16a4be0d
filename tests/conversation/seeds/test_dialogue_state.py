"""The model holds everything that the seed dialogue-evaluation.md names."""

import pytest

from convoscope.conversation import Conversation, Frame
from support.seed_examples import example, said


@pytest.fixture
def dialogue() -> Conversation:
    return example("dialogue-state")


def state(dialogue: Conversation, seq: int, service: str, origin: str = "gold") -> Frame:
    (frame,) = (f for f in dialogue.frames if (f.seq, f.service, f.origin) == (seq, service, origin))
    return frame


def act_types(dialogue: Conversation, seq: int, origin: str) -> set[str]:
    frames = (f for f in dialogue.frames if (f.seq, f.origin) == (seq, origin))
    return {act.type for frame in frames for act in frame.acts or ()}


def test_dialogue(dialogue: Conversation) -> None:
    assert dialogue.id == "BAY0042"  # dialogue_id
    assert dialogue.extras["services"] == ["restaurant", "hotel"]  # services
    assert [u.id for u in dialogue.utterances] == [str(n) for n in range(12)]  # turn_id
    assert dialogue.roles == {"USER": "user", "SYSTEM": "assistant"}
    assert (dialogue.dimensions["dataset"], dialogue.dimensions["split"]) == ("marrow-bay", "dev")
    assert dialogue.turns[0].user_text.startswith("I fancy basque food")  # utterance
    assert dialogue.turns[0].assistant_text.startswith("Txoko Marea is a moderate one")


def test_active_intents(dialogue: Conversation) -> None:
    active = {(f.seq, f.service): f.intents for f in dialogue.frames if f.origin == "gold" and f.service and f.intents}
    assert active == {
        (0, "restaurant"): ("find_restaurant",),
        (0, "hotel"): ("find_hotel",),  # two services active at once
        (4, "restaurant"): ("find_restaurant", "book_restaurant"),  # two intents in one service
        (6, "restaurant"): ("book_restaurant",),
        (10, "hotel"): ("find_hotel",),
        (14, "hotel"): ("book_hotel",),
    }
    inactive = {(f.seq, f.service) for f in dialogue.frames if f.origin == "gold" and f.intents == ()}  # NONE
    assert inactive == {
        (4, "hotel"),
        (6, "hotel"),
        (10, "restaurant"),
        (14, "restaurant"),
        (18, "restaurant"),
        (18, "hotel"),
    }


def test_predicted_domain_and_intent(dialogue: Conversation) -> None:
    predicted = [(f.seq, f.service, f.intents) for f in dialogue.frames if f.origin == "predicted" and f.intents]
    assert predicted == [
        (0, "restaurant", ("find_restaurant",)),
        (4, "restaurant", ("book_restaurant",)),
        (6, "restaurant", ("book_restaurant",)),
        (10, "hotel", ("find_hotel",)),
        (14, "hotel", ("book_hotel",)),
    ]
    assert {f.annotator for f in dialogue.frames if f.origin == "predicted" and f.service} == {"triage"}


def test_slot_values_accumulate(dialogue: Conversation) -> None:
    early = state(dialogue, 0, "restaurant").slots
    late = state(dialogue, 6, "restaurant").slots
    assert state(dialogue, 4, "restaurant").slots == {k: v for k, v in late.items() if k != "booktime"}
    assert early == {"food": ("basque",), "area": ("harbour", "harbor"), "pricerange": ("dontcare",)}
    assert late == early | {
        "name": ("txoko marea", "marea"),
        "bookpeople": ("3",),
        "bookday": ("friday",),
        "booktime": ("19:30", "half past seven"),  # either is right
    }
    # memory outlives the switch to the other domain
    assert [state(dialogue, seq, "restaurant").slots for seq in (10, 14, 18)] == [late, late, late]
    assert [state(dialogue, seq, "hotel").slots for seq in (0, 4, 6)] == [{}, {}, {}]
    searched = {"area": ("harbour", "harbor"), "bookpeople": ("3",), "parking": ("yes",)}
    chosen = searched | {"name": ("gull house",), "bookday": ("saturday",)}
    assert [state(dialogue, seq, "hotel").slots for seq in (10, 14, 18)] == [searched, chosen, chosen]


def test_predicted_slots(dialogue: Conversation) -> None:
    assert state(dialogue, 0, "restaurant", "predicted").slots == {"food": ("basque",), "area": ("harbour",)}
    booked = state(dialogue, 10, "restaurant", "predicted").slots
    assert state(dialogue, 6, "restaurant", "predicted").slots == booked
    assert state(dialogue, 14, "restaurant", "predicted").slots == booked
    assert state(dialogue, 4, "restaurant", "predicted").slots == {k: v for k, v in booked.items() if k != "booktime"}
    assert booked == {
        "food": ("basque",),
        "area": ("harbour",),
        "name": ("txoko marea",),
        "bookpeople": ("3",),
        "bookday": ("friday",),
        "booktime": ("19:30",),
    }
    gold = state(dialogue, 10, "hotel").slots
    predicted = state(dialogue, 10, "hotel", "predicted").slots
    assert set(predicted) - set(gold) == {"stars"}  # hallucinated
    assert set(gold) - set(predicted) == {"bookpeople"}  # missed
    assert predicted == {"area": ("harbour",), "parking": ("yes",), "stars": ("4",)}


def test_requested_slots(dialogue: Conversation) -> None:
    assert state(dialogue, 4, "restaurant").requested == ("phone",)
    assert state(dialogue, 4, "restaurant", "predicted").requested == ("phone",)
    asked = {(f.seq, f.service): f.requested for f in dialogue.frames if f.origin == "gold" and f.service}
    assert [key for key, slots in asked.items() if slots != ()] == [(4, "restaurant")]
    assert state(dialogue, 6, "restaurant", "predicted").requested is None  # not said


def test_acts_of_both_speakers(dialogue: Conversation) -> None:
    assert {seq: act_types(dialogue, seq, "gold") for seq in (0, 3, 4, 5, 9, 10, 13, 14, 17, 18, 19)} == {
        0: {"Restaurant-Inform", "Hotel-Inform"},
        3: {"Restaurant-Recommend", "Booking-Inform"},
        4: {"Restaurant-Inform", "Restaurant-Request"},
        5: {"Restaurant-Inform", "Booking-Request"},
        9: {"Booking-Book", "general-reqmore"},
        10: {"Hotel-Inform"},
        13: {"Hotel-Recommend"},
        14: {"Hotel-Inform"},
        17: {"Booking-Request"},
        18: {"general-thank"},
        19: {"general-bye"},
    }
    assert {seq: act_types(dialogue, seq, "predicted") for seq in (3, 5, 9, 13, 17)} == {
        3: {"Restaurant-Recommend"},
        5: {"Restaurant-Inform", "Booking-Request"},
        9: {"Booking-Book"},
        13: {"Hotel-Recommend"},
        17: {"Booking-Book"},
    }


def test_act_slots(dialogue: Conversation) -> None:
    inform, hotel = state(dialogue, 0, "").acts or ()
    assert [(s.slot, s.value) for s in inform.slots] == [
        ("food", "basque"),
        ("area", "harbour"),
        ("pricerange", "dontcare"),
    ]
    assert hotel.slots == ()
    _, request = state(dialogue, 4, "").acts or ()
    assert [(s.slot, s.value) for s in request.slots] == [("phone", None)]
    phone, time = state(dialogue, 5, "", "predicted").acts or ()
    assert [(s.slot, s.value) for s in (*phone.slots, *time.slots)] == [("phone", "555 0142"), ("time", None)]


def test_span_info(dialogue: Conversation) -> None:
    spans = [(frame.seq, span) for frame in dialogue.frames for span in frame.spans if not span.copied_from]
    assert [(seq, span.act, span.slot, span.value) for seq, span in spans] == [
        (0, "Restaurant-Inform", "food", "basque"),
        (0, "Restaurant-Inform", "area", "harbour"),
        (3, "Restaurant-Recommend", "name", "Txoko Marea"),
        (4, "Restaurant-Inform", "bookpeople", "3"),
        (4, "Restaurant-Inform", "bookday", "friday"),
        (9, "Booking-Book", "ref", "R7QK2"),
        (13, "Hotel-Recommend", "name", "Gull House"),
        (13, "Hotel-Recommend", "area", "harbour"),
        (14, "Hotel-Inform", "bookday", "saturday"),
    ]
    for seq, span in spans:
        assert dialogue.text(said(dialogue, seq))[span.start : span.end] == span.value


def test_the_area_is_carried_over_to_the_other_domain(dialogue: Conversation) -> None:
    hotel = state(dialogue, 10, "hotel")
    assert [(span.slot, span.copied_from, span.value, span.start) for span in hotel.spans] == [
        ("area", "restaurant-area", "harbour", None),
        ("bookpeople", "restaurant-bookpeople", "3", None),
    ]
    assert hotel.slots["area"] == state(dialogue, 6, "restaurant").slots["area"]
    assert state(dialogue, 10, "hotel", "predicted").slots["area"] == ("harbour",)


def test_policy(dialogue: Conversation) -> None:
    required = {"name", "bookday", "bookpeople", "bookstay"}
    assert required - set(state(dialogue, 14, "hotel", "predicted").slots) == {"bookstay"}
    # yet the booking was made, where the annotator would have asked
    booking = dialogue.tool_calls[-1]
    assert (booking.name, booking.arguments) == (
        "book_hotel",
        {"name": "gull house", "day": "saturday", "people": "3"},
    )
    assert dialogue.tool_results[booking.seq].result == {"reference": "H93ZD", "nights": 1}
    (gold,) = state(dialogue, 17, "").acts or ()
    assert [(s.slot, s.value) for s in gold.slots] == [("stay", None)]


def test_what_the_system_says_of_its_own_action(dialogue: Conversation) -> None:
    own = [(f.seq, f.extras["action"], f.extras["policy_compliant"]) for f in dialogue.frames if f.extras]
    assert own == [
        (0, "search", True),
        (4, "request", False),
        (6, "book", True),
        (10, "search", True),
        (14, "book", False),
    ]
    assert state(dialogue, 4, "restaurant", "predicted").extras["policy_reason"] == "booktime is missing"
    assert state(dialogue, 14, "hotel", "predicted").extras["policy_reason"] == "bookstay is missing"


def test_database_search(dialogue: Conversation) -> None:
    search = dialogue.tool_calls[0]
    assert (search.name, search.arguments) == ("search_restaurants", {"food": "basque", "area": "harbour"})
    found = dialogue.tool_results[search.seq].result
    assert [venue["name"] for venue in found] == ["txoko marea", "casa iria"]
    assert found[0]["phone"] == "555 0142"
    assert {c.name for c in dialogue.tool_calls} == {tool.name for tool in dialogue.agent.tools or ()}
    assert all(result.success for result in dialogue.tool_results.values())
    assert dialogue.tool_calls[2].arguments == {"area": "harbour", "parking": "yes"}
    assert dialogue.tool_results[11].result == [{"name": "gull house", "stars": "3"}]
    assert dialogue.tool_results[7].result == {"reference": "R7QK2"}


def test_customer_goal(dialogue: Conversation) -> None:
    assert dialogue.scenario is not None
    goal = dialogue.scenario.goal
    assert goal["restaurant"]["book"] == {"day": "friday", "people": "3", "time": "19:30"}
    assert goal["restaurant"]["reqt"] == ["phone"]
    assert goal["hotel"]["book"] == {"day": "saturday", "people": "3", "stay": "2"}
    assert goal["restaurant"]["info"] == {"food": "basque", "area": "harbour"}
    assert goal["hotel"]["info"] == {"area": "harbour", "parking": "yes"}


def test_a_score_of_a_judge_comes_as_an_external_label(dialogue: Conversation) -> None:
    assert [(label.subject, label.value, label.notes) for label in dialogue.labels] == [
        ("2", 4, "Correct and clear, one detail left out"),
        ("5", 2, "Booked without asking for the number of nights"),
    ]
    for label in dialogue.labels:
        assert (label.name, label.scale, label.subject_kind) == ("response_quality", "1-5", "turn")
        assert (label.rater, label.rater_kind, label.policy) == ("judge-large-1", "external", "rubric/1")
    assert dialogue.turns[4].id == 5  # the subject is a turn's id
    assert dialogue.turns[4].tool_calls == (dialogue.tool_calls[-1],)


def test_an_order_without_clocks(dialogue: Conversation) -> None:
    assert dialogue.clocks == ()
    assert all(event.time is None for event in dialogue.timeline)
