"""A run is made: its job is scored part by part, and what comes of it is kept. What `convoscope score` does."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from inspect import Parameter, Signature
from pathlib import Path
from time import perf_counter
from typing import Any, Concatenate, ParamSpec

import msgspec

from convoscope.conversation import DEFAULT_TURN_RULE, Conversation, Flow
from convoscope.errors import InputError, NothingReadable, RunError, UsageError, keeping
from convoscope.harmless import is_utf8, one_line
from convoscope.ingest.companions.predictions import PredictionFiles, unused_predictions
from convoscope.ingest.companions.verdicts import Verdicts, unused_verdicts
from convoscope.ingest.discover import fingerprint
from convoscope.ingest.io.streams import as_files
from convoscope.ingest.read import PathLike, nothing_readable, refuse_unmatched_speakers
from convoscope.ingest.report import FILE_IS_ONE, ReadReport
from convoscope.ingest.settings import DEFAULT_SETTINGS
from convoscope.metrics.declaration import Metric
from convoscope.metrics.registry import installed
from convoscope.metrics.semantic.findings import GOLD_LABELS
from convoscope.metrics.signatures import signature, table_signature
from convoscope.resources.registry import JUDGE
from convoscope.runs.audit import audit
from convoscope.runs.calibrations import calibrations_for, recalibrate, with_calibrations
from convoscope.runs.conversations import conversation_ids, some_fields
from convoscope.runs.database import Tables
from convoscope.runs.finish import finish_tables
from convoscope.runs.judging import failure_warnings, judging_summary
from convoscope.runs.part_files import RunFiles
from convoscope.runs.partial import Partial, is_taken, tidy
from convoscope.runs.receipt import Receipt, canonical_hash, hash_inputs, now, reader_sources, sources, versions
from convoscope.runs.run import FLOWS, READ_REPORT, RECEIPT, SUMMARY, Run, write_json, write_summary
from convoscope.runs.sql import check_tables, write_combined
from convoscope.runs.subjects import axis_of
from convoscope.runs.summarise import absent_samples, read_label, summarise
from convoscope.runs.summary import Summary
from convoscope.runs.targets import kept_texts
from convoscope.scores.side_tables import SideTable
from convoscope.scoring.annotators import provided_rules
from convoscope.scoring.engines import Engine, LocalEngine
from convoscope.scoring.job import Job, choose, plan_job
from convoscope.scoring.labels import LabelOfInput, LabelRule, fields_hint, label_of_input, label_rule
from convoscope.scoring.partition import InputRule, Timings
from convoscope.scoring.settings import ScoreSettings
from convoscope.statistics import intervals
from convoscope.statistics.panels import MEDIAN

DEFAULT_FOLDER = Path("runs")
MAX_NAMED = 5
MAX_PROBLEMS = 20

Source = PathLike | Sequence[PathLike] | Iterable[Conversation] | Iterable[Mapping[str, Any]]
P = ParamSpec("P")


def with_settings(
    make: Callable[[Any, ScoreSettings], Run], settings: Callable[P, ScoreSettings]
) -> Callable[Concatenate[Source, P], Run]:
    """A function of a source and the settings of a run, which are declared once, in `ScoreSettings`."""

    def score(source: Source, *args: P.args, **kwargs: P.kwargs) -> Run:
        return make(source, settings(*args, **kwargs))

    defaults = zip(ScoreSettings.__struct_fields__, ScoreSettings.__struct_defaults__, strict=True)
    types = ScoreSettings.__annotations__
    options = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=value, annotation=types[name]) for name, value in defaults
    ]
    score.__signature__ = Signature([Parameter("source", Parameter.POSITIONAL_OR_KEYWORD), *options])  # type: ignore[attr-defined]
    score.__doc__ = ScoreSettings.__doc__
    return score  # type: ignore[return-value]


def run_with(source: Any, settings: ScoreSettings) -> Run:
    """Score the conversations of a source, and keep the run."""
    if settings.out is not None:
        _check_out(Path(settings.out))
    engine = settings.engine or LocalEngine(settings.workers)
    _ = settings.reading  # what cannot be meant is refused before anything is done
    named = settings.named_judges
    judges = () if named is None else named.resources
    chosen = choose(settings.metrics, settings.metrics_from, (*settings.resources, *judges), settings.annotate)
    check_tables(chosen.tables)
    rule = None if settings.label is None else label_rule(settings.label)
    targets = [settings.targets] if isinstance(settings.targets, str) else settings.targets
    wanted = kept_texts(targets, chosen.metrics)
    things = [source] if isinstance(source, str | os.PathLike) else list(source)
    are_paths = bool(things) and isinstance(things[0], str | os.PathLike)
    with keeping(lambda: "nothing was scored yet"):
        files = as_files(things if are_paths else ())
        with files.folder or nullcontext():
            again = None if named is None else named.second_look
            job = plan_job(files.paths if are_paths else things, chosen, settings, again)
            with closing(job.session):
                builder = _RunBuilder(job, wanted, rule, engine)
                return builder.run(_out(settings.out, builder))


make_run = with_settings(run_with, ScoreSettings)


def _out(out: PathLike | None, builder: _RunBuilder) -> Path:
    if out is not None:
        return Path(out)
    stem = re.sub(r"[^\w.-]+", "-", builder.job.name).strip("-") or "run"
    return DEFAULT_FOLDER / f"{stem}-{canonical_hash(builder.depends_on)[7:15]}"


def _check_out(out: Path) -> None:
    """Refuse what could not become the folder of a run, before anything is done."""
    if not is_utf8(out.resolve()):
        raise UsageError(f"the path {os.fsencode(out)!r} is not UTF-8", hint="choose another --out")
    if out.is_symlink() and not out.exists():
        raise RunError(f"{out} is a broken link", hint="choose another --out, or create its target")


class _RunBuilder:
    """One run to be made: the job, and what it depends on."""

    def __init__(self, job: Job, targets: Sequence[str], label: LabelRule | None, engine: Engine) -> None:
        self.started, self._began = now(), perf_counter()
        self.job, self.settings, self.report = job, job.settings, job.input.report
        self.by, self.metrics, self.engine = job.settings.groupings, job.chosen.metrics, engine
        reading = job.settings.reading
        self.label = None if label is None else LabelOfInput(label)
        self.rules: list[InputRule] = []
        self.signatures = {one.key: signature(one) for one in self.metrics}
        self.config: dict[str, Any] = {
            "metrics": {one.key: one.version for one in self.metrics},
            "turn_rule": reading.turn_rule or DEFAULT_TURN_RULE,
            "limit": self.settings.limit,
            "by": self.by,
            "format": self.settings.format,
            "interval": {"level": intervals.LEVEL},
        }
        if job.input.flows:
            self.config["flows"] = {flow.name: canonical_hash(flow) for flow in job.input.flows}
        if own := {one.name: table_signature(one) for one in job.chosen.tables if one.name not in installed().tables}:
            self.config["tables"] = own
        for name in ("tool_failed", "speech_tools", "session_gap", "speakers"):
            if (value := getattr(reading, name)) != getattr(DEFAULT_SETTINGS, name):
                self.config[name] = value
        if label is not None:
            self.config["label"] = label.text
        if job.annotator is not None:
            self.config["annotate"] = job.annotator.identity
        if targets:
            self.config["targets"] = list(targets)
        self.config |= {name: True for name in ("trust_judge", "joint_questions") if getattr(self.settings, name)}
        if identities := job.session.identities():
            self.config["resources"] = identities
        if self.settings.repeats != 1:
            self.config["repeats"] = self.settings.repeats
        if job.session.panel != MEDIAN:
            self.config["panel"] = msgspec.to_builtins(job.session.panel)
        if job.session.second_look is not None:
            self.config["second_look"] = job.session.second_look_identity
        self.config_hash = canonical_hash(self.config)
        try:
            self.hashes, self.input_hash = hash_inputs([(one, fingerprint(one)) for one in job.input.inputs])
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", file=str(error.filename)) from None
        self.depends_on = {
            "settings": self.config_hash,
            "metrics": canonical_hash(self.signatures),
            "input": self.input_hash,
            "version": versions()["convoscope"],
            "sources": canonical_hash([sources(), reader_sources(one.reader for one in job.input.inputs)]),
        }
        self.timings = Timings()
        self.flows: dict[str, Flow] = {}

    def run(self, out: Path) -> Run:
        if is_taken(out):
            return self._existing(out)
        inputs, settings = self.job.input.inputs, self.settings
        if not inputs:
            raise nothing_readable(self.report)
        if self.label is not None:
            self.label = label_of_input(self.label.rule, inputs, settings.limit, settings.part_bytes)
            self.rules.append(self.label.rule)
        asked = any(GOLD_LABELS in one.needs for one in self.metrics if isinstance(one, Metric))
        # An annotator that runs here says itself what it provides.
        if asked and self.job.annotator is None:
            self.rules += provided_rules(inputs, settings.limit, settings.part_bytes)
        unfinished = Partial(out, {**self.depends_on, "part_bytes": str(settings.part_bytes)})
        try:
            if not unfinished.is_late:
                with keeping(lambda: unfinished.kept):
                    self._make(unfinished)
                    run = Run.open(unfinished.publish())
                    run.hold(self.job.session.held)
                    return run
            unfinished.discard()
        except (NothingReadable, InputError, UsageError):
            unfinished.discard()
            raise
        finally:
            unfinished.close()
        return self._existing(out)

    def _existing(self, out: Path) -> Run:
        """A run is never overwritten; one that would come out the same is as good as a new one."""
        try:
            run = Run.open(out)
        except RunError:
            raise RunError(f"{out} exists and is not a run", hint="choose another --out") from None
        changed = [name for name, value in self.depends_on.items() if run.receipt.depends_on.get(name) != value]
        if changed:
            hint = "choose another --out, or move that run away"
            if {**run.receipt.config, "targets": None} == {**self.config, "targets": None} and changed == ["settings"]:
                hint += "; if only its targets should be others, `convoscope report --target` needs no new run"
            raise RunError(f"{out} holds another run: {', '.join(changed)} changed", hint=hint)
        self._refuse_problems(run.read_report)
        tidy(out)
        # People may have labelled since.
        recalibrate(run, lambda: calibrations_for(self.settings))
        return run

    def _make(self, unfinished: Partial) -> None:
        if unfinished.notice:
            self.report.warnings.append(unfinished.notice)
        if unfinished.finished:
            self._refuse_problems(unfinished.read_report)
            return
        self._score_parts(unfinished)
        parts, report, limit = unfinished.done, self.report, self.settings.limit
        conversations = 0
        for number in sorted(parts):
            # What the limit leaves out was not asked for, and is not reported.
            if limit is not None and conversations >= limit:
                break
            conversations += parts[number].conversations
            report.merge(parts[number].report)
            self.timings.add(parts[number].timings)
            self.flows = parts[number].flows | self.flows
        if not conversations:
            raise nothing_readable(report)
        unused = [flow.name for flow in self.job.input.flows if flow.name not in self.flows]
        if unused:
            report.warnings.append(f"no conversation uses these declared flows: {', '.join(unused)}")
        refuse_unmatched_speakers(self.settings.reading, report, limit)
        speech_tools = self.settings.reading.speech_tools
        if speech_tools and "speech_through_tool" not in report.inferred:
            tools = ", ".join(speech_tools)
            report.warnings.append(
                f"--speech-tool {tools}: no call says anything that the log does not have as a message"
            )
        if FILE_IS_ONE in report.inferred:
            report.warnings.append(
                "the mapping names no id: all records of a file are one conversation; conversation.id parts them"
            )
        # A flow that no conversation ran is kept too: all of its states are untested.
        self.flows = {flow.name: flow for flow in self.job.input.flows} | self.flows
        self._refuse_problems(report)
        if limit is not None and conversations > limit:
            report.conversations = limit
            report.warnings.append(f"only the first {limit:,} conversations were scored; there are more")
        self._finish(unfinished, report)

    def _note_unused(self, tables: Tables, report: ReadReport) -> None:
        """Note which predictions and verdicts cannot be read, and which are of no conversation of the run.

        What a limit left out might be theirs.
        """
        inputs = self.job.input.inputs
        predictions = {path for item in inputs for path in item.companions_of(PredictionFiles.format)}
        verdicts = {path for item in inputs for path in item.companions_of(Verdicts.format)}
        if predictions or verdicts:
            ids = conversation_ids(tables) if self.settings.limit is None else None
            report.add_notes([*unused_predictions(predictions, ids), *unused_verdicts(verdicts, ids)])
            self._refuse_problems(report)

    def _score_parts(self, unfinished: Partial) -> None:
        job = self.job
        seen = sum(part.conversations for part in unfinished.done.values())
        kinds = axis_of(self.metrics)
        fields = dict.fromkeys(name for names in self.by or () for name in names if name not in kinds)
        writer = RunFiles(unfinished.folder.resolve(), job.chosen.tables, tuple(fields))
        # Closed at once when anything goes wrong, and with it the workers.
        with closing(job.parts(self.engine, writer, unfinished.scratch, unfinished.done, self.rules)) as parts:
            for part in parts:
                unfinished.finish_part(part)
                seen += part.conversations
                done = min(job.bytes_total, len(unfinished.done) * self.settings.part_bytes)
                self.settings.report("scoring", seen, len(unfinished.done), done, job.bytes_total)

    def _finish(self, unfinished: Partial, report: ReadReport) -> None:
        folder, scratch = unfinished.folder, unfinished.scratch
        scratch.mkdir(exist_ok=True)
        self.settings.report("writing", report.conversations)
        began = perf_counter()
        done = [part for _, part in sorted(unfinished.done.items())]
        tables = finish_tables(folder, done, self.metrics, self.settings.limit, self.job.session.names)
        finished = perf_counter()
        self._note_unused(tables, report)
        if tables.shared:
            report.warnings.append(
                f"several conversations share an id; a number was added to it: {_few(tables.shared)}"
            )
        self.settings.report("reducing", report.conversations)
        label = None if self.label is None else read_label(tables, *self.label)
        report.warnings += label.warnings if label is not None else ()
        report.warnings += failure_warnings(tables) if JUDGE in self.job.session.resources else ()
        # What the limit leaves out was not asked for.
        absent = [] if self.settings.limit is not None else absent_samples(self.job.input.inputs, tables, report)
        if absent:
            who = "1 sample has" if len(absent) == 1 else f"{len(absent):,} samples have"
            samples = _few([one_line(name) for name in absent])
            report.warnings.append(f"{who} gold labels and no conversation ({samples}): unmeasured, no_conversation")
        summary = summarise(
            tables,
            self.metrics,
            profiles=tables.profiles,
            config_hash=self.config_hash,
            input_hash=self.input_hash,
            by=self.by,
            scratch=scratch,
            resources=self.job.session.names,
            label=None if label is None else label.counts,
            absent=len(absent),
        )
        if JUDGE in self.job.session.resources:
            self.settings.report("looking again", report.conversations)
            judging = judging_summary(tables, self.metrics, self.job.session)
            summary = msgspec.structs.replace(summary, judging=judging)
        summary = with_calibrations(summary, lambda: calibrations_for(self.settings))
        report.warnings += _without_groups(tables, summary, self.by or ())
        timings = {
            **{name: getattr(self.timings, name) for name in Timings.__struct_fields__},
            "finishing": finished - began,
            "reducing": perf_counter() - finished,
        }
        receipt = Receipt(
            run_id=f"run-{self.started.replace('-', '').replace(':', '')}-{canonical_hash(self.depends_on)[7:13]}",
            started_at=self.started,
            finished_at=now(),
            seconds=round(perf_counter() - self._began, 3),
            config=self.config,
            config_hash=self.config_hash,
            inputs=self.hashes,
            input_hash=self.input_hash,
            metrics=self.signatures,
            depends_on=self.depends_on,
            versions=dict(versions()),
            workers=self.engine.workers,
            parts=list(tables.parts),
            timings={name: round(seconds, 3) for name, seconds in timings.items()},
        )
        write_summary(folder / SUMMARY, summary)
        write_json(folder / FLOWS, sorted(self.flows.values(), key=lambda flow: flow.name))
        write_json(folder / READ_REPORT, report.ordered())
        write_json(folder / RECEIPT, receipt)
        run = Run(folder, receipt)
        write_combined(run, self.job.chosen.tables)
        if run.tables.side_tables():
            self.settings.report("auditing", report.conversations)
            write_json(folder / RECEIPT, audited(run, self.job.chosen.tables))
        unfinished.finish()

    def _refuse_problems(self, report: ReadReport) -> None:
        """With --strict: refuse what could not be read, whole records and single values of records."""
        lost = sum(tally.count for tally in report.set_aside.values())
        if not self.settings.strict or not (report.problem_count or lost):
            return
        counts = [(report.problem_count, "problem", ""), (lost, "value", " that could not be used")]
        title = " and ".join(f"{n:,} {noun}{'' if n == 1 else 's'}{rest}" for n, noun, rest in counts if n)
        problems = [str(one) for one in report.problems]
        problems += [f"{where}: {code}" for code, tally in sorted(report.set_aside.items()) for where in tally.examples]
        raise InputError(
            "\n  ".join([title, *(one_line(each, None) for each in problems[:MAX_PROBLEMS])]),
            hint="without --strict, everything else is scored",
        )


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:MAX_NAMED]) + (", …" if len(names) > MAX_NAMED else "")


def _without_groups(tables: Tables, summary: Summary, by: Sequence[Sequence[str]]) -> Iterator[str]:
    """A warning for each grouping that was asked for and that no conversation is in, with the fields there are."""
    for names in by:
        if not any(set(group.by) == set(names) for group in summary.groups):
            hint = fields_hint(names[0], some_fields(tables))
            yield f"no conversation has {' and '.join(names)}: there are no groups by it; {hint}"


def audited(run: Run, declared: Sequence[SideTable]) -> Receipt:
    """The receipt after visits were counted again from the events; rows that disagree make the run invalid."""
    began = perf_counter()
    tables = [table for table in declared if run.tables.files(table.name)]
    audits = {table.name: audit(run, table) for table in tables}
    disagreements = sum(one.disagreements for one in audits.values())
    receipt = msgspec.structs.replace(
        run.receipt,
        audit={"rows": sum(one.rows for one in audits.values()), "disagreements": disagreements},
        timings={**run.receipt.timings, "auditing": round(perf_counter() - began, 3)},
    )
    if not disagreements:
        return receipt
    name, worst = next((name, one) for name, one in audits.items() if not one.holds)
    reason = f"audit: {disagreements:,} rows of {name} disagree with the events, such as {worst.examples[0]}"
    return msgspec.structs.replace(receipt, valid=False, invalid_reason=reason, invalidated_at=now())
