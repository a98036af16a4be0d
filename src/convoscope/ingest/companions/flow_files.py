"""Flow definitions: the YAML and JSON files that declare what the states of a flow are."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from convoscope.errors import InputError
from convoscope.ingest.companions.flow_shapes import SEE_FLOWS, FlowFile, declares_flow, flows_of
from convoscope.ingest.io import containers as files
from convoscope.ingest.io.json import BadJson, decode
from convoscope.ingest.io.yaml import plain, yaml_documents

FORMAT = "flow-definition"
YAML_ENDINGS = (".yaml", ".yml")
MAX_BYTES = 10 * 1024 * 1024


def read_flow_file(path: Path, name: str = "") -> FlowFile:
    """The flows that a YAML or JSON file declares; `name` is what the file is called in messages."""
    name = name or str(path)
    try:
        return flows_of(_values(path), file=name, stem=_stem(path.name))
    except OSError as error:
        raise InputError(f"cannot be opened: {error.strerror}", file=name, hint="check its permissions") from None
    except InputError as error:
        error.file = error.file or name
        raise


def _stem(name: str) -> str:
    stem = name
    for ending in (*files.PACKED_ENDINGS, *YAML_ENDINGS, ".json"):
        if stem.lower().endswith(ending):
            stem = stem[: -len(ending)]
    return stem.encode("utf-8", "replace").decode() or "flow"


def _values(path: Path) -> Sequence[Any]:
    """The documents of a file."""
    with files.open_bytes(path) as stream:
        data, broken = files.read_block(stream, MAX_BYTES + 1)
    if broken:
        raise InputError(broken, hint="make the file again")
    if len(data) > MAX_BYTES:
        raise InputError(f"is larger than {MAX_BYTES // 1024 // 1024} MB", hint="a flow definition is a small file")
    data = data.removeprefix(files.BOM)
    if not data.strip():
        raise InputError("is empty", hint=SEE_FLOWS)
    if not is_yaml(path) and data.lstrip()[:1] in (b"{", b"["):
        return [_json(data)]
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError("is not UTF-8", line=line, hint="save it as UTF-8") from None
    return yaml_documents(text)


def _json(data: bytes) -> Any:
    try:
        value = decode(data).value
        json.loads(data.decode("utf-8", "replace"), object_pairs_hook=_no_twins, strict=False)
    except BadJson as error:
        raise InputError(str(error), line=error.line, hint="the JSON must be complete") from None
    except (RecursionError, ValueError) as error:
        raise InputError(f"cannot be read: {error}", hint="the JSON must be complete") from None
    return plain(value)


def _no_twins(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        seen = set[str]()
        twin = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise InputError(f"{twin!r} occurs twice in one object", hint="give each its own name, or remove one")
    return value


def may_declare_flow(path: Path) -> bool:
    """Whether a file declares a flow, or is broken and was meant to."""
    try:
        with files.open_bytes(path) as stream:
            data, _ = files.read_block(stream, MAX_BYTES + 1)
    except OSError:
        return True
    # Most YAML files declare something else, and are not worth a whole look.
    if len(data) > MAX_BYTES or not any(word in data for word in (b"states", b"flow")):
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
