"""The events of the document analysis: the standard ones, with documents and quoted claims."""

from __future__ import annotations

from pydantic import BaseModel

from roles.standard import StepDone, TaskSubmitted
from swarmbus import Event


class DocumentInfo(BaseModel, frozen=True):
    """What the roles know of a document without reading it."""

    id: str
    title: str
    characters: int


class AnalysisRequested(TaskSubmitted):
    """Somebody asks a question about documents.

    Attributes:
        task: the question.
        paths: the files and folders, from which any process can load the documents again.
        documents: those that hold text.
    """

    paths: tuple[str, ...]
    documents: tuple[DocumentInfo, ...]


class QuotedText(BaseModel, frozen=True):
    """A quotation that was looked up in its document; see `verification.Quote`."""

    document: str
    place: str
    start: int
    end: int
    text: str
    verified: bool


class QuotedClaim(BaseModel, frozen=True):
    """A statement and what it rests on."""

    text: str
    quotes: tuple[QuotedText, ...]


class StepAnalysed(StepDone):
    """A step of the analysis came to its end, with what it found.

    Attributes:
        notes: quotations that did not check out, and other things a reader should know.
    """

    claims: tuple[QuotedClaim, ...] = ()
    notes: tuple[str, ...] = ()


class AnalysisReady(Event):
    """The answer to the question."""

    question: str
    summary: str
    claims: tuple[QuotedClaim, ...]
    steps: tuple[StepDone, ...]
    notes: tuple[str, ...] = ()
