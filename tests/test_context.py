from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.histories import history_faults
from swarmbus.messages import AssistantMessage, DataPart, Message, ModelRequest, ToolCall, ToolMessage, UserMessage
from swarmbus.models import ModelProfile, ScriptedModel
from swarmbus.thinking.agent import Agent
from swarmbus.thinking.context import FILL, cut, estimate_message, estimate_text, fit, turn_starts
from swarmbus.thinking.models.servers import SERVERS
from swarmbus.thinking.models.wire import request_body


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("four", 1), ("fives", 2), ("日本語", 3), ("naïve", 2)], ids=str)
def test_tokens_of_a_text_are_estimated(text: str, tokens: int) -> None:
    assert estimate_text(text) == tokens


def test_calls_and_binary_parts_count_too() -> None:
    plain = estimate_message(AssistantMessage("x"))
    assert estimate_message(AssistantMessage("x", (ToolCall("a", "add", "{}"),))) > plain
    assert estimate_message(UserMessage((DataPart(b"x", "image/png"),))) > 1000


def test_a_short_text_is_not_cut() -> None:
    assert cut("abc", 3, "h", readable_on=False) == "abc"


@pytest.mark.parametrize(
    ("readable_on", "advice"), [(True, "read on with read_result(handle='h', start=6)"), (False, "handle h")]
)
def test_a_long_text_keeps_head_and_tail_around_a_note(readable_on: bool, advice: str) -> None:
    head, note, tail = cut("abcdefghijklmnopqrstuvwxyz", 9, "h", readable_on=readable_on).split("\n")
    assert (head, tail) == ("abcdef", "xyz")
    assert note == f"[cut: 17 of 26 characters left out here; {advice}]"


def turn(number: int, calls: int, size: int) -> list[Message]:
    wishes = tuple(ToolCall(f"{number}.{call}", "read", "{}") for call in range(calls))
    results = [ToolMessage(wish.id, "read", "r" * size) for wish in wishes]
    return [AssistantMessage("a" if not calls else "", wishes), *results, *([] if calls else [UserMessage("more")])]


histories = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4000)), min_size=1, max_size=12).map(
    lambda turns: [UserMessage("go"), *(message for n, (c, s) in enumerate(turns) for message in turn(n, c, s))]
)


@given(history=histories, window=st.integers(50, 6000))
@settings(max_examples=300, deadline=None)
def test_what_is_shown_is_always_a_valid_history_with_its_first_message_and_last_turn(
    history: list[Message], window: int
) -> None:
    shown = fit(history, window, 10)
    body = request_body(ModelRequest(shown), "m", SERVERS["generic"])
    assert history_faults(body["messages"]) == []
    assert shown[0] == history[0]
    assert shown[-1] == history[-1]
    assert len(shown) <= len(history)


@given(history=histories, window=st.integers(50, 6000))
@settings(max_examples=300, deadline=None)
def test_what_is_shown_fits_or_is_the_least_that_can_be(history: list[Message], window: int) -> None:
    shown = fit(history, window, 10)
    least = 1 + len(history) - turn_starts(history)[-1]
    assert len(shown) <= least or sum(map(estimate_message, shown)) <= window * FILL - 10


@given(history=histories)
@settings(max_examples=50, deadline=None)
def test_a_history_that_fits_is_shown_as_it_is(history: list[Message]) -> None:
    assert fit(history, 1_000_000, 10) == tuple(history)


def test_a_result_shorter_than_the_note_that_it_was_put_away_is_shown() -> None:
    history = [UserMessage("go"), *turn(0, 1, 4), *turn(1, 1, 4000), *turn(2, 1, 400)]
    shown = fit(history, 600, 10)
    assert [message.content for message in shown if isinstance(message, ToolMessage)] == [
        "r" * 4,
        "[put away: a result of 4000 characters]",
        "r" * 400,
    ]


def test_old_results_are_put_away_before_anything_else() -> None:
    history = [UserMessage("go"), *turn(0, 1, 4000), *turn(1, 1, 400)]
    shown = fit(history, 600, 10)
    assert [message.content for message in shown] == [
        "go",
        "",
        "[put away: a result of 4000 characters]",
        "",
        "r" * 400,
    ]


@pytest.mark.anyio
async def test_a_model_with_a_window_is_shown_what_fits() -> None:
    model = ScriptedModel(["ok"], profile=ModelProfile(window=2000))
    history = [UserMessage("go"), *turn(0, 1, 8000), *turn(1, 1, 400)]
    result = await Agent(model, history=history).run("well?")
    assert "put away" in str(model.requests[0].messages[2].content)
    assert result.messages[2].content == "r" * 8000
