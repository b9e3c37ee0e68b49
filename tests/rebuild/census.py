"""A census with everything a ledger holds: maps and joins within maps and joins, state, retries, failures, timers,
early events, model and tool calls, effects of its own, and a question to a person.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from rebuild.story import Effects, Story

from swarmbus import (
    CLIENT,
    Event,
    EventTable,
    FrozenDict,
    Joined,
    Retry,
    Retryable,
    Role,
    RoleContext,
    Swarm,
    join,
    on,
    tool,
)
from swarmbus.messages import ToolMessage
from swarmbus.models import ScriptedModel, call

if TYPE_CHECKING:
    from swarmbus.delivery.journal import Journal
    from swarmbus.models import ModelRequest


class CensusOrdered(Event):
    year: int


class CensusAnnounced(Event):
    text: str


class DayPassed(Event):
    number: int


class DistrictsDrawn(Event):
    districts: tuple[int, ...]


class HousesListed(Event):
    district: int
    road: str
    houses: tuple[int, ...]


class HouseCounted(Event):
    district: int
    people: int


class DistrictCounted(Event):
    district: int
    people: tuple[int, ...]
    closed: tuple[int, ...]


class AllCounted(Event):
    districts: tuple[DistrictCounted, ...]


class CensusDone(Event):
    districts: tuple[DistrictCounted, ...]
    papers: FrozenDict[str, int]
    visits: int


class Office(Role):
    """Draws the districts, announces the census, and waits for all of them."""

    def __init__(self, effects: Effects) -> None:
        self.effects = effects

    @on
    async def draw(self, event: CensusOrdered, ctx: RoleContext[CensusAnnounced | DayPassed]) -> DistrictsDrawn:
        await ctx.publish(CensusAnnounced(text=f"census of {ctx.now():%Y}"))
        await ctx.publish(DayPassed(number=1), after=0.01)
        return DistrictsDrawn(districts=(0, 1, 2, 3))

    @on
    async def announce(self, event: CensusAnnounced | DayPassed, ctx: RoleContext) -> None:
        await ctx.once("post", lambda: self.effects.add("once", type(event).__name__))

    @join(DistrictCounted, per=DistrictsDrawn)
    async def gather(self, drawn: DistrictsDrawn, counted: Joined[DistrictCounted]) -> AllCounted:
        return AllCounted(districts=counted.done)


class Surveyor(Role):
    """Asks its model, which asks the map, what stands in a district."""

    concurrency = 3

    def __init__(self, effects: Effects) -> None:
        self.effects = effects

    @tool(effects="idempotent")
    def look_up(self, district: int) -> str:
        """Look a district up on the map."""
        self.effects.add("tool", f"district {district}")
        return f"road {district}"

    tools = (look_up,)

    @on(DistrictsDrawn, each="districts")
    async def survey(self, district: int, ctx: RoleContext) -> HousesListed:
        road = await ctx.ask(f"What is the road of district {district}?")
        return HousesListed(district=district, road=road, houses=tuple(range(district)))


class Visitor(Role):
    """Counts the people of one house and keeps its papers."""

    concurrency = 3

    class State(BaseModel, frozen=True):
        papers: FrozenDict[str, int] = FrozenDict()
        visits: int = 0

    def __init__(self, effects: Effects) -> None:
        self.effects = effects

    @on(HousesListed, each="houses", retry=Retry(delay=0.001))
    async def visit(self, listed: HousesListed, house: int, state: State, ctx: RoleContext) -> HouseCounted:
        place = f"{listed.road}/{house}"
        number = ctx.new_id()
        people, noted = await ctx.once("knock", lambda: self._knock(listed.district, house, number))
        if noted != number:
            raise ValueError("an id is another one than before")
        if house == 0 and ctx.attempt == 1:
            raise Retryable("nobody answers the door")
        if place == "road 3/1":
            raise ValueError("this house was torn down")
        if place == "road 3/2":
            people += await ctx.ask_person(f"How many were away from {place}?", reply=int)
        ctx.put("papers", place, people)
        ctx.update(visits=state.visits + 1)
        return HouseCounted(district=listed.district, people=people)

    @on
    async def close(self, event: AllCounted, state: State) -> CensusDone:
        return CensusDone(districts=event.districts, papers=state.papers, visits=state.visits)

    def _knock(self, district: int, house: int, number: str) -> tuple[int, str]:
        self.effects.add("once", f"house {district}/{house}")
        return 10 * district + house, number


class Clerk(Role):
    """Adds up one district."""

    @join(HouseCounted, per=HousesListed, partial="proceed")
    async def add_up(self, listed: HousesListed, counted: Joined[HouseCounted]) -> DistrictCounted:
        people = tuple(house.people for house in counted.done)
        closed = tuple(failed.item for failed in counted.failed)
        return DistrictCounted(district=listed.district, people=people, closed=closed)


def make(journal: Journal, effects: Effects) -> Swarm[CensusDone]:
    def answer(request: ModelRequest) -> Any:
        last = request.messages[-1]
        effects.add("model", str(last.content))
        if isinstance(last, ToolMessage):
            return last.content
        return call("look_up", district=int(str(last.content).removesuffix("?").rsplit(" ", 1)[-1]))

    return Swarm(
        Office(effects),
        Surveyor(effects),
        Visitor(effects),
        Clerk(),
        table=EventTable(
            (CLIENT, CensusOrdered, "office"),
            ("office", CensusAnnounced, "office"),
            ("office", DayPassed, "office"),
            ("office", DistrictsDrawn, ("surveyor", "office")),
            ("surveyor", HousesListed, ("visitor", "clerk")),
            ("visitor", HouseCounted, "clerk"),
            ("clerk", DistrictCounted, "office"),
            ("office", AllCounted, "visitor"),
            ("visitor", CensusDone, CLIENT),
            result=CensusDone,
        ),
        model=ScriptedModel([answer] * 8),
        journal=journal,
    )


CENSUS = Story(make, lambda: CensusOrdered(year=2031), lambda question: 1000)
