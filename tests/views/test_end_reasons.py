"""What reasons for an end say, by vendor and by words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.views.end_reasons import KINDS, kind_of_reason, words_of_kind

USER_LEFT = ["user_hangup", "customer-ended-call", "CR_PARTICIPANT_DISCONNECTED", "participant_disconnected"]
USER_LEFT += ["client_disconnected", "Client disconnected: 1000", "Call ended by remote party", "The caller hung up"]
USER_LEFT += ["customer-ended-call-during-transfer", "user_stop", "abandoned", "websocket client disconnected"]
BROKEN = ["error", "CR_ERROR", "pipeline-error-openai-llm-failed", "call.in-progress.error-providerfault-x"]
BROKEN += [
    "vapifault-transport",
    "SIP 503 Service Unavailable",
    "worker crashed",
    "network error",
    "agent_disconnected",
]
BROKEN += ["server disconnected", "phone-call-provider-closed-websocket", "error_llm_websocket_lost_connection"]


@pytest.mark.parametrize("reason", USER_LEFT)
def test_a_user_who_leaves_breaks_nothing(reason: str) -> None:
    assert kind_of_reason(reason) == "user_left"


@pytest.mark.parametrize("reason", BROKEN)
def test_a_fault_of_the_integration_stays_one(reason: str) -> None:
    assert kind_of_reason(reason) == "broken"


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("call_transfer", "handed_over"),
        ("assistant-forwarded-call", "handed_over"),
        ("escalated_to_human", "handed_over"),
        ("call.forwarding.operator-busy", "transfer_failed"),
        ("transfer_cancelled", "transfer_failed"),
        ("transfer_failed", "broken"),
        ("transferred_to_voicemail", "other"),
        ("voicemail_reached", "voicemail"),
        ("machine_end_beep", "voicemail"),
        ("no_voicemail", "other"),
        ("ivr_reached", "ivr"),
        ("customer-did-not-answer", "no_answer"),
        ("customer-busy", "no_answer"),
        ("sip 486 busy here", "no_answer"),
        ("silence-timed-out", "silence"),
        ("inactivity_timeout", "silence"),
        ("exceeded-max-duration", "limit"),
        ("max_turns", "limit"),
        ("agent_hangup", "agent_ended"),
        ("end_call tool was called.", "agent_ended"),
        ("CR_USER_INITIATED", "closed"),
        ("CR_TASK_COMPLETED", "completed"),
        ("goodbye", "completed"),
        ("ended without errors", "completed"),
        ("authentication_failed", "not_done"),
        ("hangup", "hung_up"),
        ("disconnected", "disconnected"),
        ("queued", "other"),
        ("", ""),
    ],
)
def test_each_reason_has_a_kind(reason: str, kind: str) -> None:
    assert kind_of_reason(reason) == kind


@given(st.text(max_size=400))
def test_any_text_has_a_kind_that_has_words(reason: str) -> None:
    kind = kind_of_reason(reason)
    assert not kind or (kind in KINDS and words_of_kind(kind))


@given(
    st.sampled_from(USER_LEFT + BROKEN), st.sampled_from([str.upper, str.lower, lambda text: text.replace("_", "-")])
)
def test_how_a_reason_is_spelled_does_not_matter(reason: str, spelled: object) -> None:
    assert kind_of_reason(spelled(reason)) == kind_of_reason(reason)  # type: ignore[operator]
