"""Makes a folder of many documents in a dozen formats, the same for the same seed: reports of a plant's inspections.

Each says at what pressure the valve of one hall opens. Two say it of the same hall, and contradict each other. Some are
copies of others, and some can't be read.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from email.message import EmailMessage
from typing import TYPE_CHECKING

from docx import Document
from openpyxl import Workbook

from support import bad_documents, bad_pdfs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

QUESTION = "At what pressure does the relief valve of hall Kestrel open?"
CONTRADICTION = (
    "The relief valve of hall Kestrel opens at 9 bar.",
    "The relief valve of hall Kestrel opens at 12 bar, as the maker states.",
)
COPY_EVERY = 25
BAD_EVERY = 40
BAD = ("0 bytes", "cut after 200 bytes", "user password", "binary data", "dangling link", "picture", "named pipe")
"""Kinds of bad documents that are among them."""

_WORDS = """
    alarm archive assembly basin bearing board boiler bolt breaker bridge cable cabinet camera casing chamber channel
    circuit clamp coating cooler coupling cover crane damper deck delivery display drain drill drum duct fan feeder
    filter flange floor frame fuse gasket gauge gearbox girder handle heater hinge hose housing inlet inspector jacket
    joint ladder lamp lever lid lock loop manual meter mixer motor nozzle outlet paint panel pipe piston plate platform
    plug pump rack radiator rail relay report roller roof rotor sample screen screw seal sensor shaft shelf shift
    sleeve socket spring stack stairs station stator storage strainer supplier switch tower track tray trench tube wall
""".split()  # noqa: SIM905  # a list of strings is harder to read
_VERBS = (
    "checked",
    "replaced",
    "cleaned",
    "measured",
    "repaired",
    "delivered",
    "ordered",
    "removed",
    "painted",
    "tested",
)
_SYLLABLES = """
    ar bel cor dun el far gor hal in jor kal lor mar nor os per quin ral sol tor ul ver wen xan yor zel
""".split()  # noqa: SIM905  # see above


@dataclass(frozen=True)
class ManyDocuments:
    """What was made.

    Attributes:
        folder: where it lies.
        statuses: the status that each file must get, by its name.
        contradicting: the names of the two files that contradict each other, in the order of `CONTRADICTION`.
    """

    folder: Path
    statuses: dict[str, str]
    contradicting: tuple[str, str]


def make(folder: Path, count: int, seed: int = 0) -> ManyDocuments:
    """Write `count` files; the same count and seed give the same texts."""
    chance = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    statuses: dict[str, str] = {}
    planted = dict(zip((count // 3, count - count // 5), CONTRADICTION, strict=True))
    contradicting: list[str] = []
    formats = tuple(FORMATS.items())
    bad = [bad_documents.KINDS[kind] for kind in BAD]
    latest = folder
    for number in range(count):
        if number not in planted and number % BAD_EVERY == BAD_EVERY - 1:
            name, damaged, status = bad[number // BAD_EVERY % len(bad)]
            damaged(folder / f"{number:05}-{name}")
            statuses[f"{number:05}-{name}"] = status
        elif number not in planted and number % COPY_EVERY == COPY_EVERY - 1:
            path = folder / f"{number:05}-copy{latest.suffix}"
            path.write_bytes(latest.read_bytes())
            statuses[path.name] = "duplicate"
        else:
            ending, write = formats[number % len(formats)]
            latest = folder / f"{number:05}{ending}"
            said = (
                planted.get(number) or f"The relief valve of hall {_name(chance)} opens at {chance.randint(2, 40)} bar."
            )
            write(latest, _paragraphs(chance, said))
            statuses[latest.name] = "read"
            if number in planted:
                contradicting.append(latest.name)
    return ManyDocuments(folder, statuses, (contradicting[0], contradicting[1]))


def _name(chance: random.Random) -> str:
    return "".join(chance.choices(_SYLLABLES, k=6)).capitalize()


def _paragraphs(chance: random.Random, said: str) -> list[str]:
    texts = [" ".join(_sentence(chance) for _ in range(chance.randint(3, 9))) for _ in range(chance.randint(12, 36))]
    texts.insert(chance.randrange(len(texts)), f"{said} {_sentence(chance)}")
    return texts


def _sentence(chance: random.Random) -> str:
    first, *others = chance.choices(_WORDS, k=chance.randint(4, 9))
    amount = f"{chance.randint(2, 900)} "
    return f"The {first} was {chance.choice(_VERBS)} beside the {' '.join(others)} after {amount}days."


def _text(encoding: str) -> Callable[[Path, Sequence[str]], None]:
    def write(path: Path, paragraphs: Sequence[str]) -> None:
        path.write_text("\n\n".join(("Prüfbericht – déjà vu", *paragraphs)), encoding=encoding)

    return write


def _html(path: Path, paragraphs: Sequence[str]) -> None:
    body = "".join(f"<p>{text}</p>" for text in paragraphs)
    path.write_text(f"<!DOCTYPE html><html><head><title>t</title></head><body><h1>Report</h1>{body}</body></html>")


def _mail(path: Path, paragraphs: Sequence[str]) -> None:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "plant@example.org", "office@example.org", "Inspection"
    message.set_content("\n\n".join(paragraphs))
    path.write_bytes(bytes(message))


def _rtf(path: Path, paragraphs: Sequence[str]) -> None:
    path.write_text(r"{\rtf1\ansi " + r"\par ".join(paragraphs) + "}")


def _table(path: Path, paragraphs: Sequence[str]) -> None:
    path.write_text("\n".join(f'{number},"{text}"' for number, text in enumerate(paragraphs)))


def _pdf(path: Path, paragraphs: Sequence[str]) -> None:
    path.write_bytes(bad_pdfs.pages(*(" ".join(paragraphs[at : at + 8]) for at in range(0, len(paragraphs), 8))))


def _docx(path: Path, paragraphs: Sequence[str]) -> None:
    document = Document()
    for text in paragraphs:
        document.add_paragraph(text)
    document.save(str(path))


def _xlsx(path: Path, paragraphs: Sequence[str]) -> None:
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    for text in paragraphs:
        sheet.append([text])
    book.save(path)


FORMATS: dict[str, Callable[[Path, Sequence[str]], None]] = {
    ".txt": _text("utf-8"),
    ".md": _text("utf-8-sig"),
    ".html": _html,
    ".csv": _table,
    ".docx": _docx,
    ".log": _text("utf-16"),
    ".pdf": _pdf,
    ".eml": _mail,
    ".text": _text("cp1252"),
    ".xlsx": _xlsx,
    ".rtf": _rtf,
}
