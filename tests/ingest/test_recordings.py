"""The recording of a conversation is found: as the log says, beside the log, or in the folder that the user names."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import convoscope
from convoscope.conversation import Conversation, to_json
from convoscope.errors import UsageError
from convoscope.ingest.pieces import pieces_of
from convoscope.ingest.read import from_objects
from convoscope.ingest.report import ReadReport
from convoscope.ingest.split import Partition, read_partition
from support.logs import CHAT


def log(folder: Path, *records: Any, name: str = "calls.jsonl") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path


def item(id: str, **fields: Any) -> dict[str, Any]:
    turns = [{"speaker": "user", "message": "hello"}, {"speaker": "assistant", "message": "hi"}]
    asked = {"conversation_id": id, "agent_task": "hello", "agent_response": "hi"}
    return {**asked, "conversation_context": {"turns": turns}, **fields}


def touch(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    return str(path)


def paths(conversation: Conversation) -> list[str]:
    return [track.path for track in conversation.recording.tracks] if conversation.recording else []


def recording_extras(conversation: Conversation) -> dict[str, Any]:
    assert conversation.recording is not None
    return dict(conversation.recording.extras)


def only(path: Path, **settings: Any) -> Conversation:
    (conversation,) = convoscope.read(path, **settings)
    return conversation


def test_beside_the_log_by_the_id_of_the_conversation(tmp_path: Path) -> None:
    beside = touch(tmp_path / "call-7.flac")
    touch(tmp_path / "call-70.wav")
    stream = convoscope.read(log(tmp_path, {"id": "call-7", **CHAT}, {"id": "call-8", **CHAT}))
    first, second = stream
    assert paths(first) == [beside]
    assert second.recording is None
    assert stream.report.inferred["recording_by_id"].count == 1  # only the name says that they belong together


def test_as_the_log_says_it(tmp_path: Path) -> None:
    inside, outside = touch(tmp_path / "logs/audio/a.wav"), touch(tmp_path / "elsewhere/b.wav")
    file = log(
        tmp_path / "logs",
        item("one", metadata={"local_audio_path": "audio/a.wav"}),
        item("two", metadata={"local_audio_path": outside}),
        item("three", metadata={"local_audio_path": "/gone/c.wav"}),
        item("four", raw_complete_audio={"audio_url": f"file://{outside}"}),
        item("five", raw_complete_audio={"audio_url": "https://127.0.0.1:1/x/e.wav?signature=1"}),
    )
    found = {one.id: paths(one) for one in convoscope.read(file)}
    assert found == {"one": [inside], "two": [outside], "three": ["/gone/c.wav"], "four": [outside], "five": [""]}


def test_a_recording_that_was_moved_is_found_by_its_name(tmp_path: Path) -> None:
    moved, fetched = touch(tmp_path / "c.wav"), touch(tmp_path / "e.wav")
    file = log(
        tmp_path,
        item("three", metadata={"local_audio_path": "C:\\calls\\c.wav"}),
        item("five", raw_complete_audio={"audio_url": "https://127.0.0.1:1/x/e.wav?signature=1"}),
    )
    assert [paths(one) for one in convoscope.read(file)] == [[moved], [fetched]]


def test_the_folder_that_the_user_names_counts_first(tmp_path: Path) -> None:
    touch(tmp_path / "logs/one.wav")
    deep = touch(tmp_path / "audio/2026/one.wav")
    named = touch(tmp_path / "audio/x.wav")
    file = log(tmp_path / "logs", item("one"), item("two", metadata={"local_audio_path": "/gone/x.wav"}))
    first, second = convoscope.read(file, audio=tmp_path / "audio")
    assert paths(first) == [deep]
    assert paths(second) == [named]
    with pytest.raises(UsageError, match="no such folder"):
        convoscope.read(file, audio=tmp_path / "missing")


def test_of_two_files_of_one_name_none_is_guessed(tmp_path: Path) -> None:
    """Platforms write CALL/recording.wav: the folder says whose it is, and where it does not, no file is taken."""
    one, two = touch(tmp_path / "audio/one/recording.wav"), touch(tmp_path / "audio/two/recording.wav")
    touch(tmp_path / "audio/a/five.wav")
    touch(tmp_path / "audio/b/five.wav")
    both = [touch(tmp_path / "audio/c/six.flac"), touch(tmp_path / "audio/c/six.wav")]
    file = log(
        tmp_path / "logs",
        item("first", metadata={"local_audio_path": "/gone/one/recording.wav"}),
        item("second", raw_complete_audio={"audio_url": "https://127.0.0.1:1/two/recording.wav?signature=1"}),
        item("third", metadata={"local_audio_path": "/gone/three/recording.wav"}),
        item("fourth", metadata={"local_audio_path": "recording.wav"}),
        item("five"),
        item("six"),
    )
    stream = convoscope.read(file, audio=tmp_path / "audio")
    conversations = {conversation.id: conversation for conversation in stream}
    found = {id: paths(conversation) for id, conversation in conversations.items()}
    assert found["first"] == [one]
    assert found["second"] == [two]
    assert found["third"] == ["/gone/three/recording.wav"]
    assert found["fourth"] == ["recording.wav"]
    assert found["five"] == []
    # The third and the fourth: the two files of five and six are compared by what opens them.
    assert stream.report.set_aside["recording_ambiguous"].count == 2
    assert found["six"] == []
    assert [recording_extras(conversations[id]) for id in ("five", "six", "fourth")] == [
        {"recording_candidates": [str(tmp_path / "audio/a/five.wav"), str(tmp_path / "audio/b/five.wav")]},
        {"recording_candidates": both},
        {"recording_ambiguous": [one, two]},
    ]


def test_a_name_that_several_conversations_give_is_nobodys(tmp_path: Path) -> None:
    """RE1/recording.wav is the recording of RE1 alone, and recording.wav beside two logs that of neither."""
    hers = touch(tmp_path / "audio/RE1/recording.wav")
    for id in ("RE1", "RE2"):
        url = f"https://127.0.0.1:1/{id}/recording.wav"
        log(tmp_path / "logs", item(id, raw_complete_audio={"audio_url": url}), name=f"{id}.jsonl")
    stream = convoscope.read(tmp_path / "logs", audio=tmp_path / "audio")
    assert {one.id: paths(one) for one in stream} == {"RE1": [hers], "RE2": [""]}
    assert stream.report.set_aside["recording_ambiguous"].examples == ["RE2.jsonl recording.wav"]
    assert "recording_by_name" not in stream.report.inferred  # its folder has the right name, too

    beside = touch(tmp_path / "logs/recording.wav")
    stream = convoscope.read(tmp_path / "logs")
    found = {one.id: one for one in stream}
    assert [paths(one) for one in found.values()] == [[""], [""]]
    assert recording_extras(found["RE1"]) == recording_extras(found["RE2"]) == {"recording_ambiguous": [beside]}

    # One log alone: its name is all there is, so it is taken, and the report says by what.
    alone = convoscope.read(tmp_path / "logs/RE2.jsonl")
    assert [paths(one) for one in alone] == [[beside]]
    assert alone.report.inferred["recording_by_name"].examples == ["RE2.jsonl recording.wav"]


def test_a_folder_that_several_addresses_share_says_nothing(tmp_path: Path) -> None:
    """`x/audio/call.wav` and `y/audio/call.wav`: the folder `audio` is of both."""
    touch(tmp_path / "found/audio/call.wav")
    x, y = (item(id, metadata={"local_audio_path": f"/gone/{id}/audio/call.wav"}) for id in "xy")
    file = log(tmp_path / "logs", x, y)
    assert [paths(one) for one in convoscope.read(file, audio=tmp_path / "found")] == [
        ["/gone/x/audio/call.wav"],
        ["/gone/y/audio/call.wav"],
    ]
    exact = touch(tmp_path / "found/y/audio/call.wav")
    assert [paths(one) for one in convoscope.read(file, audio=tmp_path / "found")][1] == [exact]


def test_an_id_that_two_logs_have_is_no_name_of_a_recording(tmp_path: Path) -> None:
    file = touch(tmp_path / "audio/call.wav")
    for name, words in (("a", "hello"), ("b", "bye")):
        record = {"id": "call", "messages": [{"role": "user", "content": words}, *CHAT["messages"]]}
        log(tmp_path / name, record)
    found = list(convoscope.read([tmp_path / "a", tmp_path / "b"], audio=tmp_path / "audio"))
    assert [recording_extras(one) for one in found] == [{"recording_ambiguous": [file]}] * 2


def test_what_a_log_says_was_ambiguous_is_not_believed(tmp_path: Path) -> None:
    """Such names inside of a log of our own format may come from anyone."""
    record = json.loads(to_json(only(log(tmp_path, {"id": "one", **CHAT}))))
    record["recording"] = {"extras": {"recording_candidates": ["/etc/passwd"], "recording_ambiguous": 5, "kept": 1}}
    assert recording_extras(only(log(tmp_path / "own", record))) == {"kept": 1}


def test_a_file_outside_of_the_folders_is_marked(tmp_path: Path) -> None:
    """The log may name any file of this machine: by "..", as a whole, or through a link."""
    inside, outside = touch(tmp_path / "logs/audio/a.wav"), touch(tmp_path / "private/b.wav")
    linked = tmp_path / "logs" / "linked.wav"
    linked.symlink_to(outside)
    names = {"in": "audio/a.wav", "up": "../private/b.wav", "whole": outside, "link": "linked.wav"}
    file = log(tmp_path / "logs", *(item(id, metadata={"local_audio_path": path}) for id, path in names.items()))
    stream = convoscope.read(file)
    found = {one.id: one for one in stream}
    up = os.path.abspath(tmp_path / "private/b.wav")
    assert {id: recording_extras(one).get("recording_elsewhere") for id, one in found.items()} == {
        "in": None,
        "up": [up],
        "whole": [outside],
        "link": [str(linked)],
    }
    assert paths(found["in"]) == [inside]
    assert stream.report.inferred["recording_elsewhere"].count == 3
    # A folder that the user names allows what is in it; the program that hands conversations over keeps the mark.
    allowed = convoscope.read(file, audio=tmp_path / "private")
    assert not any("recording_elsewhere" in recording_extras(one) for one in allowed)
    pieces = tuple(pieces_of(from_objects([*found.values()]).inputs[0], 0, 1 << 20))
    again = [read.conversation for read in read_partition(Partition(0, pieces), ReadReport())]
    assert {one.id: "recording_elsewhere" in recording_extras(one) for one in again} == {
        "in": False,
        "up": True,
        "whole": True,
        "link": True,
    }


def test_records_of_several_files_find_theirs(tmp_path: Path) -> None:
    # Traces are brought together by key: by then no record is in its own folder any more.
    example = Path(__file__).parents[2] / "examples/openinference"
    [source] = [path for path in example.iterdir() if path.suffix in (".json", ".jsonl")][:1]
    ids = [one.id for one in convoscope.read(source)]
    (tmp_path / source.name).write_bytes(source.read_bytes())
    beside = touch(tmp_path / f"{ids[0]}.wav")
    found = {one.id: paths(one) for one in convoscope.read(tmp_path / source.name)}
    assert found == {id: [beside] if id == ids[0] else [] for id in ids}


def test_an_id_is_no_path(tmp_path: Path) -> None:
    touch(tmp_path / "secret.wav")
    conversation = only(log(tmp_path / "logs", {"id": "../secret", **CHAT}))
    assert conversation.recording is None
