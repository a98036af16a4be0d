"""Predictions of a dialogue system, one kind of companion: what it made of each turn of dialogues that others held.

A conversation holds both truth and prediction. A turn that has no prediction gets one that is empty and says
why: it counts, and scores as empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation import ASSISTANT, USER, Act, Conversation, Frame, SlotValue, Utterance
from convoscope.conversation.annotations import Origin
from convoscope.errors import InputError
from convoscope.ingest.companions.datasets import values_of
from convoscope.ingest.io import containers as files
from convoscope.ingest.io import tables
from convoscope.ingest.io.json import BadJson, decode, parsed
from convoscope.ingest.reader import Attach, Companion, Detection, Sample
from convoscope.ingest.record import JsonObject, as_list, as_object, as_text, filled
from convoscope.ingest.report import Note, Notes

State = dict[str, dict[str, tuple[str, ...]]]
"""Values by domain and slot."""

DIALOGUE = ("dialogue_id", "dialog_id")
TURN = ("turn_id", "turn")
DOMAINS = ("predicted_domain", "predicted_domains", "active_domains", "domain")
INTENTS = ("predicted_intent", "predicted_intents", "active_intent")
STATE = ("predicted_slots", "predicted_state", "slots_values", "slot_values", "state")
REQUESTED = ("predicted_requested_slots", "requested_slots")
ACTS = ("predicted_act_type", "predicted_acts", "predicted_dialogue_acts", "dialogue_acts", "act_type", "dialog_act")
RESPONSE = ("predicted_response", "system_response", "response")
FAILURE = ("error", "failure")

_PREDICTED = ("slots_values", "active_domains", "response", "system_response", "policy_compliant", *FAILURE)
_ANSWER = ("response", "state")
_SPOKEN = frozenset(
    {"user", "user_message", "role", "speaker", "text", "content", "utterance", "message", "messages", "prompt"}
    | {"query", "question", "input", "request"}
)
"""What a log has with a response, and an answer of the standard evaluator has not."""
_NO_INTENT = "none"


class TurnPrediction(NamedTuple):
    """What a system made of one turn. None is "not predicted"."""

    turn: str = ""
    """The id of the turn; "" where only the order of predictions counts."""
    domains: tuple[str, ...] | None = None
    intents: tuple[str, ...] | None = None
    state: State | None = None
    requested: tuple[str, ...] | None = None
    acts: tuple[Act, ...] | None = None
    response: str | None = None
    failure: str = ""
    extras: JsonObject = {}
    unreadable: tuple[str, ...] = ()
    """Fields whose value, or a part of it, cannot be read; what is left of them is predicted."""


FIELDS = ("domains", "intents", "state", "requested", "acts", "response")
"""The fields of `TurnPrediction` that a system predicts."""


class Predictions(NamedTuple):
    """The predictions of one or more files, by dialogue."""

    by_dialogue: dict[str, list[TurnPrediction]]
    predicts: frozenset[str]
    """The fields that any of them predicts."""
    problems: tuple[str, ...] = ()
    is_plain: bool = False
    """There are responses, and none of them holds a placeholder such as `[hotel_name]`."""


def dialogue_key(id: str) -> str:
    """Ids of dialogues are written with and without `.json`, in capitals and in small letters."""
    return id.lower().removesuffix(".json")


def shape_of(values: Sequence[Any]) -> str:
    """What a file of predictions is, by its first values; "" for any other file."""
    first = next((value for value in values if isinstance(value, dict)), None)
    if first is None:
        return ""
    turns = first.get("turns")
    if isinstance(turns, list) and any(_is_turn(one) for one in turns):
        return "predictions of turns, in a list `turns`"
    if any(_is_turn(value) for value in values):
        return "predictions, one record per turn"
    if first and all(isinstance(value, list) and value and all(map(_is_answer, value)) for value in first.values()):
        return "predictions: responses and states by dialogue"
    return ""


def _is_turn(value: Any) -> bool:
    """A record with the ids of a dialogue and a turn, and something that only a system predicts."""
    if not isinstance(value, dict) or not (_has(value, DIALOGUE) and _has(value, TURN)) or "speaker" in value:
        return False
    return any(name.startswith("predicted_") or name in _PREDICTED for name in value)


def _is_answer(value: Any) -> bool:
    """A response or a state, and nothing that another speaker says."""
    if not isinstance(value, dict) or not _SPOKEN.isdisjoint(value):
        return False
    return any(name in value for name in (*_ANSWER, *FAILURE))


def _has(value: Mapping[str, Any], names: Iterable[str]) -> bool:
    return any(as_text(value.get(name)) for name in names)


def predictions_of(values: Iterable[Any]) -> tuple[dict[str, list[TurnPrediction]], int]:
    """The predictions of a file's values by dialogue, and how many of its records hold no prediction."""
    by_dialogue: dict[str, list[TurnPrediction]] = {}
    unread = 0
    for value in values:
        fields = as_object(value)
        turns = fields.get("turns") if isinstance(fields.get("turns"), list) else None
        for record in turns if turns is not None else [value] if _has(fields, DIALOGUE) else ():
            if isinstance(record, dict) and _has(record, DIALOGUE) and _has(record, TURN):
                taken = dict(record)
                dialogues, ids = ([as_text(taken.pop(name, None)) for name in names] for names in (DIALOGUE, TURN))
                prediction = _prediction(next(filter(None, reversed(ids))), taken)
                by_dialogue.setdefault(dialogue_key(next(filter(None, dialogues))), []).append(prediction)
            else:
                unread += 1
        if turns is None and not _has(fields, DIALOGUE):
            for id, answers in fields.items():
                if isinstance(answers, list):
                    held = by_dialogue.setdefault(dialogue_key(id), [])
                    held += [_prediction("", dict(as_object(one))) for one in answers]
                else:
                    unread += 1
            unread += not isinstance(value, dict)
    return by_dialogue, unread


def _prediction(turn: str, fields: JsonObject) -> TurnPrediction:
    """What a record predicts; what else it says is kept. A field that cannot be read is predicted to be empty."""
    failure = next((fields.pop(name) for name in FAILURE if fields.get(name) is not None), None)
    predicted: dict[str, Any] = {}
    unreadable: list[str] = []
    for field, names, read, kind in _READERS:
        name = next((name for name in names if fields.get(name) is not None), "")
        if name:
            value = fields[name]
            if _is_whole(value, kind):
                del fields[name]
            else:
                unreadable.append(f"{name} is {_shown(value)}")
            predicted[field] = read(value)
            if predicted[field] is None:
                predicted[field] = EMPTY.get(field, ())
    if failure:
        return TurnPrediction(turn, failure=as_text(failure)[:200] or "failed", extras=filled(fields))
    if not predicted:
        return TurnPrediction(turn, failure="nothing predicted", extras=filled(fields))
    return TurnPrediction(turn, **predicted, extras=filled(fields), unreadable=tuple(unreadable))


EMPTY: dict[str, Any] = {"state": {}, "response": ""}
"""What is predicted where nothing is; of other fields it is an empty list."""


def _shown(value: Any) -> str:
    """What a value is that should be something else."""
    if isinstance(value, dict | list):
        return f"{'an object' if isinstance(value, dict) else 'a list'} that holds something else than expected"
    return f"{type(value).__name__} {str(value)[:40]!r}"


def _is_whole(value: Any, kind: Any) -> bool:
    if kind is _SlotValues and isinstance(value, dict) and isinstance(value.get("slots_values_name"), list):
        return isinstance(value.get("slots_values_list"), list)
    try:
        msgspec.convert(value, kind)
    except (msgspec.ValidationError, RecursionError):
        return False
    return True


def names_of(value: Any) -> tuple[str, ...] | None:
    """One name or several; `NONE` is no name."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        return None
    return tuple(name for one in value if (name := as_text(one).strip()) and name.casefold() != _NO_INTENT)


def state_of(value: Any) -> State | None:
    """Slots by domain, or by names such as `hotel-area`, or as two lists of names and values."""
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("slots_values_name"), list):
        value = dict(
            zip(map(as_text, value["slots_values_name"]), as_list(value.get("slots_values_list")), strict=False)
        )
    state: State = {}
    for name, inner in value.items():
        if isinstance(inner, dict):
            slots = state.setdefault(name, {})
            slots |= {slot.removeprefix(f"{name}-"): read for slot, one in inner.items() if (read := _values(one))}
        elif read := _values(inner):
            domain, _, slot = name.rpartition("-")
            state.setdefault(domain, {})[slot] = read
    return state


def _values(value: Any) -> tuple[str, ...]:
    """The values of a slot: none for one that is null."""
    listed = value if isinstance(value, list) else [value]
    return tuple(text for one in listed if (text := str(one).lower() if isinstance(one, bool) else as_text(one)))


def acts_of(value: Any) -> tuple[Act, ...] | None:
    """Types of acts, or acts with their slots: `{"Hotel-Inform": [["area", "north"]]}`."""
    if isinstance(value, dict):
        return tuple(Act(type, tuple(_slots(listed))) for type, listed in value.items())
    types = [value] if isinstance(value, str) else value
    return tuple(Act(name) for one in types if (name := as_text(one))) if isinstance(types, list) else None


def _slots(listed: Any) -> Iterable[SlotValue]:
    for pair in as_list(listed):
        if isinstance(pair, list) and len(pair) == 2 and as_text(pair[0]) not in ("", "none"):
            yield SlotValue(as_text(pair[0]), None if pair[1] in (None, "?") else as_text(pair[1]))


_Name = str | int | float
_Names = str | list[_Name | None]
_Value = _Name | bool | list[_Name | bool | None] | None
_SlotValues = dict[str, _Value | dict[str, _Value]]
_READERS: tuple[tuple[str, Sequence[str], Callable[[Any], Any], Any], ...] = (
    ("domains", DOMAINS, names_of, _Names),
    ("intents", INTENTS, names_of, _Names),
    ("state", STATE, state_of, _SlotValues),
    ("requested", REQUESTED, names_of, _Names),
    ("acts", ACTS, acts_of, _Names | dict[str, list[tuple[_Name, Any]]]),
    ("response", RESPONSE, lambda value: value if isinstance(value, str) else None, str),
)
"""By field of a prediction: the names that it goes by, how it is read, and the type of a value that is read whole."""


# Predictions of a file, and their dialogues.

_HEAD = 64 * 1024
PLAIN_RESPONSES = "plain_responses"
"""Among the extras of a conversation: no response of its predictions, nor of others of that file, has a placeholder."""
PREDICTED_APART = "predicted_beside"
"""Among the extras of an annotated conversation: its predictions are in a file of their own, so its texts are not
those of the system that predicts."""
MISSING = TurnPrediction(failure="missing")


class Exchange(NamedTuple):
    """What the user says, and the first answer to it."""

    user: Utterance
    answer: Utterance | None


class PredictionFiles(Companion):
    """Files with what a system predicted, matched to dialogues by their ids and to turns by theirs, or by order."""

    format = "predictions"

    def detect(self, sample: Sample) -> Detection | None:
        shape = shape_of(sample.values) if sample.container != "text" else ""
        return Detection(0.97, shape, "companion") if shape else None

    def attacher(self, reader: str, files: Sequence[Path]) -> Attach | None:
        del reader
        predictions = load(files) if files else None
        if predictions is None:
            return None
        return lambda conversation, notes: attach(conversation, predictions, notes)


def _records(path: Path, problems: list[str]) -> list[Any]:
    if not tables.is_table(path, files.head_of(path, _HEAD)):
        return values_of(path, problems)
    values: list[Any] = []
    for rows_read in tables.row_ranges(path, files.MAX_RECORD_BYTES):
        if rows_read.problem:
            problems.append(f"{path.name}:{rows_read.first}: {rows_read.problem}")
        rows = [decode(row).value for row in (rows_read.data or b"").split(tables.BETWEEN_ROWS) if row.strip()]
        values += [{name: parsed(value) for name, value in row.items()} for row in rows]
    return values


@files.read_once(4)
def load(paths: Sequence[Path]) -> Predictions | None:
    """The predictions of some files; None where they hold none."""
    by_dialogue: dict[str, list[TurnPrediction]] = {}
    problems: list[str] = []
    is_predicted = False
    for path in paths:
        try:
            values = _records(path, problems)
        except (BadJson, InputError, OSError) as error:
            problems.append(f"{path.name}: {error}")
            continue
        if not shape_of(values):
            continue
        is_predicted = True
        read, unread = predictions_of(values)
        if unread:
            problems.append(f"{path.name}: {unread} records are no predictions of a turn")
        for id, predicted in read.items():
            by_dialogue.setdefault(id, predicted)
    everything = [one for predicted in by_dialogue.values() for one in predicted]
    predicts = {name for name in FIELDS if any(getattr(one, name) is not None for one in everything)}
    if not predicts:  # a system that failed in every turn is wrong in all that it could have predicted
        predicts = set(FIELDS)
    if not is_predicted:
        return None
    responses = [one.response for one in everything if one.response]
    is_plain = bool(responses) and not any(_PLACEHOLDER.search(response) for response in responses)
    return Predictions(by_dialogue, frozenset(predicts), tuple(problems), is_plain)


_PLACEHOLDER = re.compile(r"\[[\w\s]+\]")


def unused_predictions(paths: Iterable[Path], ids: Iterable[str] | None) -> list[Note]:
    """What is set aside in files of predictions, and named: what cannot be read, such as a line that was cut off, and
    predicted dialogues whose id is not among these ids. None: the dialogues are not all known."""
    known = None if ids is None else set(map(dialogue_key, ids))
    notes: list[Note] = []
    for path in sorted(set(paths)):
        if (predictions := load([path])) is not None:
            absent = () if known is None else sorted(predictions.by_dialogue.keys() - known)
            details = [("prediction_unreadable", problem) for problem in predictions.problems]
            details += [("prediction_without_dialogue", id) for id in absent]
            notes += [Note(kind="set_aside", code=code, file=path.name, detail=detail) for code, detail in details]
    return notes


def attach(conversation: Conversation, predictions: Predictions, notes: Notes) -> Conversation:
    """The dialogue with a prediction of each of its turns.

    A dialogue without truth and without predictions is not one of these.
    """
    predicted = predictions.by_dialogue.get(dialogue_key(conversation.id))
    annotated = {frame.seq for frame in conversation.frames if frame.origin == "gold"}
    if predicted is None and not annotated:
        return conversation
    exchanges = exchanges_of(conversation)
    placed = _placed(conversation.id, predicted or [], exchanges, notes)
    frames = list(conversation.frames)
    for number, exchange in enumerate(exchanges):
        prediction = placed.get(number)
        if prediction is None:
            if exchange.answer is None and exchange.user.seq not in annotated:
                continue
            prediction = MISSING
        turn = f"{conversation.id} turn {exchange.user.id or number}"
        if prediction.failure:
            code = "prediction_missing" if prediction is MISSING else "prediction_failed"
            notes.set_aside(code, f"{turn}: {prediction.failure}", exchange.user.seq)
        for field in prediction.unreadable:
            notes.set_aside("prediction_unreadable", f"{turn}: {field}", exchange.user.seq)
        if conversation.source.format == "multiwoz" and prediction.state:
            state = {
                domain: {_SHORT_NAMES.get(slot, slot): values for slot, values in slots.items()}
                for domain, slots in prediction.state.items()
            }
            prediction = prediction._replace(state=state)
        frames += frames_of(completed(prediction, predictions.predicts), exchange, "predicted")
    signs = {PLAIN_RESPONSES: predictions.is_plain, PREDICTED_APART: bool(annotated)}
    extras = conversation.extras | {name: True for name, is_so in signs.items() if is_so}
    frames.sort(key=lambda frame: frame.seq)
    return msgspec.structs.replace(conversation, frames=tuple(frames), extras=extras)


_SHORT_NAMES = {"arrive": "arriveby", "leave": "leaveat"}
"""The standard evaluator of MultiWOZ calls two slots otherwise than the dialogues do."""


def exchanges_of(conversation: Conversation) -> list[Exchange]:
    """What the user says, with the first answer before the user speaks again."""
    exchanges: list[Exchange] = []
    for utterance in conversation.utterances:
        role = conversation.roles[utterance.speaker]
        if role == USER:
            exchanges.append(Exchange(utterance, None))
        elif role == ASSISTANT and exchanges and exchanges[-1].answer is None:
            exchanges[-1] = exchanges[-1]._replace(answer=utterance)
    return exchanges


def _placed(
    dialogue: str, predicted: Sequence[TurnPrediction], exchanges: Sequence[Exchange], notes: Notes
) -> dict[int, TurnPrediction]:
    """The prediction of each exchange. One that belongs to none, or comes second, is set aside and noted."""
    placed: dict[int, TurnPrediction] = {}
    number_of = _turn_numbers(predicted, exchanges, notes)
    for order, prediction in enumerate(predicted):
        number = number_of.get(prediction.turn) if prediction.turn else order if order < len(exchanges) else None
        if number is None or number in placed:
            code = "prediction_without_turn" if number is None else "prediction_repeated"
            notes.set_aside(code, f"{dialogue} turn {prediction.turn or order}")
        else:
            placed[number] = prediction
    return placed


def _turn_numbers(predicted: Sequence[TurnPrediction], exchanges: Sequence[Exchange], notes: Notes) -> dict[str, int]:
    """The exchange that each turn id means: that of an utterance, or its number where the ids only count.

    Ids that are 0, 1, 2 … can be those of utterances only if none is that of an answer.
    """
    by_user = {exchange.user.id: number for number, exchange in enumerate(exchanges) if exchange.user.id}
    by_answer = {one.answer.id: number for number, one in enumerate(exchanges) if one.answer and one.answer.id}
    ids = {one.turn for one in predicted if one.turn}
    first = 1 if "0" not in ids else 0
    if not ids <= by_user.keys() and ids == {str(first + number) for number in range(len(ids))}:
        notes.inferred("turns_by_number", f"turn {first} is the first of the user")
        return {str(first + number): number for number in range(len(exchanges))}
    return by_answer | by_user


def completed(prediction: TurnPrediction, predicts: frozenset[str]) -> TurnPrediction:
    """Whatever these predictions hold elsewhere and not here is predicted to be empty."""
    return prediction._replace(**{name: EMPTY.get(name, ()) for name in predicts if getattr(prediction, name) is None})


def frames_of(prediction: TurnPrediction, exchange: Exchange, origin: Origin) -> Iterator[Frame]:
    """State, domain and intents at the user's utterance; acts and the response at the answer."""
    domains, requested = prediction.domains or (), prediction.requested
    state = _with_domain(prediction.state, domains)
    services = tuple(dict.fromkeys((*domains, *(state or ()))))
    intents = _by_domain(prediction.intents or (), domains, "_")
    asked = _by_domain(requested or (), domains, "-")
    extras, failure = prediction.extras, prediction.failure
    for service in services or ("",):
        frame = Frame(
            seq=exchange.user.seq,
            origin=origin,
            service=service,
            is_active=None if prediction.domains is None else service in domains,
            intents=None if prediction.intents is None else intents.get(service, ()),
            slots=None if state is None else state.get(service, {}),
            requested=None if requested is None else asked.get(service, ()),
            failure=failure,
            extras=extras,
        )
        if frame != Frame(seq=frame.seq, origin=origin):
            yield frame
        extras, failure = {}, ""
    if services and "" not in services and (intents.get("") or asked.get("")):
        yield Frame(
            seq=exchange.user.seq,
            origin=origin,
            intents=None if prediction.intents is None else intents.get("", ()),
            requested=None if requested is None else asked.get("", ()),
        )
    if prediction.acts is not None or prediction.response is not None:
        seq = (exchange.answer or exchange.user).seq
        yield Frame(seq=seq, origin=origin, acts=prediction.acts, response=prediction.response)


def _with_domain(state: State | None, domains: Sequence[str]) -> State | None:
    """Slots that name no domain are of the first that is active."""
    if not state or "" not in state or not domains:
        return state
    home = {**state.get(domains[0], {}), **state[""]}
    return {domain: slots for domain, slots in state.items() if domain} | {domains[0]: home}


def _by_domain(names: Sequence[str], domains: Sequence[str], mark: str) -> dict[str, tuple[str, ...]]:
    """Names by the domain that they name: `book_hotel`, `hotel-phone`. Others go with the first domain.

    Without a domain they are of the turn: which domain a system means is not guessed from its intents.
    """
    by_domain: dict[str, tuple[str, ...]] = {}
    for name in names:
        parts = (name.rpartition(mark)[2], name.partition(mark)[0])
        domain = next((part for part in parts if part in domains), domains[0] if domains else "")
        bare = name.removeprefix(f"{domain}-") if mark == "-" and domain else name
        by_domain[domain] = (*by_domain.get(domain, ()), bare)
    return by_domain
