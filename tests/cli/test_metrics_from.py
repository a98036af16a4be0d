"""`--metrics-from` on the real command: a user's own scorers beside the installed ones."""

import json
from pathlib import Path

import pytest

import convoscope
from support.command_line import Ended
from support.command_line import convoscope as run_command

SCORERS = '''
from convoscope import StandardData, metric
from convoscope.metrics import not_applicable

@metric("mine.length", version=1, observes="item", unit="words", better="lower")
def length(item: StandardData):
    """How long is the answer?"""
    return len(item.agent_response.split()) if item.agent_response else None

@metric("mine.polite", version=1, observes="item", unit="share", better="higher")
async def polite(item: StandardData):
    """Does the answer say please?"""
    if item.agent_task is None:
        return not_applicable(item, "nothing_asked")
    return "please" in (item.agent_response or "")
'''
TEMPLATES = """
[[scorer]]
name = "tone"
question = "Is the tone right for the place?"
template = "Rate the tone of {agent_response} to {agent_task}. Answer as {{}}."
"""
CHATS = [
    ("a", "Where is it?", "Wait a minute, please."),
    ("b", "Where is it?", "Here."),
    ("c", "Hello?", None),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "my_own_scorers.py").write_text(SCORERS)
    (tmp_path / "tones.toml").write_text(TEMPLATES)
    lines = []
    for id, asked, answered in CHATS:
        messages = [{"role": "user", "content": asked}]
        messages += [{"role": "assistant", "content": answered}] if answered else []
        lines.append(json.dumps({"id": id, "messages": messages}))
    (tmp_path / "chats.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def command(folder: Path, *arguments: object) -> Ended:
    return run_command(*arguments, cwd=folder)


def figures(ended: Ended) -> dict[str, tuple[float | None, int]]:
    """Value and n of each; none and 0 of what has no value."""
    assert ended.code == 0, ended.err
    summary = ended.json["summary"]
    missing = [name for one in summary.get("not_measured", []) for name in one["metrics"]]
    found = {one["metric"]: (one["value"], one["n"]) for one in summary["metrics"]}
    assert not found.keys() & set(missing)
    return found | dict.fromkeys(missing, (None, 0))


class TestScore:
    @pytest.mark.parametrize("source", ["my_own_scorers.py", "my_own_scorers"])
    @pytest.mark.parametrize("workers", [1, 2])
    def test_a_file_or_a_module(self, folder: Path, source: str, workers: int) -> None:
        ended = command(
            folder, "score", "chats.jsonl", "--metrics-from", source, "-m", "mine", "--workers", workers, "--json"
        )
        # 4 words and 1 word, and nothing to count in the third: (4 + 1) ÷ 2; one "please" in three answers
        assert figures(ended) == {"mine.length": (2.5, 2), "mine.polite": (pytest.approx(1 / 3), 3)}

    def test_beside_all_that_are_installed(self, folder: Path) -> None:
        ended = command(folder, "score", "chats.jsonl", "--metrics-from", "my_own_scorers.py", "--json")
        found = figures(ended)
        assert found["mine.length"] == (2.5, 2)
        assert found["conversation.turns"][1] == 3

    def test_templates_want_a_judge(self, folder: Path) -> None:
        sources = ("--metrics-from", "tones.toml", "--metrics-from", "my_own_scorers.py")
        ended = command(folder, "score", "chats.jsonl", *sources, "-m", "tone,length", "--json")
        assert figures(ended) == {"custom.tone": (None, 0), "mine.length": (2.5, 2)}
        (tone,) = ended.json["summary"]["not_measured"]
        assert tone["metrics"] == ["custom.tone"]
        # Also the third, of which the agent said nothing: an empty answer.
        assert tone["skipped_reasons"] == {"no_judge": 3}

    def test_with_another_number_of_trials(self, folder: Path) -> None:
        sources = ("--metrics-from", "my_own_scorers.py")
        ended = command(folder, "score", "chats.jsonl", *sources, "-m", "length", "--k", 2, "--json")
        assert figures(ended) == {"mine.length": (2.5, 2)}

    def test_the_same_again_opens_the_run_and_a_changed_file_does_not(self, folder: Path) -> None:
        arguments = ("score", "chats.jsonl", "--metrics-from", "my_own_scorers.py", "-m", "length", "--json")
        first, again = (command(folder, *arguments).json["run"] for _ in range(2))
        assert first == again
        (folder / "my_own_scorers.py").write_text(SCORERS.replace("agent_response.split()", "agent_response"))
        assert command(folder, *arguments).json["run"] != first

    def test_evaluation_items(self, folder: Path) -> None:
        items = [
            {"turn_id": "007", "novaeval_item_type": "agent", "question": "Where?", "answer": "Wait a minute, please."},
            {"turn_id": "008", "novaeval_item_type": "conversational", "question": "Where?", "answer": "Here."},
        ]
        (folder / "items.jsonl").write_text("".join(json.dumps(one) + "\n" for one in items))
        sources = ("--metrics-from", "my_own_scorers.py", "--metrics-from", "tones.toml")
        chosen = "mine,tone,exact_match_scorer"
        ended = command(folder, "score", "items.jsonl", *sources, "-m", chosen, "-o", "run", "--json")
        assert figures(ended) == {
            "answer.exact_match": (None, 0),
            "custom.tone": (None, 0),
            "mine.length": (2.5, 2),  # (4 + 1) ÷ 2
            "mine.polite": (0.5, 2),
        }
        asked = "SELECT subject, metric, reason FROM all_scores WHERE value IS NULL ORDER BY metric, conversation"
        rows = command(folder, "sql", asked, "--run", "run", "--json").json
        assert [(one["metric"], one["reason"]) for one in rows] == [
            ("answer.exact_match", "no_ground_truth"),
            ("answer.exact_match", "no_ground_truth"),
            ("custom.tone", "no_judge"),
            ("custom.tone", "no_judge"),
        ]


class TestOtherCommands:
    def test_metrics_lists_and_explains_them(self, folder: Path) -> None:
        sources = ("--metrics-from", "my_own_scorers.py", "--metrics-from", "tones.toml")
        listed = command(folder, "metrics", *sources)
        assert "mine.length" in listed.out
        assert "answer.f1" in listed.out
        explained = command(folder, "metrics", "tone", *sources)
        assert "Is the tone right for the place?" in explained.out
        assert "{agent_response}" in explained.out

    def test_inspect_says_what_they_want(self, folder: Path) -> None:
        sources = ("--metrics-from", "my_own_scorers.py", "--metrics-from", "tones.toml")
        ended = command(folder, "inspect", "chats.jsonl", *sources, "-m", "mine,tone", "--json")
        planned = {one["metric"]: one["applies_to"] for one in ended.json["plan"]["metrics"]}
        assert planned == {"custom.tone": 0, "mine.length": 3, "mine.polite": 3}


class TestMistakes:
    @pytest.mark.parametrize("name", ["score", "inspect", "metrics"])
    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ("def f(:", "error: broken.py:1: cannot be loaded: SyntaxError: invalid syntax\n"),
            ("\n1 / 0", "error: broken.py:2: cannot be loaded: ZeroDivisionError: division by zero\n"),
            ("", "error: broken.py declares no metric\n"),
            (
                SCORERS.replace("mine.length", "answer.f1"),
                "error: broken.py declares answer.f1, which an installed package declares already\n",
            ),
        ],
    )
    def test_a_sentence_and_exit_code_2(self, folder: Path, name: str, content: str, said: str) -> None:
        (folder / "broken.py").write_text(content)
        logs = () if name == "metrics" else ("chats.jsonl",)
        ended = command(folder, name, *logs, "--metrics-from", "broken.py")
        assert ended.code == 2
        assert ended.err.startswith(said)
        assert not (folder / "runs").exists()

    def test_a_metric_that_breaks_is_an_error_score_and_the_rest_goes_on(self, folder: Path) -> None:
        (folder / "my_own_scorers.py").write_text(SCORERS.replace(" if item.agent_response else None", ""))
        ended = command(folder, "score", "chats.jsonl", "--metrics-from", "my_own_scorers.py", "-m", "mine", "--json")
        assert figures(ended)["mine.length"] == (2.5, 2)
        (length,) = [one for one in ended.json["summary"]["metrics"] if one["metric"] == "mine.length"]
        assert length["skipped_reasons"] == {"metric_raised": 1}


def test_the_same_from_python(folder: Path) -> None:
    run = convoscope.score(
        folder / "chats.jsonl",
        metrics=["custom.tone", "mine.length"],
        metrics_from=[folder / "my_own_scorers.py", folder / "tones.toml"],
        out=folder / "run",
    )
    assert [(one.metric, one.value) for one in run.summary.figures] == [
        ("custom.tone", None),
        ("mine.length", 2.5),
    ]
