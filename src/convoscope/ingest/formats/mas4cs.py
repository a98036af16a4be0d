"""Turns of a run of mas4cs: what the user and the system said, what the system made of it, and how the run scored it.

The file has no true slots and no acts of either side. Given together with the dialogues it is a file of predictions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from convoscope.conversation import ASSISTANT, USER, ComponentMetric, Conversation, Frame, Label, Source, Text
from convoscope.errors import InputError
from convoscope.ingest.companions.predictions import completed, exchanges_of, frames_of, names_of, predictions_of
from convoscope.ingest.reader import Detection, Reader, RecordGroup, Sample
from convoscope.ingest.record import Fields, JsonObject, as_list, as_number, as_object, as_text, filled
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import TimelineBuilder

_SCORES = (
    "intent_correct domain_accuracy intent_accuracy action_type_accuracy action_type_f1 slot_accuracy slot_f1 jga "
    "hallucination_rate policy_compliant system_correct"
)
"""What the run computed with truth that the file does not hold: verdicts of the run, not figures of ours."""
_SAID = ("user_message", "system_response")
_ABOUT = ("experiment", "split", "model_name", "configuration")
_HINT = "read the file _turns.json of the same run"


class Mas4csReader(Reader):
    """Turns with the messages of both sides and predictions."""

    name = "mas4cs"
    title = "mas4cs turns"
    is_also_companion = True

    def detect(self, sample: Sample) -> Detection | None:
        for value in map(as_object, sample.values):
            if any(_is_turn(turn) for turn in _turns(value)):
                return Detection(0.9, '"user_message" and "system_response" of turns, with predictions', "file")
            if "evaluation_level" in value and ("dialogues" in value or "num_dialogues" in value):
                return Detection(0.9, "figures of a run of mas4cs", "file")
        return None

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        dialogues: dict[str, list[JsonObject]] = {}
        about: JsonObject = {}
        for value in (as_object(record.value) for record in group.records):
            about |= {name: held for name, held in value.items() if name not in ("turns", *_SAID)}
            for turn in _turns(value):
                if _is_turn(turn):
                    dialogues.setdefault(as_text(turn["dialogue_id"]), []).append(turn)
                elif "turns" in value:
                    notes.set_aside("turn_unreadable", str(turn)[:80])
        if not dialogues:
            raise InputError("has figures of dialogues, and not what was said", hint=_HINT)
        about = {} if "dialogue_id" in about else about
        for id, turns in dialogues.items():
            yield _conversation(id, turns, about, group, notes)


def _turns(value: JsonObject) -> list[Any]:
    return list(as_list(value["turns"])) if "turns" in value else [value]


def _is_turn(value: Any) -> bool:
    turn = as_object(value)
    has_words = any(isinstance(turn.get(name), str) and turn[name].strip() for name in _SAID)
    return bool(has_words and as_text(turn.get("dialogue_id")) and as_text(turn.get("turn_id")))


def _conversation(
    id: str, turns: list[JsonObject], about: JsonObject, group: RecordGroup, notes: Notes
) -> Conversation:
    timeline = TimelineBuilder(notes)
    labels: list[Label] = []
    for number, turn in enumerate(turns, start=1):
        labels += _say(Fields(turn, "turn", notes), number, timeline)
    known = Fields(about, "run", notes, frozenset({"timestamp", "evaluation_level", "models", "base_models"}))
    conversation = Conversation(
        id=id,
        dimensions=filled({name.removesuffix("_name"): known.text(name) for name in _ABOUT}),
        source=Source(format=Mas4csReader.name, files=group.file_names, record=id),
        participants=timeline.participants,
        timeline=tuple(timeline.events),
        labels=tuple(labels),
        extras=known.rest(),
    )
    return _with_frames(conversation, turns)


def _say(turn: Fields, number: int, timeline: TimelineBuilder) -> Iterator[Label]:
    """Both messages of a turn, what it cost, and the verdicts of the run on it."""
    id, user, answer = turn.text("turn_id"), turn.text("user_message"), turn.text("system_response")
    timeline.say(timeline.participant(USER), intended=Text(user, "user_message"), id=id)
    if answer:
        timeline.say(timeline.participant(ASSISTANT), intended=Text(answer, "system_response"))
    spent = filled({"cost": as_number(turn.get("cost")), "duration": as_number(turn.get("response_time"))})
    if spent:
        timeline.add(ComponentMetric, component="llm", values=spent)
    for name in _SCORES.split():
        value = turn.get(name)
        if isinstance(value, bool) or as_number(value) is not None:
            rater = {"rater": Mas4csReader.name, "rater_kind": "external"}
            yield Label(name=name, value=value, subject_kind="turn", subject=str(number), **rater)  # type: ignore[arg-type]


def _with_frames(conversation: Conversation, turns: list[JsonObject]) -> Conversation:
    """The predictions of each turn, and its true intents, which is all of the truth that the file has."""
    predicted, _ = predictions_of([{"turns": turns}])
    (listed,) = predicted.values()
    fields = frozenset(("domains", "intents", "state"))
    frames: list[Frame] = []
    for turn, prediction, exchange in zip(turns, listed, exchanges_of(conversation), strict=True):
        kept = {
            name: held for name, held in prediction.extras.items() if name not in _SAID or not isinstance(held, str)
        }
        predicted_here = completed(prediction._replace(response=None, extras=kept), fields)
        frames += frames_of(predicted_here, exchange, "predicted")
        true = names_of(turn.get("ground_truth_intent"))
        for intent in true or ():
            service = intent.rpartition("_")[2]
            frames.append(Frame(seq=exchange.user.seq, origin="gold", service=service, intents=(intent,)))
        if true == ():
            frames.append(Frame(seq=exchange.user.seq, origin="gold", intents=()))
    return msgspec.structs.replace(conversation, frames=tuple(sorted(frames, key=lambda frame: frame.seq)))


READER = Mas4csReader()
