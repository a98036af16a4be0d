"""What metrics of ours should notice and do not, and where the outcome decides what they measure; with reasons."""

from __future__ import annotations

from convoscope.metrics.perturbations import EMPTY_AGENT, SAYS_EVERYTHING, Perturbation

_NEVER_PUT_OFF = (
    "published rule of τ-voice: who never speaks is not put off by anything; interaction.response_rate notices"
)

KNOWN_LIMITS: dict[tuple[str, Perturbation], str] = {
    ("answer.accuracy", SAYS_EVERYTHING): (
        "it asks whether the truth is in the answer, and who says everything says that too; answer.f1 and "
        "answer.exact_match notice"
    ),
    ("interaction.selectivity_non_directed", EMPTY_AGENT): _NEVER_PUT_OFF,
    ("interaction.selectivity_vocal_tic", EMPTY_AGENT): _NEVER_PUT_OFF,
    ("voice.turn_taking@eva", EMPTY_AGENT): (
        "published rule of EVA: a turn without a reply is not rated; voice.turn_taking notices"
    ),
}
"""Perturbation that is declared and not noticed, by metric and nonsense."""

_SAYS_NOTHING = (
    "a result that says nothing may be a success or not, an error says that it is none: the figure has bounds"
)

KNOWN_DEPENDENCE: dict[tuple[str, str], str] = {
    ("agent.declined", "answers"): (
        "an answer that says too little to know its language is not read, be it right or wrong: the figure has bounds"
    ),
    ("outcome.authentication_success.call_success_rate", "tool_results"): _SAYS_NOTHING,
    ("outcome.authentication_success.first_try", "tool_results"): _SAYS_NOTHING,
    ("outcome.conversation_correctly_finished", "ended_reason"): (
        "who let a call die can be told only by sound; every other end counts for the agent: the figure has bounds"
    ),
    ("outcome.conversation_correctly_finished@eva", "ended_reason"): "published rule of EVA, as the default's",
    ("outcome.conversation_valid_end", "ended_reason"): (
        "without the simulator's log only an agent that timed out is known to be a valid end: the figure has bounds"
    ),
    ("tools.parameter_correctness@standard-data", "tool_results"): (
        "published rule: without a schema only a failed call can be told; tools.parameter_correctness measures both"
    ),
    ("tools.success", "tool_results"): _SAYS_NOTHING,
    ("tools.success.inferred_rate", "tool_results"): _SAYS_NOTHING,
    ("tools.tool_call_validity", "tool_results"): _SAYS_NOTHING,
    ("tools.tool_call_validity.rejected_rate", "tool_results"): _SAYS_NOTHING,
    ("tools.unrecovered_errors", "tool_results"): (
        "a failure says so itself, a result that says nothing may be either: a group in which as many "
        "conversations do not say as do has no value"
    ),
    ("voice.turn_taking", "ended_reason"): (
        "a call that the agent let die is rated 0 as a whole, any other turn by turn: both are measured"
    ),
    ("voice.turn_taking@eva", "ended_reason"): "published rule of EVA, as the default's",
}
"""Metrics of which the outcome decides what is measured, by metric and outcome."""
