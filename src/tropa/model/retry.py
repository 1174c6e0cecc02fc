"""How long to wait before a request is sent again, and one pace for all who share a key."""

from __future__ import annotations

import math
import random
import re
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime

import anyio

RETRIED = frozenset({408, 409, 425, 429})
"""Statuses below 500 after which the same request may be sent again."""

_TEMPLATE = re.compile(r"template|roles? must alternate|must alternate|jinja", re.IGNORECASE)
_QUOTA = re.compile(
    r"insufficient[_ ](?:quota|balance|funds|credit)|exceeded your current quota|quota[_ ](?:has been |is |was )?exhausted"
    r"|billing|credit balance|out of credits",
    re.IGNORECASE,
)


def is_template_error(text: str) -> bool:
    """Whether an error's text says that the chat template refused the messages: asking again changes nothing."""
    return _TEMPLATE.search(text) is not None


def is_quota(text: str) -> bool:
    """Whether a 429 means that nothing is left on the account, rather than that it was too fast."""
    return _QUOTA.search(text) is not None


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds to wait by `retry-after-ms` or `Retry-After` (seconds or an HTTP date, RFC 9110 §10.2.3).

    `None` where neither is there or neither can be used (text, a negative number, a date that is past).
    `now` is Unix time in seconds.
    """
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        if not text:
            continue
        try:
            seconds = float(text) * scale
        except ValueError:
            try:
                seconds = parsedate_to_datetime(text).timestamp() - (time.time() if now is None else now)
            except (ValueError, OverflowError):
                continue
        if seconds >= 0 and math.isfinite(seconds):
            return seconds
    return None


def backoff(attempt: int) -> float:
    """Seconds before the retry after failed attempt number `attempt`, from 1: doubling from 0.5, with jitter."""
    return 0.5 * 2.0 ** (min(attempt, 10) - 1) * random.uniform(0.75, 1.25)


class Pace:
    """Shared by all who ask under one key: free until a server says too fast, then one request at a time.

    So three askers that hit a limit send one request after the wait and not three.
    """

    def __init__(self) -> None:
        self._lock = anyio.Lock()
        self._held = False
        self._until = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """Wait for the right to send a request. Cancelling ends the wait at once."""
        if not self._held:
            yield
            return
        async with self._lock:
            while (left := self._until - time.monotonic()) > 0:  # noqa: ASYNC110  # somebody may move it on meanwhile
                await anyio.sleep(left)
            yield

    def hold(self, seconds: float) -> None:
        """Let nobody send for `seconds`, and one at a time after that."""
        self._held = True
        self._until = max(self._until, time.monotonic() + seconds)

    def free(self) -> None:
        """A request was accepted: no more waiting."""
        if self._until <= time.monotonic():
            self._held = False
