"""`convoscope benchmark`: score predictions against gold, check gold, compare and invalidate results."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from convoscope.cli.options import (
    BudgetOption,
    Cache,
    Calibration,
    Json,
    LeastKappa,
    LeastLabels,
    MaxAnswerTokens,
    MaxConcurrency,
    MaxQuestions,
    Redact,
    Timeout,
    TrustJudge,
)
from convoscope.cli.options import Rubrics as RubricFolders
from convoscope.cli.targets import FAILED, exit_with

if TYPE_CHECKING:
    from convoscope.analysis.benchmark.result import BenchmarkRequest
    from convoscope.judging.calibrations import Agreement
    from convoscope.judging.instrument import Instrument

app = typer.Typer(
    help="Score predictions against gold labels, with receipts.", no_args_is_help=True, rich_markup_mode=None
)

ResultPath = Annotated[Path, typer.Argument(metavar="RESULT", help="A result that `benchmark run -o` wrote.")]


@app.command("run")
def run(
    track: Annotated[str, typer.Option("--track", help="semantic, asr or diarization.")] = "semantic",
    mode: Annotated[str, typer.Option("--mode", help="Of the semantic track: tags or summary.")] = "tags",
    dataset: Annotated[str, typer.Option("--dataset", help="`convoscope benchmark datasets` lists those staged.")] = "",
    split: Annotated[str | None, typer.Option("--split", help="E.g. test. Default: all samples.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", help="Only the first N samples.")] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="Who annotates. Default: CONVOSCOPE_SEMANTIC_MODEL, else rules.")
    ] = None,
    predictions: Annotated[
        Path | None, typer.Option("--predictions", help="Folder of what was found, SAMPLE.json each.")
    ] = None,
    transcripts: Annotated[
        Path | None, typer.Option("--transcripts", help="Folder of transcripts to annotate. Default: the data set's.")
    ] = None,
    threshold: Annotated[float, typer.Option("--threshold", help="The similarity that makes actions the same.")] = 0.8,
    min_confidence: Annotated[
        float | None, typer.Option("--min-confidence", help="Leave out predictions that are less sure.")
    ] = None,
    collar: Annotated[
        float, typer.Option("--collar", help="Of diarization: seconds around each boundary that are not scored.")
    ] = 0.0,
    skip_overlap: Annotated[
        bool, typer.Option("--skip-overlap", help="Of diarization: do not score where several speak.")
    ] = False,
    gate: Annotated[
        bool, typer.Option("--gate", help="Exit code 1 if a target is missed, 3 if one is undetermined.")
    ] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the result to this JSON file.")] = None,
    judge: Annotated[
        list[str] | None, typer.Option("--judge", help="Of the mode summary: who rates. Default: --model, if it can.")
    ] = None,
    rubrics: RubricFolders = None,
    max_questions: MaxQuestions = None,
    budget: BudgetOption = None,
    max_concurrency: MaxConcurrency = None,
    max_answer_tokens: MaxAnswerTokens = None,
    timeout: Timeout = None,
    redact: Redact = None,
    use_cache: Cache = True,
    calibration: Calibration = None,
    least_labels: LeastLabels = None,
    least_kappa: LeastKappa = None,
    trust_judge: TrustJudge = False,
    json: Json = False,
) -> None:
    """Score predictions of a track on a data set."""
    from convoscope.analysis.benchmark.gate import check_targets
    from convoscope.analysis.benchmark.result import SUMMARY, BenchmarkRequest, write_result
    from convoscope.analysis.benchmark.run import run_benchmark, unused_variables
    from convoscope.cli.judge import only_judge
    from convoscope.errors import UsageError
    from convoscope.judging.calibrations import held_to
    from convoscope.report.benchmark import print_result
    from convoscope.report.gate import print_benchmark_gate
    from convoscope.report.screen import Screen

    if not dataset:
        raise UsageError("--dataset is missing", hint="`convoscope benchmark datasets` lists those that are staged")
    scoring = (threshold, min_confidence, collar, skip_overlap)
    request = BenchmarkRequest(track, dataset, mode, split, limit, model, predictions, transcripts, *scoring)
    for words in unused_variables():
        Screen(sys.stderr).line(f"warning: {words}")
    given = {
        "rubrics": rubrics,
        "max_questions": max_questions,
        "budget": budget,
        "max_concurrency": max_concurrency,
        "max_answer_tokens": max_answer_tokens,
        "timeout": timeout,
        "redact": redact,
        "calibration": calibration,
    }
    rater, writer, known = _models(request, only_judge(judge), given, use_cache=use_cache)
    result = run_benchmark(request, rater, writer, [held_to(one, least_labels, least_kappa) for one in known])
    checked = check_targets(result, trust_judge=trust_judge)
    if output is not None:
        write_result(output, result)
    screen = Screen()
    if json:
        screen.json({"result": result, "gate": checked})
    else:
        print_result(screen, result)
        screen.line()
        print_benchmark_gate(screen, checked)
        if request.mode == SUMMARY and rater is None:
            screen.line("next  --judge openai:MODEL names who rates the summaries")
    if gate:
        exit_with(checked.outcome)


def _models(
    request: BenchmarkRequest, judge: str | None, given: Mapping[str, Any], *, use_cache: bool
) -> tuple[Instrument | None, Instrument | None, Sequence[Agreement]]:
    """Who rates summaries and who writes them, or who annotates: only models that the command line names.

    And what is known of how far judges agree with people.
    """
    from convoscope.analysis.benchmark.result import SUMMARY
    from convoscope.cli.judge import named_judges
    from convoscope.errors import UsageError
    from convoscope.judging.calibrations import found_calibrations
    from convoscope.judging.names import language_model
    from convoscope.report.screen import Screen

    model = language_model(request.model or "")
    if judge == "settings":
        raise UsageError("--judge settings: a benchmark names its judge", hint="--judge openai:MODEL")
    if judge and request.mode != SUMMARY:
        raise UsageError(f"--judge is of --mode {SUMMARY}", hint="--model names who annotates")
    if judge and not model and request.predictions is None:
        raise UsageError("there are no summaries to rate", hint="--predictions DIR, or --model names who writes them")
    names = {"judge": judge or model, "writer": model if request.predictions is None else ""}
    if request.mode != SUMMARY:
        names = {"judge": "", "writer": names["writer"]}
    chosen = sorted({name for name in names.values() if name})
    if not chosen:
        return None, None, ()
    named = named_judges(chosen, None, given, use_cache=use_cache)
    instruments = dict(zip(chosen, named.make(), strict=True))
    for instrument in instruments.values():
        Screen(sys.stderr).line(f"transcripts go to {instrument.address}")
    known = found_calibrations(named.calibration) if names["judge"] else ()
    return instruments.get(names["judge"]), instruments.get(names["writer"]), known


@app.command("validate-gold")
def validate_gold(
    path: Annotated[Path, typer.Argument(help="A gold label file, or a folder of them.")],
    transcripts: Annotated[
        Path | None, typer.Option("--transcripts", help="Their transcripts. Default: the folder beside.")
    ] = None,
    json: Json = False,
) -> None:
    """Check gold label files: schema, vocabulary, severities, names, duplicates, spans, segments."""
    from convoscope.harmless import one_line
    from convoscope.ingest.companions.gold_files import ENDING, check_paths
    from convoscope.report.screen import Screen

    checked = check_paths(path, transcripts)
    screen = Screen()
    if json:
        others = [str(one) for one in checked.others]
        errors = [one._asdict() for one in checked.errors]
        screen.json({"files": checked.files, "errors": errors, "not_looked_at": others})
    else:
        for error in checked.errors:
            screen.line(str(error), "red")
        for other in checked.others:
            screen.line(f"{one_line(str(other), None)}: not looked at: gold label files are called SAMPLE{ENDING}")
        many = f"{len(checked.errors)} error{'' if len(checked.errors) == 1 else 's'}"
        screen.line(f"{checked.files} gold label file{'' if checked.files == 1 else 's'}, {many}")
    if checked.errors:
        raise typer.Exit(FAILED)


@app.command("convert-gold")
def convert_gold(
    source: Annotated[Path, typer.Argument(help="A gold file of the published shape, or a folder of them.")],
    target: Annotated[Path, typer.Argument(help="The folder to write SAMPLE_gold.json to.")],
    dataset: Annotated[str, typer.Option("--dataset", help="The name of the data set.")],
    annotator: Annotated[str, typer.Option("--annotator", help="Who labelled.")] = "human",
    leave_out_unknown: Annotated[
        bool, typer.Option("--leave-out-unknown", help="Leave out topics outside the vocabulary, and note them.")
    ] = False,
) -> None:
    """Write gold labels of the published shape in ours, and check them."""
    import msgspec

    from convoscope.harmless import one_line
    from convoscope.ingest.companions.gold_files import ENDING, check_paths, convert_files
    from convoscope.report.screen import Screen

    screen = Screen()
    files = convert_files(source, dataset, annotator, leave_out_unknown=leave_out_unknown)
    target.mkdir(parents=True, exist_ok=True)
    for file in files:
        path = target / (file.gold["sample_id"] + ENDING)
        path.write_bytes(msgspec.json.format(msgspec.json.encode(file.gold), indent=2) + b"\n")
        for words in file.left_out:
            screen.line(one_line(f"{file.path}: left out: {words}", None))
    checked = check_paths(target)
    for wrong in checked.errors:
        screen.line(str(wrong), "red")
    screen.line(f"{checked.files} gold label files in {target}, {len(checked.errors)} errors")
    if checked.errors:
        raise typer.Exit(FAILED)


@app.command("datasets")
def datasets(
    name: Annotated[
        str | None, typer.Argument(help="One of them: its splits, and how far its labellings agree.")
    ] = None,
    json: Json = False,
) -> None:
    """List the data sets that are staged, and where others would go."""
    from convoscope.analysis.benchmark.datasets import find_datasets, find_named
    from convoscope.report.benchmark import dataset_json, print_dataset, print_datasets
    from convoscope.report.screen import Screen

    screen = Screen()
    if name is not None:
        staged = find_named(name)
        screen.json(dataset_json(staged)) if json else print_dataset(screen, staged)
    elif json:
        screen.json([dataset_json(one, with_agreement=False) for one in find_datasets()])
    else:
        print_datasets(screen, find_datasets())


@app.command("compare")
def compare(
    current: ResultPath,
    baseline: Annotated[Path, typer.Argument(metavar="BASELINE", help="The result to hold it against.")],
    threshold: Annotated[
        float, typer.Option("--threshold", help="The share of a figure that it may lose.", min=0, max=1)
    ] = 0.1,
    trust_judge: TrustJudge = False,
    json: Json = False,
) -> None:
    """Whether a result got worse than another. Exit code 1 if it did, 3 if that is undetermined."""
    from convoscope.analysis.benchmark.gate import compare as compare_results
    from convoscope.analysis.benchmark.result import read_result
    from convoscope.report.gate import print_benchmark_gate
    from convoscope.report.screen import Screen

    gate = compare_results(read_result(current), read_result(baseline), threshold, trust_judge=trust_judge)
    screen = Screen()
    if json:
        screen.json(gate)
    else:
        print_benchmark_gate(screen, gate)
    exit_with(gate.outcome)


@app.command("invalidate")
def invalidate(
    result: ResultPath,
    reason: Annotated[str, typer.Option("--reason", help="What is wrong with it.")],
    superseded_by: Annotated[str | None, typer.Option("--superseded-by", help="The run id that replaces it.")] = None,
) -> None:
    """Mark a result as not to be relied on. Its numbers stay as they were."""
    from convoscope.analysis.benchmark.result import invalidate as mark
    from convoscope.report.screen import Screen

    marked = mark(result, reason, superseded_by)
    Screen().line(f"{marked.run_id} is marked invalid: {reason}")
