"""What the agent said: texts meant to be spoken, laid on sounds and on the user's utterances."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from rapidfuzz.distance import Prefix

from convoscope.ingest.formats.voice_logs.logs import UNHEARD
from convoscope.ingest.formats.voice_logs.sounds import NOWHERE, SoundSpan, assigned
from convoscope.ingest.report import Notes
from convoscope.text.folding import compact, likeness, similarity

if TYPE_CHECKING:
    from convoscope.ingest.formats.voice_logs.join import Join, UserUtterance

_PAUSE = 2.0
"""A silence between two words, in seconds, that parts them."""
_TURN_PAUSE = 1.0
"""The same where the user begins to speak in it."""
_SAID = 20
"""Characters that must have been spoken of a reply for it to count as begun."""
_EARLY = 0.7
_SOON = 10.0
"""Seconds from a reply's writing within which its first word is spoken, mostly."""
_BETTER = 0.02
_NEVER = float("inf")


class ReplyPiece:
    """Some words meant to be spoken: their times, the sounds they are heard in, the span they fall into."""

    __slots__ = ("_text", "at", "by", "cut", "heard_in", "line", "records", "since", "slot", "sounds", "words")

    def __init__(self, at: float, words: list[tuple[float, str]], records: list[int], slot: int = 0) -> None:
        self.at = at
        self.since = self.by = at
        """The earliest and the latest that it may have been logged; other than `at` only where that is not known."""
        self.words = words
        self.records = records
        self.slot = slot
        self.sounds: list[SoundSpan] = []
        self.heard_in: SoundSpan | None = None
        """The sound that it begins in, be it its own or shared with the piece before."""
        self.line: int | None = None
        """Index in the log of the model's reply that they come from."""
        self.cut = False
        self._text = ""

    @property
    def text(self) -> str:
        """The words in one; asked for only when all of them are there."""
        if not self._text:
            self._text = " ".join([word for _, word in self.words])
        return self._text


class Reply(NamedTuple):
    """One utterance of the agent."""

    slot: int
    order: float
    """Where it is among the tool calls of its span."""
    at: float
    text: str
    sounds: list[SoundSpan]
    records: list[int]
    line: int | None = None
    cut: bool = False
    sent: float = 0.0
    """When its first word was logged, or, where that is not known, heard."""


class Replies(NamedTuple):
    """All that the agent said, and the sounds that have found their words."""

    replies: list[Reply]
    sounds: list[SoundSpan]
    unsaid: list[int]


def replies(
    join: Join, utterances: Sequence[UserUtterance], sounds: list[SoundSpan], slot: dict[int, int], notes: Notes
) -> Replies:
    """The agent's utterances, from the framework's log where there is one, else from the model's replies."""
    lines = [
        index
        for index in join.order("audit")
        if join.log[index].kind == "assistant" and join.log[index].text and join.log[index].text not in UNHEARD
    ]
    starts = [utterance.at for utterance in utterances]
    pieces = _sent(join, starts, notes)
    sent = bool(pieces)
    unsaid: list[int] = []
    if sent:
        pieces, missing = _by_line(join, pieces, lines, notes)
        for line in missing:
            if _was_heard(join, line, slot.get(line, 0), pieces, sounds, starts):
                notes.repaired("voice_text_missing", f"{join.log[line].text[:60]!r} was spoken: there is sound for it")
                pieces.append(_piece(join, line, slot))
            else:
                unsaid.append(line)
        pieces.sort(key=lambda piece: piece.at)
    else:
        pieces = [_piece(join, line, slot) for line in lines]
    _lay(join, pieces, sounds, starts, lead=not sent)
    called = _called_before(join, slot)
    for piece in pieces:
        if piece.heard_in is not None:
            piece.slot = bisect_right(starts, piece.heard_in.at)
        elif piece.line is not None:
            piece.slot = slot.get(piece.line, 0)
        else:
            piece.slot = bisect_right(starts, piece.at)
        if piece.line is not None:
            # An answer does not come before the tool call that it rests on, whatever the clocks say.
            piece.slot = max(piece.slot, called.get(piece.line, 0))
    if not sent and sounds:
        unsaid = [piece.line for piece in pieces if piece.heard_in is None and piece.line is not None]
        pieces = [piece for piece in pieces if piece.heard_in is not None]
    for line in unsaid:
        notes.repaired("reply_not_spoken", f"{join.log[line].text[:60]!r}")
    finished = _finished(join, pieces, sounds, starts, unsaid)
    for reply in finished.replies:
        if sent and not reply.text and any(sound.texts for sound in reply.sounds):
            notes.repaired("voice_text_missing", f"sound of {reply.at:.3f} s: known by what the caller heard alone")
    return finished


def _called_before(join: Join, slot: dict[int, int]) -> dict[int, int]:
    """For each reply of the model, the span of the last tool call before it in the audit log."""
    called: dict[int, int] = {}
    latest = 0
    for index in join.order("audit"):
        if join.log[index].kind == "tool_call":
            latest = slot.get(index, latest)
        elif join.log[index].kind == "assistant":
            called[index] = latest
    return called


def _was_heard(
    join: Join, line: int, slot: int, pieces: Sequence[ReplyPiece], sounds: Sequence[SoundSpan], starts: Sequence[float]
) -> bool:
    """Whether a reply was spoken although no log of the voice has it.

    The caller's words for the span are more like what was sent with the reply than without it; or,
    where the caller wrote nothing down, there is sound without any words, of about its length.
    """
    own_sounds = [sound for sound in sounds if bisect_right(starts, sound.at) == slot]
    here = [piece for piece in pieces if bisect_right(starts, piece.at) == slot]
    sent = " ".join(piece.text for piece in here)
    heard_text = " ".join(join.log[text].text for sound in own_sounds for text in sound.texts)
    reply = join.log[line].text
    if heard_text:
        before = " ".join(piece.text for piece in here if piece.at <= join.at(line))
        both = f"{before} {reply} {sent[len(before) :]}"
        return similarity(both, heard_text) > similarity(sent, heard_text) + _BETTER
    length = sum(sound.length or 0.0 for sound in own_sounds)
    return bool(own_sounds) and not sent and 0.5 < (len(reply.split()) / 2.7 + 0.5) / (length + 0.5) < 2


def _piece(join: Join, line: int, slot: dict[int, int]) -> ReplyPiece:
    piece = ReplyPiece(join.at(line), [(join.at(line), join.log[line].text)], [line], slot.get(line, 0))
    piece.line = line
    piece.since, piece.by = join.earliest(line), join.latest(line)
    return piece


def _sent(join: Join, starts: Sequence[float], notes: Notes) -> list[ReplyPiece]:
    """What was sent to the speech engine, parted where turns end, where the user speaks, and at long pauses."""
    pieces: list[ReplyPiece] = []
    shift = join.offsets.framework
    spoken = [(number, run) for number, run in enumerate(join.runs) if run.kind in ("tts_text", "llm_response")]
    if spoken and len(join.runs) == len(spoken):
        notes.repaired("turn_markers_missing", "the framework's log was parted by pauses and by the user's speech")
    for number, run in spoken:
        record = join.first_run + number
        logged = [ms for ms, _ in run.parts]
        untimed = {at for at, ms in enumerate(logged) if ms is None} if None in logged and len(logged) > 1 else set()
        # One without a time has that of the word before it; the first, that of its run.
        times, before = list[float](), join.at(record)
        for ms in logged:
            before = before if ms is None else ms / 1000 + shift
            times.append(before)
        words = [(at, text) for at, (_, text) in zip(times, run.parts, strict=True)]
        cuts = [
            at
            for at, (one, after) in enumerate(pairwise(times), 1)
            if after - one > _PAUSE
            or (after - one > _TURN_PAUSE and bisect_right(starts, one) < bisect_right(starts, after))
        ]
        if untimed:
            cuts = sorted({*cuts, *untimed, *(at + 1 for at in untimed)} - {0, len(words)})
        begin = 0
        for at in (*cuts, len(words)):
            pieces.append(ReplyPiece(words[begin][0], words[begin:at], [record]))
            if begin in untimed:
                # What has no time of its own was said before what follows it.
                pieces[-1].by = next((words[on][0] for on in range(at, len(words)) if on not in untimed), _NEVER)
            begin = at
        following = join.runs[number + 1] if number + 1 < len(join.runs) else None
        pieces[-1].cut = following is not None and bool(following.interrupted)
    return [piece for piece in pieces if piece.text.strip()]


def _lay(join: Join, pieces: list[ReplyPiece], sounds: list[SoundSpan], starts: Sequence[float], *, lead: bool) -> None:
    """Lay pieces on sounds. `lead`: texts were logged when the model had made them, before they were spoken."""
    if not sounds or not pieces:
        return
    where_to = _plainly(pieces, sounds, lead=lead) or _by_likeness(join, pieces, sounds, lead=lead)
    owner: dict[int, ReplyPiece] = {}
    for piece, where in zip(pieces, where_to, strict=True):
        if where != NOWHERE:
            piece.heard_in = sounds[where]
            owner.setdefault(where, piece)
    holder: ReplyPiece | None = None
    for number, sound in enumerate(sounds):
        holder = owner.get(number, holder)
        if holder is None:
            continue
        # A sound without words of its own goes on with what was being said, if it follows at once.
        goes_on = False
        if holder.sounds and not sound.texts:
            before = holder.sounds[-1]
            is_near = sound.at - before.until < _PAUSE or holder.words[-1][0] >= sound.at - _EARLY
            goes_on = is_near and bisect_right(starts, before.at) >= bisect_right(starts, sound.at)
        if number in owner or goes_on:
            holder.sounds.append(sound)


def _plainly(pieces: list[ReplyPiece], sounds: list[SoundSpan], *, lead: bool) -> list[int] | None:
    """Each piece with the sound it was logged nearest to; None unless that pairs them one to one."""
    if len(pieces) != len(sounds):
        return None
    for piece, sound in zip(pieces, sounds, strict=True):
        late = piece.since - sound.at > max(_EARLY, sound.until - sound.at)
        if late or sound.at - piece.by > (8.0 if lead else 2.0):
            return None
    return list(range(len(pieces)))


def _by_likeness(join: Join, pieces: list[ReplyPiece], sounds: list[SoundSpan], *, lead: bool) -> list[int]:
    heard_texts = [" ".join(join.log[text].text for text in sound.texts) for sound in sounds]
    texts = [piece.text for piece in pieces]
    allowed = 8.0 if lead else 1.5

    def cost(number: int, where: int) -> float:
        sound, piece = sounds[where], pieces[number]
        early = max(0.0, sound.at - piece.by - allowed)
        late = max(0.0, piece.since - max(sound.until, sound.at) - _EARLY)
        away = min(4.0, 0.5 * early + 0.5 * late) + 0.01 * min(10.0, abs(sound.at - piece.at))
        if not heard_texts[where]:
            return away + 0.8
        return away + 2.0 * (1 - likeness(texts[number], heard_texts[where]))

    empty = [0.5 if text else 0.1 for text in heard_texts]
    return assigned(len(pieces), empty, cost, again=0.2, alone=1.6 if lead else 3.0)


class _Match(NamedTuple):
    """A reply of the model in the characters of all that was sent."""

    line: int
    begin: int
    end: int
    worth: float


def _by_line(
    join: Join, pieces: list[ReplyPiece], lines: list[int], notes: Notes
) -> tuple[list[ReplyPiece], list[int]]:
    """What was sent, parted where the model's replies begin and end, and the replies that are not in it."""
    if _are_the_same(join, pieces, lines):
        return pieces, []
    words = [_Word(piece, at, word, compact(word)) for piece in pieces for at, word in piece.words]
    whole = "".join([word.key for word in words])
    when: dict[int, float] = {}
    at = 0
    for word in words:
        when.setdefault(at, word.at)
        at += len(word.key)
    matches: list[_Match] = []
    for line in lines:
        matches += _matches(join, line, whole, when)
    chain = _chain(matches)
    for match in chain:
        if match.end - match.begin < len(compact(join.log[match.line].text)):
            notes.repaired("reply_cut_to_spoken", f"{join.log[match.line].text[:60]!r}")
    taken = {match.line for match in chain}
    return _cut(words, chain), [line for line in lines if line not in taken]


def _are_the_same(join: Join, pieces: list[ReplyPiece], lines: list[int]) -> bool:
    """Each reply is a piece as it is, in one order: then nothing need be cut."""
    texts = [compact(piece.text) for piece in pieces]
    at = 0
    taken: list[tuple[ReplyPiece, int]] = []
    for line in lines:
        text = compact(join.log[line].text)
        while at < len(texts) and texts[at] != text:
            at += 1
        if at == len(texts):
            return False
        taken.append((pieces[at], line))
        at += 1
    for piece, line in taken:
        piece.line = line
    return True


class _Word(NamedTuple):
    piece: ReplyPiece
    at: float
    text: str
    key: str


def _matches(join: Join, line: int, whole: str, when: dict[int, float]) -> list[_Match]:
    """Where a reply is spoken: in whole, or, where it is nowhere so, from its beginning on."""
    matches: list[_Match] = []
    text, since, until = compact(join.log[line].text), join.earliest(line), join.latest(line)
    for part in (text, text[:_SAID]):
        begin = whole.find(part) if part else NOWHERE
        while begin >= 0:
            if begin in when:
                length = Prefix.similarity(whole[begin : begin + len(text)], text)
                # Words come within some seconds after the reply was written.
                away = max(0.0, max(when[begin] - until, since - when[begin]) - _SOON)
                matches.append(_Match(line, begin, begin + length, length - min(0.9 * length, away)))
            begin = whole.find(part, begin + 1)
        if matches:
            break
    return matches


def _chain(matches: list[_Match]) -> list[_Match]:
    """The matches that follow each other, each reply once, that are worth most together."""
    best: list[float] = []
    before: list[int] = []
    for number, match in enumerate(matches):
        value, origin = 0.0, NOWHERE
        for earlier in range(number):
            if matches[earlier].end <= match.begin and matches[earlier].line != match.line and best[earlier] > value:
                value, origin = best[earlier], earlier
        best.append(value + match.worth)
        before.append(origin)
    chain: list[_Match] = []
    at = max(range(len(matches)), key=best.__getitem__, default=NOWHERE)
    while at != NOWHERE:
        chain.append(matches[at])
        at = before[at]
    return chain[::-1]


def _cut(words: Sequence[_Word], chain: Sequence[_Match]) -> list[ReplyPiece]:
    """The words in pieces: each reply one, what lies between replies by the piece it came in."""
    reply_pieces: list[ReplyPiece] = []
    ahead = iter(chain)
    match = next(ahead, None)
    key: tuple[int, int | None] | None = None
    position = 0
    for word in words:
        while match is not None and position >= match.end:
            match = next(ahead, None)
        inside = match is not None and match.begin <= position and position + len(word.key) <= match.end
        line = match.line if match is not None and inside else None
        if not word.key and reply_pieces:
            # A dash between two replies, for instance, goes with the words before it.
            line = reply_pieces[-1].line
        now = (0 if line is not None else id(word.piece), line)
        if now != key:
            reply_pieces.append(ReplyPiece(word.at, [], []))
            reply_pieces[-1].line, reply_pieces[-1].by = line, word.piece.by
            key = now
        current = reply_pieces[-1]
        current.words.append((word.at, word.text))
        current.cut = word.piece.cut
        if word.piece.records[0] not in current.records:
            current.records += word.piece.records
        position += len(word.key)
    for current, after in pairwise(reply_pieces):
        # Only the last reply of a turn that was cut off was cut off itself.
        current.cut = current.cut and current.records[-1] != after.records[0]
    return reply_pieces


def _finished(
    join: Join,
    pieces: list[ReplyPiece],
    sounds: list[SoundSpan],
    starts: Sequence[float],
    unsaid: list[int],
) -> Replies:
    done: list[Reply] = []
    used: list[SoundSpan] = []
    for piece in pieces:
        order = join.at(piece.line) if piece.line is not None else piece.at
        at = piece.sounds[0].at if piece.sounds else piece.at
        sent = piece.at if piece.by == piece.at else at
        records = [*piece.records]
        if piece.line is not None and piece.line not in records:
            records.append(piece.line)
        slot = max(piece.slot, 0)
        done.append(Reply(slot, order, at, piece.text, piece.sounds, records, piece.line, piece.cut, sent))
        used += piece.sounds
    for sound in sounds:
        if sound in used:
            continue
        slot = bisect_right(starts, sound.at)
        # Sound without words of its own is part of what was said around it; else the sound itself is all there is.
        around = [number for number, reply in enumerate(done) if reply.slot == slot]
        if around and not sound.texts:
            begun = [number for number in around if done[number].at <= sound.at + _EARLY]
            reply = done[begun[-1] if begun else around[0]]
            reply.sounds.append(sound)
            reply.sounds.sort(key=lambda one: one.at)
        else:
            done.append(Reply(slot, sound.at, sound.at, "", [sound], []))
        used.append(sound)
    return Replies(done, used, unsaid)
