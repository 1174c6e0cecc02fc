"""A model whose replies are given as data or as a function: for tests, demos and examples."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeAlias, cast

import anyio
import anyio.lowlevel

from tropa.errors import ModelError
from tropa.messages import Assistant, Call, Data, JsonObject, Media, Message, Notice, Observation, Reasoning, dumps
from tropa.model.profile import Profile
from tropa.model.protocol import Count, Delta, RawCall, Reply, Request, ToolSpec
from tropa.model.usage import Price, Usage

Item: TypeAlias = "str | Reply | Exception | Sequence[RawCall | tuple[str, JsonObject]]"
"""One scripted reply: text, a whole `Reply`, calls, or an exception to raise."""

Script: TypeAlias = "Sequence[Item] | Callable[[Request], Item | Awaitable[Item]]"

CHARACTERS_PER_TOKEN = 4
_REMEMBERED = 20_000


class Scripted:
    """A `Model` that says what it was told to say.

    Its ruler is its own: one token is four characters of a part, rounded up, so that counts add up and are exact.
    A reply longer than the request's `max_output` is cut there and ends with `length`, as a served model's would.
    Every request it got is kept in `requests`.
    """

    name: str
    profile: Profile
    price: Price | None

    def __init__(
        self,
        replies: Script,
        *,
        name: str = "scripted:test",
        profile: Profile | None = None,
        price: Price | None = None,
        delay: float = 0.0,
        ignore_limits: bool = False,
    ) -> None:
        """Reply with the items of `replies`, in order, or with what the function `replies` makes of each request.

        `delay` is in seconds, before the first delta. `ignore_limits` says more than `max_output` allows, as some
        servers do. When the items have run out, `ask` raises `ModelError`.
        """
        self.name = name
        self.profile = profile or Profile()
        self.price = price
        self.delay = delay
        self.ignore_limits = ignore_limits
        self.requests: list[Request] = []
        self._replies = replies if callable(replies) else tuple(replies)
        self._counted: dict[int, tuple[object, int]] = {}

    async def ask(self, request: Request) -> AsyncIterator[Delta | Reply]:
        """Stream the next scripted reply. Raises the scripted exception, or `ModelError` when none is left."""
        self.requests.append(request)
        item = await self._item(request, len(self.requests))
        if self.delay:
            await anyio.sleep(self.delay)
        if isinstance(item, Exception):
            raise item
        reply = self._reply(item, request)
        for delta in _deltas(reply):
            yield delta
            await anyio.lowlevel.checkpoint()
        yield reply

    async def count(self, request: Request) -> Count:
        """Count by this model's own ruler: four characters of the system text, each part and each tool are a token."""
        return Count(self._prompt(request), exact=True)

    async def close(self) -> None:
        """Nothing to let go of."""

    def _prompt(self, request: Request) -> int:
        """`prompt_tokens`, remembering what each message and the tools came to."""
        if len(self._counted) > _REMEMBERED:
            self._counted.clear()
        total = _tokens(request.system)
        for part in (request.tools, *request.messages):
            known = self._counted.get(id(part))
            if known is None or known[0] is not part:
                size = (
                    _tools_tokens(part) if isinstance(part, tuple) else _message_tokens(part, self.profile.image_tokens)
                )
                known = self._counted[id(part)] = (part, size)
            total += known[1]
        return total

    async def _item(self, request: Request, number: int) -> Item:
        if callable(self._replies):
            item = self._replies(request)
            return await item if inspect.isawaitable(item) else item
        if number > len(self._replies):
            raise ModelError(
                f"`{self.name}` was asked {number} times but its script has {len(self._replies)} replies; "
                "add replies or give a function"
            )
        return self._replies[number - 1]

    def _reply(self, item: Item, request: Request) -> Reply:
        if isinstance(item, str):
            reply = Reply(item)
        elif isinstance(item, Reply):
            reply = item
        else:
            reply = Reply("", tuple(_call(call, item) for call in _sequence(item)), finish="calls")
        size = max(_tokens(reply.text) + _tokens(reply.reasoning) + _calls_tokens(reply), reply.usage.output)
        limit = request.max_output
        if limit is not None and size > limit and not self.ignore_limits:
            reply, size = _cut(reply, limit), limit
        usage = reply.usage
        if not usage.tokens:
            usage = Usage(self._prompt(request), size, reasoning=_tokens(reply.reasoning))
        elif usage.output > size:
            usage = replace(usage, output=size)
        if usage.cost is None and self.price is not None:
            usage = replace(usage, cost=self.price.of(usage))
        return replace(reply, usage=usage, model=reply.model or self.name)


def calls(*named: tuple[str, JsonObject]) -> list[RawCall]:
    """Calls for a script: `calls(("stock", {"sku": "A-113"}), …)`."""
    return [RawCall(name, arguments) for name, arguments in named]


def prompt_tokens(request: Request, image_tokens: int = 1000) -> int:
    """The prompt's size by the scripted ruler, in tokens."""
    total = _tokens(request.system) + _tools_tokens(request.tools) + _schema_tokens(request)
    return total + sum(_message_tokens(message, image_tokens) for message in request.messages)


def _tools_tokens(tools: Sequence[ToolSpec]) -> int:
    return sum(_tokens(tool.name + tool.description + dumps(tool.schema)) for tool in tools)


def _schema_tokens(request: Request) -> int:
    return 0 if request.output_schema is None else _tokens(dumps(request.output_schema))


def _message_tokens(message: Message, image_tokens: int) -> int:
    if isinstance(message, Notice):
        return _tokens(message.text)
    total = 0
    for part in message.parts:
        if isinstance(part, Media):
            total += image_tokens
        elif isinstance(part, Data):
            total += _tokens(dumps(part.value))
        elif isinstance(part, Call):
            total += _tokens(part.tool + dumps(part.arguments))
        elif not isinstance(part, Reasoning):
            total += _tokens(part.text)
    return max(total, 1) if isinstance(message, (Assistant, Observation)) else total


def _tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def _calls_tokens(reply: Reply) -> int:
    return sum(_tokens(call.name + _arguments(call)) for call in reply.calls)


def _arguments(call: RawCall) -> str:
    return call.arguments if isinstance(call.arguments, str) else dumps(call.arguments)


def _cut(reply: Reply, limit: int) -> Reply:
    """`reply` as far as `limit` tokens reach: reasoning first, then text, then calls, the last cut in its arguments."""
    reasoning = reply.reasoning[: limit * CHARACTERS_PER_TOKEN]
    left = limit - _tokens(reasoning)
    text = reply.text[: left * CHARACTERS_PER_TOKEN]
    left -= _tokens(text)
    kept: list[RawCall] = []
    for call in reply.calls:
        room = left * CHARACTERS_PER_TOKEN - len(call.name)
        if room <= 0:
            break
        arguments = _arguments(call)
        whole = len(arguments) <= room
        kept.append(call if whole else replace(call, arguments=arguments[:room]))
        if not whole:
            break
        left -= _tokens(call.name + arguments)
    return replace(reply, text=text, reasoning=reasoning, calls=tuple(kept), finish="length")


def _sequence(item: object) -> Sequence[object]:
    if isinstance(item, Sequence):
        return cast("Sequence[object]", item)
    raise ModelError(f"a scripted reply is text, a `Reply`, a list of calls or an exception, not {item!r}")


def _call(call: object, item: object) -> RawCall:
    if isinstance(call, RawCall):
        return call
    if isinstance(call, tuple):
        pair = cast("tuple[object, ...]", call)
        if len(pair) == 2 and isinstance(pair[0], str) and (pair[1] is None or isinstance(pair[1], (str, dict))):
            return RawCall(pair[0], cast("JsonObject | str | None", pair[1]))
    raise ModelError(f"a scripted list of calls has (name, arguments) pairs, not {call!r}; the reply was {item!r}")


def _deltas(reply: Reply) -> list[Delta]:
    deltas = [Delta("reasoning", reply.reasoning)] if reply.reasoning else []
    step = max(1, -(-len(reply.text) // 3))
    deltas += [Delta("text", reply.text[start : start + step]) for start in range(0, len(reply.text), step)]
    return deltas + [Delta("call", f"{call.name} {_arguments(call)}") for call in reply.calls]
