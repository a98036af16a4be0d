"""All words and number formats of the reports: values with their units, intervals, reasons, names, counts."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from convoscope.harmless import one_line
from convoscope.ingest.companions.flows import FORMAT as FLOW_DEFINITION
from convoscope.ingest.recordings import SHARED
from convoscope.ingest.report import COPIES, EQUAL, JOINED, MERGED, OVERLAP, RECORDING, SPLIT, ReadReport
from convoscope.ingest.speaker_labels import UNKNOWN_SPEAKER
from convoscope.metrics.declaration import COUNT, RATIO, SHARE
from convoscope.runs.ranking import Basis, Failure
from convoscope.runs.run import Run
from convoscope.runs.summary import DeclaredMetric
from convoscope.runs.trials import Trial
from convoscope.statistics.summary import Figure

if TYPE_CHECKING:
    from convoscope.analysis.flows.state_table import Excluded

NOTHING = "·"
"""Stands for a value that there is not."""
MAX_NAME = 80
MAX_UNREAD = 3
"""Files that are named because nothing was read from them; the others are counted."""
MAX_NAMES = 8
"""So many names in one line; the others are counted."""


def value_text(value: float | None, unit: str) -> str:
    """A value as people write it; a dot where there is none."""
    if value is None:
        return NOTHING
    number = number_text(value, unit)
    return f"{number} %" if unit == SHARE else number if unit in (COUNT, RATIO) else f"{number} {unit}"


def unrounded_text(value: float, mark: float, unit: str) -> str:
    """A value with as many digits as it takes to print unlike the mark that it is held against."""
    text = value_text(value, unit)
    if value == mark or text != value_text(mark, unit):
        return text
    number, _, after = text.partition(" ")
    scale = 100 if unit == SHARE else 1
    longer = (f"{scale * value:,.{digits}f}" for digits in range(2, 17))
    number = next((one for one in longer if one != f"{scale * mark:,.{len(one.partition('.')[2])}f}"), number)
    return f"{number} {after}".strip()


def number_text(value: float, unit: str) -> str:
    """A value without its unit. What is not zero never prints as zero, and what is not all never as all.

    page.js does the same.
    """
    value = (100 * value if unit == SHARE else value) + 0.0
    digits = {SHARE: 1, RATIO: 3}.get(unit, 2)
    if value and abs(value) < 0.5 * 10**-digits:
        return f"{value:.2g}"
    if unit == SHARE and 99.9 < value < 100:
        return "99.9"
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if unit == COUNT else text


def points_text(ten: float | None, declared: DeclaredMetric | None) -> str:
    """What a value is worth on the declared map from 0 to 10, and whether that passes; nothing where there is none.

    What does not pass never prints as the pass mark.
    """
    if ten is None:
        return ""
    mark = declared.ten_points.passes_at if declared is not None and declared.ten_points is not None else None
    text = f"{ten:.1f}"
    if mark is None:
        return text
    if ten < mark <= float(text):
        text = f"{ten:.4g}" if float(f"{ten:.4g}") < mark else f"just below {mark:g}"
    return f"{text}, {'passes' if ten >= mark else f'below {mark:g}'}"


def interval_text(figure: Figure) -> str:
    """The 95 % interval; a dot where there is none."""
    interval = figure.interval
    if interval is None:
        return NOTHING
    # Both ends of a count have their digits, so that columns of them can be read.
    unit = "" if figure.unit == COUNT else figure.unit
    if interval.high is None:
        return f"{number_text(interval.lowest, unit)} or more"
    if interval.low is None:
        return f"{number_text(interval.high, unit)} or less"
    return f"{number_text(interval.low, unit)} to {number_text(interval.high, unit)}"


def coverage_text(figure: Figure, observes: str) -> str:
    """The share of conversations that could be measured and were; and that of their turns, where it is smaller."""
    if figure.coverage is None:
        return NOTHING
    text = percent_text(figure.coverage)
    if not figure.has_gaps:
        return text
    return f"{text} ({observes.replace('_', ' ')}s {percent_text(figure.subject_coverage)})"


def percent_text(share: float) -> str:
    """A share in whole percent; what is not zero never prints as zero, and what is not all never as all."""
    whole = round(100 * share)
    if share > 0 and not whole:
        return "<1 %"
    return ">99 %" if share < 1 and whole == 100 else f"{whole} %"


def seconds_text(seconds: float | None) -> str:
    """A time or a duration to a tenth of a second, as people read it along a conversation."""
    return NOTHING if seconds is None else f"{seconds:,.1f} s"


def axis_text(value: float, unit: str) -> str:
    """A value beside an axis: without its unit, as short as it can be."""
    return f"{100 * value:g}" if unit == SHARE else f"{value:,g}" if abs(value) < 1e6 else f"{value:,.0f}"


def reasons_text(figure: Figure, observes: str = "subject") -> str:
    """What was not measured, and why. `observes` is what the metric looks at: turn, event, item."""
    reasons = figure.skipped_reasons
    parts = [f"{count:,} {reason_text(code)}" for code, count in reasons.items()]
    if figure.value is None and figure.samples_measured:
        # Conversations have values, and the figure over them has none.
        parts.insert(0, reason_text(figure.reason))
    if figure.subjects_skipped:
        parts.append(f"{counted(figure.subjects_skipped, observes)} without a value")
    if figure.has_gaps and figure.bounds is not None:
        low, high = (value_text(end, figure.unit) for end in figure.bounds)
        parts.append(f"with them between {low} and {high}")
    return ", ".join(parts)


def reason_text(code: str) -> str:
    """A reason code as words. Of a figure computed from others, the reason why these have no value."""
    return code.removeprefix("input_").replace("_", " ")


def name_text(figure: Figure) -> str:
    """The metric as it prints: variant, reduction and judge where they are not the usual."""
    name = key_text(figure.metric, figure.variant)
    if figure.reduction:
        name += f" {figure.reduction}"
    if not figure.judge.startswith("("):
        name += f" [{figure.judge}]"
    return name


def counted(count: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def key_text(metric: str, variant: str) -> str:
    """`jga@tomiinek`; the default variant has no suffix."""
    return f"{metric}@{variant}" if variant else metric


def folder_text(run: Run) -> str:
    """Where the run is, as a command would name it; a page does not show the folders of the machine that made it."""
    return shlex.quote(run.name if run.folder.is_absolute() else str(run.folder))


FAILED: Mapping[Failure, str] = {
    "": "",
    "mark": "misses its pass mark",
    "target": "misses its target",
    "outcome": "failed",
}
"""How a value fails, in words; page.js has the same."""


def outcome_text(outcome: str, reason: str) -> str:
    """`lost (reward: 0)`."""
    words = outcome.replace("_", " ")
    return f"{words} ({reason})" if reason else words


ORDERS: Mapping[Basis, str] = {
    "outcome": "worst first",
    "trials": "trials that disagree first",
    "roughness": "roughest first",
}
"""What an order of conversations is called: without an outcome or trials it promises no failures."""
EXTREMES: Mapping[Basis, str] = {"outcome": "worst", "trials": "first", "roughness": "roughest"}


MADE_OTHER_CHANGES = "made other changes"
"""How each `trial_text` ends."""


def trial_text(trial: Trial | None) -> str:
    """How a trial disagrees with the others of its scenario; nothing where it does not."""
    if trial is None or not trial.differ:
        return ""
    if trial.others == 1:
        return f"the other trial of its scenario {MADE_OTHER_CHANGES}"
    return f"{trial.differ:,} of the {trial.others:,} other trials of its scenario {MADE_OTHER_CHANGES}"


def reading_text(report: ReadReport) -> str:
    """What was read, in a sentence."""
    logs = [file for file in report.files.values() if not file.is_companion]
    formats = sorted({file.format for file in logs if file.format} - {FLOW_DEFINITION})
    read = sum(1 for file in report.files.values() if file.conversations)
    declared = sum(1 for file in report.files.values() if file.format == FLOW_DEFINITION and not file.skipped)
    unread = [
        short_name(name)
        for name, file in report.files.items()
        if not file.conversations
        and ((not file.is_companion and file.format != FLOW_DEFINITION) or (file.skipped and file.format != RECORDING))
    ]
    companions = [short_name(name) for name, file in report.files.items() if file.is_companion and not file.skipped]
    recordings = sum(file.is_companion and file.format == RECORDING for file in report.files.values())
    text = f"read {counted(report.conversations, 'conversation')} from {counted(read, 'file')} "
    text += f"({', '.join(formats) or 'no known format'})"
    if declared:
        text += f", with {counted(declared, 'file')} of flow definitions"
    if companions:
        text += f", with {first_of(companions, MAX_UNREAD)} beside {'it' if read == 1 else 'them'}"
    if recordings:
        text += f", with {counted(recordings, 'recording')}"
    if unread:
        text += f"; {counted(len(unread), 'file')} gave none: {first_of(unread, MAX_UNREAD)}"
    if report.records_seen > report.records_used:
        unused = report.records_seen - report.records_used
        text += f"; {unused:,} of {report.records_seen:,} records {'was' if unused == 1 else 'were'} not used"
    return "; ".join([text, *_same_texts(report)])


def set_aside_text(report: ReadReport, examples: int = 3) -> str:
    """`set aside: not an object 1 (a.jsonl:1 raw_complete_audio)`: what cannot be used; "" for nothing."""
    parts = []
    for code, tally in report.set_aside.items():
        shown = "; ".join(one_line(example) for example in tally.examples[:examples])
        parts.append(f"{reason_text(code)} {tally.count:,} ({shown}{'; …' if tally.count > examples else ''})")
    return f"set aside: {', '.join(parts)}" if parts else ""


_SOUND_TEXTS = {
    "audio_not_installed": ("", "pip install 'convoscope[audio]'"),
    "recording_not_found": ("not found", "--audio FOLDER says where recordings are"),
    "recording_remote": ("at an address", "--fetch-audio fetches it"),
    "recording_not_readable": ("not readable", ""),
    "recording_ambiguous": ("ambiguous", "name the right file in the log"),
    "recording_empty": ("empty", ""),
}
"""Why a recording is not measured, and what to do."""


def sides_text(report: ReadReport, paths: Sequence[object] = ()) -> str:
    """The command that says who is on which channel of recordings without a log; nothing where it is known.

    Without the paths that were given, which a page must not show, it names the file.
    """
    unknown = report.inferred.get(UNKNOWN_SPEAKER)
    files = [name for name, file in report.files.items() if file.format == RECORDING and file.conversations]
    if unknown is None or not files:
        return ""
    source = shlex.quote(one_line(files[0])) if len(files) == 1 else "RECORDINGS"
    source = " ".join(shlex.quote(one_line(str(path))) for path in paths) or source
    command = f'convoscope score {source} --speaker agent="channel 1"'
    return f'who is on which channel is not known; {command} (or "channel 2") measures each side'


_WITHOUT_WORDS = ("not found",)
"""Causes whose example is a file and nothing else."""


def sound_text(report: ReadReport) -> str:
    """Which recordings were not measured, or count several times, in a sentence; nothing where there is none."""
    return "; ".join(filter(None, (_unmeasured_text(report), _shared_text(report))))


def _shared_text(report: ReadReport) -> str:
    """How many conversations name a recording that others name, too: their figures of sound are no new evidence."""
    tally = report.inferred.get(SHARED)
    if tally is None:
        return ""
    same, is_one = counted(tally.count, "conversation"), len(tally.examples) == 1
    names = "; ".join(map(one_line, tally.examples))
    what = "the same recording" if is_one else "recordings that others of them name"
    return f"{same} name {what} ({names}): its sound counts as often, and intervals take it for independent"


def _unmeasured_text(report: ReadReport) -> str:
    """Which recordings were not measured, and why."""
    if not report.sound:
        return ""
    total = sum(tally.count for tally in report.sound.values())
    causes = []
    for reason, tally in sorted(report.sound.items(), key=lambda pair: -pair[1].count):
        words, hint = _SOUND_TEXTS.get(reason, (reason_text(reason), ""))
        example = short_name(tally.examples[0]) if tally.examples else ""
        if total == 1:  # its own words say it, where there are any
            cause = f"{example} {words}" if words in _WITHOUT_WORDS and example else example or words
            causes.append(f"{cause} ({hint})" if cause and hint else cause or hint)
            continue
        cause = f"{tally.count:,} {words}".strip() if words else ""
        cause += f" ({example}{', …' if tally.count > 1 else ''})" if cause and example else ""
        causes.append(", ".join(filter(None, (cause, hint))))
    return f"sound: {counted(total, 'recording')} not measured: {'; '.join(causes)}"


_SAME_TEXTS = {
    JOINED: ("{} joined by the id of their conversation", "record"),
    MERGED: ("{} merged into others that go on with them", "record"),
    COPIES: ("{} dropped as copies", "record"),
    SPLIT: ("{} split after a long silence", "session"),
    EQUAL: ("{} kept that equal another one of the same file, without id or time", "record"),
    OVERLAP: ("{} that overlap with others and may be the same conversation", "record"),
}


def _same_texts(report: ReadReport) -> list[str]:
    """What was done to records that are not conversations of their own, or might not be."""
    return [
        words.format(counted(report.same[kind].count, noun))
        for kind, (words, noun) in _SAME_TEXTS.items()
        if kind in report.same
    ] + [
        words.format(counted(tally.count, noun), tally.examples[0] if tally.examples else "")
        for code, (words, noun) in _DOUBT_TEXTS.items()
        if (tally := report.set_aside.get(code) or report.inferred.get(code))
    ]


_DOUBT_TEXTS = {
    "several_conversations_in_one": ("{} may be several ({})", "conversation"),
    "role_unknown": ("{} of a speaker of unknown role ({})", "message"),
    "speaker_of_unknown_role": ("{} of unknown role ({}): --speaker says who is who", "speaker"),
}
"""What was read, but may be something else, by the code of its note."""


def decimal_text(value: float | None, digits: int = 2, most: float = math.inf) -> str:
    """A number with the digits that it needs, at least one: 0.0, 0.38. What is less than `most` never prints as it."""
    if value is None:
        return NOTHING
    least = 10**-digits
    if 0 < value < least / 2:
        return f"<{least:g}"
    if most - least / 2 <= value < most:
        return f">{most - least:g}"
    return str(round(float(value), digits) + 0.0)


def range_text(low: float | None, high: float | None, digits: int = 2) -> str:
    """From where to where; nothing where there is no interval."""
    if low is None and high is None:
        return ""
    if high is None:
        return f"{low:.{digits}f} or more"
    return f"{high:.{digits}f} or less" if low is None else f"{low:.{digits}f}–{high:.{digits}f}"


def ten_text(score: float | None) -> str:
    """Points of ten."""
    return decimal_text(score, 1, most=10.0)


def short_name(text: str) -> str:
    """A state, a flow or another name out of a log, fit for one cell."""
    return one_line(text, MAX_NAME) or '""'


def state_name(flow: str, state: str) -> str:
    """A state and the flow that it belongs to."""
    return f"{short_name(flow)} / {short_name(state)}"


def cut_text(text: str, most: int) -> str:
    """The first letters of a text, and how many more there are."""
    more = len(text) - most
    return text if more <= 0 else f"{text[:most]}… ({more:,} more characters)"


def first_of(texts: Sequence[str], most: int = MAX_NAMES) -> str:
    """Some texts in one line, and how many more there are."""
    more = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {more:,} more" if more > 0 else "")


def unmeasured_line(reasons: Iterable[tuple[str, str]]) -> str:
    """Why some columns have dots: `· not measured: stall (outcome unknown)`; nothing where there is none."""
    by_column: dict[str, dict[str, None]] = {}
    for column, reason in reasons:
        by_column.setdefault(column, {})[reason_text(reason)] = None
    parts = [f"{column} ({short_name('; '.join(texts))})" for column, texts in by_column.items()]
    return f"{NOTHING} not measured: {', '.join(parts)}" if parts else ""


def excluded_line(excluded: Sequence[Excluded]) -> str:
    """Conversations that are in no figure, and why; nothing where there is none."""
    if not excluded:
        return ""
    texts = [
        f"{group.n:,} of {short_name(group.flow)} ({short_name(reason_text(group.reason))})"
        for group in excluded[:MAX_NAMES]
    ]
    total = counted(sum(group.n for group in excluded), "conversation")
    more = sum(group.n for group in excluded[MAX_NAMES:])
    return f"excluded, in no figure: {total}: {', '.join(texts)}" + (f" and {more:,} more" if more else "")
