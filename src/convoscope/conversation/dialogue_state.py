"""What a turn means in slots and acts: dialogue-state frames, predicted and gold."""

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
    State, intents and requests stand at the user's utterance, acts at the utterance that they describe,
    a predicted response and what was booked at the agent's. Acts, a response and a failure that belong to
    the turn and to no single service stand in a frame without a service.
    """

    seq: int
    """The utterance it belongs to."""
    origin: Origin
    service: str = ""
    is_active: bool | None = None
    """The turn is about this service, where that is told apart from intents."""
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
