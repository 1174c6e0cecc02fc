"""Work on one event loop, stopped by Ctrl-C and SIGTERM in order: calls closed, the run recorded, modes restored."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine
from types import FrameType, TracebackType
from typing import Any, Final, Self, TypeVar

from tropa.cli.faults import INTERRUPTED, Interrupted

TWICE: Final = 2.0
"""Seconds within which a second Ctrl-C ends the program at once."""
_T = TypeVar("_T")
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Break(Exception):
    """A signal arrived while a line was read. `typed` is what stood on the line; `signal` its number."""

    def __init__(self, signum: int, typed: str) -> None:
        super().__init__(signum)
        self.signal = signum
        self.typed = typed


class Worker:
    """One event loop for all the work of a command. A context manager: it closes the loop."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._pressed = float("-inf")
        self._modes = _terminal_modes()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.close()

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run `work` to its end. Raises `Interrupted` when a signal cancelled it; `work` has then closed its calls."""
        return self._runner.run(self._guarded(work))

    def pressed(self) -> None:
        """Take note of a Ctrl-C; the second within two seconds ends the program here, with 130."""
        now = time.monotonic()
        if now - self._pressed < TWICE:
            self._leave()
        self._pressed = now

    def read_line(self, prompt: str, *, remember: bool = False, unseen: bool = False) -> str:
        """Read a line from the terminal, with line editing where Python has it; `remember` keeps it in the history.

        `unseen` throws away what was typed before the prompt: nobody answers a question that was not on the screen.

        Raises `Break` on Ctrl-C, SIGTERM and SIGHUP, `EOFError` on Ctrl-D.
        """
        typed: Callable[[], str] = str
        with contextlib.suppress(ImportError):
            import readline  # noqa: PLC0415  # it touches the terminal: only who reads a line loads it

            readline.set_auto_history(remember)
            typed = readline.get_line_buffer

        def stop(signum: int, frame: FrameType | None) -> None:
            raise Break(signum, typed())

        if unseen:
            _drop_typed()
        before = {one: signal.signal(one, stop) for one in _SIGNALS}
        try:
            return input(prompt)
        except (Break, EOFError):
            sys.stdout.write("\n")
            raise
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    async def _guarded(self, work: Coroutine[Any, Any, _T]) -> _T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        got: list[int] = []

        def stop(signum: int) -> None:
            got.append(signum)
            if signum == signal.SIGINT:
                self.pressed()
            if task is not None and len(got) == 1:
                task.cancel()

        for one in _SIGNALS:
            with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C arrives as KeyboardInterrupt there
                loop.add_signal_handler(one, stop, one)
        try:
            return await work
        except asyncio.CancelledError:
            if got:
                raise Interrupted from None
            raise
        finally:
            for one in _SIGNALS:
                with contextlib.suppress(NotImplementedError):
                    loop.remove_signal_handler(one)

    def _leave(self) -> None:
        """End the process at once. What is on disk can be resumed."""
        if self._modes is not None:
            import termios  # noqa: PLC0415  # not everywhere

            with contextlib.suppress(termios.error):
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, self._modes)
        with contextlib.suppress(OSError):
            sys.stdout.write("\n")
            sys.stdout.flush()
        os._exit(INTERRUPTED)


def _drop_typed() -> None:
    with contextlib.suppress(ImportError, OSError):
        import termios  # noqa: PLC0415  # not everywhere

        with contextlib.suppress(termios.error):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def _terminal_modes() -> list[Any] | None:
    try:
        import termios  # noqa: PLC0415  # not everywhere

        return termios.tcgetattr(sys.stdin.fileno())
    except (ImportError, OSError, ValueError):
        return None
    except Exception:  # termios.error has no name where there is no termios
        return None
