"""Which model a role asks, and what the check says of names that nothing resolves or nobody has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.jobs import WorkDone, WorkGiven, WorkSeen, worker_swarm
from support.prices import know_prices
from swarmbus import CLIENT, Budget, EventTable, Finding, Limits, Role, RoleContext, Swarm, WiringError, on
from swarmbus.errors import NotAuthorised, UnknownPrice
from swarmbus.models import ScriptedModel, register_model
from swarmbus.role_models import RoleModels

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.anyio


class Worker(Role):
    @on
    async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
        return WorkDone(text=await ctx.ask("What now?"))


def model(name: str) -> ScriptedModel:
    return ScriptedModel([], name=name)


OWN, SWARMS, OVERRIDE = model("own"), model("swarm's"), model("override")


@pytest.mark.parametrize(
    ("own", "setting", "override", "asked"),
    [
        (None, SWARMS, None, SWARMS),
        (OWN, SWARMS, None, OWN),
        (OWN, {"worker": SWARMS}, None, SWARMS),
        (OWN, {"other": SWARMS}, None, OWN),
        (OWN, {"worker": SWARMS}, OVERRIDE, OVERRIDE),
        (OWN, SWARMS, {"worker": OVERRIDE}, OVERRIDE),
        (None, SWARMS, {"other": OVERRIDE}, SWARMS),
    ],
    ids=[
        "the swarm's",
        "its own",
        "the mapping's",
        "not in the mapping",
        "the override",
        "the overriding mapping's",
        "not in the overriding mapping",
    ],
)
def test_the_nearest_setting_counts(own: Any, setting: Any, override: Any, asked: ScriptedModel) -> None:
    assert RoleModels([Worker().named("worker", model=own)], setting, override).of("worker") is asked


def check(setting: str | Mapping[str, Any], **own: Any) -> list[Finding]:
    return worker_swarm(Worker().named("worker", **own), model=setting).check()


def test_a_mapping_that_names_no_role_of_the_swarm_is_a_finding() -> None:
    (found,) = check({"wroker": OWN})
    assert (found.code, found.severity, found.role) == ("SB105", "error", "wroker")
    assert found.message == "Swarm(model=...) names 'wroker', which is no role of the swarm (did you mean `worker`?)"
    assert found.hint == "the roles are worker"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("opnai:gpt-5-mini", "did you mean 'openai'?"),
        ("openai", "write the model as openai:NAME"),
        ("http://127.0.0.1:8000/v1", "write it as http://127.0.0.1:8000/v1#NAME"),
        ("ollama:qwen3 | olama:qwen3", "no model is known as 'olama:qwen3'; did you mean 'ollama'?"),
    ],
)
def test_a_name_that_nothing_resolves_is_a_finding(name: str, told: str) -> None:
    for found in (*check(name), *check({"worker": name}), *check("openai:x", model=name)):
        assert (found.code, found.severity, found.role) == ("SB601", "error", "worker")
        assert found.message == f"worker would ask the model {name!r}, which nothing resolves"
        assert told in (found.hint or "")


@pytest.mark.parametrize("name", ["openai:gpt-5-mini", "http://127.0.0.1:1/v1#m", "offline", "ollama:a | ollama:b"])
def test_a_known_name_needs_no_key_for_the_check(name: str) -> None:
    assert check(name) == []


def test_what_is_overridden_is_not_asked_and_so_not_looked_up() -> None:
    swarm = worker_swarm(Worker(), model="opnai:gpt-5-mini")
    with swarm.override(model=OVERRIDE):
        assert swarm.check() == []
    with swarm.override(model={"wroker": OVERRIDE}):
        assert [found.code for found in swarm.check()] == ["SB105", "SB601"]


class Speaker(Role):
    @on
    async def speak(self, event: WorkSeen, ctx: RoleContext) -> None:
        await ctx.ask("Speak.")


class Mute(Role):
    @on
    async def speak(self, event: WorkSeen) -> None:
        """Says nothing."""


def two_roles(speaker: Role, **settings: Any) -> Swarm[WorkDone]:
    rows = (CLIENT, WorkGiven, "worker"), ("worker", WorkDone, CLIENT), (CLIENT, WorkSeen, "speaker")
    return Swarm(Worker(), speaker, table=EventTable(*rows, result=WorkDone), **settings)


class Inner(Role):
    @on
    async def speak(self, event: WorkSeen, ctx: RoleContext) -> None:
        async def say() -> str:
            return await ctx.ask("Speak.", output=str)

        await say()


class OfTheAgent(Role):
    @on
    async def speak(self, event: WorkSeen, ctx: RoleContext) -> None:
        await ctx.agent.run("Speak.")


class WithAModel(Role):
    @on
    async def speak(self, event: WorkSeen, ctx: RoleContext) -> None:
        await ctx.ask("Speak.", output=str, model=OWN)


class OfOthers(Role):
    instructions = "Be loud."

    @on
    async def speak(self, event: WorkSeen, ctx: RoleContext) -> None:
        await ctx.deps.ask("Speak.")


@pytest.mark.parametrize(
    ("speaker", "setting", "found"),
    [
        (Speaker(), {"worker": OWN}, ["SB602"]),
        (Inner(), {"worker": OWN}, ["SB602"]),
        (OfTheAgent(), {"worker": OWN}, ["SB602"]),
        (WithAModel(), {"worker": OWN}, []),
        (OfOthers(), {"worker": OWN}, []),
        (Mute(), {"worker": OWN}, []),
        (Speaker(), None, []),
        (Speaker(), OWN, []),
        (Speaker().named("speaker", model=OWN), {"worker": OWN}, []),
    ],
    ids=[
        "asks", "asks within", "its agent", "with a model", "asks others", "no context", "no model at all",
        "the swarm's", "its own",
    ],
)  # fmt: skip
def test_a_role_that_asks_and_has_no_model_is_a_finding_where_another_has_one(
    speaker: Role, setting: Any, found: list[str]
) -> None:
    assert [each.code for each in two_roles(speaker.named("speaker"), model=setting).check()] == found


def test_the_finding_says_which_role_lacks_a_model_and_where_to_give_it() -> None:
    (found,) = two_roles(Speaker(), model={"worker": OWN}).check()
    assert (found.severity, found.role) == ("error", "speaker")
    assert found.message == "speaker.speak asks a model, and speaker has none, while worker has one"
    assert found.hint == 'give Swarm(model={..., "speaker": ...}), or Speaker a `model`'
    assert found.where == f"{Path(__file__)}:{Speaker.speak.__code__.co_firstlineno}"


async def test_a_model_without_a_key_keeps_the_swarm_from_opening(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    paid = ScriptedModel(["done"])
    swarm = two_roles(Speaker(), model={"worker": paid, "speaker": "openai:gpt-5-mini"})
    assert swarm.check() == []
    with pytest.raises(
        NotAuthorised, match=r"^the model of speaker can't be used: openai:gpt-5-mini needs a key: set OPENAI"
    ):
        await swarm.run(WorkGiven())
    assert paid.requests == []
    with swarm.override(model=paid):
        await swarm.run(WorkGiven())


async def test_a_model_is_made_once_and_none_for_a_role_that_can_not_ask() -> None:
    made: list[str] = []

    def make(name: str) -> ScriptedModel:
        made.append(name)
        return ScriptedModel(["done"])

    register_model("counted", make)
    await two_roles(Mute().named("speaker"), model={"worker": "counted:a", "speaker": "counted:b"}).run(WorkGiven())
    assert made == ["a"]


@pytest.mark.parametrize(
    ("settings", "own"),
    [({"budget": Budget(usd=1.0)}, None), ({"limits": Limits(usd=1.0)}, None), ({}, Limits(usd=1.0))],
    ids=["the budget", "the swarm's limits", "the role's own"],
)
async def test_money_is_limited_only_where_the_prices_are_known(
    settings: dict[str, Any], own: Limits | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    know_prices(monkeypatch, cheap=0.001)
    speaker = Speaker().named("speaker", limits=own)
    models = {"worker": ScriptedModel(["done"], name="shop:cheap"), "speaker": ScriptedModel(["done"], name="shop:new")}
    with pytest.raises(UnknownPrice, match=r"^the model of speaker can't be used: the price of shop:new is not known"):
        await two_roles(speaker, model=models, **settings).run(WorkGiven())
    assert models["worker"].requests == []
    await two_roles(speaker, model={**models, "speaker": models["worker"]}, **settings).run(WorkGiven())


async def test_a_swarm_with_such_a_model_does_not_open() -> None:
    with pytest.raises(WiringError, match=r"did you mean `worker`"):
        await worker_swarm(Worker(), model={"wroker": OWN}).run(WorkGiven())
    assert OWN.requests == []
