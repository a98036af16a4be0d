"""What Pipecat's bare numbers measure: two of its classes look alike once they are written, and neither is named."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from convoscope.views.standard_data.payloads.pipecat import CHARACTERS, PROCESSING, TOKENS, TTFB, service_of

_USAGE = (TOKENS, CHARACTERS)
_IN_A_LIST = re.compile(r"(.*)\[(\d+)\]", re.DOTALL)


class Timed(NamedTuple):
    """One entry as it came: what it measures, where that is known, else nothing."""

    processor: str
    metric: str
    value: int | float | None
    path: str

    @property
    def is_bare(self) -> bool:
        # A processor reports 0 when it starts: nothing was measured by that.
        return not self.metric and bool(self.value)


def roles(entries: Sequence[Timed]) -> list[str]:
    """What each entry measures. A bare number is a time to first byte, unless something says it is a duration.

    Of a processor that also reports its usage, once for each generation, the counts say it: twice as many
    numbers come in pairs, as many are one each. Numbers of a model come in pairs where they do so between
    two reports of the recogniser. Else a number that directly follows the time to first byte of its
    processor in the same list, and is larger, is the duration.
    """
    metrics = [one.metric or TTFB for one in entries]
    for processor in dict.fromkeys(one.processor for one in entries if one.is_bare):
        places = [place for place, one in enumerate(entries) if one.processor == processor]
        for place in _durations(processor, places, entries):
            metrics[place] = PROCESSING
    return metrics


def _durations(processor: str, places: Sequence[int], entries: Sequence[Timed]) -> Iterator[int]:
    """The places of bare numbers that are durations."""
    bare = [place for place in places if entries[place].is_bare]
    used = sum(entries[place].metric in _USAGE for place in places)
    named = any(entries[place].metric in (TTFB, PROCESSING) for place in places)
    if not named and len(bare) == used:
        return
    if not named and len(bare) == 2 * used and _are_pairs(bare, entries):
        yield from bare[1::2]
        return
    for stretch in _between_utterances(bare, entries) if service_of(processor) == "llm" and not named else [bare]:
        if stretch is not bare and _are_pairs(stretch, entries):
            yield from stretch[1::2]
        else:
            yield from _following(stretch, entries)


def _are_pairs(bare: Sequence[int], entries: Sequence[Timed]) -> bool:
    """Each second one larger than the one before: a first byte and the whole."""
    values = [entries[place].value or 0 for place in bare]
    return len(values) % 2 == 0 and all(first < second for first, second in zip(values[::2], values[1::2], strict=True))


def _between_utterances(bare: Sequence[int], entries: Sequence[Timed]) -> list[Sequence[int]]:
    """The numbers of a model in one reply after the other; all as they are where no recogniser reports."""
    heard = [
        place
        for place, one in enumerate(entries)
        if service_of(one.processor) == "stt" and (one.is_bare or one.metric == TTFB)
    ]
    if not heard:
        return [bare]
    stretches: dict[int, list[int]] = {}
    for place in bare:
        stretches.setdefault(sum(one < place for one in heard), []).append(place)
    return list(stretches.values())


def _following(bare: Sequence[int], entries: Sequence[Timed]) -> Iterator[int]:
    """Numbers that directly follow a smaller one of the same processor, which is no duration itself."""
    last = -1
    for place in bare:
        before = entries[place - 1] if place > 0 else None
        if before is None or last == place - 1 or not _adjoin(before, entries[place]):
            continue
        if before.metric in ("", TTFB) and 0 < (before.value or 0) < (entries[place].value or 0):
            last = place
            yield place


def _adjoin(before: Timed, after: Timed) -> bool:
    """Whether one stands right behind the other in one list, and is of the same processor."""
    first, second = _IN_A_LIST.fullmatch(before.path), _IN_A_LIST.fullmatch(after.path)
    if first is None or second is None or before.processor != after.processor:
        return False
    return first[1] == second[1] and int(first[2]) + 1 == int(second[2])
