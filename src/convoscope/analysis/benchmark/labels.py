"""Labels of a sample as they are compared: from files of predictions, by an annotator, or from gold.

Files hold transcripts with `annotations.semantic`, or that annotation alone. They are taken as they are, without
building conversations: a benchmark scores labels, and there may be very many.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from convoscope.analysis.benchmark.datasets import read_file, without_folder
from convoscope.analysis.words import counted
from convoscope.annotate.annotator import Annotator, NotAnnotated, annotations_of, failure_of, in_order
from convoscope.conversation import Annotations, Conversation
from convoscope.conversation.annotations import ACTIONS, BROKEN, FAMILIES, PARTIAL, RISKS, SEVERITY, SKIPPED, TOPICS
from convoscope.errors import InputError
from convoscope.ingest.annotation_shapes import (
    AnnotationPart,
    annotation_parts,
    finding_text,
    is_absent,
    misfit,
    one_shape,
    segment_ids,
    statuses,
)
from convoscope.ingest.companions.gold_files import TRANSCRIPTS, GoldFile, sample_path
from convoscope.ingest.record import as_object, as_text
from convoscope.metrics.semantic.samples import FAILED, Labels, PlainAction, PlainRisk, labels_of, plain_risk
from convoscope.vocabulary import semantic_vocabulary

_Label = TypeVar("_Label")

NO_PREDICTION = "no_prediction"
UNREADABLE_PREDICTION = "unreadable_prediction"
UNREADABLE_TRANSCRIPT = "unreadable_transcript"
MODEL_VARIABLE = "CONVOSCOPE_SEMANTIC_MODEL"


class SemanticPrediction(NamedTuple):
    """The labels of a sample, and who made them."""

    labels: Labels
    model: str
    annotator: str
    annotators: int = 1
    """How many there are in the file; this is the one that was named, else the first."""
    is_partial: bool = False
    """It says of a family that findings are missing."""


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
    """The labels in a file; `NotAnnotated` where the file has no labels, or where they are no lists.

    What one annotator says of chunks is put together. Of several annotators, that of `model` is taken, else the first.
    """
    try:
        transcript = _decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"is not a transcript: {error}", file=name, hint="write the prediction again") from None
    held = list(annotation_parts(transcript.annotations, transcript.chunks))
    if not held:
        alone = msgspec.structs.asdict(transcript)
        fields = {key: value for key, value in alone.items() if value is not None and key not in _OF_TRANSCRIPT}
        held = [AnnotationPart(fields)]
    parts = [part._replace(value=one_shape(part.value)) for part in held if isinstance(part.value, dict) and part.value]
    if not parts:
        hint = "give topics, risks and actions there"
        where = InputError("has no predictions", file=name, field="$.annotations.semantic", hint=hint)
        raise NotAnnotated(NO_PREDICTION, str(where))
    for part in parts:
        if field := misfit(part.value):
            hint = "findings are a list; `[]` means that there are none, null that none were looked for"
            where = InputError("is no list of findings", file=name, field=f"$.{field}", hint=hint)
            raise NotAnnotated(FAILED, str(where))
    makers = [_maker(part.value) for part in parts]
    chosen = next((maker for maker in makers if model in maker), makers[0])
    own_parts = [part for part, maker in zip(parts, makers, strict=True) if maker == chosen]
    is_partial = any(PARTIAL in statuses(part.value).values() for part in own_parts)
    return SemanticPrediction(_labels(own_parts, min_confidence), *chosen, len(set(makers)), is_partial)


_OF_TRANSCRIPT = frozenset(("annotations", "chunks"))


def _maker(part: Mapping[str, Any]) -> tuple[str, str]:
    return as_text(part.get("model")), as_text(part.get("annotator", part.get("provider")))


def _labels(parts: Sequence[AnnotationPart], min_confidence: float | None) -> Labels:
    """The labels of one annotator; what it said of chunks is put together."""
    vocabulary = semantic_vocabulary()
    states = [statuses(part.value) for part in parts]

    def is_sure(finding: Any) -> bool:
        confidence = finding.get("confidence") if min_confidence is not None and isinstance(finding, dict) else None
        return min_confidence is None or not isinstance(confidence, int | float) or confidence >= min_confidence

    def findings(family: str, build: Callable[[Any, AnnotationPart], _Label]) -> tuple[_Label, ...] | None:
        given = [
            part
            for part, status in zip(parts, states, strict=True)
            if isinstance(part.value.get(family), list) and not (status and is_absent(family, status))
        ]
        if not given:
            return None
        return tuple([build(item, part) for part in given for item in part.value[family] if is_sure(item)])

    def topic(finding: Any, _: AnnotationPart) -> str:
        return vocabulary.topic(finding_text(finding, TOPICS))

    def risk(finding: Any, part: AnnotationPart) -> PlainRisk:
        fields = as_object(finding)
        segments = [int(text) if (text := as_text(id)).isdecimal() else text for id in _segments(fields, part)]
        return plain_risk(finding_text(finding, RISKS), as_text(fields.get("severity")), segments)

    def action(finding: Any, _: AnnotationPart) -> PlainAction:
        fields = as_object(finding)
        texts = as_text(fields.get("verbatim")), as_text(fields.get("assignee_role"))
        return PlainAction(finding_text(finding, ACTIONS), *texts)

    return Labels(
        findings(TOPICS, topic),
        findings(RISKS, risk),
        findings(ACTIONS, action),
        all(status.get(SEVERITY) != SKIPPED for status in states),
        frozenset([family for status in states for family in FAMILIES if status.get(family) in BROKEN]),
    )


def _segments(finding: Mapping[str, Any], part: AnnotationPart) -> Sequence[Any]:
    """The segments of a finding; one that names none is about all of its chunk."""
    return segment_ids(finding) or part.segment_ids


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
        self.partial = 0
        """Samples whose annotator says that findings are missing."""
        self._names = frozenset(os.listdir(folder))

    def __call__(self, sample: str) -> Labels:
        name, other = sample + ".json", sample + "_prediction.json"
        name = other if name not in self._names and other in self._names else name
        try:
            data = read_file(self._prefix + name)
        except FileNotFoundError:
            raise NotAnnotated(NO_PREDICTION, f"{name}: there is no prediction") from None
        except OSError as error:
            raise NotAnnotated(UNREADABLE_PREDICTION, f"{name}: {error.strerror or error}") from None
        self.hashes[sample] = sha256(data).hexdigest()
        try:
            prediction = read_prediction(data, name, self.min_confidence, self.model)
        except InputError as error:
            raise NotAnnotated(UNREADABLE_PREDICTION, str(error)) from None
        self.makers.add(prediction.model or prediction.annotator)
        self.several += prediction.annotators > 1
        self.partial += prediction.is_partial
        return prediction.labels

    def each(self, samples: Iterable[str]) -> Iterator[Labels | NotAnnotated]:
        """The labels of some samples, or why there are none."""
        for sample in samples:
            try:
                yield self(sample)
            except NotAnnotated as error:
                yield error

    def samples(self, known: Collection[str]) -> Iterator[str]:
        """The samples that have a prediction and are not among those known."""
        for name in sorted(self._names):
            sample = name.removesuffix(".json").removesuffix("_prediction")
            if name.endswith(".json") and sample not in known:
                with suppress(InputError, NotAnnotated, OSError):
                    read_prediction(read_file(self._prefix + name), name)
                    yield sample

    def config(self, model: str | None) -> dict[str, Any]:
        """Who predicted, for the receipt."""
        makers = sorted(self.makers - {""})
        name = model or ", ".join(makers) or os.environ.get(MODEL_VARIABLE) or "unnamed"
        return {"makers": makers, "model": name, "backend": "predictions"}

    @property
    def notes(self) -> list[str]:
        """What a reader of the result should know."""
        notes = []
        if self.several:
            which = f"that of {self.model}, else the first," if self.model else "the first"
            notes = [f"{self.several} predictions are of several annotators: {which} was scored; --model names another"]
        if self.partial:
            notes.append(f"{counted(self.partial, 'prediction')} marked as partial: findings are missing")
        return notes


def sample_conversation(folder: Path, sample: str, hashes: dict[str, str] | None = None) -> Conversation:
    """The transcript of a sample. Raises `NotAnnotated`; `hashes` gets that of its file."""
    from convoscope.ingest.read import read

    path = sample_path(folder, sample, TRANSCRIPTS)
    if path is None:
        raise NotAnnotated(NO_PREDICTION, f"{sample}.json: there is no transcript")
    try:
        if hashes is not None:
            hashes[sample] = sha256(path.read_bytes()).hexdigest()
        conversations = list(read([path]))
    except (InputError, OSError) as error:
        raise NotAnnotated(UNREADABLE_TRANSCRIPT, without_folder(str(error), path.parent)) from None
    if len(conversations) != 1:
        raise NotAnnotated(UNREADABLE_TRANSCRIPT, f"{path.name}: holds {len(conversations)} conversations, not one")
    return conversations[0]


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
        self._taken: list[tuple[int, int]] = []
        """Tokens in and out of each transcript that a model answered about."""
        self._failed = 0
        """Of these, the transcripts without a usable answer."""
        self.partial = 0
        """Transcripts of which the annotator left out findings."""
        self._dropped = 0
        """These findings: the words that they quote are not in the transcript."""

    @property
    def notes(self) -> list[str]:
        """What a reader of the result should know."""
        notes = []
        if self._taken:
            tokens_in, tokens_out = map(sum, zip(*self._taken, strict=True))
            of = counted(len(self._taken), "transcript")
            of += f", {self._failed:,} of them without a usable answer" if self._failed else ""
            notes = [f"the model took {tokens_in:,} tokens in and {tokens_out:,} out for {of}"]
        if self._dropped:
            of = f"{counted(self._dropped, 'finding')} of {counted(self.partial, 'transcript')}"
            notes.append(f"{of} left out: what they quote is not in the transcript")
        return notes

    def each(self, samples: Iterable[str]) -> Iterator[Labels | NotAnnotated]:
        """The labels of some samples, or why there are none."""
        for made in in_order(self.annotator, self._annotations, map(self._transcript, samples)):
            yield made if isinstance(made, NotAnnotated) else self._labels(made)

    def _transcript(self, sample: str) -> Conversation | NotAnnotated:
        try:
            return sample_conversation(self.folder, sample, self.hashes)
        except NotAnnotated as error:
            return error

    def _annotations(self, conversation: Conversation | NotAnnotated) -> Annotations | NotAnnotated:
        if isinstance(conversation, NotAnnotated):
            return conversation
        return annotations_of(conversation, self.annotator)

    def _labels(self, annotations: Annotations) -> Labels | NotAnnotated:
        failure, extras = failure_of(annotations), annotations.extras
        if {"input_tokens", "output_tokens"} <= extras.keys():
            self._taken.append((extras["input_tokens"], extras["output_tokens"]))
            self._failed += failure is not None
        dropped = extras.get("dropped")
        self._dropped += dropped if isinstance(dropped, int) else 0
        self.partial += bool(dropped) or PARTIAL in annotations.extraction.values()
        return (
            labels_of([annotations], min_confidence=self.min_confidence) if failure is None else NotAnnotated(*failure)
        )

    def config(self, model: str | None) -> dict[str, Any]:
        """Who predicted, for the receipt."""
        identity = self.annotator.identity
        backend = "judge" if identity.startswith("judge/") else "local"
        return {"annotator": identity, "model": model or self.annotator.name, "backend": backend}
