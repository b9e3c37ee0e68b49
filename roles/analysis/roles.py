"""The roles of the document analysis: the standard planner, executor and aggregator, taught to read and to quote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never

import anyio.to_thread

from roles.analysis.batches import claim_batches
from roles.analysis.bounds import (
    ANSWER_TEXT,
    CLAIM_TEXT,
    CROSS_STEPS,
    QUOTATION_TEXT,
    STEP_CLAIMS,
    STEP_DOCUMENTS,
    STEP_QUOTES,
    SUMMARY_TEXT,
    excerpt,
    first_of,
    shortened,
    size,
)
from roles.analysis.drafts import (
    AGGREGATOR,
    EXECUTOR,
    PLANNER,
    CrossSteps,
    Findings,
    ReportDraft,
    claim_text,
    planning_prompt,
    report_prompt,
    step_prompt,
    step_text,
)
from roles.analysis.events import AnalysisReady, AnalysisRequested, QuotedClaim, QuotedText, StepAnalysed
from roles.analysis.store import DocumentStore
from roles.analysis.tools import latest_results, read, search
from roles.analysis.verification import verify
from roles.standard import (
    Executor,
    Plan,
    Planner,
    Step,
    StepDone,
    StepReady,
    TaskPlanned,
    TaskSubmitted,
    all_steps,
    first_steps,
    step_ids,
)
from swarmbus import AgentStopped, Hooks, Joined, Limits, Role, RoleContext, join, on
from swarmbus.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roles.analysis.drafts import ClaimDraft
    from roles.standard.progress import Progress

DOCUMENT_STEP = "read-"
"""How the ids of the steps begin that read one document."""

BATCH_CLAIMS = 20
"""Claims that it may make of one batch."""
QUOTES = 6
"""Quotations that a claim of the report keeps."""
SHOWN_NUMBERS = 10
"""Claims that do not exist of which one note tells."""

_HOOKS = Hooks(transform_context=latest_results)


class AnalysisPlanner(Planner):
    """Plans one step for each document, and what its model thinks of across documents."""

    name = "planner"
    instructions = PLANNER

    async def make_plan(self, event: TaskSubmitted, ctx: RoleContext[Any, Any]) -> Plan:
        """Return a plan of single documents first, then of the steps that need what those found."""
        assert isinstance(event, AnalysisRequested)
        if not event.documents:
            return Plan(steps=())
        steps = [
            Step(id=f"{DOCUMENT_STEP}{d.id}", text=step_text(event.task, [d], "Find what this document says about it."))
            for d in event.documents
        ]
        cross = (await ctx.ask(planning_prompt(event), output=CrossSteps)).steps if len(event.documents) > 1 else ()
        known = {d.id: d for d in event.documents}
        notes: list[str] = []
        for number, step in enumerate(first_of(cross, CROSS_STEPS, "steps across documents", notes), start=1):
            about = [known[name] for name in dict.fromkeys(step.documents) if name in known]
            needed = tuple(f"{DOCUMENT_STEP}{d.id}" for d in about) if len(about) <= STEP_DOCUMENTS else ()
            text = shortened(step.text, CLAIM_TEXT, "the text of a step", notes)
            steps.append(Step(id=f"cross-{number}", text=step_text(event.task, about, text), depends_on=needed))
        return Plan(steps=tuple(steps)).model_copy(update={"notes": tuple(notes)})

    async def make_revision(
        self, event: StepDone, stuck: tuple[str, ...], progress: Progress, ctx: RoleContext[Any, Any]
    ) -> Sequence[Step]:
        """Return the steps of a revision, each with the question that it serves."""
        steps = await super().make_revision(event, stuck, progress, ctx)
        texts = (step_text(progress.task, (), excerpt(step.text, CLAIM_TEXT)) for step in steps)
        return [
            step.model_copy(update={"text": text, "expected": excerpt(step.expected, CLAIM_TEXT)})
            for step, text in zip(steps, texts, strict=True)
        ]

    def suffices(self, event: StepDone) -> bool:
        """A document that says nothing, or that could not be analysed, is no reason to plan anew."""
        return event.status == "done" or event.step_id.startswith(DOCUMENT_STEP)


class AnalysisExecutor(Executor):
    """Searches and reads documents, and answers with claims whose quotations were looked up in the source."""

    name = "executor"
    instructions = EXECUTOR
    tools = (search, read)
    limits = Limits(turns=12)

    def prompt(self, step: StepReady) -> str:
        """Return what the model is asked for a step; what earlier steps found comes from files, and is marked so."""
        return step_prompt(step)

    async def carry_out(self, step: StepReady, ctx: RoleContext[Any, Any]) -> StepAnalysed:
        """Carry out a step; what it claims has quotations that were looked up."""
        try:
            findings = await ctx.ask(self.prompt(step), output=Findings, hooks=_HOOKS)
        except (AgentStopped, ModelError) as error:
            return StepAnalysed(step_id=step.step_id, status="failed", error=f"{type(error).__name__}: {error}")
        notes: list[str] = []
        drafts = first_of(findings.claims, STEP_CLAIMS, f"claims of the step {step.step_id}", notes)
        claims = await anyio.to_thread.run_sync(_all_checked, ctx.deps, drafts, notes, abandon_on_cancel=True)
        if not claims:
            return StepAnalysed(step_id=step.step_id, status="empty", error="nothing found", notes=tuple(notes))
        answer = excerpt("\n".join(claim.text for claim in claims), ANSWER_TEXT)
        return StepAnalysed(
            step_id=step.step_id, status="done", answer=answer, claims=tuple(claims), notes=tuple(notes)
        )

    @on(TaskPlanned, each=first_steps)
    async def begin(self, step: StepReady, ctx: RoleContext[Never, DocumentStore]) -> StepAnalysed:
        """Carry out a step that depends on nothing."""
        return await self.carry_out(step, ctx)

    @on
    async def work(self, step: StepReady, ctx: RoleContext[Never, DocumentStore]) -> StepAnalysed:
        """Carry out a step that the planner released."""
        return await self.carry_out(step, ctx)


class AnalysisAggregator(Role):
    """Writes the report from the claims of all steps, in batches that fit any window."""

    name = "aggregator"
    instructions = AGGREGATOR

    @join(StepDone, per=TaskPlanned, partial="proceed", key="step_id", expect=step_ids)
    async def write(
        self, plan: TaskPlanned, joined: Joined[StepDone], ctx: RoleContext[Never, DocumentStore]
    ) -> AnalysisReady:
        """Merge the claims, batch by batch, until one batch is left."""
        steps = all_steps(plan, joined)
        claims = [claim for step in steps if isinstance(step, StepAnalysed) for claim in step.claims]
        notes = [*plan.notes, *(note for step in steps if isinstance(step, StepAnalysed) for note in step.notes)]
        titles = {document.id: document.title for document in ctx.deps.documents}
        summary = "" if claims else "The documents that could be read say nothing about the question."
        while claims:
            batches = await anyio.to_thread.run_sync(
                claim_batches, claims, lambda claim: size(claim_text(claim, titles))
            )
            merged: list[QuotedClaim] = []
            for number, batch in enumerate(batches, start=1):
                ctx.progress(f"report: part {number} of {len(batches)}")
                most = BATCH_CLAIMS if len(batches) == 1 else max(1, min(BATCH_CLAIMS, len(batch) // 2))
                prompt = report_prompt(plan.task, batch, titles, most, whole=len(batches) == 1)
                draft = await ctx.ask(prompt, output=ReportDraft, history=())
                merged += _merged(draft, batch, most, notes)
                summary = shortened(draft.summary, SUMMARY_TEXT, "a summary", notes)
            settled = len(batches) == 1 or len(merged) >= len(claims)
            claims = merged
            if settled:
                break
        # What they found is in the claims; told again, it would make an event of megabytes.
        ended = tuple(StepDone(step_id=step.step_id, status=step.status, error=step.error) for step in steps)
        return AnalysisReady(
            question=plan.task, summary=summary, claims=tuple(claims), steps=ended, notes=tuple(dict.fromkeys(notes))
        )


def _all_checked(store: DocumentStore, drafts: Sequence[ClaimDraft], notes: list[str]) -> list[QuotedClaim]:
    """Return the claims whose quotations were found, each with those alone; what was not becomes a note."""
    checked = (_checked(store, draft, notes) for draft in drafts)
    return [claim for claim in checked if claim is not None]


def _checked(store: DocumentStore, draft: ClaimDraft, notes: list[str]) -> QuotedClaim | None:
    """Look a claim's quotations up; without any that stands it is left out."""
    quotes = [
        verify(store, quote.document, shortened(quote.text, QUOTATION_TEXT, "a quotation", notes))
        for quote in first_of(draft.quotes, STEP_QUOTES, "quotations of one claim", notes)
    ]
    notes += [f"a quotation from {q.document} does not count, {q.reason}: {q.text[:120]!r}" for q in quotes if q.reason]
    if not any(quote.verified for quote in quotes):
        notes.append(f"a claim without a quotation that stands was left out: {draft.text[:120]!r}")
        return None
    kept = tuple(
        QuotedText(document=q.document, place=q.place, start=q.start, end=q.end, text=q.text, verified=True)
        for q in quotes
        if q.verified
    )
    return QuotedClaim(text=shortened(draft.text, CLAIM_TEXT, "the text of a claim", notes), quotes=kept)


def _merged(draft: ReportDraft, batch: Sequence[QuotedClaim], most: int, notes: list[str]) -> list[QuotedClaim]:
    """Return the first claims of a draft with the quotations of those they are drawn from."""
    claims: list[QuotedClaim] = []
    for merged in first_of(draft.claims, most, "claims of a part of the report", notes):
        sources = [batch[number - 1] for number in merged.sources if 1 <= number <= len(batch)]
        unknown = [number for number in merged.sources if not 1 <= number <= len(batch)]
        if unknown:
            notes.append(f"the report named claims that do not exist: {', '.join(map(str, unknown[:SHOWN_NUMBERS]))}")
        quotes = tuple(dict.fromkeys(quote for source in sources for quote in source.quotes))[:QUOTES]
        if quotes:
            text = shortened(merged.text, CLAIM_TEXT, "the text of a claim", notes)
            claims.append(QuotedClaim(text=text, quotes=quotes))
        else:
            notes.append(f"a claim of the report without a source was left out: {merged.text[:120]!r}")
    return claims
