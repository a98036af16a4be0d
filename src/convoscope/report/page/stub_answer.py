"""Stands in for the answer of a run until there is one."""

from __future__ import annotations

from convoscope.analysis.answer import Answer, Cause, Clause, Evidence, KeyFigure, Outcomes, WorstConversation
from convoscope.metrics.parts import parent_metric
from convoscope.report.targets import run_checks, target_text
from convoscope.report.words import because_texts, counted, name_text, outcome_text, reading_text
from convoscope.runs.database import CONVERSATIONS, connect
from convoscope.runs.ranking import rank
from convoscope.runs.run import Run
from convoscope.views.flow.endings import LOST, OUTCOMES


def make_answer(run: Run) -> Answer:
    ranking, summary = rank(run), run.summary
    with connect() as connection:
        ids = dict(connection.execute(f"SELECT number, conversation FROM {run.table(CONVERSATIONS)}").fetchall())
    checks = {one.name: one for one in run_checks(run)}
    names = {one.metric for one in summary.figures}
    figures = []
    for one in summary.metrics:
        if one.reduction or one.value is None or one.better == "neither" or parent_metric(one.metric, names):
            continue
        check = checks.get(name_text(one))
        figures.append(
            KeyFigure(
                name=name_text(one),
                label=one.key.split(".", 1)[1].replace("_", " ").capitalize(),
                unit=one.unit,
                better=one.better,
                value=one.value,
                low=one.interval.lowest if one.interval else None,
                high=one.interval.highest if one.interval else None,
                n=one.n,
                coverage=one.coverage or 0.0,
                target=target_text(check.target, one.unit) if check else "",
                verdict=("" if not check else check.verdict.outcome if check.verdict.sure else "too close"),  # type: ignore[arg-type]
            )
        )
    whole = [int(one) for one in ranking.whole]
    outcome = {number: OUTCOMES[ranking.outcome[number]] for number in whole}
    lost = [number for number in whole if outcome[number] == LOST]
    done = sum(one == "done" for one in outcome.values())
    worst = tuple(
        WorstConversation(
            conversation=ids[number],
            number=number,
            outcome=outcome.get(number, "unknown"),  # type: ignore[arg-type]
            reasons=tuple(
                because_texts(
                    ranking.errors.get(number, ""),
                    ranking.because(number),
                    outcome_text(LOST, ranking.lost[number]) if number in ranking.lost else "",
                )
            ),
        )
        for number in ranking.order.tolist()
    )
    half = len(lost) // 2
    causes = []
    if half >= 5:
        causes = [
            Cause(
                rule="asked_again",
                sentence="the agent asks the same again and again",
                evidence="They heard the same question 3.5 times.",
                lost=half,
                example=Evidence(conversation=ids[lost[0]], number=lost[0]),
                numbers=tuple(lost[:half]),
            )
        ]
    rest = lost[half:] if half >= 5 else lost
    return Answer(
        noun="conversation",
        conversations=summary.conversations,
        verdict=(
            Clause(
                lead=f"{done} of {counted(done + len(lost), 'conversation')} reach their goal",
                rest=", below the target of 80.",
                tone="bad",
            ),
        )
        if lost or done
        else (Clause(lead="These logs do not say how the conversations ended."),),
        outcomes=Outcomes(done=done, lost=len(lost), unknown=len(whole) - done - len(lost), broken=len(ranking.errors)),
        figures=tuple(figures[:8]),
        causes=tuple(causes),
        remaining=(
            Cause(
                rule="none", sentence="have no single cause that could be found", lost=len(rest), numbers=tuple(rest)
            ),
        )
        if rest
        else (),
        worst=worst,
        not_measured=f"{sum(one.value is None for one in summary.figures)} figures could not be measured",
        reading=f"Reading: {reading_text(run.read_report)}",
        broken=f"{counted(len(ranking.errors), 'integration')} broke" if ranking.errors else "",
    )
