"""Python code that a user names, by file or by module: loaded once; whatever goes wrong is reported in a sentence."""

from __future__ import annotations

import hashlib
import importlib
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from os import PathLike, fspath
from pathlib import Path
from types import ModuleType

from convoscope.errors import ConvoscopeError, InputError, UsageError
from convoscope.storage import only_here

WHAT = "name a .py or .toml file, or a module that Python finds from this folder"


def names(sources: str | PathLike[str] | Iterable[str | PathLike[str]]) -> list[str]:
    """Sources as a user names them: one, or several."""
    return [fspath(one) for one in ([sources] if isinstance(sources, str | PathLike) else sources)]


def load(name: str) -> ModuleType:
    """The module of a file, `my_scorers.py`, or of a name, `my.scorers`. To name code here is to run it."""
    only_here(name, "the code at")
    path = Path(name)
    try:
        if path.suffix == ".py" and path.is_file():
            return _loaded(path.resolve(), content_hash(path))
        if path.is_file() and path.suffix != ".toml":
            raise UsageError(f"{name} is neither Python nor TOML", hint=WHAT)
        if path.suffix in (".py", ".toml") or len(path.parts) > 1:
            raise UsageError(f"{name}: there is no such file", hint=WHAT)
        return _module(name)
    except InputError as error:
        # The user knows the file by the name they gave.
        error.file = name if error.file == str(path.resolve()) else error.file
        raise


def content_hash(path: Path) -> str:
    """What a file holds, in short."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


@cache
def _loaded(path: Path, content: str) -> ModuleType:
    """A file as a module under its own name; once, as long as it holds the same."""
    del content
    name = path.stem
    _refuse_taken(name, path)
    spec = spec_from_file_location(name, path)
    if spec is None or not isinstance(spec.loader, SourceFileLoader):
        raise UsageError(f"{path.name} cannot be loaded", hint="give it a name such as my_scorers.py")
    module = module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        with _importable_from(path.parent), _readable_errors(str(path), path):
            # Compiled here: what a cache holds may be older than the file.
            exec(spec.loader.source_to_code(path.read_bytes(), str(path)), vars(module))
    except BaseException:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before
        raise
    return module


def _refuse_taken(name: str, path: Path) -> None:
    """A file must not stand in for a module that other code imports by its name."""
    hint = "rename the file, for example to my_scorers.py"
    if not name.isidentifier():
        raise UsageError(f"{path.name} cannot be the name of a module", hint=hint)
    try:
        spec = None if name in sys.builtin_module_names else find_spec(name)
        taken = name in sys.builtin_module_names or (spec is not None and Path(spec.origin or "").resolve() != path)
    except (ImportError, ValueError):  # a module that was made by hand has no spec
        taken = True
    if taken:
        raise UsageError(f"{path.name} has the name of another module", hint=hint)


def _module(name: str) -> ModuleType:
    with _importable_from(Path.cwd()), _readable_errors(name):
        importlib.invalidate_caches()
        return importlib.import_module(name)


@contextmanager
def _importable_from(folder: Path) -> Iterator[None]:
    """While it is being loaded, it may import what lies beside it; installed modules come first."""
    sys.path.append(str(folder))
    try:
        yield
    finally:
        if str(folder) in sys.path:
            # From behind: other code may have had this folder on the path before.
            del sys.path[len(sys.path) - 1 - sys.path[::-1].index(str(folder))]


@contextmanager
def _readable_errors(name: str, path: Path | None = None) -> Iterator[None]:
    """Whatever code raises while it is loaded is reported in a sentence: file, line, and what Python said."""
    try:
        yield
    except ModuleNotFoundError as error:
        if path is None and error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise UsageError(f"there is no module {name}", hint=WHAT) from None
        raise _broken(name, path, error) from None
    except (Exception, SystemExit) as error:  # whatever a user's module raises
        raise _broken(name, path, error) from None


def _broken(name: str, path: Path | None, error: BaseException) -> InputError:
    message = error.message if isinstance(error, ConvoscopeError) else f"{type(error).__name__}: {_words(error)}"
    hint = error.hint if isinstance(error, ConvoscopeError) else ""
    if isinstance(error, SyntaxError) and error.filename:
        message = f"{type(error).__name__}: {error.msg}"
        return InputError(f"cannot be loaded: {message}", file=error.filename, line=error.lineno)
    where = _last_user_frame(error, path)
    file, line = (where.filename, where.lineno) if where else (name, None)
    return InputError(f"cannot be loaded: {message}", file=file, line=line, hint=hint)


def _last_user_frame(error: BaseException, path: Path | None) -> traceback.FrameSummary | None:
    """The last line of the user's own code that was reached: in this file, or beside it."""
    frames = [one for one in traceback.extract_tb(error.__traceback__) if not _is_internal(one.filename)]
    home = path or (Path(frames[0].filename) if frames else None)
    own_frames = [one for one in frames if home and Path(one.filename).parent == home.parent]
    return own_frames[-1] if own_frames else None


def _is_internal(filename: str) -> bool:
    """Frames of ours and of Python's importer say nothing of where a user's code went wrong."""
    return filename.startswith(("<", str(Path(__file__).parent), str(Path(importlib.__file__).parent)))


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # its own __str__ is broken
        return ""


__all__ = ["WHAT", "content_hash", "load", "names"]
