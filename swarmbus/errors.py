"""Every error that swarmbus raises on purpose, as one tree, with the facts a caller can act on as fields.

SwarmbusError
├── EventError              an event class or an event that can't be used as such
│   ├── EventClassError         refused when the class is made (also a TypeError)
│   └── EventEncodingError      an event that JSON can't hold, or JSON that is none; .event, .field (also a ValueError)
├── WiringError             the table and the code differ; .findings holds every difference
├── PublishError            a publish that the declaration or the table does not allow
├── SubmitError             an event that the table does not accept, or the journal can't keep; there is no run
├── RoleError               a role used in a way it can't be, such as setting an attribute while running
├── Retryable               raise it in a handler to ask for another attempt
│   └── HandlerTimedOut         a handler ran longer than its time limit (also a TimeoutError)
├── RunEnded                a run ended without its result; .result holds what was finished
│   ├── RunFailed               a delivery failed for good; __cause__ is the original exception
│   ├── RunStalled              nothing left to do, and no result
│   ├── RunTimedOut             the run's time limit passed
│   ├── RunCancelled            somebody cancelled the run
│   ├── RunStopped              closed before its end, or nobody can answer it; resumed from the journal, if any
│   └── LimitReached            a budget of the run is used up
├── AgentStopped            an agent's loop ended without an answer; .reason, .partial, .messages
├── ModelError              a model call failed; .retryable, .status, .retry_after
│   ├── IncompleteAnswer        the stream stopped without an end reason, or no choice came; .partial
│   ├── NotTheApi               an answer that is not the API's: an HTML page, broken JSON
│   ├── AnswerFiltered          the server's content filter refused
│   ├── ContextOverflow         the request is longer than the model's window
│   ├── RateLimited             too many requests, or a quota is used up
│   ├── ServerFault             the server failed, or reported an error inside a 200
│   ├── ServerUnreachable       no connection, or it broke
│   ├── ServerSilent            no sign of life within the idle time limit (also a TimeoutError)
│   ├── NotAuthorised           key missing, wrong or without the right
│   ├── RequestRefused          the server does not take the request as it is
│   ├── UnknownModel            a model name that nothing resolves (also a LookupError)
│   ├── UnknownPrice            a money limit on a model without a known price (also a LookupError)
│   ├── ModelsSwitchedOff       a real model call while SWARMBUS_NO_MODELS is set
│   └── ScriptEnded             a scripted model was asked more often than it has replies
├── ToolError               raise it in a tool to tell the model what went wrong
│   └── ToolDefinitionError     a function that can't be made a tool (also a TypeError)
├── RecordError             a record that can't be read or does not fit the ledger
└── QuestionError           an answer to a question that is unknown, answered, or of the wrong type
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarmbus.messages import Message
    from swarmbus.results import Finding, RunResult


class SwarmbusError(Exception):
    """The root of the tree: `except SwarmbusError` catches all that swarmbus raises on purpose."""


class EventError(SwarmbusError):
    """An event class or an event that can't be used as such."""


class EventClassError(EventError, TypeError):
    """An event class that can't keep its promises, refused when the class is made."""


class EventEncodingError(EventError, ValueError):
    """An event that can't be written to JSON, or JSON that is no such event.

    Attributes:
        event: name of the event on the wire, if known.
        field: name of the first field that is at fault, if it is one.
    """

    def __init__(self, message: str, *, event: str | None = None, field: str | None = None) -> None:
        super().__init__(message)
        self.event = event
        self.field = field


class WiringError(SwarmbusError):
    """The event table and the roles' code differ.

    Attributes:
        findings: every finding of the check, errors first.
    """

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        errors = sum(finding.severity == "error" for finding in self.findings)
        lines = [f"the wiring has {errors} error{'s' if errors != 1 else ''}; nothing was started"]
        lines += [str(finding) for finding in self.findings if finding.severity == "error"]
        super().__init__("\n".join(lines))


class PublishError(SwarmbusError):
    """A publish that the handler's declaration or the event table does not allow; nothing was delivered."""


class SubmitError(SwarmbusError):
    """An event that the table does not accept from the client, or the journal can't keep; no run was made."""


class RoleError(SwarmbusError):
    """A role used in a way it can't be."""


class Retryable(SwarmbusError):
    """Raise it (or a subclass) in a handler to ask for another attempt, as far as its `Retry` allows."""


class HandlerTimedOut(Retryable, TimeoutError):
    """A handler ran longer than its time limit (seconds)."""


class RunEnded(SwarmbusError):
    """A run ended without its result.

    Attributes:
        result: what was finished until then, `result.output` being None.
    """

    def __init__(self, message: str, result: RunResult[Any]) -> None:
        super().__init__(message)
        self.result = result


class RunFailed(RunEnded):
    """A delivery failed for good, and no join took it; the original exception is the cause."""


class RunStalled(RunEnded):
    """Nothing is in flight and nothing is awaited, but there is no result."""


class RunTimedOut(RunEnded):
    """The run's time limit passed."""


class RunCancelled(RunEnded):
    """Somebody cancelled the run."""


class RunStopped(RunEnded):
    """The swarm was closed before the run ended, or the run waits for somebody who can't come.

    It can be resumed where the swarm keeps a journal.
    """


class LimitReached(RunEnded):
    """A budget of the run is used up."""


class AgentStopped(SwarmbusError):
    """An agent's loop ended without an answer.

    Attributes:
        reason: what ended it, such as `turns` or `repeated_calls`; a limit's reason is the name of its field.
        partial: the text of the last reply, or an empty string; never an answer.
        messages: the history until then, valid to go on from.
    """

    def __init__(self, reason: str, partial: str, messages: Sequence[Message], detail: str = "") -> None:
        self.reason = reason
        self.partial = partial
        self.messages = tuple(messages)
        super().__init__(f"the agent stopped without an answer ({reason}){': ' if detail else ''}{detail}")


class ModelError(SwarmbusError):
    """A model call failed.

    Attributes:
        retryable: whether asking again may help; the model layer has done so before this is seen outside it.
        status: the HTTP status, where there was one.
        retry_after: seconds that the server asked to wait, where it did.
    """

    retryable = False

    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class IncompleteAnswer(ModelError):
    """A stream stopped without an end reason, or an answer holds no choice.

    Attributes:
        partial: the text that came, for diagnosis.
    """

    retryable = True

    def __init__(self, message: str, *, partial: str = "", status: int | None = None) -> None:
        super().__init__(message, status=status)
        self.partial = partial


class NotTheApi(ModelError):
    """A server answered with something that is not the API: an HTML page, broken JSON."""


class AnswerFiltered(ModelError):
    """The server's content filter refused the request or the answer; sending it again unchanged is no use."""


class ContextOverflow(ModelError):
    """The request is longer than the model's window."""


class RateLimited(ModelError):
    """Too many requests (retryable), or a quota that is used up (not retryable)."""

    def __init__(
        self, message: str, *, status: int | None = None, retry_after: float | None = None, exhausted: bool = False
    ) -> None:
        super().__init__(message, status=status, retry_after=retry_after)
        self.retryable = not exhausted


class ServerFault(ModelError):
    """The server failed, or reported an error inside a 200."""

    retryable = True


class ServerUnreachable(ModelError):
    """There was no connection, or it broke."""

    retryable = True


class ServerSilent(ModelError, TimeoutError):
    """The server gave no sign of life within the idle time limit (seconds)."""

    retryable = True


class NotAuthorised(ModelError):
    """The key is missing or wrong, or has no right to the model."""


class RequestRefused(ModelError):
    """The server does not take the request as it is."""


class UnknownModel(ModelError, LookupError):
    """Nothing resolves the model's name."""


class UnknownPrice(ModelError, LookupError):
    """A money limit is set, and the model's price is not known."""


class ModelsSwitchedOff(ModelError):
    """A real model was called while SWARMBUS_NO_MODELS is set."""


class ScriptEnded(ModelError):
    """A scripted model was asked more often than it has replies."""


class ToolError(SwarmbusError):
    """Raise it in a tool: the model reads the message as the call's result."""


class ToolDefinitionError(ToolError, TypeError):
    """A function can't be made a tool, because its signature does not say enough."""


class RecordError(SwarmbusError):
    """A record that can't be read, or that does not fit what the ledger knows."""


class QuestionError(SwarmbusError):
    """An answer to a question that is unknown, already answered, or of the wrong type."""
