"""Recognisers: named, refused, asked once for each clip; and the real one, on real speech."""

import asyncio
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jiwer
import numpy as np
import pytest

from convoscope.audio.recognise import (
    RATE,
    FasterWhisper,
    KeptRecogniser,
    is_installed,
    named_recogniser,
    whisper_model,
)
from convoscope.errors import UsageError
from convoscope.judging.cache import AnswerCache
from convoscope.metrics.voice.transcription import word_errors
from convoscope.resources import Recognised, Sound
from convoscope.text.spoken import normalised
from support.sounds import noise, prompt, prompt_texts, said, silence
from support.weights import weights_file

WEIGHTS = weights_file("whisper-tiny.en").parent
NEEDS_WEIGHTS = pytest.mark.skipif(
    not (WEIGHTS / "model.bin").is_file(), reason="no weights: python tests/support/weights.py whisper-tiny.en"
)
pytestmark = pytest.mark.skipif(not is_installed(), reason="pip install 'convoscope[whisper]' is not done")


class Counting:
    """Writes how many clips it has heard."""

    identity = "local/counting@1"

    def __init__(self) -> None:
        self.clips = 0
        self.is_closed = False

    async def recognise(self, sound: Sound) -> Sequence[Recognised]:
        self.clips += 1
        await asyncio.sleep(0)
        return [Recognised(f"clip{self.clips}", 0.0, 1.0, 0.5)]

    def close(self) -> None:
        self.is_closed = True


class TestAName:
    @pytest.mark.parametrize("name", ["tiny.en", "whisper:tiny.en", "faster-whisper:", "faster-whisper"])
    def test_of_no_recogniser_is_refused(self, name: str) -> None:
        with pytest.raises(UsageError, match="no such recogniser") as refusal:
            named_recogniser(name)
        assert "faster-whisper:tiny.en" in refusal.value.hint

    def test_of_no_model_is_refused(self) -> None:
        with pytest.raises(UsageError, match="no such folder, and no model of faster-whisper has this name") as refusal:
            named_recogniser("faster-whisper:tinny")
        assert "tiny.en" in refusal.value.hint

    def test_of_a_model_that_is_not_here_fetches_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
        with pytest.raises(UsageError, match="is not on this machine, and Convoscope downloads nothing") as refusal:
            named_recogniser("faster-whisper:large-v3")
        assert "huggingface.co" in refusal.value.hint

    def test_of_a_folder_without_a_tokenizer_is_refused(self, tmp_path: Path) -> None:
        # faster-whisper would fetch one.
        (tmp_path / "model.bin").touch()
        (tmp_path / "config.json").touch()
        with pytest.raises(UsageError, match=r"has no tokenizer\.json"):
            named_recogniser(f"faster-whisper:{tmp_path}")

    def test_of_other_weights_is_another_identity(self, tmp_path: Path) -> None:
        fingerprints = []
        for weights in (b"a" * 3_000_000, b"a" * 3_000_001, b"a" * 2_999_999 + b"b"):
            for name, content in (("model.bin", weights), ("config.json", b"{}"), ("tokenizer.json", b"{}")):
                (tmp_path / name).write_bytes(content)
            fingerprints.append(whisper_model(str(tmp_path)).fingerprint)
        assert len(set(fingerprints)) == 3
        assert str(tmp_path) not in FasterWhisper(whisper_model(str(tmp_path))).identity

    def test_of_an_object_that_cannot_recognise_is_refused(self) -> None:
        with pytest.raises(UsageError, match="the recogniser object has no method recognise"):
            named_recogniser(object())  # type: ignore[arg-type]


class TestAClip:
    def test_is_heard_once(self, tmp_path: Path) -> None:
        counting = Counting()
        one, other = Sound("a", RATE, noise(0.1)), Sound("a", RATE, silence(0.1))

        async def ask(recogniser: KeptRecogniser) -> list[str]:
            async with recogniser:
                return [word.text for clip in (one, other, one) for word in await recogniser.recognise(clip)]

        cache = AnswerCache(tmp_path / "answers.sqlite")
        assert asyncio.run(ask(KeptRecogniser(counting, cache))) == ["clip1", "clip2", "clip1"]
        assert counting.is_closed
        # Another run: the words with their times and probabilities are in the file.
        again = KeptRecogniser(counting, AnswerCache(tmp_path / "answers.sqlite"))
        assert asyncio.run(again.recognise(one)) == [Recognised("clip1", 0.0, 1.0, 0.5)]
        assert counting.clips == 2

    def test_is_heard_once_by_all_that_wait_for_it(self) -> None:
        counting = Counting()

        async def ask() -> list[Any]:
            recogniser = KeptRecogniser(counting, None)
            return await asyncio.gather(*(recogniser.recognise(Sound("a", RATE, silence(0.1))) for _ in range(5)))

        assert asyncio.run(ask()) == [[Recognised("clip1", 0.0, 1.0, 0.5)]] * 5
        assert counting.clips == 1


@pytest.mark.parametrize(
    "word",
    [("yes", 0.0, 1.0, -0.2), ("yes", 0.0, 1.0, 2.0), ("yes", float("nan"), 1.0, None), ("yes", 0.0, float("inf"))],
)
def test_a_word_with_figures_that_are_none_is_refused(word: Any) -> None:
    class Odd:
        identity = "local/odd@1"

        async def recognise(self, sound: Sound) -> Sequence[Recognised]:
            return [word]

    with pytest.raises(ValueError, match="probability is from 0 to 1, or None"):
        asyncio.run(KeptRecogniser(Odd(), None).recognise(Sound("a", RATE, silence(0.1))))


@pytest.fixture(scope="module")
def tiny() -> Iterator[FasterWhisper]:
    recogniser = FasterWhisper(whisper_model(str(WEIGHTS)))
    yield recogniser
    recogniser.close()


def words(recogniser: FasterWhisper, samples: Any) -> Sequence[Recognised]:
    return asyncio.run(recogniser.recognise(Sound("agent", RATE, np.asarray(samples, np.float32))))


@NEEDS_WEIGHTS
class TestWhisper:
    def test_writes_down_real_speech_with_times(self, tiny: FasterWhisper) -> None:
        sound = prompt("agent-pass")
        heard = words(tiny, sound)
        text = " ".join(word.text for word in heard)
        # "Please enter your password followed by the pound key."
        assert normalised(text) == normalised(prompt_texts()["agent-pass"])
        seconds = len(sound) / RATE
        assert all(0 <= word.start <= word.end <= seconds + 0.5 for word in heard)
        assert all(word.probability is not None and 0 <= word.probability <= 1 for word in heard)
        assert [word.start for word in heard] == sorted(word.start for word in heard)

    def test_keeps_an_amount_in_one_word(self, tiny: FasterWhisper) -> None:
        heard = words(tiny, said("Your total is forty two dollars and fifty cents."))
        assert [word.text for word in heard if "42" in word.text] == ["$42.50."]

    def test_the_same_clip_gives_the_same_words(self, tiny: FasterWhisper) -> None:
        sound = said("My name is Susan and I will help you.")
        assert words(tiny, sound) == words(tiny, sound)

    def test_is_not_sure_of_what_it_invents_in_silence(self, tiny: FasterWhisper) -> None:
        # Metrics never give it silence: clips are cut around speech.
        assert all((word.probability or 0.0) < 0.5 for word in words(tiny, silence(3.0)))

    def test_its_errors_are_those_that_jiwer_counts(self, tiny: FasterWhisper) -> None:
        if shutil.which("flite") is None:
            pytest.skip("flite is not installed")
        texts = ["Your table is booked for Friday.", "Thank you for calling the customer service of our company."]
        for text in texts:
            heard = " ".join(word.text for word in words(tiny, said(text, "kal")))
            errors = word_errors(text, heard, "en")
            assert errors.all / errors.words == pytest.approx(jiwer.wer(normalised(text), normalised(heard)))
