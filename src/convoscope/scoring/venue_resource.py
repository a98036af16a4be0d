"""The database of venues that lies beside dialogues, as a resource of metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from convoscope.ingest.companions.dialogue_files import VenueTable, read_venues
from convoscope.metrics.needs import VENUES_TYPE
from convoscope.resources.registry import Resource

if TYPE_CHECKING:
    from convoscope.metrics.dialogue.venues import VenueDatabase


class _VenueFiles:
    """Reads the tables, once in each process."""

    def __init__(self, tables: Sequence[VenueTable]) -> None:
        self._tables = tuple(tables)
        self.__qualname__ = type(self).__qualname__

    def __call__(self) -> VenueDatabase:
        from convoscope.metrics.dialogue.venues import VenueDatabase

        return VenueDatabase(read_venues(self._tables))


def venue_resource(tables: Sequence[VenueTable]) -> Resource:
    """A resource made of these files wherever it is needed."""
    return Resource((VENUES_TYPE,), _VenueFiles(tables), is_ours=False)
