"""Options that several commands share, each declared once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_type_hints

import typer
from typer.core import TyperCommand

from convoscope.errors import UsageError

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for a program.")]
Metrics = Annotated[
    str | None,
    typer.Option("--metrics", "-m", help="Names or families, with commas between: f1,tools. All by default."),
]
MetricsFrom = Annotated[
    list[str] | None,
    typer.Option(
        "--metrics-from",
        help="Also the metrics of this Python file, module or .toml file of templates. May be repeated. "
        "Python code that is named here is run.",
    ),
]
ReadersFrom = Annotated[
    list[str] | None,
    typer.Option(
        "--readers-from",
        help="Also the readers of this Python file or module. May be repeated. Python code that is named here is run.",
    ),
]
Map = Annotated[
    str | None,
    typer.Option(
        "--map", help="A TOML file that says where in these logs things are. inspect --suggest-map writes one."
    ),
]
Format = Annotated[str | None, typer.Option("--format", help="Read as this format instead of detecting it.")]
Turns = Annotated[
    str | None,
    typer.Option("--turns", help="The rule that turns are cut by: exchange, or eva for calls. Default: exchange."),
]
ToolFailed = Annotated[
    list[str] | None,
    typer.Option(
        "--tool-failed",
        help="A pattern of tool results that mean failure in your system, e.g. 'NO_STOCK'. May be repeated.",
    ),
]
SpeechTools = Annotated[
    list[str] | None,
    typer.Option("--speech-tool", help="A tool through which the agent speaks to the user. May be repeated."),
]
SessionGap = Annotated[
    float | None,
    typer.Option(
        "--session-gap",
        help="Hours of silence after which a session id that returns is another conversation. Default: 24.",
    ),
]
Flows = Annotated[
    list[Path] | None,
    typer.Option(
        "--flows",
        help="Flow definitions: a YAML or JSON file, or a folder of them. May be repeated. "
        "Those among the logs are found without it.",
    ),
]
Targets = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        help="A value to reach, e.g. 'tools.success >= 90%' or 'timing.response_latency p95 < 2'. "
        "May be repeated. Exit code 1 if one is missed, 3 if one is undetermined.",
    ),
]
Junit = Annotated[Path | None, typer.Option("--junit", help="Also write JUnit XML to this file, for a CI server.")]
Markdown = Annotated[
    Path | None, typer.Option("--markdown", help="Also write Markdown to this file, for a pull request.")
]

Full = Annotated[bool, typer.Option("--full", help="Print everything: every figure, groups, what reading did.")]
Contexts = Annotated[
    bool, typer.Option("--contexts", help="Also write records/ID/metrics.json: each call's MetricContext and scores.")
]


def split(names: str | None) -> list[str] | None:
    """`a,b` as a list; None for nothing said."""
    return None if names is None else [name.strip() for name in names.split(",") if name.strip()]


Paths = Annotated[list[Path], typer.Argument(help="Log files, or folders of them; - is standard input.")]
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Folder of the run. Default: one under runs/.")]


class ReadOptions(NamedTuple):
    """How logs are read: the options that score, inspect, audit and view share."""

    format: Format = None
    readers_from: ReadersFrom = None
    map: Map = None
    turns: Turns = None
    tool_failed: ToolFailed = None
    speech_tools: SpeechTools = None
    session_gap: SessionGap = None
    flows: Flows = None

    @property
    def arguments(self) -> dict[str, Any]:
        """What was given, as arguments of `convoscope.read`, `score` and `audit`. A mapping makes a reader."""
        if self.map is not None and not self.map.endswith(".toml"):
            hint = "docs/guides/mapping.md shows one"
            raise UsageError(f"--map {self.map}: a mapping is a TOML file, with the ending .toml", hint=hint)
        readers = [*(self.readers_from or ()), *([self.map] if self.map is not None else ())]
        given = {**self._asdict(), "readers_from": readers}
        return {name: value for name, value in given.items() if value is not None and name != "map"}


def with_read_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command with all of `ReadOptions`, which it takes as one argument, `reading`."""

    @wraps(command)
    def run(**values: Any) -> None:
        given = {name: values.pop(name) for name in ReadOptions._fields if name in values}
        command(reading=ReadOptions(**given), **values)

    own = inspect.signature(command, eval_str=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [one.replace(kind=keyword) for one in own.parameters.values() if one.name != "reading"]
    types = get_type_hints(ReadOptions, include_extras=True)
    parameters += [inspect.Parameter(name, keyword, default=None, annotation=types[name]) for name in types]
    run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


OPTION_GROUPS = {
    "What comes out": "--out --label --by --target --full --json --markdown --junit --contexts",
    "How logs are read": "--format --map --readers-from --flows --tool-failed --speech-tool --session-gap --strict",
    "What is measured": "--limit --metrics --metrics-from --turns --annotate --k --audit --max-concurrency --workers",
}


class GroupedHelp(TyperCommand):
    """The help of `convoscope score`, which has many options: they are listed by what they are for."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        params = {param.opts[0]: param for param in self.get_params(ctx)}
        groups = {heading: names.split() for heading, names in OPTION_GROUPS.items()}
        grouped = {name for names in groups.values() for name in names}
        arguments = [name for name, param in params.items() if param.param_type_name == "argument"]
        others = [name for name in params if name not in grouped and name not in arguments]
        for heading, names in {"Arguments": arguments, **groups, "Options": others}.items():
            records = [record for name in names if (record := params[name].get_help_record(ctx)) is not None]
            with formatter.section(heading):
                formatter.write_dl(records)
