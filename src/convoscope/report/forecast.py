"""What will be sent to judges, said before the first question."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from convoscope.analysis.words import counted
from convoscope.annotate.annotator import ASKS_JUDGE
from convoscope.errors import UsageError
from convoscope.ingest.read import ReadStream
from convoscope.judging.instrument import AUDIO_NOT_SENT, AUDIO_PRICE_UNKNOWN
from convoscope.judging.limits import price_list
from convoscope.report.screen import Screen
from convoscope.report.table import TableColumn, number_column, print_table, print_words, text_table
from convoscope.resources.judge import HEARS_NOTHING
from convoscope.resources.registry import JUDGE, RECOGNISER
from convoscope.scoring.forecast import ANNOTATES, Forecast, forecast
from convoscope.scoring.job import choose
from convoscope.scoring.session import Session
from convoscope.scoring.settings import ScoreSettings, joint_metrics


def make_forecast(paths: Sequence[Path], settings: ScoreSettings, *, dry_run: bool = False) -> Forecast:
    """What scoring these logs with these settings will ask. Nothing is sent; a dry run needs no key."""
    named = settings.named_judges(are_asked=not dry_run)
    judges = () if named is None else named.resources
    chosen = choose(
        settings.metrics,
        settings.metrics_from,
        (*settings.resources, *judges),
        settings.annotate,
        use_audio=settings.use_audio and settings.send_audio,
        fetch_audio=settings.fetch_audio,
    )
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
        resources = {name: session.made(one) for name, one in session.resources.items() if name not in _NOT_ASKED}
        annotates = settings.annotate == ASKS_JUDGE
        return forecast(
            conversations, chosen.metrics, judges, settings.repeats, second, resources, joint, annotates=annotates
        )


def print_forecast(
    paths: Sequence[Path], settings: ScoreSettings, *, dry_run: bool, json: bool, settings_file: str = ""
) -> None:
    """Say what will be sent where, how many questions, about what it costs; whole where that is all."""
    expected = make_forecast(paths, settings, dry_run=dry_run)
    if json:
        if dry_run:
            Screen().json({**expected.json(), "price_list": price_list()[0]})
        return
    screen = Screen() if dry_run else Screen(sys.stderr)
    cost = _dollars(expected.dollars)
    if dry_run:
        screen.line(f"Nothing was sent. This would ask {counted(expected.to_ask, 'question')}; cost {cost}.")
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
            f"asking {' and '.join(_judges(expected))}: {counted(expected.to_ask, 'question')} "
            f"({expected.questions - expected.to_ask:,} more in the cache); cost {cost}",
        )
    words = "words of both sides, tool calls and results, instructions of the agent"
    if clips := sum(asked.clips for asked in expected.metrics):
        words += f", {counted(clips, 'clip')} of sound, {sum(asked.sound_seconds for asked in expected.metrics):,.0f} s"
    kept = ", ".join(f"{count:,} {kind}" for kind, count in sorted(expected.hidden.items()))
    held = f"{expected.withheld:,} texts that address the judge" if expected.withheld else ""
    if not expected.redacts:
        kept = "nothing is redacted"
    elif clips:
        kept = f"{kept or 'nothing was found to redact'}; nothing in a sound is redacted"
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
    for reason, metrics in expected.without_sound.items():
        print_words(screen, f"{', '.join(metrics)}: {_WITHOUT_SOUND[reason]}", f"{'no sound':<11}", " " * 11)
    for asked in (one for one in expected.metrics if one.metric == ANNOTATES):
        words = f"{counted(asked.questions, 'question')} of all these, to find topics, risks and actions"
        print_words(screen, words, f"{'annotate':<11}", " " * 11)
    if settings_file:
        print_words(screen, settings_file, f"{'settings':<11}", " " * 11)


_NOT_ASKED = (JUDGE, RECOGNISER)
"""What is not needed to count questions; a recogniser is slow to load."""
_WITHOUT_SOUND = {
    HEARS_NOTHING: "not asked; the model is not known to take sound: audio = true in [judge] of the settings says so",
    AUDIO_NOT_SENT: "not asked; --send-audio sends clips of recordings",
    AUDIO_PRICE_UNKNOWN: "not asked; the price of sound is unknown, so --budget cannot be kept",
}


def _judges(expected: Forecast) -> list[str]:
    return [*expected.judges, *([f"{expected.second_look} (second look)"] if expected.second_look else [])]


def _dollars(dollars: float | None) -> str:
    return "·" if dollars is None else f"about ${dollars:,.2f}"
