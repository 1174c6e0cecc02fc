"""Thirty plain requests to a warehouse and the calls that each should lead to, in any order within a step.

`kind`: direct (one call), two (two calls asked for at once), steps (the second call needs or follows the first),
none (no tool fits, something is missing, or the user says not to).
"""

from __future__ import annotations

from dataclasses import dataclass

from tropa.messages import JsonObject
from tropa.model import ToolSpec

SITES = ["Hamburg", "Rotterdam", "Gdansk"]
SITE: JsonObject = {"type": "string", "enum": [*SITES]}
SKU: JsonObject = {"type": "string", "description": "article number, e.g. A-113", "pattern": "[A-Z]-[0-9]+"}
QUANTITY: JsonObject = {"type": "integer", "minimum": 1, "description": "number of pieces"}
SOURCE: JsonObject = {**SITE, "description": "site the pieces leave, after 'from'"}
TARGET: JsonObject = {**SITE, "description": "site the pieces go to, after 'to'"}
STOCK = ToolSpec(
    "stock",
    "How many pieces of an article are at a site.",
    {"type": "object", "properties": {"sku": SKU, "site": SITE}, "required": ["sku", "site"]},
)
MOVE = ToolSpec(
    "move_stock",
    "Move pieces of an article from one site to another.",
    {
        "type": "object",
        "properties": {"sku": SKU, "quantity": QUANTITY, "source": SOURCE, "target": TARGET},
        "required": ["sku", "quantity", "source", "target"],
    },
)
TOOLS = (STOCK, MOVE)


def stock(sku: str, site: str) -> tuple[str, JsonObject]:
    return "stock", {"sku": sku, "site": site}


def move(sku: str, quantity: int, source: str, target: str) -> tuple[str, JsonObject]:
    return "move_stock", {"sku": sku, "quantity": quantity, "source": source, "target": target}


@dataclass(frozen=True)
class Case:
    kind: str
    text: str
    calls: tuple[tuple[str, JsonObject], ...] = ()


HH, RT, GD = SITES
CASES = (
    Case("direct", "Move 40 of A-113 from Hamburg to Rotterdam", (move("A-113", 40, HH, RT),)),
    Case("direct", "How many A-113 are in Gdansk?", (stock("A-113", GD),)),
    Case("direct", "How much B-20 do we have in Rotterdam?", (stock("B-20", RT),)),
    Case("direct", "Please transfer 12 pieces of C-7 from Gdansk to Hamburg.", (move("C-7", 12, GD, HH),)),
    Case("direct", "what's the stock of D-401 at hamburg", (stock("D-401", HH),)),
    Case("direct", "Could you ship 5 units of A-9 to Gdansk from Rotterdam?", (move("A-9", 5, RT, GD),)),
    Case("direct", "Check the stock level for E-15 in Gdansk", (stock("E-15", GD),)),
    Case("direct", "Rotterdam is short of B-20. Move 60 there from Hamburg.", (move("B-20", 60, HH, RT),)),
    Case("direct", "Do we have any F-3 left in Rotterdam?", (stock("F-3", RT),)),
    Case("direct", "Relocate 150 of G-88, Hamburg to Gdansk", (move("G-88", 150, HH, GD),)),
    Case("direct", "I need to know the number of H-2 in the Hamburg warehouse", (stock("H-2", HH),)),
    Case("direct", "Send seven K-31 from Rotterdam over to Hamburg", (move("K-31", 7, RT, HH),)),
    Case("direct", "Take 25 pieces of A-113 out of Gdansk and bring them to Rotterdam.", (move("A-113", 25, GD, RT),)),
    Case("direct", "Is there enough L-64 in Gdansk?", (stock("L-64", GD),)),
    Case("direct", "move 1 M-1 gdansk -> hamburg", (move("M-1", 1, GD, HH),)),
    Case("direct", "Our customer waits. Get 30 N-12 from Hamburg to Gdansk today!", (move("N-12", 30, HH, GD),)),
    Case("direct", "Stock of P-5 in Rotterdam please", (stock("P-5", RT),)),
    Case("two", "How many A-113 are in Hamburg and how many in Gdansk?", (stock("A-113", HH), stock("A-113", GD))),
    Case("two", "Show the stock of B-20 and of C-7 in Rotterdam", (stock("B-20", RT), stock("C-7", RT))),
    Case(
        "two",
        "Move 10 of A-113 from Hamburg to Gdansk and 5 of B-20 from Rotterdam to Hamburg",
        (move("A-113", 10, HH, GD), move("B-20", 5, RT, HH)),
    ),
    Case(
        "two",
        "Check the stock of K-31 in Hamburg, then move 8 of it to Rotterdam",
        (stock("K-31", HH), move("K-31", 8, HH, RT)),
    ),
    Case(
        "steps",
        "If Hamburg has more than 50 of A-113, move 20 of A-113 from Hamburg to Gdansk",
        (stock("A-113", HH), move("A-113", 20, HH, GD)),
    ),
    Case(
        "steps",
        "Look up how many D-401 are in Gdansk and move all of them from Gdansk to Rotterdam",
        (stock("D-401", GD), move("D-401", 120, GD, RT)),
    ),
    Case(
        "steps",
        "First look up the stock of E-15 in Rotterdam. Then move 10 of E-15 from Rotterdam to Hamburg.",
        (stock("E-15", RT), move("E-15", 10, RT, HH)),
    ),
    Case("none", "What is the weather in Hamburg?"),
    Case("none", "Don't move any A-113 from Hamburg to Rotterdam"),
    Case("none", "Hello!"),
    Case("none", "Thanks, that was all."),
    Case("none", "Write a poem about forklifts"),
    Case("none", "Who is the manager of the Rotterdam site?"),
)
