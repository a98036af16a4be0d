"""How far judges agree: those of a panel, the repeats of one judge, and a second look at a tenth of what was judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from convoscope.conversation import from_json
from convoscope.harmless import one_line
from convoscope.metrics.declaration import Metric
from convoscope.metrics.registry import Declared
from convoscope.resources.registry import JUDGE
from convoscope.runs.database import CONVERSATIONS, SCORES, Tables, connect, parquet
from convoscope.scores.judges import PANEL, kind_of, speaking_order
from convoscope.scores.observation import MEASURED, Observation
from convoscope.scoring.second_look import ONE_IN, SEED, drawn
from convoscope.statistics.panels import REPEATS_STRADDLE, Marks, PanelRule, marks_of

if TYPE_CHECKING:
    import duckdb

    from convoscope.scoring.session import Session

_MOST_APART = 20
"""Verdicts that lie farthest apart, which a summary names."""
_MOST_FAILURES = 3


class ApartVerdicts(msgspec.Struct, frozen=True):
    """What judges say of one subject that they do not agree about."""

    conversation: str
    subject: str
    """`turn 3`; empty for the whole conversation."""
    values: dict[str, float]


class PanelAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """How far the judges of a panel agree in one metric. Subjects are turns or whole conversations."""

    metric: str
    panel: str
    n: int
    """Subjects that all judges gave a value for."""
    differ: int
    """Of these, the ones that they gave different values for."""
    split: int
    """And the ones that some judges let pass and others do not."""
    mean_spread: float
    mean_consensus: float | None
    undetermined: int
    """Subjects that all judges gave a value for, without a score of the panel: too little consensus."""
    apart: list[ApartVerdicts]


class RepeatAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """How far one judge agrees with itself in one metric."""

    metric: str
    judge: str
    n: int
    """Subjects that each repeat gave a value for."""
    differ: int
    straddle: int
    """Of these, the undetermined ones: some repeats pass, others do not."""
    mean_spread: float


class SecondLookMetric(msgspec.Struct, frozen=True, kw_only=True):
    """What the second judge says of a tenth of what was judged in one metric."""

    metric: str
    first: str
    second: str
    conversations: int
    """Those that were looked at again."""
    n: int
    """Subjects that both gave a value for."""
    differ: int
    differ_share: float | None
    crossed: int
    """Those that one lets pass and the other does not."""
    mean_difference: float | None
    """Of the second from the first: above 0, the second is kinder where more is better."""
    unanswered: dict[str, int]
    """Subjects without a value of the second, by reason."""
    apart: list[ApartVerdicts]


class SecondLook(msgspec.Struct, frozen=True, kw_only=True):
    """A seeded tenth of what was judged, judged again by another judge."""

    judge: str
    one_in: int
    seed: int
    metrics: list[SecondLookMetric]


class JudgingSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What a run says of its judges beside their figures."""

    judges: list[str]
    repeats: int
    panel: PanelRule | None
    """None for one judge, which agrees with no other."""
    panels: list[PanelAgreement]
    repeated: list[RepeatAgreement]
    second_look: SecondLook | None
    """None where no judge was named for it."""


def judging_summary(tables: Tables, metrics: Sequence[Declared], session: Session) -> JudgingSummary | None:
    """What a run says of the judges that it asked; None where it asked none."""
    if JUDGE not in session.resources:
        return None
    judges = session.identities()[JUDGE].split(" + ")
    asking = [one for one in metrics if isinstance(one, Metric) and JUDGE in one.resources.values()]
    if not tables.files(SCORES):
        asking = []
    with connect(tables.folder) as connection:
        return JudgingSummary(
            judges=judges,
            repeats=session.repeats,
            panel=session.panel if len(judges) > 1 else None,
            panels=[each for one in asking for each in _panels(connection, tables, one)] if len(judges) > 1 else [],
            repeated=[each for one in asking for each in _repeats(connection, tables, one)]
            if session.repeats > 1
            else [],
            second_look=_second_look(connection, tables, asking, session),
        )


_SUBJECT = "CASE WHEN subject_kind = 'conversation' THEN '' ELSE subject_kind || ' ' || subject END"


def unanswered_parts(tables: Tables) -> set[int]:
    """The parts of a run with scores that a judge did not give."""
    if not (files := tables.files(SCORES)):
        return set()
    query = f"SELECT DISTINCT part FROM {parquet(*files)} WHERE reason = 'judge_failed'"
    with connect(tables.folder) as connection:
        return {part for (part,) in connection.execute(query).fetchall()}


def failure_warnings(tables: Tables) -> list[str]:
    """What each judge did not answer, and why, the commonest first; the reasons are words of servers."""
    query = (
        f"SELECT split_part(judge, '@', 1), detail, count(*) FROM {tables.table(SCORES)} "
        f"WHERE reason = 'judge_failed' GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT {_MOST_FAILURES}"
    )
    with connect(tables.folder) as connection:
        rows: list[tuple[str | None, str | None, int]] = connection.execute(query).fetchall()
        useless = connection.execute(_USELESS.format(scores=tables.table(SCORES))).fetchall()
    failed = [
        f"judge {one_line(judge or '', 80)} did not answer (scores: {count:,}): {one_line(detail or '', 200)}"
        for judge, detail, count in rows
    ]
    return failed + [
        f"judge {one_line(judge, 80)}: {unusable:,} of {unusable + measured:,} scores have no value, as its answers "
        f"cannot be used ({reason.replace('_', ' ')} {most:,})"
        for judge, unusable, measured, reason, most in useless
    ]


_USELESS = f"""
WITH counts AS (
    SELECT split_part(judge, '@', 1) AS name, if(status = '{MEASURED}', '', reason) AS why, count(*) AS n
    FROM {{scores}}
    WHERE contains(judge, '/') AND (status = '{MEASURED}' OR reason IN
        ('verdict_unusable', 'verdict_empty', 'verdict_partial', 'not_on_scale', 'evidence_not_found'))
    GROUP BY ALL
)
SELECT name, sum(n) FILTER (why != '')::BIGINT AS unusable, coalesce(sum(n) FILTER (why = ''), 0)::BIGINT AS measured,
    arg_max(why, n) FILTER (why != ''), max(n) FILTER (why != '')
FROM counts GROUP BY name HAVING unusable >= measured AND unusable > 0 ORDER BY name
"""
"""Judges that give no value at least as often as one, and why, most often."""


def _rows(tables: Tables) -> str:
    """The scores of a metric that say how far answers are apart. A metric of the user's own may say anything."""
    return (
        f"SELECT *, TRY_CAST(json_extract(details, '$.spread') AS DOUBLE) AS apart FROM {tables.table(SCORES)} "
        "WHERE metric = $metric AND variant = $variant AND apart IS NOT NULL"
    )


def _names(declared: Metric) -> dict[str, str]:
    return {"metric": declared.name, "variant": declared.variant}


def _panels(connection: duckdb.DuckDBPyConnection, tables: Tables, declared: Metric) -> list[PanelAgreement]:
    source = f"({_rows(tables)} AND starts_with(judge, '{PANEL}'))"
    rows = connection.execute(
        f"SELECT judge, count(*), count(*) FILTER (apart > 0), "
        f"count(*) FILTER (json_extract(details, '$.split')::BOOLEAN), avg(apart), "
        f"avg(json_extract(details, '$.consensus')::DOUBLE), count(*) FILTER (status != '{MEASURED}') "
        f"FROM {source} GROUP BY judge ORDER BY judge",
        _names(declared),
    ).fetchall()
    return [
        PanelAgreement(
            metric=declared.key,
            panel=panel,
            n=n,
            differ=differ,
            split=split,
            mean_spread=spread,
            mean_consensus=consensus,
            undetermined=undetermined,
            apart=_apart(connection, source, declared, panel),
        )
        for panel, n, differ, split, spread, consensus, undetermined in rows
        if kind_of(panel) == "model"
    ]


def _apart(connection: duckdb.DuckDBPyConnection, source: str, declared: Metric, panel: str) -> list[ApartVerdicts]:
    rows = connection.execute(
        f"SELECT conversation, {_SUBJECT}, json_extract(details, '$.values')::VARCHAR FROM {source} "
        f"WHERE judge = $judge AND apart > 0 ORDER BY apart DESC, number, position, subject LIMIT {_MOST_APART}",
        {**_names(declared), "judge": panel},
    ).fetchall()
    return [ApartVerdicts(id, subject, msgspec.json.decode(values)) for id, subject, values in rows]


def _repeats(connection: duckdb.DuckDBPyConnection, tables: Tables, declared: Metric) -> list[RepeatAgreement]:
    rows = connection.execute(
        "SELECT judge, count(*), count(*) FILTER (apart > 0), "
        f"count(*) FILTER (reason = '{REPEATS_STRADDLE}'), avg(apart) "
        f"FROM ({_rows(tables)}) "
        f"WHERE NOT starts_with(judge, '{PANEL}') AND json_extract(details, '$.repeats') IS NOT NULL "
        f"AND (status = '{MEASURED}' OR reason = '{REPEATS_STRADDLE}') GROUP BY judge ORDER BY judge",
        _names(declared),
    ).fetchall()
    return [
        RepeatAgreement(metric=declared.key, judge=judge, n=n, differ=differ, straddle=straddle, mean_spread=spread)
        for judge, n, differ, straddle, spread in rows
    ]


class _Verdict(NamedTuple):
    """What the first judge says of one subject."""

    number: int
    conversation: str
    kind: str
    subject: str
    value: float

    @property
    def about(self) -> str:
        return "" if self.kind == "conversation" else f"{self.kind} {self.subject}"


def _second_look(
    connection: duckdb.DuckDBPyConnection, tables: Tables, asking: Sequence[Metric], session: Session
) -> SecondLook | None:
    if session.second_look is None:
        return None
    looked_at = [found for one in asking if (found := _looked_at(connection, tables, one, session)) is not None]
    return SecondLook(judge=session.second_look_identity, one_in=ONE_IN, seed=SEED, metrics=looked_at)


def _looked_at(
    connection: duckdb.DuckDBPyConnection, tables: Tables, declared: Metric, session: Session
) -> SecondLookMetric | None:
    source = f"{tables.table(SCORES)} WHERE metric = $metric AND variant = $variant AND status = '{MEASURED}'"
    known = connection.execute(f"SELECT DISTINCT judge FROM {source}", _names(declared)).fetchall()
    judges = [judge for (judge,) in known if kind_of(judge) == "model"]
    if not judges:
        return None
    first = max(judges, key=speaking_order)
    of_first = {**_names(declared), "judge": first}
    ids = connection.execute(f"SELECT DISTINCT number, conversation FROM {source} AND judge = $judge", of_first)
    numbers = drawn(dict(ids.fetchall()))
    wanted = ", ".join(map(str, numbers))
    rows = connection.execute(
        "SELECT number, conversation, subject_kind, subject, value "
        f"FROM {source} AND judge = $judge AND number IN ({wanted}) ORDER BY number, position, subject",
        of_first,
    ).fetchall()
    bodies = dict(connection.execute(f"SELECT number, body FROM {tables.at(CONVERSATIONS, numbers)}").fetchall())
    answers = session.look_again(declared, [from_json(bodies[number]) for number in numbers])
    return _compared(declared, first, [_Verdict(*row) for row in rows], dict(zip(numbers, answers, strict=True)))


def _compared(
    declared: Metric, first: str, verdicts: Sequence[_Verdict], answers: Mapping[int, Sequence[Observation]]
) -> SecondLookMetric:
    pairs: list[tuple[_Verdict, Observation]] = []
    unanswered: dict[str, int] = {}
    for verdict in verdicts:
        given = {(one.subject.kind, one.subject.id): one for one in answers[verdict.number]}
        # An answer that could not be had, or not be used, is one observation of the whole conversation.
        answer = given.get((verdict.kind, verdict.subject)) or given.get(("conversation", ""))
        if answer is not None and answer.value is not None:
            pairs.append((verdict, answer))
        else:
            reason = answer.reason if answer is not None else "not_judged"
            unanswered[reason] = unanswered.get(reason, 0) + 1
    second = next((one.judge for observations in answers.values() for one in observations), "")
    differences = [_difference(*pair) for pair in pairs]
    apart = sorted((pair for pair in pairs if _difference(*pair)), key=lambda pair: -abs(_difference(*pair)))
    return SecondLookMetric(
        metric=declared.key,
        first=first,
        second=second,
        conversations=len(answers),
        n=len(pairs),
        differ=len(apart),
        differ_share=len(apart) / len(pairs) if pairs else None,
        crossed=sum(_is_crossed(declared, *pair) for pair in pairs),
        mean_difference=fsum(differences) / len(differences) if differences else None,
        unanswered=dict(sorted(unanswered.items())),
        apart=[
            ApartVerdicts(verdict.conversation, verdict.about, {first: verdict.value, second: answer.value or 0.0})
            for verdict, answer in apart[:_MOST_APART]
        ],
    )


def _difference(verdict: _Verdict, answer: Observation) -> float:
    return (answer.value or 0.0) - verdict.value


def _is_crossed(declared: Metric, verdict: _Verdict, answer: Observation) -> bool:
    marks: Marks | None = marks_of(declared, [answer])
    return marks is not None and marks.straddled_by([verdict.value, answer.value or 0.0])


__all__ = [
    "ApartVerdicts",
    "JudgingSummary",
    "PanelAgreement",
    "RepeatAgreement",
    "SecondLook",
    "SecondLookMetric",
    "judging_summary",
]
