"""Which agent works on a thread. A name that stands in a store is never imported: only what the user says is."""

from __future__ import annotations

import importlib
import json
import os
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from tropa.agent import Agent
from tropa.errors import UsageError
from tropa.gate import Budget, refuse_effects
from tropa.messages import Json, JsonObject
from tropa.model.load import load_model
from tropa.store import Store

AD_HOC = "cli"
"""The name of an agent that is made from flags alone."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What the user said about the agent: flags of the command line."""

    agent: str | None = None
    tools: tuple[str, ...] = ()
    model: str | None = None
    instructions: str | None = None

    @property
    def flags(self) -> list[str]:
        """The same choice as arguments, for a command that is suggested."""
        given = [("--agent", self.agent), *(("--tools", one) for one in self.tools)]
        given += [("--model", self.model), ("--instructions", self.instructions)]
        return [part for name, value in given if value for part in (name, value)]


def chosen(choice: Choice, fields: Mapping[str, Json] | None = None) -> Agent:
    """The agent of `--agent`, or one made of `--tools`, `--model` and `--instructions`.

    Raises `UsageError` when something named is not there or is no agent.
    """
    if choice.agent is not None:
        if choice.tools or choice.instructions:
            raise UsageError("`--agent` brings its own tools and instructions; leave out --tools and --instructions")
        agent = agent_named(choice.agent)
        if choice.model is not None:
            agent.setup = replace(agent.setup, model=load_model(choice.model))
        return agent
    tools = [one for name in choice.tools for one in _tools(load_object(name))]
    return Agent(
        AD_HOC,
        model=choice.model or os.environ.get("TROPA_MODEL") or "needle",
        tools=tools,
        instructions=choice.instructions or "",
        fields=dict.fromkeys(fields or ()),
    )


async def agent_of(store: Store, thread: str, choice: Choice, folder: Path) -> Agent | None:
    """The agent that goes on with `thread`: of the flags, of the project's list, or of the demos; `None` otherwise.

    `folder` is where the demos' files are. The thread's own record gives only the name to look for. Raises
    `ThreadNotFound` for a thread that is not there.
    """
    if choice.agent is not None or choice.tools:
        return chosen(choice)
    name, definition = await stored_agent(store, thread)
    for spec in project_agents(Path.cwd()):
        agent = agent_named(spec)
        if agent.name == name:
            return agent
    from tropa.demo import DEMOS  # noqa: PLC0415  # only who resumes a demo needs it

    if name in DEMOS:
        return DEMOS[name](folder, choice.model or os.environ.get("TROPA_MODEL") or "needle")
    if name == AD_HOC and not definition["tools"]:
        # Nothing to import: its instructions are data, and the model is the user's word or default.
        return chosen(replace(choice, instructions=choice.instructions or cast("str", definition["instructions"])))
    return None


async def stored_agent(store: Store, thread: str, run: int | None = None) -> tuple[str, JsonObject]:
    """Name and definition of the agent of a thread's run (the latest by default), as the journal keeps them."""
    from tropa.errors import ThreadNotFound  # noqa: PLC0415

    start = (await store.journal.head(thread)).run if run is None else run
    async for entry in store.journal.events(thread, after=start - 1, until=start):
        text = await store.journal.text(cast("str", entry.body["agent"]))
        return cast("str", entry.body["name"]), cast("JsonObject", json.loads(text))
    raise ThreadNotFound(f"there is no thread {thread!r} with a run in this store; `tropa trail list` shows them")


def project_agents(folder: Path) -> list[str]:
    """The agents that the project in `folder` lists: `[tool.tropa] agents` in pyproject.toml, `agents` in tropa.toml.

    Raises `UsageError` when the file cannot be read or the list is not one of texts.
    """
    for name in ("tropa.toml", "pyproject.toml"):
        path = folder / name
        if not path.is_file():
            continue
        try:
            data = cast("dict[str, object]", tomllib.loads(path.read_text("utf-8")))
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot read {name}: {error}") from error
        table: object = data if name == "tropa.toml" else _table(_table(data.get("tool")).get("tropa"))
        listed = _table(table).get("agents")
        if listed is None:
            continue
        if isinstance(listed, list) and all(isinstance(one, str) for one in cast("list[object]", listed)):
            return cast("list[str]", listed)
        raise UsageError(f'`agents` in {name} must be a list of texts like "module:name", not {listed!r:.80}')
    return []


def agent_named(spec: str) -> Agent:
    """The agent at `module:name`: an `Agent`, or a function without arguments that makes one. Raises `UsageError`."""
    found = load_object(spec)
    if callable(found) and not isinstance(found, Agent):
        found = found()
    if not isinstance(found, Agent):
        raise UsageError(f"{spec!r} is {type(found).__name__}, not an `Agent` (or a function that makes one)")
    return found


def load_object(spec: str) -> object:
    """What stands at `module:name`, looked for from the current folder first. Raises `UsageError`."""
    module_name, colon, path = spec.partition(":")
    if not colon or not module_name or not path:
        raise UsageError(f"{spec!r} does not name an object; write MODULE:NAME, such as `warehouse:agent`")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: object = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise UsageError(f"cannot import {module_name!r} of {spec!r}: {error}; run from the folder it is in") from error
    except Exception as error:
        raise UsageError(f"importing {module_name!r} of {spec!r} failed: {type(error).__name__}: {error}") from error
    for name in path.split("."):
        try:
            found = cast("object", getattr(found, name))
        except AttributeError:
            raise UsageError(f"the module {module_name!r} has no {path!r}; check the spelling of {spec!r}") from None
    return found


def parse_fields(settings: Sequence[str]) -> dict[str, Json]:
    """`name=value` settings; a value is JSON where it reads as such, else text. Raises `UsageError`."""
    fields: dict[str, Json] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name:
            raise UsageError(f"{setting!r} sets nothing; write NAME=VALUE, such as language=Spanish")
        fields[name] = value_of(text)
    return fields


def value_of(text: str) -> Json:
    """`text` as JSON where it is JSON, else as itself."""
    try:
        return cast("Json", json.loads(text))
    except ValueError:
        return text


def with_limits(agent: Agent, limits: Mapping[str, float | None]) -> Budget | None:
    """The agent's budget with the limits that were given; `None` where none was."""
    given = {name: limit for name, limit in limits.items() if limit is not None}
    return replace(agent.setup.budget, **given) if given else None  # type: ignore[arg-type]


def refuse_all_effects(agent: Agent) -> None:
    """Let the agent read only: every side effect is refused, and nobody is asked."""
    agent.setup = replace(agent.setup, policy=refuse_effects)


def _tools(found: object) -> list[object]:
    return list(cast("Sequence[object]", found)) if isinstance(found, (list, tuple)) else [found]


def _table(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}
