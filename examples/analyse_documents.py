"""Analyse the sample documents with the offline model, and print each claim with where it stands."""

from pathlib import Path

import anyio

from roles.analysis import analyze

DOCUMENTS = Path(__file__).parent / "documents"
QUESTION = "Why was the alarm delay at 165 minutes?"


async def main() -> None:
    """Ask one question of twelve documents."""
    report = await analyze(DOCUMENTS, QUESTION, model="offline")
    names = {document.id: Path(document.path).name for document in report.documents}
    for claim in report.claims[:3]:
        for quote in claim.quotes:
            print(f"{names[quote.document]}, {quote.place}: {claim.text}")
    print(f"{report.status}: {len(report.claims)} claims from {len(report.documents)} documents")


if __name__ == "__main__":
    anyio.run(main)
