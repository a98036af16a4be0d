"""What tool results say: failures in all common shapes, successes stated and inferred, and what is not stated."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.conversation import ToolResult
from convoscope.views.result_fields import FAILED, NOT_STATED, SUCCEEDED, ToolOutcome
from convoscope.views.tool_outcomes import tool_outcome, tool_outcomes
from support.chats import call, chat, result
from support.strategies import json_values


def read(content: Any, tool: str = "") -> ToolOutcome:
    return tool_outcome(ToolResult(seq=0, result=content), tool)


FAILURES: list[tuple[str, Any]] = [
    ("", {"status": "ERROR: database down"}),
    ("", {"status": "Failed to book"}),
    ("get_order", {"status": "Unable to reach the warehouse", "request_id": "r1"}),
    ("book_room", {"room_id": "7", "status": "Failed to reserve"}),
    ("get_order", {"status": "UNAVAILABLE"}),  # as gRPC writes it
    ("get_order", {"status": "NOT_FOUND"}),
    ("get_order", {"status": "DEADLINE_EXCEEDED"}),
    ("get_order", {"code": 14, "message": "unavailable"}),
    ("get_order", {"code": "14", "message": "unavailable"}),
    ("get_order", {"code": 9001, "message": "Failed to open the account"}),
    ("get_order", {"response_code": 1, "response_message": "fail"}),
    ("get_order", ["Error: db down"]),
    ("get_order", ["Error: db down", "Error: cache down"]),
    ("get_order", "upstream connect error or disconnect/reset before headers"),
    ("get_order", "no healthy upstream"),
    ("get_order", "socket hang up"),
    ("get_order", "Too many connections"),
    ("get_order", "We are experiencing technical difficulties"),
    ("get_order_status", "Connection refused"),  # no order has this status
    ("get_order_status", "socket hang up"),
    ("get_order", {"failure": "no stock service"}),
    ("", {"fehler": "Dienst gestört"}),
    ("", {"erreur": "service en panne"}),
    ("", {"http": {"status": 503}}),
    ("", {"getOrderResponse": {"error": "db down"}}),
    ("", {"message": "fail"}),
    ("bash", "make: *** [all] Error 2"),
    ("lookup_promo_code", [{"error": "db down"}]),
    ("", "Fehler: Verbindung abgelehnt"),
    ("", "<Response [404]>"),
    ("", "\x1b[31mError: boom\x1b[0m"),
    ("", "Max retries exceeded with url: /orders"),
    ("", "get_order failed: upstream gone"),
    ("", "Tool 'lookup' failed"),
    ("", "The tool is not available right now."),
    ("", "<tool_use_error>InputValidationError</tool_use_error>"),
    ("", [{"error": "a"}, {"error": "b"}]),
    ("", {"success": True, "data": {"success": False}}),
    ("", "Success: false"),
    ("", {"result": {"status": 404}}),
    ("book_table", {"booked": False, "reason": "no seats"}),
    ("send_email", {"sent": False}),
    ("process_payment", "Payment declined."),
    ("cancel_order", {"data": {"order_id": 7, "status": "failed"}}),
    ("", "openai.BadRequestError: Error code: 400 - {'error': {}}"),
    ("", "HTTP 503 Service Unavailable"),
    ("", {"code": 500, "message": "Internal error"}),
    ("", {"errors": [{"message": "x"}]}),
    ("", "Request timed out"),
    ("", {"success": "false"}),
    ("", {"isError": True}),
    ("", {"status": 500}),
    ("", {"ok": False}),
    ("", {"error": "x"}),
    ("", {"error": True}),
    ("", {"error": {"code": 404, "message": "nf"}}),
    ("", {"status": "error", "message": "x"}),
    ("", {"status": "failed", "message": "no"}),
    ("", {"status": "FAILED"}),
    ("", {"statusCode": 404, "body": "Not Found"}),
    ("", {"http_status": "502"}),
    ("", {"code": "500", "message": "boom"}),
    ("", "503 Service Unavailable"),
    ("", "Request failed with status code 404"),
    ("", "UNAVAILABLE: connection reset"),
    ("", "rpc error: code = DeadlineExceeded desc = context deadline exceeded"),
    ("", "Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'x'"),
    ("", "KeyError: 'x'"),
    ("", "java.lang.NullPointerException: Cannot invoke\n\tat com.x.Y(Z.java:3)"),
    ("", "TypeError: Cannot read properties of undefined (reading 'id')\n    at f (a.js:1:2)"),
    ("", "panic: runtime error: index out of range [5]\n\ngoroutine 1 [running]:"),
    ("", "Connection refused"),
    ("", "connect ECONNREFUSED 127.0.0.1:5432"),
    ("", "Rate limit exceeded"),
    ("", "Permission denied"),
    ("", "exit code: 1"),
    ("", {"returncode": 2, "stdout": "", "stderr": "x"}),
    ("", "ls: cannot access x\n[exit code: 2]"),
    ("", {"content": [{"type": "text", "text": "boom"}], "isError": True}),
    ("", [{"type": "text", "text": "Error: boom"}]),
    ("", '{"error": "x"}'),
    ("", "{'status': 'error', 'message': 'x'}"),
    ("", {"result": "Error: boom"}),
    ("", {"data": None, "errors": [{"message": "x"}]}),
    ("", {"data": {"a": 1}, "errors": [{"message": "x"}]}),
    ("", {"detail": "Not Found"}),
    ("", {"message": "Internal Server Error"}),
    ("", {"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}, "id": 1}),
    ("", {"type": "error", "message": "x"}),
    ("", "<error>boom</error>"),
    ("", "<html><head><title>502 Bad Gateway</title></head></html>"),
    ("", "Tool execution failed"),
    ("", "The operation timed out."),
    ("", "An error occurred while processing your request"),
    ("", "Unable to reach the booking service"),
    ("", "Sorry, I could not find"),
    ("", "Failed to fetch"),
    ("", "ERROR"),
    ("", "error"),
    ("", {"status": "timeout"}),
    ("", {"success": False, "data": None}),
    ("", {"statusCode": 200, "body": '{"error":"x"}'}),
    ("", "Something went wrong. Please try again later."),
    ("", "Error 404: no such page"),
    ("", {"error_type": "not_found", "message": "x"}),
    ("", {"message": "Request failed"}),
    ("", {"exitCode": 127}),
    ("", "bash: foo: command not found"),
    ("", {"status": "error", "order_id": "A1", "message": "could not refund"}),
    ("", "Internal error"),
    ("", {"ErrorMessage": "boom"}),
    ("", {"Error": "boom"}),
    ("", {"fault": {"faultstring": "x"}}),
    ("", "System.NullReferenceException: Object reference not set"),
    ("", "Fatal error: Uncaught Error: Call to undefined function"),
    ("", "backend down"),
    ("", "Service is currently unavailable"),
    ("", '{"message": "Too many requests", "code": 429}'),
    ("", {"status": "UNAVAILABLE"}),
    ("", {"code": "ECONNREFUSED", "message": "connect ECONNREFUSED"}),
    ("", {"code": "rate_limit_exceeded", "message": "slow down"}),
    ("", "Completed with errors"),
    ("", "Booking could not be completed"),
    ("", "unsuccessful"),
    ("", {"status": "404 Not Found"}),
    ("", "⚠️ Error: x"),
    ("", "❌ Failed"),
    ("", "[ERROR] database locked"),
    ("", {"outcome": "failure"}),
    ("", {"success": 0}),
    ("process_payment", {"status": "failed"}),
    ("process_payment", {"payment_id": "P1", "status": "failed"}),
    ("search_faq", "Search failed: index offline"),
    ("search_faq", "Request timed out"),
    ("lookup", "HTTP 503 Service Unavailable"),
    ("search_logs", "Error: log store unreachable"),
    ("cancel_order", {"order_id": "A1", "status": "error", "message": "already shipped"}),
    ("send_email", {"sent": False, "error": "smtp down"}),
]
STATED_SUCCESSES: list[tuple[str, Any]] = [
    ("send_order", {"order": "A7", "state": "sent"}),
    ("book_table", {"booked": True, "table": 4}),
    ("schedule_visit", "Scheduled for Monday at ten."),
    ("send_email", "Email sent to ada@example.com."),
    ("", {"message": "Success"}),
    ("", "OK"),
    ("", "done"),
    ("", "Success"),
    ("", {"success": True}),
    ("", {"status": "ok"}),
    ("", {"status": 200}),
    ("", "200 OK"),
    ("", "HTTP/1.1 204 No Content"),
    ("", {"isError": False, "content": [{"type": "text", "text": "sunny and 20 degrees"}]}),
    ("", "Booking confirmed."),
    ("", "Your flight has been booked."),
    ("", {"exit_code": 0, "stdout": "x"}),
    ("", {"error": None, "success": True, "id": 4}),
    ("", "Transfer successful"),
    ("", {"code": 0, "msg": "ok", "data": {"a": 1}}),
    ("", "Completed with 0 errors"),
    ("", "Command completed without errors."),
]
INFERRED_SUCCESSES: list[tuple[str, Any]] = [
    # the state of what a lookup returns: it sends and books nothing itself
    ("get_order", {"order": "A7", "state": "sent"}),
    ("lookup", {"order": "A7", "state": "delivered"}),
    ("find_booking", {"id": "B2", "status": "booked"}),
    ("list_errors", [{"error": "E1", "count": 3}, {"error": "E2", "count": 1}]),
    ("list_errors", ["Error: E1", "Error: E2"]),
    ("get_shipment", {"carrier": "DHL", "weight": 3, "status": "Failed to deliver"}),
    ("get_order_status", {"status": "unavailable"}),
    ("get_product", {"code": 14, "name": "Widget"}),
    ("get_user", {"found": True, "name": "Ada"}),
    ("list_names", ["Ada", "Grace"]),
    ("get_stats", {"passed": 95, "failure": 5}),
    ("search_rooms", "The Blue Room is quiet"),
    ("get_order", {"order": {"id": 7, "status": "failed"}}),
    ("list_jobs", [{"id": 1, "status": "error"}]),
    ("check_table", {"available": False}),
    ("validate_card", {"valid": False, "reason": "expired card"}),
    ("get_flight", {"flight": "SK1", "cancelled": False, "delivered": False}),
    ("get_stats", {"success": 95, "failed": 5}),
    ("get_temperature", 21.5),
    ("", {"errors": 0, "warnings": 2, "passed": 33}),
    ("", {"error": None, "balance": 12}),
    ("", {"error": "", "balance": 12}),
    ("", {"error": False, "balance": 1}),
    ("", {"errors": [], "items": [1]}),
    ("", {"order_id": "A1", "status": "failed", "items": [1, 2]}),
    ("", {"balance": 404}),
    ("", {"code": 500, "name": "Widget", "price": 3}),
    ("", {"postal_code": 500, "city": "X"}),
    ("", [{"level": "error", "message": "boom"}, {"level": "info", "message": "fine"}]),
    ("", {"results": [{"title": "Error 404", "body": "means"}]}),
    ("", {"temperature": 20}),
    ("", [{"id": 1}]),
    ("", {"error_code": "E05", "description": "Filter clogged", "solution": "Clean"}),
    ("", {"task_id": "1", "title": "x", "status": "pending"}),
    ("", {"value": 3, "error": 0.05}),
    ("", {"order": {"status": "failed", "id": 1}}),
    ("search_faq", "Refunds take five days. If the payment failed, contact the bank."),
    ("search_faq", "Error codes: E05 means the filter is clogged. E06 means no water."),
    ("get_article", 'How to fix "connection refused": restart the router and try again.'),
    ("get_payment_status", "Payment failed"),
    ("get_payment_status", {"status": "failed"}),
    ("get_order", {"order_id": "A1", "status": "failed"}),
    ("get_order", {"order_id": "A1", "status": "rejected"}),
    ("calculate", "1625.0"),
    ("get_balance", 12.5),
    ("get_weather", "It is foggy and 12 degrees in London."),
    ("search_logs", "2026-01-01 10:00 ERROR connection refused\n2026-01-01 10:01 INFO ok"),
    ("search_logs", "2026-01-01 10:00 ERROR connection refused"),
    ("get_status", "Airplane Mode: ON\nSIM Card Status: active"),
    ("is_available_check", False),
    ("get_error_code", {"error_code": "E05", "description": "Filter clogged"}),
    (
        "get_ticket",
        {"ticket_id": 4, "subject": "Login failed", "message": "Customer is unable to log in", "priority": "high"},
    ),
    ("get_shipment", {"tracking": "1Z", "state": "unavailable", "eta": "2026"}),
    ("get_device", {"device": "Router", "status": "error", "uptime": 5, "ip": "1.2.3.4"}),
    ("get_policy", "Cancellations: tickets cannot be refunded after departure. Timeouts do not apply."),
    ("check_url", {"url": "x", "latency": 3}),
    ("list_jobs", [{"id": 1, "status": "failed"}, {"id": 2, "status": "failed"}]),
    ("list_errors", {"errors": [{"code": "E1"}]}),
    ("get_build", {"build": 12, "status": "failed", "duration": 33, "commit": "abc"}),
]
NOT_STATED_AT_ALL: list[tuple[str, Any]] = [
    ("", {"results": [{"success": False, "id": 1}, {"success": True, "id": 2}]}),
    ("get_order", {"status": "unavailable"}),  # the call's or the order's
    ("check_room", {"status": "UNAVAILABLE"}),
    ("get_order", {"code": 14, "message": "see the handbook"}),
    ("get_order", {"found": False}),
    ("get_order", {"order_id": 7, "found": False}),
    ("get_order", ["No orders found"]),
    ("get_order", "missing 1 required positional argument: 'x'"),
    ("get_order", "backend gremlins are at play"),  # no number, no name: nothing that was looked up
    ("get_order", "Our hamsters are on strike. If this persists, please contact support."),
    ("get_report", "Failed payments this month are down by half, says the new report."),
    ("get_order", 404),
    ("", "Errors: 0"),
    ("", "Error: none"),
    ("", {"status": "cancelled"}),
    ("", ""),
    ("", None),
    ("", "[]"),
    ("", {}),
    ("", []),
    ("", "null"),
    ("", "queued"),
    ("", "T-4711"),
    ("", "Ticket 4711"),
    ("", "OK?"),
    ("", {"status": "queued"}),
    ("", {"results": []}),
    ("", {"data": None}),
    ("", "User not found"),
    ("", "No results found"),
    ("", "No flights found for this date."),
    ("", 4711),
    ("", "request received"),
    ("", {"status": "pending", "ticket_id": "T1"}),
    ("", {"success": True, "error": "backend down"}),
    ("", "Your request will be processed."),
    ("", "ok, maybe?"),
    ("create_ticket", "4711"),
    ("lookup", "queued"),
    ("lookup", "T-4711"),
    ("book", "noted"),
    ("cancel_order", False),
    ("lookup", "Ref: ABC-123"),
]


def _named(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@pytest.mark.parametrize(("tool", "content"), FAILURES, ids=_named)
def test_failures(tool: str, content: Any) -> None:
    outcome = read(content, tool)
    assert (outcome.status, outcome.basis, outcome.worked) == (FAILED, "stated", False)
    assert outcome.sign


@pytest.mark.parametrize(("tool", "content"), STATED_SUCCESSES, ids=_named)
def test_stated_successes(tool: str, content: Any) -> None:
    outcome = read(content, tool)
    assert (outcome.status, outcome.basis, outcome.worked) == (SUCCEEDED, "stated", True)


@pytest.mark.parametrize(("tool", "content"), INFERRED_SUCCESSES, ids=_named)
def test_inferred_successes(tool: str, content: Any) -> None:
    """Data that may speak of errors: the call worked."""
    outcome = read(content, tool)
    assert (outcome.status, outcome.basis, outcome.worked) == (SUCCEEDED, "inferred", True)


@pytest.mark.parametrize(("tool", "content"), NOT_STATED_AT_ALL, ids=_named)
def test_what_is_not_stated(tool: str, content: Any) -> None:
    outcome = read(content, tool)
    assert (outcome.status, outcome.basis, outcome.worked) == (NOT_STATED, "", None)
    assert outcome.reason


@pytest.mark.parametrize(("tool", "content"), [*FAILURES, *STATED_SUCCESSES, *INFERRED_SUCCESSES], ids=_named)
def test_json_in_a_text_says_what_the_json_says(tool: str, content: Any) -> None:
    if isinstance(content, dict):
        assert read(json.dumps(content), tool) == read(content, tool)
        assert read(json.dumps(json.dumps(content)), tool) == read(content, tool)


class TestTheLog:
    """What the log states beside the result."""

    @pytest.mark.parametrize(
        ("success", "error", "content", "status"),
        [
            (False, "", {"status": "ok"}, FAILED),
            (None, "busy", {"status": "ok"}, FAILED),
            (True, "", "queued", SUCCEEDED),
            (True, "", None, SUCCEEDED),
            (True, "", "HTTP 503 Service Unavailable", FAILED),  # the call came back, with a failure
            (True, "", {"error": "backend down"}, FAILED),
            (True, "", {"order": 7, "status": "failed"}, SUCCEEDED),  # the order's
            (True, "a warning", "done", NOT_STATED),
        ],
    )
    def test_beside_the_result(self, success: bool | None, error: str, content: Any, status: str) -> None:
        assert tool_outcome(ToolResult(seq=0, success=success, error=error, result=content)).status == status

    def test_the_name_of_the_call_counts_where_the_result_has_none(self) -> None:
        talk = chat(call("get_payment_status", "a"), result("", "a", result={"status": "failed"}))
        (outcome,) = tool_outcomes(talk).values()
        assert (outcome.status, outcome.basis) == (SUCCEEDED, "inferred")


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ({"error": {"code": 404, "message": "no such card"}}, "no such card"),
        ({"status": "error", "message": "no such card"}, "no such card"),
        ({"errors": [{"message": "no such card"}]}, "no such card"),
        ({"isError": True, "content": [{"type": "text", "text": "no such card"}]}, "no such card"),
        ("Error: no such card\nat line 4", "Error: no such card"),
        ({"result": "Error: no such card"}, "Error: no such card"),
    ],
)
def test_the_words_of_the_failure(content: Any, error: str) -> None:
    assert read(content).error == error


@given(json_values(), st.sampled_from(["", "lookup", "book", "get_status", "bash"]))
def test_every_result_can_be_read(content: Any, tool: str) -> None:
    outcome = read(content, tool)
    assert (outcome.status == NOT_STATED) == (outcome.basis == "") == bool(outcome.reason)
    assert outcome.status != FAILED or outcome.sign


@given(st.text(alphabet="eErRoOfFaAiIlLdDnNt :.\n{}[]\"'50", max_size=60))
def test_every_text_can_be_read(content: str) -> None:
    read(content)


@pytest.mark.parametrize("unit", ["```", "```\n", "Result: ", "data: ", "<a>", "[", '{"data":'])
def test_texts_inside_of_texts_come_to_an_end(unit: str) -> None:
    assert read(unit * 5_000, "lookup").status in (SUCCEEDED, NOT_STATED)


@pytest.mark.parametrize("depth", [50, 400])
def test_deep_results(depth: int) -> None:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    assert read(value).status == SUCCEEDED
    assert read({"data": value}).status == SUCCEEDED
