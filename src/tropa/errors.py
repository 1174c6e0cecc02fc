"""Every error Tropa raises. Each message says what happened, with which value, and what to do."""

from __future__ import annotations


class TropaError(Exception):
    """Base of all errors raised by this package."""


class UsageError(TropaError):
    """The caller asked for something that cannot be done as asked; the text names the remedy."""


class ToolDefinitionError(UsageError):
    """A function cannot become a tool: the message names the parameter that cannot be described."""


class InvalidArguments(TropaError):
    """A call's arguments do not fit the tool's schema.

    `str(error)` is one short text that a model can act on: the path, what was given, what is allowed.
    """


class ToolFailed(TropaError):
    """Raise it inside a tool to tell the model, in your words, why the call could not be done."""


class StoreError(TropaError):
    """The journal could not be read or written; nothing that was reported as stored is lost."""


class StoreTooNew(StoreError):
    """The store was written by a newer Tropa; this one refuses it rather than guess."""


class CorruptStore(StoreError):
    """A stored row does not match its hash, or cannot be read as data."""


class NotStorable(TropaError):
    """A value cannot be written as strict JSON; the message names its path and type."""


class ThreadNotFound(StoreError):
    """No thread with this identifier is in the store."""


class Conflict(StoreError):
    """Somebody else wrote to this thread, or is working on it. Nothing of the refused write was done."""


class ThreadWaiting(Conflict):
    """The thread waits for a person: decide on its proposals (or cancel the run) before it takes a new message."""


class ApprovalError(TropaError):
    """A decision cannot be taken: unknown proposal, already decided, or not the one that was shown."""


class BudgetError(UsageError):
    """A budget cannot be kept as given, for example a cost limit on a model without a known price."""


class ContextTooSmall(TropaError):
    """The system instruction and the newest user message alone do not fit the model's window."""


class ModelError(TropaError):
    """The model could not be asked, or answered with something unusable.

    `status` is the HTTP status where there is one. `retryable` says whether asking again may help.
    """

    def __init__(self, message: str, *, status: int | None = None, retryable: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.retryable = retryable


class ReplayMismatch(ModelError):
    """A replayed run asked something else than the recorded one; the message shows the first difference."""


class MissingExtra(UsageError):
    """An optional part is not installed; the message is the command that installs it."""
