from __future__ import annotations

import pytest

from swarmbus.errors import NotAuthorised, ServerFault, UnknownModel
from swarmbus.messages import ModelReply, ModelRequest, Restarted, UserMessage
from swarmbus.models import FallbackModel, ModelProfile, ScriptedModel, register_model, resolve_model
from swarmbus.thinking.models import registry
from swarmbus.thinking.models.openai import OpenAIModel

pytestmark = pytest.mark.anyio

REQUEST = ModelRequest((UserMessage("hello"),))


@pytest.fixture
def echo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})
    register_model("echo", lambda name: ScriptedModel([f"echo {name}"], name=f"echo:{name}"))


def test_a_model_resolves_to_itself() -> None:
    model = ScriptedModel([])
    assert resolve_model(model) is model


@pytest.mark.parametrize(
    ("spec", "url", "name"),
    [
        ("openai:gpt-5-mini", "https://api.openai.com/v1", "gpt-5-mini"),
        ("ollama:qwen3:8b", "http://127.0.0.1:11434/v1", "qwen3:8b"),
        ("http://host:8000/v1#org/name", "http://host:8000/v1", "org/name"),
    ],
)
def test_names_of_servers(spec: str, url: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    model = resolve_model(spec)
    assert isinstance(model, OpenAIModel)
    assert (model.name, model.url, model.model) == (spec, url, name)


def test_the_environment_can_move_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://proxy/v1/")
    model = resolve_model("openai:m")
    assert isinstance(model, OpenAIModel)
    assert model.url == "http://proxy/v1"


def test_a_missing_key_says_which_variable_to_set() -> None:
    with pytest.raises(NotAuthorised, match="set OPENAI_API_KEY"):
        resolve_model("openai:gpt-5-mini")


@pytest.mark.usefixtures("echo")
async def test_a_registered_prefix_makes_models() -> None:
    parts = [part async for part in resolve_model("echo:a:b").stream(REQUEST)]
    assert isinstance(parts[-1], ModelReply)
    assert parts[-1].message.content == "echo a:b"


@pytest.mark.parametrize("prefix", ["", "a:b", "a|b", "a b"])
def test_a_prefix_that_could_not_be_found_again_is_refused(prefix: str) -> None:
    with pytest.raises(ValueError, match="can't be a prefix"):
        register_model(prefix, lambda name: ScriptedModel([]))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("opnai:gpt", "did you mean 'openai'"),
        ("nonsense", "ollama, openai"),
        ("gpt-5-mini", r"did you mean 'openai:gpt-5-mini' or 'ollama:gpt-5-mini'\?"),
        ("http://host/v1", r"write it as http://host/v1#NAME"),
        ("ollama:", "write the model as ollama:NAME"),
    ],
)
def test_an_unknown_name_says_what_is_known(spec: str, message: str) -> None:
    with pytest.raises(UnknownModel, match=message):
        resolve_model(spec)


@pytest.mark.usefixtures("echo")
def test_a_bar_separates_models_in_order_of_preference() -> None:
    model = resolve_model("echo:a | echo:b")
    assert isinstance(model, FallbackModel)
    assert model.name == "echo:a | echo:b"


async def test_where_a_model_fails_the_next_is_asked() -> None:
    model = FallbackModel([ScriptedModel([ServerFault("down")], name="a"), ScriptedModel(["ok"], name="b")])
    parts = [part async for part in model.stream(REQUEST)]
    assert parts[0] == Restarted("a failed: down", 0.0)
    assert isinstance(parts[-1], ModelReply)
    assert (parts[-1].message.content, parts[-1].model) == ("ok", "b")


async def test_the_last_models_error_is_raised_and_other_errors_at_once() -> None:
    failing = ScriptedModel([ServerFault("first")])
    with pytest.raises(ServerFault, match="second"):
        [part async for part in FallbackModel([failing, ScriptedModel([ServerFault("second")])]).stream(REQUEST)]
    spare = ScriptedModel(["x"])
    with pytest.raises(RuntimeError):
        [part async for part in FallbackModel([ScriptedModel([RuntimeError()]), spare]).stream(REQUEST)]
    assert spare.requests == []


def test_a_fallback_can_do_what_all_its_models_can() -> None:
    models = [ScriptedModel([], profile=ModelProfile("native", "tool", 8000)), ScriptedModel([])]
    assert FallbackModel(models).profile == ModelProfile("native", "tool", 8000)
