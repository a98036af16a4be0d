"""Answers about task-oriented dialogues and benchmarks: what nobody predicted, labelled or looked up is no number."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.command_line import convoscope
from support.logs import write, write_json
from support.scenarios import Scenario, check, each

ARMS = {"name": "university arms", "bookday": "saturday", "bookpeople": "2", "bookstay": "2"}
NO_STAY = {slot: value for slot, value in ARMS.items() if slot != "bookstay"}


def user(text: str, intent: str = "NONE", slots: Mapping[str, Any] | None = None, **other: Any) -> dict[str, Any]:
    """A turn of the user, about the domain of the intent; `slots` are the true ones, by domain."""
    domain = intent.partition("_")[2]
    states = slots if slots is not None else {domain: {}}
    frames = [
        {
            "service": service,
            "state": {
                "active_intent": intent if service == domain else "NONE",
                "requested_slots": other.get("asks", []) if service == domain else [],
                "slot_values": {
                    f"{service}-{slot}": value if isinstance(value, list) else [value] for slot, value in held.items()
                },
            },
        }
        for service, held in states.items()
    ]
    return {"speaker": "USER", "utterance": text, "frames": frames}


def dialogues(*turns: dict[str, Any] | str) -> str:
    """A file with one dialogue; plain texts are replies of a person."""
    listed = [{"speaker": "SYSTEM", "utterance": one, "frames": []} if isinstance(one, str) else one for one in turns]
    services = sorted({frame["service"] for turn in listed for frame in turn["frames"]})
    numbered = [{"turn_id": str(place), **turn} for place, turn in enumerate(listed)]
    return json.dumps([{"dialogue_id": "D1.json", "services": services, "turns": numbered}])


def predicted(turn: int, **fields: Any) -> dict[str, Any]:
    return {"dialogue_id": "D1", "turn_id": turn, **fields}


def books(slots: Mapping[str, str], **prediction: Any) -> dict[str, Any]:
    """A user who wants to book with these slots, and what was predicted."""
    return {
        "dialogues_001.json": dialogues(user("Book it.", "book_hotel", {"hotel": slots}), "A person replies."),
        "predictions.jsonl": [predicted(0, predicted_slots={"hotel": slots}, **prediction)],
    }


METRICS = ("--metrics", "dialogue", "--full")
VENUES = json.dumps([{"name": "university arms", "phone": "01223351241"}])
JUDGE = '''
import convoscope
from convoscope import Judge
from convoscope.resources import Verdict


class Partial:
    """5 for what a system predicted, 1 for what a person said."""

    identity = "test/partial@1"

    async def ask(self, prompt, schema):
        return Verdict({"score": 1 if "A person" in prompt.rpartition("## The reply to rate")[2] else 5}, self.identity)


@convoscope.resource
def judge() -> Judge:
    return Partial()
'''

SCENARIOS = [
    Scenario(
        "a judge and predictions",
        "The system's one reply is good. It has none in the second turn, and a person's replies are nobody's score.",
        {
            "dialogues_001.json": dialogues(
                user("A hotel?", "find_hotel"), "A person replies.", user("Thanks.", "find_hotel"), "A person again."
            ),
            "predictions.jsonl": [predicted(0, predicted_slots={}, response="Gull House.")],
            "judge.py": JUDGE,
        },
        ("--metrics", "dialogue.response_quality", "--metrics-from", "{folder}/judge.py"),
        figures={"dialogue.response_quality": 5.0},
        counts={"dialogue.response_quality": 1},
    ),
    Scenario(
        "a judge and predictions of states alone",
        "Nobody predicted a reply, so there is none to judge.",
        {
            "dialogues_001.json": dialogues(user("A hotel?", "find_hotel"), "A person replies."),
            "predictions.jsonl": [predicted(0, predicted_slots={"hotel": {"area": "north"}})],
            "judge.py": JUDGE,
        },
        ("--metrics", "dialogue.response_quality", "--metrics-from", "{folder}/judge.py"),
        figures={"dialogue.response_quality": None},
    ),
    Scenario(
        "a judge and an agent's own chat",
        "These are the agent's own words.",
        {
            "chat.jsonl": [
                {"id": "c", "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}
            ],
            "judge.py": JUDGE,
        },
        ("--metrics", "dialogue.response_quality", "--metrics-from", "{folder}/judge.py"),
        figures={"dialogue.response_quality": 5.0},
    ),
    Scenario(
        "it books without the number of nights",
        "It booked though the number of nights was missing: one violation, and the goal is missed.",
        books(NO_STAY, predicted_act_type=["book_hotel"], response="Booked."),
        METRICS,
        figures={
            "dialogue.policy_violations": 1.0,
            "dialogue.policy_violations@attempts": 1.0,
            "dialogue.system_correctness": 0.0,
            "dialogue.goal_completion": 0.0,
        },
        counts={"dialogue.policy_violations": 1},
    ),
    Scenario(
        "it books with everything there, and there is no database",
        "It did what was asked, and the goal is met. No database is needed to see that.",
        books(ARMS, predicted_act_type=["book_hotel"], response="Booking confirmed for University Arms."),
        METRICS,
        figures={
            "dialogue.policy_violations": 0.0,
            "dialogue.system_correctness": 1.0,
            "dialogue.goal_completion": 1.0,
            "dialogue.entity_hallucination": None,
        },
    ),
    Scenario(
        "it asks for what is missing",
        "Asking was right; the goal is not met yet.",
        books(NO_STAY, predicted_act_type=["request_info"], response="For how many nights?"),
        METRICS,
        figures={
            "dialogue.policy_violations": 0.0,
            "dialogue.system_correctness": 1.0,
            "dialogue.goal_completion": 0.0,
        },
    ),
    Scenario(
        "an act that nobody knows",
        "What it did cannot be told, so neither can whether it was allowed.",
        books(NO_STAY, predicted_act_type=["frobnicate"], response="Done."),
        METRICS,
        figures={
            "dialogue.policy_violations": None,
            "dialogue.system_correctness": None,
            "dialogue.goal_completion": None,
        },
    ),
    Scenario(
        "it reads the state of an order",
        "`order_status` books nothing, though its first word can be a verb.",
        books(NO_STAY, predicted_act_type=["order_status"], response="It is on its way."),
        METRICS,
        figures={"dialogue.policy_violations": 0.0, "dialogue.policy_violations@attempts": None},
    ),
    Scenario(
        "states are all that was predicted",
        "Nobody says what the system did. That is not a goal that was missed.",
        books(ARMS),
        METRICS,
        figures={"dialogue.goal_completion": None, "dialogue.policy_violations": None, "dialogue.jga": 1.0},
    ),
    Scenario(
        "it recommends a venue, and there is no database",
        "The Golden Dragon may or may not exist.",
        {
            "dialogues_001.json": dialogues(user("A restaurant?", "find_restaurant"), "A person replies."),
            "predictions.jsonl": [
                predicted(0, predicted_slots={}, predicted_act_type=["Restaurant-Recommend"], response="Golden Dragon.")
            ],
        },
        METRICS,
        figures={"dialogue.system_correctness": None, "dialogue.goal_completion": None},
    ),
    Scenario(
        "it books, and tells a phone number that the database does not have",
        "The booking was made, but the number is made up: the turn is wrong.",
        {
            **books(ARMS, predicted_act_type=["book_hotel"], response="Booked. Call University Arms: 01223 999999."),
            "hotel_db.json": VENUES,
        },
        METRICS,
        figures={"dialogue.system_correctness": 0.0, "dialogue.entity_hallucination": 0.5},
    ),
    Scenario(
        "slots of a domain that the user never spoke of",
        "The user asked for a restaurant, and the system filled in a hotel.",
        {
            "dialogues_001.json": dialogues(
                user("A restaurant in the north.", "find_restaurant", {"restaurant": {"area": "north"}}), "A person."
            ),
            "predictions.jsonl": [predicted(0, predicted_slots={"hotel": {"area": "north"}})],
        },
        METRICS,
        figures={"dialogue.slot_hallucination": 1.0, "dialogue.slot_accuracy": 0.0},
    ),
    Scenario(
        "a right memory of another domain",
        "The hotel of before is remembered rightly, and the restaurant is right, too.",
        {
            "dialogues_001.json": dialogues(
                user("A restaurant.", "find_restaurant", {"hotel": {"area": "north"}, "restaurant": {"food": "thai"}}),
                "A person.",
            ),
            "predictions.jsonl": [
                predicted(0, predicted_slots={"hotel": {"area": "north"}, "restaurant": {"food": "thai"}})
            ],
        },
        METRICS,
        figures={"dialogue.slot_hallucination": 0.0, "dialogue.slot_hallucination@all_domains": 0.0},
    ),
    Scenario(
        "truth lists two wordings of one value",
        "The system carried its own word over. Which wordings are right elsewhere does not matter.",
        {
            "dialogues_001.json": dialogues(
                user("Food.", "find_restaurant", {"restaurant": {"area": ["centre", "middle"]}}),
                "A person.",
                user(
                    "A hotel there.",
                    "find_hotel",
                    {"restaurant": {"area": ["centre", "middle"]}, "hotel": {"area": ["middle"]}},
                ),
                "A person.",
            ),
            "predictions.jsonl": [
                predicted(0, predicted_domain="restaurant", predicted_slots={"restaurant": {"area": "middle"}}),
                predicted(
                    2,
                    predicted_domain="hotel",
                    predicted_slots={"restaurant": {"area": "middle"}, "hotel": {"area": "middle"}},
                ),
            ],
        },
        METRICS,
        figures={"dialogue.memory_transfer": 1.0, "dialogue.jga": 1.0},
    ),
]


@each(SCENARIOS)
def test_answer(scenario: Scenario, tmp_path: Path) -> None:
    check(scenario, tmp_path)


# Benchmarks.

HEAD = {"schema_version": 1, "dataset": "d", "annotator": "human"}
GOLD = {"topics": [{"label": "refund"}], "risks": [{"type": "escalation", "severity": "high"}], "actions": []}
FOUND = {"topics": ["refund"], "risks": [{"type": "escalation", "severity": "high"}], "actions": []}


def staged(folder: Path, samples: int, labelled: int) -> Path:
    """A data set of which some samples are labelled, and all of them predicted rightly."""
    data = folder / "benchmarks" / "datasets" / "semantic" / "d"
    for number in range(samples):
        if number < labelled:
            write_json(data / "goldens" / f"s{number}_gold.json", {**HEAD, "sample_id": f"s{number}", **GOLD})
        write_json(folder / "predictions" / f"s{number}.json", FOUND)
    return data


def benchmark(folder: Path, *arguments: str) -> tuple[int, str, dict[str, Any]]:
    ended = convoscope(
        *("benchmark", "run", "--dataset", "d", "--predictions", "predictions", "-o", "result.json", *arguments),
        cwd=folder,
        CONVOSCOPE_BENCHMARKS=str(folder / "benchmarks"),
    )
    return ended.code, ended.out, json.loads((folder / "result.json").read_text())


def test_one_of_five_samples_has_no_gold(tmp_path: Path) -> None:
    """Four were measured. The fifth is skipped, and said to be."""
    staged(tmp_path, samples=5, labelled=4)
    _, out, result = benchmark(tmp_path)
    topic = result["metrics"]["topic_f1"]
    assert (topic["value"], topic["coverage"], topic["samples_skipped"]) == (1, 0.8, 1)
    assert "4 evaluated, 0 failed, 1 skipped" in out
    assert [one["sample_id"] for one in result["sample_results"]] == [f"s{number}" for number in range(5)]
    assert result["sample_results"][-1]["skipped"] == "no_gold_labels"


def test_nine_of_ten_gold_files_are_cut(tmp_path: Path) -> None:
    """One sample of ten says nothing about the others: the gate cannot be told."""
    data = staged(tmp_path, samples=10, labelled=10)
    for number in range(1, 10):
        path = data / "goldens" / f"s{number}_gold.json"
        path.write_bytes(path.read_bytes()[:30])
    code, out, result = benchmark(tmp_path, "--gate")
    assert code == 3
    assert "9 of 10 samples" in out
    assert str(tmp_path) not in json.dumps(result)


def test_a_gold_file_has_the_wrong_name_and_a_wrong_label(tmp_path: Path) -> None:
    """Both are wrong, and both are said."""
    write_json(tmp_path / "b_gold.json", {**HEAD, "sample_id": "a", "topics": [{"label": "weather"}]})
    ended = convoscope("benchmark", "validate-gold", tmp_path)
    assert ended.code == 1
    assert "'weather'" in ended.out
    assert "'a' is not the name of the file" in ended.out


def test_a_folder_of_predictions_with_a_note_in_it(tmp_path: Path) -> None:
    """The note is no sample."""
    staged(tmp_path, samples=2, labelled=2)
    write(tmp_path / "predictions" / "made.json", '{"by": "hand"}')
    _, out, result = benchmark(tmp_path)
    assert "2 evaluated, 0 failed, 0 skipped" in out
    assert result["metrics"]["topic_f1"]["coverage"] == 1
