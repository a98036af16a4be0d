"""The rule annotator: topics, risks with severity, and actions, found by lexicons and patterns. English only."""

from __future__ import annotations

from convoscope.annotate.annotator import CAPABILITIES, Capability
from convoscope.annotate.rules.actions import actions
from convoscope.annotate.rules.risks import risks
from convoscope.annotate.rules.sentences import sentences
from convoscope.annotate.rules.signs import VERSION, rules_hash
from convoscope.annotate.rules.topics import topics
from convoscope.conversation import Annotations, Conversation


class RuleAnnotator:
    """Finds what its data files describe; the same words give the same findings."""

    name = "rules"
    provides: frozenset[Capability] = frozenset(CAPABILITIES)

    @property
    def identity(self) -> str:
        """`rules/1@sha256:…`."""
        return f"{self.name}/{VERSION}@{rules_hash()}"

    def annotate(self, conversation: Conversation) -> Annotations:
        texts = sentences(conversation)
        call_risks = risks(texts)
        return Annotations(
            origin="predicted",
            annotator=self.name,
            model=self.identity,
            topics=topics(texts, call_risks),
            risks=call_risks,
            actions=actions(texts),
            extraction={"topics": "success", "risks": "success", "actions": "success", "resolution": "success"},
        )


ANNOTATOR = RuleAnnotator()
