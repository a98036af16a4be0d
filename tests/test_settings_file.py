"""`convoscope.toml`: what it says is used, what is wrong in it is named, and a found one never makes a run send."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from convoscope.errors import InputError, UsageError
from convoscope.settings_file import FoundSettings, find_settings, judge_options, read_settings_file, score_options
from support.command_line import Ended
from support.command_line import convoscope as command
from support.judge_server import JudgeServer, judge_server

MESSAGES = [{"role": "user", "content": "Mail me: ada@example.org"}, {"role": "assistant", "content": "Done."}]


def written(folder: Path, text: str) -> FoundSettings:
    file = folder / "convoscope.toml"
    file.write_text(text)
    return FoundSettings(file, read_settings_file(file), is_named=False)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[JudgeServer]:
    monkeypatch.setenv("CONVOSCOPE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "chat.json").write_text(json.dumps({"messages": MESSAGES}))
    with judge_server() as running:
        yield running


def score(tmp_path: Path, *arguments: object, folder: str = ".") -> Ended:
    chat = tmp_path / "chat.json"
    return command(
        "score", chat, "-m", "judged.faithfulness,agent.words_per_turn", "--json", *arguments, cwd=tmp_path / folder
    )


class TestFinding:
    def test_upwards_from_the_working_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "a" / "b").mkdir(parents=True)
        written(tmp_path, "[judge]\nrepeats = 2\n")
        monkeypatch.chdir(tmp_path / "a" / "b")
        found = find_settings()
        assert found is not None
        assert (found.file, found.is_named, found.tables.judge.repeats) == (Path("../../convoscope.toml"), False, 2)
        written(tmp_path / "a", "[judge]\nrepeats = 3\n")
        nearest = find_settings()
        assert nearest is not None
        assert nearest.tables.judge.repeats == 3

    def test_a_named_one_has_to_be_there(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="cannot be opened"):
            find_settings(tmp_path / "no.toml")


class TestWhatIsWrong:
    @pytest.mark.parametrize(
        ("text", "where", "message"),
        [
            ("[judge]\n\nrepeat = 2\n", "convoscope.toml:3 judge.repeat", "did you mean repeats"),
            ("[jugde]\nrepeats = 2\n", "convoscope.toml:1 jugde", "did you mean judge"),
            ("[judge]\nrepeats = 'two'\n", "convoscope.toml:2 judge.repeats", "Expected `int`, got `str`"),
            ("[judge]\nrepeats = 0\n", "convoscope.toml:2 judge.repeats", ">= 1"),
            ("[judge]\nredact = 'no'\n", "convoscope.toml:2 judge.redact", "Expected `bool`"),
            ("[judge]\nmodel = 4\n", "convoscope.toml:2 judge.model", "Expected `str | array`"),
            ("[judge.weights]\na = -1\n", "convoscope.toml:1 judge.weights", "Expected `float` >= 0"),
            ("judge = 'openai:x'\n", "convoscope.toml:1 judge", "Expected a table, got `str`"),
            ("[judge]\nform = 'maybe'\n", "convoscope.toml:2 judge.form", "Invalid enum value 'maybe'"),
            ("[judge]\ntimeout = 0\n", "convoscope.toml:2 judge.timeout", "Expected `float` > 0"),
            ("[judge\n", "convoscope.toml:1", "is not TOML"),
            ("[judge]\nzzz = 1\n", "convoscope.toml:2 judge.zzz", "there is model, repeats"),
        ],
    )
    def test_is_named_with_file_line_and_key(self, tmp_path: Path, text: str, where: str, message: str) -> None:
        with pytest.raises(InputError) as wrong:
            written(tmp_path, text)
        assert where in str(wrong.value)
        assert message in str(wrong.value)

    def test_bytes_that_are_no_text(self, tmp_path: Path) -> None:
        (tmp_path / "convoscope.toml").write_bytes(b"\xff\xfe\x00")
        with pytest.raises(InputError, match="is not TOML"):
            read_settings_file(tmp_path / "convoscope.toml")


FILE = """
[judge]
model = ["openai:a", "anthropic:b"]
repeats = 3
panel = "mean"
second_look = "openai:c"
redact = false
redact_patterns = ["A-[0-9]+"]
rubrics = "rubrics"
budget = 5
max_questions = 100
temperature = 0.5
"""


class TestMerging:
    def test_a_found_file_names_no_judge(self, tmp_path: Path) -> None:
        assert judge_options(written(tmp_path, FILE), {"judge": None, "repeats": None}) == {}

    def test_a_named_file_does(self, tmp_path: Path) -> None:
        named = written(tmp_path, FILE)._replace(is_named=True)
        options = judge_options(named, {"judge": None, "repeats": 1})
        assert options["judge"] == ["openai:a", "anthropic:b"]
        assert (options["repeats"], options["panel"], options["second_look"]) == (1, "mean", "openai:c")
        assert options["rubrics"] == [str(tmp_path.resolve() / "rubrics")]
        assert (options["redact"], options["budget"], options["temperature"]) == (False, 5, 0.5)

    def test_and_a_found_one_by_its_word(self, tmp_path: Path) -> None:
        options = judge_options(written(tmp_path, FILE), {"judge": ["settings", "openai:d"]})
        assert options["judge"] == ["openai:a", "anthropic:b", "openai:d"]
        assert (options["second_look"], options["redact"]) == ("openai:c", False)

    def test_of_a_found_file_nothing_makes_a_run_send_more_or_elsewhere(self, tmp_path: Path) -> None:
        options = judge_options(written(tmp_path, FILE), {"judge": ["openai:d"]})
        assert options["judge"] == ["openai:d"]
        # Its limits hold for another judge, too.
        assert (options["budget"], options["max_questions"], options["redact_patterns"]) == (5, 100, ["A-[0-9]+"])
        assert not {"repeats", "second_look", "redact", "panel"} & options.keys()
        # To take more out is no harm.
        assert judge_options(written(tmp_path, "[judge]\nredact = true"), {"judge": ["openai:d"]})["redact"] is True

    def test_a_found_file_sends_no_work_to_another_machine(self, tmp_path: Path) -> None:
        found = written(tmp_path, '[score]\nengine = "dask://scheduler:8786"\n')
        with pytest.raises(InputError, match=r"convoscope\.toml:2 score\.engine: dask://scheduler:8786 is another"):
            score_options(found, {"engine": None})
        assert score_options(found, {"engine": "ray://local"})["engine"] == "ray://local"
        assert score_options(found._replace(is_named=True), {})["engine"] == "dask://scheduler:8786"
        here = written(tmp_path, '[score]\nengine = "dask://local"\n')
        assert score_options(here, {"engine": None})["engine"] == "dask://local"

    def test_the_word_needs_a_file_and_a_model(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=r"there is no convoscope.toml"):
            judge_options(None, {"judge": ["settings"]})
        with pytest.raises(InputError, match="names no model"):
            judge_options(written(tmp_path, "[judge]\nrepeats = 2\n"), {"judge": ["settings"]})


class TestCommands:
    def test_a_run_sends_nothing_because_of_a_found_file(self, server: JudgeServer, tmp_path: Path) -> None:
        (tmp_path / "here").mkdir()
        written(tmp_path, f'[judge]\nmodel = "{server.openai}"\nsecond_look = "{server.anthropic}"\n')
        ended = score(tmp_path, "--out", "run", folder="here")
        assert ended.code == 0
        assert server.prompts == []
        assert "judging" not in ended.json["summary"]

    @pytest.mark.parametrize("how", [("--judge", "settings"), ("--settings", "../convoscope.toml")])
    def test_it_does_when_the_user_says_so(self, server: JudgeServer, tmp_path: Path, how: tuple[str, str]) -> None:
        (tmp_path / "here").mkdir()
        written(tmp_path, f'[judge]\nmodel = "{server.openai}"\nrepeats = 2\nredact = true\n')
        ended = score(tmp_path, "--out", "run", *how, folder="here")
        assert len(server.prompts) == 2
        assert "ada@example.org" not in "".join(server.bodies)
        assert ended.json["summary"]["judging"]["repeats"] == 2
        # The command line wins.
        score(tmp_path, "--out", "again", *how, "--repeats", "1", "--no-redact", "--no-cache", folder="here")
        assert len(server.prompts) == 3
        assert "ada@example.org" in server.bodies[2]

    def test_a_broken_file_stops_the_run_before_anything_is_sent(self, server: JudgeServer, tmp_path: Path) -> None:
        (tmp_path / "convoscope.toml").write_text(f'[judge]\nmodel = "{server.openai}"\nrepats = 2\n')
        ended = score(tmp_path, "--judge", "settings")
        assert ended.code == 2
        assert "convoscope.toml:3 judge.repats: unknown key" in ended.err
        assert server.prompts == []

    def test_check_and_calibrate_take_the_judge_of_the_file(self, server: JudgeServer, tmp_path: Path) -> None:
        written(tmp_path, f'[judge]\nmodel = "{server.openai}"\ncalibration = "kept/calibration.json"\n')
        ended = command("judge", "check", "--judge", "settings", "--rubric", "speakability", "--json", cwd=tmp_path)
        assert ended.json["judge"] == server.openai
        asked = len(server.prompts)
        assert asked > 0
        turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello.", "expected_rating": 3}]
        (tmp_path / "conciseness.jsonl").write_text(json.dumps({"conv_turns": turns}) + "\n")
        ended = command("judge", "calibrate", "conciseness.jsonl", "--settings", "convoscope.toml", cwd=tmp_path)
        assert ended.code == 0
        assert (tmp_path / "kept" / "calibration.json").is_file()
        assert len(server.prompts) == asked + 1

    def test_its_form_is_that_of_its_own_judge(self, server: JudgeServer, tmp_path: Path) -> None:
        written(tmp_path, f'[judge]\nmodel = "{server.openai}"\nform = "yesno"\nmax_answer_tokens = 70\ntimeout = 30\n')
        ended = command("judge", "check", "--judge", "settings", "--rubric", "speakability", "--json", cwd=tmp_path)
        assert ended.code == 0, ended.err
        assert all(json.loads(body)["logprobs"] for body in server.bodies)
        ended = score(tmp_path, "--settings", "convoscope.toml", "--out", "run")
        assert ended.json["summary"]["judging"]["judges"][0].startswith("openai/tiny+yesno@")
        # Another judge, or what the command line says, has the usual form; the limit of its answers holds.
        for more in (("--judge", server.anthropic), ("--judge", "settings", "--judge-form", "scores")):
            server.bodies.clear()
            assert score(tmp_path, *more, "--out", more[1][:4]).code == 0
            [body] = map(json.loads, server.bodies)
            assert "logprobs" not in body
            assert body.get("max_tokens", body.get("max_completion_tokens")) == 70

    def test_questions_that_show_the_same_go_together_where_the_file_or_the_command_line_says_so(
        self, server: JudgeServer, tmp_path: Path
    ) -> None:
        item = {"agent_task": "Fare?", "agent_response": "12 euros.", "retrieved_context": [["The fare is 12 euros."]]}
        (tmp_path / "items.jsonl").write_text(json.dumps(item) + "\n")
        names = "factual_accuracy,claim_verification,hallucination_detection"

        def questions(*options: str) -> int:
            common = ("items.jsonl", "-m", names, "--judge", "settings", "--dry-run", "--json")
            ended = command("score", *common, *options, cwd=tmp_path)
            assert ended.code == 0, ended.err
            count = ended.json["questions"]
            assert isinstance(count, int)
            return count

        written(tmp_path, f'[judge]\nmodel = "{server.openai}"\n')
        assert (questions(), questions("--joint-questions")) == (3, 1)
        written(tmp_path, f'[judge]\nmodel = "{server.openai}"\njoint_questions = true\n')
        assert (questions(), questions("--no-joint-questions")) == (1, 3)
        assert server.prompts == []

    def test_without_a_judge_check_says_what_to_do(self, server: JudgeServer, tmp_path: Path) -> None:
        written(tmp_path, f'[judge]\nmodel = ["{server.openai}", "{server.anthropic}"]\n')
        silent: list[tuple[Any, ...]] = [("judge", "check"), ("judge", "check", "--judge", "settings")]
        messages = [command(*arguments, cwd=tmp_path).err for arguments in silent]
        assert "no judge is named" in messages[0]
        assert "one judge is asked here, and the settings name 2" in messages[1]
        assert server.prompts == []

    def test_a_budget_of_the_file_holds_for_check(self, server: JudgeServer, tmp_path: Path) -> None:
        written(tmp_path, f'[judge]\nmodel = "{server.openai}"\nmax_questions = 3\n')
        ended = command("judge", "check", "--judge", "settings", "--json", cwd=tmp_path)
        assert len(server.prompts) == 3
        assert {pair["reason"] for pair in ended.json["pairs"]} >= {"budget_spent"}
