"""`convoscope.toml`: what a user says about every run, found upwards from the working folder or named.

A table of the file is one class here. A file that was merely found never makes a run send anything.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args

import msgspec
from msgspec import Meta

from convoscope.errors import InputError, UsageError, nearest_names

FILE = "convoscope.toml"
IN_FILE = "settings"
"""`--judge settings` asks the judge of the file."""
_SEE = "docs/guides/settings.md has all keys"

AtLeastOne = Annotated[int, Meta(ge=1)]
NotNegative = Annotated[float, Meta(ge=0)]


class JudgeTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[judge]`: who is asked, how, and how much. What is None is left to the command line and its defaults."""

    model: str | list[str] = []
    repeats: AtLeastOne | None = None
    panel: str | None = None
    weights: dict[str, NotNegative] = {}
    require_consensus: Annotated[float, Meta(ge=0, le=1)] | None = None
    second_look: str | None = None
    temperature: NotNegative | None = None
    max_questions: Annotated[int, Meta(ge=0)] | None = None
    budget: NotNegative | None = None
    redact: bool | None = None
    redact_patterns: str | list[str] = []
    rubrics: str | list[str] = []
    max_concurrency: AtLeastOne | None = None
    form: Literal["scores", "yesno"] | None = None
    audio: bool | None = None
    joint_questions: bool | None = None
    max_answer_tokens: AtLeastOne | None = None
    timeout: Annotated[float, Meta(gt=0)] | None = None
    calibration: str | None = None


class ScoringTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[score]`: which logs are scored, and how. Code of the user is named on the command line only."""

    logs: str | list[str] = []
    out: str | None = None
    label: str | None = None
    by: str | list[str] = []
    metrics: str | list[str] = []
    annotate: str | None = None
    format: str | None = None
    map: str | None = None
    flows: str | list[str] = []
    turns: str | None = None
    tool_failed: str | list[str] = []
    speech_tools: str | list[str] = []
    speakers: str | list[str] = []
    session_gap: NotNegative | None = None
    engine: str | None = None
    audio: str | None = None


Amount = float | str
"""A number in the unit of the figure, or a text such as `80%`, `2 s`, `+2pp`."""
Undetermined = Literal["stop", "fail", "warn"]
Share = Annotated[float, Meta(ge=0, le=1)]


class TargetTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[policy.target]]`: a rule on a figure, or on its change against the baseline."""

    rule: str | None = None
    figure: str | None = None
    group: dict[str, str] = {}
    at_least: Amount | None = None
    at_most: Amount | None = None
    change_at_least: Amount | None = None
    change_at_most: Amount | None = None
    min_n: Annotated[int, Meta(ge=0)] | None = None
    min_coverage: Share | None = None
    decide: Literal["value", "interval"] | None = None
    when_undetermined: Undetermined | None = None


class PolicyTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[policy]`: what has to hold, and what every target of it needs unless it says otherwise."""

    target: list[str | TargetTable] = []
    min_n: Annotated[int, Meta(ge=0)] = 0
    min_coverage: Share = 0.0
    when_undetermined: Undetermined = "stop"


class SettingsTables(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file."""

    baseline: str | None = None
    score: ScoringTable = ScoringTable()
    policy: PolicyTable | None = None
    judge: JudgeTable = JudgeTable()


class FoundSettings(NamedTuple):
    """What a file says, and whether the user named it."""

    file: Path
    tables: SettingsTables
    is_named: bool

    def path(self, name: str) -> str:
        """A path of the file: it is meant from the file's folder on."""
        return str(self.file.resolve().parent / Path(name).expanduser())

    def line(self, key: Key) -> int | None:
        """The line of a key, else of what it is in."""
        return _line(self.file.read_bytes().decode("utf-8-sig"), key)

    def error(self, key: Key, message: str, *, hint: str = "") -> InputError:
        """What is wrong with a key of the file, and in which line."""
        return InputError(message, file=str(self.file), line=self.line(key), field=key_text(key), hint=hint)


def find_settings(named: Path | None = None) -> FoundSettings | None:
    """The file that was named, else the nearest one from the working folder upwards; None where there is none."""
    if named is not None:
        return FoundSettings(named, read_settings_file(named), is_named=True)
    here = Path.cwd()
    nearest = next((path for folder in (here, *here.parents) if (path := folder / FILE).is_file()), None)
    if nearest is None:
        return None
    file = Path(os.path.relpath(nearest))  # as a person would call it from here
    return FoundSettings(file, read_settings_file(file), is_named=False)


def read_settings_file(file: Path) -> SettingsTables:
    """What a file says. Raises `InputError` that names file, line and key."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
        content = tomllib.loads(text)
    except OSError as error:
        raise InputError(f"cannot be opened: {error.strerror or error}", file=str(file), hint=_SEE) from None
    except (UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"is not TOML: {type(error).__name__}", file=str(file), hint=_SEE) from None
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        where = int(line[1]) if line else None
        raise InputError(f"is not TOML: {error}", file=str(file), line=where, hint=_SEE) from None
    _refuse_unknown(content, SettingsTables, (), file, text)
    try:
        return msgspec.convert(content, SettingsTables)
    except msgspec.ValidationError as error:
        message, _, at = str(error).replace(" | null", "").replace("`object`", "a table").partition(" - at ")
        steps = re.findall(r"\.([^.\[`]+)|\[(\d+)\]", at.replace("[...]", ""))
        key = tuple(int(index) if index else name for name, index in steps)
        raise InputError(message, file=str(file), line=_line(text, key), field=key_text(key), hint=_SEE) from None


Key = tuple[str | int, ...]
"""The way to a value: names of tables and keys, and the index of a table in a list, from 0."""


def key_text(key: Key) -> str:
    """`policy.target[2].min_n`: the tables of a list are counted from 1."""
    return "".join(f"[{step + 1}]" if isinstance(step, int) else f".{step}" for step in key).removeprefix(".")


def _refuse_unknown(content: Mapping[str, Any], table: type[msgspec.Struct], above: Key, file: Path, text: str) -> None:
    known = {field.name: field.type for field in msgspec.structs.fields(table)}
    for name, value in content.items():
        key = (*above, name)
        if name not in known:
            near = nearest_names(name, known)
            hint = f"did you mean {near[0]}?" if near else f"there is {', '.join(known)}"
            raise InputError("unknown key", file=str(file), line=_line(text, key), field=key_text(key), hint=hint)
        inner = _table_in(known[name])
        if inner is None:
            continue
        if isinstance(value, dict):
            _refuse_unknown(value, inner, key, file, text)
        for index, entry in enumerate(value if isinstance(value, list) else ()):
            if isinstance(entry, dict):
                _refuse_unknown(entry, inner, (*key, index), file, text)


def _table_in(kind: Any) -> type[msgspec.Struct] | None:
    """The table that a type allows: itself, or as one of several, or as an entry of a list."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind
    return next((table for part in get_args(kind) if (table := _table_in(part)) is not None), None)


def _line(text: str, key: Key) -> int | None:
    """The line of a key, else of what it is in; None where that is not written as one key in a line of its table."""
    lines: dict[Key, int] = {}
    table: Key = ()
    for number, line in enumerate(text.splitlines(), 1):
        if heading := re.match(r"\s*(\[+)\s*([^\]]+?)\s*\]", line):
            table = tuple(part.strip(" \"'") for part in heading[2].split("."))
            if heading[1] == "[[":
                table = (*table, sum(known[:-1] == table and isinstance(known[-1], int) for known in lines))
            lines.setdefault(table, number)
        elif entry := re.match(r"\s*([\w\"'-]+)\s*=", line):
            lines.setdefault((*table, entry[1].strip("\"'")), number)
    return next((lines[key[:size]] for size in range(len(key), 0, -1) if key[:size] in lines), None)


_PATHS = frozenset(("audio", "logs", "out", "map", "flows"))


def score_options(settings: FoundSettings | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """What `[score]` says, where the command line says nothing. A path is meant from the file's folder on."""
    options = dict(given)
    if settings is None:
        return options
    for name in ScoringTable.__struct_fields__:
        value = getattr(settings.tables.score, name)
        if name == "engine" and value and options.get(name) is None:
            _refuse_found_cluster(settings, value)
        if value in (None, []) or options.get(name) not in (None, (), []):
            continue
        if name in _PATHS:
            paths = [Path(os.path.relpath(settings.path(path))) for path in listed(value)]
            value = paths if name in ("logs", "flows") else paths[0] if name in ("audio", "out") else str(paths[0])
        options[name] = value
    return options


def _refuse_found_cluster(settings: FoundSettings, engine: str) -> None:
    """Work is sent to a cluster by a file that the user named, not by one that happened to be there."""
    if not settings.is_named and not engine.endswith("://local"):
        raise settings.error(
            ("score", "engine"),
            f"{engine} is another machine, and this file was not named",
            hint=f"--settings {settings.file} names it; or --engine {engine}",
        )


def judge_options(file_settings: FoundSettings | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """What a run is to know of its judges, by the names of `ScoreSettings`: what was given, else what the file says.

    Without a judge, the table of a file is not looked at. Of a file that was merely found, the judges are used where
    the user asks for them (`settings` among the judges); otherwise nothing of it makes a run send more, or elsewhere.
    """
    options = {name: value for name, value in given.items() if value not in (None, (), [])}
    judges = list(options.get("judge", ()))
    asks_file = IN_FILE in judges
    if asks_file and file_settings is None:
        hint = f"--settings FILE names one; {_SEE}"
        raise UsageError(f"--judge {IN_FILE}: there is no {FILE} in this folder or above it", hint=hint)
    if file_settings is None or not (judges or file_settings.is_named):
        return options
    table = file_settings.tables.judge
    models = listed(table.model)
    if asks_file and not models:
        raise InputError("names no model", file=str(file_settings.file), field="judge", hint='model = "openai:MODEL"')
    is_trusted = file_settings.is_named or asks_file
    is_its_own = asks_file or not judges
    if is_its_own:
        options["judge"] = [name for judge in judges or [IN_FILE] for name in (models if judge == IN_FILE else [judge])]
        if not options["judge"]:
            return {name: value for name, value in options.items() if name != "judge"}
    return {**_of_table(file_settings, is_trusted=is_trusted, is_its_own=is_its_own), **options}


def _of_table(file_settings: FoundSettings, *, is_trusted: bool, is_its_own: bool) -> dict[str, Any]:
    table = file_settings.tables.judge
    values: dict[str, Any] = {
        "repeats": table.repeats if is_trusted else None,
        "temperature": table.temperature,
        "max_questions": table.max_questions,
        "budget": table.budget,
        "max_concurrency": table.max_concurrency,
        "max_answer_tokens": table.max_answer_tokens,
        "timeout": table.timeout,
        "redact": table.redact if is_trusted or table.redact else None,
        "redact_patterns": listed(table.redact_patterns),
        "rubrics": [file_settings.path(folder) for folder in listed(table.rubrics)],
        "calibration": table.calibration and file_settings.path(table.calibration),
        "second_look": table.second_look if is_trusted else None,
    }
    if is_its_own:  # the form, a panel and its weights are of the judges that the file names
        values |= {
            "judge_form": table.form,
            "judge_audio": table.audio,
            "joint_questions": table.joint_questions,
            "panel": table.panel,
            "panel_weights": table.weights,
            "require_consensus": table.require_consensus,
        }
    return {name: value for name, value in values.items() if value not in (None, [], {})}


def listed(value: str | list[str]) -> list[str]:
    """One text, or a list of them, as a list."""
    return [value] if isinstance(value, str) else value
