"""Recordings at an address: fetched only where the user says so, over HTTP alone, into a folder of the cache."""

from __future__ import annotations

import hashlib
import os
import tempfile
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from time import monotonic
from typing import IO, Any

from convoscope.audio.decode import read_header
from convoscope.resources.sound import RecordingError

MOST_BYTES = 1024**3
SECONDS = 60.0
"""Without an answer."""
MOST_SECONDS = 900.0
"""For all of it."""
_CHUNK = 1 << 20


class _OnlyHttp(urllib.request.HTTPRedirectHandler):
    """Follows no address to another scheme."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        if not newurl.startswith(("http://", "https://")):
            fp.close()
            raise urllib.error.URLError("it leads to an address that is not http")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def cache_folder() -> Path:
    """Where fetched recordings are kept: CONVOSCOPE_AUDIO_CACHE, else the user's cache."""
    named = os.environ.get("CONVOSCOPE_AUDIO_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "convoscope" / "audio"


def _kept(url: str) -> Path:
    return cache_folder() / hashlib.sha256(url.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def is_fetched(url: str) -> bool:
    """Whether the file of an address is in the cache."""
    return _kept(url).is_file()


def fetched(url: str) -> Path:
    """The file of an address, fetched once. Raises `RecordingError`."""
    path = _kept(url)
    if path.is_file():
        return path
    folder = path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            part = Path(file.name)
            try:
                _download(url, file)
                file.flush()
                _check(part)
            except BaseException:
                part.unlink(missing_ok=True)
                raise
        part.replace(path)
    except RecordingError:
        raise
    # The address itself may hold a key: it is in no message.
    except urllib.error.HTTPError as error:
        error.close()
        raise RecordingError("recording_not_found", f"its server answers {error.code}") from None
    except urllib.error.URLError as error:
        raise RecordingError("recording_not_found", f"not fetched: {error.reason}") from None
    except (OSError, HTTPException, ValueError) as error:
        raise RecordingError("recording_not_found", f"not fetched: {type(error).__name__}") from None
    return path


def _download(url: str, file: IO[bytes]) -> None:
    if not url.startswith(("http://", "https://")):
        raise RecordingError("recording_not_found", "only http and https addresses are fetched")
    # Neither files nor FTP, whatever the address says later.
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor,
        _OnlyHttp,
    ):
        opener.add_handler(handler())
    request = urllib.request.Request(url, headers={"User-Agent": "convoscope"})
    with opener.open(request, timeout=SECONDS) as answer:
        size, until = 0, monotonic() + MOST_SECONDS
        while chunk := answer.read(_CHUNK):
            size += len(chunk)
            if size > MOST_BYTES:
                raise RecordingError("recording_not_readable", f"larger than {MOST_BYTES >> 30} GiB")
            if monotonic() > until:
                raise RecordingError("recording_not_found", f"not fetched in {MOST_SECONDS / 60:g} minutes")
            file.write(chunk)
        announced = answer.headers.get("Content-Length", "")
        if announced.isdecimal() and size < int(announced):
            raise RecordingError("recording_not_found", f"not fetched: {size:,} of {int(announced):,} bytes came")


def _check(part: Path) -> None:
    """Refuse what is no recording, such as the page of a login: the next run asks again."""
    try:
        read_header(part)
    except RecordingError as error:
        detail = error.detail.removeprefix(f"{part.name}").lstrip(": ")
        raise RecordingError(error.reason, f"what its address answers: {detail}") from None
