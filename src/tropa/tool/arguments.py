"""Checked arguments, in the form that is recorded and in the form that a function gets."""

from __future__ import annotations

from dataclasses import dataclass

from tropa.messages import JsonObject


# Not frozen: a frozen one costs a third of a microsecond more to make, as much as validating the call itself.
@dataclass(slots=True)
class Arguments:
    """The arguments of one call after validation.

    `canonical` is strict JSON: what is digested, shown and journaled. It is what the model gave, after coercion, with no
    defaults added; validating it again gives the same. It may be the very object that was validated: do not change it.
    `native` holds what the function gets, by parameter name.
    """

    canonical: JsonObject
    native: dict[str, object]
