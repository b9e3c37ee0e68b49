"""Which model a role asks, and what the check says of names that nothing resolves or nobody has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.jobs import WorkDone, WorkGiven, worker_swarm
from swarmbus import Finding, Role, RoleContext, WiringError, on
from swarmbus.models import ScriptedModel
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


async def test_a_swarm_with_such_a_model_does_not_open() -> None:
    with pytest.raises(WiringError, match=r"did you mean `worker`"):
        await worker_swarm(Worker(), model={"wroker": OWN}).run(WorkGiven())
    assert OWN.requests == []
