"""Items become a conversation and come back as they were: fields, unknown keys and warnings."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convoscope.conversation import Conversation, from_json, to_json
from convoscope.views.standard_data import StandardData, Tidied, standard_data_of, tidy, to_conversation
from convoscope.views.standard_data.canonical import fields_of
from support.made_up_items import joined
from support.made_up_payloads import payloads
from support.strategies import conversations


def there_and_back(tidied: list[Tidied]) -> Conversation:
    conversation = to_conversation(tidied, id="talk-1")
    read = from_json(to_json(conversation))
    assert read == conversation
    return read


@given(joined())
def test_nothing_is_lost_on_the_way(items: list[dict[str, Any]]) -> None:
    tidied = [tidy(item) for item in items]
    before = copy.deepcopy(tidied)
    conversation = there_and_back(tidied)
    assert tidied == before, "what was given is left as it was"
    assert [fields_of(conversation, item) for item in conversation.items] == tidied


# Lists of payloads are often larger than what Hypothesis draws for one example: it drops those.
@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.data_too_large, HealthCheck.too_slow])
@given(st.lists(payloads(), min_size=1, max_size=3))
def test_nothing_is_lost_of_messy_payloads(items: list[dict[str, Any]]) -> None:
    tidied = [tidy(item) for item in items]
    conversation = there_and_back(tidied)
    assert [fields_of(conversation, item) for item in conversation.items] == tidied


@given(joined())
def test_the_models_are_equal(items: list[dict[str, Any]]) -> None:
    made = [StandardData.model_validate(item) for item in items]
    back = standard_data_of(there_and_back([tidy(item) for item in items]))
    assert back == made
    assert [item.warnings for item in back] == [item.warnings for item in made]


@given(conversations())
def test_any_conversation_has_items(conversation: Conversation) -> None:
    for item in standard_data_of(conversation):
        assert isinstance(item, StandardData)
