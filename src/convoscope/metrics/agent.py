"""Metrics of what the agent says."""

from __future__ import annotations

from collections.abc import Iterator

from convoscope.conversation import Conversation
from convoscope.metrics.declaration import LOWER, NEITHER, TURN, WORDS, metric
from convoscope.metrics.needs import ASSISTANT_SPEECH
from convoscope.metrics.nonsense import EMPTY_AGENT, SAYS_EVERYTHING
from convoscope.metrics.presets import share_metric
from convoscope.scores.observation import Observation, measured, not_applicable, ratio
from convoscope.scores.reducers import MEAN, MEAN_OF_SUBJECTS, Reduce, percentile
from convoscope.text.words import count_words, long_sentences

MIN_SENTENCE_WORDS = 4


@metric(
    "agent.words_per_turn",
    version=1,
    observes=TURN,
    unit=WORDS,
    better=NEITHER,
    needs=(ASSISTANT_SPEECH,),
    reduce=Reduce(MEAN, MEAN_OF_SUBJECTS),
    also={"p95": percentile(95)},
    notices=(SAYS_EVERYTHING,),
    falls_silent=(EMPTY_AGENT,),
)
def words_per_turn(conversation: Conversation) -> Iterator[Observation]:
    """How many words does the agent say in a turn?

    Words of all that the agent says in the turn: what stands between blanks and holds a letter or a
    digit. A turn without a word of the agent is not applicable.
    """
    for turn in conversation.turns:
        count = count_words(turn.assistant_text)
        yield measured(turn, count) if count else not_applicable(turn, "no_assistant_text")


@share_metric(
    "agent.repetition",
    version=1,
    observes=TURN,
    better=LOWER,
    needs=(ASSISTANT_SPEECH,),
    notices=(SAYS_EVERYTHING,),
    falls_silent=(EMPTY_AGENT,),
)
def repetition(conversation: Conversation) -> Iterator[Observation]:
    """What share of the agent's sentences has it said before?

    Repeated sentences ÷ sentences, per turn. A sentence counts from four words on; it is repeated
    when an earlier sentence of the agent, in this turn or before, is equal but for case and
    punctuation. A turn without such a sentence is not applicable.
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
        details = {"repeated": repeated} if repeated else None
        yield ratio(turn, len(repeated), sentences, empty="no_sentence", details=details)
