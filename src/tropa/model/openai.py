"""Any OpenAI-compatible server, through the official SDK: hosted ones, vLLM, llama.cpp, Ollama."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, cast
from urllib.parse import unquote, urlsplit, urlunsplit

import anyio
from anyio.lowlevel import RunVar

from tropa.errors import UsageError
from tropa.messages import JsonObject, dumps
from tropa.model.accounting import read_usage
from tropa.model.assemble import Assembly
from tropa.model.body import chat_body
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

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_LOOPBACK = ("localhost", "127.0.0.1", "::1", "0.0.0.0")  # noqa: S104  # compared with, never bound to


class _Response(Protocol):
    @property
    def headers(self) -> Mapping[str, str]: ...
    def iter_bytes(self) -> AsyncIterator[bytes]: ...


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
        self.timeout = timeout
        self._model = name
        self._url, self._headers, self._password = _without_userinfo(url, dict(headers or {}))
        key = api_key or os.environ.get("OPENAI_API_KEY") or ("" if url is None else "none")
        if not key:
            raise UsageError(
                f"model `{self.name}` needs a key: set OPENAI_API_KEY, or name a server as in "
                f"`openai:{name}@http://localhost:8080/v1`"
            )
        self._key = _Secret(key)
        self._host = "api.openai.com" if self._url is None else urlsplit(self._url).netloc
        local = self._url is not None and urlsplit(self._url).hostname in _LOOPBACK
        if price is None and not local:
            price = price_of(name, provider="openai") if self._url is None else price_of(name, url=self._url)
        self.price = price
        self._refused: set[str] = set()
        self._ratio = 1.0
        self._served = None if self._url is None else ServedCounter(self._url, self._post)
        # a connection and a lock belong to the event loop that made them, and a script may run several in turn
        self._client: RunVar[AsyncOpenAI] = RunVar(f"client of {self.name}")
        self._pace: RunVar[Pace] = RunVar(f"pace of {self.name}")

    def __repr__(self) -> str:
        return f"OpenAI({self._model!r}, at {self._host})"

    async def ask(self, request: Request) -> AsyncIterator[Delta | Reply]:
        """Stream a reply. Raises `ModelError` with status and the server's words, never with a secret."""
        pace = self._paced()
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
                    self._refused.add(refused)
                    warnings.append(f"{self._host} refuses `{refused}`; it is no longer sent")
                    continue
                attempt += 1
                last = assembly.started or attempt >= min(self.retries + 1, failure.tries or self.retries + 1)
                if last or not failure.retryable:
                    # `from None`: the SDK's own error holds the request with its headers
                    raise model_error(
                        failure, name=self.name, where=self._host, attempts=attempt, secrets=self._secrets()
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
        try:
            client = self._client.get()
        except LookupError:
            return
        await client.close()

    async def _stream(self, body: JsonObject, assembly: Assembly, pace: Pace, attempt: int) -> AsyncGenerator[Delta]:
        async with AsyncExitStack() as stack:
            async with pace.turn():
                try:
                    response = await stack.enter_async_context(self._open(body))
                except Exception as error:
                    failure = _failure(error)
                    if failure.status == 429 and failure.retryable:
                        pace.hold(self._wait(failure, attempt))
                    raise failure from None
            pace.free()
            if "json" in response.headers.get("content-type", ""):
                # a server that does not stream answers whole
                whole = b"".join([chunk async for chunk in _body(response)])
                for delta in assembly.feed(_chunk(whole.decode(errors="replace"))):
                    yield delta
                return
            events = Events()
            async for piece in _body(response):
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

    def _open(self, body: JsonObject) -> AbstractAsyncContextManager[_Response]:
        # all of the body goes as `extra_body`: the SDK's own types know neither every server's options nor its messages
        create = cast(
            "Callable[..., AbstractAsyncContextManager[_Response]]",
            self._connected().chat.completions.with_streaming_response.create,
        )
        return create(model=self._model, messages=[], stream=True, extra_body=body)

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

    def _paced(self) -> Pace:
        try:
            return self._pace.get()
        except LookupError:
            pace = Pace()
            self._pace.set(pace)
            return pace

    def _connected(self) -> AsyncOpenAI:
        try:
            return self._client.get()
        except LookupError:
            from openai import AsyncOpenAI  # noqa: PLC0415  # half a second that only an ask needs to pay

        client = AsyncOpenAI(
            api_key=self._key.value,
            base_url=self._url,
            max_retries=0,
            timeout=self.timeout,
            default_headers={name: secret.value for name, secret in self._headers.items()},
        )
        self._client.set(client)
        return client

    async def _post(self, url: str, body: JsonObject) -> JsonObject | None:
        """The JSON object that `url` answers with; `None` where it has none. Raises `Failure`."""
        try:
            answer = await self._connected().post(url, cast_to=object, body=body)
        except Exception as error:
            raise _failure(error) from None
        return cast("JsonObject", answer) if isinstance(answer, dict) else None

    def _secrets(self) -> list[str]:
        secrets = (self._key, *self._headers.values(), *self._password)
        return [secret.value for secret in secrets if secret.value != "none"]


class _Secret:
    """A value that no representation shows and nothing can serialise by accident."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    @property
    def value(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "***"

    def __reduce__(self) -> str:
        raise TypeError("a secret is not serialised")


async def _body(response: _Response) -> AsyncIterator[bytes]:
    try:
        async for chunk in response.iter_bytes():
            yield chunk
    except Exception as error:
        raise Failure(f"the connection broke: {type(error).__name__} {error}".strip()) from None


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


def _failure(error: Exception) -> Failure:
    """An SDK error in our terms: the server's words in full, with nothing of the request that caused it."""
    from openai import APIStatusError, APITimeoutError  # noqa: PLC0415  # loaded by now

    if isinstance(error, APIStatusError):
        text = error.response.text
        return Failure(
            _words(text) or error.message,
            status=error.status_code,
            headers={name.lower(): value for name, value in error.response.headers.items()},
            param=error.param or "",
        )
    if isinstance(error, APITimeoutError):
        return Failure("the server did not answer in time")
    cause = error.__cause__ or error
    return Failure(f"{type(cause).__name__}: {cause}")


def _words(text: str) -> str:
    """The message and code of an error body; the body itself where it is of another form."""
    try:
        body: object = json.loads(text)
    except (ValueError, RecursionError):
        return text
    error = cast("dict[str, object]", body).get("error") if isinstance(body, dict) else None
    if isinstance(error, str):
        return error
    if not isinstance(error, dict):
        return text
    fields = cast("dict[str, object]", error)
    said = [str(fields[key]) for key in ("message", "code", "param") if fields.get(key)]
    return " · ".join(said) or text


def _without_userinfo(
    url: str | None, headers: dict[str, str]
) -> tuple[str | None, dict[str, _Secret], tuple[_Secret, ...]]:
    """`url` without user and password, which become a header: an address is printed, logged and put into errors.

    With it come all headers, and the forms of the password that no error may show.
    """
    secrets: tuple[str, ...] = ()
    if url is not None:
        split = urlsplit(url)
        if split.scheme not in ("http", "https") or not split.hostname:
            raise UsageError(
                "the base URL of a model is `http://HOST…` or `https://HOST…`, such as http://localhost:8080/v1"
            )
        if "@" in split.netloc:
            user, _, host = split.netloc.rpartition("@")
            token = base64.b64encode(unquote(user).encode()).decode()
            headers.setdefault("Authorization", f"Basic {token}")
            secrets = (token, unquote(user), *unquote(user).split(":")[1:])
            url = urlunsplit(split._replace(netloc=host))
    return url, {name: _Secret(value) for name, value in headers.items()}, tuple(map(_Secret, secrets))
