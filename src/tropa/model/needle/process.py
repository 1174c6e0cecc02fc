"""The parent's side of the engine process: start it when needed, one exchange at a time, end it when told."""

from __future__ import annotations

import json
import subprocess
import tempfile
import threading
import weakref
from dataclasses import dataclass, field
from typing import IO, Literal, cast

from tropa.errors import ModelError
from tropa.messages import JsonObject, loads_object

Network = Literal["none", "not isolated", "not started"]


@dataclass(eq=False, slots=True)
class Job:
    """One exchange. `cancelled` is set when nobody waits for it any more."""

    payload: JsonObject
    cancelled: bool = False


@dataclass(eq=False, slots=True)
class _Child:
    process: subprocess.Popen[bytes]
    stderr: IO[bytes]
    network: Network = "not started"


@dataclass(eq=False)
class EngineProcess:
    """A child that answers one JSON line per JSON line. All methods block: call them from a thread.

    `command` and `env` start the child. It is started by the first exchange and again after it died. A cancelled
    exchange ends the child: the engine cannot be interrupted, and a late answer must never meet the next question.
    """

    command: tuple[str, ...]
    env: dict[str, str]
    network: Network = "not started"
    _turn: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _state: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _children: list[_Child] = field(default_factory=list[_Child], init=False, repr=False)
    _current: Job | None = field(default=None, init=False, repr=False)
    _serial: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        weakref.finalize(self, _end_all, self._children)

    @property
    def pid(self) -> int | None:
        """The child's process id while it runs."""
        with self._state:
            return self._children[0].process.pid if self._children else None

    def exchange(self, job: Job) -> JsonObject:
        """Send `job` and return the child's answer to it.

        Raises `ModelError`, retryable, when the child dies or speaks nonsense, and when the job was cancelled.
        """
        with self._turn:
            with self._state:
                if job.cancelled:
                    raise ModelError("the ask was cancelled before the engine read it", retryable=True)
                self._current = job
            try:
                child = self._start()
                self._serial += 1
                return self._converse(child, {"id": self._serial, **job.payload}, self._serial)
            finally:
                with self._state:
                    self._current = None

    def cancel(self, job: Job) -> None:
        """Give up on `job`; ends the child if it is working on it."""
        with self._state:
            job.cancelled = True
            if self._current is job:
                _end_all(self._children)

    def close(self) -> None:
        """End the child; an exchange in flight raises. Harmless when called twice."""
        with self._state:
            _end_all(self._children)

    def _start(self) -> _Child:
        with self._state:
            if self._current is not None and self._current.cancelled:
                raise ModelError("the ask was cancelled before the engine read it", retryable=True)
            if self._children and self._children[0].process.poll() is None:
                return self._children[0]
            _end_all(self._children)
            stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child
            try:
                process = subprocess.Popen(
                    self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, env=self.env
                )
            except OSError as error:
                stderr.close()
                raise ModelError(f"the engine process could not be started: {error}") from error
            child = _Child(process, stderr)
            self._children.append(child)
        greeting = self._read(child)
        child.network = self.network = cast("Network", greeting.get("network", "not isolated"))
        return child

    def _converse(self, child: _Child, message: JsonObject, serial: int) -> JsonObject:
        stdin = child.process.stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps(message).encode() + b"\n")
            stdin.flush()
        except (OSError, ValueError) as error:
            raise self._lost(child) from error
        while True:
            answer = self._read(child)
            if answer.get("id") == serial:
                return answer

    def _read(self, child: _Child) -> JsonObject:
        stdout = child.process.stdout
        assert stdout is not None
        try:
            line = stdout.readline()
            if line:
                return loads_object(line)
        except (OSError, ValueError) as error:
            raise self._lost(child) from error
        raise self._lost(child)

    def _lost(self, child: _Child) -> ModelError:
        with self._state:
            if child in self._children:
                _end(child)
                self._children.remove(child)
        said = ""
        if not child.stderr.closed:
            child.stderr.seek(0)
            said = child.stderr.read().decode(errors="replace").strip()[-300:]
            child.stderr.close()
        code = child.process.returncode
        return ModelError(
            f"the engine process ended in the middle of an ask (exit code {code}); the next ask starts it again"
            + (f". It said: {said}" if said else ""),
            retryable=True,
        )


def _end(child: _Child) -> None:
    child.process.kill()
    child.process.wait()


def _end_all(children: list[_Child]) -> None:
    for child in children:
        _end(child)
    children.clear()
