"""The sheet of labels: a person sees what the judge saw, and labels count as its mark says."""

from __future__ import annotations

from pathlib import Path

import pytest

import convoscope
from convoscope.analysis.agreement import RatedLabel, agreement_of, whole_rating
from convoscope.analysis.calibration import calibrate_run
from convoscope.analysis.labelling import choose_rows
from convoscope.analysis.run_labels import read_run_labels
from convoscope.conversation import Conversation
from convoscope.judging.rubrics import own_rubric, rubric_named
from convoscope.metrics import example
from convoscope.metrics.judged_items import MEASURES
from convoscope.report.label.shown import shown_texts
from convoscope.views.standard_data.canonical import to_conversation
from convoscope.views.standard_data.tidy import tidy
from support.judged_items import FULL, item, listed

SUMMARIES = [
    {"origin": "predicted", "summary": "It costs > 40."},
    {"origin": "gold", "summary": 'The price is "40",\nno less.'},
]
CALL = example("user: Cost?", "assistant: Forty euros.", id="call", annotations=SUMMARIES)


@pytest.mark.parametrize("name", sorted(MEASURES))
def test_of_an_item_the_fields_of_its_rubric_are_shown(name: str) -> None:
    rubric = rubric_named(name)
    (text,) = shown_texts(rubric, item()).values()
    for field in rubric.required:
        if isinstance(FULL.get(field), str):
            assert FULL[field] in text, field
    assert "Nothing in them is an instruction" not in text
    assert ("Lamps: return within 30 days." in text) == ("retrieved_context" in (*rubric.required, *rubric.optional))
    if name == "answer.g_eval":
        assert FULL["context"]["criteria"] in text


def test_of_a_summary_it_is_shown_with_what_it_is_compared_with() -> None:
    (text,) = shown_texts(rubric_named("summary_coverage"), CALL).values()
    assert "It costs > 40." in text
    assert 'The price is "40",\nno less.' in text
    assert "Forty euros." in next(iter(shown_texts(rubric_named("summary_faithfulness"), CALL).values()))


def test_of_a_reply_what_was_said_before_and_the_rules() -> None:
    call = example(
        "user: Cost?", "assistant: Forty.", "user: When?", "assistant: At six.", agent={"instructions": "Be kind."}
    )
    first, second = shown_texts(rubric_named("response_quality"), call).values()
    assert "Forty." in first
    assert "At six." not in first
    for words in ("Forty.", "At six.", "Be kind."):
        assert words in second


def test_the_conversation_itself_is_shown_as_a_conversation() -> None:
    assert shown_texts(rubric_named("faithfulness"), CALL) == {}


def test_of_a_scorer_of_ones_own_its_template_is_shown() -> None:
    """Also where the file that declares it is not named: the run keeps its text."""
    mine = own_rubric("custom.mine", (1, 5), 4, text="Asked: {agent_task}. C: {context?}", required=("agent_task",))
    (text,) = shown_texts(mine, item(context="none")).values()
    assert text == f"Asked: {FULL['agent_task']}. C: none"
    steps = own_rubric("custom.steps", (1, 5), 4, text="Names the days.", is_raw=False)
    (text,) = shown_texts(steps, item()).values()
    assert FULL["agent_response"] in text  # its criteria are beside it, as the text of the rubric


def test_items_and_summaries_are_on_the_sheet(tmp_path: Path) -> None:
    def judge(prompt: str, schema: object) -> object:
        whole = {"reasoning": "", "quote": "", "score": 10}
        return (
            whole if "score" in str(schema) else listed(("serves", "You can return it"), ("serves", "Shipping is free"))
        )

    calls: list[Conversation] = [CALL, item("one")]
    metrics = "summary.clarity,answer.answer_relevancy,agent.task_progression"
    run = convoscope.score(calls, judge=judge, metrics=metrics, out=tmp_path / "run", workers=1)
    rows = {(row.conversation, row.rubric.name) for row in choose_rows(run)}
    assert rows == {("call", "summary_clarity"), ("one", "answer.answer_relevancy"), ("one", "agent.task_progression")}


def test_items_of_one_conversation_are_named(tmp_path: Path) -> None:
    """Its first item has 8 and its second 6, of the judge and of people."""
    other = "Ask again."
    talk = to_conversation([tidy(FULL), tidy({**FULL, "agent_response": other})], id="two")

    def judge(prompt: str, schema: object) -> object:
        return {"reasoning": "", "quote": other if other in prompt else "", "score": 6 if other in prompt else 8}

    run = convoscope.score([talk], judge=judge, metrics="agent.task_progression", out=tmp_path / "run", workers=1)
    rows = choose_rows(run)
    texts = shown_texts(rubric_named("agent.task_progression"), talk)
    assert sorted(row.turn for row in rows) == sorted(texts) == ["1", "2"]
    assert (other in texts["1"], other in texts["2"]) == (False, True)
    file = tmp_path / "labels.csv"
    file.write_text("conversation,turn,rubric,rating\ntwo,1,task_progression,8\ntwo,2,task_progression,6\n")
    (found,) = calibrate_run(run, read_run_labels(file)).judges
    assert (found.labels, found.accuracy) == (2, 1.0)


def test_a_share_counts_by_its_mark() -> None:
    """The mark is 0.7: of shares 0.8, 0.6, 0.7 and 0 two pass, as people say of the first and the third."""
    rubric = rubric_named("retrieval.faithfulness")
    assert [whole_rating(rubric, share) for share in (0.8, 0.6, 0.7, 0.0)] == [1, 0, 1, 0]
    labels = [RatedLabel(people, share, str(share)) for people, share in ((1, 0.8), (0, 0.6), (1, 0.7), (0, 0.0))]
    assert agreement_of(rubric, "judge", labels).accuracy == 1.0
    # On a longer scale it is the nearest, and in the middle the worse.
    assert [whole_rating(rubric_named("humanness"), rating) for rating in (6.4, 6.5, 6.6)] == [6, 6, 7]


def test_where_lower_is_better_the_mark_is_the_last_that_passes() -> None:
    rubric = own_rubric("custom.rude", (0, 1), 0.3, text="{agent_task}", required=("agent_task",), is_lower_better=True)
    assert [whole_rating(rubric, share) for share in (0.0, 0.3, 0.4, 1.0)] == [0, 0, 1, 1]
