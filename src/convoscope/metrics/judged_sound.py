"""What a judge that listens says of the voices of a call, turn by turn: the agent's, its speech engine's, the caller's.

Of each turn the judge first writes down what it hears, and sees nothing of the log. Then it answers the rubric. Where
the two disagree by rule, there is no verdict: a model that hears nothing, or that the log sways, is not believed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

import msgspec

from convoscope.audio import is_installed
from convoscope.conversation import ASSISTANT, USER, Conversation
from convoscope.ingest.recordings import ELSEWHERE, is_elsewhere
from convoscope.judging.addressed import screened
from convoscope.judging.rubrics import Rubric, rubric_named
from convoscope.judging.sound_questions import TRANSCRIPT_PROMPT, TRANSCRIPT_SCHEMA, is_cut_off, sound_question
from convoscope.metrics.declaration import CONVERSATION, HIGHER, RATIO, SHARE, TURN, Metric, metric
from convoscope.metrics.judged_calls import (
    EXAMPLE,
    RubricAnswer,
    judge_or_label,
    verdict_or_reason,
    without_value,
)
from convoscope.metrics.needs import Need
from convoscope.metrics.verdicts import has_verdict, labelled
from convoscope.resources.judge import Judge, ListeningJudge, no_sound
from convoscope.resources.sound import Recording, RecordingError, Sound
from convoscope.scores.observation import (
    NOT_APPLICABLE,
    UNMEASURED,
    Observation,
    in_turn,
    measured,
    not_applicable,
    unmeasured,
)
from convoscope.scores.reducers import MEAN, MEAN_OF_CONVERSATIONS, WHOLE_MEAN, Reduce, Within
from convoscope.text.folding import folded
from convoscope.text.spoken import check_entities, entities, normalise
from convoscope.views.eva.call_state import without_labels
from convoscope.views.items import WHOLE
from convoscope.views.languages import languages_of
from convoscope.views.machines import is_call
from convoscope.views.metric_context import MetricContext, metric_context

TRANSCRIPT_DISAGREES = "transcript_disagrees"
LEAST_LIKENESS = 0.5
"""A transcript that shares less than this with a text is not of that text."""
_COMPARED = 2000
"""Characters of both that are compared."""
TONE = ("clarity", "pace", "warmth")
"""What is rated of the tone of a voice."""
NOT_UNDERSTOOD = 3
"""A clarity of at most this says that many words cannot be understood."""
_TEXT_FIRST = ("tts_fidelity", "pronunciation_audio")
"""What compares a voice with the text that it was given."""


class HeardTurn(NamedTuple):
    """One turn: its text, what the judge wrote down of the sound, and its answer to the rubric."""

    turn: int
    text: str
    transcript: str
    answer: RubricAnswer
    moments: Sequence[Mapping[str, Any]] = ()
    """Where the clip is, in seconds of the common time."""

    @property
    def rating(self) -> float:
        """The rating of the answer; of one with several ratings of a voice, their mean."""
        answer = self.answer.verdict.answer
        return int(answer["rating"]) if "rating" in answer else fmean(answer["ratings"][name] for name in TONE)

    @property
    def claims_the_words(self) -> bool:
        """The answer can be true only if the judge heard the words of the text."""
        answer = self.answer.verdict.answer
        if "mispronounced" in answer:
            return True
        if "ratings" in answer:
            return bool(answer["ratings"]["clarity"] > NOT_UNDERSTOOD)
        return self.rating == self.answer.rubric.high

    def scored(self, rating: float | None = None, **details: Any) -> Observation:
        """The rating of the turn, or one of a part of it, with what it rests on."""
        rating = self.rating if rating is None else rating
        return self.answer.scored(in_turn(self.turn), rating, {**self._shown(), **details})

    def unmeasured(self, reason: str, detail: str) -> Observation:
        judge = self.answer.rubric.judge(self.answer.verdict.judge)
        details = {**self._shown(), "judge_rating": self.rating}
        return without_value(in_turn(self.turn), UNMEASURED, reason, detail, judge, details)

    def _shown(self) -> dict[str, Any]:
        reasoning = self.answer.verdict.answer["explanation"]
        return {"transcript": self.transcript, "reasoning": reasoning, "heard_at": list(self.moments)}


class _Side(NamedTuple):
    """Whose voice a rubric is about, and the texts that it was given."""

    role: str
    missing: str
    """The reason where there are no texts."""

    def texts(self, context: MetricContext) -> dict[int, str]:
        turns = context.intended_assistant_turns if self.role == ASSISTANT else context.intended_user_turns
        return {turn: turns[turn] for turn in sorted(turns) if without_labels(turns[turn]).strip()}


AGENT = _Side(ASSISTANT, "no_intended_assistant_turns")
CALLER = _Side(USER, "no_intended_user_turns")


async def heard_turns(
    name: str, side: _Side, conversation: Conversation, judge: Judge, recording: Recording | None
) -> list[HeardTurn | Observation]:
    """What a judge says of the sound of each turn of one side; why there is nothing to be had of it."""
    rubric = rubric_named(name, getattr(judge, "rubric_folders", ()))
    who = rubric.judge(judge.identity)
    context = metric_context(conversation)
    texts = side.texts(context)
    if absent := _absence(name, side, conversation, texts):
        return [without_value(WHOLE, absent[0], absent[1], "", who)]  # type: ignore[arg-type]
    if reason := no_sound(judge):
        return [without_value(WHOLE, UNMEASURED, reason, "", who)]
    if recording is None:
        reason = "recordings_not_opened" if is_installed() else "audio_not_installed"
        return [without_value(WHOLE, UNMEASURED, reason, "", who)]
    if is_elsewhere(conversation):
        detail = "only the log says where the recording is; --audio FOLDER allows to send what is in it"
        return [without_value(WHOLE, UNMEASURED, ELSEWHERE, detail, who)]
    import asyncio  # only where a judge is asked

    from convoscope.audio.turn_clips import TurnClip, turn_clips

    try:
        clips = await asyncio.to_thread(turn_clips, conversation, recording, side.role, list(texts))
    except RecordingError as error:
        return [without_value(WHOLE, UNMEASURED, error.reason, error.detail, who)]

    async def of_turn(turn: int, clip: TurnClip) -> HeardTurn | Observation:
        if clip.sound is None:
            return without_value(in_turn(turn), UNMEASURED, clip.reason, clip.detail, who)
        heard = await _heard(rubric, conversation, judge, side, turn, clip.sound)
        if isinstance(heard, Observation):
            return heard
        heard = heard._replace(moments=[{"start": span.start, "end": span.end} for span in clip.spans])
        return _doubt(heard, texts, conversation, side.role) or heard

    return await asyncio.gather(*(of_turn(turn, clip) for turn, clip in clips.items()))


def _absence(
    name: str, side: _Side, conversation: Conversation, texts: Mapping[int, str]
) -> tuple[str, str] | tuple[()]:
    """Why nothing of a conversation can be heard by this rubric: status and reason; empty where it can."""
    if side.role == ASSISTANT and not conversation.contents.has_assistant_speech:
        return NOT_APPLICABLE, "no_assistant_speech"
    if name in _TEXT_FIRST and conversation.pipeline == "s2s":
        return NOT_APPLICABLE, "speech_to_speech"
    return () if texts else (UNMEASURED, side.missing)


async def _heard(
    rubric: Rubric, conversation: Conversation, judge: Judge, side: _Side, turn: int, sound: Sound
) -> HeardTurn | Observation:
    """The judge's transcript of a sound, and its answer to the rubric about it."""
    who, subject = rubric.judge(judge.identity), in_turn(turn)
    text = side.texts(metric_context(conversation))[turn]
    question = sound_question(rubric, conversation, side.role, turn, text)
    if turn in question.withheld and "spoken_text" in rubric.required:
        return without_value(subject, UNMEASURED, "addresses_judge", "the judge did not see this turn", who)
    assert isinstance(judge, ListeningJudge)
    transcript: str | None = None
    if "transcript" not in rubric.schema.get("required", ()):  # one that shows no text asks for it itself
        first = await verdict_or_reason(judge.ask(TRANSCRIPT_PROMPT, TRANSCRIPT_SCHEMA, sound), subject, who)
        if isinstance(first, Observation):
            return first
        transcript = str(first.answer["transcript"])
    answer = await verdict_or_reason(judge.ask(question.prompt, question.schema, sound), subject, who)
    if isinstance(answer, Observation):
        return answer
    if transcript is None:
        transcript = str(answer.answer["transcript"])
    return HeardTurn(turn, text, transcript, RubricAnswer(rubric, question, answer))


def _doubt(heard: HeardTurn, texts: Mapping[int, str], conversation: Conversation, role: str) -> Observation | None:
    """Why a verdict is not believed: the judge's own transcript of the sound is of something else."""
    if screened(heard.transcript).is_withheld:
        return heard.unmeasured("addresses_judge", "what is spoken addresses the judge")
    if not _letters(heard.transcript):
        return heard.unmeasured("no_transcript", "the judge hears no words")
    cut = is_cut_off(metric_context(conversation), role, heard.turn, heard.text)
    own = likeness(heard.text, heard.transcript, is_cut=cut)
    if own >= LEAST_LIKENESS:
        return None
    others = {turn: likeness(text, heard.transcript) for turn, text in texts.items() if turn != heard.turn}
    if others and max(others.values()) >= LEAST_LIKENESS:
        nearest = max(others, key=others.__getitem__)
        return heard.unmeasured(
            "other_turn_heard", f"the sound is that of turn {nearest}: the times of the log are off"
        )
    if heard.claims_the_words:
        return heard.unmeasured(TRANSCRIPT_DISAGREES, f"rated {heard.rating:g}, but the judge hears other words")
    return None


def likeness(text: str, transcript: str, *, is_cut: bool = False) -> float:
    """How much of their letters two texts share, in the same order, from 0 to 1; of a cut text, of the shorter one.

    >>> likeness("It is $150.", "it is one hundred fifty dollars"), likeness("Yes.", "No.")
    (1.0, 0.0)
    """
    first, second = _letters(text), _letters(transcript)
    if not first or not second:
        return 0.0
    shared = sum(block.size for block in SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks())
    return shared / min(len(first), len(second)) if is_cut else 2 * shared / (len(first) + len(second))


def _letters(text: str) -> str:
    spoken = " ".join(normalise(without_labels(text[:_COMPARED])))
    return "".join(character for character in folded(spoken) if character.isalnum())


Listening = Callable[[HeardTurn, Conversation], Observation]


def _entities_heard(heard: HeardTurn, conversation: Conversation) -> Observation:
    """1 where each name, code and number is clearly spoken, else 0. A turn without one is not applicable."""
    text = without_labels(heard.text)
    is_read = languages_of(conversation).of_role(ASSISTANT) in ("", "en")
    checks = check_entities(text, heard.transcript) if is_read else []
    if not heard.answer.verdict.answer["has_entities"]:
        if checks or (not is_read and any(map(str.isdigit, text))):
            named = ", ".join(check.entity.text for check in checks)[:200]
            return heard.unmeasured("entities_overlooked", f"the text has {named or 'numbers'}; the judge hears none")
        return not_applicable(
            in_turn(heard.turn), "no_entities", judge=heard.answer.rubric.judge(heard.answer.verdict.judge)
        )
    others = [
        {"meant": check.entity.text, "transcript": check.heard.instead}
        for check in checks
        if not check.heard.correct and check.heard.instead and entities(check.heard.instead)
    ]
    if others and heard.rating == heard.answer.rubric.high:
        first = others[0]
        return heard.unmeasured(
            TRANSCRIPT_DISAGREES, f"rated clear, but the judge hears {first['transcript']!r} for {first['meant']!r}"
        )
    right = sum(check.heard.correct for check in checks)
    by_rule = {"entities": len(checks), "heard": right, "others": others} if is_read else None
    return heard.scored(by_rule=by_rule)


def _words_heard(heard: HeardTurn, _: Conversation) -> Observation:
    """1 where every word is spoken as it was meant, else 0."""
    flagged = heard.rating < heard.answer.rubric.high
    return heard.scored(failure_modes=heard.answer.verdict.answer["failure_modes"] if flagged else [])


def _caller_heard(heard: HeardTurn, _: Conversation) -> Observation:
    """3 where all is spoken, 2 where only lesser words are lost, 1 where a name, a code or a number is wrong."""
    return heard.scored()


_RULE = """{reading} The scale of the rubric becomes 0 to 1. The judge is sent the clip of each turn: it has to be one
    that takes sound, and `--send-audio` allows it. It first writes down what it hears, without seeing the log. A best
    rating that this transcript contradicts is unmeasured."""


def _needs(name: str) -> tuple[Need, ...]:
    """A judge and the recording of a call, or a label that says the same."""
    has_label = partial(has_verdict, name=name)
    return (
        judge_or_label(name, has_label),
        Need(
            "not_a_call",
            "pipeline",
            "a voice call, or a recording",
            lambda one: is_call(one) or one.recording is not None or has_label(one),
            status_if_missing=NOT_APPLICABLE,
        ),
        Need(
            "no_recording",
            "recording",
            f"the audio of the conversation, or a label `{name}`",
            lambda one: one.recording is not None or has_label(one),
        ),
    )


def _sound_metric(
    name: str, side: _Side, question: str, reading: Listening, *, version: int, importance: int, within: Within = MEAN
) -> Metric:
    """Declare a metric of the sound of one side: its rubric has its name."""

    async def verdicts(
        conversation: Conversation, judge: Judge | None = None, recording: Recording | None = None
    ) -> AsyncIterator[Observation]:
        if judge is None:
            for observation in labelled(conversation, name):
                yield observation
            return
        if no_sound(judge) and has_verdict(conversation, name):
            return  # the labels speak: that another judge hears nothing is no news
        for heard in await heard_turns(name, side, conversation, judge, recording):
            yield heard if isinstance(heard, Observation) else reading(heard, conversation)

    rule = _RULE.format(reading=(reading.__doc__ or "").strip())
    verdicts.__doc__ = f"""{question}

    {rule} A label named `{name}` with a value from 0 to 1 is a verdict too, of the person or program that gave it.
    {EXAMPLE.format(name=name)}"""
    return metric(
        f"judged.{name}",
        version=version,
        observes=TURN,
        unit=RATIO,
        better=HIGHER,
        needs=_needs(name),
        reduce=Reduce(within, MEAN_OF_CONVERSATIONS),
        importance=importance,
        sensitive_to=(),
    )(verdicts)


agent_speech_fidelity = _sound_metric(
    "agent_speech_fidelity",
    AGENT,
    "Can the names, codes and numbers be heard as the agent meant to say them?",
    _entities_heard,
    version=8,
    importance=6,
    within=WHOLE_MEAN,
)
tts_fidelity = _sound_metric(
    "tts_fidelity",
    AGENT,
    "Does the voice of the agent say every word that it was given?",
    _words_heard,
    version=6,
    importance=3,
)
user_speech_fidelity = _sound_metric(
    "user_speech_fidelity",
    CALLER,
    "Does the voice of a simulated caller say what it was given?",
    _caller_heard,
    version=6,
    importance=2,
)


@metric(
    "judged.user_speech_fidelity.clear",
    version=6,
    observes=CONVERSATION,
    unit=SHARE,
    better=HIGHER,
    needs=_needs("user_speech_fidelity"),
    reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
    importance=1,
    sensitive_to=(),
)
async def user_speech_clear(
    conversation: Conversation, judge: Judge | None = None, recording: Recording | None = None
) -> AsyncIterator[Observation]:
    """Does the voice of a simulated caller get every name, code and number right?

    1 where no turn of the caller has the lowest rating, which is below 0.5 here; 0 where one has it. From a rating of
    the whole conversation only the best (no turn can have it) and one below 0.5 (some turn must have it) decide;
    between them it is unmeasured, `turns_not_rated`. It reads the answers that `judged.user_speech_fidelity` reads.

    >>> label = {"name": "user_speech_fidelity", "value": 0.5, "rater_kind": "external"}
    >>> value(user_speech_clear, example("user: Hello?", labels=[{**label, "subject_kind": "turn", "subject": "1"}]))
    1.0
    """
    name = "user_speech_fidelity"
    if judge is None:
        scores = list(labelled(conversation, name))
    elif no_sound(judge) and has_verdict(conversation, name):
        return
    else:
        heard = await heard_turns(name, CALLER, conversation, judge, recording)
        scores = [one if isinstance(one, Observation) else _caller_heard(one, conversation) for one in heard]
    for observation in _clear(scores, conversation):
        yield observation


def _clear(scores: Sequence[Observation], conversation: Conversation) -> Iterator[Observation]:
    by_judge: dict[str, list[Observation]] = {}
    for score in scores:
        by_judge.setdefault(score.judge, []).append(score)
    for judge, given in by_judge.items():
        values = [score.value for score in given if score.value is not None]
        lacking = next((score for score in given if score.value is None), None)
        if any(value < 0.5 for value in values):
            yield measured(conversation, 0, judge=judge)
        elif lacking is not None:
            yield msgspec.structs.replace(lacking, subject=WHOLE, repeat=0)
        elif given[0].subject == WHOLE and min(values) < 1:
            yield unmeasured(conversation, "turns_not_rated", f"{min(values):g} of the whole", judge=judge)
        else:
            yield measured(conversation, 1, judge=judge)
