"""Speech recognisers: faster-whisper by its name, and whatever one heard, kept so that no clip is heard twice."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from convoscope.errors import UsageError
from convoscope.resources.registry import RECOGNISER, ReadyResource, Resource, made, misfit
from convoscope.resources.sound import Recognised, Recogniser, Sound

if TYPE_CHECKING:
    import asyncio

    from convoscope.judging.cache import AnswerCache

RATE = 16_000
"""Samples a second of the clips that recognisers are given."""
WHISPER = "faster-whisper"
_FILES = ("model.bin", "config.json", "tokenizer.json")
"""Without its tokenizer, faster-whisper would fetch one from a hub."""
_READ = 1 << 20
_BEAM = 5

RecogniserLike = str | Recogniser


class WhisperModel(NamedTuple):
    """A model of faster-whisper that is on this machine."""

    name: str
    folder: Path
    fingerprint: str
    """Of its weights and settings, and of the version that reads them: what its words depend on."""

    @property
    def is_english(self) -> bool:
        """Whether it knows English only; the names of such models say so."""
        return self.name.endswith(".en")


def whisper_model(name: str) -> WhisperModel:
    """The model that is meant by a folder or by a name of faster-whisper's own. Nothing is fetched."""
    given = f"--recogniser {WHISPER}:{name}"
    try:
        package = version("faster-whisper")
    except PackageNotFoundError:
        hint = "pip install 'convoscope[whisper]'"
        raise UsageError(f"{given}: faster-whisper is not installed", hint=hint) from None
    folder = Path(name)
    if not folder.is_dir():
        folder = _kept_model(name, given)
    if missing := [file for file in _FILES if not (folder / file).is_file()]:
        raise UsageError(
            f"{given}: {folder} has no {', '.join(missing)}",
            hint="a folder of a CTranslate2 model of Whisper holds " + ", ".join(_FILES),
        )
    return WhisperModel(folder.name if Path(name).is_dir() else name, folder, f"{package}-{_fingerprint(folder)}")


def _kept_model(name: str, given: str) -> Path:
    """Where the hub's client keeps a model that the user has downloaded before."""
    from faster_whisper.utils import available_models, download_model

    known = available_models()
    if name not in known:
        raise UsageError(
            f"{given}: no such folder, and no model of faster-whisper has this name",
            hint=f"its models: {', '.join(known)}",
        )
    try:
        return Path(download_model(name, local_files_only=True))
    except Exception:  # whatever the hub's client raises: it is not here
        code = f"from faster_whisper import download_model; download_model({name!r}, output_dir={name!r})"
        raise UsageError(
            f"{given}: the model is not on this machine, and Convoscope downloads nothing by itself",
            hint=f'python -c "{code}" fetches it from huggingface.co; then --recogniser {WHISPER}:./{name}',
        ) from None


def _fingerprint(folder: Path) -> str:
    """Of the beginning and the end of the weights, their size, and the files beside them: weights may be gigabytes."""
    digest = hashlib.sha256()
    for name in _FILES[1:]:
        digest.update((folder / name).read_bytes())
    with (folder / _FILES[0]).open("rb") as weights:
        size = weights.seek(0, 2)
        digest.update(str(size).encode())
        for start in (0, max(0, size - _READ)):
            weights.seek(start)
            digest.update(weights.read(_READ))
    return digest.hexdigest()[:12]


class FasterWhisper(Recogniser):
    """A Whisper model on this machine, on one thread: the same clip gives the same words, whatever else runs."""

    def __init__(self, model: WhisperModel) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self._folder = model.folder
        self.languages: Collection[str] = ("en",) if model.is_english else ()
        """The languages that it knows; none said is any."""
        self.identity = f"{WHISPER}:{model.name}@{model.fingerprint}"
        self._model: Any = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="convoscope-recogniser")

    async def recognise(self, sound: Sound) -> Sequence[Recognised]:
        import asyncio

        return await asyncio.get_running_loop().run_in_executor(self._thread, self._words, sound)

    def _words(self, sound: Sound) -> list[Recognised]:
        if sound.rate != RATE:
            raise ValueError(f"faster-whisper takes {RATE} samples a second, not {sound.rate}")
        if self._model is None:
            import faster_whisper

            self._model = faster_whisper.WhisperModel(
                str(self._folder), device="cpu", compute_type="int8", cpu_threads=1, local_files_only=True
            )
        # No other temperatures: they draw by chance. No text before it: a clip is heard for itself.
        segments, _ = self._model.transcribe(
            sound.samples,
            language="en" if self.languages else None,
            beam_size=_BEAM,
            temperature=0.0,
            condition_on_previous_text=False,
            word_timestamps=True,
        )
        return list(_whole_words(word for segment in segments for word in segment.words or ()))

    def close(self) -> None:
        """Let go of the thread and the model."""
        self._thread.shutdown(cancel_futures=True)
        self._model = None


def _whole_words(pieces: Iterable[Any]) -> list[Recognised]:
    """Whisper cuts "$42.50" in two: a piece without a blank before it goes on with the word."""
    words: list[list[Any]] = []
    for piece in pieces:
        if words and not piece.word.startswith(" "):
            words[-1].append(piece)
        elif piece.word.strip():
            words.append([piece])
    return [
        Recognised(
            "".join(piece.word for piece in word).strip(),
            float(word[0].start),
            float(word[-1].end),
            sum(float(piece.probability) for piece in word) / len(word),
        )
        for word in words
    ]


class _Named:
    """Makes a recogniser of its name, in whichever process it is wanted."""

    def __init__(self, model: WhisperModel) -> None:
        self._model = model
        self.__qualname__ = self.home = f"{WHISPER}:{model.name}"

    def __call__(self) -> FasterWhisper:
        return FasterWhisper(self._model)


def named_recogniser(recogniser: RecogniserLike) -> Resource:
    """A recogniser that a user names, or an object that recognises, as a resource of a run."""
    if not isinstance(recogniser, str):
        if fault := misfit(recogniser, RECOGNISER):
            raise UsageError(
                f"the recogniser {type(recogniser).__qualname__} {fault}",
                hint="convoscope.Recogniser says how it is asked",
            )
        return Resource((RECOGNISER,), ReadyResource(recogniser), is_managed=False)
    provider, _, model = recogniser.partition(":")
    if provider != WHISPER or not model:
        raise UsageError(
            f"--recogniser {recogniser}: no such recogniser",
            hint=f"{WHISPER}:tiny.en, or {WHISPER}:FOLDER of a model; or one of yours in --metrics-from FILE",
        )
    return Resource((RECOGNISER,), _Named(whisper_model(model)))


def kept(resource: Resource, *, use_cache: bool) -> Resource:
    """A recogniser that hears each clip once: what it wrote is in the cache of answers, where that is used."""
    return Resource(resource.types, _Kept(resource, use_cache))


class _Kept:
    def __init__(self, resource: Resource, use_cache: bool) -> None:
        self._resource = resource
        self._use_cache = use_cache
        self.__qualname__, self.home = type(self).__qualname__, resource.home

    def __call__(self) -> KeptRecogniser:
        from convoscope.judging.cache import AnswerCache, cache_file

        cache = AnswerCache(cache_file()) if self._use_cache else None
        return KeptRecogniser(made(self._resource), cache, is_managed=self._resource.is_managed)


class KeptRecogniser(Recogniser):
    """Hands on what a recogniser wrote of a clip, now or in an earlier run."""

    def __init__(self, recogniser: Recogniser, cache: AnswerCache | None, *, is_managed: bool = True) -> None:
        self._recogniser = recogniser
        self._cache = cache
        self._is_managed = is_managed
        self._under_way: dict[str, asyncio.Future[Sequence[Recognised]]] = {}
        self.identity = recogniser.identity
        self.languages: Collection[str] = getattr(recogniser, "languages", ())

    async def recognise(self, sound: Sound) -> Sequence[Recognised]:
        import asyncio

        key = self._key(sound)
        answer = None if self._cache is None else self._cache.get(key)
        if answer is not None:
            return msgspec.json.decode(answer.text, type=list[Recognised])
        if key not in self._under_way:
            self._under_way[key] = asyncio.ensure_future(self._asked(key, sound))
        try:
            return await asyncio.shield(self._under_way[key])
        finally:
            if key in self._under_way and self._under_way[key].done():
                del self._under_way[key]

    async def _asked(self, key: str, sound: Sound) -> Sequence[Recognised]:
        words = [_usable(Recognised(*word)) for word in await self._recogniser.recognise(sound)]
        if self._cache is not None:
            from convoscope.judging.cache import CachedAnswer

            text = msgspec.json.encode(words).decode()
            self._cache.put(key, self.identity, CachedAnswer(text, None, None, 0.0))
        return words

    def _key(self, sound: Sound) -> str:
        digest = hashlib.sha256(f"{self.identity}\0{sound.speaker}\0{sound.rate}\0".encode())
        digest.update(sound.samples.astype("<f4", copy=False).tobytes())
        return digest.hexdigest()

    async def __aenter__(self) -> KeptRecogniser:
        if self._is_managed and hasattr(self._recogniser, "__aenter__"):
            self._recogniser = await self._recogniser.__aenter__()
        return self

    async def __aexit__(self, *problem: object) -> None:
        if self._cache is not None:
            self._cache.close()
        if not self._is_managed:
            return
        if hasattr(self._recogniser, "__aexit__"):
            await self._recogniser.__aexit__(*problem)
        elif hasattr(self._recogniser, "aclose"):
            await self._recogniser.aclose()
        elif hasattr(self._recogniser, "close"):
            self._recogniser.close()


def _usable(word: Recognised) -> Recognised:
    """A word as scores may use it: a log-probability, taken for a probability, would make speech gibberish."""
    start, end = float(word.start), float(word.end)
    probability = None if word.probability is None else float(word.probability)
    if not (math.isfinite(start) and math.isfinite(end) and (probability is None or 0 <= probability <= 1)):
        raise ValueError(f"{word}: start and end are seconds, probability is from 0 to 1, or None")
    return Recognised(word.text, start, end, probability)


def is_installed() -> bool:
    """Whether faster-whisper can be used here."""
    return find_spec("faster_whisper") is not None


def short_identity(identity: str) -> str:
    """A recogniser for a person: without what its words depend on beside the model."""
    return identity.partition("@")[0]


__all__ = [
    "RATE",
    "FasterWhisper",
    "KeptRecogniser",
    "RecogniserLike",
    "is_installed",
    "kept",
    "named_recogniser",
    "short_identity",
    "whisper_model",
]
