"""The contract of readers: whatever a log holds, it is read or refused with a reason, and the rest of it is read.

Every installed reader passes the same tests with a real sample of its format. No failure is worse than a
`ConvoscopeError` that names the file; nothing is lost in silence: the texts of a record are in the conversation, or
the read report says why they are not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import convoscope
from convoscope.conversation import Conversation, from_json, to_json
from convoscope.conversation.events import moment
from convoscope.ingest.reader import installed
from convoscope.ingest.report import Note, ReadReport
from support.contract import SAMPLES, LogSample, Steps, at, fields, spoilt, timed, walk

WITNESS = "zz-witness"
TYPES: dict[str, Any] = {"null": None, "number": 7, "text": "seven", "list": [7, "seven"], "object": {"seven": 7}}
ODD_TEXTS = frozenset({"seven"})
"""A value of another type than its field has need not be kept. Everything else in the record has to be."""
EMPTY = ("", " \n", "{}", "[]", "null", "{}\n{}\n")
CUTS = (0.25, 0.5, 0.75, 0.99)
HOSTILE = (
    "a\x00\x07\x1b[31m\r\n\u202e\ufeffz",
    "<script>alert(1)</script> {{x}} ${y} %s `rm` | & \" '",
    "a\ud800z",
    "word " * 20_000,
)
"""Control characters, markup, a lone surrogate, and 100,000 characters."""


class Reading(NamedTuple):
    """What was read of each sample, by the name that it was written under."""

    conversations: dict[str, list[Conversation]]
    notes: dict[str, list[Note]]
    report: ReadReport

    def is_refused(self, name: str) -> bool:
        """Whether the report says why nothing was read of it."""
        return any(_name(problem.file) == name for problem in self.report.problems) or any(
            not file.conversations for path, file in self.report.files.items() if _name(path) == name
        )


def _name(path: str) -> str:
    """The name that a sample was written under, of its file or folder."""
    return WITNESS if path.startswith(WITNESS) else path.split("-", maxsplit=1)[0]


def read_all(samples: Sequence[LogSample], witness: LogSample, folder: Path) -> Reading:
    """Read samples from one folder, together with one that nothing is wrong with."""
    for number, sample in enumerate(samples):
        sample.write(folder, f"attempt_{number:04d}")
    witness.write(folder, WITNESS)
    reading = Reading({}, {}, ReadReport())
    stream = convoscope.read(folder)
    for read in stream.with_notes():
        conversation = read.conversation
        assert from_json(to_json(conversation)) == conversation
        inputs = stream._found.inputs
        # Records that were brought together by key have no input of their own.
        keyed = read.origin.input >= len(inputs)
        name = _name(conversation.source.files[0] if keyed else inputs[read.origin.input].name)
        reading.conversations.setdefault(name, []).append(conversation)
        reading.notes.setdefault(name, []).extend(read.notes)
    reading = reading._replace(report=stream.report)
    for problem in stream.report.problems:
        assert problem.file, f"a problem names no file: {problem.message}"
        assert "reader failed" not in problem.message, problem
        assert problem.message, f"a problem of {problem.file} has no message"
    assert story(reading.conversations[WITNESS]) == story(alone(witness, folder.with_name("alone")))
    return reading


def alone(sample: LogSample, folder: Path) -> list[Conversation]:
    return list(convoscope.read(sample.write(folder, WITNESS)))


def story(conversations: Sequence[Conversation]) -> list[Any]:
    return [(one.timeline, one.dimensions, one.outcome, one.extras) for one in conversations]


def texts_lost(sample: LogSample, conversations: Sequence[Conversation]) -> list[str]:
    """The texts of a sample that are in none of its conversations."""
    written = "\n".join(to_json(one).decode() for one in conversations)
    return [
        f"{path(steps)}: {text[:40]!r}"
        for steps, text in walk(dict(sample.files))
        if isinstance(text, str)
        and _is_text(text)
        and steps[-1] not in ("role", "type", "object", "event", "record")
        and _written(_spoken_words(text) if sample.is_text else text) not in written
        and not sample.need_not_be_kept(steps)
    ]


@cache
def _written(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


_AROUND = re.compile(r"<[^>]*>|^\d+/\d+/\d+, \d+:\d+ - (?:[\w ]+: )?|^\w+: |^WEBVTT - ")


def _spoken_words(line: str) -> str:
    """What a line of a plain transcript says at length: no times, no label, no tag."""
    return "" if "-->" in line else max(_AROUND.split(line), key=len)


@cache
def _is_text(value: str) -> bool:
    """JSON inside of a text becomes a structure, a time becomes seconds, a role or a type becomes a kind of event."""
    return len(value) > 2 and value[0] not in "{[" and value not in ODD_TEXTS and moment(value) is None


def path(steps: Steps) -> str:
    """A field by its path, as `copies=` of a sample names it, with the indexes of lists."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")


def assert_nothing_lost_in_silence(
    samples: Sequence[LogSample], changes: Sequence[str], witness: LogSample, reading: Reading
) -> None:
    """What is lost of a changed sample, and not of the whole one, is in the read report."""
    before = set(texts_lost(witness, reading.conversations[WITNESS]))
    usual = {(note.kind, note.code) for note in reading.notes[WITNESS]}
    silent = []
    for number, sample in enumerate(samples):
        name = f"attempt_{number:04d}"
        missing = set(texts_lost(sample, reading.conversations.get(name, []))) - before
        noted = {(note.kind, note.code) for note in reading.notes.get(name, [])} - usual
        if missing and not noted and not reading.is_refused(name):
            silent.append(f"with {changes[number]}, the reader loses {'; '.join(sorted(missing))}")
    hint = "take the field, leave it to `extras`, or note it; `copies=` of the sample lists what repeats other fields"
    assert not silent, "\n".join([*silent, hint])


def _reader(name: str) -> str:
    """The reader of a sample; some have several."""
    return name.partition(":")[0]


def test_every_installed_reader_has_a_sample() -> None:
    # A recording holds no text that could be spoilt: tests/audio/test_reader.py has what it must stand.
    readers = {name for name in installed().by_name if not name.startswith("test-")} - {"recording"}
    assert {_reader(name) for name in SAMPLES} == readers


@pytest.mark.parametrize("reader", sorted(SAMPLES))
class TestContract:
    def test_a_sample_is_of_its_format(self, reader: str, tmp_path: Path) -> None:
        stream = convoscope.read(SAMPLES[reader].write(tmp_path, WITNESS))
        assert len(list(stream)) == 1
        assert {file.format for file in stream.report.files.values()} == {_reader(reader)}
        assert stream.report.problem_count == 0

    def test_empty_files_do_not_stop_the_others(self, reader: str, tmp_path: Path) -> None:
        sample = SAMPLES[reader]
        for number, content in enumerate(EMPTY):
            for path in paths(sample, sample.write(tmp_path, f"attempt_{number:04d}")):
                path.write_text(content)
        assert_reported(read_all([], sample, tmp_path), [f"the content {content!r}" for content in EMPTY])

    def test_cut_files_do_not_stop_the_others(self, reader: str, tmp_path: Path) -> None:
        sample = SAMPLES[reader]
        for number, share in enumerate(CUTS):
            for path in paths(sample, sample.write(tmp_path, f"attempt_{number:04d}")):
                data = path.read_bytes()
                path.write_bytes(data[: int(share * len(data))])
        reading = read_all([], sample, tmp_path)
        if not sample.is_text:
            assert_reported(reading, [f"the first {share:.0%} of its bytes" for share in CUTS])

    @pytest.mark.parametrize("kind", list(TYPES))
    def test_a_field_of_another_type(self, reader: str, kind: str, tmp_path: Path) -> None:
        sample = SAMPLES[reader]
        samples = [sample.replaced(steps, TYPES[kind]) for steps in fields(sample)]
        changes = [f"{path(steps)} = {TYPES[kind]!r}" for steps in fields(sample)]
        reading = read_all(samples, sample, tmp_path)
        assert_nothing_lost_in_silence(samples, changes, sample, reading)

    def test_several_odd_values_at_once(self, reader: str, tmp_path: Path) -> None:
        read_all([spoilt(SAMPLES[reader], seed) for seed in range(60)], SAMPLES[reader], tmp_path)

    def test_an_unknown_field_is_kept_or_noted(self, reader: str, tmp_path: Path) -> None:
        sample = SAMPLES[reader]
        samples = [sample.replaced((*steps, "zz_field"), "zz text") for steps in objects(sample)]
        reading = read_all(samples, sample, tmp_path)
        for number, steps in enumerate(objects(sample)):
            name = f"attempt_{number:04d}"
            kept = any(b"zz text" in to_json(one) for one in reading.conversations.get(name, []))
            noted = reading.notes.get(name, []) != reading.notes[WITNESS]
            where = path((*steps, "zz_field"))
            assert kept or noted or reading.is_refused(name), f"the unknown field {where} is neither kept nor noted"

    def test_a_record_twice(self, reader: str, tmp_path: Path) -> None:
        """It is two conversations, or one; whatever it is, all its words are there."""
        sample = SAMPLES[reader]
        twice = sample._replace(
            files={name: [*value, *value] if isinstance(value, list) else value for name, value in sample.files.items()}
        )
        reading = read_all([twice, sample._replace(id="")], sample, tmp_path)
        assert not reading.is_refused("attempt_0000")
        assert_nothing_lost_in_silence([twice], ["each record twice"], sample, reading)

    def test_hostile_texts(self, reader: str, tmp_path: Path) -> None:
        sample = SAMPLES[reader]
        ways = [steps for steps in fields(sample) if isinstance(at(sample, steps), str)]
        read_all([sample.replaced(steps, text) for steps in ways for text in HOSTILE], sample, tmp_path)

    def test_times_in_four_shapes(self, reader: str, tmp_path: Path) -> None:
        sample = SAMPLES[reader]
        if not sample.times:
            pytest.skip("no field holds a time of the wall clock")
        shapes: list[Callable[[Any], Any]] = [_iso, _seconds, lambda value: 1000 * _seconds(value), lambda _: None]
        reading = read_all([timed(sample, shape) for shape in shapes], sample, tmp_path)
        iso, seconds, milliseconds, none = [reading.conversations[f"attempt_{n:04d}"][0] for n in range(4)]
        assert times(iso) == times(seconds) == times(milliseconds) != []
        assert words(iso) == words(seconds) == words(milliseconds)
        assert sorted(" ".join(words(none)).split()) == sorted(" ".join(words(iso)).split())


def paths(sample: LogSample, written: Path) -> list[Path]:
    return sorted(written.iterdir()) if sample.is_folder else [written]


def assert_reported(reading: Reading, changes: Sequence[str]) -> None:
    """Each of the samples was refused, or read with a note that the whole one has not."""
    for number, change in enumerate(changes):
        name = f"attempt_{number:04d}"
        is_noted = reading.notes.get(name, []) != reading.notes[WITNESS]
        assert reading.is_refused(name) or is_noted, f"a file with {change} is read without a note"


def objects(sample: LogSample) -> list[Steps]:
    """The way to every object of a sample, once for all elements of a list."""
    ways: dict[tuple[str, ...], Steps] = {}
    for steps, value in walk(dict(sample.files)):
        if isinstance(value, dict):
            ways.setdefault(tuple(str(step) if isinstance(step, str) else "[]" for step in steps), steps)
    return list(ways.values())


def _seconds(value: Any) -> float:
    read = moment(value)
    assert read is not None
    return read.at


def _iso(value: Any) -> str:
    return datetime.fromtimestamp(_seconds(value), UTC).isoformat()


def times(conversation: Conversation) -> list[float]:
    return [round(event.time.at, 3) for event in conversation.timeline if event.time is not None]


def words(conversation: Conversation) -> list[str]:
    return [conversation.text(utterance) for utterance in conversation.utterances]
