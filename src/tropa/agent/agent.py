"""An agent: instructions, tools and a model; its runs live on threads of a store."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from tropa.agent.react import react
from tropa.agent.structured import Structured
from tropa.errors import BudgetError, Conflict, StoreError, TropaError, UsageError
from tropa.gate import Budget, Policy, ask_before_effects
from tropa.messages import Json, JsonObject
from tropa.model import Model
from tropa.model.load import load_model
from tropa.session import Field, Input, Migration, Run, Session, Setup, Watcher, begin, reopen, run_of
from tropa.store import Store, connect
from tropa.tool import Toolbox

_POLL = 0.05
"""Seconds between tries to begin on a thread that somebody works on."""


class Agent:
    """A model with instructions and tools. The object itself keeps no conversation: threads do, in a store.

    Args:
        name: names the agent in trails and approvals.
        model: a `Model`, or its name for `load_model`, such as `"needle"` or `"openai:gpt-4.1-mini"`.
        tools: functions, tools, or objects whose methods are tools. One that does not say `read_only` asks a person.
        instructions: the system instruction; `{field}` places are filled from the state at each ask.
        fields: the state's fields: a default value, or a `Field` with a reducer.
        fields_version: count it up when the fields change their names or meaning; threads of an older version are
            brought along by `migrations`, those of a newer one are refused.
        migrations: by version, what turns its fields into those of the next one.
        budget: the limits of each run; 25 steps by default.
        policy: what happens to a proposed call; see `tropa.gate`.
        output: a type (pydantic model, dataclass, …) for structured answers.
        options: settings for the model (`temperature`, `seed`, …); what is not set is not sent.
        max_output: most tokens of one reply; the model's own default otherwise.
        approval_seconds: how long a person may take to decide; after that the call counts as not approved.

    Raises `UsageError` for a model that is not known, `ToolDefinitionError` for a function that cannot be a tool.
    """

    def __init__(
        self,
        name: str,
        *,
        model: str | Model,
        tools: Sequence[Callable[..., object] | object] = (),
        instructions: str = "",
        fields: Mapping[str, Json | Field] | None = None,
        fields_version: int = 1,
        migrations: Mapping[int, Migration] | None = None,
        budget: Budget | None = None,
        policy: Policy = ask_before_effects,
        output: type[object] | None = None,
        options: JsonObject | None = None,
        max_output: int | None = None,
        approval_seconds: float | None = None,
    ) -> None:
        self.name = name
        self._structured = None if output is None else Structured(output)
        self.setup = Setup(
            name=name,
            model=load_model(model),
            toolbox=Toolbox(tools),
            instructions=instructions,
            fields={key: value if isinstance(value, Field) else Field(value) for key, value in (fields or {}).items()},
            fields_version=fields_version,
            migrations=dict(migrations or {}),
            budget=budget or Budget(),
            policy=policy,
            output=None if self._structured is None else self._structured.schema,
            options=dict(options or {}),
            max_output=max_output,
            approval_seconds=approval_seconds,
        )

    async def run(
        self,
        input: Input,
        *,
        store: Store | str | Path | None = None,
        thread: str | None = None,
        budget: Budget | None = None,
        dry_run: bool = False,
        wait: float = 0.0,
        watch: Watcher | None = None,
        **fields: Json,
    ) -> Run:
        """Take one request on a thread and work until it is answered, waits for a person, or is stopped.

        Args:
            input: the user's message: text, or parts with images.
            store: where the thread lives; in memory, and gone afterwards, when it is not given.
            thread: its identifier, any text; a fresh unguessable one when it is not given.
            budget: limits of this run instead of the agent's.
            dry_run: execute no side effects; the trail says what would have happened.
            wait: seconds to wait for a thread that somebody works on.
            watch: called with each piece of a reply and each event as it is journaled.
            fields: fields of the state to set with this request.

        Raises:
            ThreadWaiting: the thread waits for a decision.
            Conflict: somebody works on the thread; nothing was done.
            BudgetError: the budget limits cost and the model's price is not known.
            StoreError: the journal cannot be written.
        """
        self._check_budget(budget)
        name = f"t{secrets.token_hex(12)}" if thread is None else thread
        deadline = time.monotonic() + wait
        async with _opened(store) as held:
            while True:
                recalled = held.memory.knows(name)
                session = await begin(
                    held.journal,
                    name,
                    self.setup,
                    input,
                    fields=fields,
                    budget=budget,
                    dry=dry_run,
                    wait=max(0.0, deadline - time.monotonic()),
                    watch=watch,
                    memory=held.memory,
                )
                try:
                    return await self._drive(session)
                except Conflict:
                    # Somebody was faster, or what was remembered is old; nothing was written.
                    if session.born or not (recalled or time.monotonic() < deadline):
                        raise
                    await asyncio.sleep(0 if recalled else _POLL)

    async def submit(
        self,
        input: Input,
        *,
        store: Store | str | Path,
        thread: str | None = None,
        budget: Budget | None = None,
        dry_run: bool = False,
        **fields: Json,
    ) -> str:
        """Accept one request without working on it, and return its thread. `resume` (or a worker) takes it up.

        What it takes and raises is as in `run`.
        """
        self._check_budget(budget)
        async with _opened(store) as held:
            session = await begin(
                held.journal,
                f"t{secrets.token_hex(12)}" if thread is None else thread,
                self.setup,
                input,
                fields=fields,
                budget=budget,
                dry=dry_run,
                start=False,
            )
            return session.thread

    async def resume(
        self,
        thread: str,
        *,
        store: Store | str | Path,
        budget: Budget | None = None,
        watch: Watcher | None = None,
        leave: Callable[[], bool] | None = None,
    ) -> Run:
        """Go on with the thread's latest run: after a decision, a crash, a failure or a limit. Any process may.

        A run that is answered, or that still waits, is returned as it stands. `leave` is looked at between steps: once it
        says so (a worker that shuts down), the run is parked for another process. Raises `ThreadNotFound`, and `Conflict`
        when somebody works on it.
        """
        self._check_budget(budget)
        async with _opened(store) as held:
            session = await reopen(held.journal, thread, self.setup, budget=budget, watch=watch, memory=held.memory)
            if session is None:
                return self._read(await run_of(held.journal, thread))
            return await self._drive(session, leave)

    def run_sync(
        self,
        input: Input,
        *,
        store: Store | str | Path | None = None,
        thread: str | None = None,
        budget: Budget | None = None,
        dry_run: bool = False,
        **fields: Json,
    ) -> Run:
        """`run` for scripts. Raises `UsageError` inside a running event loop: there, `await agent.run(…)`."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            raise UsageError("`run_sync` was called inside a running event loop; use `await agent.run(…)` there")

        async def work() -> Run:
            try:
                given: dict[str, Any] = dict(fields)
                return await self.run(input, store=store, thread=thread, budget=budget, dry_run=dry_run, **given)
            finally:
                await self.close()

        return asyncio.run(work())

    async def close(self) -> None:
        """Let go of the model's connections and processes; harmless when called twice."""
        await self.setup.model.close()

    async def _drive(self, session: Session, leave: Callable[[], bool] | None = None) -> Run:
        try:
            async with session.alive():
                run = await react(session, None if self._structured is None else self._structured.check, leave)
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                await session.cancel()
            if session.record.cancelling and (task := asyncio.current_task()) is not None:
                task.uncancel()
                return await session.view()
            raise
        except StoreError:
            raise
        except TropaError as error:
            return await session.fail(error)
        except Exception as error:
            await session.fail(error)
            raise
        return self._read(run)

    def _read(self, run: Run) -> Run:
        return run if self._structured is None else self._structured.read(run)

    def _check_budget(self, budget: Budget | None) -> None:
        limits = budget or self.setup.budget
        if limits.cost is not None and self.setup.model.price is None:
            raise BudgetError(
                f"the budget limits cost, but the price of `{self.setup.model.name}` is not known;"
                " give the model a `Price`, or limit tokens instead"
            )


@asynccontextmanager
async def _opened(store: Store | str | Path | None) -> AsyncGenerator[Store]:
    if isinstance(store, Store):
        yield store
        return
    held = connect(":memory:" if store is None else store)
    try:
        yield held
    finally:
        await held.close()
