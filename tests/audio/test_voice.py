"""Pitch against Praat, loudness against pyloudnorm and against sums by hand, breakage against breaks put there."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from support import sounds

np = sounds.np

from convoscope.audio.decode import read_header  # noqa: E402
from convoscope.audio.files import FileTrack  # noqa: E402
from convoscope.audio.levels import events, gaps, levels_of  # noqa: E402
from convoscope.audio.loudness import LoudnessMeter  # noqa: E402
from convoscope.audio.pitch import framed  # noqa: E402
from convoscope.audio.speakers import SpeakerSound, common_to, without  # noqa: E402
from convoscope.audio.voice import noise_power, speech_power  # noqa: E402
from convoscope.resources.sound import Span  # noqa: E402


def track_of(tmp_path: Path, wave: Any, rate: int = sounds.RATE, **options: Any) -> FileTrack:
    file = sounds.write(tmp_path / "c.wav", wave, rate=rate, **options)
    return FileTrack(file, read_header(file), 0)


def gated(wave: Any, decibels: float) -> Any:
    """What a noise gate leaves: of 40 ms and more whose mean is below a level, zeros."""
    soft = np.convolve(np.abs(wave), np.ones(160) / 160, "same") < 10 ** (decibels / 20)
    edges = np.diff(np.concatenate(([0], soft.astype(int), [0])))
    result = wave.copy()
    for start, end in zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), strict=True):
        if end - start >= 640:
            result[start:end] = 0
    return result


def coded(*options: str, kind: str) -> Any:
    def through(wave: Any) -> Any:
        if sounds.shutil.which("ffmpeg") is None:
            pytest.skip("ffmpeg is not installed: apt-get install ffmpeg")
        raw = ["-f", "f32le", "-ar", "16000", "-ac", "1"]
        quiet = ["ffmpeg", "-v", "error"]
        to = [*quiet, *raw, "-i", "-", *options, "-f", kind, "-"]
        data = sounds.subprocess.run(
            to, input=wave.astype(np.float32).tobytes(), capture_output=True, check=True
        ).stdout
        rate = ["-ar", "8000"] if kind == "mulaw" else []
        back = [*quiet, "-f", kind, *rate, "-i", "-", *raw, "-"]
        return np.frombuffer(
            sounds.subprocess.run(back, input=data, capture_output=True, check=True).stdout, np.float32
        )

    return through


def hissing(decibels: float) -> Any:
    return lambda wave: wave + sounds.noise(len(wave) / sounds.RATE, 10 ** (decibels / 20))[: len(wave)]


WORSE: dict[str, Any] = {
    "clean": lambda wave: wave,
    "noise −60 dBFS": hissing(-60),
    "noise −55 dBFS": hissing(-55),
    "offset": lambda wave: wave + 0.002,
    "MP3": coded("-b:a", "64k", kind="mp3"),
    "Opus": coded("-c:a", "libopus", "-b:a", "24k", kind="ogg"),
    "GSM": coded("-ar", "8000", "-c:a", "libgsm", kind="gsm"),
    "µ-law": coded("-ar", "8000", kind="mulaw"),
}
"""What happens to a sound behind the break in it."""


class TestPitch:
    @pytest.mark.parametrize("hertz", [75.0, 110.0, 190.0, 333.0])
    def test_of_a_tone_with_overtones(self, hertz: float) -> None:
        wave = sum(sounds.tone(hertz * part, 2, 0.3 / part) for part in (1, 2, 3, 4))
        assert np.median(framed(wave).pitches) == pytest.approx(hertz, rel=0.005)

    def test_of_noise_there_is_none(self) -> None:
        assert len(framed(sounds.noise(2)).pitches) < 0.02 * 200

    @pytest.mark.parametrize("voice", ["human", "slt", "rms"])
    def test_of_speech_as_praat_hears_it(self, voice: str) -> None:
        parselmouth = pytest.importorskip("parselmouth", reason="praat-parselmouth is not installed")
        text = "Your appointment is on Monday at ten in the morning, in the main building."
        wave = sounds.prompt("vm-rec-temp") if voice == "human" else sounds.said(text, voice)
        praat = parselmouth.Sound(wave.astype(np.float64), sounds.RATE)
        pitches = praat.to_pitch(time_step=0.01, pitch_floor=60, pitch_ceiling=400).selected_array["frequency"]
        # Praat looks for a smooth path, and drops more of the edges of voiced stretches: 5 % for the median.
        assert np.median(framed(wave).pitches) == pytest.approx(np.median(pitches[pitches > 0]), rel=0.05)

    @pytest.mark.parametrize("voice", ["human", "slt", "rms", "awb"])
    def test_of_a_voice_without_its_fundamental(self, voice: str) -> None:
        parselmouth = pytest.importorskip("parselmouth", reason="praat-parselmouth is not installed")
        names = ("vm-rec-temp", "vm-tempgreetactive", "privacy-incorrect", "vm-enter-num-to-call")
        texts = [sounds.prompt_texts()[name] for name in names]
        pieces = [sounds.said(text, voice) for text in texts] if voice != "human" else map(sounds.prompt, names)
        wave = np.concatenate(list(pieces))
        hertz = np.fft.rfftfreq(len(wave), 1 / sounds.RATE)
        narrow = np.fft.irfft(np.where((hertz > 300) & (hertz < 3400), np.fft.rfft(wave), 0), len(wave))
        praat = parselmouth.Sound(narrow, sounds.RATE).to_pitch_ac(time_step=0.01, pitch_floor=60, pitch_ceiling=400)
        pitches = praat.selected_array["frequency"]
        mean = framed(narrow.astype(np.float32)).pitches.mean()
        assert mean == pytest.approx(pitches[pitches > 0].mean(), rel=0.08)


class TestLoudness:
    def meter(self, wave: Any, rate: int) -> float | None:
        meter = LoudnessMeter(rate)
        for start in range(0, len(wave), 7001):  # in pieces, as a file comes
            meter.add(wave[start : start + 7001].astype(np.float32))
        return meter.integrated()

    def test_of_a_tone_that_the_standard_names(self) -> None:
        # BS.1770-4: a sine of 997 Hz at full scale in one channel is −3.01 LKFS.
        assert self.meter(sounds.tone(997, 5, 1.0, rate=48000), 48000) == pytest.approx(-3.01, abs=0.02)

    def test_of_silence_there_is_none(self) -> None:
        assert self.meter(sounds.silence(5), 16000) is None

    @pytest.mark.parametrize("rate", [16000, 48000])
    def test_of_speech_as_pyloudnorm_has_it(self, rate: int) -> None:
        pyloudnorm = pytest.importorskip("pyloudnorm", reason="pyloudnorm is not installed")
        import soxr

        speech = np.concatenate([sounds.prompt("vm-rec-temp"), sounds.silence(4), sounds.prompt("queue-thankyou")])
        wave = soxr.resample(speech, sounds.RATE, rate)
        # Of its filters, these are the standard's at any rate; its own differ by 0.04 dB at 48 kHz, and 0.13 at 16 kHz.
        meter = pyloudnorm.Meter(rate, filter_class="DeMan")
        assert self.meter(wave, rate) == pytest.approx(meter.integrated_loudness(wave.astype(np.float64)), abs=0.001)


class TestLevels:
    def test_volume_and_noise_by_hand(self, tmp_path: Path) -> None:
        # Two seconds of a sine with a peak of 0.2, in six of noise with an RMS of 0.002.
        wave = sounds.noise(6, 0.002)
        wave[32_000:64_000] += sounds.tone(500, 2, 0.2)
        track = track_of(tmp_path, wave)
        spans = [Span(2.0, 4.0)]
        around = [Span(0.0, 0.5), *spans, Span(5.5, 6.0)]  # pauses from 0.7 to 1.8, and from 4.2 to 5.3
        # A sine has an RMS of its peak ÷ √2: 0.1414.
        assert math.sqrt(speech_power(levels_of(track), spans) or 0) == pytest.approx(0.1414, rel=0.01)
        # Of 320 samples the power has a standard deviation of √(2 ÷ 320) = 7.9 %: nine of ten exceed 1 − 1.28 × 7.9 %
        # = 89.9 %, the root of which is 0.948.
        assert math.sqrt(noise_power(levels_of(track), around) or 0) == pytest.approx(0.948 * 0.002, rel=0.03)
        assert noise_power(levels_of(track), spans) is None  # what is before and after is no pause
        assert noise_power(levels_of(track), [Span(0.1, 5.9)]) is None

    def speech(self) -> Any:
        wave = sounds.prompt("vm-rec-temp")
        return (0.5 * wave / np.abs(wave).max()).astype(np.float32)

    def broken(self, tmp_path: Path, wave: Any, worse: Any = np.copy) -> dict[str, list[tuple[float, float]]]:
        track = track_of(tmp_path, worse(np.concatenate([sounds.silence(1), wave, sounds.silence(1)])))
        sound, levels = SpeakerSound(track, track.speech(), ""), levels_of(track)
        found: dict[str, list[tuple[float, float]]] = {}
        for one in events([*gaps(levels, sound.speech), *levels.clicks, *levels.clips]):
            found.setdefault(one.kind, []).append((one.start - 1, one.end - 1))
        return found

    def test_clean_speech_has_none(self, tmp_path: Path) -> None:
        assert self.broken(tmp_path, self.speech()) == {}
        for voice in ("slt", "rms", "awb"):
            spoken = sounds.said("The bus to the harbour leaves every ten minutes until midnight.", voice)
            assert self.broken(tmp_path, 0.5 * spoken / np.abs(spoken).max()) == {}

    def test_a_dropout(self, tmp_path: Path) -> None:
        wave = self.speech()
        power = np.convolve(wave**2, np.ones(1600), "same")
        at = int(power.argmax())  # where it is loudest
        wave[at : at + 1600] = 0
        [(start, end)] = self.broken(tmp_path, wave)["dropout"]
        assert (start, end) == (pytest.approx(at / 16000, abs=0.006), pytest.approx(at / 16000 + 0.1, abs=0.006))

    @pytest.mark.parametrize("milliseconds", [40, 300, 600, 900, 1500])
    @pytest.mark.parametrize("worse", ["clean", "noise −60 dBFS", "noise −55 dBFS", "offset"])
    def test_dropouts_of_any_length(self, tmp_path: Path, milliseconds: int, worse: str) -> None:
        wave = self.speech()
        power = np.sqrt(np.convolve(wave**2, np.ones(320) / 320, "same"))
        length = milliseconds * 16
        # Where it is loud before and after; the sound of the middle is lost.
        both = np.minimum(power[16_000 : -length - 16_000], power[16_000 + length : -16_000])
        at = 16_000 + int(both.argmax())
        wave[at : at + length] = 0
        found = self.broken(tmp_path, wave, WORSE[worse])
        [(start, end)] = found["dropout"]
        assert start == pytest.approx(at / 16_000, abs=0.01)
        assert end == pytest.approx((at + length) / 16_000, abs=0.01)

    @pytest.mark.parametrize(
        "worse", ["clean", "noise −60 dBFS", "noise −55 dBFS", "offset", "MP3", "Opus", "GSM", "µ-law"]
    )
    @pytest.mark.parametrize("voice", ["human", "slt", "rms", "awb"])
    def test_pauses_of_speech_are_no_dropouts(self, tmp_path: Path, voice: str, worse: str) -> None:
        names = ("vm-rec-temp", "vm-tempgreetactive", "privacy-incorrect", "vm-enter-num-to-call", "queue-thankyou")
        pieces = [
            sounds.prompt(one) if voice == "human" else sounds.said(sounds.prompt_texts()[one], voice) for one in names
        ]
        wave = np.concatenate([part for one in pieces for part in (one, sounds.silence(0.5))])
        found = self.broken(tmp_path, 0.5 * wave / np.abs(wave).max(), WORSE[worse])
        assert "dropout" not in found

    @pytest.mark.parametrize("decibels", [-55, -50, -45])
    def test_pauses_that_a_noise_gate_made_zeros_are_no_dropouts(self, tmp_path: Path, decibels: int) -> None:
        for wave in (self.speech(), sounds.said("The bus to the harbour leaves every ten minutes until midnight.")):
            assert self.broken(tmp_path, gated(wave, decibels)) == {}

    def test_words_that_are_joined_by_zeros_have_no_dropouts(self, tmp_path: Path) -> None:
        pieces = []
        for name in ("vm-youhave", "digits/4", "vm-messages", "digits/9", "vm-password"):
            word = sounds.prompt(name)
            loud = np.flatnonzero(np.abs(word) > 0.01)  # trimmed at −40 dBFS
            pieces += [word[loud[0] : loud[-1] + 1], sounds.silence(0.12)]
        assert self.broken(tmp_path, np.concatenate(pieces)) == {}

    def test_samples_of_8_bits_have_no_dropouts(self, tmp_path: Path) -> None:
        # Everything below half a step of 1 ÷ 128 is zero.
        assert self.broken(tmp_path, np.round(self.speech() * 127) / 127) == {}

    def test_a_dropout_behind_a_noise_gate(self, tmp_path: Path) -> None:
        wave = gated(self.speech(), -50)
        at = int(np.convolve(wave**2, np.ones(1600), "same").argmax())
        wave[at : at + 1600] = 0
        [(start, _)] = self.broken(tmp_path, wave)["dropout"]
        assert start == pytest.approx(at / 16000, abs=0.006)

    def test_a_click(self, tmp_path: Path) -> None:
        wave = self.speech()
        wave[24_000] = 0.95
        [(start, _)] = self.broken(tmp_path, wave)["click"]
        assert start == pytest.approx(1.5, abs=0.001)

    @pytest.mark.parametrize("level", [1.0, 0.3])
    def test_a_click_is_loud_for_its_voice(self, tmp_path: Path, level: float) -> None:
        # Clicks of 90 % of the peak of the voice, in its softest sounds: their steps are 0.45 and 0.14.
        wave = self.speech()
        level_of = np.convolve(np.abs(wave), np.ones(160) / 160, "same")
        soft = [at + int(level_of[at : at + 8_000].argmin()) for at in range(8_000, len(wave) - 16_000, 16_000)]
        for at in soft:
            wave[at] += 0.45
        found = self.broken(tmp_path, level * wave)
        assert [start for start, _ in found["click"]] == pytest.approx([at / 16_000 for at in soft], abs=0.001)
        assert found.keys() == {"click"}

    @pytest.mark.parametrize("decibels", [-55, -50])
    def test_gaps_that_comfort_noise_fills_are_dropouts(self, tmp_path: Path, decibels: int) -> None:
        wave = self.speech()
        power = np.convolve(wave**2, np.ones(1600), "same")
        at = int(power.argmax())
        wave[at : at + 960] = sounds.noise(0.06, 10 ** (decibels / 20))
        [(start, end)] = self.broken(tmp_path, wave)["dropout"]
        assert (start, end) == (pytest.approx(at / 16_000, abs=0.006), pytest.approx(at / 16_000 + 0.06, abs=0.006))

    def test_clipping_is_seen_at_any_level(self, tmp_path: Path) -> None:
        wave = np.clip(4 * self.speech(), -0.5, 0.5)
        for level in (1.0, 0.2):
            found = self.broken(tmp_path, level * wave)
            assert "dropout" not in found
            assert len(found["clipping"]) > 10

    def test_clipping_is_seen_beside_a_louder_sound(self, tmp_path: Path) -> None:
        wave = np.clip(4 * self.speech(), -0.5, 0.5)
        alone = self.broken(tmp_path, wave)["clipping"]
        wave[:4800] += sounds.tone(1000, 0.3, 0.45)
        assert len(self.broken(tmp_path, wave)["clipping"]) == pytest.approx(len(alone), rel=0.1)

    def test_loud_noise_does_not_click(self, tmp_path: Path) -> None:
        # Neighbours differ by more than 0.5 thousands of times, and none of them stands out.
        assert self.broken(tmp_path, np.clip(sounds.noise(5, 0.3), -0.999, 0.999)).keys() <= {"clipping"}

    def test_codes_of_8_bits_are_not_flat_tops(self, tmp_path: Path) -> None:
        file = sounds.write(tmp_path / "u.wav", sounds.tone(100, 3, 0.6, rate=8000), rate=8000, subtype="ULAW")
        assert levels_of(FileTrack(file, read_header(file), 0)).clips == ()

    def test_breaks_next_to_each_other_are_one(self, tmp_path: Path) -> None:
        wave = self.speech()
        wave[24_000] = wave[24_300] = 0.95  # 19 ms apart
        wave[40_000] = 0.95
        assert len(self.broken(tmp_path, wave)["click"]) == 2


class TestSpans:
    def test_common_to(self) -> None:
        assert common_to([Span(0, 2), Span(3, 5)], [Span(1, 4)]) == [Span(1, 2), Span(3, 4)]
        assert common_to([Span(0, 2)], [Span(1.95, 3)]) == []  # a scrap

    def test_without(self) -> None:
        assert without([Span(0, 5)], [Span(1, 2), Span(4, 9)]) == [Span(0, 1), Span(2, 4)]
        assert without([Span(0, 5)], [Span(0, 5)]) == []
