"""Fields that change: by a request, through their reducers; by a new version of the agent, through migrations."""

from __future__ import annotations

from collections.abc import Mapping

from tropa.errors import UsageError
from tropa.events import NewEvent, event
from tropa.messages import Json, JsonObject, dumps, loads, loads_object, storable
from tropa.session.setup import Field, Setup


def migrate(setup: Setup, stored: JsonObject, version: int) -> list[NewEvent]:
    """The events that bring fields stored under `version` to the agent's own version; messages are never touched.

    Raises `UsageError` where a migration is missing, and where the thread is newer than the agent: nothing is written.
    """
    if version > setup.fields_version:
        raise UsageError(
            f"the thread's fields have version {version}, the agent `{setup.name}` knows up to {setup.fields_version};"
            " run it with the newer code"
        )
    fields = loads_object(dumps(stored))
    for step in range(version, setup.fields_version):
        move = setup.migrations.get(step)
        if move is None:
            names = ", ".join(f"`{name}`" for name in stored) or "none"
            raise UsageError(
                f"the thread's fields ({names}) have version {version}, the agent `{setup.name}` has"
                f" {setup.fields_version}: register a migration from {step} to {step + 1}, `migrations={{{step}: …}}`"
            )
        fields = move(fields)
        for name, value in fields.items():
            storable(value, name)
    gone = [event("field.set", {"name": name, "op": "unset", "value": None}) for name in stored if name not in fields]
    return gone + [
        event("field.set", {"name": name, "op": "set", "value": value})
        for name, value in fields.items()
        if name not in stored or dumps(stored[name]) != dumps(value)
    ]


def field_events(setup: Setup, stored: JsonObject, given: Mapping[str, Json]) -> list[NewEvent]:
    """The events for the fields that came with a request. Raises `UsageError` and `NotStorable` naming the field."""
    events: list[NewEvent] = []
    for name, value in given.items():
        spec = setup.fields.get(name)
        if spec is None:
            known = ", ".join(f"`{field}`" for field in setup.fields) or "none"
            raise UsageError(f"the agent `{setup.name}` has no field `{name}`; its fields: {known}")
        storable(value, name)
        # A copy: the caller may go on changing its own.
        events += _changed(name, spec, stored, loads(dumps(value)))
    return events


def _changed(name: str, spec: Field, stored: JsonObject, value: Json) -> list[NewEvent]:
    before = stored.get(name, spec.default)
    if spec.reducer == "append":
        if not isinstance(value, list):
            raise UsageError(f"the field `{name}` is appended to: pass a list of items, not {value!r:.80}")
        start: list[NewEvent] = []
        if name not in stored and spec.default:
            start = [event("field.set", {"name": name, "op": "set", "value": spec.default})]
        return [*start, event("field.set", {"name": name, "op": "append", "value": value})]
    if callable(spec.reducer):
        reduced = spec.reducer(before, value)
        storable(reduced, name)
        return [event("field.set", {"name": name, "op": "set", "value": loads(dumps(reduced)), "given": value})]
    if spec.reducer != "overwrite":
        raise UsageError(
            f"the field `{name}` has the reducer {spec.reducer!r}; use 'overwrite', 'append' or a function"
        )
    # As JSON: in Python, 1 equals True.
    if name in stored and dumps(before) == dumps(value):
        return []
    return [event("field.set", {"name": name, "op": "set", "value": value})]
