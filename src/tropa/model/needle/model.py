"""Needle 3, the embedded default model: 35 MB, on a CPU, offline, in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final, cast

import anyio
import anyio.to_thread

from tropa.errors import MissingExtra, ModelError
from tropa.messages import JsonObject, dumps
from tropa.model.estimate import PER_MESSAGE, estimate_text, with_margin
from tropa.model.needle.process import EngineProcess, Job, Network
from tropa.model.needle.turns import (
    Turn,
    answer_from_results,
    engine_tools,
    engine_turns,
    is_settled,
    new_calls,
    plain,
    read_turns,
)
from tropa.model.profile import Profile
from tropa.model.protocol import Count, Delta, RawCall, Reply, Request, ToolSpec
from tropa.model.usage import Price, Usage

CONTEXT: Final = 8192
"""Tokens that the engine reads at most; it says so itself when more is asked of it."""
MAX_OUTPUT: Final = 512
CALL_TOKENS: Final = 60
"""What a call with its reasoning takes in the dialogue, on average."""
_NOTHING_FITS = "No call was made: none of the tools fits this request, or a value for it is missing."


class Needle:
    """A `Model` for direct requests: it finds the tool, fills its arguments, and writes no prose.

    The engine returns calls, or nothing. What becomes the reply follows these rules:

    1. It reads the system text, the tools, the newest user message with the results that followed it, and the turn
       before that when it made calls (*And in Gdansk?* needs it). Older turns are left out: they make its calls worse.
    2. Calls it proposes are the reply, except those made before in this turn (whatever came of them) and those it
       withholds itself (too unsure, or the user said *not*). A reply names what was withheld in `warnings`.
    3. Where no new call is left and there are results, the text lists them, under the words *From the tool results*:
       made by this class from the observations, since the engine writes no answers. With an `output_schema` the
       engine fills that schema from the request and the results instead.
    4. Where there are no results either, the text says that no call was made.
    5. After a call that was rejected or cancelled, or whose outcome is unknown, the engine is not asked again.

    The engine runs in a child process with telemetry off and, where the system allows, in an empty network
    namespace: see `network`. It is started by the first ask, and again by the next ask after it died. Its output
    tokens are exact; input tokens are exact for system text and tools, and estimated for the turns.
    """

    name: str
    profile: Profile
    price: Price | None

    def __init__(self, *, command: tuple[str, ...] | None = None) -> None:
        """Raises `MissingExtra` when the engine is not installed. `command` replaces the child, for tests."""
        self.name = "needle:needle-3"
        self.profile = Profile(
            context=CONTEXT, max_output=MAX_OUTPUT, native_tools=True, strict_schema=True, rescue_calls=False
        )
        self.price = Price(0, 0)
        self._prefixes: dict[tuple[str, str], int] = {}
        self._engine = EngineProcess(command or _command(), _environment())

    @property
    def network(self) -> Network:
        """Whether the child can reach a network: `none`, or `not isolated` where the system offers no way."""
        return self._engine.network

    @property
    def pid(self) -> int | None:
        """The child's process id while it runs."""
        return self._engine.pid

    async def ask(self, request: Request) -> AsyncIterator[Delta | Reply]:
        """Stream the model's reasoning and calls or text, then the reply. Raises `ModelError`."""
        earlier, turn = read_turns(request.messages)
        reply = await self._act(request, earlier, turn) if request.tools and not is_settled(turn) else None
        if reply is None or not (reply.calls or reply.finish == "length"):
            reply = await self._conclude(request, turn, reply)
        if reply.reasoning:
            yield Delta("reasoning", reply.reasoning)
        for call in reply.calls:
            yield Delta("call", f"{call.name} {dumps(cast('JsonObject', call.arguments))}")
        if reply.text:
            yield Delta("text", reply.text)
        yield reply

    async def count(self, request: Request) -> Count:
        """An estimate, flagged: the engine shows its tokenizer only while it reads."""
        earlier, turn = read_turns(request.messages)
        tokens = 0.0
        if request.tools and not is_settled(turn):
            turns = engine_turns(earlier, turn)
            tokens += self._static(request.system, engine_tools(request.tools)) + _estimate(turns)
        if request.output_schema is not None:
            tools = engine_tools((_answer_tool(request.output_schema),))
            tokens += self._static(request.system, tools) + _estimate(engine_turns(turn))
        return Count(with_margin(tokens), exact=False)

    async def close(self) -> None:
        """End the child. A later ask starts it again."""
        await anyio.to_thread.run_sync(self._engine.close)

    def _static(self, system: str, tools: str) -> float:
        known = self._prefixes.get((system, tools))
        return estimate_text(system) + estimate_text(tools) + PER_MESSAGE if known is None else known

    async def _act(self, request: Request, earlier: Turn | None, turn: Turn) -> Reply:
        turns = engine_turns(earlier, turn)
        answer = await self._exchange(request, engine_tools(request.tools), turns, _limit(request))
        response = _object(answer.get("response"))
        usage = _usage(answer, turns)
        warnings = _remarks(request, response)
        reasoning = _text(response.get("reasoning"))
        if response.get("error") and usage.output >= _limit(request):
            return Reply("", (), reasoning, "length", usage, self.name, warnings)
        negated = _object(response.get("validation")).get("negation") is True
        calls = () if negated else tuple(new_calls(turn, _calls(response, "function_calls")))
        return Reply("", calls, reasoning, "calls" if calls else "stop", usage, self.name, warnings)

    async def _conclude(self, request: Request, turn: Turn, acted: Reply | None) -> Reply:
        warnings = acted.warnings if acted else _remarks(request, {})
        usage = acted.usage if acted else Usage(cost=0.0)
        reasoning = acted.reasoning if acted else ""
        if request.output_schema is not None:
            # what the first ask wrote is part of the same output limit
            limit = max(1, _limit(request) - usage.output)
            text, spent, cut = await self._fill(request, turn, request.output_schema, limit)
            return Reply(text, (), reasoning, "length" if cut else "stop", usage + spent, self.name, warnings)
        text = answer_from_results(turn) if turn.observations else _NOTHING_FITS
        return Reply(text, (), reasoning, "stop", usage, self.name, warnings)

    async def _fill(self, request: Request, turn: Turn, schema: JsonObject, limit: int) -> tuple[str, Usage, bool]:
        """Let the engine extract `schema` from the request and its results, as a tool that takes just that."""
        text = "Record: " + "\n".join(engine_turns(turn))
        answer = await self._exchange(request, engine_tools((_answer_tool(schema),)), [text], limit)
        response = _object(answer.get("response"))
        # Data is no action: what the engine would withhold as a call is still its best answer, and gets validated.
        found = [*_calls(response, "function_calls"), *_calls(response, "suppressed_calls")]
        usage = _usage(answer, [text])
        if not found:
            return "", usage, bool(response.get("error"))
        arguments = cast("JsonObject", found[0].arguments)
        return dumps(arguments if _is_object(schema) else arguments.get("value")), usage, False

    async def _exchange(self, request: Request, tools: str, turns: list[str], limit: int) -> JsonObject:
        system = plain(request.system)
        job = Job({"system": system, "tools": tools, "turns": list(turns), "max_output": limit})
        tokens = sum(estimate_text(text) for text in turns)
        if tokens > CONTEXT:
            raise ModelError(f"the request is about {tokens:.0f} tokens, and {self.name} reads {CONTEXT}: shorten it")
        try:
            answer = await anyio.to_thread.run_sync(self._engine.exchange, job, abandon_on_cancel=True)
        except anyio.get_cancelled_exc_class():
            self._engine.cancel(job)
            raise
        if fault := answer.get("error"):
            remedy = "give it fewer tools or shorter descriptions" if answer.get("kind") == "context" else "report it"
            raise ModelError(f"{self.name} refused the request: {fault} ({remedy})")
        # the newest few are enough: an agent has few sets of tools
        self._prefixes = {**dict(list(self._prefixes.items())[-7:]), (system, tools): _number(answer.get("prefix"))}
        return answer


def _command() -> tuple[str, ...]:
    """The child's command line. The engine is found but not imported: its Python part could send telemetry."""
    spec = importlib.util.find_spec("needle")
    suffix = {"darwin": "dylib", "win32": "dll"}.get(sys.platform, "so")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        library, weights = Path(folder) / f"libneedle3.{suffix}", Path(folder) / "needle3.cact"
        if library.is_file() and weights.is_file():
            worker = Path(__file__).with_name("worker.py")
            return (sys.executable, "-I", str(worker), str(library), str(weights))
    raise MissingExtra("the `needle` model is not installed; install it with: pip install 'tropa[needle]'")


def _environment() -> dict[str, str]:
    """As little as an interpreter needs, and telemetry off by both of the engine's switches."""
    kept = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH", "LANG", "TMPDIR")
    inherited = {name: os.environ[name] for name in kept if name in os.environ}
    return {**inherited, "NEEDLE_TELEMETRY": "0", "DO_NOT_TRACK": "1"}


def _limit(request: Request) -> int:
    return MAX_OUTPUT if request.max_output is None else max(1, min(request.max_output, MAX_OUTPUT))


def _object(value: object) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _usage(answer: JsonObject, turns: list[str]) -> Usage:
    read = _number(answer.get("prefix")) + round(_estimate(turns))
    return Usage(read, _number(answer.get("tokens")), cost=0.0, estimated=True)


def _estimate(turns: list[str]) -> float:
    """Tokens of the turns and of the calls that the engine wrote between them."""
    return sum(estimate_text(text) + PER_MESSAGE for text in turns) + CALL_TOKENS * (len(turns) - 1)


def _is_object(schema: JsonObject) -> bool:
    return schema.get("type") == "object" or "properties" in schema


def _answer_tool(schema: JsonObject) -> ToolSpec:
    """The answer as a tool; a schema that is no object becomes the argument `value`."""
    if not _is_object(schema):
        inner: JsonObject = {key: value for key, value in schema.items() if key != "$defs"}
        outer: JsonObject = {"type": "object", "properties": {"value": inner}, "required": ["value"]}
        schema = {**outer, "$defs": schema["$defs"]} if "$defs" in schema else outer
    return ToolSpec("answer", "Record the answer.", schema)


def _calls(response: JsonObject, key: str) -> list[RawCall]:
    listed = response.get(key)
    items = [_object(item) for item in listed] if isinstance(listed, list) else []
    return [RawCall(_text(item.get("name")), _object(item.get("arguments"))) for item in items]


def _remarks(request: Request, response: JsonObject) -> tuple[str, ...]:
    """What is worth a record: settings it has no use for, calls it withheld, values it could not ground."""
    remarks = [f"{option!r} has no effect on this model" for option in request.options]
    sure = response.get("confidence")
    remarks += [
        f"withheld as too unsure ({sure}): {call.name} {dumps(cast('JsonObject', call.arguments))}"
        for call in _calls(response, "suppressed_calls")
    ]
    validation = _object(response.get("validation"))
    if ungrounded := validation.get("ungrounded"):
        remarks.append(f"values that do not stand in the request: {dumps(ungrounded)}")
    if validation.get("negation") is True:
        remarks.append("withheld: the request says not to")
    if error := response.get("error"):
        remarks.append(f"the engine gave up on a call: {error}")
    return tuple(remarks)
