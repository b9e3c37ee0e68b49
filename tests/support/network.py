"""The guard that keeps tests on this machine: any connection or name look-up beyond loopback is refused and kept."""

from __future__ import annotations

import ipaddress
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_CONNECTING = {"socket.connect", "socket.sendto", "socket.sendmsg"}
_RESOLVING = {"socket.getaddrinfo", "socket.gethostbyname"}


class NetworkRefused(RuntimeError):
    """A test reached for a host other than this one."""


class NetworkGuard:
    """An audit hook that acts while a test runs. A hook can't be removed, so it is installed once per process.

    Attributes:
        refused: what the current test was refused, even if the code under test swallowed the error.
    """

    def __init__(self) -> None:
        self.refused: list[str] = []
        self._active = False
        sys.addaudithook(self._audit)

    @contextmanager
    def loopback_only(self) -> Iterator[None]:
        """Refuse everything but loopback inside this block."""
        self.refused.clear()
        self._active = True
        try:
            yield
        finally:
            self._active = False

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._active:
            return
        if event in _CONNECTING:
            address = arguments[1]
            host = address[0] if isinstance(address, tuple) else None  # a Unix socket's address is a path
        elif event in _RESOLVING:
            host = arguments[0]
        else:
            return
        if not _is_loopback(host):
            self.refused.append(f"{event} {host}")
            raise NetworkRefused(f"{event} to {host!r}: tests stay on loopback")


def _is_loopback(host: object) -> bool:
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if host in {None, "", "localhost"}:
        return True
    try:
        return ipaddress.ip_address(str(host)).is_loopback
    except ValueError:
        return False
