"""Conversations of a run that its logs no longer hold: which they are, and parts of a run that keep them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from convoscope.conversation import Conversation, from_json
from convoscope.errors import RunError
from convoscope.ingest.report import ReadReport
from convoscope.metrics.flow.states import STATE_TABLE
from convoscope.runs.database import CONVERSATIONS, connect, parquet, part_file
from convoscope.runs.rewrite import write_again
from convoscope.runs.run import Run
from convoscope.runs.same_conversation import LogThen, goes_on_from, is_edited, is_one_with, is_rest_of
from convoscope.scoring.labels import LabelRule
from convoscope.scoring.partition import PartDone

if TYPE_CHECKING:
    import duckdb

CONTENT = 'md5(json_merge_patch(body, \'{"id": null, "source": null}\'))'
"""What a conversation says, wherever its record is: a log is renamed when it is rotated."""
NAMELESS = "json_extract_string(body, '$.source.record') = conversation"
"""Whether a record has no id of its own: it is called by its file and line."""
FILES = "coalesce(json_extract_string(body, '$.source.files'), '[]')"


GOES_ON = "goes_on_after_its_log"
"""What is read of a conversation whose first log is gone, and is not in the run: counted as ignored."""


class Row(NamedTuple):
    """A conversation in a part of a run."""

    part: int
    row: int
    id: str
    content: str
    is_nameless: bool
    files: str = ""
    """The names of its files, as a list in JSON."""


def lost_rows(run: Run, earlier: Collection[PartDone], folder: Path, parts: Sequence[PartDone]) -> list[Row]:
    """The conversations of a run that its logs no longer hold. `parts` are those of the new run, in `folder`.

    What lies in the logs as it did is not lost, even where it became a part of a longer conversation. Else one with the
    same id must say the same, go on with it, or be what was made of it: ids are used again. A record without an id may
    be anywhere.
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
        query = f"SELECT part, row, conversation, {CONTENT} AS content, {NAMELESS}, {FILES} FROM {parquet(*new)}"
        query += " WHERE conversation IN (SELECT id FROM wanted) OR content IN (SELECT content FROM said)"
        matches = [Row(*values) for values in now.execute(query).fetchall()]
        same = {(one.id, one.content): one.files for one in matches}
        moved = Counter(one.content for one in matches if one.is_nameless)
        moved.subtract(one.content for one in rows if one.is_nameless and (one.id, one.content) in same)
        left: list[Row] = []
        for row in rows:
            if (row.id, row.content) in same:
                continue
            if row.is_nameless and moved[row.content] > 0:
                moved[row.content] -= 1
            else:
                left.append(row)
        unchanged = {one.name for part in parts if part.part in known for one in part.pieces}
        logs = _Logs.of(rows, left, matches, unchanged, {part.part for part in gone if not is_of_logs(part)})
        ids = {one.id for one in matches}
        still = _still_there(run, now, new, [one for one in left if one.id in ids], logs)
    return [one for one in left if one not in still]


class _Logs(NamedTuple):
    """What became of the logs that held conversations which are not there as they were. Logs are lists of names."""

    now: Mapping[str, Set[str]]
    """By what they were called, what those are called that have something of them as it was."""
    cut: Set[str]
    """Something that they held is gone."""
    taken: Set[tuple[int, int]]
    """The new rows that were there before, as they are."""
    unchanged: Set[str]
    """The names of files of which a part is as it was."""
    kept: Set[int]
    """The parts with what was gone before."""

    @classmethod
    def of(
        cls,
        before: Sequence[Row],
        left: Sequence[Row],
        matches: Sequence[Row],
        unchanged: Set[str],
        kept: Set[int],
    ) -> _Logs:
        known = {(one.id, one.content): one for one in before}
        by_content = {one.content: one for one in before if one.is_nameless}
        now: dict[str, set[str]] = {}
        taken: set[tuple[int, int]] = set()
        for row in matches:
            earlier = known.get((row.id, row.content)) or (by_content.get(row.content) if row.is_nameless else None)
            if earlier is not None:
                taken.add((row.part, row.row))
                now.setdefault(earlier.files, set()).add(row.files)
        ids = {one.id for one in matches}
        cut = {one.files for one in left if one.id not in ids and one.part not in kept}
        return cls(now, cut, taken, unchanged, kept)

    def then(self, row: Row, later: Row) -> LogThen:
        """What is known of the log of a row, by a later one with the same id."""
        now = self.now.get(row.files, frozenset())
        has_others = later.files in now
        if later.files == row.files and self.unchanged & {*msgspec.json.decode(row.files)}:
            has_others = True
        is_same = has_others or (later.files == row.files and not now)
        is_whole = row.files not in self.cut and row.part not in self.kept
        return LogThen(is_same, is_whole, has_others)


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
        is_apart = not any(come.values()) and come.keys().isdisjoint(id for _, id in names)
        if is_apart and not (come and is_of_logs(part)):
            # There may be very many that are gone, at each look.
            return [Row(part.part, row, id, "", is_nameless=False) for row, id in names]
        query = f"SELECT row, conversation, {CONTENT}, {NAMELESS}, {FILES} FROM {source} ORDER BY row"
        return [Row(part.part, *values) for values in connection.execute(query).fetchall()]


def _still_there(
    run: Run, now: duckdb.DuckDBPyConnection, new: Sequence[Path], rows: Sequence[Row], logs: _Logs
) -> frozenset[Row]:
    """Those of which a new conversation with the same id says all that they say, or is what was made of them."""
    still: set[Row] = set()
    taken = {*logs.taken}
    for number in dict.fromkeys(one.part for one in rows):
        own = {one.row: one for one in rows if one.part == number}
        now.register("asked", {"id": _objects([one.id for one in own.values()])})
        query = f"SELECT part, row, conversation, {FILES}, body FROM {parquet(*new)}"
        query += " SEMI JOIN asked ON id = conversation ORDER BY part, row"
        later: dict[str, list[tuple[Row, Conversation]]] = {}
        for part, at, id, files, body in now.execute(query).fetchall():
            row = Row(part, at, id, "", is_nameless=False, files=files)
            later.setdefault(id, []).append((row, from_json(body)))
        with connect(run.folder) as connection:
            source = parquet(part_file(run.folder, CONVERSATIONS, number))
            connection.register("asked", {"own": np.array([*own], dtype=np.int32)})
            query = f"SELECT row, body FROM {source} SEMI JOIN asked ON own = row ORDER BY row"
            before = {own[at]: from_json(body) for at, body in connection.execute(query).fetchall()}
        for row, conversation in before.items():
            if longer := [at for at, one in later[row.id] if goes_on_from(conversation, one)]:
                still.add(row)
                taken.update((at.part, at.row) for at in longer[:1])
        for row, conversation in before.items():
            for at, other in later[row.id] if row not in still else ():
                is_free = (at.part, at.row) not in taken
                if is_free and is_edited(conversation, other, logs.then(row, at), has_id=not row.is_nameless):
                    still.add(row)
                    taken.add((at.part, at.row))
                    break
    return frozenset(still)


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
        elif any(is_one_with(rest, whole, session_gap) for whole in wholes.get(id, ())):
            rests.setdefault(number, {})[row] = True
    return rests


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
