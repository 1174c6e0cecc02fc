"""The way to a server: the SDK's client, one pace for all who share it, and secrets that nothing shows."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol, cast
from urllib.parse import unquote, urlsplit, urlunsplit

from anyio.lowlevel import RunVar

from tropa.errors import UsageError
from tropa.messages import JsonObject
from tropa.model.failures import Failure
from tropa.model.retry import Pace

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_LOOPBACK = ("localhost", "127.0.0.1", "::1", "0.0.0.0")  # noqa: S104  # compared with, never bound to

# A server limits a key and not an object: agents that each load their own model still share one limit.
_PACES: RunVar[dict[tuple[str, bytes], Pace]] = RunVar("paces by server and key")


class Response(Protocol):
    """An answer whose body is still on its way."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in any case."""
        ...

    def iter_bytes(self) -> AsyncIterator[bytes]:
        """The body as it arrives."""
        ...


class Connection:
    """Requests to one server under one key. Every error it raises is a `Failure`, without the request's headers."""

    def __init__(self, url: str | None, key: str, headers: Mapping[str, str], timeout: float) -> None:
        """A connection to the API at `url`, else to OpenAI. `timeout` is in seconds.

        Raises `UsageError` on a URL that is none.
        """
        self.url, self._headers, self._password = _without_userinfo(url, dict(headers))
        self.host = "api.openai.com" if self.url is None else urlsplit(self.url).netloc
        self.local = self.url is not None and urlsplit(self.url).hostname in _LOOPBACK
        self._key = _Secret(key)
        self._timeout = timeout
        # a client belongs to the event loop that made it, and a script may run several in turn
        self._client: RunVar[AsyncOpenAI | None] = RunVar(f"client for {self.host}", None)

    @property
    def pace(self) -> Pace:
        """The pace of all who ask this server under this key, in this event loop."""
        paces = _PACES.get(dict[tuple[str, bytes], Pace]())
        _PACES.set(paces)
        return paces.setdefault((self.host, hashlib.sha256(self._key.value.encode()).digest()), Pace())

    @property
    def secrets(self) -> list[str]:
        """What no error may show."""
        secrets = (self._key, *self._headers.values(), *self._password)
        return [secret.value for secret in secrets if secret.value != "none"]

    def chat(self, body: JsonObject) -> AbstractAsyncContextManager[Response]:
        """Send a chat completion request; entering gives the response or raises the SDK's error."""
        # all of the body goes as `extra_body`: the SDK's own types know neither every server's options nor its messages
        create = cast(
            "Callable[..., AbstractAsyncContextManager[Response]]",
            self._connected().chat.completions.with_streaming_response.create,
        )
        return create(model=str(body["model"]), messages=[], stream=True, extra_body=body)

    async def post(self, url: str, body: JsonObject) -> JsonObject | None:
        """The JSON object that `url` answers with; `None` where it has none. Raises `Failure`."""
        try:
            answer = await self._connected().post(url, cast_to=object, body=body)
        except Exception as error:
            raise failure_of(error) from None
        return cast("JsonObject", answer) if isinstance(answer, dict) else None

    async def close(self) -> None:
        """Close the connections of this event loop."""
        if client := self._client.get():
            self._client.set(None)
            await client.close()

    def _connected(self) -> AsyncOpenAI:
        if client := self._client.get():
            return client
        from openai import AsyncOpenAI, Timeout  # noqa: PLC0415  # half a second that only an ask needs to pay

        client = AsyncOpenAI(
            api_key=self._key.value,
            base_url=self.url,
            max_retries=0,
            timeout=Timeout(self._timeout, connect=min(10.0, self._timeout)),
            default_headers={name: secret.value for name, secret in self._headers.items()},
        )
        self._client.set(client)
        return client


async def body_of(response: Response) -> AsyncIterator[bytes]:
    """The body of `response` as it arrives. Raises `Failure` when the connection breaks."""
    try:
        async for chunk in response.iter_bytes():
            yield chunk
    except Exception as error:
        raise Failure(f"the connection broke: {type(error).__name__} {error}".strip()) from None


def failure_of(error: Exception) -> Failure:
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
