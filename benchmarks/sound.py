"""Metrics of sound on ladders of damage: which way each moves, how many steps are in the right order, and the cost.

Speech: prompts that a person spoke for a telephone exchange (Debian's asterisk-core-sounds-en-g722), and the same words
by two synthesizers, flite and festival. GSM is coded by ffmpeg. Tests use the same clips (`tests/support/sounds.py`).
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from convoscope.conversation import AudioFile, Conversation, Participant, Track
from convoscope.metrics.declaration import Metric

Wave = NDArray[np.float32]
RATE = 16_000
PEAK = 0.5
_MINUTES, _HOURS = 10 * 60, 3 * 3600


class Step(NamedTuple):
    """One rung of a ladder."""

    name: str
    damage: Callable[[Wave], Wave]


def _noise(decibels: float) -> Callable[[Wave], Wave]:
    def damage(wave: Wave) -> Wave:
        level = float(np.sqrt(np.mean(wave.astype(np.float64) ** 2))) / 10 ** (decibels / 20)
        noise = level * np.random.default_rng(7).standard_normal(len(wave))
        return (wave + noise).astype(np.float32)

    return damage


def _clip(times: float) -> Callable[[Wave], Wave]:
    return lambda wave: np.clip(times * wave, -PEAK, PEAK).astype(np.float32)


def _drop(share: float) -> Callable[[Wave], Wave]:
    def damage(wave: Wave) -> Wave:
        chance, result, size = np.random.default_rng(1), wave.copy(), round(0.04 * RATE)
        for number in range(len(wave) // size):
            if chance.random() < share:
                result[number * size : (number + 1) * size] = 0
        return result

    return damage


def _reverb(wave: Wave) -> Wave:
    """A room whose sound falls by 60 dB in 0.8 s."""
    size = round(0.8 * RATE)
    tail = np.random.default_rng(3).standard_normal(size) * 10 ** (-3 * np.arange(size) / size)
    tail[0] = 8
    return (np.convolve(wave, tail / np.sqrt((tail**2).sum()))[: len(wave)] / 2).astype(np.float32)


def _below(hertz: float) -> Callable[[Wave], Wave]:
    """Nothing above a frequency: a muffled voice."""

    def damage(wave: Wave) -> Wave:
        spectrum = np.fft.rfft(wave)
        spectrum[np.fft.rfftfreq(len(wave), 1 / RATE) >= hertz] = 0
        return np.fft.irfft(spectrum, len(wave)).astype(np.float32)

    return damage


def _codec(*options: str, hertz: int = 8000) -> Callable[[Wave], Wave]:
    """Through a codec and back, by ffmpeg."""

    def damage(wave: Wave) -> Wave:
        raw = ["-f", "f32le", "-ar", str(RATE), "-ac", "1"]
        quiet = ["ffmpeg", "-v", "error"]
        to = [*quiet, *raw, "-i", "-", "-ar", str(hertz), *options, "-"]
        coded = subprocess.run(to, input=wave.tobytes(), capture_output=True, check=True).stdout
        kind = options[options.index("-f") + 1]
        rate = ["-ar", "8000"] if kind == "mulaw" else []
        back = [*quiet, "-f", kind, *rate, "-i", "-", *raw, "-"]
        decoded = subprocess.run(back, input=coded, capture_output=True, check=True).stdout
        return np.frombuffer(decoded, np.float32)[: len(wave)].copy()

    return damage


def _opus(bits: str) -> Callable[[Wave], Wave]:
    return _codec("-c:a", "libopus", "-b:a", bits, "-f", "ogg", hertz=RATE)


def _mp3(bits: str) -> Callable[[Wave], Wave]:
    return _codec("-b:a", bits, "-f", "mp3", hertz=RATE)


LADDERS: dict[str, tuple[Step, ...]] = {
    "noise": tuple(Step(f"noise {level} dB", _noise(level)) for level in (20, 10, 0)),
    "clipping": (Step("clip ×4", _clip(4)), Step("clip ×16", _clip(16))),
    "dropouts": tuple(Step(f"dropouts {share:.0%}", _drop(share)) for share in (0.05, 0.15, 0.30)),
    "band": tuple(Step(f"below {hertz} Hz", _below(hertz)) for hertz in (2000, 900)),
    "Opus": tuple(Step(f"Opus {bits}bit/s", _opus(bits)) for bits in ("24k", "9k")),
    "MP3": tuple(Step(f"MP3 {bits}bit/s", _mp3(bits)) for bits in ("64k", "16k")),
}


def _wider(upsampled: Callable[[Wave], NDArray[np.floating]]) -> Callable[[Wave], Wave]:
    """A voice of a telephone with twice as many samples a second, made by something simple."""

    def damage(wave: Wave) -> Wave:
        narrow = _below(3_700)(wave)[::2]
        return upsampled(narrow)[: len(wave)].astype(np.float32)

    return damage


def _hissing(narrow: Wave) -> Wave:
    wide = np.fft.irfft(np.fft.rfft(narrow), 2 * len(narrow)) * 2
    hiss = 0.002 * np.random.default_rng(0).standard_normal(len(wide))
    return (wide + hiss).astype(np.float32)


WIDER = (
    Step("8 kHz, linear", _wider(lambda wave: np.interp(np.arange(2 * len(wave)) / 2, np.arange(len(wave)), wave))),
    Step("8 kHz, held", _wider(lambda wave: np.repeat(wave, 2))),
    Step("8 kHz, hiss", _wider(_hissing)),
)
"""What is above 4 kHz is no voice: they are telephones, and no clearer than one."""
OTHERS = (
    *WIDER,
    Step("8 kHz", _below(3_700)),
    Step("reverb 0.8 s", _reverb),
    Step("µ-law 8 kHz", _codec("-f", "mulaw")),
    Step("Opus 6kbit/s", _opus("6k")),
    Step("GSM 8 kHz", _codec("-f", "gsm", "-c:a", "libgsm")),
    Step("level ×0.1", lambda wave: (0.1 * wave).astype(np.float32)),
    Step("reversed", lambda wave: wave[::-1].copy()),
)


class Expected(NamedTuple):
    """What a scorer should do."""

    sign: int
    """-1 where it falls on each step of its ladders, 1 where it rises."""
    ladders: tuple[str, ...]
    stays: tuple[str, ...]
    """Ladders and steps on which it stays near the clean value …"""
    within: float
    """… by so much."""


EXPECTED = {
    "mos": Expected(-1, tuple(LADDERS), ("level ×0.1",), 0.2),
    "BAK": Expected(-1, ("noise",), ("level ×0.1",), 0.3),
    "PLC": Expected(-1, ("dropouts",), ("level ×0.1",), 0.3),
    "clarity": Expected(-1, ("noise", "band"), ("dropouts", "level ×0.1", "reversed"), 0.1),
    "breaks": Expected(1, ("clipping", "dropouts"), ("band", "MP3", "µ-law 8 kHz", "level ×0.1", "reversed"), 0.0),
    "pitch": Expected(0, (), (*LADDERS, *(step.name for step in OTHERS)), 10.0),
    "dBFS": Expected(0, (), ("MP3", "Opus", "µ-law 8 kHz", "GSM 8 kHz", "reversed"), 0.5),
}


def run(folder: Path, clips: int, *, full: bool) -> None:
    """The tables, and what they cost."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    try:
        from support import sounds  # type: ignore[import-not-found]
    except BaseException as error:  # pytest's way to say that something is not installed
        print(f"sound: skipped, {error}\n")
        return
    finally:
        sys.path.pop(0)
    voices = {}
    try:
        names = [name for name, text in sorted(sounds.prompt_texts().items()) if len(text.split()) >= 12][:clips]
        texts = [sounds.prompt_texts()[name] for name in names]
        voices["human"] = [sounds.prompt(name) for name in names]
        voices["flite"] = [sounds.said(text) for text in texts]
        voices["festival"] = [sounds.festival(text) for text in texts]
    except BaseException as error:
        print(f"sound: not all voices are here: {error}\n")
    for voice, waves in voices.items():
        _ladders(folder, voice, _joined(waves))
    _no_speech(folder)
    if voices:
        _model_forms(next(iter(voices.values())))
        _cost(folder, _joined(voices["human"]), full=full)


def _joined(waves: Sequence[Wave]) -> Wave:
    pause = np.zeros(round(0.6 * RATE), np.float32)
    wave = np.concatenate([pause, *(part for one in waves for part in (one, pause))])
    louder: Wave = (PEAK * wave / np.abs(wave).max()).astype(np.float32)
    return louder


def _metrics() -> dict[str, Metric]:
    from convoscope.metrics.audio import sound

    return {
        "mos": sound.mos,
        "on phone": sound.mos_telephone,
        "clarity": sound.tone_clarity_rules,
        "breaks": sound.audio_breakage,
        "pitch": sound.assistant_average_pitch_hz,
        "dBFS": sound.assistant_volume_rms,
    }


def _call(folder: Path, wave: Wave) -> Conversation:
    import soundfile

    path = folder / "sound.wav"
    soundfile.write(path, wave, RATE, subtype="PCM_16")
    return _of_file(path, "agent")


def _of_file(path: Path, *channels: str) -> Conversation:
    speakers = (Participant("agent", "assistant"), Participant("caller", "user"))
    recording = AudioFile(tracks=(Track(path=str(path), channels=channels),))
    return Conversation(id="call", participants=speakers, recording=recording)


def _row(folder: Path, name: str, wave: Wave) -> dict[str, float | None]:
    from convoscope.audio.resource import Recordings

    conversation = _call(folder, wave)
    values: dict[str, float | None] = dict.fromkeys(_titles())
    for title, metric in _metrics().items():
        [observation] = metric(conversation, recording=Recordings())
        values[title] = observation.value
        details = observation.details or {}
        for opinion, key in (("BAK", "background"), ("PLC", "packet_loss")):
            values[opinion] = details.get(key, values[opinion])
    cells = ("        ·" if value is None else f"{value:9.2f}" for value in values.values())
    print(f"  {name:<16}{''.join(cells)}")
    return values


def _titles() -> tuple[str, ...]:
    return (*_metrics(), "BAK", "PLC")


def _ladders(folder: Path, voice: str, wave: Wave) -> None:
    print(f"{voice}: {len(wave) / RATE:.0f} s")
    print(f"  {'':<16}{''.join(f'{title:>9}' for title in _titles())}")
    clean = _row(folder, "clean", wave)
    steps = [step for ladder in LADDERS.values() for step in ladder]
    rows = {step.name: _row(folder, step.name, step.damage(wave)) for step in (*steps, *OTHERS)}
    for title, expected in EXPECTED.items():
        _count(title, expected, clean, rows)
    clear = [rows[step.name]["clarity"] or 0.0 for step in WIDER]
    phones = sum(rows[step.name]["on phone"] is not None for step in WIDER)
    worse = sum(one <= (rows["8 kHz"]["clarity"] or 0.0) for one in clear)
    print(f"  8 kHz, badly resampled: {phones} of {len(WIDER)} are telephones, {worse} no clearer than 8 kHz")
    print()


def _count(
    title: str, expected: Expected, clean: dict[str, float | None], rows: dict[str, dict[str, float | None]]
) -> None:
    """How often a scorer moves as it should, and stays where it should; a step without a value is named."""
    right = stayed = steps = still = silent = 0
    for name in expected.ladders:
        for before, after in pairwise([clean[title], *(rows[step.name][title] for step in LADDERS[name])]):
            steps += 1
            silent += before is None or after is None
            right += before is not None and after is not None and expected.sign * (after - before) > 0
    names = [step for name in expected.stays for step in ([one.name for one in LADDERS.get(name, ())] or [name])]
    for name in names:
        before, after = clean[title], rows[name][title]
        still += 1
        silent += before is None or after is None
        stayed += before is not None and after is not None and abs(after - before) <= expected.within
    moves = f"{right} of {steps} adjacent steps in the right order, " if steps else ""
    rest = f"; {silent} without a value" if silent else ""
    print(f"  {title}: {moves}{stayed} of {still} stay within {expected.within:g}{rest}")


def _no_speech(folder: Path) -> None:
    print("what is no speech")
    time = np.arange(20 * RATE) / RATE
    beats = [(1 + np.sin(2 * np.pi * (part + 1) * time)) / 2 for part in range(4)]
    chord = sum(0.1 * np.sin(2 * np.pi * hertz * time) * beats[part] for part, hertz in enumerate((220, 277, 330, 440)))
    noise = 0.1 * np.random.default_rng(0).standard_normal(len(time))
    for name, wave in (("noise", noise), ("music", chord), ("sine", 0.3 * np.sin(2 * np.pi * 440 * time))):
        _row(folder, name, np.asarray(wave, np.float32))
    _row(folder, "silence", np.zeros(20 * RATE, np.float32))
    print("  · is not applicable (too_little_speech, telephone_band), or unmeasured (recording_silent)\n")


def _model_forms(waves: Sequence[Wave]) -> None:
    """The installed form of Distill-MOS against the full one, where that is there."""
    from convoscope.audio import quality

    shared = Path(os.environ.get("CONVOSCOPE_SHARED", Path(__file__).parents[2] / "shared"))
    whole = shared / "data" / "models" / "distillmos.onnx"
    if not whole.is_file():
        print("the full form of Distill-MOS: skipped, it is not there (CONVOSCOPE_SHARED names its folder)\n")
        return
    steps = [Step("clean", lambda wave: wave), *(step for ladder in LADDERS.values() for step in ladder)]
    clips = [step.damage((PEAK * wave / np.abs(wave).max()).astype(np.float32)) for wave in waves for step in steps]

    def scores(hop: int) -> tuple[NDArray[np.float64], float]:
        began = process_time()
        return np.array([quality.mos(clip, hop) for clip in clips]), process_time() - began

    seconds = sum(map(len, clips)) / RATE
    small, took = scores(quality.HOP)
    close, took_close = scores(RATE)
    os.environ[quality.VARIABLE] = str(whole)
    try:
        large, took_large = scores(quality.HOP)
    finally:
        del os.environ[quality.VARIABLE]
    apart, near = np.abs(small - large), np.abs(small - close)
    print(f"Distill-MOS on {len(clips)} clips, {seconds:.0f} s")
    print(f"  int8 against the full form: at most {apart.max():.3f} of 5, mean {apart.mean():.3f}")
    print(f"  windows 3.84 s apart against 1 s: at most {near.max():.3f} of 5, mean {near.mean():.3f}")
    print(f"  CPU seconds per second: {took / seconds:.3f}; full form {took_large / seconds:.3f}; ", end="")
    print(f"windows 1 s apart {took_close / seconds:.3f}\n")


def _written(path: Path, wave: Wave, seconds: float) -> Path:
    """A call of two sides that take turns, as long as wanted, written piece by piece."""
    import soundfile

    quiet = np.zeros_like(wave)
    pair = (np.stack((wave, quiet), axis=1), np.stack((quiet, wave), axis=1))
    with soundfile.SoundFile(path, "w", RATE, 2, "PCM_16") as file:
        for number in range(math.ceil(seconds * RATE / len(wave))):
            file.write(pair[number % 2])
    return path


def _cost(folder: Path, wave: Wave, *, full: bool) -> None:
    """CPU time and memory of all metrics of sound, each length in a process of its own."""
    # Three hours of mos take as long as eighteen times ten minutes, and hold one turn at a time.
    lengths = {_MINUTES: ("", "mos"), _HOURS: ("mos",)} if full else {60: ("", "mos")}
    for seconds, left_out in lengths.items():
        path = _written(folder / f"{seconds}.wav", wave, seconds)
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        for only in left_out:
            title = f"without {only}" if only else "all metrics"
            command = [sys.executable, "-m", "benchmarks.sound", str(path), only]
            ended = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
            if ended.returncode:
                print(f"  {seconds} s: failed: {ended.stderr[-300:]}")
                continue
            cpu, megabytes, base = map(float, ended.stdout.split())
            print(
                f"a call of {seconds / 60:.0f} minutes, both sides, {title}: {cpu:.1f} s of CPU time, "
                f"{cpu / seconds:.4f} of its length (aim 0.2); {megabytes:.0f} MB, of which {base:.0f} MB are imports"
            )
        path.unlink()
    print()


def _measured(path: str, left_out: str) -> None:
    """In a process of its own: every metric of sound on one file."""
    import onnxruntime  # noqa: F401  what is imported is no memory of the call

    from convoscope.audio.resource import Recordings
    from convoscope.metrics.audio import sound

    base = _peak_megabytes()
    chosen: Iterator[Any] = (one for one in vars(sound).values() if isinstance(one, Metric))
    conversation, recording, began = _of_file(Path(path), "agent", "caller"), Recordings(), process_time()
    for metric in chosen:
        if not left_out or metric.name != f"audio.{left_out}":
            metric(conversation, recording=recording)
    print(process_time() - began, _peak_megabytes(), base)


def _peak_megabytes() -> float:
    """Of this process alone: what `getrusage` has begins with that of its parent."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))) / 1024


if __name__ == "__main__":
    _measured(sys.argv[1], sys.argv[2])
