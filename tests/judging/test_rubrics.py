"""Rubrics are data that a user can copy; one that is changed has a new version; each has its good and bad calls."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from convoscope.analysis.judge_check import by_rubric, check_judge, nonsense_of, pairs_of
from convoscope.conversation import Annotations
from convoscope.errors import InputError, UsageError
from convoscope.judging.addressed import PLACEHOLDER
from convoscope.judging.instrument import Instrument, JudgeSettings
from convoscope.judging.questions import Question, question
from convoscope.judging.rubrics import NONSENSE, read_rubric, rubric_named, rubrics
from convoscope.metrics import Metric, example
from convoscope.metrics.registry import known
from convoscope.scoring.evaluate import answered
from convoscope.scoring.forecast import least
from support.judge_server import best
from support.judged_items import item, judged

VERSIONS = Path(__file__).with_name("rubric_versions.json")
RUBRIC = """---
name: faithfulness
version: 2
measures: judged.faithfulness
scale: [1, 3]
passes_at: 2
fields: trace, role?
schema:
  type: object
  required: [dimensions]
  properties: {dimensions: {type: object, properties: {tone: {type: object, properties: {rating: {type: integer}}}}}}
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


@pytest.mark.parametrize("name", sorted(name for name, rubric in rubrics().items() if rubric.sensitive_to))
def test_nonsense_is_shown_to_the_judge(name: str) -> None:
    """Each kind that a rubric names makes another question of the good call, so a judge can notice it."""
    rubric = rubric_named(name)
    cases = nonsense_of(rubric)
    assert len(cases) == len(rubric.sensitive_to) > 0
    asked: list[str] = []

    def judge(prompt: str, schema: Any) -> Any:
        asked.append(prompt)
        return least(schema)

    declared = known(rubric.measures)
    assert isinstance(declared, Metric)
    instrument = Instrument(judge, JudgeSettings(use_cache=False))
    for _, _, good, bad in cases:
        asked.clear()
        for call in (good, bad):
            asyncio.run(answered(declared, call, {"judge": instrument}))
        assert len(set(asked)) == 2, asked


def test_a_judge_is_held_to_the_nonsense_that_a_rubric_names() -> None:
    """One that notices it is right about both kinds; one that takes letters for words, about one of them."""

    def held(*, is_lenient: bool) -> list[bool]:
        def judge(prompt: str, schema: Any) -> Any:
            reply = re.findall(r'agent[^"]*"(.+?)"', prompt.rpartition("<data>")[2])[-1]
            is_good = reply.startswith("No worries") or (is_lenient and "check-up" not in reply)
            return {"explanation": "", "quote": reply, "rating": 9 if is_good else 2}

        pairs = check_judge(Instrument(judge, JudgeSettings(use_cache=False)), ["humanness"])
        return [pair.is_right for pair in pairs if pair.about in NONSENSE.values()]

    assert held(is_lenient=False) == [True, True]
    assert held(is_lenient=True) == [True, False]


def test_a_judge_that_always_says_best_is_right_about_nothing() -> None:
    pairs = check_judge(Instrument(best, JudgeSettings(use_cache=False)))
    assert len(pairs) == sum(len(pairs_of(name)) + len(rubric.sensitive_to) for name, rubric in rubrics().items())
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
        (RUBRIC.replace("integer", "integer, maximum: 4"), "allows 1 to 4, and the scale is 1 to 3"),
        (RUBRIC.replace("integer", "number, minimum: 0"), "allows 0 to 3, and the scale is 1 to 3"),
        (RUBRIC.replace("integer", "string"), "schema: dimensions.*.rating: a rating is a number"),
        (RUBRIC.replace("fields:", "sensitive_to: noise\nfields:"), "unknown nonsense 'noise'"),
        (RUBRIC.replace("fields:", "value: share\nfields:"), "'share' is not a value"),
    ],
)
def test_a_rubric_that_cannot_be_used_says_why(wrong: str, says: str) -> None:
    with pytest.raises(InputError) as refused:
        read_rubric(wrong, "mine.md")
    assert says in str(refused.value)
    assert "mine.md" in str(refused.value)


def changed(folder: Path, name: str, *changes: tuple[str, str]) -> tuple[str, ...]:
    """A folder with one of our rubrics, changed."""
    text = rubric_named(name).source
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "mine.md").write_text(text)
    return (str(folder),)


HUNDRED = [("scale: [1, 10]", "scale: [0, 100]"), ("passes_at: 7\n", "")]


class TestAnotherScale:
    """A rating on a scale of the user's own is a value on the scale of the metric, or the file is refused."""

    def test_a_score_of_an_item(self, tmp_path: Path) -> None:
        folders = changed(tmp_path, "agent.task_progression", *HUNDRED)
        answer = {"reasoning": "so", "quote": "Shipping is free", "score": 55}
        [row] = judged("agent.task_progression", item(), answer, rubrics=folders)
        # 1 + 55/100 × (10 − 1) = 5.95: below the mark of 7, where 55 of 100 is below 2/3.
        assert row.value == pytest.approx(5.95)
        assert (row.details or {})["scale"] == [0, 100]
        [row] = judged("agent.task_progression", item(), {**answer, "quote": ""}, rubrics=folders)
        assert row.reason == "evidence_not_found"
        [row] = judged("agent.task_progression", item(), {**answer, "score": 67, "quote": ""}, rubrics=folders)
        assert row.value == pytest.approx(1 + 0.67 * 9)

    def test_a_summary_and_its_band(self, tmp_path: Path) -> None:
        clear = [("scale: [0, 10]", "scale: [1, 5]"), ("passes_at: 7", "passes_at: 3.8")]
        clear += [("minimum: 0, maximum: 10", "minimum: 1, maximum: 5")]
        folders = changed(tmp_path, "summary_clarity", *clear)
        made = Annotations(origin="predicted", summary="The lamp goes back.")
        call = msgspec.structs.replace(example("user: Can it go back?", "assistant: Yes."), annotations=(made,))
        [row] = judged(
            "summary.clarity", call, {"reasoning": "", "quote": "lamp goes back", "score": 4}, rubrics=folders
        )
        # (4 − 1) ÷ (5 − 1) of 10.
        assert (row.value, (row.details or {})["band"]) == (7.5, "good")

    def test_a_reply(self, tmp_path: Path) -> None:
        ten = [("scale: [1, 5]", "scale: [1, 10]"), ("passes_at: 4\n", ""), ("maximum: 5", "maximum: 10")]
        folders = changed(tmp_path, "response_quality", *ten)
        answer = {"reasoning": "", "quote": "Yes", "score": 8}
        call = example("user: Can it go back?", "assistant: Yes.")
        [row] = judged("dialogue.response_quality", call, answer, rubrics=folders)
        # 1 + (8 − 1) ÷ 9 × 4 of 5; the mark is 4 of 5, so 7.75 of 10.
        assert row.value == pytest.approx(1 + 28 / 9)
        assert ((row.details or {})["passes_at"], (row.details or {})["value_scale"]) == (4, [1, 5])

    def test_a_rating_off_the_scale_is_none(self, tmp_path: Path) -> None:
        """Whatever a schema lets through: here 85 in a list of what it allows."""
        folders = changed(tmp_path, "humanness", ("minimum: 0, maximum: 10", "enum: [5, 85]"))
        answer = {"explanation": "", "quote": "Yes", "rating": 85}
        [row] = judged("flow.humanness", example("user: Yes?", "assistant: Yes."), answer, rubrics=folders)
        assert (row.status, row.reason, row.value) == ("unmeasured", "not_on_scale", None)

    @pytest.mark.parametrize(
        ("name", "old", "new", "says"),
        [
            ("humanness", "maximum: 10", "maximum: 100", "allows 0 to 100, and the scale is 0 to 10"),
            (
                "answer.panel_judge",
                "shape: panel",
                "shape: panel\nvalue: rating",
                "value of answer.panel_judge is from 0",
            ),
            ("answer.panel_judge", "shape: panel", "shape: score", "the rubric that it replaces has the shape panel"),
            ("answer.g_eval", "scale: [1, 5]", "scale: [0, 5]", "is not a single rating"),
            ("faithfulness", "scale: [1, 3]", "scale: [0, 3]", "is not a single rating"),
            ("tone_clarity", "scale: [1, 10]", "scale: [0, 10]", "is not a single rating"),
            ("answer.answer_relevancy", "scale: [0, 1]", "scale: [0, 10]", "is not a single rating"),
            ("agent.task_progression", "passes_at: 7", "passes_at: 8", "passes at 7 on 1 to 10: here 7, not 8"),
            ("agent.task_progression", "passes_at: 7", "passes_at: high", "passes at 7 on 1 to 10: here 7, not high"),
            ("agent.task_progression", "measures: agent.t", "measures: t", "measures agent.task_progression"),
            ("summary_clarity", "score: {", "points: {", "has a rating at no place"),
        ],
    )
    def test_what_cannot_be_read_as_the_metric_does_is_refused(
        self, tmp_path: Path, name: str, old: str, new: str, says: str
    ) -> None:
        with pytest.raises(InputError) as refused:
            rubrics(changed(tmp_path, name, (old, new)))
        assert says in str(refused.value)
        assert "mine.md" in str(refused.value)

    def test_a_mark_at_another_point_of_the_scale_is_refused(self, tmp_path: Path) -> None:
        # 7 of 1 to 10 is 2/3 of the scale.
        with pytest.raises(InputError, match=r"here 66\.7, not 70"):
            rubrics(changed(tmp_path, "agent.task_progression", HUNDRED[0], ("passes_at: 7", "passes_at: 70")))
        rounded = tmp_path / "rounded"
        rounded.mkdir()
        folders = changed(rounded, "agent.task_progression", HUNDRED[0], ("passes_at: 7", "passes_at: 67"))
        assert rubric_named("agent.task_progression", folders).passes_at == pytest.approx(200 / 3)


@pytest.mark.parametrize(
    ("name", "whole"), [("telephony.sentiment_csat", 5), ("answer.g_eval", 5), ("agent.goal_achievement", 8)]
)
def test_a_fraction_is_not_on_a_scale_of_whole_numbers(name: str, whole: int) -> None:
    answer = {"reasoning": "", "quote": "", "sentiment": 0}
    assert judged(name, item(), {**answer, "score": whole - 0.5})[0].reason == "not_on_scale"
    assert judged(name, item(), {**answer, "score": float(whole)})[0].value is not None


def test_a_folder_without_rubrics_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no rubric in it"):
        rubrics((str(tmp_path),))
    with pytest.raises(UsageError, match="unknown rubric"):
        rubric_named("faithfulnes")


def test_what_a_log_holds_is_never_a_placeholder() -> None:
    asked = question(rubric_named("faithfulness"), example("user: {instructions} {trace}", "assistant: Yes."))
    assert isinstance(asked, Question)
    assert "{instructions} {trace}" in asked.prompt
