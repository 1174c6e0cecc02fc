"""Models: one protocol, and adapters beside each other."""

from tropa.model.arguments import parse_arguments
from tropa.model.load import load_model
from tropa.model.profile import Profile
from tropa.model.protocol import Count, Delta, Finish, Model, RawCall, Reply, Request, ToolSpec
from tropa.model.replay import Recorded, Replay, describe, request_digest
from tropa.model.scripted import Scripted, calls
from tropa.model.usage import Price, Usage

__all__ = [
    "Count",
    "Delta",
    "Finish",
    "Model",
    "Price",
    "Profile",
    "RawCall",
    "Recorded",
    "Replay",
    "Reply",
    "Request",
    "Scripted",
    "ToolSpec",
    "Usage",
    "calls",
    "describe",
    "load_model",
    "parse_arguments",
    "request_digest",
]
