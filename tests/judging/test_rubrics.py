"""Rubrics are data that a user can copy; one that is changed has a new version; each has its good and bad calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from convoscope.analysis.judge_check import by_rubric, check_judge, pairs_of
from convoscope.errors import InputError, UsageError
from convoscope.judging.addressed import PLACEHOLDER
from convoscope.judging.instrument import Instrument, JudgeSettings
from convoscope.judging.questions import Question, question
from convoscope.judging.rubrics import read_rubric, rubric_named, rubrics
from convoscope.metrics import example
from convoscope.metrics.registry import known
from convoscope.scoring.forecast import least
from support.judge_server import best

VERSIONS = Path(__file__).with_name("rubric_versions.json")
RUBRIC = """---
name: faithfulness
version: 2
measures: judged.faithfulness
scale: [1, 3]
passes_at: 2
fields: trace, role?
schema: {type: object, required: [score], properties: {score: {type: integer}}}
---
Is it good? {role} {trace}
"""


def test_a_rubric_that_changed_has_a_new_version() -> None:
    """After a change: raise `version:` in the front matter, then put the new version and hash into the JSON file."""
    kept = json.loads(VERSIONS.read_text())
    now = {name: [rubric.version, rubric.hash] for name, rubric in rubrics().items()}
    for name, (version, digest) in now.items():
        before = kept.get(name, [0, ""])
        assert digest == before[1] or version > before[0], f"{name} changed without a new version"
    assert now == kept, "write the new version and hash into rubric_versions.json"


WRITTEN = {name for name, rubric in rubrics().items() if not rubric.is_heard}
"""Those that a call of text can answer."""


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_each_rubric_serves_a_metric_and_has_pairs(name: str) -> None:
    rubric = rubric_named(name)
    assert known(rubric.measures) is not None
    pairs = pairs_of(name)
    assert len({pair.about for pair in pairs}) == len(pairs) >= 4
    prompts: list[str] = []

    def judge(prompt: str, schema: Any) -> Any:
        prompts.append(prompt)
        return least(schema)

    check_judge(Instrument(judge, JudgeSettings(use_cache=False)), [name])
    # Each call or item is shown, and nothing in it is taken for words to the judge.
    assert len(prompts) >= 2 * len(pairs)
    assert not any(PLACEHOLDER in prompt for prompt in prompts)


def test_a_judge_that_always_says_best_is_right_about_nothing() -> None:
    pairs = check_judge(Instrument(best, JudgeSettings(use_cache=False)))
    assert len(pairs) == sum(len(pairs_of(name)) for name in rubrics())
    assert not any(pair.is_right or pair.is_ordered for pair in pairs)
    assert {checked.rubric for checked in by_rubric(pairs)} == WRITTEN


def test_a_rubric_about_a_sound_serves_a_metric_and_has_no_pairs() -> None:
    heard = {name: rubric.measures for name, rubric in rubrics().items() if rubric.is_heard}
    names = ("agent_speech_fidelity", "tts_fidelity", "user_speech_fidelity")
    voice = {"tone_clarity": "audio.tone_clarity", "pronunciation_audio": "audio.pronunciation_audio@judge"}
    assert heard == {name: f"judged.{name}" for name in names} | voice
    assert all(known(measures) is not None for measures in heard.values())
    assert not any(map(pairs_of, heard))


def test_a_rubric_of_the_user_replaces_ours(tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text(RUBRIC)
    assert rubric_named("faithfulness", (str(tmp_path),)).version == 2
    plain = Instrument(best, JudgeSettings(use_cache=False))
    other = Instrument(best, JudgeSettings(use_cache=False, rubrics=(str(tmp_path),)))
    assert plain.identity != other.identity


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (RUBRIC.replace("---\n", "", 1), "has no front matter"),
        (RUBRIC.replace("version: 2\n", ""), "has no version"),
        (RUBRIC.replace("[1, 3]", "[3, 1]"), "is not a scale"),
        (RUBRIC.replace("trace, role?", "trace, mood"), "unknown field 'mood'"),
        (RUBRIC.replace("trace, role?", "trace"), "{role} is not among its fields"),
        (RUBRIC.replace("[1, 3]", "[1, 3"), "is not YAML"),
    ],
)
def test_a_rubric_that_cannot_be_used_says_why(wrong: str, says: str) -> None:
    with pytest.raises(InputError) as refused:
        read_rubric(wrong, "mine.md")
    assert says in str(refused.value)
    assert "mine.md" in str(refused.value)


def test_a_folder_without_rubrics_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no rubric in it"):
        rubrics((str(tmp_path),))
    with pytest.raises(UsageError, match="unknown rubric"):
        rubric_named("faithfulnes")


def test_what_a_log_holds_is_never_a_placeholder() -> None:
    asked = question(rubric_named("faithfulness"), example("user: {instructions} {trace}", "assistant: Yes."))
    assert isinstance(asked, Question)
    assert "{instructions} {trace}" in asked.prompt
