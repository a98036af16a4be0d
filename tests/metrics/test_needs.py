"""What metrics need: the facts that they read against a plain look at each case."""

from hypothesis import given

from convoscope.conversation import Agent, Conversation
from convoscope.conversation.lazy import forget
from convoscope.metrics.declaration import Metric
from convoscope.metrics.item_fields import FIELDS, PARTS, PRESENT, WAITS
from convoscope.metrics.needs import GROUND_TRUTH, TOOLS_KNOWN
from convoscope.metrics.registry import installed
from convoscope.views.items import Case, cases
from support.chats import agent, call, chat, user
from support.few_events import conversations

_CARRIED = tuple(sorted({*PRESENT, "latency", "turn_id"}))
with_items = conversations(_CARRIED)


def _parts(case: Case) -> bool:
    others = ("stt_span", "tts_span", "turn", "call")
    return case.extras.get("latency") is not None or any(one.component not in others for one in case.metrics)


def _waits(case: Case) -> bool:
    return _parts(case) or any(one.values.get("e2e_latency") is not None for one in case.metrics)


@given(with_items)
def test_a_field_is_there_where_some_case_has_it(conversation: Conversation) -> None:
    found = {field: need.met(conversation) for field, need in FIELDS.items() if need is not GROUND_TRUTH}
    forget(conversation)
    mine = cases(conversation)
    assert found == {field: any(PRESENT[field](case) for case in mine) for field in found}
    assert PARTS.met(conversation) == any(_parts(case) for case in mine)
    assert WAITS.met(conversation) == any(_waits(case) for case in mine)
    truths = [conversation.expected, *(item.expected for item in conversation.items)]
    assert GROUND_TRUTH.met(conversation) == any(one.ground_truth is not None for one in truths)


_CONDITIONS = [
    need.present
    for declared in installed().resolve()
    if isinstance(declared, Metric)
    for need in declared.needs
    if need.present is not None
]


def test_tools_are_known_by_a_list_or_by_a_call() -> None:
    assert not TOOLS_KNOWN.met(chat(user("hi"), agent("Hello.")))
    assert TOOLS_KNOWN.met(chat(user("hi"), call("find")))
    assert TOOLS_KNOWN.met(chat(user("hi"), agent("Hello."), agent=Agent(tools=())))
