"""One model call: the request put together, a recorded reply used again or the stream read, the cost booked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from swarmbus.arguments import require
from swarmbus.errors import IncompleteAnswer
from swarmbus.messages import AssistantMessage, Delta, Message, ModelReply, ModelRequest, SystemMessage, ToolSpec, Usage
from swarmbus.text import clean_text, error_text
from swarmbus.thinking.context import estimate_message, estimate_text, fit
from swarmbus.thinking.hooks import ask_hook
from swarmbus.thinking.loop_events import MessageEnd, MessageStart, MessageUpdate
from swarmbus.thinking.models.base import OutputMode, profile_of
from swarmbus.thinking.models.streaming import streamed
from swarmbus.thinking.replies import checked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from swarmbus.thinking.loop_state import LoopSetup, LoopState

_PARTS = get_args(Delta)
_PARTS_WANTED = "a part of a reply, such as TextDelta(text), and at last a ModelReply"

REPLY_TOKENS = 1000
"""What is set aside for a reply whose length is not limited."""


def output_mode(setup: LoopSetup) -> OutputMode:
    """Return how the model at hand is asked for a typed answer."""
    profile = profile_of(setup.model)
    return profile.output_with_tools if setup.tools else profile.output


async def build_request(setup: LoopSetup, state: LoopState, *, last: bool) -> ModelRequest:
    """Return the request for this turn.

    Args:
        setup: what the loop is given.
        state: what the loop has come to.
        last: whether this is the turn in which the model has to finish, so that it gets no tools.
    """
    instructions = setup.instructions
    tools: tuple[ToolSpec, ...] = () if last else setup.specs
    output = None
    if setup.output is not None:
        match output_mode(setup):
            case "native":
                output = setup.output.spec
            case "tool":
                tools = (*tools, setup.output.tool)
            case "prompted":
                instructions = f"{instructions}\n\n{setup.output.instruction}".strip()
    shown: Sequence[Message] = state.messages
    if setup.hooks.transform_context is not None:
        shown = await ask_hook(setup.hooks.transform_context, tuple(shown), returns=(list, tuple))
    window = profile_of(setup.model).window
    if window is not None:
        reply = setup.settings.max_tokens or REPLY_TOKENS
        shown = fit(shown, window, reply + estimate_text(instructions) + setup.spec_tokens)
    messages = (SystemMessage(instructions), *shown) if instructions else tuple(shown)
    request = ModelRequest(messages, tools, output, setup.settings, setup.limits.idle_timeout)
    if setup.hooks.before_model_call is not None:
        changed: ModelRequest = await ask_hook(setup.hooks.before_model_call, request, returns=ModelRequest)
        return changed
    return request


async def ask(setup: LoopSetup, state: LoopState, request: ModelRequest) -> ModelReply:
    """Return the reply to a request, from the record where there is one, and book its usage.

    Raises:
        ModelError: there is no reply.
    """
    state.reporter.emit(MessageStart, model=setup.model.name)
    reply, error, recorded = None, "cancelled", None
    try:
        recorded = await setup.recorder.recorded_reply(request, setup.model.name, state.turn)
        reply = recorded if recorded is not None else await _paid_reply(setup, state, request)
        if setup.hooks.after_model_call is not None:
            reply = await _changed(setup.hooks.after_model_call, reply, setup.model.name)
        reply = _tidied(state, reply)
    except Exception as failure:
        reply, error = None, error_text(failure)
        raise
    finally:
        usage = reply.usage if reply is not None and reply.usage is not None else Usage()
        state.book(usage, setup.price)
        state.reporter.emit(
            MessageEnd,
            message=reply.message if reply is not None else None,
            finish=reply.finish if reply is not None else None,
            usage=usage,
            replayed=recorded is not None,
            error=None if reply is not None else error,
        )
    return reply


async def _changed(hook: Callable[..., Any], reply: ModelReply, model: str) -> ModelReply:
    """Return what a hook makes of a reply; one that says nothing of what it cost does not make it free."""
    changed = checked(await ask_hook(hook, reply, returns=ModelReply), f"{model}, as the hook changed it")
    return changed if changed.usage is not None else replace(changed, usage=reply.usage)


async def _paid_reply(setup: LoopSetup, state: LoopState, request: ModelRequest) -> ModelReply:
    reserved, usage, model = 0, Usage(), setup.model.name
    if setup.spending is not None:
        reserved = state.context_tokens(setup) + (setup.settings.max_tokens or REPLY_TOKENS)
        await setup.spending.reserve(reserved, model)
    try:
        reply = checked(await _stream(setup, state, request), model)
        if reply.usage is None:
            estimated = _estimated_usage(setup, state, reply.message)
            reply = ModelReply(reply.message, estimated, reply.finish, reply.model)
        assert reply.usage is not None
        usage = reply.usage
    finally:
        if setup.spending is not None:
            setup.spending.settle(reserved, usage, model)
    await setup.recorder.keep_reply(reply)
    return reply


async def _stream(setup: LoopSetup, state: LoopState, request: ModelRequest) -> ModelReply:
    reply = None
    async with streamed(setup.model, request) as parts:
        async for part in parts:
            if isinstance(part, ModelReply):
                reply = part
            else:
                require(f"the stream of the model {setup.model.name}: yield {{}}", part, _PARTS, _PARTS_WANTED)
                state.reporter.emit(MessageUpdate, delta=part)
    if reply is None:
        raise IncompleteAnswer("the model's stream ended without a reply")
    return reply


def _estimated_usage(setup: LoopSetup, state: LoopState, message: AssistantMessage) -> Usage:
    return Usage(
        input_tokens=state.context_tokens(setup), output_tokens=estimate_message(message), calls=1, estimated=True
    )


def _tidied(state: LoopState, reply: ModelReply) -> ModelReply:
    """Return the reply with clean text, and with an id of its own for each call."""
    message = reply.message
    content = clean_text(message.content)[0]
    calls = state.with_own_ids(message.tool_calls) if message.tool_calls else ()
    if content == message.content and all(made is call for made, call in zip(calls, message.tool_calls, strict=True)):
        return reply
    return replace(reply, message=replace(message, content=content, tool_calls=calls))
