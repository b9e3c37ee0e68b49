"""A swarm that reviews papers, with twelve different faults in its wiring. `mended` is the same without them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from swarmbus import CLIENT, Event, EventTable, Joined, Role, RoleContext, Swarm, join, on
from swarmbus.models import ScriptedModel

if TYPE_CHECKING:
    from swarms.mended import Manuscript


class PaperSubmitted(Event):
    title: str


class PaperWithdrawn(Event):
    title: str


class PaperRetracted(Event):
    title: str


class ReviewPlanned(Event):
    editor: str
    aspects: tuple[str, ...]


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


class Remark(BaseModel, frozen=True):
    text: str


class Editor(Role):
    @on
    async def plan(self, event: PaperSubmitted, ctx: RoleContext[NoteTaken]) -> ReviewPlanned:
        await ctx.publish(NoteTaken(text="planning"))
        return ReviewPlanned(editor=ctx.role, aspects=("method", "novelty"))


class Reviewer(Role):
    @on(ReviewPlanned, each="editor")
    async def review(self, aspect: str) -> AspectReviewed:
        return AspectReviewed(aspect=aspect)

    @on
    async def hurry(self, event: DeadlineSet) -> None:
        del event


class Chair(Role):
    @join(AspectReviewed, per=ReviewPlanned)
    async def decide(self, plan: ReviewPlanned, reviews: Joined[AspectReviewed]) -> VerdictReached:
        return VerdictReached(accepted=len(reviews.done) == len(plan.aspects))


class Archivist(Role):
    @join(AspectReviewed, per=VerdictReached)
    async def file(self, verdict: VerdictReached, reviews: Joined[AspectReviewed]) -> None:
        del verdict, reviews

    @on
    async def strike(self, event: PaperRetracted) -> None:
        del event


class Typist(Role):
    @on
    async def type(self, event: dict[str, Any]) -> None:
        del event


class Translator(Role):
    @on
    async def translate(self, event: Manuscript) -> None:
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
        (CLIENT, PaperSubmitted, "editor"),
        (CLIENT, PaperWithdrawn, "editor"),
        ("editor", ReviewPlanned, ("reviewer", "chair")),
        ("editor", DeadlineSet, "reviewer"),
        ("reviewer", AspectReviewed, ("chair", "archivst")),
        ("reviewer", Remark, "chair"),
        ("chair", VerdictReached, (CLIENT, "archivist")),
        ("chair", VerdictReached, CLIENT),
        ("proofreader", ProofRequested, "proofreader"),
        result=VerdictReached,
    ),
    model=ScriptedModel([]),
)
