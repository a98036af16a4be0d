"""What metrics of ours should notice and do not, and where the outcome decides what they measure; with reasons."""

from __future__ import annotations

from convoscope.metrics.nonsense import EMPTY_AGENT, EQUAL_TIMES, SAYS_EVERYTHING, Nonsense

_NEVER_PUT_OFF = (
    "published rule of τ-voice: who never speaks is not put off by anything; interaction.response_rate notices"
)

_NO_ANSWER = "in a chat without items, an agent that never says a word gave no answer: unmeasured"

KNOWN_LIMITS: dict[tuple[str, Nonsense], str] = {
    ("answer.accuracy", EMPTY_AGENT): _NO_ANSWER,
    ("answer.accuracy", SAYS_EVERYTHING): (
        "it asks whether the truth is in the answer, and who says everything says that too; answer.f1 and "
        "answer.exact_match notice"
    ),
    ("answer.exact_match", EMPTY_AGENT): _NO_ANSWER,
    ("answer.f1", EMPTY_AGENT): _NO_ANSWER,
    ("answer.multi_pattern_accuracy", EMPTY_AGENT): _NO_ANSWER,
    ("interaction.selectivity_non_directed", EMPTY_AGENT): _NEVER_PUT_OFF,
    ("interaction.selectivity_vocal_tic", EMPTY_AGENT): _NEVER_PUT_OFF,
    ("outcome.conversation_correctly_finished", EMPTY_AGENT): (
        "published rule of EVA: only a call that ends because nobody spoke any more is laid at the agent's door"
    ),
    ("timing.response_latency", EQUAL_TIMES): "a reply that is dated like its question counts as a wait of 0 s",
    ("voice.turn_taking", EMPTY_AGENT): "published rule of EVA: a turn without a reply is not rated",
    ("voice.turn_taking.latency", EQUAL_TIMES): "sound that begins when the user's ends counts as a wait of 0 s",
}
"""Nonsense that is declared and not noticed, by metric and nonsense."""

_NO_STATUS = "without a final status only a conversation that was not completed can be told to have broken its contract"

KNOWN_DEPENDENCE: dict[tuple[str, str], str] = {
    ("flow.correctness", "completed"): _NO_STATUS,
    ("flow.correctness.final_status", "completed"): _NO_STATUS,
    ("outcome.conversation_correctly_finished", "ended_reason"): (
        "who let a call die can be told only by sound; every other end counts for the agent"
    ),
    ("outcome.conversation_valid_end", "ended_reason"): (
        "without the simulator's log only an agent that timed out is known to be a valid end"
    ),
    ("outcome.task_completion", "database"): (
        "two hashes that are equal do not tell who is logged in; two that differ are enough"
    ),
    (
        "telephony.drop_off_node@states",
        "completed",
    ): "how far one came that was not completed needs the order of stages",
    ("tools.parameter_correctness", "tool_results"): (
        "where a log tells only of errors, a result without one says nothing of success"
    ),
    ("voice.turn_taking", "ended_reason"): (
        "a call that the agent let die is rated 0 as a whole, any other turn by turn: both are measured"
    ),
}
"""Metrics of which the outcome decides what is measured, by metric and outcome."""
