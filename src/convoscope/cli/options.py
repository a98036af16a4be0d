"""Options that several commands share, each declared once."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from convoscope.errors import UsageError
from convoscope.storage import as_path

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for a program.")]
Metrics = Annotated[
    list[str] | None,
    typer.Option("--metrics", "-m", metavar="NAMES", help="Metrics or families: f1,tools. Default: all. Repeatable."),
]
MetricsFrom = Annotated[
    list[str] | None,
    typer.Option(
        "--metrics-from",
        metavar="FILE",
        help="Also these metrics, of a Python file or module that is run, or a .toml file of templates. Repeatable.",
    ),
]
ReadersFrom = Annotated[
    list[str] | None,
    typer.Option(
        "--readers-from",
        metavar="FILE",
        help="Also these readers, of a Python file or module that is run. Repeatable.",
    ),
]
Map = Annotated[
    str | None,
    typer.Option("--map", metavar="FILE", help="TOML that says where things are: see inspect --suggest-map."),
]
Format = Annotated[
    str | None, typer.Option("--format", metavar="NAME", help="Read as this format instead of detecting it.")
]
Turns = Annotated[
    str | None,
    typer.Option("--turns", metavar="RULE", help="How turns are cut: exchange (default), or eva for calls."),
]
ToolFailed = Annotated[
    list[str] | None,
    typer.Option("--tool-failed", metavar="REGEX", help="Tool results that mean failure: 'NO_STOCK'. Repeatable."),
]
SpeechTools = Annotated[
    list[str] | None,
    typer.Option("--speech-tool", metavar="NAME", help="A tool by which the agent speaks. Repeatable."),
]
Speakers = Annotated[
    list[str] | None,
    typer.Option("--speaker", metavar="ROLE=LABEL", help="Who is who: agent=SPEAKER_01, user=Maya. Repeatable."),
]
SessionGap = Annotated[
    float | None,
    typer.Option(
        "--session-gap",
        metavar="HOURS",
        help="An id that returns later starts a new one. Default: 24.",
    ),
]
Audio = Annotated[
    Path | None,
    typer.Option("--audio", metavar="FOLDER", help="Recordings are here: by file name, or by conversation id."),
]
Flows = Annotated[
    list[Path] | None,
    typer.Option(
        "--flows",
        metavar="PATH",
        help="Flow definitions that are not among the logs. Repeatable.",
    ),
]
Targets = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        metavar="RULE",
        help="'tools.success >= 90%', 'timing.response_latency p95 < 2'. Repeatable. "
        "Exit code 1 if one is missed, 3 if undetermined.",
    ),
]
PolicyOption = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        metavar="FILE",
        help="TOML with [[policy.target]]: what has to hold. Default: that of convoscope.toml, if it has one.",
    ),
]
Junit = Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Also write JUnit XML, for a CI server.")]
Markdown = Annotated[
    Path | None,
    typer.Option("--markdown", metavar="FILE", help="Also write Markdown, for a pull request; - prints it."),
]
Full = Annotated[bool, typer.Option("--full", help="Print everything: figures, groups, what reading did.")]
Contexts = Annotated[
    bool, typer.Option("--contexts", help="Also write records/ID/metrics.json: MetricContext, scores.")
]

WithAudio = Annotated[bool, typer.Option("--with-audio", help="Copy the recordings that the page plays into the run.")]
EmbedAudio = Annotated[
    bool, typer.Option("--embed-audio", help="Put recordings into the page itself, the worst first, at most 3 MB.")
]

Judges = Annotated[
    list[str] | None,
    typer.Option(
        "--judge",
        metavar="NAME",
        help="Send conversations to this model: openai:MODEL, anthropic:MODEL, or with @http://HOST:PORT/v1. "
        "Repeatable: a panel. settings: the judge of convoscope.toml.",
    ),
]
Repeats = Annotated[int | None, typer.Option("--repeats", metavar="N", help="Ask each judge N times.", min=1)]
Panel = Annotated[
    str | None,
    typer.Option(
        "--panel",
        metavar="NAME",
        help="How several judges come to one score: median (default), mean, weighted_mean, majority_vote, consensus, "
        "min, max.",
    ),
]
SecondLook = Annotated[
    str | None,
    typer.Option("--second-look", metavar="JUDGE", help="Ask this judge again about a tenth of what was judged."),
]
SettingsOption = Annotated[
    Path | None,
    typer.Option(
        "--settings",
        metavar="FILE",
        help="Also what this convoscope.toml says, its judge included. Without it, the file of this folder or above.",
    ),
]
JudgeForm = Annotated[
    str | None,
    typer.Option(
        "--judge-form",
        metavar="FORM",
        help="scores; or yesno, for small models: yes/no questions, read from log-probabilities, without quotes.",
    ),
]
JointQuestions = Annotated[
    bool | None,
    typer.Option(
        "--joint-questions/--no-joint-questions",
        help="Send questions that show the same of an item in one request: fewer tokens, and other answers. "
        "Default: no.",
    ),
]
SendAudio = Annotated[
    bool,
    typer.Option(
        "--send-audio",
        help="Send clips of recordings to judges that take sound. Nothing in a sound is redacted. Default: never.",
    ),
]
MaxAnswerTokens = Annotated[
    int | None,
    typer.Option("--max-answer-tokens", metavar="N", help="Cut an answer of a judge here. Default: 4,096.", min=1),
]
Timeout = Annotated[
    float | None,
    typer.Option("--timeout", metavar="SECONDS", help="What one answer of a judge may take. Default: 120.", min=1),
]
MaxConcurrency = Annotated[
    int | None,
    typer.Option(
        "--max-concurrency",
        "--at-once",
        metavar="N",
        help="Questions in flight to a judge. Default: 200.",
        min=1,
    ),
]
Rubrics = Annotated[
    list[Path] | None,
    typer.Option("--rubrics", metavar="FOLDER", help="Rubrics that replace the installed ones. Repeatable."),
]
Redact = Annotated[
    bool | None,
    typer.Option(
        "--redact/--no-redact",
        help="Remove mail addresses, phone and card numbers and IBANs from what is sent. "
        "Default: yes, unless the judge is local.",
    ),
]
RedactPatterns = Annotated[
    list[str] | None, typer.Option("--redact-pattern", metavar="REGEX", help="Also remove this. Repeatable.")
]
Cache = Annotated[bool, typer.Option("--cache/--no-cache", help="Keep answers, and use those kept.")]
MaxQuestions = Annotated[
    int | None, typer.Option("--max-questions", metavar="N", help="At most this many questions.", min=0)
]
BudgetOption = Annotated[
    float | None, typer.Option("--budget", metavar="USD", help="Spend at most this on judges.", min=0)
]
Calibration = Annotated[
    Path | None,
    typer.Option("--calibration", help="The file that says how far judges agree with people. Default: yours."),
]
LeastLabels = Annotated[
    int | None, typer.Option("--least-labels", help="Labels that a calibrated judge needs. Default: 50.", min=1)
]
LeastKappa = Annotated[
    float | None,
    typer.Option("--least-kappa", help="What the whole interval of κ of a calibrated judge is above. Default: 0.4."),
]
TrustJudge = Annotated[
    bool, typer.Option("--trust-judge", help="Decide targets also by judges that are not calibrated.")
]
RecogniserOption = Annotated[
    str | None,
    typer.Option(
        "--recogniser",
        metavar="NAME",
        help="Write down the sound with this model, on this machine: faster-whisper:tiny.en, or faster-whisper:FOLDER.",
    ),
]
NoAudio = Annotated[bool, typer.Option("--no-audio", help="Open no recording.")]
FetchAudio = Annotated[
    bool, typer.Option("--fetch-audio", help="Fetch recordings that logs name by an http address. Default: never.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be asked, and its cost. Send nothing.")]


def split(names: str | Sequence[str] | None) -> list[str] | None:
    """`a,b` as a list, as it is said once or several times; None for nothing said."""
    parts = [names] if isinstance(names, str) else names
    return [name.strip() for part in parts for name in part.split(",") if name.strip()] if parts else None


OptionalPaths = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[PATHS]", help="Log files, or folders of them; - is standard input. Default: as convoscope.toml says."
    ),
]
Paths = Annotated[
    list[Path], typer.Argument(metavar="PATHS", help="Log files, or folders of them; - is standard input.")
]
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
Since = Annotated[
    str | None, typer.Option("--since", metavar="DAY", help="Only conversations from this day (UTC) on: 2026-11-01.")
]
Workers = Annotated[int | None, typer.Option("--workers", metavar="N", help="Processes. Default: all cores.")]
EngineOption = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="ADDRESS",
        help="Another engine: dask://HOST:8786, ray://HOST:10001, dask://local, ray://local.",
    ),
]
Out = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="FOLDER", help="Of the run. Default: one under runs/.")
]


class ReadOptions(NamedTuple):
    """How logs are read: the options that score, inspect, audit and view share."""

    format: Format = None
    readers_from: ReadersFrom = None
    map: Map = None
    turns: Turns = None
    tool_failed: ToolFailed = None
    speech_tools: SpeechTools = None
    speakers: Speakers = None
    session_gap: SessionGap = None
    audio: Audio = None
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


class PlainValue:
    """The value of an option that needs no more than its type: typer would import pydantic for it, which is slow."""

    def __init__(self, param: Any) -> None:
        annotation = param.type_descriptor.annotation
        self._kind = next(iter(get_args(annotation)), annotation)
        self._limits = param.type_descriptor.parameter_info

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        has_many = param.multiple or param.nargs == -1
        if value is None:
            return () if has_many else None
        if value == param.default and not isinstance(value, str):
            return value
        values = value if has_many else [value]
        if all(map(self._is_plain, values)):
            # Any path may be an address in an object store.
            made = as_path if self._kind is Path else self._kind
            return [made(one) for one in values] if has_many else made(value)
        from typer._coercion import build_runtime_param

        return build_runtime_param(param.type_descriptor).coerce(value, param=param, ctx=ctx)

    def _is_plain(self, text: str) -> bool:
        """What else it may be, typer reads or refuses: a number out of bounds, a file that is not readable."""
        if self._kind is Path:
            return os.access(text, os.R_OK) or not os.path.exists(text)
        if self._kind in (int, float):
            return text.isascii() and text.isdigit() and int(text) >= (self._limits.min or 0)
        return self._kind is str


class PlainParams:
    """A command, or a group of them, that starts quickly."""

    def get_params(self, ctx: Any) -> Any:
        params = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "_runtime_param", 0) is None:  # older versions of typer have none, and need no pydantic
                param._runtime_param = PlainValue(param)
        return params


class PlainCommand(PlainParams, TyperCommand):
    """A command of ours."""


class PlainGroup(PlainParams, TyperGroup):
    """All commands together."""


OPTION_GROUPS = {
    "What comes out": "--out --label --by --target --policy --full --json --markdown --junit --contexts "
    "--with-audio --embed-audio",
    "How logs are read": "--format --map --readers-from --flows --speaker --tool-failed --speech-tool --session-gap "
    "--audio --no-audio --fetch-audio --recogniser --strict --prune --keep",
    "What is measured": "--limit --since --metrics --metrics-from --turns --annotate --k --audit --workers --engine",
    "Judges": "--judge --settings --dry-run --repeats --panel --second-look --budget --max-questions "
    "--max-concurrency --timeout --judge-form --send-audio --joint-questions --max-answer-tokens --rubrics --redact "
    "--redact-pattern --cache --calibration --least-labels --least-kappa --trust-judge",
}


class GroupedHelp(PlainCommand):
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
                # Of two long names, one is an old one.
                formatter.write_dl([(re.sub(r"(--[a-z-]+), --[a-z-]+", r"\1", usage), text) for usage, text in records])
