"""A run is made: its job is scored part by part, and what comes of it is kept. What `convoscope score` does."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation import DEFAULT_TURN_RULE, Conversation, Flow, to_json
from convoscope.errors import InputError, NothingReadable, RunError, UsageError, keeping
from convoscope.harmless import is_utf8, one_line
from convoscope.ingest.companions.predictions import load as load_predictions
from convoscope.ingest.companions.predictions import unread_records, without_dialogue
from convoscope.ingest.discover import fingerprint
from convoscope.ingest.io.streams import SpooledFiles, as_files
from convoscope.ingest.read import PathLike, nothing_readable
from convoscope.ingest.report import ReadReport
from convoscope.ingest.settings import DEFAULT_SETTINGS, read_settings
from convoscope.ingest.split import PART_BYTES
from convoscope.metrics.registry import Declared, installed
from convoscope.metrics.signatures import signature, table_signature
from convoscope.runs.absent_samples import absent_samples
from convoscope.runs.audit import audit
from convoscope.runs.conversations import conversation_ids, some_fields
from convoscope.runs.database import Tables
from convoscope.runs.finish import finish_tables
from convoscope.runs.identity import reader_sources, sources
from convoscope.runs.outcomes import read_label
from convoscope.runs.part_files import RunFiles
from convoscope.runs.partial import Partial, is_taken, tidy
from convoscope.runs.receipt import Receipt, canonical_hash, hash_inputs, now, versions
from convoscope.runs.run import FLOWS, READ_REPORT, RECEIPT, SUMMARY, Run, write_json, write_summary
from convoscope.runs.side_tables import check_tables, write_combined
from convoscope.runs.subjects import axis_of
from convoscope.runs.summarise import summarise
from convoscope.runs.summary import Summary
from convoscope.runs.targets import kept_texts
from convoscope.scores.side_tables import SideTable
from convoscope.scoring.engines import local
from convoscope.scoring.engines.engine import Engine
from convoscope.scoring.job import Job, choose, plan_job
from convoscope.scoring.labels import LabelRule, SettledLabel, fields_hint, label_rule, settled
from convoscope.scoring.partition import PartDone, Timings
from convoscope.scoring.session import DEFAULT_CONCURRENCY
from convoscope.statistics import intervals

DEFAULT_FOLDER = Path("runs")
MAX_SHARED_IDS = 5
MAX_PROBLEMS = 20


class Progress(NamedTuple):
    """How far a run has come."""

    stage: str
    conversations: int = 0
    parts: int = 0
    bytes_done: int = 0
    bytes_total: int = 0


def make_run(
    source: PathLike | Sequence[PathLike] | Iterable[Conversation],
    *,
    metrics: str | Declared | Iterable[str | Declared] | None = None,
    metrics_from: Iterable[PathLike] = (),
    resources: Iterable[Any] = (),
    out: PathLike | None = None,
    limit: int | None = None,
    workers: int | None = None,
    engine: Engine | None = None,
    max_concurrency: int = DEFAULT_CONCURRENCY,
    strict: bool = False,
    by: Sequence[Sequence[str]] | None = None,
    format: str | None = None,
    readers_from: Iterable[PathLike] = (),
    turns: str | None = None,
    tool_failed: str | Iterable[str] = (),
    speech_tools: str | Iterable[str] = (),
    session_gap: float | None = None,
    flows: Iterable[PathLike | Flow] = (),
    label: str | None = None,
    annotate: str | None = None,
    targets: Sequence[str] = (),
    progress: Callable[[Progress], None] | None = None,
    part_bytes: int = PART_BYTES,
) -> Run:
    """Score the conversations of some files or folders, or conversations made in Python, and keep the run.

    The path `-` is standard input.
    `metrics` are names or declarations, or one of these; a text may hold several names, with commas
    between, as on the command line. All that are installed for None. `metrics_from` are Python files,
    modules and `.toml` files of templates whose metrics come beside the installed ones. `resources` are
    what metrics are handed, such as a judge: objects, or functions declared with `@convoscope.resource`.
    Metrics that wait have up to `max_concurrency` questions in flight. `out` is the
    folder of the run; without it, one under `runs/` that depends on input and settings. An attempt that
    was cut short is continued, and a run that is there already and would come out the same is opened.
    `readers_from` are Python files and modules whose readers come beside the installed ones.
    `turns` is the rule that turns are cut by, `exchange` or `eva`. `tool_failed` are patterns of tool results that
    mean failure, `speech_tools` the tools through which the agent speaks to the user, `session_gap` the hours of
    silence after which a session id is another conversation. `flows` are files and folders of flow definitions,
    beside those that lie among the logs.
    `label` names a field of the record that is the user's own verdict, such as `reward`, or `csat >= 4` where it
    is a number: it decides what is done and what is lost, and leads ranking and pass^k.
    `annotate` names an annotator, such as `rules`: what it finds is kept with each conversation, and metrics see it.
    `targets`, such as `tools.success >= 90%`, are kept with the run; its reports hold the figures
    against them. `engine` does the work, by default `workers` processes on this machine.
    """
    if out is not None:
        _check_place(Path(out))
    engine = engine or local.LocalEngine(workers)
    if any(not names for names in by or ()):
        raise UsageError("a group needs a dimension", hint="for example flow, or flow,agent")
    by = None if by is None else [list(dict.fromkeys(names)) for names in by]
    settings = read_settings(turns, tool_failed, speech_tools, session_gap)
    chosen = choose(metrics, metrics_from, resources)
    check_tables(chosen.tables)
    rule = None if label is None else label_rule(label)
    wanted = kept_texts([targets] if isinstance(targets, str) else targets, chosen.metrics)
    with keeping(lambda: "nothing was scored yet"):
        files = _files(source)
        with files.folder or nullcontext():
            job = plan_job(
                files.paths,
                chosen,
                metrics_from=metrics_from,
                readers_from=readers_from,
                limit=limit,
                format=format,
                settings=settings,
                flows=flows,
                part_bytes=part_bytes,
                max_concurrency=max_concurrency,
                annotate=annotate,
            )
            with closing(job.session):
                builder = _RunBuilder(job, by, wanted, rule)
                return builder.run(_out(out, builder), engine, strict, progress or (lambda _: None))


def _files(source: Any) -> SpooledFiles:
    """The paths that were given; streams, and conversations made in Python, are first written to a file."""
    if isinstance(source, str | os.PathLike):
        return as_files([source])
    things = iter(source)
    first = next(things, None)
    if first is None:
        raise NothingReadable("there is nothing to score")
    if isinstance(first, str | os.PathLike):
        return as_files([first, *things])
    folder = tempfile.TemporaryDirectory(prefix="convoscope-")
    path = Path(folder.name) / "conversations.jsonl"
    with path.open("wb") as stream:
        for conversation in (first, *things):
            if not isinstance(conversation, Conversation):
                folder.cleanup()
                raise UsageError(f"cannot score a {type(conversation).__name__}", hint="give paths, or conversations")
            stream.write(to_json(conversation) + b"\n")
    return SpooledFiles([path], folder)


def _out(out: PathLike | None, builder: _RunBuilder) -> Path:
    if out is not None:
        return Path(out)
    stem = re.sub(r"[^\w.-]+", "-", Path(builder.job.paths[0]).resolve().name).strip("-") or "run"
    return DEFAULT_FOLDER / f"{stem}-{canonical_hash(builder.depends_on)[7:15]}"


def _check_place(out: Path) -> None:
    """Refuse what could not become the folder of a run, before anything is done."""
    if not is_utf8(out.resolve()):
        raise UsageError(f"the path {os.fsencode(out)!r} is not UTF-8", hint="choose another --out")
    if out.is_symlink() and not out.exists():
        raise RunError(f"{out} is a broken link", hint="choose another --out, or create its target")


class _RunBuilder:
    """One run to be made: the job, and what it depends on."""

    def __init__(
        self, job: Job, by: Sequence[Sequence[str]] | None, targets: Sequence[str], label: LabelRule | None
    ) -> None:
        self.started, self._began = now(), perf_counter()
        self.job, self.by, self.report = job, by, job.report
        self.label = None if label is None else SettledLabel(label)
        self.signatures = {one.key: signature(one) for one in job.metrics}
        self.config: dict[str, Any] = {
            "metrics": {one.key: one.version for one in job.metrics},
            "turn_rule": job.settings.turn_rule or DEFAULT_TURN_RULE,
            "limit": job.limit,
            "by": None if by is None else [list(names) for names in by],
            "format": job.format,
            "interval": {"level": intervals.LEVEL},
        }
        if job.definitions:
            self.config["flows"] = {flow.name: canonical_hash(flow) for flow in job.definitions}
        if strange := {one.name: table_signature(one) for one in job.tables if one.name not in installed().tables}:
            self.config["tables"] = strange
        for name in ("tool_failed", "speech_tools", "session_gap"):
            if (value := getattr(job.settings, name)) != getattr(DEFAULT_SETTINGS, name):
                self.config[name] = value
        if label is not None:
            self.config["label"] = label.text
        if job.annotator is not None:
            self.config["annotate"] = job.annotator.identity
        if targets:
            self.config["targets"] = list(targets)
        if job.resources:
            self.config["resources"] = job.session.identities()
        self.config_hash = canonical_hash(self.config)
        try:
            self.hashes, self.input_hash = hash_inputs([(one, fingerprint(one)) for one in job.inputs])
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", file=str(error.filename)) from None
        self.depends_on = {
            "settings": self.config_hash,
            "metrics": canonical_hash(self.signatures),
            "input": self.input_hash,
            "version": versions()["convoscope"],
            "sources": canonical_hash([sources(), reader_sources(one.reader for one in job.inputs)]),
        }
        self.timings = Timings()
        self.flows: dict[str, Flow] = {}

    def run(self, out: Path, engine: Engine, strict: bool, progress: Callable[[Progress], None]) -> Run:
        if is_taken(out):
            return self._existing(out, strict)
        if not self.job.inputs:
            raise nothing_readable(self.report)
        if self.label is not None:
            self.label = settled(self.label.rule, self.job.inputs, self.job.limit, self.job.part_bytes)
        unfinished = Partial(out, {**self.depends_on, "part_bytes": str(self.job.part_bytes)})
        try:
            if not unfinished.is_late:
                with keeping(lambda: unfinished.kept):
                    self._make(unfinished, engine, strict, progress)
                    return Run.open(unfinished.publish())
            unfinished.discard()
        except (NothingReadable, InputError):
            unfinished.discard()
            raise
        finally:
            unfinished.close()
        return self._existing(out, strict)

    def _existing(self, out: Path, strict: bool) -> Run:
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
        _refuse_problems(run.read_report, strict)
        tidy(out)
        return run

    def _make(self, unfinished: Partial, engine: Engine, strict: bool, progress: Callable[[Progress], None]) -> None:
        if unfinished.notice:
            self.report.warnings.append(unfinished.notice)
        if unfinished.finished:
            _refuse_problems(unfinished.read_report, strict)
            return
        parts = self._score_parts(unfinished, engine, progress)
        report = self.report
        conversations = 0
        for number in sorted(parts):
            # What the limit leaves out was not asked for, and is not reported.
            if self.job.limit is not None and conversations >= self.job.limit:
                break
            conversations += parts[number].conversations
            report.merge(parts[number].report)
            self.timings.add(parts[number].timings)
            self.flows = parts[number].flows | self.flows
        if not conversations:
            raise nothing_readable(report)
        unused = [flow.name for flow in self.job.definitions if flow.name not in self.flows]
        if unused:
            report.warnings.append(f"no conversation uses these declared flows: {', '.join(unused)}")
        if self.job.settings.speech_tools and "speech_through_tool" not in report.inferred:
            tools = ", ".join(self.job.settings.speech_tools)
            report.warnings.append(
                f"--speech-tool {tools}: no call says anything that the log does not have as a message"
            )
        # One that nobody ran is kept too: all of its states are untested.
        self.flows = {flow.name: flow for flow in self.job.definitions} | self.flows
        _refuse_problems(report, strict)
        if self.job.limit is not None and conversations > self.job.limit:
            report.conversations = self.job.limit
            report.warnings.append(f"only the first {self.job.limit:,} conversations were scored; there are more")
        self._finish(unfinished, engine.workers, report, strict, progress)

    def _note_predictions(self, tables: Tables, report: ReadReport, strict: bool) -> None:
        """Tell which predictions cannot be read, and which are of no dialogue of the run.

        What a limit left out might be theirs.
        """
        beside = {Path(path) for item in self.job.inputs for path in item.companions}
        if load_predictions(sorted(beside)) is not None:
            report.add_notes(unread_records(beside))
            if self.job.limit is None:
                report.add_notes(without_dialogue(beside, conversation_ids(tables)))
            _refuse_problems(report, strict)

    def _score_parts(
        self, unfinished: Partial, engine: Engine, progress: Callable[[Progress], None]
    ) -> dict[int, PartDone]:
        job = self.job
        seen = sum(part.conversations for part in unfinished.done.values())
        kinds = axis_of(job.metrics)
        fields = dict.fromkeys(name for names in self.by or () for name in names if name not in kinds)
        writer = RunFiles(unfinished.folder.resolve(), job.tables, tuple(fields))
        rule = None if self.label is None else self.label.rule
        # Closed at once when anything goes wrong, and with it the workers.
        with closing(job.parts(engine, writer, unfinished.scratch, unfinished.done, rule)) as parts:
            for part in parts:
                unfinished.finish_part(part)
                seen += part.conversations
                done = min(job.bytes_total, len(unfinished.done) * job.part_bytes)
                progress(Progress("scoring", seen, len(unfinished.done), done, job.bytes_total))
        return unfinished.done

    def _finish(
        self,
        unfinished: Partial,
        workers: int,
        report: ReadReport,
        strict: bool,
        progress: Callable[[Progress], None],
    ) -> None:
        folder, scratch = unfinished.folder, unfinished.scratch
        scratch.mkdir(exist_ok=True)
        progress(Progress("writing", report.conversations))
        began = perf_counter()
        done = [part for _, part in sorted(unfinished.done.items())]
        tables = finish_tables(folder, done, self.job.metrics, self.job.limit, self.job.session.names)
        finished = perf_counter()
        self._note_predictions(tables, report, strict)
        if tables.shared:
            some = ", ".join(tables.shared[:MAX_SHARED_IDS]) + (", …" if len(tables.shared) > MAX_SHARED_IDS else "")
            report.warnings.append(f"several conversations share an id; a number was added to it: {some}")
        progress(Progress("reducing", report.conversations))
        label = None if self.label is None else read_label(tables, *self.label)
        report.warnings += label.warnings if label is not None else ()
        # What the limit leaves out was not asked for.
        absent = [] if self.job.limit is not None else absent_samples(self.job.inputs, tables, report)
        report.warnings += _without_conversation(absent)
        summary = summarise(
            tables,
            self.job.metrics,
            profiles=tables.profiles,
            config_hash=self.config_hash,
            input_hash=self.input_hash,
            by=self.by,
            scratch=scratch,
            resources=self.job.session.names,
            label=None if label is None else label.counts,
            absent=len(absent),
        )
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
            workers=workers,
            parts=list(tables.parts),
            timings={name: round(seconds, 3) for name, seconds in timings.items()},
        )
        write_summary(folder / SUMMARY, summary)
        write_json(folder / FLOWS, sorted(self.flows.values(), key=lambda flow: flow.name))
        write_json(folder / READ_REPORT, report.ordered())
        write_json(folder / RECEIPT, receipt)
        run = Run(folder, receipt)
        write_combined(run, self.job.tables)
        if run.tables.side_tables():
            progress(Progress("auditing", report.conversations))
            write_json(folder / RECEIPT, audited(run, self.job.tables))
        unfinished.finish()


def _without_conversation(samples: Sequence[str]) -> Iterator[str]:
    if samples:
        few = ", ".join(map(one_line, samples[:MAX_SHARED_IDS])) + (", …" if len(samples) > MAX_SHARED_IDS else "")
        who = "1 sample has" if len(samples) == 1 else f"{len(samples):,} samples have"
        yield f"{who} gold labels and no conversation ({few}): unmeasured, no_conversation"


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


def _refuse_problems(report: ReadReport, strict: bool) -> None:
    """With --strict: refuse what could not be read, whole records and single values of records."""
    lost = sum(tally.count for tally in report.set_aside.values())
    if not strict or not (report.problem_count or lost):
        return
    counts = [(report.problem_count, "problem", ""), (lost, "value", " that could not be used")]
    title = " and ".join(f"{n:,} {noun}{'' if n == 1 else 's'}{rest}" for n, noun, rest in counts if n)
    problems = [str(one) for one in report.problems]
    problems += [f"{place}: {code}" for code, tally in sorted(report.set_aside.items()) for place in tally.examples]
    raise InputError(
        "\n  ".join([title, *(one_line(each, None) for each in problems[:MAX_PROBLEMS])]),
        hint="without --strict, everything else is scored",
    )


__all__ = ["Progress", "make_run"]
