"""What reading did: seen, used, ignored, set aside, repaired, inferred, unknown, and what could not be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Literal

import msgspec

from convoscope.errors import InputError
from convoscope.harmless import one_line

MAX_PROBLEMS = 200
MAX_EXAMPLES = 5

FILE_IS_ONE = "file_is_one_conversation"
"""Inferred: the mapping names no id, so that nothing parts the records of a file."""
MERGED, JOINED, COPIES, SPLIT, EQUAL, OVERLAP = "merged", "joined", "copies", "split", "equal", "overlap"
"""What a record may be, other than a conversation: a part of a longer record; one of several with the id of their
conversation; a copy of another record, file or conversation; a session that went on after a long silence; equal to
another record, and nothing says that it is a copy; or it begins with the end of several others."""

RECORDING = "recording"
"""The format of a file that holds the sound of a call."""

Kind = Literal["repaired", "inferred", "ignored", "set_aside", "unknown"]


class Note(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, order=True):
    """Something that reading did to one record, and where."""

    kind: Kind
    code: str
    file: str = ""
    line: int = 0
    seq: int = -1
    """The event of the conversation that it touches; -1 for the whole."""
    detail: str = ""
    count: int = 1
    """How often, where it was done many times to one conversation."""


class Problem(msgspec.Struct, frozen=True, omit_defaults=True, order=True):
    """Something that could not be read: where, what, and what to do."""

    file: str
    line: int
    message: str
    field: str = ""
    hint: str = ""
    count: int = 1
    """How many records it is about."""

    def __str__(self) -> str:
        where = _where(self.file, self.line, self.field)
        return one_line(f"{where}: {self.message}" + (f" ({self.hint})" if self.hint else ""), None)


class NoteTally(msgspec.Struct):
    """How often something was done, and the first few places."""

    count: int = 0
    examples: list[str] = []

    def add(self, count: int, examples: Iterable[str]) -> None:
        self.count += count
        self.examples = sorted({*self.examples, *examples})[:MAX_EXAMPLES]


class FileRead(msgspec.Struct):
    """One input: what it was taken for, and what came out of it."""

    format: str = ""
    why: str = ""
    conversations: int = 0
    """Those with something of it: a conversation of several files is counted for each of them."""
    skipped: str = ""
    """Why nothing was read from it."""
    is_companion: bool = msgspec.field(default=False, name="is_beside")
    """It holds no conversation, but says more about those of others."""


class ReadReport(msgspec.Struct):
    """All that a read did. Reports of parts add up to the same whatever their order."""

    files: dict[str, FileRead] = {}
    conversations: int = 0
    records_seen: int = 0
    records_used: int = 0
    ignored: dict[str, int] = {}
    set_aside: dict[str, NoteTally] = {}
    """Values that could not be used: what they should say is unknown."""
    repaired: dict[str, NoteTally] = {}
    inferred: dict[str, NoteTally] = {}
    unknown: dict[str, int] = {}
    same: dict[str, NoteTally] = {}
    """Records that are not conversations of their own, or may not be: merged, joined, copies, split, equal, overlap."""
    sound: dict[str, NoteTally] = {}
    """Recordings that were not measured though a metric asked for them: by the reason, files and what is wrong."""
    problem_count: int = 0
    problems: list[Problem] = []
    """The first 200, by file and line."""
    warnings: list[str] = []

    def file(self, name: str, format: str) -> FileRead:
        """What is reported of a file, which is added on first sight."""
        return self.files.get(name) or self.files.setdefault(name, FileRead(format))

    def problem(self, problem: Problem) -> None:
        self.problem_count += problem.count
        self.problems.append(problem)
        if len(self.problems) > 2 * MAX_PROBLEMS:
            self.problems = sorted(self.problems)[:MAX_PROBLEMS]

    def ignore(self, what: str, count: int = 1) -> None:
        self.ignored[what] = self.ignored.get(what, 0) + count

    def join_records(self, count: int) -> None:
        """Records were brought together by the id of their conversation."""
        if count > 1:
            self.count_same(JOINED, count=count)

    def drop_copy(self, file: str, line: int) -> None:
        """A record is a copy of another one."""
        self.records_used += 1
        self.count_same(COPIES, f"{file}:{line}")

    def count_same(self, kind: str, example: str = "", count: int = 1) -> None:
        """Something is no conversation of its own, or may be none; see `MERGED` and its kin."""
        tally = self.same.get(kind) or self.same.setdefault(kind, NoteTally())
        tally.count += count
        if example and len(tally.examples) < MAX_EXAMPLES:
            tally.examples.append(example)

    @property
    def tallies(self) -> dict[str, dict[str, NoteTally]]:
        """What is reported with examples, by the kind of note."""
        return {"set_aside": self.set_aside, "repaired": self.repaired, "inferred": self.inferred}

    def not_heard(self, reason: str, text: str) -> None:
        """A recording cannot be measured."""
        tally = self.sound.get(reason) or self.sound.setdefault(reason, NoteTally())
        tally.add(1, [text] if text else [])

    def add_notes(self, notes: Iterable[Note]) -> None:
        for note in notes:
            if note.kind == "ignored":
                self.ignore(note.code, note.count)
            elif note.kind == "unknown":
                self.unknown[note.code] = self.unknown.get(note.code, 0) + 1
            else:
                tallies = self.tallies[note.kind]
                tally = tallies.get(note.code) or tallies.setdefault(note.code, NoteTally())
                tally.count += 1
                if len(tally.examples) < MAX_EXAMPLES:
                    tally.examples.append(_where(note.file, note.line, note.detail))

    def withdraw(self, note: Note) -> None:
        """What was noted as concluded is known now."""
        tally = self.inferred.get(note.code)
        if tally is not None:
            tally.count -= 1
            where = _where(note.file, note.line, note.detail)
            tally.examples = [example for example in tally.examples if example != where]
            if not tally.count:
                del self.inferred[note.code]

    def merge(self, other: ReadReport) -> None:
        """Add what another part of the same read saw."""
        for name, file in other.files.items():
            own = self.files.setdefault(name, FileRead(file.format, file.why, is_companion=file.is_companion))
            own.conversations += file.conversations
            own.skipped = own.skipped or file.skipped
        self.conversations += other.conversations
        self.records_seen += other.records_seen
        self.records_used += other.records_used
        self.ignored = dict(Counter(self.ignored) + Counter(other.ignored))
        self.unknown = dict(Counter(self.unknown) + Counter(other.unknown))
        for kind, tallies in other.tallies.items():
            for code, tally in tallies.items():
                self.tallies[kind].setdefault(code, NoteTally()).add(tally.count, tally.examples)
        for reason, tally in other.sound.items():
            self.sound.setdefault(reason, NoteTally()).add(tally.count, tally.examples)
        for name, tally in other.same.items():
            self.same.setdefault(name, NoteTally()).add(tally.count, tally.examples)
        self.problem_count += other.problem_count
        self.problems = sorted([*self.problems, *other.problems])[:MAX_PROBLEMS]
        self.warnings = sorted({*self.warnings, *other.warnings})

    def ordered(self) -> ReadReport:
        """The same, in an order that does not depend on how the work was divided."""
        counted = ("files", "ignored", "set_aside", "repaired", "inferred", "unknown", "same", "sound")
        in_order = {name: dict(sorted(getattr(self, name).items())) for name in counted}
        return msgspec.structs.replace(self, problems=sorted(self.problems)[:MAX_PROBLEMS], **in_order)


class Notes:
    """Collects what a reader does while it builds one conversation."""

    def __init__(self, file: str = "", line: int = 0) -> None:
        self.file = file
        self.line = line
        self.taken: list[Note] = []
        self.records = 0
        """Records that a reader of folders counted itself."""
        self.unused: list[object] = []
        """Records of the group that are in no conversation; what is wrong with them was noted."""
        self.is_session = False
        """The id of the conversation is that of a session, which may go on days later."""
        self.refused: list[InputError] = []
        """Why conversations of the group could not be built, while others were."""

    def begin(self, file: str, line: int) -> None:
        """Begin another conversation, which is here; nothing is noted of it yet."""
        self.file = file
        self.line = line
        if self.taken:
            self.taken = []
        self.records = 0
        self.is_session = False
        if self.unused:
            self.unused = []

    def refuse(self, error: InputError) -> None:
        """One conversation of a group that holds several cannot be built; the others are read."""
        self.refused.append(error)
        self.taken = []

    def repaired(self, code: str, detail: str = "", seq: int = -1) -> None:
        """Something was wrong and was put right."""
        self._take("repaired", code, detail, seq)

    def inferred(self, code: str, detail: str = "", seq: int = -1) -> None:
        """Something was not said and was concluded."""
        self._take("inferred", code, detail, seq)

    def ignored(self, what: str, detail: str = "", seq: int = -1, count: int = 1) -> None:
        """Something was seen and left out, and nothing is missing for it."""
        self._take("ignored", what, detail, seq, count)

    def set_aside(self, code: str, detail: str = "", seq: int = -1) -> None:
        """A value could not be used: what it should say is missing."""
        self._take("set_aside", code, detail, seq)

    @contextmanager
    def at_line(self, file: str, line: int) -> Iterator[None]:
        """What is noted meanwhile is about this line; "" is the same file as before."""
        before = self.file, self.line
        self.file, self.line = file or self.file, line
        try:
            yield
        finally:
            self.file, self.line = before

    def unknown(self, name: str, seq: int = -1) -> None:
        """A name was met that this reader does not know; its value is in `extras`."""
        self._take("unknown", name, "", seq)

    def _take(self, kind: Kind, code: str, detail: str, seq: int, count: int = 1) -> None:
        self.taken.append(
            Note(kind=kind, code=code, detail=detail, seq=seq, count=count, file=self.file, line=self.line)
        )

    def hand_over(self) -> tuple[Note, ...]:
        """What was noted since the last time this was asked."""
        if not self.taken:
            return ()
        notes, self.taken = tuple(self.taken), []
        return notes


def _where(file: str, line: int, detail: str) -> str:
    where = f"{file}:{line}" if line else file
    return f"{where} {detail}" if detail else where
