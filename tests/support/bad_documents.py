"""Makes documents that hurt: of every kind of damage that a folder of real files can hold."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fpdf import FPDF
from fpdf.enums import AccessPermission, EncryptionMethod

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TEXT = "The pump of the northern basin was replaced on 4 May after the bearing had failed."


def pdf(path: Path, *pages: str, user: str = "", owner: str = "") -> Path:
    """Write a PDF with a page for each text; with passwords it is encrypted."""
    document = FPDF()
    for page in pages or (TEXT,):
        document.add_page()
        document.set_font("helvetica", size=12)
        document.multi_cell(0, 8, page)
    if owner:
        document.set_encryption(
            owner_password=owner,
            user_password=user or None,
            encryption_method=EncryptionMethod.RC4,
            permissions=AccessPermission.none(),
        )
    document.output(str(path))
    return path


def empty(path: Path) -> Path:
    path.write_bytes(b"")
    return path


def blank(path: Path) -> Path:
    path.write_text(" \n\t\n")
    return path


def cut(path: Path) -> Path:
    data = pdf(path).read_bytes()
    path.write_bytes(data[:200])
    return path


def html_named_pdf(path: Path) -> Path:
    path.write_text(f"<!DOCTYPE html><html><body><p>{TEXT}</p></body></html>")
    return path


def pdf_named_text(path: Path) -> Path:
    return pdf(path)


def locked(path: Path) -> Path:
    return pdf(path, user="secret", owner="owner")


def owner_locked(path: Path) -> Path:
    return pdf(path, owner="owner")


def binary(path: Path) -> Path:
    path.write_bytes(bytes(range(256)) * 40)
    return path


def dangling_link(path: Path) -> Path:
    path.symlink_to(path.parent / "gone.txt")
    return path


def pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def picture(path: Path) -> Path:
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(200))
    return path


KINDS: dict[str, tuple[str, Callable[[Path], Path], str]] = {
    "0 bytes": ("empty.txt", empty, "empty"),
    "white space": ("blank.md", blank, "empty"),
    "cut after 200 bytes": ("cut.pdf", cut, "failed"),
    "HTML named .pdf": ("page.pdf", html_named_pdf, "read"),
    "PDF named .txt": ("paper.txt", pdf_named_text, "read"),
    "user password": ("locked.pdf", locked, "encrypted"),
    "owner password only": ("owner.pdf", owner_locked, "read"),
    "binary data": ("data.bin", binary, "failed"),
    "dangling link": ("link.txt", dangling_link, "failed"),
    "named pipe": ("pipe.txt", pipe, "failed"),
    "picture": ("scan.png", picture, "no_text"),
}
"""Name, maker and expected status of each kind of bad document."""
