"""The durable sequence of records: the port the bus writes to, and its form in memory."""

from __future__ import annotations

from typing import Protocol


class Journal(Protocol):
    """Keeps the records of runs as bytes, in their order."""

    async def append(self, run_id: str, record: bytes) -> None:
        """Keep a record; it is as durable as the journal makes it when this returns.

        Raises:
            OSError, RecordError: it can't be kept. That ends its run alone; any other error is a fault in the journal
                and ends the swarm.
        """
        ...

    async def read(self, run_id: str) -> list[bytes]:
        """Return all records of a run, in order; none where the run is unknown."""
        ...

    async def runs(self) -> list[str]:
        """Return the ids of the runs kept, oldest first."""
        ...


class MemoryJournal:
    """Keeps records in memory: for tests, and for handing a run to another process.

    Args:
        records: what was kept before, by run id.
    """

    def __init__(self, records: dict[str, list[bytes]] | None = None) -> None:
        self.records: dict[str, list[bytes]] = records if records is not None else {}

    async def append(self, run_id: str, record: bytes) -> None:
        """Keep a record."""
        self.records.setdefault(run_id, []).append(record)

    async def read(self, run_id: str) -> list[bytes]:
        """Return all records of a run, in order."""
        return list(self.records.get(run_id, ()))

    async def runs(self) -> list[str]:
        """Return the ids of the runs kept, oldest first."""
        return list(self.records)
