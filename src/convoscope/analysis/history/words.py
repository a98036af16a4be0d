"""What a history says in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date

from convoscope.analysis.answer.model import Clause, Noun, Tone, sentence_start
from convoscope.analysis.answer.verdict import VERBS
from convoscope.analysis.history.levels import LEAST_CONVERSATIONS, Series
from convoscope.analysis.history.model import Direction, FigureChange, HistoryChange, HistoryFigure, HistoryNight
from convoscope.analysis.history.series import FigureKey
from convoscope.analysis.words import counted, cut_text, number_text, percent_text, value_text
from convoscope.metrics.declaration import SHARE
from convoscope.runs.ranking import OUTCOME_METRIC
from convoscope.statistics.sequences import MIN_NIGHTS

MOST_EVENTS = 2
"""Changes that the verdict names beside that of the outcome; the list has all."""
TONES: Mapping[Direction, Tone] = {"worse": "bad", "better": "good", "": "plain"}
TIMES = 2.0
"""From so much on, a share that grew is said as a multiple."""
HALF = 0.1
"""A version of nearly one half, or nearly all, is called so."""
MAX_NAME = 30


def day_text(day: str) -> str:
    """`9 Nov`."""
    parsed = date.fromisoformat(day)
    return f"{parsed.day} {parsed:%b}"


def change_text(figure: HistoryFigure, change: FigureChange) -> str:
    """`4.3 %, was 0.8 %`."""
    return f"{value_text(change.now, figure.unit)}, was {value_text(change.before, figure.unit)}"


def difference_text(figure: HistoryFigure, change: FigureChange) -> str:
    """`-6.2 pts`, `+8.80 s`."""
    sign = "+" if change.difference > 0 else "-"
    unit = "pts" if figure.unit == SHARE else value_text(1.0, figure.unit).partition(" ")[2]
    return f"{sign}{number_text(abs(change.difference), figure.unit)} {unit}".strip()


def versions_text(versions: Mapping[str, float], noun: Noun) -> str:
    """`v1, all calls`, `v1 and v2, half each`, `v1 80 %, v2 20 %`."""
    if not versions:
        return ""
    shares = sorted(versions.items())
    names = [cut_text(name, MAX_NAME) for name, _ in shares]
    if len(shares) == 1 and shares[0][1] > 1 - HALF / 2:
        return f"{names[0]}, all {noun}s"
    if len(shares) == 2 and all(abs(share - 0.5) < HALF for _, share in shares):
        return f"{names[0]} and {names[1]}, half each"
    return ", ".join(f"{name} {percent_text(share)}" for name, (_, share) in zip(names, shares, strict=True))


def _takes(night: HistoryNight, noun: Noun) -> str:
    """`v2 takes half of the calls`."""
    parts = []
    for name in night.new_versions:
        share = night.versions[name]
        much = "all" if share > 1 - HALF / 2 else "half" if abs(share - 0.5) < HALF else percent_text(share)
        parts.append(f"{cut_text(name, MAX_NAME)} takes {much} of the {noun}s")
    return ", ".join(parts)


def _reach(figure: HistoryFigure) -> str:
    """`calls reach their goal`."""
    return figure.label.replace(" that ", " ", 1)


def _what(figure: HistoryFigure, change: FigureChange, noun: Noun) -> str:
    """`the agent talks over callers 5 times as often`; by its label where there are no words for it."""
    if figure.name == OUTCOME_METRIC:
        return f"{'more' if change.difference > 0 else 'fewer'} {_reach(figure)}"
    verbs = VERBS.get(figure.name.partition(" ")[0])
    if verbs is None or not change.direction:
        return figure.label
    people = "callers" if noun == "call" else "users"
    verb = verbs[0 if change.direction == "better" else 1].format(noun=noun, people=people)
    if verb.endswith("more often") and figure.unit == SHARE and change.before > 0:
        times = change.now / change.before
        if times >= TIMES:
            verb = f"{verb.removesuffix('more often')}{times:.0f} times as often"
    return f"the agent {verb}"


def make_changes(
    figures: Sequence[HistoryFigure], nights: Sequence[HistoryNight], noun: Noun, *, named: bool
) -> Iterator[HistoryChange]:
    """What changed at each night; new versions with which nothing did, too. `named`: the logs name versions."""
    by_night: dict[int, list[tuple[HistoryFigure, FigureChange]]] = {}
    for figure in figures:
        for change in figure.changes:
            by_night.setdefault(change.night, []).append((figure, change))
    for index, night in enumerate(nights):
        moved = sorted(by_night.get(index, ()), key=lambda one: -one[0].importance)
        takes = _takes(night, noun) if night.new_versions else ""
        if moved:
            names = " and ".join(_what(figure, change, noun) for figure, change in moved[:2])
            yield HistoryChange(
                night=index,
                date=night.date,
                kind="level",
                title=takes or sentence_start(names),
                details=tuple(
                    f"{figure.label} {value_text(change.before, figure.unit)} → {value_text(change.now, figure.unit)}"
                    + (f" ({change.direction})" if change.direction else "")
                    for figure, change in moved
                ),
                version=_version(night, named=named),
                by_version=_by_version(*moved[0]),
                figures=tuple(figure.name for figure, _ in moved),
            )
        elif takes:
            few = len(nights) < MIN_NIGHTS
            details = ("too few nights to name a change",) if few else ("no figure changed with it",)
            yield HistoryChange(night=index, date=night.date, kind="version", title=takes, details=details)


def _by_version(figure: HistoryFigure, change: FigureChange) -> str:
    """`with v1 4.2 s → 13.0 s, with v2 4.3 s → 12.9 s`."""
    return ", ".join(
        f"with {cut_text(name, MAX_NAME)} {value_text(before, figure.unit)} → {value_text(now, figure.unit)}"
        for name, (before, now) in change.by_version.items()
    )


def _version(night: HistoryNight, *, named: bool) -> str:
    if night.new_versions:
        return "with " + " and ".join(cut_text(name, MAX_NAME) for name in night.new_versions)
    return "no new version" if named else ""


def breaks_of(series: Mapping[FigureKey, Series], dates: Sequence[str]) -> Iterator[HistoryChange]:
    """Where a figure became another measure: a line for each night and reason."""
    breaks: dict[tuple[int, str], list[Series]] = {}
    for figure in series.values():
        if figure.broken:
            breaks.setdefault((figure.nights[0], figure.broken), []).append(figure)
    for (night, broken), figures in breaks.items():
        judges = sorted({(one.former, one.data[0].identity.judge) for one in figures})
        what = (
            ", ".join(f"judge {_judge(a)} -> {_judge(b)}" for a, b in judges)
            if broken == "judge"
            else {"metric": "another version of the metric", "label": "another label"}.get(broken, "other scenarios")
        )
        yield HistoryChange(
            night=night,
            date=dates[night],
            kind="break",
            title=f"{what}: not comparable",
            details=(f"{counted(len(figures), 'figure')} before and after: not the same measure",),
            figures=tuple(one.key.name for one in figures),
        )


def _judge(name: str) -> str:
    return cut_text(name.partition("@")[0], MAX_NAME)


def make_verdict(
    figures: Sequence[HistoryFigure],
    events: Sequence[HistoryChange],
    nights: Sequence[HistoryNight],
    noun: Noun,
    word: str,
    *,
    is_long: bool,
) -> tuple[Clause, ...]:
    """How good it is since when, and what else changed; the newest first."""
    main = next((one for one in figures if one.name == OUTCOME_METRIC), None)
    main = main or max(figures, key=lambda one: one.importance, default=None)
    if main is None:
        return (Clause(lead=f"No figure to follow in {counted(len(nights), word)}; a target names one."),)
    if not is_long:
        return _too_few(main, nights, noun, word)
    clauses = [_main(main, nights, word)]
    by_name = {figure.name: figure for figure in figures}
    others = [one for one in events if one.kind == "level" and one.figures != (main.name,)]
    clauses += [_event(one, by_name, main.name, noun) for one in others[:MOST_EVENTS]]
    if not any(figure.changes for figure in figures):
        clauses.append(Clause(lead=f"No change in any of {counted(len(figures), 'figure')}."))
    return tuple(clauses)


def _main(figure: HistoryFigure, nights: Sequence[HistoryNight], word: str) -> Clause:
    level, change = figure.level, figure.change
    if level is None:
        last = figure.last
        words = f"{sentence_start(figure.label)} {value_text(last.value if last else None, figure.unit)}"
        return Clause(lead=words, rest=f"; {figure.broken or f'too few {word}s count'}.")
    value = value_text(level.value, figure.unit)
    lead = f"{sentence_start(figure.label)} {value}"
    if figure.name == OUTCOME_METRIC:
        lead = f"{value} of the {_reach(figure)}"
    if change is None:
        if figure.broken_at is not None:
            return Clause(lead=lead, rest=f" since {day_text(nights[figure.broken_at].date)}; {figure.broken}.")
        return Clause(lead=lead, rest=f"; no change in {counted(len(nights), word)}.")
    lead += f" since {day_text(change.date)}"
    if figure.unit == SHARE:
        points = abs(100 * change.difference)
        much = f"{points:.0f}" if points >= 1 else f"{points:.1f}"
        more = "more" if change.difference > 0 else "fewer"
        rest = f", {much} {'point' if much == '1' else 'points'} {more} than before."
    else:
        rest = f", was {value_text(change.before, figure.unit)}."
    return Clause(lead=lead, rest=rest, tone=TONES[change.direction])


def _event(event: HistoryChange, by_name: Mapping[str, HistoryFigure], main: str, noun: Noun) -> Clause:
    """The most important figure that became worse, and the most important one that became better."""
    moved = []
    for name in event.figures:
        figure = by_name[name]
        change = next(one for one in figure.changes if one.night == event.night)
        if name != main:
            moved.append((figure, change))
    chosen = [next((one for one in moved if one[1].direction == way), None) for way in ("worse", "better", "")]
    parts = [f"{_what(*one, noun)}: {change_text(*one)}" for one in chosen if one is not None]
    version = f", {event.version}" if event.version.startswith("with") else ""
    first = next(one[1].direction for one in chosen if one is not None)
    rest = f", {'; but '.join(parts)}."
    return Clause(lead=f"Since {day_text(event.date)}{version}", rest=rest, tone=TONES[first])


def _too_few(main: HistoryFigure, nights: Sequence[HistoryNight], noun: Noun, word: str) -> tuple[Clause, ...]:
    """The values alone."""
    counting = [one for one in nights if not one.few]
    lead = f"{counted(len(counting), word)} {'is' if len(counting) == 1 else 'are'} too few to name a change."
    if not counting:
        lead = f"{counted(len(nights), word)} of fewer than {LEAST_CONVERSATIONS} {noun}s: too few to name a change."
    values = [value_text(one.value, main.unit) for one in main.nights if one is not None]
    text = _listed(values[-MIN_NIGHTS:])
    text = f"the last {MIN_NIGHTS}: {text}" if len(values) > MIN_NIGHTS else text
    label = sentence_start(main.label)
    whole = f"{sentence_start(text)} of the {_reach(main)}" if main.name == OUTCOME_METRIC else f"{label}: {text}"
    return (Clause(lead=lead), Clause(lead=f"{whole}."))


def _listed(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
