"""Models: one protocol, and adapters beside each other."""

from tropa.model.profile import Profile
from tropa.model.protocol import Count, Delta, Finish, Model, RawCall, Reply, Request, ToolSpec
from tropa.model.usage import Price, Usage

__all__ = ["Count", "Delta", "Finish", "Model", "Price", "Profile", "RawCall", "Reply", "Request", "ToolSpec", "Usage"]
