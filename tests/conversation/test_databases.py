"""Scenario databases: what counts as equal, the hash, and what changed between two of them."""

from __future__ import annotations

import hashlib
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.conversation.databases import (
    ADDED,
    CHANGED,
    REMOVED,
    UNORDERED,
    Change,
    canonical,
    changes,
    database_hash,
    fits,
    is_hash_of,
    printed,
    same,
)
from support.strategies import json_values, texts


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# The canonical form (voice-logs, 1.2)


class TestCanonical:
    def test_the_session_is_no_part_of_the_database(self) -> None:
        assert canonical({"a": 1, "session": {"user": "x"}}) == {"a": 1}

    def test_only_the_session_at_the_top(self) -> None:
        assert canonical({"a": {"session": 1}}) == {"a": {"session": 1}}

    def test_whole_floats_are_integers(self) -> None:
        made = canonical({"fare": 210.0, "rate": 0.5, "list": [1.0, -0.0]})
        assert made == {"fare": 210, "rate": 0.5, "list": [1, 0]}
        assert [type(made["fare"]), type(made["list"][0])] == [int, int]

    @pytest.mark.parametrize("nothing", ["none", "None", "NULL", " null ", "\tnone\n"])
    def test_none_and_null_in_words_are_null(self, nothing: str) -> None:
        assert canonical({"a": {"meal": nothing}}) == {"a": {"meal": None}}

    @pytest.mark.parametrize("something", ["", "no", "nonesuch", "nil", "None of these"])
    def test_other_texts_stay(self, something: str) -> None:
        assert canonical({"a": something}) == {"a": something}

    def test_true_is_not_one(self) -> None:
        assert canonical({"a": True}) == {"a": True}
        assert not same(True, 1)
        assert same(1, 1.0)

    @pytest.mark.parametrize("key", sorted(UNORDERED))
    def test_six_lists_have_no_order_at_any_depth(self, key: str) -> None:
        assert canonical({"t": {"r": {key: ["b", "a"]}}}) == {"t": {"r": {key: ["a", "b"]}}}
        assert canonical({key: [{"b": 2}, {"a": 1}]}) == {key: [{"a": 1}, {"b": 2}]}

    def test_other_lists_keep_theirs(self) -> None:
        assert canonical({"segments": [2, 1]}) == {"segments": [2, 1]}


class TestHash:
    def test_is_of_json_with_sorted_keys_and_no_spaces(self) -> None:
        content = {"b": [1.0, "None"], "a": {"y": "é", "x": 0.5}, "session": {"user": "x"}}
        assert database_hash(content) == sha256('{"a":{"x":0.5,"y":"\\u00e9"},"b":[1,null]}')

    def test_an_empty_database_has_one(self) -> None:
        assert database_hash({}) == sha256("{}")

    @pytest.mark.parametrize(
        "written",
        [
            '{"a":{"fare":210,"meal":null}}',  # the canonical form
            '{"a":{"fare":210.0,"meal":"none"}}',  # as it stands, without the session
            '{"a":{"fare":210.0,"meal":"none"},"session":{"u":1}}',  # as it stands
        ],
    )
    def test_a_stored_hash_may_be_of_the_content_as_it_stands(self, written: str) -> None:
        content = {"session": {"u": 1}, "a": {"meal": "none", "fare": 210.0}}
        assert is_hash_of(sha256(written), content)
        assert is_hash_of(sha256(written).upper() + "\n", content)

    def test_a_stored_hash_may_be_of_text_beyond_ascii(self) -> None:
        assert is_hash_of(sha256('{"a":"é"}'), {"a": "é"})

    def test_a_hash_of_something_else_is_not(self) -> None:
        assert not is_hash_of(sha256('{"a":2}'), {"a": 1})
        assert not is_hash_of("", {})

    @given(st.dictionaries(texts(), json_values(), max_size=4), st.randoms(use_true_random=False))
    def test_the_order_of_keys_means_nothing(self, content: dict[str, Any], random: Any) -> None:
        assert database_hash(shuffled(content, random)) == database_hash(content)

    @given(st.dictionaries(texts(), json_values(), max_size=4))
    def test_the_canonical_form_is_its_own(self, content: dict[str, Any]) -> None:
        assert canonical(canonical(content)) == canonical(content)
        assert database_hash(canonical(content)) == database_hash(content)
        assert is_hash_of(database_hash(content), content)


def shuffled(value: Any, random: Any) -> Any:
    if isinstance(value, dict):
        items = [(key, shuffled(one, random)) for key, one in value.items()]
        random.shuffle(items)
        return dict(items)
    return [shuffled(one, random) for one in value] if isinstance(value, list) else value


# What changed

BEFORE = {
    "_current_date": "2026-03-17",
    "reservations": {
        "ZK3FFW": {
            "status": "confirmed",
            "passengers": [{"name": "Ana", "seat": "1A"}, {"name": "Bo", "seat": "1B"}],
            "bookings": [{"journey_id": "J1", "status": "confirmed", "fare": 260.0}],
        }
    },
    "refunds": {},
}


def edited(**edits: Any) -> dict[str, Any]:
    """BEFORE with other values at the given places of reservation ZK3FFW."""
    content = deepcopy(BEFORE)
    content["reservations"]["ZK3FFW"].update(edits)  # type: ignore[index]
    return content


AT = ("reservations", "ZK3FFW")


class TestChanges:
    def test_of_nothing_are_none(self) -> None:
        assert changes(BEFORE, deepcopy(BEFORE)) == ()
        assert changes({}, {}) == ()

    def test_a_field(self) -> None:
        (change,) = changes(BEFORE, edited(status="cancelled"))
        assert change == Change((*AT, "status"), CHANGED, "confirmed", "cancelled")
        assert str(change) == 'reservations.ZK3FFW.status: "confirmed" → "cancelled"'

    def test_a_whole_record_is_one_change(self) -> None:
        refund = {"amount": 100, "to": {"card": "1234"}}
        (change,) = changes(BEFORE, deepcopy(BEFORE) | {"refunds": {"RF1": refund}})
        assert change == Change(("refunds", "RF1"), ADDED, now=refund)
        assert str(change) == 'refunds.RF1: added {"amount": 100, "to": {"card": "1234"}}'

    def test_so_is_its_removal(self) -> None:
        after = deepcopy(BEFORE) | {"reservations": {}}
        assert [(one.path, one.kind) for one in changes(BEFORE, after)] == [(AT, REMOVED)]

    def test_a_field_that_comes_or_goes_is_not_a_field_that_is_null(self) -> None:
        assert changes({"a": None}, {}) == (Change(("a",), REMOVED),)
        assert changes({}, {"a": None}) == (Change(("a",), ADDED),)
        assert changes({"a": 1}, {"a": None}) == (Change(("a",), CHANGED, 1, None),)

    def test_what_is_equal_in_canonical_form_is_no_change(self) -> None:
        assert changes({"a": 210.0, "b": "none", "session": 1}, {"a": 210, "b": None, "session": 2}) == ()

    def test_true_and_one_differ(self) -> None:
        assert changes({"a": 1}, {"a": True}) == (Change(("a",), CHANGED, 1, True),)

    def test_a_member_of_a_list_is_called_by_its_place(self) -> None:
        people = [{"name": "Ana", "seat": "1A"}, {"name": "Bo", "seat": "9F"}]
        assert changes(BEFORE, edited(passengers=people)) == (
            Change((*AT, "passengers", "1", "seat"), CHANGED, "1B", "9F"),
        )

    @pytest.mark.parametrize(
        ("before", "after", "expected"),
        [
            ([1, 2, 3], [1, 2, 3, 4], [("3", ADDED)]),
            ([1, 2, 3], [0, 1, 2, 3], [("0", ADDED)]),
            ([1, 2, 3], [1, 3], [("1", REMOVED)]),
            ([1, 2, 3], [], [("0", REMOVED), ("1", REMOVED), ("2", REMOVED)]),
            ([1, 2], [2, 1], [("0", CHANGED), ("1", CHANGED)]),
        ],
        ids=["at the end", "at the start", "from the middle", "all", "swapped"],
    )
    def test_what_is_put_in_or_taken_out_of_a_list(self, before: list, after: list, expected: list) -> None:
        assert [(one.path[-1], one.kind) for one in changes({"l": before}, {"l": after})] == expected

    def test_in_a_list_without_order_by_its_identity(self) -> None:
        new = {"journey_id": "J0", "status": "confirmed", "fare": 300}
        old = {"journey_id": "J1", "status": "cancelled", "fare": 260}
        assert changes(BEFORE, edited(bookings=[new, old])) == (
            Change((*AT, "bookings", "J0"), ADDED, now=new),
            Change((*AT, "bookings", "J1", "status"), CHANGED, "confirmed", "cancelled"),
        )

    def test_the_identity_is_what_tells_the_members_apart(self) -> None:
        before = {"bookings": [{"customer_id": "C", "leg_id": 1, "seat": "A"}, {"customer_id": "C", "leg_id": 2}]}
        after = {"bookings": [{"customer_id": "C", "leg_id": 2}, {"customer_id": "C", "leg_id": 1, "seat": "B"}]}
        assert changes(before, after) == (Change(("bookings", "1", "seat"), CHANGED, "A", "B"),)

    def test_plain_members_are_called_by_their_value(self) -> None:
        before, after = {"group_memberships": ["vpn", "hr"]}, {"group_memberships": ["hr", "admin", "vpn"]}
        assert changes(before, after) == (Change(("group_memberships", "admin"), ADDED, now="admin"),)

    def test_one_more_of_the_same_is_a_change(self) -> None:
        before, after = {"notifications": ["hi"]}, {"notifications": ["hi", "hi"]}
        assert [one.kind for one in changes(before, after)] == [ADDED]

    def test_another_kind_of_thing(self) -> None:
        assert changes({"a": {"b": 1}}, {"a": [1]}) == (Change(("a",), CHANGED, {"b": 1}, [1]),)

    def test_contents_that_are_no_record(self) -> None:
        assert changes([1], [1.0]) == ()
        assert changes(None, {"a": 1}) == (Change((), CHANGED, None, {"a": 1}),)

    def test_a_long_value_is_cut_when_printed(self) -> None:
        (change,) = changes({}, {"a": "x" * 1000})
        assert len(str(change)) < 200
        assert str(change).endswith("…")


class TestParts:
    def test_of_a_record_that_is_added(self) -> None:
        change = Change(("t", "r"), ADDED, now={"a": 1, "b": {"c": [2]}})
        assert [(printed(one.path), one.now) for one in change.inside()] == [
            ("t.r", {"a": 1, "b": {"c": [2]}}),
            ("t.r.a", 1),
            ("t.r.b", {"c": [2]}),
            ("t.r.b.c", [2]),
            ("t.r.b.c.0", 2),
        ]

    def test_of_a_record_that_is_removed(self) -> None:
        assert list(Change(("r",), REMOVED, was={"a": 1}).parts()) == [Change(("r", "a"), REMOVED, was=1)]

    def test_a_record_that_becomes_something_else_loses_its_fields(self) -> None:
        assert list(Change(("a",), CHANGED, {"b": 1}, "gone").parts()) == [Change(("a", "b"), REMOVED, 1)]
        assert list(Change(("a",), CHANGED, "x", "y").parts()) == []


class TestProperties:
    @given(st.dictionaries(texts(), json_values(), max_size=4))
    def test_a_database_does_not_differ_from_itself(self, content: dict[str, Any]) -> None:
        assert changes(content, deepcopy(content)) == ()
        assert changes(content, canonical(content)) == ()

    @given(
        databases := st.dictionaries(
            st.sampled_from(["a", "bookings", "notifications", "session", "x.y"]), json_values(12), max_size=3
        ),
        databases,
    )
    def test_there_are_changes_exactly_where_the_hashes_differ(self, one: dict, other: dict) -> None:
        assert (changes(one, other) == ()) == (database_hash(one) == database_hash(other))

    @given(
        records := st.recursive(
            st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["x", "none"]),
            lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        ),
        records,
    )
    def test_applying_the_changes_gives_the_other_database(self, one: Any, other: Any) -> None:
        made = {"top": deepcopy(one)}
        for change in changes({"top": one}, {"top": other}):
            *outer, last = change.path
            place: Any = made
            for key in outer:
                place = place[key]
            if change.kind == REMOVED:
                del place[last]
            else:
                place[last] = change.now
        assert database_hash(made) == database_hash({"top": other})

    @given(st.dictionaries(texts(), json_values(), max_size=3), st.dictionaries(texts(), json_values(), max_size=3))
    def test_back_is_the_same_way(self, one: dict, other: dict) -> None:
        turned = {ADDED: REMOVED, REMOVED: ADDED, CHANGED: CHANGED}
        there = [(change.path, change.kind) for change in changes(one, other)]
        back = [(change.path, turned[change.kind]) for change in changes(other, one)]
        assert there == back


# Paths


class TestPatterns:
    @pytest.mark.parametrize(
        ("pattern", "path"),
        [
            ("a.b.c", ("a", "b", "c")),
            ("a.*.c", ("a", "b", "c")),
            ("a.**", ("a",)),
            ("a.**", ("a", "b", "c")),
            ("**.c", ("a", "b", "c")),
            ("a.**.d", ("a", "b", "c", "d")),
            ("**", ()),
            ("**", ("a", "b")),
            (r"users.ana@example\.com.name", ("users", "ana@example.com", "name")),
            (r"a.\*", ("a", "*")),
            (r"a.\\", ("a", "\\")),
            ("a.*", ("a", "")),
            ("a.*", ("a", "two\nlines")),
            ("a(.b", ("a(", "b")),
            ("**.b.**.c.**.d", ("a", "b", "b", "c", "b", "c", "d")),
            ("**.**.a.**", ("a",)),
        ],
    )
    def test_fit(self, pattern: str, path: tuple[str, ...]) -> None:
        assert fits(pattern, path)

    @pytest.mark.parametrize(
        ("pattern", "path"),
        [
            ("a.b", ("a",)),
            ("a.b", ("a", "b", "c")),  # a path names what it says; `a.b.**` is all of it
            ("a.*", ("a",)),
            ("a.*", ("a", "b", "c")),
            ("a.b", ("a.b",)),
            (r"a\.b", ("a", "b")),
            (r"a.\*", ("a", "b")),
            ("a.**.d", ("a", "b", "c")),
            ("a", ("A",)),
            ("**.b.c", ("b", "b")),
            ("**.".join(["", *["a."] * 30, "b"]), ("a",) * 60),  # in more ways than can be tried
        ],
    )
    def test_do_not_fit(self, pattern: str, path: tuple[str, ...]) -> None:
        assert not fits(pattern, path)

    @given(st.lists(texts(), min_size=1, max_size=4).map(tuple), st.lists(texts(), min_size=1, max_size=4).map(tuple))
    def test_a_printed_path_is_a_pattern_for_itself_alone(self, path: tuple[str, ...], other: tuple[str, ...]) -> None:
        assert fits(printed(path), path)
        assert fits(printed(path), other) == (path == other)

    @given(st.text(max_size=12))
    def test_any_text_is_a_pattern(self, pattern: str) -> None:
        assert fits(pattern, ("a",)) in (True, False)
