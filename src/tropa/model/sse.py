"""Server-sent events, as the HTML standard reads them, from bytes that may be split anywhere."""

from __future__ import annotations

import re

_LINE_END = re.compile(rb"\r\n|\r|\n")


class Events:
    """Feed it the bytes of a body; it gives the data of each finished event. An unfinished last one is not lost.

    Bytes are decoded only once a whole line is there, so a character split between two network chunks stays whole.
    """

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._data: list[str] = []
        self._after_return = False

    def feed(self, chunk: bytes) -> list[str]:
        """The data of the events that `chunk` finished."""
        if self._after_return and chunk:
            chunk = chunk.removeprefix(b"\n")  # the second half of a CRLF whose first half ended a line already
            self._after_return = False
        if b"\n" not in chunk and b"\r" not in chunk:
            self._bytes += chunk
            return []
        self._after_return = chunk.endswith(b"\r")
        *lines, rest = _LINE_END.split(bytes(self._bytes) + chunk)
        self._bytes = bytearray(rest)
        return [data for line in lines if (data := self._line(line)) is not None]

    def finish(self) -> list[str]:
        """The data of an event that the end of the body left open, if any."""
        last = [] if not self._bytes else [self._line(bytes(self._bytes))]
        self._bytes.clear()
        return [data for data in [*last, self._line(b"")] if data is not None]

    def _line(self, line: bytes) -> str | None:
        if not line:
            data = "\n".join(self._data)
            self._data = []
            return data.strip() or None
        if line.startswith(b"data:"):
            text = line[5:].decode(errors="replace")
            self._data.append(text.removeprefix(" "))
        return None
