"""Predictions of a dialogue system, one kind of companion: what it made of each turn of dialogues that others held.

Truth and prediction stand side by side in a conversation. A turn that has no prediction gets one that is empty and says
why: it counts, and scores as empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation import ASSISTANT, USER, Conversation, Frame, Utterance
from convoscope.conversation.annotations import Origin
from convoscope.errors import InputError
from convoscope.ingest.companions.datasets import values_of
from convoscope.ingest.companions.prediction_shapes import (
    EMPTY,
    Predictions,
    State,
    TurnPrediction,
    dialogue_key,
    predictions_of,
    shape_of,
)
from convoscope.ingest.io import containers as files
from convoscope.ingest.io import tables
from convoscope.ingest.io.json import BadJson, decode
from convoscope.ingest.reader import Detection, Sample
from convoscope.ingest.report import Note, Notes

_SIGNS = (b'"response"', b'"state"', b'"dialogue_id"', b'"dialog_id"')
_HEAD = 64 * 1024
_FIRST_ROWS = 5
PLAIN_RESPONSES = "plain_responses"
"""Among the extras of a conversation: no response of its predictions, nor of others of that file, has a placeholder."""
PREDICTED_BESIDE = "predicted_beside"
"""Among the extras of an annotated conversation: its predictions lie in a file of their own, so its words are not those
of the system that predicts."""
MISSING = TurnPrediction(failure="missing")


class Exchange(NamedTuple):
    """What the user says, and the first answer to it."""

    user: Utterance
    answer: Utterance | None


class PredictionFiles:
    """Files with what a system predicted, matched to dialogues by their ids and to turns by theirs, or by order."""

    format = "predictions"

    def detect(self, sample: Sample) -> Detection | None:
        shape = shape_of(sample.values) if sample.container != "text" else ""
        return Detection(0.97, shape, "companion") if shape else None

    def load(self, path: Path, name: str, *, is_named: bool) -> bool:
        """It is for the dialogues that it lies beside: whoever reads these reads it."""
        del path, name, is_named
        return False

    def attacher(self, reader: str, files: Sequence[Path]) -> Callable[[Conversation, Notes], Conversation] | None:
        del reader
        predictions = load(files) if files else None
        if predictions is None:
            return None
        return lambda conversation, notes: attach(conversation, predictions, notes)


def load(paths: Sequence[Path]) -> Predictions | None:
    """The predictions among the companions of an input; read once as long as the files stay the same."""
    stamped = [(path, path.stat().st_mtime_ns) for path in paths if path.exists()]
    likely = tuple(one for one in stamped if _may_predict(*one))
    return _load(likely) if likely else None


@lru_cache(maxsize=256)
def _may_predict(path: Path, stamp: int) -> bool:
    """A quick look: companions of other kinds may be large."""
    del stamp
    try:
        head = files.head_of(path, _HEAD)
        if tables.is_table(path, head):
            return bool(shape_of(tables.first_rows(path, _FIRST_ROWS)))
    except (InputError, OSError):
        return False
    return any(sign in head for sign in _SIGNS)


def _values(path: Path, problems: list[str]) -> list[Any]:
    """The records of a file: JSON, or the rows of a table."""
    if not tables.is_table(path, files.head_of(path, _HEAD)):
        return values_of(path, problems)
    values: list[Any] = []
    for rows_read in tables.row_ranges(path, files.MAX_RECORD_BYTES):
        if rows_read.problem:
            problems.append(f"{path.name}:{rows_read.first}: {rows_read.problem}")
        rows = [decode(row).value for row in (rows_read.data or b"").split(tables.BETWEEN_ROWS) if row.strip()]
        values += [{name: _cell(value) for name, value in row.items()} for row in rows]
    return values


def _cell(value: Any) -> Any:
    """A cell of a table: a text that is a JSON object or list is that."""
    if isinstance(value, str) and value.strip()[:1] in ("{", "["):
        with suppress(BadJson):
            return decode(value.encode()).value
    return value


@lru_cache(maxsize=4)
def _load(stamped: tuple[tuple[Path, int], ...]) -> Predictions | None:
    by_dialogue: dict[str, list[TurnPrediction]] = {}
    problems: list[str] = []
    is_predicted = False
    for path, _ in stamped:
        try:
            values = _values(path, problems)
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
    predicts = {name for name in _FIELDS if any(getattr(one, name) is not None for one in everything)}
    if not predicts:  # a system that failed in every turn is wrong in all that it could have predicted
        predicts = set(_FIELDS)
    if not is_predicted:
        return None
    responses = [one.response for one in everything if one.response]
    is_plain = bool(responses) and not any(_PLACEHOLDER.search(response) for response in responses)
    return Predictions(by_dialogue, frozenset(predicts), tuple(problems), is_plain)


_PLACEHOLDER = re.compile(r"\[[\w\s]+\]")


def unread_records(paths: Iterable[Path]) -> list[Note]:
    """What cannot be read in files of predictions, such as a line that was cut off: set aside, and named."""
    read = {path: load([path]) for path in sorted(set(paths))}
    return [
        Note(kind="set_aside", code="prediction_unreadable", file=path.name, detail=problem)
        for path, predictions in read.items()
        for problem in (predictions.problems if predictions is not None else ())
    ]


def without_dialogue(paths: Iterable[Path], ids: Iterable[str]) -> list[Note]:
    """The predicted dialogues that are none of those with these ids: each of them is set aside, and named."""
    read = {path: predictions for path in sorted(set(paths)) if (predictions := load([path])) is not None}
    if not read:
        return []
    known = set(map(dialogue_key, ids))
    return [
        Note(kind="set_aside", code="prediction_without_dialogue", file=path.name, detail=id)
        for path, predictions in read.items()
        for id in sorted(predictions.by_dialogue.keys() - known)
    ]


_FIELDS = ("domains", "intents", "state", "requested", "acts", "response")


def attach(conversation: Conversation, predictions: Predictions, notes: Notes) -> Conversation:
    """The dialogue with a prediction of each of its turns.

    A dialogue without any truth that nobody predicts is none of these.
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
        place = f"{conversation.id} turn {exchange.user.id or number}"
        if prediction.failure:
            code = "prediction_missing" if prediction is MISSING else "prediction_failed"
            notes.set_aside(code, f"{place}: {prediction.failure}", exchange.user.seq)
        for field in prediction.unreadable:
            notes.set_aside("prediction_unreadable", f"{place}: {field}", exchange.user.seq)
        if conversation.source.format == "multiwoz":
            prediction = _with_names_of_multiwoz(prediction)
        frames += frames_of(completed(prediction, predictions.predicts), exchange, "predicted")
    signs = {PLAIN_RESPONSES: predictions.is_plain, PREDICTED_BESIDE: bool(annotated)}
    extras = conversation.extras | {name: True for name, is_so in signs.items() if is_so}
    frames.sort(key=lambda frame: frame.seq)
    return msgspec.structs.replace(conversation, frames=tuple(frames), extras=extras)


def _with_names_of_multiwoz(prediction: TurnPrediction) -> TurnPrediction:
    """The standard evaluator calls two slots otherwise than the dialogues do."""
    if not prediction.state or _SHORT_NAMES.keys().isdisjoint(
        slot for slots in prediction.state.values() for slot in slots
    ):
        return prediction
    state = {
        domain: {_SHORT_NAMES.get(slot, slot): values for slot, values in slots.items()}
        for domain, slots in prediction.state.items()
    }
    return prediction._replace(state=state)


_SHORT_NAMES = {"arrive": "arriveby", "leave": "leaveat"}


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
    """The prediction of each exchange. One that belongs to none, or comes second, is set aside and told."""
    placed: dict[int, TurnPrediction] = {}
    place_of = _places(predicted, exchanges, notes)
    for order, prediction in enumerate(predicted):
        number = place_of.get(prediction.turn) if prediction.turn else order if order < len(exchanges) else None
        if number is None or number in placed:
            code = "prediction_without_turn" if number is None else "prediction_repeated"
            notes.set_aside(code, f"{dialogue} turn {prediction.turn or order}")
        else:
            placed[number] = prediction
    return placed


def _places(predicted: Sequence[TurnPrediction], exchanges: Sequence[Exchange], notes: Notes) -> dict[str, int]:
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
