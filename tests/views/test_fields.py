"""Any field of a record by its name, wherever the reader kept it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.conversation import Conversation, Label, Outcome
from convoscope.views.fields import MAX_FIELDS, field_names, field_value
from support.chats import chat, user


def conversation(**facts: object) -> Conversation:
    return chat(user("hi"), **facts)


RICH = conversation(
    dimensions={"agent": "v2", "team": "of the dimension"},
    labels=(
        Label(name="csat", value=2, rater="vendor", rater_kind="external"),
        Label(name="csat", value=5),
        Label(name="clarity", value=1, subject_kind="turn", subject="1"),
    ),
    extras={
        "team": "of the extras",
        "metadata": {"squad": "s1", "deep": {"er": True}},
        "a.b": 7,
        "list": [1],
        "no": "",
    },
    outcome=Outcome(final_status="resolved", completed=False, extras={"why": "x"}),
)


class TestAField:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("agent", "v2"),
            ("team", "of the dimension"),  # a dimension counts before the extras
            ("extras.team", "of the extras"),  # unless the place is named
            ("csat", 5),  # a person's label before a vendor's
            ("squad", "s1"),
            ("metadata.squad", "s1"),
            ("extras.metadata.squad", "s1"),
            ("metadata.deep.er", True),
            ("deep.er", True),
            ("a.b", 7),  # a key may hold a dot itself
            ("final_status", "resolved"),
            ("completed", False),
            ("outcome.completed", False),
            ("why", "x"),
        ],
    )
    def test_is_found_by_its_name_and_by_its_path(self, name: str, value: object) -> None:
        assert field_value(RICH, name) == value

    @pytest.mark.parametrize(
        "name", ["list", "metadata", "no", "clarity", "nothing", "metadata.nothing", "", ".", "a."]
    )
    def test_lists_objects_empty_texts_and_labels_of_a_turn_are_none(self, name: str) -> None:
        assert field_value(RICH, name) is None

    def test_the_names_are_those_that_can_be_asked_for(self) -> None:
        names = field_names(RICH)
        assert {"agent", "csat", "metadata.squad", "a.b", "final_status", "why"} <= set(names)
        assert not {"list", "metadata", "no", "clarity"} & set(names)
        assert all(field_value(RICH, name) is not None for name in names)

    def test_of_very_many_the_first_are_named(self) -> None:
        many = conversation(extras={f"x{number}": number for number in range(3 * MAX_FIELDS)})
        assert len(field_names(many)) == MAX_FIELDS
        assert field_value(many, f"x{3 * MAX_FIELDS - 1}") == 3 * MAX_FIELDS - 1


values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), values, max_size=4))
def test_whatever_a_log_holds_every_name_that_is_listed_has_a_value(extras: dict[str, object]) -> None:
    strange = conversation(extras=extras)
    for name in field_names(strange):
        assert isinstance(field_value(strange, name), str | int | float)
