"""Makes PDFs that hurt, object by object: in circles, too deep, too many, too large."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from textwrap import wrap

PAGE = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>"
FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
CATALOG = b"<</Type/Catalog/Pages 2 0 R>>"
PAGES = b"<</Type/Pages/Kids[3 0 R]/Count 1>>"
TEXT = b"The pump of the northern basin was replaced on 4 May after the bearing had failed."


def whole(*objects: bytes, table: bool = True) -> bytes:
    """Return a file of these objects, numbered from 1, the first of them its catalogue."""
    parts = [b"%PDF-1.7\n"]
    places: list[int] = []
    for number, content in enumerate(objects, start=1):
        places.append(sum(map(len, parts)))
        parts.append(b"%d 0 obj\n%s\nendobj\n" % (number, content))
    start = sum(map(len, parts))
    if table:
        parts.append(b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1))
        parts += [b"%010d 00000 n \n" % place for place in places]
    parts.append(b"trailer\n<</Root 1 0 R/Size %d>>\nstartxref\n%d\n%%%%EOF\n" % (len(places) + 1, start))
    return b"".join(parts)


def shown(text: bytes = TEXT) -> bytes:
    """Return what shows a text on a page."""
    return stream(b"BT /F 12 Tf 50 700 Td (%s) Tj ET" % text)


def stream(content: bytes, extra: bytes = b"") -> bytes:
    return b"<</Length %d%s>>\nstream\n%s\nendstream" % (len(content), extra, content)


def ordinary(*, table: bool = True) -> bytes:
    return whole(CATALOG, PAGES, PAGE, shown(), FONT, table=table)


def pages(*texts: str) -> bytes:
    """Return a file with a page for each text, of lines as long as a page is wide."""
    objects = [CATALOG, b"", FONT]
    for text in texts:
        lines = b"".join(b"(%s) '\n" % line.encode("ascii") for line in wrap(text, 90))
        page = PAGE.replace(b"5 0 R", b"3 0 R").replace(b"4 0 R", b"%d 0 R" % (len(objects) + 2))
        objects += [page, stream(b"BT /F 10 Tf 12 TL 40 780 Td\n%s ET" % lines)]
    kids = b" ".join(b"%d 0 R" % number for number in range(4, len(objects) + 1, 2))
    objects[1] = b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, len(texts))
    return whole(*objects)


def without_text() -> bytes:
    return whole(CATALOG, PAGES, PAGE, stream(b"10 10 100 100 re f"), FONT)


def circle() -> bytes:
    return whole(CATALOG, b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2>>", PAGE, shown(), FONT)


def many_pages() -> bytes:
    return whole(CATALOG, b"<</Type/Pages/Kids[3 0 R]/Count 2000000000>>", PAGE, shown(), FONT)


def one_page_many_times() -> bytes:
    kids = b"3 0 R " * 500_000
    return whole(CATALOG, b"<</Type/Pages/Kids[%s]/Count 500000>>" % kids, PAGE, shown(), FONT)


def deep() -> bytes:
    return whole(CATALOG, PAGES, PAGE, b"[" * 200_000 + b"]" * 200_000, FONT)


def bomb(size: int) -> bytes:
    """Return a page whose content is so many bytes once it is unpacked."""
    packed = zlib.compress(b"BT /F 12 Tf 50 700 Td " + b"(ab) Tj " * (size // 8) + b" ET", 1)
    return whole(CATALOG, PAGES, PAGE, stream(packed, b"/Filter/FlateDecode"), FONT)


def bomb_in_bomb(size: int) -> bytes:
    packed = zlib.compress(zlib.compress(bytes(size), 1), 9)
    return whole(CATALOG, PAGES, PAGE, stream(packed, b"/Filter[/FlateDecode/FlateDecode]"), FONT)


def form_in_itself() -> bytes:
    page = PAGE.replace(b"/Font", b"/XObject<</X 6 0 R>>/Font")
    form = stream(b"/X Do /X Do", b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 6 0 R>>>>")
    return whole(CATALOG, PAGES, page, stream(b"/X Do"), FONT, form)


def acting() -> bytes:
    catalog = CATALOG.replace(b">>", b"/OpenAction<</S/JavaScript/JS(while\\(1\\){})>>>>")
    return whole(catalog, PAGES, PAGE, shown(), FONT)


def overwritten(data: bytes, share: Sequence[float] = (0.3, 0.7)) -> bytes:
    """Return a file whose middle is zeros."""
    first, last = (int(len(data) * part) for part in share)
    return data[:first] + bytes(last - first) + data[last:]
