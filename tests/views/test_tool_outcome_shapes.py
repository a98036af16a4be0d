"""Results of other vendors, languages and shapes: a failure is never a success, and data is never a failure."""

from __future__ import annotations

import json
from typing import Any

import pytest

from convoscope.conversation import ToolResult
from convoscope.views.result_fields import (
    CONTRADICTS,
    FAILED,
    NOT_STATED,
    NOTHING_FOUND,
    SUCCEEDED,
    UNSTATED,
    ToolOutcome,
)
from convoscope.views.tool_outcomes import tool_outcome

READS, SEARCHES, ACTS = "get_order", "search_products", "create_invoice"


def read(content: Any, tool: str) -> ToolOutcome:
    return tool_outcome(ToolResult(seq=0, result=content), tool)


def _named(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


FAILURES_OF_ANY_TOOL: list[Any] = [
    # other languages
    {"erfolg": False, "meldung": "Server nicht erreichbar"},
    {"éxito": False, "mensaje": "x"},
    {"succès": False, "raison": "x"},
    {"sucesso": "não", "motivo": "x"},
    {"成功": False, "メッセージ": "x"},
    {"erfolgreich": "nein"},
    {"resultado": "error", "mensaje": "x"},
    "Es ist ein Fehler aufgetreten.",
    "Die Bestellung konnte nicht geladen werden.",
    "No se pudo obtener el pedido",
    "Le service est temporairement indisponible",
    "Não foi possível concluir a operação",
    "サーバーに接続できませんでした",
    # vendors
    [{"errorCode": "REQUIRED_FIELD_MISSING", "fields": ["Name"], "message": "Required fields are missing"}],
    {"__type": "ResourceNotFoundException", "message": "Requested resource not found"},
    {"odata.error": {"code": "", "message": {"lang": "en-US", "value": "Bad query"}}},
    {"data": {"orderUpdate": {"order": None, "userErrors": [{"field": ["id"], "message": "no such order"}]}}},
    {"detail": [{"loc": ["body", "x"], "msg": "field required", "type": "value_error.missing"}]},
    {"non_field_errors": ["Unable to log in with provided credentials."]},
    {"errcode": 40013, "errmsg": "invalid appid"},
    {"meta": {"status": 401, "msg": "Unauthorized"}, "response": []},
    {"name": "AxiosError", "message": "Request failed with status code 500", "code": "ERR_BAD_RESPONSE"},
    {"ack": "Failure"},
    {"Success": "N"},
    {"0": {"error": "x"}, "1": {"error": "y"}},
    # markup, streams, wrappers
    "<response><status>error</status><message>Order locked</message></response>",
    "<response><success>false</success><order>7</order></response>",
    '<rsp stat="fail"><err code="1" msg="User not found" /></rsp>',
    '<s:Envelope xmlns:s="x"><s:Body><s:Fault><faultstring>boom</faultstring></s:Fault></s:Body></s:Envelope>',
    'data: {"error":"boom"}\n\ndata: [DONE]',
    "event: error\ndata: boom",
    'Result: {"error": "boom", "code": 500}',
    "Observation: Error: no such order",
    '```json\n{"error": "x"}\n```',
    '{"error":"boom","trace":"aaa',
    '{"success": false, "message": "no',
    "[tool_error: quota]",
    "get_customer is not a valid tool, try one of [search_products].",
    "Function get_customer not found.",
    # programs and databases
    "ORA-00942: table or view does not exist",
    "SQLSTATE[42S02]: Base table or view not found: 1146 Table",
    "psycopg2.errors.UndefinedTable: relation does not exist",
    "npm ERR! code ELIFECYCLE\nnpm ERR! errno 1",
    "PHP Fatal error:  Uncaught Exception: x in /a.php:3",
    "** (RuntimeError) boom\n    lib/x.ex:3",
    '  File "a.py", line 3\n    x = = 1\nSyntaxError: invalid syntax',
    "404 page not found",
]

FAILED_ACTS: list[tuple[str, Any]] = [
    ("charge_card", {"id": "ch_1", "status": "declined", "amount": 20}),
    ("charge_card", {"transaction": {"id": "t1", "state": "DECLINED"}}),
    ("charge_card", {"payment_status": "failed", "amount": 20}),
    ("send_sms", {"sid": "SM1", "status": "undelivered", "error_code": 30003, "error_message": "Unreachable"}),
    ("book_table", {"status": "fehlgeschlagen", "grund": "x"}),
    ("book_table", {"status": "échec"}),
    ("renew_policy", {"renewed": False, "why": "old"}),
    ("renew_policy", {"policy": {"id": 7, "renewal": {"status": "rejected"}}}),
    ("send_batch", {"results": [{"id": 1, "status": "failed"}, {"id": 2, "status": "failed"}]}),
    ("send_batch", {"status": 207, "results": [{"status": 423}, {"status": 424}]}),
    ("send_batch", {"success_count": 0, "failure_count": 5, "total": 5}),
    ("send_mails", {"a@b.c": {"error": "bounced"}, "d@e.f": {"error": "bounced"}}),
    ("send_mails", {"sent": [], "failed": ["b"]}),
]

NO_SUCCESS: list[tuple[str, Any]] = [
    *((tool, text) for tool in (READS, SEARCHES, ACTS) for text in (
        # the words of six languages
        "Zugriff verweigert für diesen Benutzer",
        "Zahlung abgelehnt: Karte 4711 ist gesperrt",
        "Ihre Sitzung ist abgelaufen. Bitte melden Sie sich neu an.",
        "Inténtelo de nuevo más tarde. Código 17",
        "Commande 4711 : accès interdit",
        "ただいまメンテナンス中です。",
        # languages without words of their own
        "De bestelling kon niet worden geladen in Utrecht",
        "Nie udało się pobrać zamówienia 4711",
        "Не удалось загрузить заказ 4711",
        "주문을 불러올 수 없습니다 4711",
        {"melding": "Bestelling kon niet worden geladen"},
        # English
        "Session expired, please log in again",
        "Oops! That did not work.",
        "HTTPError 500 for url x",
        "got 404 from the order api",
        "TODO: implement this tool",
        "This tool is disabled for your plan",
        "Lost connection to MySQL server during query",
        "Tool execution was cancelled",
        "[Request interrupted by user for tool use]",
        "[object Object]",
        "HTTP/1.1 302 Found\nLocation: /login",
        "<!DOCTYPE html><html><head><title>Sign in</title></head><body><form action='/login'></form></body></html>",
        {"resultCode": 1, "resultText": "Customer locked"},
        {"problem": "db down"},
        {"info": "please retry later"},
        {"reply": "I'm sorry, I can't do that."},
        {"status": 302, "location": "/login"},
        {"RETURN": [{"TYPE": "E", "MESSAGE": "Material locked"}]},
    )),
    (READS, {"state": "FAILED", "order": {"id": 3}}),
    (READS, {"requires_authentication": True}),
    (READS, False),
    (ACTS, {"available": False}),
    (ACTS, {"missing": ["address"]}),
    (ACTS, {"needs_confirmation": True, "prompt": "Are you sure?"}),
    (ACTS, {"status": "requires_action"}),
    (ACTS, {"status": "on hold"}),
    (ACTS, {"order_id": 7, "reason": "Payment overdue"}),
    (ACTS, {"options": ["monthly", "yearly"], "message": "Which one?"}),
    (ACTS, "The invoice is already cancelled."),
    (ACTS, "Dry run: nothing was changed"),
    ("charge_card", {"ResponseCode": "51", "ResponseText": "Insufficient funds", "TransactionId": "t"}),
    ("crm", {"active": False}),
    ("crm", {"success": [], "failed": [1, 2]}),
]  # fmt: skip

REASONS: list[tuple[str, Any, str]] = [
    (READS, {"exists": False}, NOTHING_FOUND),
    (READS, {"count": 0}, NOTHING_FOUND),
    (SEARCHES, {"total": 0, "hits": []}, NOTHING_FOUND),
    (SEARCHES, {"orders": [], "page": 1}, NOTHING_FOUND),
    (SEARCHES, {"query": "tea", "results": [], "total_results": 0}, NOTHING_FOUND),
    (READS, "No order with this number exists", NOTHING_FOUND),
    (READS, "Found 0 orders for customer", NOTHING_FOUND),
    (READS, "Nothing to show for this account", NOTHING_FOUND),
    (READS, "Keine Rechnung gefunden", NOTHING_FOUND),
    ("update_row", {"rows_affected": 0}, NOTHING_FOUND),
    ("update_row", {"acknowledged": True, "matchedCount": 0, "modifiedCount": 0}, NOTHING_FOUND),
    (ACTS, {"queued": True, "position": 4}, UNSTATED),
    (ACTS, {"status": 202}, UNSTATED),
    (ACTS, "HTTP 207 Multi-Status", UNSTATED),
    (ACTS, {"success": True, "message": "Failed: card declined"}, CONTRADICTS),
    (ACTS, {"status": "success", "message": "Order could not be updated"}, CONTRADICTS),
    ("send_batch", [{"ok": True}, {"ok": False}, {"ok": False}], CONTRADICTS),
    ("send_batch", {"succeeded": 3, "failed": 2, "errors": ["a", "b"]}, CONTRADICTS),
]

SUCCESSES: list[tuple[str, Any]] = [
    # checks whose answer is no
    ("validate_address", {"valid": False, "errors": ["zip missing"]}),
    ("verify_identity", {"verified": False}),
    ("check_stock", {"in_stock": False, "sku": "A1"}),
    ("check_eligibility", {"eligible": False, "reason": "Account too new"}),
    # data that speaks of failures
    ("search_tickets", [{"id": 1, "title": "Login error"}, {"id": 2, "title": "Card declined"}]),
    ("get_transactions", {"transactions": [{"id": 1, "status": "declined"}, {"id": 2, "status": "declined"}]}),
    ("search_flights", {"flights": [{"no": "A1", "status": "cancelled"}, {"no": "A2", "status": "cancelled"}]}),
    ("get_user", {"name": "Ada", "failed_logins": 3, "last_error": "bad password"}),
    ("search_faq", "Sale items cannot be returned. Other items can be returned within 30 days."),
    ("compute_stats", {"standard_error": 0.2, "mean": 3}),
    ("count_open_orders", {"count": 0}),
    ("get_balance", {"balance": 0, "currency": "EUR"}),
    ("get_menu", {"items": [{"item_id": "chai latte-3489", "name": "Chai latte"}]}),
    ("bash", {"exit_code": 0, "stdout": "ok", "stderr": "warning: failed to load cache"}),
    ("get_order", '<?xml version="1.0"?><Response><Order><Id>7</Id><Total>20</Total></Order></Response>'),
    ("kunde_suchen", "Der Kunde Ada Meier wohnt seit 2019 in Berlin."),
    # acts
    ("cancel_order", {"order_id": 5, "status": "cancelled"}),
    ("block_card", {"status": "blocked", "card": "1234"}),
    ("reject_claim", {"status": "rejected", "claim_id": 4}),
    ("create_task", {"task_id": "1", "title": "x", "status": "pending"}),
    ("create_ticket", {"id": "T7", "title": "Error on login", "status": "open"}),
    ("create_payment_link", {"url": "https://pay.example/x", "expires": "2026"}),
    ("book_table", {"reservation": {"name": "Ada", "table": 4, "time": "19:00"}}),
    ("charge_card", {"id": "ch_1", "paid": True, "status": "succeeded", "failure_code": None, "failure_message": None}),
    ("update_order", {"data": {"orderUpdate": {"order": {"id": "gid://1"}, "userErrors": []}}}),
    ("update_row", {"acknowledged": True, "matchedCount": 1, "modifiedCount": 1}),
    ("process_batch", {"processed": 5, "failed": 0}),
    ("renew_policy", "Policy 7 renewed until 2027."),
    ("termin_buchen", "Der Termin wurde erfolgreich gebucht."),
    ("create_booking", "Votre réservation a été confirmée avec succès."),
    ("create_invoice", {"erfolg": True, "nummer": 7}),
]


@pytest.mark.parametrize("content", FAILURES_OF_ANY_TOOL, ids=_named)
@pytest.mark.parametrize("tool", [READS, SEARCHES, ACTS])
def test_failures_of_any_tool(content: Any, tool: str) -> None:
    assert read(content, tool).status == FAILED


@pytest.mark.parametrize(("tool", "content"), FAILED_ACTS, ids=_named)
def test_failed_acts(tool: str, content: Any) -> None:
    assert read(content, tool).status == FAILED


@pytest.mark.parametrize(("tool", "content"), NO_SUCCESS, ids=_named)
def test_what_is_no_success(tool: str, content: Any) -> None:
    """Some of these failed, of some it is not known; none is a success."""
    assert read(content, tool).status != SUCCEEDED


@pytest.mark.parametrize(("tool", "content", "reason"), REASONS, ids=_named)
def test_why_it_is_not_stated(tool: str, content: Any, reason: str) -> None:
    outcome = read(content, tool)
    assert (outcome.status, outcome.reason) == (NOT_STATED, reason)


@pytest.mark.parametrize(("tool", "content"), SUCCESSES, ids=_named)
def test_successes(tool: str, content: Any) -> None:
    assert read(content, tool).status == SUCCEEDED
