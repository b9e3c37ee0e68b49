"""The swarm of `twelve_faults`, mended: the check finds nothing in it."""

from __future__ import annotations

from swarmbus import CLIENT, Event, EventTable, Joined, Role, RoleContext, Swarm, join, on
from swarmbus.models import ScriptedModel


class PaperSubmitted(Event):
    title: str


class PaperWithdrawn(Event):
    title: str


class PaperRetracted(Event):
    title: str


class ReviewPlanned(Event):
    editor: str
    aspects: tuple[str, ...]


class Manuscript(ReviewPlanned):
    pass


class DeadlineSet(Event):
    days: int


class AspectReviewed(Event):
    aspect: str


class NoteTaken(Event):
    text: str


class ProofRequested(Event):
    page: int


class VerdictReached(Event):
    accepted: bool


class Remark(Event):
    text: str


class Editor(Role):
    @on
    async def plan(self, event: PaperSubmitted, ctx: RoleContext[NoteTaken | DeadlineSet]) -> ReviewPlanned:
        await ctx.publish(NoteTaken(text="planning"))
        await ctx.publish(DeadlineSet(days=7))
        return ReviewPlanned(editor=ctx.role, aspects=("method", "novelty"))

    @on
    async def drop(self, event: PaperWithdrawn) -> VerdictReached:
        del event
        return VerdictReached(accepted=False)


class Reviewer(Role):
    @on(ReviewPlanned, each="aspects")
    async def review(self, aspect: str, ctx: RoleContext[Remark]) -> AspectReviewed:
        await ctx.publish(Remark(text=aspect))
        return AspectReviewed(aspect=aspect)

    @on
    async def hurry(self, event: DeadlineSet) -> None:
        del event


class Chair(Role):
    @join(AspectReviewed, per=ReviewPlanned)
    async def decide(
        self, plan: ReviewPlanned, reviews: Joined[AspectReviewed], ctx: RoleContext[ProofRequested]
    ) -> VerdictReached:
        await ctx.publish(ProofRequested(page=1))
        return VerdictReached(accepted=len(reviews.done) == len(plan.aspects))

    @on
    async def hear(self, event: Remark) -> None:
        del event


class Archivist(Role):
    @join(AspectReviewed, per=PaperSubmitted)
    async def file(self, paper: PaperSubmitted, reviews: Joined[AspectReviewed]) -> None:
        del paper, reviews

    @on
    async def strike(self, event: PaperRetracted) -> None:
        del event


class Typist(Role):
    @on
    async def type(self, event: ReviewPlanned) -> None:
        del event


class Translator(Role):
    @on
    async def translate(self, event: ReviewPlanned) -> None:
        del event


class Proofreader(Role):
    @on
    async def read(self, event: ProofRequested) -> ProofRequested | None:
        return ProofRequested(page=event.page - 1) if event.page else None


swarm = Swarm(
    Editor(),
    Reviewer(),
    Chair(),
    Archivist(),
    Typist(),
    Translator(),
    Proofreader(),
    table=EventTable(
        (CLIENT, PaperSubmitted, ("editor", "archivist")),
        (CLIENT, PaperWithdrawn, "editor"),
        (CLIENT, PaperRetracted, "archivist"),
        ("editor", ReviewPlanned, ("reviewer", "chair", "typist", "translator")),
        ("editor", DeadlineSet, "reviewer"),
        ("editor", NoteTaken, CLIENT),
        ("reviewer", AspectReviewed, ("chair", "archivist")),
        ("reviewer", Remark, "chair"),
        (("chair", "editor"), VerdictReached, CLIENT),
        (("chair", "proofreader"), ProofRequested, "proofreader"),
        result=VerdictReached,
    ),
    model=ScriptedModel([]),
)
