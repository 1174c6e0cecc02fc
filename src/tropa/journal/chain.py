"""The hash chain of a thread: each event's hash covers the one before it, so one changed byte is found."""

from __future__ import annotations

import hashlib


def genesis(id: bytes) -> bytes:
    """The hash before the first event of a thread (a fork starts from its origin's hash instead)."""
    return hashlib.sha256(b"tropa thread\0" + id).digest()


def link(previous: bytes, seq: int, micros: int, kind: str, body: bytes, blobs: str) -> bytes:
    """The hash of an event: over its predecessor and everything that is stored of it.

    Lengths stand before the parts, so that no two different events give the same bytes.
    """
    head = f"{seq}|{micros}|{len(kind)}|{len(blobs)}|{len(body)}|{kind}|{blobs}|".encode()
    return hashlib.sha256(previous + head + body).digest()


def seal(id: bytes, base: int, anchor: bytes, forked: int, opened: float, kept: bytes | None) -> bytes:
    """The hash over what a thread's row holds that no event does: its name, and where its own events begin."""
    head = f"{base}|{forked}|{opened!r}|{len(id)}|".encode()
    return hashlib.sha256(b"tropa seal\0" + head + id + anchor + (kept or b"")).digest()
