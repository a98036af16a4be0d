"""The command `convoscope`."""

from __future__ import annotations

import atexit
import contextlib
import errno
import gc
import io
import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer

from convoscope import __version__
from convoscope.cli.options import GroupedHelp, PlainCommand, PlainGroup
from convoscope.errors import NO_ROOM, ConvoscopeError, Interrupted, is_interrupt, raised_inside
from convoscope.harmless import clean
from convoscope.storage import HINT, StoreError, is_client_error, reason_of

# Exit codes: 0 fine, 1 a check failed, 2 bad usage or nothing readable, 3 undetermined.
BAD_USAGE = 2
INTERRUPTED = 130

COMMANDS = {
    "score": "score.score_command",
    "watch": "watch.watch_command",
    "init": "init.init_command",
    "gate": "gate.gate",
    "baseline": "gate.app",
    "audit": "audit.audit_command",
    "report": "report.report",
    "history": "history.history_command",
    "show": "show.show",
    "compare": "compare.compare_command",
    "plan": "plan.plan_command",
    "plot": "report.plot_command",
    "view": "view.app",
    "inspect": "inspect.inspect",
    "transcribe": "transcribe.transcribe",
    "metrics": "metrics.metrics",
    "formats": "metrics.formats",
    "runs": "runs.app",
    "dialogue": "dialogue.app",
    "states": "states.app",
    "benchmark": "benchmark.app",
    "judge": "judge.app",
    "sql": "sql.sql",
    "export": "export.export_command",
    "demo": "score.demo",
}
"""Where each command lives, in the order of the help. Only what is asked for is imported."""


def make_app(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """The command line with these commands."""
    app = typer.Typer(
        cls=PlainGroup,
        help="How good are these conversations, and exactly where do they break?",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
        callback=_options,
    )
    for name in names:
        module, _, attribute = COMMANDS[name].partition(".")
        command = getattr(import_module(f"convoscope.cli.{module}"), attribute)
        if isinstance(command, typer.Typer):
            for inner in command.registered_commands:  # any path may be an address in an object store
                inner.cls = PlainCommand
            app.add_typer(command, name=name)
        else:
            app.command(name, cls=GroupedHelp if name == "score" else PlainCommand)(command)
    return app


def __getattr__(name: str) -> Any:
    if name == "app":
        return make_app()
    raise AttributeError(name)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"convoscope {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


def main() -> None:
    """Run the command line. Whatever goes wrong ends in a sentence, never in a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    # A command makes very many objects and few circles: to look for these as often as usual costs more than it frees.
    gc.set_threshold(100_000, 20, 20)
    try:
        asked = [name for name in sys.argv[1:2] if name in COMMANDS]
        make_app(asked or COMMANDS)()
    except BaseException as error:
        _end(error)


def program() -> NoReturn:
    """Run the command line and leave at once: to free each object before would take a tenth of a short command."""
    code = 0
    try:
        main()
    except SystemExit as error:
        if isinstance(error.code, str):
            raise
        code = error.code or 0
    atexit._run_exitfuncs()
    _flush()
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    os._exit(code)


def _end(error: BaseException) -> None:
    if (stopped := _interrupt(error)) is not None:
        # Who presses the keys again means no more than that.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        progress = f": {stopped.kept}\n  to go on: {_this_command()}" if isinstance(stopped, Interrupted) else ""
        _fail(f"interrupted{progress}", INTERRUPTED)
    if isinstance(error, SystemExit):
        # The library of the command line takes a reader that has seen enough for a failure.
        _flush()
        if isinstance(error.__context__, BrokenPipeError):
            sys.exit(0)
        raise error
    if isinstance(error, ConvoscopeError):
        _fail(f"error: {error}", BAD_USAGE)
    if isinstance(error, BrokenPipeError):
        _flush()
        sys.exit(0)
    if (want := _wanting(error)) is not None:
        _fail(f"error: {want}, and run the same command again, which goes on from there: {_this_command()}", BAD_USAGE)
    if (inside := raised_inside(error)) or is_client_error(error):
        _fail(f"error: {StoreError(f'the object store: {inside or reason_of(error)}', hint=HINT)}", BAD_USAGE)
    if isinstance(error, OSError):
        file = f"{error.filename}: " if error.filename else ""
        _fail(f"error: {file}{error.strerror or error}", BAD_USAGE)
    if os.environ.get("CONVOSCOPE_DEBUG"):
        raise error
    # Known by its name: the database is imported only where it is used. What a run keeps as JSON may be damaged, too.
    if type(error).__module__.partition(".")[0].lstrip("_") in ("duckdb", "msgspec"):
        reason = str(error).partition("\n")[0]
        _fail(f"error: a file of the run cannot be read: {reason}\n  score again, into another folder", BAD_USAGE)
    hint = "this is a bug in convoscope, or the run folder was modified: please report it. "
    hint += "CONVOSCOPE_DEBUG=1 shows where it happened."
    _fail(f"error: {type(error).__name__}: {error}\n  {hint}", BAD_USAGE)


def _flush() -> None:
    """Write what is left, if anybody still reads it."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        from convoscope.report.screen import close_pipe

        close_pipe(sys.stdout)


def _interrupt(error: BaseException) -> BaseException | None:
    """What stopped us, if it was the user: the library of the command line makes another error of it."""
    seen: BaseException | None = error
    while seen is not None and not is_interrupt(seen):
        seen = seen.__cause__ or seen.__context__
    return seen


def _this_command() -> str:
    return shlex.join(["convoscope", *sys.argv[1:]])


def _wanting(error: BaseException) -> str | None:
    """What the machine had too little of, and what to do about it; None where it was something else."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryException":
        return "not enough memory\n  close other programs, or use fewer --workers"
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        return "too many open files\n  allow more, for example with `ulimit -n 1024`"
    # The database tells what the system said in words.
    if any(os.strerror(code) in str(error) for code in NO_ROOM):
        return "there is no more room on the disk\n  free some"
    return None


def _fail(message: str, code: int) -> None:
    first, *others = clean(message).splitlines()
    # What an error quotes may hold line breaks: only our own words begin a line.
    lines = [first, *(line if re.match(r"  \S", line) else f"  {line}".rstrip() for line in others)]
    if sys.stderr.isatty():
        from convoscope.report.screen import fitted

        width = shutil.get_terminal_size().columns
        lines = [part for line in lines for part in fitted(line, width)]
    sys.stderr.write("\n".join(lines) + "\n")
    sys.exit(code)
