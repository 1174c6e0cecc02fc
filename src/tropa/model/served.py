"""Exact prompt counts by the server that serves the model: llama.cpp's and vLLM's tokenizer endpoints."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from tropa.messages import Json, JsonObject
from tropa.model.failures import Failure
from tropa.model.protocol import Count

Post: TypeAlias = "Callable[[str, JsonObject], Awaitable[JsonObject | None]]"
"""Send a JSON body to a URL; the answer's object, or `None`. Raises `Failure`."""


class ServedCounter:
    """Counts by the server's own tokenizer and template. What the server offers is found out once."""

    def __init__(self, base_url: str, post: Post) -> None:
        """`base_url` is that of the chat API; the tokenizer stands beside its `/v1`."""
        self._root = base_url.rstrip("/").removesuffix("/v1")
        self._post = post
        self._ways = [self._llama_cpp, self._vllm]

    async def count(self, body: JsonObject, image_tokens: int) -> Count | None:
        """The prompt tokens of a chat completion body; `None` where the server cannot say (now, or ever)."""
        prompt: JsonObject = {key: body[key] for key in ("model", "messages", "tools") if key in body}
        for way in tuple(self._ways):
            try:
                tokens = await way(prompt)
            except Failure as failure:
                if failure.status is None or failure.status == 429 or (failure.status >= 500 and failure.status != 501):
                    return None  # trouble of the moment; another time it may answer
                tokens = None
                if failure.status in (400, 422):
                    continue  # it is there, but not for these messages
            if tokens is None:
                self._ways = [other for other in self._ways if other != way]  # two counts may find out at once
                continue
            self._ways = [way]
            pictures = _pictures(body["messages"])
            return Count(tokens + pictures * image_tokens, exact=pictures == 0)
        return None

    async def _llama_cpp(self, prompt: JsonObject) -> int | None:
        applied = await self._post(f"{self._root}/apply-template", prompt)
        text = (applied or {}).get("prompt")
        if not isinstance(text, str):
            return None
        body: JsonObject = {"content": text, "add_special": True, "parse_special": True}
        tokens = (await self._post(f"{self._root}/tokenize", body) or {}).get("tokens")
        return len(tokens) if isinstance(tokens, list) else None

    async def _vllm(self, prompt: JsonObject) -> int | None:
        answer = await self._post(f"{self._root}/tokenize", {**prompt, "add_generation_prompt": True})
        count = (answer or {}).get("count")
        return count if isinstance(count, int) and not isinstance(count, bool) else None


def _pictures(value: Json) -> int:
    if isinstance(value, list):
        return sum(map(_pictures, value))
    if isinstance(value, dict):
        return 1 if value.get("type") == "image_url" else sum(map(_pictures, value.values()))
    return 0
