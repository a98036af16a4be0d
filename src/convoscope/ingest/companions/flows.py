"""Flow definitions, one kind of companion: files that are given or are among the logs, and who went through which."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation import Conversation, Flow, StateEntered, StateExited
from convoscope.errors import InputError, UsageError
from convoscope.ingest.companions.flow_definitions import SEE_FLOWS, FlowFile, declares_flow, flows_of
from convoscope.ingest.io import containers
from convoscope.ingest.io.json import BadJson, decode, repeated_name
from convoscope.ingest.io.yaml import plain, yaml_documents
from convoscope.ingest.reader import Attach, Companion, Detection, Sample
from convoscope.ingest.report import FileRead, Notes, Problem, ReadReport
from convoscope.storage import as_path
from convoscope.text.folding import folded_name

PathLike = str | os.PathLike[str]
FROM_THE_ONLY_ONE = "flow_from_the_only_definition"
AS_DECLARED = "flow_name_as_declared"
FORMAT = "flow-definition"
YAML_ENDINGS = (".yaml", ".yml")
_ENDINGS = (*YAML_ENDINGS, ".json")
MAX_BYTES = 10 * 1024 * 1024


class FlowDefinitions(Companion):
    """The definitions of one read. One that was given wins over one of the same name among the logs."""

    format = FORMAT

    def __init__(self, given: Iterable[PathLike | Flow] = (), report: ReadReport | None = None) -> None:
        self._report = ReadReport() if report is None else report
        self._given: dict[str, _Declared] = {}
        self._discovered: dict[str, _Declared] = {}
        self._files: set[Path] = set()
        for source in [given] if isinstance(given, str | os.PathLike | Flow) else given:
            if isinstance(source, Flow):
                _add(self._given, source, "a flow made in Python")
            elif isinstance(source, str | os.PathLike):
                self._give(as_path(source), os.fspath(source))
            else:
                raise UsageError(f"a {type(source).__name__} is not a flow definition", hint="give paths, or flows")

    def _give(self, path: Path, path_given: str) -> None:
        """What is given has to be readable: everything depends on it."""
        if not path.exists():
            raise InputError("there is no such file or folder", file=path_given, hint="--flows names flow definitions")
        # A run that is shared need not say where its definitions are kept.
        name = f"…/{path.name}" if path.is_absolute() else path_given
        if not path.is_dir():
            with _errors_name(path_given):
                self._take(path, name, read_flow_file(path, name), self._given)
            return
        before = len(self._files)
        for inner in sorted(inner for inner in path.rglob("*") if inner.name.lower().endswith(_ENDINGS)):
            below = inner.relative_to(path)
            if any(part.startswith(".") for part in below.parts) or not inner.is_file():
                continue
            with _errors_name(str(Path(path_given) / below)):
                if may_declare_flow(inner):
                    inner_name = str(Path(name) / below)
                    self._take(inner, inner_name, read_flow_file(inner, inner_name), self._given)
        if len(self._files) == before:
            raise InputError("holds no flow definition", file=path_given, hint=SEE_FLOWS)

    def detect(self, sample: Sample) -> Detection | None:
        """A file that declares flows, or that was given as one."""
        if is_yaml(sample.path):
            declares = may_declare_flow(sample.path)
        else:
            declares = sample.container in ("array", "document") and declares_flow(list(sample.values))
        is_claimed = declares or self._is_taken(sample.path)
        return Detection(1.0, "declares a flow", "companion") if is_claimed else None

    def load(self, path: Path, name: str, *, is_named: bool) -> bool:
        """Take the flows of a file among the logs, once."""
        if self._is_taken(path):
            return True
        try:
            content = read_flow_file(path, name)
        except InputError as error:
            if is_named:
                raise
            self._report.files[name] = FileRead(FORMAT, skipped=error.message)
            self._report.problem(Problem(name, error.line or 0, error.message, error.field, error.hint))
        else:
            self._take(path, name, content, self._discovered)
        return True

    def attacher(self, reader: str, files: Sequence[Path]) -> Attach | None:
        """Definitions are for the conversations of every reader, wherever they lie."""
        del reader, files
        return FlowAttacher(self.flows).attach if self.flows else None

    def _is_taken(self, path: Path) -> bool:
        return bool(self._files) and path.resolve() in self._files

    def _take(self, path: Path, name: str, content: FlowFile, declared: dict[str, _Declared]) -> None:
        self._files.add(path.resolve())
        for flow in content.flows:
            _add(declared, flow, name)
        names = ", ".join(flow.name for flow in content.flows)
        why = f"declares flow{'s' if len(content.flows) > 1 else ''} {names}"
        if declared is self._discovered and all(flow.name in self._given for flow in content.flows):
            why += ", which was given"
        self._report.files[name] = FileRead(FORMAT, why)
        self._report.warnings.extend(content.warnings)

    @property
    def flows(self) -> tuple[Flow, ...]:
        """All of them, by name."""
        declared = {**self._discovered, **self._given}
        return tuple(declared[name].flow for name in sorted(declared))


class _Declared(NamedTuple):
    flow: Flow
    file: str


@contextmanager
def _errors_name(path: str) -> Iterator[None]:
    """Errors name a path as the user wrote it."""
    try:
        yield
    except InputError as error:
        error.file = path
        raise


def _add(declared: dict[str, _Declared], flow: Flow, file: str) -> None:
    first = declared.setdefault(flow.name, _Declared(flow, file))
    if first.flow != flow:
        hint = "remove one of them, or choose one with --flows"
        raise InputError(f"declares flow {flow.name!r} differently from {first.file}", file=file, hint=hint)


def read_flow_file(path: Path, name: str = "") -> FlowFile:
    """The flows that a YAML or JSON file declares; `name` is what the file is called in messages."""
    name = name or str(path)
    try:
        return flows_of(_values(path), file=name, stem=_stem(path.name))
    except OSError as error:
        raise InputError(
            f"cannot be opened: {error.strerror or error}", file=name, hint="check its permissions"
        ) from None
    except InputError as error:
        error.file = error.file or name
        raise


def _stem(name: str) -> str:
    stem = name
    for ending in (*containers.PACKED_ENDINGS, *YAML_ENDINGS, ".json"):
        if stem.lower().endswith(ending):
            stem = stem[: -len(ending)]
    return stem.encode("utf-8", "replace").decode() or "flow"


def _content(path: Path) -> tuple[bytes, str]:
    with containers.open_bytes(path) as stream:
        return containers.read_block(stream, MAX_BYTES + 1)


def _values(path: Path) -> Sequence[Any]:
    data, broken = _content(path)
    if broken:
        raise InputError(broken, hint="make the file again")
    if len(data) > MAX_BYTES:
        raise InputError(f"is larger than {MAX_BYTES // 1024 // 1024} MB", hint="a flow definition is a small file")
    data = data.removeprefix(containers.BOM)
    if not data.strip():
        raise InputError("is empty", hint=SEE_FLOWS)
    if not is_yaml(path) and data.lstrip()[:1] in (b"{", b"["):
        try:
            value = plain(decode(data).value)
        except BadJson as error:
            raise InputError(str(error), line=error.line, hint="the JSON must be complete") from None
        if twin := repeated_name(data):
            raise InputError(f"{twin!r} occurs twice in one object", hint="give each its own name, or remove one")
        return [value]
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError("is not UTF-8", line=line, hint="save it as UTF-8") from None
    return yaml_documents(text)


def may_declare_flow(path: Path) -> bool:
    """Whether a file declares a flow, or is broken and was meant to."""
    try:
        data, _ = _content(path)
    except OSError:
        return True
    # Most YAML files declare something else, and are not read whole.
    if len(data) > MAX_BYTES or not any(name in data for name in (b"states", b"flow")):
        return False
    try:
        return declares_flow(list(_values(path)))
    except InputError:
        return _SEEMS.search(data) is not None


def is_yaml(path: Path) -> bool:
    return path.name.lower().endswith(YAML_ENDINGS)


_SEEMS = re.compile(
    rb"""^(?:[ \t]*[{\[-])*[ \t]*["']?(?:flows?|states|transitions|required_slots)["']?\s*:""", re.MULTILINE
)
"""What a broken file holds that was meant to be a flow definition."""


class FlowAttacher:
    """Gives conversations the definition of the flow that they went through."""

    def __init__(self, flows: Sequence[Flow]) -> None:
        folded = Counter(folded_name(flow.name) for flow in flows)
        self._by_name: dict[str, Flow | None] = {flow.name: flow for flow in flows}
        self._by_folded = {folded_name(flow.name): flow for flow in flows if folded[folded_name(flow.name)] == 1}
        self._only = flows[0] if len(flows) == 1 else None

    def attach(self, conversation: Conversation, notes: Notes) -> Conversation:
        """The same one where it has a definition, went through no states, or has a flow of another name."""
        if conversation.flow is not None:
            return conversation
        name = conversation.dimensions.get("flow")
        if not name:
            only = self._only
            if only is None or not any(state in only.by_name for state in _states(conversation)):
                return conversation
            notes.inferred(FROM_THE_ONLY_ONE)
            return _with(conversation, only)
        try:
            flow = self._by_name[name]
        except KeyError:
            # Remembered, so that each name is folded once.
            flow = self._by_name[name] = self._by_folded.get(folded_name(name))
        if flow is None or next(_states(conversation), None) is None:
            return conversation
        if flow.name != name:
            notes.repaired(AS_DECLARED, name)
        return _with(conversation, flow)


def _with(conversation: Conversation, flow: Flow) -> Conversation:
    """The conversation with a definition, and under its name: one flow is one row wherever flows are compared."""
    # A copy is not checked again, as what `replace` makes would be: there may be a million of them.
    complete = copy(conversation)
    msgspec.structs.force_setattr(complete, "flow", flow)
    if conversation.dimensions.get("flow") != flow.name:
        msgspec.structs.force_setattr(complete, "dimensions", {**conversation.dimensions, "flow": flow.name})
    return complete


def _states(conversation: Conversation) -> Iterator[str]:
    for event in conversation.timeline:
        if type(event) is StateEntered or type(event) is StateExited:
            yield event.state
