"""A log against the sound of its call: how far apart their clocks are, and what only one of the two has.

Everything here works on spans of time: when the log says that a speaker spoke, and when voice activity heard them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from statistics import median
from typing import NamedTuple

Spans = Sequence[tuple[float, float]]

PAUSE = 0.6
"""Seconds. A shorter silence is inside a turn."""
NEAR = 0.5
"""Seconds around a logged turn in which its sound is looked for."""
FAR = 5.0
"""Seconds. Sound that no turn has may be that of a turn without sound which is no farther away."""
LEAST_SOUND = 0.2
"""Seconds of speech that a logged turn needs to be in the sound, or 30 % of it where it is shorter."""
LEAST_UNLOGGED = 0.5
"""Seconds. A shorter piece of speech outside the logged turns is the edge of a turn, a cough or a click."""
FEWEST = 3
"""Logged turns that have to fit before a shift of the clocks is believed."""
FITTING = 0.6
"""The share of starts, of the fewer of log and sound, that are heard within `NEAR` of where they are logged …"""
CONTAINED = 0.8
"""… and of the speech of the shorter of the two that is in the other, or the recording may be of another call."""
MANY = 10
"""So many turns hardly fit the sound of another call by chance."""
ALIKE, FEW_ALIKE = 0.7, 0.9
"""The agreement of log and sound, from 0 to 1, that says who is on which channel; and of fewer turns."""
FEWEST_FOR_DRIFT = 6
LEAST_DURATION = 60.0
"""Seconds from the first of these to the last."""
ON_LINE, LEAST_SLOPE = 0.1, 0.3
"""Seconds that starts may be off a line of drift, and by which the first and the last have to be apart for one: voice
activity hears a start to about 0.1 s."""
FEWEST_FOR_SLOPE = 4
RIVAL = 0.9
"""A second shift that fits so well, as a share of the best one, leaves it open which is right."""
_BIN = 0.5
_CANDIDATES = 5
_ROUNDS = 8
_MOST = 300
"""Turns that are compared with each other, evenly spread: a call of three hours has more."""


class LoggedTurn(NamedTuple):
    """Something that the log says was spoken, in seconds of the log; `seq` is its event."""

    seq: int
    speaker: str
    spans: tuple[tuple[float, float], ...]

    @property
    def start(self) -> float:
        return min(start for start, _ in self.spans)

    @property
    def end(self) -> float:
        return max(end for _, end in self.spans)


class Shift(NamedTuple):
    """Seconds of the log are `sound + offset + drift * sound`."""

    offset: float
    drift: float = 0.0
    """Seconds per second."""
    turns: int = 0
    """Turns whose starts fit; 0 where it was stated, not estimated."""
    duration: float = 0.0
    """Seconds from the first of them to the last."""
    may_drift: bool = False
    """Too few starts are near one line to say whether a clock runs faster, or each is off by itself."""

    def to_log(self, sound: float) -> float:
        return sound + self.offset + self.drift * sound

    def to_sound(self, log: float) -> float:
        return (log - self.offset) / (1 + self.drift)

    @property
    def has_drift(self) -> bool:
        """Enough turns fit, over enough time, to say whether one clock runs faster."""
        return self.turns >= FEWEST_FOR_DRIFT and self.duration >= LEAST_DURATION


class TurnSound(NamedTuple):
    """The sound of a logged turn, in seconds of the sound."""

    seconds: float
    """Speech in it."""
    start: float | None
    """None where it cannot be heard, because speech of the same track goes on from the turn before."""
    error: float | None
    """Logged start − start of the sound, in seconds: a positive one is logged too late."""
    shares_breath: bool = False
    """Its speech goes on into another turn, or comes from one: how much is its own is uncertain."""


class UnloggedSpeech(NamedTuple):
    """Speech that no logged turn has, in seconds of the sound."""

    speaker: str
    start: float
    end: float
    seconds: float
    """Without the pauses in it."""


class LogComparison(NamedTuple):
    """What is known of a log and the sound of its call."""

    shift: Shift
    sounds: Mapping[int, TurnSound]
    """By seq of the logged turn."""
    missing: tuple[LoggedTurn, ...]
    """Turns of the log that are not in the sound."""
    outside: tuple[LoggedTurn, ...]
    """Those that were spoken before the recording began, or after it ended."""
    unlogged: tuple[UnloggedSpeech, ...]
    speech: float
    """Seconds of speech of all speakers."""


def joined(spans: Spans, pause: float = PAUSE) -> list[tuple[float, float]]:
    """Spans in order, with shorter silences between them filled."""
    runs: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if runs and start - runs[-1][1] < pause:
            runs[-1] = (runs[-1][0], max(end, runs[-1][1]))
        else:
            runs.append((start, end))
    return runs


def total(spans: Spans) -> float:
    return sum(end - start for start, end in spans)


def shared(first: Spans, second: Spans) -> list[tuple[float, float]]:
    """Where both are. Each is in order and without overlaps."""
    both: list[tuple[float, float]] = []
    left = right = 0
    while left < len(first) and right < len(second):
        start, end = max(first[left][0], second[right][0]), min(first[left][1], second[right][1])
        if start < end:
            both.append((start, end))
        if first[left][1] <= second[right][1]:
            left += 1
        else:
            right += 1
    return both


def without(spans: Spans, cut: Spans) -> list[tuple[float, float]]:
    """What is left of spans outside of others. Both are in order and without overlaps."""
    left: list[tuple[float, float]] = []
    index = 0
    for start, end in spans:
        at = start
        while index < len(cut) and cut[index][1] <= at:
            index += 1
        inner = index
        while inner < len(cut) and cut[inner][0] < end:
            if at < cut[inner][0]:
                left.append((at, cut[inner][0]))
            at = max(at, cut[inner][1])
            inner += 1
        if at < end:
            left.append((at, end))
    return left


# The shift of the clocks


def estimated_shift(log: Sequence[LoggedTurn], sound: Mapping[str, Spans], stated: float | None) -> Shift | str:
    """How the clock of the log relates to the sound; or a reason code.

    Each pair of a logged start and a start in the sound is a vote for the offset between them, with the more weight
    the more alike their lengths are. The best offsets are refined by the starts that fit, with the median of their
    differences and the median of all slopes between them, and the one counts under which log and sound say most
    often at the same time that a speaker speaks. `stated` is the offset that the log itself gives, if any: of several
    that fit about as well, the nearest one to it counts; without it they leave the shift open.
    """
    logged, heard = _turns_of(log, sound)
    if _count(logged, heard) < FEWEST:
        return "too_few_turns"
    ranked = _fitting(logged, heard, stated)
    if not ranked:
        return "log_does_not_fit_sound"
    best, chosen = max(ranked, key=lambda pair: (pair[0], -abs(pair[1].offset)))
    rivals = [shift for fit, shift in ranked if fit >= RIVAL * best and abs(shift.offset - chosen.offset) > 2 * NEAR]
    if rivals and stated is None:
        return "offset_ambiguous"
    if rivals:
        chosen = min((chosen, *rivals), key=lambda shift: abs(shift.offset - (stated or 0.0)))
    return chosen if chosen.has_drift else _with_slope(chosen, list(_pairs(chosen, logged, heard)))


def fitting_shift(log: Sequence[LoggedTurn], sound: Mapping[str, Spans], stated: float | None) -> Shift | None:
    """The shift under which a log fits the sound best; None where it may be the sound of another call.

    A few turns fit those of another call by chance. So fewer than `FEWEST` are compared at the stated offset only, and
    fewer than `MANY` have to fit near it, or nearly everywhere.
    """
    logged, heard = _turns_of(log, sound)
    count = _count(logged, heard)
    ranked = _fitting(logged, heard, stated) if count >= FEWEST else []
    if count < FEWEST and stated is not None:
        ranked = [(_agreement(Shift(stated), logged, heard), Shift(stated))]
    fitting = [
        (fit, shift)
        for fit, shift in ranked
        if fit >= ALIKE
        and (count >= MANY or fit >= FEW_ALIKE or (stated is not None and abs(shift.offset - stated) <= 2 * NEAR))
    ]
    return max(fitting)[1] if fitting else None


def goes_on_through(log: Sequence[LoggedTurn], sound: Mapping[str, Spans]) -> bool:
    """Whether speech goes on through the pauses of the log, as with a television: it says nothing about the turns."""
    logged, heard = _turns_of(log, sound)
    return sum(map(len, logged.values())) >= FEWEST > sum(map(len, heard.values())) and sum(
        map(total, heard.values())
    ) >= sum(map(total, logged.values()))


def _turns_of(log: Sequence[LoggedTurn], sound: Mapping[str, Spans]) -> tuple[dict[str, Spans], dict[str, Spans]]:
    """Turns by speaker, as logged and as heard."""
    logged: dict[str, Spans] = {
        who: joined([span for turn in log if turn.speaker == who for span in turn.spans]) for who in sound
    }
    return logged, {who: joined(spans) for who, spans in sound.items()}


def _count(logged: Mapping[str, Spans], heard: Mapping[str, Spans]) -> int:
    """Turns of the fewer of log and sound."""
    return min(sum(map(len, logged.values())), sum(map(len, heard.values())))


def _fitting(
    logged: Mapping[str, Spans], heard: Mapping[str, Spans], stated: float | None
) -> list[tuple[float, Shift]]:
    """The shifts under which the log fits the sound, each with how well it does."""
    shifts = (_refined(Shift(offset), logged, heard) for offset in _voted(logged, heard, stated))
    return [
        (_agreement(shift, logged, heard), shift)
        for shift in shifts
        if shift.turns >= FEWEST and _fits(shift, logged, heard)
    ]


def _fits(shift: Shift, logged: Mapping[str, Spans], heard: Mapping[str, Spans]) -> bool:
    """Whether log and sound agree more than those of two calls do, under the best of all offsets."""
    near = sum(abs(log - shift.to_log(sound)) <= NEAR for log, sound in _pairs(shift, logged, heard))
    both = of_log = of_sound = 0.0
    for who, turns in logged.items():
        mapped = [(shift.to_log(start), shift.to_log(end)) for start, end in heard[who]]
        both += total(shared(turns, mapped))
        of_log += total(turns)
        of_sound += total(mapped)
    return near >= FITTING * _count(logged, heard) and both >= CONTAINED * min(of_log, of_sound)


def _voted(logged: Mapping[str, Spans], heard: Mapping[str, Spans], stated: float | None) -> list[float]:
    """The offsets with most votes, at most a few, and the stated one."""
    votes: list[tuple[float, float]] = []
    for who, turns in logged.items():
        for start, end in _spread(turns):
            for at, until in _spread(heard[who]):
                shorter, longer = sorted((end - start, until - at))
                votes.append((start - at, shorter / longer if longer > 0 else 0.0))
    votes.sort()
    weights: list[tuple[float, float]] = []
    first, weight = 0, 0.0
    for offset, vote in votes:
        weight += vote
        while votes[first][0] < offset - _BIN:
            weight -= votes[first][1]
            first += 1
        weights.append((weight, (votes[first][0] + offset) / 2))
    chosen = [] if stated is None else [stated]
    for _, offset in sorted(weights, reverse=True):
        if len(chosen) > _CANDIDATES:
            break
        if all(abs(offset - other) > 2 * _BIN for other in chosen):
            chosen.append(offset)
    return chosen


def _spread(spans: Spans) -> Spans:
    return spans if len(spans) <= _MOST else [spans[index * len(spans) // _MOST] for index in range(_MOST)]


def _refined(shift: Shift, logged: Mapping[str, Spans], heard: Mapping[str, Spans]) -> Shift:
    """The shift by the starts that fit it, found again until it no longer changes."""
    for _ in range(_ROUNDS):
        pairs = list(_pairs(shift, logged, heard))
        better = _line(pairs) if pairs else shift._replace(turns=0)
        if better == shift or not pairs:
            return better
        shift = better
    return shift


def _pairs(shift: Shift, logged: Mapping[str, Spans], heard: Mapping[str, Spans]) -> Iterator[tuple[float, float]]:
    """Starts in the log and in the sound that are each other's nearest, and near."""
    for who, turns in logged.items():
        starts = [start for start, _ in turns]
        mapped = [shift.to_log(at) for at, _ in heard[who]]
        for start in starts:
            nearest = _nearest(mapped, start)
            if nearest is None or abs(mapped[nearest] - start) > 2 * NEAR:
                continue
            back = _nearest(starts, mapped[nearest])
            if back is not None and starts[back] == start:
                yield start, heard[who][nearest][0]


def _nearest(ascending: Sequence[float], value: float) -> int | None:
    index = bisect_left(ascending, value)
    near = [one for one in (index - 1, index) if 0 <= one < len(ascending)]
    return min(near, key=lambda one: abs(ascending[one] - value), default=None)


def _line(pairs: Sequence[tuple[float, float]]) -> Shift:
    """The line through pairs of starts that half of them may miss: medians of slopes and of what is left."""
    sounds = sorted(sound for _, sound in pairs)
    shift = Shift(0.0, 0.0, len(pairs), sounds[-1] - sounds[0])
    drift = _slope(pairs) if shift.has_drift else 0.0
    offset = round(median(log - sound - drift * sound for log, sound in pairs), 6)
    return shift._replace(offset=offset, drift=drift)


def _with_slope(shift: Shift, pairs: Sequence[tuple[float, float]]) -> Shift:
    """The shift with the drift of starts that are near one line, though they are too few to measure it."""
    drift = _slope(pairs)
    offset = median(log - sound - drift * sound for log, sound in pairs)
    near = sum(abs(log - sound - drift * sound - offset) <= ON_LINE for log, sound in pairs)
    is_clear = abs(drift) * shift.duration >= LEAST_SLOPE and near >= 0.75 * len(pairs)
    if not is_clear or len(pairs) < FEWEST:
        return shift
    if len(pairs) < FEWEST_FOR_SLOPE:
        return shift._replace(may_drift=True)
    return shift._replace(offset=round(offset, 6), drift=drift)


def _slope(pairs: Sequence[tuple[float, float]]) -> float:
    """The median slope of log − sound, in seconds per second."""
    points = sorted((sound, log) for log, sound in pairs)
    points = points if len(points) <= _MOST else points[:: -(-len(points) // _MOST)]
    slopes = [
        ((later_log - later) - (log - sound)) / (later - sound)
        for (sound, log), (later, later_log) in combinations(points, 2)
        if later - sound >= 1.0
    ]
    return round(median(slopes), 9) if slopes else 0.0


def _agreement(shift: Shift, logged: Mapping[str, Spans], heard: Mapping[str, Spans]) -> float:
    """Of all that log and sound hold of each speaker, the share that is in both."""
    both = either = 0.0
    for who, turns in logged.items():
        mapped = [(shift.to_log(start), shift.to_log(end)) for start, end in heard[who]]
        both += 2 * total(shared(turns, mapped))
        either += total(turns) + total(mapped)
    return both / either if either else 0.0


# What only one of the two has


def compare(
    log: Sequence[LoggedTurn], sound: Mapping[str, Spans], shift: Shift, extent: tuple[float, float] | None = None
) -> LogComparison:
    """Find the sound of each turn. `sound` is the voice activity of each speaker of the log, or of "" for all.

    `extent` is the beginning and the end of the recording, in seconds of the sound.
    """
    sounds: dict[int, TurnSound] = {}
    missing: list[LoggedTurn] = []
    unlogged: list[UnloggedSpeech] = []
    for who, heard in sound.items():
        turns = sorted((turn for turn in log if turn.speaker == who), key=lambda turn: (turn.start, turn.seq))
        side = _Side(turns, heard, shift)
        sounds |= side.sounds
        missing += side.missing
        unlogged += [UnloggedSpeech(who, *piece, total(shared([piece], side.heard))) for piece in side.unlogged()]
    missing.sort(key=lambda turn: (turn.start, turn.seq))
    outside = [turn for turn in missing if extent is not None and _is_outside(turn, shift, extent)]
    return LogComparison(
        shift,
        sounds,
        tuple(turn for turn in missing if turn not in outside),
        tuple(outside),
        tuple(sorted(unlogged, key=lambda one: (one.start, one.speaker))),
        sum(total(spans) for spans in sound.values()),
    )


def _is_outside(turn: LoggedTurn, shift: Shift, extent: tuple[float, float]) -> bool:
    """Whether too little of a turn is in the time of the recording to be heard there."""
    inside = shared([(shift.to_sound(turn.start), shift.to_sound(turn.end))], [extent])
    return total(inside) < NEAR


class _Cell(NamedTuple):
    """The time in which the sound of a turn is looked for: its spans, and what is near and nearer to no other turn."""

    start: float
    end: float
    turn: int


class _Side:
    """The turns and the sound of one speaker."""

    def __init__(self, turns: Sequence[LoggedTurn], heard: Spans, shift: Shift) -> None:
        self.turns, self.heard, self.shift = turns, joined(heard, 0.0), shift
        self.mapped = [(shift.to_log(start), shift.to_log(end)) for start, end in self.heard]
        self.cells = list(_cells(turns))
        self.owners = [self._owners(*span) for span in self.mapped]
        """Of each span of sound: seconds of it by turn."""
        self.displaced: dict[int, tuple[float, float]] = {}
        self.sounds: dict[int, TurnSound] = {}
        self.missing: list[LoggedTurn] = []
        seconds = [sum(owner.get(number, 0.0) for owner in self.owners) for number in range(len(turns))]
        silent = [number for number, turn in enumerate(turns) if seconds[number] < _least(turn)]
        self._find_displaced(silent)
        for number, turn in enumerate(turns):
            if number in self.displaced:
                self.sounds[turn.seq] = self._displaced_sound(number)
            elif number in silent:
                self.missing.append(turn)
            else:
                self.sounds[turn.seq] = self._sound(number, seconds[number])

    def _owners(self, start: float, end: float) -> dict[int, float]:
        owners: dict[int, float] = {}
        for cell in self.cells[max(0, bisect_left(self.cells, start, key=_end_of)) :]:
            if cell.start >= end:
                break
            if (seconds := min(end, cell.end) - max(start, cell.start)) > 0:
                owners[cell.turn] = owners.get(cell.turn, 0.0) + seconds
        return owners

    def _sound(self, number: int, seconds: float) -> TurnSound:
        spans = [index for index, owner in enumerate(self.owners) if owner.get(number, 0.0) > 0]
        own = [index for index in spans if max(self.owners[index], key=self.owners[index].__getitem__) == number]
        is_shared = any(
            share >= LEAST_SOUND for index in spans for turn, share in self.owners[index].items() if turn != number
        )
        first = own[0] if own else None
        if first is None or any(turn < number and share >= LEAST_SOUND for turn, share in self.owners[first].items()):
            return TurnSound(seconds, None, None, shares_breath=True)
        start = self.heard[first][0]
        return TurnSound(seconds, start, self._error(number, start), is_shared)

    def _displaced_sound(self, number: int) -> TurnSound:
        start, end = self.displaced[number]
        inside = [(max(start, at), min(end, until)) for at, until in self.heard if at < end and until > start]
        return TurnSound(total(inside), start, self._error(number, start))

    def _error(self, number: int, start: float) -> float:
        return round(self.turns[number].start - start, 6)

    def _find_displaced(self, silent: Sequence[int]) -> None:
        """Turns without sound where they are logged, whose sound is a little before or after, and is no other's."""
        free = [
            run
            for run in joined([span for span, owner in zip(self.heard, self.owners, strict=True) if not owner])
            if run[1] - run[0] >= LEAST_UNLOGGED
        ]
        for number in silent:
            turn = self.turns[number]
            length = turn.end - turn.start
            near = [
                (abs(self.shift.to_log(run[0]) - turn.start), run)
                for run in free
                if abs(self.shift.to_log(run[0]) - turn.start) <= FAR
                and 0.5 <= (run[1] - run[0]) / max(length, 1e-9) <= 2
            ]
            if near:
                _, run = min(near)
                free.remove(run)
                self.displaced[number] = run

    def unlogged(self) -> Iterator[tuple[float, float]]:
        """Speech outside of all turns, in seconds of the sound."""
        logged = joined([(start - NEAR, end + NEAR) for turn in self.turns for start, end in turn.spans], pause=0.0)
        covered = [(self.shift.to_sound(start), self.shift.to_sound(end)) for start, end in logged]
        # A turn that is logged late or early is no speech without a log: its length counts from where it is heard.
        heard = [(start, start + turn.end - turn.start + NEAR) for turn, start in self._started()]
        covered = joined([*covered, *heard, *self.displaced.values()], pause=0.0)
        for start, end in without(joined(self.heard), covered):
            if end - start >= LEAST_UNLOGGED:
                yield start, end

    def _started(self) -> Iterator[_StartedTurn]:
        for turn in self.turns:
            sound = self.sounds.get(turn.seq)
            if sound is not None and sound.start is not None:
                yield _StartedTurn(turn, sound.start)


class _StartedTurn(NamedTuple):
    turn: LoggedTurn
    start: float


def _end_of(cell: _Cell) -> float:
    return cell.end


def _least(turn: LoggedTurn) -> float:
    return min(LEAST_SOUND, 0.3 * (turn.end - turn.start))


def _cells(turns: Sequence[LoggedTurn]) -> Iterator[_Cell]:
    """Of each moment near a logged span: the turn that it belongs to. Between two turns the middle is the border."""
    spans = sorted((start, end, number) for number, turn in enumerate(turns) for start, end in turn.spans)
    before = float("-inf")
    for index, (start, end, number) in enumerate(spans):
        following = next((later[0] for later in spans[index + 1 :] if later[2] != number), float("inf"))
        last = min(end + NEAR, (max(end, start) + following) / 2) if following > end else max(start, following)
        first = max(start - NEAR, before)
        if first < last:
            yield _Cell(first, last, number)
        before = max(before, last)


def starts_over(spans: Spans, other: Spans, least: float) -> list[tuple[float, float]]:
    """The spans that begin while the other side speaks, and over which it speaks for so many seconds at least."""
    runs = joined(other)
    return [
        (start, end)
        for start, end in joined(spans)
        if any(at < start < until for at, until in runs) and total(shared([(start, end)], runs)) >= least
    ]


def are_separate(tracks: Iterable[Spans]) -> bool:
    """Whether each track has its own speaker: False where one is heard on another's for most of the time.

    Both sides in both channels, or an echo of the agent in the caller's: then it is unknown who speaks.
    """
    return all(
        (both := total(shared(joined(one, 0.0), joined(other, 0.0)))) < 10.0
        or both < 0.6 * min(total(one), total(other))
        for one, other in combinations([sorted(track) for track in tracks], 2)
    )
