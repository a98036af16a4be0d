"""Files that are read together with others, and folders that are passed over: what belongs to what."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from convoscope.conversation import Conversation
from convoscope.ingest.companions import companion
from convoscope.ingest.discover import CompanionFile, Input, find_inputs, fingerprint
from convoscope.ingest.reader import Attach, Detection, FolderSample, Reader, RecordGroup, Sample, installed
from convoscope.ingest.report import Notes
from support.logs import CHAT, chat, counts, read, write, write_json, write_lines


class Calls(Reader):
    """A folder with `call.txt` is a conversation; `*.notes.json` is read beside those below its folder."""

    name = "test-calls"
    title = "Calls with notes"

    def detect(self, sample: Sample) -> Detection | None:
        is_note = sample.path.name.endswith(".notes.json")
        return Detection(0.99, "notes on calls", "companion") if is_note else None

    def detect_folder(self, folder: FolderSample) -> Detection | None:
        return Detection(0.99, "holds call.txt", "folder") if "call.txt" in folder.names else None

    def leave_out(self, folder: FolderSample) -> str:
        return "too old" if folder.path.name == "old" else ""

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        yield Conversation(id=group.name, extras={"notes": [path.name for path in group.companions]})


@pytest.fixture(autouse=True)
def reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(installed().by_name, Calls.name, Calls())


def call(folder: Path) -> Path:
    write(folder / "call.txt", "hello")
    return folder


def notes(path: Path, text: str = "") -> Path:
    return write_json(path.with_name(f"{path.name}.notes.json"), {"note": text})


def beside(*paths: Path) -> dict[str, list[str]]:
    """The names of the companions, by the name of what they are read with."""
    return {
        one.name: [Path(other.path).name.removesuffix(".notes.json") for other in one.companions]
        for one in find_inputs(paths).inputs
    }


class TestCompanions:
    def test_belong_to_what_lies_below_their_folder_the_nearest_first(self, tmp_path: Path) -> None:
        for name in ("a/x", "a/deep/y", "b/z"):
            call(tmp_path / name)
        notes(tmp_path / "all")
        notes(tmp_path / "a" / "of-a")
        notes(tmp_path / "a" / "deep" / "of-deep")
        assert beside(tmp_path) == {
            "a/deep/y": ["of-deep", "of-a", "all"],
            "a/x": ["of-a", "all"],
            "b/z": ["all"],
        }

    def test_one_that_lies_above_none_was_given_for_all(self, tmp_path: Path) -> None:
        call(tmp_path / "calls" / "x")
        call(tmp_path / "calls" / "y")
        notes(tmp_path / "calls" / "near")
        given = notes(tmp_path / "elsewhere" / "given")
        assert beside(tmp_path / "calls", given) == {"x": ["near", "given"], "y": ["near", "given"]}

    def test_one_above_some_of_the_calls_is_not_for_the_others(self, tmp_path: Path) -> None:
        call(tmp_path / "a" / "x")
        call(tmp_path / "b" / "y")
        notes(tmp_path / "a" / "of-a")
        assert beside(tmp_path / "a", tmp_path / "b") == {"x": ["of-a"], "y": []}

    def test_those_of_one_folder_come_in_the_order_of_their_names(self, tmp_path: Path) -> None:
        call(tmp_path / "x")
        for name in ("b", "c", "a"):
            notes(tmp_path / name)
        assert beside(tmp_path) == {"x": ["a", "b", "c"]}

    def test_are_for_their_own_reader_only(self, tmp_path: Path) -> None:
        call(tmp_path / "x")
        notes(tmp_path / "all")
        write_json(tmp_path / "chat.json", CHAT)
        assert beside(tmp_path) == {"chat.json": [], "x": ["all"]}

    def test_are_no_conversation_but_stand_in_the_report(self, tmp_path: Path) -> None:
        call(tmp_path / "x")
        notes(tmp_path / "all")
        outcome = read(tmp_path)
        assert outcome.only.extras == {"notes": ["all.notes.json"]}
        assert (outcome.report.files["all.notes.json"].why, outcome.report.files["all.notes.json"].conversations) == (
            "notes on calls",
            0,
        )


class Labels:
    """A kind that no reader knows: labels by the id of a conversation, for the conversations of every reader."""

    format = "test-labels"

    def detect(self, sample: Sample) -> Detection | None:
        is_labels = sample.path.name == "labels.json"
        return Detection(0.99, "labels of conversations", "companion") if is_labels else None

    def load(self, path: Path, name: str, *, is_named: bool) -> bool:
        return False

    def attacher(self, reader: str, files: Sequence[Path]) -> Attach | None:
        labels = {id: label for path in files for id, label in json.loads(path.read_text()).items()}

        def attach(conversation: Conversation, notes: Notes) -> Conversation:
            if conversation.id not in labels:
                return conversation
            notes.inferred("labelled")
            return msgspec.structs.replace(conversation, extras={"label": labels[conversation.id]})

        return attach if labels else None


class TestAnotherKind:
    """One class and one entry in the list of kinds: it is found, read, attached and noted like the others."""

    @pytest.fixture(autouse=True)
    def kind(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(companion, "KINDS", [*companion.KINDS, Labels()])

    def test_is_for_the_conversations_of_every_reader(self, tmp_path: Path) -> None:
        write_json(tmp_path / "labels.json", {"c1": "good", "c2": "bad", "s1": "done"})
        write_lines(tmp_path / "chats.jsonl", *(chat(id, "hello", "hello") for id in ("c1", "c2", "c3")))
        events = [{"conversation_id": "s1", "type": kind, "state": "a"} for kind in ("state_entered", "state_exited")]
        write_lines(tmp_path / "events.jsonl", *events)
        outcome = read(tmp_path)
        labels = {one.id: one.extras.get("label") for one in outcome.conversations}
        assert labels == {"c1": "good", "c2": "bad", "c3": None, "s1": "done"}
        assert counts(outcome.report.inferred)["labelled"] == 3
        file = outcome.report.files["labels.json"]
        assert (file.format, file.why) == ("test-labels", "labels of conversations")

    def test_is_for_what_lies_below_its_folder(self, tmp_path: Path) -> None:
        write_json(tmp_path / "a" / "labels.json", {"x": "good"})
        for folder in ("a", "b"):
            write_json(tmp_path / folder / "chat.json", chat("x", "hello", "hello"))
        assert [one.extras.get("label") for one in read(tmp_path).conversations] == ["good", None]


class TestOutsideOfWhatWasGiven:
    """A reader may know companions that nobody named, such as the settings of the run that a call lies in."""

    def test_they_come_last_and_none_comes_twice(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        call(tmp_path / "calls" / "x")
        outside, near = notes(tmp_path / "outside"), notes(tmp_path / "calls" / "near")
        monkeypatch.setattr(Calls, "companions", lambda self, folder: [near, outside])
        assert beside(tmp_path / "calls") == {"x": ["near", "outside"]}
        assert beside(tmp_path / "calls" / "x") == {"x": ["near", "outside"]}

    def test_there_are_none_unless_the_reader_says_so(self, tmp_path: Path) -> None:
        call(tmp_path / "calls" / "x")
        notes(tmp_path / "outside")
        assert beside(tmp_path / "calls" / "x") == {"x": []}


class TestFingerprint:
    def only(self, folder: Path) -> Input:
        (one,) = find_inputs([folder]).inputs
        return one

    def test_is_another_where_a_companion_is(self, tmp_path: Path) -> None:
        call(tmp_path / "x")
        notes(tmp_path / "all", "first")
        first = fingerprint(self.only(tmp_path))
        assert fingerprint(self.only(tmp_path)) == first
        notes(tmp_path / "all", "second")
        second = fingerprint(self.only(tmp_path))
        notes(tmp_path / "more")
        assert len({first, second, fingerprint(self.only(tmp_path))}) == 3

    def test_of_a_file_too(self, tmp_path: Path) -> None:
        one = Input(str(write_json(tmp_path / "chat.json", CHAT)), "chat.json", "r", "document", "record", "")
        with_note = msgspec.structs.replace(
            one, companions=(CompanionFile(str(notes(tmp_path / "all", "first")), "r"),)
        )
        prints = [fingerprint(one), fingerprint(with_note)]
        notes(tmp_path / "all", "second")
        assert len({*prints, fingerprint(with_note)}) == 3

    def test_does_not_tell_where_things_lie(self, tmp_path: Path) -> None:
        prints = set()
        for place in ("here", "there"):
            call(tmp_path / place / "x")
            notes(tmp_path / place / "all")
            prints.add(fingerprint(self.only(tmp_path / place)))
        assert len(prints) == 1


class TestLeftOut:
    def test_a_folder_that_a_reader_does_not_want_is_passed_over_and_said(self, tmp_path: Path) -> None:
        call(tmp_path / "new" / "x")
        call(tmp_path / "old" / "x")
        write_json(tmp_path / "old" / "chat.json", CHAT)
        outcome = read(tmp_path)
        assert outcome.ids == ["new/x"]
        assert outcome.report.files["old"].skipped == "too old"
        assert outcome.report.ignored == {"folder_left_out": 1}
        assert outcome.report.problem_count == 0

    def test_one_that_is_named_itself_is_read(self, tmp_path: Path) -> None:
        call(tmp_path / "old" / "x")
        assert read(tmp_path / "old").ids == ["x"]

    def test_a_reader_leaves_out_nothing_unless_it_says_so(self) -> None:
        assert Reader().leave_out(FolderSample(Path("old"), frozenset())) == ""


def test_the_order_of_paths_does_not_matter(tmp_path: Path) -> None:
    call(tmp_path / "calls" / "x")
    given: Sequence[Path] = [notes(tmp_path / "b" / "second"), notes(tmp_path / "a" / "first")]
    assert beside(tmp_path / "calls", *given) == beside(*reversed(given), tmp_path / "calls")


def test_a_reader_with_the_old_name_of_its_companions_still_works(tmp_path: Path) -> None:
    from convoscope.ingest.reader import Reader

    class Older(Reader):
        def beside(self, folder: Path) -> list[Path]:
            return [folder / "more.json"]

    assert Older().companions(tmp_path) == [tmp_path / "more.json"]
