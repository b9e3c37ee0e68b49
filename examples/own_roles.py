"""Roles of your own, without a model: a till that remembers what it took, and a back office that asks for the sum."""

from pydantic import BaseModel

from swarmbus import CLIENT, Event, EventTable, FrozenDict, Joined, Role, RoleContext, Swarm, join, on


class DayStarted(Event):
    sales: tuple[tuple[str, int], ...]


class SaleBooked(Event):
    product: str
    number: int


class DayClosed(Event):
    takings: FrozenDict[str, int]
    sales: int


class Till(Role):
    """Books sales one after the other: a role with state handles one event of a run at a time."""

    class State(BaseModel, frozen=True):
        booked: int = 0

    @on(DayStarted, each="sales")
    async def book(self, sale: tuple[str, int], state: State, ctx: RoleContext) -> SaleBooked:
        number = ctx.update(booked=state.booked + 1).booked
        return SaleBooked(product=sale[0], number=number)


class BackOffice(Role):
    """Closes the day once every sale is booked."""

    @join(SaleBooked, per=DayStarted)
    async def close(self, day: DayStarted, booked: Joined[SaleBooked]) -> DayClosed:
        takings: dict[str, int] = {}
        for product, cents in day.sales:
            takings[product] = takings.get(product, 0) + cents
        return DayClosed(takings=FrozenDict(takings), sales=max(sale.number for sale in booked.done))


swarm = Swarm(
    Till(),
    BackOffice(),
    table=EventTable(
        (CLIENT, DayStarted, ("till", "back_office")),
        ("till", SaleBooked, "back_office"),
        ("back_office", DayClosed, CLIENT),
        result=DayClosed,
    ),
)

if __name__ == "__main__":
    day = DayStarted(sales=(("tea", 350), ("cake", 480), ("tea", 350)))
    closed = swarm.run_sync(day).output
    print(
        f"{closed.sales} sales:", ", ".join(f"{product} {cents / 100:.2f}" for product, cents in closed.takings.items())
    )
