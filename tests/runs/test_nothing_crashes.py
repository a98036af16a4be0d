"""What one declaration does wrong is told in its place; it never takes the run with it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from convoscope.conversation import Conversation
from convoscope.errors import DeclarationError
from convoscope.metrics import CONVERSATION, HIGHER, Derived, GroupSample, Metric, Need, Observation, Reduce, measured
from convoscope.metrics.declaration import derived, metric
from convoscope.metrics.registry import Declared
from convoscope.runs import make as making
from convoscope.runs.run import Run
from convoscope.runs.summary import Group
from convoscope.scores.reducers import MEAN
from convoscope.statistics.summary import Figure
from support.chats import agent, chat, user

TURNS = "conversation.turns"
CHATS = [chat(user("hi"), agent("hello"), id="a"), chat(user("hi"), agent("hello"), user("bye"), id="b")]


def one(conversation: Conversation) -> Observation:
    """How many is one?"""
    return measured(conversation, 1)


def made(function: Any = one, name: str = "test.made", **facts: Any) -> Metric:
    facts = {"version": 1, "observes": CONVERSATION, "unit": "x", "better": HIGHER} | facts
    return metric(name, **facts)(function)


def figure(function: Any, *inputs: str, name: str = "test.figure", over: str = "group", **facts: Any) -> Derived:
    function.__doc__ = "What the test says."
    facts = {"version": 1, "over": over, "unit": "x", "better": HIGHER, "inputs": inputs} | facts
    return derived(name, **facts)(function)


Score = Callable[..., Run]


@pytest.fixture
def score(tmp_path: Path) -> Score:
    def run(*metrics: str | Declared, **options: Any) -> Run:
        return making.make_run(CHATS, metrics=metrics, out=tmp_path / "run", workers=1, **options)

    return run


def headlines(run: Run) -> dict[str, Figure]:
    return {one.metric: one for one in run.summary.figures if not one.reduction}


def told(one: Figure) -> tuple[Any, ...]:
    return one.status, one.value, one.reason


def raises(samples: list[GroupSample]) -> float:
    raise KeyError("no such scenario")


class TestFiguresOverAGroup:
    BROKEN: ClassVar[dict[str, Callable[[Any], object]]] = {
        "raises": raises,
        "nan": lambda samples: float("nan"),
        "infinite": lambda samples: float("inf"),
        "nan_of_a_scenario": lambda samples: {"s1": float("nan"), "s2": 1.0},
        "text": lambda samples: "much",
        "list": lambda samples: [0.5],
    }
    SILENT: ClassVar[dict[str, Callable[[Any], object]]] = {
        "no_scenario": lambda samples: {},
        "nothing": lambda samples: None,
        "nothing_of_each": lambda samples: {"s1": None, "s2": None},
    }

    @pytest.mark.parametrize("unit", ["x", "share"])
    def test_one_that_gives_no_number_has_a_status(self, score: Score, unit: str) -> None:
        every = {**self.BROKEN, **self.SILENT}
        found = headlines(score(*(figure(one, TURNS, unit=unit, name=f"test.{name}") for name, one in every.items())))
        assert {name: told(found[f"test.{name}"]) for name in every} == {
            **dict.fromkeys(self.BROKEN, ("error", None, "metric_raised")),
            **dict.fromkeys(self.SILENT, ("unmeasured", None, "not_enough")),
        }
        assert found[TURNS].value == 1.5  # (1 + 2) ÷ 2

    @staticmethod
    def values(group: Group) -> dict[str, float | None]:
        return {one.metric: one.value for one in group.metrics if not one.reduction}

    def test_in_each_group_as_well(self, tmp_path: Path) -> None:
        conversations = [chat(user("hi"), id=name, dimensions={"flow": name}) for name in ("x", "y")]
        metrics = [figure(raises, TURNS)]
        run = making.make_run(conversations, metrics=metrics, out=tmp_path / "run", workers=1, by=[("flow",)])
        # Over all conversations it has no value either, so that groups do not speak of it again.
        assert told(headlines(run)["test.figure"]) == ("error", None, "metric_raised")
        assert [group.by for group in run.summary.groups] == [{"flow": "x"}, {"flow": "y"}]
        assert [self.values(group) for group in run.summary.groups] == [{TURNS: 1.0}] * 2

    def test_in_one_group_alone(self, tmp_path: Path) -> None:
        """It breaks for y, and has a value for x and for both together."""

        def picky(samples: list[GroupSample]) -> float:
            if all(one.dimensions["flow"] == "y" for one in samples):
                raise KeyError("no such scenario")
            return 3.0

        conversations = [chat(user("hi"), id=name, dimensions={"flow": name}) for name in ("x", "y")]
        metrics = [figure(picky, TURNS)]
        run = making.make_run(conversations, metrics=metrics, out=tmp_path / "run", workers=1, by=[("flow",)])
        assert headlines(run)["test.figure"].value == 3.0
        x, y = run.summary.groups
        assert self.values(x) == {TURNS: 1.0, "test.figure": 3.0}
        assert self.values(y) == {TURNS: 1.0}
        (broken,) = y.not_measured
        assert (broken.metrics, broken.status, broken.reason) == (["test.figure"], "error", "metric_raised")
        assert broken.detail == "KeyError: 'no such scenario'"

    def test_one_on_another_gets_its_value(self, score: Score) -> None:
        longest = figure(lambda samples: max(each.value for each in samples), TURNS, name="test.longest")
        thrice = figure(lambda value: 3 * value, "test.longest", name="test.thrice")
        both = figure(lambda value, samples: value + len(samples), "test.thrice", TURNS, name="test.both")
        found = headlines(score(both, longest, thrice))
        assert found["test.longest"].value == 2.0  # of 1 and 2 turns
        assert found["test.thrice"].value == 6.0
        assert found["test.both"].value == 8.0  # 6, and 2 conversations

    def test_one_on_another_that_failed_is_unmeasured(self, score: Score) -> None:
        broken = figure(raises, TURNS, name="test.broken")
        found = headlines(score(broken, figure(lambda value: 3 * value, "test.broken")))
        assert told(found["test.figure"]) == ("unmeasured", None, "input_metric_raised")


def same(*values: Any) -> float:
    """The same."""
    return 1.0


REFUSED = {
    "two over a group that need each other": [
        figure(same, "test.b", name="test.a"),
        figure(same, "test.a", name="test.b"),
    ],
    "two of a conversation that need each other": [
        figure(same, "test.b", name="test.a", over="conversation"),
        figure(same, "test.a", name="test.b", over="conversation"),
    ],
    "one that needs itself": [figure(same, "test.figure")],
    "a circle of three": [
        figure(same, "test.b", TURNS, name="test.a"),
        figure(same, "test.c", name="test.b"),
        figure(same, "test.a", name="test.c"),
    ],
    "a conversation that needs a group": [
        figure(same, TURNS, name="test.a"),
        figure(same, "test.a", over="conversation"),
    ],
    "an input by its bare name": [figure(same, "turns")],
    "an input that nobody declares": [figure(same, "test.nothing", over="conversation")],
}


@pytest.mark.parametrize("metrics", REFUSED.values(), ids=REFUSED)
def test_what_cannot_work_is_refused_before_anything_runs(
    score: Score, tmp_path: Path, metrics: list[Declared]
) -> None:
    asked: list[str] = []

    def watched(conversation: Conversation) -> Observation:
        """Was anything scored?"""
        asked.append(conversation.id)
        return measured(conversation, 1)

    with pytest.raises(DeclarationError):
        score(made(watched, "test.watched"), *metrics)
    assert asked == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "facts", [{"reduce": ("mode",)}, {"reduce": (MEAN, "mode")}, {"also": {"mode": "mode"}}, {"reduce": (MEAN, MEAN)}]
)
def test_a_step_that_is_no_reducer_is_refused_where_it_is_declared(facts: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError, match="is not a reducer"):
        made(**{name: Reduce(*given) if name == "reduce" else given for name, given in facts.items()})


class TestNeeds:
    def test_a_predicate_that_raises_is_an_error_score(self, score: Score) -> None:
        def asks(conversation: Conversation) -> bool:
            if conversation.id == "a":
                raise KeyError("gold")
            return True

        need = Need(code="no_gold", field="gold", unlock="gold labels", present=asks)
        run = score(made(needs=(need,)), TURNS)
        scores = {one.conversation: one.observation for one in run.scores("test.made")}
        assert (scores["a"].status, scores["a"].reason) == ("error", "metric_raised")
        assert scores["a"].detail == "KeyError: 'gold'"
        assert scores["b"].value == 1.0
        assert headlines(run)[TURNS].samples_measured == 2


class Thing:
    def __repr__(self) -> str:
        return "a thing"


class TestDetails:
    @pytest.mark.parametrize(
        ("given", "kept"),
        [
            ({"x": Thing()}, {"x": "a thing"}),
            ({"x": [1, Thing()]}, {"x": [1, "a thing"]}),
            ({"x": 1j}, {"x": "1j"}),
            ({(1, 2): "pair"}, {"(1, 2)": "pair"}),
            ({"x": "\ud800"}, {"shown": r"{'x': '\ud800'}"}),  # half a character
            ({"x": float("nan"), "y": 1}, {"x": None, "y": 1}),
            ({"x": float("inf")}, {"x": None}),
        ],
        ids=["object", "object inside", "complex", "key", "half a character", "NaN", "infinite"],
    )
    def test_what_json_cannot_say_is_kept_as_text(self, score: Score, given: Any, kept: Any) -> None:
        def with_details(conversation: Conversation) -> Observation:
            """Does it have details?"""
            return measured(conversation, 1, details=given)

        run = score(made(with_details))
        assert [one.observation.details for one in run.scores()] == [kept, kept]
        assert headlines(run)["test.made"].value == 1.0
