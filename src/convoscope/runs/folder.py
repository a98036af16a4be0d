"""What the folder of a run may hold. It may come from anyone: it is checked before a file in it is opened."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from convoscope.errors import RunError

INSIDE = ".partial"
"""The folder in which a run is made, where the folder of the run is there already."""
ANSWERS = "answers"
"""What metrics that wait were answered, in the folder of an unfinished run."""
SCRATCH = "scratch"
_OWN = (INSIDE, ANSWERS, SCRATCH)


def check_folder(folder: Path) -> None:
    """Refuse a folder of a run that holds anything but plain files and folders.

    A link would lead reading and writing out of it, and a pipe would wait for ever.
    """
    for entry in _entries(folder):
        if entry.is_symlink() or not (entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)):
            what = "a link" if entry.is_symlink() else "neither a file nor a folder"
            raise RunError(
                f"{entry.path} is {what}: a run holds plain files only",
                hint="do not use a run folder that you do not trust; or score the logs again, into another folder",
            )


def _entries(folder: Path | str) -> Iterator[os.DirEntry[str]]:
    """What lies in it and in the folders that a run writes. Other folders are not opened by any command."""
    with os.scandir(folder) as entries:
        for entry in entries:
            yield entry
            if entry.is_dir(follow_symlinks=False) and (entry.name in _OWN or entry.name.endswith(".parquet")):
                yield from _entries(entry.path)
