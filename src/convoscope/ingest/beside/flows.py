"""The flow definitions of a read: those that were given, those that were found, and which conversation has which."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path

import msgspec

from convoscope.conversation import Conversation, Flow, StateEntered, StateExited
from convoscope.errors import InputError, UsageError
from convoscope.ingest.beside.flow_files import FORMAT, YAML_ENDINGS, looked_at, read_flow_file
from convoscope.ingest.beside.flow_shapes import SEE_FLOWS, FlowFile
from convoscope.ingest.report import FileRead, Problem, ReadReport
from convoscope.text.identifiers import folded_name

PathLike = str | os.PathLike[str]
FROM_THE_ONLY_ONE = "flow_from_the_only_definition"
AS_DECLARED = "flow_name_as_declared"
_ENDINGS = (*YAML_ENDINGS, ".json")


class Definitions:
    """Gathers definitions. One that was given wins over one that was found by the same name."""

    def __init__(self, given: Iterable[PathLike | Flow], report: ReadReport) -> None:
        self._report = report
        self._given: dict[str, tuple[Flow, str]] = {}
        self._found: dict[str, tuple[Flow, str]] = {}
        self._files: set[Path] = set()
        for one in [given] if isinstance(given, str | os.PathLike | Flow) else given:
            if isinstance(one, Flow):
                _add(self._given, one, "a flow made in Python")
            elif isinstance(one, str | os.PathLike):
                self._give(Path(one), os.fspath(one))
            else:
                raise UsageError(f"a {type(one).__name__} is no flow definition", hint="give paths, or flows")

    def _give(self, path: Path, called: str) -> None:
        """What is given has to be readable: everything depends on it."""
        if not path.exists():
            raise InputError("there is no such file or folder", file=called, hint="--flows names flow definitions")
        # A run that is shared need not tell where somebody keeps definitions.
        name = f"…/{path.name}" if path.is_absolute() else called
        if not path.is_dir():
            with _called(called):
                self._take(path, name, read_flow_file(path, name), self._given)
            return
        before = len(self._files)
        for inner in sorted(place for place in path.rglob("*") if _may_be(place.relative_to(path), place)):
            below = inner.relative_to(path)
            told = str(Path(name) / below)
            with _called(str(Path(called) / below)):
                if (read := looked_at(inner, told)) is not None:
                    self._take(inner, told, read, self._given)
        if len(self._files) == before:
            raise InputError("holds no flow definition", file=called, hint=SEE_FLOWS)

    def holds(self, path: Path) -> bool:
        """Whether a file was taken already."""
        return bool(self._files) and path.resolve() in self._files

    def find(self, path: Path, name: str, *, explicit: bool) -> bool:
        """Take a YAML file that lies among the logs if it declares a flow; says whether it does."""
        try:
            read = looked_at(path, name)
        except InputError as error:
            if explicit:
                raise
            self._refuse(name, error)
            return True
        if read is not None:
            self._take(path, name, read, self._found)
        return read is not None

    def found(self, path: Path, name: str, *, explicit: bool) -> None:
        """Take a JSON file that lies among the logs, and that declares a flow as far as it was looked at."""
        try:
            self._take(path, name, read_flow_file(path, name), self._found)
        except InputError as error:
            if explicit:
                raise
            self._refuse(name, error)

    def _refuse(self, name: str, error: InputError) -> None:
        self._report.files[name] = FileRead(FORMAT, skipped=error.message)
        self._report.problem(Problem(name, error.line or 0, error.message, error.field, error.hint))

    def _take(self, path: Path, name: str, read: FlowFile, among: dict[str, tuple[Flow, str]]) -> None:
        self._files.add(path.resolve())
        for flow in read.flows:
            _add(among, flow, name)
        names = ", ".join(flow.name for flow in read.flows)
        why = f"declares flow{'s' if len(read.flows) > 1 else ''} {names}"
        if among is self._found and all(flow.name in self._given for flow in read.flows):
            why += ", which was given"
        self._report.files[name] = FileRead(FORMAT, why)
        self._report.warnings.extend(read.warnings)

    @property
    def flows(self) -> tuple[Flow, ...]:
        """All of them, by name."""
        taken = {**self._found, **self._given}
        return tuple(taken[name][0] for name in sorted(taken))


@contextmanager
def _called(path: str) -> Iterator[None]:
    """Whoever gave a path finds it in an error as it was given."""
    try:
        yield
    except InputError as error:
        error.file = path
        raise


def _add(flows: dict[str, tuple[Flow, str]], flow: Flow, file: str) -> None:
    if flow.name in flows and flows[flow.name][0] != flow:
        other = flows[flow.name][1]
        hint = f"the other stands in {other}; remove one, or say which by --flows"
        raise InputError(f"declares flow {flow.name!r} in another way than {other}", file=file, hint=hint)
    flows.setdefault(flow.name, (flow, file))


def _may_be(name: Path, place: Path) -> bool:
    hidden = any(part.startswith(".") for part in name.parts)
    return not hidden and place.name.lower().endswith(_ENDINGS) and place.is_file()


class Attached(msgspec.Struct, frozen=True):
    """A conversation with the definition of its flow, and whether that was concluded."""

    conversation: Conversation
    inferred: str = ""
    """The code of the note for it, where its flow was not said."""
    repaired: str = ""
    """The code of the note for it, where its flow was said by another spelling."""


class Attacher:
    """Gives conversations the definition of the flow that they went through."""

    def __init__(self, flows: Sequence[Flow]) -> None:
        folded = Counter(folded_name(flow.name) for flow in flows)
        self._by_name: dict[str, Flow | None] = {flow.name: flow for flow in flows}
        self._by_folded = {folded_name(flow.name): flow for flow in flows if folded[folded_name(flow.name)] == 1}
        self._only = flows[0] if len(flows) == 1 else None

    def attached(self, conversation: Conversation) -> Attached | None:
        """None where it stays as it is: it has a definition, went through no states, or goes by another name."""
        if conversation.flow is not None:
            return None
        name = conversation.dimensions.get("flow")
        if not name:
            return self._by_states(conversation)
        try:
            flow = self._by_name[name]
        except KeyError:
            # Remembered, so that each name is folded once.
            flow = self._by_name[name] = self._by_folded.get(folded_name(name))
        if flow is None or next(_states(conversation), None) is None:
            return None
        if flow.name == name:
            return Attached(_with(conversation, flow))
        return Attached(_with(conversation, flow), repaired=AS_DECLARED)

    def _by_states(self, conversation: Conversation) -> Attached | None:
        only = self._only
        if only is None or not any(state in only.by_name for state in _states(conversation)):
            return None
        return Attached(_with(conversation, only), inferred=FROM_THE_ONLY_ONE)


def _with(conversation: Conversation, flow: Flow) -> Conversation:
    """The conversation with a definition, and under its name: one flow is one row wherever flows are compared."""
    # A copy is not checked again, as what `replace` makes would be: there may be a million of them.
    made = copy(conversation)
    msgspec.structs.force_setattr(made, "flow", flow)
    if conversation.dimensions.get("flow") != flow.name:
        msgspec.structs.force_setattr(made, "dimensions", {**conversation.dimensions, "flow": flow.name})
    return made


def _states(conversation: Conversation) -> Iterator[str]:
    """The states that a conversation was in."""
    for event in conversation.timeline:
        if type(event) is StateEntered or type(event) is StateExited:
            yield event.state
