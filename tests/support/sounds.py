"""Sound for tests: real speech of Debian's prompts and voices, generated tones, and calls made of them.

Speech is decoded or spoken once, and kept in the folder of the environment. Where what speaks is not installed, a test
that needs it is skipped, and says so.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
soundfile = pytest.importorskip("soundfile", reason="the extra audio is not installed: pip install 'convoscope[audio]'")

RATE = 16_000
PROMPTS = Path("/usr/share/asterisk/sounds/en_US_f_Allison")
TRANSCRIPTS = Path("/usr/share/doc/asterisk-core-sounds-en/core-sounds-en.txt.gz")
_KEPT = Path(sys.prefix) / "sounds"


def write(path: Path, *channels: Any, rate: int = RATE, **options: Any) -> Path:
    """A file with these channels, the shorter ones filled with silence."""
    longest = max(map(len, channels))
    padded = [np.pad(np.asarray(one, np.float32), (0, longest - len(one))) for one in channels]
    soundfile.write(path, np.stack(padded, axis=1) if len(padded) > 1 else padded[0], rate, **options)
    return path


def silence(seconds: float, rate: int = RATE) -> Any:
    return np.zeros(round(seconds * rate), np.float32)


def tone(hertz: float, seconds: float, level: float = 0.5, rate: int = RATE) -> Any:
    """A sine with a peak of `level`."""
    return (level * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


def noise(seconds: float, level: float = 0.1, seed: int = 0, rate: int = RATE) -> Any:
    """White noise with an RMS of `level`."""
    return (level * np.random.default_rng(seed).standard_normal(round(seconds * rate))).astype(np.float32)


def with_noise(samples: Any, decibels: float, seed: int = 0) -> Any:
    """A sound with white noise so many decibels below it."""
    power = float(np.sqrt(np.mean(np.asarray(samples, np.float64) ** 2)))
    return samples + noise(len(samples) / RATE, power / 10 ** (decibels / 20), seed)[: len(samples)]


def said(text: str, voice: str = "slt") -> Any:
    """A sentence in a voice of flite, at 16 kHz; the test is skipped where flite is not installed."""
    return _loaded(f"flite-{voice}", text, ["flite", "-voice", voice, "-t", text, "-o"])


def festival(text: str) -> Any:
    """A sentence in festival's HTS voice, at 16 kHz."""
    if shutil.which("text2wave") is None:
        pytest.skip("festival is not installed: apt-get install festival festvox-us-slt-hts")
    wave = _path("festival", text)
    if not wave.exists():
        voice = "(voice_cmu_us_slt_arctic_hts)"
        spoken = subprocess.run(
            ["text2wave", "-eval", voice, "-o", f"{wave}.{os.getpid()}"],
            input=text.encode(),
            capture_output=True,
            check=False,
        )
        if spoken.returncode:
            pytest.skip(f"festival has no voice slt-hts: {spoken.stderr.decode()[-200:]}")
        Path(f"{wave}.{os.getpid()}").replace(wave)
    return _at_16_khz(wave)


def prompt(name: str) -> Any:
    """A prompt of Debian's asterisk-core-sounds-en-g722, spoken by a person, at 16 kHz."""
    source = PROMPTS / f"{name}.g722"
    if not source.exists() or shutil.which("ffmpeg") is None:
        pytest.skip("no prompts: apt-get install asterisk-core-sounds-en asterisk-core-sounds-en-g722 ffmpeg")
    return _loaded("prompt", name, ["ffmpeg", "-v", "error", "-y", "-i", str(source), "-ar", str(RATE), "-f", "wav"])


@cache
def prompt_texts() -> dict[str, str]:
    """What is said in each prompt, by its name."""
    if not TRANSCRIPTS.exists():
        pytest.skip("no transcripts of prompts: apt-get install asterisk-core-sounds-en")
    lines = gzip.decompress(TRANSCRIPTS.read_bytes()).decode("utf-8", "replace").splitlines()
    pairs = (line.split(":", 1) for line in lines if ":" in line and not line.startswith(";"))
    return {name.strip(): text.strip() for name, text in pairs}


def _path(kind: str, text: str) -> Path:
    folder = _KEPT / kind
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.wav"


def _loaded(kind: str, text: str, command: list[str]) -> Any:
    wave = _path(kind, text)
    if not wave.exists():
        if shutil.which(command[0]) is None:
            pytest.skip(f"{command[0]} is not installed: apt-get install {command[0]}")
        part = Path(f"{wave}.{os.getpid()}")
        subprocess.run([*command, str(part)], check=True, capture_output=True)
        part.replace(wave)
    return _at_16_khz(wave)


def _at_16_khz(wave: Path) -> Any:
    samples, rate = soundfile.read(wave, dtype="float32")
    if rate == RATE:
        return samples
    import soxr

    return soxr.resample(samples, rate, RATE)


def call_of(*lines: tuple[str, Any], pause: float = 0.6) -> tuple[Any, Any, list[tuple[str, float, float]]]:
    """Assistant's and user's channel of a call in which they take turns, and when each line is spoken."""
    sides: dict[str, list[Any]] = {"assistant": [], "user": []}
    times: list[tuple[str, float, float]] = []
    at = 0.5
    sides["assistant"].append(silence(at))
    sides["user"].append(silence(at))
    for role, samples in lines:
        length = len(samples) / RATE
        times.append((role, at, at + length))
        other = "user" if role == "assistant" else "assistant"
        sides[role] += [samples, silence(pause)]
        sides[other].append(np.zeros(len(samples) + len(silence(pause)), np.float32))
        at += (len(samples) + len(silence(pause))) / RATE
    return np.concatenate(sides["assistant"]), np.concatenate(sides["user"]), times
