"""Several models in order of preference: where one fails for good, the next is asked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from swarmbus.arguments import refusal
from swarmbus.errors import AnswerFiltered, ModelError, ModelsSwitchedOff
from swarmbus.messages import Restarted
from swarmbus.text import text_of
from swarmbus.thinking.models.base import ModelProfile, is_model, kept_open, profile_of
from swarmbus.thinking.models.streaming import streamed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarmbus.messages import ModelRequest, StreamPart
    from swarmbus.thinking.models.base import Model

_FINAL = (AnswerFiltered, ModelsSwitchedOff)
"""What another model is not asked about: a refusal of the content is no failure."""


class FallbackModel:
    """Asks the first model, and the next one whenever one fails or falls silent."""

    minds_silence = True

    def __init__(self, models: Sequence[Model]) -> None:
        if not isinstance(models, (list, tuple)):
            raise refusal("FallbackModel({})", models, "a list of models")
        if not models:
            raise ValueError("a fallback needs at least one model")
        for model in models:
            if not is_model(model):
                wanted = 'models; of names, resolve_model("openai:a | openai:b") makes them'
                raise refusal("FallbackModel([{}])", model, wanted)
        self._models = tuple(models)
        self.profile = _common(self._models)

    @property
    def name(self) -> str:
        """The names of all models, in order."""
        return " | ".join(model.name for model in self._models)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Keep open what each of the models has to open."""
        async with AsyncExitStack() as stack:
            for model in self._models:
                await stack.enter_async_context(kept_open(model))
            yield

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """Yield the parts of the first model that answers.

        Raises:
            ModelError: the last model's error, where none answers.
        """
        for tries, model in enumerate(self._models[:-1], start=2):
            try:
                async with streamed(model, request) as parts:
                    async for part in parts:
                        yield part
            except _FINAL:
                raise
            except ModelError as error:
                yield Restarted(f"{model.name} failed: {text_of(error)}", 0.0, tries)
            else:
                return
        async with streamed(self._models[-1], request) as parts:
            async for part in parts:
                yield part


def _common(models: Sequence[Model]) -> ModelProfile:
    """Return what all models can do."""
    profiles = [profile_of(model) for model in models]
    order = ("prompted", "tool", "native")
    windows = [profile.window for profile in profiles if profile.window is not None]
    return ModelProfile(
        output=min((profile.output for profile in profiles), key=order.index),
        output_with_tools=min((profile.output_with_tools for profile in profiles), key=order.index),
        window=min(windows, default=None),
    )
