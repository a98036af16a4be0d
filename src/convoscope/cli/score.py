"""`convoscope score` and `convoscope demo`: read logs, score them, keep the run, print it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from convoscope.analysis.policy import HeldRun
    from convoscope.metrics.registry import Declared
    from convoscope.runs.run import Run
    from convoscope.settings_file import FoundSettings

from convoscope.cli.options import (
    BudgetOption,
    Cache,
    Calibration,
    Contexts,
    DryRun,
    EmbedAudio,
    EngineOption,
    FetchAudio,
    Full,
    JointQuestions,
    Json,
    JudgeForm,
    Judges,
    Junit,
    LeastKappa,
    LeastLabels,
    Markdown,
    MaxAnswerTokens,
    MaxConcurrency,
    MaxQuestions,
    Metrics,
    MetricsFrom,
    NoAudio,
    OptionalPaths,
    Out,
    Panel,
    PolicyOption,
    ReadOptions,
    RecogniserOption,
    Redact,
    RedactPatterns,
    Repeats,
    Rubrics,
    SecondLook,
    SendAudio,
    SettingsOption,
    Since,
    Targets,
    Timeout,
    TrustJudge,
    WithAudio,
    Workers,
    split,
    with_read_options,
)
from convoscope.cli.targets import ReportFiles, exit_by
from convoscope.errors import UsageError, keeping

LOGS = Path("runs/logs/demo")
DEMO = Path("runs/demo")
NO_SETTINGS = Path(os.devnull)
"""The demo is the same wherever it runs."""


@with_read_options
def score_command(
    reading: ReadOptions,
    paths: OptionalPaths = None,
    metrics: Metrics = None,
    metrics_from: MetricsFrom = None,
    out: Out = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", help="Only the first N conversations.")] = None,
    workers: Workers = None,
    engine: EngineOption = None,
    max_concurrency: MaxConcurrency = None,
    by: Annotated[
        list[str] | None, typer.Option("--by", metavar="FIELDS", help="Group by these: flow,agent. Repeatable.")
    ] = None,
    label: Annotated[
        str | None,
        typer.Option("--label", metavar="FIELD", help="Your own verdict: resolved, or 'csat >= 4'."),
    ] = None,
    annotate: Annotated[
        str | None,
        typer.Option("--annotate", metavar="NAME", help="Find topics, risks and actions: rules, or judge."),
    ] = None,
    no_audio: NoAudio = False,
    fetch_audio: FetchAudio = False,
    recogniser: RecogniserOption = None,
    strict: Annotated[bool, typer.Option("--strict", help="Fail if anything could not be read.")] = False,
    since: Since = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="What is no longer in the logs leaves the run in --out.")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="What is no longer in the logs stays in the run.")] = False,
    judge: Judges = None,
    settings: SettingsOption = None,
    repeats: Repeats = None,
    panel: Panel = None,
    second_look: SecondLook = None,
    judge_form: JudgeForm = None,
    send_audio: SendAudio = False,
    joint_questions: JointQuestions = None,
    max_answer_tokens: MaxAnswerTokens = None,
    timeout: Timeout = None,
    rubrics: Rubrics = None,
    redact: Redact = None,
    redact_pattern: RedactPatterns = None,
    cache: Cache = True,
    max_questions: MaxQuestions = None,
    budget: BudgetOption = None,
    calibration: Calibration = None,
    least_labels: LeastLabels = None,
    least_kappa: LeastKappa = None,
    trust_judge: TrustJudge = False,
    dry_run: DryRun = False,
    target: Targets = None,
    policy: PolicyOption = None,
    junit: Junit = None,
    markdown: Markdown = None,
    contexts: Contexts = False,
    with_audio: WithAudio = False,
    embed_audio: EmbedAudio = False,
    audit: Annotated[
        bool, typer.Option("--audit", help="Also try the metrics on nonsense, and keep the result.")
    ] = False,
    k: Annotated[
        int | None, typer.Option("--k", metavar="N", help="Trials that pass@k and pass^k draw. Default: 3.", min=1)
    ] = None,
    full: Full = False,
    json: Json = False,
) -> None:
    """Score the conversations of logs, and keep the result as a run.

    The same command again adds what is new in the logs to the run, or goes on where it was cut short.
    """
    import msgspec

    from convoscope.analysis.policy import hold
    from convoscope.report.page import LINKED, AudioOptions
    from convoscope.report.score import score_with
    from convoscope.report.screen import Screen, progress_bar
    from convoscope.runs.policy import find_policy
    from convoscope.scoring.settings import ScoreSettings
    from convoscope.settings_file import FILE, find_settings, judge_options, listed, score_options

    files = ReportFiles(junit, markdown)
    files.check()
    file_settings = find_settings(settings)
    policy_file = find_policy(policy, file_settings)
    stated = {"logs": paths, "out": out, "label": label, "by": by, "metrics": metrics, "annotate": annotate}
    stated |= {"engine": engine}
    stated |= reading._asdict()
    options = score_options(file_settings, stated)
    logs = options["logs"]
    if not logs:
        raise UsageError(
            "no logs are named", hint=f"name files or folders; or let {FILE} name them: convoscope init LOGS"
        )
    reading = ReadOptions(**{name: options[name] for name in ReadOptions._fields})
    chosen = _chosen(options["metrics"], metrics_from or (), k)
    if policy_file is not None:
        _check_names(policy_file, metrics_from or ())
    judging = judge_options(
        file_settings,
        {
            "judge": judge,
            "repeats": repeats,
            "panel": panel,
            "second_look": second_look,
            "judge_form": judge_form,
            "joint_questions": joint_questions,
            "max_answer_tokens": max_answer_tokens,
            "timeout": timeout,
            "rubrics": rubrics,
            "redact": redact,
            "redact_patterns": redact_pattern,
            "max_questions": max_questions,
            "budget": budget,
            "max_concurrency": max_concurrency,
            "calibration": calibration,
        },
    )
    run_settings = ScoreSettings(
        metrics=chosen,
        metrics_from=metrics_from or (),
        out=options["out"],
        limit=limit,
        workers=workers,
        engine=options["engine"],
        strict=strict,
        prune=prune,
        keep=keep,
        since=since,
        by=[split(one) or [] for one in listed(options["by"])] if options["by"] else None,
        label=options["label"],
        annotate=options["annotate"],
        use_audio=not no_audio,
        fetch_audio=fetch_audio,
        send_audio=send_audio,
        recogniser=recogniser,
        targets=target or (),
        judge_cache=cache,
        least_labels=least_labels,
        least_kappa=least_kappa,
        trust_judge=trust_judge,
        **judging,
        **reading.arguments,
    )
    if options["annotate"]:
        from convoscope.analysis.benchmark.run import unused_variables
        from convoscope.report.screen import Screen

        for words in unused_variables(annotates=True):
            Screen(sys.stderr).line(f"warning: {words}", "yellow")
    if run_settings.judges or dry_run:
        from convoscope.report.forecast import print_forecast

        print_forecast(
            logs,
            run_settings,
            dry_run=dry_run,
            json=json,
            settings_file=str(file_settings.file if file_settings else ""),
        )
    if dry_run:
        return
    with progress_bar() as progress:
        notes: list[str] = []
        sound = AudioOptions(with_audio, embed_audio)
        if sound != LINKED:
            sound = sound._replace(say=notes.append)
        run = score_with(logs, msgspec.structs.replace(run_settings, progress=progress), policy_file, sound)
    with keeping(lambda: f"the run is kept in {run.folder}"):
        if audit:
            _audit(run, metrics_from or ())
        # The run keeps the targets that it was scored with: they are the given ones.
        held = hold(run, (), policy_file, file_settings)
        of_file = [name for name, value in options.items() if value != stated[name]]
        of_file += ["policy"] if policy_file is not None and policy is None else []
        used = f"{file_settings.file}: {', '.join(of_file)}" if file_settings is not None and of_file else ""
        _print_run(run, held, files, used, contexts=contexts, full=full, json=json)
        if not json:
            for note in notes:
                Screen().line(note)


def demo(
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder of the run. Default: runs/demo, where it is free.")
    ] = None,
    json: Json = False,
) -> None:
    """Score invented calls of a voice agent in two versions."""
    from convoscope.demo import COMPANY, make_calls, write_logs
    from convoscope.errors import RunError
    from convoscope.report.screen import Screen

    calls = list(make_calls())
    write_logs(calls, LOGS)
    if not json:
        Screen().line(f"scoring {len(calls)} invented calls of {COMPANY}: {LOGS}")
    try:
        score_command(paths=[LOGS], by=["agent"], out=out or DEMO, json=json, settings=NO_SETTINGS)
    except RunError:
        if out is not None:
            raise
        # The demo of another version of Convoscope is there.
        score_command(paths=[LOGS], by=["agent"], json=json, settings=NO_SETTINGS)
    if not json:
        Screen().line("next  convoscope score YOUR-LOGS")


def _print_run(
    run: Run, held: HeldRun, files: ReportFiles, settings: str, *, contexts: bool, full: bool, json: bool
) -> None:
    from convoscope.analysis.answer import make_answer
    from convoscope.report.gate import print_policy_gate, print_targets, targets_json
    from convoscope.report.run_terminal import print_answer, print_next, print_run, print_warnings
    from convoscope.report.screen import Screen
    from convoscope.runs.run import PAGE

    screen = Screen()
    answer = make_answer(run, held.targets)
    if full and not json:
        print_run(screen, run, answer)
    files.write(run, held)
    if contexts:
        from convoscope.report.view_terminal import write_contexts

        write_contexts(run)
    if json:
        screen.json(
            {
                "run": str(run.folder),
                "page": str(run.folder / PAGE),
                "answer": answer,
                "targets": targets_json(held.checks),
                **({} if held.gate is None else {"gate": held.gate}),
                **({"settings": settings} if settings else {}),
                "summary": run.summary,
                "read_report": run.read_report,
            }
        )
    else:
        shown = {one.name for one in answer.figures} if not full else set()
        others = [one for one in held.checks if one.name not in shown] if held.gate is None else []
        if full:
            print_targets(screen, others)
            print_next(screen, answer, run)
        else:
            print_answer(screen, answer, run, lambda: print_targets(screen, others))
        if settings:
            screen.line(f"settings  {settings}")
        if held.gate is not None:
            print_policy_gate(screen, held.gate)
    print_warnings(Screen(sys.stderr), run.read_report, full=full)
    exit_by(run, held)


def _audit(run: Run, metrics_from: Sequence[str]) -> None:
    """Audit the run, unless that was done before; its page is drawn anew."""
    from convoscope.analysis.vacuity import audit_run
    from convoscope.report.page import write_page
    from convoscope.report.vacuity import keep_audit, kept_audit

    if kept_audit(run) is None:
        keep_audit(run, audit_run(run, metrics_from=metrics_from))
        write_page(run)


def _check_names(policy: FoundSettings, metrics_from: Sequence[str]) -> None:
    """Refuse a policy with a mistake in it, before anything is read."""
    from convoscope.metrics.registry import registered
    from convoscope.runs.policy import resolve
    from convoscope.runs.summary import describe
    from convoscope.runs.targets import figure_names

    declared = registered(metrics_from).declared.values()
    resolve(policy, {name: one.unit for one in declared for name in figure_names(describe(one))})


def _chosen(
    metrics: str | Sequence[str] | None, metrics_from: Sequence[str], k: int | None
) -> Sequence[str | Declared] | None:
    """The metrics that are asked for, with other numbers of trials where `k` is."""
    names = split(metrics)
    if k is None:
        return names
    from convoscope.metrics.composites import with_trials
    from convoscope.metrics.registry import registered

    return with_trials(registered(metrics_from).to_score(names), k)
