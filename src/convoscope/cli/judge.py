"""`convoscope judge`: rubrics, the cache, and whether a model can do the job."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from convoscope.cli.options import Json, JudgeForm, MaxAnswerTokens
from convoscope.cli.options import Rubrics as RubricFolders
from convoscope.errors import UsageError

app = typer.Typer(
    help="The judge: its rubrics, its cache, and how far it can be relied on.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

JudgeOption = Annotated[
    str, typer.Option("--judge", help="openai:MODEL, anthropic:MODEL, or one of them @http://HOST:PORT.")
]

Concurrency = Annotated[
    int,
    typer.Option("--max-concurrency", help="Questions in flight. A server of your own may do one at a time.", min=1),
]
Timeout = Annotated[float, typer.Option("--timeout", help="Seconds that one answer may take.", min=1)]


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
    judge: JudgeOption,
    rubric: Annotated[list[str] | None, typer.Option("--rubric", help="Only this rubric. May be repeated.")] = None,
    rubrics: RubricFolders = None,
    judge_form: JudgeForm = "scores",
    max_answer_tokens: Annotated[
        int, typer.Option("--max-answer-tokens", help="Cut an answer here. Small models do not come to an end.", min=1)
    ] = 1000,
    max_concurrency: Concurrency = 200,
    timeout: Timeout = 120.0,
    use_cache: Annotated[bool, typer.Option("--cache/--no-cache", help="Keep answers, and use those kept.")] = True,
    json: Json = False,
) -> None:
    """Ask a judge about good and bad calls that were written for each rubric: can it do the job?"""
    from convoscope.analysis.judge_check import by_rubric, check_judge, pairs_of
    from convoscope.judging.instrument import Instrument, JudgeSettings, checked_name
    from convoscope.judging.rubrics import rubric_named
    from convoscope.judging.rubrics import rubrics as known_rubrics
    from convoscope.report.judge_check import print_check
    from convoscope.report.screen import Screen, counting_bar

    folders = tuple(str(Path(folder).resolve()) for folder in rubrics or ())
    names = [rubric_named(name, folders).name for name in rubric or known_rubrics(folders)]
    settings = JudgeSettings(
        use_cache=use_cache,
        rubrics=folders,
        form=judge_form,
        max_answer_tokens=max_answer_tokens,
        max_concurrency=max_concurrency,
        seconds=timeout,
    )
    instrument = Instrument(checked_name(judge), settings)
    calls = 2 * sum(len(pairs_of(name)) for name in names)
    Screen(sys.stderr).line(f"asking {instrument.address} about {calls} invented calls; nothing of yours is sent")
    with counting_bar("calls") as progress:
        pairs = check_judge(instrument, names, folders, progress)
    failed = [pair for pair in pairs if pair.reason == "judge_failed"]
    if pairs and len(failed) == len(pairs):
        raise UsageError(f"{judge}: {failed[0].detail}", hint=f"{instrument.address} gave no answer at all")
    checked, screen = by_rubric(pairs, folders), Screen()
    if json:
        screen.json({"judge": judge, "rubrics": checked, "pairs": pairs})
    else:
        print_check(screen, judge, judge_form, pairs, checked)


@app.command("calibrate")
def calibrate_command(
    labels: Annotated[Path, typer.Argument(help="Labels that carry their texts: one JSON object a line.")],
    judge: JudgeOption,
    rubric: Annotated[
        str | None, typer.Option("--rubric", help="What the labels are about. Default: the name of the file.")
    ] = None,
    rubrics: RubricFolders = None,
    judge_form: JudgeForm = "scores",
    max_answer_tokens: MaxAnswerTokens = None,
    max_concurrency: Concurrency = 200,
    timeout: Timeout = 120.0,
    limit: Annotated[int | None, typer.Option("--limit", help="Only the first N calls.", min=1)] = None,
    calibration: Annotated[
        Path | None, typer.Option("--calibration", help="Keep it in this file. Default: in your data folder.")
    ] = None,
    use_cache: Annotated[bool, typer.Option("--cache/--no-cache", help="Keep answers, and use those kept.")] = True,
    json: Json = False,
) -> None:
    """Compare a judge with people, and keep how far they agree."""
    from convoscope.analysis.calibration import (
        LEAST_KAPPA,
        LEAST_LABELS,
        calibrate,
        calibration_file,
        keep_calibration,
        read_labels,
    )
    from convoscope.judging.backends import MAX_ANSWER_TOKENS
    from convoscope.judging.instrument import Instrument, JudgeSettings, checked_name
    from convoscope.report.screen import Screen
    from convoscope.report.table import number_column, print_table, text_table

    folders = tuple(str(Path(folder).resolve()) for folder in rubrics or ())
    asked, calls = read_labels(labels, rubric)
    settings = JudgeSettings(
        use_cache=use_cache,
        rubrics=folders,
        form=judge_form,
        max_answer_tokens=max_answer_tokens or MAX_ANSWER_TOKENS,
        max_concurrency=max_concurrency,
        seconds=timeout,
    )
    result = calibrate(Instrument(checked_name(judge), settings), asked, calls[:limit])
    file = calibration or calibration_file()
    keep_calibration(result, file)
    screen = Screen()
    if json:
        screen.json({"calibrated": result.is_calibrated, "file": str(file), **msgspec.to_builtins(result)})
        return

    def share(value: float | None, scale: float = 100.0) -> str:
        return "·" if value is None else f"{value * scale:.{1 if scale > 1 else 2}f}"

    def interval(ends: tuple[float, float] | None, scale: float = 100.0) -> str:
        return "·" if ends is None else f"{share(ends[0], scale)} to {share(ends[1], scale)}"

    verdict = "can be relied on" if result.is_calibrated else "is not calibrated"
    screen.line(f'{judge} {verdict} for "{asked.title}".')
    rows = [
        ("agrees, %", share(result.accuracy), interval(result.accuracy_interval)),
        ("macro F1, %", share(result.macro_f1), ""),
        ("kappa", share(result.kappa, 1.0), interval(result.kappa_interval, 1.0)),
        ("always the commonest, %", share(result.majority), ""),
    ]
    print_table(screen, text_table(("", number_column("value"), "95 % interval"), rows))
    lost = ", ".join(f"{count:,} {reason}" for reason, count in sorted(result.unanswered.items()))
    screen.line(f"{result.labels:,} labels" + (f"; without an answer: {lost}" if lost else ""))
    heads = [number_column(f"judge {rating:g}") for rating in result.ratings]
    table = [
        (f"people {rating:g}", *(f"{count:,}" for count in row))
        for rating, row in zip(result.ratings, result.confusion, strict=True)
    ]
    print_table(screen, text_table(["", *heads], table))
    screen.line(f"calibrated: {LEAST_LABELS} labels, and the whole interval of kappa above {LEAST_KAPPA}")
    screen.line(f"kept in {file}")
