"""Many conversations at once give exactly what each of them gives alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from convoscope.conversation import Conversation
from convoscope.metrics import (
    CONVERSATION,
    HIGHER,
    SHARE,
    Derived,
    Metric,
    Need,
    Observation,
    Reduce,
    TenPoints,
    counted,
    derived,
    measured,
    metric,
    not_applicable,
    ratio,
    unmeasured,
)
from convoscope.metrics.needs import DIALOGUE
from convoscope.metrics.registry import Declared, installed
from convoscope.scores.observation import STATUSES, failed
from convoscope.scores.reducers import MEAN, MEAN_OF_CONVERSATIONS, POOLED_COUNTS, RATIO_OF_SUMS, SUM, WITHIN
from convoscope.scoring.batch import Batch, MetricColumns
from convoscope.scoring.evaluate import Evaluated, evaluate
from convoscope.scoring.profiles import Profile, Profiles
from convoscope.statistics.within import ConversationScore, Observed, Reduced
from support.chats import agent, chat, user
from support.strategies import conversations
from support.tables import turn

MADE_UP = chat(user("hi"), agent("hello"))
MISSING, BROKEN, RAISES = "missing", "broken", "raises"
Said = str | list[Any]
"""What a metric gives for a conversation; or which of its needs is missing or breaks, or that it raises itself."""


class Case(NamedTuple):
    """Metrics, and what each of them says of each conversation."""

    metrics: tuple[Declared, ...]
    said: tuple[Mapping[str, Said], ...]

    def conversations(self) -> list[Conversation]:
        return [msgspec.structs.replace(MADE_UP, id=str(row)) for row in range(len(self.said))]


NUMBERS = st.sampled_from([0.0, -0.0, 1.0, 0.5, 0.1, 0.2, 3.0, -2.5, 1e-300, 1e308, -1e308]) | st.floats(-9, 9)
SHARES = st.sampled_from([0.0, 1.0, 0.5]) | st.floats(0, 1)
REASONS = st.sampled_from(["no_clock", "no_text", "off_topic"])
DETAILS = st.sampled_from(["", "here", "there"])
EVIDENCE = st.sampled_from([None, {"at": 3}])


@st.composite
def observations(draw: st.DrawFn, values: st.SearchStrategy[float], judges: Sequence[str]) -> list[Observation]:
    """Of a few turns, by some of the judges; several of one turn only where judges differ."""
    found: list[Observation] = []
    for number in range(draw(st.integers(0, 4))):
        about = turn(number)
        some = draw(st.lists(st.sampled_from(judges), min_size=1, unique=True)) if judges else ["(computed)"]
        found += [draw(one_observation(about, values, judge)) for judge in some]
    return found


def one_observation(about: Any, values: st.SearchStrategy[float], judge: str) -> st.SearchStrategy[Observation]:
    without = [
        st.builds(make, st.just(about), REASONS, DETAILS, judge=st.just(judge))
        for make in (not_applicable, unmeasured, failed)
    ]
    with_value = st.builds(measured, st.just(about), values, judge=st.just(judge), details=EVIDENCE)
    amounts = st.integers(0, 3) | st.floats(0, 3)
    computed = [
        st.builds(ratio, st.just(about), values, st.sampled_from([0, 1, 2, 7.5]), empty=REASONS),
        st.builds(counted, st.just(about), tp=amounts, fp=amounts, fn=amounts),
    ]
    return st.one_of(with_value, with_value, *without, *(computed if judge == "(computed)" else ()))


JUDGES = ((), (), ("p/a",), ("p/a", "p/b"), ("p/b", "p/a", "(computed)"))
TEN = st.sampled_from(
    [None, TenPoints(0, 1), TenPoints(5, -1), TenPoints(0, 2, of="ratio"), TenPoints(0, 1, falls=(2, 4))]
)


@st.composite
def metrics(draw: st.DrawFn, name: str) -> Metric:
    def function(conversation: Conversation) -> Any:
        """What the case says."""
        raise AssertionError("replaced below")

    def need(code: str) -> Need:
        return Need(code=code, field=code, unlock=code, present=lambda conversation: True)

    return metric(
        name,
        version=1,
        observes=CONVERSATION,
        unit=draw(st.sampled_from(["x", "x", SHARE])),
        better=HIGHER,
        reduce=Reduce(
            WITHIN[draw(st.sampled_from(sorted(WITHIN)))],
            draw(st.sampled_from([MEAN_OF_CONVERSATIONS] * 3 + [RATIO_OF_SUMS, POOLED_COUNTS])),
        ),
        ten=draw(TEN),
        needs=tuple(need(code) for code in draw(st.lists(st.sampled_from(["no_one", "no_two"]), unique=True))),
    )(function)


def speaking(declared: Metric, said: Sequence[Mapping[str, Said]]) -> Metric:
    """The metric with its function and its needs as the case has them."""

    def mine(conversation: Conversation) -> Said:
        return said[int(conversation.id)][declared.name]

    def function(conversation: Conversation) -> Any:
        """What the case says."""
        if mine(conversation) == RAISES:
            raise RuntimeError(f"of {conversation.id}")
        return mine(conversation)

    def met(conversation: Conversation) -> bool:
        if mine(conversation) == BROKEN:
            raise KeyError(conversation.id)
        return mine(conversation) != MISSING

    needs = tuple(msgspec.structs.replace(need, present=met) for need in declared.needs)
    return msgspec.structs.replace(declared, function=function, needs=needs)


def figure(name: str, inputs: Sequence[str], over: str = "conversation") -> Derived:
    def function(*values: float) -> float | None:
        """None, an error or a value, by the first input."""
        if values[0] > 3:
            raise ValueError(f"{values[0]} is too much")
        return None if values[0] < -2 else math.copysign(min(abs(values[-1]), 7.0), values[-1])

    return derived(name, version=1, over=over, unit="x", better=HIGHER, inputs=tuple(inputs))(function)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    plain = [draw(metrics(f"test.m{number}")) for number in range(draw(st.integers(1, 3)))]
    figures: list[Derived] = []
    for number in range(draw(st.integers(0, 3))):
        known = [one.key for one in (*plain, *figures)] + ["test.absent"]
        inputs = draw(st.lists(st.sampled_from(known), min_size=1, max_size=2))
        figures.append(figure(f"test.d{number}", inputs))
    said: list[dict[str, Said]] = [{} for _ in range(draw(st.integers(1, 5)))]
    for one in plain:
        values = SHARES if one.unit == SHARE and draw(st.integers(0, 3)) else NUMBERS
        judges = draw(st.sampled_from(JUDGES))
        kinds = st.sampled_from([MISSING, BROKEN, RAISES]) | observations(values, judges)
        junk = st.just([0.5]) | st.just(None)
        for mine in said:
            mine[one.name] = draw(junk if draw(st.integers(0, 19)) == 7 else kinds)
    every = [*(speaking(one, said) for one in plain), *figures, figure("test.group", [plain[0].key], over="group")]
    return Case(tuple(draw(st.permutations(every))), tuple(said))


def observed_rows(columns: Observed) -> list[tuple[int, tuple[Any, ...]]]:
    found: list[tuple[int, tuple[Any, ...]]] = []
    for place, row in enumerate(columns.row.tolist()):
        numbers = [number(column[place]) for column in (columns.value, columns.numerator, columns.denominator)]
        said = [column[place] for column in columns[6:11]]
        found.append((row, (columns.subject[place], STATUSES[columns.status[place]], *numbers, *said)))
    return found


def reduced_rows(columns: Reduced) -> list[tuple[int, ConversationScore]]:
    found: list[tuple[int, ConversationScore]] = []
    for place, row in enumerate(columns.row.tolist()):
        facts = {name: getattr(columns, name)[place] for name in Reduced._fields if name != "row"}
        plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in facts.items()}
        plain |= {name: number(plain[name]) for name in ("value", "ten")}
        found.append((row, ConversationScore(**plain | {"status": STATUSES[facts["status"]]})))
    return found


def number(value: Any) -> float | None:
    return None if math.isnan(value) else float(value)


def fields(one: Observation) -> tuple[Any, ...]:
    return (
        *(one.subject, one.status, one.value, one.numerator, one.denominator),
        *(one.reason, one.detail, one.details, one.judge, one.repeat),
    )


def check_absent(declared: Declared, place: int, expected: Evaluated, profile: Profile) -> None:
    """A metric that cannot look at a conversation has no row, and its profile says what the row would have said."""
    (one,) = expected.observations
    assert (one.status, one.reason, one.detail) == profile.absent[place], declared.key


def check(metrics: Sequence[Declared], conversations: Sequence[Conversation]) -> None:
    """The columns hold what `evaluate` gives, row for row."""
    batch = Batch(metrics)
    profiles = [batch.add(conversation) for conversation in conversations]
    assert len(batch) == len(conversations)
    columns: dict[int, MetricColumns] = {one.metric_index: one for one in batch.columns()}
    assert list(columns) == sorted(columns)
    alone = [{one.declared.key: one for one in evaluate(conversation, metrics)} for conversation in conversations]
    for place, declared in enumerate(metrics):
        seen: list[tuple[int, tuple[Any, ...]]] = []
        scored: list[tuple[int, ConversationScore]] = []
        if isinstance(declared, Derived) and declared.over == "group":
            assert place not in columns
            continue
        for row, profile in enumerate(profiles):
            expected = alone[row][declared.key]
            if place in profile.absent:
                check_absent(declared, place, expected, profile)
                continue
            seen += [(row, fields(one)) for one in expected.observations]
            scored += [(row, one) for one in expected.scores]
        if not seen:
            assert place not in columns
            continue
        mine = columns[place]
        assert mine.declared is declared
        assert observed_rows(mine.observed) == seen
        assert reduced_rows(mine.reduced) == scored


def one_metric(reduce: Reduce, *said: Said, **facts: Any) -> Case:
    """A single metric that says this of each conversation."""
    facts = {"version": 1, "observes": CONVERSATION, "unit": "x", "better": HIGHER} | facts

    def function(conversation: Conversation) -> Any:
        """What the case says."""
        raise AssertionError("replaced")

    declared = metric("test.m0", reduce=reduce, **facts)(function)
    given = tuple({"test.m0": one} for one in said)
    return Case((speaking(declared, given),), given)


@given(cases())
@example(one_metric(Reduce(MEAN), [counted(turn(1), tp=1, fp=2, fn=0)], [measured(turn(1), 1)]))
@example(one_metric(Reduce(MEAN), [counted(turn(n), tp=1, fp=n, fn=0) for n in range(3)]))
@example(one_metric(Reduce(SUM), [measured(turn(n), 1e308) for n in range(3)], [measured(turn(1), 2)]))
@example(one_metric(Reduce(MEAN), [measured(turn(1), 1.5)], [measured(turn(1), 0.5)], unit=SHARE))
@example(one_metric(Reduce(MEAN), [0.5], [measured(turn(1), 0.5)]))
@example(one_metric(Reduce(MEAN), [measured(turn(1), 1e308)], ten=TenPoints(0, 0.1)))
def test_a_batch_gives_what_each_conversation_gives_alone(case: Case) -> None:
    check(case.metrics, case.conversations())


@given(cases())
def test_a_profile_is_known_by_its_key(case: Case) -> None:
    profiles = Profiles(case.metrics)
    for conversation in case.conversations():
        profile = profiles.of(conversation)
        assert Profiles(case.metrics).with_key(profile.key) == profile


@given(st.lists(conversations(), min_size=1, max_size=4))
def test_so_do_the_installed_metrics_over_any_conversations(some: list[Conversation]) -> None:
    every = installed().resolve()
    check(every, some)
    profiles = Profiles(every)
    for conversation in some:
        profile = profiles.of(conversation)
        assert Profiles(every).with_key(profile.key) == profile


def test_a_profile_says_who_looks_who_breaks_and_what_the_others_say() -> None:
    case = Case((), ({"test.m0": [], "test.m1": MISSING, "test.m2": BROKEN},))

    def declared(name: str) -> Metric:
        def function(conversation: Conversation) -> Any:
            """What the case says."""

        need = Need(code="no_gold", field="gold", unlock="gold", present=bool)
        facts = {"version": 1, "observes": CONVERSATION, "unit": "x", "better": HIGHER, "needs": (need,)}
        return speaking(metric(name, **facts)(function), case.said)

    every = [declared(f"test.m{number}") for number in range(3)]
    every += [figure("test.d0", ["test.m1"]), figure("test.d1", ["test.m0"])]
    profile = Profiles(every).of(case.conversations()[0])
    assert [place for place, _ in profile.ready] == [0]
    assert [(place, need.code) for place, need in profile.broken] == [(2, "no_gold")]
    assert [place for place, _ in profile.derived] == [4]
    # The metric by its need; what is derived from it by its name.
    assert profile.absent == {
        1: ("unmeasured", "no_gold", ""),
        3: ("unmeasured", "input_no_gold", "test.m1"),
    }


@pytest.mark.parametrize("needs", [1, 3, 4, 7])
def test_a_key_holds_the_answers_to_all_needs(needs: int) -> None:
    """Two needs share a character; each of the conversations 0, 1, 2, … lacks those whose bit is set."""

    def made(bit: int) -> Metric:
        def function(conversation: Conversation) -> Observation:
            """One."""
            return measured(conversation, 1)

        met = Need(code=f"no_{bit}", field="f", unlock="u", present=lambda one: not int(one.id) >> bit & 1)
        facts = {"version": 1, "observes": CONVERSATION, "unit": "x", "better": HIGHER}
        return metric(f"test.m{bit}", needs=(met,), **facts)(function)

    every = [made(bit) for bit in range(needs)]
    profiles = Profiles(every)
    keys = set()
    for number in range(2**needs):
        profile = profiles.of(msgspec.structs.replace(MADE_UP, id=str(number)))
        keys.add(profile.key)
        absent = profiles.with_key(profile.key).absent
        assert sorted(absent) == [bit for bit in range(needs) if number >> bit & 1]
    assert len(keys) == 2**needs
    assert {len(key) for key in keys} == {math.ceil((needs + len(DIALOGUE)) / 2)}
