"""Any GGUF file as a model: llama.cpp in a child process, driven over its own OpenAI-compatible API."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import anyio.to_thread

from tropa.errors import ModelError, UsageError
from tropa.messages import JsonObject, dumps
from tropa.model.llama.server import LlamaServer, Served
from tropa.model.openai import OpenAI
from tropa.model.profile import Profile
from tropa.model.prompted import Prompted
from tropa.model.protocol import Count, Delta, Model, Reply, Request
from tropa.model.usage import Price


class Llama:
    """A `Model` from a GGUF file, on this machine.

    A llama.cpp server is started by the first ask or count, on loopback, at a port the system picks and behind a key of
    its own; it ends with this process, and the next ask starts it again should it die. Models whose chat template knows
    tools get them natively, all others by the prompted protocol with constrained output. Prompts are counted exactly,
    by the server's template and tokenizer, and one that does not fit the context is never sent.
    """

    name: str
    profile: Profile
    price: Price | None

    def __init__(self, path: str | Path, *, context: int = 4096, threads: int | None = None) -> None:
        """The model in the GGUF file `path`, with a window of `context` tokens.

        `threads` defaults to one less than the machine has: llama.cpp's threads wait for each other busily, and on a
        machine that is busy otherwise one too many makes it ten times slower.

        Raises `UsageError` when there is no such file. That xllamacpp is missing shows at the first ask.
        """
        file = Path(path).expanduser()
        if not file.is_file():
            raise UsageError(f"there is no file {str(path)!r}; give the path of a GGUF file")
        self.name = f"llama:{file.stem}"
        self.price = Price(0, 0)
        self.profile = Profile(context=context, max_output=min(1024, context // 2), native_tools=True)
        self._server = LlamaServer(file.resolve(), context, threads or max(1, (os.cpu_count() or 2) - 1))
        self._served: Served | None = None
        self._model: Model | None = None

    @property
    def pid(self) -> int | None:
        """The server's process id while it runs."""
        return self._server.pid

    async def ask(self, request: Request) -> AsyncIterator[Delta | Reply]:
        """Stream deltas, then the reply. Raises `ModelError`; also, before anything is sent, when it cannot fit."""
        model = await self._started()
        count = await model.count(request)
        if count.tokens >= self.profile.context:
            raise ModelError(
                f"the request is {count.tokens} tokens and the context of {self.name} is {self.profile.context}: "
                "shorten it, or open the model with a larger `context`"
            )
        async for item in model.ask(request):
            yield replace(item, model=self.name) if isinstance(item, Reply) else item

    async def count(self, request: Request) -> Count:
        """Prompt tokens, exact: the server's own template and tokenizer, tool listing included."""
        return await (await self._started()).count(request)

    async def close(self) -> None:
        """End the server. A later ask starts it again."""
        if self._model is not None:
            await self._model.close()
        await anyio.to_thread.run_sync(self._server.close)

    async def _started(self) -> Model:
        served = await anyio.to_thread.run_sync(self._server.start, abandon_on_cancel=True)
        if self._model is None or served != self._served:
            profile = replace(self.profile, context=served.context, native_tools=served.tools)
            model = _Guided(
                OpenAI(
                    self.name.removeprefix("llama:"),
                    base_url=f"{served.url}/v1",
                    api_key=served.key,
                    profile=profile,
                    price=self.price,
                    retries=0,
                )
            )
            self._model = model if served.tools else Prompted(model)
            self._served, self.profile = served, self._model.profile
        return self._model


class _Guided:
    """Sends an output schema as an LLGuidance grammar.

    llama.cpp's own conversion allows free white space, which a small model fills its output with (88 tokens for a call
    that needs 19), and knows fewer keywords.
    """

    name: str
    profile: Profile
    price: Price | None

    def __init__(self, inner: OpenAI) -> None:
        self.inner = inner
        self.name, self.profile, self.price = inner.name, inner.profile, inner.price

    async def ask(self, request: Request) -> AsyncIterator[Delta | Reply]:
        async for item in self.inner.ask(guided(request)):
            yield item

    async def count(self, request: Request) -> Count:
        return await self.inner.count(guided(request))

    async def close(self) -> None:
        await self.inner.close()


def guided(request: Request) -> Request:
    """`request` with its output schema as a grammar among the options. Keywords the grammar cannot hold are left out."""
    if request.output_schema is None:
        return request
    hints: JsonObject = {"whitespace_flexible": False, "lenient": True}
    grammar = "%llguidance {}\nstart: %json " + dumps({**request.output_schema, "x-guidance": hints})
    return replace(request, output_schema=None, options={**request.options, "grammar": grammar})
