"""From a thread that works on a connection back to the event loop that asked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Generic

from tropa.journal.connection import T


class Answer(Generic[T]):
    """What a thread found out, handed to the event loop that asked."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[T] = self._loop.create_future()
        self._over = asyncio.Event()

    def work_out(self, work: Callable[[], T]) -> None:
        """Run `work`, in the thread."""
        error: BaseException | None = None
        result: T | None = None
        try:
            result = work()
        except BaseException as failure:
            error = failure
        with contextlib.suppress(RuntimeError):  # the loop is gone, and nobody waits any more
            self._loop.call_soon_threadsafe(self._settle, result, error)

    async def wait(self) -> T:
        """The result. Whoever is cancelled meanwhile still waits until the work is over."""
        try:
            return await self._future
        except asyncio.CancelledError:
            while not self._over.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await self._over.wait()
            raise

    def _settle(self, result: T | None, error: BaseException | None) -> None:
        self._over.set()
        if self._future.done():
            return
        if error is None:
            self._future.set_result(result)  # type: ignore[arg-type]
        else:
            self._future.set_exception(error)
