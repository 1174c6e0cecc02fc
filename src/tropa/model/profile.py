"""A provider's habits as data. Nothing outside this file asks which provider it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Profile:
    """What a served model takes and gives.

    `context` and `max_output` are in tokens. The rest are quirks, each off unless a server needs it.
    """

    context: int = 8192
    max_output: int = 1024
    native_tools: bool = True
    """Whether the server has a tool protocol of its own; without one, tools are listed in the prompt."""
    strict_schema: bool = False
    """Whether a strict JSON schema for the answer is supported (`response_format`)."""
    system_role: Literal["system", "developer", "first-user"] = "system"
    """Where the instruction goes; `first-user` folds it into the first user message."""
    merge_roles: bool = False
    """Whether neighbours of equal role must be joined (templates that demand alternation)."""
    empty_content: Literal["null", "empty", "omit"] = "null"
    """What stands for the text of an assistant message that only calls."""
    arguments_as: Literal["text", "object"] = "text"
    """How the arguments of past calls are sent."""
    call_ids: Literal["any", "alnum9"] = "any"
    """The form a provider demands of call ids."""
    echo_reasoning: bool = False
    """Whether the reasoning of past turns is sent back."""
    images: bool = False
    parallel_calls: bool = True
    """Whether more than one call in a reply is wanted; extra ones are answered, not run."""
    rescue_calls: bool = True
    """Whether calls written as plain JSON text are read as calls (small local models do this)."""
    image_tokens: int = 1000
    """What an image counts where the server does not say."""
    refused: frozenset[str] = frozenset()
    """Request parameters that this server refuses; they are not sent."""
