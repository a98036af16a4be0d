"""A recording at an address is fetched only where the user says so, and over HTTP alone. The server is a real one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from convoscope.conversation import AudioFile, Conversation, Track
from convoscope.resources import RecordingError
from support import sounds

from convoscope.audio import remote  # isort: skip
from convoscope.audio.files import load_tracks  # isort: skip


class Server:
    def __init__(self, folder: Path) -> None:
        self.asked: list[str] = []
        asked = self.asked

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                if self.path.startswith("/to-file"):
                    self.send_response(302)
                    self.send_header("Location", f"file://{folder}/call.wav")
                    self.end_headers()
                elif self.path.startswith("/to-ftp"):
                    self.send_response(302)
                    self.send_header("Location", "ftp://127.0.0.1:1/call.wav")
                    self.end_headers()
                elif self.path.startswith("/moved"):
                    self.send_response(302)
                    self.send_header("Location", "/call.wav")
                    self.end_headers()
                elif self.path.startswith("/call.wav"):
                    self.send_response(200)
                    self.end_headers()
                    self.wfile.write((folder / "call.wav").read_bytes())
                elif self.path.startswith("/half.wav"):
                    # A connection that breaks off: half of the bytes that it announces.
                    sound = (folder / "call.wav").read_bytes()
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(sound)))
                    self.end_headers()
                    self.wfile.write(sound[: len(sound) // 2])
                elif self.path.startswith("/login"):
                    self.send_response(200)
                    self.end_headers()
                    self.wfile.write(b"<!doctype html><title>Please log in</title>")
                else:
                    self.send_error(404)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("CONVOSCOPE_AUDIO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    sounds.write(tmp_path / "call.wav", sounds.tone(440, 2))
    server = Server(tmp_path)
    yield server
    server.server.shutdown()
    server.server.server_close()


def call(url: str) -> Conversation:
    return Conversation(id="c", recording=AudioFile(tracks=(Track(url=url),)))


def reason_of(url: str, *, fetch: bool = True) -> RecordingError:
    with pytest.raises(RecordingError) as caught:
        load_tracks(call(url), fetch=fetch)
    return caught.value


def test_nothing_is_asked_unless_the_user_says_so(server: Server) -> None:
    assert reason_of(f"{server.address}/call.wav", fetch=False).reason == "recording_remote"
    assert server.asked == []


def test_it_is_fetched_once(server: Server) -> None:
    for _ in range(2):
        [track] = load_tracks(call(f"{server.address}/moved?signature=1"), fetch=True)
        assert track.seconds == 2.0
    assert server.asked == ["/moved?signature=1", "/call.wav"]


def test_an_answer_that_leads_to_a_file_is_not_followed(server: Server, tmp_path: Path) -> None:
    for path in ("/to-file", "/to-ftp"):
        assert reason_of(f"{server.address}{path}").reason == "recording_not_found"
    assert list((tmp_path / "cache").iterdir()) == []


def test_what_is_not_there(server: Server) -> None:
    error = reason_of(f"{server.address}/gone.wav?signature=secret")
    assert (error.reason, error.detail) == ("recording_not_found", "its server answers 404")


def test_other_schemes_are_never_fetched(server: Server) -> None:
    for url in ("ftp://127.0.0.1/call.wav", "data:audio/wav;base64,UklGRg=="):
        assert reason_of(url).reason == "recording_not_found"


def test_a_file_that_is_too_large_is_not_kept(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "MOST_BYTES", 1000)
    assert reason_of(f"{server.address}/call.wav").reason == "recording_not_readable"
    assert list((tmp_path / "cache").iterdir()) == []


def test_what_breaks_off_or_is_no_recording_is_not_kept(server: Server, tmp_path: Path) -> None:
    half = reason_of(f"{server.address}/half.wav")
    # 44 bytes of a header, and 2 s of 16,000 samples of 2 bytes: 64,044.
    assert (half.reason, half.detail) == ("recording_not_found", "not fetched: 32,022 of 64,044 bytes came")
    login = reason_of(f"{server.address}/login")
    assert login.reason == "recording_not_readable"
    assert login.detail == "what its address answers: is not a recording"
    assert list((tmp_path / "cache").iterdir()) == []
