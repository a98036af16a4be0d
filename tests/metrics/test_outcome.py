"""outcome.*: was the task done, was the user let in, did it end in time?"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from convoscope.conversation import (
    Agent,
    ChangePattern,
    ChangeRules,
    Conversation,
    Database,
    Outcome,
    Scenario,
    Tool,
    from_json,
    to_json,
)
from convoscope.conversation.databases import database_hash
from convoscope.metrics import Observation
from convoscope.metrics.outcome.task import (
    MAX_LINES,
    auth_calls,
    authentication_success,
    call_success_rate,
    calls_on_failure,
    conversation_completed_on_time,
    conversation_completed_on_time_eva,
    first_try,
    task_completion,
)
from convoscope.scoring.evaluate import observe
from support.chats import agent as says
from support.chats import call, chat, result, told, user

BEFORE: dict[str, Any] = {
    "reservations": {
        "ZK3": {"status": "confirmed", "email": "ana@example.com", "log": [{"note": "booked", "at": "09:00"}]},
        "QQ7": {"status": "confirmed", "email": "bo@example.com", "log": []},
    },
    "refunds": {},
}
# The task: cancel ZK3, refund 100.
EXPECTED: dict[str, Any] = deepcopy(BEFORE)
EXPECTED["reservations"]["ZK3"]["status"] = "cancelled"
EXPECTED["reservations"]["ZK3"]["log"].append({"note": "cancelled by phone", "at": "10:00"})
EXPECTED["refunds"]["RF-1"] = {"refund_id": "RF-1", "amount": 100, "reservation": "ZK3", "at": "10:00"}


def done(**edits: Any) -> dict[str, Any]:
    """The expected database with other values at places such as `reservations__ZK3__status`; None takes it away."""
    content = deepcopy(EXPECTED)
    for place, value in edits.items():
        *outer, last = place.replace("RF_", "RF-").split("__")
        record: Any = content
        for key in outer:
            record = record[key]
        if value is None:
            del record[last]
        else:
            record[last] = value
    return content


def ended(
    after: Any, *, expected: Any = EXPECTED, before: Any = BEFORE, rules: ChangeRules | None = None, stored: str = ""
) -> Conversation:
    def database(content: Any) -> Database | None:
        return None if content is None else content if isinstance(content, Database) else Database(content)

    final = Database(after, stored) if stored else database(after)
    return chat(
        user("cancel, please"),
        scenario=Scenario(before=database(before), after=final, expected=database(expected), rules=rules),
    )


def judged(after: Any, **facts: Any) -> Observation:
    (one,) = observe(task_completion, ended(after, **facts))
    return one


def pattern(path: str, **facts: Any) -> ChangePattern:
    return ChangePattern(path=path, **facts)


class TestPlainComparison:
    def test_the_expected_database_is_a_1(self) -> None:
        one = judged(done())
        assert (one.value, one.details) == (1.0, {"hash": database_hash(EXPECTED)})

    def test_what_does_not_count_does_not_count(self) -> None:
        # A whole float, and a further key of the session.
        assert judged(done(refunds__RF_1__amount=100.0, session={"user": "x"})).value == 1.0

    def test_a_task_not_done_is_a_0_and_says_what_is_missing(self) -> None:
        one = judged(BEFORE)
        assert one.value == 0.0
        assert one.details == {
            "hash": database_hash(BEFORE),
            "broke": ["required"],
            "diff": [
                'not done: refunds.RF-1: nothing, expected {"refund_id": "RF-1", "amount": 100, "reservation": "ZK3", '
                '"at": "10:00"}',
                'not done: reservations.ZK3.log.1: nothing, expected {"note": "cancelled by phone", "at": "10:00"}',
                'not done: reservations.ZK3.status: "confirmed", expected "cancelled"',
            ],
        }

    def test_collateral_damage_is_a_0(self) -> None:
        one = judged(done(reservations__QQ7__status="cancelled"))
        assert (one.value, one.details["broke"]) == (0.0, ["collateral"])
        assert one.details["diff"] == ['collateral: reservations.QQ7.status: "cancelled", expected "confirmed"']

    def test_done_otherwise_is_not_done(self) -> None:
        one = judged(done(refunds__RF_1__amount=250))
        assert (one.value, one.details["broke"]) == (0.0, ["required"])
        assert one.details["diff"] == ["done otherwise: refunds.RF-1.amount: 250, expected 100"]

    def test_without_the_database_before_it_merely_differs(self) -> None:
        one = judged(done(reservations__QQ7__status="cancelled"), before=None)
        assert (one.value, one.details["broke"]) == (0.0, ["expected"])
        assert one.details["diff"] == ['differs: reservations.QQ7.status: "cancelled", expected "confirmed"']

    def test_a_long_difference_is_cut_and_counted(self) -> None:
        after = done() | {"extra": 1} | {f"table {number:02}": {} for number in range(30)}
        one = judged(after)
        assert len(one.details["diff"]) == MAX_LINES
        assert one.details["more"] == 31 - MAX_LINES  # one table named extra, thirty with a number

    def test_a_task_without_a_change_is_done_by_doing_nothing(self) -> None:
        assert judged(BEFORE, expected=BEFORE).value == 1.0


class TestSession:
    EXPECTED = EXPECTED | {"session": {"user": "Ana", "verified": True}}

    def test_every_key_present_and_equal_without_regard_to_case(self) -> None:
        assert judged(done(session={"user": "ANA", "verified": True, "more": 1}), expected=self.EXPECTED).value == 1.0

    def test_any_mismatch_is_a_0_though_the_database_is_right(self) -> None:
        one = judged(done(session={"user": "Bo"}), expected=self.EXPECTED)
        assert one.value == 0.0
        assert one.details["broke"] == ["session"]
        assert one.details["session"] == [
            'session.user: "Bo", expected "Ana"',
            "session.verified: missing, expected true",
        ]
        assert "diff" not in one.details

    def test_no_session_at_all_is_a_0(self) -> None:
        assert judged(done(), expected=self.EXPECTED).value == 0.0

    def test_without_the_start_neither_session_can_be_measured(self) -> None:
        """Rules speak of changes: the wrong session alone was measured, so that the figure could only be 0."""
        rules = ChangeRules(forbidden=(pattern("**"),))
        for after in (done(), done() | {"session": self.EXPECTED["session"]}):
            one = judged(after, expected=self.EXPECTED, before=None, rules=rules)
            assert told([one]) == [("conversation", "unmeasured: no_initial_database")]


class TestHashes:
    def test_a_stored_hash_that_differs_is_told_and_the_content_counts(self) -> None:
        one = judged(done(), stored=database_hash(BEFORE))
        assert (one.value, one.details["stored_hash_differs"]) == (1.0, True)
        one = judged(BEFORE, stored=database_hash(EXPECTED))
        assert (one.value, one.details["stored_hash_differs"]) == (0.0, True)

    def test_one_that_is_right_is_not_mentioned(self) -> None:
        assert "stored_hash_differs" not in judged(done(), stored=database_hash(EXPECTED)).details

    @pytest.mark.parametrize(("content", "value"), [(EXPECTED, 1.0), (BEFORE, 0.0)])
    def test_a_hash_without_content_is_compared_with_the_expected_one(self, content: Any, value: float) -> None:
        one = judged(Database(None, database_hash(content)))
        assert (one.value, one.details["compared"]) == (value, "hash")

    def test_also_where_the_expected_one_is_known_by_its_hash(self) -> None:
        expected = Database(None, database_hash(EXPECTED))
        assert judged(done(), expected=expected).value == 1.0
        assert judged(BEFORE, expected=expected).value == 0.0
        assert judged(expected, expected=expected).value == 1.0

    def test_a_hash_does_not_tell_the_session(self) -> None:
        expected = EXPECTED | {"session": {"user": "Ana"}}
        one = judged(Database(None, database_hash(expected)), expected=expected)
        assert (one.value, one.details) == (1.0, {"compared": "hash", "not_compared": ["session"]})
        # Another database is wrong, whoever is logged in.
        assert judged(Database(None, database_hash(BEFORE)), expected=expected).value == 0.0

    def test_seven_of_thirteen_by_hash_are_seven_thirteenths(self) -> None:
        """Only mismatches were measured, which gave 0 %."""
        expected = EXPECTED | {"session": {"user": "Ana"}}
        hashes = [database_hash(expected)] * 7 + [database_hash(BEFORE)] * 6
        values = [judged(Database(None, one), expected=expected).value for one in hashes]
        assert values == [1.0] * 7 + [0.0] * 6

    def test_rules_cannot_be_held_against_a_hash(self) -> None:
        one = judged(Database(None, database_hash(EXPECTED)), rules=ChangeRules(allowed=(pattern("refunds.**"),)))
        assert told([one]) == [("conversation", "unmeasured: no_final_database")]


class TestAllowed:
    """What the expected database says is required, except for what is allowed."""

    ALLOWED = ChangeRules(allowed=(pattern("reservations.*.log.**"), pattern("refunds.*.at")))

    def test_another_time_or_note_is_as_good(self) -> None:
        after = done(refunds__RF_1__at="10:07")
        after["reservations"]["ZK3"]["log"][1] = {"note": "the caller cancelled", "at": "10:07"}
        assert judged(after).value == 0.0
        assert judged(after, rules=self.ALLOWED).value == 1.0
        assert judged(after, rules=self.ALLOWED, before=None).value == 1.0

    def test_allowed_may_also_not_happen(self) -> None:
        assert judged(done(reservations__ZK3__log=BEFORE["reservations"]["ZK3"]["log"]), rules=self.ALLOWED).value == 1

    def test_the_rest_is_still_required(self) -> None:
        one = judged(done(refunds__RF_1__amount=250, refunds__RF_1__at="10:07"), rules=self.ALLOWED)
        assert one.details["diff"] == ["done otherwise: refunds.RF-1.amount: 250, expected 100"]

    def test_damage_is_still_damage(self) -> None:
        one = judged(done(reservations__QQ7__email="x@example.com"), rules=self.ALLOWED)
        assert (one.value, one.details["broke"]) == (0.0, ["collateral"])

    def test_a_record_that_is_not_there_is_not_excused_by_one_of_its_fields(self) -> None:
        one = judged(done(refunds__RF_1=None), rules=self.ALLOWED)
        assert (one.value, one.details["broke"]) == (0.0, ["required"])

    def test_a_record_is_allowed_where_each_of_its_fields_is(self) -> None:
        rules = ChangeRules(allowed=(pattern("notes.*.text"), pattern("notes.*.at")))
        assert judged(done() | {"notes": {"n1": {"text": "hi", "at": "10:00"}}}, rules=rules).value == 1.0
        assert judged(done() | {"notes": {"n1": {"text": "hi", "by": "me"}}}, rules=rules).value == 0.0

    def test_a_value_may_be_allowed_and_another_not(self) -> None:
        rules = ChangeRules(allowed=(pattern("reservations.ZK3.status", values=("cancelled", "refunded")),))
        assert judged(done(reservations__ZK3__status="refunded"), rules=rules).value == 1.0
        assert judged(done(reservations__ZK3__status="confirmed"), rules=rules).value == 1.0  # did not happen
        assert judged(done(reservations__ZK3__status="no_show"), rules=rules).value == 0.0

    def test_which_needs_the_database_before(self) -> None:
        rules = ChangeRules(allowed=(pattern("reservations.ZK3.status", values=("cancelled",)),))
        one = judged(done(), rules=rules, before=None)
        assert told([one]) == [("conversation", "unmeasured: no_initial_database")]


class TestGeneratedKeys:
    RULES = ChangeRules(allowed=(pattern("refunds.*.at"),), generated=("refunds.*",))

    def refunded(self, *refunds: dict[str, Any]) -> dict[str, Any]:
        return done() | {"refunds": {refund["refund_id"]: refund for refund in refunds}}

    def refund(self, name: str, **edits: Any) -> dict[str, Any]:
        return EXPECTED["refunds"]["RF-1"] | {"refund_id": name} | edits

    def test_another_key_is_as_good(self) -> None:
        after = self.refunded(self.refund("RF-9", at="11:11"))
        assert judged(after).value == 0.0
        assert judged(after, rules=self.RULES).value == 1.0
        assert judged(after, rules=self.RULES, before=None).value == 1.0

    def test_what_the_record_holds_still_counts(self) -> None:
        assert judged(self.refunded(self.refund("RF-9", amount=250)), rules=self.RULES).value == 0.0

    def test_twice_is_once_too_often(self) -> None:
        one = judged(self.refunded(self.refund("RF-9"), self.refund("RF-10")), rules=self.RULES)
        assert (one.value, one.details["broke"]) == (0.0, ["collateral"])

    def test_a_member_of_a_list_without_order_too(self) -> None:
        rules = ChangeRules(generated=("notifications.*",))
        expected = {"notifications": [{"id": "n1", "text": "hi"}]}
        for after, value in [({"id": "n8", "text": "hi"}, 1.0), ({"id": "n8", "text": "ho"}, 0.0)]:
            facts = {"expected": expected, "before": {"notifications": []}, "rules": rules}
            assert judged({"notifications": [after]}, **facts).value == value


class TestRequired:
    RULES = ChangeRules(
        required=(
            pattern("reservations.ZK3.status", values=("cancelled",)),
            pattern("refunds.*", kind="added", fields={"amount": 100, "reservation": "ZK3"}, times=1),
        ),
        allowed=(pattern("reservations.ZK3.log.**"),),
    )

    def judged(self, after: Any, **facts: Any) -> Observation:
        return judged(after, **{"expected": None, "rules": self.RULES} | facts)

    def test_without_an_expected_database(self) -> None:
        assert self.judged(done()).value == 1.0
        assert self.judged(done(refunds__RF_1__at="23:00")).value == 1.0  # only two fields are asked for

    def test_one_that_did_not_happen_is_a_0(self) -> None:
        one = self.judged(done(reservations__ZK3__status="confirmed"))
        assert (one.value, one.details["broke"]) == (0.0, ["required"])
        assert one.details["diff"] == ['not done: reservations.ZK3.status = "cancelled"']

    def test_one_that_happened_too_often_is_a_0(self) -> None:
        one = self.judged(done(refunds__RF_2=EXPECTED["refunds"]["RF-1"]))
        assert one.details["diff"] == [
            'done 2 times, not 1: refunds.* added = {"amount": 100, "reservation": "ZK3"}',
        ]

    def test_whatever_else_happened_is_damage(self) -> None:
        one = self.judged(done(refunds__RF_2={"amount": 5}, reservations__QQ7=None))
        assert one.details["broke"] == ["collateral"]
        assert [line[:36] for line in one.details["diff"]] == [
            'collateral: refunds.RF-2: added {"am',
            "collateral: reservations.QQ7: remove",
        ]

    def test_a_table_that_is_new_holds_its_records(self) -> None:
        before = {"reservations": BEFORE["reservations"]}
        assert self.judged(done(), before=before).value == 1.0

    def test_values_are_compared_in_canonical_form(self) -> None:
        assert self.judged(done(refunds__RF_1__amount=100.0)).value == 1.0

    def test_they_go_before_the_expected_database(self) -> None:
        assert self.judged(done(refunds__RF_1__at="23:00"), expected=EXPECTED).value == 1.0

    def test_nothing_required_means_that_nothing_may_change(self) -> None:
        for rules in (ChangeRules(required=()), ChangeRules()):
            assert self.judged(BEFORE, rules=rules).value == 1.0
            assert self.judged(done(), rules=rules).details["broke"] == ["collateral"]

    def test_a_removed_record_leads_to_no_value(self) -> None:
        rules = ChangeRules(required=(pattern("reservations.ZK3", kind="removed"),))
        after = {"reservations": {"QQ7": BEFORE["reservations"]["QQ7"]}, "refunds": {}}
        assert self.judged(after, rules=rules).value == 1.0
        rules = ChangeRules(required=(pattern("reservations.ZK3", values=(None,)),), allowed=(pattern("**"),))
        assert self.judged(after, rules=rules).value == 0.0

    def test_without_the_database_before_nobody_knows_what_changed(self) -> None:
        one = self.judged(done(), before=None)
        assert told([one]) == [("conversation", "unmeasured: no_initial_database")]


class TestForbidden:
    def test_beats_required_and_allowed(self) -> None:
        rules = ChangeRules(allowed=(pattern("**"),), forbidden=(pattern("refunds.*.amount"),))
        one = judged(done(), rules=rules)
        assert (one.value, one.details["broke"]) == (0.0, ["forbidden"])
        assert one.details["diff"] == ["forbidden: refunds.RF-1.amount: added 100"]  # inside a record that is new

    def test_by_kind_and_value(self) -> None:
        removal = ChangeRules(allowed=(pattern("**"),), forbidden=(pattern("reservations.*", kind="removed"),))
        assert judged(done(), rules=removal).value == 1.0
        assert judged(done(reservations__QQ7=None), rules=removal).value == 0.0
        no_show = ChangeRules(allowed=(pattern("**"),), forbidden=(pattern("**.status", values=("no_show",)),))
        assert judged(done(), rules=no_show).value == 1.0
        assert judged(done(reservations__QQ7__status="no_show"), rules=no_show).value == 0.0

    def test_holds_in_a_table_that_is_removed_whole(self) -> None:
        rules = ChangeRules(required=(), allowed=(pattern("**"),), forbidden=(pattern("reservations.QQ7.**"),))
        assert judged({"refunds": {}}, rules=rules).value == 0.0


class TestNeeds:
    @pytest.mark.parametrize(
        ("scenario", "reason"),
        [
            (None, "no_final_database"),
            (Scenario(expected=Database({})), "no_final_database"),
            (Scenario(expected=Database({}), after=Database(None)), "no_final_database"),
            (Scenario(after=Database({})), "no_expected_database"),
            (Scenario(after=Database({}), expected=Database(None)), "no_expected_database"),
        ],
    )
    def test_what_is_missing_is_unmeasured(self, scenario: Scenario | None, reason: str) -> None:
        conversation = chat(user("hi"), scenario=scenario)
        assert told(observe(task_completion, conversation)) == [("conversation", f"unmeasured: {reason}")]

    def test_an_empty_database_is_one(self) -> None:
        assert judged({}, expected={}, before=None).value == 1.0

    def test_rules_survive_the_way_through_json(self) -> None:
        conversation = ended(done(), rules=TestRequired.RULES)
        assert from_json(to_json(conversation)) == conversation


class TestAuthenticationSuccess:
    def judged(self, expected: Any, final: Any) -> list[tuple[str, float | str]]:
        conversation = ended({"session": final} if final is not None else {}, expected={"session": expected})
        return told(observe(authentication_success, conversation))

    @pytest.mark.parametrize(
        ("expected", "final", "value"),
        [
            ({"user": "Ana"}, {"user": "ana"}, 1.0),
            ({"user": "Ana"}, {"user": "ana", "level": 2}, 1.0),  # more is fine
            ({"user": "Ana", "level": 2}, {"user": "Ana"}, 0.0),
            ({"user": "Ana"}, {"user": "Bo"}, 0.0),
            ({"user": "Ana"}, {}, 0.0),
            ({"user": "Ana"}, None, 0.0),
            ({"level": 2}, {"level": 2.0}, 1.0),
            ({"ok": True}, {"ok": "true"}, 0.0),
            ({"who": {"name": "Ana"}}, {"who": {"name": "ANA"}}, 1.0),
        ],
    )
    def test_every_expected_key_is_there_and_equal(self, expected: Any, final: Any, value: float) -> None:
        assert self.judged(expected, final) == [("conversation", value)]

    @pytest.mark.parametrize("nothing", [{}, None])
    def test_no_session_expected(self, nothing: Any) -> None:
        assert self.judged(nothing, {"user": "x"}) == [("conversation", "not_applicable: no_session_expected")]

    def test_the_details_say_what_is_wrong(self) -> None:
        (one,) = observe(authentication_success, ended({"session": {}}, expected={"session": {"user": "Ana"}}))
        assert one.details == {"session": ['session.user: missing, expected "Ana"']}

    def test_what_is_missing_is_unmeasured(self) -> None:
        for conversation, reason in [
            (chat(user("hi")), "no_expected_database"),
            (ended({}, expected=Database(None, "ab")), "no_expected_database"),
            (ended(None, expected={"session": {"user": "x"}}), "no_final_database"),
            (ended(Database(None, "ab"), expected={"session": {"user": "x"}}), "no_final_database"),
        ]:
            assert told(observe(authentication_success, conversation)) == [("conversation", f"unmeasured: {reason}")]


AUTH = Agent(tools=(Tool(name="verify", kind="auth"), Tool(name="otp", kind="auth"), Tool(name="book", kind="write")))


class TestAuthenticationCalls:
    def test_first_try(self) -> None:
        conversation = chat(call("book"), call("verify"), result("verify", error="no match"), call("otp"), agent=AUTH)
        assert told(observe(first_try, conversation)) == [("conversation", 0.0)]
        conversation = chat(call("verify"), result("verify", success=True), agent=AUTH)
        assert told(observe(first_try, conversation)) == [("conversation", 1.0)]

    def test_the_number_of_calls(self) -> None:
        conversation = chat(call("verify"), call("otp"), call("book"), call("verify"), agent=AUTH)
        assert told(observe(auth_calls, conversation)) == [("conversation", 3.0)]  # verify, otp, verify
        assert told(observe(auth_calls, chat(call("book"), agent=AUTH))) == [("conversation", 0.0)]

    def test_the_share_that_succeeds(self) -> None:
        conversation = chat(
            call("verify"), result("verify", success=False), call("verify"), result("verify"), call("otp"), agent=AUTH
        )
        assert told(observe(call_success_rate, conversation)) == [
            ("tool call 0", 0.0),
            ("tool call 2", 1.0),  # it reports no error
            ("tool call 4", "unmeasured: no_tool_result"),
        ]

    def test_a_first_call_without_a_result_is_unmeasured(self) -> None:
        assert told(observe(first_try, chat(call("otp"), agent=AUTH))) == [
            ("conversation", "unmeasured: no_tool_result")
        ]

    def test_no_call_is_not_applicable(self) -> None:
        for metric in (first_try, call_success_rate):
            conversation = chat(call("book"), agent=AUTH)
            assert told(observe(metric, conversation)) == [("conversation", "not_applicable: no_auth_calls")]

    @pytest.mark.parametrize("tools", [None, (), (Tool(name="verify"),)], ids=["no list", "empty list", "no kinds"])
    def test_where_no_tool_is_known_to_be_one(self, tools: Any) -> None:
        for metric in (first_try, auth_calls, call_success_rate):
            conversation = chat(call("verify"), agent=Agent(tools=tools))
            assert told(observe(metric, conversation)) == [("conversation", "unmeasured: auth_tools_unknown")]

    def test_an_agent_whose_tools_are_all_of_other_kinds_has_none(self) -> None:
        for metric in (first_try, auth_calls, call_success_rate):
            conversation = chat(call("book"), agent=Agent(tools=(Tool(name="book", kind="write"),)))
            assert told(observe(metric, conversation)) == [("conversation", "not_applicable: no_auth_tools")]

    def test_calls_on_failure(self) -> None:
        def tried(final: dict[str, Any]) -> list[tuple[str, float | str]]:
            scenario = Scenario(expected=Database({"session": {"user": "x"}}), after=Database(final))
            conversation = chat(call("verify"), call("verify"), agent=AUTH, scenario=scenario)
            return told(observe(calls_on_failure, conversation))

        assert tried({}) == [("conversation", 2.0)]
        assert tried({"session": {"user": "X"}}) == [("conversation", "not_applicable: authenticated")]


class TestCompletedOnTime:
    @pytest.mark.parametrize("reason", ["time_limit_exceeded", "TIME_LIMIT_EXCEEDED", "time limit exceeded"])
    def test_the_time_limit_is_a_0(self, reason: str) -> None:
        conversation = chat(user("hi"), says("hello"), outcome=Outcome(ended_reason=reason))
        (one,) = observe(conversation_completed_on_time, conversation)
        assert (one.value, one.details) == (0.0, {"ended_reason": reason})

    @pytest.mark.parametrize("reason", ["goodbye", "inactivity_timeout", "transfer", "unknown"])
    def test_anything_else_is_a_1(self, reason: str) -> None:
        conversation = chat(user("hi"), says("hello"), outcome=Outcome(ended_reason=reason))
        assert told(observe(conversation_completed_on_time, conversation)) == [("conversation", 1.0)]

    @pytest.mark.parametrize(
        ("events", "outcome", "fault"),
        [
            ([user("hi")], Outcome(ended_reason="goodbye"), "agent_never_spoke"),
            ([says("hello")], Outcome(ended_reason="error"), "integration_broke"),
            ([says("hello")], Outcome(ended_reason="goodbye", error="no backend"), "integration_broke"),
        ],
    )
    def test_what_was_no_conversation_was_not_completed(self, events: list, outcome: Outcome, fault: str) -> None:
        """All of them gave 1, and do by the published rule."""
        conversation = chat(*events, outcome=outcome)
        (one,) = observe(conversation_completed_on_time, conversation)
        assert (one.value, (one.details or {})["fault"]) == (0.0, fault)
        assert told(observe(conversation_completed_on_time_eva, conversation)) == [("conversation", 1.0)]

    def test_no_reason_is_unmeasured(self) -> None:
        assert told(observe(conversation_completed_on_time, chat(user("hi")))) == [
            ("conversation", "unmeasured: no_ended_reason")
        ]
