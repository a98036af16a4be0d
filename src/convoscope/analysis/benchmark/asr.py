"""The track `asr`: words and characters that a recogniser got wrong, pooled over files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from convoscope.analysis.benchmark.error_rates import ErrorRate, error_rate
from convoscope.analysis.benchmark.result import MetricResult
from convoscope.errors import InputError
from convoscope.ingest.io.json import BadJson, decode
from convoscope.text.descriptions import plain_description

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


def read_text(path: Path) -> str:
    """The words of a transcript: plain text, or JSON with `text` or `segments`."""
    try:
        if path.suffix != ".json":
            return path.read_text(encoding="utf-8")
        value = decode(path.read_bytes()).value
    except (BadJson, UnicodeDecodeError) as error:
        raise InputError(f"is not a transcript: {error}", file=str(path)) from None
    if isinstance(value, dict) and isinstance(value.get("segments"), list):
        return " ".join(_text(one) for one in value["segments"])
    if isinstance(value, dict) and isinstance(value.get("text"), str):
        return str(value["text"])
    raise InputError("has no words", file=str(path), field="$.segments", hint="give `segments` or `text`")


def _text(segment: Any) -> str:
    text = segment.get("text") if isinstance(segment, dict) else None
    return text if isinstance(text, str) else ""


def compare_texts(recognised: str, reference: str) -> AsrSample:
    """Edits of words and of characters, after both texts are normalised in the same way."""
    mine, theirs = plain_description(recognised), plain_description(reference)
    return AsrSample(edits(mine.split(), theirs.split()), edits(mine, theirs))


def edits(recognised: str | list[str], reference: str | list[str]) -> Edits:
    """The fewest edits between two texts or lists of words."""
    from rapidfuzz.distance import Levenshtein

    kinds = [one.tag for one in Levenshtein.editops(reference, recognised)]
    return Edits(kinds.count("replace"), kinds.count("delete"), kinds.count("insert"), len(reference))


def asr_metrics(samples: list[AsrSample | None], references: list[str]) -> dict[str, MetricResult]:
    """WER and CER. A file without a transcript is None; had it none of the words, all would be deleted."""
    lost = [plain_description(text) for sample, text in zip(samples, references, strict=True) if sample is None]
    measured = [one for one in samples if one is not None]
    words = ErrorRate([(one.words.errors, one.words.total) for one in measured], sum(len(one.split()) for one in lost))
    letters = ErrorRate([(one.characters.errors, one.characters.total) for one in measured], sum(map(len, lost)))
    metrics = {
        "wer": error_rate(words, len(lost), "empty_reference"),
        "cer": error_rate(letters, len(lost), "empty_reference"),
    }
    for name in ("substitutions", "deletions", "insertions"):
        share = ErrorRate([(getattr(one.words, name), one.words.total) for one in measured], 0)
        metrics[f"{name[:-1]}_rate"] = error_rate(share, len(lost), "empty_reference")
    return metrics
