"""The track `semantic`, mode `summary`: a judge rates summaries against transcripts and references."""

from __future__ import annotations

import asyncio
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import UNSET

from convoscope.analysis.benchmark.datasets import BenchmarkDataset, read_file
from convoscope.analysis.benchmark.labels import NO_PREDICTION, UNREADABLE_PREDICTION, sample_conversation
from convoscope.analysis.benchmark.result import (
    POINTS,
    BenchmarkRequest,
    BenchmarkResult,
    FailedSample,
    Lost,
    MetricResult,
    SampleResult,
    SummaryVerdicts,
    Tally,
    make_result,
    ratio_result,
)
from convoscope.annotate.annotator import NotAnnotated
from convoscope.conversation import Annotations, Conversation
from convoscope.judging.calibrations import NOT_CALIBRATED, Agreement
from convoscope.judging.questions import fenced_lines
from convoscope.judging.rubrics import rubric_named
from convoscope.metrics.semantic.summaries import BANDS, MEASURES, NO_REFERENCE, band, transcript_lines
from convoscope.resources.judge import Judge, close
from convoscope.scores.judges import model_of
from convoscope.scores.observation import ERROR, Observation, unmeasured
from convoscope.scores.reducers import Sums
from convoscope.views.items import WHOLE

REFERENCES = "summaries"
"""The folder of a data set with reference summaries, SAMPLE.txt each."""
_WRITE = """Write a summary of this conversation for a person who was not there: what it was about, what was decided,
what was promised and by whom, what is open. At most 120 words, in the language of the conversation. Say nothing that is
not in it.

## The conversation
"""
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "required": ["summary"],
    "properties": {"summary": {"type": "string"}},
}


class _Judged(NamedTuple):
    """A sample and what the judge says of its summary, or why it has none."""

    id: str
    text: str
    verdicts: Mapping[str, Observation]
    failed: FailedSample | None = None


def score_summaries(
    request: BenchmarkRequest,
    dataset: BenchmarkDataset,
    samples: Sequence[str],
    judge: Judge,
    writer: Judge | None,
    transcripts: Path,
    calibrations: Sequence[Agreement] = (),
) -> BenchmarkResult:
    """Rate the summary of each sample: from a file of predictions, or written by a model that was named for it.

    `calibrations` say how far judges agree with people.
    """

    async def asked() -> list[_Judged]:
        try:
            return await asyncio.gather(*(source.judged(sample) for sample in samples))
        finally:
            await close(judge)
            if writer is not None and writer is not judge:
                await close(writer)

    source = _Samples(request, dataset, judge, writer, transcripts)
    judged = asyncio.run(asked())
    failed = [one.failed for one in judged if one.failed is not None]
    maker = "files" if writer is None else writer.identity
    rubrics = {name: rubric_named(f"summary_{name}", getattr(judge, "rubric_folders", ())) for name in MEASURES}
    own = writer is not None and model_of(writer.identity) == model_of(judge.identity)
    return make_result(
        request,
        len(samples),
        metrics={
            name: _judged_by(_figure(name, judged), name, rubric.judge(judge.identity), calibrations)
            for name, rubric in rubrics.items()
        },
        coverage={
            "samples_total": len(samples),
            "samples_with_summaries": sum(bool(one.text) for one in judged),
            "samples_with_reference_summaries": len(source.references),
        },
        config={
            "model": maker,
            "backend": "judge",
            "judge": judge.identity,
            "rubrics": {name: rubric.hash for name, rubric in rubrics.items()},
        },
        gold_hashes=source.references,
        prediction_hashes=source.hashes,
        failed=failed,
        notes=["the judge wrote the summaries itself: models rate their own words kindly"] * own,
        sample_results=[_result(one) for one in judged],
    )


def _figure(name: str, judged: Sequence[_Judged]) -> MetricResult:
    """The mean over the samples that have a score. In the worst case those that failed would have 0.

    A sample without a reference did not fail: there is nothing to compare its summary with.
    """
    values: list[float] = []
    failures: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    for sample in judged:
        verdict = sample.verdicts.get(name)
        if verdict is not None and verdict.value is not None:
            values.append(verdict.value)
        elif verdict is not None and verdict.reason == NO_REFERENCE:
            skipped[NO_REFERENCE] += 1
        else:
            failures[
                verdict.reason if verdict is not None else sample.failed.reason if sample.failed else "not_judged"
            ] += 1
    scores = np.array(values, float)
    return ratio_result(
        Sums("", scores, np.ones(len(scores)), "nothing_measured"),
        len(values),
        Tally(failures, skipped, failures),
        lost=Lost(0.0, float(failures.total())) if failures else None,
        bounded=False,
        least=float(BANDS[-1][0]),
        most=float(BANDS[0][0]),
        average="macro",
        unit=POINTS,
    )


def _judged_by(figure: MetricResult, name: str, judge: str, calibrations: Sequence[Agreement]) -> MetricResult:
    """The figure with its judge, and what is known of how far this judge agrees with people."""
    known = (one.text for one in calibrations if (one.metric, one.judge) == (f"summary.{name}", judge))
    return msgspec.structs.replace(figure, judge=judge, calibration=next(known, NOT_CALIBRATED))


def _result(sample: _Judged) -> SampleResult:
    scores = {name: verdict.value for name, verdict in sample.verdicts.items()}
    why = {name: verdict.reason for name, verdict in sample.verdicts.items() if verdict.value is None}
    if sample.failed is not None:
        why = dict.fromkeys(MEASURES, sample.failed.reason) | why
    reasoning = {name: str((verdict.details or {}).get("reasoning", "")) for name, verdict in sample.verdicts.items()}
    bands = {name: band(value) for name, value in scores.items() if value is not None}
    return SampleResult(
        sample_id=sample.id,
        failed=f"{sample.failed.reason}: {sample.failed.detail}" if sample.failed is not None else UNSET,
        reasons=why or UNSET,
        summary=SummaryVerdicts(text=sample.text, **scores, bands=bands, reasoning=reasoning) if sample.text else UNSET,
    )


class _Samples:
    """Finds what belongs to a sample, and asks about it."""

    def __init__(
        self,
        request: BenchmarkRequest,
        dataset: BenchmarkDataset,
        judge: Judge,
        writer: Judge | None,
        transcripts: Path,
    ) -> None:
        self._folder = request.predictions
        self._judge, self._writer, self._transcripts = judge, writer, transcripts
        self._references = dataset.folder / REFERENCES
        self.references: dict[str, str] = {}
        """Hashes of the reference summaries."""
        self.hashes: dict[str, str] = {}
        """Of the summaries that were judged."""

    async def judged(self, sample: str) -> _Judged:
        from convoscope.metrics.registry import known
        from convoscope.scoring.evaluate import answered

        text = ""
        try:
            conversation, missing = self._conversation(sample)
            text = self._given(sample) if self._folder is not None else await self._written(conversation, missing)
        except NotAnnotated as error:
            return _Judged(sample, text, {}, FailedSample(sample, error.reason, error.detail))
        self.hashes[sample] = sha256(text.encode()).hexdigest()
        annotations = [Annotations(origin="predicted", summary=text)]
        if reference := self._reference(sample):
            annotations.append(Annotations(origin="gold", summary=reference))
        conversation = msgspec.structs.replace(conversation, annotations=tuple(annotations))
        verdicts: dict[str, Observation] = {}
        for name in MEASURES:
            declared: Any = known(f"summary.{name}")
            needs = [need for need in declared.needs if need.present is not None]
            if absent := next((need for need in needs if not need.present(conversation)), None):
                verdicts[name] = unmeasured(WHOLE, absent.code)
            else:
                [verdicts[name]] = await answered(declared, conversation, {"judge": self._judge})
        failures = [one for one in verdicts.values() if one.status == ERROR]
        failed = None
        if len(failures) == len(MEASURES):
            failed = FailedSample(sample, failures[0].reason, failures[0].detail)
        return _Judged(sample, text, verdicts, failed)

    def _conversation(self, sample: str) -> tuple[Conversation, NotAnnotated | None]:
        """The transcript; without one there is nothing to compare a summary with, and nothing to write it from."""
        try:
            return sample_conversation(self._transcripts, sample), None
        except NotAnnotated as error:
            return Conversation(id=sample), error

    def _given(self, sample: str) -> str:
        """The summary in a file: text, or JSON that holds it."""
        assert self._folder is not None
        for name in (f"{sample}.txt", f"{sample}.json", f"{sample}_prediction.json"):
            if (self._folder / name).is_file():
                text = _text_of(read_file(str(self._folder / name)), name)
                if not text:
                    raise NotAnnotated(NO_PREDICTION, f"{name}: there is no summary in it")
                return text
        raise NotAnnotated(NO_PREDICTION, f"{sample}.txt: there is no summary")

    async def _written(self, conversation: Conversation, missing: NotAnnotated | None) -> str:
        if missing is not None:
            raise missing
        lines = transcript_lines(conversation)
        if self._writer is None or not lines:
            raise NotAnnotated(NO_PREDICTION, "there is no summary, and no model is named that writes it")
        try:
            verdict = await self._writer.ask(_WRITE + fenced_lines(lines).text, _SCHEMA)
        except Exception as error:  # whatever a model of the user's own raises is the result of this sample
            raise NotAnnotated("not_written", f"{type(error).__name__}: {error}"[:200]) from None
        text = verdict.answer.get("summary")
        if not isinstance(text, str) or not text.strip():
            raise NotAnnotated("not_written", "the model wrote nothing")
        return text.strip()

    def _reference(self, sample: str) -> str:
        path = self._references / f"{sample}.txt"
        if not path.is_file():
            return ""
        data = read_file(str(path))
        self.references[sample] = sha256(data).hexdigest()
        return data.decode("utf-8-sig", "replace").strip()


def _text_of(data: bytes, name: str) -> str:
    """The summary in a file: all of a text, `summary` of JSON or of its `annotations.semantic`."""
    try:
        if name.endswith(".txt"):
            return data.decode("utf-8-sig").strip()
        held: Any = msgspec.json.decode(data.removeprefix(BOM_UTF8))
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError) as error:
        raise NotAnnotated(UNREADABLE_PREDICTION, f"{name}: {error}") from None
    holders = [held]
    if isinstance(held, dict) and isinstance(held.get("annotations"), dict):
        semantic = held["annotations"].get("semantic")
        holders += semantic if isinstance(semantic, list) else [semantic]
    summary = next((part["summary"] for part in holders if isinstance(part, dict) and part.get("summary")), "")
    if not isinstance(summary, str):
        raise NotAnnotated(UNREADABLE_PREDICTION, f"{name}: its summary is no text")
    return summary.strip()
