"""The child process that holds the Needle engine. Started as a plain file: it imports nothing but the standard library.

Protocol: one JSON object per line. The child first writes `{"ready": true, "network": "none" | "not isolated"}`.
Then each line `{"id", "system", "tools", "turns", "max_output"}` gets one line back, with the same id:
`{"id", "prefix", "tokens", "response"}` or `{"id", "error", "kind"}` where kind is `context` or `engine`.

`turns` alternate user text and results. The engine keeps the dialogue it has read; a request that continues it
reads only what is new, every other request starts afresh, so what is answered depends on the request alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import queue
import select
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO

CLONE_NEWNET = 0x40000000
CLONE_NEWUSER = 0x10000000
BUFFER_BYTES = 1 << 20


def leave_network() -> str:
    """Move this process into an empty network namespace; says `none` only when the system did it."""
    if not sys.platform.startswith("linux"):
        return "not isolated"
    try:
        unshare = ctypes.CDLL(None, use_errno=True).unshare
    except (OSError, AttributeError):
        return "not isolated"
    # Root may take a network namespace directly; anybody else needs a user namespace around it.
    if unshare(CLONE_NEWNET) == 0 or unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0:
        return "none"
    return "not isolated"


class Engine:
    """The C library behind one dialogue."""

    def __init__(self, library: str, weights: str) -> None:
        self.lib = ctypes.CDLL(library)
        self.lib.needle_init.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p]
        self.lib.needle_complete.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_int]
        self.lib.needle_load.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
        self.lib.needle_last_error.restype = ctypes.c_char_p
        self.buffer = ctypes.create_string_buffer(BUFFER_BYTES)
        # The engine reads the archive in place, so it must live as long as the process does.
        self.weights = Path(weights).read_bytes()
        if self.lib.needle_load(self.weights, len(self.weights)) < 0:
            raise RuntimeError(f"the engine refused the weights {weights}: {self.last_error()}")
        self.static: tuple[str, str] | None = None
        self.prefix = 0
        self.read: list[str] = []
        self.response: dict[str, Any] = {}
        self.tokens = 0

    def last_error(self) -> str:
        """The engine's own words about its last fault."""
        return (self.lib.needle_last_error() or b"").decode("utf-8", "replace")

    def answer(self, system: str, tools: str, turns: list[str], max_output: int) -> dict[str, Any]:
        """Read what is new in `turns` and return the engine's response to the last one."""
        if self.static != (system, tools):
            self.static, self.read = None, []
            prefix = self.lib.needle_init(system.encode(), tools.encode(), None)
            if prefix < 0:
                detail = self.last_error()
                return {"error": detail, "kind": "context" if "context budget" in detail else "engine"}
            self.static, self.prefix = (system, tools), prefix
        known = len(self.read)
        if not known or known >= len(turns) or turns[:known] != self.read:
            self.lib.needle_reset()
            self.read = []
        for turn in turns[len(self.read) :]:
            fault = self.complete(turn, max_output)
            if fault:
                self.static = None
                return fault
            self.read.append(turn)
        return {"prefix": self.prefix, "tokens": self.tokens, "response": self.response}

    def complete(self, turn: str, max_output: int) -> dict[str, Any] | None:
        """Let the engine read one turn and answer it; a fault as data, else `None`."""
        count = self.lib.needle_complete(turn.encode(), max_output, self.buffer, BUFFER_BYTES)
        text = self.buffer.value.decode("utf-8", "replace")
        if count < 0:
            detail = text or self.last_error()
            return {"error": detail, "kind": "context" if "context" in detail else "engine"}
        self.tokens, self.response = count, json.loads(text)
        return None


def read_lines(source: BinaryIO, lines: queue.Queue[bytes], parent: int) -> None:
    """Feed lines to the engine's thread; leave at once when the parent is gone, even in the middle of an answer."""
    pending = b""
    while os.getppid() == parent:
        if not select.select([source], [], [], 2.0)[0]:
            continue
        chunk = os.read(source.fileno(), 65536)
        if not chunk:
            break
        *complete, pending = (pending + chunk).split(b"\n")
        for line in complete:
            lines.put(line)
    os._exit(0)


def main() -> None:
    """Serve until the parent closes the pipe or ends."""
    parent = os.getppid()
    network = leave_network()
    # The engine and its libraries may print; the protocol gets a descriptor of its own and stdout becomes stderr.
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    engine = Engine(sys.argv[1], sys.argv[2])

    def send(message: dict[str, Any]) -> None:
        out.write(json.dumps(message).encode() + b"\n")

    send({"ready": True, "network": network})
    lines: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=read_lines, args=(sys.stdin.buffer, lines, parent), daemon=True).start()
    with contextlib.suppress(BrokenPipeError):
        while True:
            request = json.loads(lines.get())
            try:
                result = engine.answer(request["system"], request["tools"], request["turns"], request["max_output"])
            except (ValueError, KeyError, TypeError) as error:
                result = {"error": repr(error), "kind": "engine"}
            send({"id": request.get("id"), **result})


if __name__ == "__main__":
    main()
