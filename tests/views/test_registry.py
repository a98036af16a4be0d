"""A metric is given the view of a conversation that its annotation names, by type."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import convoscope
from convoscope.conversation import Conversation, StateEntered
from convoscope.errors import DeclarationError
from convoscope.metrics import CONVERSATION, NEITHER, STATE, Metric, Observation, measured, metric
from convoscope.metrics.registry import registered
from convoscope.metrics.signatures import computed
from convoscope.scoring.job import check_declarations
from convoscope.views.flow.state_rows import StateRow
from convoscope.views.registry import view_for
from support.chats import agent, chat, told, user

if TYPE_CHECKING:
    from convoscope.views.standard_data.model import StandardData


class Opening(NamedTuple):
    """The first words of a conversation."""

    text: str


@convoscope.view
def opening(conversation: Conversation) -> Opening:
    """The first words."""
    return Opening(conversation.text(conversation.utterances[0]))


def declared(function: Any, **facts: Any) -> Metric:
    return metric("test.views", **{"version": 1, "observes": CONVERSATION, "unit": "x", "better": NEITHER} | facts)(
        function
    )


TALK = chat(user("hello there"), agent("hi"))


def words(first: Opening) -> Observation:
    """How many words open the conversation?"""
    return measured(first, len(first.text.split()))


def visits(rows: Sequence[StateRow]) -> Iterator[Observation]:
    """How often was each state visited?"""
    for row in rows:
        yield measured(row, row.visits)


def of_item(item: StandardData) -> float:
    """How long is the answer?"""
    return len(item.agent_response or "")


def test_one_of_your_own() -> None:
    # "hello there" has two words
    assert told(declared(words)(TALK)) == [("conversation", 2.0)]


def test_the_rows_of_a_flow() -> None:
    walk = chat(*(StateEntered(seq=number, state=name) for number, name in enumerate(("ask", "confirm", "ask"))))
    assert told(declared(visits, observes=STATE)(walk)) == [("state ask", 2.0), ("state confirm", 1.0)]


def test_a_type_that_is_imported_for_type_checkers_alone_is_known_by_its_name() -> None:
    assert told(declared(of_item)(TALK)) == [("conversation", 2.0)]


def test_a_type_of_the_same_name_is_another_type() -> None:
    class MetricContext:
        """Not ours."""

    def lost(context: Any) -> Observation:
        """Whose context is it?"""
        return measured(context, 1)

    lost.__annotations__["context"] = MetricContext
    with pytest.raises(DeclarationError, match="asks for a MetricContext"):
        check_declarations([declared(lost)])


def test_what_nobody_declared_is_refused_before_anything_runs() -> None:
    def lost(thing: int) -> Observation:
        """What is it?"""
        return measured(thing, 1)  # type: ignore[arg-type]

    with pytest.raises(DeclarationError, match=r"test\.views asks for a int, which is not a view") as caught:
        check_declarations([declared(lost)])
    assert "Conversation, MetricContext, Opening" in caught.value.hint
    assert "@convoscope.view" in caught.value.hint


def test_a_view_says_what_it_returns() -> None:
    with pytest.raises(DeclarationError, match="does not say what it returns"):
        convoscope.view(lambda conversation: 3)


def test_a_type_has_one_view() -> None:
    def other(conversation: Conversation) -> Opening:
        return Opening("")

    with pytest.raises(DeclarationError, match="Opening is a view already"):
        convoscope.view(other)
    assert convoscope.view(opening) is opening  # loaded again


FILE = """
from typing import NamedTuple
import convoscope
from convoscope.metrics import measured

class Closing(NamedTuple):
    text: str

@convoscope.view
def closing(conversation) -> Closing:
    return Closing(conversation.text(conversation.utterances[-1])LATER)

@convoscope.metric("test.closing", version=1, observes="conversation", unit="words", better="neither")
def words(last: Closing):
    \"\"\"How many words close the conversation?\"\"\"
    return measured(last, len(last.text.split()))
"""


def test_the_signature_covers_a_view_of_your_own(tmp_path: Path) -> None:
    path = tmp_path / "my_closing.py"
    signatures = []
    for later in ("", "", ".strip()"):
        path.write_text(FILE.replace("LATER", later))
        signatures.append(computed(registered([path]).declared["test.closing"]))
    assert signatures[0] == signatures[1] != signatures[2]


class Callable:
    """An object that is called like a function, with a field of its own."""

    threshold: int = 1

    def __call__(self, first: Opening) -> Observation:
        """How many words open the conversation?"""
        return words(first)


def test_a_metric_may_be_an_object_or_a_part_of_a_function() -> None:
    @functools.wraps(words)
    def wrapped(*arguments: Any) -> Observation:
        return words(*arguments)

    some = functools.partial(words)
    for one in (Callable(), some, wrapped):
        assert view_for(one, "test.views").type.endswith(".Opening")
