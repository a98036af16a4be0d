"""What someone found in a conversation: topics, risks, actions, entities, labels."""

from __future__ import annotations

from typing import Literal

import msgspec

from convoscope.conversation.dialogue_state import Origin
from convoscope.conversation.events import Json

TOPICS, RISKS, ACTIONS = "topics", "risks", "actions"
FAMILIES = (TOPICS, RISKS, ACTIONS)
"""What annotations are about."""
SEVERITY = "severity"
"""What an annotator may say in `extraction` that it does not provide, beside the families."""
SKIPPED = "skipped"
BROKEN = frozenset(("error", "failed"))
"""What `extraction` says of a family at which the annotator failed."""


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What every finding has. `events` are the seqs of the utterances that it rests on."""

    events: tuple[int, ...] = ()
    confidence: float | None = None
    evidence: str = ""
    notes: str = ""
    extras: dict[str, Json] = {}


class Topic(Finding, frozen=True, kw_only=True):
    """A subject that is talked about; `span` is the seq of its first and of its last utterance."""

    label: str
    span: tuple[int, int] | None = None


class Risk(Finding, frozen=True, kw_only=True):
    """A warning sign, for example escalation or churn_risk."""

    type: str
    severity: str = ""
    speaker: str = ""


class Action(Finding, frozen=True, kw_only=True):
    """Something that someone promised to do."""

    description: str
    verbatim: str = ""
    assignee: str = ""
    assignee_role: str = ""
    due: str = ""
    priority: str = ""
    status: str = ""


class Entity(Finding, frozen=True, kw_only=True):
    """A name, code, date, amount or number that matters."""

    type: str
    text: str
    value: str = ""


class Annotations(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Everything that one annotator found.

    A family that is None was not annotated; an empty one was, and nothing was found.
    """

    origin: Origin
    annotator: str = ""
    model: str = ""
    annotated_at: str = ""
    topics: tuple[Topic, ...] | None = None
    risks: tuple[Risk, ...] | None = None
    actions: tuple[Action, ...] | None = None
    entities: tuple[Entity, ...] | None = None
    summary: str | None = None
    extraction: dict[str, str] = {}
    """How each family went: success, partial, error, skipped."""
    extras: dict[str, Json] = {}


class Label(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A verdict that came with the data: a person's rating, or a vendor's own score."""

    name: str
    value: Json
    rater: str = ""
    rater_kind: Literal["human", "external"] = "human"
    subject_kind: str = "conversation"
    subject: str = ""
    scale: str = ""
    policy: str = ""
    """Version of the labelling instructions."""
    notes: str = ""
