"""Which metrics there are, and how a user may name them (design, idea 3)."""

from types import ModuleType
from typing import Any

import pytest

from convoscope.conversation import Conversation
from convoscope.errors import DeclarationError, UnknownMetric, UsageError
from convoscope.metrics import CONVERSATION, HIGHER, Derived, Metric, Observation, derived, measured, metric
from convoscope.metrics.registry import Declared, Registry, collect, installed


def made(name: str, variant: str = "") -> Metric:
    @metric(name, version=1, observes=CONVERSATION, unit="count", better=HIGHER, variant=variant)
    def one(conversation: Conversation) -> Observation:
        """One."""
        return measured(conversation, 1)

    return one


def figure(name: str, *inputs: str, **facts: Any) -> Derived:
    @derived(name, version=1, over="conversation", unit="share", better=HIGHER, inputs=inputs, **facts)
    def both(*values: float) -> float:
        """All."""
        return min(values)

    return both


def registry(*declared: Declared) -> Registry:
    return Registry({one.key: one for one in declared})


REGISTRY = registry(
    made("answer.f1"),
    made("answer.exact_match"),
    made("dialogue.jga"),
    made("dialogue.jga", "tomiinek"),
    made("dialogue.slot_f1"),
    made("voice.latency"),
    figure("system.correct", "answer.exact_match", "voice.latency"),
    figure("system.good", "system.correct", "dialogue.jga@tomiinek"),
)


def keys(*names: str | Declared) -> list[str]:
    return [one.key for one in REGISTRY.resolve(names)]


class TestNames:
    @pytest.mark.parametrize(
        ("name", "key"),
        [
            ("answer.f1", "answer.f1"),
            ("f1", "answer.f1"),
            ("f1_scorer", "answer.f1"),
            ("exact_match_scorer", "answer.exact_match"),
            ("dialogue.jga", "dialogue.jga"),
            ("dialogue.jga@tomiinek", "dialogue.jga@tomiinek"),
            ("jga@tomiinek", "dialogue.jga@tomiinek"),
            ("jga", "dialogue.jga"),  # the default variant has no suffix
        ],
    )
    def test_whole_bare_or_with_a_seeds_suffix(self, name: str, key: str) -> None:
        assert keys(name) == [key]

    def test_a_name_that_ends_like_a_seeds_is_still_its_own(self) -> None:
        mine = registry(made("quality.my_scorer"), made("answer.f1"))
        assert [one.key for one in mine.resolve(["my_scorer"])] == ["quality.my_scorer"]
        assert [one.key for one in mine.resolve(["quality.my_scorer", "f1_scorer"])] == [
            "answer.f1",
            "quality.my_scorer",
        ]

    def test_a_family_is_all_its_metrics(self) -> None:
        assert keys("answer") == ["answer.exact_match", "answer.f1"]
        assert keys("dialogue") == ["dialogue.jga", "dialogue.jga@tomiinek", "dialogue.slot_f1"]

    def test_they_come_in_the_order_of_their_keys_and_once(self) -> None:
        assert keys("voice.latency", "f1", "answer", "answer.f1") == [
            "answer.exact_match",
            "answer.f1",
            "voice.latency",
        ]

    def test_none_is_all_of_them(self) -> None:
        assert [one.key for one in REGISTRY.resolve()] == sorted(REGISTRY.declared)

    def test_no_name_is_none_of_them(self) -> None:
        assert REGISTRY.resolve([]) == ()

    def test_a_declaration_stands_for_itself(self) -> None:
        mine = made("mine.own")
        assert REGISTRY.resolve([mine, "f1"])[1] is mine
        assert keys(mine, "f1") == ["answer.f1", "mine.own"]


class TestDerived:
    def test_a_derived_figure_brings_its_inputs(self) -> None:
        assert keys("system.correct") == ["answer.exact_match", "system.correct", "voice.latency"]

    def test_and_theirs(self) -> None:
        assert keys("good") == [
            "answer.exact_match",
            "dialogue.jga@tomiinek",
            "system.correct",
            "system.good",
            "voice.latency",
        ]

    def test_a_figure_made_by_the_user_may_rest_on_installed_metrics(self) -> None:
        assert keys(figure("mine.all", "answer.f1")) == ["answer.f1", "mine.all"]

    def test_and_on_metrics_given_beside_it(self) -> None:
        assert keys(figure("mine.all", "mine.own"), made("mine.own")) == ["mine.all", "mine.own"]

    def test_an_input_that_nobody_declares_is_an_error(self) -> None:
        with pytest.raises(DeclarationError, match=r"mine\.nothing"):
            keys(figure("mine.all", "mine.nothing"))

    @pytest.mark.parametrize("name", ["f1", "f1_scorer", "answer", "jga", "dialogue"])
    def test_an_input_is_a_whole_key(self, name: str) -> None:
        with pytest.raises(DeclarationError, match=f"needs {name}, which is not declared"):
            keys(figure("mine.all", name))


class TestErrors:
    @pytest.mark.parametrize(
        ("name", "near"),
        [("answer.f2", "answer.f1"), ("exact_mach", "exact_match"), ("latncy", "latency"), ("anser", "mean answer")],
    )
    def test_an_unknown_name_suggests_near_ones(self, name: str, near: str) -> None:
        with pytest.raises(UnknownMetric) as caught:
            keys(name)
        assert caught.value.message == f"no metric is called {name!r}"
        assert near in caught.value.hint

    def test_the_name_of_a_rubric_suggests_its_metric(self) -> None:
        with pytest.raises(UnknownMetric) as caught:
            keys("summary_faithfulness")
        assert caught.value.message == "no metric is called 'summary_faithfulness': it is the name of a rubric"
        assert caught.value.hint == "did you mean summary.faithfulness?"

    def test_a_name_like_no_other_tells_where_to_look(self) -> None:
        with pytest.raises(UnknownMetric, match="`convoscope metrics` lists"):
            keys("zzzzzz")

    @pytest.mark.parametrize("name", ["f1", "f1_scorer"])
    def test_a_bare_name_that_two_families_share_lists_both(self, name: str) -> None:
        two = registry(made("answer.f1"), made("entity.f1"), made("voice.latency"))
        with pytest.raises(UsageError) as caught:
            two.resolve([name])
        assert "answer.f1, entity.f1" in caught.value.message
        assert caught.value.hint == "write the whole name"
        assert [one.key for one in two.resolve(["entity.f1"])] == ["entity.f1"]


class TestCollecting:
    def test_a_module_stands_for_all_that_it_holds(self) -> None:
        module = ModuleType("mine")
        module.first, module.second, module.number = made("mine.first"), figure("mine.second", "mine.first"), 3  # type: ignore[attr-defined]
        assert sorted(collect([module])) == ["mine.first", "mine.second"]

    def test_one_declaration_under_two_names_is_still_one(self) -> None:
        module = ModuleType("mine")
        module.first = module.again = made("mine.first")  # type: ignore[attr-defined]
        assert list(collect([module])) == ["mine.first"]

    def test_two_declarations_with_one_name_are_an_error(self) -> None:
        with pytest.raises(DeclarationError, match=r"mine\.first is declared twice"):
            collect([made("mine.first"), made("mine.first")])

    def test_ours_are_installed(self) -> None:
        assert installed().problems == ()
        shipped = {
            "agent.repetition",
            "agent.words_per_turn",
            "answer.exact_match",
            "answer.f1",
            "conversation.turns",
            "timing.response_latency",
            "tools.calls",
            "tools.success",
        }
        assert shipped <= set(installed().declared)
        assert installed().resolve(["exact_match_scorer"])[0].key == "answer.exact_match"
