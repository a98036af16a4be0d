"""`convoscope judge`: rubrics, the cache, and whether a model can do the job."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
import typer

from convoscope.cli.options import (
    Json,
    JudgeForm,
    LeastKappa,
    LeastLabels,
    MaxAnswerTokens,
    MaxConcurrency,
    RunPath,
    SettingsOption,
    Timeout,
)
from convoscope.cli.options import Rubrics as RubricFolders
from convoscope.errors import UsageError

if TYPE_CHECKING:
    from convoscope.analysis.calibration import RunCalibration
    from convoscope.judging.calibrations import Agreement
    from convoscope.judging.instrument import Instrument, JudgeSettings
    from convoscope.judging.rubrics import Rubric

app = typer.Typer(
    help="The judge: rubrics, cache, and how far it can be relied on.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

JudgeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--judge", help="openai:MODEL, anthropic:MODEL, one of them @http://HOST:PORT, or settings: as the file says."
    ),
]
"""A list, so that a second one is an error and not taken for the first."""
_CHECK_TOKENS = 1000
"""Where an answer is cut in a check, unless the user says otherwise: small models do not come to an end."""


class AskedJudges(NamedTuple):
    """The judges that a command asks, and what of `convoscope.toml` is for them."""

    names: Sequence[str]
    settings: JudgeSettings
    calibration: Path | None

    def make(self) -> list[Instrument]:
        from convoscope.judging.instrument import Instrument, checked_name

        return [Instrument(checked_name(name), self.settings) for name in self.names]


def named_judges(
    judges: Sequence[str],
    file: Path | None,
    given: Mapping[str, Any],
    *,
    use_cache: bool,
    most_tokens: int | None = None,
) -> AskedJudges:
    """The judges of the command line, else those of the settings. `given` has the names of `ScoreSettings`."""
    from convoscope.judging.instrument import JudgeSettings, checked_name
    from convoscope.judging.limits import check_budget
    from convoscope.settings_file import find_settings, judge_options

    options = judge_options(find_settings(file), {"judge": list(judges), **given})
    names = options.pop("judge", [])
    if not names:
        raise UsageError("no judge is named", hint="--judge openai:MODEL")
    calibration = options.pop("calibration", None)
    options["rubrics"] = tuple(str(Path(folder).resolve()) for folder in options.get("rubrics", ()))
    options["redact_patterns"] = tuple(options.get("redact_patterns", ()))
    if most_tokens is not None:
        options.setdefault("max_answer_tokens", most_tokens)
    for name, field in {
        "budget": "max_dollars",
        "judge_form": "form",
        "judge_audio": "audio",
        "timeout": "seconds",
    }.items():
        if name in options:
            options[field] = options.pop(name)
    fields = {name: value for name, value in options.items() if name in JudgeSettings.__struct_fields__}
    settings = JudgeSettings(use_cache=use_cache, **fields)
    check_budget(settings.max_dollars, [checked_name(name).priced_as for name in names])
    return AskedJudges(names, settings, None if calibration is None else Path(calibration))


def only_judge(judges: Sequence[str] | None) -> str | None:
    """The judge of the command line, where a command asks one."""
    if judges and len(judges) > 1:
        raise UsageError(
            f"one judge is asked here, and {len(judges)} are named: {', '.join(judges)}",
            hint="name one with --judge, and run the command once for each",
        )
    return judges[0] if judges else None


def one_judge(
    judge: str | None, file: Path | None, given: Mapping[str, Any], *, use_cache: bool, most_tokens: int
) -> AskedJudges:
    """The judge of the command line, else that of the settings, where a command asks one."""
    named = named_judges([judge] if judge else (), file, given, use_cache=use_cache, most_tokens=most_tokens)
    if len(named.names) != 1:
        raise UsageError(
            f"one judge is asked here, and the settings name {len(named.names)}", hint="--judge openai:MODEL"
        )
    return named


@app.command("rubrics")
def rubrics_command(
    name: Annotated[
        str | None, typer.Argument(help="Print this rubric whole: copy it, change it, name its folder.")
    ] = None,
    rubrics: RubricFolders = None,
    json: Json = False,
) -> None:
    """List what judges are asked, or print one rubric."""
    from convoscope.judging.rubrics import rubric_named
    from convoscope.judging.rubrics import rubrics as known_rubrics
    from convoscope.report.screen import Screen
    from convoscope.report.table import print_table, text_table

    folders = tuple(map(str, rubrics or ()))
    screen = Screen()
    if name is not None:
        for line in rubric_named(name, folders).source.splitlines():
            screen.line(line)
        return
    listed = known_rubrics(folders).values()
    if json:
        fields = ("name", "version", "measures", "title", "low", "high", "passes_at", "required", "optional", "hash")
        screen.json([{field: getattr(rubric, field) for field in fields} for rubric in listed])
        return
    rows = [
        (rubric.name, f"{rubric.version}", f"{rubric.low} to {rubric.high}", rubric.hash[:8], rubric.title)
        for rubric in listed
    ]
    print_table(screen, text_table(("rubric", "version", "scale", "hash", "the agent …"), rows))


@app.command("cache")
def cache_command(
    clear: Annotated[bool, typer.Option("--clear", help="Forget all answers.")] = False, json: Json = False
) -> None:
    """Say how many answers are kept and where, or forget them."""
    from convoscope.judging.cache import AnswerCache, cache_file
    from convoscope.report.screen import Screen

    cache, screen = AnswerCache(cache_file()), Screen()
    if clear:
        count = cache.clear()
        if json:
            screen.json({"cleared": count})
        else:
            screen.line(f"{count:,} answers cleared")
        return
    size = cache.size()
    if json:
        screen.json({"file": str(size.file), "answers": size.answers, "bytes": size.bytes})
    else:
        screen.line(f"{size.answers:,} answers, {size.bytes / 1e6:.1f} MB: {size.file}")


@app.command("check")
def check_command(
    judge: JudgeOption = None,
    settings: SettingsOption = None,
    rubric: Annotated[list[str] | None, typer.Option("--rubric", help="Only this rubric. May be repeated.")] = None,
    rubrics: RubricFolders = None,
    judge_form: JudgeForm = None,
    max_answer_tokens: Annotated[
        int | None,
        typer.Option("--max-answer-tokens", metavar="N", help="Cut an answer of a judge here. Default: 1,000.", min=1),
    ] = None,
    max_concurrency: MaxConcurrency = None,
    timeout: Timeout = None,
    use_cache: Annotated[bool, typer.Option("--cache/--no-cache", help="Keep answers, and use those kept.")] = True,
    json: Json = False,
) -> None:
    """Ask a judge about good and bad calls that were written for each rubric: can it do the job?"""
    from convoscope.analysis.judge_check import by_rubric, check_judge, nonsense_of, of_all, pairs_of
    from convoscope.judging.rubrics import rubric_named
    from convoscope.judging.rubrics import rubrics as known_rubrics
    from convoscope.report.judge_check import print_check
    from convoscope.report.screen import Screen, counting_bar

    asked = one_judge(
        only_judge(judge),
        settings,
        {
            "rubrics": rubrics,
            "judge_form": judge_form,
            "max_answer_tokens": max_answer_tokens,
            "max_concurrency": max_concurrency,
            "timeout": timeout,
        },
        use_cache=use_cache,
        most_tokens=_CHECK_TOKENS,
    )
    name, folders = asked.names[0], asked.settings.rubrics
    chosen = [rubric_named(name, folders) for name in rubric or known_rubrics(folders)]
    names = [one.name for one in chosen if not one.is_heard]
    if without := [one.name for one in chosen if one.is_heard]:
        message = f"{', '.join(without)}: no call with sound is written for them, so they are not checked"
        if not names:
            raise UsageError(message, hint="convoscope judge label makes a sheet of judged turns for people")
        Screen(sys.stderr).line(message)
    (instrument,) = asked.make()
    calls = 2 * sum(len(pairs_of(one.name)) + len(nonsense_of(one)) for one in chosen if not one.is_heard)
    Screen(sys.stderr).line(f"asking {instrument.address} about {calls} invented calls; nothing of yours is sent")
    with counting_bar("calls") as progress:
        pairs = check_judge(instrument, names, folders, progress)
    failed = [pair for pair in pairs if pair.reason == "judge_failed"]
    if pairs and len(failed) == len(pairs):
        raise UsageError(f"{name}: {failed[0].detail}", hint=f"{instrument.address} gave no answer at all")
    checked, screen = by_rubric(pairs, folders), Screen()
    if json:
        screen.json({"judge": name, "total": of_all(checked)._asdict(), "rubrics": checked, "pairs": pairs})
    else:
        print_check(screen, name, asked.settings.form, pairs, checked)


@app.command("calibrate")
def calibrate_command(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="LABELS|RUN",
            help="Labels that carry their texts, one JSON object a line; or, with --labels, the folder of a run.",
        ),
    ],
    judge: Annotated[
        list[str] | None,
        typer.Option("--judge", help="Who is asked about LABELS. Named several times, also their panel is compared."),
    ] = None,
    settings: SettingsOption = None,
    labels: Annotated[
        Path | None,
        typer.Option("--labels", help="Labels of conversations of RUN, CSV or JSON lines. Nothing is asked."),
    ] = None,
    rubric: Annotated[
        str | None, typer.Option("--rubric", help="What LABELS are about. Default: the name of the file.")
    ] = None,
    rubrics: RubricFolders = None,
    judge_form: JudgeForm = None,
    max_answer_tokens: MaxAnswerTokens = None,
    max_concurrency: MaxConcurrency = None,
    timeout: Timeout = None,
    limit: Annotated[int | None, typer.Option("--limit", help="Only the first N calls of LABELS.", min=1)] = None,
    calibration: Annotated[
        Path | None, typer.Option("--calibration", help="Keep it in this file. Default: in your data folder.")
    ] = None,
    least_labels: LeastLabels = None,
    least_kappa: LeastKappa = None,
    use_cache: Annotated[bool, typer.Option("--cache/--no-cache", help="Keep answers, and use those kept.")] = True,
    full: Annotated[bool, typer.Option("--full", help="Of a run: also the tables of ratings.")] = False,
    json: Json = False,
) -> None:
    """Compare a judge with people, and keep how far they agree."""
    from convoscope.judging.calibrations import calibration_file, held_to, keep_calibrations
    from convoscope.judging.rubrics import rubrics as known_rubrics
    from convoscope.report.calibration import print_agreements, print_marks, print_people, print_tables
    from convoscope.report.screen import Screen

    folders = tuple(str(Path(folder).resolve()) for folder in rubrics or ())
    compared, kept_in = None, None
    known: Mapping[str, Rubric] = known_rubrics(folders)
    if labels is not None:
        if judge or rubric or limit or judge_form:
            raise UsageError(
                "--judge, --judge-form, --rubric and --limit are for LABELS", hint="with --labels nothing is asked"
            )
        compared, known = _calibrate_run(source, labels, folders)
        results = compared.judges
    else:
        if source.is_dir():
            raise UsageError(f"{source} is a folder", hint="--labels FILE names the labels of a run")
        given = {
            "rubrics": rubrics,
            "judge_form": judge_form,
            "max_answer_tokens": max_answer_tokens,
            "max_concurrency": max_concurrency,
            "timeout": timeout,
        }
        named = named_judges(judge or (), settings, given, use_cache=use_cache)
        kept_in = named.calibration
        results = _calibrate_calls(source, named, rubric, limit)
    results = [held_to(one, least_labels, least_kappa) for one in results]
    file = calibration or kept_in or calibration_file()
    is_kept = bool(keep_calibrations(results, file))
    if labels is not None:
        _keep_in_run(source, results)
    screen = Screen()
    if json:
        screen.json(
            {
                "file": str(file) if is_kept else None,
                **({} if compared is None else compared._asdict()),
                "judges": [{"calibrated": one.is_calibrated, **msgspec.to_builtins(one)} for one in results],
            }
        )
        return
    print_agreements(screen, results, known)
    if compared is not None:
        print_people(screen, compared, known)
    if compared is None or full:
        print_tables(screen, results, known)
    print_marks(screen, results)
    files = [*([str(source)] if labels is not None else []), *([str(file)] if is_kept else [])]
    screen.line(f"kept in {' and '.join(files)}" if files else "nothing was kept: no label has an answer")
    if labels is not None and not all(one.is_calibrated for one in results):
        screen.line(f"next  convoscope judge label {shlex.quote(str(source))}")


def _calibrate_calls(path: Path, named: AskedJudges, rubric: str | None, limit: int | None) -> list[Agreement]:
    from convoscope.analysis.calibration import calibrate_panel
    from convoscope.analysis.labelled_calls import read_labels

    asked, calls = read_labels(path, rubric, named.settings.rubrics)
    return calibrate_panel(named.make(), asked, calls[:limit])


def _calibrate_run(path: Path, labels: Path, folders: tuple[str, ...]) -> tuple[RunCalibration, Mapping[str, Rubric]]:
    """The judges of a run against labels, and the rubrics that these can be of."""
    from convoscope.analysis.calibration import calibrate_run
    from convoscope.analysis.run_labels import read_run_labels
    from convoscope.runs.reliability import rubrics_of
    from convoscope.runs.run import Run

    run = Run.open(path)
    known = rubrics_of(run.summary, folders)
    return calibrate_run(run, read_run_labels(labels, known), known), known


def _keep_in_run(path: Path, results: Sequence[Agreement]) -> None:
    """The run says it from now on, and so does its page."""
    from convoscope.report.page import write_page
    from convoscope.runs.calibrations import recalibrate
    from convoscope.runs.run import PAGE, Run

    run = Run.open(path)
    recalibrate(run, lambda: [one for one in results if one.labels])
    if not (run.folder / PAGE).exists():
        write_page(run)


@app.command("label")
def label_command(
    run: RunPath,
    count: Annotated[int, typer.Option("--count", help="How many labels to ask for.", min=1)] = 30,
    seed: Annotated[int, typer.Option("--seed", help="Which are drawn at random; the same seed, the same rows.")] = 0,
    rubric: Annotated[list[str] | None, typer.Option("--rubric", help="Only this rubric. May be repeated.")] = None,
    rubrics: RubricFolders = None,
    labels: Annotated[
        Path | None, typer.Option("--labels", help="Labels that were given before: these are not asked for again.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder of the sheet. Default: labels in the run.")
    ] = None,
    json: Json = False,
) -> None:
    """Write a sheet of conversations worth labelling: CSV, and a page to click through."""
    from convoscope.analysis.labelling import choose_rows
    from convoscope.analysis.run_labels import read_run_labels
    from convoscope.report.label import write_sheet
    from convoscope.report.screen import Screen
    from convoscope.runs.reliability import rubrics_of
    from convoscope.runs.run import Run

    folders = tuple(str(Path(folder).resolve()) for folder in rubrics or ())
    opened = Run.open(run)
    given = [] if labels is None else read_run_labels(labels, rubrics_of(opened.summary, folders)).labels
    without = {(label.conversation, label.turn, label.rubric) for label in given}
    rows = choose_rows(opened, count, seed=seed, names=rubric or (), folders=folders, without=without)
    files = write_sheet(opened, rows, out or opened.folder / "labels", folders)
    reasons = Counter(row.chosen for row in rows)
    screen = Screen()
    if json:
        counts = Counter(row.rubric.name for row in rows)
        screen.json({"csv": str(files.csv), "page": str(files.page), "chosen": reasons, "rubrics": counts})
        return
    screen.line(f"{len(rows):,} rows: {', '.join(f'{reason} {number:,}' for reason, number in reasons.items())}")
    if len(rows) < count:
        screen.line(f"the run has no more than these; {count:,} were asked for")
    screen.line(f"page  {files.page}")
    screen.line(f"sheet {files.csv}")
    screen.line(f"next  convoscope judge calibrate {shlex.quote(str(run))} --labels {shlex.quote(str(files.csv))}")
