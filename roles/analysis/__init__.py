"""The multi-document analysis pipeline: documents in, a report with verified quotations out.

The names are loaded when first asked for: the processes that read documents need none of them, nor the framework.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roles.analysis.documents import Document, load_documents
    from roles.analysis.pipeline import analysis_swarm, analyze
    from roles.analysis.report import Report
    from roles.analysis.store import DocumentStore

__all__ = ["Document", "DocumentStore", "Report", "analysis_swarm", "analyze", "load_documents"]

_HOMES = {
    "Document": "documents",
    "DocumentStore": "store",
    "Report": "report",
    "analysis_swarm": "pipeline",
    "analyze": "pipeline",
    "load_documents": "documents",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
