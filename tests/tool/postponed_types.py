from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Target:
    port: str
    inner: Inner | None = None
    tags: list[str] = field(default_factory=list)


@dataclass
class Inner:
    dock: int
