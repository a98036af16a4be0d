"""Which files are recordings, by their first bytes. Nothing is decoded here."""

from __future__ import annotations

from pathlib import Path

from convoscope.storage import open_binary

ENDINGS = (".wav", ".wave", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif", ".aiff", ".au", ".caf", ".w64", ".rf64")
"""Of recordings: they are no part of a conversation's name."""
_BEGIN = {b"fLaC": "FLAC", b"OggS": "Ogg", b"ID3": "MP3", b"FORM": "AIFF", b".snd": "AU", b"caff": "CAF"}
_RIFF = (b"RIFF", b"RF64", b"RIFX")
_MPEG_ENDINGS = (".mp3", ".mpga", ".mp2")


def audio_kind(path: Path) -> str:
    """The kind of a recording that can be read; "" for whatever else."""
    try:
        if not path.is_file():  # to open a pipe might keep us waiting
            return ""
        with open_binary(path) as stream:
            head = stream.read(64)
    except OSError:
        return ""
    if head[:4] in _RIFF and head[8:12] == b"WAVE":
        return "WAV"
    if head[:4] == b"riff" and head[24:28] == b"wave":
        return "W64"
    if head[:4] == b"FORM" and head[8:11] != b"AIF":
        return ""
    if head[:2] == b"\xff\xfe":  # the mark of a text in UTF-16
        return ""
    # A frame of MPEG sound begins with eleven bits of 1; so do other files, and the name has to agree.
    if head[:1] == b"\xff" and len(head) > 1 and head[1] & 0xE0 == 0xE0 and path.suffix.lower() in _MPEG_ENDINGS:
        return "MP3"
    return next((kind for begin, kind in _BEGIN.items() if head.startswith(begin)), "")
