"""What a file is: a text that speaks of a format is not taken for it, and a file with the wrong name is known."""

from __future__ import annotations

import pytest

from roles.analysis.extract import extract
from roles.analysis.kinds import HTML, MAIL, MEDIA, PDF, RTF, TEXT, UNKNOWN, Kind, kind_of

PDF_FILE = b"%PDF-1.7\n1 0 obj\n<</Type/Catalog>>\nendobj\ntrailer\n%%EOF"
PAGE = b"<!DOCTYPE html>\n<html><body><p>Said.</p></body></html>"
LETTER = b"From: a@example.org\nTo: b@example.org\nDate: today\nSubject: pump\n\nIt failed."

SENT = b"Message-ID: <1@b.c>\nSubject: pump,\n failed\n" + LETTER


@pytest.mark.parametrize(
    ("data", "suffix", "kind"),
    [
        (b"A PDF begins with %PDF-1.7 in its first bytes.", ".md", TEXT),
        (b"A PDF begins with %PDF-1.7 in its first bytes.", "", TEXT),
        (b"%PDF-1.7 is how a PDF begins.", ".txt", TEXT),
        (b"See:\n\n%PDF-1.7\n1 0 obj\n<<>>\nendobj\n", ".md", TEXT),
        (b"\n".join((LETTER, PDF_FILE)), ".eml", MAIL),
        (b"print('%PDF-1.7')\n# 1 0 obj", ".py", TEXT),
        (PDF_FILE, ".pdf", PDF),
        (PDF_FILE, ".txt", PDF),
        (b"\xef\xbb\xbf\r\n" + PDF_FILE, "", PDF),
        (b"\0junk\n" + PDF_FILE, ".bin", PDF),
        (b"junk" + PDF_FILE, ".pdf", PDF),
        (b"%PDF-1.7 and no more", ".pdf", PDF),
        (b"<html> is the tag that a page begins with.", ".md", TEXT),
        (b"<html> is closed by </html>, as you know.", ".txt", TEXT),
        (b"<!DOCTYPE html> comes first.", "", TEXT),
        (b"<html> begins a page.", ".html", HTML),
        (b"<html> begins a page.", ".tex", TEXT),
        (b"<html> begins a page.", ".org", TEXT),
        (b"<html>", ".json", TEXT),
        (b"<html> begins a page, and it ends with </html>", ".txt", TEXT),
        (b"<body> begins it:\n\n<p>seen\n</body>\n</html>\n", ".md", TEXT),
        (b"<html>,<b>\n1,</html>\n</html>", ".csv", TEXT),
        (b"{\\rtf1 is how RTF begins.", ".adoc", TEXT),
        (b"{\\rtf is how RTF begins}", ".txt", TEXT),
        (b"{\\rtf\\ansi A pump.}", ".rtf", RTF),
        (b"RIFF" + b"A\0B\0" * 999, ".wav", MEDIA),
        (b"RIFF is how sounds begin.", ".txt", TEXT),
        (PAGE, ".txt", HTML),
        (PAGE + b"\n<!-- saved -->\n", "", HTML),
        (PAGE[:-14], ".asp", HTML),
        (b"{\\rtf1 is how RTF begins.", ".txt", TEXT),
        (b"{\\rtf1 A pump.}\r\n\0", ".txt", RTF),
        (b"{\\rtf1 A pump.", ".doc", RTF),
        (LETTER, ".txt", TEXT),
        (LETTER, ".mail", MAIL),
        (SENT, ".txt", MAIL),
        (LETTER + bytes(range(256)) * 9, ".eml", MAIL),
        (SENT.replace(b"\n\n", b"\n   \n"), ".md", TEXT),
        (b"Note\n" + SENT, "", TEXT),
        (b"Subject: pump\n\nIt failed.", ".txt", TEXT),
        (bytes(range(32)) * 9, ".txt", UNKNOWN),
    ],
)  # fmt: skip
def test_a_file_is_known_by_what_it_holds(data: bytes, suffix: str, kind: Kind) -> None:
    assert kind_of(data, suffix) is kind


@pytest.mark.parametrize(
    "text", ["In its first bytes stands %PDF-1.4, as in\n%PDF-1.4", "<html> is the tag of <b>pages</b>.", "{\\rtf1 {"]
)
def test_a_text_about_a_format_loses_nothing(text: str) -> None:
    read = extract(text.encode(), ".md")
    assert (read.status, read.text) == ("read", text)


SOURCE = b"How PDFs work.\n\n%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\nThe end.\n"


@pytest.mark.parametrize("suffix", [".tex", ".org", ".json", ".xml", ".py", ".bak", ".jsonl", ".pdf", ".txt", ""])
@pytest.mark.parametrize(
    "data", [SOURCE, b"%PDF-1.4 is how it begins,\n1 0 obj what follows.\n"], ids=["inside", "first"]
)
def test_a_text_that_shows_how_a_pdf_begins_is_read_as_text(data: bytes, suffix: str) -> None:
    read = extract(data, suffix)
    damaged = data.startswith(b"%PDF") and suffix == ".pdf"
    assert (read.status, read.text) == (("failed", "") if damaged else ("read", data.decode()))


def test_a_page_or_mail_that_shows_how_a_pdf_begins_is_read_as_itself() -> None:
    page = b"<html><body><pre>\n" + SOURCE + b"</pre></body></html>"
    assert extract(page, ".html").text.strip() == SOURCE.decode().strip()
    assert SOURCE.decode().strip() in extract(LETTER + b"\n\n" + SOURCE, ".eml").text


def test_a_text_that_begins_like_an_archive_is_read_as_text() -> None:
    text = "PK\x03\x04 is how a ZIP begins, as everybody knows.\n"
    assert extract(text.encode(), ".txt").text == text
    assert extract(text.encode(), ".docx").status == "failed"


def test_a_text_with_fields_like_a_mails_loses_none_of_them() -> None:
    text = LETTER.decode().replace("\n\n", "\nAttendees: Ann\n\n")
    assert extract(text.encode(), ".md").text == text


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "data",
    [b"<!---->" * 9999, b"<html>" + b"</html>" + b"<!---->" * 500 + b"x", b"%PDF-1\n" + b"1" * 2_000_000],
    ids=["comments", "comments at the end", "digits"],
)
def test_what_only_begins_like_a_format_is_told_at_once(data: bytes) -> None:
    assert kind_of(data, ".txt") is TEXT
