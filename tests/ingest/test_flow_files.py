"""Flow definitions: every shape that people write them in, what is refused and where, and who gets them."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import textwrap
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import convoscope
from command_line import convoscope as command
from convoscope.conversation import (
    Conversation,
    Flow,
    FlowSegment,
    FlowState,
    Participant,
    StateEntered,
    StateExited,
    TargetSlot,
    Text,
    Utterance,
    to_json,
)
from convoscope.errors import InputError, UsageError
from convoscope.ingest.definitions import Attacher
from convoscope.ingest.flow_files import FORMAT, read_flow_file
from convoscope.ingest.flow_shapes import declares_flow, flows_of
from convoscope.ingest.inputs import find_inputs
from convoscope.ingest.partitions import cut
from convoscope.ingest.report import ReadReport
from convoscope.runs.parts import PartDone, score_partition
from ingest.logs import CHAT, EXAMPLES, counts, write_json

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


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return path


def walk(id: str, *states: str, **dimensions: str) -> Conversation:
    """A conversation that goes through these states."""
    events: list[Any] = []
    for number, state in enumerate(states):
        events.append(StateEntered(seq=2 * number, state=state))
        if number + 1 < len(states):
            events.append(StateExited(seq=2 * number + 1, state=state, to_state=states[number + 1]))
    return Conversation(id=id, dimensions=dimensions, timeline=tuple(events))


def spoken(id: str, **dimensions: str) -> Conversation:
    said = Utterance(seq=1, speaker="u", heard=Text("Hello?"))
    return Conversation(id=id, dimensions=dimensions, participants=(Participant("u", "user"),), timeline=(said,))


def log(path: Path, *conversations: Conversation) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(to_json(one) + b"\n" for one in conversations))
    return path


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
        as_yaml = read_flow_file(write(tmp_path / "a.yaml", WHOLE))
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
        flows = read_flow_file(write(tmp_path / "f.yaml", text)).flows
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
        path = write(tmp_path / "f.yaml", "flow: on\nstates: [yes, no, off, 007, 2026-01-02, 12:30, 5]\n")
        (flow,) = read_flow_file(path).flows
        assert flow.name == "on"
        assert list(flow.by_name) == ["yes", "no", "off", "007", "2026-01-02", "12:30", "5"]

    def test_merged_keys(self, tmp_path: Path) -> None:
        text = "flow: x\nbase: &base {speech_act: ask, segment: s}\nstates: {a: {<<: *base, segment: t}}\n"
        (state,) = read_flow_file(write(tmp_path / "f.yaml", text)).flows[0].states
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
            ("{flow: x, states: {a: {terminal: no, terminal_type: success}}}", "states.a.terminal", "is false beside"),
            ("{flow: x, states: {a: {terminal: success, outcome: failure}}}", "states.a.outcome", "contradicts"),
            ("{flow: x, states: {a: {rank: first}}}", "states.a.rank", "write a number"),
            ("{flow: x, states: {a: {rank: 1, order: 2}}}", "states.a.order", "stands beside rank"),
            ("{flow: x, states: {a: {latency_budget_ms: 800 ms}}}", "states.a.latency_budget_ms", "without quotes"),
            ("{flow: x, states: [a], latency_budget_s: 0}", "latency_budget_s", "more than 0"),
            (
                "{flow: x, states: [a], latency_budget_s: 1, latency_budget_ms: 1}",
                "latency_budget_s",
                "stands beside latency_budget_ms",
            ),
            ("{flow: x, states: [a], order: a}", "order", "the order is a list"),
            ("{flow: x, states: [a], order: [a, a]}", "order", "names 'a' twice"),
            ("{flow: x, states: {a: {rank: 1}}, order: [a]}", "order", "has a rank of its own"),
            ("{flow: x, states: [a], terminals: {good: [a]}}", "terminals.good", "no sort of end"),
            (
                "{flow: x, states: {a: {terminal: failure}}, terminals: {success: [a]}}",
                "terminals.success",
                "as failure",
            ),
            ("{flow: x, segments: 3}", "segments", "is the number 3"),
            ("{flow: x, segments: {s: {kind: 3.5}}}", "segments.s.kind", "is the number 3.5"),
            ("{flow: x, segments: {s: {members: [a], states: [a]}}}", "segments.s.states", "stands beside members"),
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
            ("{flows: [], states: [a]}", "flows", "stands beside states"),
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
            ("flow: x\nstates:\n  a: {}\n  b: {}\n  a: {}\n", 5, "'a' stands here twice"),
            ("flow: x\nstates: !!python/name:os.system\n", 2, "the tag !!python/name:os.system is not read here"),
            ("flow: x\nstates: !include other.yaml\n", 2, "the tag !include is not read here"),
            ("flow: x\nstates: *other\n", 2, "*other stands for nothing"),
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
            ('{"states": {"a": {}, "a": {}}}', "'a' stands twice"),
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
            "f.yaml states.a.segment: 'z' is none of the segments",
            "f.yaml states.b.sort: says nothing, since the state is not declared as terminal; add `terminal: true`",
            "f.yaml states.c.segment: says 's', and t lists the state as its member; the state's own word counts",
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
    @settings(max_examples=500, deadline=None)
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

    @settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


def files(path: Path, *more: Path, **options: Any) -> dict[str, tuple[str, str]]:
    report = find_inputs([path, *more], **options).report
    return {name: (file.format, file.why or file.skipped) for name, file in report.files.items()}


class TestDiscovery:
    def test_definitions_among_the_logs_are_found(self, tmp_path: Path) -> None:
        write(tmp_path / "flows" / "a.yaml", "{flow: x, states: [a]}")
        write(tmp_path / "b.yml", "flows: {y: {states: [a], order: [a]}, z: {states: {a: {terminal: true}}}}")
        write_json(tmp_path / "c.json", {"flow": "w", "states": ["a"]})
        write_json(tmp_path / "d.json", [{"flow": "v", "states": ["a"]}, {"flow": "u", "states": ["a"]}])
        log(tmp_path / "log.jsonl", walk("1", "a", flow="x"))
        found = find_inputs([tmp_path])
        assert [flow.name for flow in found.flows] == ["u", "v", "w", "x", "y", "z"]
        assert [one.name for one in found.inputs] == ["log.jsonl"]
        assert files(tmp_path) == {
            "flows/a.yaml": (FORMAT, "declares flow x"),
            "b.yml": (FORMAT, "declares flows y, z"),
            "c.json": (FORMAT, "declares flow w"),
            "d.json": (FORMAT, "declares flows v, u"),
        }
        assert found.report.problem_count == 0

    def test_other_yaml_in_a_folder_is_left_alone(self, tmp_path: Path) -> None:
        write(tmp_path / "service.yaml", "kind: Service\nstatus: {states: [ready]}\n")
        write(tmp_path / "geography.yaml", "states: [{name: Bremen, capital: Bremen}]\n")
        write(tmp_path / "template.yaml", "{{- if .Values.flow }}\n\tx: {{ .states }}\n")
        write_json(tmp_path / "log.json", {**CHAT, "flow": "x", "states": ["a"]})
        found = find_inputs([tmp_path])
        assert found.flows == ()
        assert [one.name for one in found.inputs] == ["log.json"]
        assert found.report.problem_count == 0

    def test_other_yaml_that_is_named_is_a_problem(self, tmp_path: Path) -> None:
        path = write(tmp_path / "service.yaml", "kind: Service\n")
        write_json(tmp_path / "log.json", CHAT)
        (problem,) = find_inputs([path, tmp_path / "log.json"]).report.problems
        assert (problem.file, problem.message) == ("service.yaml", "is YAML that declares no flow")

    def test_a_broken_one_is_a_problem_where_it_is_found_and_an_error_where_it_is_named(self, tmp_path: Path) -> None:
        broken = write(tmp_path / "a.yaml", "flow: x\nstates:\n  a: [\n")
        wrong = write_json(tmp_path / "b.json", {"flow": "x", "states": 7})
        report = find_inputs([tmp_path]).report
        assert [(one.file, one.line, one.field) for one in report.problems] == [
            ("a.yaml", 4, ""),
            ("b.json", 0, "states"),
        ]
        for path in (broken, wrong):
            with pytest.raises(InputError, match=path.name):
                find_inputs([path])

    def test_given_ones_win(self, tmp_path: Path) -> None:
        write(tmp_path / "logs" / "x.yaml", "{flow: x, states: [found]}")
        given = write(tmp_path / "x.yaml", "{name: x, states: [given]}")
        (flow,) = find_inputs([tmp_path / "logs"], flows=[given]).flows
        assert list(flow.by_name) == ["given"]
        told = files(tmp_path / "logs", flows=[given])
        assert told["x.yaml"] == (FORMAT, "declares flow x, which was given")
        assert told[str(given)] == (FORMAT, "declares flow x")

    def test_one_that_is_given_and_lies_among_the_logs_is_no_log(self, tmp_path: Path) -> None:
        given = write_json(tmp_path / "x.json", {"name": "x", "states": ["a"]})
        log(tmp_path / "log.jsonl", walk("1", "a"))
        found = find_inputs([tmp_path], flows=given)
        assert ([one.name for one in found.inputs], len(found.flows)) == (["log.jsonl"], 1)

    def test_two_of_one_name_that_differ_are_an_error_with_both_files(self, tmp_path: Path) -> None:
        first = write(tmp_path / "a.yaml", "{flow: x, states: [a]}")
        second = write(tmp_path / "b.yaml", "# the same\nflow: x\nstates: {a: }\n")
        assert len(find_inputs([tmp_path]).flows) == 1
        write(second, "{flow: x, states: [b]}")
        for options in ({"paths": [tmp_path]}, {"paths": [tmp_path / "c"], "flows": [first, second]}):
            with pytest.raises(InputError, match=r"b\.yaml.*in another way than .*a\.yaml"):
                find_inputs(**options)

    def test_a_folder_may_be_given(self, tmp_path: Path) -> None:
        write(tmp_path / "flows" / "deep" / "a.yaml", "{flow: x, states: [a]}")
        write(tmp_path / "flows" / "other.yaml", "kind: Service\n")
        write(tmp_path / "flows" / ".hidden.yaml", "{flow: h, states: [a]}")
        logs = log(tmp_path / "log.jsonl", walk("1", "a"))
        assert [flow.name for flow in find_inputs([logs], flows=[tmp_path / "flows"]).flows] == ["x"]

    def test_what_is_given_must_be_there_and_readable(self, tmp_path: Path) -> None:
        logs = log(tmp_path / "log.jsonl", walk("1", "a"))
        (tmp_path / "empty").mkdir()
        broken = write(tmp_path / "x.yaml", "flow: x\nstates:\n  a: {rank: first}\n")
        other = write(tmp_path / "y.yaml", "kind: Service\n")
        for path, says in (
            (tmp_path / "none.yaml", "no such file"),
            (tmp_path / "empty", "holds no flow definition"),
            (broken, "states.a.rank"),
            (other, "declares nothing about a flow"),
        ):
            with pytest.raises(InputError, match=says):
                convoscope.read(logs, flows=[path])
        with pytest.raises(UsageError, match="a int is no flow definition"):
            convoscope.read(logs, flows=[3])  # type: ignore[list-item]

    def test_the_commands(self, tmp_path: Path) -> None:
        log(tmp_path / "log.jsonl", walk("1", "a"))
        write(tmp_path / "x.yaml", "{flow: x, states: {a: {rank: first}}}")
        write(tmp_path / "y.yaml", "{flow: y, states: [a]}")
        for name in ("score", "inspect"):
            ended = command(name, "log.jsonl", "--flows", "x.yaml", cwd=tmp_path)
            assert ended.code == 2
            assert "x.yaml states.a.rank: is the text 'first'" in ended.err
        ended = command("inspect", "log.jsonl", "--flows", "y.yaml", "--json", cwd=tmp_path)
        assert ended.json["dimensions"] == {"flow": {"y": 1}}
        ended = command("score", "log.jsonl", "--flows", "y.yaml", "-m", "conversation.turns", cwd=tmp_path)
        assert ended.code == 0
        assert "read 1 conversation from 1 file (convoscope), with 1 file of flow definitions" in ended.out


X = Flow(name="x_y", states=(FlowState(name="a"), FlowState(name="b")))
OTHER = Flow(name="other", states=(FlowState(name="a"),))


def flow_of(conversation: Conversation, *flows: Flow) -> tuple[str | None, str | None]:
    """The definition that a conversation gets, and the name of its flow then."""
    attached = Attacher(flows).attached(conversation)
    conversation = attached.conversation if attached else conversation
    return (conversation.flow.name if conversation.flow else None), conversation.dimensions.get("flow")


class TestAttaching:
    def test_by_name(self) -> None:
        assert flow_of(walk("1", "a", flow="x_y"), X, OTHER) == ("x_y", "x_y")
        assert flow_of(walk("1", "elsewhere", flow="x_y"), X) == ("x_y", "x_y")
        assert flow_of(walk("1", "a", flow="z"), X) == (None, "z")

    @pytest.mark.parametrize("name", ["X_Y", "x-y", "X y", " x  y"])
    def test_by_name_in_another_spelling(self, name: str) -> None:
        assert flow_of(walk("1", "a", flow=name), X, OTHER) == ("x_y", "x_y")

    def test_a_spelling_of_two_names_is_neither(self) -> None:
        twin = Flow(name="X-Y", states=X.states)
        assert flow_of(walk("1", "a", flow="x y"), X, twin) == (None, "x y")
        assert flow_of(walk("1", "a", flow="X-Y"), X, twin) == ("X-Y", "X-Y")

    def test_by_its_states_where_there_is_only_one(self) -> None:
        assert flow_of(walk("1", "zero", "b"), X) == ("x_y", "x_y")
        assert flow_of(walk("1", "zero"), X) == (None, None)
        assert flow_of(walk("1", "a"), X, OTHER) == (None, None)

    def test_without_states_it_is_left_alone(self) -> None:
        assert flow_of(spoken("1", flow="x_y"), X) == (None, "x_y")
        assert flow_of(spoken("1"), X) == (None, None)

    def test_its_own_definition_stays(self, tmp_path: Path) -> None:
        own = Flow(name="x_y", states=(FlowState(name="mine"),))
        path = log(tmp_path / "log.jsonl", Conversation(id="1", flow=own, dimensions={"flow": "x_y"}))
        (read,) = convoscope.read(path, flows=[X])
        assert read.flow == own

    def test_nothing_else_of_a_conversation_changes(self) -> None:
        given = walk("1", "a", flow="x_y", agent="e")
        attached = Attacher([X]).attached(given)
        assert attached is not None
        assert given.flow is None
        assert json.loads(to_json(attached.conversation)) == {
            **json.loads(to_json(given)),
            "flow": {"name": "x_y", "states": [{"name": "a"}, {"name": "b"}]},
        }

    def test_what_was_concluded_is_noted(self, tmp_path: Path) -> None:
        path = log(tmp_path / "log.jsonl", walk("1", "a"), walk("2", "a", flow="X Y"), walk("3", "a", flow="x_y"))
        reading = convoscope.read(path, flows=[X])
        notes = {read.conversation.id: [(note.kind, note.code) for note in read.notes] for read in reading.with_notes()}
        assert notes == {
            "1": [("inferred", "flow_from_the_only_definition")],
            "2": [("repaired", "flow_name_as_declared")],
            "3": [],
        }
        assert counts(reading.report.inferred) == {"flow_from_the_only_definition": 1}
        assert reading.report.repaired["flow_name_as_declared"].examples == ["log.jsonl:2 X Y"]


METRICS = "conversation.turns"


class TestRuns:
    def test_a_changed_definition_makes_another_run(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        log(tmp_path / "logs" / "log.jsonl", walk("1", "a", flow="x"), walk("2", "a", "b", flow="x"))

        def folder() -> Path:
            return convoscope.score("logs", metrics=METRICS, workers=1).folder

        without = folder()
        write(tmp_path / "logs" / "x.yaml", "{flow: x, states: [a, b]}")
        first = folder()
        write(tmp_path / "logs" / "x.yaml", "# What is not declared does not matter.\nflow: x\nstates: {a: , b: }\n")
        assert folder() == first
        write(tmp_path / "logs" / "x.yaml", "{flow: x, states: {a: {required_slots: [city]}, b: }}")
        assert len({without, first, folder()}) == 3
        with pytest.raises(convoscope.ConvoscopeError, match="holds another run"):
            convoscope.score("logs", metrics=METRICS, workers=1, out=first)

    def test_without_definitions_the_settings_are_as_ever(self, tmp_path: Path) -> None:
        path = log(tmp_path / "log.jsonl", walk("1", "a"))
        assert "flows" not in convoscope.score(path, metrics=METRICS, out=tmp_path / "run", workers=1).receipt.config

    def test_all_workers_have_them(self, tmp_path: Path) -> None:
        for number in range(4):
            log(tmp_path / f"{number}.jsonl", walk(f"{number}", "a", flow="x_y"))
        run = convoscope.score(tmp_path, metrics=METRICS, flows=[X], out=tmp_path / "run", workers=2, part_bytes=1)
        assert [one.flow for one in run.conversations()] == [X] * 4
        assert run.flows == {"x_y": X}
        assert list(run.receipt.config["flows"]) == ["x_y"]

    def test_workers_that_inherit_nothing_have_them(self, tmp_path: Path) -> None:
        path = log(tmp_path / "log.jsonl", walk("1", "a", flow="x_y"))
        (partition,) = cut(find_inputs([path]).inputs, ReadReport(), tmp_path / "scratch")
        work = partial(score_partition, metrics=[], folder=tmp_path, flows=(X,))
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            done: PartDone = pool.submit(work, partition).result()
        assert done.flows == {"x_y": X}

    def test_one_that_nobody_goes_through_is_said(self, tmp_path: Path) -> None:
        path = log(tmp_path / "log.jsonl", walk("1", "a", flow="x_y"))
        run = convoscope.score(path, metrics=METRICS, flows=[X, OTHER], out=tmp_path / "run", workers=1)
        assert run.read_report.warnings == ["no conversation goes through what a definition declares: other"]


def test_the_examples_are_read_without_a_warning() -> None:
    reading = convoscope.read(EXAMPLES / "state-events")
    flows = {one.id: one.flow.name if one.flow else None for one in reading}
    # The call does not say which flow it is, and there are two.
    assert flows == {
        "call-2041": None,
        "g-7": "dog_grooming",
        "g-8": "dog_grooming",
        "v-101": "apartment_viewing",
        "v-102": "apartment_viewing",
        "web-55": "apartment_viewing",
    }
    assert reading.report.warnings == []
    assert {file.why for file in reading.report.files.values() if file.format == FORMAT} == {
        "declares flow apartment_viewing",
        "declares flow dog_grooming",
    }
