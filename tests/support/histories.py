"""Checks a chat history as a strict model server would, and says everything that is wrong with it."""

from __future__ import annotations

import json
from typing import Any

ROLES = {"system", "developer", "user", "assistant", "tool"}


def history_faults(messages: list[dict[str, Any]]) -> list[str]:
    """Return what a strict server would refuse in a request's messages; an empty list for a valid history."""
    faults: list[str] = []
    open_calls: list[str] = []
    seen: set[str] = set()
    begun = False
    for number, message in enumerate(messages):
        place = f"message {number}"
        role = message.get("role")
        if open_calls and role != "tool":
            faults.append(f"{place}: call {open_calls[0]!r} has no result before this {role} message")
            open_calls.clear()
        match role:
            case "system" | "developer":
                if begun:
                    faults.append(f"{place}: a system message after the conversation began")
                faults += _text_faults(place, message)
            case "user":
                faults += _user_faults(place, message)
            case "assistant":
                faults += _assistant_faults(place, message, seen)
                open_calls += [str(call.get("id")) for call in message.get("tool_calls") or ()]
            case "tool":
                faults += _tool_faults(place, message, open_calls)
            case _:
                faults.append(f"{place}: {role!r} is no role")
        begun = begun or role not in {"system", "developer"}
    faults += [f"call {call!r} has no result at the end" for call in open_calls]
    if not messages or messages[-1].get("role") not in {"user", "tool"}:
        faults.append("the history does not end with a user message or a tool result")
    if not any(message.get("role") == "user" for message in messages):
        faults.append("there is no user message")
    return faults


def _text_faults(place: str, message: dict[str, Any]) -> list[str]:
    content = message.get("content")
    if not isinstance(content, str):
        return [f"{place}: the content is {type(content).__name__}, not text"]
    return [] if content else [f"{place}: the content is empty"]


def _user_faults(place: str, message: dict[str, Any]) -> list[str]:
    content = message.get("content")
    if isinstance(content, list):
        known = all(isinstance(part, dict) and part.get("type") in {"text", "image_url", "file"} for part in content)
        return [] if content and known else [f"{place}: unknown or no content parts"]
    return _text_faults(place, message)


def _assistant_faults(place: str, message: dict[str, Any], seen: set[str]) -> list[str]:
    faults = []
    content, calls = message.get("content"), message.get("tool_calls")
    if content is not None and not isinstance(content, str):
        faults.append(f"{place}: the content is {type(content).__name__}, not text")
    if not content and not calls:
        faults.append(f"{place}: neither text nor tool calls")
    if calls is not None and not calls:
        faults.append(f"{place}: an empty list of tool calls")
    for call in calls or ():
        call_id, function = call.get("id"), call.get("function") or {}
        if not isinstance(call_id, str) or not call_id:
            faults.append(f"{place}: a call without id")
        elif call_id in seen:
            faults.append(f"{place}: the id {call_id!r} is used twice")
        seen.add(str(call_id))
        if call.get("type") != "function" or not function.get("name"):
            faults.append(f"{place}: call {call_id!r} names no function")
        if not _is_object(function.get("arguments")):
            faults.append(f"{place}: the arguments of call {call_id!r} are not the text of a JSON object")
    return faults


def _is_object(arguments: object) -> bool:
    try:
        return isinstance(arguments, str) and isinstance(json.loads(arguments), dict)
    except ValueError:
        return False


def _tool_faults(place: str, message: dict[str, Any], open_calls: list[str]) -> list[str]:
    faults = _text_faults(place, message)
    call_id = message.get("tool_call_id")
    if call_id not in open_calls:
        return [*faults, f"{place}: a result for {call_id!r}, which is no open call"]
    if call_id != open_calls[0]:
        faults.append(f"{place}: the result for {call_id!r} stands before the one for {open_calls[0]!r}")
    open_calls.remove(call_id)
    return faults
