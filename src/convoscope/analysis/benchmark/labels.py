"""Labels of a sample as they are compared: from files of predictions, by an annotator, or from gold.

Files hold transcripts with `annotations.semantic`, or that annotation alone. They are taken as they are, without
building conversations: a benchmark scores labels, and there may be very many.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from convoscope.analysis.benchmark.datasets import read_file, without_folder
from convoscope.annotate.annotator import Annotator, annotations_of, failure_of
from convoscope.conversation import Conversation
from convoscope.conversation.annotations import ACTIONS, BROKEN, FAMILIES, RISKS, SEVERITY, SKIPPED, TOPICS
from convoscope.errors import InputError
from convoscope.ingest.annotation_shapes import (
    annotation_parts,
    finding_text,
    is_absent,
    misfit,
    one_shape,
    segment_ids,
    statuses,
)
from convoscope.ingest.companions.gold_files import TRANSCRIPTS, GoldFile, sample_path
from convoscope.metrics.semantic.samples import Labels, PlainAction, PlainRisk, labels_of, plain_risk
from convoscope.vocabulary import semantic_vocabulary

NO_PREDICTION = "no_prediction"
UNREADABLE_PREDICTION = "unreadable_prediction"
UNREADABLE_TRANSCRIPT = "unreadable_transcript"


class _Maker(NamedTuple):
    """Who made an annotation, as far as it says."""

    model: str
    annotator: str


class SemanticPrediction(NamedTuple):
    """The labels of a sample, and who made them."""

    labels: Labels
    model: str
    annotator: str
    annotators: int = 1
    """How many there are in the file; this is the one that was named, else the first."""

    @property
    def maker(self) -> str:
        return self.model or self.annotator


class FailedPrediction(Exception):
    """A sample has no usable prediction: a reason code, and a detail."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


Predict = Callable[[str], SemanticPrediction]
"""The prediction of a sample; a `FailedPrediction` where no prediction can be used."""


def gold_labels(gold: GoldFile) -> Labels:
    """Gold as it is compared."""
    return Labels(
        None if gold.topics is None else tuple(topic.label for topic in gold.topics),
        None
        if gold.risks is None
        else tuple(PlainRisk(risk.type, risk.severity, risk.segment_ids) for risk in gold.risks),
        None
        if gold.actions is None
        else tuple(PlainAction(item.description, item.verbatim, item.assignee_role or "") for item in gold.actions),
    )


class _Transcript(msgspec.Struct, gc=False):
    """What is looked at of a transcript; a file may also hold the annotation alone."""

    annotations: Any = None
    chunks: Any = None
    topics: Any = None
    risks: Any = None
    actions: Any = None
    normalized: Any = None
    risk_tags: Any = None
    matches: Any = None
    extraction_status: Any = None
    error: Any = None
    model: Any = None
    annotator: Any = None
    provider: Any = None


_decode = msgspec.json.Decoder(_Transcript).decode


def read_prediction(
    data: bytes, name: str, min_confidence: float | None = None, model: str | None = None
) -> SemanticPrediction:
    """The labels in a file; an `InputError` where the file has no labels, or where they are no lists.

    What one annotator says of chunks is put together. Of several annotators, that of `model` is taken, else the first.
    """
    try:
        transcript = _decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"is not a transcript: {error}", file=name, hint="write the prediction again") from None
    held = [part.facts for part in annotation_parts(transcript.annotations, transcript.chunks)]
    if not held:
        alone = msgspec.structs.asdict(transcript)
        held = [{key: value for key, value in alone.items() if value is not None and key != "annotations"}]
    parts = [one_shape(fields) for fields in held if isinstance(fields, dict) and fields]
    if not parts:
        raise InputError(
            "has no predictions", file=name, field="$.annotations.semantic", hint="give topics, risks and actions there"
        )
    for part in parts:
        if field := misfit(part):
            hint = "findings are a list; `[]` is none, null is not looked for"
            raise InputError("is no list of findings", file=name, field=f"$.{field}", hint=hint)
    makers = [_Maker(_text(part.get("model")), _text(part.get("annotator", part.get("provider")))) for part in parts]
    chosen = next((maker for maker in makers if model in maker), makers[0])
    labels = _labels([part for part, maker in zip(parts, makers, strict=True) if maker == chosen], min_confidence)
    return SemanticPrediction(labels, *chosen, len(set(makers)))


def _labels(parts: Sequence[Mapping[str, Any]], min_confidence: float | None) -> Labels:
    """The labels of one annotator; what it said of chunks is put together."""
    vocabulary = semantic_vocabulary()
    states = [statuses(part) for part in parts]

    def findings(family: str) -> list[Any] | None:
        given = [
            part[family]
            for part, status in zip(parts, states, strict=True)
            if isinstance(part.get(family), list) and not (status and is_absent(family, status))
        ]
        return [item for items in given for item in items if not _is_unsure(item, min_confidence)] if given else None

    topics, risks, actions = map(findings, (TOPICS, RISKS, ACTIONS))
    return Labels(
        None if topics is None else tuple([vocabulary.topic(finding_text(topic, TOPICS)) for topic in topics]),
        None if risks is None else tuple([_risk(risk) for risk in risks]),
        None if actions is None else tuple([_action(action) for action in actions]),
        all(status.get(SEVERITY) != SKIPPED for status in states),
        frozenset([family for status in states for family in FAMILIES if status.get(family) in BROKEN]),
    )


def _is_unsure(finding: Any, min_confidence: float | None) -> bool:
    if min_confidence is None or not isinstance(finding, dict):
        return False
    confidence = finding.get("confidence")
    return isinstance(confidence, int | float) and confidence < min_confidence


def _risk(finding: Any) -> PlainRisk:
    fields = finding if isinstance(finding, dict) else {}
    segments = [segment for segment in segment_ids(fields) if isinstance(segment, int)]
    return plain_risk(finding_text(finding, RISKS), _text(fields.get("severity")), segments)


def _action(finding: Any) -> PlainAction:
    fields = finding if isinstance(finding, dict) else {}
    return PlainAction(
        finding_text(finding, ACTIONS), _text(fields.get("verbatim")), _text(fields.get("assignee_role"))
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


class PredictionFolder:
    """Predictions in a folder, each in a file of its sample's name."""

    def __init__(self, folder: Path, min_confidence: float | None, model: str | None = None) -> None:
        if not folder.is_dir():
            raise InputError("there is no such folder", file=str(folder), hint="--predictions names one")
        self._prefix = f"{folder}/"
        self.min_confidence = min_confidence
        self.hashes: dict[str, str] = {}
        self.model = model
        self.makers: set[str] = set()
        self.several = 0
        """Samples with findings of several annotators."""
        self._names = frozenset(os.listdir(folder))

    def __call__(self, sample: str) -> SemanticPrediction:
        name, other = sample + ".json", sample + "_prediction.json"
        name = other if name not in self._names and other in self._names else name
        try:
            data = read_file(self._prefix + name)
        except FileNotFoundError:
            raise FailedPrediction(NO_PREDICTION, f"{name}: there is no prediction") from None
        except OSError as error:
            raise FailedPrediction(UNREADABLE_PREDICTION, f"{name}: {error.strerror}") from None
        self.hashes[sample] = sha256(data).hexdigest()
        try:
            prediction = read_prediction(data, name, self.min_confidence, self.model)
        except InputError as error:
            raise FailedPrediction(UNREADABLE_PREDICTION, str(error)) from None
        self.makers.add(prediction.maker)
        self.several += prediction.annotators > 1
        return prediction

    def samples(self, known: Collection[str]) -> Iterator[str]:
        """The samples that have a prediction and are not among those known."""
        for name in sorted(self._names):
            sample = name.removesuffix(".json").removesuffix("_prediction")
            if name.endswith(".json") and sample not in known:
                with suppress(InputError, OSError):
                    read_prediction(read_file(self._prefix + name), name)
                    yield sample

    @property
    def notes(self) -> list[str]:
        """What a reader of the result should know."""
        if not self.several:
            return []
        which = f"that of {self.model}, else the first," if self.model else "the first"
        return [f"{self.several} predictions are of several annotators: {which} was scored; --model names another"]


class TranscriptFolder:
    """Predictions that an annotator makes of transcripts, each in a file of its sample's name."""

    def __init__(self, folder: Path, annotator: Annotator, min_confidence: float | None = None) -> None:
        if not folder.is_dir():
            raise InputError("there are no transcripts", file=str(folder), hint="name their folder with --transcripts")
        self.folder = folder
        self.annotator = annotator
        self.min_confidence = min_confidence
        self.hashes: dict[str, str] = {}
        """Of the transcripts: with the annotator's identity they say what was predicted."""

    def __call__(self, sample: str) -> SemanticPrediction:
        annotations = annotations_of(self._conversation(sample), self.annotator)
        failure = failure_of(annotations)
        if failure is not None:
            raise FailedPrediction(*failure)
        labels = labels_of([annotations], min_confidence=self.min_confidence)
        return SemanticPrediction(labels, annotations.model, annotations.annotator)

    def _conversation(self, sample: str) -> Conversation:
        from convoscope.ingest.read import read

        path = sample_path(self.folder, sample, TRANSCRIPTS)
        if path is None:
            raise FailedPrediction(NO_PREDICTION, f"{sample}.json: there is no transcript")
        try:
            self.hashes[sample] = sha256(path.read_bytes()).hexdigest()
            conversations = list(read([path]))
        except (InputError, OSError) as error:
            raise FailedPrediction(UNREADABLE_TRANSCRIPT, without_folder(str(error), path.parent)) from None
        if len(conversations) != 1:
            detail = f"{path.name}: holds {len(conversations)} conversations, not one"
            raise FailedPrediction(UNREADABLE_TRANSCRIPT, detail)
        return conversations[0]
