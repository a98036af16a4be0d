"""The command `convoscope`."""

from __future__ import annotations

import gc
import io
import os
import sys
from typing import Annotated

import typer

from convoscope import __version__
from convoscope.cli import demo, formats, inspect, metrics, report, runs, score, show, sql, states, view
from convoscope.errors import ConvoscopeError

# Exit codes: 0 fine, 1 a check failed, 2 bad usage or nothing readable, 3 undetermined.
BAD_USAGE = 2
INTERRUPTED = 130

app = typer.Typer(
    help="How good are these conversations, and exactly where do they break?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("score")(score.score_command)
app.command("report")(report.report)
app.command("show")(show.show)
app.add_typer(view.app, name="view")
app.command("inspect")(inspect.inspect)
app.command("metrics")(metrics.metrics)
app.command("formats")(formats.formats)
app.add_typer(runs.app, name="runs")
app.add_typer(states.app, name="states")
app.command("sql")(sql.sql)
app.command("demo")(demo.demo)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"convoscope {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which version.")
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
        app()
    except ConvoscopeError as error:
        _fail(f"error: {error}", BAD_USAGE)
    except KeyboardInterrupt:
        _fail("interrupted; the same command again goes on from here", INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has seen enough. Nothing more can be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except MemoryError:
        _fail("error: not enough memory\n  fewer --workers need less", BAD_USAGE)
    except OSError as error:
        _fail(f"error: {error.filename or ''}: {error.strerror or error}", BAD_USAGE)
    except Exception as error:
        if os.environ.get("CONVOSCOPE_DEBUG"):
            raise
        # Known by its name: the database is imported only where it is used.
        if "duckdb" in type(error).__module__:
            reason = str(error).partition("\n")[0]
            _fail(f"error: a file of the run cannot be read: {reason}\n  score again, into another folder", BAD_USAGE)
        hint = "this is a fault of convoscope: please report it. CONVOSCOPE_DEBUG=1 shows where it happened."
        _fail(f"error: {type(error).__name__}: {error}\n  {hint}", BAD_USAGE)


def _fail(message: str, code: int) -> None:
    from convoscope.report.screen import clean

    sys.stderr.write(clean(message) + "\n")
    sys.exit(code)
