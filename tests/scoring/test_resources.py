"""Metrics are handed what they ask for by type; what nobody gives is a need like any other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import convoscope
from convoscope import Conversation, Judge, Recording
from convoscope.conversation import AudioFile as RecordingFact
from convoscope.conversation import Track
from convoscope.errors import DeclarationError, UsageError
from convoscope.metrics import CONVERSATION, HIGHER, Metric, Observation, measured, metric
from convoscope.resources import Sound, Verdict
from convoscope.resources.registry import JUDGE, RECORDING, by_type
from convoscope.runs.make import make_run
from convoscope.scoring.evaluate import observe
from support.chats import agent, chat, user
from support.command_line import convoscope as run_command

TALK = chat(user("hi"), agent("hello"))
FACTS: dict[str, Any] = {"version": 1, "observes": CONVERSATION, "unit": "x", "better": HIGHER}


class Counts(Judge):
    """Answers with the length of what it is asked."""

    def __init__(self, name: str = "local/counts@1") -> None:
        self.identity = name

    async def ask(self, prompt: str, schema: Mapping[str, Any]) -> Verdict:
        return Verdict({"score": len(prompt)}, self.identity)


def make_counts() -> Judge:
    return Counts()


async def takes_one(self: Any, prompt: str) -> Verdict:
    return Verdict({}, "local/wrong@1")


def answers_at_once(self: Any, prompt: str, schema: Any) -> Verdict:
    return Verdict({}, "local/wrong@1")


class Glossary:
    """Words that should be used."""

    identity = "glossary/1"

    def __init__(self, *words: str) -> None:
        self.words = words


@metric("test.judged", **FACTS)
async def judged(conversation: Conversation, judge: Judge) -> Observation:
    """How long is its id, in the eyes of a judge?"""
    verdict = await judge.ask(conversation.id, {})
    return measured(conversation, verdict.answer["score"], judge=verdict.judge)


@metric("test.words", **FACTS)
def words(conversation: Conversation, glossary: Glossary) -> Observation:
    """How many words of the glossary are said?"""
    said = " ".join(conversation.text(one) for one in conversation.utterances)
    return measured(conversation, sum(word in said for word in glossary.words))


@metric("test.seconds", **FACTS)
def seconds(conversation: Conversation, recording: Recording) -> Observation:
    """How long is the sound?"""
    return measured(conversation, max(len(one.samples) / one.rate for one in recording.tracks(conversation)))


class TestAMetric:
    def test_says_what_it_needs(self) -> None:
        (need,) = judged.needs
        assert (need.code, need.unlock) == ("no_judge", "a judge, named by the user")
        (need,) = words.needs
        assert (need.code, need.unlock) == ("no_glossary", "a resource of the type Glossary")
        codes = ["no_raw_complete_audio", "no_recording", "audio_not_installed", "recordings_not_opened"]
        assert [need.code for need in seconds.needs] == codes

    def test_without_it_is_unmeasured(self) -> None:
        (found,) = observe(judged, TALK)
        assert (found.status, found.reason, found.detail) == ("unmeasured", "no_judge", "no judge configured")

    def test_with_it_is_measured(self) -> None:
        (found,) = observe(judged, TALK, {JUDGE: Counts()})
        assert (found.value, found.judge) == (len(TALK.id), "local/counts@1")

    def test_of_a_recording_needs_a_recording_too(self) -> None:
        class Waves(Recording):
            identity = "waves/1"

            def tracks(self, conversation: Conversation) -> list[Sound]:
                return [Sound("", 4, [0.0] * 10)]

        heard = chat(recording=RecordingFact(tracks=(Track(url="https://example.org/a.wav"),)))
        assert observe(seconds, TALK, {RECORDING: Waves()})[0].reason == "no_recording"
        assert observe(seconds, heard)[0].reason == "recordings_not_opened"
        # 10 samples, 4 in a second
        assert observe(seconds, heard, {RECORDING: Waves()})[0].value == 2.5

    def test_can_be_called_by_hand(self) -> None:
        assert [one.value for one in words(chat(user("a b")), glossary=Glossary("a", "c"))] == [1.0]

    def test_says_what_its_parameters_are(self) -> None:
        def lost(conversation: Conversation, thing) -> Observation:  # type: ignore[no-untyped-def]
            """What is it handed?"""
            return measured(conversation, thing)

        with pytest.raises(DeclarationError, match=r"test\.lost does not say what its parameter thing is"):
            metric("test.lost", **FACTS)(lost)

    def test_may_have_parameters_with_defaults(self) -> None:
        def most(conversation: Conversation, limit: int = 3) -> Observation:
            """How many at most?"""
            return measured(conversation, limit)

        assert metric("test.most", **FACTS)(most).needs == ()


def score(tmp_path: Path, *metrics: Metric, **facts: Any) -> convoscope.Run:
    return make_run([TALK], metrics=metrics, out=tmp_path / "run", workers=1, **facts)


class TestARun:
    def test_is_given_objects(self, tmp_path: Path) -> None:
        run = score(tmp_path, judged, words, resources=[Counts(), Glossary("hello")])
        assert {one.metric: one.value for one in run.summary.metrics} == {"test.judged": len(TALK.id), "test.words": 1}

    def test_without_them_says_what_is_missing(self, tmp_path: Path) -> None:
        run = score(tmp_path, words)
        (silent,) = run.summary.not_measured
        assert silent.skipped_reasons == {"no_glossary": 1}
        assert [one.reason for one in run.scores(all=True)] == ["no_glossary"]

    def test_with_another_is_another_run(self, tmp_path: Path) -> None:
        score(tmp_path, judged, resources=[Counts()])
        assert score(tmp_path, judged, resources=[Counts()]).receipt.config["resources"] == {JUDGE: "local/counts@1"}
        with pytest.raises(convoscope.ConvoscopeError, match="resources changed"):
            score(tmp_path, judged, resources=[Counts("local/counts@2")])

    def test_what_no_metric_of_the_run_asks_for_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=r"no metric of this run asks for .*Counts, which is a Judge") as no:
            score(tmp_path, words, resources=[Counts()])
        assert "--metrics" in no.value.hint
        # The same judge of a file of metrics is for its other metrics.
        declared = convoscope.resource(make_counts)
        assert by_type([], ["a.Glossary"], [declared], [JUDGE]) == {}

    @pytest.mark.parametrize(
        ("ask", "fault"),
        [
            (None, "has no method ask"),
            (takes_one, r"cannot be asked: ask\(prompt: .* does not take prompt and schema"),
            (answers_at_once, "cannot be waited for: its ask is not `async def`"),
        ],
    )
    @pytest.mark.parametrize("extends", [Judge, object])
    def test_a_judge_that_does_not_fit_is_refused(self, ask: Any, fault: str, extends: type, tmp_path: Path) -> None:
        wrong = type("Wrong", (extends,), {"identity": "local/wrong@1"} | ({"ask": ask} if ask else {}))
        if extends is Judge:
            with pytest.raises(UsageError, match=fault):
                score(tmp_path, judged, resources=[wrong()])
        with pytest.raises(UsageError, match=fault if ask or extends is Judge else "is not a judge"):
            score(tmp_path, judged, judge=wrong())
        assert not (tmp_path / "run").exists()

    def test_a_judge_given_as_a_judge_need_not_extend_the_class(self, tmp_path: Path) -> None:
        plain = type("Plain", (), {"identity": "local/plain@1", "ask": Counts.ask})
        assert score(tmp_path, judged, judge=plain()).receipt.config["resources"] == {JUDGE: "local/plain@1"}

    @pytest.mark.parametrize("function", [lambda prompt: {}, lambda: None, lambda a, b, c: {}])
    def test_a_function_of_something_else_is_no_judge(self, function: Any, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="cannot be asked") as no:
            score(tmp_path, judged, judge=function)
        assert no.value.hint == "it is a function of a prompt and a JSON Schema"

    def test_what_no_metric_can_use_is_refused(self, tmp_path: Path) -> None:
        class Lookalike:
            identity = "local/lookalike@1"

            async def ask(self, prompt: str, schema: Any) -> Verdict:
                return Verdict({}, self.identity)

        with pytest.raises(UsageError, match=r"asks for the resource .*Lookalike, which is a Lookalike") as no:
            score(tmp_path, judged, resources=[Lookalike()])
        assert no.value.hint == "it has the method ask: extend the class convoscope.metrics.Judge"
        with pytest.raises(UsageError, match=r"no metric asks for the resource .*Glossary") as no:
            score(tmp_path, judged, resources=[Glossary("hello")])
        assert "a class of your own" in no.value.hint

    def test_has_one_of_each_type(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="is named twice"):
            score(tmp_path, judged, resources=[Counts(), Counts()])

    def test_needs_to_know_what_answers_depend_on(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="Counts has no identity"):
            score(tmp_path, judged, resources=[Counts("")])

    @pytest.mark.parametrize("thing", [Counts, 3, "judge"])
    def test_refuses_what_is_none(self, thing: Any, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="is not a resource"):
            score(tmp_path, judged, resources=[thing])


FILE = '''
import os
from pathlib import Path

import convoscope
from convoscope import Conversation, Judge
from convoscope.metrics import measured
from convoscope.resources import Verdict

class Diary(Judge):
    """Writes down when it is opened and closed, and by whom."""

    identity = "diary/1"

    def note(self, what):
        with Path("diary.txt").open("a") as diary:
            diary.write(f"{what} {os.getpid()}\\n")

    async def __aenter__(self):
        self.note("opened")
        return self

    async def __aexit__(self, *_):
        self.note("closed")

    async def ask(self, prompt, schema):
        return Verdict({"score": len(prompt)}, self.identity)

@convoscope.resource
def judge() -> Judge:
    return Diary()

@convoscope.metric("mine.judged", version=1, observes="conversation", unit="x", better="higher")
async def judged(conversation: Conversation, judge: Judge):
    """How long is its id?"""
    verdict = await judge.ask(conversation.id, {})
    return measured(conversation, verdict.answer["score"], judge=verdict.judge)
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "my_judge.py").write_text(FILE)
    lines = [json.dumps({"id": f"c{n:02d}", "messages": [{"role": "user", "content": "hi"}]}) for n in range(40)]
    (tmp_path / "chats.jsonl").write_text("\n".join(lines))
    return tmp_path


class TestOnTheCommandLine:
    def test_a_file_brings_metrics_and_resources(self, folder: Path) -> None:
        ended = run_command(
            *("inspect", "chats.jsonl", "--metrics-from", "my_judge.py", "-m", "mine.judged", "--full"), cwd=folder
        )
        assert "40 of 40  How long is its id?" in ended.out
        ended = run_command(
            "score",
            "chats.jsonl",
            "--metrics-from",
            "my_judge.py",
            "-m",
            "mine",
            "--json",
            "--workers",
            "1",
            cwd=folder,
        )
        (figure,) = ended.json["summary"]["metrics"]
        assert (figure["value"], figure["judge"]) == (3.0, "diary/1")  # c07 has three letters
        assert [line.split()[0] for line in (folder / "diary.txt").read_text().splitlines()] == ["opened", "closed"]

    def test_without_a_resource_inspect_says_what_would_unlock_it(self, folder: Path) -> None:
        (folder / "my_judge.py").write_text(FILE.replace("@convoscope.resource", ""))
        ended = run_command(
            *("inspect", "chats.jsonl", "--metrics-from", "my_judge.py", "-m", "mine.judged", "--full"), cwd=folder
        )
        (row,) = [line for line in ended.out.splitlines() if line.startswith("mine.judged")]
        assert row.endswith("a judge, named by the user")

    def test_metrics_that_ask_no_judge_are_not_unlocked_by_one(self, folder: Path) -> None:
        ended = run_command(
            "inspect",
            "chats.jsonl",
            "--metrics-from",
            "my_judge.py",
            "-m",
            "mine,judged.agent_speech_fidelity",
            "--json",
            cwd=folder,
        )
        planned = {one["metric"]: one["applies_to"] for one in ended.json["plan"]["metrics"]}
        assert planned.pop("mine.judged") == 40
        assert set(planned.values()) == {0}

    def test_one_that_cannot_be_made_is_told(self, folder: Path) -> None:
        (folder / "my_judge.py").write_text(FILE.replace("return Diary()", "return os.environ['NO_SUCH_KEY']"))
        ended = run_command("score", "chats.jsonl", "--metrics-from", "my_judge.py", "-m", "mine", cwd=folder)
        assert ended.code == 2
        assert ended.err == "error: my_judge.judge cannot be made: KeyError: 'NO_SUCH_KEY'\n"


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_each_process_makes_its_own_and_closes_it(start: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from convoscope.scoring.engines import LocalEngine

    monkeypatch.chdir(folder)
    Path("my_judge.py").rename(f"my_{start}ed_judge.py")
    run = make_run(
        "chats.jsonl",
        metrics="mine.judged",
        metrics_from=[f"my_{start}ed_judge.py"],
        engine=LocalEngine(2, start=start),
        part_bytes=300,
        out="run",
    )
    assert run.summary.metrics[0].value == 3.0
    notes = [line.split() for line in Path("diary.txt").read_text().splitlines()]
    opened, closed = ([pid for what, pid in notes if what == word] for word in ("opened", "closed"))
    assert len(set(opened)) == len(opened) <= 2
    assert sorted(opened) == sorted(closed)


@metric("test.helped", **FACTS)
def helped(conversation: Conversation, glossary: Glossary | None = None, limit: int | None = None) -> Observation:
    """Was there a glossary?"""
    return measured(conversation, float(glossary is not None and limit is None))


class TestAResourceThatAMetricCanDoWithout:
    def test_is_no_need(self) -> None:
        assert helped.needs == ()

    def test_is_given_where_there_is_one(self, tmp_path: Path) -> None:
        run = score(tmp_path / "with", helped, resources=[Glossary("hello")])
        assert [one.value for one in run.summary.metrics] == [1.0]
        assert "resources" in run.receipt.config  # what it says depends on it
        alone = score(tmp_path / "alone", helped)
        assert [one.value for one in alone.summary.metrics] == [0.0]
        assert "resources" not in alone.receipt.config
