"""The standard swarm against a model server over HTTP that answers from what it is sent."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from roles.standard import TaskSubmitted, standard_swarm
from support.fake_openai import ChatRequest, ToolUse, fake_server
from swarmbus import RunFailed, tool
from swarmbus.models import resolve_model

HEIGHTS = {"Säntis": 2502, "Rigi": 1798}


@tool(effects="read_only")
def height(mountain: str) -> int:
    """Return a mountain's height in metres."""
    return HEIGHTS[mountain]


def step(name: str, text: str, *needed: str) -> dict[str, Any]:
    return {"id": name, "text": text, "depends_on": list(needed), "expected": ""}


def answer(request: ChatRequest) -> str | list[ToolUse]:
    """Play all three roles, told apart by what they are asked."""
    asked = request.texts("user")[-1]
    if asked.startswith("Plan this task"):
        heights = [step("saentis", "Height of Säntis"), step("pilatus", "Height of Pilatus")]
        return json.dumps({"steps": [*heights, step("sum", "Add the heights", "saentis", "pilatus")]})
    if asked.startswith("Revise the plan"):
        assert "It was: Height of Pilatus" in asked
        assert "They may depend on each other and on saentis." in asked
        return json.dumps({"steps": [step("rigi", "Height of Rigi"), step("sum", "Add up", "saentis", "rigi")]})
    if asked.endswith("Write the report."):
        return asked
    if asked.startswith("Add"):
        return str(sum(int(number) for number in re.findall(r"\d{4}", asked)))
    assert request.tool_names == ["height"]
    mountain = asked.removeprefix("Height of ")
    if request.last["role"] != "tool":
        return [ToolUse("height", {"mountain": mountain})]
    found = str(request.last["content"])
    return found if mountain in HEIGHTS else "NOTHING FOUND"


async def test_a_revised_plan_with_dependencies_is_carried_out_over_http() -> None:
    async with fake_server(answer) as server:
        swarm = standard_swarm(resolve_model(f"{server.url}#fake"), [height])
        result = await swarm.run(TaskSubmitted(task="How high are Säntis and Pilatus together?"), timeout=30)
    ends = [(step.step_id, step.status, step.answer) for step in result.output.steps]
    assert ends == [
        ("saentis", "done", "2502"),
        ("pilatus", "empty", ""),
        ("sum", "superseded", ""),
        ("r1.rigi", "done", "1798"),
        ("r1.sum", "done", "4300"),
    ]
    assert "Step r1.sum:\n4300" in result.output.text
    assert "- pilatus (empty): NOTHING FOUND" in result.output.text
    assert result.usage.calls == len(server.requests) == 10
    assert result.failures == ()


async def test_only_executors_are_given_tools() -> None:
    async with fake_server(answer) as server:
        swarm = standard_swarm(resolve_model(f"{server.url}#fake"), [height])
        await swarm.run(TaskSubmitted(task="How high are Säntis and Pilatus together?"), timeout=30)
        for request in server.requests:
            planning = request.texts("user")[-1].startswith(("Plan", "Revise")) or "report" in request.texts("user")[-1]
            assert ("height" in request.tool_names) != planning


@pytest.mark.parametrize(
    ("plan", "shown"),
    [
        ("I would rather talk about it.", "JSON"),
        (json.dumps({"steps": [step("a", "x", "nowhere")]}), "nowhere"),
    ],
    ids=["prose", "unknown step"],
)
async def test_a_plan_that_never_becomes_usable_is_asked_for_three_times_with_the_error_shown(
    plan: str, shown: str
) -> None:
    async with fake_server(lambda _: plan) as server:
        with pytest.raises(RunFailed, match="no usable plan"):
            await standard_swarm(resolve_model(f"{server.url}#fake")).run(TaskSubmitted(task="x"), timeout=30)
        first, *others = [request.texts("user") for request in server.requests]
    assert len(others) == 2
    assert all(shown not in text for text in first)
    assert all(shown in texts[-1] for texts in others)


@pytest.mark.parametrize("plan", ["[]", '{"steps": []}'])
async def test_a_plan_without_steps_ends_in_an_empty_report(plan: str) -> None:
    async with fake_server(lambda _: plan) as server:
        swarm = standard_swarm(resolve_model(f"{server.url}#fake"))
        result = await swarm.run(TaskSubmitted(task="x"), timeout=30)
    assert (result.output.text, result.output.steps, len(server.requests)) == ("", (), 1)
