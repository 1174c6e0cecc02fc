"""The hash chain of a thread: each event's hash covers the one before it, so one changed byte is found."""

from __future__ import annotations

import hashlib


def genesis(thread: bytes) -> bytes:
    """The hash before the first event of a thread (a fork starts from its origin's hash instead)."""
    return hashlib.sha256(b"tropa thread\0" + thread).digest()


def link(previous: bytes, seq: int, micros: int, kind: str, body: bytes, blobs: str) -> bytes:
    """The hash of an event: over its predecessor and everything that is stored of it.

    Lengths stand before the parts, so that no two different events give the same bytes.
    """
    head = f"{seq}|{micros}|{kind}|{len(body)}|{blobs}|".encode()
    return hashlib.sha256(previous + head + body).digest()
