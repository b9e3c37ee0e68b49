"""Reads mails: who wrote what to whom, in text or HTML, and what was attached.

Source: RFC 5322 and RFC 2045 to 2047, as the standard library's parser knows them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from typing import TYPE_CHECKING

from roles.analysis.content import Content
from roles.analysis.decoding import decode
from roles.analysis.html import text_of_html

if TYPE_CHECKING:
    from collections.abc import Callable

    from roles.analysis.extract import Extract

    Reader = Callable[[bytes, str], Extract]

_FIELDS = ("Subject", "From", "To", "Cc", "Date")
_UNSEEN = re.compile(
    r"text/(?:css|javascript)|application/(?:javascript|(?:x-)?pkcs7-signature|pgp-signature)|(?:image|audio|video|font)/.*"
)
"""The media types of what belongs to the look of a mail, or signs it, unless it is called an attachment."""
_QUOTED_BLANK = re.compile(r"^[> \t]*>[> \t]*$", re.MULTILINE)
"""A blank line of a mail that is quoted in another one, where paragraphs end as they do at any blank line."""
_BASE64 = re.compile(rb"[A-Za-z0-9+/=]*")
_ENDINGS = {"text/plain": ".txt", "text/html": ".html", "message/rfc822": ".eml", "application/pdf": ".pdf"}
_DEPTH = 50
_NAMED = 5


def read_mail(data: bytes, read: Reader) -> Content:
    """Read a mail with everything attached to it.

    Args:
        data: the whole mail.
        read: reads the bytes of an attachment, given the ending of its name.

    Raises:
        ValueError: its parts lie too deep within each other.
    """
    walk = _Walk(read)
    try:
        text = walk.mail(message_from_bytes(data.lstrip()), 0)
    except RecursionError:
        raise ValueError("its parts lie too deep within each other") from None
    more = [f"and {len(walk.lost) - _NAMED} more"] if len(walk.lost) > _NAMED else []
    return Content("\n\n".join(text), lost="; ".join(walk.lost[:_NAMED] + more), warnings=tuple(walk.warnings))


@dataclass
class _Walk:
    """Goes through the parts of a mail; each method returns blocks of text."""

    read: Reader
    lost: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def mail(self, message: Message, depth: int) -> list[str]:
        fields = [f"{name}: {value}" for name in _FIELDS if (value := _field(message, name))]
        return ["\n".join(fields)] * bool(fields) + self.part(message, depth)

    def part(self, part: Message, depth: int) -> list[str]:
        if depth > _DEPTH:
            self.lost.append(f"parts that lie more than {_DEPTH} deep within each other")
            return []
        within = _parts_of(part)
        while len(within) == 1 and part.get_content_maintype() == "multipart" and not part.epilogue:
            part, within = within[0], _parts_of(within[0])
        kind = part.get_content_type()
        if not part.is_multipart():
            return self._leaf(part, kind)
        if kind == "message/rfc822":
            return ["Attachment: mail", *(block for mail in within for block in self.mail(mail, depth + 1))]
        parts = [(each.get_content_type(), self.part(each, depth + 1)) for each in within]
        if kind == "multipart/alternative":
            parts = _alternatives(parts)
        after = (part.epilogue or "").strip()  # there, with a file of many mails, is the next one
        return [block for _, blocks in parts for block in blocks] + [after] * bool(after)

    def _leaf(self, part: Message, kind: str) -> list[str]:
        name = _decoded(part.get_filename() or "")
        attached = bool(name) or part.get_content_disposition() == "attachment"
        data = _bytes_of(part)
        if not attached and _UNSEEN.fullmatch(kind):
            return []
        if not attached and (kind.startswith(("text/", "multipart/")) or kind == "message/rfc822"):
            text = self._text(data, kind, part.get_content_charset())
            return [text] if text else []
        return self._attachment(name or f"without a name ({kind})", data, _ending(name, kind))

    def _text(self, data: bytes, kind: str, encoding: str | None) -> str:
        if kind == "text/html":
            try:
                text, warnings = text_of_html(data, encoding)
            except ValueError as error:
                self.lost.append(f"what is written in HTML: {error}")
                return ""
        else:
            decoded = decode(data, encoding)
            text, warnings = _QUOTED_BLANK.sub("", decoded.text.replace("\r\n", "\n")), decoded.warnings
        self.warnings += warnings
        return text.strip()

    def _attachment(self, name: str, data: bytes, ending: str) -> list[str]:
        read = self.read(data, ending)
        self.warnings += [f"attachment {name}: {warning}" for warning in read.warnings]
        if read.status in ("no_text", "empty"):
            self.warnings.append(f"attachment {name}: {read.reason}")
        elif read.status != "read":
            self.lost.append(f"attachment {name}: {read.reason}")
        return [f"Attachment: {name}", read.text.strip()] if read.text.strip() else []


def _parts_of(part: Message) -> list[Message]:
    within = part.get_payload()
    return [each for each in within if isinstance(each, Message)] if isinstance(within, list) else []


def _alternatives(parts: list[tuple[str, list[str]]]) -> list[tuple[str, list[str]]]:
    """Of the forms in which a mail says the same, return the one with the most words, and what is no form of it."""
    forms = [blocks for kind, blocks in parts if kind in ("text/plain", "text/html") or kind.startswith("multipart/")]
    best = max(forms, key=lambda blocks: len(" ".join(blocks).split()), default=[])
    return [(kind, blocks) for kind, blocks in parts if blocks is best or not any(blocks is form for form in forms)]


def _bytes_of(part: Message) -> bytes:
    data = part.get_payload(decode=True)
    if part.get("Content-Transfer-Encoding", "").strip().lower() == "base64":
        kept = str(part.get_payload()).encode("utf-8", "surrogateescape")
        if not all(_BASE64.fullmatch(line.strip()) for line in kept.splitlines()):  # a text, not encoded after all
            return kept
    assert isinstance(data, bytes)
    return data


def _ending(name: str, kind: str) -> str:
    _, point, ending = name.rpartition(".")
    return f".{ending.lower()}" if point else _ENDINGS.get(kind, "")


def _field(message: Message, name: str) -> str:
    found = (value for field_, value in message.raw_items() if field_.lower() == name.lower())
    return _decoded(next(found, ""))


def _decoded(value: str) -> str:
    """Return the text of a field: with its encoded words, its bytes and its line ends as what they stand for."""
    text = decode(value.encode("utf-8", "surrogateescape")).text
    try:
        words = decode_header(text)
    except HeaderParseError:
        words = [(text, None)]
    read = (word if isinstance(word, str) else decode(word, encoding).text for word, encoding in words)
    return " ".join("".join(read).split())
