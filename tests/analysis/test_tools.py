"""However many tools a model calls, what it is shown of their results fits a prompt."""

from __future__ import annotations

from roles.analysis.bounds import RESULTS, size
from roles.analysis.tools import latest_results
from swarmbus.models import AssistantMessage, Message, ToolMessage, UserMessage, call


def history(*contents: str) -> list[Message]:
    calls = tuple(call("read", document=f"d{number}") for number in range(len(contents)))
    results = (ToolMessage(f"call_{number}", "read", content) for number, content in enumerate(contents))
    return [UserMessage("Look."), AssistantMessage(tool_calls=calls), *results]


def contents(messages: list[Message]) -> list[str]:
    return [message.content for message in messages if isinstance(message, ToolMessage)]


def test_what_fits_is_shown_as_it_is() -> None:
    messages = history("one", "two")
    assert latest_results(messages) == messages


def test_of_more_than_fits_the_latest_is_shown_and_the_rest_is_said_to_have_been() -> None:
    messages = history(*(f"{number}" * 20_000 for number in range(9)))
    shown = latest_results(messages)
    assert contents(shown)[6:] == contents(messages)[6:]
    left = "[put away: a result of 20000 characters; call the tool again where you need it, with fewer calls at a time]"
    assert contents(shown)[:6] == [left] * 6
    assert [type(message) for message in shown] == [type(message) for message in messages]


def test_of_a_result_that_fits_no_prompt_the_beginning_is_shown() -> None:
    (shown,) = contents(latest_results(history("文" * 40_000)))
    assert shown.startswith("文")
    assert RESULTS - 5 < size(shown) < RESULTS + 5
