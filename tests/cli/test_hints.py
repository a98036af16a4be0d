"""Errors say what to do next, and what they name can be typed."""

from __future__ import annotations

import json
from contextlib import chdir
from pathlib import Path

import pytest

from convoscope.analysis.benchmark.run import model_named
from convoscope.errors import UsageError
from support.command_line import Ended, convoscope_here


def command(*arguments: object, cwd: Path) -> Ended:
    with chdir(cwd):
        return convoscope_here(*arguments)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    messages = [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Hello."}]
    (tmp_path / "chat.json").write_text(json.dumps({"messages": messages}))
    return tmp_path / "chat.json"


def test_a_dry_run_needs_no_key(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("CONVOSCOPE_CACHE", str(tmp_path / "cache"))
    asked = ("score", log, "--judge", "openai:gpt-4o", "-m", "judged.faithfulness")
    dry = command(*asked, "--dry-run", cwd=tmp_path)
    assert (dry.code, dry.out.splitlines()[0][:35]) == (0, "Nothing was sent. This would ask 1 ")
    wet = command(*asked, cwd=tmp_path)
    assert wet.code == 2
    assert "openai:gpt-4o needs OPENAI_API_KEY; it is not set" in wet.err


@pytest.mark.parametrize(
    ("named", "meant"),
    [("gpt-4o", "openai:gpt-4o"), ("claude-x", "anthropic:claude-x"), ("opnai:x", "openai:x"), ("mistral", "")],
)
def test_a_judge_without_its_provider(log: Path, tmp_path: Path, named: str, meant: str) -> None:
    ended = command("score", log, "--judge", named, cwd=tmp_path)
    assert ended.code == 2
    assert (f"did you mean {meant}?" in ended.err) if meant else ("did you mean" not in ended.err)
    assert "unknown provider 'gpt-4o'" not in ended.err


def test_a_misspelt_provider_of_a_model_is_not_nested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONVOSCOPE_SEMANTIC_MODEL", raising=False)
    with pytest.raises(UsageError, match="the model 'opnai:x' cannot be run") as refused:
        model_named("opnai:x")
    assert "--model openai:x;" in str(refused.value.hint)


def test_another_run_says_which_metrics_it_has(log: Path, tmp_path: Path) -> None:
    assert command("score", log, "-m", "agent.repetition", "--out", "run", cwd=tmp_path).code == 0
    ended = command("score", log, "-m", "turns", "--out", "run", cwd=tmp_path)
    named = "holds another run: metrics changed; it also has agent.repetition, and not conversation.turns"
    assert named in " ".join(ended.err.split())


def test_a_store_without_its_package_names_both(tmp_path: Path) -> None:
    pytest.importorskip("upath")
    ended = command("score", "az://bucket/logs", cwd=tmp_path)
    assert ended.code == 2
    assert "pip install 'convoscope[store]' adlfs" in ended.err
