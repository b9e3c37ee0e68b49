from __future__ import annotations

import pytest
from pydantic import BaseModel

from swarmbus.errors import ScriptEnded
from swarmbus.messages import AssistantMessage, ModelReply, ModelRequest, TextDelta, ToolCall, Usage, UserMessage
from swarmbus.models import ScriptedModel, call

pytestmark = pytest.mark.anyio

REQUEST = ModelRequest((UserMessage("hello"),))


class Point(BaseModel):
    x: int


async def reply(model: ScriptedModel) -> ModelReply:
    parts = [part async for part in model.stream(REQUEST)]
    assert isinstance(parts[-1], ModelReply)
    return parts[-1]


async def test_each_kind_of_reply() -> None:
    whole = ModelReply(AssistantMessage("w"), Usage(1, 2, calls=1), "length", "m")

    async def later(request: ModelRequest) -> ToolCall:
        return call("late", q=request.messages[-1].content)

    model = ScriptedModel(
        ["a text", call("add", a=1), [call("x"), "beside", call("y")], Point(x=1), ["p", "q"], later, whole]
    )
    replies = [await reply(model) for _ in range(7)]
    assert [made.message for made in replies] == [
        AssistantMessage("a text"),
        AssistantMessage("", (ToolCall("call_2_1", "add", '{"a": 1}'),)),
        AssistantMessage("beside", (ToolCall("call_3_1", "x", "{}"), ToolCall("call_3_2", "y", "{}"))),
        AssistantMessage('{"x":1}'),
        AssistantMessage('["p","q"]'),
        AssistantMessage("", (ToolCall("call_6_1", "late", '{"q": "hello"}'),)),
        AssistantMessage("w"),
    ]
    assert replies[-1] == whole
    assert [made.finish for made in replies] == [
        "stop",
        "tool_calls",
        "tool_calls",
        "stop",
        "stop",
        "tool_calls",
        "length",
    ]


@pytest.mark.parametrize("error", [RuntimeError("boom"), RuntimeError], ids=["instance", "class"])
async def test_a_failure_is_raised(error: Exception | type[Exception]) -> None:
    with pytest.raises(RuntimeError):
        await reply(ScriptedModel([error]))


async def test_a_text_streams_before_the_reply() -> None:
    parts = [part async for part in ScriptedModel(["hi"]).stream(REQUEST)]
    assert parts[0] == TextDelta("hi")


async def test_running_out_of_replies_says_so() -> None:
    model = ScriptedModel(["one"])
    await reply(model)
    with pytest.raises(ScriptEnded) as caught:
        await reply(model)
    assert str(caught.value) == (
        "scripted used all 1 of its replies and was asked for one more: add a reply to ScriptedModel([...]); "
        "the last message was: 'hello'"
    )
    assert model.requests == [REQUEST, REQUEST]
