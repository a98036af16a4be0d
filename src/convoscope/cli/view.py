"""`convoscope view`: one conversation as metrics see it, without scoring it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from convoscope.cli.options import Format, Json, ReadersFrom, SessionGap, SpeechTools, ToolFailed, Turns

if TYPE_CHECKING:
    from convoscope.conversation import Conversation
    from convoscope.ingest.read import ReadStream
    from convoscope.report.screen import Screen

app = typer.Typer(help="Show a conversation as metrics see it.", no_args_is_help=True, rich_markup_mode=None)

Paths = Annotated[
    list[Path], typer.Argument(help="The folder of a call, or another log; a dataset may be given beside it.")
]
Id = Annotated[str | None, typer.Option("--id", help="Only the conversation with this id.")]


@app.command("metric-context")
def metric_context_command(
    paths: Paths,
    id: Id = None,
    format: Format = None,
    readers_from: ReadersFrom = None,
    turns: Turns = None,
    tool_failed: ToolFailed = None,
    speech_tools: SpeechTools = None,
    session_gap: SessionGap = None,
    json: Json = False,
) -> None:
    """The MetricContext: every field that a metric receives."""
    from convoscope.report.view_terminal import print_context
    from convoscope.views import metric_context

    _show(
        _Request(paths, id, format, readers_from, turns, tool_failed, speech_tools, session_gap),
        json,
        lambda one: metric_context(one).to_dict(),
        print_context,
    )


@app.command("trace")
def trace_command(
    paths: Paths,
    id: Id = None,
    format: Format = None,
    readers_from: ReadersFrom = None,
    turns: Turns = None,
    tool_failed: ToolFailed = None,
    speech_tools: SpeechTools = None,
    session_gap: SessionGap = None,
    json: Json = False,
) -> None:
    """What was said and done, in one list: user, tool calls, tool responses, assistant."""
    from convoscope.report.view_terminal import print_trace
    from convoscope.views import metric_context

    _show(
        _Request(paths, id, format, readers_from, turns, tool_failed, speech_tools, session_gap),
        json,
        lambda one: metric_context(one).conversation_trace,
        print_trace,
    )


@app.command("timeline")
def timeline_command(
    paths: Paths,
    id: Id = None,
    format: Format = None,
    readers_from: ReadersFrom = None,
    turns: Turns = None,
    tool_failed: ToolFailed = None,
    speech_tools: SpeechTools = None,
    session_gap: SessionGap = None,
    json: Json = False,
) -> None:
    """Every event with its time, by turn."""
    from convoscope.report.view_terminal import print_timeline, timeline

    _show(
        _Request(paths, id, format, readers_from, turns, tool_failed, speech_tools, session_gap),
        json,
        timeline,
        print_timeline,
    )


class _Request(NamedTuple):
    """Which conversations to show, and how to read them."""

    paths: list[Path]
    id: str | None
    format: str | None
    readers_from: Sequence[str] | None
    turns: str | None
    tool_failed: Sequence[str] | None
    speech_tools: Sequence[str] | None
    session_gap: float | None

    def read(self) -> ReadStream:
        from convoscope.ingest.read import read

        return read(
            self.paths,
            format=self.format,
            turns=self.turns,
            readers_from=self.readers_from or (),
            tool_failed=self.tool_failed or (),
            speech_tools=self.speech_tools or (),
            session_gap=self.session_gap,
        )


def _show(
    request: _Request,
    json: bool,
    view: Callable[[Conversation], Any],
    show: Callable[[Screen, Conversation], None],
) -> None:
    """One conversation is printed as such; several follow each other, in JSON one per line."""
    from convoscope.errors import UsageError
    from convoscope.report.run_terminal import print_warnings
    from convoscope.report.screen import Screen

    screen = Screen()
    reading = request.read()
    wanted = (one for one in reading if request.id is None or one.id == request.id)
    first = next(wanted, None)
    if first is None:
        raise UsageError(f"there is no conversation {request.id!r}", hint="`convoscope inspect` shows what is there")
    second = next(wanted, None)
    if json and second is None:
        screen.json(view(first))
    for conversation in (first, second, *wanted) if second is not None or not json else ():
        if conversation is None:
            continue
        if json:
            screen.json_line(view(conversation))
        else:
            show(screen, conversation)
    print_warnings(Screen(sys.stderr), reading.report)
