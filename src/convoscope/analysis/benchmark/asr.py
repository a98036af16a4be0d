"""The track `asr`: words and characters that a recogniser got wrong, pooled over files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from convoscope.analysis.benchmark.datasets import read_file
from convoscope.analysis.benchmark.error_rates import ErrorRate, FailedFile, divided, error_rate
from convoscope.analysis.benchmark.result import MetricResult
from convoscope.errors import InputError
from convoscope.ingest.io.json import BadJson, decode
from convoscope.text.folding import plain_description

NORMALISER = "plain/1"
"""NFKC, case folded, without punctuation, single blanks. It is in the config of each result."""
ENDINGS = (".txt", ".json")


class Edits(NamedTuple):
    """What it takes to make the reference of what was recognised."""

    substitutions: int
    deletions: int
    insertions: int
    total: int
    """Words, or characters, of the reference."""

    @property
    def errors(self) -> int:
        return self.substitutions + self.deletions + self.insertions


class AsrSample(NamedTuple):
    """One file."""

    words: Edits
    characters: Edits


def read_text(path: Path, sample: str = "") -> str:
    """The words of a transcript: plain text, or JSON with `text` or `segments`."""
    del sample
    try:
        data = read_file(str(path))
        if path.suffix != ".json":
            return data.decode()
        value = decode(data).value
    except (BadJson, UnicodeDecodeError) as error:
        raise InputError(f"is not a transcript: {error}", file=str(path)) from None
    if isinstance(value, dict) and isinstance(value.get("segments"), list):
        return " ".join(_text(one, place, path) for place, one in enumerate(value["segments"]))
    if isinstance(value, dict) and isinstance(value.get("text"), str):
        return str(value["text"])
    raise InputError("has no words", file=str(path), field="$.segments", hint="give `segments` or `text`")


def _text(segment: Any, place: int, path: Path) -> str:
    text = segment.get("text") if isinstance(segment, dict) else None
    if not isinstance(text, str):
        hint = 'a segment is {"text": "…"}'
        raise InputError("is not a segment with words", file=str(path), field=f"$.segments[{place}]", hint=hint)
    return text


def compare_texts(recognised: str, reference: str) -> AsrSample:
    """Edits of words and of characters, after both texts are normalised in the same way."""
    mine, theirs = plain_description(recognised), plain_description(reference)
    return AsrSample(edits(mine.split(), theirs.split()), edits(mine, theirs))


def edits(recognised: str | list[str], reference: str | list[str]) -> Edits:
    """The fewest edits between two texts or lists of words."""
    from rapidfuzz.distance import Levenshtein

    kinds = [one.tag for one in Levenshtein.editops(reference, recognised)]
    return Edits(kinds.count("replace"), kinds.count("delete"), kinds.count("insert"), len(reference))


def asr_metrics(samples: Sequence[AsrSample | FailedFile], references: Sequence[str]) -> dict[str, MetricResult]:
    """WER and CER, and the parts of WER. A file without a transcript failed; without a word, all would be deleted."""
    measured, reasons = divided(samples)
    pairs = zip(samples, references, strict=True)
    lost = [plain_description(text) for sample, text in pairs if isinstance(sample, FailedFile)]
    words, letters = sum(len(one.split()) for one in lost), sum(map(len, lost))
    rates = {
        "wer": ErrorRate([(one.words.errors, one.words.total) for one in measured], words, words),
        "cer": ErrorRate([(one.characters.errors, one.characters.total) for one in measured], letters, letters),
    }
    for name, added, bounded in (("substitution", 0, True), ("deletion", words, True), ("insertion", 0, False)):
        edits = [(getattr(one.words, f"{name}s"), one.words.total) for one in measured]
        rates[f"{name}_rate"] = ErrorRate(edits, added, words, bounded)
    return {name: error_rate(rate, reasons, "empty_reference") for name, rate in rates.items()}
