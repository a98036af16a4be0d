"""How far a judge agrees with people: accuracy, macro F1 and weighted kappa, with intervals, rubric by rubric."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from convoscope.conversation import Conversation
from convoscope.errors import InputError, UsageError
from convoscope.judging.cache import VARIABLE
from convoscope.judging.rubrics import Rubric, rubric_named, rubrics
from convoscope.metrics.declaration import Metric
from convoscope.metrics.examples import example
from convoscope.metrics.registry import known
from convoscope.resources.judge import Judge, close
from convoscope.scores.observation import MEASURED
from convoscope.scoring.evaluate import answered

LEAST_LABELS = 50
LEAST_KAPPA = 0.4
_DRAWS = 2000
_SEED = 20260101


class LabelledCall(NamedTuple):
    """A conversation and the ratings that people gave: of the whole (""), or of its turns."""

    conversation: Conversation
    ratings: Mapping[str, float]
    """By the id of the subject, on the scale of the rubric."""
    cluster: str
    """Calls that begin with the same words are copies of one scenario."""


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """How a judge's ratings and those of people fit."""

    rubric: str
    version: int
    judge: str
    labels: int
    """Labels that the judge answered, too."""
    unanswered: dict[str, int]
    """Labels without a rating of the judge, by reason."""
    accuracy: float | None
    accuracy_interval: tuple[float, float] | None
    macro_f1: float | None
    kappa: float | None
    """Cohen's, with linear weights where the scale has more than two ratings."""
    kappa_interval: tuple[float, float] | None
    majority: float | None
    """The accuracy of always giving the commonest rating."""
    ratings: list[float]
    confusion: list[list[int]]
    """Rows: people; columns: the judge; in the order of `ratings`."""
    at: str

    @property
    def is_calibrated(self) -> bool:
        """Enough labels, and the whole interval of kappa above what chance and luck give."""
        low = self.kappa_interval[0] if self.kappa_interval else None
        return self.labels >= LEAST_LABELS and low is not None and low > LEAST_KAPPA


def read_labels(path: Path, name: str | None) -> tuple[Rubric, list[LabelledCall]]:
    """Labelled calls that carry their texts, one JSON object a line, and the rubric that they are about."""
    known_names = rubrics()
    if name is None and path.stem not in known_names:
        raise UsageError(f"{path.name} does not say what it labels", hint=f"--rubric {' or '.join(known_names)}")
    rubric = rubric_named(name or path.stem)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from None
    calls = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                record = json.loads(line)
                call = None if record.get("invalid") is True else _call(record, number, rubric)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                hint = "a line has `trace` and `expected_rating`, or `conv_turns` with an `expected_rating` in each"
                raise InputError(f"is not a labelled call: {error!r}", file=str(path), line=number, hint=hint) from None
            if call is not None:
                calls.append(call)
    return rubric, calls


def _call(record: Mapping[str, Any], number: int, rubric: Rubric) -> LabelledCall:
    id = str(record.get("id", number))
    if "conv_turns" in record:
        turns = record["conv_turns"]
        lines = [f"{_role(turn['role'])}: {turn['content']}" for turn in turns]
        conversation = example(*lines, id=id)
        ratings: dict[str, float] = {}
        for turn, rated in _agent_turns(conversation, turns):
            if rated.get("expected_rating") is not None:
                ratings[turn] = _on_scale(rated["expected_rating"], rubric)
        return LabelledCall(conversation, ratings, turns[0]["content"])
    conversation = example(*(_event(entry) for entry in record["trace"]), id=id)
    rating = _on_scale(record["expected_rating"], rubric)
    opening = next((entry["utterance"] for entry in record["trace"] if entry["event_type"] == "user_utterance"), id)
    return LabelledCall(conversation, {"": rating}, opening)


def _agent_turns(
    conversation: Conversation, turns: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The turns of the agent in the data, and their ids in the conversation, which are in the same order."""
    spoken = [str(turn.id) for turn in conversation.turns if turn.assistant_text]
    rated = [turn for turn in turns if _role(turn["role"]) == "assistant"]
    if len(spoken) != len(rated):
        raise ValueError("the agent speaks twice in a turn")
    yield from zip(spoken, rated, strict=True)


def _on_scale(rating: Any, rubric: Rubric) -> float:
    value = float(rating)
    if not rubric.low <= value <= rubric.high:
        raise ValueError(f"{rating} is off the scale from {rubric.low} to {rubric.high}")
    return value


def _role(name: str) -> str:
    return "assistant" if name in ("agent", "assistant") else "user"


def _event(entry: Mapping[str, Any]) -> str | Mapping[str, Any]:
    match entry["event_type"]:
        case "agent_utterance":
            return f"assistant: {entry['utterance']}"
        case "user_utterance":
            return f"user: {entry['utterance']}"
        case "tool_call":
            return {"type": "tool_call", "name": entry["tool_name"], "arguments": entry.get("params")}
        case "tool_response":
            return {"type": "tool_result", "name": entry["tool_name"], "result": entry.get("response")}
        case other:
            raise ValueError(f"unknown event {other!r}")


def calibrate(judge: Judge, rubric: Rubric, calls: Sequence[LabelledCall]) -> Agreement:
    """Ask a judge about calls that people have labelled, and compare."""

    async def asked() -> Agreement:
        try:
            return await _calibrated(judge, rubric, calls)
        finally:
            await close(judge)

    return asyncio.run(asked())


async def _calibrated(judge: Judge, rubric: Rubric, calls: Sequence[LabelledCall]) -> Agreement:
    declared = known(rubric.measures)
    assert isinstance(declared, Metric)
    answers = await asyncio.gather(*(answered(declared, call.conversation, {"judge": judge}) for call in calls))
    people: list[float] = []
    judged: list[float] = []
    clusters: list[str] = []
    unanswered: dict[str, int] = {}
    for call, observations in zip(calls, answers, strict=True):
        given = {one.subject.id: one for one in observations}
        for subject, rating in call.ratings.items():
            observation = given.get(subject) or given.get("")
            if observation is not None and observation.status == MEASURED and observation.value is not None:
                people.append(rating)
                judged.append(rubric.low + observation.value * (rubric.high - rubric.low))
                clusters.append(call.cluster)
            else:
                reason = observation.reason if observation is not None else "not_judged"
                unanswered[reason] = unanswered.get(reason, 0) + 1
    return agreement(rubric, judge.identity, people, judged, clusters, unanswered)


def agreement(
    rubric: Rubric,
    identity: str,
    people: Sequence[float],
    judged: Sequence[float],
    clusters: Sequence[str],
    unanswered: Mapping[str, int] | None = None,
) -> Agreement:
    """What pairs of ratings come to. Intervals are drawn over clusters, of which one may hold several labels."""
    ratings = [float(rating) for rating in range(rubric.low, rubric.high + 1)]
    gold = np.array([ratings.index(round(rating)) for rating in people], dtype=np.int64)
    predicted = np.array([ratings.index(round(rating)) for rating in judged], dtype=np.int64)
    confusion = np.zeros((len(ratings), len(ratings)), dtype=np.int64)
    np.add.at(confusion, (gold, predicted), 1)
    draws = _draws(gold, predicted, clusters, len(ratings))
    return Agreement(
        rubric=rubric.name,
        version=rubric.version,
        judge=rubric.judge(identity),
        labels=len(gold),
        unanswered=dict(unanswered or {}),
        accuracy=_accuracy(confusion),
        accuracy_interval=_interval([_accuracy(draw) for draw in draws]),
        macro_f1=_macro_f1(confusion),
        kappa=_kappa(confusion),
        kappa_interval=_interval([_kappa(draw) for draw in draws]),
        majority=float(confusion.sum(axis=1).max() / confusion.sum()) if len(gold) else None,
        ratings=ratings,
        confusion=confusion.tolist(),
        at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


Counts = NDArray[np.int64]


def _draws(gold: Counts, predicted: Counts, clusters: Sequence[str], size: int) -> list[Counts]:
    """Tables of clusters that were drawn with replacement."""
    names = {name: index for index, name in enumerate(dict.fromkeys(clusters))}
    if len(names) < 2:
        return []
    tables = np.zeros((len(names), size, size), dtype=np.int64)
    np.add.at(tables, (np.array([names[name] for name in clusters]), gold, predicted), 1)
    chance = np.random.default_rng(_SEED)
    return [tables[chance.integers(0, len(names), len(names))].sum(axis=0) for _ in range(_DRAWS)]


def _accuracy(confusion: Counts) -> float | None:
    total = confusion.sum()
    return float(np.trace(confusion) / total) if total else None


def _macro_f1(confusion: Counts) -> float | None:
    """The mean of F1 over the ratings that people or the judge gave."""
    judged, gold = confusion.sum(axis=0), confusion.sum(axis=1)
    used = (judged + gold) > 0
    return float(np.mean(2 * np.diag(confusion)[used] / (judged + gold)[used])) if used.any() else None


def _kappa(confusion: Counts) -> float | None:
    """1 − weighted disagreement ÷ that of chance; None where chance has none, because one rating was always given.

    >>> _kappa(np.array([[20, 5], [10, 15]]))  # agree 0.7, by chance 0.5: (0.7 - 0.5) / 0.5
    0.4
    """
    total = confusion.sum()
    if not total:
        return None
    size = len(confusion)
    weights = np.abs(np.subtract.outer(np.arange(size), np.arange(size))).astype(float)
    by_chance = np.outer(confusion.sum(axis=1), confusion.sum(axis=0)) / total
    expected = float((weights * by_chance).sum())
    return round(1 - float((weights * confusion).sum()) / expected, 12) if expected else None


def _interval(values: Sequence[float | None]) -> tuple[float, float] | None:
    """The middle 95 % of what was drawn; None where a draw has no value."""
    known_values = [value for value in values if value is not None]
    if len(known_values) < 0.95 * _DRAWS:
        return None
    low, high = np.percentile(known_values, [2.5, 97.5])
    return float(low), float(high)


def calibration_file() -> Path:
    """Where calibrations are kept: beside the cache of answers that `CONVOSCOPE_CACHE` names, else the user's data."""
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given) / "calibration.json"
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return data / "convoscope" / "calibration.json"


def kept_calibrations(file: Path) -> dict[str, Agreement]:
    """By the judge and its rubric."""
    if not file.exists():
        return {}
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, Agreement])
    except msgspec.DecodeError as error:
        raise InputError(f"is not a calibration: {error}", file=str(file), hint="calibrate again") from None


def keep_calibration(result: Agreement, file: Path) -> None:
    """Add a calibration to the file, in the place of an older one of the same judge."""
    kept = {**kept_calibrations(file), result.judge: result}
    file.parent.mkdir(parents=True, exist_ok=True)
    scratch = file.with_suffix(".tmp")
    scratch.write_bytes(msgspec.json.format(msgspec.json.encode(kept), indent=2) + b"\n")
    scratch.replace(file)
