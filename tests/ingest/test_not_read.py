"""What lies among logs and is not read is said, and with --strict it is not passed over."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import convoscope
from convoscope.errors import InputError, NothingReadable, UsageError
from convoscope.ingest.io import streams
from support.command_line import convoscope as command
from support.logs import CHAT, chat, read, write, write_json, write_lines


def a_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("more.jsonl", "{}")


UNREAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "more.zip": (a_zip, "is a ZIP archive, which is not opened"),
    "damaged.zip": (lambda path: path.write_bytes(b"PK\x03\x04" + b"\0" * 60), "is a ZIP archive, which is not opened"),
    "flow.yaml": (lambda path: path.write_text("flow: x\nstates:\n  - name: a\n   b: [\n"), "is not YAML"),
    "flow2.yaml": (lambda path: path.write_text("flow: order\n\tx: {"), "is not YAML"),
    "call.srt": (lambda path: path.write_text("1\n00:00:xx --> 00:00:02,000\nHello there\n"), "is not JSON"),
    "pipe.jsonl": (os.mkfifo, "is neither a file nor a folder"),
    "noise.json": (lambda path: path.write_bytes(bytes(range(256)) * 9), "is a binary file"),
}


@pytest.mark.parametrize("name", UNREAD)
def test_it_is_a_problem(name: str, tmp_path: Path) -> None:
    make, words = UNREAD[name]
    write_json(tmp_path / "a.json", CHAT)
    make(tmp_path / name)
    problem = read(tmp_path).problem
    assert (problem.file, words in problem.message) == (name, True)


def test_strict_has_the_exit_code_of_other_problems(tmp_path: Path) -> None:
    write_json(tmp_path / "logs" / "a.json", CHAT)
    a_zip(tmp_path / "logs" / "more.zip")
    score = ("score", tmp_path / "logs", "--metrics", "turns", "--out", tmp_path / "run")
    strict = command(*score, "--strict")
    assert (strict.code, strict.out) == (2, "")
    assert "more.zip: is a ZIP archive, which is not opened (unpack it)" in strict.err
    assert command(*score).code == 0


def test_files_of_other_kinds_are_no_problem(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", CHAT)
    write(tmp_path / "README.md", "# Logs of the week")
    write(tmp_path / "notes.txt", "Some notes about the logs.")
    (tmp_path / "call.wav").write_bytes(b"RIFF" + bytes(200))
    write(tmp_path / "deploy.yaml", "kind: Service\nname: [x]\n")
    report = convoscope.read(tmp_path)
    assert len(list(report)) == 1
    assert report.report.problem_count == 0
    assert (
        report.report.files["call.wav"].skipped == "is not a recording: its first bytes are of no sound that is known"
    )


class TestLinks:
    def test_a_folder_link_that_leads_out_is_not_followed(self, tmp_path: Path) -> None:
        write_json(tmp_path / "logs" / "a.json", CHAT)
        write_json(tmp_path / "other" / "b.json", chat("b"))
        (tmp_path / "logs" / "more").symlink_to(tmp_path / "other")
        outcome = read(tmp_path / "logs")
        assert len(outcome.ids) == 1
        assert (outcome.problem.file, outcome.problem.hint) == ("more", "name its target too")
        assert outcome.problem.message == "is a link that leads out of the folder, and was not followed"
        assert len(read(tmp_path / "logs", tmp_path / "other").ids) == 2

    def test_a_link_inside_and_a_link_to_a_file_are_followed(self, tmp_path: Path) -> None:
        write_json(tmp_path / "logs" / "a" / "a.json", CHAT)
        (tmp_path / "logs" / "same").symlink_to(tmp_path / "logs" / "a")
        file = write_json(tmp_path / "other" / "b.json", chat("b"))
        (tmp_path / "logs" / "b.json").symlink_to(file)
        reading = convoscope.read(tmp_path / "logs")
        assert len(list(reading)) == 2
        assert reading.report.problem_count == 0

    @pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc here")
    def test_proc_is_never_read(self, tmp_path: Path) -> None:
        write_json(tmp_path / "a.json", CHAT)
        (tmp_path / "self").symlink_to("/proc/self")
        (tmp_path / "status.json").symlink_to("/proc/self/status")
        reading = convoscope.read(tmp_path)
        assert len(list(reading)) == 1
        assert sorted(one.file for one in reading.report.problems) == ["self", "status.json"]
        with pytest.raises(InputError, match="is of the operating system"):
            read("/proc/self/task")

    def test_a_given_folder_may_be_a_link(self, tmp_path: Path) -> None:
        write_json(tmp_path / "other" / "a.json", CHAT)
        (tmp_path / "logs").symlink_to(tmp_path / "other")
        assert len(read(tmp_path / "logs").ids) == 1


def test_a_folder_deeper_than_a_path_may_be(tmp_path: Path) -> None:
    """Each name has 200 letters, and a path may have 4,096: the 25th folder cannot be opened by its path."""
    write_json(tmp_path / "a.json", CHAT)
    here = os.open(tmp_path, os.O_RDONLY)
    try:
        for _ in range(25):
            os.mkdir("d" * 200, dir_fd=here)
            deeper = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = deeper
    finally:
        os.close(here)
    outcome = read(tmp_path)
    assert len(outcome.ids) == 1
    assert outcome.problem.message == "cannot be opened: File name too long"


class TestPipes:
    def test_a_pipe_without_a_writer(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(streams, "_PATIENCE", 0.1)
        os.mkfifo(tmp_path / "pipe.jsonl")
        with pytest.raises(InputError, match="is a pipe to which no program writes"):
            streams.as_files([tmp_path / "pipe.jsonl"])

    def test_a_pipe_with_one(self, tmp_path: Path) -> None:
        import threading

        pipe = tmp_path / "pipe.jsonl"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_text, args=('{"messages": []}\n' * 10_000,))
        writer.start()
        files = streams.as_files([pipe])
        writer.join()
        assert Path(files.paths[0]).read_text() == '{"messages": []}\n' * 10_000
        assert files.folder is not None
        files.folder.cleanup()


class TestEncodings:
    TALK = "Kunde: Wo ist mein Päckchen?\nAgent: Es ist für Sie unterwegs.\nKunde: Schön, danke sehr!\nAgent: Gern.\n"

    def test_latin_1_is_read_and_said(self, tmp_path: Path) -> None:
        (tmp_path / "call.txt").write_bytes(self.TALK.encode("latin-1"))
        reading = convoscope.read(tmp_path / "call.txt")
        (conversation,) = reading
        assert [one.meant() for one in conversation.utterances][:2] == [
            "Wo ist mein Päckchen?",
            "Es ist für Sie unterwegs.",
        ]
        assert reading.report.repaired["encoding"].count == 3  # ä, ü and ö; the last line has none

    def test_another_encoding_is_not_guessed(self, tmp_path: Path) -> None:
        """Cyrillic in a code page of its own would come out as western letters with accents."""
        (tmp_path / "call.txt").write_bytes("Клиент: Где моя посылка?\nАгент: Она уже в пути.\n".encode("cp1251"))
        with pytest.raises(NothingReadable, match="is not UTF-8 text"):
            read(tmp_path / "call.txt")

    def test_one_nul_loses_its_line_only(self, tmp_path: Path) -> None:
        path = write_lines(tmp_path / "a.jsonl", chat("a"), chat("b"), chat("c"))
        lines = path.read_bytes().split(b"\n")
        path.write_bytes(b"\n".join([lines[0], lines[1][:1] + b"\0" + lines[1][1:], *lines[2:]]))
        outcome = read(path)
        assert len(outcome.ids) == 2
        assert outcome.problem.line == 2

    def test_an_empty_folder(self, tmp_path: Path) -> None:
        (tmp_path / "logs").mkdir()
        with pytest.raises(NothingReadable, match="logs: is an empty folder"):
            read(tmp_path / "logs")

    def test_a_folder_of_hidden_files(self, tmp_path: Path) -> None:
        write(tmp_path / "logs" / ".cache", "x")
        with pytest.raises(NothingReadable, match="logs: holds no file; hidden files and runs are not read"):
            read(tmp_path / "logs")

    @pytest.mark.parametrize("begin", [b"\x89PNG\r\n", b"%PDF-1.4\n1 0 obj\nendobj\n", b"\xff\xd8\xff\xe0 JFIF"])
    def test_a_binary_file_with_few_control_characters(self, begin: bytes, tmp_path: Path) -> None:
        with pytest.raises(NothingReadable, match=r"is a (picture|PDF)"):
            read(write(tmp_path / "file.bin", begin))


class TestMaps:
    MAP = '[conversation]\nmessages = "chat"\n[message]\nrole = "role"\ntext = "said"\n'

    def test_a_byte_order_mark(self, tmp_path: Path) -> None:
        map_file = tmp_path / "a.toml"
        map_file.write_bytes(b"\xef\xbb\xbf" + self.MAP.encode())
        log = write_lines(tmp_path / "log.jsonl", {"chat": [{"role": "user", "said": "Hello"}]})
        assert len(list(convoscope.read(log, readers_from=map_file))) == 1

    def test_nested_too_deeply(self, tmp_path: Path) -> None:
        map_file = write(tmp_path / "a.toml", f"a = {'[' * 5000}{']' * 5000}")
        with pytest.raises(InputError, match="is nested too deeply"):
            convoscope.read(write_json(tmp_path / "a.json", CHAT), readers_from=map_file)

    def test_another_ending_in_python(self, tmp_path: Path) -> None:
        path = write(tmp_path / "map.yaml", "a: 1\n")
        with pytest.raises(UsageError, match=r"map\.yaml is neither Python nor TOML"):
            convoscope.read(write_json(tmp_path / "a.json", CHAT), readers_from=path)

    def test_another_ending(self, tmp_path: Path) -> None:
        write(tmp_path / "map.yaml", "a: 1\n")
        write_json(tmp_path / "a.json", CHAT)
        ended = command("inspect", "a.json", "--map", "map.yaml", cwd=tmp_path)
        assert ended.code == 2
        assert "--map map.yaml: a mapping is a TOML file, with the ending .toml" in ended.err
