"""Readers are imported only for files that may be of their format, and none is missed for that."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import convoscope
from convoscope.errors import ConvoscopeError
from convoscope.ingest import discover
from convoscope.ingest.discover import best_claim, find_inputs, sample_of
from convoscope.ingest.io.json import BadJson, decode
from convoscope.ingest.marks import MARKS, MarkedReader, names_in
from convoscope.ingest.reader import installed

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_every_example_is_claimed_as_with_all_readers_imported() -> None:
    readers = installed().by_name
    loaded = [reader.loaded for reader in readers.values()]
    compared = 0
    for path in sorted(path for path in EXAMPLES.rglob("*") if path.is_file()):
        try:
            sample = sample_of(path, loaded)
        except (ConvoscopeError, BadJson):
            continue
        claims = best_claim(sample, readers.values()), best_claim(sample, loaded)
        assert claims[0] == claims[1], path
        compared += 1
    assert compared > 20


def test_marks_are_of_readers_that_are_there() -> None:
    assert set(MARKS) <= set(installed().by_name)


def test_a_chat_does_not_import_readers_of_other_formats() -> None:
    code = (
        "import sys, convoscope; "
        f"list(convoscope.read({str(EXAMPLES / 'openai-chat' / 'single.json')!r})); "
        "print(sorted(name for name in sys.modules if name.startswith('convoscope.ingest.formats.langsmith')))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert printed.strip() == "[]"


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([{"a": {"b.c": [{"d": 1}]}}], {"a", "b.c", "b", "d"}),
        ([["text"], 3, None], set()),
    ],
)
def test_names(values: list[object], names: set[str]) -> None:
    assert names_in(values) == names


def test_a_file_without_marks_is_shown_to_all_readers_before_it_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(MARKS, "sharegpt", "a_name_that_no_file_has")
    installed.cache_clear()
    try:
        turns = [{"from": "human", "value": "Is it open?"}, {"from": "gpt", "value": "Yes."}]
        (tmp_path / "set.json").write_text(json.dumps([{"id": "a", "conversations": turns}]))
        stream = convoscope.read(tmp_path / "set.json")
        assert [one.id for one in stream] == ["a"]
        assert stream.report.files["set.json"].format == "sharegpt"
    finally:
        installed.cache_clear()


def test_only_readers_that_may_know_a_file_are_imported() -> None:
    """Of the fields of the file, `results` marks two formats, `utterances` one, `channels` and the others none."""
    installed.cache_clear()
    try:
        (found,) = find_inputs([EXAMPLES / "deepgram" / "parcel.json"]).inputs
        assert found.reader == "deepgram"
        readers = [reader for reader in installed().by_name.values() if isinstance(reader, MarkedReader)]
        assert {reader.name for reader in readers if "loaded" in vars(reader)} == {
            "aws-transcribe",
            "deepgram",
            "taskmaster",
        }
        assert len(readers) == len(MARKS)
    finally:
        installed.cache_clear()


@pytest.mark.parametrize("ending", ["jsonl", "json"])
def test_as_much_is_decoded_of_a_long_file_as_of_a_short_one(ending: str, tmp_path: Path, monkeypatch: Any) -> None:
    decoded: list[int] = []

    def counting(data: bytes) -> Any:
        decoded.append(len(data))
        return decode(data)

    monkeypatch.setattr(discover, "decode", counting)
    spent = []
    for count in (4_000, 20_000):
        rows = [json.dumps({"id": f"{number:06d}", "messages": [TURN]}) for number in range(count)]
        path = tmp_path / f"{count}.{ending}"
        path.write_text("\n".join(rows) if ending == "jsonl" else f"[{','.join(rows)}]")
        assert path.stat().st_size > discover.HEAD_BYTES
        (found,) = find_inputs([path]).inputs
        assert found.reader == "openai-chat"
        spent.append(sorted(decoded))
        decoded.clear()
    assert spent[0] == spent[1]
    assert len(spent[0]) <= discover.MANY_LINES + discover.SAMPLE_RECORDS


TURN = {"role": "user", "content": "Is the ferry late again, or did I misread the table at the pier?"}
