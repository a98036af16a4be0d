"""Conversations of a run that its logs no longer hold: which they are, and parts of a run that keep them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from convoscope.conversation import Conversation, ToolCall, ToolResult, Utterance, from_json
from convoscope.errors import RunError
from convoscope.ingest.ids import is_session_row
from convoscope.ingest.report import ReadReport
from convoscope.metrics.flow.states import STATE_TABLE
from convoscope.runs.database import CONVERSATIONS, connect, parquet, part_file
from convoscope.runs.rewrite import write_again
from convoscope.runs.run import Run
from convoscope.scoring.labels import LabelRule
from convoscope.scoring.partition import PartDone

if TYPE_CHECKING:
    import duckdb

CONTENT = 'md5(json_merge_patch(body, \'{"id": null, "source": null}\'))'
"""What a conversation says, wherever its record is: a log is renamed when it is rotated."""
NAMELESS = "json_extract_string(body, '$.source.record') = conversation"
"""Whether a record has no id of its own: it is called by its file and line."""


GOES_ON = "goes_on_after_its_log"
"""What is read of a conversation whose first log is gone, and is not in the run: counted as ignored."""


class Row(NamedTuple):
    """A conversation in a part of a run."""

    part: int
    row: int
    id: str
    content: str
    is_nameless: bool


def lost_rows(run: Run, earlier: Collection[PartDone], folder: Path, parts: Sequence[PartDone]) -> list[Row]:
    """The conversations of a run that its logs no longer hold. `parts` are those of the new run, in `folder`.

    What lies in the logs as it did is not lost, even where it became a part of a longer conversation. Else one with the
    same id must say the same, or go on with it: ids are used again. A record without an id may be anywhere.
    """
    there = {(one.name, one.start, one.end, one.content) for part in parts for one in part.pieces}
    stays = {part.part for part in parts}
    known = {part.part for part in earlier}

    def is_there(part: PartDone) -> bool:
        return is_of_logs(part) and all((one.name, one.start, one.end, one.content) in there for one in part.pieces)

    gone = [part for part in earlier if part.conversations and part.part not in stays and not is_there(part)]
    new = [part_file(folder, CONVERSATIONS, one.part) for one in parts if one.conversations and one.part not in known]
    if not gone:
        return []
    with connect(folder) as now:
        names = f"SELECT conversation, {NAMELESS} FROM {parquet(*new)}"
        come: dict[str, bool] = dict(now.execute(names).fetchall()) if new else {}
        rows = [row for part in gone for row in _rows(run, part, come)]
        if not come:
            return rows
        now.register("wanted", {"id": _objects([one.id for one in rows])})
        now.register("said", {"content": _objects([one.content for one in rows])})
        query = f"SELECT conversation, {CONTENT} AS content, {NAMELESS} FROM {parquet(*new)}"
        query += " WHERE conversation IN (SELECT id FROM wanted) OR content IN (SELECT content FROM said)"
        matches = now.execute(query).fetchall()
        same = {(id, content) for id, content, _ in matches}
        moved = Counter(content for _, content, is_nameless in matches if is_nameless)
        moved.subtract(one.content for one in rows if one.is_nameless and (one.id, one.content) in same)
        left: list[Row] = []
        for row in rows:
            if (row.id, row.content) in same:
                continue
            if row.is_nameless and moved[row.content] > 0:
                moved[row.content] -= 1
            else:
                left.append(row)
        ids = {id for id, _, _ in matches}
        goes_on = _going_on(run, now, new, [one for one in left if one.id in ids])
    return [one for one in left if one not in goes_on]


def is_of_logs(part: PartDone) -> bool:
    """Whether a part was read from the logs as they are. One that keeps what is gone from them has no pieces."""
    return bool(part.pieces)


def kept_count(parts: Iterable[PartDone]) -> int:
    """How many conversations are in parts that keep what is gone from the logs."""
    return sum(part.conversations for part in parts if not is_of_logs(part))


def _rows(run: Run, part: PartDone, come: Mapping[str, bool]) -> list[Row]:
    """The conversations of a part. `come` are the ids of new ones, and whether each is but its file and line."""
    with connect(run.folder) as connection:
        source = parquet(part_file(run.folder, CONVERSATIONS, part.part))
        names = connection.execute(f"SELECT row, conversation FROM {source} ORDER BY row").fetchall()
        if not any(come.values()) and come.keys().isdisjoint(id for _, id in names):
            # There may be very many that are gone, at each look.
            return [Row(part.part, row, id, "", is_nameless=False) for row, id in names]
        query = f"SELECT row, conversation, {CONTENT}, {NAMELESS} FROM {source} ORDER BY row"
        return [Row(part.part, *values) for values in connection.execute(query).fetchall()]


def _going_on(run: Run, now: duckdb.DuckDBPyConnection, new: Sequence[Path], rows: Sequence[Row]) -> frozenset[Row]:
    """Those of which a new conversation with the same id says all that they say."""
    goes_on: set[Row] = set()
    for number in dict.fromkeys(one.part for one in rows):
        own = {one.row: one for one in rows if one.part == number}
        now.register("asked", {"id": _objects([one.id for one in own.values()])})
        query = f"SELECT conversation, body FROM {parquet(*new)} SEMI JOIN asked ON id = conversation"
        longer: dict[str, list[Conversation]] = {}
        for id, body in now.execute(query).fetchall():
            longer.setdefault(id, []).append(from_json(body))
        with connect(run.folder) as connection:
            source = parquet(part_file(run.folder, CONVERSATIONS, number))
            connection.register("asked", {"own": np.array([*own], dtype=np.int32)})
            matches = connection.execute(f"SELECT row, body FROM {source} SEMI JOIN asked ON own = row").fetchall()
        for at, body in matches:
            before = from_json(body)
            if any(goes_on_from(before, one) for one in longer[own[at].id]):
                goes_on.add(own[at])
    return frozenset(goes_on)


def goes_on_from(earlier: Conversation, later: Conversation) -> bool:
    """Whether all that was said and done in one conversation is in the other, in its order and at its times."""
    events, before = _events_of(later), [*_events_of(earlier)]
    return bool(before) and all(
        any(says == known and (at is None or when is None or at == when) for known, when in events)
        for says, at in before
    )


def _events_of(conversation: Conversation) -> Iterator[tuple[object, float | None]]:
    """What was said and done, each with its time."""
    for event in conversation.timeline:
        at = None if event.time is None else event.time.at
        if isinstance(event, Utterance):
            yield (conversation.roles[event.speaker], " ".join(event.meant().split())), at
        elif isinstance(event, ToolCall):
            yield ("call", event.name, msgspec.json.encode(event.arguments, order="sorted")), at
        elif isinstance(event, ToolResult):
            yield ("result", msgspec.json.encode(event.result, order="sorted")), at
        else:
            yield msgspec.json.encode(msgspec.structs.replace(event, seq=0, time=None), order="sorted"), at


def without_rests(
    run: Run,
    lost: Sequence[Row],
    folder: Path,
    parts: Sequence[PartDone],
    known: Collection[int],
    free: int,
    session_gap: float,
) -> list[PartDone]:
    """The parts without new conversations that are the rest of one that stays: nothing counts twice.

    What such a rest says beyond that is not in the run: the report of its part has the number. `session_gap` is the
    hours of silence after which a session is another conversation.
    """
    new = [part_file(folder, CONVERSATIONS, one.part) for one in parts if one.conversations and one.part not in known]
    rests = _rests(run, lost, folder, new, session_gap) if lost and new else {}
    left: list[PartDone] = []
    for part in parts:
        if dropped := rests.get(part.part):
            rows = [row for row in range(part.conversations) if row not in dropped]
            fewer = write_again(folder, [part], free, {part.part: rows})
            if more := sum(dropped.values()):
                fewer.report.ignore(GOES_ON, more)
            left.append(msgspec.structs.replace(fewer, running=part.running))
            free += 1
        else:
            left.append(part)
    return left


_BODIES = "SELECT part, row, conversation, body FROM {} SEMI JOIN asked ON id = conversation"


def _rests(
    run: Run, lost: Sequence[Row], folder: Path, new: Sequence[Path], session_gap: float
) -> dict[int, dict[int, bool]]:
    """The rows of new parts that are the rest of a conversation that the logs no longer hold as a whole, by part.

    With each, whether it says more than that.
    """
    with connect(folder) as now:
        now.register("asked", {"id": _objects(sorted({row.id for row in lost}))})
        come = now.execute(_BODIES.format(parquet(*new))).fetchall()
    if not come:
        return {}
    wholes: dict[str, list[Conversation]] = {}
    gone = {(row.part, row.row) for row in lost}
    with connect(run.folder) as before:
        before.register("asked", {"id": _objects(sorted({id for _, _, id, _ in come}))})
        paths = [part_file(run.folder, CONVERSATIONS, number) for number in {row.part for row in lost}]
        for number, row, id, body in before.execute(_BODIES.format(parquet(*paths))).fetchall():
            if (number, row) in gone:
                wholes.setdefault(id, []).append(from_json(body))
    rests: dict[int, dict[int, bool]] = {}
    for number, row, id, body in come:
        rest = from_json(body)
        if any(is_rest_of(rest, whole) for whole in wholes.get(id, ())):
            rests.setdefault(number, {})[row] = False
        elif any(_is_one_with(rest, whole, session_gap) for whole in wholes.get(id, ())):
            rests.setdefault(number, {})[row] = True
    return rests


def _is_one_with(rest: Conversation, whole: Conversation, session_gap: float) -> bool:
    """Whether records that are joined by their id would have been one conversation with those that are gone."""
    if not (_is_joined(rest) and _is_joined(whole)):
        return False
    extras = [(*rest.timeline, *whole.timeline)[0].extras, rest.extras]
    if not any(map(is_session_row, extras)):
        return True
    began, ended = min(_times(rest), default=None), max(_times(whole), default=None)
    return began is None or ended is None or began - ended < session_gap * 3600


def _is_joined(conversation: Conversation) -> bool:
    """Whether it was joined from records of its id. One that is a whole file is called by the file."""
    source = conversation.source
    is_file = any(PurePath(conversation.id).name == PurePath(file).stem for file in source.files)
    return source.record == conversation.id and not is_file and conversation.id not in source.files


def _times(conversation: Conversation) -> Iterator[float]:
    wall = {clock.id for clock in conversation.clocks if clock.kind == "wall"}
    return (event.time.at for event in conversation.timeline if event.time is not None and event.time.clock in wall)


def is_rest_of(rest: Conversation, whole: Conversation) -> bool:
    """Whether all of a conversation is in the other, one event after the other, and at the same times."""
    own, events = [*_events_of(rest)], [*_events_of(whole)]
    return bool(own) and any(
        all(
            says == known and (at is None or when is None or at == when)
            for (says, at), (known, when) in zip(own, events[start:], strict=False)
        )
        for start in range(len(events) - len(own) + 1)
    )


def kept_parts(earlier: Mapping[int, PartDone], folder: Path, lost: Sequence[Row], free: int) -> list[PartDone]:
    """Parts with what is gone from the logs, under numbers from `free` on; those that have nothing else stay."""
    kept: list[PartDone] = []
    for number in dict.fromkeys(one.part for one in lost):
        part, rows = earlier[number], [one.row for one in lost if one.part == number]
        if len(rows) < part.conversations:
            part = write_again(folder, [part], free, {number: rows})
            free += 1
        # Nothing is known any more of the records that it was read from.
        report = ReadReport(conversations=part.conversations)
        kept.append(msgspec.structs.replace(part, pieces=(), report=report, running=0))
    return kept


def refuse_other_verdicts(folder: Path, kept: Sequence[PartDone], rule: LabelRule) -> None:
    """Refuse to keep conversations whose label means something else by now: what is gone cannot be scored again."""
    paths = [part_file(folder, CONVERSATIONS, part.part) for part in kept]
    query = "SELECT DISTINCT label, json_extract_string(body, '$.outcome.label.passed') FROM {} WHERE label IS NOT NULL"
    with connect(folder) as connection:
        pairs = connection.execute(query.format(parquet(*paths))).fetchall() if paths else []
    for label, passed in sorted(pairs):
        if _VERDICTS.get(passed) != rule.passed(label):
            raise RunError(
                f"{rule.field} {label!r} says something else by now, and conversations with it are gone from the logs",
                hint=f"say which values are a success (--label '{rule.field} >= …'), with another --out",
            )


def refuse_other_flows(kept: Sequence[PartDone]) -> None:
    """Refuse to keep conversations that went through states whose declaration is another one by now."""
    if any(STATE_TABLE.name in part.tables for part in kept):
        raise RunError(
            "the flow definitions changed, and conversations with states are gone from the logs",
            hint="they cannot be scored again: --prune takes them out, or choose another --out",
        )


_VERDICTS = {"true": True, "false": False}


def _objects(values: Sequence[str]) -> np.typing.NDArray[np.object_]:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
