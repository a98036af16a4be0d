"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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


def sources(readers_from: list[str] | None, map: str | None) -> list[str]:
    """Where readers come from: code that was named, and a mapping, which makes one."""
    if map is not None and not map.endswith(".toml"):
        hint = "docs/guides/mapping.md shows one"
        raise UsageError(f"--map {map}: a mapping is a TOML file, with the ending .toml", hint=hint)
    return [*(readers_from or ()), *([map] if map is not None else ())]
