"""The document analysis over two small documents, with every model call noted."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from rebuild.story import Effects, Story

from roles.analysis.events import AnalysisRequested, DocumentInfo
from roles.analysis.pipeline import analysis_swarm
from swarmbus.models import resolve_model

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from swarmbus.delivery.journal import Journal
    from swarmbus.models import ModelRequest

TEXTS = {
    "log.txt": "The alarm came at two.\n\nThe valve was closed by hand at three, nobody knows by whom.",
    "mail.txt": "I closed the valve myself.\n\nThe alarm had been late before.",
}


class NotingModel:
    """The offline model, with a note of every request."""

    name = "noting"

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._model = resolve_model("offline")

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        self._effects.add("model", hashlib.sha256(repr(request.messages).encode()).hexdigest())
        async for part in self._model.stream(request):
            yield part


def papers(folder: Path) -> Story:
    """Return the story of an analysis of the texts, which are written into the folder."""
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    paths = tuple(str(folder / name) for name in TEXTS)
    documents = tuple(
        DocumentInfo(id=f"d{place}", title=name, characters=len(text))
        for place, (name, text) in enumerate(TEXTS.items(), start=1)
    )

    def make(journal: Journal, effects: Effects) -> Any:
        return analysis_swarm(NotingModel(effects), journal=journal)

    request = AnalysisRequested(task="Who closed the valve?", paths=paths, documents=documents)
    return Story(make, lambda: request, lambda question: None)
