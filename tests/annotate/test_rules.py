"""The rule annotator on sentences of our own: topics and risks that it must find, and those it must not."""

from __future__ import annotations

import pytest

from convoscope.annotate.rules.risks import RESOLVED_BY, SEVERITIES, types
from convoscope.annotate.rules.topics import labels
from convoscope.conversation import Risk
from support.annotated_calls import found, risks, topics

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
