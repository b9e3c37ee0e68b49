"""The standard roles through the real bus, with scripted models that answer from what they are asked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from roles.standard import (
    Aggregator,
    Executor,
    NoUsablePlan,
    Plan,
    Planner,
    PlanRevised,
    ReportReady,
    Step,
    StepDone,
    StepReady,
    TaskPlanned,
    TaskSubmitted,
    first_steps,
    standard_swarm,
    standard_table,
)
from roles.standard.plan import MOST_STEPS
from swarmbus import EventTable, Retry, RoleContext, RunFailed, RunResult, Swarm, on, tool
from swarmbus.delivery.journal import MemoryJournal
from swarmbus.errors import ServerUnreachable
from swarmbus.models import ScriptedModel
from swarmbus.testing import context

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Answer = Callable[[str], Any]

NOTHING = "NOTHING FOUND"


def answering(answer: Answer) -> ScriptedModel:
    """A model that answers from the last message alone."""
    return ScriptedModel([lambda request: answer(str(request.messages[-1].content))] * 200)


def plan_of(*steps: dict[str, Any]) -> Answer:
    return lambda prompt: {"steps": list(steps)} if prompt.startswith("Plan this task") else {"steps": []}


def swarm_of(planner: Answer, executor: Answer, /, **settings: Any) -> Swarm[ReportReady]:
    models = {
        "planner": answering(planner),
        "executor": answering(executor),
        "aggregator": answering(lambda prompt: f"report on {prompt.count('result of')} results"),
    }
    return standard_swarm(models, **settings)


async def run(planner: Answer, executor: Answer, /, **settings: Any) -> RunResult[ReportReady]:
    return await swarm_of(planner, executor, **settings).run(TaskSubmitted(task="the task"), timeout=30)


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


async def test_a_step_is_carried_out_in_a_context_of_its_own_without_the_task() -> None:
    executor = answering(lambda prompt: f"result of {prompt}")
    aggregator = answering(lambda prompt: prompt)
    models = {"planner": answering(lambda _: ["one", "two"]), "executor": executor, "aggregator": aggregator}
    await standard_swarm(models).run(TaskSubmitted(task="the task"), timeout=30)
    seen = [[message.content for message in request.messages] for request in executor.requests]
    assert sorted(seen) == [[Executor.instructions, "one"], [Executor.instructions, "two"]]
    (report,) = aggregator.requests
    assert [message.role for message in report.messages] == ["system", "user"]
    assert {"the task", "result of one", "result of two"} <= set(str(report.messages[-1].content).splitlines())


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
        return {"steps": [{"id": "a", "text": "try otherwise"}, {"id": "b", "text": "use it", "depends_on": ["a"]}]}

    result = await run(plan, lambda prompt: "result of it" if prompt[:3] == "use" or "otherwise" in prompt else NOTHING)
    assert ends(result) == {"a": "empty", "b": "superseded", "r1.a": "done", "r1.b": "done"}


async def test_a_revision_may_build_on_steps_that_stand() -> None:
    def plan(prompt: str) -> Any:
        if prompt.startswith("Plan this task"):
            first = [{"id": name, "text": name} for name in ("found", "lost")]
            return {"steps": [*first, {"id": "both", "text": "both", "depends_on": ["found", "lost"]}]}
        return {"steps": [{"id": "one", "text": "make do", "depends_on": ["found"]}]}

    seen: list[str] = []

    def work(prompt: str) -> str:
        seen.append(prompt)
        return NOTHING if prompt == "lost" else f"result of {prompt.splitlines()[0]}"

    result = await run(plan, work)
    assert ends(result) == {"found": "done", "lost": "empty", "both": "superseded", "r1.one": "done"}
    assert seen[-1] == "make do\n\nResult of step found:\nresult of found"


async def test_the_client_hears_of_a_revision() -> None:
    def plan(prompt: str) -> Any:
        return ["look here"] if prompt.startswith("Plan this task") else ["look there"]

    swarm = swarm_of(plan, lambda prompt: "result of it" if "there" in prompt else NOTHING)
    async with swarm.open() as live:
        run = await live.submit(TaskSubmitted(task="the task"))
        news = [getattr(item, "event", None) async for item in run.events()]
    (revised,) = [event for event in news if isinstance(event, PlanRevised)]
    assert revised == PlanRevised(
        reason="step s1 brought nothing: NOTHING FOUND",
        replaced=(),
        steps=(Step(id="r1.s1", text="look there"),),
        number=1,
    )


@pytest.mark.parametrize(
    "again",
    [["look here", "Look  there"], ["look there"]],
    ids=["the same plan", "the step that brought nothing"],
)
async def test_a_revision_that_repeats_what_was_tried_is_no_progress(again: list[str]) -> None:
    def plan(prompt: str) -> Any:
        return ["look here", "look there"] if prompt.startswith("Plan this task") else again

    result = await run(plan, lambda prompt: NOTHING if "there" in prompt else "result of it")
    assert ends(result) == {"s1": "done", "s2": "empty", "r1": "skipped"}
    assert result.output.steps[-1].error == "no progress: step s2 brought nothing: NOTHING FOUND"
    assert result.usage_by_role["planner"].calls == 2


async def test_a_step_that_was_superseded_unseen_may_be_carried_out_on_its_own() -> None:
    def plan(prompt: str) -> Any:
        use = {"id": "b", "text": "use"}
        if prompt.startswith("Plan this task"):
            return {"steps": [{"id": "a", "text": "try"}, {**use, "depends_on": ["a"]}]}
        return {"steps": [use]}

    result = await run(plan, lambda prompt: NOTHING if prompt == "try" else "result of it")
    assert ends(result) == {"a": "empty", "b": "superseded", "r1.b": "done"}


@pytest.mark.parametrize(
    ("most", "expected"),
    [(0, {"s1": "empty"}), (2, {"s1": "empty", "r1.s1": "empty", "r2.s1": "empty"})],
    ids=["none", "two"],
)
async def test_revisions_are_bounded(most: int, expected: dict[str, str]) -> None:
    texts = iter(range(100))
    planner = Planner(max_revisions=most)
    result = await run(lambda _: [f"look in place {next(texts)}"], lambda _: NOTHING, planner=planner)
    assert ends(result) == expected


MANY = [{"id": f"s{number}", "text": f"step {number}"} for number in range(MOST_STEPS + 1)]


async def test_a_plan_of_too_many_steps_has_to_be_written_anew() -> None:
    result = await run(
        lambda prompt: {"steps": MANY[:2] if "101 steps are too many; write 100 at most" in prompt else MANY},
        lambda _: "result of it",
    )
    assert ends(result) == {"s0": "done", "s1": "done"}


async def test_a_model_that_writes_only_plans_of_too_many_steps_has_no_usable_plan() -> None:
    with pytest.raises(RunFailed) as caught:
        await run(lambda _: {"steps": MANY}, lambda _: "never")
    assert str(caught.value.__cause__) == "no usable plan: 101 steps are too many; write 100 at most"


async def test_a_revision_of_too_many_steps_is_none() -> None:
    plan = plan_of({"id": "a", "text": "try"}, {"id": "b", "text": "use", "depends_on": ["a"]})
    result = await run(lambda prompt: plan(prompt) if prompt.startswith("Plan") else {"steps": MANY}, lambda _: NOTHING)
    assert ends(result) == {"a": "empty", "b": "skipped"}
    assert "no usable revision: 101 steps are too many" in result.output.steps[1].error


def test_a_model_can_not_say_what_only_a_planner_may() -> None:
    assert "notes" not in str(Plan.model_json_schema()["properties"])
    assert Plan.model_validate({"steps": [], "notes": ["obey"]}).notes == ()


async def test_a_planner_of_ones_own_plans_without_a_model() -> None:
    class Lister(Planner):
        name = "planner"

        async def make_plan(self, event: TaskSubmitted, ctx: RoleContext[Any, Any]) -> Plan:
            return Plan(steps=(Step(id="a", text="one"), Step(id="b", text="two", depends_on=("a",))))

    result = await run(lambda _: "never", lambda prompt: f"result of {prompt[:3]}", planner=Lister())
    assert [step.answer for step in result.output.steps] == ["result of one", "result of two"]
    assert "planner" not in result.usage_by_role


@pytest.mark.parametrize(
    ("revision", "said"),
    [
        ({"steps": []}, "step a brought nothing: NOTHING FOUND"),
        ({"steps": [{"id": "x", "text": "new", "depends_on": ["b"]}]}, "no usable revision: step 'x' depends on b"),
        ("I would rather talk about it.", "no usable revision: "),
        (ServerUnreachable("refused"), "no usable revision: refused"),
    ],
    ids=["no other way", "built on what is stuck", "prose", "a model out of reach"],
)
async def test_without_a_revision_the_steps_that_wait_are_skipped(revision: Any, said: str) -> None:
    def plan(prompt: str) -> Any:
        if prompt.startswith("Plan this task"):
            return {"steps": [{"id": "a", "text": "try"}, {"id": "b", "text": "use", "depends_on": ["a"]}]}
        return revision

    result = await run(plan, lambda _: NOTHING)
    assert ends(result) == {"a": "empty", "b": "skipped"}
    assert said in result.output.steps[1].error


async def test_a_revision_that_can_not_be_carried_out_is_written_anew() -> None:
    shown: list[str] = []

    def plan(prompt: str) -> Any:
        shown.append(prompt)
        if len(shown) == 1:
            return ["try"]
        return {"steps": [{"id": "x", "text": "new", "depends_on": ["nowhere"] if len(shown) == 2 else []}]}

    result = await run(plan, lambda prompt: NOTHING if prompt == "try" else "result of it")
    assert ends(result) == {"s1": "empty", "r1.x": "done"}
    assert "nowhere" in shown[2]


async def test_two_steps_that_fail_close_what_needs_both_only_once() -> None:
    def plan(prompt: str) -> Any:
        if prompt.startswith("Plan this task"):
            first = [{"id": name, "text": name} for name in ("a", "b")]
            return {"steps": [*first, {"id": "c", "text": "c", "depends_on": ["a", "b"]}]}
        return {"steps": []}

    result = await run(plan, lambda _: NOTHING)
    assert [(step.step_id, step.status) for step in result.output.steps] == [
        ("a", "empty"),
        ("b", "empty"),
        ("c", "skipped"),
    ]


@pytest.mark.parametrize("needed", [(), ("s12",)], ids=["from the plan", "released"])
async def test_a_step_whose_handler_fails_is_a_step_that_failed(needed: tuple[str, ...]) -> None:
    class Careless(Executor):
        async def carry_out(self, step: StepReady, ctx: RoleContext[Any, Any]) -> StepDone:
            if step.text == "step 13":
                raise ConnectionError("no answer")
            return StepDone(step_id=step.step_id, status="done", answer=f"result of {step.text}")

    steps = [{"id": f"s{n}", "text": f"step {n}", "depends_on": needed if n == 13 else ()} for n in range(50)]
    result = await run(plan_of(*steps), lambda _: "never", executor=Careless())
    assert ends(result) == {f"s{n}": "failed" if n == 13 else "done" for n in range(50)}
    assert result.output.steps[13].error == "ConnectionError: no answer"
    assert result.output.text == "report on 49 results"
    assert result.failures == ()


@pytest.mark.parametrize("then", ["tells it again", "fails"])
async def test_a_result_counts_once_whatever_its_step_does_then(then: str) -> None:
    class Hasty(Executor):
        @on(TaskPlanned, each=first_steps)
        async def begin(  # type: ignore[override]  # it publishes too
            self, step: StepReady, ctx: RoleContext[StepDone]
        ) -> StepDone:
            done = StepDone(step_id=step.step_id, status="done", answer=f"result of {step.text}")
            if step.step_id == "slow":
                await released.wait()
            else:
                await ctx.publish(done)
                if then == "fails":
                    raise ConnectionError("no answer")
            return done

        @on
        async def work(self, step: StepReady, ctx: RoleContext) -> StepDone:
            assert [needed.answer for needed in step.inputs] == ["result of a", "result of slow"]
            return StepDone(step_id=step.step_id, status="done", answer="both")

    released = anyio.Event()
    needed = ["a", "slow"]
    plan = plan_of(*[{"id": name, "text": name} for name in needed], {"id": "b", "text": "b", "depends_on": needed})
    async with swarm_of(plan, lambda _: "never", executor=Hasty(), retry=Retry(attempts=1)).open() as live:
        run = await live.submit(TaskSubmitted(task="the task"))
        await anyio.wait_all_tasks_blocked()
        released.set()
        result = await run.result()
    assert (ends(result)["b"], result.usage_by_role["planner"].calls, result.failures) == ("done", 1, ())


async def test_a_step_may_go_on_from_one_that_failed_and_sees_that_it_did() -> None:
    class Undaunted(Planner):
        name = "planner"

        def suffices(self, event: StepDone) -> bool:
            return True

    seen: list[str] = []

    def work(prompt: str) -> str:
        seen.append(prompt)
        return NOTHING if prompt == "try" else "result of it"

    plan = plan_of({"id": "a", "text": "try"}, {"id": "b", "text": "use", "depends_on": ["a"]})
    assert ends(await run(plan, work, planner=Undaunted())) == {"a": "empty", "b": "done"}
    assert seen[-1] == f"use\n\nResult of step a:\n{NOTHING}"


async def test_a_planner_that_fails_itself_is_not_asked_again_for_the_step_it_failed_on() -> None:
    class Broken(Planner):
        name = "planner"

        async def make_revision(self, event: StepDone, *_: Any) -> Sequence[Step]:
            asked.append(event.step_id)
            raise TypeError("broken")

    asked: list[str] = []
    plan = plan_of({"id": "a", "text": "try"}, {"id": "b", "text": "use", "depends_on": ["a"]})
    result = await run(plan, lambda _: NOTHING, planner=Broken())
    assert (asked, ends(result)) == (["a"], {"a": "empty", "b": "skipped"})


async def test_a_model_that_gives_up_makes_a_step_that_failed() -> None:
    result = await run(plan_of({"id": "a", "text": "one"}), lambda _: ServerUnreachable("refused"))
    assert [(step.status, step.error) for step in result.output.steps] == [("failed", "ServerUnreachable: refused")]


@pytest.mark.parametrize(
    ("reply", "said"),
    [(ServerUnreachable("refused"), "ServerUnreachable: refused"), ("", "AgentStopped: the agent stopped without")],
    ids=["a model out of reach", "no answer"],
)
async def test_an_executor_that_gets_no_answer_says_so_itself(reply: Any, said: str) -> None:
    executor = Executor()
    ctx = context(executor, model=ScriptedModel([reply]))
    done = await executor.work(StepReady(step_id="a", text="one"), ctx)
    assert (done.step_id, done.status, done.answer) == ("a", "failed", "")
    assert done.error.startswith(said)


async def test_steps_that_depend_on_nothing_change_no_state() -> None:
    journal = MemoryJournal()
    await run(lambda _: [f"step {n}" for n in range(20)], lambda prompt: f"result of {prompt}", journal=journal)
    (records,) = journal.records.values()
    changes = [json.loads(record).get("changes") for record in records]
    assert sum(bool(changed) for changed in changes) == 1


class StepMeasured(StepDone):
    seconds: int


class Measurer(Executor):
    name = "executor"

    @on(TaskPlanned, each=first_steps)
    async def begin(self, step: StepReady, ctx: RoleContext) -> StepMeasured:
        return StepMeasured(step_id=step.step_id, status="done", answer=f"result of {step.text}", seconds=7)

    @on
    async def work(self, step: StepReady, ctx: RoleContext) -> StepMeasured:
        return await self.begin(step, ctx)


async def test_executors_may_say_more_of_a_step_in_an_event_of_their_own() -> None:
    plan = plan_of({"id": "a", "text": "x"}, {"id": "b", "text": "y", "depends_on": ["a"]})
    table = EventTable(
        *(row for row in standard_table().rows if row.event is not StepDone),
        ("planner", StepDone, ("planner", "aggregator")),
        ("executor", StepMeasured, ("planner", "aggregator")),
        result=ReportReady,
    )
    models = {"planner": answering(plan), "aggregator": answering(lambda _: "report")}
    swarm = Swarm(Planner(), Measurer(), Aggregator(), table=table, model=models)
    result = await swarm.run(TaskSubmitted(task="the task"), timeout=30)
    assert [(step.step_id, step.answer) for step in result.output.steps] == [("a", "result of x"), ("b", "result of y")]


def test_tools_go_to_the_executor_alone() -> None:
    @tool(effects="read_only")
    def look(place: str) -> str:
        """Look at a place."""
        return place

    planner, executor, aggregator = standard_swarm(tools=[look]).roles
    assert (planner.tools, executor.tools, aggregator.tools) == ((), (look,), ())
