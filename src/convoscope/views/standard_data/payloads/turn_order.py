"""Metrics that come by component, each in an array of its own, put in the order of the turns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from convoscope.conversation.timestamps import Moment, moment
from convoscope.views.standard_data.payloads.kinds import EOU, LLM, STT, TTS, VAD

TURN_KEY = re.compile(r"(?:turn|exchange)[\s_#-]*\d*", re.IGNORECASE)
"""A label that says itself that it names a turn."""
UNORDERED = "unordered"
"""True of a metric of which nothing says what it comes before or after."""

_OF_A_TURN = (EOU, LLM, TTS)
_IN_ORDER = (VAD, STT, *_OF_A_TURN)


def in_turns(metrics: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Metrics of several components by time, where all tell it; else the first of each component, the second, ….

    The end of the user's turn, the call of the model and the speech of one turn stand at the same place
    of their arrays where these are equally long. Where they are not, and no id joins them, nothing says
    what belongs together: such metrics are marked as `unordered`, in place.
    """
    by_type: dict[str, list[dict[str, Any]]] = {name: [] for name in _IN_ORDER}
    for metric in metrics:
        by_type.setdefault(metric["type"], []).append(metric)
    every = [one for listed in by_type.values() for one in listed]
    times = [_time(one) for one in every]
    if None not in times and len({time.kind for time in times if time is not None}) <= 1:
        return [one for _, one in sorted(zip(times, every, strict=True), key=lambda pair: pair[0].at if pair[0] else 0)]
    loose = [[one for one in by_type[name] if not _is_keyed(one)] for name in _OF_A_TURN]
    waiting = {id(one) for listed in loose for one in listed}
    first = [one for one in every if id(one) not in waiting]
    if len({len(listed) for listed in loose if listed}) > 1:
        for metric in (one for listed in loose for one in listed):
            metric[UNORDERED] = True
    return [*first, *(one for turn in zip_longest(*loose) for one in turn if one is not None)]


def _time(metric: dict[str, Any]) -> Moment | None:
    value = metric.get("timestamp")
    return None if value is None else moment(value)


def _is_keyed(metric: dict[str, Any]) -> bool:
    """Whether a metric says itself which turn it is of."""
    label = metric.get("label")
    named = isinstance(label, str) and TURN_KEY.fullmatch(label.strip()) is not None
    return bool(metric.get("speech_id")) or named or "source_label" in metric
