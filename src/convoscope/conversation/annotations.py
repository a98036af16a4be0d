"""What an annotator found in a conversation: dialogue states, topics, risks, actions, entities, labels."""

from __future__ import annotations

from typing import Literal

import msgspec

from convoscope.conversation.events import Json

Origin = Literal["gold", "predicted"]


class SlotValue(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A slot with its value inside an act; `value` is None for a request."""

    slot: str
    value: str | None = None


class Act(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One dialogue act, for example Restaurant-Inform(area=centre)."""

    type: str
    slots: tuple[SlotValue, ...] = ()


class SlotSpan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where in the utterance's text a slot's value stands (`end` exclusive), or what it was copied from."""

    slot: str
    value: str = ""
    act: str = ""
    start: int | None = None
    end: int | None = None
    copied_from: str = ""


class Frame(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The state of one service (domain) at one utterance.

    None means "not annotated"; an empty collection means "annotated, and there is none".
    A slot has several values where any of them is right, and goes by its name without the service.
    State, intents and requests are at the user's utterance, acts at the utterance that they describe,
    a predicted response and what was booked at the agent's. Acts, a response and a failure that belong to
    the turn and to no single service are in a frame without a service.
    """

    seq: int
    """The utterance it belongs to."""
    origin: Origin
    service: str = ""
    is_active: bool | None = None
    """The turn is about this service, where the log distinguishes that from intents."""
    intents: tuple[str, ...] | None = None
    slots: dict[str, tuple[str, ...]] | None = None
    requested: tuple[str, ...] | None = None
    acts: tuple[Act, ...] | None = None
    spans: tuple[SlotSpan, ...] = ()
    booked: tuple[dict[str, str], ...] | None = None
    """What has been booked with this service so far: name, reference."""
    response: str | None = None
    """What the agent would have said here, where a prediction is scored against a dialogue of others."""
    failure: str = ""
    """Why there is no prediction. Such a frame is empty in whatever other predictions hold, so it scores as empty."""
    derived: tuple[str, ...] = ()
    """The fields that the log does not have, and that were concluded from others."""
    annotator: str = ""
    extras: dict[str, Json] = {}


TOPICS, RISKS, ACTIONS = "topics", "risks", "actions"
FAMILIES = (TOPICS, RISKS, ACTIONS)
"""What annotations are about."""
SEVERITY = "severity"
"""What an annotator may say in `extraction` that it does not provide, beside the families."""
GIVEN = "success"
SKIPPED = "skipped"
PARTIAL = "partial"
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
    status: Literal["given", "failed", "skipped"] = "given"
    """failed: the rater broke, and the notes say how. skipped: it gave no verdict. Neither has a value."""
