"""Which segment a state belongs to, and which archetype a segment is (flow-states, tier 2)."""

from __future__ import annotations

import pytest

from convoscope.conversation.flow import Flow, FlowSegment, FlowState
from convoscope.views.flow.state_rows import has_no_cohesion, kind_of, segment_of
from support.flow_conversations import entered, rows


def of(state: FlowState, *segments: FlowSegment) -> str:
    return segment_of(Flow(name="f", states=(state,), segments=segments), state.name)


class TestPrecedence:
    """The authored segment, else the lifecycle phase, else the family of the speech act."""

    def test_authored_first(self) -> None:
        state = FlowState(name="s", segment="intake", lifecycle_phase="gather", speech_act="confirm")
        assert of(state) == "intake"

    def test_authored_as_a_member_of_a_segment(self) -> None:
        state = FlowState(name="s", lifecycle_phase="gather", speech_act="confirm")
        assert of(state, FlowSegment(name="intake", members=("s",))) == "intake"

    def test_what_the_state_says_weighs_more_than_the_list_of_members(self) -> None:
        assert of(FlowState(name="s", segment="own"), FlowSegment(name="intake", members=("s",))) == "own"

    def test_then_the_lifecycle_phase(self) -> None:
        assert of(FlowState(name="s", lifecycle_phase="gather", speech_act="confirm")) == "gather"

    @pytest.mark.parametrize(
        ("speech_act", "family"),
        [
            ("ask", "collect"),
            ("listen", "collect"),
            ("static", "collect"),
            ("confirm", "confirm"),
            ("act", "act"),
            ("Listen", "collect"),
        ],
    )
    def test_then_the_family_of_the_speech_act(self, speech_act: str, family: str) -> None:
        assert of(FlowState(name="s", speech_act=speech_act)) == family

    def test_else_none(self) -> None:
        assert of(FlowState(name="s")) == ""
        assert of(FlowState(name="s", speech_act="hum")) == ""


class TestNullWithAReason:
    def test_no_definition(self) -> None:
        row = rows(entered("s"))["s"]
        assert (row.segment, row.reasons["segment"]) == (None, "no_flow_definition")

    def test_nothing_declared_of_the_state(self) -> None:
        flow = Flow(name="f", states=(FlowState(name="s"),))
        for state in ("s", "elsewhere"):
            row = rows(entered(state), flow=flow)[state]
            assert (row.segment, row.reasons["segment"]) == (None, "no_segment_declared")

    def test_every_row_carries_its_tag(self) -> None:
        flow = Flow(name="f", states=(FlowState(name="s", speech_act="ask"),))
        row = rows(entered("s"), flow=flow)["s"]
        assert row.segment == "collect"
        assert "segment" not in row.reasons


class TestArchetype:
    @pytest.mark.parametrize(
        ("name", "archetype"),
        [
            *[(name, "collect") for name in ("collect", "enrich", "gather", "triage")],
            *[(name, "confirm") for name in ("confirm", "readback")],
            *[(name, "act") for name in ("act", "book", "dispatch", "commit", "action")],
            *[(name, "terminal") for name in ("terminal", "close", "escalation", "greeting")],
            ("handoff", "handoff"),
            ("Read-Back", "confirm"),
            ("Hand off", "handoff"),
            ("small-talk", "small_talk"),
            ("TRIAGE", "collect"),
            ("upsell", "upsell"),
        ],
    )
    def test_variants_are_folded(self, name: str, archetype: str) -> None:
        assert kind_of(None, name) == archetype

    def test_the_declared_kind_weighs_more_than_the_name(self) -> None:
        flow = Flow(name="f", segments=(FlowSegment(name="close", kind="gather"), FlowSegment(name="triage")))
        assert kind_of(flow, "close") == "collect"
        assert kind_of(flow, "triage") == "collect"

    def test_only_terminal_kinds_have_no_cohesion(self) -> None:
        assert has_no_cohesion("terminal")
        assert not any(map(has_no_cohesion, ("collect", "confirm", "act", "handoff")))

    def test_a_name_that_is_no_archetype_takes_the_speech_acts_of_its_states_where_they_agree(self) -> None:
        intake = [FlowState(name=act, segment="intake", speech_act=act) for act in ("ask", "listen")]
        assert kind_of(Flow(name="f", states=tuple(intake)), "intake") == "collect"
        mixed = (*intake, FlowState(name="c", segment="intake", speech_act="confirm"))
        assert kind_of(Flow(name="f", states=mixed), "intake") == "intake"

    def test_a_declared_kind_is_not_overruled_by_speech_acts(self) -> None:
        states = (FlowState(name="a", segment="s", speech_act="ask"),)
        flow = Flow(name="f", states=states, segments=(FlowSegment(name="s", kind="smalltalk"),))
        assert kind_of(flow, "s") == "smalltalk"
