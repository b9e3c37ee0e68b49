from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from swarmbus.message_json import (
    message_to_json,
    messages_from_data,
    messages_to_data,
    reply_from_data,
    reply_to_data,
)
from swarmbus.messages import (
    AssistantMessage,
    DataPart,
    Message,
    ModelReply,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)

HISTORY: tuple[Message, ...] = (
    SystemMessage("be brief"),
    UserMessage((TextPart("what is this?"), DataPart(b"\x00\xff\xfe", "image/png"))),
    AssistantMessage("", (ToolCall("a", "look", '{"at": "Zoë"}'), ToolCall("b", "look")), reasoning="hm"),
    ToolMessage("a", "look", "a bird"),
    ToolMessage("b", "look", "no", ok=False),
    AssistantMessage("A bird."),
)


def test_a_history_survives_json_exactly() -> None:
    assert messages_from_data(json.loads(json.dumps(messages_to_data(HISTORY)))) == HISTORY


def test_a_message_of_an_unknown_role_is_refused() -> None:
    with pytest.raises(ValidationError, match="judge"):
        messages_from_data([{"role": "judge", "content": "x"}])


def test_equal_messages_have_equal_json_and_others_do_not() -> None:
    texts = [message_to_json(message) for message in HISTORY]
    assert len(set(texts)) == len(HISTORY)
    assert message_to_json(UserMessage("x")) == message_to_json(UserMessage("x"))


def test_a_reply_survives_as_json_compatible_data() -> None:
    reply = ModelReply(AssistantMessage("x", (ToolCall("a", "b"),)), Usage(1, 2, calls=1), "tool_calls", "m")
    assert reply_from_data(reply_to_data(reply)) == reply


def test_usages_add_up_and_one_estimate_makes_the_sum_one() -> None:
    total = Usage(10, 5, 2, 1, 1) + Usage(1, 1, calls=1, estimated=True)
    assert total == Usage(11, 6, 2, 1, 2, estimated=True)
    assert total.total_tokens == 17


def test_a_usage_counts_what_is_not_zero() -> None:
    assert Usage(3, calls=1, estimated=True).counts() == {"input_tokens": 3, "calls": 1, "estimated": 1}


def test_the_text_of_a_message_leaves_out_its_binary_parts() -> None:
    message = HISTORY[1]
    assert isinstance(message, UserMessage)
    assert message.text == "what is this?"
