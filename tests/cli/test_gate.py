"""`gate`, `baseline`, `init`, and `score` with a project file: what a team runs in CI."""

from __future__ import annotations

import json
import shutil
import tomllib
from contextlib import chdir
from pathlib import Path
from xml.etree import ElementTree

import pytest

from convoscope.runs.make import make_run
from convoscope.settings_file import read_settings_file
from support.command_line import Ended, convoscope_here
from support.compared_logs import write
from support.ended_chats import ended
from support.generated import write_lines

FEW = "turns,f1,repetition,tools.calls"
MET = "turns > 0"
MISSED = "tools.calls > 100"
OPEN = "f1 > 0.5"  # these chats have no ground truth
ABSENT = "agent.talks_over_user < 5%"


def convoscope(*arguments: object, cwd: Path) -> Ended:
    """The command, in a folder."""
    with chdir(cwd):
        return convoscope_here(*arguments)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs and a run of them, without a ground truth."""
    folder = tmp_path_factory.mktemp("work")
    write_lines(folder / "chats.jsonl", range(11, 15))
    assert convoscope("score", "chats.jsonl", "-m", FEW, "-o", "runs/one", cwd=folder).code == 0
    return folder


@pytest.fixture
def work(folder: Path, tmp_path: Path) -> Path:
    """A copy, for tests that write into it."""
    shutil.copytree(folder, tmp_path / "work")
    return tmp_path / "work"


def policy(*texts: str) -> str:
    return f"[policy]\ntarget = {json.dumps(texts)}\n"


def gate(folder: Path, *arguments: object) -> Ended:
    return convoscope("gate", "runs/one", *arguments, cwd=folder)


class TestGate:
    @pytest.mark.parametrize(
        ("texts", "code"),
        [([MET], 0), ([MET, MISSED, OPEN], 1), ([MET, OPEN], 3), ([MET, ABSENT], 3), ([MET, "turns change < 1"], 3)],
    )
    def test_ends_with_what_the_policy_comes_to(self, work: Path, texts: list[str], code: int) -> None:
        (work / "rules.toml").write_text(policy(*texts))
        done = gate(work, "--policy", "rules.toml")
        assert (done.code, done.err) == (code, "")
        lines = [line for line in done.out.splitlines() if not line.startswith("  ")]  # what is too long goes on
        assert len(lines) == len(texts) + 1
        answer = gate(work, "--policy", "rules.toml", "--json")
        assert (answer.code, len(answer.json["rules"])) == (code, len(texts))
        # the rules are in the order of the policy, as they are written there
        assert [rule["rule"].partition(" ")[0] for rule in answer.json["rules"]] == [
            text.partition(" ")[0] for text in texts
        ]

    def test_the_policy_of_the_project_is_found(self, work: Path) -> None:
        (work / "convoscope.toml").write_text(policy(MISSED))
        assert gate(work).code == 1
        assert convoscope("report", "runs/one", cwd=work).code == 1
        (work / "other.toml").write_text(policy(MET))
        assert gate(work, "--policy", "other.toml").code == 0

    def test_without_a_policy_there_is_nothing_to_pass(self, work: Path) -> None:
        done = gate(work)
        assert (done.code, done.err.splitlines()[0]) == (2, "error: there is no policy to hold the run against")

    def test_a_mistake_is_named_with_its_line(self, work: Path) -> None:
        (work / "rules.toml").write_text(
            '[[policy.target]]\nrule = "turns > 0"\n[[policy.target]]\nrule = "truns > 0"\n'
        )
        done = gate(work, "--policy", "rules.toml")
        assert done.code == 2
        assert done.err.startswith("error: rules.toml:3 policy.target[2]: no figure is called 'truns'\n  did you mean")

    def test_junit_has_a_test_for_each_rule(self, work: Path) -> None:
        (work / "rules.toml").write_text(policy(MET, "tools.calls > 100", ABSENT, "turns change < 1"))
        assert gate(work, "--policy", "rules.toml", "--junit", "junit.xml").code == 1
        root = ElementTree.parse(work / "junit.xml").getroot()
        endings = {case.get("name"): [child.tag for child in case] for case in root.iter("testcase")}
        assert endings["conversation.turns"] == ["system-out"]
        assert endings["tools.calls"] == ["failure"]
        assert endings["agent.talks_over_user < 5%"] == ["error"]
        assert endings["conversation.turns change < +1"] == ["error"]

    @pytest.mark.parametrize(("when", "tag"), [("stop", "error"), ("fail", "failure"), ("warn", "skipped")])
    def test_an_undetermined_rule_is_never_a_passed_test(self, work: Path, when: str, tag: str) -> None:
        (work / "rules.toml").write_text(f'{policy(MET, OPEN, ABSENT)}when_undetermined = "{when}"\n')
        gate(work, "--policy", "rules.toml", "--junit", "junit.xml")
        root = ElementTree.parse(work / "junit.xml").getroot()
        endings = {case.get("name"): case[0].tag for case in root.iter("testcase") if len(case)}
        assert (endings["answer.f1"], endings["agent.talks_over_user < 5%"]) == (tag, tag)

    def test_markdown_says_the_verdict_first(self, work: Path) -> None:
        (work / "rules.toml").write_text(policy(MET, MISSED))
        gate(work, "--policy", "rules.toml", "--markdown", "gate.md")
        lines = (work / "gate.md").read_text().splitlines()
        assert lines[2] == "**gate failed**, over 4 conversations"
        # the rules are the rows of the first table
        assert [line.split(" | ")[3] for line in lines[6:8]] == ["passed", "failed"]


class TestScore:
    def test_a_policy_decides_how_it_ends(self, work: Path) -> None:
        (work / "rules.toml").write_text(policy(MET, MISSED))
        done = convoscope("score", "chats.jsonl", "-m", FEW, "-o", "runs/two", "--policy", "rules.toml", cwd=work)
        assert (done.code, done.out.splitlines()[-1]) == (1, "gate failed: 2 rules: 1 failed, 1 passed")

    def test_a_mistake_in_it_is_found_before_anything_is_scored(self, work: Path) -> None:
        (work / "rules.toml").write_text(policy("truns > 0"))
        done = convoscope("score", "chats.jsonl", "-o", "runs/two", "--policy", "rules.toml", cwd=work)
        assert done.code == 2
        assert not list((work / "runs").glob("two*"))

    def test_the_project_file_does_the_job(self, work: Path) -> None:
        (work / "sub").mkdir()
        (work / "convoscope.toml").write_text(
            '[score]\nlogs = "chats.jsonl"\nmetrics = ["turns", "f1"]\nout = "runs/team"\nby = "model"\n' + policy(MET)
        )
        done = convoscope("score", cwd=work)
        assert (done.code, done.err) == (0, "")
        assert "\nsettings  convoscope.toml: logs, out, by, metrics, policy\n" in done.out
        receipt = json.loads((work / "runs/team/receipt.json").read_text())
        assert (sorted(receipt["config"]["metrics"]), receipt["config"]["by"]) == (
            ["answer.f1", "conversation.turns"],
            [["model"]],
        )
        # the same from elsewhere: paths are meant from the file's folder on
        again = convoscope("score", cwd=work / "sub")
        assert (again.code, "page  ../runs/team/report.html" in again.out) == (0, True)
        # what the command line says wins
        other = convoscope("score", "-m", "tools.calls", "-o", "runs/mine", "--json", cwd=work)
        assert [one["metric"] for one in other.json["summary"]["metrics"]] == ["tools.calls"]
        assert other.code == 3  # the policy is on a figure that it was scored without

    def test_nothing_is_scored_without_logs(self, work: Path) -> None:
        done = convoscope("score", cwd=work)
        assert (done.code, done.err.splitlines()[0]) == (2, "error: no logs are named")
        assert "convoscope init LOGS" in done.err


class TestBaseline:
    def test_is_set_shown_and_replaced(self, work: Path) -> None:
        assert convoscope("score", "chats.jsonl", "-m", "turns", "-o", "runs/two", cwd=work).code == 0
        missing = convoscope("baseline", "show", cwd=work)
        assert (missing.code, "there is no baseline at convoscope-baseline.json" in missing.err) == (2, True)
        done = convoscope("baseline", "set", "runs/one", cwd=work)
        assert done.out == "convoscope-baseline.json: the baseline is runs/one, 4 conversations\n"
        assert "runs/one, 4 conversations, finished " in convoscope("baseline", "show", cwd=work).out
        again = convoscope("baseline", "set", "runs/two", cwd=work)
        assert again.out.endswith("the baseline is runs/two, 4 conversations; it was runs/one\n")
        assert convoscope("baseline", "show", "--json", cwd=work).json["run"] == "runs/two"

    def test_is_named_by_the_settings(self, work: Path) -> None:
        (work / "sub").mkdir()
        (work / "convoscope.toml").write_text('baseline = "sub/base.json"\n')
        assert convoscope("baseline", "set", "runs/one", cwd=work).code == 0
        assert json.loads((work / "sub/base.json").read_text())["run"] == "../runs/one"
        assert convoscope("baseline", "show", cwd=work / "sub").out.startswith("base.json: ../runs/one, ")

    def test_that_is_gone_says_what_to_do(self, work: Path) -> None:
        convoscope("baseline", "set", "runs/one", cwd=work)
        shutil.move(work / "runs/one", work / "runs/moved")
        done = convoscope("baseline", "show", cwd=work)
        assert done.code == 2
        assert "the baseline of convoscope-baseline.json is gone: there is no run at runs/one" in done.err
        assert "convoscope baseline set RUN" in done.err
        # a gate is undetermined then, and says why
        (work / "rules.toml").write_text(policy(MET, "turns change < 1"))
        held = convoscope("gate", "runs/moved", "--policy", "rules.toml", cwd=work)
        assert (held.code, "is gone" in held.out) == (3, True)
        # one that was named has to be there
        named = convoscope("gate", "runs/moved", "--policy", "rules.toml", "--against", "runs/one", cwd=work)
        assert (named.code, "there is no run at runs/one" in named.err) == (2, True)

    def test_another_run_in_its_folder_is_not_taken_for_it(self, work: Path) -> None:
        convoscope("baseline", "set", "runs/one", cwd=work)
        shutil.rmtree(work / "runs/one")
        assert convoscope("score", "chats.jsonl", "-m", "turns", "-o", "runs/one", cwd=work).code == 0
        done = convoscope("baseline", "show", cwd=work)
        assert (done.code, "runs/one is not the baseline" in done.err) == (2, True)

    @pytest.mark.parametrize("text", ["", "[]", '{"schema": "other"}', "[" * 5000])
    def test_a_damaged_file_is_named(self, work: Path, text: str) -> None:
        (work / "convoscope-baseline.json").write_text(text)
        done = convoscope("baseline", "show", cwd=work)
        assert (done.code, "convoscope-baseline.json is not a baseline" in done.err) == (2, True)

    def test_an_invalid_run_is_refused(self, work: Path) -> None:
        convoscope("runs", "invalidate", "runs/one", "--reason", "wrong clock", cwd=work)
        done = convoscope("baseline", "set", "runs/one", cwd=work)
        assert (done.code, "is marked invalid: wrong clock" in done.err) == (2, True)

    def test_a_run_is_not_held_against_itself(self, work: Path) -> None:
        convoscope("baseline", "set", "runs/one", cwd=work)
        (work / "rules.toml").write_text(policy("turns change < 1"))
        done = gate(work, "--policy", "rules.toml")
        assert (done.code, "runs/one is the baseline itself" in done.out) == (3, True)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs of 200 chats: `before` with 120 resolved, `better` with 160, `worse` with 60."""
    folder = tmp_path_factory.mktemp("sides")
    for name, good in (("before", 120), ("better", 160), ("worse", 60)):
        logs = write(folder / "logs" / name, [ended(f"{name}{number}", number < good) for number in range(200)])
        options = {"label": "resolved", "metrics": ["outcome.success", "user.pushback"], "out": folder / "runs" / name}
        make_run(logs, **options)  # type: ignore[arg-type]
    return folder


class TestChanges:
    """60 %, 80 % and 30 % of 200 chats: changes of +20 points (+11 to +28), and of -30 points (-39 to -20)."""

    @pytest.mark.parametrize(
        ("run", "limit", "code"),
        [
            ("better", ">= -2pp", 0),
            ("better", ">= +10pp", 0),
            ("better", ">= +20pp", 3),  # it may be, and may not
            ("better", ">= +40pp", 1),  # it is clearly less
            ("worse", ">= -2pp", 1),
            ("worse", ">= -25pp", 1),  # clearly worse than before, and by more than allowed
            ("worse", ">= -35pp", 3),
            ("worse", ">= -50pp", 0),
        ],
    )
    def test_of_real_runs(self, sides: Path, tmp_path: Path, run: str, limit: str, code: int) -> None:
        (tmp_path / "rules.toml").write_text(policy(f"outcome.success change {limit}"))
        runs = sides / "runs"
        done = convoscope_here("gate", runs / run, "--against", runs / "before", "--policy", tmp_path / "rules.toml")
        assert (done.code, done.err) == (code, "")

    def test_against_the_baseline(self, sides: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        runs = sides / "runs"
        assert "there is nothing to compare it with" in convoscope_here("compare", runs / "worse").err
        assert convoscope_here("baseline", "set", runs / "before").code == 0
        (tmp_path / "rules.toml").write_text(policy("outcome.success change >= -2pp"))
        assert convoscope_here("gate", runs / "worse", "--policy", "rules.toml").code == 1
        plain = convoscope_here("compare", runs / "worse", "--json")
        assert (plain.code, [side["name"] for side in plain.json["sides"]]) == (0, ["before", "worse"])
        held = convoscope_here("compare", runs / "worse", "--policy", "rules.toml", "--json")
        assert (held.code, held.json["gate"]["outcome"], held.json["gate"]["rules"][0]["value"]) == (
            1,
            "failed",
            pytest.approx(-0.3),
        )
        both = convoscope_here("compare", runs / "worse", "--by", "agent", "--policy", "rules.toml")
        assert (both.code, "a policy is about one run and its baseline" in both.err) == (2, True)

    def test_markdown_says_what_moved(self, sides: Path, tmp_path: Path) -> None:
        (tmp_path / "rules.toml").write_text(policy("outcome.success change >= -2pp"))
        runs, file = sides / "runs", tmp_path / "gate.md"
        given = ("--against", runs / "before", "--policy", tmp_path / "rules.toml", "--markdown", file)
        convoscope_here("gate", runs / "worse", *given)
        text = file.read_text()
        assert "| `outcome.success change ≥ -2.0 pts` |" in text
        assert "Against `before`: worse completes fewer chats than before" in text


class TestInit:
    def test_what_it_writes_passes_today(self, tmp_path: Path) -> None:
        write_lines(tmp_path / "chats.jsonl", range(60))
        done = convoscope("init", "chats.jsonl", cwd=tmp_path)
        assert (done.code, done.err) == (0, "")
        assert [path.name for path in sorted(tmp_path.iterdir())] == ["chats.jsonl", "convoscope.toml"]
        tables = read_settings_file(tmp_path / "convoscope.toml")
        assert tables.score.logs == ["chats.jsonl"]
        assert tables.policy is not None
        assert tables.policy.target
        assert not tables.judge.model
        scored = convoscope("score", cwd=tmp_path)
        assert (scored.code, scored.out.splitlines()[-1].startswith("gate passed: ")) == (0, True)

    def test_never_replaces_a_file_unasked(self, tmp_path: Path) -> None:
        write_lines(tmp_path / "chats.jsonl", range(4))
        (tmp_path / "convoscope.toml").write_text("# mine\n")
        done = convoscope("init", "chats.jsonl", cwd=tmp_path)
        assert (done.code, done.err) == (
            2,
            "error: convoscope.toml exists\n  --force replaces it; --out names another file\n",
        )
        assert (tmp_path / "convoscope.toml").read_text() == "# mine\n"
        assert convoscope("init", "chats.jsonl", "--force", cwd=tmp_path).code == 0
        assert "[score]" in (tmp_path / "convoscope.toml").read_text()

    def test_a_clear_label_is_used_and_a_guess_is_not(self, tmp_path: Path) -> None:
        messages = [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Hello."}]
        for name, field in (("clear", "resolved"), ("guess", "escalated")):
            lines = [{"messages": messages, field: bool(number % 3)} for number in range(30)]
            (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
            assert convoscope("init", f"{name}.jsonl", "-o", f"{name}.toml", cwd=tmp_path).code == 0
        clear, guess = (read_settings_file(tmp_path / f"{name}.toml") for name in ("clear", "guess"))
        assert clear.score.label == "resolved"
        assert clear.policy is not None
        # 20 of 30 are resolved
        assert any(getattr(one, "figure", "") == "outcome.success" for one in clear.policy.target)
        assert "today 66.7 %" in (tmp_path / "clear.toml").read_text()
        assert guess.score.label is None
        assert "# label = " in (tmp_path / "guess.toml").read_text()

    def test_hostile_names_stay_texts(self, tmp_path: Path) -> None:
        name = 'logs"\n[judge]\nmodel = "openai:evil'
        folder = tmp_path / name
        folder.mkdir()
        messages = [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Hello."}]
        values = ['x"\n[judge]\nmodel = "openai:evil"\n#', "\x1b[31m", "\u2028y"]
        lines = [
            {"messages": messages, "metadata": {"agent": value, 'team"\nx': value}}
            for value in values
            for _ in range(5)
        ]
        (folder / "chats.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert convoscope("init", name, cwd=tmp_path).code == 0
        text = (tmp_path / "convoscope.toml").read_text()
        content = tomllib.loads(text)
        assert (content["score"]["logs"], "judge" in content) == ([name], False)
        assert "\x1b" not in text

    def test_how_logs_are_read_is_kept(self, tmp_path: Path) -> None:
        write_lines(tmp_path / "chats.jsonl", range(4))
        (tmp_path / "team").mkdir()
        given = ("--format", "openai-chat", "--tool-failed", "NO_STOCK", "--session-gap", "2")
        assert convoscope("init", "chats.jsonl", *given, "-o", "team/convoscope.toml", cwd=tmp_path).code == 0
        table = read_settings_file(tmp_path / "team/convoscope.toml").score
        assert (table.logs, table.format, table.tool_failed, table.session_gap) == (
            ["../chats.jsonl"],
            "openai-chat",
            ["NO_STOCK"],
            2.0,
        )
        assert convoscope("score", cwd=tmp_path / "team").code in (0, 3)

    def test_standard_input_and_code_are_refused(self, tmp_path: Path) -> None:
        assert convoscope("init", "-", cwd=tmp_path).code == 2
        (tmp_path / "readers.py").write_text("")
        write_lines(tmp_path / "chats.jsonl", range(4))
        done = convoscope("init", "chats.jsonl", "--readers-from", "readers.py", cwd=tmp_path)
        assert (done.code, "names no code" in done.err) == (2, True)
