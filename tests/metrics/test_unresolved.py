"""What was found in a conversation and left open; without an annotator nothing is measured."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

import convoscope
from convoscope.annotate.annotator import annotated
from convoscope.annotate.rules.annotator import ANNOTATOR
from convoscope.conversation import Action, Annotations, Conversation, Risk, Topic
from convoscope.metrics.unresolved import (
    actions_found,
    open_actions,
    risk_unresolved,
    topic_unresolved,
    topics_found,
    unowned_actions,
    unresolved_risks,
)
from convoscope.runs.sql import query
from convoscope.scoring.evaluate import observe
from support.chats import agent, told, user
from support.chats import chat as talk
from support.command_line import convoscope as command
from support.logs import chat, write_lines

ALL = (topics_found, actions_found, open_actions, unresolved_risks, unowned_actions, risk_unresolved, topic_unresolved)


def by_rules(*utterances: object) -> Conversation:
    return annotated(talk(*utterances), ANNOTATOR)  # type: ignore[arg-type]


def test_what_is_left_is_counted() -> None:
    """Two topics, delivery and refund; the churn risk stays, and nobody owns the promise."""
    call = by_rules(
        user("My parcel is lost and I want my money back."), agent("It will be refunded."), user("I'm leaving you.")
    )
    assert told(observe(topics_found, call)) == [("conversation", 2)]
    assert told(observe(unresolved_risks, call)) == [("conversation", 1)]
    assert told(observe(unowned_actions, call)) == [("conversation", 1)]
    assert told(observe(risk_unresolved, call)) == [("risk churn_risk", 1)]
    assert told(observe(topic_unresolved, call)) == [("topic delivery", 1), ("topic refund", 1)]


def test_a_risk_that_was_dealt_with_does_not_count() -> None:
    call = by_rules(user("Get me a supervisor about my parcel."), agent("Here it is."), user("Great, that works."))
    assert told(observe(unresolved_risks, call)) == [("conversation", 0)]
    assert told(observe(risk_unresolved, call)) == [("risk escalation", 0)]
    assert told(observe(topic_unresolved, call)) == [("topic complaint", 0), ("topic delivery", 0)]


def test_a_promise_is_open_until_somebody_says_that_it_is_done() -> None:
    """Two promises, to send the form and to call back; the first is kept, the second is not."""
    call = by_rules(
        user("Where is my form?"),
        agent("I'll send you the form now. I'll call you back tomorrow."),
        agent("I've just sent the form."),
    )
    assert told(observe(actions_found, call)) == [("conversation", 2)]
    (left,) = observe(open_actions, call)
    assert (left.value, len(left.details["actions"])) == (1, 1)
    assert left.details["actions"][0].startswith("Call")
    assert told(observe(unowned_actions, call)) == [("conversation", 0)]


def test_the_status_of_an_action_is_believed() -> None:
    actions = (Action(description="Send it", status="Done"), Action(description="Call", status="pending"))
    call = replace(
        talk(user("Hello."), agent("Hello.")),
        annotations=(Annotations(origin="predicted", annotator="x", actions=actions),),
    )
    assert told(observe(open_actions, call)) == [("conversation", 1)]
    without = (Annotations(origin="predicted", annotator="x", actions=(*actions, Action(description="Write"))),)
    assert told(observe(open_actions, replace(call, annotations=without))) == [
        ("conversation", "unmeasured: annotator_does_not_provide")
    ]
    nothing = (Annotations(origin="predicted", annotator="x", actions=()),)
    assert told(observe(open_actions, replace(call, annotations=nothing))) == [("conversation", 0)]


def test_nothing_found_is_a_zero_and_no_subject() -> None:
    call = by_rules(user("What is the time?"), agent("Ten."))
    assert told(observe(topics_found, call)) == [("conversation", 0)]
    assert told(observe(unresolved_risks, call)) == [("conversation", 0)]
    assert told(observe(unowned_actions, call)) == [("conversation", 0)]
    assert told(observe(risk_unresolved, call)) == [("conversation", "not_applicable: no_risk_found")]
    assert told(observe(topic_unresolved, call)) == [("conversation", "not_applicable: no_topic_found")]


def test_without_an_annotator_nothing_is_measured() -> None:
    call = talk(user("I'm going to sue you."), agent("Oh."))
    for metric in ALL:
        assert told(observe(metric, call)) == [("conversation", "unmeasured: not_annotated")]


def test_another_language_is_unmeasured() -> None:
    call = by_rules(user("Ich möchte mein Geld zurück, das ist nicht gut."), agent("Das ist nicht möglich."))
    for metric in ALL:
        assert told(observe(metric, call)) == [("conversation", "unmeasured: language_not_supported")]


def test_what_an_annotator_does_not_provide_is_unmeasured() -> None:
    """A transcript that holds risks does not say whether anybody dealt with them."""
    call = talk(user("Hello."), agent("Hello."))
    held = Annotations(origin="predicted", topics=(Topic(label="billing"),), risks=(Risk(type="escalation"),))
    call = Conversation(id="c", participants=call.participants, timeline=call.timeline, annotations=(held,))
    assert told(observe(topics_found, call)) == [("conversation", 1)]
    assert told(observe(unresolved_risks, call)) == [("conversation", "unmeasured: annotator_does_not_provide")]
    assert told(observe(unowned_actions, call)) == [("conversation", "unmeasured: annotator_does_not_provide")]


class TestARun:
    def logs(self, folder: Path) -> Path:
        return write_lines(
            folder / "chats.jsonl",
            chat("a", "My parcel is late and this is unacceptable.", "I'll call the courier today."),
            chat("b", "Where is my parcel?", "On its way."),
            chat("c", "I forgot my password.", "I'll send you a link."),
        )

    def test_groups_by_topic_and_keeps_what_was_found(self, tmp_path: Path) -> None:
        run = convoscope.score(self.logs(tmp_path), annotate="rules", metrics=["semantic"], out=tmp_path / "run")
        groups = {group.by["topic"]: group for group in run.summary.groups if "topic" in group.by}
        shares = {
            topic: [one.value for one in group.metrics if one.metric == "semantic.topic_unresolved"]
            for topic, group in groups.items()
        }
        # delivery: a has an unresolved risk, b has none.
        assert shares["delivery"] == [0.5]
        assert shares["account_access"] == [0.0]
        assert run.receipt.config["annotate"] == ANNOTATOR.identity
        (held,) = query([run], "SELECT body FROM conversations WHERE conversation = 'a'").rows[0]
        assert '"Call the courier"' in str(held)

    def test_by_topic_on_the_command_line(self, tmp_path: Path) -> None:
        ended = command(
            "score", str(self.logs(tmp_path)), "--annotate", "rules", "--metrics", "semantic", "--by", "topic",
            "--out", str(tmp_path / "run"), "--full",
        )  # fmt: skip
        assert ended.code == 0
        assert "by topic" in ended.out
        assert ["delivery", "2", "50.0", "%"] in [line.split() for line in ended.out.splitlines()]

    def test_an_unknown_annotator_is_refused(self, tmp_path: Path) -> None:
        ended = command("score", str(self.logs(tmp_path)), "--annotate", "gpt", "--out", str(tmp_path / "run"))
        assert ended.code == 2
        assert "unknown annotator 'gpt'" in ended.err
        assert "rules" in ended.err
