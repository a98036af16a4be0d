"""tools.*: the tools that the agent calls."""

import pytest

from convoscope.conversation import Agent, Source, Tool
from convoscope.metrics.tools import call_checks
from convoscope.metrics.tools.call_checks import tools_of
from convoscope.metrics.tools.calls import calls, inferred_rate, success
from convoscope.scoring.evaluate import observe
from support.chats import agent, call, chat, result, told, user

TWO_TOOLS = Agent(tools=(Tool(name="search"), Tool(name="book")))


class TestCalls:
    def test_each_call_counts(self) -> None:
        conversation = chat(user("hi"), call("search"), call("search"), result("search"), call("book"), agent("done"))
        assert told(observe(calls, conversation)) == [("conversation", 3.0)]  # search, search, book

    def test_an_agent_that_had_tools_and_used_none_has_a_real_zero(self) -> None:
        assert told(observe(calls, chat(user("hi"), agent("hello"), agent=TWO_TOOLS))) == [("conversation", 0.0)]

    def test_an_agent_that_had_none_is_not_applicable(self) -> None:
        conversation = chat(user("hi"), agent("hello"), agent=Agent(tools=()))
        assert told(observe(calls, conversation)) == [("conversation", "not_applicable: no_tools")]

    def test_where_the_log_neither_shows_a_call_nor_says_it_is_unmeasured(self) -> None:
        conversation = chat(user("hi"), agent("hello"), agent=Agent(tools=None))
        assert told(observe(calls, conversation)) == [("conversation", "unmeasured: tools_unknown")]

    def test_a_format_that_records_calls_and_shows_none_has_a_real_zero(self) -> None:
        """Such chats were left out, so that the mean over the others was too high."""
        conversation = chat(user("hi"), agent("hello"), source=Source(format="openai-chat"))
        assert told(observe(calls, conversation)) == [("conversation", 0.0)]

    def test_a_call_shows_that_there_were_tools(self) -> None:
        assert told(observe(calls, chat(call("search"), agent=Agent(tools=())))) == [("conversation", 1.0)]


class TestSuccess:
    @pytest.mark.parametrize(
        ("reported", "value", "details"),
        [
            ({"success": True}, 1.0, {"basis": "stated", "sign": "success: true"}),
            ({"success": False}, 0.0, {"basis": "stated", "sign": "success: false", "error": "done"}),
            ({"success": False, "error": "full"}, 0.0, {"basis": "stated", "sign": "success: false", "error": "full"}),
            ({"result": {"seat": "4A"}}, 1.0, {"basis": "inferred", "sign": "returned data"}),
            ({"error": "full"}, 0.0, {"basis": "stated", "sign": "error", "error": "full"}),
        ],
        ids=["stated success", "stated failure", "stated with its error", "inferred", "error text alone"],
    )
    def test_what_the_result_reports(self, reported: dict, value: float, details: dict) -> None:
        (one,) = observe(success, chat(user("hi"), call("book"), result("book", **reported)))
        assert (one.value, one.numerator, one.denominator) == (value, value, 1.0)  # one call
        assert one.details == {"tool": "book", **details}

    @pytest.mark.parametrize("content", [None, "", "  ", "null", {}])
    def test_a_result_that_says_nothing_is_no_success(self, content: object) -> None:
        """It counted as one."""
        conversation = chat(user("hi"), call("book"), result("book", result=content))
        assert told(observe(success, conversation)) == [("tool call 1", "unmeasured: empty_tool_result")]

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            ([], "tool_found_nothing"),
            ("no table free", "tool_found_nothing"),
            (0, "tool_result_says_neither"),
            (False, "tool_result_says_neither"),
            ("queued", "tool_result_says_neither"),
            ({"success": True, "error": "full"}, "tool_result_contradicts_itself"),
        ],
    )
    def test_what_says_neither_is_not_counted(self, content: object, reason: str) -> None:
        """All of them counted as success."""
        conversation = chat(call("book"), result("book", result=content))
        assert told(observe(success, conversation)) == [("tool call 0", f"unmeasured: {reason}")]
        assert told(observe(inferred_rate, conversation)) == [("tool call 0", f"unmeasured: {reason}")]

    def test_inferred_successes_are_counted(self) -> None:
        results = [
            result("book", str(n), result=content) for n, content in enumerate([{"seat": 4}, "OK", "Error: full"])
        ]
        conversation = chat(*(call("book", str(n)) for n in range(3)), *results)
        assert told(observe(inferred_rate, conversation)) == [
            ("tool call 0", 1.0),
            ("tool call 1", 0.0),
            ("tool call 2", 0.0),
        ]

    def test_each_call_is_a_subject(self) -> None:
        conversation = chat(
            user("hi"),
            call("search", "a"),
            call("book", "b"),
            result("book", "b", error="full"),
            result("search", "a", success=True),
            call("book", "c"),
        )
        # Results belong to calls by their id, whatever their order; call c has none.
        observations = observe(success, conversation)
        assert told(observations) == [
            ("tool call 1", 1.0),
            ("tool call 2", 0.0),
            ("tool call 5", "unmeasured: no_tool_result"),
        ]
        assert observations[2].detail == "book"

    def test_without_ids_a_result_belongs_to_the_oldest_open_call_of_its_name(self) -> None:
        conversation = chat(call("book"), call("search"), call("book"), result("book", error="full"), result("book"))
        assert told(observe(success, conversation)) == [
            ("tool call 0", 0.0),
            ("tool call 1", "unmeasured: no_tool_result"),
            ("tool call 2", 1.0),
        ]

    def test_without_a_call_it_is_not_applicable(self) -> None:
        for conversation in (chat(user("hi"), agent("hello")), chat(user("hi"), agent=TWO_TOOLS)):
            assert told(observe(success, conversation)) == [("conversation", "not_applicable: no_tool_calls")]


class TestTools:
    """The tools of an agent, made ready to look at calls."""

    def test_are_made_ready_once_for_conversations_that_share_the_list(self) -> None:
        listed = (Tool(name="find", arguments_schema={"properties": {"code": {"type": "string"}}}),)
        one, other = (chat(call("find"), agent=Agent(tools=listed)) for _ in range(2))
        assert tools_of(one) is tools_of(other)
        assert tools_of(one).get("find") is tools_of(other).get("find")
        assert tools_of(one).get("book") is None

    def test_are_not_taken_for_those_of_another_agent(self) -> None:
        for number in range(100):  # lists that come and go may have the same id
            name = f"tool {number}"
            tools = tools_of(chat(agent=Agent(tools=(Tool(name=name, arguments_schema={"required": [name]}),))))
            found = tools.get(name)
            assert found is not None
            assert found.schema == {"required": [name]}

    def test_no_more_than_a_few_lists_are_kept(self) -> None:
        for number in range(3 * call_checks._MOST_READY):
            kept = tools_of(chat(agent=Agent(tools=(Tool(name=str(number)),))))
        assert len(call_checks._READY.by_list) <= call_checks._MOST_READY
        assert kept in call_checks._READY.by_list.values()
