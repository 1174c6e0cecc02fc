"""Structured answers: a type whose JSON Schema the model gets and whose validator reads what it said."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from pydantic import TypeAdapter, ValidationError

from tropa.errors import InvalidArguments
from tropa.messages import Json, JsonObject, dumps
from tropa.session import Run

_SHOWN = 3


class Structured:
    """A type for answers. `schema` is its JSON Schema."""

    def __init__(self, type: type[object]) -> None:
        self._adapter: TypeAdapter[object] = TypeAdapter(type)
        self.schema: JsonObject = self._adapter.json_schema()

    def check(self, text: str) -> Json:
        """The answer as JSON. Raises `InvalidArguments` with words for the model where it does not fit the type."""
        try:
            value = self._adapter.validate_json(_bare(text))
        except ValidationError as error:
            faults = "; ".join(
                f"`{'.'.join(map(str, item['loc'])) or 'answer'}`: {item['msg']}" for item in error.errors()[:_SHOWN]
            )
            raise InvalidArguments(
                f"Your answer does not fit the wanted form ({faults}). Answer again, only with JSON of the schema."
            ) from None
        return cast("Json", self._adapter.dump_python(value, mode="json"))

    def read(self, run: Run) -> Run:
        """The run with its stored output as a value of the type."""
        return (
            run
            if run.output is None
            else replace(run, output=self._adapter.validate_json(dumps(cast("Json", run.output))))
        )


def _bare(text: str) -> str:
    """The JSON itself, without a fence around it."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text[3:-3].removeprefix("json").strip()
    return text
