"""A role's agent within one attempt at a delivery: the role's settings, and one conversation for all it is asked."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any

from pydantic_core import to_jsonable_python

from swarmbus.codes import finding
from swarmbus.errors import ToolDefinitionError
from swarmbus.text import clean_text
from swarmbus.thinking.agent import Agent
from swarmbus.thinking.conversation import Conversation
from swarmbus.thinking.tools import Tool, toolset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from swarmbus.messages import Message, ToolCall
    from swarmbus.results import Finding
    from swarmbus.role import Role
    from swarmbus.role_context import RoleContext
    from swarmbus.thinking.models.base import Model


def tools_of(role: Role) -> tuple[Any, ...]:
    """Return a role's tools, its own methods bound to it."""
    return tuple(tool.bind(role) if isinstance(tool, Tool) else tool for tool in role.tools)


def tool_findings(roles: Iterable[Role]) -> Iterator[Finding]:
    """Yield what keeps the tools of roles from being given to a model."""
    for role in roles:
        sound: list[Any] = []
        for tool in tools_of(role):
            try:
                toolset([*sound, tool])
                sound.append(tool)
            except ToolDefinitionError as error:
                told = f"{role.name} has a tool that no model can call: {error}"
                hint = "write it as a function whose parameters each have a type that JSON can hold"
                yield finding("SB403", told, hint, role=role.name, where=_place(tool))


def _place(tool: Any) -> str | None:
    code = getattr(inspect.unwrap(tool.function if isinstance(tool, Tool) else tool), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else None


class RoleAgent:
    """Answers what a role's handler asks.

    Args:
        role: whose settings count.
        model: returns the role's model.
        context: what instructions that are a function are given.
        history: what the role remembers from before.
        settings: what else its agent is made with, such as tools, limits and dependencies.
    """

    def __init__(
        self,
        role: Role,
        model: Callable[[], str | Model],
        context: RoleContext[Any, Any] | None,
        history: Sequence[Message],
        **settings: Any,
    ) -> None:
        self.conversation = Conversation(history)
        self._role = role
        self._model = model
        self._context = context
        self._settings = settings
        self._agent: Agent | None = None

    @property
    def agent(self) -> Agent:
        """The agent with nothing but the role's settings."""
        if self._agent is None:
            self._agent = self._made({})
        return self._agent

    async def ask(self, prompt: str, output: Any, options: dict[str, Any]) -> Any:
        """Return the answer to a question; one with a history of its own stands apart from the conversation."""
        history = options.pop("history", None)
        agent = self._made(options) if options else self.agent
        return (await agent.run(prompt, output, history=history)).output

    def _made(self, options: dict[str, Any]) -> Agent:
        instructions = options.get("instructions", self._role.instructions)
        if callable(instructions):
            instructions = instructions(self._context)
        settings = {**self._settings, **options, "instructions": instructions or ""}
        settings["model"] = options.get("model") or self._model()
        settings["limits"] = options.get("limits") or self._settings["limits"]
        settings["approve"] = options.get("approve") or self._ask_person
        return Agent(**settings, role=self._role.name, conversation=self.conversation)

    async def _ask_person(self, call: ToolCall, arguments: dict[str, Any]) -> bool:
        """Have a person decide over a call, as a handler asks one."""
        assert self._context is not None
        plain = to_jsonable_python(arguments, fallback=repr, bytes_mode="base64")
        given = clean_text(json.dumps(plain, ensure_ascii=False))[0]
        question = f"May {self._role.name} run the tool {call.name} with {given}?"
        return await self._context.ask_person(question, reply=bool)
