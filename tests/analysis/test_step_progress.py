"""Each step is told by its document when it begins and when it has ended, whatever comes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roles.analysis import analyze
from roles.analysis.step_progress import StepProgress
from swarmbus.models import ScriptedModel

if TYPE_CHECKING:
    from pathlib import Path

    from swarmbus.models import ModelRequest


async def test_steps_are_told_by_their_documents(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(f"The valve {name} was open.")

    def answer(request: ModelRequest) -> Any:
        if request.output is not None and request.output.name == "CrossSteps":
            return {"steps": [{"text": "Compare them.", "documents": ["d1", "d2"]}]}
        if "d2" in str(request.messages[-1].content).partition("\n\n")[0]:
            raise MemoryError("no more")
        return {"claims": []}

    told: list[tuple[str, str | None, bool]] = []
    steps = StepProgress({"read-d1": "a.txt", "read-d2": "b.txt"}, lambda *what: told.append(what))
    await analyze(tmp_path, "Was the valve open?", model=ScriptedModel([answer] * 9), on_event=steps.note)
    assert sorted(told[:2]) == [("a.txt", None, False), ("b.txt", None, False)]
    assert ("a.txt", "empty, 0 claims", False) in told
    assert [what for what in told if what[0] == "b.txt"] == [("b.txt", None, False), ("b.txt", "failed", True)]
