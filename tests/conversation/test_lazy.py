"""cached_on_argument: computed once for each thing, kept with it, and found by its name in another process."""

import pickle

from convoscope.conversation import Conversation
from convoscope.conversation.lazy import cached_on_argument, forget
from support.chats import chat, user

calls: list[str] = []


@cached_on_argument
def length(conversation: Conversation) -> int | None:
    """How many events there are; None for none."""
    calls.append(conversation.id)
    return len(conversation.timeline) or None


def test_it_is_computed_once_until_the_thing_forgets() -> None:
    calls.clear()
    hello, nothing = chat(user("Hello")), chat()
    assert [length(hello), length(hello), length(nothing), length(nothing)] == [1, 1, None, None]
    assert len(calls) == 2
    forget(hello)
    assert length(hello) == 1
    assert len(calls) == 3


def test_another_process_finds_it_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(length)) is length
