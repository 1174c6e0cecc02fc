"""Who works on a thread. A claim ends by itself when its holder is gone, so that no crash locks a thread."""

from __future__ import annotations

import functools
import itertools
import os
import socket
from pathlib import Path

SECONDS = 15.0
"""How long a claim lasts without being renewed."""

_counter = itertools.count()


def new_owner() -> str:
    """A name for one piece of work in this process: host, process, its start, a number."""
    return f"{_process(os.getpid())}|{next(_counter)}"


def dead(owner: str) -> bool:
    """Whether the process behind `owner` is certainly gone. `False` also where we cannot know (another host)."""
    host, _, rest = owner.partition("|")
    pid, _, rest = rest.partition("|")
    started = rest.partition("|")[0]
    if host != _host() or not pid.isdecimal():
        return False
    if not started:
        return False  # whoever made the name could not see its own process: neither can we
    now = _started(int(pid))
    return now == "" or now != started


@functools.cache
def _process(pid: int) -> str:
    """This process; by number, so that a forked child finds its own."""
    return f"{_host()}|{pid}|{_started(pid)}"


@functools.cache
def _host() -> str:
    """This machine's boot and process namespace: only within both do process numbers mean anything."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115
    except OSError:
        return socket.gethostname()


def _started(pid: int) -> str:
    """When a process started, in clock ticks since boot; empty when there is none (a zombie counts as none)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        if Path("/proc/self/stat").exists():
            return ""
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return ""
        except OSError:
            return "?"
        return "?"
    return "" if fields[0] in {"Z", "X"} else fields[19]
