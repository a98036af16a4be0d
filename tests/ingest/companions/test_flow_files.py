"""Flow definitions: every shape that people write them in, what is refused and where."""

from __future__ import annotations

import gzip
import json
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from convoscope.conversation import (
    Conversation,
    Flow,
    FlowSegment,
    FlowState,
    TargetSlot,
    to_json,
)
from convoscope.errors import InputError
from convoscope.ingest.companions.flow_definitions import declares_flow, flows_of
from convoscope.ingest.companions.flows import read_flow_file
from support.logs import write_json, write_text

WHOLE = """
flow: viewing
states:
  greet: {speech_act: static, lifecycle_phase: open}
  collect:
    speech_act: ask
    segment: intake
    required_slots: [city, {name: day}, {slot: budget}]
    latency_budget_s: 1.5
    owner: intake team
  booked: {terminal: success}
  lost: {terminal: true, outcome: failure}
  handed: {terminal_type: escalation}
order: [greet, collect, [booked, lost]]
segments:
  intake:
    kind: collect
    purpose: know what the caller wants
    members: [greet, collect]
    target_slots: [city, {name: day, required: no, validator: is_date, confirmation: explicit}]
    exit_guard: all_filled
completion_slots: [city, day]
final_status: {allowed: [booked, rebooked]}
latency_budget_ms: 2000
description: A flat is to be looked at.
"""


def of(text: str) -> Flow:
    """The only flow that a YAML text declares, without a warning."""
    read = flows_of(list(yaml.safe_load_all(textwrap.dedent(text))), file="f.yaml", stem="f")
    assert not read.warnings
    (flow,) = read.flows
    return flow


class TestTheWholeOfIt:
    def test_everything_that_can_be_declared(self) -> None:
        assert of(WHOLE) == Flow(
            name="viewing",
            states=(
                FlowState(name="greet", speech_act="static", lifecycle_phase="open", rank=0),
                FlowState(
                    name="collect",
                    speech_act="ask",
                    segment="intake",
                    required_slots=("city", "day", "budget"),
                    latency_budget_ms=1500,
                    rank=1,
                    extras={"owner": "intake team"},
                ),
                # Both stand at one place of the order.
                FlowState(name="booked", terminal="success", rank=2),
                FlowState(name="lost", terminal="failure", rank=2),
                FlowState(name="handed", terminal="escalation"),
            ),
            segments=(
                FlowSegment(
                    name="intake",
                    kind="collect",
                    purpose="know what the caller wants",
                    members=("greet", "collect"),
                    target_slots=(
                        TargetSlot(name="city"),
                        TargetSlot(name="day", required=False, validator="is_date", confirmation="explicit"),
                    ),
                    exit_guard="all_filled",
                ),
            ),
            completion_slots=("city", "day"),
            final_status=("booked", "rebooked"),
            latency_budget_ms=2000,
            extras={"description": "A flat is to be looked at."},
        )

    def test_json_and_yaml_declare_the_same(self, tmp_path: Path) -> None:
        as_yaml = read_flow_file(write_text(tmp_path / "a.yaml", WHOLE))
        as_json = read_flow_file(write_json(tmp_path / "a.json", yaml.safe_load(WHOLE)))
        assert as_yaml.flows == as_json.flows == (of(WHOLE),)

    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
    def test_any_wrapping(self, tmp_path: Path, encoding: str) -> None:
        path = tmp_path / "a.yaml"
        path.write_bytes("flow: größe\nstates: [a]\n".encode(encoding))
        assert read_flow_file(path).flows[0].name == "größe"
        path.write_bytes(gzip.compress(b"flow: packed\nstates: [a]\n"))
        assert read_flow_file(path).flows[0].name == "packed"


class TestShapes:
    @pytest.mark.parametrize(
        "states",
        [
            "{a: {terminal: success}, b: }",
            "[{name: a, terminal: success}, {id: b}]",
            "[{state: a, terminal: success}, b]",
            "[{a: {terminal: success}}, {b: }]",
        ],
    )
    def test_states(self, states: str) -> None:
        expected = (FlowState(name="a", terminal="success"), FlowState(name="b"))
        assert of(f"{{flow: x, states: {states}}}").states == expected

    @pytest.mark.parametrize(
        ("text", "name", "extras"),
        [
            ("{flow: x, name: Long name, states: [a]}", "x", {"name": "Long name"}),
            ("{name: x, id: 7, states: [a]}", "x", {"id": 7}),
            ("{id: 7, states: [a]}", "7", {}),
            ("{states: [a]}", "f", {}),
            ("{flow: {name: x, states: [a]}}", "x", {}),
            ("{flow: {states: [a]}}", "f", {}),
            ("{flows: {x: {name: Long name, states: [a]}}}", "x", {"name": "Long name"}),
            ("{x: {states: {a: {terminal: true}}}}", "x", {}),
        ],
    )
    def test_names(self, text: str, name: str, extras: dict[str, Any]) -> None:
        flow = of(text)
        assert (flow.name, flow.extras, [state.name for state in flow.states]) == (name, extras, ["a"])

    @pytest.mark.parametrize(
        "text",
        [
            "flows: [{flow: x, states: [a]}, {name: y, states: [b]}]",
            "flows: {x: {states: [a]}, y: {states: [b]}}",
            "[{flow: x, states: [a]}, {name: y, states: [b]}]",
            "flow: x\nstates: [a]\n---\n---\nid: y\nstates: [b]\n",
        ],
    )
    def test_several_flows(self, tmp_path: Path, text: str) -> None:
        flows = read_flow_file(write_text(tmp_path / "f.yaml", text)).flows
        assert [(flow.name, flow.states[0].name) for flow in flows] == [("x", "a"), ("y", "b")]

    def test_only_an_order_that_is_said_is_one(self) -> None:
        assert [state.rank for state in of("{flow: x, states: [a, b]}").states] == [None, None]
        ranked = of("{flow: x, states: {a: {rank: 3}, b: {order: 1.5}, c: {}}}")
        assert [state.rank for state in ranked.states] == [3, 1.5, None]

    @pytest.mark.parametrize(
        ("facts", "terminal"),
        [
            ("{}", ""),
            ("{terminal: false}", ""),
            ("{terminal: no}", ""),
            ("{terminal: true}", "unknown"),
            ("{terminal: 'yes'}", "unknown"),
            ("{terminal: Success}", "success"),
            ("{terminal: failed}", "failure"),
            ("{terminal: true, sort: escalation}", "escalation"),
            ("{terminal: true, terminal_type: success}", "success"),
            ("{terminal_type: failure}", "failure"),
            ("{terminal: success, outcome: success}", "success"),
        ],
    )
    def test_ends(self, facts: str, terminal: str) -> None:
        assert of(f"{{flow: x, states: {{a: {facts}}}}}").states[0].terminal == terminal

    def test_ends_by_their_sort(self) -> None:
        flow = of(
            """
            flow: x
            states: {a: {}, b: {terminal: true}, c: {}, escalated: {terminal: true}, d: {terminal: success}}
            terminals: {success: a, failure: [b], escalation: [{state: c}]}
            """
        )
        # A state called `escalated` hands over, whatever the flow says beside that it is an end.
        assert [state.terminal for state in flow.states] == [
            "success",
            "failure",
            "escalation",
            "escalation",
            "success",
        ]
        assert of("{flow: x, states: [a, b], terminals: [b]}").terminals["b"] == "unknown"

    def test_without_states_those_that_are_named_elsewhere(self) -> None:
        flow = of("{flow: x, order: [a, [b, c]], segments: {s: [c, d]}, terminals: {success: e}}")
        assert [(state.name, state.rank) for state in flow.states] == [
            ("a", 0),
            ("b", 1),
            ("c", 1),
            ("d", None),
            ("e", None),
        ]
        assert flow.states[-1].terminal == "success"

    @pytest.mark.parametrize(
        "slots", ["city", "[city]", "[{slot: city}]", "{city: }", "[city, {name: x, required: no}]"]
    )
    def test_slots(self, slots: str) -> None:
        flow = of(f"{{flow: x, states: {{a: {{required_slots: {slots}}}}}, completion_slots: {slots}}}")
        assert (flow.states[0].required_slots, flow.completion_slots) == (("city",), ("city",))

    def test_what_has_no_place_is_kept(self) -> None:
        slots = [{"name": "city", "kind": "text"}]
        flow = of(
            f"{{flow: x, states: {{a: {{required_slots: {slots}}}}}, segments: {{s: {{target_slots: {slots}}}}}}}"
        )
        assert flow.states[0].extras == {"required_slots": slots}
        assert flow.segments[0].extras == {"target_slots": {"city": {"kind": "text"}}}

    @pytest.mark.parametrize(
        ("segments", "members"),
        [
            ("[{name: s, members: [a]}]", ("a",)),
            ("[{segment: s, states: a}]", ("a",)),
            ("{s: [a]}", ("a",)),
            ("{s: {states: [a]}}", ("a",)),
            ("[s]", ()),
        ],
    )
    def test_segments(self, segments: str, members: tuple[str, ...]) -> None:
        (segment,) = of(f"{{flow: x, states: [a], segments: {segments}}}").segments
        # Slots that are not declared are None: nothing can be said of them.
        assert (segment.name, segment.members, segment.target_slots) == ("s", members, None)

    @pytest.mark.parametrize(
        ("text", "allowed"),
        [
            ("booked", ("booked",)),
            ("[booked, moved]", ("booked", "moved")),
            ("{contract: booked}", ("booked",)),
            ("{expected: [booked]}", ("booked",)),
            ("null", None),
        ],
    )
    def test_final_status(self, text: str, allowed: tuple[str, ...] | None) -> None:
        assert of(f"{{flow: x, states: [a], final_status: {text}}}").final_status == allowed

    def test_words_that_older_yaml_takes_for_something_else(self, tmp_path: Path) -> None:
        path = write_text(tmp_path / "f.yaml", "flow: on\nstates: [yes, no, off, 007, 2026-01-02, 12:30, 5]\n")
        (flow,) = read_flow_file(path).flows
        assert flow.name == "on"
        assert list(flow.by_name) == ["yes", "no", "off", "007", "2026-01-02", "12:30", "5"]

    def test_merged_keys(self, tmp_path: Path) -> None:
        text = "flow: x\nbase: &base {speech_act: ask, segment: s}\nstates: {a: {<<: *base, segment: t}}\n"
        (state,) = read_flow_file(write_text(tmp_path / "f.yaml", text)).flows[0].states
        assert (state.speech_act, state.segment) == ("ask", "t")


class TestMistakes:
    @pytest.mark.parametrize(
        ("text", "field", "says"),
        [
            ("just words", "", "a flow definition is a mapping"),
            ("{flow: x}", "", "declares nothing about a flow"),
            ("{flow: x, sates: [a]}", "", "did you mean states by sates?"),
            ("{flow: true, states: [a]}", "flow", "is true, and should be a text"),
            ("{flow: x, states: 7}", "states", "is the number 7"),
            ("{flow: x, states: [a, [b]]}", "states.2", "is a list, and should be a text"),
            ("{flow: x, states: [a, a]}", "states.a", "is declared twice"),
            ("{flow: x, states: [{speech_act: ask, rank: 1}]}", "states.1", "has no name"),
            ("{flow: x, states: {a: ask}}", "states.a", "is the text 'ask'"),
            ("{flow: x, states: {a: {required_slots: [[b]]}}}", "states.a.required_slots.1", "is a list"),
            ("{flow: x, states: {a: {required_slots: true}}}", "states.a.required_slots", "is true"),
            ("{flow: x, states: {a: {speech_act: [ask]}}}", "states.a.speech_act", "is a list"),
            ("{flow: x, states: {a: {terminal: maybe}}}", "states.a.terminal", "success, failure or escalation"),
            ("{flow: x, states: {a: {terminal: 3}}}", "states.a.terminal", "is the number 3"),
            (
                "{flow: x, states: {a: {terminal: no, terminal_type: success}}}",
                "states.a.terminal",
                "is false together with",
            ),
            ("{flow: x, states: {a: {terminal: success, outcome: failure}}}", "states.a.outcome", "contradicts"),
            ("{flow: x, states: {a: {rank: first}}}", "states.a.rank", "write a number"),
            ("{flow: x, states: {a: {rank: 1, order: 2}}}", "states.a.order", "is given together with rank"),
            ("{flow: x, states: {a: {latency_budget_ms: 800 ms}}}", "states.a.latency_budget_ms", "without quotes"),
            ("{flow: x, states: [a], latency_budget_s: 0}", "latency_budget_s", "more than 0"),
            (
                "{flow: x, states: [a], latency_budget_s: 1, latency_budget_ms: 1}",
                "latency_budget_s",
                "is given together with latency_budget_ms",
            ),
            ("{flow: x, states: [a], order: a}", "order", "the order is a list"),
            ("{flow: x, states: [a], order: [a, a]}", "order", "names 'a' twice"),
            ("{flow: x, states: {a: {rank: 1}}, order: [a]}", "order", "has a rank of its own"),
            ("{flow: x, states: [a], terminals: {good: [a]}}", "terminals.good", "not a kind of end"),
            (
                "{flow: x, states: {a: {terminal: failure}}, terminals: {success: [a]}}",
                "terminals.success",
                "as failure",
            ),
            ("{flow: x, segments: 3}", "segments", "is the number 3"),
            ("{flow: x, segments: {s: {kind: 3.5}}}", "segments.s.kind", "is the number 3.5"),
            (
                "{flow: x, segments: {s: {members: [a], states: [a]}}}",
                "segments.s.states",
                "is given together with members",
            ),
            ("{flow: x, segments: {s: x}}", "segments.s", "is the text 'x'"),
            ("{flow: x, segments: [s, s]}", "segments.s", "is declared twice"),
            (
                "{flow: x, segments: {s: {target_slots: [{name: a, required: perhaps}]}}}",
                "segments.s.target_slots.a.required",
                "write true or false",
            ),
            ("{flow: x, segments: {s: {target_slots: {a: 3}}}}", "segments.s.target_slots.a", "is the number 3"),
            ("{flow: x, states: [a], final_status: {of: b}}", "final_status", "add `contract: [..]`"),
            ("{flow: x, states: [a], final_status: [[b]]}", "final_status.1", "is a list"),
            ("{flows: [], states: [a]}", "flows", "is given together with states"),
            ("{flows: []}", "flows", "is an empty list"),
            ("{flows: [x]}", "flows.1", "a flow is a mapping"),
            ("{flows: [{states: [a]}]}", "flows.1", "has no name"),
            ("{flows: [{flow: x, states: [a]}, {flow: x, states: [a]}]}", "flows.2", "declared twice in this file"),
            ("{flows: {x: {states: {a: {rank: b}}}}}", "flows.x.states.a.rank", "write a number"),
            ("{states: [a]}\n---\n{flow: y, states: [b]}", "documents.1", "has no name"),
        ],
    )
    def test_are_told_with_file_and_field(self, text: str, field: str, says: str) -> None:
        with pytest.raises(InputError) as caught:
            flows_of(list(yaml.safe_load_all(text)), file="f.yaml", stem="" if "---" in text else "f")
        assert (caught.value.file, caught.value.field) == ("f.yaml", field)
        assert says in str(caught.value)
        assert caught.value.hint

    @pytest.mark.parametrize(
        ("text", "line", "says"),
        [
            ("flow: x\nstates:\n\ta: {}\n", 3, "is not YAML"),
            ("flow: x\nstates: [a\n", 3, "is not YAML"),
            ("flow: x\nstates:\n  a: {}\n  b: {}\n  a: {}\n", 5, "'a' occurs twice"),
            ("flow: x\nstates: !!python/name:os.system\n", 2, "the tag !!python/name:os.system is not read here"),
            ("flow: x\nstates: !include other.yaml\n", 2, "the tag !include is not read here"),
            ("flow: x\nstates: *other\n", 2, "*other names nothing"),
            ("flow: x\nstates: [\x01]\n", 2, "holds a character that YAML does not allow"),
        ],
    )
    def test_of_yaml_are_told_with_their_line(self, tmp_path: Path, text: str, line: int, says: str) -> None:
        path = tmp_path / "f.yaml"
        path.write_text(text)
        with pytest.raises(InputError) as caught:
            read_flow_file(path, "f.yaml")
        assert (caught.value.file, caught.value.line) == ("f.yaml", line)
        assert says in str(caught.value)

    def test_of_files(self, tmp_path: Path) -> None:
        for data, says in (
            (b"", "is empty"),
            (b"# nothing\n", "is empty"),
            (b"flow: \xff\n", "is not UTF-8"),
            (gzip.compress(b"flow: x\nstates: [a]\n")[:20], "cut off"),
        ):
            (tmp_path / "f.yaml").write_bytes(data)
            with pytest.raises(InputError, match=says):
                read_flow_file(tmp_path / "f.yaml")
        for text, says in (
            ("{", "cut off"),
            ('{"states": {"a": {}, "a": {}}}', "'a' occurs twice"),
            ("[" * 9999, "deep"),
        ):
            (tmp_path / "f.json").write_text(text)
            with pytest.raises(InputError, match=says):
                read_flow_file(tmp_path / "f.json")

    @pytest.mark.parametrize(
        "text",
        [
            "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 9}x]\n" for n in range(1, 30)),
            "a0: &a0 {k: v}\n" + "".join(f"a{n}: &a{n} {{<<: [{f'*a{n - 1}, ' * 9}]}}\n" for n in range(1, 30)),
            "states: &a [*a]\n",
            "x: &a 1\nstates: &a {b: *a}\n",
            "states: " + "[" * 1_000_000,
            "states:\n" + "- " * 300_000 + "x\n",
            "states:\n" + "".join(" " * depth + "a:\n" for depth in range(2000)),
            "states:\n" + "- a\n" * 1_000_000,
            "states: [" + "a, " * 4_000_000 + "]",
            "states: !!int " + "1:" * 100_000 + "1\n",
            "states: !!float " + "1:" * 100_000 + "1\n",
        ],
        ids=["bomb", "merge bomb", "circle", "new circle", "depth", "dashes", "blocks", "many", "huge", "int", "float"],
    )
    def test_hostile_yaml_is_refused_at_once(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "f.yaml"
        path.write_text(text)
        began = time.perf_counter()
        with pytest.raises(InputError):
            read_flow_file(path)
        assert time.perf_counter() - began < 5

    def test_what_does_not_fit_together_is_a_warning(self) -> None:
        text = """
        flow: x
        states: {a: {segment: z, requierd_slots: [city]}, b: {sort: success}, c: {segment: s}}
        order: [a, nowhere]
        terminals: {success: [gone]}
        segments: {s: {members: [a, lost]}, t: {members: [a, c], perpose: none}}
        final_state: done
        """
        read = flows_of([yaml.safe_load(text)], file="f.yaml", stem="f")
        assert sorted(read.warnings) == [
            "f.yaml final_state: is no known key, and was kept as it is; did you mean final_status?",
            "f.yaml order: 'nowhere' is no state of the flow",
            "f.yaml segments.s.members: 'lost' is no state of the flow",
            "f.yaml segments.t.members: 'a' is a member of s, too; the last one counts",
            "f.yaml segments.t.perpose: is no known key, and was kept as it is; did you mean purpose?",
            "f.yaml states.a.requierd_slots: is no known key, and was kept as it is; did you mean required_slots?",
            "f.yaml states.a.segment: 'z' is no segment of the flow",
            "f.yaml states.b.sort: says nothing, since the state is not declared as terminal; add `terminal: true`",
            "f.yaml states.c.segment: says 's', and t lists the state as its member; what the state says counts",
            "f.yaml terminals.success: 'gone' is no state of the flow",
        ]
        (flow,) = read.flows
        assert flow.states[0].extras == {"requierd_slots": ["city"]}
        assert flow.states[1].extras == {"sort": "success"}


WORDS = """
flow flows name id states segments order terminals completion_slots final_status latency_budget_ms latency_budget_s
required_slots speech_act lifecycle_phase segment terminal terminal_type sort outcome rank kind purpose members
target_slots exit_guard contract success failure required validator slot state a b
"""
KEYS = st.sampled_from(WORDS.split())
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["a", "b", "success", "yes", "true"]),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.one_of(KEYS, st.text(max_size=3)), inner, max_size=5)
    ),
    max_leaves=25,
)


class TestFuzz:
    @given(st.one_of(VALUES, st.dictionaries(KEYS, VALUES, min_size=2, max_size=6)))
    @example({"flow": "x", "states": {"a": {"terminal_type": []}}})
    @example({"flows": {"": {"states": ["a"]}}})
    @example({"flows": {"flows": {"flows": {"flows": {"flows": {"states": ["a"]}}}}}})
    def test_a_value_is_a_flow_or_an_input_error(self, value: Any) -> None:
        declares_flow(value)
        try:
            flows = flows_of([value], file="f", stem="f").flows
        except InputError:
            return
        for flow in flows:
            assert (flow.by_name, flow.segment_of, flow.terminals) is not None

    @settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(value=VALUES, at=st.integers(0, 400), junk=st.sampled_from([*"{}[]:,-&*!|>'\"%@`#?\t\n", "<<", "---\n"]))
    def test_a_text_is_flows_or_an_input_error(self, tmp_path: Path, value: Any, at: int, junk: str) -> None:
        text = yaml.safe_dump({"flow": "x", "states": value}, allow_unicode=True)
        path = tmp_path / "f.yaml"
        path.write_bytes((text[:at] + junk + text[at:]).encode("utf-8", "replace"))
        try:
            (*flows,) = read_flow_file(path).flows
        except InputError:
            return
        # What was read can be kept, and comes back.
        assert json.loads(json.dumps([flow.name for flow in flows]))
        assert to_json(Conversation(id="c", flow=flows[0]))
