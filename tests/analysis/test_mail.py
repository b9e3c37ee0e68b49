"""A mail is read as its reader sees it, with everything attached to it, and what can't be read of it is told."""

from __future__ import annotations

import base64

import pytest

from roles.analysis.extract import extract
from support import bad_archives

HEAD = "Subject: pump\nFrom: a@example.org\nTo: b@example.org\nDate: today\n"
SEEN = "Subject: pump\nFrom: a@example.org\nTo: b@example.org\nDate: today"


def mail(kind: str, body: str | bytes, *more: str) -> bytes:
    content = body if isinstance(body, bytes) else body.encode()
    fields = "".join(f"{field}\n" for field in ("MIME-Version: 1.0", f"Content-Type: {kind}", *more))
    return f"{HEAD}{fields}\n".encode() + content


def part(kind: str, body: str, *more: str) -> str:
    return "\n".join((f"Content-Type: {kind}", *more, "", body))


def several(*parts: str, kind: str = "mixed") -> bytes:
    return mail(f"multipart/{kind}; boundary=XX", "".join(f"--XX\n{each}\n" for each in parts) + "--XX--\n")


def attached(name: str, data: bytes, kind: str = "application/octet-stream") -> str:
    encoded = base64.encodebytes(data).decode()
    return part(
        kind, encoded, f'Content-Disposition: attachment; filename="{name}"', "Content-Transfer-Encoding: base64"
    )


PLAIN = part("text/plain", "said")
PAGE = "<table><tr><td>5<td>7</table><p hidden>obey</p><script>x</script><p>R&amp;D &lt; 5<br>caf&eacute;"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (mail("text/plain", "said\r\ntwice"), "said\ntwice"),
        (mail("text/plain", "you wrote:\n> Dear all,\n>\n> > 5 bar\n> >\n>6"),
         "you wrote:\n> Dear all,\n\n> > 5 bar\n\n>6"),
        (mail("text/html; charset=utf-8", PAGE), "5\t7\n\nR&D < 5\ncafé"),
        (several(part("text/html", "<p>one</p><p>two</p>")), "one\n\ntwo"),
        (several(part("text/plain", " \n"), part("text/html", "<p>seen"), kind="alternative"), "seen"),
        (several(PLAIN, part("text/html", "<p>said"), part("text/calendar", "AT 5"), kind="alternative"),
         "said\n\nAT 5"),
        (several(PLAIN, part("text/html", "<p>more")), "said\n\nmore"),
        (several(part("text/html", "seen"), part("text/css", "p{}"), part("image/png", "x"), kind="related"), "seen"),
        (several(PLAIN, part("application/pgp-signature", "xx"), kind="signed"), "said"),
        (several(PLAIN, part("message/rfc822", f"{HEAD}\ninside")), f"said\n\nAttachment: mail\n\n{SEEN}\n\ninside"),
        (mail("multipart/mixed", "no parts"), "no parts"),
        (mail("text/plain", "not so encoded", "Content-Transfer-Encoding: base64"), "not so encoded"),
        (several(PLAIN) + b"\nFrom: another\n\nmail", "said\n\nFrom: another\n\nmail"),
    ],
    ids=["text", "a text within", "HTML", "HTML in parts", "an empty form", "forms and more", "two texts",
         "what is drawn", "a signature", "a mail", "parts without a mark", "an encoding it has not", "another mail"],
)  # fmt: skip
def test_a_mail_is_read_as_it_is_seen(data: bytes, text: str) -> None:
    read = extract(data, ".eml")
    assert (read.status, read.reason, read.warnings) == ("read", "", ())
    assert read.text == f"{SEEN}\n\n{text}"


@pytest.mark.parametrize("encoding", ["shift_jis", "iso-2022-jp", "euc-jp"])
@pytest.mark.parametrize("kind", ["plain", "html"])
def test_the_stated_encoding_is_used(kind: str, encoding: str) -> None:
    text = "圧縮機が停止した。"
    read = extract(mail(f"text/{kind}; charset={encoding}", text.encode(encoding)), ".eml")
    assert read.text == f"{SEEN}\n\n{text}"


def test_fields_are_decoded() -> None:
    fields = (
        "Subject: =?utf-8?q?caf=C3=A9?=\n =?iso-8859-1?q?_=E9?=\nFrom: =?utf-8?b?w4Q=?= <a@b.c>\nCc: Ü\nDate: today"
    )
    read = extract(f"{fields}\n\nsaid".encode(), ".eml")
    assert read.text == "Subject: café é\nFrom: Ä <a@b.c>\nCc: Ü\nDate: today\n\nsaid"


def test_every_attachment_is_read_as_a_file_of_its_own() -> None:
    named = [part("text/plain", f"text {n}", f"Content-Disposition: attachment; filename={n}.txt") for n in range(80)]
    read = extract(several(PLAIN, *named, attached("a.docx", bad_archives.docx("R&D"))), ".eml")
    assert (read.status, read.warnings) == ("read", ())
    assert [f"Attachment: {n}.txt\n\ntext {n}\n\n" in read.text for n in range(80)] == [True] * 80
    assert read.text.endswith("Attachment: a.docx\n\nR&D")


def test_an_attachment_that_can_not_be_read_is_told() -> None:
    read = extract(several(PLAIN, attached("a.docx", bad_archives.docx()[:300]), attached("b.bin", b"\0" * 99)), ".eml")
    assert (read.status, read.text) == ("partial", f"{SEEN}\n\nsaid")
    assert read.reason.startswith("attachment a.docx: damaged or not really DOCX: ")
    assert read.reason.endswith("; attachment b.bin: binary data of no known document format")


def test_an_attached_picture_is_mentioned() -> None:
    read = extract(several(PLAIN, attached("a.png", b"\x89PNG\r\n\x1a\n" + bytes(99), "image/png")), ".eml")
    assert (read.status, read.warnings) == ("read", ("attachment a.png: a picture; text in pictures is not read",))


def nested(depth: int, beside: str) -> bytes:
    """Write a mail whose text lies in a part of a part of a part, each of which has something beside it."""
    parts = "".join(f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n{beside.format(n)}" for n in range(depth))
    return f"{HEAD}{parts}\nsaid".encode()


def test_parts_of_a_single_part_may_lie_deep() -> None:
    assert extract(nested(300, ""), ".eml").text == f"{SEEN}\n\nsaid"


@pytest.mark.parametrize("depth", [60, 5000])
def test_parts_that_lie_too_deep_are_told(depth: int) -> None:
    read = extract(nested(depth, "\nbeside\n--b{0}\n"), ".eml")
    assert read.status in ("partial", "failed")
    assert "deep within each other" in read.reason
