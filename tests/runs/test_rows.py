"""The tables of a run in Python: rows, a DataFrame, an Arrow table, all with the same values."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from convoscope.errors import UsageError
from convoscope.runs.make import make_run
from convoscope.runs.run import Run, _check_installed

TURNS = "agent.words_per_turn"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two chats: replies of 2 and 4 words, and a reply of 3 words to the model `small`; a third says nothing."""
    folder = tmp_path_factory.mktemp("rows")
    chats = [
        {"id": "a", "messages": [_user("Hi"), _agent("Good day"), _user("And?"), _agent("It is not here")]},
        {"id": "b", "model": "small", "messages": [_user("Hi"), _agent("How are you")]},
        {"id": "c", "messages": [_user("Hi")]},
    ]
    (folder / "chats.jsonl").write_text("".join(json.dumps(chat) + "\n" for chat in chats))
    return make_run(folder / "chats.jsonl", metrics=[TURNS], out=folder / "run")


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def _agent(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


class TestScores:
    def test_rows_as_dicts(self, run: Run) -> None:
        rows = run.scores("words_per_turn").to_list()
        measured = [(row["conversation"], row["position"], row["value"]) for row in rows if row["status"] == "measured"]
        assert [(name, value) for name, _, value in measured] == [("a", 2.0), ("a", 4.0), ("b", 3.0)]

    def test_going_over_them_gives_scores_as_often_as_one_likes(self, run: Run) -> None:
        scores = run.scores(TURNS, "a")
        assert [score.observation.value for score in scores] == [2.0, 4.0]
        assert [score.observation.value for score in scores] == [2.0, 4.0]
        assert len(scores) == 2

    def test_a_data_frame(self, run: Run) -> None:
        pytest.importorskip("pandas")
        frame = run.scores(TURNS).to_pandas()
        means = frame.dropna(subset=["value"]).groupby("conversation")["value"].mean()
        assert means.to_dict() == {"a": 3.0, "b": 3.0}

    def test_an_arrow_table(self, run: Run) -> None:
        pytest.importorskip("pyarrow")
        table = run.scores(TURNS).to_arrow()
        assert table.to_pylist() == run.scores(TURNS).to_list()

    def test_what_was_not_measured_is_no_number(self, run: Run) -> None:
        pandas = pytest.importorskip("pandas")
        frame = run.conversation_scores(TURNS, all=True).to_pandas().set_index("conversation")
        # Nobody spoke for the agent in c.
        assert pandas.isna(frame.loc["c", "value"])
        assert frame.loc["c", "status"] != "measured"
        assert frame.loc["c", "reason"]

    def test_nothing_chosen_is_an_empty_table(self, run: Run) -> None:
        assert run.scores("no.such_metric").to_list() == []
        assert len(run.scores("no.such_metric")) == 0


def test_conversations_have_their_dimensions_and_no_bodies(run: Run) -> None:
    rows = run.conversations_table().to_list()
    assert [(row["conversation"], row["model"]) for row in rows] == [("a", None), ("b", "small"), ("c", None)]
    assert "body" not in rows[0]


def test_a_package_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="this needs no_such_package") as refused:
        _check_installed("no_such_package")
    assert "pip install no_such_package" in str(refused.value)
    # An environment without any of them.
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    with pytest.raises(UsageError, match="this needs pandas"):
        run.scores().to_pandas()
