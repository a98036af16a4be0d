"""SQL over runs: the views, their columns, several runs at once."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import duckdb
import pytest

import convoscope
from convoscope.conversation import Conversation, Flow, FlowState, Outcome, Participant, StateEntered, Text, Utterance
from convoscope.errors import UsageError
from convoscope.metrics import CONVERSATION, HIGHER, SHARE, TenPoints, measured, metric
from convoscope.runs.make import make_run as score
from convoscope.runs.sql import query, views
from convoscope.scores.observation import Observation as Seen
from support.generated import FEW, write_lines

STATE_COLUMNS = [
    "run",
    "conversation",
    "flow",
    "agent",
    "model",
    "persona",
    "state",
    "segment",
    "visits",
    "progress",
    "stall",
    "escalation",
    "revisit",
    "dwell_turns",
    "latency_p95_ms",
    "guard_error",
    "slot_fill_rate",
    "slot_ready_rate",
    "to_states",
]
ASPECT_COLUMNS = [
    "run",
    "conversation",
    "flow",
    "agent",
    "persona",
    "aspect",
    "judge",
    "score",
    "value",
    "unit",
    "reason",
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> convoscope.Run:
    folder = tmp_path_factory.mktemp("sql")
    logs = write_lines(folder / "chats.jsonl", range(20))
    return score(logs, metrics=FEW, out=folder / "one", workers=1)


def test_scores_and_conversations(run: convoscope.Run) -> None:
    answer = query([run], "SELECT count(DISTINCT conversation) AS n FROM scores")
    assert answer == (["n"], [(20,)])
    answer = query([run], "SELECT model, count(*) FROM conversations GROUP BY 1 ORDER BY 1")
    assert answer.rows == [("model-0", 10), ("model-1", 10)]


def test_an_unmeasured_score_is_null_and_never_nan(run: convoscope.Run) -> None:
    answer = query([run], "SELECT count(*) FROM scores WHERE (status = 'measured') <> (value IS NOT NULL)")
    assert answer.rows == [(0,)]
    assert query([run], "SELECT count(*) FROM scores WHERE isnan(value)").rows == [(0,)]
    assert query([run], "SELECT count(*) FROM scores WHERE status <> 'measured' AND reason IS NULL").rows == [(0,)]


def test_scores_hold_what_was_observed_and_all_scores_the_rest_as_well(run: convoscope.Run) -> None:
    # Two of three chats have times; whoever has none was not looked at by the metric.
    latency = "metric = 'timing.response_latency'"
    sql = f"SELECT status, reason, count(DISTINCT conversation) FROM {{}} WHERE {latency} GROUP BY ALL"
    assert query([run], sql.format("scores")).rows == [("measured", None, 13)]
    assert sorted(query([run], sql.format("all_scores")).rows) == [
        ("measured", None, 13),
        ("unmeasured", "no_clock", 7),
    ]
    assert sorted(query([run], sql.format("all_conversation_scores")).rows) == [
        ("measured", None, 13),
        ("unmeasured", "no_clock", 7),
    ]
    # Every metric says something of every conversation.
    every = "SELECT count(*) FROM all_conversation_scores"
    assert query([run], every).rows == [(20 * len(FEW),)]


def test_all_tables_have_the_columns_of_what_was_observed(run: convoscope.Run) -> None:
    for table in ("scores", "conversation_scores"):
        shown = [query([run], f"SELECT * FROM {name} LIMIT 0").columns for name in (table, f"all_{table}")]
        assert shown[0] == shown[1]


def test_a_profile_says_which_metrics_cannot_look(run: convoscope.Run) -> None:
    rows = query(
        [run],
        "SELECT count(DISTINCT c.conversation), p.status, p.reason, p.unit FROM profiles AS p "
        "JOIN conversations AS c USING (run, profile) WHERE p.metric = 'timing.response_latency' GROUP BY ALL",
    ).rows
    assert rows == [(7, "unmeasured", "no_clock", "s")]  # chats 0, 3, 6, … 18
    assert query([run], "SELECT * FROM profiles LIMIT 0").columns == [
        "run",
        "profile",
        "metric",
        "variant",
        "unit",
        "status",
        "reason",
        "detail",
    ]


def test_json_is_kept_as_text(run: convoscope.Run) -> None:
    answer = query([run], "SELECT DISTINCT typeof(body), typeof(dimensions), typeof(notes) FROM conversations")
    assert answer.rows == [("VARCHAR", "VARCHAR", "VARCHAR")]
    assert query([run], "SELECT DISTINCT typeof(details) FROM scores").rows == [("VARCHAR",)]
    assert query([run], "SELECT body->>'$.id' FROM conversations ORDER BY number LIMIT 1").rows == [("chat-00000",)]


def test_a_run_names_its_tables_for_whoever_asks_duckdb(run: convoscope.Run) -> None:
    with duckdb.connect() as connection:
        rows = connection.execute(f"SELECT count(*) FROM {run.table('conversations')}").fetchall()
    assert rows == [(20,)]


def test_several_runs_are_told_apart(run: convoscope.Run, tmp_path: Path) -> None:
    logs = write_lines(tmp_path / "more.jsonl", range(5))
    other = score(logs, metrics=["turns"], out=tmp_path / "two", workers=1)
    answer = query([run, other], "SELECT run, count(*) FROM conversations GROUP BY 1 ORDER BY 1")
    assert answer.rows == [("one", 20), ("two", 5)]
    assert query([run, other], "SELECT run, valid FROM runs ORDER BY 1").rows == [("one", True), ("two", True)]


def test_the_state_and_aspect_views_have_their_columns_even_when_empty(run: convoscope.Run) -> None:
    assert query([run], "SELECT * FROM state_scores") == (STATE_COLUMNS, [])
    assert query([run], "SELECT * FROM aspect_scores") == (ASPECT_COLUMNS, [])


def test_states_and_aspects_fill_the_views(tmp_path: Path) -> None:
    talk = Conversation(
        id="c1",
        dimensions={"flow": "viewing", "agent": "alpha", "persona": "hurried"},
        participants=(Participant("assistant", "assistant"),),
        flow=Flow(name="viewing", states=(FlowState(name="greet", segment="opening"),)),
        timeline=(
            StateEntered(seq=0, state="greet"),
            Utterance(seq=1, speaker="assistant", intended=Text("Hello.")),
            StateEntered(seq=2, state="collect"),
        ),
        outcome=Outcome(completed=False),
    )

    @metric(
        "mine.correctness",
        version=1,
        observes=CONVERSATION,
        unit=SHARE,
        better=HIGHER,
        aspect="correctness",
        ten=TenPoints(zero=0, ten=1),
    )
    def correctness(conversation: Conversation) -> Seen:
        """Three parts of four were right."""
        return measured(conversation, 0.75)

    run = score([talk], metrics=[correctness], out=tmp_path / "run", workers=1)
    answer = query([run], "SELECT state, flow, segment, progress, stall, to_states FROM state_scores ORDER BY state")
    # It went from greet to collect, and no further, unfinished.
    assert answer.rows == [
        ("collect", "viewing", None, 0, 1, []),
        ("greet", "viewing", "opening", 1, 0, ["collect"]),
    ]
    answer = query([run], "SELECT aspect, agent, persona, judge, score, value, unit FROM aspect_scores")
    assert answer.rows == [("correctness", "alpha", "hurried", "(computed)", 7.5, 0.75, "share")]


def test_a_bad_query_is_a_clear_error(run: convoscope.Run) -> None:
    with pytest.raises(UsageError, match="nonsense"):
        query([run], "SELECT nonsense FROM scores")


def test_no_run_to_ask_is_a_clear_error() -> None:
    with pytest.raises(UsageError, match="no run"):
        query([], "SELECT 1")


class TestOnlyReads:
    """A query reads the files of its runs. It reaches nothing else, and changes nothing."""

    @pytest.fixture
    def odd(self, run: convoscope.Run, tmp_path: Path) -> convoscope.Run:
        """A run of its own, in a folder whose name means other things to a database."""
        folder = tmp_path / "o'dd [a-z]* ?"
        shutil.copytree(run.folder, folder)
        return convoscope.Run.open(folder)

    @staticmethod
    def part(run: convoscope.Run) -> str:
        return str(run.folder / "scores.parquet" / "part-000000.parquet").replace("'", "''")

    @pytest.mark.parametrize(
        "sql",
        [
            "COPY (SELECT 1) TO '{new}'",
            "COPY (SELECT 1) TO '{part}' (FORMAT parquet)",
            # The database takes it for a SELECT.
            "WITH x AS (COPY (SELECT 1) TO '{part}' (FORMAT parquet, USE_TMP_FILE false)) SELECT * FROM x",
            "WITH x AS (INSERT INTO runs (run) VALUES ('forged') RETURNING run) SELECT * FROM x",
            "EXPORT DATABASE '{new}'",
            "ATTACH '{new}' AS other",
            "CREATE TABLE mine AS SELECT 1",
            "INSERT INTO runs (run) VALUES ('forged')",
            "DELETE FROM runs",
            "DROP VIEW scores",
            "INSTALL httpfs",
            "INSTALL httpfs FROM 'http://127.0.0.1:9/'",
            "LOAD httpfs",
            "PRAGMA version",
            "SET threads = 1",
            "RESET lock_configuration",
            "CALL pragma_version()",
            "EXPLAIN ANALYZE COPY (SELECT 1) TO '{new}'",
            "PREPARE p AS SELECT 1",
            "SELECT 1; COPY (SELECT 1) TO '{new}'",
            "SELECT 1; SELECT 2",
            "-- no query at all",
        ],
    )
    def test_what_is_no_select_is_refused(self, odd: convoscope.Run, tmp_path: Path, sql: str) -> None:
        part = odd.folder / "scores.parquet" / "part-000000.parquet"
        before, there = part.read_bytes(), sorted(tmp_path.iterdir())
        with pytest.raises(UsageError) as error:
            query([odd], sql.format(new=tmp_path / "new", part=self.part(odd)))
        assert "one SELECT" in str(error.value)
        assert "views: scores" in str(error.value)
        assert part.read_bytes() == before
        assert sorted(tmp_path.iterdir()) == there

    @pytest.mark.parametrize(
        "source",
        [
            "read_text('{secret}')",
            "read_csv('{secret}')",
            "'{secret}'",
            "glob('{secret}*')",
            "read_parquet('{folder}/*.parquet')",
            "read_text('{receipt}')",
            "read_parquet('http://127.0.0.1:9/x.parquet')",
            "query('SELECT * FROM read_text(''{secret}'')')",
            "duckdb_secrets()",
        ],
    )
    def test_other_files_and_the_network_are_out_of_reach(
        self, odd: convoscope.Run, tmp_path: Path, source: str
    ) -> None:
        secret = tmp_path / "secret.csv"
        secret.write_text("a\n1\n")
        names = {
            "secret": secret,
            "folder": str(odd.folder).replace("'", "''"),
            "receipt": str(odd.folder / "receipt.json").replace("'", "''"),
        }
        with pytest.raises(UsageError, match="disabled by configuration"):
            query([odd], f"SELECT * FROM {source.format(**names)}")

    @pytest.mark.parametrize(
        "sql",
        [
            "SELECT count(*) FROM {view}",
            "FROM {view} LIMIT 1",
            "DESCRIBE {view}",
            "SUMMARIZE SELECT 1 AS one FROM {view}",
            "WITH a AS (SELECT 1 FROM {view}), b AS MATERIALIZED (FROM a) SELECT 1 FROM a UNION ALL FROM b -- both",
            "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT i FROM n, {view};",
        ],
    )
    @pytest.mark.parametrize("view", views(()))
    def test_every_view_can_be_read(self, odd: convoscope.Run, sql: str, view: str) -> None:
        assert query([odd], sql.format(view=view)).columns

    def test_where_conversations_share_an_id(self, tmp_path: Path) -> None:
        talks = [Conversation(id="same", dimensions={"trial": trial}) for trial in "01"]
        run = convoscope.score(talks, metrics=["conversation.turns"], out=tmp_path / "run", workers=1)
        sql = "SELECT conversation FROM conversations ORDER BY number"
        assert query([run], sql).rows == [("same",), ("same~2",)]

    def test_a_query_that_needs_much_room_leaves_nothing_behind(
        self, odd: convoscope.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        there = sorted(tmp_path.rglob("*"))
        wide = "SELECT DISTINCT i::VARCHAR || repeat('x', 200) AS text FROM range(2_000_000) AS t(i)"
        assert query([odd], f"SELECT count(*) FROM ({wide}) WHERE text <> ''").rows == [(2_000_000,)]
        assert sorted(tmp_path.rglob("*")) == there


def test_times_with_a_zone_are_text(run: convoscope.Run) -> None:
    answer = query(
        [run],
        "SELECT TIMESTAMPTZ '2026-01-02 03:04:05+00' = '2026-01-02 04:04:05+01' AS same, now() AS a, 7 AS a, "
        "[now()] AS many, TIMETZ '10:00:00+01' AS of_day",
    )
    assert answer.columns == ["same", "a", "a", "many", "of_day"]
    ((same, now, seven, many, of_day),) = answer.rows
    assert (same, seven, of_day) == (True, 7, "10:00:00+01")
    assert re.match(r"20\d\d-\d\d-\d\d ", now)
    assert many == f"['{now}']"
