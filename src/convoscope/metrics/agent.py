"""Metrics of what the agent says, and of what it leaves unsaid."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from convoscope.conversation import ASSISTANT, Conversation
from convoscope.metrics.declaration import (
    EVENT,
    LOWER,
    NEITHER,
    TURN,
    WORDS,
    conversation_share_metric,
    metric,
    share_metric,
)
from convoscope.metrics.needs import ASSISTANT_SPEECH, USER_SPEECH
from convoscope.metrics.perturbations import EMPTY_AGENT, SAYS_EVERYTHING
from convoscope.metrics.voice.call import SOUND
from convoscope.scores.observation import (
    Observation,
    measured,
    not_applicable,
    ratio,
    unmeasured,
)
from convoscope.scores.reducers import MEAN, MEAN_OF_SUBJECTS, Reduce, percentile
from convoscope.text.comparison import count_words, is_without_blanks, long_sentences, tokens
from convoscope.text.folding import name_words
from convoscope.text.language import language_of
from convoscope.text.lexicon import Lexicon, folded_phrases, lexicon, lexicon_languages, lexicons
from convoscope.views.end_reasons import hand_over_call, hands_over
from convoscope.views.languages import LANGUAGE_NOT_SUPPORTED, languages_of, reason_unread
from convoscope.views.timing import sounds_of
from convoscope.views.tool_outcomes import outcome_of_call
from convoscope.views.user_turns import AT_END, UserTurn, user_turns

MIN_SENTENCE_WORDS = 4
TALKS_ON = 2.0
"""Seconds for which an agent may talk on over the user: from there on it gets no points for giving way."""
LAST_TURNS = 2
"""Of the agent: what it says in them is its last word, be it followed by a goodbye."""
_DECLINES = ("hand_over", "refusal")
SHORT_SOUND = 1.0
"""Seconds. A shorter sound of the user without known words may be a murmur that lets the other go on."""
WORDS_UNKNOWN = "words_unknown"
MAX_MURMUR = 3
"""Words. Who says more than that does not just let the other go on."""
_LOOKS_ONLY = frozenset(
    ("get", "search", "find", "list", "lookup", "look", "check", "calculate", "think", "fetch", "query", "read")
) | frozenset(("verify", "authenticate", "describe", "show", "retrieve", "view", "count", "identify", "validate"))


@metric(
    "agent.words_per_turn",
    version=2,
    label="words in a turn",
    importance=1,
    observes=TURN,
    unit=WORDS,
    better=NEITHER,
    needs=(ASSISTANT_SPEECH,),
    reduce=Reduce(MEAN, MEAN_OF_SUBJECTS),
    also={"p95": percentile(95)},
    sensitive_to=(SAYS_EVERYTHING,),
    undefined_under=(EMPTY_AGENT,),
)
def words_per_turn(conversation: Conversation) -> Iterator[Observation]:
    """How many words does the agent say in a turn?

    Words of all that the agent says in the turn: what is between blanks and holds a letter or a
    digit. A turn without a word of the agent is not applicable. One in a writing without blanks, as Japanese, is
    unmeasured.

    >>> value(words_per_turn, example("user: Where is it?", "assistant: It left on Monday."))
    4.0
    """
    for turn in conversation.turns:
        text = turn.assistant_text
        count = count_words(text)
        if count and not text.isascii() and is_without_blanks(text):
            yield unmeasured(turn, LANGUAGE_NOT_SUPPORTED, language_of(text))
        elif count:
            yield measured(turn, float(count))
        else:
            yield not_applicable(turn, "no_assistant_text")


@share_metric(
    "agent.repetition",
    version=2,
    label="agent says the same again",
    importance=6,
    observes=TURN,
    better=LOWER,
    needs=(ASSISTANT_SPEECH,),
    sensitive_to=(SAYS_EVERYTHING,),
    undefined_under=(EMPTY_AGENT,),
)
def repetition(conversation: Conversation) -> Iterator[Observation]:
    """What share of the agent's sentences has it said before?

    Repeated sentences ÷ sentences, per turn. A sentence counts from four words on (eight letters, in a writing
    without blanks); it is repeated when an earlier sentence of the agent, in this turn or before, is equal but for
    case and punctuation. A turn without such a sentence is not applicable.

    >>> chat = example("user: Hi.", "assistant: It left on Monday.", "user: When?", "assistant: It left on Monday.")
    >>> value(repetition, chat)  # the second of two sentences
    0.5
    """
    earlier: set[str] = set()
    for turn in conversation.turns:
        sentences = 0
        repeated: list[str] = []
        for utterance in turn.assistant:
            for sentence in long_sentences(utterance.meant(), MIN_SENTENCE_WORDS):
                sentences += 1
                if sentence.normalised_words in earlier:
                    repeated.append(sentence.text)
                else:
                    earlier.add(sentence.normalised_words)
        if sentences:
            details = {"repeated": repeated} if repeated else None
            yield ratio(turn, float(len(repeated)), float(sentences), details=details)
        else:
            yield not_applicable(turn, "no_sentence")


@share_metric(
    "agent.unanswered_turns",
    version=3,
    label="turns without a reply",
    importance=8,
    observes=EVENT,
    better=LOWER,
    needs=(USER_SPEECH,),
    sensitive_to=(EMPTY_AGENT,),
)
def unanswered_turns(conversation: Conversation) -> Iterator[Observation]:
    """What share of the user's turns gets no reply?

    Per turn of the user: 1 where the agent says nothing before the user speaks again, whatever tools it
    calls meanwhile; else 0. Who goes on within 4 s is still in the same turn. After the user's last turn a
    reply is owed where the agent never spoke at all, where the conversation ended in silence or with an
    error, or, if nothing says how it ended, where the turn is a question. None is owed to a user who is put
    through to a person, or where it ended for another reason: 0. It is unmeasured where that is unknown, and where
    the agent said nothing and called a tool that looks as if it speaks to the user, or the log has something of the
    agent that could not be read (`reply_not_read`), or no words are known of what the user said over the agent
    (`words_unknown`). A reply has words or a symbol: "..." is no reply. Backchannels, and
    words to another person, are no turns; a picture of the user is one.

    >>> chat = example("0 user: Hi.", "2 assistant: Hi.", "9 user: Where is it?", "30 user: You?", "31 assistant: Yes.")
    >>> round(value(unanswered_turns, chat), 3)  # one of three turns: the agent spoke after the others
    0.333
    """
    turns = user_turns(conversation)
    if not turns:
        yield not_applicable(conversation, "no_user_speech")
    for turn in turns:
        yield _unanswered(turn)


@share_metric(
    "agent.ignored_questions",
    version=3,
    label="questions without a reply",
    importance=6,
    observes=EVENT,
    better=LOWER,
    needs=(USER_SPEECH,),
    sensitive_to=(EMPTY_AGENT,),
)
def ignored_questions(conversation: Conversation) -> Iterator[Observation]:
    """What share of the user's questions gets no reply?

    `agent.unanswered_turns` of the turns that end with a question mark. Not applicable without such a turn, and
    unmeasured where turns are left whose words are unknown.

    >>> chat = example("0 user: Hi.", "2 assistant: Hi.", "9 user: Where is it?", "30 user: You?", "31 assistant: Yes.")
    >>> value(ignored_questions, chat)  # one of two questions
    0.5
    """
    questions = [turn for turn in user_turns(conversation) if turn.is_question]
    if not questions:
        is_wordless = any(
            not turn.text and any(one.segments for one in turn.utterances) for turn in user_turns(conversation)
        )
        yield (unmeasured(conversation, WORDS_UNKNOWN) if is_wordless else not_applicable(conversation, "no_question"))
    for turn in questions:
        yield _unanswered(turn)


def _unanswered(turn: UserTurn) -> Observation:
    if turn.reply in ("unknown", "by_tool", "not_read", "wordless"):
        return unmeasured(turn.utterances[0], AT_END[turn.reply])
    if turn.reply == "no":
        details = {"text": turn.text[:200], "used_tool": turn.used_tool}
        return ratio(turn.utterances[0], 1.0, 1.0, details=details)
    return ratio(turn.utterances[0], 0.0, 1.0)


@share_metric(
    "agent.talks_over_user",
    version=3,
    label="agent talks over the user",
    importance=8,
    observes=EVENT,
    better=LOWER,
    needs=(USER_SPEECH, SOUND),
    languages=lexicon_languages(),
    sensitive_to=(),
)
def talks_over_user(conversation: Conversation) -> Iterator[Observation]:
    """Over what share of the user's turns does the agent go on talking?

    Per turn of the user with sound: 1 where the agent, already speaking when the user begins, goes on for more
    than 2 s, or where it begins in the midst and both sound for more than 2 s; else 0. A turn of nothing but
    "okay", "mhm" and the like lets the other go on: not applicable. A turn without sound is unmeasured, and so is
    one of less than 1 s whose words are unknown, and one of up to three words in a language without a lexicon.
    Where the language is not known, a word of any lexicon may be such a word.

    >>> call = example("0-6 assistant: Let me read it.", "1-3 user: Stop, I have to go.", "8-9 user: Are you done?")
    >>> value(talks_over_user, call)  # it talks on for 5 s over the first of two turns
    0.5
    """
    sounds = sounds_of(conversation)
    agent = _AgentSound(conversation)
    languages = languages_of(conversation)
    for turn in user_turns(conversation):
        spans = [span for one in turn.utterances for span in sounds[one.seq]]
        if not spans:
            yield unmeasured(turn.utterances[0], SOUND.code)
            continue
        if not turn.text and sum(end - start for start, end in spans) < SHORT_SOUND:
            yield unmeasured(turn.utterances[0], WORDS_UNKNOWN)
            continue
        is_short = 0 < _length(turn.text) <= MAX_MURMUR
        language = languages.of_text(turn.text, turn.utterances[0]) if is_short else ""
        known = lexicon(language)
        if language and known is None:
            yield unmeasured(turn.utterances[0], reason_unread(language), language)
        elif is_short and any(_is_murmur(turn.text, words) for words in ((known,) if known else lexicons())):
            yield not_applicable(turn.utterances[0], "backchannel")
        else:
            seconds = agent.over(spans)
            details = {"seconds": seconds} if seconds else None
            yield ratio(turn.utterances[0], seconds > TALKS_ON, 1, empty="no_user_speech", details=details)


def _length(text: str) -> float:
    """How many words; where there are no blanks, three letters count as one."""
    return len(tokens(text)) if not is_without_blanks(text) else sum(map(str.isalpha, text)) / 3


def _is_murmur(text: str, words: Lexicon) -> bool:
    """Whether a text is nothing but words that let the other go on."""
    folded = folded_phrases(text)
    return bool(folded.strip(" .?")) and not words.without("murmur", folded).strip(" .?")


class _AgentSound:
    """The agent's stretches of sound in their order."""

    def __init__(self, conversation: Conversation) -> None:
        roles, sounds = conversation.roles, sounds_of(conversation)
        speaking = [one for one in conversation.utterances if roles[one.speaker] == ASSISTANT]
        self.spans = sorted(span for one in speaking for span in sounds[one.seq])
        self.starts = [start for start, _ in self.spans]
        # The latest end of all that began so far.
        self.ends = list(accumulate((end for _, end in self.spans), max))

    def over(self, user: list[tuple[float, float]]) -> float:
        """How long the agent goes on once the user has begun, or how long both sound where it begins later."""
        began, ended = min(start for start, _ in user), max(end for _, end in user)
        before, after = bisect_left(self.starts, began), bisect_left(self.starts, ended)
        goes_on = self.ends[before - 1] - began if before else 0.0
        both = sum(
            max(0.0, min(end, until) - max(start, at)) for start, end in self.spans[before:after] for at, until in user
        )
        return round(max(goes_on, both, 0.0), 6)


@conversation_share_metric(
    "agent.declined",
    version=3,
    label="handed over or declined",
    importance=3,
    better=NEITHER,
    needs=(ASSISTANT_SPEECH,),
    languages=lexicon_languages(),
    sensitive_to=(),
)
def declined(conversation: Conversation) -> Observation:
    """Did the agent hand over or decline in the end, without having done anything?

    1 where it puts the user through to a person by a tool, or says in its last two turns that it hands over, cannot or
    must not, and no call of a tool that changes something came back without an error. Else 0. A tool changes
    something unless its name begins with a verb of looking: get, search, find, list, check, calculate. Which is better
    depends on the request: to decline what the rules forbid is right. Where it depends on words of a language without
    a lexicon, it is unmeasured, and so is a call of whose agent only the sound is known.

    >>> value(declined, example("user: Refund me.", "assistant: I cannot do that."))
    1.0
    """
    call = hand_over_call(conversation) if conversation.tool_calls else None
    words = _words_of_declining(conversation)
    sign = words.sign if call is None else call.name
    if (done := _action_done(conversation)) or sign:
        details = {name: value for name, value in (("sign", sign), ("done", done)) if value and sign}
        return measured(conversation, 0.0 if done else 1.0, details=details or None)
    if words.unread is not None:
        return unmeasured(conversation, reason_unread(words.unread), words.unread)
    agent = [one for one in conversation.utterances if conversation.roles[one.speaker] == ASSISTANT]
    if any(one.segments for one in agent) and not any(one.meant().strip() for one in agent):
        return unmeasured(conversation, WORDS_UNKNOWN)
    return measured(conversation, 0.0)


class _Declining(NamedTuple):
    """What the agent says at the end that hands over or declines, and the language that could not be read."""

    sign: str = ""
    unread: str | None = None


def _words_of_declining(conversation: Conversation) -> _Declining:
    languages = languages_of(conversation)
    unread: str | None = None
    for turn in reversed([turn for turn in conversation.turns if turn.assistant_text.strip()][-LAST_TURNS:]):
        text = turn.assistant_text
        language = languages.of_text(text, turn.assistant[0])
        words = lexicon(language)
        if words is None:
            unread = language
            continue
        folded = folded_phrases(text)
        if words.may_hold(_DECLINES, (folded,)) and (
            sign := words.find("hand_over", folded) or words.find("refusal", folded)
        ):
            return _Declining(sign)
    return _Declining(unread=unread)


def _action_done(conversation: Conversation) -> str:
    """The last tool that changes something and came back without an error; "" without such a tool."""
    for call in reversed(conversation.tool_calls):
        words = name_words(call.name)
        if (
            words
            and words[0] not in _LOOKS_ONLY
            and not hands_over(call.name)
            and (outcome := outcome_of_call(conversation, call)) is not None
            and not outcome.failed
        ):
            return call.name
    return ""
