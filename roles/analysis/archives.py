"""Documents that are ZIP archives: whether the parts that hold their text are whole."""

from __future__ import annotations

import io
import lzma
import re
import zipfile
import zlib

ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    OSError,
    EOFError,
    ValueError,
    NotImplementedError,
    RuntimeError,
)
"""What `zipfile` raises of an archive that is damaged or protected by a password."""

_TEXT_PART = re.compile(
    r"word/(document\d*|(foot|end)notes|comments|(header|footer)\d*)\.xml|ppt/(presentation|(slides|notesSlides)/[^/]+)\.xml"
    r"|xl/(workbook|sharedStrings|worksheets/[^/]+)\.xml|content\.xml|.*\.(x?html|htm|opf)",
    re.IGNORECASE,
)
_CHUNK = 2**20
_MOST = 2**29


def is_hollow(data: bytes) -> bool:
    """Whether none of the parts is one that holds text."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return not any(_TEXT_PART.fullmatch(name) for name in archive.namelist())
    except ZIP_ERRORS:
        return False


def damaged_parts(data: bytes) -> tuple[str, ...]:
    """Return the names of the parts with text that can't be unpacked whole; of archives beyond half a GiB nothing."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = [part for part in archive.infolist() if _TEXT_PART.fullmatch(part.filename)]
            if sum(part.file_size for part in parts) > _MOST:
                return ()
            return tuple(part.filename for part in parts if not _is_whole(archive, part))
    except ZIP_ERRORS:
        return ()  # it may still be read: not every program needs the list of its parts


def _is_whole(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> bool:
    try:
        with archive.open(part) as member:
            while member.read(_CHUNK):
                pass
    except ZIP_ERRORS:
        return False
    return True
