"""Office Open XML files and books as what they are: archives of parts, most of them XML, related to each other.

Source: ECMA-376, part 2, Open Packaging Conventions. What the parts mean is left to the readers of the formats.
"""

from __future__ import annotations

import io
import posixpath
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import unquote
from xml.parsers import expat

from roles.analysis.archives import ZIP_ERRORS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_MOST = 2**29
_CHUNK = 2**20


@dataclass(frozen=True, slots=True)
class Relation:
    """How one part refers to another.

    Attributes:
        id: by which the first part's XML names the relation.
        type: the last word of the relation's type, which is the same in both variants of the format.
        part: the other part's name.
    """

    id: str
    type: str
    part: str


class Package:
    """The parts of a file.

    Args:
        data: the whole file.

    Raises:
        ValueError: it is no archive that can be opened.
    """

    def __init__(self, data: bytes) -> None:
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(data))
        except ZIP_ERRORS as error:
            raise ValueError(str(error)) from error

    @cached_property
    def _names(self) -> dict[str, str]:
        """The names of the parts as they stand in the archive, by what they are compared by."""
        return {name.casefold(): name for name in self._archive.namelist()}

    def main(self, expected: str) -> str:
        """Return the name of the part that the file begins with, or the expected one where it is not said."""
        with suppress(ValueError):
            for relation in self.related(""):
                if relation.type == "officeDocument":
                    return relation.part
        return expected

    def has(self, part: str) -> bool:
        """Whether there is a part of this name."""
        return part.casefold() in self._names

    def related(self, part: str) -> tuple[Relation, ...]:
        """Return how a part, or the package itself by the name "", refers to others inside the file.

        Raises:
            ValueError: the list of them is damaged.
        """
        folder, name = posixpath.split(part)
        listed = posixpath.join(folder, "_rels", f"{name}.rels")
        if not self.has(listed):
            return ()
        found: list[Relation] = []

        def start(tag: str, attributes: Mapping[str, str]) -> None:
            if tag == "Relationship" and attributes.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join("/", folder, unquote(attributes.get("Target", ""))))
                kind = attributes.get("Type", "").rpartition("/")[2]
                found.append(Relation(attributes.get("Id", ""), kind, target.lstrip("/")))

        self.parse(listed, start)
        return tuple(found)

    def parse(
        self,
        part: str,
        start: Callable[[str, Mapping[str, str]], None] | None = None,
        end: Callable[[str], None] | None = None,
        text: Callable[[str], None] | None = None,
    ) -> None:
        """Read a part's XML and call what is given for each element and text; names come without their namespaces.

        Raises:
            ValueError: the part is missing or damaged, from some place on; what stands before it has been passed on.
        """
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.EntityDeclHandler = _refuse
        local = _LocalNames()
        if start is not None:
            given = start
            parser.StartElementHandler = lambda tag, attributes: given(
                local[tag], {local[name]: value for name, value in attributes.items()}
            )
        if end is not None:
            ended = end
            parser.EndElementHandler = lambda tag: ended(local[tag])
        parser.CharacterDataHandler = text
        try:
            for chunk in self._chunks(part):
                parser.Parse(chunk)
            parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise ValueError(f"{part}: {error}") from error

    def read(self, part: str) -> bytes:
        """Return a part's content.

        Raises:
            ValueError: the part is missing or damaged.
        """
        return b"".join(self._chunks(part))

    def _chunks(self, part: str) -> Iterator[bytes]:
        name = self._names.get(part.casefold())
        if name is None:
            raise ValueError(f"{part} is missing")
        if self._archive.getinfo(name).file_size > _MOST:
            raise ValueError(f"{part} is larger than {_MOST // 2**20} MiB")
        try:
            with self._archive.open(name) as member:
                while chunk := member.read(_CHUNK):
                    yield chunk
        except ZIP_ERRORS as error:
            raise ValueError(f"{part}: {error}") from error


class _LocalNames(dict[str, str]):
    """Names without their namespaces, each made once: there are few names and millions of elements."""

    def __missing__(self, name: str) -> str:
        local = self[name] = name.rpartition(" ")[2]
        return local


def _refuse(*_: object) -> None:
    """Entities of its own can grow beyond all bounds, and no program writes any into such a file."""
    raise ValueError("it declares entities of its own, which are not read")
