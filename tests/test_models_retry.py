from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from support.fake_openai import ChatRequest, Reply, fake_server, refuse, say
from swarmbus import CLIENT, Event, EventTable, Retry, Role, RoleContext, RunFailed, Swarm, on
from swarmbus.errors import ModelError, NotTheApi, RateLimited, RunTimedOut, ServerFault
from swarmbus.messages import AssistantMessage, ModelReply, ModelRequest, Restarted, StreamPart, UserMessage
from swarmbus.thinking.agent import Agent
from swarmbus.thinking.models.openai import OpenAIModel
from swarmbus.thinking.models.retry import FIRST_SPACE, MOST_UNDER_WAY, Gate, Retries, retried
from swarmbus.thinking.models.servers import SERVERS

pytestmark = pytest.mark.anyio

QUICK = Retries(attempts=3, rate_limits=5, first_delay=0.001, longest_delay=0.1)
REPLY = ModelReply(AssistantMessage("ok"))


async def tried(*outcomes: ModelError | ModelReply, retries: Retries = QUICK) -> tuple[list[StreamPart], int]:
    tries = 0

    async def attempt() -> AsyncGenerator[StreamPart, None]:
        nonlocal tries
        outcome = outcomes[min(tries, len(outcomes) - 1)]
        tries += 1
        if isinstance(outcome, ModelError):
            raise outcome
        yield outcome

    try:
        return [part async for part in retried(attempt, Gate(), retries)], tries
    except ModelError as error:
        error.args = (tries,)
        raise


async def test_a_passing_failure_is_tried_again_and_announced() -> None:
    parts, tries = await tried(ServerFault("busy"), REPLY)
    assert tries == 2
    assert isinstance(parts[0], Restarted)
    assert parts[0].reason == "busy"
    assert parts[1] == REPLY


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        pytest.param(ServerFault("x"), 3, id="passing"),
        pytest.param(RateLimited("x"), 5, id="rate-limit"),
        pytest.param(NotTheApi("x"), 1, id="final"),
        pytest.param(RateLimited("x", exhausted=True), 1, id="quota"),
        pytest.param(ServerFault("x", retry_after=9.0), 1, id="asks-to-wait-too-long"),
    ],
)
async def test_tries_are_counted_exactly(error: ModelError, tries: int) -> None:
    with pytest.raises(type(error)) as caught:
        await tried(error)
    assert caught.value.args == (tries,)


async def test_the_last_error_says_how_often_it_was_tried_in_all_and_each_further_try_its_number() -> None:
    outcomes = [ServerFault("busy"), RateLimited("slowly", retry_after=0.0), ServerFault("busy"), ServerFault("busy")]
    said = list[StreamPart]()

    async def attempt() -> AsyncGenerator[StreamPart, None]:
        if outcomes:
            raise outcomes.pop(0)
        yield REPLY

    async def read() -> None:
        async for part in retried(attempt, Gate(), QUICK):
            said.append(part)

    with pytest.raises(ServerFault, match=r"^busy \(tried 4 times\)$"):
        await read()
    assert [part.tries for part in said if isinstance(part, Restarted)] == [2, 3, 4]


async def test_an_error_at_the_first_try_says_nothing_of_tries() -> None:
    def attempt() -> AsyncGenerator[StreamPart, None]:
        raise NotTheApi("no")

    with pytest.raises(NotTheApi, match=r"^no$"):
        await anext(retried(attempt, Gate(), QUICK))


@pytest.mark.parametrize("tries", [1, 2, 3, 20])
def test_delays_grow_up_to_a_cap_and_differ(tries: int) -> None:
    retries = Retries(first_delay=1, longest_delay=10)
    delays = {retries.delay(tries) for _ in range(50)}
    longest = min(2 ** (tries - 1), 10)
    assert longest / 2 <= min(delays) < max(delays) <= longest


async def test_the_number_of_requests_to_a_failing_server_is_exactly_the_documented_one() -> None:
    async with fake_server(lambda request: refuse(500, "no")) as server:
        model = OpenAIModel("m", family=SERVERS["generic"], url=server.url, key="", retries=QUICK)
        with pytest.raises(ServerFault):
            await Agent(model).run("x")
    assert len(server.requests) == QUICK.attempts


class Asked(Event):
    pass


class Answered(Event):
    pass


class Asker(Role):
    def __init__(self, model: OpenAIModel) -> None:
        self.model = model

    @on
    async def ask(self, asked: Asked, ctx: RoleContext) -> Answered:
        await ctx.ask("go", model=self.model)
        await anyio.sleep_forever()
        return Answered()


ASKER = EventTable((CLIENT, Asked, "asker"), ("asker", Answered, CLIENT), result=Answered)


@pytest.mark.parametrize("model_again", [False, True], ids=["by default", "where the role asks for it"])
async def test_what_a_role_tries_again_multiplies_model_calls_only_where_it_says_so(model_again: bool) -> None:
    async with fake_server(lambda request: refuse(500, "no")) as server:
        model = OpenAIModel("m", family=SERVERS["generic"], url=server.url, key="", retries=QUICK)
        retry = Retry(attempts=2, delay=0, on=(ServerFault,)) if model_again else Retry(attempts=2, delay=0)
        with pytest.raises(RunFailed) as caught:
            await Swarm(Asker(model), table=ASKER, retry=retry).run(Asked())
    assert isinstance(caught.value.__cause__, ServerFault)
    assert len(server.requests) == QUICK.attempts * (2 if model_again else 1)


@pytest.mark.parametrize(
    ("refusals", "told"),
    [
        (99, r"busy: asker\.ask for asked 0 \(for 1 s, and tries a model call again that failed: .* 429: slow down\)$"),
        (1, r"busy: asker\.ask for asked 0 \(for 1 s\)$"),
    ],
)
async def test_a_run_whose_time_is_over_names_what_its_calls_failed_by_last(refusals: int, told: str) -> None:
    def answer(request: ChatRequest) -> Reply | str:
        return refuse(429, "slow down", {"retry-after-ms": "20"}) if request.number <= refusals else "ok"

    async with fake_server(answer) as server:
        retries = Retries(rate_limits=1000, first_delay=0.01)
        model = OpenAIModel("m", family=SERVERS["generic"], url=server.url, key="", retries=retries)
        with pytest.raises(RunTimedOut, match=told):
            await Swarm(Asker(model), table=ASKER).run(Asked(), timeout=0.8)


async def test_a_fan_out_over_the_rate_limit_gets_through_together() -> None:
    """Twenty agents on a server that takes five requests per window and says how long to wait."""
    window, wait, most = 0.2, 0.3, 5
    taken: list[float] = []
    closed_until = 0.0
    early = 0

    def answer(request: ChatRequest) -> Reply:
        nonlocal closed_until, early
        now = time.monotonic()
        early += now < closed_until - 0.005
        recent = [start for start in taken if now - start < window]
        if len(recent) >= most:
            closed_until = max(closed_until, now + wait)
            return refuse(429, "slow down", {"retry-after-ms": str(int(wait * 1000))})
        taken.append(now)
        return say("ok")

    outputs: list[str] = []
    async with fake_server(answer) as server:
        retries = Retries(first_delay=0.01)
        model = OpenAIModel("m", family=SERVERS["generic"], url=server.url, key="", retries=retries)

        async def ask(number: int) -> None:
            outputs.append((await Agent(model).run(str(number))).output)

        async with model.open(), anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(ask, number)
    assert outputs == ["ok"] * 20
    assert len(server.requests) <= 80
    assert early <= 20  # those of the first burst, under way when the first refusal came


async def test_where_one_model_is_refused_all_of_its_server_wait() -> None:
    """Such as two roles have, each its own."""
    wait, came = 0.3, list[float]()

    def answer(request: ChatRequest) -> Reply | str:
        came.append(time.monotonic())
        return refuse(429, "slow down", {"retry-after-ms": str(int(wait * 1000))}) if request.number == 1 else "ok"

    async with fake_server(answer) as server:
        settings: Any = {
            "family": SERVERS["generic"],
            "url": server.url,
            "key": "",
            "retries": Retries(first_delay=0.01),
        }
        one, other = OpenAIModel("a", **settings), OpenAIModel("b", **settings)

        parts = one.stream(ModelRequest((UserMessage("hello"),)))
        assert isinstance(await anext(parts), Restarted)
        assert (await Agent(other).run("hello")).output == "ok"
        assert [type(part) async for part in parts][-1] is ModelReply
    assert [request.body["model"] for request in server.requests] == ["a", "b", "a"]
    assert came[1] - came[0] > 0.9 * wait  # and no less, however busy the machine is


async def test_calls_wait_while_the_gate_is_closed() -> None:
    gate = Gate()
    started = await gate.enter()
    gate.refused(started, 0.05)
    gate.leave()
    begun = anyio.current_time()
    await gate.enter()
    assert anyio.current_time() - begun >= 0.05


async def test_a_call_that_waits_while_the_gate_is_closed_again_waits_for_that_too() -> None:
    gate = Gate()
    first, second = await gate.enter(), await gate.enter()
    gate.refused(first, 0.05)
    begun = anyio.current_time()
    async with anyio.create_task_group() as group:
        group.start_soon(gate.enter)
        await anyio.lowlevel.checkpoint()
        gate.refused(second, 0.2)
        gate.leave()
        gate.leave()
    assert anyio.current_time() - begun >= 0.2


async def narrowed() -> Gate:
    """Return a gate that eight calls in a row were refused at, so that four may be under way."""
    gate = Gate()
    starts = [await gate.enter() for _ in range(8)]
    for start in starts:
        gate.refused(start, 0.0)
        gate.leave()
    return gate


async def room(gate: Gate) -> int:
    """Return how many calls may start while none ends."""
    started = 0

    async def enter() -> None:
        nonlocal started
        await gate.enter()
        started += 1

    async with anyio.create_task_group() as group:
        for _ in range(MOST_UNDER_WAY + 1):
            group.start_soon(enter)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    return started


@pytest.mark.parametrize(("successes", "calls"), [(40, 9), (5000, MOST_UNDER_WAY)])
async def test_successes_open_the_gate_again_little_by_little(successes: int, calls: int) -> None:
    gate = await narrowed()
    for _ in range(successes):
        gate.succeeded()
    assert await room(gate) == calls


async def test_after_a_refusal_calls_start_apart_and_after_another_twice_as_far() -> None:
    gate = await narrowed()

    async def two_calls() -> float:
        begun = anyio.current_time()
        for _ in range(2):
            await gate.enter()
            gate.leave()
        return anyio.current_time() - begun

    assert await two_calls() >= FIRST_SPACE
    gate.refused(await gate.enter(), 0.0)
    gate.leave()
    assert await two_calls() >= 2 * FIRST_SPACE


async def test_after_enough_successes_calls_start_together_again() -> None:
    gate = await narrowed()
    for _ in range(22):
        gate.succeeded()
    assert await gate.enter() - await gate.enter() <= 0
    begun = anyio.current_time()
    for _ in range(3):
        await gate.enter()
    assert anyio.current_time() - begun < FIRST_SPACE


async def test_a_burst_of_refusals_narrows_the_gate_once() -> None:
    gate = Gate()
    starts = [await gate.enter() for _ in range(8)]
    for start in starts:
        gate.refused(start, 0.0)
    most: Any = gate._most
    assert most == 4
