"""The rule annotator on sentences of our own: what it must find, and what it must not."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.annotate.annotator import (
    LANGUAGE_NOT_SUPPORTED,
    NO_WORDS,
    annotated,
    annotations_of,
    annotator_named,
    failure_of,
)
from convoscope.annotate.rules.annotator import ANNOTATOR
from convoscope.annotate.rules.data import rules_hash
from convoscope.annotate.rules.risks import RESOLVED_BY, SEVERITIES, types
from convoscope.annotate.rules.sentences import _sentences as pieces
from convoscope.annotate.rules.topics import labels
from convoscope.conversation import Annotations, Conversation, Participant, Risk, Text, Utterance
from convoscope.errors import UsageError

CALLER, AGENT, SOMEBODY = (
    Participant("user", "user"),
    Participant("assistant", "assistant"),
    Participant("x", "unknown"),
)


def call(*lines: str, **fields: object) -> Conversation:
    """`u: …` is the caller, `a: …` the agent, `x: …` somebody."""
    who = {"u": "user", "a": "assistant", "x": "x"}
    spoken = [line.partition(": ") for line in lines]
    return Conversation(
        id="c",
        participants=tuple(one for one in (CALLER, AGENT, SOMEBODY) if one.id in {who[mark] for mark, _, _ in spoken}),
        timeline=tuple(
            Utterance(seq=seq, speaker=who[mark], intended=Text(text)) for seq, (mark, _, text) in enumerate(spoken)
        ),
        **fields,  # type: ignore[arg-type]
    )


def found(*lines: str) -> Annotations:
    return ANNOTATOR.annotate(call(*lines))


def risks(*lines: str) -> dict[str, str]:
    return {one.type: one.severity for one in found(*lines).risks or ()}


def topics(*lines: str) -> list[str]:
    return [one.label for one in found(*lines).topics or ()]


def actions(*lines: str) -> list[tuple[str, str, str]]:
    return [(one.description, one.assignee_role, one.due) for one in found(*lines).actions or ()]


VOCABULARY = [
    "pricing",
    "billing",
    "contract",
    "features",
    "subscription",
    "renewal",
    "technical_support",
    "account_access",
    "setup",
    "integration",
    "bug_report",
    "complaint",
    "feedback",
    "satisfaction",
    "onboarding",
    "training",
    "scheduling",
    "delivery",
    "returns",
    "refund",
    "warranty",
]
RISK_TYPES = [
    "escalation",
    "churn_risk",
    "compliance",
    "sentiment_negative",
    "pricing_objection",
    "competitor_mention",
    "customer_frustration",
    "agent_error",
]


def test_the_vocabulary_is_that_of_the_benchmark() -> None:
    assert sorted(labels()) == sorted(VOCABULARY)
    assert sorted(types()) == sorted(RISK_TYPES)


class TestTopics:
    @pytest.mark.parametrize(
        ("line", "topic"),
        [
            ("How much does the larger one cost?", "pricing"),
            ("I was charged twice this month.", "billing"),
            ("We need to change a clause in the contract.", "contract"),
            ("Does your app support exporting to Excel?", "features"),
            ("I'd like to pause my membership.", "subscription"),
            ("Our licence is up for renewal.", "renewal"),
            ("The router keeps restarting and I have no internet.", "technical_support"),
            ("I forgot my password and I'm locked out.", "account_access"),
            ("Can you help me install the printer?", "setup"),
            ("Does it have an API for our shop?", "integration"),
            ("The app crashes when I tap save.", "bug_report"),
            ("I want to make a complaint about the driver.", "complaint"),
            ("It would be nice if you added a search box.", "feedback"),
            ("I'm really happy with the new one.", "satisfaction"),
            ("When is our welcome call?", "onboarding"),
            ("Is there a webinar for my staff?", "training"),
            ("Could we reschedule for Friday?", "scheduling"),
            ("My parcel hasn't arrived.", "delivery"),
            ("I need a return label.", "returns"),
            ("I want my money back.", "refund"),
            ("Is it still under warranty?", "warranty"),
        ],
    )
    def test_each_label(self, line: str, topic: str) -> None:
        assert topic in topics(f"u: {line}")

    @pytest.mark.parametrize(
        ("line", "topic"),
        [
            ("Could you return my call?", "returns"),
            ("I'm not calling about the bill.", "billing"),
            ("No complaints from me.", "complaint"),
            ("I'm not really satisfied with it.", "satisfaction"),
            ("Can we set up a call for Monday?", "setup"),
            ("There are a billion stars.", "billing"),
            ("That time doesn't work for me.", "technical_support"),
        ],
    )
    def test_words_that_mean_something_else(self, line: str, topic: str) -> None:
        assert topic not in topics(f"u: {line}")

    def test_one_weak_word_is_not_enough_and_two_are(self) -> None:
        assert "technical_support" not in topics("u: The modem is blue.")
        assert "technical_support" in topics("u: The modem is slow.")

    def test_where_it_was_found(self) -> None:
        (topic,) = found("a: Hello.", "u: My parcel is lost.", "a: I see.", "u: The courier lost it.").topics or ()
        assert (topic.label, topic.events, topic.span) == ("delivery", (1, 3), (1, 3))


class TestRisks:
    @pytest.mark.parametrize(
        ("line", "type", "severity"),
        [
            ("I need to speak to a manager.", "escalation", "high"),
            ("Put me through to your supervisor.", "escalation", "high"),
            ("Please escalate this.", "escalation", "high"),
            ("I will cancel my subscription.", "churn_risk", "high"),
            ("I canceled yesterday.", "churn_risk", "high"),
            ("I’m thinking about leaving.", "churn_risk", "medium"),
            ("I'm taking my business elsewhere.", "churn_risk", "high"),
            ("If it isn't fixed I'm taking my business elsewhere.", "churn_risk", "medium"),
            ("We won't be renewing.", "churn_risk", "high"),
            ("I call my lawyer.", "compliance", "high"),
            ("I'm going to sue you.", "compliance", "high"),
            ("I've filed a complaint with the ombudsman.", "compliance", "critical"),
            ("I can see another customer's details.", "compliance", "critical"),
            ("Is that even legal?", "compliance", "medium"),
            ("I'm not saying I'll take you to court, but I could.", "compliance", "medium"),
            ("I'll report you to the ombudsman.", "compliance", "high"),
            ("I am absolutely furious.", "sentiment_negative", "medium"),
            ("I am furious, this is a disgrace.", "sentiment_negative", "high"),
            ("You are a bunch of crooks.", "sentiment_negative", "high"),
            ("That's a bit mean.", "sentiment_negative", "low"),
            ("I'm really frustrated.", "sentiment_negative", "high"),
            ("This is unacceptable.", "sentiment_negative", "medium"),
            ("Oh great, another form.", "sentiment_negative", "low"),
            ("I'm not happy with this.", "sentiment_negative", "low"),
            ("I'm not paying that.", "pricing_objection", "high"),
            ("That's way too expensive.", "pricing_objection", "medium"),
            ("It is over our budget.", "pricing_objection", "medium"),
            ("It's a bit pricey.", "pricing_objection", "low"),
            ("Your competitor does it for half.", "competitor_mention", "medium"),
            ("Acme offered us the same for less.", "competitor_mention", "medium"),
            ("I've asked five times since May.", "customer_frustration", "high"),
            ("This is the third time I've called.", "customer_frustration", "medium"),
            ("It's still not working.", "customer_frustration", "low"),
            ("I've been waiting for three weeks.", "customer_frustration", "medium"),
            ("I've been waiting for three months.", "customer_frustration", "high"),
            ("I lost two days' wages.", "customer_frustration", "high"),
            ("You sent me the wrong size.", "agent_error", "medium"),
        ],
    )
    def test_each_type_and_its_severity(self, line: str, type: str, severity: str) -> None:
        assert risks(f"u: {line}").get(type) == severity

    @pytest.mark.parametrize(
        "line",
        [
            "u: The product manager will join.",
            "u: My manager asked me to call.",
            "u: The light switch is broken.",
            "a: Do not leave yet.",
            "u: Don't worry, I'm not going to cancel.",
            "u: I don’t want to speak to a manager.",
            "u: I'd like to cancel my appointment.",
            "u: I'm not angry.",
            "u: My wife is furious.",
            "u: It's not too expensive.",
            "u: Our legal team is reviewing the contract.",
            "u: I was wrong, that was my mistake.",
            "a: You may cancel your subscription at any time.",
            "a: Would you like to speak to a manager?",
            "u: Please leave the parcel at the door.",
            "u: Does it integrate with Salesforce?",
        ],
    )
    def test_what_is_no_risk(self, line: str) -> None:
        assert risks(line) == {}

    @pytest.mark.parametrize(
        ("lines", "type"),
        [
            # Negation.
            (("u: And before you ask, I'm not going to cancel over six pounds.",), "churn_risk"),
            (("u: I certainly don't need the manager.",), "escalation"),
            (("u: I'm not cross.",), "sentiment_negative"),
            # Tense: what was asked for and done is past.
            (("u: I spoke to a supervisor last week.",), "escalation"),
            # Speaker: an agent may say it.
            (("a: You could go to the ombudsman.",), "compliance"),
            (("a: If you want to cancel your contract, press one.",), "churn_risk"),
            # A third person.
            (("u: My neighbour swears she'll sue you.",), "compliance"),
            (("u: My neighbour is leaving you, he says.",), "churn_risk"),
            # A name or a trade.
            (("u: I am the manager. I manage the flower shop.",), "escalation"),
            (("u: I run the IT for a small legal department.",), "compliance"),
            (("u: Is the light switch covered?",), "churn_risk"),
            (("a: Do not leave yet.",), "churn_risk"),
            # Another thing is cancelled.
            (("u: I need to cancel my flight to Oslo.",), "churn_risk"),
            (("u: I'd like to cancel that order.",), "churn_risk"),
        ],
    )
    def test_guards(self, lines: tuple[str, ...], type: str) -> None:
        assert type not in risks(*lines)

    @pytest.mark.parametrize(
        "line",
        [
            "Oh great, another form.",
            "Thanks for nothing.",
            "That's not a time slot, that's a lifestyle.",
            "Well, hallelujah.",
            "Wonderful, just wonderful.",
        ],
    )
    def test_sarcasm_is_no_satisfaction(self, line: str) -> None:
        assert "sentiment_negative" in risks(f"u: {line}")
        assert "satisfaction" not in topics(f"u: {line}")

    @pytest.mark.parametrize(
        ("lines", "type", "severity"),
        [
            # A condition is less than an intent.
            (("u: I'm going to another provider.",), "churn_risk", "high"),
            (("u: If that doesn't help, I'm going to another provider.",), "churn_risk", "medium"),
            # Contentment afterwards makes it one step less severe; before, it does not.
            (("u: That's far too much.", "a: I can do ten.", "u: That's fair."), "pricing_objection", "low"),
            (("u: That's fair.", "u: That's far too much."), "pricing_objection", "medium"),
            (("u: That's far too much.", "a: I can do ten.", "u: That's not fair."), "pricing_objection", "medium"),
            # A mistake that costs money.
            (("a: Sorry, that was our mistake.",), "agent_error", "medium"),
            (("u: I was charged twice.", "a: Sorry, that was our mistake."), "agent_error", "high"),
            # A polite wish, a demand.
            (("u: Might I speak to your manager?",), "escalation", "medium"),
            (("u: I want to speak to your manager.",), "escalation", "high"),
            (("u: I insist on speaking to a manager.",), "escalation", "high"),
            (("u: I want your manager.", "a: I can't do that.", "u: I want your manager."), "escalation", "critical"),
            (("u: I want your manager.", "a: One moment.", "u: I want your manager."), "escalation", "high"),
            (("u: I'll post it all on Facebook.",), "escalation", "critical"),
            # Whoever stays takes it back; a whole firm is more than one.
            (("u: I'm leaving you.", "a: I can do ten.", "u: Then I'll stay."), "churn_risk", "medium"),
            (("u: We want to cancel our contract.", "u: It's for all our vans."), "churn_risk", "critical"),
            # How often.
            (("u: I've called twice about it.",), "customer_frustration", "low"),
            (("u: I've written eight emails about it.",), "customer_frustration", "high"),
        ],
    )
    def test_what_moves_the_severity(self, lines: tuple[str, ...], type: str, severity: str) -> None:
        assert risks(*lines).get(type) == severity

    def test_failed_attempts_alone_are_frustration_only(self) -> None:
        assert risks("u: This is the third time I've called.") == {"customer_frustration": "medium"}

    def test_praise_where_something_went_wrong_is_irony(self) -> None:
        assert risks("u: This is the third time I've called.", "u: Brilliant work.")["sentiment_negative"] == "low"
        assert "sentiment_negative" not in risks("u: It came on time.", "u: Brilliant work.")

    def test_who_says_it_matters(self) -> None:
        assert risks("a: I'm sorry, that was my mistake.") == {"agent_error": "medium"}
        assert "agent_error" not in risks("u: Sorry, that was my mistake.")

    def test_without_roles_anybody_may_say_it(self) -> None:
        assert risks("x: I need to speak to a manager.") == {"escalation": "high"}

    def test_several_signs_of_a_type_are_one_risk(self) -> None:
        (risk,) = [
            one
            for one in found("u: I might cancel.", "a: Oh.", "u: I will cancel my plan.").risks or ()
            if one.type == "churn_risk"
        ]
        assert (risk.severity, risk.events, risk.speaker) == ("high", (0, 2), "user")
        assert risk.evidence == "I will cancel my plan."

    def test_severities_are_those_that_a_type_may_have(self) -> None:
        from convoscope.annotate.rules.risks import _rules

        allowed = {type: {"low", "medium", "high"} for type in RISK_TYPES}
        allowed["escalation"] = allowed["churn_risk"] = set(SEVERITIES)
        allowed["compliance"] = {"medium", "high", "critical"}
        allowed["competitor_mention"] = {"low", "medium"}
        for rule in _rules():
            assert {sign.severity for sign in rule.signs} <= allowed[rule.type], rule.type


class TestResolution:
    def risk(self, *lines: str) -> Risk:
        (risk,) = [one for one in found(*lines).risks or () if one.type == "escalation"]
        return risk

    def test_a_later_cue_resolves_it(self) -> None:
        risk = self.risk("u: I want to talk to a supervisor.", "a: I've fixed it.", "u: Great, that works.")
        assert risk.extras == {RESOLVED_BY: 2}

    @pytest.mark.parametrize(
        "lines",
        [
            ("u: Thanks. I want to talk to a supervisor.",),
            ("u: I want to talk to a supervisor.", "u: Thanks for nothing."),
            ("u: I want to talk to a supervisor.", "u: That doesn't help."),
            ("u: I want to talk to a supervisor.", "a: Thank you for your patience."),
        ],
    )
    def test_nothing_resolves_it(self, lines: tuple[str, ...]) -> None:
        assert self.risk(*lines).extras == {}

    def test_a_hand_over_resolves_an_escalation_only(self) -> None:
        lines = ("u: I'm furious, get me a supervisor.", "a: I'm transferring you now.")
        resolved = {one.type: RESOLVED_BY in one.extras for one in found(*lines).risks or ()}
        assert resolved == {"escalation": True, "sentiment_negative": False}


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


class TestLanguage:
    @pytest.mark.parametrize(
        "line",
        [
            "Ich möchte mein Abo kündigen, das ist nicht in Ordnung.",
            "Je veux annuler mon abonnement, ce n'est pas acceptable.",
            "Quiero cancelar mi suscripción, no está bien.",
            "解約したいです。",
            "Я хочу отменить подписку.",
        ],
    )
    def test_another_language_is_not_annotated(self, line: str) -> None:
        annotations = annotations_of(call(f"u: {line}"), ANNOTATOR)
        assert (annotations.topics, annotations.risks, annotations.actions) == (None, None, None)
        failure = failure_of(annotations)
        assert failure is not None
        assert failure.reason == LANGUAGE_NOT_SUPPORTED

    @pytest.mark.parametrize(
        ("told", "measured"), [("en-US", True), ("English", True), ("de", False), ("fr-FR", False)]
    )
    def test_the_log_is_believed(self, told: str, measured: bool) -> None:
        annotations = annotations_of(call("u: Ja, taxi.", extras={"language": told}), ANNOTATOR)
        assert (annotations.risks is not None) == measured

    @pytest.mark.parametrize("line", ["OK.", "Yes.", "No. No, no.", "Where's my parcel? It's late."])
    def test_short_english_is_english(self, line: str) -> None:
        assert failure_of(annotations_of(call(f"u: {line}"), ANNOTATOR)) is None

    @pytest.mark.parametrize(
        "lines",
        [
            (
                "a: Guten Tag, hier ist der Kundendienst.",
                "u: Ich bin sehr wütend, das ist nicht in Ordnung und ich möchte kündigen.",
            ),
            (
                "a: Buenos días, ¿en qué puedo ayudarle?",
                "u: Estoy muy enfadado, no me han devuelto el dinero y quiero hablar con el jefe.",
            ),
            (
                "a: Bonjour, comment puis-je vous aider ?",
                "u: Je suis furieux, ce n'est pas normal et je veux parler à votre responsable.",
            ),
            ("u: Siparişim hâlâ gelmedi ve kimse bana cevap vermiyor, müdürünüzle konuşmak istiyorum lütfen.",),
        ],
    )
    @pytest.mark.parametrize("extras", [{}, {"language": "en"}])
    def test_words_of_another_language_are_not_annotated_whatever_the_log_says(
        self, lines: tuple[str, ...], extras: dict[str, str]
    ) -> None:
        annotations = annotations_of(call(*lines, extras=extras), ANNOTATOR)
        assert annotations.risks is None
        assert failure_of(annotations) is not None
        assert failure_of(annotations).reason == LANGUAGE_NOT_SUPPORTED  # type: ignore[union-attr]

    def test_an_english_call_with_foreign_names_is_english(self) -> None:
        lines = ("a: Hotel Bellavista, Via Roma.", "u: Hola! Is this the Casa del Sol, or La Perla? I booked with you.")
        assert failure_of(annotations_of(call(*lines), ANNOTATOR)) is None

    def test_no_words_at_all(self) -> None:
        failure = failure_of(annotations_of(Conversation(id="c"), ANNOTATOR))
        assert failure is not None
        assert failure.reason == NO_WORDS


class TestAnnotators:
    def test_a_failure_is_not_found_nothing(self) -> None:
        class Broken:
            name = "broken"
            provides = ANNOTATOR.provides
            identity = "broken/1"

            def annotate(self, conversation: Conversation) -> Annotations:
                raise ValueError(conversation.id)

        annotations = annotations_of(call("u: Hi."), Broken())
        assert (annotations.topics, annotations.risks, annotations.actions) == (None, None, None)
        assert annotations.extraction == {"topics": "error", "risks": "error", "actions": "error"}
        assert failure_of(annotations) == ("annotation_failed", "ValueError: c")

    def test_what_is_not_provided_is_null_or_skipped(self) -> None:
        class Tags:
            """Finds types of risk without severity, and no topics."""

            name = "tags"
            provides = frozenset({"risks"})
            identity = "tags/1"

            def annotate(self, conversation: Conversation) -> Annotations:
                return Annotations(origin="predicted", topics=(), risks=(Risk(type="escalation"),))

        annotations = annotations_of(call("u: Hi."), Tags())  # type: ignore[arg-type]
        assert (annotations.topics, annotations.actions) == (None, None)
        assert annotations.risks == (Risk(type="escalation"),)
        assert annotations.extraction == dict.fromkeys(
            ("topics", "severity", "actions", "assignee_role", "due", "verbatim"), "skipped"
        )

    def test_it_is_added_once_beside_others(self) -> None:
        gold = Annotations(origin="gold", topics=())
        conversation = annotated(call("u: My bill is wrong.", annotations=(gold,)), ANNOTATOR)
        assert conversation.annotations[0] == gold
        assert conversation.annotations[1].model == f"rules/3@{rules_hash()}"
        assert annotated(conversation, ANNOTATOR) is conversation

    def test_by_name(self) -> None:
        assert annotator_named("rules") is ANNOTATOR
        with pytest.raises(UsageError, match="unknown annotator 'gpt'"):
            annotator_named("gpt")


@given(st.lists(st.text(max_size=200), min_size=1, max_size=5))
def test_any_words_can_be_annotated(lines: list[str]) -> None:
    """Whatever is said, findings point at what was said, and the same words give the same findings."""
    conversation = call(*(f"u: {line}" for line in lines))
    annotations = annotations_of(conversation, ANNOTATOR)
    assert annotations == annotations_of(conversation, ANNOTATOR)
    assert failure_of(annotations) is None or failure_of(annotations).reason != "annotation_failed"  # type: ignore[union-attr]
    for finding in (*(annotations.topics or ()), *(annotations.risks or ()), *(annotations.actions or ())):
        assert finding.events


@pytest.mark.parametrize(
    "text",
    ["a", " ", ". ", "the bill is wrong and ", "I'll send you the form ", ".\"'", "five hundred and ", "not about "],
)
def test_a_long_segment_is_read_piece_by_piece(text: str) -> None:
    """No pattern sees more than a thousand letters, whatever a segment of a million holds."""
    conversation = call(f"u: {(text * 1_000_000)[:1_000_000]}")
    assert all(len(one.text) <= 1_000 for one in pieces(conversation))


def test_the_time_grows_with_the_text_only() -> None:
    """Four times as many promises, each another one: far less than the sixteen times of a square."""

    def seconds(promises: int) -> float:
        text = " ".join(f"I'll send the form{number} and the list{number}." for number in range(promises))
        start = time.process_time()
        annotations = annotations_of(call(f"a: {text}", extras={"language": "en"}), ANNOTATOR)
        assert len(annotations.actions or ()) == promises
        return time.process_time() - start

    seconds(1)
    assert seconds(2_000) < 10 * seconds(500)
