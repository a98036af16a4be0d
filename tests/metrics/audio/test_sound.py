"""Each metric of sound moves for what it measures and stays for what it does not; what is no speech has a reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import (
    AudioFile,
    Clock,
    Conversation,
    Participant,
    Segment,
    Source,
    Text,
    Track,
    Utterance,
)
from convoscope.metrics.audio import sound as metrics
from convoscope.metrics.declaration import Metric
from convoscope.scores.observation import MEASURED, NOT_APPLICABLE, UNMEASURED, Observation
from support import sounds

np = sounds.np

from convoscope.audio.resource import Recordings  # noqa: E402

ALL: tuple[Any, ...] = (
    metrics.mos,
    metrics.tone_clarity_rules,
    metrics.audio_breakage,
    metrics.assistant_average_pitch_hz,
    metrics.assistant_volume_rms,
)
PROMPTS = ("vm-rec-temp", "vm-tempgreetactive", "privacy-incorrect")


@pytest.fixture(scope="module")
def speech() -> Any:
    parts = [part for name in PROMPTS for part in (sounds.silence(0.7), sounds.prompt(name))]
    wave = np.concatenate([*parts, sounds.silence(0.7)])
    return (0.5 * wave / np.abs(wave).max()).astype(np.float32)


@pytest.fixture(scope="module")
def clean(speech: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """What each metric says of the speech as it is."""
    return values(of_agent(tmp_path_factory.mktemp("clean"), speech))


@pytest.fixture(autouse=True)
def no_second_opinion(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has tests of its own, and takes longer than the score: tests/audio/test_second_opinion.py."""
    monkeypatch.setattr("convoscope.audio.quality.second_opinion", lambda: None)


def call(path: Path, *labels: str, **facts: Any) -> Conversation:
    speakers = (Participant("bot", "assistant"), Participant("caller", "user"))
    recording = AudioFile(tracks=(Track(path=str(path), channels=labels),))
    return Conversation(id="c", participants=speakers, recording=recording, **facts)


def observe(metric: Metric, conversation: Conversation) -> Observation:
    [observation] = metric(conversation, recording=Recordings())
    return observation


def of_agent(folder: Path, wave: Any, **options: Any) -> Conversation:
    rate = options.pop("rate", sounds.RATE)
    return call(sounds.write(folder / "c.wav", wave, rate=rate, **options), "bot")


def value(metric: Metric, folder: Path, wave: Any, **options: Any) -> float:
    observation = observe(metric, of_agent(folder, wave, **options))
    assert observation.value is not None, (observation.reason, observation.detail)
    return observation.value


def values(conversation: Conversation) -> dict[str, float]:
    """What all metrics say of a call, which is read once."""
    recordings = Recordings()
    found = {one.key: observation for one in ALL for observation in one(conversation, recording=recordings)}
    assert all(one.value is not None for one in found.values()), found
    return {key: one.value for key, one in found.items() if one.value is not None}


def banded(wave: Any, low: float, high: float) -> Any:
    """What is between two frequencies."""
    hertz = np.fft.rfftfreq(len(wave), 1 / sounds.RATE)
    return np.fft.irfft(np.where((hertz >= low) & (hertz < high), np.fft.rfft(wave), 0), len(wave)).astype(np.float32)


EDGES = {"telephone": 3400, "muffled": 900}


class TestMos:
    def test_worse_sound_scores_less(self, tmp_path: Path, speech: Any, clean: dict[str, float]) -> None:
        dropped = speech.copy()
        for at in range(8000, len(speech) - 1600, 6400):  # 40 ms of every 400
            dropped[at : at + 640] = 0
        steps = [sounds.with_noise(speech, 20), sounds.with_noise(speech, 5)]
        scores = [clean["audio.mos"], *(value(metrics.mos, tmp_path, one) for one in steps)]
        assert scores == sorted(scores, reverse=True)
        assert scores[0] > 4  # a studio recording is worth 7 points of 10 and more, which is 3.8
        assert value(metrics.mos, tmp_path, dropped) < scores[0] - 0.5
        assert value(metrics.mos, tmp_path, np.clip(8 * speech, -0.5, 0.5)) < scores[0] - 0.5

    def test_loudness_and_the_other_side_do_not_matter(
        self, tmp_path: Path, speech: Any, clean: dict[str, float]
    ) -> None:
        mos = clean["audio.mos"]
        assert value(metrics.mos, tmp_path, 0.05 * speech) == pytest.approx(mos, abs=0.1)
        # The caller speaks later, in noise.
        later = sounds.noise(len(speech) / sounds.RATE, 0.02) + np.roll(speech, len(speech) // 2)
        noisy_caller = sounds.write(tmp_path / "d.wav", np.r_[speech, 0 * speech], np.r_[0 * speech, later])
        assert observe(metrics.mos, call(noisy_caller, "bot", "caller")).value == pytest.approx(mos, abs=1e-6)

    def test_the_worst_moment_is_named(self, tmp_path: Path, speech: Any) -> None:
        # The second of three prompts has noise: from 7 to 9.5 s of the track, by the lengths of the prompts.
        lengths = [len(sounds.prompt(name)) / sounds.RATE for name in PROMPTS]
        begin = 0.7 + lengths[0] + 0.7
        first, last = round(begin * sounds.RATE), round((begin + lengths[1]) * sounds.RATE)
        worse = speech.copy()
        worse[first:last] = sounds.with_noise(speech[first:last], 5)
        details = observe(metrics.mos, of_agent(tmp_path, worse)).details or {}
        worst = details["worst"]
        assert begin - 0.3 < worst["start"] < worst["end"] < begin + lengths[1] + 0.3
        assert worst["value"] == min(one["value"] for one in details["moments"])
        assert {one["kind"] for one in details["moments"]} == {"quality"}

    def test_a_telephone_has_no_mark(self, tmp_path: Path, speech: Any) -> None:
        import soxr

        narrow = soxr.resample(speech, sounds.RATE, 8000)
        for wave, rate in ((narrow, 8000), (soxr.resample(narrow, 8000, 48000), 48000)):  # saved with a higher rate
            conversation = of_agent(tmp_path, wave, rate=rate)
            observation = observe(metrics.mos, conversation)
            assert (observation.status, observation.reason) == (NOT_APPLICABLE, "telephone_band")
            assert 3 < (observe(metrics.mos_telephone, conversation).value or 0) < 4.5
        assert observe(metrics.mos_telephone, of_agent(tmp_path, speech)).reason == "no_telephone_band"
        assert metrics.mos_telephone.ten is None

    @pytest.mark.parametrize("way", ["linear", "held", "hissing"])
    def test_a_telephone_that_was_resampled_badly_is_one(self, tmp_path: Path, speech: Any, way: str) -> None:
        """What is above 4 kHz is a mirror image of the voice, or noise, and none of it is the voice's."""
        narrow = banded(speech, 0, 3700)[::2]
        times = np.arange(2 * len(narrow)) / 2
        wide = {
            "linear": np.interp(times, np.arange(len(narrow)), narrow),
            "held": np.repeat(narrow, 2),
            "hissing": banded(speech, 0, 3700) + sounds.noise(len(speech) / sounds.RATE, 0.002)[: len(speech)],
        }[way].astype(np.float32)
        assert observe(metrics.mos, of_agent(tmp_path, wide)).reason == "telephone_band"
        assert 2 < value(metrics.mos_telephone, tmp_path, wide) < 4.5
        clean = value(metrics.tone_clarity_rules, tmp_path, banded(speech, 0, 3700))
        assert value(metrics.tone_clarity_rules, tmp_path, wide) <= clean

    def test_the_user(self, tmp_path: Path, speech: Any) -> None:
        conversation = call(sounds.write(tmp_path / "c.wav", speech), "caller")
        assert (observe(metrics.mos_caller, conversation).value or 0) > 4
        assert observe(metrics.mos, conversation).reason == "no_track_of_speaker"


class TestOthers:
    def test_clarity_falls_with_noise_and_clipping(self, tmp_path: Path, speech: Any, clean: dict[str, float]) -> None:
        clarity = clean["audio.tone_clarity@rules"]
        assert value(metrics.tone_clarity_rules, tmp_path, sounds.with_noise(speech, 15)) < clarity - 1
        assert value(metrics.tone_clarity_rules, tmp_path, np.clip(8 * speech, -0.5, 0.5)) < clarity - 2
        assert value(metrics.tone_clarity_rules, tmp_path, 0.1 * speech) == pytest.approx(clarity, abs=0.1)

    def test_a_voice_with_less_of_its_band_is_less_clear(self, tmp_path: Path, speech: Any) -> None:
        bands = [(0, 8000), (0, 4000), (300, 3400), (0, 2000), (0, 900)]
        scores = [value(metrics.tone_clarity_rules, tmp_path, banded(speech, *band)) for band in bands]
        assert scores == sorted(set(scores), reverse=True)
        assert scores[-1] < 7 < scores[2]  # a telephone passes, a muffled voice does not
        assert value(metrics.tone_clarity_rules, tmp_path, banded(speech, 1000, 8000)) < scores[0] - 1

    def test_a_muffled_voice_is_no_telephone(self, tmp_path: Path, speech: Any) -> None:
        for name in EDGES:
            (tmp_path / name).mkdir()
        telephone, muffled = (of_agent(tmp_path / name, banded(speech, 0, edge)) for name, edge in EDGES.items())
        assert observe(metrics.mos, telephone).reason == "telephone_band"
        assert observe(metrics.mos_telephone, muffled).reason == "no_telephone_band"
        assert (observe(metrics.mos, muffled).value or 5) < 3.8  # 7 points

    def test_speech_backwards_is_not_clearer(self, tmp_path: Path, speech: Any) -> None:
        for wave in (speech, sounds.with_noise(speech, 20)):
            clear = value(metrics.tone_clarity_rules, tmp_path, wave)
            assert value(metrics.tone_clarity_rules, tmp_path, wave[::-1].copy()) <= clear + 0.005

    def test_noise_that_is_known(self, tmp_path: Path, speech: Any) -> None:
        from convoscope.audio.activity import speech_probabilities, speech_spans

        spans = speech_spans(speech_probabilities([speech]), len(speech) / sounds.RATE)
        inside = np.concatenate([speech[round(s * sounds.RATE) : round(e * sounds.RATE)] for s, e in spans])
        level = float(np.sqrt(np.mean(inside.astype(np.float64) ** 2))) / 10  # 20 dB below the speech
        noisy = speech + sounds.noise(len(speech) / sounds.RATE, level)[: len(speech)]
        details = observe(metrics.tone_clarity_rules, of_agent(tmp_path, noisy)).details or {}
        assert details["decibels_above_noise"] == pytest.approx(20, abs=1)

    def test_music_on_hold_is_no_noise_of_the_speech(self, tmp_path: Path, speech: Any) -> None:
        """12 s of a loud chord before, between and after: the clarity of the speech is what it is without."""
        noisy = speech + sounds.noise(len(speech) / sounds.RATE, 0.002)[: len(speech)]
        chord = sum(sounds.tone(hertz, 10, 0.15) for hertz in (220, 277, 330))
        quiet = sounds.noise(1.5, 0.002)
        plain = np.concatenate([noisy, quiet, quiet, noisy])
        held = np.concatenate([chord, quiet, noisy, quiet, chord, quiet, noisy, quiet, chord])
        for wave in (plain, held):
            details = observe(metrics.tone_clarity_rules, of_agent(tmp_path, wave.astype(np.float32))).details or {}
            if wave is plain:
                expected = details["decibels_above_noise"]
        assert details["decibels_above_noise"] == pytest.approx(expected, abs=1)

    def test_noise_has_a_figure_only_where_it_was_measured(self, tmp_path: Path, speech: Any) -> None:
        silent = observe(metrics.tone_clarity_rules, of_agent(tmp_path, speech)).details or {}
        zeros = observe(metrics.tone_clarity_rules, of_agent(tmp_path, np.where(abs(speech) < 0.01, 0, speech)))
        assert "decibels_above_noise" not in (zeros.details or {})
        assert (zeros.details or {})["points"]["noise"] == 10
        assert silent["points"]["noise"] == 10

    def test_speech_that_is_not_above_the_noise_has_no_value(self, tmp_path: Path) -> None:
        """Noise in pauses only, with an RMS of 0.2, louder than the speech: −100 dB is no figure."""
        prompts = [0.1 * sounds.prompt(name) for name in PROMPTS]
        loud = sounds.noise(1.5, 0.2)
        wave = np.concatenate([part for prompt in prompts for part in (prompt, loud)][:-1]).astype(np.float32)
        conversation = of_agent(tmp_path, wave)
        observation = observe(metrics.tone_clarity_rules, conversation)
        assert (observation.value, observation.reason) == (None, "speech_not_above_noise")

    def test_volume(self, tmp_path: Path, speech: Any) -> None:
        loud, soft = (value(metrics.assistant_volume_rms, tmp_path, speech * gain) for gain in (1.0, 0.1))
        assert loud - soft == pytest.approx(20, abs=0.2)  # a tenth is 20 dB less

    def test_pitch_stays_where_quality_falls(self, tmp_path: Path, speech: Any, clean: dict[str, float]) -> None:
        pitch = clean["audio.assistant_average_pitch_hz"]
        for worse in (sounds.with_noise(speech, 10), np.clip(8 * speech, -0.5, 0.5), 0.1 * speech):
            assert value(metrics.assistant_average_pitch_hz, tmp_path, worse) == pytest.approx(pitch, rel=0.05)

    def test_breakage_has_its_moments(self, tmp_path: Path, speech: Any) -> None:
        broken = speech.copy()
        at = int(np.convolve(speech**2, np.ones(1600), "same").argmax())
        broken[at : at + 1600] = 0
        observation = observe(metrics.audio_breakage, of_agent(tmp_path, broken))
        details = observation.details or {}
        [moment] = details["moments"]
        assert (moment["kind"], moment["start"]) == ("dropout", pytest.approx(at / sounds.RATE, abs=0.006))
        # One event in so many minutes of speech.
        assert observation.value == pytest.approx(60 / details["seconds_of_speech"], rel=0.01)
        assert value(metrics.audio_breakage, tmp_path, speech) == 0

    def test_breaks_that_are_hidden_are_not_counted(self, tmp_path: Path, speech: Any) -> None:
        noisy = of_agent(tmp_path, sounds.with_noise(speech, 15))
        assert observe(metrics.audio_breakage, noisy).reason == "noise_hides_breaks"
        opus = call(sounds.write(tmp_path / "c.opus", speech, format="OGG", subtype="OPUS"), "bot")
        assert observe(metrics.audio_breakage, opus).reason == "codec_hides_breaks"
        assert (observe(metrics.mos, opus).value or 0) > 3

    @pytest.mark.parametrize("offset", [0.01, 0.3, -0.3])
    def test_a_constant_is_no_sound(self, tmp_path: Path, speech: Any, clean: dict[str, float], offset: float) -> None:
        assert values(of_agent(tmp_path, speech + offset)) == pytest.approx(clean, rel=0.02)

    def test_gsm_in_a_wav_file_is_read_from_any_moment_on(self, tmp_path: Path, speech: Any) -> None:
        import soxr

        narrow = soxr.resample(speech, sounds.RATE, 8000)
        file = sounds.write(tmp_path / "c.wav", narrow, rate=8000, subtype="GSM610")
        timeline = (Utterance(seq=0, speaker="bot", segments=(Segment(0.0, len(narrow) / 8000),)),)
        conversation = call(file, timeline=timeline, clocks=(Clock(id="audio", kind="audio"),))
        assert (observe(metrics.mos_telephone, conversation).value or 0) > 2.5


class TestWhatIsNoSpeech:
    @pytest.mark.parametrize("metric", ALL, ids=lambda one: one.key)
    @pytest.mark.parametrize("kind", ["noise", "sine", "chord"])
    def test_it_has_no_score(self, tmp_path: Path, metric: Metric, kind: str) -> None:
        chord = sum(sounds.tone(hertz, 8, 0.1) for hertz in (220, 277, 330))
        wave = {"noise": sounds.noise(8), "sine": sounds.tone(300, 8), "chord": chord}[kind]
        observation = observe(metric, of_agent(tmp_path, wave))
        assert (observation.status, observation.reason) == (NOT_APPLICABLE, "too_little_speech")

    def test_silence(self, tmp_path: Path) -> None:
        observation = observe(metrics.mos, of_agent(tmp_path, sounds.silence(8)))
        assert (observation.status, observation.reason) == (UNMEASURED, "recording_silent")

    def test_speech_backwards_is_not_better(self, tmp_path: Path, speech: Any, clean: dict[str, float]) -> None:
        assert value(metrics.mos, tmp_path, speech[::-1].copy()) < clean["audio.mos"]


class TestOneChannel:
    def lines(self, speech: Any) -> tuple[Any, list[tuple[str, float, float]]]:
        """The agent's clean prompts, and between them noisy ones of the caller."""
        caller = sounds.with_noise(sounds.prompt("queue-thankyou"), 5)
        agent = [sounds.prompt(name) for name in PROMPTS]
        lines = [("bot", agent[0]), ("caller", caller), ("bot", agent[1]), ("caller", caller), ("bot", agent[2])]
        parts, times, at = [], [], 0.5
        for who, wave in lines:
            parts += [sounds.silence(0.5), wave]
            times.append((who, at, at + len(wave) / sounds.RATE))
            at += len(wave) / sounds.RATE + 0.5
        return np.concatenate(parts), times

    def test_it_is_cut_by_the_times_of_the_log(self, tmp_path: Path, speech: Any) -> None:
        wave, times = self.lines(speech)
        file = sounds.write(tmp_path / "c.wav", wave)
        timeline = tuple(
            Utterance(seq=seq, speaker=who, intended=Text("x"), segments=(Segment(start, end),))
            for seq, (who, start, end) in enumerate(times)
        )
        conversation = call(file, timeline=timeline, clocks=(Clock(id="audio", kind="audio"),))
        observation = observe(metrics.mos, conversation)
        assert (observation.value or 0) > 4
        assert (observation.details or {})["basis"] == "segments"
        assert (
            observe(metrics.mos_caller, conversation).reason == "too_little_speech"
        )  # 1.6 s twice; voice activity: less
        # The loudness of the channel is that of both, and not the agent's.
        volume = observe(metrics.assistant_volume_rms, conversation).details or {}
        assert "rms" in volume
        assert "lufs" not in volume

    def test_without_times_the_speakers_are_unknown(self, tmp_path: Path, speech: Any) -> None:
        wave, _ = self.lines(speech)
        observation = observe(metrics.mos, call(sounds.write(tmp_path / "c.wav", wave)))
        assert (observation.status, observation.reason) == (UNMEASURED, "speakers_unknown")

    def test_the_timeline_of_an_item_cuts_it(self, tmp_path: Path, speech: Any) -> None:
        wave, times = self.lines(speech)
        names = {"bot": "agent", "caller": "user"}
        records = [{"speaker": names[who], "start": start, "end": end} for who, start, end in times]
        file = sounds.write(tmp_path / "c.wav", wave)
        recording = AudioFile(tracks=(Track(path=str(file)),), extras={"timeline": records})
        speakers = (Participant("bot", "assistant"), Participant("caller", "user"))
        source = Source(format="standard-data")
        conversation = Conversation(id="c", participants=speakers, recording=recording, source=source)
        assert observe(metrics.mos, conversation).status == MEASURED
