"""What can still come of a handler or an event, walked anew from the program each time it is asked."""

from __future__ import annotations

from ledger_model.program import CLIENT, RESULT, Handler, Program
from ledger_model.tree import Column


class Reach:
    """The columns that handlers and events reach; `handlers` holds those of every handler."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.handlers = [self._walk([number]) for number in range(len(program.handlers))]

    def of_event(self, publisher: str, name: str) -> frozenset[Column]:
        """The columns that publishing an event reaches."""
        return frozenset(self._direct(publisher, name)) | self._walk(self._through(publisher, name))

    def client_leads_to_result(self) -> bool:
        """Whether something that the client may still send leads to the result, through contributions as well."""
        program = self.program
        todo = [(CLIENT, name) for name in program.sends]
        seen = set()
        while todo:
            publisher, name = todo.pop()
            if program.ends(publisher, name):
                return True
            if (publisher, name) not in seen:
                seen.add((publisher, name))
                for number in (*self._through(publisher, name), *program.fed(publisher, name)):
                    handler = program.handlers[number]
                    todo += [(handler.role, published) for published in self._published(handler)]
        return False

    def _walk(self, handlers: list[int]) -> frozenset[Column]:
        """The columns that handlers reach, passing through every handler on the way but through no contribution."""
        columns: set[Column] = set()
        seen: set[int] = set()
        todo = list(handlers)
        while todo:
            number = todo.pop()
            if number not in seen:
                seen.add(number)
                handler = self.program.handlers[number]
                for name in self._published(handler):
                    columns |= self._direct(handler.role, name)
                    todo += self._through(handler.role, name)
        return frozenset(columns)

    def _direct(self, publisher: str, name: str) -> set[Column]:
        result: set[Column] = {RESULT} if self.program.ends(publisher, name) else set()
        return result | set(self.program.fed(publisher, name))

    def _through(self, publisher: str, name: str) -> list[int]:
        groups = self.program.candidates(publisher, name)
        return [number for group in groups for number in group] + self.program.opened(publisher, name)

    def _published(self, handler: Handler) -> list[str]:
        program = self.program
        return [name for name in program.parents if any(program.is_a(name, one) for one in handler.publishes)]
