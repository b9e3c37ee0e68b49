"""The models under one short public path, with all that writing a model or a script takes; a re-export."""

from swarmbus.messages import (
    AssistantMessage,
    Message,
    ModelReply,
    ModelRequest,
    ModelSettings,
    StreamPart,
    SystemMessage,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolMessage,
    ToolSpec,
    Usage,
    UserMessage,
)
from swarmbus.thinking.models.base import Model, ModelProfile
from swarmbus.thinking.models.fallback import FallbackModel
from swarmbus.thinking.models.registry import register_model, resolve_model
from swarmbus.thinking.models.scripted import ScriptedModel, call

__all__ = [
    "AssistantMessage",
    "FallbackModel",
    "Message",
    "Model",
    "ModelProfile",
    "ModelReply",
    "ModelRequest",
    "ModelSettings",
    "ScriptedModel",
    "StreamPart",
    "SystemMessage",
    "TextDelta",
    "ToolCall",
    "ToolCallDelta",
    "ToolMessage",
    "ToolSpec",
    "Usage",
    "UserMessage",
    "call",
    "register_model",
    "resolve_model",
]
