"""What a model is to the loop: one method, and a few facts about what it can do."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from swarmbus.errors import ModelsSwitchedOff

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from swarmbus.messages import ModelRequest, StreamPart

OutputMode = Literal["native", "tool", "prompted"]

ANSWER_TOOL = "final_answer"
"""The name of the tool by which a model gives a typed answer, where it does so by a tool."""

RESULT_FIELD = "result"
"""The one field of the object that an answer is wrapped in, where its type is no object itself."""


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """What a model can do.

    Attributes:
        output: how a typed answer is asked for: the server enforces a JSON schema, the model calls a tool whose
            arguments are the answer, or the schema stands in the prompt.
        output_with_tools: the same where the model has tools as well.
        window: the context window in tokens, or None where it is not known.
    """

    output: OutputMode = "native"
    output_with_tools: OutputMode = "native"
    window: int | None = None


DEFAULT_PROFILE = ModelProfile()

MODEL_WANTED = 'a model (with `name` and `stream`), or the name of one such as "openai:gpt-5-mini"'
"""What messages say where something else was given as a model."""


class Model(Protocol):
    """Whatever answers requests.

    An implementation may also have a `profile: ModelProfile`; without one it counts as able to do everything. One that
    minds the request's `idle_timeout` itself, or hands the request on to one that does, says `minds_silence = True`;
    any other is given up when it is silent for so long.
    """

    @property
    def name(self) -> str:
        """The name, which stands for the model in records: equal names answer alike."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """Ask the model: yield what comes as it comes, and a `ModelReply` as the last part.

        Raises:
            ModelError: there is no complete answer; it says by its class why.
        """
        ...


def is_model(candidate: object) -> bool:
    """Whether this answers requests; a class does not, its instances may."""
    if isinstance(candidate, type) or not callable(getattr(candidate, "stream", None)):
        return False
    return isinstance(getattr(candidate, "name", None), str)


def profile_of(model: Model) -> ModelProfile:
    """Return what a model says it can do."""
    profile: ModelProfile = getattr(model, "profile", DEFAULT_PROFILE)
    return profile


def kept_open(model: Model) -> AbstractAsyncContextManager[Any]:
    """Return a context in which the model's calls share what it has to open, such as connections.

    A model that opens something offers `open()`, an async context manager that may be entered more than once.
    """
    opener = getattr(model, "open", None)
    return nullcontext() if opener is None else opener()


def require_models_allowed(name: str) -> None:
    """Refuse a real model call while the environment says that there must be none.

    Raises:
        ModelsSwitchedOff: SWARMBUS_NO_MODELS is set, and not to 0.
    """
    if os.environ.get("SWARMBUS_NO_MODELS", "0") not in {"", "0"}:
        raise ModelsSwitchedOff(f"{name} was called while SWARMBUS_NO_MODELS is set; use a ScriptedModel here")
