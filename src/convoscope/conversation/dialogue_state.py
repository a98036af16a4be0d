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
    A slot has several values where any of them is right. Acts that belong to the turn and to no
    single service stand in a frame without a service.
    """

    seq: int
    """The utterance it belongs to."""
    origin: Origin
    service: str = ""
    intents: tuple[str, ...] | None = None
    slots: dict[str, tuple[str, ...]] | None = None
    requested: tuple[str, ...] | None = None
    acts: tuple[Act, ...] | None = None
    spans: tuple[SlotSpan, ...] = ()
    annotator: str = ""
    extras: dict[str, Json] = {}
