"""Of a Word document everything is read that its reader can see, and what is not is told."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING

import pytest
from docx import Document

from roles.analysis.extract import extract

if TYPE_CHECKING:
    from collections.abc import Mapping

SPACES = " ".join(
    f'xmlns:{prefix}="{space}"'
    for prefix, space in {
        "w": "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
        "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
        "m": "http://schemas.openxmlformats.org/officeDocument/2006/math",
        "v": "urn:schemas-microsoft-com:vml",
    }.items()
)
DELETED = "<w:del><w:r><w:delText>old</w:delText></w:r></w:del>"
RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def docx(body: str, parts: Mapping[str, str] | None = None, *, document: str | bytes = "") -> bytes:
    """Write a document; each other part is named by its relation's type and holds paragraphs."""
    others = parts or {}
    relations = "".join(f'<Relationship Id="{kind}" Type="{RELATION}/{kind}" Target="{kind}.xml"/>' for kind in others)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("word/document.xml", document or f"<w:document {SPACES}><w:body>{body}</w:body></w:document>")
        archive.writestr("word/_rels/document.xml.rels", f"<Relationships>{relations}</Relationships>")
        for kind, content in others.items():
            archive.writestr(f"word/{kind}.xml", f"<w:part {SPACES}>{content}</w:part>")
    return file.getvalue()


def said(text: str) -> str:
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def run(text: str) -> str:
    return f"<w:r><w:t>{text}</w:t></w:r>"


def box(text: str) -> str:
    return f"<w:txbxContent>{said(text)}</w:txbxContent>"


def choice(*, first: str, second: str = "") -> str:
    fallback = f"<mc:Fallback><w:pict>{second}</w:pict></mc:Fallback>" if second else ""
    inside = f'<mc:Choice Requires="wps"><w:drawing>{first}</w:drawing></mc:Choice>{fallback}'
    return f"<w:p><w:r><mc:AlternateContent>{inside}</mc:AlternateContent></w:r></w:p>"


def cells(*texts: str) -> str:
    return f"<w:tr>{''.join(f'<w:tc>{text}</w:tc>' for text in texts)}</w:tr>"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (said("R&amp;D: 2 &lt; 5 &gt; 1, caf&#233; &#x41;&quot;"), 'R&D: 2 < 5 > 1, café A"'),
        (said("<![CDATA[a < b & c]]>"), "a < b & c"),
        ("<w:p><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t><w:noBreakHyphen/><w:t>d</w:t></w:r></w:p>",
         "a\tb\nc-d"),
        ("<w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr></w:p>" + said("text"), "text"),
        (f"<w:p><w:ins>{run('new')}</w:ins>{DELETED}<w:moveFrom>{run('gone')}</w:moveFrom></w:p>", "new"),
        (choice(first=box("box")), "box"),
        (choice(first=box("box"), second=box("box")), "box"),
        (choice(first="<w:picture/>", second=box("box")), "box"),
        (f"<w:p>{run('before ')}<w:r><w:pict><v:textbox>{box('inside')}</v:textbox></w:pict></w:r>{run('after')}</w:p>",
         "inside\n\nbefore after"),
        ("<w:p><m:oMath><m:r><m:t>E=mc2</m:t></m:r></m:oMath></w:p>", "E=mc2"),
        (f"<w:tbl>{cells(said('a'), said('b'))}{cells(said('c') + said('d'), '<w:p/>', said('e'))}</w:tbl>",
         "a\tb\nc d\t\te"),
        (f"<w:tbl>{cells(said('one') + said('two'))}</w:tbl>", "one\n\ntwo"),
        (f"<w:sdt>{said('held')}</w:sdt><w:p/><w:tc>{said('loose')}</w:tc>", "held\n\nloose"),
    ],
    ids=["entities", "CDATA", "signs", "tab stops", "changes", "a box", "a box in two forms", "a box in the older form",
         "a shape", "a formula", "a table", "a frame", "an input"],
)  # fmt: skip
def test_what_is_seen_is_read(body: str, text: str) -> None:
    read = extract(docx(body), ".docx")
    assert (read.status, read.reason, read.text) == ("read", "", text)


@pytest.mark.parametrize("how", ["another prefix", "the strict variant", "UTF-16"])
def test_the_form_of_the_xml_does_not_matter(how: str) -> None:
    plain = f"<w:document {SPACES}><w:body>{said('text')}</w:body></w:document>"
    documents: dict[str, str | bytes] = {
        "another prefix": plain.replace("w:", "x:").replace("xmlns:w", "xmlns:x"),
        "the strict variant": '<document xmlns="http://purl.oclc.org/ooxml/wordprocessingml/main"><p><r><t>text</t></r></p>'
        "</document>",
        "UTF-16": f'<?xml version="1.0" encoding="UTF-16"?>{plain}'.encode("utf-16"),
    }
    assert extract(docx("", document=documents[how]), ".docx").text == "text"


def test_texts_beside_the_documents_own_follow_it() -> None:
    body = '<w:p><w:r><w:t>said</w:t><w:footnoteReference w:id="2"/></w:r></w:p>'
    parts = {
        "comments": f'<w:comment w:author="Ann">{said("why?")}</w:comment>',
        "footnotes": f'<w:footnote w:id="0"><w:p/></w:footnote><w:footnote w:id="2">{said("by whom")}</w:footnote>',
        "header": said("draft"),
        "footer": said("draft"),
    }
    read = extract(docx(body, parts), ".docx")
    assert (read.status, read.text.split("\n\n")) == (
        "read", ["said[^2]", "draft", "[^2]: by whom", "Comment by Ann: why?"],
    )  # fmt: skip


def test_what_is_not_read_is_told() -> None:
    read = extract(docx(said("text"), {"chart": "", "package": "", "image": ""}), ".docx")
    assert (read.status, read.reason, read.text) == (
        "partial",
        "not read: charts (1); not read: files in it (1)",
        "text",
    )


def test_what_stands_before_a_damage_is_read() -> None:
    cut = f"<w:document {SPACES}><w:body>{said('whole')}<w:tbl><w:tr><w:tc><w:p><w:r><w:t>half of a sen"
    read = extract(docx("", document=cut), ".docx")
    assert (read.status, read.text) == ("partial", "whole\n\nhalf of a sen")
    assert "word/document.xml" in read.reason


def test_damage_beside_the_text_is_told() -> None:
    read = extract(docx(said("text"), {"header": "</w:p>"}), ".docx")
    assert (read.status, read.text) == ("partial", "text")
    assert "word/header.xml" in read.reason


def test_entities_of_its_own_are_refused() -> None:
    document = f'<!DOCTYPE x [<!ENTITY a "ha">]><w:document {SPACES}>{said("&a;")}</w:document>'
    read = extract(docx("", document=document), ".docx")
    assert (read.status, "declares entities of its own" in read.reason) == ("failed", True)


def test_depth_does_not_matter() -> None:
    depth = 50_000
    read = extract(docx("<w:sdt>" * depth + said("deep") + "</w:sdt>" * depth), ".docx")
    assert read.text == "deep"


def test_a_document_as_it_is_commonly_written_is_read() -> None:
    document = Document()
    document.add_heading("R&D", 1)
    document.sections[0].header.paragraphs[0].text = "Secret"
    document.add_table(1, 2).rows[0].cells[1].text = "< 5"
    file = io.BytesIO()
    document.save(file)
    assert extract(file.getvalue(), ".docx").text == "R&D\n\n\t< 5\n\nSecret"
