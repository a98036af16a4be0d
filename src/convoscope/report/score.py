"""Score, keep the run, and write its page; and a run in a notebook, with the answer of terminal and page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from convoscope.analysis.targets import figure_units
from convoscope.errors import keeping
from convoscope.harmless import clean
from convoscope.ingest.read import PathLike
from convoscope.report.page import LINKED, AudioOptions, write_page
from convoscope.report.page.sound_files import remove_copies
from convoscope.runs.growth import PAGE_DUE
from convoscope.runs.make import run_with, with_settings
from convoscope.runs.policy import resolve
from convoscope.runs.prune import Pruned
from convoscope.runs.prune import prune as prune_run
from convoscope.runs.run import PAGE, Run
from convoscope.scoring.settings import ScoreSettings
from convoscope.settings_file import FoundSettings

if TYPE_CHECKING:
    from convoscope.analysis.answer import Answer

__all__ = ["Run", "run_html"]

_HEAD = "".join(f"<th>{name}</th>" for name in ("figure", "value", "95 % interval", "n", ""))


def run_html(run: Run) -> str:
    """Verdict, key figures, causes, and where the page is. What comes from logs is escaped."""
    # Only a notebook needs it.
    from convoscope.analysis.answer import make_answer

    lines = "\n".join(_lines(run, make_answer(run)))
    return f'<div style="max-width: 760px; line-height: 1.45">\n{lines}\n</div>'


def _lines(run: Run, answer: Answer) -> Iterator[str]:
    receipt = run.receipt
    if not receipt.valid:
        yield f"<p><b>INVALID</b> since {_text(receipt.invalidated_at)}: {_text(receipt.invalid_reason)}</p>"
    verdict = " ".join(f"<b>{_text(clause.lead)}</b>{_text(clause.rest)}" for clause in answer.verdict)
    yield f'<p style="font-size: 1.15em">{verdict}</p>'
    if answer.figures:
        yield f"<table>\n<thead><tr>{_HEAD}</tr></thead>\n<tbody>"
        yield from _figures(answer)
        yield "</tbody>\n</table>"
    for note in answer.remarks:
        yield f"<p>{_text(note)}</p>"
    causes = [*answer.causes, *answer.remaining]
    if causes:
        yield "<ul>"
        for cause in causes:
            example = f" (<code>{_text(cause.example.conversation)}</code>)" if cause.example is not None else ""
            yield f"<li><b>{cause.lost:,} lost</b>: {_text(cause.sentence)}{example}</li>"
        yield "</ul>"
    ending = "; ".join(filter(None, (answer.reading, answer.not_measured)))
    page = run.folder / PAGE
    where = f"; page <code>{_text(page)}</code>" if page.is_file() else ""
    yield f"<p>{_text(ending)}<br>{_text(run.folder)}{where}</p>"


def _figures(answer: Answer) -> Iterator[str]:
    from convoscope.analysis.words import value_text
    from convoscope.report.run_terminal import interval_words, target_words

    left = 'style="text-align: left"'
    for figure in answer.figures:
        yield (
            f'<tr><td {left} title="{_text(figure.name)}">{_text(figure.label)}</td>'
            f"<td><b>{_text(value_text(figure.value, figure.unit))}</b></td><td>{_text(interval_words(figure))}</td>"
            f"<td>{figure.n:,}</td><td {left}>{_text(target_words(figure))}</td></tr>"
        )


def _text(value: object) -> str:
    """What anybody may have written, harmless inside of a page."""
    return escape(clean(str(value)))


Run.html = run_html


def score_with(
    source: Any, settings: ScoreSettings, policy: FoundSettings | None = None, sound: AudioOptions = LINKED
) -> Run:
    """Score the conversations of a source, keep the run, and write its page, with the targets of a policy."""

    def with_page(run: Run) -> None:
        # A page that is there already may be larger by choice.
        due = run.tables.own(PAGE_DUE)
        if sound != LINKED or not (run.folder / PAGE).exists() or due.exists():
            # The run is safe by now, whatever becomes of the page.
            with keeping(lambda: f"the run is kept in {run.folder}; only its page is missing"):
                settings.report("writing the page", run.summary.conversations)
                targets = resolve(policy, figure_units(run.summary)).targets if policy is not None else ()
                written = write_page(
                    run,
                    targets=targets,
                    with_audio=sound.copied,
                    embed_audio=sound.embedded,
                    use_audio=settings.use_audio,
                )
                if sound.say is not None:
                    for note in written.notes:
                        sound.say(note)
                due.unlink(missing_ok=True)

    run = run_with(source, settings, with_page)
    run.let_go()
    return run


score = with_settings(score_with, ScoreSettings)


def prune(run: Run | PathLike, before: str, metrics_from: Sequence[str] = ()) -> Pruned:
    """Drop the conversations of a run that began before a day, such as `2026-11-01`, and write its page.

    Logs are not touched. The run is then what `score` makes with `since`, and grows with that. Own metrics of the run
    are in `metrics_from`.
    """
    pruned = prune_run(run if isinstance(run, Run) else Run.open(run), before, metrics_from)
    # A command that was killed before may have left the page as it was.
    due = pruned.run.tables.own(PAGE_DUE)
    if pruned.dropped or due.exists():
        remove_copies(pruned.run.folder, write_page(pruned.run).copies)
        due.unlink(missing_ok=True)
    return pruned
