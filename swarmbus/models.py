"""The models under one short public path; a re-export of the names in `swarmbus.thinking.models`."""

from swarmbus.messages import ModelReply, ModelRequest, ModelSettings, Usage
from swarmbus.thinking.models.base import Model, ModelProfile
from swarmbus.thinking.models.fallback import FallbackModel
from swarmbus.thinking.models.registry import register_model, resolve_model
from swarmbus.thinking.models.scripted import ScriptedModel, call

__all__ = [
    "FallbackModel",
    "Model",
    "ModelProfile",
    "ModelReply",
    "ModelRequest",
    "ModelSettings",
    "ScriptedModel",
    "Usage",
    "call",
    "register_model",
    "resolve_model",
]
