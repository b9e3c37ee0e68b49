"""The standard roles through the real bus, with scripted models that answer from what they are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from roles.standard import (
    Executor,
    NoUsablePlan,
    Planner,
    ReportReady,
    StepDone,
    StepReady,
    TaskSubmitted,
    standard_swarm,
)
from swarmbus import Role, RoleContext, RunFailed, RunResult, on
from swarmbus.models import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable

    Answer = Callable[[str], Any]


def answering(answer: Answer, replies: int = 200) -> ScriptedModel:
    """A model that answers from the last message alone."""
    return ScriptedModel([lambda request: answer(str(request.messages[-1].content))] * replies)


def plan_of(*steps: dict[str, Any]) -> Answer:
    return lambda prompt: {"steps": list(steps)} if prompt.startswith("Plan this task") else {"steps": []}


async def run(planner: Answer, executor: Answer, *, planner_role: Planner | None = None) -> RunResult[ReportReady]:
    swarm = standard_swarm(
        planner=planner_role,
        model={
            "planner": answering(planner),
            "executor": answering(executor),
            "aggregator": answering(lambda prompt: f"report on {prompt.count('result of')} results"),
        },
    )
    return await swarm.run(TaskSubmitted(task="the task"), timeout=30)


def ends(result: RunResult[ReportReady]) -> dict[str, str]:
    return {step.step_id: step.status for step in result.output.steps}


def test_the_wiring_passes_its_check() -> None:
    assert standard_swarm().check() == []


async def test_independent_steps_are_carried_out_and_reported() -> None:
    result = await run(lambda _: ["one", "two", "three"], lambda prompt: f"result of {prompt}")
    assert ends(result) == {"s1": "done", "s2": "done", "s3": "done"}
    assert result.output.text == "report on 3 results"


async def test_a_step_gets_the_results_it_depends_on() -> None:
    seen: list[str] = []

    def work(prompt: str) -> str:
        seen.append(prompt)
        return f"result of {prompt.splitlines()[0]}"

    steps = ({"id": "c", "text": "last", "depends_on": ["a", "b"]}, {"id": "a", "text": "x"}, {"id": "b", "text": "y"})
    result = await run(plan_of(*steps), work)
    assert ends(result) == {"a": "done", "b": "done", "c": "done"}
    assert seen[-1] == "last\n\nResult of step a:\nresult of x\n\nResult of step b:\nresult of y"


async def test_an_empty_plan_ends_in_an_empty_report_without_a_further_call() -> None:
    result = await run(lambda _: {"steps": []}, lambda _: pytest.fail("no step"))
    assert (result.output.text, result.output.steps, result.usage.calls) == ("", (), 1)


@pytest.mark.parametrize(
    "plan",
    [
        {"steps": [{"id": "a", "text": "x", "depends_on": ["nowhere"]}]},
        {"steps": [{"id": "a", "text": "x"}, {"id": "a", "text": "y"}]},
        {"steps": [{"id": "a", "text": "x", "depends_on": ["b"]}, {"id": "b", "text": "y", "depends_on": ["a"]}]},
        "I would rather talk about it.",
    ],
    ids=["unknown dependency", "id twice", "circle", "prose"],
)
async def test_a_plan_that_never_becomes_usable_fails_the_run(plan: Any) -> None:
    with pytest.raises(RunFailed, match="no usable plan") as caught:
        await run(lambda _: plan, lambda _: "never")
    assert isinstance(caught.value.__cause__, NoUsablePlan)


async def test_a_plan_is_mended_with_the_error_shown() -> None:
    shown: list[str] = []

    def plan(prompt: str) -> Any:
        shown.append(prompt)
        needed = [] if len(shown) > 1 else ["nowhere"]
        return {"steps": [{"id": "a", "text": "x", "depends_on": needed}]}

    assert ends(await run(plan, lambda _: "result of x")) == {"a": "done"}
    assert "nowhere" in shown[1]


async def test_a_step_that_brings_nothing_is_replaced_with_those_that_need_it() -> None:
    def plan(prompt: str) -> Any:
        if prompt.startswith("Plan this task"):
            return {"steps": [{"id": "a", "text": "try"}, {"id": "b", "text": "use", "depends_on": ["a"]}]}
        return {"steps": [{"id": "a2", "text": "try otherwise"}]}

    result = await run(plan, lambda prompt: "result of it" if "otherwise" in prompt else "NOTHING FOUND")
    assert ends(result) == {"a": "empty", "b": "superseded", "a2": "done"}


async def test_a_revision_that_repeats_the_plan_is_no_progress() -> None:
    texts = iter(range(100))

    def plan(_: str) -> Any:
        return {"steps": [{"id": f"s{next(texts)}", "text": "look again"}]}

    result = await run(plan, lambda _: "NOTHING FOUND")
    assert ends(result) == {"s0": "empty", "revision-1": "skipped"}
    assert "no progress" in result.output.steps[-1].error


async def test_revisions_are_bounded() -> None:
    texts = iter(range(100))

    def plan(_: str) -> Any:
        number = next(texts)
        return {"steps": [{"id": f"s{number}", "text": f"look in place {number}"}]}

    result = await run(plan, lambda _: "NOTHING FOUND", planner_role=Planner(max_revisions=2))
    assert ends(result) == {"s0": "empty", "s1": "empty", "s2": "empty"}


async def test_one_of_fifty_steps_that_fails_costs_only_itself() -> None:
    def work(prompt: str) -> str:
        if prompt == "step 13":
            raise ConnectionError("no answer")
        return f"result of {prompt}"

    class Careless(Executor):
        name = "executor"

        @on
        async def work(self, event: StepReady, ctx: RoleContext) -> StepDone:
            return StepDone(step_id=event.step_id, status="done", answer=work(event.text))

    swarm = standard_swarm(
        executor=Careless(),
        model={
            "planner": answering(plan_of(*({"id": f"s{n}", "text": f"step {n}"} for n in range(50)))),
            "aggregator": answering(lambda prompt: f"report on {prompt.count('result of')} results"),
        },
    )
    result = await swarm.run(TaskSubmitted(task="fifty"))
    assert ends(result) == {f"s{n}": "failed" if n == 13 else "done" for n in range(50)}
    assert result.output.text == "report on 49 results"


def test_the_planner_has_no_tools() -> None:
    assert tuple(Planner.tools) == ()
    assert issubclass(Planner, Role)
