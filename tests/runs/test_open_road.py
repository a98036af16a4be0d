"""A family of somebody else travels the road: subjects, a table of its own, a resource, and nothing else is touched."""

import json
from pathlib import Path

import pytest

import convoscope
from command_line import convoscope as command
from convoscope.errors import UsageError
from convoscope.runs.audit import audit
from convoscope.runs.sql import query

FAMILY = '''
"""Topics: which words of a caller name one, and how well a judge finds that it was dealt with."""
from collections.abc import AsyncIterator, Sequence

import msgspec
from convoscope import Conversation, Judge, SideTable, axis, metric, resource
from convoscope.metrics import HIGHER, SHARE, Observation, Reduce, Subject, ratio
from convoscope.scores.reducers import RATIO, RATIO_OF_SUMS
from convoscope.resources import Verdict

TOPIC = axis("topic", by=("domain",))

class Mention(msgspec.Struct, frozen=True):
    topic: str
    times: int

def mentions(conversation: Conversation) -> Sequence[Mention]:
    words = " ".join(turn.user_text for turn in conversation.turns).lower().split()
    return [Mention(topic, words.count(topic)) for topic in ("refund", "parcel") if topic in words]

def recount(body: str) -> dict[str, int]:
    return {topic: body.count(topic) for topic in ("refund", "parcel") if topic in body}

MENTIONS = SideTable(
    name="mentions", what="a topic in a conversation", row=Mention, rows=mentions, key="topic",
    combine={"times": "sum(times)::BIGINT"}, counted="times", recount=recount,
)

@metric("topics.dealt_with", version=1, observes=TOPIC, unit=SHARE, better=HIGHER,
        reduce=Reduce(RATIO, RATIO_OF_SUMS))
async def dealt_with(conversation: Conversation, judge: Judge) -> AsyncIterator[Observation]:
    """Was the topic dealt with?"""
    for row in mentions(conversation):
        verdict = await judge.ask(f"{row.topic} in {conversation.id}", {})
        yield ratio(Subject("topic", row.topic), verdict.answer["value"], 1, empty="nothing_asked")
'''
JUDGE = """

class Strict:
    identity = "mine/strict@1"

    async def ask(self, prompt: str, schema: object) -> Verdict:
        return Verdict({"value": float("refund" in prompt)}, self.identity)

@resource
def strict() -> Judge:
    return Strict()
"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    said = ["my refund please", "where is my parcel", "a refund for my parcel", "the parcel the parcel", "hello"]
    chats = [
        {
            "id": f"c{number}",
            "domain": "shop" if number < 4 else "other",
            "messages": [{"role": "user", "content": text}, {"role": "assistant", "content": "Yes."}],
        }
        for number, text in enumerate(said)
    ]
    path = tmp_path_factory.mktemp("topics") / "chats.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in chats))
    return path


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("family") / "topic_family.py"
    path.write_text(FAMILY + JUDGE)
    return path


@pytest.fixture(scope="module")
def scored(logs: Path, family: Path, tmp_path_factory: pytest.TempPathFactory) -> convoscope.Run:
    out = tmp_path_factory.mktemp("scored") / "run"
    return convoscope.score(logs, metrics=["topics", "turns"], metrics_from=[family], out=out, workers=2)


def test_the_summary_has_a_group_for_each_subject(scored: convoscope.Run) -> None:
    found = {tuple(group.by.items()): group for group in scored.summary.groups if "topic" in group.by}
    # refund: c0 and c2, both dealt with. parcel: c1, c2, c3, none.
    refund = found[("domain", "shop"), ("topic", "refund")]
    parcel = found[("domain", "shop"), ("topic", "parcel")]
    assert (refund.conversations, parcel.conversations, len(found)) == (2, 3, 2)
    assert [(one.metric, one.value, one.samples_measured) for one in refund.metrics] == [("topics.dealt_with", 1.0, 2)]
    assert [(one.metric, one.value, one.samples_measured) for one in parcel.metrics] == [("topics.dealt_with", 0.0, 3)]
    interval = parcel.metrics[0].interval
    # Wilson, 0 of 3: up to z² ÷ (3 + z²) = 3.841459 ÷ 6.841459.
    assert interval is not None
    assert (interval.method, interval.low, interval.high) == ("wilson", 0.0, pytest.approx(0.561497, abs=1e-6))


def test_sql_has_the_table_and_what_its_rows_come_to(scored: convoscope.Run) -> None:
    rows = query([scored], "SELECT conversation, topic, times FROM mentions ORDER BY ALL").rows
    assert rows == [
        ("c0", "refund", 1),
        ("c1", "parcel", 1),
        ("c2", "parcel", 1),
        ("c2", "refund", 1),
        ("c3", "parcel", 2),
    ]
    scores = query([scored], "SELECT subject, sum(value), count(*) FROM scores WHERE subject_kind = 'topic' GROUP BY 1")
    assert sorted(scores.rows) == [("parcel", 0.0, 3), ("refund", 2.0, 2)]


def test_the_audit_counts_again(scored: convoscope.Run, family: Path) -> None:
    from convoscope.metrics.sources import registered

    table = registered([family]).tables["mentions"]
    found = audit(scored, table, values=True)
    assert (found.rows, found.disagreements) == (5, 0)
    assert scored.receipt.audit == {"rows": 5, "disagreements": 0}


def test_terminal_and_page_show_the_groups(logs: Path, family: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    ended = command("score", str(logs), "--metrics", "topics", "--metrics-from", str(family), "--out", str(out))
    assert ended.code == 0
    assert "by domain and topic" in ended.out
    lines = [line.split() for line in ended.out.splitlines()]
    assert ["shop", "parcel", "3", "0.0", "%"] in lines
    assert ["shop", "refund", "2", "100.0", "%"] in lines
    page = (out / "report.html").read_text()
    assert "dealt_with" in page
    assert "refund" in page


def test_without_the_judge_it_is_unmeasured_and_inspect_says_why(logs: Path, tmp_path: Path) -> None:
    alone = tmp_path / "topic_family_alone.py"
    alone.write_text(FAMILY)
    run = convoscope.score(logs, metrics=["topics"], metrics_from=[alone], out=tmp_path / "run")
    assert [(one.metrics, one.reason) for one in run.summary.not_measured] == [(["topics.dealt_with"], "no_judge")]
    told = json.loads(command("inspect", str(logs), "--metrics-from", str(alone), "--json").out)
    assert "topics.dealt_with" in json.dumps(told)


def test_rows_that_cannot_be_made_are_a_problem_and_the_rest_goes_on(logs: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken_family.py"
    text = FAMILY.replace(
        "    words = ", '    if conversation.id == "c1":\n        raise ValueError("odd")\n    words = '
    )
    broken.write_text(
        (text + JUDGE).replace('name="mentions"', 'name="odd_mentions"').replace("topics.dealt", "odd.dealt")
    )
    run = convoscope.score(logs, metrics=["odd", "turns"], metrics_from=[broken], out=tmp_path / "run")
    assert run.summary.conversations == 5
    assert [one.message for one in run.read_report.problems] == ["has no rows in odd_mentions: ValueError: odd"]
    assert query([run], "SELECT count(*) FROM odd_mentions").rows == [(4,)]


def test_a_table_that_there_is_already_is_refused(logs: Path, tmp_path: Path) -> None:
    twice = tmp_path / "twice_family.py"
    twice.write_text(FAMILY.replace('name="mentions"', 'name="states"').replace("topics.dealt", "twice.dealt"))
    with pytest.raises(UsageError, match="declares the table states"):
        convoscope.score(logs, metrics_from=[twice], out=tmp_path / "run")
