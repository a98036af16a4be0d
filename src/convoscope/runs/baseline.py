"""The baseline: the run that later ones are held against, kept as a small file that says which run it is.

The file can be committed or cached. It names the run by its path and by its identity, so that another run in the same
folder is not taken for it.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from convoscope.errors import RunError
from convoscope.runs.receipt import canonical_hash, now
from convoscope.runs.run import Run, write_json
from convoscope.settings_file import FoundSettings
from convoscope.storage import as_path, is_remote, store_errors

FILE = "convoscope-baseline.json"
SCHEMA = "convoscope.baseline/1"
COMMAND = "`convoscope baseline set RUN`"
SET = f"{COMMAND} names one"


class BaselineFile(msgspec.Struct, frozen=True, kw_only=True):
    """What the file holds."""

    schema: str = SCHEMA
    run: str
    """The folder of the run, from the folder of the file on, or its address in an object store."""
    run_id: str
    identity: str
    """A hash of all that the run depends on: settings, input, metrics, version, sources."""
    conversations: int
    finished_at: str
    set_at: str


def baseline_path(settings: FoundSettings | None) -> Path:
    """Where the baseline is: as the settings say, else a file beside them, else one in the working folder."""
    if settings is None:
        return Path(FILE)
    name = settings.tables.baseline or FILE
    return Path(os.path.relpath(settings.path(name)))


def set_baseline(run: Run, path: Path) -> BaselineFile:
    """Make a run the baseline. An invalid one is refused."""
    if path.is_dir():
        raise RunError(f"{path} is a folder", hint="the settings name a run as the baseline; let them name a file")
    if not run.receipt.valid:
        hint = "set a run that is valid"
        raise RunError(f"{run.folder} is marked invalid: {run.receipt.invalid_reason}", hint=hint)
    if not path.parent.is_dir():
        raise RunError(f"cannot write {path}: there is no folder {path.parent}", hint="create it first")
    kept = BaselineFile(
        run=str(run.folder) if is_remote(run.folder) else Path(os.path.relpath(run.folder, path.parent)).as_posix(),
        run_id=run.receipt.run_id,
        identity=canonical_hash(run.receipt.depends_on),
        conversations=run.summary.conversations,
        finished_at=run.receipt.finished_at,
        set_at=now(),
    )
    write_json(path, kept)
    return kept


def read_baseline(path: Path) -> BaselineFile:
    """What a file says. Raises `RunError` that says what to do."""
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=BaselineFile)
    except FileNotFoundError:
        raise RunError(f"there is no baseline at {path}", hint=SET) from None
    except (msgspec.DecodeError, OSError, RecursionError) as error:
        raise RunError(f"{path} is not a baseline: {error}", hint=SET) from None
    if kept.schema != SCHEMA:
        raise RunError(f"{path} is not a baseline: its schema is {kept.schema!r}", hint=SET)
    return kept


def open_baseline(path: Path) -> Run:
    """The run that a file names, or that is at a path itself."""
    if path.is_dir():
        return Run.open(path)
    kept = read_baseline(path)
    folder = as_path(kept.run) if is_remote(kept.run) else Path(os.path.relpath(path.parent / kept.run))
    with store_errors(folder):
        is_there = folder.is_dir()
    if not is_there:
        hint = f"bring {kept.run_id} back, from a cache or by scoring its logs again; or set another: {COMMAND}"
        raise RunError(f"the baseline of {path} is gone: there is no run at {folder}", hint=hint)
    run = Run.open(folder)
    if canonical_hash(run.receipt.depends_on) != kept.identity:
        message = f"{folder} is not the baseline of {path}: it holds {run.receipt.run_id}, and not {kept.run_id}"
        raise RunError(message, hint=SET)
    return run
