"""Any OpenAI-compatible server, through the official SDK: hosted ones, vLLM, llama.cpp, Ollama."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from typing import cast

import anyio

from tropa.errors import UsageError
from tropa.messages import JsonObject, dumps
from tropa.model.accounting import read_usage
from tropa.model.assemble import Assembly
from tropa.model.body import chat_body
from tropa.model.connection import Connection, body_of, failure_of
from tropa.model.estimate import estimate_body, estimate_text, with_margin
from tropa.model.failures import Failure, model_error, refused_parameter
from tropa.model.prices import price_of
from tropa.model.profile import Profile
from tropa.model.protocol import Count, Delta, Reply, Request
from tropa.model.rescue import rescue
from tropa.model.retry import Pace, backoff, retry_after
from tropa.model.served import ServedCounter
from tropa.model.sse import Events
from tropa.model.usage import Price


class OpenAI:
    """A `Model` behind a chat completions API.

    A failed request is sent again (408, 409, 429, 5xx, no connection) up to `retries` times, before anything of a
    reply has come; a reply that breaks off in the middle raises `ModelError`, since what it cost is not known.
    Parameters that a server refuses are remembered and no longer sent; the user's own options never are dropped.
    """

    name: str
    profile: Profile
    price: Price | None

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        profile: Profile | None = None,
        price: Price | None = None,
        retries: int = 3,
        max_wait: float = 30.0,
        timeout: float = 600.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """The model `name` at `base_url`, else at `OPENAI_BASE_URL`, else at OpenAI.

        `api_key` defaults to `OPENAI_API_KEY`. `price` defaults to that of `genai-prices`; give `Price(0, 0)` for your
        own server. `max_wait` caps each wait before a retry and `timeout` each silence of the server, in seconds.

        Raises `UsageError` when OpenAI itself is to be asked and there is no key.
        """
        url = base_url or os.environ.get("OPENAI_BASE_URL") or None
        self.name = f"openai:{name}"
        self.profile = profile or Profile()
        self.retries = retries
        self.max_wait = max_wait
        self._model = name
        key = api_key or os.environ.get("OPENAI_API_KEY") or ("" if url is None else "none")
        if not key:
            raise UsageError(
                f"model `{self.name}` needs a key: set OPENAI_API_KEY, or name a server as in "
                f"`openai:{name}@http://localhost:8080/v1`"
            )
        self._connection = Connection(url, key, headers or {}, timeout)
        if price is None and not self._connection.local:
            price = price_of(name, provider="openai" if url is None else None, url=self._connection.url)
        self.price = price
        self._refused: set[str] = set()
        self._ratio = 1.0
        self._served = None if url is None else ServedCounter(self._connection.url or url, self._connection.post)

    def __repr__(self) -> str:
        return f"OpenAI({self._model!r}, at {self._connection.host})"

    async def ask(self, request: Request) -> AsyncIterator[Delta | Reply]:
        """Stream a reply. Raises `ModelError` with status and the server's words, never with a secret."""
        pace = self._connection.pace
        warnings: list[str] = []
        attempt = 0
        while True:
            body = chat_body(request, self.profile, self._model, frozenset(self._refused))
            assembly = Assembly()
            try:
                # closed here and not by the garbage collector, so that a watcher who leaves frees the connection
                async with aclosing(self._stream(body, assembly, pace, attempt + 1)) as deltas:
                    async for delta in deltas:
                        yield delta
                break
            except Failure as failure:
                refused = None if assembly.started else refused_parameter(failure, body, request.options)
                if refused:
                    if refused not in self._refused:  # another ask at the same time may have found it out first
                        warnings.append(f"{self._connection.host} refuses `{refused}`; it is no longer sent")
                    self._refused.add(refused)
                    continue
                attempt += 1
                last = assembly.started or attempt >= min(self.retries + 1, failure.tries or self.retries + 1)
                if last or not failure.retryable:
                    # `from None`: the SDK's own error holds the request with its headers
                    raise model_error(
                        failure,
                        name=self.name,
                        where=self._connection.host,
                        attempts=attempt,
                        secrets=self._connection.secrets,
                    ) from None
                if failure.status != 429:
                    await anyio.sleep(self._wait(failure, attempt))
        yield self._reply(request, body, assembly, warnings)

    async def count(self, request: Request) -> Count:
        """Prompt tokens: by the server's own tokenizer where it offers one, else a flagged estimate with a margin."""
        body = chat_body(request, self.profile, self._model, frozenset(self._refused))
        if self._served and (count := await self._served.count(body, self.profile.image_tokens)):
            return count
        return Count(with_margin(estimate_body(body, self.profile.image_tokens), self._ratio), exact=False)

    async def close(self) -> None:
        """Close the connections of this event loop."""
        await self._connection.close()

    async def _stream(self, body: JsonObject, assembly: Assembly, pace: Pace, attempt: int) -> AsyncGenerator[Delta]:
        async with AsyncExitStack() as stack:
            async with pace.turn():
                try:
                    response = await stack.enter_async_context(self._connection.chat(body))
                except Exception as error:
                    failure = failure_of(error)
                    if failure.status == 429 and failure.retryable:
                        pace.hold(self._wait(failure, attempt))
                    raise failure from None
            pace.free()
            kind = response.headers.get("content-type", "")
            if "html" in kind:
                raise Failure("the server answered with a web page", final=True)
            if "json" in kind:
                # a server that does not stream answers whole
                whole = b"".join([chunk async for chunk in body_of(response)])
                for delta in assembly.feed(_chunk(whole.decode(errors="replace"))):
                    yield delta
                return
            events = Events()
            async for piece in body_of(response):
                for data in events.feed(piece):
                    if data == "[DONE]":
                        return
                    for delta in assembly.feed(_chunk(data)):
                        yield delta
            for data in events.finish():
                if data == "[DONE]":
                    return
                for delta in assembly.feed(_chunk(data)):
                    yield delta
            if assembly.ended is None:
                raise Failure("the stream ended in the middle of a reply")

    def _reply(self, request: Request, body: JsonObject, assembly: Assembly, warnings: list[str]) -> Reply:
        text, calls, finish = assembly.text, assembly.calls, assembly.finish
        if finish == "stop" and self.profile.rescue_calls and request.tools and "response_format" not in body:
            rescued, text = rescue(text, {tool.name for tool in request.tools})
            if rescued:
                calls, finish = tuple(rescued), "calls"
        estimate = estimate_body(body, self.profile.image_tokens)
        said = (
            assembly.text
            + assembly.reasoning
            + "".join(
                call.name + (call.arguments if isinstance(call.arguments, str) else dumps(call.arguments))
                for call in assembly.calls
            )
        )
        usage, remark = read_usage(
            assembly.usage,
            input=with_margin(estimate, self._ratio),
            output=with_margin(estimate_text(said)) if said else 0,
        )
        if not usage.estimated:
            # one odd report must not throw the ruler off: the ratio follows by halves and within bounds
            self._ratio = min(4.0, max(0.4, (self._ratio + usage.input / estimate) / 2))
            if calls and finish == "calls" and request.max_output is not None and usage.output >= request.max_output:
                finish = "length"
                warnings.append("the reply used all of `max_output`, so its calls count as cut")
        if self.price is not None:
            usage = replace(usage, cost=self.price.of(usage))
        if remark:
            warnings.append(remark)
        return Reply(text, calls, assembly.reasoning, finish, usage, assembly.model or self._model, tuple(warnings))

    def _wait(self, failure: Failure, attempt: int) -> float:
        given = retry_after(failure.headers)
        return min(self.max_wait, backoff(attempt) if given is None else given)


def _chunk(data: str) -> JsonObject:
    try:
        chunk: object = json.loads(data)
    except (ValueError, RecursionError):
        raise Failure(f"the server sent what is not JSON: {data[:80]!r}") from None
    if not isinstance(chunk, dict):
        return {}
    fields = cast("JsonObject", chunk)
    if error := fields.get("error"):
        body = error if isinstance(error, dict) else {}
        code = body.get("code") or body.get("status") or fields.get("status")
        message = body.get("message")
        status = int(code) if isinstance(code, (int, str)) and str(code).isdecimal() else None
        raise Failure(message if isinstance(message, str) else dumps(error), status=status)
    return fields
