"""Property tests in this folder compile schemas, so a slow machine is no fault of theirs."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("tool", deadline=None)
settings.load_profile("tool")
