"""A finished run: open it, read its summary and scores, mark it as invalid."""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from convoscope.conversation import Conversation, Flow, from_json
from convoscope.errors import RunError, UsageError
from convoscope.harmless import one_line
from convoscope.ingest.report import Note, ReadReport
from convoscope.metrics.registry import installed
from convoscope.runs.database import (
    CONVERSATION_SCORES,
    CONVERSATIONS,
    INSIDE,
    SCORES,
    Tables,
    all_conversation_scores,
    all_scores,
    check_folder,
    connect,
    file_name,
)
from convoscope.runs.receipt import Receipt, now
from convoscope.runs.summary import Summary
from convoscope.scores.observation import MEASURED, Counts, Observation, Score
from convoscope.scoring.session import HeldConversations
from convoscope.storage import as_path, forget, is_remote, list_ahead, store_errors
from convoscope.views.items import Subject

if TYPE_CHECKING:
    from convoscope.runs.ranking import RankedConversation
    from convoscope.runs.score_columns import ScoreColumns
    from convoscope.statistics.summary import Figure

SUMMARY = "summary.json"
RECEIPT = "receipt.json"
READ_REPORT = "read-report.json"
FLOWS = "flows.json"
PARTS = "parts.json"
LOOKS = "looks"
OBJECTS = "objects.json"
"""What the parts were read from, so that a run can grow."""
PAGE = "report.html"
SCORE_COLUMNS = (
    "conversation, metric, variant, subject_kind, subject, position, judge, repeat, status, value, "
    "numerator, denominator, tp, fp, fn, reason, detail, details"
)
SCORE_ORDER = "ORDER BY number, metric, variant, position, subject, judge, repeat"
_ROWS = 10_000


class RunTable:
    """A table of a run. Nothing is read before one of the methods is called."""

    def __init__(self, folder: Path, query: str, values: Sequence[str] = ()) -> None:
        self._folder = folder
        self._query = query
        self._values = list(values)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of a run: to_pandas(), to_arrow(), to_list()>"

    def __len__(self) -> int:
        with connect(self._folder) as connection:
            ((count,),) = connection.execute(f"SELECT count(*) FROM ({self._query})", self._values).fetchall()
        return int(count)

    def to_list(self) -> list[dict[str, Any]]:
        """The rows as dicts, by the names of the columns."""
        with connect(self._folder) as connection:
            answer = connection.execute(self._query, self._values)
            names = [column[0] for column in answer.description]
            return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame. What was not measured has no value: NaN, and its status says why."""
        _check_installed("pandas")
        with connect(self._folder) as connection:
            return connection.execute(self._query, self._values).df()

    def to_arrow(self) -> Any:
        """The rows as a pyarrow Table."""
        _check_installed("pyarrow")
        with connect(self._folder) as connection:
            return connection.sql(self._query, params=self._values).to_arrow_table()


class ScoreTable(RunTable):
    """Score rows; to go over them gives a `Score` each, a few at a time."""

    def __init__(self, folder: Path, query: str, values: Sequence[str], scores: Callable[[], Iterator[Score]]) -> None:
        super().__init__(folder, query, values)
        self._scores = scores

    def __iter__(self) -> Iterator[Score]:
        return self._scores()


def _hint_on_missing(path: Path) -> str:
    """Where a run may be instead; for an address, which part of it is there."""
    if not is_remote(path):
        return "`convoscope runs list` lists the runs"
    remote: Any = path
    bucket = remote.path.strip("/").partition("/")[0]
    if bucket and not remote.fs.exists(bucket):
        return f"the store has no bucket {bucket}, or your key may not see it"
    return f"the store has nothing below this address; `convoscope score … --out {path}` makes a run there"


def _check_installed(package: str) -> None:
    if find_spec(package) is None:
        raise UsageError(f"this needs {package}", hint=f"pip install {package}; to_list() needs nothing")


class Run:
    """A run folder. `summary` is what it found; `scores()` are the rows behind it."""

    def __init__(self, folder: Path, receipt: Receipt) -> None:
        self.folder = folder
        self.receipt = receipt
        self.trusts_judges: bool = receipt.config.get("trust_judge", False)
        """Targets on figures of judges that are not calibrated are decided."""
        self.held: dict[int, Conversation] = {}
        """The conversations of a small run that this process has just made, by number, as they were scored.

        Reports take them from here: `conversations.records` reads back only what is missing.
        """

        self.columns: ScoreColumns | None = None
        """The scores as columns, once they were asked for, or where this process has just made the run."""

    def hold(self, conversations: HeldConversations | None, scores: ScoreColumns | None) -> None:
        """Keep the conversations and scores of a run that was just made, until they were shown."""
        self.columns = scores if scores is not None and scores.is_kept else None
        if conversations is not None and len(conversations.by_row) == sum(self.receipt.parts):
            firsts = self.tables.firsts
            self.held = {firsts[part] + row: one for (part, row), one in conversations.by_row.items()}

    def let_go(self) -> None:
        """What was kept to be shown."""
        self.held.clear()
        self.columns = None

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"

    html: ClassVar[Callable[[Run], str] | None] = None
    """How a notebook shows a run. The reports say so, of which a run knows nothing."""

    def _repr_html_(self) -> str | None:
        return None if Run.html is None else Run.html(self)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Run:
        """Open a run that `score` has written."""
        path = as_path(folder)
        for how in (list_ahead, list_ahead, forget) if is_remote(path) else ():
            # A run in a store may grow between the listing and the receipt; and a listing may be old.
            with store_errors(path):
                how(path)
            with suppress(RunError):
                return cls._open(path)
        return cls._open(path)

    @classmethod
    def _open(cls, path: Path) -> Run:
        with store_errors(path):
            if not path.is_dir():
                raise RunError(f"there is no run at {path}", hint=_hint_on_missing(path))
            check_folder(path)
        try:
            receipt = msgspec.json.decode((path / RECEIPT).read_bytes(), type=Receipt)
        except FileNotFoundError:
            unfinished = path.name.endswith(INSIDE) or (path / INSIDE).is_dir()
            hint = "it was not finished; score again to resume" if unfinished else ""
            raise RunError(f"{path} is not a run: it has no {RECEIPT}", hint=hint) from None
        except (msgspec.DecodeError, RecursionError, OSError) as error:
            if not isinstance(error, OSError) and b'"convoscope.receipt/1"' in (path / RECEIPT).read_bytes():
                raise RunError(f"{path} is a run of an earlier version", hint="score the logs again") from None
            raise RunError(f"{path / RECEIPT} is damaged: {error}") from None
        if receipt.order and sorted(receipt.order) != [at for at, count in enumerate(receipt.parts) if count]:
            raise RunError(f"{path / RECEIPT} is damaged: its order does not fit its parts")
        if not all(map(file_name, receipt.objects)):
            raise RunError(f"{path / RECEIPT} is damaged: it names what is no object of a run")
        run = cls(path, receipt)
        run.tables.check()
        return run

    @property
    def name(self) -> str:
        return self.folder.name if is_remote(self.folder) else Path(os.path.abspath(self.folder)).name

    @cached_property
    def summary(self) -> Summary:
        """What the run found: `metrics`, `groups`, `conversations`, and what was not measured."""
        path = self.tables.own(SUMMARY)
        summary: Summary = read_json(path, Summary)
        try:
            fits = summary.is_whole and summary.conversations == sum(self.receipt.parts)
            fits = fits and summary.input_hash == self.receipt.input_hash
        except ValueError:
            fits = False
        if not fits:
            raise RunError(f"{path} is damaged: it does not fit the rest of the run", hint="score the logs again")
        return summary

    def __getitem__(self, name: str) -> Figure:
        """The figure of a metric over all conversations: `run["tools.success"]`, `run["timing.response_latency p95"]`.

        Where judges speak, that of the panel, else of the last judge.
        """
        by_name = {f"{figure.key} {figure.reduction}".strip(): figure for figure in self.summary.figures}
        if name in by_name:
            return by_name[name]
        close = difflib.get_close_matches(name, by_name, n=3, cutoff=0.5)
        close += [known for known in by_name if known.rpartition(".")[2] == name and known not in close]
        raise KeyError(f"{self.folder} has no figure {name!r}" + (f"; close: {', '.join(close)}" if close else ""))

    def worst(self, limit: int = 10) -> list[RankedConversation]:
        """The conversations to look at first, with what puts them there; without those whose integration broke."""
        from convoscope.runs.ranking import worst

        return worst(self, limit)

    @cached_property
    def tables(self) -> Tables:
        """The tables of the run, as SQL names them."""
        receipt = self.receipt
        return Tables(self.folder, receipt.parts, receipt.order, receipt.generation, receipt.objects)

    @cached_property
    def read_report(self) -> ReadReport:
        """What reading the input did."""
        return read_report(self.tables.own(READ_REPORT))

    @cached_property
    def flows(self) -> dict[str, Flow]:
        """The declarations of flows, by name, as far as any were given; also of those that no conversation ran."""
        path = self.tables.own(FLOWS)
        return {flow.name: flow for flow in read_json(path, list[Flow])} if path.is_file() else {}

    def scores(self, metric: str | None = None, conversation: str | None = None, *, all: bool = False) -> ScoreTable:
        """The score rows in the order of conversations, of one metric or conversation if given.

        They are what was observed. With `all`, also what a metric says that could not look at a conversation.
        """
        where, values = _chosen(metric, conversation)

        def query(part: int | None = None) -> str:
            observed = self.tables.table(SCORES, None if part is None else self.tables.of_part(SCORES, part))
            table = all_scores(self.tables, part) if all else observed
            return f"SELECT {SCORE_COLUMNS} FROM {table} {where} {SCORE_ORDER}"

        def rows() -> Iterator[Score]:
            # Part by part: the conversations of one come before those of the next, and little is sorted at a time.
            for part in self.tables.order:
                for row in _rows(self.folder, query(part), values):
                    yield score_of(row)

        return ScoreTable(self.folder, query(), values, rows)

    def conversation_scores(self, metric: str | None = None, *, all: bool = False) -> RunTable:
        """One row for each conversation and metric: the value, and how many turns, events or items it is of.

        With `all`, also what a metric says that could not look at a conversation.
        """
        where, values = _chosen(metric, None)
        table = self.table(ALL_CONVERSATION_SCORES if all else CONVERSATION_SCORES)
        return RunTable(self.folder, f"SELECT * FROM {table} {where} ORDER BY number, metric, variant, judge", values)

    def conversations_table(self) -> RunTable:
        """One row for each conversation: its dimensions and what came of it. `conversation(id)` has its words."""
        table = f"{self.table(CONVERSATIONS)} ORDER BY number"
        return RunTable(self.folder, f"SELECT * EXCLUDE (size, notes, body, profile) FROM {table}")

    def conversations(self) -> Iterator[Conversation]:
        """The conversations as they were scored, in the order of the input."""
        for name, body in _rows(
            self.folder, f"SELECT conversation, body FROM {self.table(CONVERSATIONS)} ORDER BY number", []
        ):
            yield named(from_json(body), name)

    def conversation(self, id: str) -> Conversation:
        """One conversation, by its id in the run."""
        return named(from_json(self._value("body", id)), id)

    def number(self, id: str) -> int:
        """The index of a conversation in the order of the input, which its rows carry in every table."""
        return int(self._value("number", id))

    def _value(self, column: str, id: str) -> Any:
        """What the table of conversations holds of one."""
        source = self.table(CONVERSATIONS)
        for row in _rows(self.folder, f"SELECT {column} FROM {source} WHERE conversation = ?", [id]):
            return row[0]
        close = (
            f"SELECT conversation FROM {source} ORDER BY jaro_winkler_similarity(conversation, ?) DESC, number LIMIT 3"
        )
        names = ", ".join(one_line(row[0]) for row in _rows(self.folder, close, [id]))
        raise RunError(f"{self.folder} has no conversation {id!r}", hint=f"similar ids: {names}" if names else "")

    def notes(self, id: str) -> list[Note]:
        """What reading did to one conversation."""
        row = next(
            _rows(self.folder, f"SELECT notes FROM {self.table(CONVERSATIONS)} WHERE conversation = ?", [id]), None
        )
        return msgspec.json.decode(row[0], type=list[Note]) if row and row[0] else []

    def invalidate(self, reason: str, superseded_by: str | None = None) -> None:
        """Mark the run as not to be relied on, and say why. Its numbers stay as they were."""
        if not reason.strip():
            raise RunError("an invalid run needs a reason", hint="say what is wrong with it")
        there = read_json(self.folder / RECEIPT, Receipt)
        if there.run_id != self.receipt.run_id:
            raise RunError(f"{self.folder} has changed meanwhile", hint="run the same command again")
        self.receipt = msgspec.structs.replace(
            self.receipt, valid=False, invalid_reason=reason, invalidated_at=now(), superseded_by=superseded_by
        )
        write_json(self.folder / RECEIPT, self.receipt)

    def table(self, name: str) -> str:
        """One of the run's tables, for the FROM of a query."""
        if name == ALL_SCORES:
            return all_scores(self.tables)
        if name == ALL_CONVERSATION_SCORES:
            return all_conversation_scores(self.tables)
        table = self.tables.table(name)
        if not table and name not in installed().tables:
            raise RunError(f"{self.folder} has no table {name!r}")
        return table or f"({installed().tables[name].nothing})"


ALL_SCORES = f"all_{SCORES}"
ALL_CONVERSATION_SCORES = f"all_{CONVERSATION_SCORES}"


def named(conversation: Conversation, id: str) -> Conversation:
    """A conversation under the id that it has in the run: one that shares its own with others got another."""
    return conversation if conversation.id == id else msgspec.structs.replace(conversation, id=id)


def find_runs(folder: str | os.PathLike[str], damaged: list[RunError] | None = None) -> Iterator[Run]:
    """The runs in a folder, by name. One that cannot be read goes to `damaged`; without it, the error is raised."""
    path = as_path(folder)
    for entry in sorted(path.iterdir(), key=str) if path.is_dir() else []:
        if (entry / RECEIPT).is_file():
            try:
                run = Run.open(entry)
                if damaged is not None:
                    _ = run.summary  # it may be the damaged file
            except RunError as error:
                if damaged is None:
                    raise
                damaged.append(error)
            else:
                yield run


def write_json(path: Path, value: Any) -> None:
    """Write JSON that a person can read, whole or not at all."""
    write_whole(path, msgspec.json.format(msgspec.json.encode(value), indent=2))


def write_summary(path: Path, summary: Summary) -> None:
    """Write a summary with one figure a line, so that it is short, and two of them can be compared line by line."""
    write_whole(path, "".join(_lines(msgspec.to_builtins(summary), "")).encode())


def write_whole(path: Path, text: bytes) -> None:
    """Write a file, whole or not at all."""
    if is_remote(path):  # an object is there whole or not at all
        path.write_bytes(text)
        return
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    # What only its owner may read stays so.
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else mode), "wb") as file:
        if mode is not None:
            os.chmod(fresh, mode)
        file.write(text + b"\n")
    os.replace(fresh, path)


_LINE = 800
"""What fits on one line of a summary."""


def _lines(value: Any, indent: str) -> Iterator[str]:
    short = msgspec.json.encode(value)
    if (len(short) <= _LINE and indent) or not isinstance(value, dict | list):
        yield short.decode()
        return
    deeper = indent + " "
    first, last = ("{", "}") if isinstance(value, dict) else ("[", "]")
    named = value.items() if isinstance(value, dict) else (("", one) for one in value)
    entries = [(f"{msgspec.json.encode(name).decode()}: " if name else "", one) for name, one in named]
    yield first
    for index, (name, entry) in enumerate(entries):
        yield (",\n" if index else "\n") + deeper + name
        yield from _lines(entry, deeper)
    yield f"\n{indent}{last}"


def read_report(path: Path) -> ReadReport:
    """What reading the input of a run did."""
    report: ReadReport = read_json(path, ReadReport)
    return report


def read_json(path: Path, kind: Any) -> Any:
    """A file of a run, which must be what it should be."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        raise RunError(f"{path} is missing or damaged: {error}") from None


def _rows(folder: Path, query: str, values: list[str]) -> Iterator[tuple[Any, ...]]:
    with connect(folder) as connection:
        connection.execute(query, values)
        while rows := connection.fetchmany(_ROWS):
            yield from rows


def _chosen(metric: str | None, conversation: str | None) -> tuple[str, list[str]]:
    """The rows of a metric, with its family or without, and of a conversation."""
    conditions: list[str] = []
    values: list[str] = []
    if metric is not None:
        name, _, variant = metric.partition("@")
        conditions.append("(metric = ? OR metric LIKE ?) AND variant = ?")
        values += [name, f"%.{name}", variant]
    if conversation is not None:
        conditions.append("conversation = ?")
        values.append(conversation)
    return f"WHERE {' AND '.join(conditions)}" if conditions else "", values


def score_of(row: tuple[Any, ...]) -> Score:
    """A score from the `SCORE_COLUMNS` of its row."""
    conversation, metric, variant, kind, subject, position, judge, repeat, status, *values = row
    value, numerator, denominator, *counts, reason, detail, details = values
    return Score(
        conversation=conversation,
        metric=metric,
        variant=variant,
        observation=Observation(
            subject=Subject(kind, subject, position),
            status=status,
            value=value if status == MEASURED else None,
            numerator=numerator,
            denominator=denominator,
            counts=None if counts[0] is None else Counts(*counts),
            reason=reason or "",
            detail=detail or "",
            details=msgspec.json.decode(details) if details else None,
            judge=judge,
            repeat=repeat,
        ),
    )
