"""`convoscope show`: one conversation of a run, turn by turn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from convoscope.cli.options import Full, Json

if TYPE_CHECKING:
    from convoscope.report.screen import Screen
    from convoscope.runs.run import Run


def show(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    conversation: Annotated[
        str | None, typer.Argument(help="The id of a conversation; without it, the worst are listed.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", help="How many of the worst to list.")] = 10,
    full: Full = False,
    json: Json = False,
) -> None:
    """Show one conversation turn by turn, or list the worst."""
    from convoscope.errors import UsageError
    from convoscope.report.screen import Screen
    from convoscope.runs.run import Run

    if limit < 1:
        raise UsageError(f"--limit must be at least 1, not {limit}")
    screen = Screen()
    opened = Run.open(run)
    if conversation is None:
        _list(screen, opened, limit, json)
    else:
        _show(screen, opened, conversation, full=full, json=json)


def _list(screen: Screen, run: Run, limit: int, json: bool) -> None:
    from convoscope.report.story_terminal import print_worst
    from convoscope.runs.ranking import worst_and_broken

    ranked, broken = worst_and_broken(run, limit)
    if json:
        screen.json(
            [
                {
                    "conversation": one.conversation,
                    "behind": one.behind,
                    "outcome": one.outcome,
                    "outcome_reason": one.outcome_reason,
                    "error": one.error,
                    "because": [
                        {
                            "metric": each.headline.key,
                            "value": each.value,
                            "share_better": each.share,
                            "measured": each.measured,
                            "failure": each.failure,
                        }
                        for each in one.because
                    ],
                }
                | ({"trial": one.trial._asdict()} if one.trial is not None else {})
                for one in (*ranked, *broken)
            ]
        )
    else:
        print_worst(screen, run, ranked, broken)


def _show(screen: Screen, run: Run, conversation: str, *, full: bool, json: bool) -> None:
    from convoscope.report.story_terminal import print_conversation
    from convoscope.runs.conversations import records

    (record,) = records(run, [run.number(conversation)])
    if json:
        screen.json(
            {
                "run": str(run.folder),
                "conversation": record.conversation,
                "scores": record.scores,
                "reduced": [one._asdict() for one in record.reduced],
                "notes": record.notes,
            }
        )
    else:
        print_conversation(screen, run, record, full=full)
