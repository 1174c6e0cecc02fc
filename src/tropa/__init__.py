"""Tropa: an agent runtime. The model proposes; the runtime validates, asks, executes, records, stops.

The names below are loaded on first use (PEP 562), so `import tropa` costs next to nothing and pulls in no provider's
SDK. A name to export stands in three lists: the imports that type checkers read, `__all__`, and `_ROOMS`, which is read
at run time. A test compares them.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tropa.agent import Agent
    from tropa.errors import (
        ApprovalError,
        BudgetError,
        Conflict,
        ContextTooSmall,
        CorruptStore,
        InvalidArguments,
        MissingExtra,
        ModelError,
        NotStorable,
        ReplayMismatch,
        StoreError,
        StoreTooNew,
        ThreadNotFound,
        ThreadWaiting,
        ToolDefinitionError,
        ToolFailed,
        TropaError,
        UsageError,
    )
    from tropa.gate import Budget, Origin, Proposal, Proposed, Ruling
    from tropa.messages import Assistant, Call, Data, Media, Message, Notice, Observation, Reasoning, Text, User
    from tropa.model import Model, Price, Profile, Usage
    from tropa.session import Field, Run
    from tropa.store import Store, Thread, open
    from tropa.tool import Tool, Toolbox, ToolContext, tool
    from tropa.trail import Trail

__all__ = [
    "Agent",
    "ApprovalError",
    "Assistant",
    "Budget",
    "BudgetError",
    "Call",
    "Conflict",
    "ContextTooSmall",
    "CorruptStore",
    "Data",
    "Field",
    "InvalidArguments",
    "Media",
    "Message",
    "MissingExtra",
    "Model",
    "ModelError",
    "NotStorable",
    "Notice",
    "Observation",
    "Origin",
    "Price",
    "Profile",
    "Proposal",
    "Proposed",
    "Reasoning",
    "ReplayMismatch",
    "Ruling",
    "Run",
    "Store",
    "StoreError",
    "StoreTooNew",
    "Text",
    "Thread",
    "ThreadNotFound",
    "ThreadWaiting",
    "Tool",
    "ToolContext",
    "ToolDefinitionError",
    "ToolFailed",
    "Toolbox",
    "Trail",
    "TropaError",
    "Usage",
    "UsageError",
    "User",
    "open",
    "tool",
]

_ROOMS = {
    "errors": (
        "ApprovalError",
        "BudgetError",
        "Conflict",
        "ContextTooSmall",
        "CorruptStore",
        "InvalidArguments",
        "MissingExtra",
        "ModelError",
        "NotStorable",
        "ReplayMismatch",
        "StoreError",
        "StoreTooNew",
        "ThreadNotFound",
        "ThreadWaiting",
        "ToolDefinitionError",
        "ToolFailed",
        "TropaError",
        "UsageError",
    ),
    "messages": (
        "Assistant",
        "Call",
        "Data",
        "Media",
        "Message",
        "Notice",
        "Observation",
        "Reasoning",
        "Text",
        "User",
    ),
    "agent": ("Agent",),
    "gate": ("Budget", "Origin", "Proposal", "Proposed", "Ruling"),
    "model": ("Model", "Price", "Profile", "Usage"),
    "session": ("Field", "Run"),
    "store": ("Store", "Thread", "open"),
    "tool": ("Tool", "ToolContext", "Toolbox", "tool"),
    "trail": ("Trail",),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}


class _Front(ModuleType):
    """This package as its users see it, where an exported name may also be the name of its room.

    `tropa.tool` is the decorator: importing the room of that name must not put the module in its place. Inside a room
    nothing changes, for `from tropa.tool import ...` never looks here.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if name in _ROOM_OF and isinstance(value, ModuleType):
            return
        super().__setattr__(name, value)


def __getattr__(name: str) -> object:
    """Load an exported name from its room, once.

    Raises:
        AttributeError: when no such name is exported.
    """
    room = _ROOM_OF.get(name)
    if room is None:
        raise AttributeError(f"module 'tropa' has no attribute {name!r}; it exports {', '.join(__all__)}")
    value: object = getattr(import_module(f"tropa.{room}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


sys.modules[__name__].__class__ = _Front
