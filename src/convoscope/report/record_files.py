"""`metrics.json` per record: the context that its metrics received, and what they made of it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from convoscope.runs.run import Run, write_json
from convoscope.scores.observation import Score
from convoscope.views import metric_context

FOLDER = "records"
FILE = "metrics.json"
_UNFIT = re.compile(r"[^\w.-]+")


def write_contexts(run: Run) -> tuple[Path, ...]:
    """Write `records/ID/metrics.json` into the run, one for each conversation."""
    return tuple(_write(run, id, context, scores) for id, context, scores in _records(run))


def _records(run: Run) -> Iterator[tuple[str, dict[str, Any], Sequence[Score]]]:
    """Conversations and their scores lie in one order, so that no more than one is held at a time."""
    scores = groupby(run.scores(all=True), key=lambda score: score.conversation)
    waiting = next(scores, None)
    for conversation in run.conversations():
        own_scores: list[Score] = []
        if waiting is not None and waiting[0] == conversation.id:
            own_scores = list(waiting[1])
            waiting = next(scores, None)
        yield conversation.id, metric_context(conversation).to_dict(), own_scores


def _write(run: Run, id: str, context: dict[str, Any], scores: Sequence[Score]) -> Path:
    folder = run.folder.joinpath(FOLDER, *_place(id))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    write_json(path, {"record_id": context["record_id"], "context": context, "metrics": _by_metric(scores)})
    return path


def _place(id: str) -> list[str]:
    """Where a record lies: a trial below its record, as it does in the logs, and nothing outside of the folder.

    An id that no file system would keep as it is gets a part of its hash, so that no two meet.
    """
    parts = [_UNFIT.sub("_", part).strip(".")[:_LONG] or "_" for part in id.split("/")]
    if "/".join(parts) != id or FILE in parts:
        parts[-1] = f"{parts[-1]}-{hashlib.sha256(id.encode('utf-8', 'replace')).hexdigest()[:10]}"
    return parts


_LONG = 80


def _by_metric(scores: Sequence[Score]) -> dict[str, list[dict[str, Any]]]:
    by_metric: dict[str, list[dict[str, Any]]] = {}
    for score in scores:
        observation = score.observation
        fields = {
            "subject": str(observation.subject),
            "status": observation.status,
            "value": observation.value,
            "reason": observation.reason,
            "detail": observation.detail,
            "details": observation.details,
            "judge": observation.judge,
        }
        key = f"{score.metric}@{score.variant}" if score.variant else score.metric
        by_metric.setdefault(key, []).append({name: value for name, value in fields.items() if value not in ("", None)})
    return by_metric
