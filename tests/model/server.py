"""A small OpenAI-compatible server on loopback that answers as told, and keeps what it was asked."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field


@dataclass
class Asked:
    path: str
    headers: dict
    body: dict
    at: float


@dataclass
class Answer:
    body: bytes = b""
    status: int = 200
    headers: dict = field(default_factory=dict)
    type: str = "text/event-stream"
    piece: int = 0  # bytes per network write; 0 is all at once
    breaks: bool = False  # close the connection without ending the body


def chunk(delta=None, finish=None, **more):
    choices = [] if delta is None and finish is None else [{"index": 0, "delta": delta or {}, "finish_reason": finish}]
    return {"id": "x", "object": "chat.completion.chunk", "model": "served-1", "choices": choices, **more}


def sse(*chunks, end="\n", space=" ", done=True, closed=True, before=""):
    events = [json.dumps(each, ensure_ascii=False) if isinstance(each, dict) else each for each in chunks]
    events += ["[DONE]"] if done else []
    text = "".join(f"{before}data:{space}{event}{end}{end}" for event in events)
    return (text if closed else text[: -2 * len(end)]).encode()


USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def says(text="fine", finish="stop", usage=USAGE, **answer):
    tail = [] if usage is None else [chunk(usage=usage)]
    return Answer(sse(chunk({"role": "assistant", "content": text}), chunk(finish=finish), *tail), **answer)


def calls(*items, finish="tool_calls", usage=USAGE):
    return Answer(
        sse(chunk({"role": "assistant", "tool_calls": list(items)}), chunk(finish=finish), chunk(usage=usage))
    )


def call(name, arguments, index=0, id="c0"):
    return {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def refuses(message, status=400, headers=None, **error):
    body = json.dumps({"error": {"message": message, **error}}).encode()
    return Answer(body, status, headers or {}, type="application/json")


class Server:
    """Answers are a list (the last one repeats) or a function of what was asked; `async with` runs it."""

    def __init__(self, answers):
        self.answers = answers if callable(answers) else list(answers)
        self.asked: list[Asked] = []

    @property
    def bodies(self):
        return [asked.body for asked in self.asked]

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self._open = set()
        return self

    async def __aexit__(self, *exc):
        self._server.close()
        for writer in list(self._open):
            writer.close()
        await asyncio.sleep(0)

    async def _serve(self, reader, writer):
        self._open.add(writer)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode().strip().split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
                raw = await reader.readexactly(int(headers.get("content-length", 0)))
                asked = Asked(first.split()[1], headers, json.loads(raw or b"{}"), time.monotonic())
                self.asked.append(asked)
                answer = self._answer(asked)
                await self._write(writer, answer)
                if answer.breaks:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()

    def _answer(self, asked):
        if callable(self.answers):
            return self.answers(asked)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    async def _write(self, writer, answer):
        headers = {"Content-Type": answer.type, "Transfer-Encoding": "chunked", **answer.headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"HTTP/1.1 {answer.status} X\r\n{lines}\r\n".encode())
        step = answer.piece or max(1, len(answer.body))
        for start in range(0, len(answer.body), step):
            piece = answer.body[start : start + step]
            writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            await writer.drain()
            if answer.piece:
                await asyncio.sleep(0)
        if not answer.breaks:
            writer.write(b"0\r\n\r\n")
        await writer.drain()
