"""Tables of venues that lie beside dialogues: a database for the metrics that ask for one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from convoscope import score
from convoscope.errors import InputError
from convoscope.ingest.discover import find_inputs
from convoscope.runs.run import Run
from support.logs import EXAMPLES, read, write, write_json, write_lines

DIALOGUES = EXAMPLES / "multiwoz" / "dialogues-2.1.json"
GULL = {"name": "gull house", "phone": "555 0142 000"}
METRIC = "dialogue.entity_hallucination"


def predictions(folder: Path, response: str) -> Path:
    """One prediction of the only dialogue; the other three turns have none."""
    record = {"dialogue_id": "BAY0001", "turn_id": 0, "predicted_domain": "hotel", "response": response}
    return write_lines(folder / "predictions.jsonl", record)


def figure(run: Run) -> float | None:
    (value,) = [one.value for one in run.summary.figures if (one.metric, one.reduction) == (METRIC, "")]
    return value


class TestFound:
    def test_by_their_names(self, tmp_path: Path) -> None:
        write_json(tmp_path / "db" / "hotel_db.json", [GULL])
        write_json(tmp_path / "db" / "taxi_db.json", {"taxi_colors": ["red"]})
        found = find_inputs([DIALOGUES, tmp_path / "db"])
        assert [table.domain for table in found.venues] == ["hotel", "taxi"]
        assert [item.reader for item in found.inputs] == ["multiwoz"]
        files = found.report.files
        assert (files["hotel_db.json"].format, files["hotel_db.json"].is_companion) == ("venues", True)

    def test_any_other_list_is_none(self, tmp_path: Path) -> None:
        write_json(tmp_path / "hotels.json", [GULL])
        assert find_inputs([DIALOGUES, tmp_path]).venues == ()

    def test_the_same_table_twice_is_one(self, tmp_path: Path) -> None:
        for folder in ("a", "b"):
            write_json(tmp_path / folder / "hotel_db.json", [GULL])
        assert len(find_inputs([DIALOGUES, tmp_path]).venues) == 1

    def test_two_tables_of_a_domain_that_differ_are_refused(self, tmp_path: Path) -> None:
        write_json(tmp_path / "a" / "hotel_db.json", [GULL])
        write_json(tmp_path / "b" / "hotel_db.json", [])
        with pytest.raises(InputError, match="other venues of hotel") as error:
            find_inputs([DIALOGUES, tmp_path])
        assert error.value.hint == "give one table for each domain"


class TestScored:
    def test_a_venue_of_the_table_is_known_and_another_is_not(self, tmp_path: Path) -> None:
        db = write_json(tmp_path / "db" / "hotel_db.json", [GULL])
        known = predictions(tmp_path / "known", "I recommend Gull House.")
        invented = predictions(tmp_path / "invented", "I recommend The Golden Dragon.")
        # One name is mentioned; the table has it, so 0 of 1 is invented. It does not have the other: 1 of 1.
        assert figure(score([DIALOGUES, known, db], metrics=METRIC, out=tmp_path / "r1")) == 0.0
        assert figure(score([DIALOGUES, invented, db], metrics=METRIC, out=tmp_path / "r2")) == 1.0

    def test_workers_read_it_too(self, tmp_path: Path) -> None:
        db = write_json(tmp_path / "db" / "hotel_db.json", [GULL])
        known = predictions(tmp_path, "I recommend Gull House.")
        assert figure(score([DIALOGUES, known, db], metrics=METRIC, workers=2, out=tmp_path / "run")) == 0.0

    def test_without_one_it_is_unmeasured_and_says_what_to_do(self, tmp_path: Path) -> None:
        run = score([DIALOGUES, predictions(tmp_path, "Gull House.")], metrics=METRIC, out=tmp_path / "run")
        (headline,) = [one for one in run.summary.figures if not one.reduction]
        assert (headline.value, headline.reason) == (None, "no_venue_database")

    def test_another_database_is_another_run(self, tmp_path: Path) -> None:
        table = write_json(tmp_path / "db" / "hotel_db.json", [GULL])
        inputs = [DIALOGUES, predictions(tmp_path, "Gull House."), table]
        first = score(inputs, metrics=METRIC, out=tmp_path / "first").receipt
        write_json(table, [GULL, {"name": "heron inn"}])
        second = score(inputs, metrics=METRIC, out=tmp_path / "second").receipt
        assert first.depends_on["settings"] != second.depends_on["settings"]
        assert first.depends_on["input"] == second.depends_on["input"]

    def test_a_broken_table_is_named(self, tmp_path: Path) -> None:
        table = write(tmp_path / "db" / "hotel_db.json", "[" + ",\n".join([json.dumps(GULL)] * 6) + ",\n{")
        with pytest.raises(InputError, match=r"hotel_db\.json"):
            score([DIALOGUES, predictions(tmp_path, "x"), table], metrics=METRIC, out=tmp_path / "run")


@pytest.mark.parametrize("content", [{"x": 1}, {}, {"1": {"name": "hilton"}}])
def test_an_object_that_holds_no_lists_is_no_database(content: object, tmp_path: Path) -> None:
    write_json(tmp_path / "hotel_db.json", content)
    write_json(tmp_path / "chat.json", {"id": "x", "messages": [{"role": "user", "content": "Hello"}]})
    report = read(tmp_path).report
    assert report.files["hotel_db.json"].format != "venues"
    assert report.files["hotel_db.json"].skipped
