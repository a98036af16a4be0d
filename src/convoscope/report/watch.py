"""Logs are followed: what comes is scored, what ended is an event, and the page is renewed."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from convoscope.analysis.answer.make import noun_of
from convoscope.analysis.arrivals import Arrivals, Became, Recent
from convoscope.analysis.policy import HeldRun, hold
from convoscope.analysis.targets import DECLARED, Check
from convoscope.analysis.words import counted, value_text
from convoscope.errors import ConvoscopeError, NothingReadable, RunError, UsageError, is_interrupt, raised_inside
from convoscope.harmless import one_line
from convoscope.ingest.discover import digest_of, is_unfinished
from convoscope.ingest.io.audio_heads import ENDINGS
from convoscope.ingest.read import PathLike
from convoscope.report.page import LiveCall, LivePage, write_news, write_page
from convoscope.runs.growth import PAGE_DUE
from convoscope.runs.make import DEFAULT_FOLDER, run_with
from convoscope.runs.ranking import OUTCOME_METRIC
from convoscope.runs.run import RECEIPT, Run
from convoscope.scoring.job import BEING_WRITTEN
from convoscope.scoring.labels import NOT_YET
from convoscope.scoring.settings import ScoreSettings
from convoscope.statistics.intervals import wilson
from convoscope.storage import (
    LogState,
    StoreError,
    as_path,
    changes_below,
    is_client_error,
    is_remote,
    reason_of,
    store_errors,
)

HOUR = 3600.0
PAGE_SECONDS = 60.0
"""The page is written at most this often: it takes a second. What is new in it is small, and written with each look."""
FEW = 20
"""Of fewer conversations, no share is named."""
COLUMNS, LEAST_TEXT, MOST_TEXT = 80, 20, 42
"""A line fits on a screen, unless its names leave no room for what went wrong."""
ENDED_AFTER = 60.0
MOST_PROBLEMS, MOST_CALLS = 20, 200
"""At one look; on the page."""


class Pace(NamedTuple):
    """Seconds between what happens again and again."""

    every: float = 10.0
    """Looks at the logs."""
    report: float = 600.0
    """Says what the last hour came to."""
    stalled: float = 720.0
    """Without a new line, says so."""


DEFAULT_PACE = Pace()


class WatchEvent(msgspec.Struct, frozen=True, kw_only=True, tag_field="event"):
    """Something that happened while logs were followed. As text it is the line of the terminal."""

    time: str = msgspec.field(default_factory=lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))

    def __str__(self) -> str:
        return f"{time.strftime('%H:%M')}  -- {self.words}"

    @property
    def words(self) -> str:
        """What it says."""
        raise NotImplementedError


class WatchBegun(WatchEvent, frozen=True, kw_only=True, tag="following"):
    """Logs are followed from now on."""

    logs: str
    files: int
    known: int
    """Conversations that are there already: they are no news."""

    def __str__(self) -> str:
        return f"following {counted(self.files, 'file')} in {self.logs}; Ctrl-C ends\n"


class ConversationEnded(WatchEvent, frozen=True, kw_only=True, tag="ended"):
    """A conversation ended: what `Arrival` says of it."""

    id: str
    outcome: Became
    reached: bool | None
    text: str
    agent: str
    seconds: float | None
    again: bool

    def __str__(self) -> str:
        """`14:27  lost    v2-90411  asked 4 times for the vehicle length       v2  1:36`."""
        start = f"{time.strftime('%H:%M')}  {outcome_word(self.outcome):<6}  {self.id}  "
        end = f"  {self.agent}  {length_text(self.seconds)}"
        room = max(LEAST_TEXT, min(MOST_TEXT, COLUMNS - len(start) - len(end)))
        text = self.text if len(self.text) <= room else self.text[: room - 1] + "…"
        return f"{start}{text:<{room}}{end}"


class HourReport(WatchEvent, frozen=True, kw_only=True, tag="report"):
    """What the last hour came to."""

    span: str
    """`last hour`, or `since 14:02`."""
    noun: str
    ended: int
    done: int
    known: int
    """Of those that ended, how many have an outcome."""
    low: float | None = None
    high: float | None = None
    """The limits of the share, at 95 %. None where there are too few for a share."""
    verdict: str = ""
    """The share against the target of the user on it: `above 80 %`, `below 80 %`, `too close to call: 80 %`."""

    @property
    def words(self) -> str:
        """`last hour: 41 of 58 calls reached their goal (71 %, 58 to 81), too close to call: 80 %`."""
        if not self.known:
            rest = ", outcome unknown" if self.ended else " ended"
            return f"{self.span}: {counted(self.ended, self.noun)}{rest}"
        share = ", too few for a share"
        if self.low is not None and self.high is not None:
            share = f" ({100 * self.done / self.known:.0f} %, {100 * self.low:.0f} to {100 * self.high:.0f})"
        verdict = f", {self.verdict}" if self.verdict else ""
        unknown = self.ended - self.known
        rest = f"; {unknown:,} more, unknown" if unknown else ""
        return (
            f"{self.span}: {self.done:,} of {counted(self.known, self.noun)} reached their goal{share}{verdict}{rest}"
        )


class TargetState(WatchEvent, frozen=True, kw_only=True, tag="target"):
    """A target that the whole run misses, or whose state changed."""

    target: str
    state: str
    before: str = ""

    @property
    def words(self) -> str:
        if self.before:
            return f"target {self.target}: {self.before} before, {self.state} now"
        return f"{self.state}, whole run: {self.target}"


class NotRead(WatchEvent, frozen=True, kw_only=True, tag="problem"):
    """Something in the logs cannot be read, or they cannot be scored just now. It is said once."""

    problem: str

    @property
    def words(self) -> str:
        return self.problem


class LogsStalled(WatchEvent, frozen=True, kw_only=True, tag="stalled"):
    """There was no new line for long."""

    seconds: int

    @property
    def words(self) -> str:
        return "no new line for " + (f"{self.seconds / 60:.0f} min" if self.seconds >= 60 else f"{self.seconds} s")


class Watch:
    """Follows logs. `hold` holds a run against the targets of the user."""

    def __init__(
        self, logs: PathLike, settings: ScoreSettings, hold: Callable[[Run], HeldRun], pace: Pace = DEFAULT_PACE
    ) -> None:
        if min(*pace, settings.ended_after) <= 0:
            raise UsageError("--every, --ended-after, --report and --stalled must be above 0")
        if settings.judge:
            hint = "score the same logs with --judge and another --out, at night"
            raise UsageError("watch asks no judge", hint=hint)
        self.run: Run | None = None
        self._logs, self._settings, self._hold, self._pace = as_path(logs), settings, hold, pace
        self._arrivals, self._recent = Arrivals(), Recent(HOUR)
        self._states: dict[str, str] = {}
        self._files: dict[str, LogState] = {}
        self._contents: dict[str, str] = {}
        """Hashes of the logs that are not empty."""
        self._newest = 0.0
        """When the newest line was written, in seconds since 1970."""
        self._said: set[str] = set()
        self._troubles: list[str] = []
        """Why the last look came to nothing."""
        self._new_troubles: list[str] = []
        self._quiet_since = self._reported = self._began = time.monotonic()
        self._began_at = time.strftime("%H:%M")
        self._is_stalled, self._noun = False, "conversation"
        self._shown = ""
        """The id of the run whose arrivals were shown."""
        self._page_written = self._due = 0.0
        self._shown_in_news = ""
        self._of_page: Run | None = None
        """The run that the page is of."""
        self._reported_words: list[str] = []
        self._is_news = False
        """Something came since it was reported last."""

    def events(self, is_over: Callable[[], bool] = lambda: False) -> Iterator[WatchEvent]:
        """What happens, as it happens. It does not end before `is_over`, which is asked before each look."""
        yield from self._begin()
        while not is_over():
            time.sleep(self._pace.every)
            yield from self._look()

    def end(self) -> None:
        """Write the page of what is there; it says that no process follows the logs any more."""
        if self.run is not None and self._was_replaced():
            self.run = Run.open(self.run.folder)
        self._renew_page(is_end=True)

    def _begin(self) -> Iterator[WatchEvent]:
        """Score what is there; it is no news."""
        self._note_new(files_of(self._logs))
        self._due = time.monotonic() + self._settings.ended_after
        problems = [*self._score()]
        known = 0 if self.run is None else self._arrivals.pass_over(self.run)
        if self.run is not None:
            self._shown, self._noun = self.run.receipt.run_id, noun_of(self.run)
            self._states = {one.name: one.label for one in self._own_checks(self.run)}
        yield WatchBegun(logs=str(self._logs), files=len(self._files), known=known)
        yield from problems

    def _look(self) -> Iterator[WatchEvent]:
        """Look at the logs once. What goes wrong is said once, as long as it stays the same."""
        for step in (self._news, self._regular_news, self._page_renewed):
            try:
                yield from step()
            except Exception as error:
                yield from self._tried_again(error)
        self._troubles, self._new_troubles = self._new_troubles, []

    def _news(self) -> Iterator[WatchEvent]:
        """Score what came."""
        files, now = files_of(self._logs), time.monotonic()
        if is_other := files != self._files:
            if self._note_new(files):
                self._quiet_since, self._is_stalled = now, False
            # Files that are still being written count as soon as they are not.
            self._due = now + self._settings.ended_after
        is_due = bool(self._due) and now >= self._due
        if is_other or is_due:
            self._due = 0.0 if is_due else self._due
            yield from self._score()
            if self.run is not None and self.run.receipt.run_id != self._shown:
                events = [*self._came(self.run)]
                self._shown = self.run.receipt.run_id
                yield from events
            if self.run is not None and self.run.receipt.running and not self._due:
                self._due = now + self._settings.ended_after

    def _note_new(self, files: Mapping[str, LogState]) -> bool:
        """Keep what the logs are, and say whether they hold what no log held at the last look.

        One that was touched, renamed, copied or emptied brings nothing new.
        """
        before, known = self._contents, {*self._contents.values()}
        self._contents = {
            name: before[name] if state == self._files.get(name) and name in before else self._content(name, state)
            for name, state in files.items()
            if state.size and not name.lower().endswith(ENDINGS)
        }
        new = [files[name].changed / 1e9 for name, content in self._contents.items() if content not in known]
        self._newest = max(self._newest, *(min(at, time.time()) for at in new), 0.0)
        self._files = dict(files)
        return bool(new)

    def _content(self, name: str, state: LogState) -> str:
        if state.tag:
            return state.tag
        try:
            return digest_of(self._logs if self._logs.is_file() else Path(name))
        except OSError:  # it went away just now, or cannot be read
            return f"{state.size} {state.changed}"

    def _regular_news(self) -> Iterator[WatchEvent]:
        """What is said when some time has passed."""
        now = time.monotonic()
        if not self._is_stalled and now - self._quiet_since >= self._pace.stalled:
            self._is_stalled = True
            yield LogsStalled(seconds=round(now - self._quiet_since))
        if now - self._reported >= self._pace.report:
            yield from self._report(if_other=True)

    def _page_renewed(self) -> Iterator[WatchEvent]:
        self._renew_page()
        yield from ()

    def _tried_again(self, error: Exception) -> Iterator[NotRead]:
        """Logs come and go, stores stop, another process writes the run: the next look tries again."""
        if is_interrupt(error):
            raise error
        self._due = time.monotonic()
        # Of a run in a store, the database reads what a query needs.
        inside = raised_inside(error)
        if not isinstance(error, ConvoscopeError) and not inside:
            if self._was_replaced():
                # The parts that were being read are no longer there.
                return
            if not isinstance(error, OSError) and not is_client_error(error):
                raise error
        lines = inside or (reason_of(error) if is_client_error(error) else str(error))
        text = one_line("; ".join([*map(str.strip, lines.split("\n")), "tried again"]), None)
        if text not in (*self._troubles, *self._new_troubles):
            yield NotRead(problem=text)
        self._new_troubles.append(text)

    def _score(self) -> Iterator[NotRead]:
        """Score what is new, and say what cannot be read."""
        try:
            run = self._scored()
        except NothingReadable as error:  # nothing is there yet, or all of it is still being written
            texts = error.message.split("\n  ")[1:]
            yield from self._problems(one for one in texts if not one.endswith(BEING_WRITTEN))
            return
        self.run = run
        label = [one for one in run.read_report.warnings if one.startswith(NOT_YET)]
        yield from self._problems([*map(str, run.read_report.problems), *label])

    def _scored(self) -> Run:
        try:
            return run_with([self._logs], self._settings)
        except RunError:
            # `runs prune` has moved its first day.
            since = _since_of(self._settings.out)
            if since is None or since <= (self._settings.since or ""):
                raise
            self._settings = msgspec.structs.replace(self._settings, since=since)
            return run_with([self._logs], self._settings)

    def _problems(self, texts: Iterable[str]) -> Iterator[NotRead]:
        """Each once; of very many, only how many more there are. A file that is written to right now has time."""
        latest = 1e9 * (time.time() - self._settings.ended_after)
        busy = {os.path.basename(name) for name, state in self._files.items() if state.changed > latest}
        new = [text for text in dict.fromkeys(texts) if text not in self._said]
        new = [text for text in new if os.path.basename(text.split(":", 1)[0]) not in busy]
        self._said.update(new)
        for text in new[:MOST_PROBLEMS]:
            yield NotRead(problem=one_line(text, None))
        if len(new) > MOST_PROBLEMS:
            yield NotRead(problem=f"{len(new) - MOST_PROBLEMS:,} more: the read report has them")

    def _was_replaced(self) -> bool:
        """Whether another process has changed the run since it was opened."""
        if self.run is None:
            return False
        try:
            return Run.open(self.run.folder).receipt.run_id != self.run.receipt.run_id
        except RunError:
            return True
        except (OSError, StoreError):  # it cannot be read now: that is no sign of another process
            return False

    def _came(self, run: Run) -> Iterator[WatchEvent]:
        """What ended, and the targets whose state it changed."""
        self._noun = noun_of(run)
        for arrival in self._arrivals.of(run):
            self._recent.add(time.time(), arrival)
            self._is_news = True
            yield ConversationEnded(**msgspec.structs.asdict(arrival))
        before = self._states
        self._states = {one.name: one.label for one in self._own_checks(run)}
        changed = [name for name in sorted(before.keys() & self._states.keys()) if before[name] != self._states[name]]
        for name in changed:
            yield TargetState(target=name, state=self._states[name], before=before[name])
        if changed:
            yield from self._report()

    def _report(self, *, if_other: bool = False) -> Iterator[WatchEvent]:
        """What the last hour came to, and the targets that are not met; `if_other`, only where that is news."""
        self._reported = time.monotonic()
        events = [self._last_hour(), *self._missed()]
        words = [one.words for one in events]
        if not if_other or self._is_news or words != self._reported_words:
            self._reported_words, self._is_news = words, False
            yield from events

    def _last_hour(self) -> HourReport:
        reached = [one.reached for _, one in self._recent.at(time.time())]
        done, known = reached.count(True), len(reached) - reached.count(None)
        report = HourReport(
            span="last hour" if time.monotonic() - self._began >= HOUR else f"since {self._began_at}",
            noun=self._noun,
            ended=len(reached),
            done=done,
            known=known,
        )
        if known < FEW:
            return report
        low, high = wilson(done, known)
        checks = [] if self.run is None else self._own_checks(self.run)
        verdict = next((_verdict(one, low, high) for one in checks if one.name == OUTCOME_METRIC), "")
        return msgspec.structs.replace(report, low=low, high=high, verdict=verdict)

    def _missed(self) -> list[TargetState]:
        """The targets of the user that the whole run does not meet."""
        return [
            TargetState(
                state=check.label,
                target=f"{check.name} {value_text(check.figure.value, check.figure.unit)}, target {limit}",
            )
            for check in ([] if self.run is None else self._own_checks(self.run))
            for limit, _, _ in [check.text.partition(": ")]
            if check.label == "missed"
        ]

    def _own_checks(self, run: Run) -> list[Check]:
        return [check for check in self._hold(run).checks if check.source != DECLARED]

    def _renew_page(self, *, is_end: bool = False) -> None:
        now, run = time.monotonic(), self.run
        if run is None:
            return
        is_due = is_end or not self._page_written or now - self._page_written >= PAGE_SECONDS
        if not is_due and self._shown == self._shown_in_news:
            return
        if is_due:
            due = run.tables.own(PAGE_DUE)
            if due.exists() or not (run.folder / "report.html").exists():
                write_page(run, targets=self._hold(run).targets, live=self._live(run, is_end=is_end))
                due.unlink(missing_ok=True)
            self._of_page, self._page_written = run, now
        write_news(run.folder, self._live(self._of_page or run, is_end=is_end))
        self._shown_in_news = self._shown

    def _live(self, page: Run, *, is_end: bool) -> LivePage:
        """What is new. `page` is the run that the page in the folder is of."""
        run = self.run or page
        return LivePage(
            written=time.time(),
            newest=self._newest,
            every=max(1.0, min(PAGE_SECONDS, self._pace.every)),
            renewed=max(PAGE_SECONDS, self._pace.every),
            ended=is_end,
            stalled=self._pace.stalled,
            logs=str(self._logs),
            run=page.receipt.run_id,
            total=page.summary.conversations,
            running=run.receipt.running,
            answer=self._last_hour().words,
            targets=[one.words for one in self._missed()],
            calls=[
                LiveCall(at, outcome_word(one.outcome), one.id, one.text, one.agent, length_text(one.seconds))
                for at, one in self._recent.at(time.time())[: -MOST_CALLS - 1 : -1]
            ],
        )


def outcome_word(outcome: Became) -> str:
    """`done`, `lost`, `person`; a dot where it is unknown."""
    return "·" if outcome == "unknown" else outcome


def length_text(seconds: float | None) -> str:
    """`1:36`."""
    return "·" if seconds is None else f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def _verdict(check: Check, low: float, high: float) -> str:
    """Whether the whole interval of a share is on one side of a target."""
    target = check.target
    limit = value_text(target.value, check.figure.unit)
    met = {target.is_met_by(low), target.is_met_by(high)}
    return f"too close to call: {limit}" if len(met) > 1 else f"{'meets' if met == {True} else 'misses'} {limit}"


def _since_of(out: PathLike | None) -> str | None:
    """The first day of the conversations of a run."""
    with suppress(RunError):
        return Run.open(as_path(out)).receipt.config.get("since") if out is not None else None
    return None


def watch(
    logs: PathLike,
    *,
    every: float = 10.0,
    report: float = 600.0,
    stalled: float = 720.0,
    targets: str | Sequence[str] = (),
    **options: Any,
) -> Iterator[WatchEvent]:
    """Follow logs: score what comes, and yield what happens, until the loop is left.

    The options are those of `score`. The run is in `out`, or `runs/LOGS-live`. What is gone from the logs stays in it,
    unless `prune` says otherwise. `every`, `report` and `stalled` are seconds: between two looks at the logs, between
    two reports, and without a new line before that is said. The page of the run is written each minute.
    """
    given = [targets] if isinstance(targets, str) else list(targets)
    settings = watch_settings(logs, targets=given, **options)
    following = Watch(logs, settings, lambda run: hold(run, given), Pace(every, report, stalled))
    try:
        yield from following.events()
    finally:
        following.end()


def watch_settings(logs: PathLike, **options: Any) -> ScoreSettings:
    """The settings of a run that follows logs."""
    name = re.sub(r"[^\w.-]+", "-", as_path(logs).resolve().name).strip("-") or "logs"
    usual = {"ended_after": ENDED_AFTER, "keep": not options.get("prune")}
    given = {name: value for name, value in options.items() if value is not None}
    return ScoreSettings(**{"out": DEFAULT_FOLDER / f"{name}-live", **usual, **given})


def files_of(folder: Path) -> dict[str, LogState]:
    """What each file below a folder is, without runs and hidden files."""
    if is_remote(folder):
        with store_errors(folder):
            return changes_below(folder)
    if folder.is_file():
        return {folder.name: _state(folder.stat())}
    files: dict[str, LogState] = {}
    for where, inner, names in os.walk(folder):
        inner[:] = [one for one in inner if not one.startswith(".") and not _is_run(Path(where, one))]
        for name in names:
            with suppress(OSError):  # it went away just now
                files[os.path.join(where, name)] = _state(os.stat(os.path.join(where, name)))
    return files


def _state(status: os.stat_result) -> LogState:
    return LogState(status.st_size, status.st_mtime_ns)


def _is_run(folder: Path) -> bool:
    return (folder / RECEIPT).exists() or is_unfinished(folder)
