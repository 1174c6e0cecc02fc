"""What a tool does to the world, in MCP's terms."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hints:
    """A tool's word about its effects. Without `read_only` a tool has side effects, and waits for approval.

    `destructive`: it may overwrite or delete. `idempotent`: a second call with the same arguments changes nothing more.
    `open_world`: it reaches things outside this system. The first two mean nothing for a read-only tool.
    """

    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False
    open_world: bool = True

    @property
    def repeatable(self) -> bool:
        """Whether running it twice does no more than running it once."""
        return self.read_only or self.idempotent
