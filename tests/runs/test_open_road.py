"""A family of somebody else travels the road: subjects, a table of its own, a resource, and nothing else is touched."""

import json
from pathlib import Path

import pytest

import convoscope
from convoscope.errors import ConvoscopeError, UsageError
from convoscope.metrics import HIGHER, SHARE, Observation, Reduce, Subject, measured, unmeasured
from convoscope.metrics.declaration import axis
from convoscope.runs.audit import audit
from convoscope.runs.make import make_run
from convoscope.runs.sql import query
from convoscope.runs.summarise import MAX_SUBJECTS
from convoscope.scores.reducers import MEAN, percentile
from support.command_line import convoscope as command
from support.pages import page_facts

FAMILY = '''
"""Topics: which words of a caller name one, and how well a judge finds that it was dealt with."""
from collections.abc import AsyncIterator, Sequence

import msgspec
from convoscope import Conversation, Judge, SideTable, axis, metric, resource
from convoscope.metrics import HIGHER, SHARE, Observation, Reduce, Subject, ratio
from convoscope.scores.reducers import RATIO, RATIO_OF_SUMS
from convoscope.resources import Verdict

TOPIC = axis("theme", by=("domain",))

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
        yield ratio(Subject("theme", row.topic), verdict.answer["value"], 1, empty="nothing_asked")
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
    found = {tuple(group.by.items()): group for group in scored.summary.groups if "theme" in group.by}
    # refund: c0 and c2, both dealt with. parcel: c1, c2, c3, none.
    refund = found[("domain", "shop"), ("theme", "refund")]
    parcel = found[("domain", "shop"), ("theme", "parcel")]
    assert (refund.conversations, parcel.conversations, len(found)) == (2, 3, 2)
    assert [(one.metric, one.value, one.samples_measured) for one in refund.metrics] == [("topics.dealt_with", 1.0, 2)]
    assert [(one.metric, one.value, one.samples_measured) for one in parcel.metrics] == [("topics.dealt_with", 0.0, 3)]
    interval = parcel.metrics[0].interval
    # Wilson, 0 of 3: up to z² ÷ (3 + z²) = 3.841459 ÷ 6.841459.
    assert interval is not None
    assert (interval.method, interval.low, interval.high) == ("wilson", 0.0, pytest.approx(0.561497, abs=1e-6))


def test_sql_has_the_table_and_what_its_rows_come_to(scored: convoscope.Run, family: Path) -> None:
    from convoscope.metrics.registry import registered

    rows = query([scored], "SELECT conversation, topic, times FROM mentions ORDER BY ALL").rows
    assert rows == [
        ("c0", "refund", 1),
        ("c1", "parcel", 1),
        ("c2", "parcel", 1),
        ("c2", "refund", 1),
        ("c3", "parcel", 2),
    ]
    # What SQL does with the rows comes from the code that declares the table, never from the run.
    declared = registered([family]).tables.values()
    sums = query([scored], "SELECT flow, topic, times FROM mentions_combined ORDER BY topic", declared).rows
    assert sums == [(None, "parcel", 4), (None, "refund", 2)]
    scores = query([scored], "SELECT subject, sum(value), count(*) FROM scores WHERE subject_kind = 'theme' GROUP BY 1")
    assert sorted(scores.rows) == [("parcel", 0.0, 3), ("refund", 2.0, 2)]


def test_the_audit_counts_again(scored: convoscope.Run, family: Path) -> None:
    from convoscope.metrics.registry import registered

    table = registered([family]).tables["mentions"]
    found = audit(scored, table, values=True)
    assert (found.rows, found.disagreements) == (5, 0)
    assert scored.receipt.audit == {"rows": 5, "disagreements": 0}


def test_terminal_and_page_show_the_groups(logs: Path, family: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    family_options = ("--metrics", "topics", "--metrics-from", str(family))
    ended = command("score", str(logs), *family_options, "--out", str(out), "--full")
    assert ended.code == 0
    assert "by domain and theme" in ended.out
    lines = [line.split() for line in ended.out.splitlines()]
    assert ["shop", "parcel", "3", "0.0", "%"] in lines
    assert ["shop", "refund", "2", "100.0", "%"] in lines
    page = page_facts(out / "report.html")
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
    assert [one.message for one in run.read_report.problems] == [
        "conversation c1 has no rows in odd_mentions: ValueError: odd"
    ]
    assert query([run], "SELECT count(*) FROM odd_mentions").rows == [(4,)]


def test_a_table_that_there_is_already_is_refused(logs: Path, tmp_path: Path) -> None:
    twice = tmp_path / "twice_family.py"
    twice.write_text(FAMILY.replace('name="mentions"', 'name="states"').replace("topics.dealt", "twice.dealt"))
    with pytest.raises(UsageError, match="declares the table states"):
        convoscope.score(logs, metrics_from=[twice], out=tmp_path / "run")


@pytest.mark.parametrize(
    ("times", "told"),
    [
        ("2**31", "times cannot hold 2147483648"),
        ('"many"', "times cannot hold 'many'"),
        ("None", "times cannot hold None"),
        ("1.5", "times cannot hold 1.5"),
        ("True", "times cannot hold True"),
    ],
)
def test_a_value_that_does_not_fit_its_column_costs_its_conversation_alone(
    logs: Path, tmp_path: Path, times: str, told: str
) -> None:
    wrong = tmp_path / f"{tmp_path.name}_family.py"
    odd = f'    if conversation.id == "c1":\n        return [Mention("parcel", {times})]\n'
    wrong.write_text(FAMILY.replace("    words = ", f"{odd}    words = ").replace("topics.dealt", "wrong.dealt"))
    run = convoscope.score(logs, metrics=["turns"], metrics_from=[wrong], out=tmp_path / "run")
    assert [one.message for one in run.read_report.problems] == [
        f"conversation c1 has no rows in mentions: ValueError: {told}"
    ]
    assert query([run], "SELECT count(*) FROM mentions").rows == [(4,)]


def test_a_row_of_one_field(logs: Path, tmp_path: Path) -> None:
    short = tmp_path / "short_family.py"
    text = FAMILY.replace("    times: int\n", "").replace("Mention(topic, words.count(topic))", "Mention(topic)")
    text = text.replace('combine={"times": "sum(times)::BIGINT"}, counted="times", recount=recount,', "")
    short.write_text(text)
    run = convoscope.score(logs, metrics=["turns"], metrics_from=[short], out=tmp_path / "run")
    assert query([run], "SELECT topic, count(*) FROM mentions GROUP BY 1 ORDER BY 1").rows == [
        ("parcel", 3),
        ("refund", 2),
    ]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (('name="mentions"', 'name="aspect_scores"'), "cannot be the name of a table"),
        (('name="mentions"', 'name="x_combined"'), "cannot be the name of a table"),
        (("sum(times)", "sum(nothing)"), "cannot be made"),
        (("times: int", "times: object"), "cannot be stored"),
        (("times: int", "times: int\n    conversation: int = 0"), "as every table has"),
        (('axis("theme", by=("domain",))', 'axis("agent")'), "cannot be an axis"),
        (('axis("theme", by=("domain",))', 'axis("state", by=())'), "is an axis already"),
    ],
)
def test_a_declaration_that_cannot_work_is_refused_before_anything_is_scored(
    logs: Path, tmp_path: Path, change: tuple[str, str], told: str
) -> None:
    wrong = tmp_path / f"{tmp_path.name}_family.py"
    wrong.write_text(FAMILY.replace(*change))
    with pytest.raises(ConvoscopeError, match=told):
        convoscope.score(logs, metrics=["turns"], metrics_from=[wrong], out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("change", [("sum(times)", "max(times)"), ('by=("domain",)', 'by=("agent",)')])
def test_a_changed_declaration_makes_another_run(logs: Path, tmp_path: Path, change: tuple[str, str]) -> None:
    before, after = tmp_path / "a" / "changed_family.py", tmp_path / "b" / "changed_family.py"
    for path, text in ((before, FAMILY + JUDGE), (after, (FAMILY + JUDGE).replace(*change))):
        path.parent.mkdir()
        path.write_text(
            text.replace('axis("theme"', f'axis("theme_{change[1][:3]}"').replace(
                'Subject("theme"', f'Subject("theme_{change[1][:3]}"'
            )
        )
    first = command(
        "score", str(logs), "--metrics", "topics", "--metrics-from", str(before), "--out", str(tmp_path / "run")
    )
    again = command(
        "score", str(logs), "--metrics", "topics", "--metrics-from", str(after), "--out", str(tmp_path / "run")
    )
    assert (first.code, again.code) == (0, 2)
    assert "changed" in again.err


def test_what_never_reached_the_judge_stays_in_the_group(logs: Path, tmp_path: Path) -> None:
    @convoscope.metric("half.judged", version=1, observes="theme", unit=SHARE, better=HIGHER)
    def half(conversation: convoscope.Conversation) -> Observation:
        """Is it good?"""
        if conversation.id == "c0":
            return unmeasured(Subject("theme", "any"), "not_asked")
        return measured(Subject("theme", "any"), 1, judge="mine/strict@1")

    axis("theme", by=("domain",))
    run = convoscope.score(logs, metrics=[half], out=tmp_path / "run", by=[["theme"]], workers=1)
    group = next(one for one in run.summary.groups if one.by == {"theme": "any"})
    figure = group.metrics[0]
    # Five conversations: one was not asked about, four were, and are good.
    assert (figure.value, figure.samples_total, figure.samples_measured) == (1.0, 5, 4)
    assert figure.skipped_reasons == {"not_asked": 1}


def test_percentiles_of_a_subject_are_over_all_that_was_observed(logs: Path, tmp_path: Path) -> None:
    @convoscope.metric(
        "half.slow", version=1, observes="theme", unit="s", better=HIGHER, reduce=Reduce(MEAN, percentile(50))
    )
    def slow(conversation: convoscope.Conversation) -> list[Observation]:
        """How slow?"""
        return [
            measured(Subject("theme", "any"), value, judge="mine@1", repeat=place)
            for place, value in enumerate((0, 0, 9))
        ]

    axis("theme", by=("domain",))
    run = convoscope.score(logs, metrics=[slow], out=tmp_path / "run", by=[["theme"]], workers=1)
    group = next(one for one in run.summary.groups if one.by == {"theme": "any"})
    # 0, 0 and 9 of each of five conversations: the middle of all fifteen is 0, that of their means were 3.
    assert {one.judge: one.value for one in group.metrics}["mine@1"] == 0.0


def test_the_axis_may_be_named_anywhere_and_what_lacks_a_dimension_says_so(tmp_path: Path) -> None:
    lines = []
    for number, flow in enumerate(("vet", "vet", None)):
        own = {"conversation_id": f"c{number}", **({"flow": flow} if flow else {})}
        lines.append({**own, "timestamp": 1, "event": "state_entered", "state": "greet"})
        lines.append({**own, "timestamp": 2, "event": "conversation_ended", "completed": number == 0})
    logs = tmp_path / "events.jsonl"
    logs.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = convoscope.score(logs, metrics=["state.stall"], out=tmp_path / "run", by=[["state", "flow"], ["state"]])
    found = [(group.by, group.conversations, group.metrics[0].value) for group in run.summary.groups]
    assert found == [
        ({"flow": "(no flow)", "state": "greet"}, 1, 1.0),
        ({"flow": "vet", "state": "greet"}, 2, 0.5),
        ({"state": "greet"}, 3, pytest.approx(2 / 3)),
    ]
    assert not run.read_report.warnings
    rows = convoscope.states(run).matrix().rows
    assert [(row.flow, row.state, row.n, row.stall.value) for row in rows] == [
        ("(no flow)", "greet", 1, 1.0),
        ("vet", "greet", 2, 0.5),
    ]


def test_names_without_end_cost_no_figures(tmp_path: Path) -> None:
    logs = tmp_path / "events.jsonl"
    names = [f"order {number}" for number in range(MAX_SUBJECTS + 50)]
    with logs.open("w") as stream:
        for number, name in enumerate([*names, "greet", "greet"]):
            event = {
                "conversation_id": f"c{number}",
                "flow": "shop",
                "timestamp": 1,
                "event": "state_entered",
                "state": name,
            }
            stream.write(json.dumps(event) + "\n")
    run = convoscope.score(logs, metrics=["state.progress"], out=tmp_path / "run")
    assert [group.by for group in run.summary.groups] == [{"flow": "shop", "state": "greet"}]
    small = next(one for one in run.summary.small_groups if one.by == ["flow", "state"])
    assert (small.minimum, small.groups, small.conversations) == (2, len(names), len(names))
    # Who asks for the states gets all of them.
    assert len(convoscope.states(run).matrix().rows) == len(names) + 1


def test_a_value_of_another_subject_than_the_declared_one_is_an_error(logs: Path, tmp_path: Path) -> None:
    kind = axis("test_kind")

    @convoscope.metric("test.astray", version=1, observes=kind, unit=SHARE, better=HIGHER)
    def astray(conversation: convoscope.Conversation) -> Observation:
        """What belongs to no group?"""
        return measured(conversation, 1.0)

    run = make_run(logs, metrics=[astray], out=tmp_path / "run", workers=1)
    (figure,) = run.summary.figures
    assert (figure.status, figure.reason) == ("error", "metric_raised")
    ((detail,),) = query([run], "SELECT DISTINCT detail FROM scores").rows
    assert detail == "TypeError: observes a test_kind, but gave a value of a conversation"
