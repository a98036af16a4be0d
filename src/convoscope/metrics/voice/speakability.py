"""Whether a text can be handed to a speech engine, by rules: what a judge would say without a judge."""

from __future__ import annotations

import re
from collections.abc import Iterator

from convoscope.conversation import Conversation
from convoscope.metrics.declaration import HIGHER, RATIO, TURN, metric
from convoscope.metrics.needs import ASSISTANT_SPEECH, Need, english_words
from convoscope.metrics.perturbations import EMPTY_AGENT
from convoscope.metrics.voice.call import CALL
from convoscope.scores.observation import NOT_APPLICABLE, Observation, in_turn, measured
from convoscope.scores.reducers import MEAN, MEAN_OF_CONVERSATIONS, Reduce
from convoscope.views import metric_context
from convoscope.views.eva.call_state import without_labels

TEXT_TO_SPEECH = Need(
    code="speech_to_speech",
    field="pipeline",
    unlock="an agent whose words are written before they are spoken: a `pipeline` of cascade or audio_llm",
    present=lambda conversation: conversation.pipeline != "s2s",
    status_if_missing=NOT_APPLICABLE,
)

_NUMBERS = (
    "zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|"
    "eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|"
    "am|pm|dollars?|cents?|euros?|pounds?|percent|minutes?|hours?"
)
FAULTS: dict[str, re.Pattern[str]] = {
    "markdown": re.compile(
        r"\*\*|__|~~|`|(?<![\w*])\*\w[^*\n]*\*(?!\w)|"
        r"^[ \t]*(?:#{1,6}|[-*+•‣▪>])[ \t]|^[ \t]*\d{1,2}[.)][ \t].*\n+[ \t]*\d{1,2}[.)][ \t]|"
        r"^[ \t]*\|.*\||^[ \t]*(?:-{3,}|={3,})[ \t]*$|"
        r"</?(?:b|i|u|br|p|div|span|ul|ol|li|a|strong|em|h[1-6]|table)\b[^<>]{0,200}>",
        re.MULTILINE | re.IGNORECASE,
    ),
    "brackets": re.compile(r"[{}\[\]]"),
    "emoji": re.compile(
        "[\U0001f000-\U0001faff\u2600-\u27bf\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\u2190-\u21ff\ufe0f\u200d]"
    ),
    "glued_words": re.compile(rf"[a-z]{{2}}[.!?,;:][A-Z][a-z]|\b[A-Za-z]{{25,}}\b|\b(?i:(?:{_NUMBERS}){{2,}})\b"),
}
"""What a voice cannot say, by its kind."""


@metric(
    "judged.speakability",
    label="text can be spoken as it is written",
    variant="rules",
    version=1,
    observes=TURN,
    unit=RATIO,
    better=HIGHER,
    needs=(CALL, TEXT_TO_SPEECH, ASSISTANT_SPEECH, english_words("assistant")),
    reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
    importance=3,
    sensitive_to=(),
    undefined_under=(EMPTY_AGENT,),
    languages=("en",),
)
def speakability_rules(conversation: Conversation) -> Iterator[Observation]:
    """Can the text of the agent be spoken as it is written, by rules?

    Per turn: 0 where the text that the voice is given has Markdown or HTML, curly or square brackets, emoji or arrows,
    or words that are glued together; else 1. Glued are a sentence that begins right behind the full stop, more than 24
    letters in a row, and number words without a blank. Acronyms, digits, round brackets and addresses are fine. Labels
    of interruptions are not part of the text.

    >>> call = example("user: What is it?", "assistant: **Total:** eighttwentypm", pipeline="cascade")
    >>> value(speakability_rules, call)
    0.0
    """
    for turn, text in sorted(metric_context(conversation).intended_assistant_turns.items()):
        plain = without_labels(text).strip()
        if not plain:
            continue
        matches = {kind: match[0].strip() for kind, pattern in FAULTS.items() if (match := pattern.search(plain))}
        yield measured(in_turn(turn), 0 if matches else 1, details={"faults": matches} if matches else None)
