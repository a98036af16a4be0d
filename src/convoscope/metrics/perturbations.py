"""Kinds of nonsense that an agent or a log can be: a metric declares which of them it has to notice.

How a conversation is turned into nonsense: `convoscope.analysis.perturbations`.
"""

from __future__ import annotations

Perturbation = str
"""The name of a kind."""

EMPTY_AGENT: Perturbation = "empty_agent"
PARROT: Perturbation = "parrot"
SAYS_EVERYTHING: Perturbation = "says_everything"
SHUFFLED_TURNS: Perturbation = "shuffled_turns"
SWAPPED_ROLES: Perturbation = "swapped_roles"
RANDOM_WORDS: Perturbation = "random_words"
EQUAL_TIMES: Perturbation = "equal_times"
SKEWED_CLOCKS: Perturbation = "skewed_clocks"

PERTURBATIONS: dict[Perturbation, str] = {
    EMPTY_AGENT: "the agent says nothing and calls no tool",
    PARROT: "the agent repeats the user's last words",
    SAYS_EVERYTHING: "each reply of the agent is all of its replies",
    SHUFFLED_TURNS: "each reply of the agent is in another turn",
    SWAPPED_ROLES: "the user is taken for the agent, and the agent for the user",
    RANDOM_WORDS: "the agent's words are random letters, each word as long as it was",
    EQUAL_TIMES: "everything happens at the same moment",
    SKEWED_CLOCKS: "the agent's clock is 5 s off, and half a second more with each of its utterances",
}
"""Every kind, in words."""

ANSWERED_BADLY: tuple[Perturbation, ...] = (
    EMPTY_AGENT,
    PARROT,
    SAYS_EVERYTHING,
    SHUFFLED_TURNS,
    SWAPPED_ROLES,
    RANDOM_WORDS,
)
"""What a metric that compares an answer with the truth has to notice."""
