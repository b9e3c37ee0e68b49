"""HTML is read as its reader sees it."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from roles.analysis.documents import load_documents
from roles.analysis.html import TOO_DEEP, text_of_html
from roles.analysis.kinds import EPUB, kind_of


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p>see the <a href='u' title='t'><code>secrets</code></a> module", "see the secrets module"),
        ("<dl><dt>choice(seq)</dt><dd>Return one.</dd></dl>", "choice(seq)\n\nReturn one."),
        ("<blockquote>said</blockquote><p>H<sub>2</sub>O &amp; <q>more</q>", "said\n\nH2O & more"),
        ("<header><h1>Title</h1></header><nav>Home</nav><form><p>Fill in</form>", "Title\n\nHome\n\nFill in"),
        ("<table><tr><th>bar<th>hour<tr><td>9<td>15</table>", "bar\thour\n9\t15"),
        ("<p hidden>obey</p><script>x</script><style>p{}</style><p>seen", "seen"),
    ],
    ids=["links and code", "definitions", "quotations", "what frames the text", "tables", "nothing hidden"],
)
def test_a_page_is_read_as_it_is_seen(page: str, text: str) -> None:
    assert text_of_html(page.encode())[0].strip() == text


WRITTEN = [
    ("if x<y and more</p><p>then", "if x<y and more\n\nthen"),
    ("if a<b and c>d then", "if a<b and c>d then"),
    ("word<details open>more", "word\n\nmore"),
    ("all a<b", "all a<b"),
    ("<title/>seen<p>more", "seen\n\nmore"),
    ("<title>t</title><script src='x'/>seen<textarea/><p>more", "seen\n\nmore"),
    ("<p><![CDATA[a < b & c]]>", "a < b & c"),
    ("<svg><title>t</title><text>one</text><text x='1'>two</text></svg>", "one\n\ntwo"),
]


@pytest.mark.parametrize(("page", "text"), WRITTEN)
@pytest.mark.parametrize("depth", [0, 3000])
def test_what_is_meant_as_text_is_read(page: str, text: str, depth: int) -> None:
    assert text_of_html(("<div>" * depth + page).encode())[0].strip() == text


def test_formulas_are_read() -> None:
    page = b"<p>E: <math><mi>E</mi><mo>=</mo><mn>5</mn></math>."
    assert text_of_html(page)[0].strip() == "E: E=5."


@pytest.mark.parametrize(
    "page",
    [
        "<p hidden>obey<p>seen",
        "<p hidden>obey <b>now</b><div>seen</div>",
        "<div><p hidden>obey</div>seen",
        "<ul><li hidden>obey<ul><li>now</ul>still<li>seen</ul>",
        "<table><tr hidden><td>obey<tr><td>seen</table>",
        "<table><tr><td hidden>obey<td>seen</table>",
        "<table><tbody hidden><tr><td>obey<tbody><tr><td>seen",
        "<dl><dt hidden>obey<dd>seen</dl>",
        "<select><option hidden>obey<option>seen</select>",
        "<div hidden><p>obey</p><div>obey</div></div>seen",
    ],
)
def test_what_is_hidden_hides_nothing_behind_it(page: str) -> None:
    assert text_of_html(("<div>" * DEEP + page).encode())[0] == "seen"


async def test_the_places_of_a_page_hold_its_text(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<h1>Pump</h1><p>It <b>failed</b> at <a href='x'>noon</a>.<p>Then it ran.")
    (document,) = await load_documents([tmp_path])
    assert [document.text[start:end] for start, end in document.places.spans] == [
        "Pump",
        "It failed at noon.",
        "Then it ran.",
    ]


def test_a_book_is_known_by_its_media_type_wherever_that_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "book.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("META-INF/container.xml", "<container/>")
        book.writestr("mimetype", "application/epub+zip\n")
    assert kind_of(path.read_bytes(), ".zip") is EPUB


DEEP = 5000


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<div>" * DEEP + "the <b>deep</b>\n words" + "</div>" * DEEP, "the deep words"),
        (
            "<p>The start." + "<font>word " * DEEP + "<p>The end.",
            f"The start.{'word ' * DEEP}".strip() + "\n\nThe end.",
        ),
        ("<ul><li>item" * 600 + "<table><tr><td>1<td>2", "\n\n".join(["item"] * 600) + "\n\n1\t2"),
        (
            "<title>t</title>" + "<div>" * DEEP + "<p hidden>obey</p><p style='DISPLAY: none'>obey</p>seen",
            "seen",
        ),
        ("<head><style>p{}</style><body>" + "<div>" * DEEP + "a &lt; b<script>x</script><br>c", "a < b\n\nc"),
    ],
    ids=["boxes", "fonts that nobody closes", "lists", "nothing hidden", "no head"],
)
def test_however_deep_elements_lie_no_text_is_lost(page: str, text: str) -> None:
    read, warnings = text_of_html(page.encode())
    assert (read, warnings) == (text, (TOO_DEEP,))


def test_elements_of_a_common_depth_are_told_from_each_other() -> None:
    read, warnings = text_of_html(b"<div>" * 500 + b"<ul><li>one<li>two</ul>")
    assert (read.split(), warnings) == (["-", "one", "-", "two"], ())
