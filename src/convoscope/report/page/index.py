"""The list of conversations that the page searches, filters and sorts: columns, worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from convoscope.analysis.answer import Answer, LostConversation, RankReasons, metric_label, rank_reasons, sentence_start
from convoscope.analysis.answer.model import Noun
from convoscope.analysis.words import reason_text, value_text
from convoscope.conversation import DIMENSIONS, from_json
from convoscope.report.page.figures import dimension_key
from convoscope.report.page.overview import cause_key
from convoscope.report.panels import ListFacet, facets
from convoscope.report.speech_lanes import Ruler, speech_lanes
from convoscope.runs.database import (
    CONVERSATION_SCORES,
    CONVERSATIONS,
    PROFILES,
    connect,
    dimension_column,
    known_dimensions,
    parquet,
    quoted,
)
from convoscope.runs.measured import measured_columns
from convoscope.runs.ranking import Headline, Ranking
from convoscope.runs.run import Run
from convoscope.scores.observation import COMPUTED, MEASURED
from convoscope.views.flow.endings import OUTCOMES as ENDINGS

if TYPE_CHECKING:
    import duckdb

MAX_LISTED = 20_000
"""Conversations that the list knows; what lies behind them is in the figures and charts all the same."""
MAX_COLUMNS = 3
MAX_TIMED = 2_000
"""A list of more does not say how long each is: that is in the bodies alone."""
VERSION = "agent"
"""The facet that is a column, too."""
MOST_VALUES = 1_000
"""Values of a facet that are here whether or not a listed conversation has them, the most frequent first."""
TENTH = 0.9
"""A value is among the worst tenth where so many did better."""
ENDED = {
    "done": "Completed",
    "lost": "Lost",
    "handed_over": "Handed to a person",
    "unknown": "Not known",
    "broken": "Integration broke",
    "no_user_speech": "User never spoke",
    "voicemail": "Mailbox",
    "ivr": "Phone menu",
}
FIRST_COLUMN = "conversation.turns"


class IndexFacet(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"divides": "tells"}):
    """A facet: its values, how many of the whole run have each, and for each conversation the position of its own."""

    key: str
    title: str
    values: list[str]
    labels: list[str]
    counts: list[int]
    codes: list[int]
    """-1 where a conversation has none."""
    divides: bool
    """Whether it tells conversations apart; else it is only known to addresses."""
    others: int = 0
    """Rare values that no conversation of the list has: they are not among `values`."""


class IndexColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A metric beside each conversation, as texts in the order of their values."""

    name: str
    label: str
    texts: list[str]
    codes: list[int]
    """Places in `texts`; below 0 the places in `reasons`, from -1 on."""
    reasons: list[str]
    bad: list[int]
    """Places of conversations whose value fails, or is among the worst tenth."""


class Partner(msgspec.Struct, frozen=True, array_like=True):
    """The same scenario on the other side."""

    id: str
    kind: int
    """The place of its outcome among the kinds of the list."""
    position: int
    """In the list; -1 where it is in the other run."""
    pair: int
    """Its index among the pairs of the screen; -1 where its outcome is the same."""
    is_earlier: bool


class PairedList(NamedTuple):
    """What the list knows of pairs."""

    facet: ListFacet
    partners: Mapping[int, Partner]
    """By the number of each conversation; positions are those of numbers until the list is made."""
    title: str
    """`v1 → v2`."""


class Index(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that the list knows. All lists but those of facets go worst first."""

    ids: list[str]
    outcomes: list[int]
    """Places in `kinds`."""
    kinds: list[str]
    reasons: list[tuple[str, ...]]
    ended: list[str]
    """Where it was lost."""
    facets: list[IndexFacet]
    columns: list[IndexColumn]
    partners: list[Partner | None] = []
    """The same scenario on the other side, where versions or runs are compared."""
    moved: str = ""
    """The title of that column."""
    version: int = -1
    """The facet that is shown as a column: the version of the agent."""


class ListData(NamedTuple):
    """What the list says of all conversations, by their numbers."""

    noun: Noun
    facets: Sequence[ListFacet]
    outcomes: Mapping[int, str]
    why: Mapping[int, RankReasons]
    """Of those that are listed."""
    columns: Sequence[Headline]
    paired: PairedList | None = None


def list_data(
    run: Run,
    answer: Answer,
    ranking: Ranking,
    lost: Sequence[LostConversation],
    paired: PairedList | None = None,
) -> ListData:
    """The outcome, the cause, the position and every dimension of all conversations."""
    findings = {one.number: one for one in lost}
    listed = ranking.order[:MAX_LISTED].tolist()
    outcomes = {number: ending_of(number, ranking, findings) for number in listed}
    lost_in = {one.number: one.state for one in lost if one.state}
    causes = {number: cause_key(cause) for cause in (*answer.causes, *answer.remaining) for number in cause.numbers}
    sentences = {cause_key(cause): sentence_start(cause.sentence) for cause in (*answer.causes, *answer.remaining)}
    made = [
        ListFacet(
            key="outcome",
            title="How it ended",
            values=outcomes,
            labels=ENDED,
            counts=_outcome_counts(ranking, findings),
        ),
        *([paired.facet] if paired is not None else []),
        ListFacet(key="cause", title="Why it was lost", values=causes, labels=sentences),
        ListFacet(key="lost_in", title="Lost in", values=lost_in),
        *_dimensions(run, listed),
        *facets(run),
    ]
    return ListData(
        noun=answer.noun,
        facets=[one for one in made if one.values or one.counts],
        outcomes=outcomes,
        why=rank_reasons(run, listed, lost),
        columns=_columns(answer, ranking.headlines),
        paired=paired,
    )


def make_index(run: Run, data: ListData, ranking: Ranking, numbers: Sequence[int]) -> Index:
    """The list of the given conversations, in their order."""
    with connect(run.folder) as connection:
        connection.register("wanted", _placed(numbers))
        rows = connection.execute(
            f"SELECT conversation, profile FROM {run.table(CONVERSATIONS)} JOIN wanted USING (number) ORDER BY position"
        ).fetchall()
        cells = _Cells(connection, run, numbers, [row[1] for row in rows], data.columns)
        columns = _lengths(connection, run) if len(numbers) <= MAX_TIMED else []
        for headline in data.columns:
            label = metric_label(run.summary.by_key[headline.key], data.noun)
            columns.append(cells.of(headline, label, _bad(ranking, headline, numbers)))
    kinds = list(ENDED)
    return Index(
        ids=[row[0] for row in rows],
        outcomes=[kinds.index(data.outcomes[number]) for number in numbers],
        kinds=kinds,
        reasons=[data.why[number].reasons for number in numbers],
        ended=[data.why[number].lost_in for number in numbers],
        facets=(facets := [_coded(one, numbers, len(ranking.order)) for one in data.facets]),
        columns=columns,
        version=next((at for at, one in enumerate(facets) if one.key == VERSION and one.divides), -1),
        partners=_partners(data.paired, numbers) if data.paired is not None else [],
        moved=data.paired.title if data.paired is not None else "",
    )


def _lengths(connection: duckdb.DuckDBPyConnection, run: Run) -> list[IndexColumn]:
    """How long the wanted conversations are, by the clock, as a column; nothing where none has times."""
    query = f"SELECT body FROM {run.table(CONVERSATIONS)} JOIN wanted USING (number) ORDER BY position"
    seconds: list[float | None] = []
    rows = connection.execute(query)
    while batch := rows.fetchmany(500):
        for (body,) in batch:
            conversation = from_json(body)
            lanes = speech_lanes(conversation, Ruler(conversation))
            seconds.append(round(lanes.length) if lanes is not None and lanes.length else None)
    ordered = sorted({one for one in seconds if one is not None})
    code = {value: position for position, value in enumerate(ordered)}
    if not ordered:
        return []
    texts = [f"{int(value) // 60}:{int(value) % 60:02}" for value in ordered]
    codes = [-1 if value is None else code[value] for value in seconds]
    return [
        IndexColumn(name="length", label="length", texts=texts, codes=codes, reasons=["no times in the log"], bad=[])
    ]


def _partners(paired: PairedList, numbers: Sequence[int]) -> list[Partner | None]:
    """The other conversation of each pair, with its position in the list."""
    at = {number: position for position, number in enumerate(numbers)}
    partners = [paired.partners.get(number) for number in numbers]
    return [one and msgspec.structs.replace(one, position=at.get(one.position, -1)) for one in partners]


def ending_of(number: int, ranking: Ranking, lost: Mapping[int, LostConversation]) -> str:
    """How a conversation ended, as the list says it."""
    if number in ranking.errors:
        return "broken"
    return "handed_over" if number in lost and lost[number].handed_over else ENDINGS[ranking.outcome[number]]


def _outcome_counts(ranking: Ranking, lost: Mapping[int, LostConversation]) -> Counter[str]:
    sizes = np.bincount(ranking.outcome, minlength=len(ENDINGS)).tolist()
    counts: Counter[str] = Counter(dict(zip(ENDINGS, sizes, strict=False)))
    for number in {*ranking.errors, *(number for number, one in lost.items() if one.handed_over)}:
        counts[ENDINGS[ranking.outcome[number]]] -= 1
        counts[ending_of(number, ranking, lost)] += 1
    return +counts


def _dimensions(run: Run, listed: Sequence[int]) -> Iterator[ListFacet]:
    """Our own dimensions first, then those of the log, by name. Of more conversations than are listed, the values are
    counted, not kept."""
    values: dict[str, dict[int, str]] = {}
    source = run.table(CONVERSATIONS)
    with connect(run.folder) as connection:
        names = known_dimensions(connection, source)
        own = [name for name in DIMENSIONS if name in names]
        connection.register("wanted", _placed(listed))
        columns = ", ".join(["number", "dimensions", *own])
        query = f"SELECT {columns} FROM {source} SEMI JOIN wanted USING (number)"
        for number, *row in connection.execute(query).fetchall():
            for name, value in _dimensions_of(own, row):
                values.setdefault(name, {})[number] = value
        all_are_listed = len(listed) == run.summary.conversations
        # Versions say most; scenarios are many.
        first = ("agent", "model", "flow")
        last = ("scenario_id", "trial")
        usual = (*first, *(name for name in DIMENSIONS if name not in (*first, *last)))
        for name in (*usual, *sorted(names - set(DIMENSIONS)), *last):
            if name not in names:
                continue
            known = values.get(name, {})
            counts, others = (None, 0) if all_are_listed else _counts(connection, source, name, known)
            title = name.replace("_", " ").capitalize()
            yield ListFacet(key=dimension_key(name), title=title, values=known, counts=counts, others=others)


def _counts(
    connection: duckdb.DuckDBPyConnection, source: str, name: str, listed: Mapping[int, str]
) -> tuple[dict[str, int], int]:
    """How many conversations of the run have each value of a dimension, and how many values were left out: of very
    many, those are here that a listed conversation has, and the most frequent. A million conversations may have as
    many, and only the database holds them all."""
    column = f"SELECT {dimension_column(name)} AS v FROM {source} WHERE v IS NOT NULL"
    connection.execute(f"CREATE OR REPLACE TEMP TABLE counted AS SELECT v, count(*) AS c FROM ({column}) GROUP BY v")
    most = connection.execute(f"SELECT v, c FROM counted ORDER BY c DESC, v LIMIT {MOST_VALUES}").fetchall()
    counts = {str(value): count for value, count in most}
    if listed:
        connection.register("listed", {"v": np.array(sorted(set(listed.values())), dtype=object)})
        own = connection.execute("SELECT v, c FROM counted SEMI JOIN listed USING (v)").fetchall()
        counts |= {str(value): count for value, count in own}
    ((distinct,),) = connection.execute("SELECT count(*) FROM counted").fetchall()
    connection.execute("DROP TABLE counted")
    return counts, distinct - len(counts)


def _dimensions_of(names: Sequence[str], row: Sequence[Any]) -> Iterator[tuple[str, str]]:
    further, *own = row
    yield from ((name, str(value)) for name, value in zip(names, own, strict=True) if value is not None)
    if further:
        yield from msgspec.json.decode(further).items()


def _coded(facet: ListFacet, numbers: Sequence[int], total: int) -> IndexFacet:
    """Values in the order of their labels, else the most frequent first; of very many, those that a conversation of
    the list has, and the most frequent."""
    counts = Counter(facet.values.values()) if facet.counts is None else facet.counts
    known = [value for value in facet.labels if value in counts]
    others = sorted((value for value in counts if value not in facet.labels), key=lambda one: (-counts[one], one))
    if len(others) > MOST_VALUES:
        listed = {facet.values[number] for number in numbers if number in facet.values}
        others = [*others[:MOST_VALUES], *(value for value in others[MOST_VALUES:] if value in listed)]
    values = [*known, *others]
    code = {value: position for position, value in enumerate(values)}
    return IndexFacet(
        key=facet.key,
        title=facet.title,
        values=values,
        labels=[facet.labels.get(value, value) for value in values],
        counts=[counts[value] for value in values],
        codes=[code[facet.values[number]] if number in facet.values else -1 for number in numbers],
        divides=len(counts) > 1 or (len(counts) == 1 and sum(counts.values()) < total),  # one value beside none
        others=facet.others + len(counts) - len(values),
    )


def _columns(answer: Answer, headlines: Sequence[Headline]) -> list[Headline]:
    """The number of turns, and the first key figures that say something of one conversation."""
    by_key = {one.key: one for one in headlines}
    wanted = [FIRST_COLUMN, *(one.name.split(" ")[0] for one in answer.figures)]
    chosen = dict.fromkeys(by_key[name] for name in wanted if name in by_key and not name.startswith("outcome."))
    return list(chosen)[:MAX_COLUMNS]


def _bad(ranking: Ranking, headline: Headline, numbers: Sequence[int]) -> list[int]:
    """Places of conversations that fail in a metric, or are among its worst tenth."""
    code = list(ranking.headlines).index(headline)
    chosen = np.asarray(numbers, dtype=np.int64)
    here = ranking.column[:, chosen] == code
    fails = here & ((ranking.failure[:, chosen] > 0) | (ranking.share[:, chosen] >= TENTH))
    return [int(position) for position in np.flatnonzero(fails.any(axis=0))]


def _placed(numbers: Sequence[int]) -> dict[str, Any]:
    """The numbers that are wanted, each with its position in the list, as a table."""
    wanted = np.asarray(numbers, dtype=np.int64)
    return {"number": wanted, "position": np.arange(len(wanted), dtype=np.int64)}


class _Cells:
    """What each metric says of each conversation of the list; the rows of `wanted` say which these are."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        run: Run,
        numbers: Sequence[int],
        profiles: Sequence[str],
        headlines: Sequence[Headline],
    ) -> None:
        self._run, self._profiles = run, profiles
        self._numbers = np.asarray(numbers, dtype=np.int64)
        metrics = ", ".join(quoted(one.metric) for one in headlines) or "''"
        profiles = parquet(run.tables.own(PROFILES))
        rows = connection.execute(
            f"SELECT profile, metric, variant, reason FROM {profiles} WHERE metric IN ({metrics})"
        ).fetchall()
        self._absent = {tuple(row[:3]): row[3] for row in rows}
        self._reasons: dict[tuple[str, ...], dict[int, str]] = {}
        for metric, variant, judge, position, reason in connection.execute(
            f"SELECT metric, variant, judge, position, reason FROM {run.table(CONVERSATION_SCORES)} "
            f"JOIN wanted USING (number) WHERE metric IN ({metrics}) AND status <> {quoted(MEASURED)}"
        ).fetchall():
            self._reasons.setdefault((metric, variant, judge), {})[position] = reason or "not_scored"

    def of(self, headline: Headline, label: str, bad: list[int]) -> IndexColumn:
        missing = [self._absent.get((one, headline.metric, headline.variant), "not_scored") for one in self._profiles]
        # A conversation that never reached the judge has a row without one.
        for judge in (COMPUTED, headline.judge):
            for position, reason in self._reasons.get((headline.metric, headline.variant, judge), {}).items():
                missing[position] = reason
        rows = measured_columns(self._run, *headline[:3], columns=("value",))
        at = np.searchsorted(rows["number"], self._numbers)
        has_value = np.zeros(len(at), dtype=np.bool_)
        inside = at < len(rows["number"])
        has_value[inside] = rows["number"][at[inside]] == self._numbers[inside]
        ordered, index = np.unique(rows["value"][at[has_value]] + 0.0, return_inverse=True)
        reasons = list(dict.fromkeys(compress(missing, ~has_value)))
        absent = {reason: -1 - position for position, reason in enumerate(reasons)}
        codes = np.array([absent.get(reason, 0) for reason in missing], dtype=np.int64)
        codes[has_value] = index
        return IndexColumn(
            name=headline.key,
            label=label,
            texts=[value_text(value, headline.unit) for value in ordered.tolist()],
            codes=codes.tolist(),
            reasons=[reason_text(reason) for reason in reasons],
            bad=bad,
        )
