"""How far judges agree with people, for a terminal: a line for each judge and rubric, and the tables behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from convoscope.analysis.calibration import RunCalibration
from convoscope.analysis.words import NOTHING, counted
from convoscope.judging.calibrations import Agreement
from convoscope.judging.rubrics import Rubric
from convoscope.report.screen import Screen
from convoscope.report.table import TableColumn, number_column, print_table, text_table


def print_agreements(screen: Screen, results: Sequence[Agreement], known: Mapping[str, Rubric]) -> None:
    """The sentence that matters, then a line for each judge and rubric."""
    good = sum(one.is_calibrated for one in results)
    screen.line(f"{good:,} of {counted(len(results), 'judged figure')} can be relied on.", "bold")
    titles = {name: rubric.title for name, rubric in known.items()}
    has_many = len({one.judge.partition("@")[0] for one in results}) > 1
    columns: list[str | TableColumn] = [
        "the agent …",
        *(["judge"] if has_many else []),
        *map(number_column, ("agrees", "macro F1", "kappa")),
        "from to",
        *map(number_column, ("commonest", "labels")),
        "",
    ]
    rows = [
        (
            f"{titles.get(one.rubric, one.rubric)}{f', {one.part}' if one.part else ''}",
            *([one.judge] if has_many else []),
            _percent(one.accuracy),
            _percent(one.macro_f1),
            _two(one.kappa),
            _interval(one.kappa_interval),
            _percent(one.majority),
            f"{one.labels:,}",
            "" if one.part else one.verdict,
        )
        for whole in results
        for one in (whole, *whole.parts)
    ]
    print_table(screen, text_table(columns, rows))
    for result in results:
        if lost := ", ".join(f"{count:,} {reason}" for reason, count in result.unanswered.items()):
            screen.line(f"{_name(result, titles, has_many)}: without an answer {lost}")


def print_tables(screen: Screen, results: Sequence[Agreement], known: Mapping[str, Rubric]) -> None:
    """In which direction each judge errs, its ratings against those of people, and the faults that both flag."""
    titles = {name: rubric.title for name, rubric in known.items()}
    has_many = len({one.judge for one in results}) > len({one.rubric for one in results})
    for result in results:
        if not result.labels:
            continue
        screen.line()
        (passed, failing), (failed, passing) = result.wrongly_passed, result.wrongly_failed
        name = _name(result, titles, has_many)
        screen.line(
            f"{name}: passes {passed:,} of {failing:,} that people fail, fails {failed:,} of {passing:,} that they pass"
        )
        heads = [number_column(f"judge {rating:g}") for rating in result.ratings]
        rows = [
            (f"people {rating:g}", *(f"{count:,}" for count in row))
            for rating, row in zip(result.ratings, result.confusion, strict=True)
        ]
        print_table(screen, text_table(["", *heads], rows))
        if result.flags:
            counts = [
                (name, f"{flag.both:,}", f"{flag.only_people:,}", f"{flag.only_judge:,}")
                for name, flag in result.flags.items()
            ]
            print_table(
                screen, text_table(["flagged by", *map(number_column, ("both", "only people", "only judge"))], counts)
            )


def print_people(screen: Screen, result: RunCalibration, known: Mapping[str, Rubric]) -> None:
    """How far people agree with each other, whose labels these are, and which were left out."""
    titles = {name: rubric.title for name, rubric in known.items()}
    for among in result.people:
        kappa = "no kappa" if among.kappa is None else f"kappa {among.kappa:.2f}"
        screen.line(
            f"people agree with each other about {titles[among.rubric]!r} in {_percent(among.accuracy)} "
            f"({kappa}, {among.labels:,} labelled twice)"
        )
    screen.line(f"{counted(result.used, 'label')} by {result.raters:,} {'person' if result.raters == 1 else 'people'}")
    for reason, count in sorted(result.left_out.items()):
        screen.line(f"left out: {counted(count, 'row')}, {reason}")


def print_marks(screen: Screen, results: Sequence[Agreement]) -> None:
    """What calibrated means."""
    marks = dict.fromkeys((one.least_labels, one.least_kappa) for one in results)
    for labels, kappa in marks:
        screen.line(f"calibrated: {labels:,} labels, and the whole interval of kappa above {kappa:g}")


def _name(result: Agreement, titles: dict[str, str], has_many: bool) -> str:
    return f'"{titles.get(result.rubric, result.rubric)}"' + (f" by {result.judge}" if has_many else "")


def _percent(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.1f} %"


def _two(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"


def _interval(ends: tuple[float, float] | None) -> str:
    return NOTHING if ends is None else f"{ends[0]:.2f} to {ends[1]:.2f}"
