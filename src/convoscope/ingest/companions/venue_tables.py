"""Tables of venues, one kind of companion: the database in which the agent of a dialogue looks things up.

They are for all dialogues, and become a resource of the metrics that ask for one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from convoscope.conversation import Conversation
from convoscope.errors import InputError
from convoscope.ingest.io import containers as files
from convoscope.ingest.io.json import BadJson, decode
from convoscope.ingest.reader import Detection, Sample
from convoscope.ingest.report import FileRead, Notes, ReadReport

_NAME = re.compile(r"(?P<domain>\w+)_db\.json(\.gz|\.zstd?)?", re.IGNORECASE)


class VenueTable(NamedTuple):
    """The file with the venues of one domain."""

    domain: str
    path: str


class VenueTables:
    """Files such as `hotel_db.json`: the records of a domain, which their name tells."""

    format = "venues"

    def __init__(self, report: ReadReport) -> None:
        self._report = report
        self._by_domain: dict[str, VenueTable] = {}

    def detect(self, sample: Sample) -> Detection | None:
        is_table = bool(_domain(sample.path)) and sample.container in ("array", "document")
        is_table = is_table and all(isinstance(value, dict) for value in sample.values)
        if sample.container == "document":
            is_table = is_table and any(sample.values) and all(_is_patterns(value) for value in sample.values)
        return Detection(1.0, f"venues of {_domain(sample.path)}", "companion") if is_table else None

    def load(self, path: Path, name: str, *, is_named: bool) -> bool:
        """Take a table. A second one of a domain has to say the same: nobody could tell which of them is right."""
        del is_named
        domain = _domain(path)
        first = self._by_domain.setdefault(domain, VenueTable(domain, str(path.resolve())))
        if files.whole(Path(first.path)) != files.whole(path):
            raise InputError(
                f"holds other venues of {domain} than {first.path}",
                file=name,
                hint="give one table for each domain",
            )
        self._report.files[name] = FileRead(self.format, f"venues of {domain}", is_beside=True)
        return True

    def attacher(self, reader: str, files: Sequence[Path]) -> Callable[[Conversation, Notes], Conversation] | None:
        """A conversation does not hold the database: it is the same for all."""
        del reader, files
        return None

    @property
    def tables(self) -> tuple[VenueTable, ...]:
        """All of them, by domain."""
        return tuple(self._by_domain[domain] for domain in sorted(self._by_domain))


def _is_patterns(value: Any) -> bool:
    """A domain without records, such as taxis, has lists of what they are drawn from."""
    return isinstance(value, dict) and all(isinstance(inner, list) for inner in value.values())


def _domain(path: Path) -> str:
    match = _NAME.fullmatch(path.name)
    return match["domain"].lower() if match else ""


def read_venues(tables: Sequence[VenueTable]) -> Mapping[str, Any]:
    """The records of each domain, as the files have them."""
    return {table.domain: _content(Path(table.path)) for table in tables}


def _content(path: Path) -> Any:
    try:
        return decode(files.whole(path)).value
    except BadJson as error:
        raise InputError(str(error), file=str(path), line=error.line, hint="the JSON must be complete") from None
