"""Labels of the conversations of a run, as people write them: CSV, or one JSON object a line.

A row says which conversation, which turn of it where turns are rated, which rubric or metric, the rating, and who
gave it. `convoscope judge label` writes such a sheet.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from convoscope.errors import InputError, UsageError
from convoscope.judging.rubrics import Rubric, rubric_among, rubrics
from convoscope.metrics.declaration import TURN, Metric
from convoscope.metrics.registry import known

COLUMNS = ("conversation", "turn", "rubric", "version", "rating", "rater", "notes", "chosen")
"""What a sheet holds, in order."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_UNNAMED = "unnamed"
_HINT = f"a row has conversation, rubric (or metric), and rating (or value); also {', '.join(COLUMNS[5:])}"


class RunLabel(NamedTuple):
    """What one person says of a conversation, or of one of its turns."""

    conversation: str
    turn: str
    """The id of the turn; "" for the whole."""
    rubric: str
    rating: float
    """On the scale of the rubric."""
    rater: str
    line: int


class RunLabels(NamedTuple):
    """The labels of a file, and how many rows have none."""

    labels: list[RunLabel]
    left_out: dict[str, int]
    """Rows without a label, by reason."""


def read_run_labels(path: Path, known_rubrics: Mapping[str, Rubric] | None = None) -> RunLabels:
    """The labels of a file, by rubrics that are known: those of a run, or ours.

    The same label twice counts once; two of one person that differ are refused.
    """
    known_rubrics = rubrics() if known_rubrics is None else known_rubrics
    labels: dict[tuple[str, str, str, str], RunLabel] = {}
    left_out: Counter[str] = Counter()
    for line, row in _rows(path):
        try:
            label = _label(row, line, known_rubrics)
        except (ValueError, UsageError) as error:
            message = error.message if isinstance(error, UsageError) else str(error)
            raise InputError(message, file=str(path), line=line, hint=_HINT) from None
        if isinstance(label, str):
            left_out[label] += 1
            continue
        key = label.conversation, label.turn, label.rubric, label.rater
        before = labels.get(key)
        if before is not None and before.rating != label.rating:
            raise InputError(
                f"{label.rater} rates {label.conversation} as {label.rating:g}, and as {before.rating:g} in line "
                f"{before.line}",
                file=str(path),
                line=line,
                hint="keep one of them; another person has another name under `rater`",
            )
        left_out["repeats another row"] += before is not None
        labels[key] = label
    return RunLabels(list(labels.values()), {reason: count for reason, count in left_out.items() if count})


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        text = path.read_bytes().decode("utf-8-sig")  # an id may hold the end of a line
    except UnicodeDecodeError:
        raise InputError("is not UTF-8", file=str(path)) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=str(path)) from None
    if text.lstrip().startswith("{"):
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield number, _object(line, number, path)
        return
    head = text.partition("\n")[0]
    # A spreadsheet may have written it with another separator.
    separator = max(",;\t", key=head.count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        for row in reader:
            if None in row or None in row.values():
                raise InputError(
                    "has another number of cells than the first line", file=str(path), line=reader.line_num
                )
            yield reader.line_num, {name: plain_cell(cell) for name, cell in row.items()}
    except csv.Error as error:
        raise InputError(f"is not CSV: {error}", file=str(path), line=reader.line_num) from None


def safe_cell(text: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def plain_cell(text: str) -> str:
    """What `safe_cell` was given."""
    return text[1:] if text.startswith("'") and text[1:].startswith(_FORMULA) else text


def _object(line: str, number: int, path: Path) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    if not isinstance(row, dict):
        raise InputError("is not a JSON object", file=str(path), line=number, hint=_HINT)
    return row


def _label(row: Mapping[str, Any], line: int, known_rubrics: Mapping[str, Rubric]) -> RunLabel | str:
    """The label of a row, or why it has none."""
    conversation = str(row.get("conversation") or "")
    name = str(row.get("rubric") or row.get("metric") or "").removeprefix("judged.")
    if not conversation or not name:
        raise ValueError(f"has no {'conversation' if not conversation else 'rubric'}")
    rubric = rubric_among(known_rubrics, name)
    rating = _rating(row, rubric)
    if rating is None:
        return "without a rating"
    version = row.get("version")
    if version not in (None, "") and str(version) != str(rubric.version):
        return f"for version {version} of {name}; it is {rubric.version} now"
    turn = "" if row.get("turn") is None else str(row["turn"]).strip()
    declared = known(rubric.measures)
    by_turn = isinstance(declared, Metric) and declared.observes == TURN
    names_item = bool(rubric.shape and turn)  # of a conversation with several
    if by_turn != bool(turn) and not names_item:
        raise ValueError(
            f"{name} rates {'turns: name one' if by_turn else 'whole conversations: leave the turn empty'}"
        )
    return RunLabel(conversation, turn, rubric.name, rating, str(row.get("rater") or _UNNAMED), line)


def _rating(row: Mapping[str, Any], rubric: Rubric) -> float | None:
    """On the scale of the rubric, where it must be a whole number; None where it was left empty."""
    given, value = row.get("rating"), row.get("value")
    if given in (None, "") and value in (None, ""):
        return None
    is_rating = given not in (None, "")
    number = _number(given if is_rating else value)
    rating = number if is_rating else rubric.low + number * (rubric.high - rubric.low)
    if rating != int(rating) or not rubric.low <= rating <= rubric.high:
        scale = f"{rubric.low} to {rubric.high}" if is_rating else "0 to 1"
        raise ValueError(f"{given if is_rating else value} is not a rating of the scale from {scale}")
    return rating


def _number(text: Any) -> float:
    if isinstance(text, bool) or not isinstance(text, int | float | str):
        raise ValueError(f"{text!r} is not a number")
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{text!r} is not a number")
    return number
