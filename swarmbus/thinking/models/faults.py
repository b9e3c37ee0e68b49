"""What a model server's failure means: from status, headers and body to one of the model errors."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from swarmbus.errors import (
    AnswerFiltered,
    ContextOverflow,
    ModelError,
    NotAuthorised,
    NotTheApi,
    RateLimited,
    RequestRefused,
    ServerFault,
)

EXCERPT = 200
_OVERFLOW = re.compile(
    r"context[_ ]length|maximum context|context window|context size|prompt is too long|too many (input )?tokens",
    re.IGNORECASE,
)
_FILTER = re.compile(r"content[_ ]filter|content management policy", re.IGNORECASE)
_QUOTA = re.compile(r"insufficient_quota|quota exceeded|billing", re.IGNORECASE)
_TRANSIENT = frozenset({408, 409, 425})


def fault_from_status(status: int, headers: Mapping[str, str], body: str, url: str) -> ModelError:
    """Return the error for an answer with a status of 400 or more."""
    message = f"{url} answered {status}: {_message(body)}"
    if status == 429:
        exhausted = _QUOTA.search(body) is not None
        return RateLimited(message, status=status, retry_after=retry_after(headers), exhausted=exhausted)
    if status in {401, 403}:
        return NotAuthorised(f"{message}; check the key", status=status)
    if status >= 500 or status in _TRANSIENT:
        return ServerFault(message, status=status, retry_after=retry_after(headers))
    if not _is_json(body) and "html" in headers.get("content-type", ""):
        return not_the_api(status, headers, body, url)
    return _fault_of_request(status, body, message)


def fault_in_answer(error: Any, url: str) -> ModelError:
    """Return the error that an answer with status 200 reports in its body."""
    text = json.dumps(error, ensure_ascii=False)
    code = error.get("code") if isinstance(error, Mapping) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else 500
    return fault_from_status(status, {}, json.dumps({"error": error}) if isinstance(error, Mapping) else text, url)


def not_the_api(status: int, headers: Mapping[str, str], text: str, url: str) -> NotTheApi:
    """Return the error for an answer that is not the API's, with all that helps to find out why."""
    kind = headers.get("content-type", "no content type")
    return NotTheApi(
        f"{url} answered {status} with something that is not the API ({kind}): {text[:EXCERPT]!r}; "
        "check the base URL, which usually ends in /v1",
        status=status,
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait, by RFC 9110 (seconds or a date) or in milliseconds."""
    milliseconds = headers.get("retry-after-ms")
    value = headers.get("retry-after")
    try:
        if milliseconds is not None:
            return max(float(milliseconds) / 1000, 0.0)
        if value is not None:
            return max(float(value), 0.0)
    except ValueError:
        pass
    if value is None:
        return None
    try:
        return max((parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds(), 0.0)
    except (TypeError, ValueError):
        return None


def _fault_of_request(status: int, body: str, message: str) -> ModelError:
    if _FILTER.search(body):
        return AnswerFiltered(message, status=status)
    if status == 413 or _OVERFLOW.search(body):
        return ContextOverflow(message, status=status)
    return RequestRefused(message, status=status)


def _is_json(body: str) -> bool:
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return False
    return True


def _message(body: str) -> str:
    """Return the words of an error body, in whichever of the usual places they stand."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return body[:EXCERPT] or "(no body)"
    found = data.get("error", data) if isinstance(data, dict) else data
    if isinstance(found, dict):
        found = found.get("message") or found.get("detail") or found
    return str(found)[: 2 * EXCERPT]
