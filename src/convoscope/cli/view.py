"""`convoscope view`: one conversation as metrics see it, without scoring it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from convoscope.cli.options import Json, ReadOptions, with_read_options

if TYPE_CHECKING:
    from convoscope.conversation import Conversation
    from convoscope.report.screen import Screen

app = typer.Typer(help="Show a conversation as metrics see it.", no_args_is_help=True, rich_markup_mode=None)

Logs = Annotated[list[Path], typer.Argument(help="The folder of a call, or another log; its dataset may be given too.")]
Id = Annotated[str | None, typer.Option("--id", help="Only the conversation with this id.")]


class ShownView(NamedTuple):
    """One way to look at a conversation: as data, and on the screen."""

    data: Callable[[Conversation], Any]
    show: Callable[[Screen, Conversation], None]


def _view(name: str) -> ShownView:
    from convoscope.report.view_terminal import print_context, print_timeline, print_trace, timeline
    from convoscope.views import metric_context

    return {
        "metric-context": ShownView(lambda one: metric_context(one).to_dict(), print_context),
        "trace": ShownView(lambda one: metric_context(one).conversation_trace, print_trace),
        "timeline": ShownView(timeline, print_timeline),
    }[name]


def _add_command(name: str, help: str) -> None:
    @app.command(name, help=help)
    @with_read_options
    def view(paths: Logs, reading: ReadOptions, id: Id = None, json: Json = False) -> None:
        _show(paths, reading, id, json, _view(name))


_add_command("metric-context", "The MetricContext: every field that a metric receives.")
_add_command("trace", "What was said and done, in one list: user, tool calls, tool responses, assistant.")
_add_command("timeline", "Every event with its time, by turn.")


def _show(paths: list[Path], options: ReadOptions, id: str | None, json: bool, view: ShownView) -> None:
    """One conversation is printed as such; several follow each other, in JSON one per line."""
    from convoscope.errors import UsageError
    from convoscope.ingest.read import read
    from convoscope.report.run_terminal import print_warnings
    from convoscope.report.screen import Screen

    screen = Screen()
    reading = read(paths, **options.arguments)
    wanted = (one for one in reading if id is None or one.id == id)
    first, second = next(wanted, None), next(wanted, None)
    if first is None:
        raise UsageError(f"there is no conversation {id!r}", hint="`convoscope inspect` shows what is there")
    if json and second is None:
        screen.json(view.data(first))
    elif not json:
        view.show(screen, first)
    else:
        screen.json_line(view.data(first))
    for conversation in (second, *wanted) if second is not None else ():
        if json:
            screen.json_line(view.data(conversation))
        else:
            view.show(screen, conversation)
    print_warnings(Screen(sys.stderr), reading.report)
