"""A run is made: its job is scored part by part, and what comes of it is kept. What `convoscope score` does."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing, nullcontext
from inspect import Parameter, Signature
from itertools import count, filterfalse
from pathlib import Path
from time import perf_counter
from typing import Any, Concatenate, ParamSpec

import msgspec

from convoscope.conversation import DEFAULT_TURN_RULE, Conversation, Flow
from convoscope.errors import InputError, RunError, UsageError, keeping
from convoscope.harmless import is_utf8, one_line
from convoscope.ingest.companions.predictions import PredictionFiles, unused_predictions
from convoscope.ingest.companions.verdicts import Verdicts, unused_verdicts
from convoscope.ingest.discover import hashed_inputs
from convoscope.ingest.io.streams import as_files
from convoscope.ingest.known_pieces import KnownParts
from convoscope.ingest.looks import Looks
from convoscope.ingest.read import PathLike, nothing_readable, refuse_unmatched_speakers
from convoscope.ingest.recordings import SHARED, recordings_of
from convoscope.ingest.report import FILE_IS_ONE, NoteTally, ReadReport
from convoscope.ingest.settings import DEFAULT_SETTINGS
from convoscope.metrics.declaration import Metric
from convoscope.metrics.registry import installed
from convoscope.metrics.semantic.findings import GOLD_LABELS
from convoscope.metrics.signatures import signature, table_signature
from convoscope.resources.registry import JUDGE, RECORDING
from convoscope.runs.audit import audit
from convoscope.runs.calibrations import calibrations_for, recalibrate, with_calibrations
from convoscope.runs.conversations import conversation_ids, some_fields
from convoscope.runs.database import Tables
from convoscope.runs.finish import finish_tables
from convoscope.runs.growth import link_parts, parts_of, write_parts
from convoscope.runs.judging import failure_warnings, judging_summary, unanswered_parts
from convoscope.runs.known_logs import code_of, known_logs, unchanged, write_logs
from convoscope.runs.lost import (
    GOES_ON,
    Row,
    is_of_logs,
    kept_count,
    kept_parts,
    lost_rows,
    refuse_other_flows,
    refuse_other_verdicts,
    without_rests,
)
from convoscope.runs.part_files import RunFiles
from convoscope.runs.partial import Partial, is_taken, tidy
from convoscope.runs.receipt import Receipt, canonical_hash, hash_inputs, now, versions
from convoscope.runs.rewrite import with_fewer_parts
from convoscope.runs.run import FLOWS, LOOKS, READ_REPORT, RECEIPT, SUMMARY, Run, write_json, write_summary
from convoscope.runs.score_columns import MOST_KEPT_OF_NEW, ScoreColumns
from convoscope.runs.sql import check_tables, write_combined
from convoscope.runs.stored import StoredRun
from convoscope.runs.subjects import axis_of
from convoscope.runs.summarise import absent_samples, read_label, summarise
from convoscope.runs.summary import Summary
from convoscope.runs.targets import kept_texts
from convoscope.scores.side_tables import SideTable
from convoscope.scoring.annotators import provided_rules
from convoscope.scoring.engines import Engine, engine_for
from convoscope.scoring.job import Job, choose, plan_job
from convoscope.scoring.labels import LabelOfInput, LabelRule, fields_hint, label_of_input, label_rule
from convoscope.scoring.partition import InputRule, PartDone, Timings
from convoscope.scoring.settings import ScoreSettings
from convoscope.statistics import intervals
from convoscope.statistics.panels import MEDIAN
from convoscope.storage import as_path, is_remote

DEFAULT_FOLDER = Path("runs")
MAX_NAMED = 5
_MOST_NAMED = 3
_APART = ("flows", "targets")
"""Settings that may change. Other flow definitions score everything again; targets change no score."""
_GROWING = {"input", "not read", "recordings", *_APART}
"""What may change of a run that is there already: it grows."""
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


def run_with(source: Any, settings: ScoreSettings, complete: Callable[[Run], None] = lambda _: None) -> Run:
    """Score the conversations of a source, and keep the run.

    `complete` adds what else belongs to it, while it is on this machine: what is in a store comes there last.
    """
    if settings.out is not None:
        _check_out(as_path(settings.out))
    engine = engine_for(settings.engine, settings.workers)
    _ = settings.reading  # what cannot be meant is refused before anything is done
    named = settings.named_judges()
    judges = () if named is None else named.resources
    chosen = choose(
        settings.metrics,
        settings.metrics_from,
        (*settings.resources, *judges, *settings.recognisers),
        settings.annotate,
        use_audio=settings.use_audio,
        fetch_audio=settings.fetch_audio,
    )
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
            known = known_logs(files.paths, settings)
            job = plan_job(files.paths if are_paths else things, chosen, settings, again, known)
            with closing(job.session):
                builder = _RunBuilder(job, wanted, rule, engine)
                out = _out(settings.out, builder)
                if is_remote(out):
                    return builder.run_in_store(out, complete)
                run = builder.run(out)
                complete(run)
                return run


make_run = with_settings(run_with, ScoreSettings)


def _out(out: PathLike | None, builder: _RunBuilder) -> Path:
    if out is not None:
        return as_path(out)
    stem = re.sub(r"[^\w.-]+", "-", builder.job.name).strip("-") or "run"
    return DEFAULT_FOLDER / f"{stem}-{canonical_hash(builder.depends_on)[7:15]}"


def _check_out(out: Path) -> None:
    """Refuse what could not become the folder of a run, before anything is done."""
    if is_remote(out):
        return
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
        self.config |= {} if self.settings.since is None else {"since": self.settings.since}
        # A judge that is sent sound answers more.
        self.config |= {"judge_audio": self.settings.judge_audio} if self.settings.send_audio else {}
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
        self.depends_on = self._dependencies()
        self.stored: StoredRun | None = None
        """Where the parts are kept, too, of a run in an object store."""
        self.timings = Timings()
        self.flows: dict[str, Flow] = {}
        self.base: Run | None = None
        """The run that grows."""
        self.scores: ScoreColumns | None = None
        """What the summary was made of, kept for the page."""

    def _dependencies(self) -> dict[str, str]:
        """Hashes of all that could make the run come out otherwise."""
        hashed = hashed_inputs(self.job.input.inputs, self.report)
        self.hashes, self.input_hash = hash_inputs(hashed)
        # What went away since it was listed is as if it had never been there.
        inputs = tuple(item for item, _ in hashed)
        self.job = msgspec.structs.replace(self.job, input=self.job.input._replace(inputs=inputs))
        depends_on = {
            "settings": self.config_hash,
            "metrics": canonical_hash(self.signatures),
            "input": self.input_hash,
            "version": versions()["convoscope"],
            "sources": code_of(one.reader for one in self.job.input.inputs),
        }
        if self.report.problems or self.report.files:
            # An empty log adds nothing to the input, but something to what is reported of it.
            depends_on["not read"] = canonical_hash(self.report)
        if RECORDING in self.job.session.resources and (
            files := recordings_of(self.job.input.inputs, self.settings.reading.audio)
        ):
            depends_on["recordings"] = canonical_hash(files)
        return depends_on

    def run_in_store(self, out: Path, complete: Callable[[Run], None]) -> Run:
        """Make the run on this machine, part by part, and keep it in an object store."""
        with StoredRun(out, self._identity, self._may_change) as stored, stored.named():
            is_same = stored.receipt is None or not (self._grows(stored.receipt) or self._grows_by_sound(Run.open(out)))
            if stored.is_taken and is_same:
                stored.finish_earlier()
                run = self._existing(out)
                complete(run)
                return run
            self.stored = stored
            stored.bring()
            run = self.run(stored.local)
            complete(run)
            return stored.publish(run)

    @property
    def _identity(self) -> dict[str, str]:
        """What decides whether an unfinished run can be gone on from."""
        apart = {name: canonical_hash(self.config[name]) for name in _APART if name in self.config}
        settings = {"settings": _hash_of_others(self.config), "part_bytes": str(self.settings.part_bytes)}
        return {**self.depends_on, **settings, **apart}

    @property
    def _may_change(self) -> Set[str]:
        """What may change between two attempts. A limit counts the conversations of all parts, from the first on."""
        return _GROWING if self.settings.limit is None else frozenset()

    def run(self, out: Path) -> Run:
        return self._existing(out) if is_taken(out) else self._made(out)

    def _made(self, out: Path) -> Run:
        inputs, settings = self.job.input.inputs, self.settings
        if not inputs:
            raise nothing_readable(self.report)
        if self.label is not None:
            may_come = settings.ended_after > 0
            self.label = label_of_input(self.label.rule, inputs, settings.limit, settings.part_bytes, may_come=may_come)
        self.rules = [] if self.label is None else [self.label.rule]
        asked = any(GOLD_LABELS in one.needs for one in self.metrics if isinstance(one, Metric))
        # An annotator that runs here says itself what it provides.
        if asked and self.job.annotator is None:
            self.rules += provided_rules(inputs, settings.limit, settings.part_bytes)
        depends_on = self._identity
        if self.base is not None:
            depends_on["run"] = self.base.receipt.run_id
        unfinished = Partial(out, depends_on, None if self.base is None else self.base.receipt, self._may_change)
        unfinished.address = self.stored.partial if self.stored is not None else ""
        try:
            if unfinished.is_earlier:
                unfinished.publish()
            elif not unfinished.is_late:
                with keeping(lambda: unfinished.kept):
                    self._make(unfinished)
                    run = Run.open(unfinished.publish())
                    run.hold(self.job.session.held, self.scores)
                    return run
            elif self.base is None:
                unfinished.discard()
        except (InputError, UsageError):
            if not unfinished.is_resumed:
                unfinished.discard()
            raise
        finally:
            unfinished.close()
        return self._existing(out)

    def _existing(self, out: Path) -> Run:
        """No run is overwritten: one that would come out the same is as good as a new one, one of less input grows."""
        try:
            run = Run.open(out)
        except RunError:
            raise RunError(f"{out} exists and is not a run", hint="choose another --out") from None
        if self._grows(run.receipt) or self._grows_by_sound(run):
            return self._grown(run)
        changed = self._changed(run.receipt)
        if self.settings.limit is not None and self._has_other_sound(run):
            changed.append("recordings")
        if changed:
            hint = "choose another --out, or move that run away"
            before, since = run.receipt.config, run.receipt.config.get("since")
            others = [name for name in {**before, **self.config} if before.get(name) != self.config.get(name)]
            if since is not None and since != self.settings.since and {*others} <= {"since", *_APART}:
                hint = f"it has only what began on {since} or later: --since {since} goes on with it"
            if changed == ["targets"]:
                hint += "; if only its targets should be others, `convoscope report --target` needs no new run"
            if {"version", "sources"} & {*changed}:
                hint = "its logs must be scored again, by this version and with another --out; keep the run until then"
                hint += ": what is gone from the logs is in it alone" if run.receipt.kept else ""
            # Each is named once, the settings by their own names.
            named = dict.fromkeys(name for one in changed for name in (others if one == "settings" else [one]))
            which = _other_metrics(before["metrics"], self.config["metrics"])
            raise RunError(f"{out} holds another run: {', '.join(named)} changed{which}", hint=hint)
        self._refuse_problems(run.read_report)
        tidy(out)
        # People may have labelled since.
        recalibrate(run, lambda: calibrations_for(self.settings))
        return run

    def _changed(self, receipt: Receipt) -> list[str]:
        """What a run depends on that is another by now."""
        before = receipt.depends_on
        changed = [name for name in {**before, **self.depends_on} if before.get(name) != self.depends_on.get(name)]
        if "settings" in changed and _hash_of_others(receipt.config) == _hash_of_others(self.config):
            at = changed.index("settings")
            changed[at : at + 1] = [name for name in _APART if receipt.config.get(name) != self.config.get(name)]
        return changed

    def _grows(self, receipt: Receipt) -> bool:
        changed = self._changed(receipt)
        again = receipt.running or (receipt.unanswered and self.settings.judge_cache)
        grows = changed or again or (receipt.kept and not self.settings.keep)
        return bool(grows) and set(changed) <= _GROWING and self.settings.limit is None

    def _grows_by_sound(self, run: Run) -> bool:
        """Whether nothing but recordings that the logs have elsewhere changed, as if they were beside the logs."""
        return self.settings.limit is None and not self._changed(run.receipt) and self._has_other_sound(run)

    def _has_other_sound(self, run: Run) -> bool:
        listens = RECORDING in self.job.session.resources
        return listens and not all(state.is_same for part in parts_of(run) for state in part.recordings)

    def _grown(self, run: Run) -> Run:
        """The run with what is new in the input, as if all of it had been scored at once."""
        if not run.receipt.valid:
            raise RunError(f"{run.folder} is marked invalid: it does not grow", hint="choose another --out")
        self.base = run
        return self._made(run.folder)

    def _make(self, unfinished: Partial) -> None:
        if unfinished.notice:
            self.report.warnings.append(unfinished.notice)
        if unfinished.finished:
            self._refuse_problems(unfinished.read_report)
            return
        before = {*unfinished.done}
        parts, report, limit = self._score_parts(unfinished), self.report, self.settings.limit
        if resumed := len(before.intersection(part.part for part in parts)):
            report.warnings.append(f"resuming: {'1 part is' if resumed == 1 else f'{resumed:,} parts are'} done")
        for part in unfinished.done.values():
            self.timings.add(part.timings)
        conversations = 0
        for part in parts:
            # What the limit leaves out was not asked for, and is not reported.
            if limit is not None and conversations >= limit:
                break
            conversations += part.conversations
            report.merge(part.report)
            self.flows = part.flows | self.flows
        if not conversations:
            raise nothing_readable(report)
        _note_shared(parts, report)
        if running := sum(part.running for part in parts):
            report.warnings.append(f"{running:,} conversations go on right now: they are not counted")
        if more := report.ignored.get(GOES_ON, 0):
            what = "1 conversation goes on after its log was" if more == 1 else f"{more:,} go on after their logs were"
            report.warnings.append(f"{what} gone: it is as it was scored, and what came later is not in the figures")
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
        self._finish(unfinished, report, parts)

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

    def _score_parts(self, unfinished: Partial) -> list[PartDone]:
        """All parts, in the order of the input. Those of a run that grows stay, where they are unchanged."""
        job, base = self.job, self.base
        earlier = {} if base is None else {one.part: one for one in parts_of(base)}
        known = self._known_parts(unfinished, earlier)
        seen = sum(part.conversations for part in unfinished.done.values())
        kinds = axis_of(self.metrics)
        fields = dict.fromkeys(name for names in self.by or () for name in names if name not in kinds)
        address = self.stored.partial if self.stored is not None else ""
        writer = RunFiles(unfinished.folder.resolve(), job.chosen.tables, tuple(fields), address)
        with (
            closing(Looks(None if base is None else base.tables.own(LOOKS), unfinished.folder / LOOKS)) as looks,
            # Closed at once when anything goes wrong, and with it the workers.
            closing(
                job.parts(self.engine, writer, unfinished.scratch, unfinished.done, self.rules, known, looks)
            ) as parts,
        ):
            for part in parts:
                if self.stored is not None:
                    self.stored.keep(part, unfinished.folder)
                unfinished.finish_part(part)
                seen += part.conversations
                done = min(job.bytes_total, len(unfinished.done) * self.settings.part_bytes)
                self.settings.report("scoring", seen, len(unfinished.done), done, job.bytes_total)
        if known is None:
            return [part for _, part in sorted(unfinished.done.items())]
        in_order = [(earlier | unfinished.done)[number] for number in known.order]
        if base is None:
            return in_order
        lost = lost_rows(base, earlier.values(), unfinished.folder, in_order)
        free = max(len(base.receipt.parts), *(1 + number for number in unfinished.done), 0)
        self._note_loss(base, lost)
        wanted = {one.part for one in in_order} | {one.part for one in lost}
        link_parts(base, unfinished.folder, [one for one in earlier.values() if one.part in wanted])
        if self.settings.keep:
            gap = self.settings.reading.session_gap
            in_order = without_rests(base, lost, unfinished.folder, in_order, earlier.keys(), free, gap)
            free = max(free, *(1 + one.part for one in in_order), 0)
            kept = kept_parts(earlier, unfinished.folder, lost, free)
            if self.label is not None:
                refuse_other_verdicts(unfinished.folder, kept, self.label.rule)
            if base.receipt.config.get("flows") != self.config.get("flows"):
                refuse_other_flows(kept)
            in_order = [*kept, *in_order]
            free = max(free, *(1 + one.part for one in kept), 0)
        return with_fewer_parts(unfinished.folder, in_order, free)

    def _known_parts(self, unfinished: Partial, earlier: Mapping[int, PartDone]) -> KnownParts | None:
        """The parts that are there, of the run that grows and of an earlier attempt; None where there is none.

        With a limit, those of an earlier attempt are of the same input, and keep their numbers.
        """
        base, done = self.base, unfinished.done
        if base is None and (not done or self.settings.limit is not None):
            return None
        # Of what was kept, parts of the logs may have left out the rest.
        is_new = base is not None and bool(base.receipt.kept) and not self.settings.keep
        parts = [*(() if is_new else earlier.values()), *done.values()]
        asked = base is not None and base.receipt.unanswered and self.settings.judge_cache
        again = unanswered_parts(base.tables) if base is not None and asked else set[int]()
        again |= {one.part for one in parts if not all(state.is_same for state in one.recordings)}
        known = [(one.part, one.pieces) for one in parts if not (one.running or one.part in again)]
        # Parts of an unfinished run may be of a log as it was in between.
        same = unchanged(base.receipt.inputs, self.hashes) if base is not None and not done else frozenset[str]()
        # What an earlier attempt left out gets the numbers that it left out: the run is as if it had never stopped.
        free = filterfalse({*done}.__contains__, count(0 if base is None else len(base.receipt.parts)))
        return KnownParts(known, free, self.job.surroundings(self.rules), same)

    def _note_loss(self, base: Run, lost: Sequence[Row]) -> None:
        """What was scored and is no longer in the logs stays in the run or leaves it only if the user says so."""
        if not lost:
            return
        count = "1 conversation" if len(lost) == 1 else f"{len(lost):,} conversations"
        which = f"no longer in the logs as they were: {count} of {base.folder}"
        names = _few([one_line(one.id) for one in lost])
        if not (self.settings.prune or self.settings.keep):
            hint = "--keep leaves them in the run, --prune takes them out; else name all of its logs"
            raise RunError(f"{which}: {names}", hint=hint)
        what = "the figures are over them, too" if self.settings.keep else "they left the run"
        self.report.warnings.append(f"{which}; {what}: {names}")

    def _finish(self, unfinished: Partial, report: ReadReport, done: Sequence[PartDone]) -> None:
        folder, scratch = unfinished.folder, unfinished.scratch
        scratch.mkdir(exist_ok=True)
        self.settings.report("writing", report.conversations)
        began = perf_counter()
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
        is_partial = self.settings.limit is not None or self.settings.since is not None
        absent = [] if is_partial else absent_samples(self.job.input.inputs, tables, report)
        if absent:
            who = "1 sample has" if len(absent) == 1 else f"{len(absent):,} samples have"
            samples = _few([one_line(name) for name in absent])
            report.warnings.append(f"{who} gold labels and no conversation ({samples}): unmeasured, no_conversation")
        self.scores = ScoreColumns(tables, MOST_KEPT_OF_NEW, sets_aside=True)
        summary = summarise(
            tables,
            self.metrics,
            rows=self.scores,
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
        # A run may grow twice in a second, of the same input: what went on has ended.
        identity = {**self.depends_on, **({} if self.base is None else {"run": self.base.receipt.run_id})}
        receipt = Receipt(
            run_id=f"run-{self.started.replace('-', '').replace(':', '')}-{canonical_hash(identity)[7:13]}",
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
            order=[] if self.base is None and tables.order == sorted(tables.order) else tables.order,
            resources=sorted(self.job.session.names),
            running=sum(part.running for part in done),
            unanswered=self._unanswered(tables, done),
            kept=kept_count(done),
            generation=0 if self.base is None else self.base.receipt.generation + 1,
            timings={name: round(seconds, 3) for name, seconds in timings.items()},
        )
        write_summary(folder / SUMMARY, summary)
        write_json(folder / FLOWS, sorted(self.flows.values(), key=lambda flow: flow.name))
        write_json(folder / READ_REPORT, report.ordered())
        write_parts(folder, done)
        write_logs(folder, self.job.input.inputs, self.hashes, self.settings)
        write_json(folder / RECEIPT, receipt)
        run = Run(folder, receipt)
        write_combined(run, self.job.chosen.tables)
        if run.tables.side_tables():
            self.settings.report("auditing", report.conversations)
            write_json(folder / RECEIPT, audited(run, self.job.chosen.tables))
        unfinished.finish()

    def _unanswered(self, tables: Tables, done: Sequence[PartDone]) -> int:
        """How many parts hold scores that a judge did not give, and can be scored again."""
        if JUDGE not in self.job.session.resources:
            return 0
        return len(unanswered_parts(tables) & {part.part for part in done if is_of_logs(part)})

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


def _other_metrics(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """`; it has agent.repetition, and not conversation.turns`: what a run was asked for, and what it is asked for."""

    def listed(names: Sequence[str]) -> str:
        more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
        return ", ".join(names[:_MOST_NAMED]) + more

    besides, lacks = [name for name in before if name not in now], [name for name in now if name not in before]
    if not besides:
        return f"; it does not have {listed(lacks)}" if lacks else ""
    return f"; it also has {listed(besides)}" + (f", and not {listed(lacks)}" if lacks else "")


def _hash_of_others(config: Mapping[str, Any]) -> str:
    """Of the settings that may not change."""
    return canonical_hash({name: value for name, value in config.items() if name not in _APART})


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


def _note_shared(parts: Iterable[PartDone], report: ReadReport) -> None:
    """Report the recordings that several conversations have, in whatever parts these are."""
    heard: dict[str, NoteTally] = {}
    for part in parts:
        for digest, tally in part.heard.items():
            heard.setdefault(digest, NoteTally()).add(tally.count, tally.examples)
    for tally in heard.values():
        if tally.count > 1:
            name = f"{tally.examples[0]} {tally.count:,} times"
            report.inferred.setdefault(SHARED, NoteTally()).add(tally.count, [name])
