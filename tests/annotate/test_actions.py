"""Promises, as the rule annotator writes them down."""

from __future__ import annotations

import pytest

from support.annotated_calls import actions, found


class TestActions:
    @pytest.mark.parametrize(
        ("line", "action"),
        [
            ("a: I'll send you the proposal by tomorrow.", ("Send the proposal", "agent", "by tomorrow")),
            ("a: We’ll call you back within two hours.", ("Call the customer back", "team", "within two hours")),
            ("a: Okay, I will go ahead and issue the refund today.", ("Issue the refund", "agent", "today")),
            ("a: Our billing team will review your charge.", ("Review the charge", "team", "")),
            ("a: Let me book a technician for Friday morning.", ("Book a technician", "agent", "for Friday morning")),
            ("a: Someone will contact you shortly.", ("Contact the customer", "unknown", "")),
            ("a: The nurse will ring you the day before.", ("Ring the customer", "team", "the day before")),
            ("a: Ms Rowe will reply within a week.", ("Reply to the customer", "team", "within a week")),
            ("a: I'll put a note on your profile so it isn't flagged.", ("Put a note on the profile", "agent", "")),
            ("a: I'll get back to you by the 3rd of May.", ("Get back to the customer", "agent", "by the 3rd of May")),
            ("a: Your card will be replaced on Monday.", ("Replace the card", "unknown", "on Monday")),
            ("u: I'll email you the photos tonight.", ("Email the photos", "customer", "tonight")),
            ("a: I'll cancel the second order for you.", ("Cancel the second order", "agent", "")),
            ("a: Tomorrow I'll send the contract.", ("Send the contract", "agent", "Tomorrow")),
            ("a: I'm going to escalate this to my lead.", ("Escalate this to the lead", "agent", "")),
            ("u: I'll let you know by Friday.", ("Let the agent know", "customer", "by Friday")),
            ("a: I'm handing the file to claims today.", ("Hand the file to claims", "agent", "today")),
            ("a: Our developers are fixing the form tonight.", ("Fix the form", "team", "tonight")),
            ("u: I send you the list tomorrow.", ("Send the list", "customer", "tomorrow")),
            ("a: The meter has to be read before Friday.", ("Read the meter", "unknown", "before Friday")),
            ("a: The sum will be paid back by our office.", ("Pay back the sum", "team", "")),
            ("a: I'll text you when it's through.", ("Text the customer", "agent", "when it's through")),
        ],
    )
    def test_a_promise_is_a_description(self, line: str, action: tuple[str, str, str]) -> None:
        assert actions(line) == [action]

    def test_two_promises_in_a_sentence(self) -> None:
        assert actions("a: I'll check with the depot and call you back tomorrow.") == [
            ("Check with the depot", "agent", ""),
            ("Call the customer back", "agent", "tomorrow"),
        ]

    def test_the_second_promise_may_speak_of_the_first(self) -> None:
        assert actions("u: I'll fill in the form and return it by post.") == [
            ("Fill in the form", "customer", ""),
            ("Return the form by post", "customer", ""),
        ]

    def test_where_and_verbatim(self) -> None:
        (action,) = found("u: Hello.", "a: Sorry. Yes, I’ll send it today.").actions or ()
        assert (action.events, action.verbatim, action.assignee) == ((1,), "I’ll send it today.", "assistant")

    @pytest.mark.parametrize(
        "line",
        [
            "a: I'll be happy to help.",
            "a: Let me see.",
            "a: Let me check your account.",
            "u: I will cancel my subscription.",
            "u: You said you'll call me.",
            "u: If it is not here tomorrow, I'll call again.",
            "a: Will you send me the form?",
            "a: I won't charge you.",
            "u: I'll wait.",
            "u: I'll think about it.",
            "a: I'm sending the link right now.",
            "a: I've sent it.",
            "a: You'll get a letter.",
            "u: I'll carry it myself before I pay that.",
            "u: My brother will collect it.",
            "a: I'll ask you two questions.",
            "a: I might call you tomorrow.",
            "a: We have a course every Tuesday.",
            "a: I'll block it. Done.",
            "u: I'll talk to my husband about it.",
        ],
    )
    def test_what_is_no_promise(self, line: str) -> None:
        assert actions(line) == []

    def test_a_promise_that_nobody_owns(self) -> None:
        assert actions("a: It will be fixed by Friday.") == [("Fix it", "unknown", "by Friday")]

    @pytest.mark.parametrize(
        ("lines", "action"),
        [
            (("u: I bought a toaster and it smokes.", "a: We'll replace it."), ("Replace the toaster", "team", "")),
            (("a: I need a copy of the lease.", "u: I'll scan it tonight."), ("Scan the lease", "customer", "tonight")),
            (("u: Doctor Bose was so kind.", "a: I'll tell her."), ("Tell Doctor Bose", "agent", "")),
            (("u: The label and two letters came.", "a: I'll copy them."), ("Copy the letters", "agent", "")),
            (("u: There is a receipt and a parcel.", "a: We'll collect it."), ("Collect the parcel", "team", "")),
        ],
    )
    def test_a_pronoun_becomes_what_it_stands_for(self, lines: tuple[str, ...], action: tuple[str, str, str]) -> None:
        assert actions(*lines) == [action]

    @pytest.mark.parametrize(
        ("lines", "action"),
        [
            (
                ("u: Could you send the form to my work address?", "a: Certainly, by tonight."),
                ("Send the form to the work address", "agent", "by tonight"),
            ),
            (("u: Send me that offer, would you?", "a: With pleasure."), ("Send the offer", "agent", "")),
            (("a: Shall I email you the terms?", "u: Yes, do."), ("Email the terms", "agent", "")),
            (("a: Could you post the letter back?", "u: I'll do that."), ("Post the letter back", "customer", "")),
            (("a: Please send us the form.", "u: Very well."), ("Send the form", "customer", "")),
        ],
    )
    def test_a_request_that_is_accepted(self, lines: tuple[str, ...], action: tuple[str, str, str]) -> None:
        assert actions(*lines) == [action]

    @pytest.mark.parametrize(
        "lines",
        [
            ("u: Could you send me the form?", "a: I'm afraid not."),
            ("u: Could you send me the form?", "a: Done."),
            ("a: Shall I email you the terms?", "u: No, thanks."),
            ("a: Shall I email you the terms?", "u: Yes, do.", "a: I've sent them."),
            ("u: Could you tell me the price?", "a: Of course, it's ten."),
            ("u: Could you send me the form?",),
        ],
    )
    def test_a_request_that_is_not_accepted_or_done_at_once(self, lines: tuple[str, ...]) -> None:
        assert actions(*lines) == []

    def test_a_promise_made_twice_is_one_action(self) -> None:
        assert actions("a: I'll send the form.", "u: Thanks.", "a: I'll send the form to your office.") == [
            ("Send the form to the office", "agent", "")
        ]

    def test_what_is_done_on_the_phone_is_a_promise_only_with_a_later_time(self) -> None:
        assert actions("a: I'll check the meter.") == []
        assert actions("a: I'll check the meter on Friday.") == [("Check the meter", "agent", "on Friday")]
