"""The body of a server's answer while it is read: decompressed, never more than an answer can be, cut into chunks."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any

import anyio

from swarmbus.errors import NotTheApi
from swarmbus.thinking.models.faults import fault_in_answer, not_the_api

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterator, Mapping

ENCODING = "gzip"
"""How a server may compress its answer; it is asked for nothing else."""

LARGEST_PIECE = 32 * 2**20
"""Bytes that one line of a stream may have, or the whole of an answer that does not stream."""

LARGEST_STREAM = 256 * 2**20
"""Bytes that a stream may have: some hundred for each of as many tokens as any model writes."""

_EVENT_STREAM = "text/event-stream"

_AT_ONCE = 65536
_ANY_HEADER = zlib.MAX_WBITS | 32


async def bounded(
    body: AsyncIterable[bytes], status: int, headers: Mapping[str, str], url: str
) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of a body, decompressed.

    Raises:
        NotTheApi: they are more than an answer has, or compressed as nobody asked for, or not as the server says.
    """
    answered = f"{url} answered {status} with"
    encoding = headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise NotTheApi(f"{answered} a body in the encoding {encoding!r}, which nobody asked for", status=status)
    unpacker = zlib.decompressobj(_ANY_HEADER) if encoding not in ("", "identity") else None
    most = LARGEST_STREAM if _EVENT_STREAM in headers.get("content-type", "") else LARGEST_PIECE
    total = line = 0
    async for raw in body:
        try:
            for piece in [raw] if unpacker is None else _unpacked(raw, unpacker):
                total += len(piece)
                end = piece.rfind(b"\n")
                line = line + len(piece) if end < 0 else len(piece) - end - 1
                if total > most or line > LARGEST_PIECE:
                    told = f"more than {(most if total > most else LARGEST_PIECE) // 2**20} MiB, which is no answer"
                    raise NotTheApi(f"{answered} {told}; check the base URL", status=status)
                yield piece
        except zlib.error as error:
            told = f"a body that is not in the encoding {encoding!r}, as it says: {error}"
            raise NotTheApi(f"{answered} {told}", status=status) from error


async def chunks_of(response: Any, url: str) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the chunks of an event stream, or the one object of an answer that does not stream.

    A line of a stream that only says that the server is at it, as a comment does, is an empty chunk.
    """
    kind = response.headers.get("content-type", "")
    if _EVENT_STREAM not in kind:
        text = (await response.read()).decode("utf-8", "replace")
        if text.lstrip().startswith(("data:", ":")):  # a stream under a wrong name
            for line in text.splitlines():
                yield _chunk(line, response, url)
        elif text.strip():
            yield _object(text, response, url)
        return
    lines = response.iter_lines()
    try:
        async for line in lines:
            if line.strip():
                yield _chunk(line, response, url)
    finally:
        await unwind(lines)


async def unwind(parts: AsyncIterator[Any]) -> None:
    """End the generators under a response that is not read to its end, innermost first.

    Closing the outermost one, which is all that can be closed, would leave the others to the garbage collector.
    """
    with anyio.CancelScope() as scope:
        scope.cancel()
        async for _ in parts:
            pass


def _unpacked(raw: bytes, unpacker: zlib._Decompress) -> Iterator[bytes]:
    """Yield what bytes are when they are decompressed, a little at a time: it may be a thousand times as much."""
    piece = unpacker.decompress(raw, _AT_ONCE)
    while piece:
        yield piece
        piece = unpacker.decompress(unpacker.unconsumed_tail, _AT_ONCE)


def _chunk(line: str, response: Any, url: str) -> dict[str, Any]:
    """Return what a line of an event stream carries; nothing where it carries no chunk."""
    field_name, _, value = line.partition(":")
    value = value.strip()
    if field_name != "data" or not value or value == "[DONE]":
        return {}
    return _object(value, response, url)


def _object(text: str, response: Any, url: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise not_the_api(response.status_code, response.headers, text, url)
    if data.get("error"):
        raise fault_in_answer(data["error"], url)
    return data
