"""The parent's side of the llama.cpp process: start it, know where it listens, end it."""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

from tropa.errors import MissingExtra, ModelError
from tropa.messages import JsonObject, loads_object


@dataclass(frozen=True, slots=True)
class Served:
    """Where a server listens and what it serves: context in tokens, whether its template knows tools."""

    url: str
    key: str
    context: int
    tools: bool


@dataclass(eq=False, slots=True)
class _Child:
    process: subprocess.Popen[bytes]
    stderr: IO[bytes]
    served: Served


@dataclass(eq=False)
class LlamaServer:
    """A llama.cpp server for one GGUF file, in a child process that ends with this one. Methods block."""

    path: Path
    context: int
    threads: int
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _children: list[_Child] = field(default_factory=list[_Child], init=False, repr=False)

    def __post_init__(self) -> None:
        weakref.finalize(self, _end_all, self._children)

    @property
    def pid(self) -> int | None:
        """The child's process id while it runs."""
        return self._children[0].process.pid if self._children else None

    def start(self) -> Served:
        """The running server; started when there is none. Raises `ModelError` with llama.cpp's last words."""
        with self._lock:
            if self._children and self._children[0].process.poll() is None:
                return self._children[0].served
            _end_all(self._children)
            child = self._launch()
            self._children.append(child)
            return child.served

    def close(self) -> None:
        """End the child. Harmless when called twice."""
        with self._lock:
            _end_all(self._children)

    def _launch(self) -> _Child:
        key = secrets.token_urlsafe(24)
        settings: JsonObject = {
            "folder": _folder(),
            "path": str(self.path),
            "context": self.context,
            "threads": self.threads,
            "key": key,
        }
        stderr = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the child
        command = (sys.executable, "-I", str(Path(__file__).with_name("worker.py")))
        kept = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH", "LANG", "TMPDIR", "HOME")
        env = {name: os.environ[name] for name in kept if name in os.environ}
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, env=env)
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            # The key goes through the pipe: a command line can be read by everybody on the machine.
            process.stdin.write(json.dumps(settings).encode() + b"\n")
            process.stdin.flush()
            facts = loads_object(process.stdout.readline())
        except (OSError, ValueError):
            process.kill()
            process.wait()
            stderr.seek(0)
            said = stderr.read().decode(errors="replace").strip()[-500:]
            stderr.close()
            raise ModelError(f"llama.cpp could not load {self.path}: {said or 'it said nothing'}") from None
        url, context, tools = facts["url"], facts["context"], facts["tools"]
        return _Child(process, stderr, Served(cast("str", url), key, cast("int", context), bool(tools)))


def _folder() -> str:
    spec = importlib.util.find_spec("xllamacpp")
    if spec is None or spec.origin is None:
        raise MissingExtra("llama.cpp is not installed; install it with: pip install 'tropa[llama]'")
    return str(Path(spec.origin).parent.parent)


def _end_all(children: list[_Child]) -> None:
    for child in children:
        child.process.kill()
        child.process.wait()
        child.stderr.close()
    children.clear()
