"""What a recogniser finds of planted wrong names, numbers and codes, and what it finds where there are none.

Calls of a synthesized agent: in every second one, one fact is spoken otherwise than the text says, left out, or added
to it. The recogniser is Whisper tiny.en; flite and festival speak. Nothing of this was used to set the thresholds but
the first 500 calls.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from itertools import repeat
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

from convoscope.audio.recognise import FasterWhisper, whisper_model
from convoscope.audio.resource import Recordings
from convoscope.conversation import AudioFile, Clock, Conversation, Participant, Text, Track, Utterance
from convoscope.metrics.audio.spoken_entities import spoken_entities
from convoscope.metrics.audio.spoken_words import gibberish, pronunciation_audio, word_accuracy_recogniser
from convoscope.resources import Recognised, Sound
from convoscope.scores.observation import Observation
from convoscope.text.spoken.vocabulary import MONTHS

RATE = 16_000
PAUSE = 0.7
SEED = 7
VOICES = ("slt", "rms", "festival")
_TEENS = (
    ("thirteen", "thirty", "13", "30"),
    ("fourteen", "forty", "14", "40"),
    ("fifteen", "fifty", "15", "50"),
    ("sixteen", "sixty", "16", "60"),
    ("eighteen", "eighty", "18", "80"),
    ("nineteen", "ninety", "19", "90"),
)
_MONTHS = ("March", "June", "August", "October", "December")
_DAYS = (("third", "3rd"), ("ninth", "9th"), ("twelfth", "12th"), ("twenty second", "22nd"), ("thirtieth", "30th"))
_NAMES = ("Martin", "Susan", "Peter", "Laura", "Kevin", "Rachel", "Thomas", "Diana")
_HOURS = (("nine", "9"), ("two", "2"), ("four", "4"), ("eleven", "11"), ("six", "6"))
_TENS = (("twenty", 2), ("thirty", 3), ("forty", 4), ("sixty", 6), ("seventy", 7), ("ninety", 9))
_UNITS = ("", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


class Fact(NamedTuple):
    """A fact as the log writes it, as a voice says it, and another one as a voice says that."""

    kind: str
    written: str
    voiced: str
    other: str


class Sentence(NamedTuple):
    """A text with a blank for its fact."""

    text: str
    fact: Fact


def _amount(draw: random.Random) -> Sentence:
    (ten, value), unit = draw.choice(_TENS), draw.randrange(1, 10)
    other = draw.choice([one for one in _TENS if one[1] != value])[0]
    cents, cent = draw.choice(_TENS)
    written = f"${value}{unit}.{cent}0"
    voiced = f"{ten} {_UNITS[unit]} dollars and {cents} cents"
    return Sentence(
        "Your total comes to {} including tax.",
        Fact("amount", written, voiced, f"{other} {_UNITS[unit]} dollars and {cents} cents"),
    )


def _teen(draw: random.Random) -> Sentence:
    teen, ten, low, high = draw.choice(_TEENS)
    if draw.random() < 0.5:
        teen, ten, low, high = ten, teen, high, low
    return Sentence("There are {} dollars left on your account today.", Fact("teen", low, teen, ten))


def _date(draw: random.Random) -> Sentence:
    month, (day, short) = draw.choice(_MONTHS), draw.choice(_DAYS)
    other = draw.choice([one for one in _DAYS if one[1] != short])[0]
    return Sentence(
        "The delivery is planned for {} in the morning.",
        Fact("date", f"{month} {short}", f"{month} {day}", f"{month} {other}"),
    )


def _time(draw: random.Random) -> Sentence:
    hour, short = draw.choice(_HOURS)
    other = draw.choice([one for one in _HOURS if one[1] != short])[0]
    return Sentence("Your appointment is at {} on Tuesday.", Fact("time", f"{short} pm", f"{hour} p m", f"{other} p m"))


def _code(draw: random.Random) -> Sentence:
    letters = draw.sample("FKLMRXZ", 2)
    figures = draw.sample(range(1, 10), 4)
    changed = [*figures]
    changed[2] = draw.choice([one for one in range(1, 10) if one not in figures])
    written = "".join(letters) + "".join(map(str, figures))
    spoken = [" ".join([*letters, *(_UNITS[one] for one in row)]) for row in (figures, changed)]
    return Sentence("Your confirmation code is {}.", Fact("code", written, spoken[0], spoken[1]))


def _name(draw: random.Random) -> Sentence:
    name, other = draw.sample(_NAMES, 2)
    return Sentence("My name is {} and I will help you with that.", Fact("name", name, name, other))


def _phone(draw: random.Random) -> Sentence:
    figures = [5, 5, 5, 0, *draw.sample(range(1, 10), 3)]
    changed = [*figures[:-1], draw.choice([one for one in range(1, 10) if one not in figures])]
    written = "".join(map(str, figures))
    spoken = [" ".join(_UNITS[one] or "oh" for one in row) for row in (figures, changed)]
    return Sentence("You can call us at {} on weekdays.", Fact("phone", f"{written[:3]}-{written[3:]}", *spoken))


def _slash_date(draw: random.Random) -> Sentence:
    month, (day, short) = draw.choice(_MONTHS), draw.choice(_DAYS)
    other = draw.choice([one for one in _DAYS if one[1] != short])[0]
    number = 1 + MONTHS.index(month.lower())
    written = f"{number:02}/{int(short[:-2]):02}/2026"
    voiced = (f"{month} {one} twenty twenty six" for one in (day, other))
    return Sentence("Your visit is booked for {} at the main office.", Fact("slash", written, *voiced))


def _range(draw: random.Random) -> Sentence:
    first, other = draw.sample(range(2, 9), 2)
    voiced = (f"{_UNITS[one]} to {_UNITS[one + 1]} working days" for one in (first, other))
    return Sentence("The repair takes {} in most cases.", Fact("range", f"{first}-{first + 1} working days", *voiced))


def _cents(draw: random.Random) -> Sentence:
    (ten, value), unit = draw.choice(_TENS), draw.randrange(1, 10)
    other = draw.choice([one for one in _TENS if one[1] != value])[0]
    voiced = (f"{one} {_UNITS[unit]} cents" for one in (ten, other))
    return Sentence("Each message costs {} on this plan.", Fact("cents", f"$0.{value}{unit}", *voiced))


def _postcode(draw: random.Random) -> Sentence:
    figures = [0, *draw.sample(range(1, 10), 4)]
    changed = [*figures]
    changed[3] = draw.choice([one for one in range(1, 10) if one not in figures])
    spoken = [" ".join(_UNITS[one] or "oh" for one in row) for row in (figures, changed)]
    return Sentence("Your ZIP code is {} in our files.", Fact("ZIP", "".join(map(str, figures)), *spoken))


def _pair(draw: random.Random) -> Sentence:
    """Two amounts of one sentence, which are swapped."""
    (first, value), (second, other) = draw.sample(_TENS, 2)
    pairs = ((first, second), (second, first))
    voiced = [f"{rent} dollars a month, and the deposit is {deposit} dollars" for rent, deposit in pairs]
    written = f"${value}0 a month, and the deposit is ${other}0"
    return Sentence("The rent is {} in this house.", Fact("pair", written, *voiced))


_MAKERS = (_amount, _teen, _date, _time, _code, _name, _phone, _slash_date, _range, _cents, _postcode, _pair)
KINDS = ("amount", "teen", "date", "time", "code", "name", "phone", "slash", "range", "cents", "ZIP", "pair")
OTHERWISE, LEFT_OUT, ADDED = "otherwise", "left out", "added"
_FAULTS = (OTHERWISE, LEFT_OUT, OTHERWISE, ADDED)


def say(text: str, voice: str) -> Any:
    """A text in a voice, as samples at 16 kHz."""
    import soundfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "said.wav"
        if voice == "festival":
            chosen = "(voice_cmu_us_slt_arctic_hts)"
            subprocess.run(
                ["text2wave", "-eval", chosen, "-F", str(RATE), "-o", str(file)], input=text.encode(), check=True
            )
        else:
            subprocess.run(["flite", "-voice", voice, "-t", text, "-o", str(file)], check=True)
        samples, rate = soundfile.read(file, dtype="float32")
    assert rate == RATE
    return samples


class HearsOnce(FasterWhisper):
    """The same sound is the same words: three metrics of one clip are heard once."""

    async def recognise(self, sound: Sound) -> Sequence[Recognised]:
        known: dict[bytes, Sequence[Recognised]] = self.__dict__.setdefault("known", {})
        key = sha256(sound.samples.tobytes()).digest()
        if key not in known:
            known[key] = await super().recognise(sound)
        return known[key]


class PlantedCall(NamedTuple):
    """A call, the facts in it by utterance, the utterance whose fact is spoken wrongly, -1 for none, and how."""

    conversation: Conversation
    facts: tuple[Fact, ...]
    wrong: int
    fault: str
    voice: str


def make_call(number: int, folder: Path) -> PlantedCall:
    """Three turns of an agent, one fact in each; in every second call, one of them is not spoken as it is meant."""
    import numpy as np
    import soundfile

    draw = random.Random(SEED * 1000 + number)
    voice = VOICES[number // 2 % len(VOICES)] if shutil.which("text2wave") else VOICES[number // 2 % 2]
    sentences = [make(draw) for make in draw.sample(_MAKERS, 3)]
    wrong, fault = draw.randrange(3) if number % 2 else -1, _FAULTS[number // 2 % len(_FAULTS)]
    extra = f"and {draw.choice(_TENS)[0]} two dollars"
    pieces, timeline = [], []
    for seq, (text, fact) in enumerate(sentences):
        forms = {OTHERWISE: fact.other, LEFT_OUT: "", ADDED: f"{fact.voiced} {extra}"}
        voiced = text.format(forms[fault] if seq == wrong else fact.voiced)
        pieces += [say(voiced, voice), np.zeros(int(PAUSE * RATE), np.float32)]
        timeline.append(Utterance(seq=seq, speaker="agent", intended=Text(text.format(fact.written))))
    file = folder / f"call{number}.wav"
    soundfile.write(file, np.concatenate(pieces), RATE)
    conversation = Conversation(
        id=f"call{number}",
        participants=(Participant("agent", "assistant"),),
        clocks=(Clock(id="audio", kind="audio"),),
        timeline=tuple(timeline),
        recording=AudioFile(tracks=(Track(path=str(file), channels=("agent",)),)),
    )
    return PlantedCall(conversation, tuple(one.fact for one in sentences), wrong, fault, voice)


def run(calls: int = 100, first: int = 500) -> None:
    """Print what was found, missed, left open, and found where nothing was wrong."""
    file = _weights()
    if file is None or not shutil.which("flite"):
        print("not measured: needs flite and the weights of Whisper tiny.en (make test fetches them)")
        return
    recogniser = HearsOnce(whisper_model(str(file)))
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in (OTHERWISE, LEFT_OUT, ADDED, "as meant")}
    began, seconds = process_time(), 0.0
    # The next calls are synthesized while one is heard.
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
        numbers = range(first, first + calls)
        for number, call in zip(numbers, pool.map(make_call, numbers, repeat(Path(folder))), strict=True):
            observations = asyncio.run(
                spoken_entities.ask(call.conversation, recording=Recordings(), recogniser=recogniser)
            )
            seconds += Recordings().tracks(call.conversation)[0].seconds
            for seq, fact in enumerate(call.facts):
                outcome, fault = _outcome(observations, seq), call.fault if seq == call.wrong else "as meant"
                counts[fault][f"{fact.kind} {outcome}"] += 1
                if (outcome == "wrong") == (fault == "as meant"):
                    print(
                        f"  {number} {call.voice} {fact.kind}: {fact.written} spoken {fault} "
                        f"({fact.other if fault == OTHERWISE else fact.voiced}): {outcome} {_spoken(observations, seq)}"
                    )
    recogniser.close()
    took = process_time() - began
    print(f"{calls} calls, {seconds / 60:.1f} minutes of speech, {took:.0f} s of CPU time with the synthesis")
    for fault, by_kind in counts.items():
        words = ("right", "wrong", "open") if fault == "as meant" else ("wrong", "right", "open")
        sums = [sum(n for kind, n in by_kind.items() if kind.endswith(word)) for word in words]
        print(f"spoken {fault}: " + ", ".join(f"{n} {word}" for n, word in zip(sums, words, strict=True)))
        for kind in KINDS if fault in (OTHERWISE, "as meant") else ():
            row = [by_kind[f"{kind} {word}"] for word in words]
            print(f"  {kind:<8}" + "".join(f"{n:>4} {word}" for n, word in zip(row, words, strict=True)))


def _outcome(observations: Sequence[Observation], seq: int) -> str:
    """What the metric says of the planted fact of an utterance: right, wrong, or nothing."""
    one = next((one for one in observations if one.subject.id == str(seq)), None)
    if one is None or one.value is None:
        return "open"
    details = one.details or {}
    if any(differing["kind"] != "cut" for differing in details["differs"]):
        return "wrong"
    return "open" if details.get("undecided") else "right"


def _spoken(observations: Sequence[Observation], seq: int) -> str:
    one = next((one for one in observations if one.subject.id == str(seq)), None)
    details = (one.details if one is not None else None) or {}
    return f"{details.get('spoken', '')!r} {details.get('undecided', '')} {one.detail if one is not None else ''}"


def run_all(calls: int) -> None:
    """Planted facts, clean speech, and what only resembles speech; the last two need the sounds of the tests."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    run(calls)
    if calls >= 100:
        clean()
        garbled()


def clean(prompts: int = 40) -> None:
    """Print the recogniser's own errors on clean speech: words, and phones of words that differ."""
    from support.sounds import festival, prompt, prompt_texts, said  # type: ignore[import-not-found]

    file = _weights()
    if file is None:
        return
    texts = {
        name: text for name, text in sorted(prompt_texts().items()) if 8 <= len(text.split()) <= 30 and "[" not in text
    }
    names = random.Random(SEED).sample(sorted(texts), min(prompts, len(texts)))
    recogniser = HearsOnce(whisper_model(str(file)))
    for voice, speak in (
        ("a person (prompts of Debian)", prompt),
        ("festival slt-hts", lambda name: festival(texts[name])),
        ("flite slt", lambda name: said(texts[name], "slt")),
        ("flite rms", lambda name: said(texts[name], "rms")),
    ):
        totals = Counter[str]()
        for name in names:
            call = _single(texts[name], speak(name))
            for metric in (word_accuracy_recogniser, pronunciation_audio, gibberish):
                [one] = asyncio.run(metric.ask(call.conversation, recording=call, recogniser=recogniser))
                if one.denominator:
                    totals[f"{metric.name} n"] += one.denominator
                    totals[metric.name] += one.numerator
        shares = {
            metric.name: totals[metric.name] / totals[f"{metric.name} n"]
            for metric in (word_accuracy_recogniser, pronunciation_audio, gibberish)
            if totals[f"{metric.name} n"]
        }
        print(f"{voice:<30} {len(names)} prompts: " + ", ".join(f"{name} {one:.3f}" for name, one in shares.items()))
    recogniser.close()


def garbled(prompts: int = 12) -> None:
    """Print what `audio.gibberish` says of speech and of what only sounds like speech."""
    import numpy as np

    from support.sounds import festival, prompt, prompt_texts, said

    file = _weights()
    if file is None:
        return
    texts = {name: text for name, text in sorted(prompt_texts().items()) if len(text.split()) >= 12 and "[" not in text}
    names = random.Random(SEED).sample(sorted(texts), min(prompts, len(texts)))
    recogniser = HearsOnce(whisper_model(str(file)))
    for voice, speak in (
        ("a person", prompt),
        ("festival slt-hts", lambda name: festival(texts[name])),
        ("flite slt", lambda name: said(texts[name], "slt")),
        ("flite rms", lambda name: said(texts[name], "rms")),
    ):
        sounds = {name: np.asarray(speak(name), np.float32) for name in names}
        print(voice)
        for kind, change in _garblings(names, sounds):
            flagged, seconds, without = 0.0, 0.0, Counter[str]()
            for name in names:
                call = _single(texts[name], change(name))
                [one] = asyncio.run(gibberish.ask(call.conversation, recording=call, recogniser=recogniser))
                flagged, seconds = flagged + (one.numerator or 0.0), seconds + (one.denominator or 0.0)
                without[one.reason or ""] += one.denominator is None
            share = f"{flagged / seconds:.0%}" if seconds else "nothing"
            open_ = without.pop("recogniser_unsure", 0)
            print(
                f"  {kind:<34} {share} of {seconds:.0f} s flagged; of {len(names)} clips {open_} unmeasured, "
                f"{without.total()} not applicable"
            )
    recogniser.close()


def _garblings(names: Sequence[str], sounds: Mapping[str, Any]) -> list[tuple[str, Callable[[str], Any]]]:
    """What is done to clips, by name: speech, and what only sounds like it."""
    import numpy as np

    from support.sounds import with_noise

    others = {name: sounds[names[(n + 1) % len(names)]] for n, name in enumerate(names)}
    return [
        ("speech", lambda name: sounds[name]),
        ("speech with noise at 5 dB", lambda name: with_noise(sounds[name], 5)),
        ("reversed", lambda name: sounds[name][::-1].copy()),
        ("pieces of 120 ms in another order", lambda name: _shuffled(sounds[name], 0.12)),
        ("half a second again and again", lambda name: np.tile(sounds[name][RATE : RATE * 3 // 2], 20)),
        ("six voices at once", lambda name: _babble([*sounds.values()], names.index(name))),
        ("two voices at once", lambda name: _babble([sounds[name], others[name]], 0)),
    ]


def _shuffled(samples: Any, seconds: float) -> Any:
    import numpy as np

    pieces = np.array_split(samples, max(1, round(len(samples) / RATE / seconds)))
    random.Random(SEED).shuffle(pieces)
    return np.concatenate(pieces)


def _babble(sounds: Sequence[Any], first: int) -> Any:
    import numpy as np

    chosen = [sounds[(first + n) % len(sounds)] for n in range(min(6, len(sounds)))]
    length = min(map(len, chosen))
    mixed = np.sum([one[:length] for one in chosen], axis=0)
    return (mixed / max(1.0, float(np.abs(mixed).max()))).astype(np.float32)


class _OneTrack(Recordings):
    """The recording of one utterance, written to a file that lasts as long as it does."""

    def __init__(self, text: str, samples: Any) -> None:
        import soundfile

        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        file = Path(self._folder.name) / "said.wav"
        soundfile.write(file, samples, RATE)
        self.conversation = Conversation(
            id="said",
            participants=(Participant("agent", "assistant"),),
            timeline=(Utterance(seq=0, speaker="agent", intended=Text(text)),),
            recording=AudioFile(tracks=(Track(path=str(file), channels=("agent",)),)),
        )


def _single(text: str, samples: Any) -> _OneTrack:
    return _OneTrack(text, samples)


def _weights() -> Path | None:
    folder = Path(os.environ.get("CONVOSCOPE_WEIGHTS") or Path(sys.prefix) / "weights") / "whisper-tiny.en"
    return folder if (folder / "model.bin").is_file() else None


if __name__ == "__main__":
    run()
