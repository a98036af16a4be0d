"""The vacuity audit: what it calls noticed, and which nonsense our own metrics notice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import convoscope
from convoscope.analysis.vacuity import (
    GOES_SILENT,
    KNOWN_DEPENDENCE,
    KNOWN_LIMITS,
    NO_OPPORTUNITY,
    NOT_NOTICED,
    NOTICED,
    TOO_FEW,
    NonsenseCheck,
    VacuityAudit,
    audit,
    audit_conversations,
)
from convoscope.conversation import Conversation
from convoscope.errors import DeclarationError, NothingReadable, UsageError
from convoscope.metrics import (
    CONVERSATION,
    COUNT,
    HIGHER,
    LOWER,
    NEITHER,
    SHARE,
    Metric,
    Observation,
    measured,
    metric,
    not_applicable,
)
from convoscope.metrics.declaration import Better, Derived
from convoscope.metrics.perturbations import (
    EMPTY_AGENT,
    EQUAL_TIMES,
    PARROT,
    PERTURBATIONS,
    RANDOM_WORDS,
    SAYS_EVERYTHING,
)
from convoscope.metrics.registry import installed
from support.chats import agent, chat, user
from support.nonsense_corpus import chats, corpus, made_up

OURS = installed().resolve()


@pytest.fixture(scope="module")
def over_all() -> VacuityAudit:
    return audit_conversations(corpus(), OURS)


@pytest.fixture(scope="module")
def audits(over_all: VacuityAudit) -> list[VacuityAudit]:
    return [over_all, audit_conversations(made_up(), OURS), audit_conversations(chats(), OURS)]


def declared(result: VacuityAudit) -> dict[tuple[str, str], NonsenseCheck]:
    return {(one.metric, check.nonsense): check for one in result.metrics for check in one.declared}


class TestOurOwnMetrics:
    def test_all_say_what_they_notice(self) -> None:
        over_groups = [one for one in OURS if isinstance(one, Derived) and one.over == "group"]
        assert [one.key for one in OURS if one.sensitive_to is None and one not in over_groups] == []

    def test_every_declared_nonsense_is_noticed_or_a_known_limit(self, audits: Sequence[VacuityAudit]) -> None:
        """Noticed in one corpus at least, and told not to be noticed in none."""
        tried = [(key, check) for one in audits for key, check in declared(one).items()]
        noticed = {key for key, check in tried if check.holds}
        missed = {key for key, check in tried if not check.holds and check.verdict != TOO_FEW}
        assert sorted(missed | {key for key, _ in tried if key not in noticed}) == sorted(KNOWN_LIMITS)

    def test_none_fails_without_a_reason(self, audits: Sequence[VacuityAudit]) -> None:
        assert [one.failures for one in audits] == [[], [], []]

    def test_every_declaration_could_be_tried(self, over_all: VacuityAudit) -> None:
        tried = declared(over_all)
        wanted = [(one.key, kind) for one in OURS for kind in (*(one.sensitive_to or ()), *one.undefined_under)]
        assert [key for key in wanted if key not in tried] == []

    def test_what_is_measured_depends_on_no_outcome_but_for_known_reasons(self, over_all: VacuityAudit) -> None:
        """Over all examples and what they lack; no reason is left over."""
        assert sorted((one.metric, one.outcome) for one in over_all.outcome_dependent) == sorted(KNOWN_DEPENDENCE)

    def test_the_guide_names_every_known_limit(self) -> None:
        guide = (Path(__file__).parents[2] / "docs" / "guides" / "vacuity.md").read_text()
        rows = [f"| `{name}` | {kind.replace('_', ' ')} | {why} |" for (name, kind), why in KNOWN_LIMITS.items()]
        assert [row for row in rows if row not in guide] == []


def words_metric(name: str, better: Better, value: float, **facts: object) -> Metric:
    """A metric that gives 10 to an agent that says what it said, and `value` to any other."""

    @metric(f"test.{name}", version=1, observes=CONVERSATION, unit=COUNT, better=better, **facts)  # type: ignore[arg-type]
    def measure(conversation: Conversation) -> Observation:
        """Does the agent say what it said?"""
        texts = [one.meant() for one in conversation.utterances if one.speaker == "agent"]
        if not texts:
            return not_applicable(conversation, "no_agent")
        return measured(conversation, 10.0 if texts == conversation.extras["said"] else value)

    return measure


def talks(count: int) -> list[Conversation]:
    """One question and one answer each; the user's words are never the agent's."""
    return [
        chat(
            user(f"Question {place}?"), agent(f"Answer {place}."), id=str(place), extras={"said": [f"Answer {place}."]}
        )
        for place in range(count)
    ]


def verdict(one: Metric, kind: str, conversations: Sequence[Conversation]) -> NonsenseCheck:
    (audited,) = audit_conversations(conversations, [one]).metrics
    return next(check for check in audited.checks if check.nonsense == kind)


class TestVerdict:
    @pytest.mark.parametrize(
        ("better", "value", "expected"),
        [
            (HIGHER, 4.0, NOTICED),  # 10 → 4 is worse
            (HIGHER, 16.0, NOT_NOTICED),  # better than before
            (LOWER, 16.0, NOTICED),
            (LOWER, 4.0, NOT_NOTICED),
            (HIGHER, 10.0, NOT_NOTICED),  # the same
            (NEITHER, 16.0, NOTICED),  # another value is enough where no direction is better
            (NEITHER, 4.0, NOTICED),
            (NEITHER, 10.0, NOT_NOTICED),
        ],
    )
    def test_only_the_worse_direction_counts(self, better: Better, value: float, expected: str) -> None:
        check = verdict(words_metric("words", better, value, sensitive_to=(PARROT,)), PARROT, talks(6))
        assert (check.verdict, check.conversations) == (expected, 6)

    def test_six_equal_differences_tell_and_five_do_not(self) -> None:
        # Six of one sign: 2 · ½⁶ = 3 %. Five: 6 %.
        falling = words_metric("words", HIGHER, 4.0, sensitive_to=(PARROT,))
        assert verdict(falling, PARROT, talks(6)).verdict == NOTICED
        assert verdict(falling, PARROT, talks(5)).verdict == TOO_FEW

    def test_conversations_of_one_scenario_count_once(self) -> None:
        trials = [
            chat(*one.timeline, id=one.id, extras=one.extras, dimensions={"scenario_id": str(place // 2)})
            for place, one in enumerate(talks(10))
        ]
        check = verdict(words_metric("words", HIGHER, 4.0, sensitive_to=(PARROT,)), PARROT, trials)
        assert (check.conversations, check.clusters, check.verdict) == (10, 5, TOO_FEW)

    def test_silence_counts_only_where_it_is_declared(self) -> None:
        must_fall = verdict(words_metric("words", HIGHER, 4.0, sensitive_to=(EMPTY_AGENT,)), EMPTY_AGENT, talks(6))
        may_be_silent = verdict(
            words_metric("words", HIGHER, 4.0, sensitive_to=(), undefined_under=(EMPTY_AGENT,)), EMPTY_AGENT, talks(6)
        )
        assert (must_fall.verdict, must_fall.silent, must_fall.holds, must_fall.fails) == (GOES_SILENT, 6, False, True)
        assert (may_be_silent.verdict, may_be_silent.holds, may_be_silent.fails) == (GOES_SILENT, True, False)

    def test_the_silence_of_a_few_tells_nothing(self) -> None:
        check = verdict(words_metric("words", HIGHER, 4.0, sensitive_to=(EMPTY_AGENT,)), EMPTY_AGENT, talks(5))
        assert (check.verdict, check.silent) == (TOO_FEW, 5)

    def test_nonsense_that_changes_nothing_is_no_opportunity(self) -> None:
        # One reply cannot say more than all replies, and nothing has a time.
        one = words_metric("words", HIGHER, 4.0, sensitive_to=(SAYS_EVERYTHING, EQUAL_TIMES))
        assert verdict(one, SAYS_EVERYTHING, talks(6)).verdict == NO_OPPORTUNITY
        assert verdict(one, EQUAL_TIMES, talks(6)).verdict == NO_OPPORTUNITY

    def test_what_is_at_its_worst_cannot_get_worse(self) -> None:
        @metric("test.share", version=1, observes=CONVERSATION, unit=SHARE, better=HIGHER, sensitive_to=(PARROT,))
        def share(conversation: Conversation) -> Observation:
            """Is it good?"""
            return measured(conversation, 0.0)

        assert verdict(share, PARROT, talks(20)).verdict == TOO_FEW

    def test_an_interval_that_allows_for_much_says_nothing(self) -> None:
        def noisy(spread: float) -> Metric:
            @metric("test.noisy", version=1, observes=CONVERSATION, unit=COUNT, better=HIGHER, sensitive_to=(PARROT,))
            def measure(conversation: Conversation) -> Observation:
                """Is it good?"""
                said = [one.meant() for one in conversation.utterances if one.speaker == "agent"]
                changed = said != conversation.extras["said"]
                return measured(conversation, 10.0 + (spread if int(conversation.id) % 2 else -spread) * changed)

            return measure

        # Differences of ±1 around 0: at 10 conversations the interval is 0 ± 0.8, far from half of 10.
        assert verdict(noisy(1.0), PARROT, talks(10)).verdict == NOT_NOTICED
        # ± 9: 0 ± 6.8, which does not rule out that 5 are lost.
        assert verdict(noisy(9.0), PARROT, talks(10)).verdict == TOO_FEW


class TestReport:
    def test_metrics_without_a_declaration_are_reported_and_not_judged(self) -> None:
        result = audit_conversations(talks(6), [words_metric("words", HIGHER, 4.0)])
        (one,) = result.metrics
        assert not one.declares
        assert [check.nonsense for check in one.checks if check.verdict == NOTICED] == [PARROT, RANDOM_WORDS]
        assert (result.declared, result.failures, result.could_tell) == ([], [], False)

    def test_metrics_that_are_never_measured_have_their_reason(self) -> None:
        result = audit(talks(2), metrics=["timing.response_latency", "tools.success"])
        assert [(one.metric, one.reason) for one in result.never_measured] == [
            ("timing.response_latency", "no_clock"),
            ("tools.success", "no_tool_calls"),
        ]

    def test_a_gate_that_cannot_fail(self) -> None:
        constant = words_metric("constant", HIGHER, 10.0)
        falling = words_metric("falling", HIGHER, 4.0)
        result = audit(talks(3), metrics=[constant, falling], targets=["constant >= 9", "falling >= 9"])
        by_target = {gate.target: gate for gate in result.gates}
        # Whoever says nothing has no value, and nothing meets no target; a parrot gets 10, and 4.
        assert by_target["test.constant >= 9"].met_by == (PARROT, "swapped_roles", RANDOM_WORDS)
        assert by_target["test.falling >= 9"].met_by == ("swapped_roles",)
        assert all(gate.met for gate in result.gates)
        assert all(gate.can_fail for gate in result.gates)

    def test_a_gate_that_every_nonsense_meets(self) -> None:
        result = audit(talks(3), metrics="conversation.turns", targets="conversation.turns >= 0")
        assert [(gate.target, gate.can_fail) for gate in result.gates] == [("conversation.turns >= 0", False)]

    def test_a_gate_over_a_group(self) -> None:
        flows = [chat(*one.timeline, id=one.id, dimensions={"flow": "booking"}) for one in talks(2)]
        targets = [f"conversation.turns[flow=booking] >= {least}" for least in (1, 2)]
        result = audit(flows, metrics="conversation.turns", targets=targets)
        # One turn each, whoever is taken for the user and whatever the agent says.
        assert [(gate.met, gate.can_fail) for gate in result.gates] == [(True, False), (False, True)]

    def test_the_limit(self) -> None:
        assert audit(talks(9), metrics="conversation.turns", limit=4).conversations == 4
        with pytest.raises(UsageError, match="--limit must be at least 1"):
            audit(talks(1), limit=0)

    def test_nothing_to_audit(self) -> None:
        with pytest.raises(NothingReadable):
            audit([])

    def test_it_is_public(self) -> None:
        assert convoscope.audit is audit


def test_a_declaration_names_known_nonsense() -> None:
    with pytest.raises(DeclarationError, match="unknown nonsense 'parot'") as refused:
        words_metric("words", HIGHER, 4.0, sensitive_to=("parot",))
    assert all(kind in str(refused.value) for kind in PERTURBATIONS)


def test_a_metric_that_breaks_on_nonsense_goes_silent() -> None:
    @metric("test.breaks", version=1, observes=CONVERSATION, unit=COUNT, better=HIGHER, sensitive_to=(PARROT,))
    def breaks(conversation: Conversation) -> Iterator[Observation]:
        """Does it break?"""
        if [one.meant() for one in conversation.utterances if one.speaker == "agent"] != conversation.extras["said"]:
            raise ValueError("nonsense")
        yield measured(conversation, 1.0)

    check = verdict(breaks, PARROT, talks(6))
    assert (check.verdict, check.silent, check.fails) == (GOES_SILENT, 6, True)
