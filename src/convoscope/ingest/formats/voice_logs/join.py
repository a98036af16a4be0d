"""One conversation from three logs that were never meant to meet.

Each log is trusted for what only it knows. The caller's log says when sound was heard, what the
caller meant and what they understood; the framework's, what was sent to the speech engine; the
audit log, what the recogniser made of the caller, and what model and tools did. Who spoke when
comes from the sound. Texts are laid on it by time where that is plain, and by likeness where it is
not. Everything then falls into the span between two utterances of the user.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from convoscope.conversation import Logged
from convoscope.ingest.formats.voice_logs.framework import TextRun
from convoscope.ingest.formats.voice_logs.logs import UNHEARD
from convoscope.ingest.formats.voice_logs.replies import Reply, replies
from convoscope.ingest.formats.voice_logs.sounds import NOWHERE, SoundSpan, assigned, find_sounds, parted
from convoscope.ingest.report import Notes
from convoscope.text.folding import likeness
from convoscope.views.eva.lost_records import LogTimes

_EMPTY_SPEECH = frozenset({"", "...", "......", ".", ",", "?", "!"})
_WORDS_PER_SECOND = 2.7
_SPEECH = 1.0
"""Seconds; a sound without words that is shorter is taken for noise."""
_SOON = 10.0
_ACTS = ("assistant", "tool_call")
_IMPOSSIBLE = 3.0
"""The price of what cannot be, unless the clocks are wrong."""
_WRITTEN_AFTER = 1.0
"""Seconds after the agent's sound at which the caller writes down what they heard, at the least."""
_EARLY = 0.3
"""Seconds by which a text may be logged before its sound without being early."""


class Offsets(NamedTuple):
    """Seconds to add to each clock to reach the common time, and whether that was estimated."""

    audit: float = 0.0
    framework: float = 0.0
    simulator: float = 0.0
    audio: float = 0.0


class UserUtterance:
    """The user says something: sounds, what was meant and what was heard of it, as indexes in the log."""

    __slots__ = ("at", "heard", "meant", "sounds")

    def __init__(self, at: float, sounds: Sequence[SoundSpan] = (), meant: Iterable[int] = ()) -> None:
        self.at = at
        self.sounds = list(sounds)
        self.meant = list(meant)
        self.heard: list[int] = []

    @property
    def until(self) -> float:
        return self.sounds[-1].until if self.sounds else self.at


class Joined(NamedTuple):
    """The call put together: what the user said, the agent's replies by the user's utterance before them."""

    utterances: list[UserUtterance]
    replies: list[Reply]
    slot: dict[int, int]
    """For each record of the audit log, by its index, the number of user utterances before it."""
    noise: list[SoundSpan]
    unsaid: list[int]
    """Replies of the model that were never heard."""


class Join:
    """The logs of one call. `log` holds all records, `runs` the framework's with the time of each word."""

    def __init__(self, log: Sequence[Logged], runs: Sequence[TextRun], first_run: int, offsets: Offsets) -> None:
        self.log = log
        self.runs = runs
        self.first_run = first_run
        """Index in the log of the first run."""
        self.offsets = offsets
        shift = {"audit": offsets.audit, "framework": offsets.framework, "simulator": offsets.simulator}
        self.times = LogTimes(log, shift)
        """When each record was logged, in common time."""
        self.at, self.latest, self.earliest = self.times.__getitem__, self.times.latest, self.times.earliest
        self._orders: dict[str, list[int]] = {}

    def _all_timed(self, indexes: Iterable[int]) -> bool:
        return all(self.log[index].ms is not None for index in indexes)

    def order(self, source: str) -> list[int]:
        """The records of a log by their time, as indexes."""
        if source not in self._orders:
            indexes = [index for index, record in enumerate(self.log) if record.source == source]
            # Sorting is stable: of one moment, the file's order.
            self._orders[source] = sorted(indexes, key=self.times.__getitem__)
        return self._orders[source]

    def join(self, notes: Notes) -> Joined:
        simulator = self.order("simulator")
        sounds = find_sounds(self.log, simulator, self.offsets.audio, notes)
        agent_sounds = [sound for sound in sounds if sound.role == "assistant"]
        user_sounds = [sound for sound in sounds if sound.role == "user"]
        texts = self._texts(simulator, "user_speech")
        if len(texts) > 1:
            user_sounds = parted(user_sounds, agent_sounds, [self.at(text) for text in texts], notes)
        utterances = self._says(user_sounds, [sound.at for sound in agent_sounds], texts, notes)
        heard_lines = [index for index in self.order("audit") if self.log[index].kind == "user"]
        self._hear(utterances, heard_lines, notes)
        spoken = [
            utterance
            for utterance in utterances
            if utterance.meant or utterance.heard or _is_answered(utterance, utterances, agent_sounds)
        ]
        noise = [sound for utterance in utterances if utterance not in spoken for sound in utterance.sounds]
        utterances = spoken
        self._note_user(utterances, noise, heard_lines, notes)
        slot = self._slots(utterances)
        agent_sounds = self._understood(agent_sounds, simulator, notes)
        self._note_understood(agent_sounds, utterances, notes)
        answers = replies(self, utterances, agent_sounds, slot, notes)
        noise += [sound for sound in agent_sounds if sound not in answers.sounds]
        return Joined(utterances, answers.replies, slot, noise, answers.unsaid)

    def _texts(self, records: Sequence[int], kind: str) -> list[int]:
        return [
            index
            for index in records
            if self.log[index].kind == kind and self.log[index].text.strip() not in _EMPTY_SPEECH
        ]

    def _says(
        self, sounds: list[SoundSpan], replied: Sequence[float], texts: list[int], notes: Notes
    ) -> list[UserUtterance]:
        """What the user said, by the caller's own log. `replied`: when the agent began to speak."""
        alone = self._lay(sounds, texts, notes, replied)
        utterances = [UserUtterance(sound.at, [sound], sound.texts) for sound in sounds]
        utterances += [UserUtterance(self.at(index), (), [index]) for index in alone]
        for index in alone:
            notes.repaired("text_without_sound", f"user: {self.log[index].text[:60]!r}")
        return sorted(utterances, key=lambda utterance: utterance.at)

    def _lay(self, sounds: list[SoundSpan], texts: list[int], notes: Notes, replied: Sequence[float] = ()) -> list[int]:
        """Lay texts on the sounds of their side; those that belong to none are given back."""
        if not sounds:
            return texts
        where_to = self._plainly(sounds, texts) or self._by_length(sounds, texts, replied)
        for text, where in zip(texts, where_to, strict=True):
            if where != NOWHERE and any(self.log[text].text == self.log[other].text for other in sounds[where].texts):
                notes.repaired("duplicate_record", f"{self.log[text].kind}: {self.log[text].text[:60]!r}")
            elif where != NOWHERE:
                sounds[where].texts.append(text)
                self._note_delay(text, sounds, where, notes)
        return [text for text, where in zip(texts, where_to, strict=True) if where == NOWHERE]

    def _plainly(self, sounds: list[SoundSpan], texts: list[int]) -> list[int] | None:
        """Each text with the last sound that had begun; None unless each has one of its own.

        Where there are more sounds than texts, the user's words must also lie within their sound.
        """
        if not self._all_timed(texts):
            return None
        starts = [sound.at for sound in sounds]
        indexes = [bisect_right(starts, self.at(text) + _EARLY) - 1 for text in texts]
        if indexes == list(range(len(sounds))):
            return indexes
        if not texts or indexes[0] < 0 or any(before >= after for before, after in pairwise(indexes)):
            return None
        if sounds[0].role == "user" and any(
            self.at(text) > sounds[where].until + _EARLY for text, where in zip(texts, indexes, strict=True)
        ):
            return None
        return indexes

    def _by_length(self, sounds: list[SoundSpan], texts: list[int], replied: Sequence[float]) -> list[int]:
        """By time and by how long each text takes to say."""
        since = [self.earliest(text) for text in texts]
        until = [self.latest(text) for text in texts]
        spoken = [len(self.log[text].text.split()) / _WORDS_PER_SECOND for text in texts]
        nexts = [sound.at for sound in sounds[1:]] + [float("inf")]
        # A short burst without words is likely noise, a long one is likely speech whose words are late.
        empty = [0.2 + min(1.5, 0.5 * (sound.length or 0.0)) for sound in sounds]

        def cost(text: int, where: int) -> float:
            sound = sounds[where]
            early = max(0.0, sound.at - until[text] - _EARLY)
            # A caller knows their own words soon; what they heard they may write down when they speak next.
            due = sound.until + 2.5 if sound.role == "user" else max(nexts[where], sound.until + 3.0)
            late = max(0.0, since[text] - due)
            misfit = 0.0
            if sound.length is not None:
                misfit = abs(spoken[text] - sound.length) / (spoken[text] + sound.length + 0.5)
            # Words that come when the agent has spoken since are hardly those of the sound before.
            answered = bisect_right(replied, since[text]) - bisect_right(replied, sound.until) > 0
            return 0.6 * early + 0.6 * late + misfit + answered

        return assigned(len(texts), empty, cost, again=0.4, alone=3.0)

    def _note_delay(self, text: int, sounds: list[SoundSpan], where: int, notes: Notes) -> None:
        """Say of a text that it was logged before its sound, or so late that another had begun, or its own was over."""
        record, sound, at = self.log[text], sounds[where], self.at(text)
        if record.ms is None:
            return
        late = sound.end is not None and record.speaker == "user" and at > sound.end
        if at < sound.at - _EARLY:
            notes.repaired("early_transcript", f"{record.speaker}: {record.text[:60]!r}")
        elif late or (where + 1 < len(sounds) and at > sounds[where + 1].at + _EARLY):
            notes.repaired("late_transcript", f"{record.speaker}: {record.text[:60]!r}")

    def _hear(self, utterances: list[UserUtterance], lines: list[int], notes: Notes) -> None:
        """Lay what the recogniser heard on what the user said; what fits nowhere is an utterance by itself."""
        if not lines:
            return
        where_to = self._heard_plainly(utterances, lines) or self._heard_by_likeness(utterances, lines)
        for line, where in zip(lines, where_to, strict=True):
            if where == NOWHERE:
                utterance = UserUtterance(self.at(line))
                utterance.heard.append(line)
                utterances.append(utterance)
            else:
                utterances[where].heard.append(line)
        if NOWHERE in where_to and any(utterance.sounds for utterance in utterances):
            notes.repaired("heard_without_sound", f"{where_to.count(NOWHERE)} lines of the recogniser")
        utterances.sort(key=lambda utterance: utterance.at)

    def _heard_plainly(self, utterances: list[UserUtterance], lines: list[int]) -> list[int] | None:
        """Each line with the last utterance that had begun, where that leaves no utterance in mid-call unheard."""
        if not utterances or not all(utterance.meant for utterance in utterances) or not self._all_timed(lines):
            return None
        starts = [utterance.at for utterance in utterances]
        indexes = [bisect_right(starts, self.at(line) + _EARLY) - 1 for line in lines]
        if indexes[0] != 0 or len(set(indexes)) < max(1, len(utterances) - 1) or max(indexes) < len(utterances) - 2:
            return None
        if any(after - before > 1 or after < before for before, after in pairwise(indexes)):
            return None
        return indexes

    def _heard_by_likeness(self, utterances: list[UserUtterance], lines: list[int]) -> list[int]:
        meant = [" ".join(self.log[index].text for index in utterance.meant) for utterance in utterances]
        nexts = [utterance.at for utterance in utterances[1:]] + [float("inf")]
        since = [self.earliest(line) for line in lines]
        until = [self.latest(line) for line in lines]
        acted = self._acted_on(lines)

        def cost(line: int, where: int) -> float:
            early = max(0.0, utterances[where].at - until[line] - _EARLY)
            late = max(0.0, since[line] - max(nexts[where], utterances[where].until + 3.0))
            away = min(4.0, 0.5 * early + 0.4 * late)
            # What the model acts on was said before it acts.
            away += _IMPOSSIBLE * (utterances[where].at > acted[line] + _EARLY)
            text = self.log[lines[line]].text
            if text in UNHEARD:
                # Without words there is but the time, and a recogniser is done soon after the sound.
                late = max(0.0, since[line] - utterances[where].until - 1.0)
                return min(4.0, early + late) + (0.3 if meant[where] else 0.9)
            if not meant[where]:
                return away + 1.0
            return away + 2.0 * (1 - likeness(text, meant[where]))

        empty = [0.6 if text else 0.0 for text in meant]
        return assigned(len(lines), empty, cost, again=0.05, alone=3.0)

    def _acted_on(self, lines: Sequence[int]) -> list[float]:
        """When the agent next did something, by the audit log, after each of these lines of it."""
        acted: dict[int, float] = {}
        coming = float("inf")
        for index in reversed(self.order("audit")):
            acted[index] = coming
            if self.log[index].kind in _ACTS:
                coming = self.latest(index)
        return [acted[line] for line in lines]

    def _note_user(
        self, utterances: list[UserUtterance], noise: list[SoundSpan], heard_lines: list[int], notes: Notes
    ) -> None:
        """Name what had to be concluded of the user's side."""
        for sound in noise:
            notes.repaired("false_speech_detection", f"user, sound of {sound.at:.3f} s: no words in any log")
        for utterance in utterances:
            if utterance.sounds and not utterance.meant:
                notes.repaired(
                    "words_of_caller_missing", f"user, sound of {utterance.at:.3f} s: known by the recogniser alone"
                )
        for utterance in utterances[:-1] if heard_lines else ():
            if utterance.meant and not utterance.heard:
                notes.inferred("not_transcribed", f"user: {self.log[utterance.meant[0]].text[:60]!r}")

    def _understood(self, sounds: list[SoundSpan], records: Sequence[int], notes: Notes) -> list[SoundSpan]:
        """The agent's sounds with what the caller heard in each; a text without a sound makes a sound of its own."""
        lost: list[SoundSpan] = []
        for text in self._lay(sounds, self._texts(records, "assistant_speech"), notes):
            notes.repaired("text_without_sound", f"assistant: {self.log[text].text[:60]!r}")
            speaking_time = len(self.log[text].text.split()) / _WORDS_PER_SECOND
            sound = SoundSpan("assistant", None, None, [])
            sound.since = sound.till = self.at(text) - speaking_time - _WRITTEN_AFTER
            sound.texts.append(text)
            lost.append(sound)
        return sorted([*sounds, *lost], key=lambda sound: sound.at) if lost else sounds

    def _note_understood(self, sounds: list[SoundSpan], utterances: list[UserUtterance], notes: Notes) -> None:
        """Name spans of the agent's speech that the caller wrote down late, or not at all."""
        starts = [utterance.at for utterance in utterances]
        ends = bisect_right(starts, float("inf"))
        spoken = {bisect_right(starts, sound.at) for sound in sounds}
        understood = {bisect_right(starts, sound.at) for sound in sounds if sound.texts}
        for slot in sorted(spoken - understood) if understood else ():
            notes.inferred("not_understood", f"the caller wrote down nothing of what the agent said in span {slot}")
        for sound in sounds:
            following = bisect_right(starts, sound.at)
            for text in sound.texts:
                if following < ends and self.at(text) > starts[following] + _EARLY:
                    notes.repaired("late_transcript", f"assistant: {self.log[text].text[:60]!r}")

    def _slots(self, utterances: list[UserUtterance]) -> dict[int, int]:
        """How many utterances of the user lie before each record of the audit log.

        The audit log's own order holds: nothing falls before the line of the user that precedes it,
        nor behind the one that follows. Between them the time decides.
        """
        number = {index: count for count, utterance in enumerate(utterances, 1) for index in utterance.heard}
        ends = [utterance.until for utterance in utterances]
        order = self.order("audit")
        following: dict[int, int | None] = {}
        coming: int | None = None
        for index in reversed(order):
            following[index] = coming
            coming = number.get(index, coming)
        slots: dict[int, int] = {}
        least = 0
        for index in order:
            if index in number:
                least = slots[index] = max(least, number[index])
                continue
            coming = following[index]
            most = len(utterances) if coming is None else coming - 1
            slots[index] = max(least, min(most, bisect_right(ends, self.at(index))))
        return slots


def _is_answered(utterance: UserUtterance, utterances: Sequence[UserUtterance], agent: Sequence[SoundSpan]) -> bool:
    """Whether a sound of the user without words in any log was speech: long, and after it the agent speaks anew."""
    sound = utterance.sounds[0]
    if sound.length is None or sound.length < _SPEECH:
        return False
    until = min((other.at for other in utterances if other.at > utterance.at), default=float("inf"))
    before = [one for one in agent if one.at < sound.at]
    if not before or before[-1].until > sound.at:
        return False
    return any(sound.until <= one.at < min(until, sound.until + _SOON) for one in agent)
