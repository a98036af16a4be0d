"""Conversations of which several files hold a part: the parts are brought together by the id of their session or trace.

First a quick look at the ids that files have in common, without decoding. Of files that share one, the parts are named.
Parts of a conversation of several files go to bucket files, as records with a key do: memory holds one file, then one
bucket. What a file holds of other conversations is read with the file.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from convoscope.ingest.copies import ApartByInput, apart_by_input
from convoscope.ingest.discover import Input
from convoscope.ingest.ids import is_counter
from convoscope.ingest.keyed_records import KeyedPiece, shared_hashes
from convoscope.ingest.pieces import pieces_of, records_of
from convoscope.ingest.reader import Reader, RecordGroup, reader_named
from convoscope.ingest.report import ReadReport
from convoscope.storage import as_path

_ID = re.compile(
    rb'(?:"|(?:[tT]race|[sS]ession|[cC]onversation|[tT]hread|job)[\w.]*)[iI]d\\?"\s*'
    rb'(?:,\s*\\?"value\\?"\s*:\s*\{\s*\\?"\w+\\?"\s*)?:\s*\\?"([^"\\]{1,200})'
)
"""An id by which a conversation may go on in another file: of a field, or of an attribute of OTLP."""
_encode = msgspec.json.Encoder().encode
_Key = tuple[str, ApartByInput, str]
"""The reader, what keeps its file apart from others, and the id of a part."""


class SharedParts(NamedTuple):
    """What a file holds of conversations that other files hold parts of."""

    wholes: dict[str, str]
    """By the key of a part in this file, the key of the whole conversation."""
    is_all: bool
    """The file holds nothing else."""


def shared_parts(inputs: Sequence[Input], size: int) -> dict[int, SharedParts]:
    """By the index of an input: its parts of conversations that other inputs go on with."""
    of_files = [at for at, item in enumerate(inputs) if item.grouping == "file"]
    indexes = [at for at in of_files if reader_named(inputs[at].reader).joins_files]
    links = _Links()
    keys: dict[int, dict[str, _Key]] = {}
    for index in _with_shared_ids(inputs, indexes, size):
        item = inputs[index]
        reader, apart = reader_named(item.reader), apart_by_input(item)
        keys[index] = {}
        for part in reader.part_keys(_group(item, index, size, ReadReport())):
            # A small number is the id of another conversation in each file.
            known = [(item.reader, apart, name) for name in part if name and not is_counter(name)]
            keys[index][part[0]] = known[0] if known else ("", apart, f"{index} {part[0]}")
            links.join(known)
    files: dict[_Key, set[int]] = {}
    for index, of_file in keys.items():
        for key in of_file.values():
            files.setdefault(links.first(key), set()).add(index)
    shared: dict[int, SharedParts] = {}
    for index, of_file in keys.items():
        firsts = {name: links.first(key) for name, key in of_file.items()}
        wholes = {name: first[2] for name, first in firsts.items() if len(files[first]) > 1}
        if wholes:
            shared[index] = SharedParts(wholes, len(wholes) == len(of_file))
    return shared


def part_pieces(
    parts: Iterable[tuple[int, Input, SharedParts]], reader: Reader, report: ReadReport, size: int
) -> Iterator[KeyedPiece]:
    """The parts of files, each as a record with the key of its whole conversation."""
    for index, item, shared in parts:
        seen = ReadReport()
        group = _group(item, index, size, seen)
        texts, keys = list[bytes](), list[str]()
        for key, value in reader.parts(group, shared.wholes):
            texts.append(_encode(value))
            keys.append(shared.wholes[key])
        seen.records_seen = len(texts)
        if shared.is_all:  # the file is not read again: what is wrong with it is reported here
            seen.records_seen += seen.problem_count
            report.merge(seen)
        else:
            report.records_seen += len(texts)
        yield KeyedPiece(item.name, range(1, len(texts) + 1), texts, keys)


def _group(item: Input, index: int, size: int, report: ReadReport) -> RecordGroup:
    records = (record for piece in pieces_of(item, index, size) for record in records_of(piece, report))
    return RecordGroup(item.name, as_path(item.path), tuple(records))


def _with_shared_ids(inputs: Sequence[Input], indexes: Sequence[int], size: int) -> list[int]:
    """The inputs that have an id in common with another one of the same reader; eight bytes are held for each id."""
    by_reader: dict[str, list[int]] = {}
    for index in indexes:
        by_reader.setdefault(inputs[index].reader, []).append(index)
    sharing: list[int] = []
    for same in by_reader.values():
        if len(same) < 2:
            continue
        ids = {index: array("q", _ids(inputs[index], index, size)) for index in same}
        shared = shared_hashes(array("q", (id for of_file in ids.values() for id in of_file)))
        sharing += [index for index, of_file in ids.items() if not shared.isdisjoint(of_file)]
    return sorted(sharing)


def _ids(item: Input, index: int, size: int) -> set[int]:
    pieces = (piece for piece in pieces_of(item, index, size) if not piece.problem)
    ids: set[int] = set()
    for piece in pieces:
        try:
            ids.update(map(hash, _ID.findall(piece.content)))
        except OSError:  # it is reported when the file is read
            break
    return ids


class _Links:
    """Keys that are of one conversation: a session may have many traces, and one file may know only these."""

    def __init__(self) -> None:
        self._to: dict[_Key, _Key] = {}

    def first(self, key: _Key) -> _Key:
        """The first of all keys of the same conversation."""
        while (to := self._to.get(key, key)) != key:
            self._to[key] = self._to.get(to, to)
            key = to
        return key

    def join(self, keys: Sequence[_Key]) -> None:
        for other in keys[1:]:
            earlier, later = sorted((self.first(keys[0]), self.first(other)))
            if earlier != later:
                self._to[later] = earlier
