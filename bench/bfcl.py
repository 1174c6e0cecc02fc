"""Schemas and calls of the Berkeley Function Calling Leaderboard (`bfcl-eval`) through our validation; no model.

schemas_valid      tool schemas that are valid JSON Schema after the type map, of 8,726
accepted_calls     accepted answers that validate; the others are listed with their flaw (goal: 6,908)
mutants_accepted   accepted answers with one fault put in that validate all the same (goal: 0)
validations_per_s  `Tool.validate` on the accepted calls, one core (goal: 50,000, and at most 2 times slower than
                   `jsonschema-rs` on the same calls in the same run)
"""

from __future__ import annotations

import copy
import importlib.util
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from bench.bfcl_data import Case, Corpus, read
from bench.report import Options, Row, options, progress, show
from tropa.errors import InvalidArguments
from tropa.tool.toolbox import expose

FIGURES = ("schemas_valid", "accepted_calls", "mutants_accepted", "validations_per_s")
LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,64}")
# A value that no coercion can turn into the type.
WRONG: dict[str, Any] = {
    "string": 41,
    "integer": "many",
    "number": "plenty",
    "boolean": "perhaps",
    "array": "[1, 2",
    "object": "{not json",
}


def main() -> None:
    """Measure and print."""
    chosen = options(__doc__)
    found = importlib.util.find_spec("bfcl_eval")
    if found is None or found.origin is None:
        print("bfcl-eval is not installed: `pip install --no-deps bfcl-eval==2026.3.23`, then run this again")
        show(dict.fromkeys(FIGURES), [], chosen)
        return
    progress("converting the schemas")
    measure(read(Path(found.origin).parent / "data"), chosen)


def measure(corpus: Corpus, chosen: Options) -> None:
    """Validate everything in the corpus, and show the figures."""
    import jsonschema_rs  # noqa: PLC0415

    exposed = expose(corpus.names)
    progress(f"validating {len(corpus.cases)} accepted calls")
    refused = [(case, text) for case in corpus.cases if (text := refusal(case, case.arguments)) is not None]
    flawed = {id(case) for case, _ in refused}
    valid = [case for case in corpus.cases if id(case) not in flawed]
    progress("putting faults in")
    count, strict, slipped = 0, 0, list[tuple[Case, str]]()
    validators = {id(case.tool): jsonschema_rs.validator_for(case.tool.schema) for case in valid}
    for case in valid:
        for kind, mutant in mutants(case):
            if validators[id(case.tool)].is_valid(mutant):
                strict += 1
                continue
            count += 1
            if refusal(case, mutant) is None:
                slipped.append((case, f"{kind}: {json.dumps(mutant)[:100]}"))
    progress(f"timing {len(valid)} calls")
    ours, theirs = speed(valid, validators, rounds=7 if chosen.quick else 31)
    rows: list[Row] = [
        {"row": "tool schemas", "n": len(corpus.names)},
        {"row": "schemas that the metaschema accepts", "n": sum(map(jsonschema_rs.meta.is_valid, corpus.schemas))},
        {"row": "different names", "n": len(exposed)},
        {"row": "schemas with a name outside the pattern", "n": sum(not LEGAL.fullmatch(n) for n in corpus.names)},
        {"row": "exposed names outside the pattern", "n": sum(not LEGAL.fullmatch(n) for n in exposed.values())},
        {"row": "exposed names that collide", "n": len(exposed) - len(set(exposed.values()))},
        {"row": "accepted calls in the data", "n": len(corpus.cases)},
        {"row": "mutated calls", "n": count},
        {"row": "mutants left out, valid by jsonschema-rs", "n": strict},
        {"row": "jsonschema-rs validations per second", "n": round(theirs)},
        {"row": "jsonschema-rs over ours", "n": theirs / ours},
        *({"row": "schema not valid", "where": where, "flaw": text} for where, text in corpus.invalid.items()),
        *({"row": "mutant accepted", "where": case.entry, "flaw": text} for case, text in slipped),
        *({"row": "call refused", "where": case.entry, "flaw": text[:150]} for case, text in refused),
    ]
    figures = (len(corpus.tools), len(valid), len(slipped), round(ours))
    show(dict(zip(FIGURES, figures, strict=True)), rows, chosen)


def refusal(case: Case, arguments: dict[str, Any]) -> str | None:
    """What our validation says against a call; None where it accepts it."""
    try:
        case.tool.validate(arguments)
    except InvalidArguments as error:
        return str(error)
    return None


def mutants(case: Case) -> Iterator[tuple[str, dict[str, Any]]]:
    """The call with one fault put in, each at every place where it can be put."""
    yield "unknown argument", {**case.arguments, "tropa_unknown": 1}
    yield from _object(case.arguments, case.tool.schema, lambda value: value)


def _object(value: dict[str, Any], schema: Any, rebuild: Callable[[Any], Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Faults in the members of an object; `rebuild` makes the whole call from the changed object."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    for name in required:
        if name in value:
            yield "required left out", rebuild({n: v for n, v in value.items() if n != name})
    for name, item in value.items():
        part = properties.get(name)
        if isinstance(part, dict):

            def inside(changed: Any, name: str = name) -> Any:
                return rebuild({**value, name: changed})

            yield from _value(item, part, inside, required=name in required)


def _value(item: Any, schema: Any, rebuild: Callable[[Any], Any], *, required: bool) -> Iterator[tuple[str, Any]]:
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    if kind is None:
        return
    yield "wrong type", rebuild(WRONG[kinds[0]])
    other = [7] if kinds[0] == "object" else {"tropa": 7}
    yield "wrong structure", rebuild(other)
    if required and "null" not in kinds:
        yield "null", rebuild(None)
    if "enum" in schema:
        yield "out of the enumeration", rebuild("tropa: none of these" if kinds[0] == "string" else -987654321)
    if isinstance(item, dict):
        yield from _object(item, schema, rebuild)
        if isinstance(schema.get("properties"), dict) and schema.get("required"):
            yield "nested and encoded twice", rebuild("{}")
    parts = schema.get("items")
    if isinstance(item, list) and isinstance(parts, dict) and isinstance(parts.get("type"), str):
        yield "wrong item", rebuild([*item, WRONG[parts["type"]]])
        yield "wrong item, encoded twice", rebuild(json.dumps([*item, WRONG[parts["type"]]]))
        for index, inner in enumerate(item[:2]):

            def replace(changed: Any, index: int = index) -> Any:
                copied = copy.copy(item)
                copied[index] = changed
                return rebuild(copied)

            yield from _value(inner, parts, replace, required=True)


def speed(cases: list[Case], validators: dict[int, Any], rounds: int) -> tuple[float, float]:
    """Validations per second of ours and of jsonschema-rs: medians of rounds taken in turns."""
    plain = [case for case in cases if validators[id(case.tool)].is_valid(case.arguments)]
    ours = [(case.tool.validate, case.arguments) for case in plain]
    theirs = [(validators[id(case.tool)].validate, case.arguments) for case in plain]
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for calls, taken in zip((ours, theirs), times, strict=True):
            start = time.perf_counter()
            for validate, arguments in calls:
                validate(arguments)
            taken.append(time.perf_counter() - start)
    return len(ours) / median(times[0]), len(theirs) / median(times[1])


if __name__ == "__main__":
    main()
