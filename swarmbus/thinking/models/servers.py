"""What is known of model servers that speak the OpenAI interface: one row of facts per family, and where they live."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from swarmbus.thinking.models.base import ModelProfile

ReasoningReturn = Literal["never", "with_tool_calls"]


@dataclass(frozen=True, slots=True)
class ServerFamily:
    """The quirks of one family of servers.

    Attributes:
        url: the base URL where nothing else is said.
        url_variable: the environment variable that says otherwise.
        key_variable: the environment variable that holds the key.
        key_required: whether the server refuses to work without one.
        profile: what its models can do.
        null_content: whether an assistant message with tool calls and no text has null as its content, or "".
        return_reasoning: whether thinking text goes back with the history.
        max_tokens_field: what the limit of the reply is called.
    """

    url: str = ""
    url_variable: str = ""
    key_variable: str = ""
    key_required: bool = False
    profile: ModelProfile = field(default_factory=lambda: ModelProfile(output_with_tools="tool"))
    null_content: bool = False
    return_reasoning: ReasoningReturn = "never"
    max_tokens_field: str = "max_tokens"


SERVERS: dict[str, ServerFamily] = {
    "openai": ServerFamily(
        url="https://api.openai.com/v1",
        url_variable="OPENAI_BASE_URL",
        key_variable="OPENAI_API_KEY",
        key_required=True,
        profile=ModelProfile(output="native", output_with_tools="native"),
        null_content=True,
        max_tokens_field="max_completion_tokens",
    ),
    "ollama": ServerFamily(url="http://127.0.0.1:11434/v1", url_variable="OLLAMA_BASE_URL"),
    "vllm": ServerFamily(url="http://127.0.0.1:8000/v1", url_variable="VLLM_BASE_URL", key_variable="VLLM_API_KEY"),
    "llamacpp": ServerFamily(url="http://127.0.0.1:8080/v1", url_variable="LLAMACPP_BASE_URL"),
    "lmstudio": ServerFamily(url="http://127.0.0.1:1234/v1", url_variable="LMSTUDIO_BASE_URL"),
    "deepseek": ServerFamily(
        url="https://api.deepseek.com/v1",
        key_variable="DEEPSEEK_API_KEY",
        key_required=True,
        profile=ModelProfile(output="prompted", output_with_tools="tool"),
        return_reasoning="with_tool_calls",
    ),
    "openrouter": ServerFamily(
        url="https://openrouter.ai/api/v1", key_variable="OPENROUTER_API_KEY", key_required=True
    ),
    "generic": ServerFamily(key_variable="OPENAI_API_KEY"),
}
