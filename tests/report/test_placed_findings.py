"""Where in a conversation a topic, a risk or an action was found."""

from __future__ import annotations

import msgspec

from convoscope.conversation import Action, Annotations, Conversation, Risk, Topic
from convoscope.report.story import by_seq, placed_findings
from support.chats import agent, chat, user


def _conversation(*annotations: Annotations) -> Conversation:
    said = (user("Hello?"), agent("Yes?"), user("A bill."), agent("Oh."), user("Fine."), agent("I'll send a form."))
    return msgspec.structs.replace(chat(*said), annotations=annotations)


def test_each_finding_says_who_found_what_and_where() -> None:
    findings = placed_findings(
        _conversation(
            Annotations(
                origin="predicted",
                annotator="rules",
                topics=(Topic(label="billing", events=(1, 3)), Topic(label="refund", span=(2, 5))),
                risks=(
                    Risk(type="churn_risk", severity="high", events=(1,)),
                    Risk(type="escalation", events=(2,), extras={"resolved_by": 4}),
                ),
                actions=(Action(description="Send form", assignee_role="agent", due="today", events=(5,)),),
                extraction={"resolution": "success"},
            ),
            Annotations(origin="gold", annotator="human", topics=(Topic(label="billing"),)),
        )
    )
    assert [(one.by, one.text, one.seqs, one.is_open) for one in findings] == [
        ("found by rules", "topic billing", (1, 3), False),
        ("found by rules", "topic refund", (2, 5), False),
        ("found by rules", "risk churn risk, high, unresolved", (1,), True),
        ("found by rules", "risk escalation, resolved later", (2,), False),
        ("found by rules", "resolves escalation", (4,), False),
        ("found by rules", "action Send form, of agent, due today", (5,), False),
        ("labelled by human", "topic billing", (), False),
    ]
    # At 1: a topic and a risk. What has no place is at none, and still listed above.
    assert {seq: len(found) for seq, found in by_seq(findings).items()} == {1: 2, 2: 2, 3: 1, 4: 1, 5: 2}


def test_who_did_not_look_for_resolutions_says_nothing_of_them() -> None:
    [finding] = placed_findings(
        _conversation(
            Annotations(origin="predicted", risks=(Risk(type="churn_risk"),), actions=()),
        )
    )
    assert finding.text == "risk churn risk"
    assert finding.by == "found by an annotator without a name"
    assert not finding.is_open
