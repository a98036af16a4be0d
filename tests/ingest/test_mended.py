"""Each of these states what should hold and fails today. Run:
cd /work/main && .venv/bin/pytest -c pyproject.toml --rootdir . -q /tmp/ingest_bugs/test_bugs.py"""

import gzip
import json
import random
import signal

import pytest
from backports import zstd

import convoscope
from convoscope.ingest import files
from ingest.logs import ASK, CHAT, REPLY, as_lines, chat, read, story, write, write_json, write_lines
from ingest.losses import lost


class Hang(BaseException):
    pass


def stop(*_):
    raise Hang


@pytest.fixture(autouse=True)
def no_hang():
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(4)
    yield
    signal.alarm(0)


def hangs(f):
    try:
        return f()
    except Hang:
        pytest.fail("HANG")


KEYED = {"conversation_id": "a", **ASK}


# --- A. hang, crash, whole file lost
def test_pretty_printed_array(tmp_path):
    assert read(write(tmp_path / "a.json", json.dumps([chat("x"), chat("y")], indent=2))).ids == ["x", "y"]


def test_space_after_bracket(tmp_path):
    assert read(write(tmp_path / "a.json", "[ " + json.dumps(chat("x")) + "]")).ids == ["x"]


def test_single_keyed_message(tmp_path):
    assert hangs(lambda: read(write_lines(tmp_path / "a.jsonl", KEYED))).ids == ["a"]


def test_exact_block(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", *[chat("x")] * 3)
    assert len(hangs(lambda: list(files.line_stretches(path, path.stat().st_size)))) == 1


def test_huge_last_line(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_RECORD_BYTES", 1000)
    path = write_lines(tmp_path / "a.jsonl", chat("x"), chat("y", "x" * 5000))
    assert [s.problem for s in hangs(lambda: list(files.line_stretches(path, 500)))][-1] == files.TOO_LONG


@pytest.mark.parametrize(
    "odd", [{"role": ["user"], "content": "x"}, {"type": ["object", "null"]}, {"role": {}, "messages": []}]
)
def test_unhashable_kind_crashes_folder(tmp_path, odd):
    write_json(tmp_path / "a.json", CHAT)
    write_json(tmp_path / "schema.json", odd)
    assert read(tmp_path).ids == ["a"]


def test_unhashable_role_in_messages(tmp_path):
    assert story(
        read(write_json(tmp_path / "a.json", {"messages": [ASK, {"role": [], "content": "x"}]})).only
    ) == story(read(write_json(tmp_path / "b.json", {"messages": [ASK]})).only)


def test_first_line_over_256k(tmp_path):
    assert read(write_lines(tmp_path / "a.jsonl", chat("x", "y" * 300_000), chat("z"))).ids == ["x", "z"]


def test_first_array_line_over_256k_silently_loses_rest(tmp_path):
    assert len(read(write_lines(tmp_path / "a.jsonl", [ASK, {**REPLY, "content": "y" * 300_000}], [ASK])).ids) == 2


def test_garbage_after_array_is_told(tmp_path):
    assert read(write(tmp_path / "a.json", json.dumps([chat("x")]) + ' {"oops')).report.problem_count == 1


def test_huge_integer_in_array(tmp_path):
    read(write(tmp_path / "a.json", "[" + json.dumps(chat("x")) + ',{"n":' + "1" * 5000 + "}]"))


def test_deep_and_repaired(tmp_path):
    assert read(
        write(tmp_path / "a.jsonl", as_lines(chat("x")) + '{"n":NaN,"d":' + "[" * 600 + "]" * 600 + "}\n")
    ).ids == ["x"]


def test_truncated_small_gzip(tmp_path):
    r = random.Random(1)
    data = as_lines(*[chat(f"c{n}", "".join(r.choices("abcdefgh", k=200))) for n in range(300)]).encode()
    p = gzip.compress(data)
    assert len(read(write(tmp_path / "a.jsonl.gz", p[: len(p) * 3 // 4])).ids) > 200


def test_truncated_small_zstd(tmp_path):
    r = random.Random(1)
    data = as_lines(*[chat(f"c{n}", "".join(r.choices("abcdefgh", k=2000))) for n in range(300)]).encode()
    p = zstd.compress(data)
    assert len(read(write(tmp_path / "a.jsonl.zst", p[: len(p) * 3 // 4])).ids) > 100


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress])
def test_cut_archive_of_600_kilobytes(tmp_path, pack):
    r = random.Random(1)
    p = pack(as_lines(*[chat(f"c{n}", "".join(r.choices("abcdefgh", k=2000))) for n in range(300)]).encode())
    hangs(lambda: read(write(tmp_path / "a.jsonl", p[: len(p) * 3 // 4])))


def test_bad_checksum(tmp_path):
    p = bytearray(gzip.compress(as_lines(chat("x"), chat("y")).encode()))
    p[-6] ^= 255
    assert read(write(tmp_path / "a.jsonl.gz", bytes(p))).ids == ["x", "y"]


def test_document_with_messages_on_lines_of_their_own(tmp_path):
    assert (
        len(
            read(
                write(
                    tmp_path / "a.json",
                    '{"id": "x", "messages": [\n' + json.dumps(ASK) + ",\n" + json.dumps(REPLY) + "\n]}\n",
                )
            ).only.timeline
        )
        == 2
    )


def test_first_line_cut_by_log_rotation(tmp_path):
    assert read(write(tmp_path / "a.jsonl", as_lines(chat("w"))[30:] + as_lines(chat("x"), chat("y")))).ids == [
        "x",
        "y",
    ]


def test_first_line_broken_of_two(tmp_path):
    assert read(write(tmp_path / "a.jsonl", '{"id": "w\n' + as_lines(chat("x")).rstrip())).ids == ["x"]


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress, lambda b: ("\ufeff" + b.decode()).encode("utf-16-le")])
def test_resource_warning(tmp_path, pack):
    read(write(tmp_path / "a.jsonl", pack(as_lines(chat("x"), chat("y")).encode())))


def test_first_foreign_line_loses_message_file(tmp_path):
    assert len(read(write_lines(tmp_path / "a.jsonl", {"meta": 1}, ASK, REPLY)).only.timeline) == 2


# --- B. wrong conversation
def test_tool_content_object(tmp_path):
    c = read(
        write_json(
            tmp_path / "a.json", {"messages": [ASK, {"role": "tool", "content": {"success": False, "error": "no"}}]}
        )
    ).only
    assert (c.timeline[1].result, c.timeline[1].success) == ({"success": False, "error": "no"}, False)


def test_responses_output_list(tmp_path):
    c = read(
        write_json(
            tmp_path / "a.json",
            {
                "output": [
                    {"type": "function_call_output", "call_id": "c", "output": [{"day": "monday", "open": False}]}
                ]
            },
        )
    ).only
    assert c.timeline[0].result == [{"day": "monday", "open": False}]


def test_usual_empty_fields_make_an_empty_utterance(tmp_path):
    m = {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "annotations": [],
        "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}],
    }
    assert story(read(write_json(tmp_path / "a.json", {"messages": [ASK, m]})).only)[1:] == ["f({})"]


@pytest.mark.parametrize(
    "odd", [{"role": "agent"}, {"role": "bot"}, {"role": "ai"}, {"role": "assistant", "type": "message"}]
)
def test_message_with_another_role_or_a_type_is_dropped(tmp_path, odd):
    record = {"messages": [ASK, {**odd, "content": "Closed, sorry."}]}
    assert lost(record, read(write_json(tmp_path / "a.json", record)).only) == []


M = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Closed."}]}


def test_request_input_string_not_in_timeline(tmp_path):
    assert story(
        read(write_json(tmp_path / "a.json", {"request": {"input": "Open?"}, "response": {"output": [M]}})).only
    ) == [
        "user: Open?",
        "assistant: Closed.",
    ]


def test_request_instructions_lost(tmp_path):
    assert (
        read(
            write_json(
                tmp_path / "a.json",
                {
                    "request": {
                        "instructions": "Be brief.",
                        "input": [{"role": "user", "type": "message", "content": "Open?"}],
                    },
                    "response": {"output": [M]},
                },
            )
        ).only.agent.instructions
        == "Be brief."
    )


def test_expected_arguments_as_json_string(tmp_path):
    assert read(
        write_json(
            tmp_path / "a.json", {**CHAT, "expected_tool_calls": [{"function": {"name": "f", "arguments": '{"a": 1}'}}]}
        )
    ).only.expected.tool_calls[0].arguments == {"a": 1}


def test_items_by_line_starting_with_a_call(tmp_path):
    call = {"type": "function_call", "id": "f", "call_id": "c1", "name": "f", "arguments": "{}"}
    assert (
        len(
            read(
                write_lines(
                    tmp_path / "a.jsonl", call, {"type": "function_call_output", "call_id": "c1", "output": "x"}, M
                )
            ).only.timeline
        )
        == 3
    )


def test_message_id_taken_for_conversation_id(tmp_path):
    assert read(write_lines(tmp_path / "a.jsonl", KEYED, {**REPLY, "id": "m2"})).ids == ["a"]


@pytest.mark.parametrize(
    "rec",
    [
        {
            "messages": [
                {
                    "role": "system",
                    "content": "S",
                    "name": "sysname-1",
                    "id": "sysid-1",
                    "timestamp": "2026-03-02T09:00:00Z",
                    "extra": "sysextra-1",
                },
                ASK,
            ]
        },
        {
            "messages": [
                {
                    "role": "system",
                    "content": [{"type": "text", "text": "S"}, {"type": "image_url", "image_url": {"url": "sys.png"}}],
                },
                ASK,
            ]
        },
        {
            "messages": [
                ASK,
                {
                    "role": "assistant",
                    "content": None,
                    "audio": {"id": "audio-1", "expires_at": 1772442999, "transcript": "t"},
                },
            ]
        },
        {"messages": [ASK, {"role": "assistant", "content": "said", "refusal": "refused too"}]},
        {
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"kind": "ephemeral-x"}}]}
            ]
        },
        {
            "messages": [
                ASK,
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}", "strictness": "high-x"}}],
                },
            ]
        },
        {"messages": [{**ASK, "timestamp": "yesterday-x"}]},
        {"messages": [{**ASK, "timestamp": 1772442000, "created_at": 1772449999}]},
        {"messages": [ASK, {"note": "tape-x"}, REPLY]},
        {**CHAT, "id": "chatcmpl-x", "conversation_id": "c"},
        {**CHAT, "ground_truth": "gt", "reference": "other-truth"},
        {**CHAT, "tools": [{"type": "function", "function": {"name": "f", "strict": "strict-x"}}]},
        {**CHAT, "tools": [], "functions": [{"name": "fun-x"}]},
        {**CHAT, "agent": {"name": "ivy-x"}, "metadata": {"agent": "y"}},
        {**CHAT, "expected_tool_calls": [{"id": "call-x", "name": "f"}]},
        {**CHAT, "model": {"name": "model-x"}},
        {"input": [{"type": "message", "role": "user", "content": "q"}], "output": "text answer x"},
        {"output": [M], "data": {"customer": "cust-x"}},
        {"instructions": [{"type": "message", "role": "system", "content": "sys-x"}], "output": [M]},
        {"output": [{**M, "status": "incomplete-x"}]},
        {
            "output": [
                {"type": "function_call_output", "call_id": "c", "name": "tool-x", "output": "y", "status": "failed-x"}
            ]
        },
        {"output": [{**M, "content": [{"type": "output_text", "text": "t", "annotations": [{"url": "cite-x"}]}]}]},
    ],
    ids=lambda r: json.dumps(r)[-60:],
)
def test_nothing_is_lost(tmp_path, rec):
    assert lost(rec, read(write_json(tmp_path / "a.json", rec)).only) == []


def test_native_unknown_key_beside_same_extras(tmp_path):
    rec = {"schema": "convoscope.conversation/1", "id": "x", "mood": "calm-x", "extras": {"mood": "angry-x"}}
    assert lost(rec, read(write_json(tmp_path / "a.json", rec)).only) == []


@pytest.mark.parametrize(
    "rec",
    [
        {**CHAT, "tools": 5},
        {**CHAT, "choices": ["a"]},
        {"messages": [ASK, {"role": "assistant", "content": None, "tool_calls": [{"function": 7}]}]},
        {"messages": [{**ASK, "timestamp": 10**400}]},
    ],
)
def test_reader_failed(tmp_path, rec):
    assert read(write_lines(tmp_path / "a.jsonl", chat("x"), rec)).report.problems == []


# --- C. report
@pytest.mark.parametrize("size", [1, 60, 1 << 30])
def test_blank_line_count(tmp_path, size):
    from convoscope.ingest.inputs import find_inputs
    from convoscope.ingest.partitions import cut, read_partition

    f = find_inputs([write(tmp_path / "a.jsonl", "\n" + as_lines(chat("x")) + "\n\n" + as_lines(chat("y")).rstrip())])
    for p in cut(f.inputs, f.report, tmp_path / "s", size):
        list(read_partition(p, f.report))
    assert f.report.ignored == {"blank_line": 3}


def test_array_repairs_counted_per_element(tmp_path):
    n = '{"messages":[{"role":"user","content":"x"}],"n":NaN}'
    t = read(write(tmp_path / "a.json", f"[{json.dumps(chat('x'))},{n},{n}]")).report.repaired["not_a_number"]
    assert (t.count, t.examples) == (2, ["a.json:2", "a.json:3"])


def test_responses_unreadable_time_counted_once(tmp_path):
    assert read(write_json(tmp_path / "a.json", {"output": [{**M, "timestamp": "soon"}]})).report.ignored == {
        "unreadable_time": 1
    }


def test_same_file_name_in_two_folders(tmp_path):
    a, b = write_lines(tmp_path / "a" / "x.jsonl", CHAT, CHAT), write_lines(tmp_path / "b" / "x.jsonl", CHAT, CHAT)
    r = read(a, b)
    assert (
        len(r.report.files) == 2 and sum(f.conversations for f in r.report.files.values()) == 4 and len(set(r.ids)) == 4
    )


def test_repairs_inside_tool_results_are_named(tmp_path):
    assert (
        "not_a_number"
        in read(
            write_json(tmp_path / "a.json", {"messages": [ASK, {"role": "tool", "content": '{"price": NaN}'}]})
        ).report.repaired
    )


def test_iterating_twice_does_not_double(tmp_path):
    r = convoscope.read(write_lines(tmp_path / "a.jsonl", CHAT, CHAT))
    list(r)
    list(r)
    assert r.report.conversations == 2


def test_array_cut_inside_a_text(tmp_path):
    assert (
        read(write(tmp_path / "a.json", json.dumps([chat("x"), chat("y")])[:-6])).problem.message
        == "the JSON array is cut off at the end"
    )


def test_source_names_all_files(tmp_path):
    write_lines(tmp_path / "1.jsonl", KEYED, KEYED)
    write_lines(tmp_path / "2.jsonl", KEYED, KEYED)
    assert read(tmp_path).only.source.files == ("1.jsonl", "2.jsonl")


def test_read_choice_is_not_unknown_envelope(tmp_path):
    assert (
        read(
            write_json(tmp_path / "a.json", {"input": {"messages": [ASK]}, "output": {"messages": [REPLY]}})
        ).report.unknown
        == {}
    )


def test_missing_commas_are_a_repair(tmp_path):
    r = read(write(tmp_path / "a.json", f"[{json.dumps(chat('x'))} {json.dumps(chat('y'))}]")).report
    assert r.repaired or r.problems


def test_late_message_note_names_its_line(tmp_path):
    r = read(write_lines(tmp_path / "a.jsonl", KEYED, {**KEYED, "role": "tool", "content": "Error: x"})).report
    assert r.inferred["tool_error_from_text"].examples[0].startswith("a.jsonl:2")


def test_large_payload_in_a_list(tmp_path):
    r = read(
        write_json(
            tmp_path / "a.json",
            {"messages": [{"role": "user", "content": [{"type": "video", "frames": ["x" * 5000]}]}]},
        )
    )
    assert r.report.ignored == {"embedded_data": 1}


def test_message_audio_data_noted(tmp_path):
    r = read(
        write_json(
            tmp_path / "a.json",
            {"messages": [{"role": "assistant", "content": None, "audio": {"data": "x" * 5000, "transcript": "t"}}]},
        )
    )
    assert r.report.ignored == {"embedded_data": 1}
