"""What a judge that listens says of how the agent's voice sounds: clear, well paced, warm, well pronounced."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator

import msgspec

from convoscope.conversation import Conversation
from convoscope.metrics.declaration import HIGHER, LOWER, SHARE, SUM_OVER_SUM, TURN, TenPoints, metric
from convoscope.metrics.judged_calls import EVIDENCE_NOT_FOUND
from convoscope.metrics.judged_parts import FAILURE_MODE
from convoscope.metrics.judged_sound import AGENT, TONE, HeardTurn, Listening, heard_turns
from convoscope.resources.judge import Judge
from convoscope.resources.sound import Recording
from convoscope.scores.observation import MEASURED, Observation
from convoscope.scores.reducers import MEAN, MEAN_OF_CONVERSATIONS, Reduce
from convoscope.text.comparison import is_without_blanks
from convoscope.text.folding import folded
from convoscope.views.eva.call_state import without_labels
from convoscope.views.items import WHOLE, Subject

_WORD = re.compile(r"\w+")


def _tone(heard: HeardTurn, _: Conversation) -> Observation:
    ratings = heard.answer.verdict.answer["ratings"]
    return heard.scored(ratings={name: ratings[name] for name in TONE})


def _pronounced(heard: HeardTurn, _: Conversation) -> Observation:
    named = heard.answer.verdict.answer["mispronounced"]
    text = without_labels(heard.text)
    if absent := [one["word"] for one in named if not has_words(text, one["word"])]:
        return heard.unmeasured(EVIDENCE_NOT_FOUND, f"{absent[0][:200]!r} is not in the text")
    is_best = heard.rating == heard.answer.rubric.high
    if not named and not is_best:
        return heard.unmeasured(EVIDENCE_NOT_FOUND, f"rated {heard.rating:g}, but no word is named")
    if named and is_best:
        return heard.unmeasured("verdict_unusable", f"rated best, but {named[0]['word'][:200]!r} is named")
    return heard.scored(mispronounced=named)


def has_words(text: str, words: str) -> bool:
    """Whether whole words are in a text, in this order; case and punctuation do not count.

    >>> has_words("The Leicester line, please.", "leicester line"), has_words("It is nice.", "ice")
    (True, False)
    """
    wanted, there = _WORD.findall(folded(words)), _WORD.findall(folded(text))
    if is_without_blanks(text):
        return bool(wanted) and "".join(wanted) in "".join(there)
    length = len(wanted)
    return bool(wanted) and any(there[at : at + length] == wanted for at in range(len(there) - length + 1))


async def _verdicts(
    name: str, reading: Listening, conversation: Conversation, judge: Judge, recording: Recording
) -> AsyncIterator[Observation]:
    for heard in await heard_turns(name, AGENT, conversation, judge, recording):
        yield heard if isinstance(heard, Observation) else reading(heard, conversation)


@metric(
    "audio.tone_clarity",
    version=5,
    observes=TURN,
    unit="of 10",
    better=HIGHER,
    reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
    ten=TenPoints(0, 10, 7.0),
    importance=3,
    label="tone of the agent's voice",
    sensitive_to=(),
)
async def tone_clarity(conversation: Conversation, judge: Judge, recording: Recording) -> AsyncIterator[Observation]:
    """Does the agent's voice sound clear, at a good pace, and warm?

    Per turn of the agent the mean of three ratings from 1 to 10: clarity, pace, warmth. The judge is sent the clip of
    the turn and no text; it first writes down what it hears. Where that is not what the agent was given to say, the
    turn is unmeasured, unless the judge says that it cannot be understood (clarity 1 to 3).

    >>> value(tone_clarity, example("user: Are you open?", "assistant: Until six."))
    'no_judge'
    """
    async for observation in _verdicts("tone_clarity", _tone, conversation, judge, recording):
        yield observation


def _declare_part(part: str, question: str) -> object:
    def reading(heard: HeardTurn, _: Conversation) -> Observation:
        return heard.scored(heard.answer.verdict.answer["ratings"][part])

    async def verdicts(conversation: Conversation, judge: Judge, recording: Recording) -> AsyncIterator[Observation]:
        async for observation in _verdicts("tone_clarity", reading, conversation, judge, recording):
            yield observation

    verdicts.__doc__ = f"""{question}

    The rating of {part} in the answer that `audio.tone_clarity` reads: the judge is not asked again.

    >>> value("audio.tone_clarity.{part}", example("user: Are you open?", "assistant: Until six."))
    'no_judge'
    """
    return metric(
        f"audio.tone_clarity.{part}",
        version=5,
        observes=TURN,
        unit="of 10",
        better=HIGHER,
        reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
        importance=1,
        sensitive_to=(),
    )(verdicts)


tone_clarity_clarity = _declare_part("clarity", "Can the words of the agent's voice be understood at once?")
tone_clarity_pace = _declare_part("pace", "Does the agent's voice speak at a pace that is easy to follow?")
tone_clarity_warmth = _declare_part("warmth", "Does the agent's voice sound friendly?")


@metric(
    "audio.pronunciation_audio",
    variant="judge",
    version=5,
    observes=TURN,
    unit="of 10",
    better=HIGHER,
    reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
    ten=TenPoints(0, 10, 7.0),
    importance=3,
    label="pronunciation, by a judge",
    sensitive_to=(),
)
async def pronunciation_judged(
    conversation: Conversation, judge: Judge, recording: Recording
) -> AsyncIterator[Observation]:
    """Does the agent's voice pronounce the words as they are pronounced, as a judge hears it?

    Per turn of the agent a rating from 1 to 10. The judge hears the clip of the turn, first writes down what it hears
    without the text, then is shown the text and lists the words that are mispronounced. A rating below 10 without
    such a word, or with one that is not in the text, is unmeasured; so is one whose transcript is of other words.

    >>> value(pronunciation_judged, example("user: Are you open?", "assistant: Until six."))
    'no_judge'
    """
    async for observation in _verdicts("pronunciation_audio", _pronounced, conversation, judge, recording):
        yield observation


@metric(
    "judged.tts_fidelity.flagged",
    version=5,
    observes=FAILURE_MODE,
    unit=SHARE,
    better=LOWER,
    reduce=SUM_OVER_SUM,
    importance=1,
    sensitive_to=(),
)
async def tts_flagged(conversation: Conversation, judge: Judge, recording: Recording) -> AsyncIterator[Observation]:
    """In which ways does the agent's voice miss its text?

    Of each failure mode: the turns that have it ÷ the turns that are rated. A turn with the best rating has none. It
    reads the answers that `judged.tts_fidelity` reads; labels name no failure modes.

    >>> value(tts_flagged, example("user: Are you open?", "assistant: Until six."))
    'no_judge'
    """
    heard = await heard_turns("tts_fidelity", AGENT, conversation, judge, recording)
    rated = [one for one in heard if isinstance(one, HeardTurn)]
    if not rated:
        for lacking in [one for one in heard if isinstance(one, Observation)][:1]:
            yield msgspec.structs.replace(lacking, subject=WHOLE)
        return
    rubric = rated[0].answer.rubric
    counts: Counter[str] = Counter()
    for turn in rated:
        counts.update(set(turn.answer.verdict.answer["failure_modes"]) if turn.rating < rubric.high else ())
    for mode in rubric.schema["properties"]["failure_modes"]["items"]["enum"]:
        yield Observation(
            subject=Subject(FAILURE_MODE, mode),
            status=MEASURED,
            value=counts[mode] / len(rated),
            numerator=float(counts[mode]),
            denominator=float(len(rated)),
            judge=rubric.judge(rated[0].answer.verdict.judge),
        )
