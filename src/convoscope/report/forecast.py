"""What will be sent to judges, said before the first question."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from convoscope.annotate.annotator import ASKS_JUDGE
from convoscope.errors import UsageError
from convoscope.ingest.read import ReadStream
from convoscope.judging.limits import price_list
from convoscope.report.screen import Screen
from convoscope.report.table import TableColumn, number_column, print_table, print_words, text_table
from convoscope.resources.registry import JUDGE
from convoscope.scoring.forecast import Forecast, forecast
from convoscope.scoring.job import choose
from convoscope.scoring.session import Session
from convoscope.scoring.settings import ScoreSettings, joint_metrics


def make_forecast(paths: Sequence[Path], settings: ScoreSettings) -> Forecast:
    """What scoring these logs with these settings will ask. Nothing is sent."""
    named = settings.named_judges
    judges = () if named is None else named.resources
    chosen = choose(settings.metrics, settings.metrics_from, (*settings.resources, *judges), settings.annotate)
    if JUDGE not in chosen.resources:
        raise UsageError("no judge is named, or no metric asks one", hint="--judge openai:MODEL")
    conversations = ReadStream(
        paths,
        format=settings.format,
        limit=settings.limit,
        settings=settings.reading,
        flows=settings.flows,
        readers_from=settings.readers_from,
    )
    again = None if named is None else named.second_look
    with closing(Session(chosen.resources, second_look=again)) as session:
        session.identities()
        second = None if again is None else session.made(again)
        judges = session.made(session.resources[JUDGE])
        joint = joint_metrics(chosen.metrics, settings)
        return forecast(conversations, chosen.metrics, judges, settings.repeats, second, session.names, joint)


def print_forecast(
    paths: Sequence[Path], settings: ScoreSettings, *, dry_run: bool, json: bool, settings_file: str = ""
) -> None:
    """Say what will be sent where, how many questions, about what it costs; whole where that is all."""
    expected = make_forecast(paths, settings)
    if json:
        if dry_run:
            Screen().json({**expected.json(), "price_list": price_list()[0]})
        return
    screen = Screen() if dry_run else Screen(sys.stderr)
    cost = _dollars(expected.dollars)
    if dry_run:
        screen.line(f"Nothing was sent. This would ask {expected.to_ask:,} questions; cost {cost}.")
        screen.line()
        numbers = [number_column(title) for title in ("calls", "questions", "in cache", "tokens", "cost")]
        columns: list[str | TableColumn] = ["figure", *numbers]
        rows = [
            (
                asked.metric,
                *(f"{number:,}" for number in (asked.conversations, asked.questions, asked.in_cache)),
                f"{asked.input_tokens:,}",
                _dollars(asked.dollars),
            )
            for asked in expected.metrics
        ]
        print_table(screen, text_table(columns, rows))
        screen.line()
    else:
        print_words(
            screen,
            f"asking {' and '.join(_judges(expected))}: {expected.to_ask:,} questions "
            f"({expected.questions - expected.to_ask:,} more are in the cache); cost {cost}",
        )
    words = "words of both sides, tool calls and results, instructions of the agent"
    kept = ", ".join(f"{count:,} {kind}" for kind, count in sorted(expected.hidden.items()))
    held = f"{expected.withheld:,} texts that address the judge" if expected.withheld else ""
    if not expected.redacts:
        kept = "nothing is redacted"
    prices = f"list of {price_list()[0]}" if expected.dollars is not None else "unknown; tokens are estimates"
    if not expected.to_ask:
        prices = "not needed, nothing is asked"
    for label, text in (
        ("sent", words),
        ("kept back", "; ".join(filter(None, (kept, held))) or "nothing was found to redact"),
        ("to", ", ".join(dict.fromkeys(expected.addresses)) or "a function in this process"),
        ("prices", prices),
    ):
        print_words(screen, text, f"{label:<11}", " " * 11)
    if settings.annotate == ASKS_JUDGE:
        words = "also asks once for each conversation, and more often for long ones; not in these numbers"
        print_words(screen, words, f"{'annotate':<11}", " " * 11)
    if settings_file:
        print_words(screen, settings_file, f"{'settings':<11}", " " * 11)


def _judges(expected: Forecast) -> list[str]:
    return [*expected.judges, *([f"{expected.second_look} (second look)"] if expected.second_look else [])]


def _dollars(dollars: float | None) -> str:
    return "·" if dollars is None else f"about ${dollars:,.2f}"
